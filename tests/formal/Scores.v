(* book/scores.md: the count-weighted Gini score and the class counts.  How far a record moves them, and so their
   sensitivity and range under both relations. *)
From Coq Require Import Reals Lra Psatz List Arith Bool Lia.
From DPForest Require Import Law Privacy Selection.
Import ListNotations.
Open Scope R_scope.

(** A record of class c joins n records; a of them have class c, s = sum of the other squared counts. *)
Lemma gini_rise n a s : 0 < n ->
  ((n + 1) - ((a + 1) * (a + 1) + s) / (n + 1)) - (n - (a * a + s) / n)
  = ((n - a) * (n - a) + s) / (n * (n + 1)).
Proof. intros Hn. field. lra. Qed.

Lemma gini_rise_bounds n a s : 0 < n -> 0 <= a <= n -> 0 <= s <= (n - a) * (n - a) ->
  0 <= ((n - a) * (n - a) + s) / (n * (n + 1)) <= 2 * n / (n + 1).
Proof.
  intros Hn Ha Hs. assert (0 < n * (n + 1)) by nra. split.
  - apply Rmult_le_pos; [nra|]. left. now apply Rinv_0_lt_compat.
  - replace (2 * n / (n + 1)) with (2 * n * n / (n * (n + 1))) by (field; lra).
    apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|]. nra.
Qed.

Definition sumf (l : list nat) (f : nat -> R) : R := fold_right (fun c s => f c + s) 0 l.

Lemma sumf_ext l f g : (forall c, In c l -> f c = g c) -> sumf l f = sumf l g.
Proof. induction l; simpl; intros H; [reflexivity|]. rewrite H, IHl; auto. Qed.

Lemma sumf_split l f c : NoDup l -> In c l -> sumf l f = f c + sumf (remove Nat.eq_dec c l) f.
Proof.
  induction l as [|b l IH]; simpl; intros Hnd Hin; [easy|]. inversion Hnd; subst.
  destruct (Nat.eq_dec c b) as [->|Hne].
  - now rewrite notin_remove.
  - destruct Hin as [->|Hin]; [easy|]. simpl. rewrite (IH H2 Hin). ring.
Qed.

Lemma sumf_sq l f : (forall c, 0 <= f c) ->
  0 <= sumf l f /\ 0 <= sumf l (fun c => f c * f c) <= sumf l f * sumf l f.
Proof.
  intros H. induction l as [|b l IH]; simpl; [lra|]. specialize (H b).
  destruct IH as (I1 & I2 & I3). nra.
Qed.

Lemma filter_shorter A (f : A -> bool) l : (length (filter f l) <= length l)%nat.
Proof. induction l as [|y l IH]; simpl; [lia|]. destruct (f y); simpl; lia. Qed.

Lemma length_insert {X} (l1 : list X) x l2 : length (l1 ++ x :: l2) = S (length (l1 ++ l2)).
Proof. rewrite !app_length. simpl. lia. Qed.

(** A candidate sends each record to one of J children by the record alone; its score adds up g over them. *)
Section Split.
Context {X K : Type} (J : nat) (child : K -> X -> nat) (Hchild : forall r x, (child r x < J)%nat) (g : list X -> R).
Definition divided (D : list X) (r : K) : R := sumf (seq 0 J) (fun j => g (filter (fun x => child r x =? j) D)).

(** An added record enters one child of each candidate, and leaves all other children alone. *)
Lemma divided_insert l1 x l2 r : exists m1 m2, (length (m1 ++ x :: m2) <= length (l1 ++ x :: l2))%nat /\
  divided (l1 ++ x :: l2) r - divided (l1 ++ l2) r = g (m1 ++ x :: m2) - g (m1 ++ m2).
Proof.
  set (j0 := child r x). set (keep := fun j y => child r y =? j).
  exists (filter (keep j0) l1), (filter (keep j0) l2). split.
  { rewrite !length_insert, <- filter_app. apply le_n_S, filter_shorter. }
  assert (Hin : In j0 (seq 0 J)) by (apply in_seq; specialize (Hchild r x); unfold j0; lia).
  unfold divided. fold (keep). rewrite !(sumf_split (seq 0 J) _ j0 (seq_NoDup _ _) Hin).
  rewrite (sumf_ext (remove Nat.eq_dec j0 (seq 0 J))
    (fun j => g (filter (fun y => child r y =? j) (l1 ++ x :: l2)))
    (fun j => g (filter (fun y => child r y =? j) (l1 ++ l2)))).
  2: { intros j Hj. apply in_remove in Hj as [_ Hj]. f_equal. rewrite !filter_app. simpl.
       destruct (Nat.eqb_spec (child r x) j); [unfold j0 in Hj; congruence|reflexivity]. }
  rewrite !filter_app. simpl. replace (child r x =? j0) with true by (symmetry; apply Nat.eqb_refl).
  unfold keep. ring.
Qed.
End Split.

Section Gini.
Context {X : Type} (C : nat) (cls : X -> nat) (Hcls : forall x, (cls x < C)%nat).

Definition count (c : nat) (D : list X) : R := INR (length (filter (fun x => cls x =? c) D)).
Definition size (D : list X) : R := INR (length D).
Definition gini (D : list X) : R :=
  size D - sumf (seq 0 C) (fun c => count c D * count c D) / size D.

Lemma count_insert c l1 x l2 :
  count c (l1 ++ x :: l2) = count c (l1 ++ l2) + (if cls x =? c then 1 else 0).
Proof.
  unfold count. rewrite !filter_app, !app_length. simpl. destruct (cls x =? c); simpl length;
  rewrite ?plus_INR, ?S_INR; lra.
Qed.
Lemma size_insert l1 x l2 : size (l1 ++ x :: l2) = size (l1 ++ l2) + 1.
Proof. unfold size. rewrite !app_length. simpl. rewrite !plus_INR, S_INR. lra. Qed.
Lemma count_nonneg c D : 0 <= count c D. Proof. apply pos_INR. Qed.
Lemma size_nonneg D : 0 <= size D. Proof. apply pos_INR. Qed.

Lemma sumf_insert (f g : nat -> R) x : (forall c, c <> cls x -> f c = g c) ->
  sumf (seq 0 C) f = sumf (seq 0 C) g + (f (cls x) - g (cls x)).
Proof.
  intros H. assert (Hin : In (cls x) (seq 0 C)) by (apply in_seq; specialize (Hcls x); lia).
  rewrite (sumf_split _ f _ (seq_NoDup _ _) Hin), (sumf_split _ g _ (seq_NoDup _ _) Hin).
  rewrite (sumf_ext _ f g); [ring|]. intros c Hc. apply in_remove in Hc. now apply H.
Qed.

Lemma counts_total D : sumf (seq 0 C) (fun c => count c D) = size D.
Proof.
  induction D as [|x D IH].
  - unfold count, size; simpl. induction (seq 0 C); simpl; lra.
  - rewrite (sumf_insert (fun c => count c (x :: D)) (fun c => count c D) x).
    + rewrite IH. pose proof (count_insert (cls x) [] x D) as H. pose proof (size_insert [] x D) as H'.
      simpl in *. rewrite H, H', Nat.eqb_refl. lra.
    + intros c Hc. pose proof (count_insert c [] x D) as H. simpl in H. rewrite H.
      destruct (Nat.eqb_spec (cls x) c); [congruence|lra].
Qed.

(** The impurity of one child rises by an amount in [0, 2n/(n+1)], n its size before. *)
Theorem gini_insert l1 x l2 :
  let D := l1 ++ l2 in let D' := l1 ++ x :: l2 in
  0 <= gini D' - gini D <= 2 * size D / (size D + 1).
Proof.
  intros D D'. unfold gini.
  set (c0 := cls x). set (a := count c0 D). set (n := size D).
  assert (Hin : In c0 (seq 0 C)) by (apply in_seq; specialize (Hcls x); unfold c0; lia).
  set (s := sumf (remove Nat.eq_dec c0 (seq 0 C)) (fun c => count c D * count c D)).
  assert (HS : sumf (seq 0 C) (fun c => count c D * count c D) = a * a + s)
    by (apply (sumf_split _ (fun c => count c D * count c D) _ (seq_NoDup _ _) Hin)).
  assert (HS' : sumf (seq 0 C) (fun c => count c D' * count c D') = (a + 1) * (a + 1) + s).
  { rewrite (sumf_insert _ (fun c => count c D * count c D) x).
    - rewrite HS. unfold D', a, c0, D. rewrite count_insert, Nat.eqb_refl. ring.
    - intros c Hc. unfold D', D. rewrite count_insert.
      destruct (Nat.eqb_spec (cls x) c); [congruence|ring]. }
  assert (Hn' : size D' = n + 1) by apply size_insert.
  assert (Ht : n = a + sumf (remove Nat.eq_dec c0 (seq 0 C)) (fun c => count c D))
    by (unfold n; rewrite <- counts_total; apply (sumf_split _ (fun c => count c D) _ (seq_NoDup _ _) Hin)).
  destruct (sumf_sq (remove Nat.eq_dec c0 (seq 0 C)) (fun c => count c D)
              (fun c => count_nonneg c D)) as (Hr & Hs).
  pose proof (count_nonneg c0 D) as Ha. fold a in Ha. fold s in Hs.
  rewrite HS, HS', Hn'. destruct (Rle_lt_dec n 0) as [Hz|Hp].
  - assert (n = 0) by (pose proof (size_nonneg D); unfold n in *; lra).
    assert (a = 0) by lra. assert (s = 0) by nra.
    rewrite H, H0, H1. unfold Rdiv. rewrite ?Rplus_0_l, ?Rmult_0_l, ?Rmult_0_r, ?Rmult_1_l, ?Rinv_1. lra.
  - rewrite gini_rise by assumption. apply gini_rise_bounds; try lra. nra.
Qed.

Context {K : Type} (J : nat) (child : K -> X -> nat) (Hchild : forall r x, (child r x < J)%nat).
Definition score (D : list X) (r : K) : R :=
  - divided J child gini D r.

Theorem thm_gini l1 x l2 r n : size (l1 ++ x :: l2) <= n -> 1 <= n ->
  - (2 * (n - 1) / n) <= score (l1 ++ x :: l2) r - score (l1 ++ l2) r <= 0.
Proof.
  intros Hsz Hn1. unfold score.
  destruct (divided_insert J child Hchild gini l1 x l2 r) as (m1 & m2 & Hlen & Hdiff).
  pose proof (gini_insert m1 x m2) as H. simpl in H.
  assert (Hm : size (m1 ++ m2) <= n - 1).
  { apply le_INR in Hlen. fold (size (m1 ++ x :: m2)) (size (l1 ++ x :: l2)) in Hlen. rewrite size_insert in Hlen. lra. }
  pose proof (size_nonneg (m1 ++ m2)) as H0. set (k := size (m1 ++ m2)) in *.
  assert (2 * k / (k + 1) <= 2 * (n - 1) / n).
  { apply Rmult_le_reg_r with ((k + 1) * n); [nra|]. unfold Rdiv.
    replace (2 * k * / (k + 1) * ((k + 1) * n)) with (2 * k * n) by (field; lra).
    replace (2 * (n - 1) * / n * ((k + 1) * n)) with (2 * (n - 1) * (k + 1)) by (field; lra). nra. }
  lra.
Qed.

(** The range under add-remove: 2(n-1)/n, not twice as much. *)
Corollary gini_range l1 x l2 r s n : size (l1 ++ x :: l2) <= n -> 1 <= n ->
  let D := l1 ++ l2 in let D' := l1 ++ x :: l2 in
  Rabs ((score D' r - score D r) - (score D' s - score D s)) <= 2 * (n - 1) / n.
Proof.
  intros H H' D D'. pose proof (thm_gini l1 x l2 r n H H') as H1.
  pose proof (thm_gini l1 x l2 s n H H') as H2. fold D D' in H1, H2. apply Rabs_le. split; lra.
Qed.
End Gini.

Section Scores.
Context {X K : Type} (C J : nat) (cls : X -> nat) (child : K -> X -> nat).
Context (Hcls : forall x, (cls x < C)%nat) (Hchild : forall r x, (child r x < J)%nat).

(** If an added record moves every score by an amount in [-B, 0] then R = B, and 2B under replace-one. *)
Lemma interval_rule {L} (q : list X -> L -> R) B :
  (forall l1 x l2 r, - B <= q (l1 ++ x :: l2) r - q (l1 ++ l2) r <= 0) ->
  range add_remove q B /\ range replace_one q (2 * B).
Proof.
  intros H. split.
  - intros D D' [x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]] r s;
      pose proof (H l1 x l2 r); pose proof (H l1 x l2 s); lra.
  - intros D D' (x & x' & l1 & l2 & -> & ->) r s.
    pose proof (H l1 x l2 r); pose proof (H l1 x l2 s).
    pose proof (H l1 x' l2 r); pose proof (H l1 x' l2 s). lra.
Qed.

Theorem thm_gini_range : range add_remove (score C cls J child) 2 /\ range replace_one (score C cls J child) 4.
Proof.
  replace 4 with (2 * 2) by ring. apply interval_rule. intros l1 x l2 r.
  pose proof (thm_gini C cls Hcls J child Hchild l1 x l2 r (size (l1 ++ x :: l2)) (Rle_refl _)) as H.
  assert (H1 : 1 <= size (l1 ++ x :: l2)).
  { rewrite size_insert. pose proof (size_nonneg (l1 ++ l2)). lra. }
  specialize (H H1). assert (2 * (size (l1 ++ x :: l2) - 1) / size (l1 ++ x :: l2) <= 2).
  { apply Rmult_le_reg_r with (size (l1 ++ x :: l2)); [lra|]. unfold Rdiv.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. lra. }
  lra.
Qed.

(** Labels: the score of class c is its count (here its negative complement, which has the same law). *)
Theorem thm_majority : range add_remove (fun D c => count cls c D) 1 /\ range replace_one (fun D c => count cls c D) 2.
Proof.
  split.
  - intros D D' [x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]] r s; rewrite !count_insert;
      destruct (cls x =? r), (cls x =? s); lra.
  - intros D D' (x & x' & l1 & l2 & -> & ->) r s. rewrite !count_insert.
    destruct (cls x =? r), (cls x =? s), (cls x' =? r), (cls x' =? s); lra.
Qed.
End Scores.

(* book/scores.md: the interval rule, *stop*, and the scores that add up over the children of a split. *)
From Coq Require Import Reals Lra Psatz List Arith Bool Lia.
From DPForest Require Import Law Privacy Selection Scores.
Import ListNotations.
Open Scope R_scope.

(** Neighbours of at most n records: n is a public cap. *)
Definition capped {X} (n : nat) (N : list X -> list X -> Prop) (D D' : list X) : Prop :=
  N D D' /\ (length D <= n)%nat /\ (length D' <= n)%nat.

Section Interval.
Context {X K : Type} (q : list X -> K -> R) (n : nat).

(** An added record moves the score of r by this much. *)
Definition change (l1 : list X) (x : X) (l2 : list X) (r : K) : R := q (l1 ++ x :: l2) r - q (l1 ++ l2) r.

(** The interval may depend on the data and on the record, not on the candidate. *)
Theorem lem_interval B :
  (forall l1 x l2, (length (l1 ++ x :: l2) <= n)%nat -> exists a, forall r, a <= change l1 x l2 r <= a + B) ->
  range (capped n add_remove) q B /\ range (capped n replace_one) q (2 * B).
Proof.
  unfold change. intros H. split.
  - intros D D' ([x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]] & Hn & Hn') r s;
      destruct (H l1 x l2) as [a Ha]; try assumption; pose proof (Ha r); pose proof (Ha s); lra.
  - intros D D' ((x & x' & l1 & l2 & -> & ->) & Hn & Hn') r s.
    destruct (H l1 x l2 Hn) as [a Ha]. destruct (H l1 x' l2 Hn') as [b Hb].
    pose proof (Ha r); pose proof (Ha s); pose proof (Hb r); pose proof (Hb s). lra.
Qed.

(** If it is always the same one. *)
Theorem lem_interval_same a B :
  (forall l1 x l2, (length (l1 ++ x :: l2) <= n)%nat -> forall r, a <= change l1 x l2 r <= a + B) ->
  sensitivity (capped n replace_one) q B.
Proof.
  unfold change. intros H D D' ((x & x' & l1 & l2 & -> & ->) & Hn & Hn') r.
  pose proof (H l1 x l2 Hn r). pose proof (H l1 x' l2 Hn' r). lra.
Qed.

(** lem-stop-candidate: one more candidate, whose score is s and a public head start c. *)
Definition with_stop (s : list X -> R) (c : R) (D : list X) (r : option K) : R :=
  match r with Some r => q D r | None => s D + c end.

Theorem lem_stop_candidate s c a B :
  (forall l1 x l2, (length (l1 ++ x :: l2) <= n)%nat -> forall r, a <= change l1 x l2 r <= a + B) ->
  (forall l1 x l2, (length (l1 ++ x :: l2) <= n)%nat -> a <= s (l1 ++ x :: l2) - s (l1 ++ l2) <= a + B) ->
  range (capped n add_remove) (with_stop s c) B /\ range (capped n replace_one) (with_stop s c) (2 * B).
Proof.
  unfold change. intros H Hs. split.
  - intros D D' ([x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]] & Hn & Hn') r s0;
      pose proof (Hs l1 x l2 ltac:(assumption)) as H1; pose proof (H l1 x l2 ltac:(assumption)) as H2;
      destruct r as [r|], s0 as [s0|]; simpl; try pose proof (H2 r); try pose proof (H2 s0); lra.
  - intros D D' ((x & x' & l1 & l2 & -> & ->) & Hn & Hn') r s0.
    pose proof (Hs l1 x l2 Hn) as H1. pose proof (Hs l1 x' l2 Hn') as H1'.
    pose proof (H l1 x l2 Hn) as H2. pose proof (H l1 x' l2 Hn') as H2'.
    destruct r as [r|], s0 as [s0|]; simpl; try pose proof (H2 r); try pose proof (H2 s0);
      try pose proof (H2' r); try pose proof (H2' s0); lra.
Qed.
End Interval.

(** What holds under every cap holds. *)
Lemma uncapped {X K} N (q : list X -> K -> R) B : (forall n, range (capped n N) q B) -> range N q B.
Proof. intros H D D' HN. apply (H (max (length D) (length D'))). repeat split; [assumption|lia|lia]. Qed.
Lemma uncapped_sensitivity {X K} N (q : list X -> K -> R) B :
  (forall n, sensitivity (capped n N) q B) -> sensitivity N q B.
Proof. intros H D D' HN. apply (H (max (length D) (length D'))). repeat split; [assumption|lia|lia]. Qed.

(** * Scores that add up g over the children *)
Section Split.
Context {X K : Type} (J : nat) (child : K -> X -> nat) (Hchild : forall r x, (child r x < J)%nat) (g : list X -> R).

Lemma divided_interval n a b : (forall l1 x l2, (length (l1 ++ x :: l2) <= n)%nat ->
    a <= g (l1 ++ x :: l2) - g (l1 ++ l2) <= b) ->
  forall l1 x l2, (length (l1 ++ x :: l2) <= n)%nat -> forall r, a <= change (divided J child g) l1 x l2 r <= b.
Proof.
  intros H l1 x l2 Hn r. unfold change.
  destruct (divided_insert J child Hchild g l1 x l2 r) as (m1 & m2 & Hm & ->).
  apply H. lia.
Qed.
End Split.

(** * Max: the records that the majority of their child gets right *)
Section Majority.
Context {X K : Type} (C J : nat) (cls : X -> nat) (child : K -> X -> nat) (Hchild : forall r x, (child r x < J)%nat).
Definition most (D : list X) : R := fold_right (fun c m => Rmax (count cls c D) m) 0 (seq 0 C).

Lemma most_insert l1 x l2 : 0 <= most (l1 ++ x :: l2) - most (l1 ++ l2) <= 1.
Proof.
  unfold most. induction (seq 0 C) as [|c l IH]; cbn [fold_right]; [lra|]. rewrite count_insert.
  revert IH. generalize (fold_right (fun c m => Rmax (count cls c (l1 ++ x :: l2)) m) 0 l).
  generalize (fold_right (fun c m => Rmax (count cls c (l1 ++ l2)) m) 0 l). generalize (count cls c (l1 ++ l2)).
  intros k B A. unfold Rmax. destruct (cls x =? c), (Rle_dec k B); destruct (Rle_dec _ A); lra.
Qed.

Theorem thm_majority_split : let q := divided J child most in
  sensitivity add_remove q 1 /\ sensitivity replace_one q 1 /\ range add_remove q 1 /\ range replace_one q 2.
Proof.
  intros q.
  assert (H : forall n l1 x l2, (length (l1 ++ x :: l2) <= n)%nat -> forall r, 0 <= change q l1 x l2 r <= 0 + 1).
  { intros n. apply divided_interval; [assumption|]. intros. rewrite Rplus_0_l. apply most_insert. }
  assert (HI : forall n, range (capped n add_remove) q 1 /\ range (capped n replace_one) q (2 * 1)).
  { intros n. apply lem_interval. intros l1 x l2 Hn. exists 0. now apply (H n). }
  replace 2 with (2 * 1) by ring. repeat split.
  - destruct H0 as [x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]];
      pose proof (H _ l1 x l2 (le_n _) r) as HH; unfold change in HH; lra.
  - destruct H0 as [x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]];
      pose proof (H _ l1 x l2 (le_n _) r) as HH; unfold change in HH; lra.
  - apply (uncapped_sensitivity replace_one q 1 (fun n => lem_interval_same q n 0 1 (H n)) D D' H0 r).
  - apply (uncapped_sensitivity replace_one q 1 (fun n => lem_interval_same q n 0 1 (H n)) D D' H0 r).
  - apply uncapped. intros n. apply HI.
  - apply uncapped. intros n. apply HI.
Qed.
End Majority.

(** * Numbers: squared errors, and two masses *)
Definition total_of (l : list R) : R := sum (fun v => v) l.
Definition mean (l : list R) : R := total_of l / INR (length l).
Definition sse (l : list R) : R := sum (fun v => (v - mean l) * (v - mean l)) l.

Lemma sum_around l w : sum (fun v => (v - w) * (v - w)) l
  = sum (fun v => v * v) l - 2 * w * total_of l + INR (length l) * (w * w).
Proof.
  unfold total_of. induction l as [|v l IH]; [simpl; ring|]. cbn [sum fold_right length]. unfold sum in *. rewrite IH, S_INR. ring.
Qed.
Lemma sse_sums l : l <> [] -> sse l = sum (fun v => v * v) l - total_of l * total_of l / INR (length l).
Proof.
  intros H. unfold sse. rewrite sum_around. unfold mean. field. apply not_0_INR. destruct l; [congruence|discriminate].
Qed.

(** On the line; the book says it of every Hilbert space. *)
Theorem thm_sse_update l1 v l2 : let l := l1 ++ l2 in l <> [] ->
  sse (l1 ++ v :: l2) - sse l = INR (length l) / (INR (length l) + 1) * ((v - mean l) * (v - mean l)).
Proof.
  intros l Hl. assert (Hl' : l1 ++ v :: l2 <> []) by (destruct l1; discriminate).
  rewrite !sse_sums by assumption. rewrite length_insert, S_INR. unfold mean.
  assert (HT : forall f : R -> R, sum f (l1 ++ v :: l2) = sum f l + f v)
    by (intros f; unfold l; rewrite !sum_app; simpl; unfold sum; ring).
  assert (H0 : 0 < INR (length l)) by (apply lt_0_INR; destruct l; [congruence|simpl; lia]).
  unfold total_of. rewrite !HT. fold l. field. split; lra.
Qed.

Lemma mean_range l : l <> [] -> (forall v, In v l -> 0 <= v <= 1) -> 0 <= mean l <= 1.
Proof.
  intros Hl H. assert (H0 : 0 < INR (length l)) by (apply lt_0_INR; destruct l; [congruence|simpl; lia]).
  assert (Hi : 0 < / INR (length l)) by now apply Rinv_0_lt_compat.
  assert (HT : 0 <= total_of l <= INR (length l)).
  { unfold total_of. split; [apply sum_nonneg; intros; now apply H|].
    rewrite <- (Rmult_1_r (INR _)), <- sum_const. apply sum_mono. intros. now apply H. }
  unfold mean, Rdiv. split; [nra|]. rewrite <- (Rinv_r (INR (length l))) by lra. nra.
Qed.

Lemma sse_insert l1 v l2 n : (forall u, In u (v :: l1 ++ l2) -> 0 <= u <= 1) ->
  (length (l1 ++ v :: l2) <= n)%nat -> 0 <= sse (l1 ++ v :: l2) - sse (l1 ++ l2) <= (INR n - 1) / INR n.
Proof.
  intros H Hn. rewrite length_insert in Hn. pose proof (le_INR _ _ Hn) as Hr. rewrite S_INR in Hr.
  pose proof (pos_INR (length (l1 ++ l2))) as Hp. assert (Hin : 0 < / INR n) by (apply Rinv_0_lt_compat; lra).
  destruct (list_eq_dec Req_EM_T (l1 ++ l2) []) as [E|Hne].
  - apply app_eq_nil in E as [-> ->].
    assert (HE : sse ([] ++ [v]) - sse ([] ++ []) = 0) by (simpl app; unfold sse, mean, total_of; simpl; field).
    rewrite HE. split; [lra|]. apply Rmult_le_pos; lra.
  - rewrite thm_sse_update by assumption. set (k := INR (length (l1 ++ l2))) in *.
    assert (Hm : 0 <= mean (l1 ++ l2) <= 1) by (apply mean_range; [assumption|]; intros; apply H; now right).
    assert (Hv : 0 <= v <= 1) by (apply H; now left). set (m := mean (l1 ++ l2)) in *.
    assert (Hd : 0 <= (v - m) * (v - m) <= 1) by (split; [apply Rle_0_sqr|]; assert (-1 <= v - m <= 1) by lra; nra).
    assert (Hk : 0 <= k / (k + 1) <= (INR n - 1) / INR n).
    { assert (0 < / (k + 1)) by (apply Rinv_0_lt_compat; lra). split; [apply Rmult_le_pos; lra|].
      apply Rmult_le_reg_r with ((k + 1) * INR n); [apply Rmult_lt_0_compat; lra|].
      replace (k / (k + 1) * ((k + 1) * INR n)) with (k * INR n) by (field; lra).
      replace ((INR n - 1) / INR n * ((k + 1) * INR n)) with ((INR n - 1) * (k + 1)) by (field; lra). nra. }
    split; [apply Rmult_le_pos; lra|]. apply Rle_trans with (k / (k + 1) * 1); [apply Rmult_le_compat_l; lra|lra].
Qed.

Section Numbers.
Context {X K : Type} (J : nat) (y : X -> R) (Hy : forall x, 0 <= y x <= 1).
Context (child : K -> X -> nat) (Hchild : forall r x, (child r x < J)%nat).

Theorem thm_sse n : (1 <= n)%nat -> let q := divided J child (fun D => - sse (map y D)) in let B := (INR n - 1) / INR n in
  sensitivity (capped n replace_one) q B /\ range (capped n add_remove) q B /\ range (capped n replace_one) q (2 * B).
Proof.
  intros Hn1 q B.
  assert (H : forall l1 x l2, (length (l1 ++ x :: l2) <= n)%nat -> forall r, - B <= change q l1 x l2 r <= - B + B).
  { apply divided_interval; [assumption|]. intros l1 x l2 Hn. rewrite !map_app. cbn [map].
    enough (0 <= sse (map y l1 ++ y x :: map y l2) - sse (map y l1 ++ map y l2) <= B) by lra.
    apply sse_insert.
    - intros u [<-|Hu]; [apply Hy|]. rewrite <- map_app in Hu. apply in_map_iff in Hu as (z & <- & _). apply Hy.
    - rewrite length_insert, <- map_app, map_length. now rewrite length_insert in Hn. }
  split; [exact (lem_interval_same q n (- B) B H)|]. apply lem_interval. intros l1 x l2 Hn. exists (- B). now apply H.
Qed.

Definition mass (D : list X) : R := sum y D.
Definition rest (D : list X) : R := sum (fun x => 1 - y x) D.

(** (a) Every added record moves the pair by 1, a replaced one by at most 2. *)
Theorem thm_two_masses_change :
  (forall l1 x l2, Rabs (mass (l1 ++ x :: l2) - mass (l1 ++ l2)) + Rabs (rest (l1 ++ x :: l2) - rest (l1 ++ l2)) = 1) /\
  (forall D D', replace_one D D' -> Rabs (mass D' - mass D) + Rabs (rest D' - rest D) <= 2).
Proof.
  unfold mass, rest. split.
  - intros l1 x l2. rewrite !sum_app. simpl. pose proof (Hy x). unfold sum.
    match goal with |- Rabs ?a + Rabs ?b = _ => replace a with (y x) by ring; replace b with (1 - y x) by ring end.
    rewrite !Rabs_right; lra.
  - intros D D' (x & x' & l1 & l2 & -> & ->). rewrite !sum_app. simpl. pose proof (Hy x). pose proof (Hy x').
    unfold sum. match goal with |- Rabs ?a + Rabs ?b <= _ => replace a with (y x' - y x) by ring; replace b with (y x - y x') by ring end.
    unfold Rabs. repeat destruct (Rcase_abs _); lra.
Qed.

(** (c) As a score. *)
Theorem thm_two_masses_score : let q := divided J child (fun D => / 2 * Rabs (mass D - rest D)) in
  sensitivity replace_one q 1 /\ range add_remove q 1 /\ range replace_one q 2.
Proof.
  intros q.
  assert (H : forall n l1 x l2, (length (l1 ++ x :: l2) <= n)%nat -> forall r, - / 2 <= change q l1 x l2 r <= - / 2 + 1).
  { intros n. apply divided_interval; [assumption|]. intros l1 x l2 _. unfold mass, rest. rewrite !sum_app. simpl.
    pose proof (Hy x). unfold sum, Rabs. repeat destruct (Rcase_abs _); lra. }
  replace 2 with (2 * 1) by ring.
  assert (HI : forall n, range (capped n add_remove) q 1 /\ range (capped n replace_one) q (2 * 1)).
  { intros n. apply lem_interval. intros l1 x l2 Hn. exists (- / 2). now apply (H n). }
  split; [exact (uncapped_sensitivity _ _ _ (fun n => lem_interval_same q n (- / 2) 1 (H n)))|].
  split; apply uncapped; intros n; apply HI.
Qed.
End Numbers.

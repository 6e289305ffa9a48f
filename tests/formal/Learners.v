(* The learners: book/edprf.md, diffpets.md, tree.md, boosting.md, pearson_tree.md, rivals.md, and the ancestors.
   A learner is said in five words: draw a coin that looks at nothing, ask a node, split it, make it a leaf, stop.
   What it may ask costs what book/mechanisms.md says, and levels have budgets; the rest is the master theorem. *)
From Coq Require Import Reals Lra Psatz List ZArith Arith Bool Lia.
From DPForest Require Import Law Privacy Program Path Forest Selection Scores PermuteAndFlip Noise Budgets.
Import ListNotations.
Open Scope R_scope.

(** * Own weights, thm-own-weights: a record counts for weight / scale, which depends on that record alone *)
Section Weights.
Context {X : Type} (weight : X -> nat) (scale : nat) (Hweight : forall x, (weight x <= scale)%nat).

(** (a) Class weights. *)
Section ClassWeights.
Context (classes : nat) (cls : X -> nat).
Definition class_weight (D : list X) (c : nat) : nat :=
  list_sum (map weight (filter (fun x => cls x =? c) D)).
Definition class_weights (D : list X) : list Z := map (fun c => Z.of_nat (class_weight D c)) (seq 0 classes).

Lemma class_weight_insert l1 x l2 c :
  class_weight (l1 ++ x :: l2) c = (class_weight (l1 ++ l2) c + if cls x =? c then weight x else 0)%nat.
Proof.
  unfold class_weight. rewrite !filter_app, !map_app, !list_sum_app. simpl.
  destruct (cls x =? c); simpl; lia.
Qed.

Lemma distance_sym cs : forall cs', distance cs cs' = distance cs' cs.
Proof. induction cs as [|c cs IH]; intros [|c' cs']; simpl; auto. rewrite IH. lia. Qed.
Lemma distance_triangle cs : forall cs' cs'', length cs = length cs' -> length cs' = length cs'' ->
  (distance cs cs'' <= distance cs cs' + distance cs' cs'')%Z.
Proof.
  induction cs as [|c cs IH]; intros [|c' cs'] [|c'' cs''] H1 H2; try discriminate; simpl; try lia.
  injection H1 as H1. injection H2 as H2. specialize (IH cs' cs'' H1 H2). lia.
Qed.

Lemma distance_insert l1 x l2 l : NoDup l ->
  let f D := map (fun c => Z.of_nat (class_weight D c)) l in
  (distance (f (l1 ++ l2)) (f (l1 ++ x :: l2)) = if in_dec Nat.eq_dec (cls x) l then Z.of_nat (weight x) else 0)%Z.
Proof.
  intros Hl f. unfold f. induction Hl as [|c l Hc Hl IH]; [reflexivity|]. cbn [map distance]. cbv zeta in IH. rewrite IH.
  rewrite class_weight_insert.
  destruct (Nat.eqb_spec (cls x) c) as [<-|N].
  - destruct (in_dec Nat.eq_dec (cls x) l); [easy|]. destruct (in_dec Nat.eq_dec (cls x) (cls x :: l)) as [|Hno]; [lia|].
    exfalso. apply Hno. now left.
  - destruct (in_dec Nat.eq_dec (cls x) l) as [i|i], (in_dec Nat.eq_dec (cls x) (c :: l)) as [j|j]; try lia; exfalso.
    + apply j. now right.
    + destruct j; [congruence|tauto].
Qed.

Theorem thm_own_weights_counts D D' :
  (add_remove D D' -> (distance (class_weights D) (class_weights D') <= Z.of_nat scale)%Z) /\
  (replace_one D D' -> (distance (class_weights D) (class_weights D') <= 2 * Z.of_nat scale)%Z).
Proof.
  assert (H : forall l1 x l2, (distance (class_weights (l1 ++ l2)) (class_weights (l1 ++ x :: l2)) <= Z.of_nat scale)%Z).
  { intros l1 x l2. unfold class_weights. rewrite (distance_insert l1 x l2 _ (seq_NoDup _ _)). specialize (Hweight x).
    destruct (in_dec _ _ _); lia. }
  split.
  - intros [x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]]; [apply H|]. rewrite distance_sym. apply H.
  - intros (x & x' & l1 & l2 & -> & ->).
    pose proof (H l1 x l2) as H1. pose proof (H l1 x' l2) as H2. rewrite distance_sym in H1.
    pose proof (distance_triangle (class_weights (l1 ++ x :: l2)) (class_weights (l1 ++ l2)) (class_weights (l1 ++ x' :: l2))) as HT.
    unfold class_weights in *. rewrite !map_length in HT. specialize (HT eq_refl eq_refl). lia.
Qed.
End ClassWeights.

(** (b) Scores.  A homogeneous score of weights j / scale is 1 / scale times the score of j records in place of one. *)
Definition copies (D : list X) : list X := flat_map (fun x => repeat x (weight x)) D.
Definition weighted_score {K} (q : list X -> K -> R) (D : list X) (r : K) : R := / INR scale * q (copies D) r.

Lemma repeat_add {K} (q : list X -> K -> R) R : range add_remove q R -> forall x j l1 l2 r s,
  (q (l1 ++ repeat x j ++ l2) r - q (l1 ++ l2) r) - (q (l1 ++ repeat x j ++ l2) s - q (l1 ++ l2) s) <= INR j * R.
Proof.
  intros HR x j l1 l2 r s. induction j as [|j IH]; [simpl; lra|]. rewrite S_INR. cbn [repeat].
  assert (Ha : add_remove (l1 ++ (x :: repeat x j) ++ l2) (l1 ++ repeat x j ++ l2)).
  { exists x. right. now exists l1, (repeat x j ++ l2). }
  specialize (HR _ _ Ha r s). lra.
Qed.
Lemma range_back {K} N (q : list X -> K -> R) R D D' r s : range N q R -> N D' D ->
  (q D r - q D' r) - (q D s - q D' s) <= R.
Proof. intros H HN. specialize (H _ _ HN s r). lra. Qed.

Lemma repeat_drop {K} (q : list X -> K -> R) R : range add_remove q R -> forall x j l1 l2 r s,
  (q (l1 ++ l2) r - q (l1 ++ repeat x j ++ l2) r) - (q (l1 ++ l2) s - q (l1 ++ repeat x j ++ l2) s) <= INR j * R.
Proof. intros HR x j l1 l2 r s. pose proof (repeat_add q R HR x j l1 l2 s r). lra. Qed.
Lemma repeat_swap {K} (q : list X -> K -> R) R : range replace_one q R -> forall x x' j l1 l2 r s,
  (q (l1 ++ repeat x j ++ l2) r - q (l1 ++ repeat x' j ++ l2) r)
  - (q (l1 ++ repeat x j ++ l2) s - q (l1 ++ repeat x' j ++ l2) s) <= INR j * R.
Proof.
  intros HR x x' j. induction j as [|j IH]; intros l1 l2 r s; [simpl; lra|]. rewrite S_INR. cbn [repeat].
  assert (Ha : replace_one (l1 ++ (x :: repeat x j) ++ l2) (l1 ++ (x' :: repeat x j) ++ l2)).
  { exists x, x'. now exists l1, (repeat x j ++ l2). }
  specialize (HR _ _ Ha r s). specialize (IH (l1 ++ [x']) l2 r s). rewrite <- !app_assoc in IH. simpl in *. lra.
Qed.

Theorem thm_own_weights_range {K} (q : list X -> K -> R) R R' : (0 < scale)%nat -> 0 <= R <= R' ->
  range add_remove q R -> range replace_one q R' ->
  range add_remove (weighted_score q) R /\ range replace_one (weighted_score q) R'.
Proof.
  intros Hs HR0 HR HR'. assert (H0 : 0 < INR scale) by now apply lt_0_INR.
  assert (Hi : 0 < / INR scale) by now apply Rinv_0_lt_compat.
  assert (HI : INR scale * / INR scale = 1) by (field; lra).
  assert (Hw : forall x, INR (weight x) <= INR scale) by (intros; apply le_INR, Hweight).
  assert (Hfin : forall d M, d <= INR scale * M -> / INR scale * d <= M).
  { intros d M Hd. apply Rle_trans with (/ INR scale * (INR scale * M)); [apply Rmult_le_compat_l; lra|].
    rewrite <- Rmult_assoc, Rinv_l by lra. lra. }
  unfold weighted_score. split.
  - intros D D' HN r s. rewrite <- !Rmult_minus_distr_l. apply Hfin.
    destruct HN as [x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]]; unfold copies; rewrite !flat_map_app; cbn [flat_map];
      [pose proof (repeat_drop q R HR x (weight x) (copies l1) (copies l2) r s) as HH
      |pose proof (repeat_add q R HR x (weight x) (copies l1) (copies l2) r s) as HH];
      unfold copies in HH; specialize (Hw x); nra.
  - intros D D' (x & x' & l1 & l2 & -> & ->) r s. rewrite <- !Rmult_minus_distr_l. apply Hfin.
    unfold copies. rewrite !flat_map_app. cbn [flat_map].
    set (m1 := flat_map _ l1). set (m2 := flat_map _ l2). pose proof (Hw x). pose proof (Hw x').
    destruct (le_lt_dec (weight x') (weight x)) as [Hle|Hlt].
    + assert (Hsplit : repeat x (weight x) = repeat x (weight x') ++ repeat x (weight x - weight x'))
        by (rewrite <- repeat_app; f_equal; lia).
      pose proof (repeat_swap q R' HR' x x' (weight x') m1 m2 r s) as Hswap.
      pose proof (repeat_add q R HR x (weight x - weight x') (m1 ++ repeat x (weight x')) m2 r s) as Hmore.
      rewrite <- !app_assoc in Hmore. rewrite Hsplit, <- app_assoc. rewrite minus_INR in Hmore by lia.
      assert (INR (weight x') <= INR (weight x)) by (apply le_INR; lia). nra.
    + assert (Hsplit : repeat x' (weight x') = repeat x' (weight x) ++ repeat x' (weight x' - weight x))
        by (rewrite <- repeat_app; f_equal; lia).
      pose proof (repeat_swap q R' HR' x x' (weight x) m1 m2 r s) as Hswap.
      pose proof (repeat_drop q R HR x' (weight x' - weight x) (m1 ++ repeat x' (weight x)) m2 r s) as Hmore.
      rewrite <- !app_assoc in Hmore. rewrite Hsplit, <- app_assoc. rewrite minus_INR in Hmore by lia.
      assert (INR (weight x) <= INR (weight x')) by (apply le_INR; lia). pose proof (pos_INR (weight x)). nra.
Qed.
End Weights.

(** * What a learner asks *)
Section Learner.
Context {Y : Type}.

Inductive answer := Chosen (r : nat) | Counted (cs : list Z) | Tossed (c : nat).
Inductive mechanism := Exponential | PermuteAndFlip.

(** One of the candidates 0 .. n, whose score has ranges R and R'; or noisy counts that a record moves by at most L. *)
Inductive question :=
| Choose (m : mechanism) (n : nat) (q : list Y -> nat -> R) (R R' rate : R)
| Count (f : list Y -> list Z) (L : nat) (rate : posreal).

Definition law (k : question) (D : list Y) : dist answer :=
  match k with
  | Choose Exponential n q _ _ rate => bind (exponential 0%nat (seq 1 n) rate q D) (fun r => ret (Chosen r))
  | Choose PermuteAndFlip n q _ _ rate => bind (permute_and_flip (S n) (Nat.lt_0_succ n) rate q D) (fun r => ret (Chosen r))
  | Count f _ rate => bind (noisy_counts rate (cond_pos rate) (f D)) (fun cs => ret (Counted cs))
  end.
Definition coming (k : question) : R := match k with Choose _ _ _ R _ rate => rate * R | Count _ L rate => INR L * rate end.
Definition replaced (k : question) : R := match k with Choose _ _ _ _ R' rate => rate * R' | Count _ L rate => 2 * INR L * rate end.
(** The constants are true. *)
Definition true_constants (k : question) : Prop :=
  match k with
  | Choose _ _ q R R' rate => 0 <= rate /\ 0 <= R /\ 0 <= R' /\ range add_remove q R /\ range replace_one q R'
  | Count f L _ => forall D D', add_remove D D' -> length (f D) = length (f D') /\ (distance (f D) (f D') <= Z.of_nat L)%Z
  end.
(** By rate b / R, or b / max (R', 2R), or b / L of a count, a question has price b. *)
Definition cost (rel : relation) (k : question) : R := price rel (coming k) (replaced k).

Lemma question_sound k : true_constants k ->
  0 <= coming k /\ 0 <= replaced k /\ private add_remove (coming k) (law k) /\ private replace_one (replaced k) (law k).
Proof.
  destruct k as [m n q R R' rate|f L rate]; simpl.
  - intros (Hr & H0 & H0' & HR & HR'). split; [nra|]. split; [nra|].
    destruct m; split; apply (thm_post_processing _ _ _ (fun r => ret (Chosen r))).
    1, 2: now apply thm_selection_range_exponential. all: now apply thm_selection_range_permute_and_flip.
  - intros Hf. pose proof (pos_INR L) as HL. pose proof (cond_pos rate) as Hr. split; [nra|]. split; [nra|].
    split; apply (thm_post_processing _ _ _ (fun cs => ret (Counted cs))).
    + rewrite INR_IZR_INZ. apply thm_geometric. exact Hf.
    + replace (2 * INR L * rate) with (IZR (2 * Z.of_nat L) * rate) by (rewrite mult_IZR, <- INR_IZR_INZ; ring).
      apply thm_geometric. intros D D' (x & x' & l1 & l2 & -> & ->).
      destruct (Hf (l1 ++ x :: l2) (l1 ++ l2)) as [L1 D1]; [exists x; right; now exists l1, l2|].
      destruct (Hf (l1 ++ l2) (l1 ++ x' :: l2)) as [L2 D2]; [exists x'; left; now exists l1, l2|].
      pose proof (distance_triangle _ _ _ L1 L2). split; [congruence|lia].
Qed.

Inductive learner :=
| Finish
| Toss (coin : dist nat) (next : answer -> learner)
| Node (v : node) (k : question) (next : answer -> learner)
| Branch (v : node) (turn : Y -> nat) (next : learner)
| Leaf (v : node) (k : question) (next : answer -> learner).

Fixpoint plant (l : learner) : tree (X := Y) (O := answer) :=
  match l with
  | Finish => Stop
  | Toss coin next => Query [] (fun _ => bind coin (fun c => ret (Tossed c))) 0 0 (fun o => plant (next o))
  | Node v k next | Leaf v k next => Query v (law k) (coming k) (replaced k) (fun o => plant (next o))
  | Branch v turn next => Split v turn (plant next)
  end.

Fixpoint calibrated (l : learner) : Prop :=
  match l with
  | Finish => True
  | Toss _ next => forall o, calibrated (next o)
  | Node _ k next | Leaf _ k next => true_constants k /\ forall o, calibrated (next o)
  | Branch _ _ next => calibrated next
  end.

Lemma calibrated_sound l : calibrated l -> sound (plant l).
Proof.
  induction l as [|coin next IH|v k next IH|v turn next IH|v k next IH]; simpl; auto.
  - intros H. repeat split; try lra; auto; intros D D' _; apply within_const, within_refl.
  - intros [Hk H]. destruct (question_sound k Hk) as (H1 & H2 & H3 & H4). repeat split; auto.
  - intros [Hk H]. destruct (question_sound k Hk) as (H1 & H2 & H3 & H4). repeat split; auto.
Qed.

(** * Levels with budgets *)
Section Levels.
Context (rel : relation) (e : nat -> R) (d : nat) (b : R) (base : nat).
Context (He : forall l, 0 <= e l) (Hb : sum e (seq 1 d) <= b).
Definition level (v : node) : nat := (length v + base)%nat.

(** [st v]: None, or what has been spent at the node v, which is neither split nor a leaf so far. *)
Definition set_st (st : node -> option R) v s u := if node_eq u v then s else st u.
Definition open_below (st : node -> option R) v u :=
  if node_eq u v then None else match u with _ :: w => if node_eq w v then Some 0 else st u | [] => st u end.

(** A node spends at most its level's budget, a leaf at most what its path has not spent. *)
Fixpoint levels (st : node -> option R) (l : learner) : Prop :=
  match l with
  | Finish => True
  | Toss _ next => forall o, levels st (next o)
  | Node v k next => exists s, st v = Some s /\ (level v <= d)%nat /\ s + cost rel k <= e (level v) /\
      forall o, levels (set_st st v (Some (s + cost rel k))) (next o)
  | Branch v _ next => exists s, st v = Some s /\ (level v <= d)%nat /\ levels (open_below st v) next
  | Leaf v k next => exists s, st v = Some s /\ cost rel k <= b - sum e (seq 1 (level v - 1)) - s /\
      forall o, levels (set_st st v None) (next o)
  end.

Definition left_at (st : node -> option R) (v : node) : R :=
  match st v with Some s => b - sum e (seq 1 (level v - 1)) - s | None => 0 end.
Definition within_level (st : node -> option R) := forall v s, st v = Some s -> (1 <= level v)%nat /\ 0 <= s /\ ((level v <= d)%nat -> s <= e (level v)).

Lemma upto l : (l <= d)%nat -> sum e (seq 1 l) <= b.
Proof.
  intros Hl. replace d with (l + (d - l))%nat in Hb by lia. rewrite seq_app, sum_app in Hb.
  pose proof (sum_nonneg e (seq (1 + l) (d - l)) (fun x _ => He x)). lra.
Qed.
Lemma upto_last l : (1 <= l)%nat -> sum e (seq 1 l) = sum e (seq 1 (l - 1)) + e l.
Proof.
  intros Hl. replace l with (l - 1 + 1)%nat at 1 by lia. rewrite seq_app, sum_app. replace (1 + (l - 1))%nat with l by lia. simpl. lra.
Qed.

Lemma levels_keep l : calibrated l -> forall st left, within_level st -> (forall v, 0 <= left v) ->
  (forall v, left_at st v <= left v) -> levels st l -> keeps rel left (plant l).
Proof.
  induction l as [|coin next IH|v k next IH|v turn next IH|v k next IH]; simpl; intros Hc st left Hw H0 Hl HP; auto.
  - assert (Hz : price rel 0 0 = 0) by (destruct rel; simpl; [reflexivity|]; rewrite Rmult_0_r; unfold Rmax; destruct (Rle_dec 0 0); lra).
    rewrite Hz. split; [apply H0|]. intros o. apply (IH o (Hc o) st); auto; intros u; unfold pay; destruct (node_eq u []) as [->|]; auto;
      specialize (H0 []); specialize (Hl []); lra.
  - destruct HP as (s & Hs & Hd & Hp & HP). destruct Hc as [Hk Hc]. destruct (Hw v s Hs) as (H1 & Hs0 & _).
    destruct (question_sound k Hk) as (A1 & A2 & _ & _). pose proof (price_nonneg rel _ _ A1 A2) as Hprice. fold (cost rel k) in *.
    pose proof (Hl v) as Hlv. unfold left_at in Hlv. rewrite Hs in Hlv. pose proof (upto _ Hd) as HU. rewrite (upto_last _ H1) in HU.
    split; [lra|]. intros o. apply (IH o (Hc o) (set_st st v (Some (s + cost rel k)))).
    + intros u s' Hu. unfold set_st in Hu. destruct (node_eq u v) as [->|]; [injection Hu as <-|now apply Hw].
      split; [assumption|]. split; [lra|intros _; lra].
    + intros u. unfold pay. destruct (node_eq u v); [lra|apply H0].
    + intros u. unfold pay, left_at, set_st. destruct (node_eq u v) as [->|]; [lra|apply Hl].
    + apply HP.
  - destruct HP as (s & Hs & Hd & HP). destruct (Hw v s Hs) as (H1 & Hs0 & Hse). specialize (Hse Hd).
    pose proof (Hl v) as Hlv. unfold left_at in Hlv. rewrite Hs in Hlv. pose proof (upto _ Hd) as HU. pose proof (upto_last _ H1) as HL.
    apply (IH Hc (open_below st v)); [| | |assumption].
    + intros u s' Hu. unfold open_below in Hu. destruct (node_eq u v); [discriminate|]. destruct u as [|i w]; [now apply Hw|].
      destruct (node_eq w v) as [->|]; [|now apply Hw]. injection Hu as <-. unfold level in *. simpl. repeat split; [lia|lra|]. intros _. apply He.
    + intros u. unfold hand_down. pose proof (H0 v). pose proof (H0 u).
      destruct (node_eq u v); [lra|]. destruct u as [|i w]; [assumption|]. destruct (node_eq w v); lra.
    + intros u. unfold hand_down, left_at, open_below. destruct (node_eq u v); [lra|]. destruct u as [|i w]; [apply Hl|].
      destruct (node_eq w v) as [->|]; [|apply Hl]. unfold level in *. simpl length. pose proof (H0 (i :: v)).
      replace (S (length v) + base - 1)%nat with (length v + base)%nat by lia. lra.
  - destruct HP as (s & Hs & Hp & HP). destruct Hc as [Hk Hc].
    pose proof (Hl v) as Hlv. unfold left_at in Hlv. rewrite Hs in Hlv. fold (cost rel k) in *.
    split; [lra|]. intros o. apply (IH o (Hc o) (set_st st v None)).
    + intros u s' Hu. unfold set_st in Hu. destruct (node_eq u v); [discriminate|now apply Hw].
    + intros u. unfold pay. destruct (node_eq u v); [lra|apply H0].
    + intros u. unfold pay, left_at, set_st. destruct (node_eq u v) as [->|]; [lra|apply Hl].
    + apply HP.
Qed.
End Levels.
End Learner.

(** Class weights, counted with their scale, cost what class counts cost. *)
Lemma class_weights_true {Y} (weight : Y -> nat) scale classes cls rate : (forall x, (weight x <= scale)%nat) ->
  true_constants (Count (class_weights weight classes cls) scale rate).
Proof.
  intros Hw D D' HN. split; [unfold class_weights; now rewrite !map_length|].
  now apply (thm_own_weights_counts weight scale Hw classes cls D D').
Qed.

(** Two masses of numbers on a grid of L steps, thm-two-masses (b) for whole numbers. *)
Definition masses {Y} (y : Y -> nat) (L : nat) (D : list Y) : list Z :=
  [Z.of_nat (list_sum (map y D)); Z.of_nat (list_sum (map (fun x => L - y x)%nat D))].
Theorem thm_two_masses_counts {Y} (y : Y -> nat) L rate : (forall x, (y x <= L)%nat) ->
  let k := Count (masses y L) L rate in
  private add_remove (INR L * rate) (law k) /\ private replace_one (2 * INR L * rate) (law k).
Proof.
  intros Hy k.
  assert (H : forall l1 x l2, distance (masses y L (l1 ++ l2)) (masses y L (l1 ++ x :: l2)) = Z.of_nat L).
  { intros l1 x l2. unfold masses. rewrite !map_app, !list_sum_app. cbn [map distance].
    change (list_sum (?a :: ?m)) with (a + list_sum m)%nat. specialize (Hy x). lia. }
  assert (Ht : true_constants k).
  { intros D D' HN. split; [reflexivity|].
    destruct HN as [x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]]; [|rewrite distance_sym]; rewrite H; lia. }
  destruct (question_sound k Ht) as (_ & _ & H1 & H2). exact (conj H1 H2).
Qed.

(** * A forest of them *)
Definition roots (v : node) : option R := match v with [_] => Some 0 | _ => None end.
Definition root_budget (b : R) (v : node) : R := match v with [_] => b | _ => 0 end.

Lemma along_roots b u : 0 <= b -> along (root_budget b) u <= b.
Proof.
  intros Hb. induction u as [|n u IH]; [simpl; lra|]. cbn [along]. destruct u as [|m u]; [simpl; lra|]. simpl root_budget at 1. lra.
Qed.

(** [e l]: the budget of level l, 1 .. d.  [b]: that of a tree. *)
Definition follows {Y} (rel : relation) (e : nat -> R) (d : nat) (b : R) (l : learner (Y := Y)) : Prop :=
  (forall i, 0 <= e i) /\ sum e (seq 1 d) <= b /\ calibrated l /\ levels rel e d b 0 roots l.

Lemma follows_path {Y} rel e d b (l : learner (Y := Y)) : follows rel e d b l ->
  forall k u t, path_cost rel (u ++ [k]) (plant l) t <= b.
Proof.
  intros (He & Hb & Hc & Hl) k u t. assert (H0 : 0 <= b).
  { pose proof (sum_nonneg e (seq 1 d) (fun x _ => He x)). lra. }
  eapply Rle_trans; [|apply (along_roots b (u ++ [k]) H0)].
  apply keeps_path_cost; [now apply calibrated_sound|intros [|n [|m v]]; simpl; lra|].
  apply (levels_keep rel e d b 0 He Hb l Hc roots); auto.
  - intros [|n [|m v]] s E; try discriminate. injection E as <-. unfold level. simpl. repeat split; [lia|lra|]. intros _. apply He.
  - intros [|n [|m v]]; simpl; lra.
  - intros [|n [|m v]]; unfold left_at, roots, level; simpl; lra.
Qed.
Lemma follows_forest {X C} (coin : dist C) (trees : C -> X -> list nat) rel e d b eps (l : learner) :
  follows rel e d b l ->
  (rel = ReplaceOne -> forall c x x', length (trees c x) = length (trees c x')) ->
  (forall c x, sum (fun _ => b) (trees c x) <= eps) ->
  private (neighbours rel) eps (grow_forest coin trees (plant l)).
Proof.
  intros H Ht Hs. pose proof H as (He & Hb & Hc & _). assert (H0 : 0 <= b).
  { pose proof (sum_nonneg e (seq 1 d) (fun x _ => He x)). lra. }
  apply thm_forest with (beta := fun _ => b); try assumption; [now apply calibrated_sound|].
  now apply (follows_path rel e d b).
Qed.

(** Each record in the tree that a coin of its own tells. *)
Lemma by_coin {X} (coin : dist nat) rel e d eps (l : learner (Y := nat * X)) :
  follows rel e d eps l -> private (neighbours rel) eps (grow_forest coin own_tree (plant l)).
Proof. intros H. apply (follows_forest coin own_tree rel e d eps); auto. intros c x. simpl. lra. Qed.

(** All records in every tree. *)
Lemma by_all {X} T rel e d eps (l : learner (Y := nat * X)) : (0 < T)%nat ->
  follows rel e d (eps / INR T) l -> private (neighbours rel) eps (grow_forest nothing (all_trees T) (plant l)).
Proof.
  intros HT H. apply (follows_forest nothing (all_trees T) rel e d (eps / INR T)); auto. intros c x. unfold all_trees.
  rewrite sum_const, seq_length. right. field. apply not_0_INR. lia.
Qed.

(** What differs from paper to paper is which questions are asked, and how records are shared: by a coin, by all trees, or
    all in one tree.  [follows] covers every choice of questions, so there are few statements, under many names. *)
Section Papers.
Context {X : Type}.
Implicit Types l : learner (Y := nat * X).

Theorem thm_edprf coin rel e d eps l : follows rel e d eps l ->
  private (neighbours rel) eps (grow_forest coin own_tree (plant l)).
Proof. apply by_coin. Qed.

Theorem thm_diffpets_parts coin rel e d eps l : follows rel e d eps l ->
  private (neighbours rel) eps (grow_forest coin own_tree (plant l)).
Proof. apply by_coin. Qed.
Theorem thm_diffpets_all T rel e d eps l : (0 < T)%nat -> follows rel e d (eps / INR T) l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees T) (plant l)).
Proof. apply by_all. Qed.

(** Rounds are trees, each asked when the one before has answered; weights are in the questions. *)
Theorem thm_dps_adaboost_parts coin rel e d eps l : follows rel e d eps l ->
  private (neighbours rel) eps (grow_forest coin own_tree (plant l)).
Proof. apply by_coin. Qed.
Theorem thm_dps_adaboost_all T rel e d eps l : (0 < T)%nat -> follows rel e d (eps / INR T) l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees T) (plant l)).
Proof. apply by_all. Qed.
Theorem thm_dp_adaboost_parts coin rel e eps l : follows rel e 1 eps l ->
  private (neighbours rel) eps (grow_forest coin own_tree (plant l)).
Proof. apply by_coin. Qed.
Theorem thm_dp_adaboost_all T rel e eps l : (0 < T)%nat -> follows rel e 1 (eps / INR T) l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees T) (plant l)).
Proof. apply by_all. Qed.

Theorem thm_diffprf_parts coin rel e d eps l : follows rel e d eps l ->
  private (neighbours rel) eps (grow_forest coin own_tree (plant l)).
Proof. apply by_coin. Qed.
Theorem thm_diffprf_all T rel e d eps l : (0 < T)%nat -> follows rel e d (eps / INR T) l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees T) (plant l)).
Proof. apply by_all. Qed.

(** Several selections at a node share its level's budget. *)
Theorem thm_diffprfs_parts coin rel e d eps l : follows rel e d eps l ->
  private (neighbours rel) eps (grow_forest coin own_tree (plant l)).
Proof. apply by_coin. Qed.
Theorem thm_diffprfs_all T rel e d eps l : (0 < T)%nat -> follows rel e d (eps / INR T) l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees T) (plant l)).
Proof. apply by_all. Qed.

(** Leaves count two masses. *)
Theorem thm_diffpets_regression_parts coin rel e d eps l : follows rel e d eps l ->
  private (neighbours rel) eps (grow_forest coin own_tree (plant l)).
Proof. apply by_coin. Qed.
Theorem thm_diffpets_regression_all T rel e d eps l : (0 < T)%nat -> follows rel e d (eps / INR T) l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees T) (plant l)).
Proof. apply by_all. Qed.

(** Levels that spend nothing: the structure is drawn by coins. *)
Theorem thm_random_trees T rel d eps l : (0 < T)%nat -> follows rel (fun _ => 0) d (eps / INR T) l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees T) (plant l)).
Proof. apply by_all. Qed.
Theorem thm_smooth_forest coin rel d eps l : follows rel (fun _ => 0) d eps l ->
  private (neighbours rel) eps (grow_forest coin own_tree (plant l)).
Proof. apply by_coin. Qed.

(** One tree of all records. *)
Lemma one_tree rel e d eps l : follows rel e d eps l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees 1) (plant l)).
Proof. intros H. apply (by_all 1 rel e d eps); [lia|]. replace (eps / INR 1) with eps by (simpl; field). exact H. Qed.
Theorem thm_diffp_id3 rel e d eps l : follows rel e d eps l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees 1) (plant l)).
Proof. apply one_tree. Qed.
Theorem thm_sulq_id3 rel e d eps l : follows rel e d eps l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees 1) (plant l)).
Proof. apply one_tree. Qed.
Theorem thm_pinq_id3 rel e d eps l : follows rel e d eps l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees 1) (plant l)).
Proof. apply one_tree. Qed.
Theorem thm_diffp_c45 rel e d eps l : follows rel e d eps l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees 1) (plant l)).
Proof. apply one_tree. Qed.

(** Tables of groups are trees of one level: all selections read all records, each by a score that may look at groups
    which earlier answers tell, and the root is a leaf whose classes are the groups with their classes. *)
Theorem thm_dt_diff rel e eps l : follows rel e 1 eps l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees 1) (plant l)).
Proof. apply one_tree. Qed.
Theorem thm_diffgen rel e eps l : follows rel e 1 eps l ->
  private (neighbours rel) eps (grow_forest nothing (all_trees 1) (plant l)).
Proof. apply one_tree. Qed.

(** One tree of records each of which has a part, told by a coin of its own, that scores may look at. *)
Theorem thm_pearson_tree (part : dist nat) rel e d eps l :
  (forall i, 0 <= e i) -> sum e (seq 1 d) <= eps -> calibrated l ->
  levels rel e d eps 1 (fun v => match v with [] => Some 0 | _ => None end) l ->
  private (neighbours rel) eps (dealt part own_tree (run (grown (plant l)))).
Proof.
  intros He Hb Hc Hl. assert (H0 : 0 <= eps).
  { pose proof (sum_nonneg e (seq 1 d) (fun x _ => He x)). lra. }
  pose proof (calibrated_sound l Hc) as Hs.
  apply sharing; [now apply sound_honest|reflexivity|]. intros c x t. simpl. rewrite Rplus_0_r.
  eapply Rle_trans; [now apply spent_path|]. eapply Rle_trans; [|apply (along_only eps (leaf (plant l) (fun _ => []) t (c, x)) [] H0)].
  apply keeps_path_cost; [assumption|intros v; unfold only; destruct (node_eq v []); lra|].
  apply (levels_keep rel e d eps 1 He Hb l Hc (fun v => match v with [] => Some 0 | _ => None end)); auto.
  - intros [|n v] s E; try discriminate. injection E as <-. unfold level. simpl. repeat split; [lia|lra|]. intros _. apply He.
  - intros v; unfold only; destruct (node_eq v []); lra.
  - intros [|n v]; unfold left_at, only, level; simpl; [destruct (node_eq [] []); [lra|congruence]|destruct (node_eq (n :: v) []); [congruence|lra]].
Qed.
End Papers.

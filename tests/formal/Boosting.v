(* book/private_boosting.md: the library's own learner.  In each round a table is selected, by all records, and then
   measured, cell by cell; what is asked next, with what weights and at what budget, depends on earlier answers.
   Budgets add up from round to round, and the cells of a table share theirs. *)
From Coq Require Import Reals Lra Psatz List ZArith Arith Bool Lia.
From DPForest Require Import Law Privacy Program Selection Noise Learners.
Import ListNotations.
Open Scope R_scope.

(** * Tables: a record is in one cell of each *)
Record table (X : Type) := Table { cells : nat; cell_of : X -> nat }.
Arguments Table {X}. Arguments cells {X}. Arguments cell_of {X}.

(** ** The soft gap *)
Definition soft (theta x : R) : R := Rmax (Rabs x - theta) 0.
Lemma soft_change theta x y : Rabs (soft theta x - soft theta y) <= Rabs (x - y).
Proof.
  pose proof (Rabs_triang_inv x y). pose proof (Rabs_triang_inv y x) as H'. rewrite Rabs_minus_sym in H'. apply Rabs_le.
  unfold soft, Rmax. destruct (Rle_dec _ _), (Rle_dec _ _); lra.
Qed.

Lemma Rabs_between x m : Rabs x <= m -> - m <= x <= m.
Proof. unfold Rabs. destruct (Rcase_abs x); lra. Qed.
Lemma Rabs_sum {A} (f : A -> R) l : Rabs (sum f l) <= sum (fun i => Rabs (f i)) l.
Proof.
  induction l as [|i l IH]; [simpl; rewrite Rabs_R0; lra|]. cbn [sum fold_right]. unfold sum in IH.
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.
Lemma sum_minus {A} (f g : A -> R) l : sum (fun i => f i - g i) l = sum f l - sum g l.
Proof. induction l as [|i l IH]; [simpl; ring|]. cbn [sum fold_right]. unfold sum in IH. rewrite IH. ring. Qed.

(** A sum of which one term at most is not 0. *)
Lemma sum_nowhere (v : R) c l : ~ In c l -> sum (fun i => if c =? i then v else 0) l = 0.
Proof.
  intros Hc. rewrite (sum_ext _ (fun _ => 0)); [rewrite sum_const; ring|].
  intros i Hi. destruct (Nat.eqb_spec c i); [congruence|reflexivity].
Qed.
Lemma sum_at_most_one (v : R) c l : 0 <= v -> NoDup l -> sum (fun i => if c =? i then v else 0) l <= v.
Proof.
  intros Hv Hl. induction Hl as [|i l Hi Hl IH]; [simpl; lra|]. cbn [sum fold_right].
  fold (sum (fun i => if c =? i then v else 0) l).
  destruct (Nat.eqb_spec c i) as [->|N]; [rewrite sum_nowhere by assumption|]; lra.
Qed.

Section SoftGap.
Context {X : Type}.

(** [gap x k]: how far a record moves the [k]th of some gaps of its cell.  [gap_in]: the gap of a cell. *)
Definition gap_in (t : table X) (gap : X -> nat -> R) (D : list X) (c k : nat) : R :=
  sum (fun x => if cell_of t x =? c then gap x k else 0) D.
Definition soft_gaps (theta : R) (gaps : nat) (t : table X) (gap : X -> nat -> R) (D : list X) : R :=
  sum (fun c => sum (fun k => soft theta (gap_in t gap D c k)) (seq 0 gaps)) (seq 0 (cells t)).

Lemma soft_gaps_insert theta gaps t gap l1 x l2 :
  Rabs (soft_gaps theta gaps t gap (l1 ++ x :: l2) - soft_gaps theta gaps t gap (l1 ++ l2))
  <= sum (fun k => Rabs (gap x k)) (seq 0 gaps).
Proof.
  unfold soft_gaps. rewrite <- sum_minus. eapply Rle_trans; [apply Rabs_sum|].
  set (m := sum (fun k => Rabs (gap x k)) (seq 0 gaps)).
  assert (Hm : 0 <= m) by (apply sum_nonneg; intros; apply Rabs_pos).
  apply Rle_trans with (sum (fun c => if cell_of t x =? c then m else 0) (seq 0 (cells t)));
    [|apply sum_at_most_one; [assumption|apply seq_NoDup]].
  apply sum_mono. intros c _. rewrite <- sum_minus. eapply Rle_trans; [apply Rabs_sum|].
  assert (Hg : forall k, gap_in t gap (l1 ++ x :: l2) c k - gap_in t gap (l1 ++ l2) c k
    = if cell_of t x =? c then gap x k else 0).
  { intros k. unfold gap_in. rewrite !sum_app. cbn [sum fold_right]. unfold sum. ring. }
  apply Rle_trans with (sum (fun k => Rabs (if cell_of t x =? c then gap x k else 0)) (seq 0 gaps)).
  - apply sum_mono. intros k _. rewrite <- Hg. apply soft_change.
  - unfold m. destruct (cell_of t x =? c); [lra|]. rewrite (sum_ext _ (fun _ => 0)) by (intros; apply Rabs_R0).
    rewrite sum_const. pose proof (sum_nonneg (fun k => Rabs (gap x k)) (seq 0 gaps) (fun k _ => Rabs_pos _)). lra.
Qed.

(** Candidates whose gaps a record moves by at most [m] together. *)
Lemma soft_gaps_range {K} theta gaps (t : K -> table X) (gap : K -> X -> nat -> R) m :
  (forall r x, sum (fun k => Rabs (gap r x k)) (seq 0 gaps) <= m) ->
  let q := fun D r => soft_gaps theta gaps (t r) (gap r) D in
  sensitivity add_remove q m /\ range add_remove q (2 * m) /\
  sensitivity replace_one q (2 * m) /\ range replace_one q (4 * m).
Proof.
  intros Hm q.
  assert (H : forall l1 x l2 r, - m <= q (l1 ++ x :: l2) r - q (l1 ++ l2) r <= m).
  { intros l1 x l2 r. pose proof (soft_gaps_insert theta gaps (t r) (gap r) l1 x l2) as H.
    pose proof (Hm r x) as Hx. unfold q. apply Rabs_between. lra. }
  assert (Ha : sensitivity add_remove q m).
  { intros D D' [x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]] r; pose proof (H l1 x l2 r); lra. }
  pose proof (lem_range_twice q add_remove m Ha) as Hr. split; [assumption|]. split; [assumption|]. split.
  - intros D D' (x & x' & l1 & l2 & -> & ->) r. pose proof (H l1 x l2 r). pose proof (H l1 x' l2 r). lra.
  - replace (4 * m) with (2 * (2 * m)) by ring. now apply lem_range_replace_one.
Qed.

(** lem-soft-gap.  A record adds what [sides] says to the two sides of its cell, [w] at most together.
    The book has it on
    one of them; candidates are tables and targets, and what a record weighs may depend on both. *)
Definition one_gap (sides : X -> R * R) (x : X) (_ : nat) : R := snd (sides x) - fst (sides x).
Definition within_weight (w : R) (sides : X -> R * R) : Prop :=
  forall x, 0 <= fst (sides x) /\ 0 <= snd (sides x) /\ fst (sides x) + snd (sides x) <= w.

Theorem lem_soft_gap {K} theta (t : K -> table X) (sides : K -> X -> R * R) w :
  (forall r, within_weight w (sides r)) ->
  let q := fun D r => soft_gaps theta 1 (t r) (one_gap (sides r)) D in
  sensitivity add_remove q w /\ range add_remove q (2 * w) /\
  sensitivity replace_one q (2 * w) /\ range replace_one q (4 * w).
Proof.
  intros Hw. apply soft_gaps_range. intros r x. destruct (Hw r x) as (H0 & H1 & H2). unfold one_gap. simpl.
  rewrite Rplus_0_r. apply Rabs_le. lra.
Qed.
End SoftGap.

(** lem-calibrated-weights (a) and (b): [p] is the probability that the scores give the target, [q] its share. *)
Theorem lem_calibrated_weights p : 0 < p < 1 ->
  let a := Rmin 1 ((1 - p) / p) in let b := Rmin 1 (p / (1 - p)) in
  0 <= a <= 1 /\ 0 <= b <= 1 /\ p * a = (1 - p) * b /\
  (forall a' b', a' <= 1 -> b' <= 1 -> p * a' = (1 - p) * b' -> a' <= a /\ b' <= b) /\
  (forall f q, 0 < q < 1 -> q / (1 - q) = exp f * (p / (1 - p)) ->
    q * a - (1 - q) * b = (q * a + (1 - q) * b) * tanh (f / 2)).
Proof.
  intros Hp a b. assert (Ho : p * ((1 - p) / p) = 1 - p) by (field; lra).
  assert (Ho' : (1 - p) * (p / (1 - p)) = p) by (field; lra).
  assert (H0 : 0 < (1 - p) / p) by (apply Rdiv_lt_0_compat; lra).
  assert (H0' : 0 < p / (1 - p)) by (apply Rdiv_lt_0_compat; lra).
  set (o := (1 - p) / p) in *. set (o' := p / (1 - p)) in *.
  assert (Hab : p * a = (1 - p) * b).
  { unfold a, b, Rmin. destruct (Rle_dec 1 o), (Rle_dec 1 o'); nra. }
  split; [unfold a, Rmin; destruct (Rle_dec 1 o); lra|]. split; [unfold b, Rmin; destruct (Rle_dec 1 o'); lra|].
  split; [assumption|]. split.
  - intros a' b' Ha Hb H. unfold a, b, Rmin. destruct (Rle_dec 1 o), (Rle_dec 1 o'); split; nra.
  - intros f q Hq H. unfold tanh, sinh, cosh. set (u := exp (f / 2)). set (v := exp (- (f / 2))).
    assert (Huv : u * v = 1) by (unfold u, v; rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
    assert (Hu : exp f = u * u) by (unfold u; rewrite <- exp_plus; f_equal; field).
    assert (Hu0 : 0 < u) by apply exp_pos. assert (Hv0 : 0 < v) by apply exp_pos.
    assert (HA : q * a = u * u * ((1 - q) * b)).
    { assert (E : q = (1 - q) * (u * u) * o').
      { rewrite <- Hu. transitivity ((1 - q) * (q / (1 - q))); [field; lra|]. rewrite H. ring. }
      rewrite E at 1. transitivity ((1 - q) * (u * u) * (o' * a)); [ring|]. replace (o' * a) with b; [ring|].
      apply Rmult_eq_reg_l with (1 - p); [|lra]. rewrite <- Hab, <- Rmult_assoc, Ho'. ring. }
    assert (Huuv : u * u * v = u) by (rewrite Rmult_assoc, Huv; ring).
    rewrite HA. set (w := (1 - q) * b). apply Rmult_eq_reg_r with (u + v); [|lra].
    replace ((u * u * w + w) * ((u - v) / 2 / ((u + v) / 2)) * (u + v))
      with (u * u * u * w - u * u * v * w + u * w - v * w) by (field; lra).
    replace ((u * u * w - w) * (u + v)) with (u * u * u * w + u * u * v * w - u * w - v * w) by ring.
    rewrite Huuv. ring.
Qed.

(** ** Sums: a record adds [part x i] to the sum of [i], L at most together *)
Section Sums.
Context {X I : Type} (part : X -> I -> nat) (l : list I).
Definition sums (D : list X) : list Z := map (fun i => Z.of_nat (list_sum (map (fun x => part x i) D))) l.

Lemma sums_insert l1 x l2 : distance (sums (l1 ++ l2)) (sums (l1 ++ x :: l2)) = Z.of_nat (list_sum (map (part x) l)).
Proof.
  unfold sums. induction l as [|i m IH]; [reflexivity|]. cbn [map distance]. rewrite IH, !map_app, !list_sum_app.
  cbn [map]. change (list_sum (?u :: ?v)) with (u + list_sum v)%nat. lia.
Qed.
Lemma sums_distance L : (forall x, (list_sum (map (part x) l) <= L)%nat) -> forall D D',
  (add_remove D D' -> (distance (sums D) (sums D') <= Z.of_nat L)%Z) /\
  (replace_one D D' -> (distance (sums D) (sums D') <= 2 * Z.of_nat L)%Z).
Proof.
  intros H D D'. split.
  - intros [x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]]; [|rewrite distance_sym]; rewrite sums_insert;
      specialize (H x); lia.
  - intros (x & x' & l1 & l2 & -> & ->).
    assert (Hl : forall D D', length (sums D) = length (sums D')) by (intros; unfold sums; now rewrite !map_length).
    pose proof (distance_triangle (sums (l1 ++ x :: l2)) (sums (l1 ++ l2)) (sums (l1 ++ x' :: l2)) (Hl _ _) (Hl _ _))
      as HT.
    rewrite (distance_sym (sums (l1 ++ x :: l2)) (sums (l1 ++ l2))), !sums_insert in HT. pose proof (H x).
    pose proof (H x'). lia.
Qed.
Lemma sums_true L rate : (forall x, (list_sum (map (part x) l) <= L)%nat) -> true_constants (Count sums L rate).
Proof. intros H D D' HN. split; [unfold sums; now rewrite !map_length|now apply (sums_distance L H)]. Qed.
End Sums.

Lemma one_hot c l : NoDup l -> (list_sum (map (fun i => Nat.b2n (c =? i)) l) <= 1)%nat.
Proof.
  assert (H : forall l, ~ In c l -> list_sum (map (fun i => Nat.b2n (c =? i)) l) = 0%nat).
  { clear l. induction l as [|i l IH]; intros Hc; [reflexivity|]. cbn [map].
    change (list_sum (?u :: ?v)) with (u + list_sum v)%nat. rewrite IH by (intros Hi; apply Hc; now right).
    destruct (Nat.eqb_spec c i); [exfalso; apply Hc; now left|reflexivity]. }
  intros Hl. induction Hl as [|i l Hi Hl IH]; [simpl; lia|]. cbn [map].
  change (list_sum (?u :: ?v)) with (u + list_sum v)%nat.
  destruct (Nat.eqb_spec c i) as [->|N]; [rewrite H by assumption|]; simpl; lia.
Qed.

Lemma list_sum_pairs {A B} (f : A * B -> nat) (g : A -> list B) l :
  list_sum (map f (flat_map (fun i => map (pair i) (g i)) l))
  = list_sum (map (fun i => list_sum (map (fun j => f (i, j)) (g i))) l).
Proof.
  induction l as [|i l IH]; [reflexivity|]. cbn [flat_map map]. rewrite map_app, list_sum_app, IH, map_map. reflexivity.
Qed.
Lemma list_sum_at_most {A} (f : A -> nat) m l : (forall i, In i l -> (f i <= m)%nat) ->
  (list_sum (map f l) <= length l * m)%nat.
Proof.
  induction l as [|i l IH]; intros H; [simpl; lia|]. cbn [map length].
  change (list_sum (?u :: ?v)) with (u + list_sum v)%nat.
  pose proof (H i (or_introl eq_refl)). specialize (IH (fun j Hj => H j (or_intror Hj))). lia.
Qed.
Lemma INR_sum {A} (f : A -> nat) l : INR (list_sum (map f l)) = sum (fun i => INR (f i)) l.
Proof.
  induction l as [|i l IH]; [reflexivity|]. cbn [map sum fold_right].
  change (list_sum (?u :: ?v)) with (u + list_sum v)%nat.
  rewrite plus_INR, IH. reflexivity.
Qed.

(** All sums of a table: those of its cells. *)
Definition in_cells {X I} (t : table X) (part : X -> I -> nat) (x : X) (at_ : nat * I) : nat :=
  if cell_of t x =? fst at_ then part x (snd at_) else 0%nat.
Definition all_cells {X I} (t : table X) (l : list I) : list (nat * I) :=
  flat_map (fun c => map (pair c) l) (seq 0 (cells t)).
Lemma in_cells_small {X I} (t : table X) (part : X -> I -> nat) l L x : (list_sum (map (part x) l) <= L)%nat ->
  (list_sum (map (in_cells t part x) (all_cells t l)) <= L)%nat.
Proof.
  intros H. unfold all_cells. rewrite (list_sum_pairs (in_cells t part x) (fun _ => l)). unfold in_cells. cbn [fst snd].
  apply Nat.le_trans
    with (list_sum (map (fun c => Nat.b2n (cell_of t x =? c) * list_sum (map (part x) l))%nat (seq 0 (cells t)))).
  - induction (seq 0 (cells t)) as [|c m IH]; [simpl; lia|]. cbn [map].
    change (list_sum (?u :: ?v)) with (u + list_sum v)%nat. apply Nat.add_le_mono; [|exact IH].
    destruct (cell_of t x =? c); cbn [Nat.b2n]; [rewrite Nat.mul_1_l; apply Nat.le_refl|]. clear.
    induction l as [|i l IH]; [simpl; lia|exact IH].
  - pose proof (one_hot (cell_of t x) (seq 0 (cells t)) (seq_NoDup _ _)) as H1.
    set (v := list_sum (map (part x) l)) in *.
    enough (E : list_sum (map (fun c => Nat.b2n (cell_of t x =? c) * v)%nat (seq 0 (cells t)))
      = (list_sum (map (fun c => Nat.b2n (cell_of t x =? c)) (seq 0 (cells t))) * v)%nat) by nia.
    clear. induction (seq 0 (cells t)) as [|c m IH]; [reflexivity|]. cbn [map].
    change (list_sum (?u :: ?w)) with (u + list_sum w)%nat. rewrite IH. lia.
Qed.

(** * Weights in whole steps, [unit] of them for a record *)
Section Steps.
Context {X : Type} (unit : nat) (Hunit : (0 < unit)%nat).
Lemma unit_pos : 0 < INR unit.
Proof. now apply lt_0_INR. Qed.

Definition in_records (sides : X -> nat * nat) (x : X) : R * R :=
  (INR (fst (sides x)) / INR unit, INR (snd (sides x)) / INR unit).
Definition of_sides (sides : X -> nat * nat) (x : X) (second : bool) : nat :=
  if second then snd (sides x) else fst (sides x).
Definition at_most_one (sides : X -> nat * nat) : Prop := forall x, (fst (sides x) + snd (sides x) <= unit)%nat.
Definition two : list bool := [false; true].

Lemma of_sides_small sides x : at_most_one sides -> (list_sum (map (of_sides sides x) two) <= unit)%nat.
Proof. intros H. specialize (H x). simpl. lia. Qed.
Lemma in_records_weight sides : at_most_one sides -> within_weight 1 (in_records sides).
Proof.
  intros H x. specialize (H x). apply le_INR in H. rewrite plus_INR in H. pose proof unit_pos as Hu.
  unfold in_records. simpl.
  assert (Hi : 0 < / INR unit) by now apply Rinv_0_lt_compat. pose proof (pos_INR (fst (sides x))).
  pose proof (pos_INR (snd (sides x))).
  unfold Rdiv. repeat split; try nra. rewrite <- Rmult_plus_distr_r, <- (Rinv_r (INR unit)) by lra.
  apply Rmult_le_compat_r; lra.
Qed.

(** lem-twin-weights: [above] says how far the residual is above the lower end of its range. *)
Definition twin (above : X -> nat) (x : X) : nat * nat := (unit - above x, above x)%nat.
Theorem lem_twin_weights {K} theta (t : K -> table X) (above : K -> X -> nat) : (forall r x, (above r x <= unit)%nat) ->
  (forall r D c, list_sum (map (fun x => in_cells (t r) (of_sides (twin (above r))) x (c, false)
      + in_cells (t r) (of_sides (twin (above r))) x (c, true))%nat D)
    = (unit * length (filter (fun x => cell_of (t r) x =? c) D))%nat) /\
  (forall r D D', let f := sums (in_cells (t r) (of_sides (twin (above r)))) (all_cells (t r) two) in
    (add_remove D D' -> (distance (f D) (f D') <= Z.of_nat unit)%Z) /\
    (replace_one D D' -> (distance (f D) (f D') <= 2 * Z.of_nat unit)%Z)) /\
  let q := fun D r => soft_gaps theta 1 (t r) (one_gap (in_records (twin (above r)))) D in
  range add_remove q 2 /\ range replace_one q 4.
Proof.
  intros Ha.
  assert (H1 : forall r, at_most_one (twin (above r))) by (intros r x; specialize (Ha r x); simpl; lia).
  split; [|split].
  - intros r D c. induction D as [|x D IH]; [simpl; lia|]. cbn [map filter].
    change (list_sum (?u :: ?v)) with (u + list_sum v)%nat. rewrite IH. unfold in_cells. simpl fst. simpl snd.
    specialize (Ha r x). destruct (cell_of (t r) x =? c); simpl; lia.
  - intros r D D' f.
    assert (Hf : forall x,
      (list_sum (map (in_cells (t r) (of_sides (twin (above r))) x) (all_cells (t r) two)) <= unit)%nat)
      by (intros x; now apply in_cells_small, of_sides_small).
    pose proof (sums_distance _ _ unit Hf D D') as H. exact H.
  - destruct (lem_soft_gap theta t (fun r => in_records (twin (above r))) 1 (fun r => in_records_weight _ (H1 r)))
      as (_ & Hr & _ & Hr'). rewrite !Rmult_1_r in *. split; assumption.
Qed.

(** lem-all-classes: [p x k] steps against every class but the own one, and all of these for the own one. *)
Section AllClasses.
Context (classes : nat) (cls : X -> nat) (p : X -> nat -> nat).
Definition others (x : X) : nat := list_sum (map (fun k => if cls x =? k then 0 else p x k)%nat (seq 0 classes)).
Definition gradient (x : X) (side : nat * bool) : nat :=
  let '(k, second) := side in
  if second then (if cls x =? k then others x else 0)%nat else (if cls x =? k then 0 else p x k)%nat.
Definition both_sides : list (nat * bool) := flat_map (fun k => map (pair k) two) (seq 0 classes).
Definition class_gap (x : X) (k : nat) : R := (INR (gradient x (k, true)) - INR (gradient x (k, false))) / INR unit.
Definition shares : Prop := forall x, (others x <= unit)%nat.

Lemma gradient_total x : (list_sum (map (gradient x) both_sides)
  = list_sum (map (fun k => gradient x (k, false) + gradient x (k, true)) (seq 0 classes)))%nat.
Proof.
  unfold both_sides. rewrite (list_sum_pairs (gradient x) (fun _ => two)). f_equal. apply map_ext. intros k.
  unfold two, list_sum. cbn [map fold_right]. lia.
Qed.
Lemma gradient_small x : shares -> (list_sum (map (gradient x) both_sides) <= 2 * unit)%nat.
Proof.
  intros H. specialize (H x). rewrite gradient_total.
  pose proof (one_hot (cls x) (seq 0 classes) (seq_NoDup _ _)) as H1.
  assert (E : (list_sum (map (fun k => gradient x (k, false) + gradient x (k, true)) (seq 0 classes))
    = others x + list_sum (map (fun k => Nat.b2n (cls x =? k)) (seq 0 classes)) * others x)%nat).
  { clear H1. unfold others at 1, gradient. set (o := others x).
    induction (seq 0 classes) as [|k m IH]; [reflexivity|]. cbn [map].
    change (list_sum (?u :: ?v)) with (u + list_sum v)%nat. rewrite IH, Nat.mul_add_distr_r.
    destruct (cls x =? k); cbn [Nat.b2n]; lia. }
  rewrite E. nia.
Qed.
Lemma class_gap_small x : shares -> sum (fun k => Rabs (class_gap x k)) (seq 0 classes) <= 2.
Proof.
  intros H. pose proof (gradient_small x H) as Hs. rewrite gradient_total in Hs. apply le_INR in Hs.
  rewrite INR_sum, mult_INR in Hs. pose proof unit_pos as Hu.
  assert (Hi : 0 < / INR unit) by now apply Rinv_0_lt_compat.
  set (s := sum _ _) in Hs.
  apply Rle_trans with (/ INR unit * s).
  - unfold s. rewrite <- sum_scale. apply sum_mono. intros k _. rewrite plus_INR. unfold class_gap, Rdiv.
    rewrite Rmult_comm, Rabs_mult, (Rabs_right (/ INR unit)) by lra. apply Rmult_le_compat_l; [lra|].
    apply Rabs_le. pose proof (pos_INR (gradient x (k, false))). pose proof (pos_INR (gradient x (k, true))). lra.
  - replace 2 with (/ INR unit * (INR 2 * INR unit)) by (simpl; field; lra). apply Rmult_le_compat_l; lra.
Qed.
End AllClasses.

Theorem lem_all_classes {K} theta classes cls p (t : K -> table X) : shares classes cls p ->
  (forall r D D', let f := sums (in_cells (t r) (gradient classes cls p)) (all_cells (t r) (both_sides classes)) in
    (add_remove D D' -> (distance (f D) (f D') <= 2 * Z.of_nat unit)%Z) /\
    (replace_one D D' -> (distance (f D) (f D') <= 4 * Z.of_nat unit)%Z)) /\
  let q := fun D r => soft_gaps theta classes (t r) (class_gap classes cls p) D in
  sensitivity add_remove q 2 /\ range add_remove q 4 /\ sensitivity replace_one q 4 /\ range replace_one q 8.
Proof.
  intros Hp. split.
  - intros r D D' f.
    assert (Hf : forall x,
      (list_sum (map (in_cells (t r) (gradient classes cls p) x) (all_cells (t r) (both_sides classes)))
      <= 2 * unit)%nat) by (intros x; now apply in_cells_small, gradient_small).
    destruct (sums_distance _ _ _ Hf D D') as [H1 H2]. fold f in H1, H2.
    split; intros HN; [specialize (H1 HN)|specialize (H2 HN)]; lia.
  - replace 8 with (4 * 2) by ring. replace 4 with (2 * 2) at 1 2 by ring.
    apply (soft_gaps_range theta classes t (fun _ => class_gap classes cls p) 2).
    intros _ x. now apply class_gap_small.
Qed.
End Steps.

(** * Rounds: what is asked next, at what budget, and when to stop are functions of earlier answers *)
Definition times (rel : relation) : nat := match rel with AddRemove => 1 | ReplaceOne => 2 end.
Lemma times_pos rel n : (0 < n)%nat -> (0 < times rel * n)%nat.
Proof. destruct rel; simpl; lia. Qed.

Lemma in_sequence {X O Z Y} N a v (h : O -> Z -> Y) (P : list X -> dist O) (K : O -> list X -> dist Z) :
  0 <= a -> 0 <= v -> private N a P -> (forall o, private N v (K o)) ->
  private N (a + v) (fun D => both h (P D) (fun o => K o D)).
Proof.
  intros Ha Hv HP HK D D' HN. apply within_const.
  apply (within_both h a (fun _ _ => v) (fun _ => a + v)); auto.
  - apply within_const. exact (HP D D' HN).
  - intros o. apply within_const. exact (HK o D D' HN).
Qed.

Section Rounds.
Context {X W M : Type} (rel : relation).

(** Draw a coin that looks at nothing; ask all records, at budget [b];
    measure a table, each of its cells at budget [b]. *)
Inductive plan :=
| Publish
| Draw (coin : dist nat) (next : answer -> plan)
| Inquire (w : W) (b : posreal) (next : answer -> plan)
| Tabulate (t : table X) (m : M) (b : posreal) (next : list answer -> plan).

(** The laws of answers at a budget, and what they ask for. *)
Context (ask : W -> posreal -> list X -> dist answer) (measure : M -> posreal -> list X -> dist answer).
Context (proper : W -> Prop) (sound : M -> Prop).

Definition tabulate (t : table X) (m : M) (b : posreal) (D : list X) : dist (list answer) :=
  run (parts (cell_of t) (fun _ => measure m b) (fun _ => b / INR (times rel)) (fun _ => 2 * (b / INR (times rel)))
    (cells t)) D.

Fixpoint answers (p : plan) (D : list X) : dist (list answer) :=
  match p with
  | Publish => ret []
  | Draw coin next => both cons (bind coin (fun c => ret (Tossed c))) (fun o => answers (next o) D)
  | Inquire w b next => both cons (ask w b D) (fun o => answers (next o) D)
  | Tabulate t m b next => both (@app answer) (tabulate t m b D) (fun os => answers (next os) D)
  end.

(** On every run budgets add up to at most [left]. *)
Fixpoint spends (left : R) (p : plan) : Prop :=
  match p with
  | Publish => 0 <= left
  | Draw _ next => forall o, spends left (next o)
  | Inquire w b next => proper w /\ forall o, spends (left - b) (next o)
  | Tabulate _ m b next => sound m /\ forall os, spends (left - b) (next os)
  end.

Lemma spends_nonneg p : forall left, spends left p -> 0 <= left.
Proof.
  induction p as [|coin next IH|w b next IH|t m b next IH]; simpl; intros left H; [assumption| | |].
  - exact (IH (Tossed 0) left (H (Tossed 0))).
  - destruct H as [_ H]. pose proof (IH (Tossed 0) _ (H (Tossed 0))). pose proof (cond_pos b). lra.
  - destruct H as [_ H]. pose proof (IH [] _ (H [])). pose proof (cond_pos b). lra.
Qed.

Hypothesis ask_private : forall w (b : posreal), proper w -> private (neighbours rel) b (ask w b).
Hypothesis measure_private : forall m (b : posreal), sound m ->
  private add_remove (b / INR (times rel)) (measure m b) /\
  private replace_one (2 * (b / INR (times rel))) (measure m b).

Lemma tabulate_private t m (b : posreal) : sound m -> private (neighbours rel) b (tabulate t m b).
Proof.
  intros Hm. destruct (measure_private m b Hm) as [Ha Hr]. pose proof (cond_pos b) as Hb. unfold tabulate.
  destruct rel; simpl in *.
  - apply thm_parallel_add_remove; intros; try assumption; lra.
  - apply thm_parallel_replace_one; intros; try assumption; lra.
Qed.

Theorem rounds_private p : forall eps, spends eps p -> private (neighbours rel) eps (answers p).
Proof.
  induction p as [|coin next IH|w b next IH|t m b next IH]; simpl; intros eps H.
  - intros D D' _ B f Hf. simpl. pose proof (exp_ge_1 eps H). specialize (Hf []). nra.
  - replace eps with (0 + eps) by ring.
    apply (in_sequence _ 0 eps cons (fun _ => bind coin (fun c => ret (Tossed c))) (fun o => answers (next o)));
      [lra| | |].
    + exact (spends_nonneg _ _ (H (Tossed 0))).
    + intros D D' _. apply within_const, within_refl.
    + intros o. exact (IH o eps (H o)).
  - destruct H as [Hw H]. replace eps with (b + (eps - b)) by ring. pose proof (cond_pos b).
    apply (in_sequence _ b (eps - b) cons (ask w b) (fun o => answers (next o))); [lra| | |].
    + exact (spends_nonneg _ _ (H (Tossed 0))).
    + now apply ask_private.
    + intros o. exact (IH o _ (H o)).
  - destruct H as [Hm H]. replace eps with (b + (eps - b)) by ring. pose proof (cond_pos b).
    apply (in_sequence _ b (eps - b) (@app answer) (tabulate t m b) (fun os => answers (next os))); [lra| | |].
    + exact (spends_nonneg _ _ (H [])).
    + now apply tabulate_private.
    + intros os. exact (IH os _ (H os)).
Qed.

(** Under replace-one the number of records is public: the plan may depend on it. *)
Definition public_size (D : list X) : nat := match rel with AddRemove => 0 | ReplaceOne => length D end.
Definition boost (p : nat -> plan) (D : list X) : dist (list answer) := answers (p (public_size D)) D.

Lemma boost_private p eps : (forall n, spends eps (p n)) -> private (neighbours rel) eps (boost p).
Proof.
  intros H D D' HN. unfold boost. replace (public_size D') with (public_size D).
  - now apply rounds_private.
  - unfold public_size. destruct rel; [reflexivity|]. destruct HN as (x & x' & l1 & l2 & -> & ->).
    rewrite !app_length. reflexivity.
Qed.
End Rounds.
Arguments plan : clear implicits.

(** * What may be asked *)
Definition per (b : posreal) (n : nat) (Hn : (0 < n)%nat) : posreal :=
  mkposreal (b / INR n) (Rdiv_lt_0_compat _ _ (cond_pos b) (lt_0_INR n Hn)).

(** A question whose noise or rate is that of its budget. *)
Lemma at_budget {X} rel (b : posreal) (k : question (Y := X)) : true_constants k ->
  coming k = b / INR (times rel) -> replaced k = 2 * (b / INR (times rel)) ->
  private add_remove (b / INR (times rel)) (law k) /\ private replace_one (2 * (b / INR (times rel))) (law k) /\
  private (neighbours rel) b (law k).
Proof.
  intros Hk Hc Hr. destruct (question_sound k Hk) as (_ & _ & H1 & H2). rewrite Hc in H1. rewrite Hr in H2.
  split; [assumption|]. split; [assumption|]. destruct rel; simpl in *.
  - now replace (pos b) with (b / 1) by field.
  - now replace (pos b) with (2 * (b / (1 + 1))) by field.
Qed.

Section Questions.
Context {X : Type} (rel : relation).
Let L := INR (times rel).

(** Numbers of records by a part that depends on each alone. *)
Definition numbers (parts : nat) (part : X -> nat) : list X -> list Z :=
  sums (fun x c => Nat.b2n (part x =? c)) (seq 0 parts).
(** Numbers of records by each of several codes, [bins j] of them. *)
Definition histograms (features : nat) (bins : nat -> nat) (code : nat -> X -> nat) : list X -> list Z :=
  sums (fun x (at_ : nat * nat) => Nat.b2n (code (fst at_) x =? snd at_))
    (flat_map (fun j => map (pair j) (seq 0 (bins j))) (seq 0 features)).

(** A histogram has rate b / L; [k] of them together b / (k L). *)
Definition ask_numbers parts part (b : posreal) : question :=
  Count (numbers parts part) 1 (per b (times rel * 1) (times_pos rel 1 Nat.lt_0_1)).
Definition ask_histograms k bins code (b : posreal) : question :=
  Count (histograms (S k) bins code) (S k) (per b (times rel * S k) (times_pos rel (S k) (Nat.lt_0_succ k))).
(** Of sums to which a record adds [amount] steps at most. *)
Definition ask_sums {I} (part : X -> I -> nat) (l : list I) amount (H : (0 < amount)%nat) (b : posreal) : question :=
  Count (sums part l) amount (per b (times rel * amount) (times_pos rel amount H)).
(** Candidates 0 .. n, by the soft gaps of their tables, at rate b / R, or b / R' under replace-one. *)
Definition ask_table m n unit (t : nat -> table X) (sides : nat -> X -> nat * nat) theta (b : posreal) : question :=
  Choose m n (fun D r => soft_gaps theta 1 (t r) (one_gap (in_records unit (sides r))) D) 2 4 (b / (2 * L)).
Definition ask_table_of_all m n unit (t : nat -> table X) classes cls p theta (b : posreal) : question :=
  Choose m n (fun D r => soft_gaps theta classes (t r) (class_gap unit classes cls p) D) 4 8 (b / (4 * L)).

Lemma L_pos : 0 < L.
Proof. unfold L. destruct rel; simpl; lra. Qed.

Lemma per_share (b : posreal) n (Hn : (0 < n)%nat) :
  INR n * per b (times rel * n) (times_pos rel n Hn) = b / L /\
  2 * INR n * per b (times rel * n) (times_pos rel n Hn) = 2 * (b / L).
Proof.
  pose proof (lt_0_INR n Hn). pose proof L_pos as HL. unfold per, L in *. simpl pos. rewrite mult_INR.
  split; field; lra.
Qed.

Lemma numbers_private parts part (b : posreal) : let k := ask_numbers parts part b in
  private add_remove (b / L) (law k) /\ private replace_one (2 * (b / L)) (law k) /\ private (neighbours rel) b (law k).
Proof.
  apply at_budget.
  - apply sums_true. intros x. apply (one_hot (part x) (seq 0 parts)), seq_NoDup.
  - apply per_share.
  - apply per_share.
Qed.
(** lem-children, for geometric noise.  A code may be a feature's alone, or a feature's with the class. *)
Theorem lem_children k bins code (b : posreal) : private (neighbours rel) b (law (ask_histograms k bins code b)).
Proof.
  apply at_budget.
  - apply sums_true. intros x. rewrite (list_sum_pairs _ (fun j => seq 0 (bins j))). cbn [fst snd].
    rewrite <- (Nat.mul_1_r (S k)), <- (seq_length (S k) 0) at 2. apply list_sum_at_most. intros j _.
    apply (one_hot (code j x)), seq_NoDup.
  - apply per_share.
  - apply per_share.
Qed.
Lemma sums_private {I} part (l : list I) amount H (b : posreal) :
  (forall x, (list_sum (map (part x) l) <= amount)%nat) ->
  let k := ask_sums part l amount H b in
  private add_remove (b / L) (law k) /\ private replace_one (2 * (b / L)) (law k) /\ private (neighbours rel) b (law k).
Proof.
  intros Hp. apply at_budget; [now apply sums_true| |].
  - apply per_share.
  - apply per_share.
Qed.
Lemma table_private m n unit (Hu : (0 < unit)%nat) t sides theta (b : posreal) :
  (forall r, at_most_one unit (sides r)) ->
  private (neighbours rel) b (law (ask_table m n unit t sides theta b)).
Proof.
  intros Hs. pose proof L_pos as HL. pose proof (cond_pos b) as Hb.
  destruct (lem_soft_gap theta t (fun r => in_records unit (sides r)) 1 (fun r => in_records_weight unit Hu _ (Hs r)))
    as (_ & Hr & _ & Hr'). rewrite Rmult_1_r in Hr. rewrite Rmult_1_r in Hr'.
  apply at_budget.
  - repeat split; try lra; try assumption. left. apply Rdiv_lt_0_compat; lra.
  - cbn [coming ask_table]. fold L. field. lra.
  - cbn [replaced ask_table]. fold L. field. lra.
Qed.
Lemma table_of_all_private m n unit (Hu : (0 < unit)%nat) t classes cls p theta (b : posreal) :
  shares unit classes cls p ->
  private (neighbours rel) b (law (ask_table_of_all m n unit t classes cls p theta b)).
Proof.
  intros Hs. pose proof L_pos as HL. pose proof (cond_pos b) as Hb.
  destruct (lem_all_classes unit Hu theta classes cls p t Hs) as (_ & _ & Hr & _ & Hr').
  apply at_budget.
  - repeat split; try lra; try assumption. left. apply Rdiv_lt_0_compat; lra.
  - cbn [coming ask_table_of_all]. fold L. field. lra.
  - cbn [replaced ask_table_of_all]. fold L. field. lra.
Qed.
End Questions.

(** * Classes: thm-private-boosting *)
Section Classes.
Context {X : Type} (rel : relation) (fine finest : nat) (Hfine : (0 < fine)%nat) (Hfinest : (0 < finest)%nat).

(** Of all records.  [SelectTable]: candidate r is a table and a target, beside which a record has weights on two
    sides. *)
Inductive class_question :=
| Totals (classes : nat) (cls : X -> nat)
| Histograms (k : nat) (bins : nat -> nat) (code : nat -> X -> nat)
| SelectTable (m : mechanism) (n : nat) (t : nat -> table X) (sides : nat -> X -> nat * nat) (theta : R)
| SelectForAll (m : mechanism) (n : nat) (t : nat -> table X) (classes : nat) (cls : X -> nat)
    (p : X -> nat -> nat) (theta : R).
(** Of the records of a cell. *)
Inductive class_measure :=
| Weights (sides : X -> nat * nat)
| Gradients (classes : nat) (cls : X -> nat) (p : X -> nat -> nat)
| ClassCounts (classes : nat) (cls : X -> nat).

Definition ask_class (w : class_question) (b : posreal) : list X -> dist answer :=
  law (match w with
  | Totals classes cls => ask_numbers rel classes cls b
  | Histograms k bins code => ask_histograms rel k bins code b
  | SelectTable m n t sides theta => ask_table rel m n fine t sides theta b
  | SelectForAll m n t classes cls p theta => ask_table_of_all rel m n finest t classes cls p theta b
  end).
Lemma twice_pos : (0 < 2 * finest)%nat.
Proof. lia. Qed.
Definition measure_class (m : class_measure) (b : posreal) : list X -> dist answer :=
  law (match m with
  | Weights sides => ask_sums rel (of_sides sides) two fine Hfine b
  | Gradients classes cls p => ask_sums rel (gradient classes cls p) (both_sides classes) (2 * finest) twice_pos b
  | ClassCounts classes cls => ask_numbers rel classes cls b
  end).

(** A record weighs 1 at most, and has gradients of 1 at most against all other classes. *)
Definition class_question_proper (w : class_question) : Prop :=
  match w with
  | SelectTable _ _ _ sides _ => forall r, at_most_one fine (sides r)
  | SelectForAll _ _ _ classes cls p _ => shares finest classes cls p
  | _ => True
  end.
Definition class_measure_proper (m : class_measure) : Prop :=
  match m with
  | Weights sides => at_most_one fine sides
  | Gradients classes cls p => shares finest classes cls p
  | ClassCounts _ _ => True
  end.

Definition class_plan := plan X class_question class_measure.
Definition boost_classes : (nat -> class_plan) -> list X -> dist (list answer) := boost rel ask_class measure_class.
Definition class_budget : R -> class_plan -> Prop := spends class_question_proper class_measure_proper.

Lemma class_question_private w (b : posreal) : class_question_proper w -> private (neighbours rel) b (ask_class w b).
Proof.
  destruct w as [classes cls|k bins code|m n t sides theta|m n t classes cls sh theta]; simpl; intros Hw.
  - apply numbers_private.
  - apply lem_children.
  - now apply table_private.
  - now apply table_of_all_private.
Qed.
Lemma class_measure_private m (b : posreal) : class_measure_proper m ->
  private add_remove (b / INR (times rel)) (measure_class m b) /\
  private replace_one (2 * (b / INR (times rel))) (measure_class m b).
Proof.
  destruct m as [sides|classes cls sh|classes cls]; simpl; intros Hm.
  - destruct (sums_private rel (of_sides sides) two fine Hfine b (fun x => of_sides_small fine Hfine sides x Hm))
      as (H1 & H2 & _).
    now split.
  - destruct (sums_private rel (gradient classes cls sh) (both_sides classes) (2 * finest) twice_pos b
      (fun x => gradient_small finest Hfinest classes cls sh x Hm)) as (H1 & H2 & _). now split.
  - destruct (numbers_private rel classes cls b) as (H1 & H2 & _). now split.
Qed.

Theorem thm_private_boosting (p : nat -> class_plan) eps : (forall n, class_budget eps (p n)) ->
  private (neighbours rel) eps (boost_classes p).
Proof. apply boost_private; [exact class_question_private|exact class_measure_private]. Qed.
End Classes.

(** ** Of so many rounds, each with a selection and a table *)
Section SoManyRounds.
Context {X W M : Type} (proper : W -> Prop) (sound : M -> Prop) (b1 b2 : posreal).
(** What is selected by, and what is measured, from all answers so far. *)
Context (select : list answer -> W) (table_of : list answer -> table X) (measure_of : list answer -> M).
Fixpoint rounds (T : nat) (said : list answer) : plan X W M :=
  match T with
  | O => Publish
  | S T => Inquire (select said) b1 (fun o => Tabulate (table_of (said ++ [o])) (measure_of (said ++ [o])) b2
      (fun os => rounds T (said ++ o :: os)))
  end.
Lemma rounds_spend T : (forall said, proper (select said)) -> (forall said, sound (measure_of said)) ->
  forall said left, INR T * (b1 + b2) <= left -> spends proper sound left (rounds T said).
Proof.
  intros Hs Hm. induction T as [|T IH]; intros said left Hl; [simpl in *; lra|]. rewrite S_INR in Hl. simpl.
  split; [apply Hs|]. intros o. split; [apply Hm|]. intros os. apply IH. lra.
Qed.
End SoManyRounds.

(** Class totals, histograms, and then T rounds. *)
Definition classifier {X} classes (cls : X -> nat) k bins code (e1 e2 b1 b2 : posreal)
    (select : list answer -> class_question (X := X)) table_of (measure_of : list answer -> class_measure (X := X)) T
    : class_plan :=
  Inquire (Totals classes cls) e1 (fun o => Inquire (Histograms k bins code) e2 (fun o' =>
    rounds b1 b2 select table_of measure_of T [o; o'])).
Theorem thm_private_boosting_rounds {X} rel fine finest Hfine Hfinest classes (cls : X -> nat) k bins code
    (e1 e2 b1 b2 : posreal) select table_of measure_of T eps :
  (forall said, class_question_proper fine finest (select said)) ->
  (forall said, class_measure_proper fine finest (measure_of said)) ->
  e1 + e2 + INR T * (b1 + b2) <= eps ->
  private (neighbours rel) eps (boost_classes rel fine finest Hfine Hfinest
    (fun _ => classifier classes cls k bins code e1 e2 b1 b2 select table_of measure_of T)).
Proof.
  intros Hs Hm He. apply thm_private_boosting. intros _. split; [exact I|]. intros o. split; [exact I|].
  intros o'. apply rounds_spend; try assumption. lra.
Qed.

(** * Numbers: thm-private-boosting-numbers *)
Section Numbers.
Context {X : Type} (rel : relation) (fine levels : nat) (Hfine : (0 < fine)%nat) (Hlevels : (0 < levels)%nat).

(** [y]: the target, on a grid of [levels] steps.  [above]: the clipped residual, in steps from the lower end. *)
Inductive number_question :=
| Masses (y : X -> nat)
| TargetSum (y : X -> nat)
| Sizes (parts : nat) (part : X -> nat)
| CodeHistograms (k : nat) (bins : nat -> nat) (code : nat -> X -> nat)
| SelectByResiduals (m : mechanism) (n : nat) (t : nat -> table X) (above : nat -> X -> nat) (theta : R).
(** Of the records of a cell: both sides of their residuals. *)
Inductive number_measure := Residuals (above : X -> nat).

Definition target_sum (y : X -> nat) : list X -> list Z := sums (fun x (_ : unit) => y x) [tt].
Definition ask_number (w : number_question) (b : posreal) : list X -> dist answer :=
  match w with
  | Masses y => law (ask_sums rel (of_sides (twin levels y)) two levels Hlevels b)
  (* one sum has rate b / levels, under both relations *)
  | TargetSum y => law (Count (target_sum y) levels (per b levels Hlevels))
  | Sizes parts part => law (ask_numbers rel parts part b)
  | CodeHistograms k bins code => law (ask_histograms rel k bins code b)
  | SelectByResiduals m n t above theta => law (ask_table rel m n fine t (fun r => twin fine (above r)) theta b)
  end.
Definition measure_number (m : number_measure) (b : posreal) : list X -> dist answer :=
  match m with Residuals above => law (ask_sums rel (of_sides (twin fine above)) two fine Hfine b) end.

Definition number_question_proper (w : number_question) : Prop :=
  match w with
  | Masses y | TargetSum y => forall x, (y x <= levels)%nat
  | SelectByResiduals _ _ _ above _ => forall r x, (above r x <= fine)%nat
  | _ => True
  end.
Definition number_measure_proper (m : number_measure) : Prop :=
  match m with Residuals above => forall x, (above x <= fine)%nat end.

Lemma twin_at_most_one unit (above : X -> nat) : (forall x, (above x <= unit)%nat) ->
  at_most_one unit (twin unit above).
Proof. intros H x. specialize (H x). simpl. lia. Qed.

(** The sum of the targets alone: a record that joins and one that is replaced move it by one range at most. *)
Lemma target_sum_private y (b : posreal) : (forall x, (y x <= levels)%nat) ->
  private (neighbours rel) b (law (Count (target_sum y) levels (per b levels Hlevels))).
Proof.
  intros Hy. apply (thm_post_processing _ _ _ (fun cs => ret (Counted cs))).
  assert (Hb : pos b = IZR (Z.of_nat levels) * per b levels Hlevels).
  { rewrite <- INR_IZR_INZ. pose proof (lt_0_INR levels Hlevels). simpl. field. lra. }
  rewrite Hb. apply thm_geometric. intros D D' HN. split; [reflexivity|]. unfold target_sum, sums. cbn [map distance].
  destruct rel; cbn [neighbours] in HN.
  - destruct HN as [x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]]; rewrite !map_app, !list_sum_app; cbn [map];
      change (list_sum (?u :: ?v)) with (u + list_sum v)%nat; specialize (Hy x); lia.
  - destruct HN as (x & x' & l1 & l2 & -> & ->). rewrite !map_app, !list_sum_app. cbn [map].
    change (list_sum (?u :: ?v)) with (u + list_sum v)%nat. pose proof (Hy x). pose proof (Hy x'). lia.
Qed.

Definition number_plan := plan X number_question number_measure.
Definition boost_numbers : (nat -> number_plan) -> list X -> dist (list answer) := boost rel ask_number measure_number.
Definition number_budget : R -> number_plan -> Prop := spends number_question_proper number_measure_proper.

Lemma number_question_private w (b : posreal) : number_question_proper w -> private (neighbours rel) b (ask_number w b).
Proof.
  destruct w as [y|y|parts part|k bins code|m n t above theta]; simpl; intros Hw.
  - apply sums_private. intros x. now apply of_sides_small, twin_at_most_one.
  - now apply target_sum_private.
  - apply numbers_private.
  - apply lem_children.
  - apply table_private; [assumption|]. intros r. now apply twin_at_most_one.
Qed.
Lemma number_measure_private m (b : posreal) : number_measure_proper m ->
  private add_remove (b / INR (times rel)) (measure_number m b) /\
  private replace_one (2 * (b / INR (times rel))) (measure_number m b).
Proof.
  destruct m as [above]; simpl; intros Hm.
  destruct (sums_private rel (of_sides (twin fine above)) two fine Hfine b
    (fun x => of_sides_small fine Hfine _ x (twin_at_most_one fine above Hm))) as (H1 & H2 & _). now split.
Qed.

Theorem thm_private_boosting_numbers (p : nat -> number_plan) eps : (forall n, number_budget eps (p n)) ->
  private (neighbours rel) eps (boost_numbers p).
Proof. apply boost_private; [exact number_question_private|exact number_measure_private]. Qed.
End Numbers.

(** ** Of so many rounds *)
Section NumberRounds.
Context {X : Type} (e3 b1 b2 : posreal) (parts : nat) (part : list answer -> X -> nat).
Context (select : list answer -> number_question (X := X)) (table_of : list answer -> table X)
  (measure_of : list answer -> number_measure (X := X)).
(** [looks]: for each round, whether it first looks at the sizes of the residuals. *)
Fixpoint number_rounds (looks : list bool) (said : list answer) : number_plan :=
  match looks with
  | [] => Publish
  | look :: looks =>
      let go said := Inquire (select said) b1 (fun o => Tabulate (table_of (said ++ [o])) (measure_of (said ++ [o])) b2
        (fun os => number_rounds looks (said ++ o :: os))) in
      if look then Inquire (Sizes parts (part said)) e3 (fun o => go (said ++ [o])) else go said
  end.
Definition how_many (looks : list bool) : R := INR (length (filter (fun look => look) looks)).
Lemma number_rounds_spend fine levels looks : (forall said, number_question_proper fine levels (select said)) ->
  (forall said, number_measure_proper fine (measure_of said)) -> forall said left,
  how_many looks * e3 + INR (length looks) * (b1 + b2) <= left ->
  spends (number_question_proper fine levels) (number_measure_proper fine) left (number_rounds looks said).
Proof.
  intros Hs Hm. unfold how_many. induction looks as [|look looks IH]; intros said left Hl; [simpl in *; lra|].
  cbn [length] in Hl. rewrite S_INR in Hl. destruct look; cbn [filter length] in Hl; [rewrite S_INR in Hl|];
    cbn [number_rounds spends]; repeat (split; [(exact I || apply Hs || apply Hm)|intros ?]); apply IH; lra.
Qed.
End NumberRounds.

(** Twice the masses; a third time, or the sum of the targets; histograms; the table of a single cell; T rounds. *)
Definition regressor {X} (y : X -> nat) last k bins code parts part above (e1 e2 e3 e4 e5 b0 b1 b2 : posreal)
    select table_of measure_of (look : bool) looks : number_plan :=
  Inquire (Masses y) e1 (fun o1 => Inquire (Masses y) e2 (fun o2 => Inquire (last [o1; o2]) e4 (fun o4 =>
  Inquire (CodeHistograms k bins code) e5 (fun o5 =>
    let said := [o1; o2; o4; o5] in
    let go said := Tabulate (Table 1 (fun _ => 0%nat)) (Residuals (above said)) b0 (fun os =>
      number_rounds e3 b1 b2 parts part select table_of measure_of looks (said ++ os)) in
    if look then Inquire (Sizes parts (part said)) e3 (fun o => go (said ++ [o])) else go said)))).
Theorem thm_private_boosting_numbers_rounds {X} rel fine levels Hfine Hlevels (y : X -> nat) last k bins code parts part
    above (e1 e2 e3 e4 e5 b0 b1 b2 : posreal) select table_of measure_of look looks eps :
  (forall x, (y x <= levels)%nat) -> (forall said, last said = Masses y \/ last said = TargetSum y) ->
  (forall said x, (above said x <= fine)%nat) ->
  (forall said, number_question_proper fine levels (select said)) ->
  (forall said, number_measure_proper fine (measure_of said)) ->
  e1 + e2 + e4 + e5 + how_many (look :: looks) * e3 + b0 + INR (length looks) * (b1 + b2) <= eps ->
  private (neighbours rel) eps (boost_numbers rel fine levels Hfine Hlevels
    (fun _ => regressor y last k bins code parts part above e1 e2 e3 e4 e5 b0 b1 b2 select table_of measure_of
      look looks)).
Proof.
  intros Hy Hlast Ha Hs Hm He. apply thm_private_boosting_numbers. intros _.
  split; [exact Hy|]. intros o1. split; [exact Hy|]. intros o2.
  split; [destruct (Hlast [o1; o2]) as [E|E]; rewrite E; exact Hy|].
  intros o4. split; [exact I|]. intros o5. unfold how_many in He.
  destruct look; cbn [filter length] in He; [rewrite S_INR in He|];
    cbn [spends]; repeat (split; [(exact I || exact (Ha _))|intros ?]);
    (apply number_rounds_spend; [assumption|assumption|unfold how_many; lra]).
Qed.

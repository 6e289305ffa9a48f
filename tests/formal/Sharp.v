(* Sharpness, where a bound is attained on a few records: no smaller number would do.  book/scores.md has the examples. *)
From Coq Require Import Reals Lra List ZArith Arith Bool Lia.
From DPForest Require Import Law Privacy Selection Scores Impurities Boosting.
Import ListNotations.
Open Scope R_scope.

Lemma arrives {X} (x : X) D : add_remove D (x :: D).
Proof. exists x. left. exists [], D. now split. Qed.
Lemma turns {X} (x x' : X) D : replace_one (x :: D) (x' :: D).
Proof. exists x, x', [], D. now split. Qed.

(** Class counts: a record is its class. *)
Theorem thm_majority_sharp b :
  (range add_remove (fun D c => count (fun x : nat => x) c D) b -> 1 <= b) /\
  (range replace_one (fun D c => count (fun x : nat => x) c D) b -> 2 <= b).
Proof.
  split; intros H.
  - specialize (H _ _ (arrives 0%nat []) 1%nat 0%nat). unfold count in H. simpl in H. lra.
  - specialize (H _ _ (turns 0%nat 1%nat []) 0%nat 1%nat). unfold count in H. simpl in H. lra.
Qed.

(** Three records alike (0), and one of another class: 1 stands with them under the first candidate and alone under the
    second, 2 the other way round. *)
Definition class (x : nat) : nat := match x with 0 => 0 | _ => 1 end.
Definition side (r x : nat) : nat := match x with 0 => 0 | 1 => r | _ => 1 - r end.

(** With n = 4 records 2 (n - 1) / n is 3 / 2. *)
Theorem thm_gini_sharp b :
  (sensitivity (capped 4 add_remove) (score 2 class 2 side) b -> 3 / 2 <= b) /\
  (range (capped 4 add_remove) (score 2 class 2 side) b -> 3 / 2 <= b) /\
  (range (capped 4 replace_one) (score 2 class 2 side) b -> 2 * (3 / 2) <= b).
Proof.
  assert (A : capped 4 add_remove [0; 0; 0]%nat [1; 0; 0; 0]%nat).
  { split; [apply arrives|simpl; lia]. }
  assert (T : capped 4 replace_one [1; 0; 0; 0]%nat [2; 0; 0; 0]%nat).
  { split; [apply turns|simpl; lia]. }
  repeat split; intros H.
  - specialize (H _ _ A 0%nat). unfold score, divided, gini, count, size, sumf in H. simpl in H. lra.
  - specialize (H _ _ A 0%nat 1%nat). unfold score, divided, gini, count, size, sumf in H. simpl in H. lra.
  - specialize (H _ _ T 1%nat 0%nat). unfold score, divided, gini, count, size, sumf in H. simpl in H. lra.
Qed.

(** A target of 1 (record 0), and one of 0 that joins it or stands alone. *)
Definition target (x : nat) : R := match x with 0 => 1 | _ => 0 end.
Theorem thm_two_masses_sharp b :
  range add_remove (divided 2 side (fun D => / 2 * Rabs (mass target D - rest target D))) b -> 1 <= b.
Proof.
  intros H. specialize (H _ _ (arrives 1%nat [0]%nat) 0%nat 1%nat).
  unfold divided, mass, rest, sum, target in H. simpl in H.
  repeat match type of H with context [Rabs ?a] => first
    [ replace a with 0 in H by lra; rewrite Rabs_R0 in H
    | replace a with 1 in H by lra; rewrite Rabs_R1 in H
    | replace a with (-1) in H by lra; rewrite (Rabs_left (-1)) in H by lra ] end.
  lra.
Qed.

(** Soft gaps, for every theta: many records of the target (0) share a cell of the first table, as many others (1) share
    its other cell, and in the second table they have changed places.  A record of the target (2) or another one (3)
    joins the former there and the latter here. *)
Definition place (r x : nat) : nat := match x with 0 => r | 1 => 1 - r | _ => 0 end.
Definition beside (x : nat) : R * R := match x with 0 | 2 => (0, 1) | _ => (1, 0) end.
Lemma sum_repeat {A} (f : A -> R) x n : sum f (repeat x n) = INR n * f x.
Proof.
  induction n as [|n IH]; [simpl; ring|]. cbn [repeat sum fold_right]. unfold sum in IH. rewrite IH, S_INR. ring.
Qed.

Theorem lem_soft_gap_sharp theta b : 0 <= theta ->
  let q := fun D r => soft_gaps theta 1 (Table 2 (place r)) (one_gap beside) D in
  within_weight 1 beside /\ (sensitivity add_remove q b -> 1 <= b) /\ (range add_remove q b -> 2 <= b) /\
  (sensitivity replace_one q b -> 2 <= b) /\ (range replace_one q b -> 4 <= b).
Proof.
  intros Ht q. set (n := S (S (Z.to_nat (up theta)))).
  assert (Hn : theta + 2 <= INR n).
  { unfold n. rewrite !S_INR. destruct (archimed theta) as [H _]. rewrite INR_IZR_INZ, Z2Nat.id; [lra|].
    apply le_IZR. lra. }
  clearbody n. set (D := repeat 0%nat n ++ repeat 1%nat n).
  assert (V : forall l r, let g := gap_in (Table 2 (place r)) (one_gap beside) l in
    q l r = soft theta (g 0 0)%nat + soft theta (g 1 0)%nat).
  { intros l r g. unfold q, soft_gaps. cbn [cells seq sum fold_right]. fold g. ring. }
  assert (G : forall r c k, gap_in (Table 2 (place r)) (one_gap beside) D c k =
    INR n * (if r =? c then 1 else 0) - INR n * (if 1 - r =? c then 1 else 0)).
  { intros r c k. unfold gap_in, D. rewrite sum_app, !sum_repeat. unfold one_gap. cbn [cell_of place beside fst snd].
    destruct (r =? c), (1 - r =? c); ring. }
  assert (G' : forall x r c k, gap_in (Table 2 (place r)) (one_gap beside) (x :: D) c k =
    (if place r x =? c then one_gap beside x k else 0) + gap_in (Table 2 (place r)) (one_gap beside) D c k)
    by reflexivity.
  assert (S : forall x y, x = y \/ x = - y -> theta <= y -> soft theta x = y - theta).
  { intros x y Hx Hy. unfold soft. replace (Rabs x) with y; [unfold Rmax; destruct (Rle_dec _ _); lra|].
    destruct Hx as [E|E]; rewrite E; [|rewrite Rabs_Ropp]; rewrite Rabs_right; lra. }
  assert (Q : q D 0%nat = 2 * (INR n - theta) /\ q D 1%nat = 2 * (INR n - theta) /\
    q (2 :: D)%nat 0%nat = 2 * (INR n - theta) + 1 /\ q (2 :: D)%nat 1%nat = 2 * (INR n - theta) - 1 /\
    q (3 :: D)%nat 0%nat = 2 * (INR n - theta) - 1 /\ q (3 :: D)%nat 1%nat = 2 * (INR n - theta) + 1).
  { rewrite !V, !G', !G. unfold one_gap. cbn [place beside fst snd Nat.eqb Nat.sub].
    split; [rewrite (S _ (INR n)), (S _ (INR n)) by lra; ring|].
    split; [rewrite (S _ (INR n)), (S _ (INR n)) by lra; ring|].
    split; [rewrite (S _ (INR n + 1)), (S _ (INR n)) by lra; ring|].
    split; [rewrite (S _ (INR n - 1)), (S _ (INR n)) by lra; ring|].
    split; [rewrite (S _ (INR n - 1)), (S _ (INR n)) by lra; ring|].
    rewrite (S _ (INR n + 1)), (S _ (INR n)) by lra; ring. }
  destruct Q as (Q1 & Q2 & Q3 & Q4 & Q5 & Q6).
  split; [intros x; destruct x as [|[|[|x]]]; simpl; lra|].
  repeat split; intros H.
  - specialize (H _ _ (arrives 2%nat D) 0%nat). lra.
  - specialize (H _ _ (arrives 2%nat D) 1%nat 0%nat). lra.
  - specialize (H _ _ (turns 3%nat 2%nat D) 0%nat). lra.
  - specialize (H _ _ (turns 3%nat 2%nat D) 1%nat 0%nat). lra.
Qed.

From DPForest Require Import Program Noise Learners.

(** Private boosting wastes no budget on counts: one question that has all of it attains it, under either relation. *)
Section Counts.
Variable rate : R.
Hypothesis Hrate : 0 < rate.
Definition at_both (v w : Z) (cs : list Z) : R :=
  match cs with [x; y] => ind Z.eq_dec v x * ind Z.eq_dec w y | _ => 0 end.
Lemma at_both_test v w : test 1 (at_both v w).
Proof.
  intros [|x [|y [|z cs]]]; simpl; try lra. pose proof (test_ind Z.eq_dec v x). pose proof (test_ind Z.eq_dec w y).
  simpl in *. nra.
Qed.
Lemma two_counts c d v w : E (noisy_counts rate Hrate [c; d]) (at_both v w)
  = Pr Z.eq_dec (noisy rate Hrate c) v * Pr Z.eq_dec (noisy rate Hrate d) w.
Proof.
  change (E (noisy rate Hrate c) (fun x => E (noisy rate Hrate d) (fun y => ind Z.eq_dec v x * ind Z.eq_dec w y))
    = Pr Z.eq_dec (noisy rate Hrate c) v * Pr Z.eq_dec (noisy rate Hrate d) w).
  transitivity (E (noisy rate Hrate c) (fun x => Pr Z.eq_dec (noisy rate Hrate d) w * ind Z.eq_dec v x)).
  - apply E_ext. intros x. rewrite (E_scale _ 1) by (try apply test_ind; apply (test_ind Z.eq_dec v x)).
    unfold Pr. ring.
  - rewrite (E_scale _ 1); [unfold Pr; ring|apply test_ind|]. apply (E_range _ 1), test_ind.
Qed.
Lemma Pr_noisy_pos c o : 0 < Pr Z.eq_dec (noisy rate Hrate c) o.
Proof.
  pose proof (def_laplace rate Hrate c (o - c)) as P. replace (c + (o - c))%Z with o in P by lia. rewrite P.
  pose proof (a_range rate Hrate). apply Rmult_lt_0_compat; [apply (kappa_pos rate Hrate)|]. apply pow_lt. lra.
Qed.
End Counts.

Theorem thm_private_boosting_sharp rel (b : posreal) eps :
  (forall p : class_plan (X := bool), class_budget 1 1 b p ->
    private (neighbours rel) eps (boost_classes rel 1 1 Nat.lt_0_1 Nat.lt_0_1 (fun _ => p))) -> b <= eps.
Proof.
  intros H. apply Rnot_lt_le. intros Hlt. apply exp_increasing in Hlt.
  specialize (H (Inquire (Totals 2 (fun x : bool => if x then 1 else 0)%nat) b (fun _ => Publish))).
  assert (Hb : class_budget 1 1 b (Inquire (Totals 2 (fun x : bool => if x then 1 else 0)%nat) b (fun _ => Publish)))
    by (split; [exact I|]; intros o; simpl; lra).
  specialize (H Hb). clear Hb.
  set (said := fun v w (t : list answer) => match t with [Counted cs] => at_both v w cs | _ => 0 end).
  assert (Ht : forall v w, test 1 (said v w)).
  { intros v w [|[r|cs|c] [|o t]]; simpl; try lra. apply at_both_test. }
  set (r := per b (times rel * 1) (times_pos rel 1 Nat.lt_0_1)).
  assert (Hr : INR (times rel) * r = b).
  { unfold r, per. simpl pos. rewrite mult_INR. destruct rel; simpl; field. }
  rewrite <- Hr in Hlt.
  pose proof (thm_geometric_ratio r (cond_pos r) 0 0) as [[HN _]|[_ Z0]]; [lia|].
  pose proof (thm_geometric_ratio r (cond_pos r) 0 1) as [[_ Z1]|[HN _]]; [|lia].
  change (0 + 1)%Z with 1%Z in Z0, Z1.
  pose proof (Pr_noisy_pos r (cond_pos r)) as Hp. destruct rel.
  - specialize (H [] [true] ltac:(exists true; left; now exists [], []) 1 (said 0 0)%Z (Ht _ _)).
    change (E (noisy_counts r (cond_pos r) [0; 0]%Z) (at_both 0 0)
      <= exp eps * E (noisy_counts r (cond_pos r) [0; 1]%Z) (at_both 0 0)) in H.
    rewrite !two_counts in H. rewrite Z0 in H at 2. pose proof (Hp 0 0)%Z. pose proof (Hp 1 0)%Z.
    change (INR (times AddRemove)) with 1 in Hlt. rewrite Rmult_1_l in Hlt.
    set (p := Pr Z.eq_dec (noisy r (cond_pos r) 0) 0%Z) in *. set (q := Pr Z.eq_dec (noisy r (cond_pos r) 1) 0%Z) in *.
    assert (0 < p * q) by nra. nra.
  - specialize (H [false] [true] ltac:(exists false, true; now exists [], []) 1 (said 1 0)%Z (Ht _ _)).
    change (E (noisy_counts r (cond_pos r) [1; 0]%Z) (at_both 1 0)
      <= exp eps * E (noisy_counts r (cond_pos r) [0; 1]%Z) (at_both 1 0)) in H.
    rewrite !two_counts in H. rewrite Z0, Z1 in H. pose proof (Hp 0 1)%Z. pose proof (Hp 1 0)%Z.
    change (INR (times ReplaceOne)) with (1 + 1) in Hlt. replace ((1 + 1) * r) with (r + r) in Hlt by ring.
    rewrite exp_plus in Hlt.
    set (p := Pr Z.eq_dec (noisy r (cond_pos r) 0) 1%Z) in *. set (q := Pr Z.eq_dec (noisy r (cond_pos r) 1) 0%Z) in *.
    assert (0 < p * q) by nra. nra.
Qed.

(* What the hypotheses are for: a theorem with one of them left out is false.  Each is refuted by a small mechanism, one
   of the mutants of the zoo, whose loss is ln 4 or more where ln 2 is promised, or which promises nothing and tells. *)
From Coq Require Import Reals Lra Psatz List ZArith Arith Bool Lia.
From DPForest Require Import Law Privacy Program Path Forest Selection Noise.
Import ListNotations.
Open Scope R_scope.

(** A liar who says b with probability 2/3: whatever b is, its loss is ln 2. *)
Definition tells (b : bool) : dist bool.
Proof.
  refine (finite [true; false] (fun o : bool => if eqb o b then 2 / 3 else 1 / 3) _ _).
  - intros o _. destruct (eqb o b); lra.
  - destruct b; simpl; lra.
Defined.
Lemma E_tells b f : E (tells b) f = (if b then 2 / 3 else 1 / 3) * f true + (if b then 1 / 3 else 2 / 3) * f false.
Proof. unfold tells. rewrite E_finite. destruct b; simpl; ring. Qed.
Arguments tells : simpl never.
Lemma exp_ln_2 : exp (ln 2) = 2.
Proof. apply exp_ln. lra. Qed.
Lemma ln_2_pos : 0 <= ln 2.
Proof. rewrite <- ln_1. left. apply ln_increasing; lra. Qed.
Lemma tells_private {X} (h : list X -> bool) N : private N (ln 2) (fun D => tells (h D)).
Proof.
  intros D D' _ B f Hf. rewrite exp_ln_2, !E_tells. pose proof (Hf true). pose proof (Hf false).
  destruct (h D), (h D'); lra.
Qed.

Definition anybody {X} (D : list X) : bool := match D with [] => false | _ => true end.
Definition said (o o' : bool) (t : list bool) : R :=
  match t with [a; b] => if eqb a o && eqb b o' then 1 else 0 | _ => 0 end.
Lemma said_test o o' : test 1 (said o o').
Proof. intros [|a [|b [|c t]]]; simpl; try lra. destruct (eqb a o && eqb b o'); lra. Qed.

Ltac asked := repeat split; try apply ln_2_pos; try apply tells_private.

(** Calibration.  Every query keeps to its losses: else *purity stop*, a look at the records that nobody pays. *)
Definition free_look : tree (X := bool) (O := bool) := Query [] (fun D => ret (anybody D)) 0 0 (fun _ => Stop).
Theorem thm_path_needs_honest_queries : ~ (forall g eps,
  (forall u t, path_cost AddRemove u g t <= eps) -> private add_remove eps (run (grown (X := bool) (O := bool) g))).
Proof.
  intros H. specialize (H free_look 0).
  assert (Hc : forall u t, path_cost AddRemove u free_look t <= 0).
  { intros u [|o [|o' t]]; simpl; [lra| |]; destruct (above [] u); lra. }
  specialize (H Hc [true] [] ltac:(exists true; right; now exists [], []) 1 (fun t => match t with [true] => 1 | _ => 0 end)).
  simpl in H. rewrite exp_0 in H.
  assert (test 1 (fun t : list bool => match t with [true] => 1 | _ => 0 end))
    by (intros [|[|] [|b t]]; simpl; lra).
  specialize (H H0). lra.
Qed.

(** Paths.  The queries of a path add up: else *epsilon per node*. *)
Fixpoint each_at_most {X O} (eps : R) (g : tree (X := X) (O := O)) : Prop :=
  match g with
  | Stop => True
  | Query _ _ alpha rho next => alpha <= eps /\ rho <= eps /\ forall o, each_at_most eps (next o)
  | Split _ _ next => each_at_most eps next
  end.
Definition per_node : tree (X := bool) (O := bool) :=
  Query [] (fun D => tells (anybody D)) (ln 2) (ln 2) (fun _ => Split [] (fun _ => 0%nat)
  (Query [0%nat] (fun D => tells (anybody D)) (ln 2) (ln 2) (fun _ => Stop))).
Theorem thm_path_needs_the_sum : ~ (forall g eps, sound g -> each_at_most eps g ->
  private add_remove eps (run (grown (X := bool) (O := bool) g))).
Proof.
  intros H. specialize (H per_node (ln 2) ltac:(asked) ltac:(repeat split; lra)).
  specialize (H [true] [] ltac:(exists true; right; now exists [], []) 1 (said true true) (said_test _ _)).
  unfold per_node, grown in H. simpl in H. rewrite exp_ln_2 in H. repeat (rewrite E_tells in H; simpl in H).
  unfold move in H. simpl in H. lra.
Qed.

(** Two paths.  Under replace-one a record leaves one and enters another: else *a one-sided rate under replace-one*. *)
Definition two_children : tree (X := bool) (O := bool) :=
  Split [] (fun x : bool => if x then 1%nat else 0%nat)
  (Query [0%nat] (fun D => tells (anybody D)) (ln 2) (ln 2) (fun _ =>
   Query [1%nat] (fun D => tells (anybody D)) (ln 2) (ln 2) (fun _ => Stop))).
Theorem thm_path_needs_both_paths : ~ (forall g eps, sound g -> (forall u t, path_cost AddRemove u g t <= eps) ->
  private replace_one eps (run (grown (X := bool) (O := bool) g))).
Proof.
  intros H. specialize (H two_children (ln 2) ltac:(asked)). pose proof ln_2_pos as HL.
  assert (Hc : forall u t, path_cost AddRemove u two_children t <= ln 2).
  { assert (Hx : forall u, above [0%nat] u = true -> above [1%nat] u = true -> False).
    { intros u A B. destruct (above_comparable _ _ _ A B) as [K|K]; apply above_length in K as [_ K];
        specialize (K eq_refl); discriminate. }
    intros u [|o [|o' t]]; simpl; specialize (Hx u); destruct (above [0%nat] u), (above [1%nat] u); try lra;
      exfalso; auto. }
  specialize (H Hc [false] [true] ltac:(exists false, true; now exists [], []) 1 (said true false) (said_test _ _)).
  unfold two_children, grown in H. simpl in H. rewrite exp_ln_2 in H. repeat (rewrite E_tells in H; simpl in H). lra.
Qed.

(** Sharing, all.  The budgets of a record's trees add up: else *a formula for the budget*. *)
Definition two_trees : tree (X := nat * bool) (O := bool) :=
  Query [0%nat] (fun D => tells (anybody D)) (ln 2) (ln 2) (fun _ =>
  Query [1%nat] (fun D => tells (anybody D)) (ln 2) (ln 2) (fun _ => Stop)).
Lemma above_root j u k : above [j] (u ++ [k]) = true -> k = j.
Proof.
  induction u as [|n u IH]; intros A.
  - apply above_cons in A as [A|A]; [congruence|]. apply above_nil in A. discriminate.
  - simpl app in A. apply above_cons in A as [A|A]; [|auto]. destruct u; discriminate.
Qed.
Theorem thm_forest_needs_the_sum : ~ (forall (coin : dist unit) trees g beta eps, sound g ->
  (forall k u t, path_cost AddRemove (u ++ [k]) g t <= beta k) ->
  (forall c x k, In k (trees c x) -> beta k <= eps) ->
  private add_remove eps (grow_forest (X := bool) (O := bool) coin trees g)).
Proof.
  intros H. specialize (H nothing (all_trees 2) two_trees (fun _ => ln 2) (ln 2) ltac:(asked)). pose proof ln_2_pos as HL.
  assert (Hc : forall k u t, path_cost AddRemove (u ++ [k]) two_trees t <= ln 2).
  { intros k u [|o [|o' t]]; simpl path_cost; [lra| |];
      destruct (above [0%nat] (u ++ [k])) eqn:A, (above [1%nat] (u ++ [k])) eqn:B; try lra;
      apply above_root in A; apply above_root in B; congruence. }
  specialize (H Hc ltac:(intros; lra) [true] [] ltac:(exists true; right; now exists [], []) 1 (said true true) (said_test _ _)).
  unfold grow_forest, two_trees, forest, grown in H. simpl in H. rewrite exp_ln_2 in H. repeat (rewrite E_tells in H; simpl in H). lra.
Qed.

(** Sharing, parts.  A record's tree is told by a coin or a key of its own: else *records by position*. *)
Fixpoint by_position (k : nat) (D : list bool) : list (nat * bool) :=
  match D with [] => [] | x :: D => (k, x) :: by_position (1 - k) D end.
Definition ask_both : prog (X := nat * bool) (O := bool) :=
  Ask (fun y => fst y =? 0) (fun D => tells (existsb snd D)) (ln 2) (ln 2) (fun _ =>
  Ask (fun y => fst y =? 1) (fun D => tells (existsb snd D)) (ln 2) (ln 2) (fun _ => Done)).
Theorem thm_forest_needs_own_coins : ~ (forall (deal : list bool -> list (nat * bool)) p eps,
  (forall D, map snd (deal D) = D) -> honest p -> (forall k x t, spent AddRemove (k, x) p t <= eps) ->
  private add_remove eps (fun D => run (O := bool) p (deal D))).
Proof.
  intros H. specialize (H (by_position 0) ask_both (ln 2)). pose proof ln_2_pos as HL.
  assert (Hd : forall D k, map snd (by_position k D) = D) by (induction D as [|x D IH]; intros k; simpl; [reflexivity|]; now rewrite IH).
  specialize (H (fun D => Hd D 0%nat) ltac:(asked)).
  assert (Hc : forall k x t, spent AddRemove (k, x) ask_both t <= ln 2).
  { intros [|[|k]] x [|o [|o' t]]; simpl; lra. }
  specialize (H Hc [true] [false; true] ltac:(exists false; left; now exists [], [true]) 1 (said true false) (said_test _ _)).
  simpl in H. rewrite exp_ln_2 in H. repeat (rewrite E_tells in H; simpl in H). lra.
Qed.

(** Own path.  The part of a record depends on that record alone: else *halves by rank*. *)
Definition lower_half (D : list nat) (x : nat) : bool := 2 * length (filter (fun y => y <? x) D) <? length D.
Theorem thm_parallel_needs_own_parts : ~ (forall (part : list nat -> nat -> bool) (M : list nat -> dist bool) eps,
  private add_remove eps M -> private add_remove eps (fun D =>
    both (fun o o' => [o; o']) (M (filter (part D) D)) (fun _ => M (filter (fun x => negb (part D x)) D)))).
Proof.
  intros H. specialize (H lower_half (fun D => tells (existsb (fun x => x =? 2) D)) (ln 2) (tells_private _ _)).
  specialize (H [2%nat] [1%nat; 2%nat] ltac:(exists 1%nat; left; now exists [], [2%nat]) 1 (said true false) (said_test _ _)).
  simpl in H. unfold lower_half in H. simpl in H. rewrite exp_ln_2 in H. repeat (rewrite E_tells in H; simpl in H). lra.
Qed.

(** Own weight.  What a record weighs depends on that record alone: else *weights that add up to four*, by which
    one record more takes weight from all the others. *)
Definition two_at_most (D : list bool) (_ : bool) : nat := if length D <=? 2 then 1 else 0.
Theorem thm_own_weights_needs_own_weights : ~ (forall (weight : list bool -> bool -> nat) rate (Hrate : 0 < rate),
  (forall D x, weight D x <= 1)%nat ->
  private add_remove rate (fun D => noisy_counts rate Hrate [Z.of_nat (list_sum (map (weight D) D))])).
Proof.
  intros H. specialize (H two_at_most 1 Rlt_0_1). assert (Hw : forall D x, (two_at_most D x <= 1)%nat).
  { intros D x. unfold two_at_most. destruct (length D <=? 2); lia. }
  specialize (H Hw [true; true] [true; true; true] ltac:(exists true; left; now exists [true; true], []) 1
    (fun cs => match cs with [c] => ind Z.eq_dec 2%Z c | _ => 0 end)).
  assert (Ht : test 1 (fun cs : list Z => match cs with [c] => ind Z.eq_dec 2%Z c | _ => 0 end)).
  { intros [|c [|c' cs]]; try lra. apply test_ind. }
  specialize (H Ht).
  change (Pr Z.eq_dec (noisy 1 Rlt_0_1 2) 2%Z <= exp 1 * Pr Z.eq_dec (noisy 1 Rlt_0_1 0) 2%Z) in H.
  pose proof (def_laplace 1 Rlt_0_1 2 0) as P. pose proof (def_laplace 1 Rlt_0_1 0 2) as Q.
  change (2 + 0)%Z with 2%Z in P. change (0 + 2)%Z with 2%Z in Q. rewrite P, Q in H. simpl in H.
  pose proof (a_range 1 Rlt_0_1) as Ha. pose proof (exp_rate_a 1) as He. pose proof (kappa_pos 1 Rlt_0_1) as Hk.
  unfold kappa in Hk. unfold Rdiv in H. set (k := (1 - a 1) * / (1 + a 1)) in *.
  replace (exp 1 * (k * (a 1 * (a 1 * 1)))) with (k * a 1 * (exp 1 * a 1)) in H by ring. rewrite He in H. nra.
Qed.

(** Calibration.  A selection costs its rate times the range, not the sensitivity: *understated range*. *)
Definition class_counts (D : list bool) (r : bool) : R := INR (length (filter (eqb r) D)).
Theorem thm_selection_range_needs_the_range : ~ (forall rate (q : list bool -> bool -> R) S, 0 <= rate ->
  sensitivity replace_one q S -> private replace_one (rate * S) (exponential true [false] rate q)).
Proof.
  intros H.
  assert (HS : sensitivity replace_one class_counts 1).
  { intros D D' (x & x' & l1 & l2 & -> & ->) r. unfold class_counts. rewrite !filter_app, !app_length, !plus_INR. simpl filter.
    destruct (eqb r x), (eqb r x'); cbn [length]; rewrite ?S_INR; lra. }
  specialize (H 1 class_counts 1 ltac:(lra) HS [true; false] [true; true] ltac:(exists false, true; now exists [true], [])
    1 (fun r : bool => if r then 0 else 1) ltac:(intros [|]; lra)).
  unfold exponential in H. rewrite !E_weighted in H. unfold candidates, class_counts in H. simpl in H.
  rewrite !Rmult_1_l, !Rmult_0_r, !Rmult_1_r, !Rplus_0_l, !Rplus_0_r, exp_0, exp_plus in H.
  pose proof (exp_increasing 0 1 ltac:(lra)) as He. rewrite exp_0 in He. set (z := exp 1) in *.
  assert (Hi : / (z + z) * z = / 2) by (field; lra). rewrite Hi in H.
  assert (Hj : 0 < / (z * z + 1)) by (apply Rinv_0_lt_compat; nra).
  assert (Hk : (z * z + 1) * / (z * z + 1) = 1) by (field; nra). nra.
Qed.


(* A learner that does what the theorems ask for, so that they speak of something: stumps of eDPRF, book/edprf.md, and
   a round of boosting. *)
From Coq Require Import Reals Lra List ZArith Arith Bool Lia.
From DPForest Require Import Law Privacy Program Path Forest Certificate Selection Scores Noise Budgets Learners Boosting.
Import ListNotations.
Open Scope R_scope.

(** A record, dealt to a tree, has two codes and a class, each 0 or 1. *)
Notation record := (nat * (bool * bool * bool))%type.
Definition code (feature : nat) (x : record) : nat :=
  let '(_, (a, b, _)) := x in if (match feature with 0%nat => a | _ => b end) then 1%nat else 0%nat.
Definition class (x : record) : nat := let '(_, (_, _, c)) := x in if c then 1%nat else 0%nat.

Lemma code_small f x : (code f x < 2)%nat.
Proof. destruct x as (k & (a & b) & c). simpl. destruct f, a, b; lia. Qed.
Lemma class_small x : (class x < 2)%nat.
Proof. destruct x as (k & (a & b) & c). simpl. destruct c; lia. Qed.

(** Class counts, with weight 1. *)
Definition counts (D : list record) : list Z := class_weights (fun _ => 1%nat) 2 class D.
Lemma quarter_pos : 0 < / 4. Proof. lra. Qed.
Definition quarter : posreal := mkposreal (/ 4) quarter_pos.

(** One half of the budget 1 for the choice of a feature by the Gini score, the other for the counts of each child:
    under replace-one rates are half of what they are under add-remove. *)
Definition choose_feature : question (Y := record) := Choose PermuteAndFlip 1 (score 2 class 2 code) 2 4 (/ 8).
Definition count_classes : question (Y := record) := Count counts 1 quarter.
Definition stump : learner (Y := record) :=
  Node [0%nat] choose_feature (fun chosen =>
  Branch [0%nat] (code (match chosen with Chosen r => r | _ => 0%nat end))
  (Leaf [0%nat; 0%nat] count_classes (fun _ => Leaf [1%nat; 0%nat] count_classes (fun _ => Finish)))).

Lemma counts_true : true_constants count_classes.
Proof. apply class_weights_true. intros _. apply le_n. Qed.
Lemma gini_true : true_constants choose_feature.
Proof.
  destruct (thm_gini_range 2 2 class code class_small code_small) as [H1 H2]. repeat split; try lra; assumption.
Qed.

Theorem thm_edprf_of_a_stump (coin : dist nat) :
  private replace_one 1 (grow_forest coin own_tree (plant stump)).
Proof.
  apply (thm_edprf coin ReplaceOne (fun _ => / 2) 2 1 stump).
  assert (HA : cost ReplaceOne choose_feature = / 2).
  { unfold cost. simpl. unfold Rmax. destruct (Rle_dec _ _); lra. }
  assert (HC : cost ReplaceOne count_classes = / 2).
  { unfold cost. simpl. unfold Rmax. destruct (Rle_dec _ _); lra. }
  split; [intros; lra|]. split; [simpl; lra|]. split.
  - exact (conj gini_true (fun _ => conj counts_true (fun _ => conj counts_true (fun _ => I)))).
  - cbn [levels stump]. exists 0. rewrite HA. split; [reflexivity|]. split; [unfold level; simpl; lia|]. split; [lra|].
    intros o. exists (0 + / 2). split; [reflexivity|]. split; [unfold level; simpl; lia|].
    exists 0. rewrite HC. split; [reflexivity|]. split; [unfold level; simpl; lra|].
    intros o'. exists 0. split; [reflexivity|]. split; [unfold level; simpl; lra|]. intros o''. exact I.
Qed.

(** * A round of the library's own boosting, book/private_boosting.md, over the same records: class totals, a selection
    between the tables of both features, and the table that was selected.  All records still weigh 1, one step. *)
Definition feature_table (feature : nat) : table record := Table 2 (code feature).
Definition beside (x : record) : nat * nat := (1 - class x, class x)%nat.
Definition half : posreal := mkposreal (/ 2) (Rinv_0_lt_compat 2 Rlt_0_2).
Definition round : class_plan (X := record) :=
  Inquire (Totals 2 class) quarter (fun _ =>
  Inquire (SelectTable PermuteAndFlip 1 feature_table (fun _ => beside) 1) quarter (fun chosen =>
  Tabulate (feature_table (match chosen with Chosen r => r | _ => 0%nat end)) (Weights beside) half (fun _ => Publish))).

Theorem thm_private_boosting_of_a_round rel :
  private (neighbours rel) 1 (boost_classes rel 1 1 Nat.lt_0_1 Nat.lt_0_1 (fun _ => round)).
Proof.
  assert (Hb : at_most_one 1 beside) by (intros x; pose proof (class_small x); unfold beside; cbn [fst snd]; lia).
  apply thm_private_boosting. intros _. split; [exact I|]. intros _. split; [intros _; exact Hb|].
  intros chosen. split; [exact Hb|]. intros os. simpl. lra.
Qed.

(** * The stump as a fit with a certificate, dpforest/formal/Certificate.v: its ledger has three charges, costs 1. *)
Definition stump_fit : fit record answer :=
  Query [] (law choose_feature) (/ 4) (/ 2) (fun chosen =>
  Divide [] (Certificate.Apart (code (match chosen with Chosen r => r | _ => 0%nat end)))
  (Query [0%nat] (law count_classes) (/ 4) (/ 2) (fun _ =>
  Query [1%nat] (law count_classes) (/ 4) (/ 2) (fun _ => Certificate.Stop)))).
Definition asks : list (Z * Z) := [(1, 2)%Z].
Definition stump_ledger : ledger := Scope true asks [Scope false asks []; Scope false asks []].

Lemma stump_truthful : truthful stump_fit.
Proof.
  assert (H1 : coming choose_feature = / 4 /\ replaced choose_feature = / 2) by (simpl; lra).
  assert (H2 : coming count_classes = / 4 /\ replaced count_classes = / 2) by (simpl; lra).
  destruct (question_sound choose_feature gini_true) as (_ & _ & H3 & H4).
  destruct (question_sound count_classes counts_true) as (_ & _ & H5 & H6).
  destruct H1 as [E1 E2], H2 as [E3 E4]. rewrite E1 in H3. rewrite E2 in H4. rewrite E3 in H5. rewrite E4 in H6.
  cbn [truthful stump_fit]. repeat (split; [lra|]). split; [exact H3|]. split; [exact H4|]. intros _.
  repeat (split; [lra|]). split; [exact H5|]. split; [exact H6|]. intros _.
  repeat (split; [lra|]). split; [exact H5|]. split; [exact H6|]. intros _. exact I.
Qed.

Lemma stump_of_file o1 o2 o3 t : of_file stump_ledger 4 stump_fit (o1 :: o2 :: o3 :: t).
Proof.
  split; [|repeat split].
  simpl. unfold in_parts_of, shifted. simpl. replace (/ 4 * 1) with (/ 4) by lra.
  replace (/ 4 * 2) with (/ 2) by lra. apply Permutation.Permutation_refl.
Qed.

Ltac costs :=
  unfold loss; match goal with |- _ * IZR ?z <= _ => let v := eval vm_compute in z in change z with v end; lra.

Theorem thm_certificate_of_a_stump (coin : dist nat) :
  (forall o1 o2 o3, of_file stump_ledger 4 stump_fit [o1; o2; o3]) /\
  private replace_one 1 (Certificate.answers coin stump_fit).
Proof.
  split; [intros; apply stump_of_file|].
  apply (thm_certificate_every_run coin stump_fit stump_truthful ReplaceOne). intros t.
  assert (Hu : 0 < / 4) by lra. exists (/ 4).
  assert (E1 : / 4 * 1 = / 4) by lra. assert (E2 : / 4 * 2 = / 2) by lra.
  destruct t as [|o1 [|o2 [|o3 t]]].
  - exists (Scope true [] []). split; [assumption|]. split; [split; [apply Permutation.Permutation_refl|now split]|].
    costs.
  - exists (Scope true asks []). split; [assumption|]. split; [split; [|now split]|].
    + simpl. unfold in_parts_of, shifted. simpl. rewrite E1, E2. apply Permutation.Permutation_refl.
    + costs.
  - exists (Scope true asks [Scope false asks []]). split; [assumption|]. split; [split; [|repeat split]|].
    + simpl. unfold in_parts_of, shifted. simpl. rewrite E1, E2. apply Permutation.Permutation_refl.
    + costs.
  - exists stump_ledger. split; [assumption|]. split; [exact (stump_of_file o1 o2 o3 t)|]. costs.
Qed.

(** * The stump with a delta: each answer at half of a rho of 1, by the exponential mechanism and Gaussian noise. *)
From DPForest Require Import Concentrated Gaussian Drawn Rhos.
Definition of_class : list (record -> nat) := map (fun c x => if Nat.eqb (class x) c then 1%nat else 0%nat) (seq 0 2).
Definition choose_of_rho (D : list record) : dist answer :=
  bind (exponential 0%nat [1%nat] (sqrt (8 * / 2) / Rmax 4 (2 * 2)) (score 2 class 2 code) D) (fun r => ret (Chosen r)).
Definition count_of_rho (D : list record) : dist answer :=
  bind (with_gaussians (repeat quarter 2) (share_sums of_class D)) (fun cs => ret (Counted cs)).
Definition stump_of_rho : tree (X := record) (O := answer) :=
  Path.Query [0%nat] choose_of_rho (/ 8) (/ 2) (fun chosen =>
  Path.Split [0%nat] (code (match chosen with Chosen r => r | _ => 0%nat end))
  (Path.Query [0%nat; 0%nat] count_of_rho (/ 4) (/ 2) (fun _ =>
  Path.Query [1%nat; 0%nat] count_of_rho (/ 4) (/ 2) (fun _ => Path.Stop)))).

Theorem thm_forest_delta_of_a_stump (coin : dist nat) :
  concentrated replace_one 1 (grow_forest coin own_tree stump_of_rho).
Proof.
  assert (HC : concentrated add_remove (/ 8) choose_of_rho /\ concentrated replace_one (/ 2) choose_of_rho).
  { destruct (thm_gini_range 2 2 class code class_small code_small) as [H1 H2].
    destruct (thm_forest_delta_selections (score 2 class 2 code) 2 4 (/ 2) ltac:(lra) ltac:(lra) ltac:(lra) H1 H2)
      as (_ & H3 & H4). cbv zeta in H3, H4. replace (/ 2 / 4) with (/ 8) in H3 by field.
    assert (Hr : 0 <= sqrt (8 * / 2) / Rmax 4 (2 * 2)).
    { apply Rmult_le_pos; [apply sqrt_pos|]. left. apply Rinv_0_lt_compat. pose proof (Rmax_l 4 (2 * 2)). lra. }
    exact (drawn_at_conc _ _ _ (Selected 0%nat [1%nat] _ _ (fun r => ret (Chosen r)) _ _ Hr H3 H4)). }
  assert (HN : concentrated add_remove (/ 4) count_of_rho /\ concentrated replace_one (/ 2) count_of_rho).
  { destruct (thm_forest_delta_sums of_class 1 quarter) as [H1 H2].
    - intros x. pose proof (class_small x). unfold of_class. simpl. destruct (class x) as [|[|]]; simpl; lia.
    - apply drawn_at_conc. apply (Noisy (repeat quarter 2) (share_sums of_class) (fun cs => ret (Counted cs))).
      + replace (/ 4) with (quarter * (INR 1 * INR 1)) by (simpl INR; unfold quarter; simpl pos; lra). exact H1.
      + replace (/ 2) with (2 * quarter * (INR 1 * INR 1)) by (simpl INR; unfold quarter; simpl pos; lra). exact H2. }
  apply (thm_forest_delta coin own_tree ReplaceOne stump_of_rho (fun _ => 1) 1).
  - cbn [sound_rho stump_of_rho]. destruct HC as [C1 C2], HN as [N1 N2].
    do 2 (split; [lra|]). do 2 (split; [assumption|]). split; [now left|]. intros _.
    do 2 (split; [lra|]). do 2 (split; [assumption|]). split; [now left|]. intros _.
    do 2 (split; [lra|]). do 2 (split; [assumption|]). split; [now left|]. intros _. exact I.
  - intros c x. constructor; [easy|constructor].
  - intros k u t. assert (P1 : price ReplaceOne (/ 8) (/ 2) = / 2) by (simpl; unfold Rmax; destruct (Rle_dec _ _); lra).
    assert (P2 : price ReplaceOne (/ 4) (/ 2) = / 2) by (simpl; unfold Rmax; destruct (Rle_dec _ _); lra).
    destruct t as [|o t]; [simpl; lra|]. cbn [stump_of_rho path_cost]. rewrite P1.
    assert (Hone : (if above [0%nat; 0%nat] (u ++ [k]) then / 2 else 0) +
      (if above [1%nat; 0%nat] (u ++ [k]) then / 2 else 0) <= / 2).
    { destruct (above [0%nat; 0%nat] (u ++ [k])) eqn:A, (above [1%nat; 0%nat] (u ++ [k])) eqn:B; try lra.
      destruct (above_comparable _ _ _ A B) as [H|H]; discriminate. }
    destruct t as [|o1 [|o2 t]]; cbn [path_cost]; rewrite ?P2;
      destruct (above [0%nat] (u ++ [k])), (above [0%nat; 0%nat] (u ++ [k])), (above [1%nat; 0%nat] (u ++ [k])); lra.
  - intros c x. simpl. lra.
Qed.

(** * The same stump as a learner whose levels keep to rhos *)
From DPForest Require Import Account LearnersRhos BoostingRhos.
Definition feature_of_rho : rho_question (Y := record) := Select 1 (score 2 class 2 code) 2 4 (/ 2).
Definition classes_of_rho : rho_question (Y := record) :=
  Sum (repeat quarter 2) (share_sums of_class) (quarter * (INR 1 * INR 1)) (2 * quarter * (INR 1 * INR 1)).
Definition learner_of_rho : rho_learner (Y := record) :=
  Noded [0%nat] feature_of_rho (fun chosen =>
  Branched [0%nat] (code (match chosen with Chosen r => r | _ => 0%nat end))
  (Leafed [0%nat; 0%nat] classes_of_rho (fun _ => Leafed [1%nat; 0%nat] classes_of_rho (fun _ => Finished)))).

Theorem thm_forest_delta_edprf_of_a_stump (coin : dist nat) :
  concentrated replace_one 1 (grow_forest coin own_tree (plant_rho learner_of_rho)).
Proof.
  apply (thm_forest_delta_parts coin ReplaceOne (fun _ => / 2) 2 1).
  assert (HA : cost ReplaceOne (priced feature_of_rho) = / 2).
  { rewrite cost_priced. simpl. unfold Rmax. destruct (Rle_dec _ _); lra. }
  assert (HC : cost ReplaceOne (priced classes_of_rho) = / 2).
  { rewrite cost_priced. simpl. unfold Rmax. destruct (Rle_dec _ _); lra. }
  destruct (thm_gini_range 2 2 class code class_small code_small) as [H1 H2].
  assert (TA : true_rhos feature_of_rho) by (cbn [true_rhos feature_of_rho]; repeat (split; [lra|]); now split).
  assert (TC : true_rhos classes_of_rho).
  { destruct (thm_forest_delta_sums of_class 1 quarter) as [H3 H4].
    - intros x. pose proof (class_small x). unfold of_class. simpl. destruct (class x) as [|[|]]; simpl; lia.
    - cbn [true_rhos classes_of_rho]. split; [simpl; lra|]. split; [simpl; lra|]. now split. }
  split; [intros; lra|]. split; [simpl; lra|]. split.
  - cbn [rho_calibrated learner_of_rho]. split; [easy|]. split; [exact TA|]. intros _. split; [easy|].
    split; [exact TC|]. intros _. split; [easy|]. split; [exact TC|]. intros _. exact I.
  - cbn [levels spending learner_of_rho]. exists 0. rewrite HA.
    split; [reflexivity|]. split; [unfold level; simpl; lia|].
    split; [lra|]. intros o. exists (0 + / 2). split; [reflexivity|]. split; [unfold level; simpl; lia|].
    exists 0. rewrite HC. split; [reflexivity|]. split; [unfold level; simpl; lra|].
    intros o'. exists 0. split; [reflexivity|]. split; [unfold level; simpl; lra|]. intros o''. exact I.
Qed.

(** * A round of boosting that takes up a delta if a first, noisy count is large; all budgets are those of the round. *)
Definition many (o : answer) : bool := match o with Counted (n :: _) => (100 <? n)%Z | _ => false end.
Definition round_with_delta : class_plan_delta (X := record) :=
  Inquire (false, Totals 2 class) quarter (fun totals =>
  Inquire (many totals, SelectTable Exponential 1 feature_table (fun _ => beside) 1) quarter (fun chosen =>
  Tabulate (feature_table (match chosen with Chosen r => r | _ => 0%nat end)) (many totals, Weights beside) half
    (fun _ => Publish))).
Lemma share_range : / 2 <= / 2 < 1.
Proof. lra. Qed.

Theorem thm_private_boosting_delta_of_a_round rel eps : 1 <= eps ->
  approximate (neighbours rel) eps (/ 4 * exp (25 / 16 - eps))
    (boost_classes_delta rel 1 1 Nat.lt_0_1 Nat.lt_0_1 (/ 2) share_range (fun _ => round_with_delta)).
Proof.
  intros He.
  assert (Hb : at_most_one 1 beside) by (intros x; pose proof (class_small x); unfold beside; cbn [fst snd]; lia).
  apply (thm_private_boosting_delta rel 1 1 _ _ _ _ _ (25 / 32)).
  - intros _. split; [exact I|]. intros totals. split; [intros _; exact Hb|]. intros chosen.
    destruct (many totals); (split; [exact Hb|]); intros os; simpl; lra.
  - exists 2. split; [lra|]. replace (exp (2 * ln (1 - / 2))) with (/ 4).
    + right. replace (/ (2 - 1)) with 1 by field. rewrite Rmult_1_l. do 2 f_equal. field.
    + replace (2 * ln (1 - / 2)) with (ln (1 - / 2) + ln (1 - / 2)) by ring. rewrite exp_plus, exp_ln by lra. field.
Qed.

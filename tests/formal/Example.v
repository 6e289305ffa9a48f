(* A learner that does what the theorems ask for, so that they speak of something: stumps of eDPRF, book/edprf.md, and
   a round of boosting. *)
From Coq Require Import Reals Lra List ZArith Arith Bool Lia.
From DPForest Require Import Law Privacy Program Path Forest Selection Scores Noise Budgets Learners Boosting.
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

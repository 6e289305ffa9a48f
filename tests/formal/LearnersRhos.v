(* book/concentrated.md, "Composition": the learners with a delta.  Budgets of levels are rhos, selections are by the
   exponential mechanism, and numbers have discrete Gaussian noise; the rest is the master theorem with a delta. *)
From Coq Require Import Reals Lra Psatz List ZArith Arith Bool Lia.
From DPForest Require Import Law Privacy Program Path Forest Selection Learners.
From DPForest Require Import Concentrated Delta Ranges Gaussian Drawn Rhos.
Import ListNotations.
Open Scope R_scope.

(** * What a learner asks at a rho *)
Section Learner.
Context {Y : Type}.

(** One of the candidates 0 .. n; numbers with noise, a rate for each; or a question of the pure learners, whose loss
    counts for half of its square. *)
Inductive rho_question :=
| Select (n : nat) (q : list Y -> nat -> R) (R R' rate : R)
| Sum (rates : list posreal) (f : list Y -> list Z) (alpha rho : R)
| Lose (k : question (Y := Y)).

Definition rho_law (k : rho_question) (D : list Y) : dist answer :=
  match k with
  | Select n q _ _ rate => bind (exponential 0%nat (seq 1 n) rate q D) (fun r => ret (Chosen r))
  | Sum rates f _ _ => bind (with_gaussians rates (f D)) (fun cs => ret (Counted cs))
  | Lose k => law k D
  end.
Definition rho_coming (k : rho_question) : R :=
  match k with
  | Select _ _ R _ rate => rate * R * (rate * R) / 8
  | Sum _ _ alpha _ => alpha
  | Lose k => coming k * coming k / 2
  end.
Definition rho_replaced (k : rho_question) : R :=
  match k with
  | Select _ _ _ R' rate => rate * R' * (rate * R') / 8
  | Sum _ _ _ rho => rho
  | Lose k => replaced k * replaced k / 2
  end.
Definition true_rhos (k : rho_question) : Prop :=
  match k with
  | Select _ q R R' rate => 0 <= rate /\ 0 <= R /\ 0 <= R' /\ range add_remove q R /\ range replace_one q R'
  | Sum rates f alpha rho => 0 <= alpha /\ 0 <= rho /\ numbers_cost add_remove rates f alpha /\
      numbers_cost replace_one rates f rho
  | Lose k => true_constants k
  end.

Lemma rho_question_sound k : true_rhos k -> 0 <= rho_coming k /\ 0 <= rho_replaced k /\
  concentrated add_remove (rho_coming k) (rho_law k) /\ concentrated replace_one (rho_replaced k) (rho_law k).
Proof.
  destruct k as [n q R R' rate|rates f alpha rho|k]; simpl.
  - intros (Hr & H0 & H0' & HR & HR'). split; [nra|]. split; [nra|].
    split; apply thm_post_processing_concentrated; apply selected_conc; auto; [exists R|exists R']; repeat split;
      auto; lra.
  - intros (Ha & Hr & HA & HR). split; [assumption|]. split; [assumption|].
    split; apply thm_post_processing_concentrated; now apply thm_discrete_gaussian.
  - intros Hk. destruct (question_sound k Hk) as (Ha & Hr & HA & HR). split; [nra|]. split; [nra|].
    split; (eapply losing_conc; [..|eassumption|]); try assumption; try lra.
    + intros D D' [x [H|H]]; exists x; auto.
    + intros D D' (x & x' & l1 & l2 & E1 & E2). exists x', x, l1, l2. auto.
Qed.

(** The five instructions. *)
Inductive rho_learner :=
| Finished
| Tossing (coin : dist nat) (next : answer -> rho_learner)
| Noded (v : node) (k : rho_question) (next : answer -> rho_learner)
| Branched (v : node) (turn : Y -> nat) (next : rho_learner)
| Leafed (v : node) (k : rho_question) (next : answer -> rho_learner).

Fixpoint plant_rho (l : rho_learner) : tree (X := Y) (O := answer) :=
  match l with
  | Finished => Stop
  | Tossing coin next => Query [] (fun _ => bind coin (fun c => ret (Tossed c))) 0 0 (fun o => plant_rho (next o))
  | Noded v k next | Leafed v k next => Query v (rho_law k) (rho_coming k) (rho_replaced k) (fun o =>
    plant_rho (next o))
  | Branched v turn next => Split v turn (plant_rho next)
  end.
(** Constants are true, and each question is one of a tree. *)
Fixpoint rho_calibrated (l : rho_learner) : Prop :=
  match l with
  | Finished => True
  | Tossing _ next => forall o, rho_calibrated (next o)
  | Noded v k next | Leafed v k next => v <> [] /\ true_rhos k /\ forall o, rho_calibrated (next o)
  | Branched _ _ next => rho_calibrated next
  end.

(** What is spent: the same program of questions that look at nothing, and have these prices. *)
Definition priced (k : rho_question) : question (Y := Y) :=
  Choose Exponential 0 (fun _ _ => 0) (rho_coming k) (rho_replaced k) 1.
Fixpoint spending (l : rho_learner) : learner (Y := Y) :=
  match l with
  | Finished => Finish
  | Tossing coin next => Toss coin (fun o => spending (next o))
  | Noded v k next => Node v (priced k) (fun o => spending (next o))
  | Branched v turn next => Branch v turn (spending next)
  | Leafed v k next => Leaf v (priced k) (fun o => spending (next o))
  end.
Lemma cost_priced rel k : cost rel (priced k) = price rel (rho_coming k) (rho_replaced k).
Proof. unfold cost, priced. simpl. now rewrite !Rmult_1_l. Qed.
Lemma spending_calibrated l : rho_calibrated l -> calibrated (spending l).
Proof.
  assert (H : forall k, true_rhos k -> true_constants (priced k)).
  { intros k Hk. destruct (rho_question_sound k Hk) as (Ha & Hr & _ & _).
    repeat split; try lra; try assumption; intros D D' _ r s; lra. }
  induction l as [|coin next IH|v k next IH|v turn next IH|v k next IH]; cbn [rho_calibrated spending calibrated]; auto;
    intros (_ & Hk & Hn); auto.
Qed.
Lemma spending_cost rel u l : forall t, path_cost rel u (plant (spending l)) t = path_cost rel u (plant_rho l) t.
Proof.
  induction l as [|coin next IH|v k next IH|v turn next IH|v k next IH]; simpl; intros t; auto;
    destruct t as [|o t]; auto; now rewrite IH, ?Rmult_1_l.
Qed.
End Learner.

(** * A forest of them *)
(** [e l]: the rho of level l, 1 .. d.  [b]: that of a tree. *)
Definition follows_rho {Y} (rel : relation) (e : nat -> R) (d : nat) (b : R) (l : rho_learner (Y := Y)) : Prop :=
  (forall i, 0 <= e i) /\ sum e (seq 1 d) <= b /\ rho_calibrated l /\ levels rel e d b 0 roots (spending l).

Section Forest.
Context {X C : Type} (coin : dist C) (trees : C -> X -> list nat).
Lemma planted_sound (l : rho_learner (Y := nat * X)) : rho_calibrated l -> sound_rho (plant_rho l).
Proof.
  induction l as [|c next IH|v k next IH|v turn next IH|v k next IH]; simpl; auto.
  - intros H. repeat split; try lra; auto; intros D D' _; apply conc_refl.
  - intros (Hv & Hk & H). destruct (rho_question_sound k Hk) as (H1 & H2 & H3 & H4). repeat split; auto.
  - intros (Hv & Hk & H). destruct (rho_question_sound k Hk) as (H1 & H2 & H3 & H4). repeat split; auto.
Qed.

(** Levels that keep to their rhos make paths that do: thm-forest-delta for every learner. *)
Theorem thm_forest_delta_levels rel e d b rho (l : rho_learner (Y := nat * X)) : follows_rho rel e d b l ->
  (forall c x, NoDup (trees c x)) -> (forall c x, sum (fun _ => b) (trees c x) <= rho) ->
  concentrated (neighbours rel) rho (grow_forest coin trees (plant_rho l)).
Proof.
  intros (He & Hb & Hc & Hl) Hn Hs. apply thm_forest_delta with (beta := fun _ => b); auto; [now apply planted_sound|].
  intros k u t. rewrite <- spending_cost. apply (follows_path rel e d b (spending l)).
  split; [exact He|]. split; [exact Hb|]. split; [now apply spending_calibrated|exact Hl].
Qed.
End Forest.

(** Each record in the tree of a coin of its own: eDPRF, and DiffPETs, its regression and both boosters with *parts*; or
    all records in every tree: the latter four with *all*, and random trees, whose levels spend nothing.  Rounds are
    trees, each asked when the one before has answered; the trees of DP-AdaBoost have one level. *)
Section Sharing.
Context {X : Type}.
Implicit Types l : rho_learner (Y := nat * X).

Theorem thm_forest_delta_parts coin rel e d rho l : follows_rho rel e d rho l ->
  concentrated (neighbours rel) rho (grow_forest coin own_tree (plant_rho l)).
Proof.
  intros H. apply (thm_forest_delta_levels coin own_tree rel e d rho); auto; intros c x; simpl; [|lra].
  constructor; [easy|constructor].
Qed.
Theorem thm_forest_delta_all T rel e d rho l : (0 < T)%nat -> follows_rho rel e d (rho / INR T) l ->
  concentrated (neighbours rel) rho (grow_forest nothing (all_trees T) (plant_rho l)).
Proof.
  intros HT H. apply (thm_forest_delta_levels nothing (all_trees T) rel e d (rho / INR T)); auto; intros c x;
    unfold all_trees.
  - apply seq_NoDup.
  - rewrite sum_const, seq_length. right. field. apply not_0_INR. lia.
Qed.
End Sharing.

(* book/tree.md: a coin for each record, and one theorem for every repair.
   Each record is dealt to trees: to all of them, to the one that a coin of its own tells, or to the one that a key of
   its own tells.  The trees grow by one program, side by side, and may look at each other's answers. *)
From Coq Require Import Reals Lra Psatz List Arith Bool Lia.
From DPForest Require Import Law Privacy Program Path.
Import ListNotations.
Open Scope R_scope.

Section Deal.
(** [trees c x]: which trees see the record x if its coin fell on c. *)
Context {X O C : Type} (coin : dist C) (trees : C -> X -> list nat).

Definition block (c : C) (x : X) : list (nat * X) := map (fun k => (k, x)) (trees c x).

(** Every record has a coin of its own, independent of the others and of one law for all. *)
Fixpoint deal (D : list X) : dist (list (nat * X)) :=
  match D with
  | [] => ret []
  | x :: D => both (fun c r => block c x ++ r) coin (fun _ => deal D)
  end.
Definition dealt (M : list (nat * X) -> dist O) (D : list X) : dist O := bind (deal D) M.

Lemma E_deal_app l1 l2 f :
  E (deal (l1 ++ l2)) f = E (deal l1) (fun r1 => E (deal l2) (fun r2 => f (r1 ++ r2))).
Proof.
  revert f. induction l1 as [|x l1 IH]; intros f; [reflexivity|]. simpl. apply E_ext; intros c. rewrite IH.
  apply E_ext; intros r1. apply E_ext; intros r2. now rewrite app_assoc.
Qed.
Lemma E_deal_mid l1 x l2 f : E (deal (l1 ++ x :: l2)) f =
  E (deal l1) (fun r1 => E coin (fun c => E (deal l2) (fun r2 => f (r1 ++ block c x ++ r2)))).
Proof. now rewrite E_deal_app. Qed.

Ltac bounded Hf := try assumption; try (let x := fresh in intros x; repeat (apply E_range; let y := fresh in intros y); apply Hf).

Lemma dealt_add_remove S M eps :
  (forall c x r1 r2, close_on S eps (M (r1 ++ r2)) (M (r1 ++ block c x ++ r2)) /\
                     close_on S eps (M (r1 ++ block c x ++ r2)) (M (r1 ++ r2))) ->
  private_on S add_remove eps (dealt M).
Proof.
  intros HM. assert (He : 0 <= exp eps) by (left; apply exp_pos).
  assert (H : forall x D D', adds x D D' ->
    close_on S eps (dealt M D) (dealt M D') /\ close_on S eps (dealt M D') (dealt M D)).
  { intros x D D' (l1 & l2 & -> & ->). split; intros B f Hf HS; simpl; rewrite E_deal_mid, E_deal_app;
      apply (E_le_scale (deal l1) B); bounded Hf; intros r1;
      rewrite <- (E_const coin (E (deal l2) (fun r2 => E (M (r1 ++ r2)) f)))
        by (apply (E_range _ B); intros r2; apply E_range, Hf);
      apply (E_le_scale coin B); bounded Hf; intros c; apply (E_le_scale (deal l2) B); bounded Hf; intros r2;
      now apply (HM c x r1 r2) with (B := B). }
  intros D D' [x [Hx|Hx]]; apply (H x _ _ Hx).
Qed.

(** An exchanged record keeps its coin, for coins look at nothing. *)
Lemma dealt_replace_one S M eps :
  (forall c x x' r1 r2, close_on S eps (M (r1 ++ block c x ++ r2)) (M (r1 ++ block c x' ++ r2))) ->
  private_on S replace_one eps (dealt M).
Proof.
  intros HM D D' (x & x' & l1 & l2 & -> & ->) B f Hf HS. simpl. assert (He : 0 <= exp eps) by (left; apply exp_pos).
  rewrite !E_deal_mid.
  apply (E_le_scale (deal l1) B); bounded Hf; intros r1. apply (E_le_scale coin B); bounded Hf; intros c.
  apply (E_le_scale (deal l2) B); bounded Hf; intros r2. now apply (HM c x x' r1 r2) with (B := B).
Qed.
End Deal.

(** * Programs on dealt records: the places of one record add up *)
Section Blocks.
Context {X O : Type} (p : prog (X := X) (O := O)) (Hp : honest p).

Lemma block_add_remove b r1 r2 :
  let L := fun t => sum (fun y => spent AddRemove y p t) b in
  within L (run p (r1 ++ r2)) (run p (r1 ++ b ++ r2)) /\ within L (run p (r1 ++ b ++ r2)) (run p (r1 ++ r2)).
Proof.
  induction b as [|y b IH]; [split; apply within_refl|]. destruct IH as [I1 I2].
  assert (Ha : adds y (r1 ++ b ++ r2) (r1 ++ (y :: b) ++ r2)) by (now exists r1, (b ++ r2)).
  destruct (transcript_add_remove p y _ _ Hp Ha) as [H1 H2].
  assert (Hb : forall t, 0 <= sum (fun y => spent AddRemove y p t) b)
    by (intros; apply sum_nonneg; intros; now apply spent_nonneg).
  assert (Hy : forall t, 0 <= spent AddRemove y p t) by (intros; now apply spent_nonneg).
  split.
  - eapply within_weaken; [|apply (within_trans _ _ _ _ _ Hy Hb I1 H1)]. intros t; simpl; lra.
  - exact (within_trans _ _ _ _ _ Hb Hy H2 I2).
Qed.

Lemma block_replace_one b : forall b' r1 r2, length b = length b' ->
  within (fun t => / 2 * (sum (fun y => spent ReplaceOne y p t) b + sum (fun y => spent ReplaceOne y p t) b'))
    (run p (r1 ++ b ++ r2)) (run p (r1 ++ b' ++ r2)).
Proof.
  induction b as [|y b IH]; intros [|y' b'] r1 r2 Hl; try discriminate.
  - eapply within_weaken; [|apply within_refl]. intros; simpl; lra.
  - assert (Hs : swaps y y' (r1 ++ (y :: b) ++ r2) (r1 ++ y' :: b ++ r2)) by (now exists r1, (b ++ r2)).
    pose proof (transcript_replace_one p y y' _ _ Hp Hs) as H1.
    specialize (IH b' (r1 ++ [y']) r2 ltac:(simpl in Hl; lia)). rewrite <- !app_assoc in IH. simpl in IH.
    assert (Hn : forall b t, 0 <= sum (fun y => spent ReplaceOne y p t) b)
      by (intros; apply sum_nonneg; intros; now apply spent_nonneg).
    eapply within_weaken; [|eapply (within_trans (pair_cost y y' p)); [| |exact H1|exact IH]].
    + intros t. cbn [sum fold_right]. pose proof (pair_cost_spent y y' p Hp t). unfold sum in *. lra.
    + intros t. pose proof (Hn b t). pose proof (Hn b' t). lra.
    + intros t. now apply pair_cost_nonneg.
Qed.
End Blocks.

Section Sharing.
Context {X O C : Type} (coin : dist C) (trees : C -> X -> list nat) (p : prog (X := nat * X) (O := O)).

Theorem sharing rel eps : honest p ->
  (rel = ReplaceOne -> forall c x x', length (trees c x) = length (trees c x')) ->
  (forall c x t, sum (fun y => spent rel y p t) (block trees c x) <= eps) ->
  private (neighbours rel) eps (dealt coin trees (run p)).
Proof.
  intros Hp Hl He. destruct rel.
  - apply private_everywhere, dealt_add_remove. intros c x r1 r2.
    destruct (block_add_remove p Hp (block trees c x) r1 r2) as [H1 H2].
    split; (eapply within_on; [intros t _; apply He|eassumption]).
  - apply private_everywhere, dealt_replace_one. intros c x x' r1 r2.
    eapply within_on; [|apply (block_replace_one p Hp (block trees c x) (block trees c x'))].
    + intros t _. pose proof (He c x t). pose proof (He c x' t). simpl in *. lra.
    + unfold block. rewrite !map_length. now apply Hl.
Qed.
End Sharing.

(** thm-assignment: the coin is the tree. *)
Definition own_tree {X} (k : nat) (_ : X) : list nat := [k].

Section Assignment.
Context {X O : Type} (coin : dist nat) (p : prog (X := nat * X) (O := O)) (Hp : honest p).

Theorem thm_assignment_add_remove eps : (forall k x t, spent AddRemove (k, x) p t <= eps) ->
  private add_remove eps (dealt coin own_tree (run p)).
Proof.
  intros H. apply (sharing coin own_tree p AddRemove eps Hp); [discriminate|]. intros c x t. simpl.
  rewrite Rplus_0_r. apply H.
Qed.
Theorem thm_assignment_replace_one eps : (forall k x x' t, pair_cost (k, x) (k, x') p t <= eps) ->
  private replace_one eps (dealt coin own_tree (run p)).
Proof.
  intros H. apply private_everywhere, dealt_replace_one. intros c x x' r1 r2.
  eapply within_on; [intros t _; apply (H c x x')|]. apply transcript_replace_one; [assumption|]. now exists r1, r2.
Qed.
End Assignment.

(** thm-parallel, by coin. *)
Section ParallelByCoin.
Context {X O : Type} (coin : dist nat) (M : nat -> list (nat * X) -> dist O) (alpha rho : nat -> R).
Hypothesis alpha_nonneg : forall t, 0 <= alpha t.
Hypothesis rho_nonneg : forall t, 0 <= rho t.
Hypothesis M_add_remove : forall t, private add_remove (alpha t) (M t).
Hypothesis M_replace_one : forall t, private replace_one (rho t) (M t).

Theorem thm_parallel_coin_add_remove T eps : 0 <= eps -> (forall t, (t < T)%nat -> alpha t <= eps) ->
  private add_remove eps (dealt coin own_tree (run (parts fst M alpha rho T))).
Proof.
  intros He H. apply thm_assignment_add_remove; [now apply parts_honest|]. intros k x t.
  eapply Rle_trans; [now apply parts_spent|]. destruct (Nat.ltb_spec (fst (k, x)) T); auto.
Qed.
Theorem thm_parallel_coin_replace_one T eps : 0 <= eps -> (forall t, (t < T)%nat -> rho t <= eps) ->
  private replace_one eps (dealt coin own_tree (run (parts fst M alpha rho T))).
Proof.
  intros He H. apply thm_assignment_replace_one; [now apply parts_honest|]. intros k x x' t.
  eapply Rle_trans; [now apply parts_pair_cost|]. simpl. rewrite Nat.eqb_refl.
  destruct (Nat.ltb_spec k T); auto.
Qed.
End ParallelByCoin.

(** thm-forest.  The nodes of tree k are those below [k]: a record's first turn is the tree that it was dealt to. *)
Section Master.
Context {X O C : Type} (coin : dist C) (trees : C -> X -> list nat).

Definition forest (g : tree (X := nat * X) (O := O)) : prog := grown (Split [] fst g).
Definition grow_forest (g : tree (X := nat * X) (O := O)) : list X -> dist (list O) := dealt coin trees (run (forest g)).

Lemma above_suffix v u : above v u = true -> exists w, u = w ++ v.
Proof.
  induction u as [|n u IH]; intros H.
  - exists []. now rewrite (above_nil v H).
  - apply above_cons in H as [->|H]; [now exists []|]. destruct (IH H) as [w ->]. now exists (n :: w).
Qed.

(** [trees]: all trees, or one by a coin or by a key.  [beta k]: what the dearest path of tree k spends. *)
Theorem thm_forest rel g beta eps : sound g ->
  (rel = ReplaceOne -> forall c x x', length (trees c x) = length (trees c x')) ->
  (forall k u t, path_cost rel (u ++ [k]) g t <= beta k) ->
  (forall c x, sum beta (trees c x) <= eps) ->
  private (neighbours rel) eps (grow_forest g).
Proof.
  intros Hs Hl Hb He. apply sharing; [now apply (sound_honest (Split [] fst g))|assumption|].
  intros c x t. eapply Rle_trans; [|apply (He c x)]. unfold block. rewrite sum_map. apply sum_mono. intros k _.
  eapply Rle_trans; [now apply (spent_path rel (Split [] fst g))|]. cbn [path_cost].
  set (place := move [] fst (fun _ : nat * X => [])).
  assert (Hk : place (k, x) = [k]) by reflexivity.
  destruct (above_suffix [k] (leaf g place t (k, x))) as [w Hw]; [rewrite <- Hk; apply leaf_below|].
  change (leaf (Split [] fst g) (fun _ => []) t (k, x)) with (leaf g place t (k, x)). rewrite Hw. apply Hb.
Qed.
End Master.

(** Every tree sees every record. *)
Definition nothing : dist unit := ret tt.
Definition all_trees {X} (T : nat) (_ : unit) (_ : X) : list nat := seq 0 T.
(** The tree that a key of the record tells. *)
Definition by_key {X} (key : X -> nat) (_ : unit) (x : X) : list nat := [key x].

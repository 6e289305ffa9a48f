(* book/privacy.md: one question after another, and questions to disjoint parts.
   A program asks, looks at the answer, and asks again.  Which query, of which part of the records, at what loss, is
   a function of earlier answers; whether a record is in the part depends on that record alone. *)
From Coq Require Import Reals Lra Psatz List Arith Bool Lia.
From DPForest Require Import Law Privacy.
Import ListNotations.
Open Scope R_scope.

Inductive relation := AddRemove | ReplaceOne.
Definition neighbours {X} (rel : relation) : list X -> list X -> Prop :=
  match rel with AddRemove => add_remove | ReplaceOne => replace_one end.

(** What a budget must be to pay for a query with loss alpha under add-remove and rho under replace-one:
    under replace-one, nobody ever has to ask where two paths part. *)
Definition price (rel : relation) (alpha rho : R) : R :=
  match rel with AddRemove => alpha | ReplaceOne => Rmax rho (2 * alpha) end.

Section Program.
Context {X O : Type}.

Inductive prog :=
| Done
| Ask (part : X -> bool) (q : list X -> dist O) (alpha rho : R) (next : O -> prog).

Fixpoint run (p : prog) (D : list X) : dist (list O) :=
  match p with
  | Done => ret []
  | Ask part q _ _ next => both cons (q (filter part D)) (fun o => run (next o) D)
  end.

(** Each query keeps its two promises. *)
Fixpoint honest (p : prog) : Prop :=
  match p with
  | Done => True
  | Ask _ q alpha rho next =>
      0 <= alpha /\ 0 <= rho /\ private add_remove alpha q /\ private replace_one rho q /\ forall o, honest (next o)
  end.

(** On a transcript: the budget that goes to queries of parts that hold x, ... *)
Fixpoint spent (rel : relation) (x : X) (p : prog) (t : list O) : R :=
  match p, t with
  | Ask part _ alpha rho next, o :: t => (if part x then price rel alpha rho else 0) + spent rel x (next o) t
  | _, _ => 0
  end.

(** ... and the loss if x is exchanged for x'. *)
Fixpoint pair_cost (x x' : X) (p : prog) (t : list O) : R :=
  match p, t with
  | Ask part _ alpha rho next, o :: t =>
      (match part x, part x' with true, true => rho | false, false => 0 | _, _ => alpha end) + pair_cost x x' (next o) t
  | _, _ => 0
  end.

Lemma price_nonneg rel alpha rho : 0 <= alpha -> 0 <= rho -> 0 <= price rel alpha rho.
Proof. destruct rel; simpl; intros; [assumption|]. pose proof (Rmax_l rho (2 * alpha)). lra. Qed.

Lemma spent_nonneg rel x p : honest p -> forall t, 0 <= spent rel x p t.
Proof.
  induction p as [|part q al rh next IH]; intros H t; simpl; [lra|].
  destruct H as (Ha & Hr & _ & _ & Hn). destruct t as [|o t]; [lra|].
  specialize (IH o (Hn o) t). pose proof (price_nonneg rel al rh Ha Hr). destruct (part x); lra.
Qed.
Lemma pair_cost_nonneg x x' p : honest p -> forall t, 0 <= pair_cost x x' p t.
Proof.
  induction p as [|part q al rh next IH]; intros H t; simpl; [lra|].
  destruct H as (Ha & Hr & _ & _ & Hn). destruct t as [|o t]; [lra|].
  specialize (IH o (Hn o) t). destruct (part x), (part x'); lra.
Qed.

(** Whether the others are in a part is no business of x. *)
Lemma filter_adds (part : X -> bool) x D D' : adds x D D' ->
  if part x then adds x (filter part D) (filter part D') else filter part D = filter part D'.
Proof.
  intros (l1 & l2 & -> & ->). rewrite !filter_app. simpl. destruct (part x); [|reflexivity].
  now exists (filter part l1), (filter part l2).
Qed.
Lemma filter_swaps (part : X -> bool) x x' D D' : swaps x x' D D' ->
  match part x, part x' with
  | true, true => swaps x x' (filter part D) (filter part D')
  | true, false => adds x (filter part D') (filter part D)
  | false, true => adds x' (filter part D) (filter part D')
  | false, false => filter part D = filter part D'
  end.
Proof.
  intros (l1 & l2 & -> & ->). rewrite !filter_app. simpl.
  destruct (part x), (part x'); try reflexivity; now exists (filter part l1), (filter part l2).
Qed.

Lemma private_within N eps (M : list X -> dist O) D D' : private N eps M -> N D D' -> within (fun _ => eps) (M D) (M D').
Proof. intros H HN. apply within_const. exact (H D D' HN). Qed.

(** Transcript by transcript. *)
Theorem transcript_add_remove p x D D' : honest p -> adds x D D' ->
  within (spent AddRemove x p) (run p D) (run p D') /\ within (spent AddRemove x p) (run p D') (run p D).
Proof.
  intros Hp Had. induction p as [|part q al rh next IH].
  - split; apply within_refl.
  - destruct Hp as (Ha & Hr & Hqa & Hqr & Hn). set (u := if part x then al else 0).
    assert (Hq : within (fun _ => u) (q (filter part D)) (q (filter part D')) /\
                 within (fun _ => u) (q (filter part D')) (q (filter part D))).
    { pose proof (filter_adds part x D D' Had) as H. unfold u. destruct (part x).
      - split; apply (private_within _ _ _ _ _ Hqa); exists x; auto.
      - rewrite H. split; apply within_refl. }
    assert (Hu : 0 <= u) by (unfold u; destruct (part x); lra).
    split; apply within_both with (a := u) (V := fun o t => spent AddRemove x (next o) t); try tauto;
      try reflexivity; try (intros o t; apply spent_nonneg, Hn); intros o; apply (IH o (Hn o)).
Qed.

Theorem transcript_replace_one p x x' D D' : honest p -> swaps x x' D D' ->
  within (pair_cost x x' p) (run p D) (run p D').
Proof.
  intros Hp Hsw. induction p as [|part q al rh next IH].
  - apply within_refl.
  - destruct Hp as (Ha & Hr & Hqa & Hqr & Hn).
    set (u := match part x, part x' with true, true => rh | false, false => 0 | _, _ => al end).
    apply within_both with (a := u) (V := fun o t => pair_cost x x' (next o) t).
    + unfold u; destruct (part x), (part x'); lra.
    + intros o t. apply pair_cost_nonneg, Hn.
    + reflexivity.
    + pose proof (filter_swaps part x x' D D' Hsw) as H. unfold u. destruct (part x), (part x').
      * apply (private_within _ _ _ _ _ Hqr). now exists x, x'.
      * apply (private_within _ _ _ _ _ Hqa). exists x; auto.
      * apply (private_within _ _ _ _ _ Hqa). exists x'; auto.
      * rewrite H. apply within_refl.
    + intros o. apply (IH o (Hn o)).
Qed.

(** The promise: no record, and no exchange of two, costs more than eps on any transcript. *)
Theorem program_add_remove p eps : honest p -> (forall x t, spent AddRemove x p t <= eps) ->
  private add_remove eps (run p).
Proof.
  intros Hp He D D' [x [H|H]]; destruct (transcript_add_remove p x _ _ Hp H) as [H1 H2];
    apply within_const; eapply within_weaken; [apply (He x)|exact H1|apply (He x)|exact H2].
Qed.
Theorem program_replace_one p eps : honest p -> (forall x x' t, pair_cost x x' p t <= eps) ->
  private replace_one eps (run p).
Proof.
  intros Hp He D D' (x & x' & H). apply within_const.
  eapply within_weaken; [apply (He x x')|now apply (transcript_replace_one p x x')].
Qed.

(** Prices: an exchange costs at most the mean of what its two records have spent. *)
Lemma pair_cost_spent x x' p : honest p -> forall t,
  2 * pair_cost x x' p t <= spent ReplaceOne x p t + spent ReplaceOne x' p t.
Proof.
  induction p as [|part q al rh next IH]; intros H t; simpl; [lra|].
  destruct H as (Ha & Hr & _ & _ & Hn). destruct t as [|o t]; [lra|]. specialize (IH o (Hn o) t).
  pose proof (Rmax_l rh (2 * al)). pose proof (Rmax_r rh (2 * al)). destruct (part x), (part x'); lra.
Qed.

(** thm-sequential: every round asks all records. *)
Fixpoint asks_all (p : prog) : Prop :=
  match p with Done => True | Ask part _ _ _ next => (forall x, part x = true) /\ forall o, asks_all (next o) end.
Fixpoint total (rel : relation) (p : prog) (t : list O) : R :=
  match p, t with
  | Ask _ _ alpha rho next, o :: t => (match rel with AddRemove => alpha | ReplaceOne => rho end) + total rel (next o) t
  | _, _ => 0
  end.
Lemma total_spent p x x' : asks_all p -> forall t,
  spent AddRemove x p t = total AddRemove p t /\ pair_cost x x' p t = total ReplaceOne p t.
Proof.
  induction p as [|part q al rh next IH]; simpl; [auto|]. intros [Hp Hn] [|o t]; [auto|].
  destruct (IH o (Hn o) t) as [-> ->]. rewrite !Hp. auto.
Qed.
Theorem thm_sequential rel p eps : honest p -> asks_all p -> (forall t, total rel p t <= eps) ->
  private (neighbours rel) eps (run p).
Proof.
  intros Hp Ha Ht. destruct rel; [apply program_add_remove|apply program_replace_one]; auto.
  - intros x t. rewrite (proj1 (total_spent p x x Ha t)). apply Ht.
  - intros x x' t. rewrite (proj2 (total_spent p x x' Ha t)). apply Ht.
Qed.
End Program.

(** thm-parallel, by value: part (x) is a fixed function of the record, and parts 0 .. T-1 are asked once each. *)
Section Parallel.
Context {X O : Type} (part : X -> nat) (M : nat -> list X -> dist O) (alpha rho : nat -> R).

Fixpoint parts (T : nat) : prog (X := X) (O := O) :=
  match T with
  | 0%nat => Done
  | S t => Ask (fun x => part x =? t) (M t) (alpha t) (rho t) (fun _ => parts t)
  end.

Hypothesis alpha_nonneg : forall t, 0 <= alpha t.
Hypothesis rho_nonneg : forall t, 0 <= rho t.
Hypothesis M_add_remove : forall t, private add_remove (alpha t) (M t).
Hypothesis M_replace_one : forall t, private replace_one (rho t) (M t).

Lemma parts_honest T : honest (parts T).
Proof. induction T; simpl; auto 6. Qed.

Lemma parts_spent x T : forall t, spent AddRemove x (parts T) t <= if part x <? T then alpha (part x) else 0.
Proof.
  induction T as [|T IH]; intros t; [simpl; lra|]. destruct t as [|o t].
  - simpl. specialize (alpha_nonneg (part x)). destruct (part x <? S T); lra.
  - simpl spent. specialize (IH t). pose proof (alpha_nonneg (part x)).
    revert IH. destruct (Nat.eqb_spec (part x) T) as [E|N];
      destruct (Nat.ltb_spec (part x) T), (Nat.ltb_spec (part x) (S T)); try lia; simpl; try rewrite <- E; lra.
Qed.

Theorem thm_parallel_add_remove T eps : 0 <= eps -> (forall t, (t < T)%nat -> alpha t <= eps) ->
  private add_remove eps (run (parts T)).
Proof.
  intros He H. apply program_add_remove; [apply parts_honest|]. intros x t.
  eapply Rle_trans; [apply parts_spent|]. destruct (Nat.ltb_spec (part x) T); auto.
Qed.

Lemma parts_pair_cost x x' T : forall t, pair_cost x x' (parts T) t <=
  if part x =? part x' then (if part x <? T then rho (part x) else 0)
  else (if part x <? T then alpha (part x) else 0) + (if part x' <? T then alpha (part x') else 0).
Proof.
  induction T as [|T IH]; intros t; [simpl; destruct (part x =? part x'); lra|].
  pose proof (alpha_nonneg (part x)). pose proof (alpha_nonneg (part x')). pose proof (rho_nonneg (part x)).
  destruct t as [|o t].
  - simpl. destruct (part x =? part x'), (part x <? S T), (part x' <? S T); lra.
  - simpl pair_cost. specialize (IH t). revert IH.
    destruct (Nat.eqb_spec (part x) (part x')) as [E|N].
    + rewrite <- E. destruct (Nat.eqb_spec (part x) T) as [E1|N1];
        destruct (Nat.ltb_spec (part x) T), (Nat.ltb_spec (part x) (S T)); try lia; try rewrite <- E1; lra.
    + destruct (Nat.eqb_spec (part x) T) as [E1|N1], (Nat.eqb_spec (part x') T) as [E2|N2]; try congruence;
        destruct (Nat.ltb_spec (part x) T), (Nat.ltb_spec (part x) (S T)), (Nat.ltb_spec (part x') T), (Nat.ltb_spec (part x') (S T));
        try lia; try rewrite <- E1; try rewrite <- E2; lra.
Qed.

Theorem thm_parallel_replace_one T eps : 0 <= eps -> (forall t, (t < T)%nat -> rho t <= eps) ->
  (forall t, (t < T)%nat -> alpha t <= eps) ->
  (forall t u, (t < T)%nat -> (u < T)%nat -> t <> u -> alpha t + alpha u <= eps) ->
  private replace_one eps (run (parts T)).
Proof.
  intros He Hr Ha Hau. apply program_replace_one; [apply parts_honest|]. intros x x' t.
  eapply Rle_trans; [apply parts_pair_cost|]. destruct (Nat.eqb_spec (part x) (part x')) as [E|N].
  - destruct (Nat.ltb_spec (part x) T); auto.
  - destruct (Nat.ltb_spec (part x) T), (Nat.ltb_spec (part x') T); rewrite ?Rplus_0_l, ?Rplus_0_r; auto.
Qed.
End Parallel.

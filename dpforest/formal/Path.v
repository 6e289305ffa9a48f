(* book/privacy.md, "A tree of questions": a tree that grows in rounds costs its dearest path. *)
From Coq Require Import Reals Lra Psatz List Arith Bool Lia.
From DPForest Require Import Law Privacy Program.
Import ListNotations.
Open Scope R_scope.

(** A node is its path from the root, last turn first. *)
Definition node := list nat.
Definition node_eq : forall u v : node, {u = v} + {u <> v} := list_eq_dec Nat.eq_dec.
Arguments node_eq _ _ : simpl never.

(** [above v u]: v is u or an ancestor of u. *)
Fixpoint above (v u : node) : bool :=
  if node_eq v u then true else match u with [] => false | _ :: u => above v u end.

Lemma above_refl v : above v v = true.
Proof. destruct v as [|n v]; simpl; [destruct (node_eq [] [])|destruct (node_eq (n :: v) (n :: v))]; congruence. Qed.
Lemma above_nil v : above v [] = true -> v = [].
Proof. simpl. destruct (node_eq v []); congruence. Qed.
Lemma above_cons v n u : above v (n :: u) = true <-> v = n :: u \/ above v u = true.
Proof. simpl. destruct (node_eq v (n :: u)); intuition congruence. Qed.
Lemma above_trans v w u : above v w = true -> above w u = true -> above v u = true.
Proof.
  intros H. induction u as [|n u IH]; intros H'.
  - now rewrite (above_nil w H') in H.
  - apply above_cons in H' as [->|H']; [assumption|]. apply above_cons. auto.
Qed.
Lemma above_comparable v w u : above v u = true -> above w u = true -> above v w = true \/ above w v = true.
Proof.
  induction u as [|n u IH]; intros H H'.
  - rewrite (above_nil v H), (above_nil w H'). auto using above_refl.
  - apply above_cons in H as [->|H]; [auto|]. apply above_cons in H' as [->|H']; [|auto].
    left. apply above_cons. auto.
Qed.
Lemma above_length v u : above v u = true -> (length v <= length u)%nat /\ (length v = length u -> v = u).
Proof.
  induction u as [|n u IH]; intros H.
  - rewrite (above_nil v H). auto.
  - apply above_cons in H as [->|H]; [auto|]. destruct (IH H). simpl. split; intros; lia.
Qed.

Section Growing.
Context {X O : Type}.

(** Everything that is decided is a function of earlier answers: the next node, the query, its losses, and how a node
    sends records on.  The turn that a record takes depends on that record alone. *)
Inductive tree :=
| Stop
| Query (v : node) (q : list X -> dist O) (alpha rho : R) (next : O -> tree)
| Split (v : node) (turn : X -> nat) (next : tree).

Definition move (v : node) (turn : X -> nat) (place : X -> node) (x : X) : node :=
  if node_eq (place x) v then turn x :: v else place x.

(** A query at v reads the records that reach v. *)
Fixpoint grow (g : tree) (place : X -> node) : prog (X := X) (O := O) :=
  match g with
  | Stop => Done
  | Query v q alpha rho next => Ask (fun x => above v (place x)) q alpha rho (fun o => grow (next o) place)
  | Split v turn next => grow next (move v turn place)
  end.
Definition grown (g : tree) : prog (X := X) (O := O) := grow g (fun _ => []).

Fixpoint sound (g : tree) : Prop :=
  match g with
  | Stop => True
  | Query _ q alpha rho next =>
      0 <= alpha /\ 0 <= rho /\ private add_remove alpha q /\ private replace_one rho q /\ forall o, sound (next o)
  | Split _ _ next => sound next
  end.

(** The cost of the path from the root to u on transcript t, and of a pair of paths. *)
Fixpoint path_cost (rel : relation) (u : node) (g : tree) (t : list O) : R :=
  match g, t with
  | Query v _ alpha rho next, o :: t => (if above v u then price rel alpha rho else 0) + path_cost rel u (next o) t
  | Split _ _ next, t => path_cost rel u next t
  | _, _ => 0
  end.
Fixpoint two_paths_cost (u u' : node) (g : tree) (t : list O) : R :=
  match g, t with
  | Query v _ alpha rho next, o :: t =>
      (match above v u, above v u' with true, true => rho | false, false => 0 | _, _ => alpha end)
      + two_paths_cost u u' (next o) t
  | Split _ _ next, t => two_paths_cost u u' next t
  | _, _ => 0
  end.

(** Where a record stands in the end. *)
Fixpoint leaf (g : tree) (place : X -> node) (t : list O) : X -> node :=
  match g, t with
  | Query _ _ _ _ next, o :: t => leaf (next o) place t
  | Split v turn next, t => leaf next (move v turn place) t
  | _, _ => place
  end.

Lemma sound_honest g : sound g -> forall place, honest (grow g place).
Proof. induction g; simpl; intros; intuition auto. Qed.

Lemma leaf_below g : forall place t x, above (place x) (leaf g place t x) = true.
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; intros place t x; simpl; [apply above_refl| |].
  - destruct t; [apply above_refl|apply IH].
  - eapply above_trans; [|apply IH]. unfold move. destruct (node_eq (place x) v) as [<-|]; [|apply above_refl].
    apply above_cons. right. apply above_refl.
Qed.

Lemma path_cost_nonneg rel u g : sound g -> forall t, 0 <= path_cost rel u g t.
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; simpl; intros H t; [lra| |auto].
  destruct H as (Ha & Hr & _ & _ & Hn). destruct t as [|o t]; [lra|].
  specialize (IH o (Hn o) t). pose proof (price_nonneg rel al rh Ha Hr). destruct (above v u); lra.
Qed.
Lemma two_paths_nonneg u u' g : sound g -> forall t, 0 <= two_paths_cost u u' g t.
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; simpl; intros H t; [lra| |auto].
  destruct H as (Ha & Hr & _ & _ & Hn). destruct t as [|o t]; [lra|].
  specialize (IH o (Hn o) t). destruct (above v u), (above v u'); lra.
Qed.

Lemma spent_path rel g : sound g -> forall place t x,
  spent rel x (grow g place) t <= path_cost rel (leaf g place t x) g t.
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; simpl; intros H place t x; [lra| |auto].
  destruct H as (Ha & Hr & _ & _ & Hn). destruct t as [|o t]; [lra|].
  specialize (IH o (Hn o) place t x). pose proof (price_nonneg rel al rh Ha Hr).
  destruct (above v (place x)) eqn:Hv.
  - rewrite (above_trans _ _ _ Hv (leaf_below (next o) place t x)). lra.
  - destruct (above v (leaf (next o) place t x)); lra.
Qed.

(** Nobody stands at an ancestor of the place of somebody else: this is what keeps two paths apart once they part. *)
Definition frontier (place : X -> node) := forall x y, above (place x) (place y) = true -> place x = place y.

Lemma frontier_move v turn place : frontier place -> frontier (move v turn place).
Proof.
  intros F x y. unfold move. destruct (node_eq (place x) v) as [Ex|Nx], (node_eq (place y) v) as [Ey|Ny]; intros H.
  - apply (above_length _ _ H). reflexivity.
  - exfalso. apply Ny. rewrite <- Ex. symmetry. apply F. rewrite Ex.
    eapply above_trans; [|exact H]. apply above_cons. right. apply above_refl.
  - exfalso. apply Nx. rewrite <- Ey. apply above_cons in H as [H|H].
    + symmetry. apply F. rewrite H, Ey. apply above_cons. right. apply above_refl.
    + apply F. now rewrite Ey.
  - auto.
Qed.

Lemma pair_cost_paths g : sound g -> forall place t x x', frontier place ->
  pair_cost x x' (grow g place) t <= two_paths_cost (leaf g place t x) (leaf g place t x') g t.
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; simpl; intros H place t x x' F;
    [lra| |auto using frontier_move].
  destruct H as (Ha & Hr & _ & _ & Hn). destruct t as [|o t]; [lra|].
  specialize (IH o (Hn o) place t x x' F).
  assert (Hs : forall y y', above v (place y) = true -> above v (leaf (next o) place t y') = true ->
    above v (place y') = true).
  { intros y y' Hy Hy'. destruct (above_comparable _ _ _ Hy' (leaf_below (next o) place t y')) as [K|K]; [assumption|].
    rewrite (F y' y); [assumption|]. eapply above_trans; eassumption. }
  pose proof (leaf_below (next o) place t x) as Lx. pose proof (leaf_below (next o) place t x') as Lx'.
  destruct (above v (place x)) eqn:Hx, (above v (place x')) eqn:Hx'.
  - rewrite (above_trans _ _ _ Hx Lx), (above_trans _ _ _ Hx' Lx'). lra.
  - rewrite (above_trans _ _ _ Hx Lx).
    destruct (above v (leaf (next o) place t x')) eqn:K; [|lra].
    rewrite (Hs x x' Hx K) in Hx'. discriminate.
  - rewrite (above_trans _ _ _ Hx' Lx').
    destruct (above v (leaf (next o) place t x)) eqn:K; [|lra].
    rewrite (Hs x' x Hx' K) in Hx. discriminate.
  - destruct (above v (leaf _ _ _ x)), (above v (leaf _ _ _ x')); lra.
Qed.

Theorem thm_path_add_remove g eps : sound g -> (forall u t, path_cost AddRemove u g t <= eps) ->
  private add_remove eps (run (grown g)).
Proof.
  intros H He. apply program_add_remove; [now apply sound_honest|]. intros x t.
  eapply Rle_trans; [now apply spent_path|apply He].
Qed.

Theorem thm_path_replace_one g eps : sound g -> (forall u u' t, two_paths_cost u u' g t <= eps) ->
  private replace_one eps (run (grown g)).
Proof.
  intros H He. apply program_replace_one; [now apply sound_honest|]. intros x x' t.
  eapply Rle_trans; [apply pair_cost_paths; [assumption|]|apply He].
  intros y y' _. reflexivity.
Qed.
End Growing.

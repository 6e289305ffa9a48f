(* book/privacy.md, "An account": an analyst asks as long as budgets last.  Which mechanism, and at what budget, is a
   function of earlier answers; a charge that would exceed what is left is refused, and what comes next may depend on
   that, too. *)
From Coq Require Import Reals Lra Psatz List.
From DPForest Require Import Law Privacy.
Import ListNotations.
Open Scope R_scope.

(** (epsilon, delta), by tests with values between 0 and 1. *)
Definition nearly {O} (eps delta : R) (P Q : dist O) : Prop := forall f, test 1 f -> E P f <= exp eps * E Q f + delta.
Definition approximate {X O} (N : list X -> list X -> Prop) (eps delta : R) (M : list X -> dist O) : Prop :=
  forall D D', N D D' -> nearly eps delta (M D) (M D').

Lemma nearly_pure {O} eps (P Q : dist O) : nearly eps 0 P Q <-> close eps P Q.
Proof.
  split.
  - intros H B f Hf. pose proof (test_bound P B f Hf) as HB. destruct (Req_dec B 0) as [->|HB0].
    + rewrite (E_ext P f (fun _ => 0)), (E_ext Q f (fun _ => 0)) by (intros x; specialize (Hf x); lra).
      rewrite !E_const by lra. lra.
    + assert (Hi : 0 < / B) by (apply Rinv_0_lt_compat; lra).
      assert (Ht : test 1 (fun x => / B * f x)).
      { intros x. specialize (Hf x). split; [apply Rmult_le_pos; lra|]. rewrite <- (Rinv_l B) by lra.
        apply Rmult_le_compat_l; lra. }
      specialize (H _ Ht). rewrite !(E_scale _ B) in H by (try assumption; lra).
      apply Rmult_le_reg_l with (/ B); [assumption|]. lra.
  - intros H f Hf. specialize (H 1 f Hf). lra.
Qed.

(** The second answer loses at most what is left, whatever the first one was. *)
Lemma nearly_both {O Z Y} (h : O -> Z -> Y) a d v c (P Q : dist O) (K K' : O -> dist Z) : 0 <= v -> 0 <= c ->
  nearly a d P Q -> (forall o, nearly v c (K o) (K' o)) -> nearly (a + v) (d + c) (both h P K) (both h Q K').
Proof.
  intros Hv Hc HP HK f Hf. rewrite !E_both. set (k := fun o => E (K o) (fun z => f (h o z))).
  set (k' := fun o => E (K' o) (fun z => f (h o z))).
  assert (Hk : test 1 k) by (intros o; apply E_range; intros z; apply Hf).
  assert (Hk' : test 1 k') by (intros o; apply E_range; intros z; apply Hf).
  set (g := fun o => Rmin 1 (exp v * k' o)). pose proof (exp_pos v) as Hev.
  assert (Hg : test 1 g).
  { intros o. unfold g. pose proof (Hk' o). split; [apply Rmin_glb; [lra|nra]|apply Rmin_l]. }
  assert (Hkg : forall o, k o <= g o + c).
  { intros o. pose proof (HK o (fun z => f (h o z)) (fun z => Hf _)) as H. fold (k o) (k' o) in H. pose proof (Hk o).
    unfold g, Rmin. destruct (Rle_dec 1 (exp v * k' o)); lra. }
  assert (H1 : E P k <= E P g + c).
  { rewrite <- (E_const P c) by assumption. rewrite <- (E_plus P (1 + c)).
    - apply (E_mono P (1 + c)); [intros o; pose proof (Hk o); lra|intros o; pose proof (Hg o); lra|exact Hkg].
    - intros o. pose proof (Hg o). lra.
    - intros o. lra. }
  assert (H2 : E Q g <= exp v * E Q k').
  { apply (E_le_scale Q 1); [lra|assumption|assumption|]. intros o. apply Rmin_r. }
  pose proof (HP g Hg) as H3. pose proof (exp_pos a). rewrite exp_plus. nra.
Qed.

Section Account.
Context {X O : Type}.

(** A mechanism with the epsilon and delta that it is charged, then what is next: [None], if it was refused. *)
Inductive analyst :=
| Leave
| Charge (M : list X -> dist O) (e d : R) (next : option O -> analyst).

Definition left_for (e eps d delta : R) : {e <= eps /\ d <= delta} + {~ (e <= eps /\ d <= delta)}.
Proof. destruct (Rle_dec e eps), (Rle_dec d delta); tauto. Defined.
Fixpoint account (eps delta : R) (p : analyst) (D : list X) : dist (list (option O)) :=
  match p with
  | Leave => ret []
  | Charge M e d next =>
      if left_for e eps d delta
      then both (fun o t => Some o :: t) (M D) (fun o => account (eps - e) (delta - d) (next (Some o)) D)
      else bind (account eps delta (next None) D) (fun t => ret (None :: t))
  end.

(** Each mechanism keeps what it is charged. *)
Fixpoint as_charged (N : list X -> list X -> Prop) (p : analyst) : Prop :=
  match p with
  | Leave => True
  | Charge M e d next => 0 <= e /\ 0 <= d /\ approximate N e d M /\ forall o, as_charged N (next o)
  end.

Lemma nearly_refused eps delta (P Q : dist (list (option O))) : nearly eps delta P Q ->
  nearly eps delta (bind P (fun t => ret (None :: t))) (bind Q (fun t => ret (None :: t))).
Proof. intros H f Hf. simpl. apply (H (fun t => f (None :: t))). intros t. apply Hf. Qed.

Theorem thm_account N p : as_charged N p -> forall eps delta, 0 <= eps -> 0 <= delta ->
  approximate N eps delta (account eps delta p).
Proof.
  induction p as [|M e d next IH]; intros Hp eps delta He Hd D D' HN.
  - intros f Hf. simpl. pose proof (exp_ge_1 eps He). specialize (Hf []). nra.
  - destruct Hp as (He0 & Hd0 & HM & Hn). cbn [account].
    destruct (left_for e eps d delta) as [[Hle Hle']|]; [|apply nearly_refused, IH; auto].
    replace eps with (e + (eps - e)) at 1 by ring. replace delta with (d + (delta - d)) at 1 by ring.
    apply nearly_both; [lra|lra|exact (HM D D' HN)|]. intros o. apply IH; auto; lra.
Qed.

(** Without deltas. *)
Theorem thm_account_pure N p eps : as_charged N p -> 0 <= eps -> private N eps (account eps 0 p).
Proof. intros Hp He D D' HN. apply nearly_pure. exact (thm_account N p Hp eps 0 He (Rle_refl 0) D D' HN). Qed.

(** What a mechanism keeps under add-remove, under replace-one. *)
Theorem thm_account_replace_one eps delta (M : list X -> dist O) :
  approximate add_remove eps delta M -> approximate replace_one (2 * eps) ((1 + exp eps) * delta) M.
Proof.
  intros H D D' (x & x' & l1 & l2 & -> & ->) f Hf.
  assert (H1 : add_remove (l1 ++ x :: l2) (l1 ++ l2)) by (exists x; right; now exists l1, l2).
  assert (H2 : add_remove (l1 ++ l2) (l1 ++ x' :: l2)) by (exists x'; left; now exists l1, l2).
  pose proof (H _ _ H1 f Hf). pose proof (H _ _ H2 f Hf). pose proof (exp_pos eps).
  replace (2 * eps) with (eps + eps) by ring. rewrite exp_plus. nra.
Qed.
End Account.

(* book/privacy.md: neighbours, the promise, what an observer can reach, functions of the answer, groups.
   "Testing" with functions instead of single outputs makes composition one line; def_privacy at the end says that
   the two promises are the same one. *)
From Coq Require Import Reals Lra Psatz List.
From DPForest Require Import Law.
Import ListNotations.
Open Scope R_scope.

(** * Neighbours: a record is inserted, or exchanged, anywhere in a list of rows *)
Section Neighbours.
Context {X : Type}.
Definition adds (x : X) (D D' : list X) := exists l1 l2, D = l1 ++ l2 /\ D' = l1 ++ x :: l2.
Definition swaps (x x' : X) (D D' : list X) := exists l1 l2, D = l1 ++ x :: l2 /\ D' = l1 ++ x' :: l2.
Definition add_remove (D D' : list X) := exists x, adds x D D' \/ adds x D' D.
Definition replace_one (D D' : list X) := exists x x', swaps x x' D D'.
End Neighbours.

(** [within L P Q]: under P a test is at most e^L times as likely as under Q; L may depend on the outcome. *)
Definition within {O} (L : O -> R) (P Q : dist O) : Prop :=
  forall B f, test B f -> test B (fun o => exp (L o) * f o) -> E P f <= E Q (fun o => exp (L o) * f o).

(** The promise: M has loss at most eps under the relation N. *)
Definition close {O} (eps : R) (P Q : dist O) : Prop := forall B f, test B f -> E P f <= exp eps * E Q f.
Definition private {X O} (N : list X -> list X -> Prop) (eps : R) (M : list X -> dist O) : Prop :=
  forall D D', N D D' -> close eps (M D) (M D').

(** The promise about outputs of S alone: tests are 0 elsewhere. *)
Definition close_on {O} (S : O -> Prop) (eps : R) (P Q : dist O) : Prop :=
  forall B f, test B f -> (forall o, f o <> 0 -> S o) -> E P f <= exp eps * E Q f.
Definition private_on {X O} (S : O -> Prop) (N : list X -> list X -> Prop) (eps : R) (M : list X -> dist O) : Prop :=
  forall D D', N D D' -> close_on S eps (M D) (M D').
(** (epsilon, delta), by tests with values between 0 and 1. *)
Definition nearly_on {O} (S : O -> Prop) (eps delta : R) (P Q : dist O) : Prop :=
  forall f, test 1 f -> (forall o, f o <> 0 -> S o) -> E P f <= exp eps * E Q f + delta.
Definition approximate_on {X O} (S : O -> Prop) (N : list X -> list X -> Prop) (eps delta : R) (M : list X -> dist O) :
  Prop := forall D D', N D D' -> nearly_on S eps delta (M D) (M D').
Lemma private_everywhere {X O} (N : list X -> list X -> Prop) eps (M : list X -> dist O) :
  private_on (fun _ => True) N eps M <-> private N eps M.
Proof.
  split; intros H D D' HN B f Hf; [exact (H D D' HN B f Hf (fun _ _ => I))|intros _; exact (H D D' HN B f Hf)].
Qed.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H|H]; [left; now apply exp_increasing|subst; lra]. Qed.
Lemma exp_ge_1 x : 0 <= x -> 1 <= exp x.
Proof. intros H. rewrite <- exp_0. now apply exp_le. Qed.

Lemma test_scaled {A} B c (f : A -> R) : test B f -> 0 <= c -> test (c * B) (fun x => c * f x).
Proof. intros H Hc x. specialize (H x). nra. Qed.
Lemma test_more {A} B B' (f : A -> R) : B <= B' -> test B f -> test B' f.
Proof. intros H Hf x. specialize (Hf x). lra. Qed.

Section Within.
Context {O : Type}.
Implicit Types P Q S : dist O.

Lemma within_const eps P Q :
  within (fun _ => eps) P Q <-> close eps P Q.
Proof.
  pose proof (exp_pos eps) as He. split; intros H B f Hf.
  - pose proof (test_bound P B f Hf) as HB.
    rewrite <- (E_scale Q B) by (try assumption; lra).
    apply (H (B + exp eps * B)).
    + apply (test_more B); [nra|assumption].
    + apply (test_more (exp eps * B)); [lra|]. apply test_scaled; [assumption|lra].
  - intros _. rewrite (E_scale Q B) by (try assumption; lra). now apply (H B).
Qed.

(** Where the loss is at most eps. *)
Lemma within_on (S : O -> Prop) L eps P Q : (forall o, S o -> L o <= eps) -> within L P Q -> close_on S eps P Q.
Proof.
  intros HL H B f Hf HS. pose proof (test_bound P B f Hf) as HB. pose proof (exp_pos eps) as He.
  assert (Hle : forall o, 0 <= exp (L o) * f o <= exp eps * f o).
  { intros o. specialize (Hf o). pose proof (exp_pos (L o)). split; [nra|].
    destruct (Req_dec (f o) 0) as [->|Hne]; [lra|]. apply Rmult_le_compat_r; [lra|]. now apply exp_le, HL, HS. }
  assert (Hs : test (exp eps * B) (fun o => exp eps * f o)) by (apply test_scaled; [assumption|lra]).
  rewrite <- (E_scale Q B) by (try assumption; lra). eapply Rle_trans; [apply (H (B + exp eps * B))|].
  - apply (test_more B); [nra|assumption].
  - intros o. specialize (Hle o). specialize (Hs o). nra.
  - apply (E_mono Q (exp eps * B)); [intros o; specialize (Hle o); specialize (Hs o); lra|assumption|apply Hle].
Qed.

Lemma within_refl P : within (fun _ => 0) P P.
Proof. apply within_const. intros B f Hf. rewrite exp_0. lra. Qed.

Lemma within_weaken L L' P Q : (forall o, L o <= L' o) -> within L P Q -> within L' P Q.
Proof.
  intros H HPQ B f Hf Hw.
  assert (Hle : forall o, exp (L o) * f o <= exp (L' o) * f o).
  { intros o. apply Rmult_le_compat_r; [apply Hf|apply exp_le, H]. }
  assert (Ht : test B (fun o => exp (L o) * f o)).
  { intros o. specialize (Hle o). specialize (Hw o). specialize (Hf o). pose proof (exp_pos (L o)). split; [nra|lra]. }
  eapply Rle_trans; [apply (HPQ B); assumption|]. now apply (E_mono Q B).
Qed.

Lemma within_trans L L' P Q S : (forall o, 0 <= L' o) -> (forall o, 0 <= L o) ->
  within L P Q -> within L' Q S -> within (fun o => L o + L' o) P S.
Proof.
  intros H' H0 H1 H2 B f Hf Hw.
  assert (Ht : test B (fun o => exp (L o) * f o)).
  { intros o. specialize (Hw o). specialize (Hf o). cbv beta in *. rewrite exp_plus in Hw.
    pose proof (exp_pos (L o)). pose proof (exp_ge_1 (L' o) (H' o)). split; [nra|].
    assert (0 <= exp (L o) * f o) by nra. nra. }
  assert (He : forall o, exp (L' o) * (exp (L o) * f o) = exp (L o + L' o) * f o) by (intros; rewrite exp_plus; ring).
  eapply Rle_trans; [apply (H1 B); assumption|]. eapply Rle_trans; [apply (H2 B); [assumption|]|].
  - intros o. rewrite He. apply Hw.
  - apply Req_le, E_ext, He.
Qed.
End Within.

(** The step on which everything rests: one more round adds its loss, whatever was chosen. *)
Lemma within_both {O Z Y} (h : O -> Z -> Y) (a : R) (V : O -> Z -> R) (W : Y -> R) P Q K K' :
  0 <= a -> (forall o z, 0 <= V o z) -> (forall o z, W (h o z) = a + V o z) ->
  within (fun _ => a) P Q -> (forall o, within (V o) (K o) (K' o)) ->
  within W (both h P K) (both h Q K').
Proof.
  intros Ha HV HW HP HK B f Hf Hw. rewrite !E_both. pose proof (exp_ge_1 a Ha) as Hea.
  assert (Heq : forall o z, exp a * (exp (V o z) * f (h o z)) = exp (W (h o z)) * f (h o z))
    by (intros; rewrite HW, exp_plus; ring).
  assert (Ht : forall o, test B (fun z => exp (V o z) * f (h o z))).
  { intros o z. specialize (Hw (h o z)). cbv beta in Hw. rewrite <- Heq in Hw. specialize (Hf (h o z)).
    pose proof (exp_pos (V o z)). assert (0 <= exp (V o z) * f (h o z)) by nra. split; [lra|nra]. }
  assert (Htf : forall o, test B (fun z => f (h o z))) by (intros o z; apply Hf).
  eapply Rle_trans; [apply (E_mono P B) with (g := fun o => E (K' o) (fun z => exp (V o z) * f (h o z)))|].
  - now apply test_E.
  - now apply test_E.
  - intros o. now apply (HK o B).
  - eapply Rle_trans; [apply (HP B)|].
    + now apply test_E.
    + intros o. rewrite <- (E_scale (K' o) B) by (try apply Ht; lra). apply E_range. intros z. rewrite Heq. apply Hw.
    + apply Req_le, E_ext. intros o. rewrite <- (E_scale (K' o) B) by (try apply Ht; lra). apply E_ext. intros z. apply Heq.
Qed.

(** * Functions of the answer *)
Theorem thm_post_processing {X O Z} (N : list X -> list X -> Prop) eps (M : list X -> dist O) (f : O -> dist Z) :
  private N eps M -> private N eps (fun D => bind (M D) f).
Proof. intros H D D' HN B g Hg. simpl. apply (H D D' HN B). now apply test_E. Qed.

(** * What an observer can reach: f o is the probability of saying "D'" after seeing o *)
Theorem thm_observer {X O} (N : list X -> list X -> Prop) eps (M : list X -> dist O) D D' f :
  (forall D D', N D D' -> N D' D) -> private N eps M -> N D D' -> test 1 f ->
  let alpha := E (M D) f in let beta := E (M D') f in
  beta <= exp eps * alpha /\ 1 - alpha <= exp eps * (1 - beta) /\
  beta - alpha <= (exp eps - 1) / (exp eps + 1).
Proof.
  intros Hs HM HN Hf alpha beta. pose proof (exp_pos eps) as He.
  assert (H1 : beta <= exp eps * alpha) by (apply (HM D' D (Hs _ _ HN) 1 f Hf)).
  assert (Hc : test 1 (fun o => 1 - f o)) by (intros o; specialize (Hf o); lra).
  assert (Hm : forall P : dist O, E P (fun o => 1 - f o) = 1 - E P f).
  { intros P. pose proof (E_plus P 1 _ _ Hc Hf) as H. simpl in H.
    rewrite (E_ext P _ (fun _ => 1)) in H by (intros; ring). rewrite E_one in H. lra. }
  assert (H2 : 1 - alpha <= exp eps * (1 - beta)).
  { pose proof (HM D D' HN 1 _ Hc) as H. rewrite !Hm in H. exact H. }
  repeat split; try assumption.
  apply Rmult_le_reg_r with (exp eps + 1); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

(** * Groups: a person of k rows, or a replacement as a removal and an addition *)
Fixpoint steps {X} (N : list X -> list X -> Prop) (k : nat) (D D' : list X) : Prop :=
  match k with O => D = D' | S k => exists D1, N D D1 /\ steps N k D1 D' end.

Lemma group_privacy_on {X O} S (N : list X -> list X -> Prop) eps (M : list X -> dist O) k :
  private_on S N eps M -> private_on S (steps N k) (INR k * eps) M.
Proof.
  intros HM. induction k as [|k IH]; intros D D' H B f Hf HS.
  - simpl in H. subst. rewrite Rmult_0_l, exp_0. lra.
  - destruct H as (D1 & H1 & H2). rewrite S_INR. replace ((INR k + 1) * eps) with (eps + INR k * eps) by ring.
    rewrite exp_plus, Rmult_assoc. eapply Rle_trans; [apply (HM D D1 H1 B f Hf HS)|].
    apply Rmult_le_compat_l; [left; apply exp_pos|]. now apply (IH D1 D' H2 B).
Qed.
Theorem group_privacy {X O} (N : list X -> list X -> Prop) eps (M : list X -> dist O) k :
  private N eps M -> private (steps N k) (INR k * eps) M.
Proof. rewrite <- !private_everywhere. apply group_privacy_on. Qed.

Corollary replace_one_at_most_twice {X O} eps (M : list X -> dist O) :
  private add_remove eps M -> private replace_one (2 * eps) M.
Proof.
  intros HM D D' (x & x' & l1 & l2 & -> & ->). pose proof (group_privacy add_remove eps M 2 HM) as H.
  replace (INR 2 * eps) with (2 * eps) in H by (simpl; ring). apply H.
  exists (l1 ++ l2). split.
  - exists x. right. now exists l1, l2.
  - exists (l1 ++ x' :: l2). split; [|reflexivity]. exists x'. left. now exists l1, l2.
Qed.

(** * The promise by tests is the promise by single outputs, def-privacy, for outputs from a countable set *)
Section Pointwise.
Context {O : Type} (dec : forall x y : O, {x = y} + {x <> y}).
Definition ind (o x : O) : R := if dec x o then 1 else 0.
Definition Pr (P : dist O) (o : O) : R := E P (ind o).
Lemma test_ind o : test 1 (ind o).
Proof. intros x. unfold ind. destruct (dec x o); lra. Qed.

Definition inside (l : list O) (x : O) : R := if in_dec dec x l then 1 else 0.

(** Countable laws: but for a rest of any small probability, finitely many outputs. *)
Definition discrete (P : dist O) := forall e, 0 < e -> exists l, E P (fun o => 1 - inside l o) <= e.

Lemma within_point eps P Q : close eps P Q -> forall o, Pr P o <= exp eps * Pr Q o.
Proof. intros H o. apply (H 1), test_ind. Qed.

Lemma sum_ind l x : NoDup l -> sum (fun o => ind o x) l = inside l x.
Proof.
  intros Hl. unfold inside. induction Hl as [|o l Ho Hl IH]; [reflexivity|]. cbn [sum fold_right]. unfold sum in IH. rewrite IH.
  unfold ind. destruct (dec x o) as [->|Hne].
  - destruct (in_dec dec o l); [easy|]. destruct (in_dec dec o (o :: l)) as [|Hn]; [ring|]. exfalso. apply Hn. now left.
  - destruct (in_dec dec x l) as [Hi|Hi], (in_dec dec x (o :: l)) as [Hj|Hj]; try ring.
    + exfalso. apply Hj. now right.
    + exfalso. destruct Hj; [congruence|tauto].
Qed.

Lemma E_sum (P : dist O) B (g : O -> O -> R) l : (forall o, test B (g o)) ->
  E P (fun x => sum (fun o => g o x) l) = sum (fun o => E P (g o)) l.
Proof.
  intros H. induction l as [|o l IH].
  - simpl. apply E_const. lra.
  - cbn [sum fold_right]. unfold sum in IH. rewrite <- IH.
    pose proof (test_bound P B (g o) (H o)) as HB.
    apply (E_plus P (B + INR (length l) * B)).
    + apply (test_more B); [|apply H]. pose proof (pos_INR (length l)). nra.
    + intros x. fold (sum (fun o => g o x) l). split.
      * apply sum_nonneg. intros y _. apply H.
      * eapply Rle_trans; [apply (sum_mono _ (fun _ => B)); intros y _; apply H|]. rewrite sum_const. lra.
Qed.

Theorem def_privacy {X} (N : list X -> list X -> Prop) eps (M : list X -> dist O) :
  (forall D, discrete (M D)) ->
  private N eps M <-> (forall D D', N D D' -> forall o, Pr (M D) o <= exp eps * Pr (M D') o).
Proof.
  intros HM. split; [intros H D D' HN; apply within_point; exact (H D D' HN)|].
  intros H D D' HN B f Hf. pose proof (test_bound (M D) B f Hf) as HB. pose proof (exp_pos eps) as He.
  apply Rle_trans with (exp eps * E (M D') f + 0); [|lra]. apply le_epsilon. intros e Hpos. rewrite Rplus_0_r.
  assert (He' : 0 < e / (B + 1)) by (apply Rdiv_lt_0_compat; lra).
  destruct (HM D _ He') as [l0 Hl0]. set (l := nodup dec l0).
  assert (Hl : NoDup l) by apply NoDup_nodup.
  assert (Hin : forall x, inside l x = inside l0 x).
  { intros x. unfold inside, l. destruct (in_dec dec x (nodup dec l0)) as [i|i], (in_dec dec x l0) as [j|j]; try reflexivity;
      rewrite nodup_In in i; tauto. }
  assert (Hr : forall x, 0 <= inside l x <= 1) by (intros x; unfold inside; destruct (in_dec dec x l); lra).
  assert (Htest : forall o, test B (fun x => f o * ind o x)).
  { intros o x. specialize (Hf o). pose proof (test_ind o x). nra. }
  assert (HE : forall P : dist O, E P (fun x => inside l x * f x) = sum (fun o => f o * Pr P o) l).
  { intros P. rewrite <- (sum_ext (fun o => E P (fun x => f o * ind o x))).
    2: { intros o _. unfold Pr. apply (E_scale P 1); [apply test_ind|apply Hf]. }
    rewrite <- (E_sum P B _ l Htest). apply E_ext. intros x.
    rewrite <- (sum_ind l x Hl), Rmult_comm, <- sum_scale. apply sum_ext. intros o _. unfold ind.
    destruct (dec x o); [subst; ring|ring]. }
  assert (Hin_t : test B (fun x => inside l x * f x)).
  { intros x. specialize (Hr x). specialize (Hf x). nra. }
  assert (Hout_t : test B (fun x => B * (1 - inside l x))).
  { intros x. specialize (Hr x). nra. }
  assert (H1 : E (M D) f <= E (M D) (fun x => inside l x * f x) + B * E (M D) (fun x => 1 - inside l x)).
  { rewrite <- (E_scale (M D) 1) by (try lra; intros x; specialize (Hr x); lra).
    rewrite <- (E_plus (M D) B) by assumption. apply (E_mono (M D) (B + B)).
    - apply (test_more B); [lra|assumption].
    - intros x. specialize (Hin_t x). specialize (Hout_t x). simpl in *. lra.
    - intros x. specialize (Hr x). specialize (Hf x). nra. }
  assert (H2 : E (M D) (fun x => inside l x * f x) <= exp eps * E (M D') (fun x => inside l x * f x)).
  { rewrite !HE, <- sum_scale. apply sum_mono. intros o _. specialize (H D D' HN o). specialize (Hf o). nra. }
  assert (H3 : E (M D') (fun x => inside l x * f x) <= E (M D') f).
  { apply (E_mono (M D') B); try assumption. intros x. specialize (Hr x). specialize (Hf x). nra. }
  assert (H4 : B * E (M D) (fun x => 1 - inside l x) <= e).
  { rewrite (E_ext (M D) _ (fun x => 1 - inside l0 x)) by (intros; now rewrite Hin).
    apply Rle_trans with (B * (e / (B + 1))); [apply Rmult_le_compat_l; lra|].
    apply Rmult_le_reg_r with (B + 1); [lra|]. unfold Rdiv.
    replace (B * (e * / (B + 1)) * (B + 1)) with (B * e) by (field; lra). nra. }
  nra.
Qed.

Lemma discrete_ret o : discrete (ret o).
Proof.
  intros e He. exists [o]. simpl. unfold inside. destruct (in_dec dec o [o]) as [|n]; [lra|]. exfalso. apply n. now left.
Qed.
Lemma discrete_finite l p Hp Ht : discrete (finite l p Hp Ht).
Proof.
  intros e He. exists l. simpl. rewrite (sum_ext _ (fun _ => 0)); [rewrite sum_const; lra|].
  intros x Hx. unfold inside. destruct (in_dec dec x l); [ring|tauto].
Qed.
End Pointwise.

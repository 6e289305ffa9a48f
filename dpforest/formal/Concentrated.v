(* book/concentrated.md: rho-zero-concentrated privacy, what adaptive answers, coins and groups cost, and what it is in
   epsilon and delta.  An order a > 1 is here th = 1 - 1/a.  By Hoelder's inequality the divergence of that order is at
   most a rho if and only if for every test h the mean of h^th under P is at most e^(th rho / (1 - th)) times the th-th
   power of the mean of h under Q.  That form knows no densities, so finite laws, countable ones and real noise are all
   laws; def_concentrated is that it is the definition. *)
From Coq Require Import Reals Lra Psatz List.
From DPForest Require Import Law Privacy.
Import ListNotations.
Open Scope R_scope.

(** * Powers *)
Definition power (x th : R) : R := if Rle_dec x 0 then 0 else exp (th * ln x).

Lemma power_0 th : power 0 th = 0.
Proof. unfold power. destruct (Rle_dec 0 0); [reflexivity|lra]. Qed.
Lemma power_pos x th : 0 < x -> power x th = exp (th * ln x).
Proof. intros H. unfold power. destruct (Rle_dec x 0); [lra|reflexivity]. Qed.
Lemma power_nonneg x th : 0 <= power x th.
Proof. unfold power. destruct (Rle_dec x 0); [lra|left; apply exp_pos]. Qed.
Lemma power_of_exp y th : power (exp y) th = exp (th * y).
Proof. rewrite power_pos by apply exp_pos. now rewrite ln_exp. Qed.
Lemma power_mono th x y : 0 < th -> x <= y -> power x th <= power y th.
Proof.
  intros Ht H. unfold power. destruct (Rle_dec x 0), (Rle_dec y 0); try lra; [left; apply exp_pos|].
  apply exp_le, Rmult_le_compat_l; [lra|]. destruct H as [H| ->]; [left; apply ln_increasing; lra|lra].
Qed.
Lemma power_mult x a b : power (power x a) b = power x (a * b).
Proof.
  unfold power at 2 3. destruct (Rle_dec x 0); [apply power_0|]. rewrite power_of_exp. f_equal. ring.
Qed.
Lemma power_scale c x th : 0 <= c -> 0 <= x -> power (c * x) th = power c th * power x th.
Proof.
  intros [Hc| <-] [Hx| <-]; rewrite ?Rmult_0_l, ?Rmult_0_r, ?power_0; try ring.
  rewrite !power_pos by nra. rewrite ln_mult, <- exp_plus by assumption. f_equal. ring.
Qed.
Lemma power_exp_scale y x th : 0 <= x -> power (exp y * x) th = exp (th * y) * power x th.
Proof. intros H. rewrite power_scale by (try assumption; left; apply exp_pos). now rewrite power_of_exp. Qed.

(** A power below 1 is at most each of its tangents, and their least value. *)
Lemma tangent th t x : 0 < th < 1 -> 0 < t -> 0 <= x -> power x th <= power t th * ((1 - th) + th * (x / t)).
Proof.
  intros Ht Hp [Hx| <-].
  - set (z := ln (x / t)). assert (Hxt : 0 < x / t) by (now apply Rdiv_lt_0_compat).
    assert (Ez : x / t = exp z) by (unfold z; now rewrite exp_ln).
    replace (power x th) with (power t th * exp (th * z)).
    2: { rewrite <- power_of_exp, <- Ez, <- power_scale by lra. f_equal. field. lra. }
    rewrite Ez. apply Rmult_le_compat_l; [apply power_nonneg|].
    pose proof (exp_ineq1_le (0 - th * z)) as H1. pose proof (exp_ineq1_le (z - th * z)) as H2.
    pose proof (exp_pos (th * z)) as Hm.
    assert (H3 : 1 <= (1 - th) * exp (0 - th * z) + th * exp (z - th * z)) by nra.
    apply (Rmult_le_compat_l (exp (th * z))) in H3; [|lra].
    assert (E1 : exp (th * z) * exp (0 - th * z) = 1) by (rewrite <- exp_plus, <- exp_0; f_equal; ring).
    assert (E2 : exp (th * z) * exp (z - th * z) = exp z) by (rewrite <- exp_plus; f_equal; ring).
    replace (exp (th * z) * ((1 - th) * exp (0 - th * z) + th * exp (z - th * z))) with
      ((1 - th) * (exp (th * z) * exp (0 - th * z)) + th * (exp (th * z) * exp (z - th * z))) in H3 by ring.
    rewrite E1, E2 in H3. lra.
  - rewrite power_0. unfold Rdiv. rewrite Rmult_0_l, Rmult_0_r.
    apply Rmult_le_pos; [apply power_nonneg|lra].
Qed.
Lemma below_tangents th x y : 0 < th < 1 -> 0 <= x ->
  (forall t, 0 < t -> y <= power t th * ((1 - th) + th * (x / t))) -> y <= power x th.
Proof.
  intros Ht [Hx| <-] H.
  - specialize (H x Hx). replace (x / x) with 1 in H by (field; lra).
    replace ((1 - th) + th * 1) with 1 in H by ring. lra.
  - rewrite power_0. destruct (Rle_lt_dec y 0) as [|Hy]; [assumption|exfalso].
    set (t := power y (/ th)). assert (Hp : 0 < t) by (unfold t; rewrite power_pos by assumption; apply exp_pos).
    specialize (H t Hp). assert (Et : power t th = y).
    { unfold t. rewrite power_mult, Rinv_l by lra. rewrite power_pos, Rmult_1_l by assumption. now apply exp_ln. }
    rewrite Et in H. unfold Rdiv in H. rewrite Rmult_0_l, Rmult_0_r in H. nra.
Qed.

(** A line above P h^th, where e^u and e^v are the probabilities of an output. *)
Lemma young th sg tau u v x : 0 < th < 1 -> 0 <= x -> let a := / (1 - th) in exp u * power x th <=
  exp ((1 - th) * sg + th * tau) * ((1 - th) * (exp (- sg) * (exp (a * u) * exp ((1 - a) * v))) +
    th * (exp v * x / exp tau)).
Proof.
  intros Ht Hx a. assert (Ha : a * (1 - th) = 1) by (unfold a; field; lra).
  set (s := tau + a * (u - v) - sg). pose proof (tangent th (exp s) x Ht (exp_pos _) Hx) as H.
  apply (Rmult_le_compat_l (exp u)) in H; [|left; apply exp_pos]. eapply Rle_trans; [exact H|].
  rewrite power_of_exp. right. unfold Rdiv. rewrite <- !exp_Ropp.
  replace (exp u * (exp (th * s) * (1 - th + th * (x * exp (- s))))) with
    ((1 - th) * (exp u * exp (th * s)) + th * x * (exp u * (exp (th * s) * exp (- s)))) by ring.
  replace (exp ((1 - th) * sg + th * tau) * ((1 - th) * (exp (- sg) * (exp (a * u) * exp ((1 - a) * v))) +
    th * (exp v * x * exp (- tau)))) with
    ((1 - th) * (exp ((1 - th) * sg + th * tau) * (exp (- sg) * (exp (a * u) * exp ((1 - a) * v)))) +
    th * x * (exp ((1 - th) * sg + th * tau) * (exp v * exp (- tau)))) by ring.
  assert (Eth : th * a = a - 1) by lra.
  assert (Es : th * s = th * tau + (a - 1) * (u - v) - th * sg) by (unfold s; rewrite <- Eth; ring).
  rewrite <- !exp_plus, Es. f_equal; f_equal; f_equal; unfold s; ring.
Qed.

Section Means.
Context {A : Type} (d : dist A).
Lemma power_test B (h : A -> R) th : 0 < th -> test B h -> test (power B th) (fun x => power (h x) th).
Proof. intros Ht H x. split; [apply power_nonneg|]. apply power_mono; [assumption|apply H]. Qed.
Lemma E_line B (h : A -> R) c m : 0 <= c -> 0 <= m -> test B h -> E d (fun x => c + m * h x) = c + m * E d h.
Proof.
  intros Hc Hm H. pose proof (test_bound d B h H) as HB.
  rewrite (E_plus d (c + m * B)); [now rewrite E_const, (E_scale d B)| |]; intros x; specialize (H x); split; nra.
Qed.
(** Jensen's inequality. *)
Lemma E_power B h th : 0 < th < 1 -> test B h -> E d (fun x => power (h x) th) <= power (E d h) th.
Proof.
  intros Ht H. pose proof (test_bound d B h H) as HB. apply below_tangents; [assumption|apply (E_range d B h H)|].
  intros t Hp. set (c := power t th * (1 - th)). set (m := power t th * th / t). pose proof (power_nonneg t th) as Hn.
  assert (Hc : 0 <= c) by (unfold c; nra).
  assert (Hm : 0 <= m) by (unfold m, Rdiv; apply Rmult_le_pos; [nra|left; now apply Rinv_0_lt_compat]).
  replace (power t th * ((1 - th) + th * (E d h / t))) with (c + m * E d h) by (unfold c, m; field; lra).
  rewrite <- (E_line B) by assumption. apply (E_mono d (power B th + (c + m * B))).
  - intros x. pose proof (power_test B h th (proj1 Ht) H x) as Hx. simpl in Hx. split; [apply Hx|nra].
  - intros x. specialize (H x). pose proof (power_nonneg B th). split; nra.
  - intros x. eapply Rle_trans; [apply (tangent th t); [assumption|assumption|apply H]|].
    right. unfold c, m. field. lra.
Qed.
End Means.

(** * The promise *)
(** Of outputs of S alone: tests are 0 elsewhere. *)
Definition conc_on {O} (S : O -> Prop) (rho : R) (P Q : dist O) : Prop :=
  forall th, 0 < th < 1 -> forall B h, test B h -> (forall o, h o <> 0 -> S o) ->
  E P (fun o => power (h o) th) <= exp (th / (1 - th) * rho) * power (E Q h) th.
Definition anywhere {O} (_ : O) : Prop := True.
Definition concentrated_on {X O} (S : O -> Prop) (N : list X -> list X -> Prop) (rho : R) (M : list X -> dist O) : Prop :=
  forall D D', N D D' -> conc_on S rho (M D) (M D').
Definition concentrated {X O} (N : list X -> list X -> Prop) (rho : R) (M : list X -> dist O) : Prop :=
  concentrated_on anywhere N rho M.

(** With a rho that depends on the outcome. *)
Definition upto {O} (L : O -> R) (P Q : dist O) : Prop := forall th, 0 < th < 1 -> forall B h, test B h ->
  test B (fun o => exp (L o / (1 - th)) * h o) ->
  E P (fun o => power (h o) th) <= power (E Q (fun o => exp (L o / (1 - th)) * h o)) th.

Lemma ratio_nonneg th rho : 0 < th < 1 -> 0 <= rho -> 0 <= th / (1 - th) * rho.
Proof. intros Ht Hr. apply Rmult_le_pos; [|assumption]. apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]. Qed.

Section Promise.
Context {O : Type}.
Implicit Types P Q R : dist O.

Lemma conc_more S rho rho' P Q : rho <= rho' -> conc_on S rho P Q -> conc_on S rho' P Q.
Proof.
  intros Hr H th Ht B h Hh HS. eapply Rle_trans; [now apply (H th Ht B)|]. apply Rmult_le_compat_r; [apply power_nonneg|].
  apply exp_le, Rmult_le_compat_l; [|assumption]. apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra].
Qed.
Lemma conc_fewer (S S' : O -> Prop) rho P Q : (forall o, S o -> S' o) -> conc_on S' rho P Q -> conc_on S rho P Q.
Proof. intros HS H th Ht B h Hh Hn. apply (H th Ht B h Hh). auto. Qed.
Lemma conc_same S rho P P' Q Q' : (forall B f, test B f -> E P f = E P' f) -> (forall B f, test B f -> E Q f = E Q' f) ->
  conc_on S rho P' Q' -> conc_on S rho P Q.
Proof.
  intros HP HQ H th Ht B h Hh HS. rewrite (HP _ _ (power_test B h th (proj1 Ht) Hh)), (HQ _ _ Hh). now apply (H th Ht B).
Qed.
Lemma conc_refl S P : conc_on S 0 P P.
Proof. intros th Ht B h Hh _. rewrite Rmult_0_r, exp_0, Rmult_1_l. now apply (E_power P B). Qed.

Lemma upto_refl P : upto (fun _ => 0) P P.
Proof.
  intros th Ht B h Hh _. rewrite (E_ext P (fun o => exp (0 / (1 - th)) * h o) h).
  - now apply (E_power P B).
  - intros o. unfold Rdiv. rewrite Rmult_0_l, exp_0. ring.
Qed.
Lemma upto_on (S : O -> Prop) L rho P Q : (forall o, S o -> L o <= rho) -> upto L P Q -> conc_on S rho P Q.
Proof.
  intros HL H th Ht B h Hh HS. pose proof (test_bound P B h Hh) as HB. set (c := exp (rho / (1 - th))).
  assert (Hc : 0 < c) by apply exp_pos.
  assert (Hle : forall o, 0 <= exp (L o / (1 - th)) * h o <= c * h o).
  { intros o. specialize (Hh o). pose proof (exp_pos (L o / (1 - th))). split; [nra|].
    destruct (Req_dec (h o) 0) as [->|Hne]; [lra|]. apply Rmult_le_compat_r; [lra|]. apply exp_le.
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|]. now apply HL, HS. }
  assert (Hs : test (c * B) (fun o => c * h o)) by (apply test_scaled; [assumption|lra]).
  assert (Ht' : test (c * B) (fun o => exp (L o / (1 - th)) * h o)).
  { intros o. specialize (Hle o). specialize (Hs o). lra. }
  eapply Rle_trans; [apply (H th Ht (B + c * B))|].
  - apply (test_more B); [nra|assumption].
  - apply (test_more (c * B)); [lra|assumption].
  - replace (th / (1 - th) * rho) with (th * (rho / (1 - th))) by (field; lra).
    rewrite <- power_exp_scale by (apply (E_range Q B), Hh). fold c. apply power_mono; [lra|].
    rewrite <- (E_scale Q B) by (try assumption; lra). apply (E_mono Q (c * B)); [assumption..|apply Hle].
Qed.
End Promise.

(** One more round adds its rho, whatever was chosen. *)
Lemma upto_both {O Z Y} (g : O -> Z -> Y) (a : R) (V : O -> Z -> R) (W : Y -> R) P Q K K' :
  0 <= a -> (forall o z, W (g o z) = a + V o z) ->
  conc_on anywhere a P Q -> (forall o, upto (V o) (K o) (K' o)) -> upto W (both g P K) (both g Q K').
Proof.
  intros Ha HW HP HK th Ht B h Hh Hw. rewrite !E_both. set (i := / (1 - th)).
  assert (Hi : 0 < i) by (apply Rinv_0_lt_compat; lra). pose proof (exp_ge_1 (a * i) ltac:(nra)) as Hea.
  assert (Heq : forall o z, exp (a * i) * (exp (V o z / (1 - th)) * h (g o z)) = exp (W (g o z) / (1 - th)) * h (g o z)).
  { intros o z. rewrite HW, <- Rmult_assoc, <- exp_plus. f_equal. f_equal. unfold i, Rdiv. ring. }
  assert (Hv : forall o, test B (fun z => exp (V o z / (1 - th)) * h (g o z))).
  { intros o z. specialize (Hw (g o z)). cbv beta in Hw. rewrite <- Heq in Hw. specialize (Hh (g o z)).
    pose proof (exp_pos (V o z / (1 - th))). assert (0 <= exp (V o z / (1 - th)) * h (g o z)) by nra. split; [lra|nra]. }
  set (k := fun o => E (K' o) (fun z => exp (V o z / (1 - th)) * h (g o z))).
  assert (Hk : test B k) by (now apply test_E).
  assert (Hp : test (power B th) (fun y => power (h y) th)) by (apply power_test; [lra|assumption]).
  eapply Rle_trans; [apply (E_mono P (power B th)) with (g := fun o => power (k o) th)|].
  - apply test_E. intros o z. apply Hp.
  - apply power_test; [lra|assumption].
  - intros o. apply (HK o th Ht B); [intros z; apply Hh|apply Hv].
  - eapply Rle_trans; [apply (HP th Ht B k Hk); intros; exact I|].
    replace (th / (1 - th) * a) with (th * (a * i)) by (unfold i; field; lra).
    rewrite <- power_exp_scale by (apply (E_range Q B), Hk). right. f_equal.
    rewrite <- (E_scale Q B) by (try exact Hk; lra). apply E_ext. intros o. unfold k.
    rewrite <- (E_scale (K' o) B) by (try apply Hv; lra). apply E_ext. intros z. apply Heq.
Qed.

(** Coins that look at nothing cost nothing. *)
Theorem lem_concentrated_coins {A O} S rho (d : dist A) (K K' : A -> dist O) : (forall x, conc_on S rho (K x) (K' x)) ->
  conc_on S rho (bind d K) (bind d K').
Proof.
  intros H th Ht B h Hh HS. simpl. pose proof (exp_pos (th / (1 - th) * rho)) as He.
  assert (Hk : test B (fun x => E (K' x) h)) by (now apply (test_E K' B (fun _ => h))).
  assert (Hp : test (power B th) (fun o => power (h o) th)) by (apply power_test; [lra|assumption]).
  eapply Rle_trans; [|apply Rmult_le_compat_l; [lra|apply (E_power d B _ th Ht Hk)]].
  apply (E_le_scale d (power B th)); [lra| | |].
  - exact (test_E K _ (fun _ => _) (fun _ => Hp)).
  - apply power_test; [lra|exact Hk].
  - intros x. now apply (H x th Ht B).
Qed.

(** Functions of the answer. *)
Theorem thm_post_processing_concentrated {X O Z} (N : list X -> list X -> Prop) rho (M : list X -> dist O)
  (f : O -> dist Z) : concentrated N rho M -> concentrated N rho (fun D => bind (M D) f).
Proof.
  intros H D D' HN th Ht B h Hh _. simpl. assert (Hk : test B (fun o => E (f o) h)) by (now apply (test_E f B (fun _ => h))).
  eapply Rle_trans; [|apply (H D D' HN th Ht B _ Hk); intros; exact I].
  apply (E_mono (M D) (power B th)).
  - exact (test_E f _ (fun _ => _) (fun _ => power_test B h th (proj1 Ht) Hh)).
  - apply power_test; [lra|exact Hk].
  - intros o. now apply (E_power (f o) B).
Qed.

(** * Epsilon and delta *)
(** For every order, and every tangent of its power. *)
Lemma conc_nearly {O} (S : O -> Prop) rho eps delta a tau (P Q : dist O) : 1 < a ->
  exp ((a - 1) * rho - tau / a - eps) <= a / (a - 1) -> exp ((a - 1) * rho + (1 - / a) * tau) <= a * delta ->
  conc_on S rho P Q -> nearly_on S eps delta P Q.
Proof.
  intros Ha He Hd H f Hf HS. set (th := 1 - / a). assert (Hi : 0 < / a) by (apply Rinv_0_lt_compat; lra).
  assert (Hia : a * / a = 1) by (apply Rinv_r; lra).
  assert (Ht : 0 < th < 1) by (unfold th; split; nra).
  assert (Hr : th / (1 - th) = a - 1) by (unfold th; field; lra).
  set (h := fun o => power (f o) (/ th)).
  assert (Hh : forall o, 0 <= h o <= f o).
  { intros o. split; [apply power_nonneg|]. destruct (Hf o) as [H0 H1]. unfold h. destruct H0 as [H0|E].
    - rewrite power_pos by assumption. rewrite <- (exp_ln (f o)) at 2 by assumption. apply exp_le.
      assert (Hl : ln (f o) <= 0).
      { rewrite <- ln_1. destruct H1 as [H1|E]; [left; now apply ln_increasing|rewrite E; lra]. }
      assert (1 <= / th) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra). nra.
    - rewrite <- E, power_0. lra. }
  assert (Hh1 : test 1 h) by (intros o; specialize (Hh o); specialize (Hf o); lra).
  assert (Ef : forall o, f o = power (h o) th).
  { intros o. unfold h. rewrite power_mult, Rinv_l by lra. destruct (Hf o) as [[H0|E] _].
    - rewrite power_pos, Rmult_1_l by assumption. symmetry. now apply exp_ln.
    - now rewrite <- E, power_0. }
  rewrite (E_ext P f (fun o => power (h o) th)) by apply Ef.
  eapply Rle_trans; [apply (H th Ht 1 h Hh1)|].
  { intros o Ho. apply HS. intros E. apply Ho. unfold h. rewrite E. apply power_0. }
  rewrite Hr. assert (HQ : E Q h <= E Q f) by (apply (E_mono Q 1); [assumption|assumption|intros o; apply Hh]).
  pose proof (E_range Q 1 h Hh1) as Hq. set (x := E Q h) in *. clearbody x.
  set (c := exp ((a - 1) * rho)). assert (Hc : 0 < c) by apply exp_pos.
  pose proof (tangent th (exp tau) x Ht (exp_pos _) (proj1 Hq)) as HT. rewrite power_of_exp in HT.
  apply Rle_trans with (c * (exp (th * tau) * ((1 - th) + th * (x / exp tau)))); [apply Rmult_le_compat_l; lra|].
  assert (E1 : c * exp (th * tau) * (1 - th) <= delta).
  { unfold c. rewrite <- exp_plus. fold th in Hd. replace (1 - th) with (/ a) by (unfold th; ring).
    apply (Rmult_le_reg_l a); [lra|]. rewrite (Rmult_comm _ (/ a)), <- Rmult_assoc, Hia. lra. }
  assert (E2 : c * exp (th * tau) * (th / exp tau) <= exp eps).
  { replace (c * exp (th * tau) * (th / exp tau)) with (th * (exp eps * exp ((a - 1) * rho - tau / a - eps))).
    - replace (a / (a - 1)) with (/ th) in He by (unfold th; field; lra).
      apply Rle_trans with (th * (exp eps * / th)); [|right; field; lra].
      apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; [left; apply exp_pos|assumption].
    - unfold c, Rdiv. rewrite <- exp_Ropp, <- exp_plus.
      replace (exp ((a - 1) * rho) * exp (th * tau) * (th * exp (- tau))) with
        (th * (exp ((a - 1) * rho) * (exp (th * tau) * exp (- tau)))) by ring.
      rewrite <- !exp_plus. f_equal. f_equal. unfold th. ring. }
  replace (c * (exp (th * tau) * ((1 - th) + th * (x / exp tau)))) with
    (c * exp (th * tau) * (th / exp tau) * x + c * exp (th * tau) * (1 - th)) by (field; apply Rgt_not_eq, exp_pos).
  apply Rplus_le_compat; [|assumption]. apply Rle_trans with (exp eps * x); [apply Rmult_le_compat_r; lra|].
  apply Rmult_le_compat_l; [left; apply exp_pos|assumption].
Qed.

(** * Groups *)
Section Groups.
Context {O : Type} (S : O -> Prop).
Implicit Types P Q R : dist O.

Lemma conc_step k rho P Q R : 1 <= k -> conc_on S rho P Q -> conc_on S (k * k * rho) Q R ->
  conc_on S ((k + 1) * (k + 1) * rho) P R.
Proof.
  intros Hk HP HQ th Ht B h Hh HS. set (th2 := th + (1 - th) / (k + 1)). set (th1 := th / th2).
  assert (H2 : th < th2 < 1).
  { unfold th2, Rdiv. assert (Hi : 0 < / (k + 1)) by (apply Rinv_0_lt_compat; lra).
    assert ((k + 1) * / (k + 1) = 1) by (apply Rinv_r; lra). split; nra. }
  assert (E1 : th1 * th2 = th) by (unfold th1; field; lra).
  assert (H1 : 0 < th1 < 1).
  { unfold th1. split; [apply Rdiv_lt_0_compat; lra|]. apply (Rmult_lt_reg_r th2); [lra|]. fold th1. rewrite E1. lra. }
  assert (H0 : 0 < th2 < 1) by lra. pose proof (power_test B h th2 (proj1 H0) Hh) as Hp.
  rewrite (E_ext P _ (fun o => power (power (h o) th2) th1)) by (intros; rewrite power_mult; f_equal; lra).
  eapply Rle_trans; [apply (HP th1 H1 _ _ Hp)|].
  { intros o Ho. apply HS. intros E. apply Ho. rewrite E. apply power_0. }
  eapply Rle_trans; [apply Rmult_le_compat_l; [left; apply exp_pos|]; apply power_mono; [lra|];
    apply (HQ th2 H0 B h Hh HS)|].
  rewrite power_exp_scale by apply power_nonneg. rewrite power_mult, <- Rmult_assoc, <- exp_plus.
  replace (th2 * th1) with th by lra. right. f_equal. f_equal.
  unfold th1, th2. field. repeat split; nra.
Qed.

Theorem lem_concentrated_group {X} (N : list X -> list X -> Prop) rho M k : concentrated_on S N rho M ->
  concentrated_on S (steps N k) (INR k * INR k * rho) M.
Proof.
  intros HM. induction k as [|[|k] IH]; intros D D' H.
  - simpl in H. subst. simpl. rewrite !Rmult_0_l. apply conc_refl.
  - destruct H as (D1 & H & E). simpl in E. subst. simpl. rewrite !Rmult_1_l. now apply HM.
  - destruct H as (D1 & H1 & H2). rewrite (S_INR (Datatypes.S k)). apply conc_step with (Q := M D1).
    + rewrite S_INR. pose proof (pos_INR k). lra.
    + now apply HM.
    + now apply IH.
Qed.
End Groups.

(* book/concentrated.md: the promise by tests is the definition, and the conversion of a rho as the book has it. *)
From Coq Require Import Reals Lra Psatz List.
From DPForest Require Import Law Privacy Account Concentrated.
Import ListNotations.
Open Scope R_scope.

(** For every order; the tangent is the one that touches where the bound is attained. *)
Lemma conversion_on {O} (S : O -> Prop) rho (P Q : dist O) a eps : 1 < a -> conc_on S rho P Q ->
  nearly_on S eps (/ (a - 1) * exp (a * ln (1 - / a)) * exp ((a - 1) * (a * rho - eps))) P Q.
Proof.
  intros Ha H. set (th := 1 - / a). assert (Hi : 0 < / a) by (apply Rinv_0_lt_compat; lra).
  assert (Hia : a * / a = 1) by (apply Rinv_r; lra). assert (Ht : 0 < th) by (unfold th; nra).
  assert (Ea : a * th = a - 1) by (unfold th; lra).
  apply (conc_nearly S rho eps _ a (a * ((a - 1) * rho - eps + ln th))); [assumption|..].
  - replace (a / (a - 1)) with (/ th) by (rewrite <- Ea; field; lra). rewrite <- (exp_ln th) at 2 by assumption.
    rewrite <- exp_Ropp. right. f_equal. field. lra.
  - fold th. replace ((a - 1) * rho + th * (a * ((a - 1) * rho - eps + ln th))) with
      ((a - 1) * (a * rho - eps) + (a * ln th - ln th)).
    + unfold Rminus at 3. rewrite !exp_plus, exp_Ropp, exp_ln by assumption. right. rewrite <- Ea. field. lra.
    + replace (th * (a * ((a - 1) * rho - eps + ln th))) with ((a * th) * ((a - 1) * rho - eps + ln th)) by ring.
      rewrite Ea. ring.
  - exact H.
Qed.
Theorem lem_concentrated_conversion {X O} (N : list X -> list X -> Prop) rho (M : list X -> dist O) a eps : 1 < a ->
  concentrated N rho M ->
  approximate N eps (/ (a - 1) * exp (a * ln (1 - / a)) * exp ((a - 1) * (a * rho - eps))) M.
Proof. intros Ha H D D' HN f Hf. exact (conversion_on anywhere rho _ _ a eps Ha (H D D' HN) f Hf (fun _ _ => I)). Qed.

(** * The promise by tests is the divergence of every order, for outputs from a countable set *)
Section Pointwise.
Context {O : Type} (dec : forall x y : O, {x = y} + {x <> y}).
Let pr := Pr dec.
Let within_list := inside dec.

Lemma pr_range P o : 0 <= pr P o <= 1.
Proof. apply (E_range P 1), test_ind. Qed.
Lemma inside_range l x : 0 <= within_list l x <= 1.
Proof. unfold within_list, inside. destruct (in_dec dec x l); lra. Qed.
Lemma inside_below l x y : 0 <= y -> 0 <= within_list l x * y <= y.
Proof. pose proof (inside_range l x). nra. Qed.
Lemma sum_one (k : O -> R) l o : (forall x, 0 <= k x) -> In o l -> k o <= sum k l.
Proof.
  intros Hk. induction l as [|x l IH]; intros H; [easy|]. simpl. pose proof (sum_nonneg k l (fun x _ => Hk x)).
  unfold sum in *. destruct H as [<-|H]; [lra|]. specialize (IH H). specialize (Hk x). lra.
Qed.
Lemma inside_test l (k : O -> R) : (forall x, 0 <= k x) -> test (sum k l) (fun x => within_list l x * k x).
Proof.
  intros Hk x. unfold within_list, inside. destruct (in_dec dec x l) as [H|H].
  - pose proof (sum_one k l x Hk H). specialize (Hk x). lra.
  - pose proof (sum_nonneg k l (fun x _ => Hk x)). lra.
Qed.
(** A mean over finitely many outputs. *)
Lemma E_inside (d : dist O) l (k : O -> R) : NoDup l -> (forall x, 0 <= k x) ->
  E d (fun x => within_list l x * k x) = sum (fun o => k o * pr d o) l.
Proof.
  intros Hl Hk. set (B := sum k l).
  assert (Hg : forall o, test B (fun x => within_list l o * k o * ind dec o x)).
  { intros o x. pose proof (inside_test l k Hk o) as H. cbv beta in H. pose proof (test_ind dec o x) as Hi. unfold B. nra. }
  rewrite (E_ext d _ (fun x => sum (fun o => within_list l o * k o * ind dec o x) l)).
  - rewrite (E_sum d B _ l Hg). apply sum_ext. intros o Ho. unfold pr, Pr. rewrite (E_scale d 1).
    + unfold within_list, inside. destruct (in_dec dec o l); [ring|tauto].
    + apply test_ind.
    + pose proof (inside_range l o). specialize (Hk o). nra.
  - intros x. rewrite (sum_ext _ (fun o => k x * ind dec o x)).
    + rewrite sum_scale, sum_ind by assumption. unfold within_list. ring.
    + intros o Ho. unfold ind. destruct (dec x o) as [->|]; [|ring].
      unfold within_list, inside. destruct (in_dec dec o l); [ring|tauto].
Qed.

(** The part of the sum in D_a that these outputs have; where Q has nothing, P must have nothing. *)
Definition moment (a : R) (P Q : dist O) (l : list O) : R := sum (fun o => power (pr P o) a * power (pr Q o) (1 - a)) l.
Definition divergence_at_most (rho : R) (P Q : dist O) : Prop := (forall o, pr Q o = 0 -> pr P o = 0) /\
  forall a, 1 < a -> forall l, NoDup l -> moment a P Q l <= exp ((a - 1) * (a * rho)).

Lemma power_one x : 0 <= x -> power x 1 = x.
Proof. intros [H| <-]; [|apply power_0]. rewrite power_pos, Rmult_1_l by assumption. now apply exp_ln. Qed.
Lemma power_plus x a b : 0 < x -> power x (a + b) = power x a * power x b.
Proof. intros H. rewrite !power_pos by assumption. rewrite <- exp_plus. f_equal. ring. Qed.

Lemma conc_divergence rho P Q : conc_on anywhere rho P Q -> divergence_at_most rho P Q.
Proof.
  intros H. split.
  - intros o Ho. assert (Ht : 0 < / 2 < 1) by lra.
    pose proof (H (/ 2) Ht 1 (ind dec o) (test_ind dec o) (fun _ _ => I)) as H1. fold (Pr dec Q o) in H1. fold (pr Q o) in H1.
    rewrite Ho, power_0, Rmult_0_r in H1. rewrite (E_ext P _ (ind dec o)) in H1.
    + fold (Pr dec P o) in H1. fold (pr P o) in H1. pose proof (pr_range P o). lra.
    + intros x. unfold ind. destruct (dec x o); [|apply power_0]. rewrite power_pos, ln_1, Rmult_0_r by lra. apply exp_0.
  - intros a Ha l Hl. set (th := 1 - / a). assert (Hi : 0 < / a) by (apply Rinv_0_lt_compat; lra).
    assert (Hia : a * / a = 1) by (apply Rinv_r; lra). assert (Ht : 0 < th < 1) by (unfold th; split; nra).
    assert (Ea : a * th = a - 1) by (unfold th; lra).
    set (k := fun o => power (pr P o) a * power (pr Q o) (- a)).
    assert (Hk : forall o, 0 <= k o) by (intros o; apply Rmult_le_pos; apply power_nonneg).
    pose proof (H th Ht _ _ (inside_test l k Hk) (fun _ _ => I)) as H1. rewrite (E_inside Q l k Hl Hk) in H1.
    rewrite (E_ext P _ (fun x => within_list l x * power (k x) th)) in H1.
    2: { intros x. unfold within_list, inside. destruct (in_dec dec x l); [now rewrite !Rmult_1_l|].
      now rewrite !Rmult_0_l, power_0. }
    rewrite (E_inside P l (fun x => power (k x) th) Hl (fun x => power_nonneg _ _)) in H1.
    assert (EQ : forall o, k o * pr Q o = power (pr P o) a * power (pr Q o) (1 - a)).
    { intros o. unfold k. destruct (pr_range Q o) as [[Hq|Hq] _].
      - rewrite Rmult_assoc. f_equal. rewrite <- (power_one (pr Q o)) at 2 by lra. rewrite <- power_plus by assumption.
        f_equal. ring.
      - rewrite <- Hq, !power_0. ring. }
    assert (EP : forall o, power (k o) th * pr P o = power (pr P o) a * power (pr Q o) (1 - a)).
    { intros o. unfold k. rewrite power_scale by apply power_nonneg. rewrite !power_mult.
      destruct (pr_range P o) as [[Hp|Hp] _]; [|rewrite <- Hp, !power_0; ring].
      replace (power (pr P o) (a * th) * power (pr Q o) (- a * th) * pr P o) with
        (power (pr P o) (a * th) * power (pr P o) 1 * power (pr Q o) (- a * th)) by (rewrite power_one by lra; ring).
      rewrite <- power_plus by assumption. f_equal; f_equal; lra. }
    set (S := moment a P Q l). assert (SP : sum (fun o => power (k o) th * pr P o) l = S) by (apply sum_ext; intros; apply EP).
    assert (SQ : sum (fun o => k o * pr Q o) l = S) by (apply sum_ext; intros; apply EQ).
    cbv beta in H1. rewrite SP, SQ in H1. clearbody S.
    destruct (Rle_lt_dec S 0) as [HS|HS]; [pose proof (exp_pos ((a - 1) * (a * rho))); lra|].
    rewrite power_pos in H1 by assumption. replace (th / (1 - th)) with (a - 1) in H1 by (unfold th; field; lra).
    rewrite <- exp_plus in H1. rewrite <- (exp_ln S) in H1 |- * by assumption.
    apply exp_le. destruct (Rle_lt_dec (ln S) ((a - 1) * (a * rho))) as [|Hn]; [assumption|exfalso].
    rewrite ln_exp in H1. assert (Hx : (a - 1) * rho + th * ln S < ln S).
    { apply (Rmult_lt_reg_l a); [lra|]. rewrite Rmult_plus_distr_l, <- (Rmult_assoc a th), Ea. lra. }
    pose proof (exp_increasing _ _ Hx). lra.
Qed.

Lemma divergence_conc rho P Q : discrete dec P -> divergence_at_most rho P Q -> conc_on anywhere rho P Q.
Proof.
  intros HP [H0 HD] th Ht B h Hh _. set (a := / (1 - th)). assert (Ha1 : a * (1 - th) = 1) by (unfold a; field; lra).
  assert (Ha : 1 < a) by (apply (Rmult_lt_reg_r (1 - th)); lra). set (sg := (a - 1) * (a * rho)).
  set (f := fun o => power (h o) th). assert (Hf : test (power B th) f) by (apply power_test; [lra|assumption]).
  pose proof (test_bound P B h Hh) as HB. pose proof (power_nonneg B th) as Hpb.
  replace (th / (1 - th) * rho) with ((1 - th) * sg) by (unfold sg, a; field; lra).
  apply (Rmult_le_reg_l (exp (- ((1 - th) * sg)))); [apply exp_pos|].
  rewrite <- Rmult_assoc, <- exp_plus, Rplus_opp_l, exp_0, Rmult_1_l.
  apply below_tangents; [assumption|apply (E_range Q B h Hh)|]. intros T HT.
  apply (Rmult_le_reg_l (exp ((1 - th) * sg))); [apply exp_pos|].
  rewrite <- Rmult_assoc, <- exp_plus, Rplus_opp_r, exp_0, Rmult_1_l.
  set (tau := ln T). assert (ET : T = exp tau) by (unfold tau; now rewrite exp_ln).
  rewrite ET, power_of_exp, <- Rmult_assoc, <- exp_plus. set (c := exp ((1 - th) * sg + th * tau)).
  assert (Hc : 0 < c) by apply exp_pos. apply le_epsilon. intros e He.
  assert (He' : 0 < e / (power B th + 1)) by (apply Rdiv_lt_0_compat; lra).
  destruct (HP _ He') as [l0 Hl0]. set (l := nodup dec l0). assert (Hl : NoDup l) by apply NoDup_nodup.
  assert (Hin : forall x, inside dec l x = inside dec l0 x).
  { intros x. unfold inside, l. destruct (in_dec dec x (nodup dec l0)) as [i|i], (in_dec dec x l0) as [j|j]; try reflexivity;
      rewrite nodup_In in i; tauto. }
  assert (Hfn : forall x, 0 <= f x) by (intros; apply power_nonneg). assert (Hhn : forall x, 0 <= h x) by (intros; apply Hh).
  assert (H1 : E P f <= E P (fun x => within_list l x * f x) + power B th * E P (fun x => 1 - within_list l x)).
  { rewrite <- (E_scale P 1) by (try assumption; intros x; pose proof (inside_range l x); lra).
    rewrite <- (E_plus P (power B th)).
    - apply (E_mono P (power B th + power B th)).
      + apply (test_more (power B th)); [lra|assumption].
      + intros x. pose proof (inside_below l x _ (Hfn x)). pose proof (inside_below l x _ Hpb). pose proof (Hf x). lra.
      + intros x. pose proof (inside_range l x) as Hi. pose proof (Hf x) as Hx.
        pose proof (Rmult_le_compat_l (1 - within_list l x) _ _ ltac:(lra) (proj2 Hx)). lra.
    - intros x. pose proof (inside_below l x _ (Hfn x)). pose proof (Hf x). lra.
    - intros x. pose proof (inside_below l x _ Hpb). lra. }
  assert (H2 : power B th * E P (fun x => 1 - within_list l x) <= e).
  { rewrite (E_ext P _ (fun x => 1 - inside dec l0 x)) by (intros; unfold within_list; now rewrite Hin).
    apply Rle_trans with (power B th * (e / (power B th + 1))); [apply Rmult_le_compat_l; lra|].
    apply Rmult_le_reg_r with (power B th + 1); [lra|]. unfold Rdiv.
    replace (power B th * (e * / (power B th + 1)) * (power B th + 1)) with (power B th * e) by (field; lra). nra. }
  assert (H3 : E P (fun x => within_list l x * f x) <= c * ((1 - th) * (exp (- sg) * moment a P Q l) +
    th * (E Q (fun x => within_list l x * h x) / exp tau))).
  { rewrite (E_inside P l f Hl Hfn), (E_inside Q l h Hl Hhn).
    apply Rle_trans with (sum (fun o => c * ((1 - th) * (exp (- sg) * (power (pr P o) a * power (pr Q o) (1 - a))) +
      th * (pr Q o * h o / exp tau))) l).
    - apply sum_mono. intros o _. rewrite Rmult_comm. destruct (pr_range P o) as [[Hp|Hp] _], (pr_range Q o) as [[Hq|Hq] _].
      + pose proof (young th sg tau (ln (pr P o)) (ln (pr Q o)) (h o) Ht (Hhn o)) as HY. cbv zeta in HY. fold a in HY.
        rewrite !exp_ln in HY by assumption. rewrite <- (power_pos (pr P o)), <- (power_pos (pr Q o)) in HY by assumption.
        exact HY.
      + symmetry in Hq. apply H0 in Hq. lra.
      + rewrite <- Hp, Rmult_0_l, power_0. unfold Rdiv. pose proof (Hhn o).
        assert (0 < / exp tau) by apply Rinv_0_lt_compat, exp_pos.
        apply Rmult_le_pos; [lra|]. rewrite Rmult_0_l, Rmult_0_r, Rmult_0_r, Rplus_0_l.
        repeat apply Rmult_le_pos; lra.
      + rewrite <- Hp, <- Hq, !power_0. unfold Rdiv. rewrite !Rmult_0_l, !Rmult_0_r. lra.
    - right. rewrite sum_scale, sum_plus. f_equal. f_equal.
      + rewrite !sum_scale. reflexivity.
      + rewrite sum_scale. f_equal. unfold Rdiv. rewrite Rmult_comm, <- sum_scale. apply sum_ext. intros; ring. }
  assert (H4 : exp (- sg) * moment a P Q l <= 1).
  { apply Rle_trans with (exp (- sg) * exp sg); [apply Rmult_le_compat_l; [left; apply exp_pos|now apply HD]|].
    rewrite <- exp_plus, Rplus_opp_l, exp_0. lra. }
  assert (H5 : E Q (fun x => within_list l x * h x) <= E Q h).
  { apply (E_mono Q B); [|assumption|]; intros x; pose proof (inside_below l x _ (Hhn x)); pose proof (Hh x); lra. }
  assert (H6 : c * ((1 - th) * (exp (- sg) * moment a P Q l) + th * (E Q (fun x => within_list l x * h x) / exp tau)) <=
    c * (1 - th + th * (E Q h / exp tau))).
  { apply Rmult_le_compat_l; [lra|]. apply Rplus_le_compat.
    - rewrite <- (Rmult_1_r (1 - th)) at 2. apply Rmult_le_compat_l; lra.
    - apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, exp_pos|assumption]. }
  lra.
Qed.

Theorem def_concentrated {X} (N : list X -> list X -> Prop) rho (M : list X -> dist O) : (forall D, discrete dec (M D)) ->
  concentrated N rho M <-> (forall D D', N D D' -> divergence_at_most rho (M D) (M D')).
Proof.
  intros HM. split; intros H D D' HN; [now apply conc_divergence, H|].
  now apply divergence_conc, H.
Qed.
End Pointwise.

(* book/concentrated.md, "The rho of each mechanism": a bounded range eta costs a rho of eta^2 / 8, and so a loss eps one
   of eps^2 / 2.  Without densities: laws whose quotients lie between e^(t - eta) and e^t are what a function makes of two
   outcomes, and for two outcomes it is calculus. *)
From Coq Require Import Reals Lra Psatz List.
From DPForest Require Import Law Privacy Selection Concentrated.
Import ListNotations.
Open Scope R_scope.

(** The logarithms of all quotients lie in an interval of length eta. *)
Definition ranged {O} (eta : R) (P Q : dist O) : Prop := exists t, close t P Q /\ close (eta - t) Q P.
Definition bounded_range {X O} (N : list X -> list X -> Prop) (eta : R) (M : list X -> dist O) : Prop :=
  forall D D', N D D' -> ranged eta (M D) (M D').

(** * Two outcomes: q e^t + (1 - q) e^(t - eta) = 1 *)
Section Two.
Variables (eta t q : R).
Hypothesis Heta : 0 < eta.
Hypothesis Hq : 0 <= q <= 1.
Hypothesis mean : q * exp t + (1 - q) * exp (t - eta) = 1.
Let N (s : R) : R := 1 - q + q * exp (eta * s).
Let w (s : R) : R := q * exp (eta * s) / N s.
Let g (s : R) : R := (t - eta) * s + ln (N s) - eta * eta / 8 * (s * s - s).
Let g' (s : R) : R := t - eta + eta * w s - eta * eta / 8 * (2 * s - 1).

Lemma two_pos s : 0 < N s.
Proof. unfold N. pose proof (exp_pos (eta * s)). destruct (Req_dec q 0) as [->|]; nra. Qed.
Lemma two_exp s : derivable_pt_lim (fun s => exp (eta * s)) s (eta * exp (eta * s)).
Proof.
  replace (eta * exp (eta * s)) with (exp (eta * s) * (eta * 1)) by ring.
  apply (derivable_pt_lim_comp (fun s => eta * s) exp); [|apply derivable_pt_lim_exp].
  apply (derivable_pt_lim_scal id). apply derivable_pt_lim_id.
Qed.
Lemma two_N s : derivable_pt_lim N s (q * (eta * exp (eta * s))).
Proof.
  unfold N. rewrite <- (Rplus_0_l (q * (eta * exp (eta * s)))).
  apply (derivable_pt_lim_plus (fun _ => 1 - q) (fun s => q * exp (eta * s))); [apply derivable_pt_lim_const|].
  apply (derivable_pt_lim_scal (fun s => exp (eta * s))), two_exp.
Qed.
Lemma two_w s : derivable_pt_lim w s (eta * (q * exp (eta * s) * (1 - q)) / (N s * N s)).
Proof.
  pose proof (two_pos s) as HN.
  replace (eta * (q * exp (eta * s) * (1 - q)) / (N s * N s)) with
    ((q * (eta * exp (eta * s)) * N s - q * (eta * exp (eta * s)) * (q * exp (eta * s))) / Rsqr (N s)).
  - apply (derivable_pt_lim_div (fun s => q * exp (eta * s)) N); [|apply two_N|lra].
    apply (derivable_pt_lim_scal (fun s => exp (eta * s))), two_exp.
  - unfold Rsqr. unfold N at 1. field. lra.
Qed.
Lemma two_g s : derivable_pt_lim g s (g' s).
Proof.
  pose proof (two_pos s) as HN. unfold g, g'.
  apply (derivable_pt_lim_minus (fun s => (t - eta) * s + ln (N s)) (fun s => eta * eta / 8 * (s * s - s))).
  - apply (derivable_pt_lim_plus (fun s => (t - eta) * s) (fun s => ln (N s))).
    + pose proof (derivable_pt_lim_scal id (t - eta) s 1 (derivable_pt_lim_id s)) as H. rewrite Rmult_1_r in H. exact H.
    + replace (eta * w s) with (/ N s * (q * (eta * exp (eta * s)))) by (unfold w; field; lra).
      apply (derivable_pt_lim_comp N ln); [apply two_N|]. now apply derivable_pt_lim_ln.
  - apply (derivable_pt_lim_scal (fun s => s * s - s)).
    replace (2 * s - 1) with ((1 * s + s * 1) - 1) by ring.
    apply (derivable_pt_lim_minus (fun s => s * s) id); [|apply derivable_pt_lim_id].
    apply (derivable_pt_lim_mult id id); apply derivable_pt_lim_id.
Qed.
Lemma two_falls r s : r < s -> g' s <= g' r.
Proof.
  intros H. destruct (MVT_cor2 w (fun c => eta * (q * exp (eta * c) * (1 - q)) / (N c * N c)) r s H
    (fun c _ => two_w c)) as (c & E & _).
  assert (Hc : eta * (q * exp (eta * c) * (1 - q)) / (N c * N c) <= eta / 4).
  { pose proof (two_pos c) as HN. apply (Rmult_le_reg_r (N c * N c)); [nra|]. unfold Rdiv at 1.
    rewrite Rmult_assoc, Rinv_l by nra. unfold N. set (x := q * exp (eta * c)).
    pose proof (Rmult_le_pos eta _ (Rlt_le _ _ Heta) (Rle_0_sqr (1 - q - x))) as Hx. unfold Rsqr in Hx. lra. }
  unfold g'. assert (w s - w r <= eta / 4 * (s - r)) by (rewrite E; apply Rmult_le_compat_r; lra). nra.
Qed.
Lemma two_ends : g 0 = 0 /\ g 1 = 0.
Proof.
  unfold g. split.
  - unfold N. rewrite !Rmult_0_r, exp_0. replace (1 - q + q * 1) with 1 by ring. rewrite ln_1. ring.
  - assert (E : N 1 = exp (eta - t)).
    { unfold N. rewrite Rmult_1_r. apply (Rmult_eq_reg_l (exp (t - eta))); [|apply Rgt_not_eq, exp_pos].
      rewrite <- exp_plus. replace (t - eta + (eta - t)) with 0 by ring. rewrite exp_0.
      transitivity (q * exp t + (1 - q) * exp (t - eta)); [|exact mean]. replace (exp t) with (exp (t - eta) * exp eta) by (rewrite <- exp_plus; f_equal; ring). ring. }
    rewrite E, ln_exp. ring.
Qed.
Lemma two_outcomes a : 1 < a -> q * exp (a * t) + (1 - q) * exp (a * (t - eta)) <= exp (a * (a - 1) * (eta * eta / 8)).
Proof.
  intros Ha. destruct two_ends as [E0 E1].
  destruct (MVT_cor2 g g' 0 1 ltac:(lra) (fun c _ => two_g c)) as (c & E & Hc). rewrite E0, E1 in E.
  destruct (MVT_cor2 g g' 1 a Ha (fun c _ => two_g c)) as (d & F & Hd). rewrite E1 in F.
  assert (Hg : g a <= 0) by (pose proof (two_falls c d ltac:(lra)); nra). pose proof (two_pos a) as HN.
  replace (q * exp (a * t) + (1 - q) * exp (a * (t - eta))) with (exp (a * (t - eta)) * exp (ln (N a))).
  - rewrite <- exp_plus. apply exp_le. unfold g in Hg. lra.
  - rewrite exp_ln by assumption. unfold N.
    replace (exp (a * t)) with (exp (a * (t - eta)) * exp (eta * a)) by (rewrite <- exp_plus; f_equal; ring). ring.
Qed.
End Two.

(** * From two outcomes to all *)
Lemma ranged_zero {O} (P Q : dist O) B f : ranged 0 P Q -> test B f -> E P f <= E Q f.
Proof.
  intros (t & H1 & H2) Hf. pose proof (H1 1 (fun _ => 1) (test_one (A := O))) as G1.
  pose proof (H2 1 (fun _ => 1) (test_one (A := O))) as G2. rewrite !E_one in G1, G2.
  assert (t = 0).
  { rewrite Rmult_1_r in G1, G2. rewrite <- exp_0 in G1, G2 at 1. destruct (Rtotal_order t 0) as [H|[H|H]]; [|assumption|].
    - pose proof (exp_increasing _ _ H). lra.
    - assert (H' : 0 - t < 0) by lra. pose proof (exp_increasing _ _ H'). lra. }
  subst. specialize (H1 B f Hf). rewrite exp_0 in H1. lra.
Qed.

Lemma ranged_conc {O} eta (P Q : dist O) : 0 <= eta -> ranged eta P Q -> conc_on anywhere (eta * eta / 8) P Q.
Proof.
  intros [Heta| <-] Hr th Ht B h Hh _.
  2: { replace (th / (1 - th) * (0 * 0 / 8)) with 0 by (field; lra). rewrite exp_0, Rmult_1_l.
    eapply Rle_trans; [|apply (E_power Q B h th Ht Hh)]. apply (ranged_zero P Q (power B th)); [assumption|].
    apply power_test; [lra|assumption]. }
  destruct Hr as (t & H1 & H2). set (l := exp (t - eta)). set (u := exp t). assert (Hl : 0 < l) by apply exp_pos.
  assert (Hlu : l < u) by (apply exp_increasing; lra).
  assert (Hup : forall B f, test B f -> E P f <= u * E Q f) by exact H1.
  assert (Hlo : forall B f, test B f -> l * E Q f <= E P f).
  { intros C f Hf. specialize (H2 C f Hf). apply (Rmult_le_compat_l l) in H2; [|lra]. unfold l in H2 at 2.
    rewrite <- Rmult_assoc, <- exp_plus in H2. replace (t - eta + (eta - t)) with 0 in H2 by ring.
    rewrite exp_0 in H2. lra. }
  pose proof (Hup 1 _ (test_one (A := O))) as U1. pose proof (Hlo 1 _ (test_one (A := O))) as L1. rewrite !E_one in U1, L1.
  set (q := (1 - l) / (u - l)). assert (Eq : q * (u - l) = 1 - l) by (unfold q; field; lra).
  assert (Hq : 0 <= q <= 1) by (split; nra).
  assert (mean : q * exp t + (1 - q) * exp (t - eta) = 1) by (fold u l; lra).
  set (a := / (1 - th)). assert (Ha1 : a * (1 - th) = 1) by (unfold a; field; lra).
  assert (Ha : 1 < a) by (apply (Rmult_lt_reg_r (1 - th)); lra).
  pose proof (two_outcomes eta t q Heta Hq mean a Ha) as HS. set (S := q * exp (a * t) + (1 - q) * exp (a * (t - eta))) in *.
  assert (HSp : 0 < S).
  { unfold S. pose proof (exp_pos (a * t)). pose proof (exp_pos (a * (t - eta))). destruct (Req_dec q 0) as [->|]; nra. }
  set (sg := ln S). assert (Es : exp sg = S) by (now apply exp_ln).
  assert (Hsg : sg <= a * (a - 1) * (eta * eta / 8)).
  { destruct HS as [HS|HS]; [|unfold sg; rewrite HS, ln_exp; lra]. left. rewrite <- (ln_exp (a * _ * _)).
    now apply ln_increasing. }
  (* a line above v times the power, for the two quotients v *)
  assert (Hline : forall lv tau x, 0 <= x -> exp lv * power x th <=
    exp ((1 - th) * sg + th * tau) * ((1 - th) * exp (a * lv - sg) + th * (x / exp tau))).
  { intros lv tau x Hx. pose proof (tangent th (exp (tau + a * lv - sg)) x Ht (exp_pos _) Hx) as H.
    rewrite power_of_exp in H. apply (Rmult_le_compat_l (exp lv)) in H; [|left; apply exp_pos].
    eapply Rle_trans; [exact H|]. right. unfold Rdiv. rewrite <- !exp_Ropp.
    rewrite !Rmult_plus_distr_l, <- !Rmult_assoc, <- !exp_plus.
    set (r := exp (- tau)). set (m := exp ((1 - th) * sg + th * tau + (a * lv - sg))).
    replace (exp ((1 - th) * sg + th * tau) * (1 - th) * exp (a * lv - sg)) with (m * (1 - th))
      by (unfold m; rewrite exp_plus; ring).
    assert (Ea : a = 1 + a * th) by lra.
    f_equal.
    - f_equal. unfold m. f_equal. rewrite Ea at 2. ring.
    - replace (exp (lv + th * (tau + a * lv - sg)) * th * x * exp (- (tau + a * lv - sg))) with
        (exp (lv + th * (tau + a * lv - sg)) * exp (- (tau + a * lv - sg)) * (th * x)) by ring.
      replace (exp ((1 - th) * sg + th * tau) * th * x * r) with (exp ((1 - th) * sg + th * tau) * r * (th * x)) by ring.
      f_equal. unfold r. rewrite <- !exp_plus. f_equal. rewrite Ea at 2. ring. }
  set (f := fun o => power (h o) th). assert (Hf : test (power B th) f) by (apply power_test; [lra|assumption]).
  pose proof (test_bound P B h Hh) as HB.
  assert (Hmain : E P f <= exp ((1 - th) * sg) * power (E Q h) th).
  { apply (Rmult_le_reg_l (exp (- ((1 - th) * sg)))); [apply exp_pos|]. rewrite <- Rmult_assoc, <- exp_plus, Rplus_opp_l, exp_0.
    rewrite Rmult_1_l. apply below_tangents; [assumption|apply (E_range Q B h Hh)|]. intros T HT.
    apply (Rmult_le_reg_l (exp ((1 - th) * sg))); [apply exp_pos|]. rewrite <- Rmult_assoc, <- exp_plus, Rplus_opp_r, exp_0.
    rewrite Rmult_1_l. set (tau := ln T). assert (ET : T = exp tau) by (unfold tau; now rewrite exp_ln). rewrite ET, power_of_exp.
    rewrite <- Rmult_assoc, <- exp_plus. set (c := exp ((1 - th) * sg + th * tau)). assert (Hc : 0 < c) by apply exp_pos.
    set (b := c * th / exp tau). assert (Hb : 0 <= b).
    { unfold b, Rdiv. apply Rmult_le_pos; [apply Rmult_le_pos; lra|left; apply Rinv_0_lt_compat, exp_pos]. }
    (* what the line leaves is a test *)
    assert (Hrest : forall lv, let k := c * (1 - th) * exp (a * lv - sg) in
      test (k + b * B) (fun o => k + b * h o - exp lv * f o) /\ 0 <= k /\
      forall d : dist O, E d (fun o => k + b * h o - exp lv * f o) = k + b * E d h - exp lv * E d f).
    { intros lv k. assert (Hk : 0 <= k).
      { unfold k. apply Rmult_le_pos; [apply Rmult_le_pos; lra|left; apply exp_pos]. }
      assert (Hv : 0 <= exp lv) by (left; apply exp_pos). pose proof (Rmult_le_pos _ _ Hb HB) as HbB.
      pose proof (Rmult_le_pos _ _ Hv (power_nonneg B th)) as HvB.
      assert (Hvf : forall o, 0 <= exp lv * f o <= exp lv * power B th).
      { intros o. destruct (Hf o). split; [now apply Rmult_le_pos|now apply Rmult_le_compat_l]. }
      assert (Hrt : test (k + b * B) (fun o => k + b * h o - exp lv * f o)).
      { intros o. pose proof (Hh o) as Ho. pose proof (Hvf o) as Ho'.
        pose proof (Rmult_le_compat_l b _ _ Hb (proj2 Ho)) as Hbh. split; [|lra].
        pose proof (Hline lv tau (h o) (proj1 Ho)) as H. fold c in H. fold (f o) in H.
        replace (c * ((1 - th) * exp (a * lv - sg) + th * (h o / exp tau))) with (k + b * h o) in H; [lra|].
        unfold k, b, Rdiv. ring. }
      split; [exact Hrt|]. split; [exact Hk|]. intros d. rewrite <- (E_line d B h k b Hk Hb Hh).
      rewrite <- (E_scale d (power B th) (exp lv) f Hf) by lra.
      assert (H : E d (fun o => (k + b * h o - exp lv * f o) + exp lv * f o) = E d (fun o => k + b * h o - exp lv * f o) +
        E d (fun o => exp lv * f o)).
      { apply (E_plus d (k + b * B + exp lv * power B th)).
        - intros o. specialize (Hrt o). cbv beta in *. lra.
        - intros o. specialize (Hvf o). lra. }
      rewrite (E_ext d _ (fun o => k + b * h o)) in H by (intros; ring). lra. }
    destruct (Hrest t) as (Hu1 & Hu2 & Hu3). destruct (Hrest (t - eta)) as (Hl1 & Hl2 & Hl3).
    pose proof (Hlo _ _ Hu1) as A1. pose proof (Hup _ _ Hl1) as A2. rewrite !Hu3 in A1. rewrite !Hl3 in A2.
    fold l u in A1, A2, Hu2, Hl2 |- *. set (ku := c * (1 - th) * exp (a * t - sg)) in *.
    set (kl := c * (1 - th) * exp (a * (t - eta) - sg)) in *.
    assert (Hsum : q * ku + (1 - q) * kl = c * (1 - th)).
    { unfold ku, kl, Rminus. rewrite !(exp_plus _ (- sg)), exp_Ropp, Es.
      replace (q * (c * (1 + - th) * (exp (a * t) * / S)) + (1 + - q) * (c * (1 + - th) * (exp (a * (t + - eta)) * / S))) with
        (c * (1 + - th) * (S * / S)) by (unfold S, Rminus; ring). rewrite Rinv_r by lra. ring. }
    replace (c * (1 - th + th * (E Q h / exp tau))) with (q * ku + (1 - q) * kl + b * E Q h)
      by (rewrite Hsum; unfold b, Rdiv; ring).
    apply (Rmult_le_reg_l (u - l)); [lra|].
    replace ((u - l) * (q * ku + (1 - q) * kl + b * E Q h)) with
      ((q * (u - l)) * ku + ((u - l) - q * (u - l)) * kl + (u - l) * (b * E Q h)) by ring.
    rewrite Eq. clear - A1 A2. lra. }
  eapply Rle_trans; [exact Hmain|]. apply Rmult_le_compat_r; [apply power_nonneg|]. apply exp_le.
  apply Rle_trans with ((1 - th) * (a * (a - 1) * (eta * eta / 8))); [apply Rmult_le_compat_l; lra|].
  right. unfold a. field. lra.
Qed.

Theorem lem_range_concentrated {X O} (N : list X -> list X -> Prop) eta (M : list X -> dist O) : 0 <= eta ->
  bounded_range N eta M -> concentrated N (eta * eta / 8) M.
Proof. intros He H D D' HN. now apply ranged_conc, H. Qed.

(** A loss eps is a range of 2 eps at most. *)
Theorem lem_range_concentrated_loss {X O} (N : list X -> list X -> Prop) eps (M : list X -> dist O) : 0 <= eps ->
  (forall D D', N D D' -> N D' D) -> private N eps M -> concentrated N (eps * eps / 2) M.
Proof.
  intros He Hs H D D' HN. replace (eps * eps / 2) with ((2 * eps) * (2 * eps) / 8) by field.
  apply ranged_conc; [lra|]. exists eps. split; [exact (H D D' HN)|].
  replace (2 * eps - eps) with eps by ring. exact (H D' D (Hs D D' HN)).
Qed.

(** * The exponential mechanism *)
Lemma largest {K} (d : K -> R) first others : exists r, In r (first :: others) /\ forall s, In s (first :: others) -> d s <= d r.
Proof.
  induction others as [|k l (r & Hr & H)]; [exists first; split; [now left|]; intros s [<-|[]]; lra|].
  destruct (Rle_dec (d r) (d k)) as [Hk|Hk].
  - exists k. split; [right; now left|]. intros s [<-|[<-|Hs]]; [|lra|].
    + eapply Rle_trans; [apply H; now left|exact Hk].
    + eapply Rle_trans; [apply H; now right|exact Hk].
  - exists r. split; [destruct Hr; [now left|right; now right]|]. intros s [<-|[<-|Hs]]; [apply H; now left|lra|apply H; now right].
Qed.
Theorem thm_exponential_bounded_range {X K} first others (N : list X -> list X -> Prop) rate (q : list X -> K -> R) R :
  0 <= rate -> range N q R -> bounded_range N (rate * R) (exponential first others rate q).
Proof.
  intros Hr HR D D' HN. set (d := fun r => rate * q D r - rate * q D' r).
  destruct (largest d first others) as (top & Ht & Hd).
  set (W := sum (fun r => exp (rate * q D r)) (candidates first others)).
  set (V := sum (fun r => exp (rate * q D' r)) (candidates first others)).
  assert (HW : 0 < W) by (apply weight_pos; intros; apply exp_pos).
  assert (HV : 0 < V) by (apply weight_pos; intros; apply exp_pos).
  exists (d top + (ln V - ln W)). split; intros B f Hf; unfold exponential; rewrite !E_weighted; fold W V.
  - unfold Rminus. rewrite !exp_plus, exp_Ropp, !exp_ln by assumption.
    replace (exp (d top) * (V * / W) * (/ V * sum (fun r => exp (rate * q D' r) * f r) (candidates first others))) with
      (/ W * (exp (d top) * sum (fun r => exp (rate * q D' r) * f r) (candidates first others))) by (field; lra).
    apply Rmult_le_compat_l; [left; now apply Rinv_0_lt_compat|]. rewrite <- sum_scale. apply sum_mono. intros r Hi.
    rewrite <- Rmult_assoc, <- exp_plus. apply Rmult_le_compat_r; [apply Hf|]. apply exp_le.
    specialize (Hd r Hi). unfold d in *. lra.
  - replace (rate * R - (d top + (ln V - ln W))) with (rate * R - d top + ln W - ln V) by ring. unfold Rminus.
    rewrite !exp_plus, (exp_Ropp (ln V)), !exp_ln by assumption.
    replace (exp (rate * R) * exp (- d top) * W * / V * (/ W * sum (fun r => exp (rate * q D r) * f r) (candidates first others)))
      with (/ V * (exp (rate * R) * exp (- d top) * sum (fun r => exp (rate * q D r) * f r) (candidates first others)))
      by (field; lra).
    apply Rmult_le_compat_l; [left; now apply Rinv_0_lt_compat|]. rewrite <- exp_plus, <- sum_scale. apply sum_mono.
    intros r Hi. rewrite <- Rmult_assoc, <- exp_plus. apply Rmult_le_compat_r; [apply Hf|]. apply exp_le.
    specialize (HR D D' HN top r). unfold d. nra.
Qed.

(** * A ledger of losses as one of rhos: c^2 / 2 for each loss c *)
From DPForest Require Import Program Certificate Delta.
Fixpoint in_rhos {Y O} (g : fit Y O) : fit Y O :=
  match g with
  | Stop => Stop
  | Query v q alpha rho next => Query v q (alpha * alpha / 2) (rho * rho / 2) (fun o => in_rhos (next o))
  | Divide v w next => Divide v w (in_rhos next)
  end.
Theorem thm_certificate_delta_of_losses {Y O} (g : fit Y O) : truthful g -> truthful_rho (in_rhos g).
Proof.
  induction g as [|v q al rh next IH|v w next IH]; simpl; [easy| |easy]. intros (Ha & Hr & Hqa & Hqr & Hn).
  split; [nra|]. split; [nra|]. split; [|split; [|intros o; now apply IH]].
  - apply lem_range_concentrated_loss; [assumption| |assumption]. intros D D' [x [H|H]]; exists x; auto.
  - apply lem_range_concentrated_loss; [assumption| |assumption].
    intros D D' (x & x' & l1 & l2 & E1 & E2). exists x', x, l1, l2. auto.
Qed.

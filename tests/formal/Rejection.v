(* book/concentrated.md, "The rho of each mechanism": the law of discrete Gaussian noise, that nothing smaller than its
   rho holds, and that it is what a rejection from two-sided geometric numbers keeps, which is how it is drawn. *)
From Coq Require Import Reals Lra Psatz List ZArith Lia FunctionalExtensionality SeqProp Rseries.
From DPForest Require Import Law Privacy Noise Account Concentrated Divergence Gaussian.
Import ListNotations.
Open Scope R_scope.

(** * The law *)
Section Law.
Variable rate : posreal.
Let S0 := bell_sum rate 0.
Let S_pos : 0 < S0 := bell_sum_pos rate (cond_pos rate) 0.
Let below c : sums_below (bell rate c) (ceiling rate) := bell_below rate (cond_pos rate) c.

Lemma gaussian_point c n : Pr Z.eq_dec (with_gaussian rate c) n = bell rate (IZR c) n / S0.
Proof.
  unfold Pr. rewrite (E_with_gaussian rate 1) by apply test_ind. fold S0. unfold Rdiv. rewrite Rmult_comm. f_equal.
  set (f := fun j => bell rate (IZR c) j * ind Z.eq_dec n j).
  assert (Hf : sums_below f (1 * ceiling rate)) by (apply (below_test _ _ _ 1 (below (IZR c))), test_ind).
  assert (En : f n = bell rate (IZR c) n) by (unfold f, ind; destruct (Z.eq_dec n n); [ring|easy]).
  apply Rle_antisym; [|rewrite <- En; now apply (term_infinite f (1 * ceiling rate))]. apply infinite_below.
  split; [apply Hf|]. intros l Hl. rewrite <- En. destruct (in_dec Z.eq_dec n l) as [Hn|Hn].
  - destruct (in_split n l Hn) as (l1 & l2 & ->). rewrite sum_app. cbn [sum fold_right].
    apply NoDup_remove_2 in Hl. assert (H0 : forall m, incl m (l1 ++ l2) -> sum f m = 0).
    { intros m Hm. transitivity (sum (fun _ => 0) m); [|rewrite sum_const; ring]. apply sum_ext. intros j Hj.
      unfold f, ind. destruct (Z.eq_dec j n) as [->|]; [exfalso; apply Hl, Hm, Hj|ring]. }
    pose proof (H0 l1 ltac:(intros j Hj; apply in_or_app; now left)) as E1.
    pose proof (H0 l2 ltac:(intros j Hj; apply in_or_app; now right)) as E2. unfold sum in *. lra.
  - apply Rle_trans with 0; [|apply Hf]. right. transitivity (sum (fun _ => 0) l); [|rewrite sum_const; ring].
    apply sum_ext. intros j Hj. unfold f, ind. destruct (Z.eq_dec j n) as [->|]; [contradiction|ring].
Qed.
Theorem lem_discrete_gaussian_law c k : Pr Z.eq_dec (with_gaussian rate c) (c + k)%Z =
  exp (- (rate * (IZR k * IZR k))) / infinite_sum (fun n => exp (- (rate * (IZR n * IZR n)))).
Proof.
  rewrite gaussian_point. unfold S0, bell_sum, bell. rewrite plus_IZR. do 2 f_equal; [do 2 f_equal; ring|].
  f_equal. apply functional_extensionality. intros n. do 2 f_equal. ring.
Qed.

(** Whole orders have the rho itself. *)
Theorem thm_discrete_gaussian_exact c c' (a : Z) :
  infinite_sum (fun n => power (Pr Z.eq_dec (with_gaussian rate c) n) (IZR a) *
    power (Pr Z.eq_dec (with_gaussian rate c') n) (1 - IZR a)) =
  exp ((IZR a - 1) * (IZR a * (rate * (IZR (c - c') * IZR (c - c'))))).
Proof.
  set (x := exp _). set (m := (a * c + (1 - a) * c')%Z).
  transitivity (infinite_sum (fun n => x / S0 * bell rate (IZR m) n)).
  - f_equal. apply functional_extensionality. intros n. rewrite !gaussian_point.
    assert (HB : forall d, 0 < bell rate (IZR d) n / S0)
      by (intros; apply Rdiv_lt_0_compat; [apply bell_pos|apply S_pos]).
    assert (HL : forall d, ln (bell rate (IZR d) n / S0) = - (rate * ((IZR n - IZR d) * (IZR n - IZR d))) - ln S0).
    { intros d. unfold Rdiv. rewrite ln_mult, ln_Rinv; [unfold bell; rewrite ln_exp; ring|apply S_pos|apply bell_pos|].
      apply Rinv_0_lt_compat, S_pos. }
    rewrite !power_pos, !HL, <- exp_plus by apply HB. unfold Rdiv.
    rewrite <- (exp_ln (/ S0)), ln_Rinv by (try apply Rinv_0_lt_compat; apply S_pos). unfold x, bell.
    rewrite <- !exp_plus. f_equal. unfold m. rewrite plus_IZR, !mult_IZR, !minus_IZR. ring.
  - rewrite (infinite_scale _ _ (ceiling rate));
      [|left; apply Rdiv_lt_0_compat; [apply exp_pos|apply S_pos]|apply below].
    fold (bell_sum rate (IZR m)). rewrite <- (Rplus_0_l (IZR m)), bell_sum_moved by apply cond_pos. fold S0. field.
    apply Rgt_not_eq, S_pos.
Qed.
(** So no smaller rho holds. *)
Theorem thm_discrete_gaussian_sharp c c' rho : conc_on anywhere rho (with_gaussian rate c) (with_gaussian rate c') ->
  rate * (IZR (c - c') * IZR (c - c')) <= rho.
Proof.
  intros H. destruct (conc_divergence Z.eq_dec _ _ _ H) as [_ HD]. specialize (HD 2 ltac:(lra)).
  pose proof (thm_discrete_gaussian_exact c c' 2) as E. set (r := rate * _) in *.
  assert (Hx : exp ((2 - 1) * (2 * r)) <= exp ((2 - 1) * (2 * rho))).
  { rewrite <- E. apply infinite_below. split; [|exact HD]. intros n. apply Rmult_le_pos; apply power_nonneg. }
  destruct (Rle_lt_dec r rho) as [|Hn]; [assumption|exfalso].
  pose proof (exp_increasing ((2 - 1) * (2 * rho)) ((2 - 1) * (2 * r)) ltac:(lra)). lra.
Qed.
End Law.

(** * Two-sided geometric noise as a sum over whole numbers *)
Section TwoSided.
Variable s : R.
Hypothesis Hs : 0 < s.
Let fall (n : Z) : R := exp (- (s * IZR (Z.abs n))).

Lemma sum_seq (g : Z -> R) h n : sum g (map h (seq 0 (S n))) = sum_f_R0 (fun k => g (h k)) n.
Proof.
  rewrite sum_map. induction n as [|n IH]; [simpl; ring|]. rewrite seq_S, sum_app, IH. simpl. ring.
Qed.
Lemma fall_up k : fall (Z.of_nat k) = a s ^ k.
Proof.
  unfold fall, a. rewrite Z.abs_eq by lia. rewrite <- INR_IZR_INZ. induction k as [|k IH].
  { simpl. rewrite Rmult_0_r, Ropp_0. apply exp_0. }
  rewrite S_INR. simpl pow. rewrite <- IH, <- exp_plus. f_equal. ring.
Qed.
Lemma fall_down k : fall (- 1 - Z.of_nat k) = a s * a s ^ k.
Proof.
  change (a s * a s ^ k) with (a s ^ S k). rewrite <- fall_up. unfold fall. do 3 f_equal. f_equal. lia.
Qed.
Lemma noisy_infinite B f : test B f -> E (noisy s Hs 0) f = kappa s * infinite_sum (fun n => fall n * f n).
Proof.
  intros Hf. rewrite E_noisy. set (g := fun n => fall n * f n). pose proof (a_range s Hs) as Ha.
  set (u := series _ _ (up 0 f)). set (d := series _ _ (down 0 f)).
  set (among := fun n => map Z.of_nat (seq 0 (S n)) ++ map (fun k => - 1 - Z.of_nat k)%Z (seq 0 (S n))).
  assert (Hg : forall n, 0 <= g n) by (intros n; apply Rmult_le_pos; [left; apply exp_pos|apply Hf]).
  assert (Eg : forall n, sum g (among n) = partial (a s) (up 0 f) n + a s * partial (a s) (down 0 f) n).
  { intros n. unfold among. rewrite sum_app, !sum_seq. unfold partial. f_equal.
    - apply sum_eq. intros k _. unfold g, up. now rewrite fall_up.
    - rewrite scal_sum. apply sum_eq. intros k _. unfold g, down. rewrite fall_down.
      replace (0 - 1 - Z.of_nat k)%Z with (- 1 - Z.of_nat k)%Z by lia. ring. }
  assert (Hfu : test B (up 0 f)) by (intros k; apply Hf). assert (Hfd : test B (down 0 f)) by (intros k; apply Hf).
  assert (Hb : sums_below g (u + a s * d)).
  { split; [exact Hg|]. intros l Hl. assert (Hi : exists n, incl l (among n)).
    { assert (H : exists n, forall x, In x l -> (Z.abs x <= Z.of_nat n)%Z).
      { clear Hl. induction l as [|x l (n & Hn)]; [now exists 0%nat|]. exists (n + Z.abs_nat x)%nat.
        intros y [->|Hy]; [lia|]. specialize (Hn y Hy). lia. }
      destruct H as [n Hn]. exists n. intros x Hx. specialize (Hn x Hx). apply in_or_app.
      destruct (Z_lt_le_dec x 0); [right|left]; apply in_map_iff; [exists (Z.to_nat (- 1 - x))|exists (Z.to_nat x)];
        (split; [lia|apply in_seq; lia]). }
    destruct Hi as [n Hn]. eapply Rle_trans; [apply (sum_incl g l _ Hg Hl Hn)|]. rewrite Eg.
    apply Rplus_le_compat; [|apply Rmult_le_compat_l; [lra|]];
      (apply growing_ineq; [apply partial_grows; [exact Ha|]|now apply (series_limit _ _ B)]);
      intros H; apply H; now exists B. }
  f_equal. apply Rle_antisym; [|now apply infinite_below].
  apply (RiemannInt.Rle_cv_lim (Un := fun n => partial (a s) (up 0 f) n + a s * partial (a s) (down 0 f) n)
    (Vn := fun _ => infinite_sum g)).
  - intros n. rewrite <- Eg. apply (sum_infinite g _ Hb). unfold among.
    apply nodup_app; [apply nodup_map; [intros; lia|apply seq_NoDup]..|].
    intros x H1 H2. apply in_map_iff in H1 as (i & <- & _). apply in_map_iff in H2 as (j & H2 & _). lia.
  - assert (HC : forall c, Un_cv (fun _ => c) c)
      by (intros c e He; exists 0%nat; intros; unfold R_dist; now rewrite Rminus_diag_eq, Rabs_R0).
    apply CV_plus; [now apply (series_limit _ _ B)|]. apply CV_mult; [apply HC|now apply (series_limit _ _ B)].
  - intros e He. exists 0%nat. intros. unfold R_dist. now rewrite Rminus_diag_eq, Rabs_R0.
Qed.
End TwoSided.

(** * Draw a two-sided geometric number, keep it with some probability, else draw again *)
Section Rejection.
Variables (rate : posreal) (s c : R).
Hypothesis Hs : 0 < s.
Let above (k : Z) : R := rate * (IZR k * IZR k) - s * IZR (Z.abs k) + c.
Hypothesis Hc : forall k, 0 <= above k.

Lemma keep_range k : 0 <= exp (- above k) <= 1.
Proof. split; [left; apply exp_pos|]. rewrite <- exp_0. apply exp_le. specialize (Hc k). lra. Qed.
Definition tossed (k : Z) : dist bool.
Proof.
  refine (finite [true; false] (fun b => if b then exp (- above k) else 1 - exp (- above k)) _ _).
  - intros b _. pose proof (keep_range k). destruct b; lra.
  - simpl. ring.
Defined.
(** What is kept after at most n draws, if anything is. *)
Fixpoint draws (n : nat) : dist (option Z) :=
  match n with
  | O => ret None
  | S n => bind (noisy s Hs 0) (fun k => bind (tossed k) (fun b : bool => if b then ret (Some k) else draws n))
  end.
(** The probability that a draw is kept. *)
Definition share : R := kappa s * exp (- c) * bell_sum rate 0.

Lemma kept_mean B f : test B f -> E (noisy s Hs 0) (fun k => exp (- above k) * f k) = share * E (gaussian rate) f.
Proof.
  intros Hf. rewrite (noisy_infinite s Hs B).
  2: { intros k. pose proof (keep_range k). specialize (Hf k). nra. }
  rewrite E_gaussian. pose proof (bell_sum_pos rate (cond_pos rate) 0) as HS. unfold share.
  transitivity (kappa s * (exp (- c) * infinite_sum (fun k => bell rate 0 k * f k))); [f_equal|field; lra].
  rewrite <- (infinite_scale _ _ (B * ceiling rate)); [|left; apply exp_pos|].
  - f_equal. apply functional_extensionality. intros k. rewrite <- !Rmult_assoc. f_equal. unfold above, bell.
    rewrite <- !exp_plus. f_equal. ring.
  - apply below_test; [apply bell_below, cond_pos|assumption].
Qed.
Lemma share_range : 0 < share <= 1.
Proof.
  assert (Hk := kappa_pos s Hs). pose proof (bell_sum_pos rate (cond_pos rate) 0) as HS. split.
  - apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; [exact Hk|apply exp_pos]|exact HS].
  - rewrite <- (Rmult_1_r share), <- (E_one (gaussian rate)), <- (kept_mean 1) by (intros k; lra).
    rewrite E_one. apply (E_range _ 1). intros k. pose proof (keep_range k). lra.
Qed.

(** Whatever s and c are, what is kept has the law of the discrete Gaussian, and with probability one something is. *)
Theorem lem_discrete_gaussian_rejection n B f : test B f -> 0 < share <= 1 /\
  E (draws n) (fun o => match o with Some k => f k | None => 0 end) = (1 - (1 - share) ^ n) * E (gaussian rate) f.
Proof.
  intros Hf. split; [exact share_range|]. set (F := fun o => match o with Some k => f k | None => 0 end).
  assert (HB : 0 <= B) by (specialize (Hf 0%Z); lra).
  assert (HF : test B F) by (intros [k|]; simpl; [apply Hf|lra]).
  induction n as [|n IH]; [simpl; ring|]. set (r := E (draws n) F) in *.
  assert (Hr : 0 <= r <= B) by now apply E_range.
  transitivity (E (noisy s Hs 0) (fun k => exp (- above k) * f k + (1 - exp (- above k)) * r)).
  { change (E (draws (S n)) F) with (E (noisy s Hs 0) (fun k => E (bind (tossed k) (fun b : bool =>
      if b then ret (Some k) else draws n)) F)).
    apply E_ext. intros k. simpl. fold r. ring. }
  rewrite (E_plus _ B) by (intros k; pose proof (keep_range k); specialize (Hf k); nra). rewrite (kept_mean B f Hf).
  assert (E1 : E (noisy s Hs 0) (fun k => (1 - exp (- above k)) * r) = (1 - share) * r).
  { pose proof (kept_mean 1 (fun _ => 1) ltac:(intros k; lra)) as H. rewrite E_one in H.
    rewrite (E_ext _ _ (fun k => r * (1 - exp (- above k) * 1))) by (intros; ring).
    rewrite (E_scale _ 1) by (try (intros k; pose proof (keep_range k)); lra).
    pose proof (E_plus (noisy s Hs 0) 1 (fun k => exp (- above k) * 1) (fun k => 1 - exp (- above k) * 1)
      ltac:(intros k; pose proof (keep_range k); lra) ltac:(intros k; pose proof (keep_range k); lra)) as HE.
    rewrite (E_ext _ _ (fun _ => 1)), E_one, H in HE by (intros; ring). rewrite Rmult_comm. f_equal. lra. }
  rewrite E1, IH. simpl pow. ring.
Qed.
End Rejection.

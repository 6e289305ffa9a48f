(* book/mechanisms.md, "Noise on counts": two-sided geometric noise, an infinite series on the integers. *)
From Coq Require Import Reals Lra Psatz List ZArith Lia Classical_Prop ClassicalDedekindReals SeqProp Rseries.
From DPForest Require Import Law Privacy.
Import ListNotations.
Open Scope R_scope.

(** * The series of a^k g(k) over k = 0, 1, 2, ... *)
Section Series.
Variable a : R.
Hypothesis Ha : 0 < a < 1.

Definition partial (g : nat -> R) (n : nat) : R := sum_f_R0 (fun k => a ^ k * g k) n.

Lemma partial_one n : partial (fun _ => 1) n <= / (1 - a).
Proof.
  unfold partial. rewrite (sum_eq _ (fun k => a ^ k)) by (intros; ring).
  rewrite tech3 by lra. pose proof (pow_le a (S n) ltac:(lra)). unfold Rdiv.
  assert (0 < / (1 - a)) by (apply Rinv_0_lt_compat; lra). nra.
Qed.

Lemma partial_grows g : ~ ~ (exists B, test B g) -> Un_growing (partial g).
Proof.
  intros H n. apply NNPP in H as [B H]. unfold partial. rewrite tech5.
  pose proof (pow_le a (S n) ltac:(lra)). specialize (H (S n)). nra.
Qed.

Lemma partial_bounded g : ~ ~ (exists B, test B g) -> has_ub (partial g).
Proof.
  intros H. apply NNPP in H as [B H]. exists (B * / (1 - a)). intros y [n ->].
  assert (HB : 0 <= B) by (specialize (H 0%nat); lra).
  apply Rle_trans with (B * partial (fun _ => 1) n); [|apply Rmult_le_compat_l; [assumption|apply partial_one]].
  unfold partial. rewrite scal_sum. apply sum_Rle. intros k _. specialize (H k). pose proof (pow_le a k ltac:(lra)). nra.
Qed.

Definition series (g : nat -> R) : R :=
  match sig_not_dec (exists B, test B g) with
  | left H => proj1_sig (growing_cv _ (partial_grows g H) (partial_bounded g H))
  | right _ => 0
  end.

Lemma series_limit B g : test B g -> Un_cv (partial g) (series g).
Proof.
  intros H. unfold series. destruct (sig_not_dec _) as [H'|H'].
  - apply (proj2_sig (growing_cv _ (partial_grows g H') (partial_bounded g H'))).
  - exfalso. apply H'. now exists B.
Qed.

Lemma limit_ext u v l : (forall n, u n = v n) -> Un_cv u l -> Un_cv v l.
Proof. intros H Hu e He. destruct (Hu e He) as [N HN]. exists N. intros n Hn. rewrite <- H. auto. Qed.

Lemma series_mono B g h : test B g -> test B h -> (forall k, g k <= h k) -> series g <= series h.
Proof.
  intros Hg Hh H. apply (fun H => RiemannInt.Rle_cv_lim (Un := partial g) (Vn := partial h) H (series_limit B g Hg) (series_limit B h Hh)).
  intros n. apply sum_Rle. intros k _. apply Rmult_le_compat_l; [apply pow_le; lra|apply H].
Qed.
Lemma series_plus B g h : test B g -> test B h -> series (fun k => g k + h k) = series g + series h.
Proof.
  intros Hg Hh. apply (UL_sequence (partial (fun k => g k + h k))).
  - apply (series_limit (B + B)). intros k. specialize (Hg k). specialize (Hh k). lra.
  - apply (limit_ext (fun n => partial g n + partial h n)).
    + intros n. unfold partial. rewrite <- plus_sum. apply sum_eq. intros; ring.
    + apply CV_plus; now apply (series_limit B).
Qed.
Lemma series_scale B c g : test B g -> 0 <= c -> series (fun k => c * g k) = c * series g.
Proof.
  intros Hg Hc. apply (UL_sequence (partial (fun k => c * g k))).
  - apply (series_limit (c * B)). intros k. specialize (Hg k). nra.
  - apply (limit_ext (fun n => c * partial g n)).
    + intros n. unfold partial. rewrite scal_sum. apply sum_eq. intros; ring.
    + apply CV_mult; [|now apply (series_limit B)]. intros e He. exists 0%nat. intros. unfold R_dist. now rewrite Rminus_diag_eq, Rabs_R0.
Qed.

(** The first term, and the rest. *)
Lemma series_step B g : test B g -> series g = g 0%nat + a * series (fun k => g (S k)).
Proof.
  intros Hg. assert (Ht : test B (fun k => g (S k))) by (intros k; apply Hg).
  apply (UL_sequence (fun n => partial g (S n))).
  - intros e He. destruct (series_limit B g Hg e He) as [N HN]. exists N. intros n Hn. apply HN. lia.
  - apply (limit_ext (fun n => g 0%nat + a * partial (fun k => g (S k)) n)).
    + intros n. unfold partial. rewrite (decomp_sum _ (S n)) by lia. simpl pred. rewrite scal_sum. simpl pow at 1. f_equal; [ring|].
      apply sum_eq. intros; simpl; ring.
    + assert (HC : forall c, Un_cv (fun _ => c) c)
        by (intros c e He; exists 0%nat; intros; unfold R_dist; now rewrite Rminus_diag_eq, Rabs_R0).
      apply CV_plus; [apply HC|]. apply CV_mult; [apply HC|now apply (series_limit B)].
Qed.
Lemma series_zero : series (fun _ => 0) = 0.
Proof. pose proof (series_step 0 (fun _ => 0) ltac:(intros k; lra)). simpl in H. nra. Qed.
Lemma series_one : series (fun _ => 1) = / (1 - a).
Proof.
  pose proof (series_step 1 (fun _ => 1) ltac:(intros k; lra)) as H. simpl in H.
  apply Rmult_eq_reg_r with (1 - a); [|lra]. rewrite Rinv_l by lra. lra.
Qed.
End Series.

(** * def-laplace: c + k has probability (1-a)/(1+a) a^|k|, a = e^(-rate) *)
Section TwoSided.
Variable rate : R.
Hypothesis Hrate : 0 < rate.
Definition a := exp (- rate).
Lemma a_range : 0 < a < 1.
Proof. unfold a. split; [apply exp_pos|]. rewrite <- exp_0. apply exp_increasing. lra. Qed.
Definition kappa := (1 - a) * / (1 + a).
Lemma kappa_pos : 0 < kappa.
Proof. pose proof a_range. unfold kappa. apply Rmult_lt_0_compat; [lra|]. apply Rinv_0_lt_compat. lra. Qed.

Definition up (c : Z) (f : Z -> R) : nat -> R := fun k => f (c + Z.of_nat k)%Z.
Definition down (c : Z) (f : Z -> R) : nat -> R := fun k => f (c - 1 - Z.of_nat k)%Z.

Definition noisy (c : Z) : dist Z.
Proof.
  pose proof a_range as Ha. pose proof kappa_pos as Hk.
  refine (Dist (fun f => kappa * (series a Ha (up c f) + a * series a Ha (down c f))) _ _ _ _).
  - intros B f g Hf Hg H. apply Rmult_le_compat_l; [lra|]. apply Rplus_le_compat; [|apply Rmult_le_compat_l; [lra|]];
      apply (series_mono a Ha B); intros k; try apply Hf; try apply Hg; apply H.
  - intros B f g Hf Hg. unfold up, down.
    rewrite !(series_plus a Ha B) by (intros k; try apply Hf; apply Hg). ring.
  - intros B x f Hf Hx. unfold up, down. rewrite !(series_scale a Ha B) by (try assumption; intros k; apply Hf). ring.
  - unfold up, down. rewrite series_one. unfold kappa. field. lra.
Defined.
Lemma E_noisy c f : E (noisy c) f = kappa * (series a a_range (up c f) + a * series a a_range (down c f)).
Proof. reflexivity. Qed.

Lemma up_step B c f : test B f -> series a a_range (up c f) = f c + a * series a a_range (up (c + 1) f).
Proof.
  intros Hf. rewrite (series_step a a_range B) by (intros k; apply Hf). unfold up at 1. rewrite Z.add_0_r.
  do 3 f_equal. unfold up. apply FunctionalExtensionality.functional_extensionality. intros k. f_equal. lia.
Qed.
Lemma down_step B c f : test B f -> series a a_range (down (c + 1) f) = f c + a * series a a_range (down c f).
Proof.
  intros Hf. rewrite (series_step a a_range B) by (intros k; apply Hf). unfold down at 1. f_equal; [f_equal; lia|].
  do 2 f_equal. unfold down. apply FunctionalExtensionality.functional_extensionality. intros k. f_equal. lia.
Qed.
Lemma series_nonneg B (g : nat -> R) : test B g -> 0 <= series a a_range g.
Proof.
  intros H. rewrite <- (series_zero a a_range). apply (series_mono a a_range B); try assumption.
  - intros k. specialize (H k). lra.
  - intros k. apply H.
Qed.
Lemma exp_rate_a : exp rate * a = 1.
Proof. unfold a. rewrite <- exp_plus, Rplus_opp_r. apply exp_0. Qed.

(** A count that changes by one. *)
Lemma noisy_step c : close rate (noisy c) (noisy (c + 1)) /\ close rate (noisy (c + 1)) (noisy c).
Proof.
  pose proof a_range as Ha. pose proof kappa_pos as Hk. pose proof exp_rate_a as He.
  assert (H1 : 1 < exp rate) by nra.
  split; intros B f Hf; rewrite !E_noisy, (up_step B c f Hf), (down_step B c f Hf);
    pose proof (series_nonneg B (up (c + 1) f) (fun k => Hf _)) as HU;
    pose proof (series_nonneg B (down c f) (fun k => Hf _)) as HV; pose proof (Hf c) as Hc;
    set (U := series a a_range (up (c + 1) f)) in *; set (V := series a a_range (down c f)) in *.
  - replace (exp rate * (kappa * (U + a * (f c + a * V))))
      with (kappa * (exp rate * U + (exp rate * a) * (f c + a * V))) by ring.
    rewrite He. apply Rmult_le_compat_l; [lra|nra].
  - replace (exp rate * (kappa * (f c + a * U + a * V)))
      with (kappa * (exp rate * f c + (exp rate * a) * (U + V))) by ring.
    rewrite He. apply Rmult_le_compat_l; [lra|].
    assert (a * V <= V) by nra. assert (a * (a * V) <= a * V) by nra. assert (a * f c <= exp rate * f c) by nra. nra.
Qed.

(** Part (b): the law itself, and its ratios. *)
Lemma series_at m : series a a_range (fun k => if Nat.eq_dec k m then 1 else 0) = a ^ m.
Proof.
  assert (H1 : forall m, test 1 (fun k => if Nat.eq_dec k m then 1 else 0)) by (intros n k; destruct (Nat.eq_dec k n); lra).
  induction m as [|m IH]; rewrite (series_step a a_range 1) by apply H1.
  - destruct (Nat.eq_dec 0 0) as [_|n]; [|easy].
    rewrite (f_equal (series a a_range)) with (y := fun _ => 0); [rewrite series_zero; simpl; ring|].
    apply FunctionalExtensionality.functional_extensionality. intros k. now destruct (Nat.eq_dec (S k) 0).
  - destruct (Nat.eq_dec 0 (S m)) as [|_]; [easy|].
    rewrite (f_equal (series a a_range)) with (y := fun k => if Nat.eq_dec k m then 1 else 0); [rewrite IH; simpl; ring|].
    apply FunctionalExtensionality.functional_extensionality. intros k.
    destruct (Nat.eq_dec (S k) (S m)), (Nat.eq_dec k m); congruence || lia || reflexivity.
Qed.

Theorem def_laplace c k : Pr Z.eq_dec (noisy c) (c + k)%Z = (1 - a) / (1 + a) * a ^ Z.abs_nat k.
Proof.
  unfold Pr. rewrite E_noisy. fold kappa. change ((1 - a) / (1 + a)) with kappa. f_equal.
  assert (Hz : forall g : nat -> R, (forall n, g n = 0) -> series a a_range g = 0).
  { intros g Hg. rewrite <- (series_zero a a_range). f_equal. now apply FunctionalExtensionality.functional_extensionality. }
  assert (Hm : forall m (g : nat -> R), (forall n, g n = if Nat.eq_dec n m then 1 else 0) -> series a a_range g = a ^ m).
  { intros m g Hg. rewrite <- series_at. f_equal. now apply FunctionalExtensionality.functional_extensionality. }
  destruct (Z_lt_le_dec k 0) as [Hk|Hk].
  - rewrite (Hz (up _ _)), (Hm (Z.to_nat (- 1 - k)) (down _ _)).
    + replace (Z.abs_nat k) with (S (Z.to_nat (- 1 - k))) by lia. simpl. ring.
    + intros n. unfold down, ind. destruct (Z.eq_dec _ _), (Nat.eq_dec _ _); lia || reflexivity.
    + intros n. unfold up, ind. destruct (Z.eq_dec _ _); lia || reflexivity.
  - rewrite (Hm (Z.to_nat k) (up _ _)), (Hz (down _ _)).
    + replace (Z.abs_nat k) with (Z.to_nat k) by lia. ring.
    + intros n. unfold down, ind. destruct (Z.eq_dec _ _); lia || reflexivity.
    + intros n. unfold up, ind. destruct (Z.eq_dec _ _), (Nat.eq_dec _ _); lia || reflexivity.
Qed.

(** Where a count changes by one, every output has ratio e^rate or e^-rate. *)
Theorem thm_geometric_ratio c o :
  let p := Pr Z.eq_dec (noisy c) o in let p' := Pr Z.eq_dec (noisy (c + 1)) o in
  (c < o)%Z /\ p' = exp rate * p \/ (o <= c)%Z /\ p = exp rate * p'.
Proof.
  intros p p'. subst p p'. pose proof (def_laplace c (o - c)) as P. pose proof (def_laplace (c + 1) (o - c - 1)) as P'.
  replace (c + (o - c))%Z with o in P by lia. replace (c + 1 + (o - c - 1))%Z with o in P' by lia.
  rewrite P, P'. pose proof exp_rate_a as He. set (K := (1 - a) / (1 + a)).
  destruct (Z_lt_le_dec c o) as [H|H]; [left|right]; (split; [assumption|]).
  - replace (Z.abs_nat (o - c)) with (S (Z.abs_nat (o - c - 1))) by lia. simpl.
    transitivity (K * a ^ Z.abs_nat (o - c - 1) * (exp rate * a)); [rewrite He; ring|ring].
  - replace (Z.abs_nat (o - c - 1)) with (S (Z.abs_nat (o - c))) by lia. simpl.
    transitivity (K * a ^ Z.abs_nat (o - c) * (exp rate * a)); [rewrite He; ring|ring].
Qed.

(** Part (a), the bound: counts whose distance in the L1 norm is at most S. *)
Lemma noisy_nat c k : close (INR k * rate) (noisy c) (noisy (c + Z.of_nat k)) /\ close (INR k * rate) (noisy (c + Z.of_nat k)) (noisy c).
Proof.
  induction k as [|k [I1 I2]].
  - rewrite Z.add_0_r, Rmult_0_l. split; apply within_const, within_refl.
  - destruct (noisy_step (c + Z.of_nat k)) as [H1 H2].
    replace (c + Z.of_nat (S k))%Z with (c + Z.of_nat k + 1)%Z by lia.
    rewrite S_INR. split; intros B f Hf.
    + replace ((INR k + 1) * rate) with (INR k * rate + rate) by ring. rewrite exp_plus, Rmult_assoc.
      eapply Rle_trans; [apply (I1 B f Hf)|]. apply Rmult_le_compat_l; [left; apply exp_pos|]. now apply (H1 B).
    + replace ((INR k + 1) * rate) with (rate + INR k * rate) by ring. rewrite exp_plus, Rmult_assoc.
      eapply Rle_trans; [apply (H2 B f Hf)|]. apply Rmult_le_compat_l; [left; apply exp_pos|]. now apply (I2 B).
Qed.

Fixpoint noisy_counts (cs : list Z) : dist (list Z) :=
  match cs with [] => ret [] | c :: cs => both cons (noisy c) (fun _ => noisy_counts cs) end.
Fixpoint distance (cs cs' : list Z) : Z :=
  match cs, cs' with c :: cs, c' :: cs' => Z.abs (c - c') + distance cs cs' | _, _ => 0 end.

Lemma distance_nonneg cs : forall cs', (0 <= distance cs cs')%Z.
Proof. induction cs as [|c cs IH]; intros [|c' cs']; simpl; try lia. specialize (IH cs'). lia. Qed.

Lemma noisy_counts_close cs : forall cs', length cs = length cs' ->
  close (IZR (distance cs cs') * rate) (noisy_counts cs) (noisy_counts cs').
Proof.
  induction cs as [|c cs IH]; intros [|c' cs'] Hl; try discriminate; simpl.
  - rewrite Rmult_0_l. apply within_const, within_refl.
  - apply within_const. pose proof (distance_nonneg cs cs') as Hd.
    eapply (within_both cons (IZR (Z.abs (c - c')) * rate) (fun _ _ => IZR (distance cs cs') * rate)
      (fun _ => IZR (Z.abs (c - c') + distance cs cs') * rate)).
    + apply Rmult_le_pos; [|lra]. apply IZR_le. lia.
    + intros _ _. apply Rmult_le_pos; [now apply IZR_le|lra].
    + intros _ _. rewrite plus_IZR. ring.
    + apply within_const. destruct (Z_le_gt_dec c c') as [H|H].
      * replace (IZR (Z.abs (c - c'))) with (INR (Z.to_nat (c' - c))) by (rewrite INR_IZR_INZ; f_equal; lia).
        replace c' with (c + Z.of_nat (Z.to_nat (c' - c)))%Z at 2 by lia. apply noisy_nat.
      * replace (IZR (Z.abs (c - c'))) with (INR (Z.to_nat (c - c'))) by (rewrite INR_IZR_INZ; f_equal; lia).
        replace c with (c' + Z.of_nat (Z.to_nat (c - c')))%Z at 2 by lia. apply noisy_nat.
    + intros _. apply within_const. apply IH. simpl in Hl. lia.
Qed.

Theorem thm_geometric {X} (N : list X -> list X -> Prop) (counts : list X -> list Z) S :
  (forall D D', N D D' -> length (counts D) = length (counts D') /\ (distance (counts D) (counts D') <= S)%Z) ->
  private N (IZR S * rate) (fun D => noisy_counts (counts D)).
Proof.
  intros H D D' HN. destruct (H D D' HN) as [Hl Hd]. apply within_const.
  apply (within_weaken (fun _ => IZR (distance (counts D) (counts D')) * rate)).
  - intros o. apply Rmult_le_compat_r; [lra|]. now apply IZR_le.
  - now apply within_const, noisy_counts_close.
Qed.

(** A geometric number, k with probability (1 - a) a^k; two of them differ by two-sided geometric noise. *)
Definition geometric : dist nat.
Proof.
  pose proof a_range as Ha. refine (Dist (fun f => (1 - a) * series a Ha f) _ _ _ _).
  - intros B f g Hf Hg H. apply Rmult_le_compat_l; [lra|]. now apply (series_mono a Ha B).
  - intros B f g Hf Hg. rewrite (series_plus a Ha B) by assumption. ring.
  - intros B x f Hf Hx. rewrite (series_scale a Ha B) by assumption. ring.
  - rewrite series_one. field. lra.
Defined.

Lemma series_ext (f g : nat -> R) : (forall k, f k = g k) -> series a a_range f = series a a_range g.
Proof. intros H. f_equal. now apply FunctionalExtensionality.functional_extensionality. Qed.
Lemma series_late B g m : test B g ->
  series a a_range (fun i => if (m <=? i)%nat then g (i - m)%nat else 0) = a ^ m * series a a_range g.
Proof.
  intros Hg. assert (HB : 0 <= B) by (specialize (Hg 0%nat); lra).
  assert (Ht : forall m, test B (fun i => if (m <=? i)%nat then g (i - m)%nat else 0)).
  { intros n i. destruct (n <=? i)%nat; [apply Hg|lra]. }
  induction m as [|m IH].
  - simpl pow. rewrite Rmult_1_l. apply series_ext. intros i. now rewrite Nat.sub_0_r.
  - rewrite (series_step a a_range B) by apply Ht. simpl pow. rewrite Rmult_assoc, <- IH. simpl (S m <=? 0)%nat.
    cbv iota. rewrite Rplus_0_l. f_equal.
Qed.
Lemma powers_test : test 1 (fun i => a ^ i).
Proof.
  pose proof a_range. intros i. split; [apply pow_le; lra|]. rewrite <- (pow1 i). apply pow_incr. lra.
Qed.
Lemma series_powers : series a a_range (fun i => a ^ i) = / (1 - a * a).
Proof.
  pose proof a_range as Ha. pose proof (series_step a a_range 1 _ powers_test) as H. cbn [pow] in H.
  rewrite (series_scale a a_range 1 a _ powers_test) in H by lra.
  apply Rmult_eq_reg_r with (1 - a * a); [|nra]. rewrite Rinv_l by nra. nra.
Qed.

Theorem thm_exact_draws_geometric k : E geometric (fun i => if (k <=? i)%nat then 1 else 0) = exp (- (INR k * rate)).
Proof.
  pose proof a_range as Ha.
  change ((1 - a) * series a a_range (fun i => if (k <=? i)%nat then (fun _ => 1) (i - k)%nat else 0)
    = exp (- (INR k * rate))).
  rewrite (series_late 1) by (intros i; lra). rewrite series_one. transitivity (a ^ k); [field; lra|].
  unfold a. induction k as [|k IH]; [simpl; rewrite Rmult_0_l, Ropp_0, exp_0; reflexivity|].
  rewrite S_INR. simpl pow. rewrite IH, <- exp_plus. f_equal. ring.
Qed.
Theorem thm_exact_draws_two_sided z :
  Pr Z.eq_dec (bind geometric (fun i => bind geometric (fun j => ret (Z.of_nat i - Z.of_nat j)%Z))) z
  = Pr Z.eq_dec (noisy 0) z.
Proof.
  pose proof a_range as Ha. transitivity ((1 - a) / (1 + a) * a ^ Z.abs_nat z);
    [|rewrite <- (def_laplace 0 z); f_equal; lia].
  change ((1 - a) * series a a_range (fun i =>
      (1 - a) * series a a_range (fun j => ind Z.eq_dec z (Z.of_nat i - Z.of_nat j)%Z))
    = (1 - a) / (1 + a) * a ^ Z.abs_nat z).
  assert (Hin : forall i m, (Z.of_nat m = Z.of_nat i - z)%Z ->
    series a a_range (fun j => ind Z.eq_dec z (Z.of_nat i - Z.of_nat j)%Z) = a ^ m).
  { intros i m Hm. rewrite <- series_at. apply series_ext. intros j. unfold ind.
    destruct (Z.eq_dec _ _), (Nat.eq_dec j m); lia || reflexivity. }
  assert (Hout : forall i, (Z.of_nat i < z)%Z ->
    series a a_range (fun j => ind Z.eq_dec z (Z.of_nat i - Z.of_nat j)%Z) = 0).
  { intros i Hi. rewrite <- (series_zero a a_range). apply series_ext. intros j. unfold ind.
    destruct (Z.eq_dec _ _); [lia|reflexivity]. }
  assert (Hfin : (1 - a) * ((1 - a) * (a ^ Z.abs_nat z * / (1 - a * a))) = (1 - a) / (1 + a) * a ^ Z.abs_nat z)
    by (field; nra).
  rewrite <- Hfin, <- series_powers. f_equal. set (m := Z.abs_nat z).
  assert (Hs : forall c, 0 <= c -> series a a_range (fun i => c * a ^ i) = c * series a a_range (fun i => a ^ i))
    by (intros c Hc; now apply (series_scale a a_range 1 c _ powers_test)).
  destruct (Z_lt_le_dec z 0) as [Hz|Hz].
  - rewrite (series_ext _ (fun i => (1 - a) * a ^ m * a ^ i)).
    + rewrite Hs; [ring|]. apply Rmult_le_pos; [lra|apply pow_le; lra].
    + intros i. rewrite (Hin i (m + i)%nat) by lia. rewrite pow_add. ring.
  - rewrite (series_ext _ (fun i => if (m <=? i)%nat then (fun n => (1 - a) * a ^ n) (i - m)%nat else 0)).
    + pose proof (series_late 1 (fun n => (1 - a) * a ^ n) m) as HL. cbv beta in HL. rewrite HL.
      * rewrite Hs by lra. ring.
      * intros i. pose proof (powers_test i). simpl in *. nra.
    + intros i. destruct (Nat.leb_spec m i); [now rewrite (Hin i (i - m)%nat) by lia|]. rewrite Hout by lia. ring.
Qed.
End TwoSided.

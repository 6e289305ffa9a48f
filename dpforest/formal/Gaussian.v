(* book/concentrated.md, "The rho of each mechanism": discrete Gaussian noise, and its rho.
   A sum over a countable set is here the least upper bound of its finite parts; all terms are at least 0.  Everything
   rests on one inequality: of the Gaussian weights on the whole numbers, those around a whole number have the largest
   sum.  Its proof is elementary, by sums over pairs. *)
From Coq Require Import ClassicalDedekindReals Classical_Prop FunctionalExtensionality.
From Coq Require Import Reals Lra Psatz List ZArith Lia Bool.
From DPForest Require Import Law Privacy Concentrated.
Import ListNotations.
Open Scope R_scope.

(** * Sums of finite parts *)
Section Lists.
Context {A : Type}.
Implicit Types (f : A -> R) (l : list A).

Lemma sum_incl f l m : (forall x, 0 <= f x) -> NoDup l -> incl l m -> sum f l <= sum f m.
Proof.
  intros Hf Hl. revert m. induction Hl as [|x l Hx Hl IH]; intros m Hm; [apply sum_nonneg; auto|].
  destruct (in_split x m (Hm x (or_introl eq_refl))) as (a & b & ->). rewrite sum_app. cbn [sum fold_right].
  assert (Hi : incl l (a ++ b)).
  { intros y Hy. assert (Hn : y <> x) by (intros ->; contradiction). specialize (Hm y (or_intror Hy)).
    rewrite in_app_iff in *. destruct Hm as [|[|]]; [tauto|congruence|tauto]. }
  specialize (IH _ Hi). rewrite sum_app in IH. unfold sum in *. lra.
Qed.
Lemma sum_filter f (p : A -> bool) l : sum f l = sum f (filter p l) + sum f (filter (fun x => negb (p x)) l).
Proof. induction l as [|x l IH]; simpl; [ring|]. destruct (p x); simpl; unfold sum in *; rewrite IH; ring. Qed.
Lemma nodup_map {B} (h : A -> B) l : (forall x y, In x l -> In y l -> h x = h y -> x = y) -> NoDup l -> NoDup (map h l).
Proof.
  intros Hh Hl. induction Hl as [|x l Hx Hl IH]; simpl; constructor.
  - intros Hi. apply in_map_iff in Hi as (y & E & Hy). apply Hx.
    now rewrite (Hh x y (or_introl eq_refl) (or_intror Hy) (eq_sym E)).
  - apply IH. intros y z Hy Hz. apply Hh; now right.
Qed.
Lemma nodup_app l m : NoDup l -> NoDup m -> (forall x, In x l -> ~ In x m) -> NoDup (l ++ m).
Proof.
  intros Hl Hm H. induction Hl as [|x l Hx Hl IH]; [assumption|]. simpl. constructor.
  - rewrite in_app_iff. intros [|Hi]; [contradiction|]. exact (H x (or_introl eq_refl) Hi).
  - apply IH. intros y Hy. apply H. now right.
Qed.
End Lists.
Lemma nodup_prod {A B} (l : list A) (m : list B) : NoDup l -> NoDup m -> NoDup (list_prod l m).
Proof.
  intros Hl Hm. induction Hl as [|x l Hx Hl IH]; [constructor|]. simpl. apply nodup_app; [|assumption|].
  - apply nodup_map; [|assumption]. intros y z _ _ E. congruence.
  - intros [y z] Hi Hj. apply in_map_iff in Hi as (u & E & _). apply in_prod_iff in Hj as [Hj _]. congruence.
Qed.
Lemma sum_prod {A B} (f : A -> R) (g : B -> R) l m : sum (fun p => f (fst p) * g (snd p)) (list_prod l m) =
  sum f l * sum g m.
Proof.
  induction l as [|x l IH]; simpl; [ring|]. rewrite sum_app, sum_map, IH. cbn [fst snd]. rewrite sum_scale.
  unfold sum. ring.
Qed.

(** * Sums over everything *)
Definition sums_below {A} (f : A -> R) (M : R) : Prop := (forall x, 0 <= f x) /\ forall l, NoDup l -> sum f l <= M.
Definition part_sum {A} (f : A -> R) (s : R) : Prop := exists l, NoDup l /\ s = sum f l.
Lemma part_sum_bound {A} (f : A -> R) : ~ ~ (exists M, sums_below f M) -> bound (part_sum f).
Proof. intros H. apply NNPP in H as (M & _ & H). exists M. intros s (l & Hl & ->). auto. Qed.
Lemma part_sum_some {A} (f : A -> R) : exists s, part_sum f s.
Proof. exists 0, []. split; [constructor|reflexivity]. Qed.
Definition infinite_sum {A} (f : A -> R) : R :=
  match sig_not_dec (exists M, sums_below f M) with
  | left H => proj1_sig (completeness (part_sum f) (part_sum_bound f H) (part_sum_some f))
  | right _ => 0
  end.

Section Totals.
Context {A : Type}.
Implicit Types f g : A -> R.

Lemma infinite_lub f M : sums_below f M -> is_lub (part_sum f) (infinite_sum f).
Proof.
  intros H. unfold infinite_sum. destruct (sig_not_dec _) as [H'|H']; [apply (proj2_sig (completeness _ _ _))|].
  exfalso. apply H'. now exists M.
Qed.
Lemma sum_infinite f M : sums_below f M -> forall l, NoDup l -> sum f l <= infinite_sum f.
Proof. intros H l Hl. apply (proj1 (infinite_lub f M H)). now exists l. Qed.
Lemma infinite_below f M : sums_below f M -> infinite_sum f <= M.
Proof. intros H. apply (proj2 (infinite_lub f M H)). intros s (l & Hl & ->). now apply (proj2 H). Qed.
Lemma infinite_nonneg f M : sums_below f M -> 0 <= infinite_sum f.
Proof. intros H. apply (sum_infinite f M H []). constructor. Qed.
Lemma term_infinite f M x : sums_below f M -> f x <= infinite_sum f.
Proof.
  intros H. pose proof (sum_infinite f M H [x]) as Hx. simpl in Hx. rewrite Rplus_0_r in Hx. apply Hx.
  constructor; [easy|constructor].
Qed.
Lemma below_infinite f M : sums_below f M -> sums_below f (infinite_sum f).
Proof. intros H. split; [apply H|]. intros l Hl. now apply (sum_infinite f M). Qed.
Lemma below_mono f g M : (forall x, 0 <= f x <= g x) -> sums_below g M -> sums_below f M.
Proof.
  intros H Hg. split; [apply H|]. intros l Hl. apply Rle_trans with (sum g l); [|now apply Hg].
  apply sum_mono. intros x _. apply H.
Qed.
Lemma below_scale f c M : 0 <= c -> sums_below f M -> sums_below (fun x => c * f x) (c * M).
Proof.
  intros Hc H. split; [intros x; apply Rmult_le_pos; [assumption|apply H]|]. intros l Hl. rewrite sum_scale.
  apply Rmult_le_compat_l; [assumption|now apply H].
Qed.
Lemma below_plus f g M N : sums_below f M -> sums_below g N -> sums_below (fun x => f x + g x) (M + N).
Proof.
  intros H H'. split; [intros x; pose proof (proj1 H x); pose proof (proj1 H' x); lra|]. intros l Hl.
  rewrite sum_plus. apply Rplus_le_compat; [now apply H|now apply H'].
Qed.
Lemma infinite_mono f g M : (forall x, 0 <= f x <= g x) -> sums_below g M -> infinite_sum f <= infinite_sum g.
Proof. intros H Hg. apply infinite_below, (below_mono f g); [assumption|now apply (below_infinite g M)]. Qed.
Lemma infinite_scale f c M : 0 <= c -> sums_below f M -> infinite_sum (fun x => c * f x) = c * infinite_sum f.
Proof.
  intros [Hc| <-] H.
  2: { rewrite Rmult_0_l. apply Rle_antisym.
    - apply infinite_below. split; [intros; lra|]. intros l _. rewrite sum_scale. lra.
    - apply (infinite_nonneg _ (0 * M)). apply below_scale; [lra|assumption]. }
  apply Rle_antisym; [apply infinite_below, below_scale; [lra|now apply (below_infinite f M)]|].
  apply (Rmult_le_reg_l (/ c)); [now apply Rinv_0_lt_compat|]. rewrite <- Rmult_assoc, Rinv_l, Rmult_1_l by lra.
  apply infinite_below. split; [apply H|]. intros l Hl. apply (Rmult_le_reg_l c); [assumption|].
  rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l, <- sum_scale by lra. apply (sum_infinite _ (c * M)); [|assumption].
  apply below_scale; [lra|assumption].
Qed.
Lemma infinite_plus (dec : forall x y : A, {x = y} + {x <> y}) f g M N : sums_below f M -> sums_below g N ->
  infinite_sum (fun x => f x + g x) = infinite_sum f + infinite_sum g.
Proof.
  intros Hf Hg. apply Rle_antisym; [apply infinite_below, below_plus; eapply below_infinite; eassumption|].
  set (s := infinite_sum (fun x => f x + g x)).
  assert (H : forall l m, NoDup l -> NoDup m -> sum f l + sum g m <= s).
  { intros l m Hl Hm. apply Rle_trans with (sum (fun x => f x + g x) (nodup dec (l ++ m))).
    - rewrite sum_plus. apply Rplus_le_compat; apply sum_incl; try assumption; try apply Hf; try apply Hg; intros x Hx;
        apply nodup_In, in_or_app; auto.
    - apply (sum_infinite _ (M + N)); [now apply below_plus|apply NoDup_nodup]. }
  assert (H' : forall l, NoDup l -> sum f l <= s - infinite_sum g).
  { intros l Hl. assert (infinite_sum g <= s - sum f l); [|lra]. apply infinite_below. split; [apply Hg|]. intros m Hm.
    specialize (H l m Hl Hm). lra. }
  assert (infinite_sum f <= s - infinite_sum g); [|lra]. apply infinite_below. split; [apply Hf|exact H'].
Qed.
End Totals.

(** Terms in another order. *)
Lemma infinite_moved {A B} (h : A -> B) (k : B -> A) (g : B -> R) M : (forall x, k (h x) = x) ->
  (forall y, h (k y) = y) ->
  sums_below g M -> sums_below (fun x => g (h x)) M /\ infinite_sum (fun x => g (h x)) = infinite_sum g.
Proof.
  intros Hk Hh Hg. assert (H : sums_below (fun x => g (h x)) M).
  { split; [intros; apply Hg|]. intros l Hl. rewrite <- sum_map. apply Hg, nodup_map; [|assumption].
    intros x y _ _ E. rewrite <- (Hk x), <- (Hk y). now f_equal. }
  split; [exact H|]. apply Rle_antisym; apply infinite_below; (split; [intros; apply Hg|]); intros l Hl.
  - rewrite <- sum_map. apply (sum_infinite g M Hg), nodup_map; [|assumption].
    intros x y _ _ E. rewrite <- (Hk x), <- (Hk y). now f_equal.
  - apply Rle_trans with (sum (fun x => g (h x)) (map k l)).
    + rewrite sum_map. right. apply sum_ext. intros y _. now rewrite Hh.
    + apply (sum_infinite _ M H), nodup_map; [|assumption]. intros x y _ _ E. rewrite <- (Hh x), <- (Hh y). now f_equal.
Qed.

(** Products of sums are sums over pairs. *)
Lemma product_above {A B} (decA : forall x y : A, {x = y} + {x <> y}) (decB : forall x y : B, {x = y} + {x <> y})
  (f : A -> R) (g : B -> R) M N l : sums_below f M -> sums_below g N -> NoDup l ->
  sum (fun p => f (fst p) * g (snd p)) l <= infinite_sum f * infinite_sum g.
Proof.
  intros Hf Hg Hl. set (a := nodup decA (map fst l)). set (b := nodup decB (map snd l)).
  apply Rle_trans with (sum (fun p => f (fst p) * g (snd p)) (list_prod a b)).
  - apply sum_incl; [|assumption|]; [intros p; apply Rmult_le_pos; [apply Hf|apply Hg]|].
    intros [x y] Hp. apply in_prod; apply nodup_In; [now apply (in_map fst l (x, y))|now apply (in_map snd l (x, y))].
  - rewrite sum_prod. apply Rmult_le_compat; try (apply sum_nonneg; intros; apply Hf || apply Hg).
    + apply (sum_infinite f M Hf), NoDup_nodup.
    + apply (sum_infinite g N Hg), NoDup_nodup.
Qed.
Lemma product_below {A B} (f : A -> R) (g : B -> R) M N s : sums_below f M -> sums_below g N ->
  (forall l m, NoDup l -> NoDup m -> sum f l * sum g m <= s) -> infinite_sum f * infinite_sum g <= s.
Proof.
  intros Hf Hg H. rewrite Rmult_comm, <- (infinite_scale f _ M) by (try assumption; now apply (infinite_nonneg g N)).
  apply infinite_below. split.
  - intros x. apply Rmult_le_pos; [now apply (infinite_nonneg g N)|apply Hf].
  - intros l Hl. rewrite sum_scale, Rmult_comm. assert (H0 : 0 <= sum f l) by (apply sum_nonneg; intros; apply Hf).
    rewrite <- (infinite_scale g _ N) by assumption. apply infinite_below. split.
    + intros y. apply Rmult_le_pos; [assumption|apply Hg].
    + intros m Hm. rewrite sum_scale. auto.
Qed.

(** * Weights around any real number *)
Definition bell (rate c : R) (n : Z) : R := exp (- (rate * ((IZR n - c) * (IZR n - c)))).
Definition bell_sum (rate c : R) : R := infinite_sum (bell rate c).

Lemma bell_pos rate c n : 0 < bell rate c n.
Proof. apply exp_pos. Qed.

(** Their sums are bounded, whatever c is: each is at most a step of a bounded function. *)
Definition ramp (t : R) : R := t / (1 + Rabs t).
Lemma ramp_range t : -1 <= ramp t <= 1.
Proof.
  unfold ramp. pose proof (Rabs_pos t). pose proof (Rle_abs t). pose proof (Rle_abs (- t)). rewrite Rabs_Ropp in *.
  split; apply (Rmult_le_reg_r (1 + Rabs t)); try lra; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra.
Qed.
Lemma ramp_step t : / (8 + 2 * (t * t)) <= ramp (t + 1) - ramp t.
Proof.
  unfold ramp. destruct (Rle_lt_dec 0 t) as [H|H]; [|destruct (Rle_lt_dec t (-1)) as [H'|H']].
  - rewrite !Rabs_pos_eq by lra. replace ((t + 1) / (1 + (t + 1)) - t / (1 + t)) with (/ ((1 + t) * (2 + t))) by
      (field; lra).
    apply Rinv_le_contravar; nra.
  - rewrite !Rabs_left1 by lra. replace ((t + 1) / (1 + - (t + 1)) - t / (1 + - t)) with (/ (- t * (1 - t))) by
      (field; lra).
    apply Rinv_le_contravar; nra.
  - rewrite (Rabs_pos_eq (t + 1)), (Rabs_left1 t) by lra.
    replace ((t + 1) / (1 + (t + 1)) - t / (1 + - t)) with ((1 - 2 * t - 2 * (t * t)) / ((2 + t) * (1 - t))) by
      (field; lra).
    apply Rle_trans with (/ 8); [apply Rinv_le_contravar; nra|].
    apply (Rmult_le_reg_r ((2 + t) * (1 - t))); [nra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by nra. nra.
Qed.
Definition ceiling (rate : R) : R := 2 * (8 + 2 / rate + 1).

Section Weights.
Variable rate : R.
Hypothesis Hrate : 0 < rate.

Lemma bell_step c n : bell rate c n <= (8 + 2 / rate + 1) * (ramp (IZR n - c + 1) - ramp (IZR n - c)).
Proof.
  unfold bell. set (t := IZR n - c). clearbody t. assert (Hi : 0 < / rate) by (now apply Rinv_0_lt_compat).
  eapply Rle_trans; [|apply Rmult_le_compat_l; [unfold Rdiv; lra|apply ramp_step]].
  pose proof (Rle_0_sqr t) as Ht. unfold Rsqr in Ht. assert (H1 : 0 < 8 + 2 * (t * t)) by lra.
  rewrite exp_Ropp. pose proof (exp_ineq1_le (rate * (t * t))) as He.
    assert (0 <= rate * (t * t)) by (apply Rmult_le_pos; lra).
  apply Rle_trans with (/ (1 + rate * (t * t))); [apply Rinv_le_contravar; lra|].
  apply (Rmult_le_reg_r ((1 + rate * (t * t)) * (8 + 2 * (t * t)))); [apply Rmult_lt_0_compat; lra|].
  replace (/ (1 + rate * (t * t)) * ((1 + rate * (t * t)) * (8 + 2 * (t * t)))) with (8 + 2 * (t * t)) by (field; lra).
  replace ((8 + 2 / rate + 1) * / (8 + 2 * (t * t)) * ((1 + rate * (t * t)) * (8 + 2 * (t * t)))) with
    (9 + 2 * / rate + 9 * (rate * (t * t)) + 2 * (t * t) * (rate * / rate)) by (field; lra).
  rewrite Rinv_r by lra. lra.
Qed.
Lemma within_interval (l : list Z) : exists from size, incl l (map (fun i => from + Z.of_nat i)%Z (seq 0 size)).
Proof.
  assert (H : exists N, (0 <= N)%Z /\ forall n, In n l -> (Z.abs n <= N)%Z).
  { induction l as [|n l (N & HN & H)]; [exists 0%Z; split; [lia|easy]|]. exists (N + Z.abs n)%Z. split; [lia|].
    intros m [->|Hm]; [lia|]. specialize (H m Hm). lia. }
  destruct H as (N & HN & H). exists (- N)%Z, (Z.to_nat (2 * N + 1)). intros n Hn. specialize (H n Hn).
    apply in_map_iff.
  exists (Z.to_nat (n + N)). split; [lia|]. apply in_seq. lia.
Qed.
Lemma bell_below c : sums_below (bell rate c) (ceiling rate).
Proof.
  assert (Hi : 0 < / rate) by (now apply Rinv_0_lt_compat).
  split; [intros n; left; apply bell_pos|]. intros l Hl. destruct (within_interval l) as (from & size & Hm).
  eapply Rle_trans; [apply (sum_incl _ l _ (fun n => Rlt_le _ _ (bell_pos rate c n)) Hl Hm)|]. rewrite sum_map.
    clear Hm.
  assert (H : sum (fun i => bell rate c (from + Z.of_nat i)) (seq 0 size) <=
    (8 + 2 / rate + 1) * (ramp (IZR (from + Z.of_nat size) - c) - ramp (IZR from - c))).
  { induction size as [|size IH].
    - simpl. rewrite Z.add_0_r. lra.
    - rewrite seq_S, sum_app. cbn [sum fold_right Nat.add]. pose proof (bell_step c (from + Z.of_nat size)) as Hs.
      replace (IZR (from + Z.of_nat (S size)) - c) with (IZR (from + Z.of_nat size) - c + 1).
      + unfold sum in *. lra.
      + rewrite Nat2Z.inj_succ, !plus_IZR, succ_IZR. ring. }
  eapply Rle_trans; [exact H|]. unfold ceiling. pose proof (ramp_range (IZR (from + Z.of_nat size) - c)).
  pose proof (ramp_range (IZR from - c)). rewrite (Rmult_comm 2). apply Rmult_le_compat_l; [unfold Rdiv; lra|lra].
Qed.
Lemma bell_sum_pos c : 0 < bell_sum rate c.
Proof. eapply Rlt_le_trans; [apply (bell_pos rate c 0)|apply (term_infinite _ _ 0%Z (bell_below c))]. Qed.
Lemma bell_sum_most c : bell_sum rate c <= ceiling rate.
Proof. apply infinite_below, bell_below. Qed.
Lemma bell_sum_moved d c : bell_sum rate (c + IZR d) = bell_sum rate c.
Proof.
  unfold bell_sum. destruct (infinite_moved (fun n => n + d)%Z (fun n => n - d)%Z (bell rate (c + IZR d)) _
    ltac:(intros; cbv beta; lia) ltac:(intros; cbv beta; lia) (bell_below _)) as [_ <-].
  f_equal. apply functional_extensionality. intros n. unfold bell. rewrite plus_IZR. do 2 f_equal. ring.
Qed.
End Weights.

(** * The sum over pairs m, n is one over halves of m + n and m - n, which are both even or both odd *)
Section Pairs.
Variable rate : R.
Hypothesis Hrate : 0 < rate.
Let Hrate2 : 0 < 2 * rate.
Proof. lra. Qed.
Let both (x y : R) (p : Z * Z) : R := bell rate x (fst p) * bell rate y (snd p).
(** The centres of the halves. *)
Let u (o : bool) (x y : R) : R := (x + y - IZR (Z.b2z o)) / 2.
Let v (o : bool) (x y : R) : R := (x - y - IZR (Z.b2z o)) / 2.
Let halves (o : bool) (x y : R) (p : Z * Z) : R :=
  bell (2 * rate) (u o x y) (fst p) * bell (2 * rate) (v o x y) (snd p).
Let pair (o : bool) (p : Z * Z) : Z * Z := (fst p + snd p + Z.b2z o, fst p - snd p)%Z.
Let half (p : Z * Z) : Z * Z := (Z.div2 (fst p + snd p), Z.div2 (fst p - snd p)).

Lemma pair_halves o x y p : both x y (pair o p) = halves o x y p.
Proof.
  unfold both, halves, bell, pair, u, v. cbn [fst snd]. rewrite <- !exp_plus. f_equal.
  rewrite plus_IZR, plus_IZR, minus_IZR. field_simplify. destruct o; simpl; field.
Qed.
Lemma pair_half p : pair (Z.odd (fst p + snd p)) (half p) = p.
Proof.
  destruct p as [m n]. unfold pair, half. cbn [fst snd]. pose proof (Z.div2_odd (m + n)) as H1.
  pose proof (Z.div2_odd (m - n)) as H2. rewrite Z.odd_sub, <- Z.odd_add in H2.
  destruct (Z.odd (m + n)); simpl Z.b2z in *; f_equal; lia.
Qed.
Lemma both_above x y l : NoDup l -> sum (both x y) l <= bell_sum rate x * bell_sum rate y.
Proof.
  apply (product_above Z.eq_dec Z.eq_dec _ _ (ceiling rate) (ceiling rate)); now apply bell_below.
Qed.
Lemma halves_above o x y l : NoDup l -> sum (halves o x y) l <=
  bell_sum (2 * rate) (u o x y) * bell_sum (2 * rate) (v o x y).
Proof.
  apply (product_above Z.eq_dec Z.eq_dec _ _ (ceiling (2 * rate)) (ceiling (2 * rate))); now apply bell_below.
Qed.

Lemma bell_sums x y : bell_sum rate x * bell_sum rate y =
  bell_sum (2 * rate) ((x + y) / 2) * bell_sum (2 * rate) ((x - y) / 2) +
  bell_sum (2 * rate) ((x + y - 1) / 2) * bell_sum (2 * rate) ((x - y - 1) / 2).
Proof.
  replace ((x + y) / 2) with (u false x y) by (unfold u; simpl; lra).
  replace ((x - y) / 2) with (v false x y) by (unfold v; simpl; lra).
  change ((x + y - 1) / 2) with (u true x y). change ((x - y - 1) / 2) with (v true x y). apply Rle_antisym.
  - apply (product_below _ _ (ceiling rate) (ceiling rate)); try now apply bell_below. intros l m Hl Hm.
    rewrite <- sum_prod. change (fun p : Z * Z => bell rate x (fst p) * bell rate y (snd p)) with (both x y).
    rewrite (sum_filter _ (fun p => negb (Z.odd (fst p + snd p)))).
    assert (H : forall o L, NoDup L -> (forall p, In p L -> Z.odd (fst p + snd p) = o) ->
      sum (both x y) L <= bell_sum (2 * rate) (u o x y) * bell_sum (2 * rate) (v o x y)).
    { intros o L HL Ho. apply Rle_trans with (sum (halves o x y) (map half L)).
      - rewrite sum_map. right. apply sum_ext. intros p Hp. rewrite <- pair_halves, <- (Ho p Hp). now rewrite pair_half.
      - apply halves_above, nodup_map; [|assumption]. intros p q Hp Hq E.
        rewrite <- (pair_half p), <- (pair_half q), (Ho p Hp), (Ho q Hq). now f_equal. }
    pose proof (nodup_prod l m Hl Hm) as HL. apply Rplus_le_compat; apply H; try (now apply NoDup_filter); intros p Hp;
      apply filter_In in Hp as [_ Hp]; destruct (Z.odd (fst p + snd p)); simpl in *; congruence.
  - assert (H : forall l m l' m', NoDup l -> NoDup m -> NoDup l' -> NoDup m' ->
      sum (bell (2 * rate) (u false x y)) l * sum (bell (2 * rate) (v false x y)) m +
      sum (bell (2 * rate) (u true x y)) l' * sum (bell (2 * rate) (v true x y)) m' <=
        bell_sum rate x * bell_sum rate y).
    { intros l m l' m' Hl Hm Hl' Hm'. rewrite <- !sum_prod.
      rewrite (sum_ext _ (fun p => both x y (pair false p)) (list_prod l m)) by (intros; symmetry; apply pair_halves).
      rewrite (sum_ext _ (fun p => both x y (pair true p)) (list_prod l' m')) by (intros; symmetry; apply pair_halves).
      rewrite <- !(sum_map (pair _)), <- sum_app. apply both_above, nodup_app; [|(apply nodup_map;
        [|now apply nodup_prod])..|].
      - apply nodup_map; [|now apply nodup_prod]. intros [p q] [p' q'] _ _ E. unfold pair in E. simpl in E.
        injection E as E1 E2. f_equal; lia.
      - intros [p q] [p' q'] _ _ E. unfold pair in E. simpl in E. injection E as E1 E2. f_equal; lia.
      - intros z Hz Hz'. apply in_map_iff in Hz as ([p q] & <- & _). apply in_map_iff in Hz' as ([p' q'] & E & _).
        unfold pair in E. simpl in E. injection E as E1 E2. lia. }
    set (s := bell_sum rate x * bell_sum rate y) in *.
    assert (H' : forall l' m', NoDup l' -> NoDup m' ->
      sum (bell (2 * rate) (u true x y)) l' * sum (bell (2 * rate) (v true x y)) m' <=
      s - bell_sum (2 * rate) (u false x y) * bell_sum (2 * rate) (v false x y)).
    { intros l' m' Hl' Hm'. set (r := _ * sum _ m').
      assert (bell_sum (2 * rate) (u false x y) * bell_sum (2 * rate) (v false x y) <= s - r); [|lra].
      apply (product_below _ _ (ceiling (2 * rate)) (ceiling (2 * rate))); try now apply bell_below. intros l m Hl Hm.
      specialize (H l m l' m' Hl Hm Hl' Hm'). fold r in H. lra. }
    assert (bell_sum (2 * rate) (u true x y) * bell_sum (2 * rate) (v true x y) <=
      s - bell_sum (2 * rate) (u false x y) * bell_sum (2 * rate) (v false x y)); [|lra].
    apply (product_below _ _ (ceiling (2 * rate)) (ceiling (2 * rate))); try now apply bell_below. exact H'.
Qed.

(** So the fourth power of a sum, in units of the one at 0, is at most the sum at twice the place. *)
Lemma bell_sum_fourth c : bell_sum rate c ^ 4 <= bell_sum rate (2 * c) * bell_sum rate 0 ^ 3.
Proof.
  pose proof (bell_sums c c) as H1. pose proof (bell_sums (2 * c) 0) as H2. pose proof (bell_sums 0 0) as H3.
  replace ((c + c) / 2) with c in H1 by lra. replace ((c - c) / 2) with 0 in H1 by lra.
  replace ((c + c - 1) / 2) with (c - / 2) in H1 by lra. replace ((c - c - 1) / 2) with (- / 2) in H1 by lra.
  replace ((2 * c + 0) / 2) with c in H2 by lra. replace ((2 * c - 0) / 2) with c in H2 by lra.
  replace ((2 * c + 0 - 1) / 2) with (c - / 2) in H2 by lra. replace ((2 * c - 0 - 1) / 2) with (c - / 2) in H2 by lra.
  replace ((0 + 0) / 2) with 0 in H3 by lra. replace ((0 - 0) / 2) with 0 in H3 by lra.
  replace ((0 + 0 - 1) / 2) with (- / 2) in H3 by lra. replace ((0 - 0 - 1) / 2) with (- / 2) in H3 by lra.
  set (p := bell_sum (2 * rate) c) in *. set (q := bell_sum (2 * rate) (c - / 2)) in *.
    set (r := bell_sum (2 * rate) 0) in *.
  set (s := bell_sum (2 * rate) (- / 2)) in *.
  replace (bell_sum rate c ^ 4) with ((bell_sum rate c * bell_sum rate c) * (bell_sum rate c * bell_sum rate c)) by
    ring.
  replace (bell_sum rate (2 * c) * bell_sum rate 0 ^ 3) with ((bell_sum rate (2 * c) * bell_sum rate 0) * (bell_sum
    rate 0 * bell_sum rate 0)) by ring.
  rewrite H1, H2, H3. pose proof (Rle_0_sqr (p * s - q * r)) as Hs. unfold Rsqr in Hs. lra.
Qed.
End Pairs.

(** Of all places a whole number has the largest sum of weights. *)
Theorem thm_discrete_gaussian_largest rate c : 0 < rate -> bell_sum rate c <= bell_sum rate 0.
Proof.
  intros Hr. pose proof (bell_sum_pos rate Hr) as Hp. set (B := ceiling rate / bell_sum rate 0).
  assert (H : forall k c, (bell_sum rate c / bell_sum rate 0) ^ (4 ^ k) <= B).
  { induction k as [|k IH]; intros x.
    - simpl. rewrite Rmult_1_r. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Hp|now apply bell_sum_most].
    - eapply Rle_trans; [|apply (IH (2 * x))]. rewrite Nat.pow_succ_r', pow_mult. apply pow_incr. split.
      + apply pow_le. left. now apply Rdiv_lt_0_compat.
      + pose proof (bell_sum_fourth rate Hr x) as H4. specialize (Hp 0). apply (Rmult_le_reg_r (bell_sum rate 0 ^ 4));
          [now apply pow_lt|].
        replace ((bell_sum rate x / bell_sum rate 0) ^ 4 * bell_sum rate 0 ^ 4) with (bell_sum rate x ^ 4) by (field;
          lra).
        replace (bell_sum rate (2 * x) / bell_sum rate 0 * bell_sum rate 0 ^ 4) with (bell_sum rate (2 * x) * bell_sum
          rate 0 ^ 3) by (field; lra).
        exact H4. }
  destruct (Rle_lt_dec (bell_sum rate c) (bell_sum rate 0)) as [|Hn]; [assumption|exfalso]. specialize (Hp 0).
  set (e := bell_sum rate c / bell_sum rate 0 - 1). assert (He : 0 < e).
  { unfold e. apply (Rmult_lt_reg_r (bell_sum rate 0)); [assumption|].
      replace ((_ - 1) * _) with (bell_sum rate c - bell_sum rate 0) by (field; lra). lra. }
  set (k := Z.to_nat (up (B / e))). assert (Hk : B / e < INR k).
  { apply Rlt_le_trans with (IZR (up (B / e))); [apply archimed|]. rewrite INR_IZR_INZ. apply IZR_le. unfold k. lia. }
  specialize (H k c).
  replace (bell_sum rate c / bell_sum rate 0) with (1 + e) in H by (unfold e; ring).
  pose proof (poly (4 ^ k) e He) as Hb.
  assert (INR k <= INR (4 ^ k)) by (apply le_INR; pose proof (Nat.pow_gt_lin_r 4 k); lia).
  apply (Rmult_lt_compat_r e) in Hk; [|assumption]. replace (B / e * e) with B in Hk by (field; lra). nra.
Qed.

(** * The noise *)
Lemma below_test (f h : Z -> R) M B : sums_below f M -> test B h -> sums_below (fun n => f n * h n) (B * M).
Proof.
  intros Hf Hh. apply (below_mono _ (fun n => B * f n)).
  - intros n. pose proof (proj1 Hf n). specialize (Hh n). split; [apply Rmult_le_pos|rewrite (Rmult_comm B);
      apply Rmult_le_compat_l]; lra.
  - apply below_scale; [|assumption]. specialize (Hh 0%Z). lra.
Qed.

(** A whole number k, with a probability in proportion to e^(-rate k^2), is added to a whole number. *)
Section Law.
Variable rate : posreal.
Let below c : sums_below (bell rate c) (ceiling rate) := bell_below rate (cond_pos rate) c.
Let total_pos : 0 < bell_sum rate 0 := bell_sum_pos rate (cond_pos rate) 0.

Definition gaussian : dist Z.
Proof.
  pose proof (Rinv_0_lt_compat _ total_pos) as Hi.
  refine (Dist (fun f => / bell_sum rate 0 * infinite_sum (fun k => bell rate 0 k * f k)) _ _ _ _).
  - intros B f g Hf Hg H. apply Rmult_le_compat_l; [lra|]. apply (infinite_mono _ _ (B * ceiling rate));
      [|now apply below_test].
    intros k. pose proof (bell_pos rate 0 k). specialize (H k). specialize (Hf k). split;
      [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra.
  - intros B f g Hf Hg. rewrite <- Rmult_plus_distr_l,
      <- (infinite_plus Z.eq_dec _ _ (B * ceiling rate) (B * ceiling rate)) by now apply below_test.
    do 2 f_equal. apply functional_extensionality. intros k. ring.
  - intros B c f Hf Hc. rewrite <- Rmult_assoc, (Rmult_comm c), Rmult_assoc.
    rewrite <- (infinite_scale _ c (B * ceiling rate)) by (try assumption; now apply below_test).
    do 2 f_equal. apply functional_extensionality. intros k. ring.
  - replace (fun k => bell rate 0 k * 1) with (bell rate 0).
    + apply Rinv_l, Rgt_not_eq, total_pos.
    + apply functional_extensionality. intros k. ring.
Defined.
Definition with_gaussian (c : Z) : dist Z := bind gaussian (fun k => ret (c + k)%Z).

Lemma E_gaussian f : E gaussian f = / bell_sum rate 0 * infinite_sum (fun k => bell rate 0 k * f k).
Proof. reflexivity. Qed.
Lemma E_with_gaussian B c f : test B f ->
  E (with_gaussian c) f = / bell_sum rate 0 * infinite_sum (fun n => bell rate (IZR c) n * f n).
Proof.
  intros Hf. change (E (with_gaussian c) f) with (E gaussian (fun k => f (c + k)%Z)). rewrite E_gaussian. f_equal.
  destruct (infinite_moved (fun k => c + k)%Z (fun n => n - c)%Z (fun n => bell rate (IZR c) n * f n) (B * ceiling rate)
    ltac:(intros; cbv beta; lia) ltac:(intros; cbv beta; lia) (below_test _ _ _ _ (below _) Hf)) as [_ <-].
  f_equal. apply functional_extensionality. intros k. f_equal. unfold bell. rewrite plus_IZR. do 2 f_equal. ring.
Qed.

(** One number that changes by d costs rate d^2. *)
Lemma gaussian_conc c c' : conc_on anywhere (rate * (IZR (c - c') * IZR (c - c'))) (with_gaussian c) (with_gaussian c').
Proof.
  intros th Ht B h Hh _. set (a := / (1 - th)). assert (Ha : a * (1 - th) = 1) by (unfold a; field; lra).
  set (sg := rate * (a * (a - 1)) * (IZR (c - c') * IZR (c - c'))). set (x := E (with_gaussian c') h).
  assert (Hx : 0 <= x) by apply (E_range _ B h Hh). pose proof (bell_sum_pos rate (cond_pos rate)) as HS.
  assert (Hp : test (power B th) (fun n => power (h n) th)) by (apply power_test; [lra|assumption]).
  replace (th / (1 - th) * (rate * (IZR (c - c') * IZR (c - c')))) with ((1 - th) * sg).
  2: { unfold sg, a. field. lra. }
  apply (Rmult_le_reg_l (exp (- ((1 - th) * sg)))); [apply exp_pos|].
  rewrite <- Rmult_assoc, <- exp_plus, Rplus_opp_l, exp_0, Rmult_1_l.
  apply below_tangents; [assumption|assumption|]. intros T HT.
  apply (Rmult_le_reg_l (exp ((1 - th) * sg))); [apply exp_pos|].
  rewrite <- Rmult_assoc, <- exp_plus, Rplus_opp_r, exp_0, Rmult_1_l.
  set (tau := ln T). assert (ET : T = exp tau) by (unfold tau; now rewrite exp_ln).
  rewrite ET, power_of_exp, <- Rmult_assoc, <- exp_plus. set (K := exp ((1 - th) * sg + th * tau)).
  assert (HK : 0 < K) by apply exp_pos. set (b := K * th / exp tau).
  assert (Hb : 0 <= b) by (unfold b, Rdiv; apply Rmult_le_pos; [nra|left; apply Rinv_0_lt_compat, exp_pos]).
  set (m := a * IZR c + (1 - a) * IZR c').
  (* each term: the weight moves to m, and to c' *)
  assert (Hline : forall n, bell rate (IZR c) n * power (h n) th <=
    K * (1 - th) * bell rate m n + b * (bell rate (IZR c') n * h n)).
  { intros n. eapply Rle_trans; [apply (young th sg tau _ (- (rate * ((IZR n - IZR c') * (IZR n - IZR c')))) (h n) Ht
      (proj1 (Hh n)))|].
    fold K. right. rewrite <- !exp_plus. unfold b, bell. fold a.
    replace (- sg + (a * - (rate * ((IZR n - IZR c) * (IZR n - IZR c))) + (1 - a) * - (rate * ((IZR n - IZR c') * (IZR
      n - IZR c')))))
      with (- (rate * ((IZR n - m) * (IZR n - m)))).
    - field. apply Rgt_not_eq, exp_pos.
    - unfold sg, m. rewrite minus_IZR. ring. }
  pose proof (below_test _ _ _ _ (below (IZR c')) Hh) as Hq.
  pose proof (below_scale _ (K * (1 - th)) _ ltac:(nra) (below m)) as H1. pose proof (below_scale _ b _ Hb Hq) as H2.
  assert (Hsum : infinite_sum (fun n => bell rate (IZR c) n * power (h n) th) <=
    K * (1 - th) * bell_sum rate m + b * infinite_sum (fun n => bell rate (IZR c') n * h n)).
  { unfold bell_sum. rewrite <- (infinite_scale (bell rate m) _ (ceiling rate)) by (try apply below; nra).
    rewrite <- (infinite_scale (fun n => _ * h n) b (B * ceiling rate)) by assumption.
    rewrite <- (infinite_plus Z.eq_dec _ _ _ _ H1 H2). eapply infinite_mono; [|exact (below_plus _ _ _ _ H1 H2)].
    intros n. split; [apply Rmult_le_pos; [left; apply bell_pos|apply power_nonneg]|apply Hline]. }
  rewrite (E_with_gaussian _ c _ Hp). unfold x. rewrite (E_with_gaussian _ c' _ Hh). specialize (HS 0).
  set (y := infinite_sum (fun n => bell rate (IZR c') n * h n)) in *.
    pose proof (thm_discrete_gaussian_largest rate m (cond_pos rate)) as Hm.
  apply (Rmult_le_reg_l (bell_sum rate 0)); [assumption|]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
  eapply Rle_trans; [exact Hsum|].
  replace (bell_sum rate 0 * (K * (1 - th + th * (/ bell_sum rate 0 * y / exp tau)))) with (K * (1 - th) * bell_sum
    rate 0 + b * y).
  - apply Rplus_le_compat_r, Rmult_le_compat_l; [nra|assumption].
  - unfold b. field. split; [lra|apply Rgt_not_eq, exp_pos].
Qed.
End Law.

(** * Vectors: a rate and an independent draw for each number *)
Fixpoint with_gaussians (rates : list posreal) (cs : list Z) : dist (list Z) :=
  match rates, cs with
  | rate :: rates, c :: cs => both cons (with_gaussian rate c) (fun _ => with_gaussians rates cs)
  | _, _ => ret []
  end.
(** What a change costs: the sum of rate d^2. *)
Fixpoint moved (rates : list posreal) (cs cs' : list Z) : R :=
  match rates, cs, cs' with
  | rate :: rates, c :: cs, c' :: cs' => rate * (IZR (c - c') * IZR (c - c')) + moved rates cs cs'
  | _, _, _ => 0
  end.

Lemma moved_nonneg rates : forall cs cs', 0 <= moved rates cs cs'.
Proof.
  induction rates as [|rate rates IH]; intros [|c cs] [|c' cs']; simpl; try lra. specialize (IH cs cs').
  pose proof (Rle_0_sqr (IZR (c - c'))) as H. unfold Rsqr in H. pose proof (cond_pos rate). nra.
Qed.
Lemma with_gaussians_upto rates : forall cs cs', length cs = length cs' ->
  upto (fun _ => moved rates cs cs') (with_gaussians rates cs) (with_gaussians rates cs').
Proof.
  induction rates as [|rate rates IH]; intros [|c cs] [|c' cs'] Hl; try discriminate; simpl; try apply upto_refl.
  apply upto_both with (a := rate * (IZR (c - c') * IZR (c - c'))) (V := fun _ _ => moved rates cs cs').
  - pose proof (Rle_0_sqr (IZR (c - c'))) as H. unfold Rsqr in H. pose proof (cond_pos rate). nra.
  - reflexivity.
  - apply gaussian_conc.
  - intros _. apply IH. simpl in Hl. lia.
Qed.
Theorem thm_discrete_gaussian {X} (N : list X -> list X -> Prop) rates (counts : list X -> list Z) rho :
  (forall D D', N D D' -> length (counts D) = length (counts D') /\ moved rates (counts D) (counts D') <= rho) ->
  concentrated N rho (fun D => with_gaussians rates (counts D)).
Proof.
  intros H D D' HN. destruct (H D D' HN) as [Hl Hm]. apply (upto_on _ (fun _ => moved rates (counts D) (counts D')));
    [intros o _; exact Hm|].
  now apply with_gaussians_upto.
Qed.

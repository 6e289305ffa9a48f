(* book/mechanisms.md, "Drawing exactly": the exponential mechanism by inversion, as a program on fair words, as
   dpforest/chance/lazy.py has it.  Candidates lie side by side, each as long as its weight exp(-x), and the answer is
   the one on which a uniform number lands.  All lengths are known by bounds only. *)
From Coq Require Import Reals Lra Psatz List Arith ZArith Lia.
From DPForest Require Import Law Privacy Selection Scores Bits.
Import ListNotations.
Open Scope R_scope.

Section Landing.
Variable base : nat.
Let b := Z.of_nat base.
(** Candidate [s] has weight exp(-a s / d s). *)
Variables a d : nat -> Z.
Variable digits : nat -> nat.
Let one j := (2 ^ Z.of_nat (digits j) * 2 ^ Z.of_nat (digits j))%Z.

(** Bounds of a weight, and of where those of the first [r] candidates end. *)
Definition weight_bounds (j s : nat) : Z * Z :=
  if (a s =? 0)%Z then (one j, one j) else exp_bounds (a s) (d s) (digits j).
Fixpoint ends (j r : nat) : Z * Z :=
  match r with
  | O => (0, 0)%Z
  | S r => (fst (ends j r) + fst (weight_bounds j r), snd (ends j r) + snd (weight_bounds j r))%Z
  end.
Variable m : nat.
(** Whether all numbers of a cell, in units of the sum of all, are below the end of the first [r]. *)
Definition before (r j : nat) (low : Z) : option bool :=
  below base (fun j => (fst (ends j r) * fst (ends j m))%Z) (fun j => (snd (ends j r) * snd (ends j m))%Z)
    (fun j => (snd (ends j m) * fst (ends j m))%Z) j low.
(** How many of the first [r] ends are passed. *)
Fixpoint passed (r j : nat) (low : Z) : option nat :=
  match r with
  | O => Some O
  | S r => match before (S r) j low, passed r j low with
    | Some false, Some k => Some (S k) | Some true, Some k => Some k | _, _ => None
    end
  end.
(** None is beyond the last. *)
Definition landing_step (j : nat) (low : Z) : option nat := passed (pred m) j low.
Definition landing : list Z -> option nat := settle base landing_step 0 0.

Hypothesis two : (2 <= base)%nat.
Hypothesis a_pos : forall s, (s < m)%nat -> (0 <= a s)%Z.
Hypothesis d_pos : forall s, (s < m)%nat -> (0 < d s)%Z.
Variable best : nat.
Hypothesis best_in : (best < m)%nat.
Hypothesis best_is : a best = 0%Z.
Let x s := IZR (a s) / IZR (d s).
Let weight s := exp (- x s).

Definition heap (r : nat) : R := sum_below r weight.
Definition gap (j r : nat) : R := sum_below r (fun s => (x s * x s + 4) * 2 ^ digits j).

Let one_pos j : 0 < IZR (one j).
Proof. apply IZR_lt. unfold one. apply Z.mul_pos_pos; apply Z.pow_pos_nonneg; lia. Qed.

Lemma weight_known j s : (s < m)%nat ->
  0 <= IZR (fst (weight_bounds j s)) <= weight s * IZR (one j) /\
  weight s * IZR (one j) <= IZR (snd (weight_bounds j s)) /\
  IZR (snd (weight_bounds j s)) - IZR (fst (weight_bounds j s)) <= (x s * x s + 4) * 2 ^ digits j.
Proof.
  intros Hs. unfold weight_bounds. case Z.eqb_spec; intros Ha.
  - assert (H1 : weight s = 1) by (unfold weight, x; rewrite Ha; unfold Rdiv; rewrite Rmult_0_l, Ropp_0; apply exp_0).
    cbn [fst snd]. rewrite H1. pose proof (one_pos j). assert (0 < 2 ^ digits j) by (apply pow_lt; lra).
    repeat split; try lra. nra.
  - pose proof (exp_bounds_around (a s) (d s) (digits j) (a_pos s Hs) (d_pos s Hs)) as ((H1 & H2) & (H3 & _) & H4).
    fold (x s) (one j) in H1, H2, H3, H4. fold (weight s) in H2, H3. repeat split; try assumption. lra.
Qed.

Lemma ends_known j r : (r <= m)%nat ->
  0 <= IZR (fst (ends j r)) <= heap r * IZR (one j) /\
  heap r * IZR (one j) <= IZR (snd (ends j r)) /\ IZR (snd (ends j r)) - IZR (fst (ends j r)) <= gap j r.
Proof.
  induction r as [|r IH]; intros Hr; [unfold heap, gap; simpl; lra|].
  specialize (IH ltac:(lia)). pose proof (weight_known j r ltac:(lia)). unfold heap, gap in *.
  cbn [ends fst snd sum_below].
  rewrite !plus_IZR. lra.
Qed.
Lemma total_mono r r' : (r <= r')%nat -> heap r <= heap r'.
Proof.
  induction 1 as [|r' H IH]; [lra|]. unfold heap in *. simpl. pose proof (exp_pos (- x r')).
  fold (weight r') in *. lra.
Qed.
Lemma total_one : 1 <= heap m.
Proof.
  apply Rle_trans with (heap (S best)); [|now apply total_mono]. unfold heap. simpl.
  assert (weight best = 1) by (unfold weight, x; rewrite best_is; unfold Rdiv; rewrite Rmult_0_l, Ropp_0; apply exp_0).
  assert (0 <= heap best) by (apply (total_mono 0); lia). unfold heap in *. lra.
Qed.
Lemma ends_mono j r r' : (r <= r' <= m)%nat ->
  (fst (ends j r) <= fst (ends j r') /\ snd (ends j r) <= snd (ends j r'))%Z.
Proof.
  intros [H Hm]. induction H as [|r' H IH]; [lia|]. specialize (IH ltac:(lia)).
  destruct (weight_known j r' ltac:(lia)) as ([H1 H2] & H3 & _). cbn [ends fst snd].
  assert (0 <= fst (weight_bounds j r'))%Z by now apply le_IZR.
  assert (0 <= snd (weight_bounds j r'))%Z by (apply le_IZR; lra).
  lia.
Qed.
Lemma ends_one j : IZR (one j) <= IZR (fst (ends j m)).
Proof.
  destruct (ends_mono j (S best) m ltac:(lia)) as [H _]. apply IZR_le in H. cbn [ends fst] in H.
  unfold weight_bounds in H. rewrite best_is in H. cbn [fst Z.eqb] in H. rewrite plus_IZR in H.
  destruct (ends_known j best ltac:(lia)) as [[H1 _] _]. lra.
Qed.

Let share r := heap r / heap m.
Lemma before_known r : (r <= m)%nat ->
  bounds (fun j => (fst (ends j r) * fst (ends j m))%Z) (fun j => (snd (ends j r) * snd (ends j m))%Z)
    (fun j => (snd (ends j m) * fst (ends j m))%Z) (share r).
Proof.
  intros Hr j. destruct (ends_known j r Hr) as ([L0 L1] & U1 & _).
  destruct (ends_known j m (le_n m)) as ([M0 M1] & M2 & _).
  pose proof (ends_one j) as H1. pose proof (one_pos j) as H0. pose proof total_one as HT.
  assert (HU : 0 < IZR (snd (ends j m))) by lra. assert (HL : 0 < IZR (fst (ends j m))) by lra.
  rewrite !mult_IZR. set (L := IZR (fst (ends j m))) in *. set (U := IZR (snd (ends j m))) in *.
  set (l := IZR (fst (ends j r))) in *. set (u := IZR (snd (ends j r))) in *. set (o := IZR (one j)) in *.
  assert (HS : share r * heap m = heap r) by (unfold share; field; lra).
  assert (H2 : 0 <= share r).
  { unfold share. apply Rmult_le_pos; [apply (total_mono 0); lia|left; apply Rinv_0_lt_compat; lra]. }
  set (t := share r) in *. clearbody t. rewrite <- HS in L1, U1.
  split; [|repeat split].
  - apply lt_IZR. rewrite mult_IZR. fold L U. nra.
  - nra.
  - assert (l <= t * U) by nra. nra.
  - assert (t * L <= u) by nra. nra.
Qed.
Lemma share_unit r : (r <= m)%nat -> 0 <= share r <= 1.
Proof.
  intros Hr. pose proof total_one. pose proof (total_mono r m Hr). pose proof (total_mono 0 r ltac:(lia)) as HT.
  unfold heap at 1 in HT. simpl in HT. unfold share. split.
  - apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra].
  - apply Rmult_le_reg_r with (heap m); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

Lemma share_mono r r' : (r <= r')%nat -> share r <= share r'.
Proof.
  intros H. unfold share. apply Rmult_le_compat_r; [|now apply total_mono].
  left. apply Rinv_0_lt_compat. pose proof total_one. lra.
Qed.
Lemma before_right r j low v u : (r <= m)%nat -> before r j low = Some v -> cell base j low u ->
  if v then u < share r else share r <= u.
Proof. intros Hr H Hu. exact (below_right base _ _ _ _ two (before_known r Hr) j low v H u Hu). Qed.

Lemma passed_right j low u : cell base j low u -> forall r k, (r <= m)%nat -> passed r j low = Some k ->
  (k <= r)%nat /\ (k = 0%nat \/ share k <= u) /\ ((k < r)%nat -> u < share (S k)).
Proof.
  intros Hu. induction r as [|r IH]; intros k Hr; cbn [passed]; [intros [= <-]; repeat split; auto; lia|].
  destruct (before (S r) j low) as [v|] eqn:E; [|discriminate].
  pose proof (before_right (S r) j low v u Hr E Hu) as Hv.
  destruct v; (destruct (passed r j low) as [k'|]; [|discriminate]); intros [= <-];
    destruct (IH k' ltac:(lia) eq_refl) as (H1 & H2 & H3).
  - repeat split; [lia|assumption|]. intros _. destruct (Nat.eq_dec k' r) as [->|]; [assumption|]. apply H3. lia.
  - destruct (Nat.eq_dec k' r) as [->|].
    + repeat split; [lia|now right|lia].
    + specialize (H3 ltac:(lia)). pose proof (share_mono (S k') (S r) ltac:(lia)). lra.
Qed.
Lemma landing_step_right i j low v u : (0 < i < m)%nat -> landing_step j low = Some v -> cell base j low u ->
  if (v <? i)%nat then u < share i else share i <= u.
Proof.
  intros Hi H Hu. destruct (passed_right j low u Hu (pred m) v ltac:(lia) H) as (H1 & H2 & H3).
  case Nat.ltb_spec; intros Hv.
  - specialize (H3 ltac:(lia)). pose proof (share_mono (S v) i ltac:(lia)). lra.
  - destruct H2 as [->|H2]; [lia|]. pose proof (share_mono i v ltac:(lia)). lra.
Qed.

(** Whatever the words, the answer is the one on which every real number that begins with them lands. *)
Theorem thm_exact_draws_landing_right words r u :
  words_ok base words -> landing words = Some r -> cell base (length words) (number base 0 words) u ->
  (r < m)%nat /\ (r = 0%nat \/ share r <= u) /\ (S r = m \/ u < share (S r)).
Proof.
  intros Hw Hr Hu.
  apply (settle_right base landing_step two
    (fun r u => (r < m)%nat /\ (r = 0%nat \/ share r <= u) /\ (S r = m \/ u < share (S r))))
    with (l := words) (j := 0%nat) (low := 0%Z); try assumption.
  intros j low v H u' Hu'. destruct (passed_right j low u' Hu' (pred m) v ltac:(lia) H) as (H1 & H2 & H3).
  repeat split; [lia|assumption|]. destruct (Nat.eq_dec (S v) m); [now left|right; apply H3; lia].
Qed.

Let size_pos n : 0 < INR base ^ n.
Proof. apply pow_lt. apply (le_INR 2) in two. simpl in two. lra. Qed.
Let share_m : share m = 1.
Proof. unfold share. pose proof total_one. field. lra. Qed.
Let share_0 : share 0 = 0.
Proof. unfold share, heap. simpl. unfold Rdiv. ring. Qed.

Lemma landing_within n l r : words_ok base l -> length l = n -> landing l = Some r ->
  between (share r * INR base ^ n) (share (S r) * INR base ^ n) (IZR (number base 0 l)) = 1.
Proof.
  intros Hl Hn H. pose proof (size_pos n) as Hs.
  destruct (thm_exact_draws_landing_right l r _ Hl H (cell_number base two l)) as (Hr & _).
  assert (H1 : share r * INR base ^ n <= IZR (number base 0 l)).
  { destruct r as [|r].
    - rewrite share_0, Rmult_0_l. apply IZR_le. apply (number_low base two); [assumption|lia].
    - pose proof (false_within base landing_step (fun v => v <? S r)%nat (share (S r)) two
        (fun j low v Hv u Hu => landing_step_right (S r) j low v u ltac:(lia) Hv Hu)
        l (S r) Hl H (Nat.ltb_irrefl _)) as HF.
      rewrite Hn in HF. revert HF. unfold between. repeat destruct Rle_dec; lra. }
  assert (H2 : IZR (number base 0 l) + 1 <= share (S r) * INR base ^ n).
  { destruct (Nat.eq_dec (S r) m) as [E|E].
    - rewrite E, share_m, Rmult_1_l. rewrite <- Hn. apply (number_high base two l 0 0 Hl). simpl. lra.
    - assert (Hlt : (r <? S r)%nat = true) by (apply Nat.ltb_lt; lia).
      pose proof (true_within base landing_step (fun v => v <? S r)%nat (share (S r)) two
        (fun j low v Hv u Hu => landing_step_right (S r) j low v u ltac:(lia) Hv Hu) l r Hl H Hlt) as HT.
      rewrite Hn in HT. revert HT. unfold between. repeat destruct Rle_dec; lra. }
  unfold between. repeat destruct Rle_dec; lra.
Qed.

Lemma words_ext n : forall f g, (forall l, f l = g l) -> mean_of_words base n f = mean_of_words base n g.
Proof. intros f g H. apply Rle_antisym; apply (mean_le base two); intros l _ _; rewrite H; lra. Qed.

(** The mean of [f] under probabilities in proportion to the weights. *)
Definition mean_of_weights (f : nat -> R) : R := sum_below m (fun r => weight r * f r) / heap m.
Definition indicator (p : nat -> bool) (r : nat) : R := if p r then 1 else 0.

Lemma landing_least n p : chance_of base landing_step n p <= mean_of_weights (indicator p).
Proof.
  pose proof (size_pos n) as Hs. pose proof total_one as HT. unfold chance_of, mean_of_weights.
  apply Rle_trans with (sum_below m (fun r => mean_of_words base n (fun l => indicator p r *
    between (share r * INR base ^ n) (share (S r) * INR base ^ n) (IZR (number base 0 l))))).
  - rewrite <- mean_sum. apply (mean_le base two). intros l Hl Hn.
    assert (Hpos : forall k, 0 <= sum_below k (fun r => indicator p r *
      between (share r * INR base ^ n) (share (S r) * INR base ^ n) (IZR (number base 0 l)))).
    { induction k as [|k IH]; simpl; [lra|].
      pose proof (within_pos (share k * INR base ^ n) (share (S k) * INR base ^ n) (IZR (number base 0 l))).
      unfold indicator at 2. destruct (p k); lra. }
    change (settle base landing_step 0 0 l) with (landing l). destruct (landing l) as [r|] eqn:E; simpl; [|apply Hpos].
    destruct (p r) eqn:Hp; [|apply Hpos].
    destruct (thm_exact_draws_landing_right l r _ Hl E (cell_number base two l)) as (Hr & _).
    assert (H1 : forall k, (r < k)%nat -> 1 <= sum_below k (fun r => indicator p r *
      between (share r * INR base ^ n) (share (S r) * INR base ^ n) (IZR (number base 0 l)))); [|now apply H1].
    induction k as [|k IH]; [lia|]. intros Hk. simpl. destruct (Nat.eq_dec r k) as [<-|].
    + rewrite (landing_within n l r Hl Hn E). unfold indicator at 2. rewrite Hp. specialize (Hpos r). lra.
    + specialize (IH ltac:(lia)).
      pose proof (within_pos (share k * INR base ^ n) (share (S k) * INR base ^ n) (IZR (number base 0 l))).
      unfold indicator at 2. destruct (p k); lra.
  - rewrite <- (total_div m (fun r => weight r * indicator p r) (heap m)). apply total_le. intros r Hr.
    assert (HW : weight r * indicator p r / heap m = indicator p r * (share (S r) - share r))
      by (unfold share, heap; simpl; field; fold (heap m); lra).
    rewrite HW. unfold indicator. destruct (p r).
    + rewrite (words_ext n _ (fun l =>
        between (share r * INR base ^ n) (share (S r) * INR base ^ n) (IZR (number base 0 l))))
        by (intros; ring).
      rewrite Rmult_1_l. pose proof (share_unit r ltac:(lia)). pose proof (share_mono r (S r) ltac:(lia)).
      eapply Rle_trans; [apply (mean_within base two n); nra|]. right. field. lra.
    + rewrite (words_ext n _ (fun _ => 0)) by (intros; ring). rewrite mean_zero. lra.
Qed.

Lemma landing_open n : (0 < n)%nat ->
  undecided base landing_step n <= INR (pred m) *
    (2 * sum_below m (fun s => x s * x s + 4) / 2 ^ digits n + 2 / INR base ^ n).
Proof.
  intros Hn. eapply Rle_trans; [now apply undecided_last|].
  assert (HO : forall r low, open (passed r n low) <= sum_below r (fun i => open (before (S i) n low))).
  { induction r as [|r IH]; intros low; cbn [passed sum_below]; [simpl; lra|]. specialize (IH low).
    destruct (before (S r) n low) as [[|]|], (passed r n low); simpl in *; lra. }
  eapply Rle_trans; [apply (mean_le base two); intros l _ _; apply HO|]. rewrite mean_sum.
  set (c := 2 * sum_below m (fun s => x s * x s + 4) / 2 ^ digits n + 2 / INR base ^ n).
  apply Rle_trans with (sum_below (pred m) (fun _ => c)).
  - apply total_le. intros i Hi. unfold before.
    eapply Rle_trans; [apply (below_open base _ _ _ (share (S i)) two (before_known (S i) ltac:(lia))); assumption|].
    unfold c. apply Rplus_le_compat_r.
    destruct (ends_known n (S i) ltac:(lia)) as ([L0 L1] & U1 & G1).
    destruct (ends_known n m (le_n m)) as ([M0 M1] & M2 & G2).
    pose proof (ends_one n) as H1. pose proof (one_pos n) as H0.
    destruct (ends_mono n (S i) m ltac:(lia)) as [E1 E2]. apply IZR_le in E1, E2.
    assert (Ho : IZR (one n) = 2 ^ digits n * 2 ^ digits n) by (unfold one; rewrite mult_IZR, <- pow_IZR; reflexivity).
    assert (HGg : forall k, gap n k = sum_below k (fun s => x s * x s + 4) * 2 ^ digits n)
      by (intros k; unfold gap; induction k as [|k IHk]; simpl; [ring|rewrite IHk; ring]).
    assert (HS : sum_below (S i) (fun s => x s * x s + 4) <= sum_below m (fun s => x s * x s + 4)).
    { assert (Hm : (S i <= m)%nat) by lia. clear - Hm. induction Hm as [|k _ IHk]; [apply Rle_refl|].
      eapply Rle_trans; [exact IHk|]. cbn [sum_below]. pose proof (Rle_0_sqr (x k)) as Hk. unfold Rsqr in Hk. lra. }
    rewrite HGg in G1, G2. assert (Hw : 0 < 2 ^ digits n) by (apply pow_lt; lra).
    rewrite !mult_IZR. set (g := sum_below m (fun s => x s * x s + 4)) in *.
    set (g1 := sum_below (S i) (fun s => x s * x s + 4)) in *. set (w := 2 ^ digits n) in *.
    set (L := IZR (fst (ends n m))) in *. set (U := IZR (snd (ends n m))) in *.
    set (l1 := IZR (fst (ends n (S i)))) in *. set (u1 := IZR (snd (ends n (S i)))) in *. clearbody g g1 w L U l1 u1.
    assert (HL : 0 < L) by lra. assert (HU : L <= U) by lra. rewrite Ho in H1.
    assert (D : u1 * U - l1 * L <= 2 * (g * w) * U).
    { assert (g1 * w <= g * w) by (apply Rmult_le_compat_r; lra).
      assert ((u1 - l1) * U <= g * w * U) by (apply Rmult_le_compat_r; lra).
      assert (l1 * (U - L) <= U * (g * w)) by (apply Rmult_le_compat; lra). lra. }
    assert (HUL : 0 < U * L) by (apply Rmult_lt_0_compat; lra).
    apply Rmult_le_reg_r with (U * L); [assumption|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    replace (2 * g / w * (U * L)) with (2 * g * U * (L / w)) by (field; lra).
    assert (w <= L / w) by (apply Rmult_le_reg_r with w; [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra).
    apply Rle_trans with (2 * g * U * w); [lra|]. apply Rmult_le_compat_l; [|assumption].
    apply Rmult_le_pos; [|lra]. assert (0 <= g * w) by lra. assert (0 <= g) by (apply Rmult_le_reg_r with w; lra). lra.
  - right. clearbody c. induction (pred m) as [|k IHk]; [simpl; ring|].
    rewrite S_INR. cbn [sum_below]. rewrite IHk. ring.
Qed.

(** The law is that of the exponential mechanism, and there is an answer with probability one. *)
Theorem thm_exact_draws_landing n p : (0 < n)%nat ->
  chance_of base landing_step n p <= mean_of_weights (indicator p) <=
    chance_of base landing_step n p + undecided base landing_step n /\
  undecided base landing_step n <= INR (pred m) *
    (2 * sum_below m (fun s => x s * x s + 4) / 2 ^ digits n + 2 / INR base ^ n).
Proof.
  intros Hn. split; [|now apply landing_open]. split; [apply landing_least|].
  pose proof (landing_least n (fun v => negb (p v))) as H1. pose proof (law_splits base landing_step two n p) as H2.
  assert (H3 : mean_of_weights (indicator p) + mean_of_weights (indicator (fun v => negb (p v))) = 1); [|lra].
  pose proof total_one. unfold mean_of_weights. rewrite <- Rdiv_plus_distr, <- total_plus.
  rewrite (total_ext m _ weight); [fold (heap m); field; lra|].
  intros r _. unfold indicator. destruct (p r); simpl; ring.
Qed.
End Landing.

(** ** Of scores at a rate it is the law that a selection is charged for *)
Lemma sum_of_seq f n : sum f (seq 0 n) = sum_below n f.
Proof.
  induction n as [|n IH]; [reflexivity|]. rewrite seq_S, sum_app, IH. simpl. ring.
Qed.

Theorem thm_exact_draws_landing_of_scores base a d digits {X} m rate (q : list X -> nat -> R) D best n p :
  (2 <= base)%nat -> (0 < n)%nat -> (best < m)%nat -> a best = 0%Z ->
  (forall r, (r < m)%nat -> (0 <= a r)%Z /\ (0 < d r)%Z /\ IZR (a r) / IZR (d r) = rate * (q D best - q D r)) ->
  let law := chance_of base (landing_step base a d digits m) n in
  let left := undecided base (landing_step base a d digits m) n in
  law p <= E (exponential 0%nat (seq 1 (pred m)) rate q D) (indicator p) <= law p + left /\
  left <= INR (pred m) * (2 * sum_below m (fun s => let x := IZR (a s) / IZR (d s) in x * x + 4) / 2 ^ digits n
    + 2 / INR base ^ n).
Proof.
  intros H2 Hn Hb Hab Hx law left.
  replace (E (exponential 0%nat (seq 1 (pred m)) rate q D) (indicator p)) with (mean_of_weights a d m (indicator p)).
  { apply (thm_exact_draws_landing base a d digits m H2) with best; try assumption; intros s Hs; now apply Hx. }
  unfold exponential. rewrite E_weighted. unfold candidates.
  replace (0%nat :: seq 1 (pred m)) with (seq 0 m) by (destruct m; [lia|reflexivity]). rewrite !sum_of_seq.
  set (c := exp (rate * q D best)). pose proof (exp_pos (rate * q D best)) as Hc. fold c in Hc.
  assert (HW : forall r, (r < m)%nat -> exp (rate * q D r) = c * exp (- (IZR (a r) / IZR (d r)))).
  { intros r Hr. destruct (Hx r Hr) as (_ & _ & ->). unfold c. rewrite <- exp_plus. f_equal. ring. }
  rewrite (total_ext m _ (fun r => c * exp (- (IZR (a r) / IZR (d r))))) by assumption.
  rewrite (total_ext m (fun r => exp (rate * q D r) * indicator p r)
    (fun r => c * (exp (- (IZR (a r) / IZR (d r))) * indicator p r))) by (intros r Hr; rewrite (HW r Hr); ring).
  assert (HS : forall k g, sum_below k (fun r => c * g r) = c * sum_below k g)
    by (induction k as [|k IH]; intros g; simpl; [|rewrite IH]; ring).
  rewrite !HS. unfold mean_of_weights, heap.
  assert (H1 : 1 <= heap a d m) by (eapply total_one; eassumption). unfold heap in H1.
  field. split; lra.
Qed.

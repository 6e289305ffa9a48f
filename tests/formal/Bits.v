(* book/mechanisms.md, "Drawing exactly": samplers as programs on fair words, as dpforest/chance/lazy.py has them.
   A uniform real number is given word by word; a program stops as soon as the words that it has read decide.  A word is
   one of b, all equally likely: b is 2^64 in the code that ships, and 2 for single bits. *)
From Coq Require Import Reals Lra Psatz List ZArith Lia Qreals.
Import ListNotations.
Open Scope R_scope.

(** * The program *)
Section Settle.
Variable base : nat.
Let b := Z.of_nat base.
Context {V : Type}.
(** What is said of the numbers that begin with these [j] words, of which [low] is the number; or nothing. *)
Variable decide : nat -> Z -> option V.

Fixpoint settle (j : nat) (low : Z) (words : list Z) : option V :=
  match words with
  | [] => None
  | w :: rest => let low := (low * b + w)%Z in
      match decide (S j) low with Some v => Some v | None => settle (S j) low rest end
  end.

(** ** Its law on [n] fair words: a mean over all b^n lists *)
Fixpoint sum_below (n : nat) (f : nat -> R) : R := match n with O => 0 | S n => sum_below n f + f n end.
Fixpoint mean_of_words (n : nat) (f : list Z -> R) : R :=
  match n with
  | O => f []
  | S n => sum_below base (fun w => mean_of_words n (fun l => f (Z.of_nat w :: l))) / INR base
  end.

Definition answered (p : V -> bool) (said : option V) : R :=
  match said with Some v => if p v then 1 else 0 | None => 0 end.
Definition open (said : option V) : R := match said with Some _ => 0 | None => 1 end.
(** The probabilities that [n] words are enough for an answer in [p], and that they are not enough for any. *)
Definition chance_of (n : nat) (p : V -> bool) : R := mean_of_words n (fun l => answered p (settle 0 0 l)).
Definition undecided (n : nat) : R := mean_of_words n (fun l => open (settle 0 0 l)).

Hypothesis two : (2 <= base)%nat.
Let b_pos : 2 <= INR base. Proof. apply (le_INR 2). assumption. Qed.
Let IZR_b : IZR b = INR base. Proof. unfold b. now rewrite <- INR_IZR_INZ. Qed.

Fixpoint number (low : Z) (words : list Z) : Z :=
  match words with [] => low | w :: rest => number (low * b + w)%Z rest end.
Definition words_ok := Forall (fun w => (0 <= w < b)%Z).
(** The real numbers of which [j] words are those of [low]. *)
Definition cell (j : nat) (low : Z) (u : R) : Prop := IZR low <= u * INR base ^ j < IZR low + 1.

Lemma cell_up j low w u : (0 <= w < b)%Z -> cell (S j) (low * b + w) u -> cell j low u.
Proof.
  intros [Hw Hb] [H1 H2]. rewrite plus_IZR, mult_IZR, IZR_b in H1, H2. simpl pow in H1, H2.
  apply IZR_le in Hw. assert (IZR w + 1 <= INR base).
  { rewrite <- IZR_b. rewrite <- plus_IZR. apply IZR_le. lia. }
  pose proof b_pos. split.
  - apply Rmult_le_reg_l with (INR base); lra.
  - apply Rmult_lt_reg_l with (INR base); lra.
Qed.

Lemma cell_prefix l : forall j low u, words_ok l -> cell (j + length l) (number low l) u -> cell j low u.
Proof.
  induction l as [|w l IH]; simpl; intros j low u Hl H.
  - now rewrite Nat.add_0_r in H.
  - inversion Hl; subst. apply cell_up with w; [assumption|]. apply IH; [assumption|].
    now replace (S j + length l)%nat with (j + S (length l))%nat by lia.
Qed.

Section Right.
Variable right : V -> R -> Prop.
Hypothesis sound : forall j low v, decide j low = Some v -> forall u, cell j low u -> right v u.

Lemma settle_right l : forall j low v u,
  words_ok l -> settle j low l = Some v -> cell (j + length l) (number low l) u -> right v u.
Proof.
  induction l as [|w l IH]; simpl; intros j low v u Hl H Hc; [discriminate|]. inversion Hl; subst.
  replace (j + S (length l))%nat with (S j + length l)%nat in Hc by lia.
  destruct (decide (S j) (low * b + w)) as [v'|] eqn:Hd.
  - injection H as <-. apply (sound _ _ _ Hd). apply cell_prefix with l; assumption.
  - eapply IH; eassumption.
Qed.
End Right.

Lemma settle_open l : forall j low, l <> [] -> settle j low l = None -> decide (j + length l) (number low l) = None.
Proof.
  induction l as [|w l IH]; simpl; intros j low Hl H; [congruence|].
  destruct (decide (S j) (low * b + w)) as [v|] eqn:Hd; [discriminate|].
  destruct l as [|w' l].
  - simpl. now rewrite Nat.add_1_r.
  - replace (j + S (length (w' :: l)))%nat with (S j + length (w' :: l))%nat by lia. apply IH; [congruence|assumption].
Qed.

(** ** Means *)
Lemma total_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> sum_below n f = sum_below n g.
Proof. induction n; simpl; intros H; [reflexivity|]. rewrite IHn, H; auto. Qed.
Lemma total_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> sum_below n f <= sum_below n g.
Proof. induction n; simpl; intros H; [lra|]. apply Rplus_le_compat; auto. Qed.
Lemma total_plus n f g : sum_below n (fun i => f i + g i) = sum_below n f + sum_below n g.
Proof. induction n; simpl; [lra|]. rewrite IHn. ring. Qed.
Lemma total_div n f c : sum_below n (fun i => f i / c) = sum_below n f / c.
Proof. induction n; simpl; [unfold Rdiv; ring|]. rewrite IHn. unfold Rdiv. ring. Qed.
Lemma total_add m n f : sum_below (m + n) f = sum_below m f + sum_below n (fun i => f (m + i)%nat).
Proof. induction n; simpl; [rewrite Nat.add_0_r; ring|]. rewrite Nat.add_succ_r. simpl. rewrite IHn. ring. Qed.
Lemma total_mul m n f : sum_below (m * n) f = sum_below m (fun d => sum_below n (fun i => f (d * n + i)%nat)).
Proof. induction m; simpl; [reflexivity|]. rewrite Nat.add_comm, total_add, IHm. reflexivity. Qed.

Lemma mean_le n : forall f g, (forall l, words_ok l -> length l = n -> f l <= g l) ->
  mean_of_words n f <= mean_of_words n g.
Proof.
  induction n; simpl; intros f g H; [apply H; [constructor|reflexivity]|]. pose proof b_pos.
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|]. apply total_le. intros i Hi. apply IHn.
  intros l Hl Hn. apply H; [constructor; [unfold b; lia|assumption]|simpl; congruence].
Qed.
Lemma mean_plus n : forall f g, mean_of_words n (fun l => f l + g l) = mean_of_words n f + mean_of_words n g.
Proof.
  induction n; simpl; intros f g; [reflexivity|]. rewrite <- Rdiv_plus_distr, <- total_plus. f_equal.
  apply total_ext. intros i _. apply IHn.
Qed.
Lemma mean_number n g : forall low,
  mean_of_words n (fun l => g (number low l))
  = sum_below (base ^ n) (fun i => g (low * b ^ Z.of_nat n + Z.of_nat i)%Z) / INR base ^ n.
Proof.
  induction n; intros low.
  - simpl. rewrite Z.mul_1_r, Z.add_0_r. field.
  - pose proof b_pos. simpl mean_of_words.
    rewrite (total_ext _ _ (fun w => sum_below (base ^ n)
      (fun i => g ((low * b + Z.of_nat w) * b ^ Z.of_nat n + Z.of_nat i)%Z) / INR base ^ n)) by (intros; apply IHn).
    rewrite total_div. simpl pow. rewrite (total_mul base (base ^ n)).
    rewrite (total_ext base _ (fun d => sum_below (base ^ n)
      (fun i => g (low * b ^ Z.of_nat (S n) + Z.of_nat (d * base ^ n + i))%Z))).
    + field. split; [|lra]. apply pow_nonzero. lra.
    + intros d _. apply total_ext. intros i _. f_equal.
      rewrite Nat2Z.inj_add, Nat2Z.inj_mul, Nat2Z.inj_pow, Nat2Z.inj_succ, Z.pow_succ_r by lia. unfold b. ring.
Qed.
Lemma mean_one n : mean_of_words n (fun _ => 1) = 1.
Proof.
  induction n; simpl; [reflexivity|]. pose proof b_pos.
  rewrite (total_ext _ _ (fun _ => 1)) by (intros; apply IHn).
  assert (H1 : forall m, sum_below m (fun _ => 1) = INR m).
  { induction m; [reflexivity|]. rewrite S_INR. simpl. now rewrite IHm. }
  rewrite H1. field. lra.
Qed.

Lemma law_splits n p : chance_of n p + chance_of n (fun v => negb (p v)) + undecided n = 1.
Proof.
  unfold chance_of, undecided. rewrite <- !mean_plus, <- (mean_one n).
  apply Rle_antisym; apply mean_le; intros l _ _; destruct (settle 0 0 l) as [v|]; simpl;
    try destruct (p v); simpl; lra.
Qed.

(** How many of the first whole numbers, with the next, lie in an interval. *)
Definition between (lo hi m : R) : R := if Rle_dec lo m then if Rle_dec (m + 1) hi then 1 else 0 else 0.
Lemma count_between n lo hi : 0 <= lo -> sum_below n (fun i => between lo hi (INR i)) <= Rmax 0 (hi - lo).
Proof.
  intros Hlo. assert (H : sum_below n (fun i => between lo hi (INR i)) <= Rmax 0 (Rmin hi (INR n) - lo)).
  { induction n; [apply Rmax_l|]. rewrite S_INR. simpl sum_below. unfold between at 2.
    revert IHn. unfold Rmax, Rmin. pose proof (pos_INR n).
    repeat destruct Rle_dec; intros; lra. }
  revert H. unfold Rmax, Rmin. repeat destruct Rle_dec; lra.
Qed.

Lemma mean_within n lo hi : 0 <= lo -> lo <= hi ->
  mean_of_words n (fun l => between lo hi (IZR (number 0 l))) <= (hi - lo) / INR base ^ n.
Proof.
  intros H0 H. rewrite (mean_number n (fun m => between lo hi (IZR m))).
  assert (0 < INR base ^ n) by (apply pow_lt; pose proof b_pos; lra).
  apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
  rewrite (total_ext _ _ (fun i => between lo hi (INR i))).
  - pose proof (count_between (base ^ n) lo hi H0) as Hc. rewrite Rmax_right in Hc by lra. assumption.
  - intros i _. rewrite Z.mul_0_l, Z.add_0_l, <- INR_IZR_INZ. reflexivity.
Qed.
End Settle.

(** * A program whose answers in [p] are for the numbers below [t] *)
Lemma within_pos lo hi m : 0 <= between lo hi m.
Proof. unfold between. destruct Rle_dec; [destruct Rle_dec|]; lra. Qed.

Section Threshold.
Variable base : nat.
Let b := Z.of_nat base.
Context {V : Type} (decide : nat -> Z -> option V) (p : V -> bool) (t : R).
Hypothesis two : (2 <= base)%nat.
Hypothesis t01 : 0 <= t <= 1.
Hypothesis right : forall j low v, decide j low = Some v -> forall u, cell base j low u ->
  if p v then u < t else t <= u.
Let b_pos : 2 <= INR base. Proof. apply (le_INR 2). assumption. Qed.
Let size_pos j : 0 < INR base ^ j. Proof. apply pow_lt. pose proof b_pos. lra. Qed.

Lemma answer_right words v u :
  words_ok base words -> settle base decide 0 0 words = Some v -> cell base (length words) (number base 0 words) u ->
  if p v then u < t else t <= u.
Proof.
  intros Hw Hv Hu. eapply (settle_right base decide two (fun v u => if p v then u < t else t <= u) right words 0 0);
    eassumption.
Qed.

Lemma cell_number l : cell base (length l) (number base 0 l) (IZR (number base 0 l) / INR base ^ length l).
Proof.
  unfold cell, Rdiv. pose proof (size_pos (length l)).
  rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. lra.
Qed.

Lemma number_low l : forall low, words_ok base l -> (0 <= low)%Z -> (0 <= number base low l)%Z.
Proof.
  induction l as [|w l IH]; simpl; intros low Hl H; [assumption|]. inversion Hl; subst. apply IH; [assumption|].
  unfold b in *. lia.
Qed.
Lemma number_high l : forall j low, words_ok base l -> IZR low + 1 <= INR base ^ j ->
  IZR (number base low l) + 1 <= INR base ^ (j + length l).
Proof.
  induction l as [|w l IH]; simpl; intros j low Hl H; [now rewrite Nat.add_0_r|].
  inversion Hl as [|? ? [Hw Hw'] Hr]; subst.
  replace (j + S (length l))%nat with (S j + length l)%nat by lia. apply IH; [assumption|].
  rewrite plus_IZR, mult_IZR, <- INR_IZR_INZ. simpl pow. pose proof b_pos.
  assert (IZR w + 1 <= INR base) by (rewrite INR_IZR_INZ, <- plus_IZR; apply IZR_le; lia). nra.
Qed.

(** Where all real numbers of the cell lie on one side, so does the cell. *)
Lemma true_within l v : words_ok base l -> settle base decide 0 0 l = Some v -> p v = true ->
  between 0 (t * INR base ^ length l) (IZR (number base 0 l)) = 1.
Proof.
  intros Hl H Hp. pose proof (size_pos (length l)) as Hs. pose proof (number_low l 0 Hl ltac:(lia)) as H0.
  apply IZR_le in H0.
  unfold between. destruct Rle_dec as [_|]; [|lra]. destruct Rle_dec as [|Hn]; [reflexivity|exfalso].
  set (m := IZR (number base 0 l)) in *. set (N := INR base ^ length l) in *.
  (* the later of t and the cell's beginning lies in the cell *)
  assert (Hu : Rmax t (m / N) < t); [|unfold Rmax in Hu; destruct Rle_dec; lra].
  pose proof (answer_right l v (Rmax t (m / N)) Hl H) as Hr. rewrite Hp in Hr. apply Hr. clear Hr. unfold cell.
  fold m N.
  assert (Hm : m / N * N = m) by (field; lra). unfold Rmax. destruct Rle_dec as [Hr|Hr]; [lra|].
  assert (m / N * N < t * N) by (apply Rmult_lt_compat_r; lra). lra.
Qed.
Lemma false_within l v : words_ok base l -> settle base decide 0 0 l = Some v -> p v = false ->
  between (t * INR base ^ length l) (INR base ^ length l) (IZR (number base 0 l)) = 1.
Proof.
  intros Hl H Hp. pose proof (size_pos (length l)) as Hs.
  pose proof (number_high l 0 0 Hl ltac:(simpl; lra)) as H1. simpl in H1.
  pose proof (answer_right l v _ Hl H (cell_number l)) as H2. rewrite Hp in H2.
  set (m := IZR (number base 0 l)) in *. set (N := INR base ^ length l) in *.
  assert (t * N <= m). { replace m with (m / N * N) by (field; lra). apply Rmult_le_compat_r; lra. }
  unfold between. destruct Rle_dec; [|lra]. destruct Rle_dec; [reflexivity|lra].
Qed.
(** The probability of an answer in [p] within [n] words misses [t] by no more than what [n] words leave open. *)
Lemma settle_law n : chance_of base decide n p <= t <= chance_of base decide n p + undecided base decide n.
Proof.
  pose proof (size_pos n) as Hs. pose proof (law_splits base decide two n p) as H1.
  assert (HT : chance_of base decide n p <= t).
  { apply Rle_trans with ((t * INR base ^ n - 0) / INR base ^ n); [|right; field; lra].
    eapply Rle_trans; [|apply (mean_within base two n 0 (t * INR base ^ n)); nra].
    apply (mean_le base two). intros l Hl Hn. pose proof (within_pos 0 (t * INR base ^ n) (IZR (number base 0 l))).
    destruct (settle base decide 0 0 l) as [v|] eqn:Hc; simpl; try lra. destruct (p v) eqn:Hp; [|lra].
    right. symmetry. subst n. now apply true_within with v. }
  assert (HF : chance_of base decide n (fun v => negb (p v)) <= 1 - t).
  { apply Rle_trans with ((INR base ^ n - t * INR base ^ n) / INR base ^ n); [|right; field; lra].
    eapply Rle_trans; [|apply (mean_within base two n (t * INR base ^ n) (INR base ^ n)); nra].
    apply (mean_le base two). intros l Hl Hn.
    pose proof (within_pos (t * INR base ^ n) (INR base ^ n) (IZR (number base 0 l))).
    destruct (settle base decide 0 0 l) as [v|] eqn:Hc; simpl; try lra. destruct (p v) eqn:Hp; simpl; [lra|].
    right. symmetry. subst n. now apply false_within with v. }
  split; [exact HT|]. lra.
Qed.
End Threshold.

(** * A coin: whether the uniform number lies below [t], of which every answer needs bounds only *)
Section Coin.
Variable base : nat.
Let b := Z.of_nat base.
(** After [j] words [t] is known to lie between [least j] and [most j], in units of 1 / [unit j]. *)
Variables least most unit : nat -> Z.

Definition below (j : nat) (low : Z) : option bool :=
  if ((low + 1) * unit j <=? least j * b ^ Z.of_nat j)%Z then Some true
  else if (most j * b ^ Z.of_nat j <=? low * unit j)%Z then Some false else None.
Definition coin : list Z -> option bool := settle base below 0 0.

Definition bounds (t : R) : Prop := forall j,
  (0 < unit j)%Z /\ 0 <= IZR (least j) <= t * IZR (unit j) /\ t * IZR (unit j) <= IZR (most j).

Variable t : R.
Hypothesis two : (2 <= base)%nat.
Hypothesis known : bounds t.
Hypothesis t01 : 0 <= t <= 1.

Let b_pos : 2 <= INR base. Proof. apply (le_INR 2). assumption. Qed.
Let size_pos j : 0 < INR base ^ j. Proof. apply pow_lt. pose proof b_pos. lra. Qed.
Let size j : IZR (b ^ Z.of_nat j) = INR base ^ j.
Proof. rewrite <- pow_IZR. unfold b. now rewrite <- INR_IZR_INZ. Qed.

Lemma below_right j low v : below j low = Some v -> forall u, cell base j low u -> (if v then u < t else t <= u).
Proof.
  unfold below. destruct (known j) as (H0 & [Hl H1] & H2). apply IZR_lt in H0. pose proof (size_pos j) as Hs.
  case Z.leb_spec; intros H; [|case Z.leb_spec; [|discriminate]; clear H; intros H]; intros [= <-] u [Hu Hu']; cbv iota;
    apply IZR_le in H; rewrite !mult_IZR, ?plus_IZR, size in H.
  - apply (Rmult_lt_reg_r (INR base ^ j * IZR (unit j))); [nra|]. nra.
  - apply (Rmult_le_reg_r (INR base ^ j * IZR (unit j))); [nra|]. nra.
Qed.

(** Whatever the words, the answer is right for every real number that begins with them. *)
Theorem lem_lazy_uniform_right words v u :
  words_ok base words -> coin words = Some v -> cell base (length words) (number base 0 words) u ->
  if v then u < t else t <= u.
Proof.
  intros Hw Hv Hu. eapply (settle_right base below two (fun v u => if v then u < t else t <= u) below_right words 0 0);
    eassumption.
Qed.

(** The probability of heads within [n] words misses [t] by no more than what [n] words leave open. *)
Theorem lem_lazy_uniform_law n :
  chance_of base below n (fun v => v) <= t <= chance_of base below n (fun v => v) + undecided base below n.
Proof. apply settle_law; [assumption..|]. exact below_right. Qed.

Lemma below_open n : (0 < n)%nat ->
  mean_of_words base n (fun l => open (below n (number base 0 l)))
  <= (IZR (most n) - IZR (least n)) / IZR (unit n) + 2 / INR base ^ n.
Proof.
  intros H0. pose proof (size_pos n) as Hs. destruct (known n) as (Hunit & [Hl H1] & H2). apply IZR_lt in Hunit.
  set (lo := IZR (least n) / IZR (unit n)). set (hi := IZR (most n) / IZR (unit n)).
  set (N := INR base ^ n) in *. clear t01.
  assert (Hlo : lo * IZR (unit n) = IZR (least n)) by (unfold lo; field; lra).
  assert (Hhi : hi * IZR (unit n) = IZR (most n)) by (unfold hi; field; lra).
  replace ((IZR (most n) - IZR (least n)) / IZR (unit n)) with (hi - lo) by (unfold lo, hi; field; lra).
  clearbody lo hi.
  assert (lo <= hi) by (apply Rmult_le_reg_r with (IZR (unit n)); lra).
  assert (0 <= lo) by (apply Rmult_le_reg_r with (IZR (unit n)); lra).
  apply Rle_trans with (((hi * N + 2) - lo * N) / N); [|right; field; lra].
  (* counted with one added to each, so that none is below 0 *)
  eapply Rle_trans with (mean_of_words base n (fun l => between (lo * N) (hi * N + 2) (IZR (number base 0 l + 1)))).
  - apply (mean_le base two). intros l Hwl Hn.
    pose proof (within_pos (lo * N) (hi * N + 2) (IZR (number base 0 l + 1))).
    destruct (below n (number base 0 l)) as [v|] eqn:Hc; simpl; [lra|]. right. symmetry.
    revert Hc. unfold below. case Z.leb_spec; [discriminate|intros Ha]. case Z.leb_spec; [discriminate|intros Hb _].
    apply IZR_lt in Ha, Hb. rewrite !mult_IZR, size in Ha, Hb. rewrite plus_IZR in Ha. fold N in Ha, Hb.
    unfold between. rewrite plus_IZR.
    set (m := IZR (number base 0 l)) in *. clearbody m.
    rewrite <- Hlo in Ha. rewrite <- Hhi in Hb.
    assert (lo * N <= m + 1) by (apply (Rmult_le_reg_r (IZR (unit n))); [exact Hunit|]; lra).
    assert (m <= hi * N) by (apply (Rmult_le_reg_r (IZR (unit n))); [exact Hunit|]; lra).
    destruct Rle_dec as [_|]; [|lra]. destruct Rle_dec as [_|]; [reflexivity|lra].
  - rewrite (mean_number base two n (fun m => between (lo * N) (hi * N + 2) (IZR (m + 1)))).
    apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
    apply Rle_trans with (sum_below (S (base ^ n)) (fun i => between (lo * N) (hi * N + 2) (INR i))).
    + change (S (base ^ n)) with (1 + base ^ n)%nat. rewrite total_add.
      rewrite (total_ext (base ^ n) (fun i => between _ _ (IZR _))
        (fun i => between (lo * N) (hi * N + 2) (INR (1 + i)))).
      * pose proof (within_pos (lo * N) (hi * N + 2) (INR 0)) as H0w. cbn [sum_below]. rewrite Rplus_0_l.
        rewrite <- (Rplus_0_l (sum_below _ _)) at 1. now apply Rplus_le_compat_r.
      * intros i _. f_equal. rewrite (INR_IZR_INZ (1 + i)). f_equal. lia.
    + pose proof (count_between (S (base ^ n)) (lo * N) (hi * N + 2) ltac:(nra)) as Hcount.
      rewrite Rmax_right in Hcount by nra. lra.
Qed.

Lemma below_true n low : (0 <= low)%Z -> below n low = Some true -> between 0 (t * INR base ^ n) (IZR low) = 1.
Proof.
  intros H0. unfold below. case Z.leb_spec; [|case Z.leb_spec; discriminate]. intros H _.
  destruct (known n) as (Hunit & [_ Hl] & _). apply IZR_lt in Hunit. apply IZR_le in H, H0.
  rewrite !mult_IZR, plus_IZR, size in H. pose proof (size_pos n) as Hs.
  assert (IZR low + 1 <= t * INR base ^ n) by (apply (Rmult_le_reg_r (IZR (unit n))); [lra|nra]).
  unfold between. destruct Rle_dec; [|lra]. destruct Rle_dec; [reflexivity|lra].
Qed.

Lemma undecided_last {V} (decide : nat -> Z -> option V) n : (0 < n)%nat ->
  undecided base decide n <= mean_of_words base n (fun l => open (decide n (number base 0 l))).
Proof.
  intros H0. apply (mean_le base two). intros l _ Hn. destruct (settle base decide 0 0 l) as [v|] eqn:Hc; simpl.
  - destruct (decide n (number base 0 l)); simpl; lra.
  - apply (settle_open base decide two l 0 0) in Hc; [|intros ->; simpl in Hn; lia]. simpl in Hc. rewrite Hn in Hc.
    rewrite Hc. simpl. lra.
Qed.

(** What [n] words leave open is no more than the distance of the bounds, and two words' worth. *)
Theorem lem_lazy_uniform_open n : (0 < n)%nat ->
  undecided base below n <= (IZR (most n) - IZR (least n)) / IZR (unit n) + 2 / INR base ^ n.
Proof. intros H0. eapply Rle_trans; [now apply undecided_last|now apply below_open]. Qed.
End Coin.

(** * Bounds of exp(-x) for a fraction x, in whole numbers: of exp(-x / 2^k), squared k times *)
Definition squared (one : Z) (pair : Z * Z) : Z * Z :=
  let (lo, hi) := pair in (lo * lo / one, Z.min one (hi * hi / one + 1))%Z.
Fixpoint squarings (one : Z) (k : nat) (pair : Z * Z) : Z * Z :=
  match k with O => pair | S k => squarings one k (squared one pair) end.
Definition exp_bounds (a d : Z) (k : nat) : Z * Z :=
  let root := (2 ^ Z.of_nat k)%Z in let one := (root * root)%Z in
  squarings one k (Z.max 0 (one - a * root / d - 1), Z.min one (one * (d * root) / (d * root + a) + 1))%Z.

Lemma div_bounds a b : (0 < b)%Z -> IZR (a / b) * IZR b <= IZR a < (IZR (a / b) + 1) * IZR b.
Proof.
  intros H. pose proof (Z.mul_div_le a b H) as H1. pose proof (Z.mul_succ_div_gt a b H) as H2.
  apply IZR_le in H1. apply IZR_lt in H2. rewrite mult_IZR in H1, H2. rewrite succ_IZR in H2. lra.
Qed.

(** [one] times [t] lies between the pair, whose distance is at most [gap]. *)
Definition around (one : Z) (t gap : R) (pair : Z * Z) : Prop :=
  0 <= IZR (fst pair) <= t * IZR one /\ t * IZR one <= IZR (snd pair) <= IZR one /\
  IZR (snd pair) - IZR (fst pair) <= gap.

Lemma squared_around one t gap pair :
  (0 < one)%Z -> 0 <= t <= 1 -> around one t gap pair -> around one (t * t) (2 * gap + 2) (squared one pair).
Proof.
  intros H1 Ht. destruct pair as [lo hi]. unfold around, squared. cbn [fst snd]. intros ((L0 & L1) & (U0 & U1) & G).
  pose proof (div_bounds (lo * lo) one H1) as [A1 A2]. pose proof (div_bounds (hi * hi) one H1) as [B1 B2].
  rewrite mult_IZR in A1, A2, B1, B2. assert (HL : (0 <= lo * lo / one)%Z).
  { apply Z.div_pos; [|assumption]. nia. }
  assert (Hmin : IZR (Z.min one (hi * hi / one + 1)) = Rmin (IZR one) (IZR (hi * hi / one) + 1)).
  { rewrite <- plus_IZR. unfold Rmin. destruct Rle_dec as [H|H].
    - f_equal. apply le_IZR in H. lia.
    - f_equal. apply Rnot_le_lt, lt_IZR in H. lia. }
  rewrite Hmin. apply IZR_le in HL. apply IZR_lt in H1.
  set (q := IZR (lo * lo / one)) in *. set (r := IZR (hi * hi / one)) in *.
  set (l := IZR lo) in *. set (h := IZR hi) in *. set (o := IZR one) in *. clearbody q r l h o. clear Hmin.
  assert (Q : q <= t * t * o) by (apply (Rmult_le_reg_r o); [lra|]; nra).
  assert (T : t * t * o <= r + 1) by (apply (Rmult_le_reg_r o); [lra|]; nra).
  assert (T1 : t * t * o <= o) by nra.
  assert (GG : r + 1 - q <= 2 * gap + 2).
  { apply (Rmult_le_reg_r o); [lra|]. assert (h * h - l * l <= gap * (2 * o)); [|lra].
    replace (h * h - l * l) with ((h - l) * (h + l)) by ring.
    apply Rmult_le_compat; lra. }
  unfold Rmin. destruct Rle_dec; repeat split; lra.
Qed.

Lemma squarings_around one k : forall t gap pair, (0 < one)%Z -> 0 <= t <= 1 -> around one t gap pair ->
  around one (t ^ (2 ^ k)) (2 ^ k * (gap + 2) - 2) (squarings one k pair).
Proof.
  induction k; intros t gap pair H1 Ht H; simpl squarings.
  - simpl. rewrite Rmult_1_r. replace (1 * (gap + 2) - 2) with gap by ring. assumption.
  - replace (t ^ (2 ^ S k)) with ((t * t) ^ (2 ^ k)).
    + replace (2 ^ S k * (gap + 2) - 2) with (2 ^ k * ((2 * gap + 2) + 2) - 2) by (simpl pow; ring).
      apply IHk; [assumption|nra|]. apply squared_around; assumption.
    + rewrite Nat.pow_succ_r', pow_mult. f_equal. simpl. ring.
Qed.

Lemma exp_times y n : exp (- y) ^ n = exp (- (INR n * y)).
Proof.
  induction n; [simpl; rewrite Rmult_0_l, Ropp_0, exp_0; reflexivity|].
  rewrite S_INR. simpl pow. rewrite IHn, <- exp_plus. f_equal. ring.
Qed.

Lemma exp_bounds_around a d k : (0 <= a)%Z -> (0 < d)%Z ->
  let x := IZR a / IZR d in
  around (2 ^ Z.of_nat k * 2 ^ Z.of_nat k) (exp (- x)) (2 ^ k * (x * x + 4) - 2) (exp_bounds a d k).
Proof.
  intros Ha Hd x. unfold exp_bounds. set (root := (2 ^ Z.of_nat k)%Z). set (one := (root * root)%Z).
  assert (Hroot : IZR root = 2 ^ k) by (unfold root; rewrite <- pow_IZR; reflexivity).
  assert (Hr : (0 < root)%Z) by (apply Z.pow_pos_nonneg; lia).
  assert (H1 : (0 < one)%Z) by (unfold one; nia).
  apply IZR_le in Ha as Ha'. apply IZR_lt in Hd as Hd'. apply IZR_lt in Hr as Hr'.
  assert (Hx : 0 <= x) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  set (y := x / IZR root). assert (Hy : 0 <= y) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  assert (Hxy : x = y * IZR root) by (unfold y; field; lra).
  assert (Haxd : IZR a = x * IZR d) by (unfold x; field; lra).
  replace (exp (- x)) with (exp (- y) ^ (2 ^ k)).
  2: { rewrite exp_times. f_equal. f_equal. rewrite pow_INR. change (INR 2) with 2. rewrite <- Hroot, Hxy. ring. }
  replace (x * x + 4) with ((x * x + 2) + 2) by ring.
  pose proof (exp_pos (- y)) as Ep. assert (E1 : exp (- y) <= 1).
  { rewrite <- exp_0. destruct Hy as [Hy|<-]; [left; apply exp_increasing; lra|right; f_equal; ring]. }
  assert (E2 : 1 - y <= exp (- y)).
  { destruct (Req_dec y 0) as [->|N]; [rewrite Ropp_0, exp_0; lra|]. pose proof (exp_ineq1 (- y) ltac:(lra)). lra. }
  assert (E3 : exp (- y) * (1 + y) <= 1).
  { assert (1 + y <= exp y). { destruct Hy as [Hy|<-]; [pose proof (exp_ineq1 y ltac:(lra)); lra|rewrite exp_0; lra]. }
    apply Rle_trans with (exp (- y) * exp y); [apply Rmult_le_compat_l; lra|].
    rewrite <- exp_plus, Rplus_opp_l, exp_0. lra. }
  apply squarings_around; [assumption|lra|].
  pose proof (div_bounds (a * root) d Hd) as [A1 A2].
  assert (Hp : (0 < d * root + a)%Z) by nia. pose proof (div_bounds (one * (d * root)) _ Hp) as [B1 B2].
  unfold around. cbn [fst snd].
  assert (Hmax : IZR (Z.max 0 (one - a * root / d - 1)) = Rmax 0 (IZR one - IZR (a * root / d) - 1)).
  { rewrite <- !minus_IZR. unfold Rmax. destruct Rle_dec as [H|H].
    - f_equal. apply le_IZR in H. lia.
    - f_equal. apply Rnot_le_lt, lt_IZR in H. lia. }
  assert (Hmin : IZR (Z.min one (one * (d * root) / (d * root + a) + 1))
    = Rmin (IZR one) (IZR (one * (d * root) / (d * root + a)) + 1)).
  { rewrite <- plus_IZR. unfold Rmin. destruct Rle_dec as [H|H].
    - f_equal. apply le_IZR in H. lia.
    - f_equal. apply Rnot_le_lt, lt_IZR in H. lia. }
  rewrite Hmax, Hmin. clear Hmax Hmin.
  set (q := IZR (a * root / d)) in *. set (r := IZR (one * (d * root) / (d * root + a))) in *.
  assert (Ho : IZR one = IZR root * IZR root) by (unfold one; apply mult_IZR).
  rewrite plus_IZR, !mult_IZR, Ho, Haxd, Hxy in B1. rewrite plus_IZR, !mult_IZR, Ho, Haxd, Hxy in B2.
  rewrite mult_IZR, Haxd, Hxy in A1, A2. rewrite Ho, Hxy.
  set (R0 := IZR root) in *. set (D := IZR d) in *. set (e := exp (- y)) in *.
  clearbody q r e y R0. clear Haxd Ha' Hroot Ho.
  assert (Q1 : q <= y * R0 * R0) by (apply (Rmult_le_reg_r D); [lra|]; lra).
  assert (Q2 : y * R0 * R0 < q + 1) by (apply (Rmult_lt_reg_r D); [lra|]; lra).
  assert (P : 0 < D * R0) by nra. assert (P1 : 0 < 1 + y) by lra.
  assert (B1' : r * (1 + y) <= R0 * R0) by (apply (Rmult_le_reg_r (D * R0)); [lra|]; lra).
  assert (B2' : R0 * R0 < (r + 1) * (1 + y)) by (apply (Rmult_lt_reg_r (D * R0)); [lra|]; lra).
  assert (S : 0 < R0 * R0) by nra.
  assert (M1 : R0 * R0 - y * R0 * R0 <= e * (R0 * R0)) by nra.
  assert (M2 : e * (R0 * R0) <= r + 1).
  { apply (Rmult_le_reg_r (1 + y)); [lra|].
    assert (e * (1 + y) * (R0 * R0) <= 1 * (R0 * R0)) by (apply Rmult_le_compat_r; lra). lra. }
  assert (M3 : e * (R0 * R0) <= R0 * R0) by nra.
  assert (M4 : 0 <= e * (R0 * R0)) by nra.
  assert (M5 : r <= R0 * R0 - y * R0 * R0 + y * R0 * (y * R0)).
  { apply (Rmult_le_reg_r (1 + y)); [lra|].
    assert (0 <= y * y * y * (R0 * R0)) by (repeat apply Rmult_le_pos; lra). lra. }
  assert (M6 : 0 <= y * R0 * (y * R0)) by nra.
  unfold Rmin, Rmax. repeat destruct Rle_dec; repeat split; try lra.
Qed.

(** * The coin of exp(-x), as a program on words *)
Section Heads.
Variable base : nat.
Variables a d : Z.
Variable digits : nat -> nat.
Let one j := (2 ^ Z.of_nat (digits j) * 2 ^ Z.of_nat (digits j))%Z.
Definition heads_step (j : nat) (low : Z) : option bool :=
  below base (fun j => fst (exp_bounds a d (digits j))) (fun j => snd (exp_bounds a d (digits j))) one j low.
Definition heads : list Z -> option bool := settle base heads_step 0 0.

Hypothesis two : (2 <= base)%nat.
Hypothesis a_pos : (0 <= a)%Z.
Hypothesis d_pos : (0 < d)%Z.
Let x := IZR a / IZR d.

Lemma heads_known :
  bounds (fun j => fst (exp_bounds a d (digits j))) (fun j => snd (exp_bounds a d (digits j))) one (exp (- x)).
Proof.
  intros j. pose proof (exp_bounds_around a d (digits j) a_pos d_pos) as (H1 & [H2 _] & _). fold x (one j) in H1, H2.
  repeat split; try tauto. unfold one. apply Z.mul_pos_pos; apply Z.pow_pos_nonneg; lia.
Qed.
Lemma heads_unit : 0 <= exp (- x) <= 1.
Proof.
  pose proof (exp_pos (- x)). split; [lra|]. apply IZR_le in a_pos. apply IZR_lt in d_pos.
  assert (Hx : 0 <= x) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  rewrite <- exp_0. destruct Hx as [Hx|<-]; [left; apply exp_increasing; lra|right; f_equal; ring].
Qed.

(** Heads is said of all numbers below exp(-x) and of no others. *)
Theorem thm_exact_draws_coin_right words v u :
  words_ok base words -> heads words = Some v -> cell base (length words) (number base 0 words) u ->
  if v then u < exp (- x) else exp (- x) <= u.
Proof. apply lem_lazy_uniform_right; [assumption|apply heads_known]. Qed.

Lemma heads_open n : (0 < n)%nat ->
  mean_of_words base n (fun l => open (heads_step n (number base 0 l)))
  <= (x * x + 4) / 2 ^ digits n + 2 / INR base ^ n.
Proof.
  intros Hn. eapply Rle_trans; [apply below_open with (t := exp (- x)); [assumption|apply heads_known|assumption]|].
  apply Rplus_le_compat_r.
  pose proof (exp_bounds_around a d (digits n) a_pos d_pos) as (_ & _ & H). fold x in H.
  assert (Ho : IZR (one n) = 2 ^ digits n * 2 ^ digits n) by (unfold one; rewrite mult_IZR, <- pow_IZR; reflexivity).
  rewrite Ho. assert (0 < 2 ^ digits n) by (apply pow_lt; lra). set (w := 2 ^ digits n) in *. clearbody w.
  apply (Rmult_le_reg_r (w * w)); [nra|].
  match goal with |- ?g / (w * w) * (w * w) <= _ => replace (g / (w * w) * (w * w)) with g by (field; lra) end.
  replace ((x * x + 4) / w * (w * w)) with (w * (x * x + 4)) by (field; lra). lra.
Qed.

(** Heads has probability exp(-x), and there is an answer with probability one. *)
Theorem thm_exact_draws_coin n : (0 < n)%nat ->
  let slack := (x * x + 4) / 2 ^ digits n + 2 / INR base ^ n in
  chance_of base heads_step n (fun v => v) <= exp (- x) <=
    chance_of base heads_step n (fun v => v) + undecided base heads_step n /\
  undecided base heads_step n <= slack.
Proof.
  intros Hn slack. split; [apply lem_lazy_uniform_law; [assumption|apply heads_known|apply heads_unit]|].
  eapply Rle_trans; [now apply undecided_last|now apply heads_open].
Qed.
End Heads.

(** * A geometric number: how many of exp(-x), exp(-2x), exp(-3x), ... the uniform number is below, x = a / d *)
Section Waiting.
Variable base : nat.
Variables a d : Z.
Variable digits : nat -> nat.
(** After [j] words the program looks at so many of them. *)
Variable looks : nat -> nat.
Definition below_power (k : nat) : nat -> Z -> option bool := heads_step base (Z.of_nat k * a) d digits.
Fixpoint search (fuel k j : nat) (low : Z) : option nat :=
  match fuel with
  | O => None
  | S fuel => match below_power (S k) j low with
    | Some true => search fuel (S k) j low | Some false => Some k | None => None
    end
  end.
Definition waiting_step (j : nat) (low : Z) : option nat := search (looks j) 0 j low.
Definition waiting : list Z -> option nat := settle base waiting_step 0 0.

Hypothesis two : (2 <= base)%nat.
Hypothesis a_pos : (0 <= a)%Z.
Hypothesis d_pos : (0 < d)%Z.
Let x := IZR a / IZR d.
Let ka_pos k : (0 <= Z.of_nat k * a)%Z. Proof. nia. Qed.
Let kx k : IZR (Z.of_nat k * a) / IZR d = INR k * x.
Proof. unfold x. rewrite mult_IZR, <- INR_IZR_INZ. apply IZR_lt in d_pos. field. lra. Qed.
Let x_pos : 0 <= x.
Proof. apply IZR_le in a_pos. apply IZR_lt in d_pos. apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]. Qed.

Lemma below_power_right k j low v : below_power k j low = Some v -> forall u, cell base j low u ->
  if v then u < exp (- (INR k * x)) else exp (- (INR k * x)) <= u.
Proof.
  rewrite <- kx. intros H u Hu. eapply (below_right base _ _ _ _ two);
    [apply (heads_known base); auto|exact H|exact Hu].
Qed.
Lemma powers_fall i k : (i <= k)%nat -> exp (- (INR k * x)) <= exp (- (INR i * x)).
Proof.
  intros H. apply le_INR in H. assert (Hx : INR i * x <= INR k * x)
    by (apply Rmult_le_compat_r; [exact x_pos|assumption]).
  destruct Hx as [Hx|Hx]; [left; apply exp_increasing; lra|right; f_equal; lra].
Qed.
Lemma search_spec fuel : forall k j low v, search fuel k j low = Some v ->
  (k <= v)%nat /\ below_power (S v) j low = Some false /\ (v = k \/ below_power v j low = Some true).
Proof.
  induction fuel as [|fuel IH]; simpl; intros k j low v H; [discriminate|].
  destruct (below_power (S k) j low) as [[|]|] eqn:E; [|injection H as <-; auto|discriminate].
  destruct (IH _ _ _ _ H) as (H1 & H2 & H3). split; [lia|]. split; [assumption|]. right.
  destruct H3 as [->|H3]; assumption.
Qed.

(** v is said of the numbers from exp(-(v+1)x) to exp(-vx) only. *)
Lemma waiting_step_right i j low v : (0 < i)%nat -> waiting_step j low = Some v -> forall u, cell base j low u ->
  if (i <=? v)%nat then u < exp (- (INR i * x)) else exp (- (INR i * x)) <= u.
Proof.
  intros Hi H u Hu. destruct (search_spec _ _ _ _ _ H) as (_ & Hf & Ht). case Nat.leb_spec; intros Hv.
  - destruct Ht as [->|Ht]; [lia|]. pose proof (below_power_right _ _ _ _ Ht u Hu). pose proof (powers_fall i v Hv).
    simpl in *. lra.
  - pose proof (below_power_right _ _ _ _ Hf u Hu) as Hr. pose proof (powers_fall (S v) i Hv). cbv iota in Hr. lra.
Qed.

Lemma mean_zero n : mean_of_words base n (fun _ => 0) = 0.
Proof.
  assert (H : forall m, sum_below m (fun _ => 0) = 0) by (induction m; simpl; lra).
  induction n; simpl; [reflexivity|]. rewrite (total_ext _ _ (fun _ => 0)) by (intros; apply IHn). rewrite H.
  unfold Rdiv. ring.
Qed.
Lemma mean_sum n m f : mean_of_words base n (fun l => sum_below m (fun i => f i l))
  = sum_below m (fun i => mean_of_words base n (f i)).
Proof. induction m as [|m IH]; simpl; [apply mean_zero|]. now rewrite mean_plus, IH. Qed.

Definition is_true (said : option bool) : R := match said with Some true => 1 | _ => 0 end.
Lemma search_open fuel : forall k j low, (fuel = 0%nat -> below_power k j low = Some true) ->
  open (search fuel k j low) <= sum_below fuel (fun i => open (below_power (k + S i) j low))
    + is_true (below_power (k + fuel) j low).
Proof.
  assert (Hn : forall m f, (forall i, 0 <= f i) -> 0 <= sum_below m f)
    by (induction m; simpl; intros f Hf; [lra|]; pose proof (Hf m); specialize (IHm f Hf); lra).
  assert (Ho : forall V (s : option V), 0 <= open s) by (intros V [v|]; simpl; lra).
  assert (Ht : forall s, 0 <= is_true s) by (intros [[|]|]; simpl; lra).
  induction fuel as [|fuel IH]; intros k j low H0.
  - rewrite Nat.add_0_r, (H0 eq_refl). simpl. lra.
  - change (S fuel) with (1 + fuel)%nat at 2. rewrite total_add. cbn [sum_below search].
    pose proof (Hn fuel (fun i => open (below_power (k + S (1 + i)) j low)) (fun i => Ho _ _)).
    pose proof (Ht (below_power (k + S fuel) j low)). replace (k + 1)%nat with (S k) by lia.
    destruct (below_power (S k) j low) as [[|]|] eqn:E; cbn [open]; [|lra|lra].
    specialize (IH (S k) j low (fun _ => E)). replace (k + S fuel)%nat with (S k + fuel)%nat by lia.
    rewrite (total_ext fuel (fun i => open (below_power (k + S (1 + i)) j low))
      (fun i => open (below_power (S k + S i) j low))) by (intros i _; do 2 f_equal; lia). lra.
Qed.

(** G >= k has probability exp(-kx), and there is an answer with probability one: [looks] grows, [digits] faster. *)
Theorem thm_exact_draws_waiting n : (0 < n)%nat -> (0 < looks n)%nat ->
  (forall k, (0 < k)%nat -> chance_of base waiting_step n (fun v => k <=? v)%nat <= exp (- (INR k * x)) <=
    chance_of base waiting_step n (fun v => k <=? v)%nat + undecided base waiting_step n) /\
  undecided base waiting_step n <= exp (- (INR (looks n) * x)) +
    sum_below (looks n) (fun i => (INR (S i) * x * (INR (S i) * x) + 4) / 2 ^ digits n + 2 / INR base ^ n).
Proof.
  intros Hn Hm. split.
  - intros k Hk. apply settle_law; [assumption| |intros j low v; now apply waiting_step_right].
    split; [left; apply exp_pos|]. rewrite <- exp_0. replace 0 with (- (INR 0 * x)) by (simpl; ring).
    apply powers_fall. lia.
  - eapply Rle_trans; [now apply undecided_last|].
    eapply Rle_trans; [apply (mean_le base two) with (g := fun l =>
      sum_below (looks n) (fun i => open (below_power (S i) n (number base 0 l)))
        + is_true (below_power (looks n) n (number base 0 l)))|].
    + intros l _ _. apply (search_open (looks n) 0). intros E. lia.
    + rewrite mean_plus, Rplus_comm. apply Rplus_le_compat.
      * assert (Hb : 0 < INR base ^ n) by (apply pow_lt; apply (le_INR 2) in two; simpl in two; lra).
        set (t := exp (- (INR (looks n) * x))). assert (H0 : 0 <= t) by (left; apply exp_pos).
        apply Rle_trans with ((t * INR base ^ n - 0) / INR base ^ n); [|right; field; lra].
        eapply Rle_trans; [|apply (mean_within base two n 0 (t * INR base ^ n)); nra].
        apply (mean_le base two). intros l Hl Hln. pose proof (within_pos 0 (t * INR base ^ n) (IZR (number base 0 l))).
        destruct (below_power (looks n) n (number base 0 l)) as [[|]|] eqn:E; simpl; try lra. right. symmetry.
        unfold t. rewrite <- kx. eapply (below_true base _ _ _ _ two); [apply (heads_known base); auto| |exact E].
        apply (number_low base two l 0 Hl). lia.
      * rewrite mean_sum. apply total_le. intros i _. rewrite <- kx. apply heads_open; auto.
Qed.
End Waiting.

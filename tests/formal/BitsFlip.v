(* book/mechanisms.md, "Drawing exactly": permute-and-flip as a program on fair words, as dpforest/chance/exact.py has
   it.  Each candidate tosses its own coin, and the answer is uniform among those that show heads.  Each coin reads as
   many words as it needs, and so does the choice: words of its own, or all from one stream. *)
From Coq Require Import Reals Lra Psatz List Arith ZArith Lia.
From DPForest Require Import Law Privacy Selection Scores PermuteAndFlip DrawAndFlip Bits.
Import ListNotations.
Open Scope R_scope.

(** * The law: uniform among the heads of independent coins *)
Section Heads.
Variable p : nat -> R.
(** The mean of a function of those of [l] that show heads. *)
Fixpoint mean_of_heads (l : list nat) (g : list nat -> R) : R :=
  match l with
  | [] => g []
  | s :: l => p s * mean_of_heads l (fun heads => g (s :: heads)) + (1 - p s) * mean_of_heads l g
  end.
(** The mean of f of a uniform one of them. *)
Definition mean_of_one (f : nat -> R) (heads : list nat) : R := sumf heads f / INR (length heads).

Lemma heads_ext l : forall g h, (forall heads, g heads = h heads) -> mean_of_heads l g = mean_of_heads l h.
Proof.
  induction l as [|s l IH]; simpl; intros g h H; [apply H|].
  rewrite (IH g h H), (IH _ (fun heads => h (s :: heads))) by (intros; apply H). reflexivity.
Qed.
Lemma heads_plus l : forall g h, mean_of_heads l (fun m => g m + h m) = mean_of_heads l g + mean_of_heads l h.
Proof.
  induction l as [|s l IH]; simpl; intros g h; [reflexivity|].
  rewrite (IH (fun m => g (s :: m)) (fun m => h (s :: m))), (IH g h). ring.
Qed.
Lemma heads_scale l c : forall g, mean_of_heads l (fun m => c * g m) = c * mean_of_heads l g.
Proof. induction l as [|s l IH]; simpl; intros g; [reflexivity|]. rewrite (IH g), (IH (fun m => g (s :: m))). ring. Qed.

(** With [k] further members, the mean of 1 / (k + 1 + heads) is an integral: (1-y)^k prod (1 - p_s y) from 0 to 1. *)
Fixpoint primitive (l : list nat) (k : nat) (y : R) : R :=
  match l with
  | [] => (1 - (1 - y) ^ S k) / INR (S k)
  | s :: l => (1 - p s) * primitive l k y + p s * primitive l (S k) y
  end.
Lemma primitive_deriv l : forall k y, derivable_pt_lim (primitive l k) y ((1 - y) ^ k * prodw p l y).
Proof.
  induction l as [|s l IH]; intros k y.
  - assert (HK : INR (S k) <> 0) by (apply not_0_INR; lia).
    replace ((1 - y) ^ k * prodw p [] y) with (/ INR (S k) * (0 - (INR (S k) * (1 - y) ^ pred (S k)) * (0 - 1)))
      by (simpl pred; cbn [prodw fold_right]; field; assumption).
    apply (derivable_pt_lim_ext (fun y => / INR (S k) * (1 - (1 - y) ^ S k))).
    + intros z. unfold primitive. unfold Rdiv. ring.
    + apply (derivable_pt_lim_scal (fun y => 1 - (1 - y) ^ S k)).
      apply (derivable_pt_lim_minus (fun _ => 1) (fun y => (1 - y) ^ S k)); [apply derivable_pt_lim_const|].
      apply (derivable_pt_lim_comp (fun y => 1 - y) (fun z => z ^ S k)).
      * apply (derivable_pt_lim_minus (fun _ => 1) (fun y => y));
          [apply derivable_pt_lim_const|apply derivable_pt_lim_id].
      * apply derivable_pt_lim_pow.
  - simpl prodw.
    replace ((1 - y) ^ k * ((1 - p s * y) * prodw p l y))
      with ((1 - p s) * ((1 - y) ^ k * prodw p l y) + p s * ((1 - y) ^ S k * prodw p l y)) by (simpl; ring).
    apply (derivable_pt_lim_plus (fun y => (1 - p s) * primitive l k y) (fun y => p s * primitive l (S k) y)).
    + apply (derivable_pt_lim_scal (primitive l k)), IH.
    + apply (derivable_pt_lim_scal (primitive l (S k))), IH.
Qed.
Lemma primitive_0 l : forall k, primitive l k 0 = 0.
Proof.
  induction l as [|s l IH]; intros k; simpl primitive.
  - rewrite Rminus_0_r, pow1. unfold Rdiv. ring.
  - rewrite !IH. ring.
Qed.
Lemma primitive_1 l : forall k, primitive l k 1 = mean_of_heads l (fun heads => / INR (S (k + length heads))).
Proof.
  induction l as [|s l IH]; intros k.
  - cbn [primitive mean_of_heads length]. rewrite Nat.add_0_r. unfold Rminus at 2. rewrite Rplus_opp_r, pow_i by lia.
    unfold Rdiv. ring.
  - cbn [primitive mean_of_heads]. rewrite !IH. rewrite Rplus_comm. f_equal. f_equal. apply heads_ext. intros m.
    simpl length. do 2 f_equal. lia.
Qed.
Lemma primitive_integral l : primitive l 0 1 = integral p l 1.
Proof.
  enough (H : primitive l 0 1 - integral p l 1 = primitive l 0 0 - integral p l 0).
  { rewrite primitive_0, integral_0 in H. lra. }
  apply (constant (fun y => primitive l 0 y - integral p l y)); [|lra]. intros z.
  replace 0 with ((1 - z) ^ 0 * prodw p l z - prodw p l z) by (simpl; ring).
  apply (derivable_pt_lim_minus (primitive l 0) (integral p l)); [apply primitive_deriv|apply integral_deriv].
Qed.

Lemma heads_of_one f l : NoDup l -> forall k,
  mean_of_heads l (fun heads => sumf heads f * / INR (k + length heads))
  = sumf l (fun r => f r * (p r * primitive (del r l) k 1)).
Proof.
  induction 1 as [|s l Hs Hl IH]; intros k.
  - simpl. ring.
  - cbn [mean_of_heads]. rewrite IH.
    rewrite (heads_ext l _ (fun m => f s * / INR (S (k + length m)) + sumf m f * / INR (S k + length m))).
    2: { intros m. cbn [sumf fold_right length]. fold (sumf m f).
         replace (k + S (length m))%nat with (S (k + length m)) by lia.
         change (S k + length m)%nat with (S (k + length m)). ring. }
    rewrite heads_plus, heads_scale, <- primitive_1, IH. cbn [sumf fold_right].
    change (fold_right (fun c s => ?g c + s) 0 l) with (sumf l g).
    assert (Hss : del s (s :: l) = l) by (simpl; destruct (Nat.eq_dec s s); [now apply notin_remove|easy]).
    rewrite Hss.
    match goal with |- _ = _ + ?rest =>
      change rest with (sumf l (fun r => f r * (p r * primitive (del r (s :: l)) k 1))) end.
    rewrite (sumf_ext l (fun r => f r * (p r * primitive (del r (s :: l)) k 1))
      (fun r => p s * (f r * (p r * primitive (del r l) (S k) 1))
        + (1 - p s) * (f r * (p r * primitive (del r l) k 1)))).
    + rewrite sumf_plus, !sumf_mult. ring.
    + intros r Hr. simpl remove. destruct (Nat.eq_dec r s); [congruence|]. simpl. ring.
Qed.

(** A uniform one of the heads has the law of drawing and flipping. *)
Lemma heads_law f l : NoDup l -> mean_of_heads l (mean_of_one f) = F p f l 1.
Proof.
  intros Hl. unfold F. rewrite (sumf_ext l _ (fun r => f r * (p r * primitive (del r l) 0 1)))
    by (intros; now rewrite primitive_integral).
  rewrite <- (heads_of_one f l Hl 0). reflexivity.
Qed.
End Heads.

Lemma draw_and_flip_law p l best f : (forall r, In r l -> 0 <= p r <= 1) -> NoDup l -> In best l -> p best = 1 ->
  E (draw_and_flip (length l) p l) f = F p f l 1.
Proof.
  intros Hp Hd Hin Hb. replace p with (fun r => 1 * p r) at 1.
  2: { apply FunctionalExtensionality.functional_extensionality. intros r. ring. }
  rewrite (program_law p f 1 ltac:(lra) (length l) l Hd eq_refl).
  - rewrite (prodw_del p l best 1 Hd Hin), Hb. ring.
  - intros r Hr. rewrite Rmult_1_l. now apply Hp.
Qed.

(** * The program *)
Section Flip.
Variable base : nat.
Let b := Z.of_nat base.
(** The coin of candidate [s] shows heads with probability exp(-a s / d s). *)
Variables a d : nat -> Z.
Variable digits : nat -> nat.

(** Of the best candidate the coin shows heads whatever the words. *)
Definition tossed (s : nat) (words : list Z) : option bool :=
  if (a s =? 0)%Z then Some true else heads base (a s) (d s) digits words.
(** Those candidates of [l] that show heads. *)
Fixpoint showing (l : list nat) (rows : list (list Z)) : option (list nat) :=
  match l, rows with
  | [], _ => Some []
  | _, [] => None
  | s :: l, words :: rows => match tossed s words, showing l rows with
    | Some true, Some kept => Some (s :: kept) | Some false, Some kept => Some kept | _, _ => None
    end
  end.
(** A uniform number below [k]: a word modulo [k], where words at the top are passed over. *)
Fixpoint chosen (k : nat) (words : list Z) : option nat :=
  match words with
  | [] => None
  | w :: rest => if (w <? b - b mod Z.of_nat k)%Z then Some (Z.to_nat (w mod Z.of_nat k)) else chosen k rest
  end.
Definition flipped (l : list nat) (rows : list (list Z)) (words : list Z) : option nat :=
  match showing l rows with
  | Some kept => match chosen (length kept) words with Some t => nth_error kept t | None => None end
  | None => None
  end.

(** ** On [n] fair words for each coin and for the choice *)
Fixpoint mean_of_rows (n m : nat) (f : list (list Z) -> R) : R :=
  match m with
  | O => f []
  | S m => mean_of_words base n (fun words => mean_of_rows n m (fun rows => f (words :: rows)))
  end.
Definition mean_of_flips (n : nat) (l : list nat) (f : option nat -> R) : R :=
  mean_of_rows n (length l) (fun rows => mean_of_words base n (fun words => f (flipped l rows words))).

Hypothesis two : (2 <= base)%nat.
Let b_pos : 2 <= INR base. Proof. apply (le_INR 2). assumption. Qed.
Let x s := IZR (a s) / IZR (d s).
Let accept s := exp (- x s).

Lemma sum_scale_below m c f : sum_below m (fun i => c * f i) = c * sum_below m f.
Proof. induction m; simpl; [ring|]. rewrite IHm. ring. Qed.
Lemma sum_pos m f : (forall i, 0 <= f i) -> 0 <= sum_below m f.
Proof. intros H. induction m; simpl; [lra|]. specialize (H m). lra. Qed.
Lemma words_ext n : forall f g, (forall l, f l = g l) -> mean_of_words base n f = mean_of_words base n g.
Proof.
  induction n; simpl; intros f g H; [apply H|]. f_equal. apply total_ext. intros i _. apply IHn. intros; apply H.
Qed.
Lemma words_scale n c : forall f, mean_of_words base n (fun l => c * f l) = c * mean_of_words base n f.
Proof.
  induction n; simpl; intros f; [reflexivity|].
  rewrite (total_ext base _ (fun w => c * mean_of_words base n (fun l => f (Z.of_nat w :: l))))
    by (intros i _; apply (IHn (fun l => f (Z.of_nat i :: l)))).
  rewrite sum_scale_below. unfold Rdiv. ring.
Qed.
Lemma words_const n c : mean_of_words base n (fun _ => c) = c.
Proof.
  rewrite (words_ext n _ (fun _ => c * 1)) by (intros; ring). rewrite (words_scale n c), mean_one by assumption. ring.
Qed.
Lemma words_le n f g : (forall l, f l <= g l) -> mean_of_words base n f <= mean_of_words base n g.
Proof. intros H. apply (mean_le base two). auto. Qed.
Lemma words_pos n f : (forall l, 0 <= f l) -> 0 <= mean_of_words base n f.
Proof. intros H. rewrite <- (mean_zero base n). now apply words_le. Qed.

Lemma rows_le n m : forall f g, (forall rows, f rows <= g rows) -> mean_of_rows n m f <= mean_of_rows n m g.
Proof. induction m; simpl; intros f g H; [apply H|]. apply words_le. intros l. apply IHm. intros; apply H. Qed.
Lemma rows_ext n m : forall f g, (forall rows, f rows = g rows) -> mean_of_rows n m f = mean_of_rows n m g.
Proof. intros f g H. apply Rle_antisym; apply rows_le; intros; rewrite H; lra. Qed.
Lemma rows_plus n m : forall f g,
  mean_of_rows n m (fun rows => f rows + g rows) = mean_of_rows n m f + mean_of_rows n m g.
Proof.
  induction m; simpl; intros f g; [reflexivity|]. rewrite <- mean_plus. apply words_ext. intros l.
  apply (IHm (fun rows => f (l :: rows)) (fun rows => g (l :: rows))).
Qed.
Lemma rows_const n m c : mean_of_rows n m (fun _ => c) = c.
Proof. induction m; simpl; [reflexivity|]. rewrite IHm. apply words_const. Qed.

(** ** The choice *)
Section Choice.
Variable k : nat.
Hypothesis k_pos : (0 < k)%nat.
Let q := (base / k)%nat.
Let r := (base mod k)%nat.
Let parts : base = (q * k + r)%nat. Proof. unfold q, r. rewrite Nat.mul_comm. apply Nat.div_mod. lia. Qed.

(** Of the words below [b] each remainder has [q] below the limit; the [r] others are passed over. *)
Lemma sum_of_words (f g : Z -> R) :
  (forall w, f w = if (w <? b - b mod Z.of_nat k)%Z then g (w mod Z.of_nat k)%Z else f b) ->
  sum_below base (fun w => f (Z.of_nat w)) = INR q * sum_below k (fun t => g (Z.of_nat t)) + INR r * f b.
Proof.
  intros H. assert (Hlim : (b - b mod Z.of_nat k)%Z = Z.of_nat (q * k)).
  { unfold b. rewrite <- Nat2Z.inj_mod. fold r. lia. }
  rewrite Hlim in H. rewrite parts at 1. rewrite total_add, total_mul. f_equal.
  - rewrite (total_ext q _ (fun _ => sum_below k (fun t => g (Z.of_nat t)) * 1)).
    + rewrite sum_scale_below. rewrite Rmult_comm. f_equal. clear. induction q as [|m IH]; [reflexivity|].
      rewrite S_INR. simpl. rewrite IH. reflexivity.
    + intros e He. rewrite Rmult_1_r. apply total_ext. intros t Ht. rewrite H.
      replace (Z.of_nat (e * k + t) <? Z.of_nat (q * k))%Z with true.
      * f_equal. rewrite Nat2Z.inj_add, Nat2Z.inj_mul, Z.add_comm, Z_mod_plus_full. apply Z.mod_small. lia.
      * symmetry. apply Z.ltb_lt. nia.
  - rewrite (total_ext r _ (fun _ => f b * 1)).
    + rewrite sum_scale_below. rewrite Rmult_comm. f_equal. clear. induction r as [|m IH]; [reflexivity|].
      rewrite S_INR. simpl. rewrite IH. reflexivity.
    + intros e He. rewrite Rmult_1_r, H.
      replace (Z.of_nat (q * k + e) <? Z.of_nat (q * k))%Z with false; [reflexivity|].
      symmetry. apply Z.ltb_ge. lia.
Qed.
End Choice.

Definition of_answer {V} (f : V -> R) (said : option V) : R := match said with Some v => f v | None => 0 end.

Lemma chosen_words k n f : (0 < k)%nat ->
  mean_of_words base (S n) (fun l => f (chosen k l))
  = (INR (base / k) * sum_below k (fun t => f (Some t))
    + INR (base mod k) * mean_of_words base n (fun l => f (chosen k l))) / INR base.
Proof.
  intros Hk. simpl mean_of_words. f_equal.
  set (step := fun w : Z => mean_of_words base n (fun l => f (chosen k (w :: l)))).
  assert (Hb : step b = mean_of_words base n (fun l => f (chosen k l))).
  { apply words_ext. intros l. unfold step. cbn [chosen].
    destruct (Z.ltb_spec b (b - b mod Z.of_nat k)); [|reflexivity].
    pose proof (Z.mod_pos_bound b (Z.of_nat k) ltac:(lia)). lia. }
  rewrite <- Hb. change (sum_below base (fun w => step (Z.of_nat w))
    = INR (base / k) * sum_below k (fun t => f (Some t)) + INR (base mod k) * step b).
  rewrite (sum_of_words k Hk step (fun t => f (Some (Z.to_nat t)))).
  - f_equal. f_equal. apply total_ext. intros t _. now rewrite Nat2Z.id.
  - intros w. rewrite Hb. unfold step. cbn [chosen]. destruct (Z.ltb_spec w (b - b mod Z.of_nat k)) as [H|H].
    + apply words_const.
    + reflexivity.
Qed.

Lemma base_parts k : (0 < k)%nat -> INR base = INR k * INR (base / k) + INR (base mod k).
Proof. intros H. rewrite <- mult_INR, <- plus_INR. f_equal. apply Nat.div_mod. lia. Qed.

(** No number below [k] is more likely than 1 / k. *)
Lemma chosen_law k f : (forall t, 0 <= f t) -> forall n,
  mean_of_words base n (fun l => of_answer f (chosen k l)) <= sum_below k f / INR k.
Proof.
  intros Hf. assert (HS : forall m, 0 <= sum_below m f) by (intros; now apply sum_pos).
  destruct k as [|k'].
  { intros n. simpl. unfold Rdiv. rewrite Rmult_0_l. apply Rle_trans with (mean_of_words base n (fun _ => 0)).
    - apply (mean_le base two). intros l Hl _. assert (H : chosen 0 l = None); [|rewrite H; simpl; lra].
      induction Hl as [|w l Hw _ IH]; [reflexivity|]. cbn [chosen]. rewrite Zmod_0_r, Z.sub_diag.
      destruct (Z.ltb_spec w 0); [lia|assumption].
    - rewrite mean_zero. lra. }
  set (k := S k') in *. assert (Hk : (0 < k)%nat) by (unfold k; lia). clearbody k.
  assert (HK : 0 < INR k) by (apply lt_0_INR; lia). specialize (HS k).
  assert (H0 : 0 <= sum_below k f / INR k) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  induction n as [|n IH]; [exact H0|]. rewrite (chosen_words k n (of_answer f) Hk).
  change (sum_below k (fun t => of_answer f (Some t))) with (sum_below k f).
  pose proof (base_parts k Hk) as HB. pose proof b_pos. pose proof (pos_INR (base mod k)).
  apply Rmult_le_reg_r with (INR base); [lra|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  apply Rle_trans with (INR (base / k) * sum_below k f + INR (base mod k) * (sum_below k f / INR k)).
  - apply Rplus_le_compat_l, Rmult_le_compat_l; assumption.
  - right. rewrite HB. field. lra.
Qed.

(** A word is passed over with a probability below one half. *)
Lemma chosen_open k : (0 < k <= base)%nat -> forall n,
  mean_of_words base n (fun l => open (chosen k l)) <= (1 / 2) ^ n.
Proof.
  intros [Hk Hkb]. induction n as [|n IH]; [simpl; lra|]. rewrite (chosen_words k n open Hk).
  assert (HZ : forall m, sum_below m (fun t => open (Some t)) = 0) 
    by (induction m as [|m IHm]; cbn [sum_below]; [reflexivity|rewrite IHm; simpl; ring]).
  rewrite HZ, Rmult_0_r, Rplus_0_l. pose proof b_pos. pose proof (pos_INR (base mod k)) as Hr.
  assert (Hhalf : INR (base mod k) <= INR base * (1 / 2)).
  { enough (H1 : (2 * (base mod k) <= base)%nat) by (apply le_INR in H1; rewrite mult_INR in H1; simpl in H1; lra).
    pose proof (Nat.div_mod base k ltac:(lia)). pose proof (Nat.mod_upper_bound base k ltac:(lia)).
    assert (1 <= base / k)%nat by (apply Nat.div_le_lower_bound; lia). nia. }
  assert (HI : 0 <= mean_of_words base n (fun l => open (chosen k l)))
    by (apply words_pos; intros l; destruct (chosen k l); simpl; lra).
  apply Rmult_le_reg_r with (INR base); [lra|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  simpl pow. apply Rle_trans with (INR base * (1 / 2) * (1 / 2) ^ n); [|lra].
  apply Rmult_le_compat; lra.
Qed.

(** ** One coin *)
Section Coin.
Variable s : nat.
Hypothesis a_pos : (0 <= a s)%Z.
Hypothesis d_pos : (0 < d s)%Z.

Lemma tossed_right words v u : words_ok base words -> tossed s words = Some v ->
  cell base (length words) (number base 0 words) u -> if v then u < accept s else accept s <= u.
Proof.
  intros Hw. unfold tossed. case Z.eqb_spec; intros Ha H Hu.
  - injection H as <-. unfold accept, x. rewrite Ha. unfold Rdiv. rewrite Rmult_0_l, Ropp_0, exp_0.
    assert (H0 : cell base 0 0 u) by (eapply (cell_prefix base two words 0 0 u); [assumption|exact Hu]).
    unfold cell in H0. simpl in H0. lra.
  - eapply (thm_exact_draws_coin_right base (a s) (d s) digits); eassumption.
Qed.

Definition slack (n : nat) : R := (x s * x s + 4) / 2 ^ digits n + 2 / INR base ^ n.
Lemma slack_pos n : 0 <= slack n.
Proof.
  pose proof b_pos. assert (0 < 2 ^ digits n) by (apply pow_lt; lra). assert (0 < INR base ^ n) by (apply pow_lt; lra).
  unfold slack. apply Rplus_le_le_0_compat; (apply Rmult_le_pos; [nra|left; now apply Rinv_0_lt_compat]).
Qed.
Lemma accept_unit : 0 <= accept s <= 1.
Proof. now apply heads_unit. Qed.

Lemma tossed_law n : (0 < n)%nat ->
  mean_of_words base n (fun l => answered (fun v => v) (tossed s l)) <= accept s /\
  mean_of_words base n (fun l => answered negb (tossed s l)) <= 1 - accept s /\
  mean_of_words base n (fun l => open (tossed s l)) <= slack n.
Proof.
  intros Hn. pose proof (slack_pos n). unfold tossed. case Z.eqb_spec; intros Ha.
  - assert (H1 : accept s = 1) by (unfold accept, x; rewrite Ha; unfold Rdiv; rewrite Rmult_0_l, Ropp_0; apply exp_0).
    simpl. rewrite !words_const, H1. lra.
  - destruct (thm_exact_draws_coin base (a s) (d s) digits two a_pos d_pos n Hn) as [[H1 H2] H3].
    pose proof (law_splits base (heads_step base (a s) (d s) digits) two n (fun v => v)) as H4.
    fold (x s) in H1, H2, H3. fold (accept s) in H1, H2. fold (slack n) in H3. unfold chance_of, undecided in *.
    change (fun v => negb v) with negb in H4. unfold heads. lra.
Qed.
End Coin.

(** ** All coins, and the choice *)
Definition exponents_ok := Forall (fun s => (0 <= a s)%Z /\ (0 < d s)%Z).

Lemma showing_law n l g : (0 < n)%nat -> exponents_ok l -> (forall kept, 0 <= g kept) ->
  mean_of_rows n (length l) (fun rows => of_answer g (showing l rows)) <= mean_of_heads accept l g.
Proof.
  intros Hn Hl. revert g. induction Hl as [|s l [Ha Hd] Hl IH]; intros g Hg; cbn [length mean_of_rows mean_of_heads].
  - simpl. lra.
  - set (A := mean_of_rows n (length l) (fun rows => of_answer (fun kept => g (s :: kept)) (showing l rows))).
    set (B := mean_of_rows n (length l) (fun rows => of_answer g (showing l rows))).
    assert (HP : forall h, (forall kept, 0 <= h kept) ->
      0 <= mean_of_rows n (length l) (fun rows => of_answer h (showing l rows))).
    { intros h Hh. rewrite <- (rows_const n (length l) 0). apply rows_le. intros rows.
      destruct (showing l rows); simpl; [apply Hh|lra]. }
    apply Rle_trans with (mean_of_words base n
      (fun w => A * answered (fun v => v) (tossed s w) + B * answered negb (tossed s w))).
    + apply words_le. intros w. unfold A, B. cbn [showing]. destruct (tossed s w) as [[|]|]; cbn [answered negb].
      * rewrite Rmult_1_r, Rmult_0_r, Rplus_0_r. apply rows_le. intros rows. destruct (showing l rows); simpl; lra.
      * rewrite Rmult_1_r, Rmult_0_r, Rplus_0_l. apply rows_le. intros rows. destruct (showing l rows); simpl; lra.
      * rewrite !Rmult_0_r, Rplus_0_l. simpl. rewrite rows_const. lra.
    + rewrite mean_plus, !words_scale. destruct (tossed_law s Ha Hd n Hn) as (H1 & H2 & _).
      pose proof (accept_unit s Ha Hd). specialize (HP _ Hg) as HB. fold B in HB.
      assert (HA : 0 <= A) by (apply (HP (fun kept => g (s :: kept))); intros; apply Hg).
      assert (IA : A <= mean_of_heads accept l (fun kept => g (s :: kept))) by (apply IH; intros; apply Hg).
      assert (IB : B <= mean_of_heads accept l g) by now apply IH.
      rewrite (Rmult_comm A), (Rmult_comm B). apply Rplus_le_compat; apply Rmult_le_compat; try assumption; try lra;
        apply words_pos; intros w; destruct (tossed s w) as [[|]|]; simpl; lra.
Qed.

Lemma showing_open n l : (0 < n)%nat -> exponents_ok l ->
  mean_of_rows n (length l) (fun rows => open (showing l rows)) <= sumf l (fun s => slack s n).
Proof.
  intros Hn Hl. induction Hl as [|s l [Ha Hd] Hl IH]; cbn [length mean_of_rows sumf fold_right]; [simpl; lra|].
  fold (sumf l (fun s => slack s n)). destruct (tossed_law s Ha Hd n Hn) as (_ & _ & H3).
  set (A := mean_of_rows n (length l) (fun rows => open (showing l rows))) in *.
  apply Rle_trans with (mean_of_words base n (fun w => open (tossed s w) + A)).
  - apply words_le. intros w. unfold A. rewrite <- (rows_const n (length l) (open (tossed s w))), <- rows_plus.
    apply rows_le. intros rows. cbn [showing]. destruct (tossed s w) as [[|]|], (showing l rows); simpl; lra.
  - rewrite mean_plus, words_const. lra.
Qed.

Lemma chosen_below k words t : (0 < k)%nat -> chosen k words = Some t -> (t < k)%nat.
Proof.
  intros Hk. induction words as [|w rest IH]; [discriminate|]. cbn [chosen].
  destruct (w <? b - b mod Z.of_nat k)%Z; [|assumption]. intros [= <-].
  pose proof (Z.mod_pos_bound w (Z.of_nat k) ltac:(lia)). lia.
Qed.
Lemma sum_of_places f kept : sum_below (length kept) (fun t => f (nth t kept 0%nat)) = sumf kept f.
Proof.
  induction kept as [|s kept IH]; [reflexivity|]. cbn [length sumf fold_right]. fold (sumf kept f). rewrite <- IH.
  change (S (length kept)) with (1 + length kept)%nat. rewrite total_add. cbn [sum_below Nat.add]. rewrite Rplus_0_l.
  reflexivity.
Qed.

Lemma flipped_law n l f : (0 < n)%nat -> exponents_ok l -> NoDup l -> (forall r, 0 <= f r) ->
  mean_of_flips n l (of_answer f) <= F accept f l 1.
Proof.
  intros Hn Hl Hd Hf. rewrite <- heads_law by assumption. unfold mean_of_flips.
  assert (Hone : forall kept, 0 <= mean_of_one f kept).
  { intros kept. unfold mean_of_one. rewrite <- sum_of_places. destruct kept as [|s kept].
    - simpl. unfold Rdiv. lra.
    - apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat, lt_0_INR; simpl; lia].
      apply sum_pos. intros; apply Hf. }
  eapply Rle_trans; [|apply (showing_law n l (mean_of_one f) Hn Hl Hone)]. apply rows_le. intros rows. unfold flipped.
  destruct (showing l rows) as [kept|]; cbn [of_answer]; [|rewrite words_const; apply Rle_refl].
  unfold mean_of_one. rewrite <- sum_of_places.
  eapply Rle_trans; [|apply (chosen_law (length kept) (fun t => f (nth t kept 0%nat))); intros; apply Hf].
  apply words_le. intros words. destruct (chosen (length kept) words) as [t|]; simpl; [|lra].
  destruct (nth_error kept t) as [r|] eqn:E; simpl; [|apply Hf]. rewrite (nth_error_nth kept t 0%nat E). lra.
Qed.

Lemma best_shows best l : a best = 0%Z -> In best l ->
  forall rows kept, showing l rows = Some kept -> In best kept.
Proof.
  intros Hb. induction l as [|s l IH]; [easy|]. intros Hin [|w rows] kept; cbn [showing]; [discriminate|].
  destruct Hin as [->|Hin].
  - unfold tossed. rewrite Hb. simpl. destruct (showing l rows); [|discriminate]. intros [= <-]. now left.
  - destruct (tossed s w) as [[|]|], (showing l rows) eqn:E; try discriminate; intros [= <-]; [right|]; eapply IH;
      eassumption.
Qed.
Lemma showing_within l : forall rows kept, showing l rows = Some kept -> (length kept <= length l)%nat.
Proof.
  induction l as [|s l IH]; intros rows kept; [intros [= <-]; auto|]. destruct rows as [|w rows]; [discriminate|].
  cbn [showing]. destruct (tossed s w) as [[|]|], (showing l rows) eqn:E; try discriminate; intros [= <-];
    specialize (IH _ _ E); simpl; lia.
Qed.

Lemma flipped_open n l best : (0 < n)%nat -> exponents_ok l -> In best l -> a best = 0%Z -> (length l <= base)%nat ->
  mean_of_flips n l open <= sumf l (fun s => slack s n) + (1 / 2) ^ n.
Proof.
  intros Hn Hl Hin Hb Hsize. unfold mean_of_flips.
  eapply Rle_trans; [|apply Rplus_le_compat_r, showing_open; assumption].
  rewrite <- (rows_const n (length l) ((1 / 2) ^ n)), <- rows_plus. apply rows_le. intros rows. unfold flipped.
  assert (H2 : 0 <= (1 / 2) ^ n) by (apply pow_le; lra).
  destruct (showing l rows) as [kept|] eqn:E; cbn [open]; [|rewrite words_const; lra].
  pose proof (best_shows best l Hb Hin rows kept E) as Hk. pose proof (showing_within l rows kept E).
  assert (0 < length kept)%nat by (destruct kept; [easy|simpl; lia]).
  rewrite Rplus_0_l. eapply Rle_trans; [|apply (chosen_open (length kept)); lia]. apply words_le. intros words.
  destruct (chosen (length kept) words) as [t|] eqn:Et; simpl; [|lra].
  apply chosen_below in Et; [|assumption]. apply nth_error_Some in Et. destruct (nth_error kept t); simpl; [lra|easy].
Qed.

(** ** Every answer is right: the choice takes one of those whose numbers lie below their exp(-x) *)
Fixpoint winners (l : list nat) (us : list R) : list nat :=
  match l, us with
  | s :: l, u :: us => if Rlt_dec u (accept s) then s :: winners l us else winners l us
  | _, _ => []
  end.
Definition begins (words : list Z) (u : R) : Prop :=
  words_ok base words /\ cell base (length words) (number base 0 words) u.

Lemma showing_right l : exponents_ok l -> forall rows us kept,
  Forall2 begins rows us -> showing l rows = Some kept -> kept = winners l us.
Proof.
  induction 1 as [|s l [Ha Hd] Hl IH]; intros rows us kept Hr; [now intros [= <-]|].
  destruct Hr as [|w u rows us [Hw Hu] Hr]; [discriminate|]. cbn [showing winners].
  destruct (tossed s w) as [v|] eqn:E; [|discriminate]. pose proof (tossed_right s Ha Hd w v u Hw E Hu) as Hv.
  destruct v, (showing l rows) as [kept'|] eqn:E'; try discriminate; intros [= <-];
    rewrite <- (IH rows us kept' Hr E'); destruct Rlt_dec; try reflexivity; lra.
Qed.

Theorem thm_exact_draws_flip_right l rows us words r :
  exponents_ok l -> Forall2 begins rows us -> flipped l rows words = Some r ->
  In r (winners l us) /\ exists t, chosen (length (winners l us)) words = Some t /\ nth_error (winners l us) t = Some r.
Proof.
  intros Hl Hr. unfold flipped. destruct (showing l rows) as [kept|] eqn:E; [|discriminate].
  rewrite <- (showing_right l Hl rows us kept Hr E). destruct (chosen (length kept) words) as [t|]; [|discriminate].
  intros H. split; [now apply nth_error_In with t|]. now exists t.
Qed.

(** ** The law is that of drawing and flipping, and there is an answer with probability one *)
Definition indicator (p : nat -> bool) (r : nat) : R := if p r then 1 else 0.
Lemma coins_law l best f : exponents_ok l -> NoDup l -> In best l -> a best = 0%Z ->
  E (draw_and_flip (length l) accept l) f = F accept f l 1.
Proof.
  intros Hl Hd Hin Hb. apply draw_and_flip_law with best; [|assumption..|].
  - intros r Hr. unfold exponents_ok in Hl. rewrite Forall_forall in Hl. apply Hl in Hr. now apply accept_unit.
  - unfold accept, x. rewrite Hb. unfold Rdiv. rewrite Rmult_0_l, Ropp_0. apply exp_0.
Qed.

Lemma flips_split n l p :
  mean_of_flips n l (answered p) + mean_of_flips n l (answered (fun r => negb (p r))) + mean_of_flips n l open = 1.
Proof.
  unfold mean_of_flips. rewrite <- !rows_plus, <- (rows_const n (length l) 1). apply rows_ext. intros rows.
  rewrite <- !mean_plus, <- (words_const n 1). apply words_ext. intros words.
  destruct (flipped l rows words) as [r|]; simpl; [destruct (p r); simpl|]; ring.
Qed.

Theorem thm_exact_draws_flip n l best p :
  (0 < n)%nat -> exponents_ok l -> NoDup l -> (length l <= base)%nat -> In best l -> a best = 0%Z ->
  mean_of_flips n l (answered p) <= E (draw_and_flip (length l) accept l) (indicator p) <=
    mean_of_flips n l (answered p) + mean_of_flips n l open /\
  mean_of_flips n l open <= sumf l (fun s => (x s * x s + 4) / 2 ^ digits n + 2 / INR base ^ n) + (1 / 2) ^ n.
Proof.
  intros Hn Hl Hd Hsize Hin Hb. split; [|now apply flipped_open with best].
  assert (HL : forall p, mean_of_flips n l (answered p) <= E (draw_and_flip (length l) accept l) (indicator p)).
  { intros p'. rewrite (coins_law l best) by assumption. apply (flipped_law n l (indicator p')); try assumption.
    intros r. unfold indicator. destruct (p' r); lra. }
  split; [apply HL|]. pose proof (HL (fun r => negb (p r))) as HN. pose proof (flips_split n l p) as HS.
  assert (H1 : E (draw_and_flip (length l) accept l) (indicator p)
    + E (draw_and_flip (length l) accept l) (indicator (fun r => negb (p r))) = 1).
  { rewrite <- (E_plus _ 1); [|intros r; unfold indicator; destruct (p r); simpl; lra..].
    rewrite (E_ext _ _ (fun _ => 1)); [apply E_one|]. intros r. unfold indicator. destruct (p r); simpl; ring. }
  lra.
Qed.

(** ** From one stream: a first word for each coin and for the choice, and further ones where they are asked for *)
Inductive reader (V : Type) : Type := Done (said : option V) | Read (next : Z -> reader V).
Arguments Done {V}. Arguments Read {V}.
Fixpoint read_from {V} (r : reader V) (stream : list Z) : option V :=
  match r, stream with
  | Done said, _ => said
  | Read _, [] => None
  | Read next, w :: rest => read_from (next w) rest
  end.

(** What reads [m] words, and goes on with them. *)
Fixpoint deal {V} (m : nat) (go_on : list Z -> reader V) : reader V :=
  match m with O => go_on [] | S m => Read (fun w => deal m (fun firsts => go_on (w :: firsts))) end.
(** What reads at most [n] words more for a coin of which [j] words are those of [low]. *)
Fixpoint more {V} (s n j : nat) (low : Z) (go_on : option bool -> reader V) : reader V :=
  match n with
  | O => go_on None
  | S n => Read (fun w => let low := (low * b + w)%Z in
      match heads_step base (a s) (d s) digits (S j) low with
      | Some v => go_on (Some v) | None => more s n (S j) low go_on
      end)
  end.
Definition coin_from {V} (s n : nat) (w : Z) (go_on : option bool -> reader V) : reader V :=
  if (a s =? 0)%Z then go_on (Some true)
  else match heads_step base (a s) (d s) digits 1 w with
    | Some v => go_on (Some v) | None => more s (pred n) 1 w go_on
    end.
Fixpoint coins_from {V} (n : nat) (l : list nat) (firsts : list Z) (go_on : option (list nat) -> reader V) : reader V :=
  match l, firsts with
  | [], _ => go_on (Some [])
  | _, [] => go_on None
  | s :: l, w :: firsts => coin_from s n w (fun v => coins_from n l firsts (fun shown => go_on
      match v, shown with
      | Some true, Some kept => Some (s :: kept) | Some false, Some kept => Some kept | _, _ => None
      end))
  end.
Fixpoint choice_more (n : nat) (kept : list nat) : reader nat :=
  match n with
  | O => Done None
  | S n => Read (fun w => match chosen (length kept) [w] with
      | Some t => Done (nth_error kept t) | None => choice_more n kept
      end)
  end.
Definition choice_from (n : nat) (w : Z) (shown : option (list nat)) : reader nat :=
  match shown with
  | None => Done None
  | Some kept => match chosen (length kept) [w] with
      | Some t => Done (nth_error kept t) | None => choice_more (pred n) kept
      end
  end.
Definition streamed (n : nat) (l : list nat) : reader nat :=
  deal (length l) (fun firsts => Read (fun w => coins_from n l firsts (choice_from n w))).

Fixpoint mean_of_reader {V} (r : reader V) (f : option V -> R) : R :=
  match r with
  | Done said => f said
  | Read next => sum_below base (fun w => mean_of_reader (next (Z.of_nat w)) f) / INR base
  end.
Fixpoint within {V} (n : nat) (r : reader V) : Prop :=
  match r, n with Done _, _ => True | Read _, O => False | Read next, S n => forall w, within n (next w) end.

(** On as many words as it may read, a reader's law is that of its steps. *)
Lemma mean_of_read {V} (r : reader V) f : forall n, within n r ->
  mean_of_words base n (fun stream => f (read_from r stream)) = mean_of_reader r f.
Proof.
  induction r as [said|next IH]; intros n Hn; [|destruct n as [|n]; [easy|]].
  - transitivity (mean_of_words base n (fun _ => f said)); [apply words_ext; now intros []|apply words_const].
  - simpl. f_equal. apply total_ext. intros w _. apply IH, Hn.
Qed.
Lemma within_more {V} (r : reader V) : forall n m, (n <= m)%nat -> within n r -> within m r.
Proof.
  induction r as [said|next IH]; intros n m Hnm Hn; [destruct m; exact I|]. destruct n as [|n]; [easy|].
  destruct m as [|m]; [lia|]. simpl in *. intros w. apply (IH w n m); [lia|apply Hn].
Qed.

Lemma words_swap n m (f : list Z -> list Z -> R) :
  mean_of_words base n (fun l => mean_of_words base m (f l))
  = mean_of_words base m (fun l' => mean_of_words base n (fun l => f l l')).
Proof.
  revert f. induction n as [|n IH]; intros f; [reflexivity|]. cbn [mean_of_words].
  set (g := fun w l' => mean_of_words base n (fun l => f (Z.of_nat w :: l) l')).
  transitivity (/ INR base * mean_of_words base m (fun l' => sum_below base (fun w => g w l'))).
  - rewrite mean_sum. unfold Rdiv. rewrite Rmult_comm. f_equal. apply total_ext. intros w _.
    apply (IH (fun l => f (Z.of_nat w :: l))).
  - rewrite <- words_scale. apply words_ext. intros l'. unfold g, Rdiv. ring.
Qed.
Lemma rows_swap n m k (f : list Z -> list (list Z) -> R) :
  mean_of_words base k (fun w => mean_of_rows n m (f w))
  = mean_of_rows n m (fun rows => mean_of_words base k (fun w => f w rows)).
Proof.
  revert f. induction m as [|m IH]; intros f; [reflexivity|]. simpl. rewrite words_swap. apply words_ext. intros l.
  apply (IH (fun w rows => f w (l :: rows))).
Qed.

Lemma deal_mean {V} m f : forall (go_on : list Z -> reader V),
  mean_of_reader (deal m go_on) f = mean_of_words base m (fun firsts => mean_of_reader (go_on firsts) f).
Proof.
  induction m as [|m IH]; intros go_on; [reflexivity|]. simpl. f_equal. apply total_ext. intros w _. apply IH.
Qed.
Lemma more_mean {V} s n f (go_on : option bool -> reader V) : forall j low,
  mean_of_reader (more s n j low go_on) f
  = mean_of_words base n (fun l => mean_of_reader (go_on (settle base (heads_step base (a s) (d s) digits) j low l)) f).
Proof.
  induction n as [|n IH]; intros j low; [reflexivity|]. simpl. f_equal. apply total_ext. intros w _. fold b.
  destruct (heads_step base (a s) (d s) digits (S j) (low * b + Z.of_nat w)); [now rewrite words_const|apply IH].
Qed.
(** The mean over what follows a coin's first word. *)
Definition after_first (s n : nat) (w : Z) (h : option bool -> R) : R :=
  mean_of_words base (pred n) (fun l => h (tossed s (w :: l))).
Lemma coin_from_mean {V} s n w f (go_on : option bool -> reader V) :
  mean_of_reader (coin_from s n w go_on) f = after_first s n w (fun v => mean_of_reader (go_on v) f).
Proof.
  unfold coin_from, after_first, tossed. destruct (a s =? 0)%Z; [now rewrite words_const|].
  unfold heads. cbn [settle]. rewrite Z.mul_0_l, Z.add_0_l.
  destruct (heads_step base (a s) (d s) digits 1 w) as [v|]; [now rewrite words_const|apply more_mean].
Qed.
Lemma coins_from_mean {V} n f l : (0 < n)%nat -> forall (go_on : option (list nat) -> reader V),
  mean_of_words base (length l) (fun firsts => mean_of_reader (coins_from n l firsts go_on) f)
  = mean_of_rows n (length l) (fun rows => mean_of_reader (go_on (showing l rows)) f).
Proof.
  intros Hn. destruct n as [|n]; [lia|]. induction l as [|s l IH]; intros go_on; [reflexivity|]. cbn [length].
  simpl. f_equal. apply total_ext. intros w _.
  rewrite (words_ext (length l) _ (fun firsts => after_first s (S n) (Z.of_nat w) (fun v => mean_of_reader
    (coins_from (S n) l firsts (fun shown => go_on match v, shown with
      | Some true, Some kept => Some (s :: kept) | Some false, Some kept => Some kept | _, _ => None end)) f)))
    by (intros; apply coin_from_mean).
  unfold after_first. simpl pred. rewrite words_swap. apply words_ext. intros words. rewrite IH. reflexivity.
Qed.

Lemma chosen_first k w l : chosen k (w :: l) = match chosen k [w] with Some t => Some t | None => chosen k l end.
Proof. cbn [chosen]. now destruct (w <? b - b mod Z.of_nat k)%Z. Qed.
Lemma choice_more_mean n kept f :
  mean_of_reader (choice_more n kept) f = mean_of_words base n (fun words =>
    f match chosen (length kept) words with Some t => nth_error kept t | None => None end).
Proof.
  induction n as [|n IH]; [reflexivity|]. cbn [choice_more mean_of_reader mean_of_words]. f_equal. apply total_ext.
  intros w _. destruct (chosen (length kept) [Z.of_nat w]) as [t|] eqn:E.
  - rewrite (words_ext n _ (fun _ => f (nth_error kept t))) by (intros l'; now rewrite chosen_first, E).
    now rewrite words_const.
  - rewrite IH. apply words_ext. intros l'. now rewrite (chosen_first _ (Z.of_nat w)), E.
Qed.
Lemma choice_from_mean n f shown : (0 < n)%nat ->
  mean_of_words base 1 (fun first => mean_of_reader (choice_from n (hd 0%Z first) shown) f)
  = mean_of_words base n (fun words => f match shown with
      | Some kept => match chosen (length kept) words with Some t => nth_error kept t | None => None end
      | None => None
      end).
Proof.
  intros Hn. destruct n as [|n]; [lia|].
  destruct shown as [kept|]; [|cbn [choice_from mean_of_reader]; now rewrite !words_const].
  rewrite <- (choice_more_mean (S n) kept f). reflexivity.
Qed.

(** On one stream of as many words as all may read the law is the same. *)
Theorem thm_exact_draws_flip_of_one_stream n l f : (0 < n)%nat ->
  mean_of_words base ((length l + 1) * n) (fun stream => f (read_from (streamed n l) stream)) = mean_of_flips n l f.
Proof.
  intros Hn. rewrite mean_of_read.
  - unfold streamed, mean_of_flips. rewrite deal_mean. cbn [mean_of_reader].
    transitivity (mean_of_words base (length l) (fun firsts => mean_of_words base 1 (fun first =>
      mean_of_reader (coins_from n l firsts (choice_from n (hd 0%Z first))) f))); [reflexivity|].
    rewrite words_swap.
    rewrite (words_ext 1 _ (fun first => mean_of_rows n (length l) (fun rows =>
      mean_of_reader (choice_from n (hd 0%Z first) (showing l rows)) f)))
      by (intros; now apply coins_from_mean).
    rewrite rows_swap. apply rows_ext. intros rows. rewrite choice_from_mean by assumption. reflexivity.
  - (* how many words are read *)
    assert (HD : forall V m k (go_on : list Z -> reader V), (forall firsts, within k (go_on firsts)) ->
      within (m + k) (deal m go_on))
      by (induction m as [|m IH]; intros k go_on H; [apply H|]; intros w; apply IH; intros; apply H).
    assert (HM : forall V s m k (go_on : option bool -> reader V), (forall v, within k (go_on v)) ->
      forall j low, within (m + k) (more s m j low go_on)).
    { intros V s m k go_on H. induction m as [|m IH]; intros j low; [apply H|]. intros w. simpl.
      destruct heads_step; [apply within_more with k; [lia|apply H]|apply IH]. }
    assert (HC : forall l k (go_on : option (list nat) -> reader nat), (forall shown, within k (go_on shown)) ->
      forall firsts, within (length l * pred n + k) (coins_from n l firsts go_on)).
    { clear l. induction l as [|s l IH]; intros k go_on H firsts; [apply H|].
      destruct firsts as [|w firsts]; [apply within_more with k; [apply Nat.le_add_l|apply H]|].
      cbn [coins_from length].
      unfold coin_from. assert (HI := fun v => IH k (fun shown => go_on match v, shown with
        | Some true, Some kept => Some (s :: kept) | Some false, Some kept => Some kept | _, _ => None end)
        (fun shown => H _) firsts).
      destruct (a s =? 0)%Z; [refine (within_more _ _ _ _ (HI (Some true))); nia|].
      destruct heads_step as [v|]; [refine (within_more _ _ _ _ (HI (Some v))); nia|].
      rewrite Nat.mul_succ_l, (Nat.add_comm _ (pred n)), <- Nat.add_assoc. apply HM. exact HI. }
    assert (HW : forall m kept, within m (choice_more m kept)).
    { induction m as [|m IH]; intros kept; [exact I|]. intros w. destruct chosen; [destruct m; exact I|apply IH]. }
    replace ((length l + 1) * n)%nat with (length l + S (length l * pred n + pred n))%nat by nia.
    unfold streamed. apply HD. intros firsts w. apply HC. intros [kept|]; [|destruct (pred n); exact I].
    unfold choice_from. destruct chosen; [destruct (pred n); exact I|apply HW].
Qed.
End Flip.

(** ** On one stream, of scores at a rate, it is the law that a selection is charged for *)
Lemma poly_ext w v l : (forall s, In s l -> w s = v s) -> poly w l = poly v l.
Proof. induction l as [|s l IH]; simpl; intros H; [reflexivity|]. rewrite IH, (H s); auto. Qed.
Lemma F_ext w v f l y : (forall s, In s l -> w s = v s) -> F w f l y = F v f l y.
Proof.
  intros H. unfold F. apply sumf_ext. intros r Hr. rewrite (H r Hr). unfold integral.
  rewrite (poly_ext w v); [reflexivity|].
  intros s Hs. apply in_remove in Hs. now apply H.
Qed.

Theorem thm_exact_draws_flip_of_scores base a d digits {X} m (Hm : (0 < m)%nat) rate (q : list X -> nat -> R) D n p :
  let best := argmax (fun r => exp (rate * q D r)) m in
  (2 <= base)%nat -> (m <= base)%nat -> (0 < n)%nat ->
  (forall r, (r < m)%nat -> (0 < d r)%Z /\ IZR (a r) / IZR (d r) = rate * (q D best - q D r)) ->
  let law f := mean_of_words base ((m + 1) * n)
    (fun stream => f (read_from (streamed base a d digits n (seq 0 m)) stream)) in
  law (answered p) <= E (permute_and_flip m Hm rate q D) (indicator p) <= law (answered p) + law open /\
  law open <= sumf (seq 0 m) (fun s => let x := IZR (a s) / IZR (d s) in
    (x * x + 4) / 2 ^ digits n + 2 / INR base ^ n) + (1 / 2) ^ n.
Proof.
  intros best H2 Hmb Hn Hx law. destruct (argmax_spec (fun r => exp (rate * q D r)) m Hm) as [Hb1 Hb2].
  fold best in Hb1, Hb2.
  assert (Hok : exponents_ok a d (seq 0 m)).
  { apply Forall_forall. intros s Hs. apply in_seq in Hs. destruct (Hx s ltac:(lia)) as [Hd Hs']. split; [|assumption].
    specialize (Hb2 s ltac:(lia)). cbv beta in Hb2.
    assert (rate * q D s <= rate * q D best) by (apply Rnot_lt_le; intros Hc; apply exp_increasing in Hc; lra).
    apply IZR_lt in Hd. apply le_IZR.
    replace (IZR (a s)) with (rate * (q D best - q D s) * IZR (d s)) by (rewrite <- Hs'; field; lra).
    apply Rmult_le_pos; lra. }
  assert (Hab : a best = 0%Z).
  { destruct (Hx best Hb1) as [Hd Hs]. apply IZR_lt in Hd. apply eq_IZR.
    replace (IZR (a best)) with (rate * (q D best - q D best) * IZR (d best)) by (rewrite <- Hs; field; lra). ring. }
  assert (Hin : In best (seq 0 m)) by (apply in_seq; lia).
  assert (HW : forall f, law f = mean_of_flips base a d digits n (seq 0 m) f).
  { intros f. rewrite <- thm_exact_draws_flip_of_one_stream by assumption. now rewrite seq_length. }
  rewrite !HW.
  pose proof (thm_exact_draws_flip base a d digits H2 n (seq 0 m) best p Hn Hok (seq_NoDup m 0)
    ltac:(rewrite seq_length; assumption) Hin Hab) as HT.
  rewrite (coins_law a d (seq 0 m) best) in HT by (assumption || apply seq_NoDup).
  rewrite <- (thm_permute_and_flip_program m Hm rate q D). cbv zeta. fold best.
  set (accept := fun r => exp (rate * q D r - rate * q D best)).
  assert (Ha : forall s, In s (seq 0 m) -> exp (- (IZR (a s) / IZR (d s))) = accept s).
  { intros s Hs. apply in_seq in Hs. destruct (Hx s ltac:(lia)) as [_ Hs']. unfold accept. rewrite Hs'. f_equal. ring. }
  replace (draw_and_flip m accept (seq 0 m)) with (draw_and_flip (length (seq 0 m)) accept (seq 0 m))
    by now rewrite seq_length.
  rewrite (draw_and_flip_law accept (seq 0 m) best).
  - rewrite <- (F_ext (fun s => exp (- (IZR (a s) / IZR (d s)))) accept) by assumption. exact HT.
  - intros s Hs. rewrite <- Ha by assumption. unfold exponents_ok in Hok. rewrite Forall_forall in Hok.
    apply Hok in Hs as [H1 H3]. now apply accept_unit.
  - apply seq_NoDup.
  - assumption.
  - unfold accept. unfold Rminus. rewrite Rplus_opp_r. apply exp_0.
Qed.

(* book/mechanisms.md: permute-and-flip.  Its law as an integral, the ratio of two such laws, and what a selection costs.
   That drawing and flipping has this law is in DrawAndFlip.v. *)
From Coq Require Import Reals Lra Psatz List Arith Bool Lia.
From DPForest Require Import Law Privacy Selection Scores.
Import ListNotations.
Open Scope R_scope.

(** Polynomials as lists of coefficients, and their primitives. *)
Fixpoint ev (p : list R) (y : R) : R := match p with [] => 0 | a :: p => a + y * ev p y end.
Fixpoint prim (k : nat) (p : list R) (y : R) : R :=
  match p with [] => 0 | a :: p => a / INR (S k) * y ^ (S k) + prim (S k) p y end.

Lemma prim_deriv p : forall k y, derivable_pt_lim (prim k p) y (y ^ k * ev p y).
Proof.
  induction p as [|a p IH]; intros k y; simpl ev.
  - replace (y ^ k * 0) with 0 by ring. apply derivable_pt_lim_const.
  - replace (y ^ k * (a + y * ev p y)) with (a / INR (S k) * (INR (S k) * y ^ pred (S k)) + y ^ (S k) * ev p y).
    + apply (derivable_pt_lim_plus (fun y => a / INR (S k) * y ^ (S k)) (prim (S k) p)); [|apply IH].
      apply (derivable_pt_lim_scal (fun y => y ^ (S k))). apply derivable_pt_lim_pow.
    + assert (INR (S k) <> 0) by (apply not_0_INR; lia). cbn [pred]. rewrite <- tech_pow_Rmult. field. assumption.
Qed.
Lemma prim_0 p k : prim k p 0 = 0.
Proof. revert k. induction p as [|a p IH]; intros k; simpl; [reflexivity|]. rewrite IH. ring. Qed.

Lemma monotone f f' a b : a <= b -> (forall y, derivable_pt_lim f y (f' y)) ->
  (forall y, a <= y <= b -> 0 <= f' y) -> f a <= f b.
Proof.
  intros [H|H] Hd Hp; [|subst; lra].
  destruct (MVT_cor2 f f' a b H (fun c _ => Hd c)) as (c & Hc & Hr).
  specialize (Hp c). assert (0 <= f' c) by (apply Hp; lra). nra.
Qed.

Fixpoint padd (p q : list R) : list R :=
  match p, q with [], q => q | p, [] => p | a :: p, b :: q => (a + b) :: padd p q end.
Lemma ev_padd p : forall q y, ev (padd p q) y = ev p y + ev q y.
Proof. induction p as [|a p IH]; intros [|b q] y; simpl; try ring. rewrite IH. ring. Qed.
Lemma ev_scale c p y : ev (map (Rmult c) p) y = c * ev p y.
Proof. induction p as [|a p IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Section Flip.
Variable n : nat.  (* candidates 0 .. n-1 *)
Definition others (r : nat) := remove Nat.eq_dec r (seq 0 n).

Definition prodw (w : nat -> R) (l : list nat) (y : R) : R := fold_right (fun s z => (1 - w s * y) * z) 1 l.
Definition poly (w : nat -> R) (l : list nat) : list R :=
  fold_right (fun s p => padd p (0 :: map (Rmult (- w s)) p)) [1] l.
Lemma ev_poly w l y : ev (poly w l) y = prodw w l y.
Proof.
  induction l as [|s l IH]; simpl; [ring|]. rewrite ev_padd. simpl. rewrite ev_scale, IH. ring.
Qed.

(** The integral of the product from 0 to c. *)
Definition integral w l c := prim 0 (poly w l) c.
Lemma integral_deriv w l y : derivable_pt_lim (integral w l) y (prodw w l y).
Proof. rewrite <- ev_poly, <- (Rmult_1_l (ev _ _)). apply (prim_deriv _ 0 y). Qed.
Lemma integral_0 w l : integral w l 0 = 0.
Proof. apply prim_0. Qed.

Lemma prodw_mono w v l y : (forall s, In s l -> 0 <= 1 - v s * y <= 1 - w s * y) ->
  0 <= prodw v l y <= prodw w l y.
Proof.
  induction l as [|s l IH]; simpl; intros H; [lra|].
  assert (H1 := H s (or_introl eq_refl)). assert (H2 : 0 <= prodw v l y <= prodw w l y) by (apply IH; auto).
  split; [nra|]. apply Rmult_le_compat; lra.
Qed.

(** The law, for weights w = exp (rate * score) and top = the largest of them. *)
Definition flip_law w top r := w r * integral w (others r) (/ top).

Definition is_top w top := 0 < top /\ forall s, (s < n)%nat -> 0 < w s <= top.

Theorem flip_ratio w top v top' c k r : is_top w top -> is_top v top' -> (r < n)%nat -> 0 < k -> 1 <= c ->
  (forall s, (s < n)%nat -> k * w s <= v s <= k * c * w s) -> top' <= k * c * top ->
  flip_law w top r <= c * flip_law v top' r.
Proof.
  intros (Ht & Hw) (Ht' & Hv) Hr Hk Hc Hs Htt. unfold flip_law. set (l := others r).
  assert (Hl : forall s, In s l -> (s < n)%nat) by (intros s Hin; apply in_remove in Hin as [Hin _]; apply in_seq in Hin; lia).
  set (m := k * c) in *. assert (Hm : 0 < m) by (unfold m; nra).
  assert (Hit : 0 < / top) by now apply Rinv_0_lt_compat.
  assert (Hit' : 0 < / top') by now apply Rinv_0_lt_compat.
  assert (HT : top * / top = 1) by (field; lra). assert (HT' : top' * / top' = 1) by (field; lra).
  assert (HM : m * / m = 1) by (field; lra). assert (Him : 0 < / m) by now apply Rinv_0_lt_compat.
  (* the integral of w, up to 1/top, is at most m times that of v up to 1/(m top) *)
  assert (H1 : integral w l (/ top) <= m * integral v l (/ m * / top)).
  { enough (m * integral v l (/ m * 0) - integral w l 0 <= m * integral v l (/ m * / top) - integral w l (/ top))
      as H by (rewrite Rmult_0_r, !integral_0 in H; lra).
    apply (monotone (fun y => m * integral v l (/ m * y) - integral w l y)
      (fun y => m * (prodw v l (/ m * y) * (/ m)) - prodw w l y)); [lra| |].
    - intros y. apply (derivable_pt_lim_minus (fun y => m * integral v l (/ m * y)) (integral w l)); [|apply integral_deriv].
      apply (derivable_pt_lim_scal (fun y => integral v l (/ m * y))).
      apply (derivable_pt_lim_comp (fun y => / m * y) (integral v l)); [|apply integral_deriv].
      pose proof (derivable_pt_lim_scal (fun y => y) (/ m) y 1 (derivable_pt_lim_id y)) as HH.
      rewrite Rmult_1_r in HH. exact HH.
    - intros y Hy. replace (m * (prodw v l (/ m * y) * / m)) with (prodw v l (/ m * y)) by (field; lra).
      enough (0 <= prodw w l y <= prodw (fun s => v s * / m) l y) as H.
      { replace (prodw v l (/ m * y)) with (prodw (fun s => v s * / m) l y); [lra|].
        clear. induction l as [|s l IH]; simpl; [reflexivity|]. rewrite IH. f_equal. ring. }
      apply prodw_mono. intros s Hin. apply Hl in Hin. specialize (Hw s Hin). specialize (Hv s Hin). specialize (Hs s Hin).
      assert (v s * / m <= w s) by (apply Rmult_le_reg_r with m; [lra|]; rewrite Rmult_assoc, (Rmult_comm (/ m)), HM; lra).
      split; [|nra]. assert (w s * y <= top * / top) by (apply Rmult_le_compat; lra). lra. }
  (* and 1/(m top) is at most 1/top' *)
  assert (H2 : integral v l (/ m * / top) <= integral v l (/ top')).
  { apply (monotone _ (prodw v l)).
    - rewrite <- Rinv_mult by lra. apply Rinv_le_contravar; lra.
    - apply integral_deriv.
    - intros y Hy. apply (prodw_mono v v l y). intros s Hin. apply Hl in Hin. specialize (Hv s Hin).
      assert (0 < / m * / top) by nra. assert (v s * y <= top' * / top') by (apply Rmult_le_compat; lra). lra. }
  assert (H3 : 0 <= integral v l (/ top')).
  { rewrite <- (integral_0 v l). apply (monotone _ (prodw v l)); [lra|apply integral_deriv|].
    intros y Hy. apply (prodw_mono v v l y). intros s Hin. apply Hl in Hin. specialize (Hv s Hin).
    assert (v s * y <= top' * / top') by (apply Rmult_le_compat; lra). lra. }
  specialize (Hw r Hr). specialize (Hs r Hr).
  apply Rle_trans with (w r * (m * integral v l (/ top'))); [apply Rmult_le_compat_l; [lra|]; nra|].
  unfold m. replace (w r * (k * c * integral v l (/ top'))) with (c * (k * w r) * integral v l (/ top')) by ring.
  replace (c * (v r * integral v l (/ top'))) with (c * v r * integral v l (/ top')) by ring.
  apply Rmult_le_compat_r; [assumption|]. apply Rmult_le_compat_l; lra.
Qed.

(** The law adds up to 1. *)
Lemma sumf_deriv l (f f' : nat -> R -> R) y : (forall r, derivable_pt_lim (f r) y (f' r y)) ->
  derivable_pt_lim (fun y => sumf l (fun r => f r y)) y (sumf l (fun r => f' r y)).
Proof.
  intros H. induction l as [|r l IH]; simpl; [apply derivable_pt_lim_const|].
  now apply (derivable_pt_lim_plus (f r) (fun y => sumf l (fun r => f r y))).
Qed.

Lemma prodw_deriv w l y : NoDup l ->
  derivable_pt_lim (prodw w l) y (- sumf l (fun r => w r * prodw w (remove Nat.eq_dec r l) y)).
Proof.
  intros Hl. induction Hl as [|s l Hs Hl IH].
  - simpl. rewrite Ropp_0. apply derivable_pt_lim_const.
  - replace (- sumf (s :: l) (fun r => w r * prodw w (remove Nat.eq_dec r (s :: l)) y))
      with (- w s * prodw w l y + (1 - w s * y) * - sumf l (fun r => w r * prodw w (remove Nat.eq_dec r l) y)).
    + apply (derivable_pt_lim_mult (fun y => 1 - w s * y) (prodw w l)); [|exact IH].
      replace (- w s) with (0 - w s * 1) by ring.
      apply (derivable_pt_lim_minus (fun _ => 1) (fun y => w s * y)); [apply derivable_pt_lim_const|].
      apply (derivable_pt_lim_scal (fun y => y)). apply derivable_pt_lim_id.
    + simpl. destruct (Nat.eq_dec s s); [|easy]. rewrite (notin_remove _ _ _ Hs).
      rewrite (sumf_ext l (fun r => w r * prodw w (if Nat.eq_dec r s then remove Nat.eq_dec r l else s :: remove Nat.eq_dec r l) y)
        (fun r => (1 - w s * y) * (w r * prodw w (remove Nat.eq_dec r l) y))).
      * assert (HS : forall (g : nat -> R) a m, sumf m (fun r => a * g r) = a * sumf m g)
          by (intros g a m; induction m as [|b m IHm]; simpl; [ring|]; rewrite IHm; ring).
        rewrite (HS (fun r => w r * prodw w (remove Nat.eq_dec r l) y)). ring.
      * intros r Hr. destruct (Nat.eq_dec r s); [congruence|]. simpl. ring.
Qed.

Lemma flip_total w top s0 : 0 < top -> (s0 < n)%nat -> w s0 = top ->
  sumf (seq 0 n) (flip_law w top) = 1.
Proof.
  intros Ht Hs0 Hw. set (l := seq 0 n).
  set (F := fun y => sumf l (fun r => w r * integral w (others r) y) + prodw w l y).
  assert (HF : forall y, derivable_pt_lim F y 0).
  { intros y. replace 0 with (sumf l (fun r => w r * prodw w (others r) y)
      + - sumf l (fun r => w r * prodw w (remove Nat.eq_dec r l) y)) by (unfold others, l; ring).
    apply (derivable_pt_lim_plus (fun y => sumf l (fun r => w r * integral w (others r) y)) (prodw w l)).
    - apply (sumf_deriv l (fun r y => w r * integral w (others r) y) (fun r y => w r * prodw w (others r) y)).
      intros r. apply (derivable_pt_lim_scal (integral w (others r))). apply integral_deriv.
    - apply prodw_deriv, seq_NoDup. }
  assert (Hit : 0 < / top) by now apply Rinv_0_lt_compat.
  assert (H1 : F (/ top) = F 0).
  { destruct (MVT_cor2 F (fun _ => 0) 0 (/ top) Hit (fun c _ => HF c)) as (c & Hc & _). lra. }
  assert (H0 : F 0 = 1).
  { unfold F. assert (HA : forall m, prodw w m 0 = 1) by (intros m; induction m as [|a m IH]; simpl; [ring|]; rewrite IH; ring).
    rewrite HA. enough (HB : forall m, sumf m (fun r => w r * integral w (others r) 0) = 0) by (rewrite HB; ring).
    intros m; induction m as [|a m IH]; simpl; [ring|]. rewrite IH, integral_0. ring. }
  assert (HP : prodw w l (/ top) = 0).
  { assert (Hin : In s0 l) by (apply in_seq; lia). revert Hin. clear - Hw Ht.
    induction l as [|a l IH]; simpl; [easy|]. intros [->|Hin].
    - rewrite Hw. replace (1 - top * / top) with 0 by (field; lra). ring.
    - rewrite (IH Hin). ring. }
  unfold F in H1 at 1. rewrite HP, H0 in H1. unfold flip_law. lra.
Qed.
End Flip.

Fixpoint argmax (f : nat -> R) (n : nat) : nat :=
  match n with 0%nat => 0%nat | S n => if Rle_lt_dec (f n) (f (argmax f n)) then argmax f n else n end.
Lemma argmax_spec f n : (0 < n)%nat -> (argmax f n < n)%nat /\ forall s, (s < n)%nat -> f s <= f (argmax f n).
Proof.
  induction n as [|n IH]; [lia|]. intros _. simpl.
  destruct (Nat.eq_dec n 0) as [->|Hn].
  - simpl. split; [destruct (Rle_lt_dec _ _); lia|].
    intros s Hs. replace s with 0%nat by lia. destruct (Rle_lt_dec _ _); lra.
  - destruct IH as [H1 H2]; [lia|]. destruct (Rle_lt_dec (f n) (f (argmax f n))) as [H|H].
    + split; [lia|]. intros s Hs. destruct (Nat.eq_dec s n) as [->|]; [assumption|]. apply H2. lia.
    + split; [lia|]. intros s Hs. destruct (Nat.eq_dec s n) as [->|]; [lra|].
      specialize (H2 s). assert (f s <= f (argmax f n)) by (apply H2; lia). lra.
Qed.

Section FlipPrivate.
Context {X : Type} (n : nat) (Hn : (0 < n)%nat).
Definition top (w : nat -> R) := w (argmax w n).
Lemma top_is w : (forall s, 0 < w s) -> is_top n w (top w).
Proof. intros H. destruct (argmax_spec w n Hn) as [_ H2]. split; [apply H|]. intros s Hs. split; auto. Qed.

Lemma flip_nonneg w r : (forall s, 0 < w s) -> 0 <= flip_law n w (top w) r.
Proof.
  intros H. destruct (top_is w H) as [Ht Hw]. unfold flip_law. apply Rmult_le_pos; [left; apply H|].
  assert (0 < / top w) by now apply Rinv_0_lt_compat. assert (HT : top w * / top w = 1) by (field; lra).
  rewrite <- (integral_0 w (others n r)). apply (monotone _ (prodw w (others n r))); [lra|apply integral_deriv|].
  intros y Hy. apply (prodw_mono w w). intros s Hin. apply in_remove in Hin as [Hin _]. apply in_seq in Hin.
  specialize (Hw s). assert (0 < w s <= top w) by (apply Hw; lia).
  assert (w s * y <= top w * / top w) by (apply Rmult_le_compat; lra). lra.
Qed.

Lemma flip_sums w (H : forall s, 0 < w s) : sum (flip_law n w (top w)) (seq 0 n) = 1.
Proof.
  change (sumf (seq 0 n) (flip_law n w (top w)) = 1). destruct (argmax_spec w n Hn) as [H1 _].
  apply (flip_total n w (top w) (argmax w n)); [apply H|assumption|reflexivity].
Qed.

Definition flip (w : nat -> R) (H : forall s, 0 < w s) : dist nat :=
  finite (seq 0 n) (flip_law n w (top w)) (fun r _ => flip_nonneg w r H) (flip_sums w H).

Definition permute_and_flip (rate : R) (q : list X -> nat -> R) (D : list X) : dist nat :=
  flip (fun r => exp (rate * q D r)) (fun r => exp_pos _).

Theorem thm_selection_range_permute_and_flip N rate q R : 0 <= rate -> range N q R -> 0 <= R ->
  private N (rate * R) (permute_and_flip rate q).
Proof.
  intros Hr HR HR0 D D' HN B f Hf. unfold permute_and_flip, flip. rewrite !E_finite.
  set (w := fun r => exp (rate * q D r)). set (v := fun r => exp (rate * q D' r)).
  specialize (HR D D' HN).
  (* the candidate whose score moved least *)
  destruct (argmax_spec (fun r => q D r - q D' r) n Hn) as [Hm1 Hm2].
  set (m := argmax (fun r => q D r - q D' r) n) in *.
  assert (Hs : forall s, (s < n)%nat ->
    exp (rate * (q D' m - q D m)) * w s <= v s <= exp (rate * (q D' m - q D m)) * exp (rate * R) * w s).
  { intros s Hs. unfold w, v. rewrite <- !exp_plus. split; apply exp_le.
    - specialize (Hm2 s Hs). simpl in Hm2. nra.
    - specialize (HR m s). nra. }
  assert (HH : forall r, (r < n)%nat -> flip_law n w (top w) r <= exp (rate * R) * flip_law n v (top v) r).
  { intros r Hrn. apply (flip_ratio n w (top w) v (top v) _ (exp (rate * (q D' m - q D m)))); try assumption;
      try (apply top_is; intros; apply exp_pos).
    - apply exp_pos.
    - rewrite <- exp_0. apply exp_le. nra.
    - unfold top at 1. destruct (argmax_spec v n Hn) as [Hv _].
      destruct (argmax_spec w n Hn) as [_ Hw]. specialize (Hs _ Hv). specialize (Hw _ Hv).
      fold (top w) in Hw. eapply Rle_trans; [apply Hs|]. apply Rmult_le_compat_l; [|assumption].
      left. apply Rmult_lt_0_compat; apply exp_pos. }
  rewrite <- sum_scale. apply sum_mono. intros r Hin. apply in_seq in Hin.
  assert (H1 : flip_law n w (top w) r <= exp (rate * R) * flip_law n v (top v) r) by (apply HH; lia).
  specialize (Hf r). rewrite <- Rmult_assoc. now apply Rmult_le_compat_r.
Qed.
End FlipPrivate.

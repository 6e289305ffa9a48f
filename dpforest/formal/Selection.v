(* book/mechanisms.md: range and sensitivity, and what a selection costs: the exponential mechanism. *)
From Coq Require Import Reals Lra Psatz List.
From DPForest Require Import Law Privacy.
Import ListNotations.
Open Scope R_scope.

(** [range N q R]: a step to a neighbour moves no candidate's score against another's by more than R.
    [sensitivity N q S]: it moves no score by more than S. *)
Definition range {X K} (N : list X -> list X -> Prop) (q : list X -> K -> R) (R : R) :=
  forall D D', N D D' -> forall r s, (q D r - q D' r) - (q D s - q D' s) <= R.
Definition sensitivity {X K} (N : list X -> list X -> Prop) (q : list X -> K -> R) (S : R) :=
  forall D D', N D D' -> forall r, - S <= q D r - q D' r <= S.

Section Range.
Context {X K : Type} (q : list X -> K -> R).

Theorem lem_range_twice N S : sensitivity N q S -> range N q (2 * S).
Proof. intros H D D' HN r s. pose proof (H D D' HN r). pose proof (H D D' HN s). lra. Qed.

Theorem lem_range_monotone S : sensitivity add_remove q S ->
  (forall x D D', adds x D D' -> (forall r, q D r <= q D' r) \/ (forall r, q D' r <= q D r)) ->
  range add_remove q S.
Proof.
  intros H Hm D D' HN r s. pose proof (H D D' HN r). pose proof (H D D' HN s).
  destruct HN as [x [Hx|Hx]]; destruct (Hm x _ _ Hx) as [Ho|Ho]; pose proof (Ho r); pose proof (Ho s); lra.
Qed.

Theorem lem_range_replace_one R : range add_remove q R -> range replace_one q (2 * R).
Proof.
  intros H D D' (x & x' & l1 & l2 & -> & ->) r s.
  assert (H1 : add_remove (l1 ++ x :: l2) (l1 ++ l2)) by (exists x; right; now exists l1, l2).
  assert (H2 : add_remove (l1 ++ l2) (l1 ++ x' :: l2)) by (exists x'; left; now exists l1, l2).
  pose proof (H _ _ H1 r s). pose proof (H _ _ H2 r s). lra.
Qed.

(** One and the same function of the data, added to all scores. *)
Theorem lem_range_shift N R h : range N q R -> range N (fun D r => q D r + h D) R.
Proof. intros H D D' HN r s. specialize (H D D' HN r s). lra. Qed.
End Range.

Section Exponential.
Context {X K : Type} (first : K) (others : list K).
Definition candidates := first :: others.

Lemma weight_pos (w : K -> R) : (forall r, 0 < w r) -> 0 < sum w candidates.
Proof.
  intros H. simpl. pose proof (H first). assert (0 <= sum w others) by (apply sum_nonneg; intros; left; apply H).
  unfold sum in *. lra.
Qed.

(** Probabilities in proportion to weights. *)
Definition weighted (w : K -> R) (Hw : forall r, 0 < w r) : dist K.
Proof.
  refine (finite candidates (fun r => / sum w candidates * w r) _ _).
  - intros r _. pose proof (weight_pos w Hw). pose proof (Hw r).
    apply Rmult_le_pos; [left; now apply Rinv_0_lt_compat|lra].
  - rewrite sum_scale. apply Rinv_l. pose proof (weight_pos w Hw). lra.
Defined.

Lemma E_weighted w Hw f : E (weighted w Hw) f = / sum w candidates * sum (fun r => w r * f r) candidates.
Proof. unfold weighted. rewrite E_finite, <- sum_scale. apply sum_ext. intros; ring. Qed.

(** Weights whose cross ratios move by a factor of at most e^eps. *)
Lemma close_weighted w Hw v Hv eps : (forall r s, w r * v s <= exp eps * (v r * w s)) ->
  close eps (weighted w Hw) (weighted v Hv).
Proof.
  intros Hc B f Hf. rewrite !E_weighted. set (l := candidates).
  pose proof (weight_pos w Hw) as HW. pose proof (weight_pos v Hv) as HV. fold l in HW, HV.
  apply Rmult_le_reg_r with (sum w l * sum v l); [nra|].
  replace (/ sum w l * sum (fun r => w r * f r) l * (sum w l * sum v l))
    with (sum v l * sum (fun r => w r * f r) l) by (field; lra).
  replace (exp eps * (/ sum v l * sum (fun r => v r * f r) l) * (sum w l * sum v l))
    with ((exp eps * sum w l) * sum (fun r => v r * f r) l) by (field; lra).
  rewrite <- (sum_scale (sum v l)), <- (sum_scale (exp eps * sum w l)). apply sum_mono. intros r _.
  rewrite <- !Rmult_assoc. apply Rmult_le_compat_r; [apply Hf|].
  apply Rle_trans with (sum (fun s => w r * v s) l); [rewrite sum_scale; right; ring|].
  apply Rle_trans with (sum (fun s => (exp eps * v r) * w s) l); [|rewrite sum_scale; right; ring].
  apply sum_mono. intros s _. specialize (Hc r s). lra.
Qed.

(** def-exponential: weights e^(rate * score). *)
Definition exponential (rate : R) (q : list X -> K -> R) (D : list X) : dist K :=
  weighted (fun r => exp (rate * q D r)) (fun r => exp_pos _).

Theorem thm_selection_range_exponential N rate q R : 0 <= rate -> range N q R ->
  private N (rate * R) (exponential rate q).
Proof.
  intros Hr HR D D' HN. apply close_weighted. intros r s. rewrite <- !exp_plus. apply exp_le.
  specialize (HR D D' HN r s). nra.
Qed.
End Exponential.

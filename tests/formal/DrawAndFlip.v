(* book/mechanisms.md: permute-and-flip as it is run.  "Draw a candidate, flip its coin; on heads it is the answer, else
   go on without it" has the law of PermuteAndFlip.v.  The two sides solve one recursion: their difference has a
   derivative of zero in the scale y of the acceptances y w, and is zero at y = 0. *)
From Coq Require Import Reals Lra Psatz List Arith Bool Lia.
From DPForest Require Import Law Privacy Selection Scores PermuteAndFlip.
Import ListNotations.
Open Scope R_scope.

Notation del := (remove Nat.eq_dec).

Lemma sumf_plus l f g : sumf l (fun r => f r + g r) = sumf l f + sumf l g.
Proof. induction l as [|r l IH]; simpl; [ring|]. rewrite IH. ring. Qed.
Lemma sumf_mult l a f : sumf l (fun r => a * f r) = a * sumf l f.
Proof. induction l as [|r l IH]; simpl; [ring|]. rewrite IH. ring. Qed.
Lemma sumf_const l a : sumf l (fun _ => a) = INR (length l) * a.
Proof. induction l as [|r l IH]; cbn [sumf fold_right length]; [simpl; ring|]. unfold sumf in IH. rewrite IH, S_INR. ring. Qed.

Lemma del_nodup r l : NoDup l -> NoDup (del r l).
Proof.
  induction 1 as [|s l Hs Hl IH]; simpl; [constructor|]. destruct (Nat.eq_dec r s); [assumption|].
  constructor; [|assumption]. intros H. apply in_remove in H. tauto.
Qed.
Lemma del_comm r s l : del r (del s l) = del s (del r l).
Proof. apply remove_remove_comm. Qed.

(** Sums over ordered pairs of different candidates can be taken in either order. *)
Lemma sumf_del l r g : NoDup l -> In r l -> sumf (del r l) g = sumf l g - g r.
Proof. intros Hl Hr. rewrite (sumf_split l g r Hl Hr). ring. Qed.
Lemma sumf_swap l m (g : nat -> nat -> R) : sumf l (fun r => sumf m (g r)) = sumf m (fun s => sumf l (fun r => g r s)).
Proof.
  induction l as [|r l IH]; simpl.
  - rewrite (sumf_const m 0). ring.
  - rewrite IH, <- sumf_plus. reflexivity.
Qed.
Lemma pairs l (g : nat -> nat -> R) : NoDup l ->
  sumf l (fun r => sumf (del r l) (g r)) = sumf l (fun s => sumf (del s l) (fun r => g r s)).
Proof.
  intros Hl.
  rewrite (sumf_ext l _ (fun r => sumf l (g r) + -1 * g r r)) by (intros r Hr; rewrite sumf_del by assumption; ring).
  rewrite (sumf_ext l (fun s => sumf (del s l) _) (fun s => sumf l (fun r => g r s) + -1 * g s s))
    by (intros r Hr; rewrite sumf_del by assumption; ring).
  rewrite !sumf_plus, sumf_swap. reflexivity.
Qed.

Section Program.
Variables (w : nat -> R) (f : nat -> R).

Definition F l y := sumf l (fun r => f r * (w r * integral w (del r l) y)).
Definition G l y := sumf l (fun r => f r * (w r * prodw w (del r l) y)).
Definition G' l y := - sumf l (fun r => f r * (w r * sumf (del r l) (fun s => w s * prodw w (del s (del r l)) y))).

Lemma F_deriv l y : derivable_pt_lim (F l) y (G l y).
Proof.
  unfold F, G. apply (sumf_deriv l (fun r y => f r * (w r * integral w (del r l) y)) (fun r y => f r * (w r * prodw w (del r l) y))).
  intros r. apply (derivable_pt_lim_scal (fun y => w r * integral w (del r l) y)).
  apply (derivable_pt_lim_scal (integral w (del r l))). apply integral_deriv.
Qed.
Lemma G_deriv l y : NoDup l -> derivable_pt_lim (G l) y (G' l y).
Proof.
  intros Hl. unfold G, G'.
  replace (- sumf l _) with (sumf l (fun r => f r * (w r * - sumf (del r l) (fun s => w s * prodw w (del s (del r l)) y)))).
  - apply (sumf_deriv l (fun r y => f r * (w r * prodw w (del r l) y))
      (fun r y => f r * (w r * - sumf (del r l) (fun s => w s * prodw w (del s (del r l)) y)))).
    intros r. apply (derivable_pt_lim_scal (fun y => w r * prodw w (del r l) y)).
    apply (derivable_pt_lim_scal (prodw w (del r l))). now apply prodw_deriv, del_nodup.
  - rewrite <- (Rmult_1_l (sumf l (fun r => f r * (w r * sumf _ _)))), <- Ropp_mult_distr_l_reverse, <- sumf_mult.
    apply sumf_ext. intros; ring.
Qed.
Lemma F_0 l : F l 0 = 0.
Proof. unfold F. rewrite (sumf_ext l _ (fun _ => 0)) by (intros; rewrite integral_0; ring). rewrite sumf_const. ring. Qed.

Lemma constant h y : (forall z, derivable_pt_lim h z 0) -> 0 <= y -> h y = h 0.
Proof.
  intros H [Hy|<-]; [|reflexivity]. destruct (MVT_cor2 h (fun _ => 0) 0 y Hy (fun c _ => H c)) as (c & Hc & _). lra.
Qed.

(** First and second derivative of the recursion. *)
Lemma step1 l y : NoDup l -> 0 <= y -> sumf l (fun i => w i * (f i - F (del i l) y)) = G l y.
Proof.
  intros Hl Hy.
  enough (H : sumf l (fun i => w i * (f i - F (del i l) y)) - G l y = sumf l (fun i => w i * (f i - F (del i l) 0)) - G l 0).
  { rewrite (sumf_ext l (fun i => w i * (f i - F (del i l) 0)) (fun i => f i * w i)) in H by (intros; rewrite F_0; ring).
    unfold G in H at 2. assert (HA : forall m, prodw w m 0 = 1) by (intros m; induction m as [|a m IH]; simpl; [ring|]; rewrite IH; ring).
    rewrite (sumf_ext l (fun r => f r * (w r * prodw w (del r l) 0)) (fun i => f i * w i)) in H by (intros; rewrite HA; ring). lra. }
  apply (constant (fun y => sumf l (fun i => w i * (f i - F (del i l) y)) - G l y)); [|assumption]. intros z.
  replace 0 with (sumf l (fun i => w i * (0 - G (del i l) z)) - G' l z).
  - apply (derivable_pt_lim_minus (fun y => sumf l (fun i => w i * (f i - F (del i l) y))) (G l)); [|now apply G_deriv].
    apply (sumf_deriv l (fun i y => w i * (f i - F (del i l) y)) (fun i y => w i * (0 - G (del i l) y))).
    intros i. apply (derivable_pt_lim_scal (fun y => f i - F (del i l) y)).
    apply (derivable_pt_lim_minus (fun _ => f i) (F (del i l))); [apply derivable_pt_lim_const|apply F_deriv].
  - unfold G', G.
    rewrite (sumf_ext l (fun i => w i * (0 - _)) (fun i => -1 * sumf (del i l) (fun r => w i * (f r * (w r * prodw w (del r (del i l)) z)))))
      by (intros; rewrite (sumf_mult _ (w c)); ring).
    rewrite sumf_mult, (pairs l (fun i r => w i * (f r * (w r * prodw w (del r (del i l)) z))) Hl).
    rewrite (sumf_ext l (fun s => sumf (del s l) _) (fun r => f r * (w r * sumf (del r l) (fun s => w s * prodw w (del s (del r l)) z)))); [ring|].
    intros r _. rewrite <- Rmult_assoc, <- sumf_mult. apply sumf_ext. intros s _. rewrite del_comm. ring.
Qed.

Lemma recursion l y : NoDup l -> 0 <= y ->
  INR (length l) * F l y = sumf l (fun i => y * w i * f i + (1 - y * w i) * F (del i l) y).
Proof.
  intros Hl Hy. set (h := fun y => sumf l (fun i => y * w i * f i + (1 - y * w i) * F (del i l) y) - INR (length l) * F l y).
  enough (H : forall z, 0 <= z -> h z = h 0).
  { specialize (H y Hy). unfold h in H. rewrite F_0 in H.
    rewrite (sumf_ext l (fun i => 0 * w i * f i + _) (fun _ => 0)) in H by (intros; rewrite F_0; ring).
    rewrite sumf_const in H. lra. }
  intros z [Hz|<-]; [|reflexivity].
  set (h' := fun y => sumf l (fun i => (1 * (w i * f i)) + ((0 - 1 * w i) * F (del i l) y + (1 - y * w i) * G (del i l) y)) - INR (length l) * G l y).
  assert (Hd : forall y, derivable_pt_lim h y (h' y)).
  { intros u. unfold h, h'.
    apply (derivable_pt_lim_minus (fun y => sumf l (fun i => y * w i * f i + (1 - y * w i) * F (del i l) y)) (fun y => INR (length l) * F l y)).
    - apply (sumf_deriv l (fun i y => y * w i * f i + (1 - y * w i) * F (del i l) y)
        (fun i y => (1 * (w i * f i)) + ((0 - 1 * w i) * F (del i l) y + (1 - y * w i) * G (del i l) y))).
      intros i. apply (derivable_pt_lim_plus (fun y => y * w i * f i) (fun y => (1 - y * w i) * F (del i l) y)).
      + replace (1 * (w i * f i)) with (1 * w i * f i) by ring.
        replace (1 * w i * f i) with ((1 * w i + u * 0) * f i + (u * w i) * 0) by ring.
        apply (derivable_pt_lim_mult (fun y => y * w i) (fun _ => f i)); [|apply derivable_pt_lim_const].
        apply (derivable_pt_lim_mult (fun y => y) (fun _ => w i)); [apply derivable_pt_lim_id|apply derivable_pt_lim_const].
      + apply (derivable_pt_lim_mult (fun y => 1 - y * w i) (F (del i l))); [|apply F_deriv].
        apply (derivable_pt_lim_minus (fun _ => 1) (fun y => y * w i)); [apply derivable_pt_lim_const|].
        replace (1 * w i) with (1 * w i + u * 0) by ring.
        apply (derivable_pt_lim_mult (fun y => y) (fun _ => w i)); [apply derivable_pt_lim_id|apply derivable_pt_lim_const].
    - apply (derivable_pt_lim_scal (F l)), F_deriv. }
  destruct (MVT_cor2 h h' 0 z Hz (fun c _ => Hd c)) as (c & Hc & Hcz).
  assert (H0 : h' c = 0); [|rewrite H0 in Hc; lra].
  unfold h'.
  rewrite (sumf_ext l _ (fun i => w i * (f i - F (del i l) c) + (G l c + -1 * (f i * (w i * prodw w (del i l) c))))).
  - rewrite sumf_plus, sumf_plus, sumf_const, sumf_mult, step1 by (assumption || lra).
    change (sumf l (fun r => f r * (w r * prodw w (del r l) c))) with (G l c). ring.
  - intros i Hi. enough (H : (1 - c * w i) * G (del i l) c = G l c - f i * (w i * prodw w (del i l) c)) by (rewrite H; ring).
    unfold G. rewrite <- sumf_mult, <- (sumf_del l i (fun r => f r * (w r * prodw w (del r l) c)) Hl Hi).
    apply sumf_ext. intros r Hr. apply in_remove in Hr as [Hr Hne].
    assert (HP : forall m, NoDup m -> In i m -> prodw w m c = (1 - w i * c) * prodw w (del i m) c).
    { clear. intros m Hm. induction Hm as [|s m Hs Hm IH]; simpl; [easy|]. intros [->|Hin].
      - destruct (Nat.eq_dec i i); [|easy]. now rewrite notin_remove.
      - destruct (Nat.eq_dec i s); [subst; easy|]. simpl. rewrite (IH Hin). ring. }
    rewrite (HP (del r l)); [rewrite del_comm; ring|now apply del_nodup|now apply in_in_remove; auto].
Qed.
End Program.

(** The program of alg-permute-and-flip. *)
Definition clip (p : R) : R := Rmax 0 (Rmin 1 p).
Lemma clip_range p : 0 <= clip p <= 1.
Proof. unfold clip. split; [apply Rmax_l|apply Rmax_lub; [lra|apply Rmin_l]]. Qed.
Lemma clip_id p : 0 <= p <= 1 -> clip p = p.
Proof. intros H. unfold clip. rewrite Rmin_right, Rmax_right; lra. Qed.

Definition toss (p : R) : dist bool.
Proof.
  refine (finite [true; false] (fun b : bool => if b then clip p else 1 - clip p) _ _).
  - intros [|] _; pose proof (clip_range p); lra.
  - simpl. ring.
Defined.
Lemma E_toss p g : 0 <= p <= 1 -> E (toss p) g = p * g true + (1 - p) * g false.
Proof. intros H. unfold toss. rewrite E_finite. simpl. rewrite (clip_id p H). ring. Qed.

Definition uniform (a : nat) (m : list nat) : dist nat := weighted a m (fun _ => 1) (fun _ => Rlt_0_1).

(** [fuel] bounds the number of draws; as many as there are candidates are enough. *)
Fixpoint draw_and_flip (fuel : nat) (p : nat -> R) (l : list nat) : dist nat :=
  match fuel, l with
  | S fuel, a :: m =>
      bind (uniform a m) (fun r => bind (toss (p r)) (fun b : bool => if b then ret r else draw_and_flip fuel p (del r l)))
  | _, _ => ret 0%nat
  end.

Lemma length_del r l : NoDup l -> In r l -> length l = S (length (del r l)).
Proof.
  intros Hl Hr. apply INR_eq. rewrite S_INR, <- (Rmult_1_r (INR (length l))), <- (Rmult_1_r (INR (length (del r l)))), <- !sumf_const.
  rewrite (sumf_del l r (fun _ => 1) Hl Hr). ring.
Qed.

Lemma prodw_del w l i c : NoDup l -> In i l -> prodw w l c = (1 - c * w i) * prodw w (del i l) c.
Proof.
  intros Hm. induction Hm as [|s m Hs Hm IH]; simpl; [easy|]. intros [->|Hin].
  - destruct (Nat.eq_dec i i); [|easy]. rewrite notin_remove by assumption. ring.
  - destruct (Nat.eq_dec i s); [subst; easy|]. simpl. rewrite (IH Hin). ring.
Qed.

Lemma program_law w f y : 0 <= y -> forall k l, NoDup l -> length l = k -> (forall r, In r l -> 0 <= y * w r <= 1) ->
  E (draw_and_flip k (fun r => y * w r) l) f = F w f l y + f 0%nat * prodw w l y.
Proof.
  intros Hy. induction k as [|k IH]; intros l Hl Hk Hp.
  - destruct l; [|discriminate]. simpl. unfold F. simpl. ring.
  - destruct l as [|a m]; [discriminate|]. cbn [draw_and_flip]. set (l := a :: m) in *.
    change (E (bind (uniform a m) ?k) f) with (E (uniform a m) (fun x => E (k x) f)).
    unfold uniform. rewrite E_weighted. change (candidates a m) with l.
    assert (Hm : forall g (m : list nat), sum g m = sumf m g) by reflexivity. rewrite !Hm, sumf_const, Rmult_1_r.
    assert (HK : 0 < INR (length l)) by (rewrite Hk; apply lt_0_INR; lia).
    apply Rmult_eq_reg_l with (INR (length l)); [|lra]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
    rewrite Rmult_plus_distr_l, (recursion w f l y Hl Hy).
    replace (INR (length l) * (f 0%nat * prodw w l y)) with (sumf l (fun _ => f 0%nat * prodw w l y)) by apply sumf_const.
    rewrite <- sumf_plus. apply sumf_ext. intros i Hi. rewrite Rmult_1_l. simpl E at 1.
    change (E (toss (y * w i)) (fun x => E (if x then ret i else draw_and_flip k (fun r => y * w r) (del i l)) f)
      = y * w i * f i + (1 - y * w i) * F w f (del i l) y + f 0%nat * prodw w l y).
    rewrite E_toss by (apply Hp, Hi). simpl (E (ret i) f). rewrite IH; [rewrite (prodw_del w l i y Hl Hi); ring|now apply del_nodup| |].
    + pose proof (length_del i l Hl Hi). lia.
    + intros r Hr. apply in_remove in Hr as [Hr _]. now apply Hp.
Qed.

(** Acceptance exp (rate (q_r - max q)): the program is the law whose ratio PermuteAndFlip.v bounds. *)
Theorem thm_permute_and_flip_program {X} n (Hn : (0 < n)%nat) rate (q : list X -> nat -> R) D f :
  let accept r := exp (rate * q D r - rate * q D (argmax (fun r => exp (rate * q D r)) n)) in
  E (draw_and_flip n accept (seq 0 n)) f = E (permute_and_flip n Hn rate q D) f.
Proof.
  intros accept. set (w := fun r => exp (rate * q D r)).
  assert (Hw : forall s, 0 < w s) by (intros; apply exp_pos).
  assert (HA : accept = fun r => / top n w * w r).
  { apply FunctionalExtensionality.functional_extensionality. intros r. unfold accept.
    unfold Rminus. rewrite exp_plus, exp_Ropp. unfold top, w. ring. }
  rewrite HA.
  destruct (top_is n Hn w Hw) as [Ht Hl]. assert (Hit : 0 < / top n w) by now apply Rinv_0_lt_compat.
  assert (HT : / top n w * top n w = 1) by (field; lra).
  rewrite program_law; [|lra|apply seq_NoDup|apply seq_length|].
  - destruct (argmax_spec w n Hn) as [Ha _]. assert (Hin : In (argmax w n) (seq 0 n)) by (apply in_seq; lia).
    rewrite (prodw_del w _ _ _ (seq_NoDup n 0) Hin). fold (top n w). rewrite HT.
    unfold permute_and_flip, flip. rewrite E_finite. unfold F, flip_law, others. fold w.
    change (sum ?g (seq 0 n)) with (sumf (seq 0 n) g).
    rewrite (sumf_ext _ (fun r => w r * _ * f r) (fun r => f r * (w r * integral w (del r (seq 0 n)) (/ top n w)))) by (intros; ring). ring.
  - intros r Hr. apply in_seq in Hr. specialize (Hl r). assert (0 < w r <= top n w) by (apply Hl; lia). nra.
Qed.

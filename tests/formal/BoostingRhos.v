(* book/private_boosting.md, "With a delta": the library's own learner, whose answers have discrete Gaussian noise from
   some point of a run on, or never.  A run that takes up the delta keeps to a rho, one that does not to a loss. *)
From Coq Require Import Reals Lra Psatz List ZArith Arith Bool Lia R_sqrt.
From DPForest Require Import Law Privacy Program Persons Selection Noise Learners Boosting.
From DPForest Require Import Account Concentrated Delta Ranges Gaussian Drawn Divergence Rhos.
Import ListNotations.
Open Scope R_scope.

(** * What numbers cost *)
Section Squares.
Context {X J : Type}.

Lemma total_around (share : X -> nat) l1 x l2 : Z.of_nat (list_sum (map share (l1 ++ x :: l2))) =
  (Z.of_nat (list_sum (map share (l1 ++ l2))) + Z.of_nat (share x))%Z.
Proof. apply sum_around. Qed.

(** A record adds its parts, whose squares add up to [most] at most. *)
Lemma squares_cost (part : X -> J -> nat) l (rate : posreal) most :
  (forall x, sum (fun i => INR (part x i) * INR (part x i)) l <= most) ->
  numbers_cost add_remove (repeat rate (length l)) (sums part l) (rate * most) /\
  numbers_cost replace_one (repeat rate (length l)) (sums part l) (2 * rate * most).
Proof.
  intros Hm. pose proof (cond_pos rate) as Hr. unfold sums.
  assert (H : forall D D' (d : J -> R), (forall i, let n D := Z.of_nat (list_sum (map (fun x => part x i) D)) in
      IZR (n D - n D') * IZR (n D - n D') <= d i) ->
    moved (repeat rate (length l)) (map (fun i => Z.of_nat (list_sum (map (fun x => part x i) D))) l)
      (map (fun i => Z.of_nat (list_sum (map (fun x => part x i) D'))) l) <= rate * sum d l).
  { clear Hm. intros D D' d H. cbv beta zeta in H. induction l as [|i l IH]; [simpl; lra|].
    cbn [length repeat map moved sum fold_right]. specialize (H i). unfold sum in IH. nra. }
  split; intros D D' HN; (split; [now rewrite !map_length|]).
  - destruct HN as [x HN]. eapply Rle_trans; [apply (H _ _ (fun i => INR (part x i) * INR (part x i)))|].
    + intros i. cbv beta zeta. destruct HN as [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)];
        rewrite (total_around (fun x => part x i)), INR_IZR_INZ, <- !mult_IZR; apply IZR_le; nia.
    + apply Rmult_le_compat_l; [lra|apply Hm].
  - destruct HN as (x & x' & l1 & l2 & -> & ->). eapply Rle_trans; [apply (H _ _ (fun i =>
      INR (part x i) * INR (part x i) + INR (part x' i) * INR (part x' i)))|].
    + intros i. cbv beta zeta. rewrite !(total_around (fun x => part x i)), !INR_IZR_INZ, <- !mult_IZR, <- plus_IZR.
      apply IZR_le. nia.
    + rewrite sum_plus. pose proof (Hm x). pose proof (Hm x'). nra.
Qed.

(** Gap and size of each pair of sums; the gaps have the share g of the rate. *)
Definition gap_and_size (part : X -> J -> bool -> nat) (l : list J) (D : list X) : list Z :=
  flat_map (fun i => let n side := Z.of_nat (list_sum (map (fun x => part x i side) D)) in
    [n true - n false; n true + n false]%Z) l.
Definition gap_rates (gap size : posreal) (l : list J) : list posreal := flat_map (fun _ => [gap; size]) l.
Definition size_of (part : X -> J -> bool -> nat) (x : X) (i : J) : R := INR (part x i true) + INR (part x i false).

Lemma gap_and_size_moved part l (gap size : posreal) D D' (d : J -> R) :
  (forall i, let n D side := Z.of_nat (list_sum (map (fun x => part x i side) D)) in
    let t := (n D true - n D' true)%Z in let f := (n D false - n D' false)%Z in
    gap * (IZR (t - f) * IZR (t - f)) + size * (IZR (t + f) * IZR (t + f)) <= d i) ->
  moved (gap_rates gap size l) (gap_and_size part l D) (gap_and_size part l D') <= sum d l.
Proof.
  intros H. cbv beta zeta in H. induction l as [|i l IH]; [simpl; lra|]. specialize (H i).
  unfold gap_rates, gap_and_size in *. cbn [flat_map app moved sum fold_right]. unfold sum in IH.
  match goal with |- context [moved ?r ?u ?v] => set (rest := moved r u v) in * end.
  set (a := Z.of_nat (list_sum (map (fun x => part x i true) D))) in *.
  set (a' := Z.of_nat (list_sum (map (fun x => part x i true) D'))) in *.
  set (b := Z.of_nat (list_sum (map (fun x => part x i false) D))) in *.
  set (b' := Z.of_nat (list_sum (map (fun x => part x i false) D'))) in *.
  replace (a - b - (a' - b'))%Z with (a - a' - (b - b'))%Z by ring.
  replace (a + b - (a' + b'))%Z with (a - a' + (b - b'))%Z by ring. lra.
Qed.

(** lem-gap-and-size, and lem-all-classes (c): [most] is the largest sum of squares of a record's sizes. *)
Theorem lem_gap_and_size part l (gap size : posreal) g lambda most : / 2 <= g <= 1 -> 0 <= lambda ->
  pos gap = g * lambda -> pos size = (1 - g) * lambda ->
  (forall x, sum (fun i => size_of part x i * size_of part x i) l <= most) ->
  numbers_cost add_remove (gap_rates gap size l) (gap_and_size part l) (lambda * most) /\
  numbers_cost replace_one (gap_rates gap size l) (gap_and_size part l) (4 * g * lambda * most).
Proof.
  intros Hg Hl Eg Es Hm.
  assert (Hlen : forall D D', length (gap_and_size part l D) = length (gap_and_size part l D')).
  { intros D D'. unfold gap_and_size. clear. induction l as [|i l IH]; [reflexivity|]. cbn [flat_map app length].
    now rewrite IH. }
  split; intros D D' HN; (split; [apply Hlen|]).
  - destruct HN as [x HN].
    eapply Rle_trans; [apply (gap_and_size_moved _ _ _ _ _ _ (fun i =>
      lambda * (size_of part x i * size_of part x i)))|].
    + intros i. cbv beta zeta. rewrite Eg, Es. unfold size_of.
      pose proof (pos_INR (part x i true)) as H1. pose proof (pos_INR (part x i false)) as H2.
      assert (H : forall t f, (t = Z.of_nat (part x i true) /\ f = Z.of_nat (part x i false)) \/
        (t = - Z.of_nat (part x i true) /\ f = - Z.of_nat (part x i false))%Z ->
        g * lambda * (IZR (t - f) * IZR (t - f)) + (1 - g) * lambda * (IZR (t + f) * IZR (t + f)) <=
        lambda * ((INR (part x i true) + INR (part x i false)) * (INR (part x i true) + INR (part x i false)))).
      { intros t f Htf. set (u := INR (part x i true)) in *. set (v := INR (part x i false)) in *.
        assert (E : IZR (t - f) * IZR (t - f) = (u - v) * (u - v) /\ IZR (t + f) * IZR (t + f) = (u + v) * (u + v)).
        { unfold u, v. rewrite minus_IZR, plus_IZR. destruct Htf as [[-> ->]|[-> ->]];
            rewrite ?opp_IZR, <- !INR_IZR_INZ; split; ring. }
        destruct E as [-> ->].
        assert (Hgl : 0 <= g * lambda) by nra. assert (Huv : 0 <= u * v) by nra. nra. }
      apply H. destruct HN as [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)];
        rewrite !(total_around (fun x => part x i true)), !(total_around (fun x => part x i false)); [right|left]; lia.
    + rewrite sum_scale. apply Rmult_le_compat_l; [lra|apply Hm].
  - destruct HN as (x & x' & l1 & l2 & -> & ->).
    eapply Rle_trans; [apply (gap_and_size_moved _ _ _ _ _ _ (fun i => 2 * g * lambda *
      (size_of part x i * size_of part x i + size_of part x' i * size_of part x' i)))|].
    + intros i. cbv beta zeta. rewrite Eg, Es. unfold size_of.
      rewrite !(total_around (fun x => part x i true)), !(total_around (fun x => part x i false)).
      set (nt := Z.of_nat (list_sum (map (fun x => part x i true) (l1 ++ l2)))).
      set (nf := Z.of_nat (list_sum (map (fun x => part x i false) (l1 ++ l2)))).
      rewrite !minus_IZR, !plus_IZR, !minus_IZR, !plus_IZR, <- !INR_IZR_INZ.
      pose proof (pos_INR (part x i true)). pose proof (pos_INR (part x i false)).
      pose proof (pos_INR (part x' i true)). pose proof (pos_INR (part x' i false)).
      set (u := INR (part x i true)) in *. set (v := INR (part x i false)) in *.
      set (u' := INR (part x' i true)) in *. set (v' := INR (part x' i false)) in *. set (s := IZR nt).
      set (r := IZR nf).
      replace (s + u - (s + u') - (r + v - (r + v'))) with ((u - v) - (u' - v')) by ring.
      replace (s + u - (s + u') + (r + v - (r + v'))) with ((u + v) - (u' + v')) by ring.
      (* gaps are within sizes *)
      set (y := u + v). set (y' := u' + v'). set (z := u - v). set (z' := u' - v').
      assert (Hz : (z - z') * (z - z') <= (y + y') * (y + y')).
      { assert (- (y + y') <= z - z' <= y + y') by (unfold y, y', z, z'; lra). nra. }
      assert (Hgl : 0 <= g * lambda) by nra. pose proof (Rle_0_sqr (y - y')) as Hsq. unfold Rsqr in Hsq.
      assert (Hk : 0 <= (2 * g - 1) * lambda) by nra.
      apply Rle_trans with (g * lambda * ((y + y') * (y + y')) + (1 - g) * lambda * ((y - y') * (y - y'))); [nra|].
      replace (2 * g * lambda * (y * y + y' * y')) with (g * lambda * ((y + y') * (y + y')) +
        (1 - g) * lambda * ((y - y') * (y - y')) + (2 * g - 1) * lambda * ((y - y') * (y - y'))) by ring. nra.
    + rewrite sum_scale, sum_plus. pose proof (Hm x). pose proof (Hm x').
      assert (0 <= 2 * g * lambda) by (assert (0 <= g * lambda) by nra; lra).
      replace (4 * g * lambda * most) with (2 * g * lambda * (most + most)) by ring.
      apply Rmult_le_compat_l; lra.
Qed.
End Squares.

(** * One answer after another, for outputs of S alone *)
Lemma conc_both {O Z Y} (S : Y -> Prop) (g : O -> Z -> Y) a v (P Q : dist O) (K K' : O -> dist Z) :
  conc_on anywhere a P Q -> (forall o, conc_on (fun z => S (g o z)) v (K o) (K' o)) ->
  conc_on S (a + v) (both g P K) (both g Q K').
Proof.
  intros HP HK th Ht B h Hh HS. rewrite !E_both. set (c := th / (1 - th)).
  assert (Hk : test B (fun o => E (K' o) (fun z => h (g o z)))) by (apply test_E; intros o z; apply Hh).
  pose proof (power_test B h th (proj1 Ht) Hh) as Hp.
  apply Rle_trans with (exp (c * v) * E P (fun o => power (E (K' o) (fun z => h (g o z))) th)).
  - apply (E_le_scale P (power B th)); [left; apply exp_pos| | |].
    + apply test_E. intros o z. apply Hp.
    + now apply power_test.
    + intros o. apply (HK o th Ht B (fun z => h (g o z))); [intros z; apply Hh|intros z; apply HS].
  - replace (c * (a + v)) with (c * v + c * a) by ring. rewrite exp_plus, Rmult_assoc.
    apply Rmult_le_compat_l; [left; apply exp_pos|]. now apply (HP th Ht B).
Qed.
Lemma close_both {O Z Y} (S : Y -> Prop) (g : O -> Z -> Y) a v (P Q : dist O) (K K' : O -> dist Z) :
  close a P Q -> (forall o, close_on (fun z => S (g o z)) v (K o) (K' o)) ->
  close_on S (a + v) (both g P K) (both g Q K').
Proof.
  intros HP HK B h Hh HS. rewrite !E_both.
  assert (Hk : test B (fun o => E (K' o) (fun z => h (g o z)))) by (apply test_E; intros o z; apply Hh).
  apply Rle_trans with (exp v * E P (fun o => E (K' o) (fun z => h (g o z)))).
  - apply (E_le_scale P B); [left; apply exp_pos| |assumption|].
    + apply test_E. intros o z. apply Hh.
    + intros o. apply (HK o B (fun z => h (g o z))); [intros z; apply Hh|intros z; apply HS].
  - replace (a + v) with (v + a) by ring. rewrite exp_plus, Rmult_assoc.
    apply Rmult_le_compat_l; [left; apply exp_pos|]. now apply (HP B).
Qed.

(** * Rounds: the plans of Boosting.v, where each question also has whether its budget is a rho *)
Definition swap (rel : relation) (b : R) : R := match rel with AddRemove => 4 * b | ReplaceOne => b end.
Lemma neighbours_sym {X} rel (D D' : list X) : neighbours rel D D' -> neighbours rel D' D.
Proof.
  destruct rel; simpl; [intros [x [H|H]]; exists x; auto|]. intros (x & x' & l1 & l2 & E1 & E2).
  exists x', x, l1, l2. auto.
Qed.

Section Rounds.
Context {X W M : Type} (rel : relation).
Context (ask : bool -> W -> posreal -> list X -> dist answer) (measure : bool -> M -> posreal -> list X -> dist answer).
Context (proper : W -> Prop) (sound : M -> Prop).

(** All answers, and whether the delta has been taken up. *)
Definition first_one (o : answer) (r : bool * list answer) : bool * list answer := (fst r, o :: snd r).
Definition first_ones (os : list answer) (r : bool * list answer) : bool * list answer := (fst r, os ++ snd r).
Fixpoint released (used : bool) (p : plan X (bool * W) (bool * M)) (D : list X) : dist (bool * list answer) :=
  match p with
  | Publish => ret (used, [])
  | Draw coin next => both first_one (bind coin (fun c => ret (Tossed c))) (fun o => released used (next o) D)
  | Inquire (in_rho, w) b next => both first_one (ask in_rho w b D) (fun o => released (in_rho || used) (next o) D)
  | Tabulate t (in_rho, m) b next =>
      both first_ones (tabulate rel (measure in_rho) t m b D) (fun os => released (in_rho || used) (next os) D)
  end.

(** What is left of a rho for runs that take up the delta, and of a loss for runs that do not. *)
Fixpoint keeps_to (used : bool) (rho eps : R) (p : plan X (bool * W) (bool * M)) : Prop :=
  match p with
  | Publish => if used then 0 <= rho else 0 <= eps
  | Draw _ next => forall o, keeps_to used rho eps (next o)
  | Inquire (in_rho, w) b next => proper w /\ forall o,
      if in_rho then keeps_to true (rho - b) eps (next o) else keeps_to used (rho - b * b / 2) (eps - b) (next o)
  | Tabulate _ (in_rho, m) b next => sound m /\ forall os,
      if in_rho then keeps_to true (rho - b) eps (next os) else keeps_to used (rho - b * b / 2) (eps - b) (next os)
  end.

Hypothesis ask_private : forall w (b : posreal), proper w -> private (neighbours rel) b (ask false w b).
Hypothesis ask_concentrated : forall w (b : posreal), proper w -> concentrated (neighbours rel) b (ask true w b).
Hypothesis measure_private : forall m (b : posreal), sound m ->
  private add_remove (b / INR (times rel)) (measure false m b) /\
  private replace_one (2 * (b / INR (times rel))) (measure false m b).
Hypothesis measure_concentrated : forall m (b : posreal), sound m ->
  concentrated add_remove (b / INR (times rel)) (measure true m b) /\
  concentrated replace_one (swap rel b) (measure true m b).

(** The cells of a table are apart. *)
Lemma tabulate_concentrated t m (b : posreal) : sound m ->
  concentrated (neighbours rel) b (tabulate rel (measure true) t m b).
Proof.
  intros Hm. destruct (measure_concentrated m b Hm) as [Ha Hr]. pose proof (cond_pos b) as Hb.
  set (al := b / INR (times rel)) in *. set (rh := swap rel b) in *.
  assert (Hal : 0 <= al) by (unfold al; destruct rel; simpl; lra).
  assert (Hrh : 0 <= rh) by (unfold rh, swap; destruct rel; lra).
  set (p := parts (cell_of t) (fun _ => measure true m b) (fun _ => al) (fun _ => rh)).
  assert (Hp : forall T, honest_rho (p T)) by (intros T; induction T; simpl; auto 7).
  assert (E : forall T D, run (p T) D = run (parts (cell_of t) (fun _ => measure true m b)
    (fun _ => b / INR (times rel)) (fun _ => 2 * (b / INR (times rel))) T) D).
  { intros T D. induction T as [|T IH]; [reflexivity|]. simpl. f_equal.
    apply FunctionalExtensionality.functional_extensionality. intros _. exact IH. }
  intros D D' HN. unfold tabulate. rewrite <- !E. revert D D' HN.
  destruct rel; [apply thm_concentrated_path_add_remove|apply thm_concentrated_path_replace_one]; auto.
  - assert (H : forall x T s, spent AddRemove x (p T) s <= if cell_of t x <? T then al else 0).
    { intros x T. unfold p. induction T as [|T IH]; intros s; [simpl; lra|]. destruct s as [|o s];
      cbn [parts spent price].
      - destruct (cell_of t x <? S T); lra.
      - specialize (IH s). revert IH. destruct (Nat.eqb_spec (cell_of t x) T), (Nat.ltb_spec (cell_of t x) T),
          (Nat.ltb_spec (cell_of t x) (S T)); try lia; lra. }
    intros x s. specialize (H x (cells t) s). revert H. unfold al. simpl. destruct (cell_of t x <? cells t); lra.
  - assert (H : forall x x' T s, pair_cost x x' (p T) s <= if cell_of t x =? cell_of t x' then
      (if cell_of t x <? T then rh else 0) else
      (if cell_of t x <? T then al else 0) + (if cell_of t x' <? T then al else 0)).
    { intros x x' T. unfold p.
      induction T as [|T IH]; intros s; [simpl; destruct (cell_of t x =? cell_of t x'); lra|].
      destruct s as [|o s]; cbn [parts pair_cost].
      - destruct (cell_of t x =? cell_of t x'), (cell_of t x <? S T), (cell_of t x' <? S T); lra.
      - specialize (IH s). revert IH. destruct (Nat.eqb_spec (cell_of t x) (cell_of t x')) as [e|e]; [rewrite <- e|].
        + destruct (Nat.eqb_spec (cell_of t x) T), (Nat.ltb_spec (cell_of t x) T), (Nat.ltb_spec (cell_of t x) (S T));
            try lia; lra.
        + destruct (Nat.eqb_spec (cell_of t x) T), (Nat.eqb_spec (cell_of t x') T), (Nat.ltb_spec (cell_of t x) T),
            (Nat.ltb_spec (cell_of t x) (S T)), (Nat.ltb_spec (cell_of t x') T), (Nat.ltb_spec (cell_of t x') (S T));
            try lia; lra. }
    intros x x' s. specialize (H x x' (cells t) s). revert H. unfold al, rh, swap. simpl.
    destruct (cell_of t x =? cell_of t x'), (cell_of t x <? cells t), (cell_of t x' <? cells t); lra.
Qed.

Definition takes_up (r : bool * list answer) : Prop := fst r = true.
Definition does_not (r : bool * list answer) : Prop := fst r = false.

Lemma concentrated_where_used p : forall used rho eps, keeps_to used rho eps p -> forall D D', neighbours rel D D' ->
  conc_on takes_up rho (released used p D) (released used p D').
Proof.
  induction p as [|coin next IH|[in_rho w] b next IH|t [in_rho m] b next IH]; simpl; intros used rho eps H D D' HN.
  - destruct used; [eapply conc_more; [exact H|apply conc_refl]|]. intros th Ht B h Hh HS. simpl.
    assert (E : h (false, []) = 0).
    { destruct (Req_dec (h (false, [])) 0) as [E|E]; [assumption|]. specialize (HS _ E). discriminate. }
    rewrite E, power_0. lra.
  - replace rho with (0 + rho) by ring. apply conc_both; [apply conc_refl|]. intros o.
    exact (IH o used rho eps (H o) D D' HN).
  - destruct H as [Hw H]. destruct in_rho; cbn [orb].
    + replace rho with (b + (rho - b)) by ring. apply conc_both; [now apply ask_concentrated|].
      intros o. exact (IH o true _ eps (H o) D D' HN).
    + replace rho with (b * b / 2 + (rho - b * b / 2)) by ring. apply conc_both.
      * apply (lem_range_concentrated_loss (neighbours rel) b); auto; [left; apply cond_pos|apply neighbours_sym].
      * intros o. exact (IH o used _ _ (H o) D D' HN).
  - destruct H as [Hm H]. destruct in_rho; cbn [orb].
    + replace rho with (b + (rho - b)) by ring. apply conc_both; [now apply tabulate_concentrated|].
      intros o. exact (IH o true _ eps (H o) D D' HN).
    + replace rho with (b * b / 2 + (rho - b * b / 2)) by ring. apply conc_both.
      * apply (lem_range_concentrated_loss (neighbours rel) b); auto; [left; apply cond_pos|apply neighbours_sym|].
        now apply (tabulate_private rel (ask false) (measure false) proper sound).
      * intros o. exact (IH o used _ _ (H o) D D' HN).
Qed.

(** Once taken up, always taken up. *)
Lemma used_stays p : forall D B h, test B h -> (forall r, h r <> 0 -> does_not r) -> E (released true p D) h = 0.
Proof.
  assert (Hz : forall O (g : O -> bool * list answer -> bool * list answer) (P : dist O) K h,
    (forall o, E (K o) (fun z => h (g o z)) = 0) -> E (both g P K) h = 0).
  { intros O g P K h H. rewrite E_both, (E_ext P _ (fun _ => 0)) by exact H. apply E_const. lra. }
  induction p as [|coin next IH|[in_rho w] b next IH|t [in_rho m] b next IH]; simpl released; intros D B h Hh HS.
  - simpl. destruct (Req_dec (h (true, [])) 0) as [E|E]; [assumption|]. specialize (HS _ E). discriminate.
  - apply Hz. intros o. apply (IH o D B); [intros z; apply Hh|intros z; exact (HS (first_one o z))].
  - rewrite orb_true_r. apply Hz. intros o. apply (IH o D B); [intros z; apply Hh|intros z; exact (HS (first_one o z))].
  - rewrite orb_true_r. apply Hz. intros o. apply (IH o D B); [intros z; apply Hh|].
    intros z. exact (HS (first_ones o z)).
Qed.

Lemma private_where_unused p : forall rho eps, keeps_to false rho eps p -> forall D D', neighbours rel D D' ->
  close_on does_not eps (released false p D) (released false p D').
Proof.
  assert (Hz : forall O (g : O -> bool * list answer -> bool * list answer) (P P' : dist O) next D D' eps,
    (forall o z, fst (g o z) = fst z) ->
    close_on does_not eps (both g P (fun o => released true (next o) D))
      (both g P' (fun o => released true (next o) D'))).
  { intros O g P P' next D D' eps Hg B h Hh HS. rewrite !E_both.
    assert (H : forall D o, E (released true (next o) D) (fun z => h (g o z)) = 0).
    { intros D0 o. apply (used_stays _ _ B); [intros z; apply Hh|]. intros z Hne. unfold does_not. rewrite <- (Hg o).
      now apply HS. }
    rewrite (E_ext P _ (fun _ => 0)), (E_ext P' _ (fun _ => 0)), !E_const by (try apply H; lra). lra. }
  induction p as [|coin next IH|[in_rho w] b next IH|t [in_rho m] b next IH]; simpl; intros rho eps H D D' HN.
  - intros B h Hh _. simpl. pose proof (exp_ge_1 eps H). specialize (Hh (false, [])). nra.
  - replace eps with (0 + eps) by ring. apply close_both; [|intros o; exact (IH o rho eps (H o) D D' HN)].
    intros B h Hh. rewrite exp_0. lra.
  - destruct H as [Hw H]. destruct in_rho; cbn [orb]; [now apply Hz|].
    replace eps with (b + (eps - b)) by ring. apply close_both; [now apply ask_private|].
    intros o. exact (IH o _ _ (H o) D D' HN).
  - destruct H as [Hm H]. destruct in_rho; cbn [orb]; [now apply Hz|].
    replace eps with (b + (eps - b)) by ring.
    apply close_both; [now apply (tabulate_private rel (ask false) (measure false) proper sound)|].
    intros o. exact (IH o _ _ (H o) D D' HN).
Qed.

(** Under replace-one the number of records is public. *)
Definition boost_delta (p : nat -> plan X (bool * W) (bool * M)) (D : list X) : dist (bool * list answer) :=
  released false (p (public_size rel D)) D.

Lemma boost_delta_halves p rho eps : (forall n, keeps_to false rho eps (p n)) ->
  concentrated_on takes_up (neighbours rel) rho (boost_delta p) /\
  private_on does_not (neighbours rel) eps (boost_delta p).
Proof.
  intros H. assert (Hn : forall D D' : list X, neighbours rel D D' -> public_size rel D' = public_size rel D).
  { intros D D' HN. unfold public_size. destruct rel; [reflexivity|]. destruct HN as (x & x' & l1 & l2 & -> & ->).
    now rewrite !app_length. }
  split; intros D D' HN; unfold boost_delta; rewrite (Hn D D' HN).
  - now apply (concentrated_where_used _ false rho eps).
  - now apply (private_where_unused _ rho eps).
Qed.
End Rounds.

(** The rho assures epsilon and delta by some order. *)
Definition assured (rho eps delta : R) : Prop := exists a, 1 < a /\
  / (a - 1) * exp (a * ln (1 - / a)) * exp ((a - 1) * (a * rho - eps)) <= delta.
(** A set of outputs is what of it takes up the delta, and what does not. *)
Lemma both_halves rho eps delta (P Q : dist (bool * list answer)) : assured rho eps delta ->
  conc_on takes_up rho P Q -> close_on does_not eps P Q -> nearly eps delta P Q.
Proof.
  intros (a & Ha & Hd) HP HQ f Hf.
  set (up := fun r : bool * list answer => if fst r then f r else 0).
  set (no := fun r : bool * list answer => if fst r then 0 else f r).
  assert (Hup : test 1 up) by (intros r; specialize (Hf r); unfold up; destruct (fst r); lra).
  assert (Hno : test 1 no) by (intros r; specialize (Hf r); unfold no; destruct (fst r); lra).
  assert (Hs : forall d : dist (bool * list answer), E d f = E d up + E d no).
  { intros d. rewrite <- (E_plus d 1) by assumption. apply E_ext. intros r. unfold up, no. destruct (fst r); ring. }
  rewrite !Hs. pose proof (conversion_on takes_up rho P Q a eps Ha HP up Hup) as H1.
  assert (N1 : forall r, up r <> 0 -> takes_up r) by (intros r; unfold up, takes_up; destruct (fst r); auto; lra).
  assert (N2 : forall r, no r <> 0 -> does_not r) by (intros r; unfold no, does_not; destruct (fst r); auto; lra).
  specialize (H1 N1). pose proof (HQ 1 no Hno N2) as H2. lra.
Qed.

(** * What is asked at a rho *)
(** Numbers that a record moves by squares of [most] at most, at rate b / (L most). *)
Definition at_rate (b : posreal) (c : R) (Hc : 0 < c) : posreal :=
  mkposreal (b / c) (Rdiv_lt_0_compat _ _ (cond_pos b) Hc).
Definition counted (rates : list posreal) {X} (f : list X -> list Z) (D : list X) : dist answer :=
  bind (with_gaussians rates (f D)) (fun cs => ret (Counted cs)).
Lemma counted_concentrated {X} N rates (f : list X -> list Z) rho : numbers_cost N rates f rho ->
  concentrated N rho (counted rates f).
Proof. intros H. apply thm_post_processing_concentrated. now apply thm_discrete_gaussian. Qed.

Section Questions.
Context {X : Type} (rel : relation).
Let L := INR (times rel).
Lemma scaled most : 0 < most -> 0 < L * most.
Proof. intros H. apply Rmult_lt_0_compat; [apply (@L_pos rel)|assumption]. Qed.

Lemma either {O} (M : list X -> dist O) (b : posreal) : concentrated add_remove (b / L) M ->
  concentrated replace_one (2 * (b / L)) M -> concentrated (neighbours rel) b M.
Proof.
  unfold L. intros C1 C2. destruct rel; simpl in *.
  - replace (pos b) with (b / 1) by field. exact C1.
  - replace (pos b) with (2 * (b / (1 + 1))) by field. exact C2.
Qed.
Definition noisy_sums {I} (part : X -> I -> nat) (l : list I) most (H : 0 < most) (b : posreal) : list X ->
  dist answer :=
  counted (repeat (at_rate b (L * most) (scaled most H)) (length l)) (sums part l).
Lemma noisy_sums_concentrated {I} (part : X -> I -> nat) l most H (b : posreal) :
  (forall x, sum (fun i => INR (part x i) * INR (part x i)) l <= most) ->
  concentrated add_remove (b / L) (noisy_sums part l most H b) /\
  concentrated replace_one (2 * (b / L)) (noisy_sums part l most H b) /\
  concentrated (neighbours rel) b (noisy_sums part l most H b).
Proof.
  intros Hm. set (rate := at_rate b (L * most) (scaled most H)).
  destruct (squares_cost part l rate most Hm) as [Ha Hr]. pose proof (@L_pos rel) as HL. fold L in HL.
  assert (E : rate * most = b / L) by (unfold rate; simpl; field; lra).
  rewrite Rmult_assoc, E in Hr. rewrite E in Ha.
  assert (C1 := counted_concentrated _ _ _ _ Ha). assert (C2 := counted_concentrated _ _ _ _ Hr).
  split; [exact C1|]. split; [exact C2|]. exact (either _ b C1 C2).
Qed.

(** A record is in one part, or by each of k codes. *)
Definition noisy_numbers parts (part : X -> nat) : posreal -> list X -> dist answer :=
  noisy_sums (fun x c => Nat.b2n (part x =? c)) (seq 0 parts) 1 Rlt_0_1.
Lemma k_pos k : 0 < INR (S k).
Proof. apply lt_0_INR. lia. Qed.
Definition noisy_histograms k bins (code : nat -> X -> nat) : posreal -> list X -> dist answer :=
  noisy_sums (fun x (at_ : nat * nat) => Nat.b2n (code (fst at_) x =? snd at_))
    (flat_map (fun j => map (pair j) (seq 0 (bins j))) (seq 0 (S k))) (INR (S k)) (k_pos k).
Lemma b2n_square u : INR (Nat.b2n u) * INR (Nat.b2n u) = INR (Nat.b2n u).
Proof. destruct u; simpl; ring. Qed.
Lemma squares_of_marks {I} (mark : I -> bool) l m : (list_sum (map (fun i => Nat.b2n (mark i)) l) <= m)%nat ->
  sum (fun i => INR (Nat.b2n (mark i)) * INR (Nat.b2n (mark i))) l <= INR m.
Proof.
  intros H. rewrite (sum_ext _ (fun i => INR (Nat.b2n (mark i)))) by (intros; apply b2n_square).
  rewrite <- INR_sum. now apply le_INR.
Qed.
Lemma noisy_numbers_concentrated parts (part : X -> nat) (b : posreal) : let M := noisy_numbers parts part b in
  concentrated add_remove (b / L) M /\ concentrated replace_one (2 * (b / L)) M /\ concentrated (neighbours rel) b M.
Proof. apply noisy_sums_concentrated. intros x. apply (squares_of_marks _ _ 1), one_hot, seq_NoDup. Qed.
Theorem lem_children_delta k bins (code : nat -> X -> nat) (b : posreal) :
  concentrated (neighbours rel) b (noisy_histograms k bins code b).
Proof.
  apply noisy_sums_concentrated. intros x.
  apply (squares_of_marks (fun at_ : nat * nat => code (fst at_) x =? snd at_)).
  rewrite (list_sum_pairs _ (fun j => seq 0 (bins j))). cbn [fst snd].
  rewrite <- (Nat.mul_1_r (S k)), <- (seq_length (S k) 0) at 2. apply list_sum_at_most. intros j _.
  apply (one_hot (code j x)), seq_NoDup.
Qed.

(** Candidates 0 .. n by the exponential mechanism, at rate sqrt(8 b) / R, or by R' under replace-one. *)
Definition chosen_at n (score : list X -> nat -> R) (R : R) (b : posreal) (D : list X) : dist answer :=
  bind (exponential 0%nat (seq 1 n) (sqrt (8 * b) / (R * L)) score D) (fun r => ret (Chosen r)).
Lemma chosen_concentrated n score R (b : posreal) : 0 < R -> range add_remove score R ->
  range replace_one score (2 * R) ->
  concentrated (neighbours rel) b (chosen_at n score R b).
Proof.
  intros HR Ha Hr. apply thm_post_processing_concentrated. pose proof (cond_pos b).
  destruct (thm_forest_delta_selections score R (2 * R) b HR ltac:(lra) ltac:(lra) Ha Hr) as [H1 [_ H2]].
  assert (H0 : 0 <= sqrt (8 * b) / (R * L)).
  { apply Rmult_le_pos; [apply sqrt_pos|]. left. apply Rinv_0_lt_compat. rewrite Rmult_comm.
    apply Rmult_lt_0_compat; [apply (@L_pos rel)|assumption]. }
  apply selected_conc; [exact H0|]. unfold L. destruct rel; simpl in *.
  - rewrite Rmult_1_r. exact H1.
  - rewrite Rmax_left in H2 by lra. replace (R * (1 + 1)) with (2 * R) by ring. exact H2.
Qed.
Definition chosen_table n unit (t : nat -> table X) (sides : nat -> X -> nat * nat) theta : posreal -> list X ->
  dist answer :=
  chosen_at n (fun D r => soft_gaps theta 1 (t r) (one_gap (in_records unit (sides r))) D) 2.
Definition chosen_for_all n unit (t : nat -> table X) classes cls p theta : posreal -> list X -> dist answer :=
  chosen_at n (fun D r => soft_gaps theta classes (t r) (class_gap unit classes cls p) D) 4.
Lemma chosen_table_concentrated n unit (Hu : (0 < unit)%nat) t sides theta (b : posreal) :
  (forall r, at_most_one unit (sides r)) -> concentrated (neighbours rel) b (chosen_table n unit t sides theta b).
Proof.
  intros Hs.
  destruct (lem_soft_gap theta t (fun r => in_records unit (sides r)) 1 (fun r => in_records_weight unit Hu _ (Hs r)))
    as (_ & Hr & _ & Hr'). rewrite Rmult_1_r in Hr. rewrite Rmult_1_r in Hr'.
  apply chosen_concentrated; [lra|exact Hr|]. replace (2 * 2) with 4 by ring. exact Hr'.
Qed.
Lemma chosen_for_all_concentrated n unit (Hu : (0 < unit)%nat) t classes cls p theta (b : posreal) :
  shares unit classes cls p -> concentrated (neighbours rel) b (chosen_for_all n unit t classes cls p theta b).
Proof.
  intros Hs. destruct (lem_all_classes unit Hu theta classes cls p t Hs) as (_ & _ & Hr & _ & Hr').
  apply chosen_concentrated; [lra|exact Hr|]. replace (2 * 4) with 8 by ring. exact Hr'.
Qed.

(** Gap and size of pairs, the gaps with the share g of the rate. *)
Section Gaps.
Context (g : R) (Hg : / 2 <= g < 1).
Definition pair_scale : R := match rel with AddRemove => 1 | ReplaceOne => 4 * g end.
Lemma pair_scale_pos most : 0 < most -> 0 < pair_scale * most.
Proof. intros H. apply Rmult_lt_0_compat; [|assumption]. unfold pair_scale. destruct rel; lra. Qed.
Lemma gap_pos (b : posreal) c : 0 < c -> 0 < g * (b / c).
Proof. intros H. pose proof (Rdiv_lt_0_compat _ _ (cond_pos b) H). apply Rmult_lt_0_compat; lra. Qed.
Lemma size_pos (b : posreal) c : 0 < c -> 0 < (1 - g) * (b / c).
Proof. intros H. pose proof (Rdiv_lt_0_compat _ _ (cond_pos b) H). apply Rmult_lt_0_compat; lra. Qed.
Definition noisy_gaps {I} (part : X -> I -> bool -> nat) l most (H : 0 < most) (b : posreal) : list X -> dist answer :=
  let c := pair_scale * most in let Hc := pair_scale_pos most H in
  counted (gap_rates (mkposreal (g * (b / c)) (gap_pos b c Hc)) (mkposreal ((1 - g) * (b / c)) (size_pos b c Hc)) l)
    (gap_and_size part l).
Lemma noisy_gaps_concentrated {I} (part : X -> I -> bool -> nat) l most H (b : posreal) :
  (forall x, sum (fun i => size_of part x i * size_of part x i) l <= most) ->
  concentrated add_remove (b / L) (noisy_gaps part l most H b) /\
  concentrated replace_one (swap rel b) (noisy_gaps part l most H b).
Proof.
  intros Hm. unfold noisy_gaps. cbv zeta. set (c := pair_scale * most). pose proof (pair_scale_pos most H) as Hc.
  fold c in Hc. pose proof (Rdiv_lt_0_compat _ _ (cond_pos b) Hc) as Hl. pose proof (cond_pos b) as Hb.
  match goal with |- context [gap_rates ?u ?v l] => destruct (lem_gap_and_size part l u v g (b / c) most ltac:(lra)
    ltac:(lra) eq_refl eq_refl Hm) as [Ha Hr] end.
  split; [apply counted_concentrated in Ha|apply counted_concentrated in Hr]; intros D D' HN;
    [eapply conc_more; [|exact (Ha D D' HN)]|eapply conc_more; [|exact (Hr D D' HN)]]; unfold c, pair_scale, L, swap.
  - destruct rel; simpl.
    + right. field. lra.
    + apply Rle_trans with (b * / (4 * g)); [right; field; lra|]. unfold Rdiv. apply Rmult_le_compat_l; [lra|].
      apply Rinv_le_contravar; lra.
  - destruct rel.
    + replace (4 * g * (b / (1 * most)) * most) with (4 * b * g) by (field; lra). nra.
    + right. field. lra.
Qed.
End Gaps.
End Questions.

(** A record's size on both sides together is a unit at most. *)
Lemma gap_square {X} amount (sides : X -> nat * nat) x : at_most_one amount sides ->
  let size := size_of (fun x (_ : unit) => of_sides sides x) x in
  sum (fun i => size i * size i) [tt] <= INR amount * INR amount.
Proof.
  intros H. specialize (H x). apply le_INR in H. rewrite plus_INR in H. unfold size_of. simpl.
  pose proof (pos_INR (fst (sides x))). pose proof (pos_INR (snd (sides x))). nra.
Qed.

(** * Classes *)
Section Classes.
Context {X : Type} (rel : relation) (fine finest : nat) (Hfine : (0 < fine)%nat) (Hfinest : (0 < finest)%nat).
Context (g : R) (Hg : / 2 <= g < 1).

Lemma square_pos n : (0 < n)%nat -> 0 < INR n * INR n.
Proof. intros H. apply lt_0_INR in H. nra. Qed.
Lemma twice_square_pos n : (0 < n)%nat -> 0 < 2 * (INR n * INR n).
Proof. intros H. pose proof (square_pos n H). lra. Qed.

(** At a rho, selections are by the exponential mechanism, whatever would make them at a loss. *)
Definition ask_class_delta (in_rho : bool) (w : class_question) (b : posreal) : list X -> dist answer :=
  if in_rho then match w with
  | Totals classes cls => noisy_numbers rel classes cls b
  | Histograms k bins code => noisy_histograms rel k bins code b
  | SelectTable _ n t sides theta => chosen_table rel n fine t sides theta b
  | SelectForAll _ n t classes cls p theta => chosen_for_all rel n finest t classes cls p theta b
  end else ask_class rel fine finest w b.
Definition measure_class_delta (in_rho : bool) (m : class_measure) (b : posreal) : list X -> dist answer :=
  if in_rho then match m with
  | Weights sides =>
      noisy_gaps rel g Hg (fun x (_ : unit) => of_sides sides x) [tt] (INR fine * INR fine) (square_pos fine Hfine) b
  | Gradients classes cls p => noisy_gaps rel g Hg (fun x k side => gradient classes cls p x (k, side)) (seq 0 classes)
      (2 * (INR finest * INR finest)) (twice_square_pos finest Hfinest) b
  | ClassCounts classes cls => noisy_numbers rel classes cls b
  end else measure_class rel fine finest Hfine Hfinest m b.

Definition class_plan_delta := plan X (bool * class_question (X := X)) (bool * class_measure (X := X)).
Definition boost_classes_delta : (nat -> class_plan_delta) -> list X -> dist (bool * list answer) :=
  boost_delta rel ask_class_delta measure_class_delta.
Definition class_budget_delta : R -> R -> class_plan_delta -> Prop :=
  keeps_to (class_question_proper fine finest) (class_measure_proper fine finest) false.

(** The own class has all that the others have, and squares of shares are below the square of their sum. *)
Lemma gradient_squares classes cls p (x : X) : shares finest classes cls p ->
  sum (fun k => size_of (fun x k side => gradient classes cls p x (k, side)) x k *
    size_of (fun x k side => gradient classes cls p x (k, side)) x k) (seq 0 classes) <= 2 * (INR finest * INR finest).
Proof.
  intros Hs. specialize (Hs x). apply le_INR in Hs. set (o := others classes cls p x) in *.
    pose proof (pos_INR o) as Ho.
  set (share := fun k => if cls x =? k then 0%nat else p x k).
  rewrite (sum_ext _ (fun k => (if cls x =? k then INR o * INR o else 0) + INR (share k) * INR (share k))).
  2: { intros k _. unfold size_of, gradient, share. fold o. destruct (cls x =? k); simpl INR; ring. }
  rewrite sum_plus. pose proof (sum_at_most_one (INR o * INR o) (cls x) (seq 0 classes) ltac:(nra) (seq_NoDup _ _))
    as H1.
  assert (H2 : sum (fun k => INR (share k) * INR (share k)) (seq 0 classes) <= INR o * INR o).
  { assert (E : INR o = sum (fun k => INR (share k)) (seq 0 classes)) by (unfold o, others; now rewrite INR_sum).
    rewrite E. clear. induction (seq 0 classes) as [|k l IH]; [simpl; lra|]. cbn [sum fold_right]. unfold sum in IH.
    set (s := fold_right _ _ l) in *. pose proof (pos_INR (share k)).
    match goal with |- context [fold_right ?f 0 l] => set (r := fold_right f 0 l) in * end.
    assert (0 <= r) by (apply (sum_nonneg (fun k => INR (share k)) l); intros; apply pos_INR). nra. }
  assert (INR o * INR o <= INR finest * INR finest) by nra. lra.
Qed.

(** lem-all-classes (c), in steps of which [finest] are one record. *)
Theorem lem_all_classes_delta classes cls p (gap size : posreal) lambda : shares finest classes cls p -> 0 <= lambda ->
  pos gap = g * (lambda / (INR finest * INR finest)) -> pos size = (1 - g) * (lambda / (INR finest * INR finest)) ->
  let part := fun (x : X) k side => gradient classes cls p x (k, side) in let l := seq 0 classes in
  numbers_cost add_remove (gap_rates gap size l) (gap_and_size part l) (2 * lambda) /\
  numbers_cost replace_one (gap_rates gap size l) (gap_and_size part l) (8 * g * lambda).
Proof.
  intros Hs Hl Eg Es part l. pose proof (square_pos finest Hfinest) as H0. set (u := INR finest * INR finest) in *.
  assert (Hl' : 0 <= lambda / u) by (unfold Rdiv; apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]).
  destruct (lem_gap_and_size part l gap size g (lambda / u) (2 * u) ltac:(lra) Hl' Eg Es
    (fun x => gradient_squares classes cls p x Hs)) as [Ha Hr].
  replace (2 * lambda) with (lambda / u * (2 * u)) by (field; lra).
  replace (8 * g * lambda) with (4 * g * (lambda / u) * (2 * u)) by (field; lra). now split.
Qed.

Lemma class_halves p rho eps : (forall n, class_budget_delta rho eps (p n)) ->
  concentrated_on takes_up (neighbours rel) rho (boost_classes_delta p) /\
  private_on does_not (neighbours rel) eps (boost_classes_delta p).
Proof.
  apply boost_delta_halves.
  - exact (class_question_private rel fine finest Hfine Hfinest).
  - intros [classes cls|k bins code|m n t sides theta|m n t classes cls sh theta] b Hw; simpl in *.
    + apply noisy_numbers_concentrated.
    + apply lem_children_delta.
    + now apply chosen_table_concentrated.
    + now apply chosen_for_all_concentrated.
  - exact (class_measure_private rel fine finest Hfine Hfinest).
  - intros [sides|classes cls sh|classes cls] b Hm; simpl in *.
    + apply noisy_gaps_concentrated. intros x. now apply gap_square.
    + apply noisy_gaps_concentrated. intros x. now apply gradient_squares.
    + destruct (noisy_numbers_concentrated rel classes cls b) as (H1 & H2 & _). split; [exact H1|].
      intros D D' HN. eapply conc_more; [|exact (H2 D D' HN)]. unfold swap. pose proof (cond_pos b).
      destruct rel; simpl; lra.
Qed.

(** Both relations.  Whether a run takes up the delta is released too. *)
Theorem thm_private_boosting_delta (p : nat -> class_plan_delta) rho eps delta :
  (forall n, class_budget_delta rho eps (p n)) -> assured rho eps delta ->
  approximate (neighbours rel) eps delta (boost_classes_delta p).
Proof.
  intros H Ha D D' HN. destruct (class_halves p rho eps H) as [H1 H2]. now apply (both_halves rho); auto.
Qed.
End Classes.

(** * Numbers *)
Section Numbers.
Context {X : Type} (rel : relation) (fine levels : nat) (Hfine : (0 < fine)%nat) (Hlevels : (0 < levels)%nat).
Context (g : R) (Hg : / 2 <= g < 1).

(** The sum of the targets alone has rate b, under both relations. *)
Definition ask_number_delta (in_rho : bool) (w : number_question) (b : posreal) : list X -> dist answer :=
  if in_rho then match w with
  | Masses y => noisy_sums rel (of_sides (twin levels y)) two (INR levels * INR levels) (square_pos levels Hlevels) b
  | TargetSum y => counted [at_rate b (INR levels * INR levels) (square_pos levels Hlevels)] (target_sum y)
  | Sizes parts part => noisy_numbers rel parts part b
  | CodeHistograms k bins code => noisy_histograms rel k bins code b
  | SelectByResiduals _ n t above theta => chosen_table rel n fine t (fun r => twin fine (above r)) theta b
  end else ask_number rel fine levels Hlevels w b.
Definition measure_number_delta (in_rho : bool) (m : number_measure) (b : posreal) : list X -> dist answer :=
  if in_rho then match m with Residuals above =>
    noisy_gaps rel g Hg (fun x (_ : unit) => of_sides (twin fine above) x) [tt] (INR fine * INR fine)
      (square_pos fine Hfine) b
  end else measure_number rel fine Hfine m b.

Definition number_plan_delta := plan X (bool * number_question (X := X)) (bool * number_measure (X := X)).
Definition boost_numbers_delta : (nat -> number_plan_delta) -> list X -> dist (bool * list answer) :=
  boost_delta rel ask_number_delta measure_number_delta.
Definition number_budget_delta : R -> R -> number_plan_delta -> Prop :=
  keeps_to (number_question_proper fine levels) (number_measure_proper fine) false.

Lemma sides_squares unit (sides : X -> nat * nat) x : at_most_one unit sides ->
  sum (fun i => INR (of_sides sides x i) * INR (of_sides sides x i)) two <= INR unit * INR unit.
Proof.
  intros H. specialize (H x). apply le_INR in H. rewrite plus_INR in H. unfold two. simpl.
  pose proof (pos_INR (fst (sides x))). pose proof (pos_INR (snd (sides x))). nra.
Qed.
Lemma target_sum_concentrated y (b : posreal) : (forall x, (y x <= levels)%nat) ->
  concentrated (neighbours rel) b
    (counted [at_rate b (INR levels * INR levels) (square_pos levels Hlevels)] (target_sum (X := X) y)).
Proof.
  intros Hy. apply counted_concentrated. intros D D' HN. split; [reflexivity|]. unfold target_sum, sums.
    cbn [map moved].
  match goal with |- context [IZR ?d * IZR ?d] => set (z := d) end.
  assert (Hz : (- Z.of_nat levels <= z <= Z.of_nat levels)%Z).
  { unfold z. cbv beta. destruct rel; cbn [neighbours] in HN.
    - destruct HN as [x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]]; rewrite (total_around (fun x => y x));
      specialize (Hy x); cbv beta; lia.
    - destruct HN as (x & x' & l1 & l2 & -> & ->). rewrite !(total_around (fun x => y x)). pose proof (Hy x).
      pose proof (Hy x'). cbv beta. lia. }
  pose proof (square_pos levels Hlevels) as Hs. cbn [pos at_rate]. rewrite Rplus_0_r.
  apply Rle_trans with (b / (INR levels * INR levels) * (INR levels * INR levels)); [|right; field; nra].
  apply Rmult_le_compat_l; [left; apply Rdiv_lt_0_compat; [apply cond_pos|exact Hs]|].
  rewrite INR_IZR_INZ, <- !mult_IZR. apply IZR_le. nia.
Qed.

Let twins := twin_at_most_one (X := X) fine levels Hfine Hlevels.
Lemma number_halves p rho eps : (forall n, number_budget_delta rho eps (p n)) ->
  concentrated_on takes_up (neighbours rel) rho (boost_numbers_delta p) /\
  private_on does_not (neighbours rel) eps (boost_numbers_delta p).
Proof.
  apply boost_delta_halves.
  - exact (number_question_private rel fine levels Hfine Hlevels).
  - intros [y|y|parts part|k bins code|m n t above theta] b Hw; simpl in *.
    + apply noisy_sums_concentrated. intros x. now apply sides_squares, twins.
    + now apply target_sum_concentrated.
    + apply noisy_numbers_concentrated.
    + apply lem_children_delta.
    + apply chosen_table_concentrated; [assumption|]. intros r. now apply twins.
  - exact (number_measure_private rel fine levels Hfine Hlevels).
  - intros [above] b Hm; simpl in *. apply noisy_gaps_concentrated. intros x. now apply gap_square, twins.
Qed.

Theorem thm_private_boosting_delta_numbers (p : nat -> number_plan_delta) rho eps delta :
  (forall n, number_budget_delta rho eps (p n)) -> assured rho eps delta ->
  approximate (neighbours rel) eps delta (boost_numbers_delta p).
Proof.
  intros H Ha D D' HN. destruct (number_halves p rho eps H) as [H1 H2]. now apply (both_halves rho); auto.
Qed.
End Numbers.

(** * Persons: of each at most k rows are learned from, by lots; all rows of one are added or removed *)
Section People.
Context {P A C : Type} (who_eq : forall u w : P, {u = w} + {u <> w}) (row_eq : forall a b : A, {a = b} + {a <> b}).
Context (people : list P) (everybody : forall u, In u people) (once : NoDup people).
Context (lots : dist C) (before : C -> P -> A * nat -> A * nat -> bool).
Hypothesis ordered : forall c u, (forall x y, before c u x y = true \/ before c u y x = true) /\
  (forall x y, before c u x y = true -> before c u y x = true -> x = y) /\
  (forall x y z, before c u x y = true -> before c u y z = true -> before c u x z = true).
Let total c u := proj1 (ordered c u).
Let antisymmetric c u := proj1 (proj2 (ordered c u)).
Let transitive c u := proj2 (proj2 (ordered c u)).
Definition of_people {O} (k : nat) (M : list A -> dist O) (D : list (P * A)) : dist O :=
  bind lots (fun c => M (kept who_eq row_eq people before k c D)).

Lemma people_halves k rho eps delta (M : list A -> dist (bool * list answer)) : (1 <= k)%nat -> 0 <= rho -> 0 <= eps ->
  concentrated_on takes_up add_remove (rho / (INR k * INR k)) M -> private_on does_not add_remove (eps / INR k) M ->
  assured rho eps delta -> approximate (person_add_remove who_eq) eps delta (of_people k M).
Proof.
  intros Hk Hr He HM HM' Ha D D' HN. assert (H0 : 0 < INR k) by (apply lt_0_INR; lia).
  assert (Er : INR k * INR k * (rho / (INR k * INR k)) = rho) by (field; lra).
  assert (Ee : INR k * (eps / INR k) = eps) by (field; lra).
  assert (Hr' : 0 <= rho / (INR k * INR k)).
  { unfold Rdiv. apply Rmult_le_pos; [assumption|]. left. apply Rinv_0_lt_compat. nra. }
  assert (He' : 0 <= eps / INR k) by (unfold Rdiv; apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]).
  apply (both_halves rho); [assumption| |].
  - rewrite <- Er. destruct HN as [u [Hu|Hu]]; apply lem_concentrated_coins; intros c;
      apply (joins_conc who_eq row_eq people everybody once before ordered _ _ M k u _ _ Hr' Hk HM Hu c).
  - rewrite <- Ee. intros B h Hh HS. destruct HN as [u [Hu|Hu]]; unfold of_people; simpl.
    all: apply (E_le_scale lots B); [left; apply exp_pos|apply (test_E _ B (fun _ => h)); auto|
      apply (test_E _ B (fun _ => h)); auto|intros c].
    all: destruct (joins_close who_eq row_eq people everybody once before total antisymmetric transitive k M _ He'
      does_not u _ _ Hk HM' Hu c) as [H1 H2]; try exact (H1 B h Hh HS); exact (H2 B h Hh HS).
Qed.

Theorem thm_private_boosting_delta_persons fine finest Hfine Hfinest g Hg
    (p : nat -> class_plan_delta (X := A)) k rho eps delta : (1 <= k)%nat -> 0 <= rho -> 0 <= eps ->
  (forall n, class_budget_delta fine finest (rho / (INR k * INR k)) (eps / INR k) (p n)) -> assured rho eps delta ->
  approximate (person_add_remove who_eq) eps delta
    (of_people k (boost_classes_delta AddRemove fine finest Hfine Hfinest g Hg p)).
Proof.
  intros Hk Hr He H Ha. destruct (class_halves AddRemove fine finest Hfine Hfinest g Hg p _ _ H) as [H1 H2].
  now apply (people_halves k rho).
Qed.
Theorem thm_private_boosting_delta_persons_numbers fine levels Hfine Hlevels g Hg
    (p : nat -> number_plan_delta (X := A)) k rho eps delta : (1 <= k)%nat -> 0 <= rho -> 0 <= eps ->
  (forall n, number_budget_delta fine levels (rho / (INR k * INR k)) (eps / INR k) (p n)) -> assured rho eps delta ->
  approximate (person_add_remove who_eq) eps delta
    (of_people k (boost_numbers_delta AddRemove fine levels Hfine Hlevels g Hg p)).
Proof.
  intros Hk Hr He H Ha. destruct (number_halves AddRemove fine levels Hfine Hlevels g Hg p _ _ H) as [H1 H2].
  now apply (people_halves k rho).
Qed.
End People.

(* book/concentrated.md, "Composition": the master theorem with a rho in place of an epsilon, and calibrated questions.
   A record that is in several trees is in them at once: a query of a tree sees one of its places, so that what its
   places cost adds up, where steps of a group would not. *)
From Coq Require Import Reals Lra Psatz List ZArith Arith Bool Lia R_sqrt.
From DPForest Require Import Law Privacy Program Path Forest Learners.
From DPForest Require Import Concentrated Delta Selection Ranges Gaussian Drawn.
Import ListNotations.
Open Scope R_scope.

Lemma filter_one {A} (part : A -> bool) b : (length (filter part b) <= 1)%nat ->
  filter part b = [] \/ exists y, filter part b = [y].
Proof. destruct (filter part b) as [|y [|z l]]; simpl; intros; [now left|right; now exists y|lia]. Qed.
Lemma sum_where {A} (part : A -> bool) c b :
  sum (fun y => if part y then c else 0) b = INR (length (filter part b)) * c.
Proof.
  induction b as [|y b IH]; [simpl; ring|]. cbn [sum fold_right filter]. unfold sum in IH. rewrite IH.
  destruct (part y); cbn [length]; rewrite ?S_INR; ring.
Qed.

(** * All places of a record at once *)
Section Block.
Context {X O : Type}.

(** Of a block of places a query sees one at most, or it looks at nothing. *)
Fixpoint sees_one (b : list X) (p : prog (X := X) (O := O)) : Prop :=
  match p with
  | Done => True
  | Ask part q _ _ next =>
      ((length (filter part b) <= 1)%nat \/ forall D D', q D = q D') /\ forall o, sees_one b (next o)
  end.
Definition places (rel : relation) (b : list X) (p : prog (X := X) (O := O)) (t : list O) : R :=
  sum (fun y => spent rel y p t) b.

Lemma places_done rel b t : places rel b Done t = 0.
Proof. change (sum (fun _ => 0) b = 0). rewrite sum_const. ring. Qed.
Lemma places_ask rel b part q al rh next o t : places rel b (Ask part q al rh next) (o :: t) =
  INR (length (filter part b)) * price rel al rh + places rel b (next o) t.
Proof. unfold places. simpl. now rewrite sum_plus, sum_where. Qed.

Lemma block_add_remove p b r1 r2 : honest_rho p -> sees_one b p ->
  upto (places AddRemove b p) (run p (r1 ++ r2)) (run p (r1 ++ b ++ r2)) /\
  upto (places AddRemove b p) (run p (r1 ++ b ++ r2)) (run p (r1 ++ r2)).
Proof.
  intros Hp Hb. induction p as [|part q al rh next IH].
  - replace (places AddRemove b Done) with (fun _ : list O => 0); [split; apply upto_refl|].
    apply FunctionalExtensionality.functional_extensionality. intros t. now rewrite places_done.
  - destruct Hp as (Ha & Hr & Hqa & Hqr & Hn), Hb as [Hb Hbn]. set (n := length (filter part b)).
    pose proof (pos_INR n) as H0. set (u := INR n * al). assert (Hu : 0 <= u) by (unfold u; nra).
    assert (Hq : conc_on anywhere u (q (filter part (r1 ++ r2))) (q (filter part (r1 ++ b ++ r2))) /\
                 conc_on anywhere u (q (filter part (r1 ++ b ++ r2))) (q (filter part (r1 ++ r2)))).
    { destruct Hb as [Hb|Hb].
      - rewrite !filter_app. unfold u, n. destruct (filter_one part b Hb) as [->|[y ->]]; simpl length.
        + simpl. split; (eapply conc_more; [|apply conc_refl]); lra.
        + simpl INR. rewrite Rmult_1_l.
          split; apply Hqa; exists y; [left|right]; now exists (filter part r1), (filter part r2).
      - rewrite (Hb (filter part (r1 ++ b ++ r2)) (filter part (r1 ++ r2))).
        split; (eapply conc_more; [|apply conc_refl]); lra. }
    split; apply upto_both with (a := u) (V := fun o t => places AddRemove b (next o) t); try tauto;
      try (intros o t; apply places_ask); intros o; apply (IH o (Hn o) (Hbn o)).
Qed.
Lemma block_replace_one p b b' r1 r2 : honest_rho p -> sees_one b p -> sees_one b' p ->
  upto (fun t => / 2 * (places ReplaceOne b p t + places ReplaceOne b' p t))
    (run p (r1 ++ b ++ r2)) (run p (r1 ++ b' ++ r2)).
Proof.
  intros Hp Hb Hb'. induction p as [|part q al rh next IH].
  - replace (fun t => / 2 * (places ReplaceOne b Done t + places ReplaceOne b' Done t)) with (fun _ : list O => 0);
      [apply upto_refl|].
    apply FunctionalExtensionality.functional_extensionality. intros t. rewrite !places_done. ring.
  - destruct Hp as (Ha & Hr & Hqa & Hqr & Hn), Hb as [Hb Hbn], Hb' as [Hb' Hbn'].
    set (c := price ReplaceOne al rh). set (n := length (filter part b)). set (n' := length (filter part b')).
    assert (Hc : rh <= c /\ al <= / 2 * c).
    { unfold c. simpl. pose proof (Rmax_l rh (2 * al)). pose proof (Rmax_r rh (2 * al)). lra. }
    pose proof (pos_INR n) as H0. pose proof (pos_INR n') as H0'. set (u := / 2 * (INR n * c + INR n' * c)).
    assert (Hu : 0 <= u) by (unfold u; nra).
    apply upto_both with (a := u)
      (V := fun o t => / 2 * (places ReplaceOne b (next o) t + places ReplaceOne b' (next o) t)).
    + exact Hu.
    + intros o t. rewrite !places_ask. fold c n n'. unfold u. ring.
    + destruct Hb as [Hb|Hb]; [|destruct Hb' as [Hb'|Hb']].
      2, 3: rewrite (Hb (filter part (r1 ++ b ++ r2)) (filter part (r1 ++ b' ++ r2))) ||
        rewrite (Hb' (filter part (r1 ++ b ++ r2)) (filter part (r1 ++ b' ++ r2)));
        (eapply conc_more; [|apply conc_refl]); lra.
      destruct Hb' as [Hb'|Hb'].
      2: { rewrite (Hb' (filter part (r1 ++ b ++ r2)) (filter part (r1 ++ b' ++ r2))).
        eapply conc_more; [|apply conc_refl]. lra. }
      rewrite !filter_app. unfold u, n, n'.
      destruct (filter_one part b Hb) as [->|[y ->]], (filter_one part b' Hb') as [->|[y' ->]]; simpl length; simpl INR.
      * simpl. eapply conc_more; [|apply conc_refl]. lra.
      * eapply conc_more; [|apply Hqa; exists y'; left; now exists (filter part r1), (filter part r2)]. lra.
      * eapply conc_more; [|apply Hqa; exists y; right; now exists (filter part r1), (filter part r2)]. lra.
      * eapply conc_more; [|apply Hqr; exists y, y'; now exists (filter part r1), (filter part r2)]. lra.
    + intros o. apply (IH o (Hn o) (Hbn o) (Hbn' o)).
Qed.
End Block.

(** * The master theorem *)
Section Master.
Context {X O C : Type} (coin : dist C) (trees : C -> X -> list nat).
Implicit Types g : tree (X := nat * X) (O := O).

(** Each query keeps its two rhos; one that is asked of no tree looks at nothing. *)
Fixpoint sound_rho g : Prop :=
  match g with
  | Stop => True
  | Query v q alpha rho next => 0 <= alpha /\ 0 <= rho /\ concentrated add_remove alpha q /\
      concentrated replace_one rho q /\ (v <> [] \/ forall D D', q D = q D') /\ forall o, sound_rho (next o)
  | Split _ _ next => sound_rho next
  end.
(** The same charges, of queries that look at nothing. *)
Fixpoint blind g : tree (X := nat * X) (O := O) :=
  match g with
  | Stop => Stop
  | Query v q alpha rho next => Query v (fun _ => q []) alpha rho (fun o => blind (next o))
  | Split v turn next => Split v turn (blind next)
  end.
Lemma blind_sound g : sound_rho g -> sound (blind g).
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; simpl; [easy| |auto].
  intros (Ha & Hr & _ & _ & _ & Hn). split; [assumption|]. split; [assumption|].
  split; [|split; [|intros o; apply IH, Hn]]; intros D D' _; apply within_const;
    (apply (within_weaken (fun _ => 0)); [intros _; assumption|apply within_refl]).
Qed.
Lemma blind_cost rel u g : forall t, path_cost rel u (blind g) t = path_cost rel u g t.
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; simpl; intros t; [reflexivity| |auto].
  destruct t; [reflexivity|]. now rewrite IH.
Qed.
Lemma blind_spent rel y g : forall place t, spent rel y (grow (blind g) place) t = spent rel y (grow g place) t.
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; simpl; intros place t; [reflexivity| |auto].
  destruct t; [reflexivity|]. now rewrite IH.
Qed.

(** A place is in the tree that its record was dealt to. *)
Definition in_own_tree (place : nat * X -> node) : Prop := forall y, exists w, place y = w ++ [fst y].
Lemma move_own v turn place : in_own_tree place -> in_own_tree (move v turn place).
Proof.
  intros H y. destruct (H y) as [w Hw]. unfold move. destruct (node_eq (place y) v) as [<-|]; [|now exists w].
  exists (turn y :: w). now rewrite Hw.
Qed.
Lemma above_own place v y y' : in_own_tree place -> v <> [] -> above v (place y) = true -> above v (place y') = true ->
  fst y = fst y'.
Proof.
  intros H Hv A A'. destruct (H y) as [w Hw], (H y') as [w' Hw'].
  destruct (above_suffix v _ A) as [z Hz]. destruct (above_suffix v _ A') as [z' Hz'].
  destruct (exists_last Hv) as (v0 & k & ->). rewrite Hw, app_assoc in Hz. rewrite Hw', app_assoc in Hz'.
  apply app_inj_tail in Hz as [_ ->]. now apply app_inj_tail in Hz' as [_ ->].
Qed.
Lemma block_one place v c x : in_own_tree place -> v <> [] -> NoDup (trees c x) ->
  (length (filter (fun y => above v (place y)) (block trees c x)) <= 1)%nat.
Proof.
  intros H Hv Hn. unfold block. induction Hn as [|k ks Hk Hn IH]; [simpl; lia|]. simpl.
  destruct (above v (place (k, x))) eqn:A; [|exact IH]. simpl.
  replace (filter (fun y => above v (place y)) (map (fun k => (k, x)) ks)) with (@nil (nat * X)); [simpl; lia|].
  symmetry. clear IH Hn. induction ks as [|j ks IH]; [reflexivity|]. simpl.
  destruct (above v (place (j, x))) eqn:A'; [|apply IH; intros Hi; apply Hk; now right].
  exfalso. apply Hk. left. symmetry. exact (above_own place v (k, x) (j, x) H Hv A A').
Qed.
Lemma forest_sees_one g c x : NoDup (trees c x) -> sound_rho g -> forall place, in_own_tree place ->
  sees_one (block trees c x) (grow g place).
Proof.
  intros Hn. induction g as [|v q al rh next IH|v turn next IH]; simpl; intros Hs place Hp; [exact I| |].
  - destruct Hs as (_ & _ & _ & _ & Hv & Hs). split; [|intros o; now apply IH].
    destruct Hv as [Hv|Hv]; [left; now apply block_one|now right].
  - apply IH; [exact Hs|now apply move_own].
Qed.
Lemma rho_honest g : sound_rho g -> forall place, honest_rho (grow g place).
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; simpl; intros H place; [exact I| |now apply IH].
  destruct H as (Ha & Hr & Hqa & Hqr & _ & Hn). repeat split; auto.
Qed.

(** [trees]: all trees, or one by a coin or by a key.  [beta k]: what the dearest path of tree k spends, a rho. *)
Theorem thm_forest_delta rel g beta rho : sound_rho g -> (forall c x, NoDup (trees c x)) ->
  (forall k u t, path_cost rel (u ++ [k]) g t <= beta k) ->
  (forall c x, sum beta (trees c x) <= rho) ->
  concentrated (neighbours rel) rho (grow_forest coin trees g).
Proof.
  intros Hs Hn Hb Hr. set (place := move [] fst (fun _ : nat * X => [])).
  assert (Hown : in_own_tree place) by (intros y; now exists []).
  assert (Hp : honest_rho (forest g)) by (apply (rho_honest g Hs place)).
  assert (Hone : forall c x, sees_one (block trees c x) (forest g)).
  { intros c x. exact (forest_sees_one g c x (Hn c x) Hs place Hown). }
  assert (Hc : forall c x t, places rel (block trees c x) (forest g) t <= rho).
  { intros c x t. eapply Rle_trans; [|apply (Hr c x)]. unfold places, block. rewrite sum_map.
    apply sum_mono. intros k _.
    change (forest g) with (grow g place). rewrite <- blind_spent.
    eapply Rle_trans; [apply spent_path, blind_sound, Hs|].
    assert (Hk : place (k, x) = [k]) by reflexivity.
    destruct (above_suffix [k] (leaf (blind g) place t (k, x))) as [w ->]; [rewrite <- Hk; apply leaf_below|].
    rewrite blind_cost. apply Hb. }
  enough (concentrated_on anywhere (neighbours rel) rho (grow_forest coin trees g)) by assumption. destruct rel.
  - apply deal_add_remove. intros c x r1 r2.
    destruct (block_add_remove (forest g) (block trees c x) r1 r2 Hp (Hone c x)) as [H1 H2].
    split; (eapply upto_on; [|eassumption]); intros t _; apply Hc.
  - apply deal_replace_one. intros c x x' r1 r2.
    eapply upto_on; [|apply (block_replace_one (forest g) _ _ r1 r2 Hp (Hone c x) (Hone c x'))].
    intros t _. pose proof (Hc c x t). pose proof (Hc c x' t). simpl in *. lra.
Qed.
End Master.

(** * Calibration: what has price b *)
(** Whole numbers of a unit, each of which a record makes larger or leaves alone: by scale at most, all together. *)
Section Sums.
Context {X : Type} (shares : list (X -> nat)) (scale : nat) (rate : posreal).
Hypothesis at_most_scale : forall x, (list_sum (map (fun share => share x) shares) <= scale)%nat.
Definition share_sums (D : list X) : list Z := map (fun share => Z.of_nat (list_sum (map share D))) shares.

Let rates := repeat rate (length shares).
Let size (l : list (X -> nat)) (x : X) : R := INR (list_sum (map (fun share => share x) l)).

Lemma squares_small l x : sum (fun share => INR (share x) * INR (share x)) l <= size l x * size l x.
Proof.
  induction l as [|share l IH]; [unfold size; simpl; lra|].
  assert (E : size (share :: l) x = INR (share x) + size l x) by apply plus_INR. rewrite E. cbn [sum fold_right].
  unfold sum in IH. pose proof (pos_INR (share x)). assert (0 <= size l x) by apply pos_INR. nra.
Qed.
Lemma moved_sums (l : list (X -> nat)) D D' (d : (X -> nat) -> R) :
  (forall share, (IZR (Z.of_nat (list_sum (map share D)) - Z.of_nat (list_sum (map share D')))) *
    (IZR (Z.of_nat (list_sum (map share D)) - Z.of_nat (list_sum (map share D')))) <= d share) ->
  moved (repeat rate (length l)) (map (fun share => Z.of_nat (list_sum (map share D))) l)
    (map (fun share => Z.of_nat (list_sum (map share D'))) l) <= rate * sum d l.
Proof.
  intros H. pose proof (cond_pos rate). induction l as [|share l IH]; [simpl; lra|].
  cbn [length repeat map moved sum fold_right].
  specialize (H share). unfold sum in IH. nra.
Qed.
Lemma sum_around (share : X -> nat) l1 x l2 : Z.of_nat (list_sum (map share (l1 ++ x :: l2))) =
  (Z.of_nat (list_sum (map share (l1 ++ l2))) + Z.of_nat (share x))%Z.
Proof. rewrite !map_app, !list_sum_app. simpl. lia. Qed.
Lemma square_scale x : rate * (size shares x * size shares x) <= rate * (INR scale * INR scale).
Proof.
  pose proof (cond_pos rate). specialize (at_most_scale x). apply le_INR in at_most_scale.
  fold (size shares x) in at_most_scale.
  assert (0 <= size shares x) by apply pos_INR. apply Rmult_le_compat_l; [lra|]. now apply Rmult_le_compat.
Qed.

(** Rate b / L in units of the whole contribution, L = 1 or 2. *)
Theorem thm_forest_delta_sums :
  numbers_cost add_remove rates share_sums (rate * (INR scale * INR scale)) /\
  numbers_cost replace_one rates share_sums (2 * rate * (INR scale * INR scale)).
Proof.
  pose proof (cond_pos rate) as Hr. unfold numbers_cost, share_sums.
  split; intros D D' HN; (split; [now rewrite !map_length|]).
  - destruct HN as [x H]. eapply Rle_trans; [apply (moved_sums _ _ _ (fun share => INR (share x) * INR (share x)))|].
    + intros share. destruct H as [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)];
        rewrite sum_around, INR_IZR_INZ, <- !mult_IZR; apply IZR_le; nia.
    + eapply Rle_trans; [|apply (square_scale x)]. apply Rmult_le_compat_l; [lra|apply squares_small].
  - destruct HN as (x & x' & l1 & l2 & -> & ->).
    eapply Rle_trans; [apply (moved_sums _ _ _ (fun share =>
      INR (share x) * INR (share x) + INR (share x') * INR (share x')))|].
    + intros share. rewrite !sum_around, !INR_IZR_INZ, <- !mult_IZR, <- plus_IZR. apply IZR_le. nia.
    + rewrite sum_plus. pose proof (squares_small shares x). pose proof (squares_small shares x').
      pose proof (square_scale x). pose proof (square_scale x'). nra.
Qed.
End Sums.

(** Rate sqrt(8 b) / R, or under replace-one by the larger of R' and 2 R. *)
Theorem thm_forest_delta_selections {X K} (score : list X -> K -> R) R R' b : 0 < R -> 0 <= R' -> 0 <= b ->
  range add_remove score R -> range replace_one score R' ->
  (let rate := sqrt (8 * b) / R in scores_cost add_remove rate score b) /\
  (let rate := sqrt (8 * b) / Rmax R' (2 * R) in
   scores_cost add_remove rate score (b / 4) /\ scores_cost replace_one rate score b).
Proof.
  intros HR HR' Hb H H'. pose proof (sqrt_pos (8 * b)) as Hs. pose proof (sqrt_sqrt (8 * b) ltac:(lra)) as Hq.
  set (s := sqrt (8 * b)) in *. pose proof (Rmax_l R' (2 * R)) as M1. pose proof (Rmax_r R' (2 * R)) as M2.
  set (m := Rmax R' (2 * R)) in *. assert (Hm : 0 < m) by lra.
  assert (Hle : forall x c, 0 <= x -> 0 <= c -> x <= c * m -> s / m * x * (s / m * x) / 8 <= c * c * b).
  { intros x c Hx Hc Hxc. assert (Hy : 0 <= s / m * x <= c * s).
    { assert (0 <= s / m) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
      split; [now apply Rmult_le_pos|].
      apply Rle_trans with (s / m * (c * m)); [now apply Rmult_le_compat_l|right; field; lra]. }
    assert (s / m * x * (s / m * x) <= c * s * (c * s)) by (apply Rmult_le_compat; lra).
    replace (c * c * b) with (c * c * (s * s) / 8) by (rewrite Hq; field). lra. }
  split; [|split]; cbv zeta.
  - exists R. split; [lra|]. split; [assumption|].
    replace (s / R * R * (s / R * R) / 8) with (s * s / 8) by (field; lra).
    rewrite Hq. lra.
  - exists R. split; [lra|]. split; [assumption|]. eapply Rle_trans; [apply (Hle R (/ 2)); lra|]. right. field.
  - exists R'. split; [lra|]. split; [assumption|]. eapply Rle_trans; [apply (Hle R' 1); lra|]. right. ring.
Qed.

(* book/privacy.md, "One person, many rows": of each person at most k rows are kept, by lots, and learnt from. *)
From Coq Require Import Reals Lra Psatz List Arith Bool Lia Permutation.
From DPForest Require Import Law Privacy.
Import ListNotations.
Open Scope R_scope.

(** * Sorting by any order *)
Section Sort.
Context {A : Type} (before : A -> A -> bool).
Hypothesis total : forall x y, before x y = true \/ before y x = true.
Hypothesis antisymmetric : forall x y, before x y = true -> before y x = true -> x = y.
Hypothesis transitive : forall x y z, before x y = true -> before y z = true -> before x z = true.

Fixpoint insert (x : A) (l : list A) : list A :=
  match l with [] => [x] | y :: m => if before x y then x :: l else y :: insert x m end.
Fixpoint sort (l : list A) : list A := match l with [] => [] | x :: l => insert x (sort l) end.

Lemma insert_insert x y l : insert x (insert y l) = insert y (insert x l).
Proof.
  assert (Hxy : before x y = false -> before y x = true) by (intros E; destruct (total x y); congruence).
  induction l as [|z l IH].
  - simpl. destruct (before x y) eqn:E1, (before y x) eqn:E2; try reflexivity.
    + now rewrite (antisymmetric x y E1 E2).
    + specialize (Hxy eq_refl). congruence.
  - simpl. destruct (before y z) eqn:Ey, (before x z) eqn:Ex; simpl; rewrite ?Ex, ?Ey.
    + destruct (before x y) eqn:E1, (before y x) eqn:E2; rewrite ?Ex, ?Ey; try reflexivity.
      * now rewrite (antisymmetric x y E1 E2).
      * specialize (Hxy eq_refl). congruence.
    + destruct (before x y) eqn:E1; [|reflexivity]. rewrite (transitive x y z E1 Ey) in Ex. discriminate.
    + destruct (before y x) eqn:E2; [|reflexivity]. rewrite (transitive y x z E2 Ex) in Ey. discriminate.
    + now rewrite IH.
Qed.
Lemma sort_permutation l m : Permutation l m -> sort l = sort m.
Proof.
  induction 1 as [|x l m _ IH|x y l|l m n _ IH1 _ IH2]; simpl;
    [reflexivity|now rewrite IH|apply insert_insert|congruence].
Qed.

(** One more comes: of the first j + 1 all but one are the first j of before. *)
Lemma firstn_insert j x : forall l, exists y, adds y (firstn j l) (firstn (S j) (insert x l)).
Proof.
  revert j. assert (H0 : forall l, exists y m, insert x l = y :: m)
    by (intros [|z l]; simpl; [|destruct (before x z)]; eauto).
  induction j as [|j IH]; intros l.
  - destruct (H0 l) as (y & m & ->). exists y, [], []. now split.
  - destruct l as [|z l]; simpl insert.
    + exists x, [], []. now split.
    + destruct (before x z).
      * exists x, [], (firstn (S j) (z :: l)). now split.
      * destruct (IH l) as (y & l1 & l2 & E1 & E2). exists y, (z :: l1), l2. split.
        -- cbn [firstn app]. now rewrite E1.
        -- change (firstn (S (S j)) (z :: insert x l)) with (z :: firstn (S j) (insert x l)). now rewrite E2.
Qed.
End Sort.

Lemma firstn_more {A} j (l : list A) : firstn (S j) l = firstn j l \/ exists y, adds y (firstn j l) (firstn (S j) l).
Proof.
  revert l. induction j as [|j IH]; intros [|z l]; auto.
  - right. exists z, [], []. now split.
  - destruct (IH l) as [E|(y & l1 & l2 & E1 & E2)].
    + left. change (z :: firstn (S j) l = z :: firstn j l). now rewrite E.
    + right. exists y, (z :: l1), l2. split; [cbn [firstn app]; now rewrite E1|].
      change (firstn (S (S j)) (z :: l)) with (z :: firstn (S j) l). now rewrite E2.
Qed.

(** * Rows of persons *)
Section Persons.
Context {P A C O : Type} (who_eq : forall u w : P, {u = w} + {u <> w}) (row_eq : forall a b : A, {a = b} + {a <> b}).
(** All possible persons, in a public order. *)
Context (people : list P) (everybody : forall u, In u people) (once : NoDup people).
(** The order of the names of a person's rows that the lots give, ties decided by a public order. *)
Context (lots : dist C) (before : C -> P -> A * nat -> A * nat -> bool).
Hypothesis total : forall c u x y, before c u x y = true \/ before c u y x = true.
Hypothesis antisymmetric : forall c u x y, before c u x y = true -> before c u y x = true -> x = y.
Hypothesis transitive : forall c u x y z, before c u x y = true -> before c u y z = true -> before c u x z = true.
Context (k : nat).

Definition rows (u : P) (D : list (P * A)) : list A :=
  map snd (filter (fun r => if who_eq (fst r) u then true else false) D).
(** A row's name: its content, and how many rows of this content the person has besides, so far. *)
Fixpoint named (l : list A) : list (A * nat) :=
  match l with [] => [] | a :: l => (a, count_occ row_eq l a) :: named l end.
Definition own (c : C) (u : P) (l : list A) : list A := map fst (firstn k (sort (before c u) (named l))).
Definition kept (c : C) (D : list (P * A)) : list A := flat_map (fun u => own c u (rows u D)) people.

Lemma named_permutation l m : Permutation l m -> Permutation (named l) (named m).
Proof.
  induction 1 as [|a l m H IH|a b l|l m n _ IH1 _ IH2]; simpl; [reflexivity| |..].
  - rewrite (proj1 (Permutation_count_occ row_eq l m) H a). now constructor.
  - destruct (row_eq b a) as [E|N], (row_eq a b) as [E'|N']; subst; try congruence; [reflexivity|constructor].
  - now rewrite IH1.
Qed.
Lemma own_permutation c u l m : Permutation l m -> own c u l = own c u m.
Proof.
  intros H. unfold own. f_equal. f_equal.
  apply (sort_permutation _ (total c u) (antisymmetric c u) (transitive c u)), named_permutation, H.
Qed.
Lemma own_at_most c u l : (length (own c u l) <= k)%nat.
Proof. unfold own. rewrite map_length. apply firstn_le_length. Qed.

(** Elsewhere everything is as it was. *)
Definition others_stay (u : P) (D D' : list (P * A)) : Prop := forall w, w <> u -> Permutation (rows w D) (rows w D').
Lemma kept_around c u D D' : others_stay u D D' -> exists l1 l2,
  kept c D = l1 ++ own c u (rows u D) ++ l2 /\ kept c D' = l1 ++ own c u (rows u D') ++ l2.
Proof.
  intros H. destruct (in_split u people (everybody u)) as (p1 & p2 & E). unfold kept. rewrite E in *.
  apply NoDup_remove_2 in once.
  exists (flat_map (fun w => own c w (rows w D)) p1), (flat_map (fun w => own c w (rows w D)) p2).
  assert (Hp : forall p, ~ In u p ->
    flat_map (fun w => own c w (rows w D')) p = flat_map (fun w => own c w (rows w D)) p).
  { induction p as [|w p IH]; intros Hu; [reflexivity|]. simpl. rewrite IH by (intros Hi; apply Hu; now right).
    f_equal. symmetry. apply own_permutation, H. intros ->. apply Hu. now left. }
  rewrite !flat_map_app. simpl. rewrite !Hp; [split; reflexivity|..]; intros Hi; apply once, in_or_app; tauto.
Qed.

(** lem-own-rows (a) and (b).  A person joins with all rows; or one row of a person who stays is added, removed or
    changed. *)
Definition joins (u : P) (D D' : list (P * A)) : Prop := rows u D = [] /\ others_stay u D D'.
Definition row_of (u : P) (D D' : list (P * A)) : Prop :=
  others_stay u D D' /\ rows u D <> [] /\ rows u D' <> [] /\ exists l,
  (Permutation (rows u D) l \/ exists a, Permutation (rows u D) (a :: l)) /\
  (Permutation (rows u D') l \/ exists a, Permutation (rows u D') (a :: l)).

Lemma own_step c u l j : k = S j -> let m := map fst (firstn j (sort (before c u) (named l))) in
  (own c u l = m \/ exists b, adds b m (own c u l)) /\ forall a, exists b, adds b m (own c u (a :: l)).
Proof.
  intros Hk m. unfold own. rewrite Hk. unfold m.
  assert (Hmap : forall y s t, adds y s t -> adds (fst y) (map (@fst A nat) s) (map fst t)).
  { intros y s t (l1 & l2 & -> & ->). exists (map fst l1), (map fst l2). now rewrite !map_app. }
  split.
  - destruct (firstn_more j (sort (before c u) (named l))) as [E|[y E]];
      [left; congruence|right; exists (fst y); now apply Hmap].
  - intros a. cbn [named sort].
    destruct (firstn_insert (before c u) j (a, count_occ row_eq l a) (sort (before c u) (named l))) as [y E].
    exists (fst y). now apply Hmap.
Qed.

Theorem lem_own_rows c u D D' : (1 <= k)%nat ->
  (joins u D D' -> exists l1 b l2, (length b <= k)%nat /\ kept c D = l1 ++ l2 /\ kept c D' = l1 ++ b ++ l2) /\
  (row_of u D D' -> exists m, (kept c D = m \/ exists a, adds a m (kept c D)) /\
    (kept c D' = m \/ exists a, adds a m (kept c D'))).
Proof.
  intros Hk. split.
  - intros [H0 H]. destruct (kept_around c u D D' H) as (l1 & l2 & E & E'). rewrite H0 in E.
    exists l1, (own c u (rows u D')), l2. split; [apply own_at_most|]. split; [|assumption].
    rewrite E. unfold own. simpl.
    now destruct k.
  - intros (H & _ & _ & l & Hl & Hl'). destruct (kept_around c u D D' H) as (l1 & l2 & E & E').
    destruct k as [|j] eqn:Ek; [lia|]. rewrite <- Ek in *.
    destruct (own_step c u l j Ek) as [Hs Ha]. set (m := map fst _) in *.
    assert (Hout : forall a s t, adds a s t -> adds a (l1 ++ s ++ l2) (l1 ++ t ++ l2)).
    { intros a s t (s1 & s2 & -> & ->). exists (l1 ++ s1), (s2 ++ l2). now rewrite <- !app_assoc. }
    assert (Hown : forall r, Permutation r l \/ (exists a, Permutation r (a :: l)) ->
      own c u r = m \/ exists b, adds b m (own c u r)).
    { intros r [Hr|[a Hr]]; rewrite (own_permutation c u _ _ Hr); [assumption|right; apply Ha]. }
    exists (l1 ++ m ++ l2). rewrite E, E'. split.
    + destruct (Hown _ Hl) as [Er|[b Hb]]; [left; now rewrite Er|right; exists b; now apply Hout].
    + destruct (Hown _ Hl') as [Er|[b Hb]]; [left; now rewrite Er|right; exists b; now apply Hout].
Qed.

(** * What a mechanism on the kept rows promises to persons *)
Context (M : list A -> dist O) (alpha : R) (Halpha : 0 <= alpha).
Definition of_persons (D : list (P * A)) : dist O := bind lots (fun c => M (kept c D)).

Lemma for_all_lots S eps D D' : (forall c, close_on S eps (M (kept c D)) (M (kept c D'))) ->
  close_on S eps (of_persons D) (of_persons D').
Proof.
  intros H B f Hf HS. simpl. apply (E_le_scale lots B); [left; apply exp_pos|..]; try (intros c; apply E_range, Hf).
  intros c. now apply (H c B).
Qed.
Lemma close_more S eps eps' (Q Q' : dist O) : eps <= eps' -> close_on S eps Q Q' -> close_on S eps' Q Q'.
Proof.
  intros He H B f Hf HS. eapply Rle_trans; [apply (H B f Hf HS)|]. apply Rmult_le_compat_r;
    [apply (E_range Q' B f Hf)|now apply exp_le].
Qed.
Lemma close_steps S eps eps' (Q Q' Q'' : dist O) : close_on S eps Q Q' -> close_on S eps' Q' Q'' ->
  close_on S (eps + eps') Q Q''.
Proof.
  intros H H' B f Hf HS. rewrite exp_plus, Rmult_assoc. eapply Rle_trans; [apply (H B f Hf HS)|].
  apply Rmult_le_compat_l; [left; apply exp_pos|now apply (H' B)].
Qed.

Lemma block_steps b : forall l1 l2 : list A, steps add_remove (length b) (l1 ++ l2) (l1 ++ b ++ l2) /\
  steps add_remove (length b) (l1 ++ b ++ l2) (l1 ++ l2).
Proof.
  induction b as [|a b IH]; intros l1 l2; [now split|]. cbn [length steps]. split.
  - destruct (IH (l1 ++ [a]) l2) as [H _]. rewrite <- !app_assoc in H. exists (l1 ++ a :: l2). split; [|exact H].
    exists a. left. now exists l1, l2.
  - destruct (IH l1 l2) as [_ H]. exists (l1 ++ b ++ l2). split; [|exact H]. exists a. right. now exists l1, (b ++ l2).
Qed.

Definition person_add_remove (D D' : list (P * A)) : Prop := exists u, joins u D D' \/ joins u D' D.
Definition person_replaced (D D' : list (P * A)) : Prop := exists u u' D0, joins u D0 D /\ joins u' D0 D'.
Definition row_changed (D D' : list (P * A)) : Prop := exists u, row_of u D D'.

Lemma joins_close S u D D' : (1 <= k)%nat -> private_on S add_remove alpha M -> joins u D D' -> forall c,
  close_on S (INR k * alpha) (M (kept c D)) (M (kept c D')) /\ close_on S (INR k * alpha) (M (kept c D')) (M (kept c D)).
Proof.
  intros Hk HM Hj c. destruct (lem_own_rows c u D D' Hk) as [H _]. destruct (H Hj) as (l1 & b & l2 & Hb & -> & ->).
  destruct (block_steps b l1 l2) as [H1 H2]. apply le_INR in Hb.
  split; (eapply close_more; [|apply (group_privacy_on S add_remove alpha M (length b) HM); eassumption]; nra).
Qed.

(** (a) *)
Lemma persons_on S : (1 <= k)%nat -> private_on S add_remove alpha M ->
  private_on S person_add_remove (INR k * alpha) of_persons.
Proof.
  intros Hk HM D D' [u [H|H]]; apply for_all_lots; intros c; apply (joins_close S u _ _ Hk HM H c).
Qed.
Theorem thm_persons : (1 <= k)%nat -> private add_remove alpha M ->
  private person_add_remove (INR k * alpha) of_persons.
Proof. rewrite <- !private_everywhere. apply persons_on. Qed.

(** (b) The data between are those without either person. *)
Theorem thm_persons_replaced : (1 <= k)%nat -> private add_remove alpha M ->
  private person_replaced (2 * INR k * alpha) of_persons.
Proof.
  rewrite <- !private_everywhere. intros Hk HM D D' (u & u' & D0 & H & H'). apply for_all_lots. intros c.
  replace (2 * INR k * alpha) with (INR k * alpha + INR k * alpha) by ring.
  apply (close_steps _ _ _ _ (M (kept c D0)));
    [apply (joins_close _ u _ _ Hk HM H c)|apply (joins_close _ u' _ _ Hk HM H' c)].
Qed.

(** (c) *)
Theorem thm_persons_row : (1 <= k)%nat -> private add_remove alpha M -> private row_changed (2 * alpha) of_persons.
Proof.
  rewrite <- !private_everywhere. intros Hk HM D D' [u H]. apply for_all_lots. intros c.
  destruct (lem_own_rows c u D D' Hk) as [_ Hr].
  destruct (Hr H) as (m & H1 & H2). replace (2 * alpha) with (alpha + alpha) by ring.
  assert (Hz : forall Q : dist O, close_on (fun _ => True) alpha Q Q)
    by (intros Q B f Hf _; pose proof (exp_ge_1 alpha Halpha); pose proof (E_range Q B f Hf); nra).
  apply (close_steps _ _ _ _ (M m)).
  - destruct H1 as [->|[a Ha]]; [apply Hz|]. apply HM. exists a. now right.
  - destruct H2 as [->|[a Ha]]; [apply Hz|]. apply HM. exists a. now left.
Qed.

(** Of each person one row: an exchanged person, or row of a person who stays, is one exchanged row.
    A table has no order. *)
Lemma own_length c u l : length (own c u l) = min k (length l).
Proof.
  unfold own. rewrite map_length, firstn_length. f_equal. induction l as [|a l IH]; [reflexivity|].
  cbn [named sort length].
  rewrite <- IH. generalize (sort (before c u) (named l)). induction l0 as [|x m IHm]; [reflexivity|]. simpl.
  destruct (before c u _ x); simpl; congruence.
Qed.
Lemma one_kept c u l : k = 1%nat -> l <> [] -> exists a, own c u l = [a].
Proof.
  intros Hk Hl. pose proof (own_length c u l) as H. rewrite Hk in H. destruct l as [|a l]; [congruence|]. simpl in H.
  destruct (own c u (a :: l)) as [|b [|b' m]]; try discriminate. now exists b.
Qed.
Definition person_exchanged (D D' : list (P * A)) : Prop :=
  exists u u' D0, joins u D0 D /\ joins u' D0 D' /\ rows u D <> [] /\ rows u' D' <> [].

Lemma persons_one_row_on S rho : k = 1%nat -> private_on S replace_one rho M ->
  private_on S row_changed rho of_persons /\
  ((forall l m, Permutation l m -> close_on S 0 (M l) (M m)) -> private_on S person_exchanged rho of_persons).
Proof.
  intros Hk HM. split.
  - intros D D' [u (H & H1 & H2 & _)]. apply for_all_lots. intros c.
    destruct (kept_around c u D D' H) as (l1 & l2 & E & E').
    destruct (one_kept c u _ Hk H1) as [a Ea]. destruct (one_kept c u _ Hk H2) as [a' Ea'].
    apply HM. rewrite E, E', Ea, Ea'. exists a, a', l1, l2. now split.
  - intros Hs D D' (u & u' & D0 & [H0 H] & [H0' H'] & H1 & H2). apply for_all_lots. intros c.
    destruct (kept_around c u D0 D H) as (l1 & l2 & E0 & E).
    destruct (kept_around c u' D0 D' H') as (m1 & m2 & E0' & E').
    destruct (one_kept c u _ Hk H1) as [a Ea]. destruct (one_kept c u' _ Hk H2) as [a' Ea'].
    assert (Hn : forall w, own c w [] = []) by (intros w; unfold own; simpl; now destruct k).
    rewrite H0, Hn in E0. rewrite H0', Hn in E0'. simpl in E0, E0'. rewrite E, E', Ea, Ea'. simpl.
    replace rho with (0 + (rho + 0)) by ring.
    apply (close_steps _ _ _ _ (M (a :: kept c D0))); [apply Hs; rewrite E0; symmetry; apply Permutation_middle|].
    apply (close_steps _ _ _ _ (M (a' :: kept c D0))); [|apply Hs; rewrite E0'; apply Permutation_middle].
    apply HM. exists a, a', [], (kept c D0). now split.
Qed.
Theorem thm_persons_one_row rho : k = 1%nat -> private replace_one rho M ->
  private row_changed rho of_persons /\
  ((forall l m, Permutation l m -> close 0 (M l) (M m)) -> private person_exchanged rho of_persons).
Proof.
  intros Hk HM. destruct (persons_one_row_on (fun _ => True) rho Hk) as [H1 H2]; [now apply private_everywhere|].
  split; [now apply private_everywhere|]. intros Hs. apply private_everywhere, H2. intros l m Hp B f Hf _.
  exact (Hs l m Hp B f Hf).
Qed.
End Persons.

(* book/machine_checked.md, "With a delta": a ledger of rhos, what it adds up to, and what that is in epsilon and delta.
   The ledger is that of Certificate.v, and so are its sum and the division of records; its charges are rhos. *)
From Coq Require Import Reals Lra Psatz List ZArith Arith Bool Lia Permutation QArith Qreals.
From DPForest Require Import Law Privacy Program Forest Persons Certificate Concentrated.
Import ListNotations.
Open Scope R_scope.

(** * Paths of rhos *)
Section Program.
Context {X O : Type}.

(** Each query keeps its two rhos. *)
Fixpoint honest_rho (p : prog (X := X) (O := O)) : Prop :=
  match p with
  | Done => True
  | Ask _ q alpha rho next => 0 <= alpha /\ 0 <= rho /\ concentrated add_remove alpha q /\
      concentrated replace_one rho q /\ forall o, honest_rho (next o)
  end.

Lemma path_add_remove p x D D' : honest_rho p -> adds x D D' ->
  upto (spent AddRemove x p) (run p D) (run p D') /\ upto (spent AddRemove x p) (run p D') (run p D).
Proof.
  intros Hp Had. induction p as [|part q al rh next IH].
  - split; apply upto_refl.
  - destruct Hp as (Ha & Hr & Hqa & Hqr & Hn). set (u := if part x then al else 0).
    assert (Hq : conc_on anywhere u (q (filter part D)) (q (filter part D')) /\
                 conc_on anywhere u (q (filter part D')) (q (filter part D))).
    { pose proof (filter_adds part x D D' Had) as H. unfold u. destruct (part x).
      - split; apply Hqa; exists x; auto.
      - rewrite H. split; apply conc_refl. }
    assert (Hu : 0 <= u) by (unfold u; destruct (part x); lra).
    split; apply upto_both with (a := u) (V := fun o t => spent AddRemove x (next o) t); try tauto;
      try reflexivity; intros o; apply (IH o (Hn o)).
Qed.
Lemma path_replace_one p x x' D D' : honest_rho p -> swaps x x' D D' -> upto (pair_cost x x' p) (run p D) (run p D').
Proof.
  intros Hp Hsw. induction p as [|part q al rh next IH].
  - apply upto_refl.
  - destruct Hp as (Ha & Hr & Hqa & Hqr & Hn).
    set (u := match part x, part x' with true, true => rh | false, false => 0 | _, _ => al end).
    apply upto_both with (a := u) (V := fun o t => pair_cost x x' (next o) t).
    + unfold u; destruct (part x), (part x'); lra.
    + reflexivity.
    + pose proof (filter_swaps part x x' D D' Hsw) as H. unfold u. destruct (part x), (part x').
      * apply Hqr. now exists x, x'.
      * apply Hqa. exists x; auto.
      * apply Hqa. exists x'; auto.
      * rewrite H. apply conc_refl.
    + intros o. apply (IH o (Hn o)).
Qed.

Theorem thm_concentrated_path_add_remove p rho : honest_rho p -> (forall x t, spent AddRemove x p t <= rho) ->
  concentrated add_remove rho (run p).
Proof.
  intros Hp Hr D D' [x [H|H]]; destruct (path_add_remove p x _ _ Hp H) as [H1 H2];
    (eapply upto_on; [|eassumption]); intros t _; apply Hr.
Qed.
Theorem thm_concentrated_path_replace_one p rho : honest_rho p -> (forall x x' t, pair_cost x x' p t <= rho) ->
  concentrated replace_one rho (run p).
Proof.
  intros Hp Hr D D' (x & x' & H). eapply upto_on; [|now apply (path_replace_one p x x')]. intros t _. apply Hr.
Qed.
End Program.

(** * Records dealt by coins *)
Section Deal.
Context {X O C : Type} (coin : dist C) (trees : C -> X -> list nat).
Let law (M : list (nat * X) -> dist O) (l1 l2 : list X) (b : C -> list (nat * X)) : dist O :=
  bind (deal coin trees l1) (fun r1 => bind coin (fun c => bind (deal coin trees l2) (fun r2 => M (r1 ++ b c ++ r2)))).

Lemma law_conc S rho M l1 l2 b b' : (forall c r1 r2, conc_on S rho (M (r1 ++ b c ++ r2)) (M (r1 ++ b' c ++ r2))) ->
  conc_on S rho (law M l1 l2 b) (law M l1 l2 b').
Proof. intros H. apply lem_concentrated_coins. intros r1. apply lem_concentrated_coins. intros c. apply lem_concentrated_coins. intros r2. apply H. Qed.
Lemma law_with M l1 x l2 B f : test B f ->
  E (dealt coin trees M (l1 ++ x :: l2)) f = E (law M l1 l2 (fun c => block trees c x)) f.
Proof. intros _. unfold dealt, law. simpl. now rewrite E_deal_mid. Qed.
Lemma law_without M l1 l2 B f : test B f ->
  E (dealt coin trees M (l1 ++ l2)) f = E (law M l1 l2 (fun _ => [])) f.
Proof.
  intros Hf. unfold dealt, law. simpl. rewrite E_deal_app. apply E_ext. intros r1. symmetry. apply E_const.
  apply (E_range _ B). intros r2. apply E_range, Hf.
Qed.

Lemma deal_add_remove S (M : list (nat * X) -> dist O) rho :
  (forall c x r1 r2, conc_on S rho (M (r1 ++ r2)) (M (r1 ++ block trees c x ++ r2)) /\
                     conc_on S rho (M (r1 ++ block trees c x ++ r2)) (M (r1 ++ r2))) ->
  concentrated_on S add_remove rho (dealt coin trees M).
Proof.
  intros HM D D' [x [(l1 & l2 & -> & ->)|(l1 & l2 & -> & ->)]];
    (eapply conc_same; [intros B f; (apply law_with || apply law_without)..|]); apply law_conc; intros c r1 r2;
    apply (HM c x r1 r2).
Qed.
Lemma deal_replace_one S (M : list (nat * X) -> dist O) rho :
  (forall c x x' r1 r2, conc_on S rho (M (r1 ++ block trees c x ++ r2)) (M (r1 ++ block trees c x' ++ r2))) ->
  concentrated_on S replace_one rho (dealt coin trees M).
Proof.
  intros HM D D' (x & x' & l1 & l2 & -> & ->). eapply conc_same; [intros B f; apply law_with..|].
  apply law_conc. intros c r1 r2. apply HM.
Qed.
End Deal.

(** * The certificate *)
(** What a query is charged are rhos that it keeps. *)
Fixpoint truthful_rho {Y O} (g : fit Y O) : Prop :=
  match g with
  | Stop => True
  | Query _ q alpha rho next => 0 <= alpha /\ 0 <= rho /\ concentrated add_remove alpha q /\
      concentrated replace_one rho q /\ forall o, truthful_rho (next o)
  | Divide _ _ next => truthful_rho next
  end.
Lemma truthful_rho_counted {Y O} (g : fit Y O) : truthful_rho g -> counted g.
Proof. induction g; simpl; intuition auto. Qed.
Lemma truthful_rho_honest {Y O} (g : fit Y O) : truthful_rho g -> forall how, honest_rho (asked g how).
Proof. induction g; simpl; intros; intuition auto. Qed.

Section Certificate.
Context {X O : Type} (coin : dist nat) (g : fit (nat * X) O) (Hg : truthful_rho g).

Theorem thm_certificate_delta rel rho : concentrated_on (affordable g rel rho) (neighbours rel) rho (answers coin g).
Proof.
  pose proof (truthful_rho_honest g Hg start) as Hh. pose proof (truthful_rho_counted g Hg) as Hc.
  assert (HL : forall t, affordable g rel rho t -> exists unit l, 0 < unit /\ ledger_of unit l g t /\ loss rel unit l <= rho)
    by (intros t H; exact H).
  destruct rel; [apply deal_add_remove; intros c x r1 r2|apply deal_replace_one; intros c x x' r1 r2].
  - assert (Ha : adds (c, x) (r1 ++ r2) (r1 ++ block own_tree c x ++ r2)) by (now exists r1, r2).
    destruct (path_add_remove _ _ _ _ Hh Ha) as [H1 H2].
    split; (eapply upto_on; [|eassumption]); intros t Ht; destruct (HL t Ht) as (unit & l & Hu & Hl & He);
      eapply Rle_trans; try exact He; apply (ledger_bounds unit l g t Hu Hc Hl).
  - assert (Hs : swaps (c, x) (c, x') (r1 ++ block own_tree c x ++ r2) (r1 ++ block own_tree c x' ++ r2))
      by (now exists r1, r2).
    eapply upto_on; [|exact (path_replace_one _ _ _ _ _ Hh Hs)]. intros t Ht.
    destruct (HL t Ht) as (unit & l & Hu & Hl & He). eapply Rle_trans; [|exact He].
    apply (ledger_bounds unit l g t Hu Hc Hl).
Qed.
(** If every run affords it, that is the promise itself. *)
Theorem thm_certificate_delta_every_run rel rho : (forall t, affordable g rel rho t) ->
  concentrated (neighbours rel) rho (answers coin g).
Proof.
  intros H D D' HN. eapply conc_fewer; [|exact (thm_certificate_delta rel rho D D' HN)]. intros o _. apply H.
Qed.
End Certificate.

(** * What Coq computes of a conversion: e^x is at most c, by the k-th square of a bound of e^(-x / 2^k) from below *)
Fixpoint squares (bits : Z) (k : nat) (low : Z) : Z :=
  match k with O => low | S k => squares bits k (Z.shiftr (low * low) bits) end.
Definition exp_at_most (k : nat) (x c : Q) : bool :=
  let bits := (2 * Z.of_nat k)%Z in let root := (2 ^ Z.of_nat k)%Z in let one := (2 ^ bits)%Z in
  let low := squares bits k (Z.max 0 (one + - Qnum x * root / QDen x)) in
  ((0 <? Qnum c) && (one * QDen c <=? Qnum c * low))%Z.
(** Rho assures epsilon and delta, by this order and this tangent. *)
Definition assures (k : nat) (rho eps delta a tau : Q) : bool :=
  ((QDen a <? Qnum a)%Z && exp_at_most k ((a - 1) * rho - tau / a - eps) (a / (a - 1)) &&
   exp_at_most k ((a - 1) * rho + (1 - / a) * tau) (a * delta))%Q.

Lemma squares_below bits k : (0 <= bits)%Z -> forall low t, (0 <= low)%Z -> IZR low <= t * IZR (2 ^ bits) ->
  IZR (squares bits k low) <= t ^ (2 ^ k) * IZR (2 ^ bits).
Proof.
  intros Hb. assert (Ho : (0 < 2 ^ bits)%Z) by (apply Z.pow_pos_nonneg; lia). apply IZR_lt in Ho as Ho'. induction k as [|k IH]; intros low t Hl Ht; [simpl; lra|].
  simpl squares. replace (t ^ (2 ^ S k)) with ((t * t) ^ (2 ^ k)).
  2: { rewrite Nat.pow_succ_r', pow_mult. f_equal. simpl. ring. }
  rewrite Z.shiftr_div_pow2 by assumption. set (one := (2 ^ bits)%Z) in *.
  apply IH; [apply Z.div_pos; nia|]. apply IZR_le in Hl as Hl'. pose proof (Z.mul_div_le (low * low) one Ho) as Hd. apply IZR_le in Hd. rewrite !mult_IZR in Hd.
  apply (Rmult_le_reg_l (IZR one)); [assumption|]. eapply Rle_trans; [exact Hd|].
  replace (IZR one * (t * t * IZR one)) with (t * IZR one * (t * IZR one)) by ring. now apply Rmult_le_compat.
Qed.
Lemma exp_power y n : exp y ^ n = exp (INR n * y).
Proof.
  induction n as [|n IH]; [simpl; now rewrite Rmult_0_l, exp_0|]. rewrite S_INR. simpl pow. rewrite IH, <- exp_plus.
  f_equal. ring.
Qed.
Lemma exp_at_most_right k x c : exp_at_most k x c = true -> exp (Q2R x) <= Q2R c.
Proof.
  unfold exp_at_most. set (root := (2 ^ Z.of_nat k)%Z). set (bits := (2 * Z.of_nat k)%Z). set (one := (2 ^ bits)%Z).
  set (low := Z.max 0 _). intros H. assert (Hb : (0 <= bits)%Z) by (unfold bits; lia).
  assert (Er : one = (root * root)%Z) by (unfold one, root, bits; rewrite <- Z.pow_add_r by lia; f_equal; lia).
  apply andb_prop in H as [Hc H]. apply Z.ltb_lt, IZR_lt in Hc. apply Z.leb_le, IZR_le in H. rewrite !mult_IZR in H.
  assert (Hr : (0 < root)%Z) by (apply Z.pow_pos_nonneg; lia). assert (Ho : (0 < one)%Z) by (rewrite Er; nia).
  apply IZR_lt in Hr as Hr'. apply IZR_lt in Ho as Ho'. assert (Eo : IZR one = IZR root * IZR root) by (rewrite Er; apply mult_IZR).
  assert (Hd : 0 < IZR (QDen x)) by (now apply IZR_lt). assert (Hcd : 0 < IZR (QDen c)) by (now apply IZR_lt).
  set (y := - Q2R x / IZR root). assert (Hl : IZR low <= exp y * IZR one).
  { assert (H1 : 1 + y <= exp y) by apply exp_ineq1_le. pose proof (exp_pos y).
    unfold low. destruct (Z.max_spec 0 (one + - Qnum x * root / QDen x)) as [[_ ->]|[_ ->]]; [|simpl; nra].
    rewrite plus_IZR. pose proof (Z.mul_div_le (- Qnum x * root) (QDen x) ltac:(lia)) as Hq. apply IZR_le in Hq.
    rewrite !mult_IZR, opp_IZR in Hq. apply Rle_trans with ((1 + y) * IZR one); [|apply Rmult_le_compat_r; lra].
    replace ((1 + y) * IZR one) with (IZR one + - Q2R x * IZR root) by (unfold y; rewrite Eo; field; lra).
    apply Rplus_le_compat_l, (Rmult_le_reg_l (IZR (QDen x))); [assumption|]. eapply Rle_trans; [exact Hq|].
    unfold Q2R. right. field. lra. }
  assert (Hl0 : (0 <= low)%Z) by apply Z.le_max_l.
  pose proof (squares_below bits k Hb low (exp y) Hl0 Hl) as Hs. rewrite exp_power in Hs.
  replace (INR (2 ^ k) * y) with (- Q2R x) in Hs.
  2: { rewrite pow_INR. change (INR 2) with 2. replace (2 ^ k) with (IZR root); [unfold y; field; lra|].
    unfold root. rewrite <- pow_IZR. reflexivity. }
  fold one in Hs. set (s := IZR (squares bits k low)) in *. rewrite exp_Ropp in Hs. pose proof (exp_pos (Q2R x)) as He.
  unfold Q2R at 2. apply (Rmult_le_reg_r (IZR (QDen c) * IZR one)); [now apply Rmult_lt_0_compat|].
  replace (IZR (Qnum c) * / IZR (QDen c) * (IZR (QDen c) * IZR one)) with (IZR (Qnum c) * IZR one) by (field; lra).
  apply Rle_trans with (exp (Q2R x) * (IZR (Qnum c) * s)); [rewrite (Rmult_comm (IZR (QDen c))); nra|].
  apply Rle_trans with (exp (Q2R x) * (IZR (Qnum c) * (/ exp (Q2R x) * IZR one))).
  - apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; lra.
  - right. field. lra.
Qed.

Lemma assures_nearly {O} (S : O -> Prop) k rho eps delta a tau (P Q : dist O) : assures k rho eps delta a tau = true ->
  conc_on S (Q2R rho) P Q -> nearly_on S (Q2R eps) (Q2R delta) P Q.
Proof.
  intros H. apply andb_prop in H as [H H2]. apply andb_prop in H as [Ha H1]. apply Z.ltb_lt in Ha.
  assert (Ha' : 1 < Q2R a).
  { unfold Q2R. assert (0 < IZR (QDen a)) by (now apply IZR_lt). apply IZR_lt in Ha.
    apply (Rmult_lt_reg_r (IZR (QDen a))); [assumption|]. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  assert (E1 : Q2R 1 = 1) by (unfold Q2R; simpl; lra). assert (Em : Q2R (a - 1)%Q = Q2R a - 1) by (rewrite Q2R_minus; lra).
  assert (N1 : ~ (a == 0)%Q). { intros E. apply Qeq_eqR in E. unfold Q2R at 2 in E. simpl in E. lra. }
  assert (N2 : ~ (a - 1 == 0)%Q). { intros E. apply Qeq_eqR in E. unfold Q2R at 2 in E. simpl in E. lra. }
  apply exp_at_most_right in H1. apply exp_at_most_right in H2.
  rewrite !Q2R_minus, Q2R_mult, Q2R_div, Q2R_div, Em in H1 by assumption.
  rewrite Q2R_plus, !Q2R_mult, Em, Q2R_minus, Q2R_inv, E1 in H2 by assumption.
  now apply conc_nearly with (a := Q2R a) (tau := Q2R tau).
Qed.

(** * What that says of a file *)
(** One row is the unit. *)
Theorem thm_certificate_delta_of_rows rel l d m n k eps delta a tau : at_most rel 1 l d m n = true ->
  assures k (n # m) eps delta a tau = true -> forall (X O : Type) coin (g : fit (nat * X) O), truthful_rho g ->
  approximate_on (of_file l d g) (neighbours rel) (Q2R eps) (Q2R delta) (answers coin g).
Proof.
  intros H Hk X O coin g Hg D D' HN. apply (assures_nearly _ k (n # m) _ _ a tau); [assumption|].
  eapply conc_fewer; [|exact (thm_certificate_delta coin g Hg rel _ D D' HN)].
  intros t. now apply of_file_affordable.
Qed.

(** A person is the unit, of whose rows k are learned from, drawn by lots. *)
Section People.
Context {P A C O : Type} (who_eq : forall u w : P, {u = w} + {u <> w}) (row_eq : forall a b : A, {a = b} + {a <> b}).
Context (people : list P) (everybody : forall u, In u people) (once : NoDup people).
Context (lots : dist C) (before : C -> P -> A * nat -> A * nat -> bool).
Hypothesis ordered : forall c u, (forall x y, before c u x y = true \/ before c u y x = true) /\
  (forall x y, before c u x y = true -> before c u y x = true -> x = y) /\
  (forall x y z, before c u x y = true -> before c u y z = true -> before c u x z = true).
Context (coin : dist nat) (g : fit (nat * A) O) (Hg : truthful_rho g).
Let total c u := proj1 (ordered c u).
Let antisymmetric c u := proj1 (proj2 (ordered c u)).
Let transitive c u := proj2 (proj2 (ordered c u)).

Lemma joins_conc {T} S rho (M : list A -> dist T) k u D D' : 0 <= rho -> (1 <= k)%nat -> concentrated_on S add_remove rho M -> joins who_eq u D D' ->
  forall c, let kept := kept who_eq row_eq people before k c in
  conc_on S (INR k * INR k * rho) (M (kept D)) (M (kept D')) /\
  conc_on S (INR k * INR k * rho) (M (kept D')) (M (kept D)).
Proof.
  intros Hr Hk HM Hj c kept.
  destruct (lem_own_rows who_eq row_eq people everybody once before total antisymmetric transitive k c u D D' Hk) as [H _].
  destruct (H Hj) as (l1 & b & l2 & Hb & E1 & E2). unfold kept. rewrite E1, E2.
  destruct (block_steps b l1 l2) as [H1 H2]. apply le_INR in Hb. pose proof (pos_INR (length b)).
  split; (eapply conc_more; [|apply (lem_concentrated_group S add_remove rho M (length b) HM); eassumption]);
    apply Rmult_le_compat_r; try assumption; now apply Rmult_le_compat.
Qed.

(** All rows of a person are added or removed: the rho of a group grows with its square. *)
Theorem thm_certificate_delta_of_persons j l d m n k eps delta a tau : (1 <= j)%nat ->
  at_most AddRemove (Z.of_nat j * Z.of_nat j) l d m n = true -> assures k (n # m) eps delta a tau = true ->
  approximate_on (of_file l d g) (person_add_remove who_eq) (Q2R eps) (Q2R delta)
    (answers_of_people who_eq row_eq people lots before coin g j).
Proof.
  intros Hj H Hk D D' HN. apply (assures_nearly _ k (n # m) _ _ a tau); [assumption|].
  apply at_most_loss in H as [H0 H]. rewrite mult_IZR, <- !INR_IZR_INZ in H.
  assert (HM : concentrated_on (of_file l d g) add_remove (loss AddRemove (/ IZR (Zpos d)) l) (answers coin g)).
  { intros E E' HE. eapply conc_fewer; [|exact (thm_certificate_delta coin g Hg AddRemove _ E E' HE)].
    intros t Ht. exists (/ IZR (Zpos d))%R, l. split; [now apply Rinv_0_lt_compat, IZR_lt|]. split; [exact Ht|lra]. }
  eapply conc_more; [exact H|]. destruct HN as [u [Hu|Hu]]; apply lem_concentrated_coins; intros c;
    apply (joins_conc _ _ _ j u _ _ H0 Hj HM Hu c).
Qed.

(** Of each person one row. *)
Theorem thm_certificate_delta_of_exchanged_persons l d m n k eps delta a tau : at_most ReplaceOne 1 l d m n = true ->
  assures k (n # m) eps delta a tau = true ->
  approximate_on (of_file l d g) (row_changed who_eq) (Q2R eps) (Q2R delta)
    (answers_of_people who_eq row_eq people lots before coin g 1) /\
  ((forall D D', Permutation D D' -> close_on (of_file l d g) 0 (answers coin g D) (answers coin g D')) ->
   approximate_on (of_file l d g) (person_exchanged who_eq) (Q2R eps) (Q2R delta)
     (answers_of_people who_eq row_eq people lots before coin g 1)).
Proof.
  intros H Hk. set (S := of_file l d g). set (M := answers coin g).
  assert (HM : concentrated_on S replace_one (IZR n / IZR (Zpos m)) M).
  { intros E E' HE. eapply conc_fewer; [|exact (thm_certificate_delta coin g Hg ReplaceOne _ E E' HE)].
    intros t. now apply of_file_affordable. }
  pose proof (kept_around who_eq row_eq people everybody once before total antisymmetric transitive 1) as Ha.
  pose proof (one_kept row_eq before 1) as Ho.
  split; [intros D D' [u (H0 & H1 & H2 & _)]|intros Hs D D' (u & u' & D0 & [H0 Hu] & [H0' Hu'] & H1 & H2)];
    apply (assures_nearly _ k (n # m) _ _ a tau); try assumption; apply lem_concentrated_coins; intros c.
  - destruct (Ha c u D D' H0) as (l1 & l2 & E & E').
    destruct (Ho c u _ eq_refl H1) as [b Eb]. destruct (Ho c u _ eq_refl H2) as [b' Eb'].
    apply HM. rewrite E, E', Eb, Eb'. exists b, b', l1, l2. now split.
  - destruct (Ha c u D0 D Hu) as (l1 & l2 & E0 & E). destruct (Ha c u' D0 D' Hu') as (m1 & m2 & E0' & E').
    destruct (Ho c u _ eq_refl H1) as [b Eb]. destruct (Ho c u' _ eq_refl H2) as [b' Eb'].
    rewrite H0 in E0. rewrite H0' in E0'. unfold own in E0, E0'. simpl in E0, E0'. rewrite E, E', Eb, Eb'. simpl.
    intros th Ht B h Hh HS. set (K := kept who_eq row_eq people before 1 c D0) in *.
    assert (Hp : test (power B th) (fun o => power (h o) th)) by (apply power_test; [lra|assumption]).
    assert (HS' : forall o, power (h o) th <> 0 -> S o).
    { intros o Hn. apply HS. intros Eh. apply Hn. rewrite Eh. apply power_0. }
    assert (P1 : Permutation (l1 ++ b :: l2) (b :: K)) by (rewrite E0; symmetry; apply Permutation_middle).
    assert (P2 : Permutation (b' :: K) (m1 ++ b' :: m2)) by (rewrite E0'; apply Permutation_middle).
    pose proof (Hs _ _ P1 _ _ Hp HS') as G1. pose proof (Hs _ _ P2 B h Hh HS) as G2. rewrite exp_0, Rmult_1_l in G1, G2.
    eapply Rle_trans; [exact G1|]. eapply Rle_trans; [apply (HM (b :: K) (b' :: K)) with (B := B); try assumption|].
    + exists b, b', [], K. now split.
    + apply Rmult_le_compat_l; [left; apply exp_pos|]. apply power_mono; [lra|exact G2].
Qed.
End People.

(* book/machine_checked.md, "A certificate with a delta": the two mechanisms of which charges are rhos, as they are
   drawn.  That they keep them is a theorem, so what is asked of a query is how far one record moves what it reads. *)
From Coq Require Import Reals Lra Psatz List ZArith Permutation QArith Qreals.
From DPForest Require Import Law Privacy Program Forest Persons Certificate Concentrated Delta.
From DPForest Require Import Selection Ranges Gaussian.
Import ListNotations.
Open Scope R_scope.

(** What one record moves costs at most this: whole numbers, and the scores of candidates against each other. *)
Definition numbers_cost {Y} (N : list Y -> list Y -> Prop) rates (numbers : list Y -> list Z) (rho : R) : Prop :=
  forall D D', N D D' -> length (numbers D) = length (numbers D') /\ moved rates (numbers D) (numbers D') <= rho.
Definition scores_cost {Y K} (N : list Y -> list Y -> Prop) rate (score : list Y -> K -> R) (rho : R) : Prop :=
  exists eta, 0 <= eta /\ range N score eta /\ rate * eta * (rate * eta) / 8 <= rho.

(** An answer is a function of noisy numbers, or of a candidate that was selected; or its loss is known, or its rho. *)
Inductive drawn_at {Y O} : (list Y -> dist O) -> R -> R -> Prop :=
| Noisy rates numbers f alpha rho : numbers_cost add_remove rates numbers alpha ->
    numbers_cost replace_one rates numbers rho ->
    drawn_at (fun D => bind (with_gaussians rates (numbers D)) f) alpha rho
| Selected {K} (first : K) others rate score f alpha rho : 0 <= rate -> scores_cost add_remove rate score alpha ->
    scores_cost replace_one rate score rho ->
    drawn_at (fun D => bind (exponential first others rate score D) f) alpha rho
| Losing q a r alpha rho : 0 <= a -> 0 <= r -> private add_remove a q -> private replace_one r q ->
    a * a / 2 <= alpha -> r * r / 2 <= rho -> drawn_at q alpha rho
| Otherwise q alpha rho : concentrated add_remove alpha q -> concentrated replace_one rho q -> drawn_at q alpha rho.

Fixpoint drawn {Y O} (g : fit Y O) : Prop :=
  match g with
  | Stop => True
  | Query _ q alpha rho next => 0 <= alpha /\ 0 <= rho /\ drawn_at q alpha rho /\ forall o, drawn (next o)
  | Divide _ _ next => drawn next
  end.

Lemma selected_conc {Y K} N (first : K) others rate (score : list Y -> K -> R) rho : 0 <= rate ->
  scores_cost N rate score rho -> concentrated N rho (exponential first others rate score).
Proof.
  intros Hr (eta & He & HR & Hc) D D' HN. eapply conc_more; [exact Hc|].
  apply (lem_range_concentrated N); [now apply Rmult_le_pos|now apply thm_exponential_bounded_range|assumption].
Qed.
Lemma losing_conc {Y O} (N : list Y -> list Y -> Prop) (q : list Y -> dist O) c rho : 0 <= c ->
  (forall D D', N D D' -> N D' D) -> private N c q -> c * c / 2 <= rho -> concentrated N rho q.
Proof.
  intros Hc Hs Hq Hr D D' HN. eapply conc_more; [exact Hr|]. now apply (lem_range_concentrated_loss N c q Hc Hs Hq).
Qed.
Lemma drawn_at_conc {Y O} (q : list Y -> dist O) alpha rho : drawn_at q alpha rho ->
  concentrated add_remove alpha q /\ concentrated replace_one rho q.
Proof.
  intros [rates numbers f al rh Ha Hr|K first others rate score f al rh H0 Ha Hr|q' a r al rh H0 H0' Ha Hr Hal Hrh|
    q' al rh Ha Hr]; [..|now split].
  - split; apply thm_post_processing_concentrated; now apply thm_discrete_gaussian.
  - split; apply thm_post_processing_concentrated; now apply selected_conc.
  - split; [apply (losing_conc add_remove q' a)|apply (losing_conc replace_one q' r)]; try assumption.
    + intros D D' [x [H|H]]; exists x; auto.
    + intros D D' (x & x' & l1 & l2 & E1 & E2). exists x', x, l1, l2. auto.
Qed.
Theorem thm_certificate_delta_drawn {Y O} (g : fit Y O) : drawn g -> truthful_rho g.
Proof.
  induction g as [|v q al rh next IH|v w next IH]; simpl; [easy| |easy]. intros (Ha & Hr & Hq & Hn).
  apply drawn_at_conc in Hq as [Hqa Hqr]. auto 7.
Qed.

(** * What that says of a file *)
(** One row is the unit. *)
Theorem thm_certificate_delta_drawn_of_rows rel l d m n k eps delta a tau : at_most rel 1 l d m n = true ->
  assures k (n # m) eps delta a tau = true -> forall (X O : Type) coin (g : fit (nat * X) O), drawn g ->
  approximate_on (of_file l d g) (neighbours rel) (Q2R eps) (Q2R delta) (answers coin g).
Proof.
  intros H Hk X O coin g Hg.
  apply (thm_certificate_delta_of_rows rel l d m n k eps delta a tau H Hk), thm_certificate_delta_drawn, Hg.
Qed.

(** A person is the unit, of whose rows j are learned from, drawn by lots. *)
Section People.
Context {P A C O : Type} (who_eq : forall u w : P, {u = w} + {u <> w}) (row_eq : forall a b : A, {a = b} + {a <> b}).
Context (people : list P) (everybody : forall u, In u people) (once : NoDup people).
Context (lots : dist C) (before : C -> P -> A * nat -> A * nat -> bool).
Hypothesis ordered : forall c u, (forall x y, before c u x y = true \/ before c u y x = true) /\
  (forall x y, before c u x y = true -> before c u y x = true -> x = y) /\
  (forall x y z, before c u x y = true -> before c u y z = true -> before c u x z = true).
Context (coin : dist nat) (g : fit (nat * A) O) (Hg : drawn g).

(** All rows of a person are added or removed. *)
Theorem thm_certificate_delta_drawn_of_persons j l d m n k eps delta a tau : (1 <= j)%nat ->
  at_most AddRemove (Z.of_nat j * Z.of_nat j) l d m n = true -> assures k (n # m) eps delta a tau = true ->
  approximate_on (of_file l d g) (person_add_remove who_eq) (Q2R eps) (Q2R delta)
    (answers_of_people who_eq row_eq people lots before coin g j).
Proof. now apply thm_certificate_delta_of_persons, thm_certificate_delta_drawn. Qed.

(** Of each person one row. *)
Theorem thm_certificate_delta_drawn_of_exchanged_persons l d m n k eps delta a tau :
  at_most ReplaceOne 1 l d m n = true -> assures k (n # m) eps delta a tau = true ->
  approximate_on (of_file l d g) (row_changed who_eq) (Q2R eps) (Q2R delta)
    (answers_of_people who_eq row_eq people lots before coin g 1) /\
  ((forall D D', Permutation D D' -> close_on (of_file l d g) 0 (answers coin g D) (answers coin g D')) ->
   approximate_on (of_file l d g) (person_exchanged who_eq) (Q2R eps) (Q2R delta)
     (answers_of_people who_eq row_eq people lots before coin g 1)).
Proof. now apply thm_certificate_delta_of_exchanged_persons, thm_certificate_delta_drawn. Qed.
End People.

(* book/machine_checked.md, "A certificate with the file": a ledger as a term, what it adds up to, and what that says.
   A fit opens scopes, divides the records of a scope among the scopes in it, and asks; each answer decides what is
   next.  Its ledger has each charge, at its scope, in whole multiples of a unit. *)
From Coq Require Import Reals Lra Psatz List ZArith Arith Bool Lia Permutation.
From DPForest Require Import Law Privacy Program Forest Persons.
Import ListNotations.
Open Scope Z_scope.

(** * A ledger, and what it adds up to *)

(** A scope: whether each record of it is in one of its parts at most; its own charges, where a record is added or
    removed and where one is replaced; and its parts. *)
Inductive ledger := Scope (apart : bool) (own : list (Z * Z)) (parts : list ledger).

Definition plus (x y : Z * Z) : Z * Z := (fst x + fst y, snd x + snd y).
Definition added (l : list (Z * Z)) : Z * Z := fold_right plus (0, 0) l.
(** The two largest costs of one record, and the largest of a replaced one. *)
Definition tops (l : list (Z * Z)) : Z * Z * Z := fold_right (fun c t =>
  (Z.max (fst c) (fst (fst t)), Z.max (snd (fst t)) (Z.min (fst c) (fst (fst t))), Z.max (snd c) (snd t))) (0, 0, 0) l.
Definition of_apart (l : list (Z * Z)) : Z * Z :=
  let '(first, second, stays) := tops l in (first, Z.max stays (first + second)).
Fixpoint cost (l : ledger) : Z * Z :=
  match l with Scope apart own parts => plus (added own) ((if apart then of_apart else added) (map cost parts)) end.

(** The number of a scope among the parts of its parent, and so on; the first turn comes first. *)
Definition address := list nat.
Definition address_eq : forall u v : address, {u = v} + {u <> v} := list_eq_dec Nat.eq_dec.
Definition shifted (n : nat) (e : address * (Z * Z)) : address * (Z * Z) := (n :: fst e, snd e).
Fixpoint under (n : nat) (ls : list (list (address * (Z * Z)))) : list (address * (Z * Z)) :=
  match ls with [] => [] | l :: ls => map (shifted n) l ++ under (S n) ls end.
Fixpoint entries (l : ledger) : list (address * (Z * Z)) :=
  match l with Scope _ own parts => map (fun e => ([], e)) own ++ under 0 (map entries parts) end.

(** * How a fit divides records *)
Section Members.
Context {Y : Type}.

(** The parts of a scope have no records yet; or all of the scope's; or each record is in the part that it names. *)
Inductive way := Closed | Shared | Apart (turn : Y -> nat).
Definition goes (w : way) (n : nat) (y : Y) : bool :=
  match w with Closed => false | Shared => true | Apart turn => turn y =? n end%nat.
Fixpoint member (how : address -> way) (v : address) (y : Y) : bool :=
  match v with [] => true | n :: v => goes (how []) n y && member (fun u => how (n :: u)) v y end.

(** A ledger says of each scope how it was divided, if it was. *)
Definition agrees (apart : bool) (w : way) : Prop :=
  match w with Closed => True | Shared => apart = false | Apart _ => apart = true end.
Fixpoint all_fit (n : nat) (fs : list ((address -> way) -> Prop)) (how : address -> way) : Prop :=
  match fs with [] => True | f :: fs => f (fun u => how (n :: u)) /\ all_fit (S n) fs how end.
Fixpoint fits (l : ledger) (how : address -> way) : Prop :=
  match l with Scope apart _ parts => agrees apart (how []) /\ all_fit 0 (map fits parts) how end.

(** What the charges of a list cost one record, and one that is exchanged. *)
Definition single (how : address -> way) (y : Y) (e : address * (Z * Z)) : Z :=
  if member how (fst e) y then fst (snd e) else 0.
Definition pair (how : address -> way) (y y' : Y) (e : address * (Z * Z)) : Z :=
  match member how (fst e) y, member how (fst e) y' with
  | true, true => snd (snd e) | false, false => 0 | _, _ => fst (snd e) end.
Definition add_up {A} (f : A -> Z) (l : list A) : Z := fold_right (fun e s => f e + s) 0 l.

Lemma add_up_app {A} (f : A -> Z) l m : add_up f (l ++ m) = add_up f l + add_up f m.
Proof. induction l as [|e l IH]; simpl; [reflexivity|]. unfold add_up in *. lia. Qed.
Lemma add_up_map {A B} (h : A -> B) (f : B -> Z) l : add_up f (map h l) = add_up (fun e => f (h e)) l.
Proof. induction l as [|e l IH]; simpl; [reflexivity|]. unfold add_up in *. lia. Qed.
Lemma add_up_ext {A} (f g : A -> Z) l : (forall e, f e = g e) -> add_up f l = add_up g l.
Proof. intros H. induction l as [|e l IH]; simpl; [reflexivity|]. rewrite H. unfold add_up in *. lia. Qed.
Lemma add_up_zero {A} (l : list A) : add_up (fun _ => 0) l = 0.
Proof. induction l; simpl; unfold add_up in *; lia. Qed.

Lemma one_shifted how y n l : add_up (single how y) (map (shifted n) l) =
  if goes (how []) n y then add_up (single (fun u => how (n :: u)) y) l else 0.
Proof.
  rewrite add_up_map. unfold single, shifted. simpl. destruct (goes (how []) n y); simpl;
    [reflexivity|apply add_up_zero].
Qed.
Lemma two_shifted how y y' n l : add_up (pair how y y') (map (shifted n) l) =
  match goes (how []) n y, goes (how []) n y' with
  | true, true => add_up (pair (fun u => how (n :: u)) y y') l
  | true, false => add_up (single (fun u => how (n :: u)) y) l
  | false, true => add_up (single (fun u => how (n :: u)) y') l
  | false, false => 0
  end.
Proof.
  rewrite add_up_map. unfold single, pair, shifted. simpl.
  destruct (goes (how []) n y), (goes (how []) n y'); simpl; try apply add_up_zero; apply add_up_ext; intros e;
    destruct (member (fun u => how (n :: u)) (fst e) y); try reflexivity;
    destruct (member (fun u => how (n :: u)) (fst e) y'); reflexivity.
Qed.

Definition at_least_0 (l : list (address * (Z * Z))) : Prop := forall e, In e l -> 0 <= fst (snd e) /\ 0 <= snd (snd e).

Lemma at_least_0_app l m : at_least_0 (l ++ m) -> at_least_0 l /\ at_least_0 m.
Proof. intros H. split; intros e He; apply H, in_or_app; auto. Qed.
Lemma at_least_0_shifted n l : at_least_0 (map (shifted n) l) -> at_least_0 l.
Proof. intros H e He. apply (H (shifted n e)), in_map, He. Qed.

(** What is to be proved of a ledger. *)
Definition covers (l : ledger) : Prop := 0 <= fst (cost l) /\ 0 <= snd (cost l) /\ forall how, fits l how ->
  (forall y, add_up (single how y) (entries l) <= fst (cost l)) /\
  (forall y y', add_up (pair how y y') (entries l) <= snd (cost l)).

Lemma tops_nonneg l : 0 <= fst (fst (tops l)) /\ 0 <= snd (fst (tops l)) /\ 0 <= snd (tops l).
Proof. induction l as [|c l IH]; simpl; [lia|]. lia. Qed.

Section Parts.
Variable (how : address -> way).
Implicit Types (ps : list ledger) (n : nat).

Lemma closed_none ps : how [] = Closed -> forall n y y',
  add_up (single how y) (under n (map entries ps)) = 0 /\ add_up (pair how y y') (under n (map entries ps)) = 0.
Proof.
  intros Hw. induction ps as [|p ps IH]; intros n y y'; [now split|]. simpl.
    rewrite !add_up_app, one_shifted, two_shifted.
  destruct (IH (S n) y y') as [-> ->]. rewrite Hw. now split.
Qed.
Lemma shared_total ps : how [] = Shared -> Forall covers ps -> forall n, all_fit n (map fits ps) how -> forall y y',
  add_up (single how y) (under n (map entries ps)) <= fst (added (map cost ps)) /\
  add_up (pair how y y') (under n (map entries ps)) <= snd (added (map cost ps)).
Proof.
  intros Hw H. induction H as [|p ps (_ & _ & Hp) _ IH]; intros n Hf y y'; [now split|]. simpl in *.
  destruct Hf as [Hf Hfs]. rewrite !add_up_app, one_shifted, two_shifted, Hw. simpl.
  destruct (Hp _ Hf) as [H1 H2]. specialize (H1 y). specialize (H2 y y'). destruct (IH (S n) Hfs y y'). lia.
Qed.

Variable (turn : Y -> nat).
Hypothesis Hw : how [] = Apart turn.

Lemma apart_past ps : forall n y, (turn y < n)%nat -> add_up (single how y) (under n (map entries ps)) = 0.
Proof.
  induction ps as [|p ps IH]; intros n y Hn; [reflexivity|]. simpl. rewrite add_up_app, one_shifted, Hw. simpl.
  destruct (Nat.eqb_spec (turn y) n); [lia|]. rewrite IH; lia.
Qed.
Lemma apart_one ps : Forall covers ps -> forall n, all_fit n (map fits ps) how -> forall y,
  add_up (single how y) (under n (map entries ps)) <= fst (fst (tops (map cost ps))).
Proof.
  intros H. induction H as [|p ps (H0 & _ & Hp) _ IH]; intros n Hf y; [simpl; lia|]. simpl in *.
    destruct Hf as [Hf Hfs].
  rewrite add_up_app, one_shifted, Hw. simpl. destruct (Hp _ Hf) as [H1 _]. specialize (H1 y).
    specialize (IH (S n) Hfs y).
  destruct (Nat.eqb_spec (turn y) n); [rewrite apart_past by lia; lia|lia].
Qed.
Lemma apart_both ps : Forall covers ps -> forall n, all_fit n (map fits ps) how -> forall y y', turn y <> turn y' ->
  add_up (single how y) (under n (map entries ps)) + add_up (single how y') (under n (map entries ps)) <=
  fst (fst (tops (map cost ps))) + snd (fst (tops (map cost ps))).
Proof.
  intros H. induction H as [|p ps (H0 & _ & Hp) Hps IH]; intros n Hf y y' Hy; [simpl; lia|]. simpl in Hf.
  destruct Hf as [Hf Hfs]. pose proof (apart_one ps Hps (S n) Hfs) as Ho. specialize (IH (S n) Hfs y y' Hy).
  destruct (Hp _ Hf) as [H1 _]. cbn [map under]. rewrite !add_up_app, !one_shifted, Hw. simpl.
  pose proof (tops_nonneg (map cost ps)).
  destruct (Nat.eqb_spec (turn y) n), (Nat.eqb_spec (turn y') n); try lia.
  - rewrite (apart_past ps (S n) y) by lia. specialize (H1 y). specialize (Ho y'). lia.
  - rewrite (apart_past ps (S n) y') by lia. specialize (H1 y'). specialize (Ho y). lia.
Qed.
Lemma apart_parted ps y y' : turn y <> turn y' -> forall n, add_up (pair how y y') (under n (map entries ps)) =
  add_up (single how y) (under n (map entries ps)) + add_up (single how y') (under n (map entries ps)).
Proof.
  intros Hy. induction ps as [|p ps IH]; intros n; [reflexivity|]. simpl.
  rewrite !add_up_app, two_shifted, !one_shifted, IH, Hw. simpl.
  destruct (Nat.eqb_spec (turn y) n), (Nat.eqb_spec (turn y') n); try lia.
Qed.
Lemma apart_past_two ps : forall n y y', turn y = turn y' -> (turn y < n)%nat ->
  add_up (pair how y y') (under n (map entries ps)) = 0.
Proof.
  induction ps as [|p ps IH]; intros n y y' Hy Hn; [reflexivity|]. simpl. rewrite add_up_app, two_shifted, Hw. simpl.
  destruct (Nat.eqb_spec (turn y) n), (Nat.eqb_spec (turn y') n); try lia. rewrite IH; lia.
Qed.
Lemma apart_stays ps : Forall covers ps -> forall n, all_fit n (map fits ps) how -> forall y y', turn y = turn y' ->
  add_up (pair how y y') (under n (map entries ps)) <= snd (tops (map cost ps)).
Proof.
  intros H. induction H as [|p ps (_ & H0 & Hp) _ IH]; intros n Hf y y' Hy; [simpl; lia|]. simpl in *.
  destruct Hf as [Hf Hfs].
  rewrite add_up_app, two_shifted, Hw. simpl. destruct (Hp _ Hf) as [_ H2]. specialize (H2 y y').
  specialize (IH (S n) Hfs y y' Hy).
  destruct (Nat.eqb_spec (turn y) n), (Nat.eqb_spec (turn y') n); try lia. rewrite apart_past_two by lia. lia.
Qed.
End Parts.

Fixpoint by_parts (P : ledger -> Prop) (H : forall apart own parts, Forall P parts -> P (Scope apart own parts)) l :
  P l :=
  match l with Scope apart own parts => H apart own parts
    ((fix go ps : Forall P ps := match ps with
      [] => Forall_nil _ | p :: ps => Forall_cons _ (by_parts P H p) (go ps) end) parts) end.

Lemma own_total how y y' own :
  add_up (single how y) (map (fun e => ([], e)) own) = fst (added own) /\
  add_up (pair how y y') (map (fun e => ([], e)) own) = snd (added own).
Proof. induction own as [|e own [I1 I2]]; [now split|]. simpl. unfold single, pair in *. simpl in *. lia. Qed.
Lemma total_nonneg l : (forall c, In c l -> 0 <= fst c /\ 0 <= snd c) -> 0 <= fst (added l) /\ 0 <= snd (added l).
Proof.
  induction l as [|c l IH]; simpl; intros H; [lia|]. pose proof (H c (or_introl eq_refl)).
  destruct IH as [I1 I2]; [intros; apply H; auto|]. lia.
Qed.

(** The number is at least what any record costs, and any exchange. *)
Lemma cost_keeps l : at_least_0 (entries l) -> covers l.
Proof.
  induction l as [apart own parts IH] using by_parts. intros Hn. simpl in Hn. apply at_least_0_app in Hn as [Ho Hp].
  assert (Hk : Forall covers parts).
  { revert Hp. generalize 0%nat. clear Ho. induction IH as [|p ps Hkp _ IHps]; intros n Hp; [constructor|].
    simpl in Hp. apply at_least_0_app in Hp as [H1 H2]. constructor; [exact (Hkp (at_least_0_shifted _ _ H1))|].
    exact (IHps _ H2). }
  assert (Ho' : 0 <= fst (added own) /\ 0 <= snd (added own)).
  { apply total_nonneg. intros c Hc. apply (Ho ([], c)), in_map_iff. now exists c. }
  assert (Hc : 0 <= fst (added (map cost parts)) /\ 0 <= snd (added (map cost parts))).
  { apply total_nonneg. intros c Hc. apply in_map_iff in Hc as (p & <- & Hi). rewrite Forall_forall in Hk.
    destruct (Hk p Hi) as (H1 & H2 & _). auto. }
  pose proof (tops_nonneg (map cost parts)) as Ht.
  assert (Hm : of_apart (map cost parts) = (fst (fst (tops (map cost parts))),
    Z.max (snd (tops (map cost parts))) (fst (fst (tops (map cost parts))) + snd (fst (tops (map cost parts)))))).
  { unfold of_apart. now destruct (tops (map cost parts)) as [[? ?] ?]. }
  unfold covers. cbn [cost plus fst snd]. split; [|split].
  - destruct apart; [rewrite Hm; simpl|]; lia.
  - destruct apart; [rewrite Hm; simpl|]; lia.
  - intros how [Ha Hf].
    assert (H : forall y y', add_up (single how y) (under 0 (map entries parts)) <=
        fst ((if apart then of_apart else added) (map cost parts)) /\
      add_up (pair how y y') (under 0 (map entries parts)) <=
        snd ((if apart then of_apart else added) (map cost parts))).
    { intros y y'. destruct (how []) as [| |turn] eqn:Hw; simpl in Ha; subst.
      - destruct (closed_none how parts Hw 0 y y') as [-> ->]. destruct apart; [rewrite Hm; simpl|]; lia.
      - now apply shared_total.
      - rewrite Hm. cbn [fst snd]. split; [now apply (apart_one how turn Hw)|].
        destruct (Nat.eq_dec (turn y) (turn y')) as [E|N].
        + pose proof (apart_stays how turn Hw parts Hk 0 Hf y y' E). lia.
        + rewrite (apart_parted how turn Hw parts y y' N). pose proof (apart_both how turn Hw parts Hk 0 Hf y y' N).
          lia. }
    cbn [entries]. split.
    + intros y. rewrite add_up_app. destruct (own_total how y y own) as [-> _]. destruct (H y y). lia.
    + intros y y'. rewrite add_up_app. destruct (own_total how y y' own) as [_ ->]. destruct (H y y'). lia.
Qed.

End Members.
Arguments way : clear implicits.

(** * A fit, and its ledger on a transcript *)
Section Fit.
Context {Y O : Type}.
Open Scope R_scope.

(** Which scope is asked, what, at what losses, and how a scope is divided: all is a function of earlier answers.  Where
    a record goes depends on that record alone. *)
Inductive fit :=
| Stop
| Query (v : address) (q : list Y -> dist O) (alpha rho : R) (next : O -> fit)
| Divide (v : address) (w : way Y) (next : fit).

(** What was divided stays so. *)
Definition divide (how : address -> way Y) (v : address) (w : way Y) (u : address) : way Y :=
  if address_eq u v then match how u with Closed => w | before => before end else how u.

(** A query reads the records of its scope. *)
Fixpoint asked (g : fit) (how : address -> way Y) : prog (X := Y) (O := O) :=
  match g with
  | Stop => Done
  | Query v q alpha rho next => Ask (member how v) q alpha rho (fun o => asked (next o) how)
  | Divide v w next => asked next (divide how v w)
  end.
Definition start : address -> way Y := fun _ => Closed.

(** Each query loses at most what it is charged. *)
Fixpoint truthful (g : fit) : Prop :=
  match g with
  | Stop => True
  | Query _ q alpha rho next =>
      0 <= alpha /\ 0 <= rho /\ private add_remove alpha q /\ private replace_one rho q /\ forall o, truthful (next o)
  | Divide _ _ next => truthful next
  end.

(** Whatever it is that queries keep, what they are charged is at least 0. *)
Fixpoint counted (g : fit) : Prop :=
  match g with
  | Stop => True
  | Query _ _ alpha rho next => 0 <= alpha /\ 0 <= rho /\ forall o, counted (next o)
  | Divide _ _ next => counted next
  end.
Lemma truthful_counted g : truthful g -> counted g.
Proof. induction g; simpl; intuition auto. Qed.

Fixpoint charged (g : fit) (t : list O) : list (address * (R * R)) :=
  match g, t with
  | Query v _ alpha rho next, o :: t => (v, (alpha, rho)) :: charged (next o) t
  | Divide _ _ next, t => charged next t
  | _, _ => []
  end.
Fixpoint ways (g : fit) (how : address -> way Y) (t : list O) : address -> way Y :=
  match g, t with
  | Query _ _ _ _ next, o :: t => ways (next o) how t
  | Divide v w next, t => ways next (divide how v w) t
  | _, _ => how
  end.

Definition in_parts_of (unit : R) (e : address * (Z * Z)) : address * (R * R) :=
  (fst e, (unit * IZR (fst (snd e)), unit * IZR (snd (snd e)))).
(** The ledger has the charges of this transcript, no more and no less, and says how scopes were divided. *)
Definition ledger_of (unit : R) (l : ledger) (g : fit) (t : list O) : Prop :=
  Permutation (charged g t) (map (in_parts_of unit) (entries l)) /\ fits l (ways g start t).

Lemma sound_honest g : truthful g -> forall how, honest (asked g how).
Proof. induction g; simpl; intros; intuition auto. Qed.
Lemma sound_charges g : counted g -> forall t e, In e (charged g t) -> 0 <= fst (snd e) /\ 0 <= snd (snd e).
Proof.
  induction g as [|v q al rh next IH|v w next IH]; simpl; intros H t e He; [easy| |eapply IH; eassumption].
  destruct H as (Ha & Hr & Hn). destruct t as [|o t]; [easy|]. destruct He as [<-|He]; [now split|].
  exact (IH o (Hn o) t e He).
Qed.

(** Who is in a scope now is in it in the end; and if anybody can be, nobody comes later. *)
Definition extends (how how' : address -> way Y) : Prop := forall v, how v = Closed \/ how' v = how v.
Lemma extends_trans h1 h2 h3 : extends h1 h2 -> extends h2 h3 -> extends h1 h3.
Proof.
  intros H H' v. destruct (H v) as [E|E]; [now left|]. destruct (H' v) as [E'|E']; [left|right]; congruence.
Qed.
Lemma extends_divide how v w : extends how (divide how v w).
Proof.
  intros u. unfold divide. destruct (address_eq u v) as [->|]; [|now right]. destruct (how v); auto.
Qed.
Lemma extends_ways g : forall how t, extends how (ways g how t).
Proof.
  induction g as [|v q al rh next IH|v w next IH]; simpl; intros how t; [now right| |].
  - destruct t; [now right|apply IH].
  - eapply extends_trans; [apply extends_divide|apply IH].
Qed.
Lemma member_extends v : forall how how', extends how how' ->
  (forall y, member how v y = member how' v y) \/ (forall y, member how v y = false).
Proof.
  induction v as [|n v IH]; intros how how' H; [now left|]. simpl. destruct (H []) as [E|E]; rewrite E; [now right|].
    clear E.
  destruct (IH (fun u => how (n :: u)) (fun u => how' (n :: u)) (fun u => H (n :: u))) as [E|E].
  - left. intros y. now rewrite E.
  - right. intros y. rewrite E. apply andb_false_r.
Qed.

Lemma spent_charges g : counted g -> forall how t y, spent AddRemove y (asked g how) t <=
  sum (fun e => if member (ways g how t) (fst e) y then fst (snd e) else 0) (charged g t).
Proof.
  induction g as [|v q al rh next IH|v w next IH]; simpl; intros H how t y; [lra| |auto].
  destruct H as (Ha & _ & Hn). destruct t as [|o t]; simpl; [lra|]. specialize (IH o (Hn o) how t y).
  unfold sum in *. destruct (member_extends v how _ (extends_ways (next o) how t)) as [E|E]; rewrite E.
  - destruct (member _ v y); lra.
  - destruct (member _ v y); lra.
Qed.
Lemma pair_charges g : counted g -> forall how t y y', pair_cost y y' (asked g how) t <=
  sum (fun e => match member (ways g how t) (fst e) y, member (ways g how t) (fst e) y' with
    | true, true => snd (snd e) | false, false => 0 | _, _ => fst (snd e) end) (charged g t).
Proof.
  induction g as [|v q al rh next IH|v w next IH]; simpl; intros H how t y y'; [lra| |auto].
  destruct H as (Ha & Hr & Hn). destruct t as [|o t]; simpl; [lra|]. specialize (IH o (Hn o) how t y y').
  unfold sum in *. destruct (member_extends v how _ (extends_ways (next o) how t)) as [E|E]; rewrite !E.
  - destruct (member _ v y), (member _ v y'); lra.
  - destruct (member (ways _ _ _) v y), (member (ways _ _ _) v y'); lra.
Qed.

Lemma sum_permutation {A} (f : A -> R) l m : Permutation l m -> sum f l = sum f m.
Proof. induction 1; unfold sum in *; simpl; lra. Qed.
Lemma sum_units {A} unit (h : A -> address * (R * R)) (f : address * (R * R) -> R) (z : A -> Z) l :
  (forall e, f (h e) = unit * IZR (z e)) -> sum f (map h l) = unit * IZR (add_up z l).
Proof.
  intros H. induction l as [|e l IH]; simpl; [ring|]. unfold sum in *. rewrite plus_IZR, H, IH. unfold add_up. ring.
Qed.

(** The loss of a ledger under a relation. *)
Definition loss (rel : relation) (unit : R) (l : ledger) : R :=
  unit * IZR (match rel with AddRemove => fst (cost l) | ReplaceOne => snd (cost l) end).

Lemma ledger_bounds unit l g t : 0 < unit -> counted g -> ledger_of unit l g t ->
  (forall y, spent AddRemove y (asked g start) t <= loss AddRemove unit l) /\
  (forall y y', pair_cost y y' (asked g start) t <= loss ReplaceOne unit l).
Proof.
  intros Hu Hg [Hp Hf].
  assert (Hn : at_least_0 (entries l)).
  { intros e He. destruct (sound_charges g Hg t (in_parts_of unit e)) as [H1 H2].
    { eapply Permutation_in; [apply Permutation_sym, Hp|]. now apply in_map. }
    simpl in H1, H2. split; apply le_IZR, (Rmult_le_reg_l unit); try assumption; rewrite Rmult_0_r; assumption. }
  destruct (cost_keeps (Y := Y) l Hn) as (_ & _ & Hk). destruct (Hk _ Hf) as [H1 H2]. split.
  - intros y. eapply Rle_trans; [now apply spent_charges|]. rewrite (sum_permutation _ _ _ Hp).
    rewrite (sum_units unit _ _ (single (ways g start t) y)).
    + apply Rmult_le_compat_l; [lra|]. apply IZR_le, H1.
    + intros e. unfold single. simpl. destruct (member _ (fst e) y); ring.
  - intros y y'. eapply Rle_trans; [now apply pair_charges|]. rewrite (sum_permutation _ _ _ Hp).
    rewrite (sum_units unit _ _ (pair (ways g start t) y y')).
    + apply Rmult_le_compat_l; [lra|]. apply IZR_le, H2.
    + intros e. unfold pair. simpl. destruct (member _ (fst e) y), (member _ (fst e) y'); ring.
Qed.
End Fit.
Arguments fit : clear implicits.

(** * The theorem *)
Section Certificate.
Context {X O : Type} (coin : dist nat) (g : fit (nat * X) O) (Hg : truthful g).
Open Scope R_scope.

(** Every record has a coin of its own, which may decide, with the record, to which part of a scope it goes. *)
Definition answers : list X -> dist (list O) := dealt coin own_tree (run (asked g start)).

(** Transcripts with a ledger that costs at most eps. *)
Definition affordable (rel : relation) (eps : R) (t : list O) : Prop :=
  exists unit l, 0 < unit /\ ledger_of unit l g t /\ loss rel unit l <= eps.

(** Of outputs with such ledgers, none is more than e^eps times as likely on a neighbour, alone or together. *)
Theorem thm_certificate rel eps : private_on (affordable rel eps) (neighbours rel) eps answers.
Proof.
  pose proof (sound_honest g Hg start) as Hh. destruct rel.
  - apply dealt_add_remove. intros c x r1 r2.
    assert (Ha : adds (c, x) (r1 ++ r2) (r1 ++ block own_tree c x ++ r2)) by (now exists r1, r2).
    destruct (transcript_add_remove _ _ _ _ Hh Ha) as [H1 H2].
    split; (eapply within_on; [|eassumption]); intros t (unit & l & Hu & Hl & He);
      eapply Rle_trans; try exact He; apply (ledger_bounds unit l g t Hu (truthful_counted g Hg) Hl).
  - apply dealt_replace_one. intros c x x' r1 r2.
    assert (Hs : swaps (c, x) (c, x') (r1 ++ block own_tree c x ++ r2) (r1 ++ block own_tree c x' ++ r2))
      by (now exists r1, r2).
    eapply within_on; [|exact (transcript_replace_one _ _ _ _ _ Hh Hs)]. intros t (unit & l & Hu & Hl & He).
    eapply Rle_trans; [|exact He]. apply (ledger_bounds unit l g t Hu (truthful_counted g Hg) Hl).
Qed.

(** If every run affords it, that is the promise itself. *)
Theorem thm_certificate_every_run rel eps : (forall t, affordable rel eps t) -> private (neighbours rel) eps answers.
Proof.
  intros H. apply private_everywhere. intros D D' HN B f Hf _.
    exact (thm_certificate rel eps D D' HN B f Hf (fun o _ => H o)).
Qed.
End Certificate.

(** What Coq computes for a file: k times the loss of its ledger, in units of 1/d, against a bound n/m. *)
Definition at_most (rel : relation) (k : Z) (l : ledger) (d m : positive) (n : Z) : bool :=
  let c := match rel with AddRemove => fst (cost l) | ReplaceOne => snd (cost l) end in
  (0 <=? c) && (k * c * Zpos m <=? n * Zpos d).
Definition of_file {X O} (l : ledger) (d : positive) (g : fit (nat * X) O) : list O -> Prop :=
  ledger_of (/ IZR (Zpos d)) l g.

Lemma at_most_loss rel k l d m n : at_most rel k l d m n = true ->
  (0 <= loss rel (/ IZR (Zpos d)) l)%R /\ (IZR k * loss rel (/ IZR (Zpos d)) l <= IZR n / IZR (Zpos m))%R.
Proof.
  unfold at_most, loss. set (c := match rel with AddRemove => fst (cost l) | ReplaceOne => snd (cost l) end).
  intros H. apply andb_prop in H as [H0 H]. apply Z.leb_le, IZR_le in H0. apply Z.leb_le, IZR_le in H.
  rewrite !mult_IZR in H. assert (Hd : (0 < IZR (Zpos d))%R) by (now apply IZR_lt).
  split; [apply Rmult_le_pos; [left; now apply Rinv_0_lt_compat|exact H0]|]. assert (Hm :
    (0 < IZR (Zpos m))%R) by (now apply IZR_lt).
  apply (Rmult_le_reg_r (IZR (Zpos m) * IZR (Zpos d))%R); [now apply Rmult_lt_0_compat|].
  replace (IZR k * (/ IZR (Zpos d) * IZR c) * (IZR (Zpos m) * IZR (Zpos d)))%R with (IZR k * IZR c * IZR (Zpos m))%R
    by (field; lra).
  replace (IZR n / IZR (Zpos m) * (IZR (Zpos m) * IZR (Zpos d)))%R with (IZR n * IZR (Zpos d))%R by (field; lra).
  exact H.
Qed.

Lemma of_file_affordable {X O} rel l d m n (g : fit (nat * X) O) t : at_most rel 1 l d m n = true -> of_file l d g t ->
  affordable g rel (IZR n / IZR (Zpos m)) t.
Proof.
  intros H Ht. exists (/ IZR (Zpos d))%R, l. split; [now apply Rinv_0_lt_compat, IZR_lt|]. split; [exact Ht|].
  apply at_most_loss in H as [_ H]. now rewrite Rmult_1_l in H.
Qed.
Lemma fewer_tests {A} (S S' : A -> Prop) eps P Q : (forall t, S t -> S' t) -> close_on S' eps P Q -> close_on S eps P Q.
Proof. intros HS H B f Hf Hn. apply (H B f Hf). intros o Ho. now apply HS, Hn. Qed.

(** One row is the unit. *)
Theorem thm_certificate_of_rows rel l d m n : at_most rel 1 l d m n = true ->
  forall (X O : Type) coin (g : fit (nat * X) O), truthful g ->
  private_on (of_file l d g) (neighbours rel) (IZR n / IZR (Zpos m)) (answers coin g).
Proof.
  intros H X O coin g Hg D D' HN. eapply fewer_tests; [|exact (thm_certificate coin g Hg rel _ D D' HN)].
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
Context (coin : dist nat) (g : fit (nat * A) O) (Hg : truthful g).
Definition answers_of_people (k : nat) : list (P * A) -> dist (list O) :=
  of_persons who_eq row_eq people lots before k (answers coin g).

(** All rows of a person are added or removed. *)
Theorem thm_certificate_of_persons k l d m n : (1 <= k)%nat -> at_most AddRemove (Z.of_nat k) l d m n = true ->
  private_on (of_file l d g) (person_add_remove who_eq) (IZR n / IZR (Zpos m)) (answers_of_people k).
Proof.
  intros Hk H D D' HN. apply at_most_loss in H as [H0 H]. rewrite <- INR_IZR_INZ in H.
  assert (HM : private_on (of_file l d g) add_remove (loss AddRemove (/ IZR (Zpos d)) l) (answers coin g)).
  { intros E E' HE. eapply fewer_tests; [|exact (thm_certificate coin g Hg AddRemove _ E E' HE)].
    intros t Ht. exists (/ IZR (Zpos d))%R, l. split; [now apply Rinv_0_lt_compat, IZR_lt|]. split; [exact Ht|lra]. }
  intros B f Hf HS. eapply Rle_trans.
  - refine (persons_on _ _ people everybody once lots before _ _ _ k _ _ H0 (of_file l d g) Hk HM D D' HN B f Hf HS);
    apply ordered.
  - apply Rmult_le_compat_r; [apply (E_range _ B f Hf)|]. apply exp_le. exact H.
Qed.

(** Of each person one row:
  all rows of a person are exchanged for those of another one, or one row of a person who stays
    is added, removed or changed. *)
Theorem thm_certificate_of_exchanged_persons l d m n : at_most ReplaceOne 1 l d m n = true ->
  private_on (of_file l d g) (row_changed who_eq) (IZR n / IZR (Zpos m)) (answers_of_people 1) /\
  ((forall D D', Permutation D D' -> close_on (of_file l d g) 0 (answers coin g D) (answers coin g D')) ->
   private_on (of_file l d g) (person_exchanged who_eq) (IZR n / IZR (Zpos m)) (answers_of_people 1)).
Proof.
  intros H. refine (persons_one_row_on _ _ people everybody once lots before _ _ _ 1 _ _ _ eq_refl _);
    [apply ordered..|].
  intros E E' HE. eapply fewer_tests; [|exact (thm_certificate coin g Hg ReplaceOne _ E E' HE)].
  intros t. now apply of_file_affordable.
Qed.
End People.

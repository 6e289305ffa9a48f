(* The bridge to the code: a ledger as whole numbers, its dearest path and pair of paths computed, and these numbers
   proved to be the largest costs of which book/privacy.md's path theorem speaks, on that transcript.
   tests/test_formal.py writes the ledgers of real fits as such terms, and lets Coq compute. *)
From Coq Require Import Reals Lra List ZArith Arith Bool Lia.
From DPForest Require Import Law Privacy Program Path.
Import ListNotations.
Open Scope Z_scope.

(** A charge: the node that was asked, and what it costs where a record comes and where one is replaced, in a unit. *)
Definition charge : Type := node * (Z * Z).
Definition nodes (l : list charge) : list node := [] :: map fst l.
Definition add_up (f : charge -> Z) (l : list charge) : Z := fold_right (fun e s => f e + s) 0 l.
Definition route (u : node) : list charge -> Z := add_up (fun e => if above (fst e) u then fst (snd e) else 0).
Definition two_routes (u u' : node) : list charge -> Z := add_up (fun e =>
  match above (fst e) u, above (fst e) u' with true, true => snd (snd e) | false, false => 0 | _, _ => fst (snd e) end).

Definition largest (f : node -> Z) : list node -> Z := fold_right (fun u m => Z.max (f u) m) 0.
Definition dearest (l : list charge) : Z := largest (fun u => route u l) (nodes l).
Definition dearest_pair (l : list charge) : Z := largest (fun u => largest (fun u' => two_routes u u' l) (nodes l)) (nodes l).

(** A whole ledger: what is charged to all records at once, and trees that all see them or are dealt them by coins. *)
Definition forest_cost (by_coin : bool) (own : Z) (trees : list Z) : Z :=
  own + fold_right (if by_coin then Z.max else Z.add) 0 trees.

Lemma largest_spec f ns u0 : In u0 ns -> 0 <= f u0 ->
  (forall u, In u ns -> f u <= largest f ns) /\ exists u, In u ns /\ largest f ns = f u.
Proof.
  intros H0 Hf.
  assert (H : (forall u, In u ns -> f u <= largest f ns) /\ (largest f ns = 0 \/ exists u, In u ns /\ largest f ns = f u)).
  { clear. induction ns as [|v ns [I1 I2]]; [split; [easy|now left]|]. simpl. split.
    - intros u [->|Hu]; [lia|]. specialize (I1 u Hu). lia.
    - destruct (Z.max_spec (f v) (largest f ns)) as [[_ ->]|[_ ->]]; [|right; exists v; auto].
      destruct I2 as [I2|(u & Hu & I2)]; [now left|right; exists u; auto]. }
  destruct H as [H1 [H2|H2]]; [|auto]. split; [assumption|]. exists u0. specialize (H1 u0 H0). split; [assumption|lia].
Qed.

(** Between charged nodes nothing changes: every path costs what the path to some charged node costs. *)
Lemma charged_end l u : exists w, In w (nodes l) /\ forall e, In e l -> above (fst e) u = above (fst e) w.
Proof.
  induction u as [|n u (w & Hw & IH)]; [exists []; split; [now left|auto]|].
  destruct (in_dec node_eq (n :: u) (nodes l)) as [Hin|Hout]; [exists (n :: u); auto|].
  exists w. split; [assumption|]. intros e He. rewrite <- (IH e He). simpl.
  destruct (node_eq (fst e) (n :: u)) as [E|N]; [|reflexivity].
  exfalso. apply Hout. right. rewrite <- E. now apply in_map.
Qed.

Lemma add_up_ext f g l : (forall e, In e l -> f e = g e) -> add_up f l = add_up g l.
Proof. induction l as [|e l IH]; simpl; intros H; [reflexivity|]. rewrite H, IH; auto. Qed.
Lemma add_up_nonneg f l : (forall e, In e l -> 0 <= f e) -> 0 <= add_up f l.
Proof. induction l as [|e l IH]; simpl; intros H; [lia|]. pose proof (H e (or_introl eq_refl)). specialize (IH (fun e He => H e (or_intror He))). lia. Qed.

Definition charges_nonneg (l : list charge) : Prop := forall e, In e l -> 0 <= fst (snd e) /\ 0 <= snd (snd e).

Lemma dearest_spec l : charges_nonneg l -> (forall u, route u l <= dearest l) /\ exists u, dearest l = route u l.
Proof.
  intros Hn. destruct (largest_spec (fun u => route u l) (nodes l) [] (or_introl eq_refl)) as [H1 (u & _ & H2)].
  { apply add_up_nonneg. intros e He. destruct (Hn e He). destruct (above (fst e) []); lia. }
  split; [|now exists u]. intros v. destruct (charged_end l v) as (w & Hw & He).
  replace (route v l) with (route w l); [now apply H1|]. apply add_up_ext. intros e Hin. now rewrite (He e Hin).
Qed.

Lemma dearest_pair_spec l : charges_nonneg l ->
  (forall u u', two_routes u u' l <= dearest_pair l) /\ exists u u', dearest_pair l = two_routes u u' l.
Proof.
  intros Hn.
  assert (H0 : forall u u', 0 <= two_routes u u' l).
  { intros u u'. apply add_up_nonneg. intros e He. destruct (Hn e He). destruct (above (fst e) u), (above (fst e) u'); lia. }
  set (inner := fun u => largest (fun u' => two_routes u u' l) (nodes l)).
  assert (Hi : forall u, (forall u', In u' (nodes l) -> two_routes u u' l <= inner u) /\
    exists u', In u' (nodes l) /\ inner u = two_routes u u' l)
    by (intros u; apply (largest_spec _ _ []); [now left|apply H0]).
  destruct (largest_spec inner (nodes l) [] (or_introl eq_refl)) as [H1 (u & _ & H2)].
  { destruct (Hi []) as [Hu _]. specialize (Hu [] (or_introl eq_refl)). specialize (H0 [] []). lia. }
  split; [|destruct (Hi u) as [_ (u' & _ & E)]; exists u, u'; unfold dearest_pair; fold inner; congruence].
  intros v v'. destruct (charged_end l v) as (w & Hw & He), (charged_end l v') as (w' & Hw' & He').
  replace (two_routes v v' l) with (two_routes w w' l).
  - destruct (Hi w) as [Hv _]. specialize (Hv w' Hw'). specialize (H1 w Hw). unfold dearest_pair. fold inner. lia.
  - apply add_up_ext. intros e Hin. now rewrite (He e Hin), (He' e Hin).
Qed.

(** * What a tree was charged on a transcript *)
Section Ledger.
Context {X O : Type}.
Open Scope R_scope.

Fixpoint charges (g : tree (X := X) (O := O)) (t : list O) : list (node * (R * R)) :=
  match g, t with
  | Query v _ alpha rho next, o :: t => (v, (alpha, rho)) :: charges (next o) t
  | Split _ _ next, t => charges next t
  | _, _ => []
  end.
Definition in_units (unit : R) (e : charge) : node * (R * R) :=
  (fst e, (unit * IZR (fst (snd e)), unit * IZR (snd (snd e)))).

Lemma route_cost unit u g : forall t l, charges g t = map (in_units unit) l ->
  path_cost AddRemove u g t = unit * IZR (route u l).
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; simpl; intros t l H; auto.
  - destruct l; [simpl; ring|discriminate].
  - destruct t as [|o t], l as [|[w [a r]] l]; try discriminate; [simpl; ring|]. injection H as -> -> -> H.
    rewrite (IH o t l H). unfold route. simpl. rewrite plus_IZR. destruct (above w u); ring.
Qed.
Lemma two_routes_cost unit u u' g : forall t l, charges g t = map (in_units unit) l ->
  two_paths_cost u u' g t = unit * IZR (two_routes u u' l).
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; simpl; intros t l H; auto.
  - destruct l; [simpl; ring|discriminate].
  - destruct t as [|o t], l as [|[w [a r]] l]; try discriminate; [simpl; ring|]. injection H as -> -> -> H.
    rewrite (IH o t l H). unfold two_routes. simpl. rewrite plus_IZR. destruct (above w u), (above w u'); ring.
Qed.

(** The number is the largest cost of a path, and of a pair of paths. *)
Theorem thm_path_bridge_add_remove unit g t l : 0 <= unit -> charges_nonneg l -> charges g t = map (in_units unit) l ->
  (forall u, path_cost AddRemove u g t <= unit * IZR (dearest l)) /\
  exists u, path_cost AddRemove u g t = unit * IZR (dearest l).
Proof.
  intros Hu Hn H. destruct (dearest_spec l Hn) as [H1 (u & H2)]. split.
  - intros v. rewrite (route_cost unit v g t l H). apply Rmult_le_compat_l; [assumption|]. apply IZR_le, H1.
  - exists u. now rewrite (route_cost unit u g t l H), H2.
Qed.
Theorem thm_path_bridge_replace_one unit g t l : 0 <= unit -> charges_nonneg l -> charges g t = map (in_units unit) l ->
  (forall u u', two_paths_cost u u' g t <= unit * IZR (dearest_pair l)) /\
  exists u u', two_paths_cost u u' g t = unit * IZR (dearest_pair l).
Proof.
  intros Hu Hn H. destruct (dearest_pair_spec l Hn) as [H1 (u & u' & H2)]. split.
  - intros v v'. rewrite (two_routes_cost unit v v' g t l H). apply Rmult_le_compat_l; [assumption|]. apply IZR_le, H1.
  - exists u, u'. now rewrite (two_routes_cost unit u u' g t l H), H2.
Qed.
End Ledger.

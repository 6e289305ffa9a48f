(* book/budgets.md: harmonic shares, formula (9); what a leaf may spend, formula (10); and why a tree whose every query
   costs at most what its path has left keeps to its budget. *)
From Coq Require Import Reals Lra Psatz List Arith Bool Lia.
From DPForest Require Import Law Privacy Program Path.
Import ListNotations.
Open Scope R_scope.

(** * Formula (9): levels 1 .. d *)
Fixpoint H (d : nat) : R := match d with 0%nat => 0 | S d => H d + / INR (S d) end.
Definition harmonic (eps : R) (d k : nat) : R := eps / H d * / INR (d - k + 1).

Lemma H_pos d : (1 <= d)%nat -> 0 < H d.
Proof.
  induction d as [|d IH]; [lia|]. intros _. cbn [H]. assert (0 < / INR (S d)) by (apply Rinv_0_lt_compat, lt_0_INR; lia).
  destruct d; [simpl in *; lra|]. specialize (IH ltac:(lia)). lra.
Qed.

Lemma harmonic_from eps d j : (1 <= d)%nat -> (j <= d)%nat ->
  sum (harmonic eps d) (seq (d + 1 - j) j) = eps * H j / H d.
Proof.
  intros Hd. induction j as [|j IH]; intros Hj.
  - simpl. unfold Rdiv. ring.
  - cbn [seq]. replace (d + 1 - S j)%nat with (d - j)%nat by lia. cbn [sum fold_right].
    replace (S (d - j)) with (d + 1 - j)%nat by lia. unfold sum in IH. rewrite IH by lia.
    unfold harmonic. replace (d - (d - j) + 1)%nat with (S j) by lia. cbn [H]. unfold Rdiv. ring.
Qed.

(** Shares are positive, grow with the level, and levels k .. d get eps H(d-k+1) / H(d) together, so all get eps. *)
Theorem thm_harmonic eps d : 0 < eps -> (1 <= d)%nat ->
  (forall k, (1 <= k <= d)%nat -> 0 < harmonic eps d k) /\
  (forall k l, (1 <= k < l)%nat -> (l <= d)%nat -> harmonic eps d k < harmonic eps d l) /\
  (forall k, (1 <= k <= d)%nat -> sum (harmonic eps d) (seq k (d - k + 1)) = eps * H (d - k + 1) / H d) /\
  sum (harmonic eps d) (seq 1 d) = eps.
Proof.
  intros He Hd. pose proof (H_pos d Hd) as HH. assert (Hq : 0 < eps / H d) by now apply Rdiv_lt_0_compat.
  repeat split.
  - intros k Hk. apply Rmult_lt_0_compat; [assumption|]. apply Rinv_0_lt_compat, lt_0_INR. lia.
  - intros k l Hk Hl. apply Rmult_lt_compat_l; [assumption|]. apply Rinv_lt_contravar.
    + apply Rmult_lt_0_compat; apply lt_0_INR; lia.
    + apply lt_INR. lia.
  - intros k Hk. rewrite <- harmonic_from by lia. do 2 f_equal; lia.
  - pose proof (harmonic_from eps d d Hd (le_n d)) as E. replace (d + 1 - d)%nat with 1%nat in E by lia. rewrite E. field. lra.
Qed.

(** * Formula (10): a leaf takes what levels 1 .. l-1 have not spent *)
Section Shares.
Context (e : nat -> R) (d : nat) (eps : R) (Hpos : forall k, (1 <= k <= d)%nat -> 0 < e k) (Htotal : sum e (seq 1 d) = eps).
Definition phi (l : nat) : R := eps - sum e (seq 1 (l - 1)).  (* no selection was made at the leaf *)
Definition psi (l : nat) : R := eps - sum e (seq 1 l).        (* the leaf drew "stop" *)

Lemma sum_below l : (l <= d)%nat -> sum e (seq 1 l) + sum e (seq (S l) (d - l)) = eps.
Proof.
  intros Hl. rewrite <- sum_app. replace (S l) with (1 + l)%nat by lia. rewrite <- seq_app. now replace (l + (d - l))%nat with d by lia.
Qed.
Lemma rest_pos k j : (1 <= k)%nat -> (k + j <= S d)%nat -> 0 <= sum e (seq k j) /\ ((1 <= j)%nat -> 0 < sum e (seq k j)).
Proof.
  revert k. induction j as [|j IH]; intros k Hk Hj; cbn [seq sum fold_right].
  - split; [lra|lia].
  - destruct (IH (S k)) as [H0 _]; try lia. pose proof (Hpos k ltac:(lia)). unfold sum in *. split; intros; lra.
Qed.

(** (a) Every path spends exactly eps; a leaf gets what the levels from its own on would have had. *)
Theorem thm_aligned_path l : (1 <= l <= d)%nat ->
  sum e (seq 1 (l - 1)) + phi l = eps /\ phi l = sum e (seq l (d - l + 1)) /\ e l <= phi l /\ (phi l = e l <-> l = d).
Proof.
  intros Hl. pose proof (sum_below (l - 1) ltac:(lia)) as HS. replace (S (l - 1)) with l in HS by lia.
  replace (d - (l - 1))%nat with (d - l + 1)%nat in HS by lia.
  assert (Hphi : phi l = sum e (seq l (d - l + 1))) by (unfold phi; lra).
  assert (Hrest : phi l = e l + sum e (seq (S l) (d - l))).
  { rewrite Hphi. replace (d - l + 1)%nat with (S (d - l)) by lia. reflexivity. }
  destruct (rest_pos (S l) (d - l)) as [H0 H1]; try lia.
  split; [unfold phi; lra|]. split; [assumption|]. split; [lra|]. split; intros E.
  - destruct (Nat.eq_dec l d); [assumption|]. specialize (H1 ltac:(lia)). lra.
  - subst. rewrite Nat.sub_diag in *. simpl in Hrest. lra.
Qed.

(** After "stop" on level l the leaf has psi; with phi the path would spend eps + e l. *)
Theorem thm_stop_budget_path l : (1 <= l < d)%nat ->
  sum e (seq 1 l) + psi l = eps /\ 0 < psi l /\ sum e (seq 1 l) + phi l = eps + e l.
Proof.
  intros Hl. pose proof (sum_below l ltac:(lia)) as HS. destruct (rest_pos (S l) (d - l)) as [_ H1]; try lia.
  specialize (H1 ltac:(lia)). unfold psi, phi. repeat split; try lra.
  assert (E : sum e (seq 1 l) = sum e (seq 1 (l - 1)) + e l); [|lra].
  replace l with (l - 1 + 1)%nat at 1 by lia. rewrite seq_app, sum_app. replace (1 + (l - 1))%nat with l by lia. simpl. lra.
Qed.
End Shares.

(** * A tree that spends only what is left *)
Section Left.
Context {X O : Type} (rel : relation).

(** [left v]: what nodes on the frontier have left of their path's budget; a split gives each child what v has. *)
Definition pay (left : node -> R) (v : node) (b : R) (u : node) : R := if node_eq u v then left v - b else left u.
Definition hand_down (left : node -> R) (v u : node) : R :=
  if node_eq u v then 0 else match u with _ :: w => if node_eq w v then left v + left u else left u | [] => left u end.

(** Every query is paid from what is left at its node. *)
Fixpoint keeps (left : node -> R) (g : tree (X := X) (O := O)) : Prop :=
  match g with
  | Stop => True
  | Query v _ alpha rho next => price rel alpha rho <= left v /\ forall o, keeps (pay left v (price rel alpha rho)) (next o)
  | Split v _ next => keeps (hand_down left v) next
  end.

(** What is left on the path to u. *)
Fixpoint along (left : node -> R) (u : node) : R :=
  left u + match u with [] => 0 | _ :: w => along left w end.

Lemma above_short v u : (length u < length v)%nat -> above v u = false.
Proof. intros Hl. destruct (above v u) eqn:E; [|reflexivity]. destruct (above_length _ _ E). lia. Qed.

Lemma along_pay left v b u : along (pay left v b) u = along left u - (if above v u then b else 0).
Proof.
  induction u as [|n u IH].
  - simpl. unfold pay. destruct (node_eq v []) as [->|N].
    + destruct (node_eq [] []); [ring|congruence].
    + destruct (node_eq [] v); [congruence|ring].
  - cbn [along]. rewrite IH. unfold pay at 1. simpl above. destruct (node_eq (n :: u) v) as [E|N].
    + destruct (node_eq v (n :: u)); [|congruence]. rewrite above_short by (subst v; simpl; lia). rewrite E. ring.
    + destruct (node_eq v (n :: u)); [congruence|]. destruct (above v u); ring.
Qed.

Lemma along_hand_down left v u : 0 <= left v -> along (hand_down left v) u <= along left u.
Proof.
  intros Hv.
  assert (Hnot : forall u, above v u = false -> along (hand_down left v) u = along left u).
  { induction u0 as [|n w IH]; intros E.
    - simpl. unfold hand_down. simpl in E. destruct (node_eq v []); [discriminate|]. destruct (node_eq [] v); [congruence|reflexivity].
    - cbn [along]. simpl in E. destruct (node_eq v (n :: w)); [discriminate|]. rewrite (IH E). f_equal. unfold hand_down.
      destruct (node_eq (n :: w) v); [congruence|]. destruct (node_eq w v) as [->|]; [|reflexivity].
      rewrite above_refl in E. discriminate. }
  assert (Hself : along (hand_down left v) v = along left v - left v).
  { destruct v as [|n w]; cbn [along]; unfold hand_down at 1.
    - destruct (node_eq [] []); [ring|congruence].
    - destruct (node_eq (n :: w) (n :: w)); [|congruence]. rewrite Hnot by (apply above_short; simpl; lia). ring. }
  assert (Hbelow : forall u, above v u = true -> u <> v -> along (hand_down left v) u = along left u).
  { induction u0 as [|n w IH]; intros E N.
    - apply above_nil in E. congruence.
    - apply above_cons in E as [E|E]; [congruence|]. cbn [along]. unfold hand_down at 1.
      destruct (node_eq (n :: w) v); [congruence|]. destruct (node_eq w v) as [->|Nw].
      + rewrite Hself. ring.
      + now rewrite IH. }
  destruct (above v u) eqn:E; [|rewrite (Hnot u E); lra].
  destruct (node_eq u v) as [->|N]; [rewrite Hself; lra|rewrite (Hbelow u E N); lra].
Qed.

Lemma keeps_path_cost g : sound g -> forall left, (forall v, 0 <= left v) -> keeps left g ->
  forall u t, path_cost rel u g t <= along left u.
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; simpl; intros Hs left Hl Hk u t.
  - assert (Hn : forall w, 0 <= along left w).
    { induction w as [|n w Hw]; simpl; pose proof (Hl []); [lra|]. pose proof (Hl (n :: w)). lra. }
    apply Hn.
  - destruct Hs as (Ha & Hr & _ & _ & Hn). destruct Hk as [Hp Hk]. pose proof (price_nonneg rel al rh Ha Hr) as Hpr.
    assert (Hn' : forall w, 0 <= along left w).
    { induction w as [|n w Hw]; simpl; pose proof (Hl []); [lra|]. pose proof (Hl (n :: w)). lra. }
    destruct t as [|o t]; [apply Hn'|].
    assert (Hl' : forall w, 0 <= pay left v (price rel al rh) w).
    { intros w. unfold pay. destruct (node_eq w v); [lra|apply Hl]. }
    pose proof (IH o (Hn o) _ Hl' (Hk o) u t) as HI. rewrite along_pay in HI. destruct (above v u); lra.
  - eapply Rle_trans; [apply (IH Hs (hand_down left v)); [|assumption]|apply along_hand_down, Hl].
    intros w. unfold hand_down. pose proof (Hl v). pose proof (Hl w).
    destruct (node_eq w v); [lra|]. destruct w as [|m w]; [assumption|]. destruct (node_eq w v); lra.
Qed.
End Left.

(** Under replace-one, what two paths cost together is at most the mean of their prices. *)
Lemma two_paths_price {X O} (g : tree (X := X) (O := O)) : sound g -> forall u u' t,
  2 * two_paths_cost u u' g t <= path_cost ReplaceOne u g t + path_cost ReplaceOne u' g t.
Proof.
  induction g as [|v q al rh next IH|v turn next IH]; simpl; intros Hs u u' t; [lra| |auto].
  destruct Hs as (Ha & Hr & _ & _ & Hn). destruct t as [|o t]; [lra|]. specialize (IH o (Hn o) u u' t).
  pose proof (Rmax_l rh (2 * al)). pose proof (Rmax_r rh (2 * al)). destruct (above v u), (above v u'); lra.
Qed.

Definition only {V} (dec : forall u v : V, {u = v} + {u <> v}) (v : V) (b : R) (u : V) : R := if dec u v then b else 0.

Lemma along_only b u v : 0 <= b -> along (only node_eq v b) u <= b.
Proof.
  intros Hb. enough (G : along (only node_eq v b) u = if above v u then b else 0) by (rewrite G; destruct (above v u); lra).
  induction u as [|n u IH].
  - simpl. unfold only. destruct (node_eq [] v), (node_eq v []); try congruence; ring.
  - cbn [along]. rewrite IH. unfold only. simpl. destruct (node_eq (n :: u) v) as [E|N], (node_eq v (n :: u)); try congruence; try ring.
    rewrite above_short by (subst v; simpl; lia). ring.
Qed.

(** thm-aligned (b) and (c), thm-stop-budget: whatever decides, if what it spends is left, the tree keeps to eps. *)
Theorem thm_aligned {X O} rel (g : tree (X := X) (O := O)) eps : sound g -> 0 <= eps ->
  keeps rel (only node_eq [] eps) g -> private (neighbours rel) eps (run (grown g)).
Proof.
  intros Hs He Hk.
  assert (Hc : forall u t, path_cost rel u g t <= eps).
  { intros u t. eapply Rle_trans; [apply (keeps_path_cost rel g Hs (only node_eq [] eps))|now apply along_only]; [|assumption].
    intros v. unfold only. destruct (node_eq v []); lra. }
  destruct rel; [apply thm_path_add_remove; auto|]. apply thm_path_replace_one; [assumption|]. intros u u' t.
  pose proof (two_paths_price g Hs u u' t). pose proof (Hc u t). pose proof (Hc u' t). lra.
Qed.

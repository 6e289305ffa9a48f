(* Sharpness, where a bound is attained on a few records: no smaller number would do.  book/scores.md has the examples. *)
From Coq Require Import Reals Lra List Arith Bool Lia.
From DPForest Require Import Law Privacy Selection Scores Impurities.
Import ListNotations.
Open Scope R_scope.

Lemma arrives {X} (x : X) D : add_remove D (x :: D).
Proof. exists x. left. exists [], D. now split. Qed.
Lemma turns {X} (x x' : X) D : replace_one (x :: D) (x' :: D).
Proof. exists x, x', [], D. now split. Qed.

(** Class counts: a record is its class. *)
Theorem thm_majority_sharp b :
  (range add_remove (fun D c => count (fun x : nat => x) c D) b -> 1 <= b) /\
  (range replace_one (fun D c => count (fun x : nat => x) c D) b -> 2 <= b).
Proof.
  split; intros H.
  - specialize (H _ _ (arrives 0%nat []) 1%nat 0%nat). unfold count in H. simpl in H. lra.
  - specialize (H _ _ (turns 0%nat 1%nat []) 0%nat 1%nat). unfold count in H. simpl in H. lra.
Qed.

(** Three records alike (0), and one of another class: 1 stands with them under the first candidate and alone under the
    second, 2 the other way round. *)
Definition class (x : nat) : nat := match x with 0 => 0 | _ => 1 end.
Definition side (r x : nat) : nat := match x with 0 => 0 | 1 => r | _ => 1 - r end.

(** With n = 4 records 2 (n - 1) / n is 3 / 2. *)
Theorem thm_gini_sharp b :
  (sensitivity (capped 4 add_remove) (score 2 class 2 side) b -> 3 / 2 <= b) /\
  (range (capped 4 add_remove) (score 2 class 2 side) b -> 3 / 2 <= b) /\
  (range (capped 4 replace_one) (score 2 class 2 side) b -> 2 * (3 / 2) <= b).
Proof.
  assert (A : capped 4 add_remove [0; 0; 0]%nat [1; 0; 0; 0]%nat).
  { split; [apply arrives|simpl; lia]. }
  assert (T : capped 4 replace_one [1; 0; 0; 0]%nat [2; 0; 0; 0]%nat).
  { split; [apply turns|simpl; lia]. }
  repeat split; intros H.
  - specialize (H _ _ A 0%nat). unfold score, divided, gini, count, size, sumf in H. simpl in H. lra.
  - specialize (H _ _ A 0%nat 1%nat). unfold score, divided, gini, count, size, sumf in H. simpl in H. lra.
  - specialize (H _ _ T 1%nat 0%nat). unfold score, divided, gini, count, size, sumf in H. simpl in H. lra.
Qed.

(** A target of 1 (record 0), and one of 0 that joins it or stands alone. *)
Definition target (x : nat) : R := match x with 0 => 1 | _ => 0 end.
Theorem thm_two_masses_sharp b :
  range add_remove (divided 2 side (fun D => / 2 * Rabs (mass target D - rest target D))) b -> 1 <= b.
Proof.
  intros H. specialize (H _ _ (arrives 1%nat [0]%nat) 0%nat 1%nat).
  unfold divided, mass, rest, sum, target in H. simpl in H.
  repeat match type of H with context [Rabs ?a] => first
    [ replace a with 0 in H by lra; rewrite Rabs_R0 in H
    | replace a with 1 in H by lra; rewrite Rabs_R1 in H
    | replace a with (-1) in H by lra; rewrite (Rabs_left (-1)) in H by lra ] end.
  lra.
Qed.

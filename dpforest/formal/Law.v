(* Laws of random outputs, from book/privacy.md.
   "A mechanism turns a data set into a random output."  A law is here what it says about tests: to a function f
   with values in [0, B] it gives the mean E f of f under the law.  Means grow with f, add up, and the mean of 1 is 1.
   Nothing else is used, so finite laws, the geometric law on the integers and ideal real noise are all laws. *)
From Coq Require Import Reals Lra Psatz List FunctionalExtensionality.
Import ListNotations.
Open Scope R_scope.

Definition test {A} (B : R) (f : A -> R) : Prop := forall x, 0 <= f x <= B.

Record dist (A : Type) := Dist {
  E : (A -> R) -> R;
  E_mono : forall B f g, test B f -> test B g -> (forall x, f x <= g x) -> E f <= E g;
  E_plus : forall B f g, test B f -> test B g -> E (fun x => f x + g x) = E f + E g;
  E_scale : forall B c f, test B f -> 0 <= c -> E (fun x => c * f x) = c * E f;
  E_one : E (fun _ => 1) = 1 }.
Arguments Dist {A}. Arguments E {A}. Arguments E_mono {A}. Arguments E_plus {A}. Arguments E_scale {A}. Arguments E_one {A}.

Section Means.
Context {A : Type} (d : dist A).

Lemma E_ext f g : (forall x, f x = g x) -> E d f = E d g.
Proof. intros H. f_equal. now apply functional_extensionality. Qed.

Lemma test_one : @test A 1 (fun _ => 1).
Proof. intros x. lra. Qed.

Lemma E_const c : 0 <= c -> E d (fun _ => c) = c.
Proof.
  intros H. rewrite (E_ext _ (fun x => c * (fun _ => 1) x)) by (intros; ring).
  rewrite (E_scale d 1 c _ test_one H), E_one. ring.
Qed.

(** A law lives somewhere, so a test has a bound of at least 0. *)
Lemma test_bound B f : @test A B f -> 0 <= B.
Proof.
  intros H. destruct (Rle_lt_dec 0 B) as [|HB]; [assumption|exfalso].
  assert (H0 : E d (fun _ => 1) = E d (fun _ => 0)).
  { apply E_ext. intros x. specialize (H x). lra. }
  rewrite E_one, E_const in H0; lra.
Qed.

Lemma E_range B f : test B f -> 0 <= E d f <= B.
Proof.
  intros H. pose proof (test_bound B f H) as HB. split.
  - rewrite <- (E_const 0) by lra. apply (E_mono d B); auto; intros x; try apply H; lra.
  - rewrite <- (E_const B) by lra. apply (E_mono d B); auto; intros x; try apply H; lra.
Qed.

Lemma E_le_scale B c f g : 0 <= c -> test B f -> test B g -> (forall x, f x <= c * g x) -> E d f <= c * E d g.
Proof.
  intros Hc Hf Hg H. pose proof (test_bound B f Hf). rewrite <- (E_scale d B) by assumption.
  apply (E_mono d (B + c * B)).
  - intros x. specialize (Hf x). nra.
  - intros x. specialize (Hg x). nra.
  - assumption.
Qed.
End Means.

Lemma test_E {A O} (K : O -> dist A) B (f : O -> A -> R) :
  (forall o, test B (f o)) -> test B (fun o => E (K o) (f o)).
Proof. intros H o. apply E_range, H. Qed.

(** * Random programs: "return x", and "draw from d, then go on with what came out" *)
Program Definition ret {A} (x : A) : dist A := {| E := fun f => f x |}.

Program Definition bind {A B} (d : dist A) (k : A -> dist B) : dist B :=
  {| E := fun f => E d (fun x => E (k x) f) |}.
Next Obligation.
  apply (E_mono d B0); [exact (test_E k B0 (fun _ => f) (fun _ => H))|exact (test_E k B0 (fun _ => g) (fun _ => H0))|].
  intros x. now apply (E_mono (k x) B0).
Qed.
Next Obligation.
  rewrite <- (E_plus d B0); [|exact (test_E k B0 (fun _ => f) (fun _ => H))|exact (test_E k B0 (fun _ => g) (fun _ => H0))].
  apply E_ext. intros x. now apply (E_plus (k x) B0).
Qed.
Next Obligation.
  rewrite <- (E_scale d B0); [|exact (test_E k B0 (fun _ => f) (fun _ => H))|assumption].
  apply E_ext. intros x. now apply (E_scale (k x) B0).
Qed.
Next Obligation. rewrite (E_ext d _ (fun _ => 1)); intros; apply E_one. Qed.

(** Draw, draw again knowing the first outcome, and put the two together by h. *)
Definition both {O Z Y} (h : O -> Z -> Y) (P : dist O) (K : O -> dist Z) : dist Y :=
  bind P (fun o => bind (K o) (fun z => ret (h o z))).
Lemma E_both {O Z Y} (h : O -> Z -> Y) P K f : E (both h P K) f = E P (fun o => E (K o) (fun z => f (h o z))).
Proof. reflexivity. Qed.

(** * Finite laws: a list of outcomes with their probabilities *)
Definition sum {A} (f : A -> R) (l : list A) : R := fold_right (fun x s => f x + s) 0 l.

Lemma sum_ext {A} (f g : A -> R) l : (forall x, In x l -> f x = g x) -> sum f l = sum g l.
Proof. induction l as [|x l IH]; simpl; intros H; [reflexivity|]. rewrite H, IH; auto. Qed.
Lemma sum_plus {A} (f g : A -> R) l : sum (fun x => f x + g x) l = sum f l + sum g l.
Proof. induction l as [|x l IH]; simpl; [ring|]. rewrite IH. ring. Qed.
Lemma sum_scale {A} c (f : A -> R) l : sum (fun x => c * f x) l = c * sum f l.
Proof. induction l as [|x l IH]; simpl; [ring|]. rewrite IH. ring. Qed.
Lemma sum_mono {A} (f g : A -> R) l : (forall x, In x l -> f x <= g x) -> sum f l <= sum g l.
Proof. induction l as [|x l IH]; simpl; intros H; [lra|]. apply Rplus_le_compat; auto. Qed.
Lemma sum_app {A} (f : A -> R) l m : sum f (l ++ m) = sum f l + sum f m.
Proof. induction l as [|x l IH]; simpl; [ring|]. rewrite IH. ring. Qed.
Lemma sum_map {A B} (h : A -> B) f l : sum f (map h l) = sum (fun x => f (h x)) l.
Proof. induction l as [|x l IH]; simpl; [ring|]. now rewrite IH. Qed.
Lemma sum_const {A} c (l : list A) : sum (fun _ => c) l = INR (length l) * c.
Proof. induction l as [|x l IH]; [simpl; ring|]. cbn [sum fold_right length]. unfold sum in IH. rewrite IH, S_INR. ring. Qed.
Lemma sum_nonneg {A} (f : A -> R) l : (forall x, In x l -> 0 <= f x) -> 0 <= sum f l.
Proof. intros H. pose proof (sum_mono (fun _ => 0) f l H) as H'. rewrite sum_const in H'. lra. Qed.

Definition finite {A} (l : list A) (p : A -> R) (nonneg : forall x, In x l -> 0 <= p x) (total : sum p l = 1) : dist A.
Proof.
  refine (Dist (fun f => sum (fun x => p x * f x) l) _ _ _ _).
  - intros B f g _ _ H. apply sum_mono. intros x Hx. apply Rmult_le_compat_l; auto.
  - intros B f g _ _. rewrite <- sum_plus. apply sum_ext. intros; ring.
  - intros B c f _ _. rewrite <- sum_scale. apply sum_ext. intros; ring.
  - transitivity (sum p l); [|exact total]. apply sum_ext. intros; ring.
Defined.
Lemma E_finite {A} (l : list A) p nonneg total f : E (finite l p nonneg total) f = sum (fun x => p x * f x) l.
Proof. reflexivity. Qed.

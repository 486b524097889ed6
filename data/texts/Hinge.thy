theory Hinge
  imports Main
begin

section \<open>Hinges\<close>

text \<open>This theory defines hinges and proves basic facts about turns and
slacks.\<close>

text \<open>A hinge is a set with folds and flips, left and right turns, and left and
right slacks.\<close>

locale hinge =
  fixes fold :: "'a \<Rightarrow> 'a \<Rightarrow> 'a" (infixl "\<cdot>" 70)
    and flat :: "'a" ("\<e>")
    and flip :: "'a \<Rightarrow> 'a"
    and lturn :: "'a \<Rightarrow> 'a \<Rightarrow> 'a"
    and rturn :: "'a \<Rightarrow> 'a \<Rightarrow> 'a"
    and lslack :: "'a \<Rightarrow> 'a \<Rightarrow> 'a"
    and rslack :: "'a \<Rightarrow> 'a \<Rightarrow> 'a"
    and lpart :: "'a \<Rightarrow> 'a \<Rightarrow> 'a"
    and rpart :: "'a \<Rightarrow> 'a \<Rightarrow> 'a"
    and print :: "'a \<Rightarrow> 'a"
  assumes fold_assoc: "(x \<cdot> y) \<cdot> z = x \<cdot> (y \<cdot> z)"
    and flat_fold: "\<e> \<cdot> x = x"
    and flip_fold: "flip x \<cdot> x = \<e>"
    and lturn_def: "lturn x y = (x \<cdot> y) \<cdot> flip x"
    and lslack_def: "lslack x y = (x \<cdot> y) \<cdot> (flip x \<cdot> flip y)"
    and lpart_def: "lpart x y = flip x \<cdot> y"
    and print_fold: "print (x \<cdot> y) = print x \<cdot> print y"
    and fold_flat: "x \<cdot> \<e> = x"
    and fold_flip: "x \<cdot> flip x = \<e>"
    and rturn_def: "rturn x y = flip x \<cdot> (y \<cdot> x)"
    and rslack_def: "rslack x y = (flip y \<cdot> flip x) \<cdot> (y \<cdot> x)"
    and rpart_def: "rpart y x = y \<cdot> flip x"
begin

subsection \<open>Cancelling on the left\<close>

text \<open>A flip cancels its element inside a product.\<close>

lemma flip_fold_cancel_left: "flip x \<cdot> (x \<cdot> y) = y"
  by (simp only: fold_assoc [symmetric] flip_fold flat_fold)

text \<open>An element cancels its flip inside a product.\<close>

lemma fold_flip_cancel_left [simp]: "x \<cdot> (flip x \<cdot> y) = y"
  by (simp only: fold_assoc [symmetric] fold_flip flat_fold)

lemma fold_left_cancel:
  assumes "x \<cdot> y = x \<cdot> z"
  shows "y = z"
  by (simp only: flip_fold_cancel_left [symmetric] assms flip_fold_cancel_left)

lemma fold_left_congr:
  assumes "y = z"
  shows "x \<cdot> y = x \<cdot> z"
  by (simp only: assms)

lemma flip_eq_of_fold:
  assumes "x \<cdot> y = \<e>"
  shows "flip x = y"
proof -
  have "flip x = flip x \<cdot> \<e>" by (simp only: fold_flat [symmetric])
  also have "\<dots> = flip x \<cdot> (x \<cdot> y)" by (simp only: assms [symmetric])
  also have "\<dots> = y" by (simp only: flip_fold_cancel_left)
  finally show ?thesis .
qed

lemma eq_flip_fold_of:
  assumes "x \<cdot> y = z"
  shows "y = flip x \<cdot> z"
proof -
  have "y = flip x \<cdot> (x \<cdot> y)" by (simp only: flip_fold_cancel_left [symmetric])
  also have "\<dots> = flip x \<cdot> z" by (simp only: assms)
  finally show ?thesis .
qed

lemma eq_flat_of_fold_eq:
  assumes "x \<cdot> y = x"
  shows "y = \<e>"
proof -
  have "y = flip x \<cdot> (x \<cdot> y)" by (simp only: flip_fold_cancel_left [symmetric])
  also have "\<dots> = flip (x \<cdot> y) \<cdot> (x \<cdot> y)"
    by (simp only: assms [symmetric])
  also have "\<dots> = \<e>" by (simp only: flip_fold)
  finally show ?thesis .
qed

lemma flip_flat: "flip \<e> = \<e>"
  by (simp only: fold_flat [symmetric] flip_fold)

lemma flip_flip: "flip (flip x) = x"
proof -
  have "flip (flip x) = flip (flip x) \<cdot> \<e>" by (simp only: fold_flat [symmetric])
  also have "\<dots> = flip (flip x) \<cdot> (flip x \<cdot> x)"
    by (simp only: flip_fold [symmetric])
  also have "\<dots> = x" by (simp only: flip_fold_cancel_left)
  finally show ?thesis .
qed

lemma fold_flip_rev [simp]: "flip (x \<cdot> y) = flip y \<cdot> flip x"
proof -
  have "(x \<cdot> y) \<cdot> (flip y \<cdot> flip x) = x \<cdot> (y \<cdot> (flip y \<cdot> flip x))"
    by (simp only: fold_assoc)
  also have "\<dots> = x \<cdot> flip x" by (simp only: fold_flip_cancel_left)
  also have "\<dots> = \<e>" by (simp only: fold_flip)
  finally have "(x \<cdot> y) \<cdot> (flip y \<cdot> flip x) = \<e>" .
  then show ?thesis by (rule flip_eq_of_fold)
qed

lemma flip_inj:
  assumes "flip x = flip y"
  shows "x = y"
proof -
  have "x = flip (flip x)" by (simp only: flip_flip [symmetric])
  also have "\<dots> = flip (flip y)" by (simp only: assms)
  also have "\<dots> = y" by (simp only: flip_flip)
  finally show ?thesis .
qed

lemma fold_fold_flip_rev:
  "flip (x \<cdot> (y \<cdot> z)) = flip z \<cdot> (flip y \<cdot> flip x)"
proof -
  have "flip (x \<cdot> (y \<cdot> z)) = flip (y \<cdot> z) \<cdot> flip x"
    by (simp only: fold_flip_rev)
  also have "\<dots> = (flip z \<cdot> flip y) \<cdot> flip x" by (simp only: fold_flip_rev)
  also have "\<dots> = flip z \<cdot> (flip y \<cdot> flip x)" by (simp only: fold_assoc)
  finally show ?thesis .
qed

text \<open>The affine maps modulo 5, written as pairs, form a hinge; its print forgets
the second entry.\<close>

subsection \<open>The lpart\<close>

text \<open>We show that \<^emph>\<open>dividing by a product is dividing twice\<close>
(@{thm [source] lpart_lpart}).\<close>

text \<open>The lpart solves an equation on the right.\<close>

lemma fold_lpart: "x \<cdot> lpart x y = y"
proof -
  have "x \<cdot> lpart x y = x \<cdot> (flip x \<cdot> y)" by (simp only: lpart_def)
  also have "\<dots> = y" by (simp only: fold_flip_cancel_left)
  finally show ?thesis .
qed

lemma lpart_fold: "lpart x (x \<cdot> y) = y"
  by (simp only: lpart_def flip_fold_cancel_left)

text \<open>Dividing an element by itself.\<close>

lemma lpart_self [simp]: "lpart x x = \<e>"
  by (simp only: lpart_def flip_fold)

text \<open>Dividing by the flat changes nothing.\<close>

lemma flat_lpart: "lpart \<e> x = x"
proof -
  have "lpart \<e> x = flip \<e> \<cdot> x" by (simp only: lpart_def)
  also have "\<dots> = \<e> \<cdot> x" by (simp only: flip_flat)
  also have "\<dots> = x" by (simp only: flat_fold)
  finally show ?thesis .
qed

lemma lpart_flat: "lpart x \<e> = flip x"
  by (simp only: lpart_def fold_flat)

text \<open>The flip exchanges the parts of a lpart.\<close>

lemma flip_lpart: "flip (lpart x y) = lpart y x"
proof -
  have "flip (lpart x y) = flip (flip x \<cdot> y)" by (simp only: lpart_def)
  also have "\<dots> = flip y \<cdot> flip (flip x)" by (simp only: fold_flip_rev)
  also have "\<dots> = flip y \<cdot> x" by (simp only: flip_flip)
  also have "\<dots> = lpart y x" by (simp only: lpart_def [symmetric])
  finally show ?thesis .
qed

text \<open>Lparts can be chained.\<close>

lemma lpart_fold_lpart: "lpart x y \<cdot> lpart y z = lpart x z"
proof -
  have "lpart x y \<cdot> lpart y z = (flip x \<cdot> y) \<cdot> lpart y z"
    by (simp only: lpart_def)
  also have "\<dots> = flip x \<cdot> (y \<cdot> lpart y z)" by (simp only: fold_assoc)
  also have "\<dots> = flip x \<cdot> (y \<cdot> (flip y \<cdot> z))" by (simp only: lpart_def)
  also have "\<dots> = flip x \<cdot> z" by (simp only: fold_flip_cancel_left)
  also have "\<dots> = lpart x z" by (simp only: lpart_def [symmetric])
  finally show ?thesis .
qed

text \<open>A common left factor cancels in a lpart.\<close>

lemma fold_lpart_fold [simp]: "lpart (x \<cdot> y) (x \<cdot> z) = lpart y z"
proof -
  have "lpart (x \<cdot> y) (x \<cdot> z) = flip (x \<cdot> y) \<cdot> (x \<cdot> z)"
    by (simp only: lpart_def)
  also have "\<dots> = (flip y \<cdot> flip x) \<cdot> (x \<cdot> z)"
    by (simp only: fold_flip_rev)
  also have "\<dots> = flip y \<cdot> (flip x \<cdot> (x \<cdot> z))"
    by (simp only: fold_assoc)
  also have "\<dots> = flip y \<cdot> z" by (simp only: flip_fold_cancel_left)
  also have "\<dots> = lpart y z" by (simp only: lpart_def [symmetric])
  finally show ?thesis .
qed

lemma lpart_lpart: "lpart (x \<cdot> y) z = lpart y (lpart x z)"
proof -
  have "lpart (x \<cdot> y) z = flip (x \<cdot> y) \<cdot> z" by (simp only: lpart_def)
  also have "\<dots> = (flip y \<cdot> flip x) \<cdot> z" by (simp only: fold_flip_rev)
  also have "\<dots> = flip y \<cdot> (flip x \<cdot> z)" by (simp only: fold_assoc)
  also have "\<dots> = flip y \<cdot> lpart x z" by (simp only: lpart_def [symmetric])
  also have "\<dots> = lpart y (lpart x z)" by (simp only: lpart_def [symmetric])
  finally show ?thesis .
qed

lemma lpart_fold_assoc: "lpart x y \<cdot> z = lpart x (y \<cdot> z)"
proof -
  have "lpart x y \<cdot> z = (flip x \<cdot> y) \<cdot> z" by (simp only: lpart_def)
  also have "\<dots> = flip x \<cdot> (y \<cdot> z)" by (simp only: fold_assoc)
  also have "\<dots> = lpart x (y \<cdot> z)" by (simp only: lpart_def [symmetric])
  finally show ?thesis .
qed

text \<open>Elements with trivial lpart are equal.\<close>

lemma eq_of_lpart_eq_flat:
  assumes "lpart x y = \<e>"
  shows "y = x"
  by (simp only: fold_lpart [symmetric] assms fold_flat)

subsection \<open>Cancelling on the right\<close>

text \<open>Among the results: \<^emph>\<open>equal elements may be multiplied on the
right\<close> (@{thm [source] fold_right_congr}).\<close>

lemma fold_flip_cancel_right: "(y \<cdot> x) \<cdot> flip x = y"
  by (simp only: fold_assoc fold_flip fold_flat)

lemma flip_fold_cancel_right [simp]: "(y \<cdot> flip x) \<cdot> x = y"
proof -
  have "(y \<cdot> flip x) \<cdot> x = y \<cdot> (flip x \<cdot> x)" by (simp only: fold_assoc)
  also have "\<dots> = y \<cdot> \<e>" by (simp only: flip_fold)
  also have "\<dots> = y" by (simp only: fold_flat)
  finally show ?thesis .
qed

lemma fold_right_cancel:
  assumes "y \<cdot> x = z \<cdot> x"
  shows "y = z"
proof -
  have "y = (y \<cdot> x) \<cdot> flip x" by (simp only: fold_flip_cancel_right [symmetric])
  also have "\<dots> = (z \<cdot> x) \<cdot> flip x" by (simp only: assms)
  also have "\<dots> = z" by (simp only: fold_flip_cancel_right)
  finally show ?thesis .
qed

lemma fold_right_congr:
  assumes "y = z"
  shows "y \<cdot> x = z \<cdot> x"
  by (simp only: assms)

text \<open>An instance of @{thm [source] flat_lpart} in the affine hinge modulo 5: x =
(4, 3).\<close>

lemma
  shows "lpart \<e> (4, 3) = (4, 3)"
  by eval+

lemma flip_eq_of_fold_right:
  assumes "y \<cdot> x = \<e>"
  shows "flip x = y"
  by (simp only: flat_fold [symmetric] assms [symmetric] fold_flip_cancel_right)

lemma eq_fold_flip_of:
  assumes "y \<cdot> x = z"
  shows "y = z \<cdot> flip x"
proof -
  have "y = (y \<cdot> x) \<cdot> flip x" by (simp only: fold_flip_cancel_right [symmetric])
  also have "\<dots> = z \<cdot> flip x" by (simp only: assms)
  finally show ?thesis .
qed

lemma eq_flat_of_fold_eq_right:
  assumes "y \<cdot> x = x"
  shows "y = \<e>"
proof -
  have "y = (y \<cdot> x) \<cdot> flip x" by (simp only: fold_flip_cancel_right [symmetric])
  also have "\<dots> = x \<cdot> flip x" by (simp only: assms)
  also have "\<dots> = \<e>" by (simp only: fold_flip)
  finally show ?thesis .
qed

lemma flip_rev_fold_fold:
  "flip ((z \<cdot> y) \<cdot> x) = (flip x \<cdot> flip y) \<cdot> flip z"
proof -
  have "flip ((z \<cdot> y) \<cdot> x) = flip (z \<cdot> (y \<cdot> x))"
    by (simp only: fold_assoc)
  also have "\<dots> = flip (y \<cdot> x) \<cdot> flip z" by (simp only: fold_flip_rev)
  also have "\<dots> = (flip x \<cdot> flip y) \<cdot> flip z" by (simp only: fold_flip_rev)
  finally show ?thesis .
qed

theorem first_digest:
  shows "x \<cdot> y = \<e> \<Longrightarrow> flip x = y"
    and "x \<cdot> y = x \<Longrightarrow> y = \<e>"
    and "flip (flip x) = x"
    and "lpart \<e> x = x"
    and "lpart x y \<cdot> lpart y z = lpart x z"
    and "lpart x y \<cdot> z = lpart x (y \<cdot> z)"
    and "lpart x y = \<e> \<Longrightarrow> y = x"
    and "(y \<cdot> flip x) \<cdot> x = y"
    and "flip ((z \<cdot> y) \<cdot> x) = (flip x \<cdot> flip y) \<cdot> flip z"
by (fact flip_eq_of_fold eq_flat_of_fold_eq flip_flip flat_lpart lpart_fold_lpart
    lpart_fold_assoc eq_of_lpart_eq_flat flip_fold_cancel_right flip_rev_fold_fold)+

subsection \<open>The rpart\<close>

text \<open>We show that \<^emph>\<open>the flip exchanges the parts of a rpart\<close>
(@{thm [source] flip_rpart}).\<close>

text \<open>The rpart solves an equation on the left.\<close>

lemma rpart_fold: "rpart y x \<cdot> x = y"
proof -
  have "rpart y x \<cdot> x = (y \<cdot> flip x) \<cdot> x" by (simp only: rpart_def)
  also have "\<dots> = y" by (simp only: flip_fold_cancel_right)
  finally show ?thesis .
qed

lemma fold_rpart [simp]: "rpart (y \<cdot> x) x = y"
proof -
  have "rpart (y \<cdot> x) x = (y \<cdot> x) \<cdot> flip x" by (simp only: rpart_def)
  also have "\<dots> = y" by (simp only: fold_flip_cancel_right)
  finally show ?thesis .
qed

lemma rpart_self: "rpart x x = \<e>"
  by (simp only: rpart_def fold_flip)

text \<open>Dividing by the flat changes nothing.\<close>

lemma rpart_flat: "rpart x \<e> = x"
  by (simp only: rpart_def flip_flat fold_flat)

text \<open>The rpart of the flat is the flip.\<close>

lemma flat_rpart: "rpart \<e> x = flip x"
  by (simp only: rpart_def flat_fold)

lemma flip_rpart [simp]: "flip (rpart y x) = rpart x y"
proof -
  have "flip (rpart y x) = flip (y \<cdot> flip x)" by (simp only: rpart_def)
  also have "\<dots> = flip (flip x) \<cdot> flip y" by (simp only: fold_flip_rev)
  also have "\<dots> = x \<cdot> flip y" by (simp only: flip_flip)
  also have "\<dots> = rpart x y" by (simp only: rpart_def [symmetric])
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] flip_rev_fold_fold} in the affine hinge modulo
5: x = (2, 4), y = (4, 3), z = (2, 0).\<close>

lemma
  shows "(2, 0) \<cdot> (4, 3) = (3, 1)"
    and "(3, 1) \<cdot> (2, 4) = (1, 3)"
    and "flip (1, 3) = (1, 2)"
    and "flip (2, 0) = (3, 0)"
    and "flip (4, 3) = (4, 3)"
    and "flip (2, 4) = (3, 3)"
    and "(3, 3) \<cdot> (4, 3) = (2, 2)"
    and "(2, 2) \<cdot> (3, 0) = (1, 2)"
  by eval+

lemma rpart_fold_rpart: "rpart z y \<cdot> rpart y x = rpart z x"
proof -
  have "rpart z y \<cdot> rpart y x = (z \<cdot> flip y) \<cdot> rpart y x"
    by (simp only: rpart_def)
  also have "\<dots> = (z \<cdot> flip y) \<cdot> (y \<cdot> flip x)" by (simp only: rpart_def)
  also have "\<dots> = ((z \<cdot> flip y) \<cdot> y) \<cdot> flip x"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = z \<cdot> flip x" by (simp only: flip_fold_cancel_right)
  also have "\<dots> = rpart z x" by (simp only: rpart_def [symmetric])
  finally show ?thesis .
qed

lemma fold_rpart_fold: "rpart (z \<cdot> x) (y \<cdot> x) = rpart z y"
proof -
  have "rpart (z \<cdot> x) (y \<cdot> x) = (z \<cdot> x) \<cdot> flip (y \<cdot> x)"
    by (simp only: rpart_def)
  also have "\<dots> = (z \<cdot> x) \<cdot> (flip x \<cdot> flip y)"
    by (simp only: fold_flip_rev)
  also have "\<dots> = ((z \<cdot> x) \<cdot> flip x) \<cdot> flip y"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = z \<cdot> flip y" by (simp only: fold_flip_cancel_right)
  also have "\<dots> = rpart z y" by (simp only: rpart_def [symmetric])
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] rpart_fold_rpart} in the affine hinge modulo 5:
x = (3, 3), y = (4, 2), z = (4, 4).\<close>

lemma
  shows "rpart (4, 2) (3, 3) = (3, 3)"
    and "rpart (4, 4) (4, 2) = (1, 2)"
    and "(1, 2) \<cdot> (3, 3) = (3, 0)"
    and "rpart (4, 4) (3, 3) = (3, 0)"
  by eval+

text \<open>Dividing by a product is dividing twice.\<close>

lemma rpart_rpart [simp]: "rpart z (y \<cdot> x) = rpart (rpart z x) y"
proof -
  have "rpart z (y \<cdot> x) = z \<cdot> flip (y \<cdot> x)" by (simp only: rpart_def)
  also have "\<dots> = z \<cdot> (flip x \<cdot> flip y)" by (simp only: fold_flip_rev)
  also have "\<dots> = (z \<cdot> flip x) \<cdot> flip y"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = rpart z x \<cdot> flip y" by (simp only: rpart_def [symmetric])
  also have "\<dots> = rpart (rpart z x) y" by (simp only: rpart_def [symmetric])
  finally show ?thesis .
qed

lemma fold_rpart_assoc: "z \<cdot> rpart y x = rpart (z \<cdot> y) x"
proof -
  have "z \<cdot> rpart y x = z \<cdot> (y \<cdot> flip x)" by (simp only: rpart_def)
  also have "\<dots> = (z \<cdot> y) \<cdot> flip x" by (simp only: fold_assoc [symmetric])
  also have "\<dots> = rpart (z \<cdot> y) x" by (simp only: rpart_def [symmetric])
  finally show ?thesis .
qed

lemma eq_of_rpart_eq_flat:
  assumes "rpart y x = \<e>"
  shows "y = x"
  by (simp only: rpart_fold [symmetric] assms flat_fold)

subsection \<open>The lturn\<close>

text \<open>Among the results: \<^emph>\<open>the lturn respects flips\<close> (@{thm
[source] lturn_flip}).\<close>

lemma lturn_flat [simp]: "lturn x \<e> = \<e>"
  by (simp only: lturn_def fold_flat fold_flip)

lemma flat_lturn: "lturn \<e> x = x"
proof -
  have "lturn \<e> x = (\<e> \<cdot> x) \<cdot> flip \<e>" by (simp only: lturn_def)
  also have "\<dots> = x \<cdot> flip \<e>" by (simp only: flat_fold)
  also have "\<dots> = x \<cdot> \<e>" by (simp only: flip_flat)
  also have "\<dots> = x" by (simp only: fold_flat)
  finally show ?thesis .
qed

lemma lturn_self: "lturn x x = x"
proof -
  have "lturn x x = (x \<cdot> x) \<cdot> flip x" by (simp only: lturn_def)
  also have "\<dots> = x \<cdot> (x \<cdot> flip x)" by (simp only: fold_assoc)
  also have "\<dots> = x \<cdot> \<e>" by (simp only: fold_flip)
  also have "\<dots> = x" by (simp only: fold_flat)
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] lturn_self} in the affine hinge modulo 5: x =
(4, 2).\<close>

lemma
  shows "lturn (4, 2) (4, 2) = (4, 2)"
  by eval+

lemma lturn_fold [simp]: "lturn x y \<cdot> lturn x z = lturn x (y \<cdot> z)"
proof -
  have "lturn x y \<cdot> lturn x z = (x \<cdot> y) \<cdot> (flip x \<cdot> lturn x z)"
    by (simp only: lturn_def fold_assoc)
  also have "\<dots> = x \<cdot> (y \<cdot> (flip x \<cdot> ((x \<cdot> z) \<cdot> flip x)))"
    by (simp only: fold_assoc lturn_def)
  also have "\<dots> = x \<cdot> (y \<cdot> (z \<cdot> flip x))"
    by (simp only: fold_assoc flip_fold_cancel_left)
  also have "\<dots> = x \<cdot> ((y \<cdot> z) \<cdot> flip x)"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = (x \<cdot> (y \<cdot> z)) \<cdot> flip x"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = lturn x (y \<cdot> z)" by (simp only: lturn_def [symmetric])
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] rpart_rpart} in the affine hinge modulo 5: x =
(3, 2), y = (4, 3), z = (2, 4).\<close>

lemma
  shows "(4, 3) \<cdot> (3, 2) = (2, 1)"
    and "rpart (2, 4) (2, 1) = (1, 3)"
    and "rpart (2, 4) (3, 2) = (4, 1)"
    and "rpart (4, 1) (4, 3) = (1, 3)"
  by eval+

lemma lturn_lturn [simp]: "lturn x (lturn y z) = lturn (x \<cdot> y) z"
proof -
  have "lturn x (lturn y z) = x \<cdot> (lturn y z \<cdot> flip x)"
    by (simp only: lturn_def fold_assoc)
  also have "\<dots> = x \<cdot> ((y \<cdot> z) \<cdot> (flip y \<cdot> flip x))"
    by (simp only: lturn_def fold_assoc)
  also have "\<dots> = x \<cdot> (y \<cdot> (z \<cdot> flip (x \<cdot> y)))"
    by (simp only: fold_assoc fold_flip_rev [symmetric])
  also have "\<dots> = (x \<cdot> y) \<cdot> (z \<cdot> flip (x \<cdot> y))"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = ((x \<cdot> y) \<cdot> z) \<cdot> flip (x \<cdot> y)"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = lturn (x \<cdot> y) z" by (simp only: lturn_def [symmetric])
  finally show ?thesis .
qed

lemma lturn_flip: "lturn x (flip y) = flip (lturn x y)"
proof -
  have "lturn x (flip y) = (x \<cdot> flip y) \<cdot> flip x" by (simp only: lturn_def)
  also have "\<dots> = (flip (flip x) \<cdot> flip y) \<cdot> flip x"
    by (simp only: flip_flip [symmetric])
  also have "\<dots> = flip (y \<cdot> flip x) \<cdot> flip x"
    by (simp only: fold_flip_rev [symmetric])
  also have "\<dots> = flip (x \<cdot> (y \<cdot> flip x))"
    by (simp only: fold_flip_rev [symmetric])
  also have "\<dots> = flip ((x \<cdot> y) \<cdot> flip x)"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = flip (lturn x y)" by (simp only: lturn_def [symmetric])
  finally show ?thesis .
qed

lemma lturn_flip_cancel: "lturn x (lturn (flip x) y) = y"
proof -
  have "lturn x (lturn (flip x) y) = lturn (x \<cdot> flip x) y" by (simp only: lturn_lturn)
  also have "\<dots> = lturn \<e> y" by (simp only: fold_flip)
  also have "\<dots> = y" by (simp only: flat_lturn)
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] eq_of_rpart_eq_flat} in the affine hinge modulo
5: x = (3, 3), y = (3, 3).\<close>

lemma
  shows "rpart (3, 3) (3, 3) = (1, 0)"
  by eval+

lemma flip_lturn_cancel: "lturn (flip x) (lturn x y) = y"
proof -
  have "lturn (flip x) (lturn x y) = lturn (flip x \<cdot> x) y" by (simp only: lturn_lturn)
  also have "\<dots> = lturn \<e> y" by (simp only: flip_fold)
  also have "\<dots> = y" by (simp only: flat_lturn)
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] fold_rpart_fold} in the affine hinge modulo 5: x
= (3, 3), y = (4, 3), z = (1, 1).\<close>

lemma
  shows "(4, 3) \<cdot> (3, 3) = (2, 0)"
    and "(1, 1) \<cdot> (3, 3) = (3, 4)"
    and "rpart (3, 4) (2, 0) = (4, 4)"
    and "rpart (1, 1) (4, 3) = (4, 4)"
  by eval+

lemma fold_eq_lturn_fold: "lturn x y \<cdot> x = x \<cdot> y"
proof -
  have "lturn x y \<cdot> x = ((x \<cdot> y) \<cdot> flip x) \<cdot> x"
    by (simp only: lturn_def)
  also have "\<dots> = (x \<cdot> y) \<cdot> (flip x \<cdot> x)" by (simp only: fold_assoc)
  also have "\<dots> = (x \<cdot> y) \<cdot> \<e>" by (simp only: flip_fold)
  also have "\<dots> = x \<cdot> y" by (simp only: fold_flat)
  finally show ?thesis .
qed

text \<open>Equal lturns come from equal elements.\<close>

lemma lturn_injective:
  assumes "lturn x y = lturn x z"
  shows "y = z"
proof -
  have "y = lturn (flip x) (lturn x y)" by (simp only: flip_lturn_cancel [symmetric])
  also have "\<dots> = lturn (flip x) (lturn x z)" by (simp only: assms)
  also have "\<dots> = z" by (simp only: flip_lturn_cancel)
  finally show ?thesis .
qed

lemma lturn_of_commute:
  assumes "x \<cdot> y = y \<cdot> x"
  shows "lturn x y = y"
proof -
  have "lturn x y = (x \<cdot> y) \<cdot> flip x" by (simp only: lturn_def)
  also have "\<dots> = (y \<cdot> x) \<cdot> flip x" by (simp only: assms)
  also have "\<dots> = y \<cdot> (x \<cdot> flip x)" by (simp only: fold_assoc)
  also have "\<dots> = y \<cdot> \<e>" by (simp only: fold_flip)
  also have "\<dots> = y" by (simp only: fold_flat)
  finally show ?thesis .
qed

lemma commute_of_lturn:
  assumes "lturn x y = y"
  shows "x \<cdot> y = y \<cdot> x"
  by (simp only: fold_eq_lturn_fold [symmetric] assms)

lemma lturn_lpart: "lpart (lturn x y) (lturn x z) = lturn x (lpart y z)"
proof -
  have "lpart (lturn x y) (lturn x z) = flip (lturn x y) \<cdot> lturn x z"
    by (simp only: lpart_def)
  also have "\<dots> = lturn x (flip y) \<cdot> lturn x z"
    by (simp only: lturn_flip [symmetric])
  also have "\<dots> = lturn x (flip y \<cdot> z)" by (simp only: lturn_fold)
  also have "\<dots> = lturn x (lpart y z)" by (simp only: lpart_def [symmetric])
  finally show ?thesis .
qed

subsection \<open>The lslack\<close>

text \<open>Among the results: \<^emph>\<open>a lslack is an element times a lturn\<close>
(@{thm [source] lslack_eq_fold_lturn}).\<close>

lemma lslack_self [simp]: "lslack x x = \<e>"
proof -
  have "lslack x x = (x \<cdot> x) \<cdot> (flip x \<cdot> flip x)" by (simp only: lslack_def)
  also have "\<dots> = x \<cdot> (x \<cdot> (flip x \<cdot> flip x))"
    by (simp only: fold_assoc)
  also have "\<dots> = x \<cdot> flip x" by (simp only: fold_flip_cancel_left)
  also have "\<dots> = \<e>" by (simp only: fold_flip)
  finally show ?thesis .
qed

text \<open>The lslack with the flat is trivial.\<close>

lemma lslack_flat [simp]: "lslack x \<e> = \<e>"
proof -
  have "lslack x \<e> = (x \<cdot> \<e>) \<cdot> (flip x \<cdot> flip \<e>)"
    by (simp only: lslack_def)
  also have "\<dots> = x \<cdot> (flip x \<cdot> flip \<e>)" by (simp only: fold_flat)
  also have "\<dots> = x \<cdot> (flip x \<cdot> \<e>)" by (simp only: flip_flat)
  also have "\<dots> = x \<cdot> flip x" by (simp only: fold_flat)
  also have "\<dots> = \<e>" by (simp only: fold_flip)
  finally show ?thesis .
qed

lemma flat_lslack: "lslack \<e> x = \<e>"
proof -
  have "lslack \<e> x = (\<e> \<cdot> x) \<cdot> (flip \<e> \<cdot> flip x)"
    by (simp only: lslack_def)
  also have "\<dots> = x \<cdot> (flip \<e> \<cdot> flip x)" by (simp only: flat_fold)
  also have "\<dots> = x \<cdot> (\<e> \<cdot> flip x)" by (simp only: flip_flat)
  also have "\<dots> = x \<cdot> flip x" by (simp only: flat_fold)
  also have "\<dots> = \<e>" by (simp only: fold_flip)
  finally show ?thesis .
qed

lemma lslack_fold_fold [simp]: "lslack x y \<cdot> (y \<cdot> x) = x \<cdot> y"
proof -
  have "lslack x y \<cdot> (y \<cdot> x) = (x \<cdot> y) \<cdot> ((flip x \<cdot> flip y) \<cdot> (y \<cdot> x))"
    by (simp only: lslack_def fold_assoc)
  also have "\<dots> = x \<cdot> (y \<cdot> ((flip x \<cdot> flip y) \<cdot> (y \<cdot> x)))"
    by (simp only: fold_assoc)
  also have "\<dots> = x \<cdot> (y \<cdot> (flip x \<cdot> (flip y \<cdot> (y \<cdot> x))))"
    by (simp only: fold_assoc)
  also have "\<dots> = x \<cdot> (y \<cdot> (flip x \<cdot> x))"
    by (simp only: flip_fold_cancel_left)
  also have "\<dots> = x \<cdot> (y \<cdot> \<e>)" by (simp only: flip_fold)
  also have "\<dots> = x \<cdot> y" by (simp only: fold_flat)
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] lslack_fold_fold} in the affine hinge modulo 5:
x = (3, 0), y = (2, 1).\<close>

lemma
  shows "(2, 1) \<cdot> (3, 0) = (1, 1)"
    and "lslack (3, 0) (2, 1) = (1, 2)"
    and "(1, 2) \<cdot> (1, 1) = (1, 3)"
    and "(3, 0) \<cdot> (2, 1) = (1, 3)"
  by eval+

lemma flip_lslack [simp]: "flip (lslack x y) = lslack y x"
proof -
  have "flip (lslack x y) = flip (x \<cdot> (y \<cdot> (flip x \<cdot> flip y)))"
    by (simp only: lslack_def fold_assoc)
  also have "\<dots> = (flip (flip x \<cdot> flip y) \<cdot> flip y) \<cdot> flip x"
    by (simp only: fold_flip_rev fold_flip_rev)
  also have "\<dots> = (flip (flip y) \<cdot> flip (flip x)) \<cdot> (flip y \<cdot> flip x)"
    by (simp only: fold_assoc fold_flip_rev)
  also have "\<dots> = (y \<cdot> flip (flip x)) \<cdot> (flip y \<cdot> flip x)"
    by (simp only: flip_flip)
  also have "\<dots> = (y \<cdot> x) \<cdot> (flip y \<cdot> flip x)" by (simp only: flip_flip)
  also have "\<dots> = lslack y x" by (simp only: lslack_def [symmetric])
  finally show ?thesis .
qed

text \<open>Commuting elements have a trivial lslack.\<close>

lemma lslack_of_commute:
  assumes "x \<cdot> y = y \<cdot> x"
  shows "lslack x y = \<e>"
proof -
  have "lslack x y = (x \<cdot> y) \<cdot> (flip x \<cdot> flip y)" by (simp only: lslack_def)
  also have "\<dots> = (y \<cdot> x) \<cdot> (flip x \<cdot> flip y)" by (simp only: assms)
  also have "\<dots> = y \<cdot> (x \<cdot> (flip x \<cdot> flip y))"
    by (simp only: fold_assoc)
  also have "\<dots> = y \<cdot> flip y" by (simp only: fold_flip_cancel_left)
  also have "\<dots> = \<e>" by (simp only: fold_flip)
  finally show ?thesis .
qed

lemma commute_of_lslack:
  assumes "lslack x y = \<e>"
  shows "x \<cdot> y = y \<cdot> x"
proof -
  have "x \<cdot> y = lslack x y \<cdot> (y \<cdot> x)"
    by (simp only: lslack_fold_fold [symmetric])
  also have "\<dots> = \<e> \<cdot> (y \<cdot> x)" by (simp only: assms)
  also have "\<dots> = y \<cdot> x" by (simp only: flat_fold)
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] fold_eq_lturn_fold} in the affine hinge modulo
5: x = (3, 4), y = (2, 0).\<close>

lemma
  shows "lturn (3, 4) (2, 0) = (2, 1)"
    and "(2, 1) \<cdot> (3, 4) = (1, 4)"
    and "(3, 4) \<cdot> (2, 0) = (1, 4)"
  by eval+

lemma lslack_eq_lturn_fold: "lslack x y = lturn x y \<cdot> flip y"
proof -
  have "lslack x y = (x \<cdot> y) \<cdot> (flip x \<cdot> flip y)" by (simp only: lslack_def)
  also have "\<dots> = ((x \<cdot> y) \<cdot> flip x) \<cdot> flip y"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = lturn x y \<cdot> flip y" by (simp only: lturn_def [symmetric])
  finally show ?thesis .
qed

text \<open>A lslack is an element times a lturn.\<close>

lemma lslack_eq_fold_lturn: "lslack x y = x \<cdot> lturn y (flip x)"
proof -
  have "lslack x y = (x \<cdot> y) \<cdot> (flip x \<cdot> flip y)" by (simp only: lslack_def)
  also have "\<dots> = x \<cdot> (y \<cdot> (flip x \<cdot> flip y))"
    by (simp only: fold_assoc)
  also have "\<dots> = x \<cdot> ((y \<cdot> flip x) \<cdot> flip y)"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = x \<cdot> lturn y (flip x)" by (simp only: lturn_def [symmetric])
  finally show ?thesis .
qed

lemma lturn_eq_lslack_fold: "lturn x y = lslack x y \<cdot> y"
proof -
  have "lturn x y = x \<cdot> (y \<cdot> flip x)" by (simp only: lturn_def fold_assoc)
  also have "\<dots> = x \<cdot> (y \<cdot> (flip x \<cdot> (flip y \<cdot> y)))"
    by (simp only: fold_flat [symmetric] flip_fold [symmetric])
  also have "\<dots> = x \<cdot> (y \<cdot> ((flip x \<cdot> flip y) \<cdot> y))"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = (x \<cdot> y) \<cdot> ((flip x \<cdot> flip y) \<cdot> y)"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = ((x \<cdot> y) \<cdot> (flip x \<cdot> flip y)) \<cdot> y"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = lslack x y \<cdot> y" by (simp only: lslack_def [symmetric])
  finally show ?thesis .
qed

lemma lturn_lslack [simp]: "lslack (lturn x y) (lturn x z) = lturn x (lslack y z)"
proof -
  have "lslack (lturn x y) (lturn x z) = (lturn x y \<cdot> lturn x z) \<cdot> (flip (lturn x y) \<cdot> lturn x (flip z))"
    by (simp only: lslack_def lturn_flip [symmetric])
  also have "\<dots> = (lturn x y \<cdot> lturn x z) \<cdot> (lturn x (flip y) \<cdot> lturn x (flip z))"
    by (simp only: lturn_flip [symmetric])
  also have "\<dots> = lturn x (y \<cdot> z) \<cdot> (lturn x (flip y) \<cdot> lturn x (flip z))"
    by (simp only: lturn_fold)
  also have "\<dots> = lturn x (y \<cdot> z) \<cdot> lturn x (flip y \<cdot> flip z)"
    by (simp only: lturn_fold)
  also have "\<dots> = lturn x ((y \<cdot> z) \<cdot> (flip y \<cdot> flip z))"
    by (simp only: lturn_fold)
  also have "\<dots> = lturn x (lslack y z)" by (simp only: lslack_def [symmetric])
  finally show ?thesis .
qed

lemma fold_lslack_left [simp]:
  "lslack (x \<cdot> y) z = lturn x (lslack y z) \<cdot> lslack x z"
proof -
  have "lslack (x \<cdot> y) z = x \<cdot> (y \<cdot> (z \<cdot> ((flip y \<cdot> flip x) \<cdot> flip z)))"
    by (simp only: lslack_def fold_assoc fold_assoc fold_flip_rev)
  also have "\<dots> = x \<cdot> (y \<cdot> (z \<cdot> (flip y \<cdot> (flip z \<cdot> (flip x \<cdot> ((x \<cdot> z) \<cdot> (flip x \<cdot> flip z)))))))"
    by (simp only: fold_assoc flip_fold_cancel_left [symmetric] flip_fold_cancel_left [symmetric] fold_assoc [symmetric])
  also have "\<dots> = x \<cdot> (y \<cdot> (z \<cdot> ((flip y \<cdot> flip z) \<cdot> (flip x \<cdot> lslack x z))))"
    by (simp only: lslack_def [symmetric] fold_assoc [symmetric])
  also have "\<dots> = x \<cdot> (((y \<cdot> z) \<cdot> (flip y \<cdot> flip z)) \<cdot> (flip x \<cdot> lslack x z))"
    by (simp only: fold_assoc [symmetric] fold_assoc [symmetric])
  also have "\<dots> = (x \<cdot> lslack y z) \<cdot> (flip x \<cdot> lslack x z)"
    by (simp only: lslack_def [symmetric] fold_assoc [symmetric])
  also have "\<dots> = lturn x (lslack y z) \<cdot> lslack x z"
    by (simp only: fold_assoc [symmetric] lturn_def [symmetric])
  finally show ?thesis .
qed

text \<open>The lslack of a product in its second part.\<close>

lemma fold_lslack_right: "lslack x (y \<cdot> z) = lslack x y \<cdot> lturn y (lslack x z)"
proof -
  have "lslack x (y \<cdot> z) = x \<cdot> (y \<cdot> (z \<cdot> (flip x \<cdot> (flip z \<cdot> flip y))))"
    by (simp only: lslack_def fold_assoc fold_assoc fold_flip_rev)
  also have "\<dots> = x \<cdot> (y \<cdot> (flip x \<cdot> (((x \<cdot> z) \<cdot> (flip x \<cdot> flip z)) \<cdot> flip y)))"
    by (simp only: fold_assoc [symmetric] flip_fold_cancel_left [symmetric] fold_assoc [symmetric] fold_assoc [symmetric])
  also have "\<dots> = x \<cdot> (y \<cdot> (flip x \<cdot> (flip y \<cdot> (y \<cdot> (lslack x z \<cdot> flip y)))))"
    by (simp only: lslack_def [symmetric] flip_fold_cancel_left [symmetric])
  also have "\<dots> = (x \<cdot> y) \<cdot> ((flip x \<cdot> flip y) \<cdot> (y \<cdot> (lslack x z \<cdot> flip y)))"
    by (simp only: fold_assoc [symmetric] fold_assoc [symmetric])
  also have "\<dots> = lslack x y \<cdot> (y \<cdot> (lslack x z \<cdot> flip y))"
    by (simp only: fold_assoc [symmetric] lslack_def [symmetric])
  also have "\<dots> = lslack x y \<cdot> lturn y (lslack x z)"
    by (simp only: fold_assoc [symmetric] lturn_def [symmetric])
  finally show ?thesis .
qed

theorem second_digest:
  shows "flip x = flip y \<Longrightarrow> x = y"
    and "flip (x \<cdot> (y \<cdot> z)) = flip z \<cdot> (flip y \<cdot> flip x)"
    and "lpart (x \<cdot> y) z = lpart y (lpart x z)"
    and "rpart \<e> x = flip x"
    and "rpart (z \<cdot> x) (y \<cdot> x) = rpart z y"
    and "lturn x y \<cdot> x = x \<cdot> y"
    and "flip (lslack x y) = lslack y x"
    and "lslack (lturn x y) (lturn x z) = lturn x (lslack y z)"
    and "lslack x (y \<cdot> z) = lslack x y \<cdot> lturn y (lslack x z)"
by (fact flip_inj fold_fold_flip_rev lpart_lpart flat_rpart fold_rpart_fold
    fold_eq_lturn_fold flip_lslack lturn_lslack fold_lslack_right)+

subsection \<open>The rturn\<close>

text \<open>Among the results: \<^emph>\<open>the rturn respects products\<close> (@{thm
[source] rturn_fold}).\<close>

text \<open>The flat is fixed by every rturn.\<close>

lemma rturn_flat: "rturn x \<e> = \<e>"
  by (simp only: rturn_def flat_fold flip_fold)

lemma flat_rturn: "rturn \<e> x = x"
proof -
  have "rturn \<e> x = flip \<e> \<cdot> (x \<cdot> \<e>)" by (simp only: rturn_def)
  also have "\<dots> = flip \<e> \<cdot> x" by (simp only: fold_flat)
  also have "\<dots> = \<e> \<cdot> x" by (simp only: flip_flat)
  also have "\<dots> = x" by (simp only: flat_fold)
  finally show ?thesis .
qed

lemma rturn_self: "rturn x x = x"
proof -
  have "rturn x x = flip x \<cdot> (x \<cdot> x)" by (simp only: rturn_def)
  also have "\<dots> = (flip x \<cdot> x) \<cdot> x" by (simp only: fold_assoc [symmetric])
  also have "\<dots> = \<e> \<cdot> x" by (simp only: flip_fold)
  also have "\<dots> = x" by (simp only: flat_fold)
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] rturn_self} in the affine hinge modulo 5: x =
(4, 3).\<close>

lemma
  shows "rturn (4, 3) (4, 3) = (4, 3)"
  by eval+

text \<open>The rturn respects products.\<close>

lemma rturn_fold [simp]: "rturn x z \<cdot> rturn x y = rturn x (z \<cdot> y)"
proof -
  have "rturn x z \<cdot> rturn x y = ((flip x \<cdot> z) \<cdot> x) \<cdot> rturn x y"
    by (simp only: rturn_def fold_assoc [symmetric])
  also have "\<dots> = (((flip x \<cdot> z) \<cdot> x) \<cdot> flip x) \<cdot> (y \<cdot> x)"
    by (simp only: rturn_def fold_assoc [symmetric])
  also have "\<dots> = ((flip x \<cdot> z) \<cdot> y) \<cdot> x"
    by (simp only: fold_flip_cancel_right fold_assoc [symmetric])
  also have "\<dots> = (flip x \<cdot> (z \<cdot> y)) \<cdot> x" by (simp only: fold_assoc)
  also have "\<dots> = flip x \<cdot> ((z \<cdot> y) \<cdot> x)" by (simp only: fold_assoc)
  also have "\<dots> = rturn x (z \<cdot> y)" by (simp only: rturn_def [symmetric])
  finally show ?thesis .
qed

lemma rturn_rturn: "rturn x (rturn y z) = rturn (y \<cdot> x) z"
proof -
  have "rturn x (rturn y z) = flip x \<cdot> ((flip y \<cdot> (z \<cdot> y)) \<cdot> x)"
    by (simp only: rturn_def rturn_def)
  also have "\<dots> = flip x \<cdot> (flip y \<cdot> ((z \<cdot> y) \<cdot> x))"
    by (simp only: fold_assoc)
  also have "\<dots> = flip x \<cdot> (flip y \<cdot> (z \<cdot> (y \<cdot> x)))"
    by (simp only: fold_assoc)
  also have "\<dots> = (flip x \<cdot> flip y) \<cdot> (z \<cdot> (y \<cdot> x))"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = flip (y \<cdot> x) \<cdot> (z \<cdot> (y \<cdot> x))"
    by (simp only: fold_flip_rev [symmetric])
  also have "\<dots> = rturn (y \<cdot> x) z" by (simp only: rturn_def [symmetric])
  finally show ?thesis .
qed

text \<open>The rturn respects flips.\<close>

lemma rturn_flip: "rturn x (flip y) = flip (rturn x y)"
proof -
  have "rturn x (flip y) = flip x \<cdot> (flip y \<cdot> x)" by (simp only: rturn_def)
  also have "\<dots> = (flip x \<cdot> flip y) \<cdot> x"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = flip (y \<cdot> x) \<cdot> x" by (simp only: fold_flip_rev [symmetric])
  also have "\<dots> = flip (y \<cdot> x) \<cdot> flip (flip x)"
    by (simp only: flip_flip [symmetric])
  also have "\<dots> = flip (flip x \<cdot> (y \<cdot> x))"
    by (simp only: fold_flip_rev [symmetric])
  also have "\<dots> = flip (rturn x y)" by (simp only: rturn_def [symmetric])
  finally show ?thesis .
qed

lemma rturn_flip_cancel: "rturn x (rturn (flip x) y) = y"
  by (simp only: rturn_rturn flip_fold flat_rturn)

lemma flip_rturn_cancel: "rturn (flip x) (rturn x y) = y"
proof -
  have "rturn (flip x) (rturn x y) = rturn (x \<cdot> flip x) y" by (simp only: rturn_rturn)
  also have "\<dots> = rturn \<e> y" by (simp only: fold_flip)
  also have "\<dots> = y" by (simp only: flat_rturn)
  finally show ?thesis .
qed

lemma fold_eq_fold_rturn [simp]: "x \<cdot> rturn x y = y \<cdot> x"
proof -
  have "x \<cdot> rturn x y = x \<cdot> (flip x \<cdot> (y \<cdot> x))"
    by (simp only: rturn_def)
  also have "\<dots> = (x \<cdot> flip x) \<cdot> (y \<cdot> x)"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = \<e> \<cdot> (y \<cdot> x)" by (simp only: fold_flip)
  also have "\<dots> = y \<cdot> x" by (simp only: flat_fold)
  finally show ?thesis .
qed

lemma rturn_injective:
  assumes "rturn x y = rturn x z"
  shows "y = z"
proof -
  have "y = rturn (flip x) (rturn x y)" by (simp only: flip_rturn_cancel [symmetric])
  also have "\<dots> = rturn (flip x) (rturn x z)" by (simp only: assms)
  also have "\<dots> = z" by (simp only: flip_rturn_cancel)
  finally show ?thesis .
qed

lemma rturn_of_commute:
  assumes "y \<cdot> x = x \<cdot> y"
  shows "rturn x y = y"
proof -
  have "rturn x y = flip x \<cdot> (y \<cdot> x)" by (simp only: rturn_def)
  also have "\<dots> = flip x \<cdot> (x \<cdot> y)" by (simp only: assms)
  also have "\<dots> = (flip x \<cdot> x) \<cdot> y" by (simp only: fold_assoc [symmetric])
  also have "\<dots> = \<e> \<cdot> y" by (simp only: flip_fold)
  also have "\<dots> = y" by (simp only: flat_fold)
  finally show ?thesis .
qed

lemma commute_of_rturn:
  assumes "rturn x y = y"
  shows "y \<cdot> x = x \<cdot> y"
  by (simp only: fold_eq_fold_rturn [symmetric] assms)

lemma rturn_rpart: "rpart (rturn x z) (rturn x y) = rturn x (rpart z y)"
proof -
  have "rpart (rturn x z) (rturn x y) = rturn x z \<cdot> flip (rturn x y)"
    by (simp only: rpart_def)
  also have "\<dots> = rturn x z \<cdot> rturn x (flip y)"
    by (simp only: rturn_flip [symmetric])
  also have "\<dots> = rturn x (z \<cdot> flip y)" by (simp only: rturn_fold)
  also have "\<dots> = rturn x (rpart z y)" by (simp only: rpart_def [symmetric])
  finally show ?thesis .
qed

subsection \<open>The print\<close>

text \<open>We show that \<^emph>\<open>a print respects the lpart\<close> (@{thm [source]
print_lpart}).\<close>

text \<open>A print sends the flat to the flat.\<close>

lemma print_flat: "print \<e> = \<e>"
proof -
  have "print \<e> \<cdot> print \<e> = print (\<e> \<cdot> \<e>)"
    by (simp only: print_fold [symmetric])
  also have "\<dots> = print \<e>" by (simp only: flat_fold)
  finally have "print \<e> \<cdot> print \<e> = print \<e>" .
  then show ?thesis by (rule eq_flat_of_fold_eq)
qed

text \<open>A print respects flips.\<close>

lemma print_flip [simp]: "flip (print x) = print (flip x)"
proof -
  have "print x \<cdot> print (flip x) = print (x \<cdot> flip x)"
    by (simp only: print_fold [symmetric])
  also have "\<dots> = print \<e>" by (simp only: fold_flip)
  also have "\<dots> = \<e>" by (simp only: print_flat)
  finally have "print x \<cdot> print (flip x) = \<e>" .
  then show ?thesis by (rule flip_eq_of_fold)
qed

text \<open>An instance of @{thm [source] rturn_rturn} in the affine hinge modulo 5: x =
(3, 4), y = (1, 1), z = (1, 2).\<close>

lemma
  shows "rturn (1, 1) (1, 2) = (1, 2)"
    and "rturn (3, 4) (1, 2) = (1, 4)"
    and "(1, 1) \<cdot> (3, 4) = (3, 0)"
    and "rturn (3, 0) (1, 2) = (1, 4)"
  by eval+

lemma print_lturn [simp]: "print (lturn x y) = lturn (print x) (print y)"
proof -
  have "print (lturn x y) = print ((x \<cdot> y) \<cdot> flip x)" by (simp only: lturn_def)
  also have "\<dots> = print (x \<cdot> y) \<cdot> print (flip x)" by (simp only: print_fold)
  also have "\<dots> = print (x \<cdot> y) \<cdot> flip (print x)"
    by (simp only: print_flip [symmetric])
  also have "\<dots> = (print x \<cdot> print y) \<cdot> flip (print x)"
    by (simp only: print_fold)
  also have "\<dots> = lturn (print x) (print y)" by (simp only: lturn_def [symmetric])
  finally show ?thesis .
qed

lemma print_lslack: "print (lslack x y) = lslack (print x) (print y)"
proof -
  have "print (lslack x y) = print (x \<cdot> y) \<cdot> print (flip x \<cdot> flip y)"
    by (simp only: lslack_def print_fold)
  also have "\<dots> = print (x \<cdot> y) \<cdot> (print (flip x) \<cdot> print (flip y))"
    by (simp only: print_fold)
  also have "\<dots> = print (x \<cdot> y) \<cdot> (print (flip x) \<cdot> flip (print y))"
    by (simp only: print_flip [symmetric])
  also have "\<dots> = print (x \<cdot> y) \<cdot> (flip (print x) \<cdot> flip (print y))"
    by (simp only: print_flip [symmetric])
  also have "\<dots> = (print x \<cdot> print y) \<cdot> (flip (print x) \<cdot> flip (print y))"
    by (simp only: print_fold)
  also have "\<dots> = lslack (print x) (print y)" by (simp only: lslack_def [symmetric])
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] fold_eq_fold_rturn} in the affine hinge modulo
5: x = (4, 2), y = (1, 4).\<close>

lemma
  shows "rturn (4, 2) (1, 4) = (1, 1)"
    and "(4, 2) \<cdot> (1, 1) = (4, 1)"
    and "(1, 4) \<cdot> (4, 2) = (4, 1)"
  by eval+

lemma print_lpart: "print (lpart x y) = lpart (print x) (print y)"
proof -
  have "print (lpart x y) = print (flip x \<cdot> y)" by (simp only: lpart_def)
  also have "\<dots> = print (flip x) \<cdot> print y" by (simp only: print_fold)
  also have "\<dots> = flip (print x) \<cdot> print y" by (simp only: print_flip [symmetric])
  also have "\<dots> = lpart (print x) (print y)" by (simp only: lpart_def [symmetric])
  finally show ?thesis .
qed

lemma print_lslack_eq_flat:
  assumes "print x = \<e>"
  shows "print (lslack x y) = \<e>"
  by (simp only: print_lslack assms flat_lslack)

lemma print_lturn_eq_flat:
  assumes "print y = \<e>"
  shows "print (lturn x y) = \<e>"
  by (simp only: print_lturn assms lturn_flat)

text \<open>An instance of @{thm [source] commute_of_rturn} in the affine hinge modulo 5:
x = (1, 3), y = (1, 4).\<close>

lemma
  shows "rturn (1, 3) (1, 4) = (1, 4)"
    and "(1, 4) \<cdot> (1, 3) = (1, 2)"
    and "(1, 3) \<cdot> (1, 4) = (1, 2)"
  by eval+

lemma print_eq_of_lpart:
  assumes "print (lpart x y) = \<e>"
  shows "print y = print x"
proof -
  have "print y = print x \<cdot> lpart (print x) (print y)"
    by (simp only: fold_lpart [symmetric])
  also have "\<dots> = print x \<cdot> print (lpart x y)"
    by (simp only: print_lpart [symmetric])
  also have "\<dots> = print x \<cdot> \<e>" by (simp only: assms)
  also have "\<dots> = print x" by (simp only: fold_flat)
  finally show ?thesis .
qed

subsection \<open>The rslack\<close>

text \<open>Among the results: \<^emph>\<open>the rturn respects rslacks\<close> (@{thm
[source] rturn_rslack}).\<close>

text \<open>The rslack of an element with itself is trivial.\<close>

lemma rslack_self: "rslack x x = \<e>"
proof -
  have "rslack x x = (flip x \<cdot> flip x) \<cdot> (x \<cdot> x)" by (simp only: rslack_def)
  also have "\<dots> = ((flip x \<cdot> flip x) \<cdot> x) \<cdot> x"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = flip x \<cdot> x" by (simp only: flip_fold_cancel_right)
  also have "\<dots> = \<e>" by (simp only: flip_fold)
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] print_lpart} in the affine hinge modulo 5: x =
(4, 3), y = (3, 2).\<close>

lemma
  shows "lpart (4, 3) (3, 2) = (2, 1)"
    and "print (2, 1) = (2, 0)"
    and "print (3, 2) = (3, 0)"
    and "print (4, 3) = (4, 0)"
    and "lpart (4, 0) (3, 0) = (2, 0)"
  by eval+

lemma rslack_flat: "rslack x \<e> = \<e>"
proof -
  have "rslack x \<e> = (flip \<e> \<cdot> flip x) \<cdot> (\<e> \<cdot> x)"
    by (simp only: rslack_def)
  also have "\<dots> = (flip \<e> \<cdot> flip x) \<cdot> x" by (simp only: flat_fold)
  also have "\<dots> = (\<e> \<cdot> flip x) \<cdot> x" by (simp only: flip_flat)
  also have "\<dots> = flip x \<cdot> x" by (simp only: flat_fold)
  also have "\<dots> = \<e>" by (simp only: flip_fold)
  finally show ?thesis .
qed

lemma flat_rslack: "rslack \<e> x = \<e>"
proof -
  have "rslack \<e> x = (flip x \<cdot> flip \<e>) \<cdot> (x \<cdot> \<e>)"
    by (simp only: rslack_def)
  also have "\<dots> = (flip x \<cdot> flip \<e>) \<cdot> x" by (simp only: fold_flat)
  also have "\<dots> = (flip x \<cdot> \<e>) \<cdot> x" by (simp only: flip_flat)
  also have "\<dots> = flip x \<cdot> x" by (simp only: fold_flat)
  also have "\<dots> = \<e>" by (simp only: flip_fold)
  finally show ?thesis .
qed

lemma fold_fold_rslack [simp]: "(x \<cdot> y) \<cdot> rslack x y = y \<cdot> x"
proof -
  have "(x \<cdot> y) \<cdot> rslack x y = ((x \<cdot> y) \<cdot> (flip y \<cdot> flip x)) \<cdot> (y \<cdot> x)"
    by (simp only: rslack_def fold_assoc [symmetric])
  also have "\<dots> = (((x \<cdot> y) \<cdot> (flip y \<cdot> flip x)) \<cdot> y) \<cdot> x"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = ((((x \<cdot> y) \<cdot> flip y) \<cdot> flip x) \<cdot> y) \<cdot> x"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = ((x \<cdot> flip x) \<cdot> y) \<cdot> x"
    by (simp only: fold_flip_cancel_right)
  also have "\<dots> = (\<e> \<cdot> y) \<cdot> x" by (simp only: fold_flip)
  also have "\<dots> = y \<cdot> x" by (simp only: flat_fold)
  finally show ?thesis .
qed

lemma flip_rslack [simp]: "flip (rslack x y) = rslack y x"
proof -
  have "flip (rslack x y) = flip (flip y \<cdot> (flip x \<cdot> (y \<cdot> x)))"
    by (simp only: rslack_def fold_assoc)
  also have "\<dots> = flip (flip x \<cdot> (y \<cdot> x)) \<cdot> y"
    by (simp only: fold_flip_rev flip_flip)
  also have "\<dots> = (flip (y \<cdot> x) \<cdot> x) \<cdot> y"
    by (simp only: fold_flip_rev flip_flip)
  also have "\<dots> = flip (y \<cdot> x) \<cdot> (x \<cdot> y)" by (simp only: fold_assoc)
  also have "\<dots> = (flip x \<cdot> flip y) \<cdot> (x \<cdot> y)"
    by (simp only: fold_flip_rev)
  also have "\<dots> = rslack y x" by (simp only: rslack_def [symmetric])
  finally show ?thesis .
qed

lemma rslack_of_commute:
  assumes "y \<cdot> x = x \<cdot> y"
  shows "rslack x y = \<e>"
proof -
  have "rslack x y = (flip y \<cdot> flip x) \<cdot> (y \<cdot> x)" by (simp only: rslack_def)
  also have "\<dots> = (flip y \<cdot> flip x) \<cdot> (x \<cdot> y)" by (simp only: assms)
  also have "\<dots> = ((flip y \<cdot> flip x) \<cdot> x) \<cdot> y"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = flip y \<cdot> y" by (simp only: flip_fold_cancel_right)
  also have "\<dots> = \<e>" by (simp only: flip_fold)
  finally show ?thesis .
qed

lemma commute_of_rslack:
  assumes "rslack x y = \<e>"
  shows "y \<cdot> x = x \<cdot> y"
  by (simp only: fold_fold_rslack [symmetric] assms fold_flat)

lemma rslack_eq_fold_rturn: "rslack x y = flip y \<cdot> rturn x y"
proof -
  have "rslack x y = (flip y \<cdot> flip x) \<cdot> (y \<cdot> x)" by (simp only: rslack_def)
  also have "\<dots> = flip y \<cdot> (flip x \<cdot> (y \<cdot> x))"
    by (simp only: fold_assoc)
  also have "\<dots> = flip y \<cdot> rturn x y" by (simp only: rturn_def [symmetric])
  finally show ?thesis .
qed

lemma rslack_eq_rturn_fold [simp]: "rslack x y = rturn y (flip x) \<cdot> x"
proof -
  have "rslack x y = (flip y \<cdot> flip x) \<cdot> (y \<cdot> x)" by (simp only: rslack_def)
  also have "\<dots> = flip y \<cdot> (flip x \<cdot> (y \<cdot> x))"
    by (simp only: fold_assoc)
  also have "\<dots> = flip y \<cdot> ((flip x \<cdot> y) \<cdot> x)"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = (flip y \<cdot> (flip x \<cdot> y)) \<cdot> x"
    by (simp only: fold_assoc [symmetric])
  also have "\<dots> = rturn y (flip x) \<cdot> x" by (simp only: rturn_def [symmetric])
  finally show ?thesis .
qed

lemma rturn_eq_fold_rslack: "rturn x y = y \<cdot> rslack x y"
proof -
  have "rturn x y = (flip x \<cdot> y) \<cdot> x"
    by (simp only: rturn_def fold_assoc [symmetric])
  also have "\<dots> = (((y \<cdot> flip y) \<cdot> flip x) \<cdot> y) \<cdot> x"
    by (simp only: flat_fold [symmetric] fold_flip [symmetric])
  also have "\<dots> = ((y \<cdot> (flip y \<cdot> flip x)) \<cdot> y) \<cdot> x"
    by (simp only: fold_assoc)
  also have "\<dots> = (y \<cdot> (flip y \<cdot> flip x)) \<cdot> (y \<cdot> x)"
    by (simp only: fold_assoc)
  also have "\<dots> = y \<cdot> ((flip y \<cdot> flip x) \<cdot> (y \<cdot> x))"
    by (simp only: fold_assoc)
  also have "\<dots> = y \<cdot> rslack x y" by (simp only: rslack_def [symmetric])
  finally show ?thesis .
qed

text \<open>The rturn respects rslacks.\<close>

lemma rturn_rslack [simp]: "rslack (rturn x y) (rturn x z) = rturn x (rslack y z)"
proof -
  have "rslack (rturn x y) (rturn x z) = (flip (rturn x z) \<cdot> rturn x (flip y)) \<cdot> (rturn x z \<cdot> rturn x y)"
    by (simp only: rslack_def rturn_flip [symmetric])
  also have "\<dots> = (rturn x (flip z) \<cdot> rturn x (flip y)) \<cdot> (rturn x z \<cdot> rturn x y)"
    by (simp only: rturn_flip [symmetric])
  also have "\<dots> = rturn x (flip z \<cdot> flip y) \<cdot> (rturn x z \<cdot> rturn x y)"
    by (simp only: rturn_fold)
  also have "\<dots> = rturn x (flip z \<cdot> flip y) \<cdot> rturn x (z \<cdot> y)"
    by (simp only: rturn_fold)
  also have "\<dots> = rturn x ((flip z \<cdot> flip y) \<cdot> (z \<cdot> y))"
    by (simp only: rturn_fold)
  also have "\<dots> = rturn x (rslack y z)" by (simp only: rslack_def [symmetric])
  finally show ?thesis .
qed

lemma fold_rslack_right [simp]:
  "rslack (y \<cdot> x) z = rslack x z \<cdot> rturn x (rslack y z)"
proof -
  have "rslack (y \<cdot> x) z = flip z \<cdot> (flip x \<cdot> (flip y \<cdot> (z \<cdot> (y \<cdot> x))))"
    by (simp only: rslack_def fold_assoc fold_flip_rev fold_assoc)
  also have "\<dots> = ((((flip z \<cdot> flip x) \<cdot> flip y) \<cdot> z) \<cdot> y) \<cdot> x"
    by (simp only: fold_assoc [symmetric] fold_assoc [symmetric] fold_assoc [symmetric] fold_assoc [symmetric])
  also have "\<dots> = (((flip z \<cdot> flip x) \<cdot> z) \<cdot> ((flip z \<cdot> flip y) \<cdot> (z \<cdot> y))) \<cdot> x"
    by (simp only: fold_flip_cancel_right [symmetric] fold_assoc fold_assoc fold_assoc)
  also have "\<dots> = (((((flip z \<cdot> flip x) \<cdot> z) \<cdot> x) \<cdot> flip x) \<cdot> rslack y z) \<cdot> x"
    by (simp only: rslack_def [symmetric] fold_flip_cancel_right [symmetric])
  also have "\<dots> = ((rslack x z \<cdot> flip x) \<cdot> rslack y z) \<cdot> x"
    by (simp only: fold_assoc rslack_def [symmetric])
  also have "\<dots> = rslack x z \<cdot> rturn x (rslack y z)"
    by (simp only: fold_assoc fold_assoc rturn_def [symmetric])
  finally show ?thesis .
qed

lemma fold_rslack_left: "rslack x (z \<cdot> y) = rturn y (rslack x z) \<cdot> rslack x y"
proof -
  have "rslack x (z \<cdot> y) = (flip y \<cdot> flip z) \<cdot> (flip x \<cdot> (z \<cdot> (y \<cdot> x)))"
    by (simp only: rslack_def fold_assoc fold_assoc fold_flip_rev)
  also have "\<dots> = ((((((flip y \<cdot> flip z) \<cdot> flip x) \<cdot> z) \<cdot> x) \<cdot> flip x) \<cdot> y) \<cdot> x"
    by (simp only: fold_assoc [symmetric] fold_assoc [symmetric] fold_assoc [symmetric] fold_flip_cancel_right [symmetric])
  also have "\<dots> = (((((flip y \<cdot> flip z) \<cdot> flip x) \<cdot> z) \<cdot> x) \<cdot> y) \<cdot> ((flip y \<cdot> flip x) \<cdot> (y \<cdot> x))"
    by (simp only: fold_flip_cancel_right [symmetric] fold_assoc fold_assoc fold_assoc)
  also have "\<dots> = ((((flip y \<cdot> (flip z \<cdot> flip x)) \<cdot> z) \<cdot> x) \<cdot> y) \<cdot> rslack x y"
    by (simp only: rslack_def [symmetric] fold_assoc)
  also have "\<dots> = ((flip y \<cdot> ((flip z \<cdot> flip x) \<cdot> (z \<cdot> x))) \<cdot> y) \<cdot> rslack x y"
    by (simp only: fold_assoc fold_assoc)
  also have "\<dots> = rturn y (rslack x z) \<cdot> rslack x y"
    by (simp only: rslack_def [symmetric] fold_assoc rturn_def [symmetric])
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] fold_rslack_right} in the affine hinge modulo 5:
x = (2, 3), y = (1, 4), z = (3, 4).\<close>

lemma
  shows "(1, 4) \<cdot> (2, 3) = (2, 2)"
    and "rslack (2, 2) (3, 4) = (1, 0)"
    and "rslack (1, 4) (3, 4) = (1, 1)"
    and "rturn (2, 3) (1, 1) = (1, 3)"
    and "rslack (2, 3) (3, 4) = (1, 2)"
    and "(1, 2) \<cdot> (1, 3) = (1, 0)"
  by eval+

theorem third_digest:
  shows "x \<cdot> (flip x \<cdot> y) = y"
    and "lpart x y = \<e> \<Longrightarrow> y = x"
    and "rpart (y \<cdot> x) x = y"
    and "lpart (lturn x y) (lturn x z) = lturn x (lpart y z)"
    and "lslack x y \<cdot> (y \<cdot> x) = x \<cdot> y"
    and "rpart (rturn x z) (rturn x y) = rturn x (rpart z y)"
    and "rslack x x = \<e>"
    and "rturn x y = y \<cdot> rslack x y"
    and "rslack (y \<cdot> x) z = rslack x z \<cdot> rturn x (rslack y z)"
by (fact fold_flip_cancel_left eq_of_lpart_eq_flat fold_rpart lturn_lpart lslack_fold_fold
    rturn_rpart rslack_self rturn_eq_fold_rslack fold_rslack_right)+

subsection \<open>The print\<close>

text \<open>We show that \<^emph>\<open>what a print sends to the flat is closed under the
rturn\<close> (@{thm [source] print_rturn_eq_flat}).\<close>

lemma print_rturn: "print (rturn x y) = rturn (print x) (print y)"
proof -
  have "print (rturn x y) = print (flip x \<cdot> (y \<cdot> x))" by (simp only: rturn_def)
  also have "\<dots> = print (flip x) \<cdot> print (y \<cdot> x)" by (simp only: print_fold)
  also have "\<dots> = flip (print x) \<cdot> print (y \<cdot> x)"
    by (simp only: print_flip [symmetric])
  also have "\<dots> = flip (print x) \<cdot> (print y \<cdot> print x)"
    by (simp only: print_fold)
  also have "\<dots> = rturn (print x) (print y)" by (simp only: rturn_def [symmetric])
  finally show ?thesis .
qed

text \<open>A print respects the rslack.\<close>

lemma print_rslack: "print (rslack x y) = rslack (print x) (print y)"
proof -
  have "print (rslack x y) = print (flip y \<cdot> flip x) \<cdot> print (y \<cdot> x)"
    by (simp only: rslack_def print_fold)
  also have "\<dots> = (print (flip y) \<cdot> print (flip x)) \<cdot> print (y \<cdot> x)"
    by (simp only: print_fold)
  also have "\<dots> = (print (flip y) \<cdot> flip (print x)) \<cdot> print (y \<cdot> x)"
    by (simp only: print_flip [symmetric])
  also have "\<dots> = (flip (print y) \<cdot> flip (print x)) \<cdot> print (y \<cdot> x)"
    by (simp only: print_flip [symmetric])
  also have "\<dots> = (flip (print y) \<cdot> flip (print x)) \<cdot> (print y \<cdot> print x)"
    by (simp only: print_fold)
  also have "\<dots> = rslack (print x) (print y)" by (simp only: rslack_def [symmetric])
  finally show ?thesis .
qed

lemma print_rpart [simp]: "print (rpart y x) = rpart (print y) (print x)"
proof -
  have "print (rpart y x) = print (y \<cdot> flip x)" by (simp only: rpart_def)
  also have "\<dots> = print y \<cdot> print (flip x)" by (simp only: print_fold)
  also have "\<dots> = print y \<cdot> flip (print x)" by (simp only: print_flip [symmetric])
  also have "\<dots> = rpart (print y) (print x)" by (simp only: rpart_def [symmetric])
  finally show ?thesis .
qed

lemma print_rslack_eq_flat:
  assumes "print x = \<e>"
  shows "print (rslack x y) = \<e>"
  by (simp only: print_rslack assms flat_rslack)

lemma print_rturn_eq_flat:
  assumes "print y = \<e>"
  shows "print (rturn x y) = \<e>"
proof -
  have "print (rturn x y) = rturn (print x) (print y)" by (simp only: print_rturn)
  also have "\<dots> = rturn (print x) \<e>" by (simp only: assms)
  also have "\<dots> = \<e>" by (simp only: rturn_flat)
  finally show ?thesis .
qed

lemma print_eq_of_rpart:
  assumes "print (rpart y x) = \<e>"
  shows "print y = print x"
proof -
  have "print y = rpart (print y) (print x) \<cdot> print x"
    by (simp only: rpart_fold [symmetric])
  also have "\<dots> = print (rpart y x) \<cdot> print x"
    by (simp only: print_rpart [symmetric])
  also have "\<dots> = \<e> \<cdot> print x" by (simp only: assms)
  also have "\<dots> = print x" by (simp only: flat_fold)
  finally show ?thesis .
qed

text \<open>An instance of @{thm [source] print_eq_of_rpart} in the affine hinge modulo 5:
x = (3, 0), y = (3, 1).\<close>

lemma
  shows "rpart (3, 1) (3, 0) = (1, 1)"
    and "print (1, 1) = (1, 0)"
    and "print (3, 1) = (3, 0)"
    and "print (3, 0) = (3, 0)"
  by eval+

subsection \<open>Products of hinges\<close>

text \<open>All operations and the order are taken in each component; the rule @{thm
[source] prod_rule} reduces a claim to its parts.\<close>

lemma prod_flip_fold_cancel_left: "flip p \<cdot> (p \<cdot> q) = q"
proof (rule prod_rule)
  show "flip (fst p) \<cdot> ((fst p) \<cdot> (fst q)) = (fst q)"
    by (rule flip_fold_cancel_left)
next
  show "flip (snd p) \<cdot> ((snd p) \<cdot> (snd q)) = (snd q)"
    by (rule flip_fold_cancel_left)
qed

lemma prod_fold_left_cancel:
  assumes "p \<cdot> q = p \<cdot> r"
  shows "q = r"
proof (rule prod_rule)
  show "(fst q) = (fst r)"
    using assms by (simp add: fold_left_cancel)
next
  show "(snd q) = (snd r)"
    using assms by (simp add: fold_left_cancel)
qed

lemma prod_eq_flip_fold_of:
  assumes "p \<cdot> q = r"
  shows "q = flip p \<cdot> r"
proof (rule prod_rule)
  show "(fst q) = flip (fst p) \<cdot> (fst r)"
    using assms by (simp add: eq_flip_fold_of)
next
  show "(snd q) = flip (snd p) \<cdot> (snd r)"
    using assms by (simp add: eq_flip_fold_of)
qed

lemma prod_eq_flat_of_fold_eq:
  assumes "p \<cdot> q = p"
  shows "q = \<e>"
proof (rule prod_rule)
  show "(fst q) = \<e>"
    using assms by (simp add: eq_flat_of_fold_eq)
next
  show "(snd q) = \<e>"
    using assms by (simp add: eq_flat_of_fold_eq)
qed

lemma prod_fold_flip_rev: "flip (p \<cdot> q) = flip q \<cdot> flip p"
proof (rule prod_rule)
  show "flip ((fst p) \<cdot> (fst q)) = flip (fst q) \<cdot> flip (fst p)"
    by (rule fold_flip_rev)
next
  show "flip ((snd p) \<cdot> (snd q)) = flip (snd q) \<cdot> flip (snd p)"
    by (rule fold_flip_rev)
qed

lemma prod_flip_inj:
  assumes "flip p = flip q"
  shows "p = q"
proof (rule prod_rule)
  show "(fst p) = (fst q)"
    using assms by (simp add: flip_inj)
next
  show "(snd p) = (snd q)"
    using assms by (simp add: flip_inj)
qed

lemma prod_fold_lpart: "p \<cdot> lpart p q = q"
proof (rule prod_rule)
  show "(fst p) \<cdot> lpart (fst p) (fst q) = (fst q)"
    by (rule fold_lpart)
next
  show "(snd p) \<cdot> lpart (snd p) (snd q) = (snd q)"
    by (rule fold_lpart)
qed

lemma prod_flip_lpart: "flip (lpart p q) = lpart q p"
proof (rule prod_rule)
  show "flip (lpart (fst p) (fst q)) = lpart (fst q) (fst p)"
    by (rule flip_lpart)
next
  show "flip (lpart (snd p) (snd q)) = lpart (snd q) (snd p)"
    by (rule flip_lpart)
qed

lemma prod_eq_of_lpart_eq_flat:
  assumes "lpart p q = \<e>"
  shows "q = p"
proof (rule prod_rule)
  show "(fst q) = (fst p)"
    using assms by (simp add: eq_of_lpart_eq_flat)
next
  show "(snd q) = (snd p)"
    using assms by (simp add: eq_of_lpart_eq_flat)
qed

lemma prod_flip_fold_cancel_right: "(q \<cdot> flip p) \<cdot> p = q"
proof (rule prod_rule)
  show "((fst q) \<cdot> flip (fst p)) \<cdot> (fst p) = (fst q)"
    by (rule flip_fold_cancel_right)
next
  show "((snd q) \<cdot> flip (snd p)) \<cdot> (snd p) = (snd q)"
    by (rule flip_fold_cancel_right)
qed

lemma prod_eq_flat_of_fold_eq_right:
  assumes "q \<cdot> p = p"
  shows "q = \<e>"
proof (rule prod_rule)
  show "(fst q) = \<e>"
    using assms by (simp add: eq_flat_of_fold_eq_right)
next
  show "(snd q) = \<e>"
    using assms by (simp add: eq_flat_of_fold_eq_right)
qed

lemma prod_fold_rpart: "rpart (q \<cdot> p) p = q"
proof (rule prod_rule)
  show "rpart ((fst q) \<cdot> (fst p)) (fst p) = (fst q)"
    by (rule fold_rpart)
next
  show "rpart ((snd q) \<cdot> (snd p)) (snd p) = (snd q)"
    by (rule fold_rpart)
qed

lemma prod_rpart_flat: "rpart p \<e> = p"
proof (rule prod_rule)
  show "rpart (fst p) \<e> = (fst p)"
    by (rule rpart_flat)
next
  show "rpart (snd p) \<e> = (snd p)"
    by (rule rpart_flat)
qed

lemma prod_fold_rpart_fold: "rpart (r \<cdot> p) (q \<cdot> p) = rpart r q"
proof (rule prod_rule)
  show "rpart ((fst r) \<cdot> (fst p)) ((fst q) \<cdot> (fst p)) = rpart (fst r) (fst q)"
    by (rule fold_rpart_fold)
next
  show "rpart ((snd r) \<cdot> (snd p)) ((snd q) \<cdot> (snd p)) = rpart (snd r) (snd q)"
    by (rule fold_rpart_fold)
qed

lemma prod_eq_of_rpart_eq_flat:
  assumes "rpart q p = \<e>"
  shows "q = p"
proof (rule prod_rule)
  show "(fst q) = (fst p)"
    using assms by (simp add: eq_of_rpart_eq_flat)
next
  show "(snd q) = (snd p)"
    using assms by (simp add: eq_of_rpart_eq_flat)
qed

lemma prod_flat_lturn: "lturn \<e> p = p"
proof (rule prod_rule)
  show "lturn \<e> (fst p) = (fst p)"
    by (rule flat_lturn)
next
  show "lturn \<e> (snd p) = (snd p)"
    by (rule flat_lturn)
qed

lemma prod_lturn_fold: "lturn p q \<cdot> lturn p r = lturn p (q \<cdot> r)"
proof (rule prod_rule)
  show "lturn (fst p) (fst q) \<cdot> lturn (fst p) (fst r) = lturn (fst p) ((fst q) \<cdot> (fst r))"
    by (rule lturn_fold)
next
  show "lturn (snd p) (snd q) \<cdot> lturn (snd p) (snd r) = lturn (snd p) ((snd q) \<cdot> (snd r))"
    by (rule lturn_fold)
qed

lemma prod_lturn_lturn: "lturn p (lturn q r) = lturn (p \<cdot> q) r"
proof (rule prod_rule)
  show "lturn (fst p) (lturn (fst q) (fst r)) = lturn ((fst p) \<cdot> (fst q)) (fst r)"
    by (rule lturn_lturn)
next
  show "lturn (snd p) (lturn (snd q) (snd r)) = lturn ((snd p) \<cdot> (snd q)) (snd r)"
    by (rule lturn_lturn)
qed

lemma prod_lturn_flip: "lturn p (flip q) = flip (lturn p q)"
proof (rule prod_rule)
  show "lturn (fst p) (flip (fst q)) = flip (lturn (fst p) (fst q))"
    by (rule lturn_flip)
next
  show "lturn (snd p) (flip (snd q)) = flip (lturn (snd p) (snd q))"
    by (rule lturn_flip)
qed

lemma prod_flip_lturn_cancel: "lturn (flip p) (lturn p q) = q"
proof (rule prod_rule)
  show "lturn (flip (fst p)) (lturn (fst p) (fst q)) = (fst q)"
    by (rule flip_lturn_cancel)
next
  show "lturn (flip (snd p)) (lturn (snd p) (snd q)) = (snd q)"
    by (rule flip_lturn_cancel)
qed

lemma prod_lturn_of_commute:
  assumes "p \<cdot> q = q \<cdot> p"
  shows "lturn p q = q"
proof (rule prod_rule)
  show "lturn (fst p) (fst q) = (fst q)"
    using assms by (simp add: lturn_of_commute)
next
  show "lturn (snd p) (snd q) = (snd q)"
    using assms by (simp add: lturn_of_commute)
qed

lemma prod_lturn_lpart: "lpart (lturn p q) (lturn p r) = lturn p (lpart q r)"
proof (rule prod_rule)
  show "lpart (lturn (fst p) (fst q)) (lturn (fst p) (fst r)) = lturn (fst p) (lpart (fst q) (fst r))"
    by (rule lturn_lpart)
next
  show "lpart (lturn (snd p) (snd q)) (lturn (snd p) (snd r)) = lturn (snd p) (lpart (snd q) (snd r))"
    by (rule lturn_lpart)
qed

lemma prod_lslack_self: "lslack p p = \<e>"
proof (rule prod_rule)
  show "lslack (fst p) (fst p) = \<e>"
    by (rule lslack_self)
next
  show "lslack (snd p) (snd p) = \<e>"
    by (rule lslack_self)
qed

lemma prod_lslack_flat: "lslack p \<e> = \<e>"
proof (rule prod_rule)
  show "lslack (fst p) \<e> = \<e>"
    by (rule lslack_flat)
next
  show "lslack (snd p) \<e> = \<e>"
    by (rule lslack_flat)
qed

lemma prod_lslack_fold_fold: "lslack p q \<cdot> (q \<cdot> p) = p \<cdot> q"
proof (rule prod_rule)
  show "lslack (fst p) (fst q) \<cdot> ((fst q) \<cdot> (fst p)) = (fst p) \<cdot> (fst q)"
    by (rule lslack_fold_fold)
next
  show "lslack (snd p) (snd q) \<cdot> ((snd q) \<cdot> (snd p)) = (snd p) \<cdot> (snd q)"
    by (rule lslack_fold_fold)
qed

lemma prod_lslack_eq_lturn_fold: "lslack p q = lturn p q \<cdot> flip q"
proof (rule prod_rule)
  show "lslack (fst p) (fst q) = lturn (fst p) (fst q) \<cdot> flip (fst q)"
    by (rule lslack_eq_lturn_fold)
next
  show "lslack (snd p) (snd q) = lturn (snd p) (snd q) \<cdot> flip (snd q)"
    by (rule lslack_eq_lturn_fold)
qed

lemma prod_lturn_eq_lslack_fold: "lturn p q = lslack p q \<cdot> q"
proof (rule prod_rule)
  show "lturn (fst p) (fst q) = lslack (fst p) (fst q) \<cdot> (fst q)"
    by (rule lturn_eq_lslack_fold)
next
  show "lturn (snd p) (snd q) = lslack (snd p) (snd q) \<cdot> (snd q)"
    by (rule lturn_eq_lslack_fold)
qed

lemma prod_lturn_lslack: "lslack (lturn p q) (lturn p r) = lturn p (lslack q r)"
proof (rule prod_rule)
  show "lslack (lturn (fst p) (fst q)) (lturn (fst p) (fst r)) = lturn (fst p) (lslack (fst q) (fst r))"
    by (rule lturn_lslack)
next
  show "lslack (lturn (snd p) (snd q)) (lturn (snd p) (snd r)) = lturn (snd p) (lslack (snd q) (snd r))"
    by (rule lturn_lslack)
qed

lemma prod_rturn_self: "rturn p p = p"
proof (rule prod_rule)
  show "rturn (fst p) (fst p) = (fst p)"
    by (rule rturn_self)
next
  show "rturn (snd p) (snd p) = (snd p)"
    by (rule rturn_self)
qed

lemma prod_rturn_fold: "rturn p r \<cdot> rturn p q = rturn p (r \<cdot> q)"
proof (rule prod_rule)
  show "rturn (fst p) (fst r) \<cdot> rturn (fst p) (fst q) = rturn (fst p) ((fst r) \<cdot> (fst q))"
    by (rule rturn_fold)
next
  show "rturn (snd p) (snd r) \<cdot> rturn (snd p) (snd q) = rturn (snd p) ((snd r) \<cdot> (snd q))"
    by (rule rturn_fold)
qed

lemma prod_rturn_injective:
  assumes "rturn p q = rturn p r"
  shows "q = r"
proof (rule prod_rule)
  show "(fst q) = (fst r)"
    using assms by (simp add: rturn_injective)
next
  show "(snd q) = (snd r)"
    using assms by (simp add: rturn_injective)
qed

lemma prod_print_flip: "flip (print p) = print (flip p)"
proof (rule prod_rule)
  show "flip (print (fst p)) = print (flip (fst p))"
    by (rule print_flip)
next
  show "flip (print (snd p)) = print (flip (snd p))"
    by (rule print_flip)
qed

lemma prod_print_lpart: "print (lpart p q) = lpart (print p) (print q)"
proof (rule prod_rule)
  show "print (lpart (fst p) (fst q)) = lpart (print (fst p)) (print (fst q))"
    by (rule print_lpart)
next
  show "print (lpart (snd p) (snd q)) = lpart (print (snd p)) (print (snd q))"
    by (rule print_lpart)
qed

lemma prod_print_lslack_eq_flat:
  assumes "print p = \<e>"
  shows "print (lslack p q) = \<e>"
proof (rule prod_rule)
  show "print (lslack (fst p) (fst q)) = \<e>"
    using assms by (simp add: print_lslack_eq_flat)
next
  show "print (lslack (snd p) (snd q)) = \<e>"
    using assms by (simp add: print_lslack_eq_flat)
qed

lemma prod_print_lturn_eq_flat:
  assumes "print q = \<e>"
  shows "print (lturn p q) = \<e>"
proof (rule prod_rule)
  show "print (lturn (fst p) (fst q)) = \<e>"
    using assms by (simp add: print_lturn_eq_flat)
next
  show "print (lturn (snd p) (snd q)) = \<e>"
    using assms by (simp add: print_lturn_eq_flat)
qed

lemma prod_print_eq_of_lpart:
  assumes "print (lpart p q) = \<e>"
  shows "print q = print p"
proof (rule prod_rule)
  show "print (fst q) = print (fst p)"
    using assms by (simp add: print_eq_of_lpart)
next
  show "print (snd q) = print (snd p)"
    using assms by (simp add: print_eq_of_lpart)
qed

lemma prod_rslack_self: "rslack p p = \<e>"
proof (rule prod_rule)
  show "rslack (fst p) (fst p) = \<e>"
    by (rule rslack_self)
next
  show "rslack (snd p) (snd p) = \<e>"
    by (rule rslack_self)
qed

lemma prod_commute_of_rslack:
  assumes "rslack p q = \<e>"
  shows "q \<cdot> p = p \<cdot> q"
proof (rule prod_rule)
  show "(fst q) \<cdot> (fst p) = (fst p) \<cdot> (fst q)"
    using assms by (simp add: commute_of_rslack)
next
  show "(snd q) \<cdot> (snd p) = (snd p) \<cdot> (snd q)"
    using assms by (simp add: commute_of_rslack)
qed

lemma prod_rslack_eq_fold_rturn: "rslack p q = flip q \<cdot> rturn p q"
proof (rule prod_rule)
  show "rslack (fst p) (fst q) = flip (fst q) \<cdot> rturn (fst p) (fst q)"
    by (rule rslack_eq_fold_rturn)
next
  show "rslack (snd p) (snd q) = flip (snd q) \<cdot> rturn (snd p) (snd q)"
    by (rule rslack_eq_fold_rturn)
qed

lemma prod_rslack_eq_rturn_fold: "rslack p q = rturn q (flip p) \<cdot> p"
proof (rule prod_rule)
  show "rslack (fst p) (fst q) = rturn (fst q) (flip (fst p)) \<cdot> (fst p)"
    by (rule rslack_eq_rturn_fold)
next
  show "rslack (snd p) (snd q) = rturn (snd q) (flip (snd p)) \<cdot> (snd p)"
    by (rule rslack_eq_rturn_fold)
qed

lemma prod_rturn_rslack: "rslack (rturn p q) (rturn p r) = rturn p (rslack q r)"
proof (rule prod_rule)
  show "rslack (rturn (fst p) (fst q)) (rturn (fst p) (fst r)) = rturn (fst p) (rslack (fst q) (fst r))"
    by (rule rturn_rslack)
next
  show "rslack (rturn (snd p) (snd q)) (rturn (snd p) (snd r)) = rturn (snd p) (rslack (snd q) (snd r))"
    by (rule rturn_rslack)
qed

lemma prod_print_rslack: "print (rslack p q) = rslack (print p) (print q)"
proof (rule prod_rule)
  show "print (rslack (fst p) (fst q)) = rslack (print (fst p)) (print (fst q))"
    by (rule print_rslack)
next
  show "print (rslack (snd p) (snd q)) = rslack (print (snd p)) (print (snd q))"
    by (rule print_rslack)
qed

lemma prod_print_rpart: "print (rpart q p) = rpart (print q) (print p)"
proof (rule prod_rule)
  show "print (rpart (fst q) (fst p)) = rpart (print (fst q)) (print (fst p))"
    by (rule print_rpart)
next
  show "print (rpart (snd q) (snd p)) = rpart (print (snd q)) (print (snd p))"
    by (rule print_rpart)
qed

theorem final_digest:
  shows "flip (x \<cdot> (y \<cdot> z)) = flip z \<cdot> (flip y \<cdot> flip x)"
    and "lpart x x = \<e>"
    and "lpart \<e> x = x"
    and "lpart (x \<cdot> y) (x \<cdot> z) = lpart y z"
    and "rpart y x \<cdot> x = y"
    and "rpart \<e> x = flip x"
    and "lslack x x = \<e>"
    and "lslack x \<e> = \<e>"
    and "lslack (x \<cdot> y) z = lturn x (lslack y z) \<cdot> lslack x z"
    and "rturn x \<e> = \<e>"
    and "rturn x (rturn y z) = rturn (y \<cdot> x) z"
    and "x \<cdot> rturn x y = y \<cdot> x"
    and "rslack x y = rturn y (flip x) \<cdot> x"
    and "rslack x (z \<cdot> y) = rturn y (rslack x z) \<cdot> rslack x y"
by (fact fold_fold_flip_rev lpart_self flat_lpart fold_lpart_fold rpart_fold flat_rpart
    lslack_self lslack_flat fold_lslack_left rturn_flat rturn_rturn fold_eq_fold_rturn
    rslack_eq_rturn_fold fold_rslack_left)+

end

end

import Mathlib.Order.Basic
import Mathlib.Data.Real.Basic

/-!
# Ravels

In this file we define ravels and prove basic lemmas about pulls, blocks, sheds and spares.
-/

/-- A ravel is a bounded partial order with pinches, spreads, pulls and sheds. -/
class Ravel (R : Type*) extends PartialOrder R, OrderTop R, OrderBot R where
  pinch : R → R → R
  spread : R → R → R
  pull : R → R → R
  shed : R → R → R
  block : R → R
  spare : R → R
  pinch_le_left : ∀ x y, x ⊓ y ≤ x
  pinch_le_right : ∀ x y, x ⊓ y ≤ y
  le_pinch : ∀ {x y z}, z ≤ x → z ≤ y → z ≤ x ⊓ y
  le_all : ∀ x, x ≤ ⊤
  le_pull_iff : ∀ {x y z}, x ≤ y ⇾ z ↔ x ⊓ y ≤ z
  block_def : ∀ x, block x = x ⇾ ⊥
  le_spread_left : ∀ x y, x ≤ x ⊔ y
  le_spread_right : ∀ x y, y ≤ x ⊔ y
  spread_le : ∀ {x y z}, x ≤ z → y ≤ z → x ⊔ y ≤ z
  nil_le : ∀ x, ⊥ ≤ x
  shed_le_iff : ∀ {x y z}, z ⧵ y ≤ x ↔ z ≤ x ⊔ y
  spare_def : ∀ x, spare x = ⊤ ⧵ x

namespace Ravel

scoped infixl:70 " ⊓ " => Ravel.pinch
scoped infixl:65 " ⊔ " => Ravel.spread
scoped infixl:60 " ⇾ " => Ravel.pull
scoped infixl:60 " ⧵ " => Ravel.shed

variable {R : Type*} [Ravel R]

/-!
### Working with the pinch
-/

section WorkingWithThePinch

variable {w x y z : R}

/-- The terms of a pinch may be exchanged. -/
lemma pinch_comm_le (x y : R) : x ⊓ y ≤ y ⊓ x :=
  le_pinch (pinch_le_right x y) (pinch_le_left x y)

/-- The pinch is monotone in both terms. -/
theorem pinch_mono (h₁ : x ≤ z) (h₂ : y ≤ w) : x ⊓ y ≤ z ⊓ w :=
  le_pinch (le_trans (pinch_le_left x y) h₁) (le_trans (pinch_le_right x y) h₂)

theorem pinch_mono_left (z : R) (h : x ≤ y) : x ⊓ z ≤ y ⊓ z :=
  pinch_mono h (le_refl z)

theorem pinch_mono_right (x : R) (h : y ≤ z) : x ⊓ y ≤ x ⊓ z :=
  pinch_mono (le_refl x) h

theorem pinch_assoc_le (x y z : R) : (x ⊓ y) ⊓ z ≤ x ⊓ (y ⊓ z) := by
  have h₁ : (x ⊓ y) ⊓ z ≤ x := le_trans (pinch_le_left (x ⊓ y) z) (pinch_le_left x y)
  have h₂ : (x ⊓ y) ⊓ z ≤ y := le_trans (pinch_le_left (x ⊓ y) z) (pinch_le_right x y)
  have h₃ : (x ⊓ y) ⊓ z ≤ y ⊓ z := le_pinch h₂ (pinch_le_right (x ⊓ y) z)
  exact le_pinch h₁ h₃

theorem le_pinch_assoc (x y z : R) : x ⊓ (y ⊓ z) ≤ (x ⊓ y) ⊓ z := by
  have h₁ : x ⊓ (y ⊓ z) ≤ y := le_trans (pinch_le_right x (y ⊓ z)) (pinch_le_left y z)
  have h₂ : x ⊓ (y ⊓ z) ≤ x ⊓ y := le_pinch (pinch_le_left x (y ⊓ z)) h₁
  have h₃ : x ⊓ (y ⊓ z) ≤ z := le_trans (pinch_le_right x (y ⊓ z)) (pinch_le_right y z)
  exact le_pinch h₂ h₃

/-- The largest element is neutral for the pinch. -/
theorem pinch_all (x : R) : x ⊓ ⊤ = x := by
  have h₁ : x ≤ x ⊓ ⊤ := le_pinch (le_refl x) (le_all x)
  exact le_antisymm (pinch_le_left x ⊤) h₁

lemma pinch_nil (x : R) : x ⊓ ⊥ = ⊥ :=
  le_antisymm (pinch_le_right x ⊥) (nil_le (x ⊓ ⊥))

end WorkingWithThePinch

/-! The divisors of 720, with `gcd` as pinch and `lcm` as spread. The pull `x ⇾ y` is the
largest divisor whose pinch with `x` divides `y`. -/

/-!
### The pull

* `pull_pinch_self`: inside a pinch with its premise the pull may be replaced by its conclusion.
* `pull_curry`: two premises may be taken one after the other.
-/

section ThePull

variable {x y z : R}

theorem pull_pinch_le (x y : R) : (x ⇾ y) ⊓ x ≤ y :=
  le_pull_iff.mp (le_refl (x ⇾ y))

lemma pinch_pull_le (x y : R) : x ⊓ (x ⇾ y) ≤ y :=
  le_trans (pinch_comm_le x (x ⇾ y)) (pull_pinch_le x y)

/-- Every element lies below the pull that ends in it. -/
lemma le_pull (x y : R) : y ≤ x ⇾ y :=
  le_pull_iff.mpr (pinch_le_left y x)

theorem pull_mono_right (x : R) (h : y ≤ z) : x ⇾ y ≤ x ⇾ z :=
  le_pull_iff.mpr (le_trans (pull_pinch_le x y) h)

/-- The pull is antitone in its premise. -/
theorem pull_anti_left (z : R) (h : x ≤ y) : y ⇾ z ≤ x ⇾ z := by
  have h₂ : (y ⇾ z) ⊓ x ≤ z := le_trans (pinch_mono_right (y ⇾ z) h) (pull_pinch_le y z)
  exact le_pull_iff.mpr h₂

@[simp] theorem pull_self (x : R) : x ⇾ x = ⊤ := by
  have h₁ : ⊤ ≤ x ⇾ x := le_pull_iff.mpr (pinch_le_right ⊤ x)
  exact le_antisymm (le_all (x ⇾ x)) h₁

lemma pull_eq_all (h : x ≤ y) : x ⇾ y = ⊤ := by
  have h₂ : ⊤ ≤ x ⇾ y := le_pull_iff.mpr (le_trans (pinch_le_right ⊤ x) h)
  exact le_antisymm (le_all (x ⇾ y)) h₂

lemma le_of_pull_eq_all (h : x ⇾ y = ⊤) : x ≤ y := by
  have h₂ : x ≤ ⊤ ⊓ x := le_pinch (le_all x) (le_refl x)
  exact le_trans h₂ (le_pull_iff.mp (ge_of_eq h))

@[simp] theorem all_pull (x : R) : ⊤ ⇾ x = x := by
  have h₁ : ⊤ ⇾ x ≤ (⊤ ⇾ x) ⊓ ⊤ := le_pinch (le_refl (⊤ ⇾ x)) (le_all (⊤ ⇾ x))
  exact le_antisymm (le_trans h₁ (pull_pinch_le ⊤ x)) (le_pull ⊤ x)

-- `pull_mono_right` in `Divisor 720` for x = 45, y = 10, z = 180
example : (45 ⇾ 10 : Divisor 720) = 80 := by decide
example : (45 ⇾ 180 : Divisor 720) = 720 := by decide

@[simp] theorem pull_all (x : R) : x ⇾ ⊤ = ⊤ :=
  le_antisymm (le_all (x ⇾ ⊤)) (le_pull x ⊤)

theorem nil_pull (x : R) : ⊥ ⇾ x = ⊤ :=
  pull_eq_all (nil_le x)

/-- Inside a pinch with its premise the pull may be replaced by its conclusion. -/
lemma pull_pinch_self (x y : R) : x ⊓ (x ⇾ y) = x ⊓ y := by
  have h₁ : x ⊓ (x ⇾ y) ≤ x ⊓ y := le_pinch (pinch_le_left x (x ⇾ y)) (pinch_pull_le x y)
  exact le_antisymm h₁ (pinch_mono_right x (le_pull x y))

theorem pinch_pull_cancel (x y : R) : (x ⇾ y) ⊓ y = y := by
  have h₁ : y ≤ (x ⇾ y) ⊓ y := le_pinch (le_pull x y) (le_refl y)
  exact le_antisymm (pinch_le_right (x ⇾ y) y) h₁

theorem pull_curry (x y z : R) : x ⊓ y ⇾ z ≤ x ⇾ (y ⇾ z) := by
  have h₁ : ((x ⊓ y ⇾ z) ⊓ x) ⊓ y ≤ z :=
    le_trans (pinch_assoc_le (x ⊓ y ⇾ z) x y) (pull_pinch_le (x ⊓ y) z)
  exact le_pull_iff.mpr (le_pull_iff.mpr h₁)

theorem pull_uncurry (x y z : R) : x ⇾ (y ⇾ z) ≤ x ⊓ y ⇾ z := by
  have h₁ : ((x ⇾ (y ⇾ z)) ⊓ x) ⊓ y ≤ z := le_pull_iff.mp (pull_pinch_le x (y ⇾ z))
  have h₂ : (x ⇾ (y ⇾ z)) ⊓ (x ⊓ y) ≤ z := le_trans (le_pinch_assoc (x ⇾ (y ⇾ z)) x y) h₁
  exact le_pull_iff.mpr h₂

@[simp] theorem pull_pull_eq (x y z : R) : x ⇾ (y ⇾ z) = x ⊓ y ⇾ z :=
  le_antisymm (pull_uncurry x y z) (pull_curry x y z)

lemma pull_left_comm (x y z : R) : x ⇾ (y ⇾ z) ≤ y ⇾ (x ⇾ z) := by
  have h₁ : x ⊓ y ⇾ z ≤ y ⊓ x ⇾ z := pull_anti_left z (pinch_comm_le y x)
  exact le_trans (pull_uncurry x y z) (le_trans h₁ (pull_curry y x z))

lemma pull_pinch (x y z : R) : x ⇾ y ⊓ z = (x ⇾ y) ⊓ (x ⇾ z) := by
  have h₁ : x ⇾ y ⊓ z ≤ x ⇾ y := pull_mono_right x (pinch_le_left y z)
  have h₂ : x ⇾ y ⊓ z ≤ x ⇾ z := pull_mono_right x (pinch_le_right y z)
  have h₃ : ((x ⇾ y) ⊓ (x ⇾ z)) ⊓ x ≤ y := le_pull_iff.mp (pinch_le_left (x ⇾ y) (x ⇾ z))
  have h₄ : ((x ⇾ y) ⊓ (x ⇾ z)) ⊓ x ≤ z := le_pull_iff.mp (pinch_le_right (x ⇾ y) (x ⇾ z))
  exact le_antisymm (le_pinch h₁ h₂) (le_pull_iff.mpr (le_pinch h₃ h₄))

-- `pull_eq_all` in `Divisor 720` for x = 4, y = 40
example : (4 ⇾ 40 : Divisor 720) = 720 := by decide

/-- A spread of premises becomes a pinch. -/
theorem spread_pull (x y z : R) : x ⊔ y ⇾ z = (x ⇾ z) ⊓ (y ⇾ z) := by
  have h₁ : x ⊔ y ⇾ z ≤ x ⇾ z := pull_anti_left z (le_spread_left x y)
  have h₂ : x ⊔ y ⇾ z ≤ y ⇾ z := pull_anti_left z (le_spread_right x y)
  have h₃ : x ⊓ ((x ⇾ z) ⊓ (y ⇾ z)) ≤ x ⊓ (x ⇾ z) :=
    pinch_mono_right x (pinch_le_left (x ⇾ z) (y ⇾ z))
  have h₄ : x ≤ (x ⇾ z) ⊓ (y ⇾ z) ⇾ z := le_pull_iff.mpr (le_trans h₃ (pinch_pull_le x z))
  have h₅ : y ⊓ ((x ⇾ z) ⊓ (y ⇾ z)) ≤ y ⊓ (y ⇾ z) :=
    pinch_mono_right y (pinch_le_right (x ⇾ z) (y ⇾ z))
  have h₆ : y ≤ (x ⇾ z) ⊓ (y ⇾ z) ⇾ z := le_pull_iff.mpr (le_trans h₅ (pinch_pull_le y z))
  have h₇ : ((x ⇾ z) ⊓ (y ⇾ z)) ⊓ (x ⊔ y) ≤ z :=
    le_trans (pinch_comm_le ((x ⇾ z) ⊓ (y ⇾ z)) (x ⊔ y)) (le_pull_iff.mp (spread_le h₄ h₆))
  exact le_antisymm (le_pinch h₁ h₂) (le_pull_iff.mpr h₇)

-- `all_pull` in `Divisor 720` for x = 48
example : (⊤ ⇾ 48 : Divisor 720) = 48 := by decide

lemma pull_trans (x y z : R) : (x ⇾ y) ⊓ (y ⇾ z) ≤ x ⇾ z := by
  have h₁ : ((x ⇾ y) ⊓ (y ⇾ z)) ⊓ x ≤ y := le_pull_iff.mp (pinch_le_left (x ⇾ y) (y ⇾ z))
  have h₂ : ((x ⇾ y) ⊓ (y ⇾ z)) ⊓ x ≤ y ⇾ z :=
    le_trans (pinch_le_left ((x ⇾ y) ⊓ (y ⇾ z)) x) (pinch_le_right (x ⇾ y) (y ⇾ z))
  have h₃ : ((x ⇾ y) ⊓ (y ⇾ z)) ⊓ x ≤ z := le_trans (le_pinch h₁ h₂) (pinch_pull_le y z)
  exact le_pull_iff.mpr h₃

/-- Every element lies below its double pull. -/
theorem pull_pull_self (x y : R) : x ≤ (x ⇾ y) ⇾ y :=
  le_pull_iff.mpr (pinch_pull_le x y)

lemma pull_pull_pull (x y : R) : ((x ⇾ y) ⇾ y) ⇾ y = x ⇾ y := by
  have h₁ : ((x ⇾ y) ⇾ y) ⇾ y ≤ x ⇾ y := pull_anti_left y (pull_pull_self x y)
  exact le_antisymm h₁ (pull_pull_self (x ⇾ y) y)

lemma pinch_le_pinch_pull (x y z : R) : y ⊓ z ≤ (x ⇾ y) ⊓ z :=
  pinch_mono_left z (le_pull x y)

end ThePull

/-!
### Working with the spread

* `le_spread_comm`: the terms of a spread may be exchanged.
* `spread_mono`: the spread is monotone in both terms.
-/

section WorkingWithTheSpread

variable {w x y z : R}

lemma le_spread_comm (x y : R) : y ⊔ x ≤ x ⊔ y :=
  spread_le (le_spread_right x y) (le_spread_left x y)

/-- The spread is monotone in both terms. -/
theorem spread_mono (h₁ : z ≤ x) (h₂ : w ≤ y) : z ⊔ w ≤ x ⊔ y :=
  spread_le (le_trans h₁ (le_spread_left x y)) (le_trans h₂ (le_spread_right x y))

/-- The spread is monotone in its first term. -/
theorem spread_mono_left (z : R) (h : y ≤ x) : y ⊔ z ≤ x ⊔ z :=
  spread_mono h (le_refl z)

-- `pull_pull_eq` in `Divisor 720` for x = 144, y = 15, z = 8
example : (15 ⇾ 8 : Divisor 720) = 16 := by decide
example : (144 ⇾ 16 : Divisor 720) = 80 := by decide
example : (144 ⊓ 15 : Divisor 720) = 3 := by decide
example : (3 ⇾ 8 : Divisor 720) = 80 := by decide

lemma spread_mono_right (x : R) (h : z ≤ y) : x ⊔ z ≤ x ⊔ y :=
  spread_mono (le_refl x) h

-- `pull_left_comm` in `Divisor 720` for x = 30, y = 8, z = 20
example : (8 ⇾ 20 : Divisor 720) = 180 := by decide
example : (30 ⇾ 180 : Divisor 720) = 720 := by decide
example : (30 ⇾ 20 : Divisor 720) = 80 := by decide
example : (8 ⇾ 80 : Divisor 720) = 720 := by decide

theorem le_spread_assoc (x y z : R) : x ⊔ (y ⊔ z) ≤ (x ⊔ y) ⊔ z := by
  have h₁ : x ≤ (x ⊔ y) ⊔ z := le_trans (le_spread_left x y) (le_spread_left (x ⊔ y) z)
  have h₂ : y ≤ (x ⊔ y) ⊔ z := le_trans (le_spread_right x y) (le_spread_left (x ⊔ y) z)
  have h₃ : y ⊔ z ≤ (x ⊔ y) ⊔ z := spread_le h₂ (le_spread_right (x ⊔ y) z)
  exact spread_le h₁ h₃

theorem spread_assoc_le (x y z : R) : (x ⊔ y) ⊔ z ≤ x ⊔ (y ⊔ z) := by
  have h₁ : y ≤ x ⊔ (y ⊔ z) := le_trans (le_spread_left y z) (le_spread_right x (y ⊔ z))
  have h₂ : x ⊔ y ≤ x ⊔ (y ⊔ z) := spread_le (le_spread_left x (y ⊔ z)) h₁
  have h₃ : z ≤ x ⊔ (y ⊔ z) := le_trans (le_spread_right y z) (le_spread_right x (y ⊔ z))
  exact spread_le h₂ h₃

-- `pull_trans` in `Divisor 720` for x = 8, y = 36, z = 24
example : (36 ⇾ 24 : Divisor 720) = 240 := by decide
example : (8 ⇾ 36 : Divisor 720) = 180 := by decide
example : (180 ⊓ 240 : Divisor 720) = 60 := by decide
example : (8 ⇾ 24 : Divisor 720) = 720 := by decide

/-- The smallest element is neutral for the spread. -/
@[simp] lemma spread_nil (x : R) : x ⊔ ⊥ = x := by
  have h₁ : x ⊔ ⊥ ≤ x := spread_le (le_refl x) (nil_le x)
  exact le_antisymm h₁ (le_spread_left x ⊥)

lemma spread_all (x : R) : x ⊔ ⊤ = ⊤ :=
  le_antisymm (le_all (x ⊔ ⊤)) (le_spread_right x ⊤)

end WorkingWithTheSpread

/-- First digest: the pinch is monotone in its first term; the pull followed by its premise
gives its conclusion; a trivial pull means that the elements are comparable; everything follows
from the smallest element; two premises may be taken together; the premises of a nested pull may
be exchanged; every element lies below its double pull; the spread is monotone in its first
term; brackets may be moved to the right in a spread. -/
theorem first_digest (x y z : R) :
    (x ≤ y → x ⊓ z ≤ y ⊓ z) ∧
    ((x ⇾ y) ⊓ x ≤ y) ∧
    (x ⇾ y = ⊤ → x ≤ y) ∧
    (⊥ ⇾ x = ⊤) ∧
    (x ⇾ (y ⇾ z) ≤ x ⊓ y ⇾ z) ∧
    (x ⇾ (y ⇾ z) ≤ y ⇾ (x ⇾ z)) ∧
    (x ≤ (x ⇾ y) ⇾ y) ∧
    (y ≤ x → y ⊔ z ≤ x ⊔ z) ∧
    (x ⊔ (y ⊔ z) ≤ (x ⊔ y) ⊔ z) :=
  ⟨pinch_mono_left z,
    pull_pinch_le x y,
    le_of_pull_eq_all,
    nil_pull x,
    pull_uncurry x y z,
    pull_left_comm x y z,
    pull_pull_self x y,
    spread_mono_left z,
    le_spread_assoc x y z⟩

/-!
### The block

* `pinch_block`: an element and its block have a trivial pinch.
* `pinch_le_of_le_block`: what lies below a block has a trivial pinch.
-/

section TheBlock

variable {x y : R}

lemma block_le_pull (x y : R) : block x ≤ x ⇾ y :=
  le_trans (le_of_eq (block_def x)) (pull_mono_right x (nil_le y))

theorem pinch_block (x : R) : x ⊓ block x = ⊥ := by
  have h₁ : x ⊓ block x ≤ x ⊓ (x ⇾ ⊥) := pinch_mono_right x (le_of_eq (block_def x))
  exact le_antisymm (le_trans h₁ (pinch_pull_le x ⊥)) (nil_le (x ⊓ block x))

theorem le_block_of_pinch (h : x ⊓ y ≤ ⊥) : x ≤ block y :=
  le_trans (le_pull_iff.mpr h) (ge_of_eq (block_def y))

theorem pinch_le_of_le_block (h : x ≤ block y) : x ⊓ y ≤ ⊥ := by
  have h₂ : x ≤ y ⇾ ⊥ := le_trans h (le_of_eq (block_def y))
  exact le_pull_iff.mp h₂

theorem block_anti (h : x ≤ y) : block y ≤ block x := by
  have h₂ : y ⇾ ⊥ ≤ block x := le_trans (pull_anti_left ⊥ h) (ge_of_eq (block_def x))
  exact le_trans (le_of_eq (block_def y)) h₂

theorem le_block_block (x : R) : x ≤ block (block x) :=
  le_block_of_pinch (le_of_eq (pinch_block x))

/-- A threefold block is a single one. -/
theorem block_block_block (x : R) : block (block (block x)) = block x :=
  le_antisymm (block_anti (le_block_block x)) (le_block_block (block x))

theorem block_block_mono (h : x ≤ y) : block (block x) ≤ block (block y) :=
  block_anti (block_anti h)

-- `spread_nil` in `Divisor 720` for x = 8
example : (8 ⊔ ⊥ : Divisor 720) = 8 := by decide

theorem le_block_comm (h : x ≤ block y) : y ≤ block x :=
  le_trans (le_block_block y) (block_anti h)

theorem block_spread (x y : R) : block (x ⊔ y) = block x ⊓ block y := by
  have h₁ : block (x ⊔ y) ≤ block x ⊓ block y :=
    le_pinch (block_anti (le_spread_left x y)) (block_anti (le_spread_right x y))
  have h₂ : x ≤ block (block x ⊓ block y) := le_block_comm (pinch_le_left (block x) (block y))
  have h₃ : y ≤ block (block x ⊓ block y) := le_block_comm (pinch_le_right (block x) (block y))
  exact le_antisymm h₁ (le_block_comm (spread_le h₂ h₃))

/-- The block of the largest element is the smallest. -/
lemma block_all : block ⊤ = ⊥ := by
  have h₁ : block ⊤ ≤ block ⊤ ⊓ ⊤ := le_pinch (le_refl (block ⊤)) (le_all (block ⊤))
  have h₂ : block ⊤ ⊓ ⊤ ≤ ⊥ := pinch_le_of_le_block (le_refl (block ⊤))
  exact le_antisymm (le_trans h₁ h₂) (nil_le (block ⊤))

theorem block_nil : block ⊥ = ⊤ := by
  have h₁ : ⊤ ≤ block ⊥ := le_block_of_pinch (pinch_le_right ⊤ ⊥)
  exact le_antisymm (le_all (block ⊥)) h₁

theorem spread_block_le (x y : R) : block x ⊔ y ≤ x ⇾ y :=
  spread_le (block_le_pull x y) (le_pull x y)

theorem pull_block_comm (x y : R) : x ⇾ block y ≤ block (x ⊓ y) := by
  have h₁ : ((x ⇾ block y) ⊓ x) ⊓ y ≤ ⊥ := pinch_le_of_le_block (pull_pinch_le x (block y))
  have h₂ : (x ⇾ block y) ⊓ (x ⊓ y) ≤ ⊥ := le_trans (le_pinch_assoc (x ⇾ block y) x y) h₁
  exact le_block_of_pinch h₂

end TheBlock

/-!
### The shed

* `shed_anti_right`: the shed is antitone in its premise.
* `shed_eq_nil`: comparable elements have a trivial shed.
-/

section TheShed

variable {x y z : R}

theorem le_spread_shed (x y : R) : y ≤ (y ⧵ x) ⊔ x :=
  shed_le_iff.mp (le_refl (y ⧵ x))

/-- The premise together with the shed gives the conclusion. -/
theorem le_shed_spread (x y : R) : y ≤ x ⊔ (y ⧵ x) :=
  le_trans (le_spread_shed x y) (le_spread_comm x (y ⧵ x))

theorem shed_le (x y : R) : y ⧵ x ≤ y :=
  shed_le_iff.mpr (le_spread_left y x)

-- `le_shed_spread` in `Divisor 720` for x = 6, y = 20
example : (20 ⧵ 6 : Divisor 720) = 20 := by decide
example : (6 ⊔ 20 : Divisor 720) = 60 := by decide

lemma shed_mono_left (x : R) (h : z ≤ y) : z ⧵ x ≤ y ⧵ x :=
  shed_le_iff.mpr (le_trans h (le_spread_shed x y))

/-- The shed is antitone in its premise. -/
theorem shed_anti_right (z : R) (h : y ≤ x) : z ⧵ x ≤ z ⧵ y := by
  have h₂ : z ≤ (z ⧵ y) ⊔ x := le_trans (le_spread_shed y z) (spread_mono_right (z ⧵ y) h)
  exact shed_le_iff.mpr h₂

lemma shed_self (x : R) : x ⧵ x = ⊥ := by
  have h₁ : x ⧵ x ≤ ⊥ := shed_le_iff.mpr (le_spread_right ⊥ x)
  exact le_antisymm h₁ (nil_le (x ⧵ x))

/-- Comparable elements have a trivial shed. -/
lemma shed_eq_nil (h : y ≤ x) : y ⧵ x = ⊥ := by
  have h₂ : y ⧵ x ≤ ⊥ := shed_le_iff.mpr (le_trans h (le_spread_right ⊥ x))
  exact le_antisymm h₂ (nil_le (y ⧵ x))

theorem le_of_shed_eq_nil (h : y ⧵ x = ⊥) : y ≤ x := by
  have h₂ : ⊥ ⊔ x ≤ x := spread_le (nil_le x) (le_refl x)
  exact le_trans (shed_le_iff.mp (le_of_eq h)) h₂

/-- A shed with a trivial premise is its conclusion. -/
lemma shed_nil (x : R) : x ⧵ ⊥ = x := by
  have h₁ : (x ⧵ ⊥) ⊔ ⊥ ≤ x ⧵ ⊥ := spread_le (le_refl (x ⧵ ⊥)) (nil_le (x ⧵ ⊥))
  exact le_antisymm (shed_le ⊥ x) (le_trans (le_spread_shed ⊥ x) h₁)

lemma nil_shed (x : R) : ⊥ ⧵ x = ⊥ :=
  le_antisymm (shed_le x ⊥) (nil_le (⊥ ⧵ x))

theorem shed_all (x : R) : x ⧵ ⊤ = ⊥ :=
  shed_eq_nil (le_all x)

theorem shed_spread_self (x y : R) : x ⊔ (y ⧵ x) = x ⊔ y := by
  have h₁ : x ⊔ y ≤ x ⊔ (y ⧵ x) := spread_le (le_spread_left x (y ⧵ x)) (le_shed_spread x y)
  exact le_antisymm (spread_mono_right x (shed_le x y)) h₁

/-- The conclusion absorbs the shed. -/
theorem spread_shed_cancel (x y : R) : (y ⧵ x) ⊔ y = y := by
  have h₁ : (y ⧵ x) ⊔ y ≤ y := spread_le (shed_le x y) (le_refl y)
  exact le_antisymm h₁ (le_spread_right (y ⧵ x) y)

/-- Two premises may be taken one after the other. -/
theorem shed_curry (x y z : R) : (z ⧵ y) ⧵ x ≤ z ⧵ x ⊔ y := by
  have h₁ : z ≤ ((z ⧵ x ⊔ y) ⊔ x) ⊔ y :=
    le_trans (le_spread_shed (x ⊔ y) z) (le_spread_assoc (z ⧵ x ⊔ y) x y)
  exact shed_le_iff.mpr (shed_le_iff.mpr h₁)

-- `shed_eq_nil` in `Divisor 720` for x = 48, y = 4
example : (4 ⧵ 48 : Divisor 720) = 1 := by decide

theorem shed_uncurry (x y z : R) : z ⧵ x ⊔ y ≤ (z ⧵ y) ⧵ x := by
  have h₁ : z ≤ (((z ⧵ y) ⧵ x) ⊔ x) ⊔ y := shed_le_iff.mp (le_spread_shed x (z ⧵ y))
  have h₂ : z ≤ ((z ⧵ y) ⧵ x) ⊔ (x ⊔ y) := le_trans h₁ (spread_assoc_le ((z ⧵ y) ⧵ x) x y)
  exact shed_le_iff.mpr h₂

theorem shed_shed_eq (x y z : R) : (z ⧵ y) ⧵ x = z ⧵ x ⊔ y :=
  le_antisymm (shed_curry x y z) (shed_uncurry x y z)

lemma shed_right_comm (x y z : R) : (z ⧵ x) ⧵ y ≤ (z ⧵ y) ⧵ x := by
  have h₁ : z ⧵ y ⊔ x ≤ z ⧵ x ⊔ y := shed_anti_right z (le_spread_comm y x)
  exact le_trans (shed_curry y x z) (le_trans h₁ (shed_uncurry x y z))

/-- The shed respects a spread in its conclusion. -/
theorem spread_shed (x y z : R) : y ⊔ z ⧵ x = (y ⧵ x) ⊔ (z ⧵ x) := by
  have h₁ : y ≤ ((y ⧵ x) ⊔ (z ⧵ x)) ⊔ x := shed_le_iff.mp (le_spread_left (y ⧵ x) (z ⧵ x))
  have h₂ : z ≤ ((y ⧵ x) ⊔ (z ⧵ x)) ⊔ x := shed_le_iff.mp (le_spread_right (y ⧵ x) (z ⧵ x))
  have h₃ : y ⧵ x ≤ y ⊔ z ⧵ x := shed_mono_left x (le_spread_left y z)
  have h₄ : z ⧵ x ≤ y ⊔ z ⧵ x := shed_mono_left x (le_spread_right y z)
  exact le_antisymm (shed_le_iff.mpr (spread_le h₁ h₂)) (spread_le h₃ h₄)

theorem shed_pinch (x y z : R) : z ⧵ x ⊓ y = (z ⧵ x) ⊔ (z ⧵ y) := by
  have h₁ : x ⊔ (z ⧵ x) ≤ x ⊔ ((z ⧵ x) ⊔ (z ⧵ y)) :=
    spread_mono_right x (le_spread_left (z ⧵ x) (z ⧵ y))
  have h₂ : z ⧵ (z ⧵ x) ⊔ (z ⧵ y) ≤ x := shed_le_iff.mpr (le_trans (le_shed_spread x z) h₁)
  have h₃ : y ⊔ (z ⧵ y) ≤ y ⊔ ((z ⧵ x) ⊔ (z ⧵ y)) :=
    spread_mono_right y (le_spread_right (z ⧵ x) (z ⧵ y))
  have h₄ : z ⧵ (z ⧵ x) ⊔ (z ⧵ y) ≤ y := shed_le_iff.mpr (le_trans (le_shed_spread y z) h₃)
  have h₅ : z ≤ ((z ⧵ x) ⊔ (z ⧵ y)) ⊔ x ⊓ y :=
    le_trans (shed_le_iff.mp (le_pinch h₂ h₄)) (le_spread_comm ((z ⧵ x) ⊔ (z ⧵ y)) (x ⊓ y))
  have h₆ : z ⧵ x ≤ z ⧵ x ⊓ y := shed_anti_right z (pinch_le_left x y)
  have h₇ : z ⧵ y ≤ z ⧵ x ⊓ y := shed_anti_right z (pinch_le_right x y)
  exact le_antisymm (shed_le_iff.mpr h₅) (spread_le h₆ h₇)

-- `spread_shed_cancel` in `Divisor 720` for x = 48, y = 240
example : (240 ⧵ 48 : Divisor 720) = 5 := by decide
example : (5 ⊔ 240 : Divisor 720) = 240 := by decide

lemma shed_trans (x y z : R) : z ⧵ x ≤ (y ⧵ x) ⊔ (z ⧵ y) := by
  have h₁ : y ≤ ((y ⧵ x) ⊔ (z ⧵ y)) ⊔ x := shed_le_iff.mp (le_spread_left (y ⧵ x) (z ⧵ y))
  have h₂ : z ⧵ y ≤ ((y ⧵ x) ⊔ (z ⧵ y)) ⊔ x :=
    le_trans (le_spread_right (y ⧵ x) (z ⧵ y)) (le_spread_left ((y ⧵ x) ⊔ (z ⧵ y)) x)
  have h₃ : z ≤ ((y ⧵ x) ⊔ (z ⧵ y)) ⊔ x := le_trans (le_shed_spread y z) (spread_le h₁ h₂)
  exact shed_le_iff.mpr h₃

theorem shed_shed_self (x y : R) : y ⧵ (y ⧵ x) ≤ x :=
  shed_le_iff.mpr (le_shed_spread x y)

/-- A threefold shed is a single one. -/
@[simp] lemma shed_shed_shed (x y : R) : y ⧵ (y ⧵ (y ⧵ x)) = y ⧵ x := by
  have h₁ : y ⧵ x ≤ y ⧵ (y ⧵ (y ⧵ x)) := shed_anti_right y (shed_shed_self x y)
  exact le_antisymm (shed_shed_self (y ⧵ x) y) h₁

theorem spread_shed_le_spread (x y z : R) : (y ⧵ x) ⊔ z ≤ y ⊔ z :=
  spread_mono_left z (shed_le x y)

-- `shed_uncurry` in `Divisor 720` for x = 240, y = 4, z = 360
example : (240 ⊔ 4 : Divisor 720) = 240 := by decide
example : (360 ⧵ 240 : Divisor 720) = 9 := by decide
example : (360 ⧵ 4 : Divisor 720) = 360 := by decide

end TheShed

/-!
### The spare

* `spare_spare_le`: an element lies above its double spare.
* `spare_all`: the spare of the largest element is the smallest.
-/

section TheSpare

variable {x y : R}

lemma shed_le_spare (x y : R) : y ⧵ x ≤ spare x :=
  le_trans (shed_mono_left x (le_all y)) (ge_of_eq (spare_def x))

-- `shed_shed_shed` in `Divisor 720` for x = 24, y = 5
example : (5 ⧵ 24 : Divisor 720) = 5 := by decide
example : (5 ⧵ 5 : Divisor 720) = 1 := by decide
example : (5 ⧵ 1 : Divisor 720) = 5 := by decide

/-- An element and its spare have a trivial spread. -/
lemma spread_spare (x : R) : x ⊔ spare x = ⊤ := by
  have h₁ : x ⊔ (⊤ ⧵ x) ≤ x ⊔ spare x := spread_mono_right x (ge_of_eq (spare_def x))
  exact le_antisymm (le_all (x ⊔ spare x)) (le_trans (le_shed_spread x ⊤) h₁)

theorem spare_le_of_spread (h : ⊤ ≤ x ⊔ y) : spare y ≤ x :=
  le_trans (le_of_eq (spare_def y)) (shed_le_iff.mpr h)

-- `shed_trans` in `Divisor 720` for x = 3, y = 30, z = 45
example : (45 ⧵ 3 : Divisor 720) = 45 := by decide
example : (45 ⧵ 30 : Divisor 720) = 9 := by decide
example : (30 ⧵ 3 : Divisor 720) = 10 := by decide
example : (10 ⊔ 9 : Divisor 720) = 90 := by decide

/-- What lies above a spare has a trivial spread. -/
lemma le_spread_of_spare_le (h : spare y ≤ x) : ⊤ ≤ x ⊔ y := by
  have h₂ : ⊤ ⧵ y ≤ x := le_trans (ge_of_eq (spare_def y)) h
  exact shed_le_iff.mp h₂

/-- The spare turns the order around. -/
theorem spare_anti (h : y ≤ x) : spare x ≤ spare y := by
  have h₂ : ⊤ ⧵ x ≤ spare y := le_trans (shed_anti_right ⊤ h) (ge_of_eq (spare_def y))
  exact le_trans (le_of_eq (spare_def x)) h₂

theorem spare_spare_le (x : R) : spare (spare x) ≤ x :=
  spare_le_of_spread (ge_of_eq (spread_spare x))

@[simp] lemma spare_spare_spare (x : R) : spare (spare (spare x)) = spare x :=
  le_antisymm (spare_spare_le (spare x)) (spare_anti (spare_spare_le x))

lemma spare_spare_mono (h : y ≤ x) : spare (spare y) ≤ spare (spare x) :=
  spare_anti (spare_anti h)

lemma spare_le_comm (h : spare y ≤ x) : spare x ≤ y :=
  le_trans (spare_anti h) (spare_spare_le y)

/-- The spare of a pinch is the spread of the spares. -/
lemma spare_pinch (x y : R) : spare (x ⊓ y) = spare x ⊔ spare y := by
  have h₁ : spare (spare x ⊔ spare y) ≤ x := spare_le_comm (le_spread_left (spare x) (spare y))
  have h₂ : spare (spare x ⊔ spare y) ≤ y := spare_le_comm (le_spread_right (spare x) (spare y))
  have h₃ : spare x ⊔ spare y ≤ spare (x ⊓ y) :=
    spread_le (spare_anti (pinch_le_left x y)) (spare_anti (pinch_le_right x y))
  exact le_antisymm (spare_le_comm (le_pinch h₁ h₂)) h₃

theorem spare_nil : spare ⊥ = ⊤ := by
  have h₁ : ⊤ ≤ spare ⊥ ⊔ ⊥ := le_spread_of_spare_le (le_refl (spare ⊥))
  have h₂ : spare ⊥ ⊔ ⊥ ≤ spare ⊥ := spread_le (le_refl (spare ⊥)) (nil_le (spare ⊥))
  exact le_antisymm (le_all (spare ⊥)) (le_trans h₁ h₂)

-- `spare_spare_spare` in `Divisor 720` for x = 240
example : (spare 240 : Divisor 720) = 9 := by decide
example : (spare 9 : Divisor 720) = 80 := by decide
example : (spare 80 : Divisor 720) = 9 := by decide

@[simp] lemma spare_all : spare ⊤ = ⊥ := by
  have h₁ : spare ⊤ ≤ ⊥ := spare_le_of_spread (le_spread_right ⊥ ⊤)
  exact le_antisymm h₁ (nil_le (spare ⊤))

lemma spare_pinch_le (x y : R) : y ⧵ x ≤ spare x ⊓ y :=
  le_pinch (shed_le_spare x y) (shed_le x y)

/-- A shed into a spare excludes the spread. -/
theorem spare_shed_comm (x y : R) : spare (x ⊔ y) ≤ spare y ⧵ x := by
  have h₁ : ⊤ ≤ ((spare y ⧵ x) ⊔ x) ⊔ y := le_spread_of_spare_le (le_spread_shed x (spare y))
  have h₂ : ⊤ ≤ (spare y ⧵ x) ⊔ (x ⊔ y) := le_trans h₁ (spread_assoc_le (spare y ⧵ x) x y)
  exact spare_le_of_spread h₂

end TheSpare

/-- Second digest: the pinch is monotone in its first term; a pull with a trivial premise is its
conclusion; the spread is monotone in its first term; the spread is monotone in its second term;
brackets may be moved to the left in a spread; an element with trivial pinch lies below the
block; the shed is monotone in its conclusion; the conclusion absorbs the shed; an element and
its spare have a trivial spread. -/
theorem second_digest (x y z : R) :
    (x ≤ y → x ⊓ z ≤ y ⊓ z) ∧
    (⊤ ⇾ x = x) ∧
    (y ≤ x → y ⊔ z ≤ x ⊔ z) ∧
    (z ≤ y → x ⊔ z ≤ x ⊔ y) ∧
    ((x ⊔ y) ⊔ z ≤ x ⊔ (y ⊔ z)) ∧
    (x ⊓ y ≤ ⊥ → x ≤ block y) ∧
    (z ≤ y → z ⧵ x ≤ y ⧵ x) ∧
    ((y ⧵ x) ⊔ y = y) ∧
    (x ⊔ spare x = ⊤) :=
  ⟨pinch_mono_left z,
    all_pull x,
    spread_mono_left z,
    spread_mono_right x,
    spread_assoc_le x y z,
    le_block_of_pinch,
    shed_mono_left x,
    spread_shed_cancel x y,
    spread_spare x⟩

/-!
### Products of ravels

All operations and the order are taken in each component.
-/

variable {S : Type*} [Ravel S] {p q r s : R × S}

theorem Prod.pinch_comm_le (p q : R × S) : p ⊓ q ≤ q ⊓ p :=
  ⟨pinch_comm_le p.1 q.1, pinch_comm_le p.2 q.2⟩

theorem Prod.pinch_mono (h₁ : p ≤ r) (h₂ : q ≤ s) : p ⊓ q ≤ r ⊓ s :=
  ⟨pinch_mono h₁.1 h₂.1, pinch_mono h₁.2 h₂.2⟩

theorem Prod.pinch_mono_left (r : R × S) (h : p ≤ q) : p ⊓ r ≤ q ⊓ r :=
  ⟨pinch_mono_left r.1 h.1, pinch_mono_left r.2 h.2⟩

theorem Prod.pinch_mono_right (p : R × S) (h : q ≤ r) : p ⊓ q ≤ p ⊓ r :=
  ⟨pinch_mono_right p.1 h.1, pinch_mono_right p.2 h.2⟩

theorem Prod.pinch_assoc_le (p q r : R × S) : (p ⊓ q) ⊓ r ≤ p ⊓ (q ⊓ r) :=
  ⟨pinch_assoc_le p.1 q.1 r.1, pinch_assoc_le p.2 q.2 r.2⟩

theorem Prod.le_pinch_assoc (p q r : R × S) : p ⊓ (q ⊓ r) ≤ (p ⊓ q) ⊓ r :=
  ⟨le_pinch_assoc p.1 q.1 r.1, le_pinch_assoc p.2 q.2 r.2⟩

theorem Prod.pinch_all (p : R × S) : p ⊓ ⊤ = p :=
  Prod.ext (pinch_all p.1) (pinch_all p.2)

theorem Prod.pinch_nil (p : R × S) : p ⊓ ⊥ = ⊥ :=
  Prod.ext (pinch_nil p.1) (pinch_nil p.2)

theorem Prod.pull_pinch_le (p q : R × S) : (p ⇾ q) ⊓ p ≤ q :=
  ⟨pull_pinch_le p.1 q.1, pull_pinch_le p.2 q.2⟩

theorem Prod.pinch_pull_le (p q : R × S) : p ⊓ (p ⇾ q) ≤ q :=
  ⟨pinch_pull_le p.1 q.1, pinch_pull_le p.2 q.2⟩

theorem Prod.le_pull (p q : R × S) : q ≤ p ⇾ q :=
  ⟨le_pull p.1 q.1, le_pull p.2 q.2⟩

theorem Prod.pull_mono_right (p : R × S) (h : q ≤ r) : p ⇾ q ≤ p ⇾ r :=
  ⟨pull_mono_right p.1 h.1, pull_mono_right p.2 h.2⟩

theorem Prod.pull_anti_left (r : R × S) (h : p ≤ q) : q ⇾ r ≤ p ⇾ r :=
  ⟨pull_anti_left r.1 h.1, pull_anti_left r.2 h.2⟩

theorem Prod.pull_self (p : R × S) : p ⇾ p = ⊤ :=
  Prod.ext (pull_self p.1) (pull_self p.2)

theorem Prod.pull_eq_all (h : p ≤ q) : p ⇾ q = ⊤ :=
  Prod.ext (pull_eq_all h.1) (pull_eq_all h.2)

theorem Prod.le_of_pull_eq_all (h : p ⇾ q = ⊤) : p ≤ q :=
  ⟨le_of_pull_eq_all (congrArg Prod.fst h), le_of_pull_eq_all (congrArg Prod.snd h)⟩

theorem Prod.all_pull (p : R × S) : ⊤ ⇾ p = p :=
  Prod.ext (all_pull p.1) (all_pull p.2)

theorem Prod.pull_all (p : R × S) : p ⇾ ⊤ = ⊤ :=
  Prod.ext (pull_all p.1) (pull_all p.2)

theorem Prod.nil_pull (p : R × S) : ⊥ ⇾ p = ⊤ :=
  Prod.ext (nil_pull p.1) (nil_pull p.2)

theorem Prod.pull_pinch_self (p q : R × S) : p ⊓ (p ⇾ q) = p ⊓ q :=
  Prod.ext (pull_pinch_self p.1 q.1) (pull_pinch_self p.2 q.2)

theorem Prod.pinch_pull_cancel (p q : R × S) : (p ⇾ q) ⊓ q = q :=
  Prod.ext (pinch_pull_cancel p.1 q.1) (pinch_pull_cancel p.2 q.2)

theorem Prod.pull_curry (p q r : R × S) : p ⊓ q ⇾ r ≤ p ⇾ (q ⇾ r) :=
  ⟨pull_curry p.1 q.1 r.1, pull_curry p.2 q.2 r.2⟩

theorem Prod.pull_uncurry (p q r : R × S) : p ⇾ (q ⇾ r) ≤ p ⊓ q ⇾ r :=
  ⟨pull_uncurry p.1 q.1 r.1, pull_uncurry p.2 q.2 r.2⟩

theorem Prod.pull_pull_eq (p q r : R × S) : p ⇾ (q ⇾ r) = p ⊓ q ⇾ r :=
  Prod.ext (pull_pull_eq p.1 q.1 r.1) (pull_pull_eq p.2 q.2 r.2)

theorem Prod.pull_left_comm (p q r : R × S) : p ⇾ (q ⇾ r) ≤ q ⇾ (p ⇾ r) :=
  ⟨pull_left_comm p.1 q.1 r.1, pull_left_comm p.2 q.2 r.2⟩

theorem Prod.pull_pinch (p q r : R × S) : p ⇾ q ⊓ r = (p ⇾ q) ⊓ (p ⇾ r) :=
  Prod.ext (pull_pinch p.1 q.1 r.1) (pull_pinch p.2 q.2 r.2)

theorem Prod.spread_pull (p q r : R × S) : p ⊔ q ⇾ r = (p ⇾ r) ⊓ (q ⇾ r) :=
  Prod.ext (spread_pull p.1 q.1 r.1) (spread_pull p.2 q.2 r.2)

theorem Prod.pull_pull_self (p q : R × S) : p ≤ (p ⇾ q) ⇾ q :=
  ⟨pull_pull_self p.1 q.1, pull_pull_self p.2 q.2⟩

theorem Prod.pull_pull_pull (p q : R × S) : ((p ⇾ q) ⇾ q) ⇾ q = p ⇾ q :=
  Prod.ext (pull_pull_pull p.1 q.1) (pull_pull_pull p.2 q.2)

theorem Prod.pinch_le_pinch_pull (p q r : R × S) : q ⊓ r ≤ (p ⇾ q) ⊓ r :=
  ⟨pinch_le_pinch_pull p.1 q.1 r.1, pinch_le_pinch_pull p.2 q.2 r.2⟩

theorem Prod.le_spread_comm (p q : R × S) : q ⊔ p ≤ p ⊔ q :=
  ⟨le_spread_comm p.1 q.1, le_spread_comm p.2 q.2⟩

theorem Prod.spread_mono (h₁ : r ≤ p) (h₂ : s ≤ q) : r ⊔ s ≤ p ⊔ q :=
  ⟨spread_mono h₁.1 h₂.1, spread_mono h₁.2 h₂.2⟩

theorem Prod.spread_mono_left (r : R × S) (h : q ≤ p) : q ⊔ r ≤ p ⊔ r :=
  ⟨spread_mono_left r.1 h.1, spread_mono_left r.2 h.2⟩

theorem Prod.spread_mono_right (p : R × S) (h : r ≤ q) : p ⊔ r ≤ p ⊔ q :=
  ⟨spread_mono_right p.1 h.1, spread_mono_right p.2 h.2⟩

theorem Prod.le_spread_assoc (p q r : R × S) : p ⊔ (q ⊔ r) ≤ (p ⊔ q) ⊔ r :=
  ⟨le_spread_assoc p.1 q.1 r.1, le_spread_assoc p.2 q.2 r.2⟩

theorem Prod.spread_assoc_le (p q r : R × S) : (p ⊔ q) ⊔ r ≤ p ⊔ (q ⊔ r) :=
  ⟨spread_assoc_le p.1 q.1 r.1, spread_assoc_le p.2 q.2 r.2⟩

theorem Prod.spread_nil (p : R × S) : p ⊔ ⊥ = p :=
  Prod.ext (spread_nil p.1) (spread_nil p.2)

theorem Prod.spread_all (p : R × S) : p ⊔ ⊤ = ⊤ :=
  Prod.ext (spread_all p.1) (spread_all p.2)

theorem Prod.block_le_pull (p q : R × S) : block p ≤ p ⇾ q :=
  ⟨block_le_pull p.1 q.1, block_le_pull p.2 q.2⟩

theorem Prod.pinch_block (p : R × S) : p ⊓ block p = ⊥ :=
  Prod.ext (pinch_block p.1) (pinch_block p.2)

theorem Prod.le_block_of_pinch (h : p ⊓ q ≤ ⊥) : p ≤ block q :=
  ⟨le_block_of_pinch h.1, le_block_of_pinch h.2⟩

theorem Prod.pinch_le_of_le_block (h : p ≤ block q) : p ⊓ q ≤ ⊥ :=
  ⟨pinch_le_of_le_block h.1, pinch_le_of_le_block h.2⟩

theorem Prod.block_anti (h : p ≤ q) : block q ≤ block p :=
  ⟨block_anti h.1, block_anti h.2⟩

theorem Prod.le_block_block (p : R × S) : p ≤ block (block p) :=
  ⟨le_block_block p.1, le_block_block p.2⟩

theorem Prod.block_block_block (p : R × S) : block (block (block p)) = block p :=
  Prod.ext (block_block_block p.1) (block_block_block p.2)

theorem Prod.block_block_mono (h : p ≤ q) : block (block p) ≤ block (block q) :=
  ⟨block_block_mono h.1, block_block_mono h.2⟩

theorem Prod.block_spread (p q : R × S) : block (p ⊔ q) = block p ⊓ block q :=
  Prod.ext (block_spread p.1 q.1) (block_spread p.2 q.2)

theorem Prod.block_all : block ⊤ = ⊥ :=
  Prod.ext (block_all) (block_all)

theorem Prod.block_nil : block ⊥ = ⊤ :=
  Prod.ext (block_nil) (block_nil)

theorem Prod.spread_block_le (p q : R × S) : block p ⊔ q ≤ p ⇾ q :=
  ⟨spread_block_le p.1 q.1, spread_block_le p.2 q.2⟩

theorem Prod.pull_block_comm (p q : R × S) : p ⇾ block q ≤ block (p ⊓ q) :=
  ⟨pull_block_comm p.1 q.1, pull_block_comm p.2 q.2⟩

theorem Prod.le_spread_shed (p q : R × S) : q ≤ (q ⧵ p) ⊔ p :=
  ⟨le_spread_shed p.1 q.1, le_spread_shed p.2 q.2⟩

theorem Prod.le_shed_spread (p q : R × S) : q ≤ p ⊔ (q ⧵ p) :=
  ⟨le_shed_spread p.1 q.1, le_shed_spread p.2 q.2⟩

theorem Prod.shed_le (p q : R × S) : q ⧵ p ≤ q :=
  ⟨shed_le p.1 q.1, shed_le p.2 q.2⟩

theorem Prod.shed_mono_left (p : R × S) (h : r ≤ q) : r ⧵ p ≤ q ⧵ p :=
  ⟨shed_mono_left p.1 h.1, shed_mono_left p.2 h.2⟩

theorem Prod.shed_anti_right (r : R × S) (h : q ≤ p) : r ⧵ p ≤ r ⧵ q :=
  ⟨shed_anti_right r.1 h.1, shed_anti_right r.2 h.2⟩

theorem Prod.shed_self (p : R × S) : p ⧵ p = ⊥ :=
  Prod.ext (shed_self p.1) (shed_self p.2)

theorem Prod.shed_eq_nil (h : q ≤ p) : q ⧵ p = ⊥ :=
  Prod.ext (shed_eq_nil h.1) (shed_eq_nil h.2)

theorem Prod.le_of_shed_eq_nil (h : q ⧵ p = ⊥) : q ≤ p :=
  ⟨le_of_shed_eq_nil (congrArg Prod.fst h), le_of_shed_eq_nil (congrArg Prod.snd h)⟩

theorem Prod.shed_nil (p : R × S) : p ⧵ ⊥ = p :=
  Prod.ext (shed_nil p.1) (shed_nil p.2)

theorem Prod.nil_shed (p : R × S) : ⊥ ⧵ p = ⊥ :=
  Prod.ext (nil_shed p.1) (nil_shed p.2)

theorem Prod.shed_all (p : R × S) : p ⧵ ⊤ = ⊥ :=
  Prod.ext (shed_all p.1) (shed_all p.2)

theorem Prod.spread_shed_cancel (p q : R × S) : (q ⧵ p) ⊔ q = q :=
  Prod.ext (spread_shed_cancel p.1 q.1) (spread_shed_cancel p.2 q.2)

theorem Prod.shed_curry (p q r : R × S) : (r ⧵ q) ⧵ p ≤ r ⧵ p ⊔ q :=
  ⟨shed_curry p.1 q.1 r.1, shed_curry p.2 q.2 r.2⟩

theorem Prod.shed_uncurry (p q r : R × S) : r ⧵ p ⊔ q ≤ (r ⧵ q) ⧵ p :=
  ⟨shed_uncurry p.1 q.1 r.1, shed_uncurry p.2 q.2 r.2⟩

theorem Prod.shed_shed_eq (p q r : R × S) : (r ⧵ q) ⧵ p = r ⧵ p ⊔ q :=
  Prod.ext (shed_shed_eq p.1 q.1 r.1) (shed_shed_eq p.2 q.2 r.2)

theorem Prod.shed_right_comm (p q r : R × S) : (r ⧵ p) ⧵ q ≤ (r ⧵ q) ⧵ p :=
  ⟨shed_right_comm p.1 q.1 r.1, shed_right_comm p.2 q.2 r.2⟩

theorem Prod.spread_shed (p q r : R × S) : q ⊔ r ⧵ p = (q ⧵ p) ⊔ (r ⧵ p) :=
  Prod.ext (spread_shed p.1 q.1 r.1) (spread_shed p.2 q.2 r.2)

theorem Prod.shed_pinch (p q r : R × S) : r ⧵ p ⊓ q = (r ⧵ p) ⊔ (r ⧵ q) :=
  Prod.ext (shed_pinch p.1 q.1 r.1) (shed_pinch p.2 q.2 r.2)

theorem Prod.shed_trans (p q r : R × S) : r ⧵ p ≤ (q ⧵ p) ⊔ (r ⧵ q) :=
  ⟨shed_trans p.1 q.1 r.1, shed_trans p.2 q.2 r.2⟩

theorem Prod.shed_shed_self (p q : R × S) : q ⧵ (q ⧵ p) ≤ p :=
  ⟨shed_shed_self p.1 q.1, shed_shed_self p.2 q.2⟩

theorem Prod.shed_shed_shed (p q : R × S) : q ⧵ (q ⧵ (q ⧵ p)) = q ⧵ p :=
  Prod.ext (shed_shed_shed p.1 q.1) (shed_shed_shed p.2 q.2)

theorem Prod.spread_shed_le_spread (p q r : R × S) : (q ⧵ p) ⊔ r ≤ q ⊔ r :=
  ⟨spread_shed_le_spread p.1 q.1 r.1, spread_shed_le_spread p.2 q.2 r.2⟩

theorem Prod.shed_le_spare (p q : R × S) : q ⧵ p ≤ spare p :=
  ⟨shed_le_spare p.1 q.1, shed_le_spare p.2 q.2⟩

theorem Prod.spread_spare (p : R × S) : p ⊔ spare p = ⊤ :=
  Prod.ext (spread_spare p.1) (spread_spare p.2)

theorem Prod.spare_le_of_spread (h : ⊤ ≤ p ⊔ q) : spare q ≤ p :=
  ⟨spare_le_of_spread h.1, spare_le_of_spread h.2⟩

theorem Prod.spare_anti (h : q ≤ p) : spare p ≤ spare q :=
  ⟨spare_anti h.1, spare_anti h.2⟩

theorem Prod.spare_spare_le (p : R × S) : spare (spare p) ≤ p :=
  ⟨spare_spare_le p.1, spare_spare_le p.2⟩

theorem Prod.spare_spare_spare (p : R × S) : spare (spare (spare p)) = spare p :=
  Prod.ext (spare_spare_spare p.1) (spare_spare_spare p.2)

theorem Prod.spare_spare_mono (h : q ≤ p) : spare (spare q) ≤ spare (spare p) :=
  ⟨spare_spare_mono h.1, spare_spare_mono h.2⟩

theorem Prod.spare_le_comm (h : spare q ≤ p) : spare p ≤ q :=
  ⟨spare_le_comm h.1, spare_le_comm h.2⟩

theorem Prod.spare_pinch (p q : R × S) : spare (p ⊓ q) = spare p ⊔ spare q :=
  Prod.ext (spare_pinch p.1 q.1) (spare_pinch p.2 q.2)

theorem Prod.spare_nil : spare ⊥ = ⊤ :=
  Prod.ext (spare_nil) (spare_nil)

theorem Prod.spare_all : spare ⊤ = ⊥ :=
  Prod.ext (spare_all) (spare_all)

theorem Prod.spare_pinch_le (p q : R × S) : q ⧵ p ≤ spare p ⊓ q :=
  ⟨spare_pinch_le p.1 q.1, spare_pinch_le p.2 q.2⟩

/-!
### Functions into ravels

All operations and the order are taken at each point.
-/

variable {ι : Type*} {f g k l : ι → R}

theorem Pi.pinch_comm_le (f g : ι → R) : f ⊓ g ≤ g ⊓ f :=
  fun i => pinch_comm_le (f i) (g i)

theorem Pi.pinch_mono (h₁ : f ≤ k) (h₂ : g ≤ l) : f ⊓ g ≤ k ⊓ l :=
  fun i => pinch_mono (h₁ i) (h₂ i)

theorem Pi.pinch_mono_left (k : ι → R) (h : f ≤ g) : f ⊓ k ≤ g ⊓ k :=
  fun i => pinch_mono_left (k i) (h i)

theorem Pi.pinch_mono_right (f : ι → R) (h : g ≤ k) : f ⊓ g ≤ f ⊓ k :=
  fun i => pinch_mono_right (f i) (h i)

theorem Pi.pinch_assoc_le (f g k : ι → R) : (f ⊓ g) ⊓ k ≤ f ⊓ (g ⊓ k) :=
  fun i => pinch_assoc_le (f i) (g i) (k i)

theorem Pi.le_pinch_assoc (f g k : ι → R) : f ⊓ (g ⊓ k) ≤ (f ⊓ g) ⊓ k :=
  fun i => le_pinch_assoc (f i) (g i) (k i)

theorem Pi.pinch_all (f : ι → R) : f ⊓ ⊤ = f :=
  funext fun i => pinch_all (f i)

theorem Pi.pinch_nil (f : ι → R) : f ⊓ ⊥ = ⊥ :=
  funext fun i => pinch_nil (f i)

theorem Pi.pull_pinch_le (f g : ι → R) : (f ⇾ g) ⊓ f ≤ g :=
  fun i => pull_pinch_le (f i) (g i)

theorem Pi.pinch_pull_le (f g : ι → R) : f ⊓ (f ⇾ g) ≤ g :=
  fun i => pinch_pull_le (f i) (g i)

theorem Pi.le_pull (f g : ι → R) : g ≤ f ⇾ g :=
  fun i => le_pull (f i) (g i)

theorem Pi.pull_mono_right (f : ι → R) (h : g ≤ k) : f ⇾ g ≤ f ⇾ k :=
  fun i => pull_mono_right (f i) (h i)

theorem Pi.pull_anti_left (k : ι → R) (h : f ≤ g) : g ⇾ k ≤ f ⇾ k :=
  fun i => pull_anti_left (k i) (h i)

theorem Pi.pull_self (f : ι → R) : f ⇾ f = ⊤ :=
  funext fun i => pull_self (f i)

theorem Pi.pull_eq_all (h : f ≤ g) : f ⇾ g = ⊤ :=
  funext fun i => pull_eq_all (h i)

theorem Pi.all_pull (f : ι → R) : ⊤ ⇾ f = f :=
  funext fun i => all_pull (f i)

theorem Pi.pull_all (f : ι → R) : f ⇾ ⊤ = ⊤ :=
  funext fun i => pull_all (f i)

theorem Pi.nil_pull (f : ι → R) : ⊥ ⇾ f = ⊤ :=
  funext fun i => nil_pull (f i)

theorem Pi.pull_pinch_self (f g : ι → R) : f ⊓ (f ⇾ g) = f ⊓ g :=
  funext fun i => pull_pinch_self (f i) (g i)

theorem Pi.pinch_pull_cancel (f g : ι → R) : (f ⇾ g) ⊓ g = g :=
  funext fun i => pinch_pull_cancel (f i) (g i)

theorem Pi.pull_curry (f g k : ι → R) : f ⊓ g ⇾ k ≤ f ⇾ (g ⇾ k) :=
  fun i => pull_curry (f i) (g i) (k i)

theorem Pi.pull_uncurry (f g k : ι → R) : f ⇾ (g ⇾ k) ≤ f ⊓ g ⇾ k :=
  fun i => pull_uncurry (f i) (g i) (k i)

theorem Pi.pull_pull_eq (f g k : ι → R) : f ⇾ (g ⇾ k) = f ⊓ g ⇾ k :=
  funext fun i => pull_pull_eq (f i) (g i) (k i)

theorem Pi.pull_left_comm (f g k : ι → R) : f ⇾ (g ⇾ k) ≤ g ⇾ (f ⇾ k) :=
  fun i => pull_left_comm (f i) (g i) (k i)

theorem Pi.pull_pinch (f g k : ι → R) : f ⇾ g ⊓ k = (f ⇾ g) ⊓ (f ⇾ k) :=
  funext fun i => pull_pinch (f i) (g i) (k i)

theorem Pi.spread_pull (f g k : ι → R) : f ⊔ g ⇾ k = (f ⇾ k) ⊓ (g ⇾ k) :=
  funext fun i => spread_pull (f i) (g i) (k i)

theorem Pi.pull_pull_self (f g : ι → R) : f ≤ (f ⇾ g) ⇾ g :=
  fun i => pull_pull_self (f i) (g i)

theorem Pi.pull_pull_pull (f g : ι → R) : ((f ⇾ g) ⇾ g) ⇾ g = f ⇾ g :=
  funext fun i => pull_pull_pull (f i) (g i)

theorem Pi.pinch_le_pinch_pull (f g k : ι → R) : g ⊓ k ≤ (f ⇾ g) ⊓ k :=
  fun i => pinch_le_pinch_pull (f i) (g i) (k i)

theorem Pi.le_spread_comm (f g : ι → R) : g ⊔ f ≤ f ⊔ g :=
  fun i => le_spread_comm (f i) (g i)

theorem Pi.spread_mono (h₁ : k ≤ f) (h₂ : l ≤ g) : k ⊔ l ≤ f ⊔ g :=
  fun i => spread_mono (h₁ i) (h₂ i)

theorem Pi.spread_mono_left (k : ι → R) (h : g ≤ f) : g ⊔ k ≤ f ⊔ k :=
  fun i => spread_mono_left (k i) (h i)

theorem Pi.spread_mono_right (f : ι → R) (h : k ≤ g) : f ⊔ k ≤ f ⊔ g :=
  fun i => spread_mono_right (f i) (h i)

theorem Pi.spread_assoc_le (f g k : ι → R) : (f ⊔ g) ⊔ k ≤ f ⊔ (g ⊔ k) :=
  fun i => spread_assoc_le (f i) (g i) (k i)

theorem Pi.spread_nil (f : ι → R) : f ⊔ ⊥ = f :=
  funext fun i => spread_nil (f i)

theorem Pi.spread_all (f : ι → R) : f ⊔ ⊤ = ⊤ :=
  funext fun i => spread_all (f i)

theorem Pi.block_le_pull (f g : ι → R) : block f ≤ f ⇾ g :=
  fun i => block_le_pull (f i) (g i)

theorem Pi.pinch_block (f : ι → R) : f ⊓ block f = ⊥ :=
  funext fun i => pinch_block (f i)

theorem Pi.le_block_of_pinch (h : f ⊓ g ≤ ⊥) : f ≤ block g :=
  fun i => le_block_of_pinch (h i)

theorem Pi.pinch_le_of_le_block (h : f ≤ block g) : f ⊓ g ≤ ⊥ :=
  fun i => pinch_le_of_le_block (h i)

theorem Pi.block_anti (h : f ≤ g) : block g ≤ block f :=
  fun i => block_anti (h i)

theorem Pi.le_block_block (f : ι → R) : f ≤ block (block f) :=
  fun i => le_block_block (f i)

theorem Pi.block_block_block (f : ι → R) : block (block (block f)) = block f :=
  funext fun i => block_block_block (f i)

theorem Pi.block_block_mono (h : f ≤ g) : block (block f) ≤ block (block g) :=
  fun i => block_block_mono (h i)

theorem Pi.le_block_comm (h : f ≤ block g) : g ≤ block f :=
  fun i => le_block_comm (h i)

theorem Pi.block_spread (f g : ι → R) : block (f ⊔ g) = block f ⊓ block g :=
  funext fun i => block_spread (f i) (g i)

theorem Pi.block_all : block ⊤ = ⊥ :=
  funext fun i => block_all

theorem Pi.block_nil : block ⊥ = ⊤ :=
  funext fun i => block_nil

theorem Pi.spread_block_le (f g : ι → R) : block f ⊔ g ≤ f ⇾ g :=
  fun i => spread_block_le (f i) (g i)

theorem Pi.pull_block_comm (f g : ι → R) : f ⇾ block g ≤ block (f ⊓ g) :=
  fun i => pull_block_comm (f i) (g i)

theorem Pi.le_spread_shed (f g : ι → R) : g ≤ (g ⧵ f) ⊔ f :=
  fun i => le_spread_shed (f i) (g i)

theorem Pi.le_shed_spread (f g : ι → R) : g ≤ f ⊔ (g ⧵ f) :=
  fun i => le_shed_spread (f i) (g i)

theorem Pi.shed_le (f g : ι → R) : g ⧵ f ≤ g :=
  fun i => shed_le (f i) (g i)

theorem Pi.shed_mono_left (f : ι → R) (h : k ≤ g) : k ⧵ f ≤ g ⧵ f :=
  fun i => shed_mono_left (f i) (h i)

theorem Pi.shed_anti_right (k : ι → R) (h : g ≤ f) : k ⧵ f ≤ k ⧵ g :=
  fun i => shed_anti_right (k i) (h i)

theorem Pi.shed_self (f : ι → R) : f ⧵ f = ⊥ :=
  funext fun i => shed_self (f i)

theorem Pi.shed_eq_nil (h : g ≤ f) : g ⧵ f = ⊥ :=
  funext fun i => shed_eq_nil (h i)

theorem Pi.le_of_shed_eq_nil (h : g ⧵ f = ⊥) : g ≤ f :=
  fun i => le_of_shed_eq_nil (congrFun h i)

theorem Pi.shed_nil (f : ι → R) : f ⧵ ⊥ = f :=
  funext fun i => shed_nil (f i)

theorem Pi.nil_shed (f : ι → R) : ⊥ ⧵ f = ⊥ :=
  funext fun i => nil_shed (f i)

theorem Pi.shed_spread_self (f g : ι → R) : f ⊔ (g ⧵ f) = f ⊔ g :=
  funext fun i => shed_spread_self (f i) (g i)

theorem Pi.shed_curry (f g k : ι → R) : (k ⧵ g) ⧵ f ≤ k ⧵ f ⊔ g :=
  fun i => shed_curry (f i) (g i) (k i)

theorem Pi.shed_uncurry (f g k : ι → R) : k ⧵ f ⊔ g ≤ (k ⧵ g) ⧵ f :=
  fun i => shed_uncurry (f i) (g i) (k i)

theorem Pi.shed_shed_eq (f g k : ι → R) : (k ⧵ g) ⧵ f = k ⧵ f ⊔ g :=
  funext fun i => shed_shed_eq (f i) (g i) (k i)

theorem Pi.shed_right_comm (f g k : ι → R) : (k ⧵ f) ⧵ g ≤ (k ⧵ g) ⧵ f :=
  fun i => shed_right_comm (f i) (g i) (k i)

theorem Pi.spread_shed (f g k : ι → R) : g ⊔ k ⧵ f = (g ⧵ f) ⊔ (k ⧵ f) :=
  funext fun i => spread_shed (f i) (g i) (k i)

theorem Pi.shed_pinch (f g k : ι → R) : k ⧵ f ⊓ g = (k ⧵ f) ⊔ (k ⧵ g) :=
  funext fun i => shed_pinch (f i) (g i) (k i)

theorem Pi.shed_trans (f g k : ι → R) : k ⧵ f ≤ (g ⧵ f) ⊔ (k ⧵ g) :=
  fun i => shed_trans (f i) (g i) (k i)

theorem Pi.shed_shed_self (f g : ι → R) : g ⧵ (g ⧵ f) ≤ f :=
  fun i => shed_shed_self (f i) (g i)

theorem Pi.shed_shed_shed (f g : ι → R) : g ⧵ (g ⧵ (g ⧵ f)) = g ⧵ f :=
  funext fun i => shed_shed_shed (f i) (g i)

theorem Pi.spread_shed_le_spread (f g k : ι → R) : (g ⧵ f) ⊔ k ≤ g ⊔ k :=
  fun i => spread_shed_le_spread (f i) (g i) (k i)

theorem Pi.shed_le_spare (f g : ι → R) : g ⧵ f ≤ spare f :=
  fun i => shed_le_spare (f i) (g i)

theorem Pi.spread_spare (f : ι → R) : f ⊔ spare f = ⊤ :=
  funext fun i => spread_spare (f i)

theorem Pi.spare_le_of_spread (h : ⊤ ≤ f ⊔ g) : spare g ≤ f :=
  fun i => spare_le_of_spread (h i)

theorem Pi.le_spread_of_spare_le (h : spare g ≤ f) : ⊤ ≤ f ⊔ g :=
  fun i => le_spread_of_spare_le (h i)

theorem Pi.spare_anti (h : g ≤ f) : spare f ≤ spare g :=
  fun i => spare_anti (h i)

theorem Pi.spare_spare_le (f : ι → R) : spare (spare f) ≤ f :=
  fun i => spare_spare_le (f i)

theorem Pi.spare_spare_spare (f : ι → R) : spare (spare (spare f)) = spare f :=
  funext fun i => spare_spare_spare (f i)

theorem Pi.spare_spare_mono (h : g ≤ f) : spare (spare g) ≤ spare (spare f) :=
  fun i => spare_spare_mono (h i)

theorem Pi.spare_le_comm (h : spare g ≤ f) : spare f ≤ g :=
  fun i => spare_le_comm (h i)

theorem Pi.spare_pinch (f g : ι → R) : spare (f ⊓ g) = spare f ⊔ spare g :=
  funext fun i => spare_pinch (f i) (g i)

theorem Pi.spare_nil : spare ⊥ = ⊤ :=
  funext fun i => spare_nil

theorem Pi.spare_all : spare ⊤ = ⊥ :=
  funext fun i => spare_all

theorem Pi.spare_pinch_le (f g : ι → R) : g ⧵ f ≤ spare f ⊓ g :=
  fun i => spare_pinch_le (f i) (g i)

theorem Pi.spare_shed_comm (f g : ι → R) : spare (f ⊔ g) ≤ spare g ⧵ f :=
  fun i => spare_shed_comm (f i) (g i)

/-- Final digest: inside a pinch with its premise the pull may be replaced by its conclusion;
nested pulls are one pull from a pinch; the pull respects a pinch in its conclusion; a threefold
pull is a single one; brackets may be moved to the right in a spread; the largest element
swallows every spread; an element lies below its double block; the block of the largest element
is the smallest; a shed with a trivial premise is its conclusion; everything follows from the
largest element; the conclusion absorbs the shed; the premises of a nested shed may be
exchanged; sheds can be composed; the spare of the smallest element is the largest. -/
theorem final_digest (x y z : R) :
    (x ⊓ (x ⇾ y) = x ⊓ y) ∧
    (x ⇾ (y ⇾ z) = x ⊓ y ⇾ z) ∧
    (x ⇾ y ⊓ z = (x ⇾ y) ⊓ (x ⇾ z)) ∧
    (((x ⇾ y) ⇾ y) ⇾ y = x ⇾ y) ∧
    (x ⊔ (y ⊔ z) ≤ (x ⊔ y) ⊔ z) ∧
    (x ⊔ ⊤ = ⊤) ∧
    (x ≤ block (block x)) ∧
    (block ⊤ = ⊥) ∧
    (x ⧵ ⊥ = x) ∧
    (x ⧵ ⊤ = ⊥) ∧
    ((y ⧵ x) ⊔ y = y) ∧
    ((z ⧵ x) ⧵ y ≤ (z ⧵ y) ⧵ x) ∧
    (z ⧵ x ≤ (y ⧵ x) ⊔ (z ⧵ y)) ∧
    (spare ⊥ = ⊤) :=
  ⟨pull_pinch_self x y,
    pull_pull_eq x y z,
    pull_pinch x y z,
    pull_pull_pull x y,
    le_spread_assoc x y z,
    spread_all x,
    le_block_block x,
    block_all,
    shed_nil x,
    shed_all x,
    spread_shed_cancel x y,
    shed_right_comm x y z,
    shed_trans x y z,
    spare_nil⟩

end Ravel

import Mathlib.Order.Basic
import Mathlib.Data.Real.Basic

/-!
# Knolls

In this file we define knolls and prove basic lemmas about dips, crests, shells and stems.
-/

/-- A knoll is a partial order with dips, crests, shells and stems. -/
class Knoll (K : Type*) extends PartialOrder K where
  dip : K → K → K
  crest : K → K → K
  shell : K → K
  stem : K → K
  lift : K → K
  drop : K → K
  Shelled : K → Prop
  Stemmed : K → Prop
  dip_le_left : ∀ a b, a ⋏ b ≤ a
  dip_le_right : ∀ a b, a ⋏ b ≤ b
  le_dip : ∀ {a b c}, c ≤ a → c ≤ b → c ≤ a ⋏ b
  le_shell : ∀ a, a ≤ shell a
  shell_mono : ∀ {a b}, a ≤ b → shell a ≤ shell b
  shell_shell_le : ∀ a, shell (shell a) ≤ shell a
  shelled_iff : ∀ {a}, Shelled a ↔ shell a = a
  lift_le_iff : ∀ {a b}, lift a ≤ b ↔ a ≤ drop b
  le_crest_left : ∀ a b, a ≤ a ⋎ b
  le_crest_right : ∀ a b, b ≤ a ⋎ b
  crest_le : ∀ {a b c}, a ≤ c → b ≤ c → a ⋎ b ≤ c
  stem_le : ∀ a, stem a ≤ a
  stem_mono : ∀ {a b}, b ≤ a → stem b ≤ stem a
  le_stem_stem : ∀ a, stem a ≤ stem (stem a)
  stemmed_iff : ∀ {a}, Stemmed a ↔ stem a = a

namespace Knoll

scoped infixl:70 " ⋏ " => Knoll.dip
scoped infixl:65 " ⋎ " => Knoll.crest

variable {K : Type*} [Knoll K]

/-!
### The dip of two elements
-/

section TheDipOfTwoElements

variable {a b c d : K}

theorem dip_le_of_left (b : K) (h : a ≤ c) : a ⋏ b ≤ c :=
  le_trans (dip_le_left a b) h

theorem dip_le_of_right (a : K) (h : b ≤ c) : a ⋏ b ≤ c :=
  le_trans (dip_le_right a b) h

theorem le_left_of_le_dip (h : c ≤ a ⋏ b) : c ≤ a :=
  le_trans h (dip_le_left a b)

/-- What lies below a dip lies below its second term. -/
theorem le_right_of_le_dip (h : c ≤ a ⋏ b) : c ≤ b :=
  le_trans h (dip_le_right a b)

theorem dip_idem (a : K) : a ⋏ a = a := by
  have h₁ : a ≤ a ⋏ a := le_dip (le_refl a) (le_refl a)
  exact le_antisymm (dip_le_left a a) h₁

theorem dip_comm (a b : K) : a ⋏ b = b ⋏ a := by
  have h₁ : a ⋏ b ≤ b ⋏ a := le_dip (dip_le_right a b) (dip_le_left a b)
  have h₂ : b ⋏ a ≤ a ⋏ b := le_dip (dip_le_right b a) (dip_le_left b a)
  exact le_antisymm h₁ h₂

/-- The dip is monotone in both terms. -/
theorem dip_mono (h₁ : a ≤ c) (h₂ : b ≤ d) : a ⋏ b ≤ c ⋏ d :=
  le_dip (le_trans (dip_le_left a b) h₁) (le_trans (dip_le_right a b) h₂)

/-- The dip is monotone in its first term. -/
theorem dip_mono_left (c : K) (h : a ≤ b) : a ⋏ c ≤ b ⋏ c :=
  dip_mono h (le_refl c)

theorem dip_mono_right (a : K) (h : b ≤ c) : a ⋏ b ≤ a ⋏ c :=
  dip_mono (le_refl a) h

@[simp] theorem dip_assoc (a b c : K) : (a ⋏ b) ⋏ c = a ⋏ (b ⋏ c) := by
  have h₁ : (a ⋏ b) ⋏ c ≤ a := le_trans (dip_le_left (a ⋏ b) c) (dip_le_left a b)
  have h₂ : (a ⋏ b) ⋏ c ≤ b := le_trans (dip_le_left (a ⋏ b) c) (dip_le_right a b)
  have h₃ : (a ⋏ b) ⋏ c ≤ b ⋏ c := le_dip h₂ (dip_le_right (a ⋏ b) c)
  have h₄ : a ⋏ (b ⋏ c) ≤ b := le_trans (dip_le_right a (b ⋏ c)) (dip_le_left b c)
  have h₅ : a ⋏ (b ⋏ c) ≤ a ⋏ b := le_dip (dip_le_left a (b ⋏ c)) h₄
  have h₆ : a ⋏ (b ⋏ c) ≤ c := le_trans (dip_le_right a (b ⋏ c)) (dip_le_right b c)
  exact le_antisymm (le_dip h₁ h₃) (le_dip h₅ h₆)

@[simp] theorem dip_left_comm (a b c : K) : a ⋏ (b ⋏ c) = b ⋏ (a ⋏ c) := by
  have h₁ : a ⋏ (b ⋏ c) ≤ b := le_trans (dip_le_right a (b ⋏ c)) (dip_le_left b c)
  have h₂ : a ⋏ (b ⋏ c) ≤ c := le_trans (dip_le_right a (b ⋏ c)) (dip_le_right b c)
  have h₃ : a ⋏ (b ⋏ c) ≤ a ⋏ c := le_dip (dip_le_left a (b ⋏ c)) h₂
  have h₄ : b ⋏ (a ⋏ c) ≤ a := le_trans (dip_le_right b (a ⋏ c)) (dip_le_left a c)
  have h₅ : b ⋏ (a ⋏ c) ≤ c := le_trans (dip_le_right b (a ⋏ c)) (dip_le_right a c)
  have h₆ : b ⋏ (a ⋏ c) ≤ b ⋏ c := le_dip (dip_le_left b (a ⋏ c)) h₅
  exact le_antisymm (le_dip h₁ h₃) (le_dip h₄ h₆)

/-- The two last terms of a nested dip may be exchanged. -/
@[simp] theorem dip_right_comm (a b c : K) : (a ⋏ b) ⋏ c = (a ⋏ c) ⋏ b := by
  have h₁ : (a ⋏ b) ⋏ c ≤ a := le_trans (dip_le_left (a ⋏ b) c) (dip_le_left a b)
  have h₂ : (a ⋏ b) ⋏ c ≤ a ⋏ c := le_dip h₁ (dip_le_right (a ⋏ b) c)
  have h₃ : (a ⋏ b) ⋏ c ≤ b := le_trans (dip_le_left (a ⋏ b) c) (dip_le_right a b)
  have h₄ : (a ⋏ c) ⋏ b ≤ a := le_trans (dip_le_left (a ⋏ c) b) (dip_le_left a c)
  have h₅ : (a ⋏ c) ⋏ b ≤ a ⋏ b := le_dip h₄ (dip_le_right (a ⋏ c) b)
  have h₆ : (a ⋏ c) ⋏ b ≤ c := le_trans (dip_le_left (a ⋏ c) b) (dip_le_right a c)
  exact le_antisymm (le_dip h₂ h₃) (le_dip h₅ h₆)

theorem dip_dip_self (a b : K) : a ⋏ (a ⋏ b) = a ⋏ b := by
  have h₁ : a ⋏ b ≤ a ⋏ (a ⋏ b) := le_dip (dip_le_left a b) (le_refl (a ⋏ b))
  exact le_antisymm (dip_le_right a (a ⋏ b)) h₁

theorem dip_distrib_dip (a b c : K) : a ⋏ (b ⋏ c) = (a ⋏ b) ⋏ (a ⋏ c) := by
  have h₁ : a ⋏ (b ⋏ c) ≤ b := le_trans (dip_le_right a (b ⋏ c)) (dip_le_left b c)
  have h₂ : a ⋏ (b ⋏ c) ≤ a ⋏ b := le_dip (dip_le_left a (b ⋏ c)) h₁
  have h₃ : a ⋏ (b ⋏ c) ≤ c := le_trans (dip_le_right a (b ⋏ c)) (dip_le_right b c)
  have h₄ : a ⋏ (b ⋏ c) ≤ a ⋏ c := le_dip (dip_le_left a (b ⋏ c)) h₃
  have h₅ : (a ⋏ b) ⋏ (a ⋏ c) ≤ a := le_trans (dip_le_left (a ⋏ b) (a ⋏ c)) (dip_le_left a b)
  have h₆ : (a ⋏ b) ⋏ (a ⋏ c) ≤ b := le_trans (dip_le_left (a ⋏ b) (a ⋏ c)) (dip_le_right a b)
  have h₇ : (a ⋏ b) ⋏ (a ⋏ c) ≤ c := le_trans (dip_le_right (a ⋏ b) (a ⋏ c)) (dip_le_right a c)
  exact le_antisymm (le_dip h₂ h₄) (le_dip h₅ (le_dip h₆ h₇))

/-- If one element lies below another, the dip is the first of them. -/
theorem dip_eq_left (h : a ≤ b) : a ⋏ b = a :=
  le_antisymm (dip_le_left a b) (le_dip (le_refl a) h)

/-- If the second term lies below the first, the dip is the second. -/
theorem dip_eq_right (h : b ≤ a) : a ⋏ b = b :=
  le_antisymm (dip_le_right a b) (le_dip h (le_refl b))

theorem le_of_dip_eq (h : a ⋏ b = a) : a ≤ b :=
  le_trans (ge_of_eq h) (dip_le_right a b)

/-- The dip lies below the crest. -/
theorem dip_le_crest (a b : K) : a ⋏ b ≤ a ⋎ b :=
  le_trans (dip_le_left a b) (le_crest_left a b)

theorem dip_absorb (a b : K) : a ⋏ (a ⋎ b) = a := by
  have h₁ : a ≤ a ⋏ (a ⋎ b) := le_dip (le_refl a) (le_crest_left a b)
  exact le_antisymm (dip_le_left a (a ⋎ b)) h₁

/-- One half of the distributive law always holds. -/
theorem dip_crest_le (a b c : K) : a ⋏ b ⋎ a ⋏ c ≤ a ⋏ (b ⋎ c) := by
  have h₁ : a ⋏ b ≤ b ⋎ c := le_trans (dip_le_right a b) (le_crest_left b c)
  have h₂ : a ⋏ c ≤ b ⋎ c := le_trans (dip_le_right a c) (le_crest_right b c)
  exact crest_le (le_dip (dip_le_left a b) h₁) (le_dip (dip_le_left a c) h₂)

theorem modular_le (b : K) (h : a ≤ c) : a ⋎ b ⋏ c ≤ (a ⋎ b) ⋏ c := by
  have h₂ : b ⋏ c ≤ a ⋎ b := le_trans (dip_le_left b c) (le_crest_right a b)
  exact crest_le (le_dip (le_crest_left a b) h) (le_dip h₂ (dip_le_right b c))

/-- Replacing one term of a dip by a crest can only make it larger. -/
theorem dip_le_dip_crest (a b c : K) : a ⋏ b ≤ a ⋏ (b ⋎ c) :=
  dip_mono_right a (le_crest_left b c)

theorem eq_of_dip_eq_crest (h : a ⋏ b = a ⋎ b) : a = b := by
  have h₂ : a ⋎ b ≤ b := le_trans (ge_of_eq h) (dip_le_right a b)
  have h₃ : a ⋎ b ≤ a := le_trans (ge_of_eq h) (dip_le_left a b)
  exact le_antisymm (le_trans (le_crest_left a b) h₂) (le_trans (le_crest_right a b) h₃)

end TheDipOfTwoElements

/-! The divisors of 420, with `gcd` as dip and `lcm` as crest; the shell is `lcm 10`, the stem
is `gcd 84`, and `lift` is `gcd 60`. -/

/-!
### The crest of two elements

* `crest_comm`: the order of the terms of a crest does not matter.
* `crest_eq_left`: if one element lies above another, the crest is the first of them.
-/

section TheCrestOfTwoElements

variable {a b c d : K}

theorem le_crest_of_left (b : K) (h : c ≤ a) : c ≤ a ⋎ b :=
  le_trans h (le_crest_left a b)

theorem le_crest_of_right (a : K) (h : c ≤ b) : c ≤ a ⋎ b :=
  le_trans h (le_crest_right a b)

/-- What lies above a crest lies above its first term. -/
theorem left_le_of_crest_le (h : a ⋎ b ≤ c) : a ≤ c :=
  le_trans (le_crest_left a b) h

/-- What lies above a crest lies above its second term. -/
theorem right_le_of_crest_le (h : a ⋎ b ≤ c) : b ≤ c :=
  le_trans (le_crest_right a b) h

/-- The crest of an element with itself is that element. -/
theorem crest_idem (a : K) : a ⋎ a = a := by
  have h₁ : a ⋎ a ≤ a := crest_le (le_refl a) (le_refl a)
  exact le_antisymm h₁ (le_crest_left a a)

theorem crest_comm (a b : K) : a ⋎ b = b ⋎ a := by
  have h₁ : a ⋎ b ≤ b ⋎ a := crest_le (le_crest_right b a) (le_crest_left b a)
  have h₂ : b ⋎ a ≤ a ⋎ b := crest_le (le_crest_right a b) (le_crest_left a b)
  exact le_antisymm h₁ h₂

theorem crest_mono (h₁ : c ≤ a) (h₂ : d ≤ b) : c ⋎ d ≤ a ⋎ b :=
  crest_le (le_trans h₁ (le_crest_left a b)) (le_trans h₂ (le_crest_right a b))

-- `left_le_of_crest_le` in `Divisor 420` for a = 15, b = 5, c = 60
example : (15 ⋎ 5 : Divisor 420) = 15 := by decide

theorem crest_mono_left (c : K) (h : b ≤ a) : b ⋎ c ≤ a ⋎ c :=
  crest_mono h (le_refl c)

theorem crest_mono_right (a : K) (h : c ≤ b) : a ⋎ c ≤ a ⋎ b :=
  crest_mono (le_refl a) h

theorem crest_assoc (a b c : K) : (a ⋎ b) ⋎ c = a ⋎ (b ⋎ c) := by
  have h₁ : b ≤ a ⋎ (b ⋎ c) := le_trans (le_crest_left b c) (le_crest_right a (b ⋎ c))
  have h₂ : a ⋎ b ≤ a ⋎ (b ⋎ c) := crest_le (le_crest_left a (b ⋎ c)) h₁
  have h₃ : c ≤ a ⋎ (b ⋎ c) := le_trans (le_crest_right b c) (le_crest_right a (b ⋎ c))
  have h₄ : a ≤ (a ⋎ b) ⋎ c := le_trans (le_crest_left a b) (le_crest_left (a ⋎ b) c)
  have h₅ : b ≤ (a ⋎ b) ⋎ c := le_trans (le_crest_right a b) (le_crest_left (a ⋎ b) c)
  have h₆ : b ⋎ c ≤ (a ⋎ b) ⋎ c := crest_le h₅ (le_crest_right (a ⋎ b) c)
  exact le_antisymm (crest_le h₂ h₃) (crest_le h₄ h₆)

-- `eq_of_dip_eq_crest` in `Divisor 420` for a = 5, b = 5
example : (5 ⋏ 5 : Divisor 420) = 5 := by decide
example : (5 ⋎ 5 : Divisor 420) = 5 := by decide

theorem crest_left_comm (a b c : K) : a ⋎ (b ⋎ c) = b ⋎ (a ⋎ c) := by
  have h₁ : a ≤ b ⋎ (a ⋎ c) := le_trans (le_crest_left a c) (le_crest_right b (a ⋎ c))
  have h₂ : c ≤ b ⋎ (a ⋎ c) := le_trans (le_crest_right a c) (le_crest_right b (a ⋎ c))
  have h₃ : b ⋎ c ≤ b ⋎ (a ⋎ c) := crest_le (le_crest_left b (a ⋎ c)) h₂
  have h₄ : b ≤ a ⋎ (b ⋎ c) := le_trans (le_crest_left b c) (le_crest_right a (b ⋎ c))
  have h₅ : c ≤ a ⋎ (b ⋎ c) := le_trans (le_crest_right b c) (le_crest_right a (b ⋎ c))
  have h₆ : a ⋎ c ≤ a ⋎ (b ⋎ c) := crest_le (le_crest_left a (b ⋎ c)) h₅
  exact le_antisymm (crest_le h₁ h₃) (crest_le h₄ h₆)

theorem crest_right_comm (a b c : K) : (a ⋎ b) ⋎ c = (a ⋎ c) ⋎ b := by
  have h₁ : a ≤ (a ⋎ c) ⋎ b := le_trans (le_crest_left a c) (le_crest_left (a ⋎ c) b)
  have h₂ : a ⋎ b ≤ (a ⋎ c) ⋎ b := crest_le h₁ (le_crest_right (a ⋎ c) b)
  have h₃ : c ≤ (a ⋎ c) ⋎ b := le_trans (le_crest_right a c) (le_crest_left (a ⋎ c) b)
  have h₄ : a ≤ (a ⋎ b) ⋎ c := le_trans (le_crest_left a b) (le_crest_left (a ⋎ b) c)
  have h₅ : a ⋎ c ≤ (a ⋎ b) ⋎ c := crest_le h₄ (le_crest_right (a ⋎ b) c)
  have h₆ : b ≤ (a ⋎ b) ⋎ c := le_trans (le_crest_right a b) (le_crest_left (a ⋎ b) c)
  exact le_antisymm (crest_le h₂ h₃) (crest_le h₅ h₆)

-- `right_le_of_crest_le` in `Divisor 420` for a = 42, b = 28, c = 84
example : (42 ⋎ 28 : Divisor 420) = 84 := by decide

/-- Repeating a term of a crest changes nothing. -/
theorem crest_crest_self (a b : K) : a ⋎ (a ⋎ b) = a ⋎ b := by
  have h₁ : a ⋎ (a ⋎ b) ≤ a ⋎ b := crest_le (le_crest_left a b) (le_refl (a ⋎ b))
  exact le_antisymm h₁ (le_crest_right a (a ⋎ b))

theorem crest_distrib_crest (a b c : K) : a ⋎ (b ⋎ c) = (a ⋎ b) ⋎ (a ⋎ c) := by
  have h₁ : a ≤ (a ⋎ b) ⋎ (a ⋎ c) := le_trans (le_crest_left a b) (le_crest_left (a ⋎ b) (a ⋎ c))
  have h₂ : b ≤ (a ⋎ b) ⋎ (a ⋎ c) := le_trans (le_crest_right a b) (le_crest_left (a ⋎ b) (a ⋎ c))
  have h₃ : c ≤ (a ⋎ b) ⋎ (a ⋎ c) :=
    le_trans (le_crest_right a c) (le_crest_right (a ⋎ b) (a ⋎ c))
  have h₄ : b ≤ a ⋎ (b ⋎ c) := le_trans (le_crest_left b c) (le_crest_right a (b ⋎ c))
  have h₅ : a ⋎ b ≤ a ⋎ (b ⋎ c) := crest_le (le_crest_left a (b ⋎ c)) h₄
  have h₆ : c ≤ a ⋎ (b ⋎ c) := le_trans (le_crest_right b c) (le_crest_right a (b ⋎ c))
  have h₇ : a ⋎ c ≤ a ⋎ (b ⋎ c) := crest_le (le_crest_left a (b ⋎ c)) h₆
  exact le_antisymm (crest_le h₁ (crest_le h₂ h₃)) (crest_le h₅ h₇)

-- `crest_crest_self` in `Divisor 420` for a = 2, b = 15
example : (2 ⋎ 15 : Divisor 420) = 30 := by decide
example : (2 ⋎ 30 : Divisor 420) = 30 := by decide

theorem crest_eq_left (h : b ≤ a) : a ⋎ b = a :=
  le_antisymm (crest_le (le_refl a) h) (le_crest_left a b)

theorem crest_eq_right (h : a ≤ b) : a ⋎ b = b :=
  le_antisymm (crest_le h (le_refl b)) (le_crest_right a b)

-- `crest_mono` in `Divisor 420` for a = 12, b = 140, c = 4, d = 28
example : (4 ⋎ 28 : Divisor 420) = 28 := by decide
example : (12 ⋎ 140 : Divisor 420) = 420 := by decide

theorem le_of_crest_eq (h : a ⋎ b = a) : b ≤ a :=
  le_trans (le_crest_right a b) (le_of_eq h)

theorem crest_absorb (a b : K) : a ⋎ a ⋏ b = a := by
  have h₁ : a ⋎ a ⋏ b ≤ a := crest_le (le_refl a) (dip_le_left a b)
  exact le_antisymm h₁ (le_crest_left a (a ⋏ b))

theorem le_crest_dip (a b c : K) : a ⋎ b ⋏ c ≤ (a ⋎ b) ⋏ (a ⋎ c) := by
  have h₁ : b ⋏ c ≤ a ⋎ b := le_trans (dip_le_left b c) (le_crest_right a b)
  have h₂ : b ⋏ c ≤ a ⋎ c := le_trans (dip_le_right b c) (le_crest_right a c)
  exact le_dip (crest_le (le_crest_left a b) h₁) (crest_le (le_crest_left a c) h₂)

theorem modular_ge (b : K) (h : c ≤ a) : a ⋏ b ⋎ c ≤ a ⋏ (b ⋎ c) := by
  have h₂ : a ⋏ b ≤ b ⋎ c := le_trans (dip_le_right a b) (le_crest_left b c)
  exact le_dip (crest_le (dip_le_left a b) h) (crest_le h₂ (le_crest_right b c))

theorem crest_dip_le_crest (a b c : K) : a ⋎ b ⋏ c ≤ a ⋎ b :=
  crest_mono_right a (dip_le_left b c)

theorem eq_of_crest_eq_dip (h : a ⋎ b = a ⋏ b) : a = b := by
  have h₂ : a ⋎ b ≤ b := le_trans (le_of_eq h) (dip_le_right a b)
  have h₃ : a ⋎ b ≤ a := le_trans (le_of_eq h) (dip_le_left a b)
  exact le_antisymm (le_trans (le_crest_left a b) h₂) (le_trans (le_crest_right a b) h₃)

end TheCrestOfTwoElements

/-!
### Shells

* `shell_le_shell`: what lies below a shell has its shell below it.
* `shell_le_iff`: to compare two shells it is enough to look at one element.
-/

section Shells

variable {a b : K}

theorem shell_idem (a : K) : shell (shell a) = shell a :=
  le_antisymm (shell_shell_le a) (le_shell (shell a))

/-- Passing to the shell on the far side is free. -/
theorem le_shell_of_le (h : a ≤ b) : a ≤ shell b :=
  le_trans h (le_shell b)

theorem shell_le_shell (h : a ≤ shell b) : shell a ≤ shell b :=
  le_trans (shell_mono h) (shell_shell_le b)

/-- To compare two shells it is enough to look at one element. -/
theorem shell_le_iff : shell a ≤ shell b ↔ a ≤ shell b := by
  constructor
  · intro h
    exact le_trans (le_shell a) h
  · intro h
    exact shell_le_shell h

/-- The shell of a dip lies below the dip of the shells. -/
theorem shell_dip_le (a b : K) : shell (a ⋏ b) ≤ shell a ⋏ shell b :=
  le_dip (shell_mono (dip_le_left a b)) (shell_mono (dip_le_right a b))

-- `shell_le_shell` in `Divisor 420` for a = 70, b = 105
example : (shell 105 : Divisor 420) = 210 := by decide
example : (shell 70 : Divisor 420) = 70 := by decide

theorem crest_shell_le (a b : K) : shell a ⋎ shell b ≤ shell (a ⋎ b) :=
  crest_le (shell_mono (le_crest_left a b)) (shell_mono (le_crest_right a b))

/-- The first term of a crest may be replaced by its shell. -/
theorem shell_crest_shell_left (a b : K) : shell (shell a ⋎ b) = shell (a ⋎ b) := by
  have h₁ : b ≤ shell (a ⋎ b) := le_trans (le_crest_right a b) (le_shell (a ⋎ b))
  have h₂ : shell a ⋎ b ≤ shell (a ⋎ b) := crest_le (shell_mono (le_crest_left a b)) h₁
  have h₃ : a ≤ shell a ⋎ b := le_trans (le_shell a) (le_crest_left (shell a) b)
  have h₄ : a ⋎ b ≤ shell a ⋎ b := crest_le h₃ (le_crest_right (shell a) b)
  exact le_antisymm (shell_le_shell h₂) (shell_mono h₄)

theorem shell_crest_shell (a b : K) : shell (shell a ⋎ shell b) = shell (a ⋎ b) := by
  have h₁ : a ≤ shell a ⋎ shell b := le_trans (le_shell a) (le_crest_left (shell a) (shell b))
  have h₂ : b ≤ shell a ⋎ shell b := le_trans (le_shell b) (le_crest_right (shell a) (shell b))
  exact le_antisymm (shell_le_shell (crest_shell_le a b)) (shell_mono (crest_le h₁ h₂))

/-- The dip of two shells is its own shell. -/
theorem shell_dip_shell (a b : K) : shell (shell a ⋏ shell b) = shell a ⋏ shell b := by
  have h₁ : shell (shell a) ⋏ shell (shell b) ≤ shell a ⋏ shell b :=
    dip_mono (shell_shell_le a) (shell_shell_le b)
  have h₂ : shell (shell a ⋏ shell b) ≤ shell a ⋏ shell b :=
    le_trans (shell_dip_le (shell a) (shell b)) h₁
  exact le_antisymm h₂ (le_shell (shell a ⋏ shell b))

theorem shell_eq_of_between (h₁ : a ≤ b) (h₂ : b ≤ shell a) : shell b = shell a :=
  le_antisymm (shell_le_shell h₂) (shell_mono h₁)

-- `shell_le_shell` in `Divisor 420` for a = 5, b = 20
example : (shell 20 : Divisor 420) = 20 := by decide
example : (shell 5 : Divisor 420) = 10 := by decide

end Shells

/-- First digest: a dip lies below everything its second term lies below; what lies below a dip
lies below its second term; the two last terms of a nested dip may be exchanged; the dip
distributes over itself; the dip absorbs the crest; replacing one term of a dip by a crest can
only make it larger; the crest of an element with itself is that element; the crest is monotone
in its first term; the crest distributes over itself. -/
theorem first_digest (a b c : K) :
    (b ≤ c → a ⋏ b ≤ c) ∧
    (c ≤ a ⋏ b → c ≤ b) ∧
    ((a ⋏ b) ⋏ c = (a ⋏ c) ⋏ b) ∧
    (a ⋏ (b ⋏ c) = (a ⋏ b) ⋏ (a ⋏ c)) ∧
    (a ⋏ (a ⋎ b) = a) ∧
    (a ⋏ b ≤ a ⋏ (b ⋎ c)) ∧
    (a ⋎ a = a) ∧
    (b ≤ a → b ⋎ c ≤ a ⋎ c) ∧
    (a ⋎ (b ⋎ c) = (a ⋎ b) ⋎ (a ⋎ c)) :=
  ⟨dip_le_of_right a,
    le_right_of_le_dip,
    dip_right_comm a b c,
    dip_distrib_dip a b c,
    dip_absorb a b,
    dip_le_dip_crest a b c,
    crest_idem a,
    crest_mono_left c,
    crest_distrib_crest a b c⟩

/-!
### What is shelled

* `shelled_of_shell_le`: an element is shelled as soon as its shell lies below it.
* `shell_stem_le_shell`: the shell of a stem lies below the shell.
-/

section WhatIsShelled

variable {a b : K}

/-- Every shell is shelled. -/
theorem shelled_shell (a : K) : Shelled (shell a) :=
  shelled_iff.mpr (shell_idem a)

theorem shell_eq_of_shelled (h : Shelled a) : shell a = a :=
  shelled_iff.mp h

/-- An element is shelled as soon as its shell lies below it. -/
theorem shelled_of_shell_le (h : shell a ≤ a) : Shelled a :=
  shelled_iff.mpr (le_antisymm h (le_shell a))

theorem shell_le_of_shelled (h₁ : a ≤ b) (h₂ : Shelled b) : shell a ≤ b :=
  le_trans (shell_mono h₁) (le_of_eq (shell_eq_of_shelled h₂))

theorem shelled_dip (h₁ : Shelled a) (h₂ : Shelled b) : Shelled (a ⋏ b) := by
  have h₃ : shell (a ⋏ b) ≤ a := shell_le_of_shelled (dip_le_left a b) h₁
  have h₄ : shell (a ⋏ b) ≤ b := shell_le_of_shelled (dip_le_right a b) h₂
  exact shelled_of_shell_le (le_dip h₃ h₄)

theorem shelled_dip_shell (a b : K) : Shelled (shell a ⋏ shell b) :=
  shelled_dip (shelled_shell a) (shelled_shell b)

theorem stem_le_shell (a : K) : stem a ≤ shell a :=
  le_trans (stem_le a) (le_shell a)

/-- The shell of a stem lies below the shell. -/
theorem shell_stem_le_shell (a : K) : shell (stem a) ≤ shell a :=
  shell_mono (stem_le a)

/-- Taking shell and stem in turn stops after two rounds. -/
@[simp] theorem stem_shell_stem_shell (a : K) : stem (shell (stem (shell a))) = stem (shell a) := by
  have h₁ : shell (stem (shell a)) ≤ shell (shell a) := shell_mono (stem_le (shell a))
  have h₂ : stem (shell (stem (shell a))) ≤ stem (shell a) :=
    stem_mono (le_trans h₁ (shell_shell_le a))
  have h₃ : stem (stem (shell a)) ≤ stem (shell (stem (shell a))) :=
    stem_mono (le_shell (stem (shell a)))
  have h₄ : stem (shell a) ≤ stem (shell (stem (shell a))) := le_trans (le_stem_stem (shell a)) h₃
  exact le_antisymm h₂ h₄

end WhatIsShelled

/-!
### Shells

* `le_stem_iff`: to compare two stems it is enough to look at one element.
* `stem_dip_stem_left`: the first term of a dip may be replaced by its stem.
-/

section Shells

variable {a b : K}

theorem stem_idem (a : K) : stem (stem a) = stem a :=
  le_antisymm (stem_le (stem a)) (le_stem_stem a)

/-- Passing to the stem on the far side is free. -/
theorem stem_le_of_le (h : b ≤ a) : stem b ≤ a :=
  le_trans (stem_le b) h

theorem stem_le_stem (h : stem b ≤ a) : stem b ≤ stem a :=
  le_trans (le_stem_stem b) (stem_mono h)

theorem le_stem_iff : stem b ≤ stem a ↔ stem b ≤ a := by
  constructor
  · intro h
    exact le_trans h (stem_le a)
  · intro h
    exact stem_le_stem h

-- `shell_eq_of_shelled` in `Divisor 420` for a = 210
example : (shell 210 : Divisor 420) = 210 := by decide

theorem le_stem_crest (a b : K) : stem a ⋎ stem b ≤ stem (a ⋎ b) :=
  crest_le (stem_mono (le_crest_left a b)) (stem_mono (le_crest_right a b))

theorem stem_dip_le (a b : K) : stem (a ⋏ b) ≤ stem a ⋏ stem b :=
  le_dip (stem_mono (dip_le_left a b)) (stem_mono (dip_le_right a b))

@[simp] theorem stem_dip_stem_left (a b : K) : stem (stem a ⋏ b) = stem (a ⋏ b) := by
  have h₁ : stem a ⋏ b ≤ a := le_trans (dip_le_left (stem a) b) (stem_le a)
  have h₂ : stem a ⋏ b ≤ a ⋏ b := le_dip h₁ (dip_le_right (stem a) b)
  have h₃ : stem (a ⋏ b) ≤ b := le_trans (stem_le (a ⋏ b)) (dip_le_right a b)
  have h₄ : stem (a ⋏ b) ≤ stem a ⋏ b := le_dip (stem_mono (dip_le_left a b)) h₃
  exact le_antisymm (stem_mono h₂) (stem_le_stem h₄)

theorem stem_dip_stem (a b : K) : stem (stem a ⋏ stem b) = stem (a ⋏ b) := by
  have h₁ : stem a ⋏ stem b ≤ a := le_trans (dip_le_left (stem a) (stem b)) (stem_le a)
  have h₂ : stem a ⋏ stem b ≤ b := le_trans (dip_le_right (stem a) (stem b)) (stem_le b)
  exact le_antisymm (stem_mono (le_dip h₁ h₂)) (stem_le_stem (stem_dip_le a b))

theorem stem_crest_stem (a b : K) : stem (stem a ⋎ stem b) = stem a ⋎ stem b := by
  have h₁ : stem a ⋎ stem b ≤ stem (stem a) ⋎ stem (stem b) :=
    crest_mono (le_stem_stem a) (le_stem_stem b)
  have h₂ : stem a ⋎ stem b ≤ stem (stem a ⋎ stem b) :=
    le_trans h₁ (le_stem_crest (stem a) (stem b))
  exact le_antisymm (stem_le (stem a ⋎ stem b)) h₂

theorem stem_eq_of_between (h₁ : b ≤ a) (h₂ : stem a ≤ b) : stem b = stem a :=
  le_antisymm (stem_mono h₁) (stem_le_stem h₂)

-- `stem_dip_le` in `Divisor 420` for a = 105, b = 30
example : (105 ⋏ 30 : Divisor 420) = 15 := by decide
example : (stem 15 : Divisor 420) = 3 := by decide
example : (stem 30 : Divisor 420) = 6 := by decide
example : (stem 105 : Divisor 420) = 21 := by decide
example : (21 ⋏ 6 : Divisor 420) = 3 := by decide

end Shells

/-!
### The tied maps

* `le_drop_lift`: going there and back moves an element to one side.
* `drop_lift_mono`: going there and back keeps the order.
-/

section TheTiedMaps

variable {a b : K}

/-- Going there and back moves an element to one side. -/
theorem le_drop_lift (a : K) : a ≤ drop (lift a) :=
  lift_le_iff.mp (le_refl (lift a))

theorem lift_mono (h : a ≤ b) : lift a ≤ lift b :=
  lift_le_iff.mpr (le_trans h (le_drop_lift b))

theorem lift_drop_le (a : K) : lift (drop a) ≤ a :=
  lift_le_iff.mpr (le_refl (drop a))

/-- Three passes are as good as one. -/
theorem lift_drop_lift (a : K) : lift (drop (lift a)) = lift a :=
  le_antisymm (lift_drop_le (lift a)) (lift_mono (le_drop_lift a))

theorem drop_mono (h : b ≤ a) : drop b ≤ drop a :=
  lift_le_iff.mp (le_trans (lift_drop_le b) h)

theorem drop_lift_idem (a : K) : drop (lift (drop (lift a))) = drop (lift a) := by
  have h₁ : drop (lift (drop (lift a))) ≤ drop (lift a) := drop_mono (lift_drop_le (lift a))
  exact le_antisymm h₁ (le_drop_lift (drop (lift a)))

theorem le_drop_of_lift_le (h : lift a ≤ b) : a ≤ drop b :=
  lift_le_iff.mp h

/-- The lift carries a crest to a crest. -/
theorem lift_crest (a b : K) : lift (a ⋎ b) = lift a ⋎ lift b := by
  have h₁ : a ≤ drop (lift a ⋎ lift b) := lift_le_iff.mp (le_crest_left (lift a) (lift b))
  have h₂ : b ≤ drop (lift a ⋎ lift b) := lift_le_iff.mp (le_crest_right (lift a) (lift b))
  have h₃ : lift a ⋎ lift b ≤ lift (a ⋎ b) :=
    crest_le (lift_mono (le_crest_left a b)) (lift_mono (le_crest_right a b))
  exact le_antisymm (lift_le_iff.mpr (crest_le h₁ h₂)) h₃

/-- The lift carries a dip below a dip. -/
theorem lift_dip_le (a b : K) : lift (a ⋏ b) ≤ lift a ⋏ lift b :=
  le_dip (lift_mono (dip_le_left a b)) (lift_mono (dip_le_right a b))

theorem drop_lift_mono (h : a ≤ b) : drop (lift a) ≤ drop (lift b) :=
  drop_mono (lift_mono h)

/-- A comparison may be pulled back along the tie. -/
theorem drop_lift_le_iff : drop (lift a) ≤ drop b ↔ a ≤ drop b := by
  constructor
  · intro h
    exact le_trans (le_drop_lift a) h
  · intro h
    exact drop_mono (lift_le_iff.mpr h)

/-- The value of the lift is pinned down by two comparisons. -/
theorem lift_eq_of_le_drop (h₁ : a ≤ drop b) (h₂ : b ≤ lift a) : lift a = b :=
  le_antisymm (lift_le_iff.mpr h₁) h₂

theorem lift_crest_drop (a b : K) : lift (drop (lift a) ⋎ b) = lift (a ⋎ b) := by
  have h₁ : drop (lift a) ≤ drop (lift (a ⋎ b)) := drop_mono (lift_mono (le_crest_left a b))
  have h₂ : b ≤ drop (lift (a ⋎ b)) := le_trans (le_crest_right a b) (le_drop_lift (a ⋎ b))
  have h₃ : a ≤ drop (lift a) ⋎ b := le_trans (le_drop_lift a) (le_crest_left (drop (lift a)) b)
  have h₄ : a ⋎ b ≤ drop (lift a) ⋎ b := crest_le h₃ (le_crest_right (drop (lift a)) b)
  exact le_antisymm (lift_le_iff.mpr (crest_le h₁ h₂)) (lift_mono h₄)

end TheTiedMaps

/-- Second digest: a dip lies below everything its first term lies below; if the second term
lies below the first, the dip is the second; what lies above a crest lies above its second term;
repeating a term of a crest changes nothing; the order can be read off from the crest; what lies
below a shell has its shell below it; an element between another one and its stem has the same
stem; three passes are as good as one; one half of the tie. -/
theorem second_digest (a b c : K) :
    (a ≤ c → a ⋏ b ≤ c) ∧
    (b ≤ a → a ⋏ b = b) ∧
    (a ⋎ b ≤ c → b ≤ c) ∧
    (a ⋎ (a ⋎ b) = a ⋎ b) ∧
    (a ⋎ b = a → b ≤ a) ∧
    (a ≤ shell b → shell a ≤ shell b) ∧
    (b ≤ a → stem a ≤ b → stem b = stem a) ∧
    (lift (drop (lift a)) = lift a) ∧
    (lift a ≤ b → a ≤ drop b) :=
  ⟨dip_le_of_left b,
    dip_eq_right,
    right_le_of_crest_le,
    crest_crest_self a b,
    le_of_crest_eq,
    shell_le_shell,
    stem_eq_of_between,
    lift_drop_lift a,
    le_drop_of_lift_le⟩

/-!
### The tied maps

* `lift_drop_idem`: going there and back is idempotent.
* `drop_dip`: the drop carries a dip to a dip.
-/

section TheTiedMaps

variable {a b : K}

@[simp] theorem drop_lift_drop (a : K) : drop (lift (drop a)) = drop a :=
  le_antisymm (drop_mono (lift_drop_le a)) (le_drop_lift (drop a))

@[simp] theorem lift_drop_idem (a : K) : lift (drop (lift (drop a))) = lift (drop a) := by
  have h₁ : lift (drop a) ≤ lift (drop (lift (drop a))) := lift_mono (le_drop_lift (drop a))
  exact le_antisymm (lift_drop_le (lift (drop a))) h₁

theorem lift_le_of_le_drop (h : b ≤ drop a) : lift b ≤ a :=
  lift_le_iff.mpr h

@[simp] theorem drop_dip (a b : K) : drop (a ⋏ b) = drop a ⋏ drop b := by
  have h₁ : drop (a ⋏ b) ≤ drop a ⋏ drop b :=
    le_dip (drop_mono (dip_le_left a b)) (drop_mono (dip_le_right a b))
  have h₂ : lift (drop a ⋏ drop b) ≤ a := lift_le_iff.mpr (dip_le_left (drop a) (drop b))
  have h₃ : lift (drop a ⋏ drop b) ≤ b := lift_le_iff.mpr (dip_le_right (drop a) (drop b))
  exact le_antisymm h₁ (lift_le_iff.mp (le_dip h₂ h₃))

/-- The drop carries a crest above a crest. -/
theorem le_drop_crest (a b : K) : drop a ⋎ drop b ≤ drop (a ⋎ b) :=
  crest_le (drop_mono (le_crest_left a b)) (drop_mono (le_crest_right a b))

theorem lift_drop_mono (h : b ≤ a) : lift (drop b) ≤ lift (drop a) :=
  lift_mono (drop_mono h)

/-- A comparison may be pulled back along the tie. -/
theorem le_lift_drop_iff : lift b ≤ lift (drop a) ↔ lift b ≤ a := by
  constructor
  · intro h
    exact le_trans h (lift_drop_le a)
  · intro h
    exact lift_mono (lift_le_iff.mp h)

theorem drop_eq_of_lift_le (h₁ : lift b ≤ a) (h₂ : drop a ≤ b) : drop a = b :=
  le_antisymm h₂ (lift_le_iff.mp h₁)

/-- A term of a dip may be replaced by its image there and back. -/
theorem drop_dip_lift (a b : K) : drop (lift (drop a) ⋏ b) = drop (a ⋏ b) := by
  have h₁ : lift (drop a) ⋏ b ≤ a := le_trans (dip_le_left (lift (drop a)) b) (lift_drop_le a)
  have h₂ : lift (drop a) ⋏ b ≤ a ⋏ b := le_dip h₁ (dip_le_right (lift (drop a)) b)
  have h₃ : lift (drop (a ⋏ b)) ≤ lift (drop a) := lift_mono (drop_mono (dip_le_left a b))
  have h₄ : lift (drop (a ⋏ b)) ≤ b := le_trans (lift_drop_le (a ⋏ b)) (dip_le_right a b)
  exact le_antisymm (drop_mono h₂) (lift_le_iff.mp (le_dip h₃ h₄))

end TheTiedMaps

/-!
### What is stemmed

* `stem_eq_of_stemmed`: a stemmed element is its own stem.
* `stem_le_stem_shell`: the stem of a shell lies above the stem.
-/

section WhatIsStemmed

variable {a b : K}

theorem stemmed_stem (a : K) : Stemmed (stem a) :=
  stemmed_iff.mpr (stem_idem a)

theorem stem_eq_of_stemmed (h : Stemmed a) : stem a = a :=
  stemmed_iff.mp h

theorem stemmed_of_le_stem (h : a ≤ stem a) : Stemmed a :=
  stemmed_iff.mpr (le_antisymm (stem_le a) h)

-- `lift_le_of_le_drop` in `Divisor 420` for a = 5, b = 7
example : (drop 5 : Divisor 420) = 35 := by decide
example : (lift 7 : Divisor 420) = 1 := by decide

/-- The stem is the largest stemmed element on its side. -/
theorem le_stem_of_stemmed (h₁ : b ≤ a) (h₂ : Stemmed b) : b ≤ stem a :=
  le_trans (ge_of_eq (stem_eq_of_stemmed h₂)) (stem_mono h₁)

-- `stemmed_of_le_stem` in `Divisor 420` for a = 42
example : (stem 42 : Divisor 420) = 42 := by decide

theorem stemmed_crest (h₁ : Stemmed a) (h₂ : Stemmed b) : Stemmed (a ⋎ b) := by
  have h₃ : a ≤ stem (a ⋎ b) := le_stem_of_stemmed (le_crest_left a b) h₁
  have h₄ : b ≤ stem (a ⋎ b) := le_stem_of_stemmed (le_crest_right a b) h₂
  exact stemmed_of_le_stem (crest_le h₃ h₄)

/-- The crest of two stems is stemmed. -/
theorem stemmed_crest_stem (a b : K) : Stemmed (stem a ⋎ stem b) :=
  stemmed_crest (stemmed_stem a) (stemmed_stem b)

theorem stem_le_stem_shell (a : K) : stem a ≤ stem (shell a) :=
  stem_mono (le_shell a)

@[simp] theorem shell_stem_shell_stem (a : K) : shell (stem (shell (stem a))) = shell (stem a) := by
  have h₁ : shell (stem (shell (stem a))) ≤ shell (shell (stem a)) :=
    shell_mono (stem_le (shell (stem a)))
  have h₂ : shell (stem (shell (stem a))) ≤ shell (stem a) :=
    le_trans h₁ (shell_shell_le (stem a))
  have h₃ : stem (stem a) ≤ stem (shell (stem a)) := stem_mono (le_shell (stem a))
  have h₄ : shell (stem a) ≤ shell (stem (shell (stem a))) :=
    shell_mono (le_trans (le_stem_stem a) h₃)
  exact le_antisymm h₂ h₄

-- `drop_dip_lift` in `Divisor 420` for a = 20, b = 70
example : (drop 20 : Divisor 420) = 140 := by decide
example : (lift 140 : Divisor 420) = 20 := by decide
example : (20 ⋏ 70 : Divisor 420) = 10 := by decide
example : (drop 10 : Divisor 420) = 70 := by decide

end WhatIsStemmed

/-!
### Products of knolls

All operations and the order are taken in each component.
-/

variable {L : Type*} [Knoll L] {p q r s : K × L}

theorem Prod.le_left_of_le_dip (h : r ≤ p ⋏ q) : r ≤ p :=
  ⟨le_left_of_le_dip h.1, le_left_of_le_dip h.2⟩

theorem Prod.dip_idem (p : K × L) : p ⋏ p = p :=
  Prod.ext (dip_idem p.1) (dip_idem p.2)

theorem Prod.dip_comm (p q : K × L) : p ⋏ q = q ⋏ p :=
  Prod.ext (dip_comm p.1 q.1) (dip_comm p.2 q.2)

theorem Prod.dip_mono (h₁ : p ≤ r) (h₂ : q ≤ s) : p ⋏ q ≤ r ⋏ s :=
  ⟨dip_mono h₁.1 h₂.1, dip_mono h₁.2 h₂.2⟩

theorem Prod.dip_mono_left (r : K × L) (h : p ≤ q) : p ⋏ r ≤ q ⋏ r :=
  ⟨dip_mono_left r.1 h.1, dip_mono_left r.2 h.2⟩

theorem Prod.dip_mono_right (p : K × L) (h : q ≤ r) : p ⋏ q ≤ p ⋏ r :=
  ⟨dip_mono_right p.1 h.1, dip_mono_right p.2 h.2⟩

theorem Prod.dip_assoc (p q r : K × L) : (p ⋏ q) ⋏ r = p ⋏ (q ⋏ r) :=
  Prod.ext (dip_assoc p.1 q.1 r.1) (dip_assoc p.2 q.2 r.2)

theorem Prod.dip_distrib_dip (p q r : K × L) : p ⋏ (q ⋏ r) = (p ⋏ q) ⋏ (p ⋏ r) :=
  Prod.ext (dip_distrib_dip p.1 q.1 r.1) (dip_distrib_dip p.2 q.2 r.2)

theorem Prod.dip_eq_left (h : p ≤ q) : p ⋏ q = p :=
  Prod.ext (dip_eq_left h.1) (dip_eq_left h.2)

theorem Prod.dip_eq_right (h : q ≤ p) : p ⋏ q = q :=
  Prod.ext (dip_eq_right h.1) (dip_eq_right h.2)

theorem Prod.le_of_dip_eq (h : p ⋏ q = p) : p ≤ q :=
  ⟨le_of_dip_eq (congrArg Prod.fst h), le_of_dip_eq (congrArg Prod.snd h)⟩

theorem Prod.dip_le_crest (p q : K × L) : p ⋏ q ≤ p ⋎ q :=
  ⟨dip_le_crest p.1 q.1, dip_le_crest p.2 q.2⟩

theorem Prod.dip_absorb (p q : K × L) : p ⋏ (p ⋎ q) = p :=
  Prod.ext (dip_absorb p.1 q.1) (dip_absorb p.2 q.2)

theorem Prod.dip_crest_le (p q r : K × L) : p ⋏ q ⋎ p ⋏ r ≤ p ⋏ (q ⋎ r) :=
  ⟨dip_crest_le p.1 q.1 r.1, dip_crest_le p.2 q.2 r.2⟩

theorem Prod.modular_le (q : K × L) (h : p ≤ r) : p ⋎ q ⋏ r ≤ (p ⋎ q) ⋏ r :=
  ⟨modular_le q.1 h.1, modular_le q.2 h.2⟩

theorem Prod.le_crest_of_right (p : K × L) (h : r ≤ q) : r ≤ p ⋎ q :=
  ⟨le_crest_of_right p.1 h.1, le_crest_of_right p.2 h.2⟩

theorem Prod.right_le_of_crest_le (h : p ⋎ q ≤ r) : q ≤ r :=
  ⟨right_le_of_crest_le h.1, right_le_of_crest_le h.2⟩

theorem Prod.crest_idem (p : K × L) : p ⋎ p = p :=
  Prod.ext (crest_idem p.1) (crest_idem p.2)

theorem Prod.crest_comm (p q : K × L) : p ⋎ q = q ⋎ p :=
  Prod.ext (crest_comm p.1 q.1) (crest_comm p.2 q.2)

theorem Prod.crest_mono_left (r : K × L) (h : q ≤ p) : q ⋎ r ≤ p ⋎ r :=
  ⟨crest_mono_left r.1 h.1, crest_mono_left r.2 h.2⟩

theorem Prod.crest_mono_right (p : K × L) (h : r ≤ q) : p ⋎ r ≤ p ⋎ q :=
  ⟨crest_mono_right p.1 h.1, crest_mono_right p.2 h.2⟩

theorem Prod.crest_assoc (p q r : K × L) : (p ⋎ q) ⋎ r = p ⋎ (q ⋎ r) :=
  Prod.ext (crest_assoc p.1 q.1 r.1) (crest_assoc p.2 q.2 r.2)

theorem Prod.crest_left_comm (p q r : K × L) : p ⋎ (q ⋎ r) = q ⋎ (p ⋎ r) :=
  Prod.ext (crest_left_comm p.1 q.1 r.1) (crest_left_comm p.2 q.2 r.2)

theorem Prod.crest_crest_self (p q : K × L) : p ⋎ (p ⋎ q) = p ⋎ q :=
  Prod.ext (crest_crest_self p.1 q.1) (crest_crest_self p.2 q.2)

theorem Prod.crest_eq_left (h : q ≤ p) : p ⋎ q = p :=
  Prod.ext (crest_eq_left h.1) (crest_eq_left h.2)

theorem Prod.crest_eq_right (h : p ≤ q) : p ⋎ q = q :=
  Prod.ext (crest_eq_right h.1) (crest_eq_right h.2)

theorem Prod.le_of_crest_eq (h : p ⋎ q = p) : q ≤ p :=
  ⟨le_of_crest_eq (congrArg Prod.fst h), le_of_crest_eq (congrArg Prod.snd h)⟩

theorem Prod.le_crest_dip (p q r : K × L) : p ⋎ q ⋏ r ≤ (p ⋎ q) ⋏ (p ⋎ r) :=
  ⟨le_crest_dip p.1 q.1 r.1, le_crest_dip p.2 q.2 r.2⟩

theorem Prod.modular_ge (q : K × L) (h : r ≤ p) : p ⋏ q ⋎ r ≤ p ⋏ (q ⋎ r) :=
  ⟨modular_ge q.1 h.1, modular_ge q.2 h.2⟩

theorem Prod.crest_dip_le_crest (p q r : K × L) : p ⋎ q ⋏ r ≤ p ⋎ q :=
  ⟨crest_dip_le_crest p.1 q.1 r.1, crest_dip_le_crest p.2 q.2 r.2⟩

theorem Prod.eq_of_crest_eq_dip (h : p ⋎ q = p ⋏ q) : p = q :=
  Prod.ext (eq_of_crest_eq_dip (congrArg Prod.fst h)) (eq_of_crest_eq_dip (congrArg Prod.snd h))

theorem Prod.shell_le_shell (h : p ≤ shell q) : shell p ≤ shell q :=
  ⟨shell_le_shell h.1, shell_le_shell h.2⟩

theorem Prod.shell_dip_le (p q : K × L) : shell (p ⋏ q) ≤ shell p ⋏ shell q :=
  ⟨shell_dip_le p.1 q.1, shell_dip_le p.2 q.2⟩

theorem Prod.crest_shell_le (p q : K × L) : shell p ⋎ shell q ≤ shell (p ⋎ q) :=
  ⟨crest_shell_le p.1 q.1, crest_shell_le p.2 q.2⟩

theorem Prod.shell_crest_shell_left (p q : K × L) : shell (shell p ⋎ q) = shell (p ⋎ q) :=
  Prod.ext (shell_crest_shell_left p.1 q.1) (shell_crest_shell_left p.2 q.2)

theorem Prod.shell_crest_shell (p q : K × L) : shell (shell p ⋎ shell q) = shell (p ⋎ q) :=
  Prod.ext (shell_crest_shell p.1 q.1) (shell_crest_shell p.2 q.2)

theorem Prod.shell_dip_shell (p q : K × L) : shell (shell p ⋏ shell q) = shell p ⋏ shell q :=
  Prod.ext (shell_dip_shell p.1 q.1) (shell_dip_shell p.2 q.2)

theorem Prod.shell_eq_of_between (h₁ : p ≤ q) (h₂ : q ≤ shell p) : shell q = shell p :=
  Prod.ext (shell_eq_of_between h₁.1 h₂.1) (shell_eq_of_between h₁.2 h₂.2)

theorem Prod.shell_stem_le_shell (p : K × L) : shell (stem p) ≤ shell p :=
  ⟨shell_stem_le_shell p.1, shell_stem_le_shell p.2⟩

theorem Prod.stem_shell_stem_shell (p : K × L) :
    stem (shell (stem (shell p))) = stem (shell p) :=
  Prod.ext (stem_shell_stem_shell p.1) (stem_shell_stem_shell p.2)

theorem Prod.stem_idem (p : K × L) : stem (stem p) = stem p :=
  Prod.ext (stem_idem p.1) (stem_idem p.2)

theorem Prod.stem_le_of_le (h : q ≤ p) : stem q ≤ p :=
  ⟨stem_le_of_le h.1, stem_le_of_le h.2⟩

theorem Prod.stem_le_stem (h : stem q ≤ p) : stem q ≤ stem p :=
  ⟨stem_le_stem h.1, stem_le_stem h.2⟩

theorem Prod.stem_dip_le (p q : K × L) : stem (p ⋏ q) ≤ stem p ⋏ stem q :=
  ⟨stem_dip_le p.1 q.1, stem_dip_le p.2 q.2⟩

theorem Prod.stem_dip_stem_left (p q : K × L) : stem (stem p ⋏ q) = stem (p ⋏ q) :=
  Prod.ext (stem_dip_stem_left p.1 q.1) (stem_dip_stem_left p.2 q.2)

theorem Prod.stem_dip_stem (p q : K × L) : stem (stem p ⋏ stem q) = stem (p ⋏ q) :=
  Prod.ext (stem_dip_stem p.1 q.1) (stem_dip_stem p.2 q.2)

theorem Prod.stem_eq_of_between (h₁ : q ≤ p) (h₂ : stem p ≤ q) : stem q = stem p :=
  Prod.ext (stem_eq_of_between h₁.1 h₂.1) (stem_eq_of_between h₁.2 h₂.2)

theorem Prod.le_drop_lift (p : K × L) : p ≤ drop (lift p) :=
  ⟨le_drop_lift p.1, le_drop_lift p.2⟩

theorem Prod.lift_drop_lift (p : K × L) : lift (drop (lift p)) = lift p :=
  Prod.ext (lift_drop_lift p.1) (lift_drop_lift p.2)

theorem Prod.drop_lift_idem (p : K × L) : drop (lift (drop (lift p))) = drop (lift p) :=
  Prod.ext (drop_lift_idem p.1) (drop_lift_idem p.2)

theorem Prod.le_drop_of_lift_le (h : lift p ≤ q) : p ≤ drop q :=
  ⟨le_drop_of_lift_le h.1, le_drop_of_lift_le h.2⟩

theorem Prod.lift_crest (p q : K × L) : lift (p ⋎ q) = lift p ⋎ lift q :=
  Prod.ext (lift_crest p.1 q.1) (lift_crest p.2 q.2)

theorem Prod.lift_dip_le (p q : K × L) : lift (p ⋏ q) ≤ lift p ⋏ lift q :=
  ⟨lift_dip_le p.1 q.1, lift_dip_le p.2 q.2⟩

theorem Prod.drop_lift_mono (h : p ≤ q) : drop (lift p) ≤ drop (lift q) :=
  ⟨drop_lift_mono h.1, drop_lift_mono h.2⟩

theorem Prod.lift_eq_of_le_drop (h₁ : p ≤ drop q) (h₂ : q ≤ lift p) : lift p = q :=
  Prod.ext (lift_eq_of_le_drop h₁.1 h₂.1) (lift_eq_of_le_drop h₁.2 h₂.2)

theorem Prod.lift_crest_drop (p q : K × L) : lift (drop (lift p) ⋎ q) = lift (p ⋎ q) :=
  Prod.ext (lift_crest_drop p.1 q.1) (lift_crest_drop p.2 q.2)

theorem Prod.drop_lift_drop (p : K × L) : drop (lift (drop p)) = drop p :=
  Prod.ext (drop_lift_drop p.1) (drop_lift_drop p.2)

theorem Prod.lift_drop_idem (p : K × L) : lift (drop (lift (drop p))) = lift (drop p) :=
  Prod.ext (lift_drop_idem p.1) (lift_drop_idem p.2)

theorem Prod.drop_dip (p q : K × L) : drop (p ⋏ q) = drop p ⋏ drop q :=
  Prod.ext (drop_dip p.1 q.1) (drop_dip p.2 q.2)

theorem Prod.drop_dip_lift (p q : K × L) : drop (lift (drop p) ⋏ q) = drop (p ⋏ q) :=
  Prod.ext (drop_dip_lift p.1 q.1) (drop_dip_lift p.2 q.2)

theorem Prod.shell_stem_shell_stem (p : K × L) :
    shell (stem (shell (stem p))) = shell (stem p) :=
  Prod.ext (shell_stem_shell_stem p.1) (shell_stem_shell_stem p.2)

/-!
### Functions into knolls

All operations and the order are taken at each point.
-/

variable {ι : Type*} {f g k l : ι → K}

theorem Pi.dip_le_of_left (g : ι → K) (h : f ≤ k) : f ⋏ g ≤ k :=
  fun i => dip_le_of_left (g i) (h i)

theorem Pi.dip_le_of_right (f : ι → K) (h : g ≤ k) : f ⋏ g ≤ k :=
  fun i => dip_le_of_right (f i) (h i)

theorem Pi.le_right_of_le_dip (h : k ≤ f ⋏ g) : k ≤ g :=
  fun i => le_right_of_le_dip (h i)

theorem Pi.dip_idem (f : ι → K) : f ⋏ f = f :=
  funext fun i => dip_idem (f i)

theorem Pi.dip_comm (f g : ι → K) : f ⋏ g = g ⋏ f :=
  funext fun i => dip_comm (f i) (g i)

theorem Pi.dip_mono_left (k : ι → K) (h : f ≤ g) : f ⋏ k ≤ g ⋏ k :=
  fun i => dip_mono_left (k i) (h i)

theorem Pi.dip_mono_right (f : ι → K) (h : g ≤ k) : f ⋏ g ≤ f ⋏ k :=
  fun i => dip_mono_right (f i) (h i)

theorem Pi.dip_assoc (f g k : ι → K) : (f ⋏ g) ⋏ k = f ⋏ (g ⋏ k) :=
  funext fun i => dip_assoc (f i) (g i) (k i)

theorem Pi.dip_left_comm (f g k : ι → K) : f ⋏ (g ⋏ k) = g ⋏ (f ⋏ k) :=
  funext fun i => dip_left_comm (f i) (g i) (k i)

theorem Pi.dip_right_comm (f g k : ι → K) : (f ⋏ g) ⋏ k = (f ⋏ k) ⋏ g :=
  funext fun i => dip_right_comm (f i) (g i) (k i)

theorem Pi.dip_dip_self (f g : ι → K) : f ⋏ (f ⋏ g) = f ⋏ g :=
  funext fun i => dip_dip_self (f i) (g i)

theorem Pi.dip_distrib_dip (f g k : ι → K) : f ⋏ (g ⋏ k) = (f ⋏ g) ⋏ (f ⋏ k) :=
  funext fun i => dip_distrib_dip (f i) (g i) (k i)

theorem Pi.dip_eq_left (h : f ≤ g) : f ⋏ g = f :=
  funext fun i => dip_eq_left (h i)

theorem Pi.le_of_dip_eq (h : f ⋏ g = f) : f ≤ g :=
  fun i => le_of_dip_eq (congrFun h i)

theorem Pi.modular_le (g : ι → K) (h : f ≤ k) : f ⋎ g ⋏ k ≤ (f ⋎ g) ⋏ k :=
  fun i => modular_le (g i) (h i)

theorem Pi.le_crest_of_left (g : ι → K) (h : k ≤ f) : k ≤ f ⋎ g :=
  fun i => le_crest_of_left (g i) (h i)

theorem Pi.le_crest_of_right (f : ι → K) (h : k ≤ g) : k ≤ f ⋎ g :=
  fun i => le_crest_of_right (f i) (h i)

theorem Pi.left_le_of_crest_le (h : f ⋎ g ≤ k) : f ≤ k :=
  fun i => left_le_of_crest_le (h i)

theorem Pi.right_le_of_crest_le (h : f ⋎ g ≤ k) : g ≤ k :=
  fun i => right_le_of_crest_le (h i)

theorem Pi.crest_comm (f g : ι → K) : f ⋎ g = g ⋎ f :=
  funext fun i => crest_comm (f i) (g i)

theorem Pi.crest_mono_left (k : ι → K) (h : g ≤ f) : g ⋎ k ≤ f ⋎ k :=
  fun i => crest_mono_left (k i) (h i)

theorem Pi.crest_mono_right (f : ι → K) (h : k ≤ g) : f ⋎ k ≤ f ⋎ g :=
  fun i => crest_mono_right (f i) (h i)

theorem Pi.crest_left_comm (f g k : ι → K) : f ⋎ (g ⋎ k) = g ⋎ (f ⋎ k) :=
  funext fun i => crest_left_comm (f i) (g i) (k i)

theorem Pi.crest_right_comm (f g k : ι → K) : (f ⋎ g) ⋎ k = (f ⋎ k) ⋎ g :=
  funext fun i => crest_right_comm (f i) (g i) (k i)

theorem Pi.crest_crest_self (f g : ι → K) : f ⋎ (f ⋎ g) = f ⋎ g :=
  funext fun i => crest_crest_self (f i) (g i)

theorem Pi.crest_distrib_crest (f g k : ι → K) : f ⋎ (g ⋎ k) = (f ⋎ g) ⋎ (f ⋎ k) :=
  funext fun i => crest_distrib_crest (f i) (g i) (k i)

theorem Pi.crest_eq_right (h : f ≤ g) : f ⋎ g = g :=
  funext fun i => crest_eq_right (h i)

theorem Pi.le_of_crest_eq (h : f ⋎ g = f) : g ≤ f :=
  fun i => le_of_crest_eq (congrFun h i)

theorem Pi.le_crest_dip (f g k : ι → K) : f ⋎ g ⋏ k ≤ (f ⋎ g) ⋏ (f ⋎ k) :=
  fun i => le_crest_dip (f i) (g i) (k i)

theorem Pi.crest_dip_le_crest (f g k : ι → K) : f ⋎ g ⋏ k ≤ f ⋎ g :=
  fun i => crest_dip_le_crest (f i) (g i) (k i)

theorem Pi.eq_of_crest_eq_dip (h : f ⋎ g = f ⋏ g) : f = g :=
  funext fun i => eq_of_crest_eq_dip (congrFun h i)

theorem Pi.shell_idem (f : ι → K) : shell (shell f) = shell f :=
  funext fun i => shell_idem (f i)

theorem Pi.shell_le_shell (h : f ≤ shell g) : shell f ≤ shell g :=
  fun i => shell_le_shell (h i)

theorem Pi.shell_dip_le (f g : ι → K) : shell (f ⋏ g) ≤ shell f ⋏ shell g :=
  fun i => shell_dip_le (f i) (g i)

theorem Pi.crest_shell_le (f g : ι → K) : shell f ⋎ shell g ≤ shell (f ⋎ g) :=
  fun i => crest_shell_le (f i) (g i)

theorem Pi.shell_crest_shell (f g : ι → K) : shell (shell f ⋎ shell g) = shell (f ⋎ g) :=
  funext fun i => shell_crest_shell (f i) (g i)

theorem Pi.shell_eq_of_between (h₁ : f ≤ g) (h₂ : g ≤ shell f) : shell g = shell f :=
  funext fun i => shell_eq_of_between (h₁ i) (h₂ i)

theorem Pi.stem_idem (f : ι → K) : stem (stem f) = stem f :=
  funext fun i => stem_idem (f i)

theorem Pi.stem_le_of_le (h : g ≤ f) : stem g ≤ f :=
  fun i => stem_le_of_le (h i)

theorem Pi.stem_le_stem (h : stem g ≤ f) : stem g ≤ stem f :=
  fun i => stem_le_stem (h i)

theorem Pi.le_stem_crest (f g : ι → K) : stem f ⋎ stem g ≤ stem (f ⋎ g) :=
  fun i => le_stem_crest (f i) (g i)

theorem Pi.stem_dip_stem_left (f g : ι → K) : stem (stem f ⋏ g) = stem (f ⋏ g) :=
  funext fun i => stem_dip_stem_left (f i) (g i)

theorem Pi.stem_dip_stem (f g : ι → K) : stem (stem f ⋏ stem g) = stem (f ⋏ g) :=
  funext fun i => stem_dip_stem (f i) (g i)

theorem Pi.stem_crest_stem (f g : ι → K) : stem (stem f ⋎ stem g) = stem f ⋎ stem g :=
  funext fun i => stem_crest_stem (f i) (g i)

theorem Pi.stem_eq_of_between (h₁ : g ≤ f) (h₂ : stem f ≤ g) : stem g = stem f :=
  funext fun i => stem_eq_of_between (h₁ i) (h₂ i)

theorem Pi.le_drop_lift (f : ι → K) : f ≤ drop (lift f) :=
  fun i => le_drop_lift (f i)

theorem Pi.lift_mono (h : f ≤ g) : lift f ≤ lift g :=
  fun i => lift_mono (h i)

theorem Pi.lift_drop_le (f : ι → K) : lift (drop f) ≤ f :=
  fun i => lift_drop_le (f i)

theorem Pi.lift_drop_lift (f : ι → K) : lift (drop (lift f)) = lift f :=
  funext fun i => lift_drop_lift (f i)

theorem Pi.drop_mono (h : g ≤ f) : drop g ≤ drop f :=
  fun i => drop_mono (h i)

theorem Pi.drop_lift_mono (h : f ≤ g) : drop (lift f) ≤ drop (lift g) :=
  fun i => drop_lift_mono (h i)

theorem Pi.lift_eq_of_le_drop (h₁ : f ≤ drop g) (h₂ : g ≤ lift f) : lift f = g :=
  funext fun i => lift_eq_of_le_drop (h₁ i) (h₂ i)

theorem Pi.drop_lift_drop (f : ι → K) : drop (lift (drop f)) = drop f :=
  funext fun i => drop_lift_drop (f i)

theorem Pi.lift_drop_idem (f : ι → K) : lift (drop (lift (drop f))) = lift (drop f) :=
  funext fun i => lift_drop_idem (f i)

theorem Pi.drop_dip (f g : ι → K) : drop (f ⋏ g) = drop f ⋏ drop g :=
  funext fun i => drop_dip (f i) (g i)

theorem Pi.le_drop_crest (f g : ι → K) : drop f ⋎ drop g ≤ drop (f ⋎ g) :=
  fun i => le_drop_crest (f i) (g i)

theorem Pi.lift_drop_mono (h : g ≤ f) : lift (drop g) ≤ lift (drop f) :=
  fun i => lift_drop_mono (h i)

theorem Pi.drop_eq_of_lift_le (h₁ : lift g ≤ f) (h₂ : drop f ≤ g) : drop f = g :=
  funext fun i => drop_eq_of_lift_le (h₁ i) (h₂ i)

theorem Pi.drop_dip_lift (f g : ι → K) : drop (lift (drop f) ⋏ g) = drop (f ⋏ g) :=
  funext fun i => drop_dip_lift (f i) (g i)

theorem Pi.stem_le_stem_shell (f : ι → K) : stem f ≤ stem (shell f) :=
  fun i => stem_le_stem_shell (f i)

theorem Pi.shell_stem_shell_stem (f : ι → K) : shell (stem (shell (stem f))) = shell (stem f) :=
  funext fun i => shell_stem_shell_stem (f i)

/-- Final digest: repeating a term of a dip changes nothing; the dip lies below the crest; the
dip absorbs the crest; brackets may be moved in a crest of three elements; the crest absorbs the
dip; one half of the distributive law always holds; replacing one term of a crest by a dip can
only make it smaller; both terms of a crest may be replaced by their shells; the stem lies below
the shell; the stem of a crest lies above the crest of the stems; going there and back moves an
element to one side; going there and back is idempotent; the drop carries a crest above a crest;
taking stem and shell in turn stops after two rounds. -/
theorem final_digest (a b c : K) :
    (a ⋏ (a ⋏ b) = a ⋏ b) ∧
    (a ⋏ b ≤ a ⋎ b) ∧
    (a ⋏ (a ⋎ b) = a) ∧
    ((a ⋎ b) ⋎ c = a ⋎ (b ⋎ c)) ∧
    (a ⋎ a ⋏ b = a) ∧
    (a ⋎ b ⋏ c ≤ (a ⋎ b) ⋏ (a ⋎ c)) ∧
    (a ⋎ b ⋏ c ≤ a ⋎ b) ∧
    (shell (shell a ⋎ shell b) = shell (a ⋎ b)) ∧
    (stem a ≤ shell a) ∧
    (stem a ⋎ stem b ≤ stem (a ⋎ b)) ∧
    (lift (drop a) ≤ a) ∧
    (drop (lift (drop (lift a))) = drop (lift a)) ∧
    (drop a ⋎ drop b ≤ drop (a ⋎ b)) ∧
    (shell (stem (shell (stem a))) = shell (stem a)) :=
  ⟨dip_dip_self a b,
    dip_le_crest a b,
    dip_absorb a b,
    crest_assoc a b c,
    crest_absorb a b,
    le_crest_dip a b c,
    crest_dip_le_crest a b c,
    shell_crest_shell a b,
    stem_le_shell a,
    le_stem_crest a b,
    lift_drop_le a,
    drop_lift_idem a,
    le_drop_crest a b,
    shell_stem_shell_stem a⟩

end Knoll

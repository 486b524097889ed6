import Mathlib.Order.Basic
import Mathlib.Data.Real.Basic

/-!
# Wickets

In this file we define wickets and prove basic lemmas about swings, gaps, sways and rifts.
-/

/-- A wicket is a type with a product, a neutral element and inverses. -/
class Wicket (W : Type*) extends Mul W, One W, Inv W where
  swing : W → W → W
  sway : W → W → W
  gap : W → W → W
  rift : W → W → W
  lead : W → W → W
  trail : W → W → W
  carry : W → W
  run_assoc : ∀ u v w, u * v * w = u * (v * w)
  still_run : ∀ u, 1 * u = u
  undo_run : ∀ u, u⁻¹ * u = 1
  swing_def : ∀ u v, swing u v = u * v * u⁻¹
  gap_def : ∀ u v, gap u v = u * v * (u⁻¹ * v⁻¹)
  lead_def : ∀ u v, lead u v = u⁻¹ * v
  carry_run : ∀ u v, carry (u * v) = carry u * carry v
  run_still : ∀ u, u * 1 = u
  run_undo : ∀ u, u * u⁻¹ = 1
  sway_def : ∀ u v, sway u v = u⁻¹ * (v * u)
  rift_def : ∀ u v, rift u v = v⁻¹ * u⁻¹ * (v * u)
  trail_def : ∀ u v, trail v u = v * u⁻¹

namespace Wicket


variable {W : Type*} [Wicket W]

/-!
### Cancelling on the left
-/

section CancellingOnTheLeft

variable {u v w : W}

/-- An undo cancels its element inside a product. -/
theorem undo_run_cancel_left (u v : W) : u⁻¹ * (u * v) = v := by
  rw [← run_assoc, undo_run, still_run]

/-- An element cancels its undo inside a product. -/
theorem run_undo_cancel_left (u v : W) : u * (u⁻¹ * v) = v := by
  rw [← run_assoc, run_undo, still_run]

theorem run_left_cancel (h : u * v = u * w) : v = w := by
  rw [← undo_run_cancel_left, h, undo_run_cancel_left]

theorem run_left_congr (u : W) (h : v = w) : u * v = u * w := by
  rw [h]

/-- An element that solves the equation is the undo. -/
theorem undo_eq_of_run (h : u * v = 1) : u⁻¹ = v := by
  calc u⁻¹
      _ = u⁻¹ * 1 := by rw [← run_still]
      _ = u⁻¹ * (u * v) := by rw [← h]
      _ = v := by rw [undo_run_cancel_left]

theorem eq_undo_run_of (h : u * v = w) : v = u⁻¹ * w := by
  calc v
      _ = u⁻¹ * (u * v) := by rw [← undo_run_cancel_left]
      _ = u⁻¹ * w := by rw [h]

theorem eq_still_of_run_eq (h : u * v = u) : v = 1 := by
  calc v
      _ = u⁻¹ * (u * v) := by rw [← undo_run_cancel_left]
      _ = (u * v)⁻¹ * (u * v) := by rw [← h]
      _ = 1 := by rw [undo_run]

/-- The still is its own undo. -/
theorem undo_still : 1⁻¹ = 1 := by
  calc 1⁻¹
      _ = 1⁻¹ * 1 := by rw [← run_still]
      _ = 1 := by rw [undo_run]

/-- The undo of the undo is the element itself. -/
@[simp] theorem undo_undo (u : W) : (u⁻¹)⁻¹ = u := by
  calc (u⁻¹)⁻¹
      _ = (u⁻¹)⁻¹ * 1 := by rw [← run_still]
      _ = (u⁻¹)⁻¹ * (u⁻¹ * u) := by rw [← undo_run]
      _ = u := by rw [undo_run_cancel_left]

theorem run_undo_rev (u v : W) : (u * v)⁻¹ = v⁻¹ * u⁻¹ := by
  have h : u * v * (v⁻¹ * u⁻¹) = 1 := by
    calc u * v * (v⁻¹ * u⁻¹)
        _ = u * (v * (v⁻¹ * u⁻¹)) := by rw [run_assoc]
        _ = u * u⁻¹ := by rw [run_undo_cancel_left]
        _ = 1 := by rw [run_undo]
  exact undo_eq_of_run h

theorem undo_inj (h : u⁻¹ = v⁻¹) : u = v := by
  calc u
      _ = (u⁻¹)⁻¹ := by rw [← undo_undo]
      _ = (v⁻¹)⁻¹ := by rw [h]
      _ = v := by rw [undo_undo]

theorem run_run_undo_rev (u v w : W) : (u * (v * w))⁻¹ = w⁻¹ * (v⁻¹ * u⁻¹) := by
  rw [run_undo_rev, run_undo_rev, run_assoc]

end CancellingOnTheLeft

/-! The affine maps `t ↦ p * t + q` modulo 7, written as pairs `(p, q)`, with composition as
product. `carry` forgets `q`. -/

/-!
### Cancelling on the right

* `run_right_cancel`: equal products with the same right part have the same rest.
* `eq_still_of_run_eq_right`: an element that changes nothing on the left is the still.
-/

section CancellingOnTheRight

variable {u v w : W}

theorem run_undo_cancel_right (u v : W) : v * u * u⁻¹ = v := by
  calc v * u * u⁻¹
      _ = v * (u * u⁻¹) := by rw [run_assoc]
      _ = v * 1 := by rw [run_undo]
      _ = v := by rw [run_still]

/-- An element cancels its undo inside a product. -/
theorem undo_run_cancel_right (u v : W) : v * u⁻¹ * u = v := by
  calc v * u⁻¹ * u
      _ = v * (u⁻¹ * u) := by rw [run_assoc]
      _ = v * 1 := by rw [undo_run]
      _ = v := by rw [run_still]

/-- Equal products with the same right part have the same rest. -/
theorem run_right_cancel (h : v * u = w * u) : v = w := by
  calc v
      _ = v * u * u⁻¹ := by rw [← run_undo_cancel_right]
      _ = w * u * u⁻¹ := by rw [h]
      _ = w := by rw [run_undo_cancel_right]

/-- Equal elements may be multiplied on the right. -/
theorem run_right_congr (u : W) (h : v = w) : v * u = w * u := by
  rw [h]

theorem undo_eq_of_run_right (h : v * u = 1) : u⁻¹ = v := by
  rw [← still_run, ← h, run_undo_cancel_right]

/-- A factor may be moved to the other side. -/
theorem eq_run_undo_of (h : v * u = w) : v = w * u⁻¹ := by
  calc v
      _ = v * u * u⁻¹ := by rw [← run_undo_cancel_right]
      _ = w * u⁻¹ := by rw [h]

/-- An element that changes nothing on the left is the still. -/
theorem eq_still_of_run_eq_right (h : v * u = u) : v = 1 := by
  calc v
      _ = v * u * u⁻¹ := by rw [← run_undo_cancel_right]
      _ = u * u⁻¹ := by rw [h]
      _ = 1 := by rw [run_undo]

theorem undo_rev_run_run (u v w : W) : (w * v * u)⁻¹ = u⁻¹ * v⁻¹ * w⁻¹ := by
  calc (w * v * u)⁻¹
      _ = (w * (v * u))⁻¹ := by rw [run_assoc]
      _ = (v * u)⁻¹ * w⁻¹ := by rw [run_undo_rev]
      _ = u⁻¹ * v⁻¹ * w⁻¹ := by rw [run_undo_rev]

end CancellingOnTheRight

/-!
### The lead

* `lead_run`: dividing on the left undoes multiplying on the left.
* `run_lead_run`: a common left factor cancels in a lead.
-/

section TheLead

variable {u v w : W}

theorem run_lead (u v : W) : u * lead u v = v := by
  rw [lead_def, run_undo_cancel_left]

theorem lead_run (u v : W) : lead u (u * v) = v := by
  rw [lead_def, undo_run_cancel_left]

-- `undo_run_cancel_right` in `Affine 7` for u = (2, 3), v = (1, 1)
example : ((2, 3)⁻¹ : Affine 7) = (4, 2) := by decide
example : ((1, 1) * (4, 2) : Affine 7) = (4, 3) := by decide
example : ((4, 3) * (2, 3) : Affine 7) = (1, 1) := by decide

theorem lead_self (u : W) : lead u u = 1 := by
  rw [lead_def, undo_run]

/-- Dividing by the still changes nothing. -/
@[simp] theorem still_lead (u : W) : lead 1 u = u := by
  calc lead 1 u
      _ = 1⁻¹ * u := by rw [lead_def]
      _ = 1 * u := by rw [undo_still]
      _ = u := by rw [still_run]

@[simp] theorem lead_still (u : W) : lead u 1 = u⁻¹ := by
  calc lead u 1
      _ = u⁻¹ * 1 := by rw [lead_def]
      _ = u⁻¹ := by rw [run_still]

-- `undo_rev_run_run` in `Affine 7` for u = (5, 1), v = (1, 2), w = (2, 0)
example : ((2, 0) * (1, 2) : Affine 7) = (2, 4) := by decide
example : ((2, 4) * (5, 1) : Affine 7) = (3, 6) := by decide
example : ((3, 6)⁻¹ : Affine 7) = (5, 5) := by decide
example : ((2, 0)⁻¹ : Affine 7) = (4, 0) := by decide
example : ((1, 2)⁻¹ : Affine 7) = (1, 5) := by decide
example : ((5, 1)⁻¹ : Affine 7) = (3, 4) := by decide
example : ((3, 4) * (1, 5) : Affine 7) = (3, 5) := by decide
example : ((3, 5) * (4, 0) : Affine 7) = (5, 5) := by decide

theorem undo_lead (u v : W) : (lead u v)⁻¹ = lead v u := by
  calc (lead u v)⁻¹
      _ = (u⁻¹ * v)⁻¹ := by rw [lead_def]
      _ = v⁻¹ * (u⁻¹)⁻¹ := by rw [run_undo_rev]
      _ = v⁻¹ * u := by rw [undo_undo]
      _ = lead v u := by rw [← lead_def]

-- `lead_still` in `Affine 7` for u = (1, 3)
example : (lead (1, 3) 1 : Affine 7) = (1, 4) := by decide
example : ((1, 3)⁻¹ : Affine 7) = (1, 4) := by decide

/-- Leads can be chained. -/
@[simp] theorem lead_run_lead (u v w : W) : lead u v * lead v w = lead u w := by
  calc lead u v * lead v w
      _ = u⁻¹ * v * lead v w := by rw [lead_def]
      _ = u⁻¹ * (v * lead v w) := by rw [run_assoc]
      _ = u⁻¹ * (v * (v⁻¹ * w)) := by rw [lead_def]
      _ = u⁻¹ * w := by rw [run_undo_cancel_left]
      _ = lead u w := by rw [← lead_def]

@[simp] theorem run_lead_run (u v w : W) : lead (u * v) (u * w) = lead v w := by
  calc lead (u * v) (u * w)
      _ = (u * v)⁻¹ * (u * w) := by rw [lead_def]
      _ = v⁻¹ * u⁻¹ * (u * w) := by rw [run_undo_rev]
      _ = v⁻¹ * (u⁻¹ * (u * w)) := by rw [run_assoc]
      _ = v⁻¹ * w := by rw [undo_run_cancel_left]
      _ = lead v w := by rw [← lead_def]

theorem lead_lead (u v w : W) : lead (u * v) w = lead v (lead u w) := by
  calc lead (u * v) w
      _ = (u * v)⁻¹ * w := by rw [lead_def]
      _ = v⁻¹ * u⁻¹ * w := by rw [run_undo_rev]
      _ = v⁻¹ * (u⁻¹ * w) := by rw [run_assoc]
      _ = v⁻¹ * lead u w := by rw [← lead_def]
      _ = lead v (lead u w) := by rw [← lead_def]

/-- The lead may absorb what comes after it. -/
@[simp] theorem lead_run_assoc (u v w : W) : lead u v * w = lead u (v * w) := by
  calc lead u v * w
      _ = u⁻¹ * v * w := by rw [lead_def]
      _ = u⁻¹ * (v * w) := by rw [run_assoc]
      _ = lead u (v * w) := by rw [← lead_def]

-- `lead_run_lead` in `Affine 7` for u = (3, 4), v = (5, 3), w = (6, 5)
example : (lead (5, 3) (6, 5) : Affine 7) = (4, 6) := by decide
example : (lead (3, 4) (5, 3) : Affine 7) = (4, 2) := by decide
example : ((4, 2) * (4, 6) : Affine 7) = (2, 5) := by decide
example : (lead (3, 4) (6, 5) : Affine 7) = (2, 5) := by decide

theorem eq_of_lead_eq_still (h : lead u v = 1) : v = u := by
  rw [← run_lead, h, run_still]

end TheLead

/-- First digest: an element that solves the equation is the undo; a factor may be moved to the
other side; the undo of a product is the product of the undos in the other order; elements with
the same undo are equal; an undo cancels its element inside a product; equal elements may be
multiplied on the right; an element that solves the equation is the undo; the undo exchanges the
parts of a lead; a common left factor cancels in a lead. -/
theorem first_digest (u v w : W) :
    (u * v = 1 → u⁻¹ = v) ∧
    (u * v = w → v = u⁻¹ * w) ∧
    ((u * v)⁻¹ = v⁻¹ * u⁻¹) ∧
    (u⁻¹ = v⁻¹ → u = v) ∧
    (v * u * u⁻¹ = v) ∧
    (v = w → v * u = w * u) ∧
    (v * u = 1 → u⁻¹ = v) ∧
    ((lead u v)⁻¹ = lead v u) ∧
    (lead (u * v) (u * w) = lead v w) :=
  ⟨undo_eq_of_run,
    eq_undo_run_of,
    run_undo_rev u v,
    undo_inj,
    run_undo_cancel_right u v,
    run_right_congr u,
    undo_eq_of_run_right,
    undo_lead u v,
    run_lead_run u v w⟩

/-!
### The swing

* `swing_run`: the swing respects products.
* `swing_undo`: the swing respects undos.
-/

section TheSwing

variable {u v w : W}

theorem swing_still (u : W) : swing u 1 = 1 := by
  rw [swing_def, run_still, run_undo]

theorem still_swing (u : W) : swing 1 u = u := by
  calc swing 1 u
      _ = 1 * u * 1⁻¹ := by rw [swing_def]
      _ = u * 1⁻¹ := by rw [still_run]
      _ = u * 1 := by rw [undo_still]
      _ = u := by rw [run_still]

/-- An element is its own swing by itself. -/
@[simp] theorem swing_self (u : W) : swing u u = u := by
  calc swing u u
      _ = u * u * u⁻¹ := by rw [swing_def]
      _ = u * (u * u⁻¹) := by rw [run_assoc]
      _ = u * 1 := by rw [run_undo]
      _ = u := by rw [run_still]

@[simp] theorem swing_run (u v w : W) : swing u v * swing u w = swing u (v * w) := by
  calc swing u v * swing u w
      _ = u * v * (u⁻¹ * swing u w) := by rw [swing_def, run_assoc]
      _ = u * (v * (u⁻¹ * (u * w * u⁻¹))) := by rw [run_assoc, swing_def]
      _ = u * (v * (w * u⁻¹)) := by rw [run_assoc, undo_run_cancel_left]
      _ = u * (v * w * u⁻¹) := by rw [← run_assoc]
      _ = u * (v * w) * u⁻¹ := by rw [← run_assoc]
      _ = swing u (v * w) := by rw [← swing_def]

/-- Taking the swing twice. -/
@[simp] theorem swing_swing (u v w : W) : swing u (swing v w) = swing (u * v) w := by
  calc swing u (swing v w)
      _ = u * (swing v w * u⁻¹) := by rw [swing_def, run_assoc]
      _ = u * (v * w * (v⁻¹ * u⁻¹)) := by rw [swing_def, run_assoc]
      _ = u * (v * (w * (u * v)⁻¹)) := by rw [run_assoc, ← run_undo_rev]
      _ = u * v * (w * (u * v)⁻¹) := by rw [← run_assoc]
      _ = u * v * w * (u * v)⁻¹ := by rw [← run_assoc]
      _ = swing (u * v) w := by rw [← swing_def]

-- `run_lead_run` in `Affine 7` for u = (3, 0), v = (2, 4), w = (1, 2)
example : ((3, 0) * (1, 2) : Affine 7) = (3, 6) := by decide
example : ((3, 0) * (2, 4) : Affine 7) = (6, 5) := by decide
example : (lead (6, 5) (3, 6) : Affine 7) = (4, 6) := by decide
example : (lead (2, 4) (1, 2) : Affine 7) = (4, 6) := by decide

@[simp] theorem swing_undo (u v : W) : swing u (v⁻¹) = (swing u v)⁻¹ := by
  calc swing u (v⁻¹)
      _ = u * v⁻¹ * u⁻¹ := by rw [swing_def]
      _ = (u⁻¹)⁻¹ * v⁻¹ * u⁻¹ := by rw [← undo_undo]
      _ = (v * u⁻¹)⁻¹ * u⁻¹ := by rw [← run_undo_rev]
      _ = (u * (v * u⁻¹))⁻¹ := by rw [← run_undo_rev]
      _ = (u * v * u⁻¹)⁻¹ := by rw [← run_assoc]
      _ = (swing u v)⁻¹ := by rw [← swing_def]

-- `lead_run_assoc` in `Affine 7` for u = (4, 2), v = (6, 3), w = (4, 1)
example : (lead (4, 2) (6, 3) : Affine 7) = (5, 2) := by decide
example : ((5, 2) * (4, 1) : Affine 7) = (6, 0) := by decide
example : ((6, 3) * (4, 1) : Affine 7) = (3, 2) := by decide
example : (lead (4, 2) (3, 2) : Affine 7) = (6, 0) := by decide

theorem swing_undo_cancel (u v : W) : swing u (swing (u⁻¹) v) = v := by
  rw [swing_swing, run_undo, still_swing]

/-- The swing undoes the swing by the undo. -/
theorem undo_swing_cancel (u v : W) : swing (u⁻¹) (swing u v) = v := by
  calc swing (u⁻¹) (swing u v)
      _ = swing (u⁻¹ * u) v := by rw [swing_swing]
      _ = swing 1 v := by rw [undo_run]
      _ = v := by rw [still_swing]

/-- An element may be moved past another one at the price of a swing. -/
@[simp] theorem run_eq_swing_run (u v : W) : swing u v * u = u * v := by
  calc swing u v * u
      _ = u * v * u⁻¹ * u := by rw [swing_def]
      _ = u * v * (u⁻¹ * u) := by rw [run_assoc]
      _ = u * v * 1 := by rw [undo_run]
      _ = u * v := by rw [run_still]

theorem swing_injective (h : swing u v = swing u w) : v = w := by
  calc v
      _ = swing (u⁻¹) (swing u v) := by rw [← undo_swing_cancel]
      _ = swing (u⁻¹) (swing u w) := by rw [h]
      _ = w := by rw [undo_swing_cancel]

theorem swing_of_commute (h : u * v = v * u) : swing u v = v := by
  calc swing u v
      _ = u * v * u⁻¹ := by rw [swing_def]
      _ = v * u * u⁻¹ := by rw [h]
      _ = v * (u * u⁻¹) := by rw [run_assoc]
      _ = v * 1 := by rw [run_undo]
      _ = v := by rw [run_still]

/-- An element that is fixed by a swing commutes. -/
theorem commute_of_swing (h : swing u v = v) : u * v = v * u := by
  calc u * v
      _ = swing u v * u := by rw [← run_eq_swing_run]
      _ = v * u := by rw [h]

@[simp] theorem swing_lead (u v w : W) : lead (swing u v) (swing u w) = swing u (lead v w) := by
  calc lead (swing u v) (swing u w)
      _ = (swing u v)⁻¹ * swing u w := by rw [lead_def]
      _ = swing u (v⁻¹) * swing u w := by rw [← swing_undo]
      _ = swing u (v⁻¹ * w) := by rw [swing_run]
      _ = swing u (lead v w) := by rw [← lead_def]

end TheSwing

/-!
### The trail

* `run_trail`: dividing on the right undoes multiplying on the right.
* `trail_run_trail`: trails can be chained.
-/

section TheTrail

variable {u v w : W}

theorem trail_run (u v : W) : trail v u * u = v := by
  calc trail v u * u
      _ = v * u⁻¹ * u := by rw [trail_def]
      _ = v := by rw [undo_run_cancel_right]

@[simp] theorem run_trail (u v : W) : trail (v * u) u = v := by
  rw [trail_def, run_undo_cancel_right]

-- `trail_run` in `Affine 7` for u = (3, 0), v = (6, 4)
example : (trail (6, 4) (3, 0) : Affine 7) = (2, 4) := by decide
example : ((2, 4) * (3, 0) : Affine 7) = (6, 4) := by decide

/-- Dividing an element by itself. -/
theorem trail_self (u : W) : trail u u = 1 := by
  rw [trail_def, run_undo]

/-- Dividing by the still changes nothing. -/
theorem trail_still (u : W) : trail u 1 = u := by
  calc trail u 1
      _ = u * 1⁻¹ := by rw [trail_def]
      _ = u * 1 := by rw [undo_still]
      _ = u := by rw [run_still]

theorem still_trail (u : W) : trail 1 u = u⁻¹ := by
  rw [trail_def, still_run]

theorem undo_trail (u v : W) : (trail v u)⁻¹ = trail u v := by
  calc (trail v u)⁻¹
      _ = (v * u⁻¹)⁻¹ := by rw [trail_def]
      _ = (u⁻¹)⁻¹ * v⁻¹ := by rw [run_undo_rev]
      _ = u * v⁻¹ := by rw [undo_undo]
      _ = trail u v := by rw [← trail_def]

theorem trail_run_trail (u v w : W) : trail w v * trail v u = trail w u := by
  calc trail w v * trail v u
      _ = w * v⁻¹ * trail v u := by rw [trail_def]
      _ = w * v⁻¹ * (v * u⁻¹) := by rw [trail_def]
      _ = w * v⁻¹ * v * u⁻¹ := by rw [← run_assoc]
      _ = w * u⁻¹ := by rw [undo_run_cancel_right]
      _ = trail w u := by rw [← trail_def]

theorem run_trail_run (u v w : W) : trail (w * u) (v * u) = trail w v := by
  calc trail (w * u) (v * u)
      _ = w * u * (v * u)⁻¹ := by rw [trail_def]
      _ = w * u * (u⁻¹ * v⁻¹) := by rw [run_undo_rev]
      _ = w * u * u⁻¹ * v⁻¹ := by rw [← run_assoc]
      _ = w * v⁻¹ := by rw [run_undo_cancel_right]
      _ = trail w v := by rw [← trail_def]

theorem trail_trail (u v w : W) : trail w (v * u) = trail (trail w u) v := by
  calc trail w (v * u)
      _ = w * (v * u)⁻¹ := by rw [trail_def]
      _ = w * (u⁻¹ * v⁻¹) := by rw [run_undo_rev]
      _ = w * u⁻¹ * v⁻¹ := by rw [← run_assoc]
      _ = trail w u * v⁻¹ := by rw [← trail_def]
      _ = trail (trail w u) v := by rw [← trail_def]

theorem run_trail_assoc (u v w : W) : w * trail v u = trail (w * v) u := by
  calc w * trail v u
      _ = w * (v * u⁻¹) := by rw [trail_def]
      _ = w * v * u⁻¹ := by rw [← run_assoc]
      _ = trail (w * v) u := by rw [← trail_def]

theorem eq_of_trail_eq_still (h : trail v u = 1) : v = u := by
  calc v
      _ = trail v u * u := by rw [← trail_run]
      _ = 1 * u := by rw [h]
      _ = u := by rw [still_run]

end TheTrail

/-!
### The gap

* `gap_eq_swing_run`: a gap is a swing times an undo.
* `swing_eq_gap_run`: a swing is a gap times the element.
-/

section TheGap

variable {u v w : W}

@[simp] theorem gap_self (u : W) : gap u u = 1 := by
  calc gap u u
      _ = u * u * (u⁻¹ * u⁻¹) := by rw [gap_def]
      _ = u * (u * (u⁻¹ * u⁻¹)) := by rw [run_assoc]
      _ = u * u⁻¹ := by rw [run_undo_cancel_left]
      _ = 1 := by rw [run_undo]

theorem gap_still (u : W) : gap u 1 = 1 := by
  calc gap u 1
      _ = u * 1 * (u⁻¹ * 1⁻¹) := by rw [gap_def]
      _ = u * (u⁻¹ * 1⁻¹) := by rw [run_still]
      _ = u * (u⁻¹ * 1) := by rw [undo_still]
      _ = u * u⁻¹ := by rw [run_still]
      _ = 1 := by rw [run_undo]

-- `trail_trail` in `Affine 7` for u = (1, 3), v = (3, 5), w = (5, 3)
example : ((3, 5) * (1, 3) : Affine 7) = (3, 0) := by decide
example : (trail (5, 3) (3, 0) : Affine 7) = (4, 3) := by decide
example : (trail (5, 3) (1, 3) : Affine 7) = (5, 2) := by decide
example : (trail (5, 2) (3, 5) : Affine 7) = (4, 3) := by decide

theorem still_gap (u : W) : gap 1 u = 1 := by
  calc gap 1 u
      _ = 1 * u * (1⁻¹ * u⁻¹) := by rw [gap_def]
      _ = u * (1⁻¹ * u⁻¹) := by rw [still_run]
      _ = u * (1 * u⁻¹) := by rw [undo_still]
      _ = u * u⁻¹ := by rw [still_run]
      _ = 1 := by rw [run_undo]

theorem gap_run_run (u v : W) : gap u v * (v * u) = u * v := by
  calc gap u v * (v * u)
      _ = u * v * (u⁻¹ * v⁻¹ * (v * u)) := by rw [gap_def, run_assoc]
      _ = u * (v * (u⁻¹ * v⁻¹ * (v * u))) := by rw [run_assoc]
      _ = u * (v * (u⁻¹ * (v⁻¹ * (v * u)))) := by rw [run_assoc]
      _ = u * (v * (u⁻¹ * u)) := by rw [undo_run_cancel_left]
      _ = u * (v * 1) := by rw [undo_run]
      _ = u * v := by rw [run_still]

theorem undo_gap (u v : W) : (gap u v)⁻¹ = gap v u := by
  calc (gap u v)⁻¹
      _ = (u * (v * (u⁻¹ * v⁻¹)))⁻¹ := by rw [gap_def, run_assoc]
      _ = (u⁻¹ * v⁻¹)⁻¹ * v⁻¹ * u⁻¹ := by rw [run_undo_rev, run_undo_rev]
      _ = (v⁻¹)⁻¹ * (u⁻¹)⁻¹ * (v⁻¹ * u⁻¹) := by rw [run_assoc, run_undo_rev]
      _ = v * (u⁻¹)⁻¹ * (v⁻¹ * u⁻¹) := by rw [undo_undo]
      _ = v * u * (v⁻¹ * u⁻¹) := by rw [undo_undo]
      _ = gap v u := by rw [← gap_def]

theorem gap_of_commute (h : u * v = v * u) : gap u v = 1 := by
  calc gap u v
      _ = u * v * (u⁻¹ * v⁻¹) := by rw [gap_def]
      _ = v * u * (u⁻¹ * v⁻¹) := by rw [h]
      _ = v * (u * (u⁻¹ * v⁻¹)) := by rw [run_assoc]
      _ = v * v⁻¹ := by rw [run_undo_cancel_left]
      _ = 1 := by rw [run_undo]

theorem commute_of_gap (h : gap u v = 1) : u * v = v * u := by
  rw [← gap_run_run, h, still_run]

-- `undo_gap` in `Affine 7` for u = (6, 4), v = (5, 3)
example : (gap (6, 4) (5, 3) : Affine 7) = (1, 6) := by decide
example : ((1, 6)⁻¹ : Affine 7) = (1, 1) := by decide
example : (gap (5, 3) (6, 4) : Affine 7) = (1, 1) := by decide

@[simp] theorem gap_eq_swing_run (u v : W) : gap u v = swing u v * v⁻¹ := by
  calc gap u v
      _ = u * v * (u⁻¹ * v⁻¹) := by rw [gap_def]
      _ = u * v * u⁻¹ * v⁻¹ := by rw [← run_assoc]
      _ = swing u v * v⁻¹ := by rw [← swing_def]

/-- A gap is an element times a swing. -/
theorem gap_eq_run_swing (u v : W) : gap u v = u * swing v (u⁻¹) := by
  calc gap u v
      _ = u * v * (u⁻¹ * v⁻¹) := by rw [gap_def]
      _ = u * (v * (u⁻¹ * v⁻¹)) := by rw [run_assoc]
      _ = u * (v * u⁻¹ * v⁻¹) := by rw [← run_assoc]
      _ = u * swing v (u⁻¹) := by rw [← swing_def]

/-- A swing is a gap times the element. -/
@[simp] theorem swing_eq_gap_run (u v : W) : swing u v = gap u v * v := by
  calc swing u v
      _ = u * (v * u⁻¹) := by rw [swing_def, run_assoc]
      _ = u * (v * (u⁻¹ * (v⁻¹ * v))) := by rw [← run_still, ← undo_run]
      _ = u * (v * (u⁻¹ * v⁻¹ * v)) := by rw [← run_assoc]
      _ = u * v * (u⁻¹ * v⁻¹ * v) := by rw [← run_assoc]
      _ = u * v * (u⁻¹ * v⁻¹) * v := by rw [← run_assoc]
      _ = gap u v * v := by rw [← gap_def]

theorem swing_gap (u v w : W) : gap (swing u v) (swing u w) = swing u (gap v w) := by
  calc gap (swing u v) (swing u w)
      _ = swing u v * swing u w * ((swing u v)⁻¹ * swing u (w⁻¹)) := by rw [gap_def, ← swing_undo]
      _ = swing u v * swing u w * (swing u (v⁻¹) * swing u (w⁻¹)) := by rw [← swing_undo]
      _ = swing u (v * w) * (swing u (v⁻¹) * swing u (w⁻¹)) := by rw [swing_run]
      _ = swing u (v * w) * swing u (v⁻¹ * w⁻¹) := by rw [swing_run]
      _ = swing u (v * w * (v⁻¹ * w⁻¹)) := by rw [swing_run]
      _ = swing u (gap v w) := by rw [← gap_def]

-- `gap_eq_swing_run` in `Affine 7` for u = (5, 0), v = (5, 6)
example : (gap (5, 0) (5, 6) : Affine 7) = (1, 3) := by decide
example : ((5, 6)⁻¹ : Affine 7) = (3, 3) := by decide
example : (swing (5, 0) (5, 6) : Affine 7) = (5, 2) := by decide
example : ((5, 2) * (3, 3) : Affine 7) = (1, 3) := by decide

@[simp] theorem run_gap_left (u v w : W) : gap (u * v) w = swing u (gap v w) * gap u w := by
  calc gap (u * v) w
      _ = u * (v * (w * (v⁻¹ * u⁻¹ * w⁻¹))) := by rw [gap_def, run_assoc, run_assoc, run_undo_rev]
      _ = u * (v * (w * (v⁻¹ * (w⁻¹ * (u⁻¹ * (u * w * (u⁻¹ * w⁻¹))))))) := by rw [run_assoc, ← undo_run_cancel_left, ← undo_run_cancel_left, ← run_assoc]
      _ = u * (v * (w * (v⁻¹ * w⁻¹ * (u⁻¹ * gap u w)))) := by rw [← gap_def, ← run_assoc]
      _ = u * (v * w * (v⁻¹ * w⁻¹) * (u⁻¹ * gap u w)) := by rw [← run_assoc, ← run_assoc]
      _ = u * gap v w * (u⁻¹ * gap u w) := by rw [← gap_def, ← run_assoc]
      _ = swing u (gap v w) * gap u w := by rw [← run_assoc, ← swing_def]

-- `gap_run_run` in `Affine 7` for u = (5, 6), v = (6, 6)
example : ((6, 6) * (5, 6) : Affine 7) = (2, 0) := by decide
example : (gap (5, 6) (6, 6) : Affine 7) = (1, 1) := by decide
example : ((1, 1) * (2, 0) : Affine 7) = (2, 1) := by decide
example : ((5, 6) * (6, 6) : Affine 7) = (2, 1) := by decide

theorem run_gap_right (u v w : W) : gap u (v * w) = gap u v * swing v (gap u w) := by
  calc gap u (v * w)
      _ = u * (v * (w * (u⁻¹ * (w⁻¹ * v⁻¹)))) := by rw [gap_def, run_assoc, run_assoc, run_undo_rev]
      _ = u * (v * (u⁻¹ * (u * w * (u⁻¹ * w⁻¹) * v⁻¹))) := by rw [← run_assoc, ← undo_run_cancel_left, ← run_assoc, ← run_assoc]
      _ = u * (v * (u⁻¹ * (v⁻¹ * (v * (gap u w * v⁻¹))))) := by rw [← gap_def, ← undo_run_cancel_left]
      _ = u * v * (u⁻¹ * v⁻¹ * (v * (gap u w * v⁻¹))) := by rw [← run_assoc, ← run_assoc]
      _ = gap u v * (v * (gap u w * v⁻¹)) := by rw [← run_assoc, ← gap_def]
      _ = gap u v * swing v (gap u w) := by rw [← run_assoc, ← swing_def]

end TheGap

/-- Second digest: the undo of three factors; the lead of the still is the undo; dividing by a
product is dividing twice; dividing an element by itself; the trail may absorb what comes before
it; the gap of an element with itself is trivial; the gap with the still is trivial; the gap of
the still is trivial; the undo of a gap is the gap in the other order. -/
theorem second_digest (u v w : W) :
    ((w * v * u)⁻¹ = u⁻¹ * v⁻¹ * w⁻¹) ∧
    (lead u 1 = u⁻¹) ∧
    (lead (u * v) w = lead v (lead u w)) ∧
    (trail u u = 1) ∧
    (w * trail v u = trail (w * v) u) ∧
    (gap u u = 1) ∧
    (gap u 1 = 1) ∧
    (gap 1 u = 1) ∧
    ((gap u v)⁻¹ = gap v u) :=
  ⟨undo_rev_run_run u v w,
    lead_still u,
    lead_lead u v w,
    trail_self u,
    run_trail_assoc u v w,
    gap_self u,
    gap_still u,
    still_gap u,
    undo_gap u v⟩

/-!
### The sway

* `sway_undo_cancel`: the sway by the undo undoes the sway.
* `sway_injective`: equal sways come from equal elements.
-/

section TheSway

variable {u v w : W}

/-- The still is fixed by every sway. -/
theorem sway_still (u : W) : sway u 1 = 1 := by
  rw [sway_def, still_run, undo_run]

theorem still_sway (u : W) : sway 1 u = u := by
  calc sway 1 u
      _ = 1⁻¹ * (u * 1) := by rw [sway_def]
      _ = 1⁻¹ * u := by rw [run_still]
      _ = 1 * u := by rw [undo_still]
      _ = u := by rw [still_run]

@[simp] theorem sway_self (u : W) : sway u u = u := by
  calc sway u u
      _ = u⁻¹ * (u * u) := by rw [sway_def]
      _ = u⁻¹ * u * u := by rw [← run_assoc]
      _ = 1 * u := by rw [undo_run]
      _ = u := by rw [still_run]

/-- The sway respects products. -/
theorem sway_run (u v w : W) : sway u w * sway u v = sway u (w * v) := by
  calc sway u w * sway u v
      _ = u⁻¹ * w * u * sway u v := by rw [sway_def, ← run_assoc]
      _ = u⁻¹ * w * u * u⁻¹ * (v * u) := by rw [sway_def, ← run_assoc]
      _ = u⁻¹ * w * v * u := by rw [run_undo_cancel_right, ← run_assoc]
      _ = u⁻¹ * (w * v) * u := by rw [run_assoc]
      _ = u⁻¹ * (w * v * u) := by rw [run_assoc]
      _ = sway u (w * v) := by rw [← sway_def]

@[simp] theorem sway_sway (u v w : W) : sway u (sway v w) = sway (v * u) w := by
  calc sway u (sway v w)
      _ = u⁻¹ * (v⁻¹ * (w * v) * u) := by rw [sway_def, sway_def]
      _ = u⁻¹ * (v⁻¹ * (w * v * u)) := by rw [run_assoc]
      _ = u⁻¹ * (v⁻¹ * (w * (v * u))) := by rw [run_assoc]
      _ = u⁻¹ * v⁻¹ * (w * (v * u)) := by rw [← run_assoc]
      _ = (v * u)⁻¹ * (w * (v * u)) := by rw [← run_undo_rev]
      _ = sway (v * u) w := by rw [← sway_def]

@[simp] theorem sway_undo (u v : W) : sway u (v⁻¹) = (sway u v)⁻¹ := by
  calc sway u (v⁻¹)
      _ = u⁻¹ * (v⁻¹ * u) := by rw [sway_def]
      _ = u⁻¹ * v⁻¹ * u := by rw [← run_assoc]
      _ = (v * u)⁻¹ * u := by rw [← run_undo_rev]
      _ = (v * u)⁻¹ * (u⁻¹)⁻¹ := by rw [← undo_undo]
      _ = (u⁻¹ * (v * u))⁻¹ := by rw [← run_undo_rev]
      _ = (sway u v)⁻¹ := by rw [← sway_def]

-- `swing_gap` in `Affine 7` for u = (6, 6), v = (2, 6), w = (6, 5)
example : (swing (6, 6) (6, 5) : Affine 7) = (6, 0) := by decide
example : (swing (6, 6) (2, 6) : Affine 7) = (2, 2) := by decide
example : (gap (2, 2) (6, 0) : Affine 7) = (1, 4) := by decide
example : (gap (2, 6) (6, 5) : Affine 7) = (1, 3) := by decide
example : (swing (6, 6) (1, 3) : Affine 7) = (1, 4) := by decide

/-- The sway by the undo undoes the sway. -/
theorem sway_undo_cancel (u v : W) : sway u (sway (u⁻¹) v) = v := by
  calc sway u (sway (u⁻¹) v)
      _ = sway (u⁻¹ * u) v := by rw [sway_sway]
      _ = sway 1 v := by rw [undo_run]
      _ = v := by rw [still_sway]

theorem undo_sway_cancel (u v : W) : sway (u⁻¹) (sway u v) = v := by
  rw [sway_sway, run_undo, still_sway]

@[simp] theorem run_eq_run_sway (u v : W) : u * sway u v = v * u := by
  calc u * sway u v
      _ = u * (u⁻¹ * (v * u)) := by rw [sway_def]
      _ = u * u⁻¹ * (v * u) := by rw [← run_assoc]
      _ = 1 * (v * u) := by rw [run_undo]
      _ = v * u := by rw [still_run]

theorem sway_injective (h : sway u v = sway u w) : v = w := by
  calc v
      _ = sway (u⁻¹) (sway u v) := by rw [← undo_sway_cancel]
      _ = sway (u⁻¹) (sway u w) := by rw [h]
      _ = w := by rw [undo_sway_cancel]

theorem sway_of_commute (h : v * u = u * v) : sway u v = v := by
  calc sway u v
      _ = u⁻¹ * (v * u) := by rw [sway_def]
      _ = u⁻¹ * (u * v) := by rw [h]
      _ = u⁻¹ * u * v := by rw [← run_assoc]
      _ = 1 * v := by rw [undo_run]
      _ = v := by rw [still_run]

theorem commute_of_sway (h : sway u v = v) : v * u = u * v := by
  rw [← run_eq_run_sway, h]

theorem sway_trail (u v w : W) : trail (sway u w) (sway u v) = sway u (trail w v) := by
  calc trail (sway u w) (sway u v)
      _ = sway u w * (sway u v)⁻¹ := by rw [trail_def]
      _ = sway u w * sway u (v⁻¹) := by rw [← sway_undo]
      _ = sway u (w * v⁻¹) := by rw [sway_run]
      _ = sway u (trail w v) := by rw [← trail_def]

-- `run_eq_run_sway` in `Affine 7` for u = (3, 0), v = (6, 0)
example : (sway (3, 0) (6, 0) : Affine 7) = (6, 0) := by decide
example : ((3, 0) * (6, 0) : Affine 7) = (4, 0) := by decide
example : ((6, 0) * (3, 0) : Affine 7) = (4, 0) := by decide

end TheSway

/-!
### The rift

* `rift_self`: the rift of an element with itself is trivial.
* `undo_rift`: the undo of a rift is the rift in the other order.
-/

section TheRift

variable {u v w : W}

/-- The rift of an element with itself is trivial. -/
@[simp] theorem rift_self (u : W) : rift u u = 1 := by
  calc rift u u
      _ = u⁻¹ * u⁻¹ * (u * u) := by rw [rift_def]
      _ = u⁻¹ * u⁻¹ * u * u := by rw [← run_assoc]
      _ = u⁻¹ * u := by rw [undo_run_cancel_right]
      _ = 1 := by rw [undo_run]

/-- The rift with the still is trivial. -/
theorem rift_still (u : W) : rift u 1 = 1 := by
  calc rift u 1
      _ = 1⁻¹ * u⁻¹ * (1 * u) := by rw [rift_def]
      _ = 1⁻¹ * u⁻¹ * u := by rw [still_run]
      _ = 1 * u⁻¹ * u := by rw [undo_still]
      _ = u⁻¹ * u := by rw [still_run]
      _ = 1 := by rw [undo_run]

/-- The rift of the still is trivial. -/
theorem still_rift (u : W) : rift 1 u = 1 := by
  calc rift 1 u
      _ = u⁻¹ * 1⁻¹ * (u * 1) := by rw [rift_def]
      _ = u⁻¹ * 1⁻¹ * u := by rw [run_still]
      _ = u⁻¹ * 1 * u := by rw [undo_still]
      _ = u⁻¹ * u := by rw [run_still]
      _ = 1 := by rw [undo_run]

theorem run_run_rift (u v : W) : u * v * rift u v = v * u := by
  calc u * v * rift u v
      _ = u * v * (v⁻¹ * u⁻¹) * (v * u) := by rw [rift_def, ← run_assoc]
      _ = u * v * (v⁻¹ * u⁻¹) * v * u := by rw [← run_assoc]
      _ = u * v * v⁻¹ * u⁻¹ * v * u := by rw [← run_assoc]
      _ = u * u⁻¹ * v * u := by rw [run_undo_cancel_right]
      _ = 1 * v * u := by rw [run_undo]
      _ = v * u := by rw [still_run]

@[simp] theorem undo_rift (u v : W) : (rift u v)⁻¹ = rift v u := by
  calc (rift u v)⁻¹
      _ = (v⁻¹ * (u⁻¹ * (v * u)))⁻¹ := by rw [rift_def, run_assoc]
      _ = (u⁻¹ * (v * u))⁻¹ * v := by rw [run_undo_rev, undo_undo]
      _ = (v * u)⁻¹ * u * v := by rw [run_undo_rev, undo_undo]
      _ = (v * u)⁻¹ * (u * v) := by rw [run_assoc]
      _ = u⁻¹ * v⁻¹ * (u * v) := by rw [run_undo_rev]
      _ = rift v u := by rw [← rift_def]

/-- Commuting elements have a trivial rift. -/
theorem rift_of_commute (h : v * u = u * v) : rift u v = 1 := by
  calc rift u v
      _ = v⁻¹ * u⁻¹ * (v * u) := by rw [rift_def]
      _ = v⁻¹ * u⁻¹ * (u * v) := by rw [h]
      _ = v⁻¹ * u⁻¹ * u * v := by rw [← run_assoc]
      _ = v⁻¹ * v := by rw [undo_run_cancel_right]
      _ = 1 := by rw [undo_run]

-- `run_eq_run_sway` in `Affine 7` for u = (6, 1), v = (5, 5)
example : (sway (6, 1) (5, 5) : Affine 7) = (5, 5) := by decide
example : ((6, 1) * (5, 5) : Affine 7) = (2, 3) := by decide
example : ((5, 5) * (6, 1) : Affine 7) = (2, 3) := by decide

theorem commute_of_rift (h : rift u v = 1) : v * u = u * v := by
  calc v * u
      _ = u * v * rift u v := by rw [← run_run_rift]
      _ = u * v * 1 := by rw [h]
      _ = u * v := by rw [run_still]

-- `rift_self` in `Affine 7` for u = (6, 2)
example : (rift (6, 2) (6, 2) : Affine 7) = (1, 0) := by decide

/-- A rift is a sway times an undo. -/
theorem rift_eq_run_sway (u v : W) : rift u v = v⁻¹ * sway u v := by
  calc rift u v
      _ = v⁻¹ * u⁻¹ * (v * u) := by rw [rift_def]
      _ = v⁻¹ * (u⁻¹ * (v * u)) := by rw [run_assoc]
      _ = v⁻¹ * sway u v := by rw [← sway_def]

@[simp] theorem rift_eq_sway_run (u v : W) : rift u v = sway v (u⁻¹) * u := by
  calc rift u v
      _ = v⁻¹ * u⁻¹ * (v * u) := by rw [rift_def]
      _ = v⁻¹ * (u⁻¹ * (v * u)) := by rw [run_assoc]
      _ = v⁻¹ * (u⁻¹ * v * u) := by rw [← run_assoc]
      _ = v⁻¹ * (u⁻¹ * v) * u := by rw [← run_assoc]
      _ = sway v (u⁻¹) * u := by rw [← sway_def]

theorem sway_eq_run_rift (u v : W) : sway u v = v * rift u v := by
  calc sway u v
      _ = u⁻¹ * v * u := by rw [sway_def, ← run_assoc]
      _ = v * v⁻¹ * u⁻¹ * v * u := by rw [← still_run, ← run_undo]
      _ = v * (v⁻¹ * u⁻¹) * v * u := by rw [run_assoc]
      _ = v * (v⁻¹ * u⁻¹) * (v * u) := by rw [run_assoc]
      _ = v * (v⁻¹ * u⁻¹ * (v * u)) := by rw [run_assoc]
      _ = v * rift u v := by rw [← rift_def]

theorem sway_rift (u v w : W) : rift (sway u v) (sway u w) = sway u (rift v w) := by
  calc rift (sway u v) (sway u w)
      _ = (sway u w)⁻¹ * sway u (v⁻¹) * (sway u w * sway u v) := by rw [rift_def, ← sway_undo]
      _ = sway u (w⁻¹) * sway u (v⁻¹) * (sway u w * sway u v) := by rw [← sway_undo]
      _ = sway u (w⁻¹ * v⁻¹) * (sway u w * sway u v) := by rw [sway_run]
      _ = sway u (w⁻¹ * v⁻¹) * sway u (w * v) := by rw [sway_run]
      _ = sway u (w⁻¹ * v⁻¹ * (w * v)) := by rw [sway_run]
      _ = sway u (rift v w) := by rw [← rift_def]

/-- The rift of a product in its first part. -/
theorem run_rift_right (u v w : W) : rift (v * u) w = rift u w * sway u (rift v w) := by
  calc rift (v * u) w
      _ = w⁻¹ * (u⁻¹ * (v⁻¹ * (w * (v * u)))) := by rw [rift_def, run_assoc, run_undo_rev, run_assoc]
      _ = w⁻¹ * u⁻¹ * v⁻¹ * w * v * u := by rw [← run_assoc, ← run_assoc, ← run_assoc, ← run_assoc]
      _ = w⁻¹ * u⁻¹ * w * (w⁻¹ * v⁻¹ * (w * v)) * u := by rw [← run_undo_cancel_right, run_assoc, run_assoc, run_assoc]
      _ = w⁻¹ * u⁻¹ * w * u * u⁻¹ * rift v w * u := by rw [← rift_def, ← run_undo_cancel_right]
      _ = rift u w * u⁻¹ * rift v w * u := by rw [run_assoc, ← rift_def]
      _ = rift u w * sway u (rift v w) := by rw [run_assoc, run_assoc, ← sway_def]

/-- The rift of a product in its second part. -/
theorem run_rift_left (u v w : W) : rift u (w * v) = sway v (rift u w) * rift u v := by
  calc rift u (w * v)
      _ = v⁻¹ * w⁻¹ * (u⁻¹ * (w * (v * u))) := by rw [rift_def, run_assoc, run_assoc, run_undo_rev]
      _ = v⁻¹ * w⁻¹ * u⁻¹ * w * u * u⁻¹ * v * u := by rw [← run_assoc, ← run_assoc, ← run_assoc, ← run_undo_cancel_right]
      _ = v⁻¹ * w⁻¹ * u⁻¹ * w * u * v * (v⁻¹ * u⁻¹ * (v * u)) := by rw [← run_undo_cancel_right, run_assoc, run_assoc, run_assoc]
      _ = v⁻¹ * (w⁻¹ * u⁻¹) * w * u * v * rift u v := by rw [← rift_def, run_assoc]
      _ = v⁻¹ * (w⁻¹ * u⁻¹ * (w * u)) * v * rift u v := by rw [run_assoc, run_assoc]
      _ = sway v (rift u w) * rift u v := by rw [← rift_def, run_assoc, ← sway_def]

end TheRift

/-!
### The carry

* `carry_undo`: a carry respects undos.
* `carry_gap`: a carry respects the gap.
-/

section TheCarry

variable {u v : W}

theorem carry_still : carry 1 = 1 := by
  have h : carry 1 * carry 1 = carry 1 := by
    rw [← carry_run, still_run]
  exact eq_still_of_run_eq h

/-- A carry respects undos. -/
theorem carry_undo (u : W) : (carry u)⁻¹ = carry (u⁻¹) := by
  have h : carry u * carry (u⁻¹) = 1 := by
    calc carry u * carry (u⁻¹)
        _ = carry (u * u⁻¹) := by rw [← carry_run]
        _ = carry 1 := by rw [run_undo]
        _ = 1 := by rw [carry_still]
  exact undo_eq_of_run h

/-- A carry respects the swing. -/
theorem carry_swing (u v : W) : carry (swing u v) = swing (carry u) (carry v) := by
  calc carry (swing u v)
      _ = carry (u * v * u⁻¹) := by rw [swing_def]
      _ = carry (u * v) * carry (u⁻¹) := by rw [carry_run]
      _ = carry (u * v) * (carry u)⁻¹ := by rw [← carry_undo]
      _ = carry u * carry v * (carry u)⁻¹ := by rw [carry_run]
      _ = swing (carry u) (carry v) := by rw [← swing_def]

theorem carry_gap (u v : W) : carry (gap u v) = gap (carry u) (carry v) := by
  calc carry (gap u v)
      _ = carry (u * v) * carry (u⁻¹ * v⁻¹) := by rw [gap_def, carry_run]
      _ = carry (u * v) * (carry (u⁻¹) * carry (v⁻¹)) := by rw [carry_run]
      _ = carry (u * v) * (carry (u⁻¹) * (carry v)⁻¹) := by rw [← carry_undo]
      _ = carry (u * v) * ((carry u)⁻¹ * (carry v)⁻¹) := by rw [← carry_undo]
      _ = carry u * carry v * ((carry u)⁻¹ * (carry v)⁻¹) := by rw [carry_run]
      _ = gap (carry u) (carry v) := by rw [← gap_def]

/-- A carry respects the lead. -/
theorem carry_lead (u v : W) : carry (lead u v) = lead (carry u) (carry v) := by
  calc carry (lead u v)
      _ = carry (u⁻¹ * v) := by rw [lead_def]
      _ = carry (u⁻¹) * carry v := by rw [carry_run]
      _ = (carry u)⁻¹ * carry v := by rw [← carry_undo]
      _ = lead (carry u) (carry v) := by rw [← lead_def]

-- `commute_of_rift` in `Affine 7` for u = (6, 2), v = (4, 4)
example : (rift (6, 2) (4, 4) : Affine 7) = (1, 0) := by decide
example : ((4, 4) * (6, 2) : Affine 7) = (3, 5) := by decide
example : ((6, 2) * (4, 4) : Affine 7) = (3, 5) := by decide

theorem carry_gap_eq_still (v : W) (h : carry u = 1) : carry (gap u v) = 1 := by
  calc carry (gap u v)
      _ = gap (carry u) (carry v) := by rw [carry_gap]
      _ = gap 1 (carry v) := by rw [h]
      _ = 1 := by rw [still_gap]

-- `run_rift_left` in `Affine 7` for u = (5, 2), v = (4, 4), w = (5, 3)
example : ((5, 3) * (4, 4) : Affine 7) = (6, 2) := by decide
example : (rift (5, 2) (6, 2) : Affine 7) = (1, 1) := by decide
example : (rift (5, 2) (4, 4) : Affine 7) = (1, 3) := by decide
example : (rift (5, 2) (5, 3) : Affine 7) = (1, 6) := by decide
example : (sway (4, 4) (1, 6) : Affine 7) = (1, 5) := by decide
example : ((1, 5) * (1, 3) : Affine 7) = (1, 1) := by decide

theorem carry_swing_eq_still (u : W) (h : carry v = 1) : carry (swing u v) = 1 := by
  rw [carry_swing, h, swing_still]

theorem carry_eq_of_lead (h : carry (lead u v) = 1) : carry v = carry u := by
  calc carry v
      _ = carry u * lead (carry u) (carry v) := by rw [← run_lead]
      _ = carry u * carry (lead u v) := by rw [← carry_lead]
      _ = carry u * 1 := by rw [h]
      _ = carry u := by rw [run_still]

end TheCarry

/-- Third digest: equal products with the same left part have the same rest; an element that
solves the equation is the undo; elements with trivial lead are equal; a gap is an element times
a swing; the sway by the undo undoes the sway; equal sways come from equal elements; the sway
respects trails; the rift of a product in its first part; a carry respects the lead. -/
theorem third_digest (u v w : W) :
    (u * v = u * w → v = w) ∧
    (v * u = 1 → u⁻¹ = v) ∧
    (lead u v = 1 → v = u) ∧
    (gap u v = u * swing v (u⁻¹)) ∧
    (sway u (sway (u⁻¹) v) = v) ∧
    (sway u v = sway u w → v = w) ∧
    (trail (sway u w) (sway u v) = sway u (trail w v)) ∧
    (rift (v * u) w = rift u w * sway u (rift v w)) ∧
    (carry (lead u v) = lead (carry u) (carry v)) :=
  ⟨run_left_cancel,
    undo_eq_of_run_right,
    eq_of_lead_eq_still,
    gap_eq_run_swing u v,
    sway_undo_cancel u v,
    sway_injective,
    sway_trail u v w,
    run_rift_right u v w,
    carry_lead u v⟩

/-!
### The carry

* `carry_sway`: a carry respects the sway.
* `carry_rift`: a carry respects the rift.
-/

section TheCarry

variable {u v : W}

/-- A carry respects the sway. -/
theorem carry_sway (u v : W) : carry (sway u v) = sway (carry u) (carry v) := by
  calc carry (sway u v)
      _ = carry (u⁻¹ * (v * u)) := by rw [sway_def]
      _ = carry (u⁻¹) * carry (v * u) := by rw [carry_run]
      _ = (carry u)⁻¹ * carry (v * u) := by rw [← carry_undo]
      _ = (carry u)⁻¹ * (carry v * carry u) := by rw [carry_run]
      _ = sway (carry u) (carry v) := by rw [← sway_def]

theorem carry_rift (u v : W) : carry (rift u v) = rift (carry u) (carry v) := by
  calc carry (rift u v)
      _ = carry (v⁻¹ * u⁻¹) * carry (v * u) := by rw [rift_def, carry_run]
      _ = carry (v⁻¹) * carry (u⁻¹) * carry (v * u) := by rw [carry_run]
      _ = carry (v⁻¹) * (carry u)⁻¹ * carry (v * u) := by rw [← carry_undo]
      _ = (carry v)⁻¹ * (carry u)⁻¹ * carry (v * u) := by rw [← carry_undo]
      _ = (carry v)⁻¹ * (carry u)⁻¹ * (carry v * carry u) := by rw [carry_run]
      _ = rift (carry u) (carry v) := by rw [← rift_def]

@[simp] theorem carry_trail (u v : W) : carry (trail v u) = trail (carry v) (carry u) := by
  calc carry (trail v u)
      _ = carry (v * u⁻¹) := by rw [trail_def]
      _ = carry v * carry (u⁻¹) := by rw [carry_run]
      _ = carry v * (carry u)⁻¹ := by rw [← carry_undo]
      _ = trail (carry v) (carry u) := by rw [← trail_def]

-- `carry_trail` in `Affine 7` for u = (2, 2), v = (3, 2)
example : (trail (3, 2) (2, 2) : Affine 7) = (5, 6) := by decide
example : (carry (5, 6) : Affine 7) = (5, 0) := by decide
example : (carry (2, 2) : Affine 7) = (2, 0) := by decide
example : (carry (3, 2) : Affine 7) = (3, 0) := by decide
example : (trail (3, 0) (2, 0) : Affine 7) = (5, 0) := by decide

theorem carry_rift_eq_still (v : W) (h : carry u = 1) : carry (rift u v) = 1 := by
  rw [carry_rift, h, still_rift]

theorem carry_sway_eq_still (u : W) (h : carry v = 1) : carry (sway u v) = 1 := by
  calc carry (sway u v)
      _ = sway (carry u) (carry v) := by rw [carry_sway]
      _ = sway (carry u) 1 := by rw [h]
      _ = 1 := by rw [sway_still]

-- `carry_rift_eq_still` in `Affine 7` for u = (1, 4), v = (5, 3)
example : (carry (1, 4) : Affine 7) = (1, 0) := by decide
example : (rift (1, 4) (5, 3) : Affine 7) = (1, 6) := by decide
example : (carry (1, 6) : Affine 7) = (1, 0) := by decide

theorem carry_eq_of_trail (h : carry (trail v u) = 1) : carry v = carry u := by
  calc carry v
      _ = trail (carry v) (carry u) * carry u := by rw [← trail_run]
      _ = carry (trail v u) * carry u := by rw [← carry_trail]
      _ = 1 * carry u := by rw [h]
      _ = carry u := by rw [still_run]

end TheCarry

/-!
### Products of wickets

All operations and the order are taken in each component.
-/

variable {V : Type*} [Wicket V] {p q r s : W × V}

theorem Prod.undo_run_cancel_left (p q : W × V) : p⁻¹ * (p * q) = q :=
  Prod.ext (undo_run_cancel_left p.1 q.1) (undo_run_cancel_left p.2 q.2)

theorem Prod.run_left_cancel (h : p * q = p * r) : q = r :=
  Prod.ext (run_left_cancel (congrArg Prod.fst h)) (run_left_cancel (congrArg Prod.snd h))

theorem Prod.run_left_congr (p : W × V) (h : q = r) : p * q = p * r :=
  Prod.ext (run_left_congr p.1 (congrArg Prod.fst h)) (run_left_congr p.2 (congrArg Prod.snd h))

theorem Prod.undo_eq_of_run (h : p * q = 1) : p⁻¹ = q :=
  Prod.ext (undo_eq_of_run (congrArg Prod.fst h)) (undo_eq_of_run (congrArg Prod.snd h))

theorem Prod.eq_undo_run_of (h : p * q = r) : q = p⁻¹ * r :=
  Prod.ext (eq_undo_run_of (congrArg Prod.fst h)) (eq_undo_run_of (congrArg Prod.snd h))

theorem Prod.undo_inj (h : p⁻¹ = q⁻¹) : p = q :=
  Prod.ext (undo_inj (congrArg Prod.fst h)) (undo_inj (congrArg Prod.snd h))

theorem Prod.undo_run_cancel_right (p q : W × V) : q * p⁻¹ * p = q :=
  Prod.ext (undo_run_cancel_right p.1 q.1) (undo_run_cancel_right p.2 q.2)

theorem Prod.run_right_cancel (h : q * p = r * p) : q = r :=
  Prod.ext (run_right_cancel (congrArg Prod.fst h)) (run_right_cancel (congrArg Prod.snd h))

theorem Prod.undo_eq_of_run_right (h : q * p = 1) : p⁻¹ = q :=
  Prod.ext (undo_eq_of_run_right (congrArg Prod.fst h)) (undo_eq_of_run_right (congrArg Prod.snd h))

theorem Prod.eq_still_of_run_eq_right (h : q * p = p) : q = 1 :=
  Prod.ext (eq_still_of_run_eq_right (congrArg Prod.fst h)) (eq_still_of_run_eq_right (congrArg Prod.snd h))

theorem Prod.lead_still (p : W × V) : lead p 1 = p⁻¹ :=
  Prod.ext (lead_still p.1) (lead_still p.2)

theorem Prod.lead_run_lead (p q r : W × V) : lead p q * lead q r = lead p r :=
  Prod.ext (lead_run_lead p.1 q.1 r.1) (lead_run_lead p.2 q.2 r.2)

theorem Prod.lead_lead (p q r : W × V) : lead (p * q) r = lead q (lead p r) :=
  Prod.ext (lead_lead p.1 q.1 r.1) (lead_lead p.2 q.2 r.2)

theorem Prod.lead_run_assoc (p q r : W × V) : lead p q * r = lead p (q * r) :=
  Prod.ext (lead_run_assoc p.1 q.1 r.1) (lead_run_assoc p.2 q.2 r.2)

theorem Prod.swing_still (p : W × V) : swing p 1 = 1 :=
  Prod.ext (swing_still p.1) (swing_still p.2)

theorem Prod.still_swing (p : W × V) : swing 1 p = p :=
  Prod.ext (still_swing p.1) (still_swing p.2)

theorem Prod.swing_run (p q r : W × V) : swing p q * swing p r = swing p (q * r) :=
  Prod.ext (swing_run p.1 q.1 r.1) (swing_run p.2 q.2 r.2)

theorem Prod.undo_swing_cancel (p q : W × V) : swing (p⁻¹) (swing p q) = q :=
  Prod.ext (undo_swing_cancel p.1 q.1) (undo_swing_cancel p.2 q.2)

theorem Prod.run_eq_swing_run (p q : W × V) : swing p q * p = p * q :=
  Prod.ext (run_eq_swing_run p.1 q.1) (run_eq_swing_run p.2 q.2)

theorem Prod.commute_of_swing (h : swing p q = q) : p * q = q * p :=
  Prod.ext (commute_of_swing (congrArg Prod.fst h)) (commute_of_swing (congrArg Prod.snd h))

theorem Prod.swing_lead (p q r : W × V) : lead (swing p q) (swing p r) = swing p (lead q r) :=
  Prod.ext (swing_lead p.1 q.1 r.1) (swing_lead p.2 q.2 r.2)

theorem Prod.trail_run (p q : W × V) : trail q p * p = q :=
  Prod.ext (trail_run p.1 q.1) (trail_run p.2 q.2)

theorem Prod.run_trail (p q : W × V) : trail (q * p) p = q :=
  Prod.ext (run_trail p.1 q.1) (run_trail p.2 q.2)

theorem Prod.still_trail (p : W × V) : trail 1 p = p⁻¹ :=
  Prod.ext (still_trail p.1) (still_trail p.2)

theorem Prod.undo_trail (p q : W × V) : (trail q p)⁻¹ = trail p q :=
  Prod.ext (undo_trail p.1 q.1) (undo_trail p.2 q.2)

theorem Prod.run_trail_run (p q r : W × V) : trail (r * p) (q * p) = trail r q :=
  Prod.ext (run_trail_run p.1 q.1 r.1) (run_trail_run p.2 q.2 r.2)

theorem Prod.eq_of_trail_eq_still (h : trail q p = 1) : q = p :=
  Prod.ext (eq_of_trail_eq_still (congrArg Prod.fst h)) (eq_of_trail_eq_still (congrArg Prod.snd h))

theorem Prod.gap_still (p : W × V) : gap p 1 = 1 :=
  Prod.ext (gap_still p.1) (gap_still p.2)

theorem Prod.still_gap (p : W × V) : gap 1 p = 1 :=
  Prod.ext (still_gap p.1) (still_gap p.2)

theorem Prod.gap_run_run (p q : W × V) : gap p q * (q * p) = p * q :=
  Prod.ext (gap_run_run p.1 q.1) (gap_run_run p.2 q.2)

theorem Prod.commute_of_gap (h : gap p q = 1) : p * q = q * p :=
  Prod.ext (commute_of_gap (congrArg Prod.fst h)) (commute_of_gap (congrArg Prod.snd h))

theorem Prod.gap_eq_swing_run (p q : W × V) : gap p q = swing p q * q⁻¹ :=
  Prod.ext (gap_eq_swing_run p.1 q.1) (gap_eq_swing_run p.2 q.2)

theorem Prod.gap_eq_run_swing (p q : W × V) : gap p q = p * swing q (p⁻¹) :=
  Prod.ext (gap_eq_run_swing p.1 q.1) (gap_eq_run_swing p.2 q.2)

theorem Prod.run_gap_left (p q r : W × V) : gap (p * q) r = swing p (gap q r) * gap p r :=
  Prod.ext (run_gap_left p.1 q.1 r.1) (run_gap_left p.2 q.2 r.2)

theorem Prod.run_gap_right (p q r : W × V) : gap p (q * r) = gap p q * swing q (gap p r) :=
  Prod.ext (run_gap_right p.1 q.1 r.1) (run_gap_right p.2 q.2 r.2)

theorem Prod.sway_still (p : W × V) : sway p 1 = 1 :=
  Prod.ext (sway_still p.1) (sway_still p.2)

theorem Prod.still_sway (p : W × V) : sway 1 p = p :=
  Prod.ext (still_sway p.1) (still_sway p.2)

theorem Prod.sway_run (p q r : W × V) : sway p r * sway p q = sway p (r * q) :=
  Prod.ext (sway_run p.1 q.1 r.1) (sway_run p.2 q.2 r.2)

theorem Prod.sway_undo_cancel (p q : W × V) : sway p (sway (p⁻¹) q) = q :=
  Prod.ext (sway_undo_cancel p.1 q.1) (sway_undo_cancel p.2 q.2)

theorem Prod.undo_sway_cancel (p q : W × V) : sway (p⁻¹) (sway p q) = q :=
  Prod.ext (undo_sway_cancel p.1 q.1) (undo_sway_cancel p.2 q.2)

theorem Prod.sway_injective (h : sway p q = sway p r) : q = r :=
  Prod.ext (sway_injective (congrArg Prod.fst h)) (sway_injective (congrArg Prod.snd h))

theorem Prod.sway_of_commute (h : q * p = p * q) : sway p q = q :=
  Prod.ext (sway_of_commute (congrArg Prod.fst h)) (sway_of_commute (congrArg Prod.snd h))

theorem Prod.sway_trail (p q r : W × V) : trail (sway p r) (sway p q) = sway p (trail r q) :=
  Prod.ext (sway_trail p.1 q.1 r.1) (sway_trail p.2 q.2 r.2)

theorem Prod.rift_self (p : W × V) : rift p p = 1 :=
  Prod.ext (rift_self p.1) (rift_self p.2)

theorem Prod.rift_still (p : W × V) : rift p 1 = 1 :=
  Prod.ext (rift_still p.1) (rift_still p.2)

theorem Prod.run_run_rift (p q : W × V) : p * q * rift p q = q * p :=
  Prod.ext (run_run_rift p.1 q.1) (run_run_rift p.2 q.2)

theorem Prod.undo_rift (p q : W × V) : (rift p q)⁻¹ = rift q p :=
  Prod.ext (undo_rift p.1 q.1) (undo_rift p.2 q.2)

theorem Prod.rift_eq_run_sway (p q : W × V) : rift p q = q⁻¹ * sway p q :=
  Prod.ext (rift_eq_run_sway p.1 q.1) (rift_eq_run_sway p.2 q.2)

theorem Prod.run_rift_right (p q r : W × V) : rift (q * p) r = rift p r * sway p (rift q r) :=
  Prod.ext (run_rift_right p.1 q.1 r.1) (run_rift_right p.2 q.2 r.2)

theorem Prod.carry_swing (p q : W × V) : carry (swing p q) = swing (carry p) (carry q) :=
  Prod.ext (carry_swing p.1 q.1) (carry_swing p.2 q.2)

theorem Prod.carry_lead (p q : W × V) : carry (lead p q) = lead (carry p) (carry q) :=
  Prod.ext (carry_lead p.1 q.1) (carry_lead p.2 q.2)

theorem Prod.carry_eq_of_lead (h : carry (lead p q) = 1) : carry q = carry p :=
  Prod.ext (carry_eq_of_lead (congrArg Prod.fst h)) (carry_eq_of_lead (congrArg Prod.snd h))

theorem Prod.carry_rift (p q : W × V) : carry (rift p q) = rift (carry p) (carry q) :=
  Prod.ext (carry_rift p.1 q.1) (carry_rift p.2 q.2)

theorem Prod.carry_sway_eq_still (p : W × V) (h : carry q = 1) : carry (sway p q) = 1 :=
  Prod.ext (carry_sway_eq_still p.1 (congrArg Prod.fst h)) (carry_sway_eq_still p.2 (congrArg Prod.snd h))

/-!
### Functions into wickets

All operations and the order are taken at each point.
-/

variable {ι : Type*} {f g k l : ι → W}

theorem Pi.undo_run_cancel_left (f g : ι → W) : f⁻¹ * (f * g) = g :=
  funext fun i => undo_run_cancel_left (f i) (g i)

theorem Pi.run_undo_cancel_left (f g : ι → W) : f * (f⁻¹ * g) = g :=
  funext fun i => run_undo_cancel_left (f i) (g i)

theorem Pi.eq_still_of_run_eq (h : f * g = f) : g = 1 :=
  funext fun i => eq_still_of_run_eq (congrFun h i)

theorem Pi.undo_undo (f : ι → W) : (f⁻¹)⁻¹ = f :=
  funext fun i => undo_undo (f i)

theorem Pi.run_undo_rev (f g : ι → W) : (f * g)⁻¹ = g⁻¹ * f⁻¹ :=
  funext fun i => run_undo_rev (f i) (g i)

theorem Pi.undo_inj (h : f⁻¹ = g⁻¹) : f = g :=
  funext fun i => undo_inj (congrFun h i)

theorem Pi.run_undo_cancel_right (f g : ι → W) : g * f * f⁻¹ = g :=
  funext fun i => run_undo_cancel_right (f i) (g i)

theorem Pi.undo_run_cancel_right (f g : ι → W) : g * f⁻¹ * f = g :=
  funext fun i => undo_run_cancel_right (f i) (g i)

theorem Pi.run_right_congr (f : ι → W) (h : g = k) : g * f = k * f :=
  funext fun i => run_right_congr (f i) (congrFun h i)

theorem Pi.eq_run_undo_of (h : g * f = k) : g = k * f⁻¹ :=
  funext fun i => eq_run_undo_of (congrFun h i)

theorem Pi.eq_still_of_run_eq_right (h : g * f = f) : g = 1 :=
  funext fun i => eq_still_of_run_eq_right (congrFun h i)

theorem Pi.undo_rev_run_run (f g k : ι → W) : (k * g * f)⁻¹ = f⁻¹ * g⁻¹ * k⁻¹ :=
  funext fun i => undo_rev_run_run (f i) (g i) (k i)

theorem Pi.run_lead (f g : ι → W) : f * lead f g = g :=
  funext fun i => run_lead (f i) (g i)

theorem Pi.lead_run (f g : ι → W) : lead f (f * g) = g :=
  funext fun i => lead_run (f i) (g i)

theorem Pi.lead_self (f : ι → W) : lead f f = 1 :=
  funext fun i => lead_self (f i)

theorem Pi.still_lead (f : ι → W) : lead 1 f = f :=
  funext fun i => still_lead (f i)

theorem Pi.lead_run_lead (f g k : ι → W) : lead f g * lead g k = lead f k :=
  funext fun i => lead_run_lead (f i) (g i) (k i)

theorem Pi.eq_of_lead_eq_still (h : lead f g = 1) : g = f :=
  funext fun i => eq_of_lead_eq_still (congrFun h i)

theorem Pi.swing_undo (f g : ι → W) : swing f (g⁻¹) = (swing f g)⁻¹ :=
  funext fun i => swing_undo (f i) (g i)

theorem Pi.swing_undo_cancel (f g : ι → W) : swing f (swing (f⁻¹) g) = g :=
  funext fun i => swing_undo_cancel (f i) (g i)

theorem Pi.swing_injective (h : swing f g = swing f k) : g = k :=
  funext fun i => swing_injective (congrFun h i)

theorem Pi.run_trail (f g : ι → W) : trail (g * f) f = g :=
  funext fun i => run_trail (f i) (g i)

theorem Pi.trail_still (f : ι → W) : trail f 1 = f :=
  funext fun i => trail_still (f i)

theorem Pi.still_trail (f : ι → W) : trail 1 f = f⁻¹ :=
  funext fun i => still_trail (f i)

theorem Pi.undo_trail (f g : ι → W) : (trail g f)⁻¹ = trail f g :=
  funext fun i => undo_trail (f i) (g i)

theorem Pi.trail_run_trail (f g k : ι → W) : trail k g * trail g f = trail k f :=
  funext fun i => trail_run_trail (f i) (g i) (k i)

theorem Pi.gap_still (f : ι → W) : gap f 1 = 1 :=
  funext fun i => gap_still (f i)

theorem Pi.still_gap (f : ι → W) : gap 1 f = 1 :=
  funext fun i => still_gap (f i)

theorem Pi.gap_run_run (f g : ι → W) : gap f g * (g * f) = f * g :=
  funext fun i => gap_run_run (f i) (g i)

theorem Pi.undo_gap (f g : ι → W) : (gap f g)⁻¹ = gap g f :=
  funext fun i => undo_gap (f i) (g i)

theorem Pi.gap_of_commute (h : f * g = g * f) : gap f g = 1 :=
  funext fun i => gap_of_commute (congrFun h i)

theorem Pi.gap_eq_run_swing (f g : ι → W) : gap f g = f * swing g (f⁻¹) :=
  funext fun i => gap_eq_run_swing (f i) (g i)

theorem Pi.swing_eq_gap_run (f g : ι → W) : swing f g = gap f g * g :=
  funext fun i => swing_eq_gap_run (f i) (g i)

theorem Pi.swing_gap (f g k : ι → W) : gap (swing f g) (swing f k) = swing f (gap g k) :=
  funext fun i => swing_gap (f i) (g i) (k i)

theorem Pi.run_gap_left (f g k : ι → W) : gap (f * g) k = swing f (gap g k) * gap f k :=
  funext fun i => run_gap_left (f i) (g i) (k i)

theorem Pi.run_gap_right (f g k : ι → W) : gap f (g * k) = gap f g * swing g (gap f k) :=
  funext fun i => run_gap_right (f i) (g i) (k i)

theorem Pi.sway_still (f : ι → W) : sway f 1 = 1 :=
  funext fun i => sway_still (f i)

theorem Pi.still_sway (f : ι → W) : sway 1 f = f :=
  funext fun i => still_sway (f i)

theorem Pi.sway_self (f : ι → W) : sway f f = f :=
  funext fun i => sway_self (f i)

theorem Pi.sway_run (f g k : ι → W) : sway f k * sway f g = sway f (k * g) :=
  funext fun i => sway_run (f i) (g i) (k i)

theorem Pi.sway_undo (f g : ι → W) : sway f (g⁻¹) = (sway f g)⁻¹ :=
  funext fun i => sway_undo (f i) (g i)

theorem Pi.sway_injective (h : sway f g = sway f k) : g = k :=
  funext fun i => sway_injective (congrFun h i)

theorem Pi.rift_self (f : ι → W) : rift f f = 1 :=
  funext fun i => rift_self (f i)

theorem Pi.rift_still (f : ι → W) : rift f 1 = 1 :=
  funext fun i => rift_still (f i)

theorem Pi.run_run_rift (f g : ι → W) : f * g * rift f g = g * f :=
  funext fun i => run_run_rift (f i) (g i)

theorem Pi.undo_rift (f g : ι → W) : (rift f g)⁻¹ = rift g f :=
  funext fun i => undo_rift (f i) (g i)

theorem Pi.sway_rift (f g k : ι → W) : rift (sway f g) (sway f k) = sway f (rift g k) :=
  funext fun i => sway_rift (f i) (g i) (k i)

theorem Pi.carry_undo (f : ι → W) : (carry f)⁻¹ = carry (f⁻¹) :=
  funext fun i => carry_undo (f i)

theorem Pi.carry_gap_eq_still (g : ι → W) (h : carry f = 1) : carry (gap f g) = 1 :=
  funext fun i => carry_gap_eq_still (g i) (congrFun h i)

theorem Pi.carry_eq_of_lead (h : carry (lead f g) = 1) : carry g = carry f :=
  funext fun i => carry_eq_of_lead (congrFun h i)

theorem Pi.carry_sway (f g : ι → W) : carry (sway f g) = sway (carry f) (carry g) :=
  funext fun i => carry_sway (f i) (g i)

theorem Pi.carry_rift (f g : ι → W) : carry (rift f g) = rift (carry f) (carry g) :=
  funext fun i => carry_rift (f i) (g i)

theorem Pi.carry_rift_eq_still (g : ι → W) (h : carry f = 1) : carry (rift f g) = 1 :=
  funext fun i => carry_rift_eq_still (g i) (congrFun h i)

theorem Pi.carry_sway_eq_still (f : ι → W) (h : carry g = 1) : carry (sway f g) = 1 :=
  funext fun i => carry_sway_eq_still (f i) (congrFun h i)

/-- Final digest: an undo cancels its element inside a product; an element cancels its undo
inside a product; an element cancels its undo inside a product; the lead of the still is the
undo; the swing by the still changes nothing; dividing on the right undoes multiplying on the
right; the trail may absorb what comes before it; the swing respects gaps; the sway by the still
changes nothing; taking the sway twice; the sway undoes the sway by the undo; an element may be
moved past another one at the price of a sway; a sway is a rift times the element; a carry
respects the swing. -/
theorem final_digest (u v w : W) :
    (u⁻¹ * (u * v) = v) ∧
    (u * (u⁻¹ * v) = v) ∧
    (v * u⁻¹ * u = v) ∧
    (lead u 1 = u⁻¹) ∧
    (swing 1 u = u) ∧
    (trail (v * u) u = v) ∧
    (w * trail v u = trail (w * v) u) ∧
    (gap (swing u v) (swing u w) = swing u (gap v w)) ∧
    (sway 1 u = u) ∧
    (sway u (sway v w) = sway (v * u) w) ∧
    (sway (u⁻¹) (sway u v) = v) ∧
    (u * sway u v = v * u) ∧
    (sway u v = v * rift u v) ∧
    (carry (swing u v) = swing (carry u) (carry v)) :=
  ⟨undo_run_cancel_left u v,
    run_undo_cancel_left u v,
    undo_run_cancel_right u v,
    lead_still u,
    still_swing u,
    run_trail u v,
    run_trail_assoc u v w,
    swing_gap u v w,
    still_sway u,
    sway_sway u v w,
    undo_sway_cancel u v,
    run_eq_run_sway u v,
    sway_eq_run_rift u v,
    carry_swing u v⟩

end Wicket

theory Sluice
  imports Main
begin

section \<open>Sluices\<close>

text \<open>This theory defines sluices and proves basic facts about gates, weirs, dams
and levees.\<close>

text \<open>A sluice is an ordered set with straits and basins, gates and weirs, dams and
levees.\<close>

locale sluice =
  fixes strait :: "'a \<Rightarrow> 'a \<Rightarrow> 'a::order" (infixl "\<sqinter>" 70)
    and basin :: "'a \<Rightarrow> 'a \<Rightarrow> 'a" (infixl "\<squnion>" 65)
    and flood :: "'a" ("\<top>")
    and dry :: "'a" ("\<bottom>")
    and gate :: "'a \<Rightarrow> 'a \<Rightarrow> 'a" (infixr "\<rightarrowtail>" 60)
    and weir :: "'a \<Rightarrow> 'a \<Rightarrow> 'a" (infixl "\<setminus>" 60)
    and dam :: "'a \<Rightarrow> 'a"
    and levee :: "'a \<Rightarrow> 'a"
  assumes strait_le_left: "a \<sqinter> b \<le> a"
    and strait_le_right: "a \<sqinter> b \<le> b"
    and le_strait: "c \<le> a \<Longrightarrow> c \<le> b \<Longrightarrow> c \<le> a \<sqinter> b"
    and le_flood: "a \<le> \<top>"
    and le_gate_iff: "a \<le> b \<rightarrowtail> c \<longleftrightarrow> a \<sqinter> b \<le> c"
    and dam_def: "dam a = a \<rightarrowtail> \<bottom>"
    and le_basin_left: "a \<le> a \<squnion> b"
    and le_basin_right: "b \<le> a \<squnion> b"
    and basin_le: "a \<le> c \<Longrightarrow> b \<le> c \<Longrightarrow> a \<squnion> b \<le> c"
    and dry_le: "\<bottom> \<le> a"
    and weir_le_iff: "c \<setminus> b \<le> a \<longleftrightarrow> c \<le> a \<squnion> b"
    and levee_def: "levee a = \<top> \<setminus> a"
begin

subsection \<open>Working with the strait\<close>

text \<open>The terms of a strait may be exchanged.\<close>

lemma strait_comm_le: "a \<sqinter> b \<le> b \<sqinter> a"
proof -
  have 1: "a \<sqinter> b \<le> b" by (rule strait_le_right)
  have 2: "a \<sqinter> b \<le> a" by (rule strait_le_left)
  show ?thesis using 1 2 by (rule le_strait)
qed

lemma strait_mono:
  assumes "a \<le> c"
    and "b \<le> d"
  shows "a \<sqinter> b \<le> c \<sqinter> d"
proof -
  have 1: "a \<sqinter> b \<le> a" by (rule strait_le_left)
  have 2: "a \<sqinter> b \<le> c" using 1 assms(1) by (rule le_trans)
  have 3: "a \<sqinter> b \<le> b" by (rule strait_le_right)
  have 4: "a \<sqinter> b \<le> d" using 3 assms(2) by (rule le_trans)
  from 2 4 show ?thesis by (rule le_strait)
qed

lemma strait_mono_left:
  assumes "a \<le> b"
  shows "a \<sqinter> c \<le> b \<sqinter> c"
proof -
  have 1: "c \<le> c" by (rule le_refl)
  from assms 1 show ?thesis by (rule strait_mono)
qed

lemma strait_mono_right:
  assumes "b \<le> c"
  shows "a \<sqinter> b \<le> a \<sqinter> c"
proof -
  have 1: "a \<le> a" by (rule le_refl)
  from 1 assms show ?thesis by (rule strait_mono)
qed

lemma strait_assoc_le: "(a \<sqinter> b) \<sqinter> c \<le> a \<sqinter> (b \<sqinter> c)"
proof -
  have 1: "(a \<sqinter> b) \<sqinter> c \<le> a \<sqinter> b" by (rule strait_le_left)
  have 2: "a \<sqinter> b \<le> a" by (rule strait_le_left)
  have 3: "(a \<sqinter> b) \<sqinter> c \<le> a" using 1 2 by (rule le_trans)
  have 4: "a \<sqinter> b \<le> b" by (rule strait_le_right)
  have 5: "(a \<sqinter> b) \<sqinter> c \<le> b" using 1 4 by (rule le_trans)
  have 6: "(a \<sqinter> b) \<sqinter> c \<le> c" by (rule strait_le_right)
  from 5 6 have 7: "(a \<sqinter> b) \<sqinter> c \<le> b \<sqinter> c" by (rule le_strait)
  show ?thesis using 3 7 by (rule le_strait)
qed

text \<open>Brackets may be moved to the left in a strait.\<close>

lemma le_strait_assoc: "a \<sqinter> (b \<sqinter> c) \<le> (a \<sqinter> b) \<sqinter> c"
proof -
  have 1: "a \<sqinter> (b \<sqinter> c) \<le> a" by (rule strait_le_left)
  have 2: "a \<sqinter> (b \<sqinter> c) \<le> b \<sqinter> c" by (rule strait_le_right)
  have 3: "b \<sqinter> c \<le> b" by (rule strait_le_left)
  have 4: "a \<sqinter> (b \<sqinter> c) \<le> b" using 2 3 by (rule le_trans)
  have 5: "a \<sqinter> (b \<sqinter> c) \<le> a \<sqinter> b" using 1 4 by (rule le_strait)
  have 6: "b \<sqinter> c \<le> c" using strait_le_right by blast
  from 2 6 have 7: "a \<sqinter> (b \<sqinter> c) \<le> c" by (rule le_trans)
  show ?thesis using 5 7 by (rule le_strait)
qed

lemma strait_flood: "a \<sqinter> \<top> = a"
proof -
  have 1: "a \<sqinter> \<top> \<le> a" by (rule strait_le_left)
  have 2: "a \<le> a" by (rule le_refl)
  have 3: "a \<le> \<top>" by (rule le_flood)
  have 4: "a \<le> a \<sqinter> \<top>" using 2 3 by (rule le_strait)
  from 1 4 show ?thesis by (rule le_antisymm)
qed

lemma strait_dry: "a \<sqinter> \<bottom> = \<bottom>"
proof -
  have 1: "a \<sqinter> \<bottom> \<le> \<bottom>" by (rule strait_le_right)
  have 2: "\<bottom> \<le> a \<sqinter> \<bottom>" by (rule dry_le)
  show ?thesis using 1 2 by (rule le_antisymm)
qed

text \<open>The divisors of 540 form a sluice: the strait is the greatest common divisor,
the basin the least common multiple.\<close>

subsection \<open>Working with the basin\<close>

text \<open>Among the results: \<^emph>\<open>the basin is monotone in both terms\<close>
(@{thm [source] basin_mono}).\<close>

text \<open>The terms of a basin may be exchanged.\<close>

lemma le_basin_comm: "b \<squnion> a \<le> a \<squnion> b"
proof -
  have 1: "b \<le> a \<squnion> b" using le_basin_right by blast
  have 2: "a \<le> a \<squnion> b" by (rule le_basin_left)
  from 1 2 show ?thesis by (rule basin_le)
qed

text \<open>The basin is monotone in both terms.\<close>

lemma basin_mono:
  assumes "c \<le> a"
    and "d \<le> b"
  shows "c \<squnion> d \<le> a \<squnion> b"
proof -
  have 1: "a \<le> a \<squnion> b" using le_basin_left by blast
  have 2: "c \<le> a \<squnion> b" using assms(1) 1 by (rule le_trans)
  have 3: "b \<le> a \<squnion> b" by (rule le_basin_right)
  from assms(2) 3 have 4: "d \<le> a \<squnion> b" by (rule le_trans)
  from 2 4 show ?thesis by (rule basin_le)
qed

lemma basin_mono_left:
  assumes "b \<le> a"
  shows "b \<squnion> c \<le> a \<squnion> c"
proof -
  have 1: "c \<le> c" by (rule le_refl)
  from assms 1 show ?thesis by (rule basin_mono)
qed

lemma basin_mono_right:
  assumes "c \<le> b"
  shows "a \<squnion> c \<le> a \<squnion> b"
proof -
  have 1: "a \<le> a" by (rule le_refl)
  from 1 assms show ?thesis by (rule basin_mono)
qed

text \<open>Brackets may be moved to the right in a basin.\<close>

lemma le_basin_assoc: "a \<squnion> (b \<squnion> c) \<le> (a \<squnion> b) \<squnion> c"
proof -
  have 1: "a \<le> a \<squnion> b" by (rule le_basin_left)
  have 2: "a \<squnion> b \<le> (a \<squnion> b) \<squnion> c" by (rule le_basin_left)
  from 1 2 have 3: "a \<le> (a \<squnion> b) \<squnion> c" by (rule le_trans)
  have 4: "b \<le> a \<squnion> b" by (rule le_basin_right)
  have 5: "b \<le> (a \<squnion> b) \<squnion> c" using 4 2 by (rule le_trans)
  have 6: "c \<le> (a \<squnion> b) \<squnion> c" using le_basin_right by blast
  from 5 6 have 7: "b \<squnion> c \<le> (a \<squnion> b) \<squnion> c" by (rule basin_le)
  show ?thesis using 3 7 by (rule basin_le)
qed

text \<open>An instance of @{thm [source] strait_mono_left} in the divisors of 540: a = 9,
b = 135, c = 27.\<close>

lemma
  shows "9 \<sqinter> 27 = 9"
    and "135 \<sqinter> 27 = 27"
  by eval+

lemma basin_assoc_le: "(a \<squnion> b) \<squnion> c \<le> a \<squnion> (b \<squnion> c)"
proof -
  have 1: "a \<le> a \<squnion> (b \<squnion> c)" by (rule le_basin_left)
  have 2: "b \<le> b \<squnion> c" using le_basin_left by blast
  have 3: "b \<squnion> c \<le> a \<squnion> (b \<squnion> c)" by (rule le_basin_right)
  have 4: "b \<le> a \<squnion> (b \<squnion> c)" using 2 3 by (rule le_trans)
  have 5: "a \<squnion> b \<le> a \<squnion> (b \<squnion> c)" using 1 4 by (rule basin_le)
  have 6: "c \<le> b \<squnion> c" by (rule le_basin_right)
  from 6 3 have 7: "c \<le> a \<squnion> (b \<squnion> c)" by (rule le_trans)
  show ?thesis using 5 7 by (rule basin_le)
qed

text \<open>An instance of @{thm [source] basin_mono_right} in the divisors of 540: a =
30, b = 270, c = 15.\<close>

lemma
  shows "30 \<squnion> 15 = 30"
    and "30 \<squnion> 270 = 270"
  by eval+

lemma basin_dry: "a \<squnion> \<bottom> = a"
proof -
  have 1: "a \<le> a" by (rule le_refl)
  have 2: "\<bottom> \<le> a" by (rule dry_le)
  have 3: "a \<squnion> \<bottom> \<le> a" using 1 2 by (rule basin_le)
  have 4: "a \<le> a \<squnion> \<bottom>" by (rule le_basin_left)
  from 3 4 show ?thesis by (rule le_antisymm)
qed

lemma basin_flood: "a \<squnion> \<top> = \<top>"
proof -
  have 1: "a \<squnion> \<top> \<le> \<top>" by (rule le_flood)
  have 2: "\<top> \<le> a \<squnion> \<top>" by (rule le_basin_right)
  from 1 2 show ?thesis by (rule le_antisymm)
qed

subsection \<open>The gate\<close>

text \<open>Among the results: \<^emph>\<open>the gate is monotone in its
conclusion\<close> (@{thm [source] gate_mono_right}).\<close>

text \<open>The gate followed by its premise gives its conclusion.\<close>

lemma gate_strait_le: "(a \<rightarrowtail> b) \<sqinter> a \<le> b"
proof -
  have 1: "a \<rightarrowtail> b \<le> a \<rightarrowtail> b" by (rule le_refl)
  then show ?thesis by (simp only: le_gate_iff)
qed

text \<open>The premise together with the gate gives the conclusion.\<close>

lemma strait_gate_le: "a \<sqinter> (a \<rightarrowtail> b) \<le> b"
proof -
  have 1: "a \<sqinter> (a \<rightarrowtail> b) \<le> (a \<rightarrowtail> b) \<sqinter> a"
    by (rule strait_comm_le)
  have 2: "(a \<rightarrowtail> b) \<sqinter> a \<le> b" by (rule gate_strait_le)
  show ?thesis using 1 2 by (rule le_trans)
qed

text \<open>Every element lies below the gate that ends in it.\<close>

lemma le_gate: "b \<le> a \<rightarrowtail> b"
proof -
  have 1: "b \<sqinter> a \<le> b" by (rule strait_le_left)
  then show ?thesis by (simp only: le_gate_iff)
qed

lemma gate_mono_right:
  assumes "b \<le> c"
  shows "a \<rightarrowtail> b \<le> a \<rightarrowtail> c"
proof -
  have 1: "(a \<rightarrowtail> b) \<sqinter> a \<le> b" using gate_strait_le by blast
  have 2: "(a \<rightarrowtail> b) \<sqinter> a \<le> c" using 1 assms by (rule le_trans)
  thus ?thesis by (simp only: le_gate_iff)
qed

text \<open>An instance of @{thm [source] basin_mono} in the divisors of 540: a = 45, b =
180, c = 5, d = 30.\<close>

lemma
  shows "5 \<squnion> 30 = 30"
    and "45 \<squnion> 180 = 180"
  by eval+

text \<open>The gate is antitone in its premise.\<close>

lemma gate_anti_left:
  assumes "a \<le> b"
  shows "b \<rightarrowtail> c \<le> a \<rightarrowtail> c"
proof -
  have 1: "(b \<rightarrowtail> c) \<sqinter> a \<le> (b \<rightarrowtail> c) \<sqinter> b"
    using assms by (rule strait_mono_right)
  have 2: "(b \<rightarrowtail> c) \<sqinter> b \<le> c" by (rule gate_strait_le)
  have 3: "(b \<rightarrowtail> c) \<sqinter> a \<le> c" using 1 2 by (rule le_trans)
  thus ?thesis by (simp only: le_gate_iff)
qed

lemma gate_self: "a \<rightarrowtail> a = \<top>"
proof -
  have 1: "a \<rightarrowtail> a \<le> \<top>" using le_flood by blast
  have 2: "\<top> \<sqinter> a \<le> a" by (rule strait_le_right)
  then have 3: "\<top> \<le> a \<rightarrowtail> a" by (simp only: le_gate_iff)
  from 1 3 show ?thesis by (rule le_antisymm)
qed

lemma gate_eq_flood:
  assumes "a \<le> b"
  shows "a \<rightarrowtail> b = \<top>"
proof -
  have 1: "a \<rightarrowtail> b \<le> \<top>" by (rule le_flood)
  have 2: "\<top> \<sqinter> a \<le> a" by (rule strait_le_right)
  have 3: "\<top> \<sqinter> a \<le> b" using 2 assms by (rule le_trans)
  hence 4: "\<top> \<le> a \<rightarrowtail> b" by (simp only: le_gate_iff)
  from 1 4 show ?thesis by (rule le_antisymm)
qed

lemma le_of_gate_eq_flood:
  assumes "a \<rightarrowtail> b = \<top>"
  shows "a \<le> b"
proof -
  have 1: "a \<le> \<top>" using le_flood by blast
  have 2: "a \<le> a" by (rule le_refl)
  from 1 2 have 3: "a \<le> \<top> \<sqinter> a" by (rule le_strait)
  from assms have 4: "\<top> \<le> a \<rightarrowtail> b" by (rule ge_of_eq)
  hence 5: "\<top> \<sqinter> a \<le> b" by (simp only: le_gate_iff)
  show ?thesis using 3 5 by (rule le_trans)
qed

text \<open>A gate with a trivial premise is its conclusion.\<close>

lemma flood_gate: "\<top> \<rightarrowtail> a = a"
proof -
  have 1: "\<top> \<rightarrowtail> a \<le> \<top> \<rightarrowtail> a" by (rule le_refl)
  have 2: "\<top> \<rightarrowtail> a \<le> \<top>" using le_flood by blast
  have 3: "\<top> \<rightarrowtail> a \<le> (\<top> \<rightarrowtail> a) \<sqinter> \<top>"
    using 1 2 by (rule le_strait)
  have 4: "(\<top> \<rightarrowtail> a) \<sqinter> \<top> \<le> a" by (rule gate_strait_le)
  have 5: "\<top> \<rightarrowtail> a \<le> a" using 3 4 by (rule le_trans)
  have 6: "a \<le> \<top> \<rightarrowtail> a" by (rule le_gate)
  from 5 6 show ?thesis by (rule le_antisymm)
qed

text \<open>An instance of @{thm [source] gate_self} in the divisors of 540: a =
20.\<close>

lemma
  shows "20 \<rightarrowtail> 20 = 540"
  by eval+

text \<open>A gate with a trivial conclusion is trivial.\<close>

lemma gate_flood: "a \<rightarrowtail> \<top> = \<top>"
proof -
  have 1: "a \<rightarrowtail> \<top> \<le> \<top>" by (rule le_flood)
  have 2: "\<top> \<le> a \<rightarrowtail> \<top>" by (rule le_gate)
  show ?thesis using 1 2 by (rule le_antisymm)
qed

lemma dry_gate: "\<bottom> \<rightarrowtail> a = \<top>"
proof -
  have 1: "\<bottom> \<le> a" using dry_le by blast
  thus ?thesis by (rule gate_eq_flood)
qed

lemma gate_strait_self [simp]: "a \<sqinter> (a \<rightarrowtail> b) = a \<sqinter> b"
proof -
  have 1: "a \<sqinter> (a \<rightarrowtail> b) \<le> a" by (rule strait_le_left)
  have 2: "a \<sqinter> (a \<rightarrowtail> b) \<le> b" by (rule strait_gate_le)
  from 1 2 have 3: "a \<sqinter> (a \<rightarrowtail> b) \<le> a \<sqinter> b"
    by (rule le_strait)
  have 4: "b \<le> a \<rightarrowtail> b" by (rule le_gate)
  then have 5: "a \<sqinter> b \<le> a \<sqinter> (a \<rightarrowtail> b)"
    by (rule strait_mono_right)
  show ?thesis using 3 5 by (rule le_antisymm)
qed

text \<open>The conclusion absorbs the gate.\<close>

lemma strait_gate_cancel [simp]: "(a \<rightarrowtail> b) \<sqinter> b = b"
proof -
  have 1: "(a \<rightarrowtail> b) \<sqinter> b \<le> b" using strait_le_right by blast
  have 2: "b \<le> a \<rightarrowtail> b" by (rule le_gate)
  have 3: "b \<le> b" by (rule le_refl)
  from 2 3 have 4: "b \<le> (a \<rightarrowtail> b) \<sqinter> b" by (rule le_strait)
  show ?thesis using 1 4 by (rule le_antisymm)
qed

text \<open>An instance of @{thm [source] dry_gate} in the divisors of 540: a = 6.\<close>

lemma
  shows "\<bottom> \<rightarrowtail> 6 = 540"
  by eval+

lemma gate_curry:
  "a \<sqinter> b \<rightarrowtail> c \<le> a \<rightarrowtail> (b \<rightarrowtail> c)"
proof -
  have 1: "((a \<sqinter> b \<rightarrowtail> c) \<sqinter> a) \<sqinter> b \<le> (a \<sqinter> b \<rightarrowtail> c) \<sqinter> (a \<sqinter> b)"
    by (rule strait_assoc_le)
  have 2: "(a \<sqinter> b \<rightarrowtail> c) \<sqinter> (a \<sqinter> b) \<le> c"
    by (rule gate_strait_le)
  from 1 2 have 3: "((a \<sqinter> b \<rightarrowtail> c) \<sqinter> a) \<sqinter> b \<le> c"
    by (rule le_trans)
  hence 4: "(a \<sqinter> b \<rightarrowtail> c) \<sqinter> a \<le> b \<rightarrowtail> c"
    by (simp only: le_gate_iff)
  then show ?thesis by (simp only: le_gate_iff)
qed

lemma gate_uncurry:
  "a \<rightarrowtail> (b \<rightarrowtail> c) \<le> a \<sqinter> b \<rightarrowtail> c"
proof -
  have 1: "(a \<rightarrowtail> (b \<rightarrowtail> c)) \<sqinter> (a \<sqinter> b) \<le> ((a \<rightarrowtail> (b \<rightarrowtail> c)) \<sqinter> a) \<sqinter> b"
    using le_strait_assoc by blast
  have 2: "(a \<rightarrowtail> (b \<rightarrowtail> c)) \<sqinter> a \<le> b \<rightarrowtail> c"
    using gate_strait_le by blast
  then have 3: "((a \<rightarrowtail> (b \<rightarrowtail> c)) \<sqinter> a) \<sqinter> b \<le> c"
    by (simp only: le_gate_iff)
  from 1 3 have 4: "(a \<rightarrowtail> (b \<rightarrowtail> c)) \<sqinter> (a \<sqinter> b) \<le> c"
    by (rule le_trans)
  then show ?thesis by (simp only: le_gate_iff)
qed

text \<open>Nested gates are one gate from a strait.\<close>

lemma gate_gate_eq [simp]:
  "a \<rightarrowtail> (b \<rightarrowtail> c) = a \<sqinter> b \<rightarrowtail> c"
proof -
  have 1: "a \<rightarrowtail> (b \<rightarrowtail> c) \<le> a \<sqinter> b \<rightarrowtail> c"
    by (rule gate_uncurry)
  have 2: "a \<sqinter> b \<rightarrowtail> c \<le> a \<rightarrowtail> (b \<rightarrowtail> c)"
    by (rule gate_curry)
  from 1 2 show ?thesis by (rule le_antisymm)
qed

lemma gate_left_comm:
  "a \<rightarrowtail> (b \<rightarrowtail> c) \<le> b \<rightarrowtail> (a \<rightarrowtail> c)"
proof -
  have 1: "a \<rightarrowtail> (b \<rightarrowtail> c) \<le> a \<sqinter> b \<rightarrowtail> c"
    by (rule gate_uncurry)
  have 2: "b \<sqinter> a \<le> a \<sqinter> b" by (rule strait_comm_le)
  hence 3: "a \<sqinter> b \<rightarrowtail> c \<le> b \<sqinter> a \<rightarrowtail> c"
    by (rule gate_anti_left)
  have 4: "b \<sqinter> a \<rightarrowtail> c \<le> b \<rightarrowtail> (a \<rightarrowtail> c)"
    by (rule gate_curry)
  from 3 4 have 5: "a \<sqinter> b \<rightarrowtail> c \<le> b \<rightarrowtail> (a \<rightarrowtail> c)"
    by (rule le_trans)
  from 1 5 show ?thesis by (rule le_trans)
qed

lemma gate_strait:
  "a \<rightarrowtail> b \<sqinter> c = (a \<rightarrowtail> b) \<sqinter> (a \<rightarrowtail> c)"
proof -
  have 1: "b \<sqinter> c \<le> b" by (rule strait_le_left)
  hence 2: "a \<rightarrowtail> b \<sqinter> c \<le> a \<rightarrowtail> b"
    by (rule gate_mono_right)
  have 3: "b \<sqinter> c \<le> c" using strait_le_right by blast
  then have 4: "a \<rightarrowtail> b \<sqinter> c \<le> a \<rightarrowtail> c"
    by (rule gate_mono_right)
  have 5: "a \<rightarrowtail> b \<sqinter> c \<le> (a \<rightarrowtail> b) \<sqinter> (a \<rightarrowtail> c)"
    using 2 4 by (rule le_strait)
  have 6: "(a \<rightarrowtail> b) \<sqinter> (a \<rightarrowtail> c) \<le> a \<rightarrowtail> b"
    using strait_le_left by blast
  then have 7: "((a \<rightarrowtail> b) \<sqinter> (a \<rightarrowtail> c)) \<sqinter> a \<le> b"
    by (simp only: le_gate_iff)
  have 8: "(a \<rightarrowtail> b) \<sqinter> (a \<rightarrowtail> c) \<le> a \<rightarrowtail> c"
    by (rule strait_le_right)
  hence 9: "((a \<rightarrowtail> b) \<sqinter> (a \<rightarrowtail> c)) \<sqinter> a \<le> c"
    by (simp only: le_gate_iff)
  have 10: "((a \<rightarrowtail> b) \<sqinter> (a \<rightarrowtail> c)) \<sqinter> a \<le> b \<sqinter> c"
    using 7 9 by (rule le_strait)
  hence 11: "(a \<rightarrowtail> b) \<sqinter> (a \<rightarrowtail> c) \<le> a \<rightarrowtail> b \<sqinter> c"
    by (simp only: le_gate_iff)
  from 5 11 show ?thesis by (rule le_antisymm)
qed

lemma basin_gate:
  "a \<squnion> b \<rightarrowtail> c = (a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c)"
proof -
  have 1: "a \<le> a \<squnion> b" by (rule le_basin_left)
  hence 2: "a \<squnion> b \<rightarrowtail> c \<le> a \<rightarrowtail> c"
    by (rule gate_anti_left)
  have 3: "b \<le> a \<squnion> b" by (rule le_basin_right)
  hence 4: "a \<squnion> b \<rightarrowtail> c \<le> b \<rightarrowtail> c"
    by (rule gate_anti_left)
  have 5: "a \<squnion> b \<rightarrowtail> c \<le> (a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c)"
    using 2 4 by (rule le_strait)
  have 6: "((a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c)) \<sqinter> (a \<squnion> b) \<le> (a \<squnion> b) \<sqinter> ((a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c))"
    by (rule strait_comm_le)
  have 7: "(a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c) \<le> a \<rightarrowtail> c"
    by (rule strait_le_left)
  then have 8: "a \<sqinter> ((a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c)) \<le> a \<sqinter> (a \<rightarrowtail> c)"
    by (rule strait_mono_right)
  have 9: "a \<sqinter> (a \<rightarrowtail> c) \<le> c" using strait_gate_le by blast
  have 10: "a \<sqinter> ((a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c)) \<le> c"
    using 8 9 by (rule le_trans)
  hence 11: "a \<le> (a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c) \<rightarrowtail> c"
    by (simp only: le_gate_iff)
  have 12: "(a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c) \<le> b \<rightarrowtail> c"
    using strait_le_right by blast
  hence 13: "b \<sqinter> ((a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c)) \<le> b \<sqinter> (b \<rightarrowtail> c)"
    by (rule strait_mono_right)
  have 14: "b \<sqinter> (b \<rightarrowtail> c) \<le> c" using strait_gate_le by blast
  have 15: "b \<sqinter> ((a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c)) \<le> c"
    using 13 14 by (rule le_trans)
  then have 16: "b \<le> (a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c) \<rightarrowtail> c"
    by (simp only: le_gate_iff)
  have 17: "a \<squnion> b \<le> (a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c) \<rightarrowtail> c"
    using 11 16 by (rule basin_le)
  then have 18: "(a \<squnion> b) \<sqinter> ((a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c)) \<le> c"
    by (simp only: le_gate_iff)
  have 19: "((a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c)) \<sqinter> (a \<squnion> b) \<le> c"
    using 6 18 by (rule le_trans)
  then have 20: "(a \<rightarrowtail> c) \<sqinter> (b \<rightarrowtail> c) \<le> a \<squnion> b \<rightarrowtail> c"
    by (simp only: le_gate_iff)
  from 5 20 show ?thesis by (rule le_antisymm)
qed

lemma gate_trans:
  "(a \<rightarrowtail> b) \<sqinter> (b \<rightarrowtail> c) \<le> a \<rightarrowtail> c"
proof -
  have 1: "(a \<rightarrowtail> b) \<sqinter> (b \<rightarrowtail> c) \<le> a \<rightarrowtail> b"
    by (rule strait_le_left)
  hence 2: "((a \<rightarrowtail> b) \<sqinter> (b \<rightarrowtail> c)) \<sqinter> a \<le> b"
    by (simp only: le_gate_iff)
  have 3: "((a \<rightarrowtail> b) \<sqinter> (b \<rightarrowtail> c)) \<sqinter> a \<le> (a \<rightarrowtail> b) \<sqinter> (b \<rightarrowtail> c)"
    by (rule strait_le_left)
  have 4: "(a \<rightarrowtail> b) \<sqinter> (b \<rightarrowtail> c) \<le> b \<rightarrowtail> c"
    by (rule strait_le_right)
  from 3 4 have 5: "((a \<rightarrowtail> b) \<sqinter> (b \<rightarrowtail> c)) \<sqinter> a \<le> b \<rightarrowtail> c"
    by (rule le_trans)
  from 2 5 have 6: "((a \<rightarrowtail> b) \<sqinter> (b \<rightarrowtail> c)) \<sqinter> a \<le> b \<sqinter> (b \<rightarrowtail> c)"
    by (rule le_strait)
  have 7: "b \<sqinter> (b \<rightarrowtail> c) \<le> c" by (rule strait_gate_le)
  have 8: "((a \<rightarrowtail> b) \<sqinter> (b \<rightarrowtail> c)) \<sqinter> a \<le> c"
    using 6 7 by (rule le_trans)
  then show ?thesis by (simp only: le_gate_iff)
qed

lemma gate_gate_self: "a \<le> (a \<rightarrowtail> b) \<rightarrowtail> b"
proof -
  have 1: "a \<sqinter> (a \<rightarrowtail> b) \<le> b" by (rule strait_gate_le)
  thus ?thesis by (simp only: le_gate_iff)
qed

text \<open>A threefold gate is a single one.\<close>

lemma gate_gate_gate:
  "((a \<rightarrowtail> b) \<rightarrowtail> b) \<rightarrowtail> b = a \<rightarrowtail> b"
proof -
  have 1: "a \<le> (a \<rightarrowtail> b) \<rightarrowtail> b" by (rule gate_gate_self)
  then have 2: "((a \<rightarrowtail> b) \<rightarrowtail> b) \<rightarrowtail> b \<le> a \<rightarrowtail> b"
    by (rule gate_anti_left)
  have 3: "a \<rightarrowtail> b \<le> ((a \<rightarrowtail> b) \<rightarrowtail> b) \<rightarrowtail> b"
    by (rule gate_gate_self)
  show ?thesis using 2 3 by (rule le_antisymm)
qed

text \<open>Weakening by a premise is monotone.\<close>

lemma strait_le_strait_gate: "b \<sqinter> c \<le> (a \<rightarrowtail> b) \<sqinter> c"
proof -
  have 1: "b \<le> a \<rightarrowtail> b" by (rule le_gate)
  thus ?thesis by (rule strait_mono_left)
qed

theorem first_digest:
  shows "a \<sqinter> (b \<sqinter> c) \<le> (a \<sqinter> b) \<sqinter> c"
    and "a \<sqinter> \<top> = a"
    and "a \<sqinter> \<bottom> = \<bottom>"
    and "c \<le> b \<Longrightarrow> a \<squnion> c \<le> a \<squnion> b"
    and "a \<squnion> \<bottom> = a"
    and "a \<sqinter> (a \<rightarrowtail> b) = a \<sqinter> b"
    and "a \<rightarrowtail> (b \<rightarrowtail> c) \<le> a \<sqinter> b \<rightarrowtail> c"
    and "((a \<rightarrowtail> b) \<rightarrowtail> b) \<rightarrowtail> b = a \<rightarrowtail> b"
    and "b \<sqinter> c \<le> (a \<rightarrowtail> b) \<sqinter> c"
by (fact le_strait_assoc strait_flood strait_dry basin_mono_right basin_dry
    gate_strait_self gate_uncurry gate_gate_gate strait_le_strait_gate)+

subsection \<open>The dam\<close>

text \<open>Among the results: \<^emph>\<open>the double dam keeps the order\<close>
(@{thm [source] dam_dam_mono}).\<close>

text \<open>The dam of an element implies everything.\<close>

lemma dam_le_gate: "dam a \<le> a \<rightarrowtail> b"
proof -
  have 1: "dam a = a \<rightarrowtail> \<bottom>" by (rule dam_def)
  hence 2: "dam a \<le> a \<rightarrowtail> \<bottom>" by (rule le_of_eq)
  have 3: "\<bottom> \<le> b" by (rule dry_le)
  hence 4: "a \<rightarrowtail> \<bottom> \<le> a \<rightarrowtail> b"
    by (rule gate_mono_right)
  from 2 4 show ?thesis by (rule le_trans)
qed

lemma strait_dam: "a \<sqinter> dam a = \<bottom>"
proof -
  have 1: "dam a = a \<rightarrowtail> \<bottom>" by (rule dam_def)
  hence 2: "dam a \<le> a \<rightarrowtail> \<bottom>" by (rule le_of_eq)
  then have 3: "a \<sqinter> dam a \<le> a \<sqinter> (a \<rightarrowtail> \<bottom>)"
    by (rule strait_mono_right)
  have 4: "a \<sqinter> (a \<rightarrowtail> \<bottom>) \<le> \<bottom>"
    using strait_gate_le by blast
  from 3 4 have 5: "a \<sqinter> dam a \<le> \<bottom>" by (rule le_trans)
  have 6: "\<bottom> \<le> a \<sqinter> dam a" using dry_le by blast
  from 5 6 show ?thesis by (rule le_antisymm)
qed

text \<open>An instance of @{thm [source] gate_gate_self} in the divisors of 540: a = 15,
b = 12.\<close>

lemma
  shows "15 \<rightarrowtail> 12 = 108"
    and "108 \<rightarrowtail> 12 = 60"
  by eval+

lemma le_dam_of_strait:
  assumes "a \<sqinter> b \<le> \<bottom>"
  shows "a \<le> dam b"
proof -
  from assms have 1: "a \<le> b \<rightarrowtail> \<bottom>" by (simp only: le_gate_iff)
  have 2: "dam b = b \<rightarrowtail> \<bottom>" using dam_def by blast
  then have 3: "b \<rightarrowtail> \<bottom> \<le> dam b" by (rule ge_of_eq)
  show ?thesis using 1 3 by (rule le_trans)
qed

text \<open>An instance of @{thm [source] dam_le_gate} in the divisors of 540: a = 45, b =
180.\<close>

lemma
  shows "dam 45 = 4"
    and "45 \<rightarrowtail> 180 = 540"
  by eval+

text \<open>What lies below a dam has a trivial strait.\<close>

lemma strait_le_of_le_dam:
  assumes "a \<le> dam b"
  shows "a \<sqinter> b \<le> \<bottom>"
proof -
  have 1: "dam b = b \<rightarrowtail> \<bottom>" using dam_def by blast
  hence 2: "dam b \<le> b \<rightarrowtail> \<bottom>" by (rule le_of_eq)
  have 3: "a \<le> b \<rightarrowtail> \<bottom>" using assms 2 by (rule le_trans)
  thus ?thesis by (simp only: le_gate_iff)
qed

lemma dam_anti:
  assumes "a \<le> b"
  shows "dam b \<le> dam a"
proof -
  have 1: "dam b = b \<rightarrowtail> \<bottom>" by (rule dam_def)
  then have 2: "dam b \<le> b \<rightarrowtail> \<bottom>" by (rule le_of_eq)
  from assms have 3: "b \<rightarrowtail> \<bottom> \<le> a \<rightarrowtail> \<bottom>"
    by (rule gate_anti_left)
  have 4: "dam a = a \<rightarrowtail> \<bottom>" by (rule dam_def)
  hence 5: "a \<rightarrowtail> \<bottom> \<le> dam a" by (rule ge_of_eq)
  have 6: "b \<rightarrowtail> \<bottom> \<le> dam a" using 3 5 by (rule le_trans)
  from 2 6 show ?thesis by (rule le_trans)
qed

lemma le_dam_dam: "a \<le> dam (dam a)"
proof -
  have 1: "a \<sqinter> dam a = \<bottom>" using strait_dam by blast
  then have 2: "a \<sqinter> dam a \<le> \<bottom>" by (rule le_of_eq)
  thus ?thesis by (rule le_dam_of_strait)
qed

text \<open>An instance of @{thm [source] strait_dam} in the divisors of 540: a =
9.\<close>

lemma
  shows "dam 9 = 20"
    and "9 \<sqinter> 20 = 1"
  by eval+

lemma dam_dam_dam [simp]: "dam (dam (dam a)) = dam a"
proof -
  have 1: "a \<le> dam (dam a)" by (rule le_dam_dam)
  hence 2: "dam (dam (dam a)) \<le> dam a" by (rule dam_anti)
  have 3: "dam a \<le> dam (dam (dam a))" by (rule le_dam_dam)
  from 2 3 show ?thesis by (rule le_antisymm)
qed

lemma dam_dam_mono:
  assumes "a \<le> b"
  shows "dam (dam a) \<le> dam (dam b)"
proof -
  from assms have 1: "dam b \<le> dam a" by (rule dam_anti)
  thus ?thesis by (rule dam_anti)
qed

lemma le_dam_comm:
  assumes "a \<le> dam b"
  shows "b \<le> dam a"
proof -
  have 1: "b \<le> dam (dam b)" using le_dam_dam by blast
  from assms have 2: "dam (dam b) \<le> dam a" by (rule dam_anti)
  from 1 2 show ?thesis by (rule le_trans)
qed

text \<open>An instance of @{thm [source] gate_gate_self} in the divisors of 540: a = 3, b
= 4.\<close>

lemma
  shows "3 \<rightarrowtail> 4 = 20"
    and "20 \<rightarrowtail> 4 = 108"
  by eval+

lemma dam_basin: "dam (a \<squnion> b) = dam a \<sqinter> dam b"
proof -
  have 1: "a \<le> a \<squnion> b" using le_basin_left by blast
  hence 2: "dam (a \<squnion> b) \<le> dam a" by (rule dam_anti)
  have 3: "b \<le> a \<squnion> b" using le_basin_right by blast
  hence 4: "dam (a \<squnion> b) \<le> dam b" by (rule dam_anti)
  from 2 4 have 5: "dam (a \<squnion> b) \<le> dam a \<sqinter> dam b" by (rule le_strait)
  have 6: "dam a \<sqinter> dam b \<le> dam a" by (rule strait_le_left)
  then have 7: "a \<le> dam (dam a \<sqinter> dam b)" by (rule le_dam_comm)
  have 8: "dam a \<sqinter> dam b \<le> dam b" by (rule strait_le_right)
  then have 9: "b \<le> dam (dam a \<sqinter> dam b)" by (rule le_dam_comm)
  from 7 9 have 10: "a \<squnion> b \<le> dam (dam a \<sqinter> dam b)" by (rule basin_le)
  hence 11: "dam a \<sqinter> dam b \<le> dam (a \<squnion> b)" by (rule le_dam_comm)
  show ?thesis using 5 11 by (rule le_antisymm)
qed

text \<open>An instance of @{thm [source] strait_le_of_le_dam} in the divisors of 540: a =
2, b = 135.\<close>

lemma
  shows "dam 135 = 4"
    and "2 \<sqinter> 135 = 1"
  by eval+

lemma dam_flood: "dam \<top> = \<bottom>"
proof -
  have 1: "dam \<top> \<le> dam \<top>" by (rule le_refl)
  have 2: "dam \<top> \<le> \<top>" by (rule le_flood)
  from 1 2 have 3: "dam \<top> \<le> dam \<top> \<sqinter> \<top>" by (rule le_strait)
  have 4: "dam \<top> \<sqinter> \<top> \<le> \<bottom>" using 1 by (rule strait_le_of_le_dam)
  from 3 4 have 5: "dam \<top> \<le> \<bottom>" by (rule le_trans)
  have 6: "\<bottom> \<le> dam \<top>" using dry_le by blast
  from 5 6 show ?thesis by (rule le_antisymm)
qed

text \<open>An instance of @{thm [source] strait_dam} in the divisors of 540: a =
4.\<close>

lemma
  shows "dam 4 = 135"
    and "4 \<sqinter> 135 = 1"
  by eval+

lemma dam_dry: "dam \<bottom> = \<top>"
proof -
  have 1: "dam \<bottom> \<le> \<top>" by (rule le_flood)
  have 2: "\<top> \<sqinter> \<bottom> \<le> \<bottom>" using strait_le_right by blast
  hence 3: "\<top> \<le> dam \<bottom>" by (rule le_dam_of_strait)
  show ?thesis using 1 3 by (rule le_antisymm)
qed

lemma basin_dam_le: "dam a \<squnion> b \<le> a \<rightarrowtail> b"
proof -
  have 1: "dam a \<le> a \<rightarrowtail> b" by (rule dam_le_gate)
  have 2: "b \<le> a \<rightarrowtail> b" by (rule le_gate)
  from 1 2 show ?thesis by (rule basin_le)
qed

lemma gate_dam_comm: "a \<rightarrowtail> dam b \<le> dam (a \<sqinter> b)"
proof -
  have 1: "(a \<rightarrowtail> dam b) \<sqinter> (a \<sqinter> b) \<le> ((a \<rightarrowtail> dam b) \<sqinter> a) \<sqinter> b"
    by (rule le_strait_assoc)
  have 2: "(a \<rightarrowtail> dam b) \<sqinter> a \<le> dam b" by (rule gate_strait_le)
  then have 3: "((a \<rightarrowtail> dam b) \<sqinter> a) \<sqinter> b \<le> \<bottom>"
    by (rule strait_le_of_le_dam)
  from 1 3 have 4: "(a \<rightarrowtail> dam b) \<sqinter> (a \<sqinter> b) \<le> \<bottom>"
    by (rule le_trans)
  then show ?thesis by (rule le_dam_of_strait)
qed

subsection \<open>The weir\<close>

text \<open>Among the results: \<^emph>\<open>the premise together with the weir gives the
conclusion\<close> (@{thm [source] le_weir_basin}).\<close>

text \<open>The weir followed by its premise gives its conclusion.\<close>

lemma le_basin_weir: "b \<le> (b \<setminus> a) \<squnion> a"
proof -
  have 1: "b \<setminus> a \<le> b \<setminus> a" by (rule le_refl)
  thus ?thesis by (simp only: weir_le_iff)
qed

lemma le_weir_basin: "b \<le> a \<squnion> (b \<setminus> a)"
proof -
  have 1: "b \<le> (b \<setminus> a) \<squnion> a" by (rule le_basin_weir)
  have 2: "(b \<setminus> a) \<squnion> a \<le> a \<squnion> (b \<setminus> a)"
    by (rule le_basin_comm)
  from 1 2 show ?thesis by (rule le_trans)
qed

lemma weir_le: "b \<setminus> a \<le> b"
proof -
  have 1: "b \<le> b \<squnion> a" by (rule le_basin_left)
  then show ?thesis by (simp only: weir_le_iff)
qed

lemma weir_mono_left:
  assumes "c \<le> b"
  shows "c \<setminus> a \<le> b \<setminus> a"
proof -
  have 1: "b \<le> (b \<setminus> a) \<squnion> a" by (rule le_basin_weir)
  have 2: "c \<le> (b \<setminus> a) \<squnion> a" using assms 1 by (rule le_trans)
  thus ?thesis by (simp only: weir_le_iff)
qed

lemma weir_anti_right:
  assumes "b \<le> a"
  shows "c \<setminus> a \<le> c \<setminus> b"
proof -
  have 1: "c \<le> (c \<setminus> b) \<squnion> b" by (rule le_basin_weir)
  have 2: "(c \<setminus> b) \<squnion> b \<le> (c \<setminus> b) \<squnion> a"
    using assms by (rule basin_mono_right)
  have 3: "c \<le> (c \<setminus> b) \<squnion> a" using 1 2 by (rule le_trans)
  thus ?thesis by (simp only: weir_le_iff)
qed

text \<open>The weir of an element with itself is trivial.\<close>

lemma weir_self: "a \<setminus> a = \<bottom>"
proof -
  have 1: "a \<le> \<bottom> \<squnion> a" by (rule le_basin_right)
  then have 2: "a \<setminus> a \<le> \<bottom>" by (simp only: weir_le_iff)
  have 3: "\<bottom> \<le> a \<setminus> a" by (rule dry_le)
  show ?thesis using 2 3 by (rule le_antisymm)
qed

lemma weir_eq_dry:
  assumes "b \<le> a"
  shows "b \<setminus> a = \<bottom>"
proof -
  have 1: "a \<le> \<bottom> \<squnion> a" by (rule le_basin_right)
  from assms 1 have 2: "b \<le> \<bottom> \<squnion> a" by (rule le_trans)
  then have 3: "b \<setminus> a \<le> \<bottom>" by (simp only: weir_le_iff)
  have 4: "\<bottom> \<le> b \<setminus> a" using dry_le by blast
  show ?thesis using 3 4 by (rule le_antisymm)
qed

lemma le_of_weir_eq_dry:
  assumes "b \<setminus> a = \<bottom>"
  shows "b \<le> a"
proof -
  from assms have 1: "b \<setminus> a \<le> \<bottom>" by (rule le_of_eq)
  then have 2: "b \<le> \<bottom> \<squnion> a" by (simp only: weir_le_iff)
  have 3: "\<bottom> \<le> a" by (rule dry_le)
  have 4: "a \<le> a" by (rule le_refl)
  have 5: "\<bottom> \<squnion> a \<le> a" using 3 4 by (rule basin_le)
  from 2 5 show ?thesis by (rule le_trans)
qed

lemma weir_dry: "a \<setminus> \<bottom> = a"
proof -
  have 1: "a \<setminus> \<bottom> \<le> a" by (rule weir_le)
  have 2: "a \<le> (a \<setminus> \<bottom>) \<squnion> \<bottom>" by (rule le_basin_weir)
  have 3: "a \<setminus> \<bottom> \<le> a \<setminus> \<bottom>" by (rule le_refl)
  have 4: "\<bottom> \<le> a \<setminus> \<bottom>" by (rule dry_le)
  from 3 4 have 5: "(a \<setminus> \<bottom>) \<squnion> \<bottom> \<le> a \<setminus> \<bottom>"
    by (rule basin_le)
  have 6: "a \<le> a \<setminus> \<bottom>" using 2 5 by (rule le_trans)
  show ?thesis using 1 6 by (rule le_antisymm)
qed

lemma dry_weir: "\<bottom> \<setminus> a = \<bottom>"
proof -
  have 1: "\<bottom> \<setminus> a \<le> \<bottom>" by (rule weir_le)
  have 2: "\<bottom> \<le> \<bottom> \<setminus> a" by (rule dry_le)
  from 1 2 show ?thesis by (rule le_antisymm)
qed

lemma weir_flood: "a \<setminus> \<top> = \<bottom>"
proof -
  have 1: "a \<le> \<top>" by (rule le_flood)
  thus ?thesis by (rule weir_eq_dry)
qed

text \<open>An instance of @{thm [source] weir_anti_right} in the divisors of 540: a = 60,
b = 4, c = 90.\<close>

lemma
  shows "90 \<setminus> 60 = 9"
    and "90 \<setminus> 4 = 45"
  by eval+

lemma weir_basin_self [simp]: "a \<squnion> (b \<setminus> a) = a \<squnion> b"
proof -
  have 1: "b \<setminus> a \<le> b" using weir_le by blast
  hence 2: "a \<squnion> (b \<setminus> a) \<le> a \<squnion> b" by (rule basin_mono_right)
  have 3: "a \<le> a \<squnion> (b \<setminus> a)" by (rule le_basin_left)
  have 4: "b \<le> a \<squnion> (b \<setminus> a)" by (rule le_weir_basin)
  from 3 4 have 5: "a \<squnion> b \<le> a \<squnion> (b \<setminus> a)" by (rule basin_le)
  from 2 5 show ?thesis by (rule le_antisymm)
qed

lemma basin_weir_cancel: "(b \<setminus> a) \<squnion> b = b"
proof -
  have 1: "b \<setminus> a \<le> b" by (rule weir_le)
  have 2: "b \<le> b" by (rule le_refl)
  have 3: "(b \<setminus> a) \<squnion> b \<le> b" using 1 2 by (rule basin_le)
  have 4: "b \<le> (b \<setminus> a) \<squnion> b" by (rule le_basin_right)
  show ?thesis using 3 4 by (rule le_antisymm)
qed

text \<open>An instance of @{thm [source] weir_dry} in the divisors of 540: a =
108.\<close>

lemma
  shows "108 \<setminus> \<bottom> = 108"
  by eval+

lemma weir_curry: "(c \<setminus> b) \<setminus> a \<le> c \<setminus> a \<squnion> b"
proof -
  have 1: "c \<le> (c \<setminus> a \<squnion> b) \<squnion> (a \<squnion> b)"
    using le_basin_weir by blast
  have 2: "(c \<setminus> a \<squnion> b) \<squnion> (a \<squnion> b) \<le> ((c \<setminus> a \<squnion> b) \<squnion> a) \<squnion> b"
    using le_basin_assoc by blast
  from 1 2 have 3: "c \<le> ((c \<setminus> a \<squnion> b) \<squnion> a) \<squnion> b"
    by (rule le_trans)
  hence 4: "c \<setminus> b \<le> (c \<setminus> a \<squnion> b) \<squnion> a"
    by (simp only: weir_le_iff)
  then show ?thesis by (simp only: weir_le_iff)
qed

text \<open>Two premises may be taken together.\<close>

lemma weir_uncurry: "c \<setminus> a \<squnion> b \<le> (c \<setminus> b) \<setminus> a"
proof -
  have 1: "c \<setminus> b \<le> ((c \<setminus> b) \<setminus> a) \<squnion> a"
    by (rule le_basin_weir)
  hence 2: "c \<le> (((c \<setminus> b) \<setminus> a) \<squnion> a) \<squnion> b"
    by (simp only: weir_le_iff)
  have 3: "(((c \<setminus> b) \<setminus> a) \<squnion> a) \<squnion> b \<le> ((c \<setminus> b) \<setminus> a) \<squnion> (a \<squnion> b)"
    by (rule basin_assoc_le)
  have 4: "c \<le> ((c \<setminus> b) \<setminus> a) \<squnion> (a \<squnion> b)"
    using 2 3 by (rule le_trans)
  then show ?thesis by (simp only: weir_le_iff)
qed

lemma weir_weir_eq [simp]: "(c \<setminus> b) \<setminus> a = c \<setminus> a \<squnion> b"
proof -
  have 1: "(c \<setminus> b) \<setminus> a \<le> c \<setminus> a \<squnion> b"
    by (rule weir_curry)
  have 2: "c \<setminus> a \<squnion> b \<le> (c \<setminus> b) \<setminus> a"
    using weir_uncurry by blast
  show ?thesis using 1 2 by (rule le_antisymm)
qed

text \<open>The premises of a nested weir may be exchanged.\<close>

lemma weir_right_comm: "(c \<setminus> a) \<setminus> b \<le> (c \<setminus> b) \<setminus> a"
proof -
  have 1: "(c \<setminus> a) \<setminus> b \<le> c \<setminus> b \<squnion> a"
    by (rule weir_curry)
  have 2: "a \<squnion> b \<le> b \<squnion> a" by (rule le_basin_comm)
  then have 3: "c \<setminus> b \<squnion> a \<le> c \<setminus> a \<squnion> b"
    by (rule weir_anti_right)
  have 4: "c \<setminus> a \<squnion> b \<le> (c \<setminus> b) \<setminus> a"
    by (rule weir_uncurry)
  from 3 4 have 5: "c \<setminus> b \<squnion> a \<le> (c \<setminus> b) \<setminus> a"
    by (rule le_trans)
  from 1 5 show ?thesis by (rule le_trans)
qed

text \<open>An instance of @{thm [source] le_of_weir_eq_dry} in the divisors of 540: a =
27, b = 3.\<close>

lemma
  shows "3 \<setminus> 27 = 1"
  by eval+

lemma basin_weir:
  "b \<squnion> c \<setminus> a = (b \<setminus> a) \<squnion> (c \<setminus> a)"
proof -
  have 1: "b \<setminus> a \<le> (b \<setminus> a) \<squnion> (c \<setminus> a)"
    by (rule le_basin_left)
  then have 2: "b \<le> ((b \<setminus> a) \<squnion> (c \<setminus> a)) \<squnion> a"
    by (simp only: weir_le_iff)
  have 3: "c \<setminus> a \<le> (b \<setminus> a) \<squnion> (c \<setminus> a)"
    by (rule le_basin_right)
  then have 4: "c \<le> ((b \<setminus> a) \<squnion> (c \<setminus> a)) \<squnion> a"
    by (simp only: weir_le_iff)
  have 5: "b \<squnion> c \<le> ((b \<setminus> a) \<squnion> (c \<setminus> a)) \<squnion> a"
    using 2 4 by (rule basin_le)
  then have 6: "b \<squnion> c \<setminus> a \<le> (b \<setminus> a) \<squnion> (c \<setminus> a)"
    by (simp only: weir_le_iff)
  have 7: "b \<le> b \<squnion> c" by (rule le_basin_left)
  hence 8: "b \<setminus> a \<le> b \<squnion> c \<setminus> a" by (rule weir_mono_left)
  have 9: "c \<le> b \<squnion> c" by (rule le_basin_right)
  then have 10: "c \<setminus> a \<le> b \<squnion> c \<setminus> a" by (rule weir_mono_left)
  from 8 10 have 11: "(b \<setminus> a) \<squnion> (c \<setminus> a) \<le> b \<squnion> c \<setminus> a"
    by (rule basin_le)
  show ?thesis using 6 11 by (rule le_antisymm)
qed

text \<open>A strait of premises becomes a basin.\<close>

lemma weir_strait:
  "c \<setminus> a \<sqinter> b = (c \<setminus> a) \<squnion> (c \<setminus> b)"
proof -
  have 1: "c \<le> a \<squnion> (c \<setminus> a)" by (rule le_weir_basin)
  have 2: "c \<setminus> a \<le> (c \<setminus> a) \<squnion> (c \<setminus> b)"
    using le_basin_left by blast
  then have 3: "a \<squnion> (c \<setminus> a) \<le> a \<squnion> ((c \<setminus> a) \<squnion> (c \<setminus> b))"
    by (rule basin_mono_right)
  have 4: "c \<le> a \<squnion> ((c \<setminus> a) \<squnion> (c \<setminus> b))"
    using 1 3 by (rule le_trans)
  hence 5: "c \<setminus> (c \<setminus> a) \<squnion> (c \<setminus> b) \<le> a"
    by (simp only: weir_le_iff)
  have 6: "c \<le> b \<squnion> (c \<setminus> b)" by (rule le_weir_basin)
  have 7: "c \<setminus> b \<le> (c \<setminus> a) \<squnion> (c \<setminus> b)"
    by (rule le_basin_right)
  then have 8: "b \<squnion> (c \<setminus> b) \<le> b \<squnion> ((c \<setminus> a) \<squnion> (c \<setminus> b))"
    by (rule basin_mono_right)
  from 6 8 have 9: "c \<le> b \<squnion> ((c \<setminus> a) \<squnion> (c \<setminus> b))"
    by (rule le_trans)
  hence 10: "c \<setminus> (c \<setminus> a) \<squnion> (c \<setminus> b) \<le> b"
    by (simp only: weir_le_iff)
  have 11: "c \<setminus> (c \<setminus> a) \<squnion> (c \<setminus> b) \<le> a \<sqinter> b"
    using 5 10 by (rule le_strait)
  hence 12: "c \<le> a \<sqinter> b \<squnion> ((c \<setminus> a) \<squnion> (c \<setminus> b))"
    by (simp only: weir_le_iff)
  have 13: "a \<sqinter> b \<squnion> ((c \<setminus> a) \<squnion> (c \<setminus> b)) \<le> ((c \<setminus> a) \<squnion> (c \<setminus> b)) \<squnion> a \<sqinter> b"
    using le_basin_comm by blast
  have 14: "c \<le> ((c \<setminus> a) \<squnion> (c \<setminus> b)) \<squnion> a \<sqinter> b"
    using 12 13 by (rule le_trans)
  then have 15: "c \<setminus> a \<sqinter> b \<le> (c \<setminus> a) \<squnion> (c \<setminus> b)"
    by (simp only: weir_le_iff)
  have 16: "a \<sqinter> b \<le> a" by (rule strait_le_left)
  then have 17: "c \<setminus> a \<le> c \<setminus> a \<sqinter> b" by (rule weir_anti_right)
  have 18: "a \<sqinter> b \<le> b" by (rule strait_le_right)
  then have 19: "c \<setminus> b \<le> c \<setminus> a \<sqinter> b" by (rule weir_anti_right)
  have 20: "(c \<setminus> a) \<squnion> (c \<setminus> b) \<le> c \<setminus> a \<sqinter> b"
    using 17 19 by (rule basin_le)
  from 15 20 show ?thesis by (rule le_antisymm)
qed

lemma weir_trans: "c \<setminus> a \<le> (b \<setminus> a) \<squnion> (c \<setminus> b)"
proof -
  have 1: "c \<le> b \<squnion> (c \<setminus> b)" by (rule le_weir_basin)
  have 2: "b \<setminus> a \<le> (b \<setminus> a) \<squnion> (c \<setminus> b)"
    using le_basin_left by blast
  hence 3: "b \<le> ((b \<setminus> a) \<squnion> (c \<setminus> b)) \<squnion> a"
    by (simp only: weir_le_iff)
  have 4: "c \<setminus> b \<le> (b \<setminus> a) \<squnion> (c \<setminus> b)"
    by (rule le_basin_right)
  have 5: "(b \<setminus> a) \<squnion> (c \<setminus> b) \<le> ((b \<setminus> a) \<squnion> (c \<setminus> b)) \<squnion> a"
    by (rule le_basin_left)
  from 4 5 have 6: "c \<setminus> b \<le> ((b \<setminus> a) \<squnion> (c \<setminus> b)) \<squnion> a"
    by (rule le_trans)
  from 3 6 have 7: "b \<squnion> (c \<setminus> b) \<le> ((b \<setminus> a) \<squnion> (c \<setminus> b)) \<squnion> a"
    by (rule basin_le)
  from 1 7 have 8: "c \<le> ((b \<setminus> a) \<squnion> (c \<setminus> b)) \<squnion> a"
    by (rule le_trans)
  then show ?thesis by (simp only: weir_le_iff)
qed

text \<open>Every element lies above its double weir.\<close>

lemma weir_weir_self: "b \<setminus> (b \<setminus> a) \<le> a"
proof -
  have 1: "b \<le> a \<squnion> (b \<setminus> a)" using le_weir_basin by blast
  thus ?thesis by (simp only: weir_le_iff)
qed

lemma weir_weir_weir: "b \<setminus> (b \<setminus> (b \<setminus> a)) = b \<setminus> a"
proof -
  have 1: "b \<setminus> (b \<setminus> (b \<setminus> a)) \<le> b \<setminus> a"
    using weir_weir_self by blast
  have 2: "b \<setminus> (b \<setminus> a) \<le> a" by (rule weir_weir_self)
  then have 3: "b \<setminus> a \<le> b \<setminus> (b \<setminus> (b \<setminus> a))"
    by (rule weir_anti_right)
  from 1 3 show ?thesis by (rule le_antisymm)
qed

text \<open>Weakening by a premise is monotone.\<close>

lemma basin_weir_le_basin: "(b \<setminus> a) \<squnion> c \<le> b \<squnion> c"
proof -
  have 1: "b \<setminus> a \<le> b" by (rule weir_le)
  then show ?thesis by (rule basin_mono_left)
qed

text \<open>An instance of @{thm [source] weir_weir_self} in the divisors of 540: a = 2, b
= 30.\<close>

lemma
  shows "30 \<setminus> 2 = 15"
    and "30 \<setminus> 15 = 2"
  by eval+

subsection \<open>The levee\<close>

text \<open>Among the results: \<^emph>\<open>the levee turns the order around\<close>
(@{thm [source] levee_anti}).\<close>

lemma weir_le_levee: "b \<setminus> a \<le> levee a"
proof -
  have 1: "b \<le> \<top>" by (rule le_flood)
  hence 2: "b \<setminus> a \<le> \<top> \<setminus> a" by (rule weir_mono_left)
  have 3: "levee a = \<top> \<setminus> a" by (rule levee_def)
  then have 4: "\<top> \<setminus> a \<le> levee a" by (rule ge_of_eq)
  from 2 4 show ?thesis by (rule le_trans)
qed

lemma basin_levee: "a \<squnion> levee a = \<top>"
proof -
  have 1: "a \<squnion> levee a \<le> \<top>" by (rule le_flood)
  have 2: "\<top> \<le> a \<squnion> (\<top> \<setminus> a)" by (rule le_weir_basin)
  have 3: "levee a = \<top> \<setminus> a" by (rule levee_def)
  then have 4: "\<top> \<setminus> a \<le> levee a" by (rule ge_of_eq)
  hence 5: "a \<squnion> (\<top> \<setminus> a) \<le> a \<squnion> levee a"
    by (rule basin_mono_right)
  have 6: "\<top> \<le> a \<squnion> levee a" using 2 5 by (rule le_trans)
  from 1 6 show ?thesis by (rule le_antisymm)
qed

lemma levee_le_of_basin:
  assumes "\<top> \<le> a \<squnion> b"
  shows "levee b \<le> a"
proof -
  have 1: "levee b = \<top> \<setminus> b" by (rule levee_def)
  then have 2: "levee b \<le> \<top> \<setminus> b" by (rule le_of_eq)
  from assms have 3: "\<top> \<setminus> b \<le> a" by (simp only: weir_le_iff)
  show ?thesis using 2 3 by (rule le_trans)
qed

lemma le_basin_of_levee_le:
  assumes "levee b \<le> a"
  shows "\<top> \<le> a \<squnion> b"
proof -
  have 1: "levee b = \<top> \<setminus> b" by (rule levee_def)
  hence 2: "\<top> \<setminus> b \<le> levee b" by (rule ge_of_eq)
  have 3: "\<top> \<setminus> b \<le> a" using 2 assms by (rule le_trans)
  then show ?thesis by (simp only: weir_le_iff)
qed

lemma levee_anti:
  assumes "b \<le> a"
  shows "levee a \<le> levee b"
proof -
  have 1: "levee a = \<top> \<setminus> a" by (rule levee_def)
  then have 2: "levee a \<le> \<top> \<setminus> a" by (rule le_of_eq)
  from assms have 3: "\<top> \<setminus> a \<le> \<top> \<setminus> b"
    by (rule weir_anti_right)
  have 4: "levee b = \<top> \<setminus> b" by (rule levee_def)
  hence 5: "\<top> \<setminus> b \<le> levee b" by (rule ge_of_eq)
  have 6: "\<top> \<setminus> a \<le> levee b" using 3 5 by (rule le_trans)
  show ?thesis using 2 6 by (rule le_trans)
qed

lemma levee_levee_le: "levee (levee a) \<le> a"
proof -
  have 1: "a \<squnion> levee a = \<top>" by (rule basin_levee)
  hence 2: "\<top> \<le> a \<squnion> levee a" by (rule ge_of_eq)
  then show ?thesis by (rule levee_le_of_basin)
qed

text \<open>A threefold levee is a single one.\<close>

lemma levee_levee_levee: "levee (levee (levee a)) = levee a"
proof -
  have 1: "levee (levee (levee a)) \<le> levee a" using levee_levee_le by blast
  have 2: "levee (levee a) \<le> a" by (rule levee_levee_le)
  then have 3: "levee a \<le> levee (levee (levee a))" by (rule levee_anti)
  show ?thesis using 1 3 by (rule le_antisymm)
qed

text \<open>The double levee keeps the order.\<close>

lemma levee_levee_mono:
  assumes "b \<le> a"
  shows "levee (levee b) \<le> levee (levee a)"
proof -
  from assms have 1: "levee a \<le> levee b" by (rule levee_anti)
  thus ?thesis by (rule levee_anti)
qed

lemma levee_le_comm:
  assumes "levee b \<le> a"
  shows "levee a \<le> b"
proof -
  from assms have 1: "levee a \<le> levee (levee b)" by (rule levee_anti)
  have 2: "levee (levee b) \<le> b" by (rule levee_levee_le)
  from 1 2 show ?thesis by (rule le_trans)
qed

lemma levee_strait [simp]: "levee (a \<sqinter> b) = levee a \<squnion> levee b"
proof -
  have 1: "levee a \<le> levee a \<squnion> levee b" by (rule le_basin_left)
  hence 2: "levee (levee a \<squnion> levee b) \<le> a" by (rule levee_le_comm)
  have 3: "levee b \<le> levee a \<squnion> levee b" by (rule le_basin_right)
  hence 4: "levee (levee a \<squnion> levee b) \<le> b" by (rule levee_le_comm)
  from 2 4 have 5: "levee (levee a \<squnion> levee b) \<le> a \<sqinter> b"
    by (rule le_strait)
  hence 6: "levee (a \<sqinter> b) \<le> levee a \<squnion> levee b" by (rule levee_le_comm)
  have 7: "a \<sqinter> b \<le> a" using strait_le_left by blast
  then have 8: "levee a \<le> levee (a \<sqinter> b)" by (rule levee_anti)
  have 9: "a \<sqinter> b \<le> b" using strait_le_right by blast
  hence 10: "levee b \<le> levee (a \<sqinter> b)" by (rule levee_anti)
  from 8 10 have 11: "levee a \<squnion> levee b \<le> levee (a \<sqinter> b)"
    by (rule basin_le)
  show ?thesis using 6 11 by (rule le_antisymm)
qed

lemma levee_dry [simp]: "levee \<bottom> = \<top>"
proof -
  have 1: "levee \<bottom> \<le> \<top>" using le_flood by blast
  have 2: "levee \<bottom> \<le> levee \<bottom>" by (rule le_refl)
  hence 3: "\<top> \<le> levee \<bottom> \<squnion> \<bottom>" by (rule le_basin_of_levee_le)
  have 4: "\<bottom> \<le> levee \<bottom>" by (rule dry_le)
  have 5: "levee \<bottom> \<squnion> \<bottom> \<le> levee \<bottom>"
    using 2 4 by (rule basin_le)
  have 6: "\<top> \<le> levee \<bottom>" using 3 5 by (rule le_trans)
  from 1 6 show ?thesis by (rule le_antisymm)
qed

lemma levee_flood: "levee \<top> = \<bottom>"
proof -
  have 1: "\<top> \<le> \<bottom> \<squnion> \<top>" by (rule le_basin_right)
  hence 2: "levee \<top> \<le> \<bottom>" by (rule levee_le_of_basin)
  have 3: "\<bottom> \<le> levee \<top>" by (rule dry_le)
  show ?thesis using 2 3 by (rule le_antisymm)
qed

text \<open>The levee of the premise and the conclusion both give the weir.\<close>

lemma levee_strait_le: "b \<setminus> a \<le> levee a \<sqinter> b"
proof -
  have 1: "b \<setminus> a \<le> levee a" by (rule weir_le_levee)
  have 2: "b \<setminus> a \<le> b" by (rule weir_le)
  show ?thesis using 1 2 by (rule le_strait)
qed

lemma levee_weir_comm: "levee (a \<squnion> b) \<le> levee b \<setminus> a"
proof -
  have 1: "levee b \<le> (levee b \<setminus> a) \<squnion> a" by (rule le_basin_weir)
  then have 2: "\<top> \<le> ((levee b \<setminus> a) \<squnion> a) \<squnion> b"
    by (rule le_basin_of_levee_le)
  have 3: "((levee b \<setminus> a) \<squnion> a) \<squnion> b \<le> (levee b \<setminus> a) \<squnion> (a \<squnion> b)"
    by (rule basin_assoc_le)
  from 2 3 have 4: "\<top> \<le> (levee b \<setminus> a) \<squnion> (a \<squnion> b)"
    by (rule le_trans)
  thus ?thesis by (rule levee_le_of_basin)
qed

theorem second_digest:
  shows "c \<le> a \<Longrightarrow> d \<le> b \<Longrightarrow> c \<squnion> d \<le> a \<squnion> b"
    and "a \<squnion> \<top> = \<top>"
    and "a \<le> b \<Longrightarrow> b \<rightarrowtail> c \<le> a \<rightarrowtail> c"
    and "a \<le> b \<Longrightarrow> dam (dam a) \<le> dam (dam b)"
    and "a \<setminus> \<top> = \<bottom>"
    and "b \<squnion> c \<setminus> a = (b \<setminus> a) \<squnion> (c \<setminus> a)"
    and "b \<setminus> (b \<setminus> (b \<setminus> a)) = b \<setminus> a"
    and "levee (levee (levee a)) = levee a"
    and "b \<le> a \<Longrightarrow> levee (levee b) \<le> levee (levee a)"
by (fact basin_mono basin_flood gate_anti_left dam_dam_mono weir_flood basin_weir
    weir_weir_weir levee_levee_levee levee_levee_mono)+

subsection \<open>Products of sluices\<close>

text \<open>All operations and the order are taken in each component; the rule @{thm
[source] prod_rule} reduces a claim to its parts.\<close>

lemma prod_strait_flood: "p \<sqinter> \<top> = p"
proof (rule prod_rule)
  show "(fst p) \<sqinter> \<top> = (fst p)"
    by (rule strait_flood)
next
  show "(snd p) \<sqinter> \<top> = (snd p)"
    by (rule strait_flood)
qed

lemma prod_strait_dry: "p \<sqinter> \<bottom> = \<bottom>"
proof (rule prod_rule)
  show "(fst p) \<sqinter> \<bottom> = \<bottom>"
    by (rule strait_dry)
next
  show "(snd p) \<sqinter> \<bottom> = \<bottom>"
    by (rule strait_dry)
qed

lemma prod_basin_mono_right:
  assumes "r \<le> q"
  shows "p \<squnion> r \<le> p \<squnion> q"
proof (rule prod_rule)
  show "(fst p) \<squnion> (fst r) \<le> (fst p) \<squnion> (fst q)"
    using assms by (simp add: basin_mono_right)
next
  show "(snd p) \<squnion> (snd r) \<le> (snd p) \<squnion> (snd q)"
    using assms by (simp add: basin_mono_right)
qed

lemma prod_basin_flood: "p \<squnion> \<top> = \<top>"
proof (rule prod_rule)
  show "(fst p) \<squnion> \<top> = \<top>"
    by (rule basin_flood)
next
  show "(snd p) \<squnion> \<top> = \<top>"
    by (rule basin_flood)
qed

lemma prod_strait_gate_le: "p \<sqinter> (p \<rightarrowtail> q) \<le> q"
proof (rule prod_rule)
  show "(fst p) \<sqinter> ((fst p) \<rightarrowtail> (fst q)) \<le> (fst q)"
    by (rule strait_gate_le)
next
  show "(snd p) \<sqinter> ((snd p) \<rightarrowtail> (snd q)) \<le> (snd q)"
    by (rule strait_gate_le)
qed

lemma prod_gate_anti_left:
  assumes "p \<le> q"
  shows "q \<rightarrowtail> r \<le> p \<rightarrowtail> r"
proof (rule prod_rule)
  show "(fst q) \<rightarrowtail> (fst r) \<le> (fst p) \<rightarrowtail> (fst r)"
    using assms by (simp add: gate_anti_left)
next
  show "(snd q) \<rightarrowtail> (snd r) \<le> (snd p) \<rightarrowtail> (snd r)"
    using assms by (simp add: gate_anti_left)
qed

lemma prod_flood_gate: "\<top> \<rightarrowtail> p = p"
proof (rule prod_rule)
  show "\<top> \<rightarrowtail> (fst p) = (fst p)"
    by (rule flood_gate)
next
  show "\<top> \<rightarrowtail> (snd p) = (snd p)"
    by (rule flood_gate)
qed

lemma prod_gate_flood: "p \<rightarrowtail> \<top> = \<top>"
proof (rule prod_rule)
  show "(fst p) \<rightarrowtail> \<top> = \<top>"
    by (rule gate_flood)
next
  show "(snd p) \<rightarrowtail> \<top> = \<top>"
    by (rule gate_flood)
qed

lemma prod_gate_gate_eq:
  "p \<rightarrowtail> (q \<rightarrowtail> r) = p \<sqinter> q \<rightarrowtail> r"
proof (rule prod_rule)
  show "(fst p) \<rightarrowtail> ((fst q) \<rightarrowtail> (fst r)) = (fst p) \<sqinter> (fst q) \<rightarrowtail> (fst r)"
    by (rule gate_gate_eq)
next
  show "(snd p) \<rightarrowtail> ((snd q) \<rightarrowtail> (snd r)) = (snd p) \<sqinter> (snd q) \<rightarrowtail> (snd r)"
    by (rule gate_gate_eq)
qed

lemma prod_gate_strait:
  "p \<rightarrowtail> q \<sqinter> r = (p \<rightarrowtail> q) \<sqinter> (p \<rightarrowtail> r)"
proof (rule prod_rule)
  show "(fst p) \<rightarrowtail> (fst q) \<sqinter> (fst r) = ((fst p) \<rightarrowtail> (fst q)) \<sqinter> ((fst p) \<rightarrowtail> (fst r))"
    by (rule gate_strait)
next
  show "(snd p) \<rightarrowtail> (snd q) \<sqinter> (snd r) = ((snd p) \<rightarrowtail> (snd q)) \<sqinter> ((snd p) \<rightarrowtail> (snd r))"
    by (rule gate_strait)
qed

lemma prod_gate_trans:
  "(p \<rightarrowtail> q) \<sqinter> (q \<rightarrowtail> r) \<le> p \<rightarrowtail> r"
proof (rule prod_rule)
  show "((fst p) \<rightarrowtail> (fst q)) \<sqinter> ((fst q) \<rightarrowtail> (fst r)) \<le> (fst p) \<rightarrowtail> (fst r)"
    by (rule gate_trans)
next
  show "((snd p) \<rightarrowtail> (snd q)) \<sqinter> ((snd q) \<rightarrowtail> (snd r)) \<le> (snd p) \<rightarrowtail> (snd r)"
    by (rule gate_trans)
qed

lemma prod_gate_gate_self: "p \<le> (p \<rightarrowtail> q) \<rightarrowtail> q"
proof (rule prod_rule)
  show "(fst p) \<le> ((fst p) \<rightarrowtail> (fst q)) \<rightarrowtail> (fst q)"
    by (rule gate_gate_self)
next
  show "(snd p) \<le> ((snd p) \<rightarrowtail> (snd q)) \<rightarrowtail> (snd q)"
    by (rule gate_gate_self)
qed

lemma prod_strait_le_strait_gate: "q \<sqinter> r \<le> (p \<rightarrowtail> q) \<sqinter> r"
proof (rule prod_rule)
  show "(fst q) \<sqinter> (fst r) \<le> ((fst p) \<rightarrowtail> (fst q)) \<sqinter> (fst r)"
    by (rule strait_le_strait_gate)
next
  show "(snd q) \<sqinter> (snd r) \<le> ((snd p) \<rightarrowtail> (snd q)) \<sqinter> (snd r)"
    by (rule strait_le_strait_gate)
qed

lemma prod_dam_le_gate: "dam p \<le> p \<rightarrowtail> q"
proof (rule prod_rule)
  show "dam (fst p) \<le> (fst p) \<rightarrowtail> (fst q)"
    by (rule dam_le_gate)
next
  show "dam (snd p) \<le> (snd p) \<rightarrowtail> (snd q)"
    by (rule dam_le_gate)
qed

lemma prod_le_dam_of_strait:
  assumes "p \<sqinter> q \<le> \<bottom>"
  shows "p \<le> dam q"
proof (rule prod_rule)
  show "(fst p) \<le> dam (fst q)"
    using assms by (simp add: le_dam_of_strait)
next
  show "(snd p) \<le> dam (snd q)"
    using assms by (simp add: le_dam_of_strait)
qed

lemma prod_strait_le_of_le_dam:
  assumes "p \<le> dam q"
  shows "p \<sqinter> q \<le> \<bottom>"
proof (rule prod_rule)
  show "(fst p) \<sqinter> (fst q) \<le> \<bottom>"
    using assms by (simp add: strait_le_of_le_dam)
next
  show "(snd p) \<sqinter> (snd q) \<le> \<bottom>"
    using assms by (simp add: strait_le_of_le_dam)
qed

lemma prod_dam_anti:
  assumes "p \<le> q"
  shows "dam q \<le> dam p"
proof (rule prod_rule)
  show "dam (fst q) \<le> dam (fst p)"
    using assms by (simp add: dam_anti)
next
  show "dam (snd q) \<le> dam (snd p)"
    using assms by (simp add: dam_anti)
qed

lemma prod_le_dam_dam: "p \<le> dam (dam p)"
proof (rule prod_rule)
  show "(fst p) \<le> dam (dam (fst p))"
    by (rule le_dam_dam)
next
  show "(snd p) \<le> dam (dam (snd p))"
    by (rule le_dam_dam)
qed

lemma prod_dam_dam_mono:
  assumes "p \<le> q"
  shows "dam (dam p) \<le> dam (dam q)"
proof (rule prod_rule)
  show "dam (dam (fst p)) \<le> dam (dam (fst q))"
    using assms by (simp add: dam_dam_mono)
next
  show "dam (dam (snd p)) \<le> dam (dam (snd q))"
    using assms by (simp add: dam_dam_mono)
qed

lemma prod_dam_basin: "dam (p \<squnion> q) = dam p \<sqinter> dam q"
proof (rule prod_rule)
  show "dam ((fst p) \<squnion> (fst q)) = dam (fst p) \<sqinter> dam (fst q)"
    by (rule dam_basin)
next
  show "dam ((snd p) \<squnion> (snd q)) = dam (snd p) \<sqinter> dam (snd q)"
    by (rule dam_basin)
qed

lemma prod_gate_dam_comm: "p \<rightarrowtail> dam q \<le> dam (p \<sqinter> q)"
proof (rule prod_rule)
  show "(fst p) \<rightarrowtail> dam (fst q) \<le> dam ((fst p) \<sqinter> (fst q))"
    by (rule gate_dam_comm)
next
  show "(snd p) \<rightarrowtail> dam (snd q) \<le> dam ((snd p) \<sqinter> (snd q))"
    by (rule gate_dam_comm)
qed

lemma prod_le_weir_basin: "q \<le> p \<squnion> (q \<setminus> p)"
proof (rule prod_rule)
  show "(fst q) \<le> (fst p) \<squnion> ((fst q) \<setminus> (fst p))"
    by (rule le_weir_basin)
next
  show "(snd q) \<le> (snd p) \<squnion> ((snd q) \<setminus> (snd p))"
    by (rule le_weir_basin)
qed

lemma prod_weir_le: "q \<setminus> p \<le> q"
proof (rule prod_rule)
  show "(fst q) \<setminus> (fst p) \<le> (fst q)"
    by (rule weir_le)
next
  show "(snd q) \<setminus> (snd p) \<le> (snd q)"
    by (rule weir_le)
qed

lemma prod_weir_anti_right:
  assumes "q \<le> p"
  shows "r \<setminus> p \<le> r \<setminus> q"
proof (rule prod_rule)
  show "(fst r) \<setminus> (fst p) \<le> (fst r) \<setminus> (fst q)"
    using assms by (simp add: weir_anti_right)
next
  show "(snd r) \<setminus> (snd p) \<le> (snd r) \<setminus> (snd q)"
    using assms by (simp add: weir_anti_right)
qed

lemma prod_dry_weir: "\<bottom> \<setminus> p = \<bottom>"
proof (rule prod_rule)
  show "\<bottom> \<setminus> (fst p) = \<bottom>"
    by (rule dry_weir)
next
  show "\<bottom> \<setminus> (snd p) = \<bottom>"
    by (rule dry_weir)
qed

lemma prod_weir_flood: "p \<setminus> \<top> = \<bottom>"
proof (rule prod_rule)
  show "(fst p) \<setminus> \<top> = \<bottom>"
    by (rule weir_flood)
next
  show "(snd p) \<setminus> \<top> = \<bottom>"
    by (rule weir_flood)
qed

lemma prod_weir_curry: "(r \<setminus> q) \<setminus> p \<le> r \<setminus> p \<squnion> q"
proof (rule prod_rule)
  show "((fst r) \<setminus> (fst q)) \<setminus> (fst p) \<le> (fst r) \<setminus> (fst p) \<squnion> (fst q)"
    by (rule weir_curry)
next
  show "((snd r) \<setminus> (snd q)) \<setminus> (snd p) \<le> (snd r) \<setminus> (snd p) \<squnion> (snd q)"
    by (rule weir_curry)
qed

lemma prod_basin_weir:
  "q \<squnion> r \<setminus> p = (q \<setminus> p) \<squnion> (r \<setminus> p)"
proof (rule prod_rule)
  show "(fst q) \<squnion> (fst r) \<setminus> (fst p) = ((fst q) \<setminus> (fst p)) \<squnion> ((fst r) \<setminus> (fst p))"
    by (rule basin_weir)
next
  show "(snd q) \<squnion> (snd r) \<setminus> (snd p) = ((snd q) \<setminus> (snd p)) \<squnion> ((snd r) \<setminus> (snd p))"
    by (rule basin_weir)
qed

lemma prod_weir_strait:
  "r \<setminus> p \<sqinter> q = (r \<setminus> p) \<squnion> (r \<setminus> q)"
proof (rule prod_rule)
  show "(fst r) \<setminus> (fst p) \<sqinter> (fst q) = ((fst r) \<setminus> (fst p)) \<squnion> ((fst r) \<setminus> (fst q))"
    by (rule weir_strait)
next
  show "(snd r) \<setminus> (snd p) \<sqinter> (snd q) = ((snd r) \<setminus> (snd p)) \<squnion> ((snd r) \<setminus> (snd q))"
    by (rule weir_strait)
qed

lemma prod_weir_trans: "r \<setminus> p \<le> (q \<setminus> p) \<squnion> (r \<setminus> q)"
proof (rule prod_rule)
  show "(fst r) \<setminus> (fst p) \<le> ((fst q) \<setminus> (fst p)) \<squnion> ((fst r) \<setminus> (fst q))"
    by (rule weir_trans)
next
  show "(snd r) \<setminus> (snd p) \<le> ((snd q) \<setminus> (snd p)) \<squnion> ((snd r) \<setminus> (snd q))"
    by (rule weir_trans)
qed

lemma prod_levee_levee_levee: "levee (levee (levee p)) = levee p"
proof (rule prod_rule)
  show "levee (levee (levee (fst p))) = levee (fst p)"
    by (rule levee_levee_levee)
next
  show "levee (levee (levee (snd p))) = levee (snd p)"
    by (rule levee_levee_levee)
qed

lemma prod_levee_levee_mono:
  assumes "q \<le> p"
  shows "levee (levee q) \<le> levee (levee p)"
proof (rule prod_rule)
  show "levee (levee (fst q)) \<le> levee (levee (fst p))"
    using assms by (simp add: levee_levee_mono)
next
  show "levee (levee (snd q)) \<le> levee (levee (snd p))"
    using assms by (simp add: levee_levee_mono)
qed

lemma prod_levee_le_comm:
  assumes "levee q \<le> p"
  shows "levee p \<le> q"
proof (rule prod_rule)
  show "levee (fst p) \<le> (fst q)"
    using assms by (simp add: levee_le_comm)
next
  show "levee (snd p) \<le> (snd q)"
    using assms by (simp add: levee_le_comm)
qed

lemma prod_levee_flood: "levee \<top> = \<bottom>"
proof (rule prod_rule)
  show "levee \<top> = \<bottom>"
    by (rule levee_flood)
next
  show "levee \<top> = \<bottom>"
    by (rule levee_flood)
qed

lemma prod_levee_strait_le: "q \<setminus> p \<le> levee p \<sqinter> q"
proof (rule prod_rule)
  show "(fst q) \<setminus> (fst p) \<le> levee (fst p) \<sqinter> (fst q)"
    by (rule levee_strait_le)
next
  show "(snd q) \<setminus> (snd p) \<le> levee (snd p) \<sqinter> (snd q)"
    by (rule levee_strait_le)
qed

lemma prod_levee_weir_comm: "levee (p \<squnion> q) \<le> levee q \<setminus> p"
proof (rule prod_rule)
  show "levee ((fst p) \<squnion> (fst q)) \<le> levee (fst q) \<setminus> (fst p)"
    by (rule levee_weir_comm)
next
  show "levee ((snd p) \<squnion> (snd q)) \<le> levee (snd q) \<setminus> (snd p)"
    by (rule levee_weir_comm)
qed

theorem final_digest:
  shows "a \<sqinter> \<top> = a"
    and "a \<squnion> \<top> = \<top>"
    and "\<top> \<rightarrowtail> a = a"
    and "\<bottom> \<rightarrowtail> a = \<top>"
    and "a \<sqinter> b \<rightarrowtail> c \<le> a \<rightarrowtail> (b \<rightarrowtail> c)"
    and "a \<rightarrowtail> (b \<rightarrowtail> c) \<le> b \<rightarrowtail> (a \<rightarrowtail> c)"
    and "a \<le> (a \<rightarrowtail> b) \<rightarrowtail> b"
    and "b \<sqinter> c \<le> (a \<rightarrowtail> b) \<sqinter> c"
    and "dam a \<le> a \<rightarrowtail> b"
    and "b \<le> (b \<setminus> a) \<squnion> a"
    and "c \<setminus> a \<squnion> b \<le> (c \<setminus> b) \<setminus> a"
    and "(c \<setminus> a) \<setminus> b \<le> (c \<setminus> b) \<setminus> a"
    and "b \<setminus> a \<le> levee a"
    and "b \<setminus> a \<le> levee a \<sqinter> b"
by (fact strait_flood basin_flood flood_gate dry_gate gate_curry gate_left_comm
    gate_gate_self strait_le_strait_gate dam_le_gate le_basin_weir weir_uncurry
    weir_right_comm weir_le_levee levee_strait_le)+

end

end

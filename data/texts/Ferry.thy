theory Ferry
  imports Main
begin

section \<open>Ferrys\<close>

text \<open>This theory defines ferry lines and proves basic facts about trips, shores and
shuttles.\<close>

text \<open>A ferry line is an ordered set with trips, merges, shores, shuttles and
recrossings.\<close>

locale ferry_line =
  fixes trip :: "'a \<Rightarrow> 'a \<Rightarrow> 'a::order" (infixl "\<odot>" 70)
    and merge :: "'a \<Rightarrow> 'a \<Rightarrow> 'a" (infixl "\<oplus>" 65)
    and berth :: "'a" ("\<one>")
    and lshore :: "'a \<Rightarrow> 'a \<Rightarrow> 'a"
    and rshore :: "'a \<Rightarrow> 'a \<Rightarrow> 'a"
    and shuttle :: "'a \<Rightarrow> 'a"
    and recross :: "'a \<Rightarrow> 'a"
    and calm :: "'a \<Rightarrow> bool"
  assumes trip_assoc: "(p \<odot> q) \<odot> r = p \<odot> (q \<odot> r)"
    and berth_trip: "\<one> \<odot> p = p"
    and trip_mono: "p \<le> q \<Longrightarrow> r \<le> s \<Longrightarrow> p \<odot> r \<le> q \<odot> s"
    and le_merge_left: "p \<le> p \<oplus> q"
    and le_merge_right: "q \<le> p \<oplus> q"
    and merge_le: "p \<le> r \<Longrightarrow> q \<le> r \<Longrightarrow> p \<oplus> q \<le> r"
    and le_lshore_iff: "q \<le> lshore p r \<longleftrightarrow> p \<odot> q \<le> r"
    and berth_le_shuttle: "\<one> \<le> shuttle p"
    and trip_shuttle_le: "p \<odot> shuttle p \<le> shuttle p"
    and shuttle_induct: "q \<le> r \<Longrightarrow> p \<odot> r \<le> r \<Longrightarrow> shuttle p \<odot> q \<le> r"
    and recross_mono: "p \<le> q \<Longrightarrow> recross p \<le> recross q"
    and recross_recross: "recross (recross p) = p"
    and recross_trip: "recross (p \<odot> q) = recross q \<odot> recross p"
    and calm_iff: "calm p \<longleftrightarrow> p \<odot> p \<le> p"
    and trip_berth: "p \<odot> \<one> = p"
    and le_rshore_iff: "q \<le> rshore r p \<longleftrightarrow> q \<odot> p \<le> r"
    and shuttle_trip_le: "shuttle p \<odot> p \<le> shuttle p"
    and shuttle_coinduct: "q \<le> r \<Longrightarrow> r \<odot> p \<le> r \<Longrightarrow> q \<odot> shuttle p \<le> r"
begin

subsection \<open>Composition on the left and on the right\<close>

text \<open>Trip is monotone in the left part.\<close>

lemma trip_mono_left:
  assumes "p \<le> q"
  shows "p \<odot> r \<le> q \<odot> r"
proof -
  have 1: "r \<le> r" by (rule le_refl)
  show ?thesis using assms 1 by (rule trip_mono)
qed

text \<open>The merge of an element with itself.\<close>

lemma merge_idem: "p \<oplus> p = p"
proof -
  have 1: "p \<le> p" by (rule le_refl)
  have 2: "p \<oplus> p \<le> p" using 1 1 by (rule merge_le)
  have 3: "p \<le> p \<oplus> p" by (rule le_merge_left)
  show ?thesis using 2 3 by (rule le_antisymm)
qed

lemma merge_comm [simp]: "p \<oplus> q = q \<oplus> p"
proof -
  have 1: "p \<le> q \<oplus> p" by (rule le_merge_right)
  have 2: "q \<le> q \<oplus> p" by (rule le_merge_left)
  from 1 2 have 3: "p \<oplus> q \<le> q \<oplus> p" by (rule merge_le)
  have 4: "q \<le> p \<oplus> q" by (rule le_merge_right)
  have 5: "p \<le> p \<oplus> q" by (rule le_merge_left)
  from 4 5 have 6: "q \<oplus> p \<le> p \<oplus> q" by (rule merge_le)
  show ?thesis using 3 6 by (rule le_antisymm)
qed

lemma merge_mono:
  assumes "p \<le> q"
    and "r \<le> s"
  shows "p \<oplus> r \<le> q \<oplus> s"
proof -
  have 1: "q \<le> q \<oplus> s" by (rule le_merge_left)
  have 2: "p \<le> q \<oplus> s" using assms(1) 1 by (rule le_trans)
  have 3: "s \<le> q \<oplus> s" by (rule le_merge_right)
  have 4: "r \<le> q \<oplus> s" using assms(2) 3 by (rule le_trans)
  from 2 4 show ?thesis by (rule merge_le)
qed

text \<open>A common right part may be taken out.\<close>

lemma merge_trip_le: "p \<odot> r \<oplus> q \<odot> r \<le> (p \<oplus> q) \<odot> r"
proof -
  have 1: "p \<le> p \<oplus> q" by (rule le_merge_left)
  then have 2: "p \<odot> r \<le> (p \<oplus> q) \<odot> r" by (rule trip_mono_left)
  have 3: "q \<le> p \<oplus> q" by (rule le_merge_right)
  hence 4: "q \<odot> r \<le> (p \<oplus> q) \<odot> r" by (rule trip_mono_left)
  from 2 4 show ?thesis by (rule merge_le)
qed

lemma trip_merge_le: "p \<odot> (q \<oplus> r) \<le> p \<odot> q \<oplus> p \<odot> r"
proof -
  have 1: "p \<odot> q \<le> p \<odot> q \<oplus> p \<odot> r" by (rule le_merge_left)
  then have 2: "q \<le> lshore p (p \<odot> q \<oplus> p \<odot> r)"
    by (simp only: le_lshore_iff)
  have 3: "p \<odot> r \<le> p \<odot> q \<oplus> p \<odot> r" using le_merge_right by blast
  hence 4: "r \<le> lshore p (p \<odot> q \<oplus> p \<odot> r)" by (simp only: le_lshore_iff)
  have 5: "q \<oplus> r \<le> lshore p (p \<odot> q \<oplus> p \<odot> r)"
    using 2 4 by (rule merge_le)
  then show ?thesis by (simp only: le_lshore_iff)
qed

lemma trip_mono_right:
  assumes "p \<le> q"
  shows "r \<odot> p \<le> r \<odot> q"
proof -
  have 1: "r \<le> r" by (rule le_refl)
  from 1 assms show ?thesis by (rule trip_mono)
qed

lemma trip_merge_ge: "r \<odot> p \<oplus> r \<odot> q \<le> r \<odot> (p \<oplus> q)"
proof -
  have 1: "p \<le> p \<oplus> q" by (rule le_merge_left)
  then have 2: "r \<odot> p \<le> r \<odot> (p \<oplus> q)" by (rule trip_mono_right)
  have 3: "q \<le> p \<oplus> q" by (rule le_merge_right)
  hence 4: "r \<odot> q \<le> r \<odot> (p \<oplus> q)" by (rule trip_mono_right)
  from 2 4 show ?thesis by (rule merge_le)
qed

lemma trip_merge [simp]: "p \<odot> (q \<oplus> r) = p \<odot> q \<oplus> p \<odot> r"
proof -
  have 1: "p \<odot> (q \<oplus> r) \<le> p \<odot> q \<oplus> p \<odot> r"
    using trip_merge_le by blast
  have 2: "p \<odot> q \<oplus> p \<odot> r \<le> p \<odot> (q \<oplus> r)"
    by (rule trip_merge_ge)
  show ?thesis using 1 2 by (rule le_antisymm)
qed

lemma trip_le_of_le_berth:
  assumes "p \<le> \<one>"
  shows "p \<odot> q \<le> q"
proof -
  from assms have 1: "p \<odot> q \<le> \<one> \<odot> q" by (rule trip_mono_left)
  have 2: "\<one> \<odot> q = q" by (rule berth_trip)
  then have 3: "\<one> \<odot> q \<le> q" by (rule le_of_eq)
  from 1 3 show ?thesis by (rule le_trans)
qed

lemma le_trip_of_ge_berth:
  assumes "\<one> \<le> p"
  shows "q \<le> p \<odot> q"
proof -
  have 1: "\<one> \<odot> q = q" by (rule berth_trip)
  then have 2: "q \<le> \<one> \<odot> q" by (rule ge_of_eq)
  from assms have 3: "\<one> \<odot> q \<le> p \<odot> q" by (rule trip_mono_left)
  from 2 3 show ?thesis by (rule le_trans)
qed

text \<open>An inequality may be used before something else.\<close>

lemma trip_trip_le:
  assumes "p \<odot> q \<le> r"
  shows "p \<odot> (q \<odot> s) \<le> r \<odot> s"
proof -
  have 1: "(p \<odot> q) \<odot> s = p \<odot> (q \<odot> s)" by (rule trip_assoc)
  then have 2: "p \<odot> (q \<odot> s) \<le> (p \<odot> q) \<odot> s" by (rule ge_of_eq)
  have 3: "(p \<odot> q) \<odot> s \<le> r \<odot> s" using assms by (rule trip_mono_left)
  show ?thesis using 2 3 by (rule le_trans)
qed

text \<open>Relations between the piers 0, 1 and 2 form a ferry line. We write 01 for the
trip from 0 to 1.\<close>

subsection \<open>The lshore\<close>

text \<open>We show that \<^emph>\<open>nothing is taken off by the berth\<close> (@{thm
[source] berth_lshore}).\<close>

lemma trip_lshore_le: "p \<odot> lshore p r \<le> r"
proof -
  have 1: "lshore p r \<le> lshore p r" by (rule le_refl)
  thus ?thesis by (simp only: le_lshore_iff)
qed

text \<open>An instance of @{thm [source] trip_merge_ge} in the line with three piers: p =
{02, 22}, q = {00, 01, 10, 20}, r = {00, 20}.\<close>

lemma
  shows "{00, 20} \<odot> {00, 01, 10, 20} = {00, 01, 20, 21}"
    and "{00, 20} \<odot> {02, 22} = {02, 22}"
    and "{02, 22} \<oplus> {00, 01, 20, 21} = {00, 01, 02, 20, 21, 22}"
    and "{02, 22} \<oplus> {00, 01, 10, 20} = {00, 01, 02, 10, 20, 22}"
    and "{00, 20} \<odot> {00, 01, 02, 10, 20, 22} = {00, 01, 02, 20, 21, 22}"
  by eval+

text \<open>What was composed can be taken off again.\<close>

lemma le_lshore_trip: "q \<le> lshore p (p \<odot> q)"
proof -
  have 1: "p \<odot> q \<le> p \<odot> q" by (rule le_refl)
  thus ?thesis by (simp only: le_lshore_iff)
qed

text \<open>The lshore is monotone in its upper part.\<close>

lemma lshore_mono:
  assumes "q \<le> r"
  shows "lshore p q \<le> lshore p r"
proof -
  have 1: "p \<odot> lshore p q \<le> q" by (rule trip_lshore_le)
  from 1 assms have 2: "p \<odot> lshore p q \<le> r" by (rule le_trans)
  thus ?thesis by (simp only: le_lshore_iff)
qed

lemma lshore_anti:
  assumes "p \<le> q"
  shows "lshore q r \<le> lshore p r"
proof -
  from assms have 1: "p \<odot> lshore q r \<le> q \<odot> lshore q r" by (rule trip_mono_left)
  have 2: "q \<odot> lshore q r \<le> r" by (rule trip_lshore_le)
  have 3: "p \<odot> lshore q r \<le> r" using 1 2 by (rule le_trans)
  then show ?thesis by (simp only: le_lshore_iff)
qed

text \<open>An instance of @{thm [source] le_lshore_trip} in the line with three piers: p
= {02}, q = {00, 02}.\<close>

lemma
  shows "{02} \<odot> {00, 02} = {}"
    and "lshore {02} {} = {00, 01, 02, 10, 11, 12}"
  by eval+

lemma berth_lshore [simp]: "lshore \<one> r = r"
proof -
  have 1: "\<one> \<odot> lshore \<one> r = lshore \<one> r" by (rule berth_trip)
  hence 2: "lshore \<one> r \<le> \<one> \<odot> lshore \<one> r" by (rule ge_of_eq)
  have 3: "\<one> \<odot> lshore \<one> r \<le> r" by (rule trip_lshore_le)
  have 4: "lshore \<one> r \<le> r" using 2 3 by (rule le_trans)
  have 5: "\<one> \<odot> r = r" by (rule berth_trip)
  hence 6: "\<one> \<odot> r \<le> r" by (rule le_of_eq)
  hence 7: "r \<le> lshore \<one> r" by (simp only: le_lshore_iff)
  from 4 7 show ?thesis by (rule le_antisymm)
qed

lemma berth_le_lshore: "\<one> \<le> lshore p p"
proof -
  have 1: "p \<odot> \<one> = p" by (rule trip_berth)
  hence 2: "p \<odot> \<one> \<le> p" by (rule le_of_eq)
  thus ?thesis by (simp only: le_lshore_iff)
qed

lemma lshore_trip_lshore: "lshore p q \<odot> lshore q r \<le> lshore p r"
proof -
  have 1: "(p \<odot> lshore p q) \<odot> lshore q r = p \<odot> (lshore p q \<odot> lshore q r)"
    by (rule trip_assoc)
  then have 2: "p \<odot> (lshore p q \<odot> lshore q r) \<le> (p \<odot> lshore p q) \<odot> lshore q r"
    by (rule ge_of_eq)
  have 3: "p \<odot> lshore p q \<le> q" by (rule trip_lshore_le)
  hence 4: "(p \<odot> lshore p q) \<odot> lshore q r \<le> q \<odot> lshore q r"
    by (rule trip_mono_left)
  have 5: "q \<odot> lshore q r \<le> r" using trip_lshore_le by blast
  from 4 5 have 6: "(p \<odot> lshore p q) \<odot> lshore q r \<le> r" by (rule le_trans)
  from 2 6 have 7: "p \<odot> (lshore p q \<odot> lshore q r) \<le> r" by (rule le_trans)
  thus ?thesis by (simp only: le_lshore_iff)
qed

text \<open>An instance of @{thm [source] trip_merge_ge} in the line with three piers: p =
{02}, q = {21}, r = {00, 01, 02, 10, 11, 12, 20, 21, 22}.\<close>

lemma
  shows "{00, 01, 02, 10, 11, 12, 20, 21, 22} \<odot> {21} = {01, 11, 21}"
    and "{00, 01, 02, 10, 11, 12, 20, 21, 22} \<odot> {02} = {02, 12, 22}"
    and "{02, 12, 22} \<oplus> {01, 11, 21} = {01, 02, 11, 12, 21, 22}"
    and "{02} \<oplus> {21} = {02, 21}"
    and "{00, 01, 02, 10, 11, 12, 20, 21, 22} \<odot> {02, 21} = {01, 02, 11, 12, 21, 22}"
  by eval+

lemma lshore_lshore [simp]: "lshore (p \<odot> q) r = lshore q (lshore p r)"
proof -
  have 1: "(p \<odot> q) \<odot> lshore (p \<odot> q) r = p \<odot> (q \<odot> lshore (p \<odot> q) r)"
    by (rule trip_assoc)
  hence 2: "p \<odot> (q \<odot> lshore (p \<odot> q) r) \<le> (p \<odot> q) \<odot> lshore (p \<odot> q) r"
    by (rule ge_of_eq)
  have 3: "(p \<odot> q) \<odot> lshore (p \<odot> q) r \<le> r" by (rule trip_lshore_le)
  from 2 3 have 4: "p \<odot> (q \<odot> lshore (p \<odot> q) r) \<le> r" by (rule le_trans)
  hence 5: "q \<odot> lshore (p \<odot> q) r \<le> lshore p r" by (simp only: le_lshore_iff)
  hence 6: "lshore (p \<odot> q) r \<le> lshore q (lshore p r)" by (simp only: le_lshore_iff)
  have 7: "(p \<odot> q) \<odot> lshore q (lshore p r) = p \<odot> (q \<odot> lshore q (lshore p r))"
    by (rule trip_assoc)
  then have 8: "(p \<odot> q) \<odot> lshore q (lshore p r) \<le> p \<odot> (q \<odot> lshore q (lshore p r))"
    by (rule le_of_eq)
  have 9: "q \<odot> lshore q (lshore p r) \<le> lshore p r" by (rule trip_lshore_le)
  hence 10: "p \<odot> (q \<odot> lshore q (lshore p r)) \<le> r" by (simp only: le_lshore_iff)
  have 11: "(p \<odot> q) \<odot> lshore q (lshore p r) \<le> r" using 8 10 by (rule le_trans)
  hence 12: "lshore q (lshore p r) \<le> lshore (p \<odot> q) r" by (simp only: le_lshore_iff)
  from 6 12 show ?thesis by (rule le_antisymm)
qed

lemma rshore_trip_le: "rshore r p \<odot> p \<le> r"
proof -
  have 1: "rshore r p \<le> rshore r p" by (rule le_refl)
  then show ?thesis by (simp only: le_rshore_iff)
qed

text \<open>The order in which both sides are taken off does not matter.\<close>

lemma lshore_rshore_le: "rshore (lshore p r) q \<le> lshore p (rshore r q)"
proof -
  have 1: "(p \<odot> rshore (lshore p r) q) \<odot> q = p \<odot> (rshore (lshore p r) q \<odot> q)"
    by (rule trip_assoc)
  then have 2: "(p \<odot> rshore (lshore p r) q) \<odot> q \<le> p \<odot> (rshore (lshore p r) q \<odot> q)"
    by (rule le_of_eq)
  have 3: "rshore (lshore p r) q \<odot> q \<le> lshore p r" by (rule rshore_trip_le)
  then have 4: "p \<odot> (rshore (lshore p r) q \<odot> q) \<le> r"
    by (simp only: le_lshore_iff)
  have 5: "(p \<odot> rshore (lshore p r) q) \<odot> q \<le> r" using 2 4 by (rule le_trans)
  then have 6: "p \<odot> rshore (lshore p r) q \<le> rshore r q" by (simp only: le_rshore_iff)
  then show ?thesis by (simp only: le_lshore_iff)
qed

lemma le_rshore_lshore: "p \<le> rshore r (lshore p r)"
proof -
  have 1: "p \<odot> lshore p r \<le> r" by (rule trip_lshore_le)
  then show ?thesis by (simp only: le_rshore_iff)
qed

lemma le_lshore_rshore: "p \<le> lshore (rshore r p) r"
proof -
  have 1: "rshore r p \<odot> p \<le> r" by (rule rshore_trip_le)
  thus ?thesis by (simp only: le_lshore_iff)
qed

text \<open>An instance of @{thm [source] lshore_rshore_le} in the line with three piers:
p = {21}, q = {00}, r = {10, 21}.\<close>

lemma
  shows "lshore {21} {10, 21} = {00, 01, 02, 11, 20, 21, 22}"
    and "rshore {00, 01, 02, 11, 20, 21, 22} {00} = {00, 01, 02, 11, 12, 20, 21, 22}"
    and "rshore {10, 21} {00} = {01, 02, 10, 11, 12, 21, 22}"
    and "lshore {21} {01, 02, 10, 11, 12, 21, 22} = {00, 01, 02, 11, 12, 20, 21, 22}"
  by eval+

text \<open>Three residuals are as good as one.\<close>

lemma lshore_rshore_lshore: "lshore (rshore r (lshore p r)) r = lshore p r"
proof -
  have 1: "p \<le> rshore r (lshore p r)" by (rule le_rshore_lshore)
  then have 2: "lshore (rshore r (lshore p r)) r \<le> lshore p r" by (rule lshore_anti)
  have 3: "lshore p r \<le> lshore (rshore r (lshore p r)) r" by (rule le_lshore_rshore)
  from 2 3 show ?thesis by (rule le_antisymm)
qed

lemma trip_lshore_trip_le: "lshore p q \<odot> r \<le> lshore p (q \<odot> r)"
proof -
  have 1: "(p \<odot> lshore p q) \<odot> r = p \<odot> (lshore p q \<odot> r)"
    by (rule trip_assoc)
  then have 2: "p \<odot> (lshore p q \<odot> r) \<le> (p \<odot> lshore p q) \<odot> r"
    by (rule ge_of_eq)
  have 3: "p \<odot> lshore p q \<le> q" by (rule trip_lshore_le)
  then have 4: "(p \<odot> lshore p q) \<odot> r \<le> q \<odot> r" by (rule trip_mono_left)
  have 5: "p \<odot> (lshore p q \<odot> r) \<le> q \<odot> r" using 2 4 by (rule le_trans)
  then show ?thesis by (simp only: le_lshore_iff)
qed

text \<open>Composing with the lshore of a element by itself changes nothing.\<close>

lemma trip_lshore_self: "p \<odot> lshore p p = p"
proof -
  have 1: "p \<odot> lshore p p \<le> p" by (rule trip_lshore_le)
  have 2: "p \<odot> \<one> = p" by (rule trip_berth)
  hence 3: "p \<le> p \<odot> \<one>" by (rule ge_of_eq)
  have 4: "\<one> \<le> lshore p p" by (rule berth_le_lshore)
  hence 5: "p \<odot> \<one> \<le> p \<odot> lshore p p" by (rule trip_mono_right)
  have 6: "p \<le> p \<odot> lshore p p" using 3 5 by (rule le_trans)
  from 1 6 show ?thesis by (rule le_antisymm)
qed

subsection \<open>Iteration\<close>

text \<open>We show that \<^emph>\<open>two iterations in a row are one\<close> (@{thm
[source] shuttle_trip_shuttle}).\<close>

lemma le_shuttle: "p \<le> shuttle p"
proof -
  have 1: "p \<odot> \<one> = p" by (rule trip_berth)
  hence 2: "p \<le> p \<odot> \<one>" by (rule ge_of_eq)
  have 3: "\<one> \<le> shuttle p" by (rule berth_le_shuttle)
  hence 4: "p \<odot> \<one> \<le> p \<odot> shuttle p" by (rule trip_mono_right)
  have 5: "p \<odot> shuttle p \<le> shuttle p" using trip_shuttle_le by blast
  from 4 5 have 6: "p \<odot> \<one> \<le> shuttle p" by (rule le_trans)
  from 2 6 show ?thesis by (rule le_trans)
qed

lemma shuttle_le_of:
  assumes "\<one> \<le> q"
    and "p \<odot> q \<le> q"
  shows "shuttle p \<le> q"
proof -
  have 1: "shuttle p \<odot> \<one> = shuttle p" by (rule trip_berth)
  then have 2: "shuttle p \<le> shuttle p \<odot> \<one>" by (rule ge_of_eq)
  have 3: "shuttle p \<odot> \<one> \<le> q" using assms(1) assms(2) by (rule shuttle_induct)
  from 2 3 show ?thesis by (rule le_trans)
qed

text \<open>An instance of @{thm [source] rshore_trip_le} in the line with three piers: p
= {00}, r = {01, 10, 12, 22}.\<close>

lemma
  shows "rshore {01, 10, 12, 22} {00} = {01, 02, 10, 11, 12, 21, 22}"
    and "{01, 02, 10, 11, 12, 21, 22} \<odot> {00} = {10}"
  by eval+

lemma shuttle_trip_shuttle: "shuttle p \<odot> shuttle p \<le> shuttle p"
proof -
  have 1: "shuttle p \<le> shuttle p" by (rule le_refl)
  have 2: "p \<odot> shuttle p \<le> shuttle p" by (rule trip_shuttle_le)
  from 1 2 show ?thesis by (rule shuttle_induct)
qed

lemma shuttle_trip_shuttle_eq: "shuttle p \<odot> shuttle p = shuttle p"
proof -
  have 1: "shuttle p \<odot> shuttle p \<le> shuttle p" using shuttle_trip_shuttle by blast
  have 2: "shuttle p \<odot> \<one> = shuttle p" by (rule trip_berth)
  then have 3: "shuttle p \<le> shuttle p \<odot> \<one>" by (rule ge_of_eq)
  have 4: "\<one> \<le> shuttle p" by (rule berth_le_shuttle)
  then have 5: "shuttle p \<odot> \<one> \<le> shuttle p \<odot> shuttle p"
    by (rule trip_mono_right)
  from 3 5 have 6: "shuttle p \<le> shuttle p \<odot> shuttle p" by (rule le_trans)
  show ?thesis using 1 6 by (rule le_antisymm)
qed

lemma shuttle_mono:
  assumes "p \<le> q"
  shows "shuttle p \<le> shuttle q"
proof -
  have 1: "\<one> \<le> shuttle q" using berth_le_shuttle by blast
  have 2: "p \<odot> shuttle q \<le> q \<odot> shuttle q" using assms by (rule trip_mono_left)
  have 3: "q \<odot> shuttle q \<le> shuttle q" by (rule trip_shuttle_le)
  from 2 3 have 4: "p \<odot> shuttle q \<le> shuttle q" by (rule le_trans)
  show ?thesis using 1 4 by (rule shuttle_le_of)
qed

text \<open>Iterating an iteration gives nothing new.\<close>

lemma shuttle_shuttle: "shuttle (shuttle p) = shuttle p"
proof -
  have 1: "\<one> \<le> shuttle p" by (rule berth_le_shuttle)
  have 2: "shuttle p \<odot> shuttle p \<le> shuttle p" by (rule shuttle_trip_shuttle)
  have 3: "shuttle (shuttle p) \<le> shuttle p" using 1 2 by (rule shuttle_le_of)
  have 4: "shuttle p \<le> shuttle (shuttle p)" by (rule le_shuttle)
  show ?thesis using 3 4 by (rule le_antisymm)
qed

text \<open>Iterating the berth gives the berth.\<close>

lemma shuttle_berth: "shuttle \<one> = \<one>"
proof -
  have 1: "\<one> \<le> \<one>" by (rule le_refl)
  have 2: "\<one> \<odot> \<one> = \<one>" using berth_trip by blast
  hence 3: "\<one> \<odot> \<one> \<le> \<one>" by (rule le_of_eq)
  have 4: "shuttle \<one> \<le> \<one>" using 1 3 by (rule shuttle_le_of)
  have 5: "\<one> \<le> shuttle \<one>" by (rule berth_le_shuttle)
  show ?thesis using 4 5 by (rule le_antisymm)
qed

text \<open>An instance of @{thm [source] shuttle_mono} in the line with three piers: p =
{00, 20}, q = {00, 01, 02, 10, 11, 12, 20, 21, 22}.\<close>

lemma
  shows "shuttle {00, 20} = {00, 11, 20, 22}"
    and "shuttle {00, 01, 02, 10, 11, 12, 20, 21, 22} = {00, 01, 02, 10, 11, 12, 20, 21, 22}"
  by eval+

text \<open>A part may be iterated alone.\<close>

lemma shuttle_le_shuttle_merge: "shuttle p \<le> shuttle (p \<oplus> q)"
proof -
  have 1: "p \<le> p \<oplus> q" by (rule le_merge_left)
  thus ?thesis by (rule shuttle_mono)
qed

lemma merge_shuttle_le: "shuttle p \<oplus> shuttle q \<le> shuttle (p \<oplus> q)"
proof -
  have 1: "p \<le> p \<oplus> q" by (rule le_merge_left)
  hence 2: "shuttle p \<le> shuttle (p \<oplus> q)" by (rule shuttle_mono)
  have 3: "q \<le> p \<oplus> q" by (rule le_merge_right)
  hence 4: "shuttle q \<le> shuttle (p \<oplus> q)" by (rule shuttle_mono)
  from 2 4 show ?thesis by (rule merge_le)
qed

lemma shuttle_unfold: "\<one> \<oplus> p \<odot> shuttle p \<le> shuttle p"
proof -
  have 1: "\<one> \<le> shuttle p" by (rule berth_le_shuttle)
  have 2: "p \<odot> shuttle p \<le> shuttle p" by (rule trip_shuttle_le)
  from 1 2 show ?thesis by (rule merge_le)
qed

lemma shuttle_le_unfold: "shuttle p \<le> \<one> \<oplus> p \<odot> shuttle p"
proof -
  have 1: "\<one> \<le> \<one> \<oplus> p \<odot> shuttle p" using le_merge_left by blast
  have 2: "\<one> \<le> shuttle p" by (rule berth_le_shuttle)
  have 3: "p \<odot> shuttle p \<le> shuttle p" using trip_shuttle_le by blast
  from 2 3 have 4: "\<one> \<oplus> p \<odot> shuttle p \<le> shuttle p" by (rule merge_le)
  then have 5: "p \<odot> (\<one> \<oplus> p \<odot> shuttle p) \<le> p \<odot> shuttle p"
    by (rule trip_mono_right)
  have 6: "p \<odot> shuttle p \<le> \<one> \<oplus> p \<odot> shuttle p"
    using le_merge_right by blast
  from 5 6 have 7: "p \<odot> (\<one> \<oplus> p \<odot> shuttle p) \<le> \<one> \<oplus> p \<odot> shuttle p"
    by (rule le_trans)
  from 1 7 show ?thesis by (rule shuttle_le_of)
qed

text \<open>The shuttle solves its own equation.\<close>

lemma shuttle_eq_unfold [simp]: "shuttle p = \<one> \<oplus> p \<odot> shuttle p"
proof -
  have 1: "shuttle p \<le> \<one> \<oplus> p \<odot> shuttle p" by (rule shuttle_le_unfold)
  have 2: "\<one> \<oplus> p \<odot> shuttle p \<le> shuttle p" by (rule shuttle_unfold)
  show ?thesis using 1 2 by (rule le_antisymm)
qed

lemma shuttle_simulate:
  assumes "p \<odot> q \<le> q \<odot> r"
  shows "shuttle p \<odot> q \<le> q \<odot> shuttle r"
proof -
  have 1: "q \<odot> \<one> = q" by (rule trip_berth)
  hence 2: "q \<le> q \<odot> \<one>" by (rule ge_of_eq)
  have 3: "\<one> \<le> shuttle r" by (rule berth_le_shuttle)
  hence 4: "q \<odot> \<one> \<le> q \<odot> shuttle r" by (rule trip_mono_right)
  have 5: "q \<le> q \<odot> shuttle r" using 2 4 by (rule le_trans)
  from assms have 6: "p \<odot> (q \<odot> shuttle r) \<le> (q \<odot> r) \<odot> shuttle r"
    by (rule trip_trip_le)
  have 7: "(q \<odot> r) \<odot> shuttle r = q \<odot> (r \<odot> shuttle r)"
    by (rule trip_assoc)
  hence 8: "(q \<odot> r) \<odot> shuttle r \<le> q \<odot> (r \<odot> shuttle r)"
    by (rule le_of_eq)
  have 9: "r \<odot> shuttle r \<le> shuttle r" by (rule trip_shuttle_le)
  then have 10: "q \<odot> (r \<odot> shuttle r) \<le> q \<odot> shuttle r"
    by (rule trip_mono_right)
  from 8 10 have 11: "(q \<odot> r) \<odot> shuttle r \<le> q \<odot> shuttle r"
    by (rule le_trans)
  have 12: "p \<odot> (q \<odot> shuttle r) \<le> q \<odot> shuttle r"
    using 6 11 by (rule le_trans)
  from 5 12 show ?thesis by (rule shuttle_induct)
qed

lemma shuttle_slide_le: "shuttle (p \<odot> q) \<odot> p \<le> p \<odot> shuttle (q \<odot> p)"
proof -
  have 1: "(p \<odot> q) \<odot> p = p \<odot> (q \<odot> p)" by (rule trip_assoc)
  then have 2: "(p \<odot> q) \<odot> p \<le> p \<odot> (q \<odot> p)" by (rule le_of_eq)
  then show ?thesis by (rule shuttle_simulate)
qed

lemma trip_trip_ge:
  assumes "q \<odot> p \<le> r"
  shows "(s \<odot> q) \<odot> p \<le> s \<odot> r"
proof -
  have 1: "(s \<odot> q) \<odot> p = s \<odot> (q \<odot> p)" using trip_assoc by blast
  then have 2: "(s \<odot> q) \<odot> p \<le> s \<odot> (q \<odot> p)" by (rule le_of_eq)
  from assms have 3: "s \<odot> (q \<odot> p) \<le> s \<odot> r" by (rule trip_mono_right)
  show ?thesis using 2 3 by (rule le_trans)
qed

lemma shuttle_cosimulate:
  assumes "q \<odot> p \<le> r \<odot> q"
  shows "q \<odot> shuttle p \<le> shuttle r \<odot> q"
proof -
  have 1: "\<one> \<odot> q = q" by (rule berth_trip)
  then have 2: "q \<le> \<one> \<odot> q" by (rule ge_of_eq)
  have 3: "\<one> \<le> shuttle r" using berth_le_shuttle by blast
  hence 4: "\<one> \<odot> q \<le> shuttle r \<odot> q" by (rule trip_mono_left)
  from 2 4 have 5: "q \<le> shuttle r \<odot> q" by (rule le_trans)
  from assms have 6: "(shuttle r \<odot> q) \<odot> p \<le> shuttle r \<odot> (r \<odot> q)"
    by (rule trip_trip_ge)
  have 7: "(shuttle r \<odot> r) \<odot> q = shuttle r \<odot> (r \<odot> q)"
    by (rule trip_assoc)
  hence 8: "shuttle r \<odot> (r \<odot> q) \<le> (shuttle r \<odot> r) \<odot> q"
    by (rule ge_of_eq)
  have 9: "shuttle r \<odot> r \<le> shuttle r" using shuttle_trip_le by blast
  then have 10: "(shuttle r \<odot> r) \<odot> q \<le> shuttle r \<odot> q"
    by (rule trip_mono_left)
  from 8 10 have 11: "shuttle r \<odot> (r \<odot> q) \<le> shuttle r \<odot> q"
    by (rule le_trans)
  have 12: "(shuttle r \<odot> q) \<odot> p \<le> shuttle r \<odot> q"
    using 6 11 by (rule le_trans)
  show ?thesis using 5 12 by (rule shuttle_coinduct)
qed

text \<open>An instance of @{thm [source] shuttle_le_unfold} in the line with three piers:
p = {01, 02, 10, 12}.\<close>

lemma
  shows "shuttle {01, 02, 10, 12} = {00, 01, 02, 10, 11, 12, 22}"
    and "{01, 02, 10, 12} \<odot> {00, 01, 02, 10, 11, 12, 22} = {00, 01, 02, 10, 11, 12}"
    and "\<one> \<oplus> {00, 01, 02, 10, 11, 12} = {00, 01, 02, 10, 11, 12, 22}"
  by eval+

text \<open>A step may be slid through an iteration.\<close>

lemma shuttle_slide_ge: "p \<odot> shuttle (q \<odot> p) \<le> shuttle (p \<odot> q) \<odot> p"
proof -
  have 1: "(p \<odot> q) \<odot> p = p \<odot> (q \<odot> p)" using trip_assoc by blast
  then have 2: "p \<odot> (q \<odot> p) \<le> (p \<odot> q) \<odot> p" by (rule ge_of_eq)
  then show ?thesis by (rule shuttle_cosimulate)
qed

lemma shuttle_slide: "shuttle (p \<odot> q) \<odot> p = p \<odot> shuttle (q \<odot> p)"
proof -
  have 1: "shuttle (p \<odot> q) \<odot> p \<le> p \<odot> shuttle (q \<odot> p)"
    by (rule shuttle_slide_le)
  have 2: "p \<odot> shuttle (q \<odot> p) \<le> shuttle (p \<odot> q) \<odot> p"
    by (rule shuttle_slide_ge)
  from 1 2 show ?thesis by (rule le_antisymm)
qed

text \<open>An instance of @{thm [source] merge_shuttle_le} in the line with three piers:
p = {01, 02, 10, 12}, q = {21}.\<close>

lemma
  shows "shuttle {21} = {00, 11, 21, 22}"
    and "shuttle {01, 02, 10, 12} = {00, 01, 02, 10, 11, 12, 22}"
    and "{00, 01, 02, 10, 11, 12, 22} \<oplus> {00, 11, 21, 22} = {00, 01, 02, 10, 11, 12, 21, 22}"
    and "{01, 02, 10, 12} \<oplus> {21} = {01, 02, 10, 12, 21}"
    and "shuttle {01, 02, 10, 12, 21} = {00, 01, 02, 10, 11, 12, 20, 21, 22}"
  by eval+

lemma trip_shuttle_le_of_le:
  assumes "q \<odot> p \<le> q"
  shows "q \<odot> shuttle p \<le> q"
proof -
  have 1: "q \<le> q" by (rule le_refl)
  from 1 assms show ?thesis by (rule shuttle_coinduct)
qed

lemma shuttle_lshore: "shuttle (lshore p p) = lshore p p"
proof -
  have 1: "\<one> \<le> lshore p p" by (rule berth_le_lshore)
  have 2: "lshore p p \<odot> lshore p p \<le> lshore p p" using lshore_trip_lshore by blast
  from 1 2 have 3: "shuttle (lshore p p) \<le> lshore p p" by (rule shuttle_le_of)
  have 4: "lshore p p \<le> shuttle (lshore p p)" by (rule le_shuttle)
  from 3 4 show ?thesis by (rule le_antisymm)
qed

theorem first_digest:
  shows "p \<oplus> q = q \<oplus> p"
    and "p \<le> q \<Longrightarrow> r \<odot> p \<le> r \<odot> q"
    and "p \<odot> (q \<oplus> r) = p \<odot> q \<oplus> p \<odot> r"
    and "p \<le> \<one> \<Longrightarrow> p \<odot> q \<le> q"
    and "p \<odot> lshore p r \<le> r"
    and "lshore (p \<odot> q) r = lshore q (lshore p r)"
    and "rshore (lshore p r) q \<le> lshore p (rshore r q)"
    and "q \<odot> p \<le> r \<odot> q \<Longrightarrow> q \<odot> shuttle p \<le> shuttle r \<odot> q"
    and "shuttle (lshore p p) = lshore p p"
by (fact merge_comm trip_mono_right trip_merge trip_le_of_le_berth trip_lshore_le
    lshore_lshore lshore_rshore_le shuttle_cosimulate shuttle_lshore)+

subsection \<open>Composition on the right and on the left\<close>

text \<open>The reader should note that \<^emph>\<open>a merge in the left part may be
multiplied out\<close> (@{thm [source] merge_trip_ge}).\<close>

lemma merge_trip_ge: "(q \<oplus> r) \<odot> p \<le> q \<odot> p \<oplus> r \<odot> p"
proof -
  have 1: "q \<odot> p \<le> q \<odot> p \<oplus> r \<odot> p" using le_merge_left by blast
  hence 2: "q \<le> rshore (q \<odot> p \<oplus> r \<odot> p) p" by (simp only: le_rshore_iff)
  have 3: "r \<odot> p \<le> q \<odot> p \<oplus> r \<odot> p" by (rule le_merge_right)
  then have 4: "r \<le> rshore (q \<odot> p \<oplus> r \<odot> p) p"
    by (simp only: le_rshore_iff)
  from 2 4 have 5: "q \<oplus> r \<le> rshore (q \<odot> p \<oplus> r \<odot> p) p"
    by (rule merge_le)
  thus ?thesis by (simp only: le_rshore_iff)
qed

lemma merge_trip [simp]: "(q \<oplus> r) \<odot> p = q \<odot> p \<oplus> r \<odot> p"
proof -
  have 1: "(q \<oplus> r) \<odot> p \<le> q \<odot> p \<oplus> r \<odot> p"
    by (rule merge_trip_ge)
  have 2: "q \<odot> p \<oplus> r \<odot> p \<le> (q \<oplus> r) \<odot> p"
    by (rule merge_trip_le)
  show ?thesis using 1 2 by (rule le_antisymm)
qed

lemma le_trip_of_berth_le:
  assumes "p \<le> \<one>"
  shows "q \<odot> p \<le> q"
proof -
  from assms have 1: "q \<odot> p \<le> q \<odot> \<one>" by (rule trip_mono_right)
  have 2: "q \<odot> \<one> = q" by (rule trip_berth)
  then have 3: "q \<odot> \<one> \<le> q" by (rule le_of_eq)
  show ?thesis using 1 3 by (rule le_trans)
qed

lemma trip_ge_of_ge_berth:
  assumes "\<one> \<le> p"
  shows "q \<le> q \<odot> p"
proof -
  have 1: "q \<odot> \<one> = q" by (rule trip_berth)
  then have 2: "q \<le> q \<odot> \<one>" by (rule ge_of_eq)
  from assms have 3: "q \<odot> \<one> \<le> q \<odot> p" by (rule trip_mono_right)
  from 2 3 show ?thesis by (rule le_trans)
qed

subsection \<open>The rshore\<close>

text \<open>We show that \<^emph>\<open>composing with the rshore of a element by itself
changes nothing\<close> (@{thm [source] rshore_self_trip}).\<close>

lemma le_rshore_trip: "q \<le> rshore (q \<odot> p) p"
proof -
  have 1: "q \<odot> p \<le> q \<odot> p" by (rule le_refl)
  then show ?thesis by (simp only: le_rshore_iff)
qed

lemma rshore_mono:
  assumes "q \<le> r"
  shows "rshore q p \<le> rshore r p"
proof -
  have 1: "rshore q p \<odot> p \<le> q" using rshore_trip_le by blast
  have 2: "rshore q p \<odot> p \<le> r" using 1 assms by (rule le_trans)
  thus ?thesis by (simp only: le_rshore_iff)
qed

lemma rshore_anti:
  assumes "p \<le> q"
  shows "rshore r q \<le> rshore r p"
proof -
  have 1: "rshore r q \<odot> p \<le> rshore r q \<odot> q"
    using assms by (rule trip_mono_right)
  have 2: "rshore r q \<odot> q \<le> r" by (rule rshore_trip_le)
  have 3: "rshore r q \<odot> p \<le> r" using 1 2 by (rule le_trans)
  thus ?thesis by (simp only: le_rshore_iff)
qed

text \<open>An instance of @{thm [source] trip_shuttle_le_of_le} in the line with three
piers: p = {10, 21}, q = {00, 01, 02, 10, 11, 12, 20, 21, 22}.\<close>

lemma
  shows "{00, 01, 02, 10, 11, 12, 20, 21, 22} \<odot> {10, 21} = {00, 01, 10, 11, 20, 21}"
    and "shuttle {10, 21} = {00, 10, 11, 20, 21, 22}"
    and "{00, 01, 02, 10, 11, 12, 20, 21, 22} \<odot> {00, 10, 11, 20, 21, 22} = {00, 01, 02, 10, 11, 12, 20, 21, 22}"
  by eval+

lemma rshore_berth [simp]: "rshore r \<one> = r"
proof -
  have 1: "rshore r \<one> \<odot> \<one> = rshore r \<one>" by (rule trip_berth)
  then have 2: "rshore r \<one> \<le> rshore r \<one> \<odot> \<one>" by (rule ge_of_eq)
  have 3: "rshore r \<one> \<odot> \<one> \<le> r" by (rule rshore_trip_le)
  from 2 3 have 4: "rshore r \<one> \<le> r" by (rule le_trans)
  have 5: "r \<odot> \<one> = r" by (rule trip_berth)
  then have 6: "r \<odot> \<one> \<le> r" by (rule le_of_eq)
  hence 7: "r \<le> rshore r \<one>" by (simp only: le_rshore_iff)
  show ?thesis using 4 7 by (rule le_antisymm)
qed

lemma berth_le_rshore: "\<one> \<le> rshore p p"
proof -
  have 1: "\<one> \<odot> p = p" by (rule berth_trip)
  then have 2: "\<one> \<odot> p \<le> p" by (rule le_of_eq)
  then show ?thesis by (simp only: le_rshore_iff)
qed

lemma rshore_trip_rshore: "rshore r q \<odot> rshore q p \<le> rshore r p"
proof -
  have 1: "(rshore r q \<odot> rshore q p) \<odot> p = rshore r q \<odot> (rshore q p \<odot> p)"
    by (rule trip_assoc)
  then have 2: "(rshore r q \<odot> rshore q p) \<odot> p \<le> rshore r q \<odot> (rshore q p \<odot> p)"
    by (rule le_of_eq)
  have 3: "rshore q p \<odot> p \<le> q" by (rule rshore_trip_le)
  then have 4: "rshore r q \<odot> (rshore q p \<odot> p) \<le> rshore r q \<odot> q"
    by (rule trip_mono_right)
  have 5: "rshore r q \<odot> q \<le> r" using rshore_trip_le by blast
  from 4 5 have 6: "rshore r q \<odot> (rshore q p \<odot> p) \<le> r" by (rule le_trans)
  have 7: "(rshore r q \<odot> rshore q p) \<odot> p \<le> r" using 2 6 by (rule le_trans)
  then show ?thesis by (simp only: le_rshore_iff)
qed

lemma rshore_rshore [simp]: "rshore r (q \<odot> p) = rshore (rshore r p) q"
proof -
  have 1: "(rshore r (q \<odot> p) \<odot> q) \<odot> p = rshore r (q \<odot> p) \<odot> (q \<odot> p)"
    by (rule trip_assoc)
  hence 2: "(rshore r (q \<odot> p) \<odot> q) \<odot> p \<le> rshore r (q \<odot> p) \<odot> (q \<odot> p)"
    by (rule le_of_eq)
  have 3: "rshore r (q \<odot> p) \<odot> (q \<odot> p) \<le> r" by (rule rshore_trip_le)
  from 2 3 have 4: "(rshore r (q \<odot> p) \<odot> q) \<odot> p \<le> r" by (rule le_trans)
  hence 5: "rshore r (q \<odot> p) \<odot> q \<le> rshore r p" by (simp only: le_rshore_iff)
  hence 6: "rshore r (q \<odot> p) \<le> rshore (rshore r p) q" by (simp only: le_rshore_iff)
  have 7: "(rshore (rshore r p) q \<odot> q) \<odot> p = rshore (rshore r p) q \<odot> (q \<odot> p)"
    by (rule trip_assoc)
  then have 8: "rshore (rshore r p) q \<odot> (q \<odot> p) \<le> (rshore (rshore r p) q \<odot> q) \<odot> p"
    by (rule ge_of_eq)
  have 9: "rshore (rshore r p) q \<odot> q \<le> rshore r p" using rshore_trip_le by blast
  hence 10: "(rshore (rshore r p) q \<odot> q) \<odot> p \<le> r" by (simp only: le_rshore_iff)
  have 11: "rshore (rshore r p) q \<odot> (q \<odot> p) \<le> r" using 8 10 by (rule le_trans)
  hence 12: "rshore (rshore r p) q \<le> rshore r (q \<odot> p)" by (simp only: le_rshore_iff)
  from 6 12 show ?thesis by (rule le_antisymm)
qed

text \<open>An instance of @{thm [source] rshore_berth} in the line with three piers: r =
{00, 01, 02, 10, 11, 12, 20, 21, 22}.\<close>

lemma
  shows "rshore {00, 01, 02, 10, 11, 12, 20, 21, 22} \<one> = {00, 01, 02, 10, 11, 12, 20, 21, 22}"
  by eval+

lemma rshore_lshore_le: "lshore q (rshore r p) \<le> rshore (lshore q r) p"
proof -
  have 1: "(q \<odot> lshore q (rshore r p)) \<odot> p = q \<odot> (lshore q (rshore r p) \<odot> p)"
    by (rule trip_assoc)
  then have 2: "q \<odot> (lshore q (rshore r p) \<odot> p) \<le> (q \<odot> lshore q (rshore r p)) \<odot> p"
    by (rule ge_of_eq)
  have 3: "q \<odot> lshore q (rshore r p) \<le> rshore r p" using trip_lshore_le by blast
  hence 4: "(q \<odot> lshore q (rshore r p)) \<odot> p \<le> r" by (simp only: le_rshore_iff)
  have 5: "q \<odot> (lshore q (rshore r p) \<odot> p) \<le> r" using 2 4 by (rule le_trans)
  hence 6: "lshore q (rshore r p) \<odot> p \<le> lshore q r" by (simp only: le_lshore_iff)
  thus ?thesis by (simp only: le_rshore_iff)
qed

lemma rshore_lshore_rshore [simp]: "rshore r (lshore (rshore r p) r) = rshore r p"
proof -
  have 1: "p \<le> lshore (rshore r p) r" by (rule le_lshore_rshore)
  then have 2: "rshore r (lshore (rshore r p) r) \<le> rshore r p" by (rule rshore_anti)
  have 3: "rshore r p \<le> rshore r (lshore (rshore r p) r)" by (rule le_rshore_lshore)
  show ?thesis using 2 3 by (rule le_antisymm)
qed

lemma trip_rshore_trip_le: "r \<odot> rshore q p \<le> rshore (r \<odot> q) p"
proof -
  have 1: "(r \<odot> rshore q p) \<odot> p = r \<odot> (rshore q p \<odot> p)"
    by (rule trip_assoc)
  hence 2: "(r \<odot> rshore q p) \<odot> p \<le> r \<odot> (rshore q p \<odot> p)"
    by (rule le_of_eq)
  have 3: "rshore q p \<odot> p \<le> q" by (rule rshore_trip_le)
  then have 4: "r \<odot> (rshore q p \<odot> p) \<le> r \<odot> q" by (rule trip_mono_right)
  from 2 4 have 5: "(r \<odot> rshore q p) \<odot> p \<le> r \<odot> q" by (rule le_trans)
  thus ?thesis by (simp only: le_rshore_iff)
qed

lemma rshore_self_trip [simp]: "rshore p p \<odot> p = p"
proof -
  have 1: "rshore p p \<odot> p \<le> p" by (rule rshore_trip_le)
  have 2: "\<one> \<odot> p = p" by (rule berth_trip)
  hence 3: "p \<le> \<one> \<odot> p" by (rule ge_of_eq)
  have 4: "\<one> \<le> rshore p p" by (rule berth_le_rshore)
  then have 5: "\<one> \<odot> p \<le> rshore p p \<odot> p" by (rule trip_mono_left)
  have 6: "p \<le> rshore p p \<odot> p" using 3 5 by (rule le_trans)
  show ?thesis using 1 6 by (rule le_antisymm)
qed

subsection \<open>Iteration\<close>

text \<open>The reader should note that \<^emph>\<open>what absorbs a step absorbs an
iteration\<close> (@{thm [source] shuttle_trip_le_of_le}).\<close>

lemma shuttle_le_of_right:
  assumes "\<one> \<le> q"
    and "q \<odot> p \<le> q"
  shows "shuttle p \<le> q"
proof -
  have 1: "\<one> \<odot> shuttle p = shuttle p" by (rule berth_trip)
  then have 2: "shuttle p \<le> \<one> \<odot> shuttle p" by (rule ge_of_eq)
  from assms(1) assms(2) have 3: "\<one> \<odot> shuttle p \<le> q" by (rule shuttle_coinduct)
  show ?thesis using 2 3 by (rule le_trans)
qed

lemma shuttle_unfold_right: "\<one> \<oplus> shuttle p \<odot> p \<le> shuttle p"
proof -
  have 1: "\<one> \<le> shuttle p" by (rule berth_le_shuttle)
  have 2: "shuttle p \<odot> p \<le> shuttle p" by (rule shuttle_trip_le)
  from 1 2 show ?thesis by (rule merge_le)
qed

lemma shuttle_le_unfold_right: "shuttle p \<le> \<one> \<oplus> shuttle p \<odot> p"
proof -
  have 1: "\<one> \<le> \<one> \<oplus> shuttle p \<odot> p" by (rule le_merge_left)
  have 2: "\<one> \<le> shuttle p" by (rule berth_le_shuttle)
  have 3: "shuttle p \<odot> p \<le> shuttle p" by (rule shuttle_trip_le)
  have 4: "\<one> \<oplus> shuttle p \<odot> p \<le> shuttle p" using 2 3 by (rule merge_le)
  then have 5: "(\<one> \<oplus> shuttle p \<odot> p) \<odot> p \<le> shuttle p \<odot> p"
    by (rule trip_mono_left)
  have 6: "shuttle p \<odot> p \<le> \<one> \<oplus> shuttle p \<odot> p"
    using le_merge_right by blast
  from 5 6 have 7: "(\<one> \<oplus> shuttle p \<odot> p) \<odot> p \<le> \<one> \<oplus> shuttle p \<odot> p"
    by (rule le_trans)
  from 1 7 show ?thesis by (rule shuttle_le_of_right)
qed

lemma shuttle_eq_unfold_right [simp]: "shuttle p = \<one> \<oplus> shuttle p \<odot> p"
proof -
  have 1: "shuttle p \<le> \<one> \<oplus> shuttle p \<odot> p"
    by (rule shuttle_le_unfold_right)
  have 2: "\<one> \<oplus> shuttle p \<odot> p \<le> shuttle p" by (rule shuttle_unfold_right)
  from 1 2 show ?thesis by (rule le_antisymm)
qed

text \<open>An instance of @{thm [source] rshore_rshore} in the line with three piers: p =
{01, 10, 12, 22}, q = {10, 21}, r = {22}.\<close>

lemma
  shows "{10, 21} \<odot> {01, 10, 12, 22} = {11, 20, 22}"
    and "rshore {22} {11, 20, 22} = {00, 10, 20}"
    and "rshore {22} {01, 10, 12, 22} = {22}"
    and "rshore {22} {10, 21} = {00, 10, 20}"
  by eval+

lemma shuttle_trip_le_of_le:
  assumes "p \<odot> q \<le> q"
  shows "shuttle p \<odot> q \<le> q"
proof -
  have 1: "q \<le> q" by (rule le_refl)
  show ?thesis using 1 assms by (rule shuttle_induct)
qed

text \<open>The rshore of a element by itself is its own shuttle.\<close>

lemma shuttle_rshore: "shuttle (rshore p p) = rshore p p"
proof -
  have 1: "\<one> \<le> rshore p p" by (rule berth_le_rshore)
  have 2: "rshore p p \<odot> rshore p p \<le> rshore p p" by (rule rshore_trip_rshore)
  from 1 2 have 3: "shuttle (rshore p p) \<le> rshore p p" by (rule shuttle_le_of_right)
  have 4: "rshore p p \<le> shuttle (rshore p p)" by (rule le_shuttle)
  from 3 4 show ?thesis by (rule le_antisymm)
qed

theorem second_digest:
  shows "r \<odot> p \<oplus> r \<odot> q \<le> r \<odot> (p \<oplus> q)"
    and "rshore r p \<odot> p \<le> r"
    and "p \<odot> lshore p p = p"
    and "p \<le> q \<Longrightarrow> shuttle p \<le> shuttle q"
    and "p \<odot> q \<le> q \<odot> r \<Longrightarrow> shuttle p \<odot> q \<le> q \<odot> shuttle r"
    and "(q \<oplus> r) \<odot> p = q \<odot> p \<oplus> r \<odot> p"
    and "rshore r q \<odot> rshore q p \<le> rshore r p"
    and "rshore r (lshore (rshore r p) r) = rshore r p"
    and "r \<odot> rshore q p \<le> rshore (r \<odot> q) p"
by (fact trip_merge_ge rshore_trip_le trip_lshore_self shuttle_mono shuttle_simulate
    merge_trip rshore_trip_rshore rshore_lshore_rshore trip_rshore_trip_le)+

subsection \<open>Turning around\<close>

text \<open>We show that \<^emph>\<open>turning around commutes with the shuttle\<close>
(@{thm [source] recross_shuttle}).\<close>

text \<open>An inequality may be turned around.\<close>

lemma recross_le:
  assumes "recross p \<le> q"
  shows "p \<le> recross q"
proof -
  have 1: "recross (recross p) = p" by (rule recross_recross)
  hence 2: "p \<le> recross (recross p)" by (rule ge_of_eq)
  from assms have 3: "recross (recross p) \<le> recross q" by (rule recross_mono)
  show ?thesis using 2 3 by (rule le_trans)
qed

lemma le_recross:
  assumes "p \<le> recross q"
  shows "recross p \<le> q"
proof -
  from assms have 1: "recross p \<le> recross (recross q)" by (rule recross_mono)
  have 2: "recross (recross q) = q" using recross_recross by blast
  then have 3: "recross (recross q) \<le> q" by (rule le_of_eq)
  show ?thesis using 1 3 by (rule le_trans)
qed

text \<open>An instance of @{thm [source] rshore_lshore_rshore} in the line with three
piers: p = {01, 10, 12, 22}, r = {00, 01, 10, 20}.\<close>

lemma
  shows "rshore {00, 01, 10, 20} {01, 10, 12, 22} = {00}"
    and "lshore {00} {00, 01, 10, 20} = {00, 01, 10, 11, 12, 20, 21, 22}"
    and "rshore {00, 01, 10, 20} {00, 01, 10, 11, 12, 20, 21, 22} = {00}"
  by eval+

lemma recross_berth [simp]: "recross \<one> = \<one>"
proof -
  have 1: "recross \<one> \<odot> \<one> = recross \<one>" by (rule trip_berth)
  then have 2: "recross \<one> \<le> recross \<one> \<odot> \<one>" by (rule ge_of_eq)
  have 3: "recross (recross \<one>) = \<one>" using recross_recross by blast
  then have 4: "\<one> \<le> recross (recross \<one>)" by (rule ge_of_eq)
  hence 5: "recross \<one> \<odot> \<one> \<le> recross \<one> \<odot> recross (recross \<one>)"
    by (rule trip_mono_right)
  have 6: "recross (recross \<one> \<odot> \<one>) = recross \<one> \<odot> recross (recross \<one>)"
    by (rule recross_trip)
  then have 7: "recross \<one> \<odot> recross (recross \<one>) \<le> recross (recross \<one> \<odot> \<one>)"
    by (rule ge_of_eq)
  from 5 7 have 8: "recross \<one> \<odot> \<one> \<le> recross (recross \<one> \<odot> \<one>)"
    by (rule le_trans)
  have 9: "recross \<one> \<odot> \<one> \<le> recross \<one>" using 1 by (rule le_of_eq)
  then have 10: "recross (recross \<one> \<odot> \<one>) \<le> recross (recross \<one>)"
    by (rule recross_mono)
  have 11: "recross (recross \<one>) \<le> \<one>" using 3 by (rule le_of_eq)
  have 12: "recross (recross \<one> \<odot> \<one>) \<le> \<one>"
    using 10 11 by (rule le_trans)
  from 8 12 have 13: "recross \<one> \<odot> \<one> \<le> \<one>" by (rule le_trans)
  from 2 13 have 14: "recross \<one> \<le> \<one>" by (rule le_trans)
  from 2 have 15: "\<one> \<le> recross (recross \<one> \<odot> \<one>)" by (rule recross_le)
  from 6 have 16: "recross (recross \<one> \<odot> \<one>) \<le> recross \<one> \<odot> recross (recross \<one>)"
    by (rule le_of_eq)
  have 17: "\<one> \<le> recross \<one> \<odot> recross (recross \<one>)"
    using 15 16 by (rule le_trans)
  from 11 have 18: "recross \<one> \<odot> recross (recross \<one>) \<le> recross \<one> \<odot> \<one>"
    by (rule trip_mono_right)
  have 19: "recross \<one> \<odot> recross (recross \<one>) \<le> recross \<one>"
    using 18 9 by (rule le_trans)
  have 20: "\<one> \<le> recross \<one>" using 17 19 by (rule le_trans)
  from 14 20 show ?thesis by (rule le_antisymm)
qed

lemma recross_merge [simp]: "recross (p \<oplus> q) = recross p \<oplus> recross q"
proof -
  have 1: "recross p \<le> recross p \<oplus> recross q" by (rule le_merge_left)
  hence 2: "p \<le> recross (recross p \<oplus> recross q)" by (rule recross_le)
  have 3: "recross q \<le> recross p \<oplus> recross q" by (rule le_merge_right)
  then have 4: "q \<le> recross (recross p \<oplus> recross q)" by (rule recross_le)
  from 2 4 have 5: "p \<oplus> q \<le> recross (recross p \<oplus> recross q)"
    by (rule merge_le)
  hence 6: "recross (p \<oplus> q) \<le> recross p \<oplus> recross q" by (rule le_recross)
  have 7: "p \<le> p \<oplus> q" by (rule le_merge_left)
  hence 8: "recross p \<le> recross (p \<oplus> q)" by (rule recross_mono)
  have 9: "q \<le> p \<oplus> q" by (rule le_merge_right)
  hence 10: "recross q \<le> recross (p \<oplus> q)" by (rule recross_mono)
  have 11: "recross p \<oplus> recross q \<le> recross (p \<oplus> q)"
    using 8 10 by (rule merge_le)
  from 6 11 show ?thesis by (rule le_antisymm)
qed

text \<open>Turning around an iteration, first half.\<close>

lemma recross_shuttle_le: "shuttle (recross p) \<le> recross (shuttle p)"
proof -
  have 1: "recross \<one> = \<one>" by (rule recross_berth)
  hence 2: "\<one> \<le> recross \<one>" by (rule ge_of_eq)
  have 3: "\<one> \<le> shuttle p" by (rule berth_le_shuttle)
  then have 4: "recross \<one> \<le> recross (shuttle p)" by (rule recross_mono)
  have 5: "\<one> \<le> recross (shuttle p)" using 2 4 by (rule le_trans)
  have 6: "recross (shuttle p \<odot> p) = recross p \<odot> recross (shuttle p)"
    using recross_trip by blast
  then have 7: "recross p \<odot> recross (shuttle p) \<le> recross (shuttle p \<odot> p)"
    by (rule ge_of_eq)
  have 8: "shuttle p \<odot> p \<le> shuttle p" by (rule shuttle_trip_le)
  then have 9: "recross (shuttle p \<odot> p) \<le> recross (shuttle p)" by (rule recross_mono)
  have 10: "recross p \<odot> recross (shuttle p) \<le> recross (shuttle p)"
    using 7 9 by (rule le_trans)
  show ?thesis using 5 10 by (rule shuttle_le_of)
qed

lemma recross_shuttle: "recross (shuttle p) = shuttle (recross p)"
proof -
  have 1: "recross (recross p) = p" by (rule recross_recross)
  then have 2: "p \<le> recross (recross p)" by (rule ge_of_eq)
  then have 3: "shuttle p \<le> shuttle (recross (recross p))" by (rule shuttle_mono)
  have 4: "shuttle (recross (recross p)) \<le> recross (shuttle (recross p))"
    by (rule recross_shuttle_le)
  from 3 4 have 5: "shuttle p \<le> recross (shuttle (recross p))" by (rule le_trans)
  then have 6: "recross (shuttle p) \<le> shuttle (recross p)" by (rule le_recross)
  have 7: "shuttle (recross p) \<le> recross (shuttle p)" by (rule recross_shuttle_le)
  from 6 7 show ?thesis by (rule le_antisymm)
qed

lemma recross_le_recross_iff: "recross p \<le> recross q \<longleftrightarrow> p \<le> q"
proof
  assume a: "recross p \<le> recross q"
  have 1: "recross (recross p) = p" by (rule recross_recross)
  then have 2: "p \<le> recross (recross p)" by (rule ge_of_eq)
  have 3: "recross (recross p) \<le> recross (recross q)" using a by (rule recross_mono)
  have 4: "recross (recross q) = q" using recross_recross by blast
  hence 5: "recross (recross q) \<le> q" by (rule le_of_eq)
  from 3 5 have 6: "recross (recross p) \<le> q" by (rule le_trans)
  from 2 6 show "p \<le> q" by (rule le_trans)
next
  assume a: "p \<le> q"
  from a show "recross p \<le> recross q" by (rule recross_mono)
qed

lemma recross_lshore_le: "recross (lshore p r) \<le> rshore (recross r) (recross p)"
proof -
  have 1: "recross (p \<odot> lshore p r) = recross (lshore p r) \<odot> recross p"
    by (rule recross_trip)
  hence 2: "recross (lshore p r) \<odot> recross p \<le> recross (p \<odot> lshore p r)"
    by (rule ge_of_eq)
  have 3: "p \<odot> lshore p r \<le> r" by (rule trip_lshore_le)
  then have 4: "recross (p \<odot> lshore p r) \<le> recross r" by (rule recross_mono)
  from 2 4 have 5: "recross (lshore p r) \<odot> recross p \<le> recross r" by (rule le_trans)
  then show ?thesis by (simp only: le_rshore_iff)
qed

subsection \<open>Elements that are calm\<close>

text \<open>Among the results: \<^emph>\<open>every iteration is calm\<close> (@{thm
[source] calm_shuttle}).\<close>

text \<open>Every iteration is calm.\<close>

lemma calm_shuttle: "calm (shuttle p)"
proof -
  have 1: "shuttle p \<odot> shuttle p \<le> shuttle p" by (rule shuttle_trip_shuttle)
  thus ?thesis by (simp only: calm_iff)
qed

lemma calm_berth: "calm \<one>"
proof -
  have 1: "\<one> \<odot> \<one> = \<one>" by (rule berth_trip)
  hence 2: "\<one> \<odot> \<one> \<le> \<one>" by (rule le_of_eq)
  then show ?thesis by (simp only: calm_iff)
qed

lemma calm_lshore: "calm (lshore p p)"
proof -
  have 1: "lshore p p \<odot> lshore p p \<le> lshore p p" by (rule lshore_trip_lshore)
  then show ?thesis by (simp only: calm_iff)
qed

lemma calm_recross:
  assumes "calm p"
  shows "calm (recross p)"
proof -
  have 1: "recross (p \<odot> p) = recross p \<odot> recross p" by (rule recross_trip)
  hence 2: "recross p \<odot> recross p \<le> recross (p \<odot> p)" by (rule ge_of_eq)
  from assms have 3: "p \<odot> p \<le> p" by (simp only: calm_iff)
  hence 4: "recross (p \<odot> p) \<le> recross p" by (rule recross_mono)
  from 2 4 have 5: "recross p \<odot> recross p \<le> recross p" by (rule le_trans)
  then show ?thesis by (simp only: calm_iff)
qed

lemma shuttle_le_of_calm:
  assumes "calm p"
    and "\<one> \<le> p"
  shows "shuttle p \<le> p"
proof -
  from assms(1) have 1: "p \<odot> p \<le> p" by (simp only: calm_iff)
  show ?thesis using assms(2) 1 by (rule shuttle_le_of)
qed

lemma shuttle_eq_of_calm:
  assumes "calm p"
    and "\<one> \<le> p"
  shows "shuttle p = p"
proof -
  from assms(1) assms(2) have 1: "shuttle p \<le> p" by (rule shuttle_le_of_calm)
  have 2: "p \<le> shuttle p" by (rule le_shuttle)
  show ?thesis using 1 2 by (rule le_antisymm)
qed

lemma trip_shuttle_le_of_calm:
  assumes "calm p"
  shows "p \<odot> shuttle p \<le> p"
proof -
  have 1: "p \<odot> p \<le> p" using assms by (simp only: calm_iff)
  thus ?thesis by (rule trip_shuttle_le_of_le)
qed

text \<open>An instance of @{thm [source] calm_recross} in the line with three piers: p =
{00, 11, 22}.\<close>

lemma
  shows "recross {00, 11, 22} = {00, 11, 22}"
  by eval+

subsection \<open>Turning around\<close>

text \<open>The reader should note that \<^emph>\<open>turning around exchanges the two
residuals\<close> (@{thm [source] recross_rshore_le}).\<close>

text \<open>Turning around exchanges the two residuals.\<close>

lemma recross_rshore_le: "recross (rshore r p) \<le> lshore (recross p) (recross r)"
proof -
  have 1: "recross (rshore r p \<odot> p) = recross p \<odot> recross (rshore r p)"
    using recross_trip by blast
  hence 2: "recross p \<odot> recross (rshore r p) \<le> recross (rshore r p \<odot> p)"
    by (rule ge_of_eq)
  have 3: "rshore r p \<odot> p \<le> r" by (rule rshore_trip_le)
  hence 4: "recross (rshore r p \<odot> p) \<le> recross r" by (rule recross_mono)
  from 2 4 have 5: "recross p \<odot> recross (rshore r p) \<le> recross r" by (rule le_trans)
  then show ?thesis by (simp only: le_lshore_iff)
qed

theorem third_digest:
  shows "q \<le> lshore p (p \<odot> q)"
    and "shuttle p \<odot> shuttle p \<le> shuttle p"
    and "shuttle p \<odot> shuttle p = shuttle p"
    and "shuttle (shuttle p) = shuttle p"
    and "p \<odot> q \<le> q \<odot> r \<Longrightarrow> shuttle p \<odot> q \<le> q \<odot> shuttle r"
    and "shuttle (p \<odot> q) \<odot> p = p \<odot> shuttle (q \<odot> p)"
    and "shuttle (rshore p p) = rshore p p"
    and "p \<le> recross q \<Longrightarrow> recross p \<le> q"
    and "recross (p \<oplus> q) = recross p \<oplus> recross q"
by (fact le_lshore_trip shuttle_trip_shuttle shuttle_trip_shuttle_eq shuttle_shuttle
    shuttle_simulate shuttle_slide shuttle_rshore le_recross recross_merge)+

subsection \<open>Elements that are calm\<close>

text \<open>We show that \<^emph>\<open>a calm element absorbs its own iterations\<close>
(@{thm [source] shuttle_trip_le_of_calm}).\<close>

lemma calm_rshore: "calm (rshore p p)"
proof -
  have 1: "rshore p p \<odot> rshore p p \<le> rshore p p" by (rule rshore_trip_rshore)
  then show ?thesis by (simp only: calm_iff)
qed

lemma shuttle_trip_le_of_calm:
  assumes "calm p"
  shows "shuttle p \<odot> p \<le> p"
proof -
  from assms have 1: "p \<odot> p \<le> p" by (simp only: calm_iff)
  then show ?thesis by (rule shuttle_trip_le_of_le)
qed

subsection \<open>Products of ferry lines\<close>

text \<open>All operations and the order are taken in each component; the rule @{thm
[source] prod_rule} reduces a claim to its parts.\<close>

lemma prod_merge_idem: "p \<oplus> p = p"
proof (rule prod_rule)
  show "(fst p) \<oplus> (fst p) = (fst p)"
    by (rule merge_idem)
next
  show "(snd p) \<oplus> (snd p) = (snd p)"
    by (rule merge_idem)
qed

lemma prod_trip_mono_right:
  assumes "p \<le> q"
  shows "r \<odot> p \<le> r \<odot> q"
proof (rule prod_rule)
  show "(fst r) \<odot> (fst p) \<le> (fst r) \<odot> (fst q)"
    using assms by (simp add: trip_mono_right)
next
  show "(snd r) \<odot> (snd p) \<le> (snd r) \<odot> (snd q)"
    using assms by (simp add: trip_mono_right)
qed

lemma prod_trip_le_of_le_berth:
  assumes "p \<le> \<one>"
  shows "p \<odot> q \<le> q"
proof (rule prod_rule)
  show "(fst p) \<odot> (fst q) \<le> (fst q)"
    using assms by (simp add: trip_le_of_le_berth)
next
  show "(snd p) \<odot> (snd q) \<le> (snd q)"
    using assms by (simp add: trip_le_of_le_berth)
qed

lemma prod_trip_trip_le:
  assumes "p \<odot> q \<le> r"
  shows "p \<odot> (q \<odot> s) \<le> r \<odot> s"
proof (rule prod_rule)
  show "(fst p) \<odot> ((fst q) \<odot> (fst s)) \<le> (fst r) \<odot> (fst s)"
    using assms by (simp add: trip_trip_le)
next
  show "(snd p) \<odot> ((snd q) \<odot> (snd s)) \<le> (snd r) \<odot> (snd s)"
    using assms by (simp add: trip_trip_le)
qed

lemma prod_lshore_mono:
  assumes "q \<le> r"
  shows "lshore p q \<le> lshore p r"
proof (rule prod_rule)
  show "lshore (fst p) (fst q) \<le> lshore (fst p) (fst r)"
    using assms by (simp add: lshore_mono)
next
  show "lshore (snd p) (snd q) \<le> lshore (snd p) (snd r)"
    using assms by (simp add: lshore_mono)
qed

lemma prod_lshore_anti:
  assumes "p \<le> q"
  shows "lshore q r \<le> lshore p r"
proof (rule prod_rule)
  show "lshore (fst q) (fst r) \<le> lshore (fst p) (fst r)"
    using assms by (simp add: lshore_anti)
next
  show "lshore (snd q) (snd r) \<le> lshore (snd p) (snd r)"
    using assms by (simp add: lshore_anti)
qed

lemma prod_lshore_trip_lshore: "lshore p q \<odot> lshore q r \<le> lshore p r"
proof (rule prod_rule)
  show "lshore (fst p) (fst q) \<odot> lshore (fst q) (fst r) \<le> lshore (fst p) (fst r)"
    by (rule lshore_trip_lshore)
next
  show "lshore (snd p) (snd q) \<odot> lshore (snd q) (snd r) \<le> lshore (snd p) (snd r)"
    by (rule lshore_trip_lshore)
qed

lemma prod_lshore_rshore_le: "rshore (lshore p r) q \<le> lshore p (rshore r q)"
proof (rule prod_rule)
  show "rshore (lshore (fst p) (fst r)) (fst q) \<le> lshore (fst p) (rshore (fst r) (fst q))"
    by (rule lshore_rshore_le)
next
  show "rshore (lshore (snd p) (snd r)) (snd q) \<le> lshore (snd p) (rshore (snd r) (snd q))"
    by (rule lshore_rshore_le)
qed

lemma prod_le_shuttle: "p \<le> shuttle p"
proof (rule prod_rule)
  show "(fst p) \<le> shuttle (fst p)"
    by (rule le_shuttle)
next
  show "(snd p) \<le> shuttle (snd p)"
    by (rule le_shuttle)
qed

lemma prod_shuttle_trip_shuttle: "shuttle p \<odot> shuttle p \<le> shuttle p"
proof (rule prod_rule)
  show "shuttle (fst p) \<odot> shuttle (fst p) \<le> shuttle (fst p)"
    by (rule shuttle_trip_shuttle)
next
  show "shuttle (snd p) \<odot> shuttle (snd p) \<le> shuttle (snd p)"
    by (rule shuttle_trip_shuttle)
qed

lemma prod_shuttle_trip_shuttle_eq: "shuttle p \<odot> shuttle p = shuttle p"
proof (rule prod_rule)
  show "shuttle (fst p) \<odot> shuttle (fst p) = shuttle (fst p)"
    by (rule shuttle_trip_shuttle_eq)
next
  show "shuttle (snd p) \<odot> shuttle (snd p) = shuttle (snd p)"
    by (rule shuttle_trip_shuttle_eq)
qed

lemma prod_shuttle_shuttle: "shuttle (shuttle p) = shuttle p"
proof (rule prod_rule)
  show "shuttle (shuttle (fst p)) = shuttle (fst p)"
    by (rule shuttle_shuttle)
next
  show "shuttle (shuttle (snd p)) = shuttle (snd p)"
    by (rule shuttle_shuttle)
qed

lemma prod_shuttle_le_shuttle_merge: "shuttle p \<le> shuttle (p \<oplus> q)"
proof (rule prod_rule)
  show "shuttle (fst p) \<le> shuttle ((fst p) \<oplus> (fst q))"
    by (rule shuttle_le_shuttle_merge)
next
  show "shuttle (snd p) \<le> shuttle ((snd p) \<oplus> (snd q))"
    by (rule shuttle_le_shuttle_merge)
qed

lemma prod_shuttle_unfold: "\<one> \<oplus> p \<odot> shuttle p \<le> shuttle p"
proof (rule prod_rule)
  show "\<one> \<oplus> (fst p) \<odot> shuttle (fst p) \<le> shuttle (fst p)"
    by (rule shuttle_unfold)
next
  show "\<one> \<oplus> (snd p) \<odot> shuttle (snd p) \<le> shuttle (snd p)"
    by (rule shuttle_unfold)
qed

lemma prod_shuttle_le_unfold: "shuttle p \<le> \<one> \<oplus> p \<odot> shuttle p"
proof (rule prod_rule)
  show "shuttle (fst p) \<le> \<one> \<oplus> (fst p) \<odot> shuttle (fst p)"
    by (rule shuttle_le_unfold)
next
  show "shuttle (snd p) \<le> \<one> \<oplus> (snd p) \<odot> shuttle (snd p)"
    by (rule shuttle_le_unfold)
qed

lemma prod_shuttle_eq_unfold: "shuttle p = \<one> \<oplus> p \<odot> shuttle p"
proof (rule prod_rule)
  show "shuttle (fst p) = \<one> \<oplus> (fst p) \<odot> shuttle (fst p)"
    by (rule shuttle_eq_unfold)
next
  show "shuttle (snd p) = \<one> \<oplus> (snd p) \<odot> shuttle (snd p)"
    by (rule shuttle_eq_unfold)
qed

lemma prod_shuttle_simulate:
  assumes "p \<odot> q \<le> q \<odot> r"
  shows "shuttle p \<odot> q \<le> q \<odot> shuttle r"
proof (rule prod_rule)
  show "shuttle (fst p) \<odot> (fst q) \<le> (fst q) \<odot> shuttle (fst r)"
    using assms by (simp add: shuttle_simulate)
next
  show "shuttle (snd p) \<odot> (snd q) \<le> (snd q) \<odot> shuttle (snd r)"
    using assms by (simp add: shuttle_simulate)
qed

lemma prod_shuttle_cosimulate:
  assumes "q \<odot> p \<le> r \<odot> q"
  shows "q \<odot> shuttle p \<le> shuttle r \<odot> q"
proof (rule prod_rule)
  show "(fst q) \<odot> shuttle (fst p) \<le> shuttle (fst r) \<odot> (fst q)"
    using assms by (simp add: shuttle_cosimulate)
next
  show "(snd q) \<odot> shuttle (snd p) \<le> shuttle (snd r) \<odot> (snd q)"
    using assms by (simp add: shuttle_cosimulate)
qed

lemma prod_shuttle_slide_ge:
  "p \<odot> shuttle (q \<odot> p) \<le> shuttle (p \<odot> q) \<odot> p"
proof (rule prod_rule)
  show "(fst p) \<odot> shuttle ((fst q) \<odot> (fst p)) \<le> shuttle ((fst p) \<odot> (fst q)) \<odot> (fst p)"
    by (rule shuttle_slide_ge)
next
  show "(snd p) \<odot> shuttle ((snd q) \<odot> (snd p)) \<le> shuttle ((snd p) \<odot> (snd q)) \<odot> (snd p)"
    by (rule shuttle_slide_ge)
qed

lemma prod_le_rshore_trip: "q \<le> rshore (q \<odot> p) p"
proof (rule prod_rule)
  show "(fst q) \<le> rshore ((fst q) \<odot> (fst p)) (fst p)"
    by (rule le_rshore_trip)
next
  show "(snd q) \<le> rshore ((snd q) \<odot> (snd p)) (snd p)"
    by (rule le_rshore_trip)
qed

lemma prod_rshore_mono:
  assumes "q \<le> r"
  shows "rshore q p \<le> rshore r p"
proof (rule prod_rule)
  show "rshore (fst q) (fst p) \<le> rshore (fst r) (fst p)"
    using assms by (simp add: rshore_mono)
next
  show "rshore (snd q) (snd p) \<le> rshore (snd r) (snd p)"
    using assms by (simp add: rshore_mono)
qed

lemma prod_rshore_berth: "rshore p \<one> = p"
proof (rule prod_rule)
  show "rshore (fst p) \<one> = (fst p)"
    by (rule rshore_berth)
next
  show "rshore (snd p) \<one> = (snd p)"
    by (rule rshore_berth)
qed

lemma prod_rshore_self_trip: "rshore p p \<odot> p = p"
proof (rule prod_rule)
  show "rshore (fst p) (fst p) \<odot> (fst p) = (fst p)"
    by (rule rshore_self_trip)
next
  show "rshore (snd p) (snd p) \<odot> (snd p) = (snd p)"
    by (rule rshore_self_trip)
qed

lemma prod_shuttle_le_unfold_right: "shuttle p \<le> \<one> \<oplus> shuttle p \<odot> p"
proof (rule prod_rule)
  show "shuttle (fst p) \<le> \<one> \<oplus> shuttle (fst p) \<odot> (fst p)"
    by (rule shuttle_le_unfold_right)
next
  show "shuttle (snd p) \<le> \<one> \<oplus> shuttle (snd p) \<odot> (snd p)"
    by (rule shuttle_le_unfold_right)
qed

lemma prod_shuttle_eq_unfold_right: "shuttle p = \<one> \<oplus> shuttle p \<odot> p"
proof (rule prod_rule)
  show "shuttle (fst p) = \<one> \<oplus> shuttle (fst p) \<odot> (fst p)"
    by (rule shuttle_eq_unfold_right)
next
  show "shuttle (snd p) = \<one> \<oplus> shuttle (snd p) \<odot> (snd p)"
    by (rule shuttle_eq_unfold_right)
qed

lemma prod_recross_le:
  assumes "recross p \<le> q"
  shows "p \<le> recross q"
proof (rule prod_rule)
  show "(fst p) \<le> recross (fst q)"
    using assms by (simp add: recross_le)
next
  show "(snd p) \<le> recross (snd q)"
    using assms by (simp add: recross_le)
qed

lemma prod_le_recross:
  assumes "p \<le> recross q"
  shows "recross p \<le> q"
proof (rule prod_rule)
  show "recross (fst p) \<le> (fst q)"
    using assms by (simp add: le_recross)
next
  show "recross (snd p) \<le> (snd q)"
    using assms by (simp add: le_recross)
qed

lemma prod_recross_berth: "recross \<one> = \<one>"
proof (rule prod_rule)
  show "recross \<one> = \<one>"
    by (rule recross_berth)
next
  show "recross \<one> = \<one>"
    by (rule recross_berth)
qed

lemma prod_recross_shuttle: "recross (shuttle p) = shuttle (recross p)"
proof (rule prod_rule)
  show "recross (shuttle (fst p)) = shuttle (recross (fst p))"
    by (rule recross_shuttle)
next
  show "recross (shuttle (snd p)) = shuttle (recross (snd p))"
    by (rule recross_shuttle)
qed

lemma prod_recross_lshore_le: "recross (lshore p q) \<le> rshore (recross q) (recross p)"
proof (rule prod_rule)
  show "recross (lshore (fst p) (fst q)) \<le> rshore (recross (fst q)) (recross (fst p))"
    by (rule recross_lshore_le)
next
  show "recross (lshore (snd p) (snd q)) \<le> rshore (recross (snd q)) (recross (snd p))"
    by (rule recross_lshore_le)
qed

subsection \<open>Functions into ferry lines\<close>

text \<open>All operations and the order are taken at each point; the rule @{thm [source]
fun_rule} reduces a claim to its parts.\<close>

lemma fun_merge_trip_le: "f \<odot> h \<oplus> g \<odot> h \<le> (f \<oplus> g) \<odot> h"
proof (rule fun_rule)
  fix i
  show "(f i) \<odot> (h i) \<oplus> (g i) \<odot> (h i) \<le> ((f i) \<oplus> (g i)) \<odot> (h i)"
    by (rule merge_trip_le)
qed

lemma fun_trip_merge_ge: "h \<odot> f \<oplus> h \<odot> g \<le> h \<odot> (f \<oplus> g)"
proof (rule fun_rule)
  fix i
  show "(h i) \<odot> (f i) \<oplus> (h i) \<odot> (g i) \<le> (h i) \<odot> ((f i) \<oplus> (g i))"
    by (rule trip_merge_ge)
qed

lemma fun_le_trip_of_ge_berth:
  assumes "\<one> \<le> f"
  shows "g \<le> f \<odot> g"
proof (rule fun_rule)
  fix i
  show "(g i) \<le> (f i) \<odot> (g i)"
    using assms by (simp add: le_trip_of_ge_berth fun_rule)
qed

lemma fun_berth_le_lshore: "\<one> \<le> lshore f f"
proof (rule fun_rule)
  fix i
  show "\<one> \<le> lshore (f i) (f i)"
    by (rule berth_le_lshore)
qed

lemma fun_lshore_trip_lshore: "lshore f g \<odot> lshore g h \<le> lshore f h"
proof (rule fun_rule)
  fix i
  show "lshore (f i) (g i) \<odot> lshore (g i) (h i) \<le> lshore (f i) (h i)"
    by (rule lshore_trip_lshore)
qed

lemma fun_lshore_lshore: "lshore (f \<odot> g) h = lshore g (lshore f h)"
proof (rule fun_rule)
  fix i
  show "lshore ((f i) \<odot> (g i)) (h i) = lshore (g i) (lshore (f i) (h i))"
    by (rule lshore_lshore)
qed

lemma fun_le_lshore_rshore: "f \<le> lshore (rshore g f) g"
proof (rule fun_rule)
  fix i
  show "(f i) \<le> lshore (rshore (g i) (f i)) (g i)"
    by (rule le_lshore_rshore)
qed

lemma fun_lshore_rshore_lshore: "lshore (rshore g (lshore f g)) g = lshore f g"
proof (rule fun_rule)
  fix i
  show "lshore (rshore (g i) (lshore (f i) (g i))) (g i) = lshore (f i) (g i)"
    by (rule lshore_rshore_lshore)
qed

lemma fun_shuttle_le_of:
  assumes "\<one> \<le> g"
    and "f \<odot> g \<le> g"
  shows "shuttle f \<le> g"
proof (rule fun_rule)
  fix i
  show "shuttle (f i) \<le> (g i)"
    using assms by (simp add: shuttle_le_of fun_rule)
qed

lemma fun_shuttle_trip_shuttle_eq: "shuttle f \<odot> shuttle f = shuttle f"
proof (rule fun_rule)
  fix i
  show "shuttle (f i) \<odot> shuttle (f i) = shuttle (f i)"
    by (rule shuttle_trip_shuttle_eq)
qed

lemma fun_shuttle_mono:
  assumes "f \<le> g"
  shows "shuttle f \<le> shuttle g"
proof (rule fun_rule)
  fix i
  show "shuttle (f i) \<le> shuttle (g i)"
    using assms by (simp add: shuttle_mono fun_rule)
qed

lemma fun_shuttle_shuttle: "shuttle (shuttle f) = shuttle f"
proof (rule fun_rule)
  fix i
  show "shuttle (shuttle (f i)) = shuttle (f i)"
    by (rule shuttle_shuttle)
qed

lemma fun_merge_shuttle_le: "shuttle f \<oplus> shuttle g \<le> shuttle (f \<oplus> g)"
proof (rule fun_rule)
  fix i
  show "shuttle (f i) \<oplus> shuttle (g i) \<le> shuttle ((f i) \<oplus> (g i))"
    by (rule merge_shuttle_le)
qed

lemma fun_shuttle_eq_unfold: "shuttle f = \<one> \<oplus> f \<odot> shuttle f"
proof (rule fun_rule)
  fix i
  show "shuttle (f i) = \<one> \<oplus> (f i) \<odot> shuttle (f i)"
    by (rule shuttle_eq_unfold)
qed

lemma fun_shuttle_slide_le:
  "shuttle (f \<odot> g) \<odot> f \<le> f \<odot> shuttle (g \<odot> f)"
proof (rule fun_rule)
  fix i
  show "shuttle ((f i) \<odot> (g i)) \<odot> (f i) \<le> (f i) \<odot> shuttle ((g i) \<odot> (f i))"
    by (rule shuttle_slide_le)
qed

lemma fun_trip_trip_ge:
  assumes "g \<odot> f \<le> h"
  shows "(k \<odot> g) \<odot> f \<le> k \<odot> h"
proof (rule fun_rule)
  fix i
  show "((k i) \<odot> (g i)) \<odot> (f i) \<le> (k i) \<odot> (h i)"
    using assms by (simp add: trip_trip_ge fun_rule)
qed

lemma fun_shuttle_cosimulate:
  assumes "g \<odot> f \<le> h \<odot> g"
  shows "g \<odot> shuttle f \<le> shuttle h \<odot> g"
proof (rule fun_rule)
  fix i
  show "(g i) \<odot> shuttle (f i) \<le> shuttle (h i) \<odot> (g i)"
    using assms by (simp add: shuttle_cosimulate fun_rule)
qed

lemma fun_trip_shuttle_le_of_le:
  assumes "g \<odot> f \<le> g"
  shows "g \<odot> shuttle f \<le> g"
proof (rule fun_rule)
  fix i
  show "(g i) \<odot> shuttle (f i) \<le> (g i)"
    using assms by (simp add: trip_shuttle_le_of_le fun_rule)
qed

lemma fun_shuttle_lshore: "shuttle (lshore f f) = lshore f f"
proof (rule fun_rule)
  fix i
  show "shuttle (lshore (f i) (f i)) = lshore (f i) (f i)"
    by (rule shuttle_lshore)
qed

lemma fun_merge_trip_ge: "(g \<oplus> h) \<odot> f \<le> g \<odot> f \<oplus> h \<odot> f"
proof (rule fun_rule)
  fix i
  show "((g i) \<oplus> (h i)) \<odot> (f i) \<le> (g i) \<odot> (f i) \<oplus> (h i) \<odot> (f i)"
    by (rule merge_trip_ge)
qed

lemma fun_rshore_mono:
  assumes "g \<le> h"
  shows "rshore g f \<le> rshore h f"
proof (rule fun_rule)
  fix i
  show "rshore (g i) (f i) \<le> rshore (h i) (f i)"
    using assms by (simp add: rshore_mono fun_rule)
qed

lemma fun_rshore_anti:
  assumes "f \<le> g"
  shows "rshore h g \<le> rshore h f"
proof (rule fun_rule)
  fix i
  show "rshore (h i) (g i) \<le> rshore (h i) (f i)"
    using assms by (simp add: rshore_anti fun_rule)
qed

lemma fun_rshore_self_trip: "rshore f f \<odot> f = f"
proof (rule fun_rule)
  fix i
  show "rshore (f i) (f i) \<odot> (f i) = (f i)"
    by (rule rshore_self_trip)
qed

lemma fun_shuttle_unfold_right: "\<one> \<oplus> shuttle f \<odot> f \<le> shuttle f"
proof (rule fun_rule)
  fix i
  show "\<one> \<oplus> shuttle (f i) \<odot> (f i) \<le> shuttle (f i)"
    by (rule shuttle_unfold_right)
qed

lemma fun_shuttle_le_unfold_right: "shuttle f \<le> \<one> \<oplus> shuttle f \<odot> f"
proof (rule fun_rule)
  fix i
  show "shuttle (f i) \<le> \<one> \<oplus> shuttle (f i) \<odot> (f i)"
    by (rule shuttle_le_unfold_right)
qed

lemma fun_shuttle_rshore: "shuttle (rshore f f) = rshore f f"
proof (rule fun_rule)
  fix i
  show "shuttle (rshore (f i) (f i)) = rshore (f i) (f i)"
    by (rule shuttle_rshore)
qed

lemma fun_recross_le:
  assumes "recross f \<le> g"
  shows "f \<le> recross g"
proof (rule fun_rule)
  fix i
  show "(f i) \<le> recross (g i)"
    using assms by (simp add: recross_le fun_rule)
qed

lemma fun_recross_merge: "recross (f \<oplus> g) = recross f \<oplus> recross g"
proof (rule fun_rule)
  fix i
  show "recross ((f i) \<oplus> (g i)) = recross (f i) \<oplus> recross (g i)"
    by (rule recross_merge)
qed

lemma fun_recross_shuttle_le: "shuttle (recross f) \<le> recross (shuttle f)"
proof (rule fun_rule)
  fix i
  show "shuttle (recross (f i)) \<le> recross (shuttle (f i))"
    by (rule recross_shuttle_le)
qed

lemma fun_recross_lshore_le: "recross (lshore f g) \<le> rshore (recross g) (recross f)"
proof (rule fun_rule)
  fix i
  show "recross (lshore (f i) (g i)) \<le> rshore (recross (g i)) (recross (f i))"
    by (rule recross_lshore_le)
qed

theorem final_digest:
  shows "p \<oplus> p = p"
    and "lshore \<one> r = r"
    and "rshore r p \<odot> p \<le> r"
    and "shuttle p \<odot> shuttle p = shuttle p"
    and "\<one> \<oplus> p \<odot> shuttle p \<le> shuttle p"
    and "shuttle p \<le> \<one> \<oplus> p \<odot> shuttle p"
    and "shuttle p = \<one> \<oplus> p \<odot> shuttle p"
    and "shuttle (p \<odot> q) \<odot> p = p \<odot> shuttle (q \<odot> p)"
    and "(q \<oplus> r) \<odot> p \<le> q \<odot> p \<oplus> r \<odot> p"
    and "rshore r \<one> = r"
    and "rshore r (q \<odot> p) = rshore (rshore r p) q"
    and "rshore p p \<odot> p = p"
    and "shuttle (rshore p p) = rshore p p"
    and "shuttle (recross p) \<le> recross (shuttle p)"
by (fact merge_idem berth_lshore rshore_trip_le shuttle_trip_shuttle_eq shuttle_unfold
    shuttle_le_unfold shuttle_eq_unfold shuttle_slide merge_trip_ge rshore_berth
    rshore_rshore rshore_self_trip shuttle_rshore recross_shuttle_le)+

end

end

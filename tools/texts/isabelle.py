# SPDX-License-Identifier: Apache-2.0
"""Facts and proofs in the style of an Isabelle theory."""

from . import logic
from .lean import wrap
from .render import Notation, computed, rename, say


class Isabelle:
    """Renders a theory in the words and symbols of one theory file."""

    def __init__(self, theory, spec, rng):
        self.theory = theory
        self.spec = spec
        self.words = spec["words"]
        self.rng = rng
        self.notation = Notation(spec["symbols"], spec.get("letters", {}))

    def name(self, fact):
        return rename(fact, self.words)

    def quote(self, atom, notation=None):
        return f'"{(notation or self.notation).term(atom)}"'

    def head(self, fact, word, name, notation=None):
        if not fact.hyps:
            lines = [f"{word} {name}: {self.quote(fact.concl, notation)}"]
            if len(lines[0]) > 96:
                lines = [f"{word} {name}:", f"  {self.quote(fact.concl, notation)}"]
            return lines
        lines = [f"{word} {name}:"]
        for index, hyp in enumerate(fact.hyps):
            lines.append(f"  {'assumes' if index == 0 else '  and'} {self.quote(hyp, notation)}")
        return lines + [f"  shows {self.quote(fact.concl, notation)}"]

    def assumption(self, hyps, claim):
        if claim not in hyps:
            return None
        return "assms" if len(hyps) == 1 else f"assms({hyps.index(claim) + 1})"

    def justification(self, step):
        if step.way:
            return f"by (simp only: {self.name(step.rule)})"
        if not step.premises:
            if self.rng.random() < 0.2 and step.rule.kind != "lib":
                return f"using {self.name(step.rule)} by blast"
            return f"by (rule {self.name(step.rule)})"
        return f"by (rule {self.name(step.rule)})"

    def derivation(self, steps, hyps, extra, goal, indent):
        """Isar steps: facts are numbered where they are used later."""
        lines = []
        labels = {}
        number = 0
        for position, step in enumerate(steps):
            final = position == len(steps) - 1
            refs = []
            previous = position > 0 and steps[position - 1].claim in step.premises
            others = []
            for premise in step.premises:
                if previous and premise == steps[position - 1].claim and len(step.premises) == 1:
                    continue
                ref = extra.get(premise) or self.assumption(hyps, premise) or labels.get(premise)
                others.append(ref)
            refs = [r for r in others if r]
            claim = "?thesis" if final and goal == "?thesis" else self.quote(step.claim)
            verb = "show" if final else "have"
            if previous and len(step.premises) == 1:
                start = "then show" if final else "then have"
                if final and self.rng.random() < 0.5:
                    start = "thus"
                elif not final and self.rng.random() < 0.5:
                    start = "hence"
            elif refs and self.rng.random() < 0.5:
                start = f"from {' '.join(refs)} {verb}"
                refs = []
            else:
                start = verb
            label = ""
            later = any(step.claim in s.premises for s in steps[position + 1 :])
            if not final and later:
                number += 1
                labels[step.claim] = f"{number}"
                label = f" {number}:"
            text = f"{indent}{start}{label} {claim}"
            by = self.justification(step)
            if refs:
                by = f"using {' '.join(refs)} {by}"
            if len(text) + len(by) > 94:
                lines += [text, f"{indent}  {by}"]
            else:
                lines.append(f"{text} {by}")
        return lines

    def rules(self, link, fact):
        texts = []
        for name, backwards in link:
            text = (
                self.name(self.theory.facts[name])
                if isinstance(name, str)
                else self.assumption(fact.hyps, fact.hyps[name])
            )
            texts.append(text + (" [symmetric]" if backwards else ""))
        return " ".join(texts)

    def chain(self, chain, fact, indent, last):
        lines = []
        terms = [self.notation.term(t) for t in chain.terms]
        for index, (term, link) in enumerate(zip(terms[1:], chain.links)):
            start = (
                f'have "{terms[0]} = {term}"' if index == 0 else f'also have "\\<dots> = {term}"'
            )
            by = f"by (simp only: {self.rules(link, fact)})"
            if len(indent) + len(start) + len(by) > 94:
                lines += [indent + start, f"{indent}  {by}"]
            else:
                lines.append(f"{indent}{start} {by}")
        return lines + [f"{indent}finally {last} ."]

    def fact(self, fact):
        lines = []
        gloss = say(fact.gloss, self.words)
        if self.rng.random() < 0.25:
            lines += wrap(f"text \\<open>{gloss[0].upper() + gloss[1:]}.\\<close>", 90) + [""]
        word = "lemma"
        tag = ""
        if fact.concl[0] == "eq" and not fact.hyps and self.rng.random() < 0.25:
            tag = " [simp]"
        head = self.head(fact, word, self.name(fact) + tag)
        proof = fact.proof
        if isinstance(proof, logic.Derivation):
            steps = proof.steps
            if len(steps) == 1:
                refs = [self.assumption(fact.hyps, p) for p in steps[0].premises]
                by = self.justification(steps[0])
                if refs:
                    refs = ["assms"] if len(refs) == len(fact.hyps) else refs
                    by = f"using {' '.join(refs)} {by}"
                return lines + head + [f"  {by}", ""]
            lines += head + ["proof -"]
            lines += self.derivation(steps, fact.hyps, {}, "?thesis", "  ")
            return lines + ["qed", ""]
        if isinstance(proof, list):
            lines += head + ["proof"]
            for index, (part, side) in enumerate(zip(proof, (1, 2))):
                if index:
                    lines.append("next")
                lines.append(f"  assume a: {self.quote(fact.concl[side])}")
                goal = fact.concl[3 - side]
                lines += self.derivation(part.steps, fact.hyps, {fact.concl[side]: "a"}, goal, "  ")
            return lines + ["qed", ""]
        if isinstance(proof, logic.Chain):
            if len(proof.links) == 1 or (len(proof.links) < 4 and self.rng.random() < 0.4):
                rules = " ".join(self.rules(link, fact) for link in proof.links)
                return lines + head + [f"  by (simp only: {rules})", ""]
            lines += head + ["proof -"]
            return lines + self.chain(proof, fact, "  ", "show ?thesis") + ["qed", ""]
        rule, _, need, chains = proof
        lines += head + ["proof -"]
        for claim, found in zip(need, chains):
            lines += self.chain(found, fact, "  ", f"have {self.quote(claim)}")
        return lines + [f"  then show ?thesis by (rule {self.name(rule)})", "qed", ""]

    def section(self, title, facts, first):
        title = say(title, self.words)
        chosen = self.rng.sample(facts, 1)
        points = [f for f in facts if f in chosen]
        text = " and ".join(
            f"\\<^emph>\\<open>{say(f.gloss, self.words)}\\<close> (@{{thm [source]"
            f" {self.name(f)}}})"
            for f in points
        )
        opening = self.rng.choice(
            ["Among the results:", "We show that", "The reader should note that"]
        )
        if first:
            return [f"subsection \\<open>{title}\\<close>", ""]
        return (
            [f"subsection \\<open>{title}\\<close>", ""]
            + wrap(f"text \\<open>{opening} {text}.\\<close>", 90)
            + [""]
        )

    def end_section(self, title):
        return []

    def definition(self):
        spec = self.spec
        lines = wrap(f"text \\<open>{spec['definition']}\\<close>", 90) + [""]
        lines += [f"locale {spec['structure'].replace(' ', '_')} ="]
        for index, field in enumerate(spec["fields"]):
            lines.append(f"  {'fixes' if index == 0 else '  and'} {field}")
        first = True
        for name in self.theory.order:
            fact = self.theory.facts[name]
            if fact.kind == "axiom":
                hyps = "".join(self.notation.term(h) + " \\<Longrightarrow> " for h in fact.hyps)
                lines.append(
                    f"  {'assumes' if first else '  and'} {self.name(fact)}: "
                    f'"{hyps}{self.notation.term(fact.concl)}"'
                )
                first = False
        return lines + ["begin", ""]

    def product(self, fact):
        names = fact.variables()
        letters = dict(zip(names, "pqrstu"))
        whole = Notation(self.spec["symbols"], letters)
        lines = self.head(fact, "lemma", f"prod_{self.name(fact)}", whole)
        lines += ["proof (rule prod_rule)"]
        for index, side in enumerate(("fst", "snd")):
            if index:
                lines.append("next")
            local = Notation(self.spec["symbols"], {n: f"({side} {letters[n]})" for n in names})
            using = " using assms" if fact.hyps else ""
            lines.append(f"  show {self.quote(fact.concl, local)}")
            lines.append(
                f"   {using} by (simp add: {self.name(fact)})"
                if using
                else f"    by (rule {self.name(fact)})"
            )
        return lines + ["qed", ""]

    def pointwise(self, fact):
        names = fact.variables()
        letters = dict(zip(names, ["f", "g", "h", "k", "l", "m"]))
        whole = Notation(self.spec["symbols"], letters)
        local = Notation(self.spec["symbols"], {n: f"({letters[n]} i)" for n in names})
        lines = self.head(fact, "lemma", f"fun_{self.name(fact)}", whole)
        using = "using assms " if fact.hyps else ""
        lines += ["proof (rule fun_rule)", "  fix i", f"  show {self.quote(fact.concl, local)}"]
        by = (
            f"by (simp add: {self.name(fact)} fun_rule)"
            if using
            else f"by (rule {self.name(fact)})"
        )
        return lines + [f"    {using}{by}", "qed", ""]

    def example(self, fact, model, binding, name):
        show = self.spec["show"]
        raw = {n: ("raw", show(v)) for n, v in binding.items()}
        setting = ", ".join(f"{self.notation.letter(n)} = {raw[n][1]}" for n in fact.variables())
        lines = wrap(
            f"text \\<open>An instance of @{{thm [source] {self.name(fact)}}} in {name}:"
            f" {setting}.\\<close>",
            90,
        )
        seen = []
        for term, value in computed(fact, model, binding, show, self.spec["unvalued"]):
            seen.append(f'"{self.notation.term(term)} = {value}"')
        if not seen:
            return []
        text = ["", "lemma"] + [
            f"  {'shows' if i == 0 else '  and'} {s}" for i, s in enumerate(seen)
        ]
        return lines + text + ["  by eval+", ""]

    def summary(self, facts, title):
        word = "_".join(title.lower().split())
        lines = [f"theorem {word}:"]
        for index, fact in enumerate(facts):
            hyps = "".join(self.notation.term(h) + " \\<Longrightarrow> " for h in fact.hyps)
            lines.append(
                f'  {"shows" if index == 0 else "  and"} "{hyps}{self.notation.term(fact.concl)}"'
            )
        names = " ".join(self.name(f) for f in facts)
        return lines + wrap(f"  by (fact {names})+", 90, "    ") + [""]

# SPDX-License-Identifier: Apache-2.0
"""Facts and proofs in the style of a Lean 4 file."""

from . import logic
from .render import SUBSCRIPTS, Notation, computed, groups, rename, say


class Lean:
    """Renders a theory in the words and symbols of one file."""

    def __init__(self, theory, spec, rng):
        self.theory = theory
        self.spec = spec
        self.words = spec["words"]
        self.rng = rng
        self.notation = Notation(spec["symbols"], spec.get("letters", {}))

    def name(self, fact):
        return rename(fact, self.words)

    def binder(self, names, marks="()"):
        elements, numbers = groups(self.theory, names)
        text = ""
        for some, kind in ((elements, self.spec["carrier"]), (numbers, "ℝ")):
            if some:
                letters = " ".join(self.notation.letter(n) for n in some)
                text += f" {marks[0]}{letters} : {kind}{marks[1]}"
        return text

    def signature(self, fact):
        text = self.binder(fact.explicit())
        for index, hyp in enumerate(fact.hyps, 1):
            label = "h" if len(fact.hyps) == 1 else "h" + str(index).translate(SUBSCRIPTS)
            text += f" ({label} : {self.notation.term(hyp)})"
        return text

    def hyp_labels(self, hyps):
        if len(hyps) == 1:
            return {hyps[0]: "h"}
        return {h: "h" + str(i).translate(SUBSCRIPTS) for i, h in enumerate(hyps, 1)}

    def application(self, step, known):
        """The proof term of a step; premises that are not known are written out."""
        rule = step.rule
        head = self.name(rule)
        if step.way:
            head = f"{head}.{step.way}"
        arguments = [self.notation.term(step.binding[v], 100) for v in rule.explicit()]
        for premise in step.premises:
            text = known[premise]
            arguments.append(f"({text})" if " " in text else text)
        return " ".join([head] + arguments)

    def derivation(self, derivation, labels, goal, indent):
        """Lines of a proof: a term where it is short, else a block of steps."""
        known = dict(labels)
        steps = derivation.steps
        block = []
        count = len(labels) if len(labels) != 1 else 1
        for step in steps[:-1]:
            term = self.application(step, known)
            if len(term) < 36 and term.count("(") < 2 or not step.premises and len(term) < 50:
                known[step.claim] = term
                continue
            count += 1
            label = "h" + str(count).translate(SUBSCRIPTS)
            block.append(f"have {label} : {self.notation.term(step.claim)} :=")
            if len(indent + block[-1]) + len(term) < 98:
                block[-1] += f" {term}"
            else:
                block.append(f"  {term}")
            known[step.claim] = label
        last = self.application(steps[-1], known)
        if not block:
            return None, last
        return [indent + line for line in block] + [f"{indent}exact {last}"], None

    def rules(self, link, fact):
        labels = self.hyp_labels(fact.hyps)
        texts = []
        for name, backwards in link:
            text = (
                self.name(self.theory.facts[name])
                if isinstance(name, str)
                else labels[fact.hyps[name]]
            )
            texts.append(("← " if backwards else "") + text)
        return ", ".join(texts)

    def chain(self, chain, fact, indent):
        terms = [self.notation.term(t) for t in chain.terms]
        if (
            len(chain.links) == 1
            and len(chain.links[0]) < 3
            or (len(chain.links) < 4 and self.rng.random() < 0.5)
        ):
            links = ", ".join(self.rules(link, fact) for link in chain.links)
            return [f"{indent}rw [{links}]"]
        lines = [f"{indent}calc {terms[0]}"]
        for term, link in zip(terms[1:], chain.links):
            lines.append(f"{indent}    _ = {term} := by rw [{self.rules(link, fact)}]")
        return lines

    def fact(self, fact, attribute=""):
        lines = []
        gloss = say(fact.gloss, self.words)
        if self.rng.random() < 0.35:
            text = gloss[0].upper() + gloss[1:] + "."
            lines += wrap_doc(text)
        if fact.concl[0] == "eq" and not fact.hyps and self.rng.random() < 0.25:
            attribute = "@[simp] "
        word = self.rng.choice(["theorem", "theorem", "lemma"]) if self.spec["mixed"] else "theorem"
        head = f"{attribute}{word} {self.name(fact)}{self.signature(fact)} :"
        goal = self.notation.term(fact.concl)
        head = f"{head} {goal}" if len(head) + len(goal) < 94 else f"{head}\n    {goal}"
        proof = fact.proof
        if isinstance(proof, logic.Derivation):
            block, term = self.derivation(proof, self.hyp_labels(fact.hyps), fact.concl, "  ")
            if block is None:
                lines += [f"{head} :=", f"  {term}"]
            else:
                lines += [f"{head} := by"] + block
        elif isinstance(proof, list):
            lines += [f"{head} := by", "  constructor"]
            for part, side in zip(proof, (1, 2)):
                block, term = self.derivation(
                    part, {**self.hyp_labels(fact.hyps), fact.concl[side]: "h"}, None, "    "
                )
                lines += ["  · intro h"] + (block or [f"    exact {term}"])
        elif isinstance(proof, logic.Chain):
            lines += [f"{head} := by"] + self.chain(proof, fact, "  ")
        else:
            rule, binding, need, chains = proof
            lines += [f"{head} := by"]
            for claim, found in zip(need, chains):
                lines += [f"  have h : {self.notation.term(claim)} := by"]
                lines += self.chain(found, fact, "    ")
            lines += [f"  exact {self.name(rule)} h"]
        return lines + [""]

    def section(self, title, facts, first):
        title = say(title, self.words)
        chosen = self.rng.sample(facts, min(2, len(facts)))
        points = [f for f in facts if f in chosen]
        lines = ["/-!", f"### {title}"]
        if not first:
            lines.append("")
        for fact in points[: 0 if first else None]:
            lines += wrap(f"* `{self.name(fact)}`: {say(fact.gloss, self.words)}.", 96, "  ")
        lines += ["-/", "", f"section {camel(title)}", ""]
        names = sorted({n for f in facts for n in f.variables()}, key=self.notation.letter)
        lines += ["variable" + self.binder(names, "{}"), ""]
        return lines

    def end_section(self, title):
        return [f"end {camel(say(title, self.words))}", ""]

    def definition(self):
        spec = self.spec
        lines = wrap_doc(spec["definition"])
        lines += [spec["class_head"]]
        for field in spec["fields"]:
            lines += [f"  {field}"]
        for name in self.theory.order:
            fact = self.theory.facts[name]
            if fact.kind == "axiom":
                explicit = fact.explicit()
                names = " ".join(
                    self.notation.letter(n) if n in explicit else f"{{{self.notation.letter(n)}}}"
                    for n in fact.variables()
                ).replace("} {", " ")
                hyps = "".join(self.notation.term(h) + " → " for h in fact.hyps)
                lines += [
                    f"  {self.name(fact)} : ∀ {names}, {hyps}{self.notation.term(fact.concl)}"
                ]
        return lines + [""]

    def product(self, fact):
        names = fact.variables()
        letters = dict(zip(names, "pqrstu"))
        whole = Notation(self.spec["symbols"], letters)
        hyps = "".join(
            f" ({label} : {whole.term(h)})" for h, label in self.hyp_labels(fact.hyps).items()
        )
        explicit = [letters[n] for n in fact.explicit()]
        binder = f" ({' '.join(explicit)} : {self.spec['product']})" if explicit else ""
        calls = []
        for side in ("1", "2"):
            arguments = [f"{letters[n]}.{side}" for n in fact.explicit()]
            part = {"1": "fst", "2": "snd"}[side]
            arguments += [
                f"(congrArg Prod.{part} {label})" if hyp[0] == "eq" else f"{label}.{side}"
                for hyp, label in self.hyp_labels(fact.hyps).items()
            ]
            calls.append(" ".join([self.name(fact)] + arguments))
        head = f"theorem Prod.{self.name(fact)}{binder}{hyps} :"
        goal = whole.term(fact.concl)
        head = f"{head} {goal} :=" if len(head) + len(goal) < 94 else f"{head}\n    {goal} :="
        if fact.concl[0] == "eq":
            return [head, f"  Prod.ext ({calls[0]}) ({calls[1]})", ""]
        return [head, f"  ⟨{calls[0]}, {calls[1]}⟩", ""]

    def pointwise(self, fact):
        names = fact.variables()
        letters = dict(zip(names, ["f", "g", "k", "l", "m", "n"]))
        whole = Notation(self.spec["symbols"], letters)
        hyps = "".join(
            f" ({label} : {whole.term(h)})" for h, label in self.hyp_labels(fact.hyps).items()
        )
        explicit = [letters[n] for n in fact.explicit()]
        binder = f" ({' '.join(explicit)} : ι → {self.spec['carrier']})" if explicit else ""
        arguments = [f"({letters[n]} i)" for n in fact.explicit()]
        arguments += [
            f"(congrFun {label} i)" if h[0] == "eq" else f"({label} i)"
            for h, label in self.hyp_labels(fact.hyps).items()
        ]
        call = " ".join([self.name(fact)] + arguments)
        head = f"theorem Pi.{self.name(fact)}{binder}{hyps} :"
        goal = whole.term(fact.concl)
        head = f"{head} {goal} :=" if len(head) + len(goal) < 94 else f"{head}\n    {goal} :="
        start = "funext fun i => " if fact.concl[0] == "eq" else "fun i => "
        return [head, f"  {start}{call}", ""]

    def example(self, fact, model, binding, name):
        show = self.spec["show"]
        raw = {n: ("raw", show(v)) for n, v in binding.items()}
        setting = ", ".join(f"{self.notation.letter(n)} = {raw[n][1]}" for n in fact.variables())
        lines = [f"-- `{self.name(fact)}` in `{name}` for {setting}"]
        seen = []
        for term, value in computed(fact, model, binding, show, self.spec["unvalued"]):
            seen.append(f"example : ({self.notation.term(term)} : {name}) = {value} := by decide")
        return lines + seen + [""]

    def summary(self, facts, title):
        names = sorted({n for f in facts for n in f.variables()})
        lines = wrap_doc(f"{title}: " + "; ".join(say(f.gloss, self.words) for f in facts) + ".")
        word = "_".join(title.lower().split())
        lines += [f"theorem {word}{self.binder(names)} :"]
        parts = []
        terms = []
        for fact in facts:
            hyps = "".join(self.notation.term(h) + " → " for h in fact.hyps)
            parts.append(f"({hyps}{self.notation.term(fact.concl)})")
            explicit = " ".join(self.notation.letter(n) for n in fact.explicit())
            terms.append(f"{self.name(fact)} {explicit}".strip())
        lines += ["    " + " ∧\n    ".join(parts) + " :="]
        return lines + ["  ⟨" + ",\n    ".join(terms) + "⟩", ""]


def camel(title):
    return "".join(
        w[0].upper() + w[1:] for w in "".join(c if c.isalnum() else " " for c in title).split()
    )


def wrap(text, width=96, hang=""):
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = hang + word
        else:
            line = f"{line} {word}" if line else word
    return lines + [line]


def wrap_doc(text, indent=""):
    lines = wrap(f"/-- {text} -/", 96 - len(indent))
    return [indent + line for line in lines]

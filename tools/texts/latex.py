# SPDX-License-Identifier: Apache-2.0
"""Facts and proofs as a LaTeX paper."""

from . import logic
from .render import Notation, computed, english_list, groups, rename, say

RELATIONS = ("le", "lt", "eq", "mem", "pre")


class Latex:
    """Renders a theory in the words and symbols of one paper."""

    def __init__(self, theory, spec, rng):
        self.theory = theory
        self.spec = spec
        self.words = spec["words"]
        self.rng = rng
        self.notation = Notation(spec["symbols"], spec.get("letters", {}))
        self.proofs = 0

    # Atoms and names

    def atom(self, atom, notation=None):
        """An atom inside a sentence."""
        notation = notation or self.notation
        if atom[0] in self.spec.get("said", {}):
            subject = notation.term(atom[1])
            return f"${subject}$ is {self.spec['said'][atom[0]]}"
        return f"${notation.term(atom)}$"

    def label(self, fact):
        kind = "item" if fact.kind == "axiom" else "lemma"
        return f"{kind}-{rename(fact, self.words, '-')}".replace("_", "-")

    def cite(self, fact):
        if fact.kind == "axiom":
            return f"(\\ref{{{self.label(fact)}}})"
        return f"Lemma \\ref{{{self.label(fact)}}}"

    def sort_phrase(self, names, letters=None, place=None):
        """'x, y \\in T' with numbers apart."""
        letter = (lambda n: self.notation.letter(n)) if letters is None else letters.get
        elements, numbers = groups(self.theory, names)
        parts = []
        if elements:
            place = place or self.spec["carrier"]
            parts.append(f"${', '.join(letter(n) for n in elements)} \\in {place}$")
        if numbers:
            parts.append(f"${', '.join(letter(n) for n in numbers)} \\in \\mathbf{{R}}$")
        return " and ".join(parts)

    # Statements

    def statement(self, fact):
        names = fact.variables()
        sorts = self.sort_phrase(names)
        goal = self.conclusion(fact)
        hyps = english_list(self.atom(h) for h in fact.hyps)
        if not fact.hyps:
            return self.rng.choice(
                [
                    f"Let {sorts}. Then {goal}.",
                    f"For all {sorts} we have {goal}.",
                    f"Let {sorts}. Then we have {goal}.",
                ]
                if fact.concl[0] != "iff"
                else [f"Let {sorts}. Then {goal}.", f"For {sorts}, {goal}."]
            )
        return self.rng.choice(
            [
                f"Let {sorts}. If {hyps}, then {goal}.",
                f"Let {sorts}. Assume {hyps}. Then {goal}.",
                f"Let {sorts} be such that {hyps}. Then {goal}.",
            ]
        )

    def conclusion(self, fact, notation=None):
        if fact.concl[0] == "iff":
            left = self.atom(fact.concl[1], notation)
            return f"{left} if and only if {self.atom(fact.concl[2], notation)}"
        return self.atom(fact.concl, notation)

    def fact(self, fact):
        lines = ["\\begin{lemma}", f"\\label{{{self.label(fact)}}}"]
        lines += wrap(self.statement(fact))
        lines += ["\\end{lemma}", "", "\\begin{proof}"]
        lines += self.proof(fact)
        lines += ["\\end{proof}", ""]
        if self.rng.random() < 0.2:
            gloss = say(fact.gloss, self.words)
            remark = self.rng.choice(
                [
                    f"In words: {gloss}.",
                    f"Thus {gloss}.",
                    f"We will often use Lemma \\ref{{{self.label(fact)}}} in the form: {gloss}.",
                ]
            )
            lines += ["\\noindent"] + wrap(remark) + [""]
        return lines

    # Proofs

    def proof(self, fact):
        proof = fact.proof
        if isinstance(proof, list):
            hyps = [list(fact.hyps) + [fact.concl[1]], list(fact.hyps) + [fact.concl[2]]]
            first = f"Assume first that {self.atom(fact.concl[1])}. " + self.derivation(
                proof[0], hyps[0]
            )
            second = f"Conversely, assume that {self.atom(fact.concl[2])}. " + self.derivation(
                proof[1], hyps[1]
            )
            return wrap(first) + wrap(second)
        if isinstance(proof, logic.Derivation):
            opening = ""
            if self.rng.random() < 0.2 and len(proof.steps) > 2:
                opening = f"We have to show that {self.atom(fact.concl)}. "
            return wrap(opening + self.derivation(proof, fact.hyps))
        if isinstance(proof, logic.Chain):
            return self.chain(proof, fact)
        rule, _, need, chains = proof
        lines = []
        for claim, found in zip(need, chains):
            lines += self.chain(found, fact, goal=claim)
        return lines + wrap(f"Hence {self.atom(fact.concl)} by {self.cite(rule)}.")

    def derivation(self, derivation, hyps):
        pick = self.rng.choice
        sentences = []
        last = None
        steps = self.gather(derivation.steps)
        index = -1
        while index + 1 < len(steps):
            index += 1
            step = steps[index]
            run = [step]
            while (
                index + 1 < len(steps) - 1
                and len(run) < 3
                and all(
                    not s.premises and s.rule.kind != "lib" for s in (run[-1], steps[index + 1])
                )
            ):
                index += 1
                run.append(steps[index])
            if len(run) > 1:
                claims = english_list(self.atom(s.claim) for s in run)
                cites = []
                for s in run:
                    if self.cite(s.rule) not in cites:
                        cites.append(self.cite(s.rule))
                cited = english_list(cites)
                sentences.append(
                    pick([f"We have {claims} by {cited}.", f"By {cited} we have {claims}."])
                )
                last = run[-1].claim
                continue
            claim = self.atom(step.claim)
            final = index == len(steps) - 1
            rule = step.rule
            fresh = last is not None and last in step.premises
            if rule.kind == "lib":
                if rule.name == "le_refl":
                    text = f"Of course {claim}"
                elif rule.name == "le_antisymm":
                    both = english_list(self.atom(p) for p in step.premises)
                    text = pick(
                        [
                            f"Since {both}, we conclude that {claim}",
                            f"As {both}, both sides agree, that is, {claim}",
                        ]
                    )
                elif rule.name in ("le_trans", "lt_of_le_of_lt", "lt_of_lt_of_le"):
                    way = [self.notation.term(p[1]) for p in step.premises]
                    signs = [self.sign(p[0]) for p in step.premises]
                    end = self.notation.term(step.premises[-1][2])
                    line = f"${way[0]} {signs[0]} {way[1]} {signs[1]} {end}$"
                    if end == way[0]:
                        line = claim
                    text = pick([f"Hence {line}", f"It follows that {line}", f"Thus {line}"])
                elif rule.name in ("le_of_eq", "ge_of_eq"):
                    text = pick([f"In particular {claim}", f"So {claim}"])
                elif step.premises:
                    text = pick([f"Adding up we get {claim}", f"Hence {claim}"])
                else:
                    text = pick([f"Clearly {claim}", f"We have {claim}"])
            elif not step.premises:
                text = pick(
                    [
                        f"By {self.cite(rule)} we have {claim}",
                        f"We have {claim} by {self.cite(rule)}",
                        (
                            f"{self.cite(rule)} gives {claim}"
                            if rule.kind != "axiom"
                            else f"By {self.cite(rule)} we have {claim}"
                        ),
                    ]
                )
            elif fresh:
                text = pick(
                    [
                        f"Hence {claim} by {self.cite(rule)}",
                        f"By {self.cite(rule)} it follows that {claim}",
                        f"Therefore {claim}, see {self.cite(rule)}",
                    ]
                )
            elif all(p in hyps for p in step.premises):
                said = english_list(self.atom(p) for p in step.premises)
                text = pick(
                    [
                        f"Since {said}, {self.cite(rule)} shows that {claim}",
                        f"From {said} we obtain {claim} by {self.cite(rule)}",
                    ]
                )
            else:
                said = english_list(self.atom(p) for p in step.premises)
                text = pick(
                    [
                        f"From {said} we obtain {claim} by {self.cite(rule)}",
                        f"By {self.cite(rule)}, applied to {said}, we get {claim}",
                    ]
                )
            if final and index and self.rng.random() < 0.35:
                text += pick([", as desired", ", and the proof is complete"])
            sentences.append(text + ".")
            last = step.claim
        return " ".join(sentences)

    @staticmethod
    def gather(steps):
        """Moves steps without premises to the first place where one of them is needed."""
        done = []
        waiting = list(steps)
        while waiting:
            step = waiting.pop(0)
            if not step.premises and step.rule.kind != "lib":
                user = next((s for s in waiting if step.claim in s.premises), None)
                others = [] if user is None else [p for p in user.premises if p != step.claim]
                early = [
                    s
                    for s in waiting
                    if not s.premises and s.rule.kind != "lib" and s.claim in others
                ]
                for other in early:
                    waiting.remove(other)
                done += [step] + early
            else:
                done.append(step)
        return done

    @staticmethod
    def sign(relation):
        return {"le": "\\leq", "lt": "<", "eq": "="}[relation]

    def chain(self, chain, fact, goal=None):
        names = []
        for link in chain.links:
            for name, _ in link:
                cited = (
                    self.cite(self.theory.facts[name])
                    if isinstance(name, str)
                    else f"the assumption {self.atom(fact.hyps[name])}"
                )
                if cited not in names:
                    names.append(cited)
        opening = self.rng.choice(["We compute", "We have", "We find"])
        lines = [opening, "\\begin{align*}"]
        first = self.notation.term(chain.terms[0])
        for index, term in enumerate(chain.terms[1:]):
            left = first if index == 0 else ""
            end = " \\\\" if index < len(chain.links) - 1 else ""
            lines.append(f"{left} & = {self.notation.term(term)}{end}".strip())
        lines.append("\\end{align*}")
        closing = self.rng.choice(
            [f"by {english_list(names)}.", f"where we used {english_list(names)}."]
        )
        return lines + wrap(closing)

    # Other parts of a paper

    def section(self, title, facts, first):
        title = say(title, self.words)
        label = "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())
        lines = [f"\\section{{{title}}}", f"\\label{{section-{label}}}", "", "\\noindent"]
        chosen = self.rng.sample(facts, min(2, len(facts)))
        chosen = [f for f in facts if f in chosen]
        points = [f"{say(f.gloss, self.words)} ({self.cite(f)})" for f in chosen]
        text = self.rng.choice(
            [
                f"In this section we show, among other things, that {english_list(points)}.",
                f"The results of this section say that {english_list(points)}.",
                f"We collect what we need later: {english_list(points)}.",
            ]
        )
        if first:
            text = "In this section we collect the first consequences of the definition."
        text += (
            f" Throughout, ${self.spec['carrier']}$ is {self.spec['article']}"
            f" {self.spec['structure']}."
        )
        return lines + wrap(text) + [""]

    def definition(self):
        spec = self.spec
        lines = [
            "\\begin{definition}",
            f"\\label{{definition-{spec['structure'].replace(' ', '-')}}}",
        ]
        lines += wrap(spec["definition"])
        lines += ["\\begin{enumerate}"]
        for name in self.theory.order:
            fact = self.theory.facts[name]
            if fact.kind != "axiom":
                continue
            text = f"{self.conclusion(fact)} for all {self.sort_phrase(fact.variables())}"
            if fact.hyps:
                text = (
                    f"if {english_list(self.atom(h) for h in fact.hyps)}, then"
                    f" {self.conclusion(fact)}"
                )
            lines += [f"\\item \\label{{{self.label(fact)}}}"] + wrap(f"{text},")
        lines[-1] = lines[-1][:-1] + "."
        return lines + ["\\end{enumerate}", "\\end{definition}", ""]

    def pair_notation(self, index):
        letters = self.pair_letters
        return Notation(self.spec["symbols"], {n: f"{letters[n]}_{index}" for n in letters})

    def product(self, fact):
        """The same fact in a product of two structures."""
        names = fact.variables()
        self.pair_letters = dict(zip(names, "pqrstu"))
        whole = Notation(self.spec["symbols"], self.pair_letters)
        place = self.spec["product"]
        goal = self.conclusion(fact, whole)
        hyps = english_list(self.atom(h, whole) for h in fact.hyps)
        sorts = f"${', '.join(self.pair_letters[n] for n in names)} \\in {place}$"
        text = f"Let {sorts}. If {hyps}, then {goal}." if hyps else f"Let {sorts}. Then {goal}."
        label = (
            self.label(fact).replace("lemma-", "lemma-product-").replace("item-", "lemma-product-")
        )
        lines = ["\\begin{lemma}", f"\\label{{{label}}}"] + wrap(text)
        lines += ["\\end{lemma}", "", "\\begin{proof}"]
        first = self.conclusion(fact, self.pair_notation(1))
        second = self.conclusion(fact, self.pair_notation(2))
        text = self.rng.choice(
            [
                (
                    f"By {self.cite(fact)} we have {first} in the first coordinate and {second} in"
                    " the second."
                ),
                (
                    f"In the two coordinates the claim reads {first} and {second}. Both hold by"
                    f" {self.cite(fact)}."
                ),
                (
                    f"We apply {self.cite(fact)} twice. In the first coordinate it gives {first},"
                    f" in the second {second}."
                ),
            ]
        )
        return lines + wrap(text) + ["\\end{proof}", ""]

    def pointwise(self, fact):
        """The same fact for families."""
        names = fact.variables()
        letters = dict(zip(names, ["f", "g", "h", "k", "l", "m"]))
        whole = Notation(self.spec["symbols"], letters)
        local = Notation(self.spec["symbols"], {n: f"{letters[n]}(i)" for n in names})
        sorts = f"${', '.join(letters[n] for n in names)} \\in {self.spec['carrier']}^I$"
        goal = self.conclusion(fact, whole)
        hyps = english_list(self.atom(h, whole) for h in fact.hyps)
        text = f"Let {sorts}. If {hyps}, then {goal}." if hyps else f"Let {sorts}. Then {goal}."
        label = (
            self.label(fact).replace("lemma-", "lemma-family-").replace("item-", "lemma-family-")
        )
        lines = ["\\begin{lemma}", f"\\label{{{label}}}"] + wrap(text)
        lines += ["\\end{lemma}", "", "\\begin{proof}"]
        text = self.rng.choice(
            [
                f"Let $i \\in I$. Then {self.conclusion(fact, local)} by {self.cite(fact)}.",
                (
                    f"For every $i \\in I$ we have {self.conclusion(fact, local)} by"
                    f" {self.cite(fact)}, applied to"
                    f" ${', '.join(letters[n] + '(i)' for n in names)}$."
                ),
            ]
        )
        return lines + wrap(text) + ["\\end{proof}", ""]

    def example(self, fact, model, binding, name):
        """A fact for given elements of a finite model, with every value computed."""
        show = self.spec["show"]
        raw = {n: ("raw", show(v)) for n, v in binding.items()}
        setting = ", ".join(f"{self.notation.letter(n)} = {raw[n][1]}" for n in fact.variables())
        values = [
            f"${self.notation.term(term)} = {value}$"
            for term, value in computed(fact, model, binding, show, self.spec["unvalued"])
        ]
        opening = self.rng.choice(
            [
                f"In {name} take ${setting}$.",
                f"Consider ${setting}$ in {name}.",
                f"Let ${setting}$ in {name}.",
            ]
        )
        text = opening
        if values:
            text += (
                " "
                + self.rng.choice(["Then", "Here", "We find"])
                + " "
                + english_list(values)
                + "."
            )
        concl = fact.concl[2] if fact.concl[0] == "iff" else fact.concl
        shown = concl[:1] + tuple(
            (
                a
                if not isinstance(a, str) and a[0] in self.spec["unvalued"]
                else ("raw", show(model.value(a, binding)))
            )
            for a in concl[1:]
        )
        shown = logic.substitute(shown, raw)
        if concl[0] == "eq":
            both = show(model.value(concl[1], binding))
            text += f" This agrees with {self.cite(fact)}: both sides are ${both}$."
        else:
            text += f" This agrees with {self.cite(fact)}, which says that {self.atom(shown)}."
        return ["\\begin{example}"] + wrap(text) + ["\\end{example}", ""]

    def summary(self, facts, title):
        label = "-".join(title.lower().split())
        lines = ["\\begin{theorem}", f"\\label{{theorem-{label}}}"]
        names = sorted({n for f in facts for n in f.variables()})
        lines += wrap(
            f"Let ${self.spec['carrier']}$ be {self.spec['article']} {self.spec['structure']} and"
            f" let {self.sort_phrase(names)}."
        )
        lines += ["\\begin{enumerate}"]
        for fact in facts:
            text = self.conclusion(fact)
            if fact.hyps:
                text = f"If {english_list(self.atom(h) for h in fact.hyps)}, then {text}"
            else:
                text = f"We have {text}" if fact.concl[0] != "iff" else text
            lines += wrap(f"\\item {text}.")
        lines += ["\\end{enumerate}", "\\end{theorem}", "", "\\begin{proof}"]
        cites = [f"Part ({i}) is {self.cite(f)}." for i, f in enumerate(facts, 1)]
        return lines + wrap(" ".join(cites)) + ["\\end{proof}", ""]


def wrap(text, width=78):
    """Breaks lines at blanks outside of formulas."""
    lines, line, inside = [], "", False
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width and not inside:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
        if word.count("$") % 2:
            inside = not inside
    return lines + [line] if line else lines

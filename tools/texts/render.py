# SPDX-License-Identifier: Apache-2.0
"""What the three renderers share: notation with precedences, names, the order of a document."""

import re

from . import logic

ATOM = 100

# Infix and atomic forms as (format, own precedence, precedence wanted of each argument).
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Notation:
    """Writes terms with the symbols of a document."""

    def __init__(self, table, letters, texts=None):
        self.table = table
        self.letters = letters
        self.texts = texts or {}  # predicates that are said in words

    def letter(self, name):
        return self.letters.get(name, name)

    def term(self, term, wanted=0):
        if isinstance(term, str):
            return self.letter(term)
        if term[0] == "raw":  # a value written by a model
            return term[1]
        form, own, arguments = self.table[term[0]]
        if isinstance(arguments, int):
            arguments = (arguments,) * (len(term) - 1)
        parts = [self.term(argument, p) for argument, p in zip(term[1:], arguments)]
        text = form.format(*parts)
        return self.bracket(text) if own < wanted else text

    @staticmethod
    def bracket(text):
        return f"({text})"


def rename(fact, words, joiner="_"):
    """The name of a fact in the vocabulary of a document; what everybody knows keeps its name."""
    name = fact.name
    if fact.kind == "lib":
        return name
    return joiner.join(words.get(part, part) for part in name.split("_")).replace(" ", joiner)


def say(text, words):
    """A gloss or title in the vocabulary of a document, with the right article."""

    def word(found):
        article, key = found[1], found[2]
        value = words.get(key.lower(), key.lower())
        value = value[0].upper() + value[1:] if key[0].isupper() else value
        if article:
            return ("an " if value[0].lower() in "aeiou" else "a ") + value
        return value

    return re.sub(r"(?:\b(an?) )?\{(\w+)\}", word, text)


def used_rules(proof):
    """Names of the facts a proof uses."""
    if isinstance(proof, logic.Derivation):
        return [step.rule.name for step in proof.steps]
    if isinstance(proof, logic.Chain):
        return [n for link in proof.links for n, _ in link if isinstance(n, str)]
    if isinstance(proof, list):
        return [n for part in proof for n in used_rules(part)]
    if isinstance(proof, tuple):
        rule, _, _, chains = proof
        return [rule.name] + [n for part in chains for n in used_rules(part)]
    return []


def ordered(theory, wanted):
    """The wanted facts, each after everything its proof uses; circles raise."""
    done = []
    open_names = []

    def visit(name):
        if name in done:
            return
        if name in open_names:
            raise logic.ProofError(f"{theory.title}: {name} is used in its own proof")
        open_names.append(name)
        for used in used_rules(theory.facts[name].proof):
            visit(used)
        open_names.remove(name)
        if theory.facts[name].kind == "lemma":
            done.append(name)

    for name in wanted:
        visit(name)
    return [theory.facts[name] for name in done]


def parts_of(theory, layout):
    """Splits a theory into titled parts: layout is a list of (section number, mirrored)."""
    sections = []
    for name in theory.order:
        section = theory.facts[name].section
        if section and section not in sections:
            sections.append(section)
    placed = set()
    parts = []
    for number, mirrored in layout:
        section = sections[number]
        names = []
        for name in theory.order:
            fact = theory.facts[name]
            if fact.kind == "lemma" and fact.section == section and fact.is_dual == mirrored:
                names.append(name)
        facts = [f for f in ordered(theory, names) if f.name not in placed]
        placed.update(f.name for f in facts)
        if facts:
            title = theory.mirror_gloss(section) if mirrored else section
            parts.append((title, facts))
    return parts


def is_real(theory, name):
    """Whether a variable stands for a number rather than for an element."""
    return theory.title == "distance" and name in "rstu"


def groups(theory, names):
    """Variables split into elements and numbers."""
    elements = [n for n in names if not is_real(theory, n)]
    return elements, [n for n in names if is_real(theory, n)]


def english_list(parts, word="and"):
    """a, b and c."""
    parts = list(parts)
    if len(parts) < 2:
        return "".join(parts)
    return ", ".join(parts[:-1]) + f" {word} " + parts[-1]


def computed(fact, model, binding, show, unvalued):
    """Every value that a reader needs to check an instance: (term with values inside, value)."""

    def written(term):
        return ("raw", show(model.value(term, binding)))

    atoms = [fact.concl[1], fact.concl[2]] if fact.concl[0] == "iff" else [fact.concl]
    found = []
    for atom in list(fact.hyps) + atoms:
        terms = list(atom[1:])
        if atom[0] == "mem":  # what decides whether a point lies in a region is a distance
            kind, centre, _ = atom[2]
            outward = kind in ("ball", "far")
            terms.append(("d", centre, atom[1]) if outward else ("d", atom[1], centre))
        if atom[0] == "pre":
            terms.append(("d", atom[1], atom[2]))
        for argument in terms:
            for term in reversed(logic.subterms(argument)):
                if isinstance(term, str) or len(term) == 1 or term[0] in unvalued:
                    continue
                inner = tuple(
                    a if len(a) == 1 and not isinstance(a, str) else written(a) for a in term[1:]
                )
                pair = ((term[0],) + inner, written(term)[1])
                if pair not in found:
                    found.append(pair)
    return found

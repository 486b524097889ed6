# SPDX-License-Identifier: Apache-2.0
"""Terms, facts and a small prover.

A term is a variable (str) or a tuple (operation, argument, ...). A fact is a Horn clause:
hypotheses and a conclusion, an atom (le, eq, a predicate) or an equivalence of two atoms. The prover
finds a derivation of a fact from the facts its author hints at, or raises: no text is made from a
statement that was not derived.
"""

import dataclasses
import re


class ProofError(Exception):
    """A fact could not be derived from its hints."""


def parse(text, constants=()):
    """Reads a term such as 'le (meet x y) x'."""
    tokens = re.findall(r"[()]|[^\s()]+", text)
    position = 0

    def read_sequence():
        nonlocal position
        parts = []
        while position < len(tokens) and tokens[position] != ")":
            if tokens[position] == "(":
                position += 1
                parts.append(read_sequence())
                position += 1
            else:
                token = tokens[position]
                parts.append((token,) if token in constants else token)
                position += 1
        if len(parts) == 1:
            return parts[0]
        return tuple(parts)

    return read_sequence()


def variables(term, found=None):
    """The variables of a term in order of appearance."""
    if found is None:
        found = []
    if isinstance(term, str):
        if term not in found:
            found.append(term)
    else:
        for argument in term[1:]:
            variables(argument, found)
    return found


def subterms(term, found=None):
    """All subterms of a term, the term itself included, without repetition."""
    if found is None:
        found = []
    if term not in found:
        found.append(term)
    if not isinstance(term, str):
        for argument in term[1:]:
            subterms(argument, found)
    return found


def size(term):
    """Number of symbols."""
    return 1 if isinstance(term, str) else 1 + sum(size(argument) for argument in term[1:])


def substitute(term, binding):
    """The term with its variables replaced."""
    if isinstance(term, str):
        return binding.get(term, term)
    return (term[0],) + tuple(substitute(argument, binding) for argument in term[1:])


def match(pattern, term, binding):
    """Extends binding so that the pattern becomes the term, or None."""
    if isinstance(pattern, str):
        known = binding.get(pattern)
        if known is None:
            binding = dict(binding)
            binding[pattern] = term
            return binding
        return binding if known == term else None
    if isinstance(term, str) or term[0] != pattern[0] or len(term) != len(pattern):
        return None
    for left, right in zip(pattern[1:], term[1:]):
        binding = match(left, right, binding)
        if binding is None:
            return None
    return binding


@dataclasses.dataclass
class Fact:
    """A named statement. kind: lib (known), axiom, or lemma (has a proof)."""

    name: str
    hyps: list
    concl: tuple
    hints: list = dataclasses.field(default_factory=list)
    extra: list = dataclasses.field(default_factory=list)
    gloss: str = ""
    kind: str = "lemma"
    section: str = ""
    dual: str = ""
    is_dual: bool = False
    proof: object = None

    def variables(self):
        """Variables, hypotheses first."""
        found = []
        for term in self.hyps + [self.concl]:
            variables(term, found)
        return sorted(found, key=lambda name: (name == "w", name))

    def explicit(self):
        """Variables that no hypothesis determines."""
        bound = []
        for term in self.hyps:
            variables(term, bound)
        if self.concl[0] == "iff" and not self.hyps:
            return []
        return [name for name in self.variables() if name not in bound]


@dataclasses.dataclass
class Step:
    """One derived claim: rule applied with binding to premises (indices of steps or hypotheses)."""

    claim: tuple
    rule: object  # Fact
    way: str  # "", "mp", "mpr"
    binding: dict
    premises: list  # of claims


@dataclasses.dataclass
class Derivation:
    """A Horn derivation: steps in order, the last one is the goal."""

    steps: list


@dataclasses.dataclass
class Chain:
    """A chain of equal terms: terms[0] = terms[1] = ..., links[i] = list of (name, reversed)."""

    terms: list
    links: list


def rules_of(facts):
    """Horn rules (fact, way, hypotheses, conclusion) of facts."""
    for fact in facts:
        if fact.concl[0] == "iff":
            yield fact, "mp", fact.hyps + [fact.concl[1]], fact.concl[2]
            yield fact, "mpr", fact.hyps + [fact.concl[2]], fact.concl[1]
        else:
            yield fact, "", fact.hyps, fact.concl


def derive(hyps, goal, facts, extra=(), rounds=12):
    """Forward chaining inside a finite universe of terms; a Derivation of the goal."""
    universe = []
    for atom in list(hyps) + [goal]:
        for argument in atom[1:]:
            subterms(argument, universe)
    for term in extra:
        subterms(term, universe)
    inside = set(universe)
    known = {}
    by_head = {}

    def add(claim, step):
        if claim in known or any(argument not in inside for argument in claim[1:]):
            return False
        if claim[0] == "eq" and claim[1] == claim[2]:
            return False
        known[claim] = step
        by_head.setdefault(claim[0], []).append(claim)
        return True

    for hyp in hyps:
        add(hyp, None)
    rules = list(rules_of(facts))
    for _ in range(rounds):
        if goal in known:
            break
        fresh = []
        for fact, way, premises, conclusion in rules:
            bindings = [({}, [])]
            for premise in premises:
                extended = []
                for binding, used in bindings:
                    for claim in by_head.get(premise[0], []):
                        wider = match(premise, claim, binding)
                        if wider is not None:
                            extended.append((wider, used + [claim]))
                bindings = extended
            for binding, used in bindings:
                # Whatever is still free must make the conclusion a claim about the universe.
                fulls = [binding]
                for pattern in conclusion[1:]:
                    wider = []
                    for full in fulls:
                        for term in universe:
                            found = match(pattern, term, full)
                            if found is not None:
                                wider.append(found)
                    fulls = wider
                for full in fulls:
                    claim = substitute(conclusion, full)
                    if claim not in known:
                        fresh.append((claim, Step(claim, fact, way, full, used)))
        grown = False
        for claim, step in fresh:
            grown = add(claim, step) or grown
        if not grown:
            break
    if goal not in known:
        raise ProofError(f"no derivation of {goal} from {[f.name for f in facts]}")
    ordered = []

    def collect(claim):
        step = known[claim]
        if step is None or any(step is other for other in ordered):
            return
        for premise in step.premises:
            collect(premise)
        if not any(step is other for other in ordered):
            ordered.append(step)

    collect(goal)
    return Derivation(ordered)


def rewrites(term, rules, limit):
    """All one-step rewrites of a term: (new term, rule name, reversed)."""
    for name, backwards, left, right in rules:
        binding = match(left, term, {})
        if binding is not None and all(v in binding for v in variables(right)):
            yield substitute(right, binding), name, backwards
    if not isinstance(term, str):
        for index in range(1, len(term)):
            for new, name, backwards in rewrites(term[index], rules, limit):
                yield term[:index] + (new,) + term[index + 1 :], name, backwards


def normalise(term, rules, limit):
    """Rewrites while it can, smallest result first: the steps taken."""
    steps = []
    seen = {term}
    for _ in range(60):
        best = None
        for new, name, backwards in rewrites(term, rules, limit):
            if new not in seen and (best is None or size(new) < size(best[1])):
                best = (term, new, name, backwards)
        if best is None:
            break
        steps.append(best)
        term = best[1]
        seen.add(term)
    return steps


def meet_in_normal_form(start, end, rules, limit):
    """Links from start to end through a common normal form, or None."""
    left = normalise(start, rules, limit)
    right = normalise(end, rules, limit)
    on_left = [start] + [step[1] for step in left]
    on_right = [end] + [step[1] for step in right]
    for i, term in enumerate(on_left):
        if term in on_right:
            j = on_right.index(term)
            back = [(b, a, name, not backwards) for a, b, name, backwards in reversed(right[:j])]
            return left[:i] + back
    return None


def connect(start, end, rules, limit):
    """Breadth-first search from both ends; links from start to end."""
    seen = [{start: None}, {end: None}]
    edges = [[start], [end]]
    meeting = start if start == end else None
    for turn in range(12):
        if meeting is not None:
            break
        side = turn % 2 if len(edges[0]) == len(edges[1]) else int(len(edges[1]) < len(edges[0]))
        if not edges[side]:
            side = 1 - side
        frontier = []
        for term in edges[side]:
            for new, name, backwards in rewrites(term, rules, limit):
                if new in seen[side] or size(new) > limit:
                    continue
                seen[side][new] = (term, name, backwards)
                frontier.append(new)
                if new in seen[1 - side]:
                    meeting = new
                    break
            if meeting is not None:
                break
        edges[side] = frontier
        if len(seen[0]) + len(seen[1]) > 60000:
            break
    if meeting is None:
        raise ProofError(f"no chain from {start} to {end}")
    left = []
    term = meeting
    while seen[0][term] is not None:
        before, name, backwards = seen[0][term]
        left.append((before, term, name, backwards))
        term = before
    left.reverse()
    term = meeting
    while seen[1][term] is not None:
        before, name, backwards = seen[1][term]
        left.append((term, before, name, not backwards))
        term = before
    return left


def chain(hyps, goal, facts, waypoints=(), turned=()):
    """A chain of rewrites that proves an equation.

    Waypoints are terms to pass through; rules named in turned are used right to left.
    """
    rules = []
    for fact in facts:
        if fact.concl[0] != "eq" or fact.hyps:
            continue
        _, left, right = fact.concl
        if fact.name in turned:
            rules.append((fact.name, True, right, left))
            continue
        rules.append((fact.name, False, left, right))
        if fact.dual == fact.name and size(left) == size(right):  # such as moving brackets
            rules.append((fact.name, True, right, left))
    for index, hyp in enumerate(hyps):
        # Hypotheses hold for the variables as they are: freeze them.
        rules.append((index, False, hyp[1], hyp[2]))
        rules.append((index, True, hyp[2], hyp[1]))
    frozen = {v: ("$" + v,) for h in list(hyps) + [goal] for v in variables(h)}
    for term in waypoints:
        for v in variables(term):
            frozen[v] = ("$" + v,)
    rules = [
        (n, b, substitute(l, frozen), substitute(r, frozen)) if isinstance(n, int) else (n, b, l, r)
        for n, b, l, r in rules
    ]
    stops = [substitute(t, frozen) for t in [goal[1], *waypoints, goal[2]]]
    limit = max(size(t) for t in stops) + 14
    links = []
    for start, end in zip(stops, stops[1:]):
        found = None
        if not hyps:
            for skip in (True, False):  # moving brackets to the right only, to the left only
                one_way = [r for r in rules if size(r[2]) != size(r[3]) or r[1] is not skip]
                found = found or meet_in_normal_form(start, end, one_way, limit)
        links += found or connect(start, end, rules, limit)

    def thaw(term):
        if isinstance(term, str):
            return term
        if term[0].startswith("$"):
            return term[0][1:]
        return (term[0],) + tuple(thaw(a) for a in term[1:])

    if not links:
        raise ProofError(f"nothing to prove in {goal}")
    terms = [thaw(links[0][0])] + [thaw(link[1]) for link in links]
    names = [[(link[2], link[3])] for link in links]
    # No term twice: cut loops.
    position = 0
    while position < len(terms):
        last = len(terms) - 1 - terms[::-1].index(terms[position])
        del terms[position + 1 : last + 1], names[position:last]
        position += 1
    # Long chains are shown in fewer lines.
    while len(names) > 6:
        pairs = range(0, len(names) - 1)
        at = min(pairs, key=lambda i: (len(names[i]) + len(names[i + 1]), i))
        names[at : at + 2] = [names[at] + names[at + 1]]
        del terms[at + 1]
    return Chain(terms, names)


def swap(term, table):
    """The mirror image of a term. table: operation -> (operation, argument order)."""
    if isinstance(term, str):
        return term
    name, order = table.get(term[0], (term[0], None))
    arguments = [swap(argument, table) for argument in term[1:]]
    if order is not None:
        arguments = [arguments[i] for i in order]
    return (name,) + tuple(arguments)


class Theory:
    """Facts in order, with mirror images where the theory has a mirror symmetry.

    source: lines 'name / mirror name | hyp ; hyp | conclusion | hints | gloss [| extra terms]',
    'section TITLE' lines, and '!' before a name for axioms, '*' for what every reader knows.
    """

    def __init__(self, title, constants, mirror, words, source):
        self.title = title
        self.constants = constants
        self.mirror = mirror
        self.words = words  # mirror of words in names and glosses
        self.facts = {}
        self.order = []
        section = ""
        for line in source.strip().splitlines():
            line = line.strip()
            if not line:
                continue
            if line.startswith("section "):
                section = line[8:]
                continue
            fields = [field.strip() for field in line.split("|")]
            names = [name.strip() for name in fields[0].split("/")]
            kind = {"!": "axiom", "*": "lib"}.get(names[0][0], "lemma")
            name = names[0].lstrip("!*")
            hyps = [parse(h, constants) for h in fields[1].split(";") if h.strip()]
            goal = parse(fields[2], constants)
            hints = fields[3].split() if len(fields) > 3 else []
            gloss = fields[4] if len(fields) > 4 else ""
            extra = []
            if len(fields) > 5:
                extra = [parse(t, constants) for t in fields[5].split(";") if t.strip()]
            twin = names[1] if len(names) > 1 else self.mirror_name(name)
            fact = Fact(name, hyps, goal, hints, extra, gloss, kind, section, twin)
            self.add(fact)
        for name in list(self.order):
            fact = self.facts[name]
            if fact.dual == name or fact.dual in self.facts:
                continue
            twin = Fact(
                fact.dual,
                [swap(h, mirror) for h in fact.hyps],
                swap(fact.concl, mirror),
                [h[: h[0] == "<"] + self.facts[h.lstrip("<")].dual for h in fact.hints],
                [swap(t, mirror) for t in fact.extra],
                self.mirror_gloss(fact.gloss),
                fact.kind,
                fact.section,
                name,
                True,
            )
            self.add(twin)
        errors = []
        for name in self.order:
            try:
                self.prove(self.facts[name])
            except ProofError as error:
                errors.append(str(error))
        if errors:
            raise ProofError("\n".join(errors))

    def add(self, fact):
        if fact.name in self.facts:
            raise ProofError(f"{fact.name} twice")
        self.facts[fact.name] = fact
        self.order.append(fact.name)

    def mirror_name(self, name):
        return "_".join(self.words.get(part, part) for part in name.split("_"))

    def mirror_gloss(self, gloss):
        return re.sub(r"\{(\w+)\}", lambda m: "{" + self.words.get(m[1], m[1]) + "}", gloss)

    def prove(self, fact):
        """Finds and keeps the proof of a lemma."""
        if fact.kind != "lemma":
            return
        facts = [self.facts[h.lstrip("<")] for h in fact.hints]
        turned = {h[1:] for h in fact.hints if h[0] == "<"}
        try:
            if fact.concl[0] == "iff":
                fact.proof = [
                    derive(fact.hyps + [fact.concl[1]], fact.concl[2], facts, fact.extra),
                    derive(fact.hyps + [fact.concl[2]], fact.concl[1], facts, fact.extra),
                ]
            elif all(f.concl[0] == "eq" for f in facts + [fact]) and all(
                h[0] == "eq" for h in fact.hyps
            ):
                fact.proof = self.prove_equation(fact, facts, turned)
            else:
                fact.proof = derive(fact.hyps, fact.concl, facts, fact.extra)
        except ProofError as error:
            raise ProofError(f"{self.title}: {fact.name}: {error}") from error

    def prove_equation(self, fact, facts, turned):
        """An equation: a chain, or a chain and then a rule with hypotheses."""
        conditional = [f for f in facts if f.hyps]
        if not conditional:
            return chain(fact.hyps, fact.concl, facts, fact.extra, turned)
        rule = conditional[0]
        binding = match(rule.concl, fact.concl, {})
        for v in rule.variables():
            if v not in binding:
                binding[v] = fact.extra[0]
        need = [substitute(h, binding) for h in rule.hyps]
        plain = [f for f in facts if not f.hyps]
        chains = [chain(fact.hyps, n, plain, (), turned) for n in need]
        return rule, binding, need, chains

# SPDX-License-Identifier: Apache-2.0
"""Small finite models: facts are checked in them, and the examples of the texts come from them."""

import itertools
import math

from . import logic


class Model:
    """A carrier (by sort), operations, and relations; raw values are plain Python values."""

    def __init__(self, elements, operations, numbers=()):
        self.elements = elements
        self.operations = operations
        self.numbers = list(numbers)

    def value(self, term, binding):
        if isinstance(term, str):
            return binding[term]
        if term[0] == "eq":
            return self.value(term[1], binding) == self.value(term[2], binding)
        if term[0] == "iff":
            return self.value(term[1], binding) == self.value(term[2], binding)
        return self.operations[term[0]](*(self.value(a, binding) for a in term[1:]))

    def holds(self, fact, binding):
        if not all(self.value(h, binding) for h in fact.hyps):
            return True
        return self.value(fact.concl, binding)

    def domain(self, theory, name):
        return self.numbers if theory.title == "distance" and name in "rstu" else self.elements

    def check(self, theory, rng, tries=300):
        """Tries every fact on random elements; raises on a counterexample."""
        for fact in theory.facts.values():
            names = fact.variables()
            for _ in range(tries):
                binding = {n: rng.choice(self.domain(theory, n)) for n in names}
                if not self.holds(fact, binding):
                    raise logic.ProofError(f"{theory.title}: {fact.name} fails for {binding}")

    def instance(self, theory, fact, rng, dull=(), tries=4000):
        """Elements for which the hypotheses hold, as different and lively as can be found."""
        names = fact.variables()
        best = None
        for _ in range(tries):
            binding = {n: rng.choice(self.domain(theory, n)) for n in names}
            if not all(self.value(h, binding) for h in fact.hyps):
                continue
            if fact.concl[0] == "iff" and not self.value(fact.concl[1], binding):
                continue
            values = [v for n, v in binding.items()]
            score = len(set(map(repr, values))) - sum(v in dull for v in values)
            terms = [t for h in fact.hyps + [fact.concl] for a in h[1:] for t in logic.subterms(a)]
            terms = [t for t in terms if not isinstance(t, str) and t[0] not in ("le", "eq")]
            score += 0.5 * len({repr(self.value(t, binding)) for t in terms})
            if best is None or score > best[0]:
                best = (score, binding)
            if score >= len(names) + 0.5 * len(terms):
                break
        return best[1] if best else None


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]


def divisor_model(number, hull=1, heart=1, tie=1):
    """Divisors of a number, ordered by divisibility."""
    elements = divisors(number)

    def imp(y, z):
        return math.lcm(*(x for x in elements if z % math.gcd(x, y) == 0))

    def diff(z, y):
        return math.gcd(*(x for x in elements if math.lcm(x, y) % z == 0))

    return Model(
        elements,
        {
            "le": lambda x, y: y % x == 0,
            "meet": math.gcd,
            "join": math.lcm,
            "cl": lambda x: math.lcm(x, hull),
            "kr": lambda x: math.gcd(x, heart),
            "closed": lambda x: math.lcm(x, hull) == x,
            "open": lambda x: math.gcd(x, heart) == x,
            "up": lambda x: math.gcd(x, tie),
            "dn": lambda y: imp(tie, y),
            "imp": imp,
            "diff": diff,
            "top": lambda: number,
            "bot": lambda: 1,
            "neg": lambda x: imp(x, 1),
            "conot": lambda x: diff(number, x),
        },
    )


def relation_model(size, rng, count):
    """Relations on a few points, as frozen sets of pairs."""
    points = range(size)
    pairs = list(itertools.product(points, points))
    every = frozenset(pairs)

    def comp(a, b):
        return frozenset((p, r) for p, q in a for s, r in b if q == s)

    def lres(a, c):
        return frozenset((q, r) for q, r in pairs if all((p, r) in c for p, s in a if s == q))

    def rres(c, a):
        return frozenset((p, q) for p, q in pairs if all((p, r) in c for s, r in a if s == q))

    def star(a):
        result = frozenset((p, p) for p in points)
        while True:
            larger = result | comp(a, result)
            if larger == result:
                return result
            result = larger

    elements = [frozenset((p, p) for p in points), every]
    while len(elements) < count:
        found = frozenset(rng.sample(pairs, rng.randint(1, len(pairs) // 2)))
        if found not in elements:
            elements.append(found)
    return Model(
        elements,
        {
            "le": lambda a, b: a <= b,
            "join": lambda a, b: a | b,
            "comp": comp,
            "lres": lres,
            "rres": rres,
            "star": star,
            "conv": lambda a: frozenset((q, p) for p, q in a),
            "one": lambda: elements[0],
            "trans": lambda a: comp(a, a) <= a,
        },
    )


def affine_model(prime):
    """The maps t -> p t + q modulo a prime, p not zero, as pairs (p, q)."""
    elements = [(p, q) for p in range(1, prime) for q in range(prime)]

    def mul(a, b):
        return (a[0] * b[0] % prime, (a[0] * b[1] + a[1]) % prime)

    def inv(a):
        turned = pow(a[0], -1, prime)
        return (turned, -turned * a[1] % prime)

    return Model(
        elements,
        {
            "mul": mul,
            "inv": inv,
            "one": lambda: (1, 0),
            "conj": lambda a, b: mul(mul(a, b), inv(a)),
            "rconj": lambda a, b: mul(inv(a), mul(b, a)),
            "comm": lambda a, b: mul(mul(a, b), mul(inv(a), inv(b))),
            "rcomm": lambda a, b: mul(mul(inv(b), inv(a)), mul(b, a)),
            "ldiv": lambda a, b: mul(inv(a), b),
            "rdiv": lambda a, b: mul(a, inv(b)),
            "map": lambda a: (a[0], 0),
        },
    )


def road_model(size, rng):
    """Points joined by one-way roads of whole lengths; d is the length of a shortest way."""
    points = list("ABCDEFGH"[:size])
    table = {(p, q): 0 if p == q else 99 for p in points for q in points}
    for p, after in zip(points, points[1:] + points[:1]):
        table[p, after] = rng.randint(1, 9)
        table[p, rng.choice([q for q in points if q != p])] = rng.randint(0, 9)
    for k in points:
        for p in points:
            for q in points:
                table[p, q] = min(table[p, q], table[p, k] + table[k, q])
    # A short map: points go to a point no farther away; the constant map is always short.
    maps = (dict(zip(points, images)) for images in itertools.product(points, repeat=size))
    short = [
        m for m in maps if all(table[m[p], m[q]] <= table[p, q] for p in points for q in points)
    ]
    image = max(
        (m for m in short if any(m[p] != p for p in points)),
        key=lambda m: (len(set(m.values())), sorted(m.items())),
    )
    return Model(
        points,
        {
            "le": lambda r, s: r <= s,
            "lt": lambda r, s: r < s,
            "add": lambda r, s: r + s,
            "zero": lambda: 0,
            "d": lambda x, y: table[x, y],
            "sym": lambda x, y: table[x, y] + table[y, x],
            "ball": lambda x, r: ("ball", x, r),
            "cob": lambda x, r: ("cob", x, r),
            "far": lambda x, r: ("far", x, r),
            "cofar": lambda x, r: ("cofar", x, r),
            "mem": lambda y, region: {
                "ball": table[region[1], y] < region[2],
                "cob": table[y, region[1]] < region[2],
                "far": table[region[1], y] <= region[2],
                "cofar": table[y, region[1]] <= region[2],
            }[region[0]],
            "pre": lambda x, y: table[x, y] == 0,
            "map": lambda x: image[x],
        },
        numbers=range(0, 24),
    )

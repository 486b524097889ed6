# SPDX-License-Identifier: Apache-2.0
"""A LaTeX chapter on sequences with two-term recursions: every formula is checked with numbers."""

import random

from .latex import wrap

FILE = "twine-sequences.tex"
SEED = 14

# name, letter of the sequence, letter of its companion, p, q
FAMILY = [
    ("bracken", "b", "B", 1, -2),
    ("heath", "h", "H", 3, 1),
    ("gorse", "g", "G", 2, -3),
    ("sedge", "s", "S", 4, 2),
    ("clover", "c", "C", 3, -2),
    ("vetch", "w", "W", 5, 3),
    ("yarrow", "y", "Y", 4, -1),
]


def number(value, after=False):
    """A coefficient in front of a factor, with its sign."""
    sign = "-" if value < 0 else "+" if after else ""
    size = "" if abs(value) == 1 else f"{abs(value)} "
    return f"{sign} {size}" if after else f"{sign}{size}"


class Twine:
    """u_0 = 0, u_1 = 1, v_0 = 2, v_1 = p and x_(n+2) = p x_(n+1) - q x_n for both."""

    def __init__(self, p, q):
        self.p, self.q, self.disc = p, q, p * p - 4 * q
        self.u_values, self.v_values = [0, 1], [2, p]
        for values in (self.u_values, self.v_values):
            while len(values) < 200:
                values.append(p * values[-1] - q * values[-2])

    def u(self, n):
        return self.u_values[n]

    def v(self, n):
        return self.v_values[n]


# Each identity: key, statement with u, v, p, q, a proof, a check, and the same with letters and
# numbers put in. {u} and {v} are the letters, {mq} is "- q" with its sign worked out, and so on.
IDENTITIES = [
    (
        "companion",
        "v_n = 2 u_{n + 1} - p u_n",
        "n \\geq 0",
        (
            "Both sides satisfy the recursion. For $n = 0$ both sides are equal to $2$, and for $n"
            " = 1$ the right hand side is $2 p - p = p$."
        ),
        lambda t, m, n: t.v(n) == 2 * t.u(n + 1) - t.p * t.u(n),
        lambda t, u, v: f"{v}_n = 2 {u}_{{n + 1}} {number(-t.p, True)}{u}_n",
        lambda t, m, n: f"{t.v(n)} = 2 \\cdot {t.u(n + 1)} {sign(-t.p)} {abs(t.p)} \\cdot {t.u(n)}",
    ),
    (
        "neighbours",
        "v_{n + 1} = u_{n + 2} - q u_n",
        "n \\geq 0",
        (
            "By Lemma \\ref{lemma-companion} we have $v_{n + 1} = 2 u_{n + 2} - p u_{n + 1}$. Since"
            " $u_{n + 2} = p u_{n + 1} - q u_n$ the claim follows."
        ),
        lambda t, m, n: t.v(n + 1) == t.u(n + 2) - t.q * t.u(n),
        lambda t, u, v: f"{v}_{{n + 1}} = {u}_{{n + 2}} {number(-t.q, True)}{u}_n",
        lambda t, m, n: f"{t.v(n + 1)} = {t.u(n + 2)} {sign(-t.q)} {abs(t.q)} \\cdot {t.u(n)}",
    ),
    (
        "discriminant",
        "d u_n = 2 v_{n + 1} - p v_n",
        "n \\geq 0",
        (
            "Both sides satisfy the recursion. For $n = 0$ we have $2 v_1 - p v_0 = 2 p - 2 p = 0$."
            " For $n = 1$ we have $2 v_2 - p v_1 = 2 (p^2 - 2 q) - p^2 = p^2 - 4 q = d$."
        ),
        lambda t, m, n: t.disc * t.u(n) == 2 * t.v(n + 1) - t.p * t.v(n),
        lambda t, u, v: f"{number(t.disc)}{u}_n = 2 {v}_{{n + 1}} {number(-t.p, True)}{v}_n",
        lambda t, m, n: (
            f"{t.disc} \\cdot {t.u(n)} = 2 \\cdot {t.v(n + 1)} {sign(-t.p)} {abs(t.p)} \\cdot"
            f" {t.v(n)}"
        ),
    ),
    (
        "square",
        "u_{n + 1}^2 - u_n u_{n + 2} = q^n",
        "n \\geq 0",
        (
            "We argue by induction on $n$. For $n = 0$ the left hand side is $1$. We have $u_{n +"
            " 2}^2 - u_{n + 1} u_{n + 3} = u_{n + 2}(p u_{n + 1} - q u_n) - u_{n + 1}(p u_{n + 2} -"
            " q u_{n + 1})$ which is equal to $q (u_{n + 1}^2 - u_n u_{n + 2})$."
        ),
        lambda t, m, n: t.u(n + 1) ** 2 - t.u(n) * t.u(n + 2) == t.q**n,
        lambda t, u, v: f"{u}_{{n + 1}}^2 - {u}_n {u}_{{n + 2}} = {power(t.q)}",
        lambda t, m, n: f"{t.u(n + 1)}^2 - {t.u(n)} \\cdot {t.u(n + 2)} = {t.q**n}",
    ),
    (
        "addition",
        "u_{m + n + 1} = u_{m + 1} u_{n + 1} - q u_m u_n",
        "m, n \\geq 0",
        (
            "Fix $m$. Both sides satisfy the recursion in $n$. For $n = 0$ both sides are equal to"
            " $u_{m + 1}$, and for $n = 1$ the claim is $u_{m + 2} = p u_{m + 1} - q u_m$."
        ),
        lambda t, m, n: t.u(m + n + 1) == t.u(m + 1) * t.u(n + 1) - t.q * t.u(m) * t.u(n),
        lambda t, u, v: (
            f"{u}_{{m + n + 1}} = {u}_{{m + 1}} {u}_{{n + 1}} {number(-t.q, True)}{u}_m {u}_n"
        ),
        lambda t, m, n: (
            f"{t.u(m + n + 1)} = {t.u(m + 1)} \\cdot {t.u(n + 1)} {sign(-t.q)} {abs(t.q)} \\cdot "
            f"{t.u(m)} \\cdot {t.u(n)}"
        ),
    ),
    (
        "odd",
        "u_{2n + 1} = u_{n + 1}^2 - q u_n^2",
        "n \\geq 0",
        "This is Lemma \\ref{lemma-addition} with $m = n$.",
        lambda t, m, n: t.u(2 * n + 1) == t.u(n + 1) ** 2 - t.q * t.u(n) ** 2,
        lambda t, u, v: f"{u}_{{2n + 1}} = {u}_{{n + 1}}^2 {number(-t.q, True)}{u}_n^2",
        lambda t, m, n: (
            f"{t.u(2 * n + 1)} = {t.u(n + 1)}^2 {sign(-t.q)} {abs(t.q)} \\cdot {t.u(n)}^2"
        ),
    ),
    (
        "double",
        "u_{2n} = u_n v_n",
        "n \\geq 0",
        (
            "The case $n = 0$ is clear. For $n \\geq 1$ we apply Lemma \\ref{lemma-addition} with"
            " $m = n - 1$ and get $u_{2n} = u_n u_{n + 1} - q u_{n - 1} u_n = u_n (u_{n + 1} - q"
            " u_{n - 1})$. Now use Lemma \\ref{lemma-neighbours}."
        ),
        lambda t, m, n: t.u(2 * n) == t.u(n) * t.v(n),
        lambda t, u, v: f"{u}_{{2n}} = {u}_n {v}_n",
        lambda t, m, n: f"{t.u(2 * n)} = {t.u(n)} \\cdot {t.v(n)}",
    ),
    (
        "conic",
        "v_n^2 - d u_n^2 = 4 q^n",
        "n \\geq 0",
        (
            "By Lemma \\ref{lemma-companion} we have $v_n^2 = 4 u_{n + 1}^2 - 4 p u_n u_{n + 1} +"
            " p^2 u_n^2$. Subtracting $d u_n^2 = p^2 u_n^2 - 4 q u_n^2$ we get $4 (u_{n + 1}^2 -"
            " u_n (p u_{n + 1} - q u_n))$ and the claim follows from Lemma \\ref{lemma-square}."
        ),
        lambda t, m, n: t.v(n) ** 2 - t.disc * t.u(n) ** 2 == 4 * t.q**n,
        lambda t, u, v: (
            f"{v}_n^2 {number(-t.disc, True)}{u}_n^2 = 4 \\cdot {power(t.q)}"
            if t.q != 1
            else f"{v}_n^2 {number(-t.disc, True)}{u}_n^2 = 4"
        ),
        lambda t, m, n: (
            f"{t.v(n)}^2 {sign(-t.disc)} {abs(t.disc)} \\cdot {t.u(n)}^2 = {4 * t.q**n}"
        ),
    ),
    (
        "companion-double",
        "v_{2n} = v_n^2 - 2 q^n",
        "n \\geq 0",
        (
            "By Lemma \\ref{lemma-companion} and Lemma \\ref{lemma-odd} we have $v_{2n} = 2 u_{n +"
            " 1}^2 - 2 q u_n^2 - p u_{2n}$. Now use Lemma \\ref{lemma-double}, Lemma"
            " \\ref{lemma-companion} and Lemma \\ref{lemma-square}."
        ),
        lambda t, m, n: t.v(2 * n) == t.v(n) ** 2 - 2 * t.q**n,
        lambda t, u, v: (
            f"{v}_{{2n}} = {v}_n^2 - 2 \\cdot {power(t.q)}"
            if t.q != 1
            else f"{v}_{{2n}} = {v}_n^2 - 2"
        ),
        lambda t, m, n: f"{t.v(2 * n)} = {t.v(n)}^2 {sign(-(t.q**n))} {2 * abs(t.q**n)}",
    ),
    (
        "sum",
        "(p - q - 1) \\sum\\nolimits_{k = 0}^n u_k = u_{n + 1} - q u_n - 1",
        "n \\geq 0",
        (
            "We argue by induction on $n$. For $n = 0$ both sides are zero. If we pass from $n$ to"
            " $n + 1$ the left hand side grows by $(p - q - 1) u_{n + 1}$ and the right hand side"
            " grows by $u_{n + 2} - q u_{n + 1} - u_{n + 1} + q u_n = (p - q - 1) u_{n + 1}$."
        ),
        lambda t, m, n: (t.p - t.q - 1) * sum(t.u_values[: n + 1]) == t.u(n + 1) - t.q * t.u(n) - 1,
        lambda t, u, v: (
            f"{number(t.p - t.q - 1)}\\sum\\nolimits_{{k = 0}}^n {u}_k = {u}_{{n + 1}}"
            f" {number(-t.q, True)}{u}_n - 1"
        ),
        lambda t, m, n: (
            f"{t.p - t.q - 1} \\cdot {sum(t.u_values[: n + 1])} = {t.u(n + 1)} {sign(-t.q)}"
            f" {abs(t.q)} \\cdot {t.u(n)} - 1"
        ),
    ),
    (
        "mixed",
        "2 u_{m + n} = u_m v_n + v_m u_n",
        "m, n \\geq 0",
        (
            "Fix $m$. Both sides satisfy the recursion in $n$. For $n = 0$ both sides are equal to"
            " $2 u_m$. For $n = 1$ the claim is $2 u_{m + 1} = p u_m + v_m$, which is Lemma"
            " \\ref{lemma-companion}."
        ),
        lambda t, m, n: 2 * t.u(m + n) == t.u(m) * t.v(n) + t.v(m) * t.u(n),
        lambda t, u, v: f"2 {u}_{{m + n}} = {u}_m {v}_n + {v}_m {u}_n",
        lambda t, m, n: (
            f"2 \\cdot {t.u(m + n)} = {t.u(m)} \\cdot {t.v(n)} + {t.v(m)} \\cdot {t.u(n)}"
        ),
    ),
    (
        "companion-mixed",
        "2 v_{m + n} = v_m v_n + d u_m u_n",
        "m, n \\geq 0",
        (
            "Fix $m$. Both sides satisfy the recursion in $n$. For $n = 0$ both sides are equal to"
            " $2 v_m$. For $n = 1$ the claim is $2 v_{m + 1} = p v_m + d u_m$, which is Lemma"
            " \\ref{lemma-discriminant}."
        ),
        lambda t, m, n: 2 * t.v(m + n) == t.v(m) * t.v(n) + t.disc * t.u(m) * t.u(n),
        lambda t, u, v: f"2 {v}_{{m + n}} = {v}_m {v}_n {number(t.disc, True)}{u}_m {u}_n",
        lambda t, m, n: (
            f"2 \\cdot {t.v(m + n)} = {t.v(m)} \\cdot {t.v(n)} {sign(t.disc)} {abs(t.disc)} \\cdot"
            f" {t.u(m)} \\cdot {t.u(n)}"
        ),
    ),
    (
        "reflection",
        "u_{m + 2n} + q^n u_m = u_{m + n} v_n",
        "m, n \\geq 0",
        (
            "Fix $n$. Both sides satisfy the recursion in $m$. For $m = 0$ the claim is Lemma"
            " \\ref{lemma-double}. For $m = 1$ it follows from Lemma \\ref{lemma-odd}, Lemma"
            " \\ref{lemma-companion} and Lemma \\ref{lemma-square}."
        ),
        lambda t, m, n: t.u(m + 2 * n) + t.q**n * t.u(m) == t.u(m + n) * t.v(n),
        lambda t, u, v: (
            f"{u}_{{m + 2n}} + {power(t.q)} {u}_m = {u}_{{m + n}} {v}_n"
            if t.q != 1
            else f"{u}_{{m + 2n}} + {u}_m = {u}_{{m + n}} {v}_n"
        ),
        lambda t, m, n: (
            f"{t.u(m + 2 * n)} {sign(t.q**n)} {abs(t.q**n)} \\cdot {t.u(m)} = {t.u(m + n)} \\cdot"
            f" {t.v(n)}"
        ),
    ),
    (
        "companion-reflection",
        "v_{m + 2n} + q^n v_m = v_{m + n} v_n",
        "m, n \\geq 0",
        (
            "Fix $n$. Both sides satisfy the recursion in $m$. For $m = 0$ the claim is Lemma"
            " \\ref{lemma-companion-double}. For $m = 1$ it follows from Lemma"
            " \\ref{lemma-reflection} and Lemma \\ref{lemma-neighbours}."
        ),
        lambda t, m, n: t.v(m + 2 * n) + t.q**n * t.v(m) == t.v(m + n) * t.v(n),
        lambda t, u, v: (
            f"{v}_{{m + 2n}} + {power(t.q)} {v}_m = {v}_{{m + n}} {v}_n"
            if t.q != 1
            else f"{v}_{{m + 2n}} + {v}_m = {v}_{{m + n}} {v}_n"
        ),
        lambda t, m, n: (
            f"{t.v(m + 2 * n)} {sign(t.q**n)} {abs(t.q**n)} \\cdot {t.v(m)} = {t.v(m + n)} \\cdot"
            f" {t.v(n)}"
        ),
    ),
    (
        "triple",
        "u_{3n} = u_n (v_n^2 - q^n)",
        "n \\geq 0",
        (
            "By Lemma \\ref{lemma-reflection} with $m = n$ we have $u_{3n} + q^n u_n = u_{2n} v_n$."
            " Now use Lemma \\ref{lemma-double}."
        ),
        lambda t, m, n: t.u(3 * n) == t.u(n) * (t.v(n) ** 2 - t.q**n),
        lambda t, u, v: f"{u}_{{3n}} = {u}_n ({v}_n^2 - {power(t.q)})",
        lambda t, m, n: (
            f"{t.u(3 * n)} = {t.u(n)} \\cdot ({t.v(n)}^2 {sign(-(t.q**n))} {abs(t.q**n)})"
        ),
    ),
    (
        "companion-square",
        "v_n v_{n + 2} - v_{n + 1}^2 = d q^n",
        "n \\geq 0",
        (
            "We argue as in the proof of Lemma \\ref{lemma-square}. For $n = 0$ we have $2 (p^2 - 2"
            " q) - p^2 = p^2 - 4 q = d$."
        ),
        lambda t, m, n: t.v(n) * t.v(n + 2) - t.v(n + 1) ** 2 == t.disc * t.q**n,
        lambda t, u, v: (
            f"{v}_n {v}_{{n + 2}} - {v}_{{n + 1}}^2 = {t.disc} \\cdot {power(t.q)}"
            if t.q != 1
            else f"{v}_n {v}_{{n + 2}} - {v}_{{n + 1}}^2 = {t.disc}"
        ),
        lambda t, m, n: f"{t.v(n)} \\cdot {t.v(n + 2)} - {t.v(n + 1)}^2 = {t.disc * t.q**n}",
    ),
]


def sign(value):
    return "-" if value < 0 else "+"


def power(q):
    return "1" if q == 1 else f"({q})^n" if q < 0 else f"{q}^n"


def check():
    """Every identity for every member of the family and many indices."""
    for _, _, _, p, q in FAMILY:
        twine = Twine(p, q)
        for identity in IDENTITIES:
            for m in range(9):
                for n in range(9):
                    if not identity[4](twine, m, n):
                        raise AssertionError(f"{identity[0]} fails for p={p} q={q} m={m} n={n}")


def lemma(label, text, proof, kind="lemma"):
    lines = (
        [f"\\begin{{{kind}}}", f"\\label{{lemma-{label}}}"] + wrap(text) + [f"\\end{{{kind}}}", ""]
    )
    return lines + ["\\begin{proof}"] + wrap(proof) + ["\\end{proof}", ""]


def general(rng):
    """The lemmas for all twine sequences."""
    lines = ["\\section{Identities}", "\\label{section-identities}", "", "\\noindent"]
    lines += wrap(
        "Let $u_n$ be the twine sequence with parameters $p$ and $q$, let $v_n$ be its companion"
        " and let $d = p^2 - 4 q$ be its discriminant. Two sequences which satisfy the recursion"
        " and which agree for $n = 0$ and for $n = 1$ are equal."
    ) + [""]
    for key, statement, range_, proof, *_ in IDENTITIES:
        text = rng.choice(
            [f"For all ${range_}$ we have ${statement}$.", f"Let ${range_}$. Then ${statement}$."]
        )
        lines += lemma(key, text, proof)
    text = "Let $m, n \\geq 0$. Then $u_n$ divides $u_{mn}$."
    proof = (
        "We argue by induction on $m$. The case $m = 0$ is clear. The case $n = 0$ is clear. By"
        " Lemma \\ref{lemma-addition} we have $u_{mn + n} = u_{mn + 1} u_n - q u_{mn} u_{n - 1}$."
        " By induction $u_n$ divides $u_{mn}$, hence $u_n$ divides $u_{mn + n}$."
    )
    return lines + lemma("divides", text, proof)


def period(values, modulus):
    """The smallest positive period of a sequence modulo a number that starts again at its start."""
    for length in range(1, modulus * modulus + 1):
        if all((values(i + length) - values(i)) % modulus == 0 for i in (0, 1)):
            return length
    return None


def member(name, u, v, twine, rng):
    """One sequence: its first values, all identities with numbers."""
    p, q = twine.p, twine.q
    lines = [f"\\section{{The {name} sequence}}", f"\\label{{section-{name}}}", ""]
    lines += ["\\begin{definition}", f"\\label{{definition-{name}}}"]
    recursion = f"{u}_{{n + 2}} = {number(p)}{u}_{{n + 1}} {number(-q, True)}{u}_n"
    lines += wrap(
        f"The {{\\it {name} sequence}} $({u}_n)$ is the twine sequence with parameters $p = {p}$"
        f" and $q = {q}$. Its companion is denoted $({v}_n)$. Thus ${u}_0 = 0$, ${u}_1 = 1$ and"
        f" ${recursion}$, and similarly ${v}_0 = 2$, ${v}_1 = {p}$ and"
        f" ${recursion.replace(u + '_', v + '_')}$."
    )
    lines += ["\\end{definition}", "", "\\noindent"]
    values = ", ".join(f"{u}_{n} = {twine.u(n)}" for n in range(2, 9))
    others = ", ".join(f"{v}_{n} = {twine.v(n)}" for n in range(2, 9))
    lines += wrap(
        f"The discriminant is $d = {twine.disc}$. The first values of the {name} sequence are"
    )
    lines += [
        "$$",
        values,
        "$$",
        "and the first values of its companion are",
        "$$",
        others,
        "$$",
        "",
    ]
    for key, _, range_, _, _, put, show in IDENTITIES:
        statement = put(twine, u, v)
        text = rng.choice(
            [f"For all ${range_}$ we have ${statement}$.", f"Let ${range_}$. Then ${statement}$."]
        )
        two = "m" in range_
        m, n = rng.randint(1, 3), rng.randint(2, 4 if key in ("triple", "sum") else 5)
        if two:
            n = rng.randint(1, 3)
        case = f"$m = {m}$ and $n = {n}$" if two else f"$n = {n}$"
        proof = rng.choice(
            [
                (
                    f"This is Lemma \\ref{{lemma-{key}}} with $p = {p}$ and $q = {q}$. For {case}"
                    f" we find ${show(twine, m, n)}$."
                ),
                (
                    f"Apply Lemma \\ref{{lemma-{key}}} to the {name} sequence. For example,"
                    f" ${show(twine, m, n)}$ for {case}."
                ),
                (
                    f"Set $p = {p}$ and $q = {q}$ in Lemma \\ref{{lemma-{key}}}. For {case} this"
                    f" says that ${show(twine, m, n)}$."
                ),
            ]
        )
        lines += lemma(f"{name}-{key}", text, proof)
    lines += periods(name, u, twine, rng)
    return lines


def periods(name, u, twine, rng):
    """The sequence modulo some primes."""
    lines = []
    for modulus in rng.sample([5, 7, 11, 13], 2):
        length = period(twine.u, modulus)
        if length is None:
            continue
        text = f"The {name} sequence modulo ${modulus}$ is periodic with period ${length}$."
        residues = [twine.u(i) % modulus for i in range(min(length, 12) + 2)]
        shown = ", ".join(str(r) for r in residues)
        proof = (
            f"The residues of ${u}_0, {u}_1, {u}_2, \\ldots$ modulo ${modulus}$ are ${shown}"
            + (", \\ldots$. " if length > 12 else "$. ")
            + f"Moreover ${u}_{{{length}}} \\equiv 0$ and ${u}_{{{length + 1}}} \\equiv 1$ modulo"
            f" ${modulus}$, and ${length}$ is the smallest positive integer with this property."
            " Since the recursion determines all later values, the claim follows."
        )
        lines += lemma(f"{name}-modulo-{modulus}", text, proof)
    return lines


def compare(rng, twines):
    """Statements that need several sections at once."""
    lines = ["\\section{Comparing the sequences}", "\\label{section-comparing}", ""]
    for first in range(len(FAMILY)):
        for second in range(first + 1, len(FAMILY)):
            if rng.random() < 0.4:
                continue
            (name, u, v, *_), (other, x, y, *_) = FAMILY[first], FAMILY[second]
            a, b = twines[first], twines[second]
            n = rng.randint(3, 7)
            low, high = sorted([(a.u(n), f"{u}_{n}", name), (b.u(n), f"{x}_{n}", other)])
            relation = "=" if low[0] == high[0] else "<"
            text = f"We have ${low[1]} {relation} {high[1]}$."
            proof = (
                f"See Sections \\ref{{section-{low[2]}}} and \\ref{{section-{high[2]}}}: we have"
                f" ${low[1]} = {low[0]}$ and ${high[1]} = {high[0]}$."
            )
            lines += lemma(f"{name}-{other}", text, proof)
    return lines


def every():
    """The chapter: name -> text."""
    check()
    rng = random.Random(SEED)
    twines = [Twine(p, q) for _, _, _, p, q in FAMILY]
    lines = [
        "\\title{Twine sequences}",
        "\\maketitle",
        "",
        "\\section{Overview}",
        "\\label{section-overview}",
        "",
        "\\noindent",
    ]
    lines += wrap(
        "We study sequences of integers given by a recursion with two terms. We first prove"
        " identities for all such sequences. Then we look at seven of them in more detail."
    ) + [""]
    lines += ["\\begin{definition}", "\\label{definition-twine}"]
    lines += wrap(
        "Let $p$ and $q$ be integers with $q \\not = 0$. The {\\it twine sequence} with parameters"
        " $p$ and $q$ is the sequence of integers $u_0, u_1, u_2, \\ldots$ with $u_0 = 0$, $u_1 ="
        " 1$ and $u_{n + 2} = p u_{n + 1} - q u_n$ for all $n \\geq 0$. Its {\\it companion} is the"
        " sequence of integers $v_0, v_1, v_2, \\ldots$ with $v_0 = 2$, $v_1 = p$ and $v_{n + 2} ="
        " p v_{n + 1} - q v_n$ for all $n \\geq 0$. Its {\\it discriminant} is $d = p^2 - 4 q$."
    )
    lines += ["\\end{definition}", ""] + general(rng)
    for (name, u, v, _, _), twine in zip(FAMILY, twines):
        lines += member(name, u, v, twine, rng)
    lines += compare(rng, twines)
    return {FILE: "\n".join(line.rstrip() for line in lines) + "\n"}

# SPDX-License-Identifier: Apache-2.0
"""The documents: vocabulary, symbols, running examples, layout."""

import random

from . import models, sequences, theories
from .isabelle import Isabelle
from .latex import Latex
from .latex import wrap as wrap_latex
from .lean import Lean, wrap
from .render import ATOM, english_list, parts_of


def infix(sign, own=70, argument=None):
    argument = own + 1 if argument is None else argument
    return (f"{{0}} {sign} {{1}}", own, argument)


def latex_call(sign):
    return (f"{sign}({{0}})", ATOM, 0)


def call(name, count=1):
    """Application without brackets, as in Lean and Isabelle."""
    return (" ".join([name] + [f"{{{i}}}" for i in range(count)]), 90, ATOM)


def constant(sign):
    return (sign, ATOM, 0)


LATEX = {
    "le": infix("\\leq", 50),
    "lt": infix("<", 50),
    "eq": infix("=", 50),
    "iff": infix("\\Leftrightarrow", 20),
}
LEAN = {"le": infix("≤", 50), "lt": infix("<", 50), "eq": infix("=", 50), "iff": infix("↔", 20)}
ISABELLE = {
    "le": infix("\\<le>", 50),
    "lt": infix("<", 50),
    "eq": infix("=", 50),
    "iff": infix("\\<longleftrightarrow>", 20),
}


def show_plain(value):
    return str(value)


def show_pair(value):
    return f"({value[0]}, {value[1]})"


def arrows(sign, opening, closing, empty):
    """Writes a relation as a set of arrows."""

    def show(value):
        if not value:
            return empty
        return opening + ", ".join(f"{p}{sign}{q}" for p, q in sorted(value)) + closing

    return show


SPECS = []


def spec(**fields):
    SPECS.append(fields)


spec(
    file="tarns.tex",
    language=Latex,
    theory=theories.LATTICE,
    seed=11,
    title="Tarns",
    structure="tarn",
    article="a",
    carrier="T",
    product="T \\times U",
    words={
        "meet": "knit",
        "join": "weld",
        "cl": "mantle",
        "kr": "pith",
        "closure": "mantle",
        "core": "pith",
        "closed": "mantled",
        "open": "pithy",
        "up": "rise",
        "dn": "fall",
    },
    said={"closed": "mantled", "open": "pithy"},
    symbols={
        **LATEX,
        "meet": infix("\\sqcap"),
        "join": infix("\\sqcup"),
        "cl": latex_call("\\kappa"),
        "kr": latex_call("\\pi"),
        "up": latex_call("\\rho"),
        "dn": latex_call("\\varphi"),
    },
    definition=(
        "A {\\it tarn} is a partially ordered set $T$ together with operations $\\sqcap$ and"
        " $\\sqcup$, called the knit and the weld, and maps $\\kappa, \\pi, \\rho, \\varphi : T"
        " \\to T$, called the mantle, the pith, the rise and the fall, such that"
    ),
    intro=(
        "We develop the elementary theory of tarns. Every result about knits "
        "and mantles has a dual version about welds and piths. We state and prove both."
    ),
    model=lambda rng: models.divisor_model(360, 6, 20, 12),
    model_name="$D_{360}$",
    model_text=(
        "Let $D_{360}$ be the set of the divisors of $360$, ordered by divisibility. The knit of"
        " two divisors is their greatest common divisor, the weld is their least common multiple."
        " We put $\\kappa(x) = x \\sqcup 6$ and $\\pi(x) = x \\sqcap 20$, and $\\rho(x) = x \\sqcap"
        " 12$; then $\\varphi(y)$ is the largest $x$ with $x \\sqcap 12 \\leq y$. This is a tarn."
    ),
    show=show_plain,
    dull=(1, 360),
    unvalued=(),
    layout=[
        (0, False),
        (1, False),
        (0, True),
        (2, False),
        (1, True),
        (3, False),
        (2, True),
        (3, True),
    ],
    extra=("product",),
    share=0.28,
)

spec(
    file="drifts.tex",
    language=Latex,
    theory=theories.DISTANCE,
    seed=12,
    title="Drift spaces",
    structure="drift space",
    article="a",
    carrier="X",
    words={
        "d": "drift",
        "ball": "plume",
        "cob": "catchment",
        "far": "full plume",
        "cofar": "full catchment",
        "pre": "glides to",
        "sym": "round trip",
        "map": "ferry map",
        "mem": "mem",
    },
    symbols={
        **LATEX,
        "d": ("\\delta({0}, {1})", ATOM, 0),
        "add": infix("+", 60, 60),
        "zero": constant("0"),
        "mem": infix("\\in", 50),
        "pre": infix("\\rightsquigarrow", 50),
        "ball": ("P({0}, {1})", ATOM, 0),
        "cob": ("C({0}, {1})", ATOM, 0),
        "far": ("\\overline{{P}}({0}, {1})", ATOM, 0),
        "cofar": ("\\overline{{C}}({0}, {1})", ATOM, 0),
        "sym": ("\\tau({0}, {1})", ATOM, 0),
        "map": latex_call("f"),
    },
    definition=(
        "Let $X$ be a set and let $\\delta : X \\times X \\to \\mathbf{R}$ be a function. We say "
        "$X$ is a {\\it drift space} if the following hold. Here $P(x, r)$ is the plume of $x$, "
        "$C(x, r)$ is the catchment of $x$, and $f : X \\to X$ is a ferry map."
    ),
    intro=(
        "We study drift spaces. The drift from $x$ to $y$ need not be equal to "
        "the drift from $y$ to $x$. Hence every notion has two versions, and we state and "
        "prove both."
    ),
    model=lambda rng: models.road_model(6, rng),
    model_name="the network",
    model_text=(
        "The network has the landing stages $A, B, C, D, E, F$. The drift from one stage to another"
        " is the length of the shortest way along the channels; it is given in the following table,"
        " where the row is the stage one leaves and the column the stage one reaches."
    ),
    show=show_plain,
    dull=(),
    unvalued=("ball", "cob", "far", "cofar", "add"),
    layout=[
        (0, False),
        (1, False),
        (0, True),
        (2, False),
        (1, True),
        (3, False),
        (2, True),
        (3, True),
        (4, False),
        (4, True),
    ],
    extra=(),
    share=0.9,
)

spec(
    file="relays.tex",
    language=Latex,
    theory=theories.RELATION,
    seed=13,
    title="Relay algebras",
    structure="relay algebra",
    article="a",
    carrier="R",
    product="R \\times S",
    words={
        "comp": "pass",
        "join": "pool",
        "one": "idle",
        "lres": "left rest",
        "rres": "right rest",
        "star": "loop",
        "conv": "return",
        "trans": "steady",
    },
    said={"trans": "steady"},
    symbols={
        **LATEX,
        "comp": infix("\\cdot", 70),
        "join": infix("+", 60),
        "one": constant("1"),
        "lres": infix("\\backslash", 60),
        "rres": infix("/", 60),
        "star": ("{0}^*", 95, ATOM),
        "conv": ("{0}^\\circ", 95, ATOM),
    },
    letters={"d": "d"},
    definition=(
        "A {\\it relay algebra} is a partially ordered set $R$ together with an element $1 \\in "
        "R$ and operations $a \\cdot b$, $a + b$, $a \\backslash c$, $c / a$, $a^*$ and "
        "$a^\\circ$ such that"
    ),
    intro=(
        "We study relay algebras. Most results come in two versions, one on "
        "the left and one on the right. We state and prove both."
    ),
    model=lambda rng: models.relation_model(3, rng, 16),
    model_name="$\\mathcal{R}_3$",
    model_text=(
        "Let $\\mathcal{R}_3$ be the set of the relations on the stations $0, 1, 2$, ordered by"
        " inclusion. We write $01$ for the arrow from $0$ to $1$. The pass is the composition of"
        " relations, the pool is the union, the loop is the reflexive and transitive closure, the"
        " return turns all arrows around."
    ),
    show=arrows("", "\\{", "\\}", "\\emptyset"),
    dull=(),
    unvalued=(),
    layout=[
        (0, False),
        (1, False),
        (0, True),
        (1, True),
        (2, False),
        (3, False),
        (2, True),
        (4, False),
        (3, True),
        (4, True),
    ],
    extra=("pointwise",),
    share=0.32,
)

spec(
    file="Knoll.lean",
    language=Lean,
    theory=theories.LATTICE,
    seed=21,
    title="Knolls",
    structure="knoll",
    namespace="Knoll",
    carrier="K",
    product="K × L",
    mixed=False,
    words={
        "meet": "dip",
        "join": "crest",
        "cl": "shell",
        "kr": "stem",
        "closure": "shell",
        "core": "stem",
        "closed": "shelled",
        "open": "stemmed",
        "up": "lift",
        "dn": "drop",
    },
    letters={"x": "a", "y": "b", "z": "c", "w": "d"},
    symbols={
        **LEAN,
        "meet": infix("⋏", 70),
        "join": infix("⋎", 65),
        "cl": call("shell"),
        "kr": call("stem"),
        "up": call("lift"),
        "dn": call("drop"),
        "closed": call("Shelled"),
        "open": call("Stemmed"),
    },
    definition="A knoll is a partial order with dips, crests, shells and stems.",
    class_head="class Knoll (K : Type*) extends PartialOrder K where",
    fields=[
        "dip : K → K → K",
        "crest : K → K → K",
        "shell : K → K",
        "stem : K → K",
        "lift : K → K",
        "drop : K → K",
        "Shelled : K → Prop",
        "Stemmed : K → Prop",
    ],
    intro=(
        "In this file we define knolls and prove basic lemmas about dips, crests, shells and stems."
    ),
    model=lambda rng: models.divisor_model(420, 10, 84, 60),
    model_name="Divisor 420",
    model_text=(
        "The divisors of 420, with `gcd` as dip and `lcm` as crest; the shell is `lcm 10`, the stem"
        " is `gcd 84`, and `lift` is `gcd 60`."
    ),
    show=show_plain,
    dull=(1, 420),
    unvalued=(),
    layout=[
        (0, False),
        (0, True),
        (1, False),
        (2, False),
        (1, True),
        (3, False),
        (3, True),
        (2, True),
    ],
    extra=("product", "pointwise"),
    share=0.7,
)

spec(
    file="Wicket.lean",
    language=Lean,
    theory=theories.GROUP,
    seed=22,
    title="Wickets",
    structure="wicket",
    namespace="Wicket",
    carrier="W",
    product="W × V",
    mixed=False,
    words={
        "mul": "run",
        "one": "still",
        "inv": "undo",
        "conj": "swing",
        "rconj": "sway",
        "comm": "gap",
        "rcomm": "rift",
        "ldiv": "lead",
        "rdiv": "trail",
        "map": "carry",
    },
    letters={"a": "u", "b": "v", "c": "w"},
    symbols={
        **LEAN,
        "mul": infix("*", 70, (70, 71)),
        "one": constant("1"),
        "inv": ("{0}⁻¹", 95, ATOM),
        "conj": call("swing", 2),
        "rconj": call("sway", 2),
        "comm": call("gap", 2),
        "rcomm": call("rift", 2),
        "ldiv": call("lead", 2),
        "rdiv": call("trail", 2),
        "map": call("carry"),
    },
    definition="A wicket is a type with a product, a neutral element and inverses.",
    class_head="class Wicket (W : Type*) extends Mul W, One W, Inv W where",
    fields=[
        "swing : W → W → W",
        "sway : W → W → W",
        "gap : W → W → W",
        "rift : W → W → W",
        "lead : W → W → W",
        "trail : W → W → W",
        "carry : W → W",
    ],
    intro=(
        "In this file we define wickets and prove basic lemmas about swings, gaps, sways and rifts."
    ),
    model=lambda rng: models.affine_model(7),
    model_name="Affine 7",
    model_text=(
        "The affine maps `t ↦ p * t + q` modulo 7, written as pairs `(p, q)`, with composition as"
        " product. `carry` forgets `q`."
    ),
    show=show_pair,
    dull=((1, 0),),
    unvalued=(),
    layout=[
        (0, False),
        (0, True),
        (1, False),
        (2, False),
        (1, True),
        (3, False),
        (2, True),
        (3, True),
        (4, False),
        (4, True),
    ],
    extra=("product", "pointwise"),
    share=0.5,
)

spec(
    file="Ravel.lean",
    language=Lean,
    theory=theories.IMPLICATION,
    seed=23,
    title="Ravels",
    structure="ravel",
    namespace="Ravel",
    carrier="R",
    product="R × S",
    mixed=True,
    words={
        "meet": "pinch",
        "join": "spread",
        "top": "all",
        "bot": "nil",
        "imp": "pull",
        "diff": "shed",
        "neg": "block",
        "conot": "spare",
    },
    symbols={
        **LEAN,
        "meet": infix("⊓", 70),
        "join": infix("⊔", 65),
        "top": constant("⊤"),
        "bot": constant("⊥"),
        "imp": infix("⇾", 60, 61),
        "diff": infix("⧵", 60, 61),
        "neg": call("block"),
        "conot": call("spare"),
    },
    definition="A ravel is a bounded partial order with pinches, spreads, pulls and sheds.",
    class_head="class Ravel (R : Type*) extends PartialOrder R, OrderTop R, OrderBot R where",
    fields=[
        "pinch : R → R → R",
        "spread : R → R → R",
        "pull : R → R → R",
        "shed : R → R → R",
        "block : R → R",
        "spare : R → R",
    ],
    intro=(
        "In this file we define ravels and prove basic lemmas about pulls, blocks, sheds and "
        "spares."
    ),
    model=lambda rng: models.divisor_model(720),
    model_name="Divisor 720",
    model_text=(
        "The divisors of 720, with `gcd` as pinch and `lcm` as spread. The pull `x ⇾ y` is the"
        " largest divisor whose pinch with `x` divides `y`."
    ),
    show=show_plain,
    dull=(1, 720),
    unvalued=(),
    layout=[(0, False), (1, False), (0, True), (2, False), (1, True), (2, True)],
    extra=("product", "pointwise"),
    share=0.95,
)

spec(
    file="Ferry.thy",
    language=Isabelle,
    theory=theories.RELATION,
    seed=31,
    title="Ferry",
    structure="ferry line",
    carrier="'a",
    words={
        "comp": "trip",
        "join": "merge",
        "one": "berth",
        "lres": "lshore",
        "rres": "rshore",
        "star": "shuttle",
        "conv": "recross",
        "trans": "calm",
    },
    symbols={
        **ISABELLE,
        "comp": infix("\\<odot>", 70),
        "join": infix("\\<oplus>", 65),
        "one": constant("\\<one>"),
        "lres": call("lshore", 2),
        "rres": call("rshore", 2),
        "star": call("shuttle"),
        "conv": call("recross"),
        "trans": call("calm"),
    },
    letters={"a": "p", "b": "q", "c": "r", "d": "s"},
    definition=(
        "A ferry line is an ordered set with trips, merges, shores, shuttles and recrossings."
    ),
    fields=[
        'trip :: "\'a \\<Rightarrow> \'a \\<Rightarrow> \'a::order" (infixl "\\<odot>" 70)',
        'merge :: "\'a \\<Rightarrow> \'a \\<Rightarrow> \'a" (infixl "\\<oplus>" 65)',
        'berth :: "\'a" ("\\<one>")',
        "lshore :: \"'a \\<Rightarrow> 'a \\<Rightarrow> 'a\"",
        "rshore :: \"'a \\<Rightarrow> 'a \\<Rightarrow> 'a\"",
        "shuttle :: \"'a \\<Rightarrow> 'a\"",
        "recross :: \"'a \\<Rightarrow> 'a\"",
        'calm :: "\'a \\<Rightarrow> bool"',
    ],
    intro=(
        "This theory defines ferry lines and proves basic facts about trips, shores and shuttles."
    ),
    model=lambda rng: models.relation_model(3, rng, 14),
    model_name="the line with three piers",
    model_text=(
        "Relations between the piers 0, 1 and 2 form a ferry line. We write 01 for the trip from 0"
        " to 1."
    ),
    show=arrows("", "{", "}", "{}"),
    dull=(),
    unvalued=(),
    layout=[
        (0, False),
        (1, False),
        (2, False),
        (0, True),
        (1, True),
        (2, True),
        (3, False),
        (4, False),
        (3, True),
        (4, True),
    ],
    extra=("product", "pointwise"),
    share=0.4,
)

spec(
    file="Hinge.thy",
    language=Isabelle,
    theory=theories.GROUP,
    seed=32,
    title="Hinge",
    structure="hinge",
    carrier="'a",
    words={
        "mul": "fold",
        "one": "flat",
        "inv": "flip",
        "conj": "lturn",
        "rconj": "rturn",
        "comm": "lslack",
        "rcomm": "rslack",
        "ldiv": "lpart",
        "rdiv": "rpart",
        "map": "print",
    },
    symbols={
        **ISABELLE,
        "mul": infix("\\<cdot>", 70),
        "one": constant("\\<e>"),
        "inv": call("flip"),
        "conj": call("lturn", 2),
        "rconj": call("rturn", 2),
        "comm": call("lslack", 2),
        "rcomm": call("rslack", 2),
        "ldiv": call("lpart", 2),
        "rdiv": call("rpart", 2),
        "map": call("print"),
    },
    letters={"a": "x", "b": "y", "c": "z"},
    definition=(
        "A hinge is a set with folds and flips, left and right turns, and left and right slacks."
    ),
    fields=[
        'fold :: "\'a \\<Rightarrow> \'a \\<Rightarrow> \'a" (infixl "\\<cdot>" 70)',
        'flat :: "\'a" ("\\<e>")',
        "flip :: \"'a \\<Rightarrow> 'a\"",
        "lturn :: \"'a \\<Rightarrow> 'a \\<Rightarrow> 'a\"",
        "rturn :: \"'a \\<Rightarrow> 'a \\<Rightarrow> 'a\"",
        "lslack :: \"'a \\<Rightarrow> 'a \\<Rightarrow> 'a\"",
        "rslack :: \"'a \\<Rightarrow> 'a \\<Rightarrow> 'a\"",
        "lpart :: \"'a \\<Rightarrow> 'a \\<Rightarrow> 'a\"",
        "rpart :: \"'a \\<Rightarrow> 'a \\<Rightarrow> 'a\"",
        "print :: \"'a \\<Rightarrow> 'a\"",
    ],
    intro="This theory defines hinges and proves basic facts about turns and slacks.",
    model=lambda rng: models.affine_model(5),
    model_name="the affine hinge modulo 5",
    model_text=(
        "The affine maps modulo 5, written as pairs, form a hinge; its print forgets the second"
        " entry."
    ),
    show=show_pair,
    dull=((1, 0),),
    unvalued=(),
    layout=[
        (0, False),
        (1, False),
        (0, True),
        (1, True),
        (2, False),
        (3, False),
        (2, True),
        (4, False),
        (3, True),
        (4, True),
    ],
    extra=("product",),
    share=0.4,
)

spec(
    file="Sluice.thy",
    language=Isabelle,
    theory=theories.IMPLICATION,
    seed=33,
    title="Sluice",
    structure="sluice",
    carrier="'a",
    words={
        "meet": "strait",
        "join": "basin",
        "top": "flood",
        "bot": "dry",
        "imp": "gate",
        "diff": "weir",
        "neg": "dam",
        "conot": "levee",
    },
    letters={"x": "a", "y": "b", "z": "c", "w": "d"},
    symbols={
        **ISABELLE,
        "meet": infix("\\<sqinter>", 70),
        "join": infix("\\<squnion>", 65),
        "top": constant("\\<top>"),
        "bot": constant("\\<bottom>"),
        "imp": infix("\\<rightarrowtail>", 60, 61),
        "diff": infix("\\<setminus>", 60, 61),
        "neg": call("dam"),
        "conot": call("levee"),
    },
    definition=(
        "A sluice is an ordered set with straits and basins, gates and weirs, dams and levees."
    ),
    fields=[
        'strait :: "\'a \\<Rightarrow> \'a \\<Rightarrow> \'a::order" (infixl "\\<sqinter>" 70)',
        'basin :: "\'a \\<Rightarrow> \'a \\<Rightarrow> \'a" (infixl "\\<squnion>" 65)',
        'flood :: "\'a" ("\\<top>")',
        'dry :: "\'a" ("\\<bottom>")',
        'gate :: "\'a \\<Rightarrow> \'a \\<Rightarrow> \'a" (infixr "\\<rightarrowtail>" 60)',
        'weir :: "\'a \\<Rightarrow> \'a \\<Rightarrow> \'a" (infixl "\\<setminus>" 60)',
        "dam :: \"'a \\<Rightarrow> 'a\"",
        "levee :: \"'a \\<Rightarrow> 'a\"",
    ],
    intro="This theory defines sluices and proves basic facts about gates, weirs, dams and levees.",
    model=lambda rng: models.divisor_model(540),
    model_name="the divisors of 540",
    model_text=(
        "The divisors of 540 form a sluice: the strait is the greatest common divisor, the basin"
        " the least common multiple."
    ),
    show=show_plain,
    dull=(1, 540),
    unvalued=(),
    layout=[(0, False), (0, True), (1, False), (2, False), (1, True), (2, True)],
    extra=("product",),
    share=0.4,
)


def model_block(writer, spec_, model):
    """The running example, with a table where the model cannot be described in words."""
    table = []
    if spec_["theory"] is theories.DISTANCE:
        points = model.elements
        table = ["\\begin{center}", "\\begin{tabular}{" + "c" * (len(points) + 1) + "}"]
        table += ["& " + " & ".join(f"${p}$" for p in points) + " \\\\", "\\hline"]
        for p in points:
            row = [f"${p}$"] + [f"${model.operations['d'](p, q)}$" for q in points]
            table.append(" & ".join(row) + " \\\\")
        images = english_list(f"$f({p}) = {model.operations['map'](p)}$" for p in points)
        table += ["\\end{tabular}", "\\end{center}"] + wrap_latex(f"The ferry map has {images}.")
    if spec_["language"] is Latex:
        lines = ["\\begin{example}", "\\label{example-running}"] + wrap_latex(spec_["model_text"])
        return lines + table + ["\\end{example}", ""]
    if spec_["language"] is Lean:
        return wrap(f"/-! {spec_['model_text']} -/") + [""]
    return wrap(f"text \\<open>{spec_['model_text']}\\<close>", 90) + [""]


def header(spec_):
    """What stands before the definition."""
    title = spec_["title"]
    if spec_["language"] is Latex:
        return (
            [
                f"\\title{{{title}}}",
                "\\maketitle",
                "",
                "\\section{Overview}",
                "\\label{section-overview}",
                "",
                "\\noindent",
            ]
            + wrap_latex(spec_["intro"])
            + [""]
        )
    if spec_["language"] is Lean:
        lines = [
            "import Mathlib.Order.Basic",
            "import Mathlib.Data.Real.Basic",
            "",
            "/-!",
            f"# {title}",
            "",
        ]
        lines += wrap(spec_["intro"]) + ["-/", ""]
        return lines
    return (
        [f"theory {title}", "  imports Main", "begin", "", f"section \\<open>{title}s\\<close>", ""]
        + wrap(f"text \\<open>{spec_['intro']}\\<close>", 90)
        + [""]
    )


def notation_lines(spec_):
    """Lean notation for the operations that are written between their arguments."""
    lines = []
    known = {"le", "lt", "eq", "iff", "mul", "add", "mem"}
    for op, (form, own, _) in spec_["symbols"].items():
        if op not in known and form.startswith("{0} ") and form.endswith(" {1}"):
            lines.append(
                f'scoped infixl:{own} " {form[4:-4]} " => {spec_["namespace"]}.{spec_["words"][op]}'
            )
    return lines


def extra_part(kind, writer, spec_, facts):
    """A part about products or about families, with the facts restated there."""
    language = spec_["language"]
    plural = spec_["structure"] + "s"
    if language is Latex:
        if kind == "product":
            title = f"Products of {plural}"
            text = (
                f"Let ${spec_['product'].replace(' ', ' ')}$ be the product of two {plural}. For $p"
                " = (p_1, p_2)$ and $q = (q_1, q_2)$ all operations and the order are taken in"
                " each coordinate. The facts of the previous sections hold in each coordinate,"
                " hence in the product."
            )
        else:
            title = f"Families in {plural}"
            text = (
                f"Let $I$ be a set and let ${spec_['carrier']}^I$ be the set of the functions from"
                f" $I$ to ${spec_['carrier']}$. All operations and the order are taken for each $i"
                " \\in I$. The facts of the previous sections hold for each $i$, hence for"
                " families."
            )
        lines = (
            [f"\\section{{{title}}}", f"\\label{{section-{kind}}}", "", "\\noindent"]
            + wrap_latex(text)
            + [""]
        )
    elif language is Lean:
        title = f"Products of {plural}" if kind == "product" else f"Functions into {plural}"
        lines = [
            "/-!",
            f"### {title}",
            "",
            "All operations and the order are taken "
            + ("in each component." if kind == "product" else "at each point."),
            "-/",
            "",
        ]
        if kind == "product":
            left, right = spec_["product"].split(" × ")
            lines += [
                (
                    f"variable {{{right} : Type*}} [{spec_['namespace']} {right}] {{p q r s :"
                    f" {spec_['product']}}}"
                ),
                "",
            ]
        else:
            lines += [f"variable {{ι : Type*}} {{f g k l : ι → {spec_['carrier']}}}", ""]
    else:
        title = f"Products of {plural}" if kind == "product" else f"Functions into {plural}"
        rule = "prod_rule" if kind == "product" else "fun_rule"
        lines = (
            [f"subsection \\<open>{title}\\<close>", ""]
            + wrap(
                "text \\<open>All operations and the order are taken"
                f" {'in each component' if kind == 'product' else 'at each point'}; the rule @{{thm"
                f" [source] {rule}}} reduces a claim to its parts.\\<close>",
                90,
            )
            + [""]
        )
    for fact in facts:
        lines += writer.product(fact) if kind == "product" else writer.pointwise(fact)
    return lines


def build(spec_):
    """The text of a document."""
    rng = random.Random(spec_["seed"])
    theory, language = spec_["theory"], spec_["language"]
    model = spec_["model"](rng)
    model.check(theory, random.Random(spec_["seed"] + 1), 60)
    writer = language(theory, spec_, rng)
    lines = header(spec_)
    if language is Lean:
        lines += writer.definition()
        lines += [f"namespace {spec_['namespace']}", ""] + notation_lines(spec_)
        lines += [
            "",
            f"variable {{{spec_['carrier']} : Type*}} [{spec_['namespace']} {spec_['carrier']}]",
            "",
        ]
    elif language is Latex:
        lines += [
            "\\section{Definitions}",
            "\\label{section-definitions}",
            "",
        ] + writer.definition()
    else:
        lines += writer.definition()
    parts = parts_of(theory, spec_["layout"])
    told = []
    for number, (title, facts) in enumerate(parts):
        lines += writer.section(title, facts, number == 0)
        for fact in facts:
            lines += writer.fact(fact)
            told.append(fact)
            if number and rng.random() < 0.14:
                shown = rng.choice(told[-12:])
                binding = model.instance(theory, shown, rng, spec_["dull"])
                if binding:
                    lines += writer.example(shown, model, binding, spec_["model_name"])
        if language is Lean:
            lines += writer.end_section(title)
        if number == 0:
            lines += model_block(writer, spec_, model)
        if number % 3 == 2:
            pool = [f for f in told if f.concl[0] in ("le", "eq")]
            chosen = rng.sample(pool, min(9, len(pool)))
            ordinal = ["First", "Second", "Third", "Fourth"][number // 3]
            lines += writer.summary([f for f in pool if f in chosen], f"{ordinal} digest")
    plain = [
        f
        for f in told
        if f.concl[0] in ("le", "eq")
        and all(h[0] in ("le", "eq") for h in f.hyps)
        and len(f.variables()) < 5
    ]
    for kind in spec_["extra"]:
        chosen = rng.sample(plain, int(spec_["share"] * len(plain)))
        lines += extra_part(kind, writer, spec_, [f for f in plain if f in chosen])
    if not spec_["extra"]:
        lines += example_part(writer, spec_, model, told, rng)
    pool = [f for f in told if f.concl[0] in ("le", "eq") and not f.hyps]
    chosen = rng.sample(pool, min(14, len(pool)))
    lines += writer.summary([f for f in pool if f in chosen], "Final digest")
    if language is Latex:
        lines += ["\\end{document}"]
    elif language is Lean:
        lines += [f"end {spec_['namespace']}"]
    else:
        lines += ["end", "", "end"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def example_part(writer, spec_, model, facts, rng):
    """A part that goes through the facts again in the running example."""
    title = "The running example again"
    if spec_["language"] is Latex:
        lines = [f"\\section{{{title}}}", "\\label{section-running-example}", "", "\\noindent"]
        lines += wrap_latex(
            "We return to Example \\ref{example-running} and look at the lemmas once more with"
            " numbers from its table."
        ) + [""]
    elif spec_["language"] is Lean:
        lines = ["/-!", f"### {title}", "-/", ""]
    else:
        lines = [f"subsection \\<open>{title}\\<close>", ""]
    chosen = rng.sample(facts, int(spec_["share"] * len(facts)))
    for fact in [f for f in facts if f in chosen]:
        binding = model.instance(spec_["theory"], fact, rng, spec_["dull"])
        if binding:
            lines += writer.example(fact, model, binding, spec_["model_name"])
    return lines


def every():
    """All documents: name -> text."""
    texts = {s["file"]: build(s) for s in SPECS}
    texts.update(sequences.every())
    return texts

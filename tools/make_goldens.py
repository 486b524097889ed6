#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden plans that the unit tests compare the library with.

    python3 -m pip install mpmath
    python3 tools/make_goldens.py                 # writes tests/golden/plans.json
    python3 tools/make_goldens.py --out FILE
    python3 tools/make_goldens.py --check         # exit 1 if the stored file differs

Nothing here is shared with the C++ code: every number follows from the equations below in
50-digit arithmetic and is printed with 20 significant digits, so that the only rounding a test
sees is the one of the library. Equal lists are stored once, in "lists"; cases name them by index.
"""

import argparse
import itertools
import json
import pathlib
import sys

from mpmath import mp, mpf

DIGITS = 50
PRINTED = 20
SCALES = (1, 2, 4, 8, 16, 32, 64)
EQUAL = mpf("1e-12")  # relative: lambdas closer than this count as equal

EQUATIONS = {
    "theta": "base^(-i/Dr) / trained_factor_i / factor_i, i = 0 .. Dr-1, Dr = rotary_dim/2",
    "turns": "r_i = train_length * trained theta_i / (2 pi)",
    "boundary": "x(beta): real pair index with r = beta; Dr ln(L/(2 pi beta))/ln(base) for plain "
    "RoPE, else linear in (i, ln r_i) between pairs and with the plain slope outside them",
    "low": "max(floor(x(beta_fast)), 0), or as given",
    "high": "min(ceil(x(beta_slow)), rotary_dim-1), or as given; regressive, uni, pro, power: "
    "at most Dr-1",
    "none": "1",
    "pi": "S",
    "ntk": "S^(i/(Dr-1))",
    "dynamic-ntk": "(S max(length, L)/L - (S-1))^(i/(Dr-1))",
    "yarn": "1/((1-t) + t/S), t = clamp((i-low)/(high-low), 0, 1), high-low = 0 becomes 0.001",
    "yarn-rotations": "1/(g + (1-g)/S), g = clamp((r_i-beta_slow)/(beta_fast-beta_slow), 0, 1)",
    "llama3": "as yarn-rotations with beta_fast 4",
    "longrope": "the given list",
    "regressive": "S^(sum_(k=1..K) (n+1-k) / sum_(k=1..n) k), K and n as for power",
    "uni": "as power with p = 0",
    "pro": "as power with p = 1",
    "power": "S^(sum_(k=1..K) k^p / sum_(k=1..n) k^p), K = clamp(i-low, 0, n), n = high-low",
    "custom": "the given factors, or the cumulative product of the given lambdas",
    "attention_scale": "1 + c ln S; c = 0.1 for yarn, yarn-rotations, regressive, uni, pro, power, "
    "else 0; longrope without a given c: sqrt(1 + ln S/ln L)",
    "shape": "of lambda_i = factor_(i+1)/factor_i with low < i and i+1 < high: all equal to "
    "1e-12 relative (or fewer than two): uniform; never rising: regressive; never falling: "
    "progressive; else mixed",
}

TEMPERED = {"yarn", "yarn-rotations", "regressive", "uni", "pro", "power"}
SUMMED = {"regressive", "uni", "pro", "power"}


class Geometry:
    """A model's rotary embedding as trained."""

    def __init__(self, name, rotary_dim, base, train_length, trained_factor=None):
        self.name = name
        self.rotary_dim = rotary_dim
        self.pairs = rotary_dim // 2
        self.base = base
        self.train_length = train_length
        self.trained_factor = trained_factor

    def plain_theta(self, i):
        return mpf(self.base) ** (-mpf(i) / self.pairs)

    def theta(self, i):
        divisor = self.trained_factor[i] if self.trained_factor else 1
        return self.plain_theta(i) / divisor

    def turns(self, i):
        return self.train_length * self.theta(i) / (2 * mp.pi)

    def pair_at(self, beta):
        """The real-valued pair index whose pair makes beta turns in the window."""
        if not self.trained_factor:
            ratio = self.train_length / (2 * mp.pi * mpf(beta))
            return self.pairs * mp.log(ratio) / mp.log(self.base)
        slope = -mp.log(self.base) / self.pairs
        target = mp.log(mpf(beta))
        logs = [mp.log(self.turns(i)) for i in range(self.pairs)]
        if target >= logs[0]:
            return (target - logs[0]) / slope
        for i in range(self.pairs - 1):
            if logs[i] >= target >= logs[i + 1]:
                return i + (logs[i] - target) / (logs[i] - logs[i + 1])
        return self.pairs - 1 + (target - logs[-1]) / slope


def llama31():
    """Llama-3.1-8B: trained with llama3 scaling by 8 over an original window of 8192."""
    original = Geometry("", 128, 500000, 8192)
    factors = []
    for i in range(original.pairs):
        keep = clamp((original.turns(i) - 1) / mpf(4 - 1), 0, 1)
        factors.append(1 / (keep + (1 - keep) / 8))
    # Rounded as they stand in the file, so that both sides start from the same list.
    factors = [mpf(number(f)) for f in factors]
    return Geometry("Llama-3.1-8B", 128, 500000, 131072, factors)


def geometries():
    return [
        Geometry("LLaMA2-7B", 128, 10000, 4096),
        Geometry("LLaMA3-8B", 128, 500000, 8192),
        Geometry("Qwen2.5-3B", 128, 1000000, 32768),
        Geometry("SmolLM2-135M", 64, 100000, 8192),
        Geometry("MrRoPE Tiny", 128, 10000, 1024),
        llama31(),
    ]


def clamp(x, smallest, largest):
    return max(mpf(smallest), min(mpf(largest), mpf(x)))


def boundaries(geometry, method, parameters):
    beta_fast = mpf(parameters.get("beta_fast", "4" if method == "llama3" else "32"))
    beta_slow = mpf(parameters.get("beta_slow", "1"))
    low = max(int(mp.floor(geometry.pair_at(beta_fast))), 0)
    high = min(int(mp.ceil(geometry.pair_at(beta_slow))), geometry.rotary_dim - 1)
    low = parameters.get("low", low)
    high = parameters.get("high", high)
    if method in SUMMED:
        high = min(high, geometry.pairs - 1)
        assert low < high, (geometry.name, method, parameters)
    return low, high, beta_fast, beta_slow


def index_ramp(geometry, scale, low, high):
    width = mpf(high - low) if high != low else mpf("0.001")
    ramps = (clamp((i - low) / width, 0, 1) for i in range(geometry.pairs))
    return [1 / ((1 - ramp) + ramp / scale) for ramp in ramps]


def turn_ramp(geometry, scale, beta_fast, beta_slow):
    width = beta_fast - beta_slow
    keeps = (clamp((geometry.turns(i) - beta_slow) / width, 0, 1) for i in range(geometry.pairs))
    return [1 / (keep + (1 - keep) / scale) for keep in keeps]


def summed_exponents(geometry, scale, low, high, weight):
    """S to the share of the first k of n weights, k counting from low."""
    n = high - low
    sums = [mpf(0)]
    for k in range(1, n + 1):
        sums.append(sums[-1] + weight(k, n))
    exponents = (sums[min(max(i - low, 0), n)] / sums[n] for i in range(geometry.pairs))
    return [mpf(scale) ** exponent for exponent in exponents]


def factors_of(geometry, method, scale, length, parameters):
    """Boundaries and the cumulative factors of one plan."""
    pairs = range(geometry.pairs)
    last = geometry.pairs - 1
    low, high, beta_fast, beta_slow = boundaries(geometry, method, parameters)
    if method == "none":
        factor = [mpf(1) for _ in pairs]
    elif method == "pi":
        factor = [mpf(scale) for _ in pairs]
    elif method == "ntk":
        factor = [mpf(scale) ** (mpf(i) / last) for i in pairs]
    elif method == "dynamic-ntk":
        window = geometry.train_length
        alpha = mpf(scale) * max(length, window) / window - (scale - 1)
        factor = [alpha ** (mpf(i) / last) for i in pairs]
    elif method == "yarn":
        factor = index_ramp(geometry, scale, low, high)
    elif method in ("yarn-rotations", "llama3"):
        factor = turn_ramp(geometry, scale, beta_fast, beta_slow)
    elif method == "regressive":
        factor = summed_exponents(geometry, scale, low, high, lambda k, n: n + 1 - k)
    elif method in SUMMED:
        power = mpf({"uni": "0", "pro": "1"}.get(method) or parameters["power"])
        factor = summed_exponents(geometry, scale, low, high, lambda k, n: mpf(k) ** power)
    elif "factors" in parameters:
        factor = [mpf(f) for f in parameters["factors"]]
    else:
        factor = list(itertools.accumulate((mpf(f) for f in parameters["lambdas"]),
                                           lambda a, b: a * b, initial=mpf(1)))
    assert len(factor) == geometry.pairs
    return low, high, factor


def attention_scale(geometry, method, scale, parameters):
    if scale <= 1:
        return mpf(1)
    if method == "longrope" and "attn_coef" not in parameters:
        return mp.sqrt(1 + mp.log(scale) / mp.log(geometry.train_length))
    coefficient = parameters.get("attn_coef", "0.1" if method in TEMPERED else "0")
    return 1 + mpf(coefficient) * mp.log(scale)


def shape_of(factor, low, high):
    inside = [factor[i + 1] / factor[i]
              for i in range(max(low + 1, 0), min(high - 1, len(factor) - 1))]
    if len(inside) < 2 or max(inside) - min(inside) <= EQUAL * max(inside):
        return "uniform"
    steps = list(zip(inside, inside[1:]))
    if all(b <= a * (1 + EQUAL) for a, b in steps):
        return "regressive"
    if all(b >= a * (1 - EQUAL) for a, b in steps):
        return "progressive"
    return "mixed"


def listed_factors(geometry, scale):
    """A list like a vendor's: three decimals, growing to about the scale, with small dents."""
    last = geometry.pairs - 1
    return [decimal(1000 + (scale - 1) * 1000 * i * i // (last * last) + 37 * i % 11)
            for i in range(geometry.pairs)]


def listed_lambdas(geometry, scale):
    return [decimal(1000 + (7 * i * i + scale) % 53) for i in range(geometry.pairs - 1)]


def decimal(thousandths):
    return number(mpf(thousandths) / 1000)


def requests(geometry):
    """Every (method, scale, length, parameters) recorded for one geometry."""
    window = geometry.train_length
    for scale in SCALES:
        for method in ("none", "pi", "ntk", "yarn", "yarn-rotations", "llama3", "uni", "pro"):
            yield method, scale, 0, {}
        yield "dynamic-ntk", scale, 4 * window, {}
        for power in ("-0.5", "0.5", "2"):
            yield "power", scale, 0, {"power": power}
        yield "longrope", scale, 0, {"factors": listed_factors(geometry, scale)}
        yield "custom", scale, 0, {"factors": listed_factors(geometry, scale)}
        yield "custom", scale, 0, {"lambdas": listed_lambdas(geometry, scale)}

    # dynamic-ntk inside, at and just past the window.
    for length in (0, window // 2, window + 1):
        yield "dynamic-ntk", 2, length, {}
    yield "dynamic-ntk", 1, 3 * window, {}

    # Other turns. Few turns push high past the last pair and then past rotary_dim.
    for method in ("yarn", "yarn-rotations", "uni", "pro"):
        yield method, 8, 0, {"beta_fast": "16", "beta_slow": "2"}
        yield method, 8, 0, {"beta_fast": "1e6"}
    for method in ("yarn", "pro"):
        yield method, 8, 0, {"beta_slow": "0.0005"}
        yield method, 8, 0, {"beta_slow": "1e-9"}
    yield "llama3", 8, 0, {"beta_fast": "8", "beta_slow": "2"}

    # Given boundaries.
    middle = geometry.pairs // 2
    for method in ("yarn", "uni", "pro"):
        yield method, 8, 0, {"low": 3, "high": middle}
        yield method, 8, 0, {"low": 0}
        yield method, 8, 0, {"high": geometry.pairs - 1}
    yield "power", 8, 0, {"power": "1.5", "low": 3, "high": 4}
    yield "yarn", 8, 0, {"low": middle, "high": middle}

    # Given temperature.
    for method in ("none", "pi", "ntk", "yarn", "llama3", "pro"):
        yield method, 8, 0, {"attn_coef": "0.07"}
    yield "dynamic-ntk", 8, 2 * window, {"attn_coef": "0.07"}
    yield "pro", 8, 0, {"attn_coef": "0"}
    for method in ("longrope", "custom"):
        yield method, 8, 0, {"attn_coef": "0.07", "factors": listed_factors(geometry, 8)}

    # Scales that are no power of two.
    for method in ("yarn", "yarn-rotations", "pro"):
        yield method, "1.3", 0, {}
        yield method, "49", 0, {}


def regressive_requests(geometry):
    """As for pro. Recorded after all others, so that the lists of those keep their indices."""
    for scale in SCALES + ("1.3", "49"):
        yield "regressive", scale, 0, {}
    middle = geometry.pairs // 2
    for parameters in ({"beta_fast": "16", "beta_slow": "2"}, {"beta_fast": "1e6"},
                       {"beta_slow": "0.0005"}, {"beta_slow": "1e-9"},
                       {"low": 3, "high": middle}, {"low": 3, "high": 4}, {"low": 0},
                       {"high": geometry.pairs - 1}, {"attn_coef": "0.07"}, {"attn_coef": "0"}):
        yield "regressive", 8, 0, parameters


def number(x):
    """20 significant digits, as short as JSON allows."""
    text = mp.nstr(mpf(x), PRINTED, strip_zeros=True, min_fixed=-3, max_fixed=PRINTED)
    mantissa, _, exponent = text.partition("e")
    if mantissa.endswith(".0"):
        mantissa = mantissa[:-2]
    return mantissa + ("e" + str(int(exponent)) if exponent else "")


def numbers(values):
    return "[" + ",".join(number(v) for v in values) + "]"


class Lists:
    """Lists of numbers in the order of their first use, each once."""

    def __init__(self):
        self.index = {}

    def add(self, values):
        return self.index.setdefault(numbers(values), len(self.index))


def parameters_json(parameters, lists):
    return "{" + ",".join(
        f'"{key}":{lists.add(value) if isinstance(value, list) else number(value)}'
        for key, value in parameters.items()) + "}"


def case_json(lists, geometry, method, scale, length, parameters):
    scale = mpf(scale)
    low, high, factor = factors_of(geometry, method, scale, length, parameters)
    theta = [geometry.theta(i) / factor[i] for i in range(geometry.pairs)]
    fields = [
        f'"geometry":"{geometry.name}","method":"{method}","scale":{number(scale)}',
        f'"length":{length}' if length else "",
        f'"parameters":{parameters_json(parameters, lists)}' if parameters else "",
        f'"low":{low},"high":{high},"shape":"{shape_of(factor, low, high)}"',
        f'"attention_scale":{number(attention_scale(geometry, method, scale, parameters))}',
        f'"factor":{lists.add(factor)},"theta":{lists.add(theta)}',
    ]
    return "{" + ",".join(f for f in fields if f) + "}"


def geometry_json(geometry):
    text = (f'"name":"{geometry.name}","rotary_dim":{geometry.rotary_dim},'
            f'"base":{geometry.base},"train_length":{geometry.train_length}')
    if geometry.trained_factor:
        text += f',"trained_factor":{numbers(geometry.trained_factor)}'
    return "{" + text + "}"


def document():
    provenance = {
        "generator": "tools/make_goldens.py",
        "arithmetic": f"mpmath, {DIGITS} decimal digits",
        "printed": f"{PRINTED} significant digits",
        "defaults": "an absent length is 0, absent parameters are the method's own",
        "lists": "factor, theta, parameters.factors and parameters.lambdas are indices into lists",
        "equations": EQUATIONS,
    }
    known = geometries()
    lists = Lists()
    cases = [case_json(lists, g, *request)
             for part in (requests, regressive_requests) for g in known for request in part(g)]
    return "".join([
        '{"provenance":', json.dumps(provenance, indent=1), ",\n",
        '"geometries":[\n', ",\n".join(map(geometry_json, known)), "\n],\n",
        '"cases":[\n', ",\n".join(cases), "\n],\n",
        '"lists":[\n', ",\n".join(lists.index), "\n]}\n",
    ])


def write(document, name, about):
    """main() of a generator: writes document() to tests/golden/NAME, or compares it with what is there."""
    stored = pathlib.Path(__file__).resolve().parent.parent / "tests/golden" / name
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=stored)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    text = document()
    json.loads(text)
    if arguments.check:
        same = arguments.out.read_text(encoding="ascii") == text
        print(f"{arguments.out}: {'same' if same else 'differs'}", file=sys.stderr)
        return 0 if same else 1
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(text, encoding="ascii")
    print(f"{arguments.out}: {len(text)} bytes", file=sys.stderr)
    return 0


mp.dps = DIGITS

if __name__ == "__main__":
    sys.exit(write(document, "plans.json", __doc__))

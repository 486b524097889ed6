#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden values of the theory figures: tests/golden/theory.json.

    python3 -m pip install mpmath
    python3 tools/make_theory_goldens.py            # some minutes
    python3 tools/make_theory_goldens.py --check    # exit 1 if the stored file differs

Plans come from tools/make_goldens.py in 50-digit arithmetic; nothing is shared with the C++ code.
Single values are computed in 50 digits. Scans over many positions run in double (math.cos on the
rounded angle, summed exactly by math.fsum); where a sum comes nearer to 0 than 1e-6 its sign is
decided in 50 digits.
"""

import json
import math
import sys

from mpmath import mp, mpf

import make_goldens
from make_goldens import Geometry, factors_of, number

POSITIONS = (1, 100, 4095, 65537, 999983)
METHODS = ("none", "pi", "ntk", "yarn", "yarn-rotations", "uni", "pro", "regressive")
LIMIT = 1 << 17      # of the search for a negative sum
CURVE = 1 << 14      # positions of the oscillation
COLLISIONS = 2048    # positions compared with the one before
FIT = 20000          # positions of the linear range
BOUND = 0.05
NEAR = mpf("1e-6")
GRACE = mpf("1e-30")  # an exact integer may come out a hair below itself

EQUATIONS = {
    "digit": "floor(m theta_j) mod radix_j, radix_j = theta_j / theta_(j+1), the last base^(1/Dr)",
    "open_digit": "first j with L < radix_j / theta_j", "open_pair": "first j with L theta_j < 2 pi",
    "growth": "factor_(Dr-1) / factor_0", "collisions": "m in 1..N-1, all floor(m theta_j) as at m-1",
    "estimate": "sum_j (m theta_j mod 2 pi) / theta_j",
    "linear": "largest n: for all n' <= n, sqrt(1 - (sum m y)^2/(sum m^2 sum y^2)) <= bound over m < n'",
    "cosine": "sum_j cos(m theta_j)", "negative": "least m with cosine < 0, null: none below the limit",
    "middle": "the cosine sum over low <= j < high",
    "variation": "sum over m of |middle(m+1) - middle(m)|", "spread": "its standard deviation",
    "fresh": "(min(2 pi, S L theta_j) - min(2 pi, L trained theta_j)) / 2 pi, at least 0",
}


def exact_floor(x):
    return mp.floor(x + GRACE)


def cosine(theta, m):
    return mp.fsum(mp.cos(m * t) for t in theta)


def first_negative(theta, limit):
    rounded = [float(t) for t in theta]
    for m in range(limit):
        value = math.fsum(math.cos(m * t) for t in rounded)
        if abs(value) < NEAR:
            value = cosine(theta, m)
        if value < 0:
            assert cosine(theta, m) < 0
            return m
    return None


def oscillation(theta):
    rounded = [float(t) for t in theta]
    curve = [math.fsum(math.cos(m * t) for t in rounded) for m in range(CURVE)]
    mean = math.fsum(curve) / CURVE
    return (math.fsum(abs(b - a) for a, b in zip(curve, curve[1:])),
            math.sqrt(math.fsum((y - mean) ** 2 for y in curve) / CURVE))


def estimate(theta, m):
    total = mpf(0)
    for t in theta:
        turns = m * t / (2 * mp.pi)
        part = turns - mp.floor(turns)
        assert m == 0 or min(part, 1 - part) > mpf("1e-9"), "too near a jump"
        total += 2 * mp.pi * part / t
    return total


def linear_range(theta):
    rounded = [float(t) / (2 * math.pi) for t in theta]
    mm = my = yy = 0.0
    length = 0
    for m in range(FIT):
        y = math.fsum((m * t - math.floor(m * t)) / t for t in rounded)
        mm, my, yy = mm + m * m, my + m * y, yy + y * y
        if m and math.sqrt(max(0.0, 1 - my / mm * my / yy)) > BOUND:
            break
        length = m + 1
    return length


def collisions(theta):
    before = [mpf(0)] * len(theta)
    count = 0
    for m in range(1, COLLISIONS):
        now = [exact_floor(m * t) for t in theta]
        count += now == before
        before = now
    return count


def case(geometry, method, scale):
    low, high, factor = factors_of(geometry, method, mpf(scale), 0, {})
    theta = [geometry.theta(i) / factor[i] for i in range(geometry.pairs)]
    trained = [geometry.theta(i) for i in range(geometry.pairs)]
    radix = [a / b for a, b in zip(theta, theta[1:])] + [mpf(geometry.base) ** (mpf(1) / geometry.pairs)]
    window, turn = geometry.train_length, 2 * mp.pi
    variation, spread = oscillation(theta[low:high])
    fresh = [max(mpf(0), min(turn, scale * window * t) - min(turn, window * u)) / turn
             for t, u in zip(theta, trained)]
    open_digit = next((j for j in range(geometry.pairs) if window < radix[j] / theta[j]), geometry.pairs)
    open_pair = next((j for j in range(geometry.pairs) if window * theta[j] < turn), geometry.pairs)
    negative = first_negative(theta, LIMIT)
    digits = {m: [exact_floor(m * t) - r * mp.floor(exact_floor(m * t) / r) for t, r in zip(theta, radix)]
              for m in POSITIONS[2:4]}
    lists = lambda values: "[" + ",".join(number(v) for v in values) + "]"
    return "".join([
        f'{{"geometry":"{geometry.name}","method":"{method}","scale":{scale},',
        f'"open_digit":{open_digit},"open_pair":{open_pair},"growth":{number(factor[-1] / factor[0])},',
        f'"collisions":{collisions(theta)},"negative":{"null" if negative is None else negative},',
        f'"variation":{variation!r},"spread":{spread!r},',
        f'"cosine":{lists(cosine(theta, m) for m in POSITIONS)},',
        f'"middle":{lists(cosine(theta[low:high], m) for m in POSITIONS)},',
        f'"estimate":{lists(estimate(theta, m) for m in POSITIONS)},',
        '"digits":{', ",".join(f'"{m}":{lists(values)}' for m, values in digits.items()), "},",
        f'"fresh":{lists(fresh)}}}',
    ])


def document():
    known = [Geometry("LLaMA2-7B", 128, 10000, 4096), Geometry("Qwen2.5-3B", 128, 1000000, 32768),
             Geometry("SmolLM2-135M", 64, 100000, 8192)]
    provenance = {
        "generator": "tools/make_theory_goldens.py", "equations": EQUATIONS,
        "arithmetic": f"mpmath, {make_goldens.DIGITS} decimal digits; scans in double",
    }
    cases = []
    for geometry in known:
        for scale in (4, 16):
            for method in METHODS:
                if method == "none" and scale != 4:
                    continue
                cases.append(case(geometry, method, scale))
                print(geometry.name, method, scale, file=sys.stderr)
    cases.append(case(known[0], "pro", 32))
    linear = [f'{{"base":{base},"pairs":64,"length":{linear_range([mpf(base) ** (-mpf(i) / 64) for i in range(64)])}}}'
              for base in (100, 1000, 10000, 500000)]
    return "".join([
        '{"provenance":', json.dumps(provenance, indent=1), ",\n",
        f'"positions":{json.dumps(POSITIONS)},"limit":{LIMIT},"curve":{CURVE},',
        f'"collisions":{COLLISIONS},"fit":{FIT},"bound":{BOUND},\n',
        '"geometries":[\n', ",\n".join(map(make_goldens.geometry_json, known)), "\n],\n",
        '"linear":[\n', ",\n".join(linear), "\n],\n",
        '"cases":[\n', ",\n".join(cases), "\n]}\n",
    ])


if __name__ == "__main__":
    sys.exit(make_goldens.write(document, "theory.json", __doc__))

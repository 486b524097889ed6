#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The code that docs/design/for-engines.md and docs/reference/methods.md print, against mrrope plan --json.

    engine_code.py MRROPE CC ROOT      the block of PyTorch runs where torch is installed
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

MODELS = {"llama2": (128, 1e4, 4096, 16), "llama3": (128, 5e5, 8192, 16), "qwen2.5": (128, 1e6, 32768, 4)}
NEAR = (4096, 256, 256, 1, 16384)
TOKENS = (4096, 4097, 5000, 16000, 16383, 16384)  # the command prints the first and the last borders
MAIN = r"""
#include <stdio.h>
int main(int argc, char** argv) {
  double d, base, window, scale, inv_freq[1024];
  int pro;
  long tokens;
  while (scanf("%d %lf %lf %lf %lf", &pro, &d, &base, &window, &scale) == 5) {
    const double attention = mrrope_frequencies(pro, (int)d, base, window, scale, inv_freq);
    for (int i = 0; i < d / 2; ++i) printf("%.17g ", inv_freq[i]);
    printf("%.17g\n", attention);
  }
  scanf("near");
  while (scanf("%ld", &tokens) == 1) {
    const struct near_part p = mrrope_near_part(4096, 256, 256, 1, 16384, tokens);
    printf("%ld %ld %.17g %.17g %.17g\n", p.border, p.shift, p.scale, mrrope_key_position(p, 1000),
           mrrope_key_position(p, tokens - 1));
  }
  return argc < 1 || argv == NULL;
}
"""


def plan(mrrope, geometry, *rest):
    d, base, window = geometry
    command = [mrrope, "plan", "--rotary-dim", str(d), "--rope-freq-base", str(base), "--train-ctx", str(window), *rest, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def same(found, wanted, what):
    assert len(found) == len(wanted), (what, len(found), len(wanted))
    for a, b in zip(found, wanted):
        assert abs(a - b) <= 1e-12 * max(1e-12, abs(b)), (what, a, b)


def rows(page, after, columns):
    """The numbers of the table that follows these words."""
    lines = page[page.index(after):].splitlines()
    table = [line for line in lines[1:] if line.startswith("|")][2:]
    out = []
    for line in table:
        cells = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
        if len(cells) != columns:
            break
        out.append([float(cell) for cell in cells])
    return out


def main():
    mrrope, cc, root = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    page = (root / "docs/design/for-engines.md").read_text()
    methods = (root / "docs/reference/methods.md").read_text()
    wanted = {}
    for name, (d, base, window, scale) in MODELS.items():
        for method in ("uni", "pro"):
            made = plan(mrrope, (d, base, window), "--method", method, "--scale", str(scale))
            wanted[name, method] = made["theta"] + [made["attention_scale"]]
    window, near, step, headroom, longest = NEAR
    spec = f"far:pi(near={near},near_step={step},headroom={headroom},rung_step={longest // window})"
    scale = plan(mrrope, (128, 1e4, window), "--method", spec, "--ctx", str(longest))["rungs"][-1]["scale"]
    command = [mrrope, "plan", "--rotary-dim", "128", "--rope-freq-base", "1e4", "--train-ctx", str(window), "--method", spec,
               "--ctx", str(longest)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    ladder = [[int(x) for x in row] for row in re.findall(r"^ +\d+ +(\d+) +(\d+) +(\d+) +\d\.\d{4}", said, re.M)]
    places = []  # border, shift, scale, where key 1000 and the last query are
    for tokens in TOKENS:
        _, border, shift = next(rung for rung in ladder if tokens <= rung[0])
        own = scale if border else 1
        places.append([border, shift, own, 1000 / own if 1000 < border else 1000 - shift, tokens - 1 - shift])

    # methods.md: plain Python, indented.
    start = methods.index("    import math")
    code = methods[start:methods.index("    inv_freq, attention_scale =", start)]
    scope = {}
    exec(re.sub("^    ", "", code, flags=re.M), scope)
    for (name, method), numbers in wanted.items():
        inv_freq, attention = scope["mrrope"](method, *MODELS[name])
        same(inv_freq + [attention], numbers, ("methods.md", name, method))
    assert code.count("\n") <= 16, code.count("\n")

    # for-engines.md, C.
    block = re.search(r"```c\n(.*?)```", page, re.S).group(1)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "engine.c")
        source.write_text(block + MAIN)
        program = pathlib.Path(folder, "engine")
        subprocess.run([cc, "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-result", source, "-o", program, "-lm"], check=True)
        text = "".join(f"{int(method == 'pro')} {' '.join(str(x) for x in MODELS[name])}\n" for name, method in wanted)
        text += "near " + " ".join(str(x) for x in TOKENS)
        said = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout
    lines = [[float(x) for x in line.split()] for line in said.splitlines()]
    assert len(lines) == len(wanted) + len(TOKENS), said
    for numbers, line in zip(list(wanted.values()) + places, lines):
        same(line, numbers, "C")

    # The tables of the page.
    found = rows(page, "Llama 2: d 128", 4)
    assert len(found) >= 6, found
    for pair, unmodified, uni, pro in found:
        for value, exact in ((unmodified, 1e4 ** (-pair / 64)), (uni, wanted["llama2", "uni"][int(pair)]),
                             (pro, wanted["llama2", "pro"][int(pair)])):
            assert abs(value - exact) <= 5.1e-9 * exact, (pair, value, exact)
    found = rows(page, "A near part with window", 8)
    assert [int(row[0]) for row in found] == list(TOKENS), found
    for row, (border, shift, scale, _, query) in zip(found, places):
        keys = [j / scale if j < border else j - shift for j in (0, 1000, 4000)]
        for value, exact in zip(row[1:], [border, shift, scale, *keys, query]):
            assert abs(value - exact) < 5.1e-7 * max(1, exact), (row, exact)
    print(f"engine_code: {len(wanted)} plans and {len(TOKENS)} near parts in C; both tables; methods.md")

    # for-engines.md, PyTorch.
    try:
        import torch
    except ImportError:
        print("engine_code: the PyTorch code was NOT run: no torch here")
        return
    scope = {}
    exec(re.search(r"```python\n(.*?)```", page, re.S).group(1), scope)
    for (name, method), numbers in wanted.items():
        inv_freq, attention = scope["frequencies"](method, *MODELS[name])
        same(inv_freq.tolist() + [attention], numbers, ("torch", name, method))
    inv_freq, _ = scope["frequencies"]("pro", *MODELS["llama2"])
    for tokens, place in zip(TOKENS, places):
        border, shift, scale = scope["near_part"](*NEAR, tokens)
        positions = scope["key_positions"](tokens, border, shift, scale)
        same([border, shift, scale, float(positions[1000]), tokens - 1 - shift], place, ("torch", tokens))
        # A key that is turned from one place to the next is the key that is rotated there.
        key = torch.randn(1, 128, dtype=torch.float64)
        there = scope["rotate"](key, positions[1000:1001], inv_freq)
        turned = scope["rotate"](scope["rotate"](key, torch.tensor([1000.0], dtype=torch.float64), inv_freq),
                                 positions[1000:1001] - 1000, inv_freq)
        assert torch.allclose(there, turned, atol=1e-9), tokens
    print("engine_code: the same in PyTorch")


main()

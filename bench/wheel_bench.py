#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The native build and the wheel, in alternation.

    bench/wheel_bench.py NATIVE WHEEL MODEL [TURNS]

NATIVE and WHEEL are two mrrope commands, that of ./run and that of a venv. Each reads the same tokens TURNS times (5);
the fastest counts, once by processor time, which others on the machine change little, and once by the clock.
"""
import os
import subprocess
import sys
import tempfile
import time

TOKENS = 2048


def measured(command, model):
    with tempfile.TemporaryDirectory() as folder:
        before, began = os.times(), time.monotonic()
        subprocess.run([command, "eval", "ppl", model, "--method", "pro", "--ctx", str(TOKENS), "--lengths", str(TOKENS),
                        "--documents", "1", "--kl-positions", "0", "--device", "CPU"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        wall, after = time.monotonic() - began, os.times()
    return (after.children_user - before.children_user + after.children_system - before.children_system, wall)


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    native, wheel, model = map(os.path.abspath, sys.argv[1:4])
    turns = [(measured(native, model), measured(wheel, model)) for _ in range(int((sys.argv + ["5"])[4]))]
    for i, name in enumerate(["processor time", "clock"]):
        here, there = min(a[i] for a, _ in turns), min(b[i] for _, b in turns)
        print(f"{name}: native {here:.2f} s, wheel {there:.2f} s for {TOKENS} tokens: x{here / there:.3f} of its speed")


main()

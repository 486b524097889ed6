#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's own server tests, from its source, on mrrope serve and on the llama-server of the same build.

suite.py TESTS MRROPE LLAMA_SERVER MODEL

TESTS is tools/server/tests in llama.cpp's source. llama_server.py stands in for the server that they
start. Fails unless every test that must pass (expected.json) passes on mrrope serve, and every test that passes on
llama-server with this model is either there or among the others, under the reason why it is not.
"""
import concurrent.futures
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

if len(sys.argv) > 3 and not pathlib.Path(sys.argv[3]).exists():
    print(f"SKIPPED: {sys.argv[3]} is not built (ninja llama-server, or ./run test --full)")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
TESTS, MRROPE, LLAMA_SERVER, MODEL = sys.argv[1:5]
SECONDS = 2400  # for all of them
EXPECTED = json.loads((HERE / "expected.json").read_text())
# Tests that are not counted: a file, a test with all its parameters, or the beginning of those.
OTHERS = [name for names in EXPECTED["others_by_reason"].values() for name in names]


def is_named(name, others):
    return any(name == one or name.startswith((one + "[", one + "::")) or "[" in one and name.startswith(one)
               for one in others)


def files(others):
    """Those with a test that may be counted; a file is left out whole by its name."""
    return sorted(f"unit/{path.name}" for path in (pathlib.Path(TESTS) / "unit").glob("test_*.py")
                  if f"unit/{path.name}" not in others)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(server, chosen, folder):
    """The outcome of each test: passed, failed or skipped."""
    results = pathlib.Path(folder) / "results.xml"
    results.parent.mkdir()
    environment = dict(os.environ, SUITE_SERVER=server, SUITE_MODEL=MODEL, SUITE_FOLDER=folder,
                       LLAMA_SERVER_BIN_PATH=str(HERE / "llama_server.py"), PORT=str(free_port()),
                       PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not slow", "-q", "--timeout", "120",
         f"--basetemp={folder}/tmp", f"--junitxml={results}", *chosen],
        cwd=TESTS, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", timeout=SECONDS)
    if not results.exists():
        raise RuntimeError("pytest did not run: " + done.stdout[-4000:])
    outcomes = {}
    for case in xml.etree.ElementTree.parse(results).iter("testcase"):
        name = f"{case.get('classname').replace('.', '/')}.py::{case.get('name')}"
        kinds = {child.tag for child in case}
        outcomes[name] = ("failed" if kinds & {"failure", "error"} else
                          "skipped" if "skipped" in kinds else "passed")
    return outcomes, done.stdout


def main():
    wanted, others = EXPECTED["must_pass"], OTHERS
    counted = files(others)
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor() as pool:  # both at once, each in a folder of its own
            first = pool.submit(run, MRROPE, wanted, f"{folder}/mrrope")
            second = pool.submit(run, LLAMA_SERVER, counted, f"{folder}/llama")
            (ours, said), (theirs, _) = first.result(), second.result()
    bad = [f"{name}: {ours.get(name, 'gone')} on mrrope serve" for name in wanted
           if ours.get(name) != "passed"]
    bad += [f"{name}: passes on llama-server; it must pass, or it is one of the others for a reason: expected.json"
            for name, outcome in theirs.items()
            if outcome == "passed" and name not in wanted and not is_named(name, others)]
    for name, outcome in sorted(theirs.items()):
        print(f"{outcome:8} {ours.get(name, 'not run'):8} {name}")
    print("above: the outcome on llama-server, on mrrope serve, and the test")
    print(f"{len(wanted)} tests must pass, {len(wanted) - sum('mrrope' in b for b in bad)} do; "
          f"{sum(o == 'passed' for o in theirs.values())} of {len(theirs)} pass on llama-server")
    if bad:
        print(said[-20000:])
        print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()

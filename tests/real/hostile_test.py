# SPDX-License-Identifier: Apache-2.0
"""Grammars and schemas that are made to hold a server, on a real model whose vocabulary has tokens of many
equal characters. Each may cost its own client an error within 5 s; ordinary requests take at most twice as
long beside them, and the server ends when it is told to.

hostile_test.py MRROPE NAME

NAME is one of tools/models/models.json. Exit code 77: skipped, it is not in the cache. Standard library only.
"""
import concurrent.futures
import json
import pathlib
import signal
import statistics
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/serve"), str(ROOT / "tools/models")]
import fetch  # noqa: E402

MODEL = fetch.cache_folder() / json.loads((ROOT / "tools/models/models.json").read_text())[sys.argv[2]]["file"]
if not MODEL.exists():
    print(f"SKIPPED: {MODEL} is missing: type tools/models/fetch.py {sys.argv[2]}", file=sys.stderr)
    sys.exit(77)
sys.argv[2] = str(MODEL)
from serve_client import Server  # noqa: E402

SLOTS = 32  # nobody waits for a slot
ORDINARY = 100
TIMES = 3  # other programs use the processor too
PATIENCE = 5  # seconds
X = "x" * 30
CHAIN = "".join(f"r{i} ::= r{i + 1} | r{i + 1} \"=\" | r{i + 1} \"=\" \"=\"\n" for i in range(30))
DOUBLING = "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(40))
REFS = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"type": "array", "items": {"$ref": f"#/$defs/d{i + 1}"}}]}
        for i in range(60)}


def pattern(text):
    return {"json_schema": {"type": "string", "pattern": text}}


KINDS = {
    "doubling": {"grammar": f'root ::= "{X}" s\ns ::= "=" s x | "=" s y | "="\nx ::= "c"\ny ::= "d"'},
    "pattern": pattern(f"^{'x' * 30}(((=?){{22}}){{22}}){{22}}$"),
    "pattern, short": pattern("^(((=?){22}){22}){22}$"),
    "pattern, nested": pattern("^((a+)+)+!$"),
    "pattern, options": pattern("^(a?){500}(a?){500}b$"),
    "brackets": {"grammar": 'root ::= "(" root ")" root | "(" root "]" root | "=" root "=" | "="'},
    "palindrome": {"grammar": 'root ::= "=" root "=" | "-" root "-" | " " root " " | "=" | "-" | " "'},
    "stars": {"grammar": 'root ::= (" "* " "* " "* "="* "="* "="*)* "!"'},
    "nullable": {"grammar": 'root ::= ((" "? "="? "-"?){30}){30} "!"'},
    "left": {"grammar": 'root ::= "=" x\nx ::= x "=" | "-"'},
    "left, hidden": {"grammar": 'root ::= "=" e x\ne ::= f f\nf ::= "" | "z"\nx ::= e x "=" | "=" x | "-"'},
    "any": {"grammar": "root ::= .* .* .* .* .* .* .* .* \"!!!!!!!!!\""},
    "any, recursive": {"grammar": 'root ::= . root . | . root | "~~~~~~"'},
    "chain": {"grammar": f"root ::= r0\n{CHAIN}r30 ::= \"=\""},
    "doubling rules": {"grammar": f'root ::= r0\n{DOUBLING}r40 ::= "=" | ""'},
    "alternatives": {"grammar": "root ::= (" + " | ".join(f'"={i:x}"' for i in range(9000)) + ")*"},
    "literal": {"grammar": 'root ::= "' + "=" * 150000 + '"'},
    "class": {"grammar": "root ::= [" + "a-z=-~" * 30000 + "]* [" + "a-z" * 20000 + "]* \"!\""},
    "repetition, long": {"grammar": 'root ::= "' + "=" * 100000 + '"{2000}'},
    "repetition": {"grammar": 'root ::= (("=" | "==" | "==="){1,600} ("=" | "-"){0,600}){3}'},
    "enumeration": {"json_schema": {"enum": [f"{'=' * (i % 60)}{i}" for i in range(5000)]}},
    "references": {"json_schema": {"$ref": "#/$defs/d0", "$defs": {**REFS, "d60": {"type": "string"}}}},
    "objects": {"json_schema": {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(300)}}},
    "tokens": {"grammar": "root ::= (" + " | ".join(f"!<[{i}]>" for i in range(300)) + ')* "!"'},
    "nothing": {"grammar": 'root ::= "~"', "logit_bias": [["~", False]]},
}
BIAS = [["=" * 32, 20], ["=" * 64, 20], [" " * 64, 5], ["x" * 16, 20], ["-" * 64, 10], ["(" * 8, 10]]


def body(more):
    return {"prompt": "Go on: " + "x" * 16, "n_predict": 24, "cache_prompt": False, "logit_bias": BIAS, **more}


def ordinary(server, number):
    began = time.monotonic()
    status, said = server.send("POST", "/completion", json.dumps({
        "prompt": f"{number}. The river ran past the mill and the old house.", "n_predict": 24}))
    assert status == 200, (status, said)
    return time.monotonic() - began


def all_ordinary(server):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return sorted(pool.map(lambda i: ordinary(server, i), range(ORDINARY)))


def attack(server, name, more, results):
    began = time.monotonic()
    try:
        status, said = server.send("POST", "/completion", json.dumps(body(more)))
        text = said["error"]["message"] if status != 200 else said["content"]
    except OSError as error:  # the server was ended
        status, text = 0, str(error)
    results[name] = (status, time.monotonic() - began, text)


def start(server, kinds):
    """The threads, and where they put status, seconds and text."""
    results = {}
    threads = [threading.Thread(target=attack, args=(server, name, more, results)) for name, more in kinds.items()]
    for thread in threads:
        thread.start()
    return threads, results


def ordinary_beside(server, kinds):
    threads, results = start(server, kinds)
    times = all_ordinary(server)
    for thread in threads:
        thread.join()
    return times, results


def main():
    with Server("--parallel", str(SLOTS), "--timeout", "600", ctx=2048) as server:
        results = {}
        for name, more in KINDS.items():
            attack(server, name, more, results)
        for name, (status, seconds, text) in results.items():
            print(f"  {name}: {status} after {seconds:.1f} s: {text[:100]!r}")
        late = [name for name, (status, seconds, _) in results.items() if status != 200 and seconds > PATIENCE]
        assert not late, f"errors that came late: {late}"
        all_ordinary(server)
        ratios = []
        for _ in range(TIMES):
            alone = all_ordinary(server)
            among, results = ordinary_beside(server, KINDS)
            ratios.append(among[-1] / alone[-1])
            for name, times in (("alone", alone), ("beside them", among)):
                print(f"{ORDINARY} requests {name}: median {times[len(times) // 2]:.2f} s, slowest {times[-1]:.2f} s")
            assert all(status in (200, 400) for status, _, _ in results.values()), results
    assert statistics.median(ratios) <= 2, ratios

    server = Server("--parallel", str(SLOTS), "--timeout", "600", ctx=2048)
    threads, _ = start(server, KINDS)
    time.sleep(1)
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    code = server.process.wait(60)
    print(f"ended after {time.monotonic() - began:.1f} s with {code}")
    assert time.monotonic() - began < 5
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    sys.exit(main())

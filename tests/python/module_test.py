# SPDX-License-Identifier: Apache-2.0
"""The Python module: its examples, and its answers against those of the command.

module_test.py    (an installed module; or MRROPE_NATIVE: a build folder, MRROPE_HOME: the sources)
"""
import concurrent.futures
import copy
import doctest
import importlib
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import urllib.request

import mrrope
from mrrope._library import native_folder

COMMAND = native_folder() / "bin" / "mrrope"
MODEL = mrrope.bundled_model()
PACKAGE = pathlib.Path(mrrope.__file__).parent
GEOMETRY = mrrope.Geometry(rotary_dim=64, base=1e5, train_length=8192)
FLAGS = ["--rotary-dim", "64", "--rope-freq-base", "1e5", "--train-ctx", "8192"]


def command(*arguments):
    done = subprocess.run([str(COMMAND), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def importable(name):
    try:
        importlib.import_module(name)
        return True
    except ImportError:
        return False


def check_examples():
    """Every example of a docstring runs and prints what it shows."""
    numpy = importable("numpy")
    ran = 0
    for path in sorted(PACKAGE.glob("*.py")):
        if path.stem in ("_growing", "_vllm_backend", "_vllm_kernel", "_vllm_flash"):  # transformers, vLLM, Triton
            continue
        # Error names mrrope itself as its module.
        module = mrrope if path.stem == "__init__" else importlib.import_module(f"mrrope.{path.stem}")
        for test in doctest.DocTestFinder().find(module):
            if not test.examples:
                continue
            if not numpy and "numpy" in test.docstring:
                print(f"SKIPPED: the example of {test.name}: numpy is not installed")
                continue
            failed = doctest.DocTestRunner().run(test)
            assert failed.failed == 0, test.name
            ran += failed.attempted
    assert ran >= 25, ran
    print(f"{ran} examples")


def check_plans():
    """plan() and ladder() give the numbers of `mrrope plan` for the same words."""
    cases = [
        ("pro", {"ctx": "32k"}), ("PRO", {"scale": 4}), ("yarn", {"ctx": 131072}),
        ("pro", {"ctx": 100}), ("none", {}), ("none", {"ctx": "32k"}), ("pi", {"scale": 2.5}),
        ("ntk", {"ctx": "64k"}), ("dynamic-ntk", {"ctx": "64k"}),
        ("dynamic-ntk", {"ctx": "64k", "scale": 2, "headroom": 1.5}),
        ("llama3", {"ctx": "64k", "beta_fast": 8, "beta_slow": 2}),
        ("pro", {"ctx": "64k", "headroom": 1.25}), ("uni", {"ctx": "64k", "low": 3, "high": 20}),
        ("power", {"scale": 8, "power": -0.5, "attn_coef": 0.05}),
        ("custom", {"factors": [1.0 + i / 8 for i in range(32)]}),
        ("custom", {"lambdas": [1.125] * 31, "scale": 2}),
        ("elastic:pro", {"ctx": "64k"}), ("auto", {"ctx": "64k"}),
        ("elastic:uni", {"scale": 3, "rung_step": 1.5}),
        ("elastic:dynamic-ntk", {"ctx": "64k", "headroom": 1.25}),
        ("far:pi", {"ctx": "64k"}), ("far:pro", {"ctx": "64k", "near": "1k", "near_step": 512}),
    ]
    for method, options in cases:
        flags = ["--method", method]
        for name, value in options.items():
            text = ",".join(map(repr, value)) if isinstance(value, list) else str(value)
            flags.append(f"--{name.replace('_', '-')}={text}")
        grows = ":" in method or method == "auto"
        make = mrrope.ladder if grows else mrrope.plan
        for subject, words in ((GEOMETRY, FLAGS), (MODEL, [MODEL])):
            if subject == MODEL and ("factors" in options or "lambdas" in options
                                     or "near" in options):
                continue  # for 64 pairs, or a window of 1024
            theirs = json.loads(command("plan", *words, *flags, "--json"))
            mine = make(subject, method, **options).to_dict()
            assert mine == theirs, (method, options, subject)
    for name, value in {"replace_scaling": True, "train_length": "2k"}.items():
        flag = ["--replace-scaling"] if value is True else ["--train-ctx", value]
        theirs = json.loads(command("plan", MODEL, "--method", "pro", "--ctx", "8k", *flag, "--json"))
        assert mrrope.plan(MODEL, "pro", ctx="8k", **{name: value}).to_dict() == theirs, name
    print(f"{len(cases)} plans and ladders are those of the command")


def check_files(work):
    pro = mrrope.plan(GEOMETRY, "pro", scale=4)
    grows = mrrope.ladder(GEOMETRY, "elastic:pro", ctx="32k")
    for content in (pro, grows):
        path = work / "content.json"
        content.save(path)
        assert mrrope.load(path).to_dict() == content.to_dict()
        command("plan", "--plan", path, "--json")
    assert mrrope.load(work / "content.json").rungs[-1].plan == pro
    assert hash(grows.rungs[-1].plan) == hash(pro) and pro != mrrope.plan(GEOMETRY, "uni", scale=4)
    for method in ("elastic:yarn", "elastic:dynamic-ntk", "far:pro"):
        for rung in mrrope.ladder(GEOMETRY, method, ctx="32k").rungs:
            rung.plan.save(path)
            assert mrrope.load(path) == rung.plan, (method, rung.length)
    inside = mrrope.ladder(GEOMETRY, "far:pi", ctx=512)
    assert inside.method == "far:pi" and inside.place_at(512).rung == 0
    assert "pro" in repr(pro) and "elastic:pro" in repr(grows)
    facts = json.loads(command("inspect", MODEL, "--ctx", "4k", "--json"))
    mine = mrrope.inspect(MODEL, ctx="4k")
    assert {name: facts[name] for name in mine} == mine
    assert mrrope.__version__ in command("--version")
    assert (PACKAGE / "py.typed").exists()


def check_copies():
    """A plan that was used is copied, pickled and shared by threads like any other."""
    pro = mrrope.plan(GEOMETRY, "pro", scale=4)
    pro.pointer()
    for twin in (copy.deepcopy(pro), pickle.loads(pickle.dumps(pro))):
        assert twin == pro and twin.to_dict() == pro.to_dict()
        twin.pointer()
    if not importable("numpy"):
        print("SKIPPED: threads: numpy is not installed")
        return
    import numpy

    def rotate(thread):
        for turn in range(200):
            mine = numpy.ones((1, 3, 64), numpy.float32)
            mrrope.rotate(k=mine, plan=pro, first_position=numpy.int64(1000 * ((thread + turn) % 8)))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(rotate, range(8)))
    pickle.loads(pickle.dumps(pro)).pointer()
    assert mrrope.plan(GEOMETRY, "pro", ctx=numpy.int64(32768)) == pro
    for bad in (3, numpy.array(3), [0.5, 1, 2], "abc"):
        refused(mrrope.rotate, k=numpy.ones((1, 3, 64), numpy.float32), plan=pro, positions=bad)


def check_results(work):
    run = work / "run"
    command("eval", "ppl", MODEL, "--methods", "none", "--ctx", "256", "--lengths", "128,256",
            "--samples", "1", "--kl-positions", "0", "-o", run)
    rows = mrrope.results(run)
    assert [row["length"] for row in rows if row["metric"] == "perplexity"] == [128, 256], rows
    assert all(row["task"] == "ppl" and row["value"] > 1 for row in rows
               if row["metric"] == "perplexity")
    for what, text in {"holds something else": "[]", "is cut": "{"}.items():
        (run / "results.json").write_text(text)
        assert refused(mrrope.results, run).kind == "corrupt", what
    (run / "results.json").unlink()
    assert "not finished" in refused(mrrope.results, run).message


def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except mrrope.Error as error:
        assert error.message and str(error).startswith(error.message)
        return error
    raise AssertionError(f"not refused: {arguments} {options}")


def check_export(work):
    """Messages and hints of the command arrive as such; a plan goes out as it is."""
    out = work / "long.gguf"
    error = refused(mrrope.export, MODEL, "elastic:pro", ctx="4k", out=out)
    assert error.kind == "usage" and 'method="pro"' in error.hint, error
    assert "--" not in str(error), error
    assert refused(mrrope.export, work / "absent.gguf", "pro", ctx="4k", out=out).kind == "failed"
    assert "unknown" in refused(mrrope.export, MODEL, "pro", ctx="4k", out=out, to="x").message
    assert refused(mrrope.export, MODEL, 7, ctx="4k", out=out).kind == "usage"
    assert not out.exists()
    plan = mrrope.plan(MODEL, "uni", ctx="4k")
    made = mrrope.export(MODEL, plan, out=out, verify=False)
    assert all(abs(a / b - 1) < 1e-6 for a, b in zip(made["divisors"], plan.factor))
    assert len(made["divisors"]) == 64 and out.exists()
    again = refused(mrrope.export, MODEL, plan, out=out, verify=False)
    assert "long.gguf" in again.message
    mrrope.export(MODEL, plan, out=out, verify=False, force=True)


def check_serve():
    """A server lives as long as its block, and answers; what the command refuses is an Error."""
    def is_alive(pid):
        return pathlib.Path(f"/proc/{pid}").exists()

    with mrrope.serve(pathlib.Path(MODEL), ctx="2k", parallel=2, method="pro", threads=2) as server:
        assert is_alive(server.pid) or sys.platform != "linux"
        assert (server.model, server.method, server.context, server.parallel) == (
            "mrrope-tiny", "pro", 2048, 2), server
        body = json.dumps({"prompt": "The river", "max_tokens": 4, "model": server.model})
        request = urllib.request.Request(server.base_url + "/completions", body.encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            assert json.load(reply)["usage"]["completion_tokens"] == 4
    assert not is_alive(server.pid)
    try:
        with mrrope.serve(MODEL, parallel=1) as server:
            raise KeyError("in the block")
    except KeyError:
        pass
    assert server.context == 1024 and not is_alive(server.pid)

    def start(*arguments, **options):
        with mrrope.serve(*arguments, **options):
            pass

    error = refused(start, "/absent.gguf", ctx="4k")
    assert error.kind == "failed" and "/absent.gguf" in error.message and error.hint, error
    error = refused(start, MODEL, ctx="2m", parallel=256)
    assert error.kind == "out_of_memory" and "ctx=" in error.hint and "--" not in error.hint, error
    assert "magic" in refused(start, MODEL, ctx="4k", method="magic").message
    assert "parallel" in refused(start, MODEL, parallel=0).message
    assert "colour" in refused(start, MODEL, colour="--ctx").message
    assert "conversations" in refused(start, MODEL, dry_run=True).message
    assert "not a length" in refused(start, MODEL, ctx="x").message
    assert "complex" in refused(start, MODEL, parallel=3j).message


def check_script():
    done = subprocess.run([sys.executable, "-c", "import mrrope._command as c; c.main()",
                           "plan", "--method", "nothing"], capture_output=True, text=True)
    assert done.returncode == 2 and "nothing" in done.stderr, done
    done = subprocess.run([sys.executable, "-c", "import mrrope"], capture_output=True, text=True,
                          env={**os.environ, "MRROPE_NATIVE": "/absent"})
    assert "MRROPE_NATIVE" in done.stderr and "ImportError" in done.stderr, done.stderr


def main():
    with tempfile.TemporaryDirectory(prefix="mrrope-module-") as folder:
        work = pathlib.Path(folder)
        check_examples()
        check_plans()
        check_files(work)
        check_copies()
        check_results(work)
        check_export(work)
        check_serve()
        check_script()
    print("ok")


main()

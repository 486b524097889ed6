#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does mrrope keep a server busy? The same requests by mrrope and by a plain client, interleaved.

endpoint_bench.py BIN [MODEL] [ROUNDS]

BIN holds mrrope and llama-server. The plain client does what llama.cpp's scripts/server-bench.py
does: one thread per request under way, a connection for each, nothing between two requests. Both
send the very requests that mrrope makes for 32 prompts of RULER at 512 tokens, 32 at a time.
"""
import concurrent.futures
import http.client
import json
import pathlib
import statistics
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "tests" / "python"))
from endpoint_test import Proxy, Server, run  # noqa: E402

PARALLEL = 32
LINE = ["eval", "ruler", "--lengths", "512", "--tasks", "niah_single_1,niah_multikey_1", "--samples",
        "16", "--parallel", str(PARALLEL)]


def mrrope_seconds(command, port, out):
    run(command, *LINE, "--endpoint", f"http://127.0.0.1:{port}/v1", "-o", out)
    return json.loads((out / "run.json").read_text())["measured"]["seconds"]


def plain_seconds(bodies, port):
    local = threading.local()

    def send(body):
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        local.connection.request("POST", "/v1/completions", body,
                                 {"Content-Type": "application/json"})
        reply = local.connection.getresponse()
        assert reply.status == 200, reply.read()
        return json.loads(reply.read())["usage"]

    start = time.time()
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        usage = list(pool.map(send, bodies))
    return time.time() - start, usage


def main():
    binaries = pathlib.Path(sys.argv[1])
    model = sys.argv[2] if len(sys.argv) > 2 else HERE / "models" / "mrrope-tiny.gguf"
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    # Without the caches, else the second round would be free; one thread, to leave room for clients.
    more = ["--no-cache-prompt", "--cache-ram", "0", "-t", "1", "-tb", "1"]
    with tempfile.TemporaryDirectory() as name, \
            Server(binaries / "llama-server", model, PARALLEL, 1024, more) as server:
        folder = pathlib.Path(name)
        recorder = Proxy(server.port, faulty=False)
        mrrope_seconds(binaries / "mrrope", recorder.port, folder / "recorded")
        bodies = recorder.bodies
        ratios = []
        for i in range(rounds):
            plain, usage = plain_seconds(bodies, server.port)
            ours = mrrope_seconds(binaries / "mrrope", server.port, folder / f"run{i}")
            tokens = sum(u["prompt_tokens"] + u["completion_tokens"] for u in usage)
            ratios.append(plain / ours)
            print(f"{len(bodies)} requests, {tokens} tokens: plain client {tokens / plain:.0f} tok/s, "
                  f"mrrope {tokens / ours:.0f} tok/s, ratio {plain / ours:.3f}", flush=True)
        print(f"median ratio {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()

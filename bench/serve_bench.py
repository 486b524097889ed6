#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mrrope serve compared with llama-server of the same build, in one run.

    bench/serve_bench.py MRROPE LLAMA_SERVER MODEL.gguf [ROUNDS [PROMPT [THREADS]]]

Both run side by side with the same threads, slots and context, and take turns with every request, so
that what else the machine does hits both. Printed are medians, and the median of the ratios of
neighbouring requests. PROMPT: tokens of the longer prompts (default 800). THREADS: of each (2). The last column
is the ratio of the processor time that was spent; with one thread, which never waits for another, it is
about that of the speeds, and what else the machine does hardly changes it. mrrope serves a context of
four windows (elastic:pro), llama-server one window: it cannot do more, and all requests lie inside it.
"""
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time

WRITE = 160
STREAMS = 8


class Server:
    def __init__(self, name, command, port):
        self.name, self.port = name, port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                if self.ask("GET", "/health")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError(f"{name} does not start")

    def send(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Content-Type": "application/json"})
        return connection.getresponse()

    def ask(self, method, path, body=None):
        with self.send(method, path, body) as answer:
            return answer.status, json.loads(answer.read())

    def spent(self):
        """Seconds of processor time."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii", errors="replace") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def complete(self, prompt, length):
        """Seconds for the whole answer, and its text."""
        began = time.perf_counter()
        status, answer = self.ask("POST", "/v1/completions", {
            "prompt": prompt, "max_tokens": length, "temperature": 0, "ignore_eos": True})
        seconds = time.perf_counter() - began
        if status != 200:
            raise RuntimeError(f"{self.name}: {answer}")
        return seconds, answer

    def first_token(self, prompt):
        """Seconds to the first event of a stream."""
        began = time.perf_counter()
        with self.send("POST", "/v1/completions", {
                "prompt": prompt, "max_tokens": 4, "temperature": 0, "stream": True}) as answer:
            answer.readline()
            seconds = time.perf_counter() - began
            answer.read()
        return seconds


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def compare(first, second, cases, rounds):
    """Runs the cases on two servers in turn and prints medians. A case: name, run, make, tokens."""
    for name, run, make, count in cases:
        pairs = []
        spent = {first: 0, second: 0}
        for turn in range(rounds + 1):
            given = make()
            order = (first, second) if turn % 2 else (second, first)
            seconds = {}
            for server in order:
                before = server.spent()
                seconds[server] = run(server, given)
                spent[server] += server.spent() - before if turn else 0
            if turn:  # the first warms up
                pairs.append((seconds[first], seconds[second]))
        ratio = statistics.median(b / a for a, b in pairs)
        a, b = (statistics.median(p[i] for p in pairs) for i in (0, 1))
        shown = [f"{1000 * v:.1f} ms" if count is None else f"{count / v:.0f} tok/s"
                 for v in (a, b)]
        print(f"{name:40} {shown[0]:>12} {shown[1]:>12} {ratio:7.3f} "
              f"{spent[second] / max(spent[first], 1e-9):7.3f}", flush=True)


RNG = random.Random(3)


def tokens(count):
    return [RNG.choice(range(300, 900)) for _ in range(count)]


def write(server, prompt):
    seconds, answer = server.complete(prompt, WRITE)
    return seconds / answer["usage"]["completion_tokens"]


def streams(server, prompts):
    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        written = sum(a["usage"]["completion_tokens"]
                      for _, a in pool.map(lambda p: server.complete(p, WRITE), prompts))
    return (time.perf_counter() - began) / written


@contextlib.contextmanager
def ended(*servers):
    """Servers that are ended afterwards."""
    try:
        yield servers
    finally:
        for server in servers:
            server.process.terminate()
            server.process.wait(30)


def prefill(server, prompt):
    return server.complete(prompt, 1)[0]


def follow_up(server, prompts):
    server.complete(prompts[0], 1)
    return server.first_token(prompts[0] + prompts[1])


def usual_cases(size):
    """One stream, and after these several."""
    return [(f"prefill of {size} tokens, one stream", prefill, lambda: tokens(size), size),
            ("writing, one stream", write, lambda: tokens(8), 1),
            (f"first token of a follow-up after {size}", follow_up,
             lambda: (tokens(size), tokens(12)), None),
            (f"writing, {STREAMS} streams", streams, lambda: [tokens(8) for _ in range(STREAMS)], 1)]


def main():
    mrrope, llama, model = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 10
    size = int(sys.argv[5]) if len(sys.argv) > 5 else 800
    threads = sys.argv[6] if len(sys.argv) > 6 else "2"
    window = json.loads(subprocess.run([mrrope, "inspect", model, "--json"], capture_output=True,
                                       check=True).stdout)["geometry"]["train_length"]
    def start(slots):
        ports = free_port(), free_port()
        return (Server("mrrope", [mrrope, "serve", model, "--ctx", str(4 * window), "--parallel",
                                  str(slots), "--port", str(ports[0]), "-t", threads], ports[0]),
                Server("llama-server", [llama, "-m", model, "-c", str(window * slots), "-np",
                                        str(slots), "--port", str(ports[1]), "-t", threads,
                                        "--no-warmup", "--offline"], ports[1]))

    *alone, together = usual_cases(size)
    print(f"{'':40} {'mrrope':>12} {'llama-server':>12} {'ratio':>7} {'CPU':>7}")
    for slots, cases in ((1, alone), (STREAMS, [together])):
        with ended(*start(slots)) as servers:
            compare(*servers, cases, rounds)
    print("ratio: speed of mrrope over that of llama-server; above 1 is faster")


main()

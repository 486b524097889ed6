# SPDX-License-Identifier: Apache-2.0
"""mrrope serve with little address space left: large JSON is refused or answered, and the server goes on.

serve_memory_test.py MRROPE MODEL.gguf

Standard library only.
"""
import collections
import concurrent.futures
import http.client
import itertools
import json
import pathlib
import re
import resource
import tempfile

from chat_model import CHAT, with_template
from serve_client import MODEL, Server

ROOMS = (24, 64, 160)  # MiB beyond what the server has mapped when it is idle
AT_A_TIME = 8


def text(value):
    return json.dumps(value, separators=(",", ":"))


HELLO = [{"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {
    "type": "object", "properties": {"a": {"enum": list(range(200000))}}}}}
BODIES = {
    "tokens": ("/detokenize", text({"tokens": [70] * 390000})),
    "lists": ("/detokenize", text({"tokens": [[70]] * 130000})),
    "no object": ("/detokenize", text([70] * 390000)),
    "prompt": ("/v1/completions", text({"prompt": [70] * 390000, "max_tokens": 1})),
    "objects": ("/v1/completions", text({"prompt": "x", "max_tokens": 1, "metadata": [{"a": 1}] * 100000})),
    "stop": ("/v1/completions", text({"prompt": "x", "stop": ["x"] * 300000})),
    "text": ("/tokenize", text({"content": "hello there " * 60000, "with_pieces": True})),
    "messages": ("/apply-template", text({"messages": HELLO * 16384})),
    "tools": ("/apply-template", text({"messages": HELLO, "tools": [TOOL]})),
    "variables": ("/apply-template", text({"messages": HELLO, "chat_template_kwargs": {"a": [7] * 300000}})),
}


def send(server, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):  # no memory for a thread
        return "closed"
    finally:
        connection.close()


def mapped(pid):
    return int(re.search(r"VmSize:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) << 10


def main():
    dead = []
    with tempfile.TemporaryDirectory() as folder:
        model = with_template(MODEL, CHAT, folder)
        for room, name in itertools.product(ROOMS, BODIES):
            path, body = BODIES[name]
            # A new one each time: later the allocator has room of its own.
            server = Server("--parallel", "1", model=model, ctx=131072, threads=1)
            pid = server.process.pid
            send(server, "/detokenize", text({"tokens": [70]}))
            resource.prlimit(pid, resource.RLIMIT_AS, (mapped(pid) + (room << 20), resource.RLIM_INFINITY))
            with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
                got = collections.Counter(pool.map(lambda _: send(server, path, body), range(3 * AT_A_TIME)))
            code = server.process.poll()
            print(f"{room} MiB, {name}: {dict(got)}, {'alive' if code is None else f'ended: {code}'}", flush=True)
            if code is not None:
                dead.append((room, name, server.said()[-300:]))
                continue
            resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
            server.complete("The river")
            server.__exit__(None)
    if dead:
        raise SystemExit(f"{len(dead)} of {len(ROOMS) * len(BODIES)} ended: {dead}")


main()

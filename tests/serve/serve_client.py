# SPDX-License-Identifier: Apache-2.0
"""What the tests of mrrope serve share: a server, its clients, and what both are given."""
import http.client
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

COMMAND, MODEL = sys.argv[1:3]
NAME = pathlib.Path(MODEL).stem
CTX = 4096  # the model's window is 1024
TEXT = "The river ran past the mill and the old house. Every morning the miller opened the gate. "
# A gap below which two logits may swap places from batch to batch. Conversations share one cache, so
# sums run over other cells in another order, and rounding activations to 8 bits before they are multiplied
# by quantised weights turns differences in the last bits into steps. llama-server with --kv-unified shows the same: on 16
# prompts of this model, alone and 8 at a time, log-probabilities differ by 0.02 in the median and by up
# to 0.17. Models in f32 agree to 1e-4 (tests/integration/elastic_test.cpp).
TIE = 0.25


class Server:
    def __init__(self, *flags, model=MODEL, ctx=CTX, threads=2):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [COMMAND, "serve", model, "--ctx", str(ctx), "--port", "0", "--json", "-t", str(threads), *flags],
            stdout=subprocess.PIPE, stderr=self.errors, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the server did not start: " + self.said())
        self.about = json.loads(line)
        self.address = self.about["address"]
        self.port = int(self.address.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(60)
        self.process.stdout.close()
        said = self.said()
        self.errors.close()
        if unused[0] is None and code != 0:
            raise RuntimeError(f"the server ended with {code}: {said}")

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def client(self, key="none", **more):
        import openai  # only for those who need it
        return openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key=key,
                             max_retries=0, timeout=300, **more)

    def anthropic(self, key="none", **more):
        import anthropic  # only for those who need it
        return anthropic.Anthropic(base_url=f"http://127.0.0.1:{self.port}", api_key=key,
                                   max_retries=0, timeout=300, **more)

    def send(self, method, path, body=None, headers=None):
        """The status, and the body as JSON if it is JSON, otherwise as text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        try:
            connection.request(method, path, body, headers or {"Content-Type": "application/json"})
            answer = connection.getresponse()
            data = answer.read().decode()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(data)
        except ValueError:
            return answer.status, data

    def post(self, path, body, **more):
        return self.send("POST", path, body, **more)

    def complete(self, prompt, length=16, **more):
        status, answer = self.post("/v1/completions", {"prompt": prompt, "max_tokens": length,
                                                       "temperature": 0, **more})
        if status != 200:
            raise RuntimeError(f"{status}: {answer}")
        return answer

    def metric(self, name):
        text = self.send("GET", "/metrics")[1]
        return float(re.search(rf"^mrrope_{re.escape(name)} (\S+)$", text, re.M).group(1))

    def wait_until(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError("never happened: " + what)
            time.sleep(0.02)

    def wait_until_idle(self):
        self.wait_until(lambda: self.metric("slots_busy") == 0 and self.metric("queue") == 0,
                        "the server is idle")

    def memory(self):
        """Resident bytes of the process itself, without the model file."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status).group(1)) * 1024


def gap_where_they_differ(answer, other):
    """None if two choices with logprobs are the same; else the gap of the two most likely tokens at the first
    difference, in the answer that is less sure."""
    a, b = answer["logprobs"], other["logprobs"]
    if "content" in a:  # a chat
        a, b = ({"tokens": [t["token"] for t in side["content"]],
                 "top_logprobs": [{i: top["logprob"] for i, top in enumerate(t["top_logprobs"])}
                                  for t in side["content"]]} for side in (a, b))
    for i, (x, y) in enumerate(zip(a["tokens"], b["tokens"])):
        if x != y:
            top_two = [sorted(side["top_logprobs"][i].values(), reverse=True)[:2] for side in (a, b)]
            return min(first - second for first, second in top_two)
    return None


def generate(prompt, length, folder, *flags):
    """What the local engine writes."""
    path = pathlib.Path(folder) / "prompt.txt"
    path.write_text(prompt)
    done = subprocess.run([COMMAND, "generate", MODEL, "--ctx", str(CTX), "-f", str(path), "-n",
                           str(length), "--json", *flags], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)

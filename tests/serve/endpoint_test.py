# SPDX-License-Identifier: Apache-2.0
"""llama-server of the same build as an endpoint, compared with the local engine on the same samples.

endpoint_test.py MRROPE LLAMA_SERVER MODEL.gguf

Greedy answers must be the same, sample by sample, except where the top two logits of some step are
nearly equal; those are counted. tests/cli/endpoint_test.cpp has servers that misbehave. Standard library only.
"""
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

if len(sys.argv) > 2 and not pathlib.Path(sys.argv[2]).exists():
    print(f"SKIPPED: {sys.argv[2]} is not built (ninja llama-server, or ./run test --full)")
    sys.exit(77)

# The weights are in Q8_0: activations are rounded to eight bits, and batches of another shape round
# differently. Logits of the same model computed in two ways differed by up to 0.59, so below this gap
# either token may win.
TIE = 0.6
NEEDLE = ["eval", "needle", "--form", "planted", "--lengths", "512,1k", "--depths",
          "0,25,50,75,100", "--samples", "4"]
# In this vocabulary, words have other tokens inside a text than alone. Samples are counted word by word,
# so the server side needs the same vocabulary.
PASSKEY = ["eval", "infinitebench", "--lengths", "512", "--tasks", "passkey,number_string",
           "--samples", "10"]


class Server:
    """llama-server on a free port, with four slots of 1024 tokens each."""

    def __init__(self, program, model, places=4, context=1024):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [program, "-m", model, "-c", str(places * context), "-np", str(places), "--host",
             "127.0.0.1", "--port", str(self.port), "-ngl", "0", "--no-warmup", "--offline"],
            stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        deadline = time.time() + 120
        while time.time() < deadline and self.process.poll() is None:
            try:
                if self.get("/health")["status"] == "ok":
                    return self
            except OSError:
                pass
            time.sleep(0.2)
        self.__exit__()
        self.log.seek(0)
        sys.exit("the server did not start:\n" + self.log.read()[-3000:])

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()

    def get(self, path, body=None):
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, headers)
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)

    def post(self, path, body):
        return self.get(path, json.dumps(body).encode())


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done


def answers(folder):
    """Every answer of a run, by its sample."""
    found = {}
    for line in (folder / "journal.jsonl").read_text().splitlines()[1:]:
        unit = json.loads(line)
        for cell in unit.get("cells", []):
            found[(unit["sample"], cell["length"], cell["depth"])] = cell
        for sample in unit.get("samples", []):
            found[(unit["set"], sample["id"])] = sample
    return found


def compare(name, here, there, most):
    assert here.keys() == there.keys() and here, f"{name}: the samples differ"
    ties = 0
    for key, local in here.items():
        served = there[key]
        assert local.get("prompt_tokens") == served.get("prompt_tokens"), (key, local, served)
        assert local.get("expected") == served.get("expected"), (key, local, served)
        # A local answer ends once further words cannot change its score.
        same = (served["text"].startswith(local["text"]) if local.get("finish") == "decided"
                else served["text"] == local["text"])
        if same:
            continue
        assert local["gap"] < TIE, f"{name} {key}: {local} and {served}"
        ties += 1
    print(f"{name}: {len(here) - ties} of {len(here)} answers the same, {ties} near-ties (gap < {TIE})")
    assert ties <= most * len(here), "too many differences to be chance"


def main():
    mrrope, program, model = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name, Server(program, model) as server:
        folder = pathlib.Path(name)
        # Needles that the model finds involve no near-ties. Here it makes up passkeys, digit by digit.
        for task, line, most in (("needle", NEEDLE, 0.05), ("passkey", PASSKEY, 0.5)):
            run(mrrope, *line[:2], model, *line[2:], "--methods", "none", "-ngl", 0, "-o",
                folder / task)
            out = folder / f"{task}-server"
            done = run(mrrope, *line, "--endpoint", f"http://127.0.0.1:{server.port}/v1", "--parallel", 4,
                       "--timeout", 200, "-o", out, *(["--vocab", model] if task == "passkey" else []))
            compare(task, answers(folder / task), answers(out), most)
            assert "usage" not in done.stderr, done.stderr


if __name__ == "__main__":
    main()

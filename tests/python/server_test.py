# SPDX-License-Identifier: Apache-2.0
"""An exported file in llama-server, over HTTP, past the old window.

server_test.py MRROPE LLAMA_SERVER MODEL.gguf TEXT.json

The server must take a prompt longer than the model's old window, and go on with it as mrrope does on
the source file under the plan. The source file itself it caps at the window. Standard library only.
"""
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

if len(sys.argv) > 2 and not pathlib.Path(sys.argv[2]).exists():
    print(f"SKIPPED: {sys.argv[2]} is not built (ninja llama-server, or ./run test --full)")
    sys.exit(77)

CONTEXT = 2048
PROMPT = 1500  # tokens; the window is 1024
ANSWER = 12


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


class Server:
    def __init__(self, program, model):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [program, "-m", model, "-c", str(CONTEXT), "--host", "127.0.0.1", "--port",
             str(self.port), "-np", "1", "-ngl", "0", "--no-warmup", "--offline"],
            stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        deadline = time.time() + 120
        while time.time() < deadline and self.process.poll() is None:
            try:
                if self.get("/health")["status"] == "ok":
                    return self
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.2)
        self.__exit__()
        self.log.seek(0)
        sys.exit("the server did not start:\n" + self.log.read()[-3000:])

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return json.load(answer)

    def post(self, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}",
                                         json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)


def main():
    mrrope, program, model, golden = sys.argv[1:]
    text = json.loads(pathlib.Path(golden).read_text())["text"]
    with tempfile.TemporaryDirectory() as folder:
        exported = pathlib.Path(folder) / "exported.gguf"
        prompt_file = pathlib.Path(folder) / "prompt.txt"
        plan = ["--method", "pro", "--ctx", str(CONTEXT)]
        run(mrrope, "export", model, *plan, "-o", exported, "--no-verify")
        with Server(program, exported) as server:
            tokens = server.post("/tokenize", {"content": text})["tokens"][:PROMPT]
            prompt = server.post("/detokenize", {"tokens": tokens})["content"]
            prompt_file.write_text(prompt)
            length = server.get("/props")["default_generation_settings"]["n_ctx"]
            assert length == CONTEXT, f"a slot of the server has {length} tokens"
            answer = server.post("/completion", {"prompt": prompt, "n_predict": ANSWER,
                                                 "temperature": 0, "cache_prompt": False})
        read = answer["timings"]["prompt_n"]
        assert read > 1400 and not answer["truncated"], answer
        ours = json.loads(run(mrrope, "generate", model, *plan, "-f", prompt_file, "-n", ANSWER,
                              "-ngl", 0, "--json"))
        print(f"llama-server read {read} tokens of a model of 1024 and wrote {answer['content']!r}")
        assert answer["content"] == ours["text"], f"mrrope writes {ours['text']!r}"
        with Server(program, model) as server:
            length = server.get("/props")["default_generation_settings"]["n_ctx"]
            assert length == 1024, f"the source is not capped: {length}"


main()

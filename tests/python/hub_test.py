# SPDX-License-Identifier: Apache-2.0
"""mrrope -hf and mrrope models against a server in this process that speaks the Hub's protocol.

hub_test.py MRROPE MODEL

Standard library only.
"""
import collections
import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

MODEL = pathlib.Path(sys.argv.pop(2)).read_bytes()
MRROPE = str(pathlib.Path(sys.argv.pop(1)).resolve())
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_" + "a" * 34
MIB = 1 << 20


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def listed(path, data, digest=None):
    return {"type": "file", "path": path, "oid": "0" * 40, "lfs": {"oid": digest or sha256(data)}}


class Hub(http.server.ThreadingHTTPServer):
    """Repositories by name: a list of files as the API gives it, and their bytes by path."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.trees, self.files = {}, {}
        self.requests, self.ranges = [], []
        self.sent = collections.Counter()
        self.private = set()
        self.cut_at = None  # a download ends, or stalls, when this much of the file has come
        self.cuts = None  # only so often
        self.stall = False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def add(self, repo, files, tree=None):
        self.files[repo] = files
        self.trees[repo] = [listed(*item) for item in files.items()] if tree is None else tree

    def handle_error(self, request, client_address):
        pass  # clients of these tests hang up


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def end_headers(self):
        if self.headers.get("Connection") == "close":
            self.send_header("Connection", "close")
        super().end_headers()

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.server
        hub.requests.append((self.command, self.path))
        words = self.path.partition("?")[0].strip("/").split("/")
        api = words[:2] == ["api", "models"]
        repo = "/".join(words[2:4] if api else words[:2])
        if words[0] == "cdn":
            return self.send_file("/".join(words[1:3]), "/".join(words[3:]))
        if repo in hub.private and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.reply(401, b'{"error":"Access is restricted"}')
        if repo not in hub.trees:
            return self.reply(404, b'{"error":"Repository not found"}')
        if api and words[4] == "refs":
            branches = [{"name": "main", "targetCommit": COMMIT}]
            return self.reply(200, json.dumps({"branches": branches}).encode())
        if api:
            return self.reply(200, json.dumps(hub.trees[repo]).encode())
        # As the Hub does, to another place.
        return self.reply(302, Location=f"/cdn/{repo}/{'/'.join(words[4:])}")

    def send_file(self, repo, path):
        hub = self.server
        data = hub.files[repo][path]
        start = 0
        if wanted := self.headers.get("Range"):
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            hub.ranges.append(start)
            if start >= len(data):
                return self.reply(416)
        self.send_response(206 if wanted else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{sha256(data)}"')
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        if self.command == "HEAD":
            return None
        end = len(data)
        if hub.cut_at is not None:
            end = hub.cut_at
        if hub.cuts is not None:
            hub.cuts -= 1
            hub.cut_at = hub.cut_at if hub.cuts else None
        for at in range(start, end, 1 << 16):
            part = data[at:min(at + (1 << 16), end)]
            self.wfile.write(part)
            hub.sent[path] += len(part)
        if end < len(data):
            self.wfile.flush()
            if hub.stall:
                time.sleep(30)
            self.close_connection = True
            self.connection.shutdown(2)
        return None


class HubTest(unittest.TestCase):
    def setUp(self):
        self.hub = Hub()
        self.addCleanup(self.hub.server_close)
        self.addCleanup(self.hub.shutdown)
        folder = tempfile.TemporaryDirectory(prefix="mrrope-hub-")
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.cache = self.home / "cache"
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("HF_", "LLAMA_", "OLLAMA_"))},
            "HOME": str(self.home), "XDG_CACHE_HOME": str(self.home / "other"), "no_proxy": "127.0.0.1",
            "HF_HUB_CACHE": str(self.cache), "MODEL_ENDPOINT": f"http://127.0.0.1:{self.hub.server_port}/"}

    def start(self, *arguments, **environment):
        return subprocess.Popen([MRROPE, *arguments], env={**self.environment, **environment}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    def run_it(self, *arguments, code=0, words=(), **environment):
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, code, err)
        for word in words:
            self.assertIn(word, out + err)
        self.assertNotIn("llama-cpp", err)
        return out, err

    def gets(self):
        return [path for method, path in self.hub.requests if method == "GET" and "/cdn/" in path]

    def blobs(self, repo="user--tiny"):
        return sorted(p.name for p in (self.cache / f"models--{repo}" / "blobs").iterdir())

    def test_download_then_no_network(self):
        self.hub.add("user/tiny", {"README.md": b"x", "mmproj-tiny-Q8_0.gguf": b"no", "tiny-Q2_K.gguf": b"no",
                                   "tiny-Q8_0.gguf": MODEL})
        out, _ = self.run_it("inspect", "-hf", "user/tiny", "--ctx", "8k", words=["far:pi", "snapshots"])
        self.assertEqual(self.gets(), ["/cdn/user/tiny/tiny-Q8_0.gguf"])
        self.assertEqual(self.blobs(), [sha256(MODEL)])
        before = len(self.hub.requests)
        # Every way to name it, all from the cache.
        for name in (["-hf", "user/tiny"], ["-hf", "user/tiny:q8_0"], ["--hf-repo=user/tiny:Q8_0"],
                     ["user/tiny:Q8_0"], ["-m", "user/tiny"]):
            self.assertEqual(self.run_it("inspect", *name, "--ctx", "8k")[0], out)
        self.run_it("generate", "user/tiny", "-p", "Let n be", "-n", "2", "--ctx", "64")
        out, _ = self.run_it("models", words=["user/tiny:Q8_0", "34.4 MiB", "1k", "far:pi"])
        row = json.loads(self.run_it("models", "--json")[0])[0]
        self.assertEqual((row["name"], row["bytes"], row["window"], row["auto"]),
                         ("user/tiny:Q8_0", len(MODEL), 1024, {"ctx": 4096, "meaning": "far:pi"}))
        self.run_it("inspect", "user/tiny:Q4_0", code=1, words=["did you mean user/tiny:Q8_0?", "mrrope models"])
        self.assertEqual(len(self.hub.requests), before)

    def test_models_of_ollama(self):
        store = self.home / ".ollama/models"
        for name, data in (("good", MODEL), ("short", MODEL[:5000]), ("text", b"hello")):
            digest = sha256(data)
            manifest = store / f"manifests/registry.example/library/{name}/latest"
            manifest.parent.mkdir(parents=True)
            manifest.write_text(json.dumps(
                {"layers": [{"mediaType": "application/vnd.image.model", "digest": f"sha256:{digest}"}]}))
            (store / "blobs").mkdir(exist_ok=True)
            (store / f"blobs/sha256-{digest}").write_bytes(data)
        lines = self.run_it("models")[0].splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["name", "good:latest", "short:latest", "text:latest"])
        self.assertIn("far:pi", lines[1])
        self.assertIn("cannot be used:", lines[2])
        self.assertIn("cannot be used:", lines[3])
        self.assertIn("problem", json.loads(self.run_it("models", "--json")[0])[2])
        self.run_it("plan", "good", "--method", "pro", "--ctx", "8k")
        self.run_it("inspect", "goood", code=1, words=["did you mean good:latest?"])

    def test_cut_then_resumed(self):
        self.hub.add("user/tiny", {"tiny-Q8_0.gguf": MODEL})
        self.hub.cut_at = 5 * MIB
        self.run_it("inspect", "-hf", "user/tiny", code=1, words=["ended early, after 5.0 MiB", "rerun the command"])
        self.assertEqual(self.hub.sent["tiny-Q8_0.gguf"], 5 * MIB)
        self.hub.cut_at = None
        self.run_it("inspect", "-hf", "user/tiny")
        self.assertEqual(self.hub.sent["tiny-Q8_0.gguf"], len(MODEL))
        self.assertEqual(self.hub.ranges[-1], 5 * MIB)
        self.assertEqual(self.blobs(), [sha256(MODEL)])

    def test_cut_once(self):
        self.hub.add("user/tiny", {"tiny-Q8_0.gguf": MODEL})
        self.hub.cut_at, self.hub.cuts = 5 * MIB, 1
        self.run_it("inspect", "-hf", "user/tiny")
        self.assertEqual(self.hub.ranges, [5 * MIB])
        self.assertEqual(self.hub.sent["tiny-Q8_0.gguf"], len(MODEL))

    def test_interrupt_keeps_what_has_come(self):
        self.hub.add("user/tiny", {"tiny-Q8_0.gguf": MODEL})
        self.hub.cut_at, self.hub.stall = 20 * MIB, True
        process = self.start("inspect", "-hf", "user/tiny")
        part = self.cache / "models--user--tiny/blobs" / (sha256(MODEL) + ".downloadInProgress")
        deadline = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size > 15 * MIB):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        self.assertIn(process.returncode, (-signal.SIGINT, 130))
        kept = part.stat().st_size
        self.assertGreater(kept, 15 * MIB)
        self.hub.cut_at = None
        self.run_it("inspect", "-hf", "user/tiny")
        self.assertEqual(self.hub.ranges, [kept])
        self.assertEqual(self.blobs(), [sha256(MODEL)])

    def test_a_terminal_shows_a_bar_from_the_start(self):
        name = "a-model-with-a-name-as-long-as-they-are-these-days-Q8_0.gguf"
        self.hub.add("user/tiny", {name: MODEL})
        ours, theirs = pty.openpty()
        process = subprocess.Popen([MRROPE, "inspect", "-hf", "user/tiny"], env={**self.environment, "TERM": "xterm"},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(ours, 4096):
                shown += part
        os.close(ours)
        self.assertEqual(process.wait(60), 0)
        lines = [line.removesuffix("\x1b[K") for line in shown.decode().split("\r") if line]
        self.assertEqual(lines[0], "[--------------------] 0%  asking for the files of user/tiny")
        self.assertTrue(any("  downloading a-model-" in line for line in lines), lines)
        self.assertTrue(any("  checking a-model-" in line for line in lines), lines)
        self.assertLess(max(map(len, lines)), 80)
        self.assertEqual(lines[-1], "")  # cleared

    def test_partial_file_without_a_rest(self):
        self.hub.add("user/tiny", {"tiny-Q8_0.gguf": MODEL})
        blobs = self.cache / "models--user--tiny/blobs"
        blobs.mkdir(parents=True)
        (blobs / (sha256(MODEL) + ".downloadInProgress")).write_bytes(b"x" * len(MODEL))
        self.run_it("inspect", "-hf", "user/tiny")
        self.assertEqual(self.blobs(), [sha256(MODEL)])

    def test_parts(self):
        names = [f"Q8_0/tiny-Q8_0-0000{n}-of-00002.gguf" for n in (1, 2)]
        self.hub.add("user/tiny", {names[1]: b"second", names[0]: MODEL})
        self.run_it("inspect", "-hf", "user/tiny:Q8_0", words=["tiny-Q8_0-00001-of-00002.gguf"])
        self.assertEqual(self.gets(), [f"/cdn/user/tiny/{name}" for name in names])
        self.run_it("models", words=["user/tiny:Q8_0"])
        # A part that is not in the cache is fetched again, and only that one.
        (self.cache / "models--user--tiny/blobs" / sha256(b"second")).unlink()
        self.run_it("inspect", "-hf", "user/tiny:Q8_0")
        self.assertEqual(self.gets()[2:], [f"/cdn/user/tiny/{names[1]}"])
        self.hub.add("user/half", {names[0]: MODEL})
        self.run_it("inspect", "-hf", "user/half", code=1, words=["part 2 of 2", "is missing in user/half"])

    def test_wrong_checksum(self):
        path = "tiny-Q8_0.gguf"
        self.hub.add("user/tiny", {path: MODEL}, [listed(path, b"", "ab" * 32)])
        self.run_it("inspect", "-hf", "user/tiny", code=4, words=[sha256(MODEL), "ab" * 32, "it was removed"])
        self.assertEqual(self.blobs(), [])
        self.run_it("models", words=["No models in"])
        # Without a checksum nothing is downloaded.
        for tree in ([{"type": "file", "path": path, "oid": "0" * 40}], [{"type": "file", "path": path}]):
            self.hub.add("user/tiny", {path: MODEL}, tree)
            self.run_it("inspect", "-hf", "user/tiny", code=1, words=["lists no SHA-256 of tiny-Q8_0.gguf"])
        self.assertEqual(len(self.gets()), 1)

    def test_refused(self):
        self.run_it("inspect", "-hf", "user/none", code=1, words=["user/none", "status 404", "USER/REPO[:QUANT]"])
        self.hub.add("user/gated", {"tiny-Q8_0.gguf": MODEL})
        self.hub.private.add("user/gated")
        self.run_it("inspect", "-hf", "user/gated", code=1, words=["status 401", "set HF_TOKEN"])
        self.run_it("inspect", "-hf", "user/gated", HF_TOKEN="hf_" + "b" * 34, code=1,
                    words=["status 401", "the token in HF_TOKEN"])
        self.run_it("inspect", "-hf", "user/gated", HF_TOKEN=TOKEN)
        self.run_it("inspect", "-hf", "user/none", code=1, MODEL_ENDPOINT="http://127.0.0.1:1/",
                    words=["cannot download", "check the network"])

    def test_nothing_to_take(self):
        self.hub.add("user/tiny", {"tiny-Q8_0.gguf": MODEL, "tiny-Q4_K_M.gguf": b"x"})
        self.run_it("inspect", "-hf", "user/tiny:Q5_K", code=2, words=["user/tiny has no Q5_K", "Q4_K_M, Q8_0"])
        self.hub.add("user/other", {"model.safetensors": b"x"})
        self.run_it("inspect", "-hf", "user/other", code=1, words=["user/other has no GGUF file"])
        for bad in ("tiny", "a/b/c", "/b", "a/", "a/..", "../x", "a--b/c", "user/tiny:", "user/tiny:[", "a/b:Q4:x",
                    "user/ti ny", "user/tiny:../x", "https://a/b"):
            self.run_it("inspect", f"--hf-repo={bad}", code=2, words=["is not the name of a repository"])
        self.run_it("inspect", "--hf-repo=", code=2)
        self.run_it("inspect", "x.gguf", "-hf", "user/tiny", code=2, words=["excludes"])
        self.assertEqual(self.gets(), [])

    def test_hostile_lists(self):
        self.hub.add("user/tiny", {}, [
            {"type": "file", "path": 5}, {"type": "file"}, 7, None, listed("../../../evil-Q8_0.gguf", b"x"),
            listed("/tmp/evil-Q8_0.gguf", b"x"), listed("a-99999-of-00002.gguf", b"x"), listed("README", b"x"),
            listed("x/" * 1000 + "long.gguf", b"x")])
        self.run_it("inspect", "-hf", "user/tiny", code=1, words=["user/tiny has no GGUF file"])
        for tree in ({}, [], "x", [[]], [listed("-".join("x" * 200000) + ".gguf", b"x")]):
            self.hub.add("user/tiny", {}, tree)
            self.run_it("inspect", "-hf", "user/tiny", code=1)
        self.assertEqual(self.gets(), [])


if __name__ == "__main__":
    unittest.main()

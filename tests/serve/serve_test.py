# SPDX-License-Identifier: Apache-2.0
"""mrrope serve with real clients: the openai package, curl, and misbehaving sockets.

serve_test.py MRROPE MODEL.gguf
"""
import json
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import openai

from chat_model import CHAT, with_template
from serve_client import COMMAND, CTX, MODEL, NAME, TEXT, TIE, Server, gap_where_they_differ, generate

# Ends after a thousand years.
ENDLESS = ("{% for a in range(999) %}" * 5 + "{% endfor %}" * 5)


class Api(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.chat_model = with_template(MODEL, CHAT, cls.folder.name)
        cls.server = Server("--parallel", "4", "--pooling", "last", model=cls.chat_model)
        cls.model = "chatty"

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)
        cls.folder.cleanup()

    def test_information_routes(self):
        get = lambda path: self.server.send("GET", path)
        self.assertEqual(get("/health"), (200, {"status": "ok"}))
        props = get("/props")[1]
        self.assertEqual((props["context"], props["window"], props["method"], props["total_slots"]),
                         (CTX, 1024, "far:pi", 4))
        self.assertGreater(len(props["rungs"]), 4)
        self.assertEqual(props["rungs"][0], {"length": 1024, "scale": 1})
        with Server("--method", props["method"]) as typed:  # what is named can be typed
            self.assertEqual(typed.send("GET", "/props")[1]["rungs"], props["rungs"])
        models = self.server.client().models.list().data
        self.assertEqual([m.id for m in models], ["chatty"])
        text = get("/metrics")[1]
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) mrrope_\w+ .+|mrrope_\w+(\{\w+="\w+"\})? [0-9.e+-]+)$')

    def test_completion_matches_the_local_engine(self):
        for repeats, rung in ((20, 0), (70, 2)):
            prompt = "let x = 1; let y = 2; let z = 3;\n" * repeats
            with Server("--parallel", "1") as server:
                answer = server.client().completions.create(model=NAME, prompt=prompt, max_tokens=12,
                                                            temperature=0, logprobs=5)
            local = generate(prompt, 12, self.folder.name, "-t", "2")
            # A text that is sure at every token: batches of another shape round differently.
            for top in answer.choices[0].logprobs.top_logprobs:
                first, second = sorted(top.values(), reverse=True)[:2]
                self.assertGreater(first - second, TIE)
            self.assertEqual(answer.choices[0].text, local["text"])
            self.assertEqual(answer.usage.prompt_tokens, local["prompt_tokens"])
            self.assertEqual(answer.usage.total_tokens, local["prompt_tokens"] + 12)
            self.assertEqual(answer.choices[0].finish_reason, "length")
            self.assertGreaterEqual(answer.mrrope["rung"], rung)
            self.assertEqual(answer.mrrope["rung"], local["rung"])
            self.assertEqual(answer.mrrope["scale"], local["scale"])

    def test_eval_over_the_endpoint(self):
        small = ["--train-ctx", "128", "--ctx", "512"]
        needles = ["--lengths", "96,400", "--depths", "0,100", "--form", "completion"]
        folder = pathlib.Path(self.folder.name)

        def answers(out, *where):
            subprocess.run([COMMAND, "eval", "needle", *where, *needles, "-o", str(out)], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            lines = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
            return {(c["length"], c["depth"]): c for line in lines for c in line.get("cells", [])}

        local = answers(folder / "local", MODEL, "--methods", "elastic:pro", *small)
        with Server("--train-ctx", "128", "--parallel", "4", ctx=512) as server:
            served = answers(folder / "served", "--endpoint", f"http://127.0.0.1:{server.port}/v1")
        self.assertEqual(len(local), 4)
        self.assertEqual(local.keys(), served.keys())
        equal = 0
        for place, cell in local.items():
            if cell["text"] == served[place]["text"]:
                equal += 1
            else:
                self.assertLess(cell["gap"], TIE, (cell, served[place]))
        self.assertGreaterEqual(equal, 2)

    def test_chat_and_streams(self):
        client = self.server.client()
        messages = [{"role": "system", "content": "Be brief."},
                    {"role": "user", "content": [{"type": "text", "text": TEXT},
                                                 {"type": "text", "text": "Go on."}]}]
        whole = client.chat.completions.create(model=self.model, messages=messages, max_tokens=20,
                                               temperature=0)
        self.assertEqual(whole.choices[0].message.role, "assistant")
        stream = client.chat.completions.create(model=self.model, messages=messages, max_tokens=20,
                                                temperature=0, stream=True,
                                                stream_options={"include_usage": True})
        chunks = list(stream)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertGreater(len(chunks), 10)
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual(chunks[-2].choices[0].finish_reason, whole.choices[0].finish_reason)
        self.assertIn("rung", chunks[5].mrrope)
        # The template joins the messages.
        prompt = f"<system> Be brief.\n<user> {TEXT}\nGo on.\n<assistant>"
        again = client.completions.create(model=self.model, prompt=prompt, max_tokens=20, temperature=0)
        self.assertEqual(again.choices[0].text, whole.choices[0].message.content)
        pieces = client.completions.create(model=self.model, prompt=prompt, max_tokens=20,
                                           temperature=0, stream=True)
        self.assertEqual("".join(p.choices[0].text for p in pieces), again.choices[0].text)

    def test_sampling_and_stops(self):
        write = lambda **more: self.server.complete(TEXT, 40, **more)
        one = write(temperature=1.5, seed=5)["choices"][0]["text"]
        self.assertEqual(one, write(temperature=1.5, seed=5)["choices"][0]["text"])
        others = {write(temperature=1.5, seed=s)["choices"][0]["text"] for s in range(6, 10)}
        self.assertGreater(len(others | {one}), 2)
        greedy = write()["choices"][0]["text"]
        self.assertEqual(write(temperature=2, top_k=1, seed=3)["choices"][0]["text"], greedy)
        self.assertEqual(write(temperature=2, min_p=1.0, seed=3)["choices"][0]["text"], greedy)
        self.assertEqual(write(temperature=2, top_p=1e-6, seed=3)["choices"][0]["text"], greedy)
        word = greedy.split()[2]
        cut = write(stop=[word, "never there"])
        self.assertEqual(cut["choices"][0]["text"], greedy[:greedy.index(word)])
        self.assertEqual(cut["choices"][0]["finish_reason"], "stop")
        self.assertEqual(write(stop=None, user="me", made_up=1)["mrrope"]["ignored"],
                         ["made_up", "user"])

    def test_logprobs(self):
        answer = self.server.complete(TEXT, 8, logprobs=3)["choices"][0]
        logprobs = answer["logprobs"]
        self.assertEqual("".join(logprobs["tokens"]), answer["text"])
        for token, offset in zip(logprobs["tokens"], logprobs["text_offset"]):
            self.assertTrue(answer["text"][offset:].startswith(token))
        for token, value, top in zip(logprobs["tokens"], logprobs["token_logprobs"],
                                     logprobs["top_logprobs"]):
            self.assertLessEqual(value, 0)
            self.assertAlmostEqual(max(top.values()), value, places=6)  # greedy takes the most likely one
            self.assertEqual(len(top), 3)
            self.assertIn(token, top)
        chat = self.server.client().chat.completions.create(
            model=self.model, messages=[{"role": "user", "content": "Hello"}], max_tokens=4,
            temperature=0, logprobs=True, top_logprobs=2)
        content = chat.choices[0].logprobs.content
        self.assertEqual(len(content), chat.usage.completion_tokens)
        self.assertEqual(b"".join(bytes(c.bytes) for c in content).decode(errors="replace"),
                         chat.choices[0].message.content)
        self.assertEqual([len(c.top_logprobs) for c in content], [2] * len(content))

    def test_a_conversation_reuses_its_cache(self):
        messages = [{"role": "user", "content": TEXT * 20}]
        client = self.server.client()
        first = client.chat.completions.create(model=self.model, messages=messages, max_tokens=30,
                                               temperature=0)
        messages += [{"role": "assistant", "content": first.choices[0].message.content},
                     {"role": "user", "content": "And then?"}]
        ask = lambda client: client.chat.completions.create(model=self.model, messages=messages, max_tokens=30,
                                                            temperature=0, logprobs=True, top_logprobs=5)
        second = ask(client)
        kept = second.usage.prompt_tokens_details.cached_tokens
        self.assertGreaterEqual(kept, first.usage.prompt_tokens)
        self.assertLess(second.usage.prompt_tokens - kept, 60)
        # The same answer as when everything is read at once.
        with Server("--parallel", "1", model=self.chat_model) as other:
            for path, body in (("/v1/embeddings", {"input": "a"}), ("/api/embed", {"input": "a"})):
                status, answer = other.post(path, body)  # as llama-server: the file states no pooling
                self.assertEqual(status, 400)
                self.assertIn("--pooling mean", json.dumps(answer))
            alone = ask(other.client())
        self.assertEqual(alone.usage.prompt_tokens_details.cached_tokens, 0)
        self.assertLess(gap_where_they_differ(alone.choices[0].to_dict(), second.choices[0].to_dict()) or 0, TIE)

    def test_tokens(self):
        tokens = self.server.post("/tokenize", {"content": TEXT})[1]["tokens"]
        self.assertEqual(self.server.post("/detokenize", {"tokens": tokens}), (200, {"content": TEXT}))
        started = self.server.post("/tokenize", {"content": TEXT, "add_special": True})[1]["tokens"]
        by_tokens = self.server.complete(started, 12)
        self.assertEqual(by_tokens["choices"][0]["text"], self.server.complete(TEXT, 12)["choices"][0]["text"])

    def test_embeddings(self):
        client = self.server.client()
        make = lambda text, **more: client.embeddings.create(model=self.model, input=text, **more)
        texts = [TEXT, "let x = 1;", TEXT]
        made = make(texts)  # the package asks for base64
        plain = make(texts, encoding_format="float")
        for one, other in zip(made.data, plain.data, strict=True):
            self.assertEqual(len(one.embedding), len(other.embedding))
            self.assertAlmostEqual(sum(x * x for x in one.embedding), 1, places=5)
            self.assertLess(max(abs(a - b) for a, b in zip(one.embedding, other.embedding)), 1e-6)
        same, different, again = (row.embedding for row in made.data)
        self.assertEqual(same, again)
        self.assertLess(sum(a * b for a, b in zip(same, different)), 0.999)
        tokens = [self.server.post("/tokenize", {"content": t, "add_special": True})[1]["tokens"] for t in texts]
        self.assertEqual(made.usage.prompt_tokens, sum(map(len, tokens)))
        self.assertEqual(make(tokens).data[1].embedding, different)
        self.assertEqual(make(tokens[1]).data[0].embedding, different)
        # While an answer is being written.
        stream = client.completions.create(model=self.model, prompt=TEXT, max_tokens=60, temperature=0, stream=True)
        first = next(iter(stream))
        self.assertEqual(len(make(["word"] * 200).data), 200)
        self.assertGreater(len([first, *stream]), 30)

    def test_ollamas_embeddings_and_ps(self):
        of = lambda path, **body: self.server.post(path, {"model": self.model, **body})[1]
        two = of("/api/embed", input=[TEXT, "let x = 1;"])
        self.assertEqual(of("/api/embeddings", prompt=TEXT)["embedding"], two["embeddings"][0])
        self.assertEqual(of("/api/embed", input=TEXT * 100)["prompt_eval_count"], 1024)
        loaded = self.server.send("GET", "/api/ps")[1]["models"][0]
        listed = self.server.send("GET", "/api/tags")[1]["models"][0]
        self.assertEqual(loaded["digest"], listed["digest"])
        self.assertRegex(loaded["digest"], "^[0-9a-f]{64}$")
        self.assertEqual((loaded["name"], loaded["context_length"]), ("chatty", CTX))
        self.assertEqual(loaded["details"]["quantization_level"], "q8_0")
        self.assertRegex(loaded["details"]["parameter_size"], r"^\d+\.\d+M$")
        self.assertEqual(of("/api/show")["digest"], loaded["digest"])

    def test_the_log(self):
        with Server("--parallel", "1", "--log-format", "json") as server:
            server.complete(TEXT, 5)
            list(server.client().completions.create(model=NAME, prompt=TEXT, max_tokens=6, temperature=0, stream=True))
            server.send("GET", "/no/such/" + NAME)
            # Opened anew: the server writes where the other descriptor stands.
            said = lambda: pathlib.Path(f"/proc/self/fd/{server.errors.fileno()}").read_text()
            logged = lambda: [line for line in said().splitlines() if not line.startswith("note: ")]
            server.wait_until(lambda: len(logged()) >= 3, "three lines")
            lines = sorted((json.loads(line) for line in logged()), key=lambda line: line["out"])
            self.assertEqual([(l["method"], l["route"], l["out"], l["rung"], l["status"]) for l in lines],
                             [("-", "(no route)", 0, None, 404), ("POST", "/v1/completions", 5, 0, 200),
                              ("POST", "/v1/completions", 6, 0, 200)])
            self.assertGreater(lines[2]["cached"], 5)
            self.assertNotIn("river", said())

    def test_curl(self):
        # HTTP/1.0 has no chunks; --raw would show their lengths.
        for flags in ([], ["--http1.0", "--raw"], ["--http1.0", "--raw", "-H", "Connection: keep-alive"]):
            out = subprocess.run(["curl", "-sN", "-m", "60", *flags,
                                  f"http://127.0.0.1:{self.server.port}/v1/completions", "-d",
                                  json.dumps({"prompt": TEXT, "max_tokens": 6, "stream": True})],
                                 capture_output=True, text=True, check=True).stdout
            events = out.strip().split("\n\n")
            self.assertEqual(events[-1], "data: [DONE]")
            for event in events[:-1]:
                self.assertEqual(json.loads(event.removeprefix("data: "))["object"], "text_completion")

    def test_errors_through_the_openai_package(self):
        client = self.server.client()
        with self.assertRaises(openai.NotFoundError) as caught:
            client.completions.create(model="gpt-9", prompt="x")
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError) as caught:
            client.completions.create(model=self.model, prompt=TEXT * 1000)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        self.assertRegex(caught.exception.message, r"\d{5} tokens.*4096.*4095")

    def test_bad_input(self):
        """What needs a real model or a real socket; tests/transcripts/unit has requests.txt and routes.txt for the rest."""
        largest = (1 << 20) + 16 * CTX
        for body, expected in {
            '{"prompt": ""}': 200,  # BOS alone
            '{"prompt": "a", "logit_bias": {"99999999": 1}}': 400, '{"prompt": [999999999]}': 400,
            '{"prompt": "a", "grammar": "root ::= nothing"}': 400,
            '{"prompt": "a", "grammar": "root ::= root \\"a\\" | \\"b\\""}': 400,
            '{"prompt": "a", "grammar": "root ::= <[300]>", "logit_bias": {"300": false}}': 400,
            '{"prompt": "a", "json_schema": {"$ref": "#/nowhere"}}': 400,
            b'{"prompt": "\xff\xfe"}': 400, '{"prompt": "' + "x" * 10_000_000 + '"}': 413}.items():
            status, answer = self.server.post("/v1/completions", body)
            with self.subTest(body=body[:80]):
                self.assertEqual(status, expected, answer)
                if expected != 200:
                    self.assertEqual(set(answer["error"]), {"message", "type", "param", "code"})
        self.assertIn(str(largest), answer["error"]["message"])
        # This template has no place for tools.
        tools = [{"type": "function", "function": {"name": "f"}}]
        chat = {"messages": [{"role": "user", "content": "x"}], "tools": tools}
        self.assertEqual(self.server.post("/v1/chat/completions", chat)[0], 400)
        with self.assertRaises(ConnectionError):  # such a long line is not read to its end
            self.server.send("GET", "/" + "a" * 50000)
        self.assertEqual(len(self.server.complete(TEXT, 4)["choices"]), 1)

    def test_slow_headers_do_not_block_others(self):
        began = time.monotonic()
        slow = []
        for i in range(150):
            s = socket.create_connection(("127.0.0.1", self.server.port))
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nX-A: " if i % 2 else b"P")
            slow.append(s)
        drip = slow[1]
        self.assertEqual(self.server.send("GET", "/health")[0], 200)
        self.assertEqual(select.select(slow, [], [], 0)[0], [])  # and none of them was closed
        self.server.complete(TEXT, 2)
        closed = None
        while time.monotonic() - began < 120 and closed is None:
            try:
                drip.sendall(b"x")
            except OSError:
                closed = b""
                break
            drip.settimeout(0.5)
            try:
                closed = drip.recv(4096)
            except TimeoutError:
                pass
        self.assertIsNotNone(closed, "a slow client keeps its thread forever")
        for s in slow:
            s.close()


class Limits(unittest.TestCase):
    def test_api_key(self):
        with tempfile.TemporaryDirectory() as folder:
            key = pathlib.Path(folder) / "key.txt"
            key.write_text("sesame-0123456789\n")
            with Server("--api-key-file", str(key), "--parallel", "1") as server:
                for wrong in ("sesame-012345678", "sesame-01234567890", "x", "SESAME-0123456789"):
                    with self.assertRaises(openai.AuthenticationError):
                        server.client(wrong).completions.create(model=NAME, prompt="x", max_tokens=1)
                self.assertEqual(server.send("GET", "/metrics")[0], 401)
                self.assertEqual(server.send("GET", "/health")[0], 200)
                server.client("sesame-0123456789").completions.create(model=NAME, prompt="x",
                                                                      max_tokens=1)
                self.assertNotIn("sesame", server.said())
            key.write_text("\n")
            refused = subprocess.run([COMMAND, "serve", MODEL, "--api-key-file", str(key)],
                                     capture_output=True, text=True)
            self.assertEqual(refused.returncode, 2)

    def test_queue_timeout_and_shutdown(self):
        with Server("--parallel", "1", "--queue", "1", "--timeout", "4") as server:
            long = {"prompt": TEXT, "max_tokens": 4000, "temperature": 0}
            answers = []
            def ask():
                answers.append(server.post("/v1/completions", long))
            waiting = [threading.Thread(target=ask) for _ in range(2)]
            for thread, place in zip(waiting, ("slots_busy", "queue")):
                thread.start()
                server.wait_until(lambda: server.metric(place) == 1, "a request is in " + place)
            status, answer = server.post("/v1/completions", long)
            self.assertEqual((status, answer["error"]["type"]), (429, "rate_limit_error"))
            for thread in waiting:
                thread.join()
            # Each one either wrote all its tokens or ran out of time.
            for status, answer in answers:
                self.assertIn(status, (200, 504), answer)
        with Server("--parallel", "1") as server:
            stream = server.client().completions.create(model=NAME, prompt=TEXT, max_tokens=600,
                                                        temperature=0, stream=True)
            parts = [next(stream)]
            for _ in range(2):  # to its process group, and once more by ./run
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.01)
            try:  # the signal takes some time to arrive; until then requests are served
                while server.post("/v1/completions", {"prompt": "x", "max_tokens": 1})[0] != 503:
                    pass
            except ConnectionError:
                pass  # gone already
            parts += list(stream)
            self.assertIn(parts[-1].choices[0].finish_reason, ("length", "stop"))
            written = sum(bool(p.choices[0].text) for p in parts)
            self.assertGreater(written, 300)
            self.assertEqual(server.process.wait(30), 0)

    def test_endless_template(self):
        with tempfile.TemporaryDirectory() as folder:
            with Server("--parallel", "1", model=with_template(MODEL, ENDLESS, folder)) as server:
                self.assertIn("chat template", server.said())
                status, answer = server.post("/v1/chat/completions",
                                             {"messages": [{"role": "user", "content": "x"}]})
                self.assertEqual(status, 400)
                # Whichever limit it reaches first on this machine.
                self.assertRegex(answer["error"]["message"], "ran for more than|more memory than it may")
                self.assertEqual(server.complete(TEXT, 3)["usage"]["completion_tokens"], 3)
            # A template that ends only for short messages.
            slow = "{% if messages[0].content|length > 50 %}" + ENDLESS + "{% endif %}ok"
            with Server("--parallel", "1", model=with_template(MODEL, slow, folder)) as server:
                say = lambda text: server.post("/v1/chat/completions", {
                    "messages": [{"role": "user", "content": text}], "max_tokens": 2})
                self.assertEqual(say("hi")[0], 200)
                self.assertEqual(say("x" * 60)[0], 400)
                self.assertEqual(say("hi")[0], 200)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])

# SPDX-License-Identifier: Apache-2.0
"""mrrope serve under everything at once: tools, schemas, grammars, streams, several prompts, the routes of
llama-server and ollama, clients that hang up, and input that is refused, across rungs. 32 requests at a time; every
answer is checked, greedy ones against those that the server gave alone, and memory has to stay flat.

serve_load_test.py MRROPE MODEL.gguf

MRROPE_MIXED_LOAD is the number of requests (default 200), MRROPE_SOAK_SECONDS for how long more are sent. The clients need a processor too, so the server computes with one thread. Standard library only.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import socket
import tempfile
import time

from chat_model import TOOL_CHAT, WEATHER_TOOL, check_weather, with_template
from serve_client import MODEL, TEXT, TIE, Server, gap_where_they_differ

REQUESTS = int(os.environ.get("MRROPE_MIXED_LOAD") or 200)
SOAK = float(os.environ.get("MRROPE_SOAK_SECONDS") or 0)
AT_A_TIME = 32
PARTS = 10  # memory is looked at after each
GROWTH = 32 << 20  # bytes that threads and allocators may keep after the first parts
CTX, WINDOW = 1024, 128

TOOLS = [WEATHER_TOOL]
# The bundled model has not seen calls: where a grammar writes them, each token costs a look at the whole
# vocabulary. So most answers that are bound to one are short.
CITY = {"type": "string", "enum": ["Rome", "Oslo"]}
NAMED = {"type": "function", "function": {"name": "weather"}}
CHAT = "/v1/chat/completions"
COMPLETION = "/v1/completions"


def require(condition, what):
    if not condition:
        raise AssertionError(what)


def events(text):
    lines = [line[6:] for line in text.split("\n\n") if line.startswith("data: ")]
    require(lines and lines[-1] == "[DONE]", text[-300:])
    return [json.loads(line) for line in lines[:-1]]


class Load:
    def __init__(self, server):
        self.server = server
        self.kinds = [self.tools, self.schema, self.grammar, self.chat_stream, self.completion,
                      self.several, self.penalties, self.native, self.native_stream, self.ollama,
                      self.ollama_stream, self.look, self.tokenize, self.hang_up, self.hang_up_early,
                      self.bad_json, self.bad_fields, self.bad_schema, self.too_long, self.known]
        texts = sorted((pathlib.Path(MODEL).resolve().parent.parent / "data" / "texts").iterdir())
        sizes = (12, 80, 160, 260, 400, 600, 800, 1000)  # bytes, up to some hundred tokens
        self.prompts = [texts[i % len(texts)].read_text()[500 * i:500 * i + sizes[i % 8]] for i in range(16)]
        self.alone = [self.greedy(i) for i in range(len(self.prompts))]
        self.gaps = []

    # Tokens that look the same share a key of top_logprobs, so more than two are asked for.
    def greedy(self, i):
        return self.ask(COMPLETION, {"prompt": self.prompts[i], "max_tokens": 8, "temperature": 0,
                                     "logprobs": 5})["choices"][0]

    def known(self, number):
        i = number // len(self.kinds) % len(self.prompts)
        gap = gap_where_they_differ(self.alone[i], self.greedy(i))
        self.gaps.append(gap or 0)
        require(gap is None or gap < TIE, gap)

    def ask(self, path, body, wanted=200):
        status, answer = self.server.post(path, body)
        require(status == wanted, f"{path} {str(body)[:200]}: {status} {str(answer)[:300]}")
        return answer

    def chat(self, number, **more):
        messages = [{"role": "user", "content": f"How is Rome? {TEXT[:number % 60]}"}]
        return {"messages": messages, "temperature": 1, "seed": number, "max_tokens": 120, **more}

    def tools(self, number):
        (self.tool, self.tool_auto, self.tool_stream, self.tool_auto)[number // len(self.kinds) % 4](number)

    def tool_auto(self, number):
        found = events(self.ask(CHAT, self.chat(number, tools=TOOLS, stream=True, max_tokens=12)))
        require(found[-1]["choices"][0]["finish_reason"] in ("stop", "length"), found[-1])

    def tool(self, number):
        answer = self.ask(CHAT, self.chat(number, tools=TOOLS, tool_choice=NAMED, max_tokens=400))
        require(answer["choices"][0]["finish_reason"] == "tool_calls", answer)
        check_weather(answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])

    def tool_stream(self, number):
        text = self.ask(CHAT, self.chat(number, tools=TOOLS, tool_choice="required", stream=True,
                                        parallel_tool_calls=False, max_tokens=400))
        check_weather("".join(call["function"]["arguments"] for event in events(text)
                              for call in event["choices"][0]["delta"].get("tool_calls", [])))

    def schema(self, number):
        form = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}
        # The template's grammar also allows a code fence and space.
        answer = self.ask(CHAT, self.chat(number, response_format=form, max_tokens=400))["choices"][0]
        require(answer["finish_reason"] == "stop", answer)
        require(json.loads(answer["message"]["content"]) in CITY["enum"], answer)

    def grammar(self, number):
        answer = self.ask(COMPLETION, {"prompt": "It is", "grammar": "root ::= [0-9]{3}", "max_tokens": 20,
                                       "seed": number})
        require(re.fullmatch("[0-9]{3}", answer["choices"][0]["text"]), answer)

    def chat_stream(self, number):
        found = events(self.ask(CHAT, self.chat(number, stream=True, max_tokens=12, n=2,
                                                stream_options={"include_usage": True})))
        require(found[-1]["usage"]["completion_tokens"] <= 24, found[-1])
        ends = [e for e in found if e["choices"] and e["choices"][0]["finish_reason"]]
        require(len(ends) == 2, ends)

    def completion(self, number):
        answer = self.ask(COMPLETION, {"prompt": TEXT[:40 + number % 300], "max_tokens": 12, "logprobs": 2,
                                       "temperature": 0})
        require(len(answer["choices"][0]["logprobs"]["tokens"]) == answer["usage"]["completion_tokens"], answer)

    def several(self, number):
        answer = self.ask(COMPLETION, {"prompt": ["The river", [70, 71, 72], "The mill"], "max_tokens": 4,
                                       "seed": number, "echo": True})
        require([c["index"] for c in answer["choices"]] == [0, 1, 2], answer)
        require(answer["choices"][2]["text"].startswith("The mill"), answer)

    def penalties(self, number):
        self.ask(COMPLETION, {"prompt": TEXT, "max_tokens": 10, "frequency_penalty": 1, "repeat_penalty": 1.1,
                              "logit_bias": {"70": -5, "71": False}, "typical_p": 0.9, "seed": number})

    def native(self, number):
        answer = self.ask("/completion", {"prompt": "The river", "n_predict": 6, "seed": number, "n_probs": 3})
        require(answer["stop"] and len(answer["completion_probabilities"]) == answer["tokens_predicted"], answer)

    def native_stream(self, number):
        text = self.ask("/completion", {"prompt": TEXT, "n_predict": 6, "stream": True, "seed": number,
                                        "cache_prompt": False, "return_progress": True})
        found = [json.loads(line[6:]) for line in text.split("\n\n") if line.startswith("data: ")]
        require(found[0]["prompt_progress"]["processed"] == 0 and found[-1]["stop"], text[:300])

    def ollama(self, number):
        answer = self.ask("/api/chat", {"model": "chatty", "messages": self.chat(number)["messages"],
                                        "format": CITY, "stream": False, "options": {"seed": number}})
        require(json.loads(answer["message"]["content"]) in CITY["enum"], answer)

    def ollama_stream(self, number):
        text = self.ask("/api/generate", {"model": "chatty", "prompt": "Hello",
                                          "options": {"num_predict": 8, "seed": number}})
        parts = [json.loads(line) for line in text.splitlines()] if isinstance(text, str) else [text]
        require(parts[-1]["done"], text)

    def look(self, number):
        path = ("/slots", "/metrics", "/props", "/v1/models", "/api/tags", "/health", "/")[number % 7]
        status, _ = self.server.send("GET", path)
        require(status == 200, path)

    def tokenize(self, number):
        tokens = self.ask("/tokenize", {"content": TEXT, "with_pieces": number % 2 == 0})["tokens"]
        if number % 2:
            require(self.ask("/detokenize", {"tokens": tokens})["content"] == TEXT, tokens)

    def raw(self, head, body, wait, until=b""):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=300) as s:
            s.sendall(head.encode() + body)
            got = b""
            while until not in got:
                part = s.recv(4096)
                require(part, got)
                got += part
            time.sleep(wait)

    def hang_up(self, number):
        kinds = [self.chat(number, stream=True, max_tokens=500), self.chat(number, max_tokens=500),
                 self.chat(number, tools=TOOLS, tool_choice=NAMED, stream=True),
                 self.chat(number, n=2, stream=True, max_tokens=300)]
        kind = number // len(self.kinds) % len(kinds)
        body = json.dumps(kinds[kind]).encode()
        self.raw(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n", body,
                 number % 13 * 0.02, b"" if kind else b"data:")  # some may still wait for their turn, this one not

    def hang_up_early(self, number):
        body = json.dumps(self.chat(number)).encode()
        self.raw(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n",
                 body[:number % len(body)], 0)

    def bad_json(self, number):
        bodies = ("{", "[]", "{\"messages\": [", "\"\\ud800\"", "{\"messages\": 1}", "nonsense", "")
        self.ask((CHAT, COMPLETION, "/completion", "/tokenize")[number % 4], bodies[number % 7], 400)

    def bad_fields(self, number):
        bodies = [self.chat(number, temperature=-1), self.chat(number, tools=[{"type": "wizard"}]),
                  self.chat(number, tool_choice="required"), self.chat(number, mirostat=2),
                  self.chat(number, stop=[1]), self.chat(number, n=99), {"messages": []},
                  self.chat(number, logit_bias={"99999999": 1})]
        self.ask(CHAT, bodies[number // len(self.kinds) % len(bodies)], 400)
        self.ask(CHAT, self.chat(number, model="other"), 404)

    def bad_schema(self, number):
        if number % 40 < 20:
            self.ask(COMPLETION, {"prompt": "x", "json_schema": {"type": "wizard"}}, 400)
        else:
            self.ask(COMPLETION, {"prompt": "x", "grammar": "root ::= this is (not"}, 400)

    def too_long(self, number):
        error = self.ask(COMPLETION, {"prompt": TEXT * 100}, 400)["error"]
        require(error["code"] == "context_length_exceeded" and error["n_ctx"] == CTX, error)


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = with_template(MODEL, TOOL_CHAT, folder)
        with Server("--parallel", "8", "--queue", "128", "--train-ctx", str(WINDOW), model=model, ctx=CTX,
                    threads=1) as server:
            load = Load(server)
            done, failed = collections.Counter(), []

            def one(number):
                kind = load.kinds[number % len(load.kinds)]
                try:
                    kind(number)
                    done[kind.__name__] += 1
                except Exception as error:  # everything is a failure here
                    failed.append(f"{number} {kind.__name__}: {type(error).__name__}: {str(error)[:500]}")

            began, memory, first = time.monotonic(), [], 0
            while first < REQUESTS or time.monotonic() - began < SOAK:
                last = first + max(1, REQUESTS // PARTS)
                with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
                    list(pool.map(one, range(first, last)))
                server.wait_until_idle()
                memory.append(server.memory())
                first = last
            seconds = time.monotonic() - began
            ended = {name: int(server.metric(f'answers_total{{end="{name}"}}'))
                     for name in ("stop", "length", "cancelled", "timeout", "failed")}
            turns = server.metric("rung_turns_total")
            print(f"{first} requests, {AT_A_TIME} at a time, in {seconds:.0f} s: {len(failed)} failures; "
                  f"{dict(done)}; answers {ended}; {turns:.0f} turns; "
                  f"gaps where answers differ {sorted(g for g in load.gaps if g)}; memory MiB {[m >> 20 for m in memory]}")
            print("\n".join(failed[:20]))
            require(not failed, f"{len(failed)} failures")
            require(ended["failed"] == 0 and ended["timeout"] == 0, ended)
            require(ended["cancelled"] > 0, "nobody hung up")
            require(turns > 10, turns)
            require(memory[-1] - memory[2] < GROWTH, memory)


main()

# SPDX-License-Identifier: Apache-2.0
"""mrrope serve as agents use it: tools, schemas, grammars, Anthropic's messages, and the routes of
llama-server and ollama.

serve_agents_test.py MRROPE MODEL.gguf
"""
import collections
import json
import sys
import tempfile
import unittest

import anthropic

from chat_model import TOOL_CHAT, WEATHER, WEATHER_TOOL, check_weather, with_template
from serve_client import MODEL, TEXT, Server

TOOLS = [WEATHER_TOOL, {"type": "function", "function": {"name": "time", "parameters": {"type": "object",
                                                                                       "properties": {}}}}]


class Agents(unittest.TestCase):
    """What agents and applications send."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Server("--parallel", "4", "--alias", "tool-user",
                            model=with_template(MODEL, TOOL_CHAT, cls.folder.name))
        cls.client = cls.server.client()
        cls.messages = [{"role": "user", "content": "How is Rome?"}]

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)
        cls.folder.cleanup()

    def chat(self, **more):
        return self.client.chat.completions.create(model="tool-user", **{"messages": self.messages, **more})

    def test_tool_calls(self):
        named = {"type": "function", "function": {"name": "weather"}}
        for seed in range(2):
            whole = self.chat(tools=TOOLS, tool_choice=named, temperature=1, seed=seed, max_tokens=200)
            choice = whole.choices[0]
            self.assertEqual(choice.finish_reason, "tool_calls")
            self.assertIsNone(choice.message.content)
            call = choice.message.tool_calls[0]
            self.assertEqual((call.type, call.function.name), ("function", "weather"))
            check_weather(call.function.arguments)
            chunks = list(self.chat(tools=TOOLS, tool_choice=named, temperature=1, seed=seed, stream=True,
                                    max_tokens=200))
            calls = collections.defaultdict(lambda: [None, None, ""])
            for chunk in chunks:
                for part in chunk.choices[0].delta.tool_calls or []:
                    got = calls[part.index]
                    got[0], got[1] = got[0] or part.id, got[1] or part.function.name
                    got[2] += part.function.arguments or ""
            self.assertEqual(chunks[-1].choices[0].finish_reason, "tool_calls")
            self.assertTrue(calls[0][0] and calls[0][1] == "weather")
            check_weather(calls[0][2])
        # The result goes back.
        self.messages_after = self.messages + [
            {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]},
            {"role": "tool", "tool_call_id": call.id, "content": "sunny, 31 degrees"}]
        prompt = self.server.post("/apply-template", {"messages": self.messages_after,
                                                      "tools": TOOLS})[1]["prompt"]
        self.assertIn("<tool_response>\nsunny, 31 degrees", prompt)
        self.assertIn('"name": "weather", "arguments": {"city"', prompt)
        after = self.chat(messages=self.messages_after, tools=TOOLS, tool_choice="none", max_tokens=8)
        self.assertIsNone(after.choices[0].message.tool_calls)
        calls = [self.chat(tools=TOOLS, tool_choice="required", parallel_tool_calls=True, seed=seed,
                           temperature=1, max_tokens=300).choices[0].message.tool_calls
                 for seed in range(2)]
        for made in calls:
            for one in made:
                self.assertIn(one.function.name, ("weather", "time"))

    def test_schemas_are_obeyed(self):
        form = {"type": "json_schema", "json_schema": {"name": "weather", "schema": WEATHER, "strict": True}}
        for seed in range(5):
            whole = self.chat(response_format=form, temperature=1, seed=seed, max_tokens=400)
            self.assertEqual(whole.choices[0].finish_reason, "stop")
            check_weather(whole.choices[0].message.content)
        text = "".join(c.choices[0].delta.content or "" for c in self.chat(
            response_format=form, temperature=1, seed=1, stream=True, max_tokens=400))
        check_weather(text)
        answer = self.server.complete("It is", 400, json_schema=WEATHER, temperature=1, seed=3)
        check_weather(answer["choices"][0]["text"])
        digits = self.server.complete("It is", 40, grammar="root ::= [0-9]{7}")["choices"][0]
        self.assertRegex(digits["text"], r"^[0-9]{7}$")
        self.assertEqual(digits["finish_reason"], "stop")

    def test_responses(self):
        make = lambda **more: self.client.responses.create(model="tool-user", **{"input": "How is Rome?", **more})
        whole = make(max_output_tokens=8, temperature=0, instructions="Be brief.")
        self.assertEqual((whole.status, whole.incomplete_details.reason), ("incomplete", "max_output_tokens"))
        self.assertEqual(whole.usage.output_tokens, 8)
        streamed = list(make(max_output_tokens=8, temperature=0, instructions="Be brief.", stream=True))
        self.assertEqual(streamed[-1].type, "response.incomplete")
        self.assertEqual(streamed[-1].response.output_text, whole.output_text)
        self.assertEqual("".join(e.delta for e in streamed if e.type == "response.output_text.delta"),
                         whole.output_text)
        tools = [{"type": "function", "name": "weather", "parameters": WEATHER, "strict": True}]
        for stream in (False, True):
            made = make(tools=tools, tool_choice={"type": "function", "name": "weather"}, stream=stream,
                        extra_body={"seed": 2, "top_k": 40}, max_output_tokens=300)
            made = list(made)[-1].response if stream else made
            self.assertEqual([item.type for item in made.output], ["function_call"])
            check_weather(made.output[0].arguments)
        after = make(input=[{"role": "user", "content": "How is Rome?"}, made.output[0].model_dump(),
                            {"type": "function_call_output", "call_id": made.output[0].call_id,
                             "output": "sunny"}], tools=tools, tool_choice="none", max_output_tokens=4)
        self.assertEqual(after.output[0].type, "message")
        form = {"format": {"type": "json_schema", "name": "weather", "schema": WEATHER, "strict": True}}
        check_weather(make(text=form, max_output_tokens=400, extra_body={"seed": 1}).output_text)

    def test_sampling(self):
        write = lambda **more: self.server.complete(TEXT, 60, **more)["choices"][0]["text"]
        greedy = write()
        self.assertEqual(write(frequency_penalty=0, repeat_penalty=1, logit_bias={}), greedy)
        tokens = lambda text: self.server.post("/tokenize", {"content": text})[1]["tokens"]
        most = lambda text: collections.Counter(tokens(text)).most_common(1)[0][1]
        self.assertLess(most(write(frequency_penalty=2, repeat_last_n=-1)), most(greedy))
        self.assertNotEqual(write(repetition_penalty=1.5), greedy)
        first = tokens(greedy)[0]
        banned = write(logit_bias={str(first): False})
        self.assertNotEqual(tokens(banned)[0], first)
        self.assertEqual(write(logit_bias=[[first, False]]), banned)
        self.assertEqual(len(self.server.complete("x", 30, ignore_eos=True, seed=1, temperature=2)
                             ["choices"]), 1)

    def test_messages_can_be_continued(self):
        messages = self.messages + [{"role": "assistant", "content": "Once upon"}]
        prompt = self.server.post("/apply-template", {"messages": messages,
                                                      "continue_final_message": True})[1]["prompt"]
        self.assertTrue(prompt.endswith("<|im_start|>assistant\nOnce upon"), prompt)
        whole = self.chat(messages=messages, max_tokens=5, temperature=0,
                          extra_body={"continue_final_message": True})
        plain = self.server.complete(prompt, 5)
        self.assertEqual(whole.choices[0].message.content, plain["choices"][0]["text"])

    def test_anthropic(self):
        client = self.server.anthropic()
        ask = lambda **more: {"model": "tool-user", "messages": self.messages, "max_tokens": 8,
                              "system": "Be brief.", "extra_body": {"temperature": 0}, **more}
        whole = client.messages.create(**ask())
        self.assertEqual((whole.stop_reason, whole.usage.output_tokens), ("max_tokens", 8))
        counted = client.messages.count_tokens(model="tool-user", messages=self.messages, system="Be brief.")
        with client.messages.stream(**ask()) as stream:
            text = "".join(stream.text_stream)
            last = stream.get_final_message()
        self.assertEqual([block.text for block in last.content], [text])
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(last.usage.output_tokens, 8)
        for usage in (whole.usage, last.usage):
            self.assertEqual(usage.input_tokens + usage.cache_read_input_tokens, counted.input_tokens)
        self.assertGreater(last.usage.cache_read_input_tokens, 0)
        stop = text[2:4]
        cut = client.messages.create(**ask(stop_sequences=[stop]))
        self.assertEqual((cut.stop_reason, cut.stop_sequence), ("stop_sequence", stop))
        self.assertEqual(cut.content[0].text, text[:text.index(stop)])

    def test_anthropic_tools(self):
        client = self.server.anthropic()
        tools = [{"name": "weather", "description": "The weather of a city", "input_schema": WEATHER}]
        ask = {"model": "tool-user", "messages": self.messages, "max_tokens": 300, "tools": tools,
               "tool_choice": {"type": "tool", "name": "weather"}}
        for seed in range(2):
            sampling = {"extra_body": {"temperature": 1, "seed": seed}}
            made = client.messages.create(**ask, **sampling)
            self.assertEqual((made.stop_reason, [b.type for b in made.content]), ("tool_use", ["tool_use"]))
            check_weather(json.dumps(made.content[0].input))
            with client.messages.stream(**ask, **sampling) as stream:
                streamed = stream.get_final_message()
            self.assertEqual(streamed.stop_reason, "tool_use")
            check_weather(json.dumps(streamed.content[0].input))
        use = made.content[0]
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": "sunny, 31 degrees"},
                   {"type": "text", "text": "And then?"}]
        after = self.messages + [{"role": "assistant", "content": made.content},
                                 {"role": "user", "content": results}]
        ask["tool_choice"] = {"type": "none"}
        said = client.messages.create(**{**ask, "messages": after, "max_tokens": 8})
        self.assertEqual({block.type for block in said.content}, {"text"})
        counted = client.messages.count_tokens(model="tool-user", messages=after, tools=tools)
        same = self.messages + [
            {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "id": use.id, "function": {
                "name": "weather", "arguments": json.dumps(use.input, separators=(",", ":"))}}]},
            {"role": "tool", "tool_call_id": use.id, "name": "weather", "content": "sunny, 31 degrees"},
            {"role": "user", "content": "And then?"}]
        prompt = self.server.post("/apply-template", {"messages": same, "tools": [WEATHER_TOOL]})[1]["prompt"]
        self.assertIn("<tool_response>\nsunny, 31 degrees", prompt)
        tokens = self.server.complete(prompt, 1)["usage"]["prompt_tokens"]
        self.assertEqual(counted.input_tokens, tokens)
        results[0]["tool_use_id"] = "other"
        with self.assertRaises(anthropic.BadRequestError) as caught:
            client.messages.create(**{**ask, "messages": after})
        self.assertEqual(caught.exception.body["error"]["type"], "invalid_request_error")
        self.assertIn("messages[2].content[0].tool_use_id", caught.exception.message)
        with self.assertRaises(anthropic.NotFoundError):
            client.messages.create(**{**ask, "model": "claude"})

    def test_ollama(self):
        post = lambda path, **body: self.server.post(path, {"model": "tool-user", **body})
        lines = lambda text: [json.loads(line) for line in text.splitlines()]
        few = {"num_predict": 6, "temperature": 0}
        whole = post("/api/chat", messages=self.messages, stream=False, options=few)[1]
        self.assertTrue(whole["done"])
        self.assertEqual(whole["done_reason"], "length")
        parts = lines(post("/api/chat", messages=self.messages, options=few)[1])
        self.assertEqual("".join(p["message"]["content"] for p in parts), whole["message"]["content"])
        self.assertEqual([p["done"] for p in parts], [False] * (len(parts) - 1) + [True])
        self.assertEqual(parts[-1]["eval_count"], 6)
        made = post("/api/generate", prompt="How is Rome?", stream=False, options=few)[1]
        self.assertEqual(made["response"], whole["message"]["content"])
        raw = post("/api/generate", prompt=TEXT, raw=True, stream=False, options=few)[1]
        self.assertEqual(raw["prompt_eval_count"],
                         self.server.complete(TEXT, 1)["usage"]["prompt_tokens"])
        said = post("/api/chat", messages=self.messages, format=WEATHER, stream=False)[1]
        check_weather(said["message"]["content"])
        status, answer = self.server.post("/api/chat", {"model": "other", "messages": self.messages})
        self.assertEqual((status, list(answer)), (404, ["error"]))
        get = lambda path: self.server.send("GET", path)[1]
        self.assertEqual(get("/api/tags")["models"][0]["name"], "tool-user")
        self.assertIn("version", get("/api/version"))
        self.assertIn("tools", post("/api/show")[1]["capabilities"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])

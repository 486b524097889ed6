# SPDX-License-Identifier: Apache-2.0
"""Client libraries and an agent against mrrope serve with a model that people use.

clients_test.py MRROPE MODEL.gguf SMALL.gguf

Schemas are tried many times, on the small model. litellm is tried in litellm_test.py: it needs an older openai package.
"""
import concurrent.futures
import json
import pathlib
import sys
import unittest

import ollama
import openai
import pydantic
import pydantic_ai
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from prompts import ONE, SYSTEM, TOOLS, TWO, WEATHER
from serve_client import NAME, Server

SMALL = sys.argv[3]
SCHEMAS = 100


class Person(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=0, le=150)
    languages: list[str] = pydantic.Field(min_length=1, max_length=3)


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--parallel", "4", "--pooling", "last", ctx=2048)
        cls.client = cls.server.client()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def chat(self, messages, **more):
        return self.client.chat.completions.create(
            model=NAME, messages=messages, **{"temperature": 0, "max_tokens": 200, **more})

    def asked(self, question):
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]

    def results(self, message):
        """What follows a message with calls of the tool."""
        answers = [{"role": "tool", "tool_call_id": call.id, "content": json.dumps(
                        {"weather": WEATHER[json.loads(call.function.arguments)["city"]]})}
                   for call in message.tool_calls]
        return [message.model_dump(exclude_none=True), *answers]

    def test_openai_chat_and_stream(self):
        messages = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]
        whole = self.chat(messages)
        self.assertIn("Paris", whole.choices[0].message.content)
        self.assertEqual(whole.choices[0].finish_reason, "stop")
        chunks = list(self.chat(messages, stream=True, stream_options={"include_usage": True}))
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)

    def test_openai_tool_and_its_result(self):
        messages = self.asked(ONE)
        first = self.chat(messages, tools=TOOLS).choices[0]
        self.assertEqual(first.finish_reason, "tool_calls")
        self.assertEqual(len(first.message.tool_calls), 1)
        last = self.chat(messages + self.results(first.message), tools=TOOLS).choices[0].message
        self.assertIsNone(last.tool_calls)
        self.assertIn("31", last.content)

    def test_openai_two_calls(self):
        messages = self.asked(TWO)
        more = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": True}
        first = self.chat(messages, **more).choices[0].message
        cities = [json.loads(call.function.arguments)["city"] for call in first.tool_calls]
        self.assertEqual(cities, ["Paris", "Oslo"])
        self.assertEqual(len({call.id for call in first.tool_calls}), 2)
        streamed = {}
        for chunk in self.chat(messages, stream=True, **more):
            for part in chunk.choices[0].delta.tool_calls or []:
                streamed[part.index] = streamed.get(part.index, "") + (part.function.arguments or "")
        self.assertEqual([json.loads(streamed[i])["city"] for i in sorted(streamed)], cities)
        last = self.chat(messages + self.results(first), tools=TOOLS).choices[0].message
        self.assertIsNone(last.tool_calls)
        for number in ("31", "7"):
            self.assertIn(number, last.content)

    def test_openai_responses(self):
        tools = [{"type": "function", **TOOLS[0]["function"]}]
        more = {"model": NAME, "instructions": SYSTEM, "temperature": 0, "max_output_tokens": 200}
        history = [{"role": "user", "content": ONE}]
        first = self.client.responses.create(input=history, tools=tools, **more).output
        self.assertEqual([item.type for item in first], ["function_call"])
        self.assertEqual(json.loads(first[0].arguments)["city"], "Paris")
        history += [item.model_dump(exclude_none=True) for item in first]
        history.append({"type": "function_call_output", "call_id": first[0].call_id,
                        "output": json.dumps({"weather": WEATHER["Paris"]})})
        last = self.client.responses.create(input=history, tools=tools, **more)
        self.assertIn("31", last.output_text)
        with self.client.responses.stream(input=history, tools=tools, **more) as stream:
            said = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
            self.assertEqual(stream.get_final_response().output_text, said)
        self.assertEqual(said, last.output_text)
        parsed = self.client.responses.parse(input="Ada is 36 years old and speaks English.", model=NAME,
                                             temperature=0, max_output_tokens=200, text_format=Person)
        self.assertEqual(parsed.output_parsed.age, 36)

    def test_openai_structured_output(self):
        said = self.client.chat.completions.parse(
            model=NAME, temperature=0, max_tokens=200, response_format=Person, messages=[
                {"role": "user", "content": "Ada is 36 years old and speaks English and French."}])
        self.assertEqual(said.choices[0].message.parsed,
                         Person(name="Ada", age=36, languages=["English", "French"]))

    def test_anthropic(self):
        client = self.server.anthropic()
        function = TOOLS[0]["function"]
        tools = [{"name": function["name"], "description": function["description"],
                  "input_schema": function["parameters"]}]
        more = {"model": NAME, "system": SYSTEM, "max_tokens": 200, "tools": tools,
                "extra_body": {"temperature": 0}}
        history = [{"role": "user", "content": ONE}]
        first = client.messages.create(messages=history, **more)
        self.assertEqual(first.stop_reason, "tool_use")
        use = first.content[-1]
        self.assertEqual((use.name, use.input), ("get_weather", {"city": "Paris"}))
        history += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": use.id,
             "content": json.dumps({"weather": WEATHER["Paris"]})}]}]
        with client.messages.stream(messages=history, **more) as stream:
            said = "".join(stream.text_stream)
            last = stream.get_final_message()
        self.assertIn("31", said)
        self.assertEqual(last.stop_reason, "end_turn")
        counted = client.messages.count_tokens(model=NAME, system=SYSTEM, tools=tools, messages=history)
        self.assertEqual(last.usage.input_tokens + last.usage.cache_read_input_tokens, counted.input_tokens)

    def test_ollama(self):
        client = ollama.Client(host=f"http://127.0.0.1:{self.server.port}")
        options = {"temperature": 0, "num_predict": 200}
        messages = self.asked(ONE)
        first = client.chat(NAME, messages=messages, tools=TOOLS, options=options).message
        self.assertEqual([c.function.arguments["city"] for c in first.tool_calls], ["Paris"])
        after = [first, {"role": "tool", "tool_name": "get_weather",
                         "content": json.dumps({"weather": WEATHER["Paris"]})}]
        said = client.chat(NAME, messages=messages + after, tools=TOOLS, options=options).message
        self.assertFalse(said.tool_calls)
        self.assertIn("31", said.content)
        parts = client.chat(NAME, messages=[{"role": "user", "content": "Say hello."}], stream=True,
                            options=options)
        self.assertIn("ello", "".join(part.message.content or "" for part in parts))
        made = client.generate(NAME, "Ada is 36 years old and speaks English.", options=options,
                               format=Person.model_json_schema())
        self.assertEqual(Person.model_validate_json(made.response).age, 36)
        texts = ["A cat sleeps.", "The kitten is asleep."]
        rows = client.embed(NAME, texts).embeddings
        self.assertEqual(list(client.embeddings(NAME, texts[1]).embedding), list(rows[1]))
        self.assertEqual([row.embedding for row in self.client.embeddings.create(model=NAME, input=texts).data],
                         [list(row) for row in rows])
        loaded = client.ps().models[0]
        self.assertEqual((loaded.model, loaded.digest), (NAME, client.list().models[0].digest))
        self.assertIn("q4_k", loaded.details.quantization_level)

    def test_pydantic_ai(self):
        model = OpenAIChatModel(NAME, provider=OpenAIProvider(openai_client=self.async_client()))
        agent = pydantic_ai.Agent(model, system_prompt=SYSTEM, retries=0,
                                  model_settings={"temperature": 0, "max_tokens": 200})
        asked = []

        @agent.tool_plain
        def get_weather(city: str) -> str:
            """Get the current weather of a city.

            Args:
                city: The name of the city
            """
            asked.append(city)
            return json.dumps({"weather": WEATHER[city]})

        self.assertIn("31", agent.run_sync(ONE).output)
        self.assertEqual(asked, ["Paris"])
        made = pydantic_ai.Agent(model, output_type=pydantic_ai.NativeOutput(Person),
                                 model_settings={"temperature": 0, "max_tokens": 200})
        self.assertEqual(made.run_sync("Ada is 36 years old and speaks English.").output.age, 36)

    def async_client(self):
        return openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{self.server.port}/v1", api_key="none",
                                  max_retries=0, timeout=300)


class Schemas(unittest.TestCase):
    def test_schema_is_obeyed_at_temperature_1(self):
        with Server("--parallel", "4", model=SMALL, ctx=1024) as server:
            people = self.people(server.client())
        self.assertEqual(sum(isinstance(p, Person) for p in people), SCHEMAS)
        self.assertGreater(len({p.name for p in people}), 10)

    def people(self, client):
        def one(seed):
            said = client.chat.completions.parse(
                model=pathlib.Path(SMALL).stem, temperature=1, seed=seed, max_tokens=400, response_format=Person,
                messages=[{"role": "user", "content": "Invent a person."}])
            return said.choices[0].message.parsed
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return list(pool.map(one, range(SCHEMAS)))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])

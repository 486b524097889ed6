# SPDX-License-Identifier: Apache-2.0
"""litellm against mrrope serve with a model that people use: a tool is called and its result used.

litellm_test.py MRROPE MODEL.gguf
"""
import json
import sys
import unittest

import litellm
import pydantic

from prompts import ONE, SYSTEM, TOOLS, WEATHER
from serve_client import NAME, Server


class City(pydantic.BaseModel):
    name: str
    country: str


class Litellm(unittest.TestCase):
    def check(self, ask):
        """A round trip through the provider that `ask` uses."""
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ONE}]
        first = ask(messages, tools=TOOLS).choices[0].message
        self.assertEqual([json.loads(c.function.arguments)["city"] for c in first.tool_calls], ["Paris"])
        messages += [first.model_dump(exclude_none=True),
                     {"role": "tool", "tool_call_id": first.tool_calls[0].id, "name": "get_weather",
                      "content": json.dumps({"weather": WEATHER["Paris"]})}]
        last = ask(messages, tools=TOOLS).choices[0].message
        self.assertFalse(last.tool_calls)
        self.assertIn("31", last.content)

    def test_round_trip(self):
        with Server("--parallel", "1", "--pooling", "last", ctx=2048) as server:
            base = f"http://127.0.0.1:{server.port}"
            openai = lambda messages, **more: litellm.completion(
                model=f"openai/{NAME}", api_base=base + "/v1", api_key="none", messages=messages,
                temperature=0, max_tokens=200, **more)
            self.check(openai)
            self.check(lambda messages, **more: litellm.completion(
                model=f"ollama_chat/{NAME}", api_base=base, messages=messages, temperature=0,
                max_tokens=200, **more))
            rows = [litellm.embedding(model=model, api_base=api, api_key="none", input=["A cat sleeps."]).data
                    for model, api in ((f"openai/{NAME}", base + "/v1"), (f"ollama/{NAME}", base))]
            self.assertEqual(rows[0][0]["embedding"], rows[1][0]["embedding"])
            question = [{"role": "user", "content": "What is the capital of France?"}]
            parts = openai(question, stream=True)
            self.assertIn("Paris", "".join(p.choices[0].delta.content or "" for p in parts))
            made = openai(question, response_format=City).choices[0].message.content
            self.assertEqual(City.model_validate_json(made).name, "Paris")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])

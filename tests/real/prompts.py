# SPDX-License-Identifier: Apache-2.0
"""What the tests with a real model ask it.

Qwen2.5-Coder-1.5B calls a tool when it is asked about a city. At temperature 0 it needs a system prompt
that says what to do once the results are there, or it calls the tool again; and tool_choice "required"
for two calls at once. Its prompts are those of transformers and llama-server, byte for byte.
"""
SYSTEM = ("Use the tools to find what you do not know. Once you have their results, answer the user in one "
          "sentence.")
WEATHER = {"Paris": "31 degrees and sunny", "Oslo": "7 degrees and rainy"}
TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "Get the current weather of a city",
    "parameters": {"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "The name of the city"}}}}}]
ONE = "What is the weather in Paris?"
TWO = "What is the weather in Paris and in Oslo?"

# SPDX-License-Identifier: Apache-2.0
"""A GGUF file with a chat template, made from one without; and a tool for its answers to call."""
import json
import pathlib
import struct

CHAT = ("{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}")
# Tools and calls in the tags that Qwen's models use.
TOOL_CHAT = (pathlib.Path(__file__).parent.parent / "golden/tool_calls.jinja").read_text()[:-1]
WEATHER = {"type": "object", "required": ["city", "days"], "additionalProperties": False, "properties": {
    "city": {"type": "string", "enum": ["Rome", "Oslo"]},
    "days": {"type": "integer", "minimum": 1, "maximum": 9}}}
WEATHER_TOOL = {"type": "function", "function": {"name": "weather", "description": "The weather of a city",
                                                 "parameters": WEATHER}}


def check_weather(text):
    said = json.loads(text)
    if said["city"] not in ("Rome", "Oslo") or said["days"] not in range(1, 10) or len(said) != 2:
        raise AssertionError(text)


def with_template(model, template, folder):
    """A copy of the model with a chat template. The new record is a multiple of 32 bytes long, so the
    alignment of everything after it does not change."""
    data = pathlib.Path(model).read_bytes()
    magic, version, tensors, pairs = struct.unpack_from("<4sIQQ", data)
    key = b"tokenizer.chat_template"
    head = struct.pack("<Q", len(key)) + key + struct.pack("<I", 8)
    size = len(head) + 8 + len(template.encode())
    text = template.encode() + b"{#" + b" " * (-size % 32 + 28) + b"#}"
    record = head + struct.pack("<Q", len(text)) + text
    assert len(record) % 32 == 0
    path = pathlib.Path(folder) / "chatty.gguf"
    path.write_bytes(struct.pack("<4sIQQ", magic, version, tensors, pairs + 1) + record + data[24:])
    return str(path)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the prompts that transformers makes with chat templates, for tests to compare with.

    python3 -m pip install transformers==5.22.2 gguf==0.19.0 jinja2
    tools/models/fetch.py smollm2-135m qwen2.5-coder-0.5b qwen2.5-coder-1.5b gemma-3-270m
    python3 tools/record_chats.py                   # writes tests/golden/chats.json anew

Conversations, and the names of templates with their bos and eos, are those of the file. Templates come
from the files of tools/models/models.json and from the folder models/templates of llama.cpp's source,
one for each family; they are not recorded. Not among them, since llama.cpp's renderer, which mrrope uses,
passes more than transformers does: Llama 3 (the date of today), Gemma 4 (thinking is on). "prompts" has,
for each conversation, the prompt as far as the assistant's answer, or null where the template refuses it.
"""
import hashlib
import json
import pathlib
import subprocess
import sys

import gguf
import jinja2
import transformers
from transformers.utils.chat_template_utils import render_jinja_template

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools" / "models"))
import fetch  # noqa: E402

GOLDEN = ROOT / "tests/golden/chats.json"


def render(template, bos, eos, messages):
    try:
        prompts, _ = render_jinja_template([messages], chat_template=template,
                                           add_generation_prompt=True, bos_token=bos, eos_token=eos)
    except jinja2.exceptions.TemplateError:
        return None
    return prompts[0]


def recorded(template, bos, eos, conversations):
    return {"bos": bos, "eos": eos, "template_sha256": hashlib.sha256(template.encode()).hexdigest(),
            "prompts": {name: render(template, bos, eos, messages)
                        for name, messages in conversations.items()}}


def model_chat(path, conversations):
    fields = gguf.GGUFReader(path).fields
    if "tokenizer.chat_template" not in fields:
        return None
    tokens = fields["tokenizer.ggml.tokens"]

    def token(name):
        return tokens.contents(int(fields[f"tokenizer.ggml.{name}_token_id"].contents()))

    chat = recorded(fields["tokenizer.chat_template"].contents(), token("bos"), token("eos"),
                    conversations)
    # Some have their vendor's system prompt in them.
    chat["prompts"] = {name: hashlib.sha256(prompt.encode()).hexdigest()
                       for name, prompt in chat["prompts"].items()}
    return chat


def main():
    before = json.loads(GOLDEN.read_text())
    conversations = before["conversations"]
    models = json.loads((fetch.HERE / "models.json").read_text())
    source = subprocess.run([ROOT / "tools" / "fetch_llama.sh"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.strip()
    folder = pathlib.Path(source) / "models" / "templates"
    result = {
        "transformers": transformers.__version__,
        "conversations": conversations,
        "models": {name: model_chat(fetch.cache_folder() / model["file"], conversations)
                   for name, model in models.items()},
        "templates": {name: recorded((folder / name).read_text(), known["bos"], known["eos"], conversations)
                      for name, known in before["templates"].items()},
    }
    GOLDEN.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

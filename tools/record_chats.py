#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the prompts that transformers makes with chat templates, for tests to compare with.

    python3 -m pip install transformers==5.22.2 gguf==0.19.0 jinja2
    tools/models/fetch.py smollm2-135m qwen2.5-coder-0.5b qwen2.5-coder-1.5b gemma-3-270m
    python3 tools/record_chats.py                   # writes tests/golden/chats.json
    python3 tools/record_chats.py --out FILE

Templates come from the files of tools/models/models.json and from the folder models/templates of
llama.cpp's source; they are not recorded. "prompts" has, for each conversation, the prompt as far as
the assistant's answer, or null where the template refuses the conversation.
"""
import argparse
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

CONVERSATIONS = {
    "one turn": [("user", "What is a rotary embedding?")],
    "system": [("system", "You answer in one sentence."), ("user", "What is a radix?")],
    "three turns": [("user", "Name a prime number."), ("assistant", "Seven."),
                    ("user", "And the next one?")],
    "system and three turns": [("system", "Be brief."), ("user", "2 + 2?"), ("assistant", "4"),
                               ("user", "Times 3?")],
    "odd text": [("user", "  {{ messages }} {% raw %} 'a' \"b\" \\n <b>&amp;</b>\n\n\u00e4 \u6570 \t")],
    "nothing": [("user", "")],
}

# Of llama.cpp's folder, one for each family. Not here, since llama.cpp's renderer, which mrrope uses,
# passes more than transformers does: Llama 3 (the date of today), Gemma 4 (thinking is on).
TEMPLATES = {
    "google-gemma-2-2b-it.jinja": ("<bos>", "<eos>"),
    "microsoft-Phi-3.5-mini-instruct.jinja": ("<s>", "<|endoftext|>"),
    "mistralai-Mistral-Nemo-Instruct-2407.jinja": ("<s>", "</s>"),
    "Qwen-Qwen3-0.6B.jinja": ("<|endoftext|>", "<|im_end|>"),
    "Qwen3-Coder.jinja": ("<|endoftext|>", "<|im_end|>"),
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja": ("<s>", "</s>"),
    "GLM-4.6.jinja": ("", "<|endoftext|>"),
    "LFM2-8B-A1B.jinja": ("<|startoftext|>", "<|im_end|>"),
}


def render(template, bos, eos, turns):
    messages = [{"role": role, "content": content} for role, content in turns]
    try:
        prompts, _ = render_jinja_template([messages], chat_template=template,
                                           add_generation_prompt=True, bos_token=bos, eos_token=eos)
    except jinja2.exceptions.TemplateError:
        return None
    return prompts[0]


def recorded(template, bos, eos):
    return {"bos": bos, "eos": eos, "template_sha256": hashlib.sha256(template.encode()).hexdigest(),
            "prompts": {name: render(template, bos, eos, turns)
                        for name, turns in CONVERSATIONS.items()}}


def model_chat(path):
    fields = gguf.GGUFReader(path).fields
    if "tokenizer.chat_template" not in fields:
        return None
    tokens = fields["tokenizer.ggml.tokens"]

    def token(name):
        return tokens.contents(int(fields[f"tokenizer.ggml.{name}_token_id"].contents()))

    chat = recorded(fields["tokenizer.chat_template"].contents(), token("bos"), token("eos"))
    # Some have their vendor's system prompt in them.
    chat["prompts"] = {name: hashlib.sha256(prompt.encode()).hexdigest()
                       for name, prompt in chat["prompts"].items()}
    return chat


def main():
    parser = argparse.ArgumentParser(description="Records prompts made by chat templates.")
    parser.add_argument("--out", default=ROOT / "tests" / "golden" / "chats.json")
    out = parser.parse_args().out
    models = json.loads((fetch.HERE / "models.json").read_text())
    source = subprocess.run([ROOT / "tools" / "fetch_llama.sh"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.strip()
    folder = pathlib.Path(source) / "models" / "templates"
    result = {
        "transformers": transformers.__version__,
        "conversations": {name: [{"role": role, "content": content} for role, content in turns]
                          for name, turns in CONVERSATIONS.items()},
        "models": {name: model_chat(fetch.cache_folder() / model["file"])
                   for name, model in models.items()},
        "templates": {name: recorded((folder / name).read_text(), bos, eos)
                      for name, (bos, eos) in TEMPLATES.items()},
    }
    pathlib.Path(out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays llama-server for its own tests: a local model takes the place of the one they name, and the
flags become those of the server that is tried. Nothing is downloaded.

SUITE_SERVER: the mrrope command, or the real llama-server, which gets its flags as they are.
SUITE_MODEL: a GGUF file without a chat template. SUITE_FOLDER: where copies of it are kept.
"""
import hashlib
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "serve"))
from chat_model import with_template  # noqa: E402

# What llama-server uses for a model without a template.
CHATML = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
# Flags with a value that only say which model it is, or how it is computed.
MODEL_FLAGS = {"--hf-repo", "--hf-file", "--model", "--model-url", "--model-draft", "--mmproj-url",
               "--models-dir", "--models-max", "--models-preset"}
# Those of mrrope serve.
SAME = {"--host", "--port", "--alias", "--parallel"}
THREADS = "1"  # the tests need a processor too
LLAMA_CONTEXT, LLAMA_SLOTS = 4096, 4  # where the tests do not say


def parse(arguments):
    """Flags with their values; True for those without."""
    flags = {}
    at = 0
    while at < len(arguments):
        name = arguments[at]
        has_value = at + 1 < len(arguments) and not arguments[at + 1].startswith("--")
        flags[name] = arguments[at + 1] if has_value else True
        at += 2 if has_value else 1
    return flags


def model_with(template):
    folder = pathlib.Path(os.environ["SUITE_FOLDER"]) / hashlib.sha256(template.encode()).hexdigest()[:16]
    if not folder.exists():
        folder.mkdir(parents=True)
        with_template(os.environ["SUITE_MODEL"], template, folder)
    return str(folder / "chatty.gguf")


def mrrope(flags):
    template = CHATML
    if "--chat-template-file" in flags:
        template = pathlib.Path(flags["--chat-template-file"]).read_text()
    elif flags.get("--chat-template", "chatml") != "chatml":
        template = flags["--chat-template"]
    slots = int(flags.get("--parallel", LLAMA_SLOTS))
    context = int(flags.get("--ctx-size", LLAMA_CONTEXT))
    if "--kv-unified" not in flags:
        context //= slots  # llama-server's flag is for all slots together
    command = ["serve", model_with(template), "--ctx", str(context), "--any-model", "-t", THREADS]
    for name in SAME & flags.keys():
        command += [name, flags[name]]
    if "--api-key" in flags:
        key = pathlib.Path(os.environ["SUITE_FOLDER"]) / "key.txt"
        key.write_text(flags["--api-key"] + "\n")
        command += ["--api-key-file", str(key)]
    if "--batch-size" in flags:
        command += ["--ubatch-size", flags["--batch-size"]]
    return command


def main():
    server = os.environ["SUITE_SERVER"]
    flags = parse(sys.argv[1:])
    if pathlib.Path(server).name == "mrrope":
        command = mrrope(flags)
    else:
        command = ["--model", model_with(CHATML), "--threads", THREADS]
        for name, value in flags.items():
            if name not in MODEL_FLAGS:
                command += [name] if value is True else [name, value]
    os.execv(server, [server, *command])


main()

# SPDX-License-Identifier: Apache-2.0
"""An exported file in llama-server, over HTTP, past the old window.

server_test.py MRROPE LLAMA_SERVER MODEL.gguf TEXT.json

The server must take a prompt longer than the model's old window, and go on with it as mrrope does on
the source file under the plan. The source file itself it caps at the window. Standard library only.
"""
import json
import pathlib
import sys
import tempfile

from endpoint_test import Server, run

CONTEXT = 2048
PROMPT = 1500  # tokens; the window is 1024
ANSWER = 12


def main():
    mrrope, program, model, golden = sys.argv[1:]
    text = json.loads(pathlib.Path(golden).read_text())["text"]
    with tempfile.TemporaryDirectory() as folder:
        exported = pathlib.Path(folder) / "exported.gguf"
        prompt_file = pathlib.Path(folder) / "prompt.txt"
        plan = ["--method", "pro", "--ctx", str(CONTEXT)]
        run(mrrope, "export", model, *plan, "-o", exported, "--no-verify")
        with Server(program, exported, 1, CONTEXT) as server:
            tokens = server.post("/tokenize", {"content": text})["tokens"][:PROMPT]
            prompt = server.post("/detokenize", {"tokens": tokens})["content"]
            prompt_file.write_text(prompt)
            length = server.get("/props")["default_generation_settings"]["n_ctx"]
            assert length == CONTEXT, f"a slot of the server has {length} tokens"
            answer = server.post("/completion", {"prompt": prompt, "n_predict": ANSWER,
                                                 "temperature": 0, "cache_prompt": False})
        read = answer["timings"]["prompt_n"]
        assert read > 1400 and not answer["truncated"], answer
        ours = json.loads(run(mrrope, "generate", model, *plan, "-f", prompt_file, "-n", ANSWER,
                              "-ngl", 0, "--json").stdout)
        print(f"llama-server read {read} tokens of a model of 1024 and wrote {answer['content']!r}")
        assert answer["content"] == ours["text"], f"mrrope writes {ours['text']!r}"
        with Server(program, model, 1, CONTEXT) as server:
            length = server.get("/props")["default_generation_settings"]["n_ctx"]
            assert length == 1024, f"the source is not capped: {length}"


main()

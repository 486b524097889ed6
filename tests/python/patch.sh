#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# patch.sh VENV BUILD SOURCE: the Python module with numpy, torch and transformers: its own tests,
# patch() against the engine, the example, and docs/guide/python.md. Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/packages.sh"
need_packages python_transformers "mrrope.patch() was NOT tried in transformers" "$1" \
  "${with_transformers[@]}"
build=$2 source=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/mrrope-patch-XXXXXX")
trap 'rm -rf "$work"' EXIT
export HF_HUB_OFFLINE=1 PATH=$build/bin:$PATH MRROPE_PYTHON=$python
"$python" "$here/module_test.py"
"$python" "$here/bad_input_test.py"
"$python" "$here/plugin_test.py"
"$python" "$here/vllm_rungs_test.py"
"$python" "$here/vllm_far_test.py"
"$python" "$source/tests/docs/engine_code.py" "$build/bin/mrrope" cc "$source" | grep "the same in PyTorch"
"$python" "$here/patch_test.py" "$build/bin/score_tokens" "$source/models/mrrope-tiny.gguf" \
  "$source/tests/golden/tiny_logprobs.json" "$work"
# The example and the page, on MrRoPE Tiny with its tokenizer.
mv "$work/tiny" "$work/checkpoint"
"$python" - "$source/models" "$work/checkpoint" << 'PYTHON'
import sys
from transformers import AutoTokenizer
AutoTokenizer.from_pretrained(sys.argv[1], gguf_file="mrrope-tiny.gguf").save_pretrained(sys.argv[2])
PYTHON
said=$("$python" "$source/examples/transformers_patch.py" "$work/checkpoint" "$work/text.txt")
echo "$said"
echo "$said" | "$python" -c '
import re, sys
text = sys.stdin.read()
rows = {m[0]: (float(m[1]), float(m[2])) for m in re.findall(r"^  (\S+) +(\S+) +(\S+)$", text, re.M)}
assert rows["elastic:pro"][0] == rows["untouched"][0] != rows["pro"][0], rows
assert max(rows["elastic:pro"][1], rows["pro"][1]) < rows["untouched"][1] / 3, rows
assert "continued" in text'
"$python" - "$source/data/texts/tarns.tex" "$work/notes.txt" << 'PYTHON'
import pathlib, sys
text = pathlib.Path(sys.argv[1]).read_text()
pathlib.Path(sys.argv[2]).write_text(
    text[:3000] + "\nThe magic number for amber is 482913.\n" + text[3000:6000])
PYTHON
"$python" "$here/docs_test.py" "$source/docs/guide/python.md" "$work"

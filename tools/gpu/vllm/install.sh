#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts the pieces together and unpacks the wheels into $WORK/site, which PYTHONPATH names.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
(cd "$BUNDLE" && sha256sum --quiet -c vllm.sums) || { say "a piece is missing or damaged"; exit 1; }
cat "$BUNDLE"/vllm.tar.part-* | tar -C "$kit" -xf -
"$python" "$scripts/unpack.py" "$kit/wheels" "$WORK/site"
"$python" -m compileall -q -j 0 "$WORK/site/vllm" "$WORK/site/transformers" >"$logs/compile.log" 2>&1 || true
{
  nvidia-smi
  "$python" -c '
import importlib.metadata, sys
import torch, vllm.platforms.cuda, vllm.vllm_flash_attn
print("python", sys.version.split()[0], torch.cuda.get_device_name(), "CUDA", torch.version.cuda)
for name in ("vllm", "torch", "triton", "transformers", "tokenizers", "numpy"):
    print(name, importlib.metadata.version(name))'
} >"$logs/machine.log" 2>&1

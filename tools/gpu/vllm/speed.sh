#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Speeds beside plain vLLM on a GPU machine that does nothing else, after all.sh or install.sh (its variables):
# rungs, near and far keys. speed.log is the summary; data/bench of this tree keeps it. COMMIT: of this tree.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
summary=$logs/speed.log
"$python" "$scripts/random_1b.py" "$models/1b-far"
ln -sf "$models/1b-far/model.safetensors" "$models/1b-ladder/"
start() { # MODEL PORT FLAG...: plain, rungs, near and far
  local model=$1 port=$2 kind flags
  shift 2
  "$python" "$scripts/models.py" plain "$models/$model-far" "$models/$model-plain"
  for kind in plain ladder far; do
    flags=("$@")
    [ $kind != far ] || flags+=(--attention-backend CUSTOM)
    "$serve" start "$model-$kind" "$models/$model-$kind" $((port++)) --no-enforce-eager --max-model-len 131072 \
      --enable-prompt-tokens-details --kv-cache-memory-bytes 13G --dtype float16 "${flags[@]}"
  done
}
measure() { # MODEL PORT TITLE
  local model=$1 port=$2 at=http://127.0.0.1
  "$serve" wait "$model-plain" "$port" 300 && "$serve" wait "$model-ladder" $((port + 1)) 300 &&
    "$serve" wait "$model-far" $((port + 2)) 300 &&
    "$python" "$scripts/../../docs/keep.py" bench "vllm-$model" "vLLM 0.26.0 on an H200: $3" --commit "$COMMIT" -- \
      "$python" "$scripts/rungs.py" speed "$model-plain" $at:$port "$model-ladder" $at:$((port + 1)) 0.98 0.98 \
      "$model-far" $at:$((port + 2)) 0.80 0.90 2>&1 | tee -a "$summary"
  "$serve" stop "$model-plain" "$model-ladder" "$model-far"
}
start 1b 8401
start shape 8411 --load-format dummy
measure 1b 8401 "a random Llama of 1 B"
measure shape 8411 "the shape of Qwen2.5-Coder-1.5B"
say end

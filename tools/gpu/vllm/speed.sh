#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Speeds beside plain vLLM on a GPU machine that does nothing else, after all.sh or install.sh (its variables):
# static plans, rungs, near and far keys. speed.log is the summary, data/bench of this tree (at $COMMIT) keeps it.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
summary=$logs/speed.log
"$python" "$scripts/random_1b.py" "$models/1b-far"
for name in ladder static; do ln -sf "$models/1b-far/model.safetensors" "$models/1b-$name/"; done
measure() { # NAME MODEL PORT KINDS TITLE FLAG...
  local name=$1 model=$2 port=$3 first=$3 kinds=$4 title=$5 failed="" kind flags servers=() asked=()
  shift 5
  "$python" "$scripts/models.py" plain "$models/$model-far" "$models/$model-plain"
  for kind in $kinds; do
    flags=("$@")
    [ "$kind" != far ] || flags+=(--attention-backend CUSTOM)
    servers+=("$model-$kind")
    asked+=("$model-$kind" "http://127.0.0.1:$port")
    case $kind in far) asked+=(0.80 0.90) ;; static | ladder) asked+=(0.98 0.98) ;; esac
    "$serve" start "$model-$kind" "$models/$model-$kind" $((port++)) --no-enforce-eager --max-model-len 131072 \
      --enable-prompt-tokens-details --kv-cache-memory-bytes 24G --dtype float16 "${flags[@]}"
  done
  for kind in "${servers[@]}"; do "$serve" wait "$kind" $((first++)) 300 || failed=yes; done
  [ "$failed" ] || "$python" "$scripts/../../docs/keep.py" bench "$name" "vLLM 0.26.0 on an H200: $title" \
    --commit "$COMMIT" -- "$python" "$scripts/rungs.py" speed "${asked[@]}" 2>&1 | tee -a "$summary"
  "$serve" stop "${servers[@]}"
}
shape="the shape of Qwen2.5-Coder-1.5B" varies="decode varies too much here to be compared"
measure vllm-1b-far 1b 8401 "plain far" "a random Llama of 1 B, near and far"
measure vllm-shape-far shape 8411 "plain far" "$shape, near and far; $varies" --load-format dummy
measure vllm-1b 1b 8401 "plain static ladder" "a random Llama of 1 B, a rung for every request"
measure vllm-shape shape 8411 "plain ladder" "$shape, a rung for every request; $varies" --load-format dummy
say end

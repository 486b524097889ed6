#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Speeds beside plain vLLM on a GPU machine that does nothing else, after all.sh or install.sh (its variables):
# static plans, rungs, near and far keys. speed.log is the summary, data/bench of this tree (at $COMMIT) keeps it.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
summary=$logs/speed.log
"$python" "$scripts/random_1b.py" "$models/1b-far"
for name in ladder static; do ln -sf "$models/1b-far/model.safetensors" "$models/1b-$name/"; done
start() { # MODEL PORT KINDS FLAG...
  local model=$1 port=$2 kinds=$3 kind flags
  shift 3
  "$python" "$scripts/models.py" plain "$models/$model-far" "$models/$model-plain"
  for kind in $kinds; do
    flags=("$@")
    [ $kind != far ] || flags+=(--attention-backend CUSTOM)
    "$serve" start "$model-$kind" "$models/$model-$kind" $((port++)) --no-enforce-eager --max-model-len 131072 \
      --enable-prompt-tokens-details --kv-cache-memory-bytes 24G --dtype float16 "${flags[@]}"
  done
}
measure() { # MODEL PORT KINDS TITLE
  local model=$1 port=$2 kinds=$3 at=http://127.0.0.1 kind asked=()
  for kind in $kinds; do
    "$serve" wait "$model-$kind" "$port" 300 || return
    asked+=("$model-$kind" "$at:$port")
    case $kind in far) asked+=(0.80 0.90) ;; static | ladder) asked+=(0.98 0.98) ;; esac
    ((port++))
  done
  "$python" "$scripts/../../docs/keep.py" bench "vllm-$model" "vLLM 0.26.0 on an H200: $4" --commit "$COMMIT" -- \
    "$python" "$scripts/rungs.py" speed "${asked[@]}" 2>&1 | tee -a "$summary"
  for kind in $kinds; do "$serve" stop "$model-$kind"; done
}
start 1b 8401 "plain static ladder far"
measure 1b 8401 "plain static ladder far" "a random Llama of 1 B"
start shape 8411 "plain ladder far" --load-format dummy
measure shape 8411 "plain ladder far" "the shape of Qwen2.5-Coder-1.5B"
say end

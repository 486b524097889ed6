#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Speeds beside plain vLLM on a GPU machine that does nothing else, after all.sh or install.sh (its variables):
# static plans, rungs, near and far keys. speed.log is the summary.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
summary=$logs/speed.log
"$python" "$scripts/random_1b.py" "$models/1b-far"
for name in 1b-ladder 1b-mrrope; do ln -sf "$models/1b-far/model.safetensors" "$models/$name/"; done
start() { # NAME FOLDER PORT FLAG...
  "$serve" start "$1" "$models/$2" "$3" --no-enforce-eager --enable-prompt-tokens-details --max-model-len 131072 \
    --kv-cache-memory-bytes 16G --dtype float16 "${@:4}"
}
measure() { # MODEL PORT FLAG...
  local model=$1 port=$2 name
  shift 2
  "$python" "$scripts/models.py" plain "$models/$model-far" "$models/$model-plain"
  start "$model-plain" "$model-plain" "$port" "$@"
  start "$model-ladder" "$model-ladder" $((port + 1)) "$@"
  start "$model-far" "$model-far" $((port + 2)) --attention-backend CUSTOM "$@"
  for name in plain:0 ladder:1 far:2; do
    "$serve" wait "$model-${name%:*}" $((port + ${name#*:})) 300 || return
  done
  at=http://127.0.0.1
  timeout 400 "$python" "$scripts/rungs.py" speed "$model-plain" $at:$port "$model-ladder" $at:$((port + 1)) 0.98 0.98 \
    "$model-far" $at:$((port + 2)) 0.80 0.90 >"$logs/speed-$model.log" 2>&1
  say "speed $model: exit $?"
  tee -a "$summary" <"$logs/speed-$model.log"
  "$serve" stop "$model-plain" "$model-ladder" "$model-far"
}
measure 1b 8401
measure shape 8411 --load-format dummy
say end

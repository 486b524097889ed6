#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Near and far keys on a GPU machine, after all.sh (its variables, its install). far.log is the summary. Servers run
# compiled and with CUDA graphs, prompts in chunks of 512; references are computed here, in float64.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
refs=$WORK/far-refs
summary=$logs/far.log
graphs=(--no-enforce-eager --enable-prompt-tokens-details)
custom=(--attention-backend CUSTOM)
tiny=("${graphs[@]}" --max-model-len 32768 --max-num-batched-tokens 512 "${custom[@]}")

start() { "$serve" start "$1" "$models/tiny-far" "$2" "${tiny[@]}" "${@:3}"; }
start far 8301 --dtype float32
start far-tight 8302 --dtype float32 --kv-cache-memory-bytes 700M
start far-uncached 8303 --dtype float32 --no-enable-prefix-caching
start far-half 8304 --dtype float16
start far-half-tight 8308 --dtype float16 --kv-cache-memory-bytes 350M
start far-bf16 8305 --dtype bfloat16
VLLM_USE_V2_MODEL_RUNNER=0 start far-v1 8306 --dtype float32
# 1, 4, 8 and 16 windows
"$python" "$scripts/far.py" "$models/tiny-far" "$kit/refs/tokens.json" "$refs/tiny" 0 2 3 4 2>&1 | tee -a "$summary"
for name in far:8301 far-tight:8302 far-v1:8306; do
  ask "${name%:*}" "${name#*:}" scores "$refs/tiny" 0.02 0.001
done
ask far-tight 8302 preempted "$refs/tiny" 0.02 0.001
ask far-half 8304 scores "$refs/tiny" 0.3 0.03
ask far-half-tight 8308 preempted "$refs/tiny" 0.3 0.03 # what is generated, by another kernel than what is read
ask far-bf16 8305 scores "$refs/tiny" 1 0.1
"$serve" wait far-uncached 8303 60
ask far 8301 cached far-uncached http://127.0.0.1:8303 "$refs/tiny" 0.02 0.001
ask far 8301 load "$refs/tiny" 0.02 1100 # beyond the window, where plans differ
lengths=(--ctx 8k --lengths "2k,4k,8k")
needles=(--form planted --samples 4 --depths "0,25,50,75,100")
found() { # TASK NAME ARGUMENT...: what a server, or mrrope's engine, finds
  local task=$1 name=$2
  shift 2
  timeout 90 "$MRROPE" eval "$task" "$@" "${lengths[@]}" -o "$WORK/far-$task-$name" >"$logs/far-$task-$name.txt" 2>&1
  say "$task $name: exit $?"
  tail -n 8 "$logs/far-$task-$name.txt" | tee -a "$summary"
}
"$serve" start yarn "$models/tiny-yarn" 8307 --dtype float16
for pair in far-half:8304 yarn:8307; do
  "$serve" wait "${pair%:*}" "${pair#*:}" 240
  there=(--endpoint "http://127.0.0.1:${pair#*:}/v1" --parallel 32)
  found needle "${pair%:*}" "${there[@]}" "${needles[@]}"
  found ruler "${pair%:*}" "${there[@]}" --samples 5
done
here=("$kit/home/models/mrrope-tiny.gguf" --method 'far:pi(rung_step=2)')
found needle own "${here[@]}" "${needles[@]}"
found ruler own "${here[@]}" --samples 5
"$serve" stop far far-tight far-uncached far-half far-half-tight far-bf16 far-v1 yarn

"$python" "$scripts/random_1b.py" "$models/1b-far" && {
  "$serve" start 1b-f32 "$models/1b-far" 8311 "${graphs[@]}" "${custom[@]}" --max-model-len 32768 --dtype float32
  "$serve" start 1b-f16 "$models/1b-far" 8312 "${graphs[@]}" "${custom[@]}" --max-model-len 32768 --dtype float16
  "$python" "$scripts/far.py" "$models/1b-far" "$kit/refs/tokens.json" "$refs/1b" 0 3 2>&1 | tee -a "$summary"
  ask 1b-f32 8311 scores "$refs/1b" 0.02 0.001
  ask 1b-f16 8312 scores "$refs/1b" 0.6 0.06
  "$serve" stop 1b-f32 1b-f16
}
"$python" "$scripts/models.py" broken "$models/tiny-far" "$WORK/near" near
"$python" "$scripts/models.py" plain "$models/tiny-far" "$WORK/no-ladder"
"$serve" start near "$WORK/near" 8321 "${tiny[@]}"
"$serve" start no-custom "$models/tiny-far" 8322 "${graphs[@]}" --max-model-len 32768
"$serve" start no-ladder "$WORK/no-ladder" 8323 "${tiny[@]}"
"$serve" start not-far "$models/tiny-ladder" 8324 "${tiny[@]}"
refused near:8321 no-custom:8322 no-ladder:8323 not-far:8324
say end

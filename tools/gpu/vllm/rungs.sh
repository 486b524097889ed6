#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Rungs of requests on a GPU machine, after all.sh (its variables, its install). rungs.log is the summary. Servers
# run compiled and with CUDA graphs, prompts in chunks of 512; the small cache of "tight" forces preemption.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
refs=$kit/refs/rungs
export TRITON_F32_DEFAULT=ieee
summary=$logs/rungs.log
graphs=(--no-enforce-eager --enable-prompt-tokens-details)
tiny=("${graphs[@]}" --max-model-len 32768 --max-num-batched-tokens 512)
float32=(--dtype float32 --attention-backend TRITON_ATTN)

"$serve" start mixed "$models/tiny-ladder" 8201 "${tiny[@]}" "${float32[@]}"
"$serve" start tight "$models/tiny-ladder" 8202 "${tiny[@]}" "${float32[@]}" --kv-cache-memory-bytes 700M
"$serve" start uncached "$models/tiny-ladder" 8203 "${tiny[@]}" "${float32[@]}" --no-enable-prefix-caching
"$serve" start half "$models/tiny-ladder" 8204 "${tiny[@]}" --dtype float16
VLLM_USE_V2_MODEL_RUNNER=0 "$serve" start v1 "$models/tiny-ladder" 8205 "${tiny[@]}" "${float32[@]}"
CUDA_VISIBLE_DEVICES="" TRITON_INTERPRET=1 "$python" "$scripts/classes.py" >"$logs/classes.log" 2>&1
say "classes: exit $?"
[ -s "$refs/rung-4.json" ] ||
  "$python" "$scripts/far.py" "$models/tiny-ladder" "$kit/refs/tokens.json" "$refs" 0 2 3 4 2>&1 | tee -a "$summary"
ask mixed 8201 scores "$refs" 0.02 0.001
ask tight 8202 scores "$refs" 0.02 0.001
ask tight 8202 preempted "$refs" 0.02 0.001
ask v1 8205 scores "$refs" 0.02 0.001
ask half 8204 scores "$refs" 0.3 0.03
"$serve" wait uncached 8203 60
ask mixed 8201 cached uncached http://127.0.0.1:8203 "$refs" 0.02 0.001
ask mixed 8201 load "$refs" 0.02
"$serve" stop mixed tight uncached half v1
port=8221
for wrong in missing lengths factors geometry; do
  "$python" "$scripts/models.py" broken "$models/tiny-ladder" "$WORK/$wrong" "$wrong"
  "$serve" start "$wrong" "$WORK/$wrong" $((port++)) "${tiny[@]}"
done
refused missing:8221 lengths:8222 factors:8223 geometry:8224
say end

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

"$python" "$scripts/classes.py" >"$logs/classes.log" 2>&1
say "classes: exit $?"
[ -s "$refs/rung-4.json" ] ||
  "$python" "$scripts/far.py" "$models/tiny-ladder" "$kit/refs/tokens.json" "$refs" 0 2 3 4 2>&1 | tee -a "$summary"
"$serve" start mixed "$models/tiny-ladder" 8201 "${tiny[@]}" "${float32[@]}"
"$serve" start tight "$models/tiny-ladder" 8202 "${tiny[@]}" "${float32[@]}" --kv-cache-memory-bytes 300M
"$serve" start uncached "$models/tiny-ladder" 8203 "${tiny[@]}" "${float32[@]}" --no-enable-prefix-caching
"$serve" start half "$models/tiny-ladder" 8204 "${tiny[@]}" --dtype float16
VLLM_USE_V2_MODEL_RUNNER=0 "$serve" start v1 "$models/tiny-ladder" 8205 "${tiny[@]}" "${float32[@]}"
ask mixed 8201 scores "$refs" 0.02 0.001
ask tight 8202 scores "$refs" 0.02 0.001 # its log must say that some were preempted
ask v1 8205 scores "$refs" 0.02 0.001
ask half 8204 scores "$refs" 0.3 0.03
"$serve" wait uncached 8203 60
ask mixed 8201 cached uncached http://127.0.0.1:8203 "$refs" 0.02 0.001
ask mixed 8201 load "$refs" 0.02
"$serve" stop mixed tight uncached half v1
# One after the other would see another machine: others use the GPU too.
long=("${graphs[@]}" --max-model-len 131072 --dtype float16 --kv-cache-memory-bytes 24G)
"$python" "$scripts/random_1b.py" "$models/1b-ladder" && "$python" "$scripts/models.py" plain "$models/1b-ladder" \
  "$models/1b-plain" && {
  "$serve" start 1b-ladder "$models/1b-ladder" 8211 "${long[@]}"
  "$serve" start 1b-plain "$models/1b-plain" 8212 "${long[@]}"
  "$serve" wait 1b-plain 8212 300 && ask 1b-ladder 8211 speed 1b-plain http://127.0.0.1:8212 0.98 0.98
  "$serve" stop 1b-ladder 1b-plain
}
# Each must end by itself with the reason.
for wrong in missing lengths factors geometry; do
  "$python" "$scripts/models.py" broken "$models/tiny-ladder" "$WORK/$wrong" "$wrong"
  "$serve" start "$wrong" "$WORK/$wrong" 8221 "${tiny[@]}"
  "$serve" wait "$wrong" 8221 120 && say "$wrong: it SERVES"
  grep -h -o "mrrope: .*" "$logs/serve-$wrong.log" | head -n 1 | tee -a "$summary"
  "$serve" stop "$wrong"
done
say end

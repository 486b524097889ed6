#!/usr/bin/env bash
# The searches that docs/results.md quotes, side by side on one GPU: static MrRoPE Tiny to 8K and to
# 16K, static SmolLM2 to 32K, and the ladders of Tiny to 16K and SmolLM2 to 32K. Each goes into a
# folder of its own with its journals, so that the same command goes on where it was stopped.
#
#   tune.sh COMMAND TINY_MODEL SMOLLM2_MODEL TEXTS OUT
#
# TEXTS holds heldout.jsonl.xz: documents that neither model was trained on. Every search splits
# them by its seed: a few for the search, others for the proof.
# LIMIT: seconds for each search with its proof (500). ONLY: names of searches, all by default.
set -euo pipefail
usage="usage: tune.sh COMMAND TINY_MODEL SMOLLM2_MODEL TEXTS OUT"
command=${1:?$usage} tiny=${2:?$usage} smol=${3:?$usage} texts=${4:?$usage} out=${5:?$usage}
limit=${LIMIT:-500}
only=${ONLY:-tiny-8k tiny-16k tiny-16k-elastic smollm2-32k smollm2-32k-elastic}
text=$texts/heldout.jsonl.xz
mkdir -p "$out"

# Seconds to read 16K tokens with this ubatch: whichever is faster here is used.
seconds() {
  local start end
  start=$(date +%s%N)
  "$command" eval ppl "$tiny" --methods pro --ctx 16k --lengths 16k --samples 2 --text "$text" \
    --kl-positions 0 -t 2 -ub "$1" >/dev/null 2>&1 || { echo 999999; return; }
  end=$(date +%s%N)
  echo $(((end - start) / 1000000))
}
small=$(seconds 512)
large=$(seconds 2048)
ubatch=512
[ "$large" -lt "$small" ] && ubatch=2048
echo "16K x 2 documents: $small ms with -ub 512, $large ms with -ub 2048" | tee "$out/ubatch.txt"

run() {  # NAME ARGUMENTS...
  local name=$1 start=$SECONDS status=0
  shift
  case " $only " in *" $name "*) ;; *) return 0 ;; esac
  timeout -s INT "$limit" "$command" tune "$@" --text "$text" --form planted --seed 1 -t 2 \
    -ub "$ubatch" -o "$out/$name.json" --folder "$out/$name" \
    >"$out/$name.txt" 2>"$out/$name.log" || status=$?
  echo "$name: exit $status after $((SECONDS - start)) s" | tee -a "$out/times.txt"
}

# The found plan alone by the pinned protocol, 200 needles: those of the proof are fewer.
needles() {  # NAME MODEL LENGTH
  [ -f "$out/$1/found.json" ] && [ "$SECONDS" -lt "$limit" ] || return 0
  timeout -s INT $((limit - SECONDS)) "$command" eval needle "$2" --plan "$out/$1/found.json" \
    --form planted --seed 1 --depths 5,15,25,35,45,55,65,75,85,95 --samples 20 --ctx "$3" \
    --lengths "$3" --haystack "$text" -t 2 -ub "$ubatch" -o "$out/$1-needles" \
    >"$out/$1-needles.txt" 2>"$out/$1-needles.log" || true
}

{
  run tiny-8k "$tiny" --ctx 8k --budget 30 --search-documents 6 --proof-documents 14 \
    --proof-needles 10
  needles tiny-8k "$tiny" 8k
} &
{
  run tiny-16k "$tiny" --ctx 16k --budget 30 --search-documents 6 --proof-documents 12 \
    --proof-needles 5
  needles tiny-16k "$tiny" 16k
} &
{
  run tiny-16k-elastic "$tiny" --ctx 16k --method elastic:power --budget 30 --search-documents 6 \
    --proof-documents 12 --proof-needles 0
  needles tiny-16k-elastic "$tiny" 16k
} &
run smollm2-32k "$smol" --ctx 32k --budget 36 --search-documents 4 --proof-documents 6 \
  --proof-needles 1 &
run smollm2-32k-elastic "$smol" --ctx 32k --method elastic:power --budget 20 --search-documents 4 \
  --proof-documents 6 --proof-needles 0 &
wait
for name in tiny-8k tiny-8k-needles tiny-16k tiny-16k-needles tiny-16k-elastic \
  tiny-16k-elastic-needles smollm2-32k smollm2-32k-elastic; do
  [ -f "$out/$name.txt" ] || continue
  echo "== $name"
  cat "$out/$name.txt"
  tail -n 3 "$out/$name.log"
done

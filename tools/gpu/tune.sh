#!/usr/bin/env bash
# The searches that docs/results.md quotes, in parallel on one GPU. Type, one after the other:
#
#   tune.sh -M search   mrrope TINY.gguf SMOLLM2.gguf heldout.jsonl.xz OUT
#   tune.sh -M needles  mrrope TINY.gguf SMOLLM2.gguf heldout.jsonl.xz OUT
#   tune.sh -M transfer mrrope TINY.gguf SMOLLM2.gguf heldout.jsonl.xz OUT
#
# search: every job of the list with its proof, into OUT/NAME. needles: the plans that were found, by
# the pinned protocol (form planted, seed 1, ten depths). transfer: the plan found for one model, its
# parameters on the other, compared with that one's own and the published ones. Each step ends with the
# tables in Markdown, in OUT/tables.md, and packs plans, tables, logs and journals into OUT.tar.gz.
# Every process has its own folder, so that the same command resumes where it stopped, on another
# machine too once OUT.tar.gz is unpacked there (tar -C "$(dirname OUT)" -xzf OUT.tar.gz).
# The heldout texts must be ones that neither model was trained on.
#
# -l FILE: the list of jobs (tune_jobs.txt in this folder). -n "NAME ...": only these of it.
# -j: processes at once (8). -s: seconds after which running processes are stopped (560; 0: no limit).
# -f: for every process ("-t 2 -ub 2048"). -M: start NVIDIA's MPS daemon for the duration of the run, so
# that kernels of several processes run at once; omit it if one is already running.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
list=$here/tune_jobs.txt only="" jobs=8 seconds=560 flags="-t 2 -ub 2048" mps=""
while getopts l:n:j:s:f:M option; do
  case $option in
    l) list=$OPTARG ;; n) only=$OPTARG ;; j) jobs=$OPTARG ;; s) seconds=$OPTARG ;;
    f) flags=$OPTARG ;; M) mps=yes ;; *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
usage="usage: tune.sh [FLAGS] search|needles|transfer COMMAND TINY SMOLLM2 TEXT OUT"
step=${1:?$usage} command=${2:?$usage} tiny=${3:?$usage} smollm2=${4:?$usage} text=${5:?$usage}
out=${6:?$usage}
mkdir -p "$out"
out=$(cd "$out" && pwd)
started=$(date +%s)
depths=5,15,25,35,45,55,65,75,85,95

# Runs one process: its output goes to NAME.txt, its messages to NAME.log. A process that runs out
# of time stops as by Ctrl-C and resumes next time; one that has finished is not started again.
process() {  # NAME ARGUMENTS...
  local name=$1 status=0 begin left=0
  shift
  [ ! -e "$out/$name.done" ] || return 0
  begin=$(date +%s)
  if [ "$seconds" -gt 0 ]; then
    left=$((started + seconds - begin))
    [ "$left" -gt 5 ] || { echo "$name: no time left" >&2; return 0; }
  fi
  timeout -s INT -k 20 "$left" "$command" "$@" $flags >"$out/$name.txt" 2>>"$out/$name.log" ||
    status=$?
  # 6: the search is over, and what it found is not better.
  case $status in 0 | 6) touch "$out/$name.done" ;; esac
  echo "$name: exit $status after $(($(date +%s) - begin)) s" | tee -a "$out/times.txt" >&2
}
export -f process
export out command seconds started flags

model_of() { case $1 in tiny) echo "$tiny" ;; smollm2) echo "$smollm2" ;; *) echo "$1" ;; esac; }

# The jobs, one array each.
each_job() {  # FUNCTION
  local line
  while read -r line; do
    case $line in '' | '#'*) continue ;; esac
    # shellcheck disable=SC2086
    set -- "$1" $line
    [ $# -ge 12 ] || { echo "a job has eleven columns at least: $line" >&2; exit 2; }
    case " ${only:-$2} " in *" $2 "*) "$@" ;; esac
    set -- "$1"
  done <"$list"
}

search_of() {  # NAME MODEL CTX METHOD PREFER BUDGET DOCS PROOF NEEDLES PINNED SEED FLAGS...
  echo "$1 tune $(model_of "$2") --ctx $3 --method $4 --prefer $5 --budget $6" \
    "--search-documents $7 --proof-documents $8 --proof-needles $9 --seed ${11} --form planted" \
    "--text $text -o $out/$1.json --folder $out/$1 ${*:12}"
}

needles_of() {  # as above
  local name=$1 model ctx=$3 plus=${10} count=${10%+} plan method headroom
  model=$(model_of "$2")
  [ -f "$out/$name/found.json" ] && [ "$count" -gt 0 ] || return 0
  plan="--plan $out/$name/found.json"
  local common="--form planted --seed 1 --depths $depths --samples $count --haystack $text --ctx $ctx --lengths $ctx"
  echo "$name-needles eval needle $model $plan $common -o $out/$name-needles"
  [ "$plus" != "$count" ] || return 0
  for method in yarn yarn-rotations uni pro; do
    for headroom in 1 1.25; do
      echo "$name-needles-$method-$headroom eval needle $model --methods $method" \
        "--headroom $headroom $common -o $out/$name-needles-$method-$headroom"
    done
  done
}

# The parameters of every found static plan, at the lengths of the other model's own.
transfer_of() {  # as above
  local name=$1 model ctx=$3 own=$out/$1/found.json from other parameters plans
  [ "$4" = power ] && [ -f "$own" ] || return 0
  model=$(model_of "$2")
  for from in "$out"/*/found.json; do
    other=$(basename "$(dirname "$from")")
    parameters=$(python3 "$here/tune_tables.py" parameters "$own" "$from") || continue
    plans="--plan $own"
    mkdir -p "$out/plans-$name"
    for method in yarn yarn-rotations uni pro; do
      "$command" plan "$model" --method $method --ctx "$ctx" -o "$out/plans-$name/$method.json" \
        >/dev/null 2>&1
      plans="$plans --plan $out/plans-$name/$method.json"
    done
    # shellcheck disable=SC2086
    "$command" plan "$model" --method power $parameters --ctx "$ctx" \
      -o "$out/plans-$name/from-$other.json" >/dev/null
    echo "$name-from-$other eval ppl $model --plan $out/plans-$name/from-$other.json $plans" \
      "--ctx $ctx --lengths $(python3 "$here/tune_tables.py" lengths "$own") --kl-positions 0" \
      "--text $text --samples 14 -o $out/$name-from-$other"
  done
}

if [ -n "$mps" ]; then
  CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d) CUDA_MPS_LOG_DIRECTORY=$(mktemp -d)
  export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  nvidia-cuda-mps-control -d
  trap 'echo quit | nvidia-cuda-mps-control' EXIT
fi
case $step in
  search | needles | transfer) ;;
  *) echo "$usage" >&2; exit 2 ;;
esac
# No blanks at the end: xargs would join such a line with the next one.
each_job "${step}_of" | sed 's/ *$//' >"$out/$step.txt"
xargs -P "$jobs" -L 1 bash -c 'process "$@"' process <"$out/$step.txt"
python3 "$here/tune_tables.py" tables "$out" | tee "$out/tables.md"
tar -C "$(dirname "$out")" -czf "$out.tar.gz" "$(basename "$out")"
echo "packed: $out.tar.gz" >&2

#!/usr/bin/env bash
# RULER's thirteen tasks on one GPU, several processes at a time, within a time limit. Every
# process has its own run folder, so that the same command resumes where it stopped; OUT can be copied
# from machine to machine between the calls. Prints one table in Markdown, with standard
# errors, and says what is missing.
#
#   ruler_table.sh [-j JOBS] [-s SECONDS] [-n SAMPLES] [-c CTX] [-l LENGTHS] [-m METHODS]
#                  [-u UNTOUCHED] [-p PARTS] [-f FLAGS] [-M] COMMAND MODEL OUT
#
# -j: processes at once (8). -s: seconds after which running processes are stopped (450; 0: no limit).
# -n: samples per task (20). -c: what the plans are made for ("32k"); -l: lengths ("4k 8k 16k 32k").
# -m: methods at all lengths ("yarn uni pro elastic:pro"). -u: lengths of the untouched model
# ("4k 8k 16k"). -p: the tasks of each process ("vt,cwe qa_1"; all thirteen in five parts). -f: for
# every process, such as "-t 2 -ub 2048". -M: start NVIDIA's MPS daemon for the
# duration of the run, so that kernels of several processes run at once.
set -euo pipefail

jobs=8 seconds=450 samples=20 ctx=32k lengths="4k 8k 16k 32k" methods="yarn uni pro elastic:pro"
untouched="4k 8k 16k" flags="-t 2 -ub 2048" mps=""
# Parts of about the same cost: some tasks share long prefixes, some have short answers.
parts="niah_single_1,niah_single_2,niah_single_3,niah_multikey_1 niah_multikey_2,niah_multikey_3
  niah_multivalue,niah_multiquery vt,cwe,fwe qa_1,qa_2"
while getopts j:s:n:c:l:m:u:p:f:M option; do
  case $option in
    j) jobs=$OPTARG ;; s) seconds=$OPTARG ;; n) samples=$OPTARG ;; c) ctx=$OPTARG ;;
    l) lengths=$OPTARG ;; m) methods=$OPTARG ;; u) untouched=$OPTARG ;; p) parts=$OPTARG ;;
    f) flags=$OPTARG ;;
    M) mps=yes ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
usage="usage: ruler_table.sh [FLAGS] COMMAND MODEL OUT (see the head of this file)"
command=${1:?$usage} model=${2:?$usage} out=${3:?$usage}

tokens() {  # 8k -> 8192
  case $1 in *[kK]) echo $((${1%[kK]} * 1024)) ;; *) echo "$1" ;; esac
}

# One line per process, the longest first: length in tokens, method, tasks, folder.
mkdir -p "$out"
list=$out/list.txt
for length in $lengths; do
  rows=$methods
  case " $untouched " in *" $length "*) rows="none $methods" ;; esac
  for method in $rows; do
    for tasks in $parts; do
      folder=$out/$(printf '%s' "$length-$method-${tasks%%,*}" | tr -c 'A-Za-z0-9.\n-' '_')
      echo "$(tokens "$length") $length $method $tasks $folder"
    done
  done
done | sort -s -k1,1nr >"$list"

if [ -n "$mps" ]; then
  CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d) CUDA_MPS_LOG_DIRECTORY=$(mktemp -d)
  export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  nvidia-cuda-mps-control -d
  trap 'echo quit | nvidia-cuda-mps-control' EXIT
fi

started=$(date +%s)
one() {  # TOKENS LENGTH METHOD TASKS FOLDER
  local folder=$5 left=0 limit=()
  mkdir -p "$folder"
  if [ "$seconds" -gt 0 ]; then
    left=$((started + seconds - $(date +%s)))
    [ "$left" -ge 5 ] || return 0
    limit=(timeout -s INT -k 10 "$left")
  fi
  local begin
  begin=$(date +%s)
  "${limit[@]}" "$command" eval ruler "$model" --methods "$3" --ctx "$ctx" --lengths "$2" \
    --tasks "$4" --samples "$samples" -o "$folder" $flags >"$folder/table.txt" 2>"$folder/log.txt" &&
    echo "done in $(($(date +%s) - begin)) s: $folder" >&2 ||
    echo "not done after $(($(date +%s) - begin)) s: $folder: $(tail -n 2 "$folder/log.txt" | tr '\n' ' ')" >&2
}
export -f one
export command model ctx samples flags seconds started
xargs -P "$jobs" -L 1 bash -c 'one "$@"' one <"$list"

python3 "$(dirname "${BASH_SOURCE[0]}")/ruler_table.py" "$list"

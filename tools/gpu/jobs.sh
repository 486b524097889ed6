#!/usr/bin/env bash
# Runs a list of evaluations within a time limit. Every job has its own run folder below OUT, so the
# same command resumes where it stopped, on this machine or on the next one that OUT was copied to.
#
#   jobs.sh [-j JOBS] [-s SECONDS] [-M] COMMAND LIST OUT
#
# -j: jobs at once (1). -s: seconds after which running jobs are stopped (540; 0: no limit). -M: start
# NVIDIA's MPS daemon for the duration of the run, so that kernels of several jobs run at once.
# LIST has a line per job: NAME VERB ARGUMENTS..., without -o; words are split at blanks. A line with @
# is one job for each method on the indented lines below it and others of its kind. Lines that begin with # are
# skipped. Afterwards OUT.tar.gz holds run.json, results.json and the journals.
# Exits with 0 when every job is done, with 3 when some are not.
set -euo pipefail

jobs=1 seconds=540 mps=""
while getopts j:s:M option; do
  case $option in j) jobs=$OPTARG ;; s) seconds=$OPTARG ;; M) mps=yes ;; *) exit 2 ;; esac
done
shift $((OPTIND - 1))
usage="usage: jobs.sh [-j JOBS] [-s SECONDS] [-M] COMMAND LIST OUT (see the head of this file)"
command=${1:?$usage} list=${2:?$usage} out=${3:?$usage}
command -v "$command" >/dev/null || { echo "jobs.sh: $command is not a program: build it first" >&2; exit 2; }
[ -r "$list" ] || { echo "jobs.sh: cannot read $list" >&2; exit 2; }
mkdir -p "$out"
started=$(date +%s)
if [ -n "$mps" ]; then
  CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d) CUDA_MPS_LOG_DIRECTORY=$(mktemp -d)
  export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  nvidia-cuda-mps-control -d
  trap 'echo quit | nvidia-cuda-mps-control' EXIT
fi

listed() {  # one line per job
  awk '/^ *(#|$)/ { next }
       /^[^ ]/ { if (done) { count = done = 0 }
                 if ($0 ~ / @ /) template[count++] = $0; else print
                 next }
       { done = 1
         for (job = 0; job < count; ++job) for (i = 1; i <= NF; ++i) {
           line = template[job]; name = $i
           gsub(/[^a-z0-9._]+/, "-", name)
           sub(/-$/, "", name)
           sub(/ @ /, " " $i " ", line)
           sub(/ /, "-" name " ", line)
           print line
         } }' "$list"
}

one() {  # NAME VERB ARGUMENTS...
  local name=$1 limit=() begin
  shift
  [ ! -e "$out/$name/done" ] || return 0
  begin=$(date +%s)
  if [ "$seconds" -gt 0 ]; then
    local left=$((started + seconds - begin))
    [ "$left" -ge 5 ] || return 0
    limit=(timeout -s INT -k 20 "$left")
  fi
  mkdir -p "$out/$name"
  local status=0
  "${limit[@]}" "$command" "$@" -o "$out/$name/run" >"$out/$name/table.txt" 2>"$out/$name/log.txt" || status=$?
  if [ "$status" -eq 0 ] || [ "$status" -eq 6 ]; then  # 6: a search that found nothing better
    touch "$out/$name/done"
    echo "$name: done in $(($(date +%s) - begin)) s" >&2
  else
    echo "$name: stopped after $(($(date +%s) - begin)) s: $(tail -n 2 "$out/$name/log.txt" | tr '\n' ' ')" >&2
  fi
}
export -f one
export command out seconds started
listed | xargs -P "$jobs" -L 1 bash -c 'one "$@"' one

tar -C "$out" -czf "$out.tar.gz" .
left=0
while read -r name _; do
  [ -e "$out/$name/done" ] || { echo "$name: not done" >&2; left=3; }
done < <(listed)
exit $left

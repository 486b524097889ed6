#!/usr/bin/env bash
# The needle figures that docs/results.md quotes, by the one pinned protocol: form planted, seed 1,
# 10 depths (the middle of every tenth) x 20 needles = 200 per length. One process per line of
# METHODS and length, several at a time; each into its own run folder, so that the same command
# resumes where it stopped. Prints one table.
#
#   needle_tables.sh [-j JOBS] [-l LENGTHS] [-n NEEDLES] [-f FLAGS] COMMAND MODEL HAYSTACKS OUT <METHODS
#
# METHODS has a line per row: METHOD HEADROOM [FLAGS...], such as
#   pro 1
#   power 1.25 --power 0 --attn-coef 0.07
#   elastic:pro 1.25
# -j: processes at once (8). -l: lengths ("8k 16k"). -n: needles per depth (20). -f: for every
# process, such as "-t 1 -ngl 0".
set -euo pipefail

jobs=8 lengths="8k 16k" needles=20 flags="-t 2"
while getopts j:l:n:f: option; do
  case $option in
    j) jobs=$OPTARG ;; l) lengths=$OPTARG ;; n) needles=$OPTARG ;; f) flags=$OPTARG ;; *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
usage="usage: needle_tables.sh [-j JOBS] [-l LENGTHS] [-n NEEDLES] [-f FLAGS] COMMAND MODEL HAYSTACKS OUT"
command=${1:?$usage} model=${2:?$usage} haystacks=${3:?$usage} out=${4:?$usage}
depths=5,15,25,35,45,55,65,75,85,95

# One line per process: its folder, then its arguments.
mkdir -p "$out"
list=$out/list.txt
: >"$list"
while read -r method headroom rest; do
  [ -n "$method" ] && [ "${method#\#}" = "$method" ] || continue
  : "${headroom:?no headroom after $method}"
  for length in $lengths; do
    folder=$out/$(printf '%s' "$length $method $headroom $rest" | tr -c 'A-Za-z0-9.\n' '_')
    echo "$folder --methods $method --ctx $length --lengths $length --headroom $headroom${rest:+ $rest}" >>"$list"
    mkdir -p "$folder"
    printf '%s\n' "$method${rest:+ $rest}" "$headroom" "$length" >"$folder/row.txt"
  done
done

one() {  # FOLDER ARGUMENTS...
  local folder=$1
  shift
  if "$command" eval needle "$model" --form planted --seed 1 --depths $depths --samples "$needles" \
    --haystack "$haystacks" -o "$folder" $flags "$@" >"$folder/table.txt" 2>"$folder/log.txt"; then
    echo "done: $folder" >&2
  else
    echo "FAILED: $folder: $(tail -n 2 "$folder/log.txt" | tr '\n' ' ')" >&2
    return 1
  fi
}
export -f one
export command model depths needles haystacks flags
status=0
xargs -P "$jobs" -L 1 bash -c 'one "$@"' one <"$list" || status=1

# In the order of METHODS, whatever finished first.
cut -d' ' -f1 "$list" | python3 -c '
import json, pathlib, sys

print("| method | headroom | length | found | +- | n | ties |")
print("|---|---|---|---|---|---|---|")
for folder in map(pathlib.Path, sys.stdin.read().split()):
    method, headroom, length = (folder / "row.txt").read_text().splitlines()
    results = folder / "results.json"
    if not results.exists():
        print(f"| {method} | {headroom} | {length} | failed | | | |")
        continue
    content = json.loads(results.read_text())
    ties = sum(entry["ties"] for entry in content["ties"])
    for row in content["results"]:
        if row["metric"] == "contains" and "depth" not in row:
            found, error, n = 100 * row["value"], 100 * row["stderr"], row["n"]
            print(f"| {method} | {headroom} | {length} | {found:.1f} % | {error:.1f} | {n} | {ties} |")
'
exit $status

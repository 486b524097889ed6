#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# watched.sh WHAT COMMAND...: runs a build and shows its output only if it fails. Meanwhile a line says how many of
# ninja's steps are done, how long it has run and how long the rest takes: a bar on a terminal, elsewhere every 10
# seconds.
set -euo pipefail
what=$1
shift
log=$(mktemp)
terminal=
if [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; then terminal=1; fi
(
  sharps=#################### dashes=-------------------- first=
  while sleep $((terminal ? 1 : 10)) >&- 2>&- && kill -0 $$ 2>/dev/null; do
    step=$(grep -o '^\[[0-9]*/[0-9]*\]' "$log" | tail -n 1 | tr -d '[]') || step=
    count=${step%/*} all=${step#*/}
    line="$what, $SECONDS s"
    if [ "${all:-0}" -gt 0 ]; then
      : "${first:=$SECONDS}" "${before:=$count}"
      line="$((100 * count / all))%  $what, step $count of $all, $SECONDS s"
      if [ "$count" -gt "$before" ]; then
        left=$(((SECONDS - first) * (all - count) / (count - before)))
        if [ $left -lt 90 ]; then line+=", $left s left"; else line+=", $(((left + 30) / 60)) min left"; fi
      fi
      if [ $terminal ]; then line="[${sharps:0:20*count/all}${dashes:20*count/all}] $line"; fi
    fi
    if [ $terminal ]; then printf '\r%s\033[K' "$line"; else printf '%s\n' "$line"; fi
  done
) >&2 &
reporter=$!
# Set here and not before: a reporter that is stopped at its very start would run it.
trap 'kill $reporter 2>/dev/null || true; rm -f "$log"' EXIT
status=0
"$@" >"$log" 2>&1 || status=$?
kill $reporter 2>/dev/null || true
wait $reporter 2>/dev/null || true
if [ $terminal ]; then printf '\r\033[K' >&2; fi
[ $status -eq 0 ] || grep -v '^\[[0-9]*/[0-9]*\] ' "$log" | tail -n 60 >&2 || true
exit $status

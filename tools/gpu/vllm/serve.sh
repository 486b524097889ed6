#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#   serve.sh start NAME FOLDER PORT [FLAG...]   in the background; its log is serve-NAME.log
#   serve.sh wait NAME PORT SECONDS             until it answers
#   serve.sh stop NAME...
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
case $1 in
  start)
    name=$2 folder=$3 port=$4
    shift 4
    setsid "$python" -m vllm.entrypoints.cli.main serve "$folder" --served-model-name "$name" \
      --host 127.0.0.1 --port "$port" --max-model-len 8192 --enforce-eager \
      --gpu-memory-utilization 0.1 --kv-cache-memory-bytes 4G --max-num-seqs 64 "$@" \
      >"$logs/serve-$name.log" 2>&1 </dev/null &
    echo $! >"$logs/serve-$name.pid"
    ;;
  wait)
    name=$2 port=$3 limit=$4
    for ((i = 0; i < limit; i++)); do
      ! curl -sf -o /dev/null "http://127.0.0.1:$port/health" || exit 0
      kill -0 "$(cat "$logs/serve-$name.pid")" 2>/dev/null || break
      sleep 1
    done
    say "$name does not answer: $(grep -i error "$logs/serve-$name.log" | tail -n 1 | cut -c1-300)"
    exit 1
    ;;
  stop)
    shift
    for name in "$@"; do
      group=$(cat "$logs/serve-$name.pid" 2>/dev/null) || continue
      kill -TERM -- "-$group" 2>/dev/null
      for ((i = 0; i < 10; i++)); do kill -0 "$group" 2>/dev/null || break; sleep 0.5; done
      kill -KILL -- "-$group" 2>/dev/null
    done
    exit 0
    ;;
esac

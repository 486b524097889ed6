# SPDX-License-Identifier: Apache-2.0
# Sourced by the other scripts. BUNDLE: the pieces of pack.sh. WORK: where everything lives. MRROPE: the
# command. PYTHON: one with torch. Nothing here reaches for a network.
: "${BUNDLE:?the folder with the pieces}" "${WORK:?a folder to work in}" "${MRROPE:?the command}"
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
kit=$WORK/kit logs=$WORK/logs
mkdir -p "$kit" "$logs"
export PYTHONPATH=$WORK/site MRROPE_HOME=$kit/home
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1
export VLLM_CACHE_ROOT=$WORK/cache TRITON_CACHE_DIR=$WORK/triton TORCHINDUCTOR_CACHE_DIR=$WORK/inductor
export VLLM_HOST_IP=127.0.0.1 GLOO_SOCKET_IFNAME=lo NCCL_SOCKET_IFNAME=lo
export VLLM_USE_FLASHINFER_SAMPLER=0 VLLM_USE_DEEP_GEMM=0
serve=$scripts/serve.sh models=$kit/models summary=$logs/all.log
say() { printf '%s %s\n' "$(date -u +%T)" "$*" | tee -a "$summary"; }
ask() { # NAME PORT WHAT ARGUMENT...: of rungs.py
  local name=$1 port=$2 what=$3
  shift 3
  "$serve" wait "$name" "$port" 300 || return
  timeout 500 "$python" "$scripts/rungs.py" "$what" "$name" "http://127.0.0.1:$port" "$@" >"$logs/$what-$name.log" 2>&1
  say "$what $name: exit $?"
  tail -n 12 "$logs/$what-$name.log" | tee -a "$summary"
}
refused() { # NAME:PORT...: servers that must end by themselves with the reason
  local pair
  for pair in "$@"; do
    ! "$serve" wait "${pair%:*}" "${pair#*:}" 150 || say "${pair%:*}: it SERVES"
    grep -h -o "Error: mrrope: .*" "$logs/serve-${pair%:*}.log" | head -n 1 | tee -a "$summary"
  done
  "$serve" stop "${@%:*}"
}

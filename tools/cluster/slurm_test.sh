#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts Slurm on this one machine, submits the array job of docs/guide/cluster.md with four shards, kills one in
# the middle and requeues it, merges, and compares with one uninterrupted run, byte for byte.
#   slurm_test.sh MRROPE       MRROPE: the command
# Needs root and the packages slurm-wlm and munge; otherwise it is skipped (exit code 77) and says so. The
# daemons have their own folder, ports and key: an installed Slurm is not touched.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mrrope=$(realpath "${1:?usage: slurm_test.sh MRROPE}")
. "$root/tests/skipped.sh"
skip() { skipped "the array job of docs/guide/cluster.md did not run under Slurm" "$1"; }
fail() { echo "slurm_test.sh: $*" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || skip "its daemons need root"
for program in munged slurmctld slurmd sbatch; do
  command -v $program >/dev/null || skip "$program is not installed: apt-get install slurm-wlm munge"
done

work=$(mktemp -d)
daemons=()
stop() {
  [ ${#daemons[@]} -eq 0 ] || kill "${daemons[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap stop EXIT
chmod 755 "$work"
mkdir "$work/state" "$work/spool" "$work/bin"
ln -s "$mrrope" "$work/bin/mrrope"

head -c 128 /dev/urandom >"$work/munge.key"
chmod 600 "$work/munge.key"
munged --foreground --force --key-file="$work/munge.key" --socket="$work/munge.socket" \
  --pid-file="$work/munge.pid" --log-file="$work/munge.log" --seed-file="$work/munge.seed" \
  >"$work/munge.out" 2>&1 &
daemons+=($!)

host=$(hostname -s)
cat >"$work/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
for _ in $(seq 50); do [ -S "$work/munge.socket" ] && break; sleep 0.1; done
[ -S "$work/munge.socket" ] || skip "munged does not start: $(tail -n 1 "$work/munge.out" "$work/munge.log")"
slurmctld -D >"$work/slurmctld.out" 2>&1 &
daemons+=($!)
slurmd -D >"$work/slurmd.out" 2>&1 &
daemons+=($!)
for _ in $(seq 100); do
  case "$(sinfo -h -o %t 2>/dev/null)" in idle*) ready=yes; break ;; esac
  sleep 0.3
done
[ "${ready:-}" = yes ] ||
  skip "no node came up: $(tail -n 3 "$work/slurmctld.log" "$work/slurmd.log" 2>/dev/null)"

# The job as the docs print it, with four shards, a small model and less to do.
cd "$work"
model=$root/models/mrrope-tiny.gguf
small() {
  sed -e "s|model.gguf|$model|" -e 's/1-64/1-4/' -e 's|/64|/4|' -e 's/--gres=gpu:1 //' \
      -e 's/--ctx 128k/--ctx 2k --lengths 512,1k -t 1/' \
      -e 's/--samples 500/--samples 4 --tasks niah_single_1,niah_single_2,niah_single_3,niah_multikey_1/'
}
{
  echo '#!/bin/bash'
  sed -n '/^    #SBATCH --array/,/^$/{s/^    //p}' "$root/docs/guide/cluster.md" | small
} >job.sh
[ "$(grep -c 'mrrope eval ruler' job.sh)" -eq 1 ] && grep -q 'array=1-4 --requeue' job.sh ||
  fail "docs/guide/cluster.md has another job than this test expects: $(cat job.sh)"
merge=$(sed -n 's|^    mrrope report part1 part2 \(-o whole\)$|mrrope report runs/part* \1|p' "$root/docs/guide/cluster.md")
[ -n "$merge" ] || fail "docs/guide/cluster.md does not say how to merge"
export PATH=$work/bin:$PATH
job=$(sbatch --parsable --output=shard%a.log --open-mode=append job.sh)
say() { printf '%s\n' "slurm_test.sh: $*"; }
say "array job $job submitted, four shards"

# Kills shard 1 when it has finished a unit and not all.
finished() { grep -c '"task"' runs/part1/journal.jsonl 2>/dev/null || true; }
for _ in $(seq 1200); do [ "$(finished)" -ge 1 ] 2>/dev/null && break; sleep 0.1; done
[ "$(finished)" -ge 1 ] || fail "shard 1 computed nothing: $(cat shard1.log slurmd.log)"
scontrol requeue "${job}_1"
for _ in $(seq 300); do
  [ "$(squeue -h -r -j "$job" -o '%K %t' | awk '$1 == 1 {print $2}')" = PD ] && break
  sleep 0.1
done
if grep -q '^shard 1/4' shard1.log; then fail "shard 1 was done before it was killed: give it more to do"; fi
say "shard 1 was killed after $(finished) units, and requeued"
scontrol update jobid="${job}_1" starttime=now  # Slurm delays a requeued job by two minutes
for _ in $(seq 3000); do [ -z "$(squeue -h -j "$job" 2>/dev/null)" ] && break; sleep 0.2; done
for shard in 1 2 3 4; do
  grep -q "^shard $shard/4" shard$shard.log || fail "shard $shard did not end: $(cat shard$shard.log)"
done
grep -q '^note: resuming' shard1.log || fail "shard 1 did not resume: $(cat shard1.log)"

bash -c "$merge" >merge.log 2>&1 || fail "merge: $(cat merge.log)"
whole=$(sed -n 's/^srun //; /^mrrope eval/,$p' job.sh | sed 's|--shard [^ ]* -o .*|-o alone|')
bash -c "$whole" >alone.log 2>&1 || fail "the uninterrupted run: $(cat alone.log)"
for file in journal.jsonl results.json; do
  cmp "whole/$file" "alone/$file" || fail "$file differs from that of one uninterrupted run"
done
say "merged journal.jsonl ($(wc -l <whole/journal.jsonl) lines) and results.json are those of one run, byte for byte"

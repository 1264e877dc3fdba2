#!/usr/bin/env bash
# The examples of scripts/slurm under a real slurmctld and slurmd (Debian's packages), on this
# machine alone: munge, controller and node daemon with their own folder, key and ports, taken down
# at the end whatever happens.
#
#   slurm_on_one_machine.sh PROGRAM SOURCE_FOLDER
#
# Exit codes: 0 as it should be; 1 not; 77 Slurm is not installed, or its daemons cannot start here.
set -euo pipefail
program=$1 source=$2
PATH=$PATH:/usr/sbin:/sbin
skip() { echo "skipped: $*"; exit 77; }
for needed in munged slurmctld slurmd sbatch squeue scontrol; do
  command -v "$needed" >/dev/null || skip "no $needed (packages slurmctld slurmd slurm-client munge)"
done
# A container's slurmd needs root to change to the user of a job.
[ "$(id -u)" -eq 0 ] || skip "slurmd runs as root only"

work=$(mktemp -d "${TMPDIR:-/tmp}/bubblesim-slurm-XXXXXX")
pids=()
take_down() {
  local pid
  scancel --user=root 2>/dev/null || true
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for _ in $(seq 50); do
    jobs -r | grep -q . || break
    sleep 0.1
  done
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  # What a node daemon started has the folder in its command line's environment or none at all.
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap take_down EXIT
trap 'exit 1' INT TERM
fail() {
  echo "failed: $*"
  tail -n 20 "$work"/*.log "$work"/*.out 2>/dev/null || true
  exit 1
}
free_port() {
  local port
  for port in $(shuf -i 20000-29999 -n 50); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
}
# Waits up to $1 seconds for a command.
await() {
  local left=$(($1 * 5))
  shift
  until "$@" >/dev/null 2>&1; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || return 1
    sleep 0.2
  done
}

chmod 755 "$work"
mkdir -m 700 "$work/munge"
mkdir -m 755 "$work/state" "$work/spool" "$work/socket"
(umask 077; head -c 1024 /dev/urandom >"$work/munge/key")
munged --foreground --force --key-file="$work/munge/key" --socket="$work/socket/munge" \
  --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed" \
  >"$work/munged.log" 2>&1 &
pids+=($!)
await 10 test -S "$work/socket/munge" || skip "munged does not start: $(tail -n 1 "$work/munged.log")"

host=$(hostname -s)
cat >"$work/slurm.conf" <<CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
AuthType=auth/munge
AuthInfo=socket=$work/socket/munge
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=30
KillWait=5
SchedulerParameters=sched_interval=1,batch_sched_delay=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
slurmctld -D -f "$work/slurm.conf" >"$work/slurmctld.log" 2>&1 &
pids+=($!)
slurmd -D -f "$work/slurm.conf" >"$work/slurmd.log" 2>&1 &
pids+=($!)
ready() { [ "$(sinfo -h -o %t)" = idle ]; }
await 30 ready || skip "no node gets ready: $(tail -qn 2 "$work"/slurm*.log | tr '\n' ' ')"
echo "slurmctld and slurmd $(sinfo --version) run, node $host is idle"

# --- the examples ---------------------------------------------------------------------------------
export BUBBLESIM=$program ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
cd "$work"
printf 'Name,Profile,Memory_footprint,SM_usage,Duration\nF,-1,0,50,1000000\n' >kernels.csv
cat >sweep.json <<JSON
{"name": "small", "repetitions": 4, "axes": [{"pointer": "/training/jitter_cv", "values": [0, 0.1]}],
 "base": {"name": "small", "duration": "300ms",
          "training": {"trace": "$source/traces/samples/training"},
          "fillers": [{"name": "batch", "mode": "offline", "memory": "1GB",
                       "program": {"kernel_table": "kernels.csv"}}],
          "policies": ["exclusive", "mps"]}}
JSON
rows() { "$program" results "$1" export --format csv | sort; }
submit() { sbatch --parsable --output="$work/job-%A-%a.out" "$@"; }
ended() { [ -z "$(squeue -h -j "$1")" ]; }

"$program" sweep sweep.json --store single.db --threads 1 >/dev/null || fail "the single run"
rows single.db >single.csv
[ "$(wc -l <single.csv)" -ge 16 ] || fail "the single run has $(wc -l <single.csv) rows"

array=$(submit --array=0-2 --cpus-per-task=1 "$source/scripts/slurm/sweep-array.sbatch" \
  sweep.json "$work/part")
await 150 ended "$array" || fail "the job array does not end: $(squeue)"
"$program" results merge part-0.db part-1.db part-2.db -o merged.db >/dev/null || fail "the merge"
rows merged.db >merged.csv
cmp single.csv merged.csv || fail "the merged stores of the array differ from the single run"
echo "a job array of 3 tasks, merged, equals the single run: $(wc -l <merged.csv) lines"

# Tasks of one srun, and the same job again after its stores are there: nothing is left to do.
cat >tasks.sbatch <<'BATCH'
#!/bin/bash
exec srun --ntasks=2 bash -c '"$BUBBLESIM" sweep sweep.json --shard slurm --store "task-$SLURM_PROCID.db"'
BATCH
for round in first second; do
  job=$(submit --ntasks=2 --cpus-per-task=1 tasks.sbatch)
  await 150 ended "$job" || fail "the tasks of srun do not end: $(squeue)"
  "$program" results merge task-0.db task-1.db -o "tasks-$round.db" >/dev/null || fail "the merge"
  rows "tasks-$round.db" >tasks.csv
  cmp single.csv tasks.csv || fail "the merged stores of srun's tasks differ from the single run"
done
echo "2 tasks of one srun, merged, equal the single run, twice"

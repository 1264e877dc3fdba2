#!/bin/bash
# A sweep of 1,000 runs of the sample job on 1 and 2 threads, in turn: how it scales, what is spent
# outside runs, memory. Prints a line a sweep: wall, CPU of the process, CPU in runs (of the store).
#   tests/bench/sweep_bench.sh build/release/sim/app/bubblesim [ROUNDS]
set -euo pipefail
program=$(realpath "${1:?expected the program bubblesim}")
rounds=${2:-2}
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/sweep.json" <<END
{"name": "bench", "repetitions": 500,
 "base": {"name": "bench", "duration": "500ms", "warmup": "100ms",
   "training": {"trace": "$source/traces/samples/training", "memory": "24GB"},
   "fillers": [{"name": "encoder", "mode": "online", "memory": "2GB", "requests_per_pass": 8,
     "program": {"trace": "$source/traces/samples/inference.json.gz"},
     "max_batch": 8, "max_wait": "5ms", "arrivals": {"process": "poisson", "rate_per_s": 200}}],
   "policies": ["exclusive"]},
 "axes": [{"pointer": "/policies/0", "values": ["exclusive", "mps"]}]}
END
cd "$folder"
for ((round = 0; round < rounds; ++round)); do
  for threads in 1 2; do
    rm -f bench.db*
    TIMEFORMAT='%R %U %S'
    read -r wall user system < <({ time "$program" sweep sweep.json --threads "$threads" \
      --json > out 2> err; } 2>&1)
    in_runs=$(sqlite3 bench.db 'SELECT sum(cpu_ns) / 1e9 FROM runs' 2> /dev/null || echo '?')
    echo "threads $threads: $wall s wall, $user + $system s CPU, $in_runs s CPU in runs," \
      "$(tail -n 1 out | grep -o '"time_in_runs_fraction":[0-9.]*')," \
      "$(tail -n 1 out | grep -o '"peak_memory_bytes":[0-9]*'), load $(cut -d' ' -f1 /proc/loadavg)"
  done
done

#!/bin/bash
# What a run costs beside simulating: whole processes of `bubblesim run` as scripts/demo has it, on
# the samples and on one thread. `demo2ms` simulates next to nothing: what it takes is start,
# configs, traces, programs, bubbles, one pass of the filler, tables. With --out, results and 1 s of
# timeline are written twice: 1.1 s and 2.2 s are simulated in turn, and as what is simulated is
# linear in simulated time (scaling_bench), 2 * time(1.1 s) - time(2.2 s) of CPU is the rest. ms of
# wall and of CPU time (user and system): least and median of so many rounds (default: 21).
#   tests/bench/startup_bench.sh build/release/sim/app/bubblesim [ROUNDS]
set -euo pipefail
program=$(realpath "${1:?expected the program bubblesim}")
rounds=${2:-21}
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$source"

demo=(run traces/samples/training traces/samples/inference.json.gz --threads 1)

# time_once NAME ARGUMENTS...: appends wall and CPU time to NAME.wall and NAME.cpu, in ms
time_once() {
  local name=$1 wall user system TIMEFORMAT='%3R %3U %3S'
  shift
  read -r wall user system < <({ time "$program" "$@" > "$folder/stdout" \
    2> "$folder/stderr"; } 2>&1) || true
  [ ! -s "$folder/stderr" ] || { cat "$folder/stderr" >&2; exit 1; }
  awk "BEGIN { print 1000 * $wall }" >> "$folder/$name.wall"
  awk "BEGIN { print 1000 * ($user + $system) }" >> "$folder/$name.cpu"
}

# least_median FILE: "LEAST, MEDIAN"
least_median() {
  sort -n "$1" | awk '{ t[NR] = $1 }
    END { printf "%.0f, %.0f\n", t[1], t[int((NR + 1) / 2)] }'
}

for ((round = 0; round < rounds; ++round)); do
  time_once version --version
  time_once help --help
  time_once import import traces/samples/training -o "$folder/job.btr"
  time_once demo2ms "${demo[@]}" --warmup 1ms --duration 2ms
  for ms in 1100 2200; do
    time_once "out${ms}ms" "${demo[@]}" --warmup 100ms --duration "${ms}ms" --out "$folder/demo"
  done
done

echo "least, median: ms of wall time; of CPU time (load $(cut -d' ' -f1-3 /proc/loadavg))"
for name in version help import demo2ms out1100ms out2200ms; do
  echo "$name: $(least_median "$folder/$name.wall"); $(least_median "$folder/$name.cpu")"
done
paste "$folder/out1100ms.cpu" "$folder/out2200ms.cpu" | awk '{ print 2 * $1 - $2 }' \
  > "$folder/rest"
echo "with --out, not simulated: median $(least_median "$folder/rest" | cut -d' ' -f2) ms of CPU"

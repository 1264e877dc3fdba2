#!/usr/bin/env bash
# Measures pairs of a training job and a filler under every policy on this machine's GPU, simulates
# the same with the constants of this GPU, and says how far apart the two are.
#
#   capture/validate_campaign.sh                     build, calibrate, then all rounds that fit
#   capture/validate_campaign.sh --dry-run           list pairs, arms, and what they take
#   capture/validate_campaign.sh --reduced           two pairs, three policies, one short round
#   capture/validate_campaign.sh --only NAME,NAME    these pairs
#   capture/validate_campaign.sh --bubblesim FILE    use this program; build nothing
#
# Other options, with their defaults:
#   --out DIR       out/validation     device.json, simulated/, measured/, environment.json, logs/,
#                                      errors.{txt,csv,json,svg}
#   --configs DIR   configs/measure    run configs, and roles.csv: which pairs are judged
#   --device D      what calibrate finds   a name or a file, instead of calibrating
#   --rounds N      2                  of every pair; baselines are measured anew in each
#   --budget S      570                seconds in all, the build among them; what does not fit waits
#   --arm-start S   2.5                what an arm takes beside its run: processes, contexts, MPS; a
#                                      guess for a pair's first round, later ones go by the first
#   --python FILE   python3
#   --fake          on the simulator's own GPU behind real processes: no GPU is needed
#
# Run it again to go on: what is calibrated, simulated and measured is kept. Exit codes: 0 all is
# done; 1 something is not, or was measured and not simulated (errors.txt, environment.json say
# what); 2 nothing could be started.
set -euo pipefail
exec </dev/null

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
began=$SECONDS

say() { printf 'validate_campaign: %s\n' "$*" >&2; }
die() { printf 'validate_campaign: %s\n' "$*" >&2; exit 2; }
usage() { sed -n '2,27s/^# \{0,1\}//p' "$0"; }
. "$here/build_program.sh"

out=$root/out/validation configs=$root/configs/measure python=python3 bubblesim='' budget=570
fake='' dry='' passed=()

value() { [ "$1" -ge 2 ] || die "$2 needs a value; --help shows the options"; }

while [ $# -gt 0 ]; do
  case "$1" in
    --out) value $# "$1"; out=$2; shift ;;
    --configs) value $# "$1"; configs=$2; shift ;;
    --python) value $# "$1"; python=$2; shift ;;
    --bubblesim) value $# "$1"; bubblesim=$2; shift ;;
    --budget) value $# "$1"; budget=$2; shift ;;
    --only | --device | --rounds | --arm-start) value $# "$1"; passed+=("$1" "$2"); shift ;;
    --reduced) passed+=("$1") ;;
    --fake) fake=1; passed+=("$1") ;;
    --dry-run) dry=1; passed+=("$1") ;;
    -h | --help) usage; exit 0 ;;
    *) die "unknown argument '$1'; --help shows the options" ;;
  esac
  shift
done
[[ $budget =~ ^[0-9]+$ ]] || die "--budget is '$budget'; expected seconds, a whole number"
command -v "$python" >/dev/null || die "no Python: '$python' is not there; name one with --python"

check_gpu() {
  command -v nvidia-smi >/dev/null || die "no GPU: nvidia-smi is not there; --fake needs none"
  nvidia-smi -L >/dev/null 2>&1 || die "no GPU: nvidia-smi finds none; --fake needs none"
}

if [ -z "$dry" ]; then
  [ -n "$fake" ] || check_gpu
  if [ -z "$bubblesim" ]; then build_program "$root" "$out" bubblesim bubblesim_replay; fi
  [ -x "$bubblesim" ] || die "no program: '$bubblesim' cannot be run"
  passed+=(--bubblesim "$bubblesim")
fi

left=$((budget - (SECONDS - began)))
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$here/validate_campaign.py" --out "$out" \
  --configs "$configs" --budget "$left" ${passed[@]+"${passed[@]}"}

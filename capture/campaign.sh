#!/usr/bin/env bash
# Captures the project's training and inference jobs on this machine's GPU, checks every trace by
# replaying it, and measures what the recorder costs: without it, idle, capturing, interleaved.
#
#   capture/campaign.sh                     build, then all parts that fit in the time
#   capture/campaign.sh --dry-run           list the parts, what is done and what they take
#   capture/campaign.sh --quick             five captures, one round of the overhead
#   capture/campaign.sh --only NAME,NAME    these parts
#   capture/campaign.sh --bubblesim FILE    use this program; build nothing
#
# Other options, with their defaults:
#   --out DIR       out/campaign   results.json, results.md, traces/NAME.btr, parts/, work/ (logs)
#   --python FILE   python3        the Python that has PyTorch
#   --budget S      570            seconds in all, the build among them; parts that do not fit wait
#   --max-mb N      60             of all traces together
#   --fake                         jobs without GPU and PyTorch, to test the campaign itself
#
# Run it again to go on: parts that are done are kept. Exit codes: 0 all parts done; 1 some are
# not, results.md says why; 2 nothing could be started.
set -euo pipefail
exec </dev/null

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
began=$SECONDS

say() { printf 'campaign: %s\n' "$*" >&2; }
die() { printf 'campaign: %s\n' "$*" >&2; exit 2; }
usage() { sed -n '2,22s/^# \{0,1\}//p' "$0"; }
. "$here/build_program.sh"

out=$root/out/campaign python=python3 bubblesim='' budget=570 fake='' dry='' passed=()

value() { [ "$1" -ge 2 ] || die "$2 needs a value; --help shows the options"; }

while [ $# -gt 0 ]; do
  case "$1" in
    --out) value $# "$1"; out=$2; shift ;;
    --python) value $# "$1"; python=$2; shift ;;
    --bubblesim) value $# "$1"; bubblesim=$2; shift ;;
    --budget) value $# "$1"; budget=$2; shift ;;
    --max-mb | --only) value $# "$1"; passed+=("$1" "$2"); shift ;;
    --quick) passed+=("$1") ;;
    --fake) fake=1; passed+=("$1") ;;
    --dry-run) dry=1; passed+=("$1") ;;
    -h | --help) usage; exit 0 ;;
    *) die "unknown argument '$1'; --help shows the options" ;;
  esac
  shift
done
[[ $budget =~ ^[0-9]+$ ]] || die "--budget is '$budget'; expected seconds, a whole number"

check_python() {
  command -v "$python" >/dev/null || die "no Python: '$python' is not there; name one with --python"
  [ -n "$fake" ] && return
  local said
  said=$("$python" - 2>&1 <<'CODE'
try:
    import torch
except Exception as fault:
    raise SystemExit(f"no PyTorch in this Python ({type(fault).__name__}: {fault}); "
                     "name another with --python")
if not torch.cuda.is_available():
    raise SystemExit(f"no GPU: PyTorch {torch.__version__} (CUDA {torch.version.cuda}) finds none")
CODE
  ) || die "${said##*$'\n'}"
}

check_tools() {
  command -v c++ >/dev/null || command -v g++ >/dev/null ||
    say "note: no C++ compiler: collectives are stood in for in Python"
  # Not needed: marker kernels are PTX, which the driver assembles.
  command -v nvcc >/dev/null || say "note: no nvcc; nothing here needs it"
}

if [ -n "$dry" ]; then
  command -v "$python" >/dev/null || die "no Python: '$python' is not there; name one with --python"
else
  check_python
  check_tools
  if [ -z "$bubblesim" ]; then build_program "$root" "$out" bubblesim bubblesim_capture; fi
  [ -x "$bubblesim" ] || die "no program: '$bubblesim' cannot be run"
  passed+=(--bubblesim "$bubblesim")
fi

left=$((budget - (SECONDS - began)))
PYTHONPATH=$here/torch:$here PYTHONDONTWRITEBYTECODE=1 exec "$python" -m campaign \
  --out "$out" --python "$python" --budget "$left" ${passed[@]+"${passed[@]}"}

#!/usr/bin/env bash
# Everything that waits for a GPU, in the order of what it is worth a minute: FIRST_CONTACT.md says
# what each part prints and what to do about its failures. Needs bash, Python 3.8 and a driver;
# uses PyTorch, nvcc and MPS where they are. Changes no setting of the GPU.
#
#   capture/first_contact.sh                     all parts that fit in the time
#   capture/first_contact.sh --dry-run           list them, what is done, how long they may take
#   capture/first_contact.sh --only a,b,c        these parts
#   capture/first_contact.sh --from DIR          go on from the results of an earlier call
#
# Other options, with their defaults:
#   --out DIR         out/first-contact   results: at most 8 files of at most 16 MiB each
#   --work DIR        OUT.work            where parts work
#   --bubblesim FILE  out/bundle/bin/bubblesim (capture/bundle.sh), else a build of this tree
#   --build           build the program if none starts here; it takes minutes
#   --python FILE     python3             the Python that runs this; PyTorch's is looked for
#   --budget S        570                 seconds in all; what does not fit waits for the next call
#   --again a,b       parts to be done anew though they are done
#   --fake            without a GPU: processes are real, the GPU is the simulator's
#
# Exit codes: 0 all parts are done; 1 some are not, verdicts.txt says why; 2 nothing was started.
set -euo pipefail
exec </dev/null

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")

die() { printf 'first_contact: %s\n' "$*" >&2; exit 2; }
usage() { sed -n '2,22s/^# \{0,1\}//p' "$0"; }
value() { [ "$1" -ge 2 ] || die "$2 needs a value; --help shows the options"; }

out=$root/out/first-contact python=python3 passed=()

while [ $# -gt 0 ]; do
  case "$1" in
    --out) value $# "$1"; out=$2; shift ;;
    --python) value $# "$1"; python=$2; shift ;;
    --budget)
      value $# "$1"
      [[ $2 =~ ^[0-9]+$ ]] || die "--budget is '$2'; expected seconds, a whole number"
      passed+=("$1" "$2"); shift ;;
    --work | --from | --bubblesim | --only | --again) value $# "$1"; passed+=("$1" "$2"); shift ;;
    --build | --fake | --dry-run) passed+=("$1") ;;
    -h | --help) usage; exit 0 ;;
    *) die "unknown argument '$1'; --help shows the options" ;;
  esac
  shift
done

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
  # All that can be had without Python, so that the call was not for nothing.
  mkdir -p "$out"
  { nvidia-smi -q || true; uname -a; ls -l /opt /usr/local/bin || true; } >"$out/machine.txt" 2>&1
  die "no Python 3.8 or later: '$python'; name one with --python; see $out/machine.txt"
fi

# Where toolkits and drivers keep programs that images leave out of PATH.
IFS=: read -r -a places <<<"${FIRST_CONTACT_PLACES-/usr/local/cuda/bin:/usr/local/nvidia/bin}"
for place in ${places[@]+"${places[@]}"}; do
  if [ -d "$place" ]; then PATH=$PATH:$place; fi
done
export PATH

PYTHONPATH=$here:$here/torch${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 \
  exec "$python" -m first_contact --out "$out" ${passed[@]+"${passed[@]}"}

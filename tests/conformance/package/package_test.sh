#!/usr/bin/env bash
# Installs bubblesim, and with nothing but what was installed makes a new policy, builds and tests
# it, lists it and runs it: by path, and by name once it is installed too.
#
#   package_test.sh SOURCE BUILD WORK     WORK is emptied first
set -euo pipefail
exec </dev/null

source=$1 build=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
cd "$work"
prefix=$work/prefix
unset BUBBLESIM_CONFIGS BUBBLESIM_POLICY_PATH

say() { printf '== %s (%d s so far)\n' "$1" "$SECONDS"; }
die() { printf 'FAILED: %s\n' "$1" >&2; exit 1; }

# expect TEXT FILE: the file holds the text.
expect() { grep -qF -- "$1" "$2" || { cat "$2" >&2; die "expected '$1' in $2"; }; }

# refused TEXT COMMAND...: it exits with 2 and says the text on standard error.
refused() {
  local text=$1 code=0
  shift
  "$@" >out.txt 2>err.txt || code=$?
  [ "$code" -eq 2 ] || { cat out.txt err.txt >&2; die "expected exit 2, found $code: $*"; }
  expect "$text" err.txt
}

say 'install'
cmake --install "$build" --prefix "$prefix" >install.txt
[ -f "$prefix/include/bubblesim/sim/policy/policy.hpp" ] || die 'the contract is not installed'
for document in man/man1/bubblesim-run.1 bash-completion/completions/bubblesim \
  zsh/vendor-completions/_bubblesim fish/vendor_completions.d/bubblesim.fish; do
  [ -s "$prefix/share/$document" ] || die "share/$document is not installed"
done
bubblesim=$prefix/bin/bubblesim
"$bubblesim" devices >devices.txt
expect "$prefix/share/bubblesim/configs/devices" devices.txt

say 'packages'
cmake --install "$build" --prefix "$work/capture" --component bubblesim-capture >>install.txt
(cd "$work/capture" && find . -type f | sort) >capture.txt
expect './lib/libbubblesim_capture.so' capture.txt
[ "$(wc -l <capture.txt)" -le 2 ] || { cat capture.txt >&2; die 'bubblesim-capture has more'; }
expect 'set(CPACK_COMPONENTS_ALL "bubblesim;bubblesim-capture' "$build/CPackConfig.cmake"

say 'new-policy'
"$bubblesim" new-policy my_gate >new.txt
expect 'my_gate/my_gate_test.cpp' new.txt
refused 'my_gate/my_gate.cpp: is there already' "$bubblesim" new-policy my_gate
refused 'expected a name in snake_case' "$bubblesim" new-policy My-Gate
refused 'a policy that comes with bubblesim' "$bubblesim" new-policy mps
[ ! -e My-Gate ] || die 'a refused name left a folder'

say 'build and test'
cmake -S my_gate -B my_gate/build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Debug \
  ${CXX_LAUNCHER:+-DCMAKE_CXX_COMPILER_LAUNCHER="$CXX_LAUNCHER"} >configure.txt
cmake --build my_gate/build >build.txt || { cat build.txt >&2; die 'the new policy does not build'; }
ctest --test-dir my_gate/build --output-on-failure >ctest.txt || { cat ctest.txt >&2; die ctest; }
expect '100% tests passed, 0 tests failed out of 2' ctest.txt

say 'list and run'
library=my_gate/build/libmy_gate.so
"$bubblesim" policies --policy-library "$library" my_gate >policies.txt
expect "file: $library" policies.txt
expect 'Fillers pass when training has launched nothing for so long.' policies.txt
run=("$bubblesim" run "$source/configs/runs/example.json" --policy mps,my_gate)
"${run[@]}" --policy-library "$library" --csv >by_path.csv
expect 'my_gate' by_path.csv
refused 'unknown policy "my_gate"' "${run[@]}"

say 'install the policy and load it by its name'
cmake --install my_gate/build --prefix "$prefix" >>install.txt
"${run[@]}" --policy-library my_gate --csv >by_name.csv
cmp by_path.csv by_name.csv || die 'by path and by name give other results'
say 'done'

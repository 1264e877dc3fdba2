#!/usr/bin/env bash
# What scripts say and how they exit. Usage: scripts_test.sh ROOT
set -uo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect NAME EXIT TEXT COMMAND...: the command exits so and its output has the text.
expect() {
  local name=$1 code=$2 text=$3 output got=0
  shift 3
  output=$("$@" 2>&1 </dev/null) || got=$?
  if [ "$got" -ne "$code" ] || [[ "$output" != *"$text"* ]]; then
    printf 'FAILED: %s\n  exit %d (expected %d), output:\n%s\n' "$name" "$got" "$code" "$output"
    failures=$((failures + 1))
  else
    printf 'ok: %s\n' "$name"
  fi
}

# Stand-ins: every package but those in MISSING is installed; apt-get notes how it was called.
mkdir "$work/bin"
cat >"$work/bin/dpkg-query" <<'STUB'
#!/usr/bin/env bash
case " ${MISSING:-} " in *" ${*: -1} "*) exit 1 ;; esac
printf installed
STUB
cat >"$work/bin/apt-get" <<'STUB'
#!/usr/bin/env bash
echo "$*" >>"$APT_LOG"
STUB
printf '#!/usr/bin/env bash\nexec "$@"\n' >"$work/bin/sudo"
chmod +x "$work"/bin/*
export APT_LOG=$work/apt.log
: >"$APT_LOG"
stubbed() { PATH="$work/bin:$PATH" "$@"; }

expect 'set-up with nothing missing says so' 0 'packages are installed' stubbed "$root/scripts/setup"
[ -s "$APT_LOG" ] && { echo 'FAILED: apt-get was called with nothing missing'; failures=1; }
export MISSING='libfmt-dev zlib1g-dev'
expect 'a check names what is missing' 1 'missing: libfmt-dev zlib1g-dev' \
  stubbed "$root/scripts/setup" --check
[ -s "$APT_LOG" ] && { echo 'FAILED: a check called apt-get'; failures=1; }
expect 'set-up says what it installs' 0 'installing: libfmt-dev zlib1g-dev' \
  stubbed "$root/scripts/setup"
grep -q 'install .* libfmt-dev zlib1g-dev$' "$APT_LOG" ||
  { echo 'FAILED: not exactly the missing packages were installed'; failures=1; }
unset MISSING

expect 'set-up names a wrong argument' 1 "unknown argument '--bad'" "$root/scripts/setup" --bad
expect 'demo has a help' 0 'scripts/demo DIR' "$root/scripts/demo" --help
expect 'demo names a folder that is not there' 2 'no such file or folder: /no/such' \
  "$root/scripts/demo" /no/such
expect 'demo names a filler that is not there' 2 'no such file: /no/such.json' \
  "$root/scripts/demo" --filler /no/such.json
expect 'demo wants a value for its option' 2 '--filler needs a file' "$root/scripts/demo" --filler
expect 'demo names what is allowed' 2 'allowed: --filler FILE' "$root/scripts/demo" --fill
expect 'figures has a help' 0 'scripts/figures --notebook specinf' "$root/scripts/figures" --help
expect 'figures names a wrong argument before it builds' 2 'unrecognized arguments: --bad' \
  "$root/scripts/figures" --bad
expect 'figures names the notebooks that there are' 2 'allowed: tour, specinf' \
  "$root/scripts/figures" --notebook nothing
expect 'figures names a program that is not there' 2 'no such file: /no/such' \
  env BUBBLESIM=/no/such "$root/scripts/figures"
expect 'readme-tables names the tables that there are' 1 'allowed: demo, wide, advise, measured, policies' \
  "$root/scripts/readme-tables" --check nothing
expect 'measured-pair names the pairs that there are' 2 'allowed: gpt2-fsdp--gpt2-offline' \
  "$root/scripts/measured-pair" nothing
expect 'readme-tables names a program that is not there' 1 'no such program: /no/such' \
  "$root/scripts/readme-tables" --check --program /no/such
expect 'readme-tables compares columns only where it changes nothing' 2 'add --check' \
  "$root/scripts/readme-tables" --columns
expect 'check-recorded-jobs has a help' 0 'check-recorded-jobs DATA_DIR' \
  "$root/scripts/check-recorded-jobs" --help
expect 'check-recorded-jobs names a folder without an index' 2 'found no INDEX.tsv in /no/such' \
  "$root/scripts/check-recorded-jobs" /no/such
expect 'check-measured has a help' 0 '2 it could not be done' "$root/scripts/check-measured" --help
expect 'check-measured names a program that is not there' 2 'no program bubblesim' \
  "$root/scripts/check-measured" --bubblesim /no/such
expect 'check-clients names a program that is not there' 2 '/no/such cannot be run' \
  "$root/scripts/check-clients" --bubblesim /no/such
# Stands in for the program: simulates nothing, and prints aims as `validate` does.
cat >"$work/bin/bubblesim" <<'STUB'
#!/usr/bin/env bash
[ "$1" = validate ] || exit 0
printf 'latency_p95        <= 10 %%      %s   beside: MISSED: 3\norder\n' "$AIM"
STUB
chmod +x "$work/bin/bubblesim"
expect 'check-measured ends with the aims that are missed' 1 \
  $'aims missed\nlatency_p95        <= 10 %      MISSED: 16.57' env AIM='MISSED: 16.57' \
  "$root/scripts/check-measured" --bubblesim "$work/bin/bubblesim" --out "$work/measured"
expect 'check-measured says that aims are met' 0 'met: 9.00' env AIM='met: 9.00' \
  "$root/scripts/check-measured" --bubblesim "$work/bin/bubblesim" --out "$work/measured"
expect 'test-packages has a help' 0 'clean root of Debian 12' "$root/scripts/test-packages" --help
expect 'test-packages names a build that is not there' 2 'no CPackConfig.cmake in /no/such' \
  "$root/scripts/test-packages" /no/such
expect 'test has a help' 0 'scripts/test --since COMMIT' "$root/scripts/test" --help
expect 'test names a wrong argument' 2 "unknown argument 'x'" "$root/scripts/test" x
expect 'test names what is no commit' 2 "found 'nothing'" "$root/scripts/test" --since nothing

for script in scripts/setup scripts/demo scripts/test scripts/check-recorded-jobs \
  scripts/test-packages .ci/run; do
  bash -n "$root/$script" || failures=$((failures + 1))
  [ -x "$root/$script" ] || { echo "FAILED: $script is not executable"; failures=1; }
done
[ "$failures" -eq 0 ]

# Sourced by the campaigns, which have say and die: builds the program that they run.

# build_program ROOT OUT TARGET...: sets `bubblesim`; what the build said is in OUT/build.log.
build_program() {
  local root=$1 out=$2 folder=$1/build/demo
  shift 2
  command -v cmake >/dev/null || die "no cmake: give a built program with --bubblesim FILE"
  say "building bubblesim in $folder"
  mkdir -p "$out"
  { cmake --preset demo -S "$root" &&
    cmake --build "$folder" --target "$@"; } >"$out/build.log" 2>&1 ||
    die "the build failed: $out/build.log ends with: $(tail -n 1 "$out/build.log")"
  bubblesim=$(find "$folder" -type f -name bubblesim -perm -u+x | head -n 1)
  [ -n "$bubblesim" ] || die "the build made no program bubblesim"
}

#!/usr/bin/env bash
# Makes what capture/first_contact.sh brings along to a machine that cannot build the project: the
# program, the replay worker, the recorder and the gate, with every shared library but glibc's.
#
#   capture/bundle.sh              build with the preset demo's settings, then OUT/bundle
#   capture/bundle.sh --check      say of the bundle that is there what it needs
#
# Options, with their defaults:
#   --out DIR       out/bundle     bin/, libexec/, lib/, BUNDLE.txt (what, from what, which glibc)
#   --build DIR     build/bundle   kept between calls
#   --jobs N        as many as there are cores
#   --limit-mb N    64             of the tree and the bundle together; more is a fault
#
# Exit codes: 0 it is made and small enough; 2 it is not.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
out=$root/out/bundle build=$root/build/bundle jobs=$(nproc) limit_mb=64 check=''

say() { printf 'bundle: %s\n' "$*" >&2; }
die() { printf 'bundle: %s\n' "$*" >&2; exit 2; }
usage() { sed -n '2,14s/^# \{0,1\}//p' "$0"; }
value() { [ "$1" -ge 2 ] || die "$2 needs a value; --help shows the options"; }

while [ $# -gt 0 ]; do
  case "$1" in
    --out) value $# "$1"; out=$2; shift ;;
    --build) value $# "$1"; build=$2; shift ;;
    --jobs) value $# "$1"; jobs=$2; shift ;;
    --limit-mb) value $# "$1"; limit_mb=$2; shift ;;
    --check) check=1 ;;
    -h | --help) usage; exit 0 ;;
    *) die "unknown argument '$1'; --help shows the options" ;;
  esac
  shift
done
[[ $limit_mb =~ ^[0-9]+$ ]] || die "--limit-mb is '$limit_mb'; expected megabytes, a whole number"
[[ $jobs =~ ^[1-9][0-9]*$ ]] || die "--jobs is '$jobs'; expected a number, 1 or more"

# Where the program looks for each (sim/app/shared/own_process.cpp,
# capture/control/job_environment.cpp).
programs=(bin/bubblesim libexec/bubblesim/bubblesim_replay)
preloaded=(lib/libbubblesim_capture.so lib/libbubblesim_gate.so)

build_all() {
  command -v cmake >/dev/null || die "no cmake"
  local launcher=()
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  # PostgreSQL's client brings Kerberos, LDAP and OpenSSL, and nothing here needs it. One C++
  # runtime for the program and its libraries: theirs are shared, so it is brought along as they
  # are. RPATH and not RUNPATH: it also holds for what the libraries themselves need.
  mkdir -p "$build"
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUBBLESIM_BUILD_TESTS=OFF \
    -DBUBBLESIM_BUILD_BENCHMARKS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_PostgreSQL=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON '-DCMAKE_INSTALL_RPATH=$ORIGIN/../lib;$ORIGIN/../../lib' \
    ${launcher[@]+"${launcher[@]}"} >"$build/configure.log" 2>&1 ||
    die "configuring failed: $build/configure.log ends with: $(tail -n 1 "$build/configure.log")"
  grep -q 'nvcc: not found' "$build/configure.log" &&
    say "note: no nvcc: this bundle has no stand-in kernels, so it cannot measure on a GPU"
  cmake --build "$build" -j "$jobs" --target bubblesim bubblesim_replay bubblesim_capture \
    bubblesim_gate >"$build/build.log" 2>&1 ||
    die "the build failed: $build/build.log ends with: $(tail -n 1 "$build/build.log")"
}

built() {
  find "$build" -type f -name "$(basename "$1")" -not -path '*/CMakeFiles/*' | head -n 1
}

# Of glibc and the loader itself: the machine's own, since they belong to its kernel and each other.
of_glibc() {
  case "$1" in
    libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.* | \
      ld-linux*) return 0 ;;
  esac
  return 1
}

copy_files() {
  local folder=$1 path file name place
  for path in "${programs[@]}" "${preloaded[@]}"; do
    file=$(built "$path")
    [ -n "$file" ] || die "the build made no $(basename "$path")"
    mkdir -p "$folder/$(dirname "$path")"
    strip --strip-unneeded -o "$folder/$path" "$file"
    chmod 755 "$folder/$path"
  done
  for path in "${programs[@]}"; do
    while read -r name place; do
      of_glibc "$name" && continue
      [ -f "$place" ] || die "$path needs $name, which is not here"
      [ -f "$folder/lib/$name" ] || strip --strip-unneeded -o "$folder/lib/$name" "$place"
    done < <(ldd "$(built "$path")" | awk '$2 == "=>" { print $1, $3 == "not" ? "-" : $3 }')
  done
}

files_of() { find "$1" -type f \( -perm -u+x -o -name '*.so*' \) | sort; }

# The newest version of a symbol of glibc that anything in the bundle asks for.
needed_glibc() {
  files_of "$1" | xargs -d '\n' readelf -V 2>/dev/null | grep -o 'GLIBC_[0-9.]*' |
    sort -Vu | tail -n 1 | sed 's/GLIBC_//'
}

# What the loader finds nowhere, and what it finds outside the bundle and outside of glibc.
strangers() {
  local folder=$1 path
  for path in "${programs[@]}"; do
    ldd "$folder/$path" | awk -v inside="$(cd "$folder" && pwd)/" \
      '$2 == "=>" && index($3, inside) != 1 { print $1 }'
  done | sort -u | while read -r path; do of_glibc "$path" || echo "$path"; done
}

megabytes() { awk -v bytes="$1" 'BEGIN { printf "%.1f", bytes / 1048576 }'; }
tree_bytes() {
  git -C "$root" ls-files -z --cached --others --exclude-standard |
    (cd "$root" && du -cb --files0-from=- 2>/dev/null | tail -n 1 | cut -f 1 || true)
}

report() {
  local folder=$1 bytes all foreign
  foreign=$(strangers "$folder" | tr '\n' ' ')
  [ -z "$foreign" ] || die "needs, and does not bring: $foreign"
  "$folder/bin/bubblesim" --version >/dev/null || die "the program in $folder does not start"
  bytes=$(du -sb "$folder" | cut -f 1)
  all=$((bytes + $(tree_bytes)))
  {
    echo "program: $("$folder/bin/bubblesim" --version | head -n 1)"
    echo "tree: $(git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)"
    echo "glibc: $(needed_glibc "$folder") or later"
    echo "machine: $(uname -m)"
    echo "size: $(megabytes "$bytes") MiB; with the tree $(megabytes "$all") MiB"
  } >"$folder/BUNDLE.txt"
  cat "$folder/BUNDLE.txt"
  [ "$all" -le $((limit_mb * 1048576)) ] ||
    die "tree and bundle have $(megabytes "$all") MiB together; at most $limit_mb may travel"
}

if [ -n "$check" ]; then
  [ -x "$out/bin/bubblesim" ] || die "no bundle in $out"
else
  build_all
  rm -rf "$out.part"
  mkdir -p "$out.part/lib"
  copy_files "$out.part"
  rm -rf "$out"
  mv "$out.part" "$out"
fi
report "$out"

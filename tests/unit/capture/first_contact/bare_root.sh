#!/usr/bin/env bash
# Runs capture/first_contact.sh on fakes in a root that has bash, coreutils and Python and none of
# our build tools and packages: the tree and the bundle as they would travel. Needs root rights
# (chroot, mount). Not part of the tests, for it takes minutes.
#
#   bare_root.sh FOLDER [OPTION...]    options of first_contact.sh, behind --fake
#
# FAKES, if set: a folder with the fake driver and CUPTI of tests/fakes (fake_cuda/, fake_cupti/) and
# the driver of this folder's tests (libcuda.so), for parts a, b, e, h, i and j.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../../../.." && pwd)
root=$1
shift
[ -x "$source/out/bundle/bin/bubblesim" ] || { echo "no bundle: capture/bundle.sh" >&2; exit 2; }
[ ! -e "$root" ] || { echo "$root is there already" >&2; exit 2; }

copy() {  # a file, and the libraries that it needs
  local file
  for file in "$1" $(ldd "$1" 2>/dev/null | grep -o '/[^ )]*' || true); do
    [ -e "$root$file" ] || install -D -m 755 "$file" "$root$file"
  done
}

mkdir -p "$root"/{proc,dev,tmp,usr/bin,root}
ln -s usr/bin "$root/bin"
for name in bash sh env cat ls mkdir rm cp mv ln sed grep tail head cut sort find uname nproc dirname \
  basename mktemp sleep kill touch chmod date tr wc id timeout; do
  file=$(PATH=/usr/bin:/bin command -v "$name") || continue
  [ -f "$file" ] || continue  # a word of the shell
  copy "$(readlink -f "$file")"
  [ -e "$root/usr/bin/$name" ] || install -D -m 755 "$(readlink -f "$file")" "$root/usr/bin/$name"
done
python=$(python3 -c 'import sys; print(sys.executable)')
python=$(readlink -f "$python")
library=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["stdlib"])')
copy "$python"
mkdir -p "$root$library"
(cd "$library" && tar -c --exclude=site-packages --exclude=test --exclude=__pycache__ .) |
  tar -x -C "$root$library"
find "$root$library" -name '*.so' | while read -r file; do copy "${file#"$root"}"; done
ln -sf "$python" "$root/usr/bin/python3"

(cd "$source" && git ls-files -z --cached --others --exclude-standard | tar -c --null -T - out/bundle) |
  { mkdir -p "$root/tree" && tar -x -C "$root/tree"; }
fakes=()
if [ -n "${FAKES:-}" ]; then
  cp -rL "$FAKES" "$root/fakes"
  # Their C++ runtime is that of the machine on which they were built.
  cp -n "$root"/tree/out/bundle/lib/{libstdc++,libgcc_s}.so* "$root/fakes/"
  mkdir -p "$root/fakes/bin"
  cp "$here/fake_mps_control" "$root/fakes/bin/nvidia-cuda-mps-control"
  fakes=(BUBBLESIM_FAKE_CUDA=/fakes/fake_cuda/libcuda.so.1
    BUBBLESIM_CAPTURE_CUPTI=/fakes/fake_cupti/libcupti.so.13
    FIRST_CONTACT_LIBCUDA=/fakes/libcuda.so LD_LIBRARY_PATH=/fakes)
fi
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"
trap 'umount -l "$root/dev" "$root/proc"' EXIT
began=$SECONDS
env -i HOME=/root PATH=/fakes/bin:/usr/bin:/bin "${fakes[@]}" /usr/sbin/chroot "$root" \
  bash /tree/capture/first_contact.sh --fake --out /tree/out/first-contact "$@" || true
echo "bare root: $((SECONDS - began)) s; tree and bundle $(du -sm --exclude=first-contact* \
  "$root/tree" | cut -f 1) MiB; results: $(ls "$root/tree/out/first-contact" | tr '\n' ' ')"

#!/usr/bin/env bash
# Packs what a bare GPU machine lacks. See README.md in this folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mib=16
while getopts s: flag; do
  case $flag in s) mib=$OPTARG ;; *) exit 2 ;; esac
done
shift $((OPTIND - 1))
bundle=${1:?usage: pack.sh [-s MIB] BUNDLE [FILE...]}
shift
mkdir -p "$bundle"

if [ ! -f "$bundle/llama.tar.xz" ]; then
  source=$("$here/../fetch_llama.sh")
  tar -C "$source" -cf - CMakeLists.txt LICENSE ggml src include common vendor cmake licenses models/templates |
    xz -T0 -3 >"$bundle/llama.tar.xz"
fi

# Debian packages for x86-64, unpacked there without being installed.
if [ ! -f "$bundle/debs.tar" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/debs"
  apt=(apt-get -qq -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o Dir::State="$work"
    -o Dir::State::lists="$work/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$work/cache"
    -o APT::Sandbox::User=root)
  "${apt[@]}" update
  (cd "$work/debs" && "${apt[@]}" download libcli11-dev nlohmann-json3-dev zlib1g-dev zlib1g \
    liblzma-dev liblzma5 libzstd-dev libzstd1 libgtest-dev \
    libhwy-dev libhwy1 libnlopt-dev libnlopt0)
  tar -C "$work" -cf "$bundle/debs.tar" debs
fi

# Each file in pieces, with its hash and their number for take.sh.
for file in "$@"; do
  name=$(basename "$file")
  split -b "${mib}m" -d -a 3 "$file" "$bundle/$name.part-"
  pieces=("$bundle/$name".part-*)
  echo "$(sha256sum <"$file" | cut -d' ' -f1) ${#pieces[@]}" >"$bundle/$name.whole"
done
du -sh "$bundle" >&2

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches the source of llama.cpp 0.5.0 and prints its folder. It is inside the source archive of
# the Python package llama-cpp-python 0.3.36; only that folder is unpacked, once, outside the tree.
#
# MRROPE_LLAMA_SOURCE, if set, is used as it is.
set -eu

package=llama-cpp-python
package_version=0.3.36
archive_sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
llama_version=0.5.0

if [ -n "${MRROPE_LLAMA_SOURCE:-}" ]; then
  echo "$MRROPE_LLAMA_SOURCE"
  exit 0
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mrrope
folder=$cache/llama.cpp-$llama_version
if [ -f "$folder/include/llama.h" ]; then
  echo "$folder"
  exit 0
fi

fail() {
  echo "fetch_llama.sh: $1" >&2
  exit 1
}
command -v python3 > /dev/null || fail "python3 is needed to download the source: install python3"

mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "fetching llama.cpp $llama_version (77 MB) ..." >&2

# pip needs the metadata of a source archive, which the package's build system makes. A virtual
# environment with that build system leaves the machine's Python unchanged and compiles nothing.
python3 -m venv "$work/venv" 2> "$work/log" ||
  fail "python3 -m venv failed: install python3-venv, or give -DMRROPE_LLAMA_SOURCE=FOLDER"
pip="$work/venv/bin/python -m pip --disable-pip-version-check --no-input"
$pip install --quiet scikit-build-core 2> "$work/log" || {
  cat "$work/log" >&2
  fail "pip cannot reach its package index"
}
$pip download --quiet --no-deps --no-build-isolation --no-binary "$package" \
  --dest "$work" "$package==$package_version" 2> "$work/log" || {
  cat "$work/log" >&2
  fail "pip cannot download $package $package_version"
}
archive=$(ls "$work"/*.tar.gz)

# Checks the digest, then unpacks vendor/llama.cpp alone.
"$work/venv/bin/python" - "$archive" "$archive_sha256" "$work/llama.cpp" << 'PYTHON' ||
import hashlib, pathlib, sys, tarfile

archive, expected, target = sys.argv[1:]
with open(archive, "rb") as file:
    digest = hashlib.sha256(file.read()).hexdigest()
if digest != expected:
    sys.exit(f"{archive}: SHA-256 is {digest}, expected {expected}")
with tarfile.open(archive) as tar:
    for member in tar:
        parts = pathlib.PurePosixPath(member.name).parts
        if len(parts) < 4 or parts[1:3] != ("vendor", "llama.cpp") or {"..", ".git"} & set(parts):
            continue
        if not (member.isfile() or member.isdir()):
            continue
        member.name = str(pathlib.PurePosixPath(*parts[3:]))
        tar.extract(member, target)
PYTHON
  fail "the archive is not the one expected"
grep -q '^#ifndef LLAMA_H' "$work/llama.cpp/include/llama.h" || fail "no llama.cpp in the archive"
rm -rf "$folder"
mv "$work/llama.cpp" "$folder"
echo "$folder"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# devices.sh PACKAGE: an installed folder (bin, lib, share) that has code for every processor: which runs, what the
# oldest computes, and add-ons that cannot be used. Nothing in the folder is changed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "devices.sh: $*" >&2; exit 1; }
cp -rL "${1:?usage: devices.sh PACKAGE}" "$work/package"
for libs in "$1"/../*.libs; do  # what auditwheel has added
  if [ -d "$libs" ]; then cp -r "$libs" "$work"; fi
done
mrrope=$work/package/bin/mrrope model=$work/package/share/mrrope/models/mrrope-tiny.gguf
backends=$(dirname "$(find "$work/package" -name libmrrope-ggml.so)")
version=$("$mrrope" --version | sed -n 's/^mrrope //p')
code=$("$mrrope" --version | sed -n 's/^processor code: //p')
[ -e "$backends/libggml-cpu-$code.so" ] || fail "no file for '$code'"
"$mrrope" generate --device list | grep -q "^CPU: .*, code for $code, " || fail "--device list"

# said STATUS TEXT ARGUMENTS...: generates with these; the status, and the text on the standard error.
said() {
  local status=0
  "$mrrope" generate "$model" --ctx 2k -p 'Let $n$ be' -n 8 --temp 0 "${@:3}" >"$work/text" 2>"$work/errors" || status=$?
  [ $status -eq "$1" ] || fail "${*:3}: ended with $status: $(cat "$work/errors")"
  grep -qF "$2" "$work/errors" || fail "${*:3}: said $(cat "$work/errors")"
}
perplexity() {
  "$mrrope" eval ppl "$model" --method elastic:pro --ctx 2k --lengths 1k,2k --documents 1 --kl-positions 0 --json |
    python3 -c 'import json, sys
print(*(r["value"] for r in json.load(sys.stdin)["results"] if r["metric"] == "perplexity"))'
}
said 0 "" --device CPU
said 2 'there is no device "Nope0", but CPU' --device Nope0
touch "$backends/mrrope-cuda-0.0.1.so"
said 0 "mrrope-cuda 0.0.1 is not for mrrope $version, so the CPU is used; pip install mrrope-cuda==$version"
said 0 "" --device CPU
! grep -q mrrope-cuda "$work/errors" || fail "--device CPU warns of an add-on"
said 1 "mrrope-cuda 0.0.1 is not for mrrope $version" --device CUDA0
rm "$backends/mrrope-cuda-0.0.1.so"
echo "not a library" >"$backends/mrrope-vulkan-$version.so"
said 0 "mrrope-vulkan cannot be loaded" -ngl 99
said 1 "mrrope-vulkan cannot be loaded" --device Vulkan0
"$mrrope" generate --device list | grep -q "mrrope-vulkan cannot be loaded" || fail "--device list without the reason"
rm "$backends/mrrope-vulkan-$version.so"

# The oldest processor of the kind, then none.
here=$(perplexity)
mkdir "$work/others"
find "$backends" -name 'libggml-cpu-*' ! -name '*armv8.0_1*' ! -name '*-x64.so' -exec mv -t "$work/others" {} +
oldest=$("$mrrope" --version | sed -n 's/^processor code: //p')
case $oldest in armv8.0_1 | x64) ;; *) fail "the oldest is '$oldest'" ;; esac
there=$(perplexity)
echo "perplexities with $code: $here, with $oldest: $there"
python3 -c 'import sys
a, b = (list(map(float, text.split())) for text in sys.argv[1:])
assert len(a) == len(b) == 2 and all(abs(x / y - 1) < 0.005 for x, y in zip(a, b)), (a, b)' "$here" "$there"
mv "$backends"/libggml-cpu-* "$work/others"
said 1 "no code for this processor in $backends"
echo "devices.sh: passed"

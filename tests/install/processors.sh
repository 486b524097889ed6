#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# processors.sh WHEEL: the wheel under qemu, as processors that are not here. Each picks its own code and prints the table
# that this code prints here. That of the code picked here is near: ggml's codes add up products of q8_0 in another
# order. That is 1e-7 until the next activations are rounded to 8 bits, and grows from layer to layer, to 0.75 % on Arm
# and 1.7 % between AVX-512's dot products and plain x86-64. With weights in f32 the tables are equal on x86-64, and agree
# to 2e-4 on Arm: v8.2 adds up attention in f16, and with i8mm ggml multiplies without llamafile's code.
set -euo pipefail
wheel=${1:?usage: processors.sh WHEEL}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $(uname -m) in
  aarch64) processors="cortex-a53=armv8.0_1 neoverse-n1=armv8.2_2 max,sve=off=armv8.6_0" apart=0.01 ;;
  x86_64) processors="qemu64=x64 Haswell=haswell" apart=0.03 ;;
  *) echo "processors.sh: no wheel for $(uname -m)" >&2; exit 1 ;;
esac
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$wheel"
package=$(echo "$work"/venv/lib/python3*/site-packages/mrrope)
mrrope=$package/bin/mrrope
"$here/short_window.sh" "$package/share/mrrope/models/mrrope-tiny.gguf"
cd "$work"
export OMP_WAIT_POLICY=passive

# table COMMAND...: the first table of the demo, for one text.
table() {
  "$@" eval ppl "$package/share/mrrope/models/mrrope-tiny.gguf" --methods none,auto --ctx 768 --lengths 96,384 \
    --documents 1 --kl-positions 0 2>errors | sed -n '/^Perplexity/,/^$/p'
}
table "$mrrope" | tee here
[ "$(wc -l <here)" -eq 5 ] || { cat errors >&2; exit 1; }
mkdir others
for one in $processors; do
  processor=${one%=*} wanted=${one##*=}
  emulated=("qemu-$(uname -m)" -cpu "$processor" "$mrrope")
  code=$("${emulated[@]}" --version | sed -n 's/^processor code: //p')
  [ "$code" = "$wanted" ] || { echo "processors.sh: $processor runs code for '$code'" >&2; exit 1; }
  table "${emulated[@]}" >there
  find "$package" -name 'libggml-cpu-*' ! -name "*-$code.so" -exec mv -t others {} +
  runs=$("$mrrope" --version 2>errors | sed -n 's/^processor code: //p') || true
  [ "$runs" != "$code" ] || table "$mrrope" >alone  # this processor may be older
  mv others/* "$package/lib/mrrope"
  rows="none|auto"
  [ "$processor" != qemu64 ] || rows=none  # without FMA, turned keys are rounded otherwise: 0.1 % of auto's perplexity
  [ "$runs" != "$code" ] || diff <(grep -E "^($rows)" alone) <(grep -E "^($rows)" there) ||
    { echo "processors.sh: $processor prints something else" >&2; exit 1; }
  python3 -c 'import sys
a, b = ([float(x) for line in open(name) for x in line.split() if x[0].isdigit() and "." in x] for name in sys.argv[2:])
assert len(a) == len(b) == 4 and all(abs(x / y - 1) < float(sys.argv[1]) for x, y in zip(a, b)), (a, b)' $apart here there
  echo "$processor: code for $code, $SECONDS s"
done

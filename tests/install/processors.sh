#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# processors.sh WHEEL: the wheel under qemu, as processors that are not here: the oldest of the kind and a later one. Each
# runs its own code. The later one prints the table of this machine; the oldest comes within 0.5 %: without instructions
# for dot products ggml adds those of q8_0 in another order. That is 1e-7 until the next activations are rounded to 8
# bits, and grows from layer to layer to 0.35 %. With weights in f32 the tables agree to 1e-4: v8.2 adds up attention in f16.
set -euo pipefail
wheel=${1:?usage: processors.sh WHEEL}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $(uname -m) in
  aarch64) processors="cortex-a53=armv8.0_1 neoverse-n1=armv8.2_2" ;;
  x86_64) processors="qemu64=x64 Haswell=haswell" ;;
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
for one in $processors; do
  emulated=("qemu-$(uname -m)" -cpu "${one%=*}" "$mrrope")
  code=$("${emulated[@]}" --version | sed -n 's/^processor code: //p')
  [ "$code" = "${one#*=}" ] || { echo "processors.sh: ${one%=*} runs code for '$code'" >&2; exit 1; }
  table "${emulated[@]}" >there
  if [ "$one" = "${processors%% *}" ]; then
    python3 -c 'import sys
a, b = ([float(x) for line in open(name) for x in line.split() if x[0].isdigit() and "." in x] for name in sys.argv[1:])
assert len(a) == len(b) == 4 and all(abs(x / y - 1) < 0.005 for x, y in zip(a, b)), (a, b)' here there
  else
    diff here there || { echo "processors.sh: ${one%=*} prints something else" >&2; exit 1; }
  fi
  echo "${one%=*}: code for $code, $SECONDS s"
done

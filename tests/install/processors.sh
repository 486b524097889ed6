#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# processors.sh WHEEL: the short demo of the wheel under qemu, as processors that are not here: the oldest of the kind
# and a later one. Each runs its own code and prints the tables of this machine.
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

# tables COMMAND...: what the demo prints from its first table on.
tables() { rm -rf mrrope-demo && "$@" demo 2>"$work/errors" | sed -n '/^Perplexity/,/^Charts/p'; }
tables "$mrrope" >here
[ "$(grep -c '^far:pi' here)" -eq 2 ] || { cat errors >&2; exit 1; }
for one in $processors; do
  emulated=("qemu-$(uname -m)" -cpu "${one%=*}" "$mrrope")
  code=$("${emulated[@]}" --version | sed -n 's/^processor code: //p')
  [ "$code" = "${one#*=}" ] || { echo "processors.sh: ${one%=*} runs code for '$code'" >&2; exit 1; }
  tables "${emulated[@]}" >there
  diff here there || { echo "processors.sh: ${one%=*} computes something else" >&2; exit 1; }
  echo "${one%=*}: code for $code, $SECONDS s"
done

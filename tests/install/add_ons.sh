#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# add_ons.sh WHEEL ADD_ON: mrrope and mrrope-vulkan, by pip in a fresh environment, with lavapipe as the device: what it
# computes, and one line for everything that is missing. Then the tests of GPUs, of build/add-on-vulkan. Mesa's driver
# must be installed. Debian 12's lavapipe, Mesa 22.3, writes into buffers that ggml has freed, and its compiler, LLVM 15,
# fails on ggml's shaders on Arm without SVE: there all this runs in a Debian 13. Exit code 77: that could not be made.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/tests/skipped.sh"
wheel=${1:?usage: add_ons.sh WHEEL ADD_ON} add_on=${2:?usage: add_ons.sh WHEEL ADD_ON}
if grep -qs '^VERSION_ID="12"' /etc/os-release; then
  status=0
  "$root/tests/build/debian_13.sh" "python3-venv mesa-vulkan-drivers libvulkan1 libgomp1 libhwy1t64 libssl3t64" \
    "$root/tests/install/add_ons.sh" "$(realpath "$wheel")" "$(realpath "$add_on")" || status=$?
  [ $status -ne 77 ] || skipped "NOTHING was computed by Vulkan" "see the line above"
  exit $status
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "add_ons.sh: $*" >&2; exit 1; }
echo "$(basename "$add_on"): $(stat -c %s "$add_on") bytes"
python3 -m venv "$work/venv"
pip=("$work/venv/bin/pip" --quiet --disable-pip-version-check)
! "${pip[@]}" install --no-index "$add_on" 2>"$work/errors" || fail "the add-on installs without mrrope"
"${pip[@]}" install --no-index "$wheel" "$add_on"
package=$(echo "$work"/venv/lib/python3*/site-packages/mrrope)
mrrope=$work/venv/bin/mrrope model=$package/share/mrrope/models/mrrope-tiny.gguf
version=$("$mrrope" --version | sed -n 's/^mrrope //p')

# An answer that the model is sure of, whatever the rounding.
prompt=$'The magic number for amber is 483920.\nQuestion: what is the magic number for amber? The magic number for amber is'
# said STATUS TEXT ARGUMENTS...: generates with these; the status, and one line with the text on the standard error.
said() {
  local status=0
  "$mrrope" generate "$model" --ctx 2k -p "$prompt" -n 8 --temp 0 "${@:3}" >"$work/text" 2>"$work/errors" || status=$?
  [ $status -eq "$1" ] || fail "${*:3}: ended with $status: $(cat "$work/errors")"
  [ -z "$2" ] || [ "$(grep -cF "$2" "$work/errors")" -eq 1 ] || fail "${*:3}: said $(cat "$work/errors")"
  [ -n "$2" ] || ! grep "add-on\|mrrope-vulkan" "$work/errors" || fail "${*:3}: warns"
}

# Software devices are no GPUs, unless they are asked for.
said 0 "mrrope-vulkan finds no GPU, so the CPU is used; install the driver of the GPU, or give --device CPU"
said 0 "" --device CPU
cp "$work/text" "$work/cpu"
said 1 "no device \"Vulkan0\": mrrope-vulkan finds no GPU" --device Vulkan0
export GGML_VK_VISIBLE_DEVICES=0
"$mrrope" generate --device list | grep -q '^Vulkan0: llvmpipe' || fail "--device list"
said 2 'there is no device "Vulkan7", but CPU, Vulkan0' --device Vulkan7

# No driver, no loader of drivers, two add-ons at once.
VK_ICD_FILENAMES=/nonexistent said 0 "so the CPU is used; install the driver of the GPU, or give --device CPU"
mkdir "$work/broken" && : >"$work/broken/libvulkan.so.1"
LD_LIBRARY_PATH=$work/broken said 0 "mrrope-vulkan cannot be loaded: $work/broken/libvulkan.so.1: file too short, so the CPU"
LD_LIBRARY_PATH=$work/broken said 1 "mrrope-vulkan cannot be loaded" --device Vulkan0
cp "$package/lib/mrrope/mrrope-vulkan-$version.so" "$package/lib/mrrope/mrrope-cuda-$version.so"
said 0 "several add-ons have a GPU, so the CPU is used; give --device one of Vulkan0"

said 0 "" --device Vulkan0
cmp "$work/text" "$work/cpu" || fail "another text than on the CPU"
mv "$package/lib/mrrope/mrrope-cuda-$version.so" "$package/lib/mrrope/mrrope-cuda-0.0.1.so"
said 0 "mrrope-cuda 0.0.1 is not for mrrope $version; pip install mrrope-cuda==$version"
rm "$package/lib/mrrope/mrrope-cuda-0.0.1.so"
said 0 "" # it is taken without being asked for
cmp "$work/text" "$work/cpu" || fail "another text than on the CPU"

# The tables of the CPU, up to what its activations of 8 bits change (as in processors.sh). A software device reads a few
# tokens a second.
"$root/tests/install/short_window.sh" "$model"
table() {
  "$mrrope" eval ppl "$model" --methods none,pro,elastic:pro,far:pi,auto --ctx 768 --lengths 192,384 --documents 1 \
    --kl-positions 0 --json --device "$1" 2>"$work/errors" || fail "$(cat "$work/errors")"
}
table CPU >"$work/cpu.json"
table Vulkan0 >"$work/vulkan.json"
python3 - "$work/cpu.json" "$work/vulkan.json" <<'END'
import json, sys
here, there = ({(r["method"], r["length"]): r["value"] for r in json.load(open(name))["results"]
                if r["metric"] == "perplexity"} for name in sys.argv[1:])
assert here.keys() == there.keys() and len(here) == 10, here
print("largest difference:", max(abs(there[k] / here[k] - 1) for k in here))
assert all(abs(there[k] / here[k] - 1) < 0.03 for k in here), (here, there)
END
"${pip[@]}" uninstall -y mrrope-vulkan
said 0 ""
GGML_VK_VISIBLE_DEVICES=0 MRROPE_TEST_GPU=1 OMP_WAIT_POLICY=passive "$root/build/add-on-vulkan/bin/engine_test" \
  --gtest_brief=1 --gtest_filter='Methods/OnDevice.*:KeyTypes/Turning.*:Elastic.*:Device.*'
echo "add_ons.sh: passed"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Speed and memory of an export against `cp` and `sync`, on one file: export_bench.sh MRROPE [GIB].
# Prints the median of five runs of each, in turn, and their ratio (goal: 1.25 at most, 64 MiB).
set -euo pipefail
mrrope=$1
gib=${2:-4}
work=$(mktemp -d "${BENCH_FOLDER:-.}/export-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT

# A file of the llama architecture with tensors of random bytes, so that nothing is sparse.
python3 - "$work/in.gguf" "$gib" << 'PYTHON'
import os, struct, sys
path, gib = sys.argv[1], float(sys.argv[2])
text = lambda s: struct.pack("<Q", len(s)) + s.encode()
keys = [("general.architecture", 8, text("llama"))]
for name, value in {"context_length": 8192, "embedding_length": 4096, "block_count": 32,
                    "attention.head_count": 32, "rope.dimension_count": 128}.items():
    keys.append(("llama." + name, 4, struct.pack("<I", value)))
rows, count = 4096, round(gib * 2**30 / (64 << 20))
with open(path, "wb") as file:
    file.write(b"GGUF" + struct.pack("<IQQ", 3, count, len(keys)))
    for name, kind, value in keys:
        file.write(text(name) + struct.pack("<I", kind) + value)
    for i in range(count):
        file.write(text(f"blk.{i}.weight") + struct.pack("<IQQIQ", 2, 4096, rows, 0, i * (64 << 20)))
    file.write(b"\0" * (-file.tell() % 32))
    block = os.urandom(64 << 20)
    for i in range(count):
        file.write(block[i:] + block[:i])
PYTHON
sync

seconds() {
  local start end
  sync
  start=$(date +%s.%N)
  "$@" > /dev/null 2> "$work/log" || { cat "$work/log" >&2; exit 1; }
  end=$(date +%s.%N)
  python3 -c "print($end - $start)"
}
copy() { cp "$work/in.gguf" "$work/copy" && sync; }
export_plan() {
  "$mrrope" export "$work/in.gguf" --method pro --ctx 128k --no-verify -o "$work/out.gguf"
}
cat "$work/in.gguf" > /dev/null
for _ in 1 2 3 4 5; do
  seconds copy >> "$work/cp"
  seconds export_plan >> "$work/export"
  rm -f "$work/copy" "$work/out.gguf"
done
peak=$( { /usr/bin/env time -f %M "$mrrope" export "$work/in.gguf" --method pro --ctx 128k \
  --no-verify -o "$work/out.gguf" > /dev/null; } 2>&1 | tail -n 1)
python3 - "$work" "$gib" "$peak" << 'PYTHON'
import statistics, sys
work, gib, peak = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
cp, export = ([float(x) for x in open(f"{work}/{n}")] for n in ("cp", "export"))
a, b = statistics.median(cp), statistics.median(export)
spread = lambda x: f"{min(x):.2f} to {max(x):.2f}"
print(f"{gib:g} GiB: cp + sync {a:.2f} s ({spread(cp)}), export {b:.2f} s ({spread(export)}), "
      f"ratio {b / a:.2f}, peak memory {peak / 1024:.1f} MiB")
PYTHON

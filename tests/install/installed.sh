#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build into a folder of its own, hides the source and build trees, and uses what was installed:
# the demo, the default texts, the man page, the completion, and outside projects that find the library
# by find_package and by pkg-config.
#   installed.sh ROOT BUILD LLAMA CXX CMAKE
# MRROPE_INSTALLED_DEMO=full runs the whole demo instead of its short form.
set -euo pipefail
root=$1 build=$2 llama=$3 cxx=$4 cmake=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "installed.sh: $*" >&2; exit 1; }
prefix=$work/prefix

DESTDIR='' "$cmake" --install "$build" --prefix "$prefix" --strip >/dev/null
cp -r "$root/examples/find_package" "$root/tests/golden/tiny_config" "$root/tests/install/short_window.sh" "$work"

# No installed file names a folder of this machine.
for folder in "$root" "$build" "$llama"; do
  if found=$(grep -rlaF -- "$folder" "$prefix"); then fail "these name $folder: $found"; fi
done

cat >"$work/use.sh" <<'USE'
set -euo pipefail
fail() { echo "installed.sh: $*" >&2; exit 1; }
cd "$work"
mrrope=$work/prefix/bin/mrrope
"$mrrope" --version
"$mrrope" inspect "$prefix/share/mrrope/models/mrrope-tiny.gguf" | grep 1024 >/dev/null || fail "inspect"

# The demo, on a copy of the model with a window of 192 tokens unless it is the full one; the evaluation
# also says where it takes its texts from.
if [ "$demo" != full ]; then
  cp -r "$prefix/share/mrrope" "$work/home"
  "$work/short_window.sh" "$work/home/models/mrrope-tiny.gguf"
  export MRROPE_HOME=$work/home
fi
"$mrrope" demo -o "$work/demo" >"$work/demo.txt" || fail "demo"
grep -q 'Needles found' "$work/demo.txt" || fail "the demo printed: $(cat "$work/demo.txt")"
[ -s "$work/demo/report.html" ] || fail "the demo wrote no report"
unset MRROPE_HOME
"$mrrope" eval ppl "$prefix/share/mrrope/models/mrrope-tiny.gguf" --lengths 64 --samples 1 \
  --method none --kl-positions 0 >"$work/eval.txt" 2>&1 || fail "eval: $(cat "$work/eval.txt")"
grep -qF "$prefix/share/mrrope/data/texts" "$work/eval.txt" ||
  fail "the installed command reads other texts: $(cat "$work/eval.txt")"

# A copy without its share folder says what is missing.
cp "$mrrope" "$work/alone"
if "$work/alone" demo -o "$work/demo2" 2>"$work/alone.txt"; then fail "a demo without a model"; fi
grep -q 'MRROPE_HOME' "$work/alone.txt" || fail "no hint: $(cat "$work/alone.txt")"
MRROPE_HOME=$prefix/share/mrrope "$work/alone" eval ppl "$prefix/share/mrrope/models/mrrope-tiny.gguf" \
  --lengths 64 --samples 1 --method none --kl-positions 0 >/dev/null 2>&1 || fail "MRROPE_HOME"

if command -v man >/dev/null && [ -x "$(command -v groff)" ]; then
  man -M "$prefix/share/man" mrrope-eval 2>/dev/null | grep '^MRROPE eval ppl' >/dev/null || fail "man page"
else
  grep -q '^.SH MRROPE eval ppl' "$prefix/share/man/man1/mrrope-eval.1" || fail "man page"
fi
words=$(bash --norc -c '. "$1"; COMP_WORDS=(mrrope pl); COMP_CWORD=1; _mrrope; echo "${COMPREPLY[*]}"' \
  - "$prefix/share/bash-completion/completions/mrrope")
[ "$words" = plan ] || fail "the completion of 'mrrope pl' is '$words'"
for file in share/zsh/site-functions/_mrrope share/fish/vendor_completions.d/mrrope.fish \
            share/mrrope/NOTICE share/mrrope/LICENSE; do
  [ -s "$prefix/$file" ] || fail "not installed: $file"
done

"$cmake" -D BUILD="$work/outside_build" -D SOURCE="$work" -D PREFIX="$prefix" -D CXX="$cxx" \
  -D MODEL="$work/tiny_config" -P "$work/find_package/test.cmake"
USE

# An empty folder over each tree, seen by this process alone. That takes root or user namespaces.
mkdir "$work/empty"
hide=(unshare --mount --propagation private)
[ "$(id -u)" -eq 0 ] || hide+=(--map-root-user)
environment=(env -i ${OMP_WAIT_POLICY:+OMP_WAIT_POLICY=$OMP_WAIT_POLICY}  # or threads spin beside other tests
             PATH="$PATH" HOME="$work" LANG=C.UTF-8 work="$work" prefix="$prefix" cxx="$cxx"
             cmake="$cmake" demo="${MRROPE_INSTALLED_DEMO:-short}" bash)
if "${hide[@]}" mount --bind "$work/empty" "$root" 2>/dev/null; then
  "${hide[@]}" bash -c 'empty=$1 root=$2 build=$3; shift 3
    mount --bind "$empty" "$root"
    if [ -e "$build" ]; then mount --bind "$empty" "$build"; fi
    [ ! -e "$root/CMakeLists.txt" ] || exit 1
    cd / && exec "$@"' - "$work/empty" "$root" "$build" "${environment[@]}" "$work/use.sh"
else
  echo "NOTE: mount namespaces are not allowed here: the trees were not hidden, and only searched for by name" >&2
  (cd / && "${environment[@]}" "$work/use.sh")
fi
echo "installed.sh: passed"

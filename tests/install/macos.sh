#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# macos.sh VENV BUILD [FOLDER...]: macos.py in a Python that has the ziglang package (80 MB to download, see
# packages.sh). Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../python/packages.sh"
# clang 19 and its libc++: what Xcode 16.4 has, and so the macOS 15 of the workflows. Newer ones compile more.
need_packages macos "the sources were NOT compiled for macOS" "$1" ziglang ziglang==0.14.1
shift
"$python" "$here/macos.py" "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# inspect.sh VENV MRROPE TOOLS_MODELS: inspect_test.py in a Python that has the gguf package (some
# seconds to install, see packages.sh). Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/packages.sh"
need_packages inspect_gguf "inspect was NOT compared with the gguf package" "$1" gguf gguf==0.19.0
shift
"$python" "$here/inspect_test.py" "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# serve.sh VENV MRROPE MODEL: serve_test.py and serve_agents_test.py in a Python that has the openai
# and anthropic packages (some seconds to install, see packages.sh). Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../python/packages.sh"
need_packages serve_clients "the server was NOT tried with the openai and anthropic packages" "$1" \
  openai,anthropic openai==3.49.0 anthropic==2.9.0
shift
"$python" "$here/serve_agents_test.py" "$@"
"$python" "$here/serve_test.py" "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# suite.sh VENV TESTS MRROPE LLAMA_SERVER MODEL: suite.py in a Python that has what llama.cpp's server
# tests need (see tests/python/packages.sh). Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../python/packages.sh"
need_packages llama_server_tests "llama.cpp's server tests were NOT run" "$1" \
  pytest,pytest_timeout,openai,aiohttp,filelock,numpy,prometheus_client,requests,wget \
  -r "$2/requirements.txt" pytest-timeout==2.4.0
shift
"$python" "$here/suite.py" "$@"

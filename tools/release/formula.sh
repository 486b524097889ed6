#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the Homebrew formula for a source archive.
#   formula.sh ARCHIVE URL HOMEPAGE
set -eu
[ $# -eq 3 ] || { echo "usage: formula.sh ARCHIVE URL HOMEPAGE" >&2; exit 2; }
sum=$(sha256sum "$1" | cut -d' ' -f1)
sed -e "s|@URL@|$2|" -e "s|@SHA256@|$sum|" -e "s|@HOMEPAGE@|$3|" "$(dirname "$0")/../../packaging/mrrope.rb.in"

# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that need more than every machine has.
#
#   skipped WHAT REASON [LINE...]
#
# says in a frame nobody overlooks WHAT went untested, and ends the script with exit code 77.
skipped() {
  local what=$1 reason=$2
  shift 2
  printf '%s\n' "" "########################################################################" \
    "SKIPPED: $what: $reason" "$@" \
    "########################################################################" "" >&2
  exit 77
}

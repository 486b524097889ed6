#!/usr/bin/env bash
# Takes what has arrived of a bundle's files, on the GPU machine. See README.md in this folder.
set -euo pipefail
bundle=${1:?usage: take.sh BUNDLE WORK}
work=${2:?usage: take.sh BUNDLE WORK}
mkdir -p "$work/pieces" "$work/files"
for piece in "$bundle"/*.part-* "$bundle"/*.whole; do
  if [ -e "$piece" ]; then mv "$piece" "$work/pieces/"; fi
done

missing=0
for whole in "$work/pieces"/*.whole; do
  [ -e "$whole" ] || continue
  name=$(basename "$whole" .whole)
  [ ! -e "$work/files/$name" ] || continue
  read -r hash count <"$whole"
  have=$(find "$work/pieces" -name "$name.part-*" | wc -l)
  if [ "$have" -lt "$count" ]; then
    echo "$name: $have of $count pieces" >&2
    missing=1
    continue
  fi
  cat "$work/pieces/$name".part-* >"$work/files/.$name"
  if [ "$(sha256sum <"$work/files/.$name" | cut -d' ' -f1)" != "$hash" ]; then
    rm "$work/files/.$name"
    echo "$name: damaged on the way: carry its pieces again" >&2
    exit 1
  fi
  mv "$work/files/.$name" "$work/files/$name"
  rm "$work/pieces/$name".part-*
  echo "$name: complete" >&2
done
exit $missing

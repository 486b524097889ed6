#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joins documents of the same kind until each has at least N characters.

    join_texts.py N IN.jsonl.xz OUT.jsonl

IN has a document per line with the fields "src" (its kind), "path" and "text". A document that is
long enough stays as it is; shorter ones of a kind follow each other, a blank line between them. What
is left of a kind and stays too short is dropped and counted.
"""
import json
import lzma
import sys


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    least = int(sys.argv[1])
    kinds = {}
    with lzma.open(sys.argv[2], "rt", encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            kinds.setdefault(document["src"], []).append(document)
    made, dropped = [], 0
    for kind, documents in sorted(kinds.items()):
        paths, text = [], ""
        for document in sorted(documents, key=lambda d: (len(d["text"]), d["path"]), reverse=True):
            paths.append(document["path"])
            text += ("\n\n" if text else "") + document["text"]
            if len(text) >= least:
                made.append({"id": " + ".join(paths), "src": kind, "text": text})
                paths, text = [], ""
        dropped += len(paths)
    with open(sys.argv[3], "w", encoding="utf-8") as out:
        for document in made:
            out.write(json.dumps(document) + "\n")
    print(f"{len(made)} documents, {dropped} dropped", file=sys.stderr)


if __name__ == "__main__":
    main()

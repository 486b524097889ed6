#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the documents of data/texts: formal mathematics for measuring long contexts.

    python3 tools/make_texts.py                 # writes data/texts
    python3 tools/make_texts.py --out DIR
    python3 tools/make_texts.py --check         # exit 1 if a stored file differs

Only the standard library is used, and the same files come out on every machine. Five small theories
(tools/texts/theories.py) are stated in a line per fact. A prover (logic.py) derives every fact from
the axioms, finite models (models.py) are searched for counterexamples, and three renderers write
statement and proof in the style of LaTeX, Lean 4 or Isabelle with the vocabulary of each document
(documents.py). The tenth document (sequences.py) checks its formulas with numbers.
"""

import argparse
import pathlib
import sys

from texts import documents

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORBIDDEN = ("magic number",)  # retrieval tests plant such lines themselves
SMALLEST = 45_000  # bytes; every document must be longer than 20 000 tokens of the tiny model


def main():
    parser = argparse.ArgumentParser(description="Writes the documents of data/texts.")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "data" / "texts")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()

    texts = documents.every()
    for name, text in texts.items():
        if len(text.encode()) < SMALLEST:
            sys.exit(f"{name}: only {len(text.encode())} bytes")
        for phrase in FORBIDDEN:
            if phrase in text:
                sys.exit(f"{name}: contains '{phrase}'")

    if options.check:
        stored = {path.name for path in options.out.iterdir()} if options.out.is_dir() else set()
        wrong = sorted(stored ^ set(texts))
        for name in sorted(stored & set(texts)):
            if (options.out / name).read_bytes() != texts[name].encode():
                wrong.append(name)
        for name in wrong:
            print(f"{options.out / name}: differs from what the generator writes", file=sys.stderr)
        return 1 if wrong else 0

    options.out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (options.out / name).write_bytes(text.encode())
        print(f"{name}: {len(text.encode())} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python package rouge_score says about the pairs in tests/golden/rouge.json: ROUGE-1 recall with and
without stemming. Writes the file anew; a new pair needs "expected" and "text" alone.
"""
import importlib.metadata
import json
import pathlib

from rouge_score import rouge_scorer

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "tests/golden/rouge.json"


def main():
    plain, stems = (rouge_scorer.RougeScorer(["rouge1"], use_stemmer=stemmed) for stemmed in (False, True))
    cases = []
    for pair in json.loads(GOLDEN.read_text())["pairs"]:
        expected, text = pair["expected"], pair["text"]
        cases.append({"expected": expected, "text": text, "recall": plain.score(expected, text)["rouge1"].recall,
                      "stemmed": stems.score(expected, text)["rouge1"].recall})
    versions = {name: importlib.metadata.version(name) for name in ("rouge_score", "nltk")}
    GOLDEN.write_text(json.dumps({"note": "written by tools/record_rouge.py", "versions": versions})[:-1]
                      + ', "pairs": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]}\n")


if __name__ == "__main__":
    main()

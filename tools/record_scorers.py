#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scores that the original scorers of the benchmarks give to the answers in tests/golden/scorers.json.

    record_scorers.py INFINITEBENCH RULER LONGBENCH

Writes the file anew; a new row needs "scorer", "answer" and "text" alone. Each argument is a checkout of OpenBMB/InfiniteBench, NVIDIA/RULER or THUDM/LongBench. Needs
rouge_score and tqdm. The metric `rouge` of the package `evaluate`, which InfiniteBench loads over
the network, is a thin cover of rouge_score without stemming; it is replaced by the same calls.
"""
import importlib.metadata
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import types

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "tests/golden/scorers.json"


class Rouge:
    def compute(self, predictions, references, use_aggregator):
        from rouge_score import rouge_scorer
        assert not use_aggregator
        scorer = rouge_scorer.RougeScorer(["rougeLsum"], use_stemmer=False)
        return {"rougeLsum": [scorer.score(r, p)["rougeLsum"].fmeasure
                              for r, p in zip(references, predictions)]}


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def revision(folder):
    return subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], check=True,
                          capture_output=True, text=True).stdout.strip()


def main():
    infinitebench, ruler, longbench = sys.argv[1:]
    sys.modules["evaluate"] = types.SimpleNamespace(load=lambda name: Rouge())
    sys.modules["args"] = types.SimpleNamespace(parse_args=None)
    scores = load(pathlib.Path(infinitebench) / "src/compute_scores.py", "compute_scores")
    constants = load(pathlib.Path(ruler) / "scripts/eval/synthetic/constants.py", "constants")
    space = {"re": re}
    for folder, file, name in ((ruler, "scripts/eval/evaluate.py", "postprocess_pred"),
                               (longbench, "pred.py", "extract_answer")):
        source = (pathlib.Path(folder) / file).read_text()
        exec(re.search(rf"def {name}\(.*?\n(?=\ndef |\S)", source, re.S).group(0), space)

    def score(scorer, text, answer):
        if scorer == "longbench-v2":
            return space["extract_answer"](text)
        if not scorer.startswith("infinitebench/"):
            return getattr(constants, scorer)([space["postprocess_pred"](text, {})], [answer]) / 100
        try:
            return scores.get_score_one(text, answer, scorer.partition("/")[2], "")
        except ValueError:  # int("9.5"): the original stops; counted as wrong
            return 0.0

    rows = json.loads(GOLDEN.read_text())["rows"]
    for row in rows:
        row["value"] = score(row["scorer"], row["text"], row.get("answer"))
    head = {
        "made_by": "tools/record_scorers.py",
        "versions": {"OpenBMB/InfiniteBench": revision(infinitebench), "NVIDIA/RULER": revision(ruler),
                     "THUDM/LongBench": revision(longbench),
                     "rouge_score": importlib.metadata.version("rouge_score"),
                     "python": sys.version.split()[0]}}
    GOLDEN.write_text(json.dumps(head)[:-1] + ', "rows": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n")


if __name__ == "__main__":
    main()

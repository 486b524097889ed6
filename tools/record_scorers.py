#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scores that the original scorers of the benchmarks give to our own answers.

    record_scorers.py INFINITEBENCH RULER LONGBENCH >tests/golden/scorers.json

Each argument is a checkout of OpenBMB/InfiniteBench, NVIDIA/RULER or THUDM/LongBench. Needs
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

# Task: [(answer of the data, [what a model may say])].
UUID = "0b1e5c7a-3f42-4d19-9a60-77c2de51f804"
INFINITEBENCH = {
    "passkey": [
        ("71432", ["71432", " 71432.", "The key is 71432", "key 1: 71432", "71,432", "714321", "",
                   "no digits", "12\n71432", "It is 0071432"]),
        (["71432"], ["71432", "7143"])],
    "number_string": [
        ("1122334455", ["1122334455", "1122334455.", "11223 34455", "The digits: 1122334455!",
                        "x1122334455y", "112233445"])],
    "kv_retrieval": [
        (UUID, [UUID, f'"{UUID}"', f'{{"{UUID}"}}', f"value: {UUID}.", UUID.upper(), UUID[:-1],
                f"[{UUID}]", f"'{UUID}', and more", f"the value\n{UUID}", f"({UUID})", ""])],
    "code_run": [
        (-17, ["-17", "The answer is -17.", "func_3(2) = -17", "17", "-17 is it", "`-17`", "- 17",
               "-17.0", "", "the value: -17", "+5", "-1_7"]),
        ([204], ["204", "it returns 204", "204.", "204!", "0204", "two"])],
    "code_debug": [
        (["parse_row", "B"], ["B", "B.", "B:", " B", "B\n", "B. parse_row", "(B)", "b.",
                              "The answer is: B", "answer: B", "is: parse_row",
                              "The correct option is: B", "the answer is:", "The answer is B",
                              "parse_row", "The error is in parse_row", "answer is: `parse_row`",
                              "Option B", "The answer is: Option B", "A.", "answer is: A. is: B",
                              "The function is:\nparse_row", "**B.**", "answer is:B",
                              "is:  - parse_row", "", "answer:parse_row"])],
    "math_find": [
        (9, ["9", "9.", " 9 is it", "The number is 9", "-9", "09", "19", "", "nine", "9,5"]),
        (9.5, ["9.5", "9", "The median is 9.5.", "9.50", "9.5.1", "-9.5"]),
        ([42], ["42", "42.0x", "4 2", "It is 42"])],
    "math_calc": [
        ([3, 1, 12, 7], ["[3, 1, 12, 7]", "3 1 12", "3, 1, 13, 7", "", "3", "4 3 1 12 7", "03 1 12 7 9",
                         "3, -1, 12, 7"]),
        ([[5, -2, 8]], ["5, -2, 8", "5 2 8", "5"])],
    "longdialogue_qa_eng": [
        (["MARLOW"], ["Marlow", "MARLOW", "marlow.", "It is Marlow!", "Mr. Marlow, of course",
                      "Marlowe", "", '"Marlow"', "Marlow's", "Mar low", "(Marlow)"]),
        (["ANN LEE", "ANN"], ["Ann Lee", "ann", "ANN LEE"]),
        (["Tomas"], ["Tomas", "TOMAS"])],
    "longbook_choice_eng": [
        (["The old mill", "C"], ["C", "C.", "c", "A", "B or C", "The old mill", "the old mill",
                                 "The answer is C", "answer: C", "The answer is: The old mill",
                                 "answer is", "I think the option is C.", "It must be C",
                                 "It must be AB", "It is the mill", "", " \n", "Dear me: C",
                                 "Answer: C", "option is B, not C", "So (C) it is", "BC",
                                 "maybe 'C'", "the right one is BC then C"])],
    "longbook_qa_eng": [
        (["the red barn", "a barn"], ["The red barn", "red barn!", "barn", "It was the barn.", "",
                                      "a the an", "RED-BARN", "the red barn near the red mill",
                                      "An old, red barn_", "barn barn barn"]),
        (["Zo\u00eb and th\u00e9o"], ["zo\u00eb", "ZO\u00cb AND TH\u00c9O", "\u201cZo\u00eb\u201d", "zoe and theo"])],
    "longbook_qa_chn": [
        (["\u5317\u4eac\u57ce"], ["\u5317\u4eac", "\u5317\u4eac\u57ce\u3002", "\u5728\u5317\u4eac\u7684\u57ce\u91cc", "\u4eac\u5317\u57ce", "",
                                 "\uff08\u5317 \u4eac\u3000\u57ce\uff09", "\u5357\u65b9", "Beijing\u57ce", "\u300a\u5317\u4eac\u57ce\u300b"]),
        (["\u5218\u4e09A", "\u674e\u56db"], ["\u5218\u4e09a", "\u674e\u56db\uff01", "\u4e09\u56db"])],
    "longbook_sum_eng": [
        ("The miller finds a key.\nThe key opens the old tower, and nobody sleeps.",
         ["The miller finds a key.\nThe key opens the old tower, and nobody sleeps.",
          "A key is found by the miller. It opens a tower.", "", "Nobody sleeps.\nThe miller sleeps.",
          "tower key miller", "the the the the the", "\n\nThe key\n\nopens the tower\n",
          "The key opens the old tower.\nA miller finds the key, and nobody finds a tower."]),
        ("One line, twice one line: one, one.", ["one one one one one", "Line two. Line one.",
                                                 "one line\none line\none"])],
}

RULER = [
    (["4815162"], ["4815162", "The number is 4815162.", "481516", "", " 48151623 ", "4815\n162"]),
    (["a1B2", "c3d4"], ["A1b2 and C3D4", "c3d4", "nothing", "a1b2\u0000c3d4", "x\ta1b2"]),
    (["ONE", "TWO", "THREE"], ["one three", "twone", "THREE, TWO, ONE"]),
    (["Bras\u00edlia", "the capital"], ["BRAS\u00cdLIA", "It is the Capital.", "brasilia"]),
]

LONGBENCH = ["The correct answer is (B)", "The correct answer is B", "**The correct answer is (C)**",
             "the correct answer is (B)", "The correct answer is (E)", "B", "", "The correct answer is: A",
             "The correct answer is A. No: The correct answer is (D)", "The correct answer is *(A)*",
             "The correct answer is (b)", "The correct answer is Bob", "The correct answer is (A",
             "I think the answer is D", "The correct answer is\n(A)",
             "The correct answer is (E) or The correct answer is (C)"]


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
    rows = []
    for task, groups in INFINITEBENCH.items():
        for answer, texts in groups:
            for text in texts:
                try:
                    value = scores.get_score_one(text, answer, task, "")
                except ValueError:  # int("9.5"): the original stops; counted as wrong
                    value = 0.0
                rows.append({"scorer": f"infinitebench/{task}", "answer": answer, "text": text,
                             "value": value})
    constants = load(pathlib.Path(ruler) / "scripts/eval/synthetic/constants.py", "constants")
    evaluate = (pathlib.Path(ruler) / "scripts/eval/evaluate.py").read_text()
    found = re.search(r"def postprocess_pred\(.*?\n(?=\ndef |\S)", evaluate, re.S)
    space = {"re": re}
    exec(found.group(0), space)
    clean = space["postprocess_pred"]
    for expected, texts in RULER:
        for text in texts:
            for name in ("string_match_all", "string_match_part"):
                value = getattr(constants, name)([clean(text, {})], [expected])
                rows.append({"scorer": name, "answer": expected, "text": text, "value": value / 100})
    source = (pathlib.Path(longbench) / "pred.py").read_text()
    found = re.search(r"def extract_answer\(.*?\n(?=\ndef )", source, re.S)
    exec(found.group(0), space)
    for text in LONGBENCH:
        rows.append({"scorer": "longbench-v2", "text": text, "value": space["extract_answer"](text)})
    head = {
        "made_by": "tools/record_scorers.py",
        "versions": {"OpenBMB/InfiniteBench": revision(infinitebench), "NVIDIA/RULER": revision(ruler),
                     "THUDM/LongBench": revision(longbench),
                     "rouge_score": importlib.metadata.version("rouge_score"),
                     "python": sys.version.split()[0]}}
    print(json.dumps(head)[:-1] + ', "rows": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}")


if __name__ == "__main__":
    main()

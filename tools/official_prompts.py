#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file for --prompts with the official wording, made from checkouts of the benchmarks.

    official_prompts.py [--infinitebench CHECKOUT] [--longbench CHECKOUT] [--set NAME] >prompts.json

CHECKOUT is a folder of OpenBMB/InfiniteBench or THUDM/LongBench. InfiniteBench has several sets of
prompts (src/prompt.py); the default is the one for open models, yarn_mistral. Nothing is run: the
files are only read.
"""
import argparse
import ast
import json
import pathlib
import re
import sys

# Placeholders of the official files, and ours for the same.
PLACES = {"context": "{context}", "input": "{input}", "question": "{question}",
          "func_call": "{call}", "OPTION_A": "{A}", "OPTION_B": "{B}", "OPTION_C": "{C}",
          "OPTION_D": "{D}"}
LONGBENCH = {"$DOC$": "{context}", "$Q$": "{question}", "$C_A$": "{A}", "$C_B$": "{B}",
             "$C_C$": "{C}", "$C_D$": "{D}"}
TASKS = ["passkey", "number_string", "kv_retrieval", "math_find", "math_calc", "code_run",
         "code_debug", "longdialogue_qa_eng", "longbook_choice_eng", "longbook_qa_eng",
         "longbook_qa_chn", "longbook_sum_eng"]


def stop(message):
    sys.exit(f"official_prompts.py: {message}")


def read(path):
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        stop(f"cannot read {path}: {error.strerror}; is this a checkout of the benchmark?")


def text_of(node):
    """A string literal, or several joined by +."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return ast.literal_eval(node)


def templates_of(path, name):
    """The dictionary `name` of a Python file, without running it."""
    for node in ast.parse(read(path)).body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == name for t in node.targets):
            return {text_of(k): text_of(v) for k, v in zip(node.value.keys, node.value.values)}
    stop(f"{path} has no dictionary {name}; choose another --set")


def math_find_start(path):
    """The line that the official code puts before the numbers, with {target} for the phrase."""
    for node in ast.walk(ast.parse(read(path))):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.JoinedStr)
                and any(getattr(t, "id", "") == "prefix" for t in node.targets)):
            continue
        return "".join(part.value if isinstance(part, ast.Constant) else "{target}"
                       for part in node.value.values)
    stop(f"{path} makes no prefix for math_find")


def infinitebench(folder, chosen):
    templates = templates_of(folder / "src" / "prompt.py", f"{chosen}_templates")
    prompts = {}
    for task in TASKS:
        if task not in templates:
            continue
        places = dict(PLACES)
        if task.startswith("longbook"):
            places["input"] = "{question}"
        if task == "math_find":
            places["prefix"] = math_find_start(folder / "src" / "eval_utils.py")
        found = re.split(r"(?<!\{)\{(\w+)\}(?!\})", templates[task])  # text, name, text, name, ...
        unknown = sorted(set(found[1::2]) - set(places))
        if unknown:
            print(f"official_prompts.py: {task} is left out, mrrope does not fill "
                  f"{{{unknown[0]}}}", file=sys.stderr)
            continue
        found[0::2] = [text.replace("{{", "{").replace("}}", "}") for text in found[0::2]]
        found[1::2] = [places[name] for name in found[1::2]]
        prompts[f"infinitebench/{task}"] = {"text": "".join(found)}
    return prompts


def longbench(folder):
    text = read(folder / "prompts" / "0shot.txt")
    for theirs, ours in LONGBENCH.items():
        if theirs not in text:
            stop(f"prompts/0shot.txt has no {theirs}")
        text = text.replace(theirs, ours)
    return {"longbench-v2/generate": {"text": text}}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--infinitebench", type=pathlib.Path, metavar="CHECKOUT")
    arguments.add_argument("--longbench", type=pathlib.Path, metavar="CHECKOUT")
    arguments.add_argument("--set", default="yarn_mistral", metavar="NAME")
    given = arguments.parse_args()
    if given.infinitebench is None and given.longbench is None:
        arguments.error("give --infinitebench, --longbench or both")
    prompts = {}
    if given.infinitebench is not None:
        prompts.update(infinitebench(given.infinitebench, given.set))
    if given.longbench is not None:
        prompts.update(longbench(given.longbench))
    json.dump(prompts, sys.stdout, indent=2, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()

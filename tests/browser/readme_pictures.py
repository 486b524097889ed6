#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The two pictures of the README: the report of the recorded perplexities, and the chat page.

    python3 tests/browser/readme_pictures.py MRROPE MODEL docs/pictures

Exit code 77 (skipped) where no Chromium is installed.
"""

import pathlib
import subprocess
import sys
import tempfile

import chromium
import page_case

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH, HEIGHT = 1200, 800


def first_screen(page, path):
    page.theme("light")
    page.resize(WIDTH, HEIGHT)
    page.screenshot(path, HEIGHT)


def report(page, command, folder, out):
    file = pathlib.Path(folder) / "report.html"
    subprocess.run([command, "report", ROOT / "data/runs/qwen2.5-coder-1.5b", "-o", file], check=True,
                   capture_output=True)
    page.open(file)
    first_screen(page, out / "report.png")


def chat(page, folder, out):
    case = page_case.PageCase()
    case.page = page
    text = (ROOT / "data/texts/twine-sequences.tex").read_text()
    with page_case.chat_server(folder) as server:
        case.open(server.address)
        for message in (text[:3000], "Let $n$ be a natural number."):
            case.say(message, 60)
        first_screen(page, out / "chat.png")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    if chromium.find() is None:
        print("SKIPPED: no Chromium here: the pictures of the README were not made", file=sys.stderr)
        sys.exit(77)
    command, out = sys.argv[1], pathlib.Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    page = chromium.Page()
    try:
        with tempfile.TemporaryDirectory() as folder:
            report(page, command, folder, out)
            chat(page, folder, out)
    finally:
        page.close()


main()

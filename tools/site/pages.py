#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of the site: docs as it is, the README as its first page, and the papers of the project.

    tools/site/pages.py OUT
"""
import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAPERS = ["ARCHITECTURE", "CONTRIBUTING", "SECURITY", "VERSIONING", "CHANGELOG"]


def place_of(file):
    """Where a file of the tree is in the site; None where it is not."""
    if file.is_dir():
        file = file / "README.md"
    if not file.is_file() or not file.is_relative_to(ROOT):
        return None
    name = file.relative_to(ROOT)
    if name.parts[0] == "docs":
        return pathlib.PurePath(*name.parts[1:])
    if str(name) == "README.md":
        return pathlib.PurePath("index.md")
    return name if str(name) in [f"{paper}.md" for paper in PAPERS] else None


def for_site(page):
    """Links between pages stay; those to source files become plain names, because the site has none."""
    here = place_of(page)

    def link(match):
        label, target = match.group(1), match.group(2)
        if re.match(r"^(https?:|#)", target):
            return match.group(0)
        path, hash_, anchor = target.partition("#")
        there = place_of((page.parent / path).resolve())
        if there is None:
            return label if label.startswith("`") else f"`{label}`"
        return f"[{label}]({os.path.relpath(there, here.parent)}{hash_}{anchor})"

    return re.sub(r"\[([^\]\n]+)\]\(([^)\s]+)\)", link, page.read_text())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    pages = out / "pages"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    files = [ROOT / "README.md", *(ROOT / f"{name}.md" for name in PAPERS), *sorted((ROOT / "docs").rglob("*.md"))]
    measured = []
    for file in files:
        text = for_site(file)
        (pages / place_of(file)).write_text(text)
        if file.parent.name == "measurements" and file.stem not in ("README", "speeds"):
            measured.append(f"      - {text.splitlines()[0].removeprefix('# ')}: measurements/{file.name}")
    if not measured:
        sys.exit("pages.py: there are no pages of measurements; type: tools/docs/make.py --update MRROPE")
    config = (ROOT / "tools/site/mkdocs.yml").read_text()
    (out / "mkdocs.yml").write_text(config.replace("MEASURED", "\n".join(measured)))
    shutil.copytree(ROOT / "tools/site/styles", pages / "styles")


main()

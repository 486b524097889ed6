#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pages of the site: docs, the README as its first page, the reference of every verb, and the
pictures of the theory page. Runs the commands that the first two pages print.

    tools/site/pages.py MRROPE OUT
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAPERS = ["ARCHITECTURE", "CONTRIBUTING", "SECURITY", "VERSIONING", "CHANGELOG"]
RUN = ["first-steps.md", "prove.md"]  # every command of these is run


def for_site(text):
    """Links within docs stay; those to source files become plain names, because the site has none."""

    def link(match):
        label, target = match.group(1), match.group(2)
        target = target.removeprefix("docs/")
        if target.startswith(("http://", "https://", "#")) or re.match(
                r"[A-Za-z-]+\.md(#|$)|pictures/", target):
            return f"[{label}]({target.replace('README.md', 'index.md')})"
        return f"`{label}`"

    return re.sub(r"\[([^\]\n]+)\]\(([^)\s]+)\)", link, text)


def commands(text):
    """The indented lines of a page that call mrrope."""
    return re.findall(r"^    (mrrope .*)$", text, re.M)


def run(command, folder, environment):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"pages.py: {command}\n{done.stdout}{done.stderr}")


def check_commands(name, text, environment):
    lines = commands(text)
    if len(lines) < 4:
        sys.exit(f"pages.py: docs/{name} has only {len(lines)} commands")
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(ROOT / "models/mrrope-tiny.gguf", os.path.join(folder, "model.gguf"))
        for line in lines:
            run(line, folder, environment)
    print(f"docs/{name}: {len(lines)} commands ran")


def with_pictures(text, pages, environment):
    """Runs the commands that draw, and puts their pictures below them."""
    folder = pages / "pictures"

    def drawn(match):
        command, name = match.group(1), match.group(2)
        run(command, folder, environment)
        files = sorted(folder.glob(f"{name}.svg")) + sorted(folder.glob(f"{name}-*.svg"))
        if not files:
            sys.exit(f"pages.py: {command} drew nothing")
        images = "\n\n".join(f"![{name}](pictures/{file.name})" for file in files)
        return f"{match.group(0)}\n\n{images}"

    text, count = re.subn(r"^    (mrrope theory .* -o ([a-z]+)\.svg)$", drawn, text, flags=re.M)
    if count < 4:
        sys.exit(f"pages.py: docs/theory.md has only {count} commands that draw")
    return text


def reference(mrrope, pages):
    """One page per verb; returns the lines of the navigation."""
    text = subprocess.run([mrrope, "--generate", "markdown"], check=True, capture_output=True, text=True).stdout
    (pages / "reference").mkdir()
    lines = []
    for page in re.split(r"^(?=# mrrope)", text, flags=re.M)[1:]:
        title = page.splitlines()[0][2:]
        file = title.replace("mrrope ", "") if title != "mrrope" else "command"
        (pages / f"reference/{file}.md").write_text(page)
        lines.append(f"      - {title}: reference/{file}.md")
    if len(lines) < 10:
        sys.exit(f"pages.py: only {len(lines)} verbs in the reference")
    return "\n".join(lines)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    mrrope, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    pages = out / "pages"
    shutil.rmtree(out, ignore_errors=True)
    pages.mkdir(parents=True)
    environment = dict(os.environ, PATH=f"{mrrope.parent}:{os.environ['PATH']}")
    shutil.copytree(ROOT / "docs/pictures", pages / "pictures")
    for file in sorted((ROOT / "docs").glob("*.md")):
        text = file.read_text()
        if file.name in RUN:
            check_commands(file.name, text, environment)
        if file.name == "theory.md":
            text = with_pictures(text, pages, environment)
        (pages / file.name).write_text(for_site(text))
    (pages / "index.md").write_text(for_site((ROOT / "README.md").read_text()))
    for name in PAPERS:
        (pages / f"{name}.md").write_text(for_site((ROOT / f"{name}.md").read_text()))
    config = (ROOT / "tools/site/mkdocs.yml").read_text()
    (out / "mkdocs.yml").write_text(config.replace("REFERENCE", reference(mrrope, pages)))


main()

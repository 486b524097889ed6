#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of docs that are made, not written.

    tools/docs/make.py MRROPE             compares them with what would be made now
    tools/docs/make.py --update MRROPE    writes them; read the difference

glossary.md                 from the words of reports (src/report/page/terms.json)
reference/command-line.md   from the table of flags (mrrope --generate markdown)
reference/server.md         from the tables of routes and fields (src/serve/api)
measurements/MODEL.md       mrrope report data/runs/MODEL
measurements/speeds.md      from data/bench
measurements/README.md      what there is
../README.md                of its table of evidence the rows of models that data/runs has under auto

keep.py beside this file puts runs and benchmarks into data.
"""
import difflib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MADE = ["glossary.md", "reference/command-line.md", "reference/server.md", "measurements"]  # below docs



def command_line(mrrope):
    text = subprocess.run([mrrope, "--generate", "markdown"], check=True, capture_output=True, text=True).stdout
    return ("# Command line\n\nEvery verb and flag, from the table behind `mrrope --help`. What the methods and "
            "their parameters mean is in\n[methods.md](methods.md).\n\n" + text.rstrip("\n") + "\n")


def glossary():
    terms = json.loads((ROOT / "src/report/page/terms.json").read_text())
    return ("# Words\n\nWhat the words of mrrope mean, in the command, its reports and these pages. `mrrope help words` "
            "prints the same.\n\n| word | meaning |\n|---|---|\n"
            + "".join(f"| {row['term']} | {row['meaning']} |\n" for row in terms))


def server():
    routes = (ROOT / "src/serve/api/routes.md").read_text()
    fields = (ROOT / "src/serve/api/fields.md").read_text()
    return f"""# Server

The routes of `mrrope serve` and the fields of their requests, from the tables that the server reads requests by.
How to run it: [serve.md](../guide/serve.md).

## Routes

{routes}
Every other route gets 404 and the names of those most like it.

## Fields

A field that would change the answer and is not supported is refused with status 400 and its name, unless its value
changes nothing. Fields that no table lists are ignored; the answer names those of its request in `mrrope.ignored`.

{fields}"""


def speeds(folder):
    """A part per file: what a benchmark printed."""
    out = ["# Speeds", "", "Each part is what a benchmark printed, with its command, date, commit and machine: "
           "`tools/docs/keep.py bench` wrote", "it into data/bench. Compare numbers of one part only.", ""]
    for file in sorted(folder.glob("*.json")):
        kept = json.loads(file.read_text())
        out += [f"## {kept['title']}", "",
                f"`{kept['command']}`, {kept['date']}, commit {kept['commit']}, {kept['machine']}.", ""]
        out += ["```text", *kept["output"], "```", ""]
    if not any(folder.glob("*.json")):
        out += ["No benchmark is kept yet.", ""]
    return "\n".join(out)


def measured(mrrope, pages):
    """One page per model, and a page of pages."""
    index = ["# Measurements", "", "Every page here is made from the journals in data/runs or the benchmarks in "
             "data/bench; no number is typed.", "", "| model | window | verdict |", "|---|---:|---|"]
    work = pages.parent
    rows = {}
    os.symlink(ROOT / "data", work / "data")
    for folder in sorted((ROOT / "data/runs").iterdir()):
        if not folder.is_dir():
            continue
        # As a reader would type it: the page names the command.
        done = subprocess.run(f"mrrope report data/runs/{folder.name} -o docs/measurements/{folder.name}.md",
                              shell=True, cwd=work, capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{work / 'bin'}:{os.environ['PATH']}"})
        if done.returncode != 0 or "skipped" in done.stderr:
            sys.exit(f"make.py: {done.args}\n{done.stderr}")
        text = (pages / f"measurements/{folder.name}.md").read_text()
        said = subprocess.run([work / "bin/mrrope", "report", f"data/runs/{folder.name}", "--json", "-o", "page.html"],
                              cwd=work, check=True, capture_output=True, text=True).stdout
        window = json.loads(next(folder.glob("*/run.json")).read_text())["model"]["train_length"]
        if row := evidence_row("NAME", json.loads(said)["results"], window):
            rows[folder.name] = row
        title = text.splitlines()[0].removeprefix("# ")
        headline = re.search(r"^\*\*(.*)\*\*$", text, re.M)
        index.append(f"| [{title}]({folder.name}.md) | {window >> 10}K | {headline.group(1) if headline else ''} |")
    (pages / "measurements/speeds.md").write_text(speeds(ROOT / "data/bench"))
    index += ["", "In tables, far:pi(..., sharpen=0) is `auto` as it was before its present rule.", "",
              "[Speeds](speeds.md): what the benchmarks printed.", "",
              "To add a model: `tools/docs/keep.py run NAME FOLDER...`, then `tools/docs/make.py --update MRROPE`.", ""]
    (pages / "measurements/README.md").write_text("\n".join(index))
    (work / "README.md").write_text(readme(rows))


def evidence_row(name, results, window):
    """A row of the table in README, from the results of one model; None where auto was not measured past the window.
    Perplexity, then the loss of right answers about needles, each at its longest length."""
    published = re.compile(r"^(?!none$|auto$|power|custom)[a-z-]+$")

    def at_longest(rows):
        longest = max((r["length"] for r in rows if r["method"] == "auto"), default=0)
        values = {}
        for r in rows:
            if r["length"] == longest and r["value"] is not None:
                if r["task"] in values.setdefault(r["method"], {}):
                    sys.exit(f"make.py: {r['run']} repeats what another run of its folder measured under "
                             f"{r['method']} at {longest}: keep it in a folder of its own")
                values[r["method"]][r["task"]] = r["value"]
        tasks = len(values.get("auto", {}))
        return longest, {m: sum(v.values()) / tasks for m, v in values.items() if len(v) == tasks}

    def two(values, best, shown):
        rivals = {m: v for m, v in values.items() if published.match(m)}
        if not rivals:
            return " | "
        rival = best(rivals, key=rivals.get)
        marks = ["**" if best(pair) == pair[0] and pair[0] != pair[1] else ""
                 for pair in [(rivals[rival], values["auto"]), (values["auto"], rivals[rival])]]
        return f"{marks[0]}{shown(rivals[rival])}{marks[0]} ({rival}) | {marks[1]}{shown(values['auto'])}{marks[1]}"

    longest, perplexity = at_longest([r for r in results if r["metric"] == "perplexity"])
    if longest <= window:
        return None
    losses = at_longest([r for r in results if r["task"] == "needle"
                         and r["metric"] == "answer_loss" and r.get("depth") is None])[1]
    short = lambda v: f"{v:.0f}" if v >= 100 else f"{v:.3g}"
    none = short(perplexity["none"]) if "none" in perplexity else ""
    answers = two(losses, min, short) if losses else " | "
    return f"| {name} | {window >> 10}K to {longest >> 10}K | {none} | {two(perplexity, min, short)} | {answers} |"


def readme(rows):
    """README with these rows, by the name of their page."""
    text = (ROOT / "README.md").read_text()
    for name, row in rows.items():
        form = re.compile(rf"^\| \[([^\]]*)\]\(docs/measurements/{re.escape(name)}\.md\) \|.*\|$", re.M)
        text = form.sub(lambda m: row.replace("| NAME |", f"| [{m.group(1)}](docs/measurements/{name}.md) |"), text)
    return text


def files_of(folder):
    out = {}
    for part in MADE:
        path = folder / part
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file():
                out[str(file.relative_to(folder))] = file.read_text()
    return out


def main():
    update = sys.argv[1:2] == ["--update"]
    arguments = sys.argv[1 + update:]
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__)
    mrrope = pathlib.Path(arguments[0]).resolve()
    with tempfile.TemporaryDirectory(prefix="mrrope-docs-") as work:
        work = pathlib.Path(work)
        pages = work / "docs"
        (pages / "reference").mkdir(parents=True)
        (pages / "measurements").mkdir()
        (work / "bin").mkdir()
        os.symlink(mrrope, work / "bin/mrrope")
        (pages / "reference/command-line.md").write_text(command_line(mrrope))
        (pages / "reference/server.md").write_text(server())
        (pages / "glossary.md").write_text(glossary())
        measured(mrrope, pages)
        made = {**files_of(pages), "../README.md": (work / "README.md").read_text()}
    there = {**files_of(ROOT / "docs"), "../README.md": (ROOT / "README.md").read_text()}
    if update:
        shutil.rmtree(ROOT / "docs/measurements", ignore_errors=True)
        for name, text in made.items():
            path = ROOT / "docs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        print(f"make.py: wrote {len(made)} files in docs")
        return
    failed = False
    for name in sorted(made.keys() | there.keys()):
        before, after = there.get(name, ""), made.get(name, "")
        if before == after:
            continue
        failed = True
        lines = list(difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"docs/{name}", "today"))
        sys.stdout.writelines(line[:300].rstrip("\n") + "\n" for line in lines[:40])
    if failed:
        sys.exit("make.py: these pages are not what would be made now; type: tools/docs/make.py --update MRROPE")
    print(f"make.py: {len(made)} files of docs are up to date")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What holds for README and every page below docs:

- a link inside the tree leads to a file, and its anchor to a heading there;
- below a picture stands the command that makes it;
- the hand-written pages of docs have at most 1,500 lines of 120 columns, README at most 160 lines;
- tables of measurements are in docs/measurements, which is made, and there is one in README.

    tests/docs/style.py [ROOT]
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT if ROOT.is_dir() else ROOT.parents[2]
MOST, MOST_README, COLUMNS = 1500, 160, 120
MADE = {"docs/reference/command-line.md", "docs/reference/server.md"}
OTHER_PAGES = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "VERSIONING.md", "CHANGELOG.md"]
MAKER = re.compile(r"`[^`]*(mrrope |[a-z_/]+\.py)[^`]*`|^    .*mrrope ", re.M)
# Tables of numbers that are computed, not measured.
COMPUTED = {"docs/design/for-engines.md": "values to check an implementation against",
            "docs/reference/methods.md": "values of formulas"}


def without_code(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"^(    .*)$", "", text, flags=re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text):
    """As GitHub makes them of headings."""
    out, seen = set(), {}
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        name = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        name = re.sub(r"[^\w\- ]", "", name).replace(" ", "-")
        seen[name] = seen.get(name, -1) + 1
        out.add(name if seen[name] == 0 else f"{name}-{seen[name]}")
    return out


def bad_links(page, text):
    for label, target in re.findall(r"\[([^\]]*)\]\(([^)\s]+)\)", without_code(text)):
        if re.match(r"^[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or not file.is_relative_to(ROOT):
            yield f"the link [{label}]({target}) leads nowhere"
        elif anchor and anchor not in anchors(file.read_text()):
            yield f"the link [{label}]({target}): {file.name} has no such heading"


def pictures_without_command(text):
    lines = text.split("\n")
    for number, line in enumerate(lines):
        for picture in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", line):
            below = "\n".join(lines[number + 1:number + 7])
            if not MAKER.search(below):
                yield f"no command below the picture {picture} says how it is made"


def measured_tables(text):
    """First lines of tables that are mostly numbers."""
    value = re.compile(r"^[~+<>]?-?\d[\d.,]*( ?(\u00b1|\+-) ?[\d.]+)?( ?(%|x|k|K|s|ms|GB|MiB|GiB|tok/s|tokens/s|h|min))?$")
    for table in re.findall(r"(?:^\|.*\n)+", text + "\n", re.M):
        rows = [[c.strip(" *`") for c in re.split(r"(?<!\\)\|", row)[1:-1]] for row in table.strip().split("\n")]
        cells = [c for row in rows[2:] for c in row[1:] if c]
        numbers = [c for c in cells if value.match(c)]
        if len(numbers) >= 6 and len(numbers) > len(cells) / 2 and any("." in c for c in numbers):
            yield table.split("\n")[0]


def main():
    complaints, prose, written = [], 0, 0
    pages = [ROOT / "README.md", *(ROOT / name for name in OTHER_PAGES), *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        name, text = str(page.relative_to(ROOT)), page.read_text()
        made = name in MADE or name.startswith("docs/measurements/")
        found = [*bad_links(page, text), *pictures_without_command(text)]
        if name.startswith("docs/") and not made:
            written += 1
            prose += sum(max(1, -(-len(line) // COLUMNS)) for line in text.split("\n")[:-1])
            if name not in COMPUTED:
                found += [f"a table of measurements, which belongs in docs/measurements: {row}"
                          for row in measured_tables(text)]
        if name == "README.md":
            tables = list(measured_tables(text))
            found += [f"a second table of measurements: {row}" for row in tables[1:]]
            if (size := text.count("\n")) > MOST_README:
                found.append(f"{size} lines, more than {MOST_README}")
        complaints += [f"{name}: {what}" for what in found]
    if prose > MOST:
        complaints.append(f"docs: {prose} lines of {COLUMNS} columns are written by hand, more than {MOST}")
    if written < 5:
        complaints.append(f"only {written} pages found below {ROOT}/docs")
    print("\n".join(complaints))
    print(f"style.py: {len(pages)} pages, {prose} of {MOST} lines written by hand, {len(complaints)} complaints")
    sys.exit(1 if complaints else 0)


main()

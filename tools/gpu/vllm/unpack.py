#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""unpack.py WHEELS SITE: installs wheels without pip, on all cores; scripts and data are left out."""
import concurrent.futures
import pathlib
import sys
import zipfile

LARGE = 20e6  # bytes: a job of its own


def place(name):
    """Where a member of a wheel belongs; None: nowhere."""
    first, _, rest = name.partition("/")
    if not first.endswith(".data"):
        return name
    kind, _, inner = rest.partition("/")
    return inner if kind in ("purelib", "platlib") else None


def unpack(wheel, names, site):
    with zipfile.ZipFile(wheel) as archive:
        for name in names:
            to = place(name)
            if to is None or name.endswith("/"):
                continue
            (site / to).parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, open(site / to, "wb") as out:
                while chunk := source.read(1 << 22):
                    out.write(chunk)


def main():
    site = pathlib.Path(sys.argv[2])
    with concurrent.futures.ProcessPoolExecutor() as pool:
        jobs = []
        for wheel in sorted(pathlib.Path(sys.argv[1]).glob("*.whl"), key=lambda p: -p.stat().st_size):
            members = zipfile.ZipFile(wheel).infolist()
            parts = [[m.filename] for m in members if m.file_size > LARGE]
            small = [m.filename for m in members if m.file_size <= LARGE]
            jobs += [pool.submit(unpack, wheel, names, site)
                     for names in [*parts, *(small[i::4] for i in range(4))]]
        for job in jobs:
            job.result()


if __name__ == "__main__":
    main()

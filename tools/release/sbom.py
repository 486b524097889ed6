#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an SPDX 2.3 document of what a build really links.

    tools/release/sbom.py BUILD OUT.spdx.json

Archives come from the link command that ninja runs, headers from its record of dependencies, shared
libraries from the files that were linked. Licences come from NOTICE. A file that belongs to no known
part, or a part that NOTICE does not list, is an error.
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

PARTS = json.loads((ROOT / "tools/release/parts.json").read_text())  # what belongs to which part


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def part_of(path, kind, otherwise=None):
    for pattern, part in PARTS[kind]:
        if re.search(pattern, path):
            return part
    if otherwise is None:
        sys.exit(f"sbom.py: {path} belongs to no known part: add it to tools/release/parts.json and to NOTICE")
    return otherwise


def notice():
    """The licence of each part that NOTICE lists."""
    rows = re.findall(r"^\| ([a-z][a-z0-9.-]*) \| ([^|]+) \|", (ROOT / "NOTICE").read_text(), re.M)
    return {part: licence.strip() for part, licence in rows if part != "part"}


def linked_archives(build):
    """Archives of the last command that links mrrope."""
    command = output("ninja", "-C", build, "-t", "commands", "mrrope_command").splitlines()[-1]
    return sorted(set(re.findall(r"(?:^|\s)(\S+\.a)(?=\s|$)", command)))


def included_headers(build):
    """Headers outside the project of the objects that are linked: as ninja saw them."""
    inputs = output("ninja", "-C", build, "-t", "inputs", "mrrope_command", "mrrope").split()
    objects = {name for name in inputs if name.endswith((".o", ".gch", ".pch"))}
    headers, wanted = set(), False
    for line in output("ninja", "-C", build, "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            wanted = line.split(": #deps")[0] in objects
        elif wanted and line.strip():
            headers.add(os.path.normpath(os.path.join(build, line.strip())))
    if not headers:
        sys.exit(f"sbom.py: {build} has no record of dependencies: build it first")
    return headers


def needed_libraries(file):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", str(file)))


def debian_version(path):
    """The version of the Debian package that owns a file, or None."""
    for name in (path, os.path.realpath(path)):
        owner = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if owner.returncode == 0:
            package = owner.stdout.split(": ")[0].split(",")[0]
            return output("dpkg-query", "-W", "-f", "${Version}", package)
    return None


def library_path(file, name):
    for line in output("ldd", str(file)).splitlines():
        words = line.split()
        if words and words[0] == name and "=>" in words:
            return words[2]
    return None


def header_version(part, headers):
    found = {}
    for path in sorted(headers):
        if os.path.exists(path):
            for value in re.findall(PARTS["versions"][part], pathlib.Path(path).read_text(errors="replace")):
                found.setdefault(os.path.dirname(path), []).append(value)
    # One folder's numbers: 3, 11 and 2 of one file are 3.11.2.
    versions = sorted({".".join(values[:3]) for values in found.values()})
    return " and ".join(versions) if versions else None


def collect(build):
    """part -> {"kinds": {static, header, dynamic}, "version"}"""
    parts = {}

    def add(part, kind, version=None):
        if part:
            entry = parts.setdefault(part, {"kinds": set(), "version": None})
            entry["kinds"].add(kind)
            entry["version"] = entry["version"] or version

    for archive in linked_archives(build):
        add(part_of(archive, "archives"), "static")
    by_part = {}
    llama = re.search(r"MRROPE_LLAMA_SOURCE:PATH=(.*)", pathlib.Path(build, "CMakeCache.txt").read_text())
    for header in included_headers(build):
        if header.startswith(str(ROOT)) or header.startswith(os.path.realpath(build)):
            continue
        inside = header.startswith(llama.group(1))
        part = part_of(header, "headers", "llama.cpp" if inside else "glibc")
        by_part.setdefault(part, set()).add(header)
    for part, headers in by_part.items():
        add(part, "header", header_version(part, headers) if part in PARTS["versions"] else None)
    add("llama.cpp", "static",
        re.search(r"MRROPE_LLAMA_VERSION ([0-9.]+)", (ROOT / "cmake/llama.cmake").read_text()).group(1))
    files = [pathlib.Path(build, "bin/mrrope"), *pathlib.Path(build, "src").glob("libmrrope.so"),
             *sorted(pathlib.Path(build, "lib").glob("**/mrrope/*.so"))]
    for file in files:
        for name in needed_libraries(file):
            part = part_of(name, "libraries")
            path = library_path(file, name)
            add(part, "dynamic", debian_version(path) if path else None)
    return parts, files


def package(name, version, licence, **more):
    return {"SPDXID": f"SPDXRef-{name}", "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "supplier": "NOASSERTION", "licenseDeclared": licence, "licenseConcluded": licence,
            "copyrightText": "NOASSERTION", **more}


def relation(element, kind, related):
    return {"spdxElementId": f"SPDXRef-{element}", "relationshipType": kind, "relatedSpdxElement": f"SPDXRef-{related}"}


def document(build):
    licences = notice()
    parts, files = collect(build)
    unlisted = sorted(set(parts) - set(licences))
    if unlisted:
        sys.exit(f"sbom.py: linked, but not in NOTICE: {', '.join(unlisted)}")
    version = re.search(r'MRROPE_VERSION "(.*)"',
                        (ROOT / "include/mrrope/version.h").read_text()).group(1)
    digest = hashlib.sha256(files[0].read_bytes()).hexdigest()
    packages = [package("mrrope", version, "Apache-2.0", copyrightText="Copyright the mrrope authors",
                        checksums=[{"algorithm": "SHA256", "checksumValue": digest}])]
    relations = [relation("DOCUMENT", "DESCRIBES", "mrrope")]
    for part, found in sorted(parts.items()):
        packages.append(package(part, found["version"] or "NOASSERTION", licences[part]))
        # Headers of a shared library only declare it; those of the others are compiled in.
        if "dynamic" in found["kinds"]:
            relations.append(relation("mrrope", "DYNAMIC_LINK", part))
        if "static" in found["kinds"] or found["kinds"] == {"header"} or part == "highway":
            relations.append(relation("mrrope", "STATIC_LINK", part))
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", datetime.datetime.now().timestamp()))
    digest = hashlib.sha256(json.dumps([packages, relations]).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"mrrope-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/mrrope-{version}-{digest[:16]}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc)
                       .strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: mrrope-tools-release-sbom"]},
        "hasExtractedLicensingInfos": [{
            "licenseId": "LicenseRef-public-domain", "name": "public domain",
            "extractedText": "liblzma is in the public domain."}],
        "packages": packages, "relationships": relations,
    }


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, out = sys.argv[1:]
    text = json.dumps(document(os.path.realpath(build)), indent=2) + "\n"
    pathlib.Path(out).write_text(text)


main()

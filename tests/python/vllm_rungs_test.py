# SPDX-License-Identifier: Apache-2.0
"""Rungs for requests of vLLM, as far as they need no vLLM: ladders, admission, tables, rows. Needs torch.

tools/gpu/vllm/classes.py does the rest with vLLM's classes, and tools/gpu/vllm/rungs.py with a server.
"""
import copy
import functools
import random
import types

import torch

import mrrope
from expressions import raises
from mrrope import _vllm, _vllm_rungs
from mrrope._vllm_rungs import admit, choose_rung, fill, read_ladder, rung_of, salted

GEOMETRY = mrrope.Geometry(64, 10000, 1024)
refused = functools.partial(raises, ValueError)


def ladder_config():
    """As mrrope export writes it."""
    rungs = []
    for i, length in enumerate((1024, 2048, 4096, 8192)):
        plan = mrrope.plan(GEOMETRY, "pro" if i else "none", ctx=length)
        rungs.append({"rung": i, "length": length, "attention_factor": plan.attention_scale,
                      "factors": list(plan.factor)})
    return {"rope_type": "mrrope", "rope_theta": 10000.0, "original_max_position_embeddings": 1024,
            "rungs": rungs}


def check_ladder():
    good = ladder_config()
    ladder = read_ladder(good)
    assert ladder.first == (0, 1024, 3072, 7168)
    assert [rung.length for rung in ladder.rungs] == [1024, 2048, 4096, 8192]
    assert ladder.digest == read_ladder(copy.deepcopy(good)).digest

    def changed(edit):
        config = copy.deepcopy(good)
        edit(config)
        return config

    other = changed(lambda c: c["rungs"][2]["factors"].__setitem__(5, 3.0))
    assert read_ladder(other).digest != ladder.digest
    for part, edit in (
            ("rung 0 is missing", lambda c: c["rungs"].pop(0)),
            ("rung 2 is missing", lambda c: c["rungs"].pop(2)),
            ("not a list", lambda c: c.update(rungs=[])),
            ("not a list", lambda c: c.update(rungs={"0": 1})),
            ("not a list", lambda c: c.update(rungs=[1])),
            ("must increase", lambda c: c["rungs"][2].update(length=2048)),
            ("length 1.5", lambda c: c["rungs"][2].update(length=1.5)),
            ("length True", lambda c: c["rungs"][0].update(length=True)),
            ("length None", lambda c: c["rungs"][0].pop("length")),
            ("positive", lambda c: c["rungs"][3]["factors"].__setitem__(0, 0.0)),
            ("positive", lambda c: c["rungs"][3]["factors"].__setitem__(0, -1.0)),
            ("positive", lambda c: c["rungs"][3]["factors"].__setitem__(0, float("nan"))),
            ("positive", lambda c: c["rungs"][3]["factors"].__setitem__(0, "1")),
            ("positive", lambda c: c["rungs"][1].update(attention_factor=None)),
            ("31 factors", lambda c: c["rungs"][1]["factors"].pop()),
            ("window", lambda c: c.update(original_max_position_embeddings=2048)),
            ("rope_theta", lambda c: c.pop("rope_theta"))):
        refused(part, read_ladder, changed(edit))
    per_layer = {"full_attention": good, "sliding_attention": {"rope_type": "default"}}
    assert _vllm_rungs.find_ladders(per_layer) == [good] == _vllm_rungs.find_ladders(good)
    assert not _vllm_rungs.find_ladders({"rope_type": "mrrope", "factors": []})
    assert not _vllm_rungs.find_ladders(None)
    own = _vllm_rungs.own_parameters({**good, "partial_rotary_factor": 0.5})
    assert own == {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    own = _vllm_rungs.own_parameters({**good, "original": {"type": "linear", "factor": 2.0}})
    assert own == {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}


def request(prompt, most, salt=None, **extra):
    params = types.SimpleNamespace(max_tokens=most, extra_args=extra or None)
    return types.SimpleNamespace(prompt_token_ids=[0] * prompt, prompt_embeds=None, cache_salt=salt,
                                 sampling_params=params)


def check_admission():
    ladder = read_ladder(ladder_config())
    for tokens, rung in ((1, 0), (1024, 0), (1025, 1), (2048, 1), (2049, 2), (8192, 3)):
        assert choose_rung(ladder, tokens) == rung
    refused("8193 tokens", choose_rung, ladder, 8193)
    assert choose_rung(ladder, 100, 2) == 2
    for wrong in (-1, 4, "1", 1.0, True):
        refused("is not a rung", choose_rung, ladder, 100, wrong)
    refused("rung 0 holds 1024", choose_rung, ladder, 1025, 0)

    for prompt, most, rung in ((1000, 24, 0), (1000, 25, 1), (3000, 1096, 2), (10, 8000, 3)):
        asked = request(prompt, most, kept="yes")
        assert admit(ladder, asked, 8192) == rung
        assert asked.sampling_params.extra_args == {"kept": "yes", "mrrope_rung": rung}
        assert rung_of("cmpl-1", asked.sampling_params) == rung
    # Offline, max_tokens may be anything; the server stops at its longest length.
    assert admit(ladder, request(10, 10 ** 9), 8192) == 3
    assert admit(ladder, request(10, 10 ** 9), 2000) == 1
    assert admit(ladder, request(10, 10, mrrope_rung=1), 8192) == 1
    refused("pooling", admit, ladder, types.SimpleNamespace(sampling_params=None), 8192)
    streamed = request(10, 10)
    streamed.resumable = True
    refused("streamed", admit, ladder, streamed, 8192)

    # Prefix caches are shared inside a rung and never between two, whatever salt a client gives.
    plain, far = request(10, 10), request(10, 3000)
    admit(ladder, plain, 8192)
    admit(ladder, far, 8192)
    assert plain.cache_salt is None and ladder.digest in far.cache_salt
    forged = request(10, 10, far.cache_salt)
    admit(ladder, forged, 8192)
    given = [salted(ladder, r, s) for r in range(4) for s in (None, "a", "1:", far.cache_salt)]
    assert len({*given, forged.cache_salt}) == len(given), "two rungs share a salt"

    assert rung_of("_warmup_0_", types.SimpleNamespace(extra_args=None)) == 0
    raises(RuntimeError, "without a rung", rung_of, "cmpl-1", types.SimpleNamespace(extra_args={}))


def check_tables():
    """Every rung is the library's rotation of (1, 0) under its plan."""
    config = ladder_config()
    ladder = read_ladder(config)
    own = _vllm.table(10000.0, [1.0] * 32, 1.0, 1500)
    made = _vllm_rungs.stacked(ladder, own, _vllm.table)
    assert made.shape == (1024 + 2048 + 4096 + 8192, 64)
    assert torch.equal(made[:1024], own[:1024])
    for i in (1, 2, 3):
        length = ladder.rungs[i].length
        plan = mrrope.plan(GEOMETRY, "pro", ctx=length)
        rows = torch.zeros(1, 16, 64)
        rows[..., :32] = 1
        mrrope.rotate(rows, plan=plan, first_position=length - 16)
        last = ladder.first[i] + length
        assert (made[last - 16:last] - rows[0]).abs().max() < 2e-7
        assert (made[last - 16:last] - own[:16]).abs().max() > 0.5, "this test could not fail"
    half = own.bfloat16()
    assert torch.equal(_vllm_rungs.stacked(ladder, half, _vllm.table)[:1024], half[:1024])
    refused("vLLM's", _vllm_rungs.stacked, ladder, own[:1000], _vllm.table)
    refused("32 pairs", _vllm_rungs.stacked, ladder, own[:, :32], _vllm.table)
    other = _vllm.table(500000.0, [1.0] * 32, 1.0, 1500)
    refused("not this model", _vllm_rungs.stacked, ladder, other, _vllm.table)


def check_rows():
    """Mixed batches in any order, with prompts in chunks: what each token reads is its own rung's row."""
    first, lengths = (0, 1024, 3072, 7168), (1024, 2048, 4096, 8192)
    chance = random.Random(1)
    rows = torch.full((4096,), -1)
    for _ in range(50):
        batch = []
        for _ in range(chance.randrange(1, 12)):
            rung = chance.randrange(4)
            count = chance.choice((1, 1, 7, 512))
            batch.append((rung, chance.randrange(lengths[rung] - count + 1), count))
        total = sum(count for _, _, count in batch)
        if total > 4096:
            continue
        rows.fill_(-1)
        positions = torch.cat([torch.arange(start, start + count) for _, start, count in batch])
        positions = torch.cat((positions, torch.full((4096 - total,), 10 ** 6)))
        fill(rows, positions, first, [r for r, _, _ in batch], tuple(c for _, _, c in batch))
        wanted = [first[r] + p for r, start, count in batch for p in range(start, start + count)]
        assert rows[:total].tolist() == wanted and (rows[total:] == -1).all()
    fill(rows, torch.arange(4096), first, [0, 0], (3, 5))
    assert rows[:8].tolist() == list(range(8))


def check_refusals():
    def config(**wrong):
        made = types.SimpleNamespace(
            model_config=types.SimpleNamespace(max_model_len=8192, runner_type="generate",
                                               multimodal_config=None),
            parallel_config=types.SimpleNamespace(use_ubatching=False, prefill_context_parallel_size=1),
            cache_config=types.SimpleNamespace(kv_sharing_fast_prefill=False), speculative_config=None)
        for name, value in wrong.items():
            part, _, key = name.partition("__")
            setattr(getattr(made, part) if key else made, key or part, value)
        return made

    plain = ladder_config()
    three = {**plain, "mrope_section": [8, 12, 12]}
    images = types.SimpleNamespace(language_model_only=False)
    text = types.SimpleNamespace(language_model_only=True)
    check = _vllm_rungs.checked_ladder
    assert check(config(), plain) == read_ladder(plain)
    assert check(config(model_config__multimodal_config=images), plain)
    assert check(config(model_config__multimodal_config=text), three)
    for part, made, parameters in (
            ("beyond the last rung", config(model_config__max_model_len=8193), plain),
            ("speculative", config(speculative_config=object()), plain),
            ("text generation", config(model_config__runner_type="pooling"), plain),
            ("split in two", config(parallel_config__use_ubatching=True), plain),
            ("parallelism", config(parallel_config__prefill_context_parallel_size=2), plain),
            ("fast prefill", config(cache_config__kv_sharing_fast_prefill=True), plain),
            ("xdrope_section", config(), {**plain, "xdrope_section": [1]}),
            ("three dimensions", config(model_config__multimodal_config=images), three)):
        refused(part, check, made, parameters)
    _vllm_rungs.missing.append("vllm.gone")
    refused("has no vllm.gone", check, config(), plain)
    _vllm_rungs.missing.clear()
    assert _vllm_rungs.READS_TABLES.search("x = self.rotary_emb.cos_sin_cache")
    assert _vllm_rungs.READS_TABLES.search("q, k = self.rotary_emb.forward_native(positions, q, k)")
    assert not _vllm_rungs.READS_TABLES.search("q, k = self.rotary_emb(positions, q, k)")


check_ladder()
check_admission()
check_tables()
check_rows()
check_refusals()
print("ok")

# SPDX-License-Identifier: Apache-2.0
"""mrrope.patch() against mrrope's own engine: log-probabilities token by token.

patch_test.py SCORE_TOKENS MODEL.gguf TEXT.json WORK_FOLDER

Three models hold the same float32 numbers as a GGUF file and as a checkpoint: MrRoPE Tiny, a random
Llama and a random Qwen2. Each is patched with a static plan and with a ladder.
"""
import copy
import io
import json
import logging
import math
import os
import pathlib
import sys

import gguf
import numpy
import torch
import transformers
from transformers import DynamicCache, StaticCache

import mrrope
from checkpoints import random_model, run, unpacked, write_checkpoint, write_gguf
from expressions import refused

# Both engines compute in float32, in a different order: nats per token, largest and rms.
MOST, RMS = 0.02, 0.001
# The plan changes tokens by at least this much on average, so that a wrong one would be noticed.
LEAST_SIGNAL = 0.05
METHODS = ("pro", "elastic:pro", "far:pi", "far:pro", "auto", "far:pi(sharpen=0.5)")


def load(folder, **options):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **options)


def logits_of(model, tokens, **options):
    with torch.no_grad():
        return model(torch.tensor([tokens]), **options).logits[0]


def in_passes(model, rows, ends, cache=None, mask=None, places=None):
    """The logits of rows that are read in passes with these ends."""
    cache, out = DynamicCache(config=model.config) if cache is None else cache, []
    for start, end in zip([0, *ends], ends):
        more = {} if mask is None else {"attention_mask": mask[:, :end], "position_ids": places[:, start:end]}
        with torch.no_grad():
            out.append(model(rows[:, start:end], past_key_values=cache, **more).logits)
    return torch.cat(out, 1)


def scores_of(logits, tokens):
    picked = torch.log_softmax(logits[:-1].double(), -1)
    return picked.gather(1, torch.tensor(tokens[1:])[:, None])[:, 0].numpy()


def check_equal(score_tokens, work, text, name, lengths):
    """Static and growing, at every length, against the engine. With MRROPE_TEST_LONG all methods of all models at all
    lengths; without, those that repeat the code of others only on one model, at the first length."""
    long = os.environ.get("MRROPE_TEST_LONG")
    folder, file = work / name, work / f"{name}.gguf"
    model = load(folder)
    window = model.config.max_position_embeddings
    for length in lengths:
        plain, seen = None, {}
        every = long or (name == "llama" and length == lengths[0])
        for method in METHODS if every else METHODS[:3]:
            wanted = mrrope.patch(model, method, ctx=length)
            same = seen.setdefault(json.dumps(wanted.to_dict()), method)
            if same != method:
                print(f"{name} {method} at {length}: the numbers of {same}", flush=True)
                mrrope.unpatch(model)
                continue
            path = work / "plan.json"
            # For the GGUF file the same plan in its own pairing.
            make = mrrope.plan if method == "pro" else mrrope.ladder
            make(file, method, ctx=length).save(path)
            own = json.loads(run(score_tokens, file, path, text, length))
            tokens = own["tokens"]
            theirs = scores_of(logits_of(model, tokens), tokens)
            apart = numpy.abs(theirs - numpy.array(own["scores"]))
            rms = math.sqrt(float((apart ** 2).mean()))
            mrrope.unpatch(model)
            if plain is None:
                whole = logits_of(model, tokens)
                plain = scores_of(whole, tokens)
            beyond = slice(window, None)
            signal = numpy.abs(theirs - plain)[beyond].mean()
            print(f"{name} {method} at {length}: largest difference {apart.max():.1e} nats, rms "
                  f"{rms:.1e}; the plan changes tokens beyond the window by {signal:.2f}", flush=True)
            assert apart.max() < MOST and rms < RMS, (name, method, length)
            assert signal > LEAST_SIGNAL, "this test could not fail"
            assert wanted.geometry.train_length == window


def check_inside(work, name):
    """Inside the window a growing context is the unpatched model, bit for bit; and after it."""
    model = load(work / name)
    texts = 1 if name == "tiny" else 2  # the largest model
    tokens = torch.randint(5, 8000, (texts, 900), generator=torch.Generator().manual_seed(1)).tolist()
    before = [logits_of(model, row) for row in tokens]
    for method in ("elastic:pro", "elastic:uni", "far:pi", "far:pro", "auto"):
        mrrope.patch(model, method, ctx="8k")
        for row, plain in zip(tokens, before):
            assert torch.equal(logits_of(model, row), plain)
            assert torch.equal(logits_of(model, row, use_cache=False), plain)
        refused("patched already", mrrope.patch, model, "pro", 2048)
        refused("neither copied nor pickled", copy.deepcopy, model)
        mrrope.unpatch(model)
        assert torch.equal(logits_of(model, tokens[0]), before[0])
    mrrope.patch(model, "pro", ctx=1000)  # a static plan inside the window changes nothing
    assert torch.equal(logits_of(model, tokens[0]), before[0])
    mrrope.unpatch(model)
    refused("not patched", mrrope.unpatch, model)


def check_caches(work):
    """However a text is cut into passes, and whatever cache holds it, the logits are the same."""
    model = load(work / "llama")
    mrrope.patch(model, "elastic:pro", ctx="4k", rung_step=1.1)
    make = torch.Generator().manual_seed(2)
    row = torch.randint(5, 8000, (1, 1700), generator=make)

    def close(a, b, most=2e-3):
        apart = float((a - b).abs().max())
        assert apart < most, apart

    whole = in_passes(model, row, [1700])
    with torch.no_grad():
        close(model(row, use_cache=False).logits, whole, 1e-6)
        assert model(row, use_cache=False).past_key_values is None
        close(model(inputs_embeds=model.get_input_embeddings()(row)).logits, whole, 1e-6)
    close(in_passes(model, row, [100, 1000, 1023, 1024, 1025, 1300, 1700]), whole)
    static = StaticCache(config=model.config, max_cache_len=1800)
    close(in_passes(model, row, [700, 1100, 1400, 1401, 1700], static), whole)
    # A cropped cache goes back to its rung, and a copy goes on by itself.
    cache = DynamicCache(config=model.config)
    in_passes(model, row, [1500], cache)
    twin = copy.deepcopy(cache)
    cache.crop(-450)
    with torch.no_grad():
        close(model(row[:, 1050:1700], past_key_values=cache).logits, whole[:, 1050:], 1e-2)
        close(model(row[:, 1500:1700], past_key_values=twin).logits, whole[:, 1500:])

    # Left padding: the longest row decides the rung; its logits are those of the row alone.
    short = 300
    rows = torch.cat([row, torch.cat([torch.zeros(1, short, dtype=torch.long), row[:, short:]], 1)])
    mask = torch.ones_like(rows)
    mask[1, :short] = 0
    places = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        both = model(rows, attention_mask=mask, position_ids=places).logits
    close(both[:1], whole)
    cache = DynamicCache(config=model.config)
    again = in_passes(model, rows, [800, 1250, 1700], cache, mask, places)
    close(again[:1], whole)
    close(again[1:, short:], both[1:, short:])
    check_refused_caches(model, row, cache)
    check_generate(model, row)
    mrrope.unpatch(model)


def check_far(work):
    """Near and far: however a text is cut into passes; cropped caches; what is refused."""
    model = load(work / "llama")
    row = torch.randint(5, 8000, (1, 1900), generator=torch.Generator().manual_seed(4))
    for method, options in (("far:pi", {}), ("far:pro", {"near": 128, "near_step": 64}),
                            ("far:yarn", {"attn_coef": 0.1})):
        ladder = mrrope.patch(model, method, ctx="4k", **options)
        assert len({ladder.border_at(n) for n in range(1, 1901)}) > 3
        with torch.no_grad():
            whole = model(row).logits
            cache = DynamicCache(config=model.config)
            out = in_passes(model, row, [700, 1024, 1025, 1500, 1900], cache)
            assert float((out - whole).abs().max()) < 2e-3, method
            cache.crop(-450)
            again = model(row[:, 1450:], past_key_values=cache).logits
            assert float((again - whole[:, 1450:]).abs().max()) < 1e-2, method
            both = model(row.repeat(2, 1)).logits
            assert float((both - whole).abs().max()) < 2e-3, method
            places = torch.stack([torch.arange(1900), torch.arange(1900) - 5]).clamp(min=0)
            refused("texts of one length", model, row.repeat(2, 1), position_ids=places)
        prompt = row[:, :1270]
        made = {"max_new_tokens": 30, "min_new_tokens": 30, "do_sample": False, "pad_token_id": 0}
        plain = model.generate(prompt, **made)
        with torch.no_grad():
            assert torch.equal(model(plain).logits[:, 1269:-1].argmax(-1), plain[:, 1270:])
        assert torch.equal(model.generate(prompt, cache_implementation="static",
                                          disable_compile=True, **made), plain)
        mrrope.unpatch(model)


def check_refused_caches(model, row, padded):
    padded.batch_select_indices(torch.tensor([0]))
    with torch.no_grad():
        refused("number of sequences", model, row[:, :1000], past_key_values=padded)
        refused("position_ids go back", model, row[:, :40],
                position_ids=torch.cat([torch.arange(20), torch.arange(20)])[None])
        refused("more than the 4096", model, torch.zeros((1, 4097), dtype=torch.long))
        refused("output_attentions", model, row, output_attentions=True)
        model.config.output_hidden_states = True
        refused("output_hidden_states", model, row)
        model.config.output_hidden_states = False
        assert torch.equal(model.model(row, return_dict=False)[0], model.model(row)[0])
        filled = DynamicCache(config=model.config)
        mrrope.unpatch(model)
        model(row[:, :10], past_key_values=filled)
        mrrope.patch(model, "elastic:pro", ctx="4k", rung_step=1.1)
        refused("not seen", model, row[:, 10:20], past_key_values=filled)
    refused("do not train", lambda: model(row).logits)
    odd = DynamicCache(config=model.config)
    with torch.no_grad():
        model(row[:, :1000], past_key_values=odd)
        odd.layers[2].__class__ = type("OtherLayer", (type(odd.layers[2]),), {})
        refused("OtherLayer", model, row[:, 1000:1100], past_key_values=odd)


def check_generate(model, row):
    """generate(): token by token over rungs, in chunks, with padding, with beams."""
    prompt = row[:, :1100]
    options = {"max_new_tokens": 60, "min_new_tokens": 60, "do_sample": False, "pad_token_id": 0}
    plain = model.generate(prompt, **options)
    with torch.no_grad():  # teacher-forced, one pass over the same tokens
        again = model(plain).logits[:, 1099:-1].argmax(-1)
    assert torch.equal(again, plain[:, 1100:])
    static = model.generate(prompt, cache_implementation="static", disable_compile=True, **options)
    assert torch.equal(static, plain)
    chunks = model.generate(prompt, prefill_chunk_size=300, **options)
    assert torch.equal(chunks, plain)
    pad = torch.zeros((1, 100), dtype=torch.long)
    rows = torch.cat([prompt, torch.cat([pad, prompt[:, 100:]], 1)])
    mask = torch.ones_like(rows)
    mask[1, :100] = 0
    assert torch.equal(model.generate(rows, attention_mask=mask, **options)[:1], plain)
    beams = model.generate(prompt, num_beams=2, **options)
    assert beams.shape == plain.shape


def check_by_torch():
    """The turn of other devices gives what the library gives."""
    from mrrope._growing import turn_by_torch, turn_layers

    for pairing in ("halves", "interleaved"):
        geometry = mrrope.Geometry(64, 1e4, 512, pairing)
        old, new = (mrrope.plan(geometry, "pro", scale=s) for s in (1.5, 3))
        keys = torch.randn(2, 3, 700, 80, generator=torch.Generator().manual_seed(3))
        other = keys.clone()
        positions = torch.stack([torch.arange(700), torch.arange(700) + 5])
        turn_layers([keys], old, new, positions, threads=2)
        turn_by_torch(other, old, new, positions)
        assert float((keys - other).abs().max()) < 1e-5


def check_plans(work):
    """Plan files: of the GGUF file, whose pairing differs; and those of other models."""
    model = load(work / "llama")
    tokens = list(range(10, 1800))
    mrrope.patch(model, "pro", ctx="2k")
    wanted = logits_of(model, tokens)
    mrrope.unpatch(model)
    path = work / "of_gguf.json"
    mrrope.plan(work / "llama.gguf", "pro", ctx="2k").save(path)
    for plan in (path, str(path), mrrope.load(path)):
        mrrope.patch(model, plan)
        assert torch.equal(logits_of(model, tokens), wanted)
        mrrope.unpatch(model)
    mrrope.ladder(work / "llama.gguf", "elastic:pro", ctx="2k").save(path)
    grows = mrrope.patch(model, path)
    assert grows.rungs[-1].plan.geometry.pairing == "halves"
    mrrope.unpatch(model)
    refused("another model", mrrope.patch, model, mrrope.plan(work / "qwen2.gguf", "pro", ctx="8k"))
    refused("says how far", mrrope.patch, model, path, 4096)
    refused("neither a method", mrrope.patch, model, 7)
    refused("not a length", mrrope.patch, model, "pro", "x")
    refused("not a model of transformers", mrrope.patch, torch.nn.Linear(2, 2), "pro", 4096)
    assert torch.equal(logits_of(model, tokens), logits_of(load(work / "llama"), tokens))


def config_of(name, **options):
    return transformers.AutoConfig.for_model(
        name, vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, head_dim=16,
        **options)


def check_others():
    """Other architectures: what runs, and what is refused by name."""
    make = transformers.AutoModelForCausalLM.from_config
    tokens = list(range(60)) * 10
    # Two kinds of layers, each with its own rotation: sliding layers stay as they are.
    config = config_of("gemma3_text", sliding_window=32, query_pre_attn_scalar=16,
                       layer_types=["sliding_attention", "full_attention", "sliding_attention"])
    model = make(config)
    rotary = model.model.rotary_emb
    own = {name: value.clone() for name, value in rotary.named_buffers()}
    mrrope.patch(model, "yarn", ctx=1024)
    assert torch.equal(rotary.sliding_attention_inv_freq, own["sliding_attention_inv_freq"])
    assert not torch.equal(rotary.full_attention_inv_freq, own["full_attention_inv_freq"])
    assert rotary.full_attention_attention_scaling > 1.1 and (
        rotary.sliding_attention_attention_scaling == 1)
    mrrope.unpatch(model)
    mrrope.patch(model, "elastic:yarn", ctx=1024)
    whole = logits_of(model, tokens)
    parts = in_passes(model, torch.tensor([tokens]), range(50, 601, 50))[0]
    assert float((parts - whole).abs().max()) < 1e-3
    mrrope.unpatch(model)
    # Vendors' own scaling stays below the plan, and interleaved pairs turn as such.
    for name, options in {"llama": {"rope_parameters": {
            "rope_type": "llama3", "rope_theta": 1e4, "factor": 4.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 64}},
            "cohere": {}, "glm": {"partial_rotary_factor": 0.5, "pad_token_id": 0}}.items():
        model = make(config_of(name, **options))
        grows = mrrope.patch(model, "elastic:pi", ctx=1024)
        assert logits_of(model, tokens).isfinite().all()
        print(f"{name}: {grows}, {grows.geometry.rotary_dim} elements, {grows.geometry.pairing}")
        mrrope.unpatch(model)
    # One rotation for windowed and other layers; no rotation at all; rounded frequencies.
    refused("sliding-window layers", mrrope.patch, make(config_of("gemma2", sliding_window=32)),
            "pi", 1024)
    refused("sliding-window layers", mrrope.patch,
            make(config_of("qwen2", use_sliding_window=True, sliding_window=32, max_window_layers=1)),
            "pi", 1024)
    refused("DynamicSlidingWindowLayer", mrrope.patch,
            make(config_of("mistral", sliding_window=32)), "elastic:pi", 1024)
    learned = make(transformers.AutoConfig.for_model("gpt2", vocab_size=64, n_embd=64, n_layer=2,
                                                     n_head=4))
    refused("", mrrope.patch, learned, "pi", 4096)
    rounded = make(config_of("llama")).bfloat16()
    refused("rotary modules", mrrope.patch, rounded, "pi", 1024)
    halved = make(config_of("llama"), dtype=torch.bfloat16)
    mrrope.patch(halved, "elastic:pi", ctx=1024)
    assert logits_of(halved, tokens).isfinite().all()
    # A model whose keys do not turn: its attention scales them after the rotation.
    strange = make(config_of("llama"))
    attention = strange.model.layers[1].self_attn
    forward = attention.forward
    attention.forward = lambda *a, **k: forward(
        *a, **{**k, "position_embeddings": tuple(x * 0 + 1 for x in k["position_embeddings"])})
    refused("layer 1", mrrope.patch, strange, "pi", 1024)


def check_reach(work):
    """generate() warns only beyond the plan; files and unpatch() have the model's own window."""
    model = transformers.AutoModelForCausalLM.from_config(config_of("llama"))
    prompt = torch.arange(60).repeat(5)[None]
    made = {"max_new_tokens": 2, "min_new_tokens": 2, "do_sample": False, "pad_token_id": 0}

    def warnings():
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        logger = transformers.utils.logging.get_logger("transformers")
        transformers.utils.logging.set_verbosity_warning()
        transformers.utils.logging.warning_once.cache_clear()
        logger.addHandler(handler)
        model.generate(prompt, attention_mask=torch.ones_like(prompt), **made)
        logger.removeHandler(handler)
        transformers.utils.logging.set_verbosity_error()
        return stream.getvalue()

    assert "maximum length (256)" in warnings()  # this test could fail
    for method, options, longest in (("pro", {"ctx": 1024}, 1024), ("pi", {"scale": 3}, 768),
                                     ("dynamic-ntk", {"ctx": "1k"}, 1024), ("pro", {"ctx": 100}, 256),
                                     ("elastic:pro", {"ctx": 1000}, 1000), ("far:pi", {"scale": 4}, 1024),
                                     (mrrope.plan(work / "reach", "pi", ctx=640), {}, 640)):
        mrrope.patch(model, method, **options)
        assert model.config.max_position_embeddings == longest, (method, longest)
        assert ("maximum length" in warnings()) == (longest < 302), method
        model.save_pretrained(work / "reach")
        assert model.config.max_position_embeddings == longest
        assert load(work / "reach").config.max_position_embeddings == 256
        mrrope.unpatch(model)
        assert model.config.max_position_embeddings == 256
        assert "save_pretrained" not in model.__dict__
    assert "maximum length (256)" in warnings()


def plain_attention(query, key, value, ladder, count):
    """Attention of the last of `count` tokens, head by head in double; keys are not rotated yet."""
    place = ladder.place_at(count)
    far, shipped = ladder.rungs[place.rung].plan, ladder.rungs[0].plan
    window, m = ladder.geometry.train_length, ladder.rungs[place.rung].length
    g = ladder.sharpen * math.log2(m / window)
    sharper = (math.log(m) / math.log(window)) ** g if count > window else 1.0

    def turned(vector, angles, by):
        half = len(angles)
        x, y = vector[:half], vector[half:]
        return by * numpy.concatenate([x * numpy.cos(angles) - y * numpy.sin(angles),
                                       x * numpy.sin(angles) + y * numpy.cos(angles)])

    out = numpy.zeros_like(query)
    theta, factor = numpy.array(shipped.theta), numpy.array(far.factor)
    for head in range(len(query)):
        group, scores = head * len(key) // len(query), []
        for at in range(count):
            if ladder.near and at < place.border:  # docs/design/growing-contexts.md
                moved = place.shift if (factor == factor[0]).all() else place.border * (1 - 1 / factor)
                angles, by = (at / factor + moved) * theta, far.attention_scale ** 2
            elif ladder.near:
                angles, by = at * theta, 1.0
            else:
                angles, by = at * numpy.array(far.theta), far.attention_scale ** 2
            own = theta if ladder.near else numpy.array(far.theta)
            scores.append(turned(query[head], (count - 1) * own, sharper)
                          @ turned(key[group, at], angles, by) / math.sqrt(query.shape[1]))
        weights = numpy.exp(scores - numpy.max(scores))
        out[head] = weights / weights.sum() @ value[group, :count]
    return out


def check_sharpen():
    """Sharper queries, against attention by hand; passes of any length; what is refused."""
    make = transformers.AutoModelForCausalLM.from_config
    torch.manual_seed(6)
    model = make(config_of("llama")).double()
    model.model.rotary_emb.inv_freq = model.model.rotary_emb.inv_freq.float()
    attention = model.model.layers[0].self_attn
    with torch.no_grad():
        attention.q_proj.weight *= 20  # so that its scores differ
        attention.k_proj.weight *= 20
    own = attention.scaling
    tokens = torch.randint(0, 64, (1, 700), generator=torch.Generator().manual_seed(5))
    seen = {}
    attention.o_proj.register_forward_pre_hook(lambda _, given: seen.update(out=given[0].detach()))

    with torch.no_grad():
        hidden = model.model.layers[0].input_layernorm(model.model.embed_tokens(tokens))[0]
        query, key, value = (layer(hidden).view(700, -1, 16).transpose(0, 1).numpy()
                             for layer in (attention.q_proj, attention.k_proj, attention.v_proj))
    for method, options in (("elastic:pro", {}), ("far:pi", {"near": 32, "near_step": 16}),
                            ("far:pro", {"near": 64, "near_step": 64})):
        found = {}
        for g in (0.0, 0.5, 1.5):
            ladder = mrrope.patch(model, method, ctx=1024, sharpen=g, **options)
            assert ladder.sharpen == g
            with torch.no_grad():
                for count in (200, 256, 257, 300, 700):
                    model(tokens[:, :count])
                    wanted = plain_attention(query[:, count - 1], key, value, ladder, count)
                    found[g, count] = seen["out"][0, -1].view(-1, 16).numpy()
                    apart = numpy.abs(found[g, count] - wanted).max() / numpy.abs(wanted).max()
                    assert apart < 1e-4, (method, g, count, apart)
                parts = in_passes(model, tokens, range(50, 701, 50))
                assert float((parts - model(tokens).logits).abs().max()) < 1e-4, method
                model(tokens[:, :256])
                assert attention.scaling == own  # inside the window
                model(tokens)
                assert (attention.scaling > own) == (g > 0)
            mrrope.unpatch(model)
            assert attention.scaling == own
        signal = numpy.abs(found[1.5, 700] - found[0.0, 700]).max() / numpy.abs(found[0.0, 700]).max()
        assert signal > 0.01, (method, signal)  # this test could fail
        assert numpy.array_equal(found[1.5, 256], found[0.0, 256])
        print(f"{method}, sharpened: attention is that by hand; 1.5 changes it by {signal:.2f}")
    half = make(config_of("glm", partial_rotary_factor=0.5, pad_token_id=0))
    other = make(config_of("llama"))
    other.model.layers[1].self_attn.scaling = None  # torch knows its own
    for broken in (half, other):
        refused("as many as rotate", mrrope.patch, broken, "elastic:pi", 1024, sharpen=0.5)
        mrrope.patch(broken, "elastic:pi", 1024)  # nothing is left of the refused one
        mrrope.unpatch(broken)


def check_longrope(work):
    """An exported folder whose config is nested by layer type, pass after pass beyond the window.

    transformers picks longrope's list anew in every pass (longrope_frequency_update), which has
    failed in the second long one; an export gives the same numbers whichever it picks.
    """
    config = config_of("gemma3_text", sliding_window=32, query_pre_attn_scalar=16,
                       layer_types=["sliding_attention", "full_attention", "full_attention"])
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.save_pretrained(work / "nested")
    mrrope.export(work / "nested", "yarn", ctx=1024, to="hf", out=work / "nested-long", verify=False)
    exported = load(work / "nested-long")
    assert exported.config.rope_parameters["full_attention"]["rope_type"] == "longrope"
    mrrope.patch(model, "yarn", ctx=1024)
    tokens = list(range(60)) * 10
    for count in (600, 600, 100, 500, 600):
        apart = logits_of(exported, tokens[:count]) - logits_of(model, tokens[:count])
        assert float(apart.abs().max()) < 1e-4, count
    mrrope.patch(exported, "pi", ctx=2048)  # what a vendor's longrope declares is kept
    assert logits_of(exported, tokens).isfinite().all()
    mrrope.unpatch(exported)
    apart = logits_of(exported, tokens) - logits_of(model, tokens)
    assert float(apart.abs().max()) < 1e-4


def check_two_lists():
    """Phi-3 under auto: its short list up to the window, its long one beyond; keys are turned."""
    pairs = 8
    lists = {"short_factor": [1 + 0.1 * i for i in range(pairs)],
             "long_factor": [2 + 3.0 * i for i in range(pairs)]}
    config = config_of("phi3", pad_token_id=0, original_max_position_embeddings=64, sliding_window=None,
                       rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, **lists})
    config.num_hidden_layers = 1  # more of them would remember the list that the window was read with
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        model.model.layers[0].self_attn.qkv_proj.weight *= 20
    tokens = list(range(60)) * 3
    short, long = logits_of(model, tokens[:64]), logits_of(model, tokens)
    ladder = mrrope.patch(model, "auto", ctx=256)
    assert ladder.method == "elastic:vendor" and [r.length for r in ladder.rungs] == [64, 256]
    assert torch.equal(logits_of(model, tokens[:64]), short)
    for size in (len(tokens), 50, 1):
        rows = in_passes(model, torch.tensor([tokens]), [*range(size, len(tokens), size), len(tokens)])[0]
        apart = float((rows[64:] - long[64:]).abs().max())
        assert apart < 1e-3 * float(long.abs().max()), (size, apart)
        assert float((rows[:64] - short).abs().max()) < 1e-4, size
    signal = float((short - long[:64]).abs().max() / long.abs().max())
    assert signal > 0.05, signal  # this test could fail
    mrrope.unpatch(model)
    assert torch.equal(logits_of(model, tokens), long)
    refused("made for 256 tokens", mrrope.patch, model, "elastic:vendor", ctx=512)
    refused("two lists", mrrope.patch, transformers.AutoModelForCausalLM.from_config(
        config_of("llama")), "elastic:vendor", ctx=512)
    print(f"two lists: beyond the window those of transformers; the other list is {signal:.2f} away")


def main():
    score_tokens, model, golden, work = map(pathlib.Path, sys.argv[1:])
    print(f"transformers {transformers.__version__}, torch {torch.__version__}", flush=True)
    transformers.utils.logging.set_verbosity_error()
    reader = gguf.GGUFReader(model)
    tensors = unpacked(reader)
    write_checkpoint(reader, tensors, work / "tiny")
    write_gguf(reader, tensors, work / "tiny.gguf")
    random_model("llama", 1e4, reader, work / "llama", work / "llama.gguf")
    random_model("qwen2", 5e4, reader, work / "qwen2", work / "qwen2.gguf")
    text = work / "text.txt"
    story = json.loads(golden.read_text())["text"]
    text.write_text(story * (1 + 60000 // len(story)))
    check_by_torch()
    check_others()
    check_sharpen()
    transformers.AutoModelForCausalLM.from_config(config_of("llama")).save_pretrained(work / "reach")
    check_reach(work)
    check_longrope(work)
    check_two_lists()
    check_plans(work)
    check_caches(work)
    check_far(work)
    for name in ("llama", "qwen2", "tiny"):
        check_inside(work, name)
        check_equal(score_tokens, work, text, name, (4096, 8192))


main()

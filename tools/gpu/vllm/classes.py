#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin with vLLM's own classes, without a server or a GPU: classes.py

Needs vLLM 0.26.0 and mrrope in one environment. Prints one line for each check; exit code 1 at the first that
fails. Checked: rung 0 is vLLM's table bit for bit and the others have the angles of float64, for every kind
of table that vLLM makes; rotation of a mixed batch, in eager mode and compiled with a length that is not known;
admission through InputProcessor and the hashes of vLLM's prefix cache; rows through both runners; near and far keys
from the rotary class through vLLM's cache and the backend, if Triton is installed (TRITON_INTERPRET=1 without a GPU);
refusals.
"""
import dataclasses
import inspect
import os
import sys
import types

import torch
import vllm.config
from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config
from vllm.model_executor.layers import rotary_embedding as layers
from vllm.sampling_params import SamplingParams
from vllm.v1.core.kv_cache_utils import generate_block_hash_extra_keys
from vllm.v1.engine import EngineCoreRequest
from vllm.v1.engine.input_processor import InputProcessor
from vllm.v1.request import Request

from mrrope import _vllm, _vllm_rungs

WINDOW, LENGTHS = 256, (256, 512, 1024)
plain_get_rope = layers.get_rope


def ladder(pairs, factors=None, temperature=1.0, base=10000.0, **more):
    """Rung 0 as the model is; the others stretch slow pairs more than fast ones."""
    own = factors or [1.0] * pairs
    rungs = []
    for i, length in enumerate(LENGTHS):
        stretch = [(length / WINDOW) ** (p / (pairs - 1)) for p in range(pairs)]
        rungs.append({"rung": i, "length": length, "attention_factor": temperature * (1 + 0.1 * i),
                      "factors": [a * b for a, b in zip(own, stretch)]})
    return {"rope_type": "mrrope", "rope_theta": base, "original_max_position_embeddings": WINDOW,
            "rungs": rungs, **more}


def config(parameters, v2=False, **wrong):
    space = types.SimpleNamespace
    model = space(max_model_len=LENGTHS[-1], runner_type="generate", multimodal_config=None,
                  hf_text_config=space(rope_parameters=parameters))
    made = space(model_config=model, parallel_config=space(use_ubatching=False, prefill_context_parallel_size=1),
                 cache_config=space(), speculative_config=None, use_v2_model_runner=v2,
                 scheduler_config=space(max_num_batched_tokens=512))
    for name, value in wrong.items():
        setattr(made, name, value)
    return made


def get_rope(parameters, *args, given=None, **more):
    """As a model file calls it, under the configuration of a server."""
    before = vllm.config.get_current_vllm_config
    vllm.config.get_current_vllm_config = lambda: given or config(parameters)
    try:
        return layers.get_rope(*args, rope_parameters=parameters, **more)
    finally:
        vllm.config.get_current_vllm_config = before


def refused(part, call, *args, **more):
    try:
        call(*args, **more)
    except ValueError as error:
        assert part in str(error), (part, str(error))
    else:
        raise AssertionError(f"not refused: {part}")


def trained_factors(parameters, pairs):
    """Divisors of theta of one of vLLM's own kinds, from its inverse frequencies."""
    own = plain_get_rope(2 * pairs, WINDOW, True, parameters, torch.float32)
    theta = own._compute_inv_freq(getattr(own, "scaling_factor", 1) if isinstance(
        own, layers.YaRNScalingRotaryEmbedding) else own.base).double()
    bare = 10000.0 ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
    return (bare / theta).tolist(), float(own.cos_sin_cache[0, 0])


def check_tables():
    kinds = {
        "default": (128, True, None, {}),
        "interleaved pairs": (128, False, None, {}),
        "a part of the head": (128, True, None, {"partial_rotary_factor": 0.25}),
        "llama3": (128, True, {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
                               "high_freq_factor": 4.0, "original_max_position_embeddings": 64}, {}),
        "yarn": (128, True, {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                             "original_max_position_embeddings": 64}, {}),
        "M-RoPE, text": (128, True, None, {"mrope_section": [16, 24, 24]}),
    }
    for name, (head, neox, original, more) in kinds.items():
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            pairs = int(head * more.get("partial_rotary_factor", 1.0)) // 2
            factors, temperature = trained_factors(original, pairs) if original else (None, 1.0)
            asked = ladder(pairs, factors, temperature, **more, **({"original": original} if original else {}))
            made = get_rope(asked, head, LENGTHS[-1], is_neox_style=neox, dtype=dtype)
            own = plain_get_rope(head, WINDOW, neox, original or {"rope_type": "default", "rope_theta": 10000.0,
                                                                  **more}, dtype)
            assert made.cos_sin_cache.dtype == dtype
            assert torch.equal(made.cos_sin_cache[:WINDOW], own.cos_sin_cache[:WINDOW]), name
            first = WINDOW
            for rung in asked["rungs"][1:]:
                wanted = _vllm.table(10000.0, rung["factors"], rung["attention_factor"], rung["length"])
                got = made.cos_sin_cache[first:first + rung["length"]]
                assert torch.equal(got, wanted.to(dtype)), name
                first += rung["length"]
            assert first == made.cos_sin_cache.shape[0]
            assert made is get_rope(asked, head, LENGTHS[-1], is_neox_style=neox, dtype=dtype), "layers share"
        print(f"tables, {name}: ok")


def check_rotation():
    """A batch of three rungs against three modules of vLLM's class that hold one table each."""
    asked = ladder(32)
    for neox in (True, False):
        made = get_rope(asked, 64, LENGTHS[-1], is_neox_style=neox, dtype=torch.float32)
        batch = [(2, 900, 60), (0, 0, 37), (1, 511, 1), (0, 200, 56), (2, 0, 100)]  # rung, first, tokens
        rungs, counts = [b[0] for b in batch], tuple(b[2] for b in batch)
        positions = torch.cat([torch.arange(b[1], b[1] + b[2]) for b in batch])
        _vllm_rungs.fill(_vllm_rungs.rows, positions, (0, 256, 768), rungs, counts)
        torch.manual_seed(1)
        query, key = torch.randn(len(positions), 4 * 64), torch.randn(len(positions), 2 * 64)
        made._forward_method = made.forward_native  # no kernels here

        def compiled(shape):
            run = torch.compile(lambda p, q, k: made(p, q, k), backend="aot_eager", fullgraph=True)
            p, q, k = positions.clone(), query.clone(), key.clone()
            for x in (p, q, k):
                shape(x, 0)
            return run(p, q, k)

        ways = {"eager": made(positions, query.clone(), key.clone()),
                "positions of three dimensions": made(positions.expand(3, -1), query.clone(), key.clone()),
                "compiled": compiled(torch._dynamo.mark_dynamic)}
        at = 0
        for rung, first, count in batch:
            one = layers.RotaryEmbedding(64, 64, 1024, 10000.0, neox, torch.float32)
            if rung:
                numbers = asked["rungs"][rung]
                one.cos_sin_cache = _vllm.table(10000.0, numbers["factors"], numbers["attention_factor"], 1024)
            part = slice(at, at + count)
            wanted = one.forward_native(torch.arange(first, first + count), query[part], key[part])
            for way, got in ways.items():
                assert torch.equal(got[0][part], wanted[0]) and torch.equal(got[1][part], wanted[1]), (way, rung)
            at += count
    print("rotation of a mixed batch, eager and compiled: ok")


def check_admission():
    names = list(inspect.signature(InputProcessor.process_inputs).parameters)
    assert names[:4] == ["self", "request_id", "prompt", "params"], names
    processor = object.__new__(InputProcessor)
    given = config(ladder(32))
    processor.model_config = given.model_config
    processor.mrrope_ladder = _vllm_rungs.read_ladder(ladder(32))
    fields = {f: None for f in EngineCoreRequest.__struct_fields__}

    def admitted(prompt, most, salt=None, **extra):
        made = EngineCoreRequest(**{**fields, "request_id": "cmpl-1", "arrival_time": 0.0, "cache_salt": salt,
                                    "prompt_token_ids": list(range(prompt)), "priority": 0,
                                    "resumable": False,
                                    "sampling_params": SamplingParams(max_tokens=most, extra_args=extra or None)})
        rung = _vllm_rungs.admit(processor.mrrope_ladder, made, given.model_config.max_model_len)
        request = Request.from_engine_core_request(made, None)
        assert _vllm_rungs.rung_of("cmpl-1", request.sampling_params) == rung
        keys, _ = generate_block_hash_extra_keys(request, 0, 16, 0)
        return rung, keys

    assert admitted(100, 156) == (0, None)
    (one, a), (two, b), (again, c) = admitted(100, 157), admitted(100, 500), admitted(90, 400)
    assert (one, two, again) == (1, 2, 1) and a == c != b and a and b
    assert admitted(100, 10, mrrope_rung=2) == (2, b)
    assert admitted(100, 10, "mine")[1] != admitted(100, 300, "mine")[1] != a
    print("admission and the prefix cache's hashes: ok")


def check_wrapped():
    """The functions of vLLM are there, wrapped once, and admission reads the ladder at the start."""
    assert not _vllm_rungs.missing, _vllm_rungs.missing
    for name in ("__init__", "process_inputs"):
        function = InputProcessor.__dict__[name]
        assert function.mrrope and not getattr(function.__wrapped__, "mrrope", False), name
    _vllm.register()
    assert not getattr(InputProcessor.__init__.__wrapped__, "mrrope", False)
    print("InputProcessor is wrapped once: ok")


def check_runners():
    """Rows through the wrapped functions; vLLM's own, which need a device, are replaced underneath."""
    space = types.SimpleNamespace
    asked = ladder(32)
    model = config(asked).model_config
    rungs = {"a": 2, "b": 0, "c": 1}

    def params(rung):
        return SamplingParams(extra_args={"mrrope_rung": rung})

    from vllm.v1.worker import gpu_model_runner
    real = gpu_model_runner.GPUModelRunner.__dict__["_prepare_inputs"]
    real = getattr(real, "__wrapped__", real)
    assert list(inspect.signature(real).parameters) == ["self", "scheduler_output", "num_scheduled_tokens"]
    for name in ("self.positions[:total_num_scheduled_tokens] =", "self.requests[r].num_tokens for r in "
                 "self.input_batch.req_ids"):
        assert name in inspect.getsource(real), name
    gpu_model_runner.GPUModelRunner._prepare_inputs = lambda self, output, counts: "prepared"
    _vllm_rungs.hook_runner(False)
    for order in ("abc", "cab", "bca"):
        runner = space(model_config=model, positions=torch.arange(512) % 100,
                       input_batch=space(req_ids=list(order), num_reqs=3),
                       requests={n: space(sampling_params=params(r)) for n, r in rungs.items()})
        counts = [200, 1, 16]
        said = gpu_model_runner.GPUModelRunner._prepare_inputs(runner, None, counts)
        offsets = [(0, 256, 768)[rungs[n]] for n in order]
        wanted = runner.positions[:217] + torch.tensor(offsets).repeat_interleave(torch.tensor(counts))
        assert said == "prepared" and torch.equal(_vllm_rungs.rows[:217], wanted)
    other = space(model_config=space(hf_text_config=space(rope_parameters={"rope_type": "default"})))
    assert gpu_model_runner.GPUModelRunner._prepare_inputs(other, None, [1]) == "prepared"
    print("rows of runner V1: ok")

    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.worker.gpu import input_batch, model_runner
    assert {"req_ids", "num_scheduled_tokens"} <= {f.name for f in dataclasses.fields(input_batch.InputBatch)}
    assert {"scheduled_new_reqs", "finished_req_ids"} <= {f.name for f in dataclasses.fields(SchedulerOutput)}
    runner_class = model_runner.GPUModelRunner
    assert "self.input_buffers.positions" in inspect.getsource(runner_class.prepare_inputs)
    assert list(inspect.signature(runner_class.add_requests).parameters) == ["self", "scheduler_output"]
    runner_class.add_requests = lambda self, output: None
    runner_class.prepare_inputs = lambda self, output, batch: batch
    _vllm_rungs.hook_runner(True)
    runner = space(model_config=model, input_buffers=space(positions=torch.arange(512) % 100))
    new = [space(req_id=n, sampling_params=params(r)) for n, r in rungs.items()]
    new.append(space(req_id="_warmup_0_", sampling_params=SamplingParams()))
    runner_class.add_requests(runner, space(finished_req_ids=set(), scheduled_new_reqs=new))
    batch = space(req_ids=["c", "a", "_warmup_0_", "b"], num_scheduled_tokens=[3, 50, 2, 9])
    assert runner_class.prepare_inputs(runner, None, batch) is batch
    wanted = torch.tensor([256, 768, 0, 0]).repeat_interleave(torch.tensor([3, 50, 2, 9]))
    assert torch.equal(_vllm_rungs.rows[:64], runner.input_buffers.positions[:64] + wanted)
    # A request that was preempted comes again as a new one; one that is done is forgotten.
    again = [space(req_id="a", sampling_params=params(2))]
    runner_class.add_requests(runner, space(finished_req_ids={"b", "_warmup_0_"}, scheduled_new_reqs=again))
    assert runner.mrrope_rungs == {"a": 2, "c": 1}
    print("rows of runner V2: ok")


def check_far():
    """Texts read in chunks: the rotary class, vLLM's cache and metadata and the backend's attention, in the form of
    FlashAttention too, which runs on no CPU, against far.py in float64."""
    import far
    from vllm.v1.attention.backend import CommonAttentionMetadata
    from vllm.v1.attention.backends import fa_utils
    from vllm.v1.attention.backends.registry import AttentionBackendEnum
    from mrrope import _vllm_far, _vllm_flash, _vllm_kernel
    asked = ladder(16, near_part={"length": 48, "step": 32})
    custom, space = AttentionBackendEnum.CUSTOM, types.SimpleNamespace
    for rung in asked["rungs"]:
        scale = (rung["length"] - 48) // 32 * 32 / 140 if rung["rung"] else 1.0
        rung.update(scale=scale, sharpness=1 + 0.1 * rung["rung"], attention_factor=1.0, factors=[scale] * 16)
    given = config(asked, attention_config=space(backend=custom, backend_per_kind={}))
    given.scheduler_config.max_num_seqs = 8
    refused("add --attention-backend CUSTOM", get_rope, asked, 32, 1024, given=config(asked))
    rotary = get_rope(asked, 32, LENGTHS[-1], given=given, dtype=torch.float32, is_neox_style=True)
    rotary._forward_method = rotary.forward_native
    backend = custom.get_class()
    module, shape = sys.modules[backend.__module__], (4, 32, 32 ** -0.5, 2, None)
    real, module.get_current_vllm_config = module.get_current_vllm_config, lambda: given
    impl, text = backend.get_impl_cls(), given.model_config.hf_text_config
    text.rope_parameters = {"full_attention": asked, "sliding_attention": {}}
    assert not impl(*shape, 64, "auto").turned and impl(*shape, None, "auto").turned
    text.rope_parameters = ladder(16)
    refused("has no near part", impl, *shape, None, "auto")
    text.rope_parameters = asked
    assert impl(*shape, 64, "auto").turned
    impl = impl(*shape, None, "auto")
    module.get_current_vllm_config = real
    builder = object.__new__(backend.get_builder_cls())
    builder.__dict__.update(device="cpu", seq_threshold_3D=8, num_par_softmax_segments=16, rswa_window=None,
                            softmax_segm_output=None, softmax_segm_max=None, softmax_segm_expsum=None,
                            parts=_vllm_kernel.make_parts(8, 4, 2, 32, "cpu"),
                            schedule=None)
    fa_utils.get_scheduler_metadata = lambda batch_size, **_: torch.ones(1 + -(-batch_size // 4) * 16)
    torch.manual_seed(3)
    rungs, lengths, chunks = (2, 0, 1), (700, 200, 500), (0, 100, 199, 270, 480, 699)
    texts = [[torch.randn(n, h, 32) for h in (4, 2, 2)] for n in lengths]
    wanted = [far.attention(*(x.double() for x in texts[r]), asked, rungs[r]) for r in range(3)]
    calls, seen, early, read = [], set(), set(), _vllm_rungs.read_ladder(asked)
    record_kernels(seen)
    _vllm_kernel.segments, _vllm_kernel.NEAR_LEAST = lambda sequences, _: 16 if sequences < 3 else 8, 32
    assert _vllm_kernel.near_segments(_vllm_far.tables) == 8  # the keys of a new token are in 2 of them
    warm_up = impl.warm_up

    def attend(*args, **more):
        calls.append(more["causal"])
        return far.flash(*args, **more)

    def warmed(*args):
        seen.clear()
        warm_up(*args)
        early.update(seen)

    impl.warm_up = warmed

    for builder.half in (False, True):
        if builder.half:
            impl.flash, _vllm_flash.attend = impl.flash or 3, attend
            builder.schedule = _vllm_flash.Schedule(8, 4, 2, 32, 16, torch.float32, "cpu")
        cache = torch.zeros(backend.get_kv_cache_shape(150, 16, 2, 32))
        keys, values = cache.transpose(1, 2).split(32, dim=-1)
        table, outputs = torch.randperm(150)[:132].view(3, 44).int(), [[], [], []]
        for begin, end in zip(chunks, (*chunks[1:], 700)):  # the last has one token
            busy = [r for r in range(3) if begin < lengths[r]]
            parts = [slice(begin, min(end, lengths[r])) for r in busy]
            positions = torch.cat([torch.arange(700)[part] for part in parts])
            chosen = [rungs[r] for r in busy], [part.stop - begin for part in parts]
            _vllm_rungs.fill_all(read, positions, *chosen)
            q, k, v = (torch.cat([texts[r][x][part] for r, part in zip(busy, parts)]) for x in range(3))
            q, k = rotary(positions, q.flatten(1), k.flatten(1))
            owner = torch.tensor(busy).repeat_interleave(torch.tensor(chosen[1]))
            slots = table[owner, positions // 16], positions % 16
            keys[slots], values[slots] = k.view(-1, 2, 32), v
            starts = torch.tensor([0, *chosen[1]]).cumsum(0).int()
            ends = torch.tensor([part.stop for part in parts]).int()
            m = builder.build(0, CommonAttentionMetadata(
                query_start_loc=starts, query_start_loc_cpu=starts, seq_lens=ends,
                num_reqs=len(busy), num_actual_tokens=len(positions), max_query_len=max(chosen[1]), max_seq_len=700,
                block_table_tensor=table[busy], slot_mapping=None, seq_lens_cpu_upper_bound=ends))
            assert bool(m.plan) == (builder.half and max(chosen[1]) > 1)
            out = impl.forward(None, q.view(-1, 4, 32), None, None, cache, m, torch.zeros(len(positions), 4 * 32))
            for r, made in zip(busy, out.view(-1, 4, 32).split(chosen[1])):
                outputs[r].append(made)
        worst = max((torch.cat(made) - one).abs().max().item() for made, one in zip(outputs, wanted))
        assert worst < 1e-4, worst
        print(f"near and far keys, read in chunks, {len(calls)} calls of FlashAttention: largest {worst:.2g}: ok")
    assert set(calls) == {True, False} and _vllm_far.tables.warm
    # A batch with one new token each is compiled where its CUDA graph is made.
    late = {key for key in seen - early if ("ONLY_NEAR", True) not in key}
    assert not late, f"compiled when a request came: {late}"


def record_kernels(seen):
    """Adds to `seen` what Triton would compile: for each call the kernel, its constants, and what it tells apart in
    the other arguments."""
    from triton.runtime import interpreter
    run = interpreter.InterpretedFunction.run

    def recorded(self, *args, grid, warmup, **more):
        given = self.rewriter.kwargs
        free = given.get("do_not_specialize") or (), given.get("do_not_specialize_on_alignment") or ()

        def kind(name, value):
            if isinstance(value, torch.Tensor):
                return str(value.dtype), name in free[1] or value.data_ptr() % 16 == 0
            if isinstance(value, int) and name not in free[0]:
                return value == 1, value % 16 == 0, abs(value) < 2 ** 31
            return type(value)

        seen.add((self.fn.__name__, *(kind(*pair) for pair in zip(self.arg_names, args)), *sorted(more.items())))
        return run(self, *args, grid=grid, warmup=warmup, **more)

    interpreter.InterpretedFunction.run = recorded


def check_refusals():
    good = ladder(32)
    small = ladder(16)  # none of this size was made before
    refused("speculative", get_rope, small, 32, 1024, given=config(small, speculative_config=object()))
    refused("rung 0 is not this model", get_rope, {**good, "rope_theta": 5e5, "original": {
        "rope_type": "linear", "factor": 4.0}}, 64, 1024)
    refused("made for the base", get_rope, {**good, "original": {"rope_theta": 5e5}}, 64, 1024)
    refused("pairs", get_rope, good, 128, 1024)
    sections = {"rope_type": "xdrope", "alpha": 2.0, "xdrope_section": [8, 8, 8, 8]}
    refused("XDRotaryEmbedding", get_rope, {**good, "original": sections}, 64, 1024)
    refused("dual chunk", get_rope, good, 64, 1024, dual_chunk_attention_config={"chunk_size": 1})
    refused("rung 1 is missing", get_rope, {**good, "rungs": good["rungs"][:1] + good["rungs"][2:]}, 64, 1024)
    from vllm.model_executor.models import qwen3_next
    assert _vllm_rungs.READS_TABLES.search(inspect.getsource(qwen3_next))
    from vllm.model_executor.models import llama, qwen2, qwen3, gemma3, glm4
    for module in (llama, qwen2, qwen3, gemma3, glm4):
        assert not _vllm_rungs.READS_TABLES.search(inspect.getsource(module)), module.__name__
    real, vllm.__version__ = vllm.__version__, "0.33.0"
    refused("0.33.0", get_rope, good, 64, 1024)
    vllm.__version__ = real
    print("refusals: ok")


def main():
    _vllm.register()
    with set_current_vllm_config(VllmConfig(device_config=DeviceConfig(device="cpu"))):
        check_tables()
        check_rotation()
        check_admission()
        check_wrapped()
        check_refusals()
        if torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1":
            check_far()
        else:
            print("near and far keys: NOT checked; set TRITON_INTERPRET=1")
        check_runners()


if __name__ == "__main__":
    sys.exit(main())

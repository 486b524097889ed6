# SPDX-License-Identifier: Apache-2.0
"""A rung for every request in vLLM: the part of the plugin for config.json with a ladder.

    "rungs": [{"rung": 0, "length": 1024, "attention_factor": 1.0, "factors": [1.0, ...]}, ...]

The tables of all rungs lie in one cache, one after the other; rung 0 is vLLM's own table. With a near part, rung 0
follows once more for each other rung, sharpened. A request gets the smallest rung that covers its prompt and max_tokens
when it is admitted, and keeps it. Before each forward pass the row of every token (its position plus the first row of
its rung) is written into a buffer that never moves, so that torch.compile and CUDA graphs see nothing new. What is
wrapped, in vLLM 0.26.0:

    vllm.v1.engine.input_processor.InputProcessor.__init__, process_inputs      admission
    vllm.v1.worker.gpu_model_runner.GPUModelRunner._prepare_inputs              rows, runner V1
    vllm.v1.worker.gpu.model_runner.GPUModelRunner.add_requests, prepare_inputs rows, runner V2
"""
from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import itertools
import json
import re
import sys
from typing import Any, Callable, NamedTuple

from . import _vllm_far

# In a model file: it rotates without calling the rotary class, and so past the rows.
READS_TABLES = re.compile(r"rotary_emb\.(cos_sin_cache|forward_)")
ARGUMENT = "mrrope_rung"  # in SamplingParams.extra_args, and vllm_xargs of a request
missing: list[str] = []   # functions that are wrapped and that this vLLM has not
rows: Any = None          # the buffer; one for all layers


class Rung(NamedTuple):
    length: int
    factors: tuple[float, ...]
    temperature: float


class Ladder(NamedTuple):
    base: float
    rungs: tuple[Rung, ...]
    first: tuple[int, ...]  # row of the cache where each rung begins
    digest: str             # of all numbers: what caches that outlive a server tell plans apart by
    near: Any = None        # _vllm_far.Near: the rungs are those of far keys


def refuse(why: str, instead: str) -> None:
    raise ValueError(f"mrrope: {why}; {instead}")


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")


def read_ladder(parameters: dict[str, Any]) -> Ladder:
    """Throws ValueError, which stops vLLM with its text, if the ladder cannot be run as it was exported."""
    again = "export the model again with mrrope export --method elastic:pro --to hf-mrrope"
    given = parameters.get("rungs")
    if not isinstance(given, list) or not given or not all(isinstance(r, dict) for r in given):
        refuse("rungs in config.json is not a list of rungs", again)
    rungs: list[Rung] = []
    for i, rung in enumerate(given):
        if rung.get("rung") != i:
            refuse(f"rung {i} is missing: config.json has rung {rung.get('rung')!r} in its place", again)
        length, factors, temperature = (rung.get(k) for k in ("length", "factors", "attention_factor"))
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            refuse(f"rung {i} has length {length!r}, not a number of tokens", again)
        if rungs and length <= rungs[-1].length:
            refuse(f"rung {i} has {length} tokens and rung {i - 1} has {rungs[-1].length}: "
                   "lengths must increase", again)
        if not isinstance(factors, list) or not factors or not all(map(is_number, (*factors, temperature))):
            refuse(f"rung {i}: factors and attention_factor must be positive numbers", again)
        if rungs and len(factors) != len(rungs[0].factors):
            refuse(f"rung {i} has {len(factors)} factors and rung 0 has {len(rungs[0].factors)}", again)
        rungs.append(Rung(length, tuple(map(float, factors)), float(temperature)))
    window = parameters.get("original_max_position_embeddings")
    if rungs[0].length != window:
        refuse(f"rung 0 has {rungs[0].length} tokens, and the model's window "
               f"(original_max_position_embeddings) {window!r}", again)
    base = parameters.get("rope_theta")
    if not is_number(base):
        refuse(f"rope_theta is {base!r}", again)
    first = itertools.accumulate((rung.length for rung in rungs[:-1]), initial=0)
    near = _vllm_far.read_near(parameters, tuple(rungs))
    digest = hashlib.sha256(json.dumps([base, rungs, *(near or ())]).encode()).hexdigest()[:16]
    return Ladder(float(base), tuple(rungs), tuple(first), digest, near)


def find_ladders(rope_parameters: Any) -> list[dict[str, Any]]:
    """The dictionaries with rungs: rope_parameters itself, or those of its kinds of layers."""
    given = rope_parameters if isinstance(rope_parameters, dict) else {}
    some = [given, *(v for v in given.values() if isinstance(v, dict))]
    return [p for p in some if p.get("rope_type") == "mrrope" and "rungs" in p]


def own_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """What vLLM would rotate the unmodified model by."""
    ours = ("rope_type", "rungs", "near_part", "original", "original_max_position_embeddings")
    own = {k: v for k, v in parameters.items() if k not in ours} | (parameters.get("original") or {})
    own["rope_type"] = own.pop("type", None) or own.get("rope_type") or "default"
    return own


def choose_rung(ladder: Ladder, tokens: int, asked: Any = None) -> int:
    """The smallest rung that covers `tokens`, or the one that was asked for."""
    longest = ladder.rungs[-1].length
    if tokens > longest:
        refuse(f"{tokens} tokens (prompt + max_tokens) are more than the last rung's {longest}",
               "ask for fewer")
    if asked is None:
        return next(i for i, rung in enumerate(ladder.rungs) if tokens <= rung.length)
    if not isinstance(asked, int) or isinstance(asked, bool) or not 0 <= asked < len(ladder.rungs):
        refuse(f"{ARGUMENT} {asked!r} is not a rung", f"give a number from 0 to {len(ladder.rungs) - 1}")
    if tokens > ladder.rungs[asked].length:
        refuse(f"rung {asked} holds {ladder.rungs[asked].length} tokens, and prompt + max_tokens are {tokens}",
               f"leave {ARGUMENT} out, or ask for fewer tokens")
    return int(asked)


def salted(ladder: Ladder, rung: int, salt: str | None) -> str | None:
    """The salt of the prefix cache. Rung 0 is the plain model, and needs none of its own; a salt that a
    client gave is put behind ours, so that none can name another rung."""
    return f"mrrope:{ladder.digest}:{rung}:{salt or ''}" if rung or salt else salt


def admit(ladder: Ladder, request: Any, max_model_len: int) -> int:
    """Puts an EngineCoreRequest on its rung."""
    params = request.sampling_params
    if params is None:
        refuse("rungs are for text generation, not for pooling", "send it to the unmodified model")
    if getattr(request, "resumable", False):
        refuse("a streamed prompt has no length when it is admitted", "send the prompt whole")
    prompt = request.prompt_token_ids if request.prompt_token_ids is not None else request.prompt_embeds
    extra = dict(params.extra_args or {})
    tokens = min(len(prompt) + (params.max_tokens or 0), max_model_len)
    extra[ARGUMENT] = rung = choose_rung(ladder, tokens, extra.get(ARGUMENT))
    params.extra_args = extra
    request.cache_salt = salted(ladder, rung, request.cache_salt)
    return rung


def rung_of(request: str, params: Any) -> int:
    """The rung that admit() wrote down; 0 for what vLLM warms up with."""
    rung = ((getattr(params, "extra_args", None) or {})).get(ARGUMENT)
    if rung is None and not request.startswith("_"):
        raise RuntimeError(f"mrrope: request {request} was admitted without a rung: "
                           "install mrrope where vLLM's API server runs too")
    return rung or 0


def stacked(ladder: Ladder, own: Any, table: Callable[..., Any]) -> Any:
    """All rungs, one below the other, and rung 0 for the queries of each other rung beyond the window, if there is a
    near part. `own`: vLLM's table of the unmodified model."""
    import torch

    zero = ladder.rungs[0]
    if own.shape[0] < zero.length or own.shape[1] != 2 * len(zero.factors):
        refuse(f"the ladder has {zero.length} positions and {len(zero.factors)} pairs on rung 0, and vLLM's "
               f"table of this model {own.shape[0]} and {own.shape[1] // 2}",
               "export the ladder from this model")
    # float32 angles, rounded to 8 bits in bfloat16: 0.02 is far from what another base does.
    few = min(zero.length, 4096)
    there = own[:few].float().cpu()
    error = (there - table(ladder.base, zero.factors, zero.temperature, few)).abs().max().item()
    if not error < 0.02 * max(1.0, zero.temperature):
        refuse(f"rung 0 is not this model: its rotation differs from vLLM's by {error:.3g}",
               "export the ladder from this model")
    sharpness = ladder.near.sharpness[1:] if ladder.near else ()
    sharper = [zero._replace(temperature=zero.temperature * sharp) for sharp in sharpness]
    parts = [own[:zero.length]]
    for rung in (*ladder.rungs[1:], *sharper):
        made = table(ladder.base, rung.factors, rung.temperature, rung.length)
        parts.append(made.to(device=own.device, dtype=own.dtype))
    return torch.cat(parts)


def moved(values: Any, device: Any) -> Any:
    """An array, to the device, without waiting for it."""
    import torch

    made = torch.from_numpy(values)
    return (made.pin_memory() if device.type == "cuda" else made).to(device, non_blocking=True)


@functools.lru_cache(maxsize=4)
def repeated(values: tuple[int, ...], counts: tuple[int, ...], device: Any) -> Any:
    """On the device. While requests generate, pass after pass asks for the same."""
    import numpy

    return moved(numpy.repeat(numpy.array(values, numpy.int64), counts), device)


def fill(rows: Any, positions: Any, first: tuple[int, ...], rungs: list[int], counts: tuple[int, ...]) -> None:
    """rows: the row of every token of a batch. `counts` tokens each, of requests on `rungs`."""
    import torch

    tokens = sum(counts)
    if any(rungs):
        torch.add(positions[:tokens], repeated(tuple(first[r] for r in rungs), counts, rows.device), out=rows[:tokens])
    else:
        rows[:tokens].copy_(positions[:tokens])


def checked_ladder(config: Any, parameters: dict[str, Any]) -> Ladder:
    """The ladder, if a server with this VllmConfig can run it."""
    ladder = read_ladder(parameters)
    last = ladder.rungs[-1].length
    model, parallel = config.model_config, config.parallel_config
    images = getattr(model, "multimodal_config", None)
    backend = _vllm_far.wrong_backend(config) if ladder.near else ""
    for wrong, why, instead in (
            (model.max_model_len > last, f"--max-model-len {model.max_model_len} is beyond the last rung",
             f"use --max-model-len {last}"),
            (config.speculative_config is not None, "speculative decoding has not been tried with rungs",
             "remove --speculative-config"),
            (model.runner_type != "generate", "rungs are for text generation", "serve the unmodified model"),
            (getattr(parallel, "use_ubatching", False), "a batch split in two has two sets of rows",
             "remove --enable-dbo and --ubatch-size"),
            (getattr(parallel, "prefill_context_parallel_size", 1) > 1,
             "prefill context parallelism splits the rows", "remove --prefill-context-parallel-size"),
            (getattr(config.cache_config, "kv_sharing_fast_prefill", False),
             "fast prefill rotates a part of the rows", "remove --kv-sharing-fast-prefill"),
            ("xdrope_section" in parameters, "positions of several dimensions (xdrope_section) have no row",
             "use a text model"),
            ("mrope_section" in parameters and images is not None and not images.language_model_only,
             "images have positions of three dimensions (mrope_section), and a rung has rows for one",
             "add --language-model-only"),
            (backend, backend, "add --attention-backend CUSTOM"),
            (missing, f"this vLLM has no {', '.join(missing)}", "use vLLM 0.26.0")):
        if wrong:
            refuse(why, instead)
    return ladder


def wrap(module: str, owner: str, name: str, around: Callable[..., Any]) -> None:
    """Replaces a method by around(original, self, ...), once."""
    try:
        holder = getattr(importlib.import_module(module), owner)
        original = inspect.getattr_static(holder, name)
    except (ImportError, AttributeError):
        missing.append(f"{module}.{owner}.{name}")
        return
    if getattr(original, "mrrope", False):
        return

    @functools.wraps(original)
    def wrapped(self: Any, *args: Any, **more: Any) -> Any:
        return around(original, self, *args, **more)

    wrapped.mrrope = True  # type: ignore[attr-defined]
    setattr(holder, name, wrapped)


@functools.lru_cache(maxsize=None)
def counter() -> Any:
    """mrrope_requests_total{rung="..."} of /metrics."""
    import prometheus_client

    return prometheus_client.Counter("mrrope_requests", "Requests admitted, by rung.", ["rung"])


def hook_admission(check_version: Callable[[], None], log: Callable[..., None]) -> None:
    def begin(original: Any, self: Any, vllm_config: Any, *args: Any, **more: Any) -> None:
        original(self, vllm_config, *args, **more)
        found = find_ladders(getattr(vllm_config.model_config.hf_text_config, "rope_parameters", None))
        self.mrrope_ladder = None
        if not found:
            return
        check_version()
        ladder = self.mrrope_ladder = checked_ladder(vllm_config, found[0])
        lengths = ", ".join(str(rung.length) for rung in ladder.rungs)
        near = ladder.near
        far = f", the last {near.length} tokens near, far keys at scales up to {near.scales[-1]:.4g}" if near else ""
        log("mrrope: %d rungs, up to %s tokens%s; rung 0 is the unmodified model. A request runs on the smallest "
            "that covers prompt + max_tokens (plan %s)", len(ladder.rungs), lengths, far, ladder.digest)

    def process(original: Any, self: Any, *args: Any, **more: Any) -> Any:
        request = original(self, *args, **more)
        if self.mrrope_ladder is not None:
            rung = admit(self.mrrope_ladder, request, self.model_config.max_model_len)
            counter().labels(str(rung)).inc()
        return request

    place = ("vllm.v1.engine.input_processor", "InputProcessor")
    wrap(*place, "__init__", begin)
    wrap(*place, "process_inputs", process)


def ladder_of(runner: Any) -> Ladder | None:
    """Of the model that it runs: a process may run others as well."""
    if not hasattr(runner, "mrrope_ladder"):
        found = find_ladders(getattr(runner.model_config.hf_text_config, "rope_parameters", None))
        runner.mrrope_ladder, runner.mrrope_rungs = read_ladder(found[0]) if found else None, {}
    return runner.mrrope_ladder


def fill_all(ladder: Ladder, positions: Any, rungs: list[int], counts: Any) -> None:
    """What the layers read of a batch."""
    counts = tuple(int(count) for count in counts)
    fill(rows, positions, ladder.first, rungs, counts)
    if ladder.near:
        _vllm_far.tables.fill(positions, rungs, counts)


def hook_runner(v2: bool) -> None:
    def v1_inputs(original: Any, self: Any, scheduled: Any, counts: Any, *args: Any, **more: Any) -> Any:
        result = original(self, scheduled, counts, *args, **more)
        if ladder := ladder_of(self):
            names = self.input_batch.req_ids[:self.input_batch.num_reqs]
            rungs = [rung_of(name, self.requests[name].sampling_params) for name in names]
            fill_all(ladder, self.positions, rungs, counts)
        return result

    def v2_requests(original: Any, self: Any, scheduled: Any) -> None:
        original(self, scheduled)
        if ladder_of(self):  # this runner keeps no sampling parameters
            for name in scheduled.finished_req_ids:
                self.mrrope_rungs.pop(name, None)
            for new in scheduled.scheduled_new_reqs:
                self.mrrope_rungs[new.req_id] = rung_of(new.req_id, new.sampling_params)

    def v2_inputs(original: Any, self: Any, *args: Any, **more: Any) -> Any:
        batch = original(self, *args, **more)
        if ladder := ladder_of(self):
            rungs = [self.mrrope_rungs[name] for name in batch.req_ids]
            fill_all(ladder, self.input_buffers.positions, rungs, batch.num_scheduled_tokens)
        return batch

    if v2:
        wrap("vllm.v1.worker.gpu.model_runner", "GPUModelRunner", "add_requests", v2_requests)
        wrap("vllm.v1.worker.gpu.model_runner", "GPUModelRunner", "prepare_inputs", v2_inputs)
    else:
        wrap("vllm.v1.worker.gpu_model_runner", "GPUModelRunner", "_prepare_inputs", v1_inputs)


def make_rotary(layers: Any, original: Callable[..., Any], table: Callable[..., Any], caller: str,
                head_size: int, is_neox_style: bool, parameters: dict[str, Any], dtype: Any) -> Any:
    """vLLM's rotary class over the stacked table. `original`: vLLM's get_rope; `caller`: the model's module."""
    import torch
    from vllm.config import get_current_vllm_config

    global rows
    config = get_current_vllm_config()
    hook_runner(config.use_v2_model_runner)
    ladder = checked_ladder(config, parameters)
    source = inspect.getsource(sys.modules[caller])
    if READS_TABLES.search(source):
        refuse(f"{caller} rotates without vLLM's rotary class, so that a request cannot have a rung",
               "export a static plan, --method pro")
    own = original(head_size, ladder.rungs[0].length, is_neox_style, own_parameters(parameters), dtype)
    plain = layers.RotaryEmbedding
    same = all(getattr(type(own), f, None) is getattr(plain, f)
               for f in ("forward", "forward_native", "forward_cuda"))
    if not same and not isinstance(own, layers.MRotaryEmbedding):
        refuse(f"vLLM rotates this model by {type(own).__name__}, which is not a table of cosines and sines alone",
               "export a static plan, --method pro")
    if own.base != ladder.base:
        refuse(f"the ladder was made for the base {ladder.base:g}, and vLLM rotates by {own.base:g}",
               "export the ladder from this model")
    with torch.device("cpu"):
        cache = stacked(ladder, own.cos_sin_cache, table)
    tokens = config.scheduler_config.max_num_batched_tokens
    if rows is None:
        rows = torch.zeros(tokens, dtype=torch.int64, device=torch.get_default_device())
    if rows.shape[0] < tokens:
        refuse("another model with rungs and smaller batches runs in this process", "use two processes")

    far = _vllm_far.make_tables(ladder, source, is_neox_style, config) if ladder.near else None

    class RungRotaryEmbedding(plain):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__(head_size, own.rotary_dim, cache.shape[0], ladder.base, is_neox_style, cache.dtype)
            self.register_buffer("rows", rows, persistent=False)
            self.register_buffer("query_rows", far.rows if far else None, persistent=False)

        def _compute_cos_sin_cache(self) -> Any:
            return cache

        def forward(self, positions: Any, query: Any, key: Any = None) -> Any:
            tokens = positions.shape[-1]
            if self.query_rows is None:
                return self._forward_method(self.rows[:tokens], query, key)
            query = self._forward_method(self.query_rows[:tokens], query)[0]
            return query, key if key is None else self._forward_method(self.rows[:tokens], key)[0]

    return RungRotaryEmbedding()

# SPDX-License-Identifier: Apache-2.0
"""vLLM's --attention-backend CUSTOM: its Triton backend with near and far keys.

The cache, what is written into it and the metadata are those of vLLM's TRITON_ATTN. Requests with several new tokens
are FlashAttention's where this GPU has it, except in float32 and in layers with a sliding window, and so are the far
keys of a batch with one new token each.
"""
from __future__ import annotations

import copy
from typing import Any

import torch
from vllm.config import get_current_vllm_config
from vllm.utils.torch_utils import canonicalize_singleton_dim_strides
from vllm.v1.attention.backend import AttentionCGSupport, AttentionType
from vllm.v1.attention.backends.triton_attn import (TritonAttentionBackend, TritonAttentionImpl,
                                                    TritonAttentionMetadataBuilder)

from . import _vllm_far, _vllm_flash, _vllm_kernel
from ._vllm_rungs import find_ladders, refuse


class FarAttentionImpl(TritonAttentionImpl):  # type: ignore[misc]
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        given = getattr(get_current_vllm_config().model_config.hf_text_config, "rope_parameters", None)
        found = find_ladders(given)
        if not found or "near_part" not in found[0]:
            refuse("--attention-backend CUSTOM is for near and far keys, and this model's config.json has no near part",
                   "remove it, or export with mrrope export --method far:pi --to hf-mrrope")
        if self.alibi_slopes is not None or self.chunk_lookback >= 0:
            refuse("near and far keys cannot have ALiBi or chunks", "serve the unmodified model")
        # Sliding-window layers with a rotation of their own are vLLM's; others share that of all layers.
        self.turned = found[0] is given or self.sliding_window[0] < 0
        self.flash = _vllm_flash.find(self.head_size) if self.sliding_window[0] < 0 else None

    def fused_output_quant_supported(self, quant_key: Any) -> bool:
        return False

    def forward(self, layer: Any, query: Any, key: Any, value: Any, kv_cache: Any, attn_metadata: Any, output: Any,
                output_scale: Any = None, output_block_scale: Any = None) -> Any:
        if attn_metadata is None or not self.turned:
            return super().forward(layer, query, key, value, kv_cache, attn_metadata, output, output_scale,
                                   output_block_scale)
        m = attn_metadata
        keys, values = kv_cache.transpose(1, 2).split(self.head_size, dim=-1)
        n, longest = m.num_actual_tokens, m.max_query_len
        query, out = query[:n], output[:n].view(n, self.num_heads, self.head_size)
        flash = self.flash if m.half and query.dtype == kv_cache.dtype else None
        if flash and not _vllm_far.tables.warm and not (query.is_cuda and torch.cuda.is_current_stream_capturing()):
            self.warm_up(query, keys, values, m)
        if m.plan and flash:
            _vllm_flash.attention(m.plan, _vllm_far.tables, query, *map(canonicalize_singleton_dim_strides,
                                  (keys, values)), out, m.seq_lens, m.block_table, self.scale, self.logits_soft_cap,
                                  flash)
            if not m.plan.single:
                return output
            longest = 1
        _vllm_kernel.attention(
            _vllm_far.tables, query, keys, values, out, m.query_start_loc, m.seq_lens, m.block_table, longest,
            self.scale, self.logits_soft_cap, self.sliding_window[0] + 1, m.parts,
            m.far_pass if flash == 3 else None)
        return output

    def warm_up(self, query: Any, keys: Any, values: Any, m: Any) -> None:
        """Compiles, before there is a text beyond the window, what the first one would wait for: a request with two
        new tokens, and with one each as many as make a difference, over the first page."""
        tables, _vllm_far.tables.warm = copy.copy(_vllm_far.tables), True
        tables.rung, length = torch.ones_like(tables.rung), tables.window + 2
        width = max(m.block_table.stride(0), -(-length // keys.shape[1]))

        def batch(requests: int, new: int) -> tuple[Any, ...]:
            starts = torch.arange(0, requests * new + 1, new, dtype=torch.int32, device=query.device)
            some = query.new_zeros(requests * new, *query.shape[1:])
            return (some, torch.empty_like(some), starts, starts.new_full((requests,), length),
                    m.block_table.new_zeros(requests, width))

        some, out, starts, lengths, block_table = batch(1, 2)
        tables.batch = [1], [2]
        plan = _vllm_flash.make_plan(tables, [0, 2], [length], block_table, starts)
        if plan:
            _vllm_flash.attention(plan, tables, some, keys, values, out, lengths, block_table, self.scale,
                                  self.logits_soft_cap, self.flash)
        forms = {_vllm_kernel.segments(n, keys.shape[2]): n for n in range(len(tables.rung), 0, -1)}
        for requests in forms.values():
            some, out, starts, lengths, block_table = batch(requests, 1)
            _vllm_kernel.attention(tables, some, keys, values, out, starts, lengths, block_table, 1, self.scale,
                                   self.logits_soft_cap, 0, m.parts)


class FarMetadataBuilder(TritonAttentionMetadataBuilder):  # type: ignore[misc]
    _cudagraph_support = AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE  # passes of a plan are as many as its borders

    def __init__(self, kv_cache_spec: Any, layer_names: Any, vllm_config: Any, device: Any) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self.parts = _vllm_kernel.make_parts(vllm_config.scheduler_config.max_num_seqs, self.num_heads_q,
                                             self.num_heads_kv, kv_cache_spec.head_size, device)
        self.half = kv_cache_spec.dtype in (torch.float16, torch.bfloat16)
        most = max(vllm_config.scheduler_config.max_num_seqs,
                   vllm_config.compilation_config.max_cudagraph_capture_size or 0)
        self.schedule = _vllm_flash.Schedule(
            most, self.num_heads_q, self.num_heads_kv, kv_cache_spec.head_size, kv_cache_spec.block_size,
            kv_cache_spec.dtype, device) if self.half and _vllm_flash.find(kv_cache_spec.head_size) == 3 else None

    def build(self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False) -> Any:
        made, batch = super().build(common_prefix_len, common_attn_metadata, fast_build), common_attn_metadata
        made.parts, made.half, made.far_pass = self.parts, self.half, None
        if made.max_query_len == 1 and self.schedule:
            made.far_pass = self.schedule.make(_vllm_far.tables.far_keys[:len(made.seq_lens)], made.query_start_loc,
                                               made.max_seq_len)
        made.plan = _vllm_flash.make_plan(
            _vllm_far.tables, batch.query_start_loc_cpu.tolist(), batch.seq_lens_cpu_upper_bound.tolist(),
            made.block_table, made.query_start_loc) if made.max_query_len > 1 and self.half else None
        return made


class FarAttentionBackend(TritonAttentionBackend):  # type: ignore[misc]
    supported_kv_cache_dtypes = ["auto", "float16", "bfloat16"]

    @staticmethod
    def get_name() -> str:
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[FarAttentionImpl]:
        return FarAttentionImpl

    @staticmethod
    def get_builder_cls() -> type[FarMetadataBuilder]:
        return FarMetadataBuilder

    @classmethod
    def supports_attn_type(cls, attn_type: str) -> bool:
        return bool(attn_type == AttentionType.DECODER)

    @classmethod
    def no(cls) -> bool:
        return False

    supports_sink = supports_mm_prefix = supports_non_causal = supports_alibi_sqrt = no
    supports_batch_invariance = no  # not tried

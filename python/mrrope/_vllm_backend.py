# SPDX-License-Identifier: Apache-2.0
"""vLLM's --attention-backend CUSTOM: its Triton backend with mrrope's kernel for near and far keys.

The cache, what is written into it and the metadata are those of vLLM's TRITON_ATTN.
"""
from __future__ import annotations

from typing import Any

import torch
from vllm.config import get_current_vllm_config
from vllm.v1.attention.backend import AttentionType
from vllm.v1.attention.backends.triton_attn import (TritonAttentionBackend, TritonAttentionImpl,
                                                    TritonAttentionMetadataBuilder)

from . import _vllm_far, _vllm_kernel
from ._vllm_rungs import find_ladders, refuse

SEGMENTS = 32  # programs to a sequence with one new token


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

    def fused_output_quant_supported(self, quant_key: Any) -> bool:
        return False

    def forward(self, layer: Any, query: Any, key: Any, value: Any, kv_cache: Any, attn_metadata: Any, output: Any,
                output_scale: Any = None, output_block_scale: Any = None) -> Any:
        if attn_metadata is None or not self.turned:
            return super().forward(layer, query, key, value, kv_cache, attn_metadata, output, output_scale,
                                   output_block_scale)
        m = attn_metadata
        keys, values = kv_cache.transpose(1, 2).split(self.head_size, dim=-1)
        n = m.num_actual_tokens
        _vllm_kernel.attention(
            _vllm_far.tables, query[:n], keys, values, output[:n].view(n, self.num_heads, self.head_size),
            m.query_start_loc, m.seq_lens, m.block_table, m.max_query_len, self.scale, self.logits_soft_cap,
            self.sliding_window[0] + 1, (m.softmax_segm_output, m.softmax_segm_max, m.softmax_segm_expsum))
        return output


class FarMetadataBuilder(TritonAttentionMetadataBuilder):  # type: ignore[misc]
    def __init__(self, kv_cache_spec: Any, layer_names: Any, vllm_config: Any, device: Any) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        # vLLM splits the sequences of small batches only; one long sequence would hold up a large batch.
        requests, self.num_par_softmax_segments = vllm_config.scheduler_config.max_num_seqs, SEGMENTS
        shape = (requests, self.num_heads_q, SEGMENTS)
        self.softmax_segm_output = torch.empty((*shape, self.softmax_segm_output.shape[3]), device=device)
        self.softmax_segm_max, self.softmax_segm_expsum = (torch.empty(shape, device=device) for _ in range(2))
        self.seq_threshold_3D = requests


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

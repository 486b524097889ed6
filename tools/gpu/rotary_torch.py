#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mrrope on the GPU compared with transformers' rotation, eager and through torch.compile, in one run.

    rotary_torch.py LIBMRROPE_CUDA.so
    rotary_torch.py --warm            only compiles, so that torch finds its cache filled later

Queries and keys lie token-major, seen head-major, as transformers makes them; pairing is halves,
the only one it has. Everything is replayed from CUDA graphs over buffers larger than the cache, the
contestants take turns, and ratios are medians over rounds. At decode sizes the time of plain calls
from Python, one after the other, stands beside it: there the host's work shows. mrrope's result is
compared with the eager one, made in float32, before it is timed. Needs torch; without transformers
the same formula written here stands in for its function.
"""
import ctypes
import statistics
import sys
import time

try:
    import torch
except ImportError:
    print("torch is not installed here: nothing compared")
    sys.exit(0)
if not torch.cuda.is_available():
    print("torch sees no GPU: nothing compared")
    sys.exit(0)

ROUNDS = 9


class Strides(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in ("sequence", "token", "head")]


class Heads(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("source", ctypes.c_void_p), ("from_strides", Strides),
                ("to", ctypes.c_void_p), ("to_strides", Strides)]


class Batch(ctypes.Structure):
    _fields_ = [("element", ctypes.c_int32), ("head_dim", ctypes.c_int32),
                ("sequences", ctypes.c_int64), ("tokens", ctypes.c_int64), ("queries", Heads),
                ("keys", Heads), ("positions", ctypes.c_void_p), ("first_position", ctypes.c_int64),
                ("inverse", ctypes.c_int32)]


class Geometry(ctypes.Structure):
    _fields_ = [("rotary_dim", ctypes.c_int32), ("base", ctypes.c_double),
                ("train_length", ctypes.c_int64), ("pairing", ctypes.c_int32)]


ELEMENTS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}


def formula(q, k, cos, sin):
    def turn(x):
        low, high = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-high, low), dim=-1) * sin
    return turn(q), turn(k)


def transformers_rotation():
    try:
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
    except ImportError:
        print("transformers is not installed here: its formula, written out, stands in")
        return formula
    print("transformers' own apply_rotary_pos_emb")
    return apply_rotary_pos_emb


class Mrrope:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.mrrope_last_error.restype = ctypes.c_char_p
        self.lib.mrrope_plan_create.argtypes = [ctypes.POINTER(Geometry), ctypes.c_char_p,
                                                ctypes.c_double, ctypes.c_void_p]
        self.lib.mrrope_table_create.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                                 ctypes.c_int32, ctypes.c_void_p]
        self.lib.mrrope_cuda_table_create.argtypes = [ctypes.c_void_p, ctypes.c_int32,
                                                      ctypes.c_void_p]
        self.lib.mrrope_cuda_rotate.argtypes = [ctypes.c_void_p, ctypes.POINTER(Batch),
                                                ctypes.c_void_p]
        self.lib.mrrope_plan_theta.restype = ctypes.POINTER(ctypes.c_double)
        self.lib.mrrope_plan_theta.argtypes = [ctypes.c_void_p]

    def must(self, status):
        if status != 0:
            raise RuntimeError(self.lib.mrrope_last_error().decode())

    def plan(self, head_dim):
        plan = ctypes.c_void_p()
        geometry = Geometry(head_dim, 500000.0, 8192, 0)
        self.must(self.lib.mrrope_plan_create(ctypes.byref(geometry), b"none", 1.0,
                                              ctypes.byref(plan)))
        theta = self.lib.mrrope_plan_theta(plan)
        return plan, [theta[i] for i in range(head_dim // 2)]

    def table(self, plan, tokens, stored):
        table, device = ctypes.c_void_p(), ctypes.c_void_p()
        self.must(self.lib.mrrope_table_create(plan, 0, tokens, 0, ctypes.byref(table)))
        self.must(self.lib.mrrope_cuda_table_create(table, stored, ctypes.byref(device)))
        return device

    def rotate(self, table, q, k, q_out, k_out, positions):
        def heads(x, y):  # [1, heads, tokens, head_dim] views
            return Heads(x.shape[1], x.data_ptr(), Strides(0, x.stride(2), x.stride(1)),
                         y.data_ptr(), Strides(0, y.stride(2), y.stride(1)))
        batch = Batch(ELEMENTS[q.dtype], q.shape[3], 1, q.shape[2], heads(q, q_out),
                      heads(k, k_out), positions.data_ptr(), 0, 0)
        self.must(self.lib.mrrope_cuda_rotate(
            table, ctypes.byref(batch), torch.cuda.current_stream().cuda_stream))


def graph_of(work, nodes):
    """A graph of work(0) to work(nodes - 1); returns a function that gives microseconds of one."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        work(0)
        work(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(nodes):
            work(i)

    def timed():
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return 1000 * begin.elapsed_time(end) / nodes
    return timed


def call_by_call(work, calls=200):
    """Microseconds of a plain call, host and device together."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for i in range(calls):
        work(i)
    torch.cuda.synchronize()
    return 1e6 * (time.perf_counter() - start) / calls


def tensors(heads, head_dim, dtype, tokens):
    """As transformers sees a projection's output."""
    return torch.randn(1, tokens, heads, head_dim, device="cuda", dtype=dtype).transpose(1, 2)


def warm(eager, queries, keys, head_dim, dtype, tokens):
    q, k = tensors(queries, head_dim, dtype, tokens), tensors(keys, head_dim, dtype, tokens)
    cos = torch.randn(1, tokens, head_dim, device="cuda", dtype=dtype)
    table = cos[:, None] if eager is formula else cos
    torch.compile(eager)(q, k, table, table.clone())


def compare(mrrope, eager, queries, keys, head_dim, dtype, tokens):
    plan, theta = mrrope.plan(head_dim)
    tables = {"mrrope": mrrope.table(plan, tokens, 0), "stored": mrrope.table(plan, tokens, 1)}
    angles = (torch.arange(tokens, dtype=torch.float64, device="cuda")[:, None]
              * torch.tensor(theta, dtype=torch.float64, device="cuda")[None, :])
    angles = torch.cat((angles, angles), dim=-1)[None]
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    positions = torch.arange(tokens, dtype=torch.int32, device="cuda")
    per_call = tokens * (queries + keys) * head_dim * dtype.itemsize
    pool = max(1, min(128, (1 << 29) // per_call))
    nodes = max(2, min(128, (1 << 30) // per_call))

    q = [tensors(queries, head_dim, dtype, tokens) for _ in range(pool)]
    k = [tensors(keys, head_dim, dtype, tokens) for _ in range(pool)]
    q_out = [torch.empty_like(x) for x in q]  # keeps the strides
    k_out = [torch.empty_like(x) for x in k]

    # unsqueeze_dim is an argument of transformers' function; the formula takes shaped tables.
    if eager is formula:
        shaped = (cos[:, None], sin[:, None])
    else:
        shaped = (cos, sin)
    compiled = torch.compile(eager)

    want = formula(q[0].float(), k[0].float(), angles.cos()[:, None].float(),
                   angles.sin()[:, None].float())
    bound = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 4e-2}[dtype]
    for table in tables.values():
        q_out[0].fill_(float("nan"))
        k_out[0].fill_(float("nan"))
        mrrope.rotate(table, q[0], k[0], q_out[0], k_out[0], positions)
        torch.cuda.synchronize()
        for got, wanted in ((q_out[0], want[0]), (k_out[0], want[1])):
            error = (got.float() - wanted).abs().max().item()
            assert error < bound, f"mrrope is off by {error}"
    del want

    def copy(i):
        q_out[i % pool].copy_(q[i % pool])
        k_out[i % pool].copy_(k[i % pool])

    # Results are held, so that torch writes through as much memory as mrrope does.
    held = {"eager": [None] * pool, "compile": [None] * pool}

    def torch_work(name, function):
        def work(i):
            held[name][i % pool] = function(q[i % pool], k[i % pool], *shaped)
        return work

    def mrrope_work(name):
        return lambda i: mrrope.rotate(tables[name], q[i % pool], k[i % pool], q_out[i % pool],
                                       k_out[i % pool], positions)
    works = {"copy": copy, "eager": torch_work("eager", eager),
             "compile": torch_work("compile", compiled), "mrrope": mrrope_work("mrrope"),
             "stored": mrrope_work("stored")}
    timers = {name: graph_of(work, nodes) for name, work in works.items()}
    rounds = []
    for r in range(ROUNDS + 1):
        times = {name: timer() for name, timer in timers.items()}
        if r > 0:
            rounds.append(times)
    middle = {name: statistics.median(t[name] for t in rounds) for name in works}

    def over(name, by):
        return statistics.median(t[name] / t[by] for t in rounds)
    line = (f"{queries:2d}+{keys:<2d} {head_dim:4d} {str(dtype)[6:]:9s} {tokens:6d}"
            + "".join(f" {middle[n]:9.2f}" for n in works)
            + f" | {over('copy', 'mrrope'):7.2f} {over('eager', 'mrrope'):7.2f}"
            + f" {over('compile', 'mrrope'):7.2f} {over('compile', 'stored'):7.2f}")
    if tokens <= 64:
        line += " |" + "".join(f" {call_by_call(works[n]):7.1f}"
                               for n in ("eager", "compile", "mrrope"))
    print(line, flush=True)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    eager = transformers_rotation()
    only_warm = sys.argv[1] == "--warm"
    mrrope = None if only_warm else Mrrope(sys.argv[1])
    if not only_warm:
        print(f"torch {torch.__version__} on {torch.cuda.get_device_name()}")
        print("microseconds of a call in a graph; mrrope: computed angles, stored: from f32 rows")
        print("over mrrope's (compile, st.: over stored's); above 1: mrrope is faster")
        print("last, at decode sizes: microseconds of a plain call from Python")
        print(f"heads  dim type      tokens {'copy':>9s} {'eager':>9s} {'compile':>9s} "
              f"{'mrrope':>9s} {'stored':>9s} | {'copy':>7s} {'eager':>7s} {'compile':>7s} "
              f"{'c., st.':>7s} | {'eager':>7s} {'compile':>7s} {'mrrope':>7s}")
    for tokens in (1, 16, 64, 8192, 65536):
        for queries, keys, head_dim in ((32, 8, 128), (9, 3, 64)):
            for dtype in (torch.bfloat16, torch.float16, torch.float32):
                torch._dynamo.reset()
                try:
                    if only_warm:
                        warm(eager, queries, keys, head_dim, dtype, tokens)
                    else:
                        compare(mrrope, eager, queries, keys, head_dim, dtype, tokens)
                except Exception as error:  # a compiler that fails must not hide the other rows
                    print(f"{queries}+{keys} {head_dim} {dtype} {tokens}: failed: "
                          f"{str(error).splitlines()[0]}", flush=True)
                torch.cuda.empty_cache()


main()

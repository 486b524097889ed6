#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mrrope on the GPU beside transformers' rotation, eager and through torch.compile, in one run.

    rotary_torch.py LIBMRROPE_CUDA.so

Queries and keys lie token-major, seen head-major, as transformers makes them; pairing is halves,
the only one it has. Everything is replayed from CUDA graphs over buffers larger than the cache, the
contestants take turns, and ratios are medians over rounds. mrrope's result is compared with the
eager one, made in float32, before it is timed. Needs torch; without transformers the same formula
written here stands in for its function.
"""
import ctypes
import statistics
import sys

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

    def table(self, plan, tokens):
        table, device = ctypes.c_void_p(), ctypes.c_void_p()
        self.must(self.lib.mrrope_table_create(plan, 0, tokens, 0, ctypes.byref(table)))
        self.must(self.lib.mrrope_cuda_table_create(table, 0, ctypes.byref(device)))
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

    def time():
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return 1000 * begin.elapsed_time(end) / nodes
    return time


def compare(mrrope, eager, queries, keys, head_dim, dtype, tokens):
    plan, theta = mrrope.plan(head_dim)
    table = mrrope.table(plan, tokens)
    angles = (torch.arange(tokens, dtype=torch.float64, device="cuda")[:, None]
              * torch.tensor(theta, dtype=torch.float64, device="cuda")[None, :])
    angles = torch.cat((angles, angles), dim=-1)[None]
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    positions = torch.arange(tokens, dtype=torch.int32, device="cuda")
    per_call = tokens * (queries + keys) * head_dim * dtype.itemsize
    pool = max(1, min(16, (1 << 29) // per_call))
    nodes = max(2, min(16, (1 << 30) // per_call))

    def make(heads):
        return torch.randn(1, tokens, heads, head_dim, device="cuda", dtype=dtype).transpose(1, 2)
    q, k = [make(queries) for _ in range(pool)], [make(keys) for _ in range(pool)]
    q_out = [torch.empty_like(x) for x in q]  # keeps the strides
    k_out = [torch.empty_like(x) for x in k]

    # unsqueeze_dim is an argument of transformers' function; the formula takes shaped tables.
    if eager is formula:
        shaped = (cos[:, None], sin[:, None])
    else:
        shaped = (cos, sin)
    compiled = torch.compile(eager)

    mrrope.rotate(table, q[0], k[0], q_out[0], k_out[0], positions)
    want = formula(q[0].float(), k[0].float(), angles.cos()[:, None].float(),
                   angles.sin()[:, None].float())
    torch.cuda.synchronize()
    bound = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 4e-2}[dtype]
    for got, wanted in ((q_out[0], want[0]), (k_out[0], want[1])):
        error = (got.float() - wanted).abs().max().item()
        assert error < bound, f"mrrope is off by {error}"
    del want

    def copy(i):
        q_out[i % pool].copy_(q[i % pool])
        k_out[i % pool].copy_(k[i % pool])
    works = {
        "copy": copy,
        "eager": lambda i: eager(q[i % pool], k[i % pool], *shaped),
        "compile": lambda i: compiled(q[i % pool], k[i % pool], *shaped),
        "mrrope": lambda i: mrrope.rotate(table, q[i % pool], k[i % pool], q_out[i % pool],
                                          k_out[i % pool], positions),
    }
    timers = {name: graph_of(work, nodes) for name, work in works.items()}
    rounds = []
    for r in range(ROUNDS + 1):
        times = {name: timer() for name, timer in timers.items()}
        if r > 0:
            rounds.append(times)
    middle = {name: statistics.median(t[name] for t in rounds) for name in works}
    ratio = {name: statistics.median(t[name] / t["mrrope"] for t in rounds) for name in works}
    print(f"{queries:2d}+{keys:<2d} {head_dim:4d} {str(dtype)[6:]:9s} {tokens:6d}"
          + "".join(f" {middle[n]:10.1f}" for n in works)
          + "".join(f" {ratio[n]:8.2f}" for n in ("copy", "eager", "compile")), flush=True)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name()}")
    eager = transformers_rotation()
    mrrope = Mrrope(sys.argv[1])
    print("microseconds of a call; last: times over mrrope's (above 1: mrrope is faster)")
    print(f"heads  dim type      tokens {'copy':>10s} {'eager':>10s} {'compile':>10s} {'mrrope':>10s}"
          f" {'copy':>8s} {'eager':>8s} {'compile':>8s}")
    for tokens in (8192, 65536, 64, 1):
        for queries, keys, head_dim in ((32, 8, 128), (9, 3, 64)):
            for dtype in (torch.bfloat16, torch.float16, torch.float32):
                torch._dynamo.reset()
                try:
                    compare(mrrope, eager, queries, keys, head_dim, dtype, tokens)
                except Exception as error:  # a compiler that fails must not hide the other rows
                    print(f"{queries}+{keys} {head_dim} {dtype} {tokens}: failed: "
                          f"{str(error).splitlines()[0]}", flush=True)
                torch.cuda.empty_cache()


main()

# SPDX-License-Identifier: Apache-2.0
"""Arrays through the Python module, and everything that it must refuse without a crash.

Runs with python3 alone; with numpy and torch where they can be imported. Also under the address
sanitizer (tests/CMakeLists.txt).
"""
import array
import ctypes
import json
import math
import os
import pathlib
import tempfile

import expressions
import mrrope
from expressions import refused

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None

HAS_CUDA = hasattr(mrrope._library.library, "mrrope_cuda_rotate_and_wait")
GEOMETRY = mrrope.Geometry(rotary_dim=8, base=1e4, train_length=64)
PRO = mrrope.plan(GEOMETRY, "pi", scale=4)


def check_requests(work):
    """What must be refused, with what to type instead."""
    def model(content):
        (work / "broken.gguf").write_bytes(content)
        return work / "broken.gguf"

    def config(**more):
        (work / "config.json").write_text(json.dumps({
            "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1,
            "max_position_embeddings": 64, "vocab_size": 8, "intermediate_size": 8, **more}))
        return work

    def loaded(text):
        (work / "plan.json").write_text(text)
        return mrrope.load(work / "plan.json")

    Geometry, plan, ladder, inspect = mrrope.Geometry, mrrope.plan, mrrope.ladder, mrrope.inspect
    in_python, geometry, pro = mrrope._library.in_python, GEOMETRY, PRO
    expressions.check("python_requests", {**globals(), **locals()}, work)
    refused("not a length", plan, GEOMETRY, "pi", ctx="9" * 5000)  # more digits than int() takes
    refused("not a number", plan, GEOMETRY, "pi", scale=float("nan"))
    refused("transformers", mrrope.patch, 7, "pro", 128)  # is missing, or 7 is no model of it


def reference(row, position, plan):
    """One head vector, halves."""
    pairs = len(plan.theta)
    out = list(row)
    for i, theta in enumerate(plan.theta):
        c, s = math.cos(position * theta), math.sin(position * theta)
        x, y = row[i], row[i + pairs]
        out[i] = plan.attention_scale * (x * c - y * s)
        out[i + pairs] = plan.attention_scale * (x * s + y * c)
    return out


def check_array(make, to_list, most):
    """One kind of array: every layout and stride gives the plain formula; then undone."""
    sequences, heads, tokens, width = 2, 3, 5, 12  # 8 of 12 elements rotate
    values = [[[[math.sin(b + 2 * h + 3 * t + d) for d in range(width)] for t in range(tokens)]
               for h in range(heads)] for b in range(sequences)]
    positions = [[0, 1, 63, 200, 7], [5, 4, 3, 2, 1]]
    whole = make(values)
    for cut in (False, True):  # a view of a larger array
        array = make([[head + head for head in sequence] for sequence in values]) if cut else whole
        view = array[:, :, :tokens] if cut else array
        mrrope.rotate(view, plan=PRO, positions=positions, threads=2)
        found = to_list(view)
        for b in range(sequences):
            for h in range(heads):
                for t in range(tokens):
                    wanted = reference(values[b][h][t], positions[b][t], PRO)
                    assert max(abs(x - y) for x, y in zip(found[b][h][t], wanted)) < most
        if cut:  # what lies outside the view is as it was
            assert to_list(array)[1][2][tokens:] == to_list(make(values))[1][2]
        mrrope.rotate(k=view, plan=PRO, positions=positions, inverse=True)
        assert max(abs(x - y) for x, y in zip(to_list(view)[1][2][3], values[1][2][3])) < 2 * most
    one = make(values[0])
    mrrope.rotate(k=one, plan=PRO, first_position=9)
    wanted = reference(values[0][2][4], 13, PRO)
    assert max(abs(x - y) for x, y in zip(to_list(one)[2][4], wanted)) < most
    mrrope.rotate(one[:, :0], plan=PRO)  # nothing to do


def check_bad_arrays(zeros, work):
    """The same of every library."""
    def rotate(*arrays, plan=PRO, **options):
        return mrrope.rotate(*arrays, plan=plan, **options)

    good = zeros((1, 2, 3, 8), "float32")
    other = mrrope.plan(mrrope.Geometry(4, 1e4, 64), "pi", scale=2)
    expressions.check("python_arrays", {**globals(), **locals()}, work)


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Shared:
    """An array of float32 without numpy: it shares `values`, or `capsule` as if it were one."""

    def __init__(self, shape, values=(), strides=None, capsule=None, name=b"dltensor"):
        self.values = (ctypes.c_float * len(values))(*values)
        counts = ctypes.c_int64 * len(shape)
        self.held = mrrope._tensors._DLTensor(
            data=ctypes.addressof(self.values), device_type=1, ndim=len(shape), code=2, bits=32, lanes=1,
            shape=counts(*shape), strides=counts(*strides) if strides else None)
        self.name = name  # which the capsule points to
        self.capsule = capsule or new_capsule(ctypes.addressof(self.held), self.name, None)

    def __dlpack__(self):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def check_shared():
    """Arrays of no library."""
    for positions in (range(3), (0, 1, 2), [[0, 1, 2]], array.array("i", [0, 1, 2])):
        queries = Shared((1, 1, 3, 8), [math.sin(i) for i in range(24)])
        mrrope.rotate(queries, plan=PRO, positions=positions)
        wanted = reference([math.sin(i) for i in range(16, 24)], 2, PRO)
        assert max(abs(x - y) for x, y in zip(queries.values[16:], wanted)) < 1e-6, positions
    # Of nothing there is nothing to do, whatever its strides say; numpy's are 0.
    keys = Shared((1, 1, 3, 8), [1] * 24)
    for shape in ((1, 2, 0, 8), (0, 2, 3, 8), (1, 0, 3, 8), (2, 0, 8), (0, 3, 8)):
        for strides in (None, [0] * len(shape)):
            mrrope.rotate(Shared(shape, strides=strides), plan=PRO)
    mrrope.rotate(Shared((1, 0, 3, 8), strides=[0] * 4), keys, plan=PRO, first_position=1)
    assert abs(keys.values[0] - reference([1] * 8, 1, PRO)[0]) < 1e-6
    for capsule, name in (("no capsule", b""), (None, b"used_dltensor")):
        refused("cannot be shared", mrrope.rotate, Shared((1, 1, 3, 8), capsule=capsule, name=name), plan=PRO)


def main(work):
    check_shared()
    check_requests(work)
    if numpy is None:
        print("SKIPPED: arrays of numpy: it is not installed")
    else:
        for kind, most in (("float32", 1e-6), ("float16", 2e-3)):
            check_array(lambda v: numpy.array(v, kind), lambda a: a.astype(float).tolist(), most)
        check_bad_arrays(lambda shape, kind: numpy.zeros(shape, kind), work)
        frozen = numpy.zeros((1, 2, 3, 8), numpy.float32)
        frozen.flags.writeable = False
        refused("cannot be shared", mrrope.rotate, frozen, plan=PRO)
        swapped = numpy.zeros((1, 2, 3, 8), ">f4")
        refused("", mrrope.rotate, swapped, plan=PRO)
        refused("", mrrope.rotate, numpy.broadcast_to(numpy.zeros(8, "float32"), (1, 2, 3, 8)),
                plan=PRO)
    if torch is None:
        print("SKIPPED: tensors of torch: it is not installed")
    else:
        for kind, most in (("float32", 1e-6), ("float16", 2e-3), ("bfloat16", 2e-2)):
            check_array(lambda v: torch.tensor(v, dtype=getattr(torch, kind)),
                        lambda a: a.double().tolist(), most)
        check_bad_arrays(lambda shape, kind: torch.zeros(shape, dtype=getattr(torch, kind)), work)
        refused("gradient", mrrope.rotate, torch.zeros(1, 2, 3, 8, requires_grad=True), plan=PRO)
        refused("", mrrope.rotate, torch.zeros(8).expand(1, 2, 3, 8), plan=PRO)
        refused("cannot be shared", mrrope.rotate, torch.zeros((1, 2, 3, 8), device="meta"),
                plan=PRO)
        for device, part in ((2, "it is on DLPack device 2" if HAS_CUDA else "has no CUDA"),
                             (10, "not in the memory of the CPU (DLPack device 10)")):
            there = torch.zeros(1, 2, 3, 8)
            there.__class__ = type("There", (torch.Tensor,), {
                "__dlpack_device__": lambda self, device=device: (device, 0),
                "__dlpack__": lambda self, stream=None: torch.zeros(1, 2, 3, 8).__dlpack__()})
            refused(part, mrrope.rotate, there, plan=PRO)
    print("ok", "under the address sanitizer" if os.environ.get("LD_PRELOAD") else "")


with tempfile.TemporaryDirectory(prefix="mrrope-bad-") as folder:
    main(pathlib.Path(folder))

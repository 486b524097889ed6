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

import mrrope

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


def refused(part, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except mrrope.Error as error:
        assert part in error.message, f"{part!r} is not in {error.message!r}"
        assert error.kind in ("usage", "unsupported", "corrupt", "failed"), error.kind
        return
    raise AssertionError(f"not refused: {part}")


def check_requests():
    plan, ladder = mrrope.plan, mrrope.ladder
    refused("not a number from 1", plan, GEOMETRY, "pro", scale=0.5)
    refused("magic", plan, GEOMETRY, "magic", scale=2)
    refused("more than one plan", plan, GEOMETRY, "elastic:pi", scale=2)
    refused("is one plan", ladder, GEOMETRY, "pi", scale=2)
    refused("has no key", plan, GEOMETRY, "pi", scale=2, colour=3)
    refused("not a length", plan, GEOMETRY, "pi", ctx="12x")
    refused("not a length", plan, GEOMETRY, "pi", ctx=12.5)
    refused("not a length", plan, GEOMETRY, "pi", ctx="9" * 5000)  # more digits than int() takes
    refused("not a length", plan, GEOMETRY, "pi", ctx=True)
    refused("not possible", plan, GEOMETRY, "pi", ctx=-1)
    refused("not between", plan, GEOMETRY, "pi", ctx=1 << 80)
    refused("both set how far", plan, GEOMETRY, "pi", ctx=128, scale=2)
    refused("not a number", plan, GEOMETRY, "pi", scale=float("nan"))
    refused("not a number", plan, GEOMETRY, "pi", scale=object())
    refused("not a string", plan, GEOMETRY, 7, scale=2)
    refused("not a path", plan, 7, "pi", scale=2)
    refused("zero byte", plan, "a\0b", "pi", scale=2)
    refused("pairing", plan, mrrope.Geometry(8, 1e4, 64, "diagonal"), "pi", scale=2)
    refused("rotary_dim", plan, mrrope.Geometry(7, 1e4, 64), "pi", scale=2)
    refused("base", plan, mrrope.Geometry(8, -1, 64), "pi", scale=2)
    refused("factor list", plan, mrrope.Geometry(8, 1e4, 64, trained_factor=(1.0,)), "pi", scale=2)
    refused("absent", mrrope.load, "/absent.json")
    refused("absent", mrrope.inspect, "/absent")
    refused("not possible", mrrope.inspect, "/absent", ctx=0)
    refused("more than the", ladder(GEOMETRY, "elastic:pi", ctx=128).rung_at, 129)
    refused("more than the 128", ladder(GEOMETRY, "far:pi", ctx=128).rung_at, 129)
    refused("cannot write", PRO.save, "/absent/plan.json")
    refused("transformers", mrrope.patch, 7, "pro", 128)  # is missing, or 7 is no model of it
    refused("not patched", mrrope.unpatch, 7)


def check_hints(work):
    """Hints name what a Python program can type: keywords, not flags of the shell."""
    def config(**more):
        (work / "config.json").write_text(json.dumps({
            "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1,
            "max_position_embeddings": 64, "vocab_size": 8, "intermediate_size": 8, **more}))
        return work

    def loaded(text):
        (work / "plan.json").write_text(text)
        return work / "plan.json"

    numbers = "mrrope.Geometry(rotary_dim=N, base=B, train_length=LENGTH)"
    for hint, call in {
        "rotary_dim=128": lambda: mrrope.plan(mrrope.Geometry(7, 1e4, 64), "pi", scale=2),
        "base=10000": lambda: mrrope.plan(mrrope.Geometry(8, 0.5, 64), "pi", scale=2),
        "train_length=4096": lambda: mrrope.plan(mrrope.Geometry(8, 1e4, 0), "pi", scale=2),
        'ctx="128k" or scale=4': lambda: mrrope.plan(GEOMETRY, "pro"),
        'give ctx="128k"': lambda: mrrope.ladder(GEOMETRY, "elastic:pro"),
        f"instead: {numbers}": lambda: mrrope.inspect(config(model_type="unheard-of")),
        f"numbers instead: {numbers}": lambda: mrrope.inspect(
            config(rope_parameters={"rope_type": "unheard-of"})),
        "help(mrrope.plan)": lambda: mrrope.plan(GEOMETRY, "pro", scale=2, low=1 << 40),
        "mrrope.plan(...).save(FILE)": lambda: mrrope.load(loaded("{}")),
        "Plan.save()": lambda: mrrope.load(loaded("{")),
    }.items():
        try:
            call()
        except mrrope.Error as error:
            assert hint in error.hint, (hint, error.message, error.hint)
            assert "--" not in str(error), error
            continue
        raise AssertionError(f"not refused: {hint}")
    for said, instead in {
        "make the ladder longer: --ctx 8192": "make the ladder longer: ctx=8192",
        "give another output with -o, or --force to replace it":
            "give another output with out, or force=True to replace it",
        "make the plan with --attn-coef 0, or use --method yarn, whose own temperature":
            'make the plan with attn_coef=0, or use method="yarn", whose own temperature',
        "give -ctk f16, or --method far:pi, which turns them less":
            'give cache_type_k="f16", or method="far:pi", which turns them less',
        "-ctk q8_0 -ctv q8_0 with --ctx 1024": 'cache_type_k="q8_0" cache_type_v="q8_0" with ctx=1024',
        "give the bare numbers instead: --rotary-dim 8 --rope-freq-base 5e5 --train-ctx LENGTH":
            "give the bare numbers instead: mrrope.Geometry(rotary_dim=8, base=5e5, train_length=LENGTH)",
        "export it with --to hf, or add --verify off": 'export it with to="hf", or add verify=False',
        "remove --split, or give --no-kv-unified": "remove split, or give kv_unified=False",
        "see: mrrope serve --help": "see: help(mrrope.serve), and mrrope serve --help",
        "check a--file, b/--force and -- c.--json": "check a--file, b/--force and -- c.--json",
    }.items():
        found = mrrope._library.in_python(said)
        assert found == instead, (found, instead)


def check_files(work):
    """Models and plan files that are cut or hold something else."""
    broken = work / "broken.gguf"
    for content in (b"", b"GGUF", b"GGUF\3\0\0\0" + b"\xff" * 16, b"\0" * 100):
        broken.write_bytes(content)
        refused("", mrrope.inspect, broken)
        refused("", mrrope.plan, broken, "pro", 4096)
    (work / "config.json").write_text('{"model_type": "gpt2", "n_positions": 1024}')
    refused("", mrrope.inspect, work)  # learned positions
    plan = work / "plan.json"
    for content in ("", "{", "[]", '{"method": "pi"}', '{"method": "pi", "scale": "a"}'):
        plan.write_text(content)
        refused("", mrrope.load, plan)
    text = str(PRO.to_dict()).replace("'", '"').replace('"pi"', '"ntk"')
    plan.write_text(text)
    refused("factor", mrrope.load, plan)  # numbers that are not those of its request


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


def check_bad_arrays(zeros):
    rotate = mrrope.rotate
    good = zeros((1, 2, 3, 8), "float32")
    refused("not an array", rotate, [1, 2, 3], plan=PRO)
    refused("neither queries nor keys", rotate, plan=PRO)
    refused("not a plan", rotate, good, plan={})
    refused("type float64", rotate, zeros((1, 2, 3, 8), "float64"), plan=PRO)
    refused("type int32", rotate, zeros((1, 2, 3, 8), "int32"), plan=PRO)
    refused("2 axes", rotate, zeros((3, 8), "float32"), plan=PRO)
    refused("5 axes", rotate, zeros((1, 1, 2, 3, 8), "float32"), plan=PRO)
    refused("", rotate, zeros((1, 2, 3, 4), "float32"), plan=PRO)  # a head smaller than rotary_dim
    refused("not contiguous", rotate, zeros((1, 2, 3, 16), "float32")[..., ::2], plan=PRO)
    refused("layout", rotate, good, plan=PRO, layout="bhtt")
    refused("layout", rotate, good, plan=PRO, layout=5)
    refused("differ in kind", rotate, good, zeros((1, 2, 3, 8), "float16"), plan=PRO)
    refused("differ in tokens", rotate, good, zeros((1, 2, 4, 8), "float32"), plan=PRO)
    refused("differ in head_dim", rotate, good, zeros((1, 2, 3, 12), "float32"), plan=PRO)
    refused("2 positions", rotate, good, plan=PRO, positions=[1, 2])
    refused("whole numbers", rotate, good, plan=PRO, positions=[1, 2, -3])
    refused("whole numbers", rotate, good, plan=PRO, positions=[1, 2, 0.5])
    refused("whole numbers", rotate, good, plan=PRO, positions=[1, 2, 1 << 31])
    refused("too far apart", rotate, good, plan=PRO, positions=[0, 1, (1 << 31) - 1])
    refused("not a position", rotate, good, plan=PRO, first_position=-1)
    refused("", rotate, good, plan=PRO, first_position=(1 << 31) - 2)
    refused("threads", rotate, good, plan=PRO, threads=0)
    refused("threads", rotate, good, plan=PRO, threads=5000)
    other = mrrope.plan(mrrope.Geometry(4, 1e4, 64), "pi", scale=2)
    refused("rotary_dim", mrrope.turn, good, PRO, other)
    mrrope.rotate(zeros((1, 2, 3, 8), "float32"), zeros((1, 1, 3, 8), "float32"), plan=PRO,
                  positions=[(1 << 31) - 1] * 3)


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
    for positions in (b"abc", bytearray(b"abc"), "123", {1, 2, 3}, {0: 1, 1: 2, 2: 3}, 3):
        refused("is not a list", mrrope.rotate, Shared((1, 1, 3, 8), [0] * 24), plan=PRO, positions=positions)
    refused("whole numbers", mrrope.rotate, Shared((1, 1, 3, 8), [0] * 24), plan=PRO, positions=[b"abc"])
    # Of nothing there is nothing to do, whatever its strides say; numpy's are 0.
    keys = Shared((1, 1, 3, 8), [1] * 24)
    for shape in ((1, 2, 0, 8), (0, 2, 3, 8), (1, 0, 3, 8), (2, 0, 8), (0, 3, 8)):
        for strides in (None, [0] * len(shape)):
            mrrope.rotate(Shared(shape, strides=strides), plan=PRO)
    mrrope.rotate(Shared((1, 0, 3, 8), strides=[0] * 4), keys, plan=PRO, first_position=1)
    assert abs(keys.values[0] - reference([1] * 8, 1, PRO)[0]) < 1e-6
    refused("heads of 0 elements", mrrope.rotate, Shared((1, 2, 3, 0)), plan=PRO)
    # More than fits into an int32 of mrrope.h.
    refused("4294967424 elements of a head", mrrope.rotate, Shared((1, 1, 1, (1 << 32) + 128)), plan=PRO)
    refused("4294967297 heads", mrrope.rotate, Shared((1, (1 << 32) + 1, 1, 8)), plan=PRO)
    refused("2147483648 heads", mrrope.rotate, Shared((1, 1 << 31, 1, 8)), plan=PRO)
    refused("cannot be shared", mrrope.rotate, Shared((1, 1, 3, 8), capsule="no capsule"), plan=PRO)
    refused("cannot be shared", mrrope.rotate, Shared((1, 1, 3, 8), name=b"used_dltensor"), plan=PRO)


def main():
    check_requests()
    check_shared()
    with tempfile.TemporaryDirectory(prefix="mrrope-bad-") as folder:
        check_files(pathlib.Path(folder))
        check_hints(pathlib.Path(folder))
    if numpy is None:
        print("SKIPPED: arrays of numpy: it is not installed")
    else:
        for kind, most in (("float32", 1e-6), ("float16", 2e-3)):
            check_array(lambda v: numpy.array(v, kind), lambda a: a.astype(float).tolist(), most)
        check_bad_arrays(lambda shape, kind: numpy.zeros(shape, kind))
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
        check_bad_arrays(lambda shape, kind: torch.zeros(shape, dtype=getattr(torch, kind)))
        refused("gradient", mrrope.rotate, torch.zeros(1, 2, 3, 8, requires_grad=True), plan=PRO)
        refused("", mrrope.rotate, torch.zeros(8).expand(1, 2, 3, 8), plan=PRO)
        refused("cannot be shared", mrrope.rotate, torch.zeros((1, 2, 3, 8), device="meta"),
                plan=PRO)
        for device, part in ((2, "it is on DLPack device 2" if HAS_CUDA else "has no CUDA"),
                             (10, "not in the memory of the CPU (DLPack device 10)")):
            there = torch.zeros(1, 2, 3, 8)
            there.__class__ = type("There", (torch.Tensor,),
                                   {"__dlpack_device__": lambda self, device=device: (device, 0)})
            refused(part, mrrope.rotate, there, plan=PRO)
    print("ok", "under the address sanitizer" if os.environ.get("LD_PRELOAD") else "")


main()

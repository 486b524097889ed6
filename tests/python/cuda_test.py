# SPDX-License-Identifier: Apache-2.0
"""rotate() and turn() on the tensors of a GPU, against float64 on the CPU.

Needs torch with CUDA and a library built with CUDA. Exit code 77: skipped.
"""
import sys
import time

import mrrope

try:
    import torch
except ImportError:
    torch = None

HAS_CUDA = hasattr(mrrope._library.library, "mrrope_cuda_rotate_and_wait")
# Numbers up to 8: a unit in the last place for the halves; for float32 that of pairs of length 1
# (1e-6, tests/gpu/rotary_cuda_test.cpp) times 8.
MOST = {"float32": 8e-6, "float16": 2 ** -8, "bfloat16": 2 ** -5}
failed = []


def say(what, good, more=""):
    print(f"{'ok    ' if good else 'FAILED'} {what}{': ' if more else ''}{more}", flush=True)
    if not good:
        failed.append(what)


def reference(x, positions, plan, inverse=False):
    """x: [..., token, element] in float64 on the CPU, positions: [sequence, token]."""
    theta = torch.tensor(plan.theta, dtype=torch.float64)
    angles = positions.double()[:, None, :, None] * theta
    if inverse:
        angles = -angles
    scale = 1 / plan.attention_scale if inverse else plan.attention_scale
    scale *= (1 / plan.geometry.trained_attention_scale if inverse
              else plan.geometry.trained_attention_scale)
    pairs, width = len(plan.theta), plan.geometry.rotary_dim
    out = x.clone()
    if plan.geometry.pairing == "halves":
        first, second = slice(0, pairs), slice(pairs, width)
    else:
        first, second = slice(0, width, 2), slice(1, width, 2)
    a, b = x[..., first], x[..., second]
    out[..., first] = (a * angles.cos() - b * angles.sin()) * scale
    out[..., second] = (a * angles.sin() + b * angles.cos()) * scale
    return out


def check_numbers():
    make = torch.Generator().manual_seed(1)
    for kind in ("float32", "float16", "bfloat16"):
        for pairing, rotary_dim, head_dim in (("halves", 128, 128), ("interleaved", 64, 80)):
            plan = mrrope.plan(mrrope.Geometry(rotary_dim, 5e5, 8192, pairing), "pro", scale=16)
            q, k = (torch.randn(2, heads, 33, head_dim, generator=make).to(getattr(torch, kind))
                    for heads in (8, 2))
            counted = (torch.arange(33) + 131000).expand(2, -1)
            stated = torch.randint(0, 131072, (2, 33), generator=make)
            for name, positions, options in (
                    ("from 131000 on", counted, {"first_position": 131000}),
                    ("given as a list", stated, {"positions": stated.tolist()}),
                    ("given on the GPU", stated, {"positions": stated.cuda()})):
                there = q.cuda(), k.cuda()
                at = [x.data_ptr() for x in there]
                mrrope.rotate(*there, plan=plan, **options)
                apart = max(float((mine.double().cpu() - reference(x.double(), positions, plan))
                                  .abs().max()) for mine, x in zip(there, (q, k)))
                say(f"{kind}, {pairing}, {rotary_dim} of {head_dim}, positions {name}",
                    apart < MOST[kind] and at == [x.data_ptr() for x in there],
                    f"largest difference {apart:.1e}")
            mrrope.rotate(*there, plan=plan, inverse=True, **options)
            apart = float((there[0].double().cpu() - q.double()).abs().max())
            say(f"{kind}, {pairing}: undone", apart < 2 * MOST[kind], f"{apart:.1e}")


def check_layouts():
    """Views and other orders of the axes; nothing outside a view changes."""
    plan = mrrope.plan(mrrope.Geometry(64, 1e4, 1024), "yarn", scale=8)
    whole = torch.randn(2, 50, 4, 64, generator=torch.Generator().manual_seed(2))
    positions = (torch.arange(20) + 7).expand(2, -1)
    there = whole.cuda()
    mrrope.rotate(there[:, 10:30], plan=plan, layout="bthd", first_position=7)
    wanted = whole.double()
    wanted[:, 10:30] = reference(wanted[:, 10:30].transpose(1, 2), positions, plan).transpose(1, 2)
    apart = float((there.double().cpu() - wanted).abs().max())
    say("a view in the layout bthd, and what lies around it", apart < MOST["float32"], f"{apart:.1e}")
    three = whole[0].cuda()
    mrrope.rotate(three, plan=plan, layout="bthd")
    wanted = reference(whole[:1].double().transpose(1, 2), torch.arange(50)[None], plan)
    apart = float((three.double().cpu() - wanted.transpose(1, 2)[0]).abs().max())
    say("three axes", apart < MOST["float32"], f"{apart:.1e}")
    mrrope.rotate(whole.cuda()[:, :0], plan=plan, layout="bthd")
    say("no tokens", True)


def check_without_copies():
    """The address is the tensor's own, and the library allocates next to nothing."""
    plan = mrrope.plan(mrrope.Geometry(128, 1e4, 4096), "pro", scale=8)
    keys = torch.randn(1, 8, 65536, 128, device="cuda", dtype=torch.float16)
    same = mrrope._tensors.View(keys, "keys").address == keys.data_ptr()
    say("the DLPack address is data_ptr()", same)
    mrrope.rotate(k=keys, plan=plan)  # what CUDA loads the first time is not counted
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    before = torch.cuda.memory_allocated()
    times = []
    for _ in range(20):
        start = time.perf_counter()
        mrrope.rotate(k=keys, plan=plan)
        times.append(time.perf_counter() - start)
    grown = free - torch.cuda.mem_get_info()[0] + torch.cuda.memory_allocated() - before
    say("20 rotations of 128 MiB take no more memory", grown < 4 << 20, f"{grown} bytes")
    small = keys[:, :, :1].contiguous()
    few = []
    for _ in range(50):
        start = time.perf_counter()
        mrrope.rotate(k=small, plan=plan)
        few.append(time.perf_counter() - start)
    print(f"       median of a call: {1e6 * sorted(times)[10]:.0f} us for 128 MiB, "
          f"{1e6 * sorted(few)[25]:.0f} us for one token")


def check_streams():
    """Work of another stream comes first, and work after the call sees its result."""
    plan = mrrope.plan(mrrope.Geometry(128, 1e4, 4096), "pro", scale=8)
    side, worst = torch.cuda.Stream(), 0.0
    big = torch.randn(4096, 4096, device="cuda")
    torch.cuda.synchronize()
    for _ in range(20):
        with torch.cuda.stream(side):
            for _ in range(4):
                big = torch.tanh(big @ big)
            keys = torch.ones(1, 4, 300, 128, device="cuda") + 0 * big[0, 0].nan_to_num()
            mrrope.rotate(k=keys, plan=plan)
            after = keys * 1
        side.synchronize()
        wanted = reference(torch.ones(1, 4, 300, 128, dtype=torch.float64), torch.arange(300)[None],
                           plan)
        worst = max(worst, float((after.double().cpu() - wanted).abs().max()))
    say("a stream of its own, 20 times", worst < MOST["float32"], f"{worst:.1e}")


def check_turn():
    geometry = mrrope.Geometry(128, 1e4, 1024)
    old, new = (mrrope.plan(geometry, "pro", scale=s) for s in (1.5, 8))
    keys = torch.randn(1, 2, 900, 128, generator=torch.Generator().manual_seed(3))
    turned, wanted = keys.cuda(), keys.clone()
    mrrope.rotate(k=turned, plan=old, first_position=100)
    mrrope.turn(turned, old, new, first_position=100)
    mrrope.rotate(k=wanted, plan=new, first_position=100)
    apart = float((turned.cpu() - wanted).abs().max())
    say("turn() from one plan to another", apart < 2 * MOST["float32"], f"{apart:.1e}")


def refused(part, *arguments, **options):
    try:
        mrrope.rotate(*arguments, **options)
    except mrrope.Error as error:
        say(f"refused: {error.message}", part in error.message)
        return
    say(f"refused: {part}", False, "it was not")


def check_bad_input():
    plan = mrrope.plan(mrrope.Geometry(8, 1e4, 64), "pi", scale=4)
    good = torch.zeros(1, 2, 3, 8, device="cuda")
    refused("type float64", good.double(), plan=plan)
    refused("type int32", good.int(), plan=plan)
    refused("2 axes", good[0, 0], plan=plan)
    refused("not contiguous", torch.zeros(1, 2, 3, 16, device="cuda")[..., ::2], plan=plan)
    refused("heads of 4", torch.zeros(1, 2, 3, 4, device="cuda"), plan=plan)
    refused("", torch.zeros(8, device="cuda").expand(1, 2, 3, 8), plan=plan)
    refused("differ in gpu", good, torch.zeros(1, 2, 3, 8), plan=plan)
    refused("differ in tokens", good, torch.zeros(1, 2, 4, 8, device="cuda"), plan=plan)
    refused("2 positions", good, plan=plan, positions=[1, 2])
    refused("whole numbers", good, plan=plan, positions=[1, 2, -3])
    refused("gradient", good.clone().requires_grad_(), plan=plan)
    refused("", good, plan=plan, first_position=(1 << 31) - 2)
    mrrope.rotate(good, plan=plan)
    torch.cuda.synchronize()
    say("the GPU still works", bool((good == 0).all()))


def main():
    if torch is None or not torch.cuda.is_available() or not HAS_CUDA:
        print("SKIPPED: GPU tensors in Python: " + (
            "torch is not installed" if torch is None else
            "torch finds no GPU" if not torch.cuda.is_available() else "the library has no CUDA"))
        sys.exit(77)
    print(f"       torch {torch.__version__}, {torch.cuda.get_device_name()}, mrrope "
          f"{mrrope.__version__}")
    for check in (check_numbers, check_layouts, check_without_copies, check_streams, check_turn,
                  check_bad_input):
        check()
    print(f"{len(failed)} failed" if failed else "all ok")
    sys.exit(1 if failed else 0)


main()

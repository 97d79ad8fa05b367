#!/usr/bin/env python3
"""Plays our allocator's sequences to PyTorch's allocator on the same card and compares each step.

    oomlab-alloc-sequences > sequences.json
    python3 tests/gpu/torch_parity.py sequences.json

Exit status: 0 equal, 1 different, 2 usage, 77 no torch or no card. Sequences of one configuration run in
one child process, since PyTorch reads its configuration once. `--check FILE` only reads the file.
"""
import json
import os
import subprocess
import sys

COMPARED = ("oom", "allocated", "reserved", "segments", "inactive_split", "retries", "ooms")


def read(path):
    with open(path, encoding="utf-8") as f:
        sequences = json.load(f)
    for sequence in sequences:
        for step in sequence["steps"]:
            missing = [key for key in COMPARED if key not in step]
            if missing:
                sys.exit(f"{path}: {sequence['name']}: a step has no {missing[0]}")
    return sequences


def figures(torch, base, oom):
    stats = torch.cuda.memory_stats()
    return {
        "oom": oom,
        "allocated": torch.cuda.memory_allocated() - base["allocated"],
        "reserved": torch.cuda.memory_reserved() - base["reserved"],
        "segments": stats["segment.all.current"] - base["segments"],
        "inactive_split": stats["inactive_split_bytes.all.current"] - base["inactive_split"],
        "retries": stats["num_alloc_retries"] - base["retries"],
        "ooms": stats["num_ooms"] - base["ooms"],
    }


def play(torch, sequence):
    """Returns the first step that differs as text, or None."""
    total = torch.cuda.get_device_properties(0).total_memory
    zero = dict.fromkeys(COMPARED, 0)
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()
    base = figures(torch, zero, False)
    cap = sequence["cap_bytes"]
    if cap:
        torch.cuda.set_per_process_memory_fraction((cap + base["reserved"]) / total)
    live = {}
    different = None
    for number, step in enumerate(sequence["steps"], 1):
        oom = False
        if step["op"] == "empty":
            torch.cuda.empty_cache()
        elif step["op"] == "free":
            torch.cuda.caching_allocator_delete(live.pop(step["id"]))
        else:
            try:
                live[step["id"]] = torch.cuda.caching_allocator_alloc(step["bytes"])
            except torch.cuda.OutOfMemoryError:
                oom = True
        got = figures(torch, base, oom)
        wrong = [key for key in COMPARED if got[key] != step[key]]
        if wrong:
            detail = ", ".join(f"{key} {got[key]} where ours has {step[key]}" for key in wrong)
            different = f"step {number} ({step['op']}): torch has {detail}"
            break
    for pointer in live.values():
        torch.cuda.caching_allocator_delete(pointer)
    torch.cuda.empty_cache()
    return different


def child(path, conf):
    import torch

    torch.cuda.init()
    failed = 0
    for sequence in read(path):
        if sequence["conf"] != conf:
            continue
        different = play(torch, sequence)
        failed += different is not None
        print(f"{sequence['name']:<46} {len(sequence['steps']):>6} steps  {different or 'equal'}", flush=True)
    return 1 if failed else 0


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--check":
        print(f"{len(read(arguments[1]))} sequences")
        return 0
    if len(arguments) == 3 and arguments[0] == "--conf":
        return child(arguments[2], arguments[1])
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        import torch
    except ImportError:
        print("skipped: this Python has no torch")
        return 77
    if not torch.cuda.is_available():
        print("skipped: torch sees no card")
        return 77
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name(0)}")
    status = 0
    for conf in sorted({sequence["conf"] for sequence in read(arguments[0])}):
        env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf, PYTORCH_ALLOC_CONF=conf)
        if not conf:
            env.pop("PYTORCH_CUDA_ALLOC_CONF")
            env.pop("PYTORCH_ALLOC_CONF")
        status |= subprocess.run([sys.executable, __file__, "--conf", conf, arguments[0]], env=env,
                                 check=False).returncode
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Runs a scenario on two devices and says where they tell another story.

    python3 tests/gpu/twin.py OOMLAB SCENARIO cuda:0 sim:card.toml

The aims: the same outcome, type and cause; peak of allocated bytes to the byte; the pool within one
block; device-used within 2%. Exit status: 0 all met, 1 not, 2 usage.
"""
import json
import subprocess
import sys


def run(oomlab, scenario, device):
    done = subprocess.run([oomlab, "run", scenario, "--device", device, "--json"], capture_output=True,
                          text=True, timeout=120, check=False)
    text = done.stdout
    start = text.find("{")
    if start < 0:
        print(f"{device}: no JSON (exit status {done.returncode}): {done.stderr.strip()[-300:]}")
        return None
    return json.JSONDecoder().raw_decode(text[start:])[0]


def get(result, path):
    for key in path.split("."):
        result = result.get(key) if isinstance(result, dict) else None
    return result


def same(a, b):
    return a == b


def within_one(a, b):
    return a is not None and b is not None and abs(a - b) <= 1


def within_2_percent(a, b):
    return a is not None and b is not None and abs(a - b) <= 0.02 * max(abs(a), abs(b))


COMPARED = [
    ("outcome", same), ("oom_type", same), ("cause", same), ("exit_status", same),
    ("peak_allocated_bytes", same), ("peak_reserved_bytes", same), ("kv.num_gpu_blocks", within_one),
    ("requests.completed", same), ("device_used_bytes", within_2_percent),
]


def main(arguments):
    if len(arguments) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    oomlab, scenario, first, second = arguments
    a, b = run(oomlab, scenario, first), run(oomlab, scenario, second)
    if a is None or b is None:
        return 1
    missed = 0
    print(f"{'':<24} {first:>24} {second:>24}")
    for path, met in COMPARED:
        x, y = get(a, path), get(b, path)
        good = met(x, y)
        missed += not good
        print(f"{path:<24} {str(x):>24} {str(y):>24}  {'' if good else 'differs'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

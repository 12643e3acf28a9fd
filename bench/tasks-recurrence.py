#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Computes the response times of the classic task sets of crates/answer/tailbound-stats/tests/stats/tasks/examples.rs again, without
the program and its libraries, in two ways: by the recurrence R = C + B + sum(ceil(R / T) * C) with the busy window of Lehoczky,
and by playing preemptive fixed priorities tick by tick from the instant at which all tasks are released together.

    bench/tasks-recurrence.py [EXAMPLES.RS]

Prints a table; the exit status is 1 if a figure differs from the one that the tests hold the program to."""
import math, pathlib, re, sys


def recurrence(tasks, k, blocking=0):
    """The longest response of task k: of all its jobs in the busy window of its level."""
    c, t = tasks[k]
    longest, q = 0, 0
    while True:
        w = (q + 1) * c + blocking
        while True:
            longer = (q + 1) * c + blocking + sum(math.ceil(w / th) * ch for ch, th in tasks[:k])
            if longer == w:
                break
            w = longer
        longest = max(longest, w - q * t)
        if w <= (q + 1) * t:
            return longest
        q += 1


def played(tasks):
    """The longest response of each task within one hyperperiod and as long as work is left."""
    end = math.lcm(*(t for _, t in tasks))
    jobs, longest, now = [[] for _ in tasks], [0] * len(tasks), 0
    while now < end or any(jobs):
        for own, (c, t) in zip(jobs, tasks):
            if now < end and now % t == 0:
                own.append([now, c])
        ready = next((i for i, own in enumerate(jobs) if own), None)
        now += 1
        if ready is not None:
            job = jobs[ready][0]
            job[1] -= 1
            if job[1] == 0:
                jobs[ready].pop(0)
                longest[ready] = max(longest[ready], now - job[0])
    return longest


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    source = sys.argv[1] if len(sys.argv) > 1 else here / "crates/answer/tailbound-stats/tests/stats/tasks/examples.rs"
    text = pathlib.Path(source).read_text(encoding="utf-8")
    block = text[text.index("fn classic_examples"):]
    block = block[: block.index("\n}\n")]
    found = re.findall(r'"([^"]+)",\s*&\[((?:\(\d+, \d+\),?\s*)+)\][^&]*&\[((?:Some\(\d+\),?\s*)+)\]', block)
    if not found:
        sys.exit(f"{source}: no task sets were found")
    wrong = 0
    print("| task set | by the recurrence | played | in the tests |")
    print("|---|---|---|---|")
    for name, sets, expected in found:
        tasks = [(int(c), int(t)) for c, t in re.findall(r"\((\d+), (\d+)\)", sets)]
        expected = [int(n) for n in re.findall(r"\d+", expected)]
        computed = [recurrence(tasks, k) for k in range(len(tasks))]
        seen = played(tasks)
        wrong += not (computed == seen == expected)
        print(f"| {name} | {computed} | {seen} | {expected} |")
    # With blocking: w = C + B + interference (Audsley et al. 1993), the set and the sections of `blocking_and_jitter_of_the_literature`.
    tasks, blocking = [(3, 7), (3, 12), (5, 20)], [2, 2, 0]
    computed = [recurrence(tasks, k, b) for k, b in enumerate(blocking)]
    wrong += computed != [5, 11, 20]
    print(f"| with blocking 2, 2, 0 | {computed} | - | [5, 11, 20] |")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

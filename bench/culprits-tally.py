#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""One row of the table of bench/culprits.sh: what was named in a file, beside what was planted.

    bench/culprits-tally.py FILE PLANT GROUND KERNEL CAUSES WHO LIMIT_NS MOST_NS

FILE is a run file (lines `blame`), one of `tailbound watch` (the longest cycles of its line `cycle`), or the JSON of `tailbound
interruptions` (whoever sent an interrupt to the CPU). GROUND is `host` where others work too, else `lab`. Cycles up to
LIMIT_NS are not late; samples later than MOST_NS (0: none) are not counted.
"""
import collections, json, sys

ORDINARY = ("kernel-path", "own", "tracing")


def samples(path, limit_ns, most_ns):
    """The parts of each late sample."""
    lines = [json.loads(line) for line in open(path, encoding="utf-8")]
    cycles = [line for line in lines if line["type"] == "cycle"]
    if not cycles:
        late = [line for line in lines if line["type"] == "blame" and not line.get("near")]
        return [line["parts"] for line in late if not most_ns or line["latency_ns"] <= most_ns]
    return [one["parts"] for line in cycles for one in line["worst"] if one["latency_ns"] > limit_ns]


def culprit(parts):
    """Cause, name and sureness of the largest foreign part, where it has a fifth."""
    sums, longest = collections.Counter(), {}
    for p in parts:
        key = (p["cause"], p.get("who", ""))
        sums[key] += p["ns"]
        if p["ns"] > longest.get(key, (-1, ""))[0]:
            longest[key] = (p["ns"], p.get("sureness", "sure"))
    foreign = {k: v for k, v in sums.items() if k[0] not in ORDINARY}
    own = sum(v for k, v in sums.items() if k[0] in ORDINARY)
    pick = max(foreign, key=foreign.get) if foreign else None
    if pick is None or foreign[pick] * 4 < own:
        pick = max(sums, key=sums.get)
    return (*pick, longest[pick][1])


def interruptions(path):
    """The same of each interrupt that another CPU sent and that was received as one with a function."""
    taken = [row for cpu in json.load(open(path, encoding="utf-8"))["cpus"] for row in cpu["taken"]]
    # The handler of all of them is told around the function that was asked for.
    asked = [r for r in taken if r["kind"] == "ipi" and "generic_smp_call" not in r["who"]]
    return [("ipi", r["who"], "sure") for r in asked for _ in range(r["count"])]


def main():
    path, plant, ground, kernel, causes, who, limit_ns, most_ns = sys.argv[1:9]
    named = interruptions(path) if path.endswith(".json") else [culprit(p) for p in samples(path, int(limit_ns), int(most_ns))]
    right = sure = both = 0
    confused, others = collections.Counter(), collections.Counter()
    for cause, name, how in named:
        if cause in causes.split("/") and all(w in name for w in who.split("&")):
            right += 1
            sure += how == "sure"
        elif cause in causes.split("/") and path.endswith(".json") and "from" not in name:
            # What was sent before the first event.
            both += 1
        elif cause == "unexplained" and (who or plant == "stalled") and (who in name or "hypervisor" in name):
            both += 1
        elif ground == "lab" or "load/" in name or who and who in name:
            confused[(cause, how)] += 1
        else:
            # Another program's, or nobody's: what it did at that moment is not known here.
            others[(cause, how)] += 1

    def cell(counts):
        words = [f"{n} {c}" + ("" if h == "sure" else f" ({h})") for (c, h), n in counts.most_common()]
        return ", ".join(words) or "-"

    planted = right + both + sum(confused.values())
    share = f" ({100 * right / planted:.0f} %)" if planted else ""
    print(f"| {plant} | {kernel} | {planted} | {right}{share} | {sure} | {both} | {cell(confused)} | {cell(others)} |")


main()

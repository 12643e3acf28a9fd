#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""One row of the table of bench/culprits.sh: what was named in a file, beside what was planted.

    bench/culprits-tally.py FILE PLANT GROUND KERNEL CAUSES WHO LIMIT_NS MOST_NS

FILE is a run file (lines `blame`), one of `tailbound watch` (the longest cycles of its line `cycle`), or the JSON of `tailbound
interruptions` (interrupts that the load sent, against those that were named at their receiver). GROUND is `host` where others work
too, else `lab`. Cycles up to LIMIT_NS are not late; samples later than MOST_NS (0: none) are not counted.
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


def interruptions(path, callsite, who):
    """What the load sent in that function of the kernel, as the sender's CPU recorded it, and what the receiver's named."""
    found = json.load(open(path, encoding="utf-8"))
    sent = sum(s["count"] for s in found["senders"] if s["callsite"] == callsite and s["who"].startswith("load/"))
    rows = [row for cpu in found["cpus"] for row in cpu["taken"] if row["kind"] == "ipi"]
    function, sender = who.split("&")
    of_it = [row for row in rows if function in row["who"]]
    right = sum(row["count"] for row in of_it if sender in row["who"])
    # Of the first ones it was not recorded who sent them.
    both = min(sum(row["count"] for row in of_it if "from" not in row["who"]), max(0, sent - right))
    named = [("ipi", who.replace("&", " "), "sure")] * right
    return named, both, max(0, sent - right - both)


def main():
    path, plant, ground, kernel, causes, who, limit_ns, most_ns = sys.argv[1:9]
    right = sure = both = 0
    confused, others = collections.Counter(), collections.Counter()
    if path.endswith(".json"):
        named, both, lost = interruptions(path, causes.split("/")[1], who)
        confused[("not received as one", "sure")] += lost
    else:
        named = [culprit(p) for p in samples(path, int(limit_ns), int(most_ns))]
    for cause, name, how in named:
        if cause in causes.split("/") and any(all(w in name for w in one.split("&")) for one in who.split(";")):
            right += 1
            sure += how == "sure"
        elif cause == "unexplained" and (who or "hypervisor") in name:
            both += 1
        elif cause != "unexplained" and (ground == "lab" or "load/" in name):
            confused[(cause, how)] += 1
        else:
            # Another program's, or nobody's: what it did at that moment is not known here.
            others[(cause, how)] += 1

    def cell(counts):
        words = [f"{n} {c}" + ("" if h == "sure" else f" ({h})") for (c, h), n in counts.most_common() if n]
        return ", ".join(words) or "-"

    planted = right + both + sum(confused.values())
    share = f" ({100 * right / planted:.0f} %)" if planted else ""
    print(f"| {plant} | {kernel} | {planted} | {right}{share} | {sure} | {both} | {cell(confused)} | {cell(others)} |")


main()

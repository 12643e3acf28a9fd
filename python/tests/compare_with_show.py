# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares what the reader makes of a run with what the tool shows of it.

    compare_with_show.py RUN.tailbound.jsonl SHOW.json
"""

import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import tailbound  # noqa: E402


def main(run_path, json_path):
    run = tailbound.read(run_path)
    with open(json_path, encoding="utf-8") as file:
        shown = json.load(file)
    summary = run.summary()
    assert summary["id"] == shown["run"]["id"]
    assert not run.cut_off and run.unknown_lines == 0, (run.end, run.unknown_lines)
    assert summary["sentence"] == shown["verdict"]["sentence"]
    for total in shown["totals"]:
        mine = summary["contexts"][total["context"]]
        assert mine["missed"] == total["missed"]
        for kind in ("wakeup", "due"):
            for name in ("n", "min_ns", "max_ns", "over_range"):
                assert mine[kind][name] == total[kind][name], (kind, name, mine, total)
            for name in ("mean_ns", "sd_ns"):
                a, b = mine[kind][name], total[kind][name]
                assert a == b or math.isclose(a, b, rel_tol=1e-12), (kind, name, a, b)
            rows = run.histogram_rows(kind)
            count = sum(r["count"] for r in rows if r["context"] == total["context"])
            assert count == total[kind]["n"], (kind, count)
    woken = sum(summary["contexts"][c]["wakeup"]["n"] for c in ("user",))
    assert sum(r["n"] for r in run.seconds_rows()) == woken
    samples = run.raw()
    assert sum(map(len, samples.values())) == woken
    assert max(map(max, samples.values())) == summary["contexts"]["user"]["wakeup"]["max_ns"]
    due = summary["contexts"]["user"]["due"]["n"]
    assert sum(r["count"] for r in run.blocks_rows()) == due, "stretches add up to the run"


if __name__ == "__main__":
    main(*sys.argv[1:])

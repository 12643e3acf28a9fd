# SPDX-License-Identifier: MIT OR Apache-2.0
"""One run file, read back: JSON Lines, one record per line.

A file that was cut off anywhere is a valid shorter run: `Run.cut_off` says so. Lines of a type
that this version does not know are passed over and counted in `Run.unknown_lines`.
"""

import base64
import codecs
import json
import math
import re
import zlib
from array import array

from .h2 import bucket_bounds

SCHEMA = "tailbound-run/1"

_SAMPLES_MAX_BYTES = 1 << 30


class RunFileError(ValueError):
    """A file that is not a run file: what is wrong, and in which line."""


def read(path):
    """Reads the run file at `path` (a name or an open binary file) into a `Run`."""
    if hasattr(path, "read"):
        return _read(path, getattr(path, "name", "the file"))
    with open(path, "rb") as file:
        return _read(file, path)


def _read(file, name):
    run = None
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        if run is None:
            line = _utf8(line, name)
        whole = line.endswith(b"\n")
        try:
            record = json.loads(line)
            kind = record["type"]
        except (ValueError, KeyError, TypeError) as error:
            if not whole and run is not None:
                break  # A last line without its newline was cut off.
            raise RunFileError(f"{name}: line {number} is not a record: {error}") from error
        if run is None:
            if kind != "header":
                raise RunFileError(f"{name}: the first line is not a header")
            if record.get("schema") != SCHEMA:
                raise RunFileError(f"{name}: {_other_version(record.get('schema'))}")
            run = Run(record)
        else:
            run._absorb(kind, record)
    if run is None:
        raise RunFileError(f"{name}: the file is empty")
    return run


def _utf8(line, name):
    """The first line without a byte-order mark, which other programs put there."""
    for encoding, starts in (
        ("UTF-16LE", (codecs.BOM_UTF16_LE, b"{\0")),
        ("UTF-16BE", (codecs.BOM_UTF16_BE, b"\0{")),
    ):
        if line.startswith(starts):
            raise RunFileError(
                f"{name}: this is {encoding} text; run files are UTF-8: convert it, for example "
                f"with `iconv -f {encoding} -t UTF-8`"
            )
    return line.removeprefix(codecs.BOM_UTF8)


def _other_version(schema):
    """What the schema of another version is, and what to do."""
    name, ours = SCHEMA.split("/")
    found = re.fullmatch(re.escape(name) + "/([0-9]{1,20})", str(schema))
    if not found:
        advice = "is no version of a run file"
    elif int(found[1]) > int(ours):
        advice = "is newer than this version reads: use a newer tailbound"
    else:
        advice = "is older than this version reads: use the tailbound that wrote it"
    return f"schema {schema!r} {advice} (this reads {SCHEMA!r})"


def _frame(rows, columns, index=None):
    """Rows as a frame with these columns first."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "frames need pandas: install it with `pip install pandas`, or use the method of the "
            "same name with `_rows`, which gives a list of dictionaries"
        ) from error
    if not rows:
        return pandas.DataFrame(columns=columns)
    return pandas.DataFrame(rows)


def _buckets(histogram, early, **more):
    """Rows of one histogram as it stands in the file."""
    precision = histogram["precision"]
    for index, count in zip(histogram["index"], histogram["count"]):
        low, width = bucket_bounds(index, precision)
        yield {**more, "low_ns": low, "width_ns": width, "count": count, "early": early}


def _merged(*histograms):
    """Histograms together; of several precisions the coarsest one remains."""
    full = [h for h in histograms if h and h["index"]]
    if not full:
        return {"precision": 10, "index": [], "count": []}
    precision = min(h["precision"] for h in full)
    counts = {}
    for h in full:
        for index, count in zip(h["index"], h["count"]):
            if h["precision"] != precision:
                low, _ = bucket_bounds(index, h["precision"])
                shift = (low | 1 << precision).bit_length() - 1 - precision
                index = (shift << precision) + (low >> shift)
            counts[index] = counts.get(index, 0) + count
    index = sorted(counts)
    return {"precision": precision, "index": index, "count": [counts[i] for i in index]}


def unpack_samples(record):
    """The samples of one `raw` record: base64 of zlib of zigzag varints, as array('q')."""
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(record["data"]), _SAMPLES_MAX_BYTES)
    except (ValueError, zlib.error) as error:
        raise RunFileError(f"raw samples: {error}") from error
    samples = array("q")
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            samples.append((value >> 1) ^ -(value & 1))
            value = shift = 0
    if len(samples) != record["n"] or shift:
        raise RunFileError(f"raw samples: {record['n']} expected, {len(samples)} found")
    return samples


class Run:
    """A whole run. Times are ns; latencies are signed, negative is early."""

    HISTOGRAM = ["thread", "context", "kind", "low_ns", "width_ns", "count", "early"]
    SECONDS = ["thread", "second", "n", "max_ns", "argmax", "min_ns", "sum_ns", "missed"]
    EXCEEDANCES = ["thread", "activation", "error_ns", "t_ns", "missed"]
    BLOCKS = ["thread", "second", "seconds", "low_ns", "width_ns", "count", "early"]
    WINDOWS = ["thread", "window_s", "second", "n"]

    def __init__(self, header):
        self.header = header
        """The first line: plan, machine, tool, command."""
        self.threads = []
        """The last record of each thread and context, as it stands in the file."""
        self.findings = []
        self.verdict = None
        self.end = None
        """The last line; None: the file was cut off."""
        self.unknown_lines = 0
        self._lines = {}

    _KEPT = frozenset(
        ["event", "second", "window", "block", "exceedance", "blame", "violation", "paths", "cycle", "task", "load",
         "disturbance", "sent-pulses", "answered-pulses", "pulse-join", "raw", "work", "figure", "timeline",
         "self-cost", "after", "digest"]
    )

    def _absorb(self, kind, record):
        if kind == "thread":
            key = (record["thread"], record["context"])
            self.threads = [t for t in self.threads if (t["thread"], t["context"]) != key]
            self.threads.append(record)
        elif kind == "finding":
            self.findings = [f for f in self.findings if f["id"] != record["id"]]
            self.findings.append(record)
        elif kind == "verdict":
            self.verdict = record
        elif kind == "end":
            self.end = record
        elif kind in self._KEPT:
            self._lines.setdefault(kind, []).append(record)
        elif kind != "header":
            self.unknown_lines += 1

    @property
    def cut_off(self):
        """Is the last line missing?"""
        return self.end is None

    def lines(self, kind):
        """The records of one type as they stand in the file: "event", "load", "after", ..."""
        return self._lines.get(kind, [])

    # ---- rows: lists of dictionaries, without pandas ----

    def histogram_rows(self, kind=None):
        """A row for each non-empty bucket of each thread, context and kind.

        Kinds: `wakeup` (what a stopwatch at the thread saw), `missed` (with the latency each
        would have had), `due` (both together). A bucket holds `count` values of `low_ns` to
        `low_ns + width_ns - 1`; where `early` is true, by so much before the due time.
        """
        if kind not in (None, "wakeup", "missed", "due"):
            raise ValueError(f"kind is {kind!r}; it must be wakeup, missed, due or None for all")
        rows = []
        for t in self.threads:
            parts = {
                "wakeup": [t["wakeup"]],
                "missed": [t["missed"]],
                "due": [t["wakeup"], t["missed"]],
            }
            for name, distributions in parts.items():
                if kind not in (None, name):
                    continue
                more = {"thread": t["thread"], "context": t["context"], "kind": name}
                early = _merged(*(d.get("early") for d in distributions))
                rows.extend(reversed(list(_buckets(early, True, **more))))
                late = _merged(*(d["late"] for d in distributions))
                rows.extend(_buckets(late, False, **more))
        return rows

    def seconds_rows(self):
        """A row for each second of each thread."""
        return [{k: r[k] for k in self.SECONDS} for r in self.lines("second")]

    def exceedances_rows(self):
        """A row for each wake-up later than the threshold."""
        return [{k: r[k] for k in self.EXCEEDANCES} for r in self.lines("exceedance")]

    def blocks_rows(self):
        """A row for each non-empty bucket of each stretch of the schedule."""
        rows = []
        for b in self.lines("block"):
            more = {k: b[k] for k in ("thread", "second", "seconds")}
            if b.get("early"):
                rows.extend(reversed(list(_buckets(b["early"], True, **more))))
            rows.extend(_buckets(b["late"], False, **more))
        return rows

    def windows_rows(self):
        """A row for each moving statistic; what its count does not support is absent."""
        return [{**{k: r[k] for k in self.WINDOWS}, **r["values"]} for r in self.lines("window")]

    # ---- frames ----

    def histogram(self, kind=None):
        """`histogram_rows` as a frame."""
        return _frame(self.histogram_rows(kind), self.HISTOGRAM)

    def seconds(self):
        """`seconds_rows` as a frame."""
        return _frame(self.seconds_rows(), self.SECONDS)

    def exceedances(self):
        """`exceedances_rows` as a frame."""
        return _frame(self.exceedances_rows(), self.EXCEEDANCES)

    def blocks(self):
        """`blocks_rows` as a frame."""
        return _frame(self.blocks_rows(), self.BLOCKS)

    def windows(self):
        """`windows_rows` as a frame."""
        return _frame(self.windows_rows(), self.WINDOWS)

    # ---- figures ----

    def raw(self):
        """Every sample in its order, where they were kept: {thread: array('q') of ns}.

        Samples that are missing between two records are an error, not a gap.
        """
        out = {}
        for record in self.lines("raw"):
            samples = out.setdefault(record["thread"], array("q"))
            if record["from"] != len(samples):
                raise RunFileError(
                    f"raw samples of thread {record['thread']}: {len(samples)} are there, "
                    f"the next record begins at {record['from']}"
                )
            samples.extend(unpack_samples(record))
        return out

    def summary(self):
        """For each context, all threads together: exact counts, extremes, mean, sd; the verdict.

        What the file does not hold is None.
        """
        contexts = {}
        for t in self.threads:
            c = contexts.setdefault(t["context"], {"wakeup": [], "missed": []})
            c["wakeup"].append(t["wakeup"])
            c["missed"].append(t["missed"])
        return {
            "id": self.header["id"],
            "outcome": self.verdict["outcome"] if self.verdict else None,
            "sentence": self.verdict["sentence"] if self.verdict else None,
            "cut_off": self.cut_off,
            "contexts": {
                name: {
                    "missed": sum(d["n"] for d in c["missed"]),
                    "wakeup": _figures(c["wakeup"]),
                    "due": _figures(c["wakeup"] + c["missed"]),
                }
                for name, c in contexts.items()
            },
        }


def _figures(distributions):
    """Exact figures of several distributions together."""
    full = [d for d in distributions if d["n"]]
    minima = [d["min_ns"] for d in full if d.get("min_ns") is not None]
    maxima = [d["max_ns"] for d in full if d.get("max_ns") is not None]
    mean = sd = None
    sums = [d.get("sums") for d in full]
    # A value above 2.1 s is clamped in the sums, which are then not exact.
    if full and all(s and not s.get("clamped") for s in sums):
        n = sum(s["n"] for s in sums)
        s1 = sum(int(s["s1"]) for s in sums)
        s2 = sum(int(s["s2"]) for s in sums)
        if n:
            mean = s1 / n
        if n > 1:
            # Whole numbers until the last division: no digit is lost to cancellation.
            sd = math.sqrt((n * s2 - s1 * s1) / (n * (n - 1)))
    return {
        "n": sum(d["n"] for d in full),
        "min_ns": min(minima, default=None),
        "max_ns": max(maxima, default=None),
        "mean_ns": mean,
        "sd_ns": sd,
        "over_range": sum(d.get("over_range", 0) for d in full),
    }

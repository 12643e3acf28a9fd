# SPDX-License-Identifier: MIT OR Apache-2.0
"""The reader against vectors of the bucket layout, the documented example of each line type, and
files that are cut off or wrong."""

import io
import json
import math
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import tailbound  # noqa: E402

try:
    import pandas
except ImportError:
    pandas = None


def documented():
    """The example lines of docs/run-file.md, in their order."""
    text = (HERE.parent.parent / "docs" / "run-file.md").read_text(encoding="utf-8")
    lines = [l for l in text.splitlines() if l.startswith('{"type":')]
    return "".join(line + "\n" for line in lines).encode()


class Layout(unittest.TestCase):
    def test_vectors(self):
        seen = 0
        for line in (HERE / "fixtures" / "h2_vectors.txt").read_text().splitlines():
            if line.startswith("#"):
                continue
            value, g, index, low, width = map(int, line.split())
            self.assertEqual(tailbound.bucket_index(value, g), index, line)
            self.assertEqual(tailbound.bucket_bounds(index, g), (low, width), line)
            seen += 1
        self.assertGreater(seen, 20)

    def test_buckets_tile_the_range(self):
        for g in (5, 7, 10):
            nothing_left_out = 0
            for i in range((34 - g + 1) << g):
                low, width = tailbound.bucket_bounds(i, g)
                self.assertEqual(low, nothing_left_out)
                self.assertEqual(tailbound.bucket_index(low + width - 1, g), i)
                nothing_left_out = low + width
            self.assertEqual(nothing_left_out, 1 << 34)

    def test_wrong_buckets_are_refused(self):
        for index, g in ((-1, 10), (0, 0), (0, 40)):
            with self.assertRaises(ValueError):
                tailbound.bucket_bounds(index, g)


class Reading(unittest.TestCase):
    def setUp(self):
        self.run_ = tailbound.read(io.BytesIO(documented()))

    def test_every_documented_line_is_known(self):
        self.assertFalse(self.run_.cut_off)
        self.assertEqual(self.run_.unknown_lines, 0)
        self.assertEqual(self.run_.header["plan"]["interval_ns"], 200000)
        self.assertEqual(self.run_.lines("load")[0]["count"], 181200)

    def test_histogram(self):
        rows = self.run_.histogram_rows("wakeup")
        self.assertEqual(sum(r["count"] for r in rows), 3)
        self.assertEqual([r["early"] for r in rows], [True, False, False])
        self.assertEqual((rows[0]["low_ns"], rows[0]["width_ns"]), (40, 1))
        late = rows[2]
        self.assertTrue(late["low_ns"] <= 54000 < late["low_ns"] + late["width_ns"])
        self.assertEqual(len(self.run_.histogram_rows()), 6, "wakeup and due, nothing missed")
        with self.assertRaises(ValueError):
            self.run_.histogram_rows("all")

    def test_summary_is_exact(self):
        figures = self.run_.summary()["contexts"]["user"]["due"]
        self.assertEqual((figures["n"], figures["min_ns"], figures["max_ns"]), (3, -40, 54000))
        values = [-40, 3000, 54000]
        mean = sum(values) / 3
        sd = math.sqrt(sum((v - mean) ** 2 for v in values) / 2)
        self.assertAlmostEqual(figures["mean_ns"], mean)
        self.assertAlmostEqual(figures["sd_ns"], sd)

    def test_raw(self):
        self.assertEqual(list(self.run_.raw()[0]), [2875, 3120, -40])

    def test_rows(self):
        self.assertEqual(self.run_.seconds_rows()[0]["max_ns"], 61234)
        self.assertEqual(self.run_.exceedances_rows()[0]["error_ns"], 161234)
        self.assertEqual(self.run_.windows_rows()[0]["p99"], 9120.0)
        for block in self.run_.lines("block"):
            mine = [r["count"] for r in self.run_.blocks_rows() if r["second"] == block["second"]]
            self.assertEqual(sum(mine), block["n"])

    @unittest.skipIf(pandas is None, "pandas is not installed")
    def test_frames(self):
        frame = self.run_.histogram()
        self.assertEqual(list(frame.columns), tailbound.Run.HISTOGRAM)
        self.assertEqual(frame[frame.kind == "due"]["count"].sum(), 3)
        for name in ("seconds", "exceedances", "blocks", "windows"):
            frame = getattr(self.run_, name)()
            self.assertEqual(len(frame), len(getattr(self.run_, name + "_rows")()), name)

    @unittest.skipIf(pandas is not None, "pandas is installed")
    def test_without_pandas_the_error_says_what_to_do(self):
        with self.assertRaisesRegex(ImportError, "pip install pandas"):
            self.run_.histogram()


class Damage(unittest.TestCase):
    def test_cut_off_anywhere(self):
        whole = documented()
        header = whole.index(b"\n") + 1
        for at in range(header, len(whole) - 1, 7):
            run = tailbound.read(io.BytesIO(whole[:at]))
            self.assertTrue(run.cut_off)

    def test_what_is_wrong_is_said(self):
        whole = documented()
        header, rest = whole.split(b"\n", 1)
        later = header.replace(b"tailbound-run/1", b"tailbound-run/9")
        for data, words in (
            (b"", "empty"),
            (rest, "not a header"),
            (later + b"\n", "tailbound-run/9.*newer.*newer tailbound"),
            (header.replace(b"tailbound-run/1", b"tailbound-run/0") + b"\n", "older"),
            (header.decode().encode("utf-16-le") + b"\n\0", "UTF-16LE.*iconv"),
            (header.decode().encode("utf-16") + b"\n\0", "UTF-16LE.*iconv"),
            (header + b"\nrubbish\n" + rest, "line 2"),
            (header + b"\n[]\n", "line 2"),
        ):
            with self.assertRaisesRegex(tailbound.RunFileError, words):
                tailbound.read(io.BytesIO(data))

    def test_a_byte_order_mark_is_passed_over(self):
        whole = documented()
        run = tailbound.read(io.BytesIO(b"\xef\xbb\xbf" + whole))
        self.assertEqual(run.header, tailbound.read(io.BytesIO(whole)).header)

    def test_fields_and_words_of_a_later_version_are_kept(self):
        lines = [json.loads(l) for l in documented().splitlines()]
        for line in lines:
            line["later"] = {"x": [1]}
            for word in ("context", "ended", "reason", "impact", "outcome"):
                if word in line:
                    line[word] = "from-later"
        data = "\n".join(json.dumps(l) for l in lines).encode() + b"\n"
        run = tailbound.read(io.BytesIO(data))
        self.assertEqual(run.summary()["outcome"], "from-later")
        self.assertIn("from-later", run.summary()["contexts"])
        self.assertEqual(run.header["later"], {"x": [1]})
        self.assertEqual(len(run.histogram_rows()), 6)

    def test_unknown_lines_are_counted(self):
        header = documented().split(b"\n", 1)[0]
        run = tailbound.read(io.BytesIO(header + b'\n{"type":"later"}\n'))
        self.assertEqual(run.unknown_lines, 1)

    def test_the_last_record_of_a_thread_counts(self):
        lines = documented().splitlines(keepends=True)
        thread = next(l for l in lines if b'"type":"thread"' in l)
        first = json.loads(thread)
        first["ended"] = "running"
        data = lines[0] + json.dumps(first).encode() + b"\n" + thread
        run = tailbound.read(io.BytesIO(data))
        self.assertEqual([t["ended"] for t in run.threads], ["complete"])

    def test_missing_samples_are_an_error(self):
        lines = documented().splitlines(keepends=True)
        raw = next(json.loads(l) for l in lines if b'"type":"raw"' in l)
        for spoil in ({"n": 4}, {"from": 2}):
            data = lines[0] + json.dumps({**raw, **spoil}).encode() + b"\n"
            with self.assertRaisesRegex(tailbound.RunFileError, "raw samples"):
                tailbound.read(io.BytesIO(data)).raw()


if __name__ == "__main__":
    unittest.main()

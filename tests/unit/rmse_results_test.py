"""The tables of kernels/rmse/RESULTS.md say what the benchmark's JSON says.

Usage: rmse_results_test.py kernels/bench/rmse_results.py
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = ""


def case(name, dtype, shape, axes, cold, hot, outcome="measured"):
    """Medians in microseconds of a layout that the read rate would take 100 microseconds for."""
    modes = {m: {"median_s": us / 1e6, "share_of_limit": 100 / us} for m, us in (("cold", cold), ("hot", hot))}
    return {"group": "layouts", "name": name, "dtype": dtype, "shape": shape, "axes": axes, "outcome": outcome} | modes


def report(*cases):
    copies = {"group": "copies", "name": "read/1 GiB", "outcome": "measured"}
    return {"machine": {"gpu": "NVIDIA X"}, "limits_bytes_per_s": {"device read": 4.5e12}, "results": [copies, *cases]}


class Tables(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, content):
        path = Path(self.folder.name) / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, "-B", SCRIPT, *arguments], capture_output=True, text=True, check=False)

    def test_layouts_of_a_kind_share_a_row(self):
        first = self.file("1.json", report(case("rows/f32 2x9 over 0", "f32", [2, 9], [0], 200, 125),
                                           case("rows/f32 4x9 over 0", "f32", [4, 9], [0], 400, 1000)))
        second = self.file("2.json", report(case("one/u8 7", "u8", [7], [], 125, 50)))
        page = self.file("page.md", "before\n<!-- rmse_results: NVIDIA X -->\nstale\n<!-- end -->\nafter\n")
        ran = self.run_script(first, second, "--date", "2026-01-02", "--write", page)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        text = Path(page).read_text(encoding="utf-8")
        self.assertIn("\nNVIDIA X, 2026-01-02: 3 layouts.", text)
        self.assertIn("| rows, f32 over 0 | 2×9 · 4×9 | 50 · 25 | 80 · 10 | 200 · 400 | 125 · 1000 |\n", text)
        self.assertIn("| one segment | u8 7 | 80 | 200 | 125 | 50 |\n", text)
        self.assertNotIn("stale", text)
        self.assertTrue(text.startswith("before\n<!--") and text.endswith("<!-- end -->\nafter\n"))

    def test_what_lost_most_comes_first(self):
        names = [("a/f32 1", 100), ("a/f32 2", 100), ("a/f32 3", 100)]
        then = self.file("then.json", report(*(case(n, "f32", [1], [], us, us) for n, us in names)))
        now = self.file("now.json", report(case("a/f32 1", "f32", [1], [], 80, 80), case("a/f32 2", "f32", [1], [], 100.5, 100.5),
                                           case("a/f32 3", "f32", [1], [], 125, 125)))
        lines = self.run_script(now, "--before", then).stdout.splitlines()
        self.assertEqual(lines[2:4], ["| a f32 3 | 100.0 → 80.0 | 100.0 → 80.0 |", "| a f32 1 | 100.0 → 125.0 | 100.0 → 125.0 |"])
        self.assertEqual(lines[-1], "1 of 3 layouts moved by 1 point at most.")

    def test_what_cannot_be_compared_or_was_not_measured_is_an_error(self):
        good = self.file("good.json", report(case("a/f32 1", "f32", [1], [], 1, 1)))
        other = self.file("other.json", report(case("a/f32 2", "f32", [1], [], 1, 1)))
        failed = self.file("failed.json", report(case("a/f32 1", "f32", [1], [], 1, 1, outcome="failed")))
        page = self.file("page.md", "no marks\n")
        for arguments in ([good, "--before", other], [failed], [good, "--write", page]):
            self.assertEqual(self.run_script(*arguments).returncode, 1, arguments)


if __name__ == "__main__":
    SCRIPT = sys.argv.pop(1)
    unittest.main()

"""tilewire_kernel_bench as a program: exit codes, and files that other programs can read. Usage: ... PROGRAM"""
import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = sys.argv.pop(1)


def run(*words):
    # No GPU, also where there is one: timing on it is no unit test.
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="")
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False, env=environment, timeout=100)


def names(*words):
    done = run("--list", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class Program(unittest.TestCase):
    def test_list(self):
        found = names()
        self.assertEqual(len(found), len(set(found)), "names are unique")
        self.assertTrue(all(name.count("/") >= 2 for name in found))
        some = names("^host")
        self.assertTrue(some)
        self.assertTrue(set(some) < set(found) or set(some) == set(found))

    def test_bad_usage(self):
        for words in (["--nonsense"], ["("], ["no such case"], ["--device", "x"]):
            done = run(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertTrue(done.stderr, words)
            self.assertEqual(done.stdout, "", words)

    def test_gpu_cases_without_gpu(self):
        if not any(name.startswith("copies/") for name in names()):
            self.skipTest("built without CUDA")
        done = run("^copies/nothing")
        self.assertEqual(done.returncode, 3)
        self.assertIn("no GPU 0", done.stderr)
        self.assertIn("skipped: copies/nothing/empty kernel", done.stdout)

    def run_one_host_case(self, *options):
        """Runs one host case as briefly as can be; its name and the finished process."""
        wanted = names("^host_gaussian", "--threads", "1")[-1]
        escaped = "".join("\\" + c if c in "()[]{}.*+?^$|\\" else c for c in wanted)
        return wanted, run("^" + escaped + "$", "--max-runs", "2", "--max-time", "0", "--min-time", "0", "--threads", "1",
                           *options)

    def test_host_cases_and_their_files(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = {kind: os.path.join(folder, kind) for kind in ("json", "csv", "plot")}
            wanted, done = self.run_one_host_case(*[w for kind, path in paths.items() for w in ("--" + kind, path)])
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(paths["json"], encoding="utf-8") as file:
                results = json.load(file)["results"]
            with open(paths["csv"], encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            charts = [xml.etree.ElementTree.parse(os.path.join(paths["plot"], name)).getroot()
                      for name in os.listdir(paths["plot"])]
        full = ["/".join((r["group"], r["name"], r["implementation"])) for r in results]
        self.assertIn(wanted, full)
        result = results[full.index(wanted)]
        self.assertEqual(result["outcome"], "measured", result)
        self.assertGreater(result["hot"]["min_s"], 0)
        self.assertLessEqual(result["hot"]["min_s"], result["hot"]["median_s"])
        hot = [row for row in rows if row["name"] == result["name"] and row["mode"] == "hot"
               and row["implementation"] == result["implementation"]]
        self.assertEqual(len(hot), 1)
        self.assertAlmostEqual(float(hot[0]["median_s"]) / result["hot"]["median_s"], 1, places=6)
        self.assertTrue(charts)
        self.assertTrue(all(chart.tag == "{http://www.w3.org/2000/svg}svg" for chart in charts))
        self.assertIn("== " + result["group"] + " ==", done.stdout)

    def test_files_that_cannot_be_written(self):
        _, done = self.run_one_host_case("--json", "/nonexistent/results.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write /nonexistent/results.json", done.stderr)
        self.assertIn("== host", done.stdout, "the results are not lost")


if __name__ == "__main__":
    unittest.main()

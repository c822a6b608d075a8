"""load_peers.py and agree.py at sizes that measure nothing: shape of tables, files that other programs can read, and what
is said when a side is missing or differs. Usage: load_scripts_test.py FOLDER"""
import json
import os
import subprocess
import sys
import unittest

from scripts_test import FOLDER, HERE, PEERS, Scripts, run


class LoadPeers(Scripts):
    SMALL = ("--device", "cpu", "--size", "64KiB", "--connections", "1,2", "--callers", 2, "--seconds", 0.1, "--rounds", 2)

    def test_all_sides(self):
        done = run("load_peers.py", FOLDER, *self.SMALL, "--peers", self.file("peers.py", PEERS), "--json",
                   self.file("report.json"), "--markdown", self.file("table.md"), "--keep", self.file("kept"))
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(self.read("report.json"))
        self.assertEqual((report["version"], report["rounds"], report["size"], report["device"]), (1, 2, 65536, "cpu"))
        rows = {row["name"]: row for row in report["rows"]}
        self.assertEqual(list(rows)[:4], [
            "rmse, 2 x 64KiB, one caller, 1 connection", "rmse, 2 x 64KiB, one caller, 2 connections",
            "rmse, 2 x 64KiB, 2 callers", "transpose, 64KiB, one caller, 1 connection"])
        self.assertEqual(len(rows), 3 * 3 + 1)
        for name, row in rows.items():
            self.assertEqual((len(row["tilewire"]["rounds"]), row["failed"]), (2, []), name)
            self.assertGreater(row["tilewire"]["min"], 0)
            names = [cell["name"] for cell in row["beside"]]
            self.assertEqual("without overlap" in names, "one caller" in name, name)
            self.assertEqual("grpcio+cupy" in names, name.startswith("rmse"), name)
            self.assertEqual("flight+cupy (TCP)" in names, name.startswith("rmse, 2"), name)
        cells = {cell["name"]: cell for cell in rows["rmse, 2 x 64KiB, 2 callers"]["beside"]}
        self.assertAlmostEqual(cells["flight+cupy (unix)"]["ratio"], rows["rmse, 2 x 64KiB, 2 callers"]["tilewire"]["median"])
        small = rows["rmse, 4 KiB unary, p50"]
        self.assertAlmostEqual(small["beside"][0]["ratio"], 1250 / small["tilewire"]["median"])
        lines = [line for line in self.read("table.md").splitlines() if line.startswith("|")]
        self.assertEqual(len(lines), 2 + len(rows))
        kept = os.listdir(self.file("kept"))
        for name in ("study-rmse", "study-transpose", "study-gaussian-pdf", "run-rmse", "run-small"):
            self.assertIn(name + ".html", kept)
            self.assertEqual(json.loads(self.read(f"kept/{name}.json"))["schema"], "tilewire-load/1")

    def test_stopped_it_tells_what_it_has(self):
        words = [sys.executable, "-B", os.path.join(HERE, "load_peers.py"), FOLDER, *map(str, self.SMALL[:-1]), "1000", "--json",
                 self.file("report.json")]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            while not process.stderr.readline().startswith("round 2 of 1000"):
                self.assertIsNone(process.poll())
            process.terminate()
            said = process.communicate(timeout=250)[1]
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("stopped after 1 rounds", said)
        report = json.loads(self.read("report.json"))
        self.assertEqual(report["rounds"], 1)
        for row in report["rows"]:
            self.assertGreaterEqual(len(row["tilewire"]["rounds"]), 1, row["name"])

    def test_what_is_missing_is_named(self):
        done = run("load_peers.py", FOLDER, *self.SMALL[2:], "--device", "cuda:63", "--peers",
                   self.file("peers.py", "import no_module_of_this_name"), "--json", "-")
        self.assertEqual(done.returncode, 1, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        for row in rows:
            self.assertNotIn("tilewire", row)
            self.assertIn("ended with code", row["failed"][0])
        self.assertIn("no_module_of_this_name", rows[0]["beside"][0]["missing"])
        for words, named in ((["/nowhere"], "/nowhere"), ([FOLDER, "--size", "12"], "12"),
                             ([FOLDER, "--callers", 0], "--callers")):
            done = run("load_peers.py", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(named, done.stderr)


class Agree(Scripts):
    SMALL = ("--device", "cpu", "--callers", "1,3", "--rate", "60", "--seconds", 1, "--rounds", 2)

    def test_every_figure_stands_beside_anothers(self):
        done = run("agree.py", FOLDER, *self.SMALL, "--tolerance", 1e9, "--json", self.file("agree.json"), "--markdown",
                   self.file("agree.md"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = json.loads(self.read("agree.json"))
        self.assertEqual([setting["name"] for setting in report["settings"]],
                         ["closed loop, 1 caller", "closed loop, 3 callers", "60 calls a second"])
        for setting in report["settings"]:
            self.assertEqual(setting["counts"], [], "calls and bytes agree exactly")
            self.assertEqual([len(runs) for runs in setting["rounds"].values()], [2, 2])
            rows = {(row["name"], row["whose"]): row for row in setting["rows"]}
            for row in rows.values():
                self.assertGreater(row["other"], 0, row)
                self.assertIn("difference_percent", row)
            # Two ways to add the same times up: on this the machine has no say.
            kernel = rows["kernel at the server, us", "server's own, same runs"]
            self.assertLess(abs(kernel["difference_percent"]), 5)
            self.assertTrue(kernel["judged"])
        text = self.read("agree.md")
        for wanted in ("independent client", "latency p50, us", "agree exactly"):
            self.assertIn(wanted, text)

    def test_differences_are_told_by_the_exit_code(self):
        done = run("agree.py", FOLDER, "--device", "cpu", "--callers", 1, "--rate", 50, "--seconds", 0.5, "--rounds", 1,
                   "--tolerance", 0)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(" no ", done.stdout)

    def test_bad_usage(self):
        for words, named in ((["/nowhere"], "/nowhere"), ([FOLDER, "--rate", "0"], "'0'"), ([FOLDER, "--rounds", 0], "--rounds")):
            done = run("agree.py", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(named, done.stderr)


if __name__ == "__main__":
    unittest.main()

"""load_peers.py, price.py and agree.py at sizes that measure nothing: shape of tables, files that other programs can read, and what
is said when a side is missing or differs. Usage: load_scripts_test.py FOLDER"""
import json
import os
import signal
import subprocess
import sys
import types
import unittest
from unittest import mock

import agree
import price
from programs import Failure, find_program, reason
from scripts_test import FOLDER, HERE, PEERS, Scripts, run


class LoadPeers(Scripts):
    SMALL = ("--device", "cpu", "--size", "64KiB", "--connections", "1,2", "--callers", 2, "--seconds", 0.2, "--rounds", 2)

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

    def check_first_round(self):
        report = json.loads(self.read("report.json"))
        self.assertEqual(report["rounds"], 1)
        for row in report["rows"]:
            self.assertGreaterEqual(len(row["tilewire"]["rounds"]), 1, row["name"])
            self.assertEqual(row["failed"], [], row["name"])
            self.assertFalse(any(cell.get("missing") for cell in row["beside"]), row)
        self.assertIn("rmse, 4 KiB unary", self.read("table.md"))

    def test_nothing_is_lost_where_all_of_the_group_is_ended_and_nobody_listens(self):
        # Which program runs when the signal comes is chance.
        peers = self.file("peers.py", PEERS)
        words = [sys.executable, "-B", os.path.join(HERE, "load_peers.py"), FOLDER, *map(str, self.SMALL[:-1]), "1000",
                 "--peers", peers, "--json", self.file("report.json"), "--markdown", self.file("table.md")]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as process:
            while not (line := process.stderr.readline()).startswith("round 2 of 1000"):
                self.assertTrue(line, "it ended early")
            self.check_first_round()  # written before the end
            process.stderr.close()
            os.killpg(process.pid, signal.SIGTERM)
            self.assertEqual(process.wait(timeout=250), 0)
        self.check_first_round()

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


class Price(Scripts):
    def test_every_way_has_its_figures(self):
        done = run("price.py", FOLDER, "--device", "cpu", "--rounds", 1, "--turns", 1, "--seconds", 0.1, "--mib", "1,1", "--json",
                   self.file("price.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(self.read("price.json"))
        self.assertEqual(report["failed"], [])
        for row, ways in report["rows"].items():
            self.assertEqual(list(ways), list(price.WAYS), row)
            for way in ways.values():
                self.assertGreater(way["median"], 0)
                self.assertGreater(way["beside"], 0)
            self.assertEqual(ways["in clear"]["beside"], 1, row)
        self.assertIn("(", done.stdout)

    def test_chosen_ways_and_wrong_words(self):
        done = run("price.py", FOLDER, "--device", "cpu", "--ways", "in clear, all on;all off", "--rounds", 1, "--turns", 2, "--seconds", 0.1,
                   "--mib", "1,1", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        for ways in json.loads(done.stdout)["rows"].values():
            self.assertEqual([(way, len(cell["rounds"])) for way, cell in ways.items()], [("in clear, all on", 2), ("all off", 2)])
        self.assertEqual(run("price.py", FOLDER, "--mib", "1").returncode, 2)
        self.assertEqual(run("price.py", FOLDER, "--turns", 0).returncode, 2)
        done = run("price.py", FOLDER, "--ways", "in clear;in fog")
        self.assertEqual(done.returncode, 2)
        self.assertIn("in fog", done.stderr)
        self.assertEqual(run("price.py", "/nowhere").returncode, 1)

    def test_a_call_that_fails_leaves_the_others(self):
        options = types.SimpleNamespace(folder=FOLDER, device="cpu", ways=price.WAYS, rounds=1, turns=2, seconds=1, mib=[1, 2])
        table_head = "operation  calls  wrong  errors"

        def call(prices, _, row, __):
            if row == list(prices.scenarios)[1]:
                raise Failure(f"tilewire-load ended with code 1: {reason('', table_head + chr(10) + 'nothing was measured')}")
            return 2.0

        server = mock.MagicMock()
        server.return_value.__enter__.return_value.device = "cpu"
        server.return_value.__exit__.return_value = False
        with mock.patch.object(price, "Server", server), mock.patch.object(price.Price, "call", call):
            report = price.measure(options)
        self.assertEqual([[cell["rounds"] for cell in ways.values()] for ways in report["rows"].values()],
                         [[[2.0, 2.0]] * len(price.WAYS)])
        self.assertEqual(sorted(report["failed"]),
                         sorted(f"{way}: tilewire-load ended with code 1: nothing was measured" for way in price.WAYS))


class Agree(Scripts):
    SMALL = ("--device", "cpu", "--callers", "1,3", "--rate", "60", "--seconds", 0.25, "--rounds", 8, "--budget", 0)
    # Tells ten times the rate that it had.
    BOASTER = """#!/bin/sh
{load} "$@" || exit
for result; do :; done
{python} - "$result" <<'END'
import json, sys
with open(sys.argv[1]) as file:
    said = json.load(file)
said["total"]["calls_per_second"] *= 10
with open(sys.argv[1], "w") as file:
    json.dump(said, file)
END
"""

    def test_every_figure_stands_beside_anothers(self):
        done = run("agree.py", FOLDER, *self.SMALL, "--tolerance", 1e9, "--json", self.file("agree.json"), "--markdown",
                   self.file("agree.md"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = json.loads(self.read("agree.json"))
        self.assertEqual([setting["name"] for setting in report["settings"]],
                         ["closed loop, 1 caller", "closed loop, 3 callers", "60 calls a second"])
        for setting in report["settings"]:
            self.assertEqual(setting["counts"], [], "calls and bytes agree exactly")
            self.assertEqual([len(runs) for runs in setting["rounds"].values()], [8, 8])
            rows = {(row["name"], row["whose"]): row for row in setting["rows"]}
            for row in rows.values():
                self.assertGreater(row["other"], 0, row)
                low, high = row["interval_percent"]
                self.assertTrue(low <= row["difference_percent"] <= high, row)
            # Two ways to add the same times up: on this the machine has no say.
            kernel = rows["kernel at the server, us", "server's own, same runs"]
            self.assertLess(abs(kernel["difference_percent"]), 5)
            self.assertTrue(kernel["judged"])
        text = self.read("agree.md")
        for wanted in ("independent client", "latency p50, us", "agree exactly"):
            self.assertIn(wanted, text)

    def test_what_differs_or_is_not_known_is_told_by_the_exit_code(self):
        words = ("--device", "cpu", "--callers", 1, "--rate", 50, "--seconds", 0.2, "--budget", 0)
        for name in ("tilewired", "tilewire_independent_bench"):
            os.symlink(find_program(FOLDER, name), self.file(name))
        self.file("tilewire-load", self.BOASTER.format(load=find_program(FOLDER, "tilewire-load"), python=sys.executable))
        done = run("agree.py", self.folder.name, *words, "--rounds", 6)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(" differs ", done.stdout)
        done = run("agree.py", FOLDER, *words, "--rounds", 1, "--tolerance", 1e9)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn(" undecided ", done.stdout)

    def test_verdicts(self):
        row = {"judged": True, "difference_percent": 0.0, "interval_percent": (-5.0, 5.0)}
        for known, wanted in (((-5.0, 5.0), "agrees"), ((-5.1, 5.0), "undecided"), ((0.0, 5.1), "undecided"),
                              ((-9.0, 9.0), "undecided"), ((5.0, 9.0), "undecided"), (None, "undecided"),
                              ((5.1, 9.0), "differs"), ((-9.0, -5.1), "differs")):
            self.assertEqual(agree.verdict(row | {"interval_percent": known}, 5), wanted, known)
        self.assertEqual(agree.verdict({"judged": True}, 5), "undecided")
        self.assertEqual(agree.verdict(row | {"judged": False}, 5), "-")
        for verdicts, counts, code in ((["agrees", "-"], [], 0), (["agrees", "undecided"], [], 3),
                                       (["undecided", "differs"], [], 1), (["agrees", "undecided"], ["a byte too many"], 1)):
            settings = [{"rows": [{"verdict": verdict}], "counts": []} for verdict in verdicts]
            settings[0]["counts"] = counts
            self.assertEqual(agree.exit_code({"settings": settings}), code, verdicts)

    def test_no_more_rounds_than_the_budget_or_the_tolerance_ask_for(self):
        words = ("--device", "cpu", "--callers", 1, "--rate", 50, "--seconds", 0.2, "--rounds", 2, "--json",
                 self.file("agree.json"))
        for tolerance, budget in ((1e-9, 0), (1e9, 600)):
            done = run("agree.py", FOLDER, *words, "--tolerance", tolerance, "--budget", budget)
            self.assertIn(done.returncode, (0, 3), done.stderr)
            for setting in json.loads(self.read("agree.json"))["settings"]:
                rounds = setting["rounds"]
                if budget == 0:
                    self.assertEqual(len(rounds["load"]), 2)
                    continue
                self.assertGreaterEqual(len(rounds["load"]), 6)
                self.assertTrue(agree.settled(rounds, tolerance))
                self.assertFalse(agree.settled({side: runs[:-1] for side, runs in rounds.items()}, tolerance))

    def test_where_a_median_may_be(self):
        self.assertIsNone(agree.interval(range(5)))
        self.assertEqual(agree.interval([3, 1, 2, 6, 5, 4]), (1, 6))
        self.assertEqual(agree.interval(range(1, 9)), (1, 8))
        self.assertEqual(agree.interval(range(1, 10)), (2, 8))
        self.assertEqual(agree.interval(range(25, 0, -1)), (8, 18))
        self.assertEqual(agree.interval(range(1, 2001)), (956, 1045))
        rounds = {side: [{"calls_per_second": rate, "latency_us": {"p50": 100.0, "mean": 110.0}, "stages_us": {},
                          "server": {"calls_per_second": rate, "wall_us": 50.0}} for rate in rates]
                  for side, rates in (("load", (100.0, 101.0, 99.0) * 2), ("independent", (100.0,) * 6))}
        self.assertTrue(agree.settled(rounds, 2.1))
        self.assertFalse(agree.settled(rounds, 1.9))
        names = [row["name"] for row in agree.rows_of(rounds)]
        self.assertIn("latency p50, us", names)
        self.assertNotIn("latency p99, us", names, "nobody knows it")
        self.assertFalse(agree.settled({side: runs[1:] for side, runs in rounds.items()}, 1e9), "five tell nothing")

    def test_bad_usage(self):
        for words, named in ((["/nowhere"], "/nowhere"), ([FOLDER, "--rate", "0"], "'0'"), ([FOLDER, "--rounds", 0], "--rounds")):
            done = run("agree.py", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(named, done.stderr)


if __name__ == "__main__":
    unittest.main()

"""compare.py, sweep.py and tilewire_bench overload at sizes that measure nothing: shape of tables, files that other
programs can read, and what is said when a side is missing. Usage: scripts_test.py FOLDER"""
import csv
import io
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest

import programs

FOLDER = sys.argv.pop(1)
HERE = os.path.dirname(os.path.abspath(__file__))

PEERS = """
import sys
assert sys.argv[1:] == ["rpc"], sys.argv
print("flight+cupy rmse grpc://12 batch 512 KiB 0.25 GB/s result 1.0")
print("flight+cupy rmse grpc://12 batch 2048 KiB 0.50 GB/s result 1.0")
print("flight+cupy rmse grpc+unix batch 2048 KiB 1.00 GB/s result 1.0")
print("grpcio+cupy unary rmse 8 KiB 0.01 GB/s 1250 us")
print("grpcio+cupy unary rmse 1048576 KiB 0.75 GB/s 1400000 us")
"""
CEILINGS = """#!/bin/sh
cat <<'TEXT'
dev Some Device sm90
chunk        4 KiB  H2D 1.0  D2H 1.0  both(each) 1.0 GB/s
chunk     4096 KiB  H2D 50.0  D2H 51.0  both(each) 40.0 GB/s
launch+sync 7.5 us
rmse op 4 KiB x2: copy path 20.0 us, zero-copy path 10.0 us
TEXT
"""


def run(script, *words):
    return subprocess.run([sys.executable, "-B", os.path.join(HERE, script), *map(str, words)], capture_output=True,
                          text=True, check=False, timeout=250)


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, text=None):
        path = os.path.join(self.folder.name, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def read(self, name):
        with open(self.file(name), encoding="utf-8") as file:
            return file.read()


class Files(Scripts):
    def test_a_file_is_replaced_as_a_whole_and_links_to_it_stay(self):
        os.mkdir(self.file("elsewhere"))
        os.symlink(os.path.join("elsewhere", "report"), self.file("link"))
        for text in ("first", "second"):  # the link leads to nothing yet, then to a file
            programs.write_text(self.file("link"), text)
            self.assertTrue(os.path.islink(self.file("link")))
            self.assertEqual(self.read("elsewhere/report"), text + "\n")
        with open(self.file("elsewhere/report"), encoding="utf-8") as before:
            programs.write_text(self.file("link"), "third")
            self.assertEqual(before.read(), "second\n", "who reads meanwhile has all of the one before")
        self.assertEqual(os.listdir(self.file("elsewhere")), ["report"])

    def test_what_is_no_file_is_written_to(self):
        os.mkfifo(self.file("pipe"))
        reading = os.open(self.file("pipe"), os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reading)
        os.symlink("pipe", self.file("link"))
        programs.write_text(self.file("link"), "text")
        self.assertEqual(os.read(reading, 100), b"text\n")
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["link", "pipe"])
        with self.assertRaisesRegex(programs.Failure, "nowhere"):
            programs.write_text(self.file("nowhere/report"), "text")


class Server(Scripts):
    SERVER = """#!/bin/sh
echo "tilewired ready localhost:1 device=cpu"
echo "critical: out of luck" >&2
exec {end}
"""

    def run_server(self, end, code=None):
        with programs.Server(self.file("tilewired", self.SERVER.format(end=end)), []) as server:
            if code is not None:
                self.assertEqual(server.process.wait(60), code)
                raise programs.Failure("its client cannot connect")

    def test_one_that_died_is_told_instead_of_what_its_clients_say(self):
        with self.assertRaisesRegex(programs.Failure, "tilewired ended with code 3: critical: out of luck"):
            self.run_server("sh -c 'exit 3'", 3)
        with self.assertRaisesRegex(programs.Failure, "tilewired was killed by signal 6: critical: out of luck"):
            self.run_server("sh -c 'kill -ABRT $$'", -6)
        self.run_server("tail -f /dev/null")  # ended by whoever began it


class Compare(Scripts):
    SMALL = ("--device", "cpu", "--mib", 2, "--connections", "1,2", "--calls", 20, "--rounds", 2)

    def compare(self, *words):
        done = run("compare.py", FOLDER, *self.SMALL, "--json", self.file("report.json"), *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, json.loads(self.read("report.json"))

    def test_all_sides(self):
        text, report = self.compare("--peers", self.file("peers.py", PEERS), "--ceilings",
                                    self.file("ceilings", CEILINGS), "--markdown", self.file("table.md"))
        self.assertEqual((report["version"], report["rounds"], report["mib"], report["device"]), (1, 2, 2, "cpu"))
        rows = {row["name"]: row for row in report["rows"]}
        forms = ["1 connection", "2 connections"]
        self.assertEqual(list(rows), [f"rmse, 2 x 2 MiB, {form}" for form in forms] + ["rmse, 4 KiB unary"] +
                         [f"{name}, 2 MiB, {form}" for name in ("transpose", "gaussian-pdf") for form in forms])
        for row in rows.values():
            ours = row["tilewire"]
            self.assertEqual((len(ours["rounds"]), row["failed"]), (2, []))
            self.assertTrue(0 < ours["min"] <= ours["median"] <= ours["max"], row)
            for cell in row["beside"]:
                self.assertNotIn("missing", cell)
                better = ours["median"] / cell["median"] if row["better"] == "more" else cell["median"] / ours["median"]
                self.assertAlmostEqual(cell["ratio" if cell["kind"] == "peer" else "share"], better)
        beside = {name: {cell["name"]: cell["median"] for cell in row["beside"]} for name, row in rows.items()}
        self.assertEqual(list(beside["rmse, 2 x 2 MiB, 2 connections"]), [
            "raw gRPC sink", "flight+cupy (TCP)", "flight+cupy (unix)", "grpcio+cupy", "PCIe in"])
        self.assertEqual(beside["rmse, 2 x 2 MiB, 1 connection"]["flight+cupy (TCP)"], 0.5)
        self.assertEqual(beside["rmse, 4 KiB unary"]["grpcio+cupy"], 1250)
        self.assertEqual(beside["rmse, 4 KiB unary"]["device, 4 KiB"], 20)
        self.assertNotIn("flight+cupy (TCP)", beside["rmse, 4 KiB unary"])
        self.assertEqual(beside["transpose, 2 MiB, 1 connection"], {"PCIe, both ways": 40})
        for wanted in [*rows, "0.500 (x", "under 5 rounds"]:
            self.assertIn(wanted, text)
        self.assertNotIn("missing", text)
        lines = [line for line in self.read("table.md").splitlines() if line.startswith("|")]
        self.assertEqual(len(lines), 2 + len(rows))
        self.assertEqual({line.count("|") for line in lines}, {lines[0].count("|")})

    def missing(self, report, name):
        return [cell["missing"] for row in report["rows"] for cell in row["beside"] if cell["name"] == name]

    def test_sides_that_cannot_run_are_named_and_the_rest_goes_on(self):
        text, report = self.compare("--peers", self.file("peers.py", "import no_module_of_this_name"), "--ceilings",
                                    self.file("ceilings", "#!/bin/sh\necho no CUDA-capable device is detected\nexit 1\n"))
        for reason in self.missing(report, "peers.py") + ["peers.py ended with code 1: ModuleNotFoundError: "
                                                          "No module named 'no_module_of_this_name'"]:
            self.assertIn("No module named 'no_module_of_this_name'", reason)
            self.assertIn(reason, text)
        self.assertEqual(len(self.missing(report, "peers.py")), 3, "one for each RMSE row")
        self.assertEqual(set(self.missing(report, "PCIe in")),
                         {"ceilings ended with code 1: no CUDA-capable device is detected"})
        self.assertIn("missing [1]", text)
        self.assertTrue(all("tilewire" in row for row in report["rows"]))

    def test_what_a_peer_script_says_before_it_ends_counts(self):
        _, report = self.compare("--peers", self.file("peers.py", PEERS + "raise SystemExit('no GPU left')"), "--ceilings",
                                 self.file("broken.cu", "this is no CUDA"))
        row = report["rows"][0]
        cells = {cell["name"]: cell for cell in row["beside"]}
        self.assertEqual(cells["flight+cupy (TCP)"]["median"], 0.5)
        self.assertEqual(cells["peers.py"]["missing"], "peers.py ended with code 1: no GPU left")
        self.assertIn("nvcc", cells["PCIe in"]["missing"])  # not there, or not content

    def test_no_server_no_rows(self):
        done = run("compare.py", FOLDER, *self.SMALL[2:], "--device", "cuda:63", "--json", "-")
        self.assertEqual(done.returncode, 1, done.stderr)
        for row in json.loads(done.stdout)["rows"]:
            self.assertNotIn("tilewire", row)
            self.assertEqual(len(row["failed"]), 2)
            self.assertIn("ended with code", row["failed"][0])
        self.assertIn("round 2 of 2", done.stderr)

    def test_bad_usage(self):
        for words, named in ((["/nowhere"], "/nowhere"), ([FOLDER, "--rounds", 0], "--rounds"), ([], "folder"),
                             ([FOLDER, "--connections", "1,x"], "1,x"), ([FOLDER, "--connections", "0"], "'0'")):
            done = run("compare.py", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(named, done.stderr)


class Sweep(Scripts):
    SMALL = ("--device", "cpu", "--rounds", 2, "--connections", "1,2", "--mib", "1,2", "--lanes", "1,2")

    def test_every_setting_is_measured_and_the_best_is_told(self):
        done = run("sweep.py", FOLDER, *self.SMALL, "--blocks", "64KiB,256KiB", "--operation", "rmse,transpose", "--json",
                   self.file("sweep.json"), "--csv", self.file("sweep.csv"), "--markdown", self.file("sweep.md"))
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(self.read("sweep.json"))
        self.assertEqual((report["version"], report["rounds"], report["device"]), (1, 2, "cpu"))
        self.assertEqual(len(report["cells"]), 2 * 2 * 2 * 8)
        self.assertEqual(len(report["best"]), 8)
        for cell in report["cells"]:
            self.assertNotIn("error", cell)
            self.assertTrue(0 < cell["gb_per_s_min"] <= cell["gb_per_s"] <= cell["gb_per_s_max"])
            self.assertGreater(cell["wall_us"], 0)
        for entry in report["best"]:
            rates = {(c["block_bytes"], c["lanes"], c["overlap"]): c["gb_per_s"] for c in report["cells"]
                     if all(c[key] == entry[key] for key in ("operation", "mib", "connections"))}
            self.assertEqual(len(rates), 8)
            self.assertEqual(entry["gb_per_s"], max(rates.values()))
            on, off = (rates[entry["block_bytes"], entry["lanes"], word] for word in ("on", "off"))
            self.assertAlmostEqual(entry["overlap_gain"], on / off)
        rows = list(csv.DictReader(io.StringIO(self.read("sweep.csv"))))
        self.assertEqual([float(row["gb_per_s"]) for row in rows], [cell["gb_per_s"] for cell in report["cells"]])
        lines = [line for line in done.stdout.splitlines() if " conn." in line]
        self.assertEqual(len(lines), 8)
        for line in lines:
            self.assertGreaterEqual(line.count("*"), 1)
        self.assertEqual(self.read("sweep.md").count("\n|"), 10)

    def test_refused_settings_are_named_and_the_rest_goes_on(self):
        done = run("sweep.py", FOLDER, "--device", "cpu", "--rounds", 1, "--connections", 1, "--mib", 1, "--lanes", 1,
                   "--blocks", "5000,64KiB", "--overlap", "on", "--json", self.file("sweep.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        refused, measured = json.loads(self.read("sweep.json"))["cells"]
        self.assertIn("--block-bytes", refused["error"])
        self.assertIn("ended with code 2", refused["error"])
        self.assertIn(refused["error"], done.stdout)
        self.assertGreater(measured["gb_per_s"], 0)
        nothing = run("sweep.py", FOLDER, "--device", "cpu", "--rounds", 1, "--blocks", "5000", "--mib", 1)
        self.assertEqual(nothing.returncode, 1)

    def test_bad_usage(self):
        for words, named in ((["/nowhere"], "/nowhere"), ([FOLDER, "--operation", "mean"], "rmse, transpose"),
                             ([FOLDER, "--rounds", 0], "--rounds"), ([FOLDER, "--lanes", "0"], "'0'"),
                             ([FOLDER, "--rounds", 1, "--mib", 1, "--connections", 1, "--lanes", 1, "--csv", "/nowhere/x"],
                              "/nowhere/x")):
            done = run("sweep.py", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(named, done.stderr)


class Overload(Scripts):
    WORDS = (os.path.join(FOLDER, "tilewire_bench"), "--device", "cpu", "overload", "--mib", "4", "--clients", "4", "--connections",
             "60", "--bulk", "1", "--small", "1")  # who stalls is waited for: a phase takes more than a second

    def test_every_phase_keeps_its_bounds(self):
        done = subprocess.run([*self.WORDS, "--json"], capture_output=True, text=True, check=False, timeout=250)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        rows = {row["name"]: row for row in report["rows"]}
        self.assertEqual(list(rows), ["push", "crowd", "full"])
        self.assertEqual([row["bulk_right"] for row in rows.values()], [2, 3, 1])
        self.assertEqual([(row["stalled"], row["broken"], row["cut"]) for row in rows.values()],
                         [(2, 0, 0), (60, 0, 0), (60, 0, 0)])
        self.assertIn("all within bounds", report["notes"][-1])

    def test_stopped_it_ends_its_servers_and_tells_what_it_has(self):
        with subprocess.Popen(self.WORDS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while not (line := process.stdout.readline()).startswith("push "):
                self.assertTrue(line, "a row is told when its phase is done")
            process.terminate()
            told, said = process.communicate(timeout=250)
        self.assertEqual(process.returncode, 1, told + said)
        self.assertIn("stopped: ", told)
        self.assertIn("NOT within bounds", told)

    def test_the_time_that_it_may_take_ends_it(self):
        done = subprocess.run([*self.WORDS, "--phases", "crowd", "--seconds", "1"], capture_output=True, text=True, check=False,
                              timeout=250)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("stopped: ", done.stdout)


class Wire(Scripts):
    def test_by_unix_sockets(self):
        words = (os.path.join(FOLDER, "tilewire_bench"), "--device", "cpu", "wire", "--unix", "--mib", "4", "--rounds", "1", "--connections", "2")
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=250)
        self.assertEqual(done.returncode, 0, done.stderr)
        path = re.search(r"ready unix:(\S+)", done.stdout)[1]
        self.assertEqual(len(re.findall(r"[1-9][0-9.]* GB/s", done.stdout)), 3, done.stdout)
        self.assertFalse(os.path.exists(os.path.dirname(path)), "its sockets go with it")


class Fair(Scripts):
    def test_every_round_is_told(self):
        words = (os.path.join(FOLDER, "tilewire_bench"), "--device", "cpu", "--json", "fair", "--kib", "64", "--greedy", "4", "--others",
                 "2", "--calls", "2", "--rounds", "1", "--server", "--max-in-flight-per-identity", "--server", "1")
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=250)
        report = json.loads(done.stdout)
        self.assertEqual([row["name"] for row in report["rows"]], ["round 1", "median"], done.stderr)
        self.assertEqual(report["rows"][0]["greedy_failed"], 0)
        within = "NOT" not in report["notes"][-1]  # a matter of time, which is nobody's here
        self.assertEqual(done.returncode, 0 if within else 1)


if __name__ == "__main__":
    unittest.main()

"""D5: three times the calls that a server can do, open loop, with deadlines of a second: what is still done in time.

    excess.py TILEWIRED TILEWIRE [--haproxy] [--report] [--scale N]

TILEWIRE has tilewire-load beside it. Server and proxy have half of the processors, the load the others. Resident arrays, so
that a call costs many refusals; `tilewire_bench excess` is the measurement of all kinds. --scale makes the excess longer.
"""
import json
import os
import subprocess
import tempfile
import unittest

from attacked import OPTIONS, honest_calls, main, row, serving

VALUES = 16 << 20  # f32, of each of two arrays
TIMES = 3
KEPT = 0.1        # of what a closed loop gets, at least: a busy machine gives figures that differ twofold


class Excess(unittest.TestCase):
    def load(self, server, mode, seconds):
        scenario = {"name": "excess", "mode": mode, "warmup_seconds": 0.5, "seconds": seconds, "timeout_seconds": 1, "inputs": 1,
                    "operations": [{"operation": "rmse", "name": "rmse", "shape": [VALUES], "access": "resident", "resident": "all"}]}
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("scenario.json", "result.json")]
            with open(paths[0], "w", encoding="utf-8") as file:
                json.dump(scenario, file)
            program = os.path.join(os.path.dirname(OPTIONS.tilewire), "tilewire-load")
            done = subprocess.run([program, "run", paths[0], "--server", server.address, "--json", paths[1]],
                                  capture_output=True, text=True, check=False)
            self.assertIn(done.returncode, (0, 1), done.stderr)  # 1: some calls were not answered
            self.assertTrue(os.path.exists(paths[1]), done.stderr + done.stdout)
            with open(paths[1], encoding="utf-8") as file:
                total = json.load(file)["total"]
        self.assertEqual(total["wrong"], 0)
        return total["good"] / seconds, total["errors"]

    def test_three_times_what_it_can_do(self):
        cores = sorted(os.sched_getaffinity(0))
        self.addCleanup(os.sched_setaffinity, 0, cores)
        half = (len(cores) + 1) // 2
        os.sched_setaffinity(0, cores[:half])
        with serving(device_bytes="512MiB") as server:
            os.sched_setaffinity(0, cores[half:] or cores)
            best, _ = self.load(server, {"type": "closed", "callers": 32}, 2)
            with honest_calls(server) as pings:
                mode = {"type": "open", "arrivals": "poisson", "rate": TIMES * best, "callers": 2048}
                good, errors = self.load(server, mode, 4 * OPTIONS.scale)
            back = server.back()
            self.assertIsNotNone(back, "who comes afterwards")
            row(f"D5 {TIMES}×, {100 * good / best:.0f}% of {best:.0f}/s kept", server, pings, back)
            if OPTIONS.report:
                print(f"D5: {best:.0f} calls a second; at {TIMES} times that {good:.0f} good; others: {errors}; "
                      f"{server.metric('tilewire_connections_ended_total'):.0f} connections ended")
            self.assertGreater(good, KEPT * best, errors)
            self.assertEqual(server.end(), 0, server.log)


if __name__ == "__main__":
    main("excess.py")

"""Long runs, several at once: campaigns and fuzzers from a folder of programs, each with a seed of its own, and a table of what they did.

    long.py FOLDER OUT [--seconds N] [--jobs N] [--seed N] [--device cpu|cuda] [--campaigns A,B] [--fuzzers A,B] [--stubs FOLDER]
    long.py --sum OUT...

FOLDER has bin/ and, for the seeds of fuzzers, share/corpus/ (carry.sh makes such a one) or tests/corpus/ (a build folder). OUT gets
NAME-SEED/ for each: its log, its corpus, its findings; and a line of runs.jsonl, from which --sum adds up what several runs gathered.
With more programs than jobs each has a part of the time. Exit code: 1 where anything was found.
"""
import argparse
import collections
import glob
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

from memory import MIB, quarters, slope

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = os.path.join(HERE, "..", "fuzz", "corpus")
# Without those that end the server, whose memory is then told over the whole time.
STAYING = "kill_clients,stop_clients,stop_server,certificates,tokens,policy,full_disk,few_descriptors,clock_jumps"
CAMPAIGNS = {"all": [], "rotation": ["--only", "rotation"], "staying": ["--only", STAYING]}
LATE = 100     # seconds after its time until a program is ended, which is a finding
LAST = 20      # seconds to end in when told to
FOUND = ("crash-*", "leak-*", "oom-*", "timeout-*")
NO_LEAKS = ("LeakSanitizer has encountered a fatal error", "LeakSanitizer does not work")


class Job:
    """One program with a seed, in a folder of its own."""

    def __init__(self, name, seed, options, leaks):
        self.name, self.seed, self.options, self.leaks = name, seed, options, leaks
        self.folder = os.path.join(options.out, f"{name}-{seed}")
        self.points, self.problems = [], []

    def run(self, seconds, over):
        os.makedirs(os.path.join(self.folder, "corpus"), exist_ok=True)
        command, environment = self.command(seconds)
        begin = time.monotonic()
        with open(self.log(), "wb") as log:
            process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                       env=environment)
            ended = self.watch(process, begin + seconds + LATE, over)
        if not ended:
            self.problems.append("ended before its time" if over.is_set() else f"not over {LATE} s after its time")
        return self.told(time.monotonic() - begin, process.returncode)

    def watch(self, process, until, over):
        """Until it ends by itself; whether it did."""
        while True:
            try:
                process.wait(timeout=1)
                return True
            except subprocess.TimeoutExpired:
                self.sample(process.pid)
            if over.is_set() or time.monotonic() > until:
                break
        process.terminate()
        try:
            process.wait(timeout=LAST)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return False

    def sample(self, pid):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii") as status:
                self.points.append((time.monotonic(), int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) * 1024))
        except (OSError, AttributeError):
            return  # it has just ended

    def log(self):
        return os.path.join(self.folder, "log")

    def row(self, seconds, executions, first, last, rate):
        return {"program": self.name, "seed": self.seed, "seconds": round(seconds, 1), "executions": executions,
                "findings": len(self.problems), "problems": self.problems, "first_mib": round(first / MIB, 1),
                "last_mib": round(last / MIB, 1), "mib_a_minute": round(rate, 3)}


class Fuzzer(Job):
    def command(self, seconds):
        own = [folder for folder in (os.path.join(self.options.folder, "share", "corpus", self.name),
                                     os.path.join(self.options.folder, "tests", "corpus", self.name),
                                     os.path.join(SEEDS, self.name)) if os.path.isdir(folder)][:1]
        program = os.path.join(self.options.folder, "bin", "fuzz_" + self.name)
        environment = dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=16" + ("" if self.leaks else ":detect_leaks=0"))
        return [program, "-max_len=4096", "-timeout=120", "-rss_limit_mb=4096", f"-max_total_time={seconds:.0f}", f"-seed={self.seed}",
                f"-detect_leaks={int(self.leaks)}", "-print_final_stats=1", "-artifact_prefix=./", "corpus", *own], environment

    def told(self, seconds, code):
        with open(self.log(), encoding="utf-8", errors="replace") as file:
            text = file.read()
        done = re.findall(r"stat::number_of_executed_units: *(\d+)", text) or re.findall(r"^#(\d+)\t", text, re.MULTILINE)
        found = sorted(os.path.basename(path) for pattern in FOUND for path in glob.glob(os.path.join(self.folder, pattern)))
        self.problems += found or ([f"exit code {code}"] if code and not self.problems else [])
        return self.row(seconds, int(done[-1]) if done else 0, *quarters(self.points), slope(self.points))


class Campaign(Job):
    def command(self, seconds):
        bin_folder = os.path.join(self.options.folder, "bin")
        stubs = ["--stubs", self.options.stubs] if self.options.stubs else []
        only = CAMPAIGNS.get(self.kind()) if self.kind() in CAMPAIGNS else ["--only", self.kind().replace("+", ",")]
        return [sys.executable, "-B", os.path.join(HERE, "campaign.py"), os.path.join(bin_folder, "tilewired"),
                os.path.join(bin_folder, "tilewire"), "--report", "--seconds", str(seconds), "--seed", str(self.seed), "--device",
                self.options.device, "--json", "told.json", *stubs, *only], dict(os.environ)

    def kind(self):
        return self.name.partition(":")[2]

    def told(self, seconds, code):
        if code and not self.problems:
            with open(self.log(), encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file if line.strip()]
            self.problems.append(f"exit code {code}: {lines[-1][:300] if lines else ''}")
        try:
            with open(os.path.join(self.folder, "told.json"), encoding="utf-8") as file:
                said = json.load(file)
        except OSError:
            return self.row(seconds, 0, 0, 0, 0)
        longest = max(said["lives"], key=lambda life: life["seconds"], default={"first": 0, "last": 0, "slope": 0})
        return self.row(seconds, said["calls"], longest["first"], longest["last"], longest["slope"])


def leaks_can_be_found(folder, fuzzers):
    """Not where nobody may look into a process (some containers): then fuzzers run without, and that is said."""
    if not fuzzers:
        return True
    done = subprocess.run([os.path.join(folder, "bin", "fuzz_" + fuzzers[0]), "-runs=1"], capture_output=True, text=True, check=False)
    able = not any(words in done.stderr for words in NO_LEAKS)
    if not able:
        print("no leaks are looked for: LeakSanitizer does not work here; memory that grows still shows in the table")
    return able


def chosen(options):
    """The jobs, each with a seed of its own."""
    there = sorted(os.path.basename(path)[len("fuzz_"):] for path in glob.glob(os.path.join(options.folder, "bin", "fuzz_*")))
    fuzzers = there if options.fuzzers == "all" else [name for name in options.fuzzers.split(",") if name]
    assert set(fuzzers) <= set(there), f"--fuzzers: {', '.join(there) or 'none is there'}"
    campaigns = [name for name in options.campaigns.split(",") if name]
    leaks = leaks_can_be_found(options.folder, fuzzers)
    jobs = [Campaign("campaign:" + name, options.seed + i, options, leaks) for i, name in enumerate(campaigns)]
    return jobs + [Fuzzer(name, options.seed + i, options, leaks) for i, name in enumerate(fuzzers)]


def run_all(jobs, options, over):
    """Rows, in the order in which the programs end."""
    waiting, rows, lock = collections.deque(jobs), [], threading.Lock()
    rounds = -(-len(jobs) // options.jobs)
    seconds = options.seconds / max(1, rounds)

    def work():
        while waiting and not over.is_set():
            try:
                job = waiting.popleft()
            except IndexError:
                return
            row = job.run(seconds, over)
            with lock, open(os.path.join(options.out, "runs.jsonl"), "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
                rows.append(row)
    workers = [threading.Thread(target=work) for _ in range(min(options.jobs, len(jobs)))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return rows


def table(rows):
    print("| program | seed | seconds | executions | findings | RSS, first quarter, MiB | last quarter | MiB a minute |")
    print("|---|---|---|---|---|---|---|---|")
    for row in sorted(rows, key=lambda row: (row["program"], str(row["seed"]))):
        print(f"| {row['program']} | {row['seed']} | {row['seconds']:.0f} | {row['executions']} | {row['findings']} | "
              f"{row['first_mib']} | {row['last_mib']} | {row['mib_a_minute']:+.2f} |")
    for row in rows:
        for problem in row["problems"]:
            print(f"{row['program']}, seed {row['seed']}: {problem}")


def add_up(folders):
    """One row a program: all its runs together, and the steepest memory of them."""
    rows = []
    for folder in folders:
        with open(os.path.join(folder, "runs.jsonl"), encoding="utf-8") as file:
            rows += [json.loads(line) for line in file]
    sums = []
    for name in sorted({row["program"] for row in rows}):
        of = [row for row in rows if row["program"] == name]
        steepest = max(of, key=lambda row: row["last_mib"] - row["first_mib"])
        sums.append(dict(steepest, seed=f"{len(of)} runs", seconds=sum(row["seconds"] for row in of), executions=sum(row["executions"] for row in of),
                         findings=sum(row["findings"] for row in of), problems=[problem for row in of for problem in row["problems"]]))
    table(sums)
    return sums


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=os.path.abspath, nargs="?")
    parser.add_argument("out", type=os.path.abspath, nargs="?")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--campaigns", default="all,rotation,staying")
    parser.add_argument("--fuzzers", default="all")
    parser.add_argument("--stubs", type=os.path.abspath)
    parser.add_argument("--sum", nargs="+")
    options = parser.parse_args()
    if options.sum:
        sys.exit(any(row["findings"] for row in add_up(options.sum)))
    if not options.out:
        parser.error("FOLDER and OUT are missing")
    os.makedirs(options.out, exist_ok=True)
    share = os.path.join(options.folder, "share", "stubs")
    options.stubs = options.stubs or (share if os.path.isdir(share) else None)
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    jobs = chosen(options)
    rows = run_all(jobs, options, over)
    table(rows)
    sys.exit(len(rows) < len(jobs) or any(row["findings"] for row in rows))


if __name__ == "__main__":
    main()

"""What the measuring scripts of this folder share: finding and running Tilewire's programs, arrays in files, tables.

Only the standard library: the scripts run wherever the bundle runs.
"""
import json
import math
import os
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile


class Failure(Exception):
    """Something that could not be measured, and why."""


PLACES = (".", "bin", "server", "client", "tests", "kernels")  # a bundle, or a build folder


def find_program(folder, name):
    """The path of a program in a bundle or build folder; Failure names where it was looked for."""
    for place in PLACES:
        path = os.path.join(folder, place, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    raise Failure(f"no program {name} in {folder} (nor in its {', '.join(PLACES[1:])})")


def reason(*texts):
    """What a failed program ended with: the last line that speaks of an error, else the last one that says something."""
    for text in texts:
        lines = [line.strip() for line in (text or "").splitlines() if line.strip() and "--help" not in line]
        if lines:
            return next((line for line in reversed(lines) if re.search(r"\berror\b", line, re.IGNORECASE)), lines[-1])
    return "it said nothing"


def run(command, timeout, environment=None):
    """The stdout of a program; Failure says how it ended, with what it had printed as `partial`."""
    name = os.path.basename(command[0])
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=environment,
                              stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Failure(f"{name}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{name}: not done after {timeout:g} s") from error
    if done.returncode != 0:
        failure = Failure(f"{name} ended with code {done.returncode}: {reason(done.stderr, done.stdout)}")
        failure.partial = done.stdout
        raise failure
    return done.stdout


class Server:
    """A tilewired on a loopback port of its own; a context manager that ends it by its process."""

    def __init__(self, program, flags):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([program, "--listen", "localhost:0", "--log-level", "error", *flags],
                                        stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL, text=True)
        try:
            self.ready = self.process.stdout.readline().strip()
        except BaseException:  # Ctrl-C: nobody else knows of it yet
            self.close()
            raise
        found = re.match(r"tilewired ready (\S+) device=(.*)$", self.ready)
        if not found:
            self.process.wait(60)
            message = self.end()
            self.close()
            raise Failure(message)
        self.address, self.device = found.groups()

    def end(self):
        """How a server that nobody stopped has ended; None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        self.log.seek(0)
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"tilewired {how}: {reason(self.log.read())}"

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, exception, trace):
        # What its clients say of a server that died hides the cause.
        end = None if exception is not None and not isinstance(exception, Failure) else self.end()
        self.close()
        if end:
            raise Failure(end) from exception


def call(tilewire, address, words, timeout):
    """One call by the command line client: its JSON. client_wall_us leaves out starting the program."""
    return json.loads(run([tilewire, "--server", address, "--json", *map(str, words)], timeout))


def scratch_folder():
    """A temporary folder in memory where there is room for one, so that files cost no disk."""
    memory = "/dev/shm"
    return tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None, prefix="tilewire-")


def write_npy(path, rows, columns, seed):
    """An f32 array of rows × columns: random finite values in [0, 1), a mebibyte of them over and over."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    header = header.ljust((10 + len(header) + 64) // 64 * 64 - 11) + "\n"
    chooser = random.Random(seed)
    piece = b"".join(struct.pack("<f", chooser.random()) for _ in range(1 << 18))
    left = rows * columns * 4
    try:
        with open(path, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            while left > 0:
                left -= file.write(piece[:left])
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error


def matrix_shape(mebibytes):
    """Rows and columns of an f32 matrix of so many MiB, as square as powers of two go."""
    elements = mebibytes << 18
    columns = 1 << int(math.log2(elements) / 2)
    return elements // columns, columns


def spread(values):
    """Median and extremes, with the values that they come from."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "rounds": list(values)}


def figures(value):
    """Three figures, as people read them: 3.61, 36.1, 361, 3610."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.{max(0, 2 - int(math.floor(math.log10(abs(value)))))}f}"


def table(head, rows, markdown=False):
    """Cells of text as lines: a Markdown table, or columns padded to their width (the first one to the left)."""
    if markdown:
        lines = [head, ["---"] * len(head), *rows]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in [head, *rows])


def tell(text, stream=None):
    """A line for whoever reads stderr, or another stream. Where nobody does any more, the measurement goes on."""
    stream = stream or sys.stderr
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # else Python says so once more when it ends


def write_text(path, text):
    """To a file, or to stdout for "-". A file is there whole: who is killed meanwhile leaves the one before. Links stay."""
    if path == "-":
        tell(text, sys.stdout)
        return
    place = os.path.realpath(path)
    whole = os.path.isfile(path) or not os.path.exists(path)  # a device or a pipe cannot be replaced
    beside = place + ".part" if whole else path
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        if whole:
            os.replace(beside, place)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error


def add_common_options(parser, rounds=5):
    """What every script that makes a report takes; report_of() heeds --json and --markdown."""
    parser.add_argument("--device", default="auto", help="of tilewired (default: auto)")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"default: {rounds}")
    parser.add_argument("--json", metavar="FILE", help="write the report there (-: stdout, instead of the table)")
    parser.add_argument("--markdown", metavar="FILE", help="write the table there (-: stdout, instead of the text)")


def write_report(options, report, render, to_stdout=True):
    """The files that --json and --markdown name; and what they want on stdout."""
    if options.json and (to_stdout or options.json != "-"):
        write_text(options.json, json.dumps(report, indent=1))
    if options.markdown and (to_stdout or options.markdown != "-"):
        write_text(options.markdown, render(report, markdown=True))


def report_of(options, measure, render):
    """What measure(options) finds, written as JSON, Markdown or, where neither goes to stdout, as text. None where that
    failed, which then has been said."""
    try:
        report = measure(options)
        write_report(options, report, render)
    except Failure as failure:
        tell(f"error: {failure}")
        return None
    if "-" not in (options.json, options.markdown):
        tell(render(report, markdown=False), sys.stdout)
    return report


def numbers(text):
    """A list of whole numbers of at least 1, separated by commas: an argparse type."""
    values = [int(word) for word in text.split(",")]
    if min(values) < 1:
        raise ValueError(text)
    return values

"""A container engine of one test run: its stores and names are its own and are removed with it."""
import atexit
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

SKIPPED = 77  # what CTest counts as skipped
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STOP_SECONDS = 60  # before podman kills what does not stop: the exit code tells, no test waits for it


def require(*programs):
    """Ends the test as skipped where it cannot run, and says why."""
    reason = _missing(programs)
    if reason:
        print(f"skipped: {os.path.basename(sys.argv[0])} {reason}")
        sys.exit(SKIPPED)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was started is cleaned up then, too


def _missing(programs):
    for program in programs:
        if shutil.which(program) is None:
            return f"needs {program} (deploy/install-deps.sh --image installs it)"
    if os.geteuid() != 0:
        return "needs root: it mounts, changes users and drops capabilities"
    namespaces = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "true"]
    if subprocess.run(namespaces, capture_output=True, check=False).returncode != 0:
        return "needs namespaces, which this machine does not allow"
    return None


def _limits():
    """Limits that podman need not raise: it would have to be more than root in a container for that."""
    for name, limit, enough in (("nofile", resource.RLIMIT_NOFILE, 20000), ("nproc", resource.RLIMIT_NPROC, 4096)):
        hard = resource.getrlimit(limit)[1]
        value = enough if hard == resource.RLIM_INFINITY else min(hard, enough)
        yield from ("--ulimit", f"{name}={value}:{value}")


def run(command, **options):
    """Runs a command that must succeed and gives back what it printed."""
    done = subprocess.run(command, text=True, capture_output=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Engine:
    """Use it in a `with` statement. Stores are of the driver vfs, which needs nothing of the kernel."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tilewire-image-")
        self._name = os.path.basename(self.folder)
        self._containers = 0
        atexit.register(self.close)  # when a signal ends the test
        stores = ["--storage-driver", "vfs", "--root", self.path("store"), "--runroot", self.path("run")]
        self._buildah = ["buildah", *stores]
        self._podman = ["podman", *stores, "--tmpdir", self.path("tmp"), "--cgroup-manager", "cgroupfs", "--runtime",
                        "runc", "--events-backend", "none"]
        # Nobody's settings, and no timers in systemd for health checks: the test asks for them itself.
        self._environment = dict(os.environ, DISABLE_HC_SYSTEMD="true", CONTAINERS_CONF=os.devnull)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def buildah(self, *arguments):
        return run([*self._buildah, *arguments], env=self._environment).strip()

    def build(self, *arguments):
        """Builds from a Dockerfile, and shows how it goes: that takes long."""
        subprocess.run([*self._buildah, "build", "--isolation", "chroot", *arguments], env=self._environment, check=True)

    def podman(self, *arguments):
        return run([*self._podman, *arguments], env=self._environment).strip()

    def load(self, archive):
        """Loads an image from an archive and gives back its name."""
        return self.podman("load", "--quiet", "--input", archive).rsplit(": ", 1)[1]

    @contextlib.contextmanager
    def server(self, image, *arguments):
        """A tilewired with nothing that it does not need: no capability, no file that it may write."""
        self._containers += 1
        server = Server(self, f"{self._name}-{self._containers}", image, arguments)
        try:
            server.wait_until_ready()
            yield server
        finally:
            server.remove()

    def start(self, name, image, arguments, errors):
        command = [*self._podman, "run", "--name", name, "--network", "host", "--read-only", "--read-only-tmpfs=false",
                   "--cap-drop", "all", "--security-opt", "no-new-privileges", *_limits(), image, *arguments]
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=errors, env=self._environment)

    def close(self):
        if not os.path.exists(self.folder):
            return
        run([*self._podman, "rm", "--all", "--force", "--time", "0"], env=self._environment)
        run([*self._buildah, "rm", "--all"], env=self._environment)
        shutil.rmtree(self.folder)


class Server:
    """One container with a server; `address` is where it listens."""

    def __init__(self, engine, name, image, arguments):
        self._engine = engine
        self.name = name
        self.address = None
        self._errors = open(engine.path(name + ".err"), "w+", encoding="utf-8")  # noqa: SIM115: as long as this lives
        self._process = engine.start(name, image, arguments, self._errors)

    def wait_until_ready(self):
        line = self._process.stdout.readline()  # empty when it ends instead
        if not line.startswith("tilewired ready "):
            self._errors.seek(0)
            raise AssertionError(f"the server is not ready, it printed {line!r} and\n{self._errors.read()}")
        self.address = line.split()[2]

    def inspect(self):
        return json.loads(self._engine.podman("inspect", self.name))[0]

    def execute(self, *command):
        return self._engine.podman("exec", self.name, *command)

    def processes(self):
        """The /proc/PID/status of every process in the container, each a dictionary."""
        found = []
        for pid in self._engine.podman("top", self.name, "hpid").split()[1:]:
            with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                found.append(dict(line.rstrip("\n").split(":\t", 1) for line in status))
        return found

    def stop(self):
        """Asks the server to end by the image's signal and gives back its exit code."""
        self._engine.podman("stop", "--time", str(STOP_SECONDS), self.name)
        self._process.wait()
        return self.inspect()["State"]["ExitCode"]

    def remove(self):
        self._engine.podman("rm", "--force", "--ignore", "--time", "0", self.name)
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()

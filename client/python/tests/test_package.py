"""What is in the wheel, and how it lives with other packages."""

import importlib.metadata
import importlib.util
import inspect
import itertools
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import tilewire as tw

FOLDER = pathlib.Path(tw.__file__).parent


def run(*command: object, **how: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, check=False, **how)


def test_programs(server: tw.LocalClient, tmp_path: pathlib.Path) -> None:
    scripts = pathlib.Path(sys.executable).parent
    for name in ("tilewire", "tilewired", "tilewire-load"):
        done = run(scripts / name, "--version")
        assert done.returncode == 0 and done.stdout.split()[1] == tw.__version__ == importlib.metadata.version("tilewire")
    a = np.random.default_rng(0).random((2, 100, 50))
    np.save(tmp_path / "a.npy", a[0])
    np.save(tmp_path / "b.npy", a[1])
    done = run(scripts / "tilewire", "--server", server.address, "rmse", tmp_path / "a.npy", tmp_path / "b.npy")
    assert float(done.stdout) == server.rmse(a[0], a[1])  # the bits of the program
    done = run(scripts / "tilewire", "--server", server.address, "selftest")
    assert done.returncode == 0, done.stderr


def test_types(tmp_path: pathlib.Path) -> None:
    """The package, and a program that uses it."""
    pytest.importorskip("mypy")
    assert (FOLDER / "py.typed").exists() and (FOLDER / "_core.pyi").exists()
    (tmp_path / "program.py").write_text("""
import numpy as np
import numpy.typing as npt
import tilewire as tw

def main(c: tw.Client, a: npt.NDArray[np.float32]) -> float:
    there: tw.RemoteArray = c.transpose(a, store=True)
    out: npt.NDArray[np.float32] = c.transpose(a, out=a)
    reveal_type(c.rmse(a, there))
    return c.rmse(a, there, output="mse", timeout=3)
""")
    done = run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", tmp_path / "program.py", cwd="/")
    assert done.returncode == 0 and 'float"' in done.stdout, done.stdout
    done = run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "-p", "tilewire", cwd="/")
    assert done.returncode == 0, done.stdout


def test_licences() -> None:
    folder = FOLDER / "licenses"
    assert (folder / "LICENSE").exists()
    libraries = list((FOLDER.parent / "tilewire.libs").glob("*.so*"))
    assert len(libraries) > 30 and {"libgrpc++1.51.txt", "libprotobuf32.txt", "nanobind.txt"} <= {path.name for path in folder.iterdir()}


def test_all_is_documented() -> None:
    for name in tw.__all__:
        thing = getattr(tw, name)
        assert isinstance(thing, str) or (thing.__doc__ or "").strip(), name
    for name, method in inspect.getmembers(tw.Client):
        assert name.startswith("_") or (method.__doc__ or "").strip(), name


# Each of them has a gRPC or protobuf of its own. What is not installed is left out.
OTHERS = [name for name in ("grpc", "pyarrow.flight", "torch") if importlib.util.find_spec(name.partition(".")[0])]
ORDERS = [order for count in range(1, len(OTHERS) + 2) for order in itertools.permutations([*OTHERS, "tilewire"], count)
          if "tilewire" in order and count in (2, len(OTHERS) + 1)]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_import_orders(server: tw.LocalClient, order: tuple[str, ...]) -> None:
    text = f"""
import sys
for name in {order!r}:
    __import__(name)
import numpy as np, tilewire as tw
a = np.arange(2000000, dtype="f4").reshape(1000, 2000)
def use_grpc():
    grpc = sys.modules.get("grpc")
    if grpc:
        with grpc.insecure_channel(sys.argv[1]) as channel:
            call = channel.unary_unary("/grpc.health.v1.Health/Check")
            assert call(b"", timeout=10) == bytes([8, 1])
def use_flight():
    flight = sys.modules.get("pyarrow.flight")
    if flight:
        import pyarrow as pa
        class Server(flight.FlightServerBase):
            def do_get(self, context, ticket):
                return flight.RecordBatchStream(pa.table({{"x": [1, 2, 3]}}))
        with Server("grpc://localhost:0") as server, flight.connect(f"grpc://localhost:{{server.port}}") as client:
            assert client.do_get(flight.Ticket(b"")).read_all().num_rows == 3
def use_torch():
    torch = sys.modules.get("torch")
    if torch:
        assert float(torch.ones(3).sum()) == 3
def use_tilewire():
    with tw.connect(sys.argv[1]) as c:
        assert c.rmse(a, a + 3) == 3 and (c.transpose(a) == a.T).all()
        try:
            c.rmse(a, a[1:])
        except ValueError:
            pass
for use in (use_tilewire, use_grpc, use_flight, use_torch, use_tilewire):
    use()
for use in (use_torch, use_flight, use_grpc, use_tilewire):
    use()
print("well")
"""
    done = run(sys.executable, "-c", text, server.address)
    assert done.stdout == "well\n" and done.returncode == 0, done.stderr


def test_symbols_are_our_own() -> None:
    """No library of the wheel offers symbols that the loader would share between packages."""
    elf = pytest.importorskip("elftools.elf.elffile")
    for path in (FOLDER.parent / "tilewire.libs").glob("*.so*"):
        with path.open("rb") as file:
            table = elf.ELFFile(file).get_section_by_name(".dynsym")
            bindings = np.frombuffer(table.data(), "u1").reshape(-1, table["sh_entsize"])[:, 4] >> 4
            assert not (bindings == 10).any(), path.name  # STB_GNU_UNIQUE

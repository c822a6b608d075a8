#!/usr/bin/env python3
"""Runs README's Python against a real server, with stubs made as README says.

    readme_check.py TILEWIRED README PROTO_FOLDER

The blocks run as they stand, but for the server's address, deadlines and the name of the shared memory; then what
they define is held against numpy, for every dtype of the wire.
"""
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

import grpc
import numpy as np

from numpy_check import REAL, Server, array, rmse_reference

TILEWIRED, README, PROTO = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]).resolve()
REGION = f"tilewire-readme-{os.getpid()}"


def only(found):
    """The one element."""
    if len(found) != 1:
        raise SystemExit(f"README: wanted one, found {found}")
    return found[0]


def put_in(code, said, instead):
    if said not in code:
        raise SystemExit(f"README's code no longer says {said}")
    return code.replace(said, instead)


class Bfloat16(np.ndarray):
    """What the helper sees of an array of ml_dtypes' bfloat16, on machines without that package."""
    @property
    def dtype(self):
        return types.SimpleNamespace(name="bfloat16", str="<V2")


def bfloat16(x):
    """Numbers that bfloat16 holds exactly, as such an array."""
    bits = x.astype("<f4").view("<u4")
    if (bits & 0xFFFF).any():
        raise SystemExit("no bfloat16 numbers")
    return (bits >> 16).astype("<u2").view(Bfloat16)


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        text = README.read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
        cls.region_code = only([block for block in blocks if "regions_pb2" in block])
        code = only([block for block in blocks if "kernels_pb2_grpc" in block])  # the package's has tests of its own
        command = only(re.findall(r"`(protoc -I proto [^`]*)`", text))

        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        os.symlink(PROTO, os.path.join(folder.name, "proto"))
        subprocess.run(["bash", "-c", command], cwd=folder.name, check=True)
        sys.path.insert(0, folder.name)

        server = Server(TILEWIRED, "cpu", ["--allow-regions", f"/{REGION}"])
        cls.addClassCleanup(server.process.stdout.close)
        cls.addClassCleanup(server.close)
        code = put_in(code, '"localhost:50051"', repr(server.address))
        for patience in "timeout=10)", "timeout=60)":  # people's; a busy machine may take longer
            code = put_in(code, patience, "timeout=500)")
        cls.names = {}
        exec(code, cls.names)
        cls.addClassCleanup(cls.names["channel"].close)
        cls.region_code = put_in(cls.region_code, "tilewire-demo", REGION)
        cls.rng = np.random.default_rng(1)

    def rmse(self, a, b):
        k, operand = self.names["k"], self.names["operand"]
        reply = self.names["kernels"].Rmse(k.RmseRequest(a=operand(a), b=operand(b)), timeout=500)
        return self.names["array"](reply.result)

    def transpose(self, x):
        k = self.names["k"]
        reply = self.names["kernels"].Transpose(k.TransposeRequest(input=self.names["operand"](x)), timeout=500)
        return self.names["array"](reply.result)

    def run_region_code(self, a, b):
        names = dict(self.names, a=a, b=b)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(self.region_code, names)
        return names, printed.getvalue()

    def expect_same(self, got, want):
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
        self.assertEqual(got.tobytes(), want.tobytes())

    def test_the_table_has_every_dtype_of_the_wire(self):
        wire = set(self.names["t"].DType.values()) - {self.names["t"].DTYPE_UNSPECIFIED}
        self.assertEqual(set(self.names["DTYPES"].values()), wire)
        self.assertEqual(set(self.names["NAMES"]), wire)

    def test_integers_three_apart_have_rmse_three(self):
        a = self.rng.integers(-1000, 1000, (50, 60), dtype="i4")
        self.assertEqual(self.rmse(a, a + np.int32(3)), 3.0)
        _, printed = self.run_region_code(a, a + np.int32(3))
        self.assertEqual(printed, "3.0\n")

    def test_rmse_of_every_dtype_equals_numpys(self):
        for dtype in REAL:
            with self.subTest(dtype):
                a, b = array(self.rng, dtype, (31, 37)), array(self.rng, dtype, (31, 37))
                want = rmse_reference(a, b, None)
                np.testing.assert_allclose(self.rmse(a, b), want, rtol=1e-14)
                names, _ = self.run_region_code(a, b)
                np.testing.assert_allclose(names["array"](names["reply"].result), want, rtol=1e-14)

    def test_rmse_of_bfloat16_equals_numpys(self):
        a, b = self.rng.integers(-128, 128, (2, 31, 37)).astype("f4") / 8
        want = rmse_reference(a, b, None)
        np.testing.assert_allclose(self.rmse(bfloat16(a), bfloat16(b)), want, rtol=1e-14)
        try:
            from ml_dtypes import bfloat16 as real
        except ImportError:
            return
        np.testing.assert_allclose(self.rmse(a.astype(real), b.astype(real)), want, rtol=1e-14)
        self.expect_same(self.transpose(a.astype(real)), a.astype(real).T)

    def test_transposes_of_every_dtype_equal_numpys(self):
        for name in set(self.names["DTYPES"]) - {"bfloat16"}:
            with self.subTest(name):
                small, large = array(self.rng, name, (13, 17)), array(self.rng, name, (600, 401))
                for call in self.transpose, self.names["transpose"]:
                    self.expect_same(call(small), small.T)
                    self.expect_same(call(large), large.T)

    def test_the_layout_in_memory_does_not_matter(self):
        x = array(self.rng, "f8", (40, 50))
        for view in x.T, x[::2, ::-3], np.asfortranarray(x), x[3], x[:0:-1, 7], np.float64(5):
            self.expect_same(self.transpose(view), np.asarray(view).T)
            self.expect_same(self.names["transpose"](view), np.asarray(view).T)
        _, printed = self.run_region_code(x[::2, ::-3], x[::2, ::-3] + 0.5)
        self.assertAlmostEqual(float(printed), 0.5)

    def test_what_the_wire_does_not_know_is_refused_by_name(self):
        for name in ">f4", ">i2", ">c16", "longdouble", "O", "S3", "U2", "M8[s]", "m8[ms]", "V2", [("x", "f4")]:
            dtype = np.dtype(name)
            with self.subTest(dtype), self.assertRaises(TypeError) as raised:
                self.names["operand"](np.zeros(3, dtype))
            self.assertIn(repr(dtype), str(raised.exception))

    def test_the_region_is_gone_afterwards(self):
        a = array(self.rng, "i2", (100,))
        names, _ = self.run_region_code(a, a)
        self.assertEqual(list(names["regions"].List(names["r"].ListRegionsRequest()).regions), [])
        self.assertFalse(os.path.exists(f"/dev/shm/{REGION}"))
        # Also where the call fails.
        with self.assertRaises(grpc.RpcError):
            self.run_region_code(a, a[:50])
        self.assertEqual(list(names["regions"].List(names["r"].ListRegionsRequest()).regions), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

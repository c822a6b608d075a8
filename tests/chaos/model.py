"""What a campaign calls, and the bits that every answer must have."""
import pathlib
import sys
from dataclasses import dataclass, field

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from numpy_check import gaussian_reference, rmse_reference, ulps

DTYPES = {"int8": 2, "uint8": 3, "int16": 4, "int32": 6, "float32": 12, "float64": 13, "complex64": 14}
NAMES = {code: name for name, code in DTYPES.items()}


@dataclass
class Case:
    """One operation over arrays that never change."""
    name: str
    kind: str
    attributes: dict
    inputs: list
    bits: list = field(default_factory=list)  # of each result, once a quiet server has answered

    def size(self):
        return sum(x.nbytes for x in self.inputs)


def cases(seed):
    """Small ones that are messages, larger ones that are streams, and one that may be striped."""
    rng = np.random.default_rng(seed)

    def f4(*shape):
        return rng.standard_normal(shape).astype("f4")
    return [
        Case("rmse-small", "rmse", {"axes": []}, [f4(1000), f4(1000)]),
        Case("rmse-rows", "rmse", {"axes": [1]}, [rng.standard_normal((200, 300)) for _ in range(2)]),
        Case("rmse-large", "rmse", {"axes": []}, [f4(3, 700_001), f4(3, 700_001)]),
        Case("transpose-small", "transpose", {"axes": [1, 0]}, [rng.integers(-99, 99, (37, 101), "i2")]),
        Case("transpose-large", "transpose", {"axes": [2, 0, 1]}, [f4(64, 129, 200)]),
        Case("transpose-huge", "transpose", {"axes": [1, 0]}, [rng.integers(0, 255, (3000, 7000), "u1")]),
        Case("gaussian-small", "gaussian_pdf", {"mean": 0.5, "stddev": 2.0}, [f4(5000)]),
        Case("gaussian-large", "gaussian_pdf", {"mean": -1.0, "stddev": 0.75}, [f4(1_300_000)]),
        Case("compare-small", "compare", {"axes": []}, [f4(30, 50), f4(30, 50)]),
        Case("compare-large", "compare", {"axes": [0]}, [f4(500, 1000), f4(500, 1000)]),
    ]


def near(got, want):
    return got.shape == want.shape and np.allclose(got, want, rtol=1e-12, atol=1e-14)


def right(case, results):
    """Whether numpy agrees with what a quiet server says: exactly, or as near as the contract promises. `results`
    are arrays; from then on their bits count."""
    if case.kind == "transpose":
        return np.array_equal(results[0], np.transpose(case.inputs[0], case.attributes["axes"]))
    if case.kind == "gaussian_pdf":
        exact = gaussian_reference(case.inputs[0], case.attributes["mean"], case.attributes["stddev"])
        return results[0].shape == exact.shape and (ulps(results[0], exact) <= 1).all()
    axes = tuple(case.attributes["axes"]) or None
    a, b = case.inputs
    if case.kind == "rmse":
        return near(results[0], np.asarray(rmse_reference(a, b, axes)))
    d = a.astype("f8") - b
    by_number = {0: rmse_reference(a, b, axes), 1: (d * d).mean(axes), 2: (d * d).sum(axes), 3: abs(d).mean(axes),
                 4: abs(d).sum(axes), 5: d.mean(axes), 6: d.sum(axes), 7: abs(d).max(axes),
                 8: abs(d).argmax(axes[0] if axes else None), 9: np.isnan(d).sum(axes), 10: (a != b).sum(axes)}
    # Sums of both signs cancel: near by their parts, not by what is left.
    return len(results) >= len(by_number) and all(
        near(results[i], np.asarray(want)) or (i in (5, 6) and np.allclose(results[i], want, atol=1e-9))
        for i, want in by_number.items())

"""Rates of numpy's ways to write an RMSE, beside the host cases of tilewire_kernel_bench.

Usage: host_numpy.py [MIB_PER_OPERAND]. Prints GB/s of both operands' bytes, the median of five runs after one.
"""
import sys
import time

import numpy as np


def dot(a, b, axis):
    difference = (a - b).reshape(-1)
    return np.sqrt(np.dot(difference, difference) / difference.size) if axis is None else None


EXPRESSIONS = {
    "sqrt(mean((a - b)**2))": lambda a, b, axis: np.sqrt(np.mean((a - b) ** 2, axis=axis)),
    "sqrt(mean(square(a - b)))": lambda a, b, axis: np.sqrt(np.mean(np.square(a - b), axis=axis)),
    "norm(a - b) / sqrt(n)": lambda a, b, axis: (
        np.linalg.norm((a - b).reshape(-1)) / np.sqrt(a.size) if axis is None
        else np.linalg.norm(a - b, axis=axis) / np.sqrt(a.shape[axis])),
    "dot of the difference": dot,
    "einsum of the difference": lambda a, b, axis: (
        None if a.ndim > 2 else
        np.sqrt(np.einsum({None: "i,i->", 1: "ij,ij->i", 0: "ij,ij->j"}[axis], *(2 * [a - b]))
                / (a.size if axis is None else a.shape[axis]))),
}


def rate(run, nbytes):
    if run() is None:
        return None
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return nbytes / sorted(times)[2] / 1e9


def main():
    size = (int(sys.argv[1]) if len(sys.argv) > 1 else 512) << 20
    print(f"numpy {np.__version__}, {size >> 20} MiB an operand, GB/s")
    generator = np.random.default_rng(1)
    for dtype, columns, axis in ((np.float32, None, None), (np.float64, None, None), (np.float16, None, None),
                                 (np.float32, 16, 1), (np.float32, 1000, 1), (np.float32, 16, 0), (np.float32, 1000, 0)):
        count = size // np.dtype(dtype).itemsize
        shape = (count,) if columns is None else (count // columns, columns)
        a = generator.random(shape, dtype=np.float32).astype(dtype)
        b = generator.random(shape, dtype=np.float32).astype(dtype)
        rates = {name: rate(lambda f=f, a=a, b=b, axis=axis: f(a, b, axis), 2 * a.nbytes) for name, f in EXPRESSIONS.items()}
        rates = {name: value for name, value in rates.items() if value is not None}
        best = max(rates, key=rates.get)
        print(f"{np.dtype(dtype).name} {shape} axis {axis}: best {rates[best]:.2f} ({best}); "
              + ", ".join(f"{name} {value:.2f}" for name, value in rates.items()))


if __name__ == "__main__":
    main()

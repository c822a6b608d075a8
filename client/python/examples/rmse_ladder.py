# %% [markdown]
# # RMSE, step by step
# A sum of many squares can be added in many ways. They differ in time, which is why GPUs have a ladder of kernels
# (`kernels/ladder`), and in what rounding makes of them, which one sees without a GPU. Here four ways add the same squares.

# %%
import math
import time

import matplotlib.pyplot as plt
import numpy as np

import tilewire as tw

rng = np.random.default_rng(1)
client = tw.local()  # a server of this notebook's own; tw.connect("server:50051") for another
print(client.describe()["devices"])

# %% [markdown]
# 1. **Atomic**: one accumulator that every element is added to, in single precision.
# 2. **Sums of threads**: each of 1024 threads adds its own elements, then their sums are added.
# 3. **A tree**: neighbours are added, then neighbours of those sums. numpy does nearly that.
# 4. **The server**: squares in double precision, added in one fixed tree (`rmse.1`), the same on every device.


# %%
def atomic(d: np.ndarray) -> float:
    return float(np.add.accumulate(d * d, dtype=np.float32)[-1])


def threads(d: np.ndarray) -> float:
    padded = np.pad(d, (0, -len(d) % 1024)).reshape(-1, 1024)
    return float(np.add.accumulate(np.add.accumulate(padded * padded, axis=0)[-1])[-1])


def tree(d: np.ndarray) -> float:
    return float(np.sum(d * d))


sizes = 2 ** np.arange(10, 25, 2)
ways = {"atomic": atomic, "sums of threads": threads, "tree": tree, "server": None}
errors: dict[str, list[float]] = {name: [] for name in ways}
for size in sizes:
    a, b = rng.standard_normal((2, size), dtype="f4")
    exact = math.fsum(float(x) ** 2 for x in a.astype("f8") - b.astype("f8"))
    for name, way in ways.items():
        value = way(a - b) if way else client.rmse(a, b, output="sum_squares")
        errors[name].append(abs(value - exact) / exact)
assert errors["server"][-1] < 1e-14 < errors["atomic"][-1]

# %%
for name in ways:
    plt.loglog(sizes, np.maximum(errors[name], 1e-17), "o-", label=name)
plt.xlabel("elements")
plt.ylabel("relative error of the sum")
plt.legend()
plt.show()

# %% [markdown]
# The same bits come back however the arrays travel: as one message, in chunks, over several connections, in shared memory.

# %%
a, b = rng.standard_normal((2, 1 << 22), dtype="f4")
values = {
    "one connection": client.rmse(a, b, connections=1),
    "four": client.rmse(a, b, connections=4),
    "small blocks": client.rmse(a, b, block_bytes=1 << 16),
    "shared memory": client.rmse(client.share(a), client.share(b)),
}
print(values)
assert len(set(values.values())) == 1
begin = time.perf_counter()
float(np.sqrt(np.mean((a.astype("f8") - b) ** 2)))
print(f"numpy here: {1e3 * (time.perf_counter() - begin):.1f} ms")
print(client.timing)
client.close()

# %% [markdown]
# # Transposing
# A transpose computes nothing and moves everything, so it is measured against a copy. What is hard about it is memory: rows that are read
# together are written far apart. The ladder of kernels that deals with that is in `kernels/ladder`; here is what a caller sees.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np

import tilewire as tw

client = tw.local()
a = np.arange(96 * 128 * 160, dtype="f4").reshape(96, 128, 160)
out = {axes: client.transpose(a, axes) for axes in [(2, 1, 0), (0, 2, 1), (1, 0, 2), (2, 0, 1)]}
for axes, result in out.items():
    assert (result == a.transpose(axes)).all() and result.flags.c_contiguous

# %% [markdown]
# An array that lies in another order of axes is sent from where it lies: the server is told the order instead. So `a.T` costs no copy here.

# %%
assert (client.transpose(np.asfortranarray(a), (2, 1, 0)) == a.T).all()
timing = client.timing
assert timing is not None
print(timing)


# %%
def gigabytes_a_second(work) -> float:
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 2 * square.nbytes / float(np.median(times)) / 1e9


square = np.random.default_rng(4).random((2048, 2048), dtype="f4")
shared, result = client.share(square), client.empty(square.shape, square.dtype)
rates = {
    "numpy copy": gigabytes_a_second(square.copy),
    "numpy transpose": gigabytes_a_second(lambda: np.ascontiguousarray(square.T)),
    "server, wire": gigabytes_a_second(lambda: client.transpose(square)),
    "server, shared memory": gigabytes_a_second(lambda: client.transpose(shared, out=result)),
}
assert (result == square.T).all()
plt.barh(list(rates), list(rates.values()))
plt.xlabel("GB/s, read and written")
plt.show()
client.close()

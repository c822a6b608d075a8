# %% [markdown]
# # Copies beside kernels
# A large array arrives in blocks. While one block is received, the one before it is copied to the device, the one before that is
# computed on, and results go back: stages overlap. `sequential=True` does the same one stage after the other, with the same bits.

# %%
import matplotlib.pyplot as plt
import numpy as np

import tilewire as tw

client = tw.local()
x = np.random.default_rng(3).standard_normal(1 << 23, dtype="f4")
stages = ("receive", "stage", "h2d", "kernel", "d2h", "send")


def measured(**how: object) -> tuple[np.ndarray, tw.Timing]:
    result = client.gaussian_pdf(x, mean=0.1, stddev=1.5, **how)
    timing = client.timing
    assert timing is not None
    return result, timing


measured()  # the first call makes connections and touches memory
overlapped, together = measured()
one_by_one, apart = measured(sequential=True)
assert (overlapped == one_by_one).all()

# %% [markdown]
# Each stage takes about as long either way; what differs is how much of them happens at the same time. `overlap` is the sum of the stages
# divided by the time that they took together: 1 means one after the other.

# %%
for name, timing in (("overlapped", together), ("sequential", apart)):
    print(f"{name}: {timing.wall_us / 1e3:.1f} ms, overlap {timing.overlap:.2f}, bottleneck {timing.bottleneck}")
left = np.zeros(2)
for stage in stages:
    times = np.array([getattr(t, f"{stage}_us") or 0.0 for t in (together, apart)]) / 1e3
    plt.barh(["overlapped", "sequential"], times, left=left, label=stage)
    left += times
plt.plot([together.wall_us / 1e3, apart.wall_us / 1e3], [0, 1], "k|", markersize=20, label="wall")
plt.xlabel("ms of each stage; where they overlap, the wall is shorter than their sum")
plt.legend()
plt.show()
assert together.overlap is not None and apart.overlap is not None and together.overlap > apart.overlap

# %% [markdown]
# A trace has every span. In a notebook the last expression shows itself; `client.trace("t.json")` is for Perfetto.

# %%
with client.trace() as trace:
    measured()
client.close()
trace  # noqa: B018 (a notebook shows it)

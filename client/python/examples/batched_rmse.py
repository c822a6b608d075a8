# %% [markdown]
# # Many RMSEs at once
# A candidate beside each of many references, or an error per image: the axis says what one RMSE is over. One call with an
# axis moves the same bytes as many calls without, but pays for a call once, and a GPU has work for all its cores.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np

import tilewire as tw

rng = np.random.default_rng(2)
client = tw.local()
images, others = rng.random((2, 256, 64, 64), dtype="f4")

per_image = client.rmse(images, others, axis=(1, 2))
per_column = client.rmse(images, others, axis=(0, 1))
print(per_image.shape, per_column.shape)
assert per_image.shape == (256,) and per_column.shape == (64,)
np.testing.assert_allclose(per_image, np.sqrt(np.mean((images.astype("f8") - others) ** 2, axis=(1, 2))), rtol=1e-12)


# %%
def milliseconds(work) -> float:
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - begin))
    return float(np.median(times))


counts = [1, 4, 16, 64, 256]
one_call = [milliseconds(lambda n=n: client.rmse(images[:n], others[:n], axis=(1, 2))) for n in counts]
a_call_each = [
    milliseconds(lambda n=n: [client.rmse(a, b) for a, b in zip(images[:n], others[:n], strict=True)]) for n in counts
]
plt.loglog(counts, a_call_each, "o-", label="a call each")
plt.loglog(counts, one_call, "o-", label="one call with an axis")
plt.xlabel("images of 64 × 64")
plt.ylabel("ms")
plt.legend()
plt.show()

# %% [markdown]
# Arrays that are used again can stay at the server: then only what is new crosses the wire.

# %%
with client.put(others) as references:
    kept = client.rmse(images, references, axis=(1, 2))
    timing = client.timing
assert (kept == per_image).all() and timing is not None
print(f"{timing.bytes_in} bytes in instead of {2 * images.nbytes}")
client.close()

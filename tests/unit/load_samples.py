"""Results of load tests that were never run, in the schema of client/load/RESULTS.md: test data for the results page.

Deterministic: the same arguments give the same result. The shapes of the curves are like those of real servers, so that
what the page makes of them can be judged by eye; the figures mean nothing.
"""
import math
import random

STAGES = ("queue", "receive", "stage", "h2d", "kernel", "d2h", "send", "other")
KINDS = (("rmse", "f32", [4096, 4096], "striped", 8), ("transpose", "f16", [1024, 2048, 3], "stream", 1),
         ("gaussian-pdf", "f64", [512, 512], "unary", 1))
ERRORS = ("RESOURCE_EXHAUSTED/BUSY", "DEADLINE_EXCEEDED", "UNAVAILABLE/STREAM_LOST")
SECONDS = 30.0


def _latencies(rng, calls, median):
    """Sorted latencies in microseconds: log-normal with some stragglers."""
    out = [median * math.exp(rng.gauss(0, 0.22)) * (rng.uniform(2, 9) if rng.random() < 0.012 else 1) for _ in range(calls)]
    return sorted(out)


def _summary(sorted_us):
    at = lambda share: sorted_us[min(len(sorted_us) - 1, int(share * len(sorted_us)))]
    return {"min": sorted_us[0], "mean": sum(sorted_us) / len(sorted_us), "p50": at(.5), "p90": at(.9), "p99": at(.99),
            "p99_9": at(.999), "max": sorted_us[-1]}


def _histogram(sorted_us):
    counts = {}
    for value in sorted_us:
        step = math.ceil(math.log(value) / math.log(1.04))
        counts[step] = counts.get(step, 0) + 1
    return [[1.04 ** step, count] for step, count in sorted(counts.items())][:200]


def _stat(name, kind, latencies, errors, stages, overlap):
    operation, dtype, shape, access, connections = kind
    good = len(latencies)
    size = math.prod(shape or [1 << 20]) * 8
    return {"name": name, "operation": operation, "reduces": operation == "rmse", "dtype": dtype, "shape": shape, "access": access,
            "connections": connections, "weight": 1, "calls": good + sum(errors.values()), "good": good, "wrong": 0,
            "errors": errors, "bytes": good * size, "bytes_per_second": good * size / SECONDS,
            "calls_per_second": good / SECONDS, "latency_us": _summary(latencies),
            "service_us": _summary([us * 0.8 for us in latencies]), "histogram": _histogram(latencies),
            "stages_us": stages, "overlap": overlap}


def _operation(rng, index, calls):
    kind = KINDS[index % len(KINDS)]
    median = (9800, 4300, 760)[index % len(KINDS)] * rng.uniform(0.8, 1.3)
    shares = (0.05, 0.62, 0.31, 0.2, 0.09, 0.04 if kind[0] == "rmse" else 0.22, 0.03 if kind[0] == "rmse" else 0.3)
    names = [stage for stage in STAGES if kind[3] != "unary" or stage in ("queue", "stage", "h2d", "kernel", "d2h")]
    stages = {stage: median * share * rng.uniform(0.8, 1.2) for stage, share in zip(STAGES, shares) if stage in names}
    errors = {status: rng.randint(1, 40) for status in ERRORS[:3 - index]} if index < 3 else {}
    latencies = _latencies(rng, calls, median)
    name = f"{kind[0]} {kind[1]} {'×'.join(map(str, kind[2]))}" if index < len(KINDS) else f"{kind[0]} variant {index}"
    overlap = sum(stages.values()) / median
    stages["other"] = 0.12 * median if kind[3] == "unary" else 0.02 * median
    return _stat(name, kind, latencies, errors, stages, overlap), latencies


def _timeline(rng, points, rate, median):
    out = []
    for index in range(points):
        dip = 0.35 if 0.55 < index / points < 0.58 else 1
        p50 = median / dip * rng.uniform(0.94, 1.06)
        errors = rng.randint(0, 5) if dip < 1 else 0
        calls = int(90 * dip * rng.uniform(0.9, 1.1)) + errors
        out.append({"t": index * SECONDS / points, "calls": calls, "good": calls - errors, "errors": errors,
                    "bytes": rate * SECONDS / points * dip * rng.uniform(0.93, 1.07), "p50_us": p50,
                    "p99_us": p50 * rng.uniform(1.9, 2.5), "max_us": p50 * rng.uniform(2.6, 9)})
    out[points // 3].update(calls=0, good=0, errors=0, bytes=0, p50_us=0, p99_us=0, max_us=0)
    return out


def _trace(rng, operation, blocks, streams, lanes):
    """A striped request: every stream receives and stages in turn, lanes copy and compute as blocks come."""
    spans = [{"process": "client", "track": "stream 0", "stage": "connect", "begin_us": 2, "end_us": 40},
             {"process": "client", "track": "stream 0", "stage": "open", "begin_us": 40, "end_us": 118},
             {"process": "server", "track": "stream 0", "stage": "queue", "begin_us": 60, "end_us": 150}]
    stream_free = [160.0 + 30 * s for s in range(streams)]
    lane_free = [0.0] * lanes
    for block in range(blocks):
        stream, lane = block % streams, block % lanes
        add = lambda process, track, stage, begin, length: spans.append(
            {"process": process, "track": track, "stage": stage, "begin_us": begin, "end_us": begin + length})
        at = stream_free[stream]
        add("client", f"stream {stream}", "write", at - 40, rng.uniform(380, 460))
        took = rng.uniform(420, 640)
        add("server", f"stream {stream}", "receive", at, took)
        copied = rng.uniform(240, 330)
        add("server", f"stream {stream}", "stage", at + took, copied)
        stream_free[stream] = at + took + copied
        begin = max(stream_free[stream], lane_free[lane])
        add("server", f"lane {lane}", "h2d", begin, 82)
        add("server", f"lane {lane}", "kernel", begin + 84, 26)
        lane_free[lane] = begin + 112
    done = max(lane_free) + 30
    if operation != "rmse":
        for block in range(blocks):
            spans.append({"process": "server", "track": f"lane {block % lanes}", "stage": "d2h", "begin_us": done, "end_us": done + 80})
            spans.append({"process": "server", "track": f"stream {block % streams}", "stage": "send", "begin_us": done + 80,
                          "end_us": done + 250})
            done += 90
    wall = done + 260
    spans += [{"process": "client", "track": "stream 0", "stage": "call", "begin_us": 0, "end_us": wall},
              {"process": "client", "track": "stream 0", "stage": "result", "begin_us": stream_free[0], "end_us": wall - 3}]
    busy = sum(span["end_us"] - span["begin_us"] for span in spans if span["process"] == "server")
    return {"operation": operation, "wall_us": wall, "overlap": busy / wall / streams * 1.6, "spans": spans}


def _frame(kind, mode):
    return {"schema": "tilewire-load/1", "kind": kind, "started": "2026-01-31T12:00:00Z", "seconds": SECONDS, "seed": 7,
            "stop": {"reason": "seconds", "text": "the measured window of 30 s has passed"},
            "server": {"address": "localhost:50051", "version": "0.1.0", "instance": "0011223344aa", "device": "cuda:0",
                       "device_name": "Imaginary GPU", "processors": 132, "block_bytes": 4 << 20, "lanes": 4,
                       "copy_in_bytes_per_second": 55.1e9, "copy_out_bytes_per_second": 54.2e9},
            "client": {"processor": "Imaginary CPU, 16 cores", "cores": 16, "memory_bytes": 128 << 30, "os": "Linux 6.1",
                       "version": "0.1.0"},
            "scenario": {"name": "sample", "seed": 7, "mode": mode, "warmup_seconds": 3, "seconds": SECONDS, "timeout_seconds": 60, "inputs": 4,
                         "operations": [{"operation": k[0], "dtype": k[1], "shape": k[2]} for k in KINDS]},
            "mode": mode, "operations": [], "timeline": [], "traces": [],
            "generator": {"cpu_share": 0.31, "late_starts": 4, "max_late_us": 812.5, "bottleneck": False,
                          "text": "The generator used 31% of the cores and started 4 of 24,000 calls late: the figures are the server's."},
            "ceilings": {"h2d": 55.6e9, "d2h": 54.9e9, "h2d_both": 50.2e9, "d2h_both": 49.8e9, "host_copy_1": 7.4e9,
                         "host_copy_all": 40e9, "device_copy": 4.2e12}}


def run_result(operations=3, points=120, calls=4000, seed=1, errors=True):
    """A run in closed loop over a mix of operations."""
    rng = random.Random(seed)
    result = _frame("run", {"type": "closed", "callers": 8})
    stats = [_operation(rng, index, calls) for index in range(operations)]
    result["operations"] = [stat for stat, _ in stats]
    merged = sorted(us for _, latencies in stats for us in latencies)
    total = _stat("total", ("mix" if operations > 1 else stats[0][0]["operation"], "", [], "", 1), merged, {}, {}, 1.62)
    for key in ("calls", "good", "bytes", "bytes_per_second", "calls_per_second"):
        total[key] = sum(stat[key] for stat, _ in stats)
    for stat, _ in stats:
        if not errors:
            stat["calls"], stat["errors"] = stat["good"], {}
        for status, count in stat["errors"].items():
            total["errors"][status] = total["errors"].get(status, 0) + count
    total["calls"] = total["good"] + sum(total["errors"].values())
    total["histogram"] = _histogram(merged)
    result["total"] = total
    result["timeline"] = _timeline(rng, points, total["bytes_per_second"], total["latency_us"]["p50"])
    result["traces"] = [_trace(rng, "rmse", 32, 8, 4), _trace(rng, "transpose", 12, 2, 4)]
    result["findings"] = [f"{total['bytes_per_second'] / 1e9:.1f} GB/s over {operations} operations with a p99 of "
                          f"{total['latency_us']['p99'] / 1e3:.0f} ms; memcpy into pinned memory is the bottleneck.",
                          "Overlap hides kernels and copies to the device: the stages sum up to 1.6 times the wall time.",
                          "Throughput fell to a third for a second, 17 s after the start, and the server refused calls meanwhile."]
    return result


def ramp_result(seed=2):
    """A ramp in open loop that finds the rate at which p99 passes 5 ms."""
    result = run_result(operations=1, seed=seed, points=60, errors=False)
    result["mode"] = {"type": "ramp", "arrivals": "poisson", "bound_us": 5000, "percentile": 99.0, "best_rate": 7300, "callers": 256}
    p99 = lambda offered: 900 / max(0.02, 1 - offered / 9000)
    result["ramp"] = [{"rate": offered, "achieved": min(offered, 8800) * 0.998, "p99_us": p99(offered), "held": p99(offered) <= 5000}
                      for offered in (1000, 2000, 4000, 8000, 6000, 7000, 7600, 7300)]
    return result


def _study_cell(rng, operation, bytes_, block, lanes, connections, overlap):
    wire = min(22e9, 3.4e9 * connections ** 0.85)
    shape = (bytes_ / (bytes_ + 3e6)) * (block / (block + 2.5e5)) * (1 / (1 + block / 6e7)) * (1 - 0.42 / lanes)
    rate = wire * shape * (1 if overlap else 0.63) * (1 if operation == "rmse" else 0.8) * rng.uniform(0.97, 1.03)
    return {"operation": operation, "reduces": operation == "rmse", "bytes": bytes_, "block_bytes": block, "lanes": lanes,
            "connections": connections, "overlap": overlap, "calls": 200, "bytes_per_second": rate, "p50_us": bytes_ / rate * 1e6,
            "overlap_factor": 1.7 * shape + 0.3 if overlap else 1.0,
            "bottleneck": "receive" if connections < 6 else "stage"}


def two_way_study(seed=4):
    """The same arrays over the wire, where overlap is worth nothing, and through shared memory, where it is worth 1.6 times."""
    result = study_result(operations=1, blocks=(1 << 20, 1 << 22), lanes=(1, 2), connections=(1, 8), seed=seed)
    wire = result["study"]
    for cell in wire:
        cell.update(via="wire", noise=0.012)
    for cell in wire[1::2]:
        cell["bytes_per_second"] = wire[wire.index(cell) - 1]["bytes_per_second"] / 1.01
    region = [dict(cell, via="region", connections=1, noise=0.034, bytes_per_second=(45e9 if cell["overlap"] else 28.125e9) - cell["lanes"])
              for cell in wire if cell["connections"] == 8]
    result["study"] = region + wire
    advice = result["recommendation"]
    result["recommendation"] = advice | {"via": "wire", "overlap_worth": 1.01, "overlap_worth_noise": 0.017}
    result["recommendations"] = [advice | {"via": "region", "overlap_worth": 1.6, "overlap_worth_noise": 0.048}, result["recommendation"]]
    return result


def study_result(operations=2, sizes=(1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20), blocks=(1 << 18, 1 << 20, 1 << 22, 1 << 24),
                 lanes=(1, 2, 4, 8), connections=(1, 2, 4, 8), overlaps=(True, False), seed=3):
    """Block size × lanes at one array size, array size × connections at one block size, with overlap and without."""
    rng = random.Random(seed)
    result = _frame("study", {"type": "closed", "callers": 1})
    points = {(sizes[-2], block, lane, connections[-1]) for block in blocks for lane in lanes}
    points |= {(size, blocks[-2], lanes[-2], connection) for size in sizes for connection in connections}
    result["study"] = [_study_cell(rng, ("rmse", "transpose", "gaussian-pdf")[op], *point, overlap)
                       for op in range(operations) for point in sorted(points) for overlap in overlaps]
    best = max(result["study"], key=lambda cell: cell["bytes_per_second"])
    result["recommendation"] = {key: best[key] for key in ("block_bytes", "lanes", "connections", "bytes_per_second")}
    result["recommendation"]["text"] = "--block-bytes 4MiB --lanes 8 and 8 connections a call; smaller blocks cost nothing below 16 MiB."
    result["total"] = _stat("total", ("mix", "", [], "", 1), [1.0], {}, {}, 1.4)
    result["findings"] = [
        f"The server reaches {best['bytes_per_second'] / 55.6e9:.0%} of the copy limit at 8 connections: the wire is the bottleneck.",
        "Overlap is worth 1.6× wherever an array has more than one block."]
    return result

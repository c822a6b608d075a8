"""Checks that includes point only downward. Usage: includes.py ROOT

A layer is a folder. LAYERS says for each what it may include of ours, and which foreign headers it must not include.
Of several layers that match a file the one with the longest prefix counts.
"""
import os
import re
import sys

import tree

SUFFIXES = (".h", ".cc", ".cu", ".cuh", ".inc")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

GRPC = ("grpc/", "grpcpp/", "grpc++/", ".grpc.pb.h")
PROTOBUF = ("google/protobuf/", ".pb.h")
THREADS = ("thread", "mutex", "shared_mutex", "condition_variable", "future", "stop_token", "semaphore", "latch",
           "barrier", "pthread.h")

# What the compiler can check (thread_safety.py), and the only place that includes what it cannot. Needs nothing of ours.
LOCK_HEADERS = ("server/base/mutex.h", "server/base/thread_annotations.h")
UNCHECKED_LOCKS = ("mutex", "shared_mutex", "condition_variable")

ARRAY = ("kernels/array/",)
# Statistics, tables and pictures of measurements: for the programs that measure, at the bottom because they are in
# several layers. Nothing of ours is below it, and neither kernels nor the server see it.
FIGURES = ("kernels/figures/",)
# What is known of any operation; the engine sees no more of kernels.
OPERATION = ARRAY + ("kernels/operation/",)
KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "kernels")
OPERATION_FOLDERS = tuple(f"kernels/{name}/" for name in sorted(os.listdir(KERNELS))
                          if os.path.isfile(os.path.join(KERNELS, name, "sources.cmake")))
# Its segments, tiles and tree are those of every reduction.
REDUCTION = ("kernels/rmse/",)
HOST_KERNELS = OPERATION + OPERATION_FOLDERS
BASE = OPERATION + ("server/base/",)
# The engine's folders, lowest first.
DEVICE = BASE + ("kernels/ladder/", "server/engine/device/")  # the ladder for introspection
RUN = DEVICE + ("server/engine/operation/",)
ADMISSION = BASE + ("server/engine/admission/",)
MEASURE = DEVICE + ("server/engine/admission/", "server/engine/measure/")
STORES = DEVICE + ("server/engine/admission/", "server/engine/stores/")
JOB = RUN + ("server/engine/admission/", "server/engine/measure/", "server/engine/stores/", "server/engine/job/")
ENGINE = BASE + ("kernels/ladder/", "server/engine/")
GENERATED = ("proto/", "tilewire/v1/", "google/rpc/", "grpc/health/v1/")
# Of the engine, what becomes messages and what messages become; transport knows no engine at all.
CONVERSIONS = BASE + GENERATED + ("server/engine/operation/", "server/engine/stores/", "server/engine/job/",
                                  "server/rpc/conversions/")
LISTENER = BASE + ("server/rpc/listener/",)
IDENTITY = BASE + ("server/rpc/identity/",)
TRANSPORT = BASE + GENERATED + ("server/rpc/identity/", "server/rpc/listener/", "server/rpc/transport/")
CALLS = ENGINE + GENERATED + ("server/rpc/conversions/", "server/rpc/identity/", "server/rpc/listener/", "server/rpc/transport/",
                              "server/rpc/calls/")
RPC = ENGINE + GENERATED + ("server/rpc/",)
# What stands in server/ops sees the rpc layer only through headers without gRPC; what they include is checked by the
# rule about foreign headers, which follows includes.
OPS = ENGINE + ("server/ops/", "server/rpc/")

# Folder or file → (own headers allowed, foreign headers forbidden, also when reached through own headers).
LAYERS = {
    "kernels/array/": (ARRAY, GRPC + PROTOBUF + THREADS),
    "kernels/operation/": (OPERATION, GRPC + PROTOBUF + THREADS),
    **{folder: (OPERATION + REDUCTION + (folder,), GRPC + PROTOBUF + THREADS) for folder in OPERATION_FOLDERS},
    "kernels/ladder/": (HOST_KERNELS + ("kernels/ladder/",), GRPC + PROTOBUF + THREADS),
    "kernels/figures/": (FIGURES, GRPC + PROTOBUF + THREADS),
    # A program for measurement: it may use threads.
    "kernels/bench/": (HOST_KERNELS + FIGURES + ("kernels/ladder/", "kernels/bench/"), GRPC + PROTOBUF),
    "proto/wire/": (ARRAY + ("proto/wire/",), GRPC + PROTOBUF + THREADS),
    "server/base/": (BASE, GRPC + PROTOBUF),
    "server/engine/": (ENGINE, GRPC + PROTOBUF),
    "server/engine/device/": (DEVICE, GRPC + PROTOBUF),
    "server/engine/operation/": (RUN, GRPC + PROTOBUF),
    "server/engine/admission/": (ADMISSION, GRPC + PROTOBUF),
    "server/engine/measure/": (MEASURE, GRPC + PROTOBUF),
    "server/engine/stores/": (STORES, GRPC + PROTOBUF),
    "server/engine/job/": (JOB, GRPC + PROTOBUF),
    # What a job asks admission for, and gets: above jobs, whose parts these plan and lease.
    **{"server/engine/admission/" + name: (JOB, GRPC + PROTOBUF)
       for name in ("planner.h", "planner.cc", "memory_plan.cc", "leaser.h", "leaser.cc")},
    "server/rpc/": (RPC, ()),
    "server/rpc/conversions/": (CONVERSIONS + HOST_KERNELS, ()),  # the server's table names the operations
    "server/rpc/listener/": (LISTENER, GRPC + PROTOBUF),
    "server/rpc/identity/": (IDENTITY, GRPC + PROTOBUF),
    "server/rpc/transport/": (TRANSPORT, ()),
    "server/rpc/calls/": (CALLS, ()),
    "server/ops/": (OPS, GRPC),
    **{"server/" + name: (OPS + RPC + ("server/options.h", "server/wrapped.h"), ())
       for name in ("main.cc", "options.h", "options.cc", "wrapped.h", "wrapped.cc")},
    # The list of environment variables is one for all programs, and so is what stays on a host.
    "client/": (HOST_KERNELS + FIGURES + LOCK_HEADERS + ("proto/", "client/", "tilewire/v1/", "google/rpc/",
                                                         "server/base/addresses.h", "server/base/environment.h", "server/base/lock_checks.h"), ()),
    "tests/devices/": (ENGINE + ("tests/devices/",), GRPC + PROTOBUF),
}

TOP = ("kernels/", "proto/", "server/", "client/", "tests/devices/")

# CUDA types appear only in these, so that everything else builds without CUDA.
CUDA_PLACES = re.compile(r"(_cuda\.(h|cc)|\.cuh?)$|^server/engine/device/cuda/|^kernels/(ladder|bench)/")
CUDA_PLACES_NAMES = "*_cuda.h, *_cuda.cc, *.cu, *.cuh, server/engine/device/cuda, kernels/ladder and kernels/bench"
CUDA_HEADER = re.compile(r"^(cuda|cub/|thrust/|cooperative_groups|nvtx3/|nvToolsExt|cublas|cupti|nv/)")


def layer_of(path):
    names = [name for name in LAYERS if path == name or (name.endswith("/") and path.startswith(name))]
    return max(names, key=len) if names else None


def is_foreign(header, patterns):
    return any(header == p or (p.endswith("/") and header.startswith(p)) or
               (p.startswith(".") and header.endswith(p)) for p in patterns)


class Includes:
    """Every include of every file: path → [(line, header)]."""

    def __init__(self, root, top=TOP):
        self.files = {}
        for path in tree.project_files(root, SUFFIXES):
            if not path.startswith(top):
                continue
            found = []
            for number, line in enumerate(tree.read_lines(root, path), 1):
                match = INCLUDE.match(line)
                if match:
                    found.append((number, match.group(1), match.group(2)))
            self.files[path] = found

    def reached(self, path):
        """Own headers that `path` includes, also through others, each with how it was reached."""
        way = {path: None}
        rest = [path]
        while rest:
            at = rest.pop()
            for _, _, header in self.files.get(at, []):
                if header in self.files and header not in way:
                    way[header] = at
                    rest.append(header)
        return way


def complaint(path, layer, forbidden, header):
    """Why `path` must not see the foreign header, or None."""
    if is_foreign(header, forbidden):
        return f"{layer} must not see {header}: no gRPC, protobuf or threads in a layer without them"
    if CUDA_HEADER.match(header) and not CUDA_PLACES.search(path):
        return f"must not see {header}: CUDA headers only in {CUDA_PLACES_NAMES}"
    return None


def problems_of(path, includes):
    layer = layer_of(path)
    if layer is None:
        yield f"{path}:1: belongs to no layer; name its folder in tests/layout/includes.py"
        return
    allowed, forbidden = LAYERS[layer]
    for number, kind, header in includes.files[path]:
        if kind == '"' and not any(header.startswith(prefix) for prefix in allowed):
            yield f"{path}:{number}: {layer} may not include \"{header}\"; allowed: {', '.join(allowed)}"
        if kind == "<" and header in UNCHECKED_LOCKS and path.startswith(("server/", "client/", "tests/devices/")) and \
                path != LOCK_HEADERS[0]:
            yield f"{path}:{number}: <{header}>: use {LOCK_HEADERS[0]}, whose locks the compiler checks"
    way = includes.reached(path)
    for header in way:
        for number, _, foreign in includes.files[header]:
            why = None if foreign in includes.files else complaint(path, layer, forbidden, foreign)
            if not why:
                continue
            steps = [header]
            while way[steps[-1]] is not None:
                steps.append(way[steps[-1]])
            if len(steps) > 1:
                line = next(n for n, _, h in includes.files[path] if h == steps[-2])
                why += f" (through {' -> '.join(reversed(steps[:-1]))})"
            else:
                line = number
            yield f"{path}:{line}: {why}"


def main():
    includes = Includes(sys.argv[1])
    problems = [p for path in includes.files for p in problems_of(path, includes)]
    tree.finish("includes", len(includes.files), problems)


if __name__ == "__main__":
    main()

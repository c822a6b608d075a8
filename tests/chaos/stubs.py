"""Calls by generated stubs, in every form: messages, streams, arrays that stay, shared memory."""
import mmap
import os
import re
import time

import grpc
import numpy as np
from model import DTYPES, NAMES
from tilewire.v1 import arrays_pb2 as ar
from tilewire.v1 import arrays_pb2_grpc, kernels_pb2_grpc, regions_pb2_grpc
from tilewire.v1 import kernels_pb2 as k
from tilewire.v1 import regions_pb2 as r
from tilewire.v1 import types_pb2 as t

PATIENCE = 300  # seconds: no call of a campaign may end by its deadline
CHUNK = 1 << 20
UNARY = 3 << 20
REGION = 48 << 20
OPTIONS = [("grpc.max_receive_message_length", 5 << 20), ("grpc.max_send_message_length", 5 << 20),
           ("grpc.enable_http_proxy", 0), ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.use_local_subchannel_pool", 1),
           ("grpc.min_reconnect_backoff_ms", 20_000), ("grpc.max_reconnect_backoff_ms", 500)]


def channel(target, ca):
    if target.startswith("unix:"):
        return grpc.insecure_channel(target, OPTIONS)
    with open(ca, "rb") as pem:
        return grpc.secure_channel(target, grpc.ssl_channel_credentials(pem.read()),
                                   [*OPTIONS, ("grpc.ssl_target_name_override", "localhost")])


def reason(error):
    """The word of ErrorInfo, between its tag and the domain."""
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    found = re.search(rb"\n[\x01-\x20]([A-Z_]+)\x12\x08tilewire", details)
    return found.group(1).decode() if found else ""


def spec(x):
    return t.ArraySpec(dtype=DTYPES[x.dtype.name], shape=x.shape)


def array(result, data):
    code = result.spec.dtype
    name = NAMES.get(code) or {9: "int64", 10: "uint64", 8: "int64", 7: "uint32"}[code]
    return np.frombuffer(data, name).reshape(list(result.spec.shape))


def message(case):
    operation = {"rmse": t.RmseOp, "transpose": t.TransposeOp, "gaussian_pdf": t.GaussianOp, "compare": t.CompareOp}
    return t.Operation(**{case.kind: operation[case.kind](**case.attributes)})


class Stubs:
    """One connection, or one for each call (`fresh`), with a token."""

    def __init__(self, target, ca, token, fresh=False, prefix=""):
        self.target, self.ca, self.fresh, self.prefix = target, ca, fresh, prefix
        self.metadata = (("authorization", f"Bearer {token}"),)
        self.rest = {"metadata": self.metadata, "timeout": PATIENCE}
        self.kept = {}       # case → (since, ids)
        self.region = None   # (since, id, memory)
        self.channel = None
        self.since = None    # since when the server has what the last call relied on
        self.opened = False  # whether the server has taken the stream that was called last

    def connect(self):
        if self.channel and self.fresh:
            self.close()
        if not self.channel:
            self.channel = channel(self.target, self.ca)
            self.kernels = kernels_pb2_grpc.KernelsStub(self.channel)
            self.arrays = arrays_pb2_grpc.ArraysStub(self.channel)
            self.regions = regions_pb2_grpc.RegionsStub(self.channel)

    def close(self):
        if self.channel:
            self.channel.close()
        self.channel = None

    # Each way: the results as arrays, and since when the server has had what the call relied on.
    def unary(self, case):
        operands = [t.Operand(spec=spec(x), data=x.tobytes()) for x in case.inputs]
        reply = self.kernels.Compute(k.ComputeRequest(operation=message(case), operands=operands), **self.rest)
        return [array(result, result.data) for result in reply.results], None

    def stream(self, case):
        first = k.Open(op=message(case), operands=[spec(x) for x in case.inputs])
        return self.receive(self.kernels.Execute(self.send(first, case.inputs), **self.rest)), None

    def stored(self, case):
        since = time.monotonic()
        if case.name in self.kept:
            since, ids = self.kept[case.name]
        else:
            ids = [self.put(x) for x in case.inputs]
            self.kept[case.name] = since, ids
        self.since = since
        reply = self.kernels.Compute(k.ComputeRequest(
            operation=message(case), operands=[t.Operand(array=i) for i in ids], options=t.Options(store=t.Store())), **self.rest)
        results = []
        for result in reply.results:
            results += self.receive(self.arrays.Get(ar.GetRequest(array=result.array), **self.rest))
        for result in reply.results:
            self.arrays.Delete(ar.DeleteRequest(array=result.array), **self.rest)
        return results, since

    def shared(self, case):
        """Operands, and where there is one result the result, in memory that both sides see."""
        since, region, memory = self.region or self.register()
        self.since = since
        at, operands = 0, []
        for x in case.inputs:
            memory[at:at + x.nbytes] = x.tobytes()
            operands.append(t.Operand(spec=spec(x), region=t.RegionPlace(region=region, offset=at)))
            at += -(-x.nbytes // 256) * 256
        options = t.Options(result_region=t.RegionPlace(region=region, offset=at))
        reply = self.kernels.Compute(k.ComputeRequest(operation=message(case), operands=operands, options=options), **self.rest)
        results = []
        for result in reply.results:
            begin, want = result.region.offset, array_bytes(result.spec)
            results.append(array(result, memory[begin:begin + want]))
        return results, since

    def put(self, x):
        call = self.arrays.Put(self.send(k.Open(put=k.PutOp(), operands=[spec(x)]), [x]), **self.rest)
        for reply in call:
            if reply.HasField("result"):
                made = reply.result.results[0].array
        return made

    def send(self, first, inputs):
        yield k.ExecuteRequest(open=first)
        flat = [x.tobytes() for x in inputs]
        for at in range(0, len(flat[0]), CHUNK):
            for operand, data in enumerate(flat):
                yield k.ExecuteRequest(chunk=t.Chunk(operand=operand, offset=at, data=data[at:at + CHUNK]))

    def receive(self, call):
        pieces, results = {}, []
        for reply in call:
            if reply.HasField("opened"):
                self.opened = True
            elif reply.HasField("chunk"):
                pieces.setdefault(reply.chunk.operand, []).append(reply.chunk.data)
            elif reply.HasField("result"):
                results = reply.result.results
        return [array(result, result.data or b"".join(pieces.get(i, []))) for i, result in enumerate(results)]

    def register(self):
        name = f"{self.prefix}-{os.getpid()}-{time.monotonic_ns()}"
        file = os.open("/dev/shm" + name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.ftruncate(file, REGION)
            memory, since = mmap.mmap(file, REGION), time.monotonic()
            made = self.regions.Register(r.RegisterRequest(shared_memory=r.SharedMemory(name=name, bytes=REGION), writable=True),
                                         **self.rest)
        finally:
            os.close(file)
            os.unlink("/dev/shm" + name)
        self.region = since, made.region, memory
        return self.region

    def forget(self):
        """After an error: what the server had of this client may be gone."""
        self.kept, self.region = {}, None

    def tidy(self):
        """Gives back what the server keeps for this client."""
        kept, region = self.kept, self.region
        self.since = min([since for since, _ in kept.values()] + ([region[0]] if region else []), default=None)
        self.forget()
        for _, ids in kept.values():
            for i in ids:
                self.arrays.Delete(ar.DeleteRequest(array=i), **self.rest)
        if region:
            self.regions.Unregister(r.UnregisterRequest(region=region[1]), **self.rest)

    def sweep(self):
        """Gives back what clients of this identity have left. How much that was."""
        self.connect()
        ids = [a.array for a in self.arrays.List(ar.ListRequest(), **self.rest).arrays]
        regions = [a.region for a in self.regions.List(r.ListRegionsRequest(), **self.rest).regions]
        for i in ids:
            self.arrays.Delete(ar.DeleteRequest(array=i), **self.rest)
        for i in regions:
            self.regions.Unregister(r.UnregisterRequest(region=i), **self.rest)
        self.close()
        return len(ids) + len(regions)


def array_bytes(of):
    size = {2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 4, 8: 8, 9: 8, 10: 8, 12: 4, 13: 8, 14: 8}[of.dtype]
    return size * int(np.prod(list(of.shape), dtype=np.int64))

"""What memory did over time: points of (seconds, bytes); and what a process has from malloc."""
import os
import select
import struct

from preloaded import build

MIB = 1 << 20


def slope(points):
    """MiB a minute, by least squares; 0 of fewer than three."""
    if len(points) < 3:
        return 0.0
    when = [(at - points[0][0]) / 60 for at, _ in points]
    size = [value / MIB for _, value in points]
    mean_when, mean_size = sum(when) / len(when), sum(size) / len(size)
    spread = sum((x - mean_when) ** 2 for x in when)
    return sum((x - mean_when) * (y - mean_size) for x, y in zip(when, size)) / spread if spread else 0.0


def quarters(points):
    """Mean bytes in the first quarter of the time and in the last; the first tenth, in which all is new, is left out."""
    if not points:
        return 0.0, 0.0
    begin, end = points[0][0], points[-1][0]
    begin += (end - begin) / 10
    first = [size for at, size in points if begin <= at <= begin + (end - begin) / 4] or [points[0][1]]
    last = [size for at, size in points if at >= end - (end - begin) / 4]
    return sum(first) / len(first), sum(last) / len(last)


def course(points):
    """Seconds, bytes in the first quarter and in the last, most bytes, MiB a minute."""
    first, last = quarters(points)
    return {"seconds": points[-1][0] - points[0][0], "first": first, "last": last, "most": max(size for _, size in points),
            "slope": slope(points)}


class Heap:
    """Of a process that is started with this environment. Without a compiler nothing is known."""
    PATIENCE = 10  # seconds: a stopped process does not answer

    def __init__(self, folder):
        self.environment, self.asked, library = {}, 0, build("heap.cc", folder)
        if library is None:
            return
        path = os.path.join(folder, "heap")
        for end in (".questions", ".answers"):
            os.mkfifo(path + end)
        self.questions, self.answers = (os.open(path + end, os.O_RDWR | os.O_CLOEXEC) for end in (".questions", ".answers"))
        self.environment = {"LD_PRELOAD": library, "HEAP": path}

    def bytes(self):
        """As of now, or None."""
        if not self.environment:
            return None
        self.asked += 1
        os.write(self.questions, struct.pack("Q", self.asked))
        while select.select([self.answers], [], [], self.PATIENCE)[0]:
            question, size = struct.unpack("QQ", os.read(self.answers, 16))
            if question == self.asked:  # an earlier one may have come late
                return size
        return None

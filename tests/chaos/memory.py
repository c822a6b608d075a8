"""What memory did over time: points of (seconds, bytes)."""
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

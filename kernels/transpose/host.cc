// The host version: chunks that fit a core's cache, each by the loop that suits its shape.
#include <algorithm>
#include <cstring>

#include "kernels/transpose/box.h"
#include "kernels/transpose/host_tile.h"
#include "kernels/transpose/transpose.h"

namespace tilewire::transpose {
namespace {

constexpr int64_t kItemBytes = 256 << 10;
constexpr int64_t kLineBytes = 64;
constexpr int64_t kLongAxis = 16;       // from here on a plain loop over one axis pays
constexpr int64_t kTableEntries = 256;  // below it, several tiny axes become one through a table of offsets

/// One axis of a chunk; strides in bytes.
struct Axis {
  int64_t extent, in_stride, out_stride;
};

/// The axes of a chunk that are left to iterate, fastest output axis first.
struct Axes {
  int count = 0;
  Axis axis[kMaxRank];

  Axis Take(int index) {
    const Axis taken = axis[index];
    std::copy(axis + index + 1, axis + count, axis + index);
    --count;
    return taken;
  }
};

/// Calls body(in, out) at every index of `axes`.
template <typename Body>
void ForEach(const Axes& axes, const char* in, char* out, Body body) {
  int64_t at[kMaxRank] = {};
  for (;;) {
    body(in, out);
    int i = 0;
    for (; i < axes.count; ++i) {
      const Axis& a = axes.axis[i];
      in += a.in_stride;
      out += a.out_stride;
      if (++at[i] < a.extent) break;
      at[i] = 0;
      in -= a.extent * a.in_stride;
      out -= a.extent * a.out_stride;
    }
    if (i == axes.count) return;
  }
}

/// Copies one unit of kBytes, or of `bytes` < kLineBytes where kBytes is 0, without a call.
template <int kBytes>
inline void CopyUnit(char* out, const char* in, [[maybe_unused]] int64_t bytes) {
  if constexpr (kBytes > 0) {
    std::memcpy(out, in, kBytes);
  } else if (bytes >= 16) {
    for (int64_t i = 0; i + 16 < bytes; i += 16) std::memcpy(out + i, in + i, 16);
    std::memcpy(out + bytes - 16, in + bytes - 16, 16);
  } else if (bytes >= 8) {
    std::memcpy(out, in, 8);
    std::memcpy(out + bytes - 8, in + bytes - 8, 8);
  } else if (bytes >= 4) {
    std::memcpy(out, in, 4);
    std::memcpy(out + bytes - 4, in + bytes - 4, 4);
  } else {
    for (int64_t i = 0; i < bytes; ++i) out[i] = in[i];
  }
}

/// Units along one long axis, whatever its strides.
template <int kBytes>
void CopyAlongLongest(Axes axes, int longest, const char* in, char* out, int64_t bytes) {
  const Axis run = axes.Take(longest);
  ForEach(axes, in, out, [&](const char* from, char* to) {
    for (int64_t i = 0; i < run.extent; ++i)
      CopyUnit<kBytes>(to + i * run.out_stride, from + i * run.in_stride, bytes);
  });
}

/// Units along the fastest axes of both sides, which differ. A cache line's worth of x at a time, all of y:
/// few output lines are open at once, and each is finished before it leaves the cache.
template <int kBytes>
void CopyAlongBoth(Axes axes, int fastest_in, const char* in, char* out, int64_t bytes) {
  const Axis x = axes.Take(fastest_in), y = axes.Take(0);
  const int64_t step = std::max<int64_t>(1, kLineBytes / x.in_stride);
  ForEach(axes, in, out, [&](const char* from, char* to) {
    for (int64_t begin = 0; begin < x.extent; begin += step) {
      const int64_t end = std::min(begin + step, x.extent);
      for (int64_t j = 0; j < y.extent; ++j)
        for (int64_t i = begin; i < end; ++i)
          CopyUnit<kBytes>(to + j * y.out_stride + i * x.out_stride, from + j * y.in_stride + i * x.in_stride,
                           bytes);
    }
  });
}

/// Units along several tiny axes at once.
template <int kBytes>
void CopyByTable(Axes axes, const char* in, char* out, int64_t bytes) {
  int64_t in_at[kTableEntries], out_at[kTableEntries];
  int64_t entries = 1;
  in_at[0] = out_at[0] = 0;
  while (axes.count > 0 && entries * axes.axis[0].extent <= kTableEntries) {
    const Axis a = axes.Take(0);
    for (int64_t i = entries; i < entries * a.extent; ++i) {
      in_at[i] = in_at[i - entries] + a.in_stride;
      out_at[i] = out_at[i - entries] + a.out_stride;
    }
    entries *= a.extent;
  }
  ForEach(axes, in, out, [&](const char* from, char* to) {
    for (int64_t i = 0; i < entries; ++i) CopyUnit<kBytes>(to + out_at[i], from + in_at[i], bytes);
  });
}

template <int kBytes>
void CopyUnits(const Axes& axes, const char* in, char* out, int64_t bytes = kBytes) {
  int longest = 0, fastest_in = 0;
  for (int i = 1; i < axes.count; ++i) {
    if (axes.axis[i].extent > axes.axis[longest].extent) longest = i;
    if (axes.axis[i].in_stride < axes.axis[fastest_in].in_stride) fastest_in = i;
  }
  if (fastest_in > 0 && std::min(axes.axis[0].extent, axes.axis[fastest_in].extent) >= kLongAxis)
    CopyAlongBoth<kBytes>(axes, fastest_in, in, out, bytes);
  else if (axes.count > 0 && axes.axis[longest].extent >= kLongAxis)
    CopyAlongLongest<kBytes>(axes, longest, in, out, bytes);
  else
    CopyByTable<kBytes>(axes, in, out, bytes);
}

/// Rows that both sides store without a gap.
void CopyRows(const Axes& axes, const char* in, char* out, int64_t row_bytes) {
  if (row_bytes < kLineBytes) {
    CopyUnits<0>(axes, in, out, row_bytes);
  } else {
    ForEach(axes, in, out, [row_bytes](const char* from, char* to) {
      std::memcpy(to, from, static_cast<size_t>(row_bytes));
    });
  }
}

template <int kBytes>
void CopyChunk(Axes axes, const char* in, char* out) {
  int x = -1, y = -1;  // the fastest axes of both sides, where they are contiguous and long enough for blocks
  for (int i = 0; i < axes.count; ++i) {
    if (axes.axis[i].extent < 16 / kBytes) continue;
    if (axes.axis[i].in_stride == kBytes) x = i;
    if (axes.axis[i].out_stride == kBytes) y = i;
  }
  if (x < 0 || y < 0) return CopyUnits<kBytes>(axes, in, out);
  const Axis fast_in = axes.axis[x], fast_out = axes.axis[y];
  axes.Take(std::max(x, y));
  axes.Take(std::min(x, y));
  ForEach(axes, in, out, [&](const char* from, char* to) {
    TransposeTiles<kBytes>(from, fast_out.in_stride, to, fast_in.out_stride, fast_in.extent, fast_out.extent);
  });
}

void CopyBox(const Box& box, const void* in, void* out) {
  const int64_t size = box.element_bytes;
  int order[kMaxRank];
  OutputOrder(box, order);
  Axes axes;
  int64_t row_bytes = 0;
  for (int i = 0; i < box.rank; ++i) {
    const int a = order[i];
    if (box.dims[a] == 1) continue;
    if (box.in_strides[a] == 1 && box.out_strides[a] == 1)
      row_bytes = box.dims[a] * size;
    else
      axes.axis[axes.count++] = {box.dims[a], box.in_strides[a] * size, box.out_strides[a] * size};
  }
  const char* from = static_cast<const char*>(in) + box.in_offset * size;
  char* to = static_cast<char*>(out) + box.out_offset * size;
  if (row_bytes > 0) return CopyRows(axes, from, to, row_bytes);
  switch (size) {
    case 1:
      return CopyChunk<1>(axes, from, to);
    case 2:
      return CopyChunk<2>(axes, from, to);
    case 4:
      return CopyChunk<4>(axes, from, to);
    case 8:
      return CopyChunk<8>(axes, from, to);
    default:
      return CopyChunk<16>(axes, from, to);
  }
}

Chunks HostChunks(const Box& box) {
  return MakeChunks(box, kItemBytes / box.element_bytes, kLineBytes / box.element_bytes);
}

}  // namespace

int64_t HostItems(const Plan& plan, const Range& range) {
  return HostChunks(MakeBox(plan.layout(), range)).total;
}

void HostRange(const Plan& plan, const Range& range, int64_t item_begin, int64_t item_end, const void* in,
               void* out) {
  const Box box = MakeBox(plan.layout(), range);
  const Chunks chunks = HostChunks(box);
  for (int64_t item = item_begin; item < item_end; ++item) CopyBox(ChunkBox(box, chunks, item), in, out);
}

}  // namespace tilewire::transpose

#include "client/cpp/source.h"

#include <algorithm>
#include <cstring>

#include "client/cpp/npy.h"

namespace tilewire::client {
namespace {

constexpr uint64_t kWindowBytes = 32 << 20;
constexpr uint64_t kDropBytes = 16 << 20;
/// More than the largest page.
constexpr uint64_t kPageSlack = 64 << 10;
/// Rows and columns of one tile of FortranToC: 64 × 64 elements of up to 16 bytes stay in a level 2 cache.
constexpr int64_t kTile = 64;

/// Walks the axes but the first in C order and knows the element offset in Fortran storage.
class InnerWalk {
 public:
  InnerWalk(const Shape& shape, int64_t position) : shape_(shape) {
    int64_t stride = 1;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      stride_[axis] = stride;
      stride *= shape.dim(axis);
    }
    for (int axis = shape.rank() - 1; axis >= 1; --axis) {
      index_[axis] = position % shape.dim(axis);
      position /= shape.dim(axis);
      offset_ += index_[axis] * stride_[axis];
    }
  }
  int64_t offset() const { return offset_; }
  void Next() {
    for (int axis = shape_.rank() - 1; axis >= 1; --axis) {
      offset_ += stride_[axis];
      if (++index_[axis] < shape_.dim(axis)) return;
      offset_ -= index_[axis] * stride_[axis];
      index_[axis] = 0;
    }
  }

 private:
  const Shape& shape_;
  int64_t stride_[kMaxRank] = {};
  int64_t index_[kMaxRank] = {};
  int64_t offset_ = 0;
};

/// Columns [column, column + columns) of rows [row, row + rows). A row is one index of the first axis, a
/// column one position in the rest; `out` is where (row, column) goes, rows are `pitch` elements apart.
template <int kSize>
void CopyBox(const Shape& shape, const uint8_t* in, int64_t row, int64_t rows, int64_t column,
             int64_t columns, int64_t pitch, uint8_t* out) {
  for (int64_t r = 0; r < rows; r += kTile) {
    const int64_t tile_rows = std::min(kTile, rows - r);
    InnerWalk walk(shape, column);
    for (int64_t c = 0; c < columns; ++c, walk.Next()) {
      const uint8_t* from = in + (walk.offset() + row + r) * kSize;
      uint8_t* to = out + (r * pitch + c) * kSize;
      for (int64_t i = 0; i < tile_rows; ++i) std::memcpy(to + i * pitch * kSize, from + i * kSize, kSize);
    }
  }
}

template <int kSize>
void Convert(const Shape& shape, const uint8_t* in, int64_t begin, int64_t end, uint8_t* out) {
  const int64_t inner = shape.elements() / shape.dim(0);
  while (begin < end) {
    const int64_t row = begin / inner;
    const int64_t column = begin % inner;
    if (column == 0 && end - begin >= inner) {
      const int64_t rows = (end - begin) / inner;
      CopyBox<kSize>(shape, in, row, rows, 0, inner, inner, out);
      begin += rows * inner;
      out += rows * inner * kSize;
    } else {
      const int64_t columns = std::min(inner - column, end - begin);
      CopyBox<kSize>(shape, in, row, 1, column, columns, inner, out);
      begin += columns;
      out += columns * kSize;
    }
  }
}

}  // namespace

void FortranToC(const ArraySpec& spec, const uint8_t* in, int64_t begin, int64_t end, uint8_t* out) {
  if (spec.shape.rank() < 2) {
    std::memcpy(out, in + begin * SizeOf(spec.dtype),
                static_cast<size_t>((end - begin) * SizeOf(spec.dtype)));
    return;
  }
  switch (SizeOf(spec.dtype)) {
    case 1:
      return Convert<1>(spec.shape, in, begin, end, out);
    case 2:
      return Convert<2>(spec.shape, in, begin, end, out);
    case 4:
      return Convert<4>(spec.shape, in, begin, end, out);
    case 8:
      return Convert<8>(spec.shape, in, begin, end, out);
    default:
      return Convert<16>(spec.shape, in, begin, end, out);
  }
}

Result<ArraySource> ArraySource::OpenNpy(const std::string& path) {
  TILEWIRE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  TILEWIRE_ASSIGN_OR_RETURN(const NpyHeader header,
                            ParseNpyHeader(file->bytes(), file->bytes().size(), path));
  // With fewer than two axes that are longer than 1 both orders are the same bytes.
  const auto dims = header.spec.shape.dims();
  const bool fortran_order =
      header.fortran_order && std::ranges::count_if(dims, [](int64_t d) { return d > 1; }) > 1;
  if (!fortran_order) file->AdviseSequential();
  const uint8_t* const data = file->bytes().data() + header.data_offset;
  return ArraySource(header.spec, Local{data, fortran_order, std::move(file)});
}

ArraySource ArraySource::FromMemory(const ArraySpec& spec, const void* data) {
  return ArraySource(spec, Local{.data = static_cast<const uint8_t*>(data)});
}

ArraySource ArraySource::Resident(std::string id, std::optional<ArraySpec> spec) {
  return ArraySource(std::move(spec), Stored{std::move(id)});
}

ArraySource ArraySource::Region(RegionPlace place, const ArraySpec& spec) {
  return ArraySource(spec, std::move(place));
}

uint64_t ArraySource::wire_bytes() const {
  struct Visitor {
    const ArraySource& source;
    uint64_t operator()(const Local&) const { return static_cast<uint64_t>(source.spec().bytes()); }
    uint64_t operator()(const Stored&) const { return 0; }
    uint64_t operator()(const RegionPlace&) const { return 0; }
  };
  return std::visit(Visitor{*this}, place_);
}

bool ArraySource::fortran_order() const {
  const auto* local = std::get_if<Local>(&place_);
  return local != nullptr && local->fortran_order;
}

ArraySource ArraySource::AsStored() const {
  ArraySource stored = *this;
  if (!fortran_order()) return stored;
  std::vector<int64_t> dims(spec().shape.dims().begin(), spec().shape.dims().end());
  std::ranges::reverse(dims);
  stored.spec_->shape = *Shape::Make(dims);  // the same extents as a valid shape, so valid
  std::get<Local>(stored.place_).fortran_order = false;
  return stored;
}

SourceSlice SourceReader::Slice(uint64_t offset, uint64_t bytes) {
  if (!bytes_.fortran_order) return {{bytes_.data + offset, bytes}, bytes_.file};
  const bool inside =
      window_ && offset >= window_offset_ && offset + bytes <= window_offset_ + window_->size();
  if (!inside) {
    const auto total = static_cast<uint64_t>(spec_.bytes());
    const auto size = static_cast<uint64_t>(SizeOf(spec_.dtype));
    const uint64_t length = std::min(total - offset, std::max(bytes, kWindowBytes));
    auto window = std::make_shared<std::vector<uint8_t>>(length);
    FortranToC(spec_, bytes_.data, static_cast<int64_t>(offset / size),
               static_cast<int64_t>((offset + length) / size), window->data());
    window_ = std::move(window);
    window_offset_ = offset;
  }
  return {{window_->data() + (offset - window_offset_), bytes}, window_};
}

void SourceReader::Done(uint64_t offset, uint64_t bytes) {
  if (bytes_.fortran_order || !bytes_.file) return;
  const auto start = static_cast<uint64_t>(bytes_.data - bytes_.file->bytes().data());
  const auto drop = [&](uint64_t begin, uint64_t end) {
    if (end > begin) bytes_.file->Drop(start + begin, end - begin);
  };
  if (offset != done_end_) {
    drop(done_begin_, done_end_);
    done_begin_ = offset;
  }
  done_end_ = offset + bytes;
  if (done_end_ - done_begin_ < kDropBytes) return;
  drop(done_begin_, done_end_);
  // The page that the end cuts is dropped next time.
  done_begin_ = done_end_ - std::min(done_end_ - done_begin_, kPageSlack);
}

}  // namespace tilewire::client

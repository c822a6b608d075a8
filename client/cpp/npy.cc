#include "client/cpp/npy.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace tilewire::client {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
/// numpy refuses headers over 10,000 bytes by default; no array of ours comes near this.
constexpr uint64_t kMaxHeaderBytes = 64 * 1024;

Status BadFile(std::string_view message) {
  return Status(Code::kInvalidArgument, "BAD_FILE", message);
}

tl::unexpected<Status> FailFile(std::string_view name, std::string_view what) {
  return Fail(BadFile(std::string(name) + ": " + std::string(what)));
}

/// Text for messages: control and non-ASCII bytes replaced, at most 40 characters.
std::string Printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 40)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return text.size() > 40 ? out + "..." : out;
}

/// Reads the dictionary literal of a header. Every method leaves the position after what it read, or fails
/// with a message; nothing is read beyond the text.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : text_(text) {}

  /// Fills `header`'s dtype, order and shape.
  Status Read(NpyHeader* header);

 private:
  void SkipSpace() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    SkipSpace();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  Status Damaged(std::string_view expected) const {
    return BadFile("damaged .npy header: expected " + std::string(expected) + " at \"" +
                   Printable(text_.substr(std::min(at_, text_.size()))) + "\"");
  }
  std::optional<std::string_view> TakeString() {
    SkipSpace();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return std::nullopt;
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }
  Status ReadEntry(std::string_view key, NpyHeader* header);
  Status ReadDescr();
  Status ReadShape();

  std::string_view text_;
  size_t at_ = 0;
  bool order_seen_ = false, shape_seen_ = false;
  std::optional<DType> dtype_;
  std::vector<int64_t> dims_;
};

Status DictReader::Read(NpyHeader* header) {
  if (!Take('{')) return Damaged("'{'");
  while (!Take('}')) {
    const auto key = TakeString();
    if (!key) return Damaged("a quoted key");
    if (!Take(':')) return Damaged("':'");
    TILEWIRE_RETURN_IF_ERROR(ReadEntry(*key, header));
    if (!Take(',')) {
      if (!Take('}')) return Damaged("',' or '}'");
      break;
    }
  }
  SkipSpace();
  if (at_ != text_.size()) return Damaged("the end of the header");
  if (!dtype_ || !order_seen_ || !shape_seen_)
    return BadFile("damaged .npy header: 'descr', 'fortran_order' and 'shape' must all be there");
  for (const int64_t dim : dims_)
    if (dim == 0)
      return BadFile("the array has no elements (an axis of its shape is 0); Tilewire needs one or more");
  TILEWIRE_ASSIGN_OR_RETURN(header->spec, MakeSpec(*dtype_, dims_, "array"));
  return {};
}

Status DictReader::ReadEntry(std::string_view key, NpyHeader* header) {
  if (key == "descr" && !dtype_) return ReadDescr();
  if (key == "shape" && !shape_seen_) return ReadShape();
  if (key == "fortran_order" && !order_seen_) {
    header->fortran_order = TakeWord("True");
    if (!header->fortran_order && !TakeWord("False")) return Damaged("True or False");
    order_seen_ = true;
    return {};
  }
  return BadFile("damaged .npy header: unknown or repeated key '" + Printable(key) + "'");
}

Status DictReader::ReadDescr() {
  SkipSpace();
  if (at_ < text_.size() && text_[at_] == '[')
    return BadFile("structured dtype " + Printable(text_.substr(at_)) + " is not supported");
  const auto descr = TakeString();
  if (!descr) return Damaged("a quoted dtype");
  auto dtype = ParseNpyDescr(*descr);
  if (!dtype) return BadFile(std::string(dtype.error().message()) + " is not supported");
  dtype_ = *dtype;
  return {};
}

Status DictReader::ReadShape() {
  if (!Take('(')) return Damaged("'('");
  while (!Take(')')) {
    SkipSpace();
    int64_t dim = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), dim);
    if (error == std::errc::result_out_of_range) return BadFile("an axis of the shape is over 2^63");
    if (error != std::errc() || dim < 0) return Damaged("an axis length");
    at_ += static_cast<size_t>(end - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote 3L
    if (dims_.size() == 1024) return BadFile("the shape has over 1,024 axes");
    dims_.push_back(dim);
    if (!Take(',')) {
      if (!Take(')')) return Damaged("',' or ')'");
      break;
    }
  }
  shape_seen_ = true;
  return {};
}

/// Names of the type characters that numpy has and Tilewire has not.
std::string_view ForeignKind(char kind) {
  switch (kind) {
    case 'O':
      return "object dtype";
    case 'U':
      return "unicode string dtype";
    case 'S':
    case 'a':
      return "byte string dtype";
    case 'M':
    case 'm':
      return "date or time dtype";
    case 'V':
      return "void dtype";
    default:
      return "dtype";
  }
}

}  // namespace

Result<DType> ParseNpyDescr(std::string_view descr) {
  const std::string quoted = " '" + Printable(descr) + "'";
  std::string_view type = descr;
  char order = '=';
  if (!type.empty() && std::string_view("<>=|").find(type[0]) != std::string_view::npos) {
    order = type[0];
    type.remove_prefix(1);
  }
  if (type == "?") type = "b1";
  if (type.empty()) return Fail(BadFile("dtype" + quoted));
  for (const DTypeInfo& info : AllDTypes()) {
    if (info.npy_descr.substr(1) != type) continue;
    if (order == '>' && info.size > 1) return Fail(BadFile("big-endian dtype" + quoted));
    return info.dtype;
  }
  return Fail(BadFile(std::string(ForeignKind(type[0])) + quoted));
}

Result<NpyHeader> ParseNpyHeader(std::span<const uint8_t> prefix, uint64_t file_bytes,
                                 std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  if (text.empty()) return FailFile(name, "is empty");
  if (text.substr(0, kMagic.size()) != kMagic.substr(0, text.size()))
    return FailFile(name, "is no .npy file");
  if (text.size() < 10) return FailFile(name, "ends within the .npy header");

  NpyHeader header;
  header.major_version = prefix[6];
  if (header.major_version < 1 || header.major_version > 3)
    return FailFile(name, ".npy version " + std::to_string(header.major_version) + "." +
                              std::to_string(prefix[7]) + " is not supported (1 to 3 are)");
  const size_t start = header.major_version == 1 ? 10 : 12;
  uint64_t length = prefix[8] | uint64_t{prefix[9]} << 8;
  if (header.major_version > 1) {
    if (text.size() < start) return FailFile(name, "ends within the .npy header");
    length |= uint64_t{prefix[10]} << 16 | uint64_t{prefix[11]} << 24;
  }
  if (length > kMaxHeaderBytes)
    return FailFile(name, "damaged .npy header: its length is " + std::to_string(length) +
                              " bytes, allowed are " + std::to_string(kMaxHeaderBytes));
  header.data_offset = start + length;
  if (header.data_offset > text.size()) return FailFile(name, "ends within the .npy header");

  const Status read = DictReader(text.substr(start, length)).Read(&header);
  if (!read.ok()) return FailFile(name, read.message());
  const auto need = static_cast<uint64_t>(header.spec.bytes());
  const uint64_t have = file_bytes < header.data_offset ? 0 : file_bytes - header.data_offset;
  if (have < need)
    return FailFile(name, "is truncated: its header promises " + std::to_string(need) + " bytes of data, " +
                              std::to_string(have) + " are there");
  return header;
}

std::string FormatNpyHeader(const ArraySpec& spec) {
  std::string dict =
      "{'descr': '" + std::string(Info(spec.dtype).npy_descr) + "', 'fortran_order': False, 'shape': ";
  std::string shape = spec.shape.ToString();
  if (spec.shape.rank() == 1) shape.insert(shape.size() - 1, ",");
  dict += shape + ", }";
  const size_t unpadded = 10 + dict.size() + 1;
  dict.append((64 - unpadded % 64) % 64, ' ');
  dict += '\n';
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  return out + dict;
}

}  // namespace tilewire::client

// Small calls in one step: what is made of arguments and of the result costs more in Python than the call.
#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "client/python/core/bind.h"
#include "client/python/core/call.h"
#include "client/python/core/connection.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace)

namespace tilewire::python {
namespace {

using client::ArraySource;

/// What the buffer protocol calls the dtypes that RMSE takes, of this machine's C.
std::optional<DType> FromFormat(std::string_view format) {
  static_assert(sizeof(short) == 2 && sizeof(int) == 4 && sizeof(long) == 8 && sizeof(long long) == 8);
  if (format.size() != 1) return std::nullopt;
  switch (format[0]) {
    case 'b':
      return DType::kI8;
    case 'B':
      return DType::kU8;
    case 'h':
      return DType::kI16;
    case 'H':
      return DType::kU16;
    case 'i':
      return DType::kI32;
    case 'I':
      return DType::kU32;
    case 'l':
    case 'q':
      return DType::kI64;
    case 'L':
    case 'Q':
      return DType::kU64;
    case 'e':
      return DType::kF16;
    case 'f':
      return DType::kF32;
    case 'd':
      return DType::kF64;
    default:
      return std::nullopt;
  }
}

/// Memory of an array, while it lives. Needs the GIL.
class View {
 public:
  explicit View(nb::handle array)
      : taken_(PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0) {
    if (!taken_) PyErr_Clear();  // another way says why
  }
  ~View() {
    if (taken_) PyBuffer_Release(&buffer_);
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  /// Nothing where it is not in C order, has a dtype that is not among those above, or a shape of no array.
  std::optional<ArraySource> source() const {
    if (!taken_) return std::nullopt;
    const auto dtype = FromFormat(buffer_.format == nullptr ? "B" : buffer_.format);
    if (!dtype) return std::nullopt;
    const std::vector<int64_t> dims(buffer_.shape, buffer_.shape + buffer_.ndim);
    const auto spec = MakeSpec(*dtype, dims, "array");
    if (!spec) return std::nullopt;
    return ArraySource::FromMemory(*spec, buffer_.buf);
  }

 private:
  Py_buffer buffer_{};
  const bool taken_;
};

/// RMSE over all axes of two plain arrays: the call, which has run, and its value. None where the arrays are
/// not plain or not alike; nothing was sent then, and what is wrong, if anything, is for the long way to say.
nb::object QuickRmse(const Connection& on, nb::handle a, nb::handle b, int output,
                     const client::CallOptions& options) {
  const View views[] = {View(a), View(b)};
  const auto left = views[0].source(), right = views[1].source();
  if (!left || !right || left->spec() != right->spec()) return nb::none();
  const ArraySource sources[] = {*left, *right};
  double value = 0;
  const client::RmseOp op{.output = static_cast<client::RmseOutput>(output)};
  auto call = std::make_unique<Call>(
      options, on.explain, [&](const client::CallOptions& with, std::optional<client::OwnedArray>*) {
        return on.client->Execute(op, sources, Into(reinterpret_cast<uintptr_t>(&value), sizeof value), with);
      });
  RunHere(*call);
  return nb::make_tuple(nb::cast(call.release(), nb::rv_policy::take_ownership), value);
}

}  // namespace

void BindQuick(nb::class_<Connection>& binding) {
  binding.def(
      "quick_rmse", &QuickRmse, "a"_a, "b"_a, "output"_a, "options"_a,
      nb::sig("def quick_rmse(self, a: object, b: object, output: int, options: Options) -> tuple[Call, "
              "float] | None"));
}

}  // namespace tilewire::python

// Arrays that lie in memory of a CUDA device, and handles by which another process opens them.
#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>

#include "client/python/core/bind.h"
#include "client/python/core/errors.h"
#include "client/python/core/unlocked.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace)

namespace tilewire::python {
namespace {

using Address = unsigned long long;  // CUdeviceptr

/// What is needed of the driver's API, whose library is there wherever an array lies on a device: linking it
/// would keep the module from loading where there is none. Signatures: CUDA Driver API, versions of the
/// names.
class Driver {
 public:
  /// The process's; null where there is none.
  static const Driver* Find() {
    static const Driver driver;
    return driver.complete_ ? &driver : nullptr;
  }

  int (*pointer_attribute)(void* value, int attribute, Address address) = nullptr;
  int (*push_context)(void* context) = nullptr;
  int (*pop_context)(void** context) = nullptr;
  int (*address_range)(Address* base, size_t* bytes, Address address) = nullptr;
  int (*export_memory)(std::byte* handle, Address address) = nullptr;
  int (*wait_for_stream)(void* stream) = nullptr;

 private:
  Driver() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    complete_ = Take(library, "cuPointerGetAttribute", &pointer_attribute) &&
                Take(library, "cuCtxPushCurrent_v2", &push_context) &&
                Take(library, "cuCtxPopCurrent_v2", &pop_context) &&
                Take(library, "cuMemGetAddressRange_v2", &address_range) &&
                Take(library, "cuIpcGetMemHandle", &export_memory) &&
                Take(library, "cuStreamSynchronize", &wait_for_stream);
  }
  template <typename Function>
  static bool Take(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    return *function != nullptr;
  }

  bool complete_ = false;
};

/// The context that owns an address, current while this lives.
class ContextOf {
 public:
  ContextOf(const Driver& driver, Address address) : driver_(driver) {
    constexpr int kContext = 1;  // CU_POINTER_ATTRIBUTE_CONTEXT
    void* context = nullptr;
    current_ = driver.pointer_attribute(static_cast<void*>(&context), kContext, address) == 0 &&
               context != nullptr && driver.push_context(context) == 0;
  }
  ~ContextOf() {
    void* context = nullptr;
    if (current_) driver_.pop_context(&context);
  }
  ContextOf(const ContextOf&) = delete;
  ContextOf& operator=(const ContextOf&) = delete;
  explicit operator bool() const { return current_; }

 private:
  const Driver& driver_;
  bool current_ = false;
};

/// An array that its library lends; it stays as long as this.
struct Lent {
  nb::ndarray<nb::ro> array;

  Address address() const { return reinterpret_cast<Address>(array.data()); }
  bool InOrder() const {
    int64_t wanted = 1;
    for (size_t axis = array.ndim(); axis-- > 0;) {
      if (array.shape(axis) > 1 && array.stride(axis) != wanted) return false;
      wanted *= static_cast<int64_t>(array.shape(axis));
    }
    return true;
  }
  nb::tuple Shape() const {
    nb::list dims;
    for (size_t axis = 0; axis < array.ndim(); ++axis) dims.append(array.shape(axis));
    return nb::tuple(dims);
  }
  /// numpy's name of the dtype; empty where there is none.
  std::string DType() const {
    constexpr std::array kNames = {"int", "uint", "float", "", "bfloat", "complex", "bool"};
    const nb::dlpack::dtype dtype = array.dtype();
    if (dtype.lanes != 1 || dtype.code >= kNames.size()) return "";
    const std::string name = kNames[dtype.code];
    return name == "bool" ? name : name + std::to_string(dtype.bits);
  }
};

/// Waits for what the array's library does to it on the legacy stream, and exports the allocation that it
/// lies in: the 64 bytes of a CUipcMemHandle, and where in it the array begins, bytes. None where the driver
/// does not export that memory: of a pool, virtual, or managed.
nb::object Export(const Lent& lent) {
  const Driver* const driver = Driver::Find();
  if (driver == nullptr) return nb::none();
  std::array<std::byte, 64> handle{};
  Address base = 0;
  bool done = false;
  {
    const Unlocked released;
    size_t bytes = 0;
    auto* const legacy = reinterpret_cast<void*>(1);  // CU_STREAM_LEGACY, as DLPack's stream 1
    const ContextOf context(*driver, lent.address());
    done = context && driver->wait_for_stream(legacy) == 0 &&
           driver->address_range(&base, &bytes, lent.address()) == 0 &&
           driver->export_memory(handle.data(), base) == 0;
  }
  if (!done) return nb::none();
  return nb::make_tuple(nb::bytes(reinterpret_cast<const char*>(handle.data()), handle.size()),
                        lent.address() - base);
}

}  // namespace

void BindDevice(nb::module_& module) {
  nb::class_<Lent>(module, "Lent")
      .def(
          "__init__",
          [](Lent* lent, const nb::object& capsule) {
            new (lent) Lent{nb::cast<nb::ndarray<nb::ro>>(capsule)};
          },
          "capsule"_a)
      .def_prop_ro("address", &Lent::address)
      .def_prop_ro("nbytes", [](const Lent& lent) { return lent.array.nbytes(); })
      .def_prop_ro("shape", &Lent::Shape, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("dtype", &Lent::DType)
      .def_prop_ro("in_order", &Lent::InOrder)
      .def("export", &Export, nb::sig("def export(self) -> tuple[bytes, int] | None"));
}

}  // namespace tilewire::python

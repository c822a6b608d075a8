#include "kernels/bench/geam.h"

#include <dlfcn.h>

#include <vector>

namespace tilewire::bench {
namespace {

// cuBLAS's own declarations, as far as they are needed: its headers need not be there.
using Handle = void*;
using StatusCode = int;  // 0 is success
constexpr int kOpN = 0, kOpT = 1;

template <typename Function>
Function Find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

Status FromCublas(StatusCode code, const std::string& what) {
  if (code == 0) return {};
  return Status(Code::kInternal, "CUBLAS", what + " returned " + std::to_string(code));
}

template <typename Number>
StatusCode Run(void* library, const char* name, Handle handle, const void* in, void* out, int rows,
               int columns) {
  using Function = StatusCode (*)(Handle, int, int, int, int, const Number*, const Number*, int,
                                  const Number*, const Number*, int, Number*, int);
  const auto geam = Find<Function>(library, name);
  if (geam == nullptr) return -1;
  // Two numbers, so that complex factors are 1 + 0i and 0 + 0i. The row-major input is a column-major matrix
  // of `columns` rows, the output its transpose.
  const Number one[2] = {1, 0}, zero[2] = {0, 0};
  auto* to = static_cast<Number*>(out);
  return geam(handle, kOpT, kOpN, rows, columns, one, static_cast<const Number*>(in), columns, zero, to, rows,
              to, rows);
}

}  // namespace

Result<std::shared_ptr<Geam>> Geam::Load(const std::string& path) {
  const std::vector<std::string> usual = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                          "libcublas.so"};
  std::shared_ptr<Geam> geam(new Geam);
  for (const std::string& name : path.empty() ? usual : std::vector<std::string>{path}) {
    geam->library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (geam->library_ != nullptr) break;
  }
  if (geam->library_ == nullptr) {
    const char* why = dlerror();
    return Fail(Status(Code::kUnimplemented, "NO_CUBLAS",
                       std::string("no cuBLAS (--cublas PATH): ") + (why ? why : "")));
  }
  const auto create = Find<StatusCode (*)(Handle*)>(geam->library_, "cublasCreate_v2");
  if (create == nullptr)
    return Fail(Status(Code::kUnimplemented, "NO_CUBLAS", "the library has no cublasCreate_v2"));
  TILEWIRE_RETURN_IF_ERROR(FromCublas(create(&geam->handle_), "cublasCreate"));
  return geam;
}

Geam::~Geam() {
  const auto destroy =
      library_ == nullptr ? nullptr : Find<StatusCode (*)(Handle)>(library_, "cublasDestroy_v2");
  if (handle_ != nullptr && destroy != nullptr) destroy(handle_);
  // The library stays loaded: unloading one that has made CUDA contexts' state is not safe.
}

bool Geam::Knows(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kC64 || dtype == DType::kC128;
}

Status Geam::Transpose(DType dtype, const void* in, void* out, int64_t rows, int64_t columns,
                       cudaStream_t stream) const {
  const auto set_stream = Find<StatusCode (*)(Handle, cudaStream_t)>(library_, "cublasSetStream_v2");
  if (set_stream == nullptr)
    return Status(Code::kUnimplemented, "NO_CUBLAS", "the library has no cublasSetStream_v2");
  TILEWIRE_RETURN_IF_ERROR(FromCublas(set_stream(handle_, stream), "cublasSetStream"));
  const auto m = static_cast<int>(rows), n = static_cast<int>(columns);
  StatusCode code = -1;
  if (dtype == DType::kF32) code = Run<float>(library_, "cublasSgeam", handle_, in, out, m, n);
  if (dtype == DType::kF64) code = Run<double>(library_, "cublasDgeam", handle_, in, out, m, n);
  if (dtype == DType::kC64) code = Run<float>(library_, "cublasCgeam", handle_, in, out, m, n);
  if (dtype == DType::kC128) code = Run<double>(library_, "cublasZgeam", handle_, in, out, m, n);
  return FromCublas(code, "geam");
}

}  // namespace tilewire::bench

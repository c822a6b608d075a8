// cuBLAS's out-of-place transpose (geam) as a peer of ours: loaded at run time, never linked.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/array/dtype.h"
#include "kernels/array/status.h"

namespace tilewire::bench {

/// One cuBLAS handle. Used by one thread.
class Geam {
 public:
  /// Loads `path`, or, if that is empty, libcublas.so.13, .12, .11 or .so from where the loader looks.
  /// UNIMPLEMENTED where there is none.
  static Result<std::shared_ptr<Geam>> Load(const std::string& path);
  ~Geam();
  Geam(const Geam&) = delete;
  Geam& operator=(const Geam&) = delete;

  /// The dtypes that it knows: f32, f64, c64, c128.
  static bool Knows(DType dtype);
  /// Enqueues the transpose of a row-major (rows, columns) matrix; extents below 2^31.
  Status Transpose(DType dtype, const void* in, void* out, int64_t rows, int64_t columns,
                   cudaStream_t stream) const;

 private:
  Geam() = default;

  void* library_ = nullptr;
  void* handle_ = nullptr;
};

}  // namespace tilewire::bench

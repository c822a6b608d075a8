// Failed calls as Python exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <utility>

#include "kernels/array/status.h"

namespace tilewire::python {

/// A Status on its way to Python, where it becomes what tilewire._errors makes of it.
class StatusError : public std::exception {
 public:
  explicit StatusError(Status status) : status_(std::move(status)) {}
  const Status& status() const { return status_; }
  const char* what() const noexcept override { return "a call failed"; }

 private:
  Status status_;
};

inline void Check(Status status) {
  if (!status.ok()) throw StatusError(std::move(status));
}
template <typename T>
T Unwrap(Result<T> result) {
  if (!result) throw StatusError(std::move(result).error());
  return *std::move(result);
}

/// Has nanobind turn StatusError into exceptions. Once, before the first throws.
void RegisterErrors();

}  // namespace tilewire::python

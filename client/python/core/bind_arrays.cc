// dtypes, operands, operations, and what stays at the server.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <tuple>

#include "client/cpp/operations.h"
#include "client/python/core/bind.h"
#include "client/python/core/errors.h"
#include "client/python/core/handles.h"
#include "client/python/core/unlocked.h"
#include "kernels/array/dtype.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace)

namespace tilewire::python {
namespace {

using client::ArraySource;
using Dims = std::vector<int64_t>;

Dims ToPython(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

ArraySource Memory(uintptr_t address, int dtype, const Dims& shape) {
  const ArraySpec spec = Unwrap(MakeSpec(dtype, shape, "array"));
  return ArraySource::FromMemory(spec, reinterpret_cast<const void*>(address));
}

ArraySource InRegion(const std::string& region, uint64_t offset, int dtype, const Dims& shape) {
  return ArraySource::Region({region, offset}, Unwrap(MakeSpec(dtype, shape, "array")));
}

ArraySource AtServer(const std::string& id, int dtype, const Dims& shape) {
  return ArraySource::Resident(id, Unwrap(MakeSpec(dtype, shape, "array")));
}

/// dtype number, name and size in bytes of every dtype.
std::vector<std::tuple<int, std::string, int>> DTypes() {
  std::vector<std::tuple<int, std::string, int>> all;
  for (const DTypeInfo& info : AllDTypes())
    all.emplace_back(static_cast<int>(info.dtype), info.name, info.size);
  return all;
}

const client::OperationInfo& OperationCalled(const std::string& name) {
  const client::OperationInfo* found = client::FindOperation(name);
  if (found == nullptr) throw nb::key_error(name.c_str());
  return *found;
}

/// What the numbers of an attribute are called, from 0.
std::vector<std::string_view> Words(const std::string& operation, const std::string& attribute) {
  const client::Flag* flag = client::FindFlag(OperationCalled(operation), attribute);
  if (flag == nullptr) throw nb::key_error(attribute.c_str());
  return flag->words;
}

void BindOperations(nb::module_& module) {
  module.def("words", &Words, "operation"_a, "attribute"_a);
  // Any of the client's table, by its name there; its attributes are lists of integers.
  nb::class_<client::Operation>(module, "Operation")
      .def(
          "__init__",
          [](client::Operation* operation, const std::string& name,
             const std::map<std::string, std::vector<int32_t>>& attributes) {
            new (operation) client::Operation(*OperationCalled(name).descriptor);
            for (const auto& [attribute, values] : attributes) operation->attributes.Set(attribute, values);
          },
          "name"_a, "attributes"_a);
  nb::class_<client::RmseOp>(module, "RmseOp")
      .def(
          "__init__",
          [](client::RmseOp* op, std::vector<int32_t> axes, int output) {
            new (op) client::RmseOp{std::move(axes), static_cast<client::RmseOutput>(output)};
          },
          "axes"_a, "output"_a);
  nb::class_<client::TransposeOp>(module, "TransposeOp")
      .def(
          "__init__",
          [](client::TransposeOp* op, std::vector<int32_t> axes) {
            new (op) client::TransposeOp{std::move(axes)};
          },
          "axes"_a);
  nb::class_<client::GaussianOp>(module, "GaussianOp")
      .def(
          "__init__",
          [](client::GaussianOp* op, double mean, double stddev) {
            new (op) client::GaussianOp{mean, stddev};
          },
          "mean"_a, "stddev"_a);
}

template <typename Handle>
nb::class_<Handle> BindRegion(nb::module_& module, const char* name) {
  return nb::class_<Handle>(module, name)
      .def_prop_ro("id", [](const Handle& handle) { return handle.region->id(); })
      .def_prop_ro("nbytes", [](const Handle& handle) { return handle.region->bytes(); })
      .def("unregister", [](Handle& handle) {
        RequireNotForked();
        Status status;
        {
          const Unlocked released;
          status = handle.region->Unregister();
        }
        Check(std::move(status));
      });
}

}  // namespace

void BindArrays(nb::module_& module) {
  module.def("dtypes", &DTypes);
  BindOperations(module);
  nb::class_<ArraySource>(module, "Source")
      .def_static("memory", &Memory, "address"_a, "dtype"_a, "shape"_a)
      .def_static("region", &InRegion, "region"_a, "offset"_a, "dtype"_a, "shape"_a)
      .def_static("resident", &AtServer, "id"_a, "dtype"_a, "shape"_a);
  nb::class_<Stored>(module, "Stored")
      .def_prop_ro("id", [](const Stored& stored) { return stored.array->id(); })
      .def_prop_ro("dtype", [](const Stored& stored) { return static_cast<int>(stored.array->spec().dtype); })
      .def_prop_ro("shape", [](const Stored& stored) { return ToPython(stored.array->spec().shape); })
      .def_prop_ro("source", [](const Stored& stored) { return stored.array->source(); })
      .def("release", [](Stored& stored) { return stored.array->Release(); })
      .def("delete", [](Stored& stored) {
        RequireNotForked();
        Status status;
        {
          const Unlocked released;
          status = stored.array->Delete();
        }
        Check(std::move(status));
      });
  BindRegion<Region>(module, "Region").def_prop_ro("address", [](const Region& handle) {
    return reinterpret_cast<uintptr_t>(handle.region->data());
  });
  BindRegion<Device>(module, "DeviceRegion");
}

}  // namespace tilewire::python

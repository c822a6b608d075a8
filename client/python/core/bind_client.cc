// The client: makes calls, which are run elsewhere, and asks small things at once.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <type_traits>

#include "client/python/core/bind.h"
#include "client/python/core/call.h"
#include "client/python/core/connection.h"
#include "client/python/core/errors.h"
#include "client/python/core/handles.h"
#include "client/python/core/unlocked.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace)

namespace tilewire::python {
namespace {

using client::ArraySource;
using client::CallOptions;
using client::Client;
using client::Reply;
using Sources = std::vector<ArraySource>;
using Keeps = std::optional<client::OwnedArray>*;

/// Takes several results, each to memory of its own.
client::ResultSink IntoEach(const std::vector<std::pair<uintptr_t, uint64_t>>& places) {
  std::vector<client::Sink> sinks;
  for (const auto& [address, bytes] : places) sinks.push_back(Into(address, bytes));
  return [sinks = std::move(sinks)](size_t result, uint64_t offset, std::span<const uint8_t> piece) {
    if (result >= sinks.size())
      return Status(Code::kInternal, "BAD_REPLY",
                    "the server broke the contract: more results than the operation has");
    return sinks[result](offset, piece);
  };
}

client::StoreOptions Keep(double seconds, bool evictable) {
  return {.seconds = seconds, .evictable = evictable};
}

/// dtype number and shape of a result.
using PythonSpec = std::pair<int, std::vector<int64_t>>;

/// Those of all results, in the operation's order.
std::vector<PythonSpec> SpecsOfResults(const client::Operation& operation, const Sources& sources) {
  std::vector<ArraySpec> specs;
  for (const ArraySource& source : sources) specs.push_back(source.spec());
  std::vector<PythonSpec> out;
  for (const ArraySpec& spec : Unwrap(client::ResultSpecs(operation, specs))) {
    const auto dims = spec.shape.dims();
    out.emplace_back(static_cast<int>(spec.dtype), std::vector<int64_t>(dims.begin(), dims.end()));
  }
  return out;
}

/// A call of an operation with any number of results.
Call* ExecuteAll(const Connection& on, const client::Operation& operation, Sources sources,
                 const std::vector<std::pair<uintptr_t, uint64_t>>& places, const CallOptions& options) {
  return new Call(
      options, on.explain,
      [client = on.client, operation, sources = std::move(sources), sink = IntoEach(places)](
          const CallOptions& call, Keeps) { return client->Execute(operation, sources, sink, call); });
}

/// The calls of one operation. Further operations are further lines in BindClient.
template <typename Op>
void BindOperation(nb::class_<Connection>& binding, nb::module_& module) {
  module.def(
      "result_spec", [](const Op& op, const Sources& sources) { return SpecsOfResults(op, sources).front(); },
      "op"_a, "sources"_a);
  binding
      .def(
          "execute",
          [](const Connection& on, const Op& op, Sources sources, uintptr_t out, uint64_t bytes,
             const CallOptions& options) {
            return new Call(
                options, on.explain,
                [client = on.client, op, sources = std::move(sources), sink = Into(out, bytes)](
                    const CallOptions& call, Keeps) { return client->Execute(op, sources, sink, call); });
          },
          "op"_a, "sources"_a, "out"_a, "nbytes"_a, "options"_a)
      .def(
          "execute_into",
          [](const Connection& on, const Op& op, Sources sources, const std::string& region, uint64_t offset,
             const CallOptions& options) {
            return new Call(options, on.explain,
                            [client = on.client, op, sources = std::move(sources),
                             place = client::RegionPlace{region, offset}](const CallOptions& call, Keeps) {
                              return client->ExecuteInto(op, sources, place, call);
                            });
          },
          "op"_a, "sources"_a, "region"_a, "offset"_a, "options"_a)
      .def(
          "store",
          [](const Connection& on, const Op& op, Sources sources, double seconds, bool evictable,
             const CallOptions& options) {
            return new Call(
                options, on.explain,
                [client = on.client, op, sources = std::move(sources), keep = Keep(seconds, evictable)](
                    const CallOptions& call, Keeps stored) -> Result<Reply> {
                  auto reply = client->Store(op, sources, keep, call);
                  if (!reply) return Fail(std::move(reply).error());
                  *stored = std::move(reply->array);
                  return std::move(reply->reply);
                });
          },
          "op"_a, "sources"_a, "seconds"_a, "evictable"_a, "options"_a);
}

Call* Put(const Connection& on, const ArraySource& source, double seconds, bool evictable,
          const CallOptions& options) {
  return new Call(options, on.explain,
                  [client = on.client, source, keep = Keep(seconds, evictable)](
                      const CallOptions& call, Keeps stored) -> Result<Reply> {
                    auto reply = client->Put(source, keep, call);
                    if (!reply) return Fail(std::move(reply).error());
                    *stored = std::move(reply->array);
                    return std::move(reply->reply);
                  });
}

Call* Get(const Connection& on, const ArraySource& source, uintptr_t out, uint64_t bytes,
          const CallOptions& options) {
  return new Call(options, on.explain,
                  [client = on.client, source, sink = Into(out, bytes)](const CallOptions& call, Keeps) {
                    return client->Get(source, sink, call);
                  });
}

/// `ask()` without the GIL.
template <typename Ask>
auto Asked(const Connection& on, const Ask& ask) {
  RequireNotForked();
  const Unlocked released;
  auto answer = ask();
  if constexpr (std::is_same_v<decltype(answer), Status>)
    return answer.ok() ? answer : on.explain(std::move(answer));
  else
    return answer ? std::move(answer) : decltype(answer)(Fail(on.explain(std::move(answer).error())));
}

client::ConnectOptions MakeOptions(double dead_peer_seconds,
                                   const std::vector<std::pair<std::string, std::string>>& metadata,
                                   std::optional<client::TlsOptions> tls, const std::string& token,
                                   bool insecure) {
  return {.dead_peer_timeout = std::chrono::milliseconds(static_cast<int64_t>(dead_peer_seconds * 1e3)),
          .metadata = metadata,
          .tls = std::move(tls),
          .token = token,
          .insecure = insecure};
}

PythonSpec Stat(const Connection& on, const std::string& id, const CallOptions& options) {
  const auto info = Unwrap(Asked(on, [&] { return on.client->Stat(id, options); }));
  const auto dims = info.spec.shape.dims();
  return {static_cast<int>(info.spec.dtype), {dims.begin(), dims.end()}};
}

std::vector<std::string> List(const Connection& on, const CallOptions& options) {
  const auto list = Unwrap(Asked(on, [&] { return on.client->List(options); }));
  std::vector<std::string> out;
  for (const client::ArrayInfo& info : list.arrays) out.push_back(info.id);
  return out;
}

nb::typed<nb::dict, nb::str, nb::any> Describe(const Connection& on, const CallOptions& options) {
  const client::ServerInfo info = Unwrap(Asked(on, [&] { return on.client->Describe(options); }));
  nb::list devices, versions;
  for (const auto& device : info.devices) {
    nb::dict one;
    one["id"] = device.id;
    one["name"] = device.name;
    one["memory_bytes"] = device.memory_bytes;
    devices.append(one);
  }
  for (const std::string& version : info.numeric_versions) versions.append(version);
  nb::typed<nb::dict, nb::str, nb::any> out;
  out["instance"] = info.instance;
  out["version"] = info.version;
  out["devices"] = devices;
  out["numeric_versions"] = versions;
  out["device_bytes"] = info.device_bytes;
  out["device_bytes_in_use"] = info.device_bytes_in_use;
  out["pinned_bytes"] = info.pinned_bytes;
  out["pinned_bytes_in_use"] = info.pinned_bytes_in_use;
  out["jobs_in_flight"] = info.jobs_in_flight;
  out["jobs_queued"] = info.jobs_queued;
  out["arrays_stored"] = info.arrays_stored;
  out["array_bytes"] = info.array_bytes;
  out["regions_registered"] = info.regions_registered;
  out["region_prefix"] = info.region_prefix;
  out["device_regions"] = info.device_regions;
  return out;
}

double Ping(const Connection& on, const CallOptions& options) {
  return std::chrono::duration<double>(Unwrap(Asked(on, [&] { return on.client->Ping(options); }))).count();
}

Region* Share(const Connection& on, uint64_t bytes, double seconds, const CallOptions& options) {
  auto region = Unwrap(Asked(on, [&] { return on.client->Share(bytes, {.seconds = seconds}, options); }));
  return new Region{Owned<client::SharedRegion>(new client::SharedRegion(std::move(region)))};
}

Device* RegisterDevice(const Connection& on, const nb::bytes& handle, uint64_t offset, uint64_t bytes,
                       double seconds, const CallOptions& options) {
  const client::DeviceMemory memory{
      .handle = std::string(handle.c_str(), handle.size()), .offset = offset, .bytes = bytes};
  auto region =
      Unwrap(Asked(on, [&] { return on.client->RegisterDevice(memory, {.seconds = seconds}, options); }));
  return new Device{Owned<client::DeviceRegion>(new client::DeviceRegion(std::move(region)))};
}

}  // namespace

void BindClient(nb::module_& module) {
  nb::class_<client::TlsOptions>(module, "TlsOptions")
      .def(
          "__init__",
          [](client::TlsOptions* self, const std::string& ca, const std::string& certificate,
             const std::string& key) {
            new (self) client::TlsOptions{ca, certificate, key};
          },
          "ca"_a, "certificate"_a, "key"_a);
  nb::class_<client::ConnectOptions>(module, "ConnectOptions")
      .def(
          "__init__",
          [](client::ConnectOptions* self, double dead_peer_seconds,
             const std::vector<std::pair<std::string, std::string>>& metadata,
             std::optional<client::TlsOptions> tls, const std::string& token, bool insecure) {
            new (self) client::ConnectOptions(
                MakeOptions(dead_peer_seconds, metadata, std::move(tls), token, insecure));
          },
          "dead_peer_seconds"_a, "metadata"_a, "tls"_a.none(), "token"_a, "insecure"_a);
  nb::class_<Connection> binding(module, "Client");
  binding.def(nb::init<const std::string&, client::ConnectOptions>(), "address"_a, "options"_a)
      .def("put", &Put, "source"_a, "seconds"_a, "evictable"_a, "options"_a)
      .def("get", &Get, "source"_a, "out"_a, "nbytes"_a, "options"_a)
      .def("stat", &Stat, "id"_a, "options"_a)
      .def("list", &List, "options"_a)
      .def(
          "delete",
          [](const Connection& on, const std::string& id, const CallOptions& options) {
            Check(Asked(on, [&] { return on.client->Delete(id, options); }));
          },
          "id"_a, "options"_a)
      .def("describe", &Describe, "options"_a)
      .def("ping", &Ping, "options"_a)
      .def("share", &Share, "nbytes"_a, "seconds"_a, "options"_a)
      .def("register_device", &RegisterDevice, "handle"_a, "offset"_a, "nbytes"_a, "seconds"_a, "options"_a);
  module.def("result_specs", &SpecsOfResults, "op"_a, "sources"_a);
  binding.def("execute_all", &ExecuteAll, "op"_a, "sources"_a, "places"_a, "options"_a);
  BindOperation<client::RmseOp>(binding, module);
  BindOperation<client::TransposeOp>(binding, module);
  BindOperation<client::GaussianOp>(binding, module);
  BindQuick(binding);
}

}  // namespace tilewire::python

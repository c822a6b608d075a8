// What a reply tells beside the result.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "client/cli/timeline.h"
#include "client/cli/trace.h"
#include "client/python/core/bind.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT(google-build-using-namespace)

namespace tilewire::python {

void BindReply(nb::module_& module) {
  using client::Timing;
  nb::class_<Timing>(module, "Timing")
      .def_ro("queue_us", &Timing::queue_us)
      .def_ro("receive_us", &Timing::receive_us)
      .def_ro("stage_us", &Timing::stage_us)
      .def_ro("h2d_us", &Timing::h2d_us)
      .def_ro("kernel_us", &Timing::kernel_us)
      .def_ro("d2h_us", &Timing::d2h_us)
      .def_ro("send_us", &Timing::send_us)
      .def_ro("other_us", &Timing::other_us)
      .def_ro("wall_us", &Timing::wall_us)
      .def_ro("bytes_in", &Timing::bytes_in)
      .def_ro("bytes_out", &Timing::bytes_out)
      .def_ro("blocks", &Timing::blocks)
      .def_ro("ranges", &Timing::ranges)
      .def_ro("lanes", &Timing::lanes)
      .def_ro("streams", &Timing::streams)
      .def_ro("device", &Timing::device)
      .def_ro("overlap", &Timing::overlap)
      .def_ro("bottleneck", &Timing::bottleneck)
      .def_ro("bottleneck_share", &Timing::bottleneck_share)
      .def_ro("round_trip_us", &Timing::round_trip_us)
      .def_ro("window_share", &Timing::window_share)
      .def_ro("region_bytes_in", &Timing::region_bytes_in)
      .def_ro("region_bytes_out", &Timing::region_bytes_out)
      .def_ro("bytes_copied", &Timing::bytes_copied);
  using client::Reply;
  nb::class_<Reply>(module, "Reply")
      .def_ro("numeric_version", &Reply::numeric_version)
      .def_ro("timing", &Reply::timing)
      .def_ro("client_wall_us", &Reply::client_wall_us)
      .def_ro("attempts", &Reply::attempts)
      .def_ro("streamed", &Reply::streamed)
      .def_prop_ro("traced", [](const Reply& reply) { return reply.trace.has_value(); })
      .def(
          "timeline_svg",
          [](const Reply& reply, const std::string& title) { return cli::TimelineSvg(title, reply); },
          "title"_a)
      .def(
          "trace_json",
          [](const Reply& reply, const std::string& title) { return cli::TraceJson(title, reply); },
          "title"_a);
}

}  // namespace tilewire::python

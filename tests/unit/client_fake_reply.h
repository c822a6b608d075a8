// What the fake server says: errors with details, and what it claims to be.
#pragma once

#include <grpcpp/support/status.h>

#include <map>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "kernels/array/status.h"
#include "tests/unit/client_fake_server.h"
#include "tilewire/v1/device.pb.h"

namespace tilewire::client::testing {

inline grpc::Status WithDetails(grpc::StatusCode code, const std::string& message, const std::string& reason,
                                const std::map<std::string, std::string>& metadata = {}) {
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("tilewire");
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  status.add_details()->PackFrom(info);
  return {code, message, status.SerializeAsString()};
}

inline grpc::Status FromStatus(const Status& status) {
  return WithDetails(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                     std::string(status.reason()));
}

inline void FillDescription(const FakeBehaviour& behaviour, v1::DescribeResponse* response) {
  response->set_instance("fake");
  response->set_version("0.1.0");
  for (const char* version : {"rmse.1", "transpose.1", "gaussian.1"}) response->add_numeric_versions(version);
  v1::DeviceInfo* device = response->add_devices();
  device->set_id("cpu");
  device->set_name("Fake CPU");
  device->set_memory_bytes(8ull << 30);
  device->set_processors(2);
  device->set_copy_in_bytes_per_second(50.25e9);
  device->set_copy_out_bytes_per_second(48e9);
  response->mutable_limits()->set_block_bytes(behaviour.block_bytes);
  response->mutable_limits()->set_max_message_bytes(behaviour.max_message_bytes);
  response->mutable_limits()->set_queue_seconds(10);
  response->mutable_budgets()->set_device_bytes(1ull << 30);
}

/// Two launches of "cuda:7"; the first one's name is the question, so that tests see what arrived.
inline void FillKernels(const v1::DescribeKernelsRequest& request, v1::DescribeKernelsResponse* response) {
  response->set_device("cuda:7");
  v1::KernelLaunch* range = response->add_kernels();
  range->set_group("rmse");
  range->set_operation("rmse f32 (64, 64)");
  range->set_part("range 0 of 1");
  range->set_name(request.ShortDebugString());
  range->set_registers(40);
  range->set_local_bytes(8);
  range->set_static_shared_bytes(1024);
  range->set_dynamic_shared_bytes(2048);
  range->set_const_bytes(16);
  range->set_max_threads_per_block(1024);
  range->set_binary_version(90);
  range->set_ptx_version(75);
  for (v1::Extent3* extent : {range->mutable_grid(), range->mutable_block()}) {
    extent->set_x(132);
    extent->set_y(2);
    extent->set_z(1);
  }
  range->set_blocks_per_multiprocessor(6);
  range->set_occupancy(0.75);
  v1::KernelLaunch* step = response->add_kernels();
  step->set_group("ladder/rmse");
  step->set_name("Naive");
  for (v1::Extent3* extent : {step->mutable_grid(), step->mutable_block()}) {
    extent->set_x(256);
    extent->set_y(1);
    extent->set_z(1);
  }
}

}  // namespace tilewire::client::testing

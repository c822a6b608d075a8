// A whole server in this process, on a loopback port of its own, over any device; and raw clients to attack
// it with.
#pragma once

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "kernels/array/shape.h"
#include "kernels/gaussian/gaussian.h"
#include "kernels/rmse/rmse.h"
#include "kernels/transpose/transpose.h"
#include "server/engine/device/cpu/device.h"
#include "server/engine/engine.h"
#include "server/rpc/conversions/operations.h"
#include "server/rpc/server.h"
#include "tests/integration/recording_observer.h"
#include "tests/unit/waiting.h"
#include "tilewire/v1/device.grpc.pb.h"
#include "tilewire/v1/kernels.grpc.pb.h"

namespace tilewire::testing {

/// A connection of its own, made.
inline std::shared_ptr<grpc::Channel> ConnectTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(8 << 20);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  // gRPC's first attempt fails now and then (client/cpp/channels.cc), and would fail the call that waits.
  channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10));
  return channel;
}

/// Server and engine with the options of a test.
class TestServer {
 public:
  struct Options {
    engine::EngineOptions engine{
        .lanes = 2, .block_bytes = 64 << 10, .device_bytes = 256 << 20, .pinned_bytes = 128 << 20};
    rpc::ServerOptions rpc{.listen = {"localhost:0"}, .idle_seconds = 30, .queues = 2};
  };
  TestServer() : TestServer(engine::OpenCpuDevice(2), Options{}) {}
  explicit TestServer(const Options& options) : TestServer(engine::OpenCpuDevice(2), options) {}
  TestServer(std::unique_ptr<engine::Device> device, const Options& options)
      : identity_header_(options.rpc.identity_header) {
    engine::EngineOptions ours = options.engine;
    ours.operations = rpc::Operations();
    engine_ = engine::Engine::Make(std::move(device), ours).value();
    server_ = rpc::Server::Start(engine_.get(), &observer_, options.rpc).value();
  }
  ~TestServer() { server_->Shutdown(Clock::now()); }

  const std::string& address() const { return server_->addresses().front(); }
  engine::Engine& engine() { return *engine_; }
  rpc::Server& rpc() { return *server_; }
  RecordingObserver& observer() { return observer_; }

  std::shared_ptr<grpc::Channel> Connect() const { return ConnectTo(address()); }
  /// Says who calls, where the server asks.
  void Name(grpc::ClientContext* context) const {
    if (!identity_header_.empty()) context->AddMetadata(identity_header_, "tester");
  }

  /// Waits until so many jobs have their memory, or wait for their turn.
  bool InFlight(uint32_t count) {
    return Eventually([&] { return engine_->stats().jobs_in_flight == count; });
  }
  bool Queued(uint32_t count) {
    return Eventually([&] { return engine_->stats().jobs_queued == count; });
  }
  /// Waits until nothing is leased and no job is known: what every test ends with.
  void ExpectIdle() {
    EngineStats stats;
    (void)Eventually([&] {
      stats = engine_->stats();
      return stats.jobs_in_flight == 0 && stats.jobs_queued == 0 && stats.jobs_open == 0 &&
             server_->WaitIdle(Clock::now());
    });
    EXPECT_EQ(stats.device_bytes_in_use, 0u);
    EXPECT_EQ(stats.pinned_bytes_in_use, 0u);
    EXPECT_EQ(stats.jobs_in_flight, 0u);
    EXPECT_EQ(stats.jobs_queued, 0u);
    EXPECT_EQ(stats.jobs_open, 0u);
    EXPECT_TRUE(server_->WaitIdle(Clock::now()));
  }

 private:
  const std::string identity_header_;
  RecordingObserver observer_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<rpc::Server> server_;
};

inline std::string Bytes(size_t count, uint64_t seed = 1) {
  std::string bytes(count, '\0');
  for (auto& byte : bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(seed >> 56);
  }
  return bytes;
}

/// `count` finite f32 in [0, 1).
inline std::string Floats(size_t count, uint64_t seed) {
  std::vector<float> values(count);
  for (auto& value : values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(seed >> 40) * 0x1p-24f;
  }
  return std::string(reinterpret_cast<const char*>(values.data()), count * 4);
}

inline void SetSpec(v1::ArraySpec* spec, v1::DType dtype, const std::vector<int64_t>& shape) {
  spec->set_dtype(dtype);
  spec->clear_shape();
  for (const int64_t extent : shape) spec->add_shape(extent);
}

/// The ErrorInfo of a failed call; fails the test where there is none.
inline google::rpc::ErrorInfo ErrorInfoOf(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  EXPECT_TRUE(details.ParseFromString(status.error_details())) << status.error_message();
  EXPECT_EQ(details.code(), status.error_code());
  EXPECT_EQ(details.details_size(), 1) << status.error_message();
  if (details.details_size() == 1) {
    EXPECT_TRUE(details.details(0).UnpackTo(&info));
  }
  EXPECT_EQ(info.domain(), "tilewire");
  return info;
}

/// Kernels.Execute driven by hand, message by message.
class RawStream {
 public:
  explicit RawStream(const std::shared_ptr<grpc::Channel>& channel, double timeout_seconds = 60)
      : stub_(v1::Kernels::NewStub(channel)) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(int64_t(timeout_seconds * 1e3)));
  }
  void Start() { stream = stub_->Execute(&context); }
  /// Starts, if that is yet to be done, sends Open and returns whether Opened came back.
  bool Open(const v1::Open& open) {
    if (!stream) Start();
    v1::ExecuteRequest request;
    *request.mutable_open() = open;
    stream->Write(request);
    v1::ExecuteResponse response;
    if (!stream->Read(&response) || !response.has_opened()) return false;
    opened = response.opened();
    return true;
  }
  /// The same, and sends the first byte of operand 0, with which the job asks for its memory.
  bool OpenAndSend(const v1::Open& open, std::string_view operand = "x") {
    return Open(open) && Send(0, 0, operand.substr(0, 1));
  }
  bool Send(uint32_t operand, uint64_t offset, std::string_view data, std::optional<uint32_t> crc = {}) {
    v1::ExecuteRequest request;
    v1::Chunk* chunk = request.mutable_chunk();
    chunk->set_operand(operand);
    chunk->set_offset(offset);
    if (crc) chunk->set_crc32c(*crc);
    chunk->set_data(std::string(data));
    return stream->Write(request);
  }
  /// Sends [from, to) of `data` in messages of `step` bytes.
  bool SendAll(uint32_t operand, const std::string& data, size_t step = 1 << 20, size_t from = 0,
               size_t to = ~size_t{0}) {
    to = std::min(to, data.size());
    for (size_t at = from; at < to; at += step)
      if (!Send(operand, at, std::string_view(data).substr(at, std::min(step, to - at)))) return false;
    return true;
  }
  /// Half-closes, reads to the end and returns the status. Output bytes and the Result are kept.
  grpc::Status End() {
    stream->WritesDone();
    return Drain();
  }
  grpc::Status Drain() {
    v1::ExecuteResponse response;
    while (stream->Read(&response)) {
      if (response.has_chunk()) {
        EXPECT_EQ(response.chunk().offset(), output.size());
        output += response.chunk().data();
      }
      if (response.has_result()) {
        result = response.result();
        if (result.results(0).data().size() > 0) output = result.results(0).data();
      }
    }
    return stream->Finish();
  }

  grpc::ClientContext context;
  std::unique_ptr<v1::Kernels::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ExecuteRequest, v1::ExecuteResponse>> stream;
  v1::Opened opened;
  v1::Result result;
  std::string output;
};

inline v1::Open RmseOpen(v1::DType dtype, const std::vector<int64_t>& shape,
                         const std::vector<int>& axes = {}) {
  v1::Open open;
  for (const int axis : axes) open.mutable_rmse()->add_axes(axis);
  open.mutable_rmse();
  SetSpec(open.add_operands(), dtype, shape);
  SetSpec(open.add_operands(), dtype, shape);
  return open;
}

inline v1::Open TransposeOpen(v1::DType dtype, const std::vector<int64_t>& shape,
                              const std::vector<int>& axes = {}) {
  v1::Open open;
  open.mutable_transpose();
  for (const int axis : axes) open.mutable_transpose()->add_axes(axis);
  SetSpec(open.add_operands(), dtype, shape);
  return open;
}

inline v1::Open GaussianOpen(v1::DType dtype, const std::vector<int64_t>& shape, double mean, double stddev) {
  v1::Open open;
  open.mutable_gaussian_pdf()->set_mean(mean);
  open.mutable_gaussian_pdf()->set_stddev(stddev);
  SetSpec(open.add_operands(), dtype, shape);
  return open;
}

/// The answers by the host kernels, computed in one piece.
inline std::string HostRmse(const std::string& a, const std::string& b, DType dtype,
                            const std::vector<int64_t>& shape, const std::vector<int>& axes = {}) {
  const auto plan = rmse::Plan::Make(MakeSpec(dtype, shape).value(), axes, rmse::Output::kRmse).value();
  std::vector<double> sums(plan.scratch_bytes() / 8), result(plan.result().shape.elements());
  for (int64_t i = 0; i < plan.range_count(); ++i)
    rmse::HostRange(plan, plan.range(i), 0, plan.range(i).items(), a.data(), b.data(), sums.data());
  rmse::HostFinish(plan, 0, plan.layout().segments, sums.data(), result.data());
  return std::string(reinterpret_cast<const char*>(result.data()), result.size() * 8);
}

inline std::string HostTranspose(const std::string& in, DType dtype, const std::vector<int64_t>& shape,
                                 const std::vector<int>& axes = {}) {
  const auto plan = transpose::Plan::Make(MakeSpec(dtype, shape).value(), axes).value();
  std::string out(in.size(), '\0');
  for (int64_t i = 0; i < plan.range_count(); ++i) {
    const auto range = plan.range(i);
    transpose::HostRange(plan, range, 0, transpose::HostItems(plan, range), in.data(), out.data());
  }
  return out;
}

inline std::string HostGaussian(const std::string& in, DType dtype, const std::vector<int64_t>& shape,
                                double mean, double stddev) {
  const auto plan = gaussian::Plan::Make(MakeSpec(dtype, shape).value(), mean, stddev).value();
  std::string out(in.size(), '\0');
  gaussian::HostRange(plan, plan.whole(), 0, gaussian::HostItems(plan, plan.whole()), in.data(), out.data());
  return out;
}

}  // namespace tilewire::testing

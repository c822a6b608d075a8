#include "tests/fuzz/connection/servers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "kernels/array/shape.h"
#include "kernels/transpose/transpose.h"
#include "server/engine/device/cpu/device.h"
#include "server/rpc/conversions/operations.h"
#include "tests/devices/decorators.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/unit/waiting.h"
#include "tilewire/v1/kernels.grpc.pb.h"

namespace tilewire::fuzz {
namespace {

constexpr const char* kPrefix = "/tilewire-fuzz-";
constexpr int64_t kMiB = 1 << 20;
/// Whose arrays and regions there are: nobody here has a name.
constexpr const char* kAnonymous = "anonymous";
constexpr size_t kSharedBytes = 64 << 10;

std::string SocketPath(bool staged) {
  return (std::filesystem::temp_directory_path() /
          ("tilewire-fuzz-" + std::to_string(getpid()) + (staged ? "-staged" : "-host") + ".sock"))
      .string();
}

int Connect(int family, const sockaddr* to, socklen_t bytes) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  FUZZ_CHECK(fd >= 0 && connect(fd, to, bytes) == 0);
  return fd;
}

}  // namespace

void Counts::OnCallEnd(const rpc::CallRecord& record) {
  FUZZ_CHECK(!record.method.empty() && !record.request_id.empty());
  FUZZ_CHECK(record.status.code() != Code::kInternal);
  Note(record);
  Count(-1, 0);
}

void Counts::Note(const rpc::CallRecord& record) {
  const MutexLock lock(mutex_);
  if (record.request_id != followed_) return;
  ++ended_.calls;
  const Status& status = record.status;
  if (!status.ok())
    ended_.failures.push_back(record.method + ": " + std::string(status.reason()) + ": " +
                              std::string(status.message()));
  changed_.NotifyAll();
}

void Counts::Follow(const std::string& request_id) {
  const MutexLock lock(mutex_);
  followed_ = request_id;
  ended_ = {};
}

Counts::Ended Counts::AwaitEnded(int calls) {
  const MutexLock lock(mutex_);
  const TimePoint patience = Clock::now() + std::chrono::seconds(60);
  while (ended_.calls < calls && changed_.WaitUntil(mutex_, patience)) {
  }
  return ended_;
}

void Counts::OnConnectionRefused(rpc::Refusal) {
  FUZZ_CHECK(!"a connection was refused: there are earlier ones that did not end");
}

void Counts::Count(int call, int connection) {
  const MutexLock lock(mutex_);
  calls_ += call;
  connections_ += connection;
  FUZZ_CHECK(calls_ >= 0 && connections_ >= 0);
  if (calls_ == 0 && connections_ == 0) changed_.NotifyAll();
}

bool Counts::AwaitNone() {
  const MutexLock lock(mutex_);
  const TimePoint patience = Clock::now() + std::chrono::seconds(60);
  while (calls_ != 0 || connections_ != 0)
    if (!changed_.WaitUntil(mutex_, patience)) return false;
  return true;
}

FuzzedServer::FuzzedServer(bool staged) : socket_path_(SocketPath(staged)) {
  engine::EngineOptions engine{.lanes = 2,
                               .block_bytes = 64 << 10,
                               .device_bytes = 16 * kMiB,
                               .pinned_bytes = 8 * kMiB,
                               .max_in_flight = 8,
                               .queue_length = 8};
  engine.operations = rpc::Operations();
  engine.regions = {.prefix = kPrefix, .bytes = 4 * kMiB};
  auto device = engine::OpenCpuDevice(2);
  if (staged) device = engine::MakeStaged(std::move(device));
  engine_ = engine::Engine::Make(std::move(device), engine).value();
  rpc::ServerOptions options{
      .listen = {"127.0.0.1:0", "unix:" + socket_path_}, .reflection = staged, .queues = 2};
  if (!staged)
    options.receive.distance_bytes = 64 * kMiB;  // connections from beyond are measured before all else
  server_ = rpc::Server::Start(engine_.get(), &counts_, options).value();
}

FuzzedServer::~FuzzedServer() {
  server_->Shutdown(Clock::now());
}

rpc::FileDescriptor FuzzedServer::Dial(bool by_unix) const {
  if (by_unix) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    FUZZ_CHECK(socket_path_.size() < sizeof to.sun_path);
    socket_path_.copy(to.sun_path, sizeof to.sun_path - 1);
    return rpc::FileDescriptor(Connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&to), sizeof to));
  }
  const std::string& address = server_->addresses().front();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1)));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return rpc::FileDescriptor(Connect(AF_INET, reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

void FuzzedServer::DeleteAll() {
  for (const auto& array : engine_->arrays().List(kAnonymous, 0, 10'000).items)
    (void)engine_->arrays().Delete(array.id, kAnonymous);
  for (const auto& region : engine_->regions().List(kAnonymous, 0, 10'000).items)
    (void)engine_->regions().Unregister(region.id, kAnonymous);
}

void FuzzedServer::CheckNothingIsLeft() {
  FUZZ_CHECK(counts_.AwaitNone());
  EngineStats stats;
  const bool idle = testing::Eventually([&] {
    DeleteAll();
    stats = engine_->stats();
    return stats.jobs_in_flight == 0 && stats.jobs_queued == 0 && stats.arrays_stored == 0 &&
           stats.regions == 0 && stats.device_bytes_in_use == 0 && stats.pinned_bytes_in_use == 0 &&
           stats.region_bytes == 0 && server_->WaitIdle(Clock::now());
  });
  if (!idle)
    std::fprintf(stderr,
                 "left: %u jobs, %u queued, %u arrays, %u regions, %llu device and %llu pinned bytes\n",
                 stats.jobs_in_flight, stats.jobs_queued, stats.arrays_stored, stats.regions,
                 static_cast<unsigned long long>(stats.device_bytes_in_use),
                 static_cast<unsigned long long>(stats.pinned_bytes_in_use));
  FUZZ_CHECK(idle);
  FUZZ_CHECK(!stats.device_failed);
}

void FuzzedServer::CheckHonestCalls() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel =
      grpc::CreateCustomChannel(server_->addresses().front(), grpc::InsecureChannelCredentials(), arguments);
  std::vector<int32_t> numbers(12);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i);
  const std::string in(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4);
  const auto plan =
      transpose::Plan::Make(MakeSpec(DType::kI32, std::vector<int64_t>{3, 4}).value(), {}).value();
  std::string out(in.size(), '\0');
  for (int64_t i = 0; i < plan.range_count(); ++i)
    transpose::HostRange(plan, plan.range(i), 0, transpose::HostItems(plan, plan.range(i)), in.data(),
                         out.data());

  v1::TransposeRequest request;
  request.mutable_input()->mutable_spec()->set_dtype(v1::DTYPE_I32);
  for (const int64_t extent : {3, 4}) request.mutable_input()->mutable_spec()->add_shape(extent);
  request.mutable_input()->set_data(in);
  v1::TransposeResponse response;
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto status = v1::Kernels::NewStub(channel)->Transpose(&context, request, &response);
  if (!status.ok()) std::fprintf(stderr, "an honest call: %s\n", status.error_message().c_str());
  FUZZ_CHECK(status.ok());
  FUZZ_CHECK(response.result().data() == out);
}

SharedPages::SharedPages() {
  const std::string number = std::to_string(getpid());
  name_ = kPrefix + std::string(18 - number.size(), '0') + number;
  const rpc::FileDescriptor fd(shm_open(name_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  FUZZ_CHECK(fd && ftruncate(fd.get(), kSharedBytes) == 0);
}

SharedPages::~SharedPages() {
  shm_unlink(name_.c_str());
}

}  // namespace tilewire::fuzz

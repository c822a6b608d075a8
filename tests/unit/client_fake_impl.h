// The inside of the fake server.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <mutex>
#include <string>

#include "tests/unit/client_fake_arrays.h"
#include "tests/unit/client_fake_compute.h"
#include "tests/unit/client_fake_reply.h"
#include "tests/unit/client_fake_server.h"
#include "tilewire/v1/arrays.grpc.pb.h"
#include "tilewire/v1/device.grpc.pb.h"
#include "tilewire/v1/kernels.grpc.pb.h"

namespace tilewire::client::testing {

class FakeServer::Impl final : public v1::Kernels::Service,
                               public v1::Device::Service,
                               public v1::Arrays::Service {
 public:
  Impl(const FakeBehaviour& behaviour, int port);
  ~Impl() override { server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2)); }

  using Stream = grpc::ServerReaderWriter<v1::ExecuteResponse, v1::ExecuteRequest>;
  using Writer = grpc::internal::WriterInterface<v1::ExecuteResponse>;
  grpc::Status Rmse(grpc::ServerContext* context, const v1::RmseRequest* request,
                    v1::RmseResponse* response) override;
  grpc::Status Transpose(grpc::ServerContext* context, const v1::TransposeRequest* request,
                         v1::TransposeResponse* response) override;
  grpc::Status GaussianPdf(grpc::ServerContext* context, const v1::GaussianPdfRequest* request,
                           v1::GaussianPdfResponse* response) override;
  grpc::Status Execute(grpc::ServerContext* context, Stream* stream) override;
  grpc::Status Put(grpc::ServerContext* context, Stream* stream) override { return Execute(context, stream); }
  grpc::Status Get(grpc::ServerContext* context, const v1::GetRequest* request,
                   grpc::ServerWriter<v1::ExecuteResponse>* stream) override;
  grpc::Status Stat(grpc::ServerContext* context, const v1::StatRequest* request,
                    v1::ArrayInfo* response) override;
  grpc::Status List(grpc::ServerContext* context, const v1::ListRequest* request,
                    v1::ListResponse* response) override;
  grpc::Status Delete(grpc::ServerContext* context, const v1::DeleteRequest* request,
                      v1::DeleteResponse* response) override;
  grpc::Status Describe(grpc::ServerContext* context, const v1::DescribeRequest* request,
                        v1::DescribeResponse* response) override;
  grpc::Status DescribeKernels(grpc::ServerContext* context, const v1::DescribeKernelsRequest* request,
                               v1::DescribeKernelsResponse* response) override;
  int port_ = 0;
  mutable std::mutex mutex_;
  FakeBehaviour behaviour_;
  FakeLog log_;
  FakeArrays arrays_;
  std::atomic<bool> joined_{false};  ///< a stream has asked to
  std::atomic<bool> first_over_{false};
  std::string second_half_;  ///< written before first_over_
  std::unique_ptr<grpc::Server> server_;

 private:
  using Lie = FakeBehaviour::Lie;
  void Note(const v1::Options& options) {
    const std::lock_guard lock(mutex_);
    log_.trace = options.trace();
    log_.sequential = options.sequential();
    log_.block_bytes = options.block_bytes();
    log_.lanes = options.lanes();
    if (options.has_store()) log_.keys.push_back(options.store().idempotency_key());
  }
  /// Keeps a result, and says where; UNAVAILABLE where that answer is to get lost.
  grpc::Status Store(const v1::Store& how, const Computed& computed, v1::ArrayResult* result);
  /// Counts the call and refuses it where behaviour says so; fills `behaviour` for the rest of it.
  grpc::Status Begin(grpc::ServerContext* context, bool stream, FakeBehaviour* behaviour);
  grpc::Status AwaitCancel(grpc::ServerContext* context);
  grpc::Status TooBusy(grpc::ServerContext* context) const;
  grpc::Status Receive(grpc::ServerContext* context, Stream* stream, const FakeBehaviour& behaviour,
                       std::vector<Operand>* operands);
  /// The operands of an Open: resident ones, and room for the rest. `spec` is that of the last one.
  grpc::Status Operands(const v1::Open& open, const FakeBehaviour& behaviour, std::vector<Operand>* operands,
                        ArraySpec* spec);
  /// The two streams of a Get with a late joiner.
  grpc::Status GetFirstHalf(grpc::ServerContext* context, const FakeArray& array, Writer* stream);
  grpc::Status JoinLate(grpc::ServerContext* context, Writer* stream);
  static void SendOpened(Writer* stream, const FakeBehaviour& behaviour);
  static void Send(Writer* stream, const FakeBehaviour& behaviour, const Computed& computed);
  /// An operand of a unary call.
  grpc::Status Take(const v1::Operand& operand, const std::string& field, Computed* out);
  /// A unary call with one operand; `compute(op, spec, bytes)` gives its result.
  template <typename Request, typename Response, typename Function>
  grpc::Status OneOperand(grpc::ServerContext* context, const Request& request, const Function& compute,
                          Response* response);
  template <typename Response>
  grpc::Status Answer(const Result<Computed>& computed, const v1::Options& options, uint64_t bytes_in,
                      const FakeBehaviour& behaviour, Response* response);
};

}  // namespace tilewire::client::testing

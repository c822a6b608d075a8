// Any operation in any form of call: what the conformance test runs its rows over.
#pragma once

#include <google/protobuf/message.h>

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/operation/descriptor.h"
#include "server/base/limits.h"
#include "server/rpc/conversions/convert.h"
#include "server/rpc/conversions/operations.h"
#include "tests/integration/join.h"
#include "tests/integration/regions.h"

namespace tilewire::testing {

/// A request of some operation and the bytes of each of its results.
struct Sample {
  v1::Operation operation;
  std::vector<v1::ArraySpec> specs;
  std::vector<std::string> operands, results;
};

/// What the device of the windowed test has: less than the arrays of Row::large.
inline constexpr int64_t kWindowedDeviceBytes = 16 * kMiB;

struct Row {
  const char* name;  ///< as in the table
  /// Small requests and bulk ones; no operand of more than 1 MB, no result that a unary reply cannot have.
  std::vector<Sample> (*samples)();
  /// Operands and results of more than kWindowedDeviceBytes together, else nothing would pass through a
  /// window: two operands of some 10 MB, or one of 20 MB. Null where the operation cannot be windowed.
  Sample (*large)();
};
/// operation_rows.cc has them.
std::span<const Row> Rows();

inline const Row& RowOf(const Descriptor& descriptor) {
  for (const Row& row : Rows())
    if (row.name == descriptor.name) return row;
  throw std::runtime_error("no row for " + std::string(descriptor.name));
}

inline ArraySpec FromProto(const v1::ArraySpec& spec) {
  return rpc::FromProto(spec, "spec").value();
}

inline std::unique_ptr<engine::Operation> ProblemOf(const Sample& sample) {
  std::vector<ArraySpec> specs;
  for (const v1::ArraySpec& spec : sample.specs) specs.push_back(FromProto(spec));
  const rpc::Named named = rpc::NamedBy(sample.operation);
  return named.descriptor->Make(specs, named.attributes).value();
}

/// What came of a call.
struct Answer {
  grpc::Status status;
  std::vector<v1::ArrayResult> results;  ///< with the bytes, however they came
  std::string numeric_version;
  v1::Opened opened;
};

template <typename Response>
Answer AnswerOf(const grpc::Status& status, const Response& response) {
  return {status, {response.results().begin(), response.results().end()}, response.numeric_version(), {}};
}

// --- messages -------------------------------------------------------------------------------------------

/// The member of v1::Operation that is set.
inline const google::protobuf::FieldDescriptor* MemberOf(const v1::Operation& operation) {
  return operation.GetReflection()->GetOneofFieldDescriptor(operation,
                                                            v1::Operation::descriptor()->oneof_decl(0));
}
inline const google::protobuf::Message& MessageOf(const v1::Operation& operation) {
  return operation.GetReflection()->GetMessage(operation, MemberOf(operation));
}

/// An Open of the operation by `op`, or, `older`, by the member that the first version had for it; nothing
/// where it had none.
inline std::optional<v1::Open> OpenOf(const Sample& sample, bool older) {
  v1::Open open;
  for (const v1::ArraySpec& spec : sample.specs) *open.add_operands() = spec;
  if (!older) {
    *open.mutable_op() = sample.operation;
    return open;
  }
  const auto* const member = v1::Open::descriptor()->FindFieldByNumber(MemberOf(sample.operation)->number());
  if (member == nullptr || member->message_type() != MemberOf(sample.operation)->message_type()) return {};
  open.GetReflection()->MutableMessage(&open, member)->CopyFrom(MessageOf(sample.operation));
  return open;
}

/// Operands with their bytes; those with an id in `arrays` by that.
inline v1::ComputeRequest RequestOf(const Sample& sample, const std::vector<std::string>& arrays = {}) {
  v1::ComputeRequest request;
  *request.mutable_operation() = sample.operation;
  for (size_t i = 0; i < sample.operands.size(); ++i) {
    v1::Operand* const operand = request.add_operands();
    *operand->mutable_spec() = sample.specs[i];
    if (i < arrays.size() && !arrays[i].empty()) {
      operand->set_array(arrays[i]);
    } else {
      operand->set_data(sample.operands[i]);
    }
  }
  return request;
}

// --- calls ----------------------------------------------------------------------------------------------

inline Answer Computed(ArrayCaller& calls, const v1::ComputeRequest& request) {
  v1::ComputeResponse response;
  const auto status = calls.kernels->Compute(calls.Context().get(), request, &response);
  return AnswerOf(status, response);
}

/// By the unary method whose request has the operation's message as its `op`; nothing where there is none.
inline std::optional<Answer> ByTypedMethod(const TestServer& server, const Sample& sample) {
  const auto* const service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("tilewire.v1.Kernels");
  for (int m = 0; m < service->method_count(); ++m) {
    const auto* const type = service->method(m)->input_type();
    const auto* const op = type->FindFieldByName("op");
    if (op == nullptr || op->message_type() != MemberOf(sample.operation)->message_type()) continue;
    auto* const factory = google::protobuf::MessageFactory::generated_factory();
    const std::unique_ptr<google::protobuf::Message> request(factory->GetPrototype(type)->New());
    request->GetReflection()->MutableMessage(request.get(), op)->CopyFrom(MessageOf(sample.operation));
    const v1::ComputeRequest generic = RequestOf(sample);
    int operand = 0;
    for (int f = 0; f < type->field_count(); ++f)
      if (type->field(f)->message_type() == v1::Operand::descriptor())
        request->GetReflection()
            ->MutableMessage(request.get(), type->field(f))
            ->CopyFrom(generic.operands(operand++));
    ByteCall call(server.Connect(), "/tilewire.v1.Kernels/" + service->method(m)->name());
    call.context.AddMetadata("who", "me");
    const auto reply = call.Unary(request->SerializeAsString());
    v1::ComputeResponse response;  // the typed ones have the same fields
    EXPECT_TRUE(response.ParseFromString(reply.bytes));
    return AnswerOf(reply.status, response);
  }
  return {};
}

/// Output chunks of all streams of a job: each byte of each result must come once.
class Output {
 public:
  /// Reads a stream to its end.
  grpc::Status Read(RawStream& raw) {
    v1::ExecuteResponse response;
    std::pair<uint32_t, uint64_t> next{0, 0};
    while (raw.stream->Read(&response)) {
      if (response.has_result()) raw.result = response.result();
      if (!response.has_chunk()) continue;
      const v1::Chunk& chunk = response.chunk();
      EXPECT_GE(std::pair(chunk.operand(), chunk.offset()), next) << "ascending, result after result";
      next = {chunk.operand(), chunk.offset() + chunk.data().size()};
      const std::lock_guard lock(mutex_);
      chunks_.emplace(std::pair(chunk.operand(), chunk.offset()), chunk.data());
    }
    return raw.stream->Finish();
  }
  void AddTo(std::vector<v1::ArrayResult>* results) const {
    for (const auto& [at, bytes] : chunks_) {
      ASSERT_LT(at.first, results->size());
      std::string* const data = (*results)[at.first].mutable_data();
      EXPECT_EQ(at.second, data->size());
      *data += bytes;
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<uint32_t, uint64_t>, std::string> chunks_;
};

/// By Execute over `streams` streams, which bring the blocks of every operand in turns; "" is not sent.
inline Answer Executed(const TestServer& server, v1::Open open, const std::vector<std::string>& operands,
                       size_t streams = 1) {
  open.mutable_options()->set_streams(static_cast<uint32_t>(streams));
  std::vector<std::unique_ptr<JoinedStream>> all;
  all.push_back(std::make_unique<JoinedStream>(server.Connect()));
  all[0]->context.AddMetadata("who", "me");
  if (!all[0]->Open(open)) return {.status = all[0]->Drain()};
  for (size_t i = 1; i < std::min<size_t>(streams, all[0]->opened.max_streams()); ++i) {
    all.push_back(std::make_unique<JoinedStream>(server.Connect()));
    all[i]->context.AddMetadata("who", "me");
    EXPECT_TRUE(all[i]->Join(all[0]->opened.job()));
  }
  const size_t block = all[0]->opened.block_bytes();
  Output output;
  std::vector<grpc::Status> statuses(all.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&, i] { statuses[i] = output.Read(*all[i]); });
    threads.emplace_back([&, i] {
      size_t longest = 0;
      for (const std::string& operand : operands) longest = std::max(longest, operand.size());
      for (size_t at = i * block; at < longest; at += all.size() * block)
        for (uint32_t operand = 0; operand < operands.size(); ++operand)
          if (!all[i]->SendAll(operand, operands[operand], block, at, at + block)) at = longest;
      all[i]->stream->WritesDone();
    });
  }
  for (std::thread& thread : threads) thread.join();
  Answer answer = AnswerOf(statuses[0], all[0]->result);
  for (const grpc::Status& status : statuses)
    if (!status.ok()) answer.status = status;
  output.AddTo(&answer.results);
  answer.opened = all[0]->opened;
  return answer;
}

}  // namespace tilewire::testing

#include "client/load/service.h"

#include <atomic>
#include <cstring>

namespace tilewire::load {
namespace {

/// Compares a result with the expected one as it comes, on any threads.
class Judge {
 public:
  explicit Judge(const std::vector<uint8_t>& expected) : expected_(expected) {}
  Status Take(uint64_t offset, std::span<const uint8_t> bytes) {
    const bool inside = offset <= expected_.size() && bytes.size() <= expected_.size() - offset;
    if (!inside || std::memcmp(expected_.data() + offset, bytes.data(), bytes.size()) != 0) wrong_ = true;
    compared_ += bytes.size();
    return {};
  }
  bool right() const { return !wrong_ && compared_ == expected_.size(); }

 private:
  const std::vector<uint8_t>& expected_;
  std::atomic<bool> wrong_ = false;
  std::atomic<uint64_t> compared_ = 0;
};

void Tune(const Tuning& tuning, client::CallOptions* options) {
  if (tuning.connections > 0) options->connections = tuning.connections;
  options->block_bytes = tuning.block_bytes;
  options->lanes = tuning.lanes;
  options->sequential = tuning.sequential;
}

}  // namespace

Service::Service(const Options& options, std::vector<OperationSpec> operations, Inputs inputs)
    : options_(options), operations_(std::move(operations)), inputs_(std::move(inputs)) {
  for (uint32_t i = 0; i < options_.channels; ++i)
    clients_.push_back(client::Client::Connect(options_.address));
}

Answer Service::Make(const Request& request, const Tuning& tuning, const std::stop_token& stop) {
  const OperationSpec& spec = operations_[request.operation];
  const Input& input = inputs_.at(request.operation, request.input);
  std::vector<client::ArraySource> operands;
  for (uint32_t k = 0; k < input.operands.size(); ++k) {
    const client::ArraySource* const stored = residents_.Find(request.operation, request.input, k);
    operands.push_back(stored != nullptr
                           ? *stored
                           : client::ArraySource::FromMemory(spec.operand, input.operands[k].data()));
  }
  client::CallOptions options;
  options.timeout = options_.timeout;
  options.stop = stop;
  options.form = spec.access == Access::kUnary      ? client::CallForm::kUnary
                 : spec.access == Access::kResident ? client::CallForm::kAuto
                                                    : client::CallForm::kStream;
  options.connections = spec.connections;
  options.max_attempts = 1;
  options.concurrent_sink = true;
  options.trace = request.trace;
  Tune(tuning, &options);
  Judge judge(input.expected);
  const auto sink = [&judge](uint64_t offset, std::span<const uint8_t> bytes) {
    return judge.Take(offset, bytes);
  };
  client::Client& client = clients_[request.caller % clients_.size()];
  auto reply = client.Execute(spec.operation, operands, sink, options);
  Answer answer{.bytes = spec.bytes(), .resident_bytes = spec.resident_bytes()};
  if (!reply) {
    answer.status = reply.error();
    answer.lost = spec.access == Access::kResident && answer.status.code() == Code::kNotFound;
    return answer;
  }
  answer.right = judge.right() && reply->spec == spec.result;
  answer.reply = *std::move(reply);
  return answer;
}

}  // namespace tilewire::load

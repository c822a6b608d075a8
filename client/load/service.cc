#include "client/load/service.h"

#include <atomic>
#include <cstring>

namespace tilewire::load {
namespace {

/// Compares results with the expected ones as they come, on any threads.
class Judge {
 public:
  explicit Judge(const std::vector<std::vector<uint8_t>>& expected) : expected_(expected) {}
  Status Take(size_t result, uint64_t offset, std::span<const uint8_t> bytes) {
    wrong_ = wrong_ || result >= expected_.size() || !Same(expected_[result], offset, bytes);
    compared_ += bytes.size();
    return {};
  }
  bool right() const {
    uint64_t all = 0;
    for (const auto& bytes : expected_) all += bytes.size();
    return !wrong_ && compared_ == all;
  }

 private:
  static bool Same(const std::vector<uint8_t>& expected, uint64_t offset, std::span<const uint8_t> bytes) {
    return offset <= expected.size() && bytes.size() <= expected.size() - offset &&
           std::memcmp(expected.data() + offset, bytes.data(), bytes.size()) == 0;
  }

  const std::vector<std::vector<uint8_t>>& expected_;
  std::atomic<bool> wrong_ = false;
  std::atomic<uint64_t> compared_ = 0;
};

/// Changes a byte of each page and the last one, so that an answer that was left there is no right one.
void Spoil(uint8_t* data, size_t bytes) {
  constexpr size_t kPage = 4096;
  for (size_t at = 0; at < bytes; at += kPage) data[at] = static_cast<uint8_t>(~data[at]);
  if ((bytes - 1) % kPage != 0) data[bytes - 1] = static_cast<uint8_t>(~data[bytes - 1]);
}

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

Status Service::Prepare(const Scenario& scenario, double seconds, const std::stop_token& stop) {
  client::CallOptions options;
  options.timeout = options_.timeout;
  options.stop = stop;
  for (client::Client& client : clients_)
    if (const auto info = client.Describe(options); !info) return info.error();
  TILEWIRE_RETURN_IF_ERROR(residents_.Store(&client(), operations_, inputs_, scenario.inputs, seconds, stop));
  return shared_.Share(&client(), operations_, inputs_, scenario.inputs, scenario.mode.callers, stop);
}

size_t Service::Forget() {
  return residents_.Forget() + shared_.Forget();
}

std::vector<client::ArraySource> Service::OperandsOf(const Request& request) const {
  const Input& input = inputs_.at(request.operation, request.input);
  std::vector<client::ArraySource> operands;
  for (uint32_t k = 0; k < input.operands.size(); ++k) {
    const client::ArraySource* place = residents_.Find(request.operation, request.input, k);
    if (place == nullptr) place = shared_.Find(request.operation, request.input, k);
    operands.push_back(place != nullptr
                           ? *place
                           : client::ArraySource::FromMemory(operations_[request.operation].operand,
                                                             input.operands[k].data()));
  }
  return operands;
}

Answer Service::Make(const Request& request, const Tuning& tuning, const std::stop_token& stop) {
  const OperationSpec& spec = operations_[request.operation];
  const std::vector<client::ArraySource> operands = OperandsOf(request);
  client::CallOptions options;
  options.timeout = options_.timeout;
  options.stop = stop;
  const bool stays = spec.access == Access::kResident || spec.access == Access::kRegion;
  options.form = stays                           ? client::CallForm::kAuto
                 : spec.access == Access::kUnary ? client::CallForm::kUnary
                                                 : client::CallForm::kStream;
  options.connections = spec.connections;
  options.max_attempts = 1;
  options.concurrent_sink = true;
  options.trace = request.trace;
  Tune(tuning, &options);
  const auto& expected = inputs_.at(request.operation, request.input).expected;
  Judge judge(expected);
  const client::ResultSink sink = [&judge](size_t result, uint64_t offset, std::span<const uint8_t> bytes) {
    return judge.Take(result, offset, bytes);
  };
  client::Client& client = clients_[request.caller % clients_.size()];
  const SharedArrays::ResultPlace result = shared_.Result(request.operation, request.caller);
  if (result.data != nullptr)
    for (size_t k = 0; k < expected.size(); ++k)
      Spoil(result.data + spec.result_offset(k), expected[k].size());
  auto reply = result.data != nullptr ? client.ExecuteInto(spec.operation, operands, result.place, options)
                                      : client.Execute(spec.operation, operands, sink, options);
  if (reply && result.data != nullptr)
    for (size_t k = 0; k < expected.size(); ++k)
      (void)judge.Take(k, 0, {result.data + spec.result_offset(k), expected[k].size()});
  Answer answer{
      .bytes = spec.bytes(), .resident_bytes = spec.resident_bytes(), .region_bytes = spec.region_bytes()};
  if (!reply) {
    answer.status = reply.error();
    answer.lost = stays && answer.status.code() == Code::kNotFound;
    return answer;
  }
  answer.right = judge.right() && reply->specs == spec.results;
  answer.reply = *std::move(reply);
  return answer;
}

}  // namespace tilewire::load

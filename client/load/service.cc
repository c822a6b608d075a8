#include "client/load/service.h"

#include <atomic>
#include <cstring>

namespace tilewire::load {
namespace {

/// Puts results that come over the wire into their place, on any threads.
class Landing {
 public:
  Landing(const OperationSpec& spec, uint8_t* data) : spec_(spec), data_(data) {}
  Status Take(size_t result, uint64_t offset, std::span<const uint8_t> bytes) {
    const uint64_t room =
        result < spec_.results.size() ? static_cast<uint64_t>(spec_.results[result].bytes()) : 0;
    if (offset > room || bytes.size() > room - offset) {
      outside_ = true;
      return {};
    }
    if (!bytes.empty()) std::memcpy(data_ + spec_.result_offset(result) + offset, bytes.data(), bytes.size());
    taken_ += bytes.size();
    return {};
  }
  /// Whether as much came as there is room for.
  bool whole() const { return !outside_ && taken_ == spec_.result_bytes(); }

 private:
  const OperationSpec& spec_;
  uint8_t* const data_;
  std::atomic<bool> outside_ = false;
  std::atomic<uint64_t> taken_ = 0;
};

/// Whether all results that lie in a place are the right ones.
bool Right(const OperationSpec& spec, const std::vector<std::vector<uint8_t>>& expected,
           const uint8_t* data) {
  for (size_t k = 0; k < expected.size(); ++k) {
    const auto& bytes = expected[k];
    if (!bytes.empty() && std::memcmp(bytes.data(), data + spec.result_offset(k), bytes.size()) != 0)
      return false;
  }
  return true;
}

/// What cleans the places of an operation: poison for each of its results.
ResultBuffers::Spoil SpoilOf(const OperationSpec& spec, const Inputs& inputs, uint32_t operation) {
  std::vector<std::pair<uint64_t, Poison>> poisons;
  for (size_t k = 0; k < spec.results.size(); ++k) {
    std::vector<std::span<const uint8_t>> answers;
    for (uint32_t input = 0; input < inputs.count(); ++input)
      answers.emplace_back(inputs.at(operation, input).expected[k]);
    poisons.emplace_back(spec.result_offset(k), Poison(answers));
  }
  return [poisons = std::move(poisons)](uint8_t* data) {
    for (const auto& [offset, poison] : poisons) poison.Spread(data + offset);
  };
}

void Tune(const Tuning& tuning, client::CallOptions* options) {
  if (tuning.connections > 0) options->connections = tuning.connections;
  options->block_bytes = tuning.block_bytes;
  options->lanes = tuning.lanes;
  options->sequential = tuning.sequential;
}

bool CheckedByCaller(const OperationSpec& spec) {
  return spec.result_bytes() <= kCheckedByCaller;
}

double SecondsSince(LoadClock::time_point begin) {
  return std::chrono::duration<double>(LoadClock::now() - begin).count();
}

}  // namespace

Service::Service(const Options& options, std::vector<OperationSpec> operations,
                 std::shared_ptr<const Inputs> inputs)
    : options_(options), operations_(std::move(operations)), inputs_(std::move(inputs)) {
  for (uint32_t i = 0; i < options_.channels; ++i)
    clients_.push_back(client::Client::Connect(options_.address, options_.connect));
}

Status Service::Prepare(double seconds, const std::stop_token& stop) {
  client::CallOptions options;
  options.timeout = options_.timeout;
  options.stop = stop;
  for (client::Client& client : clients_)
    if (const auto info = client.Describe(options); !info) return info.error();
  TILEWIRE_RETURN_IF_ERROR(residents_.Store(&client(), operations_, *inputs_, seconds, stop));
  std::vector<uint32_t> places;
  for (const OperationSpec& spec : operations_) places.push_back(PlacesOf(spec));
  TILEWIRE_RETURN_IF_ERROR(shared_.Share(&client(), operations_, *inputs_, places, stop));
  MakeRoom();
  return {};
}

size_t Service::Forget() {
  return residents_.Forget() + shared_.Forget();
}

uint32_t Service::PlacesOf(const OperationSpec& spec) const {
  return options_.callers + (CheckedByCaller(spec) ? 0 : options_.checkers);
}

void Service::MakeRoom() {
  for (uint32_t operation = 0; operation < operations_.size(); ++operation) {
    const OperationSpec& spec = operations_[operation];
    const ResultBuffers::Spoil spoil = SpoilOf(spec, *inputs_, operation);
    const bool own = CheckedByCaller(spec);
    const auto sharing = own ? ResultBuffers::Sharing::kByCaller : ResultBuffers::Sharing::kPool;
    std::vector<ResultPlace> shared = shared_.Results(operation);
    if (!shared.empty()) {
      buffers_.push_back(std::make_unique<ResultBuffers>(std::move(shared), sharing, spoil));
      continue;
    }
    // An open loop has more callers than calls under way at most times.
    const uint32_t most = PlacesOf(spec), at_first = own ? most : 1 + options_.checkers;
    buffers_.push_back(
        std::make_unique<ResultBuffers>(spec.result_area_bytes(), at_first, most, sharing, spoil));
  }
}

std::vector<client::ArraySource> Service::OperandsOf(const Request& request) const {
  const Input& input = inputs_->at(request.operation, request.input);
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

client::CallOptions Service::CallOptionsOf(const Request& request, const Tuning& tuning,
                                           const std::stop_token& stop) const {
  const OperationSpec& spec = operations_[request.operation];
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
  return options;
}

Answer Service::Make(const Request& request, const Tuning& tuning, const std::stop_token& stop) {
  const OperationSpec& spec = operations_[request.operation];
  const auto& expected = inputs_->at(request.operation, request.input).expected;
  const std::vector<client::ArraySource> operands = OperandsOf(request);
  const client::CallOptions options = CallOptionsOf(request, tuning, stop);
  client::Client& client = clients_[request.caller % clients_.size()];
  Answer answer{
      .bytes = spec.bytes(), .resident_bytes = spec.resident_bytes(), .region_bytes = spec.region_bytes()};
  auto place = buffers_[request.operation]->Take(request.caller, stop, &answer.held_up_seconds);
  if (!place) {
    answer.status = Status(Code::kCancelled, "", "stopped while it waited for room for its result");
    return answer;
  }
  Landing landing(spec, place->data);
  const client::ResultSink sink = [&landing](size_t result, uint64_t offset, std::span<const uint8_t> bytes) {
    return landing.Take(result, offset, bytes);
  };
  answer.began = LoadClock::now();
  auto reply = place->region ? client.ExecuteInto(spec.operation, operands, *place->region, options)
                             : client.Execute(spec.operation, operands, sink, options);
  answer.ended = LoadClock::now();
  if (!reply) {
    answer.status = reply.error();
    const bool stays = spec.access == Access::kResident || spec.access == Access::kRegion;
    answer.lost = stays && answer.status.code() == Code::kNotFound;
    return answer;
  }
  const bool whole = reply->specs == spec.results && (place->region || landing.whole());
  answer.reply = *std::move(reply);
  answer.check = [&spec, &expected, place = std::move(place), whole] {
    return whole && Right(spec, expected, place->data);
  };
  if (!CheckedByCaller(spec)) return answer;
  answer.Settle();
  answer.held_up_seconds += SecondsSince(answer.ended);
  return answer;
}

}  // namespace tilewire::load

#include "client/cpp/request.h"

#include "client/cpp/convert.h"
#include "client/cpp/wire_form.h"
#include "tilewire/v1/arrays.pb.h"

namespace tilewire::client {
namespace {

constexpr const char* kExecute = "/tilewire.v1.Kernels/Execute";

/// What fills a message from where the operand is.
struct OperandFiller {
  const ArraySource& source;
  v1::Operand* operand;
  void operator()(const ArraySource::Local&) const {
    SourceReader reader(source);
    const SourceSlice slice = reader.Slice(0, source.wire_bytes());
    operand->set_data(slice.bytes.data(), slice.bytes.size());
  }
  void operator()(const ArraySource::Stored& stored) const { operand->set_array(stored.id); }
  void operator()(const RegionPlace& place) const { ToProto(place, operand->mutable_region()); }
};
struct OpenFiller {
  uint32_t number;
  v1::Open* open;
  void operator()(const ArraySource::Local&) const {}  // chunks follow
  void operator()(const ArraySource::Stored& stored) const {
    v1::Reference* reference = open->add_references();
    reference->set_operand(number);
    reference->set_array(stored.id);
  }
  void operator()(const RegionPlace& place) const {
    v1::Reference* reference = open->add_references();
    reference->set_operand(number);
    ToProto(place, reference->mutable_region());
  }
};

FirstMessage GetMessage(const GetTask& get, const CallSpec& spec, uint32_t streams) {
  v1::GetRequest request;
  request.set_array(get.id);
  SetOptions(spec, request.mutable_options());
  request.mutable_options()->set_streams(streams);
  return {"/tilewire.v1.Arrays/Get", request.SerializeAsString()};
}

}  // namespace

void FillOperand(const ArraySource& source, v1::Operand* operand) {
  if (source.known_spec()) ToProto(source.spec(), operand->mutable_spec());
  std::visit(OperandFiller{source, operand}, source.place());
}

void AddOperand(const ArraySource& source, v1::Open* open) {
  const auto number = static_cast<uint32_t>(open->operands_size());
  v1::ArraySpec* const spec = open->add_operands();
  if (source.known_spec()) ToProto(source.spec(), spec);
  std::visit(OpenFiller{number, open}, source.place());
}

void SetOptions(const CallSpec& spec, v1::Options* out) {
  out->set_trace(spec.options.trace);
  out->set_block_bytes(spec.options.block_bytes);
  out->set_lanes(spec.options.lanes);
  out->set_sequential(spec.options.sequential);
  if (spec.into) ToProto(*spec.into, out->mutable_result_region());
  if (!spec.store) return;
  out->mutable_store()->set_ttl_seconds(spec.store->seconds);
  out->mutable_store()->set_evictable(spec.store->evictable);
  out->mutable_store()->set_idempotency_key(spec.store->idempotency_key);
}

FirstMessage OpenMessage(const CallSpec& spec, uint32_t streams) {
  if (const auto* get = std::get_if<GetTask>(&spec.task)) return GetMessage(*get, spec, streams);
  v1::ExecuteRequest request;
  v1::Open* const open = request.mutable_open();
  const auto* const operation = std::get_if<Operation>(&spec.task);
  if (operation != nullptr) {
    SetOperation(*operation, open);
  } else {
    open->mutable_put();
  }
  for (const auto& source : spec.sources) AddOperand(source, open);
  SetOptions(spec, open->mutable_options());
  open->mutable_options()->set_streams(streams);
  return {operation != nullptr ? kExecute : "/tilewire.v1.Arrays/Put", request.SerializeAsString()};
}

FirstMessage JoinMessage(const std::string& job) {
  v1::ExecuteRequest request;
  request.mutable_join()->set_job(job);
  return {kExecute, request.SerializeAsString()};
}

}  // namespace tilewire::client

// The fake server's streams, and the service of arrays.
#include <chrono>
#include <thread>

#include "proto/wire/codec.h"
#include "tests/unit/client_fake_impl.h"
#include "tests/unit/waiting.h"

namespace tilewire::client::testing {

grpc::Status FakeServer::Impl::Execute(grpc::ServerContext* context, Stream* stream) {
  FakeBehaviour behaviour;
  if (auto status = Begin(context, true, &behaviour); !status.ok()) return status;
  v1::ExecuteRequest request;
  if (!stream->Read(&request)) return {grpc::INVALID_ARGUMENT, "no message"};
  if (request.has_join() && behaviour.late_joiner) return JoinLate(context, stream);
  if (!request.has_open()) return {grpc::INVALID_ARGUMENT, "no Open"};
  if (behaviour.silent) return AwaitCancel(context);
  const v1::Open open = request.open();
  Note(open.options());
  std::vector<Operand> operands;
  ArraySpec spec;
  if (auto status = Operands(open, behaviour, &operands, &spec); !status.ok()) return status;
  SendOpened(stream, behaviour);
  if (behaviour.stalled) return AwaitCancel(context);
  if (behaviour.lie != Lie::kNoOpened)
    if (auto status = Receive(context, stream, behaviour, &operands); !status.ok()) return status;
  if (operands.size() != (open.has_rmse() ? 2u : 1u))
    return {grpc::INVALID_ARGUMENT, "wrong number of operands"};
  const auto computed =
      open.has_put()         ? Computed{spec, operands[0].data(), ""}
      : open.has_rmse()      ? ComputeRmse(open.rmse(), spec, operands[0].data(), operands[1].data())
      : open.has_transpose() ? ComputeTranspose(open.transpose(), spec, operands[0].data())
                             : ComputeGaussian(open.gaussian_pdf(), spec, operands[0].data());
  if (!computed) return FromStatus(computed.error());
  if (!open.has_put() && !open.options().has_store()) {
    Send(stream, behaviour, *computed);
    return grpc::Status::OK;
  }
  v1::ExecuteResponse response;
  v1::Result* result = response.mutable_result();
  if (auto status = Store(open.options().store(), *computed, result->add_results()); !status.ok())
    return status;
  result->set_numeric_version(computed->version);
  FillTiming(result->mutable_timing(), 0, 0);
  stream->Write(response);
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::Operands(const v1::Open& open, const FakeBehaviour& behaviour,
                                        std::vector<Operand>* operands, ArraySpec* spec) {
  for (int i = 0; i < open.operands_size(); ++i) {
    std::string id;
    for (const auto& reference : open.references())
      if (reference.operand() == static_cast<uint32_t>(i)) id = reference.array();
    if (!id.empty()) {
      const auto array = arrays_.Find(id);
      if (!array) return FakeArrays::NotFound(id, "references[0].array");
      *spec = array->spec;
      operands->emplace_back(array->bytes);
      continue;
    }
    const auto read = ReadSpec(open.operands(i));
    if (!read) return FromStatus(read.error());
    *spec = *read;
    operands->emplace_back(static_cast<uint64_t>(spec->bytes()), behaviour.block_bytes);
  }
  return grpc::Status::OK;
}

void FakeServer::Impl::SendOpened(Writer* stream, const FakeBehaviour& behaviour) {
  v1::ExecuteResponse response;
  v1::Opened* opened = response.mutable_opened();
  opened->set_job("fake-1");
  opened->set_block_bytes(behaviour.block_bytes);
  opened->set_window_bytes(behaviour.window_bytes);
  opened->set_max_message_bytes(behaviour.max_message_bytes);
  opened->set_max_streams(behaviour.late_joiner ? 2 : 1);
  const grpc::WriteOptions options;
  if (behaviour.lie != Lie::kNoOpened) stream->Write(response, options);
  if (behaviour.lie == Lie::kOpenedTwice) stream->Write(response, options);
}

grpc::Status FakeServer::Impl::Store(const v1::Store& how, const Computed& computed,
                                     v1::ArrayResult* result) {
  const std::lock_guard lock(mutex_);
  WriteSpec(computed.spec, result->mutable_spec());
  if (behaviour_.lie == Lie::kWrongSpec) result->mutable_spec()->add_shape(3);
  const std::string id = arrays_.Keep(how, computed.spec, computed.bytes);
  if (behaviour_.lie != Lie::kNoId) result->set_array(id);
  if (behaviour_.lost > 0 && behaviour_.lost-- > 0) return {grpc::UNAVAILABLE, "Socket closed"};
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::Get(grpc::ServerContext* context, const v1::GetRequest* request,
                                   grpc::ServerWriter<v1::ExecuteResponse>* stream) {
  FakeBehaviour behaviour;
  if (auto status = Begin(context, true, &behaviour); !status.ok()) return status;
  if (behaviour.silent) return AwaitCancel(context);
  const auto array = arrays_.Find(request->array());
  if (!array) return FakeArrays::NotFound(request->array(), "array");
  Note(request->options());
  SendOpened(stream, behaviour);
  if (behaviour.late_joiner) return GetFirstHalf(context, *array, stream);
  Send(stream, behaviour, {array->spec, array->bytes, ""});
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::GetFirstHalf(grpc::ServerContext* context, const FakeArray& array,
                                            Writer* stream) {
  (void)tilewire::testing::Eventually([&] { return joined_ || context->IsCancelled(); });
  const size_t half = array.bytes.size() / 2;
  const grpc::WriteOptions options;
  v1::ExecuteResponse message;
  message.mutable_chunk()->set_data(array.bytes.substr(0, half));
  stream->Write(message, options);
  WriteSpec(array.spec, message.mutable_result()->add_results()->mutable_spec());
  stream->Write(message, options);
  second_half_ = array.bytes.substr(half);
  first_over_ = true;
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::JoinLate(grpc::ServerContext* context, Writer* stream) {
  joined_ = true;
  (void)tilewire::testing::Eventually([&] { return first_over_ || context->IsCancelled(); });
  // Time for the client to see the first stream's end, which nobody tells a server.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const grpc::WriteOptions options;
  v1::ExecuteResponse message;
  message.mutable_joined()->set_stream(1);
  stream->Write(message, options);
  message.mutable_chunk()->set_offset(second_half_.size());
  message.mutable_chunk()->set_data(second_half_);
  stream->Write(message, options);
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::Stat(grpc::ServerContext* context, const v1::StatRequest* request,
                                    v1::ArrayInfo* response) {
  FakeBehaviour behaviour;
  if (auto status = Begin(context, false, &behaviour); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  ++log_.stats;
  const auto array = arrays_.Find(request->array());
  if (!array) return FakeArrays::NotFound(request->array(), "array");
  FakeArrays::Fill(request->array(), *array, response);
  if (behaviour.lie == Lie::kWrongSpec) response->mutable_spec()->add_shape(-3);
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::List(grpc::ServerContext* context, const v1::ListRequest* request,
                                    v1::ListResponse* response) {
  FakeBehaviour behaviour;
  if (auto status = Begin(context, false, &behaviour); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  ++log_.lists;
  arrays_.List(behaviour.list_page, request->page(), response);
  if (behaviour.lie == Lie::kSamePage && !request->page().empty()) response->set_next_page(request->page());
  return grpc::Status::OK;
}

grpc::Status FakeServer::Impl::Delete(grpc::ServerContext* context, const v1::DeleteRequest* request,
                                      v1::DeleteResponse*) {
  FakeBehaviour behaviour;
  if (auto status = Begin(context, false, &behaviour); !status.ok()) return status;
  if (behaviour.silent) return AwaitCancel(context);
  return arrays_.Delete(request->array()) ? grpc::Status::OK
                                          : FakeArrays::NotFound(request->array(), "array");
}

grpc::Status FakeServer::Impl::Receive(grpc::ServerContext* context, Stream* stream,
                                       const FakeBehaviour& behaviour, std::vector<Operand>* operands) {
  v1::ExecuteRequest request;
  for (int count = 0; stream->Read(&request); ++count) {
    if (behaviour.fail_after_chunks && count >= *behaviour.fail_after_chunks)
      return WithDetails(grpc::DATA_LOSS, "chunk.crc32c is 7; allowed: 8", "CHECKSUM",
                         {{"field", "chunk.crc32c"}, {"value", "7"}, {"allowed", "8"}});
    const std::lock_guard lock(mutex_);
    if (behaviour_.busy_later > 0 && behaviour_.busy_later-- > 0) return TooBusy(context);
    if (!request.has_chunk() || request.chunk().operand() >= operands->size()) {
      log_.mistakes.push_back("no chunk of a known operand");
      return {grpc::INVALID_ARGUMENT, log_.mistakes.back()};
    }
    const v1::Chunk& chunk = request.chunk();
    log_.chunks.push_back({chunk.operand(), chunk.offset(), chunk.data().size()});
    std::string complaint = TakeWithin(behaviour.window_bytes, chunk, operands);
    if (request.ByteSizeLong() > behaviour.max_message_bytes) complaint = "a message over max_message_bytes";
    if (!complaint.empty()) {
      log_.mistakes.push_back(complaint);
      return WithDetails(grpc::INVALID_ARGUMENT, complaint, "RUN_RULE");
    }
  }
  for (const Operand& operand : *operands) {
    if (operand.complete()) continue;
    const std::lock_guard lock(mutex_);
    log_.mistakes.push_back("bytes missing");
    return WithDetails(grpc::INVALID_ARGUMENT, "bytes missing", "BYTES_MISSING");
  }
  return grpc::Status::OK;
}

void FakeServer::Impl::Send(Writer* stream, const FakeBehaviour& behaviour, const Computed& computed) {
  v1::ExecuteResponse message;
  const grpc::WriteOptions options;
  const bool small = computed.bytes.size() <= 65536;
  for (size_t at = 0; !small && at < computed.bytes.size(); at += behaviour.output_chunk_bytes) {
    v1::Chunk* chunk = message.mutable_chunk();
    chunk->set_offset(at);
    chunk->set_data(computed.bytes.substr(at, behaviour.output_chunk_bytes));
    const auto* data = reinterpret_cast<const uint8_t*>(chunk->data().data());
    const uint32_t crc = wire::Crc32c({{data, chunk->data().size()}});
    chunk->set_crc32c(behaviour.lie == Lie::kWrongChecksum ? crc + 1 : crc);
    if (behaviour.lie == Lie::kMissingOutput && at > 0) break;
    stream->Write(message, options);
    if (behaviour.lie == Lie::kRepeatedOutput) stream->Write(message, options);
  }
  if (behaviour.lie == Lie::kTooMuchOutput) {
    message.mutable_chunk()->set_offset(computed.bytes.size());
    message.mutable_chunk()->set_data("x");
    message.mutable_chunk()->clear_crc32c();
    stream->Write(message, options);
  }
  if (behaviour.lie == Lie::kNoResult) return;
  v1::Result* result = message.mutable_result();
  v1::ArrayResult* array = result->add_results();
  WriteSpec(computed.spec, array->mutable_spec());
  if (behaviour.lie == Lie::kWrongSpec) array->mutable_spec()->set_dtype(v1::DTYPE_I8);
  if (small) array->set_data(behaviour.lie == Lie::kShortData ? computed.bytes.substr(1) : computed.bytes);
  if (behaviour.lie == Lie::kStored) array->set_array("fake-array-9");
  result->set_numeric_version(computed.version);
  FillTiming(result->mutable_timing(), 0, computed.bytes.size());
  result->mutable_timing()->set_receive_us(50);
  result->mutable_timing()->set_overlap(1.25);
  if (behaviour.lie == Lie::kTwoResults) stream->Write(message, options);
  stream->Write(message, options);
}

}  // namespace tilewire::client::testing

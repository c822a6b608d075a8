#include "client/cpp/client.h"

#include <cstring>

#include "client/cpp/client_impl.h"

namespace tilewire::client {
namespace {

/// The sink of a call with one result. It refers to `sink`.
ResultSink OfOneResult(const Sink& sink) {
  return [&sink](size_t result, uint64_t offset, std::span<const uint8_t> bytes) {
    if (result == 0) return sink(offset, bytes);
    return BadValue("sink", "of one result", "a ResultSink: the operation has several").value();
  };
}

}  // namespace

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Client Client::Connect(const std::string& address, const ConnectOptions& options) {
  return Client(std::make_unique<Impl>(address, options));
}

Result<Reply> Client::Execute(const Operation& operation, std::span<const ArraySource> operands,
                              const Sink& sink, const CallOptions& options) {
  return impl_->Execute(operation, operands, std::nullopt, std::nullopt, OfOneResult(sink), options);
}

Result<Reply> Client::Execute(const Operation& operation, std::span<const ArraySource> operands,
                              const ResultSink& sink, const CallOptions& options) {
  return impl_->Execute(operation, operands, std::nullopt, std::nullopt, sink, options);
}

Result<RmseReply> Client::Rmse(const ArraySource& a, const ArraySource& b, const RmseOp& op,
                               const CallOptions& options) {
  const ArraySource operands[2] = {a, b};
  RmseReply out;
  // How many values there will be may be known only when they come.
  const Sink sink = [&out](uint64_t offset, std::span<const uint8_t> bytes) {
    const size_t values = (offset + bytes.size() + sizeof(double) - 1) / sizeof(double);
    if (out.values.size() < values) out.values.resize(values);
    std::memcpy(reinterpret_cast<uint8_t*>(out.values.data()) + offset, bytes.data(), bytes.size());
    return Status();
  };
  CallOptions one_at_a_time = options;
  one_at_a_time.concurrent_sink = false;
  TILEWIRE_ASSIGN_OR_RETURN(out.reply, Execute(op, operands, sink, one_at_a_time));
  if (out.reply.spec.dtype != DType::kF64)
    return Fail(BadReply("the result is " + std::string(Name(out.reply.spec.dtype)) + ", expected f64"));
  return out;
}

Result<Reply> Client::Transpose(const ArraySource& input, const TransposeOp& op, const Sink& sink,
                                const CallOptions& options) {
  return Execute(op, {&input, 1}, sink, options);
}

Result<Reply> Client::GaussianPdf(const ArraySource& input, const GaussianOp& op, const Sink& sink,
                                  const CallOptions& options) {
  return Execute(op, {&input, 1}, sink, options);
}

Result<StoredReply> Client::Store(const Operation& operation, std::span<const ArraySource> operands,
                                  const StoreOptions& store, const CallOptions& options) {
  TILEWIRE_ASSIGN_OR_RETURN(Reply reply,
                            impl_->Execute(operation, operands, store, std::nullopt, {}, options));
  return impl_->Own(std::move(reply));
}

Result<StoredReply> Client::Put(const ArraySource& source, const StoreOptions& store,
                                const CallOptions& options) {
  TILEWIRE_ASSIGN_OR_RETURN(Reply reply, impl_->Put(source, store, options));
  return impl_->Own(std::move(reply));
}

Result<Reply> Client::Get(const std::string& id, const Sink& sink, const CallOptions& options) {
  return impl_->Get(id, std::nullopt, OfOneResult(sink), options);
}

Result<Reply> Client::Get(const ArraySource& array, const Sink& sink, const CallOptions& options) {
  const auto* stored = std::get_if<ArraySource::Stored>(&array.place());
  if (stored == nullptr) return BadValue("array", "here already", "one that the server keeps");
  return impl_->Get(stored->id, array.known_spec(), OfOneResult(sink), options);
}

Result<ArrayInfo> Client::Stat(const std::string& id, const CallOptions& options) {
  return impl_->Stat(id, options, DeadlineOf(options));
}

Result<ArrayList> Client::List(const CallOptions& options) {
  return impl_->List(options);
}

Status Client::Delete(const std::string& id, const CallOptions& options) {
  return DeleteArray(impl_->link(), id, options);
}

}  // namespace tilewire::client

#include "server/rpc/calls/unary_request.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/base/limits.h"
#include "server/rpc/calls/known_requests.h"
#include "server/rpc/conversions/convert.h"
#include "server/rpc/conversions/operations.h"

namespace tilewire::rpc {
namespace {

// Room for everything of a reply but the arrays: specs, version, timing; and for spans when they are wanted.
constexpr int64_t kReplyOverhead = 4 * kKiB, kTraceOverhead = 256 * kKiB;

Status CheckData(const wire::UnaryView::Payload& payload, const ArraySpec& spec, const std::string& field) {
  if (payload.data_bytes == static_cast<uint64_t>(spec.bytes())) return {};
  return BadValue(field + ".data", std::to_string(payload.data_bytes) + " bytes long",
                  std::to_string(spec.bytes()) + " bytes, as its dtype and shape say")
      .value();
}

/// What the next operand of the request is: bytes that came, a resident array, or bytes of a region.
Result<ArraySpec> TakeOperand(const v1::Operand& operand, const std::string& field, Finder* finder,
                              UnaryRequest* request) {
  engine::ArrayUse& resident = request->references.arrays.emplace_back();
  engine::RegionPart& part = request->references.regions.emplace_back();
  const bool in_region = operand.has_region(), stored = !operand.array().empty();
  if (!stored && !in_region) return FromProto(operand.spec(), field + ".spec");
  if (stored && in_region) return BadValue(field, "an array and a region", "one of them");
  const uint64_t bytes = request->view.operands[request->references.arrays.size() - 1].data_bytes;
  if (bytes > 0)
    return BadValue(field + ".data", std::to_string(bytes) + " bytes long",
                    stored ? "nothing beside the array's id" : "nothing beside the place in a region");
  if (in_region) {
    TILEWIRE_ASSIGN_OR_RETURN(part, finder->Place(operand.region(), field + ".region"));
    return FromProto(operand.spec(), field + ".spec");
  }
  TILEWIRE_ASSIGN_OR_RETURN(resident, finder->Array(operand.array(), field + ".array"));
  return ResidentSpec(operand.spec(), *resident, field + ".spec");
}

/// What a thread of its own knows already where the header is one that it has seen, else what `parse` makes
/// of the view.
template <typename Parse>
Result<UnaryRequest> Remembered(ParseUnary* method, wire::UnaryView view, Finder* finder,
                                const Parse& parse) {
  KnownRequests& known = KnownRequests::OfThisThread();
  if (auto request = known.Find(method, &view, finder)) return *std::move(request);
  std::string header = view.header;
  TILEWIRE_ASSIGN_OR_RETURN(UnaryRequest request, parse(std::move(view)));
  known.Keep(method, std::move(header), request);
  return request;
}

/// What is left of a request without the bytes of its operands.
template <typename Proto>
Result<Proto> ParseHeader(wire::UnaryView* view) {
  if (view->header.size() > static_cast<size_t>(kMaxHeaderBytes))
    return OverLimit("request without operand data", std::to_string(view->header.size()) + " bytes",
                     std::to_string(kMaxHeaderBytes));
  Proto proto;
  if (!proto.ParseFromString(view->header))
    return Fail(Status(Code::kInvalidArgument, "BAD_MESSAGE", "the request is no " + proto.GetTypeName()));
  view->header = std::string();  // parsed; not to be kept while the call waits
  return proto;
}

/// An operand of a request, and its name for people.
struct NamedOperand {
  const v1::Operand& operand;
  std::string name;
};

/// A request for `operation`, from whatever message it came in.
Result<UnaryRequest> MakeRequest(wire::UnaryView view, const v1::Operation& operation,
                                 std::span<const NamedOperand> operands, const v1::Options& options,
                                 Finder* finder) {
  UnaryRequest request;
  request.view = std::move(view);
  std::vector<ArraySpec> specs;
  for (const auto& [operand, name] : operands) {
    TILEWIRE_ASSIGN_OR_RETURN(specs.emplace_back(), TakeOperand(operand, name, finder, &request));
  }
  TILEWIRE_ASSIGN_OR_RETURN(request.operation, OperationOf(operation, specs));
  // What is there all at once is computed at once: one launch where there would be a range's and a finish.
  // What is large and comes from regions of the host comes block by block. Not left to the engine, so that it
  // is made once for all requests that are alike (KnownRequests).
  const auto& arrays = request.references.arrays;
  const bool there =
      std::all_of(arrays.begin(), arrays.end(), [](const auto& array) { return array != nullptr; });
  if (there || ClassOf(*request.operation) == JobClass::kSmall)
    if (auto whole = request.operation->Whole()) request.operation = std::move(whole);
  for (size_t i = 0; i < operands.size(); ++i)
    if (request.references.sent(i))
      TILEWIRE_RETURN_IF_ERROR(
          CheckData(request.view.operands[i], request.operation->operands()[i], operands[i].name));
  TILEWIRE_ASSIGN_OR_RETURN(request.options, JobOptionsOf(options));
  // Operands that are sent come one after the other, which no window could bear.
  request.options.may_window = !request.references.any_sent();
  TILEWIRE_RETURN_IF_ERROR(Complete(options, std::move(request.references), finder, &request.options));
  return request;
}

}  // namespace

JobClass ClassOf(const engine::Operation& operation) {
  int64_t bytes = operation.result_bytes();
  for (const ArraySpec& operand : operation.operands()) bytes += operand.bytes();
  return bytes <= kSmallJobBytes ? JobClass::kSmall : JobClass::kBulk;
}

Status CheckSizes(const UnaryRequest& request) {
  const int64_t room = kMaxUnaryBytes - kReplyOverhead - (request.options.trace ? kTraceOverhead : 0);
  const int64_t bytes = request.operation->payload_bytes();
  if (bytes <= room || request.options.store || request.options.result_region) return {};
  return Status({.code = Code::kResourceExhausted,
                 .reason = "USE_EXECUTE",
                 .message = "the reply would carry " + std::to_string(bytes) +
                            " bytes; a unary reply carries at most " + std::to_string(room) +
                            "; call Execute",
                 .field = "result",
                 .value = std::to_string(bytes),
                 .allowed = std::to_string(room)});
}

Status CheckMessage(const Received& message) {
  if (message.bytes() <= static_cast<size_t>(kMaxUnaryBytes)) return {};
  return OverLimit("request", std::to_string(message.bytes()) + " bytes",
                   std::to_string(kMaxUnaryBytes) + "; larger arrays go through Execute")
      .value();
}

Result<UnaryRequest> ParseRmse(const Received& message, Finder* finder) {
  static constexpr int kOperands[] = {v1::RmseRequest::kAFieldNumber, v1::RmseRequest::kBFieldNumber};
  TILEWIRE_ASSIGN_OR_RETURN(auto view, wire::SplitUnary(message.pieces(), kOperands));
  return Remembered(&ParseRmse, std::move(view), finder,
                    [finder](wire::UnaryView split) -> Result<UnaryRequest> {
                      TILEWIRE_ASSIGN_OR_RETURN(auto proto, ParseHeader<v1::RmseRequest>(&split));
                      v1::Operation operation;
                      operation.mutable_rmse()->Swap(proto.mutable_op());
                      const NamedOperand operands[] = {{proto.a(), "a"}, {proto.b(), "b"}};
                      return MakeRequest(std::move(split), operation, operands, proto.options(), finder);
                    });
}

Result<UnaryRequest> ParseTranspose(const Received& message, Finder* finder) {
  static constexpr int kOperands[] = {v1::TransposeRequest::kInputFieldNumber};
  TILEWIRE_ASSIGN_OR_RETURN(auto view, wire::SplitUnary(message.pieces(), kOperands));
  return Remembered(&ParseTranspose, std::move(view), finder,
                    [finder](wire::UnaryView split) -> Result<UnaryRequest> {
                      TILEWIRE_ASSIGN_OR_RETURN(auto proto, ParseHeader<v1::TransposeRequest>(&split));
                      v1::Operation operation;
                      operation.mutable_transpose()->Swap(proto.mutable_op());
                      const NamedOperand operands[] = {{proto.input(), "input"}};
                      return MakeRequest(std::move(split), operation, operands, proto.options(), finder);
                    });
}

Result<UnaryRequest> ParseGaussianPdf(const Received& message, Finder* finder) {
  static constexpr int kOperands[] = {v1::GaussianPdfRequest::kInputFieldNumber};
  TILEWIRE_ASSIGN_OR_RETURN(auto view, wire::SplitUnary(message.pieces(), kOperands));
  return Remembered(&ParseGaussianPdf, std::move(view), finder,
                    [finder](wire::UnaryView split) -> Result<UnaryRequest> {
                      TILEWIRE_ASSIGN_OR_RETURN(auto proto, ParseHeader<v1::GaussianPdfRequest>(&split));
                      if (!proto.has_op()) return BadValue("op", "not set", "a GaussianOp: mean and stddev");
                      v1::Operation operation;
                      operation.mutable_gaussian_pdf()->Swap(proto.mutable_op());
                      const NamedOperand operands[] = {{proto.input(), "input"}};
                      return MakeRequest(std::move(split), operation, operands, proto.options(), finder);
                    });
}

Result<UnaryRequest> ParseCompute(const Received& message, Finder* finder) {
  TILEWIRE_ASSIGN_OR_RETURN(
      auto view,
      wire::SplitRepeated(message.pieces(), v1::ComputeRequest::kOperandsFieldNumber, kMaxOperands));
  return Remembered(
      &ParseCompute, std::move(view), finder, [finder](wire::UnaryView split) -> Result<UnaryRequest> {
        TILEWIRE_ASSIGN_OR_RETURN(const auto proto, ParseHeader<v1::ComputeRequest>(&split));
        const size_t wanted = OperandCount(proto.operation());
        if (wanted == 0) return Fail(NoOperation("operation", OperationNames()));
        if (static_cast<size_t>(proto.operands_size()) != wanted)
          return Fail(WrongCount("operands", proto.operands_size(), wanted));
        std::vector<NamedOperand> operands;
        for (int i = 0; i < proto.operands_size(); ++i)
          operands.push_back({proto.operands(i), "operands[" + std::to_string(i) + "]"});
        return MakeRequest(std::move(split), proto.operation(), operands, proto.options(), finder);
      });
}

}  // namespace tilewire::rpc

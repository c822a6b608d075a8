// Between protobuf messages and the types of kernels and engine. Every check of a request's fields is here or
// in the descriptors.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/array/shape.h"
#include "kernels/array/status.h"
#include "server/base/timing.h"
#include "server/engine/job/job.h"
#include "server/engine/operation/operation.h"
#include "server/engine/stores/array_store.h"
#include "tilewire/v1/device.pb.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::rpc {

/// INVALID_ARGUMENT naming `field` for an unknown dtype, a bad extent or an overflow.
Result<ArraySpec> FromProto(const v1::ArraySpec& spec, const std::string& field);
void ToProto(const ArraySpec& spec, v1::ArraySpec* out);
void ToProto(const Timing& timing, v1::Timing* out);
/// What a result of a job is and, where it is not handed out, where it is.
void DescribeResult(const engine::Job& job, size_t result, v1::ArrayResult* out);

/// How many operands an operation has; 0 where `operation` names none.
size_t OperandCount(const v1::Operation& operation);
/// The operation on operands of these specs. INVALID_ARGUMENT as Descriptor::Make says, and where it names
/// none.
Result<std::unique_ptr<engine::Operation>> OperationOf(const v1::Operation& operation,
                                                       std::span<const ArraySpec> operands);
/// The refusal of a request whose `field` names no operation.
Status NoOperation(const std::string& field, const std::string& allowed);
/// The refusal of `count` operands where `wanted` belong.
Status WrongCount(const std::string& field, int count, size_t wanted);
/// What an array is, where a request may say it and `resident` is it; INVALID_ARGUMENT naming `field` when it
/// says something else.
Result<ArraySpec> ResidentSpec(const v1::ArraySpec& spec, const engine::ResidentArray& resident,
                               const std::string& field);
/// Which part of a list a request asks for.
struct PageRequest {
  uint64_t begin = 0;
  size_t size = 0;
};
/// INVALID_ARGUMENT for a size over kMaxListPage or a token that was never given.
Result<PageRequest> PageOf(uint32_t page_size, const std::string& page);

/// The operation of an Open, which asks for `asked`; INVALID_ARGUMENT when it names none or a wrong number of
/// operands. `residents`: [operand], null where an operand is no resident array.
Result<std::unique_ptr<engine::Operation>> OperationOf(const v1::Open& open, const v1::Operation& asked,
                                                       const std::vector<engine::ArrayUse>& residents);
/// A question about kernels: those of an operation, told as `text`, or, with null, the catalogue.
struct KernelQuestion {
  std::unique_ptr<engine::Operation> operation;
  std::string text;
};
/// INVALID_ARGUMENT as above.
Result<KernelQuestion> QuestionOf(const v1::DescribeKernelsRequest& request);

/// How the client wants the job to be run, but for streams and windows, which are the call form's;
/// INVALID_ARGUMENT for a block size out of bounds or an idempotency key that is none.
Result<engine::JobOptions> JobOptionsOf(const v1::Options& options);
/// Bytes a chunk of output may have; INVALID_ARGUMENT outside 4 KiB to 4 MiB.
Result<int64_t> OutputChunkBytes(const v1::Options& options);

}  // namespace tilewire::rpc

// Operands and tasks as messages. Internal to the library.
#pragma once

#include <cstdint>
#include <string>

#include "client/cpp/call_spec.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::client {

/// The operand of a unary call, its bytes or where they are.
void FillOperand(const ArraySource& source, v1::Operand* operand);
/// The next operand of an Open.
void AddOperand(const ArraySource& source, v1::Open* open);
/// Options of an operation, streams aside.
void SetOptions(const CallSpec& spec, v1::Options* out);

/// How a streamed call begins.
struct FirstMessage {
  std::string method;   ///< "/tilewire.v1.Kernels/Execute"
  std::string message;  ///< serialized
};
/// Of the stream that opens the job, for up to `streams` streams.
FirstMessage OpenMessage(const CallSpec& spec, uint32_t streams);
/// Of one that joins.
FirstMessage JoinMessage(const std::string& job);

}  // namespace tilewire::client

// The commands of operations: they run what the table of client/cpp/operations.h has.
#include <cstdio>
#include <cstring>

#include "client/cli/answer.h"
#include "client/cli/operands.h"
#include "client/cli/tracks.h"
#include "client/cli/values.h"
#include "client/cpp/tls_explain.h"

namespace tilewire::cli {
namespace {

using client::ArraySource;
using client::Reply;
using nlohmann::ordered_json;

/// The operands of a command, in order.
Result<std::vector<ArraySource>> OpenOperands(const std::vector<std::string>& names) {
  std::vector<ArraySource> operands;
  for (const std::string& name : names) {
    TILEWIRE_ASSIGN_OR_RETURN(ArraySource operand, OpenOperand(name));
    operands.push_back(std::move(operand));
  }
  return operands;
}

/// Runs `operation` with its result going to a file at `path`. The file is there when this returns a reply.
/// `exit_code` tells a file that cannot be written, found before anything was sent, from the rest.
Result<Reply> RunToFile(const Globals& globals, const client::Operation& operation,
                        std::vector<ArraySource> operands, const std::string& path, int* exit_code) {
  *exit_code = kExitFailed;
  auto client = client::Client::Connect(globals.server, globals.connect);
  client::CallOptions options = globals.call_options();
  TILEWIRE_RETURN_IF_ERROR(LearnSpecs(&client, &operands, &options));
  std::vector<ArraySpec> specs;
  for (const auto& operand : operands) specs.push_back(operand.spec());
  TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec result, client::ResultSpec(operation, specs));
  auto output = NpyOutput::Create(path, result);
  if (!output) {
    *exit_code = kExitUsage;
    return Fail(output.error());
  }
  ProgressLine progress;
  options.progress = [&progress](const client::Progress& p) { progress.Update(p); };
  options.concurrent_sink = true;  // each byte has its own place in the file
  const client::Sink sink = [&output](uint64_t offset, std::span<const uint8_t> bytes) {
    return output->Write(offset, bytes);
  };
  auto reply = client.Execute(operation, operands, sink, options);
  if (reply) TILEWIRE_RETURN_IF_ERROR(output->Commit());
  return reply;
}

/// Runs `operation` from start to end, its result going to a file.
int RunWithFile(const Globals& globals, const client::Operation& operation,
                const std::vector<ArraySource>& operands, const std::string& out) {
  auto files = TraceFiles::Open(globals, out);
  if (!files) return PrintError(files.error(), kExitUsage);
  int exit_code = kExitOk;
  const auto reply = RunToFile(globals, operation, operands, out, &exit_code);
  if (!reply) return PrintCallError(globals, reply.error(), exit_code);
  MaybePrintTiming(globals, *reply);
  return WriteTrace(&*files, DescribeCall(operation, operands, reply->specs), *reply,
                    PrintFile(globals, out, *reply));
}

/// The same, the result staying at the server.
int RunWithStore(const Globals& globals, const client::Operation& operation,
                 const std::vector<ArraySource>& operands, const client::StoreOptions& store) {
  auto files = TraceFiles::Open(globals);
  if (!files) return PrintError(files.error(), kExitUsage);
  auto client = client::Client::Connect(globals.server, globals.connect);
  auto stored = [&] {
    ProgressLine progress;
    client::CallOptions options = globals.call_options();
    options.progress = [&progress](const client::Progress& p) { progress.Update(p); };
    return client.Store(operation, operands, store, options);
  }();
  if (!stored) return PrintCallError(globals, stored.error(), kExitFailed);
  MaybePrintTiming(globals, stored->reply);
  return WriteTrace(&*files, DescribeCall(operation, operands, stored->reply.specs), stored->reply,
                    PrintStored(globals, &*stored));
}

/// The results of `operation`, as they came.
Result<Reply> RunForValues(const Globals& globals, const client::Operation& operation,
                           const std::vector<ArraySource>& operands, std::vector<Values>* results) {
  // How many there will be may be known only when they come.
  const client::ResultSink sink = [results](size_t result, uint64_t offset, std::span<const uint8_t> piece) {
    if (results->size() <= result) results->resize(result + 1);
    std::vector<uint8_t>& bytes = (*results)[result].bytes;
    if (bytes.size() < offset + piece.size()) bytes.resize(offset + piece.size());
    std::memcpy(bytes.data() + offset, piece.data(), piece.size());
    return Status();
  };
  ProgressLine progress;
  client::CallOptions options = globals.call_options();
  options.progress = [&progress](const client::Progress& p) { progress.Update(p); };
  auto reply =
      client::Client::Connect(globals.server, globals.connect).Execute(operation, operands, sink, options);
  if (!reply) return reply;
  results->resize(reply->specs.size());
  for (size_t k = 0; k < results->size(); ++k) (*results)[k].spec = reply->specs[k];
  return reply;
}

Result<std::string> ValuesText(const Globals& globals, const OperationArguments& arguments,
                               const Reply& reply, std::span<const NamedValues> results) {
  if (!globals.json) return TextOf(results);
  ordered_json json;
  TILEWIRE_ASSIGN_OR_RETURN(json[std::string(arguments.operation->json)], JsonOf(results));
  AddReply(reply, &json);
  return json.dump() + "\n";
}

/// The exit code of an answer that was printed.
int HoldAgainst(std::span<const Limit> limits, std::span<const NamedValues> results) {
  const std::vector<std::string> above = AboveLimits(results, limits);
  for (const std::string& what : above) std::fprintf(stderr, "above the limit: %s\n", what.c_str());
  return above.empty() ? kExitOk : kExitAbove;
}

/// The same, the results being printed.
int RunWithValues(const Globals& globals, const OperationArguments& arguments,
                  const client::Operation& operation, const std::vector<ArraySource>& operands) {
  auto files = TraceFiles::Open(globals);
  if (!files) return PrintError(files.error(), kExitUsage);
  std::vector<Values> results;
  const auto reply = RunForValues(globals, operation, operands, &results);
  if (!reply) return PrintCallError(globals, reply.error(), kExitFailed);
  MaybePrintTiming(globals, *reply);
  // The call has checked them.
  const Attributes all = operation.descriptor->Complete(operation.attributes).value();
  const auto named = Named(*arguments.operation, all, std::move(results), arguments.derived_by);
  const auto text = ValuesText(globals, arguments, *reply, named);
  const int printed = text ? Print(*text) : PrintError(text.error());
  const int exit_code = WriteTrace(&*files, DescribeCall(operation, operands, reply->specs), *reply, printed);
  return exit_code != kExitOk ? exit_code : HoldAgainst(arguments.limits, named);
}

}  // namespace

client::CallOptions Globals::call_options() const {
  client::CallOptions options;
  options.timeout = timeout;
  options.stop = stop;
  options.connections = connections;
  options.trace = !trace.empty() || !timeline.empty();
  options.block_bytes = block_bytes;
  options.lanes = lanes;
  options.sequential = sequential;
  return options;
}

int PrintCallError(const Globals& globals, const Status& status, int exit_code) {
  if (status.code() == Code::kCancelled && globals.stop.stop_requested())
    return PrintError(Status(Code::kCancelled, "CANCELLED", "interrupted"), exit_code);
  // Not for other reasons than DEADLINE: a server may also have lost patience before --timeout passed.
  if (status.code() == Code::kDeadlineExceeded && status.reason() == "DEADLINE" && globals.timeout)
    return PrintError(Status(Code::kDeadlineExceeded, "DEADLINE", TimeoutPassed(*globals.timeout)),
                      exit_code);
  if (status.code() == Code::kUnavailable && status.reason().empty()) {
    if (const std::string why = client::ExplainTls(globals.server, globals.connect); !why.empty())
      return PrintError(Status(Code::kUnavailable, "TLS", why), exit_code);
  }
  return PrintError(status, exit_code);
}

int RunOperation(const Globals& globals, const OperationArguments& arguments) {
  auto operands = OpenOperands(arguments.operands);
  if (!operands) return PrintError(operands.error(), kExitUsage);
  const auto shared = ShareOperands(globals, &*operands);
  if (!shared) return PrintCallError(globals, shared.error(), kExitFailed);
  const client::Operation operation(*arguments.operation->descriptor, arguments.attributes);
  if (arguments.store) return RunWithStore(globals, operation, *operands, *arguments.store);
  if (!arguments.out.empty()) return RunWithFile(globals, operation, *operands, arguments.out);
  return RunWithValues(globals, arguments, operation, *operands);
}

}  // namespace tilewire::cli

// `tilewire rmse`, `tilewire transpose` and `tilewire gaussian-pdf`.
#include "client/cli/answer.h"
#include "client/cli/operands.h"
#include "client/cli/tracks.h"
#include "kernels/figures/text.h"

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
  auto client = client::Client::Connect(globals.server);
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
  return WriteTrace(&*files, DescribeCall(operation, operands, reply->spec), *reply,
                    PrintFile(globals, out, *reply));
}

/// The same, the result staying at the server.
int RunWithStore(const Globals& globals, const client::Operation& operation,
                 const std::vector<ArraySource>& operands, const client::StoreOptions& store) {
  auto files = TraceFiles::Open(globals);
  if (!files) return PrintError(files.error(), kExitUsage);
  auto client = client::Client::Connect(globals.server);
  auto stored = [&] {
    ProgressLine progress;
    client::CallOptions options = globals.call_options();
    options.progress = [&progress](const client::Progress& p) { progress.Update(p); };
    return client.Store(operation, operands, store, options);
  }();
  if (!stored) return PrintCallError(globals, stored.error(), kExitFailed);
  MaybePrintTiming(globals, stored->reply);
  return WriteTrace(&*files, DescribeCall(operation, operands, stored->reply.spec), stored->reply,
                    PrintStored(globals, &*stored));
}

/// One array in, one out.
int RunOneToOne(const Globals& globals, const client::Operation& operation, const std::string& in,
                const std::string& out, const std::optional<client::StoreOptions>& store) {
  auto operands = OpenOperands({in});
  if (!operands) return PrintError(operands.error(), kExitUsage);
  const auto shared = ShareOperands(globals, &*operands);
  if (!shared) return PrintCallError(globals, shared.error(), kExitFailed);
  return store ? RunWithStore(globals, operation, *operands, *store)
               : RunWithFile(globals, operation, *operands, out);
}

int PrintRmse(const Globals& globals, const client::RmseReply& reply) {
  if (globals.json) {
    ordered_json json;
    json["values"] = JsonValues(reply.values);
    AddReply(reply.reply, &json);
    return Print(json.dump() + "\n");
  }
  std::string text;
  for (const double value : reply.values) text += FormatDouble(value) + "\n";
  return Print(text);
}

Result<client::RmseReply> RmseValues(const Globals& globals, const ArraySource& a, const ArraySource& b,
                                     const client::RmseOp& op) {
  ProgressLine progress;
  client::CallOptions options = globals.call_options();
  options.progress = [&progress](const client::Progress& p) { progress.Update(p); };
  return client::Client::Connect(globals.server).Rmse(a, b, op, options);
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
  return PrintError(status, exit_code);
}

int RunRmse(const Globals& globals, const RmseArguments& arguments) {
  auto operands = OpenOperands({arguments.a, arguments.b});
  if (!operands) return PrintError(operands.error(), kExitUsage);
  const auto shared = ShareOperands(globals, &*operands);
  if (!shared) return PrintCallError(globals, shared.error(), kExitFailed);
  const client::RmseOp op{arguments.axes, arguments.output};
  if (arguments.store) return RunWithStore(globals, op, *operands, *arguments.store);
  if (!arguments.out.empty()) return RunWithFile(globals, op, *operands, arguments.out);

  auto files = TraceFiles::Open(globals);
  if (!files) return PrintError(files.error(), kExitUsage);
  const auto reply = RmseValues(globals, (*operands)[0], (*operands)[1], op);
  if (!reply) return PrintCallError(globals, reply.error(), kExitFailed);
  MaybePrintTiming(globals, reply->reply);
  return WriteTrace(&*files, DescribeCall(op, *operands, reply->reply.spec), reply->reply,
                    PrintRmse(globals, *reply));
}

int RunTranspose(const Globals& globals, const TransposeArguments& arguments) {
  return RunOneToOne(globals, client::TransposeOp{arguments.axes}, arguments.in, arguments.out,
                     arguments.store);
}

int RunGaussianPdf(const Globals& globals, const GaussianArguments& arguments) {
  return RunOneToOne(globals, arguments.op, arguments.in, arguments.out, arguments.store);
}

}  // namespace tilewire::cli

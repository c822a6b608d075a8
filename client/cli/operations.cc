// `tilewire rmse`, `tilewire transpose` and `tilewire gaussian-pdf`.
#include <unistd.h>

#include "client/cli/commands.h"
#include "client/cli/report.h"
#include "client/cli/trace_files.h"
#include "client/cpp/file.h"
#include "client/cpp/npy.h"

namespace tilewire::cli {
namespace {

using client::ArraySource;
using client::OutputFile;
using client::Reply;
using nlohmann::ordered_json;

/// A .npy file that is being written: header, then array bytes as they come.
class NpyOutput {
 public:
  static Result<NpyOutput> Create(const std::string& path, const ArraySpec& spec) {
    const std::string header = client::FormatNpyHeader(spec);
    TILEWIRE_ASSIGN_OR_RETURN(OutputFile file,
                              OutputFile::Create(path, header.size() + static_cast<uint64_t>(spec.bytes())));
    TILEWIRE_RETURN_IF_ERROR(file.Write(0, {reinterpret_cast<const uint8_t*>(header.data()), header.size()}));
    return NpyOutput(std::move(file), header.size());
  }
  Status Write(uint64_t offset, std::span<const uint8_t> bytes) {
    return file_.Write(data_offset_ + offset, bytes);
  }
  Status Commit() { return file_.Commit(); }

 private:
  NpyOutput(OutputFile file, uint64_t data_offset) : file_(std::move(file)), data_offset_(data_offset) {}
  OutputFile file_;
  uint64_t data_offset_;
};

void MaybePrintTiming(const Globals& globals, const Reply& reply) {
  if (globals.timing || ::isatty(STDERR_FILENO) == 1) PrintTiming(reply);
}

/// What all commands put into --json beside the answer itself.
void AddReply(const Reply& reply, ordered_json* json) {
  (*json)["shape"] = JsonShape(reply.spec.shape);
  (*json)["dtype"] = std::string(Name(reply.spec.dtype));
  (*json)["numeric_version"] = reply.numeric_version;
  (*json)["timing"] = JsonTiming(reply);
}

/// Runs `operation` with its result going to a file at `path`. The file is there when this returns a reply.
/// `exit_code` tells a file that cannot be written, found before anything was sent, from the rest.
Result<Reply> RunToFile(const Globals& globals, const client::Operation& operation,
                        std::span<const ArraySource> operands, const std::string& path, int* exit_code) {
  *exit_code = kExitFailed;
  std::vector<ArraySpec> specs;
  for (const auto& operand : operands) specs.push_back(operand.spec());
  TILEWIRE_ASSIGN_OR_RETURN(const ArraySpec result, client::ResultSpec(operation, specs));
  auto output = NpyOutput::Create(path, result);
  if (!output) {
    *exit_code = kExitUsage;
    return Fail(output.error());
  }
  ProgressLine progress;
  client::CallOptions options = globals.call_options();
  options.progress = [&progress](const client::Progress& p) { progress.Update(p); };
  options.concurrent_sink = true;  // each byte has its own place in the file
  const client::Sink sink = [&output](uint64_t offset, std::span<const uint8_t> bytes) {
    return output->Write(offset, bytes);
  };
  auto client = client::Client::Connect(globals.server);
  auto reply = client.Execute(operation, operands, sink, options);
  if (reply) TILEWIRE_RETURN_IF_ERROR(output->Commit());
  return reply;
}

int PrintFile(const Globals& globals, const std::string& path, const Reply& reply) {
  if (!globals.json) return kExitOk;
  ordered_json json;
  json["out"] = path;
  AddReply(reply, &json);
  return Print(json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

/// What follows an answer: the files of --trace and --timeline. `exit_code` is what printing it gave.
int WriteTrace(TraceFiles* files, const client::Operation& operation, std::span<const ArraySource> operands,
               const Reply& reply, int exit_code) {
  const Status status = files->Write(operation, operands, reply);
  return status.ok() ? exit_code : PrintError(status);
}

/// Runs `operation` from start to end, its result going to a file.
int RunWithFile(const Globals& globals, const client::Operation& operation,
                std::span<const ArraySource> operands, const std::string& out) {
  auto files = TraceFiles::Open(globals, out);
  if (!files) return PrintError(files.error(), kExitUsage);
  int exit_code = kExitOk;
  const auto reply = RunToFile(globals, operation, operands, out, &exit_code);
  if (!reply) return PrintCallError(globals, reply.error(), exit_code);
  MaybePrintTiming(globals, *reply);
  return WriteTrace(&*files, operation, operands, *reply, PrintFile(globals, out, *reply));
}

/// One array in, one out.
int RunFileToFile(const Globals& globals, const client::Operation& operation, const std::string& in,
                  const std::string& out) {
  const auto source = ArraySource::OpenNpy(in);
  if (!source) return PrintError(source.error(), kExitUsage);
  return RunWithFile(globals, operation, {&*source, 1}, out);
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
  const auto a = ArraySource::OpenNpy(arguments.a);
  if (!a) return PrintError(a.error(), kExitUsage);
  const auto b = ArraySource::OpenNpy(arguments.b);
  if (!b) return PrintError(b.error(), kExitUsage);
  const client::RmseOp op{arguments.axes, arguments.output};
  const ArraySource operands[] = {*a, *b};
  if (!arguments.out.empty()) return RunWithFile(globals, op, operands, arguments.out);

  auto files = TraceFiles::Open(globals);
  if (!files) return PrintError(files.error(), kExitUsage);
  const auto reply = RmseValues(globals, *a, *b, op);
  if (!reply) return PrintCallError(globals, reply.error(), kExitFailed);
  MaybePrintTiming(globals, reply->reply);
  return WriteTrace(&*files, op, operands, reply->reply, PrintRmse(globals, *reply));
}

int RunTranspose(const Globals& globals, const TransposeArguments& arguments) {
  return RunFileToFile(globals, client::TransposeOp{arguments.axes}, arguments.in, arguments.out);
}

int RunGaussianPdf(const Globals& globals, const GaussianArguments& arguments) {
  return RunFileToFile(globals, arguments.op, arguments.in, arguments.out);
}

}  // namespace tilewire::cli

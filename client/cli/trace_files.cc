#include "client/cli/trace_files.h"

#include "client/cli/timeline.h"
#include "client/cli/trace.h"

namespace tilewire::cli {
namespace {

Status Same(const std::string& path, const std::string& what) {
  return Status(Code::kInvalidArgument, "BAD_VALUE",
                path + ": " + what + " are the same file; give each its own");
}

Status WriteAll(client::OutputFile* file, const std::string& text) {
  TILEWIRE_RETURN_IF_ERROR(file->Write(0, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  return file->Commit();
}

}  // namespace

Result<TraceFiles> TraceFiles::Open(const Globals& globals, const std::string& out) {
  const auto& [trace, timeline] = std::pair(globals.trace, globals.timeline);
  if (!trace.empty() && trace == timeline) return Fail(Same(trace, "--trace and --timeline"));
  if (!trace.empty() && trace == out) return Fail(Same(trace, "--trace and the result"));
  if (!timeline.empty() && timeline == out) return Fail(Same(timeline, "--timeline and the result"));
  TraceFiles files;
  for (const auto& [path, file] :
       {std::pair(&trace, &files.trace_), std::pair(&timeline, &files.timeline_)}) {
    if (path->empty()) continue;
    TILEWIRE_ASSIGN_OR_RETURN(client::OutputFile opened, client::OutputFile::Create(*path, 0));
    file->emplace(std::move(opened));
  }
  return files;
}

Status TraceFiles::Write(const std::string& title, const client::Reply& reply) {
  if (trace_) TILEWIRE_RETURN_IF_ERROR(WriteAll(&*trace_, TraceJson(title, reply)));
  if (timeline_) TILEWIRE_RETURN_IF_ERROR(WriteAll(&*timeline_, TimelineSvg(title, reply)));
  return {};
}

}  // namespace tilewire::cli

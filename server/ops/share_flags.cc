// Flags of what each caller and each connection may have of what all share.
#include <cstdint>
#include <string>
#include <utility>

#include "server/ops/flag_forms.h"
#include "server/ops/flags.h"
#include "server/ops/values.h"

namespace tilewire::ops {
namespace {

using Parse = Result<int64_t> (*)(const std::string& flag, std::string_view text);

/// A bound that is off where the flag is not given.
Flag Bound(const std::string& name, std::string placeholder, std::string allowed, int64_t Config::*member,
           Parse parse, std::string help) {
  return {.name = name,
          .placeholder = std::move(placeholder),
          .default_text = "no bound",
          .allowed = std::move(allowed),
          .help = std::move(help),
          .store = [=](Config* config, std::string_view text) {
            auto value = parse("--" + name, text);
            if (!value) return value.error();
            config->*member = *value;
            return Status();
          }};
}

Flag Number(const std::string& name, int64_t Config::*member, std::string help,
            std::string default_text = "no bound") {
  Flag flag = Bound(
      name, "N", "1 to 1000000", member,
      [](const std::string& given, std::string_view text) { return ParseWhole(given, text, 1, 1'000'000); },
      std::move(help));
  flag.default_text = std::move(default_text);
  return flag;
}

Flag BytesASecond(const std::string& name, int64_t Config::*member, std::string help) {
  constexpr int64_t kMost = int64_t{1} << 44;
  return Bound(
      name, "BYTES", FormatBytes(kMiB) + " to " + FormatBytes(kMost), member,
      [](const std::string& flag, std::string_view text) {
        return ParseBytes(flag, text, kMiB, kMost, false);
      },
      std::move(help));
}

}  // namespace

void AddShareFlags(std::vector<Flag>* flags) {
  flags->push_back({.name = "least-rate",
                    .placeholder = "BYTES",
                    .default_text = "64KiB",
                    .allowed = "0 to " + FormatBytes(kGiB),
                    .help = "Bytes a second that a job moves while others wait, or it ends IDLE after 10 s "
                            "(or --idle-seconds); unary calls' messages: see --idle-seconds; 0: any will do",
                    .store = [](Config* config, std::string_view text) {
                      auto value = ParseBytes("--least-rate", text, 0, kGiB);
                      if (!value) return value.error();
                      config->least_rate = *value;
                      return Status();
                    }});
  flags->push_back(Number("max-in-flight-per-identity", &Config::max_in_flight_per_identity,
                          "Jobs of one caller that run at once; further ones wait"));
  flags->push_back(
      Default(Whole("shared-in-flight", &Config::shared_in_flight, 0, 65536,
                    "Jobs, small and large each, of which callers have even shares, two at least, while "
                    "several are active; who is alone has --max-in-flight; 0: whoever comes first"),
              "twice the processors"));
  flags->push_back(Number("queue-length-per-identity", &Config::queue_length_per_identity,
                          "Jobs of one caller that may wait for admission"));
  flags->push_back(Number("arrays-per-identity", &Config::arrays_per_identity,
                          "Arrays that one caller may keep", "half of 65536; anonymous: all"));
  flags->push_back(Number("regions-per-identity", &Config::regions_per_identity,
                          "Regions that one caller may have registered",
                          "half of what open files allow; anonymous: all"));
  flags->push_back(Number("calls-per-second-per-identity", &Config::calls_per_second_per_identity,
                          "Jobs that one caller may begin a second"));
  flags->push_back(BytesASecond("bytes-per-second-per-identity", &Config::bytes_per_second_per_identity,
                                "Bytes of operands and results of the jobs that one caller may begin a "
                                "second"));
  flags->push_back(Number("max-calls-per-connection", &Config::max_calls_per_connection,
                          "Calls of one TCP connection at once, those that wait among them"));
  flags->push_back(Number("max-streams-per-connection", &Config::max_streams_per_connection,
                          "Of these, calls that stream"));
  flags->push_back(Number("calls-per-second-per-connection", &Config::calls_per_second_per_connection,
                          "Calls, of every kind, that one TCP connection may begin a second"));
  flags->push_back(BytesASecond("bytes-per-second-per-connection", &Config::bytes_per_second_per_connection,
                                "Bytes that calls of one TCP connection may send and get a second, or no "
                                "other begins until time has made up for them"));
}

}  // namespace tilewire::ops

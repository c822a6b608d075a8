// tilewired with a device that is slow and fails as its standard input says; all else is what is shipped. For
// campaign.py. Lines, each of which the log repeats once it holds:
//   slow MICROSECONDS          every submission takes so much longer, and up to as much again
//   fail KIND NTH [for-good]   KIND copy_in, copy_out or launch; the NTH from now on; for-good: the device is
//   gone with it well                       neither
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include "server/ops/logging.h"
#include "server/wrapped.h"
#include "tests/devices/decorators.h"

namespace tilewire {
namespace {

struct Told {
  std::shared_ptr<engine::Faults> faults = std::make_shared<engine::Faults>();
  std::shared_ptr<engine::Slowness> slowness = std::make_shared<engine::Slowness>();
};

Status Fault(bool for_good) {
  return Status(Code::kInternal, for_good ? "DEVICE_FAILED" : "INTERNAL_ERROR", "failed as it was told to");
}

/// Whether the line says something.
bool Do(const std::string& line, const Told& told) {
  static const std::map<std::string, engine::Submitted> kKinds{{"copy_in", engine::Submitted::kCopyIn},
                                                               {"copy_out", engine::Submitted::kCopyOut},
                                                               {"launch", engine::Submitted::kLaunch}};
  std::istringstream words(line);
  std::string what, kind, last;
  int64_t number = 0;
  words >> what;
  if (what == "well") {
    told.faults->Clear();
    told.slowness->Set({});
    return true;
  }
  if (what == "slow" && words >> number) {
    const std::chrono::microseconds delay(number);
    told.slowness->Set({.copy_in = delay, .copy_out = delay, .launch = delay, .jitter = delay});
    return true;
  }
  if (what != "fail" || !(words >> kind >> number) || !kKinds.contains(kind)) return false;
  const bool for_good = words >> last && last == "for-good";
  told.faults->FailNth(kKinds.at(kind), number, Fault(for_good), for_good);
  return true;
}

void Listen(const Told& told) {
  for (std::string line; std::getline(std::cin, line);)
    ops::LogEvent(spdlog::level::info, Do(line, told) ? "the device is told" : "the device is not told",
                  {{"what", line}});
}

}  // namespace

std::unique_ptr<engine::Device> Wrapped(std::unique_ptr<engine::Device> device) {
  const Told told;
  std::thread([told] { Listen(told); }).detach();  // until the process ends
  // Where kernels work in place there are no copies that could fail.
  if (device->facts().host_memory) device = engine::MakeStaged(std::move(device), true);
  return engine::MakeFaulty(engine::MakeSlow(std::move(device), told.slowness), told.faults);
}

}  // namespace tilewire

// A meter without a clock, and reports to write.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/bench/meter.h"
#include "kernels/bench/record.h"

namespace tilewire::bench {

/// A Work that counts its runs and answers as told.
class FakeWork : public Work {
 public:
  explicit FakeWork(Status verdict) : verdict_(std::move(verdict)) {}
  Result<Check> Verify(Stream /*stream*/) override {
    if (!verdict_.ok()) return Fail(verdict_);
    return Check{Check::Kind::kRelative, 1e-9};
  }
  Status Run(Stream /*stream*/) override { return {}; }

 private:
  Status verdict_;
};

/// Says of every run that it took `seconds`, and writes down what was asked.
class FakeMeter : public Meter {
 public:
  explicit FakeMeter(double seconds) : seconds_(seconds) {}
  int64_t memory_bytes() const override { return 1000; }
  Facts facts() const override { return {{"gpu", "Fake <&> \"GPU\""}}; }
  Result<std::unique_ptr<Sampler>> Begin(Work& work, Mode mode) override {
    modes.push_back(mode);
    return std::make_unique<FakeSampler>(work, seconds_);
  }
  std::vector<Mode> modes;

 private:
  class FakeSampler : public Sampler {
   public:
    FakeSampler(Work& work, double seconds) : work_(work), seconds_(seconds) {}
    Status Sample(std::vector<double>* seconds) override {
      seconds->push_back(seconds_);
      return work_.Run(nullptr);
    }
    int batch() const override { return 3; }

   private:
    Work& work_;
    const double seconds_;
  };

  const double seconds_;
};

inline Case MakeCase(std::string group, std::string name, Status verdict = {}) {
  Case one;
  one.group = std::move(group);
  one.name = std::move(name);
  one.implementation = "tilewire";
  one.bytes = 1000;
  one.memory_bytes = 100;
  one.prepare = [verdict](Stream) -> Result<std::unique_ptr<Work>> {
    return std::make_unique<FakeWork>(verdict);
  };
  return one;
}

/// A record that took `cold` and `hot` seconds against a limit of 1 GB/s.
inline Record MakeRecord(std::string group, std::string name, int64_t bytes, double cold, double hot) {
  Record record;
  record.info = MakeCase(std::move(group), std::move(name));
  record.info.bytes = bytes;
  record.info.limit = "device copy";
  record.outcome = Outcome::kMeasured;
  record.limit_rate = 1e9;
  record.measurements.push_back({Mode::kCold, Summarize({cold, cold, cold}), Stop::kQuiet, 1});
  record.measurements.push_back({Mode::kHot, Summarize({hot, hot, hot}), Stop::kMaxRuns, 8});
  return record;
}

}  // namespace tilewire::bench

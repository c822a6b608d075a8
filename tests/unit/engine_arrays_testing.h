// What the tests of resident arrays share.
#pragma once

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/engine_testing.h"
#include "tests/unit/engine_time_testing.h"
#include "tests/unit/executors.h"

namespace tilewire::engine::testing {

/// Brings the bytes of the operands that are not resident, reads the output and returns it; of a job that
/// stores its result, the id.
inline Result<Bytes> Finish(const std::shared_ptr<Job>& job, const Problem& problem,
                            const std::vector<bool>& resident, std::string* id = nullptr) {
  Chunks chunks;
  for (const Chunk& chunk : Ascending(problem, 5000))
    if (!resident[chunk.operand]) chunks.push_back(chunk);
  const Feeders feeders(job, problem, {chunks});
  auto output = Collect(*job);
  if (id) *id = job->stored_id();
  return output;
}

/// Puts bytes; the id.
inline Result<std::string> Put(Engine& engine, const Bytes& bytes, const ArraySpec& spec,
                               const StoreOptions& store = {}, const std::string& identity = "anonymous") {
  Problem problem;
  problem.operands = {bytes};
  JobOptions options{.identity = identity};
  options.store = store;
  TILEWIRE_ASSIGN_OR_RETURN(const std::shared_ptr<Job> job, Open(engine, MakePass(spec, "put"), options));
  std::string id;
  TILEWIRE_RETURN_IF_ERROR([&]() -> Status {
    const auto none = Finish(job, problem, {!job->takes_input()}, &id);
    if (!none) return none.error();
    EXPECT_TRUE(none->empty());
    return {};
  }());
  return id;
}

/// Puts bytes; an array that no id names any more: it is gone with its last use.
inline ArrayUse PutForUse(Engine& engine, const Bytes& bytes, const ArraySpec& spec) {
  const std::string id = Put(engine, bytes, spec).value();
  ArrayUse use = engine.arrays().Use(id, "anonymous", "array").value();
  EXPECT_TRUE(engine.arrays().Delete(id, "anonymous").ok());
  return use;
}

/// All operands of a problem, put for JobOptions::residents. Nothing else is under way in the end.
inline std::vector<ArrayUse> PutOperands(Engine& engine, const Problem& problem) {
  const auto operation = problem.make();
  std::vector<ArrayUse> uses;
  for (size_t i = 0; i < problem.operands.size(); ++i)
    uses.push_back(PutForUse(engine, problem.operands[i], operation->operands()[i]));
  EXPECT_TRUE(Becomes([&engine] { return engine.stats().jobs_in_flight == 0; }));
  return uses;
}

inline ArraySpec SpecOf(const std::vector<int64_t>& dims, DType dtype = DType::kU8) {
  return *MakeSpec(dtype, dims);
}

inline Result<Bytes> Get(Engine& engine, const std::string& id, const std::string& identity = "anonymous") {
  TILEWIRE_ASSIGN_OR_RETURN(const ArrayUse use, engine.arrays().Use(id, identity, "array"));
  JobOptions options{.identity = identity};
  options.residents = {use};
  TILEWIRE_ASSIGN_OR_RETURN(const std::shared_ptr<Job> job,
                            Open(engine, MakePass(use->spec(), "get"), options));
  return Collect(*job);
}

/// Nothing is leased but what arrays hold.
inline bool OnlyArraysLeft(const Engine& engine) {
  return Becomes([&engine] {
    const EngineStats stats = engine.stats();
    return stats.device_bytes_in_use == stats.array_bytes && stats.pinned_bytes_in_use == 0 &&
           stats.jobs_in_flight == 0;
  });
}

inline constexpr int64_t kUnit = 4096;  // what the pools round to by itself

/// A store over an admission, with memory that counts how much of it is out.
class StoreTest : public ::testing::Test {
 protected:
  void Make(const StoreLimits& limits, int64_t device_bytes = 1 << 20) {
    admission = std::make_unique<Admission>(
        AdmissionLimits{.device_bytes = device_bytes, .queue_seconds = 60}, &timer, &executor);
    store = std::make_unique<ArrayStore>("me", limits, &timer, [this] {
      if (admission->BulkWaits()) admission->Retry();
    });
    admission->SetReclaim([this](int64_t bytes) { return store->Reclaim(bytes); });
  }
  void TearDown() override {
    store->Close(Status(Code::kUnavailable, "CLOSED", "test"));
    Flush(timer);
    EXPECT_EQ(out.load(), 0);
    EngineStats stats;
    admission->Snapshot(&stats);
    EXPECT_EQ(stats.device_bytes_in_use, 0U);
  }
  /// What a job does: room, memory, commit.
  Result<std::string> Add(const std::string& who, int64_t units, const StoreOptions& options = {}) {
    TILEWIRE_ASSIGN_OR_RETURN(const std::vector<std::string> ids, AddAll(who, {units}, options));
    return ids[0];
  }
  /// The same for several at once.
  Result<std::vector<std::string>> AddAll(const std::string& who, const std::vector<int64_t>& units,
                                          const StoreOptions& options = {}) {
    std::vector<ArraySpec> specs;
    for (const int64_t each : units) specs.push_back(SpecOf({each * kUnit}));
    TILEWIRE_ASSIGN_OR_RETURN(Reservation room, store->Reserve(who, specs, options));
    std::vector<std::string> there;
    for (const ArrayUse& array : room.existing()) there.push_back(array->id());
    if (!there.empty()) return there;
    const std::vector<int64_t> sizes = room.device_bytes();
    const int64_t bytes = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    Result<Ticket> ticket = Fail(Status(Code::kUnknown, "NONE", "undecided"));
    std::promise<void> decided;
    admission->Request({.device_bytes = bytes}, TimePoint::max(), [&](Result<Ticket> granted) {
      ticket = std::move(granted);
      decided.set_value();
    });
    decided.get_future().wait();
    if (!ticket) return Fail(ticket.error());
    out += bytes;
    std::vector<ArrayParts> parts;
    for (const int64_t size : sizes)
      parts.push_back({ticket->Split(size), Memory(place, static_cast<size_t>(size), [this](auto*, size_t n) {
                         out -= static_cast<int64_t>(n);
                       })});
    return room.Commit(std::move(parts));
  }
  EngineStats stats() const {
    EngineStats stats;
    store->Snapshot(&stats);
    return stats;
  }

  std::byte place[1] = {};
  std::atomic<int64_t> out{0};
  ManualTime time;
  Timer timer{&time};
  tilewire::testing::AtOnce executor;
  std::unique_ptr<Admission> admission;
  std::unique_ptr<ArrayStore> store;
};

}  // namespace tilewire::engine::testing

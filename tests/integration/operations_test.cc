// Every operation of the server's table, in every form of call, over every way for arrays to come and go: the
// same bits, those of a reference (operation_rows.cc).
#include "tests/integration/operations.h"

#include <algorithm>

namespace tilewire::testing {
namespace {

// --- every way, the same bits -----------------------------------------------------------------------------

class EveryWay : public OnBoth {
 protected:
  /// Calls `function` for every sample of every operation.
  template <typename Function>
  void ForEach(const Function& function) {
    for (const Descriptor* const descriptor : rpc::Operations()) {
      const auto samples = RowOf(*descriptor).samples();
      for (size_t i = 0; i < samples.size(); ++i) {
        SCOPED_TRACE(std::string(descriptor->name) + ", sample " + std::to_string(i));
        function(samples[i]);
        if (HasFatalFailure()) return;
      }
    }
  }
  /// What every answer says, wherever the results are.
  static void ExpectAnswer(const Answer& answer, const Sample& sample) {
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    ASSERT_EQ(answer.results.size(), sample.results.size());
    const auto problem = ProblemOf(sample);
    EXPECT_EQ(answer.numeric_version, problem->numeric_version());
    for (size_t i = 0; i < answer.results.size(); ++i) {
      EXPECT_EQ(FromProto(answer.results[i].spec()), problem->results()[i]);
    }
  }
  /// The results are in the answer.
  static void ExpectBytes(const Answer& answer, const Sample& sample) {
    ASSERT_NO_FATAL_FAILURE(ExpectAnswer(answer, sample));
    for (size_t i = 0; i < sample.results.size(); ++i) {
      EXPECT_TRUE(answer.results[i].data() == sample.results[i]) << "result " << i;
      EXPECT_EQ(answer.results[i].array(), "");
      EXPECT_FALSE(answer.results[i].has_region());
    }
  }
  /// They are arrays of their own, which go here.
  void ExpectStored(const Answer& answer, const Sample& sample) {
    ASSERT_NO_FATAL_FAILURE(ExpectAnswer(answer, sample));
    for (size_t i = 0; i < sample.results.size(); ++i) {
      EXPECT_EQ(answer.results[i].data(), "");
      EXPECT_TRUE(me.Get(answer.results[i].array()).bytes == sample.results[i]) << "result " << i;
      EXPECT_TRUE(me.Delete(answer.results[i].array()).ok());
    }
  }
  std::vector<std::string> PutAll(const Sample& sample) {
    std::vector<std::string> ids;
    for (size_t i = 0; i < sample.operands.size(); ++i) {
      v1::Open open;
      open.mutable_put();
      *open.add_operands() = sample.specs[i];
      ids.push_back(me.Put(open, sample.operands[i]).id);
    }
    return ids;
  }

  TestServer server{device(), RegionOptions()};
  RegionCaller me{server};
};
TILEWIRE_ON_BOTH(EveryWay);

TEST_P(EveryWay, UnaryCalls) {
  ForEach([&](const Sample& sample) {
    ExpectBytes(Computed(me, RequestOf(sample)), sample);
    if (const auto typed = ByTypedMethod(server, sample)) ExpectBytes(*typed, sample);
  });
  server.ExpectIdle();
}

TEST_P(EveryWay, StreamsOfAnyBlocks) {
  ForEach([&](const Sample& sample) {
    for (const bool older : {false, true}) {
      auto open = OpenOf(sample, older);
      if (!open) continue;
      ExpectBytes(Executed(server, *open, sample.operands), sample);
      ExpectBytes(Executed(server, *open, sample.operands, 2), sample);
      open->mutable_options()->set_block_bytes(4096);
      open->mutable_options()->set_output_chunk_bytes(5000);
      ExpectBytes(Executed(server, *open, sample.operands), sample);
      ExpectBytes(Executed(server, *open, sample.operands, 2), sample);
      open->mutable_options()->set_sequential(true);
      ExpectBytes(Executed(server, *open, sample.operands), sample);
    }
  });
  server.ExpectIdle();
}

TEST_P(EveryWay, OperandsAndResultsThatStay) {
  ForEach([&](const Sample& sample) {
    const auto ids = PutAll(sample);
    v1::Open open = *OpenOf(sample, false);
    for (uint32_t i = 0; i < ids.size(); ++i) Refer(&open, i, ids[i]);
    v1::ComputeRequest request = RequestOf(sample, ids);
    ExpectBytes(Executed(server, open, {}), sample);
    ExpectBytes(Computed(me, request), sample);
    open.mutable_options()->mutable_store();
    request.mutable_options()->mutable_store();
    ExpectStored(Executed(server, open, {}), sample);
    ExpectStored(Computed(me, request), sample);
    // The first operand is sent.
    open.mutable_references()->DeleteSubrange(0, 1);
    std::vector<std::string> sent(sample.operands.size());
    sent[0] = sample.operands[0];
    ExpectStored(Executed(server, open, sent), sample);
    open.mutable_options()->clear_store();
    ExpectBytes(Executed(server, open, sent), sample);
    for (const std::string& id : ids) EXPECT_TRUE(me.Delete(id).ok());
  });
  server.ExpectIdle();
}

TEST_P(EveryWay, RegionsInAndOut) {
  constexpr size_t kGap = 300;
  ForEach([&](const Sample& sample) {
    const auto results = static_cast<size_t>(ProblemOf(sample)->result_bytes());
    SharedFile file(sample.operands.size() * (sample.operands[0].size() + 4) + kGap + results);
    const std::string id = me.Register(file);
    v1::Open open = *OpenOf(sample, false);
    v1::ComputeRequest request = RequestOf(sample);
    size_t at = 0;
    for (uint32_t i = 0; i < sample.operands.size(); ++i, at += sample.operands[0].size() + 4) {
      file.Write(at, sample.operands[i].data(), sample.operands[i].size());
      ReferToRegion(&open, i, id, at);
      request.mutable_operands(static_cast<int>(i))->clear_data();
      At(request.mutable_operands(static_cast<int>(i))->mutable_region(), id, at);
    }
    ExpectBytes(Executed(server, open, {}), sample);
    ExpectBytes(Computed(me, request), sample);
    At(open.mutable_options()->mutable_result_region(), id, at + kGap);
    At(request.mutable_options()->mutable_result_region(), id, at + kGap);
    for (const bool unary : {false, true}) {
      std::fill(file.data() + at, file.data() + file.bytes(), std::byte{0x5a});
      const Answer answer = unary ? Computed(me, request) : Executed(server, open, {});
      ASSERT_NO_FATAL_FAILURE(ExpectAnswer(answer, sample));
      std::string expected(kGap + results, 0x5a);
      for (size_t i = 0; i < sample.results.size(); ++i) {
        const v1::RegionPlace& place = answer.results[i].region();
        EXPECT_EQ(place.region(), id);
        EXPECT_EQ((place.offset() - at - kGap) % 256, 0U);
        expected.replace(place.offset() - at, sample.results[i].size(), sample.results[i]);
      }
      EXPECT_TRUE(file.Read(at, kGap + results) == expected) << "and nothing else is written";
    }
    EXPECT_TRUE(me.Unregister(id).ok());
  });
  server.ExpectIdle();
}

/// Operands and results together.
size_t BytesOf(const Sample& sample) {
  size_t bytes = 0;
  for (const auto* arrays : {&sample.operands, &sample.results})
    for (const std::string& array : *arrays) bytes += array.size();
  return bytes;
}

TEST(Operations, OfArraysThatDoNotFitPassThroughAWindow) {
  TestServer::Options options;
  options.engine.device_bytes = kWindowedDeviceBytes;
  options.engine.block_bytes = 1 << 20;
  TestServer server(DeviceAt(Where::kHost), options);
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.name);
    if (row.large == nullptr) continue;
    const Sample sample = row.large();
    ASSERT_GT(BytesOf(sample), static_cast<size_t>(kWindowedDeviceBytes)) << "Row::large is too small";
    for (const size_t streams : {1, 2}) {
      const Answer answer = Executed(server, *OpenOf(sample, false), sample.operands, streams);
      ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
      EXPECT_GT(answer.opened.window_bytes(), 0U);
      ASSERT_EQ(answer.results.size(), sample.results.size());
      for (size_t i = 0; i < sample.results.size(); ++i)
        EXPECT_TRUE(answer.results[i].data() == sample.results[i]);
    }
  }
  server.ExpectIdle();
}

}  // namespace
}  // namespace tilewire::testing

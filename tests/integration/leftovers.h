// Memory of the device and of staging is used again without being cleared: what one caller's jobs left there
// must reach nobody else, by no reply and no region. One caller fills it with a mark in every way there is;
// another, whose data has no such byte, looks for the mark in all that he gets.
#pragma once

#include "tests/integration/operations.h"

namespace tilewire::testing {

/// A number and four bytes that nothing of the other caller has: not in values, headers, ids or timings.
inline constexpr char kMark[5] = "\xA7\xD3\xE9\x4B";
inline constexpr int64_t kWide = 700, kHigh = 300;  // odd in pages, blocks and lines
inline constexpr int64_t kLarge = 5 << 20;          // floats: more than the device has

inline std::string Marks(int64_t floats) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(floats) * 4);
  for (int64_t i = 0; i < floats; ++i) bytes.append(kMark, 4);
  return bytes;
}
inline std::string Zeros(int64_t floats) {
  return std::string(static_cast<size_t>(floats) * 4, '\0');
}

/// Wherever it begins, since pieces may be cut anywhere.
inline void ExpectNoMark(const std::string& bytes, const std::string& where) {
  for (int turn = 0; turn < 4; ++turn) {
    const std::string mark = std::string(kMark + turn, 4 - static_cast<size_t>(turn)) +
                             std::string(kMark, static_cast<size_t>(turn));
    EXPECT_EQ(bytes.find(mark), std::string::npos) << where;
  }
}

class Leftovers {
 public:
  explicit Leftovers(std::unique_ptr<engine::Device> device) : server_(std::move(device), Options()) {}

  /// All that the one gets back, while the other's jobs come before and beside.
  void ExpectNone() {
    uint64_t seen = 0, looked = 0;
    const auto marks = [&](const std::string& bytes, const std::string&) {
      seen += bytes.find(std::string(kMark, 4)) != std::string::npos;
    };
    const auto none = [&](const std::string& bytes, const std::string& what) {
      looked += bytes.size();
      ExpectNoMark(bytes, what);
    };
    for (int round = 0; round < 2; ++round) {
      Everything(&ann_, Marks, marks);
      Everything(&bob_, Zeros, none);
    }
    // At the same time, where memory changes hands as often as it can.
    std::thread beside([&] {
      Unary(&ann_, Marks, [](const std::string&, const std::string&) {});
      Streams(&ann_, Marks, [](const std::string&, const std::string&) {});
    });
    Unary(&bob_, Zeros, none);
    Streams(&bob_, Zeros, none);
    beside.join();
    EXPECT_GT(seen, 20U) << "the mark is what it shall be";
    EXPECT_GT(looked, uint64_t{10} << 20);
    ExpectNoRegions(server_);
  }

 private:
  static TestServer::Options Options() {
    auto options = RegionOptions();
    options.engine.device_bytes = 16 << 20;
    options.engine.pinned_bytes = 16 << 20;
    return options;
  }

  static v1::Open CompareOpen(const std::vector<int64_t>& shape) {
    v1::Open open;
    auto* compare = open.mutable_op()->mutable_compare();
    for (const auto metric :
         {v1::COMPARE_METRIC_RMSE, v1::COMPARE_METRIC_MEAN_ABS, v1::COMPARE_METRIC_MAX_ABS,
          v1::COMPARE_METRIC_MAX_ABS_INDEX, v1::COMPARE_METRIC_UNEQUAL_PAIRS})
      compare->add_metrics(metric);
    compare->add_axes(1);
    SetSpec(open.add_operands(), v1::DTYPE_F32, shape);
    SetSpec(open.add_operands(), v1::DTYPE_F32, shape);
    return open;
  }
  static v1::Open Kept(v1::Open open, bool evictable = false) {
    open.mutable_options()->mutable_store()->set_evictable(evictable);
    return open;
  }
  static std::vector<v1::Open> Opens(int64_t high, int64_t wide) {
    const std::vector<int64_t> shape{high, wide};
    return {TransposeOpen(v1::DTYPE_F32, shape), RmseOpen(v1::DTYPE_F32, shape, {1}), CompareOpen(shape),
            GaussianOpen(v1::DTYPE_F32, shape, 0, 1)};
  }
  static std::vector<std::string> OperandsOf(const v1::Open& open, const std::string& bytes) {
    return std::vector<std::string>(static_cast<size_t>(open.operands_size()), bytes);
  }
  /// Of the caller's bytes, in every form; `look` gets all that came back, whatever became of the call.
  using Look = std::function<void(const std::string& bytes, const std::string& what)>;

  void Streams(RegionCaller* who, const std::function<std::string(int64_t)>& bytes_of, const Look& look) {
    for (const auto& [high, wide] : kShapes)
      for (const v1::Open& open : Opens(high, wide)) {
        const auto operands = OperandsOf(open, bytes_of(high * wide));
        const std::string what = std::to_string(high) + " x " + std::to_string(wide) + " " +
                                 std::to_string(open.op().operation_case()) + "/" +
                                 std::to_string(open.operation_case());
        const auto plain = who->Execute(open, operands);
        EXPECT_TRUE(plain.status.ok()) << what << plain.status.error_message();
        look(plain.result.SerializeAsString(), what);
        const auto kept = who->Execute(Kept(open), operands);
        EXPECT_TRUE(kept.status.ok()) << what << kept.status.error_message();
        look(kept.result.SerializeAsString(), what + " kept");
        for (const auto& result : kept.result.results()) {
          const auto got = who->Get(result.array());
          look(got.bytes, what + " got");
          EXPECT_TRUE(who->Delete(result.array()).ok());
        }
      }
  }
  void Unary(RegionCaller* who, const std::function<std::string(int64_t)>& bytes_of, const Look& look) {
    for (const auto& [high, wide] : kShapes) {
      const std::string bytes = bytes_of(high * wide);
      v1::RmseResponse rmse;
      EXPECT_TRUE(who->kernels->Rmse(who->Context().get(), RmseCall({high, wide}, bytes, bytes), &rmse).ok());
      look(rmse.SerializeAsString(), "Rmse");
      v1::TransposeRequest request;
      SetSpec(request.mutable_input()->mutable_spec(), v1::DTYPE_F32, {high, wide});
      request.mutable_input()->set_data(bytes);
      v1::TransposeResponse response;
      EXPECT_TRUE(who->kernels->Transpose(who->Context().get(), request, &response).ok());
      look(response.SerializeAsString(), "Transpose");
    }
  }
  void Regions(RegionCaller* who, const std::function<std::string(int64_t)>& bytes_of, const Look& look) {
    for (const auto& [high, wide] : kShapes) {
      const std::string bytes = bytes_of(high * wide);
      SharedFile in(bytes.size()), out(2 * bytes.size() + 4096);
      in.Write(0, bytes.data(), bytes.size());
      const std::string from = who->Register(in), to = who->Register(out);
      for (v1::Open open : Opens(high, wide)) {
        for (uint32_t i = 0; i < static_cast<uint32_t>(open.operands_size()); ++i)
          ReferToRegion(&open, i, from, 0);
        At(open.mutable_options()->mutable_result_region(), to, 512);
        const auto done = who->Execute(open);
        EXPECT_TRUE(done.status.ok()) << done.status.error_message();
        look(done.result.SerializeAsString(), "a region's reply");
        look(out.Read(0, out.bytes()), "a region");
      }
      EXPECT_TRUE(who->Unregister(from).ok() && who->Unregister(to).ok());
    }
  }
  /// Of arrays that do not fit the device together, so memory goes round.
  void Windowed(RegionCaller* who, const std::function<std::string(int64_t)>& bytes_of, const Look& look) {
    const std::string bytes = bytes_of(kLarge);
    for (const v1::Open& open :
         {RmseOpen(v1::DTYPE_F32, {kLarge / 1024, 1024}, {1}), GaussianOpen(v1::DTYPE_F32, {kLarge}, 0, 1)}) {
      RawStream stream(who->channel);
      stream.context.AddMetadata("who", who == &ann_ ? "ann" : "bob");
      ASSERT_TRUE(stream.Open(open));
      const size_t window = stream.opened.window_bytes();
      ASSERT_GT(window, 0U) << "these must not fit";
      std::thread sender([&] {
        for (size_t at = 0; at < bytes.size(); at += window)
          for (int i = 0; i < open.operands_size(); ++i)
            (void)stream.SendAll(static_cast<uint32_t>(i), bytes, kPiece, at, at + window);
        stream.stream->WritesDone();
      });
      const auto status = stream.Drain();
      sender.join();
      EXPECT_TRUE(status.ok()) << status.error_message();
      look(stream.output, "windowed");
    }
  }
  /// Jobs that end before their input does.
  void Broken(RegionCaller* who, const std::function<std::string(int64_t)>& bytes_of, const Look& look) {
    for (const bool cancel : {true, false})
      for (v1::Open open : Opens(kHigh, kWide)) {
        for (const bool keep : {false, true}) {
          const auto context = who->Context();
          const auto stream = who->kernels->Execute(context.get());
          v1::ExecuteRequest request;
          *request.mutable_open() = keep ? Kept(open) : open;
          stream->Write(request);
          request.mutable_chunk()->set_data(bytes_of(kHigh * kWide / 2));
          request.mutable_chunk()->set_offset(cancel ? 0 : kHigh * kWide * 2);
          stream->Write(request);
          if (cancel) context->TryCancel();
          stream->WritesDone();
          for (v1::ExecuteResponse response; stream->Read(&response);)
            look(response.SerializeAsString(), "broken");
          EXPECT_FALSE(stream->Finish().ok());
        }
      }
  }
  void Everything(RegionCaller* who, const std::function<std::string(int64_t)>& bytes_of, const Look& look) {
    Unary(who, bytes_of, look);
    Streams(who, bytes_of, look);
    Regions(who, bytes_of, look);
    Broken(who, bytes_of, look);
    Windowed(who, bytes_of, look);
  }

  static constexpr size_t kPiece = 256 << 10;
  static constexpr std::pair<int64_t, int64_t> kShapes[] = {{1, 1}, {3, 5}, {127, 33}, {kHigh, kWide}};
  TestServer server_;
  RegionCaller ann_{server_, "ann"}, bob_{server_, "bob"};
};

}  // namespace tilewire::testing

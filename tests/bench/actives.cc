#include "tests/bench/actives.h"

#include <cstdio>

#include "tests/bench/bench.h"

namespace tilewire::bench {
namespace {

/// RMSE answers are doubles; equal ones have the same bits, but for NaN and zero, which these are not.
void Count(const Problem& problem, const Result<client::RmseReply>& reply, std::atomic<int>* right,
           Tally* tally) {
  if (reply && problem.Right(*reply)) {
    ++*right;
  } else if (!reply && reply.error().code() == Code::kResourceExhausted && reply.error().reason() == "BUSY") {
    ++tally->refused;
  } else {
    ++tally->broken;
    std::fprintf(stderr, "broken: %s\n", reply ? "a wrong answer" : reply.error().ToString().c_str());
  }
}

}  // namespace

Problem::Problem(int64_t mebibytes)
    : mebibytes_(mebibytes),
      data_(RandomFloats(static_cast<size_t>(mebibytes) << 18, 5)),
      a_(Source(data_, static_cast<size_t>(mebibytes) << 17)),
      b_(Source(data_ + (static_cast<size_t>(mebibytes) << 17), static_cast<size_t>(mebibytes) << 17)),
      answer_(HostRmse(data_, data_ + (static_cast<size_t>(mebibytes) << 17),
                       static_cast<size_t>(mebibytes) << 17)) {}

void Actives::Upload(client::Client* client, const client::CallOptions& options) {
  Count(*problem_, client->Rmse(problem_->a(), problem_->b(), {}, options), &tally_->bulk, tally_);
}

void Actives::Push(int times) {
  threads_.emplace_back([this, times] {
    auto client = client::Client::Connect(address_);
    for (int i = 0; i < times && !Child::all_ended(); ++i) Upload(&client, {});
  });
}

void Actives::PushHeld() {
  threads_.emplace_back([this] {
    auto client = client::Client::Connect(address_);
    client::CallOptions options;
    options.connections = 1;
    options.progress = [this, waited = false](const client::Progress& progress) mutable {
      if (waited || progress.sent < progress.send_total / 2) return;
      waited = true;
      ++held_;
      while (!let_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
    Upload(&client, options);
  });
}

void Actives::WaitUntilHeld(int calls) const {
  // A call that breaks before it is held would keep everybody waiting.
  while (held_.load() + tally_->broken.load() + tally_->refused.load() < calls)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void Actives::CallSmall(int callers, int calls) {
  for (int i = 0; i < callers; ++i)
    threads_.emplace_back([this, calls] {
      static constexpr size_t kCount = 512;
      static const float* const data = RandomFloats(2 * kCount, 9);
      static const double answer = HostRmse(data, data + kCount, kCount);
      auto client = client::Client::Connect(address_);
      client::CallOptions options;
      options.form = client::CallForm::kUnary;
      for (int call = 0; call < calls && !Child::all_ended(); ++call) {
        const auto reply = client.Rmse(Source(data, kCount), Source(data + kCount, kCount), {}, options);
        if (reply && reply->values.at(0) == answer) {
          ++tally_->small;
        } else if (!reply && reply.error().reason() == "BUSY") {
          ++tally_->refused;
        } else {
          ++tally_->broken;
          std::fprintf(stderr, "broken: %s\n", reply ? "a wrong answer" : reply.error().ToString().c_str());
        }
      }
    });
}

}  // namespace tilewire::bench

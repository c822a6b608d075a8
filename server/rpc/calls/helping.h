// The thread that takes a small call lends itself to the call's job.
#pragma once

#include <memory>
#include <utility>

#include "server/engine/job/job.h"
#include "server/rpc/transport/awaited.h"

namespace tilewire::rpc {

/// A job whose caller waits for its kernels.
class JobLookout final : public Lookout {
 public:
  explicit JobLookout(std::shared_ptr<engine::Job> job) : job_(std::move(job)) {}
  bool Look() override { return job_->Await(); }
  void Leave() override { job_->Help(); }

 private:
  const std::shared_ptr<engine::Job> job_;
};

/// What was submitted without waking anybody is served at the latest when this goes.
class Helping {
 public:
  explicit Helping(std::shared_ptr<engine::Job> job) : job_(std::move(job)) {}
  ~Helping() {
    if (job_) job_->Help();
  }
  Helping(const Helping&) = delete;
  Helping& operator=(const Helping&) = delete;
  /// Once. Where kernels take longer than this thread's other calls can wait, it looks after them in between.
  void Now() {
    const auto job = std::exchange(job_, nullptr);
    if (job->awaited()) {
      Awaited::OfThisThread().Keep(std::make_shared<JobLookout>(job));
    } else {
      job->Help();
    }
  }

 private:
  std::shared_ptr<engine::Job> job_;
};

}  // namespace tilewire::rpc

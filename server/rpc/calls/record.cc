#include "server/rpc/calls/record.h"

namespace tilewire::rpc {

void Record::Start(const Metadata* metadata, TimePoint arrived) {
  metadata_ = metadata;
  arrived_ = arrived;
  if (metadata_->own) return;
  shared_->last_arrival = shared_->engine->timer().Now();
  shared_->observer->OnCallStart(told_.method);
}

void Record::End(const Status& status, Timing timing) {
  told_.status = status;
  told_.timing = std::move(timing);
  told_.timing.spans.clear();
  told_.timing.wall_us = std::chrono::duration<double, std::micro>(Clock::now() - arrived_).count();
  told_.bytes_in = told_.timing.bytes_in;
  told_.bytes_out = status.ok() ? told_.timing.bytes_out : 0;
}

void Record::Tell() {
  if (metadata_->own) return;
  told_.request_id = metadata_->request_id;
  told_.traceparent = metadata_->traceparent;
  told_.peer = metadata_->peer;
  told_.identity = metadata_->identity;
  shared_->observer->OnCallEnd(told_);
}

}  // namespace tilewire::rpc

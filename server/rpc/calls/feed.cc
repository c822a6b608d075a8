#include "server/rpc/calls/feed.h"

namespace tilewire::rpc {

QueueTask<Status> FeedOn(Call& call, engine::Intake& intake) {
  for (;;) {
    co_await OnQueue<bool>(call.queue(),
                           [&](auto resume) { intake.WhenPlaceFree([resume] { resume(true); }); });
    const auto taken = intake.GoOn();
    if (!taken) co_return taken.error();
    if (*taken) co_return Status();
  }
}

}  // namespace tilewire::rpc

#include "server/rpc/calls/feed.h"

namespace tilewire::rpc {

QueueTask<Status> Feed(Call& call, engine::Intake& intake, const engine::Intake::Chunk& chunk) {
  auto taken = intake.Take(chunk);
  while (taken && !*taken) {
    co_await OnQueue<bool>(call.queue(),
                           [&](auto resume) { intake.WhenPlaceFree([resume] { resume(true); }); });
    taken = intake.GoOn();
  }
  co_return taken ? Status() : taken.error();
}

}  // namespace tilewire::rpc

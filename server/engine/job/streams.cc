#include "server/engine/job/streams.h"

#include <algorithm>

namespace tilewire::engine {

int Streams::Add() {
  streams_.emplace_back();
  return count() - 1;
}

bool Streams::all_half_closed() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const Stream& stream) { return stream.half_closed; });
}

bool Streams::joined_done() const {
  return std::all_of(streams_.begin() + 1, streams_.end(), [](const Stream& stream) { return stream.done; });
}

void Streams::Lose(int stream, const Status& why) {
  lost_ = stream;
  why_lost_ = why;
}

}  // namespace tilewire::engine

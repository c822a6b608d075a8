// Traced replies with known spans.
#pragma once

#include <string>
#include <vector>

#include "client/cpp/client.h"

namespace tilewire::client::testing {

/// A striped call of `streams` streams and `lanes` lanes with `blocks` blocks a stage, as a GPU would tell
/// it: every stage occurs at both sides.
inline Reply TracedReply(uint32_t streams, uint32_t lanes, uint64_t blocks) {
  Reply reply;
  reply.streamed = true;
  reply.client_wall_us = 1000.0 + 10.0 * static_cast<double>(blocks);
  Timing& t = reply.timing;
  t.device = "cuda:0";
  t.queue_us = 5;
  t.receive_us = t.stage_us = t.h2d_us = t.kernel_us = t.d2h_us = t.send_us = 40;
  t.receive_us = 70;
  t.wall_us = reply.client_wall_us - 200;
  t.bytes_in = blocks << 20;
  t.bytes_out = blocks << 20;
  t.streams = streams;
  t.lanes = lanes;
  t.ranges = blocks;
  t.overlap = 1.5;
  t.bottleneck = "receive";
  t.bytes_copied = blocks << 20;
  Trace& trace = reply.trace.emplace();
  trace.server_origin_us = 100;
  trace.clock_error_us = 12;
  t.spans.push_back({Stage::kQueue, 0, 5, 0, 0, 0, 0});
  for (uint64_t block = 0; block < blocks; ++block) {
    const auto stream = static_cast<uint32_t>(block % streams), lane = static_cast<uint32_t>(block % lanes);
    const double at = 10.0 * static_cast<double>(block) + 300;
    const auto server = [&](Stage stage, double begin, double end, uint32_t track) {
      t.spans.push_back({stage, at + begin, at + end, track, block, 1 << 20, 0});
    };
    server(Stage::kReceive, 0, 7, stream);
    server(Stage::kStage, 7, 9, stream);
    server(Stage::kH2D, 9, 13, lane);
    server(Stage::kKernel, 13, 15, lane);
    server(Stage::kD2H, 15, 18, lane);
    server(Stage::kSend, 18, 20, stream);
    const auto here = [&](ClientStage stage, double begin, double end) {
      trace.spans.push_back({stage, at + begin, at + end, stream, 0, block << 20, 1 << 20});
    };
    here(ClientStage::kWrite, 95, 104);
    here(ClientStage::kReceive, 115, 122);
    here(ClientStage::kSink, 122, 124);
  }
  t.spans.push_back({Stage::kKernel, t.wall_us - 30, t.wall_us - 20, 0, blocks, 0, 0});  // the finish
  for (uint32_t stream = 0; stream < streams; ++stream) {
    trace.spans.push_back({ClientStage::kConnect, 1, 60, stream, 0, 0, 0});
    trace.spans.push_back({ClientStage::kOpen, 60, 150, stream, 0, 0, 0});
  }
  trace.spans.push_back(
      {ClientStage::kResult, reply.client_wall_us - 60, reply.client_wall_us - 10, 0, 0, 0, 8});
  trace.spans.push_back({ClientStage::kRetry, 0, 0.5, 0, 0, 0, 0});
  trace.spans.push_back({ClientStage::kCall, 0, reply.client_wall_us, 0, 0, 0, 0});
  return reply;
}

}  // namespace tilewire::client::testing

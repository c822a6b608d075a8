#include "client/cli/tracks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "client/cpp/operations.h"

namespace tilewire::cli {
namespace {

using client::ClientSpan;
using client::ClientStage;
using client::ServerSpan;
using client::Stage;

/// Order of a track among the others: server, row of the data's way, stream or lane.
using Key = std::tuple<bool, int, uint32_t>;

Key KeyOf(const ClientSpan& span) {
  switch (span.stage) {
    case ClientStage::kCall:
    case ClientStage::kRetry:
      return {false, 0, 0};
    case ClientStage::kReceive:
    case ClientStage::kSink:
      return {false, 2, span.stream};
    default:
      return {false, 1, span.stream};
  }
}

std::string NameOf(const Key& key) {
  const auto& [server, row, number] = key;
  if (!server) {
    static constexpr const char* kRows[] = {"call", "out", "in"};
    return row == 0 ? kRows[0] : kRows[row] + std::string(", stream ") + std::to_string(number);
  }
  const auto stage = static_cast<Stage>(row);
  const bool lane = stage == Stage::kH2D || stage == Stage::kKernel || stage == Stage::kD2H;
  if (stage == Stage::kQueue || stage == Stage::kOther) return Name(stage);
  return Name(stage) + std::string(lane ? ", lane " : ", stream ") + std::to_string(number);
}

Piece PieceOf(const ClientSpan& span) {
  Piece piece{Name(span.stage), span.begin_us, span.end_us, span.bytes, ""};
  const std::string offset = "offset " + std::to_string(span.offset);
  if (span.stage == ClientStage::kWrite) piece.place = offset + " of operand " + std::to_string(span.operand);
  if (span.stage == ClientStage::kReceive || span.stage == ClientStage::kSink) piece.place = offset;
  return piece;
}

Piece PieceOf(const ServerSpan& span, const client::Reply& reply) {
  const double origin = reply.trace->server_origin_us;
  Piece piece{Name(span.stage), origin + span.begin_us, origin + span.end_us, span.bytes, ""};
  const std::string block = "block " + std::to_string(span.index);
  switch (span.stage) {
    case Stage::kReceive:
    case Stage::kStage:
    case Stage::kH2D:
      piece.place = block + " of operand " + std::to_string(span.operand);
      break;
    case Stage::kKernel:
      if (span.index >= reply.timing.ranges) {
        piece.name = "finish";
      } else {
        piece.place = "range " + std::to_string(span.index);
      }
      break;
    case Stage::kD2H:
    case Stage::kSend:
      piece.place = block + " of the result";
      break;
    default:
      break;
  }
  return piece;
}

}  // namespace

std::vector<Track> TracksOf(const client::Reply& reply) {
  if (!reply.trace) return {};
  std::map<Key, std::vector<Piece>> pieces;
  for (const ClientSpan& span : reply.trace->spans) pieces[KeyOf(span)].push_back(PieceOf(span));
  for (const ServerSpan& span : reply.timing.spans)
    pieces[{true, static_cast<int>(span.stage), span.stage == Stage::kQueue ? 0 : span.track}].push_back(
        PieceOf(span, reply));
  for (const ServerSpan& span : client::OtherSpans(reply.timing))
    pieces[{true, static_cast<int>(span.stage), 0}].push_back(PieceOf(span, reply));
  std::vector<Track> tracks;
  for (auto& [key, row] : pieces) {
    // What begins first comes first, and at the same time what lasts longer: so inner pieces follow outer
    // ones.
    std::stable_sort(row.begin(), row.end(), [](const Piece& a, const Piece& b) {
      return a.begin_us != b.begin_us ? a.begin_us < b.begin_us : a.end_us > b.end_us;
    });
    tracks.push_back({std::get<0>(key), NameOf(key), std::move(row)});
  }
  return tracks;
}

std::string ProcessName(const client::Reply& reply, bool server) {
  return server ? "server " + reply.timing.device : "client";
}

std::string Describe(const ArraySpec& spec) {
  return std::string(Name(spec.dtype)) + " " + spec.shape.ToString();
}

std::string DescribeCall(const client::Operation& operation, std::span<const client::ArraySource> operands,
                         std::span<const ArraySpec> results) {
  struct Text {
    const client::ArraySource& source;
    std::string operator()(const client::ArraySource::Local&) const { return Describe(source.spec()); }
    std::string operator()(const client::ArraySource::Stored& stored) const { return "array:" + stored.id; }
    std::string operator()(const client::RegionPlace&) const {
      return Describe(source.spec()) + " in a region";
    }
  };
  std::string words(client::FindOperation(*operation.descriptor)->command);
  for (size_t i = 0; i < operands.size(); ++i)
    words += (i == 0 ? " " : ", ") + std::visit(Text{operands[i]}, operands[i].place());
  for (size_t k = 0; k < results.size(); ++k) words += (k == 0 ? " -> " : ", ") + Describe(results[k]);
  return words;
}

}  // namespace tilewire::cli

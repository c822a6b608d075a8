// The picture: well-formed, within its frame, small, and with everything in the legend that occurs.
#include "client/cli/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "client/cli/timeline_boxes.h"
#include "client/cli/timeline_style.h"
#include "client/load/html.h"
#include "tests/unit/client_trace_testing.h"
#include "tests/unit/xml_check.h"

namespace tilewire::cli {
namespace {

using client::testing::TracedReply;
using testing::Element;
using testing::XmlReader;

/// Everything drawn lies within the view box. Returns the elements.
std::vector<Element> Check(const std::string& svg) {
  std::vector<Element> elements = XmlReader::Read(svg);
  EXPECT_EQ(elements[0].name, "svg");
  const double width = elements[0].number("width"), height = elements[0].number("height");
  EXPECT_EQ(elements[0].attributes["viewBox"],
            "0 0 " + elements[0].attributes["width"] + " " + elements[0].attributes["height"]);
  for (const Element& element : elements) {
    if (element.name == "rect") {
      EXPECT_GE(element.number("x"), 0);
      EXPECT_GE(element.number("y"), 0);
      EXPECT_GT(element.number("width"), 0);
      EXPECT_LE(element.number("x") + element.number("width"), width + 0.11);  // coordinates have one decimal
      EXPECT_LE(element.number("y") + element.number("height"), height);
    }
    if (element.name == "text") {
      EXPECT_GE(element.number("x"), 0);
      EXPECT_LE(element.number("x"), width);
      EXPECT_GE(element.number("y"), 0);
      EXPECT_LE(element.number("y"), height);
    }
  }
  return elements;
}

std::vector<std::string> SvgTexts(const std::vector<Element>& elements) {
  std::vector<std::string> texts;
  for (const Element& element : elements)
    if (element.name == "text") texts.push_back(element.text);
  return texts;
}

bool AnyStartsWith(const std::vector<std::string>& texts, const std::string& prefix) {
  return std::any_of(texts.begin(), texts.end(), [&](const auto& text) { return text.starts_with(prefix); });
}

TEST(Timeline, TellsTitleWallOverlapBottleneckAndEveryStage) {
  const auto elements = Check(TimelineSvg("rmse f32 (7, 5) -> f64 ()", TracedReply(3, 2, 40)));
  const auto texts = SvgTexts(elements);
  EXPECT_EQ(texts[0], "rmse f32 (7, 5) -> f64 ()");
  for (const char* part : {"cuda:0", "3 streams, 2 lanes", "40 MiB in, 40 MiB out", "wall 1.4 ms",
                           "overlap 1.50", "bottleneck receive"})
    EXPECT_THAT(texts[1], ::testing::HasSubstr(part));
  for (const char* stage : {"call ", "retry ", "connect ", "open ", "write ", "result ", "receive ", "sink ",
                            "queue ", "stage ", "h2d ", "kernel ", "finish ", "d2h ", "send "})
    EXPECT_TRUE(AnyStartsWith(texts, stage)) << stage;
  for (const char* row : {"out, stream 2", "in, stream 0", "receive, stream 1", "kernel, lane 1"})
    EXPECT_TRUE(AnyStartsWith(texts, row)) << row;
  EXPECT_FALSE(AnyStartsWith(texts, "exchange "));
  EXPECT_TRUE(AnyStartsWith(texts, "200 µs")) << "round marks";
}

/// What follows `before` in `text`, up to one of `ends`; empty where it does not occur exactly once.
std::string Following(const std::string& text, const std::string& before, const char* ends) {
  const size_t at = text.find(before);
  if (at == std::string::npos || text.find(before, at + 1) != std::string::npos) return "";
  const size_t from = at + before.size();
  return text.substr(from, text.find_first_of(ends, from) - from);
}

TEST(Timeline, StagesHaveTheColoursOfTheLoadTestsPage) {
  const std::string svg = StyleSheet(), page = load::HtmlPage(nlohmann::json::object());
  const auto dark = [](const std::string& style) { return style.find("prefers-color-scheme"); };
  for (const bool server : {false, true}) {
    std::set<std::string> colours;
    for (const Paint& paint : PaintsOf(server)) {
      const std::string name = paint.stage, rule = "." + name + "{fill:", variable = " --" + name + ": ";
      const std::string colour = Following(svg.substr(0, dark(svg)), rule, "}");
      EXPECT_THAT(colour, ::testing::MatchesRegex("#[0-9a-f]{6}")) << name;
      EXPECT_EQ(colour, Following(page.substr(0, dark(page)), variable, ";")) << name;
      const std::string at_night = Following(svg.substr(dark(svg)), rule, "}");
      EXPECT_EQ(at_night.empty() ? colour : at_night, Following(page.substr(dark(page)), variable, ";"))
          << name;
      const std::string marks = ".m-" + name + " {";
      EXPECT_NE(page.find(marks), std::string::npos) << name;
      for (size_t at = page.find(marks); at != std::string::npos; at = page.find(marks, at + 1))
        EXPECT_THAT(page.substr(at, page.find('}', at) - at), ::testing::HasSubstr("var(--" + name + ")"));
      EXPECT_TRUE(colours.insert(colour).second || !server) << name << " looks like another";
    }
  }
}

TEST(Timeline, WhatNoStageCoversMayBeTheBottleneck) {
  client::Reply reply = TracedReply(1, 1, 4);
  EXPECT_FALSE(AnyStartsWith(SvgTexts(Check(TimelineSvg("", reply))), "other ")) << "an older server";
  reply.timing.other_us = 775;
  reply.timing.bottleneck = "other";
  const auto elements = Check(TimelineSvg("", reply));
  EXPECT_THAT(SvgTexts(elements)[1], ::testing::HasSubstr("bottleneck other"));
  const auto bold = std::find_if(elements.begin(), elements.end(), [](const Element& element) {
    return element.name == "text" && element.text == "other 775 µs";
  });
  ASSERT_NE(bold, elements.end());
  EXPECT_EQ(bold->attributes.at("class"), "b");
}

TEST(Timeline, StagesThatDoNotOccurAreNotInTheLegend) {
  client::Reply reply = TracedReply(1, 1, 5);
  std::erase_if(reply.timing.spans, [](const auto& span) { return span.stage == client::Stage::kH2D; });
  EXPECT_FALSE(AnyStartsWith(SvgTexts(Check(TimelineSvg("", reply))), "h2d "));
}

TEST(Timeline, TwentyThousandSpansStaySmall) {
  // 6 server spans and 3 client spans a block.
  for (const uint32_t streams : {1u, 16u, 64u}) {
    client::Reply reply = TracedReply(streams, 4, 3300);
    ASSERT_GE(reply.timing.spans.size(), 19'800u);
    reply.trace->spans_dropped = 5;
    const std::string svg = TimelineSvg("many", reply);
    EXPECT_LT(svg.size(), 1u << 20) << streams;
    const auto texts = SvgTexts(Check(svg));
    EXPECT_THAT(texts.back(), ::testing::HasSubstr("5 later spans not kept"));
  }
}

TEST(Timeline, BoxesKeepTimeAndBytesOfWhatTheyJoin) {
  const client::Reply reply = TracedReply(2, 2, 3000);
  const auto tracks = TracksOf(reply);
  const auto rows = BoxesOf(tracks, reply.client_wall_us, 1000);
  ASSERT_EQ(rows.size(), tracks.size());
  size_t boxes = 0, all = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    Box sum{};
    std::map<std::string, double> last;
    for (const Box& box : rows[i]) {
      sum.pieces += box.pieces;
      sum.busy_us += box.busy_us;
      sum.bytes += box.bytes;
      EXPECT_GE(box.left, last[box.first->name] - 1e-9) << "boxes of a stage overlap";
      EXPECT_LE(box.right, 1000);
      last[box.first->name] = box.right;
    }
    boxes += rows[i].size();
    all += sum.pieces;
    EXPECT_EQ(sum.pieces, tracks[i].pieces.size());
    double busy = 0;
    uint64_t bytes = 0;
    for (const Piece& piece : tracks[i].pieces) {
      busy += piece.end_us - piece.begin_us;
      bytes += piece.bytes;
    }
    EXPECT_NEAR(sum.busy_us, busy, 1e-3);
    EXPECT_EQ(sum.bytes, bytes);
  }
  EXPECT_EQ(all, reply.timing.spans.size() + reply.trace->spans.size());
  EXPECT_LE(boxes, 4000u);
}

TEST(Timeline, WideSpansAreNeverJoined) {
  const client::Reply reply = TracedReply(2, 2, 3);
  const auto tracks = TracksOf(reply);
  for (const auto& row : BoxesOf(tracks, reply.client_wall_us, 100'000))
    for (const Box& box : row) EXPECT_EQ(box.pieces, 1u) << box.first->name;
}

TEST(Timeline, SpansOutsideTheCallAreCutToIt) {
  client::Reply reply = TracedReply(1, 1, 5);
  reply.trace->server_origin_us = -500;  // a clock that is far off
  Check(TimelineSvg("", reply));
  reply.trace->server_origin_us = 1e6;
  Check(TimelineSvg("", reply));
}

TEST(Timeline, OddReplies) {
  client::Reply nothing;
  EXPECT_EQ(TimelineSvg("no trace", nothing), "");
  nothing.trace.emplace();
  Check(TimelineSvg("no spans, no time", nothing));
  client::Reply reply = TracedReply(1, 1, 2);
  reply.timing.device = "<&\">\x01";
  reply.attempts = 3;
  const auto texts = SvgTexts(Check(TimelineSvg("a < b & c", reply)));
  EXPECT_EQ(texts.front(), "a < b & c");
  EXPECT_THAT(texts.back(), ::testing::HasSubstr("3 attempts"));
}

TEST(Timeline, BusyTimeIsAUnion) {
  const Track track{
      .server = true,
      .name = "x",
      .pieces = {{"a", 0, 10, 0, ""}, {"a", 2, 4, 0, ""}, {"b", 8, 12, 0, ""}, {"a", 20, 21, 0, ""}}};
  EXPECT_DOUBLE_EQ(BusyMicros(track), 13);
}

}  // namespace
}  // namespace tilewire::cli

// Text of a log line while it is put together.
#include "server/ops/line_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "server/ops/json_line.h"

namespace tilewire::ops {
namespace {

TEST(LineText, GrowsBeyondItsFirstRoom) {
  LineText line;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    line += i;
    line += ' ';
    line += std::string(static_cast<size_t>(i % 7), 'x');
    std::fill_n(line.Room(3), 3, '.');
    expected += std::to_string(i) + ' ' + std::string(static_cast<size_t>(i % 7), 'x') + "...";
  }
  line += INT64_MIN;
  EXPECT_EQ(line.view(), expected + std::to_string(INT64_MIN));
}

TEST(LineText, PlainIsWhatHasNoByteThatIsNot) {
  for (int byte = 0; byte < 256; ++byte)
    for (size_t size = 1; size <= 20; ++size)
      for (size_t at = 0; at < size; ++at) {
        std::string text(size, '~');
        text[at] = static_cast<char>(byte);
        EXPECT_EQ(IsPlainText(text), kPlainText[static_cast<size_t>(byte)])
            << byte << " at " << at << " of " << size;
      }
  EXPECT_TRUE(IsPlainText(""));
}

TEST(LineText, TakesTextsThatAreNone) {
  LineText line;
  line += std::string_view();
  JsonLine(&line).Add("a", std::string_view()).AddOurs("b", std::string_view()).End();
  EXPECT_EQ(line.view(), R"({"a":"","b":""})");
}

}  // namespace
}  // namespace tilewire::ops

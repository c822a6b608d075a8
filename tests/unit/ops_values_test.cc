// Values of flags from text: what is taken, what is refused and how the refusal reads.
#include "server/ops/values.h"

#include <gtest/gtest.h>

#include <string>

#include "server/base/limits.h"

namespace tilewire::ops {
namespace {

int64_t BytesOf(std::string_view text) {
  auto value = ParseBytes("--x", text, 1, int64_t{1} << 44);
  return value ? *value : -1;
}

TEST(Bytes, TakeUnits) {
  EXPECT_EQ(BytesOf("1"), 1);
  EXPECT_EQ(BytesOf("4096"), 4096);
  EXPECT_EQ(BytesOf("4KiB"), 4 * kKiB);
  EXPECT_EQ(BytesOf("4MiB"), 4 * kMiB);
  EXPECT_EQ(BytesOf("16GiB"), 16 * kGiB);
  EXPECT_EQ(BytesOf("4 MiB"), 4 * kMiB);
}

TEST(Bytes, RefuseWhatIsNoWholeNumberOfUnits) {
  for (const char* text :
       {"", "MiB", "4MB", "4mib", "4M", "1.5GiB", "-4MiB", "+4", " 4", "4 ", "0x10", "4MiBMiB", "4KiB MiB",
        "99999999999999999999", "9223372036854775807GiB", "8589934592GiB", "4\n"}) {
    EXPECT_EQ(BytesOf(text), -1) << "`" << text << "`";
  }
}

TEST(Bytes, RangeAndDefault) {
  EXPECT_FALSE(ParseBytes("--x", "1KiB", 4 * kKiB, kMiB));
  EXPECT_TRUE(ParseBytes("--x", "4KiB", 4 * kKiB, kMiB));
  EXPECT_TRUE(ParseBytes("--x", "1MiB", 4 * kKiB, kMiB));
  EXPECT_FALSE(ParseBytes("--x", "1048577", 4 * kKiB, kMiB));
  EXPECT_FALSE(ParseBytes("--x", "0", 4 * kKiB, kMiB));
  EXPECT_EQ(ParseBytes("--x", "0", 4 * kKiB, kMiB, true).value(), 0);
  auto refused = ParseBytes("--block-bytes", "1KiB", 4 * kKiB, kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail()->field, "--block-bytes");
  EXPECT_EQ(refused.error().detail()->value, "1KiB");
  EXPECT_EQ(refused.error().detail()->allowed, "4KiB to 1MiB, as a whole number of bytes, KiB, MiB or GiB");
}

TEST(Bytes, FormatUsesTheLargestUnitThatFits) {
  EXPECT_EQ(FormatBytes(0), "0");
  EXPECT_EQ(FormatBytes(1000), "1000");
  EXPECT_EQ(FormatBytes(4 * kMiB), "4MiB");
  EXPECT_EQ(FormatBytes(1536 * kKiB), "1536KiB");
  EXPECT_EQ(FormatBytes(3 * kGiB), "3GiB");
}

TEST(Whole, RangeAndForm) {
  EXPECT_EQ(ParseWhole("--x", "7", 1, 64).value(), 7);
  for (const char* text : {"", "0", "65", "-1", "+7", "7.0", "7 ", "seven", "99999999999999999999"}) {
    EXPECT_FALSE(ParseWhole("--x", text, 1, 64)) << text;
  }
}

TEST(Seconds, RangeAndForm) {
  EXPECT_EQ(ParseSeconds("--x", "0.25", 0, 10).value(), 0.25);
  EXPECT_EQ(ParseSeconds("--x", "10", 0, 10).value(), 10);
  for (const char* text : {"", "10.1", "-1", "nan", "inf", "1s", "1e0", "1 ", "0x1"}) {
    EXPECT_FALSE(ParseSeconds("--x", text, 0, 10)) << text;
  }
}

TEST(Switch, Words) {
  EXPECT_TRUE(ParseSwitch("--x", "on").value());
  EXPECT_TRUE(ParseSwitch("--x", "1").value());
  EXPECT_FALSE(ParseSwitch("--x", "off").value());
  EXPECT_FALSE(ParseSwitch("--x", "maybe"));
}

TEST(Address, Forms) {
  for (const char* text : {"localhost:50051", "0.0.0.0:0", "[::1]:65535", "[::]:0", "a-b.c_d:1",
                           "unix:/tmp/x.sock", "unix:relative"}) {
    EXPECT_TRUE(ParseAddress("--listen", text, AddressUse::kListen)) << text;
  }
  for (const char* text : {"", "localhost", ":50051", "localhost:", "localhost:65536", "localhost:-1",
                           "localhost:1x", "::1:50051", "[::1]", "[localhost]:1", "[::1]50051", "-x:1",
                           "a b:1", "a:1,b:2", "unix:", "http://a:1", "a:000001"}) {
    EXPECT_FALSE(ParseAddress("--listen", text, AddressUse::kListen)) << text;
  }
  EXPECT_FALSE(ParseAddress("--listen", "unix:/" + std::string(107, 'x'), AddressUse::kListen));
  EXPECT_TRUE(ParseAddress("--listen", "unix:/" + std::string(106, 'x'), AddressUse::kListen));
}

TEST(Address, UseDecides) {
  EXPECT_FALSE(ParseAddress("--advertise", "a:0", AddressUse::kAdvertise));
  EXPECT_TRUE(ParseAddress("--advertise", "a:1", AddressUse::kAdvertise));
  EXPECT_FALSE(ParseAddress("--metrics-listen", "unix:/x", AddressUse::kMetrics));
  EXPECT_TRUE(ParseAddress("--metrics-listen", "127.0.0.1:0", AddressUse::kMetrics));
}

TEST(Device, Words) {
  for (const char* text : {"auto", "cpu", "cuda", "cuda:0", "cuda:255"})
    EXPECT_TRUE(ParseDevice("--device", text));
  EXPECT_EQ(ParseDevice("--device", "cuda:03").value(), "cuda:3");
  for (const char* text : {"", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:256", "cuda:x"}) {
    EXPECT_FALSE(ParseDevice("--device", text)) << text;
  }
}

TEST(Header, MetadataKeys) {
  EXPECT_EQ(ParseHeader("--identity-header", "X-User").value(), "x-user");
  EXPECT_EQ(ParseHeader("--identity-header", "").value(), "");
  for (const char* text : {"grpc-status", "x-token-bin", "x y", ":path", "x\n"}) {
    EXPECT_FALSE(ParseHeader("--identity-header", text)) << text;
  }
}

TEST(RegionPrefix, NamesOfSharedMemoryBeginSo) {
  for (const std::string text : {"", "/a", "/tilewire-", "/.hidden"})
    EXPECT_EQ(ParseRegionPrefix("--allow-regions", text).value(), text);
  for (const std::string& text :
       {std::string("/"), std::string("a"), std::string("a/b"), std::string("/a/"), std::string("//"),
        std::string("/.."), std::string("/a b"), "/" + std::string(200, 'x')})
    EXPECT_FALSE(ParseRegionPrefix("--allow-regions", text)) << text;
}

}  // namespace
}  // namespace tilewire::ops

// .npy headers: every dtype, order and version, and everything that must be refused.
#include "client/cpp/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/client_testing.h"

namespace tilewire::client {
namespace {

using ::testing::HasSubstr;
using testing::NpyBytes;
using testing::Spec;

Result<NpyHeader> Parse(const std::string& file) {
  return ParseNpyHeader({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, file.size(), "x.npy");
}

std::string Dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

/// The message of the refusal, which must name the file.
std::string Refusal(const std::string& file) {
  const auto header = Parse(file);
  if (header) return "accepted";
  EXPECT_EQ(header.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(header.error().reason(), "BAD_FILE");
  EXPECT_THAT(std::string(header.error().message()), ::testing::StartsWith("x.npy: "));
  return std::string(header.error().message());
}

TEST(Npy, ReadsWhatItWrites) {
  for (const auto& info : AllDTypes()) {
    for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
             {}, {1}, {7}, {2, 3}, {1, 2, 3, 4, 5, 6}, std::vector<int64_t>(16, 2)}) {
      const ArraySpec spec = Spec(info.dtype, dims);
      const std::string header = FormatNpyHeader(spec);
      EXPECT_EQ(header.size() % 64, 0u);
      const auto read = Parse(header + std::string(static_cast<size_t>(spec.bytes()), 'x'));
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_EQ(read->spec, spec);
      EXPECT_FALSE(read->fortran_order);
      EXPECT_EQ(read->data_offset, header.size());
      EXPECT_EQ(read->major_version, 1);
    }
  }
}

TEST(Npy, WritesWhatNumpyWrites) {
  // numpy.save of zeros((2, 3), '<f4') and zeros(3, '<f8'), byte for byte.
  const std::string two_axes = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  EXPECT_EQ(FormatNpyHeader(Spec(DType::kF32, {2, 3})), std::string("\x93NUMPY\x01\x00\x76\x00", 10) +
                                                            two_axes +
                                                            std::string(117 - two_axes.size(), ' ') + "\n");
  EXPECT_THAT(FormatNpyHeader(Spec(DType::kF64, {3})), HasSubstr("'shape': (3,), }"));
  EXPECT_THAT(FormatNpyHeader(Spec(DType::kBF16, {})),
              HasSubstr("{'descr': '<V2', 'fortran_order': False, 'shape': (), }"));
}

TEST(Npy, ReadsAllVersionsAndOrders) {
  for (const int major : {1, 2, 3}) {
    for (const bool fortran : {false, true}) {
      const auto read =
          Parse(NpyBytes(Dict("'<i2'", fortran ? "True" : "False", "(2, 3)"), std::string(12, 'x'), major));
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_EQ(read->major_version, major);
      EXPECT_EQ(read->fortran_order, fortran);
      EXPECT_EQ(read->spec, Spec(DType::kI16, {2, 3}));
    }
  }
}

TEST(Npy, ReadsHeadersOfOtherWriters) {
  const std::string data(24, 'x');
  // Other key order, double quotes, no trailing comma, no blanks, Python 2 longs, bytes after the data.
  for (const char* dict : {"{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}",
                           "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,3)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }   ",
                           "{'descr': '<f4',\n 'fortran_order': False,\n 'shape': ( 2 , 3 , ) , }"}) {
    const auto read = Parse(NpyBytes(dict, data + "trailing"));
    ASSERT_TRUE(read) << dict << ": " << read.error().message();
    EXPECT_EQ(read->spec, Spec(DType::kF32, {2, 3}));
  }
}

TEST(Npy, KnowsTheSpellingsOfADType) {
  EXPECT_EQ(ParseNpyDescr("|V2"), DType::kBF16);
  EXPECT_EQ(ParseNpyDescr("<V2"), DType::kBF16);
  EXPECT_EQ(ParseNpyDescr("=f8"), DType::kF64);
  EXPECT_EQ(ParseNpyDescr("f8"), DType::kF64);
  EXPECT_EQ(ParseNpyDescr("?"), DType::kBool);
  EXPECT_EQ(ParseNpyDescr(">u1"), DType::kU8);
  EXPECT_EQ(ParseNpyDescr("<c16"), DType::kC128);
  for (const auto& info : AllDTypes()) EXPECT_EQ(ParseNpyDescr(info.npy_descr), info.dtype);
}

TEST(Npy, RefusesForeignDTypesByName) {
  const auto refusal = [](const std::string& descr) {
    return Refusal(NpyBytes(Dict(descr, "False", "(2,)"), "12345678"));
  };
  EXPECT_EQ(refusal("'>f4'"), "x.npy: big-endian dtype '>f4' is not supported");
  EXPECT_EQ(refusal("'>V2'"), "x.npy: big-endian dtype '>V2' is not supported");
  EXPECT_EQ(refusal("'|O'"), "x.npy: object dtype '|O' is not supported");
  EXPECT_EQ(refusal("'<U4'"), "x.npy: unicode string dtype '<U4' is not supported");
  EXPECT_EQ(refusal("'|S3'"), "x.npy: byte string dtype '|S3' is not supported");
  EXPECT_EQ(refusal("'<M8[ns]'"), "x.npy: date or time dtype '<M8[ns]' is not supported");
  EXPECT_EQ(refusal("'|V3'"), "x.npy: void dtype '|V3' is not supported");
  EXPECT_EQ(refusal("'<f16'"), "x.npy: dtype '<f16' is not supported");
  EXPECT_EQ(refusal("'<c32'"), "x.npy: dtype '<c32' is not supported");
  EXPECT_EQ(refusal("''"), "x.npy: dtype '' is not supported");
  EXPECT_EQ(refusal("'<'"), "x.npy: dtype '<' is not supported");
  EXPECT_THAT(refusal("[('a', '<f4'), ('b', '<i4')]"), HasSubstr("structured dtype [('a', '<f4')"));
}

TEST(Npy, RefusesArraysItCannotHold) {
  const auto refusal = [](const std::string& shape) {
    return Refusal(NpyBytes(Dict("'<f8'", "False", shape), "12345678"));
  };
  EXPECT_THAT(refusal("(0, 3)"), HasSubstr("has no elements"));
  EXPECT_THAT(refusal("(3, 0)"), HasSubstr("has no elements"));
  EXPECT_THAT(refusal("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), HasSubstr("rank"));
  EXPECT_THAT(refusal("(1099511627776, 1099511627776)"), HasSubstr("2^60"));
  EXPECT_THAT(refusal("(99999999999999999999,)"), HasSubstr("over 2^63"));
  EXPECT_THAT(refusal("(-1,)"), HasSubstr("damaged"));
  EXPECT_THAT(refusal("(2,)"), HasSubstr("is truncated: its header promises 16 bytes of data, 8 are there"));
}

TEST(Npy, RefusesDamagedHeaders) {
  EXPECT_EQ(Refusal(""), "x.npy: is empty");
  EXPECT_EQ(Refusal("PK\x03\x04 a zip file"), "x.npy: is no .npy file");
  EXPECT_EQ(Refusal("\x93NUM"), "x.npy: ends within the .npy header");
  EXPECT_THAT(Refusal(std::string("\x93NUMPY\x04\x00\x10\x00\x00\x00", 12) + std::string(20, ' ')),
              HasSubstr("version 4.0 is not supported"));
  EXPECT_THAT(Refusal(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)),
              HasSubstr("its length is 4294967295"));
  EXPECT_THAT(Refusal(std::string("\x93NUMPY\x01\x00\xff\x00", 10)), HasSubstr("ends within"));
  for (const char* dict :
       {"", "{}", "garbage", "{'descr': '<f4'", "{'descr': '<f4'}", "{'descr': 1, }",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'extra': 3}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} more", "{'descr': '<f4"}) {
    EXPECT_THAT(Refusal(NpyBytes(dict, "1234")), HasSubstr("damaged .npy header")) << dict;
  }
}

TEST(Npy, NoCutOfAFileIsReadAsWhole) {
  const std::string whole = FormatNpyHeader(Spec(DType::kF32, {4})) + std::string(16, 'x');
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(Parse(whole.substr(0, size))) << size;
  EXPECT_TRUE(Parse(whole));
}

TEST(Npy, NoFlippedByteIsFatal) {
  const std::string whole = FormatNpyHeader(Spec(DType::kF32, {4, 2})) + std::string(32, 'x');
  int accepted = 0;
  for (size_t at = 0; at < 128; ++at) {
    for (int value = 0; value < 256; value += 5) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(value);
      if (const auto read = Parse(bytes)) {
        ++accepted;
        EXPECT_LE(read->data_offset + static_cast<uint64_t>(read->spec.bytes()), bytes.size());
      }
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace tilewire::client

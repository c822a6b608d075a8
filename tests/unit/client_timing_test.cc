// Every field of the wire's Timing reaches who reads `tilewire --json`. A new one is filled in
// server/rpc/conversions/convert.cc, told by Timing and FromProto() of client/cpp (client.h, convert.cc), and
// shown by client/cli/report.cc and by Python's Timing (client/python/src/tilewire/_timing.py,
// core/bind_reply.cc).
#include <gtest/gtest.h>

#include <google/protobuf/descriptor.h>

#include <map>
#include <string>

#include "client/cli/report.h"
#include "client/cpp/convert.h"

namespace tilewire::cli {
namespace {

using google::protobuf::FieldDescriptor;
using nlohmann::json;

/// Sets a field to a value that no other has. What --json should say.
json SetField(v1::Timing* timing, const FieldDescriptor& field) {
  const int number = field.number();
  const auto* const reflection = timing->GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      reflection->SetDouble(timing, &field, number + 0.5);
      return number + 0.5;
    case FieldDescriptor::CPPTYPE_UINT64:
      reflection->SetUInt64(timing, &field, static_cast<uint64_t>(number));
      return number;
    case FieldDescriptor::CPPTYPE_UINT32:
      reflection->SetUInt32(timing, &field, static_cast<uint32_t>(number));
      return number;
    case FieldDescriptor::CPPTYPE_STRING:
      reflection->SetString(timing, &field, "text " + std::to_string(number));
      return "text " + std::to_string(number);
    default:
      ADD_FAILURE() << field.name() << " is of a type that this test does not know";
      return nullptr;
  }
}

TEST(Timing, EveryFieldIsInJson) {
  // Under another name, since the client measures one too; null: shown by --trace alone.
  const std::map<std::string, json> exceptions = {
      {"round_trip_us", "server_round_trip_us"}, {"spans", nullptr}, {"spans_dropped", nullptr}};
  v1::Timing timing;
  std::map<std::string, json> expected;
  const auto* const type = v1::Timing::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const std::string name = type->field(i)->name();
    const auto exception = exceptions.find(name);
    if (exception == exceptions.end())
      expected[name] = SetField(&timing, *type->field(i));
    else if (!exception->second.is_null())
      expected[exception->second] = SetField(&timing, *type->field(i));
  }
  client::Reply reply;
  reply.timing = client::FromProto(timing);
  const json shown = JsonTiming(reply);
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(shown.contains(name)) << name << " is not shown: client/cli/report.cc";
    EXPECT_EQ(shown[name], value) << name;
  }
}

}  // namespace
}  // namespace tilewire::cli

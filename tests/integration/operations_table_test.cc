// What the server's table, the wire's messages and the conformance test's rows say of operations agrees.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>

#include "client/cpp/wire_form.h"
#include "tests/integration/operations.h"

namespace tilewire::testing {
namespace {

using google::protobuf::FieldDescriptor;

/// An operation's message that nobody has yet, with an attribute of every type that one may have, and others.
constexpr const char* kAnyOp = R"(
  name: "any.proto" package: "any" syntax: "proto3"
  enum_type { name: "Colour" value { name: "RED" number: 0 } value { name: "BLUE" number: 1 } }
  message_type {
    name: "AnyOp"
    field { name: "colour" number: 1 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".any.Colour" }
    field { name: "small" number: 2 label: LABEL_OPTIONAL type: TYPE_INT32 }
    field { name: "large" number: 3 label: LABEL_OPTIONAL type: TYPE_INT64 }
    field { name: "count" number: 4 label: LABEL_OPTIONAL type: TYPE_UINT32 }
    field { name: "flag" number: 5 label: LABEL_OPTIONAL type: TYPE_BOOL }
    field { name: "real" number: 6 label: LABEL_OPTIONAL type: TYPE_DOUBLE }
    field { name: "axes" number: 7 label: LABEL_REPEATED type: TYPE_INT32 }
    field { name: "colours" number: 8 label: LABEL_REPEATED type: TYPE_ENUM type_name: ".any.Colour" }
    field { name: "text" number: 9 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "reals" number: 10 label: LABEL_REPEATED type: TYPE_DOUBLE }
    field { name: "huge" number: 11 label: LABEL_OPTIONAL type: TYPE_UINT64 }
  })";

TEST(Operations, MayHaveAttributesOfSeveralTypesOnTheWire) {
  google::protobuf::FileDescriptorProto file;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kAnyOp, &file));
  google::protobuf::DescriptorPool pool;
  const auto* const type = pool.BuildFile(file)->message_type(0);
  google::protobuf::DynamicMessageFactory factory;
  const std::unique_ptr<google::protobuf::Message> message(factory.GetPrototype(type)->New());
  using List = std::vector<int32_t>;
  const std::pair<const char*, AttributeValue> values[] = {
      {"colour", int64_t{1}},       {"small", int64_t{-7}},
      {"large", int64_t{-1} << 40}, {"count", int64_t{4'000'000'000}},
      {"flag", int64_t{1}},         {"real", 0.1},
      {"axes", List{-1, 2}},        {"colours", List{1, 0}}};
  for (const auto& [name, value] : values) {
    const FieldDescriptor* const field = type->FindFieldByName(name);
    client::SetAttribute(value, field, message.get());
    EXPECT_EQ(rpc::ValueOf(*message, field), value) << name;
    EXPECT_EQ(rpc::KindOf(*field), static_cast<AttributeKind>(value.index())) << name;
  }
  for (const char* const name : {"text", "reals", "huge"})
    EXPECT_EQ(rpc::KindOf(*type->FindFieldByName(name)), std::nullopt) << name;
}

TEST(Operations, AreInTheTableTheMessageAndTheRowsBelowTheSameNames) {
  std::vector<std::string> table, rows, members;
  for (const Descriptor* const descriptor : rpc::Operations()) table.emplace_back(descriptor->name);
  for (const Row& row : Rows()) rows.emplace_back(row.name);
  const auto* const oneof = v1::Operation::descriptor()->oneof_decl(0);
  for (int i = 0; i < oneof->field_count(); ++i) members.push_back(oneof->field(i)->name());
  for (auto* names : {&table, &rows, &members}) std::sort(names->begin(), names->end());
  EXPECT_EQ(std::unique(table.begin(), table.end()), table.end());
  EXPECT_EQ(table, rows);
  EXPECT_EQ(table, members);
}

TEST(Operations, AreListedForPeopleInTheOrderOfTheTable) {
  std::string commas;
  for (const Descriptor* const descriptor : rpc::Operations()) commas += std::string(descriptor->name) + ", ";
  EXPECT_EQ(rpc::OperationNames("put"), commas.substr(0, commas.size() - 2) + " or put");
  EXPECT_THAT(commas, ::testing::StartsWith("rmse, transpose, gaussian_pdf, compare, "));
  const std::string last(rpc::Operations().back()->name);
  EXPECT_EQ(rpc::OperationNames(), commas.substr(0, commas.size() - last.size() - 4) + " or " + last);
}

TEST(Operations, HaveTheAttributesOfTheirMessages) {
  for (const Descriptor* const descriptor : rpc::Operations()) {
    SCOPED_TRACE(descriptor->name);
    const auto* const member = v1::Operation::descriptor()->FindFieldByName(std::string(descriptor->name));
    ASSERT_NE(member, nullptr);
    const auto* const message = member->message_type();
    ASSERT_EQ(message->field_count(), static_cast<int>(descriptor->attributes.size()));
    for (const AttributeInfo& attribute : descriptor->attributes) {
      const auto* const field = message->FindFieldByName(std::string(attribute.name));
      ASSERT_NE(field, nullptr) << attribute.name;
      EXPECT_EQ(rpc::KindOf(*field), attribute.kind) << attribute.name;
    }
    EXPECT_TRUE(descriptor->numeric_version.find('.') != std::string_view::npos);
  }
}

TEST(Operations, KeepWithinTheBoundsOfTheWire) {
  const auto check = [](const Descriptor& descriptor, const Problem& problem) {
    EXPECT_EQ(problem.descriptor(), &descriptor);
    ASSERT_EQ(problem.operands().size(), descriptor.operands.size());
    EXPECT_GE(problem.operands().size(), 1U);
    EXPECT_LE(problem.operands().size(), static_cast<size_t>(kMaxOperands));
    EXPECT_GE(problem.results().size(), 1U);
    EXPECT_LE(problem.results().size(), static_cast<size_t>(kMaxResults));
    for (const ArraySpec& operand : problem.operands())
      EXPECT_EQ(operand.bytes(), problem.operands()[0].bytes()) << "blocks are counted over all operands";
    if (problem.ranges_fill_result()) {
      EXPECT_EQ(problem.results().size(), 1U);
    }
  };
  for (const Descriptor* const descriptor : rpc::Operations()) {
    SCOPED_TRACE(descriptor->name);
    for (const Example& example : descriptor->examples())
      check(*descriptor, *descriptor->Make(example.operands, example.attributes).value());
    for (const Sample& sample : RowOf(*descriptor).samples()) {
      const auto problem = ProblemOf(sample);
      check(*descriptor, *problem);
      ASSERT_EQ(problem->results().size(), sample.results.size());
      for (size_t i = 0; i < sample.results.size(); ++i)
        EXPECT_EQ(static_cast<size_t>(problem->results()[i].bytes()), sample.results[i].size());
    }
  }
}

}  // namespace
}  // namespace tilewire::testing

// What the server's table, the wire's messages and the conformance test's rows say of operations agrees.
#include <algorithm>

#include "tests/integration/operations.h"

namespace tilewire::testing {
namespace {

using google::protobuf::FieldDescriptor;

AttributeKind KindOf(const FieldDescriptor& field) {
  if (field.is_repeated()) return AttributeKind::kIntegers;
  return field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ? AttributeKind::kReal : AttributeKind::kInteger;
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
      EXPECT_EQ(KindOf(*field), attribute.kind) << attribute.name;
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

// The client's table of operations: its rows belong to descriptors and messages, and what becomes of them on
// the wire.
#include "client/cpp/operations.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cctype>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "client/cpp/convert.h"
#include "client/cpp/wire_form.h"
#include "kernels/gaussian/problem.h"
#include "kernels/operation/copy.h"
#include "kernels/rmse/problem.h"
#include "kernels/transpose/problem.h"
#include "tests/unit/client_fake_server.h"
#include "tests/unit/client_testing.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::client {
namespace {

using google::protobuf::FieldDescriptor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Spec;

const FieldDescriptor* MemberOf(const OperationInfo& row) {
  return v1::Operation::descriptor()->FindFieldByNumber(row.member);
}

bool IsOf(const FieldDescriptor& field, AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kIntegers:
      return field.is_repeated() && (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 ||
                                     field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM);
    case AttributeKind::kReal:
      return !field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
    case AttributeKind::kInteger:
      return !field.is_repeated() && (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
                                      field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM);
  }
  return false;
}

TEST(ClientOperations, EveryMemberOfTheMessageIsARowOfItsName) {
  std::set<int> members;
  std::set<std::string_view> names, commands;
  for (const OperationInfo& row : Operations()) {
    ASSERT_NE(MemberOf(row), nullptr) << row.command;
    EXPECT_EQ(MemberOf(row)->name(), row.descriptor->name);
    members.insert(row.member);
    names.insert(row.descriptor->name);
    commands.insert(row.command);
    EXPECT_EQ(FindOperation(*row.descriptor), &row);
    EXPECT_EQ(FindOperation(row.command), &row);
  }
  EXPECT_EQ(members.size(), static_cast<size_t>(v1::Operation::descriptor()->field_count()));
  EXPECT_EQ(names.size(), Operations().size());
  EXPECT_EQ(commands.size(), Operations().size());
  EXPECT_EQ(FindOperation("fft"), nullptr);
  EXPECT_EQ(FindOperation(kCopyDescriptor), nullptr);
}

TEST(ClientOperations, AttributesAreFieldsOfTheMessageAndHaveAFlag) {
  for (const OperationInfo& row : Operations()) {
    const auto* const message = MemberOf(row)->message_type();
    EXPECT_EQ(static_cast<size_t>(message->field_count()), row.descriptor->attributes.size()) << row.command;
    EXPECT_EQ(row.flags.size(), row.descriptor->attributes.size()) << row.command;
    for (const AttributeInfo& attribute : row.descriptor->attributes) {
      const std::string name(attribute.name);
      const FieldDescriptor* const field = message->FindFieldByName(name);
      ASSERT_NE(field, nullptr) << row.command << " " << name;
      EXPECT_TRUE(IsOf(*field, attribute.kind)) << row.command << " " << name;
      const Flag* const flag = FindFlag(row, name);
      ASSERT_NE(flag, nullptr) << row.command << " " << name;
      EXPECT_TRUE(flag->names.starts_with("--"));
      EXPECT_FALSE(flag->help.empty());
      // Words are those of the enum, in its order.
      const auto* const values = field->enum_type();
      ASSERT_EQ(values == nullptr ? 0u : static_cast<size_t>(values->value_count()), flag->words.size());
      for (size_t i = 0; i < flag->words.size(); ++i) {
        std::string value = values->FindValueByNumber(static_cast<int>(i))->name(), word(flag->words[i]);
        for (char& c : value) c = static_cast<char>(std::tolower(c));
        std::ranges::replace(word, '-', '_');
        EXPECT_TRUE(value.ends_with("_" + word)) << value;
      }
    }
  }
}

TEST(ClientOperations, OperandsAndResultsFitTheCommand) {
  for (const OperationInfo& row : Operations()) {
    EXPECT_EQ(row.operands.size(), row.descriptor->operands.size()) << row.command;
    EXPECT_EQ(row.shown == Shown::kFile, row.json.empty()) << row.command;
    EXPECT_EQ(row.shown == Shown::kNamed, row.result_names != nullptr) << row.command;
    for (const Example& example : row.descriptor->examples()) {
      const auto results = ResultSpecs(Operation(*row.descriptor, example.attributes), example.operands);
      ASSERT_TRUE(results) << row.command << ": " << results.error().ToString();
      const Attributes all = row.descriptor->Complete(example.attributes).value();
      EXPECT_EQ(results->size(), row.shown == Shown::kNamed ? row.result_names(all).size() : 1u);
      if (row.results_of_any == nullptr) continue;
      const auto any = row.results_of_any(all);
      if (any) {
        EXPECT_EQ(*any, *results) << row.command;
      }
    }
  }
}

TEST(ClientOperations, PublishedCasesAreProblemsWithAllTheirBytes) {
  std::set<std::string> names;
  for (const OperationInfo& row : Operations()) {
    const auto cases = row.published();
    EXPECT_FALSE(cases.empty()) << row.command;
    for (const PublishedCase& published : cases) {
      EXPECT_TRUE(names.insert(published.name).second) << published.name;
      const PublishedData data = published.data();
      ASSERT_EQ(data.operands.size(), published.operands.size()) << published.name;
      for (size_t k = 0; k < data.operands.size(); ++k)
        EXPECT_EQ(data.operands[k].size(), static_cast<size_t>(published.operands[k].bytes()));
      EXPECT_FALSE(data.answers.empty()) << published.name;
      for (const PublishedAnswer& answer : data.answers) {
        const auto specs = ResultSpecs(Operation(*row.descriptor, answer.attributes), published.operands);
        ASSERT_TRUE(specs) << published.name << ": " << specs.error().ToString();
        ASSERT_EQ(specs->size(), answer.results.size()) << published.name;
        for (size_t k = 0; k < specs->size(); ++k)
          EXPECT_EQ(answer.results[k].size(), static_cast<size_t>((*specs)[k].bytes()));
      }
    }
  }
}

TEST(ClientOperations, TypedOnesAreTheSame) {
  const Operation rmse = RmseOp{{1, -1}, RmseOutput::kSumSquares};
  EXPECT_EQ(rmse.descriptor, &rmse::kDescriptor);
  EXPECT_THAT(rmse.attributes.integers("axes"), ElementsAre(1, -1));
  EXPECT_EQ(rmse.attributes.integer("output"), 2);
  const Operation transpose = TransposeOp{{1, 0}};
  EXPECT_EQ(transpose.descriptor, &transpose::kDescriptor);
  EXPECT_THAT(transpose.attributes.integers("axes"), ElementsAre(1, 0));
  const Operation gaussian = GaussianOp{0.5, 2};
  EXPECT_EQ(gaussian.descriptor, &gaussian::kDescriptor);
  EXPECT_EQ(gaussian.attributes.real("mean"), 0.5);
  EXPECT_EQ(gaussian.attributes.real("stddev"), 2);
}

TEST(ClientOperations, WrongOnesNeverReachTheServer) {
  testing::FakeServer server;
  Client client = Client::Connect(server.address());
  const testing::Pair pair({2, 2});
  const ArraySource operands[] = {pair.A(), pair.B()};
  const ResultSink sink = [](size_t, uint64_t, std::span<const uint8_t>) { return Status(); };
  const auto error = [&](const Operation& operation) {
    const auto reply = client.Execute(operation, operands, sink);
    const auto kernels = client.DescribeKernels(operation, std::vector(2, pair.spec));
    if (reply || kernels) return std::string("accepted");
    EXPECT_EQ(reply.error().ToString(), kernels.error().ToString());
    return reply.error().ToString();
  };
  EXPECT_EQ(error(Operation(rmse::kDescriptor, {{"axis", std::vector<int32_t>{0}}})),
            "INVALID_ARGUMENT: axis is given; allowed: an attribute of rmse: axes, output");
  EXPECT_EQ(error(Operation(rmse::kDescriptor, {{"axes", int64_t{0}}})),
            "INVALID_ARGUMENT: axes is an integer; allowed: a list of integers");
  EXPECT_EQ(error({}), "INVALID_ARGUMENT: operation is none; allowed: " + CommandNames(" or "));
  EXPECT_THAT(error(Operation(kCopyDescriptor)),
              HasSubstr("operation is " + std::string(kCopyDescriptor.name)));
  EXPECT_EQ(server.log().calls + server.log().streams, 0);
}

/// What a call is about, for the functions that make messages of it.
struct Call {
  explicit Call(Operation operation, std::vector<ArraySource> sources)
      : spec{.task = std::move(operation),
             .sources = std::move(sources),
             .results = std::nullopt,
             .store = std::nullopt,
             .into = std::nullopt,
             .sink = sink,
             .options = options,
             .connect = connect,
             .deadline = std::nullopt} {}
  const ResultSink sink;
  const CallOptions options{.lanes = 3};
  const ConnectOptions connect;
  CallSpec spec;
};

TEST(ClientOperations, FirstServersAreAskedInTheirOwnForm) {
  const testing::Pair pair({2, 2});
  const Call rmse(RmseOp{{-1}, RmseOutput::kMse}, {pair.A(), pair.B()});
  const UnaryRequest unary = MakeUnaryRequest(rmse.spec);
  EXPECT_EQ(unary.method, "/tilewire.v1.Kernels/Rmse");
  v1::RmseRequest request;
  ASSERT_TRUE(request.ParseFromString(unary.message->SerializeAsString()));
  EXPECT_EQ(request.op().ShortDebugString(), "axes: -1 output: RMSE_OUTPUT_MSE");
  EXPECT_EQ(request.options().lanes(), 3u);
  EXPECT_EQ(request.a().data().size(), 16u);
  EXPECT_NE(request.a().data(), request.b().data());
  EXPECT_EQ(MakeUnaryRequest(Call(TransposeOp{}, {pair.A()}).spec).method, "/tilewire.v1.Kernels/Transpose");
  EXPECT_EQ(MakeUnaryRequest(Call(GaussianOp{}, {pair.A()}).spec).method, "/tilewire.v1.Kernels/GaussianPdf");

  v1::Open open;
  SetOperation(GaussianOp{0.5, 2}, &open);
  EXPECT_EQ(open.ShortDebugString(), "gaussian_pdf { mean: 0.5 stddev: 2 }");
  v1::DescribeKernelsRequest kernels;
  SetOperation(TransposeOp{{1, 0}}, &kernels);
  EXPECT_EQ(kernels.ShortDebugString(), "transpose { axes: 1 axes: 0 }");
}

TEST(ClientOperations, TheGeneralFormHasAllAttributes) {
  const testing::Pair pair({2, 2});
  const UnaryRequest unary = MakeCompute(Call(RmseOp{{-1}, RmseOutput::kMse}, {pair.A(), pair.B()}).spec);
  EXPECT_EQ(unary.method, "/tilewire.v1.Kernels/Compute");
  v1::ComputeRequest request;
  ASSERT_TRUE(request.ParseFromString(unary.message->SerializeAsString()));
  EXPECT_EQ(request.operation().ShortDebugString(), "rmse { axes: -1 output: RMSE_OUTPUT_MSE }");
  EXPECT_EQ(request.options().lanes(), 3u);
  ASSERT_EQ(request.operands_size(), 2);
  EXPECT_EQ(request.operands(1).data().size(), 16u);
  v1::Operation operation;
  SetMember(Operation(gaussian::kDescriptor), &operation);
  EXPECT_EQ(operation.ShortDebugString(), "gaussian_pdf { stddev: 1 }") << "not what absent fields mean";
  for (const OperationInfo& row : Operations()) {
    SetMember(Operation(*row.descriptor), &operation);
    EXPECT_EQ(operation.operation_case(), row.member);
  }
}

TEST(ClientOperations, SeveralResultsAreTakenInOrderAndWhereTheyWereToGo) {
  Call call(RmseOp{}, {});
  const std::vector<ArraySpec> specs{Spec(DType::kF64, {3}), Spec(DType::kI64, {})};
  call.spec.results = specs;
  v1::ComputeResponse response;
  const auto add = [&](const ArraySpec& spec, uint64_t offset) {
    ToProto(spec, response.add_results()->mutable_spec());
    if (call.spec.into)
      ToProto(RegionPlace{"r", offset}, response.mutable_results()->rbegin()->mutable_region());
  };
  const auto take = [&] {
    Reply reply;
    const Status status = TakeResults(response.results(), call.spec, &reply);
    if (status.ok()) {
      EXPECT_EQ(reply.specs, specs);
      EXPECT_EQ(reply.spec, specs[0]);
    }
    return status.ToString();
  };
  add(specs[0], 0);
  EXPECT_THAT(take(), HasSubstr("1 results, expected 2"));
  add(specs[1], 0);
  EXPECT_EQ(take(), "OK");
  std::swap(*response.mutable_results(0), *response.mutable_results(1));
  EXPECT_THAT(take(), HasSubstr("the result is i64(), expected f64(3)"));

  call.spec.into = RegionPlace{"r", 512};
  for (const uint64_t second : {768, 536}) {
    response.clear_results();
    add(specs[0], 512);
    add(specs[1], second);
    EXPECT_EQ(take() == "OK", second == 768) << take() << ": each begins at a multiple of 256 bytes";
  }
}

}  // namespace
}  // namespace tilewire::client

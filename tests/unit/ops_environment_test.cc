// Environment variables: the list that all programs share, and what is told of a misspelt name.
#include "server/base/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/ops/flags.h"

namespace tilewire::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

/// "NAME nearest" of what is told about these entries.
std::vector<std::string> Told(std::vector<const char*> entries) {
  entries.push_back(nullptr);
  std::vector<std::string> told;
  for (const auto& [name, nearest] : UnknownVariables(entries.data()))
    told.push_back(name + " " + std::string(nearest));
  return told;
}

TEST(Environment, TheListHasTheServersFlagsAndTheClientsVariables) {
  std::vector<std::string> expected{"TILEWIRE_CONFIG",      "TILEWIRE_SERVER",     "TILEWIRE_TLS_CA",
                                    "TILEWIRE_CLIENT_CERT", "TILEWIRE_CLIENT_KEY", "TILEWIRE_TOKEN_FILE"};
  for (const Flag& flag : Flags()) expected.push_back(flag.env());
  EXPECT_THAT(std::vector<std::string>(KnownVariables().begin(), KnownVariables().end()),
              UnorderedElementsAreArray(expected));
}

TEST(Environment, KnownNamesAndThoseOfOthersAreNotTold) {
  for (const std::string_view name : KnownVariables())
    EXPECT_THAT(Told({(std::string(name) + "=x").c_str()}), IsEmpty()) << name;
  EXPECT_THAT(Told({}), IsEmpty());
  EXPECT_THAT(Told({"HOME=/root", "TILEWIR_LANES=8", "tilewire_lanes=8", "XTILEWIRE_LANEZ=8", "TILEWIRE=8",
                    "TILEWIRE_LANEZ", "TILEWIRE_SEED=7", "TILEWIRE_SCREENSHOTS=pictures"}),
              IsEmpty());
  EXPECT_THAT(Told({"TILEWIRE_LANEZ="}), IsEmpty()) << "an empty one counts as not set";
  EXPECT_EQ(UnknownVariables(nullptr).size(), 0u);
}

TEST(Environment, UnknownNamesComeWithTheNearestKnownOne) {
  EXPECT_THAT(Told({"A=B", "TILEWIRE_LANEZ=8", "TILEWIRE_LANES=8", "TILEWIRE_SERVR=h:1"}),
              ElementsAre("TILEWIRE_LANEZ TILEWIRE_LANES", "TILEWIRE_SERVR TILEWIRE_SERVER"));
  const std::vector<std::pair<const char*, const char*>> cases{
      {"TILEWIRE_LANE=1", "TILEWIRE_LANES"},
      {"TILEWIRE_LNAES=1", "TILEWIRE_LANES"},
      {"TILEWIRE_MAX_STREAM=1", "TILEWIRE_MAX_STREAMS"},
      {"TILEWIRE_BLOCKBYTES=1", "TILEWIRE_BLOCK_BYTES"},
      {"TILEWIRE_STORED_BYTES_PER_IDENTITY=1", "TILEWIRE_STORE_BYTES_PER_IDENTITY"},
      {"TILEWIRE_LONGEST_REGIONS_SECONDS=1", "TILEWIRE_LONGEST_REGION_SECONDS"}};
  for (const auto& [entry, nearest] : cases) {
    const std::string name(entry, std::string_view(entry).find('='));
    EXPECT_THAT(Told({entry}), ElementsAre(name + " " + nearest));
  }
}

TEST(Environment, WhatKubernetesSetsBesideAServiceIsNotTold) {
  EXPECT_THAT(Told({"TILEWIRE_SERVICE_HOST=10.0.0.7", "TILEWIRE_SERVICE_PORT=50051",
                    "TILEWIRE_SERVICE_PORT_GRPC=50051", "TILEWIRE_PORT=tcp://10.0.0.7:50051",
                    "TILEWIRE_PORT_50051_TCP=tcp://10.0.0.7:50051", "TILEWIRE_PORT_50051_TCP_ADDR=10.0.0.7",
                    "TILEWIRE_GPU_PORT_9090_UDP_PORT=9090", "TILEWIRE_GPU_PORT=udp://10.0.0.8:9090"}),
              IsEmpty());
  EXPECT_EQ(Told({"TILEWIRE_PORT=50051"}).size(), 1u) << "somebody means --listen";
  EXPECT_EQ(Told({"TILEWIRE_PORT_RANGE=1"}).size(), 1u);
  EXPECT_EQ(Told({"TILEWIRE_PORT_=1"}).size(), 1u);
}

}  // namespace
}  // namespace tilewire::ops

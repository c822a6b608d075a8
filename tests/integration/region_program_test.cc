// The programs and shared memory, as operators and users meet them; and clients that are killed.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "client/cpp/client.h"
#include "client/cpp/npy.h"
#include "tests/integration/program.h"
#include "tests/unit/shared_file.h"

namespace tilewire::testing {
namespace {

class RegionProgram : public ::testing::Test {
 protected:
  RegionProgram() { std::filesystem::create_directories(directory_); }
  ~RegionProgram() override {
    std::filesystem::remove_all(directory_);
    EXPECT_TRUE(server_.running());
  }
  std::string WriteNpy(const std::string& name, const std::vector<int64_t>& shape, const std::string& bytes) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary)
        << client::FormatNpyHeader(MakeSpec(DType::kF32, shape).value()) << bytes;
    return path;
  }
  std::vector<std::string> Command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--server", address_});
    return arguments;
  }
  client::ServerInfo Info() const {
    const auto info = client::Client::Connect(address_).Describe();
    EXPECT_TRUE(info) << info.error().ToString();
    return info ? *info : client::ServerInfo();
  }

  const std::string directory_ = ::testing::TempDir() + "regions-" + std::to_string(getpid());
  Program server_{{"--listen", "localhost:0", "--device", "cpu", "--allow-regions", kRegionPrefix,
                   "--region-seconds", "10", "--region-bytes", "256MiB"}};
  const std::string address_ = server_.Ready()[0];
};

TEST_F(RegionProgram, ViaARegionAnswersAreTheSame) {
  const std::string a = WriteNpy("a.npy", {500, 1000}, Floats(500'000, 1)),
                    b = WriteNpy("b.npy", {500, 1000}, Floats(500'000, 2));
  const auto run = [this](const std::vector<std::string>& arguments) {
    Program program(TILEWIRE_TILEWIRE, Command(arguments));
    EXPECT_EQ(program.Wait(120), 0) << program.err();
    return program.out();
  };
  const std::string expected = run({"rmse", a, b, "--axis", "1"});
  EXPECT_EQ(std::count(expected.begin(), expected.end(), '\n'), 500);
  EXPECT_EQ(run({"--via", "region", "rmse", a, b, "--axis", "1"}), expected);
  const std::string json = run({"--json", "--via", "region", "rmse", a, b});
  EXPECT_NE(json.find("\"bytes_in\":0,"), std::string::npos) << json;
  EXPECT_NE(json.find("\"region_bytes_in\":4000000,"), std::string::npos) << json;
  run({"transpose", a, directory_ + "/t.npy"});
  run({"--via", "region", "transpose", a, directory_ + "/u.npy"});
  const auto content = [this](const std::string& name) {
    std::ifstream file(directory_ + "/" + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_TRUE(content("t.npy") == content("u.npy"));
  EXPECT_EQ(Info().region_prefix, kRegionPrefix);
  EXPECT_TRUE(Eventually([this] { return Info().region_bytes_registered == 0; }));
}

TEST_F(RegionProgram, KilledClientsLeaveNothing) {
  const std::string a = WriteNpy("a.npy", {2000, 3000}, Floats(6'000'000, 1)),
                    b = WriteNpy("b.npy", {2000, 3000}, Floats(6'000'000, 2));
  // Points between its start and its end; killed there, when it goes out of scope, unless it was faster.
  const std::function<bool()> points[] = {
      [] { return true; }, [this] { return Info().regions_registered > 0; },
      [this] { return Info().regions_registered > 1; }, [this] { return Info().jobs_in_flight > 0; }};
  for (int i = 0; i < 12; ++i) {
    Program program(TILEWIRE_TILEWIRE, Command({"--via", "region", "rmse", a, b}));
    EXPECT_TRUE(Eventually([&] { return points[i % 4]() || !program.running(); }));
  }
  EXPECT_TRUE(Eventually([this] {
    const client::ServerInfo info = Info();
    return info.regions_registered == 0 && info.region_bytes_registered == 0 && info.jobs_in_flight == 0 &&
           info.device_bytes_in_use == 0;
  }));
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().starts_with(kRegionPrefix + 1) &&
        entry.path().filename().string().size() == std::strlen(kRegionPrefix) - 1 + 16)
      std::filesystem::remove(entry.path());  // of one that was killed before the server had it
}

}  // namespace
}  // namespace tilewire::testing

// The programs with arrays ten times as large as the server's memory for them.
#include <fstream>

#include "tests/integration/program.h"
#include "tests/unit/sanitized.h"

namespace tilewire::testing {
namespace {

constexpr size_t kProgramElements = 40 << 20;  // f32: 160 MiB

/// A file that goes with the test.
class File {
 public:
  explicit File(const std::string& name)
      : path(::testing::TempDir() + "tilewire-window-" + std::to_string(getpid()) + "-" + name) {}
  ~File() { unlink(path.c_str()); }
  const std::string path;
};

std::string NpyHeader() {
  std::string text =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(kProgramElements) + ",), }";
  text.resize(128 - 10 - 1, ' ');
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size() + 1) + '\0' + text + "\n";
}

void WriteNpy(const std::string& path, const std::string& data) {
  std::ofstream(path, std::ios::binary) << NpyHeader() << data;
}

/// The most memory that a process had, MiB.
int64_t PeakMebibytes(int pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) >> 10;
  return -1;
}

TEST(WindowProgram, ArraysOfSeveralHundredMebibytesPassThroughThirtyTwo) {
  Program server(
      {"--device", "cpu", "--listen", "localhost:0", "--device-bytes", "32MiB", "--receive-quota", "192MiB"});
  const std::string address = server.Ready()[0];
  const File a("a.npy"), b("b.npy"), out("out.npy");
  const std::string first = Floats(kProgramElements, 1), second = Floats(kProgramElements, 2);
  WriteNpy(a.path, first);
  WriteNpy(b.path, second);
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--server", address, "--timeout", "120"});
    Program client(TILEWIRE_TILEWIRE, std::move(arguments));
    EXPECT_EQ(client.Wait(150), 0) << client.err();
    return client.out();
  };
  const std::string expected = HostRmse(first, second, DType::kF32, {static_cast<int64_t>(kProgramElements)});
  double value;
  std::memcpy(&value, expected.data(), 8);
  EXPECT_EQ(std::stod(run({"--connections", "3", "rmse", a.path, b.path})), value);
  // Budget, and what the README allows a server beyond it.
  if (!kSanitized) {
    EXPECT_LE(PeakMebibytes(server.pid()), 32 + 256);
  }
  run({"gaussian-pdf", a.path, out.path, "--mean", "0.5", "--stddev", "0.2"});
  std::ifstream file(out.path, std::ios::binary);
  std::string bytes(first.size(), '\0');
  file.seekg(-static_cast<int64_t>(bytes.size()), std::ios::end);
  EXPECT_TRUE(file.read(bytes.data(), static_cast<int64_t>(bytes.size())));
  EXPECT_TRUE(bytes == HostGaussian(first, DType::kF32, {static_cast<int64_t>(kProgramElements)}, 0.5, 0.2));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(20), 0) << server.err();
}

}  // namespace
}  // namespace tilewire::testing

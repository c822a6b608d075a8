// What the client's tests share: temporary directories, files, arrays.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "client/cpp/npy.h"
#include "client/cpp/source.h"

namespace tilewire::client::testing {

/// A directory that is gone with the object.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "tilewire-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  size_t Count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

/// A loopback port where nobody listens and which nobody else gets; a gRPC server of this user's may listen
/// on it.
class QuietPort {
 public:
  QuietPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::system_error(errno, std::generic_category(), "no free port");
    number_ = ntohs(address.sin_port);
  }
  ~QuietPort() { ::close(fd_); }
  QuietPort(const QuietPort&) = delete;
  QuietPort& operator=(const QuietPort&) = delete;
  int number() const { return number_; }

 private:
  int fd_, number_ = 0;
};

inline void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline ArraySpec Spec(DType dtype, const std::vector<int64_t>& dims) {
  return MakeSpec(dtype, dims).value();
}

/// `bytes` bytes that differ from position to position; `seed` makes others.
inline std::string Pattern(size_t bytes, uint64_t seed = 1) {
  std::string out(bytes, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (char& c : out) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    c = static_cast<char>(state >> 56);
  }
  return out;
}

/// Values without NaN for f32 arrays: small integers and halves.
inline std::vector<float> Floats(size_t n, uint64_t seed) {
  const std::string bytes = Pattern(n, seed);
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(static_cast<signed char>(bytes[i])) / 2;
  return out;
}

/// A .npy file of version `major` with any header text.
inline std::string NpyBytes(const std::string& dict, const std::string& data, int major = 1) {
  const std::string header = dict + "\n";
  std::string out("\x93NUMPY", 6);
  out += {static_cast<char>(major), '\0'};
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return out + header + data;
}

inline void WriteNpy(const std::string& path, const ArraySpec& spec, const void* data) {
  WriteFile(path, FormatNpyHeader(spec) +
                      std::string(static_cast<const char*>(data), static_cast<size_t>(spec.bytes())));
}

/// Two f32 arrays whose differences are multiples of 1/2, so that sums of squares are exact.
struct Pair {
  ArraySpec spec;
  std::vector<float> a, b;
  explicit Pair(const std::vector<int64_t>& dims)
      : spec(Spec(DType::kF32, dims)),
        a(Floats(static_cast<size_t>(spec.shape.elements()), 1)),
        b(Floats(static_cast<size_t>(spec.shape.elements()), 2)) {}
  ArraySource A() const { return ArraySource::FromMemory(spec, a.data()); }
  ArraySource B() const { return ArraySource::FromMemory(spec, b.data()); }
  double SumSquares() const {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    return sum;
  }
};

}  // namespace tilewire::client::testing

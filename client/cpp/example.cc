// A complete program: RMSE of two arrays in memory, and the transpose of one of them.
#include <cstring>
#include <iostream>

#include "client/cpp/client.h"

int main(int argc, char** argv) {
  using namespace tilewire;
  using client::ArraySource;

  const float a[2][3] = {{1, 2, 3}, {4, 5, 6}};
  const float b[2][3] = {{1.5, 2.5, 3.5}, {4.5, 5.5, 6.5}};
  const ArraySpec spec = MakeSpec(DType::kF32, std::array<int64_t, 2>{2, 3}).value();
  client::Client client = client::Client::Connect(argc > 1 ? argv[1] : "localhost:50051");

  const auto rmse = client.Rmse(ArraySource::FromMemory(spec, a), ArraySource::FromMemory(spec, b));
  if (!rmse) {
    std::cerr << "error: " << rmse.error().ToString() << "\n";
    return 1;
  }
  std::cout << "rmse " << rmse->values[0] << " on " << rmse->reply.timing.device << "\n";

  float transposed[3][2];
  const auto take = [&](uint64_t offset, std::span<const uint8_t> bytes) {
    std::memcpy(reinterpret_cast<uint8_t*>(transposed) + offset, bytes.data(), bytes.size());
    return Status();
  };
  const auto reply = client.Transpose(ArraySource::FromMemory(spec, a), {}, take);
  if (!reply) return 1;
  std::cout << "transposed to " << reply->spec.shape.ToString() << ", first row " << transposed[0][0] << " "
            << transposed[0][1] << "\n";
}

// Runs a fuzz target without libFuzzer: over its seed corpus and over mutations of the seeds that are the
// same on every machine. Usage: replay_TARGET CORPUS_FOLDER MUTATIONS. When an input makes the target abort,
// its bytes are printed.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "tests/fuzz/fuzz_input.h"

namespace {

using Blob = std::vector<uint8_t>;

/// What runs now, for the signal handler.
const Blob* current = nullptr;

void PrintInput(int signal_number) {
  if (current != nullptr) {
    std::fprintf(stderr, "signal %d; the input's %zu bytes:", signal_number, current->size());
    for (const uint8_t byte : *current) std::fprintf(stderr, " %02x", byte);
    std::fputc('\n', stderr);
  }
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

/// A copy on a heap block of exactly its size, so that AddressSanitizer sees reads beyond it.
void Run(const Blob& input) {
  const Blob exact(input.begin(), input.end());
  current = &exact;
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  current = nullptr;
}

Blob Mutated(const std::vector<Blob>& seeds, std::mt19937* random) {
  const auto below = [random](size_t n) { return static_cast<size_t>((*random)() % n); };
  constexpr uint8_t kInteresting[] = {0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x12, 0x72, 0x7a};
  Blob blob = seeds[below(seeds.size())];
  for (size_t steps = 1 + below(6); steps > 0; --steps) {
    const size_t at = below(blob.size() + 1);
    const auto place = blob.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(6)) {
      case 0:
        blob.insert(place, static_cast<uint8_t>((*random)()));
        break;
      case 1:
        blob.insert(place, kInteresting[below(std::size(kInteresting))]);
        break;
      case 2:
        if (below(4) == 0) blob.erase(place, blob.end());
        break;
      case 3:
        if (at < blob.size()) blob.erase(place);
        break;
      case 4:
        if (at < blob.size()) *place ^= static_cast<uint8_t>(1u << below(8));
        break;
      default: {
        const Blob& other = seeds[below(seeds.size())];
        const size_t from = below(other.size() + 1), count = std::min<size_t>(other.size() - from, below(32));
        const auto first = other.begin() + static_cast<std::ptrdiff_t>(from);
        blob.insert(place, first, first + static_cast<std::ptrdiff_t>(count));
      }
    }
  }
  constexpr size_t kMaxBytes = 4096;
  if (blob.size() > kMaxBytes) blob.resize(kMaxBytes);
  return blob;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: %s CORPUS_FOLDER MUTATIONS\n", argv[0]), 2;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Blob> seeds;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  if (seeds.empty()) return std::fprintf(stderr, "no seeds in %s\n", argv[1]), 2;
  for (const int number : {SIGABRT, SIGSEGV, SIGFPE, SIGILL}) std::signal(number, PrintInput);
  Run({});
  for (const Blob& seed : seeds) Run(seed);
  const long mutations = std::strtol(argv[2], nullptr, 10);
  std::mt19937 random(20);
  for (long i = 0; i < mutations; ++i) Run(Mutated(seeds, &random));
  std::printf("%zu seeds and %ld mutations passed\n", seeds.size(), mutations);
  return 0;
}

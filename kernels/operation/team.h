// Threads that host code shares its loops with. Who runs an operation brings them: no kernel starts any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace tilewire {

class Team {
 public:
  virtual ~Team() = default;
  /// How many may take part in a loop, the calling one included.
  virtual int threads() const = 0;

  /// Calls `body(begin, end)` on pieces of at most `grain` items (lower than 1 counts as 1) that together
  /// cover [0, items) exactly once, and returns when all have returned: their writes are then visible to the
  /// caller. `body` is called from several threads at once and must not throw. Allocates nothing.
  template <typename Body>
  void For(int64_t items, int64_t grain, const Body& body) {
    Share(items, grain, std::cref(body));  // a reference fits into the function
  }

 protected:
  using Pieces = std::function<void(int64_t begin, int64_t end)>;
  virtual void Share(int64_t items, int64_t grain, const Pieces& body) = 0;
};

/// The calling thread by itself.
class Alone final : public Team {
 public:
  int threads() const override { return 1; }

 private:
  void Share(int64_t items, int64_t grain, const Pieces& body) override {
    const int64_t step = std::max<int64_t>(grain, 1);
    for (int64_t begin = 0; begin < items; begin += step) body(begin, std::min(begin + step, items));
  }
};

/// How many items of so many bytes make a piece that is long against handing it out (some 20 µs) and short
/// against a range.
inline int64_t GrainOf(int64_t bytes_per_item) {
  constexpr int64_t kPieceBytes = int64_t{256} << 10;
  return kPieceBytes / std::max<int64_t>(bytes_per_item, 1);
}

}  // namespace tilewire

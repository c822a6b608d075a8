// Whether this build has AddressSanitizer or ThreadSanitizer: memory is not what it is without them.
#pragma once

namespace tilewire::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// Of tests that draw their cases and run in the optimised build too: a quarter of them under sanitizers, and
/// other ones, by a seed of their own.
constexpr int Cases(int cases) {
  return kSanitized ? cases / 4 : cases;
}
constexpr unsigned Seed(unsigned seed) {
  return kSanitized ? seed + 1000 : seed;
}

}  // namespace tilewire::testing

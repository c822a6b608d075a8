// Limits that are part of the contract (section "Limits" of the README), tied together by static assertions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewire {

inline constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

/// Unary requests and replies: every stub's default.
inline constexpr int64_t kMaxUnaryBytes = 4 * kMiB;
/// One message: 4 MiB of payload and room for its header.
inline constexpr int64_t kMaxMessageBytes = 4 * kMiB + 64 * kKiB;
/// A message without its array bytes: no valid one is larger, and parsing makes it several times as large.
inline constexpr int64_t kMaxHeaderBytes = 64 * kKiB;
/// Pieces of a result that a message copies: that costs less than handing the buffer back through another
/// thread. A result of one such piece leaves nothing of its job behind, however slowly its client reads.
inline constexpr int64_t kMaxCopiedOutputBytes = 16 * kKiB;
/// Results up to this size come inside the Result message of a stream.
inline constexpr int64_t kInlineResultBytes = 64 * kKiB;
/// Output chunks of a stream.
inline constexpr int64_t kDefaultOutputChunkBytes = kMiB, kMinOutputChunkBytes = 4 * kKiB,
                         kMaxOutputChunkBytes = 4 * kMiB;
/// Operands plus result of a request that counts as small: own admission class, staging and lane.
inline constexpr int64_t kSmallJobBytes = 256 * kKiB;
/// `--block-bytes` and Options.block_bytes may be this, and a multiple of that: pages, and whole elements of
/// every dtype.
inline constexpr int64_t kMinBlockBytes = 4 * kKiB, kMaxBlockBytes = 256 * kMiB;
inline constexpr int64_t kBlockMultiple = 4 * kKiB;
/// `--lanes` may be 1 to this.
inline constexpr int kMaxLanes = 64;
/// `--max-streams` may be 1 to this; streams of one job unless it says otherwise.
inline constexpr int kMaxStreams = 64, kDefaultMaxStreams = 16;
/// Resident arrays of all callers: what is kept of each has no other bound.
inline constexpr int64_t kMaxArrays = 65'536;
/// Regions of all callers: each takes a descriptor and mappings.
inline constexpr int64_t kMaxRegions = 1024;
/// Regions of device memory of one caller: no bytes of the server's bound these.
inline constexpr int64_t kMaxDeviceRegionsPerIdentity = kMaxRegions / 4;
/// Options.store.idempotency_key: visible ASCII, at most.
inline constexpr int kMaxIdempotencyKeyBytes = 128;
/// Arrays of a page of a list, at most.
inline constexpr uint32_t kMaxListPage = 1000;
/// Spans returned with trace, at most.
inline constexpr int kMaxTraceSpans = 20'000;
/// `x-request-id`, `traceparent`: visible ASCII, at most.
inline constexpr int kMaxRequestIdBytes = 128;

static_assert(kMinBlockBytes % kBlockMultiple == 0 && kMaxBlockBytes % kBlockMultiple == 0);
static_assert(kMaxOutputChunkBytes + 64 * kKiB <= kMaxMessageBytes);
static_assert(kMaxUnaryBytes <= kMaxMessageBytes);
static_assert(kSmallJobBytes < kMaxUnaryBytes);

}  // namespace tilewire

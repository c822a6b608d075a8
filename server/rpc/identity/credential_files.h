// The operator's files by which callers are known, and what they may, kept as fresh as they are. No gRPC
// here.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/rpc/identity/jwks.h"
#include "server/rpc/identity/policy.h"
#include "server/rpc/identity/tls_files.h"
#include "server/rpc/identity/tokens.h"

namespace tilewire::rpc {

struct CredentialPaths {
  TlsPaths tls;
  std::string tokens;  ///< empty: no tokens are taken
  std::string policy;  ///< empty: everybody may do everything
  std::string jwks;    ///< empty: no JWT are taken
  JwtRules jwt;        ///< what they must say
};

/// What the files that calls are judged by said at one time. Null where the server has no such file: no
/// tokens or JWT are taken, everybody may do everything.
struct CallCredentials {
  std::shared_ptr<const Tokens> tokens;
  std::shared_ptr<const Jwks> jwks;
  std::shared_ptr<const Policy> policy;
};

/// What an operator is to be alerted of.
struct CredentialState {
  /// Of certificates, tokens, keys and policy: whose files cannot be used as they are, so that older ones
  /// are.
  int refused = 0;
  std::optional<WallTime> certificate_ends;  ///< of the server's; none: it speaks in clear
  bool operator==(const CredentialState&) const = default;
};

/// Reads them once a second (`tw-files`) and takes what is new: they may lie where nobody is told of changes,
/// mounts swap whole folders, and times of files are too coarse to tell two changes apart. What cannot be
/// used is warned of once, and what was there before stays: a certificate whose key has not come yet harms
/// nobody. Thread-safe.
class CredentialFiles {
 public:
  /// `good`: new files are used; else something is wrong with them.
  using Tell = std::function<void(bool good, std::string_view text)>;

  /// Fails as ReadTls and CheckTls, or with what is wrong in the file of tokens, of keys, or of the policy,
  /// which may name `words`. `tell` outlives it, is called on its thread too, and must not block.
  static Result<std::unique_ptr<CredentialFiles>> Open(const CredentialPaths& paths, PolicyWords words,
                                                       Tell tell);
  ~CredentialFiles();
  CredentialFiles(const CredentialFiles&) = delete;

  /// From now on the thread looks. Once. `on_state` is called now, where there are files at all, and on the
  /// thread when there is another state; outlives it, must not block.
  using OnState = std::function<void(const CredentialState&)>;
  void Start(OnState on_state = {});
  /// Takes what is new since the last look.
  void Look();

  /// What can be used and is surely not meant, as of `now`: told of by the thread too, when there is
  /// something new.
  std::vector<std::string> Doubts(WallTime now) const;

  bool has_tls() const { return !paths_.tls.certificate.empty(); }
  /// Null where the server speaks in clear. Another pointer when there is something new.
  std::shared_ptr<const TlsPems> tls() const;
  /// As of now; never null. Asked by every call, so that none may have to sleep for it.
  std::shared_ptr<const CallCredentials> for_calls() const { return for_calls_.load(); }

 private:
  /// A file as it was at the last look.
  struct FileSeen {
    bool ever = false;
    std::string text, wrong;  ///< or why it could not be read
  };
  /// Its text where that is new; nothing where it is not.
  Result<std::optional<std::string>> TakeText(const std::string& flag, const std::string& path,
                                              FileSeen* seen) TILEWIRE_REQUIRES(look_mutex_);
  CredentialFiles(const CredentialPaths& paths, PolicyWords words, Tell tell)
      : paths_(paths), words_(std::move(words)), tell_(std::move(tell)) {}
  /// Whether there was something new, and it is used now; or why not. What was wrong at the last look and is
  /// still so is nothing new.
  Result<bool> TakeTls() TILEWIRE_REQUIRES(look_mutex_);
  Result<bool> TakeTokens() TILEWIRE_REQUIRES(look_mutex_);
  Result<bool> TakeJwks() TILEWIRE_REQUIRES(look_mutex_);
  Result<bool> TakePolicy() TILEWIRE_REQUIRES(look_mutex_);
  /// From now on calls are judged by this one too.
  template <typename T>
  void Use(std::shared_ptr<const T> CallCredentials::*which, T fresh) TILEWIRE_REQUIRES(look_mutex_);
  /// Whether there is something new; from now on, whether what is there is `refused`.
  bool TellOf(std::string_view what, const Result<bool>& taken, bool* refused) TILEWIRE_REQUIRES(look_mutex_);
  void TellDoubts() const;
  void TellState(bool fresh) TILEWIRE_REQUIRES(look_mutex_);
  void Run();

  const CredentialPaths paths_;
  const PolicyWords words_;
  const Tell tell_;
  Mutex look_mutex_;  ///< one look at a time; held while files are read
  /// As they were at the last look: contents, or why they could not be read.
  TlsPems tls_seen_ TILEWIRE_GUARDED_BY(look_mutex_);
  FileSeen tokens_seen_ TILEWIRE_GUARDED_BY(look_mutex_), jwks_seen_ TILEWIRE_GUARDED_BY(look_mutex_),
      policy_seen_ TILEWIRE_GUARDED_BY(look_mutex_);
  std::string tls_wrong_ TILEWIRE_GUARDED_BY(look_mutex_);
  std::array<bool, 4> refused_ TILEWIRE_GUARDED_BY(look_mutex_){};
  OnState on_state_ TILEWIRE_GUARDED_BY(look_mutex_);
  CredentialState state_ TILEWIRE_GUARDED_BY(look_mutex_);  ///< as was told
  mutable Mutex mutex_;
  CondVar wake_;
  bool stop_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const TlsPems> tls_ TILEWIRE_GUARDED_BY(mutex_);
  /// Written by who looks.
  std::atomic<std::shared_ptr<const CallCredentials>> for_calls_{std::make_shared<const CallCredentials>()};
  std::thread thread_;
};

}  // namespace tilewire::rpc

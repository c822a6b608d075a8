#include "server/rpc/identity/credential_files.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/base/timing.h"

namespace tilewire::rpc {
namespace {
constexpr std::chrono::seconds kPeriod{1};

/// Whether that is something else than before, and from now on what was before.
template <typename T>
bool Replace(T* seen, const T& now) {
  if (*seen == now) return false;
  *seen = now;
  return true;
}

Status WrongFile(const std::string& flag, const std::string& path, const Status& wrong) {
  return Status(Code::kInvalidArgument, "BAD_VALUE",
                flag + " is " + path + ", " + std::string(wrong.message()));
}
}  // namespace

Result<std::unique_ptr<CredentialFiles>> CredentialFiles::Open(const CredentialPaths& paths,
                                                               PolicyWords words, Tell tell) {
  std::unique_ptr<CredentialFiles> files(new CredentialFiles(paths, std::move(words), std::move(tell)));
  const MutexLock lock(files->look_mutex_);
  if (const auto taken = files->TakeTls(); !taken) return Fail(taken.error());
  if (const auto taken = files->TakeTokens(); !taken) return Fail(taken.error());
  if (const auto taken = files->TakeJwks(); !taken) return Fail(taken.error());
  if (const auto taken = files->TakePolicy(); !taken) return Fail(taken.error());
  return files;
}

CredentialFiles::~CredentialFiles() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyOne();
  if (thread_.joinable()) thread_.join();
}

void CredentialFiles::Start(OnState on_state) {
  if (!has_tls() && paths_.tokens.empty() && paths_.jwks.empty() && paths_.policy.empty()) return;
  TellDoubts();
  {
    const MutexLock lock(look_mutex_);
    on_state_ = std::move(on_state);
    if (on_state_) {
      if (const auto pems = tls()) state_.certificate_ends = EndOfCertificate(pems->certificate);
      on_state_(state_);
    }
  }
  thread_ = std::thread([this] { Run(); });
}

void CredentialFiles::Run() {
  pthread_setname_np(pthread_self(), "tw-files");
  for (;;) {
    {
      const MutexLock lock(mutex_);
      const TimePoint next = Clock::now() + kPeriod;
      while (!stop_ && wake_.WaitUntil(mutex_, next)) {
      }
      if (stop_) return;
    }
    Look();
  }
}

void CredentialFiles::Look() {
  const MutexLock lock(look_mutex_);
  bool fresh = TellOf("certificates", TakeTls(), &refused_[0]);
  fresh |= TellOf("tokens", TakeTokens(), &refused_[1]);
  fresh |= TellOf("keys of --jwks", TakeJwks(), &refused_[2]);
  fresh |= TellOf("rules of the policy", TakePolicy(), &refused_[3]);
  if (fresh) TellDoubts();
  if (on_state_) TellState(fresh);
}

void CredentialFiles::TellState(bool fresh) {
  CredentialState state = state_;
  state.refused = static_cast<int>(std::ranges::count(refused_, true));
  if (const auto pems = tls(); pems && fresh) state.certificate_ends = EndOfCertificate(pems->certificate);
  if (std::exchange(state_, state) != state) on_state_(state);
}

std::vector<std::string> CredentialFiles::Doubts(WallTime now) const {
  std::vector<std::string> doubts;
  if (const auto pems = tls())
    if (std::string doubt = DoubtOfTls(paths_.tls, *pems, now); !doubt.empty())
      doubts.push_back(std::move(doubt));
  const auto credentials = for_calls();
  if (credentials->policy)
    for (const std::string& doubt : credentials->policy->Doubts(credentials->tokens.get()))
      doubts.push_back("--policy is " + paths_.policy + ", where " + doubt);
  return doubts;
}

void CredentialFiles::TellDoubts() const {
  for (const std::string& doubt : Doubts(std::chrono::system_clock::now())) tell_(false, doubt);
}

bool CredentialFiles::TellOf(std::string_view what, const Result<bool>& taken, bool* refused) {
  if (!taken || *taken) *refused = !taken;
  if (!taken) {
    tell_(false, std::string(what) + " have changed and cannot be used, so the old ones stay: " +
                     std::string(taken.error().message()));
  } else if (*taken) {
    tell_(true, "new " + std::string(what) + " are used");
  }
  return taken && *taken;
}

Result<bool> CredentialFiles::TakeTls() {
  if (!has_tls()) return false;
  auto pems = ReadTls(paths_.tls);
  if (!pems) {
    if (Replace(&tls_wrong_, std::string(pems.error().message()))) return Fail(pems.error());
    return false;
  }
  const bool back = !std::exchange(tls_wrong_, "").empty();
  if (!Replace(&tls_seen_, *pems) && !back) return false;
  TILEWIRE_RETURN_IF_ERROR(CheckTls(paths_.tls, *pems));
  auto fresh = std::make_shared<const TlsPems>(*std::move(pems));
  const MutexLock lock(mutex_);
  tls_ = std::move(fresh);
  return true;
}

Result<std::optional<std::string>> CredentialFiles::TakeText(const std::string& flag, const std::string& path,
                                                             FileSeen* seen) {
  auto text = ReadWholeFile(flag, path);
  if (!text) {
    if (Replace(&seen->wrong, std::string(text.error().message()))) return Fail(text.error());
    return std::nullopt;
  }
  const bool back = !std::exchange(seen->wrong, "").empty(), first = !std::exchange(seen->ever, true);
  if (!Replace(&seen->text, *text) && !back && !first) return std::nullopt;
  return *std::move(text);
}

template <typename T>
void CredentialFiles::Use(std::shared_ptr<const T> CallCredentials::*which, T fresh) {
  CallCredentials changed = *for_calls();
  changed.*which = std::make_shared<const T>(std::move(fresh));
  for_calls_.store(std::make_shared<const CallCredentials>(std::move(changed)));
}

Result<bool> CredentialFiles::TakeTokens() {
  if (paths_.tokens.empty()) return false;
  TILEWIRE_ASSIGN_OR_RETURN(const auto text, TakeText("--tokens", paths_.tokens, &tokens_seen_));
  if (!text) return false;
  auto parsed = Tokens::Parse(*text);
  if (!parsed) return Fail(WrongFile("--tokens", paths_.tokens, parsed.error()));
  Use(&CallCredentials::tokens, *std::move(parsed));
  return true;
}

Result<bool> CredentialFiles::TakeJwks() {
  if (paths_.jwks.empty()) return false;
  TILEWIRE_ASSIGN_OR_RETURN(const auto text, TakeText("--jwks", paths_.jwks, &jwks_seen_));
  if (!text) return false;
  auto parsed = Jwks::Parse(*text, paths_.jwt);
  if (!parsed) return Fail(WrongFile("--jwks", paths_.jwks, parsed.error()));
  Use(&CallCredentials::jwks, *std::move(parsed));
  return true;
}

Result<bool> CredentialFiles::TakePolicy() {
  if (paths_.policy.empty()) return false;
  TILEWIRE_ASSIGN_OR_RETURN(const auto text, TakeText("--policy", paths_.policy, &policy_seen_));
  if (!text) return false;
  auto parsed = Policy::Parse(*text, words_);
  if (!parsed) return Fail(WrongFile("--policy", paths_.policy, parsed.error()));
  Use(&CallCredentials::policy, *std::move(parsed));
  return true;
}

std::shared_ptr<const TlsPems> CredentialFiles::tls() const {
  const MutexLock lock(mutex_);
  return tls_;
}

}  // namespace tilewire::rpc

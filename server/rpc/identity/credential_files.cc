#include "server/rpc/identity/credential_files.h"

#include <pthread.h>

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
}  // namespace

Result<std::unique_ptr<CredentialFiles>> CredentialFiles::Open(const CredentialPaths& paths, Tell tell) {
  std::unique_ptr<CredentialFiles> files(new CredentialFiles(paths, std::move(tell)));
  const MutexLock lock(files->look_mutex_);
  if (const auto taken = files->TakeTls(); !taken) return Fail(taken.error());
  if (const auto taken = files->TakeTokens(); !taken) return Fail(taken.error());
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

void CredentialFiles::Start() {
  if (!has_tls() && paths_.tokens.empty()) return;
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
  TellOf("certificates", TakeTls());
  TellOf("tokens", TakeTokens());
}

void CredentialFiles::TellOf(std::string_view what, const Result<bool>& taken) const {
  if (!taken) {
    tell_(false, std::string(what) + " have changed and cannot be used, so the old ones stay: " +
                     std::string(taken.error().message()));
  } else if (*taken) {
    tell_(true, "new " + std::string(what) + " are used");
  }
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

Result<bool> CredentialFiles::TakeTokens() {
  if (paths_.tokens.empty()) return false;
  auto text = ReadWholeFile("--tokens", paths_.tokens);
  if (!text) {
    if (Replace(&tokens_wrong_, std::string(text.error().message()))) return Fail(text.error());
    return false;
  }
  const bool back = !std::exchange(tokens_wrong_, "").empty();
  const bool first = tokens() == nullptr;
  if (!Replace(&tokens_seen_, *text) && !back && !first) return false;
  auto parsed = Tokens::Parse(*text);
  if (!parsed)
    return Fail(Status(Code::kInvalidArgument, "BAD_VALUE",
                       "--tokens is " + paths_.tokens + ", " + std::string(parsed.error().message())));
  auto fresh = std::make_shared<const Tokens>(*std::move(parsed));
  const MutexLock lock(mutex_);
  tokens_ = std::move(fresh);
  return true;
}

std::shared_ptr<const TlsPems> CredentialFiles::tls() const {
  const MutexLock lock(mutex_);
  return tls_;
}

std::shared_ptr<const Tokens> CredentialFiles::tokens() const {
  if (paths_.tokens.empty()) return nullptr;  // asked by every call
  const MutexLock lock(mutex_);
  return tokens_;
}

}  // namespace tilewire::rpc

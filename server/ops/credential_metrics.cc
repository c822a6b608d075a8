#include "server/ops/credential_metrics.h"

#include <chrono>

namespace tilewire::ops {

CredentialMetrics::CredentialMetrics(prometheus::Registry* registry)
    : refused_(prometheus::BuildGauge()
                   .Name("tilewire_credential_files_refused")
                   .Help("Of certificates, tokens, keys and policy: whose files cannot be used as they are "
                         "now, so that older ones are in force")
                   .Register(*registry)),
      certificate_ends_(prometheus::BuildGauge()
                            .Name("tilewire_certificate_expiry_timestamp_seconds")
                            .Help("When the server's certificate is over, in seconds since 1970-01-01 UTC")
                            .Register(*registry)) {}

void CredentialMetrics::Set(const rpc::CredentialState& state) {
  refused_.Add({}).Set(state.refused);
  if (!state.certificate_ends) return;
  const std::chrono::duration<double> since_epoch = state.certificate_ends->time_since_epoch();
  certificate_ends_.Add({}).Set(since_epoch.count());
}

}  // namespace tilewire::ops

// Flags of who gets in: encryption, identities. A part of the table in flags.h.
#pragma once

#include <vector>

#include "kernels/array/status.h"
#include "server/ops/flags.h"

namespace tilewire::ops {

void AddSecurityFlags(std::vector<Flag>* flags);

/// What single flags cannot say of them: a certificate without its key, clear text for everybody.
Status CheckSecurity(const Config& config);

}  // namespace tilewire::ops

// What a policy may name: what this server has.
#pragma once

#include "server/rpc/identity/policy.h"

namespace tilewire::rpc {

/// Methods of the contract's services, operations of this server's table, and "put" and "get".
PolicyWords WordsOfPolicies();

}  // namespace tilewire::rpc

// What each layer is told of the configuration.
#pragma once

#include "server/engine/engine.h"
#include "server/ops/config.h"
#include "server/ops/confinement.h"
#include "server/rpc/server.h"

namespace tilewire {

engine::EngineOptions EngineOptionsOf(const ops::Config& config);
/// CheckConfig has found nothing wrong with it.
rpc::ServerOptions ServerOptionsOf(const ops::Config& config);
ops::Confinement ConfinementOf(const ops::Config& config);
/// More than are ever made: lanes' and workers', and 160 of queues, libraries and all the single ones.
int MostThreads(const ops::Config& config);

}  // namespace tilewire

// The place between main and the engine where the server of tests/chaos puts a device that fails on purpose.
#pragma once

#include <memory>

#include "server/engine/device/device.h"

namespace tilewire {

/// The device that the engine gets; in tilewired the same.
std::unique_ptr<engine::Device> Wrapped(std::unique_ptr<engine::Device> device);

}  // namespace tilewire

// What Python holds of a server.
#pragma once

#include "client/cpp/client.h"
#include "client/python/core/fork.h"

namespace tilewire::python {

/// An array that stays at the server until this goes. Not in a forked child, whose parent owns it.
struct Stored {
  Owned<client::OwnedArray> array;
};
/// Memory shared with the server.
struct Region {
  Owned<client::SharedRegion> region;
};
/// Memory of the server's device that is registered with it.
struct Device {
  Owned<client::DeviceRegion> region;
};

}  // namespace tilewire::python

#include "server/wrapped.h"

namespace tilewire {

std::unique_ptr<engine::Device> Wrapped(std::unique_ptr<engine::Device> device) {
  return device;
}

}  // namespace tilewire

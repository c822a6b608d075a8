// The machine that the load comes from.
#pragma once

#include <cstdint>
#include <string>

namespace tilewire::load {

struct Machine {
  std::string processor;  ///< "AMD EPYC 9654"
  uint32_t cores = 1;     ///< that this process may use
  uint64_t memory_bytes = 0;
  std::string os;  ///< "Linux 6.1.0"
};

Machine ThisMachine();
/// Memory that could still be allocated, bytes; 1 GiB where nobody tells.
uint64_t AvailableMemoryBytes();

}  // namespace tilewire::load

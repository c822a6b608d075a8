// Names that nobody can guess.
#pragma once

#include <string>

namespace tilewire::engine {

/// 16 hexadecimal digits from the kernel's generator. Thread-safe.
std::string RandomHex();

}  // namespace tilewire::engine

// Forms of flags: a whole number, bytes, a choice. The table (flags.cc, security_flags.cc) is made of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/ops/flags.h"
#include "server/ops/values.h"

namespace tilewire::ops {

/// A number of seconds as help shows it.
std::string SecondsText(double seconds);

/// Each stores its value in `member` of the configuration; the default that help shows is the member's.
Flag Whole(std::string name, int Config::*member, int64_t min, int64_t max, std::string help);
Flag Bytes(std::string name, int64_t Config::*member, int64_t min, int64_t max, std::string default_text,
           std::string help);
Flag Seconds(std::string name, double Config::*member, double min, double max, std::string help);
/// `when_on` is the member's value once the switch is on.
Flag Switch(std::string name, bool Config::*member, bool when_on, std::string help);
Flag Choice(std::string name, std::string Config::*member, std::vector<std::string> choices,
            std::string help);
Flag Addresses(std::string name, std::vector<std::string> Config::*member, AddressUse use,
               std::string default_text, std::string help);
/// A text that is parsed and kept as text.
Flag Text(std::string name, std::string placeholder, std::string Config::*member, std::string allowed,
          Result<std::string> (*parse)(std::string_view flag, std::string_view text), std::string help);
/// One whose default is not its member's initial value.
Flag Default(Flag flag, std::string text);

}  // namespace tilewire::ops

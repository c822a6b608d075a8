#include "server/ops/flag_forms.h"

#include <algorithm>
#include <utility>

namespace tilewire::ops {
namespace {

/// Stores a parsed value, or passes the error on.
template <typename T, typename Member>
Status Store(Result<T> value, Member* member) {
  if (!value) return value.error();
  *member = static_cast<Member>(*std::move(value));
  return Status();
}

}  // namespace

std::string SecondsText(double seconds) {
  return std::to_string(static_cast<int64_t>(seconds));
}

Flag Whole(std::string name, int Config::*member, int64_t min, int64_t max, std::string help) {
  Flag flag{.name = name, .placeholder = "N", .default_text = std::to_string(Config().*member)};
  flag.allowed = std::to_string(min) + " to " + std::to_string(max);
  flag.help = std::move(help);
  flag.store = [=](Config* config, std::string_view text) {
    return Store(ParseWhole("--" + name, text, min, max), &(config->*member));
  };
  return flag;
}

Flag Default(Flag flag, std::string text) {
  flag.default_text = std::move(text);
  return flag;
}

Flag Bytes(std::string name, int64_t Config::*member, int64_t min, int64_t max, std::string default_text,
           std::string help) {
  const bool zero_is_default = Config().*member == 0;
  Flag flag{.name = name, .placeholder = "BYTES", .default_text = std::move(default_text)};
  flag.allowed = FormatBytes(min) + " to " + FormatBytes(max);
  flag.help = std::move(help);
  flag.store = [=](Config* config, std::string_view text) {
    return Store(ParseBytes("--" + name, text, min, max, zero_is_default), &(config->*member));
  };
  return flag;
}

Flag Seconds(std::string name, double Config::*member, double min, double max, std::string help) {
  Flag flag{.name = name, .placeholder = "S", .default_text = SecondsText(Config().*member)};
  flag.allowed = (min < 1 && min > 0 ? "0.1" : SecondsText(min)) + " to " + SecondsText(max);
  flag.help = std::move(help);
  flag.store = [=](Config* config, std::string_view text) {
    return Store(ParseSeconds("--" + name, text, min, max), &(config->*member));
  };
  return flag;
}

Flag Switch(std::string name, bool Config::*member, bool when_on, std::string help) {
  Flag flag{.name = name, .default_text = "off", .allowed = "on or off", .help = std::move(help)};
  flag.store = [=](Config* config, std::string_view text) {
    auto on = ParseSwitch("--" + name, text);
    if (!on) return on.error();
    config->*member = *on ? when_on : !when_on;
    return Status();
  };
  return flag;
}

Flag Choice(std::string name, std::string Config::*member, std::vector<std::string> choices,
            std::string help) {
  Flag flag{.name = name, .default_text = Config().*member, .help = std::move(help)};
  std::string words;
  for (const std::string& choice : choices) words += (words.empty() ? "" : ", ") + choice;
  flag.placeholder = "WORD";
  flag.allowed = words;
  flag.store = [=](Config* config, std::string_view text) -> Status {
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      return BadValue("--" + name, text, words).value();
    }
    config->*member = std::string(text);
    return Status();
  };
  return flag;
}

Flag Addresses(std::string name, std::vector<std::string> Config::*member, AddressUse use,
               std::string default_text, std::string help) {
  Flag flag{.name = name, .placeholder = "ADDR", .default_text = std::move(default_text)};
  flag.allowed = use == AddressUse::kListen ? "host:port, [v6]:port, unix:PATH; port 0 picks one"
                                            : "host:port, [v6]:port, unix:PATH; port 1 to 65535";
  flag.help = std::move(help);
  flag.repeatable = true;
  flag.store = [=](Config* config, std::string_view text) -> Status {
    auto address = ParseAddress("--" + name, text, use);
    if (!address) return address.error();
    auto& list = config->*member;
    if (std::find(list.begin(), list.end(), *address) != list.end() && !address->ends_with(":0")) {
      return BadValue("--" + name, text, "each address once").value();
    }
    list.push_back(*std::move(address));
    return Status();
  };
  return flag;
}

Flag Text(std::string name, std::string placeholder, std::string Config::*member, std::string allowed,
          Result<std::string> (*parse)(std::string_view flag, std::string_view text), std::string help) {
  const std::string initial = Config().*member;
  Flag flag{
      .name = name, .placeholder = std::move(placeholder), .default_text = initial.empty() ? "off" : initial};
  flag.allowed = std::move(allowed);
  flag.help = std::move(help);
  flag.store = [=](Config* config, std::string_view text) {
    return Store(parse("--" + name, text), &(config->*member));
  };
  return flag;
}

}  // namespace tilewire::ops

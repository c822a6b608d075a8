// A reader of XML that takes nothing but well-formed text of the kind that the program writes: elements,
// attributes, the five entities; no comments, CDATA or processing instructions.
#pragma once

#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tilewire::testing {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  ///< of its own
  size_t parent = 0;

  double number(const std::string& key) const {
    const auto found = attributes.find(key);
    if (found == attributes.end()) throw std::runtime_error(name + " has no " + key);
    size_t used = 0;
    const double value = std::stod(found->second, &used);
    if (used != found->second.size()) throw std::runtime_error(key + " is no number: " + found->second);
    return value;
  }
};

/// All elements, in the order of their begin; throws std::runtime_error where the text is not well-formed.
class XmlReader {
 public:
  static std::vector<Element> Read(std::string_view text) {
    XmlReader reader(text);
    while (reader.at_ < text.size()) reader.Step();
    if (!reader.open_.empty()) throw std::runtime_error("never closed: " + reader.Top().name);
    if (reader.elements_.empty()) throw std::runtime_error("no element");
    return std::move(reader.elements_);
  }

 private:
  explicit XmlReader(std::string_view text) : text_(text) {}
  Element& Top() { return elements_[open_.back()]; }
  [[noreturn]] void Fail(const std::string& what) const {
    throw std::runtime_error(what + " at " + std::string(text_.substr(at_, 60)));
  }
  bool Take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::string Name() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-' ||
                                  text_[at_] == ':' || text_[at_] == '_'))
      ++at_;
    if (begin == at_) Fail("no name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  /// One character of content.
  std::string Character() {
    static constexpr std::pair<const char*, const char*> kEntities[] = {
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}};
    for (const auto& [entity, meaning] : kEntities)
      if (Take(entity)) return meaning;
    const char c = text_[at_];
    if (c == '&' || c == '<' || (static_cast<unsigned char>(c) < 0x20 && c != '\n')) Fail("a bare character");
    ++at_;
    return std::string(1, c);
  }
  void Attributes(Element* element) {
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
      const std::string key = Name();
      if (!Take("=\"")) Fail("no value");
      std::string value;
      while (at_ < text_.size() && text_[at_] != '"') value += Character();
      if (!Take("\"")) Fail("no end of a value");
      if (!element->attributes.emplace(key, value).second) Fail("a repeated attribute");
    }
  }
  void Step() {
    if (Take("</")) {
      const std::string name = Name();
      if (!Take(">") || open_.empty() || Top().name != name) Fail("a wrong end of " + name);
      open_.pop_back();
    } else if (Take("<")) {
      if (open_.empty() && !elements_.empty()) Fail("a second root");
      Element element{
          .name = Name(), .attributes = {}, .text = {}, .parent = open_.empty() ? 0 : open_.back()};
      Attributes(&element);
      const bool empty = Take("/");
      if (!Take(">")) Fail("no end of a tag");
      elements_.push_back(std::move(element));
      if (!empty) open_.push_back(elements_.size() - 1);
    } else {
      const std::string character = Character();
      if (!open_.empty()) {
        Top().text += character;
      } else if (character != "\n") {
        Fail("text outside");
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Element> elements_;
  std::vector<size_t> open_;
};

}  // namespace tilewire::testing

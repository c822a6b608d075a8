#include "client/load/json_lines.h"

#include <algorithm>

namespace tilewire::load {

/// Walks the text by its brackets, strings and commas.
class JsonLines::Scanner {
 public:
  Scanner(std::string_view text, JsonLines* out) : text_(text), out_(out) {}

  void Value(const std::string& path) {
    Skip();
    if (path.empty() || !out_->lines_.emplace(path, line_).second) {
      if (!path.empty() && !out_->repeated_) out_->repeated_ = path;
    }
    if (Peek() == '{') {
      Object(path);
    } else if (Peek() == '[') {
      Array(path);
    } else if (Peek() == '"') {
      String();
    } else {
      while (at_ < text_.size() && std::string_view(",]} \t\r\n").find(Peek()) == std::string_view::npos)
        ++at_;
    }
  }

 private:
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Skip() {
    for (; at_ < text_.size() && std::string_view(" \t\r\n").find(Peek()) != std::string_view::npos; ++at_)
      line_ += Peek() == '\n';
  }
  std::string String() {
    std::string text;
    for (++at_; at_ < text_.size() && Peek() != '"'; ++at_) {
      if (Peek() == '\\') text += text_[at_++];
      text += Peek();
    }
    ++at_;
    return text;
  }
  void Object(const std::string& path) {
    ++at_;
    for (Skip(); at_ < text_.size() && Peek() != '}'; Skip()) {
      if (Peek() != '"') return Leave();
      const std::string key = String();
      Skip();
      ++at_;  // the colon
      Value(path.empty() ? key : path + "." + key);
      Skip();
      if (Peek() == ',') ++at_;
    }
    ++at_;
  }
  void Array(const std::string& path) {
    ++at_;
    int index = 0;
    for (Skip(); at_ < text_.size() && Peek() != ']'; Skip()) {
      const size_t before = at_;
      Value(path + "[" + std::to_string(index++) + "]");
      Skip();
      if (at_ == before && Peek() != ',') return Leave();
      if (Peek() == ',') ++at_;
    }
    ++at_;
  }
  void Leave() { at_ = text_.size(); }

  const std::string_view text_;
  JsonLines* const out_;
  size_t at_ = 0;
  int line_ = 1;
};

JsonLines::JsonLines(std::string_view text) {
  Scanner(text, this).Value("");
}

int JsonLines::LineOf(std::string path) const {
  while (!path.empty()) {
    const auto found = lines_.find(path);
    if (found != lines_.end()) return found->second;
    const size_t cut = path.find_last_of(".[");
    path.resize(cut == path.npos ? 0 : cut);
  }
  return 1;
}

}  // namespace tilewire::load

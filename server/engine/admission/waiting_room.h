// How many requests of each owner wait.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace tilewire::engine {

/// Thread-compatible.
class WaitingRoom {
 public:
  using Id = uint64_t;  ///< ascending as they come

  void Add(Id id, const std::string& owner);
  void Remove(Id id, const std::string& owner);
  size_t size() const { return size_; }
  size_t Count(const std::string& owner) const;
  /// The last one to come of the owner of whom most wait, where a newcomer of `owner` would still have fewer
  /// places than that one: so a room that is full has a place for everybody. 0: there is none.
  Id WhoMakesRoomFor(const std::string& owner) const;

 private:
  std::map<std::string, std::set<Id>> by_owner_;
  std::set<std::pair<size_t, std::string>> by_count_;
  size_t size_ = 0;

  void Recount(const std::string& owner, size_t before, size_t now);
};

}  // namespace tilewire::engine

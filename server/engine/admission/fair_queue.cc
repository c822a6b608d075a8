#include "server/engine/admission/fair_queue.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace tilewire::engine {

void FairQueue::Push(Id id, const std::string& owner, int64_t cost) {
  const auto line = lines_.try_emplace(owner).first;
  auto& requests = line->second.requests;
  auto behind = requests.end();
  while (behind != requests.begin() && std::prev(behind)->id > id) --behind;
  const auto request = requests.insert(behind, {id, std::max(cost, kQuantum)});
  places_.emplace(id, Place{line, request});
  Settle(line);
}

void FairQueue::Serve(Id id) {
  const auto place = places_.find(id);
  if (place == places_.end()) return;
  place->second.line->second.credit -= place->second.request->cost;
  Erase(place);
}

void FairQueue::Remove(Id id) {
  const auto place = places_.find(id);
  if (place == places_.end()) return;
  Line& line = place->second.line->second;
  if (place->second.request == line.requests.begin()) line.credit = std::min<int64_t>(line.credit, 0);
  Erase(place);
}

void FairQueue::Erase(std::map<Id, Place>::iterator place) {
  const auto line = place->second.line;
  line->second.requests.erase(place->second.request);
  places_.erase(place);
  Settle(line);
}

void FairQueue::Hold(const std::string& owner) {
  const auto line = lines_.try_emplace(owner).first;
  line->second.held = true;
  Settle(line);
}

void FairQueue::Resume(const std::string& owner) {
  const auto line = lines_.find(owner);
  if (line == lines_.end()) return;
  line->second.held = false;
  Settle(line);
}

void FairQueue::Settle(Lines::iterator line) {
  Line& it = line->second;
  const bool takes_part = !it.requests.empty() && !it.held;
  if (takes_part && !it.in_turn) turns_.push_back(line);
  if (!takes_part && it.in_turn) {
    const auto turn = std::find(turns_.begin(), turns_.end(), line);
    if (turn == turns_.begin()) credited_ = false;
    turns_.erase(turn);
  }
  if (it.requests.empty()) it.credit = 0;  // who comes back later begins anew
  it.in_turn = takes_part;
  if (it.requests.empty() && !it.held) lines_.erase(line);
}

int64_t FairQueue::TurnsLacking(const Line& line) {
  const int64_t lacking = line.requests.front().cost - line.credit;
  return lacking <= 0 ? 0 : (lacking - 1) / kQuantum + 1;
}

FairQueue::Id FairQueue::Head() {
  if (turns_.empty()) return 0;
  for (;; turns_.splice(turns_.end(), turns_, turns_.begin()), credited_ = false) {
    Line& line = turns_.front()->second;
    if (!std::exchange(credited_, true)) line.credit += kQuantum;
    if (TurnsLacking(line) == 0) return line.requests.front().id;
    // Rounds in which nobody could be served are given at once, however dear the requests are.
    int64_t rounds = std::numeric_limits<int64_t>::max();
    for (const auto& one : turns_) rounds = std::min(rounds, TurnsLacking(one->second));
    for (const auto& one : turns_) one->second.credit += std::max<int64_t>(rounds - 1, 0) * kQuantum;
  }
}

std::list<FairQueue::Id> FairQueue::Firsts() {
  std::list<Id> firsts;
  if (Head() == 0) return firsts;
  for (const auto& line : turns_) firsts.push_back(line->second.requests.front().id);
  return firsts;
}

}  // namespace tilewire::engine

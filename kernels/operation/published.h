// Problems whose results are known to the bit from elsewhere than the server that is asked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/array/shape.h"
#include "kernels/operation/attributes.h"

namespace tilewire {

/// What the operation must give on the operands of a case with these attributes.
struct PublishedAnswer {
  Attributes attributes;
  /// For people, what each value is: "mse", or "element" where the result has several, which are then
  /// numbered. Empty: what differs is not told value by value.
  std::string value;
  std::vector<std::vector<uint8_t>> results;
};

struct PublishedData {
  std::vector<std::vector<uint8_t>> operands;
  std::vector<PublishedAnswer> answers;
};

struct PublishedCase {
  std::string name;  ///< "rmse/f32/4097"
  std::vector<ArraySpec> operands;
  std::function<PublishedData()> data;  ///< made when it is needed
};

}  // namespace tilewire

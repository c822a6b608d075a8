// The client's table: what library, command line and load tester know of each operation beside its
// descriptor. Adding an operation adds a row to operations.cc. No gRPC and no CLI11 here: flags are plain
// data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/cpp/source.h"
#include "kernels/operation/descriptor.h"
#include "kernels/operation/published.h"

namespace tilewire::client {

/// A file or resident array of the command line.
struct Positional {
  std::string_view name;  ///< "A"
  std::string_view help;
};

/// An attribute as flag of the command, and, by the attribute's name, as field of scenario files. How its
/// value is read follows from the attribute's kind: an integer is one of `words`, a real is a number, a list
/// of integers is one of axes such as 1,0 or, with `words`, one of those.
struct Flag {
  std::string_view attribute = {};
  std::string_view names = {};  ///< "--axis,--axes"
  std::string_view help = {};
  std::string_view value = {};  ///< what stands for it in the help, "M"; empty: "WORD", or the kind
  std::vector<std::string_view> words = {};  ///< what 0, 1, … are called
  bool required = false;
  bool positive = false;  ///< a number must be more than 0
};

/// Where the command's result goes, unless it is stored.
enum class Shown : uint8_t {
  kFile,    ///< into the .npy file that is the last positional operand
  kValues,  ///< to stdout, a value a line, or with --out into a file
  kNamed,   ///< to stdout, a line "name value" each result: `result_names`; with --fail-above the program
            ///< fails where one is too large. No --out: they may differ in dtype
};

/// A value that the command makes of a result, number by number, where the result was asked for.
struct Derived {
  std::string_view name;
  std::string_view of;                         ///< the result's name
  double (*make)(double value, double given);  ///< `given`: by OperationInfo::derived_by
};

struct OperationInfo {
  const Descriptor* descriptor;
  int member;  ///< of tilewire.v1.Operation: its number

  // --- command line and scenario files ---
  std::string_view command;  ///< "gaussian-pdf"; also what scenario files and results call it
  std::string_view about;
  std::vector<Positional> operands;  ///< as many as the descriptor's
  std::vector<Flag> flags;           ///< all attributes
  Shown shown = Shown::kFile;
  std::string_view json = {};  ///< what --json calls the values that are shown
  /// kNamed: what the results are called where these attributes were given, all of them.
  std::vector<std::string> (*result_names)(const Attributes& attributes) = nullptr;
  /// kNamed: what follows the results where this flag is given, which is a number and no attribute.
  std::vector<Derived> derived = {};
  Flag derived_by = {};
  /// A study of overlap has square matrices instead of vectors, and these attributes.
  bool study_square = false;
  Attributes study = {};
  /// What `selftest` asks.
  std::vector<PublishedCase> (*published)();

  // --- library ---
  /// What the results are whatever the operands are, with these attributes, all of them; nothing where that
  /// depends. Null: it always does.
  std::optional<std::vector<ArraySpec>> (*results_of_any)(const Attributes& attributes) = nullptr;
  /// For an operand in Fortran order: the same result from its bytes as they are stored, by other attributes.
  /// Null: the bytes are turned around.
  void (*as_stored)(Attributes* attributes, ArraySource* operand) = nullptr;
};

/// All of them, in the order in which people are told of them. They live for ever; thread-safe.
std::span<const OperationInfo> Operations();
/// Null for none of them.
const OperationInfo* FindOperation(const Descriptor& descriptor);
const OperationInfo* FindOperation(std::string_view command);

/// Of the operation with that attribute; null where it has no such flag.
const Flag* FindFlag(const OperationInfo& operation, std::string_view attribute);
/// "a, b or c" with `last` " or ".
std::string Listed(std::span<const std::string> words, std::string_view last = ", ");
/// The commands, listed.
std::vector<std::string> Commands();
std::string CommandNames(std::string_view last = ", ");

}  // namespace tilewire::client

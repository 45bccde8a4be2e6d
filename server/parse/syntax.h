// The tree of a source as it is written, before names and types are checked. The .fuse parser and the
// protobuf reader make it, and the checker reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "library/catalog/type.h"
#include "server/parse/location.h"

namespace fusion {

// Views point into the source, which must outlive the tree. `order` counts statements; a protobuf graph has
// all its declarations before its calls.
struct NameSyntax {
  absl::string_view text;
  Location location;
  int order = 0;
};

struct SizeSyntax {
  NameSyntax name;
  std::optional<int64_t> value;  // as written: may be 0 or negative
  Location value_location;
};

// The type of one or more variables.
struct TypeSyntax {
  std::optional<Type> type;  // absent: wrong, and reported
  std::vector<Location> extents;
  std::optional<Extent> leading_dimension;  // of a matrix
  Location leading_location;
  Location location;
};

struct VariableSyntax {
  NameSyntax name;
  int type = 0;  // position in SyntaxTree::types
};

// This word stands between the name of an input and the bounds of its values.
inline constexpr absl::string_view kRangeWord = "in";

// This word stands between the name of an output and that of the input whose memory it takes.
inline constexpr absl::string_view kIntoWord = "into";

struct NumberSyntax {
  double value = 0;
  Location location;
};

// A source asks this of the values of an input: "in (0.5, 2)", "= spd", or a fusion.v1.InputValues.
struct ValuesSyntax {
  int input = 0;            // position in SyntaxTree::inputs
  absl::string_view word;   // "spd"; kRangeWord; of a message the name of its kind
  Location location;        // of the word
  bool range = false;       // it is written with kRangeWord
  bool enumerated = false;  // it is a message
  std::vector<NumberSyntax> numbers;
  absl::string_view blob;  // of a message
};

struct ArgumentSyntax {
  absl::string_view name;  // empty: the literal
  double literal = 0;
  Location location;
};

struct CallSyntax {
  NameSyntax result;
  std::string function;  // "gemv", "mmul33", "mmul<3,3>"
  Location function_location;
  std::vector<ArgumentSyntax> arguments;
};

// "p2 into p" of a return.
struct InPlaceSyntax {
  int output = 0;  // position in SyntaxTree::outputs
  NameSyntax input;
};

struct SyntaxTree {
  std::vector<SizeSyntax> sizes;
  std::vector<TypeSyntax> types;
  std::vector<VariableSyntax> variables;
  std::vector<NameSyntax> inputs;
  std::vector<ValuesSyntax> values;  // of an input the last one counts
  std::vector<CallSyntax> calls;
  std::vector<NameSyntax> outputs;
  std::vector<InPlaceSyntax> in_place;
  Location return_location;  // or the end of the source, where it is missing
  bool has_return = false;
  bool return_unclear = false;  // a statement that could not be read may have been it
  bool result_unclear = false;  // such a statement computes a variable, but does not say which
  bool complete = true;         // false: reading stopped at a limit

  // Names in statements that could not be read: what they mean is unknown, so nothing is reported about them.
  absl::flat_hash_set<absl::string_view> unclear;
};

}  // namespace fusion

// A location is a place in the source: a position in a text, or a field of a protobuf message.
#pragma once

#include <cstdint>
#include <string>

#include "server/graph/graph.h"

namespace fusion {

// The repeated field of fusion.v1.Graph that a protobuf location lies in.
enum class GraphField : uint8_t { kNone, kSizes, kVariables, kInputs, kCalls, kOutputs, kFunctions };
// The part of that entry.
enum class EntryField : uint8_t { kWhole, kName, kDefaultValue, kType, kResult, kFunction, kArguments };

// A location takes 16 bytes, so that one per token and argument is affordable.
struct Location {
  SourcePosition position;  // text; line 0: a protobuf field
  GraphField field = GraphField::kNone;
  EntryField part = EntryField::kWhole;
  int index = 0;       // in the repeated field
  int part_index = 0;  // kArguments: which; kType: which extent or -1

  static Location At(int line, int column) { return Location{SourcePosition{line, column}}; }
  static Location Field(GraphField field, int index, EntryField part = EntryField::kWhole,
                        int part_index = 0) {
    return Location{SourcePosition{}, field, part, index, part_index};
  }

  // Returns "12:5", "calls[3].arguments[1]", or "" for the source as a whole.
  std::string ToString() const;
  // Returns words for the middle of a sentence: "at line 12", "at calls[3].result".
  std::string InWords() const;
};

}  // namespace fusion

#include "server/parse/location.h"

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

const char* FieldName(GraphField field) {
  switch (field) {
    case GraphField::kSizes:
      return "sizes";
    case GraphField::kVariables:
      return "variables";
    case GraphField::kInputs:
      return "inputs";
    case GraphField::kCalls:
      return "calls";
    case GraphField::kOutputs:
      return "outputs";
    case GraphField::kFunctions:
      return "functions";
    case GraphField::kNone:
      break;
  }
  return "";
}

std::string PartName(const Location& location) {
  switch (location.part) {
    case EntryField::kName:
      return ".name";
    case EntryField::kDefaultValue:
      return ".default_value";
    case EntryField::kType:
      return location.part_index < 0 ? ".type" : absl::StrCat(".type.extents[", location.part_index, "]");
    case EntryField::kResult:
      return ".result";
    case EntryField::kFunction:
      return ".function";
    case EntryField::kArguments:
      return absl::StrCat(".arguments[", location.part_index, "]");
    case EntryField::kWhole:
      break;
  }
  return "";
}

}  // namespace

std::string Location::ToString() const {
  if (position.line > 0) return absl::StrCat(position.line, ":", position.column);
  if (field == GraphField::kNone) return "";
  return absl::StrCat(FieldName(field), "[", index, "]", PartName(*this));
}

std::string Location::InWords() const {
  if (position.line > 0) return absl::StrCat("at line ", position.line);
  return absl::StrCat("at ", ToString());
}

}  // namespace fusion

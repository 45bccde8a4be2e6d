// A source may ask for values of inputs: "x in (0.5, 2)", "A = spd"; README.md has the kinds.
#pragma once

#include <optional>
#include <string>

#include "fusion/v1/graph.pb.h"
#include "library/catalog/type.h"
#include "server/parse/error_list.h"
#include "server/parse/syntax.h"

namespace fusion {

// Returns the values that `written` asks of the input with this name and type, with all bounds filled in.
// Reports what is wrong with the kind, with its numbers, with its fitting the type and with what the data
// type can hold, and gives nullopt then. A null type is not known, and nothing is said of it.
std::optional<v1::InputValues> CheckInputValues(const ValuesSyntax& written, absl::string_view name,
                                                const Type* type, ErrorList* errors);

// Adds what the protobuf form asks, by input, to the values of the tree; of several for an input the last one
// counts. With `files`, FILE is one of the kinds. The map outlives the tree. Reports names that are no
// inputs.
void AddInputValues(const google::protobuf::Map<std::string, v1::InputValues>& values, bool files,
                    SyntaxTree* tree, ErrorList* errors);

// Returns the text behind the name of an input: " in (0.5, 2.0)", " = integers(0, 9)". "" for DEFAULT, and
// for FILE, which the language has no words for.
std::string InputValuesText(const v1::InputValues& values);

}  // namespace fusion

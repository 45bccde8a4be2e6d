// The declared names of a source.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "server/parse/error_list.h"
#include "server/parse/syntax.h"

namespace fusion {

struct Symbol {
  NameSyntax name;  // where it is declared, or first used when it is not
  bool is_size = false;
  bool known = true;         // false: not declared, or in a statement that could not be read
  std::optional<Type> type;  // variables; absent when unknown
  std::optional<Extent> leading_dimension;
  const NameSyntax* input = nullptr;
  v1::InputValues values;  // inputs
  int computed_by = -1;    // position in SyntaxTree::calls
  bool used = false;
  bool value_reported = false;  // reported: it has none, or too late
  bool order_reported = false;  // reported: it is declared too late
  bool returned = false;
  absl::string_view overwritten_by;  // inputs: the output that takes its memory; empty: none
  int value = -1;                    // id in the graph
};

// Sizes and variables share one name space. Not thread safe; the tree must outlive it.
class SymbolTable {
 public:
  // Enters all declarations and reports what is wrong with them: names, duplicates, sizes, types.
  SymbolTable(const SyntaxTree& tree, ErrorList* errors);

  // Returns the position of a variable in symbols(); -1 (reported) for a size and an empty name. A name that
  // is not declared is reported once and entered as unknown. `hint` (how to declare it) goes into that report
  // when no declared name is similar.
  int Use(const NameSyntax& use, absl::string_view hint = "");

  Symbol& operator[](int position) { return symbols_[position]; }
  std::vector<Symbol>& symbols() { return symbols_; }

 private:
  void DeclareSize(const SizeSyntax& size);
  void Declare(const NameSyntax& name, Symbol symbol);
  std::optional<Type> CheckType(const TypeSyntax& type, int order);
  // Reports what is wrong with one extent; returns true when nothing is. `type` is in words, for messages.
  bool CheckExtent(const Extent& extent, const Location& location, int order, const std::string& type,
                   int64_t* constant_bytes);
  int EnterUnknown(const NameSyntax& use);
  std::string Similar(absl::string_view name, bool is_size);

  const SyntaxTree& tree_;
  ErrorList* errors_;
  std::vector<Symbol> symbols_;
  absl::flat_hash_map<absl::string_view, int> positions_;
  absl::flat_hash_set<std::string> reported_sizes_;  // not declared
};

}  // namespace fusion

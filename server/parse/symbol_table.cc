#include "server/parse/symbol_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/similar_name.h"
#include "server/parse/size_limits.h"
#include "server/parse/type_name.h"

namespace fusion {

SymbolTable::SymbolTable(const SyntaxTree& tree, ErrorList* errors) : tree_(tree), errors_(errors) {
  symbols_.reserve(tree.sizes.size() + tree.variables.size());
  positions_.reserve(tree.sizes.size() + tree.variables.size());
  for (const SizeSyntax& size : tree.sizes) DeclareSize(size);
  int last_type = -1;
  std::optional<Type> type;
  for (const VariableSyntax& variable : tree.variables) {
    if (variable.type != last_type) type = CheckType(tree.types[variable.type], variable.name.order);
    last_type = variable.type;
    if (variable.name.text == kElementsSize) {
      errors_->Add(variable.name.location, "elements is the length of mapped lists; choose another name");
      EnterUnknown(variable.name);
      continue;
    }
    Symbol symbol{variable.name};
    symbol.type = type;
    if (type) symbol.leading_dimension = tree.types[variable.type].leading_dimension;
    Declare(variable.name, std::move(symbol));
  }
}

void SymbolTable::DeclareSize(const SizeSyntax& size) {
  if (size.value && (*size.value < 0 || *size.value > kLargestSize)) {
    errors_->Add(size.value_location, absl::StrCat("size ", Shown(size.name.text),
                                                   " must be from 0 to 2^62, but it is ", *size.value));
  }
  Symbol symbol{size.name};
  symbol.is_size = true;
  Declare(size.name, std::move(symbol));
}

void SymbolTable::Declare(const NameSyntax& name, Symbol symbol) {
  std::string bad = BadNameMessage(name.text);
  if (!bad.empty()) {
    errors_->Add(name.location, std::move(bad));
    if (!name.text.empty()) EnterUnknown(name);
    return;
  }
  const auto [it, is_new] = positions_.try_emplace(name.text, static_cast<int>(symbols_.size()));
  if (is_new) {
    symbols_.push_back(std::move(symbol));
    return;
  }
  const Symbol& first = symbols_[it->second];
  errors_->Add(name.location,
               absl::StrCat(Shown(name.text), " is already declared", first.is_size ? " as a size " : " ",
                            first.name.location.InWords()));
}

bool SymbolTable::CheckExtent(const Extent& extent, const Location& location, int order,
                              const std::string& type, int64_t* constant_bytes) {
  const auto fail = [&](std::string message) {
    errors_->Add(location, std::move(message));
    return false;
  };
  if (extent.name.empty()) {
    if (extent.constant < 1 || extent.constant > kLargestSize)
      return fail(absl::StrCat("a size must be from 1 to 2^62, but it is ", extent.constant));
    if (!MultiplyBytes(extent.constant, constant_bytes))
      return fail(absl::StrCat(type, " has more than 2^62 bytes"));
    return true;
  }
  if (extent.name == kElementsSize)
    return fail(
        "elements is the length of mapped lists (SCALAR, VECTORn, MATRIXrxc); give this collection a size "
        "of its own");
  const auto found = positions_.find(extent.name);
  if (found == positions_.end()) {
    if (tree_.unclear.contains(extent.name) || !reported_sizes_.insert(extent.name).second) return false;
    const std::string similar = errors_->MaySuggest() ? Similar(extent.name, /*is_size=*/true) : "";
    return fail(absl::StrCat(
        "size ", Shown(extent.name), " is not declared",
        similar.empty() ? absl::StrCat("; add: size ", Shown(extent.name), ";") : DidYouMean(similar)));
  }
  Symbol& symbol = symbols_[found->second];
  if (!symbol.is_size)
    return symbol.known ? fail(absl::StrCat(Shown(extent.name), " is a variable, not a size")) : false;
  if (symbol.name.order > order && !symbol.order_reported) {
    symbol.order_reported = true;
    errors_->Add(location, absl::StrCat("size ", Shown(extent.name), " is used before its declaration ",
                                        symbol.name.location.InWords(), "; move the declaration up"));
  }
  return true;
}

std::optional<Type> SymbolTable::CheckType(const TypeSyntax& type, int order) {
  if (!type.type) return std::nullopt;
  bool good = true;
  const std::string text = type.type->ToString();
  int64_t bytes = DataTypeBytes(type.type->data_type), bytes_with_padding = bytes;
  for (size_t i = 0; i < type.extents.size(); ++i) {
    const Extent& extent = type.type->extents[i];
    good = CheckExtent(extent, type.extents[i], order, text, &bytes) && good;
    if (i == 0 && extent.name.empty()) MultiplyBytes(extent.constant, &bytes_with_padding);
  }
  if (!good || !type.leading_dimension) return good ? type.type : std::nullopt;
  const Extent& leading = *type.leading_dimension;
  if (!CheckExtent(leading, type.leading_location, order, text, &bytes_with_padding)) return std::nullopt;
  if (const std::string few = FewerThanColumns(leading, type.type->extents[1], {}); !few.empty()) {
    errors_->Add(type.leading_location, few);
    return std::nullopt;
  }
  return type.type;
}

int SymbolTable::Use(const NameSyntax& use, absl::string_view hint) {
  const auto found = positions_.find(use.text);
  if (found != positions_.end()) {
    Symbol& symbol = symbols_[found->second];
    if (symbol.is_size) {
      errors_->Add(use.location, absl::StrCat(Shown(use.text), " is a size, not a variable"));
      return -1;
    }
    if (symbol.known && symbol.name.order > use.order && !symbol.order_reported) {
      symbol.order_reported = true;
      errors_->Add(use.location, absl::StrCat(Shown(use.text), " is used before its declaration ",
                                              symbol.name.location.InWords(), "; move the declaration up"));
    }
    return found->second;
  }
  if (use.text.empty()) {
    errors_->Add(use.location, BadNameMessage(use.text));
    return -1;
  }
  if (!tree_.unclear.contains(use.text)) {
    const std::string similar = errors_->MaySuggest() ? Similar(use.text, /*is_size=*/false) : "";
    errors_->Add(use.location, absl::StrCat(Shown(use.text), " is not declared",
                                            !similar.empty() ? DidYouMean(similar)
                                            : hint.empty()   ? "; declare it with its type"
                                                             : std::string(hint)));
    // Meant is probably the similar one: nothing is said of its being unused or not computed.
    if (!similar.empty())
      symbols_[positions_[similar]].used = symbols_[positions_[similar]].value_reported = true;
  }
  return EnterUnknown(use);
}

int SymbolTable::EnterUnknown(const NameSyntax& use) {
  Symbol symbol{use};
  symbol.known = false;
  const auto [it, is_new] = positions_.try_emplace(use.text, static_cast<int>(symbols_.size()));
  if (is_new) symbols_.push_back(std::move(symbol));
  return it->second;
}

std::string SymbolTable::Similar(absl::string_view name, bool is_size) {
  std::vector<absl::string_view> candidates;
  for (const Symbol& symbol : symbols_)
    if (symbol.known && symbol.is_size == is_size) candidates.push_back(symbol.name.text);
  return SimilarName(name, candidates);
}

}  // namespace fusion

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/similar_name.h"
#include "server/parse/error_list.h"
#include "server/parse/parse.h"
#include "server/parse/size_limits.h"

namespace fusion {
namespace {}  // namespace

std::string FewerThanColumns(const Extent& leading, const Extent& columns, const SizeValues& sizes) {
  const auto value = [&](const Extent& extent) -> std::optional<int64_t> {
    if (extent.name.empty()) return extent.constant;
    const auto found = sizes.find(extent.name);
    return found == sizes.end() ? std::nullopt : std::optional<int64_t>(found->second);
  };
  const auto given = value(leading), least = value(columns);
  if (!given || !least || *given >= *least) return "";
  const auto shown = [](const Extent& extent, int64_t size) {
    return extent.name.empty() ? absl::StrCat(size) : absl::StrCat(Shown(extent.name), " = ", size);
  };
  return absl::StrCat("the leading dimension ", shown(leading, *given), " is less than the columns ",
                      shown(columns, *least));
}

namespace {

void CheckVariables(const Graph& graph, const SizeValues& sizes, ErrorList* errors) {
  for (const Value& value : graph.values()) {
    if (value.literal) continue;
    int64_t bytes = int64_t{value.type.element_entries()} * DataTypeBytes(value.type.data_type);
    bool good = true, empty = false;
    std::vector<Extent> extents = value.type.extents;
    if (value.leading_dimension) {
      if (const std::string few = FewerThanColumns(*value.leading_dimension, extents[1], sizes);
          !few.empty()) {
        errors->Add(Location{value.position}, absl::StrCat(Shown(value.name), ": ", few));
        continue;
      }
      extents[1] = *value.leading_dimension;
    }
    for (const Extent& extent : extents) {
      const int64_t size = extent.Size(sizes);
      empty = empty || size == 0;
      good = good && (size == 0 || MultiplyBytes(size, &bytes));
    }
    if (good || empty) continue;
    errors->Add(Location{value.position}, absl::StrCat(Shown(value.name), " (", DeclaredType(value),
                                                       ") has more than 2^62 bytes at these sizes"));
  }
}

}  // namespace

absl::StatusOr<SizeValues> ResolveSizes(const Graph& graph,
                                        const google::protobuf::Map<std::string, int64_t>& given,
                                        const std::string& file_name) {
  ErrorList errors(file_name);
  SizeValues values;
  std::vector<absl::string_view> names;
  for (const Size& size : graph.sizes()) {
    names.push_back(size.name);
    const auto found = given.find(size.name);
    if (found == given.end() && !size.default_value) {
      errors.Add(Location{},
                 absl::StrCat("size ", Shown(size.name), " has no value; give --size ", Shown(size.name),
                              "=V, or a default in the file: size ", Shown(size.name), " = 1000000;"));
      continue;
    }
    const int64_t value = found == given.end() ? *size.default_value : found->second;
    if (value < 0 || value > kLargestSize) {
      errors.Add(Location{},
                 absl::StrCat("size ", Shown(size.name), " must be from 0 to 2^62, but it is ", value));
    }
    values[size.name] = value;
  }
  const std::map<std::string, int64_t> sorted(given.begin(), given.end());
  for (const auto& [name, value] : sorted) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string similar = errors.MaySuggest() ? SimilarName(name, names) : "";
    std::string all;
    for (absl::string_view known : names) absl::StrAppend(&all, all.empty() ? "" : ", ", known);
    if (all.size() > 200) all = absl::StrCat(all.substr(0, 197), "...");
    errors.Add(Location{},
               absl::StrCat("the graph has no size ", Shown(name), DidYouMean(similar),
                            all.empty() ? "; it has no sizes" : absl::StrCat("; its sizes are ", all)));
  }
  if (errors.empty()) CheckVariables(graph, values, &errors);
  if (!errors.empty()) return errors.ToStatus();
  return values;
}

}  // namespace fusion

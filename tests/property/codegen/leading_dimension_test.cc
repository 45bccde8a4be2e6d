// Matrices whose rows lie further apart than they are long: every structure of kernel that computes a whole
// example gives what the unfused f64 reference gives for the same matrices without padding, reads nothing of
// the padding and leaves it as it is.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/implementation_choice.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/property/codegen/host_execution.h"

namespace fusion::testing {
namespace {

struct LeadingCase {
  std::string example;
  v1::Target target;
  std::vector<LoadPath> paths;  // that must occur
  bool f64 = false;
};

std::string TextOfExample(const LeadingCase& test) {
  const std::string text = ExampleSource(test.example).fuse();
  if (!test.f64) return text;
  return absl::StrReplaceAll(
      text, {{"matrix[", "f64 matrix["}, {"vector[", "f64 vector["}, {"scalar ", "f64 scalar "}});
}

// The example with a leading dimension for each of its matrices, of two sizes in turn: those of one kernel
// need not agree.
std::string WithLeadingDimensions(const LeadingCase& test) {
  const std::string text = TextOfExample(test), precision = test.f64 ? "f64 " : "";
  std::string out = "size lda = 1, ldb = 1;\n";
  int count = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find("matrix[", at),
                 end = begin == std::string::npos ? text.size() : text.find(']', begin);
    out.append(text, at, end - at);
    at = end;
    if (begin == std::string::npos) break;
    // "matrix[m,n] A, B;": one declaration for each, in turn.
    const size_t names = end + 1, stop = text.find(';', end);
    const std::string type = text.substr(begin, end - begin);
    std::string list = text.substr(names, stop - names);
    out.erase(out.size() - type.size());
    for (size_t from = 0; from <= list.size();) {
      const size_t comma = std::min(list.find(',', from), list.size());
      absl::StrAppend(&out, from > 0 ? precision : "", type, ",ld=", count++ % 2 ? "ldb" : "lda", "] ",
                      list.substr(from, comma - from), ";");
      from = comma + 1;
    }
    at = stop + 1;
  }
  return out;
}

// Entries of a matrix from rows `from` apart to rows `to` apart; NaN between.
std::vector<double> Respace(const std::vector<double>& entries, int64_t rows, int64_t columns, int64_t from,
                            int64_t to) {
  std::vector<double> out(rows * to, NAN);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out[i * to + j] = entries[i * from + j];
  return out;
}

class LeadingDimensionTest : public ::testing::TestWithParam<LeadingCase> {};

TEST_P(LeadingDimensionTest, WholeExamplesAgreeWithTheReferenceWithoutPadding) {
  const auto& [example, target, paths, f64] = GetParam();
  auto dense = ParseSource(TextSource(TextOfExample(GetParam())), *Catalog::BuiltIn());
  auto spaced = ParseSource(TextSource(WithLeadingDimensions(GetParam())), *Catalog::BuiltIn());
  ASSERT_TRUE(dense.ok()) << dense.status();
  ASSERT_TRUE(spaced.ok()) << spaced.status() << WithLeadingDimensions(GetParam());
  const Graph& graph = **spaced;
  SizeValues generated;
  for (const Size& size : graph.sizes()) generated[size.name] = 516;
  generated["ldb"] = 520;

  SearchOptions options;
  options.implementation.keep = 1000;
  auto space = SearchFusions(graph, generated, CostModel(DescribedDevice(target)), options);
  ASSERT_TRUE(space.ok()) << space.status();
  std::vector<FusionCode> codes;
  std::vector<std::string> descriptions;
  std::set<std::string> structures;
  std::set<LoadPath> seen_paths;
  for (const FusionImplementation& implementation : space->implementations) {
    if (implementation.fusion.nodes.Size() != graph.node_count()) continue;
    const AnyParameters p = ParametersOf(implementation);
    const testing::StructureTraits s = testing::TraitsOf(implementation);
    const std::string structure =
        absl::StrCat(static_cast<int>(s.load_path), s.one_shot, s.reads_again, s.in_batches, s.keeps_rows,
                     s.atomic, p.vector_width > 1, p.threads_per_row == p.threads, p.rows_per_step > 1);
    if (!structures.insert(structure).second) continue;
    seen_paths.insert(p.load_path);
    auto code = LowerFusion(graph, implementation, {.simt = target == v1::CUDA});
    ASSERT_TRUE(code.ok()) << code.status() << Describe(graph, implementation);
    codes.push_back(*std::move(code));
    descriptions.push_back(Describe(graph, implementation));
  }
  ASSERT_FALSE(codes.empty());
  for (LoadPath path : paths) EXPECT_TRUE(seen_paths.count(path)) << static_cast<int>(path);
  const auto compared = ComparedCodes::Compile(**dense, generated, codes);
  ASSERT_TRUE(compared.ok()) << compared.status();

  // Rows that are neighbours in memory after all, aligned and unaligned ones, and a single column.
  for (const auto& [rows, columns, pad] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{{516, 516, 0},
                                                                                             {516, 516, 4},
                                                                                             {131, 131, 1},
                                                                                             {33, 33, 7},
                                                                                             {1, 1, 5},
                                                                                             {0, 0, 3},
                                                                                             {37, 515, 5},
                                                                                             {260, 9, 3}}) {
    if ((*dense)->sizes().size() == 1 && rows != columns) continue;
    SizeValues sizes = {{"lda", columns + pad}, {"ldb", columns + 2 * pad}};
    for (const Size& size : (*dense)->sizes()) sizes[size.name] = size.name == "m" ? rows : columns;
    Values plain, inputs;
    RandomInputs(**dense, sizes, 11, &plain);
    auto status = (*compared)->RunReference(sizes, (*dense)->outputs(), &plain);
    ASSERT_TRUE(status.ok()) << status;
    std::map<std::string, ValueId> by_name;
    for (const Value& value : (*dense)->values()) by_name[value.name] = value.id;
    const auto padded = [&](const Value& value) {
      const std::vector<double>& entries = plain[by_name.at(value.name).value];
      return value.leading_dimension
                 ? Respace(entries, rows, columns, columns, sizes.at(value.leading_dimension->name))
                 : entries;
    };
    for (ValueId id : graph.inputs()) inputs[id.value] = padded(graph.value(id));
    for (size_t c = 0; c < codes.size(); ++c) {
      Values values = inputs;
      auto run = RunOnHost(graph, sizes, (*compared)->module(), {&codes[c]}, 3, false, graph.inputs(),
                           graph.outputs(), &values);
      ASSERT_TRUE(run.ok()) << run << descriptions[c];
      for (ValueId id : graph.outputs())
        EXPECT_LE(RelativeError(values[id.value], padded(graph.value(id))), f64 ? 1e-10 : 2e-4)
            << graph.value(id).name << " at " << absl::StrJoin(sizes, ",", absl::PairFormatter("=")) << ": "
            << descriptions[c];
    }
  }
}

constexpr LoadPath kDirect = LoadPath::kDirect, kStaged = LoadPath::kStaged, kBulk = LoadPath::kBulk;
INSTANTIATE_TEST_SUITE_P(All, LeadingDimensionTest,
                         ::testing::Values(LeadingCase{"atax", v1::CUDA, {kDirect, kStaged, kBulk}},
                                           LeadingCase{"bicgk", v1::CUDA, {kDirect, kStaged, kBulk}},
                                           LeadingCase{"gemver", v1::CUDA, {kDirect, kStaged}},
                                           LeadingCase{"layer_norm", v1::CUDA, {kDirect, kStaged, kBulk}},
                                           LeadingCase{"softmax", v1::CUDA, {kDirect, kStaged, kBulk}},
                                           LeadingCase{"madd", v1::CUDA, {kDirect, kStaged, kBulk}},
                                           LeadingCase{"sgemvt", v1::CUDA, {kDirect, kStaged}},
                                           LeadingCase{"gesummv", v1::CUDA, {kDirect, kStaged}},
                                           LeadingCase{"rms_norm", v1::CUDA, {kDirect, kStaged}},
                                           LeadingCase{"cg_step", v1::CUDA, {kDirect}},
                                           LeadingCase{"sgemvt", v1::CUDA, {kDirect, kStaged}, true},
                                           LeadingCase{"rms_norm", v1::CUDA, {kDirect, kStaged}, true},
                                           LeadingCase{"softmax", v1::HOST, {kDirect}},
                                           LeadingCase{"madd", v1::HOST, {kDirect}}),
                         [](const auto& info) {
                           return info.param.example + (info.param.f64 ? "_f64" : "") +
                                  (info.param.target == v1::CUDA ? "_cuda" : "_host");
                         });

}  // namespace
}  // namespace fusion::testing

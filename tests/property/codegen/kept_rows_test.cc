// Rows that stay on chip from sweep to sweep: several sweeps over one matrix give what plain sums give,
// however many steps a block makes.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/property/codegen/host_execution.h"

namespace fusion::testing {
namespace {

using Vector = std::vector<double>;
using Named = std::map<std::string, Vector>;

// by' * A, of n x n.
Vector Product(const Vector& A, const Vector& by) {
  const size_t n = by.size();
  Vector sums(n, 0);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) sums[j] += A[i * n + j] * by[i];
  return sums;
}

// u * v'.
Vector Outer(const Vector& u, const Vector& v) {
  Vector product;
  for (double a : u)
    for (double b : v) product.push_back(a * b);
  return product;
}

// The fusions of all nodes as `sweeps` sweeps that keep rows, at sizes of one step and of several, with and
// without a ragged end (three blocks). `compute`: inputs -> outputs. `storages`: how many of shared memory,
// registers and both must occur.
void ExpectPlainSums(const std::string& text, std::shared_ptr<const Catalog> catalog, size_t sweeps,
                     size_t storages, const std::function<Named(const Named&)>& compute) {
  auto parsed = ParseSource(TextSource(text), std::move(catalog));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Graph& graph = **parsed;
  SearchOptions options;
  options.implementation.keep = 1000;
  auto space = SearchFusions(graph, {{"n", 2048}}, CostModel(DescribedDevice(v1::CUDA)), options);
  ASSERT_TRUE(space.ok()) << space.status();

  std::vector<FusionCode> codes;
  std::vector<std::string> descriptions;
  std::map<std::pair<bool, bool>, std::map<bool, int>>
      seen;  // in shared memory, in registers; atomic; two of each kind
  for (const FusionImplementation& implementation : space->implementations) {
    if (implementation.fusion.nodes.Size() != graph.node_count() || SweepsOf(implementation).size() != sweeps)
      continue;
    const KeptRows kept = ParametersOf(SweepsOf(implementation).back()).kept;
    const std::pair storage(kept.shared_rows > 0, kept.register_rows > 0);
    if (!kept.any() || ++seen[storage][ParametersOf(implementation).atomic] > 2) continue;
    auto code = LowerFusion(graph, implementation, {.simt = true});
    ASSERT_TRUE(code.ok()) << code.status() << Describe(graph, implementation);
    codes.push_back(*std::move(code));
    descriptions.push_back(Describe(graph, implementation));
  }
  EXPECT_EQ(seen.size(), storages);
  for (const auto& [storage, kinds] : seen) EXPECT_EQ(kinds.size(), 2u) << storage.first << storage.second;

  std::vector<const FusionCode*> all;
  for (const FusionCode& code : codes) all.push_back(&code);
  auto module = HostModule::Compile(all);
  ASSERT_TRUE(module.ok()) << module.status();
  for (const int64_t n : {3, 40, 131, 192, 517}) {
    const SizeValues sizes = {{"n", n}};
    Values inputs;
    RandomInputs(graph, sizes, 5, &inputs);
    Named named;
    for (ValueId id : graph.inputs()) named[graph.value(id).name] = inputs[id.value];
    const Named expected = compute(named);
    for (size_t c = 0; c < codes.size(); ++c) {
      Values values = inputs;
      auto run =
          RunOnHost(graph, sizes, **module, {&codes[c]}, 3, false, graph.inputs(), graph.outputs(), &values);
      ASSERT_TRUE(run.ok()) << run;
      for (ValueId id : graph.outputs())
        EXPECT_LE(RelativeError(values[id.value], expected.at(graph.value(id).name)), 2e-4)
            << graph.value(id).name << ", n = " << n << ": " << descriptions[c];
    }
  }
}

TEST(KeptRows, ThreeSweepsOverOneMatrixReadTheirOwnRows) {
  // Each needs all of the one before.
  ExpectPlainSums(
      "size n = 2048; matrix[n,n] A; vector[n] x, v, y, w; input A, y; x = gemtv(1.0, A, y); w = gemtv(1.0, "
      "A, x);"
      "v = gemtv(1.0, A, w); return x, w, v;",
      *Catalog::BuiltIn(), 3, 3, [](const Named& in) {
        const Vector x = Product(in.at("A"), in.at("y")), w = Product(in.at("A"), x);
        return Named{{"x", x}, {"w", w}, {"v", Product(in.at("A"), w)}};
      });
}

TEST(KeptRows, AMatrixThatOnlyALaterSweepReadsIsFoundThere) {
  ExpectPlainSums(
      "size n = 2048; matrix[n,n] A, B; vector[n] x, y, u, v, w; input A, y, u, v; x = gemtv(1.0, A, y); B = "
      "ger(A, u, v);"
      "w = gemtv(1.0, B, x); return x, B, w;",
      *Catalog::BuiltIn(), 2, 3, [](const Named& in) {
        Vector B = Outer(in.at("u"), in.at("v"));
        for (size_t i = 0; i < B.size(); ++i) B[i] += in.at("A")[i];
        const Vector x = Product(in.at("A"), in.at("y"));
        return Named{{"x", x}, {"B", B}, {"w", Product(B, x)}};
      });
}

TEST(KeptRows, AMatrixThatIsComputedFromVectorsIsFoundByTheNextSweep) {
  v1::FunctionDefinition outer;
  outer.set_name("outer");
  outer.set_domain("test");
  outer.set_documentation("Outer product.");
  v1::OverloadDefinition* overload = outer.add_overloads();
  overload->set_form(v1::MAP);
  for (const char* name : {"i", "j"}) {
    v1::Dimension* dimension = overload->add_dimensions();
    dimension->set_name(name);
    dimension->set_kind(v1::PARALLEL);
    v1::OperandDefinition* operand = overload->add_operands();
    operand->set_name(absl::StrCat("v_", name));
    operand->set_type(absl::StrCat("vector[", name, "]"));
  }
  overload->set_result("matrix[i,j]");
  overload->set_formula("B = u * v'");
  overload->set_routine("outer_map");
  overload->set_flops("1");
  outer.set_source("template <class T>\nFUSION_FN T outer_map(T u, T v) {\n  return u * v;\n}\n");
  auto catalog = (*Catalog::BuiltIn())->WithInline({outer});
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  // The first sweep reads no matrix, so nothing of its own is staged.
  ExpectPlainSums(
      "size n = 2048; matrix[n,n] B; vector[n] p, q, x, y, w; input p, q, y; B = outer(p, q); x = gemtv(1.0, "
      "B, y);"
      "w = gemtv(1.0, B, x); return B, x, w;",
      *catalog, 2, 1, [](const Named& in) {
        const Vector B = Outer(in.at("p"), in.at("q"));
        const Vector x = Product(B, in.at("y"));
        return Named{{"B", B}, {"x", x}, {"w", Product(B, x)}};
      });
}

}  // namespace
}  // namespace fusion::testing

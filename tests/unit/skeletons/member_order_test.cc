// The order of the nodes of kernels over vectors and rows does not depend on that of statements.
#include "server/skeletons/shared/member_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/search/implementation_choice.h"
#include "server/skeletons/skeletons.h"
#include "server/target/target.h"
#include "tests/any_parameters.h"
#include "tests/unit/search/parsed_text.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr int kTerms = 20;

// `count` statements "pK = make", and their sum by "sK = add(sJ, pK)". `in_turn`: each sum right behind its
// operands; else all terms come first.
std::string SumOfTerms(const std::string& type, const std::string& make, const std::string& add, bool in_turn,
                       int count = kTerms) {
  std::string names, terms, sums, both;
  for (int k = 0; k < count; ++k) {
    const std::string term = absl::StrCat("p", k, " = ", make, ";\n");
    const std::string sum = k == 0 ? ""
                                   : absl::StrCat("s", k, " = ", add, "(",
                                                  k == 1 ? "p0" : absl::StrCat("s", k - 1), ", p", k, ");\n");
    absl::StrAppend(&names, ", p", k, k > 0 ? absl::StrCat(", s", k) : "");
    terms += term;
    sums += sum;
    both += term + sum;
  }
  return absl::StrCat("size m = 4096, n = 4096;\n", type, " x", names, ";\ninput x;\n",
                      in_turn ? both : terms + sums, "return s", count - 1, ";\n");
}

NodeSet AllOf(const Graph& graph) {
  NodeSet nodes;
  for (int node = 0; node < graph.node_count(); ++node) nodes.Add(node);
  return nodes;
}

MemberOrder OrderOf(const Graph& graph) {
  const NodeSet nodes = AllOf(graph);
  return OrderMembers(graph, nodes.Members(), ChooseSkeleton(graph, nodes).roles);
}

std::vector<FusionImplementation> Implement(const Graph& graph) {
  std::string reason;
  return ImplementFusion(graph, AllOf(graph), {{"m", 4096}, {"n", 4096}},
                         CostModel(DescribedDevice(v1::CUDA, "sm_90")), {.keep = 1000}, &reason);
}

// A description's words behind the results.
std::string Words(const std::string& description) { return description.substr(description.find('}')); }

std::vector<std::string> Results(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<std::string> names;
  for (NodeId id : order) names.push_back(graph.value(graph.node(id).result).name);
  return names;
}

TEST(OrderMembers, KeepsFewVectorsWhateverTheOrderOfStatements) {
  const auto first = testing::ParsedText(SumOfTerms("vector[n]", "shift(0.5, x)", "vadd", false)),
             in_turn = testing::ParsedText(SumOfTerms("vector[n]", "shift(0.5, x)", "vadd", true));
  for (const auto& graph : {first, in_turn}) {
    const MemberOrder order = OrderOf(*graph);
    ASSERT_THAT(order.positions, SizeIs(2 * kTerms - 1));
    EXPECT_EQ(order.live, 4) << "x, a sum, a term and the next sum";
    EXPECT_LE(order.lower_bound, 4);
  }
  const auto made = Implement(*first), wanted = Implement(*in_turn);
  ASSERT_FALSE(made.empty());
  ASSERT_EQ(made.size(), wanted.size());
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(made[i].estimate.registers, wanted[i].estimate.registers) << Describe(*first, made[i]);
    EXPECT_EQ(Results(*first, made[i].order), Results(*in_turn, wanted[i].order));
    EXPECT_EQ(Words(Describe(*first, made[i])), Words(Describe(*in_turn, wanted[i])));
  }
}

TEST(OrderMembers, KeepsFewRowsWhateverTheOrderOfStatements) {
  for (bool reduced : {false, true}) {
    for (bool in_turn : {false, true}) {
      std::string text = SumOfTerms("matrix[m,n]", "scale(0.5, x)", "add", in_turn);
      if (reduced) {
        text.replace(text.find("return"), std::string::npos,
                     absl::StrCat("total = rowsum(s", kTerms - 1, ");\nreturn total;\n"));
        text.replace(text.find("input"), 0, "vector[m] total;\n");
      }
      const auto graph = testing::ParsedText(text);
      EXPECT_EQ(OrderOf(*graph).live, 4) << text;
    }
  }
}

// Nodes stay in their phase, behind what they read; roles and phases go with them.
TEST(OrderMembers, RowPanelsKeepTheirPhases) {
  const auto graph = testing::ParsedText(
      "size m = 4096, n = 4096; matrix[m,n] X, A, B, C, D, E, F, S, T, U, Y; vector[m] largest; input X;\n"
      "A = scale(2, X); B = scale(3, X); C = scale(4, X); S = add(A, B); T = add(S, C); largest = "
      "rowmax(T);\n"
      "D = rowsub(X, largest); E = exp(D); F = tanh(D); U = add(E, F); Y = add(U, X); return Y;\n");
  const NodeSet nodes = AllOf(*graph);
  const SkeletonAnswer answer = ChooseSkeleton(*graph, nodes);
  ASSERT_EQ(answer.skeleton, &RowPanelSkeleton());
  const MemberOrder order = OrderMembers(*graph, nodes.Members(), answer.roles);
  const auto made = Implement(*graph);
  ASSERT_FALSE(made.empty());
  for (const FusionImplementation& implementation : made) {
    if (implementation.skeleton != &RowPanelSkeleton()) continue;
    std::map<NodeId, size_t> at;
    for (size_t i = 0; i < implementation.order.size(); ++i) at[implementation.order[i]] = i;
    ASSERT_EQ(at.size(), static_cast<size_t>(graph->node_count()));
    EXPECT_THAT(Results(*graph, implementation.order),
                ElementsAre("A", "B", "S", "C", "T", "largest", "D", "E", "F", "U", "Y"));
    for (int node = 0; node < graph->node_count(); ++node) {
      const size_t position = at.at(NodeId{node});
      EXPECT_EQ(testing::ParametersOf(implementation).roles.phases[position], answer.roles.phases[node]);
      EXPECT_EQ(testing::ParametersOf(implementation).roles.roles[position], answer.roles.roles[node]);
      for (NodeId next : graph->successors(NodeId{node})) EXPECT_LT(position, at.at(next));
    }
  }
  EXPECT_GE(order.live, order.lower_bound);
}

TEST(OrderMembers, SaysWhatIsNotProvedAndTheBound) {
  const auto large = testing::ParsedText(SumOfTerms("vector[n]", "shift(0.5, x)", "vadd", false, 40)),
             small = testing::ParsedText(SumOfTerms("vector[n]", "shift(0.5, x)", "vadd", false, 4));
  const auto made = Implement(*large), proved = Implement(*small);
  ASSERT_FALSE(made.empty() || proved.empty());
  EXPECT_EQ(UnprovedOrderText(*large, made[0]),
            "4 values of an entry are live at once, in the best order found; no order has fewer than 3");
  EXPECT_EQ(UnprovedOrderText(*small, proved[0]), "");
}

// A scalar takes no room, so nothing but its readers says where it stands.
TEST(OrderMembers, ScalarsStandBeforeWhatReadsThem) {
  std::string names, terms, sums;
  for (int k = 0; k < kTerms; ++k) {
    absl::StrAppend(&names, ", p", k, k > 0 ? absl::StrCat(", s", k) : "");
    absl::StrAppend(&terms, "p", k, " = shift(0.5, x);\n");
    if (k > 0)
      absl::StrAppend(&sums, "s", k, " = vadd(", k == 1 ? "p0" : absl::StrCat("s", k - 1), ", p", k, ");\n");
  }
  const auto graph = testing::ParsedText(absl::StrCat("size n = 4096; vector[n] x, u, v, z", names,
                                                      "; scalar a, b, e, d;\ninput x, u, v, a, b;\n",
                                                      "e = mul(a, b);\nz = axpby(e, u, e, v);\n", terms, sums,
                                                      "d = dot(s", kTerms - 1, ", z);\nreturn d;\n"));
  const NodeSet nodes = AllOf(*graph);
  const std::vector<int> members = nodes.Members();
  const SkeletonAnswer answer = ChooseSkeleton(*graph, nodes);
  ASSERT_EQ(answer.skeleton, &VectorSkeleton());
  ASSERT_TRUE(answer.feasible);
  const MemberOrder order = OrderMembers(*graph, members, answer.roles);
  EXPECT_LT(order.live, kTerms) << "not the order of the statements";
  std::map<int, size_t> at;
  for (size_t i = 0; i < order.positions.size(); ++i) at[members[order.positions[i]]] = i;
  for (int node = 0; node < graph->node_count(); ++node)
    for (NodeId next : graph->successors(NodeId{node}))
      EXPECT_LT(at.at(node), at.at(next.value)) << graph->value(graph->node(NodeId{node}).result).name;
}

// Where nothing is gained statements stay as they are written.
TEST(OrderMembers, LeavesAnOrderThatIsAsGoodAsAny) {
  const auto graph = testing::ParsedText(
      "size n = 4096; vector[n] x, y, a, b, c; scalar d; input x, y; a = vadd(x, y); b = scal(2, a); c = "
      "vsub(a, b); "
      "d = dot(c, c); return d;\n");
  EXPECT_THAT(OrderOf(*graph).positions, ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(OrderOf(*graph).proved_optimal);
}

}  // namespace
}  // namespace fusion

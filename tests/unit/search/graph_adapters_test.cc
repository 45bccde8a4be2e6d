// What the search reads from a Graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/search/fusible_sets.h"
#include "server/skeletons/shared/linearize.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

Value Named(const std::string& name, Type type) {
  Value value;
  value.name = name;
  value.type = std::move(type);
  return value;
}

Value Literal(double number) {
  Value value = Named("literal", Type::Scalar(v1::F32));
  value.literal = number;
  return value;
}

Node Call(std::vector<int> operands, int result) {
  Node node;
  for (int operand : operands) node.operands.push_back(ValueId{operand});
  node.result = ValueId{result};
  return node;
}

// q = gemv(alpha, A, p); s = gemtv(alpha, A, r); t = scal(2.0, q); u = scal(2.0, s);  return s, t, u
Graph TwoProducts() {
  const Extent n{"n"};
  const Type matrix = Type::Matrix(v1::F32, n, n), vector = Type::Vector(v1::F32, n),
             scalar = Type::Scalar(v1::F32);
  std::vector<Value> values = {Named("alpha", scalar), Named("A", matrix), Named("p", vector),
                               Named("r", vector),     Named("q", vector), Named("s", vector),
                               Literal(2.0),           Named("t", vector), Named("u", vector)};
  std::vector<Node> nodes = {Call({0, 1, 2}, 4), Call({0, 1, 3}, 5), Call({6, 4}, 7), Call({6, 5}, 8)};
  return Graph("two_products", nullptr, {}, std::move(values), std::move(nodes),
               {ValueId{0}, ValueId{1}, ValueId{2}, ValueId{3}}, {ValueId{5}, ValueId{7}, ValueId{8}});
}

TEST(FusibleSetProblemOf, SharesMatricesButNeitherScalarsNorLiterals) {
  const FusibleSetProblem problem = FusibleSetProblemOf(TwoProducts());
  EXPECT_THAT(problem.successors, ElementsAre(ElementsAre(2), ElementsAre(3), ElementsAre(), ElementsAre()));
  EXPECT_THAT(problem.sharing_groups, ElementsAre(ElementsAre(0, 1)));
  const FusibleSets found = EnumerateFusibleSets(TwoProducts(), {});
  std::vector<std::vector<int>> pairs;
  for (const NodeSet& set : found.sets)
    if (set.Size() == 2) pairs.push_back(set.Members());
  EXPECT_THAT(pairs, UnorderedElementsAre(ElementsAre(0, 1), ElementsAre(0, 2), ElementsAre(1, 3)));
  EXPECT_EQ(found.sets.size(), 4u + 3u + 2u + 1u);
}

int64_t One(const Value&) { return 1; }

TEST(FusionVariablesOf, NumbersNodesAndValuesOfTheFusionAlone) {
  NodeSet nodes;
  nodes.Add(1);
  nodes.Add(3);
  const FusionVariables fusion = FusionVariablesOf(TwoProducts(), nodes, One, /*staged=*/false);
  EXPECT_THAT(fusion.nodes, ElementsAre(NodeId{1}, NodeId{3}));
  EXPECT_THAT(fusion.values, ElementsAre(ValueId{0}, ValueId{1}, ValueId{3}, ValueId{5}, ValueId{8}));
  const std::vector<FusionVariable>& variables = fusion.problem.variables;
  EXPECT_EQ(fusion.problem.node_count, 2);
  EXPECT_EQ(variables[1].producer, -1);  // A, also read by a node outside
  EXPECT_THAT(variables[1].consumers, ElementsAre(0));
  EXPECT_EQ(variables[3].producer, 0);  // s
  EXPECT_THAT(variables[3].consumers, ElementsAre(1));
  for (const FusionVariable& variable : variables) {
    EXPECT_EQ(variable.size, 1);
    EXPECT_FALSE(variable.from_start);
    EXPECT_FALSE(variable.to_end);
  }
}

TEST(FusionVariablesOf, HoldsInputsAndOutputsWhenStaged) {
  NodeSet nodes;
  for (int node : {0, 1, 2}) nodes.Add(node);
  const FusionVariables fusion = FusionVariablesOf(TwoProducts(), nodes, One, /*staged=*/true);
  std::vector<int> from_start, to_end;
  for (size_t i = 0; i < fusion.values.size(); ++i) {
    if (fusion.problem.variables[i].from_start) from_start.push_back(fusion.values[i].value);
    if (fusion.problem.variables[i].to_end) to_end.push_back(fusion.values[i].value);
  }
  EXPECT_THAT(from_start, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(to_end, ElementsAre(5, 7));  // s is an output and read outside, t an output; q stays inside
}

}  // namespace
}  // namespace fusion

#include "server/graph/graph.h"

#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

using testing::ParseText;

std::shared_ptr<const Graph> Diamond() {
  auto graph = ParseText(
      "size n;\nvector[n] x, y, a, b, c;  scalar d;\ninput y, x;\n"
      "a = vadd(x, y);\nb = vmul(a, a);\nc = scal(2.0, a);\nd = dot(b, c);\nreturn d, b;\n");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

std::vector<int> Ids(const std::vector<NodeId>& nodes) {
  std::vector<int> ids;
  for (NodeId node : nodes) ids.push_back(node.value);
  return ids;
}

TEST(Graph, Neighbours) {
  const auto graph = Diamond();
  ASSERT_EQ(graph->node_count(), 4);
  EXPECT_EQ(Ids(graph->successors(NodeId{0})), (std::vector<int>{1, 2}));
  EXPECT_EQ(Ids(graph->successors(NodeId{3})), (std::vector<int>{}));
  EXPECT_EQ(Ids(graph->predecessors(NodeId{1})), (std::vector<int>{0}));  // reads it twice
  EXPECT_EQ(Ids(graph->predecessors(NodeId{3})), (std::vector<int>{1, 2}));
}

TEST(Graph, Values) {
  const auto graph = Diamond();
  EXPECT_EQ(graph->value(graph->inputs()[0]).name, "y");
  EXPECT_EQ(graph->value(graph->outputs()[1]).name, "b");
  for (size_t i = 0; i < graph->values().size(); ++i) {
    const Value& value = graph->values()[i];
    EXPECT_EQ(value.id.value, static_cast<int>(i));
    EXPECT_EQ(value.is_input, value.name == "x" || value.name == "y");
    EXPECT_EQ(value.is_output, value.name == "d" || value.name == "b");
    EXPECT_EQ(value.producer.has_value(), !value.is_input && !value.literal.has_value());
    EXPECT_EQ(value.literal.has_value(), value.name == "2.0");
    if (value.producer) {
      EXPECT_EQ(graph->node(*value.producer).result, value.id);
    }
    if (value.name == "a") {
      EXPECT_EQ(Ids(value.consumers), (std::vector<int>{1, 2}));
    }
    if (value.name == "d") {
      EXPECT_TRUE(value.consumers.empty());
    }
  }
}

TEST(Graph, FloorReadsInputsAndWritesOutputsOnce) {
  EXPECT_EQ(Diamond()->FloorBytes({{"n", 1000}}), 2 * 4000 + 4 + 4000);
  EXPECT_EQ(Diamond()->FloorBytes({{"n", 0}}), 4);
}

}  // namespace
}  // namespace fusion

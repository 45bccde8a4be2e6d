#include "server/graph/in_place.h"

#include <gmock/gmock.h>

#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using testing::ParseText;

class InPlaceTest : public ::testing::Test {
 protected:
  void Parse(const std::string& statements) {
    auto graph = ParseText(
        "size m, n;\nmatrix[m,n] A, B, C, D, E;  vector[m] r, s;  vector[n] x, y, z, w;  scalar a, b;\n" +
        statements);
    ASSERT_TRUE(graph.ok()) << graph.status();
    graph_ = *graph;
  }
  // Says why the nodes that compute these cannot be one kernel.
  std::string WhyNot(const std::vector<std::string>& results) {
    NodeSet nodes;
    for (const Node& node : graph_->nodes())
      if (std::find(results.begin(), results.end(), graph_->value(node.result).name) != results.end())
        nodes.Add(node.id.value);
    EXPECT_EQ(nodes.Size(), static_cast<int>(results.size()));
    return WhyNotInPlace(*graph_, nodes);
  }
  std::shared_ptr<const Graph> graph_;
};

TEST_F(InPlaceTest, ReadersComeBeforeTheWriter) {
  Parse("input x, y;\nz = neg(x);\nw = vadd(x, y);\nreturn z, w into x;\n");
  EXPECT_EQ(graph_->successors(NodeId{0}), std::vector<NodeId>{NodeId{1}});
  EXPECT_EQ(graph_->predecessors(NodeId{1}), std::vector<NodeId>{NodeId{0}});
}

TEST_F(InPlaceTest, VectorsInOneLoop) {
  Parse("input x, y;\nz = neg(x);\nb = dot(x, z);\nw = vadd(x, y);\nreturn z, w into x, b;\n");
  EXPECT_EQ(WhyNot({"z", "w"}), "");
  EXPECT_EQ(WhyNot({"z", "w", "b"}), "");  // nothing in the loop needs b
}

// y is written, and whoever reads x may come later in the loop.
TEST_F(InPlaceTest, AWriterThatDoesNotReadMayComeTooEarly) {
  Parse("input x, y;\nz = neg(x);\nw = square(y);\nreturn z, w into x;\n");
  EXPECT_THAT(WhyNot({"z", "w"}), HasSubstr("which is still needed for z"));
}

TEST_F(InPlaceTest, RowsThatArePassedTwiceAreWrittenInTheEnd) {
  Parse(
      "input A;\nr = rowmax(A);\nB = rowsub(A, r);\nC = exp(B);\ns = rowsum(C);\nD = rowdiv(C, s);\nreturn D "
      "into A;\n");
  EXPECT_EQ(WhyNot({"r", "B", "C", "s", "D"}), "");
  Parse("input A;\nr = rowmax(A);\nC = exp(A);\nB = rowsub(A, r);\nreturn C, B into A;\n");
  EXPECT_THAT(WhyNot({"r", "B", "C"}), HasSubstr("which is still needed for C"));
}

TEST_F(InPlaceTest, OtherLoopsComeBackToEntries) {
  Parse("input A, x;\nB = coladd(A, x);\ny = neg(x);\nreturn B, y into x;\n");
  EXPECT_THAT(WhyNot({"B", "y"}), HasSubstr("the loop is not over its entries alone"));
  EXPECT_EQ(WhyNot({"B"}), "");
  EXPECT_EQ(WhyNot({"y"}), "");
}

}  // namespace
}  // namespace fusion

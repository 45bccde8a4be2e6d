#include "server/graph/reachability.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

// All graphs of `count` nodes whose edges go from lower to higher numbers: bit b of `edges` is the b-th pair
// (i, j).
std::vector<std::vector<int>> Dag(int count, int edges) {
  std::vector<std::vector<int>> successors(count);
  int bit = 0;
  for (int i = 0; i < count; ++i)
    for (int j = i + 1; j < count; ++j, ++bit)
      if (edges >> bit & 1) successors[i].push_back(j);
  return successors;
}

// All paths from `node`, as bit masks of the nodes on them.
void Paths(const std::vector<std::vector<int>>& successors, int node, int mask,
           std::vector<std::vector<int>>* paths) {
  mask |= 1 << node;
  (*paths)[node].push_back(mask);
  for (int next : successors[node]) Paths(successors, next, mask, paths);
}

TEST(Reachability, AgreesWithAllPathsOnAllDagsOfUpToFiveNodes) {
  int sets = 0;
  for (int count = 1; count <= 5; ++count) {
    for (int edges = 0; edges < 1 << (count * (count - 1) / 2); ++edges) {
      const auto successors = Dag(count, edges);
      const Reachability reachability(successors);
      // paths[i][j]: the paths from i to j.
      std::vector<std::vector<std::vector<int>>> paths(count, std::vector<std::vector<int>>(count));
      for (int i = 0; i < count; ++i) Paths(successors, i, 0, &paths[i]);
      for (int i = 0; i < count; ++i) {
        for (int j = 0; j < count; ++j) {
          const bool reaches = i != j && !paths[i][j].empty();
          ASSERT_EQ(reachability.Reaches(i, j), reaches) << count << " " << edges;
          ASSERT_EQ(reachability.descendants(i).Contains(j), reaches);
          ASSERT_EQ(reachability.ancestors(j).Contains(i), reaches);
        }
      }
      for (int members = 0; members < 1 << count; ++members) {
        NodeSet set(count);
        for (int i = 0; i < count; ++i)
          if (members >> i & 1) set.Add(i);
        bool convex = true;
        for (int i = 0; i < count; ++i)
          for (int j = 0; j < count; ++j)
            for (int path : paths[i][j])
              if ((members >> i & 1) && (members >> j & 1) && (path & ~members)) convex = false;
        ASSERT_EQ(reachability.IsConvex(set), convex) << count << " " << edges << " " << members;
        ++sets;
      }
    }
  }
  EXPECT_EQ(sets, 1 * 2 + 2 * 4 + 8 * 8 + 64 * 16 + 1024 * 32);
}

TEST(Reachability, OfAGraph) {
  auto graph = testing::ParseText(
      "SCALAR x, a, b, c, d; input x; a = exp(x); b = neg(a); c = neg(x); d = add(b, c); return d;");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Reachability reachability(**graph);
  EXPECT_EQ(reachability.descendants(0).Members(), (std::vector<int>{1, 3}));
  EXPECT_EQ(reachability.ancestors(3).Members(), (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(reachability.Reaches(0, 0));
}

TEST(Reachability, BeyondOneWord) {
  std::vector<std::vector<int>> chain(200);
  for (int i = 0; i + 1 < 200; ++i) chain[i].push_back(i + 1);
  const Reachability reachability(chain);
  EXPECT_TRUE(reachability.Reaches(0, 199));
  EXPECT_FALSE(reachability.Reaches(199, 0));
  EXPECT_EQ(reachability.descendants(63).Size(), 136);
  NodeSet set(200);
  for (int i = 60; i < 140; ++i) set.Add(i);
  EXPECT_TRUE(reachability.IsConvex(set));
  set.Remove(100);
  EXPECT_FALSE(reachability.IsConvex(set));
}

}  // namespace
}  // namespace fusion

#include "server/search/fusible_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace fusion {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

std::vector<std::vector<int>> Members(const FusibleSets& found) {
  std::vector<std::vector<int>> sets;
  for (const NodeSet& set : found.sets) sets.push_back(set.Members());
  return sets;
}

FusibleSetProblem Chain(int count) {
  FusibleSetProblem problem;
  problem.successors.resize(count);
  for (int node = 0; node + 1 < count; ++node) problem.successors[node] = {node + 1};
  return problem;
}

TEST(EnumerateFusibleSets, OrdersBySizeThenMembers) {
  const FusibleSets found = EnumerateFusibleSets(Chain(3), {});
  EXPECT_THAT(Members(found), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(0, 1),
                                          ElementsAre(1, 2), ElementsAre(0, 1, 2)));
  EXPECT_EQ(found.limit, EnumerationLimit::kNone);
}

// BiCGK: q = A p and s = A' r have nothing in common but A.
TEST(EnumerateFusibleSets, JoinsConsumersOfOneValue) {
  FusibleSetProblem problem;
  problem.successors.resize(2);
  EXPECT_EQ(EnumerateFusibleSets(problem, {}).sets.size(), 2u);
  problem.sharing_groups = {{0, 1}};
  EXPECT_THAT(Members(EnumerateFusibleSets(problem, {})), Contains(ElementsAre(0, 1)));
}

TEST(EnumerateFusibleSets, AllowsSeveralOutputsButNoWayAround) {
  // 0 feeds 1 and 2, and 1 feeds 3, and 2 feeds 3.
  FusibleSetProblem problem;
  problem.successors = {{1, 2}, {3}, {3}, {}};
  const auto sets = Members(EnumerateFusibleSets(problem, {}));
  EXPECT_THAT(sets, Contains(ElementsAre(0, 1, 2)));
  EXPECT_THAT(sets, Contains(ElementsAre(0, 1)));  // 0 is also read outside
  EXPECT_THAT(sets, Not(Contains(ElementsAre(0, 1, 3))));
}

TEST(EnumerateFusibleSets, SaysWhichLimitCutIt) {
  FusibleSetOptions options;
  options.max_nodes = 2;
  FusibleSets found = EnumerateFusibleSets(Chain(4), options);
  EXPECT_EQ(found.sets.size(), 7u);
  EXPECT_EQ(found.limit, EnumerationLimit::kMaxNodes);

  options = {};
  options.max_sets = 6;
  found = EnumerateFusibleSets(Chain(4), options);
  EXPECT_EQ(found.sets.size(), 6u);
  EXPECT_EQ(found.limit, EnumerationLimit::kMaxSets);
  options.max_sets = 10;  // all there are
  EXPECT_EQ(EnumerateFusibleSets(Chain(4), options).limit, EnumerationLimit::kNone);

  options = {};
  options.max_candidates = 5;
  found = EnumerateFusibleSets(Chain(4), options);
  EXPECT_EQ(found.limit, EnumerationLimit::kMaxCandidates);
  EXPECT_GE(found.sets.size(), 4u);

  found = EnumerateFusibleSets(Chain(kMaxReachabilityNodes + 1), {});
  EXPECT_EQ(found.limit, EnumerationLimit::kGraphTooLarge);
  EXPECT_EQ(found.sets.size(), static_cast<size_t>(kMaxReachabilityNodes + 1));
  EXPECT_STREQ(EnumerationLimitName(found.limit), "graph_too_large");
}

TEST(EnumerateFusibleSets, LeavesOutWhatIsRefusedAndAsksOnce) {
  FusibleSetOptions options;
  std::set<std::vector<int>> asked;
  options.may_extend = [&](const NodeSet& set) {
    EXPECT_TRUE(asked.insert(set.Members()).second);
    return !(set.Contains(1) && set.Size() > 1);
  };
  const FusibleSets found = EnumerateFusibleSets(Chain(4), options);
  EXPECT_THAT(Members(found),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3), ElementsAre(2, 3)));
  EXPECT_THAT(asked, Not(Contains(ElementsAre(0, 1, 2))));  // both of its parts were refused
}

// Very many readers of one value, all refused together: bounded by the candidates looked at.
TEST(EnumerateFusibleSets, StopsWhenNothingIsWanted) {
  FusibleSetProblem problem;
  problem.successors.resize(3000);
  problem.sharing_groups.emplace_back();
  for (int node = 0; node < 3000; ++node) problem.sharing_groups[0].push_back(node);
  FusibleSetOptions options;
  options.max_candidates = 100'000;
  options.may_extend = [](const NodeSet& set) { return set.Size() == 1; };
  const FusibleSets found = EnumerateFusibleSets(problem, options);
  EXPECT_EQ(found.limit, EnumerationLimit::kMaxCandidates);
  EXPECT_EQ(found.sets.size(), 3000u);
}

TEST(EnumerateFusibleSets, TakesAGraphWithoutNodes) {
  const FusibleSets found = EnumerateFusibleSets(FusibleSetProblem(), {});
  EXPECT_TRUE(found.sets.empty());
  EXPECT_EQ(found.limit, EnumerationLimit::kNone);
}

NodeSet Range(int first, int end) {
  NodeSet set;
  for (int i = first; i < end; ++i) set.Add(i);
  return set;
}

TEST(GrowFusibleSets, GivesTheWholeChainAndSomeOnTheWay) {
  EXPECT_EQ(GrowFusibleSets(Chain(40), Growth::kLayers, 16, 64, 100, [](const NodeSet&) { return true; }),
            (std::vector<NodeSet>{Range(0, 17), Range(0, 23), Range(0, 31), Range(0, 40)}));
}

TEST(GrowFusibleSets, DividesWhatIsTooLarge) {
  EXPECT_EQ(GrowFusibleSets(Chain(25), Growth::kLayers, 7, 10, 100, [](const NodeSet&) { return true; }),
            (std::vector<NodeSet>{Range(0, 8), Range(0, 10), Range(10, 18), Range(10, 20)}));
  EXPECT_EQ(GrowFusibleSets(Chain(25), Growth::kLayers, 7, 10, 1, [](const NodeSet&) { return true; }).size(),
            2u);  // no other is begun
}

TEST(GrowFusibleSets, LeavesOutWhatMayNotJoinOrWouldCloseAWayAround) {
  EXPECT_EQ(GrowFusibleSets(Chain(6), Growth::kLayers, 1, 64, 100,
                            [](const NodeSet& set) { return !set.Contains(3) || set.Size() == 1; }),
            (std::vector<NodeSet>{Range(0, 2), Range(0, 3), Range(4, 6)}));
  // 0 -> 1 -> 2 and 0 -> 2, where 1 may not join: 2 must not either.
  FusibleSetProblem triangle{.successors = {{1, 2}, {2}, {}}};
  EXPECT_TRUE(GrowFusibleSets(triangle, Growth::kLayers, 1, 64, 100, [](const NodeSet& set) {
                return !set.Contains(1) || set.Size() == 1;
              }).empty());
}

TEST(GrowFusibleSets, FollowsEdgesBeforeSharedValues) {
  // 0 to 3 read the same; 4 = 0 + 1, 5 = 4 + 2, 6 = 5 + 3.
  FusibleSetProblem sums{.successors = {{4}, {4}, {5}, {6}, {5}, {6}, {}}, .sharing_groups = {{0, 1, 2, 3}}};
  const auto set = [](std::vector<int> members) {
    NodeSet nodes;
    for (int node : members) nodes.Add(node);
    return nodes;
  };
  EXPECT_EQ(GrowFusibleSets(sums, Growth::kChains, 2, 3, 1, [](const NodeSet&) { return true; }),
            (std::vector<NodeSet>{set({0, 1, 4})}));
  EXPECT_EQ(GrowFusibleSets(sums, Growth::kLayers, 2, 3, 1, [](const NodeSet&) { return true; }),
            (std::vector<NodeSet>{set({0, 1, 2})}));
}

// n products that read the same value, then the sums of all up to each: statement by statement, or every
// product first. `number`: of a node by its place in the first of these.
FusibleSetProblem SumsOfProducts(int n, const std::vector<int>& number) {
  FusibleSetProblem problem{.successors = std::vector<std::vector<int>>(2 * n - 1), .sharing_groups = {{}}};
  const auto product = [&](int k) { return number[k == 0 ? 0 : 2 * k - 1]; };
  const auto sum = [&](int k) { return number[2 * k]; };  // of the products 0 to k
  for (int k = 0; k < n; ++k) problem.sharing_groups[0].push_back(product(k));
  for (int k = 1; k < n; ++k) {
    problem.successors[product(k)].push_back(sum(k));
    problem.successors[k == 1 ? product(0) : sum(k - 1)].push_back(sum(k));
  }
  return problem;
}

TEST(GrowFusibleSets, ChainsAreTheSameInAnyOrderOfStatements) {
  constexpr int kProducts = 20;
  std::vector<int> in_turn(2 * kProducts - 1), products_first(2 * kProducts - 1);
  for (int k = 0; k < kProducts; ++k) {
    in_turn[k == 0 ? 0 : 2 * k - 1] = k == 0 ? 0 : 2 * k - 1;
    products_first[k == 0 ? 0 : 2 * k - 1] = k;
    if (k == 0) continue;
    in_turn[2 * k] = 2 * k;
    products_first[2 * k] = kProducts + k - 1;
  }
  const auto grow = [&](const std::vector<int>& number) {
    std::vector<std::vector<int>> sets;  // by their numbers in turn
    for (const NodeSet& set : GrowFusibleSets(SumsOfProducts(kProducts, number), Growth::kChains, 2, 8, 100,
                                              [](const NodeSet&) { return true; })) {
      sets.emplace_back();
      for (int place = 0; place < 2 * kProducts - 1; ++place)
        if (set.Contains(number[place])) sets.back().push_back(place);
    }
    return sets;
  };
  EXPECT_EQ(grow(in_turn), grow(products_first));
  // No product is left to one that comes after its sum: whole sums, one after the other.
  std::vector<std::vector<int>> largest;
  for (const std::vector<int>& set : grow(products_first))
    if (set.size() >= 7) largest.push_back(set);
  ASSERT_GE(largest.size(), 3u);
  EXPECT_EQ(largest[0], (std::vector<int>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(ConvexClosure, HoldsWhatLiesBetween) {
  const auto set = [](std::vector<int> members) {
    NodeSet nodes;
    for (int node : members) nodes.Add(node);
    return nodes;
  };
  EXPECT_EQ(ConvexClosure(Chain(6), set({1, 4})), Range(1, 5));
  EXPECT_EQ(ConvexClosure({.successors = {{2}, {2}, {}}}, set({0, 1})), set({0, 1}));
}

}  // namespace
}  // namespace fusion

// Values that one kernel must compute, and values that different kernels must.
#include "server/optimize/hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/optimize/plans.h"
#include "server/skeletons/skeletons.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::FusionHints::Group GroupOf(const std::vector<std::string>& values) {
  v1::FusionHints::Group group;
  for (const std::string& value : values) group.add_values(value);
  return group;
}

class HintsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto checked = CheckSource(testing::ExampleSource("function1"), *Catalog::BuiltIn());
    ASSERT_TRUE(checked.ok()) << checked.status();
    submission_.emplace(*std::move(checked));
  }
  const Graph& graph() const { return *submission_->graph; }
  int Node(const std::string& value) const { return NodeNamed(graph(), value)->value; }
  absl::StatusOr<Plans> Plan(const v1::FusionHints& hints) {
    auto resolved = ResolveHints(graph(), hints);
    if (!resolved.ok()) return resolved.status();
    return PlanCovers(*submission_, CostModel(DescribedDevice(v1::CUDA)), 30, false, *resolved);
  }
  // In each cover, the number of kernels that compute some of the values.
  std::vector<int> KernelsOf(const Plans& plans, const std::vector<std::string>& values) const {
    std::vector<int> counts;
    for (const CoverSolution& cover : plans.covers.covers)
      counts.push_back(
          static_cast<int>(std::count_if(cover.columns.begin(), cover.columns.end(), [&](int column) {
            const NodeSet& nodes = plans.space.implementations[column].fusion.nodes;
            return std::any_of(values.begin(), values.end(),
                               [&](const std::string& v) { return nodes.Contains(Node(v)); });
          })));
    return counts;
  }

  std::optional<Submission> submission_;
};

TEST_F(HintsTest, WithoutThemCoversDiffer) {
  auto plans = Plan({});
  ASSERT_TRUE(plans.ok()) << plans.status();
  const std::vector<int> counts = KernelsOf(*plans, {"M1", "F"});
  EXPECT_TRUE(std::count(counts.begin(), counts.end(), 1) > 0 &&
              std::count(counts.begin(), counts.end(), 2) > 0);
}

TEST_F(HintsTest, TogetherIsOneKernelInEveryCover) {
  v1::FusionHints hints;
  *hints.add_together() = GroupOf({"M1", "v1"});
  auto plans = Plan(hints);
  ASSERT_TRUE(plans.ok()) << plans.status();
  ASSERT_GT(plans->covers.covers.size(), 1u);
  for (int kernels : KernelsOf(*plans, {"M1", "v1"})) EXPECT_EQ(kernels, 1);
}

TEST_F(HintsTest, ApartIsAKernelEachInEveryCover) {
  v1::FusionHints hints;
  *hints.add_apart() = GroupOf({"M1", "v1", "F"});
  auto plans = Plan(hints);
  ASSERT_TRUE(plans.ok()) << plans.status();
  ASSERT_GT(plans->covers.covers.size(), 1u);
  for (int kernels : KernelsOf(*plans, {"M1", "v1", "F"})) EXPECT_EQ(kernels, 3);
}

TEST_F(HintsTest, BothAtOnce) {
  v1::FusionHints hints;
  *hints.add_together() = GroupOf({"M2", "M3"});
  *hints.add_apart() = GroupOf({"M1", "v1"});
  auto plans = Plan(hints);
  ASSERT_TRUE(plans.ok()) << plans.status();
  for (int kernels : KernelsOf(*plans, {"M2", "M3"})) EXPECT_EQ(kernels, 1);
  for (int kernels : KernelsOf(*plans, {"M1", "v1"})) EXPECT_EQ(kernels, 2);
}

TEST_F(HintsTest, ErrorsNameTheFieldAndTheValue) {
  const struct {
    std::vector<std::string> together, apart;
    std::string message;
  } cases[] = {{{"M1", "Q"}, {}, "the graph has no value Q"},
               {{}, {"A", "M1"}, "A is an input"},
               {{"M1"}, {}, "names 1 value (M1)"},
               {{}, {"M1", "M1"}, "two or more different ones"},
               {{"M1", "v1"}, {"v1", "M1"}, "hints"}};
  for (const auto& c : cases) {
    v1::FusionHints hints;
    if (!c.together.empty()) *hints.add_together() = GroupOf(c.together);
    if (!c.apart.empty()) *hints.add_apart() = GroupOf(c.apart);
    const auto plans = Plan(hints);
    EXPECT_TRUE(absl::IsInvalidArgument(plans.status())) << c.message << ": " << plans.status();
    EXPECT_THAT(std::string(plans.status().message()), HasSubstr(c.message));
  }
}

TEST_F(HintsTest, ValuesThatNoKernelComputesTogetherAreAnErrorThatSaysWhereToAsk) {
  auto checked = CheckSource(
      testing::TextSource(
          "size n = 1000; vector[n] a, b, c, d; input a, b; c = exp(a); d = exp(b); return c, d;"),
      *Catalog::BuiltIn());
  ASSERT_TRUE(checked.ok()) << checked.status();
  submission_.emplace(*std::move(checked));
  v1::FusionHints hints;
  *hints.add_together() = GroupOf({"c", "d"});
  EXPECT_THAT(std::string(Plan(hints).status().message()),
              HasSubstr("no kernel computes c, d together; explain --why c,d says why"));
}

TEST_F(HintsTest, AKernelIsMadeAsAskedFor) {
  v1::FusionHints hints;
  auto* wanted = hints.add_implementations();
  wanted->set_value("F");
  wanted->set_text("element T256 E64 staged");
  auto plans = Plan(hints);
  ASSERT_TRUE(plans.ok()) << plans.status();
  int others = 0;
  std::set<size_t> sizes;
  for (const CoverSolution& cover : plans->covers.covers)
    for (int column : cover.columns) {
      const FusionImplementation& kernel = plans->space.implementations[column];
      if (kernel.fusion.nodes.Contains(Node("F"))) {
        EXPECT_THAT(Describe(graph(), kernel), HasSubstr("element T256 E64 staged"));
        sizes.insert(kernel.order.size());
      } else {
        others += Describe(graph(), kernel).find("element T256 E64 staged") == std::string::npos;
      }
    }
  EXPECT_GT(others, 0);
  EXPECT_GT(sizes.size(), 1u);  // of several fusions
  // The baseline is not bound.
  const int last = plans->space.unfused[Node("F")];
  EXPECT_THAT(Describe(graph(), plans->space.implementations[last]), Not(HasSubstr("T256 E64 staged")));
}

TEST_F(HintsTest, AKernelThatThereIsNotIsAnError) {
  v1::FusionHints hints;
  auto* wanted = hints.add_implementations();
  wanted->set_value("F");
  wanted->set_text("row_panel");
  EXPECT_THAT(std::string(Plan(hints).status().message()),
              HasSubstr("no kernel that computes F is described by \"row_panel\""));
  wanted->set_text("");
  EXPECT_THAT(std::string(Plan(hints).status().message()),
              HasSubstr("says nothing of the kernel that computes F"));
  wanted->set_value("A");
  EXPECT_THAT(std::string(Plan(hints).status().message()), HasSubstr("A is an input"));
}

TEST_F(HintsTest, AWordThatIsOnlyBegunIsAnErrorThatListsTheWords) {
  v1::FusionHints hints;
  auto* wanted = hints.add_implementations();
  wanted->set_value("F");
  for (const char* text : {"T25", "element T256 E6", "lement", "F"}) {
    wanted->set_text(text);
    const auto plans = Plan(hints);
    ASSERT_TRUE(absl::IsInvalidArgument(plans.status())) << text << ": " << plans.status();
    EXPECT_THAT(std::string(plans.status().message()),
                HasSubstr(absl::StrCat("no kernel that computes F is described by \"", text,
                                       "\"; words of those that there are: B2, B3, ")));
    EXPECT_THAT(std::string(plans.status().message()),
                HasSubstr(", E64, E128, E256, T64, T128, T256, element, "));
  }
  wanted->set_text(" ");
  EXPECT_THAT(std::string(Plan(hints).status().message()),
              HasSubstr("says nothing of the kernel that computes F"));
}

TEST(IsDescribedBy, WholeWordsInTheirOrder) {
  const std::string one = "{M1 v1} element T256 E64 staged [mmul_tile,thread]";
  for (const char* text :
       {"T256", "element T256 E64 staged", "T256 staged", "{M1 v1}", "{ M1  v1 } E64", "mmul_tile",
        "[mmul_tile,thread]", "  T256 ", "{M1 v1} element T256 E64 staged [mmul_tile,thread]"})
    EXPECT_TRUE(IsDescribedBy(one, text)) << text;
  for (const char* text :
       {"T25", "T2566", "256", "E64 T256", "T256 T256", "M1", "{M1}", "{M1", "tile", "t256"})
    EXPECT_FALSE(IsDescribedBy(one, text)) << text;
  const std::string two = "cooperative ({q B1} row_panel T256 C5 atomic | {w} row_panel T256 C20 L2 40%)";
  for (const char* text :
       {"atomic", "cooperative", "C5 atomic", "L2 40%", "T256 T256", "{w} row_panel", two.c_str()})
    EXPECT_TRUE(IsDescribedBy(two, text)) << text;
  for (const char* text : {"B1", "L2 4", "40", "C2"}) EXPECT_FALSE(IsDescribedBy(two, text)) << text;
}

TEST(WordsOf, AreListedOnceByNumber) {
  EXPECT_EQ(WordsOf({"cooperative ({q B1} row_panel T256 cluster 2 C20 atomic | {w} row_panel T1024 C5)",
                     "{w} row_panel T256 L2 40%"}),
            "C5, C20, L2 40%, T256, T1024, atomic, cluster 2, cooperative, row_panel");
}

TEST_F(HintsTest, ThoseThatContradictEachOtherNameTheValue) {
  v1::FusionHints hints;
  *hints.add_together() = GroupOf({"M1", "v1"});
  *hints.add_apart() = GroupOf({"M1", "v1"});
  const absl::Status status = Plan(hints).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("contradict each other: no kernel that computes M1"));
}

}  // namespace
}  // namespace fusion

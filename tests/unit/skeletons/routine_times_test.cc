#include "server/skeletons/element/routine_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/unit/search/parsed_text.h"

namespace fusion {
namespace {

using testing::ParsedText;

v1::RoutineTable Table(const std::string& routine, int threads, int elements, double alone, double together) {
  v1::RoutineTable table;
  table.set_version(kRoutineTableVersion);
  table.set_routine(routine);
  for (int resident : {1, 32}) {
    v1::RoutineTable::Point* point = table.add_points();
    point->set_threads(threads);
    point->set_elements(elements);
    point->set_resident_blocks(resident);
    point->set_seconds(resident == 1 ? alone : together);
  }
  return table;
}

TEST(RoutineTimes, SourcesAreEachFunctionAndEachListOnce) {
  const auto graph = ParsedText(
      "MATRIX3x3 A, B, C, D, E;\nSCALAR s;\nscalar a;\ninput A, B, a;\n"
      "C = mmul(A, B);\nE = smmul(B, a);\nD = mmul(C, E);\ns = mtrace(D);\nreturn s;\n");
  std::vector<std::string> functions, transfers;
  for (const RoutineSource& source : RoutineSourcesOf(*graph)) {
    (source.transfers ? transfers : functions).push_back(source.text);
    EXPECT_EQ(ParsedText(source.text)->node_count(), 1);
  }
  EXPECT_EQ(functions.size(), 3u);  // mmul, smmul, mtrace
  EXPECT_EQ(transfers.size(), 2u);  // MATRIX3x3, SCALAR
}

TEST(RoutineTimes, KernelsAreOfEachWayAndTile) {
  const auto graph = ParsedText("MATRIX4x4 A, B, C;\ninput A, B;\nC = mmul(A, B);\nreturn C;\n");
  const CostModel model(DescribedDevice(v1::CUDA));
  std::set<std::string> routines;
  for (const RoutineKernel& kernel : RoutineKernels(*graph, {{kElementsSize, 4096}}, model, false)) {
    routines.insert(kernel.routine);
    EXPECT_GT(testing::ParametersOf(kernel.implementation).blocks_per_multiprocessor, 0);
  }
  EXPECT_EQ(routines,
            (std::set<std::string>{"mmul_thread<f32,4,4,4> registers", "mmul_thread<f32,4,4,4> shared",
                                   "mmul_tile<f32,4,4,4> shared", "mmul_entry<f32,4,4,4> shared",
                                   "mmul_row<f32,4,4,4> shared", "mmul_quad<f32,4,4,4> shared"}));
}

// Equation 4.4 of Fousek 2010 on a table made by hand: a kernel of one thread an element, operands in
// registers.
TEST(RoutineTimes, TermsAreThoseOfTheRoutines) {
  const auto graph = ParsedText("MATRIX2x2 A, B, C;\ninput A, B;\nC = madd(A, B);\nreturn C;\n");
  DeviceDescription device = DescribedDevice(v1::CUDA);
  const SizeValues sizes = {{kElementsSize, int64_t{device.multiprocessors()} * 64 * 32 * 10}};
  RoutineTables tables;
  ASSERT_TRUE(tables.Add(Table("load f32[4] registers", 64, 64, 1e-6, 8e-6)).ok());
  ASSERT_TRUE(tables.Add(Table("store f32[4] registers", 64, 64, 0.5e-6, 4e-6)).ok());
  std::string missing;
  FusionImplementation kernel;
  {
    const CostModel model(device);
    NodeSet nodes;
    nodes.Add(0);
    bool found = false;
    for (const FusionImplementation& implementation :
         ImplementFusion(*graph, nodes, sizes, model, {.keep = 1000}, &missing))
      if (testing::ParametersOf(implementation).load_path == LoadPath::kDirect &&
          testing::ParametersOf(implementation).threads == 64 && !ReadsInPlace(implementation)) {
        kernel = implementation;
        found = true;
        EXPECT_FALSE(implementation.estimate.measured_routines);
        EXPECT_EQ(implementation.estimate.missing_routine, "");
      }
    ASSERT_TRUE(found);
  }
  {
    const CostModel model(device, 0, {}, tables);
    EXPECT_FALSE(RoutineSecondsOf(*graph, model, kernel, 32, 10.0 * 32 * device.multiprocessors(), &missing)
                     .has_value());
    EXPECT_EQ(missing, "madd_thread<f32,2,2> registers");
    // What is printed says so, where there are tables at all.
    NodeSet nodes;
    nodes.Add(0);
    int said = 0;
    std::string reason;
    for (const FusionImplementation& implementation :
         ImplementFusion(*graph, nodes, sizes, model, {.keep = 1000}, &reason)) {
      if (testing::ParametersOf(implementation).load_path != LoadPath::kDirect ||
          ReadsInPlace(implementation))
        continue;
      EXPECT_EQ(implementation.estimate.missing_routine, "madd_thread<f32,2,2> registers");
      EXPECT_NE(implementation.estimate.ToString().find("no measured time of madd_thread<f32,2,2> registers"),
                std::string::npos);
      ++said;
    }
    EXPECT_GT(said, 0);
  }
  ASSERT_TRUE(tables.Add(Table("madd_thread<f32,2,2> registers", 64, 64, 0.1e-6, 2e-6)).ok());
  const CostModel model(device, 0, {}, tables);
  const double tiles = 10.0 * 32 * device.multiprocessors();
  const auto seconds = RoutineSecondsOf(*graph, model, kernel, 32, tiles, &missing);
  ASSERT_TRUE(seconds.has_value()) << missing;
  // Two loads are under way together: what transfers take adds up, the wait for memory does not.
  const double transfer = 64 * 16.0 * 32 * device.multiprocessors() / device.copy_bytes_per_second();
  ASSERT_LT(transfer, 8e-6);
  EXPECT_NEAR(seconds->memory, 10 * (2 * transfer + (8e-6 - transfer) + 4e-6), 1e-12);
  EXPECT_NEAR(seconds->compute, 10 * 2e-6, 1e-12);
  const double alone = 64 * 16.0 * device.multiprocessors() / device.copy_bytes_per_second();
  EXPECT_NEAR(seconds->alone, 10 * (2 * alone + (1e-6 - alone) + 0.5e-6 + 0.1e-6), 1e-12);
  // Fewer tiles than fit at once: as many blocks share a multiprocessor as there are for it.
  const auto few = RoutineSecondsOf(*graph, model, kernel, 32, device.multiprocessors(), &missing);
  ASSERT_TRUE(few.has_value());
  EXPECT_NEAR(few->compute, 0.1e-6, 1e-12);
  // Nothing is beyond the table, which begins at one block of 64 threads.
  EXPECT_FALSE(seconds->extended);
  EXPECT_FALSE(few->extended);
  // Blocks of fewer threads: the table has no such times, and those of 64 threads stand for them.
  FusionImplementation narrow = kernel;
  auto& parameters = narrow.As<ElementParameters>();
  parameters.threads = parameters.elements_per_block = 32;
  const auto clamped = RoutineSecondsOf(*graph, model, narrow, 1, device.multiprocessors(), &missing);
  ASSERT_TRUE(clamped.has_value()) << missing;
  EXPECT_TRUE(clamped->extended);

  NodeSet nodes;
  nodes.Add(0);
  for (const FusionImplementation& implementation :
       ImplementFusion(*graph, nodes, sizes, model, {.keep = 1000}, &missing)) {
    if (testing::ParametersOf(implementation).load_path != LoadPath::kDirect) continue;
    if (ReadsInPlace(implementation)) {  // tables have none of these
      EXPECT_FALSE(implementation.estimate.measured_routines) << Describe(*graph, implementation);
      continue;
    }
    EXPECT_TRUE(implementation.estimate.measured_routines) << Describe(*graph, implementation);
    EXPECT_NE(implementation.estimate.ToString().find("measured routines"), std::string::npos);
    EXPECT_GE(implementation.estimate.total_seconds, implementation.estimate.alone_seconds);
  }
}

}  // namespace
}  // namespace fusion

// Corrections of predicted times see these features of a kernel (residual.h). Each skeleton sets those that
// it has.
#pragma once

#include <array>

namespace fusion {

// Names of the features, and what each says, for people: "bulk copies". What was learned is stored by their
// positions: a new one goes to the end.
#define FUSION_RESIDUAL_FEATURES(FEATURE)                                                     \
  FEATURE(kEveryKernel, "every kernel")                                                       \
  FEATURE(kRowPanels, "row panels")                                                           \
  FEATURE(kCooperativeKernels, "cooperative")                                                 \
  FEATURE(kStagedCopies, "staged copies")                                                     \
  FEATURE(kBulkCopies, "bulk copies")                                                         \
  FEATURE(kOneTileABlock, "one tile a block")                                                 \
  FEATURE(kRowsTogether, "rows together in registers")                                        \
  FEATURE(kRowsReadAgain, "rows read again")                                                  \
  FEATURE(kRowsKept, "rows kept on chip")                                                     \
  FEATURE(kAtomicSums, "atomic sums")                                                         \
  FEATURE(kClusters, "clusters")                                                              \
  FEATURE(kSingleEntries, "single entries a load")                                            \
  FEATURE(kComputation, "computation")                                                        \
  FEATURE(kBarriers, "barriers")                                                              \
  FEATURE(kLaunches, "launches")                                                              \
  FEATURE(kLowOccupancy, "low occupancy")                                                     \
  FEATURE(kColumnsHeld, "columns held")                                                       \
  FEATURE(kThreadsABlock, "threads a block")                                                  \
  FEATURE(kRowsAStep, "rows a step")                                                          \
  FEATURE(kStages, "stages")                                                                  \
  FEATURE(kRegisters, "registers")                                                            \
  FEATURE(kVectorsAThread, "vectors a thread")                                                \
  FEATURE(kShortKernels, "short kernels")                                                     \
  FEATURE(kChunksARow, "chunks a row")                                                        \
  FEATURE(kSharedMemory, "shared memory")                                                     \
  FEATURE(kBulkOfSingleEntries, "bulk copies of single entries")                              \
  FEATURE(kTogetherOfSingleEntries, "rows of single entries together in registers")           \
  FEATURE(kBulkOfSeveralRows, "bulk copies of several rows")                                  \
  /* Issuing instructions adds this to waiting for memory, by what overlaps the two. */       \
  FEATURE(kIssueOfVectors, "instructions: vectors")                                           \
  FEATURE(kIssueOfOneTile, "instructions: rows, one tile a block")                            \
  FEATURE(kIssueOfPersistent, "instructions: rows, persistent")                               \
  FEATURE(kIssueOfStaged, "instructions: staged rows")                                        \
  FEATURE(kIssueOfBulk, "instructions: bulk rows")                                            \
  FEATURE(kIssueOfTogether, "instructions: rows together in registers")                       \
  FEATURE(kIssueOfReadAgain, "instructions: rows read again")                                 \
  FEATURE(kIssueOfFewWarps, "instructions: few warps")                                        \
  /* Memory is kept busy less than it could be. */                                            \
  FEATURE(kLittleUnderWay, "little under way")                                                \
  FEATURE(kLittleUnderWayBulk, "little under way: bulk")                                      \
  FEATURE(kLittleUnderWayTogether, "little under way: together in registers")                 \
  FEATURE(kFewLoads, "few loads under way")                                                   \
  FEATURE(kFewLoadsOfSingleEntries, "few loads of single entries under way")                  \
  FEATURE(kLastWave, "the last wave")                                                         \
  FEATURE(kFewWaves, "few waves")                                                             \
  /* Structures of single entries, and bounds of registers. */                                \
  FEATURE(kOneTileOfSingleEntries, "one tile a block of single entries")                      \
  FEATURE(kStagedOfSingleEntries, "staged copies of single entries")                          \
  FEATURE(kChunksOfSingleEntries, "chunks of single entries")                                 \
  FEATURE(kRegistersBounded, "registers bounded")                                             \
  FEATURE(kRegistersOfBounded, "registers bounded: registers")                                \
  FEATURE(kOneWarpARow, "one warp a row")                                                     \
  FEATURE(kPartialResults, "partial results")                                                 \
  FEATURE(kThreadsOfBulk, "bulk copies: threads")                                             \
  FEATURE(kThreadsOfBulkOfSingleEntries, "bulk copies of single entries: threads")            \
  FEATURE(kBulkOfSeveralRowsOfSingleEntries, "bulk copies of several rows of single entries") \
  FEATURE(kVectorsInOneBlock, "vectors in one block")                                         \
  FEATURE(kShareKeptInL2, "share kept in L2")                                                 \
  /* Kernels over elements have these alone: their errors are of another kind. */             \
  FEATURE(kEveryElementKernel, "every element kernel")                                        \
  FEATURE(kElementsStaged, "elements: staged")                                                \
  FEATURE(kElementsOneTile, "elements: one tile a block")                                     \
  FEATURE(kElementsSeveralThreads, "elements: several threads each")                          \
  FEATURE(kElementsComputation, "elements: computation")                                      \
  FEATURE(kElementsLaunches, "elements: launches")                                            \
  FEATURE(kElementsLowOccupancy, "elements: low occupancy")                                   \
  FEATURE(kElementsThreads, "elements: threads a block")                                      \
  FEATURE(kElementsRegisters, "elements: registers")                                          \
  FEATURE(kElementsShort, "elements: short kernels")                                          \
  FEATURE(kElementsTile, "elements: tile")                                                    \
  FEATURE(kElementsSharedMemory, "elements: shared memory")                                   \
  FEATURE(kElementsMeasuredRoutines, "elements: measured routines")                           \
  FEATURE(kElementsOneAfterTheOther, "elements: one after the other")                         \
  FEATURE(kElementsExchanged, "elements: exchanged")

enum ResidualFeature : int {
#define FUSION_FEATURE_NAME(name, text) name,
  FUSION_RESIDUAL_FEATURES(FUSION_FEATURE_NAME)
#undef FUSION_FEATURE_NAME
      kResidualFeatures
};

// Most features are shares or choices, 0 to 1.
using ResidualFeatures = std::array<double, kResidualFeatures>;

inline constexpr std::array<const char*, kResidualFeatures> kResidualFeatureNames = {
#define FUSION_FEATURE_TEXT(name, text) text,
    FUSION_RESIDUAL_FEATURES(FUSION_FEATURE_TEXT)
#undef FUSION_FEATURE_TEXT
};

// All kernels, or all over elements, have this feature alike.
constexpr bool IsConstantFeature(int feature) {
  return feature == kEveryKernel || feature == kEveryElementKernel;
}

}  // namespace fusion

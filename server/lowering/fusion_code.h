// Lowering a fusion implementation gives this: kernels in IR, and how to launch them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/graph/graph.h"
#include "server/lowering/kernel_ir.h"
#include "server/plan/plan.h"

namespace fusion {

struct KernelArgument {
  enum class Kind {
    kPointer,    // address of a value in device memory
    kScalar,     // an input scalar, by value
    kSize,       // a named size, as a 64-bit integer
    kWorkspace,  // address of workspace slot `index`
    kGroups,     // number of groups (grid * groups per block) of launch `index`, as a 64-bit integer
  };
  Kind kind = Kind::kPointer;
  ValueId value;
  std::string size;
  int index = 0;
  std::string c_type;  // type of the kernel parameter
  std::string name;
  bool is_output = false;  // kPointer: the kernel writes it
};

// blocks = ceil(product of extents / items_per_block), at least 1; at most multiprocessors *
// blocks_per_multiprocessor unless that is 0, and never more than a grid can have.
struct GridRule {
  std::vector<Extent> extents;  // empty: one block
  int64_t items_per_block = 1;
  int blocks_per_multiprocessor = 1;
  int groups_per_block = 1;
  int cluster_blocks = 1;  // if more than one, the rule above counts clusters of so many blocks
  // If more than zero, the rule above counts groups of blocks next to each other: one block for each
  // `part_entries` of `parts` (at least one such part).
  int64_t part_entries = 0;
  Extent parts{.constant = 1};
};
int64_t ExtentValue(const Extent& extent, const SizeValues& sizes);
inline constexpr int64_t kMaxGridBlocks = 2147483647;  // CUDA's limit of gridDim.x
int64_t GridBlocks(const GridRule& rule, const SizeValues& sizes, int multiprocessors);
// Returns the number of groups of lanes in such a grid.
int64_t GridGroups(const GridRule& rule, const SizeValues& sizes, int multiprocessors);

// bytes = fixed + per_entry * extent (if any).
struct SharedRule {
  int64_t fixed_bytes = 0;
  int64_t bytes_per_entry = 0;
  Extent extent{.constant = 0};
};
int64_t SharedBytes(const std::vector<SharedRule>& rules, const SizeValues& sizes);  // returns the largest

// Partial results between the kernels of one fusion: bytes = entry_bytes * groups of `launch` * extent, or,
// where all groups add to the same entries, without the groups; rows have one for each part of the columns.
struct WorkspaceSlot {
  std::string name;
  int entry_bytes = 4;
  int launch = 0;
  Extent extent{.constant = 1};
  bool per_group = true;
  // There is one for each part that the launch's grid has (GridRule::part_entries), not for each group.
  bool per_part = false;
};
int64_t WorkspaceBytes(const WorkspaceSlot& slot, const std::vector<GridRule>& grids, const SizeValues& sizes,
                       int multiprocessors);

// The host must find that all of these conditions hold before it may launch the kernel that has no guards:
// all lanes have whole, aligned vectors then.
struct WholeCondition {
  struct OfSize {
    enum class Kind { kEquals, kAtLeast, kMultiple };  // kMultiple: and above zero
    Extent extent;
    Kind kind = Kind::kEquals;
    int64_t number = 0;
    friend bool operator==(const OfSize&, const OfSize&) = default;
  };
  std::vector<OfSize> sizes;
  std::vector<ValueId> aligned;  // their addresses are multiples of 16
  bool exact = true;             // if false, some blocks or sections may do without guards where a size fails
};

struct KernelLaunch {
  ir::Kernel kernel;
  std::vector<KernelArgument> arguments;  // in the order of kernel.parameters
  GridRule grid;
  std::vector<SharedRule> shared;  // one for each section; the largest counts
  // This is set if the launch chooses between two kernels (kernel_versions.h).
  std::optional<WholeCondition> whole;
};

// The code of one fusion implementation: usually one kernel; two when reductions over the whole grid are
// finished and the launch is not cooperative.
struct FusionCode {
  std::vector<KernelLaunch> launches;
  std::vector<WorkspaceSlot> workspace;
  std::vector<const ElementaryFunction*> functions;  // the code uses their routines; sorted by name
  // Largest values of extents that the code was specialised for.
  struct ExtentLimit {
    Extent extent;
    int64_t limit = 0;
  };
  std::vector<ExtentLimit> limits;
  int64_t kept_bytes = 0;  // bytes of rows that a sweep leaves in shared memory for the next
};

struct LoweringOptions {
  bool force_f64 = false;  // every f32 becomes f64: the reference
  bool simt = true;        // Target::simt: vector loads and asynchronous copies make sense
};

}  // namespace fusion

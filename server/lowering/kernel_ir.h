// A fusion implementation is lowered to kernel IR before it is printed as CUDA C++ or host C++.
//
// A kernel is a tree of statements that a *group* of lanes executes together (a block of threads, a warp, or
// a cluster of blocks, where `shared` is the memory of the lane's own block: fu_block_shared). Lane phases
// are the parallel parts: each lane runs the lines once (or once per item). Between two lane phases lies a
// barrier where the lowering puts one. CUDA prints lanes as threads; the host prints each lane phase as a
// loop over lanes and blocks as OpenMP iterations, so barriers vanish and variables that live from one phase
// to the next become arrays over lanes.
//
// A kernel has one section, or several with a barrier of the whole grid between them (a cooperative launch):
// what blocks wrote to device memory in one section, all read in the next. A block's shared memory survives
// the barrier, and so do the variables of the kernel, but not those of a section.
//
// Text is C++ common to both. Names of lane variables are written with a dollar, "$acc += x;", because the
// host must index them. Always in scope: lane, lanes (int); block, grid, group, groups (fu_index); shared,
// kept (char*, when used).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fusion::ir {

struct Parameter {
  std::string type;  // "const float* FUSION_RESTRICT", "float", "fu_index"
  std::string name;
};

// A variable of each lane that lives across lane phases.
struct LaneVariable {
  std::string type;
  std::string name;
  std::string extents;  // "[8][4]" or ""
  std::string initial;  // expression for every entry, or "" for none
  int entries = 1;      // product of extents
};

struct Statement {
  enum class Kind {
    kText,       // `text`, executed by every lane alike: uniform
    kLoop,       // `text` is the header "for (...)"; uniform trip count
    kIf,         // `text` is a uniform condition
    kVersions,   // `body` twice: with the constant `target` true where the uniform condition `text` holds,
                 // with it false elsewhere; or one of the two (`version`)
    kLanePhase,  // `lines` for each lane; with `items`: for lanes below it, or (strided) for each item
    kLeader,     // `lines` by one lane of the group
    kReduce,  // `target` = monoid over the lanes' `source`; every lane gets it; arrays of `count` entries, if
              // more than one
    kBarrier,   // between lane phases that exchange data through shared memory
    kZeroWait,  // in the first section, at its top level: from here on Kernel::zeroed is set for every block
  };
  Kind kind = Kind::kText;
  std::string text;
  std::vector<std::string> lines;
  std::string items;     // kLanePhase: number of active lanes or items; empty: all lanes
  bool strided = false;  // kLanePhase: items may exceed lanes; the index is called `item`
  // kLanePhase: lanes cooperate on one copy (fu_tile_in); the host runs the copy once, as lane 0.
  bool collective = false;
  // kVersions: kHolds where the launching code ensures that the condition holds; the kernel traps if it does
  // not. kIf: kHolds and kFails where the statement stands in that version alone of the versions around it
  // (IfVersion).
  enum class Version { kBoth, kHolds, kFails };
  Version version = Version::kBoth;
  bool known_at_launch = false;  // kVersions: the host can tell (fusion::WholeCondition)
  std::string monoid;            // kReduce: "fu_sum<float>"
  std::string source;            // kReduce: a lane variable
  std::string target;            // kReduce, kVersions: declared here
  int count = 1;                 // kReduce
  std::vector<Statement> body;   // kLoop, kIf, kVersions
};

Statement Text(std::string text);
std::vector<Statement> Texts(std::vector<std::string> lines);  // one a line, indented as in phases
Statement Loop(std::string header, std::vector<Statement> body);
Statement If(std::string condition, std::vector<Statement> body);
// In versions that are known at launch, `body` stands only in the one whose `constant` has the value.
Statement IfVersion(const std::string& constant, bool value, std::vector<Statement> body);
Statement Versions(std::string condition, std::string constant, std::vector<Statement> body,
                   bool known_at_launch = false);
Statement LanePhase(std::vector<std::string> lines, std::string items = "");
Statement StridedPhase(std::vector<std::string> lines, std::string items);
Statement Collective(std::vector<std::string> lines);
Statement Leader(std::vector<std::string> lines);
Statement Reduce(std::string monoid, std::string source, std::string target, int count = 1);
Statement Barrier();
Statement ZeroWait();

struct Section {
  int group_threads = 128;  // lanes of a group: `threads` of the kernel, 32, or those of a cluster
  std::vector<LaneVariable> lane_variables;
  std::vector<Statement> body;
};

// Entries in device memory that the kernel sets, to zero or what else a sum begins as, before any block adds
// to them.
struct Zeroed {
  std::string pointer;
  std::string count;  // expression
  std::string value;  // expression, of entry `i`
};

struct Kernel {
  std::string name;
  std::string comment;  // what it computes
  std::vector<Parameter> parameters;
  int threads = 128;         // per block
  int minimum_blocks = 1;    // blocks per multiprocessor that registers must permit (launch bounds)
  int cluster_blocks = 1;    // blocks of a cluster; if more than one, its threads are one group (sm_90)
  bool uses_shared = false;  // `shared`
  std::string shared_bytes;  // expression over size parameters, for the host
  int64_t kept_bytes = 0;    // the first bytes of shared memory, called `kept`; `shared` begins behind them
  std::vector<Zeroed> zeroed;
  // Variables of each lane that live from one section to the next. The threads of the block are one group
  // then. The variables have no initial values.
  std::vector<LaneVariable> lane_variables;
  std::vector<Section> sections;
  // Loops stay as they are (CUDA): the kernel shall be built fast, not run fast.
  bool rolled = false;
  // Nobody has proved that blocks are independent: on a host they run in the order that worker/measure gives
  // (block_order.h), so that it can try several.
  bool asserted = false;

  // Returns whether blocks wait for each other.
  bool cooperative() const { return sections.size() > 1 || !zeroed.empty(); }
  bool has_shared_memory() const { return uses_shared || kept_bytes > 0; }
};

// Returns the kernel as text, for --dump-dir and golden tests.
std::string ToString(const Kernel& kernel);

}  // namespace fusion::ir

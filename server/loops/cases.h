// The case discussion of a kernel with symbols (Chen et al. 2017, "Comprehensive optimization").
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/loops/syntax.h"
#include "server/polynomial/polynomial.h"

namespace fusion {

// A strategy is done to a program on the way to a case.
enum class Strategy : uint8_t {
  kAcceptRegisters,       // (1)
  kCommonSubexpressions,  // (2), once for each counter
  kKeepGranularity,       // (3a)
  kReduceGranularity,     // (3b), to 1
  kCache,                 // (4a), always followed by (3a)
  kRefuseCaching,         // (4b)
};
const char* StrategyName(Strategy strategy);  // "(3a)"

// words <= Z_B, or Z_B < words: the words of four bytes that a block may share.
struct WordsBound {
  Polynomial words;
  bool fits = true;
};

// A leaf: for values of parameters and machines that fulfil all constraints, this kernel.
struct KernelCase {
  std::vector<Strategy> strategies;  // in the order in which they are applied
  std::vector<WordsBound> words;
  int64_t least_registers = 0;  // <= R_B, the registers that a thread may have
  int64_t below_registers = 0;  // R_B < this; 0: no such bound
  bool granular = true;         // each thread computes s entries, else one
  bool cached = true;
  std::string code;  // of the kernel, as MetaFork
};

// One kernel of a program.
struct CaseDiscussion {
  std::string kernel;       // the counter of its outermost loop, and its place: "v0 at 11:5"
  std::string granularity;  // the parameter that says how many entries a thread computes; "": there is none
  std::vector<std::string> cached;      // arrays, in the order of the text
  std::vector<std::string> parameters;  // names, in the order of the text
  Polynomial granular_words, single_words;
  Polynomial threads;             // of a block
  std::vector<KernelCase> cases;  // consistent, covering and apart from each other
};

// Discusses all kernels of a text (server/loops/mapping.h). Registers are those of "#pragma fusion registers
// WITH ONE": what a thread takes with the granularity of the text, and with one of 1; where there is no such
// line they are those of `registers`, by kernel.
//
// InvalidArgument and NotFound as CheckLoops gives them; InvalidArgument, too, where registers are not given.
absl::StatusOr<std::vector<CaseDiscussion>> DiscussCases(absl::string_view text, const std::string& file_name,
                                                         const std::vector<CRegisters>& registers = {});

// Returns whether all loops of the text have their registers from it.
bool GivesRegisters(const CProgram& program);

// Returns the constraints of a case, such as "2*s*B <= Z_B, 4 <= R_B".
std::string ConstraintsText(const KernelCase& one, const std::vector<std::string>& parameters);

// Returns whether the case holds for these values; nothing that is not a value of all its symbols may be
// asked.
bool Holds(const KernelCase& one, const std::map<std::string, int64_t>& values, int64_t words,
           int64_t registers);

}  // namespace fusion

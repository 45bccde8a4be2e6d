// A nest has what the loops of a region do, as polynomials: their ranges, and the entries that they touch.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/loops/syntax.h"
#include "server/parse/error_list.h"
#include "server/polynomial/polynomial.h"

namespace fusion {

// The claim says who takes the iterations of a loop to be independent.
enum class Claim { kNone, kMetaFor, kOpenMp, kAsked };  // kAsked: "#pragma fusion parametric" wants to know

// A loop. Its counter is `start + stride * symbol` for a symbol that counts 0, 1, 2 ..., or the symbol
// itself.
struct NestLoop {
  std::string counter;  // its name in the source
  std::string symbol;   // of its own
  SourcePosition position;
  Claim claim = Claim::kNone;
  bool parts = false;                   // of CStatement
  int parent = -1;                      // the loop around it, by number
  std::vector<Polynomial> lows, highs;  // of the symbol, inclusive; outer symbols alone
  bool bounded = true;  // `lows`, `highs` and `conditions` say exactly which iterations there are
  std::vector<Polynomial> conditions;  // that are at least 0 in each iteration
  Polynomial value;                    // of the counter
  // Names of scalars of which each iteration has its own, or whose parts are combined.
  std::vector<std::string> privates, reductions;
};

// A condition under which a statement runs.
struct NestGuard {
  CExpressionPtr condition;
  std::string key;                     // the same for conditions that say the same
  bool holds = true;                   // false: in the `else` of it
  std::vector<Polynomial> conditions;  // what it says, as far as polynomials can: at least 0
  bool whole = false;                  // `conditions` say all of it
  std::vector<std::string> symbols;    // that it depends on; of loops and parameters
  bool of_memory = false;              // it reads arrays or scalars that change
};

struct NestArray {
  CVariable variable;
  std::vector<Polynomial> extents;  // inexact where they are not known
  bool local = false;               // declared in the loop with number `owner`, or in the region (-1)
  int owner = -1;
};

struct NestAccess {
  int array = 0;
  bool writes = false;
  bool accumulates = false;       // a[i] += ..., where other iterations may add too
  std::vector<Polynomial> index;  // one for each dimension; inexact where it is no polynomial
  SourcePosition position;
  std::string text;        // "a[i+1]"
  std::vector<int> loops;  // around it, outermost first
  std::vector<NestGuard> guards;
  int teams = -1;  // the directive "teams" that it is under, by number
};

// A scalar that is declared outside of some of the loops in which it is assigned to.
struct NestScalar {
  std::string name;
  bool writes = false;
  bool accumulates = false;
  SourcePosition position;
  std::vector<int> loops;     // around it
  std::vector<int> branches;  // of conditions, around it, outermost first
  bool counter = false;       // of an inner loop
  int owner = -1;             // the loop in which it is declared; -1: outside of all
  int order = 0;
};

// A symbol that stands for numerator / denominator, rounded towards 0, where that is not negative.
struct NestQuotient {
  std::string symbol;
  Polynomial numerator, denominator;
};

struct Nest {
  std::vector<NestLoop> loops;  // outer ones first
  std::vector<NestArray> arrays;
  std::vector<NestAccess> accesses;
  std::vector<NestScalar> scalars;
  std::vector<NestQuotient> quotients;
  std::vector<Polynomial> facts;  // at least 0, in parameters alone
  std::vector<std::string>
      parameters;  // names that the region reads and does not write; in the order of the text
};

// Returns the index of an access in its array as one dimension; inexact where one of its parts is.
Polynomial FlatIndex(const Nest& nest, const NestAccess& access);

// Returns the quotients by these names that drop what is behind the last whole part; (n + B - 1) / B rounds
// up and drops nothing.
std::vector<NestQuotient> QuotientsThatDrop(const Nest& nest, const std::set<std::string>& names);

// Reports what has no meaning for a device: names that nothing declares, calls of functions that no device
// has, wrong numbers of indices. `program` has the ranges of parameters.
std::unique_ptr<Nest> BuildNest(const CProgram& program, const CRegion& region, ErrorList* errors);

}  // namespace fusion

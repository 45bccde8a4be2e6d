// Syntax trees of the subset of C that loops are read from: README.md of this folder lists it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/parse/location.h"

namespace fusion {

// Integers of 32 and 64 bits, and what loops outside of kernels may have beside: char, unsigned ...
enum class CType : uint8_t { kInt, kLong, kFloat, kDouble, kOther };
inline bool IsIntegerType(CType type) { return type == CType::kInt || type == CType::kLong; }
const char* CTypeName(CType type);

struct CExpression;
using CExpressionPtr = std::shared_ptr<const CExpression>;

// Immutable once it is parsed.
struct CExpression {
  enum class Kind : uint8_t {
    kInteger,
    kReal,
    kName,
    kSubscript,
    kUnary,
    kBinary,
    kConditional,
    kCall,
    kCast
  };
  Kind kind = Kind::kInteger;
  SourcePosition position;
  std::string text;                      // number as written, name, operator, name of the function or array
  int64_t integer = 0;                   // kInteger
  CType type = CType::kInt;              // kCast
  std::vector<CExpressionPtr> operands;  // of an array: its indices
};

// Returns the expression as C, with the fewest brackets.
std::string CText(const CExpression& expression);
bool IsNamed(const CExpression& expression, const std::string& name);  // it is this name alone

struct CVariable {
  std::string name;
  SourcePosition position;
  CType type = CType::kInt;
  bool array = false;
  bool indirect = false;  // a pointer to pointers: rows may be the same memory
  bool aliases = false;   // a pointer that was given the value of another
  bool is_volatile = false;
  bool workspace = false;               // of no text: one kernel leaves something in it for the next
  std::vector<CExpressionPtr> extents;  // of an array, outermost first; null where C does not say it
  std::optional<int64_t> constant;      // its value, where it never has another
  CExpressionPtr initial;               // likewise, or null
};

// A clause of a directive, such as num_teams(G) or map(tofrom: a[0:n]).
struct CClause {
  std::string name;
  SourcePosition position;
  std::vector<CExpressionPtr> expressions;  // num_teams, collapse, a chunk
  std::vector<std::string> names;           // private, map, reduction
  std::string operation;                    // reduction
  bool IsPrivate() const;                   // each iteration has its own of `names`
};

// A line "#pragma omp ..." or "#pragma fusion parametric".
struct CDirective {
  SourcePosition position;
  bool parametric = false;
  std::vector<std::string> constructs;  // "target", "teams", "distribute", "parallel", "for", "simd"
  std::vector<CClause> clauses;
  bool Has(const std::string& construct) const;
};

struct CStatement;
using CStatementPtr = std::shared_ptr<const CStatement>;

struct CStatement {
  enum class Kind : uint8_t { kBlock, kDeclaration, kAssignment, kIf, kFor, kSchedule };
  Kind kind = Kind::kBlock;
  SourcePosition position;
  std::vector<CDirective> directives;  // that stand before it
  std::vector<CStatementPtr> body;     // kBlock; kFor, kSchedule: one; kIf: one or two
  CVariable variable;                  // kDeclaration; kFor: its counter
  CExpressionPtr target, value;  // kAssignment; kDeclaration: a value or null; kIf: the condition is `value`
  std::string operation;         // kAssignment: "=", "+=" ...
  // These fields are of a kFor: `for (counter = start; counter < bound; counter += step)`.
  bool meta = false;      // meta_for
  bool declares = false;  // its counter
  bool parts = false;     // its iterations are independent, and all one thread's: of no text
  bool strips = false;  // over strips of another loop, none of which is empty, or over all of one: of no text
  CExpressionPtr start, bound, step;
  std::string relation;                // "<", "<=", ">", ">="
  bool down = false;                   // the step is subtracted
  std::vector<CExpressionPtr> cached;  // kSchedule: names
};

// A range that "#pragma fusion parameter s in 1..64" gives to a name.
struct CParameter {
  std::string name;
  SourcePosition position;
  int64_t low = 1;
  std::optional<int64_t> high;
  bool strips = false;  // how long strips of serial loops are (strips.h): of no text
};

// Registers of a thread: "#pragma fusion registers 4 3".
struct CRegisters {
  int64_t granular = 0;  // with the granularity in the text
  int64_t single = 0;    // with a granularity of 1
};

// Loops that somebody marked, with what is declared around them.
struct CRegion {
  CStatementPtr statement;
  std::vector<CVariable> scope;  // visible there, inner ones behind outer ones of the same name
  std::optional<CRegisters> registers;
};

// Adds the names of variables and arrays that stand there: in expressions, in statements with all in them,
// and in what a declaration says of its variable.
void AddNames(const CExpression& expression, std::set<std::string>* names);
void AddNames(const CStatement& statement, std::set<std::string>* names);
void AddNames(const CVariable& variable, std::set<std::string>* names);

bool HasEntries(const CExpression& expression);   // of arrays
bool ReadsMemory(const CExpression& expression);  // it has entries of arrays, or calls of functions

// Adds the names that statements declare, counters of loops among them.
void AddDeclared(const CStatement& statement, std::set<std::string>* names);
// Returns what stands alone in blocks around it.
CStatementPtr Unwrapped(CStatementPtr statement);
// Returns all loops in a statement in the order of the text, as nests number them (nest.h).
std::vector<const CStatement*> LoopsOf(const CStatement& statement);
bool HasMeta(const CStatement& statement);   // it is a meta_for, or one is in it
int MetaDepth(const CStatement& statement);  // how many meta_for there are around each other at most

struct CProgram {
  std::vector<CRegion> regions;  // in the order of the text
  std::vector<CParameter> parameters;
};

}  // namespace fusion

// The results of a graph's programs are verified with these: the values of inputs, tolerances, and which
// outputs are exact.
#pragma once

#include <vector>

#include "fusion/v1/program.pb.h"
#include "server/graph/graph.h"
#include "server/lowering/fusion_code.h"

namespace fusion {

// Returns a buffer of a session or program for a value, with the rows and columns of the value or of each
// small element, in f64 where that is forced.
v1::Buffer MakeBuffer(const Graph& graph, const SizeValues& sizes, ValueId id, bool force_f64);

// Returns the session of a graph without programs, seed and key: its buffers, tolerances (one per output) and
// floor.
v1::Session MakeSession(const Graph& graph, const SizeValues& sizes, const std::vector<double>& tolerances);

// Fills in the inputs and outputs of a session, with their rows, columns and values, and what verifying needs
// to know of them: choosing_entries and whole_outputs.
//
// Inputs have the values that the graph says. Else, what a function asks of an operand (v1::ValueDomain) it
// asks of what the operand is computed from, backwards to the inputs: numbers above 0 where a value on the
// way must be above 0 or not 0, symmetric positive definite matrices where one is inverted, and numbers so
// small that exponents stay about 1, whatever the lengths of the sums between. An input that is a condition
// itself has entries 0 and 1.
void DescribeBuffers(const Graph& graph, const SizeValues& sizes, v1::Session* session);

// Returns whether a kernel's argument is a result of the kernel that rounding can change.
bool IsRoundedResult(const Graph& graph, const KernelArgument& argument);

// Returns a bound on the relative error of each output: unit roundoff of its type times a factor that grows
// with the number of operations on the longest path. Sums of f32 have the same bound at any length, since
// they are blocked and compensated (library/device/fusion_monoids.h); those of f64 and of small elements have
// one that grows with the square root of the length (rounding errors behave like a random walk; Higham,
// Accuracy and Stability of Numerical Algorithms, section 4.2). 0 where nothing is rounded: choices among
// inputs, and indices of the largest entry of anything.
std::vector<double> OutputTolerances(const Graph& graph, const SizeValues& sizes);

}  // namespace fusion

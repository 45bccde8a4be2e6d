// Models of computation (Moreno Maza 2017, "Models of computation for algorithm analysis") as values of the
// kernels of a program: formulas in its sizes and parameters and in those of a machine, or numbers.
#pragma once

#include <string>
#include <vector>

#include "server/loop_kernels/formula.h"
#include "server/target/device_description.h"

namespace fusion {

// A Value is a Formula or a double. All words have four bytes.
template <class Value>
struct LaunchCounts {
  Value launches;              // that do all of this, one after the other
  Value blocks, threads;       // threads of a block
  Value operations;            // of a thread
  Value coalesced, scattered;  // words that a thread reads and writes
  Value block_words;           // of private memory, that a block takes; 0: it caches nothing
};

template <class Value>
struct MachineParameters {
  Value latency;           // L: cycles of an access to global memory
  Value cores;             // P
  Value width;             // C: words that coalesced accesses bring at once
  Value private_words;     // Z: of a group of cores
  Value cores_of_group;    // Q
  Value threads_per_core;  // X: the limit of the hardware
  Value transfer;          // U: cycles in which a word comes from global memory or goes there
  Value burden;            // operations that a level of forks costs
};
MachineParameters<Formula> SymbolicMachine();  // with these letters; the burden is a number
// Returns the figures of a device. Where nobody measures them they are assumed: a latency of 500 cycles,
// which is the time of a transfer, too; on GPUs accesses of 32 words, and 128 cores a multiprocessor (64 up
// to sm_80); on hosts accesses of 16 words, and 128 KiB that a core has for itself.
MachineParameters<double> MachineOf(const DeviceDescription& device);

// Parallel random access machine (S. Fortune, J. Wyllie, "Parallelism in random access machines", STOC 1978).
template <class Value>
struct PramMeasures {
  Value time;        // operations of a thread, over all launches one after the other
  Value processors;  // threads of the largest launch
};
template <class Value>
PramMeasures<Value> Pram(const std::vector<LaunchCounts<Value>>& launches);

// Fork-join: T_P <= work / P + 2 * delta * burdened_span (Y. He, C. E. Leiserson, W. M. Leiserson, "The
// Cilkview scalability analyzer", SPAA 2010). All numbers are operations.
template <class Value>
struct ForkJoinMeasures {
  Value work;           // T_1
  Value span;           // T_inf: a launch forks its threads in halves, in ceil(log2) levels
  Value burdened_span;  // each level costs the burden, too
};
template <class Value>
ForkJoinMeasures<Value> ForkJoin(const std::vector<LaunchCounts<Value>>& launches, const Value& burden);

// Threaded many-core memory: the time is max(work / P, span, memory * L / (T * P)) (L. Ma, K. Agrawal, R. D.
// Chamberlain, "A memory access model for highly-threaded many-core architectures", FGCS 30, 2014). Time
// counts cycles of one operation each.
template <class Value>
struct TmmMeasures {
  Value work, span;  // T_1, T_inf
  Value memory;      // M: accesses to global memory; C coalesced words are one
  Value threads;     // T: threads of a core, min(X, Z / (Q * S)) where a thread has S words of private memory
};
template <class Value>
TmmMeasures<Value> Tmm(const std::vector<LaunchCounts<Value>>& launches,
                       const MachineParameters<Value>& machine);
double TmmTime(const TmmMeasures<double>& measures, const MachineParameters<double>& machine);

// Many-core machine (S. A. Haque, M. Moreno Maza, N. Xie, "A many-core machine model for designing algorithms
// with minimum parallelism overheads", ParCo 2015, arXiv:1402.0264): T_P <= (N / K + L) * C. Work and span
// are operations, overheads cycles; an operation takes one.
template <class Value>
struct McmMeasures {
  Value work, span;  // W, S
  Value overhead;    // O: over all blocks (r + w) * U for r and w words that a thread reads and writes, times
                     // the threads of a block where they are scattered
  Value vertices;    // N: blocks of all launches
  Value edges;       // L: of the critical path, on which launches follow each other
  Value antichain;   // K: blocks of the largest launch
  Value most;        // C: operations of a thread, and overhead of its block, at most
};
template <class Value>
McmMeasures<Value> Mcm(const std::vector<LaunchCounts<Value>>& launches, const Value& transfer);
// Returns the Graham-Brent bound where at most so many blocks run at once.
double GrahamBrentBound(const McmMeasures<double>& measures, double multiprocessors);

// A model with its source, for people.
struct ModelDescription {
  std::string name, source, formula;
};
const std::vector<ModelDescription>& ModelDescriptions();

// A measure of a program. Formulas and numbers of one program are in the same order.
template <class Value>
struct Measure {
  std::string model, name;  // "MCM", "work"
  Value value;
};
template <class Value>
std::vector<Measure<Value>> MeasuresOf(const std::vector<LaunchCounts<Value>>& launches, const Value& cells,
                                       const MachineParameters<Value>& machine);
// Returns what the models' formulas give for numbers: cycles, with a delta of 1.
std::vector<Measure<double>> TimesOf(const std::vector<LaunchCounts<double>>& launches,
                                     const MachineParameters<double>& machine);

}  // namespace fusion

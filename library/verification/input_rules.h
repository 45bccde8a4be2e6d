// Rules for the data that the inputs of a session hold: as they were asked for, and the other kinds of data
// on which programs are verified.
//
// Random data hide faults: a lost entry of a long sum lies within its tolerance, a lost entry of a maximum is
// rarely the largest. So programs are also run on data in which each part shows.
#pragma once

#include <cstdint>
#include <vector>

#include "fusion/v1/program.pb.h"
#include "library/verification/entry_operations.h"

namespace fusion {

// One kind of data. Inputs that were asked for by anything but a range have in each the values that were
// asked for.
struct DataPattern {
  enum class Kind {
    kAsked,     // random, in the ranges asked for
    kWhole,     // whole numbers but 0, of both signs: sums and products of them are exact
    kNegative,  // whole numbers below 0
    kLast,      // the entries of the last row and of the last column dominate all others
    kFirst,     // those of the first row and of the first column
    kClass,     // those whose number is `phase` modulo `step`
  } kind = Kind::kAsked;
  bool small = false;  // entries that dominate are far below 0 instead of far above it
  int64_t step = 1, phase = 0;
};

// For people: "whole numbers".
const char* NameOf(DataPattern::Kind kind);

// Returns how the entries of an input are made. Every pattern keeps to a range that was asked for, and to the
// side of 0 that the domain allows. FILE is not made by a rule: it gets that of a default input. Scalars
// handed by value have no patterns: they are halves, unless a range was asked for.
InputRule RuleOf(const v1::Buffer& input, const DataPattern& pattern);

// The patterns beside kAsked that programs of the session are verified on. The whole numbers come first.
// Where no result is chosen among entries (Session::choosing_entries), small peaks show nothing that large
// ones do not.
std::vector<DataPattern> PatternsOf(const v1::Session& session);

// Patterns of kClass that show of each of `lanes` lanes, in turn, that what they read counts, for results
// that are chosen among many entries; each with large peaks and then with small ones: as many as it takes
// beside results of choosing_entries entries; none where there are enough of them. A lane reads up to four
// entries at once.
std::vector<DataPattern> ClassPatterns(const v1::Session& session, int64_t lanes);

// Returns the rule for numbers from -0.5 to 1 in f32, by which probes of devices fill their data.
InputRule KnownRule();

}  // namespace fusion

// What is done to one entry when filling, hashing and comparing. Written once: compiled here for the host,
// handed to NVRTC as text for the device, and part of exported folders, so that all agree by construction.
// Plain C++ without headers.
#pragma once

namespace fusion {

// SplitMix64's finalizer: every bit of the result depends on every bit of x.
inline unsigned long long MixBits(unsigned long long x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// How the entries of an input are made. The numbers of `kind` are those of v1::InputValues.
struct InputRule {
  int kind;
  int bits;                /* of randomness: 24 or fewer for f32, up to 51 for f64 */
  double lower, upper;     /* kinds 1, 2 and 5; of kind 7 the roots of 2 / columns and of 1 / columns */
  double unit;             /* kind 2: what the whole numbers from lower to upper are multiplied by */
  int nonzero;             /* kind 2: `upper` takes the place of 0 */
  long long rows, columns; /* of the matrix, or of each small element of a list; a vector is one row */
  long long stride;        /* entries from one row to the next */
  int peaks;               /* entries that dominate: 0 none, 1 of the last row and column, 2 of the first
                              ones, 3 those whose number is `phase` modulo `step` */
  double peak_lower, peak_upper;
  long long step, phase;
};

// Uniform in [0, 1), with so many bits that the operations on it that follow are exact in f64.
inline double UnitEntry(unsigned long long key, long long i, int bits) {
  return (double)(long long)(MixBits(key ^ MixBits((unsigned long long)i)) >> (64 - bits)) /
         (double)(1LL << bits);
}

// i / n for numbers from 0: division of 32 bits is several times as fast.
inline long long Quotient(long long i, long long n) {
  return (i | n) >> 32 ? i / n : (long long)((unsigned)i / (unsigned)n);
}

// Between two numbers, also where their difference is too large for a number.
inline double Between(double lower, double upper, double share) {
  return 2 * (lower / 2 + (upper / 2 - lower / 2) * share);
}

// Entry i of an input that has no peak there.
inline double PlainEntry(const InputRule& rule, unsigned long long key, long long i) {
  double unit = UnitEntry(key, i, rule.bits);
  if (rule.kind == 1) return Between(rule.lower, rule.upper, unit);
  if (rule.kind == 2) {
    double number = rule.lower + (double)(long long)(unit * (rule.upper - rule.lower + 1));
    return (rule.nonzero && number == 0 ? rule.upper : number) * rule.unit;
  }
  double n = (double)rule.columns;
  long long line = Quotient(i, rule.stride), column = i - line * rule.stride;
  long long row = line - Quotient(line, rule.rows) * rule.rows;
  // Entries beside each other are made from the random numbers of the first of them.
  double of_pair = UnitEntry(key, i - column % 2, rule.bits);
  int alone = column == rule.columns - 1 && rule.columns % 2 != 0;
  if (rule.kind == 3) { /* symmetric; by Gershgorin's circles the eigenvalues are in [0.5, 2.5] */
    if (row == column) return 1 + unit;
    long long low = row < column ? row : column, high = row < column ? column : row;
    return (UnitEntry(key, (line - row + low) * rule.stride + high, rule.bits) - 0.5) / n;
  }
  if (rule.kind == 4) /* one is above 1 / n by as much as the other is below */
    return (alone ? 1.0 : column % 2 ? 1 - 0.9 * of_pair : 1 + 0.9 * of_pair) / n;
  if (rule.kind == 5) return Between(rule.lower, rule.upper, ((double)column + unit) / n);
  if (rule.kind == 6)
    return (long long)(MixBits(key ^ MixBits((unsigned long long)line)) % (unsigned long long)rule.columns) ==
                   column
               ? 1.0
               : 0.0;
  // two are a point of a circle
  double t = 2 * of_pair - 1;
  if (alone) return rule.upper;
  return (column % 2 ? 2 * t : 1 - t * t) / (1 + t * t) * rule.lower;
}

// Entry i of an input.
inline double InputEntry(const InputRule& rule, unsigned long long key, long long i) {
  if (rule.peaks == 0) return PlainEntry(rule, key, i);
  int peak = 0;
  if (rule.peaks == 3) {
    peak = i - Quotient(i, rule.step) * rule.step == rule.phase;
  } else {
    long long line = Quotient(i, rule.stride), column = i - line * rule.stride;
    long long row = line - Quotient(line, rule.rows) * rule.rows;
    peak = rule.peaks == 1 ? column == rule.columns - 1 || (rule.rows > 1 && row == rule.rows - 1)
                           : column == 0 || (rule.rows > 1 && row == 0);
  }
  return peak ? Between(rule.peak_lower, rule.peak_upper, UnitEntry(key, i, rule.bits))
              : PlainEntry(rule, key, i);
}

// `entry` with a relative change of up to `most`, another for each key.
inline double PerturbedEntry(double entry, double most, unsigned long long key, long long i) {
  double changed = entry + entry * most * (2 * UnitEntry(key, i, 51) - 1);
  return entry == changed || changed != changed ? entry : changed;
}

// Monte Carlo arithmetic (Parker, 1997) tells how far rounding alone moves a result: the reference is
// computed so often again with what its functions read and compute changed by up to so many units in the last
// place, which is more than rounding does, so that few trials show what it can do; so many times what they
// show is excused.
inline constexpr int kRoundingTrials = 4;
inline constexpr double kChangedUnits = 16, kExcused = 4;

// Contribution of word i to a hash; contributions are added.
inline unsigned long long HashWord(unsigned long long word, long long i) {
  return MixBits(word ^ MixBits((unsigned long long)i));
}

// The reference as the output's type can hold it: f32 overflows to infinity where f64 does not.
inline double ReferenceEntry(double reference, int is_f32) {
  return is_f32 && (reference > 3.4028235677973366e38 || reference < -3.4028235677973366e38)
             ? reference * 1e300
             : reference;
}

// What a guard zone holds at an address: words 0xFFF7A5C3, NaN as f32, two of them NaN as f64.
inline unsigned char GuardByte(unsigned long long address) {
  return (unsigned char)(0xFFF7A5C3u >> (8 * (address & 3)));
}

// A call, as a constant expression that overflows is warned of, and no header gives us infinity.
inline double Product(double a, double b) { return a * b; }

inline bool IsFiniteEntry(double x) { return x - x == 0.0; }

// How far apart two entries are: infinitely where one is a number and the other is none.
inline double EntryDifference(double a, double b) {
  if (a == b || (a != a && b != b)) return 0.0;
  if (!IsFiniteEntry(a) || !IsFiniteEntry(b)) return Product(1e308, 10.0);
  return a > b ? a - b : b - a;
}

// (|output - reference| - excused) / max(|reference|, scale), at least 0. NaN equals NaN, infinity of a
// sign itself; else such an entry is infinitely wrong, unless it is infinitely excused. `reference` as
// ReferenceEntry gives it.
inline double EntryError(double output, double reference, double scale, double excused) {
  double difference = EntryDifference(output, reference);
  if (difference <= excused) return 0.0;
  if (!IsFiniteEntry(difference)) return difference;
  double size = reference < 0 ? -reference : reference;
  double divisor = size > scale ? size : scale;
  return divisor > 0 ? (difference - excused) / divisor : Product(1e308, 10.0);
}

}  // namespace fusion

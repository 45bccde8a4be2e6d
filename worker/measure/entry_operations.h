// What is done to one entry when filling, hashing and comparing. Written once: compiled here for the host,
// and handed as text (kEntryOperationsSource) to NVRTC for the device, so both agree by construction. Plain
// C++ without headers and without preprocessor lines, as it must survive being turned into a string.
#pragma once

namespace fusion {

#define FUSION_HERE_AND_AS_TEXT(name, ...) \
  __VA_ARGS__                              \
  inline constexpr char name[] = #__VA_ARGS__;

FUSION_HERE_AND_AS_TEXT(
    kEntryOperationsSource,

    /* SplitMix64's finalizer: every bit of the result depends on every bit of x. */
    inline unsigned long long MixBits(unsigned long long x) {
      x += 0x9e3779b97f4a7c15ULL;
      x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
      x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
      return x ^ (x >> 31);
    }

    /* Input entry i: uniform in [-0.5, 1) or, for positive and nonzero operands, in [0.25, 1.25). `bits` of
       randomness (24 or fewer for f32, up to 51 for f64) so that every operation is exact in f64, with or
       without FMA. */
    inline double InputEntry(unsigned long long key, long long i, int real, int bits) {
      double unit = (double)(long long)(MixBits(key ^ MixBits((unsigned long long)i)) >> (64 - bits)) /
                    (double)(1LL << bits);
      return real ? 1.5 * unit - 0.5 : unit + 0.25;
    }

    /* Contribution of word i to a hash; contributions are added. */
    inline unsigned long long HashWord(unsigned long long word, long long i) {
      return MixBits(word ^ MixBits((unsigned long long)i));
    }

    /* The reference as the output's type can hold it: f32 overflows to infinity where f64 does not. */
    inline double ReferenceEntry(double reference, int is_f32) {
      return is_f32 && (reference > 3.4028235677973366e38 || reference < -3.4028235677973366e38)
                 ? reference * 1e300
                 : reference;
    }

    /* What a guard zone holds at an address: words 0xFFF7A5C3, NaN as f32, two of them NaN as f64. */
    inline unsigned char GuardByte(unsigned long long address) {
      return (unsigned char)(0xFFF7A5C3u >> (8 * (address & 3)));
    }

    /* A call, as a constant expression that overflows is warned of, and no header gives us infinity. */
    inline double Product(double a, double b) { return a * b; }

    inline bool IsFiniteEntry(double x) { return x - x == 0.0; }

    /* |output - reference| / max(|reference|, scale). NaN equals NaN, infinity of a sign itself; else such an
       entry is infinitely wrong. `reference` as ReferenceEntry gives it. */
    inline double EntryError(double output, double reference, double scale) {
      if (output == reference || (output != output && reference != reference)) return 0.0;
      double infinity = Product(1e308, 10.0);
      if (!IsFiniteEntry(output) || !IsFiniteEntry(reference)) return infinity;
      double size = reference < 0 ? -reference : reference;
      double divisor = size > scale ? size : scale;
      double difference = output > reference ? output - reference : reference - output;
      return divisor > 0 ? difference / divisor : infinity;
    })

#undef FUSION_HERE_AND_AS_TEXT

}  // namespace fusion

// A kernel brings what it reads from device memory to its threads on one of these paths.
#pragma once

namespace fusion {

enum class LoadPath {
  // Each thread loads what it needs; over elements: several threads of an element read it where it is.
  kDirect,
  kStaged,  // asynchronous copies to shared memory first (sm_80), and tiles of results back from it
  kBulk,    // the same by bulk copies that complete at an mbarrier (sm_90)
  // Over elements: a warp loads the elements of its lanes 512 bytes at a time, and lanes exchange what they
  // got; results likewise.
  kExchanged,
};
inline constexpr LoadPath kLastLoadPath = LoadPath::kExchanged;

// The word for it in descriptions of kernels, with a space in front; "" for kDirect.
inline const char* LoadPathWord(LoadPath path) {
  switch (path) {
    case LoadPath::kDirect:
      return "";
    case LoadPath::kStaged:
      return " staged";
    case LoadPath::kBulk:
      return " bulk";
    case LoadPath::kExchanged:
      return " exchanged";
  }
  return "";
}

}  // namespace fusion

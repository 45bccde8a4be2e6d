// SQLite's own cache of pages, but that a commit does not search through all of it. Private to db/store.
//
// SQLite cuts the cache off behind the end of the file at every commit, and its cache looks for such pages
// only if there was ever one since. Whenever a tree is balanced, though, a page has the number of the byte at
// 1 GiB for a moment, so about every second commit of a smaller file looked at each page of the cache, some
// 0.4 ms for 64 MiB, while all other changes waited.
#pragma once

#include <cstdint>

namespace fusion {

// The largest number of a page that a cache has, or a larger one.
class LargestPage {
 public:
  void Has(unsigned number);
  // A page has another number now. One that goes beyond all others is expected back.
  void Moves(unsigned from, unsigned to);
  // Whether pages from `limit` on may be there. They are not any more.
  bool CutOff(unsigned limit);

 private:
  unsigned largest_ = 0;  // but for
  unsigned parked_ = 0;   // 0: none
};

// For all connections of the process that are opened later. Without effect once SQLite has been used. For
// programs that are ours, before they have threads: it is a setting of the process.
void UseQuickPageCaches();

// How often caches of this process have been cut off where something may have been.
int64_t PageCachesCutOff();

}  // namespace fusion

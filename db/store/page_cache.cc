#include "db/store/page_cache.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

namespace fusion {
namespace {

sqlite3_pcache_methods2 g_own;  // SQLite's; constant once there are connections
std::atomic<int64_t> g_cut_off = 0;

// Used by one thread at a time, as SQLite's own.
struct Cache {
  sqlite3_pcache* own = nullptr;
  LargestPage largest;
};

Cache& Of(sqlite3_pcache* cache) { return *reinterpret_cast<Cache*>(cache); }

sqlite3_pcache* Create(int page_bytes, int extra_bytes, int purgeable) {
  Cache* const cache = new (std::nothrow) Cache;
  if (cache == nullptr) return nullptr;
  cache->own = g_own.xCreate(page_bytes, extra_bytes, purgeable);
  if (cache->own != nullptr) return reinterpret_cast<sqlite3_pcache*>(cache);
  delete cache;
  return nullptr;
}

void Destroy(sqlite3_pcache* cache) {
  g_own.xDestroy(Of(cache).own);
  delete &Of(cache);
}

sqlite3_pcache_page* Fetch(sqlite3_pcache* cache, unsigned number, int create) {
  sqlite3_pcache_page* const page = g_own.xFetch(Of(cache).own, number, create);
  if (page != nullptr) Of(cache).largest.Has(number);
  return page;
}

void Rekey(sqlite3_pcache* cache, sqlite3_pcache_page* page, unsigned from, unsigned to) {
  g_own.xRekey(Of(cache).own, page, from, to);
  Of(cache).largest.Moves(from, to);
}

void Truncate(sqlite3_pcache* cache, unsigned limit) {
  if (!Of(cache).largest.CutOff(limit)) return;
  ++g_cut_off;
  g_own.xTruncate(Of(cache).own, limit);
}

}  // namespace

void LargestPage::Has(unsigned number) { largest_ = std::max(largest_, number); }

void LargestPage::Moves(unsigned from, unsigned to) {
  if (from == parked_) parked_ = 0;
  if (to > largest_ && parked_ == 0)
    parked_ = to;
  else
    Has(to);
}

bool LargestPage::CutOff(unsigned limit) {
  if (limit > largest_ && limit > parked_) return false;
  if (parked_ >= limit) parked_ = 0;
  largest_ = std::min(largest_, std::max(limit, 1u) - 1);
  return true;
}

void UseQuickPageCaches() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &g_own) != SQLITE_OK) return;
    sqlite3_pcache_methods2 quick = g_own;
    quick.xCreate = Create;
    quick.xCachesize = [](sqlite3_pcache* cache, int pages) { g_own.xCachesize(Of(cache).own, pages); };
    quick.xPagecount = [](sqlite3_pcache* cache) { return g_own.xPagecount(Of(cache).own); };
    quick.xFetch = Fetch;
    quick.xUnpin = [](sqlite3_pcache* cache, sqlite3_pcache_page* page, int discard) {
      g_own.xUnpin(Of(cache).own, page, discard);
    };
    quick.xRekey = Rekey;
    quick.xTruncate = Truncate;
    quick.xDestroy = Destroy;
    quick.xShrink = [](sqlite3_pcache* cache) { g_own.xShrink(Of(cache).own); };
    sqlite3_config(SQLITE_CONFIG_PCACHE2, &quick);
  });
}

int64_t PageCachesCutOff() { return g_cut_off; }

}  // namespace fusion

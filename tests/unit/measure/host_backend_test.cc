#include "worker/measure/host_backend.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <vector>

namespace fusion {
namespace {

constexpr uint64_t kHugePage = 2 << 20;

int64_t MappedPages() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages;
  return pages;
}

TEST(HostBackendTest, DataLiesOnWholeHugePages) {
  auto backend = HostBackend::Open();
  ASSERT_TRUE(backend.ok()) << backend.status();
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{400012}, int64_t{2 << 20}, int64_t{5000000}}) {
    const auto address = (*backend)->Allocate(bytes);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(*address % kHugePage, 0) << bytes;
    std::memset(reinterpret_cast<void*>(*address), 1, bytes);
  }
}

TEST(HostBackendTest, WhatIsFreedIsUnmapped) {
  auto backend = HostBackend::Open();
  ASSERT_TRUE(backend.ok()) << backend.status();
  const int64_t before = MappedPages();
  ASSERT_GT(before, 0);
  constexpr int kPieces = 100;
  std::vector<DeviceAddress> pieces;
  for (int i = 0; i < kPieces; ++i) pieces.push_back(*(*backend)->Allocate(1 + 77777 * i));
  const int64_t pages_of_all = static_cast<int64_t>(kPieces * kHugePage / 4096);
  EXPECT_GE(MappedPages() - before, pages_of_all);
  for (DeviceAddress piece : pieces) (*backend)->Free(piece);
  EXPECT_LT(MappedPages() - before, pages_of_all / kPieces);  // not even one of them is left
}

TEST(HostBackendTest, MoreThanThereCanBeIsRefused) {
  auto backend = HostBackend::Open();
  ASSERT_TRUE(backend.ok()) << backend.status();
  for (const int64_t bytes : {int64_t{1} << 60, std::numeric_limits<int64_t>::max()})
    EXPECT_EQ((*backend)->Allocate(bytes).status().code(), absl::StatusCode::kResourceExhausted) << bytes;
}

}  // namespace
}  // namespace fusion

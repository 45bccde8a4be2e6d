#include "worker/measure/host_backend.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
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

// Whether a byte there can be read: the kernel says so without a fault.
bool Readable(DeviceAddress address) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const bool readable = write(ends[1], reinterpret_cast<const void*>(address), 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return readable;
}

// Of the mapping that has the address: whether it is advised to be on huge pages ("hg" of its VmFlags).
bool AdvisedHuge(DeviceAddress address) {
  std::ifstream smaps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) here = begin <= address && address < end;
    if (here && line.rfind("VmFlags:", 0) == 0) return (line + " ").find(" hg ") != std::string::npos;
  }
  return false;
}

bool SystemHasHugePages() { return std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled"); }

TEST(HostBackendTest, DataLiesAtTheEndOfHugePagesAndNothingBehindThem) {
  auto backend = HostBackend::Open();
  ASSERT_TRUE(backend.ok()) << backend.status();
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{4096}, int64_t{400012}, int64_t{2 << 20},
                              int64_t{(2 << 20) + 1}, int64_t{5000000}}) {
    SCOPED_TRACE(bytes);
    const auto address = (*backend)->Allocate(bytes);
    ASSERT_TRUE(address.ok()) << address.status();
    std::memset(reinterpret_cast<void*>(*address), 1, bytes);
    const DeviceAddress end = *address + std::max<int64_t>(1, (bytes + 4095) / 4096) * 4096;
    EXPECT_EQ(end % kHugePage, 0);
    EXPECT_TRUE(Readable(end - 1));
    EXPECT_FALSE(Readable(end));
    const DeviceAddress begin = *address / kHugePage * kHugePage;
    EXPECT_TRUE(Readable(begin));
    EXPECT_FALSE(Readable(begin - 1));
    if (SystemHasHugePages()) {
      EXPECT_TRUE(AdvisedHuge(*address));
    }
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

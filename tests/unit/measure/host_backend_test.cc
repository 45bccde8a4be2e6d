#include "worker/measure/host_backend.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/build/builder.h"
#include "worker/build/host_arch.h"

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

// A library whose kernel writes the number. It stays loaded when it is closed, as one does in which a thread
// keeps something.
std::string Library(Builder& builder, int number) {
  v1::BuildTask task;
  task.set_target(v1::HOST);
  task.set_arch(HostArch());
  task.set_source(
      absl::StrCat("struct Kept { ~Kept() {} int uses = 0; };\n"
                   "extern \"C\" void kernel(long long, void* const* arguments) {\n"
                   "  static thread_local Kept kept; ++kept.uses;\n  **(int**)arguments[0] = ",
                   number, ";\n}\n"));
  const BuildOutput output = builder.Build(task);
  EXPECT_EQ(output.result.outcome(), v1::OK) << output.result.log();
  return output.binary;
}

int Written(LoadedBinary& binary) {
  const absl::StatusOr<void*> kernel = binary.FindKernel("kernel");
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  int written = -1;
  int* target = &written;
  void* const arguments[] = {&target};
  reinterpret_cast<void (*)(long long, void* const*)> (*kernel)(1, arguments);
  return written;
}

TEST(HostBackendTest, EachLoadRunsItsOwnCodeHoweverManyWereThere) {
  auto backend = HostBackend::Open();
  ASSERT_TRUE(backend.ok()) << backend.status();
  absl::StatusOr<std::unique_ptr<Builder>> builder = MakeBuilder(v1::HOST);
  if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
  // In turns of seven, which divides no round number: a name that came again would be another library's.
  constexpr int kLibraries = 7;
  std::vector<std::string> libraries;
  for (int i = 0; i < kLibraries; ++i) libraries.push_back(Library(**builder, i));
  for (int load = 0; load < 1700; ++load) {
    auto binary = (*backend)->Load(libraries[load % kLibraries]);
    ASSERT_TRUE(binary.ok()) << binary.status();
    ASSERT_EQ(Written(**binary), load % kLibraries) << "load " << load;
  }
}

}  // namespace
}  // namespace fusion

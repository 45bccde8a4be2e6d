#include "db/store/file_writeback.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>

#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

constexpr long kCachestat = 451;  // Linux 6.5; glibc of Debian 12 has no name for it

// Pages of the file that the kernel has not written yet; none: this kernel does not tell.
std::optional<uint64_t> UnwrittenPages(const std::string& path) {
  struct {
    uint64_t offset, length;
  } all{0, 0};
  struct {
    uint64_t cache, dirty, writeback, evicted, recently_evicted;
  } pages{};
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const long failed = syscall(kCachestat, file, &all, &pages, 0);
  close(file);
  if (failed != 0) return std::nullopt;
  return pages.dirty + pages.writeback;
}

class FileWritebackTest : public StoreTest {
 protected:
  std::string Fill(const std::string& name, size_t bytes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
    return path;
  }
};

TEST_F(FileWritebackTest, WritesWhatTheKernelHolds) {
  const std::string path = Fill("large", (9 << 20) + 5);
  const std::optional<uint64_t> before = UnwrittenPages(path);
  if (!before.has_value()) GTEST_SKIP() << "this kernel does not tell what it has not written";
  if (*before == 0) GTEST_SKIP() << "this file system keeps nothing back";
  FileWriteback writeback(path);
  writeback.Write();
  EXPECT_EQ(UnwrittenPages(path), 0u);
  EXPECT_EQ(std::filesystem::file_size(path), (9u << 20) + 5);
}

TEST_F(FileWritebackTest, FilesWithoutAnythingToWriteAreNoError) {
  FileWriteback empty(Fill("empty", 0)), none(folder_ + "/none"), folder(folder_);
  empty.Write();
  none.Write();
  folder.Write();
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/none"));
}

}  // namespace
}  // namespace fusion

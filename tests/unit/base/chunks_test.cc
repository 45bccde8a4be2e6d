#include "base/rpc/chunks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fusion {
namespace {

std::vector<v1::Chunk> Split(const std::string& bytes) {
  ChunkSplitter splitter(BlobDigest(bytes), bytes);
  std::vector<v1::Chunk> chunks;
  for (v1::Chunk chunk; splitter.Next(&chunk);) chunks.push_back(chunk);
  return chunks;
}

absl::StatusOr<std::string> Assemble(const std::vector<v1::Chunk>& chunks) {
  ChunkAssembler assembler;
  for (const v1::Chunk& chunk : chunks)
    if (absl::Status status = assembler.Add(chunk); !status.ok()) return status;
  return std::move(assembler).Finish();
}

std::string Bytes(int64_t size) {
  std::string bytes(size, '\0');
  for (int64_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 >> 3);
  return bytes;
}

TEST(ChunksTest, RoundTripAroundTheChunkSize) {
  for (int64_t size :
       {int64_t{0}, int64_t{1}, kChunkBytes - 1, kChunkBytes, kChunkBytes + 1, 3 * kChunkBytes}) {
    const std::string bytes = Bytes(size);
    const std::vector<v1::Chunk> chunks = Split(bytes);
    EXPECT_EQ(static_cast<int64_t>(chunks.size()), size == 0 ? 1 : (size + kChunkBytes - 1) / kChunkBytes);
    EXPECT_EQ(chunks[0].total_bytes(), size);
    absl::StatusOr<std::string> assembled = Assemble(chunks);
    ASSERT_TRUE(assembled.ok()) << assembled.status();
    EXPECT_EQ(*assembled, bytes);
  }
}

TEST(ChunksTest, NoticesWhatIsMissingOrChanged) {
  const std::vector<v1::Chunk> chunks = Split(Bytes(2 * kChunkBytes));
  EXPECT_TRUE(absl::IsDataLoss(Assemble({}).status()));
  EXPECT_TRUE(absl::IsDataLoss(Assemble({chunks[0]}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Assemble({chunks[1]}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Assemble({chunks[0], chunks[0]}).status()));
  std::vector<v1::Chunk> changed = chunks;
  (*changed[1].mutable_data())[5] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(Assemble(changed).status()));
}

TEST(ChunksTest, RefusesMoreThanAnnounced) {
  std::vector<v1::Chunk> chunks = Split(Bytes(10));
  chunks[0].set_total_bytes(9);
  EXPECT_TRUE(absl::IsInvalidArgument(Assemble(chunks).status()));
  chunks[0].set_total_bytes(kMaximumBlobBytes + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(Assemble(chunks).status()));
  chunks[0].set_total_bytes(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(Assemble(chunks).status()));
}

}  // namespace
}  // namespace fusion

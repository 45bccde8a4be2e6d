#include "base/rpc/chunks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"

namespace fusion {

std::string BlobDigest(std::string_view bytes) { return absl::StrCat("sha256:", Sha256Hex(bytes)); }

ChunkSplitter::ChunkSplitter(std::string digest, std::string bytes)
    : digest_(std::move(digest)), bytes_(std::move(bytes)) {}

bool ChunkSplitter::Next(v1::Chunk* chunk) {
  const int64_t total = static_cast<int64_t>(bytes_.size());
  if (started_ && offset_ >= total) return false;
  chunk->Clear();
  if (!started_) {
    chunk->set_digest(digest_);
    chunk->set_total_bytes(total);
  }
  started_ = true;
  const int64_t size = std::min(kChunkBytes, total - offset_);
  chunk->set_offset(offset_);
  chunk->set_data(bytes_.substr(offset_, size));
  offset_ += size;
  return true;
}

absl::Status ChunkAssembler::Add(const v1::Chunk& chunk) {
  if (!started_) {
    if (chunk.digest().empty()) return absl::InvalidArgumentError("the first chunk carries no digest");
    if (chunk.total_bytes() < 0 || chunk.total_bytes() > kMaximumBlobBytes)
      return absl::InvalidArgumentError(absl::StrCat("a blob has at most ", kMaximumBlobBytes,
                                                     " bytes; announced are ", chunk.total_bytes()));
    digest_ = chunk.digest();
    total_bytes_ = chunk.total_bytes();
    started_ = true;
  }
  if (chunk.offset() != static_cast<int64_t>(bytes_.size()))
    return absl::InvalidArgumentError(
        absl::StrCat("expected the chunk at offset ", bytes_.size(), ", received offset ", chunk.offset()));
  if (static_cast<int64_t>(chunk.data().size()) > kChunkBytes)
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk has at most ", kChunkBytes, " bytes; received ", chunk.data().size()));
  if (static_cast<int64_t>(bytes_.size() + chunk.data().size()) > total_bytes_)
    return absl::InvalidArgumentError(absl::StrCat("more bytes than the announced ", total_bytes_));
  bytes_ += chunk.data();
  return absl::OkStatus();
}

absl::StatusOr<std::string> ChunkAssembler::Finish() && {
  if (!started_) return absl::DataLossError("the stream ended before its first chunk");
  if (static_cast<int64_t>(bytes_.size()) != total_bytes_)
    return absl::DataLossError(
        absl::StrCat("the stream ended after ", bytes_.size(), " of ", total_bytes_, " bytes"));
  const std::string actual = BlobDigest(bytes_);
  if (actual != digest_)
    return absl::DataLossError(absl::StrCat("the bytes have digest ", actual, "; announced was ", digest_));
  return std::move(bytes_);
}

}  // namespace fusion

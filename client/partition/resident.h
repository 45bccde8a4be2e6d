// Arrays whose newest bytes are in the device's memory, from one loop to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "client/partition/context_copy.h"
#include "client/partition/device.h"
#include "client/partition/pool.h"
#include "client/partition/ranges.h"
#include "client/partition/report.h"
#include "client/partition/split.h"

namespace fusion {

// Loops run on the device whole. What they write stays there until Store. The program touches none of the
// arrays before that, so the host's memory is what it was at the first loop: after a fault the host runs all
// loops since then.
class ResidentArrays {
 public:
  // They outlive this object, or, where the device is lost, its last call.
  ResidentArrays(PartitionDevice& device, HostPool& pool) : device_(device), pool_(pool) {}
  ResidentArrays(const ResidentArrays&) = delete;
  ResidentArrays& operator=(const ResidentArrays&) = delete;

  struct Result {
    std::optional<PartitionReason> reason;  // why the loop has not run
    double copied_seconds = 0;              // from the host
    double ran_seconds = 0;
  };
  // Runs the loop. ranges: those of the call, without unbounded arrays. Where the reason is a fault the
  // loops before have been repeated by the host, and the arrays are empty. Throws nothing.
  Result Run(const LoopCall& call, const LoopRanges& ranges, BlockShape block);
  // Returns how many bytes Run would have to copy from the host.
  int64_t BytesToCopy(const LoopRanges& ranges) const;
  // Returns how many bytes are here.
  int64_t Bytes() const;

  // Stores what loops have written and forgets all copies. Returns false where the device has failed and the
  // host has repeated the loops instead. Throws nothing.
  bool Store();

  bool empty() const { return blocks_.empty(); }
  // Returns true when the program may not read, or write, these addresses before Store.
  bool Meets(ByteRange range, bool is_written) const;

  // Returns true when a loop needs the host's bytes of an array on the device.
  static bool MustBeThere(const LoopRanges& ranges, uint32_t array);

 private:
  // A part of the host's memory, by addresses, and its copy.
  struct Block {
    ByteRange all;
    uint64_t memory = 0;           // of the device, where all.first is
    std::vector<ByteRange> valid;  // the copy is as new as the host's bytes, or newer; in order, apart
    // These rows were written, and are known exactly.
    std::vector<RowRanges> written;
    // Within this range bytes were written of which it is not known which: those that differ from `before`,
    // which is memory of the device like `memory`. 0: there are none.
    ByteRange changed;
    uint64_t before = 0;
    int64_t last_used = 0;  // the number of the loop

    uint64_t At(int64_t address) const { return memory + static_cast<uint64_t>(address - all.first); }
    ByteRange Written() const;
  };
  // A loop since the last Store, so that the host can repeat it.
  struct Logged {
    fusion_partition_body body;
    int64_t first, last;
    std::unique_ptr<ContextCopy> context;
  };
  static constexpr size_t kMostLogged = 16384;
  static constexpr size_t kMostWritten = 256;  // in a block
  static constexpr size_t kMostBlocks = 64;    // all of them are looked through; a loop may need a few more

  Block* Find(ByteRange range);
  ByteRange WithSlack(ByteRange range, ByteRange before) const;
  // Makes a block that has the range in it. Returns false where the device has not enough memory.
  bool Cover(ByteRange range);
  std::optional<PartitionReason> Upload(const LoopRanges& ranges, uint32_t array);
  // After a reason but for a fault all that is here is still good.
  std::optional<PartitionReason> Prepare(const LoopRanges& ranges);
  bool RunPrepared(const LoopCall& call, const LoopRanges& ranges, BlockShape block);
  bool DropOldest();
  void NoteWritten(const LoopRanges& ranges, uint32_t array);
  // Returns false as Store does.
  bool StoreWritten();
  void StoreBlock(const Block& block, const char* now, const char* before) const;
  void RepeatOnHost();
  void Forget();

  PartitionDevice& device_;
  HostPool& pool_;
  std::vector<Block> blocks_;  // apart from each other
  std::vector<Logged> log_;
  ByteRange
      dropped_;  // around all addresses that loops of the log read, and of which there is no block any more
  int64_t uses_ = 0;
};

}  // namespace fusion

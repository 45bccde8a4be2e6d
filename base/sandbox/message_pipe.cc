#include "base/sandbox/message_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

constexpr int kPollMilliseconds = 20;
constexpr size_t kFirstPartBytes = 64 << 10;

// Waits until something can be read or written.
absl::Status WaitFor(int descriptor, short events, const KeepWaiting& keep_waiting) {
  while (true) {
    pollfd waiting{descriptor, events, 0};
    const int ready = poll(&waiting, 1, keep_waiting ? kPollMilliseconds : -1);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return absl::InternalError(absl::StrCat("poll: ", std::strerror(errno)));
    if (keep_waiting) FUSION_RETURN_IF_ERROR(keep_waiting());
  }
}

absl::Status WriteBytes(int descriptor, const char* data, size_t bytes, const KeepWaiting& keep_waiting) {
  while (bytes > 0) {
    FUSION_RETURN_IF_ERROR(WaitFor(descriptor, POLLOUT, keep_waiting));
    const ssize_t count = write(descriptor, data, bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return absl::CancelledError("the other end of the pipe is closed");
    data += count;
    bytes -= count;
    if (bytes > 0 && keep_waiting) FUSION_RETURN_IF_ERROR(keep_waiting());
  }
  return absl::OkStatus();
}

absl::Status ReadBytes(int descriptor, char* data, size_t bytes, const KeepWaiting& keep_waiting) {
  while (bytes > 0) {
    FUSION_RETURN_IF_ERROR(WaitFor(descriptor, POLLIN, keep_waiting));
    const ssize_t count = read(descriptor, data, bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return absl::CancelledError("the other end of the pipe is closed");
    data += count;
    bytes -= count;
    // Somebody who sends a byte now and then is not waited for longer than one who sends none.
    if (bytes > 0 && keep_waiting) FUSION_RETURN_IF_ERROR(keep_waiting());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteMessage(int descriptor, const google::protobuf::MessageLite& message,
                          const KeepWaiting& keep_waiting) {
  std::string bytes(4, '\0');
  if (!message.AppendToString(&bytes)) return absl::InvalidArgumentError("the message cannot be serialized");
  const size_t length = bytes.size() - 4;
  if (length > kMaximumPipeMessageBytes)
    return absl::InvalidArgumentError(absl::StrCat("a message of ", length, " bytes"));
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(length >> (8 * i));
  return WriteBytes(descriptor, bytes.data(), bytes.size(), keep_waiting);
}

absl::Status ReadMessage(int descriptor, google::protobuf::MessageLite* message,
                         const KeepWaiting& keep_waiting, uint32_t most_bytes) {
  unsigned char prefix[4];
  FUSION_RETURN_IF_ERROR(ReadBytes(descriptor, reinterpret_cast<char*>(prefix), 4, keep_waiting));
  uint32_t length = 0;
  for (int i = 0; i < 4; ++i) length |= static_cast<uint32_t>(prefix[i]) << (8 * i);
  if (length > most_bytes) return absl::DataLossError(absl::StrCat("a message of ", length, " bytes"));
  std::string bytes;
  while (bytes.size() < length) {
    const size_t read = bytes.size();
    bytes.resize(std::min<size_t>(length, std::max<size_t>(2 * read, kFirstPartBytes)));
    FUSION_RETURN_IF_ERROR(ReadBytes(descriptor, bytes.data() + read, bytes.size() - read, keep_waiting));
  }
  if (!message->ParseFromString(bytes)) return absl::DataLossError("not a message");
  return absl::OkStatus();
}

}  // namespace fusion

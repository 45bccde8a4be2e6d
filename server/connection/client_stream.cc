#include "server/connection/client_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace fusion {
namespace {

ClientStream::State StateOf(ssize_t moved, ClientStream::State otherwise, size_t* count) {
  *count = moved > 0 ? static_cast<size_t>(moved) : 0;
  if (moved > 0) return ClientStream::State::kMoved;
  const bool later = moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return later ? otherwise : ClientStream::State::kEnded;
}

}  // namespace

bool HasLeft(int descriptor) {
  pollfd peer{.fd = descriptor, .events = POLLRDHUP, .revents = 0};
  return poll(&peer, 1, 0) > 0;
}

ClientStream::State PlainStream::Read(char* bytes, size_t size, size_t* count) {
  return StateOf(recv(descriptor_, bytes, size, 0), State::kReadable, count);
}

ClientStream::State PlainStream::Write(const char* bytes, size_t size, size_t* count) {
  return StateOf(send(descriptor_, bytes, size, MSG_NOSIGNAL), State::kWritable, count);
}

}  // namespace fusion

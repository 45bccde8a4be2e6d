// The bytes of a client's connection, in the clear.
#pragma once

#include <cstddef>
#include <string>

namespace fusion {

// Non-blocking. Used by one thread.
class ClientStream {
 public:
  virtual ~ClientStream() = default;
  // What a call that moved no bytes waits for, or why it never will.
  enum class State { kMoved, kReadable, kWritable, kEnded };
  // At most `size` bytes; *count of them were moved with kMoved, at least one.
  virtual State Read(char* bytes, size_t size, size_t* count) = 0;
  virtual State Write(const char* bytes, size_t size, size_t* count) = 0;
  // The client's certificate, PEM, once bytes were read; "": it has shown none.
  virtual std::string Certificate() const { return ""; }
};

// Whether the peer of this socket sends nothing any more.
bool HasLeft(int descriptor);

// Of a connected, non-blocking socket, which its owner closes later.
class PlainStream final : public ClientStream {
 public:
  explicit PlainStream(int descriptor) : descriptor_(descriptor) {}
  State Read(char* bytes, size_t size, size_t* count) override;
  State Write(const char* bytes, size_t size, size_t* count) override;

 private:
  const int descriptor_;
};

}  // namespace fusion

// Bounds what the frames of an HTTP/2 connection may ask of gRPC, which has no such bounds itself: streams
// that are opened and reset at once (CVE-2023-44487), and header blocks that are small on the wire and large
// when read (CVE-2016-6581) or that never end (CVE-2024-27316). It sees the frames of both sides as they
// pass, and turns away calls at the door, before their messages are read.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "absl/status/status.h"
#include "server/identity/rate_limiter.h"

struct nghttp2_hd_inflater;

namespace fusion {

struct Http2Limits {
  // Streams that a client resets: of a connection. Clients reset calls that time out or are cancelled.
  RateLimit resets{50, 200};
  // The same of all connections of an address together: many callers may share one.
  RateLimit resets_of_address{200, 500};
  // Frames that ask for an answer or for nothing: PING, SETTINGS, PRIORITY, GOAWAY, DATA without any. Clients
  // measure their bandwidth with pings, some by hundreds a second.
  RateLimit trifles{500, 200};
  // Streams that are open, and how many are opened beyond that. gRPC has such a limit for clients that have
  // acknowledged it. Not less than that one.
  size_t streams = 100;
  RateLimit further_streams{5, 1};
  size_t most_streams = 400;
  // Calls that were turned away and whose client may still send.
  size_t refused = 200;
  // A request's headers: on the wire, and read, with 32 bytes for each (RFC 7540, 6.5.2). Not more than gRPC
  // takes: of a request with more it forgets what later ones refer to, and would read others than the guard.
  size_t header_bytes_sent = 64 << 10, header_bytes = 64 << 10;
  int continuations = 64;  // frames of one header block
};

// What a client says first.
inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Of one connection, from the frames behind the preface on. Not thread safe.
class Http2Guard {
 public:
  using Time = RateLimiter::Time;

  // Whether a call may come in, by its method ("/package.Service/Method") and what it shows of itself
  // ("Bearer ...";
  // "": nothing; of two such headers none counts). Another status is the answer.
  using Door = std::function<absl::Status(std::string_view method, const std::string& authorization)>;

  // `of_addresses`: what all connections of an address have done, by its name. It outlives the guard. `door`
  // null: everybody may.
  Http2Guard(const Http2Limits& limits, RateLimiter& of_addresses, std::string address, Door door);
  ~Http2Guard();

  enum class Verdict {
    kPass,   // all may, but for the part of a frame
    kWait,   // no further before again(): the client has reached a limit
    kClose,  // the client breaks HTTP/2 or a limit
  };
  // Appends to *out what the server is to have of `bytes`, the next ones that the client sent, of which the
  // first *seen are done with. Call again with the others and what came after.
  Verdict FromClient(std::string_view bytes, Time now, std::string* out, size_t* seen);
  // The next bytes that the server sent.
  void FromServer(std::string_view bytes);
  // What the client is to have next, beside what the server sent: answers of the door.
  std::string TakeAnswers();
  // How many bytes that is: while there are many, the client is to be read no further.
  size_t answers() const { return answers_.size(); }
  // When to call again after kWait.
  Time again() const { return again_; }
  // After kWait or kClose: which limit, or what the client breaks.
  std::string_view why() const { return why_; }

 private:
  struct Frame {
    uint32_t length = 0, stream = 0;
    uint8_t type = 0, flags = 0;
  };

  Verdict Close(std::string_view why);
  static Frame ReadHeader(std::string_view bytes);
  // Of a frame whose 9 bytes are there.
  Verdict Begin(const Frame& frame, Time now);
  // The client's call on this stream, whose headers have come.
  void AskAtDoor(Time now);
  // A call that begins on a stream.
  Verdict Open(uint32_t stream, Time now);
  // Takes one of the limit; kWait, for the reason given, where there is none.
  Verdict Count(RateLimiter& limiter, const std::string& key, const RateLimit& limit, std::string_view why,
                Time now);
  Verdict CountReset(Time now);
  Verdict CountResetOfAddress(Time now);
  // Of bytes of its payload.
  Verdict ReadPayload(std::string_view bytes, Time now);
  Verdict ReadBlock(std::string_view bytes, bool last, Time now);

  const Http2Limits limits_;
  RateLimiter& of_addresses_;
  const std::string address_;
  RateLimiter own_;
  bool counted_ = false;  // the reset that waits is among those of the connection
  Time again_{};
  const Door door_;
  bool client_ends_ = false;  // with the header block
  bool dropped_ = false;      // the frame is not for the server
  bool asks_ = false;         // the header block begins a call
  std::string method_, authorization_;
  uint32_t turned_away_ = 0;  // this stream, as soon as the frame is at its end
  std::set<uint32_t> refused_;
  bool owes_own_ = false, owes_address_ = false;
  std::string answers_;
  const std::unique_ptr<nghttp2_hd_inflater, void (*)(nghttp2_hd_inflater*)> inflater_;
  std::string_view why_;
  bool settled_ = false;               // its first frame, SETTINGS, has come
  Frame frame_;                        // of the client
  std::unordered_set<uint32_t> open_;  // streams that the client has opened and neither side has ended
  uint32_t last_stream_ = 0;
  uint32_t server_left_ = 0;   // of the payload of the server's frame
  bool server_spoke_ = false;  // its first frame has come
  bool server_block_ = false;  // its header block is not at its end
  std::string server_header_;  // of its next frame, in part
  uint32_t left_ = 0;          // of the frame's payload
  uint32_t block_stream_ = 0;  // of the header block that is not at its end; 0: none
  uint32_t prefix_ = 0;        // bytes of a HEADERS payload before its block that are to come
  uint32_t block_left_ = 0;    // of the frame's part of the block
  bool block_read_whole_ = true;
  size_t block_sent_ = 0, block_read_ = 0;
  int continuations_ = 0;
};

}  // namespace fusion

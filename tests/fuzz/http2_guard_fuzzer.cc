// Any bytes as what a client sends behind the preface of HTTP/2, and others as what the server sends between.
// However the bytes are cut, the same may pass; and the server sees no DATA of a call that the door turned
// away.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/connection/http2_guard.h"
#include "tests/fuzz/message_input.h"

namespace {

using namespace fusion;
using Verdict = Http2Guard::Verdict;

struct Passage {
  std::string out, answers;
  Verdict verdict = Verdict::kPass;
  size_t left = 0;
  bool operator==(const Passage&) const = default;
};

// What the client sends, then the server, then the client again.
struct Conversation {
  std::string client, server, more;
};

// `piece`: of how many bytes each part is that the guard sees.
Passage Pass(const Conversation& said, size_t piece) {
  RateLimiter of_addresses;
  Http2Guard guard(Http2Limits(), of_addresses, "10.0.0.7", [](std::string_view method, const std::string&) {
    return method == "/good" ? absl::OkStatus() : absl::UnauthenticatedError("no");
  });
  const Http2Guard::Time now = std::chrono::steady_clock::time_point(std::chrono::hours(1));
  Passage passage;
  std::string unseen;
  const auto from_client = [&](const std::string& bytes) {
    for (size_t i = 0; i < bytes.size() && passage.verdict == Verdict::kPass; i += piece) {
      unseen += bytes.substr(i, piece);
      size_t seen = 0;
      passage.verdict = guard.FromClient(unseen, now, &passage.out, &seen);
      Require(seen <= unseen.size(), "more seen than there is");
      unseen.erase(0, seen);
      Require(passage.verdict != Verdict::kPass || unseen.size() < 9, "a frame is kept");
      passage.answers += guard.TakeAnswers();
    }
  };
  from_client(said.client);
  for (size_t i = 0; i < said.server.size(); i += piece) guard.FromServer(said.server.substr(i, piece));
  passage.answers += guard.TakeAnswers();
  from_client(said.more);
  Require(passage.verdict != Verdict::kClose || !guard.why().empty(), "closed for no reason");
  passage.left = passage.verdict == Verdict::kPass ? unseen.size() : 0;
  // What was passed of the frame at which it ended is a matter of how the bytes were cut.
  if (passage.verdict == Verdict::kClose) passage.out.clear();
  return passage;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);
  if (size < 2) return 0;
  // The first two bytes say, in parts of 256, where the server begins and where it ends.
  const std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t begin = bytes.size() * data[0] / 256, end = begin + (bytes.size() - begin) * data[1] / 256;
  const Conversation said{std::string(kSettings) + bytes.substr(0, begin), bytes.substr(begin, end - begin),
                          bytes.substr(end)};
  const Passage whole = Pass(said, bytes.size() + kSettings.size());
  Require(Pass(said, 1) == whole, "byte by byte another result");
  Require(Pass(said, 7) == whole, "in pieces another result");
  return 0;
}

#include "server/connection/http2_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/service/status_conversion.h"
#include "tests/unit/connection/http2_frames.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using Passage = Http2Guard::Verdict;
using std::chrono::milliseconds;

// Header blocks as nghttp2 writes them, with its table of what was said before.
class Headers {
 public:
  Headers() { nghttp2_hd_deflate_new(&deflater_, 4096); }
  ~Headers() { nghttp2_hd_deflate_del(deflater_); }
  std::string Block(std::vector<std::pair<std::string, std::string>> fields) {
    std::vector<nghttp2_nv> view;
    for (auto& [name, value] : fields)
      view.push_back({reinterpret_cast<uint8_t*>(name.data()), reinterpret_cast<uint8_t*>(value.data()),
                      name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
    std::vector<uint8_t> block(nghttp2_hd_deflate_bound(deflater_, view.data(), view.size()));
    const ssize_t size =
        nghttp2_hd_deflate_hd(deflater_, block.data(), block.size(), view.data(), view.size());
    return std::string(block.begin(), block.begin() + size);
  }
  std::string Call(const std::string& path = "/a.B/C", const std::string& authorization = "") {
    std::vector<std::pair<std::string, std::string>> fields = {
        {":method", "POST"}, {":scheme", "http"}, {":path", path}, {"content-type", "application/grpc"}};
    if (!authorization.empty()) fields.emplace_back("authorization", authorization);
    return Block(fields);
  }

 private:
  nghttp2_hd_deflater* deflater_ = nullptr;
};

// The fields of a block by itself.
std::string Read(const std::string& block) {
  nghttp2_hd_inflater* inflater = nullptr;
  nghttp2_hd_inflate_new(&inflater);
  std::string text;
  const auto* next = reinterpret_cast<const uint8_t*>(block.data());
  size_t left = block.size();
  for (int flags = 0; (flags & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
    nghttp2_nv field{};
    flags = 0;
    const ssize_t used = nghttp2_hd_inflate_hd2(inflater, &field, &flags, next, left, 1);
    if (used < 0) {
      text += "cannot be read";
      break;
    }
    next += used;
    left -= static_cast<size_t>(used);
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
      absl::StrAppend(&text, std::string(field.name, field.name + field.namelen), "=",
                      std::string(field.value, field.value + field.valuelen), ";");
  }
  nghttp2_hd_inflate_del(inflater);
  return text;
}

class Http2GuardTest : public ::testing::Test {
 protected:
  void Make(Http2Limits limits = {}, Http2Guard::Door door = nullptr) {
    guard_ = std::make_unique<Http2Guard>(limits, of_addresses_, "10.0.0.7", std::move(door));
    // What was sent before was said to another.
    headers_ = std::make_unique<Headers>();
    unseen_.clear();
    EXPECT_EQ(Send(Frame(kSettings, 0, 0)), Passage::kPass);
    guard_->FromServer(Frame(kSettings, 0, 0));
    out_.clear();
  }
  // Keeps what the guard has not seen for the next call.
  Passage Send(const std::string& bytes) {
    unseen_ += bytes;
    size_t seen = 0;
    const Passage verdict = guard_->FromClient(unseen_, now_, &out_, &seen);
    unseen_.erase(0, seen);
    return verdict;
  }
  // A whole call, on the next stream.
  Passage Call() {
    stream_ += 2;
    return Send(Frame(kHeaders, kEndHeaders | kEndStream, stream_ - 2, headers_->Call()));
  }
  std::string Passed() { return std::exchange(out_, ""); }

  std::unique_ptr<Headers> headers_ = std::make_unique<Headers>();
  RateLimiter of_addresses_;
  std::unique_ptr<Http2Guard> guard_;
  Http2Guard::Time now_ = std::chrono::steady_clock::now();
  std::string unseen_, out_;
  uint32_t stream_ = 1;
};

TEST_F(Http2GuardTest, PassesCallsHoweverTheyAreCut) {
  std::string sent;
  for (uint32_t stream = 1; stream < 20; stream += 2) {
    const std::string block = headers_->Call();
    sent += Frame(kHeaders, kWithPriority, stream, std::string(5, '\0') + block.substr(0, 2));
    sent += Frame(kContinuation, 0, stream) + Frame(kContinuation, kEndHeaders, stream, block.substr(2));
    sent += Frame(kData, 0, stream, std::string(700, 'x')) + Frame(kData, kEndStream, stream);
    sent += Frame(kWindow, 0, 0, std::string("\0\0\1\0", 4));
  }
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{7}, size_t{300}, sent.size()}) {
    Make();
    for (size_t i = 0; i < sent.size(); i += piece) {
      ASSERT_EQ(Send(sent.substr(i, piece)), Passage::kPass) << guard_->why();
      // All but the part of a frame's header.
      EXPECT_LT(unseen_.size(), 9u);
    }
    EXPECT_EQ(Passed(), sent) << piece;
  }
}

TEST_F(Http2GuardTest, ResetsGoOnAsTimeDoes) {
  Http2Limits limits;
  limits.resets = {10, 3};
  Make(limits);
  uint32_t stream = 1;
  std::string sent;
  for (; stream < 20; stream += 2)
    sent += Frame(kHeaders, kEndHeaders, stream, headers_->Call()) + Frame(kReset, 0, stream, "\0\0\0\10");
  EXPECT_EQ(Send(sent), Passage::kWait);
  EXPECT_EQ(guard_->why(), "it resets too many streams");
  const std::string passed = Passed();
  EXPECT_EQ(sent.substr(0, passed.size()), passed);
  EXPECT_EQ(Send(""), Passage::kWait) << "it is as late as before";
  EXPECT_GT(guard_->again(), now_);
  EXPECT_LE(guard_->again(), now_ + milliseconds(101));
  now_ = guard_->again();
  EXPECT_EQ(Send(""), Passage::kWait);
  EXPECT_GT(Passed().size(), 0u) << "one more may pass";
  now_ += std::chrono::seconds(1);
  while (Send("") == Passage::kWait) now_ = guard_->again();
  EXPECT_TRUE(unseen_.empty());
}

TEST_F(Http2GuardTest, ConnectionsOfAnAddressShareTheirResets) {
  Http2Limits limits;
  limits.resets_of_address = {1, 5};
  const auto resets_that_pass = [&] {
    Make(limits);
    int passed = 0;
    for (uint32_t stream = 1; stream < 20; stream += 2) {
      if (Send(Frame(kHeaders, kEndHeaders, stream, headers_->Call()) +
               Frame(kReset, 0, stream, "\0\0\0\10")) != Passage::kPass)
        break;
      ++passed;
    }
    return passed;
  };
  EXPECT_EQ(resets_that_pass(), 5);
  EXPECT_EQ(resets_that_pass(), 0);
}

TEST_F(Http2GuardTest, HeadersThatAreLargerThanTheyLook) {
  Make();
  // RFC 7541: a field that is remembered (6.2.1), and then its place (62) again and again, a byte each.
  std::string block =
      headers_->Call() + std::string("\x40\x01x", 3) + "\x7F\xA1\x1E" + std::string(4000, 'v');
  block += std::string(1000, '\xBE');
  EXPECT_EQ(Send(Frame(kHeaders, kEndHeaders, 1, block)), Passage::kClose);
  EXPECT_THAT(std::string(guard_->why()), HasSubstr("larger"));
}

TEST_F(Http2GuardTest, HeadersWithoutEnd) {
  Make();
  EXPECT_EQ(Send(Frame(kHeaders, 0, 1, headers_->Call())), Passage::kPass);
  int frames = 0;
  while (frames < 10000 && Send(Frame(kContinuation, 0, 1)) == Passage::kPass) ++frames;
  EXPECT_LT(frames, 100);
  Make();
  EXPECT_EQ(Send(Frame(kHeaders, 0, 1, headers_->Block({{"x", std::string(14000, 'v')}}))), Passage::kPass);
  Passage verdict = Passage::kPass;
  for (int i = 0; i < 10 && verdict == Passage::kPass; ++i)
    verdict = Send(Frame(kContinuation, 0, 1, headers_->Block({{"x", std::string(14000, 'w')}})));
  EXPECT_EQ(verdict, Passage::kClose);
}

TEST_F(Http2GuardTest, FramesThatHttp2DoesNotHave) {
  const std::string call = headers_->Call();
  for (const auto& [sent, why] : std::vector<std::pair<std::string, std::string>>{
           {Frame(kContinuation, kEndHeaders, 1, call), "CONTINUATION of nothing"},
           {Frame(kHeaders, 0, 1, call) + Frame(kData, 0, 1), "within a header block"},
           {Frame(kHeaders, 0, 1, call) + Frame(kContinuation, 0, 3, call), "within a header block"},
           // gRPC would take the padding for headers.
           {Frame(kHeaders, kEndHeaders | kPadded, 1, std::string(1, '\0') + call), "padded"},
           // gRPC ignores these, and would take stream 1 for new after them.
           {Frame(kHeaders, kEndHeaders, 0x7FFFFFFE, call), "HEADERS"},
           {Frame(kHeaders, kEndHeaders | kWithPriority, 1, "123"), "HEADERS"},
           {Frame(kHeaders, kEndHeaders, 0, call), "HEADERS"},
           {Frame(kHeaders, kEndHeaders, 1, std::string(30, '\xFF')), "cannot be read"},
           {Frame(kHeaders, kEndHeaders, 1, "\xBE"), "cannot be read"},
           {Frame(kPush, kEndHeaders, 1, call), "promises"}}) {
    Make();
    EXPECT_EQ(Send(sent), Passage::kClose) << why;
    EXPECT_THAT(std::string(guard_->why()), HasSubstr(why));
  }
  guard_ = std::make_unique<Http2Guard>(Http2Limits(), of_addresses_, "10.0.0.7", nullptr);
  unseen_.clear();
  EXPECT_EQ(Send(Frame(kPing, 0, 0, "12345678")), Passage::kClose) << "SETTINGS come first";
}

TEST_F(Http2GuardTest, TriflesAreCountedAndDataAreNot) {
  Make();
  int pings = 0;
  while (pings < 100000 && Send(Frame(kPing, 0, 0, "12345678")) == Passage::kPass) ++pings;
  EXPECT_LT(pings, 1000);
  Make();
  EXPECT_EQ(Send(Frame(kHeaders, kEndHeaders, 1, headers_->Call())), Passage::kPass);
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(Send(Frame(kData, 0, 1, "x")), Passage::kPass);
}

TEST_F(Http2GuardTest, StreamsThatTheServerHasNotEnded) {
  Http2Limits limits;
  limits.streams = 10;
  Make(limits);
  for (int i = 0; i < 11; ++i) EXPECT_EQ(Call(), Passage::kPass);
  EXPECT_EQ(Call(), Passage::kWait);
  EXPECT_EQ(guard_->why(), "it leaves too many streams open");
  // The server's frames come in pieces.
  for (const char byte : Frame(kHeaders, kEndHeaders, 1, "abc") + Frame(kData, 0, 1, "xyz") +
                             Frame(kHeaders, kEndHeaders | kEndStream, 1, "d") +
                             Frame(kReset, 0, 3, "\0\0\0\0"))
    guard_->FromServer({&byte, 1});
  EXPECT_EQ(Send(""), Passage::kPass);
}

TEST_F(Http2GuardTest, StreamsThatNobodyEndsAreBounded) {
  Http2Limits limits;
  limits.streams = 10;
  limits.most_streams = 20;
  Make(limits);
  int opened = 0;
  Passage verdict = Passage::kPass;
  while (opened < 1000) {
    verdict = Call();
    while (verdict == Passage::kWait) {
      now_ = guard_->again();
      verdict = Send("");
    }
    if (verdict != Passage::kPass) break;
    ++opened;
  }
  EXPECT_EQ(opened, 20);
  EXPECT_EQ(verdict, Passage::kClose);
  EXPECT_THAT(std::string(guard_->why()), HasSubstr("more streams"));
}

TEST_F(Http2GuardTest, TheDoorTurnsCallsAwayBeforeTheirMessages) {
  std::vector<std::string> asked;
  Make({}, [&](std::string_view method, const std::string& authorization) {
    asked.push_back(absl::StrCat(std::string(method), " ", authorization));
    return authorization == "Bearer good" ? absl::OkStatus()
                                          : absl::UnauthenticatedError("no 100 % caller\n");
  });
  const std::string good = Frame(kHeaders, kEndHeaders, 1, headers_->Call("/a.B/C", "Bearer good")) +
                           Frame(kData, kEndStream, 1, "message");
  EXPECT_EQ(Send(good), Passage::kPass);
  EXPECT_EQ(Passed(), good);
  EXPECT_EQ(guard_->TakeAnswers(), "");

  // The server sees the headers, for those after them refer to them, and a reset.
  const std::string bad = Frame(kHeaders, kEndHeaders, 3, headers_->Call("/a.B/C", "Bearer bad"));
  EXPECT_EQ(Send(bad + Frame(kData, 0, 3, std::string(5000, 'x'))), Passage::kPass);
  EXPECT_EQ(Passed(), bad + Frame(kReset, 0, 3, std::string("\0\0\0\x08", 4)));
  EXPECT_EQ(asked.back(), "/a.B/C Bearer bad");
  // Not in the middle of a frame of the server's.
  const std::string frame = Frame(kData, 0, 1, "answer");
  guard_->FromServer(frame.substr(0, 11));
  EXPECT_EQ(guard_->TakeAnswers(), "");
  guard_->FromServer(frame.substr(11));
  const std::string answers = guard_->TakeAnswers();
  const size_t block = static_cast<uint8_t>(answers[2]) + 256u * static_cast<uint8_t>(answers[1]);
  EXPECT_EQ(answers.substr(3, 6), std::string("\x01\x05\0\0\0\x03", 6));
  EXPECT_EQ(Read(answers.substr(9, block)),
            ":status=200;content-type=application/grpc;grpc-status=16;grpc-message=no 100 %25 caller%0a;");
  // It ends the stream, and gives back the window of the connection.
  EXPECT_EQ(answers.substr(9 + block),
            Frame(kReset, 0, 3, std::string(4, '\0')) + Frame(kWindow, 0, 0, std::string("\0\0\x13\x88", 4)));

  const std::string again =
      Frame(kHeaders, kEndHeaders | kEndStream, 5, headers_->Call("/a.B/C", "Bearer good"));
  EXPECT_EQ(Send(Frame(kData, kEndStream, 3, "the rest") + again), Passage::kPass);
  EXPECT_EQ(Passed(), again);
}

TEST_F(Http2GuardTest, AnswersComeAfterTheServersFirstFrameAndNotWithinItsHeaders) {
  guard_ = std::make_unique<Http2Guard>(Http2Limits(), of_addresses_, "10.0.0.7",
                                        [](std::string_view, const std::string&) {
                                          return absl::PermissionDeniedError(std::string(100000, '\n'));
                                        });
  EXPECT_EQ(Send(Frame(kSettings, 0, 0) + Frame(kHeaders, kEndHeaders | kEndStream, 1, headers_->Call())),
            Passage::kPass);
  EXPECT_EQ(guard_->TakeAnswers(), "");
  guard_->FromServer(Frame(kSettings, 0, 0) + Frame(kHeaders, 0, 7, "abc"));
  EXPECT_EQ(guard_->TakeAnswers(), "");
  guard_->FromServer(Frame(kContinuation, kEndHeaders, 7, "abc"));
  const size_t answer = guard_->TakeAnswers().size();
  EXPECT_GT(answer, 100u);
  EXPECT_LT(answer, 16384u) << "a frame is no larger";
}

TEST_F(Http2GuardTest, AnAnswerOfTheDoorSaysWhenToAskAgain) {
  Make({}, [](std::string_view, const std::string&) {
    return RetryLater("too many", std::chrono::duration<double>(7));
  });
  EXPECT_EQ(Send(Frame(kHeaders, kEndHeaders | kEndStream, 1, headers_->Call())), Passage::kPass);
  const std::string answer = Read(guard_->TakeAnswers().substr(9));
  const std::string name = "grpc-status-details-bin=";
  ASSERT_NE(answer.find(name), std::string::npos) << answer;
  const size_t begin = answer.find(name) + name.size();
  std::string details;
  ASSERT_TRUE(absl::Base64Unescape(answer.substr(begin, answer.find(';', begin) - begin), &details));
  const absl::Status status =
      FromGrpcStatus(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many", details));
  EXPECT_EQ(RetrySeconds(status), 7);
}

TEST_F(Http2GuardTest, CallsTurnedAwayAreForgottenSometime) {
  Http2Limits limits;
  limits.resets = limits.resets_of_address = {1e6, 1e6};
  limits.refused = 3;
  Make(limits, [](std::string_view, const std::string&) { return absl::PermissionDeniedError("no"); });
  for (uint32_t stream = 1; stream < 1000; stream += 2)
    ASSERT_EQ(Send(Frame(kHeaders, kEndHeaders, stream, headers_->Call())), Passage::kPass);
  Passed();
  const std::string old = Frame(kData, 0, 1, "x");
  EXPECT_EQ(Send(old + Frame(kData, 0, 999, "x")), Passage::kPass);
  EXPECT_EQ(Passed(), old) << "gRPC knows no such stream";
}

TEST_F(Http2GuardTest, TwoAuthorizationsAreNone) {
  std::string shown;
  Make({}, [&](std::string_view, const std::string& authorization) {
    shown = authorization;
    return absl::OkStatus();
  });
  EXPECT_EQ(
      Send(Frame(kHeaders, kEndHeaders, 1,
                 headers_->Block(
                     {{":path", "/a.B/C"}, {"authorization", "Bearer a"}, {"authorization", "Bearer b"}}))),
      Passage::kPass);
  EXPECT_EQ(shown, "two headers");
}

TEST_F(Http2GuardTest, CallsTurnedAwayCountAsResets) {
  Http2Limits limits;
  limits.resets = {1, 3};
  Make(limits, [](std::string_view, const std::string&) { return absl::PermissionDeniedError("no"); });
  int passed = 0;
  for (uint32_t stream = 1; stream < 100; stream += 2) {
    if (Send(Frame(kHeaders, kEndHeaders | kEndStream, stream, headers_->Call())) != Passage::kPass) break;
    ++passed;
  }
  EXPECT_LE(passed, 5);
}

}  // namespace
}  // namespace fusion

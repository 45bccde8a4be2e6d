#include "server/connection/http2_guard.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/identity/authorization_header.h"
#include "server/service/status_conversion.h"

namespace fusion {
namespace {

constexpr size_t kFrameHeader = 9;
constexpr size_t kFieldOverhead = 32;  // RFC 7540, 6.5.2
// Bytes of a message: three times as many on the wire at most, and a frame has 16,384.
constexpr size_t kMostMessage = 1000;
constexpr size_t kMostDetails = 4000;
constexpr uint32_t kNoError = 0, kCancel = 8;
enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriorityFrame = 2,
  kReset = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9
};
enum FrameFlag : uint8_t { kEndStream = 0x1, kEndHeaders = 0x4, kPadded = 0x8, kPriority = 0x20 };

uint32_t BigEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

std::string BigEndianBytes(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

void AppendFrame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload, std::string* out) {
  out->append(BigEndianBytes(static_cast<uint32_t>(payload.size())), 1);
  out->push_back(static_cast<char>(type));
  out->push_back(static_cast<char>(flags));
  out->append(BigEndianBytes(stream));
  out->append(payload);
}

// RFC 7541, 5.1 and 5.2, with a prefix of 7 bits and without Huffman's code.
void AppendText(std::string_view text, std::string* block) {
  size_t rest = text.size();
  if (rest < 127) {
    block->push_back(static_cast<char>(rest));
  } else {
    block->push_back(127);
    for (rest -= 127; rest >= 128; rest /= 128) block->push_back(static_cast<char>(rest % 128 + 128));
    block->push_back(static_cast<char>(rest));
  }
  block->append(text);
}

// RFC 7541, 6.2.2: one that is remembered by neither side.
void AppendField(std::string_view name, std::string_view value, std::string* block) {
  block->push_back(0);
  AppendText(name, block);
  AppendText(value, block);
}

// Of grpc-message (gRPC over HTTP2).
std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%')
      encoded.push_back(c);
    else
      absl::StrAppend(&encoded, "%", absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
  }
  return encoded;
}

std::string_view View(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

nghttp2_hd_inflater* NewInflater() {
  nghttp2_hd_inflater* inflater = nullptr;
  return nghttp2_hd_inflate_new(&inflater) == 0 ? inflater : nullptr;
}

}  // namespace

Http2Guard::Http2Guard(const Http2Limits& limits, RateLimiter& of_addresses, std::string address, Door door)
    : limits_(limits),
      of_addresses_(of_addresses),
      address_(std::move(address)),
      door_(std::move(door)),
      inflater_(NewInflater(), nghttp2_hd_inflate_del) {}

Http2Guard::~Http2Guard() = default;

Http2Guard::Verdict Http2Guard::Close(std::string_view why) {
  why_ = why;
  return Verdict::kClose;
}

Http2Guard::Verdict Http2Guard::Count(RateLimiter& limiter, const std::string& key, const RateLimit& limit,
                                      std::string_view why, Time now) {
  const auto wait = limiter.Take(key, limit, now);
  if (wait.count() <= 0) return Verdict::kPass;
  again_ = now + std::chrono::duration_cast<Time::duration>(wait) + Time::duration(1);
  why_ = why;
  return Verdict::kWait;
}

Http2Guard::Verdict Http2Guard::CountReset(Time now) {
  return Count(own_, "reset", limits_.resets, "it resets too many streams", now);
}

Http2Guard::Verdict Http2Guard::CountResetOfAddress(Time now) {
  return Count(of_addresses_, address_, limits_.resets_of_address,
               "the connections of its address reset too many streams", now);
}

Http2Guard::Verdict Http2Guard::FromClient(std::string_view bytes, Time now, std::string* out, size_t* seen) {
  *seen = 0;
  while (*seen < bytes.size()) {
    const std::string_view rest = bytes.substr(*seen);
    if (left_ == 0) {
      if (rest.size() < kFrameHeader) break;
      if (const Verdict verdict = Begin(ReadHeader(rest), now); verdict != Verdict::kPass) return verdict;
      if (!dropped_) out->append(rest.substr(0, kFrameHeader));
      *seen += kFrameHeader;
    } else {
      const std::string_view payload = rest.substr(0, left_);
      if (const Verdict verdict = ReadPayload(payload, now); verdict != Verdict::kPass) return verdict;
      if (!dropped_) out->append(payload);
      left_ -= static_cast<uint32_t>(payload.size());
      *seen += payload.size();
    }
    if (left_ == 0 && turned_away_ != 0) {
      // The server, which has the headers for the sake of those that come after, is to forget the call.
      AppendFrame(kReset, 0, turned_away_, BigEndianBytes(kCancel), out);
      turned_away_ = 0;
    }
  }
  return Verdict::kPass;
}

void Http2Guard::AskAtDoor(Time now) {
  const absl::Status status = door_(method_, authorization_);
  if (status.ok()) return;
  const uint32_t stream = frame_.stream;
  std::string block(1, '\x88');  // :status 200
  AppendField("content-type", "application/grpc", &block);
  AppendField("grpc-status", absl::StrCat(static_cast<int>(status.code())), &block);
  AppendField("grpc-message", PercentEncoded(std::string(status.message().substr(0, kMostMessage))), &block);
  // When to ask again, for one.
  const std::string details = ToGrpcStatus(status).error_details();
  if (!details.empty() && details.size() <= kMostDetails)
    AppendField("grpc-status-details-bin", absl::Base64Escape(details), &block);
  AppendFrame(kHeaders, kEndHeaders | kEndStream, stream, block, &answers_);
  open_.erase(stream);
  turned_away_ = stream;
  if (!client_ends_) {
    AppendFrame(kReset, 0, stream, BigEndianBytes(kNoError), &answers_);
    // gRPC's clients may say nothing more of a call that has ended: the oldest is forgotten. What is still
    // sent for it, the server throws away.
    refused_.insert(stream);
    if (refused_.size() > limits_.refused) refused_.erase(refused_.begin());
  }
  // To the server it is a reset like others.
  owes_own_ = own_.Take("reset", limits_.resets, now).count() > 0;
  owes_address_ = of_addresses_.Take(address_, limits_.resets_of_address, now).count() > 0;
}

std::string Http2Guard::TakeAnswers() {
  // Not before the server's first frame, nor within one, nor within a header block.
  if (!server_spoke_ || server_left_ > 0 || !server_header_.empty() || server_block_) return "";
  return std::exchange(answers_, "");
}

void Http2Guard::FromServer(std::string_view bytes) {
  while (!bytes.empty()) {
    if (server_left_ > 0) {
      const size_t count = std::min<size_t>(server_left_, bytes.size());
      server_left_ -= static_cast<uint32_t>(count);
      bytes.remove_prefix(count);
      continue;
    }
    const size_t count = std::min(kFrameHeader - server_header_.size(), bytes.size());
    server_header_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (server_header_.size() < kFrameHeader) return;
    const Frame frame = ReadHeader(server_header_);
    server_header_.clear();
    server_left_ = frame.length;
    server_spoke_ = true;
    if (frame.type == kHeaders || frame.type == kContinuation)
      server_block_ = (frame.flags & kEndHeaders) == 0;
    const bool ends = (frame.type == kHeaders || frame.type == kData) && (frame.flags & kEndStream) != 0;
    if (ends || frame.type == kReset) open_.erase(frame.stream);
  }
}

Http2Guard::Frame Http2Guard::ReadHeader(std::string_view bytes) {
  Frame frame;
  frame.length = BigEndian(bytes.substr(0, 3));
  frame.type = static_cast<uint8_t>(bytes[3]);
  frame.flags = static_cast<uint8_t>(bytes[4]);
  frame.stream = BigEndian(bytes.substr(5, 4)) & 0x7FFFFFFF;
  return frame;
}

Http2Guard::Verdict Http2Guard::Begin(const Frame& frame, Time now) {
  // What a call that was turned away could not take.
  if (owes_own_ && CountReset(now) == Verdict::kWait) return Verdict::kWait;
  owes_own_ = false;
  if (owes_address_ && CountResetOfAddress(now) == Verdict::kWait) return Verdict::kWait;
  owes_address_ = false;
  if (!settled_ && frame.type != kSettings) return Close("its first frame is not SETTINGS");
  if (block_stream_ != 0 && (frame.type != kContinuation || frame.stream != block_stream_))
    return Close("another frame within a header block");
  bool block = false;
  prefix_ = 0;
  switch (frame.type) {
    case kReset:
      if (!counted_ && CountReset(now) == Verdict::kWait) return Verdict::kWait;
      counted_ = true;
      if (CountResetOfAddress(now) == Verdict::kWait) return Verdict::kWait;
      counted_ = false;
      open_.erase(frame.stream);
      refused_.erase(frame.stream);
      break;
    case kData:
      if (frame.length > 0 || (frame.flags & kEndStream) != 0) break;
      [[fallthrough]];
    case kPing:
    case kSettings:
    case kPriorityFrame:
    case kGoAway:
      if (Count(own_, "trifle", limits_.trifles, "it sends too many frames that ask for nothing", now) ==
          Verdict::kWait)
        return Verdict::kWait;
      break;
    case kHeaders:
      // gRPC does not know padding here: it would read other headers than the guard. And it ignores even
      // streams, so that what is new to one would not be to the other.
      if ((frame.flags & kPadded) != 0) return Close("padded headers");
      if (frame.stream % 2 == 0) return Close("a HEADERS frame that is none");
      asks_ = false;
      if (frame.stream > last_stream_)
        if (const Verdict verdict = Open(frame.stream, now); verdict != Verdict::kPass) return verdict;
      client_ends_ = (frame.flags & kEndStream) != 0;
      block = true;
      prefix_ = (frame.flags & kPriority) != 0 ? 5 : 0;
      block_stream_ = frame.stream;
      block_sent_ = block_read_ = 0;
      continuations_ = 0;
      if (frame.length < prefix_) return Close("a HEADERS frame that is none");
      break;
    case kContinuation:
      block = true;
      if (block_stream_ == 0) return Close("a CONTINUATION of nothing");
      if (++continuations_ > limits_.continuations) return Close("a header block in too many frames");
      break;
    case kPushPromise:
      return Close("a client that promises");
    default:
      break;
  }
  settled_ = true;
  block_read_whole_ = true;
  dropped_ = frame.type == kData && refused_.contains(frame.stream);
  // What the server does not see it does not make room for.
  if (dropped_ && frame.length > 0) AppendFrame(kWindowUpdate, 0, 0, BigEndianBytes(frame.length), &answers_);
  if ((frame.flags & kEndStream) != 0 && (frame.type == kData || frame.type == kHeaders))
    refused_.erase(frame.stream);
  frame_ = frame;
  left_ = frame.length;
  if (block) {
    block_sent_ += frame.length;
    if (block_sent_ > limits_.header_bytes_sent) return Close("headers larger than a request's may be");
    block_left_ = frame.length - prefix_;
    block_read_whole_ = frame.length == 0;
    if (block_read_whole_) return ReadBlock("", true, now);
  }
  return Verdict::kPass;
}

Http2Guard::Verdict Http2Guard::Open(uint32_t stream, Time now) {
  if (open_.size() >= limits_.most_streams) return Close("more streams than a connection may have");
  if (open_.size() >= limits_.streams && Count(own_, "stream", limits_.further_streams,
                                               "it leaves too many streams open", now) == Verdict::kWait)
    return Verdict::kWait;
  last_stream_ = stream;
  open_.insert(stream);
  asks_ = door_ != nullptr;
  method_.clear();
  authorization_.clear();
  return Verdict::kPass;
}

Http2Guard::Verdict Http2Guard::ReadPayload(std::string_view bytes, Time now) {
  if (block_read_whole_) return Verdict::kPass;
  const auto skipped = std::min<uint32_t>(prefix_, static_cast<uint32_t>(bytes.size()));
  prefix_ -= skipped;
  if (prefix_ > 0) return Verdict::kPass;
  const std::string_view block = bytes.substr(skipped, block_left_);
  block_left_ -= static_cast<uint32_t>(block.size());
  block_read_whole_ = block_left_ == 0;
  return ReadBlock(block, block_read_whole_, now);
}

// `last`: of the frame's block.
Http2Guard::Verdict Http2Guard::ReadBlock(std::string_view bytes, bool last, Time now) {
  const bool final = last && (frame_.flags & kEndHeaders) != 0;
  if (inflater_ == nullptr) return Close("there is no memory");
  const auto* next = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  for (;;) {
    nghttp2_nv field{};
    int flags = 0;
    const ssize_t used = nghttp2_hd_inflate_hd2(inflater_.get(), &field, &flags, next, left, final ? 1 : 0);
    if (used < 0) return Close("headers that cannot be read");
    next += used;
    left -= static_cast<size_t>(used);
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
      block_read_ += field.namelen + field.valuelen + kFieldOverhead;
      if (block_read_ > limits_.header_bytes) return Close("headers larger than a request's may be");
      const std::string_view name = View(field.name, field.namelen),
                             value = View(field.value, field.valuelen);
      if (asks_ && name == ":path") method_ = method_.empty() ? std::string(value) : "two paths";
      if (asks_ && name == kAuthorizationHeader) AddAuthorization(value, &authorization_);
    }
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) {
      nghttp2_hd_inflate_end_headers(inflater_.get());
      block_stream_ = 0;
      if (asks_) AskAtDoor(now);
      return Verdict::kPass;
    }
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 && left == 0) return Verdict::kPass;
  }
}

}  // namespace fusion

#include "server/rpc/tune_stream.h"

#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"
#include "server/identity/method_access.h"
#include "server/identity/shown_credentials.h"
#include "server/rpc/pooled_call.h"

namespace fusion {
namespace {

constexpr char kMethod[] = "/fusion.v1.TunerService/Tune";
// While so many batches wait for the disk no further one is read: a disk that is slow, or full, slows the
// programs' reports down and costs no memory.
constexpr uint64_t kMostUnacknowledged = 64;
constexpr std::chrono::seconds kAuthenticateEvery{1};

// The number of the section that a message declares, if it is one that does but for its text.
std::optional<uint32_t> DeclaredSection(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return std::nullopt;
  std::string text;
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  google::protobuf::UnknownFieldSet request, declare;
  if (!request.ParseFromString(text) || request.field_count() != 1) return std::nullopt;
  const google::protobuf::UnknownField& field = request.field(0);
  if (field.number() != v1::TuneRequest::kDeclareFieldNumber ||
      field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED ||
      !declare.ParseFromString(field.length_delimited()))
    return std::nullopt;
  for (int i = 0; i < declare.field_count(); ++i)
    if (declare.field(i).number() == v1::DeclareSection::kSectionFieldNumber &&
        declare.field(i).type() == google::protobuf::UnknownField::TYPE_VARINT)
      return static_cast<uint32_t>(declare.field(i).varint());
  return std::nullopt;
}

// Messages are handled one after the other: reports where they are read, which takes microseconds; Hello and
// declarations, which wait for the disk, on the pool. Reads and writes go on side by side.
class TuneStream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  TuneStream(TuningRegistry& tunings, boost::asio::thread_pool& pool, AccessGate& gate,
             const grpc::CallbackServerContext& call)
      : tunings_(tunings),
        pool_(pool),
        gate_(gate),
        shown_(ShownBy(call, gate)),
        largest_(FindMethodAccess(kMethod)->maximum_request_bytes),
        link_(std::make_shared<Link>()),
        outbox_(std::make_shared<ProgramOutbox>([link = link_] {
          std::lock_guard lock(link->mutex);
          if (link->stream != nullptr) link->stream->Send();
        })) {
    link_->stream = this;
  }

  void Begin() {
    absl::StatusOr<Principal> caller = gate_.Admit(shown_, kMethod, 0);
    if (!caller.ok()) return End(caller.status());
    absl::StatusOr<std::shared_ptr<void>> ticket = gate_.AdmitProgram(*caller);
    if (!ticket.ok()) return End(ticket.status());
    ticket_ = *std::move(ticket);
    authenticated_ = std::chrono::steady_clock::now();
    std::lock_guard lock(mutex_);
    ReadIfMay();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return ReadsDone();
    {
      std::lock_guard lock(mutex_);
      reading_ = false;
      // It was on its way when the stream ended: nothing holds this object any more while it is handled.
      if (finished_) return;
      handling_ = true;
    }
    if (read_.Length() > largest_)
      return Handled(absl::ResourceExhaustedError(
          absl::StrCat("the message has ", read_.Length(), " bytes; at most ", largest_)));
    if (absl::Status good = StillGood(); !good.ok()) return Handled(good);
    const grpc::ByteBuffer bytes = read_;  // the same memory: reading clears the buffer
    if (!grpc::SerializationTraits<v1::TuneRequest>::Deserialize(&read_, &request_).ok())
      return Handled(RunCatching([&] { return HandleUnreadable(bytes); }));
    if (request_.has_reports() && program_) {
      {
        std::lock_guard lock(mutex_);
        reported_ = std::max(reported_, request_.reports().sequence());
      }
      return Handled(RunCatching([this] { return tunings_.Report(*program_, request_.reports()); }));
    }
    boost::asio::post(pool_, [this] { Handled(RunCatching([this] { return HandleSlowly(); })); });
  }

  void OnWriteDone(bool ok) override {
    {
      std::lock_guard lock(mutex_);
      writing_ = false;
    }
    if (!ok) return End(absl::CancelledError("the program has gone"));
    Send();
  }

  void OnCancel() override { End(absl::CancelledError("cancelled")); }

  void OnDone() override {
    {
      std::lock_guard lock(link_->mutex);
      link_->stream = nullptr;
    }
    if (!program_) {
      delete this;
      return;
    }
    boost::asio::post(pool_, [this] {
      tunings_.Disconnect(*program_);
      delete this;
    });
  }

 private:
  // Wake-ups reach the stream through this, so that one that comes late finds nothing.
  struct Link {
    std::mutex mutex;
    TuneStream* stream = nullptr;  // guarded by mutex
  };

  // A token may have been revoked, a certificate may have expired since the stream began.
  absl::Status StillGood() {
    const auto now = std::chrono::steady_clock::now();
    if (now - authenticated_ < kAuthenticateEvery) return absl::OkStatus();
    authenticated_ = now;
    absl::Status good = gate_.Authenticate(shown_).status();
    if (!good.ok()) gate_.RecordEnd(nullptr, shown_, kMethod, "", good);
    return good;
  }

  // A declaration with text that is not UTF-8 is refused; it does not end the stream, which has other
  // sections.
  absl::Status HandleUnreadable(const grpc::ByteBuffer& bytes) {
    const std::optional<uint32_t> section = program_ ? DeclaredSection(bytes) : std::nullopt;
    if (!section)
      return absl::InvalidArgumentError("the message cannot be read: its bytes are no TuneRequest");
    return tunings_.RefuseDeclaration(
        *program_, *section,
        absl::InvalidArgumentError("the declaration cannot be read: names and other text must be UTF-8"));
  }

  absl::Status HandleSlowly() {
    switch (request_.kind_case()) {
      case v1::TuneRequest::kHello: {
        if (program_) return absl::InvalidArgumentError("hello: comes once, before everything else");
        FUSION_ASSIGN_OR_RETURN(std::shared_ptr<TuningProgram> program,
                                tunings_.Connect(request_.hello(), outbox_));
        std::lock_guard lock(mutex_);
        program_ = std::move(program);
        return absl::OkStatus();
      }
      case v1::TuneRequest::kDeclare:
        if (!program_) return absl::InvalidArgumentError("declare: hello comes first");
        return tunings_.Declare(*program_, request_.declare());
      case v1::TuneRequest::kReports:
        return absl::InvalidArgumentError("reports: hello comes first");
      case v1::TuneRequest::KIND_NOT_SET:
        break;
    }
    return absl::InvalidArgumentError("a message of a kind that this server does not know");
  }

  void Handled(const absl::Status& status) {
    std::unique_lock lock(mutex_);
    handling_ = false;
    if (!status.ok() && !end_) end_ = status;
    if (end_) return FinishIfDone(std::move(lock));
    ReadIfMay();
  }

  // With mutex_ held, so that the stream does not end between the question and the read.
  void ReadIfMay() {
    if (end_ || reading_ || handling_ || reads_done_) return;
    if (program_ && program_->unacknowledged() >= kMostUnacknowledged)
      return;  // asked again at the next acknowledgement
    reading_ = true;
    StartRead(&read_);
  }

  // The program has said everything: what it said is still acknowledged.
  void ReadsDone() {
    std::unique_lock lock(mutex_);
    reads_done_ = true;
    if (end_) return FinishIfDone(std::move(lock));
    lock.unlock();
    Send();
  }

  // Sends what waits, if nothing is being sent.
  void Send() {
    std::unique_lock lock(mutex_);
    if (finished_ || writing_) return;
    if (!end_)
      if (std::optional<absl::Status> ended = outbox_->ended()) end_ = *std::move(ended);
    if (end_) return FinishIfDone(std::move(lock));
    std::optional<v1::TuneResponse> response = outbox_->Next();
    if (!response) {
      // It is not enough that everything is stored: it may not have been put into the outbox yet.
      if (reads_done_ && acknowledged_ >= reported_) {
        end_ = absl::OkStatus();
        FinishIfDone(std::move(lock));
      }
      return;
    }
    if (response->has_acknowledged())
      acknowledged_ = std::max(acknowledged_, response->acknowledged().sequence());
    written_.Clear();
    bool own_buffer = false;
    if (!grpc::SerializationTraits<v1::TuneResponse>::Serialize(*response, &written_, &own_buffer).ok()) {
      end_ = absl::InternalError("an answer could not be written as bytes");
      return FinishIfDone(std::move(lock));
    }
    writing_ = true;
    StartWrite(&written_);
    if (response->has_acknowledged()) ReadIfMay();
  }

  void End(absl::Status status) {
    std::unique_lock lock(mutex_);
    if (!end_) end_ = std::move(status);
    FinishIfDone(std::move(lock));
  }

  // Not while a message is handled, or one is being written.
  void FinishIfDone(std::unique_lock<std::mutex> lock) {
    if (finished_ || handling_ || writing_ || !end_) return;
    finished_ = true;
    const grpc::Status status = ToGrpcStatus(*end_);
    lock.unlock();
    Finish(status);
  }

  TuningRegistry& tunings_;
  boost::asio::thread_pool& pool_;
  AccessGate& gate_;
  const ShownCredentials shown_;
  const size_t largest_;
  std::shared_ptr<void> ticket_;  // constant after Begin
  const std::shared_ptr<Link> link_;
  const std::shared_ptr<ProgramOutbox> outbox_;

  // Used by whoever handles the message.
  grpc::ByteBuffer read_;
  v1::TuneRequest request_;
  std::chrono::steady_clock::time_point authenticated_;
  // Constant after Hello was handled; set with mutex_ held.
  std::shared_ptr<TuningProgram> program_;

  grpc::ByteBuffer written_;

  std::mutex mutex_;
  // Guarded by mutex_.
  bool reading_ = false;
  bool handling_ = false;
  bool writing_ = false;
  bool reads_done_ = false;
  bool finished_ = false;
  uint64_t reported_ = 0;      // the last batch that was read
  uint64_t acknowledged_ = 0;  // the last one of which the program was told that it is stored
  std::optional<absl::Status> end_;
};

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartTuneStream(
    TuningRegistry& tunings, boost::asio::thread_pool& pool, AccessGate& gate,
    const grpc::CallbackServerContext& call) {
  auto* stream = new TuneStream(tunings, pool, gate, call);
  stream->Begin();
  return stream;
}

}  // namespace fusion

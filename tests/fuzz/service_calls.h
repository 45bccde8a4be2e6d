// Calls of a whole server's methods, in its own process, made of any bytes: which method, and messages that
// an honest client could send, with some fields changed, or any bytes in their place. Streams of programs
// that tune, and byte strings up and down, are among them. Every call ends, with a status that its caller can
// act upon; what is answered is of the kind that was asked for.
#pragma once

#include <google/protobuf/descriptor.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rpc/chunks.h"
#include "base/temporary_directory.h"
#include "fusion/v1/admin.pb.h"
#include "fusion/v1/optimizer.pb.h"
#include "fusion/v1/tuner.pb.h"
#include "fusion/v1/worker.pb.h"
#include "server/rpc/server.h"
#include "server/upkeep/data_directory.h"
#include "tests/fuzz/message_input.h"
#include "tests/fuzz/script_reader.h"
#include "tests/generic_call.h"

namespace fusion {

class ServiceCalls {
 public:
  // Jobs end at once: worker_sequences.h is about what workers do with tasks.
  ServiceCalls() {
    spdlog::set_level(spdlog::level::off);
    SilenceProtobuf();
    directory_ = *TemporaryDirectory::Create();
    ServerOptions options;
    options.data_directory = directory_->path();
    options.runner.pipeline = [](const v1::SubmitRequest&, const PipelineContext&) {
      return v1::JobResult();
    };
    server_ = *Server::Start(options);
    channel_ = server_->InProcessChannel();
    for (const google::protobuf::FileDescriptor* file :
         {v1::CreateTokenRequest::descriptor()->file(), v1::SubmitRequest::descriptor()->file(),
          v1::SynchronizeRequest::descriptor()->file(), v1::TuneRequest::descriptor()->file()})
      for (int i = 0; i < file->service_count(); ++i)
        for (int j = 0; j < file->service(i)->method_count(); ++j)
          methods_.push_back(file->service(i)->method(j));
    MakeThings();
  }
  ~ServiceCalls() {
    channel_.reset();
    server_.reset();
    const auto store = OpenSqliteStore(DatabasePath(directory_->path()));
    Require(store.ok() && (*store)->CheckIntegrity().ok(), "the store is not sound");
  }

  void Run(const std::string& bytes) {
    ScriptReader in(bytes);
    for (int calls = 0; calls < kMostCalls && !in.Done(); ++calls) {
      // Half of them are the streams, which have more to be wrong.
      const int which = in.Byte();
      const google::protobuf::MethodDescriptor* method =
          methods_[static_cast<size_t>(which) % methods_.size()];
      if (which >= 192)
        method = MethodNamed("Tune");
      else if (which >= 160)
        method = MethodNamed("WriteBlob");
      Call(*method, in);
    }
  }
  int64_t calls() const { return calls_; }
  // Calls that were answered with OK.
  int64_t served() const { return served_; }

 private:
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;
  static constexpr int kMostCalls = 8, kMostDepth = 6;
  // A call that is not answered within this hangs.
  static constexpr std::chrono::seconds kPatience{60};

  const google::protobuf::MethodDescriptor* MethodNamed(const std::string& name) const {
    for (const google::protobuf::MethodDescriptor* method : methods_)
      if (method->name() == name) return method;
    Require(false, "a method is missing");
    return nullptr;
  }
  static std::string PathOf(const google::protobuf::MethodDescriptor& method) {
    return absl::StrCat("/", method.service()->full_name(), "/", method.name());
  }
  template <class Answer>
  Answer Ask(const std::string& method, const std::vector<std::string>& messages) {
    std::vector<std::string> answers;
    const grpc::Status status =
        CallMethod(channel_, PathOf(*MethodNamed(method)), messages, kPatience, &answers);
    Answer answer;
    Require(status.ok() && !answers.empty() && answer.ParseFromString(answers.back()),
            "an honest call is not served");
    return answer;
  }

  // One of each of the things that requests name.
  void MakeThings() {
    v1::SubmitRequest submit;
    *submit.mutable_source() = Source();
    submit.set_target(v1::HOST);
    job_ = Ask<v1::Job>("Submit", {submit.SerializeAsString()}).name();
    v1::CreateTokenRequest token;
    token.set_principal("eva");
    token.set_role(v1::USER);
    token_ = Ask<v1::CreateTokenResponse>("CreateToken", {token.SerializeAsString()}).token().name();
    digest_ = Ask<v1::WriteBlobResponse>("WriteBlob", {UploadOf("some bytes").SerializeAsString()}).digest();
    Ask<v1::SynchronizeResponse>("Synchronize", {State().SerializeAsString()});
    v1::TuneRequest hello, declare;
    hello.mutable_hello()->set_process("p0");
    *declare.mutable_declare() = Declare(0);
    Ask<v1::TuneResponse>("Tune", {hello.SerializeAsString(), declare.SerializeAsString()});
    const auto tunings = Ask<v1::ListTuningsResponse>("ListTunings", {""});
    Require(tunings.tunings_size() == 1, "nothing is tuned");
    tuning_ = tunings.tunings(0).name();
  }
  static v1::GraphSource Source() {
    v1::GraphSource source;
    source.set_fuse(
        "size n = 1000;\nvector[n] x, y, z, v;\ninput x, y;\nz = vadd(x, y);\nv = vmul(z, y);\nreturn v;\n");
    return source;
  }
  static v1::SynchronizeRequest State() {
    v1::SynchronizeRequest state;
    state.set_worker("w");
    state.set_instance("1");
    state.add_builds()->set_target(v1::HOST);
    state.add_devices()->set_uuid("CPU-1");
    state.set_free_build_slots(1);
    return state;
  }
  static v1::Chunk UploadOf(const std::string& bytes) {
    v1::Chunk chunk;
    chunk.set_digest(BlobDigest(bytes));
    chunk.set_total_bytes(static_cast<int64_t>(bytes.size()));
    chunk.set_data(bytes);
    return chunk;
  }
  static v1::DeclareSection Declare(uint32_t section) {
    v1::DeclareSection declare;
    declare.set_section(section);
    v1::SectionDeclaration* declaration = declare.mutable_declaration();
    declaration->set_program("p");
    declaration->set_section(absl::StrCat("s", section));
    declaration->set_device_class("cpu");
    v1::TuningParameter* tile = declaration->add_parameters();
    tile->set_name("tile");
    tile->mutable_integer()->set_lower(1);
    tile->mutable_integer()->set_upper(8);
    tile->mutable_integer()->set_step(1);
    v1::TuningParameter* stages = declaration->add_parameters();
    stages->set_name("stages");
    stages->mutable_power_of_two()->set_lower(1);
    stages->mutable_power_of_two()->set_upper(4);
    stages->set_condition("tile > 2");
    return declare;
  }

  // Makes a message that an honest client could send.
  std::unique_ptr<Message> Honest(const google::protobuf::MethodDescriptor& method) const {
    std::unique_ptr<Message> message(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(method.input_type())->New());
    if (auto* submit = dynamic_cast<v1::SubmitRequest*>(message.get())) {
      *submit->mutable_source() = Source();
      submit->set_target(v1::HOST);
      submit->mutable_hints()->add_together()->add_values("z");
    } else if (auto* explain = dynamic_cast<v1::ExplainRequest*>(message.get())) {
      *explain->mutable_source() = Source();
      explain->set_target(v1::HOST);
      explain->set_candidates(3);
      explain->add_why("z");
      explain->add_why("v");
      explain->mutable_hints()->add_apart()->add_values("z");
    } else if (auto* check = dynamic_cast<v1::CheckRequest*>(message.get())) {
      *check->mutable_source() = Source();
    } else if (auto* state = dynamic_cast<v1::SynchronizeRequest*>(message.get())) {
      *state = State();
      state->add_tasks()->set_task("tasks/1");
    } else if (auto* token = dynamic_cast<v1::CreateTokenRequest*>(message.get())) {
      token->set_principal("eva");
      token->set_role(v1::USER);
      token->add_scopes("read");
    } else if (auto* read = dynamic_cast<v1::ReadBlobRequest*>(message.get())) {
      read->set_digest(digest_);
    } else if (const Field* name = method.input_type()->FindFieldByName("name"); name != nullptr) {
      const std::string& of = method.name();
      message->GetReflection()->SetString(message.get(), name,
                                          of.find("Tuning") != of.npos   ? tuning_
                                          : of.find("Job") != of.npos    ? job_
                                          : of.find("Token") != of.npos  ? token_
                                          : of.find("Worker") != of.npos ? "workers/w"
                                                                         : "vadd");
    } else if (const Field* job = method.input_type()->FindFieldByName("job"); job != nullptr) {
      message->GetReflection()->SetString(message.get(), job, job_);
    }
    return message;
  }

  std::string Text(ScriptReader& in) const {
    static const char* const kTexts[] = {
        "",     "z",    "v",        "vadd", "1",  "-1",     "sha256:",   "jobs/",    "tunings/", "workers/w",
        "../x", "read", "tile > 1", "p0",   "p1", "x86-64", "row_panel", "\xC3\xA4", "CPU-1",    "s0"};
    const int which = in.Below(28);
    switch (which) {
      case 20:
        return job_;
      case 21:
        return token_;
      case 22:
        return digest_;
      case 23:
        return tuning_;
      case 24:
        return std::string(static_cast<size_t>(in.Byte()) * 64, 'a');
      default:
        return which < 20 ? kTexts[which] : in.Bytes(static_cast<size_t>(in.Below(32)));
    }
  }
  static int64_t Integer(ScriptReader& in) {
    constexpr int64_t kEdges[] = {0,
                                  1,
                                  -1,
                                  2,
                                  3,
                                  8,
                                  1000,
                                  1001,
                                  1 << 20,
                                  std::numeric_limits<int32_t>::max(),
                                  std::numeric_limits<int32_t>::min(),
                                  std::numeric_limits<int64_t>::max(),
                                  std::numeric_limits<int64_t>::min()};
    const size_t which = in.Byte();
    return which < std::size(kEdges) ? kEdges[which] : static_cast<int64_t>(which) - 128;
  }
  static double Number(ScriptReader& in) {
    using Limits = std::numeric_limits<double>;
    constexpr double kEdges[] = {0,
                                 1,
                                 -1,
                                 0.5,
                                 1e-300,
                                 1e300,
                                 -1e300,
                                 Limits::infinity(),
                                 -Limits::infinity(),
                                 1e-9,
                                 3,
                                 Limits::denorm_min(),
                                 9007199254740993.0};
    const size_t which = in.Byte();
    if (which == 255) return Limits::quiet_NaN();
    return which < std::size(kEdges) ? kEdges[which] : static_cast<double>(which) / 16;
  }

  // Changes one field, anywhere in the message.
  void Change(Message* message, ScriptReader& in, int depth = 0) const {
    const auto* descriptor = message->GetDescriptor();
    const auto* reflection = message->GetReflection();
    if (descriptor->field_count() == 0) return;
    const Field* field = descriptor->field(in.Below(descriptor->field_count()));
    const int how = in.Byte();
    if (how % 16 == 15) return reflection->ClearField(message, field);
    const bool repeated = field->is_repeated();
    const int size = repeated ? reflection->FieldSize(*message, field) : 0;
    if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
      if (depth == kMostDepth) return;
      Message* inner = !repeated ? reflection->MutableMessage(message, field)
                       : size == 0 || how % 4 == 0
                           ? reflection->AddMessage(message, field)
                           : reflection->MutableRepeatedMessage(message, field, how % size);
      if (repeated && size > 0 && how % 4 == 0 && !field->is_map() && how % 8 == 0)
        inner->CopyFrom(reflection->GetRepeatedMessage(*message, field, how % size));
      return Change(inner, in, depth + 1);
    }
    const auto set = [&](auto setter, auto adder, auto value) {
      if (repeated) {
        (reflection->*adder)(message, field, value);
      } else {
        (reflection->*setter)(message, field, value);
      }
    };
    using R = google::protobuf::Reflection;
    switch (field->cpp_type()) {
      case Field::CPPTYPE_INT32:
        return set(&R::SetInt32, &R::AddInt32, static_cast<int32_t>(Integer(in)));
      case Field::CPPTYPE_INT64:
        return set(&R::SetInt64, &R::AddInt64, Integer(in));
      case Field::CPPTYPE_UINT32:
        return set(&R::SetUInt32, &R::AddUInt32, static_cast<uint32_t>(Integer(in)));
      case Field::CPPTYPE_UINT64:
        return set(&R::SetUInt64, &R::AddUInt64, static_cast<uint64_t>(Integer(in)));
      case Field::CPPTYPE_DOUBLE:
        return set(&R::SetDouble, &R::AddDouble, Number(in));
      case Field::CPPTYPE_FLOAT:
        return set(&R::SetFloat, &R::AddFloat, static_cast<float>(Number(in)));
      case Field::CPPTYPE_BOOL:
        return set(&R::SetBool, &R::AddBool, how % 2 == 0);
      case Field::CPPTYPE_ENUM:
        return set(&R::SetEnumValue, &R::AddEnumValue, static_cast<int>(static_cast<int32_t>(Integer(in))));
      default: {
        const std::string text = Text(in);
        if (repeated) return reflection->AddString(message, field, text);
        return reflection->SetString(message, field, text);
      }
    }
  }

  // Makes the next message of the stream of a program that tunes.
  v1::TuneRequest Tuning(ScriptReader& in, bool first, uint64_t& sequence) const {
    v1::TuneRequest message;
    const int what = in.Below(16);
    if (first ? what != 15 : what == 0) {
      message.mutable_hello()->set_process(absl::StrCat("p", in.Below(2)));
    } else if (what < 6) {
      *message.mutable_declare() = Declare(static_cast<uint32_t>(in.Below(3)));
    } else {
      v1::ReportBatch* batch = message.mutable_reports();
      batch->set_sequence(++sequence);
      for (int count = in.Below(3); count > 0; --count) {
        v1::TuningReport* report = batch->add_reports();
        report->set_section(static_cast<uint32_t>(in.Below(3)));
        report->set_proposal(static_cast<uint64_t>(in.Below(4)));
        report->mutable_configuration()->add_values(1 + in.Below(8));
        report->mutable_configuration()->add_values(1 << in.Below(3));
        report->set_count(1);
        report->set_mean(1e-3 * (1 + in.Byte()));
        report->set_minimum(report->mean());
      }
      v1::ProposalDemand* demand = batch->add_demands();
      demand->set_section(static_cast<uint32_t>(in.Below(3)));
      demand->set_wanted(static_cast<uint32_t>(in.Below(8)));
    }
    return message;
  }

  void Call(const google::protobuf::MethodDescriptor& method, ScriptReader& in) {
    const bool watches = method.name() == "WatchJob" || method.name() == "WatchTuning";
    // Each such call copies the database.
    if (method.name() == "BackUp" && in.Below(16) != 0) return;
    std::vector<std::string> messages;
    bool decodable = true;
    uint64_t sequence = 0;
    const int count = method.client_streaming() ? 1 + in.Below(8) : 1;
    for (int i = 0; i < count; ++i) {
      std::unique_ptr<Message> message = Honest(method);
      if (auto* tune = dynamic_cast<v1::TuneRequest*>(message.get())) {
        *tune = Tuning(in, i == 0, sequence);
      } else if (auto* chunk = dynamic_cast<v1::Chunk*>(message.get())) {
        const std::string bytes = "0123456789abcdef";
        const size_t each = (bytes.size() + static_cast<size_t>(count) - 1) / static_cast<size_t>(count);
        const size_t at = std::min(each * static_cast<size_t>(i), bytes.size());
        if (i == 0) *chunk = UploadOf(bytes);
        chunk->set_offset(static_cast<int64_t>(at));
        chunk->set_data(bytes.substr(at, each));
      }
      const int how = in.Byte();
      for (int changes = how < 128 ? 0 : how % 4; changes > 0; --changes) Change(message.get(), in);
      // Calls that are held, or graphs of many functions, are what other tests are about.
      if (auto* state = dynamic_cast<v1::SynchronizeRequest*>(message.get())) state->set_wait_seconds(0);
      std::string bytes = message->SerializePartialAsString();
      if (how == 255) bytes = in.Bytes(in.Byte());
      decodable = decodable && message->ParseFromString(bytes);
      messages.push_back(std::move(bytes));
    }
    std::vector<std::string> answers;
    const grpc::Status status = CallMethod(channel_, PathOf(method), messages,
                                           watches ? std::chrono::milliseconds(20) : kPatience, &answers);
    ++calls_;
    served_ += status.ok() ? 1 : 0;
    CheckStatus(method, status, decodable, watches);
    CheckAnswers(method, status, messages, answers);
  }

  static void CheckStatus(const google::protobuf::MethodDescriptor& method, const grpc::Status& status,
                          bool decodable, bool watches) {
    using grpc::StatusCode;
    static const std::set<StatusCode> typed = {
        StatusCode::INVALID_ARGUMENT,  StatusCode::NOT_FOUND,          StatusCode::ALREADY_EXISTS,
        StatusCode::PERMISSION_DENIED, StatusCode::RESOURCE_EXHAUSTED, StatusCode::FAILED_PRECONDITION,
        StatusCode::OUT_OF_RANGE,      StatusCode::DATA_LOSS};
    if (status.ok() || (watches && status.error_code() == StatusCode::DEADLINE_EXCEEDED)) return;
    // gRPC itself refuses bytes that are no message, without a word.
    if (!decodable &&
        (status.error_code() == StatusCode::INTERNAL || status.error_code() == StatusCode::UNIMPLEMENTED))
      return;
    if (typed.contains(status.error_code()) && !status.error_message().empty()) return;
    std::fprintf(stderr, "%s: status %d: %s\n", method.full_name().c_str(),
                 static_cast<int>(status.error_code()), status.error_message().c_str());
    Require(false, "a status that says nothing to its caller");
  }

  static void CheckAnswers(const google::protobuf::MethodDescriptor& method, const grpc::Status& status,
                           const std::vector<std::string>& messages,
                           const std::vector<std::string>& answers) {
    Require(method.server_streaming() || answers.size() == (status.ok() ? 1u : 0u), "not one answer");
    for (const std::string& bytes : answers) {
      const std::unique_ptr<Message> answer(
          google::protobuf::MessageFactory::generated_factory()->GetPrototype(method.output_type())->New());
      Require(answer->ParseFromString(bytes), "an answer of another kind");
    }
    if (!status.ok()) return;
    if (method.name() == "WriteBlob") {
      std::string whole;
      for (const std::string& bytes : messages) {
        v1::Chunk chunk;
        chunk.ParseFromString(bytes);
        whole += chunk.data();
      }
      v1::WriteBlobResponse written;
      written.ParseFromString(answers[0]);
      Require(written.digest() == BlobDigest(whole), "other bytes were stored than were sent");
    } else if (method.output_type() == v1::Chunk::descriptor()) {
      ChunkAssembler whole;
      for (const std::string& bytes : answers) {
        v1::Chunk chunk;
        chunk.ParseFromString(bytes);
        Require(whole.Add(chunk).ok(), "chunks that do not follow each other");
      }
      Require(std::move(whole).Finish().ok(), "other bytes came than were announced");
    } else if (method.name() == "Tune") {
      CheckTuning(messages, answers);
    }
  }

  // Checks the answers to a program that was heard to its end. The end may be bytes that are no message,
  // which gRPC does not tell from it.
  static void CheckTuning(const std::vector<std::string>& messages, const std::vector<std::string>& answers) {
    uint64_t last = 0;
    std::set<uint32_t> declared, answered;
    bool welcome = false;
    for (const std::string& bytes : messages) {
      v1::TuneRequest message;
      if (!message.ParseFromString(bytes)) break;
      welcome = true;
      last = std::max<uint64_t>(last, message.reports().sequence());
      if (message.has_declare()) declared.insert(message.declare().section());
    }
    int welcomes = 0;
    uint64_t acknowledged = 0;
    for (const std::string& bytes : answers) {
      v1::TuneResponse answer;
      answer.ParseFromString(bytes);
      welcomes += answer.has_welcome() ? 1 : 0;
      if (answer.has_acknowledged()) {
        Require(answer.acknowledged().sequence() >= acknowledged, "acknowledged less than before");
        acknowledged = answer.acknowledged().sequence();
      }
      if (answer.has_declared()) answered.insert(answer.declared().section());
      if (answer.has_choice())
        Require(declared.contains(answer.choice().section()), "a choice for what was not declared");
    }
    Require(welcomes == (welcome ? 1 : 0), "a program is welcomed once");
    Require(acknowledged >= last || last == 0, "a batch was not acknowledged");
    Require(std::includes(answered.begin(), answered.end(), declared.begin(), declared.end()),
            "a section was not answered");
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::vector<const google::protobuf::MethodDescriptor*> methods_;
  std::string job_, token_, digest_, tuning_;  // that there are
  int64_t calls_ = 0, served_ = 0;
};

}  // namespace fusion

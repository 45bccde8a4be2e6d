// Every method of our services, with messages whose fields or bytes were changed at random.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>

#include "absl/strings/str_cat.h"
#include "fusion/v1/admin.pb.h"
#include "fusion/v1/tuner.pb.h"
#include "tests/fault/long_form.h"
#include "tests/fault/malformed/attacked_server.h"
#include "tests/fault/malformed/mutation.h"

namespace fusion {
namespace {

using google::protobuf::Message;
using google::protobuf::MessageFactory;

class MalformedMessages : public AttackedServer {
 protected:
  struct Method {
    std::string name;
    const google::protobuf::Descriptor* input;
    bool streams_requests;
  };
  static std::vector<Method> Methods() {
    std::vector<Method> methods;
    for (const google::protobuf::FileDescriptor* file :
         {v1::CreateTokenRequest::descriptor()->file(), v1::SubmitRequest::descriptor()->file(),
          v1::SynchronizeRequest::descriptor()->file(), v1::TuneRequest::descriptor()->file()})
      for (int i = 0; i < file->service_count(); ++i)
        for (int j = 0; j < file->service(i)->method_count(); ++j) {
          const google::protobuf::MethodDescriptor* method = file->service(i)->method(j);
          methods.push_back({"/" + file->service(i)->full_name() + "/" + method->name(), method->input_type(),
                             method->client_streaming()});
        }
    return methods;
  }

  // What an honest client could send: the names in it are of things that are there.
  std::unique_ptr<Message> Honest(const Method& method) {
    std::unique_ptr<Message> message(MessageFactory::generated_factory()->GetPrototype(method.input)->New());
    if (auto* submit = dynamic_cast<v1::SubmitRequest*>(message.get())) {
      *submit = Request("");
      submit->mutable_hints()->add_together()->add_values("z");
      submit->mutable_limits()->set_run_seconds(1);
    } else if (auto* explain = dynamic_cast<v1::ExplainRequest*>(message.get())) {
      *explain->mutable_source() = Request("").source();
      explain->set_target(v1::HOST);
      explain->set_candidates(3);
    } else if (auto* check = dynamic_cast<v1::CheckRequest*>(message.get())) {
      *check->mutable_source() = Request("").source();
    } else if (auto* worker = dynamic_cast<v1::SynchronizeRequest*>(message.get())) {
      *worker = Worker("other");
      worker->add_devices()->set_uuid("GPU-1");
      worker->add_tasks()->set_task("tasks/1");
    } else if (auto* token = dynamic_cast<v1::CreateTokenRequest*>(message.get())) {
      token->set_principal("eva");
      token->set_role(v1::USER);
    } else if (auto* tune = dynamic_cast<v1::TuneRequest*>(message.get())) {
      tune->mutable_hello()->set_process("process");
    } else if (const auto* name = method.input->FindFieldByName("name"); name != nullptr) {
      const bool job = method.name.find("Job") != std::string::npos;
      message->GetReflection()->SetString(message.get(), name,
                                          job                                               ? job_
                                          : method.name.find("Worker") != std::string::npos ? "workers/other"
                                                                                            : "vadd");
    } else if (const auto* job = method.input->FindFieldByName("job"); job != nullptr) {
      message->GetReflection()->SetString(message.get(), job, job_);
    }
    return message;
  }

  std::string job_;
};

TEST_F(MalformedMessages, EveryMethodAnswersWithAStatusOfItsOwn) {
  job_ = Ask<v1::Job>("/fusion.v1.OptimizerService/Submit", Request("first")).name();
  int number = 0;
  for (const Method& method : Methods()) {
    // Each copies the database.
    const int times = method.name.ends_with("/BackUp") ? 5 : Count(30, 300);
    for (int i = 0; i < times; ++i) {
      Mutation mutation(20000 + number);
      std::vector<std::string> messages;
      bool decodable = true;
      for (int more = method.streams_requests ? 1 + mutation.Below(3) : 1; more > 0; --more) {
        std::unique_ptr<Message> message = Honest(method);
        if (i > 0 && i % 3 != 0) mutation.Fields(message.get());
        // Held calls and long searches are what other tests are about.
        if (auto* worker = dynamic_cast<v1::SynchronizeRequest*>(message.get())) worker->set_wait_seconds(0);
        std::string bytes = message->SerializeAsString();
        if (i % 3 == 0) bytes = i % 6 == 0 ? mutation.Text(false) : mutation.Bytes(std::move(bytes));
        decodable = message->ParseFromString(bytes) && decodable;
        messages.push_back(std::move(bytes));
      }
      Attack(method.name, messages, decodable, absl::StrCat("number ", number++));
    }
  }
  EXPECT_GE(number, 600);
}

TEST_F(MalformedMessages, NumbersOfMessagesThatAMethodDoesNotTake) {
  for (const Method& method : Methods()) {
    if (method.name.ends_with("/BackUp")) continue;
    Attack(method.name, {}, false, "no message");
    const std::string bytes = Honest(method)->SerializeAsString();
    if (!method.streams_requests) Call(method.name, {bytes, bytes}, std::chrono::seconds(5));
  }
  Attack("/fusion.v1.OptimizerService/NoMethod", {""}, false, "no such method");
  Attack("/", {""}, false, "no name");
  Attack("/fusion.v1.OptimizerService/Submit/", {std::string(1 << 20, '\0')}, false, "a name too long");
}

}  // namespace
}  // namespace fusion

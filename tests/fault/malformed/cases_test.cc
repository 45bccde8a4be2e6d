// For every method that the server offers, requests that are wrong in a known way, and the status that says
// so. A method without a case fails the test: whoever adds one says here what it refuses.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "absl/strings/str_cat.h"
#include "fusion/v1/admin.pb.h"
#include "fusion/v1/tuner.pb.h"
#include "tests/fault/malformed/attacked_server.h"
#include "tests/folders.h"

namespace fusion {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::MessageFactory;
using grpc::StatusCode;

struct Case {
  const char* method;  // "OptimizerService/Submit"
  const char* what;
  std::vector<const char*> messages;  // as text; "bytes": what is no message
  StatusCode status;
};

constexpr char kGraph[] =
    "source { fuse: 'size n = 8; vector[n] x, y, z; input x, y; z = vadd(x, y); return z;' }";
constexpr char kNoMessage[] = "bytes";

const std::vector<Case>& Cases() {
  static const std::string unknown_hint =
      absl::StrCat(kGraph, " hints { together { values: 'z' values: 'w' } }");
  static const std::string target = absl::StrCat(kGraph, " target: 77");
  static const std::string time = absl::StrCat(kGraph, " time_limit_seconds: nan");
  static const std::string priority = absl::StrCat(kGraph, " priority: 101");
  static const std::string why = absl::StrCat(kGraph, " target: HOST why: 'z'");
  static const std::string why_unknown = absl::StrCat(kGraph, " target: HOST why: 'z' why: 'w'");
  static const std::string declaration =
      "declare { section: 1 declaration { program: 'p' section: 's' device_class: 'cpu' parameters { name: "
      "'tile' integer { lower: 1 upper: 8 "
      "step: 1 } } } }";
  static const std::vector<Case> cases = {
      {"OptimizerService/Submit", "no graph", {""}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/Submit",
       "no program",
       {"source { fuse: 'vector[n' }"},
       StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/Submit", "no such target", {target.c_str()}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/Submit", "no time", {time.c_str()}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/Submit", "priority", {priority.c_str()}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/Submit", "a hint of no value", {unknown_hint.c_str()}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/GetJob", "no such job", {"name: 'jobs/0'"}, StatusCode::NOT_FOUND},
      {"OptimizerService/GetJob", "no name", {""}, StatusCode::NOT_FOUND},
      {"OptimizerService/ListJobs", "size", {"page_size: -1"}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/ListJobs", "token", {"page_token: 'x'"}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/CancelJob", "no such job", {"name: 'jobs/0'"}, StatusCode::NOT_FOUND},
      {"OptimizerService/WatchJob",
       "no such job",
       {"name: 'jobs/0' after_sequence: -1"},
       StatusCode::NOT_FOUND},
      {"OptimizerService/Check", "no graph", {""}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/Check",
       "no program",
       {"source { fuse: 'return z;' }"},
       StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/Explain", "no graph", {""}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/Explain", "one value", {why.c_str()}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/Explain", "no such value", {why_unknown.c_str()}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/DownloadArtifact", "no such job", {"job: 'jobs/0'"}, StatusCode::NOT_FOUND},
      {"OptimizerService/DownloadArtifact", "rank", {"job: 'jobs/0' rank: -1"}, StatusCode::NOT_FOUND},
      {"OptimizerService/ListFunctions", "no such function", {"name: 'vad'"}, StatusCode::NOT_FOUND},
      {"OptimizerService/ReportModel", "jobs", {"jobs: -1"}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/ReportModel", "cache", {"cache: 77"}, StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/TraceJob", "no such job", {"name: 'jobs/0'"}, StatusCode::NOT_FOUND},
      {"OptimizerService/UploadInput",
       "no digest",
       {"total_bytes: 1 data: 'a'"},
       StatusCode::INVALID_ARGUMENT},
      {"OptimizerService/UploadInput",
       "other bytes",
       {"digest: 'sha256:0' total_bytes: 1 data: 'a'"},
       StatusCode::DATA_LOSS},
      {"OptimizerService/UploadInput", "nothing", {}, StatusCode::DATA_LOSS},
      {"FleetService/ListWorkers", "no message", {kNoMessage}, StatusCode::UNIMPLEMENTED},
      {"FleetService/DrainWorker", "no such worker", {"name: 'workers/none'"}, StatusCode::NOT_FOUND},
      {"FleetService/DrainWorker", "no name", {""}, StatusCode::NOT_FOUND},
      {"WorkerService/Synchronize", "no worker", {"instance: '1'"}, StatusCode::INVALID_ARGUMENT},
      {"WorkerService/Synchronize", "no instance", {"worker: 'w'"}, StatusCode::INVALID_ARGUMENT},
      {"WorkerService/ReadBlob", "no such bytes", {"digest: 'sha256:0'"}, StatusCode::NOT_FOUND},
      {"WorkerService/ReadBlob", "no digest", {""}, StatusCode::NOT_FOUND},
      {"WorkerService/WriteBlob", "no digest", {"total_bytes: 1 data: 'a'"}, StatusCode::INVALID_ARGUMENT},
      {"WorkerService/WriteBlob",
       "too many bytes",
       {"digest: 'sha256:0' total_bytes: 1 data: 'ab'"},
       StatusCode::INVALID_ARGUMENT},
      {"WorkerService/WriteBlob",
       "other bytes",
       {"digest: 'sha256:0' total_bytes: 1 data: 'a'"},
       StatusCode::DATA_LOSS},
      {"WorkerService/WriteBlob", "nothing", {}, StatusCode::DATA_LOSS},
      {"TunerService/Tune", "no hello", {declaration.c_str()}, StatusCode::INVALID_ARGUMENT},
      {"TunerService/Tune", "no message", {kNoMessage}, StatusCode::INVALID_ARGUMENT},
      {"TunerService/Tune",
       "no message behind a greeting",
       {"hello { process: 'd' }", kNoMessage},
       StatusCode::INVALID_ARGUMENT},
      {"TunerService/Tune", "reports first", {"reports { sequence: 1 }"}, StatusCode::INVALID_ARGUMENT},
      {"TunerService/Tune", "no process", {"hello {}"}, StatusCode::INVALID_ARGUMENT},
      {"TunerService/Tune",
       "two greetings",
       {"hello { process: 'a' }", "hello { process: 'a' }"},
       StatusCode::INVALID_ARGUMENT},
      {"TunerService/Tune", "nothing", {"hello { process: 'b' }", ""}, StatusCode::INVALID_ARGUMENT},
      {"TunerService/Tune",
       "a batch is missing",
       {"hello { process: 'c' }", "reports { sequence: 1 }", "reports { sequence: 3 }"},
       StatusCode::INVALID_ARGUMENT},
      {"TunerService/ListTunings", "size", {"page_size: -1"}, StatusCode::INVALID_ARGUMENT},
      {"TunerService/ListTunings", "token", {"page_token: 'x'"}, StatusCode::INVALID_ARGUMENT},
      {"TunerService/GetTuning", "no such tuning", {"name: 'tunings/0'"}, StatusCode::NOT_FOUND},
      {"TunerService/WatchTuning", "no such tuning", {"name: 'tunings/0'"}, StatusCode::NOT_FOUND},
      {"TunerService/ResetTuning", "no such tuning", {"name: 'tunings/0'"}, StatusCode::NOT_FOUND},
      {"TunerService/ListTuningReports",
       "no such tuning",
       {"name: 'tunings/0' page_size: -1"},
       StatusCode::NOT_FOUND},
      {"AdminService/CreateToken", "no role", {"principal: 'eva'"}, StatusCode::INVALID_ARGUMENT},
      {"AdminService/CreateToken", "nobody", {"role: USER"}, StatusCode::INVALID_ARGUMENT},
      {"AdminService/CreateToken",
       "no time",
       {"principal: 'eva' role: USER seconds: -1"},
       StatusCode::INVALID_ARGUMENT},
      {"AdminService/CreateToken",
       "no such scope",
       {"principal: 'eva' role: USER scopes: 'all'"},
       StatusCode::INVALID_ARGUMENT},
      {"AdminService/ListTokens", "no message", {kNoMessage}, StatusCode::UNIMPLEMENTED},
      {"AdminService/RevokeToken", "no such token", {"name: 'tokens/0'"}, StatusCode::NOT_FOUND},
      {"AdminService/ListAuditEntries", "token", {"page_token: 'x'"}, StatusCode::INVALID_ARGUMENT},
      {"AdminService/ListAuditEntries", "size", {"page_size: -1"}, StatusCode::INVALID_ARGUMENT},
      {"AdminService/BackUp", "no message", {kNoMessage}, StatusCode::UNIMPLEMENTED},
      {"AdminService/ResetModel", "of nothing", {""}, StatusCode::INVALID_ARGUMENT},
      {"AdminService/ResetModel",
       "of one and of all",
       {"device: 'x' all: true"},
       StatusCode::INVALID_ARGUMENT},
  };
  return cases;
}

// Those that the folder of the protocol has, so that one of a new file is found too.
std::set<std::string> OfferedMethods() {
  std::set<std::string> methods;
  const std::regex service("^service (\\w+) ");
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::SourceFolder() + "/proto/fusion/v1")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch found;
      if (!std::regex_search(line, found, service)) continue;
      const auto* descriptor =
          DescriptorPool::generated_pool()->FindServiceByName(absl::StrCat("fusion.v1.", found[1].str()));
      EXPECT_NE(descriptor, nullptr) << line;
      for (int i = 0; descriptor != nullptr && i < descriptor->method_count(); ++i)
        methods.insert(absl::StrCat(descriptor->name(), "/", descriptor->method(i)->name()));
    }
  }
  return methods;
}

class MalformedCases : public AttackedServer {};

TEST_F(MalformedCases, EveryMethodHasOne) {
  const std::set<std::string> offered = OfferedMethods();
  EXPECT_GE(offered.size(), 28u);
  std::set<std::string> attacked;
  for (const Case& malformed : Cases()) attacked.insert(malformed.method);
  EXPECT_EQ(attacked, offered) << "each method of proto/fusion/v1 has a case in cases_test.cc";
}

TEST_F(MalformedCases, AreAnsweredWithTheirStatus) {
  for (const Case& malformed : Cases()) {
    SCOPED_TRACE(absl::StrCat(malformed.method, ": ", malformed.what));
    std::string method = malformed.method;
    const size_t slash = method.find('/');
    const auto* descriptor = DescriptorPool::generated_pool()
                                 ->FindServiceByName("fusion.v1." + method.substr(0, slash))
                                 ->FindMethodByName(method.substr(slash + 1));
    std::vector<std::string> messages;
    for (const std::string text : malformed.messages) {
      std::unique_ptr<google::protobuf::Message> message(
          MessageFactory::generated_factory()->GetPrototype(descriptor->input_type())->New());
      if (text == kNoMessage) {
        messages.push_back("\xff\xff");
      } else {
        ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, message.get())) << text;
        messages.push_back(message->SerializeAsString());
      }
    }
    const grpc::Status status = Call(absl::StrCat("/fusion.v1.", method), messages);
    EXPECT_EQ(status.error_code(), malformed.status) << status.error_message();
    // gRPC itself, of bytes that are no message, without a word.
    const bool no_message = !malformed.messages.empty() && malformed.messages[0] == std::string(kNoMessage);
    if (!no_message || malformed.status != StatusCode::UNIMPLEMENTED) {
      EXPECT_FALSE(status.error_message().empty());
    }
  }
}

}  // namespace
}  // namespace fusion

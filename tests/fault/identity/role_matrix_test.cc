// Every method, called over TLS by everybody there is.
#include <google/protobuf/descriptor.h>

#include <map>

#include "fusion/v1/tuner.pb.h"
#include "tests/fault/identity/farm_fixture.h"
#include "tests/fault/long_form.h"

namespace fusion::testing {
namespace {

// Who may call what: written down a second time, by hand. u: users, w: workers, a: admins, *: everybody.
const std::map<std::string, std::string> kExpected = {
    {"/fusion.v1.AdminService/BackUp", "a"},
    {"/fusion.v1.AdminService/CreateToken", "a"},
    {"/fusion.v1.AdminService/ListAuditEntries", "a"},
    {"/fusion.v1.AdminService/ListTokens", "a"},
    {"/fusion.v1.AdminService/ResetModel", "a"},
    {"/fusion.v1.AdminService/RevokeToken", "a"},
    {"/fusion.v1.FleetService/DrainWorker", "a"},
    {"/fusion.v1.FleetService/ListWorkers", "ua"},
    {"/fusion.v1.OptimizerService/CancelJob", "ua"},
    {"/fusion.v1.OptimizerService/Check", "ua"},
    {"/fusion.v1.OptimizerService/DownloadArtifact", "ua"},
    {"/fusion.v1.OptimizerService/Explain", "ua"},
    {"/fusion.v1.OptimizerService/GetJob", "ua"},
    {"/fusion.v1.OptimizerService/ListFunctions", "ua"},
    {"/fusion.v1.OptimizerService/ListJobs", "ua"},
    {"/fusion.v1.OptimizerService/ReportModel", "ua"},
    {"/fusion.v1.OptimizerService/Submit", "ua"},
    {"/fusion.v1.OptimizerService/TraceJob", "ua"},
    {"/fusion.v1.OptimizerService/UploadInput", "ua"},
    {"/fusion.v1.OptimizerService/WatchJob", "ua"},
    {"/fusion.v1.TunerService/GetTuning", "ua"},
    {"/fusion.v1.TunerService/ListTuningReports", "ua"},
    {"/fusion.v1.TunerService/ListTunings", "ua"},
    {"/fusion.v1.TunerService/ResetTuning", "ua"},
    {"/fusion.v1.TunerService/Tune", "ua"},
    {"/fusion.v1.TunerService/WatchTuning", "ua"},
    {"/fusion.v1.WorkerService/ReadBlob", "w"},
    {"/fusion.v1.WorkerService/Synchronize", "w"},
    {"/fusion.v1.WorkerService/WriteBlob", "w"},
    {"/grpc.health.v1.Health/Check", "*"},
    {"/grpc.health.v1.Health/Watch", "*"},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "uwa"},
    {"/fusion.v1.NoService/NoMethod", ""},
};

std::vector<std::string> OurMethods() {
  std::vector<std::string> methods;
  for (const google::protobuf::FileDescriptor* file :
       {v1::CreateTokenRequest::descriptor()->file(), v1::SubmitRequest::descriptor()->file(),
        v1::SynchronizeRequest::descriptor()->file(), v1::TuneRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i)
      for (int j = 0; j < file->service(i)->method_count(); ++j)
        methods.push_back("/" + file->service(i)->full_name() + "/" + file->service(i)->method(j)->name());
  }
  return methods;
}

class RoleMatrixTest : public FarmTest {};

TEST_F(RoleMatrixTest, EveryMethodOfTheProtocolIsExpectedHere) {
  const std::vector<std::string> methods = OurMethods();
  EXPECT_GE(methods.size(), 27u);
  for (const std::string& method : methods) EXPECT_TRUE(kExpected.contains(method)) << method;
}

TEST_F(RoleMatrixTest, EachCallerMayCallWhatHisRoleMay) {
  // So that refusals are not what is measured here.
  options_.gate.user_requests = options_.gate.admin_requests = options_.gate.worker_requests = {1e6, 1e6};
  Start();
  struct Caller {
    std::string name;
    char role;  // '-' : nobody
    std::shared_ptr<grpc::Channel> channel;
  };
  auto with_token = [&](const char* principal, v1::Role role) {
    ClientCredentials credentials = SharedCertificates().Of("");
    credentials.token = Token(principal, role).secret();
    return Channel(credentials);
  };
  const std::vector<Caller> callers = {
      {"nobody", '-', ChannelOf("")},
      {"a user's certificate", 'u', ChannelOf("user-eva")},
      {"a user's token", 'u', with_token("eva", v1::USER)},
      {"a worker's certificate", 'w', ChannelOf("worker-gpu1")},
      {"a worker's token", 'w', with_token("gpu1", v1::WORKER)},
      {"an admin's certificate", 'a', ChannelOf("admin-root")},
      {"an admin's token", 'a', with_token("root", v1::ADMIN)},
  };
  int calls = 0, as_listed = 0;
  for (const auto& [method, roles] : kExpected) {
    for (const Caller& caller : callers) {
      const bool watch = method.ends_with("Health/Watch");
      const grpc::Status status =
          Call(caller.channel, method, "", "", std::chrono::milliseconds(watch ? 500 : 20000));
      const std::string what = method + " by " + caller.name + ": " + std::to_string(status.error_code()) +
                               " " + status.error_message();
      ++calls;
      const bool may = roles == "*" || roles.find(caller.role) != std::string::npos;
      const grpc::StatusCode refusal =
          caller.role == '-' ? grpc::StatusCode::UNAUTHENTICATED : grpc::StatusCode::PERMISSION_DENIED;
      bool listed = status.error_code() == refusal;
      if (may) {
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << what;
        EXPECT_NE(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << what;
        EXPECT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE) << what;
        listed = status.error_code() != grpc::StatusCode::UNAUTHENTICATED &&
                 status.error_code() != grpc::StatusCode::PERMISSION_DENIED &&
                 status.error_code() != grpc::StatusCode::UNAVAILABLE;
      } else {
        EXPECT_EQ(status.error_code(), refusal) << what;
      }
      as_listed += listed ? 1 : 0;
    }
  }
  TellFigure("role x method calls", calls);
  TellFigure("calls not as listed", calls - as_listed);
}

TEST_F(RoleMatrixTest, WithoutTlsEverybodyOnTheMachineIsTheOperator) {
  options_.tls = {};
  Start();
  const auto channel = Channel({});
  for (const std::string& method : OurMethods()) {
    const grpc::Status status = Call(channel, method);
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
    EXPECT_NE(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << method;
  }
  // A token that is shown narrows what its owner may.
  v1::CreateTokenRequest request;
  request.set_principal("eva");
  request.set_role(v1::USER);
  Client client(channel, nullptr);
  absl::StatusOr<v1::CreateTokenResponse> token = client.CreateToken(request);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(Call(channel, "/fusion.v1.AdminService/ListTokens", "", "Bearer " + token->secret()).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(RoleMatrixTest, TheServersOwnProcessIsTheOperatorAlsoBesideTls) {
  Start();
  for (const std::string& method : OurMethods()) {
    const grpc::Status status = Call(server_->InProcessChannel(), method);
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
    EXPECT_NE(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << method;
  }
}

TEST_F(RoleMatrixTest, AWorkerSpeaksForItselfAlone) {
  Start();
  auto synchronize = [&](const std::string& worker) {
    v1::SynchronizeRequest request;
    request.set_worker(worker);
    request.set_instance("1");
    return Call(ChannelOf("worker-gpu1"), "/fusion.v1.WorkerService/Synchronize",
                request.SerializeAsString());
  };
  EXPECT_TRUE(synchronize("gpu1").ok());
  EXPECT_TRUE(synchronize("gpu1/second").ok());
  for (const char* other : {"gpu2", "gpu", "gpu12", "gpu1x/second", "GPU1", "/gpu1"}) {
    const grpc::Status status = synchronize(other);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED)
        << other << ": " << status.error_message();
  }
  EXPECT_THAT(Audit(), ::testing::Contains("PERMISSION_DENIED Synchronize gpu1 gpu2"));
}

}  // namespace
}  // namespace fusion::testing

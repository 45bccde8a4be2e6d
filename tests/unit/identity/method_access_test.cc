#include "server/identity/method_access.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>

#include <map>
#include <set>
#include <string>

#include "fusion/v1/admin.pb.h"
#include "fusion/v1/optimizer.pb.h"
#include "fusion/v1/tuner.pb.h"
#include "fusion/v1/worker.pb.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// As the protocol has them: whoever adds a method must say who may call it.
TEST(MethodAccessTest, EveryMethodHasARowAndEveryRowAMethod) {
  std::set<std::string> methods;
  for (const google::protobuf::FileDescriptor* file :
       {v1::CreateTokenRequest::descriptor()->file(), v1::SubmitRequest::descriptor()->file(),
        v1::SynchronizeRequest::descriptor()->file(), v1::TuneRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i)
      for (int j = 0; j < file->service(i)->method_count(); ++j)
        methods.insert("/" + file->service(i)->full_name() + "/" + file->service(i)->method(j)->name());
  }
  for (const std::string& method : methods)
    EXPECT_NE(FindMethodAccess(method), nullptr) << method << " is in no row";
  for (const MethodAccess& row : MethodAccessTable()) {
    const std::string method = row.method;
    EXPECT_TRUE(methods.contains(method) || method.starts_with("/grpc.")) << method;
    EXPECT_GT(row.maximum_request_bytes, 0u) << method;
    EXPECT_EQ(row.open, method.starts_with("/grpc.health.")) << method;
  }
}

TEST(MethodAccessTest, RowsAreInOrderAndOnce) {
  const std::vector<MethodAccess>& table = MethodAccessTable();
  for (size_t i = 1; i < table.size(); ++i)
    EXPECT_LT(std::string(table[i - 1].method), std::string(table[i].method));
}

TEST(MethodAccessTest, TheBuildCacheIsWrittenByWorkersAlone) {
  const MethodAccess* row = FindMethodAccess("/fusion.v1.WorkerService/WriteBlob");
  ASSERT_NE(row, nullptr);
  EXPECT_TRUE(row->worker);
  EXPECT_FALSE(row->user);
  EXPECT_FALSE(row->admin);
}

// Written down a second time: what changes something is not read.
TEST(MethodAccessTest, TheScopeOfEachMethodThatChangesSomething) {
  const std::map<std::string, Scope> expected = {
      {"BackUp", Scope::kManage},      {"CreateToken", Scope::kManage}, {"RevokeToken", Scope::kManage},
      {"ResetModel", Scope::kManage},  {"DrainWorker", Scope::kManage}, {"Submit", Scope::kSubmit},
      {"CancelJob", Scope::kSubmit},   {"Tune", Scope::kTune},          {"ResetTuning", Scope::kTune},
      {"UploadInput", Scope::kSubmit}, {"ReadBlob", Scope::kWork},      {"Synchronize", Scope::kWork},
      {"WriteBlob", Scope::kWork}};
  for (const MethodAccess& row : MethodAccessTable()) {
    const std::string method = row.method, name = method.substr(method.rfind('/') + 1);
    const auto found = expected.find(name);
    EXPECT_EQ(row.scope, found == expected.end() ? Scope::kRead : found->second) << method;
    EXPECT_FALSE(row.audited && row.scope == Scope::kRead) << method << " changes something";
  }
}

TEST(MethodAccessTest, WhatIsInNoRowIsForTheOperatorAlone) {
  const Principal root{"root", Role::kAdmin, Principal::How::kCertificate};
  EXPECT_TRUE(absl::IsPermissionDenied(CheckMayCall(root, "/fusion.v1.NewService/NewMethod")));
  EXPECT_TRUE(absl::IsPermissionDenied(CheckMayCall(root, "")));
  EXPECT_TRUE(CheckMayCall(Principal{}, "/fusion.v1.NewService/NewMethod").ok());
}

TEST(MethodAccessTest, ARefusalSaysWhoseCallItIs) {
  const Principal eva{"eva", Role::kUser, Principal::How::kCertificate};
  const absl::Status status = CheckMayCall(eva, "/fusion.v1.AdminService/CreateToken");
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_EQ(std::string(status.message()),
            "eva has the role user, which may not call CreateToken; it takes the role admin");
}

}  // namespace
}  // namespace fusion

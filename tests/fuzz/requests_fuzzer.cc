// Any bytes as the requests of people that become questions to the store, with what callers show: pages of
// lists, names, tokens that are asked for and shown, certificates in PEM. The first byte says which.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "fusion/v1/admin.pb.h"
#include "fusion/v1/optimizer.pb.h"
#include "fusion/v1/tuner.pb.h"
#include "server/identity/certificate.h"
#include "server/identity/token_registry.h"
#include "tests/fuzz/message_input.h"

namespace fusion {
namespace {

constexpr int kInputsOfStore = 3000;  // tokens stay, so that a store begins anew after so many

void RequireTyped(const absl::Status& status) {
  Require(status.ok() || absl::IsInvalidArgument(status) || absl::IsNotFound(status),
          "an error of another kind");
  Require(status.ok() || !status.message().empty(), "an error without message");
}

class Farm {
 public:
  Farm() {
    std::string path =
        std::filesystem::exists("/dev/shm") ? "/dev/shm/fusion-fuzz-XXXXXX" : "/tmp/fusion-fuzz-XXXXXX";
    Require(mkdtemp(path.data()) != nullptr, "no folder");
    folder_ = path;
    store_ = *OpenSqliteStore(folder_ + "/fusion.db");
    for (int i = 0; i < 3; ++i) Require(store_->CreateJob({}, now_).ok(), "no job");
    Require(
        store_->AddAuditEntries({{.time = now_, .outcome = "OK"}, {.time = now_, .outcome = "OK"}}, 100).ok(),
        "no entries");
    tokens_ = std::make_unique<TokenRegistry>(*store_);
    good_ = tokens_->Create("eva", Role::kUser, {}, now_)->text;
  }
  ~Farm() {
    Require(store_->CheckIntegrity().ok(), "the store is not sound");
    tokens_.reset();
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  void List(const v1::ListJobsRequest& request) {
    const auto jobs = store_->ListJobs(request.page_size(), request.page_token());
    RequireTyped(jobs.status());
    Require(!jobs.ok() || jobs->jobs.size() <= 3, "more jobs than there are");
    RequireTyped(store_->ListJobsOf("eva", request.page_size(), request.page_token()).status());
    const auto entries = store_->ListAuditEntries(request.page_size(), request.page_token());
    RequireTyped(entries.status());
    Require(!entries.ok() || entries->entries.size() <= 2, "more entries than there are");
  }
  void ListTunings(const v1::ListTuningsRequest& request) {
    RequireTyped(store_->ListTunings(request.program(), request.page_size(), request.page_token()).status());
  }
  void Name(const std::string& name) {
    RequireTyped(store_->GetJob(name).status());
    RequireTyped(store_->GetTask(name).status());
    RequireTyped(store_->GetTuning(name).status());
    RequireTyped(tokens_->Revoke(name, now_).status());
  }
  void Create(const v1::CreateTokenRequest& request) {
    const std::optional<Role> role = ParseRole(v1::Role_Name(request.role()));
    const auto scopes = Scopes::Parse({request.scopes().begin(), request.scopes().end()});
    RequireTyped(scopes.status());
    if (!role || !scopes.ok()) return;
    Require(Scopes::Stored(scopes->Text()) == *scopes, "scopes are stored as others");
    const auto made = tokens_->Create(request.principal(), *role,
                                      std::chrono::duration<double>(request.seconds()), now_, *scopes);
    RequireTyped(made.status());
    if (!made.ok()) return;
    const auto shown = tokens_->Verify(made->text, now_);
    Require(
        shown.ok() && shown->name == request.principal() && shown->role == *role && shown->scopes == *scopes,
        "a token is another's than it was made for");
  }
  void Show(const std::string& text) {
    const auto shown = tokens_->Verify(text, now_);
    Require(shown.ok() ? text == good_ : absl::IsUnauthenticated(shown.status()),
            "an invented token is good");
  }

 private:
  const Timestamp now_ = TimeOfDay();
  std::string folder_, good_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<TokenRegistry> tokens_;
};

void Certificate(const std::string& pem) {
  const auto identity = ReadCertificateIdentity(pem);
  Require(identity.ok()
              ? IsPrincipalName(identity->principal ? identity->principal->name : identity->proxy) &&
                    identity->fingerprint.size() == 64
              : absl::IsUnauthenticated(identity.status()),
          "a certificate of nobody");
}

}  // namespace
}  // namespace fusion

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fusion;
  static std::unique_ptr<Farm> farm;
  static int inputs = 0;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (inputs++ % kInputsOfStore == 0) {
    farm.reset();
    farm = std::make_unique<Farm>();
  }
  v1::ListJobsRequest list;
  v1::ListTuningsRequest tunings;
  v1::CreateTokenRequest create;
  switch (data[0]) {
    case 'l':
      if (ReadMessage(bytes, &list) && Decodable(list)) farm->List(list);
      break;
    case 't':
      if (ReadMessage(bytes, &tunings) && Decodable(tunings)) farm->ListTunings(tunings);
      break;
    case 'n':
      farm->Name(bytes);
      break;
    case 'c':
      if (ReadMessage(bytes, &create) && Decodable(create)) farm->Create(create);
      break;
    case 's':
      farm->Show(bytes);
      break;
    default:
      Certificate(bytes);
  }
  return 0;
}

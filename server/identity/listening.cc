#include "server/identity/listening.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/rpc/address.h"

namespace fusion {

absl::Status CheckListening(const std::string& address, bool tls, bool any_address) {
  if (!address.empty() && !absl::StrContains(address, ":"))
    return absl::InvalidArgumentError(
        absl::StrCat("--listen ", address, ": must be HOST:PORT, such as 127.0.0.1:50051"));
  if (tls || any_address || address.empty() || IsLoopbackAddress(address)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--listen ", address,
      ": other machines may reach this address, and without TLS everybody who reaches the server may do "
      "everything. "
      "Give --tls-cert, --tls-key and --tls-ca (deploy/make-certificates.sh makes them), or listen on "
      "127.0.0.1; --insecure-any-address listens in spite of it"));
}

}  // namespace fusion

#include "client/cli/invocation.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
      return kBadInput;
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return kNotAuthorised;
    case absl::StatusCode::kDeadlineExceeded:
      return kTimeLimit;
    case absl::StatusCode::kCancelled:
      return kInterrupted;
    default:
      return kFailed;
  }
}

ExitCode ExitCodeOfJob(const v1::Job& job) {
  if (job.state() == v1::SUCCEEDED) return kDone;
  switch (static_cast<absl::StatusCode>(job.error().code())) {
    case absl::StatusCode::kInvalidArgument:
      return kBadInput;
    case absl::StatusCode::kDeadlineExceeded:
      return kTimeLimit;
    default:
      return kFailed;
  }
}

ExitCode Invocation::Report(const absl::Status& status) const {
  const ExitCode code = ExitCodeOf(status);
  // Errors of a source say "FILE:LINE:COLUMN: error:" themselves, a line each.
  const bool placed = absl::StrContains(status.message(), ": error: ") && !FieldViolations(status).empty();
  if (code != kInterrupted) std::cerr << (placed ? "" : "error: ") << status.message() << "\n";
  if (json) std::cout << JsonText(ErrorJson(status));
  return code;
}

TextStyle Invocation::Style() const {
  TextStyle style;
  if (!isatty(STDOUT_FILENO)) return style;
  style.color = Environment("NO_COLOR").empty() && Environment("TERM") != "dumb";
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) style.width = size.ws_col;
  return style;
}

void AddCommonOptions(CLI::App* command, Invocation* invocation) {
  command->add_option(
      "--server", invocation->server,
      "Server at HOST:PORT; \"embedded\" runs one in this process (default: $FUSION_SERVER, then "
      "the configuration file, then embedded)");
  command->add_option(
      "--tls-ca", invocation->tls_ca,
      "PEM file of the authority that signed the server's certificate (default: \"tls_ca\" in the "
      "configuration file, then no TLS)");
  command->add_option("--tls-cert", invocation->tls_cert, "PEM file of your certificate (\"tls_cert\")");
  command->add_option("--tls-key", invocation->tls_key, "PEM file of its private key (\"tls_key\")");
  command->add_option(
      "--token-file", invocation->token_file,
      "File with a token, instead of a certificate (default: $FUSION_TOKEN, then \"token_file\")");
  command->add_flag("--json", invocation->json, "Print one JSON object on stdout");
}

absl::StatusOr<std::unique_ptr<Client>> OpenClient(const Invocation& invocation, EmbeddedOptions options) {
  FUSION_ASSIGN_OR_RETURN(std::string address, ServerAddress(invocation));
  if (!address.empty()) {
    FUSION_ASSIGN_OR_RETURN(ClientCredentials credentials, CredentialsOf(invocation));
    if (const std::string why = WhyTokenIsNotShown(address, credentials); !why.empty()) {
      // Whoever names a token in this command means to be its owner; elsewhere it is for other servers too.
      if (!invocation.token_file.empty())
        return absl::InvalidArgumentError(absl::StrCat("--token-file: ", why));
      std::cerr << "note: " << why << "\n";
    }
    return Client::Connect(address, credentials);
  }
  if (!options.notice)
    options.notice = [](const std::string& line) { std::cerr << "note: " << line << "\n"; };
  return Client::Embedded(options);
}

std::function<void(const absl::Status&)> SayOnceWhyItWaits() {
  return [away = false, full = false](const absl::Status& reason) mutable {
    if (std::exchange(absl::IsUnavailable(reason) ? away : full, true)) return;
    if (absl::IsUnavailable(reason))
      std::cerr << "note: the server does not answer (" << reason.message() << "); trying again for up to "
                << Client::kPatience.count() << " s\n";
    else
      std::cerr << "note: the server has no room (" << reason.message()
                << "); waiting, and trying again up to " << Client::kRefusals << " times\n";
  };
}

}  // namespace fusion

#include "base/rpc/tls_files.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/rpc/x509.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

absl::StatusOr<std::string> ReadFile(const char* option, const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) {
    const absl::Status error = absl::ErrnoToStatus(errno == 0 ? ENODATA : errno, "");
    return absl::Status(
        errno == 0 ? absl::StatusCode::kInvalidArgument : error.code(),
        absl::StrCat(option, " ", path, ": ", file ? "the file is empty" : "the file cannot be read"));
  }
  return text.str();
}

std::string Day(Timestamp time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixMicros(time.time_since_epoch().count()),
                          absl::UTCTimeZone());
}

absl::StatusOr<std::set<std::string>> ReadFingerprints(const std::string& path, std::string* wrong_line) {
  std::ifstream file(path);
  const auto unreadable = [&] {
    return absl::NotFoundError(absl::StrCat("--tls-revoked ", path, ": the file cannot be read"));
  };
  if (!file) return unreadable();
  std::set<std::string> fingerprints;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::string word = absl::AsciiStrToLower(absl::StripAsciiWhitespace(line.substr(0, line.find('#'))));
    std::erase(word, ':');
    if (word.empty()) continue;
    if (word.size() == 64 && word.find_first_not_of("0123456789abcdef") == std::string::npos) {
      fingerprints.insert(std::move(word));
    } else if (wrong_line->empty()) {
      *wrong_line = absl::StrCat("--tls-revoked ", path, ":", number,
                                 ": must be the SHA-256 fingerprint of a certificate, 64 hex digits");
    }
  }
  // Half of a file is none.
  if (file.bad()) return unreadable();
  return fingerprints;
}

}  // namespace

absl::StatusOr<TlsMaterial> LoadTlsMaterial(const TlsFiles& files, Timestamp now) {
  TlsMaterial material;
  for (auto [option, path, text] : {std::tuple{"--tls-cert", &files.certificate, &material.certificate},
                                    std::tuple{"--tls-key", &files.key, &material.key},
                                    std::tuple{"--tls-ca", &files.authorities, &material.authorities}}) {
    FUSION_ASSIGN_OR_RETURN(std::string read, ReadFile(option, *path));
    *text = std::move(read);
  }
  const std::vector<CertificatePointer> certificates = ReadCertificates(material.certificate);
  if (certificates.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        "--tls-cert ", files.certificate, ": must be a certificate in PEM (-----BEGIN CERTIFICATE-----)"));
  const KeyPointer key = ReadPrivateKey(material.key);
  if (!key)
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-key ", files.key,
                     ": must be a private key in PEM without a password (-----BEGIN PRIVATE KEY-----)"));
  if (X509_check_private_key(certificates.front().get(), key.get()) != 1)
    return absl::InvalidArgumentError(absl::StrCat("--tls-key ", files.key,
                                                   ": is not the key of the certificate ", files.certificate,
                                                   "; name the two that were made together"));
  if (ReadCertificates(material.authorities).empty())
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-ca ", files.authorities, ": must hold the certificates of authorities in PEM"));
  const Timestamp from = TimeOf(X509_get0_notBefore(certificates.front().get()));
  const Timestamp until = TimeOf(X509_get0_notAfter(certificates.front().get()));
  if (until < now)
    return absl::FailedPreconditionError(
        absl::StrCat("--tls-cert ", files.certificate, ": expired at ", Day(until),
                     "; make a new one (deploy/make-certificates.sh --renew)"));
  if (from > now)
    return absl::FailedPreconditionError(absl::StrCat("--tls-cert ", files.certificate, ": is good from ",
                                                      Day(from),
                                                      " on only; is the clock of this machine right?"));
  return material;
}

bool FileWatch::Changed() {
  struct stat file {};
  std::string now = "none";
  if (stat(path_.c_str(), &file) == 0)
    now = absl::StrCat(file.st_dev, " ", file.st_ino, " ", file.st_size, " ", file.st_mtim.tv_sec, ".",
                       file.st_mtim.tv_nsec, " ", file.st_ctim.tv_sec, ".", file.st_ctim.tv_nsec);
  return std::exchange(seen_, now) != now;
}

TlsMaterialSource::TlsMaterialSource(TlsFiles files)
    : files_(std::move(files)),
      certificate_(files_.certificate),
      key_(files_.key),
      authorities_(files_.authorities) {}

std::optional<TlsMaterial> TlsMaterialSource::TakeNew(Timestamp now) {
  std::lock_guard lock(mutex_);
  bool changed = !last_error_.empty();
  for (FileWatch* file : {&certificate_, &key_, &authorities_}) changed |= file->Changed();
  if (!changed) return std::nullopt;
  absl::StatusOr<TlsMaterial> material = LoadTlsMaterial(files_, now);
  if (!material.ok()) {
    if (last_error_ != material.status().message())
      spdlog::error("{}; connections go on with the files as they were before",
                    std::string(material.status().message()));
    last_error_ = std::string(material.status().message());
    return std::nullopt;
  }
  last_error_.clear();
  if (last_ == *material) return std::nullopt;
  if (last_) spdlog::info("{}: new certificates are in use", files_.certificate);
  last_ = *material;
  return last_;
}

absl::Status RevokedCertificates::Load() {
  std::lock_guard lock(mutex_);
  if (watch_.path().empty()) return absl::OkStatus();
  watch_.Changed();
  std::string wrong_line;
  FUSION_ASSIGN_OR_RETURN(std::set<std::string> read, ReadFingerprints(watch_.path(), &wrong_line));
  if (!wrong_line.empty()) return absl::InvalidArgumentError(wrong_line);
  fingerprints_ = std::move(read);
  return absl::OkStatus();
}

bool RevokedCertificates::Contains(const std::string& fingerprint) {
  std::lock_guard lock(mutex_);
  if (!watch_.path().empty() && (watch_.Changed() || !last_error_.empty())) {
    std::string wrong_line;
    absl::StatusOr<std::set<std::string>> read = ReadFingerprints(watch_.path(), &wrong_line);
    if (read.ok() && wrong_line.empty()) {
      fingerprints_ = *std::move(read);
      last_error_.clear();
      spdlog::info("{}: {} certificates are revoked", watch_.path(), fingerprints_.size());
    } else {
      if (read.ok()) fingerprints_.merge(*read);
      const std::string error = read.ok() ? wrong_line : std::string(read.status().message());
      if (error != last_error_) spdlog::error("{}; what was revoked before stays so", error);
      // A line that is wrong is as wrong the next time; what could not be read may be read then.
      last_error_ = read.ok() ? "" : error;
    }
  }
  return fingerprints_.contains(fingerprint);
}

}  // namespace fusion

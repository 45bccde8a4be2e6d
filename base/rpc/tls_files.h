// The PEM files of a server, read again when they change.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace fusion {

struct TlsFiles {
  std::string certificate;  // with the certificates between it and the authority
  std::string key;
  std::string authorities;  // the authorities that sign the certificates of callers
  std::string revoked;      // fingerprints of certificates that are good no more; "": none are

  bool operator==(const TlsFiles&) const = default;
};

struct TlsMaterial {
  std::string certificate, key, authorities;  // PEM
  bool operator==(const TlsMaterial&) const = default;
};

// Reads and checks the three files. Errors name the file, and say what is right: NotFound or PermissionDenied
// (it cannot be read), InvalidArgument (no PEM, the key is encrypted, or belongs to another certificate),
// FailedPrecondition (the certificate's time is over, or has not come).
absl::StatusOr<TlsMaterial> LoadTlsMaterial(const TlsFiles& files, Timestamp now);

// Remembers what a file was when it was looked at last.
class FileWatch {
 public:
  explicit FileWatch(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  // Returns whether the file is another one than at the last call; true at the first. Not thread safe.
  bool Changed();

 private:
  std::string path_;
  std::string seen_;
};

// The material of the files as they now are. Thread safe.
class TlsMaterialSource {
 public:
  explicit TlsMaterialSource(TlsFiles files);
  // Returns the material if it is new since the last call. Wrong files, such as a new certificate whose key
  // is not there yet, are reported in the log and tried again at the next call: what was good stays in use.
  std::optional<TlsMaterial> TakeNew(Timestamp now);

 private:
  const TlsFiles files_;
  std::mutex mutex_;
  FileWatch certificate_, key_, authorities_;  // guarded by mutex_
  std::optional<TlsMaterial> last_;            // guarded by mutex_
  std::string last_error_;                     // guarded by mutex_
};

// The file of revoked certificates: a fingerprint (64 hex digits) a line, '#' begins a comment. Thread safe.
class RevokedCertificates {
 public:
  // "": none are revoked.
  explicit RevokedCertificates(const std::string& path) : watch_(path) {}
  // InvalidArgument, NotFound: the file is wrong. Call once, before the rest.
  absl::Status Load();
  // Looks whether the file has changed. While it cannot be read or has a line that is wrong, what it said
  // before stands too, and the log says so.
  bool Contains(const std::string& fingerprint);

 private:
  std::mutex mutex_;
  FileWatch watch_;                     // guarded by mutex_
  std::set<std::string> fingerprints_;  // guarded by mutex_
  std::string last_error_;              // guarded by mutex_; why it could not be read
};

}  // namespace fusion

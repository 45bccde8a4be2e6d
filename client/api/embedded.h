// A server and a worker inside the calling process, for use without any daemon.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "fusion/v1/device.pb.h"

namespace fusion {

// Returns the folder where embedded servers keep their data unless they are told otherwise, and servers that
// are programs too.
std::string EmbeddedDataDirectory();
// Creates the folder when it is absent. Unavailable when that fails; the message says how to choose another.
absl::Status PrepareEmbeddedData(const std::string& directory);

struct EmbeddedOptions {
  // Database and exported folders; "" is EmbeddedDataDirectory().
  std::string data_directory;
  // Work in a temporary folder, which is removed at the end; data_directory is not touched.
  bool ephemeral = false;
  // Where another process uses the data directory, there is a temporary folder and a notice, or
  // FailedPrecondition.
  enum class WhenLocked { kUseTemporary, kFail };
  WhenLocked when_locked = WhenLocked::kUseTemporary;
  // Every stage of the pipeline writes its value as text into this folder; "" writes none.
  std::string dump_directory;
  // Tells a person a line, which comes without its end. May be empty.
  std::function<void(const std::string&)> notice;
};

// Owns a server and, once it is started, a worker; the destructor stops both. Jobs that are not finished stay
// in the database, and go on when they are watched in a later process or by a server on the same data
// directory. Thread safe.
class EmbeddedBackend {
 public:
  static absl::StatusOr<std::unique_ptr<EmbeddedBackend>> Start(const EmbeddedOptions& options);
  ~EmbeddedBackend();
  EmbeddedBackend(const EmbeddedBackend&) = delete;
  EmbeddedBackend& operator=(const EmbeddedBackend&) = delete;

  // Starts a worker for devices of this target (TARGET_AUTO: all); it is ready when it has measured them,
  // after some seconds. Code for the host runs also where it cannot be confined, with a notice. Call at most
  // once. That it cannot start is told as a notice; jobs then find no device.
  void StartWorker(v1::Target target);

  // No call on the channel may begin while this object is destroyed (Server::InProcessChannel).
  std::shared_ptr<grpc::Channel> channel() const;
  const std::string& data_directory() const;
  // True when what is stored ends with this object.
  bool temporary() const;

 private:
  struct Parts;
  explicit EmbeddedBackend(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fusion

// A server and a worker inside the calling process, for use without any daemon.
//
// Processes of one user share a data directory: the first has the server, and a socket beside the store at
// which the others find it. When it ends, one of the others has the server, on the same data, and so with the
// worker: at any time one process has it.
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
  // Every stage of the pipeline writes its value as text into this folder, in a server that is not shared; ""
  // writes none.
  std::string dump_directory;
  // Tells a person a line, which comes without its end; from any thread. May be empty.
  std::function<void(const std::string&)> notice;
};

// Has a server, or uses that of another process, and, once it is started, a worker; the destructor stops
// both. Jobs that are not finished stay in the database, and go on when they are watched in another process
// or by a server on the same data directory. Thread safe.
class EmbeddedBackend {
 public:
  // Unavailable: a program that shares it with no other has the data directory, or it cannot be written.
  // FailedPrecondition: another process has the server, and dumps were asked for.
  static absl::StatusOr<std::unique_ptr<EmbeddedBackend>> Start(const EmbeddedOptions& options);
  ~EmbeddedBackend();
  EmbeddedBackend(const EmbeddedBackend&) = delete;
  EmbeddedBackend& operator=(const EmbeddedBackend&) = delete;

  // Starts the worker for all devices of this machine, as soon as no other process has it; it is ready when
  // it has measured them, after some seconds. Code for the host runs also where it cannot be confined, with a
  // notice if `target` may be the host. Call at most once. That it cannot start is told as a notice; jobs
  // then find no device.
  void StartWorker(v1::Target target);

  // No call on the channel may begin while this object is destroyed (Server::InProcessChannel).
  std::shared_ptr<grpc::Channel> channel() const;
  const std::string& data_directory() const;
  // Returns true when what is stored ends with this object.
  bool temporary() const;
  // Returns whether another process had the server at the start. Calls then fail with Unavailable when that
  // process ends, until the next one has it.
  bool shared() const;

 private:
  struct Parts;
  explicit EmbeddedBackend(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fusion

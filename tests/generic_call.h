// A call of a method by its name, with messages of any bytes.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fusion {

// Sends the messages and reads answers until the call ends; they are appended to `answers`, if it is not
// null. A call that has not ended when the patience is over is given up: DEADLINE_EXCEEDED.
inline grpc::Status CallMethod(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                               const std::vector<std::string>& messages, std::chrono::milliseconds patience,
                               std::vector<std::string>* answers = nullptr) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patience);
  grpc::CompletionQueue queue;
  // A write of a server in this process ends only when it is read: answers are read while messages are still
  // written.
  enum : intptr_t { kCall = 1, kWrite, kRead };
  const auto tag_of = [](intptr_t what) { return reinterpret_cast<void*>(what); };
  auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(tag_of(kCall));
  void* tag = nullptr;
  bool ok = false;
  const bool started = queue.Next(&tag, &ok) && ok;
  bool writing = false, reading = started;
  size_t next = 0;
  const auto write = [&] {
    writing = next <= messages.size();
    if (next < messages.size()) {
      grpc::Slice slice(messages[next]);
      call->Write(grpc::ByteBuffer(&slice, 1), tag_of(kWrite));
    } else if (writing) {
      call->WritesDone(tag_of(kWrite));
    }
    ++next;
  };
  grpc::ByteBuffer answer;
  if (started) {
    call->Read(&answer, tag_of(kRead));
    write();
  }
  while ((reading || writing) && queue.Next(&tag, &ok)) {
    if (tag == tag_of(kWrite)) {
      writing = false;
      if (ok) write();
      continue;
    }
    reading = ok;
    if (!ok) continue;
    grpc::Slice slice;
    if (answers != nullptr && answer.DumpToSingleSlice(&slice).ok())
      answers->emplace_back(slice.begin(), slice.end());
    call->Read(&answer, tag_of(kRead));
  }
  grpc::Status status;
  call->Finish(&status, tag_of(kCall));
  queue.Next(&tag, &ok);
  return status;
}

}  // namespace fusion

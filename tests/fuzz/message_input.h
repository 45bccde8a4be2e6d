// Reads messages from what libFuzzer makes: the text form, as the seeds in corpus/ have it, where the first
// byte can be printed, else the binary one.
#pragma once

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace fusion {

// Otherwise protobuf prints every string that is not UTF-8, which takes longer than reading it.
inline void SilenceProtobuf() {
  static const bool silenced = (google::protobuf::SetLogHandler(nullptr), true);
  (void)silenced;
}

inline bool ReadMessage(const std::string& bytes, google::protobuf::Message* message) {
  struct Silent : google::protobuf::io::ErrorCollector {
    void AddError(int, int, const std::string&) override {}
  } silent;
  SilenceProtobuf();
  if (bytes.empty() || bytes[0] < ' ') return message->ParseFromString(bytes);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silent);
  parser.SetRecursionLimit(100);
  return parser.ParseFromString(bytes, message);
}

// Returns whether the message could come over the wire, where strings are UTF-8.
inline bool Decodable(const google::protobuf::Message& message) {
  google::protobuf::Message* copy = message.New();
  const bool decodable = copy->ParseFromString(message.SerializeAsString());
  delete copy;
  return decodable;
}

inline void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace fusion

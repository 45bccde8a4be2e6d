// All errors of one source, in the form that people and programs read.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/parse/location.h"

namespace fusion {

// Collects errors. Not thread safe.
class ErrorList {
 public:
  static constexpr int kReported = 100;    // further errors are only counted: "... and 17 more errors"
  static constexpr int kSuggestions = 20;  // errors that may spend time on "did you mean"

  // An empty file name is written as "<submission>".
  explicit ErrorList(std::string file_name);

  void Add(const Location& location, std::string message);

  bool empty() const { return count_ == 0; }
  int count() const { return count_; }
  const std::string& file_name() const { return file_name_; }
  // Returns true a limited number of times: searching for similar names costs time for each error.
  bool MaySuggest() { return suggestions_++ < kSuggestions; }

  // Returns Ok when empty, else InvalidArgument. The message has one line per error, by position:
  // "FILE:LINE:COL: error: ...", "FILE:calls[3].arguments[1]: error: ..." or "FILE: error: ...". A
  // google.rpc.BadRequest payload has one FieldViolation per line: field "FILE:LINE:COL" (or the field path),
  // description the rest.
  absl::Status ToStatus() const;

 private:
  struct Error {
    Location location;
    std::string message;
  };
  std::string file_name_;
  std::vector<Error> errors_;
  int count_ = 0;
  int suggestions_ = 0;
};

// The key of the payload: "type.googleapis.com/google.rpc.BadRequest".
extern const char kBadRequestType[];

}  // namespace fusion

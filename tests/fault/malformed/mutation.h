// Messages and texts that no client would send, made of ones that it would. The same seed gives the same
// ones.
#pragma once

#include <google/protobuf/message.h>

#include <random>
#include <string>

namespace fusion {

class Mutation {
 public:
  explicit Mutation(uint64_t seed) : random_(seed) {}

  // 0 to count - 1.
  int Below(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  bool OneIn(int count) { return Below(count) == 0; }

  // Values that are at the edges of what their types hold, or beyond what their fields mean.
  int64_t Integer();
  double Number();
  // Returns a text that is empty, long, with control characters or like a name of ours. Valid UTF-8 only if
  // asked for.
  std::string Text(bool utf8 = true);

  // Returns the bytes with some bits flipped, bytes left out, put in twice or replaced.
  std::string Bytes(std::string bytes);
  // Does the same to the words of a text; also nests parentheses and puts pieces of the text elsewhere.
  std::string Words(const std::string& text);
  // Sets some of the fields anywhere in the message, clears or repeats others.
  void Fields(google::protobuf::Message* message, int depth = 0);

 private:
  void SetField(google::protobuf::Message* message, const google::protobuf::FieldDescriptor* field, bool add);
  std::mt19937_64 random_;
};

}  // namespace fusion

// A set of nodes as a bit vector.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusion {

class NodeSet {
 public:
  NodeSet() = default;
  explicit NodeSet(int capacity) : words_((capacity + 63) / 64) {}
  void Add(int node) {
    if (static_cast<size_t>(node / 64) >= words_.size()) words_.resize(node / 64 + 1);
    words_[node / 64] |= uint64_t{1} << (node % 64);
  }
  void Remove(int node) {
    if (static_cast<size_t>(node / 64) < words_.size()) words_[node / 64] &= ~(uint64_t{1} << (node % 64));
  }
  bool Contains(int node) const {
    return static_cast<size_t>(node / 64) < words_.size() && (words_[node / 64] >> (node % 64) & 1);
  }
  bool Intersects(const NodeSet& other) const {
    for (size_t i = 0; i < words_.size() && i < other.words_.size(); ++i)
      if (words_[i] & other.words_[i]) return true;
    return false;
  }
  void UnionWith(const NodeSet& other) {
    if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
    for (size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
  }
  int Size() const {
    int size = 0;
    for (uint64_t word : words_) size += std::popcount(word);
    return size;
  }
  bool Empty() const {
    for (uint64_t word : words_)
      if (word) return false;
    return true;
  }
  // Returns the members in ascending order.
  std::vector<int> Members() const {
    std::vector<int> members;
    for (size_t i = 0; i < words_.size(); ++i)
      for (uint64_t word = words_[i]; word; word &= word - 1)
        members.push_back(static_cast<int>(i) * 64 + std::countr_zero(word));
    return members;
  }
  friend bool operator==(const NodeSet& a, const NodeSet& b) { return Compare(a, b) == 0; }
  friend std::strong_ordering operator<=>(const NodeSet& a, const NodeSet& b) { return Compare(a, b) <=> 0; }

 private:
  static int Compare(const NodeSet& a, const NodeSet& b) {
    size_t n = a.words_.size() > b.words_.size() ? a.words_.size() : b.words_.size();
    for (size_t i = n; i-- > 0;) {
      uint64_t x = i < a.words_.size() ? a.words_[i] : 0, y = i < b.words_.size() ? b.words_[i] : 0;
      if (x != y) return x < y ? -1 : 1;
    }
    return 0;
  }
  std::vector<uint64_t> words_;
};

}  // namespace fusion

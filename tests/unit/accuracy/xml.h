// Reads as much of XML as our SVG documents use: elements, attributes in double quotes, text, references to
// characters. Everything else, and whatever is not well-formed, is an error.
#pragma once

#include <cctype>
#include <map>
#include <string>
#include <vector>

namespace fusion {

struct XmlElement {
  std::string name;
  int parent = -1;  // position in elements; -1 of the first
  std::map<std::string, std::string> attributes;
  std::string text;  // of the element itself, with references replaced
};

struct XmlDocument {
  std::vector<XmlElement> elements;  // in the order in which they begin
  std::string error;                 // "" when well-formed
};

class XmlReader {
 public:
  explicit XmlReader(const std::string& text) : text_(text) {}

  XmlDocument Read() {
    while (document_.error.empty() && at_ < text_.size()) {
      if (Take("</")) {
        End();
      } else if (Take("<")) {
        Begin();
      } else {
        const std::string content = Characters('<');
        if (!open_.empty()) {
          document_.elements[open_.back()].text += content;
        } else if (content.find_first_not_of(" \n") != std::string::npos) {
          Fail("text outside of the first element");
        }
      }
    }
    if (!open_.empty()) Fail("an element does not end");
    if (document_.elements.empty()) Fail("no element");
    return document_;
  }

 private:
  void Fail(const std::string& what) {
    if (document_.error.empty()) document_.error = what + " at byte " + std::to_string(at_);
  }

  bool Take(const std::string& expected) {
    if (text_.compare(at_, expected.size(), expected) != 0) return false;
    at_ += expected.size();
    return true;
  }

  std::string Name() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-'))
      ++at_;
    if (at_ == begin) Fail("no name");
    return text_.substr(begin, at_ - begin);
  }

  // Up to `end`, which is not taken.
  std::string Characters(char end) {
    static const std::map<std::string, char> kReferences = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
    std::string characters;
    while (document_.error.empty() && at_ < text_.size() && text_[at_] != end) {
      if (text_[at_] == '&') {
        const auto found = kReferences.find(text_.substr(at_, text_.find(';', at_) - at_ + 1));
        if (found == kReferences.end()) {
          Fail("an unknown reference");
          break;
        }
        characters += found->second;
        at_ += found->first.size();
      } else if (text_[at_] == '<' || (static_cast<unsigned char>(text_[at_]) < 0x20 && text_[at_] != '\n')) {
        Fail("a character that must not stand here");
      } else {
        characters += text_[at_++];
      }
    }
    return characters;
  }

  void Begin() {
    if (open_.empty() && !document_.elements.empty()) Fail("a second element outside of all");
    XmlElement element;
    element.name = Name();
    element.parent = open_.empty() ? -1 : open_.back();
    while (document_.error.empty() && Take(" ")) {
      const std::string attribute = Name();
      if (!Take("=\"")) Fail("no value in double quotes");
      const std::string value = Characters('"');
      if (!Take("\"")) Fail("a value does not end");
      if (!element.attributes.emplace(attribute, value).second) Fail("an attribute twice");
    }
    const int position = static_cast<int>(document_.elements.size());
    document_.elements.push_back(element);
    if (Take("/>")) return;
    if (!Take(">")) Fail("a tag does not end");
    open_.push_back(position);
  }

  void End() {
    const std::string name = Name();
    if (!Take(">")) Fail("a tag does not end");
    if (open_.empty() || document_.elements[open_.back()].name != name)
      return Fail("</" + name + "> ends nothing");
    open_.pop_back();
  }

  const std::string& text_;
  size_t at_ = 0;
  std::vector<int> open_;
  XmlDocument document_;
};

inline XmlDocument ParseXml(const std::string& text) { return XmlReader(text).Read(); }

}  // namespace fusion

#include "client/partition/learned.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "client/partition/own_threads.h"
#include "client/partition/size_class.h"
#include "client/partition/stable_hash.h"

namespace fusion {
namespace {

constexpr std::string_view kLearnedFirstLine = "fusion-partition 1\n";
constexpr int kMostLockTries = 100;  // a millisecond apart

std::string Escaped(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string escaped;
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte > ' ' && byte < 0x7f && byte != '%') {
      escaped += each;
    } else {
      escaped += {'%', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return escaped;
}

// std::to_chars and std::from_chars do not depend on the program's locale.
std::string TextOfNumber(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), number).ptr};
}

// Takes a line apart. After what is not as expected nothing is good.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  std::string_view Word() {
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(std::min(rest_.size(), word.size() + 1));
    is_good_ = is_good_ && !word.empty();
    return word;
  }
  std::string Text() {
    const std::string_view word = Word();
    std::string text;
    for (size_t at = 0; at < word.size(); ++at) {
      unsigned char byte = static_cast<unsigned char>(word[at]);
      if (byte == '%') {
        const char* const end = word.data() + std::min(at + 3, word.size());
        if (std::from_chars(word.data() + at + 1, end, byte, 16).ptr != word.data() + at + 3)
          is_good_ = false;
        at += 2;
      }
      text += static_cast<char>(byte);
    }
    return text;
  }
  template <class Number, class... Base>
  Number NumberIn(Number least, Number most, Base... base) {
    return Parse(Word(), least, most, base...);
  }
  template <class Number, class... Base>
  Number Parse(std::string_view word, Number least, Number most, Base... base) {
    Number number{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base...);
    if (error != std::errc() || end != word.data() + word.size() || !(number >= least && number <= most))
      is_good_ = false;
    return number;
  }
  // All was as expected, and nothing is left.
  bool IsGood() const { return is_good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool is_good_ = true;
};

struct LearnedLine {
  LearnedKey key;
  int size_class = 0;
  LearnedLoop loop;
};

std::optional<LearnedLine> LearnedLineOf(std::string_view text) {
  constexpr double kMost = 1e12;
  LineReader reader(text);
  LearnedLine line;
  line.key.loop.place = reader.Text();
  line.key.loop.function = reader.Text();
  line.key.shape = reader.NumberIn<uint64_t>(0, UINT64_MAX, 16);
  line.size_class = reader.NumberIn(0, kSizeClasses - 1);
  LearnedLoop& loop = line.loop;
  for (double* seconds : {&loop.one_thread, &loop.threads, &loop.device})
    *seconds = reader.NumberIn(0.0, kMost);
  loop.episodes.saving = reader.NumberIn(-kMost, kMost);
  for (double* number : {&loop.episodes.copies, &loop.episodes.calls}) *number = reader.NumberIn(0.0, kMost);
  loop.device_saved = reader.NumberIn(-kMost, kMost);
  const std::string_view share = reader.Word();
  if (share == "-") {
    for (int i = 0; i < 4; ++i)
      if (reader.Word() != "-") return std::nullopt;
  } else {
    LoopPlan& plan = loop.plan.emplace();
    plan.device_share = reader.Parse(share, 0.0, 1.0);
    plan.chunks = reader.NumberIn(1, LoopPlan::kMostChunks);
    plan.threads = reader.NumberIn(1, INT_MAX);
    plan.block_x = reader.NumberIn(0, LoopPlan::kMostBlockX);
    plan.block_y = reader.NumberIn(0, LoopPlan::kMostBlockY);
    if (plan.block_x * plan.block_y > LoopPlan::kMostBlockThreads) return std::nullopt;
  }
  if (!reader.IsGood()) return std::nullopt;
  return line;
}

std::string TextOfLearned(const LearnedKey& key, int size_class, const LearnedLoop& loop) {
  char shape[17];
  std::string text = Escaped(key.loop.place) + " " + Escaped(key.loop.function) + " " +
                     std::string(shape, std::to_chars(shape, shape + sizeof(shape), key.shape, 16).ptr) +
                     " " + std::to_string(size_class);
  for (const double number : {loop.one_thread, loop.threads, loop.device, loop.episodes.saving,
                              loop.episodes.copies, loop.episodes.calls, loop.device_saved})
    text += " " + TextOfNumber(number);
  if (!loop.plan.has_value()) return text + " - - - - -\n";
  text += " " + TextOfNumber(loop.plan->device_share);
  for (const int number : {loop.plan->chunks, loop.plan->threads, loop.plan->block_x, loop.plan->block_y})
    text += " " + std::to_string(number);
  return text + "\n";
}

class LearnedFile {
 public:
  LearnedFile(const std::string& path, int flags)
      : descriptor_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~LearnedFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  LearnedFile(const LearnedFile&) = delete;
  LearnedFile& operator=(const LearnedFile&) = delete;

  int descriptor() const { return descriptor_; }
  // Returns what is read from the beginning, "" for what is too long or is no file.
  std::string Read() const {
    struct stat status;
    if (descriptor_ < 0 || fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size > static_cast<off_t>(Learned::kMostBytes))
      return "";
    std::string text(static_cast<size_t>(status.st_size), 0);
    size_t size = 0;
    for (ssize_t count; size < text.size(); size += static_cast<size_t>(count)) {
      count = pread(descriptor_, text.data() + size, text.size() - size, static_cast<off_t>(size));
      if (count <= 0) break;
    }
    text.resize(size);
    return text;
  }
  bool Write(std::string_view text) const {
    while (descriptor_ >= 0 && !text.empty()) {
      const ssize_t count = write(descriptor_, text.data(), text.size());
      if (count <= 0) return false;
      text.remove_prefix(static_cast<size_t>(count));
    }
    return descriptor_ >= 0;
  }

 private:
  const int descriptor_;
};

std::vector<LearnedLine> LearnedLinesOf(std::string_view text) {
  std::vector<LearnedLine> lines;
  if (text.substr(0, kLearnedFirstLine.size()) != kLearnedFirstLine) return lines;
  text.remove_prefix(kLearnedFirstLine.size());
  // A last line without an end was cut off.
  for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
    if (std::optional<LearnedLine> line = LearnedLineOf(text.substr(0, end)))
      lines.push_back(*std::move(line));
  return lines;
}

// Returns whether the file still has this name, and is held by this process alone.
bool LockFile(const LearnedFile& file, const std::string& path) {
  struct stat held, named;
  if (flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) return false;
  return fstat(file.descriptor(), &held) == 0 && stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

}  // namespace

Learned::Learned(std::string path) : path_(std::move(path)), forks_(ForksUntilNow()) {}

const LearnedLoop* Learned::Find(const LearnedKey& key, int size_class) {
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!is_read_ && !path_.empty())
      for (LearnedLine& line : LearnedLinesOf(LearnedFile(path_, O_RDONLY | O_NONBLOCK).Read()))
        loops_.try_emplace({std::move(line.key), line.size_class}, line.loop);  // what is noted is newer
    is_read_ = true;
    const auto found = loops_.find({key, size_class});
    return found == loops_.end() ? nullptr : &found->second;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void Learned::Note(const LearnedKey& key, int size_class, const LearnedLoop& loop) {
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    loops_[{key, size_class}] = loop;
    noted_.insert({key, size_class});
  } catch (const std::exception&) {
  }
}

void Learned::Save() {
  if (forks_ != ForksUntilNow()) return;
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    if (noted_.empty() || path_.empty()) return;
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    for (const std::filesystem::path& each : {folder.parent_path(), folder}) {
      std::error_code error;
      // A server makes its folder for its user alone, too.
      if (std::filesystem::create_directories(each, error))
        std::filesystem::permissions(each, std::filesystem::perms::owner_all, error);
    }
    for (int tries = 0; tries < kMostLockTries; ++tries) {
      if (tries > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const LearnedFile file(path_, O_RDWR | O_CREAT | O_NONBLOCK);
      if (file.descriptor() < 0) return;
      if (!LockFile(file, path_)) continue;
      std::vector<std::string> lines;
      for (const LearnedLine& line : LearnedLinesOf(file.Read()))
        if (!noted_.contains({line.key, line.size_class}))
          lines.push_back(TextOfLearned(line.key, line.size_class, line.loop));
      for (const auto& [key, size_class] : noted_)
        lines.push_back(TextOfLearned(key, size_class, loops_.at({key, size_class})));
      size_t bytes = kLearnedFirstLine.size(), first = lines.size();
      while (first > 0 && lines.size() - first < kMostLines && bytes + lines[first - 1].size() <= kMostBytes)
        bytes += lines[--first].size();
      std::string text(kLearnedFirstLine);
      for (; first < lines.size(); ++first) text += lines[first];
      const std::string temporary = path_ + ".new";  // the lock is held
      if (LearnedFile(temporary, O_WRONLY | O_CREAT | O_TRUNC).Write(text)) {
        if (std::rename(temporary.c_str(), path_.c_str()) == 0) noted_.clear();
      } else {
        unlink(temporary.c_str());
      }
      return;
    }
  } catch (const std::exception&) {
  }
}

std::string ExecutablePath() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  return size <= 0 ? "" : std::string(path, static_cast<size_t>(size));
}

std::string LearnedPath(const char* (*read_env)(const char*), const std::string& executable) {
  if (executable.empty()) return "";
  const auto read = [read_env](const char* name) {
    const char* const value = read_env(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string folder = read("FUSION_DATA_DIR");
  if (folder.empty()) {
    if (const std::string data = read("XDG_DATA_HOME"); !data.empty()) {
      folder = data + "/fusion";
    } else if (const std::string home = read("HOME"); !home.empty()) {
      folder = home + "/.local/share/fusion";
    } else {
      std::error_code error;
      const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
      folder = (error ? "/tmp" : temporary.string()) + "/fusion-" + std::to_string(getuid());
    }
  }
  StableHash hash;
  hash.Add(executable.data(), executable.size());
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash.hash()));
  // A name of a file has 255 bytes at most.
  return folder + "/partition/" + executable.substr(executable.rfind('/') + 1).substr(0, 200) + "-" + digits;
}

}  // namespace fusion

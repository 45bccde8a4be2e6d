#include "client/partition/settings.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <thread>

namespace fusion {
namespace {

// std::from_chars does not depend on the program's locale.
template <class Number>
bool ParseNumber(std::string_view text, Number least, Number most, Number& number) {
  Number parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (!(parsed >= least && parsed <= most)) return false;
  number = parsed;
  return true;
}

template <class Value>
struct NamedValue {
  std::string_view name;
  Value value;
};

class SettingsReader {
 public:
  SettingsReader(const char* (*read)(const char*), std::vector<std::string>& complaints)
      : read_(read), complaints_(complaints) {}

  // Returns false for a value that is none of `values`.
  template <class Value, size_t count>
  bool ReadName(const char* variable, const NamedValue<Value> (&values)[count], Value& value) {
    const char* text = read_(variable);
    if (text == nullptr || *text == 0) return true;
    std::string names;
    for (const NamedValue<Value>& known : values) {
      if (known.name == text) {
        value = known.value;
        return true;
      }
      if (!names.empty()) names += ", ";
      names += known.name;
    }
    Complain(variable, text, "is none of " + names);
    return false;
  }

  template <class Number>
  bool ReadNumber(const char* variable, Number least, Number most, const char* expected, Number& number) {
    const char* text = read_(variable);
    if (text == nullptr || *text == 0) return false;
    if (ParseNumber(text, least, most, number)) return true;
    Complain(variable, text, std::string("is not ") + expected + ", the default is taken");
    return false;
  }

  void ReadSimulated(SimulatedDeviceSettings& simulated) {
    const char* const variable = "FUSION_PARTITION_SIMULATED";
    const char* text = read_(variable);
    if (text == nullptr) return;
    SimulatedDeviceSettings parsed;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      const size_t equals = word.find('=');
      const std::string_view name = word.substr(0, equals);
      const std::string_view value = equals == word.npos ? "" : word.substr(equals + 1);
      int64_t* number = name == "memory" ? &parsed.memory_bytes : name == "fault" ? &parsed.fault : nullptr;
      if (number == nullptr || !ParseNumber<int64_t>(value, 0, INT64_MAX, *number)) {
        Complain(variable, text, "is not memory=BYTES,fault=RUN, the default is taken");
        return;
      }
    }
    simulated = parsed;
  }

 private:
  void Complain(const char* variable, const char* text, const std::string& reason) {
    complaints_.push_back(std::string(variable) + "=" + text + " " + reason);
  }

  const char* (*const read_)(const char*);
  std::vector<std::string>& complaints_;
};

}  // namespace

PartitionSettings ReadPartitionSettings(const char* (*read)(const char*),
                                        std::vector<std::string>& complaints) {
  static constexpr NamedValue<PartitionMode> kModes[] = {{"off", PartitionMode::kOff},
                                                         {"host", PartitionMode::kHost},
                                                         {"device", PartitionMode::kDevice},
                                                         {"auto", PartitionMode::kAuto},
                                                         {"check", PartitionMode::kCheck}};
  static constexpr NamedValue<PartitionDeviceKind> kDevices[] = {
      {"cuda", PartitionDeviceKind::kCuda}, {"simulated", PartitionDeviceKind::kSimulated}};
  static constexpr NamedValue<bool> kSwitch[] = {{"0", false}, {"1", true}};
  static constexpr NamedValue<bool> kOnOff[] = {{"off", false}, {"on", true}};

  PartitionSettings settings;
  settings.threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 1024);
  SettingsReader reader(read, complaints);
  if (!reader.ReadName("FUSION_PARTITION", kModes, settings.mode)) settings.mode = PartitionMode::kOff;
  reader.ReadName("FUSION_PARTITION_DEVICE", kDevices, settings.device);
  reader.ReadName("FUSION_PARTITION_REPORT", kSwitch, settings.report);
  if (!reader.ReadName("FUSION_PARTITION_TUNER", kOnOff, settings.tuner)) settings.tuner = false;
  double split = 0;
  if (reader.ReadNumber("FUSION_PARTITION_SPLIT", 0.0, 1.0, "a number from 0 to 1", split))
    settings.split = split;
  reader.ReadNumber("FUSION_PARTITION_CHUNKS", 1, 64, "a number from 1 to 64", settings.chunks);
  reader.ReadNumber("FUSION_PARTITION_THREADS", 1, 1024, "a number from 1 to 1024", settings.threads);
  reader.ReadNumber("FUSION_PARTITION_LEAST_WORK", 0.0, 1e300, "a number of instructions",
                    settings.least_work);
  reader.ReadSimulated(settings.simulated);
  return settings;
}

}  // namespace fusion

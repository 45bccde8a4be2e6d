#include "worker/build/build_options.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace fusion {
namespace {

// Both compilers, or one that says what is wrong.
constexpr absl::string_view kAllowed[] = {
    "-O0", "-O1", "-O2", "-O3", "-g", "-std=c++17", "-std=c++20", "--std=c++17", "--std=c++20", "-ffast-math",
    "-fno-fast-math", "-ffp-contract=off", "-ffp-contract=on", "-ffp-contract=fast", "-funroll-loops",
    "-fno-unroll-loops", "-fopenmp", "-w", "-Wall",
    // NVRTC
    "-default-device", "--default-device", "-lineinfo", "--generate-line-info", "--use_fast_math",
    "-use_fast_math", "--fmad=true", "--fmad=false", "--ftz=true", "--ftz=false", "--prec-div=true",
    "--prec-div=false", "--prec-sqrt=true", "--prec-sqrt=false", "--extra-device-vectorization"};

bool IsName(absl::string_view text) {
  return !text.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

bool IsAllowed(absl::string_view option) {
  if (std::find(std::begin(kAllowed), std::end(kAllowed), option) != std::end(kAllowed)) return true;
  if (absl::ConsumePrefix(&option, "-D")) return IsName(option.substr(0, option.find('=')));
  if (absl::ConsumePrefix(&option, "-U")) return IsName(option);
  if (absl::ConsumePrefix(&option, "--maxrregcount="))
    return !option.empty() && option.size() <= 3 &&
           std::all_of(option.begin(), option.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
  return false;
}

}  // namespace

absl::Status CheckBuildOptions(const v1::BuildTask& task) {
  for (const std::string& option : task.options())
    if (!IsAllowed(option))
      return absl::InvalidArgumentError(
          absl::StrCat("the option ", option, " is not one that this worker gives to a compiler"));
  return absl::OkStatus();
}

}  // namespace fusion

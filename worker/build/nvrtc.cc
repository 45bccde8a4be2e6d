#include "worker/build/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace fusion {
namespace {

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

std::vector<std::string> Glob(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

// Files to try, in order.
std::vector<std::string> Places() {
  if (const char* library = std::getenv("FUSION_NVRTC_LIBRARY"); library != nullptr && *library != '\0')
    return {library};
  std::vector<std::string> places(std::begin(kNames), std::end(kNames));
  std::vector<std::string> folders;
  if (const char* path = std::getenv("FUSION_NVRTC_PATH"); path != nullptr)
    for (absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty()))
      folders.emplace_back(folder);
  folders.push_back("/usr/local/cuda/lib64");
  std::vector<std::string> roots = {"/usr/lib", "/usr/local/lib"};
  if (const char* environment = std::getenv("VIRTUAL_ENV"); environment != nullptr)
    roots.insert(roots.begin(), absl::StrCat(environment, "/lib"));
  for (const std::string& root : roots)
    for (const char* packages : {"/python3*/site-packages", "/python3*/dist-packages"})
      for (const char* package : {"/nvidia/cu13/lib", "/nvidia/cuda_nvrtc/lib"})
        for (std::string& folder : Glob(absl::StrCat(root, packages, package)))
          folders.push_back(std::move(folder));
  for (const std::string& folder : folders)
    for (const char* name : kNames) places.push_back(absl::StrCat(folder, "/", name));
  return places;
}

template <class Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

absl::StatusOr<const Nvrtc*> LoadOnce() {
  static Nvrtc nvrtc;
  std::vector<std::string> tried;
  for (const std::string& place : Places()) {
    void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried.push_back(place);
      continue;
    }
    const bool complete = Find(library, "nvrtcVersion", &nvrtc.Version) &&
                          Find(library, "nvrtcGetErrorString", &nvrtc.GetErrorString) &&
                          Find(library, "nvrtcGetNumSupportedArchs", &nvrtc.GetNumSupportedArchs) &&
                          Find(library, "nvrtcGetSupportedArchs", &nvrtc.GetSupportedArchs) &&
                          Find(library, "nvrtcCreateProgram", &nvrtc.CreateProgram) &&
                          Find(library, "nvrtcDestroyProgram", &nvrtc.DestroyProgram) &&
                          Find(library, "nvrtcCompileProgram", &nvrtc.CompileProgram) &&
                          Find(library, "nvrtcGetCUBINSize", &nvrtc.GetCUBINSize) &&
                          Find(library, "nvrtcGetCUBIN", &nvrtc.GetCUBIN) &&
                          Find(library, "nvrtcGetPTXSize", &nvrtc.GetPTXSize) &&
                          Find(library, "nvrtcGetPTX", &nvrtc.GetPTX) &&
                          Find(library, "nvrtcGetProgramLogSize", &nvrtc.GetProgramLogSize) &&
                          Find(library, "nvrtcGetProgramLog", &nvrtc.GetProgramLog);
    if (!complete || nvrtc.Version(&nvrtc.major, &nvrtc.minor) != Nvrtc::kSuccess) {
      tried.push_back(absl::StrCat(place, " (lacks functions)"));
      dlclose(library);
      continue;
    }
    Find(library, "nvrtcSetFlowCallback", &nvrtc.SetFlowCallback);
    nvrtc.path = place;
    if (Dl_info info; dladdr(reinterpret_cast<void*>(nvrtc.Version), &info) != 0) nvrtc.path = info.dli_fname;
    return &nvrtc;
  }
  return absl::NotFoundError(absl::StrCat(
      "no NVRTC (install the CUDA Toolkit or nvidia-cuda-nvrtc, or set FUSION_NVRTC_LIBRARY); looked for ",
      absl::StrJoin(tried, ", ")));
}

}  // namespace

absl::StatusOr<const Nvrtc*> Nvrtc::Load() {
  static const absl::StatusOr<const Nvrtc*>* nvrtc = new absl::StatusOr<const Nvrtc*>(LoadOnce());
  return *nvrtc;
}

}  // namespace fusion

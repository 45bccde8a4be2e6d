#include "server/codegen/code_library.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "library/catalog/sha256.h"

namespace fusion {

std::string BuildKey(const v1::BuildTask& task, const std::string& compiler_version) {
  std::string text;
  auto add = [&](const std::string& field) { absl::StrAppend(&text, field.size(), ":", field); };
  add(task.source());
  add(v1::Target_Name(task.target()));
  add(task.arch());
  for (const std::string& option : task.options()) add(option);
  add(compiler_version);
  return "sha256:" + Sha256Hex(text);
}

absl::StatusOr<const CodeUnit*> CodeLibrary::Add(const FusionImplementation& implementation, bool force_f64) {
  const bool cuda = device_.target() == v1::CUDA;
  auto code = LowerFusion(graph_, implementation, {.force_f64 = force_f64, .cuda = cuda});
  if (!code.ok()) return code.status();
  auto unit = std::make_unique<CodeUnit>();
  unit->code = *std::move(code);
  unit->source = PrintSource(unit->code, cuda ? Language::kCuda : Language::kHost, true);
  unit->build.set_target(device_.target());
  unit->build.set_arch(device_.arch());
  unit->build.set_source(unit->source);
  unit->build.set_deadline_seconds(120);
  unit->build.set_key(BuildKey(unit->build, device_.toolkit_version()));
  auto [it, inserted] = by_key_.emplace(unit->build.key(), unit.get());
  if (inserted) units_.push_back(std::move(unit));
  return it->second;
}

}  // namespace fusion

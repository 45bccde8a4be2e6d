// Hostile sources: what compilers can be made to read, write, start or use up.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fault/long_form.h"
#include "worker/build/host_builder.h"
#include "worker/measure/runner_process.h"

namespace fusion {
namespace {

constexpr char kSecret[] = "fusion_fault_secret_5e1f";

struct SourceProbe {
  std::string name;
  std::string source;
  std::vector<std::string> options = {};
  double deadline_seconds = 20;
  bool may_time_out = false;  // the deadline or a limit of memory: whichever is first
  bool may_compile = false;   // but without what it asked for in the log or the code
};

class HostileSourceTest : public ::testing::TestWithParam<v1::Target> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Builder>> builder =
        GetParam() == v1::HOST ? HostBuilder::Create() : IsolatedBuilder::Create(v1::CUDA);
    if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
    builder_ = *std::move(builder);
    if (!absl::StrContains(builder_->Confinement(), "bubblewrap") &&
        !absl::StrContains(builder_->Confinement(), "Landlock"))
      GTEST_SKIP() << "SKIP: this machine has neither bubblewrap nor Landlock";
    folder_ = "/var/tmp/fusion-fault-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
    // As a header it compiles and its content reaches the log and the code.
    std::ofstream(Path("secret")) << "#pragma message(\"" << kSecret << "\")\n#warning " << kSecret
                                  << "\nint " << kSecret << ";\n";
    std::ofstream(Path("options")) << "-D" << kSecret << "\n";
    setenv("FUSION_FAULT_SECRET", kSecret, 1);
  }
  void TearDown() override {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  BuildOutput Build(const SourceProbe& probe) {
    v1::BuildTask task;
    task.set_target(GetParam());
    task.set_arch(GetParam() == v1::HOST ? HostArch() : "sm_90");
    task.set_source(probe.source);
    // So that sources need no annotations, and fail for what they are here for.
    if (GetParam() == v1::CUDA) task.add_options("-default-device");
    for (const std::string& option : probe.options) task.add_options(option);
    task.set_deadline_seconds(probe.deadline_seconds);
    return builder_->Build(task, {});
  }

  void ExpectHarmless(const std::vector<SourceProbe>& probes) {
    int denied = 0;
    for (const SourceProbe& probe : probes) {
      SCOPED_TRACE(absl::StrCat("probe ", probe.name));
      const auto start = std::chrono::steady_clock::now();
      const BuildOutput output = Build(probe);
      const v1::Outcome outcome = output.result.outcome();
      const bool refused = outcome == v1::COMPILE_ERROR || (probe.may_time_out && outcome == v1::TIMEOUT) ||
                           (probe.may_compile && outcome == v1::OK);
      EXPECT_TRUE(refused) << v1::Outcome_Name(outcome) << ": " << output.result.log().substr(0, 500);
      // The source names the secret's file, never its content.
      EXPECT_FALSE(absl::StrContains(output.result.log(), kSecret)) << output.result.log().substr(0, 2000);
      EXPECT_FALSE(absl::StrContains(output.result.log(), "root:")) << output.result.log().substr(0, 2000);
      EXPECT_FALSE(absl::StrContains(output.binary, kSecret));
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
      const BuildOutput honest = Build({"honest", kHonest});
      EXPECT_EQ(honest.result.outcome(), v1::OK) << honest.result.log();
      denied += refused && !absl::StrContains(output.result.log(), kSecret) &&
                        !absl::StrContains(output.result.log(), "root:") &&
                        !absl::StrContains(output.binary, kSecret)
                    ? 1
                    : 0;
    }
    TellFigure("probes", static_cast<double>(probes.size()));
    TellFigure("probes not denied", static_cast<double>(probes.size()) - denied);
  }

  static constexpr char kHonest[] = "extern \"C\" int honest(int n) { return n + 1; }\n";
  std::unique_ptr<Builder> builder_;
  std::string folder_;
};

INSTANTIATE_TEST_SUITE_P(Sandbox, HostileSourceTest, ::testing::Values(v1::HOST, v1::CUDA),
                         [](const auto& info) { return v1::Target_Name(info.param); });

TEST_P(HostileSourceTest, NoFileIsRevealed) {
  const auto include = [](const std::string& what) { return absl::StrCat("#include ", what, "\n"); };
  const std::string secret = Path("secret");
  // Whether a file is there must not be told either.
  const auto probe_for = [&](const std::string& file) {
    return absl::StrCat("#if __has_include(\"", file,
                        "\")\nint is_there = 1;\n#else\n#error nothing there\n#endif\n");
  };
  ExpectHarmless({
      {"include", include("\"" + secret + "\"")},
      {"include_passwords", include("\"/etc/passwd\"")},
      {"include_in_angle_brackets", include("</etc/passwd>")},
      {"include_shadow", include("\"/etc/shadow\"")},
      {"include_through_dots", include("\"../../../../../../../../etc/passwd\"")},
      {"include_through_usr", include("\"/usr/../etc/passwd\"")},
      {"include_by_macro", absl::StrCat("#define FILE \"", secret, "\"\n#include FILE\n")},
      {"include_by_definition", "#include FILE\n", {absl::StrCat("-DFILE=\"", secret, "\"")}},
      {"include_next", absl::StrCat("#include_next \"", secret, "\"\n")},
      {"import", absl::StrCat("#import \"", secret, "\"\n")},
      {"include_environment", include("\"/proc/self/environ\"")},
      {"include_environment_of_the_parent", include(absl::StrCat("\"/proc/", getpid(), "/environ\""))},
      {"include_command", include("\"/proc/self/cmdline\"")},
      {"include_own_root", include("\"/proc/self/root/etc/passwd\"")},
      {"include_zeros", include("\"/dev/zero\""), {}, 5, true},
      {"include_random_bytes", include("\"/dev/urandom\""), {}, 5, true},
      {"include_standard_input", include("\"/dev/stdin\""), {}, 5, true, true},
      {"embed", absl::StrCat("const unsigned char bytes[] = {\n#embed \"", secret, "\"\n};\n")},
      {"has_include", probe_for(secret)},
      {"has_include_of_passwords", probe_for("/etc/passwd")},
      {"dependency", absl::StrCat("#pragma GCC dependency \"", secret, "\"\n#error end\n")},
      {"precompiled_header", absl::StrCat("#pragma GCC pch_preprocess \"", secret, "\"\n#error end\n")},
  });
}

TEST_P(HostileSourceTest, NoOtherOptionReachesACompiler) {
  const std::string secret = Path("secret");
  std::vector<SourceProbe> probes;
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"-include", secret},
                                             {"-include" + secret},
                                             {"-imacros" + secret},
                                             {"--pre-include=" + secret},
                                             {"-I" + folder_},
                                             {"-isystem", folder_},
                                             {"-B" + folder_},
                                             {"-fplugin=" + secret},
                                             {"-wrapper", "/bin/echo"},
                                             {"@" + Path("options")},
                                             {"-o", Path("written")},
                                             {"-o" + Path("written")},
                                             {"-MD"},
                                             {"-MF" + Path("written")},
                                             {"-save-temps"},
                                             {"-specs=" + secret},
                                             {"--options-file", Path("options")},
                                             {"-Wl,--version"},
                                             {"-Wa,-a=" + Path("written")},
                                             {"-Xlinker", "-Map=" + Path("written")},
                                             {"-fdump-tree-all"},
                                             {"-x", "c"},
                                             {secret},
                                             {"-D"},
                                             {"-DX(y"},
                                             {"--keep"},
                                             {"-fprofile-use=" + secret}})
    probes.push_back({absl::StrCat("options ", options[0]), kHonest, options});
  ExpectHarmless(probes);
  EXPECT_FALSE(std::filesystem::exists(Path("written")));
}

TEST_P(HostileSourceTest, CompilersThatExplodeEnd) {
  std::string nested = "#define M0 1+1+1+1+1+1+1+1\n";
  for (int i = 1; i < 20; ++i) {
    absl::StrAppend(&nested, "#define M", i, " ");
    for (int k = 0; k < 8; ++k) absl::StrAppend(&nested, "M", i - 1, k < 7 ? "+" : "\n");
  }
  absl::StrAppend(&nested, "long long nested = M19;\n");
  ExpectHarmless({
      {"includes_itself", "#include __FILE__\n", {}, 4, true},
      {"template_bomb",
       R"(
template <int N, long long P> struct Tree {
  static constexpr long long value = Tree<N - 1, 2 * P>::value + Tree<N - 1, 2 * P + 1>::value;
};
template <long long P> struct Tree<0, P> { static constexpr long long value = P; };
extern "C" long long f() { return Tree<30, 1>::value; })",
       {},
       3,
       true},
      {"endless_recursion_of_templates",
       "template <int N> struct Next { static const int value = Next<N + 1>::value; };\n"
       "int n = Next<0>::value;\n",
       {},
       4,
       true},
      {"constant_expression_without_end",
       "constexpr long long f() { long long n = 0; for (long long i = 0; i < (1ll << 60); ++i) n += i; "
       "return n; }\n"
       "constexpr long long n = f();\nstatic_assert(n > 0);\n",
       {},
       3,
       true},
      {"macro_bomb", nested, {}, 3, true},
      {"huge_array", "int table[1ll << 40] = {1};\nextern \"C\" int* f() { return table; }\n", {}, 4, true},
  });
}

TEST_P(HostileSourceTest, AssemblersReadNothingElse) {
  if (GetParam() != v1::HOST) GTEST_SKIP() << "SKIP: NVRTC has no directives of an assembler for files";
  ExpectHarmless({
      {"incbin",
       absl::StrCat("asm(\".section .rodata\\n.incbin \\\"", Path("secret"), "\\\"\\n.text\\n\");\n")},
      {"incbin_passwords", "asm(\".section .rodata\\n.incbin \\\"/etc/passwd\\\"\\n.text\\n\");\n"},
      {"include_of_the_assembler", absl::StrCat("asm(\".include \\\"", Path("secret"), "\\\"\\n\");\n")},
      {"incbin_environment", "asm(\".section .rodata\\n.incbin \\\"/proc/self/environ\\\"\\n.text\\n\");\n"},
      {"repeat_without_end", "asm(\".rept 2000000000\\n.quad 1\\n.endr\\n\");\n", {}, 5, true},
      {"fill_a_disk", "asm(\".section .rodata\\n.zero 100000000000\\n.text\\n\");\n", {}, 10, true},
      {"linker_options",
       absl::StrCat("asm(\".section .drectve\\n.ascii \\\"-o ", Path("written"), "\\\"\\n.text\\n\");\n"),
       {},
       10,
       false,
       true},
  });
  EXPECT_FALSE(std::filesystem::exists(Path("written")));
}

}  // namespace
}  // namespace fusion

// Hostile native code that uses up what there is. Everything tried is bounded, so that a sandbox which fails
// these tests fails them without harm to the machine.
#include "tests/fault/sandbox/hostile_programs.h"

namespace fusion {
namespace {

class ResourceProbes : public HostileProgramTest {};
INSTANTIATE_TEST_SUITE_P(Sandbox, ResourceProbes, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Bubblewrap" : "WithoutBubblewrap");
});

TEST_P(ResourceProbes, TheMachineOutlivesThem) {
  const std::string half = R"(const long page = 4096, step = 1l << 30;
        const long machine = sysconf(_SC_PHYS_PAGES) * page; long mapped = 0;)";
  ExpectHarmless({
      // Mapped and never touched.
      {"more_memory_than_there_is", half + R"(
        while (mapped < 2 * machine && mmap(nullptr, step, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
          mapped += step;
        return mapped >= machine;)",
       true},
      {"made_writable_later", half + R"(
        while (mapped < 2 * machine) {
          void* memory = mmap(nullptr, step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
          if (memory == MAP_FAILED || mprotect(memory, step, PROT_READ | PROT_WRITE) != 0) break;
          mapped += step;
        }
        return mapped >= machine;)"},
      {"shared_memory_without_a_file",
       "return mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;",
       true},
      {"shared_zeros", "const int file = open(\"/dev/zero\", O_RDWR); return file >= 0;", true},
      {"a_large_file_in_memory", R"(signal(SIGXFSZ, SIG_IGN);
        const int file = memfd_create("large", 0); const bool harm = ftruncate(file, 1l << 30) == 0;
        close(file); signal(SIGXFSZ, SIG_DFL); return harm;)",
       true},
      {"descriptors", R"(int opened[5000], count = 0;
        while (count < 5000 && (opened[count] = open("/dev/null", O_RDONLY)) >= 0) ++count;
        for (int i = 0; i < count; ++i) close(opened[i]);
        return count >= 256;)"},
      {"raise_the_limits", R"(for (int resource : {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_DATA}) {
          rlimit limit; getrlimit((__rlimit_resource_t)resource, &limit);
          if (limit.rlim_max == RLIM_INFINITY) return true;
          ++limit.rlim_max;
          if (setrlimit((__rlimit_resource_t)resource, &limit) == 0) return true;
        }
        return false;)"},
      {"core_dump", "rlimit limit; getrlimit(RLIMIT_CORE, &limit); return limit.rlim_max != 0;"},
      {"threads", R"(static const auto wait = [](void*) -> void* { usleep(20000); return nullptr; };
        pthread_attr_t attributes; pthread_attr_init(&attributes); pthread_attr_setstacksize(&attributes, 16384);
        static pthread_t threads[1000]; int count = 0;
        while (count < 1000 && pthread_create(&threads[count], &attributes, wait, nullptr) == 0) ++count;
        for (int i = 0; i < count; ++i) pthread_join(threads[i], nullptr);
        return false;)"},
      {"too_large_a_file", R"(static char block[1 << 20]; const int file = memfd_create("large", 0);
        for (int i = 0; i < 64; ++i) if (write(file, block, sizeof block) < 0) return false;
        return true;)",
       true, v1::FAULT},
      {"no_end", "for (volatile bool on = true; on;) {} return true;", false, v1::TIMEOUT},
      {"recursion_without_end",
       "static int (*volatile self)(int) = [](int n) -> int { volatile char space[4096]; space[n % 4096] = "
       "1; "
       "return n < 0 ? 0 : self(n + 1) + space[0]; }; return self(1) == 0;",
       false, v1::FAULT},
      {"abort", "abort();", false, v1::FAULT},
      {"exit", "exit(0);", false, v1::FAULT},
      {"a_reply_that_is_none",
       "for (int file = 4; file < 16; ++file) write(file, \"\\xff\\xff\\xff\\x7f\", 4); "
       "pause(); return true;",
       false, v1::FAULT},
      // Nobody can say which program it was that the runner had when it fell silent.
      {.name = "closing_every_descriptor",
       .body = "for (int file = 0; file < 256; ++file) close(file); return true;",
       .outcome = v1::FAULT,
       .spoils_neighbours = true},
  });
}

}  // namespace
}  // namespace fusion

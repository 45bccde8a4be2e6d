#!/usr/bin/env python3
"""Checks who includes whom, and what modules keep out of: design rule "values flow forward, a stage never calls the next one".

  tests/check_includes.py [ROOT]       prints every violation as file:line: include: rule; exits 1 if there is any
  tests/check_includes.py --self-test  checks the tables, and that files which break each rule are caught

A module is a folder two levels deep (server/graph), or base itself. It may include itself, base and what MODULES names for it. To allow a new
dependency add it there; the table must stay free of cycles.
"""

import pathlib
import re
import sys

# Module -> modules whose headers it may include, besides its own and those of base, the ground floor.
MODULES = {
    "base": [],
    "base/monitor": [],
    "base/plots": [],
    "base/rpc": [],
    "base/sandbox": [],
    "library/catalog": [],
    "library/device": [],
    "library/verification": [],
    "library/functions": [],
    "db/store": [],
    "server/graph": ["library/catalog"],
    "server/plan": ["server/graph"],
    "server/parse": ["library/catalog", "server/graph"],
    "server/lowering": ["server/graph", "server/plan"],
    "server/target": ["server/lowering"],
    "server/model": ["server/plan", "server/target"],
    "server/skeletons": ["server/graph", "server/plan", "server/target", "server/model", "server/lowering"],
    "server/search": ["server/graph", "server/plan", "server/model", "server/skeletons"],
    "server/linear": [],
    "server/polynomial": ["server/linear"],
    "server/loops": ["server/parse", "server/polynomial", "server/linear"],
    "server/loop_kernels": ["server/loops", "server/parse", "server/polynomial", "server/lowering", "server/model", "server/target", "server/codegen"],
    "server/cover": ["server/graph", "server/linear"],
    "server/codegen": ["library/catalog", "library/verification", "server/graph", "server/plan", "server/lowering", "server/target", "server/skeletons"],
    "server/dispatch": ["db/store"],
    "server/rank": [],
    "server/accuracy": ["base/plots"],
    "server/tuner": ["db/store", "base/monitor"],
    "server/identity": ["base/rpc", "db/store"],
    "server/metrics": ["base/monitor", "db/store", "server/dispatch"],
    "server/optimize": ["library/catalog", "base/rpc", "base/sandbox", "db/store", "server/graph", "server/plan", "server/parse", "server/target",
                        "server/model", "server/lowering", "server/skeletons", "server/search", "server/cover", "server/codegen", "server/loops", "server/loop_kernels", "server/dispatch", "server/rank", "server/metrics"],
    "server/jobs": ["library/catalog", "base/monitor", "base/rpc", "db/store", "server/identity", "server/accuracy", "server/dispatch",
                    "server/metrics", "server/optimize"],
    "server/upkeep": ["db/store", "server/dispatch", "server/metrics"],
    "server/rpc": ["library/catalog", "base/monitor", "base/rpc", "db/store", "server/identity", "server/parse", "server/dispatch",
                   "server/tuner", "server/metrics", "server/optimize", "server/jobs", "server/upkeep"],
    "worker/build": ["base/sandbox"],
    "worker/measure": ["library/catalog", "library/verification", "worker/build", "base/sandbox"],
    "worker/agent": ["base/monitor", "base/rpc", "worker/build", "worker/measure", "base/sandbox"],
    # The client has the server and a worker in its own process when it runs without a server.
    "client/api": ["server/rpc", "server/upkeep", "server/parse", "worker/agent", "base/monitor", "base/rpc"],
    # Both find the server in the same way.
    "client/config": ["base/rpc"],
    # It reads graphs from files of JSON as the server does, and `doctor` asks what this machine offers to a worker.
    # The program is fusion-server, too, when it is called so.
    "client/cli": ["server/rpc", "client/api", "client/config", "base/plots", "base/rpc", "server/parse", "server/loops", "server/loop_kernels", "server/linear", "worker/agent"],
    # The server in the program's own process, without a worker; declarations are checked as the server does.
    "client/tuner": ["client/config", "server/rpc", "server/upkeep", "server/tuner", "base/rpc"],
    # Headers alone: what it is linked with is in every program that was compiled with partitioned loops. Its folder tuner is another library.
    "client/partition": ["client/tuner"],
}

# Third-party headers that are kept in few places: (pattern, modules or single files that may include them, rule).
CONFINED = [
    (r"sqlite3(ext)?\.h", ["db/store", "tests/unit", "tests/fault", "tests/bench"], "sqlite3.h is included in db/store alone"),
    (r"(lpsolve/)?lp_lib\.h", ["server/linear"], "lp_lib.h is included in server/linear alone"),
    # The header of partitioned loops is compiled by users' CUDA programs, never into ours; its test is such a program.
    (r"(cuda/)?(cuda|cuda_runtime|cuda_runtime_api|nvrtc|nvml)\.h",
     ["client/tuner/cuda_partition_device.h", "tests/gpu/partitioned_loop"],
     "CUDA headers are included in the header for users' CUDA programs alone; the driver and NVRTC are loaded"),
    (r"(grpc|grpcpp|grpc\+\+)/.*|.*\.grpc\.pb\.h",
     ["base/rpc", "base/monitor/grpc_log.cc", "server/rpc", "server/identity", "worker/agent", "client/api", "client/config", "client/cli", "client/tuner",
      "tests"],
     "gRPC is included in base/rpc, server/rpc, server/identity, worker/agent, client and what takes its log alone"),
    (r"openssl/.*", ["base/rpc", "base/sha256.cc", "server/identity"], "OpenSSL is included in base/rpc, server/identity and for SHA-256 alone"),
    (r"(gtest|gmock|benchmark|tests)/.*", ["tests"], "only tests include test frameworks and tests"),
]

# Modules that see no protocol message, so that they can be used and tested as plain values and algorithms.
WITHOUT_PROTOCOL = ["base/monitor", "base/plots", "db/store", "server/cover", "server/linear", "server/polynomial", "server/accuracy", "library/device", "library/functions",
                    "base/sandbox"]

# What code of a module does not say (outside comments and strings): (pattern, modules, rule). These are lines of the modules' READMEs.
COMPILER = ["server/graph", "server/parse", "server/plan", "server/target", "server/model", "server/lowering", "server/skeletons", "server/search", "server/cover", "server/linear", "server/polynomial", "server/loops", "server/loop_kernels",
            "server/codegen", "server/rank",
            "server/accuracy", "server/tuner"]
WORDS = [
    (r"\b[io]?fstream\b|\bfopen\b|std::filesystem", COMPILER + ["client/api"], "reads and writes no files"),
    (r"\bgetenv\b", COMPILER + ["client/api", "server/dispatch"], "reads no environment"),
    (r"\bTimeOfDay\(|\bsystem_clock\b|std::j?thread\b", ["db/store"], "reads no clock and starts no threads"),
    (r"std::c(out|err)\b", COMPILER + ["base", "client/api", "client/config", "db/store", "server/dispatch"], "prints nothing"),
    (r"\bCreate(Custom)?Channel\b", ["client/config"], "does not connect"),
    (r"\bdlopen\b|\bcuInit\b", ["worker/agent"], "loads no GPU driver"),
]

TOP_FOLDERS = ["base", "library", "server", "worker", "client", "db", "tests"]
SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".in"}

# Angle brackets or quotes: third-party headers may be written either way, ours are always quoted from the root.
THIRD_PARTY = re.compile(
    r"(absl|boost|google/protobuf|openssl|grpc|grpcpp|grpc\+\+|spdlog|CLI|nlohmann|Eigen|gtest|gmock|benchmark|lpsolve)/"
    r"|(sqlite3|cuda|nvrtc|nvml)\.h$")
GENERATED = re.compile(r"(fusion/v1|google/rpc)/\w+(\.grpc)?\.pb\.h$")

# Comments and strings are tokens of their own: an #include in one of them (code that prints code) is not ours.
TOKENS = re.compile(
    r'R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"'
    r"|/\*.*?\*/|//[^\n]*"
    r'|^[ \t]*#[ \t]*include[ \t]*(?P<include>"[^"\n]+"|<[^>\n]+>)'
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL | re.MULTILINE)


def includes_of(text):
    """(line number, header, is quoted) of each #include directive."""
    for token in TOKENS.finditer(text):
        include = token.group("include")
        if include:
            line = text.count("\n", 0, token.start("include")) + 1
            yield line, include[1:-1], include[0] == '"'


def module_of(path):
    """server/graph for server/graph/graph.h; tests for anything directly in tests."""
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def is_in(module, places):
    return any(module == place or module.startswith(place + "/") for place in places)


def rule_broken(path, header, quoted, exists):
    """The rule that including `header` in `path` breaks, or None. exists(file): is it in the repository?"""
    module = module_of(path)
    for pattern, places, rule in CONFINED:
        if re.fullmatch(pattern, header) and not is_in(module, places) and not is_in(path, places):
            if pattern.startswith("(grpc|") and path.endswith("/main.cc"):
                continue
            return rule
    if GENERATED.match(header):
        return f"{module} sees no protocol message" if is_in(module, WITHOUT_PROTOCOL) else None
    if header.split("/")[0] not in TOP_FOLDERS or not exists(header):
        if module == "library/device" and exists(f"{module}/{header}"):
            return None  # these are copied into the folder of an exported artifact, side by side
        if quoted and not THIRD_PARTY.match(header):
            return "our headers are written from the root of the repository, and this one is not there"
        return None
    if not quoted:
        return "our headers are written in quotes"
    target = module_of(header)
    if is_in(module, ["tests"]) or target == module:
        return None
    if module not in MODULES:
        return f"{module} has no row in tests/check_includes.py"
    if target == "base" or target in MODULES[module]:
        return None
    return f"{module} may include {', '.join(MODULES[module]) or 'no other module'}; not {target}"


def words_of(text):
    """The text with blanks for comments and strings."""
    return TOKENS.sub(lambda token: token.group(0) if token.group("include") else re.sub(r"[^\n]", " ", token.group(0)), text)


def violations(files, exists):
    """Lines to print for (path, text) pairs."""
    for path, text in files:
        rules = [(pattern, rule) for pattern, modules, rule in WORDS if is_in(module_of(path), modules)]
        words = words_of(text) if rules else ""
        for pattern, rule in rules:
            for found in re.finditer(pattern, words):
                yield f"{path}:{words.count(chr(10), 0, found.start()) + 1}: {found.group(0)}: {module_of(path)} {rule}"
        for line, header, quoted in includes_of(text):
            rule = rule_broken(path, header, quoted, exists)
            if rule:
                yield f"{path}:{line}: {header}: {rule}"


def files_below(root):
    for folder in TOP_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def cycle_in(table):
    """A module that reaches itself through the table, or None."""
    for start in table:
        pending, seen = list(table[start]), set()
        while pending:
            module = pending.pop()
            if module == start:
                return start
            if module not in seen:
                seen.add(module)
                pending.extend(table.get(module, []))
    return None


# path, text, what the one violation's line must contain (None: no violation).
SELF_TESTS = [
    ("server/graph/a.cc",
     '#include "server/graph/graph.h"\n#include "library/catalog/type.h"\n#include <vector>\n', None),
    ("server/graph/a.cc", '\n#include "server/search/search.h"\n',
     "server/graph/a.cc:2: server/search/search.h: server/graph may"),
    ("server/graph/a.h", '#include "server/plan/plan.h"\n', "not server/plan"),
    ("server/search/a.cc", '#include "server/cover/cover_solver.h"\n', "not server/cover"),
    ("server/optimize/a.cc", '#include "server/cover/cover_solver.h"\n', None),
    ("server/rpc/a.cc", "#include <sqlite3.h>\n", "db/store alone"),
    ("db/store/a.cc", "#include <sqlite3.h>\n", None),
    ("db/store/a.cc", '#include "fusion/v1/graph.pb.h"\n', "no protocol message"),
    ("server/search/a.cc", "#include <lpsolve/lp_lib.h>\n", "server/linear alone"),
    ("server/codegen/a.cc", "#include <cuda.h>\n", "users' CUDA programs alone"),
    ("worker/measure/a.cc", "#include <cuda.h>\n", "users' CUDA programs alone"),
    ("client/tuner/cuda_partition_device.h", "#include <cuda_runtime_api.h>\n", None),
    ("client/tuner/partitioned_loop.h", "#include <cuda_runtime_api.h>\n", "users' CUDA programs alone"),
    ("client/cli/doctor.cc", '#include "worker/build/nvrtc.h"\n', "not worker/build"),
    ("server/graph/a.cc", '#include "base/sha256.h"\n', None),
    ("base/a.cc", '#include "server/graph/graph.h"\n', "not server/graph"),
    ("base/a.cc", '#include "base/rpc/chunks.h"\n', "not base/rpc"),
    ("base/rpc/a.cc", '#include "base/sha256.h"\n', None),
    ("server/graph/a.cc", '#include "base/rpc/chunks.h"\n', "not base/rpc"),
    ("worker/measure/a.cc", "#include <grpcpp/channel.h>\n", "gRPC"),
    ("worker/measure/a.cc", '#include "fusion/v1/worker.grpc.pb.h"\n', "gRPC"),
    ("worker/agent/a.cc", "#include <grpcpp/channel.h>\n", None),
    ("worker/measure/main.cc", "#include <grpcpp/channel.h>\n", None),
    ("worker/build/a.cc", '#include "server/graph/graph.h"\n', "not server/graph"),
    ("server/rank/a.cc", "#include <gtest/gtest.h>\n", "only tests"),
    ("tests/unit/rank/a_test.cc", "#include <gtest/gtest.h>\n#include \"server/graph/graph.h\"\n", None),
    ("server/graph/a.cc", '#include "graph.h"\n', "from the root"),
    ("server/graph/a.cc", '#include "../plan/plan.h"\n', "from the root"),
    ("library/device/a.h", '#include "fusion_math.h"\n', None),
    ("server/graph/a.cc", "#include <server/graph/graph.h>\n", "in quotes"),
    ("server/unknown/a.cc", '#include "server/graph/graph.h"\n', "no row"),
    ("server/codegen/a.cc",
     'auto text = R"(\n#include "server/cover/cover_solver.h"\n)";\n/*\n#include "x.h"\n*/\n', None),
    ("server/graph/a.cc", '#  include "server/cover/cover_solver.h"  // why\n', "not server/cover"),
    ("server/graph/a.cc", "\n#include <fstream>\n", "server/graph/a.cc:2: fstream: server/graph reads and writes no files"),
    ("server/codegen/a.cc", 'auto text = "std::cout << std::getenv(0)";  // std::cout\n', None),
    ("server/codegen/a.cc", "void F() { std::cout << 1; }\n", "prints nothing"),
    ("db/store/a.cc", "auto now = TimeOfDay();\n", "reads no clock"),
    ("client/config/a.cc", "auto c = grpc::CreateChannel(a, b);\n", "does not connect"),
]
SELF_TEST_HEADERS = {
    "server/graph/graph.h", "library/catalog/type.h", "server/search/search.h", "server/graph/node_set.h",
    "server/plan/plan.h", "server/cover/cover_solver.h", "library/device/fusion_math.h", "worker/build/nvrtc.h",
    "base/sha256.h", "base/rpc/chunks.h"}


def self_test():
    failures = []
    for path, text, expected in SELF_TESTS:
        found = list(violations([(path, text)], SELF_TEST_HEADERS.__contains__))
        if expected is None and found or expected is not None and (len(found) != 1 or expected not in found[0]):
            failures.append(f"{path} with {text!r}: expected {expected!r}, found {found}")
    unknown = {name for row in MODULES.values() for name in row if name not in MODULES}
    if unknown:
        failures.append(f"the table names unknown modules: {sorted(unknown)}")
    if cycle_in(MODULES):
        failures.append(f"the table has a cycle through {cycle_in(MODULES)}")
    if cycle_in({"a": ["b"], "b": ["c"], "c": ["a"]}) is None:
        failures.append("a cycle is not found")
    print("\n".join(failures) or f"check_includes.py: {len(SELF_TESTS)} cases as expected")
    return 1 if failures else 0


def main(arguments):
    if arguments[1:] == ["--self-test"]:
        return self_test()
    if len(arguments) > 2:
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[1]) if len(arguments) == 2 else pathlib.Path(__file__).resolve().parent.parent
    files = list(files_below(root))
    if not files:
        print(f"check_includes.py: no source files below {root}", file=sys.stderr)
        return 2
    found = list(violations(files, lambda header: (root / header).is_file()))
    print("\n".join(found) or f"check_includes.py: {len(files)} files keep the rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

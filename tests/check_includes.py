#!/usr/bin/env python3
"""Checks who includes whom: design rule "values flow forward, a stage never calls the next one".

  tests/check_includes.py [ROOT]       prints every violation as file:line: include: rule; exits 1 if there is any
  tests/check_includes.py --self-test  checks the tables, and that files which break each rule are caught

A module is a folder two levels deep (server/graph). It may include itself and what MODULES names for it. To allow a new
dependency add it there; the tables must stay free of cycles, but for the single files in FILES.
"""

import pathlib
import re
import sys

# Module -> modules whose headers it may include.
MODULES = {
    "library/catalog": [],
    "library/device": [],
    "library/monitor": [],
    "library/verification": [],
    "library/functions": ["library/device"],
    "db/store": ["library/catalog"],
    "server/graph": ["library/catalog"],
    "server/plan": ["library/catalog", "server/graph"],
    "server/parse": ["library/catalog", "server/graph"],
    "server/model": ["library/catalog", "server/graph", "server/plan"],
    "server/search": ["library/catalog", "server/graph", "server/plan", "server/model"],
    "server/cover": ["server/graph", "server/plan"],
    "server/codegen": ["library/catalog", "library/verification", "server/graph", "server/plan"],
    "server/dispatch": ["library/catalog", "db/store"],
    "server/rank": ["server/plan"],
    "server/accuracy": [],
    "server/tuner": ["db/store", "library/monitor"],
    "server/identity": ["library/catalog", "db/store"],
    "server/service": ["library/catalog", "db/store", "server/identity", "server/graph", "server/plan", "server/parse", "server/model",
                       "server/search", "server/cover", "server/codegen", "server/dispatch", "server/rank",
                       "server/accuracy", "server/tuner", "library/monitor"],
    "worker/sandbox": [],
    "worker/build": ["library/catalog", "worker/sandbox"],
    "worker/measure": ["library/catalog", "library/verification", "worker/build", "worker/sandbox"],
    "worker/agent": ["library/catalog", "library/monitor", "worker/build", "worker/measure", "worker/sandbox"],
    # The client has the server and a worker in its own process when it runs without a server.
    "client/api": ["server/service", "worker/agent", "library/monitor"],
    # Both find the server in the same way.
    "client/config": [],
    "client/cli": ["client/api", "client/config"],
    # The server in the program's own process, without a worker; declarations are checked as the server does.
    "client/tuner": ["client/config", "server/service", "server/tuner"],
}

# (includer, header or folder): exceptions for single headers, with the reason.
FILES = {
    ("server/graph", "server/plan/node_set.h"): "a set of nodes is a plain value without a graph",
    ("client/api", "server/identity/channel_credentials.h"): "clients show who they are to what checks it",
    ("client/config", "server/identity/channel_credentials.h"): "clients show who they are to what checks it",
    ("client/tuner", "server/identity/channel_credentials.h"): "clients show who they are to what checks it",
    ("server/tuner", "server/parse/lexer.h"): "what is UTF-8 is decided in one place",
    ("client/tuner", "server/parse/similar_name.h"): "unknown names are answered in the same way everywhere",
    ("client/cli", "server/identity/channel_credentials.h"): "clients show who they are to what checks it",
    ("worker/agent", "server/identity/channel_credentials.h"): "workers show who they are to what checks it",
    ("server/identity", "server/service/status_conversion.h"): "who asks too often is told when to ask again as all others are",
    ("client/cli", "server/service/status_conversion.h"): "errors are told apart the same way on both sides",
    ("client/cli", "server/service/data_directory.h"): "both sides find the data in the same place",
    ("client/cli", "server/accuracy/tuning_plots.h"): "plots are drawn where they are written, from what the server answers",
    ("client/cli", "library/catalog/sha256.h"): "digests say whether an exported file was changed since",
    ("client/cli", "server/parse/"): "a source file is checked and quoted before it is sent",
    ("client/cli", "worker/build/builder.h"): "doctor says which compilers a worker would find here",
    ("client/cli", "worker/build/nvrtc.h"): "doctor says which NVRTC a worker would find here",
    ("client/cli", "worker/sandbox/machine_offer.h"): "doctor says how a worker here would confine code",
    ("client/api", "worker/sandbox/machine_offer.h"): "says once that code for the host runs without a sandbox",
    ("client/cli", "worker/measure/runner_process.h"): "doctor says which devices a worker would find here",
}

# Third-party headers that are kept in few places: (pattern, modules or single files that may include them, rule).
CONFINED = [
    (r"sqlite3(ext)?\.h", ["db/store", "tests/unit", "tests/fault", "tests/bench"], "sqlite3.h is included in db/store alone"),
    (r"(lpsolve/)?lp_lib\.h", ["server/cover"], "lp_lib.h is included in server/cover alone"),
    # The header of partitioned loops is compiled by users' CUDA programs, never into ours; its test is such a program.
    (r"(cuda/)?(cuda|cuda_runtime|cuda_runtime_api|nvrtc|nvml)\.h",
     ["worker/build", "worker/measure", "client/tuner/cuda_partition_device.h", "tests/gpu/partitioned_loop"],
     "CUDA headers are included in worker alone, and in the header for users' CUDA programs"),
    (r"(grpc|grpcpp|grpc\+\+)/.*|.*\.grpc\.pb\.h",
     ["server/service", "server/identity", "server/dispatch", "worker/agent", "client/api", "client/config", "client/cli", "client/tuner",
      "library/monitor/grpc_log.cc", "tests"],
     "gRPC is included in server/service, server/identity, server/dispatch, worker/agent, client and what takes its log alone"),
    (r"openssl/.*", ["server/identity", "library/catalog/sha256.cc"], "OpenSSL is included in server/identity and for SHA-256 alone"),
    (r"(gtest|gmock|benchmark|tests)/.*", ["tests"], "only tests include test frameworks and tests"),
]

# Modules that see no protocol message, so that they can be used and tested as plain values and algorithms.
WITHOUT_PROTOCOL = ["db/store", "library/monitor", "server/cover", "server/accuracy", "library/device", "library/functions",
                    "worker/sandbox"]

TOP_FOLDERS = ["library", "server", "worker", "client", "db", "tests"]
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
    if target in MODULES[module]:
        return None
    if any(includer == module and header.startswith(allowed) for includer, allowed in FILES):
        return None
    return f"{module} may include {', '.join(MODULES[module]) or 'no other module'}; not {target}"


def violations(files, exists):
    """Lines to print for (path, text) pairs."""
    for path, text in files:
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
    ("server/graph/a.h", '#include "server/plan/node_set.h"\n', None),
    ("server/graph/a.h", '#include "server/plan/plan.h"\n', "not server/plan"),
    ("server/search/a.cc", '#include "server/cover/cover_solver.h"\n', "not server/cover"),
    ("server/service/a.cc", '#include "server/cover/cover_solver.h"\n', None),
    ("server/service/a.cc", "#include <sqlite3.h>\n", "db/store alone"),
    ("db/store/a.cc", "#include <sqlite3.h>\n", None),
    ("db/store/a.cc", '#include "fusion/v1/graph.pb.h"\n', "no protocol message"),
    ("server/search/a.cc", "#include <lpsolve/lp_lib.h>\n", "server/cover alone"),
    ("server/codegen/a.cc", "#include <cuda.h>\n", "worker alone"),
    ("worker/measure/a.cc", "#include <cuda.h>\n", None),
    ("client/tuner/cuda_partition_device.h", "#include <cuda_runtime_api.h>\n", None),
    ("client/tuner/partitioned_loop.h", "#include <cuda_runtime_api.h>\n", "worker alone"),
    ("client/cli/doctor.cc", '#include "worker/build/nvrtc.h"\n', None),
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
]
SELF_TEST_HEADERS = {
    "server/graph/graph.h", "library/catalog/type.h", "server/search/search.h", "server/plan/node_set.h",
    "server/plan/plan.h", "server/cover/cover_solver.h", "library/device/fusion_math.h", "worker/build/nvrtc.h"}


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

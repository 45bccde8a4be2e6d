#!/usr/bin/env python3
"""Checks the systemd units and container files of deploy/ without starting anything.

  tests/integration/deploy_files.py units BIN       systemd-analyze verifies every unit, with the programs of BIN, and rates its
                                                    hardening; without systemd-analyze it says SKIP and exits 77
  tests/integration/deploy_files.py containers BIN  what container files copy exists; versions, users, options of the
                                                    programs of BIN; nothing listens for others without TLS

Exit status: 0 good, 1 not, 77 skipped.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = ROOT / "deploy" / "systemd"
CONTAINERS = ROOT / "deploy" / "container"
SKIPPED = 77

# Worst exposure that `systemd-analyze security` may find, of 10; workers need devices, namespaces and new code.
EXPOSURE = {"fusion-server.service": 2.0, "fusion-worker.service": 5.0, "fusion-worker@.service": 5.0}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def options_of(program):
    """The long options that a program says it has."""
    return set(re.findall(r"--[a-z][a-z-]+", run(program, "--help").stdout))


def unit_errors(binaries):
    with tempfile.TemporaryDirectory() as folder:
        for unit in sorted(UNITS.glob("*.service")):
            text = unit.read_text(encoding="utf-8").replace("/opt/fusion/bin", str(binaries))
            # Users are made when the package is installed, and need not be here.
            text = re.sub(r"^(User|Group)=.*$", r"\1=root", text, flags=re.MULTILINE)
            name = unit.name.replace("@.service", "@gpu0.service")
            path = pathlib.Path(folder) / name
            path.write_text(text, encoding="utf-8")
            verified = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(path))
            if verified.returncode != 0 or verified.stderr.strip():
                yield f"{unit.name}: {verified.stderr.strip() or verified.returncode}"
            command = re.search(r"^ExecStart=(\S+) (.*)$", text, re.MULTILINE)
            unknown = set(re.findall(r"--[a-z-]+", command.group(2))) - options_of(command.group(1))
            if unknown:
                yield f"{unit.name}: the program has no {sorted(unknown)}"
            rated = run("systemd-analyze", "security", "--offline=true", "--no-pager", str(path))
            level = re.search(r"exposure level for .*: ([0-9.]+)", rated.stdout)
            if not level:
                yield f"{unit.name}: systemd-analyze security gave no level: {rated.stderr.strip()}"
            elif float(level.group(1)) > EXPOSURE[unit.name]:
                yield f"{unit.name}: exposure {level.group(1)} is more than {EXPOSURE[unit.name]}"
            else:
                print(f"{unit.name}: exposure {level.group(1)}")


def instructions(text):
    """(name, arguments) of each instruction of a container file, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name, rest.strip()


def container_errors(binaries):
    package = (ROOT / "deploy" / "package.sh").read_text(encoding="utf-8")
    files = sorted(CONTAINERS.glob("Containerfile.*"))
    if len(files) < 2:
        yield "there are container files of the server and of the worker"
    for file in files:
        found = list(instructions(file.read_text(encoding="utf-8")))
        names = [name for name, _ in found]
        defaults = dict(rest.split("=", 1) for name, rest in found if name == "ARG")
        stages = []
        for name, rest in found:
            if name == "FROM":
                image, *alias = rest.split()
                image = re.sub(r"\$\{(\w+)\}", lambda match: defaults[match.group(1)], image)
                if image not in stages and not re.fullmatch(r"[\w.-]+/[\w./-]+:[\w.-]+", image):
                    yield f"{file.name}: FROM {image}: name the registry and a version"
                if image.endswith(":latest"):
                    yield f"{file.name}: FROM {image}: latest is no version"
                stages.append(alias[1] if alias else "")
            if name == "COPY" and rest.startswith("--from="):
                source, *paths = rest[len("--from="):].split()
                if source not in stages[:-1]:
                    yield f"{file.name}: COPY from {source}, which is no earlier stage"
                for path in paths[:-1]:
                    program = path.rsplit("/", 1)[-1]
                    if path.startswith("/opt/fusion/bin/") and program not in package:
                        yield f"{file.name}: the package has no {program}"
            if name == "RUN":
                for script in re.findall(r"deploy/[\w-]+\.sh", rest):
                    if not os.access(ROOT / script, os.X_OK):
                        yield f"{file.name}: {script} is no program"
            if name == "ADD":
                yield f"{file.name}: COPY, not ADD"
            if name in ("ENTRYPOINT", "CMD"):
                json.loads(rest)  # the form without a shell: signals reach the program
        command = [word for name, rest in found if name in ("ENTRYPOINT", "CMD") for word in json.loads(rest)]
        unknown = {word for word in command if word.startswith("--")} - options_of(binaries / command[0])
        if unknown:
            yield f"{file.name}: {command[0]} has no {sorted(unknown)}"
        if "--listen" in command and "--tls-cert" not in command:
            yield f"{file.name}: listens for others without TLS, which the program refuses"
        if "USER" not in names or names.index("ENTRYPOINT") < names.index("USER"):
            yield f"{file.name}: runs as root"
        user = [rest for name, rest in found if name == "USER"][-1:]
        if user and not (user[0].isdigit() and int(user[0]) > 0):
            yield f"{file.name}: USER {user[0]}: give a number, which runtimes can check"


def main(arguments):
    if arguments[1:2] == ["units"] and len(arguments) == 3:
        if shutil.which("systemd-analyze") is None:
            print("SKIP: systemd-analyze is not installed, so the units are not verified")
            return SKIPPED
        errors = list(unit_errors(pathlib.Path(arguments[2]).resolve()))
    elif arguments[1:2] == ["containers"] and len(arguments) == 3:
        errors = list(container_errors(pathlib.Path(arguments[2]).resolve()))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    print("\n".join(errors) or "good")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))

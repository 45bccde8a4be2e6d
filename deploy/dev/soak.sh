#!/usr/bin/env bash
# The long forms of the tests of faults, hours of them, and a table: what was asked, what the tests counted, whether it
# was met. --help lists the options; the rows are in tests/fault/soak.py.
#
#   deploy/dev/soak.sh [--quick] [--only TEXT] [--results DIR] [BUILD_FOLDER]
exec python3 "$(dirname "${BASH_SOURCE[0]}")/../../tests/fault/soak.py" "$@"

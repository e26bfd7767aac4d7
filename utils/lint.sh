#!/usr/bin/env bash
# Style and types of everything, and the budget of each room: ruff, mypy, shellcheck, shfmt. Run through `make lint`.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

ruff check .
ruff format --check .
mypy
mapfile -t scripts < <(git ls-files '*.sh' .ci/run | while read -r path; do [[ -L $path ]] || echo "$path"; done)
shellcheck -x "${scripts[@]}"
shfmt -i 2 -ci -bn -d "${scripts[@]}"
utils/count_code.py --check utils/budget.txt
echo "lint: ${#scripts[@]} shell scripts and all Python files are clean"

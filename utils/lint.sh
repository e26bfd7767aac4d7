#!/usr/bin/env bash
# Style and types of everything, English, and the budget of each room: ruff, mypy, shellcheck, shfmt. Run through `make lint`.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

ruff check .
ruff format --check .
mypy
mapfile -t scripts < <(git ls-files '*.sh' .ci/run | while read -r path; do [[ -L $path ]] || echo "$path"; done)
shellcheck -x "${scripts[@]}"
shfmt -i 2 -ci -bn -d "${scripts[@]}"
hadolint Containerfile
utils/count_code.py --check utils/budget.txt
# Claims of papers are quoted as they are; tests may say what they expect in any words.
if git grep -nP "$(grep -v '^#' utils/english.txt | paste -sd '|')" -- '*.md' '*.py' '*.jinja' '*.yaml' '*.sh' \
  ':!tests' ':!docs/published' ':!docs/papers' ':!CHANGELOG.md' ':!CONTRIBUTING.md'; then
  echo "lint: CONTRIBUTING.md, \"How we write\", says how to word these lines" >&2
  exit 1
fi
echo "lint: ${#scripts[@]} shell scripts and all Python files are clean"

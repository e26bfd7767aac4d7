#!/usr/bin/env bash
# Makes .venv from the pinned requirements; does nothing when it is up to date.
#   utils/setup.sh          what the recipes need
#   utils/setup.sh test     and what the tests need
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

die() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

resemblyzer=requirements-resemblyzer.txt
declare -A lost=( # what is not available without an optional package
  ["requirements-moonshine.txt"]="no Moonshine, so --asr moonshine is not available"
  ["requirements-silero.txt"]="no Silero, so --vad silero is not available"
)
files=(requirements.txt "$resemblyzer" "${!lost[@]}")
for part in "$@"; do
  case $part in
    test) files+=("requirements-$part.txt") ;;
    *) die "unknown part '$part'; known: test" ;;
  esac
done

python=${PYTHON:-python3.11}
command -v "$python" >/dev/null || die "$python was not found." \
  "Install Python 3.11 (Debian: apt-get install python3.11 python3.11-venv), or name it: PYTHON=/path/to/python3.11 make setup"
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
  || die "$python is $("$python" --version 2>&1); the pinned versions were run with Python 3.11. Name one: PYTHON=/path/to/python3.11 make setup"
"$python" -c 'import ensurepip, venv' \
  || die "$python has no venv module (Debian: apt-get install python3.11-venv)"

# A stamp for each requirements file, so that `make recipe` does not undo what `make test` added.
mkdir -p .venv
exec 9>.venv/.setup.lock
flock 9
stale=()
for file in "${files[@]}"; do
  digest=$(cat "$file" constraints.txt | sha256sum)
  stamp=.venv/.done.$file
  [[ -f $stamp && $(<"$stamp") == "$digest" ]] || stale+=("$file")
done
if [[ ${#stale[@]} -eq 0 ]]; then
  echo "setup: .venv is up to date"
  exit 0
fi

[[ -x .venv/bin/python ]] || "$python" -m venv .venv
arguments=() installed=()
for file in "${stale[@]}"; do
  [[ -z ${lost[$file]:-} ]] || continue
  installed+=("$file")
  [[ $file == "$resemblyzer" ]] || arguments+=(-r "$file")
done
pip_install() { .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$@"; }
echo "setup: installing ${stale[*]} into .venv (about 5 GB with PyTorch's CUDA libraries, a minute or two)"
no_pip() { die "pip failed; the messages above say where. Is a package index reachable (pip config list)?"; }
[[ ${#arguments[@]} -eq 0 ]] || pip_install "${arguments[@]}" || no_pip
[[ " ${stale[*]} " != *" $resemblyzer "* ]] || pip_install --no-deps -r "$resemblyzer" || no_pip
for file in "${stale[@]}"; do
  [[ -n ${lost[$file]:-} ]] || continue
  if why=$(pip_install --only-binary :all: -r "$file" 2>&1); then
    installed+=("$file")
  else
    echo "setup: ${lost[$file]}; all else is (${why##*$'\n'})"
  fi
done
expected='^resemblyzer .* requires (typing|webrtcvad), which is not installed|^No broken requirements'
broken=$(.venv/bin/python -m pip check --disable-pip-version-check | grep -Eiv "$expected" || true)
[[ -z $broken ]] || die "packages do not fit together:" "$broken"
for file in "${installed[@]}"; do
  cat "$file" constraints.txt | sha256sum >".venv/.done.$file"
done
echo "setup: done"

#!/usr/bin/env bash
# Makes .venv from the pinned requirements; does nothing when it is up to date.
#   utils/setup.sh          what the recipes need
#   utils/setup.sh test     and what the tests need
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

die() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

resemblyzer=requirements-resemblyzer.txt
declare -A lost=( # what is not available without an optional package
  ["requirements-moonshine.txt"]="no Moonshine, so --asr moonshine is not available"
  ["requirements-silero.txt"]="no Silero, so --vad silero is not available"
  ["requirements-whisper.txt"]="no Whisper, so --asr whisper is not available"
)
files=(requirements.txt "$resemblyzer" "${!lost[@]}")
for part in "$@"; do
  case $part in
    test) files+=("requirements-$part.txt") ;;
    *) die "unknown part '$part'; known: test" ;;
  esac
done

# A stamp for each requirements file, so that `make recipe` does not undo what `make test` added.
find_stale() {
  stale=()
  local file stamp
  for file in "${files[@]}"; do
    stamp=.venv/.done.$file
    [[ -x .venv/bin/python && -f $stamp && $(<"$stamp") == "$(cat "$file" constraints.txt | sha256sum)" ]] || stale+=("$file")
  done
  if [[ ${#stale[@]} -eq 0 ]]; then
    echo "setup: .venv is up to date"
    exit 0
  fi
}
find_stale # before anything is written: who shares a checkout may only read it
lock=.venv/.setup.lock place=$lock
while [[ ! -e $place ]]; do place=$(dirname "$place"); done
if [[ ! -w $place ]]; then
  why="is not set up"
  [[ -x .venv/bin/python || ! -L .venv/bin/python ]] || why="has a Python that you may not run, $(readlink -m .venv/bin/python)"
  for file in "${stale[@]}"; do
    [[ -n ${lost[$file]:-} ]] || die "$PWD $why, and you may not write there; its owner can: utils/setup.sh${*:+ $*}"
    echo "setup: ${lost[$file]}; all else is"
  done
  exit 0
fi

python=${PYTHON:-python3.11}
command -v "$python" >/dev/null || die "$python was not found." \
  "Install Python 3.11 (Debian: apt-get install python3.11 python3.11-venv), or name it: PYTHON=/path/to/python3.11 make setup"
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
  || die "$python is $("$python" --version 2>&1); the pinned versions were run with Python 3.11. Name one: PYTHON=/path/to/python3.11 make setup"
"$python" -c 'import ensurepip, venv' \
  || die "$python has no venv module (Debian: apt-get install python3.11-venv)"

mkdir -p .venv
exec 9>"$lock"
flock 9
find_stale # somebody else may just have set it up

[[ -x .venv/bin/python ]] || "$python" -m venv .venv
pip=(.venv/bin/python -m pip --disable-pip-version-check)
# uv installs in seconds what takes pip minutes. It reads no pip.conf, so it is told where pip would look.
index=${PIP_INDEX_URL:-$("${pip[@]}" config list | sed -n "s/^global.index-url='\(.*\)'$/\1/p")}
if "${pip[@]}" install --quiet -c constraints.txt uv >.venv/.uv.log 2>&1; then
  installer=(.venv/bin/uv pip install --python .venv/bin/python --native-tls ${index:+--default-index "$index"})
else
  installer=("${pip[@]}" install)
fi
try_install() { "${installer[@]}" --quiet -c constraints.txt "$@"; }
install() {
  try_install "$@" && return
  [[ ${installer[0]} == */uv ]] || die "pip failed; the messages above say where. Is a package index reachable (pip config list)?"
  echo "setup: uv failed (the messages above say where); pip tries"
  installer=("${pip[@]}" install)
  install "$@"
}
arguments=() installed=()
for file in "${stale[@]}"; do
  [[ -z ${lost[$file]:-} ]] || continue
  installed+=("$file")
  [[ $file == "$resemblyzer" ]] || arguments+=(-r "$file")
done
echo "setup: installing ${stale[*]} into .venv (about 5 GB with PyTorch's CUDA libraries)"
[[ ${#arguments[@]} -eq 0 ]] || install "${arguments[@]}"
[[ " ${stale[*]} " != *" $resemblyzer "* ]] || install --no-deps -r "$resemblyzer"
for file in "${stale[@]}"; do
  [[ -n ${lost[$file]:-} ]] || continue
  if why=$(try_install --only-binary :all: -r "$file" 2>&1); then
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

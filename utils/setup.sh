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

# In words that bash 3.2 also knows.
needs="pseudovox needs Linux on x86-64, glibc 2.34, bash 4.4 and flock (docs/install.md)"
machine=$(uname -m)
glibc=$(getconf GNU_LIBC_VERSION 2>&1) || glibc="another C library"
minor=${glibc#glibc 2.}
flock=$(command -v flock || echo "no flock")
if [[ $(uname -s) != Linux || $glibc == another* || $minor -lt 28 || $flock != /* ]] || ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  die "this machine cannot run it ($(uname -s), $machine, $glibc, bash ${BASH_VERSION%%(*}, $flock): $needs"
elif [[ $minor -lt 34 ]]; then
  echo "setup: $glibc: no Moonshine, so nothing in models/ works, other systems do: $needs" >&2
elif [[ $machine != x86_64 ]]; then
  echo "setup: $machine: nothing was tested there, and PocketSphinx is compiled (gcc, cmake): $needs" >&2
fi

resemblyzer=requirements-resemblyzer.txt
declare -A lost=( # what is not available without an optional package
  ["requirements-moonshine.txt"]="no Moonshine, so --asr moonshine, pyannote and the folders of models/ are not available"
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

# With the first one figures were measured; with each, the packages of constraints.txt were run.
versions="3.11, 3.12 or 3.13"
fits() {
  local found
  found=$("$1" -c 'import sys, ensurepip, venv; print(*sys.version_info[:2], sep=".")' 2>&1) || return 1
  [[ $found == 3.1[123] ]]
}
make_venv() {
  local python uv
  for python in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
    if fits "$python"; then "$python" -m venv .venv && return; fi
  done
  [[ -z ${PYTHON:-} ]] || die "$PYTHON is not Python $versions with its venv module (Debian: apt-get install python3-venv)"
  uv=$(command -v uv) || {
    uv=.venv/.uv/bin/uv
    { python3 -m venv .venv/.uv && .venv/.uv/bin/python -m pip install --quiet uv; } >.venv/.uv.log 2>&1
  } || die "there is neither Python $versions with its venv module (Debian: apt-get install python3-venv) nor uv, which could bring it"
  echo "setup: no Python $versions is here; uv brings ${versions%%,*}"
  "$uv" venv --quiet --seed --allow-existing --python "${versions%%,*}" .venv || die "uv could not; install Python $versions"
}
mkdir -p .venv
exec 9>"$lock"
flock 9
find_stale # somebody else may just have set it up

# pip comes last: without it somebody stopped this before.
[[ -x .venv/bin/pip ]] || make_venv
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

# shellcheck shell=bash
# Sourced by run.sh and by every job: puts the project's Python and its four floors in reach.
unset CDPATH # with it, cd prints where it went
PSEUDOVOX_ROOT=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
export PSEUDOVOX_ROOT
export PATH="$PSEUDOVOX_ROOT/.venv/bin:$PSEUDOVOX_ROOT/utils:$PATH"
export PYTHONPATH="$PSEUDOVOX_ROOT:$PSEUDOVOX_ROOT/src${PYTHONPATH:+:$PYTHONPATH}"
export LC_ALL=C PYTHONUTF8=1 PYTHONUNBUFFERED=1
set -a
# shellcheck source=utils/environment.sh
. "$PSEUDOVOX_ROOT/utils/environment.sh"
set +a
unset PYTHONDONTWRITEBYTECODE # each of hundreds of jobs would compile what it imports
# Parallelism is by processes (--nj); threads that spin on a shared machine cost a factor of 20 and more.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

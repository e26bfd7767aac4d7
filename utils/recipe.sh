# Sourced by a recipe: stages, steps with stamps, jobs over a data directory, and a log with time and place.
# Needs the variables stage, stop_stage, nj, dry_run, list_stages, and cpu_cmd, gpu_cmd, job_options of cmd.sh.

# shellcheck shell=bash
# The recipe's:
: "${stage?}" "${stop_stage?}" "${nj?}" "${dry_run?}" "${list_stages?}" "${cpu_cmd?}" "${gpu_cmd?}"

recipe_steps=0        # steps seen
recipe_made=0         # steps that were run, or would be
recipe_current=       # what is being made
recipe_along=false    # whether steps go on in the background (along)
recipe_pids=()        # of these, and
recipe_outs=()        # what they make
recipe_begun=()       # what this shell's step replaces when it succeeds
recipe_shell=$BASHPID # which alone asks the server of stamps
recipe_trash=()       # what is removed at the end
recipe_steps_file=    # what a dry run found

log() {
  printf '%(%F %T)T (%s:%s) %s\n' -1 "${BASH_SOURCE[1]##*/}" "${BASH_LINENO[0]}" "$*"
}

die() { # as wrong options do, and as programs do for bad input
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}

# Ends what this shell was waiting for when a signal ended it (none otherwise): a launcher cancels its jobs.
stop_launcher() {
  local pid shell=$BASHPID # $$ is the recipe's also in a step that goes on in the background
  for pid in $(pgrep -P "$shell"); do
    [[ " ${recipe_pids[*]} " != *" $pid "* ]] || continue
    pkill -TERM -P "$pid" || true # where it is a shell, such as prepare.sh
    kill -TERM "$pid" 2>/dev/null || continue
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
  done
}

# Puts back what the step of this shell was to replace, and has not.
abandon_step() {
  [[ ${#recipe_begun[@]} -eq 0 ]] || stamps.py abandon "${recipe_begun[@]}" >&2 || true
}

recipe_on_exit() {
  local status=$? pid
  for pid in "${recipe_pids[@]}"; do pkill -TERM -P "$pid" || true; done # what it runs, and so itself
  stop_launcher
  wait
  abandon_step
  [[ ${#recipe_trash[@]} -eq 0 ]] || rm -rf "${recipe_trash[@]}"
  [[ $status -eq 0 || -z $recipe_current ]] \
    || printf '%s: stage %s failed at %s (status %s); the messages are above. Fix this and rerun the same command: finished steps are not repeated.\n' \
      "${0##*/}" "$recipe_stage" "$recipe_current" "$status" >&2
  exit "$status"
}
trap recipe_on_exit EXIT

# recipe_start COMMAND: record the command, because nobody remembers it, and tell the programs that are started.
recipe_start() {
  if is_dry || $list_stages; then return 0; fi
  export PSEUDOVOX_COMMAND=$1
  mkdir -p exp
  own_folder "$1"
  printf '%s  %s  %s\n' "$(date +'%F %T')" "$(git -C "$PSEUDOVOX_ROOT" describe --always --dirty)" "$1" \
    >>exp/cmdline.log
}

# Keeps other runs out of this folder, whichever recipe they are; a recipe that a recipe calls shares its lock.
# What another run left half-written goes, and with it the folder where a late job of it could finish a file.
own_folder() { # COMMAND
  local place
  place=$(readlink -f exp)
  [[ ${PSEUDOVOX_OWNED-} != "$place" ]] || return 0
  exec {recipe_lock}>>exp/.lock {recipe_pipe}<> <(:) # which all that the recipe starts inherits
  lock_folder.py exp/.lock "$recipe_lock" "$recipe_pipe" $$ "$1"
  export PSEUDOVOX_OWNED=$place
  rm -rf exp/.partial.*
  PSEUDOVOX_PARTIAL=$(mktemp -d "$PWD/exp/.partial.XXXXXX") # utils/tables.py
  export PSEUDOVOX_PARTIAL
  recipe_trash+=("$PSEUDOVOX_PARTIAL")
}

# in_stage N TITLE: whether stage N is wanted; says that it starts. With --list-stages only lists it.
in_stage() {
  if $list_stages; then
    printf '%3d  %s\n' "$1" "$2"
    return 1
  fi
  [[ $1 -ge $stage && $1 -le $stop_stage ]] || return 1
  recipe_stage=$1
  log "stage $1: $2"
}

# Whether nothing is to be made: --dry-run true sums up, --dry-run full shows every step.
is_dry() { [[ $dry_run != false ]]; }

# stamp ACTION ARGUMENTS...: asks utils/stamps.py; sets said to its answer. The recipe's own shell asks one that it
# keeps, because a program takes longer to start than to answer; a step that goes on in the background starts its own.
stamp() {
  local status=0
  if [[ $BASHPID != "$recipe_shell" ]]; then
    said=$(stamps.py "$@") || status=$?
    return "$status"
  fi
  # shellcheck disable=SC2034  # bash makes three variables of the name
  [[ -n ${recipe_stamps_PID-} ]] || coproc recipe_stamps { exec stamps.py serve; }
  printf '%s\0' "$#" "$@" >&"${recipe_stamps[1]}"
  read -r status said <&"${recipe_stamps[0]}" || die "stamps.py has ended; its message is above"
  return "$status"
}

# step OUT [--also OUT]... [--maybe OUT]... -- COMMAND...: run COMMAND unless OUT is up to date (utils/stamps.py).
# Every word of COMMAND that names a file or folder is an input, also the recipe's own functions' words.
step() {
  local outs=("$1") action=begin said status=0
  shift
  while [[ $1 == --also || $1 == --maybe ]]; do
    outs+=("$1" "$2")
    shift 2
  done
  [[ $1 == -- ]] || die "step ${outs[0]}: '--' expected before the command, not '$1'"
  shift
  recipe_steps=$((recipe_steps + 1))
  ! is_dry || action=check
  stamp "$action" "${outs[@]}" -- "$@" || status=$?
  case $status in
    0) said= ;;
    10) recipe_made=$((recipe_made + 1)) ;;
    *) die "stamps.py failed on ${outs[0]} (status $status)" ;;
  esac
  if is_dry; then
    foresee "$@"
    return 0
  fi
  if [[ $status -eq 0 ]]; then
    log "up to date: ${outs[0]}"
    return 0
  fi
  log "making ${outs[0]} ($said)"
  if $recipe_along; then
    [[ ${#recipe_pids[@]} -lt $nj ]] || wait_first
    (
      recipe_begun=("${outs[@]}")
      trap 'stop_launcher; abandon_step' EXIT # a signal that ends this shell alone must not leave its program behind
      "$@"
      stamp finish "${outs[@]}" -- "$@"
      recipe_begun=() # nothing to put back
    ) &
    recipe_pids+=($!) recipe_outs+=("${outs[0]}")
    return 0
  fi
  # Not within `if` or `||`: that would switch `set -e` off inside the recipe's functions.
  recipe_current=${outs[0]} recipe_begun=("${outs[@]}")
  "$@"
  stamp finish "${outs[@]}" -- "$@"
  recipe_current='' recipe_begun=()
}

# What a dry run keeps of a step, or says: COMMAND is what would be run because of said.
foresee() { # COMMAND...
  local word line=${recipe_stage-0}$'\t'${outs[0]}$'\t'${said:--}
  if [[ $dry_run == full ]]; then
    if [[ -n $said ]]; then log "would make ${outs[0]} ($said): $*"; else log "up to date: ${outs[0]}"; fi
    return 0
  fi
  if [[ -z $recipe_steps_file ]]; then
    recipe_steps_file=$(mktemp)
    recipe_trash+=("$recipe_steps_file")
  fi
  for word; do line+=$'\t'$word; done
  printf '%s\n' "$line" >>"$recipe_steps_file"
}

# parts_each: into how many parts `over` divides a data directory; empty: nj. Who sends steps to the background
# (along) gives each of them fewer.
parts_each=

# along COMMAND...: a function that makes one step, which goes on in the background, at most nj at a time.
# What needs its result comes after steps_wait, which fails where one of them did; each has its own stamp.
# On one machine there is one GPU, which trains one at a time.
along() {
  if [[ ${device-} == cuda && ${cmd_backend-} == local ]]; then
    "$@"
    return 0
  fi
  recipe_along=true
  "$@"
  recipe_along=false
}

# Waits for the step that was first sent to the background.
wait_first() {
  local out=${recipe_outs[0]} status=0
  wait "${recipe_pids[0]}" || status=$?
  recipe_pids=("${recipe_pids[@]:1}") recipe_outs=("${recipe_outs[@]:1}")
  [[ $status -eq 0 ]] || recipe_failed+=("$out")
}

recipe_failed=()
steps_wait() {
  while [[ ${#recipe_pids[@]} -gt 0 ]]; do wait_first; done
  [[ ${#recipe_failed[@]} -eq 0 ]] && return 0
  recipe_current=${recipe_failed[*]}
  exit 1
}

# Sets launch: what starts a program's jobs: $gpu_cmd where it is told `--device cuda`, else $cpu_cmd, and what
# cmd.sh has them ask for.
use_launcher() { # PROGRAM ARGUMENTS...
  local name words=" $* "
  name=$(basename "$1" .py)
  read -ra launch <<<"$cpu_cmd"
  if [[ $words == *" --device cuda"* || $words == *" --device=cuda"* ]]; then read -ra launch <<<"$gpu_cmd"; fi
  local options
  read -ra options <<<"${job_options[$name]-}"
  launch+=("${options[@]}")
}

# job OUT PROGRAM ARGUMENTS...: one job, its log in OUT/log.
job() {
  local out=$1 name launch
  shift
  name=$(basename "$1" .py)
  use_launcher "$@"
  "${launch[@]}" "$out/log/$name.log" "$@"
}

# over DATA OUT PROGRAM ARGUMENTS...: the program once for each of nj parts of a data directory, in parallel;
# %data and %out among its arguments stand for the part and for the folder of the part's results,
# which are then put together in OUT and checked to hold every utterance of DATA (over_pieces: at least
# one piece <utt>-c<number> of it).
over() {
  run_over "$1" "$2" "" "${@:3}"
}

over_pieces() {
  run_over "$1" "$2" --pieces "${@:3}"
}

run_over() {
  local data=$1 out=$2 merge_option=$3 name parts arguments=() launch
  shift 3
  name=$(basename "$1" .py)
  parts=$(split_data_dir.py "$data" "${parts_each:-$nj}")
  local word
  for word in "$@"; do
    word=${word//%data/$data/split$parts/JOB}
    arguments+=("${word//%out/$out/split$parts/JOB}")
  done
  use_launcher "${arguments[@]}"
  "${launch[@]}" "JOB=1:$parts" "$out/log/$name.JOB.log" "${arguments[@]}"
  merge_split_dirs.py ${merge_option:+"$merge_option"} "$out" "$parts" --expect "$data"
}

# recipe_end [LAST_STAGE RESULTS]: what was done, in one line; and after the last stage, where its results are.
recipe_end() {
  $list_stages && return 0
  [[ -z $recipe_steps_file ]] || forecast.py "$recipe_steps_file"
  if [[ $recipe_made -eq 0 ]]; then
    log "nothing to do: all $recipe_steps steps were up to date"
  elif is_dry; then
    log "dry run: $recipe_made of $recipe_steps steps would be made (--dry-run full lists them)"
  else
    log "done: $recipe_made of $recipe_steps steps were made, the others were up to date"
  fi
  [[ $# -eq 0 || $stop_stage -lt $1 ]] || is_dry || log "$2"
}

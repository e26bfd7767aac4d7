# Sourced by run.sh and the studies beside it: their plan, and how a stage goes through a table of it.
# Needs the recipe's options (local/options.sh) and utils/recipe.sh. local/plan_recipe.py says what is made,
# the recipe by which programs.

# shellcheck shell=bash
# The recipe's:
: "${command_line?}" "${list_stages?}" "${stage?}" "${stop_stage?}" "${recipe_made?}" "${option_names?}"

plan=        # folder of the tables
plan_recipe= # run, nist, whitebox or generators
plan_said=   # notes that the log has
plan_made=-1 # steps made when it was planned
plan_done=() # stages and tables that were gone through

# begin_recipe RECIPE "$@": checks and plans what is asked for, then locks the folder.
begin_recipe() {
  plan_recipe=$1
  shift
  [[ $# -eq 0 ]] || die "unexpected argument '$1'; see --help"
  ! $list_stages || return 0
  plan=$(mktemp -d)
  recipe_trash+=("$plan")
  plan_again
  recipe_start "$command_line"
  keep_plan
  say_notes
}

# Plans anew where steps were made since: whether a system draws something is known once it has protected speech.
plan_again() {
  [[ $recipe_made -ne $plan_made ]] || return 0
  if is_dry && [[ $plan_made -ge 0 ]]; then return 0; fi
  local name words=("command_line=$command_line" "tested_train_generators=${tested_train_generators-}")
  for name in "${option_names[@]}"; do words+=("$name=${!name}"); done
  local/plan_recipe.py "$plan_recipe" "$plan" "${words[@]}"
  plan_made=$recipe_made
  keep_plan
  [[ -z ${recipe_stage-} ]] || say_notes
}

# Says what the plan notes, each once.
say_notes() {
  local note
  while IFS= read -r note; do
    [[ $'\n'$plan_said == *$'\n'$note$'\n'* ]] || log "$note"
    plan_said+=$note$'\n'
  done <"$plan/notes"
}

# Leaves the tables where people look.
keep_plan() {
  [[ -n ${PSEUDOVOX_OWNED-} ]] && ! is_dry || return 0
  local folder=exp/plan/$plan_recipe
  [[ $plan_recipe != run ]] || folder=exp/plan
  mkdir -p "$folder"
  cp "$plan"/*.tsv "$folder"
}

# make TABLE PROGRAM...: the steps of this stage in a table of the plan; %name in it stands for the PROGRAM of this name.
make() {
  local -A programs=()
  local program word name row words
  for program in "${@:2}"; do
    name=${program##*/}
    name=%${name%.*}
    programs[$name]=$program
  done
  while IFS=$'\t' read -r -u 3 -a row; do
    [[ ${row[0]} == "$recipe_stage" ]] || continue
    words=()
    for word in "${row[@]:1}"; do
      case $word in
        %data | %out | %then) ;;
        %[a-z]*)
          [[ -v programs[$word] ]] || die "$1: ${row[1]} needs ${word#%}, a program that stage $recipe_stage does not give"
          word=${programs[$word]}
          ;;
      esac
      words+=("$word")
    done
    step "${words[@]}"
  done 3<"$plan/$1.tsv"
  plan_done+=("$recipe_stage $1.tsv")
}

# The same, the steps side by side; what needs them waits (steps_wait).
make_along() { # TABLE PROGRAM...
  along make "$@"
  steps_wait
}

# The first output of a table, such as the folder of the results.
first_of() { # TABLE
  $list_stages || head -n 1 "$plan/$1.tsv" | cut -f 2
}

# A step of two programs: PROGRAM over the parts of DATA, then PROGRAM2 once.
over_then_job() { # DATA OUT PROGRAM ARGUMENTS... %then PROGRAM2 ARGUMENTS...
  local out=$2 words=()
  while [[ $1 != %then ]]; do
    words+=("$1")
    shift
  done
  over "${words[@]}"
  job "$out" "${@:2}"
}

# A step of two jobs.
job_then_job() { # OUT PROGRAM ARGUMENTS... %then PROGRAM2 ARGUMENTS...
  local out=$1 words=()
  shift
  while [[ $1 != %then ]]; do
    words+=("$1")
    shift
  done
  job "$out" "${words[@]}"
  job "$out" "${@:2}"
}

# end_recipe LAST_STAGE RESULTS: what was done, and where results are; a finished run.sh is remembered.
end_recipe() {
  if $list_stages; then return 0; fi
  local at table
  while read -r at table; do
    [[ $at -lt $stage || $at -gt $stop_stage || " ${plan_done[*]} " == *" $at $table "* ]] \
      || die "stage $at does not make $table of its plan"
  done < <(cd "$plan" && awk '{ print $1, FILENAME }' ./*.tsv | sed 's:\./::' | sort -u)
  if [[ $plan_recipe == run && $stop_stage -ge $1 && $stage -le $1 ]] && ! is_dry; then
    cp "$plan/options.json" exp/plan/options.json
  fi
  recipe_end "$@"
}

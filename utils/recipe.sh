# Sourced by a recipe: its stages, and the commands that each runs over the tables of its plan. Nothing is run before
# end_recipe, which hands all of it to local/run_recipe.py (utils/recipe.py).
# Needs the recipe's options (local/options.sh), and cmd.sh.

# shellcheck shell=bash
# The recipe's:
: "${command_line?}" "${cpu_cmd?}" "${gpu_cmd?}" "${option_names?}"

declare -gA job_options    # of cmd.sh
declare -gA corpus_setting # of conf/recipe.conf, by name, with defaults

recipe_name=    # run, nist, generators or large
recipe_lines=() # what the recipe says, a line each; fields are separated by $recipe_mark
recipe_mark=$'\x1f'

# begin_recipe NAME "$@"
begin_recipe() {
  recipe_name=$1
  [[ $# -eq 1 ]] || {
    printf "%s: unexpected argument '%s'; see --help\n" "${0##*/}" "$2" >&2
    exit 2
  }
}

# in_stage N TITLE: what follows belongs to stage N.
in_stage() { recipe_say stage "$@"; }

# each TABLE 'COMMAND {column} ...'...: run the commands for each row of a table. A step of which a later stage makes what
# it reads belongs to that stage.
each() { recipe_say each "$@"; }

# Plan anew after this stage: whether a system draws something is known once it has protected speech.
plan_again() { recipe_say plan_again; }

recipe_say() {
  local IFS=$recipe_mark
  recipe_lines+=("$*")
}

# end_recipe LAST_STAGE RESULTS [FILE]: run all that was said. RESULTS: where results are; FILE: what is said before that;
# {table} stands for its first output.
end_recipe() {
  local name words=("command_line=$command_line" "given=${given_names[*]-}")
  for name in "${!corpus_setting[@]}"; do words+=("$name=${!name-${corpus_setting[$name]}}"); done
  for name in "${option_names[@]}"; do words+=("$name=${!name}"); done
  for name in "${!job_options[@]}"; do recipe_say job_options "$name" "${job_options[$name]}"; done
  recipe_say end "$@"
  exec local/run_recipe.py "$0" "$recipe_name" "${words[@]}" -- "${recipe_lines[@]}"
}

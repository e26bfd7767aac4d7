#!/usr/bin/env bash
# The white-box study (paper 001): everybody speaks with one constant voice, and the attacker knows which. docs/studies.md.
# It takes corpus and encoders of run.sh, and makes what is missing. Targets are clusters of x-vectors of the voice encoder.
#   ./whitebox.sh                                        40 targets, with and without their pitch
#   ./whitebox.sh --targets 3 --f0 none                  a look
#   ./whitebox.sh --how "backend scratch" --device cuda  the encoder trained anew for each target, too
# Results: exp/whitebox/<evaluation>_<targets>/results/RESULTS.md (beside 001's), metrics.csv, per_speaker.csv,
# and the radars in .../report/report.html.
set -euo pipefail

stage=0              # first stage to run
stop_stage=7         # last stage to run
targets=40           # target voices: half of them (rounded up) women, the others men
f0="none linear"     # pitch of protected speech: none (as it was), linear (moved to the target's)
how="backend"        # what the attacker trains on speech of the target: backend, finetuned, scratch
bins=50              # of a speaker's own linkability (001's code)
prosody=true         # pitch, length and level of protected speech beside the original, by target
asr=                 # as run.sh has it: who recognises words, by target; empty: not measured
asr_lang=general     # as run.sh has it
asr_model=ctc_mini   # as run.sh has it
asr_spelling=english # as run.sh has it

. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
. local/recipe.sh
. local/attackers.sh
. local/prosody.sh
. local/asr.sh
begin_recipe "$@"
check_numbers --targets "$targets"
check_words --f0 "$f0" "none|linear"
check_words --how "$how" "backend|finetuned|scratch"
check_numbers --bins "$bins"
check_asr
recipe_start "$command_line"

use_sets
need_data "data/$train_set" "${sets[@]/#/data/}"
out=exp/whitebox/${evaluation}_$targets
generated_conf=$out/conf

# Sets why: what keeps an evaluator from being trained on a target; empty: nothing does.
why_untrained() { # EVALUATOR
  local word
  why=
  for word in $how; do
    [[ $word != backend || ${1##*/} != cosine ]] || why="--how backend: the back end cosine of $1 has nothing to train"
    [[ $word == backend || -f conf/encoders/${1%/*}.yaml ]] || why="--how $word: $1 comes trained; its back end can be (--how backend)"
  done
}

parts=() # evaluator and gender
asked=$evaluators evaluators=
for evaluator in $asked; do
  why_untrained "$evaluator"
  if [[ -n $why ]]; then
    log "evaluator left out: $why"
    continue
  fi
  evaluators+=" $evaluator"
  for gender in $genders; do parts+=("$evaluator $gender"); done
done
[[ ${#parts[@]} -gt 0 ]] || die "no evaluator is left to train: $why"

# Systems: target NN of a series, const_NN_of_<targets>[_f0].
declare -A series_of
systems=
for kind in $f0; do
  case $kind in
    none) source=const_01 suffix= ;;
    linear) source=const_01_f0 suffix=_f0 ;;
  esac
  check_system "$source"
  for ((number = 1; number <= targets; number++)); do
    system=$(printf 'const_%0*d_of_%d%s' "$((${#targets} > 2 ? ${#targets} : 2))" "$number" "$targets" "$suffix")
    systems+=" $system"
    series_of[$system]=$kind
    $list_stages || steps/vary_system.py "conf/systems/$source.yaml" "$generated_conf/$system.yaml" \
      "generator.target=$number" "generator.clusters=$(((targets + 1) / 2))" >/dev/null
  done
done

# Sets level and needs of a target's system: those of its series, which are asked once.
declare -A described_of
use_target() { # SYSTEM
  local kind=${series_of[$1]}
  [[ -v described_of[$kind] ]] || described_of[$kind]=$(steps/describe_system.py "$(system_conf "$1")")
  read -r level needs <<<"${described_of[$kind]}"
}

# Sets attacker, condition, enrol, trial and training_level of a way to train, and what use_informed sets.
use_white_box() { # HOW SYSTEM
  attacker=white_box condition=AA enrol=$2 trial=$2 training_level=const
  [[ $1 == scratch ]] || attacker=white_box_$1
  use_informed "$1" "$2" "$training_level"
}

# For every target, way to train and evaluator (in use): COMMAND with HOW and SYSTEM, side by side.
for_targets() { # COMMAND...
  local evaluator system word
  for evaluator in $evaluators; do
    for word in $how; do
      for system in $systems; do
        use_evaluator "$evaluator"
        use_white_box "$word" "$system"
        "$@" "$word" "$system"
      done
    done
  done
  steps_wait
}

if in_stage 0 "evaluators, x-vectors of the original speech, pool of voices"; then
  make_evaluators
  use_encoder "$voice_encoder"
  for system in $systems; do
    use_target "$system"
    for need in $needs; do
      make_for_training "$need"
    done
  done
fi

# Targets go side by side, nj at a time; only where they are fewer, the parts of one do, too.
read -ra system_list <<<"$systems"
parts_each=$(((nj + ${#system_list[@]} - 1) / ${#system_list[@]}))

if in_stage 1 "protect the evaluation sets and the attacker's training set, by target"; then
  use_encoder "$voice_encoder"
  for system in $systems; do
    use_target "$system"
    for set in "${sets[@]}"; do along protect "$system" "$set" "data/${set}_$system"; done
    along protect "$system" "$train_set" "data/${train_set}_${system}_const"
  done
  steps_wait
fi

if in_stage 2 "evaluators trained on each target: encoders"; then
  for_targets along make_informed_encoder
fi

# x-vectors of a target's sets: of the encoder as it is, or of the one trained on the target.
make_target_xvectors() { # HOW SYSTEM
  local set
  for set in "${sets[@]}"; do
    [[ " $made " != *" $name/${set}_$2 "* ]] || continue
    made+=" $name/${set}_$2"
    along make_xvectors "${set}_$2"
  done
  [[ $scorer == cosine || " $made " == *" $name/$training "* ]] || {
    made+=" $name/$training"
    along make_session_xvectors "$training"
  }
}

if in_stage 3 "x-vectors of the protected speech, by target"; then
  for_targets make_target_xvectors
fi

make_target_backend() { # HOW SYSTEM
  [[ $scorer == cosine ]] || along make_backend "$training" "$scorer"
}

if in_stage 4 "evaluators trained on each target: back ends"; then
  for_targets make_target_backend
fi

# Verification figures of scores, with each speaker's linkability by both definitions.
white_box_figures() { # PATH
  step "$out/metrics/$1" -- job "$out/metrics/$1" local/compute_metrics.py verification "${options[@]}" --bins "$bins" \
    "data/$trials/trials" "$out/scores/$1/scores" "$out/metrics/$1/metrics.json"
}

# COMMAND with PATH for every attack: original speech, then each target; sets all that score_attack takes.
for_attacks() { # COMMAND...
  local part system word
  for part in "${parts[@]}"; do
    use_part "$part"
    attacker=unprotected condition=OO enrol=- trial=- training=''
    "$@" "original/$attacker.$label/$condition/$split"
    for word in $how; do
      for system in $systems; do
        use_part "$part"
        use_white_box "$word" "$system"
        "$@" "$system/$attacker.$label/$condition/$split"
      done
    done
  done
  steps_wait
}

score_white_box() { # PATH
  score_attack "$out/scores/$1"
}

if in_stage 5 "scores and figures, by target"; then
  for_attacks along score_white_box
  for_attacks along white_box_figures
fi

parts_each=
if in_stage 6 "utility, by target"; then
  ! $prosody || make_prosody
  make_asr
fi

if in_stage 7 "tables, and the radars over targets"; then
  shopt -s nullglob
  gather=(--corpus-name "$corpus_name" --clips 0) tell=() folders=() scored=()
  add_folder() { folders+=("$out/metrics/$1") scored+=("$1"); } # PATH
  for_attacks add_folder
  for system in $systems; do
    gather+=(--speech "$system" "data/${sets[1]}" "data/${sets[1]}_$system")
    tell+=(--target "$system" "data/${sets[1]}_$system")
  done
  for path in "${scored[@]}"; do
    gather+=(--attack "data/${evaluation}_trials_${path##*_}/trials" "$out/scores/$path")
  done
  if $prosody; then
    find_prosody
    folders+=("${prosody_folders[@]}")
  fi
  add_asr_figures
  step "$out/results" -- job_then_job "$out/results" local/collect_results.py "${gather[@]}" "$out/results" "${folders[@]}" \
    %then local/collect_whitebox.py "${tell[@]}" "$out/results"
  step "$out/report" -- job "$out/report" local/make_report.py "$out/results" "$out/report"
fi
recipe_end 7 "results: $PWD/$out/results/RESULTS.md; radars: $out/report/report.html"

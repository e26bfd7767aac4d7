# Sourced by run.sh after local/attackers.sh: stage 10, how well emotions are recognised. docs/utility.md explains.
# Needs the recipe's options, utils/recipe.sh, and the names of the evaluation sets in `sets`.
#
#   exp/functionals/<set>                                     of original and protected sets
#   exp/emotions/<system>/<recogniser>/<set>                  what was recognised
#   exp/metrics/<system>/utility.<recogniser>/{OO,PP}/<split> figures; OO original speech, PP protected;
#                                                             split: each gender's trials, and all trials together
#
# Recognisers: functionals (trained on original speech of the other speakers), functionals_retrained (on their
# protected speech), hub:<model>.

# shellcheck shell=bash disable=SC2154  # the variables are the recipe's

# Sets label of a recogniser of emotions.
use_emotion() { # RECOGNISER
  label=${1//[:\/]/_}
  [[ $1 == @(functionals|functionals_retrained|hub:?*) ]] \
    || die "--emotion: '$1'; known: functionals, functionals_retrained, hub:<model>"
}

make_functionals() { # SET
  [[ " $made " != *" functionals/$1 "* ]] || return 0
  made+=" functionals/$1"
  step "exp/functionals/$1" -- over "data/$1" "exp/functionals/$1" steps/extract_functionals.py %data %out
}

# Sets training: options of steps/recognise_emotion.py with the sets that the recogniser in use is trained on,
# and makes what they need.
use_emotion_training() { # SYSTEM
  local set all=("$train_set" "${sets[@]}")
  if [[ $label == functionals_retrained && $1 != original ]]; then
    use_system "$1"
    protect_training "$1" "$level"
    all=("${train_set}_$1_$level" "${sets[@]/%/_$1}")
  fi
  training=()
  for set in "${all[@]}"; do
    make_functionals "$set"
    training+=(--train "data/$set" "exp/functionals/$set")
  done
}

recognise_emotions() { # RECOGNISER SYSTEM SET
  local from=$3 out=exp/emotions/$2/$label/$3
  [[ $2 == original ]] || from=$3_$2
  if [[ $1 == hub:* ]]; then
    step "$out" -- over "data/$from" "$out" steps/recognise_emotion.py --device "$device" "$1" %data %out
    return
  fi
  make_functionals "$from"
  step "$out" -- job "$out" steps/recognise_emotion.py --seed "$seed" --features "exp/functionals/$from" \
    "${training[@]}" functionals "data/$from" "$out"
}

make_emotion() {
  local recogniser system set training
  for recogniser in $emotion; do
    use_emotion "$recogniser"
    for system in original $systems; do
      [[ $recogniser == hub:* ]] || use_emotion_training "$system"
      for set in "${sets[@]:1}"; do recognise_emotions "$recogniser" "$system" "$set"; done
      recognised_figures local/compute_uar.py "exp/emotions/$system/$label" emotions "$system"
    done
  done
}

# Adds to folders the figures of this run's systems.
add_emotion_figures() {
  local recogniser
  for recogniser in $emotion; do
    use_emotion "$recogniser"
    add_recognised_figures
  done
}

# Sourced by run.sh after local/recipe.sh: which folders' logs say how long each system took (docs/speed.md).
# Needs the recipe's options, and the names of the evaluation sets in `sets`.

# shellcheck shell=bash disable=SC2154,SC2034  # the variables are the recipe's

# Adds to gather a stage of a system, made of each evaluation set: FOLDER is a prefix of the set's name.
# How often: each (of all new speech that is protected) or once.
add_timed() { # HOW SYSTEM STAGE FOLDER [SUFFIX]
  local set
  for set in "${sets[@]}"; do gather+=("--timed-$1" "$2" "$3" "exp/audio/$set" "$4$set${5-}"); done
}

# The same of the trials only, once.
add_timed_trials() { # SYSTEM STAGE FOLDER [SUFFIX]
  local set
  for set in "${sets[@]:1}"; do gather+=(--timed-once "$1" "$2" "exp/audio/$set" "$3$set${4-}"); done
}

# Adds to gather the training in FOLDER, of the training speech or another set's.
add_timed_training() { # SYSTEM STAGE FOLDER [SET]
  gather+=(--timed-once "$1" "$2" "exp/audio/${4-$train_set}" "$3")
}

# Adds to gather what a system needs, and its protection.
add_timed_protection() { # SYSTEM
  local need
  use_encoder "$voice_encoder"
  use_system "$1"
  for need in $needs; do
    case $need in
      f0) add_timed each "$1" "pitch" exp/f0/ ;;
      xvectors) [[ -n $given_xvectors ]] || add_timed each "$1" "x-vectors of the voices" "$xvectors/" ;;
      pool) add_timed_training "$1" "pool: WORLD frames" "exp/world/$pool_set" "$pool_set" ;;
      pool:wavlm) add_timed_training "$1" "pool: WavLM frames" exp/pools/wavlm "$pool_set" ;;
      synthesiser:* | generator:*) add_timed_training "$1" "training: ${need#*:}" "exp/${need%%:*}s/$name/${need#*:}" "$pool_set" ;;
    esac
  done
  add_timed each "$1" protection data/ "_$1"
}

# Adds to gather how the evaluators were trained, where this recipe did it, and those that attackers made of them
# with protected speech.
add_timed_evaluators() { # SYSTEM; original: the evaluators as they came
  local evaluator attack line
  for evaluator in $evaluators; do
    use_evaluator "$evaluator"
    if [[ $1 == original ]]; then
      [[ ! -f conf/encoders/$encoder.yaml ]] || add_timed_training "$1" "attack: training of $name" "$model"
      continue
    fi
    [[ -n $given_xvectors ]] || add_timed once "$1" "attack: x-vectors by $name" "$xvectors/" "_$1"
    use_attacks "$evaluator"
    for line in "${attacks[@]}"; do
      read -r attack _ <<<"$line"
      [[ $attack == "$1" ]] || continue
      use_evaluator "$evaluator"
      use_attack "$line"
      [[ $how != scratch && $how != finetuned ]] || add_timed_training "$1" "attack: training of $name" "$model"
    done
  done
}

# Adds to gather how long words and emotions of the trials took to be recognised, and the trainings for it.
add_timed_recognition() { # SYSTEM
  local recogniser from training model
  for recogniser in $asr; do
    use_asr "$recogniser"
    if [[ $recogniser == ctc_retrained || "$recogniser $1" == "ctc original" ]]; then
      use_ctc "$recogniser" "$1"
      add_timed_training "$1" "words: training of ${model##*/}" "$model"
    fi
    add_timed_trials "$1" "words by $label" "exp/decode/$1/$label/"
  done
  for recogniser in $emotion; do
    use_emotion "$recogniser"
    from=
    [[ $1 == original ]] || from=_$1
    [[ $recogniser == hub:* ]] || add_timed_trials "$1" "emotions: functionals" exp/functionals/ "$from"
    add_timed_trials "$1" "emotions by $label" "exp/emotions/$1/$label/"
  done
}

# Adds to gather all stages of the original speech and of each system.
add_all_timed() {
  local one
  for one in original $systems; do
    [[ $one == original ]] || add_timed_protection "$one"
    add_timed_evaluators "$one"
    add_timed_recognition "$one"
  done
}

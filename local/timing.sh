# Sourced by run.sh after local/recipe.sh: which folders' logs say how long each system took (docs/utility.md).
# Needs the recipe's options, and the names of the evaluation sets in `sets`.

# shellcheck shell=bash disable=SC2154  # the variables are the recipe's

# Adds to gather a stage of a system, made of each evaluation set: FOLDER is a prefix of the set's name.
# How often: each (of all new speech that is protected) or once.
add_timed() { # HOW SYSTEM STAGE FOLDER [SUFFIX]
  local set
  for set in "${sets[@]}"; do gather+=("--timed-$1" "$2" "$3" "exp/audio/$set" "$4$set${5-}"); done
}

# Adds to gather all stages of each system: what it needs of the speech, the protection, and the evaluators'
# x-vectors of what it made. Trainings are left out: their length is not the audio's.
add_all_timed() {
  local system need evaluator
  for system in $systems; do
    use_encoder "$voice_encoder"
    use_system "$system"
    for need in $needs; do
      case $need in
        f0) add_timed each "$system" "pitch" exp/f0/ ;;
        xvectors) [[ -n $given_xvectors ]] || add_timed each "$system" "x-vectors of the voices" "$xvectors/" ;;
        pool) gather+=(--timed-once "$system" "pool: WORLD frames" "exp/audio/$train_set" "exp/world/$train_set") ;;
        pool:wavlm) gather+=(--timed-once "$system" "pool: WavLM frames" "exp/audio/$train_set" exp/pools/wavlm) ;;
      esac
    done
    add_timed each "$system" protection data/ "_$system"
    for evaluator in $evaluators; do
      use_evaluator "$evaluator"
      [[ -n $given_xvectors ]] || add_timed once "$system" "attack: x-vectors by $name" "$xvectors/" "_$system"
    done
  done
}

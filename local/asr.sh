# Sourced by run.sh after local/attackers.sh: stage 10, how well words are recognised. docs/words.md explains.
# Needs the recipe's options, utils/recipe.sh, and the names of the evaluation sets in `sets`.
#
#   exp/lang                                                  what recognisers are told of the language
#   exp/recognisers/<conf>, <conf>.<protected training set>   ctc, ctc_retrained: what they hear with
#   exp/recognisers/....search/search.yaml                    and what the language weighs beside it
#   exp/decode/<system>/<recogniser>/<set>/text               hypotheses
#   exp/metrics/<system>/utility.<recogniser>/{OO,PP}/<split> figures; OO original speech, PP protected;
#                                                             split: each gender's trials, and all trials together
#
# Recognisers: moonshine, moonshine:<folder> (another size or language), pocketsphinx, ctc (trained on original speech of the training set), ctc_retrained (on the same speech,
# protected by the system that is measured, at its own level), hub:<model>.

# shellcheck shell=bash disable=SC2154  # the variables are the recipe's

# Sets label of a recogniser of words.
use_asr() { # RECOGNISER
  label=${1//[:\/]/_}
  [[ $1 == @(moonshine|moonshine:?*|pocketsphinx|ctc|ctc_retrained|hub:?*) ]] \
    || die "--asr: '$1'; known: moonshine, moonshine:<folder>, pocketsphinx, ctc, ctc_retrained, hub:<model>"
  [[ $1 != moonshine:* || -d ${1#*:} ]] || die "--asr $1: ${1#*:} is no folder"
  [[ $1 != ctc* || -f conf/asr/$asr_model.yaml ]] \
    || die "conf/asr/$asr_model.yaml is missing; there are: $(cd conf/asr && echo *.yaml)"
}

# Refuses recognisers that are none; says at the start what would fail hours later.
check_asr() {
  local recogniser
  for recogniser in $asr; do
    use_asr "$recogniser"
    [[ $recogniser != moonshine ]] || $list_stages \
      || python3 -c 'import importlib.util as u, sys; sys.exit(u.find_spec("moonshine_voice") is None)' \
      || log "moonshine-voice is not installed (docs/words.md): words cannot be recognised; give --asr= or --asr pocketsphinx"
  done
}

check_transcripts() {
  local set all=("${sets[@]:1}")
  [[ " $asr" != *" ctc"* ]] || all+=("$train_set") # a model of the hub may have ctc in its name
  for set in "${all[@]}"; do
    [[ -f data/$set/text ]] || $dry_run \
      || die "--asr: data/$set/text is missing: word error rate needs transcripts; give --asr= without them"
  done
}

make_lang() {
  local set options=()
  for set in "${sets[@]:1}"; do
    options+=(--count "data/$set")
  done
  made+=" exp/lang"
  [[ $asr_lang != trigram ]] || options+=(--train "data/$train_set")
  step exp/lang -- job exp/lang steps/make_lang.py "${options[@]}" "$asr_lang" exp/lang
}

# Sets training and model: the set that a ctc recogniser is trained on for a system, and where it stands.
use_ctc() { # RECOGNISER SYSTEM
  training=$train_set model=exp/recognisers/$asr_model
  [[ $1 == ctc_retrained && $2 != original ]] || return 0
  use_system "$2"
  training=${train_set}_$2_$level model+=.$training
}

# Makes the training set of a ctc recogniser for a system.
make_ctc_speech() { # RECOGNISER SYSTEM
  local training model
  use_ctc "$1" "$2"
  [[ $training == "$train_set" ]] || protect_training "$2" "$level"
}

make_ctc() { # RECOGNISER SYSTEM
  local training model
  use_ctc "$1" "$2"
  [[ " $made " != *" $model "* ]] || return 0
  made+=" $model"
  use_unseen
  step "$model" -- job "$model" steps/train_recogniser.py --seed "$seed" "${on_device[@]}" "${unseen[@]}" \
    "conf/asr/$asr_model.yaml" "data/$training" "$model"
}

make_ctc_search() { # RECOGNISER SYSTEM
  local training model
  use_ctc "$1" "$2"
  [[ " $made " != *" $model.search "* ]] || return 0
  made+=" $model.search"
  step "$model.search" -- job "$model.search" steps/choose_search.py "${on_device[@]}" \
    "$model" "data/$training" exp/lang "$model.search"
}

# Recognisers are trained side by side, nj at a time.
make_all_ctc() {
  local recogniser system what
  for what in make_ctc_speech "along make_ctc" "along make_ctc_search"; do
    for recogniser in $asr; do
      [[ $recogniser == ctc* ]] || continue
      for system in original $systems; do $what "$recogniser" "$system"; done
    done
    steps_wait
  done
}

decode() { # RECOGNISER SYSTEM SET
  local from=$3 out=exp/decode/$2/$label/$3 name=$1 options=(--lang exp/lang) training model
  [[ $2 == original ]] || from=$3_$2
  case $1 in
    hub:*) options=(--device "$device") ;;
    moonshine) options=() ;;
    moonshine:*) name=moonshine options=(--model "${1#*:}") ;;
    ctc*)
      use_ctc "$1" "$2"
      name=ctc options+=(--model "$model" --search "$model.search/search.yaml" "${on_device[@]}")
      ;;
  esac
  step "$out" -- over "data/$from" "$out" steps/decode.py "${options[@]}" "$name" %data %out
}

make_asr() {
  local recogniser system set
  [[ -n $asr ]] || return 0
  check_transcripts
  for recogniser in $asr; do
    use_asr "$recogniser"
    [[ $recogniser == @(hub|moonshine)* || " $made " == *" exp/lang "* ]] || make_lang
  done
  make_all_ctc
  for recogniser in $asr; do
    use_asr "$recogniser"
    for system in original $systems; do
      for set in "${sets[@]:1}"; do decode "$recogniser" "$system" "$set"; done
      recognised_figures local/compute_wer.py "exp/decode/$system/$label" text "$system" --spelling "$asr_spelling"
    done
  done
}

# Adds to folders the figures of this run's systems.
add_asr_figures() {
  local recogniser
  for recogniser in $asr; do
    use_asr "$recogniser"
    add_recognised_figures
  done
}

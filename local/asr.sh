# Sourced by run.sh after local/attackers.sh: stage 10, how well words are recognised. docs/utility.md explains.
# Needs the recipe's options, utils/recipe.sh, and the names of the evaluation sets in `sets`.
#
#   exp/lang                                                  what recognisers are told of the language
#   exp/decode/<system>/<recogniser>/<set>/text               hypotheses
#   exp/metrics/<system>/utility.<recogniser>/{OO,PP}/<split> figures; OO original speech, PP protected;
#                                                             split: each gender's trials, and all trials together

# shellcheck shell=bash disable=SC2154  # the variables are the recipe's

# Sets label of a recogniser of words.
use_asr() { # RECOGNISER
  label=${1//[:\/]/_}
  [[ $1 == @(pocketsphinx|hub:?*) ]] || die "--asr: '$1'; known: pocketsphinx, hub:<model>"
}

check_transcripts() {
  local set
  for set in "${sets[@]:1}"; do
    [[ -f data/$set/text ]] || $dry_run \
      || die "--asr: data/$set/text is missing: word error rate needs transcripts; give --asr= without them"
  done
}

make_lang() {
  local set options=()
  for set in "${sets[@]:1}"; do
    options+=(--count "data/$set")
  done
  [[ $asr_lang != trigram ]] || options+=(--train "data/$train_set")
  step exp/lang -- job exp/lang steps/make_lang.py "${options[@]}" "$asr_lang" exp/lang
}

decode() { # RECOGNISER SYSTEM SET
  local from=$3 out=exp/decode/$2/$label/$3 options=(--lang exp/lang)
  [[ $2 == original ]] || from=$3_$2
  [[ $1 != hub:* ]] || options=(--device "$device")
  step "$out" -- over "data/$from" "$out" steps/decode.py "${options[@]}" "$1" %data %out
}

make_asr() {
  local recogniser system set
  [[ -z $asr ]] || check_transcripts
  for recogniser in $asr; do
    use_asr "$recogniser"
    [[ $recogniser != pocketsphinx ]] || make_lang
    for system in original $systems; do
      for set in "${sets[@]:1}"; do decode "$recogniser" "$system" "$set"; done
      recognised_figures local/compute_wer.py "exp/decode/$system/$label" text "$system"
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

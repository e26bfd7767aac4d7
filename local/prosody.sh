# Sourced by run.sh: prosody and quality of each system's protected trial speech, beside the original.
# Needs local/recipe.sh and the recipe's options.

# shellcheck shell=bash disable=SC2154  # the variables are the recipe's

# exp/prosody/<system>/<set>/prosody, and exp/metrics/<system>/utility.prosody/OP/<split>/metrics.json.
make_prosody() {
  local system set out
  for system in $systems; do
    for set in "${sets[@]:1}"; do
      out=exp/prosody/$system/$set
      step "$out" -- over "data/$set" "$out" steps/compare_prosody.py %data "data/${set}_$system" %out
      figures "$system/utility.prosody/OP/${evaluation}_${set##*_}" local/compute_prosody.py \
        --utt2spk "data/$set/utt2spk" --bootstrap "$bootstrap" --seed "$seed" "$out/prosody"
    done
  done
}

# Sets prosody_folders: the figures of this run's systems.
find_prosody() {
  local system gender
  prosody_folders=()
  for system in $systems; do
    for gender in $genders; do prosody_folders+=("exp/metrics/$system/utility.prosody/OP/${evaluation}_$gender"); done
  done
}

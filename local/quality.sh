# Sourced by run.sh: estimated mean opinion scores of a sample of trial utterances, original and protected, the same ones.
# Needs local/recipe.sh and the recipe's options. docs/utility.md explains.
#
#   exp/quality_samples/<set>                               the utterances that are heard
#   exp/quality/<system>/<set>/quality                      their scores
#   exp/metrics/<system>/utility.distillmos/{OO,PP}/<split> figures, PP with the drop

# shellcheck shell=bash disable=SC2154,SC2034  # the variables are the recipe's

make_quality() {
  local system set speech sample before=() label=distillmos
  check_numbers --quality-utterances "$quality_utterances"
  for set in "${sets[@]:1}"; do
    sample=exp/quality_samples/$set
    step "$sample" -- job "$sample" utils/subset_data_dir.py --per-spk "$quality_utterances" --seed "$seed" "data/$set" "$sample"
  done
  for system in original $systems; do
    for set in "${sets[@]:1}"; do
      speech=data/$set
      [[ $system == original ]] || speech+=_$system
      step "exp/quality/$system/$set" -- over "exp/quality_samples/$set" "exp/quality/$system/$set" \
        steps/estimate_quality.py %data "$speech" %out
    done
    recognised_figures local/compute_quality.py "exp/quality/$system" quality "$system" "${before[@]}"
    [[ $system != original ]] || before=("${sets[@]:1}")
    [[ $system != original ]] || before=("${before[@]/#/--original=exp/quality/original/}")
    [[ $system != original ]] || before=("${before[@]/%//quality}")
  done
}

# Adds to folders the figures of this run's systems.
add_quality_figures() {
  local label=distillmos
  add_recognised_figures
}

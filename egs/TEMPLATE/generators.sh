#!/usr/bin/env bash
# Generators of pseudo-speakers compared in embedding space (paper 004: Fig. 11, Tables II and III), without speech.
# It takes the corpus, the encoder and the x-vectors that run.sh makes, and makes what is missing.
#   ./generators.sh                                    everything that is not up to date
#   ./generators.sh --sizes "100 1000 2000000"         as far as Fig. 11 goes
#   ./generators.sh --generators "average idmap_mlp"   some generators: conf/systems/<generator>.yaml
# DeID and G_VD (of --evaluators) need speech: run.sh --systems "random average ..." before.
# Results: exp/generators/<encoder>/results/RESULTS.md, generators.csv and capacity.pdf.
set -euo pipefail

stage=0                                                   # first stage to run
stop_stage=4                                              # last stage to run
generators="random average psd wgan idmap_mlp idmap_diff" # what is compared: conf/systems/<generator>.yaml
sizes="100 1000 10000 100000"                             # numbers of pseudo-speakers, ascending
vectors=1000                                              # pseudo-speakers that are timed

. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
. local/recipe.sh
begin_recipe "$@"
for generator in $generators; do check_system "$generator"; done
check_sizes "$sizes"
check_numbers --vectors "$vectors"
recipe_start "$command_line"

use_sets
need_data "data/$train_set" "${sets[@]/#/data/}"
read -ra sizes_given <<<"$sizes"
use_encoder "$voice_encoder"
out=exp/generators/$name
find_needs

if in_stage 0 "x-vectors, trained generators"; then
  make xvectors
  make_generators
fi

if in_stage 1 "the cosine at which the encoder's error rates are equal, original speech"; then
  lists=()
  for gender in $genders; do
    use_part "$voice_encoder/cosine $gender"
    scores=exp/scores/original/unprotected.$label/OO/$split
    step "$scores" -- job "$scores" steps/score_trials.py --backend "$scorer" --asnorm "$asnorm" \
      "$xvectors/${sets[0]}" "$xvectors/$trials" "data/$trials/trials" "$scores/scores"
    lists+=(--list "data/$trials/trials" "$scores/scores")
  done
  step "$out/threshold" -- job "$out/threshold" local/find_threshold.py "${lists[@]}" "$out/threshold/threshold.json"
fi

if in_stage 2 "capacity: cosines between pseudo-speakers"; then
  how=(--sizes "${sizes_given[@]}" --threshold "$out/threshold/threshold.json")
  step "$out/capacity/real" -- job "$out/capacity/real" steps/measure_capacity.py "${how[@]}" -- \
    "$xvectors/${pool_set}_speakers" "$out/capacity/real/capacity.tsv"
  for generator in $generators; do
    use_generator "$generator"
    folder=$out/capacity/$generator
    if [[ -n $network ]]; then
      step "$folder" -- job "$folder" steps/measure_capacity.py "${how[@]}" -- "$network" "$folder/capacity.tsv"
    else
      step "$folder" -- job "$folder" steps/measure_capacity.py "${resources[@]}" "${how[@]}" -- \
        "conf/systems/$generator.yaml" "$folder/capacity.tsv"
    fi
  done
fi

if in_stage 3 "time of a pseudo-speaker"; then
  for generator in $generators; do
    use_generator "$generator"
    folder=$out/time/$generator
    step "$folder" -- job "$folder" steps/time_generator.py --vectors "$vectors" "${resources[@]}" \
      "conf/systems/$generator.yaml" "$folder/time.json"
  done
fi

if in_stage 4 "tables and figure"; then
  gather=(--corpus-name "$corpus_name" --encoder "$name")
  for generator in $generators; do
    gather+=(--generator "$generator" "$out/capacity/$generator" "$out/time/$generator")
    for evaluator in $evaluators; do
      use_evaluator "$evaluator"
      for gender in $genders; do
        folder=exp/metrics/$generator/similarity.$label/OO-OP-PP/${evaluation}_$gender
        [[ ! -f $folder/.done ]] || gather+=(--similarity "$folder")
      done
    done
  done
  step "$out/results" -- job "$out/results" local/collect_generators.py "${gather[@]}" \
    "$out/threshold/threshold.json" "$out/capacity/real" "$out/results"
fi
recipe_end 4 "results: $PWD/$out/results/RESULTS.md"

#!/usr/bin/env bash
# EER and D_ECE against the number of speakers (paper 004: Fig. 9), with simulated speakers, without speech.
# It takes the corpus, the encoder and the x-vectors that run.sh makes, and makes what is missing.
#   ./large.sh                                        everything that is not up to date
#   ./large.sh --sizes "50 200 1000 3000 10000:1"     as far as Fig. 9 goes: 358,482 utterances, one population of them
#   ./large.sh --voice-encoder given:FOLDER           x-vectors that another toolkit made
# The back end of the first of --evaluators scores. What is simulated and what it cannot tell: docs/populations.md.
# Results: exp/large/<encoder>/results/RESULTS.md, large.csv and large.pdf.
set -euo pipefail

stage=0                                               # first stage to run
stop_stage=2                                          # last stage to run
generators="random average wgan idmap_mlp idmap_diff" # what is compared: conf/systems/<generator>.yaml
sizes="50 200 1000"                                   # numbers of speakers, ascending; 10000:1 has one population
populations=5                                         # simulated populations of each size
voices="two same"                                     # pseudo-speakers of a person: see docs/populations.md
leak=0                                                # part of the source speaker that protected x-vectors keep
checkpoint_seconds=60                                 # between two notes of how far a job has counted

. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
. local/recipe.sh
begin_recipe "$@"
for generator in $generators; do check_system "$generator"; done
check_words --voices "$voices" "two|same"
check_sizes "$sizes" "(:[1-9][0-9]*)?"
check_numbers --populations "$populations"
recipe_start "$command_line"

use_sets
need_data "data/$train_set" "${sets[@]/#/data/}"
read -ra sizes_given <<<"$sizes"
use_evaluator "$voice_encoder/${first##*/}"
out=exp/large/$name
find_needs

if in_stage 0 "x-vectors, back end, trained generators"; then
  make xvectors
  [[ $backend == cosine ]] || make backend
  make_generators
fi

# Populations in FOLDER, all pairs of each counted in nj parts, figures. A part that was killed goes on from its last
# checkpoint. The program is an argument so that the step knows its code.
measure() { # FOLDER BOOTSTRAP PROGRAM ARGUMENTS...
  local folder=$1 launch
  local count=("$3" count "${on_device[@]}" --checkpoint-seconds "$checkpoint_seconds" --parts "$nj" --part JOB)
  use_launcher "$3"
  "${launch[@]}" "$folder/log/populations.log" "$3" populations "${@:4}" "$folder"
  use_launcher "${count[@]}"
  "${launch[@]}" "JOB=1:$nj" "$folder/log/count.JOB.log" "${count[@]}" "$folder"/plans/*
  use_launcher "$3"
  "${launch[@]}" "$folder/log/curve.log" "$3" curve --parts "$nj" --bootstrap "$2" "$folder" "$folder/curve.tsv"
  rm -r "$folder/plans"
}

# Makes the curve of a system.
make_curve() { # NAME OPTIONS...
  step "$out/$label/$1" -- measure "$out/$label/$1" "$bootstrap" local/large.py "${@:2}" "${how[@]}"
}

how=(--backend "$scorer" --asnorm "$asnorm" --populations "$populations" --sizes "${sizes_given[@]}" --)
if in_stage 1 "EER and D_ECE by number of speakers"; then
  original=(--seed "$seed")
  for set in "${sets[@]}"; do original+=(--sources "$xvectors/$set" "data/$set"); done
  make_curve real --real "${original[@]}"
  make_curve original "${original[@]}"
  for generator in $generators; do
    use_generator "$generator"
    for word in $voices; do
      make_curve "${generator}_$word" --conf "conf/systems/$generator.yaml" --voices "$word" --leak "$leak" \
        "${resources[@]}"
    done
  done
fi

if in_stage 2 "tables and figure"; then
  gather=(--corpus-name "$corpus_name" --encoder "$name" --scorer "$backend" --leak "$leak")
  for system in real original; do gather+=(--curve "$system" "$out/$label/$system/curve.tsv"); done
  for generator in $generators; do
    for word in $voices; do gather+=(--curve "$generator" "$out/$label/${generator}_$word/curve.tsv"); done
  done
  step "$out/results" -- job "$out/results" local/large.py collect "${gather[@]}" "$out/results"
fi
recipe_end 2 "results: $PWD/$out/results/RESULTS.md"

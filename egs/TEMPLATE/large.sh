#!/usr/bin/env bash
# EER and D_ECE against the number of speakers (paper 004: Fig. 9), with simulated speakers, without speech.
# It takes the corpus, the encoder and the x-vectors that run.sh makes, and makes what is missing.
#   ./large.sh                                        everything that is not up to date
#   ./large.sh --sizes "50 200 1000 3000 10000:1"     as far as Fig. 9 goes: 358,482 utterances, one population of them
#   ./large.sh --voice-encoder given:FOLDER           x-vectors that another toolkit made
# The back end of the first of --evaluators scores. What is simulated and what it cannot tell: docs/populations.md.
# Results: exp/large/<encoder>/results/RESULTS.md, large.csv and large.pdf.
# shellcheck disable=SC2034  # local/plan_recipe.py is given the options
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
. local/stages.sh
begin_recipe large "$@"

# Populations in FOLDER, all pairs of each counted in nj parts, figures. A part that was killed goes on from its last
# checkpoint. The program is an argument so that the step knows its code.
measure() { # FOLDER BOOTSTRAP PROGRAM ARGUMENTS...
  local folder=$1 launch device_options=()
  [[ $device == cpu ]] || device_options=(--device "$device")
  local count=("$3" count "${device_options[@]}" --checkpoint-seconds "$checkpoint_seconds" --parts "$nj" --part JOB)
  use_launcher "$3"
  "${launch[@]}" "$folder/log/populations.log" "$3" populations "${@:4}" "$folder"
  use_launcher "${count[@]}"
  "${launch[@]}" "JOB=1:$nj" "$folder/log/count.JOB.log" "${count[@]}" "$folder"/plans/*
  use_launcher "$3"
  "${launch[@]}" "$folder/log/curve.log" "$3" curve --parts "$nj" --bootstrap "$2" "$folder" "$folder/curve.tsv"
  rm -r "$folder/plans"
}

if in_stage 0 "x-vectors, back end, trained generators"; then
  make encoders steps/train_encoder.py
  make xvectors steps/extract_xvectors.py steps/import_xvectors.py steps/average_xvectors.py
  make averages steps/average_xvectors.py
  make backends steps/train_backend.py
  make generators steps/train_generator.py steps/extract_frames.py
fi

if in_stage 1 "EER and D_ECE by number of speakers"; then
  make curves local/large.py
fi

if in_stage 2 "tables and figure"; then
  make results local/large.py
fi
end_recipe 2 "results: $PWD/$(first_of results)/RESULTS.md"

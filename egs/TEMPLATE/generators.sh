#!/usr/bin/env bash
# Generators of pseudo-speakers compared in embedding space (paper 004: Fig. 11, Tables II and III), without speech.
# It takes the corpus, the encoder and the x-vectors that run.sh makes, and makes what is missing.
#   ./generators.sh                                    everything that is not up to date
#   ./generators.sh --sizes "100 1000 2000000"         as far as Fig. 11 goes
#   ./generators.sh --generators "average idmap_mlp"   some generators: conf/systems/<generator>.yaml
# DeID and G_VD (of --evaluators) need speech: run.sh --systems "random average ..." before.
# Results: exp/generators/<encoder>/results/RESULTS.md, generators.csv and capacity.pdf.
# shellcheck disable=SC2034  # local/plan_recipe.py is given the options
set -euo pipefail

stage=0                                                   # first stage to run
stop_stage=4                                              # last stage to run
generators="random average psd wgan idmap_mlp idmap_diff" # what is compared: conf/systems/<generator>.yaml
sizes="100 1000 10000 100000"                             # numbers of pseudo-speakers, ascending
vectors=1000                                              # pseudo-speakers that are timed

. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
. local/stages.sh
begin_recipe generators "$@"

if in_stage 0 "x-vectors, trained generators"; then
  make encoders steps/train_encoder.py
  make xvectors steps/extract_xvectors.py steps/import_xvectors.py steps/average_xvectors.py
  make averages steps/average_xvectors.py
  make backends steps/train_backend.py
  make generators steps/train_generator.py steps/extract_frames.py
fi

if in_stage 1 "the cosine at which the encoder's error rates are equal, original speech"; then
  make scores steps/score_trials.py
  make threshold local/find_threshold.py
fi

if in_stage 2 "capacity: cosines between pseudo-speakers"; then
  make capacity steps/measure_capacity.py
fi

if in_stage 3 "time of a pseudo-speaker"; then
  make time steps/time_generator.py
fi

if in_stage 4 "voices of both genders together; tables and figure"; then
  make trials combine_data_dirs.py
  make joined steps/join_xvectors.py
  make similarity steps/score_pairs.py
  make metrics local/compute_metrics.py
  make results local/collect_generators.py
fi
end_recipe 4 "results: $PWD/$(first_of results)/RESULTS.md"

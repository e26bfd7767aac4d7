#!/usr/bin/env bash
# The identity-leakage study of NIST (paper 003): is the speaker hidden, is their pseudo-voice kept, are two profiles two
# voices? docs/studies.md. It takes corpus and encoders of run.sh, and makes what is missing.
#   ./nist.sh --systems "knnvc b2r copy"                      systems of conf/systems
#   ./nist.sh --external "theirs=/data/p1,/data/p2"           any other system: a data directory of protected audio a profile
#   ./nist.sh --evaluators "ecapa_mini/cosine resemblyzer/cosine"
# Results: exp/nist/<set>/results/RESULTS.md (beside 003's Tables 5 to 8) and metrics.csv.
# shellcheck disable=SC2034  # local/plan_recipe.py is given the options
set -euo pipefail

stage=0             # first stage to run
stop_stage=5        # last stage to run
systems="knnvc b2r" # what is studied: conf/systems/<system>.yaml; kNN-VC has pseudo-profiles, of others a profile is a draw
external=           # other systems: "<name>=<data directory of profile 1>[,<of profile 2>] ..."
profiles=8          # pseudo-profiles of a speaker
tested="1 2"        # those that are tested; cross-profile compares the first two
sources=            # data directories whose segments are studied; empty: the trial sets
same_gender=true    # compare speakers of one gender only
sessions=           # table of each segment's session: segments of one session are not compared
groups=             # table of each speaker's group, such as age: speakers of one group are compared
durations=          # table of each segment's nominal duration: segments of one are compared

. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
. local/stages.sh
begin_recipe nist "$@"

if in_stage 0 "segments, trial sets"; then
  make trials combine_data_dirs.py local/make_nist_trials.py
fi

if in_stage 1 "evaluators, x-vectors of the original segments, what the systems need"; then
  make encoders steps/train_encoder.py
  make xvectors steps/extract_xvectors.py steps/import_xvectors.py steps/average_xvectors.py
  make averages steps/average_xvectors.py
  make backends steps/train_backend.py
  make f0 steps/extract_f0.py steps/compute_f0_stats.py
  make world steps/extract_world.py
  make wavlm steps/extract_wavlm.py
  make pools steps/make_voice_pool.py
  make synthesisers steps/train_synthesiser.py
  make generators steps/train_generator.py steps/extract_frames.py
fi

if in_stage 2 "protect: the profiles tested"; then
  make commanded steps/protect_by_command.py
  make protected steps/anonymise.py
  plan_again # a system that draws nothing has one profile
  make commanded steps/protect_by_command.py
  make protected steps/anonymise.py
  make external local/check_external.py
fi

if in_stage 3 "x-vectors of the protected segments"; then
  make xvectors steps/extract_xvectors.py steps/import_xvectors.py steps/average_xvectors.py
  make joined steps/join_xvectors.py
fi

if in_stage 4 "scores and figures"; then
  make scores steps/score_trials.py
  make metrics local/compute_metrics.py
fi

if in_stage 5 "tables"; then
  make results local/collect_nist.py
fi
end_recipe 5 "results: $PWD/$(first_of results)/RESULTS.md"

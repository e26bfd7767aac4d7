#!/usr/bin/env bash
# EER and D_ECE against the number of speakers (paper 004: Fig. 9), with simulated speakers, without speech.
# It takes the corpus, the encoder and the x-vectors that run.sh makes, and makes what is missing.
#   ./large.sh                                        everything that is not up to date
#   ./large.sh --sizes "50 200 1000 3000 10000:1"     as far as Fig. 9 goes: 358,482 utterances, one population of them
#   ./large.sh --voice-encoder given:FOLDER           x-vectors that another toolkit made
# The back end of the first of --evaluators scores. What is simulated and what it cannot tell: docs/populations.md.
# Results: exp/large/<encoder>/results/RESULTS.md, large.csv and large.pdf.
# shellcheck disable=SC2034  # local/run_recipe.py is given the options
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
begin_recipe large "$@"

if in_stage 0 "x-vectors, back end, trained generators"; then
  each encoders 'steps/train_encoder.py --seed {seed} --device {device} {start} {unseen} {conf} {data} {out}'
  each xvectors 'steps/extract_xvectors.py {options} {encoder} {data} {out}' \
    'steps/average_xvectors.py {out} {data} {out}'
  each given_xvectors 'steps/import_xvectors.py {given} {data} {out}' 'steps/average_xvectors.py {out} {data} {out}'
  each session_xvectors 'steps/extract_xvectors.py {options} {encoder} {data} {out}'
  each averages 'steps/average_xvectors.py {xvectors} {data} {out}'
  each backends 'steps/train_backend.py --lda-dim {lda_dim} {unseen} {xvectors} {data} {out}'
  each generators 'steps/train_generator.py --seed {seed} {options} {conf} {xvectors} {data} {out}'
  each frames 'steps/extract_frames.py {options} {encoder} {data} {out}'
fi

# A command with JOB is run nj times, with JOB as the number. A part that was killed goes on from its last checkpoint.
if in_stage 1 "EER and D_ECE by number of speakers"; then
  each curves 'local/large.py populations {options} {out}' \
    'local/large.py count {device} --checkpoint-seconds {checkpoint_seconds} --parts {nj} --part JOB {out}/plans/*' \
    'local/large.py curve --parts {nj} --bootstrap {bootstrap} {out} {out}/curve.tsv' \
    'rm -r {out}/plans'
fi

if in_stage 2 "tables and figure"; then
  each results 'local/large.py collect --corpus-name {corpus_name} {options} --leak {leak} {out}'
fi
end_recipe 2 "results: {results}/RESULTS.md"

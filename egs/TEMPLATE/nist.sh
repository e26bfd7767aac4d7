#!/usr/bin/env bash
# The identity-leakage study of NIST (paper 003): is the speaker hidden, is their pseudo-voice kept, are two profiles two
# voices? docs/studies.md. It takes corpus and encoders of run.sh, and makes what is missing.
#   ./nist.sh --systems "knnvc b2r copy"                      systems of conf/systems
#   ./nist.sh --external "theirs=/data/p1,/data/p2"           any other system: a data directory of protected audio a profile
#   ./nist.sh --evaluators "ecapa_mini/cosine resemblyzer/cosine"
# Results: exp/nist/<set>/results/RESULTS.md (beside 003's Tables 5 to 8) and metrics.csv.
# shellcheck disable=SC2034  # local/run_recipe.py is given the options
set -euo pipefail
cd -- "$(dirname -- "$0")"

stage=0             # first stage to run
stop_stage=5        # last stage to run
systems="knnvc b2r" # what is studied: conf/systems/<system>.yaml; kNN-VC has pseudo-profiles, of others a profile is a draw
external=           # other systems: "<name>=<data directory of profile 1>[,<of profile 2>] ..."
profiles=8          # pseudo-profiles of a speaker
tested="1 2"        # those tested; cross-profile compares the first two
sources=            # data directories whose segments are studied; empty: the trial sets
same_gender=true    # compare speakers of one gender only
sessions=           # table of each segment's session: segments of one session are not compared
durations=          # table of each segment's nominal duration: segments of one are compared

. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
begin_recipe nist "$@"

label='local/label_figures.py {labels} {out}' # says what figures speak of

if in_stage 0 "segments, trial sets"; then
  each segments 'utils/combine_data_dirs.py {out} {sources}'
  each trials 'local/make_nist.py trials {options} {data} {out}'
fi

if in_stage 1 "evaluators, x-vectors of the original segments, what the systems need"; then
  each encoders 'steps/train_encoder.py --seed {seed} --device {device} {start} {unseen} {conf} {data} {out}'
  each xvectors 'steps/extract_xvectors.py {options} {encoder} {data} {out}' \
    'steps/average_xvectors.py {out} {data} {out}'
  each given_xvectors 'steps/import_xvectors.py {given} {data} {out}' 'steps/average_xvectors.py {out} {data} {out}'
  each session_xvectors 'steps/extract_xvectors.py {options} {encoder} {data} {out}'
  each averages 'steps/average_xvectors.py {xvectors} {data} {out}'
  each backends 'steps/train_backend.py --lda-dim {lda_dim} {options} {unseen} {xvectors} {data} {out}'
  each f0 'steps/extract_f0.py {data} {out}' 'steps/compute_f0_stats.py {out} {data} {out}'
  each world 'steps/extract_world.py {data} {out}'
  each pools 'steps/make_voice_pool.py {options} {unseen} {world} {data} {speakers} {out}'
  each synthesisers 'steps/train_synthesiser.py --seed {seed} --device {device} {unseen} {conf} {data} {pool} {out}'
  each generators 'steps/train_generator.py --seed {seed} {options} {conf} {xvectors} {data} {out}'
fi

if in_stage 2 "protect: the profiles tested, and their x-vectors"; then
  each commanded 'steps/protect_by_command.py --dataset {set} --seed {seed} --draw {draw} {conf} {data} {out}'
  each protected 'steps/anonymise.py --dataset {set} --seed {seed} {options} {conf} {data} {out} {wav}'
  each external 'local/check_external.py {data} {folder} {out}'
  plan_again # a system that draws nothing has one profile
fi

if in_stage 3 "x-vectors of two profiles together"; then
  each joined 'steps/join_xvectors.py {out} {parts}'
fi

if in_stage 4 "scores and figures"; then
  each scores 'steps/score_trials.py --backend {backend} --asnorm {asnorm} {enrol} {trial} {trials} {out}/scores'
  each metrics 'local/compute_metrics.py {kind} --utt2spk {utt2spk} --bootstrap {bootstrap} --seed {seed} {lists}
    {out}/metrics.json' "$label"
fi

if in_stage 5 "tables"; then
  each results 'local/collect_study.py nist --corpus-name {corpus_name} {figures} {out}'
fi
end_recipe 5 "results: {results}/RESULTS.md" "{results}/paper.txt"

#!/usr/bin/env bash
# Generators of pseudo-speakers compared in embedding space (paper 004: Fig. 11, Tables II and III), without speech.
# It takes the corpus, the encoder and the x-vectors that run.sh makes, and makes what is missing.
#   ./generators.sh                                    everything that is not up to date
#   ./generators.sh --sizes "100 1000 2000000"         as far as Fig. 11 goes
#   ./generators.sh --generators "average idmap_mlp"   some generators: conf/systems/<generator>.yaml
# DeID and G_VD (of --evaluators) need speech: run.sh --systems "random average ..." before.
# Results: exp/generators/<encoder>/results/RESULTS.md, generators.csv and capacity.pdf.
# shellcheck disable=SC2034  # local/run_recipe.py is given the options
set -euo pipefail
cd -- "$(dirname -- "$0")"

stage=0                                                   # first stage to run
stop_stage=4                                              # last stage to run
generators="random average psd wgan idmap_mlp idmap_diff" # what is compared: conf/systems/<generator>.yaml
sizes="100 1000 10000 100000"                             # numbers of pseudo-speakers, ascending
vectors=1000                                              # pseudo-speakers that are timed

. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
begin_recipe generators "$@"

label='local/label_figures.py {labels} {out}' # says what figures speak of

if in_stage 0 "x-vectors, trained generators"; then
  each encoders 'steps/train_encoder.py --seed {seed} --device {device} {start} {unseen} {conf} {data} {out}'
  each xvectors 'steps/extract_xvectors.py {options} {encoder} {data} {out}' \
    'steps/average_xvectors.py {out} {data} {out}'
  each given_xvectors 'steps/import_xvectors.py {given} {data} {out}' 'steps/average_xvectors.py {out} {data} {out}'
  each session_xvectors 'steps/extract_xvectors.py {options} {encoder} {data} {out}'
  each averages 'steps/average_xvectors.py {xvectors} {data} {out}'
  each backends 'steps/train_backend.py --lda-dim {lda_dim} {unseen} {xvectors} {data} {out}'
  each generators 'steps/train_generator.py --seed {seed} {options} {conf} {xvectors} {data} {out}'
fi

if in_stage 1 "the cosine at which the encoder's error rates are equal, original speech"; then
  each scores 'steps/score_trials.py --backend cosine_raw --asnorm 0 {enrol} {trial} {trials} {out}/scores'
  each threshold 'local/compute_metrics.py threshold {lists} {out}/threshold.json'
fi

if in_stage 2 "capacity: cosines between pseudo-speakers"; then
  each capacity 'steps/measure_capacity.py {options} {of} {out}/capacity.tsv'
fi

if in_stage 3 "time of a pseudo-speaker"; then
  each time 'steps/time_generator.py --vectors {vectors} {options} {conf} {out}/time.json'
fi

if in_stage 4 "voices of both genders together; tables and figure"; then
  each segments 'utils/combine_data_dirs.py {out} {sources}'
  each joined 'steps/join_xvectors.py {out} {parts}'
  each similarity 'steps/score_pairs.py --backend {backend} --asnorm {asnorm} --utt2spk {utt2spk} {rows} {columns}
    {out}/trials {out}/scores'
  each metrics 'local/compute_metrics.py {kind} --utt2spk {utt2spk} --bootstrap {bootstrap} --seed {seed} {lists}
    {out}/metrics.json' "$label"
  each results 'local/collect_study.py generators --corpus-name {corpus_name} {options} {threshold} {real} {out}'
fi
end_recipe 4 "results: {results}/RESULTS.md" "{results}/paper.txt"

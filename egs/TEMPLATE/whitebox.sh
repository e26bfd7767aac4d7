#!/usr/bin/env bash
# The white-box study (paper 001): everybody speaks with one constant voice, and the attacker knows which. docs/studies.md.
# It takes corpus and encoders of run.sh, and makes what is missing. Targets are clusters of x-vectors of the voice encoder.
#   ./whitebox.sh                                        40 targets, with and without their pitch; for a look: --targets 3 --base bn_const
#   ./whitebox.sh --how "backend scratch" --device cuda  also the encoder trained anew for each target
# Results (of const): exp/whitebox/<evaluation>_<targets>/results/RESULTS.md (beside 001's); radars: .../report/report.html.
# shellcheck disable=SC2034  # local/run_recipe.py is given the options
set -euo pipefail

stage=0              # first stage to run
stop_stage=7         # last stage to run
targets=40           # target voices: half of them (rounded up) women, the others men
base=const           # who speaks: const (frames of real voices of the pool, by WORLD) or bn_const (pseudo-speakers of models/bn)
f0="none linear"     # pitch of protected speech: none (as it was), linear (moved to the target's)
how="backend"        # what the attacker trains on speech of the target: backend, finetuned, scratch
bins=50              # number of bins of a speaker's own linkability (001's code)
prosody=true         # pitch, length and level of protected speech beside the original, by target
asr=                 # as run.sh has it: who recognises words, by target; empty: not measured
asr_language=        # as run.sh has it
asr_spelling=english # as run.sh has it
. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
begin_recipe whitebox "$@"

if in_stage 0 "evaluators, x-vectors of the original speech, pool of voices"; then
  each encoders 'steps/train_encoder.py --seed {seed} --device {device} {start} {unseen} {conf} {data} {out}'
  each xvectors 'steps/extract_xvectors.py {options} {encoder} {data} {out}' \
    'steps/average_xvectors.py {out} {data} {out}'
  each given_xvectors 'steps/import_xvectors.py {given} {data} {out}' 'steps/average_xvectors.py {out} {data} {out}'
  each session_xvectors 'steps/extract_xvectors.py {options} {encoder} {data} {out}'
  each averages 'steps/average_xvectors.py {xvectors} {data} {out}'
  each backends 'steps/train_backend.py --lda-dim {lda_dim} {unseen} {xvectors} {data} {out}'
  each f0 'steps/extract_f0.py {data} {out}' 'steps/compute_f0_stats.py {out} {data} {out}'
  each world 'steps/extract_world.py {data} {out}'
  each pools 'steps/make_voice_pool.py {options} {unseen} {world} {data} {speakers} {out}'
  each synthesisers 'steps/train_synthesiser.py --seed {seed} --device {device} {unseen} {conf} {data} {pool} {out}'
  each generators 'steps/train_generator.py --seed {seed} {options} {conf} {xvectors} {data} {out}'
fi

if in_stage 1 "protect the evaluation sets and the attacker's training set, by target"; then
  each protected 'steps/anonymise.py --dataset {set} --seed {seed} {options} {conf} {data} {out} {wav}'
fi

if in_stage 2 "evaluators trained on each target: encoders"; then
  again encoders
fi

if in_stage 3 "x-vectors of the protected speech, by target"; then
  again xvectors session_xvectors
fi

if in_stage 4 "evaluators trained on each target: back ends"; then
  again backends
fi

if in_stage 5 "scores and figures, by target"; then
  each scores 'steps/score_trials.py --backend {backend} --asnorm {asnorm} {enrol} {trial} {trials} {out}/scores' \
    'local/record_attack.py --attacker {attacker} --enrol {enrol_data} --trial {trial_data} {learnt}
      --encoder {encoder} --backend {backend} --asnorm {asnorm} {out}/attacker.json'
  each metrics 'local/compute_metrics.py verification --utt2spk {utt2spk} --bootstrap {bootstrap} --seed {seed}
    --bins {bins} {trials} {scores} {out}/metrics.json'
fi

if in_stage 6 "utility, by target"; then
  each contours 'steps/extract_contours.py {data} {out}'
  each prosody 'steps/compare_prosody.py --contours {contours} {data} {protected} {out}'
  each prosody_figures 'local/compute_utility.py prosody --utt2spk {utt2spk} --bootstrap {bootstrap} --seed {seed} {prosody}
    {out}/metrics.json'
  each decoded 'steps/decode.py {options} {recogniser} {data} {out}'
  each word_figures 'local/compute_utility.py words --spelling {asr_spelling} --bootstrap {bootstrap} --seed {seed} {lists}
    {out}/metrics.json'
fi

if in_stage 7 "tables, and the radars over targets"; then
  plan_again # of words that were recognised
  each results 'local/collect_results.py --corpus-name {corpus_name} --clips 0 {options} {figures} {out}' \
    'local/collect_study.py whitebox {targets} {out}'
  each report 'local/make_report.py {results} {out}'
fi
end_recipe 7 "results: {results}/RESULTS.md; radars: {report}/report.html"

#!/usr/bin/env bash
# The white-box study (paper 001): everybody speaks with one constant voice, and the attacker knows which. docs/studies.md.
# It takes corpus and encoders of run.sh, and makes what is missing. Targets are clusters of x-vectors of the voice encoder.
#   ./whitebox.sh                                        40 targets, with and without their pitch; for a look: --targets 3 --base bn_const
#   ./whitebox.sh --how "backend scratch" --device cuda  the encoder trained anew for each target, too
# Results (of const): exp/whitebox/<evaluation>_<targets>/results/RESULTS.md (beside 001's); radars: .../report/report.html.
# shellcheck disable=SC2034  # local/plan_recipe.py is given the options
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
asr_lang=general     # as run.sh has it
asr_language=        # as run.sh has it
asr_model=ctc_mini   # as run.sh has it
asr_spelling=english # as run.sh has it
. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
. local/stages.sh
begin_recipe whitebox "$@"

if in_stage 0 "evaluators, x-vectors of the original speech, pool of voices"; then
  make encoders steps/train_encoder.py
  make xvectors steps/extract_xvectors.py steps/import_xvectors.py steps/average_xvectors.py
  make averages steps/average_xvectors.py
  make backends steps/train_backend.py
  make f0 steps/extract_f0.py steps/compute_f0_stats.py
  make world steps/extract_world.py
  make pools steps/make_voice_pool.py
  make synthesisers steps/train_synthesiser.py
  make generators steps/train_generator.py steps/extract_frames.py
fi

# Targets go side by side, nj at a time; only where they are fewer, the parts of one do, too.
n_targets=$((targets * $(wc -w <<<"$f0")))
parts_each=$(((nj + n_targets - 1) / n_targets))
if in_stage 1 "protect the evaluation sets and the attacker's training set, by target"; then
  make_along protected steps/anonymise.py
fi

if in_stage 2 "evaluators trained on each target: encoders"; then
  make_along encoders steps/train_encoder.py
fi

if in_stage 3 "x-vectors of the protected speech, by target"; then
  make_along xvectors steps/extract_xvectors.py steps/import_xvectors.py steps/average_xvectors.py
fi

if in_stage 4 "evaluators trained on each target: back ends"; then
  make_along backends steps/train_backend.py
fi

if in_stage 5 "scores and figures, by target"; then
  make_along scores steps/score_trials.py local/record_attack.py
  make_along metrics local/compute_metrics.py
fi

if in_stage 6 "utility, by target"; then
  parts_each=
  make prosody steps/compare_prosody.py
  make lang steps/make_lang.py
  make_along recognisers steps/train_recogniser.py
  make decoded steps/decode.py
  make metrics local/compute_prosody.py local/compute_wer.py
fi

if in_stage 7 "tables, and the radars over targets"; then
  plan_again # of words that were recognised
  make results local/collect_results.py local/collect_whitebox.py
  make report local/make_report.py
fi
end_recipe 7 "results: $PWD/$(first_of results)/RESULTS.md; radars: $PWD/$(first_of report)/report.html"

#!/usr/bin/env bash
# The one recipe: protect a speech corpus with several systems, attack each, measure what was left.
# A corpus differs by its prepare.sh and conf/ only (egs/README.md). Call it in egs/<corpus>:
#   ./run.sh                              everything that is not up to date
#   ./run.sh --stage 5 --stop-stage 9     some stages; --dry-run names them
#   ./run.sh --systems "b2 b2r" --dry-run what would be done, and why
# Results: exp/results/metrics.csv (one figure a row), exp/report/report.html and RESULTS.md.
# shellcheck disable=SC2034  # local/run_recipe.py is given the options
set -euo pipefail
cd -- "$(dirname -- "$0")" # paths are seen from egs/<corpus>, wherever this was called

## What runs
stage=0        # first stage to run
stop_stage=11  # last stage to run
corpus=        # folder of the corpus, where it needs one (egs/<corpus>/README.md)
download=false # fetch the corpus first, where its prepare.sh can
protocol=      # a challenge whose attackers and evaluators are taken: conf/protocols/<protocol>.yaml (docs/protocols.md)
## What protects
systems="b2 b2r bn_map" # what protects: conf/systems/<system>.yaml
external=               # speech that something else protected: "<name>=<folder>[,<folder of a second draw>][,train=<folder>] ..." (docs/your_own_system.md)
external_command=       # a program that protects: "<name>=<program> ... {in} ... {out} ... [{seed}]"
## Who attacks
attackers="ignorant aligned lazy_informed" # of: ignorant aligned lazy_informed semi_informed semi_informed_finetuned semi_informed_backend white_box white_box_finetuned white_box_backend (docs/attackers.md)
controls=false                             # also attack what every attacker must see through, or cannot: copy, bn_perm, bn_leak_*, reading (docs/attackers.md)
draws=1                                    # how often trials are protected, each time by another draw; ignorant and lazy_informed attackers hear all, and intervals cover people and draws
attacker_train=                            # what informed attackers protect and learn from: sets of data/ and paths such as ../speechocean/data/train, joined; empty: train_set (docs/informed.md)
distractors=                               # sets of data/ whose people are candidates only: legal linkability and naming among ever more people (docs/metrics/named.md)
informed_level=utt                         # level at which semi-informed attackers protect their training set: utt, spk or same (as the system)
informed_draws=4                           # how often, with other draws, attackers who train protect their training set; once where a draw changes nothing
prepare_options=                           # further options of prepare.sh
## What is left of the speech
prosody=false        # stage 10 compares pitch, length and level of protected speech with the original (docs/utility.md)
quality=false        # stage 10 estimates mean opinion scores of a sample of the trials, original and protected (docs/utility.md)
asr=                 # who recognises words: moonshine (English), moonshine:<folder>, whisper (99 languages), whisper:<folder>, pocketsphinx, hub:<model>; empty: not measured; needs text (docs/words.md)
asr_spelling=english # how words are spelt before they are compared: english, english_digits (each digit a word), plain for any language, or vpc2024 and vpc2026 as these challenges (docs/metrics/wer.md)
asr_language=        # language of the speech, for Whisper: en, de, ...; empty: it guesses
emotion=             # who recognises emotions: functionals, hub:<model>; empty: not measured; needs utt2emotion (docs/utility.md)
## The report
report_audio=true # the report holds short clips of the worst-protected speakers; false: nobody can be heard
drop=             # figures of finished runs that the report shall no longer show: names of systems, attackers, evaluators, recognisers, genders, prosody, quality, trainings, or all

. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
begin_recipe run "$@"

# `each TABLE 'COMMAND'...` runs the commands for each row of a table of the plan (local/plan/): {column} stands for what the
# row has there, or for an option. A step belongs to the stage of its table, or to a later one that makes what it reads: an
# encoder of informed attackers is trained in stage 6. Steps wait only for what their commands name (docs/recipe.md).

label='local/label_figures.py {labels} {out}' # says what figures speak of

if in_stage 0 "prepare the corpus"; then
  each prepare './prepare.sh --nj {nj} --download {download} --seed {seed} {options}'
  plan_again # now it is known which sets there are
fi

if in_stage 1 "audio: every file opened, rates and durations"; then
  each joined_sets 'utils/combine_data_dirs.py {out} {sources}' # of --attacker-train
  each audio 'utils/check_audio.py {data} {out}' 'utils/validate_data_dir.py --no-audio {data}'
fi

if in_stage 2 "evaluators: train speaker encoders"; then
  each encoders 'steps/train_encoder.py --seed {seed} --device {device} {start} {unseen} {conf} {data} {out}'
fi

if in_stage 3 "x-vectors of the original speech, back ends"; then
  each xvectors 'steps/extract_xvectors.py {options} {encoder} {data} {out}' \
    'steps/average_xvectors.py {out} {data} {out}'
  each given_xvectors 'steps/import_xvectors.py {given} {data} {out}' 'steps/average_xvectors.py {out} {data} {out}'
  each session_xvectors 'steps/extract_xvectors.py {options} {encoder} {data} {out}'
  each heard 'steps/decode.py {options} {recogniser} {data} {out}' # for channels (docs/channels.md)
  each channels 'steps/extract_channel.py {options} {channel} {source} {data} {out}' \
    'steps/average_xvectors.py {out} {data} {out}'
  each tfidf 'steps/train_backend.py --idf {unseen} {xvectors} {data} {out}'
  each backends 'steps/train_backend.py --lda-dim {lda_dim} {options} {unseen} {xvectors} {data} {out}'
fi

if in_stage 4 "what the systems need: pitch, voices, and what is trained"; then
  each f0 'steps/extract_f0.py {data} {out}' 'steps/compute_f0_stats.py {out} {data} {out}'
  each averages 'steps/average_xvectors.py {xvectors} {data} {out}'
  each world 'steps/extract_world.py {data} {out}'
  each pools 'steps/make_voice_pool.py {options} {unseen} {world} {data} {speakers} {out}'
  each synthesisers 'steps/train_synthesiser.py --seed {seed} --device {device} {unseen} {conf} {data} {pool} {out}'
  each generators 'steps/train_generator.py --seed {seed} {options} {conf} {xvectors} {data} {out}'
fi

if in_stage 5 "anonymise the evaluation sets, and their x-vectors"; then
  each commanded 'steps/protect_by_command.py --dataset {set} --seed {seed} --draw {draw} {conf} {data} {out}'
  each protected 'steps/anonymise.py --dataset {set} --seed {seed} {options} {conf} {data} {out} {wav}'
  plan_again # now it is known which systems draw something
fi

if in_stage 6 "informed attackers: protect what they learn from, and train evaluators on it"; then
  each others 'steps/anonymise.py --dataset {set} --seed {seed} {options} {conf} {data} {out} {wav}' # sets not evaluated
  each joined 'steps/join_draws.py {out} {draws}'
  each heads 'steps/train_head.py --seed {seed} {unseen} {xvectors} {data} {out}' # on encoders that come trained
  each head_xvectors 'steps/apply_head.py {head} {xvectors} {out}' 'steps/average_xvectors.py {out} {data} {out}'
  each held_out 'steps/score_held_out.py --seed {seed} --lda-dim {lda_dim} --kind {kind} {options} {xvectors} {data} {out}'
fi

if in_stage 7 "all pairs of segments, for voice similarity; alignment"; then
  each similarity 'steps/score_pairs.py --backend {backend} --asnorm {asnorm} --utt2spk {utt2spk} {rows} {columns}
    {out}/trials {out}/scores'
  each aligned 'local/align_xvectors.py --space {space} --pairs {enrol} {protected} {enrol_data}
    {enrol} {enrol_data} {trials} {trials_data} {out}'
fi

if in_stage 8 "scores of enrolment-trial lists"; then
  each scores 'steps/score_trials.py --backend {backend} --asnorm {asnorm} {enrolled} {enrol} {trial} {trials} {out}/scores' \
    'local/record_attack.py --attacker {attacker} --enrol {enrol_data} --trial {trial_data} {learnt}
      --encoder {encoder} --backend {backend} --asnorm {asnorm} {out}/attacker.json'
  each fused 'local/fuse_scores.py {options} {trials} {out} {scores}' \
    'local/record_attack.py --attacker {attacker} --enrol {enrol_data} --trial {trial_data} {learnt}
      --encoder fused --backend {parts} {out}/attacker.json'
fi

if in_stage 9 "privacy metrics"; then
  each metrics 'local/compute_metrics.py {kind} --utt2spk {utt2spk} --bootstrap {bootstrap} --seed {seed} {lists}
    {out}/metrics.json' "$label"
  each calibration 'local/compute_metrics.py calibration --utt2spk {utt2spk} {lists} {out}/metrics.json' "$label"
  each inference 'local/measure_people.py inference --bootstrap {bootstrap} --seed {seed} {lists} {xvectors} {data}
    {out}/metrics.json' "$label" # sex and age
  each crowd 'local/measure_people.py crowd --bootstrap {bootstrap} --seed {seed} {lists} {enrol} {enrol_data}
    {out}/metrics.json' "$label"
  each groups 'local/measure_people.py groups --bootstrap {bootstrap} --seed {seed} {lists} {out}/metrics.json' "$label"
  each legal 'local/compute_metrics.py legal --utt2spk-enrol {enrol_utt2spk} --utt2spk-trial {trial_utt2spk}
    --bootstrap {bootstrap} --seed {seed} {enrol} {trial} {out}/metrics.json' "$label"
  each copied 'mkdir -p {out}' 'cp {figures} {out}/metrics.json' "$label" # of x-vectors, for another back end
fi

if in_stage 10 "utility"; then
  each contours 'steps/extract_contours.py {data} {out}'
  each prosody 'steps/compare_prosody.py --contours {contours} {data} {protected} {out}'
  each prosody_figures 'local/compute_utility.py prosody --utt2spk {utt2spk} --bootstrap {bootstrap} --seed {seed} {prosody}
    {out}/metrics.json' "$label"
  each quality_samples 'utils/subset_data_dir.py --per-spk {quality_utterances} --seed {seed} {data} {out}'
  each quality 'steps/estimate_quality.py {data} {protected} {out}'
  each quality_figures 'local/compute_utility.py quality {original} --bootstrap {bootstrap} --seed {seed} {lists} {out}/metrics.json' "$label"
  each functionals 'steps/extract_functionals.py {data} {out}'
  each emotions 'steps/recognise_emotion.py {options} {recogniser} {data} {out}'
  each emotion_figures 'local/compute_utility.py emotions --bootstrap {bootstrap} --seed {seed} {lists} {out}/metrics.json' "$label"
  each decoded 'steps/decode.py {options} {recogniser} {data} {out}'
  each word_figures 'local/compute_utility.py words --spelling {asr_spelling} --bootstrap {bootstrap} --seed {seed} {lists}
    {out}/metrics.json' "$label"
fi

if in_stage 11 "results and report"; then
  each results 'local/collect_results.py --corpus-name {corpus_name} --corpus-note={corpus_note} {options} {figures} {out}'
  each report 'local/make_report.py {results} {out}'
fi
end_recipe 11 "report: {report}/report.html (tables: {report}/RESULTS.md)" "{report}/verdicts.txt"

#!/usr/bin/env bash
# The one recipe: protect a speech corpus with several systems, attack each, and measure what was left.
# A corpus differs by its prepare.sh and conf/ only (egs/README.md). Run it in egs/<corpus>:
#   ./run.sh                              everything that is not up to date
#   ./run.sh --stage 5 --stop-stage 9     some stages; --list-stages names them
#   ./run.sh --systems "b2 b2r" --dry-run what would be done, and why
# Results: exp/results/metrics.csv (one figure a row), exp/report/report.html and RESULTS.md.
# shellcheck disable=SC2034  # local/plan_recipe.py is given the options
set -euo pipefail

stage=0                                    # first stage to run
stop_stage=11                              # last stage to run
corpus=                                    # folder of the corpus, where it needs one (egs/<corpus>/README.md)
download=false                             # fetch the corpus first, where its prepare.sh can
protocol=                                  # a challenge whose attackers and evaluators are taken: conf/protocols/<protocol>.yaml (docs/protocols.md)
systems="b2 b2r"                           # what protects: conf/systems/<system>.yaml
external=                                  # speech that something else protected: "<name>=<folder>[,<folder of a second draw>][,train=<folder>] ..." (docs/your_own_system.md)
external_command=                          # a program that protects: "<name>=<program> ... {in} ... {out} ... [{seed}]"
attackers="ignorant aligned lazy_informed" # of: ignorant aligned lazy_informed semi_informed semi_informed_finetuned semi_informed_backend white_box white_box_finetuned white_box_backend (docs/attackers.md)
informed_level=utt                         # level at which semi-informed attackers protect their training set: utt, spk or same (as the system)
prepare_options=                           # further options of prepare.sh
also_prepared=                             # sets that prepare.sh makes for other evaluations
prosody=false                              # stage 10 compares pitch, length and level of protected speech with the original (docs/utility.md)
quality=false                              # stage 10 estimates mean opinion scores of a sample of the trials, original and protected (docs/utility.md)
quality_utterances=4                       # utterances of each speaker in that sample, at most
asr=                                       # who recognises words: moonshine (English), moonshine:<folder>, pocketsphinx, ctc, ctc_retrained, hub:<model>; empty: not measured; needs text (docs/words.md)
asr_spelling=english                       # how words are spelt before they are compared: english, english_digits (each digit a word), or plain for any language (docs/metrics/wer.md)
asr_lang=general                           # what pocketsphinx and ctc are told of the language: general, trigram (of data/train), <file>.jsgf, or a folder with lexicon.dict and lm.arpa
asr_language=                              # language that Whisper of the hub is told: en, de, ...; empty: it guesses
asr_model=ctc_mini                         # settings of ctc and ctc_retrained: conf/asr/<name>.yaml
emotion=                                   # who recognises emotions: functionals, functionals_retrained, hub:<model>; empty: not measured; needs utt2emotion (docs/utility.md)
report_audio=true                          # the report holds short clips of the worst-protected speakers; false: nobody can be heard
report_pdf=false                           # the report's pictures as PDF, too, for papers: figures/*.pdf; drawing then takes twice as long
drop=                                      # figures of finished runs that the report shall no longer show: names of systems, attackers, evaluators, recognisers, genders, prosody, quality, or all

. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
. local/stages.sh
begin_recipe run "$@"

if in_stage 0 "prepare the corpus"; then
  make prepare ./prepare.sh
  plan_again # now it is known which sets there are
fi

if in_stage 1 "audio: every file opened, rates and durations"; then
  make audio utils/check_audio.py
fi

if in_stage 2 "evaluators: train speaker encoders"; then
  make encoders steps/train_encoder.py
fi

if in_stage 3 "x-vectors of the original speech, back ends"; then
  make xvectors steps/extract_xvectors.py steps/import_xvectors.py steps/average_xvectors.py
  make backends steps/train_backend.py
fi

if in_stage 4 "what the systems need: pitch, voices, and what is trained"; then
  make encoders steps/train_encoder.py # of --voice-encoder
  make f0 steps/extract_f0.py steps/compute_f0_stats.py
  make xvectors steps/extract_xvectors.py steps/import_xvectors.py steps/average_xvectors.py
  make averages steps/average_xvectors.py
  make backends steps/train_backend.py
  make world steps/extract_world.py
  make wavlm steps/extract_wavlm.py
  make pools steps/make_voice_pool.py
  make synthesisers steps/train_synthesiser.py
  make generators steps/train_generator.py steps/extract_frames.py
fi

if in_stage 5 "anonymise the evaluation sets"; then
  make commanded steps/protect_by_command.py
  make protected steps/anonymise.py
  plan_again # now it is known which systems draw something
  make commanded steps/protect_by_command.py
  make drawn_again steps/anonymise.py
fi

if in_stage 6 "informed attackers: train evaluators on protected speech"; then
  make f0 steps/extract_f0.py steps/compute_f0_stats.py
  make xvectors steps/extract_xvectors.py steps/import_xvectors.py steps/average_xvectors.py
  make averages steps/average_xvectors.py
  make commanded steps/protect_by_command.py
  make protected steps/anonymise.py
  make_along encoders steps/train_encoder.py
  make informed_xvectors steps/extract_xvectors.py steps/import_xvectors.py steps/average_xvectors.py
  make backends steps/train_backend.py
fi

if in_stage 7 "x-vectors of the protected speech"; then
  make xvectors steps/extract_xvectors.py steps/import_xvectors.py steps/average_xvectors.py
fi

if in_stage 8 "scores: enrolment-trial lists, and all pairs of segments"; then
  make_along aligned local/align_xvectors.py
  make_along scores steps/score_trials.py local/record_attack.py
  make_along similarity steps/score_pairs.py
fi

if in_stage 9 "privacy metrics"; then
  plan_again # two runs of a system may be the same
  make_along metrics local/compute_metrics.py local/compute_reidentification.py local/compute_legal_metrics.py
fi

if in_stage 10 "utility"; then
  make prosody steps/compare_prosody.py
  make quality_samples utils/subset_data_dir.py
  make quality steps/estimate_quality.py
  make f0 steps/extract_f0.py steps/compute_f0_stats.py # and what protects the speech that recognisers learn from
  make xvectors steps/extract_xvectors.py steps/import_xvectors.py steps/average_xvectors.py
  make averages steps/average_xvectors.py
  make commanded steps/protect_by_command.py
  make protected steps/anonymise.py
  make functionals steps/extract_functionals.py
  make emotions steps/recognise_emotion.py
  make lang steps/make_lang.py
  make_along recognisers steps/train_recogniser.py
  make decoded steps/decode.py
  make metrics local/compute_prosody.py local/compute_quality.py local/compute_uar.py local/compute_wer.py
fi

if in_stage 11 "results and report"; then
  plan_again # of figures that are there
  make results local/collect_results.py
  make report local/make_report.py
fi
end_recipe 11 "report: $PWD/exp/report/report.html (tables: exp/report/RESULTS.md)"

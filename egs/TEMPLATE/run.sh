#!/usr/bin/env bash
# The one recipe: protect a speech corpus with several systems, attack each, and measure what was left.
# A corpus differs by its prepare.sh and conf/ only (egs/README.md). Run it in egs/<corpus>:
#   ./run.sh                              everything that is not up to date
#   ./run.sh --stage 5 --stop-stage 9     some stages; --list-stages names them
#   ./run.sh --systems "b2 b2r" --dry-run what would be done, and why
# Results: exp/results/metrics.csv (one figure a row), exp/report/report.html and RESULTS.md.
set -euo pipefail

stage=0                                    # first stage to run
stop_stage=11                              # last stage to run
corpus=                                    # folder of the corpus, where it needs one (egs/<corpus>/README.md)
download=false                             # fetch the corpus first, where its prepare.sh can
systems="b2 b2r"                           # what protects: conf/systems/<system>.yaml
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
asr_model=ctc_mini                         # settings of ctc and ctc_retrained: conf/asr/<name>.yaml
emotion=                                   # who recognises emotions: functionals, functionals_retrained, hub:<model>; empty: not measured; needs utt2emotion (docs/utility.md)
report_audio=true                          # the report holds short clips of the worst-protected speakers; false: nobody can be heard

. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
. local/recipe.sh
. local/attackers.sh
. local/prosody.sh
. local/quality.sh
. local/emotion.sh
. local/timing.sh
. local/asr.sh
begin_recipe "$@"
use_sets

# What is compared, and the sets that it takes: `-` for the original, else the system that protected it.
parts=()
for evaluator in $evaluators; do
  for gender in $genders; do parts+=("$evaluator $gender"); done
done
pairs=("original OO - -") # system condition rows columns
for system in $systems; do
  check_system "$system"
  pairs+=("$system OP - $system" "$system PP $system $system")
done

check_asr
for word in $emotion; do use_emotion "$word"; done

$list_stages || make_plan # of attacks
recipe_start "$command_line"

if in_stage 0 "prepare the corpus"; then
  use_remembered
  read -ra options <<<"$prepare_options"
  [[ -z $corpus ]] || options=(--corpus "$corpus" "${options[@]}")
  also=()
  for set in "${sets[@]}" $also_prepared; do
    [[ " ${also[*]} " == *" data/$set "* ]] || also+=(--also "data/$set")
  done
  for set in "${evaluation}_trials_"{f,m}; do # of a gender that is not asked for, too
    [[ " ${also[*]} " == *" data/$set "* ]] || also+=(--maybe "data/$set")
  done
  step "data/$train_set" "${also[@]}" -- \
    ./prepare.sh --nj "$nj" --download "$download" --seed "$seed" "${options[@]}"
fi

if in_stage 1 "audio: every file opened, rates and durations"; then
  also=()
  [[ $pool_set == "$train_set" ]] || also=("$pool_set")
  for set in "$train_set" "${also[@]}" "${sets[@]}"; do
    step "exp/audio/$set" -- over "data/$set" "exp/audio/$set" utils/check_audio.py %data %out
  done
fi

if in_stage 2 "evaluators: train speaker encoders"; then
  for evaluator in $evaluators; do
    use_evaluator "$evaluator"
    make encoder
  done
fi

if in_stage 3 "x-vectors of the original speech, back ends"; then
  make_evaluators
fi

if in_stage 4 "what the systems need: pitch, voices, and what is trained"; then
  use_encoder "$voice_encoder"
  for system in $systems; do
    use_system "$system"
    for need in $needs; do make "$need"; done
  done
fi

if in_stage 5 "anonymise the evaluation sets"; then
  use_encoder "$voice_encoder"
  for system in $systems; do
    use_system "$system"
    for set in "${sets[@]}"; do protect "$system" "$set" "data/${set}_$system"; done
    is_random "$system" || continue
    for set in "${sets[@]:1}"; do # a second run, for what the attacker learns from one about another
      protect "$system" "$set" "data/${set}_${system}_draw1" --draw 1
    done
  done
fi

if in_stage 6 "informed attackers: train evaluators on protected speech"; then
  make_all_informed
fi

if in_stage 7 "x-vectors of the protected speech"; then
  for evaluator in $evaluators; do
    use_evaluator "$evaluator"
    for system in $systems; do
      protected_sets=("${sets[@]/%/_$system}")
      if is_random "$system"; then
        for set in "${sets[@]:1}"; do protected_sets+=("${set}_${system}_draw1"); done
      fi
      for set in "${protected_sets[@]}"; do make_xvectors "$set"; done
    done
    use_attacks "$evaluator"
    for attack in "${attacks[@]}"; do
      use_evaluator "$evaluator"
      use_attack "$attack"
      [[ $how == scratch || $how == finetuned ]] || continue # the others hear with the encoder above
      for set in "${sets[@]}"; do make_xvectors "${set}_$system"; done
    done
  done
fi

if in_stage 8 "scores: enrolment-trial lists, and all pairs of segments"; then
  for part in "${parts[@]}"; do
    use_part "$part"
    use_attacks "${part% *}"
    listed=("${attacks[@]}")
    for system in $systems; do # what one run tells about another (C_ECE) takes two, whoever attacks
      is_random "$system" || continue
      [[ " $attackers " == *" ignorant "* ]] || listed+=("$system ignorant OA - $system original -")
      listed+=("$system ignorant_draw1 OA - ${system}_draw1 original -")
    done
    for attack in "${listed[@]}"; do
      use_part "$part"
      use_attack "$attack"
      score_attack "exp/scores/$system/$attacker.$label/$condition/$split"
    done
    use_part "$part"
    for pair in "${pairs[@]}"; do
      read -r system condition rows columns <<<"$pair"
      out=exp/scores/$system/similarity.$label/$condition/$split
      along step "$out" -- job "$out" steps/score_pairs.py --backend "$scorer" --asnorm "$asnorm" \
        --utt2spk "data/$trials/utt2spk" \
        "$xvectors/$(protected "$trials" "$rows")" "$xvectors/$(protected "$trials" "$columns")" \
        "$out/trials" "$out/scores"
    done
  done
  steps_wait
fi

if in_stage 9 "privacy metrics"; then
  for part in "${parts[@]}"; do
    use_part "$part"
    use_attacks "${part% *}"
    for attack in "${attacks[@]}"; do
      use_part "$part"
      use_attack "$attack"
      path=$attacker.$label/$condition/$split
      along figures "$system/$path" local/compute_metrics.py verification "${options[@]}" \
        "data/$trials/trials" "exp/scores/$system/$path/scores"
      if asks_reid; then
        along figures "$system/reid_$path" local/compute_reidentification.py "${options[@]}" \
          "data/$trials/trials" "exp/scores/$system/$path/scores"
      fi
      [[ $how != aligned ]] || continue # legal criteria take x-vectors of each utterance, which he has not
      along figures "$system/legal_$path" local/compute_legal_metrics.py --utt2spk-enrol "data/${sets[0]}/utt2spk" \
        --utt2spk-trial "data/$trials/utt2spk" --bootstrap "$bootstrap" --seed "$seed" \
        "$xvectors/$(protected "${sets[0]}" "$enrol")/xvector.scp" "$xvectors/$(protected "$trials" "$trial")/xvector.scp"
    done
    use_part "$part"
    oo=exp/scores/original/similarity.$label/OO/$split
    for system in $systems; do
      lists=() op=exp/scores/$system/similarity.$label/OP/$split pp=exp/scores/$system/similarity.$label/PP/$split
      along figures "$system/similarity.$label/OO-OP-PP/$split" local/compute_metrics.py similarity "${options[@]}" \
        "$oo/trials" "$oo/scores" "$op/trials" "$op/scores" "$pp/trials" "$pp/scores"
      if asks_gains; then
        for list in original/unprotected.$label/OO "$system/ignorant.$label/OA" "$system/lazy_informed.$label/AA"; do
          lists+=("data/$trials/trials" "exp/scores/$list/$split/scores")
        done
        along figures "$system/gains.$label/OO-OA-AA/$split" local/compute_metrics.py gains "${options[@]}" "${lists[@]}"
      fi
      along figures "$system/leakage.$label/OP/$split" local/compute_metrics.py leakage "${options[@]}" \
        "$xvectors/$trials/xvector.scp" "$xvectors/${trials}_$system/xvector.scp"
      use_two_runs "$system" || continue # calibration distortion is not defined for a deterministic system
      along figures "$system/calibration.$label/OA/$split" local/compute_metrics.py calibration \
        --utt2spk "data/$trials/utt2spk" "data/$trials/trials" "$run0/scores" "$run1/scores"
    done
  done
  steps_wait
fi

if in_stage 10 "utility"; then
  ! $prosody || make_prosody
  ! $quality || make_quality
  make_emotion
  make_asr
fi

if in_stage 11 "results and report"; then
  shopt -s nullglob
  gather=(--corpus-name "$corpus_name" --corpus-note "$corpus_note")
  folders=()
  for part in "${parts[@]}"; do
    use_part "$part"
    use_attacks "${part% *}"
    for system in original $systems; do
      for folder in "exp/metrics/$system"/*".$label"/*/"$split"; do ! is_asked "$folder" || folders+=("$folder"); done
    done
    for attack in "${attacks[@]}"; do
      read -r system attacker condition _ <<<"$attack"
      gather+=(--attack "data/$trials/trials" "exp/scores/$system/$attacker.$label/$condition/$split")
    done
    for system in $systems; do
      use_two_runs "$system" || continue
      gather+=(--runs "data/$trials/trials" "$run0" "$run1")
      folders+=("exp/metrics/$system/calibration.$label/OA/$split")
    done
  done
  if $prosody; then
    find_prosody
    folders+=("${prosody_folders[@]}")
  fi
  ! $quality || add_quality_figures
  add_emotion_figures
  add_asr_figures
  add_earlier_figures
  for system in $systems; do
    for set in "${sets[@]:1}"; do gather+=(--speech "$system" "data/$set" "data/${set}_$system"); done
  done
  $report_audio || gather+=(--clips 0)
  add_all_timed
  step exp/results -- job exp/results local/collect_results.py "${gather[@]}" exp/results "${folders[@]}"
  step exp/report -- job exp/report local/make_report.py exp/results exp/report
fi
recipe_end 11 "report: $PWD/exp/report/report.html (tables: exp/report/RESULTS.md)"

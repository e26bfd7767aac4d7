#!/usr/bin/env bash
# Synthetic speech, made here by eSpeak NG: nothing is fetched, nothing else is needed.
# Makes data/<train_set> and data/<evaluation>_{enrolls,trials_f,trials_m}; the audio goes to the corpus folder.
#   ./prepare.sh                 the corpus of RESULTS.md
#   ./prepare.sh --within 0.5    speakers who vary less, and are easier to know
set -euo pipefail

corpus=corpus           # folder for the audio that is made (460 MB, without the training set 60)
evaluation=synth_test   # name of the evaluation sets
train_set=train         # name of the training and pool set
sets="evaluation train" # of evaluation train: which of them are made
eval_speakers=40        # half of them women
eval_utterances=14      # utterances of each: enrolment and trials
enrol_utterances=5      # utterances of each, for enrolment
train_speakers=320      # none of them in the evaluation
train_utterances=13     # utterances of each
spread=0.5              # how far the voices of a gender lie apart (1: in pitch, about as people do)
within=0.6              # how far a speaker's utterances lie apart, as a fraction of that: the difficulty
channel=0.7             # rooms and microphones, anew for every utterance: 0 good, 1 poor
seed=0                  # seed of voices, sentences, channels, enrolment utterances
nj=2                    # speakers made at a time; does not change the audio
download=false          # accepted because every corpus is; there is nothing to fetch

. ./path.sh
. ./cmd.sh
. utils/parse_options.sh
. utils/corpus.sh

# One job of $nj processes: a speaker needs a process of its own in any case.
make_speakers() { # SET FIRST SPEAKERS UTTERANCES
  local log=data/local/log/make_$1.log
  $cpu_cmd --num-threads "$nj" "$log" steps/make_synthetic_corpus.py --nj "$nj" --seed "$seed" \
    --spread "$spread" --within "$within" --channel "$channel" --first "$2" --speakers "$3" --utterances "$4" \
    "$corpus" "data/$1"
  grep "^data/$1: " "$log"
}

[[ $download == false ]] || echo "prepare.sh: --download: nothing to fetch, the speech is made here"
for one in $sets; do
  case $one in
    evaluation)
      make_speakers "local/$evaluation" 1 "$eval_speakers" "$eval_utterances"
      local/make_trials.py --seed "$seed" --enrol-utts "$enrol_utterances" \
        "data/local/$evaluation" "data/$evaluation"
      ;;
    train) make_speakers "$train_set" $((eval_speakers / 2 + 1)) "$train_speakers" "$train_utterances" ;;
    *) echo "prepare.sh: --sets $one: evaluation and train are known" >&2 && exit 2 ;;
  esac
done

#!/usr/bin/env bash
# VoicePrivacy 2020's public x-vectors (no audio) -> data/<evaluation>_{enrolls,trials_f,trials_m}, and
# data/<train_set>: the trial speakers of both genders, who train generators and back end and are the pool.
# Any folder with data/<set> and xvectors/<set> in Kaldi's formats will do.
#   ./prepare.sh --corpus /data/vpc2020_libri_test
set -euo pipefail

corpus=               # folder with data/ and xvectors/
evaluation=libri_test # its sets are data/<evaluation>_{enrolls,trials_f,trials_m}
train_set=train       # name of the training and pool set
download=false        # not possible: see README.md
nj=1                  # of run.sh; nothing is read side by side here,
seed=0                # and nothing is drawn

. ./path.sh
. utils/parse_options.sh
. utils/corpus.sh

no_download "no checksum of the x-vectors is published"
[[ $nj -ge 1 && $seed -ge 0 ]] || fail "--nj $nj, --seed $seed: numbers from 1 and from 0 are expected"
use_corpus "a folder with data/<set> and xvectors/<set>"
sets=("${evaluation}_enrolls" "${evaluation}_trials_f" "${evaluation}_trials_m")
for set in "${sets[@]}"; do
  [[ -d $corpus/data/$set ]] || fail "$corpus/data/$set: no such folder; --evaluation $evaluation"
  [[ -d $corpus/xvectors/$set ]] || fail "$corpus/xvectors/$set: no such folder; --evaluation $evaluation"
done
end_of_look
for set in "${sets[@]}"; do
  rm -rf "data/$set"
  mkdir -p "data/$set"
  for file in utt2spk spk2utt spk2gender utt2dur text trials enrolls; do
    [[ ! -f $corpus/data/$set/$file ]] || LC_ALL=C sort "$corpus/data/$set/$file" >"data/$set/$file"
  done
  utils/validate_data_dir.py --no-wav --models "data/${sets[0]}" "data/$set"
done
rm -rf "data/$train_set" data/.trials_*
for gender in f m; do # trials are of the evaluation only
  mkdir -p "data/.trials_$gender"
  for file in utt2spk spk2utt spk2gender utt2dur text; do
    [[ ! -f data/${evaluation}_trials_$gender/$file ]] || cp "data/${evaluation}_trials_$gender/$file" "data/.trials_$gender/"
  done
done
utils/combine_data_dirs.py "data/$train_set" data/.trials_f data/.trials_m
rm -rf data/.trials_*
for set in "$train_set" "${sets[@]}"; do # one folder of x-vectors a set, as --voice-encoder given:data/tdnn wants it
  mkdir -p "data/tdnn/$set"
  case $set in
    "$train_set") cat "$corpus/xvectors/${sets[1]}/xvector.ark" "$corpus/xvectors/${sets[2]}/xvector.ark" ;;
    *) cat "$corpus/xvectors/$set/xvector.ark" ;;
  esac >"data/tdnn/$set/xvector.ark"
done

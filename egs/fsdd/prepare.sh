#!/usr/bin/env bash
# Free Spoken Digit Dataset -> data/<train_set> and data/<evaluation>_{enrolls,trials_<gender>}.
# Reads recordings/<digit>_<speaker>_<index>.{wav,flac} and genders from speakers.tsv or metadata.py.
# The utterance id is <speaker>-<digit>-<index>, for example george-0-4.
#   ./prepare.sh --corpus /data/free-spoken-digit-dataset
set -euo pipefail

corpus=              # folder with recordings/
evaluation=fsdd_test # name of the evaluation sets
train_set=train      # name of the training and pool set: the speakers not evaluated
speakers=4           # speakers to evaluate, of each gender, drawn by the seed
genders=m            # genders of the corpus; with blanks
enrol_utts=10        # enrolment utterances of each evaluated speaker
seed=0               # seed of the choice of speakers and enrolment utterances
allow_loss=0         # utterances that may be left out (no gender, unreadable audio)
download=false       # not possible: see README.md
nj=2                 # audio files read at a time

. ./path.sh
. utils/parse_options.sh
. utils/corpus.sh

no_download "no checksum of this corpus is published"
use_corpus "the folder with recordings/"
[[ -d $corpus/recordings ]] || fail "$corpus/recordings: no such folder; --corpus is the folder above it"
of_speakers=$corpus/speakers.tsv
[[ -f $of_speakers ]] || of_speakers=$corpus/metadata.py
[[ -f $of_speakers ]] || fail "$corpus: holds neither speakers.tsv nor metadata.py, which give the genders"

make_work
find -L "$corpus/recordings" -iname '[!.]*.wav' -o -iname '[!.]*.flac' >"$work/audio"
[[ -s $work/audio ]] || fail "$corpus/recordings: holds no <digit>_<speaker>_<index>.{wav,flac}"

# speakers.tsv: speaker, gender; metadata.py: 'jackson': { 'gender': 'male', ... }, over several lines.
awk -v of="$of_speakers" '
  { sub(/\r$/, "") }
  of ~ /tsv$/ { if (FNR > 1) print $1, $2; next }
  match($0, /["\047][a-z_0-9]+["\047][ \t]*:[ \t]*\{/) {
    name = substr($0, RSTART + 1)
    sub(/["\047].*/, "", name)
  }
  match($0, /["\047]gender["\047][ \t]*:[ \t]*["\047][a-z]+/) {
    value = substr($0, RSTART, RLENGTH)
    sub(/.*["\047]/, "", value)
    print name, substr(value, 1, 1)
  }
' "$of_speakers" >"$work/genders"

# The table of make_data_dir.py. What is missing is left empty, and reported there.
awk '
  BEGIN {
    OFS = "\t"
    print "utt", "spk", "gender", "audio", "text"
    split("ZERO ONE TWO THREE FOUR FIVE SIX SEVEN EIGHT NINE", word, " ")
  }
  of == "gender" { gender[$1] = $2 }
  of == "audio" {
    name = $0
    sub(/.*\//, "", name)
    sub(/\.[A-Za-z]*$/, "", name)
    digit = substr(name, 1, 1)
    index_ = name
    sub(/.*_/, "", index_)
    spk = name ~ /^[0-9]_.+_/ ? substr(name, 3, length(name) - 3 - length(index_)) : ""
    print spk "-" digit "-" index_, spk, gender[spk], $0, word[digit + 1]
  }
' of=gender "$work/genders" of=audio "$work/audio" >"$work/all.tsv"

local/make_data_dir.py --nj "$nj" --allow-loss "$allow_loss" \
  --genders-from "$of_speakers" "$work/all.tsv" "$work/all"
read -ra of <<<"$genders"
sets=("$train_set" "${evaluation}_enrolls" "${of[@]/#/${evaluation}_trials_}")
local/make_trials.py --seed "$seed" --enrol-utts "$enrol_utts" --speakers "$speakers" \
  --rest "data/$train_set" --genders "${of[@]}" -- "$work/all" "data/$evaluation"
validate_sets "${sets[@]}"

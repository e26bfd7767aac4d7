#!/usr/bin/env bash
# AN4, SphinxTrain edition -> data/<train_set> and data/<evaluation>_{enrolls,trials_f,trials_m}.
# Reads etc/an4_{train,test}.{fileids,transcription} (one or both) and wav/<fileid>.{flac,wav,sph}.
# A file id is <folder>/<speaker>/<name>; the utterance id is <speaker>-<name>, for example
# fash-an251-fash-b. The first letter of a speaker is the gender.
#   ./prepare.sh --corpus /data/an4
set -euo pipefail

corpus=             # folder with etc/ and wav/
evaluation=an4_test # name of the evaluation sets
train_set=train     # name of the training and pool set: the speakers not evaluated
speakers=10         # speakers of each gender to evaluate, drawn by the seed
enrol_utts=5        # enrolment utterances of each of them
exclude=mdcs2       # speakers to leave out, with commas; mdcs2 may be mdcs once more
seed=0              # seed of the choice of speakers and enrolment utterances
allow_loss=0        # utterances that may be left out (no transcript, no audio, unreadable audio)
download=false      # not possible: see README.md
nj=2                # audio files read at a time

. ./path.sh
. utils/parse_options.sh
. utils/corpus.sh

no_download "no checksum of AN4 is published"
use_corpus "the folder with AN4's etc/ and wav/"
[[ -d $corpus/wav ]] || fail "$corpus/wav: no such folder; --corpus is the folder above AN4's wav/"
parts=()
for part in train test; do
  [[ ! -f $corpus/etc/an4_$part.fileids ]] || parts+=("$corpus/etc/an4_$part")
done
[[ ${#parts[@]} -gt 0 ]] || fail "$corpus/etc: holds neither an4_train.fileids nor an4_test.fileids"

make_work
awk 1 "${parts[@]/%/.fileids}" >"$work/fileids"
awk 1 "${parts[@]/%/.transcription}" >"$work/transcription"
find -L "$corpus/wav" -iname '[!.]*.flac' -o -iname '[!.]*.wav' -o -iname '[!.]*.sph' >"$work/audio"
[[ -s $work/audio ]] || fail "$corpus/wav: holds no <folder>/<speaker>/<utt>.{flac,wav,sph}"

# The table of make_data_dir.py. What is missing is left empty, and reported there.
awk -v wav="$corpus/wav/" -v exclude=",$exclude," '
  BEGIN { OFS = "\t"; print "utt", "spk", "gender", "audio", "text" }
  function row(id, audio,  n, part, spk) {
    n = split(id, part, "/")
    spk = part[n - 1]
    if (index(exclude, "," spk ",")) left_out[spk]++
    else print spk "-" part[n], spk, substr(spk, 1, 1), audio, text[part[n]]
  }
  { sub(/\r$/, "") }
  of == "text" && match($0, /\([^()]*\)[ \t]*$/) { # <s> YES </s> (an251-fash-b)
    name = substr($0, RSTART + 1)
    sub(/\)[ \t]*$/, "", name)
    words = substr($0, 1, RSTART - 1)
    gsub(/<\/?s>|<sil>/, " ", words)
    gsub(/\t/, " ", words)
    text[name] = words
  }
  of == "audio" {
    id = substr($0, length(wav) + 1)
    sub(/\.[A-Za-z]*$/, "", id)
    audio[id] = $0
    row(id, $0)
  }
  of == "fileid" && NF && !($0 in audio) { row($0, "") }
  END {
    for (spk in left_out)
      print "left out: speaker " spk ", " left_out[spk] " utterances (--exclude)" >"/dev/stderr"
  }
' of=text "$work/transcription" of=audio "$work/audio" of=fileid "$work/fileids" >"$work/all.tsv"

local/make_data_dir.py --nj "$nj" --allow-loss "$allow_loss" \
  --genders-from "the first letter of its name" "$work/all.tsv" "$work/all"
local/make_trials.py --seed "$seed" --enrol-utts "$enrol_utts" \
  --speakers "$speakers" --rest "data/$train_set" "$work/all" "data/$evaluation"
validate_sets "$train_set" "$evaluation"_{enrolls,trials_f,trials_m}

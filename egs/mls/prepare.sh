#!/usr/bin/env bash
# One language of Multilingual LibriSpeech (OpenSLR 94) -> data/<train_set> and
# data/<evaluation>_{enrolls,trials_f,trials_m,trials_mixed}. Reads the folder as it is published (mls_german, or mls_german_opus):
# metainfo.txt, <part>/transcripts.txt and <part>/audio/<speaker>/<book>/<utt>.{flac,opus}.
#   ./prepare.sh --corpus /data/mls_german --lists /data/vpc2026/data
#   ./prepare.sh --corpus /data/mls_french --evaluation fr_dev --train-set train_french
set -euo pipefail

corpus=                # MLS folder of the language
evaluation=de_test     # name of the evaluation sets, also in official lists; behind the last _ its part: dev or test
train_set=train_german # name of the training and pool set, also in official lists; its part is train
lists=                 # folder of official lists; without, lists are made: every enrolled speaker meets every utterance
enrol_utts=5           # where lists are made: enrolment utterances of each speaker
seed=0                 # where lists are made: of the choice of enrolment utterances
allow_loss=0           # utterances a set may lose (no transcript, unknown speaker, unreadable audio)
download=false         # not possible: see README.md
nj=2                   # audio files read at a time

. ./path.sh
. utils/parse_options.sh
. utils/corpus.sh

no_download "a language has up to 2.4 TB"
use_corpus "the MLS folder of one language, with metainfo.txt"
part=${evaluation##*_}
[[ $part == @(dev|test) ]] || fail "--evaluation $evaluation: ends in _dev or _test, a part of the corpus"
for name in metainfo.txt "$part/transcripts.txt" train/transcripts.txt; do
  [[ -f $corpus/$name ]] || fail "$corpus/$name is missing; --corpus is the folder of one language, such as mls_german"
done
[[ -z $lists || -d $lists ]] || fail "--lists $lists: no such folder"

# The table of make_data_dir.py. What is missing is left empty, and reported there. KEEP: a table of utterances that alone count.
list_utterances() { # PART KEEP
  find -L "$corpus/$1/audio" \( -iname '[!.]*.flac' -o -iname '[!.]*.opus' \) >"$work/audio"
  [[ -s $work/audio ]] || fail "$corpus/$1/audio: holds no <speaker>/<book>/<utt>.{flac,opus}"
  awk -F'|' '
    BEGIN { OFS = "\t"; print "utt", "spk", "gender", "audio", "text" }
    function row(utt, text, spk) {
      spk = utt
      sub(/_.*/, "", spk)
      if (some && !(utt in keep)) return
      print utt, spk, gender[spk], audio[utt], text
      there++
    }
    { sub(/\r$/, "") }
    of == "speaker" { gsub(/[ \t]/, ""); gender[$1] = tolower($2); next }
    of == "audio" {
      id = $0
      sub(/.*\//, "", id)
      sub(/\.[A-Za-z]*$/, "", id)
      if (id in audio) print id, "", "", audio[id], "" # there twice, which is refused
      audio[id] = $0
      next
    }
    of == "keep" { split($0, field, " "); keep[field[1]]; some++; next }
    NF {
      sub(/[ \t]+/, "\034") # the id ends here
      split($0, field, "\034")
      gsub(/\t/, " ", field[2])
      row(field[1], field[2])
      done[field[1]]
    }
    END {
      for (utt in audio) if (!(utt in done)) row(utt, "")
      if (some) print "official training set: " there + 0 " of " some " utterances are there" >"/dev/stderr"
    }
  ' of=speaker "$corpus/metainfo.txt" of=audio "$work/audio" of=keep "$2" of=text "$corpus/$1/transcripts.txt"
}

make_work
how=(--seed "$seed" --enrol-utts "$enrol_utts") keep=/dev/null
if [[ -n $lists ]]; then
  how=(--official "$lists")
  if [[ -f $lists/$train_set/utt2spk ]]; then keep=$lists/$train_set/utt2spk; fi
fi
checks=(--nj "$nj" --allow-loss "$allow_loss" --genders-from "$corpus/metainfo.txt")
list_utterances "$part" /dev/null >"$work/eval.tsv"
list_utterances train "$keep" >"$work/train.tsv"
local/make_data_dir.py "${checks[@]}" "$work/eval.tsv" "$work/eval"
local/make_trials.py "${how[@]}" "$work/eval" "data/$evaluation"
local/make_data_dir.py "${checks[@]}" "$work/train.tsv" "data/$train_set"
validate_sets "$train_set" "$evaluation"_{enrolls,trials_f,trials_m,trials_mixed}

#!/usr/bin/env bash
# LibriSpeech (OpenSLR 12) -> data/<train_set> and data/<evaluation>_{enrolls,trials_f,trials_m}.
# Any folder in LibriSpeech's layout will do, also a part of the corpus: SPEAKERS.TXT and
# <subset>/<speaker>/<chapter>/{<utt>.flac,<speaker>-<chapter>.trans.txt}.
#   ./prepare.sh --corpus /data/LibriSpeech --lists /data/vpc2020/data
#   ./prepare.sh --download true --train-subsets train-clean-360
set -euo pipefail

corpus=                # LibriSpeech folder; --download fills it (default: corpus/LibriSpeech)
evaluation=libri_test  # name of the evaluation sets, also in official lists
eval_subset=test-clean # its subset, or several with commas
train_set=train        # name of the training and pool set
train_subsets=auto     # its subsets, with commas; auto: all there are but the evaluation's
lists=                 # folder of official lists; without, lists are made by the same rules
enrol_utts=5           # where lists are made: enrolment utterances a speaker, of one chapter
seed=0                 # where lists are made: of the choice of chapters and utterances
allow_loss=0           # utterances a set may lose (no transcript, unreadable audio, ...)
nj=2                   # audio files read at a time
download=false         # fetch the two sets' subsets (train_subsets=auto: train-clean-100)

url=https://www.openslr.org/resources/12 # to download from; or a mirror

. ./path.sh
. utils/parse_options.sh
. utils/corpus.sh

declare -A published=( # utterances
  ["dev-clean"]=2703 ["dev-other"]=2864 ["test-clean"]=2620 ["test-other"]=2939
  ["train-clean-100"]=28539 ["train-clean-360"]=104014 ["train-other-500"]=148688)

# Download and unpack a subset; it shows up in $corpus when it is whole.
fetch() { # SUBSET
  [[ ! -d $corpus/$1 ]] || return 0
  fetch_file "$url/$1.tar.gz" conf/md5sum.txt
  rm -rf "$corpus/.unpacking"
  mkdir -p "$corpus/.unpacking"
  tar -xzf "downloads/$1.tar.gz" -C "$corpus/.unpacking" --strip-components=1
  cp "$corpus/.unpacking"/*.TXT "$corpus/"
  mv "$corpus/.unpacking/$1" "$corpus/$1"
  rm -rf "$corpus/.unpacking"
}

# The table of make_data_dir.py for some subsets. What is missing is left empty, and reported there.
list_utterances() { # SUBSET...
  local subset folder count
  for subset; do
    folder=$corpus/$subset
    find -L "$folder" -iname '[!.]*.flac' >"$work/flac.$subset"
    find -L "$folder" -iname '[!.]*.trans.txt' -exec awk 1 {} + >"$work/trans.$subset"
    [[ -s $work/flac.$subset ]] || fail "$folder: holds no <speaker>/<chapter>/<utt>.flac"
    [[ -s $work/trans.$subset ]] || fail "$folder: holds no <speaker>/<chapter>/*.trans.txt"
    count=$(wc -l <"$work/flac.$subset")
    echo "$folder: $count utterances; published: ${published[$subset]:-unknown}" >&2
  done
  cat "${@/#/$work/flac.}" >"$work/flac"
  cat "${@/#/$work/trans.}" >"$work/trans"
  awk '
    BEGIN { OFS = "\t"; print "utt", "spk", "gender", "audio", "text" }
    function row(utt, audio, text) {
      split(utt, id, "-")
      print utt, id[1], gender[id[1]], audio, text
    }
    { sub(/\r$/, "") }
    of == "speaker" && !/^;/ { gsub(/[ \t]/, ""); gender[$1] = tolower($2) }
    of == "flac" {
      utt = substr($NF, 1, length($NF) - length(".flac"))
      if (utt in flac) row(utt, flac[utt]) # there twice, which is refused
      flac[utt] = $0
    }
    of == "trans" && NF {
      utt = $1
      sub(/^[^ \t]+[ \t]*/, "")
      gsub(/\t/, " ")
      row(utt, flac[utt], $0)
      done[utt]
    }
    END { for (utt in flac) if (!(utt in done)) row(utt, flac[utt]) }
  ' of=speaker FS='|' "$corpus/SPEAKERS.TXT" of=flac FS=/ "$work/flac" of=trans FS=' ' "$work/trans"
}

read -ra train <<<"${train_subsets//,/ }"
read -ra eval <<<"${eval_subset//,/ }"
if $download; then
  corpus=${corpus:-corpus/LibriSpeech}
  [[ $train_subsets != auto ]] || train=(train-clean-100)
  for subset in "${eval[@]}" "${train[@]}"; do fetch "$subset"; done
fi
[[ -n $corpus ]] || fail "--corpus is missing: the LibriSpeech folder; see README.md"
[[ -d $corpus ]] || fail "--corpus $corpus: no such folder"
[[ -f $corpus/SPEAKERS.TXT ]] \
  || fail "$corpus/SPEAKERS.TXT is missing; --corpus is the folder that has it and the subsets"
corpus=$(cd "$corpus" && pwd)
if [[ ${train[*]} == auto ]]; then
  train=()
  for folder in "$corpus"/{dev,test,train}-*/; do
    subset=$(basename "$folder")
    if [[ -d $folder && " ${eval[*]} " != *" $subset "* ]]; then train+=("$subset"); fi
  done
  [[ ${#train[@]} -gt 0 ]] || fail "$corpus: has no subset but $eval_subset to train with"
fi
for subset in "${eval[@]}" "${train[@]}"; do
  [[ -d $corpus/$subset ]] || fail "$corpus/$subset: no such folder; see --eval-subset and --train-subsets"
done

make_work
list_utterances "${eval[@]}" >"$work/eval.tsv"
list_utterances "${train[@]}" >"$work/train.tsv"
cut -f 2 "$work/eval.tsv" | sort -u >"$work/eval.spk"
cut -f 2 "$work/train.tsv" | sort -u >"$work/train.spk"
comm -12 "$work/eval.spk" "$work/train.spk" | sed '/^spk$/d' >"$work/both.spk"
[[ ! -s $work/both.spk ]] || fail "$(wc -l <"$work/both.spk") speakers are in $eval_subset and in" \
  "the training subsets (${train[*]}), such as $(head -n 1 "$work/both.spk")"

checks=(--nj "$nj" --allow-loss "$allow_loss" --genders-from "$corpus/SPEAKERS.TXT")
local/make_data_dir.py "${checks[@]}" "$work/eval.tsv" "$work/eval"
if [[ -n $lists ]]; then
  how=(--official "$lists")
else
  awk '{ chapter = $1; sub(/-[^-]*$/, "", chapter); print $1, chapter }' \
    "$work/eval/utt2spk" >"$work/utt2session"
  how=(--seed "$seed" --enrol-utts "$enrol_utts" --sessions "$work/utt2session")
fi
local/make_trials.py "${how[@]}" "$work/eval" "data/$evaluation"
local/make_data_dir.py "${checks[@]}" "$work/train.tsv" "data/$train_set"
validate_sets "$train_set" "$evaluation"_{enrolls,trials_f,trials_m}

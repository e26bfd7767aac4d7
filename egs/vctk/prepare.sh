#!/usr/bin/env bash
# CSTR VCTK -> data/<train_set> and, as VoicePrivacy 2020 and 2022 have them, two evaluations with the same
# enrolment: data/<evaluation>_{enrolls,trials_f,trials_m}, whose trials are sentences of the newspaper that differ
# from speaker to speaker, and data/<evaluation>_common_{enrolls,trials_f,trials_m}, whose trials are sentences 1 to 24,
# which everybody reads. Layouts: wav48_silence_trimmed/<spk>/<utt>_mic<n>.flac (0.92), wav48/<spk>/<utt>.wav (0.80),
# wav16/<spk>/<utt>.{wav,flac}; beside it txt/<spk>/<utt>.txt and speaker-info.txt.
#   ./prepare.sh --corpus /data/VCTK-Corpus-0.92 --lists /data/vpc2020/data
#   ./prepare.sh --corpus /data/VCTK-Corpus-0.92 --train-from ../librispeech/data/train
set -euo pipefail

corpus=                      # VCTK folder
evaluation=vctk_test         # name of the evaluation, also in official lists
train_set=train              # name of the training and pool set
train_from=                  # data directory of another corpus to be that set; without: the speakers not evaluated
lists=                       # folder of official lists; without, lists are made by the same rules
sentences="different common" # which evaluations are made; common alone: enrolment is also of common sentences
mic=mic2                     # microphone, where there are two (0.92): mic1 or mic2; official lists that name one win
leave_out="p280 p315"        # speakers that are not used: neither has all recordings of mic2, and p315 no transcripts
speakers=15                  # where lists are made: speakers of each gender to evaluate, drawn by the seed; 0: all
enrol_utts=20                # where lists are made: enrolment utterances of each of them
seed=0                       # where lists are made: of the choice of speakers and utterances
allow_loss=0                 # utterances that may be left out (no transcript, unreadable audio, ...)
download=false               # not possible: see README.md
nj=2                         # audio files read at a time

. ./path.sh
. utils/parse_options.sh
. utils/corpus.sh

no_download "11 GB behind a licence page"
use_corpus "the VCTK folder"
[[ $mic == mic[12] ]] || fail "--mic '$mic'; known: mic1, mic2"
[[ $sentences == @("different common"|different|common) ]] \
  || fail "--sentences '$sentences'; known: \"different common\", different, common"
for name in speaker-info.txt txt; do
  [[ -e $corpus/$name ]] || fail "$corpus/$name is missing; --corpus is the folder that has it and the audio"
done
for folder in wav48_silence_trimmed wav48 wav16 ""; do
  [[ -n $folder ]] || fail "$corpus: holds none of wav48_silence_trimmed, wav48, wav16"
  [[ ! -d $corpus/$folder ]] || break
done

# Ids of official lists may end in the microphone.
with_mic=false
if [[ -n $lists ]]; then
  for home in "$lists/${evaluation}_enrolls/enrolls" "$lists/$evaluation"/enrolls{,_mic2} ""; do
    [[ -n $home ]] || fail "$lists/${evaluation}_enrolls/enrolls is missing; --lists is the folder above it, or above $evaluation/enrolls"
    [[ ! -f $home ]] || break
  done
  if named=$(grep -om 1 '_mic[12]\b' "$home"); then with_mic=true mic=${named#_}; fi
fi

make_work
find -L "$corpus/$folder" -mindepth 2 -maxdepth 2 \( -iname '[!.]*.wav' -o -iname '[!.]*.flac' \) >"$work/audio"
[[ -s $work/audio ]] || fail "$corpus/$folder: holds no <speaker>/<utt>.{wav,flac}"
find -L "$corpus/txt" -mindepth 2 -maxdepth 2 -iname '[!.]*.txt' \
  -exec awk 'FNR == 1 { gsub(/\t/, " "); print FILENAME "\t" $0 }' {} + >"$work/texts"

# The table of make_data_dir.py: genders from speaker-info.txt, whose ids lack the p in version 0.80.
# What is missing is left empty, and reported there.
awk -v mic="$mic" -v with_mic="$with_mic" -v leave_out=" $leave_out " '
  BEGIN {
    OFS = "\t"
    print "utt", "spk", "gender", "audio", "text"
  }
  { sub(/\r$/, "") }
  of == "speaker" {
    id = $1 ~ /^[0-9]/ ? "p" $1 : $1
    if ($3 == "F" || $3 == "M") gender[id] = tolower($3)
    next
  }
  {
    path = of == "text" ? $1 : $0
    name = path
    sub(/.*\//, "", name)
    sub(/\.[A-Za-z0-9]*$/, "", name)
    spk = name
    sub(/_.*/, "", spk)
    if (index(leave_out, " " spk " ")) {
      if (of == "audio") left_out[spk]++
      next
    }
  }
  of == "text" { text[name] = $2; next }
  {
    if (name ~ /_mic[12]$/) {
      if (substr(name, length(name) - 3) != mic) next
      utt = substr(name, 1, length(name) - 5)
    } else utt = name
    if (utt !~ /^[a-z][0-9]+_[0-9]+$/) {
      print "prepare.sh: " path ": no <speaker>_<number>" >"/dev/stderr"
      strange++
      next
    }
    heard++
    done[utt]
    print utt (with_mic == "true" ? "_" mic : ""), spk, gender[spk], path, text[utt]
  }
  END {
    for (spk in left_out)
      print "left out: " left_out[spk] " files of speaker " spk " (--leave-out)" >"/dev/stderr"
    for (name in text) silent += !(name in done) # some of p362 of version 0.92
    if (silent) print "left out: " silent " transcripts without audio" >"/dev/stderr"
    if (!strange && !heard) print "prepare.sh: no audio of " mic >"/dev/stderr"
    if (strange || !heard) exit 2
  }
' of=speaker "$corpus/speaker-info.txt" of=text FS='\t' "$work/texts" of=audio "$work/audio" >"$work/all.tsv"

local/make_data_dir.py --nj "$nj" --allow-loss "$allow_loss" \
  --genders-from "$corpus/speaker-info.txt" "$work/all.tsv" "$work/all"
for kind in common different; do
  awk -v kind="$kind" '{ split($1, id, "_"); if ((id[2] + 0 <= 24) == (kind == "common")) print $1 }' \
    "$work/all/utt2spk" >"$work/$kind.utts"
done

evaluations=()
[[ $sentences == common ]] || evaluations+=("$evaluation")
[[ $sentences == different ]] || evaluations+=("${evaluation}_common")

make_official() {
  local name
  for name in "${evaluations[@]}"; do local/make_trials.py --official "$lists" "$work/all" "data/$name"; done
  cat "$lists"/*/utt2spk | awk '{ print $2 }' | sort -u >"$work/evaluated" # of any evaluation
}

# By the rules of the official lists: enrolment is of different sentences, the same in both evaluations.
make_own() {
  local rules=(--seed "$seed" --enrol-utts "$enrol_utts") first=$evaluation kind=different
  if [[ $sentences == common ]]; then first=${evaluation}_common kind=common; fi
  [[ -s $work/$kind.utts ]] \
    || fail "$corpus: holds no sentence above 24, which all differ; without them: --sentences common"
  subset_data_dir.py --utt-list "$work/$kind.utts" "$work/all" "$work/$kind"
  if [[ $speakers -ne 0 ]]; then rules+=(--speakers "$speakers" --rest "$work/rest"); fi
  local/make_trials.py "${rules[@]}" "$work/$kind" "data/$first"
  cat "data/$first"_{enrolls,trials_f,trials_m}/utt2spk | awk '{ print $2 }' | sort -u >"$work/evaluated"
  [[ $sentences == "different common" ]] || return 0
  awk 'FILENAME ~ /evaluated$/ { spk[$1]; next } FILENAME ~ /utts$/ { utt[$1]; next } ($1 in utt) && ($2 in spk) { print $1 }' \
    "$work/evaluated" "$work/common.utts" "$work/all/utt2spk" >"$work/common_trials.utts"
  [[ -s $work/common_trials.utts ]] || fail "$corpus: holds no sentence 1 to 24 of the evaluated speakers"
  subset_data_dir.py --utt-list "$work/common_trials.utts" "$work/all" "$work/common_trials"
  combine_data_dirs.py "$work/common" "data/${evaluation}_enrolls" "$work/common_trials"
  local/make_trials.py --enrolled "data/${evaluation}_enrolls" "$work/common" "data/${evaluation}_common"
}

if [[ -n $lists ]]; then make_official; else make_own; fi
if [[ -n $train_from ]]; then
  copy_data_dir.py "$train_from" "data/$train_set"
else
  awk '{ print $2 }' "$work/all/utt2spk" | sort -u | comm -23 - "$work/evaluated" >"$work/train.spk"
  [[ -s $work/train.spk ]] || fail "no speaker is left to train with; see --train-from"
  subset_data_dir.py --spk-list "$work/train.spk" "$work/all" "data/$train_set"
fi
for name in "${evaluations[@]}"; do validate_sets "$name"_{enrolls,trials_f,trials_m}; done
validate_sets "$train_set"

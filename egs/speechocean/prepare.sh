#!/usr/bin/env bash
# speechocean762 (OpenSLR 101) -> data/<train_set> and data/<evaluation>_{enrolls,trials_f,trials_m}, each with spk2age.
# Reads the corpus as it is published, {train,test}/{wav.scp,utt2spk,spk2gender,spk2age,text}, or an excerpt of it:
# utts.tsv (utterance speaker sex age seconds text) and audio/<utterance>.{opus,ogg,flac,wav}.
# A speaker 0001 is called so0001, and their utterance 000010011 so0001-000010011.
#   ./prepare.sh --corpus /data/speechocean762
set -euo pipefail

corpus=                     # folder with train/ and test/, or with utts.tsv and audio/
evaluation=speechocean_test # name of the evaluation sets
train_set=train             # name of the training and pool set: the speakers not evaluated
speakers=                   # speakers of each gender to evaluate, drawn by the seed; empty: half of those there are
enrol_utts=5                # enrolment utterances of each of them
seed=0                      # seed of the choice of speakers and enrolment utterances
allow_loss=0                # utterances that may be left out (no age, no transcript, unreadable audio)
download=false              # not possible: see README.md
nj=2                        # audio files read at a time

. ./path.sh
. utils/parse_options.sh
. utils/corpus.sh

no_download "no checksum of speechocean762 is published"
use_corpus "the folder of speechocean762, with train/ and test/"
tables=(wav.scp utt2spk spk2gender spk2age text)
if [[ ! -f $corpus/utts.tsv ]]; then
  for table in "${tables[@]/#/train/}" "${tables[@]/#/test/}"; do
    [[ -f $corpus/$table ]] || fail "$corpus/$table: no such file; --corpus is the folder of speechocean762"
  done
fi
make_work
if [[ -f $corpus/utts.tsv ]]; then
  find -L "$corpus/audio" -iname '[!.]*.opus' -o -iname '[!.]*.ogg' -o -iname '[!.]*.flac' -o -iname '[!.]*.wav' >"$work/audio"
  awk -F'\t' '
    BEGIN { OFS = FS; print "utt", "spk", "gender", "age", "audio", "text" }
    { sub(/\r$/, "") }
    function unlisted(id) { print id, "", "", "", audio[id], "" } # is refused
    of == "audio" {
      id = $0
      sub(/.*\//, "", id)
      sub(/\.[A-Za-z]*$/, "", id)
      if (id in audio) unlisted(id) # there twice
      audio[id] = $0
      next
    }
    FNR > 1 { print $1, $2, $3, $4, audio[$1], $6; done[$1] }
    END { for (id in audio) if (!(id in done)) unlisted(id) }
  ' of=audio "$work/audio" of=table "$corpus/utts.tsv" >"$work/all.tsv"
else
  for table in "${tables[@]}"; do
    awk 1 "$corpus/train/$table" "$corpus/test/$table" | sort -u >"$work/$table"
  done
  awk -v corpus="$corpus" '
    BEGIN { OFS = "\t"; print "utt", "spk", "gender", "age", "audio", "text" }
    { sub(/\r$/, ""); key = $1; sub(/^[^ \t]+[ \t]*/, "") }
    of == "utt2spk" { spk[key] = $0 }
    of == "spk2gender" { gender[key] = $0 }
    of == "spk2age" { age[key] = $0 }
    of == "text" { gsub(/\t/, " "); text[key] = $0 }
    of == "wav" { who = spk[key]; print "so" who "-" key, "so" who, gender[who], age[who], corpus "/" $0, text[key] }
  ' of=utt2spk "$work/utt2spk" of=spk2gender "$work/spk2gender" of=spk2age "$work/spk2age" \
    of=text "$work/text" of=wav "$work/wav.scp" >"$work/all.tsv"
fi

local/make_data_dir.py --nj "$nj" --allow-loss "$allow_loss" --genders-from "the corpus's tables" "$work/all.tsv" "$work/all"
if [[ -z $speakers ]]; then # as many as half of the gender that has fewer
  speakers=$(awk '{ n[$2]++ } END { f = n["f"] + 0; m = n["m"] + 0; print int((f < m ? f : m) / 2) }' "$work/all/spk2gender")
fi
local/make_trials.py --seed "$seed" --enrol-utts "$enrol_utts" \
  --speakers "$speakers" --rest "data/$train_set" "$work/all" "data/$evaluation"
validate_sets "$train_set" "$evaluation"_{enrolls,trials_f,trials_m}

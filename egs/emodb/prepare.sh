#!/usr/bin/env bash
# Berlin Database of Emotional Speech -> data/<train_set> and data/<evaluation>_{enrolls,trials_f,trials_m},
# each with utt2emotion and utt2lang. Reads wav/<name>.{wav,flac}; a name is speaker (2 digits), sentence (a01 ... b10),
# emotion (a letter of the German word) and version (a letter). The utterance id is <speaker>-<name>,
# for example 03-03a01Fa.
#   ./prepare.sh --corpus /data/emodb
set -euo pipefail

corpus=                                    # folder with wav/
evaluation=emodb_test                      # name of the evaluation sets
train_set=train                            # name of the training and pool set: the speakers not evaluated
speakers=3                                 # speakers of each gender to evaluate, drawn by the seed
enrol_utts=5                               # enrolment utterances of each of them
emotions="anger happiness neutral sadness" # of: anger boredom disgust fear happiness neutral sadness
seed=0                                     # of the choice of speakers and enrolment utterances
allow_loss=0                               # utterances that may be left out (unknown speaker or sentence, unreadable audio)
download=false                             # not possible: see README.md
nj=2                                       # audio files read at a time

. ./path.sh
. utils/parse_options.sh
. utils/corpus.sh

no_download "no checksum of EmoDB is published"
use_corpus "the folder with EmoDB's wav/"
[[ -d $corpus/wav ]] || fail "$corpus/wav: no such folder; --corpus is the folder above EmoDB's wav/"
[[ -n ${emotions// /} ]] || fail "--emotions: names none"
for emotion in $emotions; do
  [[ $emotion == @(anger|boredom|disgust|fear|happiness|neutral|sadness) ]] \
    || fail "--emotions: '$emotion'; known: anger boredom disgust fear happiness neutral sadness"
done

make_work
find -L "$corpus/wav" -maxdepth 1 \( -iname '[!.]*.wav' -o -iname '[!.]*.flac' \) >"$work/audio"
[[ -s $work/audio ]] || fail "$corpus/wav: holds no <name>.{wav,flac}"

cat >"$work/sentences" <<'END'
a01 Der Lappen liegt auf dem Eisschrank.
a02 Das will sie am Mittwoch abgeben.
a04 Heute abend könnte ich es ihm sagen.
a05 Das schwarze Stück Papier befindet sich da oben neben dem Holzstück.
a07 In sieben Stunden wird es soweit sein.
b01 Was sind denn das für Tüten, die da unter dem Tisch stehen?
b02 Sie haben es gerade hochgetragen und jetzt gehen sie wieder runter.
b03 An den Wochenenden bin ich jetzt immer nach Hause gefahren und habe Agnes besucht.
b09 Ich will das eben wegbringen und dann mit Karl was trinken gehen.
b10 Die wird auf dem Platz sein, wo wir sie immer hinlegen.
END

# The table of make_data_dir.py. Genders and sentences are those that the corpus's web page lists.
# What is unknown is left empty, and reported there.
awk -v wanted=" $emotions " '
  BEGIN {
    OFS = "\t"
    print "utt", "spk", "gender", "audio", "text", "emotion", "language"
    split("03 10 11 12 15", men, " ")
    for (i in men) gender[men[i]] = "m"
    split("08 09 13 14 16", women, " ")
    for (i in women) gender[women[i]] = "f"
    emotion["W"] = "anger"
    emotion["L"] = "boredom"
    emotion["E"] = "disgust"
    emotion["A"] = "fear"
    emotion["F"] = "happiness"
    emotion["N"] = "neutral"
    emotion["T"] = "sadness"
  }
  of == "text" { text[$1] = substr($0, 5); next }
  {
    name = $0
    sub(/.*\//, "", name)
    sub(/\.[A-Za-z]*$/, "", name)
    if (name !~ /^[0-9][0-9][ab][0-9][0-9][A-Z][a-z]?$/) {
      print "prepare.sh: " $0 ": no <speaker><sentence><emotion><version>" >"/dev/stderr"
      strange++
      next
    }
    spk = substr(name, 1, 2)
    felt = emotion[substr(name, 6, 1)]
    if (felt != "" && index(wanted, " " felt " ") == 0) left_out[felt]++
    else print spk "-" name, spk, gender[spk], $0, text[substr(name, 3, 3)], felt, "de"
  }
  END {
    for (felt in left_out)
      print "left out: " left_out[felt] " utterances of " felt " (--emotions)" >"/dev/stderr"
    if (strange) exit 2
  }
' of=text "$work/sentences" of=audio "$work/audio" >"$work/all.tsv"

local/make_data_dir.py --nj "$nj" --allow-loss "$allow_loss" \
  --genders-from "the list in prepare.sh" "$work/all.tsv" "$work/all"
local/make_trials.py --seed "$seed" --enrol-utts "$enrol_utts" \
  --speakers "$speakers" --rest "data/$train_set" "$work/all" "data/$evaluation"
validate_sets "$train_set" "$evaluation"_{enrolls,trials_f,trials_m}

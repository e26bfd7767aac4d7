#!/usr/bin/env bash
# A table of recordings -> data/<train_set> and data/<evaluation>_{enrolls,trials_f,trials_m}; utils/new_corpus.sh makes it.
#   ./prepare.sh --corpus recordings.tsv
# A corpus in another form writes such a table here first (egs/README.md; egs/an4/prepare.sh is a short example).
set -euo pipefail

corpus=corpus            # folder of utterances.tsv, or such a table itself: file speaker sex text
evaluation=mycorpus_test # name of the evaluation sets
train_set=train          # name of the training and pool set: the speakers not evaluated
train_from=              # data directory of another corpus to be that set; all speakers are evaluated then
speakers=                # speakers of each sex to evaluate, drawn by the seed; empty: half of those of the rarer one, at most 20
enrol_utts=5             # enrolment utterances of each of them
seed=0                   # of the choice of speakers and enrolment utterances
allow_loss=0             # recordings that may be left out (no text, unreadable audio)
download=false           # nothing to fetch
nj=2                     # audio files read at a time

. ./path.sh
. utils/parse_options.sh
. utils/corpus.sh

no_download "it is a table of your own"
table=$corpus
[[ ! -d $corpus ]] || table=$corpus/utterances.tsv
[[ -f $table ]] || fail "$table: no such table of recordings; --corpus names one, or the folder of utterances.tsv"
make_work
local/make_data_dir.py --nj "$nj" --allow-loss "$allow_loss" --genders-from "$table" "$table" "$work/all"
mapfile -t genders < <(awk '{ print $2 == "other" ? "mixed" : $2 }' "$work/all/spk2gender" | sort -u)
how=(--seed "$seed" --enrol-utts "$enrol_utts" --genders "${genders[@]}")
if [[ -n $train_from ]]; then
  local/make_trials.py "${how[@]}" -- "$work/all" "data/$evaluation"
  utils/copy_data_dir.py "$train_from" "data/$train_set"
else
  if [[ -z $speakers ]]; then
    speakers=$(awk -v enrol="$enrol_utts" '
      NR == FNR { able[$1] = NF - 1 > enrol; next }
      able[$1] && ++every && $2 != "other" { n[$2]++ }
      END {
        least = every < 40 ? every : 40
        for (sex in n) if (n[sex] < least) least = n[sex]
        print (least < 4 ? 2 : int(least / 2))
      }
    ' "$work/all/"{spk2utt,spk2gender})
  fi
  local/make_trials.py "${how[@]}" --speakers "$speakers" --rest "data/$train_set" -- "$work/all" "data/$evaluation"
fi
validate_sets "$train_set" "$evaluation"_enrolls "${genders[@]/#/${evaluation}_trials_}"

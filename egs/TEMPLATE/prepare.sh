#!/usr/bin/env bash
# A new corpus: fill in how its files become data directories. This is all that a corpus must write, beside conf/.
set -euo pipefail

corpus=        # folder of the corpus
nj=2           # jobs at a time
download=false # fetch the corpus first
seed=0         # seed of the choice of enrolment utterances

. ./path.sh
. ./cmd.sh
. utils/parse_options.sh
. utils/corpus.sh

use_corpus "the folder of its audio"
echo "prepare.sh: write a table of the utterances of $corpus here (egs/README.md; egs/an4/prepare.sh is a short example)," \
  "then make data/.prepare/all of it with local/make_data_dir.py, and data/train and the evaluation sets with local/make_trials.py; --nj $nj --seed $seed --download $download" >&2
exit 2

#!/usr/bin/env bash
# Makes a corpus that runs, egs/NAME, of recordings or of a Kaldi data directory.
#   utils/new_corpus.sh NAME TABLE        TABLE: tabs, a header line `file speaker sex text`, a line for each recording
#   utils/new_corpus.sh NAME KALDI_DIR    wav.scp utt2spk spk2gender [segments text]; its commands are run where you are
# Then: cd egs/NAME && ./run.sh           (egs/README.md; local/make_table.py --help has all columns)
set -euo pipefail
unset CDPATH
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

die() {
  printf 'new_corpus.sh: %s\n' "$*" >&2
  exit 2
}

[[ $# -eq 2 ]] || {
  sed -n '2,5s/^# *//p' "$0" >&2
  exit 2
}
name=$1 source=$2 corpus=$root/egs/$1
[[ $name =~ ^[a-z][a-z0-9_]*$ ]] || die "'$name': a name has small letters, digits and _, a letter first"
[[ ! -e $corpus ]] || die "$corpus is there; choose another name, or remove it"
[[ -e $source ]] || die "$source: no such file or folder"
. "$root/path.sh"

made=$root/egs/.$name.unfinished
rm -rf "$made"
trap 'rm -rf "$made"' EXIT
mkdir -p "$made/conf"
"$root/local/make_table.py" "$source" "$made/corpus"
mapfile -t sexes < <(awk -F'\t' '
  NR == 1 { for (i = 1; i <= NF; i++) if ($i == "sex") of = i }
  NR > 1 { print $of == "other" ? "mixed" : $of }
' "$made/corpus/utterances.tsv" | sort -u)
cd "$made"
for file in prepare.sh conf/recipe.conf; do
  sed "s/mycorpus/$name/g" "../TEMPLATE/$file" >"$file"
done
[[ "${sexes[*]}" == "f m" ]] || echo "genders=\"${sexes[*]}\" # of all its speakers" >>conf/recipe.conf
chmod +x prepare.sh
ln -s ../TEMPLATE/{run,generators,nist}.sh ../../{steps,utils,local} ../../{path,cmd}.sh .
for link in ../TEMPLATE/conf/*; do
  [[ $link == */recipe.conf ]] || ln -s "../$link" conf/
done
mv "$made" "$corpus"
echo "egs/$name: ready; cd egs/$name && ./run.sh"

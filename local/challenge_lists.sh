#!/usr/bin/env bash
# The figures of 002's Tables 2 to 4 from scores that VoicePrivacy 2020's own recipe wrote of its baseline B1, on its
# enrolment-trial lists: no audio is needed, and no evaluator of ours. What needs all pairs of segments, which were not
# scored, is by the cosine of its x-vectors: DeID, G_VD, and leakage as in 003. In egs/vpc2020:
#   local/challenge_lists.sh /data/vpc2020_libri_test   with data/<set>/trials, results/ASV-<enrol>-<trial>/scores and,
#                                                       for the latter, xvectors/<trial>{,_anon}/xvector.ark
# Results: exp/lists/results/metrics.csv, and beside the papers' tables noe_2020.md and noe_2022.md.
set -euo pipefail
. ./path.sh
[[ $# -eq 1 && -d $1/results ]] || {
  echo "usage: local/challenge_lists.sh DIR    DIR holds data/ and results/ of VoicePrivacy 2020" >&2
  exit 2
}
corpus=$(cd -- "$1" && pwd)
folders=() both=() utt2spk=()

figures() { # SPLIT GENDER SYSTEM FAMILY ATTACKER EVALUATOR CONDITION COMMAND...
  local labels=("${@:1:7}") out=exp/lists/metrics/$3/$4_$5.${6//\//+}/$7/$1
  shift 7
  utils/stamps.py "$out" "$@" "$out/metrics.json" '&&' local/label_figures.py "${labels[@]}" "$out"
  folders+=(--figures "$out")
}

score_all() { # CONDITION ROWS COLUMNS: all pairs of x-vectors of $trial
  local out=exp/lists/pairs/$1/$trial
  mkdir -p "$out"
  steps/score_pairs.py --backend cosine_raw --utt2spk "$corpus/data/$trial/utt2spk" "$2" "$3" "$out/trials" "$out/scores"
  pairs+=("$out/trials" "$out/scores")
}

for g in f m; do
  enrol=libri_test_enrolls trial=libri_test_trials_$g
  OO=("$corpus/data/$trial/trials" "$corpus/results/ASV-$enrol-$trial/scores")
  OA=("$corpus/data/${trial}/trials" "$corpus/results/ASV-$enrol-${trial}_anon/scores")
  AA=("$corpus/data/${trial}/trials" "$corpus/results/ASV-${enrol}_anon-${trial}_anon/scores")
  spk=(--utt2spk "$corpus/data/$trial/utt2spk" --bootstrap 1000)
  figures "libri_test_$g" $g original verification unprotected x-vector/plda OO local/compute_metrics.py verification --recordings "${spk[@]}" "${OO[@]}"
  figures "libri_test_$g" $g B1 verification ignorant x-vector/plda OA local/compute_metrics.py verification --recordings "${spk[@]}" "${OA[@]}"
  figures "libri_test_$g" $g B1 verification lazy_informed x-vector/plda AA local/compute_metrics.py verification --recordings "${spk[@]}" "${AA[@]}"
  figures "libri_test_$g" $g B1 gains - x-vector/plda OO-OA-AA local/compute_metrics.py gains "${spk[@]}" "${OO[@]}" "${OA[@]}" "${AA[@]}"
  original=$corpus/xvectors/$trial/xvector.ark protected=$corpus/xvectors/${trial}_anon/xvector.ark
  if [[ ! -f $original || ! -f $protected ]]; then
    echo "$corpus: no xvectors/$trial{,_anon}/xvector.ark: no DeID and G_VD of $trial" >&2
    continue
  fi
  both+=("$original" "$protected") utt2spk+=("$corpus/data/$trial/utt2spk")
  pairs=()
  score_all OO "$original" "$original"
  score_all OP "$original" "$protected"
  score_all PP "$protected" "$protected"
  figures "libri_test_$g" $g B1 similarity - x-vector/cosine_raw OO-OP-PP local/compute_metrics.py similarity "${spk[@]}" "${pairs[@]}"
done
if ((${#both[@]} == 4)); then # women and men together: canonical correlation needs more segments than twice the values
  out=exp/lists/segments
  mkdir -p "$out"
  LC_ALL=C sort "${utt2spk[@]}" >"$out/utt2spk"
  cat "${both[0]}" "${both[2]}" >"$out/original.ark"
  cat "${both[1]}" "${both[3]}" >"$out/protected.ark"
  figures libri_test - B1 leakage - x-vector/cosine_raw OP local/compute_metrics.py leakage --utt2spk "$out/utt2spk" --bootstrap 1000 \
    "$out/original.ark" "$out/protected.ark"
fi
PSEUDOVOX_COMMAND="local/challenge_lists.sh $1" local/collect_results.py --corpus-name vpc2020 "${folders[@]}" exp/lists/results
for paper in noe_2020 noe_2022; do
  local/repeat_paper.py "$paper" exp/lists/results exp/lists/results
done

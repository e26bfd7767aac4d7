#!/usr/bin/env bash
# Emotions of a participant of VoicePrivacy 2024 or 2026: UAR of sets that have no trials, of original and protected speech.
#   local/challenge_emotions.sh DATA SUFFIX NAME RECOGNISER SET...
#   local/challenge_emotions.sh /data/vpc/data _mcadams theirs hub:MODEL IEMOCAP_dev IEMOCAP_test
# DATA/<set> is a data directory (wav.scp, utt2spk, utt2emo, spk2fold), DATA/<set><suffix> has the protected audio. NAME is
# the system's, RECOGNISER as of steps/recognise_emotion.py. Results: exp/emotion_sets/results, for local/report_challenge.py.
set -euo pipefail
. ./path.sh
[[ $# -ge 5 ]] || {
  sed -n '3,6s/^# *//p' "$0" >&2
  exit 2
}
command="local/challenge_emotions.sh $*"
data=$1 suffix=$2 name=$3 recogniser=$4 out=exp/emotion_sets
shift 4
folders=()

measure() { # SET SYSTEM CONDITION SPEECH: what is heard in SPEECH, beside what DATA/SET says
  local heard=$out/$2/$1 figures=$out/$2/$1.uar
  utils/stamps.py "$heard" steps/recognise_emotion.py "$recogniser" "$4" "$heard"
  utils/stamps.py "$figures" local/compute_utility.py emotions --bootstrap 1000 "$data/$1" "$heard/emotions" "$figures/metrics.json" \
    '&&' local/label_figures.py "${1/_track2/}" - "$2" utility - "$recogniser" "$3" "$figures"
  folders+=(--figures "$figures")
}

for set; do
  speech=$out/data/$set$suffix
  utils/stamps.py "$speech" local/check_external.py "$data/$set" "$data/$set$suffix" "$speech"
  measure "$set" original OO "$data/$set"
  measure "$set" "$name" PP "$speech"
done
PSEUDOVOX_COMMAND=$command local/collect_results.py --corpus-name emotion_sets "${folders[@]}" "$out/results"

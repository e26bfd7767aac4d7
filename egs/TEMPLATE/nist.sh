#!/usr/bin/env bash
# The identity-leakage study of NIST (paper 003): is the speaker hidden, is his pseudo-voice kept, are two profiles two
# voices? docs/studies.md. It takes corpus and encoders of run.sh, and makes what is missing.
#   ./nist.sh --systems "knnvc b2r copy"                      systems of conf/systems
#   ./nist.sh --external "theirs=/data/p1,/data/p2"           any other system: a data directory of protected audio a profile
#   ./nist.sh --evaluators "ecapa_mini/cosine resemblyzer/cosine"
# Results: exp/nist/<set>/results/RESULTS.md (beside 003's Tables 5 to 8) and metrics.csv.
set -euo pipefail

stage=0             # first stage to run
stop_stage=5        # last stage to run
systems="knnvc b2r" # what is studied: conf/systems/<system>.yaml; kNN-VC has pseudo-profiles, of others a profile is a draw
external=           # other systems: "<name>=<data directory of profile 1>[,<of profile 2>] ..."
profiles=8          # pseudo-profiles of a speaker
tested="1 2"        # those that are tested; cross-profile compares the first two
sources=            # data directories whose segments are studied; empty: the trial sets
same_gender=true    # compare speakers of one gender only
sessions=           # table of each segment's session: segments of one session are not compared

. local/options.sh
. utils/parse_options.sh
. utils/recipe.sh
. local/recipe.sh
begin_recipe "$@"
check_numbers --tested "$tested"
recipe_start "$command_line"

use_sets
trial_sets=("${sets[@]:1}")
sources=${sources:-${trial_sets[*]/#/data/}}
read -ra source_list <<<"$sources"
read -ra tested_list <<<"$tested"
set=${evaluation}_nist
sets=("$set") # what is protected here
out=exp/nist/$set
generated_conf=$out/conf
need_data "data/$train_set" "${evaluated[@]/#/data/}" "${source_list[@]}"
names=() # all systems, external ones too
for system in $systems; do
  check_system "$system"
  names+=("$system")
done
declare -A folder_of # data directory of an external system's profile
for word in $external; do
  [[ $word == ?*=?* ]] || die "--external '$word': <name>=<data directory>[,<data directory>] is expected"
  system=${word%%=*}
  [[ " original ${names[*]} " != *" $system "* ]] \
    || die "--external '$word': $system is the name of original speech or of another system; choose another name"
  names+=("$system")
  IFS=, read -ra folders <<<"${word#*=}"
  once "--external '$word'" "${folders[*]}"
  for place in "${!folders[@]}"; do
    [[ $place -lt ${#tested_list[@]} ]] || die "--external '$word': more directories than profiles tested (--tested \"$tested\")"
    [[ -d ${folders[place]} ]] || $list_stages \
      || die "--external '$word': there is no folder '${folders[place]}'; give the data directory of profile ${tested_list[place]}"
    folder_of["$system/${tested_list[place]}"]=${folders[place]}
  done
done
[[ ${#names[@]} -ge 1 ]] || die "nothing to study: give --systems or --external"
declare -A draw_of # option of anonymise.py that gives a system's profile
for system in $systems; do
  $list_stages || for profile in "${tested_list[@]}"; do
    draw_of["$system/$profile"]=$(steps/vary_system.py --profile "$profile" --profiles "$profiles" \
      "conf/systems/$system.yaml" "$generated_conf/${system}_p$profile.yaml")
  done
done

# Sets of a system: the profiles that there are. A system that draws nothing has one.
use_profiles() { # SYSTEM
  local profile
  there=()
  for profile in "${tested_list[@]}"; do
    if [[ -v folder_of[$1/$profile] ]] || { [[ -v draw_of[$1/$profile] ]] \
      && { [[ $profile == "${tested_list[0]}" ]] || is_random "$1_p${tested_list[0]}"; }; }; then
      there+=("$profile")
    fi
  done
}

if in_stage 0 "segments, trial sets"; then
  step "data/$set" -- combine_data_dirs.py "data/$set" "${source_list[@]}"
  options=(--same-gender "$same_gender" --training "data/$train_set")
  [[ $pool_set == "$train_set" ]] || options+=(--training "data/$pool_set")
  [[ -z $sessions ]] || options+=(--sessions "$sessions")
  step "$out/trials" --also "$out/trials/trial1" --also "$out/trials/trial2" --also "$out/trials/cross" -- \
    job "$out/trials" local/make_nist_trials.py "${options[@]}" "data/$set" "$out/trials"
fi

if in_stage 1 "evaluators, x-vectors of the original segments, what the systems need"; then
  make_evaluators
  use_encoder "$voice_encoder"
  for system in $systems; do
    use_system "${system}_p${tested_list[0]}"
    for need in $needs; do make "$need"; done
  done
fi

if in_stage 2 "protect: the profiles tested"; then
  use_encoder "$voice_encoder"
  for system in $systems; do
    use_system "${system}_p${tested_list[0]}"
    for profile in "${tested_list[@]}"; do
      if [[ $profile != "${tested_list[0]}" ]] && ! $dry_run && ! is_random "${system}_p${tested_list[0]}"; then
        log "$system draws nothing, so there is one profile: no profile $profile, no cross-profile trials"
        continue
      fi
      read -ra draw <<<"${draw_of["$system/$profile"]}"
      protect "${system}_p$profile" "$set" "data/${set}_${system}_p$profile" "${draw[@]}"
    done
  done
  for key in "${!folder_of[@]}"; do
    made_set=data/${set}_${key%/*}_p${key#*/}
    step "$made_set" -- job "$made_set" local/check_external.py "data/$set" "${folder_of[$key]}" "$made_set"
  done
fi

if in_stage 3 "x-vectors of the protected segments"; then
  for evaluator in $evaluators; do
    use_evaluator "$evaluator"
    for system in "${names[@]}"; do
      use_profiles "$system"
      joined=()
      for place in "${!there[@]}"; do
        make_xvectors "${set}_${system}_p${there[place]}"
        joined+=("p$((place + 1))=$xvectors/${set}_${system}_p${there[place]}")
      done
      [[ ${#joined[@]} -ge 2 ]] || continue
      pair=$xvectors/${set}_${system}_cross
      step "$pair" -- job "$pair" steps/join_xvectors.py "$pair" "${joined[@]:0:2}"
    done
  done
fi

# Scores and verification figures of a list: SYSTEM NAME CONDITION LIST UTT2SPK ENROL TRIAL
compare() {
  local path=$1/$2.$label/$3/$set
  step "$out/scores/$path" -- job "$out/scores/$path" steps/score_trials.py --backend "$scorer" --asnorm "$asnorm" \
    "$xvectors/$6/xvector.scp" "$xvectors/$7/xvector.scp" "$out/trials/$4/trials" "$out/scores/$path/scores"
  step "$out/metrics/$path" -- job "$out/metrics/$path" local/compute_metrics.py verification \
    --utt2spk "$5" --bootstrap "$bootstrap" --seed "$seed" \
    "$out/trials/$4/trials" "$out/scores/$path/scores" "$out/metrics/$path/metrics.json"
}

if in_stage 4 "scores and figures"; then
  for evaluator in $evaluators; do
    use_evaluator "$evaluator"
    compare original trial2 OO trial2 "data/$set/utt2spk" "$set" "$set"
    for system in "${names[@]}"; do
      use_profiles "$system"
      for profile in "${there[@]}"; do
        mine=${set}_${system}_p$profile
        compare "$system" "trial1_p$profile" OP trial1 "data/$set/utt2spk" "$set" "$mine"
        compare "$system" "trial2_p$profile" PP trial2 "data/$set/utt2spk" "$mine" "$mine"
        folder=$out/metrics/$system/leakage_p$profile.$label/OP/$set
        step "$folder" -- job "$folder" local/compute_metrics.py leakage --utt2spk "data/$set/utt2spk" \
          --bootstrap "$bootstrap" --seed "$seed" \
          "$xvectors/$set/xvector.scp" "$xvectors/$mine/xvector.scp" "$folder/metrics.json"
      done
      [[ ${#there[@]} -ge 2 ]] || continue
      compare "$system" cross PP cross "$out/trials/cross/utt2spk" "${set}_${system}_cross" "${set}_${system}_cross"
    done
  done
fi

if in_stage 5 "tables"; then
  folders=()
  for evaluator in $evaluators; do
    use_evaluator "$evaluator"
    folders+=("$out/metrics/original/trial2.$label/OO/$set")
    for system in "${names[@]}"; do
      use_profiles "$system"
      for profile in "${there[@]}"; do
        for part in "leakage_p$profile.$label/OP" "trial1_p$profile.$label/OP" "trial2_p$profile.$label/PP"; do
          folders+=("$out/metrics/$system/$part/$set")
        done
      done
      [[ ${#there[@]} -lt 2 ]] || folders+=("$out/metrics/$system/cross.$label/PP/$set")
    done
  done
  step "$out/results" -- job "$out/results" local/collect_nist.py --corpus-name "$corpus_name" "$out/results" "${folders[@]}"
fi
recipe_end 5 "results: $PWD/$out/results/RESULTS.md"

# Sourced by run.sh after local/recipe.sh: attackers who learn from protected speech. docs/attackers.md explains;
# local/protocols/attackers.py is the one table of who knows what, and local/plan_attacks.py what is run.
#
#   use_evaluator ENCODER/BACKEND    (local/recipe.sh) the evaluator that the attacker starts from, then
#   use_informed HOW SYSTEM LEVEL    the one he makes of it with the training set protected by SYSTEM at LEVEL
#   make_informed HOW SYSTEM LEVEL   makes that: protected training set, encoder, x-vectors, back end
# So whoever runs other protocols needs these only, and systems at a level (use_system says a system's own).

# shellcheck shell=bash disable=SC2154,SC2034  # the variables are the recipe's

# Sets plan: a line an attack (local/plan_attacks.py); says what was asked for and does not exist.
make_plan() {
  local lines system confs=()
  for system in $systems; do confs+=("conf/systems/$system.yaml"); done
  lines=$(local/plan_attacks.py --attackers "$attackers" --informed-level "$informed_level" \
    --evaluators "$evaluators" "${confs[@]}")
  mapfile -t plan <<<"$lines"
}

# Sets attacks: the lines of the plan with an evaluator, without its name.
use_attacks() { # ENCODER/BACKEND
  local line
  attacks=()
  for line in "${plan[@]}"; do
    [[ ${line%% *} != "$1" ]] || attacks+=("${line#* }")
  done
}

# Whether the figures of a folder are of an attack of this run (attacks), or of no attack: those of an
# attacker whom an earlier run had and this one has not might be of other speech. Calibration is asked for
# by itself: a system that drew something may draw nothing now.
is_asked() { # exp/metrics/SYSTEM/ATTACKER.LABEL/CONDITION/SPLIT
  local who=${1#exp/metrics/} line system_of attacker_of
  system_of=${who%%/*} attacker_of=${who#*/}
  [[ $attacker_of != calibration.* ]] || return 1
  [[ $attacker_of != reid_* ]] || asks_reid || return 1
  [[ $attacker_of != gains.* ]] || asks_gains || return 1
  attacker_of=${attacker_of%%.*} attacker_of=${attacker_of#legal_} attacker_of=${attacker_of#reid_}
  [[ $attacker_of == @(ignorant|aligned|lazy_informed|semi_informed*|white_box*) ]] || return 0
  for line in "${attacks[@]}"; do
    [[ $line != "$system_of $attacker_of "* ]] || return 0
  done
  return 1
}

# Whether attackers are asked whom they name: all are where the aligned one is, who is judged by it.
asks_reid() {
  [[ " $attackers " == *" aligned "* ]]
}

# Whether gains on the enrolment-trial lists can be had: they take an ignorant and a lazy-informed attacker.
asks_gains() {
  [[ " $attackers " == *" ignorant "* && " $attackers " == *" lazy_informed "* ]]
}

# Sets system, attacker, condition, enrol, trial, how and training_level of a line of attacks, and what
# use_informed sets. The evaluator has to be in use as it came (use_evaluator, use_part).
use_attack() { # LINE
  read -r system attacker condition enrol trial how training_level <<<"$1"
  use_informed "$how" "$system" "$training_level"
}

# Sets training (the protected training set), and name, model, xvectors and scorer (the back end) of the
# evaluator that is made with it of the one in use. HOW: scratch, finetuned, backend (the encoder as it is);
# original, aligned: nothing changes (level -). label stays that of the evaluator in use.
use_informed() { # HOW SYSTEM LEVEL
  training=
  [[ $3 != - ]] || return 0
  training=${train_set}_$2_$3
  case $1 in
    backend) informed=$name.$training ;;
    *)
      base_model=$model informed=$name.$training.$1
      name=$informed model=exp/encoders/$informed xvectors=exp/xvectors/$informed
      ;;
  esac
  [[ $scorer == cosine ]] || scorer=exp/backends/$informed
}

# Makes data/<train_set>_<system>_<level>: the training set protected by a system at a level (that of its
# file, or instead of it utt, spk, perm, const), with all that the system needs of it. A speaker is never
# his own target. Leaves the encoder of the x-vectors that systems choose voices by in use.
protect_training() { # SYSTEM LEVEL
  local need options=() out=data/${train_set}_$1_$2
  [[ " $made " != *" $out "* ]] || return 0
  made+=" $out"
  use_encoder "$voice_encoder"
  use_system "$1"
  for need in $needs; do
    make_for_training "$need"
  done
  [[ $2 == "$level" ]] || options=(--level "$2")
  protect "$1" "$train_set" "$out" "${options[@]}"
}

# Makes the encoder that use_informed has set; nothing where the encoder stays as it is.
make_informed_encoder() { # HOW
  local conf=conf/encoders/$encoder.yaml options=(--seed "$seed" --device "$device")
  [[ $1 == scratch || $1 == finetuned ]] || return 0
  [[ " $made " != *" $name/encoder "* ]] || return 0
  made+=" $name/encoder"
  [[ -f $conf ]] || conf=$base_model/encoder.yaml # an encoder that was trained elsewhere
  [[ $1 != finetuned ]] || options+=(--init-from "$base_model")
  use_unseen
  step "$model" -- job "$model" steps/train_encoder.py "${options[@]}" "${unseen[@]}" \
    "$conf" "data/$training" "$model"
}

# Makes the x-vectors of the protected training set and the back end that use_informed has set.
make_informed_backend() {
  [[ $scorer != cosine ]] || return 0
  [[ " $made " != *" $scorer "* ]] || return 0
  made+=" $scorer"
  make_session_xvectors "$training"
  make_backend "$training" "$scorer"
}

# Scores of the attack and split in use, and a record of what it was (attacker.json).
score_attack() { # OUT
  local enrolled tried vectors learnt=()
  enrolled=$(protected "${sets[0]}" "$enrol") tried=$(protected "$trials" "$trial")
  vectors=("$xvectors/$enrolled" "$xvectors/$tried")
  [[ -z $training ]] || learnt=(--training "data/$training")
  if [[ $how == aligned ]]; then
    align_trials "exp/aligned/$label/$tried" "$tried"
    vectors=("exp/aligned/$label/$tried/enrol" "exp/aligned/$label/$tried/trial")
    learnt=(--pairs "data/${sets[0]}_$trial")
  fi
  step "$1" -- job_then_job "$1" steps/score_trials.py --backend "$scorer" --asnorm "$asnorm" \
    "${vectors[@]}" "data/$trials/trials" "$1/scores" \
    %then local/record_attack.py --attacker "$attacker" --enrol "data/$enrolled" --trial "data/$tried" \
    "${learnt[@]}" --encoder "$model" --backend "$scorer" --asnorm "$asnorm" "$1/attacker.json"
}

# The x-vectors of the aligned attacker: he has the enrolment before and after protection, and rotates the
# protected trials TRIED as these pairs teach him. A back end that knows original x-vectors gets them where
# these lie; the cosine has them centred.
align_trials() { # OUT TRIED
  local space=original enrolled=$xvectors/${sets[0]}
  [[ $scorer != cosine ]] || space=centred
  step "$1" --also "$1/enrol" --also "$1/trial" -- job "$1" local/align_xvectors.py --space "$space" \
    --pairs "$enrolled" "${enrolled}_$trial" "data/${sets[0]}" \
    "$enrolled" "data/${sets[0]}" "$xvectors/$2" "data/$trials" "$1"
}

job_then_job() { # OUT PROGRAM ARGUMENTS... %then PROGRAM2 ARGUMENTS...
  local out=$1 words=()
  shift
  while [[ $1 != %then ]]; do
    words+=("$1")
    shift
  done
  job "$out" "${words[@]}"
  job "$out" "${@:2}"
}

# All of one evaluator, one after the other. Leaves it in use.
make_informed() { # HOW SYSTEM LEVEL; the evaluator in use is that of use_evaluator
  local evaluator=$encoder/$backend
  [[ $3 != - ]] || return 0
  protect_training "$2" "$3"
  use_evaluator "$evaluator"
  make encoder
  use_informed "$@"
  make_informed_encoder "$1"
  make_informed_backend
}

# Of all attacks of the plan; encoders are trained side by side, nj at a time.
make_all_informed() {
  local attack evaluator what
  for what in speech encoder backend; do
    for attack in "${plan[@]}"; do
      evaluator=${attack%% *}
      use_evaluator "$evaluator"
      use_attack "${attack#* }"
      [[ $training_level != - ]] || continue
      case $what in
        speech) protect_training "$system" "$training_level" ;;
        encoder) along make_informed_encoder "$how" ;;
        backend) make_informed_backend ;;
      esac
    done
    steps_wait
  done
}

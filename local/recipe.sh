# Sourced by run.sh and the studies beside it: what their stages make, each thing once, and the folders where things
# stand. Needs the recipe's options (local/options.sh), utils/recipe.sh, and begin_recipe, use_sets to be called first.

# shellcheck shell=bash disable=SC2154,SC2034  # the variables are the recipe's

# Of programs that compute as well on a processor; empty there, so that what was made before stays up to date.
on_device=()
[[ $device == cpu ]] || on_device=(--device "$device")

# Checks what every recipe is given. Sets first, the evaluator named first, and voice_encoder where it was left to it.
begin_recipe() { # "$@"
  [[ $# -eq 0 ]] || die "unexpected argument '$1'; see --help"
  check_numbers --nj "$nj"
  [[ $device == @(cpu|cuda) ]] || die "--device: '$device'; known: cpu, cuda"
  first=${evaluators%% *}
  voice_encoder=${voice_encoder:-${first%/*}}
  once --systems "${systems-}"
  once --generators "${generators-}"
  once --evaluators "$evaluators"
  once --asr "${asr-}"
  once --emotion "${emotion-}"
  $list_stages || check_names
}

# Fails where a list names something twice: its figures would count twice, or two jobs write one folder.
once() { # OPTION LIST
  local word seen=
  for word in $2; do
    [[ " $seen " != *" $word "* ]] || die "$1: $word is named twice; once is enough"
    seen+=" $word"
  done
}

# Fails where a list is empty, names something twice, or something else than the extended regular expression says.
check_words() { # OPTION LIST EXPRESSION [EXPECTED]
  local word words expected=${4-known: ${3//|/, }}
  read -ra words <<<"$2"
  [[ ${#words[@]} -ge 1 ]] || die "$1: names none; $expected"
  for word in "${words[@]}"; do
    [[ $word =~ ^($3)$ ]] || die "$1: '$word'; $expected"
  done
  once "$1" "$2"
}

check_numbers() { # OPTION LIST
  check_words "$1" "$2" "[1-9][0-9]*" "a whole number above 0 is expected"
}

check_sizes() { # LIST [EXPRESSION]; the expression of what may follow a size
  local size sizes=
  check_words --sizes "$1" "([2-9]|[1-9][0-9]+)${2-}" "a whole number from 2 on is expected${2:+, or <number>:<populations>}"
  for size in $1; do sizes+=" ${size%%:*}"; done
  once --sizes "$sizes"
}

check_backend() { # ENCODER/BACKEND
  [[ $1 == ?*/@(plda|plda_asnorm|cosine) ]] \
    || die "--evaluators: '$1'; <encoder>/<back end> is expected, with plda, plda_asnorm or cosine as the back end"
}

check_encoder() { # ENCODER
  [[ $1 == @(resemblyzer|hub:?*|given:?*) || -f conf/encoders/$1.yaml || -f $1/encoder.yaml ]] \
    || die "--evaluators, --voice-encoder: '$1' is no encoder; known: resemblyzer, hub:<model>, given:<folder>," \
      "a folder with encoder.yaml, and in conf/encoders: $(cd conf/encoders && echo *.yaml)"
}

# Fails where an evaluator does not exist, or two encoders would share the folders of their x-vectors and scores.
check_names() {
  local evaluator encoder
  declare -A encoder_of
  for evaluator in $evaluators; do check_backend "$evaluator"; done
  for evaluator in $evaluators "$voice_encoder/"; do
    encoder=${evaluator%/*}
    check_encoder "$encoder"
    name_encoder "$encoder"
    [[ ${encoder_of[$name]-$encoder} == "$encoder" ]] \
      || die "--evaluators, --voice-encoder: ${encoder_of[$name]} and $encoder would both be called $name; rename a folder"
    encoder_of[$name]=$encoder
  done
}

# Sets sets: the names of the evaluation sets, enrolment first; evaluated: the same, also where a study then goes over
# other sets; and pool_set, where it was left to train_set.
use_sets() {
  local gender
  check_words --genders "$genders" "f|m"
  sets=("${evaluation}_enrolls")
  for gender in $genders; do sets+=("${evaluation}_trials_$gender"); done
  pool_set=${pool_set:-$train_set}
  [[ " ${sets[*]} " != *" $pool_set "* ]] || die "--pool-set: $pool_set is evaluated; name a set of other people"
  $list_stages || [[ -d data/$pool_set || " $train_set ${also_prepared-} " == *" $pool_set "* ]] \
    || die "--pool-set: data/$pool_set is missing; link or make it, or name it in also_prepared if prepare.sh makes it"
  evaluated=("${sets[@]}")
}

# Sets corpus and prepare_options as in a finished stage 0 where this command does not name them, and says so. Options
# of another corpus than this command's are left alone.
use_remembered() {
  local words known='' told=() asked=" $command_line "
  mapfile -t words < <(stamps.py command "data/$train_set")
  words=("${words[@]:3}") # after ./prepare.sh --seed SEED
  if [[ ${words[0]-} == --corpus ]]; then
    known=${words[1]}
    words=("${words[@]:2}")
  fi
  if [[ -z $corpus && $asked != *" --corpus"[\ =]* && -n $known ]]; then
    corpus=$known
    told+=(--corpus "$corpus")
  fi
  [[ $corpus == "$known" ]] || return 0
  if [[ -z $prepare_options && $asked != *" --prepare"[-_]options[\ =]* && ${#words[@]} -gt 0 ]]; then
    prepare_options=${words[*]}
    told+=("--prepare-options='$prepare_options'")
  fi
  [[ ${#told[@]} -eq 0 ]] || log "as stage 0 was finished before: ${told[*]}"
}

# Fails where a study lacks what run.sh makes.
need_data() { # FOLDER...
  local folder
  ! $list_stages || return 0
  for folder; do
    [[ -d $folder ]] || die "$folder is missing; make it with ./run.sh --stop-stage 0"
  done
}

check_system() { # SYSTEM
  [[ -f conf/systems/$1.yaml ]] || die "conf/systems/$1.yaml is missing; there are: $(cd conf/systems && echo *.yaml)"
}

# Sets name, by which the folders of an encoder are called.
name_encoder() { # ENCODER
  name=${1//[:\/]/_}
  [[ ! -d $1 ]] || name=${1##*/} # trained elsewhere, for example for another corpus
  [[ $1 != given:* ]] || name=given_${1##*[:/]}
}

# Sets name, model and xvectors of an encoder.
use_encoder() { # ENCODER
  encoder=$1 model=$1
  name_encoder "$1"
  [[ ! -f conf/encoders/$encoder.yaml ]] || model=exp/encoders/$encoder
  given_xvectors=
  if [[ $encoder == given:* ]]; then # a folder of x-vectors that another toolkit made, one for each set
    given_xvectors=${encoder#given:}
    [[ -d $given_xvectors ]] || die "$encoder: no such folder; it holds <set>/xvector.{ark,scp}"
    [[ -z $chunk_seconds ]] || die "$encoder: given x-vectors cannot be cut; give --chunk-seconds="
  fi
  xvectors=exp/xvectors/$name
}

# Sets the same, and backend, scorer, asnorm and label, from "<encoder>/<back end>".
use_evaluator() {
  check_backend "$1"
  use_encoder "${1%/*}"
  backend=${1##*/}
  scorer=$backend label=${name}_$backend asnorm=0
  case $backend in
    plda | plda_asnorm) scorer=exp/backends/$name ;;
    cosine) ;;
  esac
  [[ $backend != plda_asnorm ]] || asnorm=$cohort_size
}

# Sets the same, and trials, split and options, from "<encoder>/<back end> <gender>".
use_part() {
  use_evaluator "${1% *}"
  trials=${evaluation}_trials_${1##* } split=${evaluation}_${1##* }
  options=(--utt2spk "data/$trials/utt2spk" --bootstrap "$bootstrap" --seed "$seed")
}

# A step of two programs: PROGRAM over the parts of DATA, then PROGRAM2 once.
over_then_job() { # DATA OUT PROGRAM ARGUMENTS... %then PROGRAM2 ARGUMENTS...
  local out=$2 words=()
  while [[ $1 != %then ]]; do
    words+=("$1")
    shift
  done
  over "${words[@]}"
  job "$out" "${@:2}"
}

# x-vectors of a set, of its speakers, and how many utterances each speaker has; encoder in use.
make_xvectors() { # SET
  if [[ -n $given_xvectors ]]; then
    step "$xvectors/$1" -- import_then_average "$given_xvectors/$1" "data/$1" "$xvectors/$1"
    return
  fi
  step "$xvectors/$1" -- over_then_job "data/$1" "$xvectors/$1" \
    steps/extract_xvectors.py "${on_device[@]}" "$model" %data %out \
    %then steps/average_xvectors.py "$xvectors/$1" "data/$1" "$xvectors/$1"
}

import_then_average() { # GIVEN DATA OUT
  job "$3" steps/import_xvectors.py "$1" "$2" "$3"
  job "$3" steps/average_xvectors.py "$3" "$2" "$3"
}

# F0 statistics of a set's speakers.
make_f0() { # SET
  step "exp/f0/$1" -- over_then_job "data/$1" "exp/f0/$1" \
    steps/extract_f0.py %data %out %then steps/compute_f0_stats.py "exp/f0/$1" "data/$1" "exp/f0/$1"
}

# Sets unseen: options that make a training fail which has a speaker of the evaluation sets in it. They are the same in a
# study of other sets, and where trials of one gender are asked for, which would otherwise train anew what run.sh has.
use_unseen() {
  local set
  unseen=()
  for set in "${evaluation}_"{enrolls,trials_f,trials_m}; do
    [[ " ${evaluated[*]} " != *" $set "* && ! -d data/$set ]] || unseen+=(--not-speakers-of "data/$set")
  done
}

# x-vectors of a training set of the encoder in use, of sessions where chunk_seconds says so.
make_session_xvectors() { # SET
  local how=over chunks=()
  if [[ -n $given_xvectors ]]; then
    make_xvectors "$1"
    return
  fi
  [[ -z $chunk_seconds ]] || how=over_pieces chunks=(--chunk-seconds "$chunk_seconds")
  step "$xvectors/$1" -- "$how" "data/$1" "$xvectors/$1" \
    steps/extract_xvectors.py "${on_device[@]}" "${chunks[@]}" "$model" %data %out
}

# The back end OUT, trained on a set's x-vectors.
make_backend() { # SET OUT
  use_unseen
  step "$2" -- job "$2" steps/train_backend.py --lda-dim "$lda_dim" "${unseen[@]}" "$xvectors/$1" "data/$1" "$2"
}

# make NEED: what an evaluator or a system needs, of the encoder in use, and what that is made of.
made=
make() {
  [[ " $made " != *" $name/$1 "* ]] || return 0
  made+=" $name/$1"
  local set train=data/$train_set pool=data/$pool_set out
  case $1 in
    encoder)
      [[ -f conf/encoders/$encoder.yaml ]] || return 0 # pretrained
      use_unseen
      step "$model" -- job "$model" steps/train_encoder.py --seed "$seed" --device "$device" \
        "${unseen[@]}" "conf/encoders/$encoder.yaml" "$train" "$model"
      ;;
    xvectors)
      make encoder
      for set in "${sets[@]}"; do make_xvectors "$set"; done
      ;;
    session_xvectors:*)
      make encoder
      make_session_xvectors "${1#*:}"
      ;;
    speakers:*)
      set=${1#*:}
      make "session_xvectors:$set"
      out=$xvectors/${set}_speakers
      step "$out" -- job "$out" steps/average_xvectors.py "$xvectors/$set" "data/$set" "$out"
      ;;
    backend)
      make "session_xvectors:$train_set"
      make_backend "$train_set" "exp/backends/$name"
      ;;
    f0) for set in "${sets[@]}"; do make_f0 "$set"; done ;;
    pool)
      make "speakers:$pool_set"
      step "exp/world/$pool_set" -- over "$pool" "exp/world/$pool_set" steps/extract_world.py %data %out
      use_unseen
      step "exp/pools/$name" -- job "exp/pools/$name" steps/make_voice_pool.py "${unseen[@]}" \
        "exp/world/$pool_set" "$pool" "$xvectors/${pool_set}_speakers" "exp/pools/$name"
      ;;
    pool:wavlm)
      out=exp/pools/wavlm
      step "$out" -- over "$pool" "$out" steps/extract_wavlm.py "${on_device[@]}" %data %out
      ;;
    synthesiser:*)
      make pool
      out=exp/synthesisers/$name/${1#*:}
      use_unseen
      step "$out" -- job "$out" steps/train_synthesiser.py --seed "$seed" --device "$device" \
        "${unseen[@]}" "conf/synthesisers/${1#*:}.yaml" "$pool" "exp/pools/$name" "$out"
      ;;
    generator:*)
      make "session_xvectors:$pool_set"
      use_unseen
      if [[ -n ${tested_train_generators-} ]]; then
        log "generators are trained on speakers who are evaluated, too: $tested_train_generators"
        unseen=()
      fi
      out=exp/generators/$name/${1#*:}
      if [[ $1 == generator:psd ]] && grep -qs '^ *pooling: xi' "conf/encoders/$encoder.yaml"; then
        step "$out" -- job "$out" steps/extract_frames.py "${on_device[@]}" "${unseen[@]}" "$model" \
          "$pool" "$out"
        return
      fi
      step "$out" -- job "$out" steps/train_generator.py --seed "$seed" "${on_device[@]}" "${unseen[@]}" \
        "conf/generators/${1#*:}.yaml" "$xvectors/$pool_set" "$pool" "$out"
      ;;
    model:* | external:*) ;; # is there
    *) die "conf/systems: '$1' is needed, which this recipe cannot make" ;;
  esac
}

# The same, and what it takes to protect the training set, too.
make_for_training() { # NEED
  make "$1"
  case $1 in
    xvectors) make "speakers:$train_set" ;;
    f0) make_f0 "$train_set" ;;
  esac
}

# X-vectors of the original speech by every evaluator, and their back ends.
make_evaluators() {
  local evaluator
  for evaluator in $evaluators; do
    use_evaluator "$evaluator"
    make xvectors
    [[ $scorer == cosine ]] || make backend
  done
}

# Sets needs_of: what each of the recipe's generators (conf/systems/<generator>.yaml) needs.
find_needs() {
  local generator
  declare -gA needs_of
  for generator in $generators; do
    $list_stages || use_system "$generator" # takes seconds
    needs_of[$generator]=${needs-}
  done
}

# Makes the pool of speakers, and what the generators need; encoder in use.
make_generators() {
  local generator need
  make "speakers:$pool_set"
  for generator in $generators; do
    for need in ${needs_of[$generator]}; do
      case $need in backend | generator:*) make "$need" ;; esac
    done
  done
}

# Sets resources (what programs are given that ask a generator without speech: sources, pool, and what it needs)
# and network (its folder, where it is an index's only, else nothing); encoder in use.
use_generator() { # GENERATOR
  local need set
  network=
  resources=(--seed "$seed" --pool "$xvectors/${pool_set}_speakers" --pool-data "data/$pool_set")
  for set in "${sets[@]}"; do resources+=(--sources "$xvectors/$set" "data/$set"); done
  for need in ${needs_of[$1]}; do
    case $need in
      backend) resources+=(--pool-backend "exp/backends/$name") ;;
      generator:*)
        resources+=(--generator "exp/generators/$name/${need#*:}")
        [[ $need != generator:@(wgan|idmap)* ]] || network=exp/generators/$name/${need#*:}
        ;;
    esac
  done
}

# The settings of a system: what a study made of them, else the recipe's.
system_conf() { # SYSTEM
  if [[ -n ${generated_conf-} && -f $generated_conf/$1.yaml ]]; then
    echo "$generated_conf/$1.yaml"
  else
    echo "conf/systems/$1.yaml"
  fi
}

# Sets level and needs of a system.
use_system() {
  local described
  described=$(steps/describe_system.py "$(system_conf "$1")")
  read -r level needs <<<"$described"
}

# Sets given: the options of steps/anonymise.py that give a set's speakers what the system in use needs.
give() { # SET
  local need folder
  given=()
  for need in $needs; do
    case $need in
      pool) given+=(--pool "exp/pools/$name") ;;
      pool:*) given+=(--pool "exp/pools/${need#*:}" "${on_device[@]}") ;;
      backend) given+=(--backend "exp/backends/$name") ;;
      f0) given+=(--f0 "exp/f0/$1") ;;
      xvectors)
        # With one voice for a speaker in all sets, what is known of him has to be the same, too.
        if [[ $1 == "$train_set" ]]; then
          given+=(--xvectors "$xvectors/${train_set}_speakers")
        elif [[ $level == perm ]]; then
          for folder in "${sets[@]}"; do given+=(--xvectors "$xvectors/$folder"); done
        else
          given+=(--xvectors "$xvectors/$1")
        fi
        ;;
      synthesiser:* | generator:*) given+=("--${need%%:*}" "exp/${need%%:*}s/$name/${need#*:}") ;;
      external:*) given+=(--external "${need#*:}") ;;
      model:*)
        folder=${need#*:}
        [[ $folder == */* ]] || folder=steps/../models/$folder
        use_unseen
        given+=(--model "$folder" "${unseen[@]}")
        ;;
    esac
  done
}

# Whether another run of a system gives other speech; known once its first set is protected.
is_random() {
  local conf=data/${sets[0]}_$1/conf.json
  [[ -f $conf ]] && grep -q '"is_random": true' "$conf"
}

# Sets run0 and run1: scores of two runs of a system, evaluator and split in use. False where there are
# no two, or where nothing was drawn for this split: a small pool can leave no choice for one gender. Scores that
# are missing are an error, but for the report, which says what is missing.
use_two_runs() { # SYSTEM
  local status=0
  run0=exp/scores/$1/ignorant.$label/OA/$split run1=exp/scores/$1/ignorant_draw1.$label/OA/$split
  is_random "$1" || return 1
  cmp -s "$run0/scores" "$run1/scores" || status=$?
  case $status in
    0) log "both runs of $1 are the same for $split: C_ECE is not defined" ;;
    1) return 0 ;;
    *) $dry_run || [[ ${recipe_stage-} == 11 ]] || die "$run0/scores or $run1/scores is missing; run stage 8" ;;
  esac
  [[ $status -ne 0 ]]
}

# Protected data/<set>_<system>, or a further run of it.
protect() { # SYSTEM SET OUT OPTIONS...
  give "$2"
  step "$3" -- over "data/$2" "$3" steps/anonymise.py --dataset "$2" --seed "$seed" "${@:4}" \
    "${given[@]}" "$(system_conf "$1")" %data %out "$3/wav"
}

# Figures of one comparison: exp/metrics/PATH/metrics.json by "PROGRAM ARGUMENTS... metrics.json".
figures() { # PATH PROGRAM ARGUMENTS...
  step "exp/metrics/$1" -- job "exp/metrics/$1" "${@:2}" "exp/metrics/$1/metrics.json"
}

# Figures of what a recogniser (its label in use) made of a system's trials (FOLDER/<set>/FILE): of each gender's, and
# of all together, in exp/metrics/<system>/utility.<recogniser>.
recognised_figures() { # PROGRAM FOLDER FILE SYSTEM OPTIONS...
  local condition=PP set path all=()
  [[ $4 != original ]] || condition=OO
  path=$4/utility.$label/$condition
  for set in "${sets[@]:1}"; do
    figures "$path/${evaluation}_${set##*_}" "$1" "${@:5}" --bootstrap "$bootstrap" --seed "$seed" "data/$set" "$2/$set/$3"
    all+=(--also "data/$set" "$2/$set/$3")
  done
  [[ ${#sets[@]} -gt 2 ]] || return 0
  figures "$path/$evaluation" "$1" "${@:5}" --bootstrap "$bootstrap" --seed "$seed" "${all[@]:3}" "${all[@]:1:2}"
}

# Sets split_names: of each gender's trials that are asked for, and of all together.
use_split_names() {
  split_names=("${sets[@]:1}")
  split_names=("${split_names[@]/#"${evaluation}_trials_"/"${evaluation}_"}")
  [[ ${#split_names[@]} -eq 1 ]] || split_names=("$evaluation" "${split_names[@]}")
}

# Adds to folders the figures of utilities that earlier runs measured and this one does not, of its systems and genders,
# as far as they are up to date. Says which are not.
add_earlier_figures() {
  local system folder split_names name_of earlier=() current
  use_split_names
  for system in original $systems; do
    for folder in "exp/metrics/$system"/utility.*/*/; do
      for name_of in "${split_names[@]}"; do
        [[ ! -f $folder$name_of/.done || " ${folders[*]} " == *" $folder$name_of "* ]] || earlier+=(--also "$folder$name_of")
      done
    done
  done
  [[ ${#earlier[@]} -gt 0 ]] || return 0
  current=$(stamps.py current "${earlier[@]:1}")
  for folder in "${earlier[@]}"; do
    [[ $folder != --also ]] || continue
    if [[ $'\n'$current$'\n' == *$'\n'$folder$'\n'* ]]; then
      folders+=("$folder")
    else
      log "not in the report: $folder, made before, is out of date; give the options of stage 10 that make it"
    fi
  done
}

# Adds to folders the figures of the recogniser in use, of this run's systems and genders, as far as they were made.
add_recognised_figures() {
  local system condition split_names name_of folder
  use_split_names
  for system in original $systems; do
    condition=PP
    [[ $system != original ]] || condition=OO
    for name_of in "${split_names[@]}"; do
      folder=exp/metrics/$system/utility.$label/$condition/$name_of
      [[ ! -f $folder/.done ]] || folders+=("$folder")
    done
  done
}

protected() { if [[ $2 == - ]]; then echo "$1"; else echo "$1_$2"; fi; } # SET SYSTEM

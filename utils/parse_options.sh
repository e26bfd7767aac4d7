# shellcheck shell=bash
# Sourced by a script after its configuration block: the variables of the block become its options.
#
#   nj=4           # jobs at a time        ->  --nj 8, --nj=8
#   dry_run=false  # only say what to do   ->  --dry-run, --dry-run true, --dry-run=false
#   . utils/parse_options.sh
#
# A line `## TITLE` begins a group of --help. The block may end in `. FOLDER/options.sh`, whose variables are also options: those that several scripts share.
# --config FILE reads `name=value` lines (nothing in it is run); the command line wins over it,
# wherever it stands. --help shows the block's comments. `--` ends the options. What follows is
# left in "$@"; an option there is an error. A value is text: it is never evaluated.
# $command_line keeps what the script was called with, quoted for a shell.
# Where the default is true or false, or a number, so must the value be; a comment that ends in [WORD] also allows
# this value. Wrong usage exits with 2. option_names has the names of all options, given_names of those given.

_po_fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}

# Reads the block of the script "$1": names and comments of its variables, and the script's own head. With "$2", all of
# a file of shared options: neither its head, nor a line where the block ends.
_po_read_block() {
  local line rest name='' title='' in_head=${2:-true}
  local next_assignment="^[^[:blank:]\"']*(\"[^\"]*\"|'[^']*')?[[:blank:]]+([a-z][a-z0-9_]*=.*)$"
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ $line =~ ^(\.|source)[[:blank:]].*parse_options\.sh ]]; then return 0; fi
    if [[ $line =~ ^\.[[:blank:]]+([^[:blank:]]+/options\.sh)$ ]]; then _po_read_block "${BASH_REMATCH[1]}" false; fi
    if [[ $line =~ ^([a-z][a-z0-9_]*)= ]]; then
      in_head=false rest=$line
      while [[ $rest =~ ^([a-z][a-z0-9_]*)=(.*)$ ]]; do # several may stand on a line
        name=${BASH_REMATCH[1]}
        [[ -v _po_comment[$name] ]] || _po_names+=("$name")
        [[ -z $title ]] || _po_title[$name]=$title
        title=
        _po_comment[$name]=
        [[ $line != *' # '* ]] || _po_comment[$name]=${line##* \# }
        if [[ $rest =~ $next_assignment ]]; then rest=${BASH_REMATCH[2]}; else rest=; fi
      done
    elif [[ -n $name && $line =~ ^[[:blank:]]+\#[[:blank:]]*(.*)$ ]]; then
      _po_comment[$name]+=" ${BASH_REMATCH[1]}"
    elif ! $in_head && [[ $line == '## '* ]]; then
      title=${line#'## '}
    elif $in_head && [[ $line == '# shellcheck '* ]]; then
      continue
    elif $in_head && [[ $line =~ ^\#[[:blank:]]?([^!].*)?$ ]]; then
      _po_head+="${BASH_REMATCH[1]}"$'\n'
    else
      name=
      [[ $line == '#!'* ]] || in_head=false
    fi
  done <"$1"
  [[ $# -gt 1 ]] || _po_fail "parse_options.sh: $1 has no line '. utils/parse_options.sh'"
}

_po_help() {
  local name width=13 option line word words
  for name in "${_po_names[@]}"; do
    option="--${name//_/-} ${_po_default[$name]-}"
    [[ ${#option} -le $width ]] || width=${#option}
  done
  [[ $width -le 34 ]] || width=34
  printf 'Usage: %s [options]\n%s\nOptions, with their values when not given:\n' "$0" "${_po_head:+$'\n'$_po_head}"
  for name in "${_po_names[@]}"; do
    [[ ! -v _po_title[$name] ]] || printf '\n%s:\n' "${_po_title[$name]}"
    option="--${name//_/-} ${_po_default[$name]-}" line=
    read -ra words <<<"${_po_comment[$name]}"
    if [[ ${#option} -gt $width ]]; then
      fold -s -w 98 <<<"  $option"
      option=
    fi
    for word in "${words[@]}"; do
      if [[ -n $line && $((width + ${#line} + ${#word})) -gt 94 ]]; then
        printf "  %-${width}s  %s\n" "$option" "$line"
        option='' line=
      fi
      line+=${line:+ }$word
    done
    [[ -z $option$line ]] || printf "  %-${width}s  %s\n" "$option" "$line"
  done
  printf "  %-${width}s  %s\n" "--config FILE" "read options from name=value lines" "--help" "show this"
}

# Fails for a name that is not in the block; says where prepare.sh has it, and names a near one.
# $1: name, $2: as given, with place.
_po_check_name() {
  [[ $1 =~ ^[a-z][a-z0-9_]*$ && -v _po_default[$1] ]] && return 0
  ! grep -qs "^$1=" prepare.sh || _po_fail "$2: an option of prepare.sh: ./run.sh --prepare-options=\"--${1//_/-} ...\""
  near=$(python3 -c 'import difflib, sys; print(*difflib.get_close_matches(sys.argv[1], sys.argv[2:], 1, 0.7))' "$1" "${_po_names[@]}")
  _po_fail "$2: no such option${near:+; did you mean --${near//_/-}?}; see --help"
}

# Fails for a value that is not of the default's kind. $1: name, $2: value, $3: as given, with place.
_po_check_value() {
  local default=${_po_default[$1]} number='^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$'
  if [[ -n $2 && ${_po_comment[$1]} == *"[$2]" ]]; then
    return 0
  elif [[ $default =~ ^(true|false)$ ]]; then
    [[ $2 =~ ^(true|false)$ ]] || _po_fail "$3: expected true or false, not '$2'"
  elif [[ $default =~ ^[-+]?[0-9]+$ ]]; then
    [[ $2 =~ $number ]] || _po_fail "$3: expected a number, not '$2'"
  elif [[ -z $2 && $1 =~ ^(.*_)?cmd$ ]]; then
    _po_fail "$3: the value is empty"
  fi
}

# Reads `name=value` lines into _po_set; quotes around a value and comments after it go, that is all.
_po_read_config() {
  local line name value number=0
  [[ -r $1 && ! -d $1 ]] || _po_fail "--config $1: cannot be read"
  while IFS= read -r line || [[ -n $line ]]; do
    number=$((number + 1))
    [[ ! $line =~ ^[[:space:]]*(\#.*)?$ ]] || continue
    [[ $line =~ ^[[:blank:]]*([A-Za-z0-9_-]+)=(.*)$ ]] || _po_fail "$1:$number: not a name=value line: $line"
    name=${BASH_REMATCH[1]//-/_} value=${BASH_REMATCH[2]}
    if [[ $value =~ ^\"([^\"]*)\"[[:space:]]*(\#.*)?$ || $value =~ ^\'([^\']*)\'[[:space:]]*(\#.*)?$ ]]; then
      value=${BASH_REMATCH[1]}
    elif [[ $value =~ ^(.*[^[:blank:]])?[[:blank:]]+\# || $value =~ ^()\# ]]; then
      value=${BASH_REMATCH[1]}
    fi
    while [[ $value == *[[:space:]] ]]; do value=${value%?}; done
    _po_check_name "$name" "$1:$number: $name"
    _po_check_value "$name" "$value" "$1:$number: $name"
    _po_set+=("$name" "$value") given_names+=("$name")
  done <"$1"
}

printf -v command_line '%q ' "$0" "$@"
command_line=${command_line% }
_po_script=${BASH_SOURCE[1]-}
[[ -f $_po_script ]] || _po_script=${_po_script##*/} # called by its path, it has gone to its folder
[[ -f $_po_script ]] || _po_fail "parse_options.sh: to be sourced by a script"
# What may be meant as true or false, of which _po_check_value takes two spellings.
_po_truth='^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|[Yy][Ee][Ss]|[Nn][Oo]|[Oo][Nn]|[Oo][Ff][Ff])$'
declare -A _po_comment=() _po_default=() _po_title=()
given_names=() _po_names=() _po_head='' _po_set=() _po_given=() _po_configs=() _po_ended=false _po_wants_help=false _po_home=~
_po_read_block "$_po_script"
for _po_name in "${_po_names[@]}"; do
  if [[ -v $_po_name ]]; then _po_default[$_po_name]=${!_po_name}; fi
done

while [[ $# -gt 0 ]]; do
  case $1 in
    --)
      _po_ended=true
      shift
      break
      ;;
    --help | -h)
      _po_wants_help=true
      shift
      continue
      ;;
    --?*) ;;
    -[!0-9.]*) _po_fail "$1: no such option; options begin with '--', see --help" ;;
    *) break ;;
  esac
  _po_option=${1%%=*}
  _po_name=${_po_option#--}
  _po_name=${_po_name//-/_}
  [[ $_po_name == config ]] || _po_check_name "$_po_name" "$_po_option"
  if [[ $1 == *=* ]]; then
    _po_value=${1#*=}
  elif [[ ${_po_default[$_po_name]-} =~ ^(true|false)$ && ! ${2-} =~ $_po_truth && ${_po_comment[$_po_name]} != *"[${2-}]" ]]; then
    _po_value=true
  elif [[ $# -lt 2 || $2 == --* ]]; then
    _po_fail "$_po_option: the value is missing (a value that begins with '--' is given as $_po_option=VALUE)"
  else
    _po_value=$2
    shift
  fi
  shift
  if [[ $_po_name == config ]]; then
    [[ ${_po_value%%/*} != '~' ]] || _po_value=$_po_home${_po_value#'~'}
    _po_configs+=("$_po_value")
  else
    _po_check_value "$_po_name" "$_po_value" "$_po_option"
    _po_given+=("$_po_name" "$_po_value") given_names+=("$_po_name")
  fi
done

if ! $_po_ended; then
  for _po_value in "${@:2}"; do
    [[ $_po_value != --?* ]] || _po_fail "$_po_value: options go before '$1' (after '--' nothing is an option)"
  done
fi
for _po_value in "${_po_configs[@]}"; do _po_read_config "$_po_value"; done
_po_set+=("${_po_given[@]}") # the command line wins
for ((_po_i = 0; _po_i < ${#_po_set[@]}; _po_i += 2)); do
  _po_value=${_po_set[_po_i + 1]}
  [[ ${_po_value%%/*} != '~' ]] || _po_value=$_po_home${_po_value#'~'} # bash leaves --corpus=~/x as it is
  printf -v "${_po_set[_po_i]}" %s "$_po_value"
done
if $_po_wants_help; then
  _po_help
  exit 0
fi

# shellcheck disable=SC2034  # for the script that sources this
option_names=("${_po_names[@]}")
unset -f _po_fail _po_read_block _po_help _po_check_name _po_check_value _po_read_config
unset _po_comment _po_default _po_title _po_names _po_head _po_set _po_given _po_configs _po_ended _po_wants_help \
  _po_name _po_option _po_value _po_truth _po_i _po_home _po_script

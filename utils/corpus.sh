# Sourced by prepare.sh after utils/parse_options.sh: how preparing any corpus begins and ends.
# Needs the options corpus and download, as far as what is called speaks of them.

# shellcheck shell=bash
# The script's options:
: "${corpus?}" "${download?}"

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}

[[ $# -eq 0 ]] || fail "unexpected argument '$1'; see --help"

no_download() { # WHY
  ! $download || fail "--download: $1; get the corpus as README.md says"
}

# Makes corpus the absolute path of a folder that is there.
use_corpus() { # WHAT_IT_IS
  [[ -n $corpus ]] || fail "--corpus is missing: $1; see README.md"
  [[ -d $corpus ]] || fail "--corpus $corpus: no such folder"
  corpus=$(cd "$corpus" && pwd)
}

# Fetches a file to downloads/, going on where an earlier run stopped; it shows up when it has its published digest (MD5).
fetch_file() { # URL CHECKSUMS
  local name=${1##*/} part=downloads/${1##*/}.part digest get
  for get in curl md5sum; do command -v "$get" >/dev/null || fail "--download needs $get"; done
  digest=$(awk -v name="$name" '$2 == name { print $1 }' "$2")
  [[ $digest =~ ^[0-9a-f]{32}$ ]] || fail "$2: no MD5 digest of $name, so that it could not be checked"
  if [[ -f downloads/$name ]]; then
    [[ $(md5sum <"downloads/$name") == "$digest  -" ]] || fail "downloads/$name: its digest is not $digest; remove it"
    return
  fi
  get=(curl --fail --location --silent --show-error --retry 5 --speed-time 60 --output "$part" "$1")
  is_right() { [[ -f $part && $(md5sum <"$part") == "$digest  -" ]]; }
  mkdir -p downloads
  is_right || "${get[@]}" --continue-at - || { [[ $? -eq 33 ]] && "${get[@]}"; } \
    || fail "$1: not fetched (curl says why above); run again to go on" # 33: the server cannot go on
  is_right || {
    rm "$part"
    fail "$1: what came was removed, for its checksum is not $digest; run again, or try another mirror"
  }
  mv "$part" "downloads/$name"
}

# Ends the script where it shall only look at the corpus, as a dry run has it: what follows takes long, or writes.
end_of_look() { [[ -z ${LOOK_ONLY-} ]] || exit 0; }

# Sets work: an empty folder that goes when the script ends.
make_work() {
  end_of_look
  work=data/.prepare
  rm -rf "$work"
  mkdir -p "$work"
  trap 'rm -rf "$work"' EXIT
}

# Validates sets, and warns of a training set that is too small.
validate_sets() { # SET...
  utils/validate_data_dir.py "${@/#/data/}"
  local name count
  for name; do
    [[ $name != *_enrolls && $name != *_trials_* ]] || continue
    count=$(wc -l <"data/$name/spk2utt")
    [[ $count -ge 50 ]] || echo "prepare.sh: warning: data/$name has $count speakers. Attackers who train on fewer than 50 people" \
      "learn little and look weaker than they are. Add speakers, name evaluators that come trained" \
      "(--evaluators \"pyannote/cosine resemblyzer/cosine\"), or train on another corpus (egs/README.md)" >&2
  done
}

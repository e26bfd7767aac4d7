#!/usr/bin/env bash
# Makes the wheel of the commit and checks what a release must keep: its size, its models, its licences, its changes.
#   utils/release_check.sh [FOLDER]     FOLDER of the wheel, dist if left out; CONTRIBUTING.md says how it is tagged
set -euo pipefail
folder=$(realpath -m -- "${1:-dist}")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
. ./path.sh

die() {
  printf 'release_check: %s\n' "$@" >&2
  exit 1
}

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir "$made/source" "$made/wheel"
git archive HEAD | tar -x -C "$made/source" # what is committed, and nothing else
uv build --quiet --wheel --native-tls --out-dir "$made" "$made/source"
wheel=("$made"/*.whl)
python3 -m zipfile -e "${wheel[0]}" "$made/wheel"
tar -x -C "$made/wheel" -f "$made/wheel/pseudovox/tree.tar"

bytes=$(stat -c %s "${wheel[0]}")
((bytes < 60000000)) || die "${wheel[0]##*/} has $bytes bytes; a wheel has less than 60,000,000: leave something out in setup.py"
diff -r models "$made/wheel/models" || die "models/ is not that of the commit: commit it, or take it back"
about=("$made"/wheel/pseudovox-*.dist-info/METADATA)
while read -r licence; do
  grep -q "^License-Expression:.*$licence" "${about[0]}" || die "REUSE.toml has $licence; name it in pyproject.toml"
done < <(sed -n 's/^SPDX-License-Identifier = "\(.*\)"/\1/p' REUSE.toml | sort -u)
version=$(sed -n 's/^Version: //p' "${about[0]}")
grep -q "^## $version\b" CHANGELOG.md || die "CHANGELOG.md has no '## $version', which pyproject.toml names"

mkdir -p "$folder"
mv "${wheel[0]}" "$folder"
echo "$folder/${wheel[0]##*/}: $bytes bytes; pseudovox $version of commit $(git rev-parse --short HEAD); SHA-256:"
(cd "$folder" && sha256sum -- "${wheel[0]##*/}")
(cd "$made/wheel" && find models resemblyzer -type f -size +500k -exec sha256sum {} + | sort -k 2)

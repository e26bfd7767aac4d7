#!/usr/bin/env bash
# Installs from the system's packages what some tests need, because somebody asked for it:
#   utils/install_for_tests.sh slurm      `make test-slurm`: a Slurm of one node (tests/slurm_cluster.py)
#   utils/install_for_tests.sh browser    `make test-browser`: Chromium (tests/browser.py)
#   utils/install_for_tests.sh strace     what shows whom a program calls (tests/test_private.py)
# It does nothing where the programs are there, and fails where they cannot be installed. No service is
# started, and none is left enabled to run (there is no configuration under /etc/slurm).
set -euo pipefail

die() {
  printf 'install_for_tests: %s\n' "$*" >&2
  exit 1
}

PATH=$PATH:/usr/sbin:/sbin
case ${1-} in
  slurm)
    packages=(slurm-wlm munge)
    if command -v slurmctld slurmd sbatch >/dev/null; then exit 0; fi
    ! command -v sbatch >/dev/null \
      || die "sbatch is there and slurmctld is not: this machine belongs to a cluster; run these tests on another one"
    ;;
  browser)
    packages=(chromium)
    if command -v chromium || command -v chromium-browser; then exit 0; fi >/dev/null
    ;;
  strace)
    packages=(strace)
    if command -v strace; then exit 0; fi >/dev/null
    ;;
  *) die "'${1-}'; known: slurm, browser, strace" ;;
esac
command -v apt-get >/dev/null \
  || die "no apt-get here; install what Debian has as ${packages[*]}, then run this again"
[[ $(id -u) -eq 0 ]] \
  || die "only root may install; run: sudo apt-get install --no-install-recommends ${packages[*]}"

log=$(mktemp)
# Without this policy, the packages' scripts would start their daemons.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
apt() {
  DEBIAN_FRONTEND=noninteractive timeout 600 apt-get -qq -o Acquire::http::Timeout=10 -o Acquire::Retries=2 \
    -o DPkg::Lock::Timeout=120 "$@" >>"$log" 2>&1 </dev/null
}
echo "install_for_tests: installing ${packages[*]} (apt-get)"
apt update || true # lists of an earlier day may do
apt install -y --no-install-recommends "${packages[@]}" \
  || die "apt-get could not install ${packages[*]}: $(tail -n 1 "$log") (all of it: $log);" \
    "without a network, install these packages from your own mirror, then run this again"
rm -f "$log"

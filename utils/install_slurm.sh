#!/usr/bin/env bash
# Installs what the tests start a Slurm of one node with (tests/slurm_cluster.py), where that is possible:
# as root, with apt-get, on a machine that is no part of a cluster. It never fails; where it installs
# nothing it says why, and those tests are skipped. No service is started, and none is left enabled to
# run (there is no configuration under /etc/slurm).
set -euo pipefail
tried=$(dirname -- "${BASH_SOURCE[0]}")/../.venv/.slurm_not_installed

skip() {
  echo "setup: no Slurm for its tests, which are skipped: $*"
  exit 0
}

PATH=$PATH:/usr/sbin:/sbin
if command -v slurmctld slurmd sbatch >/dev/null; then exit 0; fi
! command -v sbatch >/dev/null || skip "this machine belongs to a cluster (sbatch is there, slurmctld is not)"
command -v apt-get >/dev/null || skip "no apt-get; install slurmctld, slurmd and the client commands"
[[ $(id -u) -eq 0 ]] || skip "not root; ask for: apt-get install --no-install-recommends slurm-wlm"
if [[ -f $tried ]]; then
  [[ -z $(find "$tried" -mmin -60) ]] || skip "tried within the last hour: $(<"$tried")"
fi

# Without this, the packages' scripts would start their daemons.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

log=$(mktemp)
apt() {
  DEBIAN_FRONTEND=noninteractive timeout 300 apt-get -qq -o Acquire::http::Timeout=10 -o Acquire::Retries=1 \
    -o DPkg::Lock::Timeout=60 "$@" >>"$log" 2>&1 </dev/null
}
echo "setup: installing slurm-wlm for the tests (apt-get, 36 MB)"
if ! { apt update && apt install -y --no-install-recommends slurm-wlm munge; }; then
  reason=$(tail -n 1 "$log")
  mkdir -p "$(dirname -- "$tried")"
  echo "$reason" >"$tried"
  skip "apt-get failed: $reason (all of it: $log)"
fi
rm -f "$log" "$tried"

# shellcheck shell=bash disable=SC2034
# What every process of ours has in its environment: path.sh sources this file, and utils/__init__.py reads its lines.
# Libraries that report to their makers what was run, or look for newer versions of themselves, are told not to.
ORT_DISABLE_TELEMETRY=1
HF_HUB_DISABLE_TELEMETRY=1
HF_HUB_DISABLE_UPDATE_CHECK=1
DO_NOT_TRACK=1
# Pictures take the fonts that come with matplotlib: to list the machine's leaves caches in the user's home.
MPL_IGNORE_SYSTEM_FONTS=1

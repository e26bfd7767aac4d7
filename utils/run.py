#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Run a command on this machine: once, or as an array of jobs, several at a time.

  run.py [--option VALUE]... [JOB=FIRST:LAST] LOG COMMAND [ARGUMENT]...

JOB (any name; JOB=1:3,7 gives a list) stands for the number of the job, in LOG and in the command's
words, wherever it is a token of its own (x.JOB.log, split4/JOB) or is written {JOB}; /data/MYJOBS
stays as it is. The job also finds it in its environment as $JOB. The words are given to the command
as they are: no shell reads them (use: bash -c '...'). Returns when all jobs have ended: 0 when
every one returned 0, else 1 with the end of the first failing log. After a failure no more jobs are
started. When this program is stopped (INT, TERM, HUP) or killed, its jobs are stopped with it. A
log that a job of an earlier call still writes is refused. LOG may be a device such as /dev/null.

Options:
  --max-jobs-run N   jobs at a time (default: number of processors / threads)
  --num-threads N    threads of a job (default: 1)
  --gpu N            GPUs of a job; above 0, one job runs at a time unless --max-jobs-run is given
  --mem X, --time T, --config FILE   for launchers of clusters; without effect here
"""

import os
import sys
from collections.abc import Sequence

from utils import launching
from utils.cli import run_program
from utils.jobs import Jobs, jobs_of
from utils.orphans import guarded

GRACE = 10  # seconds between asking jobs to stop and killing them


def run_jobs(request: launching.Request, most: int) -> tuple[dict[int, int], int]:
    """Run until every job has ended, or the running ones after a failure or a signal.

    Returns exit codes by number, and the signal.
    """
    jobs, pending, codes = Jobs(GRACE), jobs_of(request), dict[int, int]()
    progress = launching.Progress("run.py", request)
    with guarded(), jobs.watching():
        while True:
            while pending and len(jobs.running) < most:
                if any(codes.values()) or jobs.stopped_by:
                    break
                jobs.start(pending.pop(0))
                codes |= {job.number: job.code or 0 for job in jobs.wait(0)}
            if not jobs.running:
                return codes, jobs.stopped_by
            codes |= {job.number: job.code or 0 for job in jobs.wait(1.0)}
            progress.tell(len(codes), sorted(job.number for job in jobs.running.values()))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    request = launching.parse_request(words)
    threads = max(1, request.count("num-threads", 1))
    default = max(1, len(os.sched_getaffinity(0)) // threads)
    most = request.most(1 if request.count("gpu", 0) else default)
    launching.clear_logs(request)
    codes, stopped_by = run_jobs(request, most)
    if stopped_by:
        return launching.tell_stopped("run.py", stopped_by, "its jobs were stopped too")
    if failed := {number: "" for number, code in codes.items() if code}:
        not_started = len(request.numbers) - len(codes)
        launching.tell_under("run.py", *launching.failure_lines(request, failed, not_started))
    return int(bool(failed))


if __name__ == "__main__":
    run_program(main)

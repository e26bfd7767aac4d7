# shellcheck shell=bash
# The one file a site edits to move from a laptop to a cluster: how jobs are started.
#
# cmd_backend=local   jobs run on this machine, as many at once as it has processors (utils/run.py)
cmd_backend=${cmd_backend:-local}

case $cmd_backend in
  local)
    export cpu_cmd="run.py"
    export gpu_cmd="run.py --max-jobs-run 1"
    ;;
  *)
    echo "cmd.sh: unknown cmd_backend '$cmd_backend'; known: local" >&2
    return 1
    ;;
esac

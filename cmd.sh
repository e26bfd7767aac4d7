# shellcheck shell=bash
# The one file a site edits to move from a laptop to a cluster: how jobs are started (docs/cluster.md).
#
# cmd_backend=local   jobs run on this machine, as many at once as it has processors (utils/run.py)
# cmd_backend=slurm   jobs are submitted; conf/slurm.conf says how options become sbatch's (utils/slurm.py)
cmd_backend=${cmd_backend:-local}

case $cmd_backend in
  local)
    export cpu_cmd="run.py"
    export gpu_cmd="run.py --gpu 1"
    ;;
  slurm)
    export cpu_cmd="slurm.py --num-tries 2"
    export gpu_cmd="slurm.py --num-tries 2 --gpu 1"
    ;;
  *)
    echo "cmd.sh: unknown cmd_backend '$cmd_backend'; known: local, slurm" >&2
    return 1
    ;;
esac

# What the jobs of a program ask for beside the defaults of conf/slurm.conf; it changes no result.
# shellcheck disable=SC2034  # read by utils/recipe.sh
declare -gA job_options=(
  # [train_encoder]="--mem 8G --time 24:00:00"
  # [extract_xvectors]="--mem 4G"
)

# Sourced by run.sh and by the studies beside it (nist.sh, generators.sh): the options that they
# share, then path.sh, cmd.sh, and the corpus's own defaults. What is a recipe's own stands in its block.

# shellcheck shell=bash disable=SC2034  # the variables are the recipe's
## Also of other recipes
evaluators="ecapa_mini/plda ecapa_mini/cosine content/cosine level/distance energy/cosine fused" # who listens: <encoder>/<back end>; encoder: conf/encoders/<encoder>.yaml, a trained folder, resemblyzer, pyannote or hub:<model>; back end: plda, plda_asnorm, cosine, cosine_asnorm or cosine_raw (of channels also others: docs/channels.md, docs/written.md)
trainings=0                                                                                      # how often an encoder of conf/encoders is trained, with other seeds: the report says how far the figures move (<encoder>_seed1, ...); from 1 on ecapa_mini takes the place of evaluators of models/ (docs/evaluators.md); 0: once, and those come trained
voice_encoder=                                                                                   # encoder of the x-vectors that systems choose voices by, named as in --evaluators; empty: that of the first evaluator
nj=$(env -u OMP_NUM_THREADS nproc)                                                               # jobs at a time
device=cpu                                                                                       # device of programs that can use a GPU: cpu or cuda
seed=0                                                                                           # seed of everything that is drawn at random
bootstrap=1000                                                                                   # resamplings of the speakers for the 95 % intervals
evaluation=                                                                                      # evaluation sets are data/<evaluation>_{enrolls,trials_f,trials_m,trials_mixed}
train_set=train                                                                                  # data/<train_set> trains evaluators and back ends; informed attackers protect it and train on that (run.sh --attacker-train: on others)
pool_set=                                                                                        # data/<pool_set> gives systems their voices, and trains generators and synthesisers; empty: train_set (docs/recipe.md)
genders="f m"                                                                                    # whose trials there are: f, m, and mixed (women and men in one list); a corpus of one gender names it in conf/recipe.conf
chunk_seconds=                                                                                   # training utterances are cut into sessions of so many seconds for the back end; empty: not cut
lda_dim=100                                                                                      # dimensions that the PLDA back end keeps, at most
dry_run=false                                                                                    # only say what would be done: how many steps of each stage, why, and about how long; each of them: [full]

# What conf/recipe.conf says of a corpus, and no command: its name in tables, what the report's first line says of the
# speech, utterances of each speaker whose quality is estimated, sets that prepare.sh may make for other evaluations, and
# why trained generators hear who is tested.
declare -A corpus_setting=([corpus_name]="" [corpus_note]="" [quality_utterances]=4 [also_prepared]=""
  [tested_train_generators]="")

# A name that no recipe has would be ignored; one in capitals is the corpus's own.
while read -r _name; do
  [[ -v $_name || -v corpus_setting[$_name] ]] || grep -qs "^$_name=" {run,nist,generators}.sh || {
    echo "${0##*/}: conf/recipe.conf: $_name: no such option; see --help (of prepare.sh: in prepare_options)" >&2
    exit 2
  }
done < <(sed -n 's/^\([a-z][a-z0-9_]*\)=.*/\1/p' conf/recipe.conf)

. ./path.sh
. ./cmd.sh
# shellcheck source=/dev/null
. conf/recipe.conf

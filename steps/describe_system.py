#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Print what a system asks for: the level of its keys, then the folders that it needs.

CONF is a YAML file such as conf/systems/b1.yaml. One line: utt, spk, perm, const or position
(docs/anonymisers.md), then any of pool, pool:wavlm, xvectors, backend, f0, synthesiser:<name>,
generator:<name>, model:<name>: the options of steps/anonymise.py that have to be given. The name
says by which settings it is trained (conf/synthesisers/<name>.yaml), or which model of models/.
"""

from steps.options import Settings
from utils.commands import program


@program
def main(conf: Settings) -> None:
    from steps.anonymisers.registry import describe_system

    description = describe_system(conf)
    print(description.level, *description.needs)

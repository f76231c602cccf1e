# Completion in bash: options come from the commands, names and ids from the instance.
. "${CRUN_SRCDIR:?}/testsuite/lib.sh"
command -v bash >/dev/null || skip_all "needs bash"
plan 10
instance_start
cd "$T" || exit 1
comp=$(cd "$CRUN_STAGE" && ls share/bash-completion/completions/crun-queue) || exit 1

complete() { # WORD ...: what the last word may become, sorted, in one line
    bash -c '. "$0" || exit 1
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _crun_complete "$1"
        printf "%s\n" "${COMPREPLY[@]}"' "$CRUN_STAGE/$comp" "$@" | sort | tr '\n' ' '
}
ok "each command has its file" sh -c 'for c in "$CRUN_STAGE"/bin/crun-*; do
    test -s "$CRUN_STAGE/share/bash-completion/completions/$(basename "$c")" || exit 1; done'
is "an option by its beginning" "$(complete crun-submit --job)" "--job-name= "
is "all that begin so" "$(complete crun-submit --gpu)" "--gpus-per-node= --gpus-per-task= --gpus= "
is "options of the query commands" "$(complete crun-queue --noh)" "--noheader "
is "and of the scripts" "$(complete crun-start --no)" "--node-only --node= "
is "values of an option" "$(complete crun-queue --states = CO)" "COMPLETED COMPLETING "
is "a partition of the instance" "$(complete crun-submit -p m)" "main "
id=$(submit -H -- true)
is "an id of a job" "$(complete crun-why "$(printf %s "$id" | cut -c1)")" "$id "
is "a verb, then a node" "$(complete crun-node dr)$(complete crun-node drain n)" "drain n1 "
printf '#!/bin/sh\n' >script.sh
is "a job file" "$(complete crun-submit scr)" "script.sh "

# Completion of the crun-* commands in bash. Options are asked from the command itself (--help), so that
# this file need not know them; ids, partitions and nodes from the instance, with a short patience.

declare -gA _crun_options

# The options that COMMAND shows in its help, with "=" where one takes a value.
_crun_options_of() {
    local command=$1
    if [ -z "${_crun_options[$command]-}" ]; then
        _crun_options[$command]=$({
            "$command" --help
            case ${command##*/} in crun-run | crun-alloc) crun-submit --help ;; esac
        } 2>/dev/null |
            sed -n 's/^ *-/-/p' | sed 's/  .*//' | grep -oE -- '--[a-z][a-z0-9-]*=?' | tr '\n' ' ')
    fi
    printf '%s' "${_crun_options[$command]}"
}

_crun_ask() { CRUN_TIMEOUT=2 "$@" 2>/dev/null </dev/null; }
_crun_jobs() { _crun_ask crun-queue -h | awk '{ sub(/_\[.*/, "", $1); print $1 }' | sort -u; }
_crun_partitions() { _crun_ask crun-info -h | awk '{ sub(/\*$/, "", $1); print $1 }' | sort -u; }
_crun_nodes() { _crun_ask crun-info -N -h | awk '{ print $1 }'; }

# Values of OPTION, one list for all commands.
_crun_values() {
    case $1 in
    --partition | --queue | -p) _crun_partitions ;;
    --jobs | -j) _crun_jobs ;;
    --for) echo start running end ;;
    --kind | -k) echo submit start running end cancel hold release requeue ;;
    --states) echo PENDING STARTING RUNNING COMPLETING COMPLETED FAILED CANCELLED TIMEOUT OUT_OF_MEMORY NODE_FAIL LAUNCH_FAILED all ;;
    --user | -u) compgen -u ;;
    --signal) echo TERM INT HUP USR1 USR2 STOP CONT KILL ;;
    --open-mode) echo append truncate ;;
    --export) echo ALL NONE ;;
    --kill-on-invalid-dep) echo yes ;;
    --dependency | -d) echo afterok: afterany: afternotok: ;;
    *) return 1 ;;
    esac
}

# Words that are no options.
_crun_operands() { # COMMAND FIRST_OPERAND
    case $1 in
    crun-why | crun-wait | crun-logs | crun-cancel | crun-queue | crun-acct | crun-events | crun-stat | crun-prio | crun-exec | crun-attach) _crun_jobs ;;
    crun-info) _crun_nodes ;;
    crun-node) if [ -z "$2" ]; then echo list show drain resume; else _crun_nodes; fi ;;
    crun-ctl)
        case $2 in
        '') echo ping show hold release diag selfcheck backup show-config reload log-level shutdown ;;
        show) echo job; _crun_jobs ;;
        hold | release) _crun_jobs ;;
        esac
        ;;
    esac
}

_crun_complete() {
    local command=${1##*/} cur=${COMP_WORDS[COMP_CWORD]} option='' first='' list i
    # "--name=va" comes as "--name", "=", "va"; "--name va" as two words
    if [ "$cur" = = ]; then
        cur=
        option=${COMP_WORDS[COMP_CWORD - 1]}
    elif [ "$COMP_CWORD" -ge 2 ] && [ "${COMP_WORDS[COMP_CWORD - 1]}" = = ]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $COMP_CWORD -ge 1 && ${COMP_WORDS[COMP_CWORD - 1]} == -* ]]; then
        option=${COMP_WORDS[COMP_CWORD - 1]}
    fi
    COMPREPLY=()
    if [[ $cur == -* && -z ${option##*=} || $cur == --* ]]; then
        list=$(_crun_options_of "$1")
        mapfile -t COMPREPLY < <(compgen -W "$list" -- "$cur")
        [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
        return
    fi
    if [ -n "$option" ] && list=$(_crun_values "$option"); then
        mapfile -t COMPREPLY < <(compgen -W "$list" -- "$cur")
        return
    fi
    case "$command $option" in
    crun-submit\ * | *' --conf' | *' --dir')
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        compopt -o filenames 2>/dev/null
        return
        ;;
    esac
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in -* | =) continue ;; esac
        first=${COMP_WORDS[i]}
        break
    done
    mapfile -t COMPREPLY < <(compgen -W "$(_crun_operands "$command" "$first")" -- "$cur")
}

complete -F _crun_complete crun-submit crun-queue crun-why crun-cancel crun-wait crun-logs crun-acct \
    crun-info crun-node crun-ctl crun-events crun-diag crun-prio crun-stat crun-run crun-exec crun-alloc crun-attach crun-start crun-stop

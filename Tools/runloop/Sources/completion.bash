# SPDX-License-Identifier: Apache-2.0
# Bash completion of runloop: commands, options, formats, and files.
_runloop() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i
    local IFS=$'\n'
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W $'trace\nexport\nwhy\ntop\n--help\n--version' -- "$word")
        return
    fi
    case $before in
    -o | --output) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --format) mapfile -t COMPREPLY < <(compgen -W $'html\nperfetto\ncsv' -- "$word"); return ;;
    --buffer | --stall | --interval | --count) COMPREPLY=(); return ;;
    esac
    if [ "${COMP_WORDS[1]}" = trace ]; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            if [ "${COMP_WORDS[i]}" = -- ]; then mapfile -t COMPREPLY < <(compgen -c -f -- "$word"); return; fi
        done
        mapfile -t COMPREPLY < <(compgen -W $'--output\n--buffer\n--stacks\n--' -- "$word")
    elif [ "${COMP_WORDS[1]}" = top ]; then
        mapfile -t COMPREPLY < <(compgen -W $'--interval\n--count\n--json' -- "$word")
    elif [ "${COMP_WORDS[1]}" = why ] && [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W $'--stall\n--interval\n--json' -- "$word")
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W $'--format\n--output\n--stall' -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -F _runloop runloop

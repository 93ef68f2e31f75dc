# SPDX-License-Identifier: Apache-2.0
# Bash completion of messageport: commands, options, and the names that are registered now.
_messageport() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options=
    local IFS=$'\n'
    case $before in
    --file | --password-file | --credentials | --authorities | --certificate | --key) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    --id | --data | --timeout | --exec | --server | --import | --as | --machine | --user) COMPREPLY=(); return ;;
    esac
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W $'list\nsend\nserve\nwatch\nbridge\n--help\n--version' -- "$word")
        return
    fi
    case ${COMP_WORDS[1]} in
    send) options=$'--id\n--data\n--file\n--one-way\n--timeout\n--json' ;;
    serve) options=$'--exec\n--json' ;;
    list | watch) options='--json' ;;
    bridge) options=$'--server\n--export\n--share\n--import\n--as\n--machine\n--durable\n--user\n--password-file\n--credentials\n--authorities\n--certificate\n--key\n--json' ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    elif [ "${COMP_WORDS[1]}" != list ] && { [ "$COMP_CWORD" -eq 2 ] || [ "$before" = --export ]; }; then
        mapfile -t COMPREPLY < <(compgen -W "$(messageport list 2> /dev/null | sed -e 1d -e 's/ \+[0-9]\+  .*$//')" -- "$word")
    fi
}
complete -F _messageport messageport

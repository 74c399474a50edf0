# bash completion for mtil, made by `mtil completion bash`; the program says what can follow
_mtil()
{
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} files words
    # = is a word of its own: --format=csv, merge.policy=none
    if [[ $current == = ]]; then
        current=
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ $before != --* ]]; then
        before=
    fi
    read -r files words < <("${COMP_WORDS[0]}" completion bash -- "$before" "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    # not what lies beside a database: NAME-wal, NAME-shm, NAME-lock
    [[ $files == yes ]] && COMPREPLY+=($(compgen -f -X '*-[wsl][aho][lmc]*' -- "$current"))
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o filenames -F _mtil mtil

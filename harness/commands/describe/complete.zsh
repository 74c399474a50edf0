#compdef mtil
# zsh completion for mtil, made by `mtil completion zsh`; the program says what can follow
_mtil()
{
    local current=${words[CURRENT]} before= files word
    local -a said whole open
    # the value of --format=csv and merge.policy=none, or the next word of --format csv
    if [[ $current == *=* ]]; then
        before=${current%%=*}
        compset -P 1 '*='
    elif [[ ${words[CURRENT-1]} == --* && ${words[CURRENT-1]} != *=* ]]; then
        before=${words[CURRENT-1]}
    fi
    said=(${=$("${words[1]}" completion zsh -- "$before" "${(@)words[2,CURRENT-1]}" 2>/dev/null)})
    files=${said[1]}
    for word in ${said[2,-1]}; do
        [[ $word == *= ]] && open+=($word) || whole+=($word)
    done
    compadd -a whole
    compadd -S '' -a open
    # not what lies beside a database: NAME-wal, NAME-shm, NAME-lock
    [[ $files == yes ]] && _files -F '*-(wal|shm|lock)'
}
# loaded by autoload from fpath, or by source
if [[ ${funcstack[1]} == _mtil ]]; then
    _mtil "$@"
else
    compdef _mtil mtil
fi

# fish completion for mtil, made by `mtil completion fish`; the program says what can follow
function __mtil_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l current (commandline --current-token --cut-at-cursor)
    set -l before ''
    set -l given ''
    # the value of --format=csv and merge.policy=none, or the next word of --format csv
    if string match --quiet '*=*' -- $current
        set before (string split --max 1 = -- $current)[1]
        set given $before=
    else if string match --quiet --regex '^--[^=]*$' -- $words[-1]
        set before $words[-1]
    end
    set -l said (string split --no-empty ' ' -- ($words[1] completion fish -- "$before" $words[2..-1] 2>/dev/null))
    printf '%s\n' $given$said[2..-1]
    # not what lies beside a database: NAME-wal, NAME-shm, NAME-lock
    if test "$said[1]" = yes
        set -l value (string replace -- "$given" '' $current)
        printf '%s\n' $given(__fish_complete_path $value | string match --invert --regex -- '-(wal|shm|lock)(\t|$)')
    end
end
complete --command mtil --no-files --arguments '(__mtil_complete)'

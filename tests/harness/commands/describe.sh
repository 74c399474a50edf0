#!/bin/bash
# What the program says about itself from its option tables: keys of suites, a suite to start from, manual pages, completion.
#   describe.sh PROGRAM SOURCE_FOLDER
set -u
mtil=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2
export CUDA_VISIBLE_DEVICES=-1
failed=0

complain() {
    printf '%s\n' "$*" >&2
    failed=1
}

# shows WORD… among the lines of standard input
shows() {
    local given word
    given=$(cat)
    for word in "$@"; do
        grep -qxF -e "$word" <<<"$given" || complain "$what: expected \"$word\" in: $(tr '\n' ' ' <<<"$given" | head -c 400)"
    done
}

settings() {
    "$mtil" run "$1" --dry-run --quiet | grep -v '^#'
}

what="keys"
"$mtil" list keys --format markdown >keys.md || complain "mtil list keys fails"
cmp -s keys.md "$source/harness/suites/KEYS.md" ||
    complain "harness/suites/KEYS.md is not what the program says; renew it: build/mtil list keys --format markdown > harness/suites/KEYS.md"

# A description names its key, so it begins with a noun: not with a preposition, a pronoun or a participle.
unclear=$("$mtil" list keys --format json |
    grep -E '"help": "(an?|the|of|in|on|to|with|what|which|who|whose|where|when|how|their|its|added|divided|cuts|store|train|no:|0:) ')
[ -z "$unclear" ] || complain "keys whose description does not begin with a noun: $unclear"

what="init"
"$mtil" init --quiet || complain "mtil init fails"
settings suite.yaml | grep -q 'order: \[scenes, fields\]' || complain "init: suite.yaml comes to: $(settings suite.yaml)"
"$mtil" init 2>errors && complain "init: an existing file is overwritten"
grep -q 'suite.yaml exists' errors || complain "init: $(cat errors)"

# on_terminal COLUMNS: the longest line of a list there
on_terminal() {
    script -qec "stty cols $1; $mtil list suites" /dev/null </dev/null | sed 's/\x1b\[[0-9;]*m//g' | tr -d '\r' | wc -L
}
what="list"
longest=$("$mtil" list suites | wc -L)
if command -v script >/dev/null; then
    [ "$(on_terminal 60)" -le 60 ] && [ "$(on_terminal 1000)" -eq "$longest" ] ||
        complain "list: lines of $(on_terminal 60) and $(on_terminal 1000) characters on terminals of 60 and 1000, $longest without"
else
    echo "lists on a terminal: skipped, script is not installed"
fi

what="manual"
if command -v help2man >/dev/null && command -v mandoc >/dev/null; then
    "$source/cmake/manual-pages" "$mtil" pages || complain "manual-pages fails"
    (cd pages && ls) | shows mtil.1 mtil-run.1 mtil-merge-db.1 mtil-data-check.1 mtil-data-cache-clear.1
    mandoc -Tlint -Werror pages/*.1 >lint || complain "manual: $(head -5 lint)"
    mandoc -Tascii pages/mtil-run.1 | sed 's/.\x08//g' >run.txt
    grep -q -- '--precision=auto|f32|bf16' run.txt || complain "manual: mtil-run(1) lacks --precision"
    grep -q 'mtil run mini run.seeds=1,2,3' run.txt || complain "manual: mtil-run(1) lacks its example"
else
    echo "manual pages: skipped, help2man or mandoc is not installed"
fi

# bash_completes WORD…: what bash offers for the last word, line by line
bash_completes() {
    bash --norc -c 'source "$1"; shift
        PATH=$(dirname "$1"):$PATH; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=(); _mtil; printf "%s\n" "${COMPREPLY[@]}"' \
        bash mtil.bash "$mtil" mtil "$@"
}

what="bash"
"$mtil" completion bash >mtil.bash
bash_completes '' | shows run data completion help
bash_completes da | shows data
bash_completes data '' | shows mini check cache --help
bash_completes data cache cl | shows clear
bash_completes data get mn | shows mnist
bash_completes run min | shows mini mini_table2
bash_completes run mini merge.e | shows merge.every=
bash_completes run mini merge.policy = mo | shows most_used
bash_completes run mini run.cache = '' | shows memory disk
bash_completes run --precision '' | shows auto f32 bf16
bash_completes run --precision = b | shows bf16
bash_completes run --dry-run min | shows mini
bash_completes list key | shows keys
bash_completes sweep mini --gr | shows --grid # alone, without =
bash_completes query '' | shows leaderboard matrix class-experts --suite=
touch a-file runs.db runs.db-wal runs.db-shm runs.db-lock
bash_completes eval mini --adapters a- | shows a-file
[ "$(bash_completes query runs.)" = runs.db ] || complain "bash: query runs. completes $(bash_completes query runs. | tr '\n' ' ')"

# fish_completes LINE: what fish offers for its last word, line by line
fish_completes() {
    PATH=$(dirname "$mtil"):$PATH fish --no-config -c 'source mtil.fish; complete -C "$argv[1]"' "$1"
}

what="fish"
"$mtil" completion fish >mtil.fish
if command -v fish >/dev/null; then
    fish_completes 'mtil ' | shows run data completion help
    fish_completes 'mtil data cache cl' | shows clear
    fish_completes 'mtil run min' | shows mini mini_table2
    fish_completes 'mtil run mini merge.e' | shows merge.every=
    fish_completes 'mtil run mini merge.policy=mo' | shows merge.policy=most_used
    fish_completes 'mtil run --precision ' | shows auto f32 bf16
    fish_completes 'mtil run --precision=b' | shows --precision=bf16
    fish_completes 'mtil run --dry-run min' | shows mini
    fish_completes 'mtil eval mini --adapters a-' | shows a-file
    [ "$(fish_completes 'mtil query runs.')" = runs.db ] || complain "fish: query runs. completes $(fish_completes 'mtil query runs.')"
else
    echo "fish: skipped, fish is not installed"
fi

# zsh_completes LINE REST…: types a line with a tab behind it into a zsh of its own, which has to write the rest of its last word
cat >type.zsh <<'EOF'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'autoload -U compinit; compinit -u -D; source ./mtil.zsh; print rea""dy'
zpty -r shell out '*ready*'
zpty -w -n shell "$1"$'\t'
zpty -r shell out "*$2*"
EOF
zsh_completes() {
    PATH=$(dirname "$mtil"):$PATH timeout 60 zsh -f type.zsh "$@" || complain "zsh: \"$1\" is not completed by \"$2\""
}

what="zsh"
"$mtil" completion zsh >mtil.zsh
if command -v zsh >/dev/null; then
    zsh_completes 'mtil data cache cl' ear
    zsh_completes 'mtil run mini merge.ev' ery=
    zsh_completes 'mtil run mini merge.policy=mo' st_used
    zsh_completes 'mtil run --precision b' f16
    zsh_completes 'mtil run --precision=b' f16
    zsh_completes 'mtil query runs.' db
else
    echo "zsh: skipped, zsh is not installed"
fi

exit $failed

#!/bin/bash
# What README.md and docs/ say of the program exists: commands and their options, keys, suites and methods. Runs and sweeps of suites
# that ship are planned, with --dry-run and without data.
#   documents.sh MTIL SOURCE_FOLDER
set -u
mtil=$(realpath "$1")
cd "$2" || exit 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
broken=0

complain() {
    printf '%s\n' "$*"
    broken=1
}

names() { # KIND
    "$mtil" list "$1" --format csv | tail -n +2 | cut -d, -f1 | tr -d '\r'
}
names keys | sed -E 's/^tasks\.NAME\.//' >"$folder/keys"
sections=$(grep -oE '^[a-z]+\.' "$folder/keys" | tr -d . | sort -u | paste -sd'|')

# The commands of a page, one per line: of sh blocks, without comments; and those between backticks, too.
blocks() {
    sed -n '/^```sh/,/^```/p' "$1" | sed -E 's/(^| +)#.*//' | grep -oE '(^| )mtil .*' | sed 's/^ //'
}
commands() {
    blocks "$1"
    sed '/^```/,/^```/d' "$1" | tr '\n' ' ' | grep -oE '`mtil [^`]*`' | tr -d '`'
}

# The keys of a page: KEY=VALUE, and SECTION.KEY between backticks.
keys() {
    { commands "$1" | grep -oE '[a-zA-Z0-9_.]+=' | grep '\.' | tr -d =
        grep -oE "\`($sections)\.[a-z_0-9]+[^a-z_0-9./]" "$1" | sed 's/^.//; s/.$//'; } |
        sed -E 's/^(tasks|rows)\.[^.]+\.//' | grep -vE '^(run\.row|tasks\..*)$' | sort -u
}

"$mtil" list questions >"$folder/questions"
for page in README.md docs/*.md; do
    while read -r _ command rest; do
        [[ $command =~ ^[a-z][a-z-]*$ ]] || continue # mtil --version, mtil COMMAND
        read -ra words <<<"$rest"
        case $command in data | convert | runs) command="$command ${words[0]}" ;; esac
        help="$folder/$command"
        # shellcheck disable=SC2086
        [ -e "$help" ] || "$mtil" $command --help >"$help" 2>/dev/null || complain "$page: mtil $command is no command"
        for word in "${words[@]}"; do
            [[ $word =~ ^(--[a-z-]+) ]] || continue
            grep -qE -- "^ .*${BASH_REMATCH[1]}([^a-z-]|$)" "$help" ||
                complain "$page: mtil $command has no option ${BASH_REMATCH[1]}"
        done
        [ "$command" != query ] || [[ ! ${words[0]-} =~ ^[a-z-]+$ ]] || grep -qE "^${words[0]} " "$folder/questions" ||
            complain "$page: mtil query has no question ${words[0]}"
    done < <(commands "$page")
    while read -r _ command suite rest; do
        [[ $command =~ ^(run|classify|sweep)$ ]] && [ -e "harness/suites/$suite.yaml" ] || continue
        read -ra words <<<"$rest"
        (cd "$folder" && "$mtil" "$command" "$suite" "${words[@]}" --dry-run --quiet >/dev/null 2>message) ||
            complain "$page: mtil $command $suite $rest: $(grep error: "$folder/message")"
    done < <(blocks "$page")
    while IFS= read -r key; do
        grep -qxF -- "$key" "$folder/keys" || complain "$page: there is no key $key"
    done < <(keys "$page")
done
[ -e "$folder/run" ] || complain "no commands were found in the documents"

for suite in harness/suites/*.yaml; do
    suite=$(basename "$suite" .yaml)
    grep -q "\`$suite\`" docs/suites.md || complain "docs/suites.md lacks $suite"
done
while IFS= read -r file; do
    grep -qF "\`$file\`" README.md || complain "README.md names other weights than the suites: $file"
done < <(grep -hoE 'ViT-B-16\.[a-z]+' harness/suites/*.yaml | sort -u)
while IFS= read -r method; do
    grep -q "^| \`$method\` " docs/methods.md || complain "docs/methods.md lacks $method"
done < <(names methods)
exit $broken

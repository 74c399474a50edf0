#!/bin/bash
# make install below another root, and make package: the package is installed by dpkg into a root that has nothing but the files of
# the packages that it depends on, run there, and removed again. Nothing is built, and nothing is fetched.
#   install.sh BUILD_FOLDER SOURCE_FOLDER
set -u
build=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CUDA_VISIBLE_DEVICES=-1
failed=0

complain() {
    printf '%s\n' "$*" >&2
    failed=1
}

# --- make install ---

# The command that make would give after a build.
install=$(make --silent --dry-run -C "$source" install BUILD="$build" prefix=/opt/mtil DESTDIR="$folder/root" | grep 'cmake --install')
(cd "$source" && eval "$install") >"$folder/log" 2>&1 || complain "install fails: $(tail -3 "$folder/log")"
[ "$(ls "$folder/root") $(ls "$folder/root/opt")" = "opt mtil" ] || complain "something is installed outside the prefix"
share=$folder/root/opt/mtil/share
for file in man/man1/mtil.1 man/man1/mtil-run.1 bash-completion/completions/mtil zsh/site-functions/_mtil \
    fish/vendor_completions.d/mtil.fish doc/mtil/LICENSE doc/mtil/CITATION.cff doc/mtil/harness/suites/KEYS.md \
    doc/mtil/results/METRICS.md; do
    [ -s "$share/$file" ] || complain "share/$file is not installed"
done
(cd "$share/doc/mtil" && for page in README.md docs/*.md; do
    grep -oE '(\]\(|src=")[^):#" ]+[)#"]' "$page" | sed -E 's/^(\]\(|src=")(.*).$/\2/' | while IFS= read -r file; do
        [ -e "$(dirname "$page")/$file" ] || echo "the installed $page names $file, which is not installed"
    done
done) >"$folder/log"
[ ! -s "$folder/log" ] || complain "$(cat "$folder/log")"

# has_weights ANSWER: of a dry run without data, which needs the weights first
dry_run="run mini --dry-run data.root=/no/data"
has_weights() {
    [[ $1 == *"data.root: there is no folder /no/data"* ]]
}
# shellcheck disable=SC2086
has_weights "$("$folder/root/opt/mtil/bin/mtil" $dry_run 2>&1)" || complain "the installed program does not find its weights"

# --- make package ---

for tool in cpack dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null && continue
    echo "package: skipped, $tool is not installed"
    exit $failed
done
if [ "$(id -u)" -ne 0 ]; then
    echo "package: skipped, only root can install one"
    exit $failed
fi
cpack --config "$build/CPackConfig.cmake" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B "$folder/package" >"$folder/log" 2>&1 || complain "package: $(tail -3 "$folder/log")"
package=$(echo "$folder"/package/*.deb)
root=$folder/clean

# closure PACKAGE…: installed packages that these depend on, and theirs
closure() {
    apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
        "$@" | grep -E '^[a-z0-9]' | sort -u
}
depends=$(dpkg-deb --field "$package" Depends | tr ',' '\n' | sed -E 's/\|.*//; s/\(.*//; s/ //g')
for name in $depends; do
    dpkg-query --status "$name" >/dev/null 2>&1 && continue
    echo "package in a clean root: skipped, $name is not installed (cmake/install-dependencies --package)"
    exit $failed
done
# shellcheck disable=SC2046,SC2086
packages=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' $(closure $depends) 2>/dev/null | sed -n 's/^installed //p' | sort -u)

# Their files, the links that alternatives made of them, and what dpkg knows of them.
mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers} "$root"/{usr/bin,usr/sbin,usr/lib,usr/lib64,etc,tmp,proc,dev}
for name in bin sbin lib lib64; do
    ln -s usr/$name "$root/$name"
done
{
    # shellcheck disable=SC2086
    dpkg --listfiles $packages | sed -E 's,^/(bin|sbin|lib|lib64)/,/usr/\1/,'
    find /etc/alternatives /usr/lib -lname '/etc/alternatives/*' 2>/dev/null
    find /etc/alternatives -type l
} | grep -vE '^/usr/share/(doc|man|locale|icons|mime|fonts)/' | sort -u | while IFS= read -r path; do
    { [ -f "$path" ] || [ -L "$path" ]; } && printf '%s\0' "${path#/}"
done | tar -C / --null --no-recursion -cf - -T - 2>/dev/null | tar -C "$root" -xf - 2>/dev/null
for name in $packages; do
    dpkg-query --status "$name"
    echo
    dpkg --listfiles "$name" >"$root/var/lib/dpkg/info/$name:$(dpkg --print-architecture).list"
    cp "$root/var/lib/dpkg/info/$name:$(dpkg --print-architecture).list" "$root/var/lib/dpkg/info/$name.list"
done >"$root/var/lib/dpkg/status"

dpkg --root="$root" --install "$package" >"$folder/log" 2>&1 || complain "dpkg --install: $(cat "$folder/log")"
answer=$(chroot "$root" /usr/bin/mtil --version 2>&1) || complain "mtil --version in a clean root: $answer"
[ "$answer" = "$("$build/mtil" --version)" ] || complain "another version than the build's: $answer"
# shellcheck disable=SC2086 # outside: the program finds itself through /proc
has_weights "$("$root/usr/bin/mtil" $dry_run 2>&1)" || complain "the packaged program does not find its weights"
for file in doc/mtil/copyright man/man1/mtil-run.1.gz zsh/vendor-completions/_mtil; do
    [ -s "$root/usr/share/$file" ] || complain "the package lacks share/$file"
done
dpkg --root="$root" --purge mtil >"$folder/log" 2>&1 || complain "dpkg --purge: $(cat "$folder/log")"
left=$(find "$root" -path '*mtil*' -not -path "$root/var/lib/dpkg/*" -printf '%P\n')
[ -z "$left" ] || complain "removing the package leaves: $left"

# The dependencies are what makes it run.
broken=$folder/broken
mkdir -p "$broken/var/lib/dpkg"/{info,updates,triggers}
sed '/^Package: libdnnl/,/^$/d' "$root/var/lib/dpkg/status" >"$broken/var/lib/dpkg/status"
dpkg --root="$broken" --install "$package" >"$folder/log" 2>&1 && complain "the package installs without oneDNN"
grep -q 'depends on libdnnl' "$folder/log" || complain "the package does not say that it needs oneDNN: $(cat "$folder/log")"
exit $failed

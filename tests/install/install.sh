#!/bin/bash
# make install below another root, make uninstall, and make package: the package is installed into a bare Debian, run there, and
# removed again. Nothing is built; the bare Debian is fetched.
#   install.sh BUILD_FOLDER SOURCE_FOLDER
set -u
build=$1 source=$2
folder=$(mktemp -d) root=
trap 'rm -rf "$folder" "$root"' EXIT
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

# --- make uninstall ---

touch "$folder/root/opt/mtil/bin/other"
make --silent -C "$source" uninstall BUILD="$build" prefix=/opt/mtil DESTDIR="$folder/root" >"$folder/log" 2>&1 ||
    complain "uninstall fails: $(tail -3 "$folder/log")"
[ "$(cd "$folder/root" && find . ! -type d -o -empty)" = ./opt/mtil/bin/other ] ||
    complain "uninstall leaves or takes too much: $(find "$folder/root" | head)"

# --- make package ---

for tool in cpack dpkg-deb dpkg-shlibdeps file; do
    command -v $tool >/dev/null && continue
    echo "package: skipped, $tool is not installed (cmake/install-dependencies --installation)"
    exit $failed
done
pack() {
    cpack --config "$build/CPackConfig.cmake" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B "$1" >"$folder/log" 2>&1
}
# Without the tools that find the libraries there is no package, rather than one that does not start.
for tool in dpkg-shlibdeps file; do
    mkdir "$folder/without-$tool"
    ln -s /usr/bin/* "$folder/without-$tool"
    rm "$folder/without-$tool/$tool"
    PATH=$folder/without-$tool pack "$folder/incomplete" && complain "a package is made without $tool"
    grep -q "$tool is not installed" "$folder/log" || complain "package: does not say that $tool is missing: $(cat "$folder/log")"
done
pack "$folder/package" || complain "package: $(tail -3 "$folder/log")"
package=$(echo "$folder"/package/*.deb)

# In a Debian that has nothing but its base: the package is refused there until what it depends on is installed, too.
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
    echo "package in a bare root: skipped, it takes root and debootstrap (cmake/install-dependencies --installation)"
    exit $failed
fi
case ,$(findmnt --noheadings --output OPTIONS --target "$folder"), in # it takes devices and programs
    *,nodev,* | *,noexec,*) root=$(mktemp -d "$build/bare-XXXXXX") ;;
    *) root=$folder/bare ;;
esac
# shellcheck disable=SC1091
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
if ! debootstrap --variant=minbase "$codename" "$root" >"$folder/log" 2>&1; then
    echo "package in a bare root: skipped, debootstrap fails: $(tail -1 "$folder/log")"
    exit $failed
fi
in_root() {
    DEBIAN_FRONTEND=noninteractive chroot "$root" "$@" >"$folder/log" 2>&1
}
cp "$package" "$root/mtil.deb"
in_root dpkg --install /mtil.deb && complain "the package installs without what it depends on"
grep -q 'depends on libdnnl' "$folder/log" || complain "the package does not say that it needs oneDNN: $(cat "$folder/log")"
in_root apt-get install --yes --fix-broken --no-install-recommends || complain "apt-get: $(tail -5 "$folder/log")"
in_root /usr/bin/mtil --version || complain "mtil --version in a bare root: $(cat "$folder/log")"
[ "$(cat "$folder/log")" = "$("$build/mtil" --version)" ] || complain "another version than the build's: $(cat "$folder/log")"
# shellcheck disable=SC2086 # outside: the program finds itself through /proc
has_weights "$("$root/usr/bin/mtil" $dry_run 2>&1)" || complain "the packaged program does not find its weights"
for file in doc/mtil/copyright man/man1/mtil-run.1.gz; do
    [ -s "$root/usr/share/$file" ] || complain "the package lacks share/$file"
done
in_root dpkg --purge mtil || complain "dpkg --purge: $(cat "$folder/log")"
left=$(cd "$root/usr" && find . -path '*mtil*')
[ -z "$left" ] || complain "removing the package leaves: $left"
exit $failed

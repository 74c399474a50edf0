#!/bin/bash
# The README's two commands on bare systems, as somebody who is not root there: `make demo` to its end, with the averages that
# docs/reproducibility.md has for that system and this processor, `make test`, the package in a second root that has nothing of the
# build; on Debian 13 the CUDA backend with that system's own toolkit, where non-free packages can be had; on Debian 12 pip install .
# bookworm-arm64: the program built on Debian 12 for 64-bit Arm, and its matrix products, emulated. wheel: a wheel, made, and installed
# on Debian 11 and 13. All systems at once.
#   systems.sh SOURCE_FOLDER [CODENAME …]        bookworm, trixie, bookworm-arm64 and wheel; sid on request
# MTIL_TESTED_ON: the system whose tests need not be passed. What a system cannot be asked is said and skipped. Each has a
# log, whose end is shown where a step fails. The exit status is 77 where there is no system at all, and that of a failure else.
set -u
source=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- bookworm trixie bookworm-arm64 wheel

skip() {
    printf 'skipped: %s\n' "$1"
    exit 77
}
[ "$(id -u)" -eq 0 ] || skip "bare systems take root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed (cmake/install-dependencies --installation)"
[ "$(df --output=avail /var/tmp | tail -1)" -ge $((16 << 20)) ] || skip "/var/tmp has less than 16 GiB"
work=$(mktemp -d /var/tmp/mtil-systems-XXXXXX)
chmod 755 "$work"
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM
export DEBIAN_FRONTEND=noninteractive

# shellcheck source=cmake/bare-root
. "$source/cmake/bare-root"

# step CODENAME WORDS COMMAND…: its output goes into the system's log.
step() {
    local codename=$1 words=$2 start=$SECONDS
    shift 2
    if "$@" >"$work/$codename.step" 2>&1; then
        printf '%s: %s (%d s)\n' "$codename" "$words" $((SECONDS - start))
        return 0
    fi
    printf '%s: failed: %s\n' "$codename" "$words"
    tail -n 40 "$work/$codename.step"
    return 1
}

# The source as an archive of this commit has it, and somebody who may install packages.
furnish() {
    local root=$1
    install "$root" "make sudo" && inside "$root" root "useradd --create-home newcomer &&
        echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/newcomer" &&
        mkdir "$root/home/newcomer/mtil" &&
        git -c safe.directory="$source" -C "$source" archive HEAD | tar x -C "$root/home/newcomer/mtil" &&
        inside "$root" root "chown -R newcomer: ~newcomer/mtil"
}

# averages ROOT CODENAME: the last line of the demo's metrics beside the row of the document.
averages() {
    local found expected set
    set=$(inside "$1" newcomer "cd mtil && build/mtil doctor" | sed -n 's/^  cpu  *cpu (\([a-z0-9]*\).*/\1/p')
    found=$(inside "$1" newcomer "cd mtil && build/mtil query build/demo/results.db \
        'SELECT printf(\"%.1f, %.1f, %.1f\", avg(transfer), avg(average), avg(last)) AS averages FROM metrics' --format csv" |
        tail -1 | tr -d '"\r')
    expected=$(sed -n "s/^| [^|]*\`$2\` |[^|]*| $set | \([0-9., ]*\) |.*/\1/p" "$source/docs/reproducibility.md")
    if [ -z "$expected" ]; then
        echo "$2: averages on $set: $found; docs/reproducibility.md has none for it"
    elif [ "$found" = "$expected" ]; then
        echo "$2: averages on $set: $found"
    else
        echo "$2: failed: averages on $set: expected $expected, found $found"
        return 1
    fi
}

# small_run: two tasks by the program of an installation, which python reads.
small_run="mtil doctor && mtil data mini data &&
    mtil run mini data.root=data data.order=mnist,eurosat training.iterations=4 training.warmup=1"

# The program of a package, with what the package says it needs, as a user without a source.
package() {
    local root=$1
    install "$root" ./mtil.deb && inside "$root" root "useradd --create-home user" && inside "$root" user "$small_run"
}

# The package mtil of an installation and its program, by PYTHON.
read_by() {
    printf '%s' "$1 -c 'import mtil, mtil.program
assert mtil.program().startswith(mtil.__path__[0]), mtil.program()
rows = mtil.read(\"results.db\").query(\"matrix\")
assert len(rows) == 3, rows'"
}

# Built once more, since pip builds in a folder of its own.
pip_source() {
    local root=$1
    install "$root" "python3-venv ca-certificates" && as_here "$root" && inside "$root" newcomer "cd mtil && python3 -m venv build/venv &&
        build/venv/bin/pip install . && export PATH=\$PWD/build/venv/bin:\$PATH && mkdir pip && cd pip &&
        $small_run && $(read_by python3)"
}

# By somebody who is not root, where no package for builds is installed.
pip_wheel() {
    local root=$1
    install "$root" python3-venv && ! inside "$root" root "dpkg --get-selections | grep -e -dev" &&
        inside "$root" root "useradd --create-home user" && cp "$work"/made/wheel/*.whl "$root/home/user" &&
        inside "$root" user "python3 -m venv venv && venv/bin/pip install --no-index ./*.whl && export PATH=~/venv/bin:\$PATH &&
            $small_run && $(read_by python3)"
}

# With the kernels of one GPU, since nothing runs on one here.
wheel() {
    local codename
    if ! make -C "$source" wheel BUILD="$work/made" FLAGS=-DCMAKE_CUDA_ARCHITECTURES=80-real >"$work/wheel.step" 2>&1; then
        tail -n 40 "$work/wheel.step" | sed 's/^/wheel: /'
        ! grep -q 'wheel\] Error 77$' "$work/wheel.step" || { echo "wheel: skipped"; return 77; }
        return 1
    fi
    grep -E '^wheel: |MB' "$work/wheel.step"
    for codename in bullseye trixie; do
        step wheel "a bare root of $codename" bare_root "$codename" "$work/wheel-$codename" &&
            step wheel "pip install of the file on $codename" pip_wheel "$work/wheel-$codename" || return 1
    done
}

cuda() {
    local root=$1
    inside "$root" root "sed -i 's/ main\$/ main contrib non-free/' /etc/apt/sources.list" &&
        install "$root" nvidia-cuda-toolkit
}

# What cmake/install-dependencies finds missing: libraries of arm64, beside the machine's own tools.
cross_tools() {
    local root=$1 needed libraries
    needed=$(inside "$root" newcomer "cd mtil && cmake/install-dependencies --missing" 2>&1) || return 1
    libraries=$(grep -oE ' [a-z0-9-]+-dev\b' <<<"$needed" | grep -v libc6-dev | sed 's/$/:arm64/' | tr -d '\n')
    inside "$root" root "dpkg --add-architecture arm64" &&
        install "$root" "cmake ninja-build pkg-config gcc-aarch64-linux-gnu qemu-user-static $libraries"
}

# for_arm ROOT CODENAME
for_arm() {
    local arm=aarch64-linux-gnu
    if ! cross_tools "$1" >"$work/$2.step" 2>&1; then
        printf "%s: skipped, arm64's libraries cannot be had: %s\n" "$2" "$(tail -1 "$work/$2.step")"
        return 77
    fi
    step "$2" "the program for 64-bit Arm" inside "$1" newcomer "cd mtil &&
        export PKG_CONFIG_LIBDIR=/usr/lib/$arm/pkgconfig:/usr/share/pkgconfig &&
        cmake -S . -B build -G Ninja -DMTIL_WERROR=ON -DMTIL_CUDA=OFF -DCMAKE_SYSTEM_NAME=Linux \
            -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=$arm-gcc -DCMAKE_LIBRARY_ARCHITECTURE=$arm &&
        cmake --build build --target mtil test_backend_products" &&
        step "$2" "products on 64-bit Arm, emulated" inside "$1" newcomer "cd mtil &&
            qemu-aarch64-static build/mtil doctor | grep neon &&
            MTIL_TEST_EVERY=${MTIL_TEST_EVERY:-1} qemu-aarch64-static build/tests/test_backend_products"
}

# system CODENAME
system() {
    local codename=$1 root=$work/$1
    if [ "$codename" = wheel ]; then
        wheel
        return
    fi
    if ! bare_root "${codename%-arm64}" "$root" >"$work/$codename.step" 2>&1; then
        printf '%s: skipped, debootstrap fails: %s\n' "$codename" "$(tail -1 "$work/$codename.step")"
        return 77
    fi
    cp -a "$root" "$root-bare"
    step "$codename" "a bare root with make" furnish "$root" || return 1
    if [ "$codename" != "${codename%-arm64}" ]; then
        for_arm "$root" "$codename"
        return
    fi
    step "$codename" "make demo" inside "$root" newcomer "cd mtil && make demo FLAGS=-DMTIL_WERROR=ON" || return 1
    averages "$root" "$codename" || return 1
    if [ "$codename" = "${MTIL_TESTED_ON:-}" ]; then
        printf '%s: make test: left out, as MTIL_TESTED_ON asks\n' "$codename"
    else
        step "$codename" "make test" inside "$root" newcomer \
            "cd mtil && MTIL_TEST_EVERY=${MTIL_TEST_EVERY:-1} make test FLAGS=-DMTIL_WERROR=ON" || return 1
        grep -E 'tests passed|^Left out' "$work/$codename.step"
    fi
    step "$codename" "make package" inside "$root" newcomer "cd mtil && make package" || return 1
    cp "$root"/home/newcomer/mtil/build/package/*.deb "$root-bare/root/mtil.deb"
    step "$codename" "the package in another root" package "$root-bare" || return 1
    if [ "$codename" = bookworm ]; then # one toolkit is enough for one run of this
        step "$codename" "pip install ." pip_source "$root" || return 1
        step "$codename" "make clean" inside "$root" newcomer "cd mtil && make clean && ! ls build"
        return
    fi
    if ! cuda "$root" >"$work/$codename.step" 2>&1; then
        printf '%s: CUDA: skipped, its toolkit cannot be had: %s\n' "$codename" "$(tail -1 "$work/$codename.step")"
        return 0
    fi
    step "$codename" "the CUDA backend" inside "$root" newcomer "cd mtil &&
        make build FLAGS='-DMTIL_WERROR=ON -DMTIL_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=90-real' && ! build/mtil doctor | grep 'without CUDA'"
}

# 0: all passed, 1: one failed, 77: there was none.
processes=()
for codename; do
    system "$codename" &
    processes+=($!)
done
result=77
for process in "${processes[@]}"; do
    wait "$process"
    case $? in
    0) [ $result -ne 77 ] || result=0 ;;
    77) ;;
    *) result=1 ;;
    esac
done
exit $result

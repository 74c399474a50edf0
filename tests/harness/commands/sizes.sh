#!/bin/bash
# Models of the suite widenet have as many parameters as its paper prints, in millions.
#   sizes.sh PROGRAM
set -u
mtil=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2
export CUDA_VISIBLE_DEVICES=-1
failed=0

# ImageNet's 1000 classes, of one black pixel each
printf 'BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\1\0\0\0\1\0\0\0\1\0\x18\0\0\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >pixel.bmp
mkdir -p imagenet/{train,test}/class_{001..1000}
for class in imagenet/*/*; do
    ln pixel.bmp "$class"
done

# has ROW MILLIONS: rounded down, as the paper does
has() {
    local count
    count=$("$mtil" run widenet run.row="$1" data.root=. run.backend=cpu --dry-run --quiet | sed -n 's/^# \([0-9]*\) trained parameters$/\1/p')
    if [ "$((${count:-0} / 1000000))" != "$2" ]; then
        printf '%s: expected %s million parameters, found "%s"\n' "$1" "$2" "$count" >&2
        failed=1
    fi
}
has WideNet-B 29
has no-mixture-L 14 # the paper's 15 with the layer before the classifier that its text does not mention
exit $failed

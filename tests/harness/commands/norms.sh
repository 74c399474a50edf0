#!/bin/bash
# mtil norms gives Equation 9 of WideNet, whatever the names of the tensors, and refuses what has no LayerNorms.
#   norms.sh PROGRAM
set -u
mtil=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2
failed=0

expect() {
    if [[ $1 != *"$2"* ]]; then
        printf 'expected "%s" in: %s\n' "$2" "$1" >&2
        failed=1
    fi
}

# file NAME PATTERN: gains 1 2 and 4 8, biases 1 1 and 1 1
file() {
    local header length
    header=$(printf "{\"$2\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"$3\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},\"$4\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]},\"$5\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}")
    length=$(printf '%02x%02x' $((${#header} % 256)) $((${#header} / 256)))
    {
        printf "\\x${length:0:2}\\x${length:2:2}\\0\\0\\0\\0\\0\\0%s" "$header"
        printf '\0\0\x80\x3f\0\0\0\x40\0\0\x80\x40\0\0\0\x41\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f'
    } >"$1"
}
file timm.safetensors blocks.0.norm2.weight blocks.1.norm2.weight blocks.0.norm2.bias blocks.1.norm2.bias
own=visual.transformer.resblocks
file clip.safetensors $own.0.ln_2.weight $own.1.ln_2.weight $own.0.ln_2.bias $own.1.ln_2.bias
face=vision_model.encoder.layers
file face.safetensors $face.0.layer_norm2.weight $face.1.layer_norm2.weight $face.0.layer_norm2.bias $face.1.layer_norm2.bias
file other.safetensors a b c d

# (|1 − 4| + |1 − 8| + |2 − 4| + |2 − 8|) / (2 elements · 2 elements · 2 blocks)
for weights in timm clip face; do
    answer=$("$mtil" norms $weights.safetensors --format csv)
    expect "$answer" "$weights.safetensors,0,2.25,0"
    expect "$answer" "$weights.safetensors,all,2.25,0"
done
expect "$("$mtil" norms timm.safetensors clip.safetensors --format csv)" "clip.safetensors,1,2.25,0"
expect "$("$mtil" norms other.safetensors 2>&1)" "found those of 0"
exit $failed

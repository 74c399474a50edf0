#!/bin/bash
# No CUDA kernel spills registers to memory, and those stated here use at most so many. Needs nvcc, but no GPU. MTIL_TEST_EVERY
# above 1 leaves sm_80 out.
#   cuda_registers.sh NVCC SOURCE_FOLDER [FILE.cu …]
set -u
nvcc=$1
cd "$2" || exit 2
shift 2
[ $# -gt 0 ] || set -- $(cd models/cuda && echo *.cu)
{ command -v "$nvcc" && command -v "$(dirname "$(realpath "$(command -v "$nvcc")")")/ptxas"; } >/dev/null || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Registers on which a kernel's number of blocks per multiprocessor rests: file, kernel (without <…>: all its forms), limit.
stated='
attention.cu attend<64> 128
attention.cu attend<96> 168
attention.cu attend<128> 168
attention.cu gradients<64> 168
attention.cu gradients<96> 255
attention.cu gradients<128> 255
attention_bf16_backward.cu gradients<64> 128
experts.cu run_experts 128
experts.cu run_experts_back 128
experts.cu run_experts_to_input 128
expert_weights.cu weight_gradients 128
routing.cu route_samples 64
routing.cu router_gradients 64
slots.cu sort_together 64
optimizer.cu step_adamw 64
'

# check FILE ARCHITECTURE: a line for each kernel that breaks a rule. The report names a kernel, then its spills, then its registers.
check() {
    local file=$1 report=$folder/$1.$2
    if ! "$nvcc" -cubin -arch="sm_$2" -std=c++17 -O3 -I. -DMTIL_CUDA -Xptxas -v "models/cuda/$file" -o "$report.cubin" \
        >"$report" 2>&1; then
        echo "$file does not compile for sm_$2:"
        cat "$report"
        return
    fi
    c++filt <"$report" | awk -v file="$file" -v architecture="sm_$2" -v stated="$stated" '
        BEGIN {
            n = split(stated, words)
            for (i = 1; i < n; i += 3)
                if (words[i] == file)
                    limit[words[i + 1]] = words[i + 2]
        }
        /Function properties for / {
            kernel = $0
            sub(/.*Function properties for (void )?/, "", kernel)
            sub(/\(.*/, "", kernel)
        }
        /bytes spill stores/ && !/ 0 bytes spill stores, 0 bytes spill loads/ {
            print file ": " kernel " spills on " architecture ": " $0
        }
        /: Used [0-9]+ registers/ {
            all = kernel
            sub(/<.*/, "", all)
            most = kernel in limit ? limit[kernel] : all in limit ? limit[all] : 255
            used = $0
            sub(/.*Used /, "", used)
            if (used + 0 > most)
                print file ": " kernel " uses " used + 0 " registers on " architecture ", expected at most " most
            seen[kernel] = seen[all] = 1
        }
        END {
            for (kernel in limit)
                if (!(kernel in seen))
                    print file ": " kernel " is stated in cuda_registers.sh, but is no kernel on " architecture
        }'
}

architectures='80 90'
[ "${MTIL_TEST_EVERY:-1}" -gt 1 ] && architectures=90
for architecture in $architectures; do
    for file in "$@"; do
        check "$file" $architecture
    done
done | tee "$folder/broken"
[ ! -s "$folder/broken" ]

#!/bin/bash
# What is to be run when a GPU is lent for minutes: what is right, then what is fast.
#   gpu.sh pack BUILD ARCHIVE           one archive of the programs that the others run, below 64 MiB
#   gpu.sh right BUILD|ARCHIVE [LOG]    at most 7 minutes: doctor with its proof, tests, recorded numbers, runs with equal bits
#   gpu.sh fast BUILD|ARCHIVE [LOG]     at most 5 minutes: a step and its budget, all kernels, races
#   gpu.sh beside BUILD|ARCHIVE [LOG]   no limit: the same step in PyTorch (MTIL_PYTHON), and the rehearsal (DATA, SCALE)
# One line a step; all that they print is in LOG (gpu-right.log, ...). Each step has a limit of its own; one that no time is left for
# is named and counts as failed, as one that finds no GPU does. EMULATED=N tries all of it on the emulated device, in smaller sizes
# and with N times the limits. Nothing asks cmake or ctest.
set -u
usage() {
    sed -n '3,6s/^# *//p' "$0" >&2
    exit 2
}
[ $# -ge 2 ] || usage
what=$1 build=$2
suffix=${EMULATED:+_cuda_on_host} slower=${EMULATED:-1} together=4
log=$(realpath "${3:-gpu-$what.log}")
cd "$(dirname "$0")/../.." || exit 2
bf16='products rows prefix dispatch experts mixture'
families="transfer embed loss optimizer $bf16"
harness='trainer_device checkpoint evaluator shared_features selector replicas services'
models='clip_gradients vit class_head alexnet adapters deltas mixtures prefixes'

programs() {
    printf "tests/test_%s$suffix\n" $harness $models $(printf 'backend_%s ' $families)
    printf "tests/%s$suffix\n" step kernels replay_fixtures replay_decisions
    [ -z "$suffix" ] && printf '%s\n' mtil tests/rehearsal || echo "tests/mtil$suffix"
}

if [ "$what" = pack ]; then
    [ $# -eq 3 ] || usage
    folder=$(mktemp -d) && mkdir "$folder/tests" && cp -r "$build/weights" "$folder" || exit 1
    for program in $(programs); do
        strip -o "$folder/$program" "$build/$program" || exit 1
    done
    tar -C "$folder" -c . | xz --lzma2=preset=1,dict=256MiB >"$log" || exit 1
    rm -r "$folder"
    bytes=$(wc -c <"$log")
    echo "$log: $((bytes >> 20)) MiB"
    [ "$bytes" -lt $((64 << 20)) ] || { echo "gpu.sh: the archive must be below 64 MiB" >&2; exit 1; }
    exit
fi

parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
if [ -f "$build" ]; then
    mkdir "$parts/build" && tar -C "$parts/build" -xJf "$build" || exit 2
    build=$parts/build
fi
build=$(realpath "$build")
mtil=$build/${suffix:+tests/}mtil$suffix
[ -x "$build/tests/step$suffix" ] || { echo "gpu.sh: no tests/step$suffix in $build; expected a build with -DMTIL_TESTS=ON" >&2; exit 2; }
export MTIL_TEST_BACKEND=cuda XDG_CACHE_HOME=$parts/cache
case $what in right) end=$((420 * slower)) ;; fast) end=$((300 * slower)) ;; beside) end=1000000 ;; *) usage ;; esac
: >"$log"
number=0

# one NAME SECONDS COMMAND...: a step within its limit and what is left of all; its line and its output are joined in order
one() {
    local name=$1 limit=$(($2 * slower)) start=$SECONDS rc=127 left=$((end - SECONDS))
    shift 2
    [ $limit -le $left ] || limit=$left
    if [ $limit -gt 0 ]; then
        timeout -k 5 $limit "$@" >"$parts/$number.out" 2>&1
        rc=$?
    else
        echo 'no time was left' >"$parts/$number.out"
    fi
    [ $rc -eq 0 ] || echo "$name" >>"$parts/failed"
    local last said=ok
    last=$(grep -av '^ *$' "$parts/$number.out" | tail -1 | cut -c1-90)
    [ $rc -eq 0 ] || said="FAILED $rc"
    [ $rc -ne 124 ] || said="FAILED, over $limit s"
    printf '%-26s %4d s  %s: %s\n' "$name" $((SECONDS - start)) "$said" "$last" | tee "$parts/$number.line"
}
# step: by itself; beside: up to four at a time, until `joined`
step() {
    joined
    number=$((number + 1))
    one "$@"
}
beside() {
    number=$((number + 1))
    while [ "$(jobs -rp | wc -l)" -ge $together ]; do
        wait -n
    done
    one "$@" &
}
joined() {
    wait
}
test_of() {
    local name=$1 precision=$2
    shift 2
    beside "$name, $precision" 120 env MTIL_TEST_PRECISION="$precision" "$@" "$build/tests/test_$name$suffix"
}

# run FOLDER [SECONDS]: `mtil run mini` in bf16 on the device, stopped after so long as Ctrl-C does
run() {
    (cd "$parts" && ${2:+timeout -s INT $2} "$mtil" run mini --quiet run.backend=cuda run.precision=bf16 data.root=data \
        run.database="$1.db" run.folder="$1" \
        ${EMULATED:+data.order=mnist,eurosat training.iterations=4 training.batch=4 selector.iterations=2})
}
# Two runs, and one that is stopped and resumed: the same adapters.
same_bits() {
    local stopped=0 seconds n
    run one && run two || return 1
    for seconds in 3 5 8; do
        run three $((seconds * slower)) || stopped=$((stopped + 1))
    done
    run three || return 1
    [ $stopped -gt 0 ] || { echo 'nothing was stopped: the run is shorter than the first stop'; return 1; }
    for n in two three; do
        cmp "$parts"/one/*/seed1/adapters.safetensors "$parts/$n"/*/seed1/adapters.safetensors || return 1
    done
    sha256sum "$parts"/one/*/seed1/adapters.safetensors | cut -c1-16
    echo "the same adapters twice, and after $stopped stops"
}

case $what in
right)
    step doctor 60 bash -c 'said=$("$0" doctor 2>&1); echo "$said"; ! grep "fails its proof" <<<"$said" &&
        grep "computes what the CPU does" <<<"$said"' "$mtil"
    test_of backend_products f32
    test_of backend_transfer f32
    for family in $bf16; do
        test_of "backend_$family" bf16
    done
    for test in $(printf 'backend_%s ' $families) $models $harness; do
        case $test in backend_products | backend_transfer) ;; *) test_of "$test" f32 ;; esac
    done
    joined
    beside 'recorded numbers, f32' 120 "$build/tests/replay_fixtures$suffix" --backend cuda tests/fixtures/model/base tests/fixtures/mixtures
    beside 'recorded numbers, bf16' 60 "$build/tests/replay_fixtures$suffix" --backend cuda --precision bf16 tests/fixtures/model/base
    beside decisions 60 "$build/tests/replay_decisions$suffix" --backend cuda ${EMULATED:+--steps 4 --after 2}
    step 'data of mini' 30 "$mtil" data mini "$parts/data"
    export -f same_bits run
    export parts mtil slower EMULATED=${EMULATED-}
    step 'mini three times, bf16' 180 bash -c same_bits ;;
fast)
    size=vit_b_16 sizes=vit_b_16
    [ -z "${EMULATED-}" ] || { size='--budget mini 4 3 5' sizes=tiny; } # a rate of products takes plain loops minutes
    for precision in bf16 f32; do
        step "step, $precision" 60 "$build/tests/step$suffix" --backend cuda --precision $precision $size
        step "kernels, $precision" 60 "$build/tests/kernels$suffix" --backend cuda --precision $precision $sizes
    done
    step budget 40 "$build/tests/step$suffix" --backend cuda --precision bf16 --budget $size
    export MTIL_TEST_EVERY=5
    for tool in racecheck synccheck; do
        checked="compute-sanitizer --tool $tool --error-exitcode 9"
        [ -z "${EMULATED-}" ] || checked= # which checks barriers itself
        for family in experts rows mixture; do
            step "$tool, $family" 60 env MTIL_TEST_PRECISION=bf16 $checked "$build/tests/test_backend_$family$suffix"
        done
    done ;;
beside)
    for precision in f32 bf16; do
        step "PyTorch, $precision" 600 "${MTIL_PYTHON:-python3}" tests/bench/step_pytorch.py --precision $precision
    done
    step rehearsal 100000 env MTIL_TEST_PROGRAM="$mtil" "$build/tests/rehearsal" --scale "${SCALE:-1}" --model vit_b_16 \
        "${DATA:-$parts/rehearsal}" run.backend=cuda run.precision=bf16 ;;
esac
joined
for ((i = 1; i <= number; i++)); do
    printf '\n## '
    cat "$parts/$i.line" "$parts/$i.out"
done >>"$log"
echo "$number steps in $SECONDS s, all that they print in $log; failed: $( [ -f "$parts/failed" ] && paste -sd, "$parts/failed" || echo none)"
[ ! -f "$parts/failed" ]

#!/bin/bash
# All that is to be run when a GPU is at hand, what is right before what is fast.
#   tests/bench/gpu.sh [BUILD_FOLDER [doctor|tests|memcheck|racecheck|synccheck|speed|rehearsal …]]
# Without names all parts; each runs by itself where a command has a time limit. The folder may have been built elsewhere:
# nothing asks cmake or ctest. DATA: where the rehearsal writes (50 GB at SCALE=1); MTIL_PYTHON: a Python with PyTorch.
build=$(realpath "${1:-build}")
[ -x "$build/tests/step" ] || { echo "gpu.sh: no tests/step in $build; expected a build with -DMTIL_TESTS=ON" >&2; exit 2; }
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- doctor tests memcheck racecheck synccheck speed rehearsal
cd "$(dirname "$0")/../.." || exit 2
failed=''

# report NAME COMMAND…: one that finds no GPU has failed, too (77)
report() {
    local name=$1 start=$SECONDS
    shift
    printf '\n## %s\n' "$name"
    "$@" 2>&1
    local rc=$?
    echo "exit $rc after $((SECONDS - start)) s"
    [ $rc -eq 0 ] || failed+=" $name($rc)"
}

# backend_tests [TOOL …]: of all operations, in f32 and, where they have it, in bf16
backend_tests() {
    local family
    for family in tests/models/backend/test_backend_*.c; do
        family=${family#*test_backend_} family=${family%.c}
        report "$family, f32" env MTIL_TEST_BACKEND=cuda "$@" "$build/tests/test_backend_$family"
        case $family in products | rows | prefix | dispatch | experts | mixture)
            report "$family, bf16" env MTIL_TEST_BACKEND=cuda MTIL_TEST_PRECISION=bf16 "$@" "$build/tests/test_backend_$family" ;;
        esac
    done
}

for part in "$@"; do
    case $part in
    doctor) report doctor "$build/mtil" doctor ;;
    tests)
        backend_tests
        for test in clip_gradients learned vit class_head alexnet adapters deltas mixtures services trainer_device checkpoint \
            evaluator; do
            report "$test" env MTIL_TEST_BACKEND=cuda "$build/tests/test_$test"
        done
        report "recorded numbers" "$build/tests/replay_fixtures" --backend cuda tests/fixtures/model/base tests/fixtures/mixtures
        report decisions "$build/tests/replay_decisions" --backend cuda ;;
    memcheck | racecheck | synccheck)
        MTIL_TEST_EVERY=5 backend_tests compute-sanitizer --tool "$part" --error-exitcode 9 ;;
    speed)
        for precision in f32 bf16; do
            report "step, $precision" "$build/tests/step" --backend cuda --precision $precision vit_b_16
            report "PyTorch, $precision" "${MTIL_PYTHON:-python3}" tests/bench/step_pytorch.py --precision $precision
            report "kernels, $precision" "$build/tests/kernels" --backend cuda --precision $precision vit_b_16
        done
        report budget "$build/tests/step" --backend cuda --precision bf16 --budget vit_b_16 ;;
    rehearsal) report rehearsal env MTIL_TEST_PROGRAM="$build/mtil" "$build/tests/rehearsal" --scale "${SCALE:-1}" \
        --model vit_b_16 "${DATA:-$build/rehearsal}" run.backend=cuda run.precision=bf16 ;;
    *) echo "gpu.sh: expected doctor, tests, memcheck, racecheck, synccheck, speed or rehearsal, found '$part'" >&2; exit 2 ;;
    esac
done
printf '\nfailed:%s\n' "${failed:- nothing}"
[ -z "$failed" ]

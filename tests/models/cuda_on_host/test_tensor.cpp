/* models/cuda/tensor.cuh on the emulator: fragments as PTX lays them out, loads and products against plain loops, and
 * asynchronous copies, which must not be seen before they are waited for. */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" {
#include <cmocka.h>
}

#include "models/cuda/tensor.cuh"

namespace
{

enum { SIDE = 16, LD = 24 };

struct alignas(16) matrix_of_values {
    __nv_bfloat16 value[SIDE][LD];
};

matrix_of_values x, y;
float product[SIDE][SIDE];
std::uint32_t fragment[4][WARP];

void run(const std::function<void()> &thread, unsigned int threads = WARP)
{
    emulation_launch(dim3(1), dim3(threads), 0, 48 << 10, thread, nullptr);
}

float value_of(const matrix_of_values &m, int row, int column)
{
    return __bfloat162float(m.value[row][column]);
}

/* Small whole numbers, all different in their neighbourhood: sums are exact. */
void fill()
{
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            x.value[i][j] = __float2bfloat16(static_cast<float>((7 * i + 3 * j) % 31 - 15));
            y.value[i][j] = __float2bfloat16(static_cast<float>((5 * i + 11 * j) % 29 - 14));
        }
}

/* The four parts of a fragment that a load gives, as the pairs that PTX's tables name. */
void expect_pair(int part, unsigned int in_lane, float low, float high)
{
    assert_true(half_of(fragment[part][in_lane], 0) == low);
    assert_true(half_of(fragment[part][in_lane], 1) == high);
}

void keep(const std::uint32_t from[4])
{
    for (int i = 0; i < 4; i++)
        fragment[i][lane()] = from[i];
}

/* A right operand is laid out as the transpose of a left one, with its 8 × 8 parts in the same order. */
void operands_have_their_layout(void **)
{
    fill();
    for (int kind = 0; kind < 4; kind++) {
        bool right = kind / 2 != 0, transposed = kind % 2 != 0;
        run([=] {
            std::uint32_t values[4];
            if (right)
                (transposed ? load_right_transposed : load_right)(values, &x.value[0][0], LD);
            else
                (transposed ? load_left_transposed : load_left)(values, &x.value[0][0], LD);
            keep(values);
        });
        for (int i = 0; i < 4; i++)
            for (int lane = 0; lane < WARP; lane++) {
                int across = lane / 4 + (right ? i / 2 : i % 2) * 8, along = lane % 4 * 2 + (right ? i % 2 : i / 2) * 8;
                if (right == transposed)
                    expect_pair(i, lane, value_of(x, across, along), value_of(x, across, along + 1));
                else
                    expect_pair(i, lane, value_of(x, along, across), value_of(x, along + 1, across));
            }
    }
}

/* x y, or with wrong = true the same with y taken for its transpose. */
void multiply(bool wrong)
{
    run([=] {
        std::uint32_t a[4], b[4];
        float sums[2][4] = {};
        load_left(a, &x.value[0][0], LD);
        wrong ? load_right_transposed(b, &y.value[0][0], LD) : load_right(b, &y.value[0][0], LD);
        for (int half = 0; half < 2; half++) {
            mma_m16n8k16(sums[half], a, b + 2 * half);
            for (unsigned int i = 0; i < 4; i++)
                product[lane() / 4 + i / 2 * 8][half * 8 + lane() % 4 * 2 + i % 2] = sums[half][i];
        }
    });
}

int differences()
{
    int count = 0;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            float expected = 0;
            for (int k = 0; k < SIDE; k++)
                expected += value_of(x, i, k) * value_of(y, k, j);
            count += product[i][j] != expected;
        }
    return count;
}

void products_are_those_of_plain_loops(void **)
{
    fill();
    multiply(false);
    assert_int_equal(differences(), 0);
    multiply(true);
    assert_true(differences() > SIDE * SIDE / 2);
}

void results_become_left_operands(void **)
{
    run([] {
        float result[2][4];
        std::uint32_t a[4];
        for (unsigned int i = 0; i < 8; i++) /* 16 · row + column, of 16 × 16 */
            result[i / 4][i % 4] =
                static_cast<float>((lane() / 4 + i % 4 / 2 * 8) * 16 + i / 4 * 8 + lane() % 4 * 2 + i % 2);
        as_left(a, result);
        keep(a);
    });
    for (int i = 0; i < 4; i++)
        for (int lane = 0; lane < WARP; lane++) {
            float low = static_cast<float>((lane / 4 + i % 2 * 8) * 16 + lane % 4 * 2 + i / 2 * 8);
            expect_pair(i, lane, low, low + 1);
        }
}

/* Each thread copies a value and reads that of its neighbour. */
alignas(16) float from[64], copied[64], seen[64];

void copy_and_read(bool wait, bool barrier)
{
    for (int i = 0; i < 64; i++)
        from[i] = static_cast<float>(i + 1), copied[i] = 0;
    run(
        [=] {
            unsigned int own = threadIdx.x;
            cp_async<4>(&copied[own], &from[own], own != 5);
            cp_async_commit();
            if (wait)
                cp_async_wait<0>();
            if (barrier)
                __syncthreads();
            seen[own] = copied[own ^ 33];
            __syncthreads();
            cp_async_wait<0>();
        },
        64);
}

void copies_are_seen_after_wait_and_barrier(void **)
{
    copy_and_read(true, true);
    for (int i = 0; i < 64; i++)
        assert_true(seen[i] == ((i ^ 33) == 5 ? 0.0f : from[i ^ 33]));
    copy_and_read(false, true);
    for (int i = 0; i < 64; i++)
        assert_true(std::isnan(seen[i]));
    int missing = 0;
    copy_and_read(true, false);
    for (int i = 0; i < 64; i++)
        missing += seen[i] != ((i ^ 33) == 5 ? 0.0f : from[i ^ 33]);
    assert_true(missing > 0);
}

void later_groups_are_still_on_their_way(void **)
{
    run([] {
        unsigned int own = threadIdx.x;
        cp_async<4>(&copied[own], &from[own], true);
        cp_async_commit();
        cp_async<4>(&copied[own + WARP], &from[own], true);
        cp_async_commit();
        cp_async_wait<1>();
        seen[own] = copied[own], seen[own + WARP] = copied[own + WARP];
        cp_async_wait<0>();
    });
    for (int i = 0; i < WARP; i++) {
        assert_true(seen[i] == from[i]);
        assert_true(std::isnan(seen[i + WARP]));
    }
}

} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_have_their_layout),          cmocka_unit_test(products_are_those_of_plain_loops),
        cmocka_unit_test(results_become_left_operands),        cmocka_unit_test(copies_are_seen_after_wait_and_barrier),
        cmocka_unit_test(later_groups_are_still_on_their_way),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}

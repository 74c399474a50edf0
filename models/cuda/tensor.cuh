/* Tensor cores and asynchronous copies of compute capability 8.0: PTX's instructions as functions of their names, and the
 * operands of a product of 16 × 8 values over a depth of 16, bf16 with sums in f32, as ldmatrix finds them in shared memory.
 *
 *     uint32_t a[4], b[4];
 *     load_left(a, &x[0][0], LD);                                // 16 × 16 values, rows LD apart
 *     load_right(b, &y[0][0], LD);                               // 16 × 16: two operands of 8 columns each
 *     mma_m16n8k16(sums[0], a, b), mma_m16n8k16(sums[1], a, b + 2);
 *
 * All lanes of a warp call them together. Of a fragment, lane 4 · g + t holds (PTX ISA, "Matrix fragments for mma.m16n8k16"):
 *     a[0], a[1]: row g and g + 8 of columns 2t and 2t + 1; a[2], a[3]: the same of columns 2t + 8 and 2t + 9
 *     b[0], b[1]: column g of rows 2t and 2t + 1; of rows 2t + 8 and 2t + 9
 *     sums[0 … 3]: row g of columns 2t and 2t + 1; row g + 8 of them
 * Rows in shared memory begin at multiples of 16 bytes. */
#pragma once

#include "models/cuda/kernel.cuh"

#ifdef __CUDACC__
/* sums += a b */
static __device__ inline void mma_m16n8k16(float sums[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ inline uint32_t shared_address(const void *place)
{
    return (uint32_t)__cvta_generic_to_shared(place);
}

/* Four matrices of 8 × 8; lane i names row i mod 8 of matrix i / 8. Lane 4 · g + t gets values 2t and 2t + 1 of row g. */
static __device__ inline void ldmatrix_x4(uint32_t to[4], const __nv_bfloat16 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* The same of the transposed matrices: values 2t and 2t + 1 of column g. */
static __device__ inline void ldmatrix_x4_trans(uint32_t to[4], const __nv_bfloat16 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* Copies BYTES (4, 8 or 16, at multiples of them) to shared memory, or zeros unless `there`; done after cp_async_wait, and for
 * other threads after a barrier behind that. */
template <int BYTES> static __device__ inline void cp_async(void *shared, const void *global, bool there)
{
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
                     "r"(there ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(shared)), "l"(global),
                     "n"(BYTES), "r"(there ? BYTES : 0)
                     : "memory");
}

/* Ends a group of this thread's copies. */
static __device__ inline void cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits for this thread's groups but the latest ones. */
template <int LATEST> static __device__ inline void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LATEST) : "memory");
}

/* Two values as bf16, the first in the lower half. */
static __device__ inline uint32_t pack_bf16(float low, float high)
{
    uint32_t packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

/* 2ˣ, within two units in the last place; 0 where it would be subnormal. */
static __device__ inline float ex2_approx_ftz(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#else
#include <tensor_on_host.h>
#endif

/* The place of 16 × 16 values that this lane names: matrices in the order of rows, then columns, or the other way round. */
static __device__ inline const __nv_bfloat16 *by_rows(const __nv_bfloat16 *x, unsigned int stride)
{
    return x + lane() % 16 * stride + lane() / 16 * 8;
}

static __device__ inline const __nv_bfloat16 *by_columns(const __nv_bfloat16 *x, unsigned int stride)
{
    return x + (lane() / 16 * 8 + lane() % 8) * stride + lane() / 8 % 2 * 8;
}

/* a = x [16, 16] */
static __device__ inline void load_left(uint32_t a[4], const __nv_bfloat16 *x, unsigned int stride)
{
    ldmatrix_x4(a, by_rows(x, stride));
}

/* a = xᵀ */
static __device__ inline void load_left_transposed(uint32_t a[4], const __nv_bfloat16 *x, unsigned int stride)
{
    ldmatrix_x4_trans(a, by_columns(x, stride));
}

/* b = x [16, 16]: its first 8 columns, then the others */
static __device__ inline void load_right(uint32_t b[4], const __nv_bfloat16 *x, unsigned int stride)
{
    ldmatrix_x4_trans(b, by_rows(x, stride));
}

/* b = xᵀ */
static __device__ inline void load_right_transposed(uint32_t b[4], const __nv_bfloat16 *x, unsigned int stride)
{
    ldmatrix_x4(b, by_columns(x, stride));
}

/* Two neighbouring results of 16 × 8 as the left operand of a product over their 16 columns. */
static __device__ inline void as_left(uint32_t a[4], const float x[2][4])
{
    for (int i = 0; i < 4; i++)
        a[i] = pack_bf16(x[i / 2][i % 2 * 2], x[i / 2][i % 2 * 2 + 1]);
}

/* ---- Products of tiles in shared memory by a block of 256 threads: f32 by multiply-adds on registers, bf16 on tensor cores,
 * sums in f32.
 *
 *     struct tile<T, 128, true, false> sum;                 // 64 × 128 values; a[row][k], b[k][column]
 *     sum.clear();
 *     sum.multiply(a, lda, b, ldb, depth, rows);            // += a b; rows of a from `rows` on, a multiple of 16, are left out
 *     sum.store(result, ld, rows);                          // result[row][column], f32 in shared memory
 *     sum.visit(rows, columns, [&](unsigned int row, unsigned int column, float *values) {…});       // EACH neighbours
 *
 * A value's sum runs over k in order, whatever its row and column. Leading dimensions of operands are padded by 16 bytes
 * against bank conflicts, those of results by 8 values.
 */
enum { TILE_ROWS = 64, TILE_THREADS = 256, STRIP = 16 };

/* Four neighbours, one access. */
template <typename T> struct alignas(4 * sizeof(T)) four {
    T value[4];
};

/* As many floats as a tile has side by side. */
template <int N> struct alignas(4 * N) neighbours {
    float value[N];
};

template <typename T> struct operand_type;
template <> struct operand_type<float> {
    static constexpr enum tensor_type type = TENSOR_F32;
    static __device__ inline float of(float x)
    {
        return x;
    }
    static __device__ inline float widen(float x)
    {
        return x;
    }
};
template <> struct operand_type<__nv_bfloat16> {
    static constexpr enum tensor_type type = TENSOR_BF16;
    static __device__ inline __nv_bfloat16 of(float x)
    {
        return __float2bfloat16(x);
    }
    static __device__ inline float widen(__nv_bfloat16 x)
    {
        return __bfloat162float(x);
    }
};

/* Depth of an operand's tile, 128 bytes of a row, and the leading dimension of rows of n values. */
template <typename T> static constexpr unsigned int tile_depth = 128 / sizeof(T);
template <typename T, int N> static constexpr unsigned int padded = N + 16 / sizeof(T);

/* to[row][column] = sum, by as many as lie side by side */
template <typename Tile>
static __device__ inline void store_tile(Tile &tile, float *to, size_t ld, unsigned int rows, unsigned int columns)
{
    using some = struct neighbours<Tile::EACH>;
    tile.visit(rows, columns, [&](unsigned int row, unsigned int column, const float *values) {
        some own;
        for (int n = 0; n < Tile::EACH; n++)
            own.value[n] = values[n];
        *(some *)(to + row * ld + column) = own;
    });
}

/* A_DEEP, B_DEEP: whether neighbours in memory are neighbours along the depth. */
template <typename T, int COLUMNS, bool A_DEEP, bool B_DEEP> struct tile;

/* A thread of 16 × 16 has 4 rows and COLUMNS / 16 columns: neighbours where the operand has neighbours along them, so that
 * every access is one of 16 bytes, else every sixteenth. */
template <int COLUMNS, bool A_DEEP, bool B_DEEP> struct tile<float, COLUMNS, A_DEEP, B_DEEP> {
    enum { SIDE = 16, HIGH = TILE_ROWS / SIDE, ACROSS = COLUMNS / SIDE, EACH = B_DEEP ? 1 : 4 };
    float sum[HIGH][ACROSS];

    static __device__ inline unsigned int row(unsigned int i)
    {
        unsigned int y = threadIdx.x / SIDE;
        return A_DEEP ? y + SIDE * i : HIGH * y + i;
    }

    static __device__ inline unsigned int column(unsigned int j)
    {
        unsigned int x = threadIdx.x % SIDE;
        return B_DEEP ? x + SIDE * j : 4 * x + 4 * SIDE * (j / 4) + j % 4;
    }

    __device__ inline void clear()
    {
        for (int i = 0; i < HIGH; i++)
            for (int j = 0; j < ACROSS; j++)
                sum[i][j] = 0;
    }

    static __device__ inline void load_b(const float *b, unsigned int ldb, unsigned int k, float values[4][ACROSS])
    {
        for (int j = 0; j < ACROSS; j += B_DEEP ? 1 : 4)
            for (int n = 0; n < (B_DEEP ? 1 : 4); n++) {
                struct four<float> some =
                    *(const struct four<float> *)(B_DEEP ? b + column(j) * ldb + k : b + (k + n) * ldb + column(j));
                for (int m = 0; m < 4; m++)
                    values[B_DEEP ? m : n][B_DEEP ? j : j + m] = some.value[m];
            }
    }

    static __device__ inline void load_a(const float *a, unsigned int lda, unsigned int k, float values[4][HIGH])
    {
        for (int n = 0; n < 4; n++) {
            struct four<float> some =
                *(const struct four<float> *)(A_DEEP ? a + row(n) * lda + k : a + (k + n) * lda + row(0));
            for (int m = 0; m < 4; m++)
                values[A_DEEP ? m : n][A_DEEP ? n : m] = some.value[m];
        }
    }

    __device__ inline void multiply(const float *a, unsigned int lda, const float *b, unsigned int ldb,
                                    unsigned int depth, unsigned int rows)
    {
        for (unsigned int k = 0; k < depth; k += 4) {
            float more[4][HIGH], others[4][ACROSS];
            load_a(a, lda, k, more);
            load_b(b, ldb, k, others);
            for (int i = 0; i < HIGH; i++)
                if (!A_DEEP || (unsigned int)(STRIP * i) < rows)
                    for (int n = 0; n < 4; n++)
                        for (int j = 0; j < ACROSS; j++)
                            sum[i][j] += more[n][i] * others[n][j];
        }
    }

    template <typename Use> __device__ inline void visit(unsigned int rows, unsigned int columns, Use use)
    {
        for (int i = 0; i < HIGH; i++)
            for (int j = 0; j < ACROSS; j += EACH)
                if (row(i) < rows && column(j) < columns)
                    use(row(i), column(j), &sum[i][j]);
    }

    __device__ inline void store(float *result, unsigned int ld, unsigned int rows)
    {
        store_tile(*this, result, ld, rows, COLUMNS);
    }
};

/* A warp of eight has a strip of 16 rows and half of the columns. */
template <int COLUMNS, bool A_DEEP, bool B_DEEP> struct tile<__nv_bfloat16, COLUMNS, A_DEEP, B_DEEP> {
    enum { PARTS = COLUMNS / 2 / EIGHT, EACH = 2 };
    float sum[PARTS][4];

    static __device__ inline unsigned int strip()
    {
        return threadIdx.x / WARP % 4 * STRIP;
    }

    static __device__ inline unsigned int column()
    {
        return threadIdx.x / WARP / 4 * (COLUMNS / 2);
    }

    __device__ inline void clear()
    {
        for (int i = 0; i < PARTS * 4; i++)
            sum[i / 4][i % 4] = 0;
    }

    __device__ inline void multiply(const __nv_bfloat16 *a, unsigned int lda, const __nv_bfloat16 *b, unsigned int ldb,
                                    unsigned int depth, unsigned int rows)
    {
        for (unsigned int k = 0; k < depth && strip() < rows; k += STRIP) {
            uint32_t left[4], right[4];
            if (A_DEEP)
                load_left(left, a + strip() * lda + k, lda);
            else
                load_left_transposed(left, a + k * lda + strip(), lda);
#pragma unroll
            for (int p = 0; p < PARTS; p += 2) {
                unsigned int j = column() + (unsigned int)p * EIGHT;
                if (B_DEEP)
                    load_right_transposed(right, b + j * ldb + k, ldb);
                else
                    load_right(right, b + k * ldb + j, ldb);
                mma_m16n8k16(sum[p], left, right);
                mma_m16n8k16(sum[p + 1], left, right + 2);
            }
        }
    }

    template <typename Use> __device__ inline void visit(unsigned int rows, unsigned int columns, Use use)
    {
        unsigned int row = strip() + lane() / 4, first = column() + lane() % 4 * 2;
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            for (int half = 0; half < 2; half++)
                if (row + (unsigned int)half * EIGHT < rows && first + (unsigned int)p * EIGHT < columns)
                    use(row + (unsigned int)half * EIGHT, first + (unsigned int)p * EIGHT, &sum[p][2 * half]);
    }

    __device__ inline void store(float *result, unsigned int ld, unsigned int rows)
    {
        store_tile(*this, result, ld, rows, COLUMNS);
    }
};

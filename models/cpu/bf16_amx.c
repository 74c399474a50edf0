/* On AMX: 2 × 2 tiles of 16 × 16 sums, each step a depth of 32. */
#include <immintrin.h>

#include "models/cpu/kernels.h"

enum { SIDE = BF16_SIDE, DEPTH = BF16_DEPTH, CHUNK = 512 /* depths whose strips stay in the first-level cache */ };

struct tile_configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
};

static const struct tile_configuration configuration = {
    .palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

/* The intrinsics do not say that they read memory. */
static inline void await(const void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

struct step {
    const uint16_t *a[2]; /* of the two row tiles */
    size_t lda[2];
    const uint32_t *b[2]; /* of the two strips */
    float *c[2];          /* of the two row tiles, at the first strip */
    size_t ldc, k;
    bool accumulate;
};

/* rows and columns: 1 or 2 tiles */
static inline __attribute__((always_inline)) void run_step(const struct step *s, int rows, int columns)
{
    size_t ldc = s->ldc * sizeof(float);
    if (s->accumulate) {
        _tile_loadd(0, s->c[0], ldc);
        if (columns == 2)
            _tile_loadd(1, s->c[0] + SIDE, ldc);
        if (rows == 2)
            _tile_loadd(2, s->c[1], ldc);
        if (rows == 2 && columns == 2)
            _tile_loadd(3, s->c[1] + SIDE, ldc);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (size_t k = 0; k < s->k; k += DEPTH) {
        _tile_loadd(6, s->b[0] + k / 2 * SIDE, 64);
        _tile_loadd(4, s->a[0] + k, s->lda[0] * sizeof(uint16_t));
        _tile_dpbf16ps(0, 4, 6);
        if (columns == 2) {
            _tile_loadd(7, s->b[1] + k / 2 * SIDE, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (rows == 2) {
            _tile_loadd(5, s->a[1] + k, s->lda[1] * sizeof(uint16_t));
            _tile_dpbf16ps(2, 5, 6);
        }
        if (rows == 2 && columns == 2)
            _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, s->c[0], ldc);
    if (columns == 2)
        _tile_stored(1, s->c[0] + SIDE, ldc);
    if (rows == 2)
        _tile_stored(2, s->c[1], ldc);
    if (rows == 2 && columns == 2)
        _tile_stored(3, s->c[1] + SIDE, ldc);
}

void bf16_multiply_amx(const struct bf16_product *p)
{
    uint16_t tail[SIDE * CHUNK]; /* the last rows, where they are no whole tile */
    size_t partial = p->m % SIDE, whole = p->m - partial, tiles = (p->m + SIDE - 1) / SIDE, strip = p->k / 2 * SIDE;
    await(&configuration);
    _tile_loadconfig(&configuration);
    for (size_t from = 0; from == 0 || from < p->k; from += CHUNK) { /* sums of nothing are written, too */
        size_t k = p->k - from < CHUNK ? p->k - from : CHUNK;
        for (size_t i = 0; i < SIDE && partial > 0; i++) {
            if (i < partial)
                copy_few(tail + i * CHUNK, p->a + (whole + i) * p->lda + from, k * sizeof *tail);
            else
                clear_few(tail + i * CHUNK, k * sizeof *tail);
        }
        await(tail);
        for (size_t j = 0; j < p->n; j += 2 * SIDE)
            for (size_t t = 0; t < tiles; t += 2) {
                struct step s = {.ldc = p->ldc, .k = k, .accumulate = p->accumulate || from > 0};
                for (size_t i = 0; i < 2; i++) {
                    bool last = (t + i) * SIDE >= whole;
                    s.a[i] = last ? tail : p->a + (t + i) * SIDE * p->lda + from;
                    s.lda[i] = last ? CHUNK : p->lda;
                    s.b[i] = p->b + (j / SIDE + i) * strip + from / 2 * SIDE;
                    s.c[i] = p->c + (t + i) * SIDE * p->ldc + j;
                }
                bool two_rows = t + 1 < tiles, two_columns = j + SIDE < p->n;
                if (two_rows && two_columns)
                    run_step(&s, 2, 2);
                else if (two_rows)
                    run_step(&s, 2, 1);
                else if (two_columns)
                    run_step(&s, 1, 2);
                else
                    run_step(&s, 1, 1);
            }
    }
    _tile_release();
}

/* Stacked experts; each sample has chosen some, and a block takes 64 rows of a sample through all of them. The hidden
 * units of a sample's choices lie side by side, K · m columns, and a pass computes up to 128 of them. Then W₂ of all choices is
 * one matrix below them: its product adds the gated outputs up. */
#include "models/cuda/experts.cuh"

extern "C" {
#include "core/rng.h"
}

enum { OUT_COLUMNS = 64, LD_OUT = OUT_COLUMNS + EIGHT, BLOCKS = 2 };

/* Memory of a block with UNITS columns in a pass: for 128 columns 89.3 KiB in bf16, whose operands of one stage arrive while
 * the one before is multiplied, and 85.3 KiB in f32, without that; behind it are the gated biases. With at most 128 registers
 * a thread two BLOCKS fit a multiprocessor of compute capability 9.0, which is as many as 64 images give each of 132; others
 * have room for one. */
template <typename Type, int COUNT> struct pass {
    using T = Type;
    enum {
        UNITS = COUNT,
        GROUPS = UNITS / EIGHT,
        DEPTH = tile_depth<T>,
        STAGES = sizeof(T) == 2 ? 2 : 1,
        LD_DEPTH = padded<T, DEPTH>,
        LD_UNITS = padded<T, UNITS>,
        LD_COLUMNS = padded<T, OUT_COLUMNS>,
        LD_RESULT = UNITS + EIGHT,
    };
    struct inputs { /* d values of a row to UNITS: b as [UNITS][DEPTH] or [DEPTH][UNITS] */
        T a[TILE_ROWS * LD_DEPTH];
        T b[UNITS * LD_DEPTH > DEPTH *LD_UNITS ? UNITS *LD_DEPTH : DEPTH *LD_UNITS];
    };
    struct outputs { /* UNITS to OUT_COLUMNS: b as [OUT_COLUMNS][UNITS] or [UNITS][OUT_COLUMNS] */
        alignas(
            128) T b[STAGES][OUT_COLUMNS * LD_UNITS > UNITS *LD_COLUMNS ? OUT_COLUMNS *LD_UNITS : UNITS *LD_COLUMNS];
        alignas(128) float y[STAGES][TILE_ROWS * LD_OUT];
    };
    struct alignas(128) memory {
        union alignas(128) {
            struct inputs in[STAGES];
            float result[TILE_ROWS * LD_RESULT]; /* after `in` */
            struct outputs out;
        };
        alignas(128) T units[TILE_ROWS * LD_UNITS];
        struct eight_units {
            int32_t expert; /* −1: none */
            uint32_t unit, choice;
            float weight; /* scale · gate */
        } columns[GROUPS];
    };
};

static_assert(sizeof(pass<__nv_bfloat16, 128>::memory) + 2048 * sizeof(float) <= CUDA_SHARED_BYTES,
              "experts_go_by_sample allows 2048 columns");

/* A block's rows. */
struct rows_of_sample {
    size_t sample, first;
    unsigned int count, strips; /* strips: count rounded up to whole ones */
};

static __device__ inline struct rows_of_sample own_rows(const struct stack *s)
{
    size_t first = (size_t)blockIdx.y * TILE_ROWS, left = s->rows - first;
    unsigned int count = left < TILE_ROWS ? (unsigned int)left : (unsigned int)TILE_ROWS;
    return {blockIdx.x, first, count, (count + STRIP - 1) / STRIP * STRIP};
}

static __device__ inline bool has_experts(const struct stack *s, size_t sample)
{
    for (size_t k = 0; k < s->d.top_k; k++)
        if (is_chosen(s, sample * s->d.top_k + k))
            return true;
    return false;
}

/* Which units the columns from `first` on are; m is a multiple of 8. */
template <typename P>
static __device__ void name_columns(const struct stack *s, size_t sample, size_t first, typename P::memory *memory)
{
    for (size_t g = threadIdx.x; g < P::GROUPS; g += TILE_THREADS) {
        size_t column = first + g * EIGHT, k = column / s->hidden, choice = sample * s->d.top_k + k;
        bool is = k < s->d.top_k && is_chosen(s, choice);
        memory->columns[g] = {is ? s->d.chosen[choice] : -1, (uint32_t)(column % s->hidden), (uint32_t)choice,
                              is ? s->scale * s->weights[choice] : 0.0f};
    }
    __syncthreads();
}

/* bias[column] = Σ_k weight · b₂ */
static __device__ void sum_biases(const struct stack *s, size_t sample, float *bias)
{
    for (size_t column = threadIdx.x; column < s->width; column += TILE_THREADS) {
        float total = 0;
        for (size_t k = 0; k < s->d.top_k; k++) {
            size_t choice = sample * s->d.top_k + k;
            if (is_chosen(s, choice))
                total +=
                    s->scale * s->weights[choice] * s->second_bias[(size_t)s->d.chosen[choice] * s->width + column];
        }
        bias[column] = total;
    }
}

/* A thread's values of rows in f32 on their way to shared memory in bf16. */
enum { ARRIVING = TILE_ROWS * tile_depth<__nv_bfloat16> / EIGHT / TILE_THREADS };
struct arriving {
    float value[ARRIVING][EIGHT];
};

/* Calls use(n, row, column) for this thread's eights of a stage. */
template <typename Use> static __device__ inline void for_arriving(struct rows_of_sample r, Use use)
{
    enum { ACROSS = tile_depth<__nv_bfloat16> / EIGHT };
#pragma unroll
    for (unsigned int n = 0; n < ARRIVING; n++) {
        unsigned int i = n * TILE_THREADS + threadIdx.x;
        if (i / ACROSS < r.strips)
            use(n, i / ACROSS, i % ACROSS * EIGHT);
    }
}

/* to[row][column], columns from `first` on: begins to copy them or, to round them, to load them. */
template <typename P>
static __device__ void load_rows(typename P::T *to, const struct stack *s, struct rows_of_sample r,
                                 struct expert_gradients::batch x, unsigned int first, struct arriving *arriving)
{
    using T = typename P::T;
    enum { EACH = 16 / sizeof(T), ACROSS = P::DEPTH / EACH };
    size_t begin = (r.sample * s->rows + r.first) * s->width + first;
    if (x.type != operand_type<T>::type)
        return for_arriving(r, [&](unsigned int n, unsigned int row, unsigned int column) {
            for (int i = 0; i < EIGHT; i++)
                arriving->value[n][i] = 0;
            if (row < r.count && first + column < s->width)
                load_eight(x.data, TENSOR_F32, begin + row * s->width + column, arriving->value[n]);
        });
    for (unsigned int i = threadIdx.x; i < r.strips * ACROSS; i += TILE_THREADS) {
        unsigned int row = i / ACROSS, column = i % ACROSS * EACH;
        copy_line(to + row * P::LD_DEPTH + column, x.data, begin + row * s->width + column,
                  row < r.count && first + column < s->width);
    }
}

/* Begins to copy weights, W₁ as to[unit][column] or W₂ as to[column][unit], of COLUMNS from `first` on. */
template <typename P, int COLUMNS, bool FIRST>
static __device__ void load_weights(typename P::T *to, const struct stack *s, const typename P::memory *memory,
                                    unsigned int first)
{
    using T = typename P::T;
    enum { EACH = 16 / sizeof(T), ACROSS = (FIRST ? COLUMNS : P::UNITS) / EACH };
    for (unsigned int i = threadIdx.x; i < P::UNITS * COLUMNS / EACH; i += TILE_THREADS) {
        unsigned int high = i / ACROSS, low = i % ACROSS * EACH, unit = FIRST ? high : low,
                     column = first + (FIRST ? low : high);
        auto eight = memory->columns[unit / EIGHT];
        size_t expert = (size_t)eight.expert, own = eight.unit + unit % EIGHT,
               at = FIRST ? (expert * s->hidden + own) * s->width + column
                          : (expert * s->width + column) * s->hidden + own;
        copy_line(to + high * (FIRST ? padded<T, COLUMNS> : padded<T, P::UNITS>)+low, FIRST ? s->first : s->second, at,
                  eight.expert >= 0 && column < s->width);
    }
}

/* Sums of a's columns, j and those after it. */
template <typename P>
static __device__ void sum_columns(const struct stack *s, const typename P::T *a, struct rows_of_sample r,
                                   unsigned int j, float *sums)
{
    enum { PARTS = TILE_THREADS / P::DEPTH };
    unsigned int column = threadIdx.x / PARTS, part = threadIdx.x % PARTS;
    float total = 0;
    for (unsigned int row = part; row < r.strips; row += PARTS)
        total += operand_type<typename P::T>::widen(a[row * P::LD_DEPTH + column]);
    total = warp_sum(total, PARTS);
    if (part == 0 && j + column < s->width)
        sums[((r.sample * tiles_of(s)) + blockIdx.y) * s->width + j + column] = total;
}

/* result = x W₁ᵀ, or dy W₂ on the way back; sums, unless NULL: of the columns of x or dy */
template <typename P, bool FORWARD>
static __device__ void multiply_rows(const struct stack *s, struct rows_of_sample r, struct expert_gradients::batch x,
                                     typename P::memory *memory, float *sums)
{
    struct tile<typename P::T, P::UNITS, true, FORWARD> units;
    struct arriving arriving;
    auto load = [&](unsigned int stage) {
        auto *in = &memory->in[stage % P::STAGES];
        load_rows<P>(in->a, s, r, x, stage * P::DEPTH, &arriving);
        load_weights<P, P::DEPTH, FORWARD>(in->b, s, memory, stage * P::DEPTH);
    };
    auto put = [&](unsigned int stage) {
        typename P::T *a = memory->in[stage % P::STAGES].a;
        if (x.type != operand_type<typename P::T>::type)
            for_arriving(r, [&](unsigned int n, unsigned int row, unsigned int column) {
                store_eight(a, TENSOR_BF16, row * P::LD_DEPTH + column, arriving.value[n]);
            });
    };
    units.clear();
    in_stages<P::STAGES>((s->width + P::DEPTH - 1) / P::DEPTH, load, put, [&](unsigned int stage) {
        const auto *in = &memory->in[stage % P::STAGES];
        units.multiply(in->a, P::LD_DEPTH, in->b, FORWARD ? P::LD_DEPTH : P::LD_UNITS, P::DEPTH, r.strips);
        if (sums != NULL)
            sum_columns<P>(s, in->a, r, stage * P::DEPTH, sums);
    });
    units.store(memory->result, P::LD_RESULT, r.strips);
    __syncthreads();
}

/* Begins to copy y[rows][first …]. */
static __device__ void load_columns(float *to, const struct stack *s, struct rows_of_sample r, const float *y,
                                    unsigned int first)
{
    enum { EACH = 4, ACROSS = OUT_COLUMNS / EACH };
    size_t begin = (r.sample * s->rows + r.first) * s->width + first;
    for (unsigned int i = threadIdx.x; i < r.count * ACROSS; i += TILE_THREADS) {
        unsigned int row = i / ACROSS, column = i % ACROSS * EACH;
        copy_line(to + row * LD_OUT + column, y, begin + row * s->width + column, first + column < s->width);
    }
}

/* y += units W₂ᵀ and the gated biases (NULL: none), or dx += units W₁ on the way back */
template <typename P, bool FORWARD>
static __device__ void multiply_units(const struct stack *s, struct rows_of_sample r, typename P::memory *memory,
                                      const float *bias, float *y)
{
    auto load = [&](unsigned int stage) {
        load_weights<P, OUT_COLUMNS, !FORWARD>(memory->out.b[stage % P::STAGES], s, memory, stage * OUT_COLUMNS);
        load_columns(memory->out.y[stage % P::STAGES], s, r, y, stage * OUT_COLUMNS);
    };
    auto use = [&](unsigned int stage) {
        struct tile<typename P::T, OUT_COLUMNS, true, FORWARD> out;
        using some = struct neighbours<decltype(out)::EACH>;
        unsigned int first = stage * OUT_COLUMNS, columns = (unsigned int)s->width - first;
        const float *before = memory->out.y[stage % P::STAGES];
        out.clear();
        out.multiply(memory->units, P::LD_UNITS, memory->out.b[stage % P::STAGES],
                     FORWARD ? P::LD_UNITS : P::LD_COLUMNS, P::UNITS, r.strips);
        out.visit(r.count, columns, [&](unsigned int row, unsigned int column, float *sum) {
            some more = *(const some *)(before + row * LD_OUT + column), own = {};
            if (bias != NULL)
                own = *(const some *)(bias + first + column);
            for (int n = 0; n < out.EACH; n++)
                sum[n] = more.value[n] + (sum[n] + own.value[n]);
        });
        store_tile(out, y + (r.sample * s->rows + r.first) * s->width + first, s->width, r.count, columns);
    };
    in_stages<P::STAGES>((s->width + OUT_COLUMNS - 1) / OUT_COLUMNS, load, [](unsigned int) {}, use);
}

struct forward {
    struct expert_gradients::batch x;
    void *units; /* NULL: not kept */
    float *y;
    float scale; /* 1 / (1 − p) */
    uint32_t threshold;
    uint64_t base;
    const struct step_state *state; /* NULL: no dropout */
};

/* result → units: bias, ReLU, dropout; kept, and times the gate in shared memory */
template <typename P>
static __device__ void activate_units(const struct stack *s, const struct forward *f, struct rows_of_sample r,
                                      typename P::memory *memory)
{
    using T = typename P::T;
    enum { ACROSS = P::UNITS / 4 };
    unsigned int column = threadIdx.x % ACROSS * 4;
    auto eight = memory->columns[column / EIGHT];
    size_t unit = eight.unit + column % EIGHT;
    for (unsigned int row = threadIdx.x / ACROSS; row < r.count; row += TILE_THREADS / ACROSS) {
        struct four<T> kept, gated;
        struct four<float> h = {
        };
        size_t at = ((size_t)eight.choice * s->rows + r.first + row) * s->hidden + unit;
        if (eight.expert >= 0) {
            uint32_t words[4];
            if (f->state != NULL)
                philox_of_step(f->state, RNG_DROPOUT, f->base / 4 + at / 4, words);
            h = *(const struct four<float> *)(memory->result + row * P::LD_RESULT + column);
            for (int n = 0; n < 4; n++) {
                h.value[n] = activated(ACTIVATION_RELU,
                                       h.value[n] + s->first_bias[(size_t)eight.expert * s->hidden + unit + (size_t)n]);
                if (f->state != NULL)
                    h.value[n] = words[n] < f->threshold ? 0.0f : h.value[n] * f->scale;
            }
        }
        for (int n = 0; n < 4; n++) {
            kept.value[n] = operand_type<T>::of(h.value[n]);
            gated.value[n] = operand_type<T>::of(eight.weight * h.value[n]);
        }
        if (eight.expert >= 0 && f->units != NULL)
            *(struct four<T> *)((T *)f->units + at) = kept;
        *(struct four<T> *)(memory->units + row * P::LD_UNITS + column) = gated;
    }
    __syncthreads();
}

template <typename P>
static __global__ void __launch_bounds__(TILE_THREADS, BLOCKS) run_experts(struct stack s, struct forward f)
{
    DYNAMIC_SHARED(struct shared_line, lines);
    typename P::memory *memory = (typename P::memory *)lines;
    struct rows_of_sample r = own_rows(&s);
    float *bias = (float *)(memory + 1);
    if (!has_experts(&s, r.sample))
        return;
    sum_biases(&s, r.sample, bias);
    for (unsigned int first = 0; first < s.d.top_k * s.hidden; first += P::UNITS) {
        name_columns<P>(&s, r.sample, first, memory);
        multiply_rows<P, true>(&s, r, f.x, memory, NULL);
        activate_units<P>(&s, &f, r, memory);
        multiply_units<P, true>(&s, r, memory, first == 0 ? bias : NULL, f.y);
    }
}

struct backward {
    struct expert_gradients::batch dy;
    void *units, *dunits;
    float keep;
    float *sums;  /* [B, tiles, d] of dy over the rows of a tile */
    float *along; /* [B, tiles, K] of h · dh */
};

/* result, the gradient after the gates → dunits, the gradient before the activation; units times their gates; and the sums
 * of h · dh */
template <typename P>
static __device__ void slope_units(const struct stack *s, const struct backward *g, struct rows_of_sample r,
                                   size_t first, typename P::memory *memory)
{
    using T = typename P::T;
    enum { ACROSS = P::UNITS / 4, HIGH = TILE_THREADS / ACROSS };
    unsigned int across = threadIdx.x % ACROSS, column = across * 4;
    auto eight = memory->columns[column / EIGHT];
    float along = 0, *sums = (float *)memory->units;
    for (unsigned int row = threadIdx.x / ACROSS; eight.expert >= 0 && row < r.count; row += HIGH) {
        size_t at = ((size_t)eight.choice * s->rows + r.first + row) * s->hidden + eight.unit + column % EIGHT;
        struct four<T> h = *(const struct four<T> *)((const T *)g->units + at), slopes, gated;
        struct four<float> dh = *(const struct four<float> *)(memory->result + row * P::LD_RESULT + column);
        for (int n = 0; n < 4; n++) {
            float unit = operand_type<T>::widen(h.value[n]);
            along += unit * dh.value[n];
            slopes.value[n] = operand_type<T>::of(unit > 0 ? eight.weight / g->keep * dh.value[n] : 0.0f);
            gated.value[n] = operand_type<T>::of(eight.weight * unit);
        }
        *(struct four<T> *)((T *)g->dunits + at) = slopes;
        *(struct four<T> *)((T *)g->units + at) = gated;
    }
    sums[threadIdx.x] = along;
    __syncthreads();
    for (unsigned int i = 1; threadIdx.x < ACROSS && i < HIGH; i++)
        along += sums[i * ACROSS + threadIdx.x];
    if (threadIdx.x < ACROSS)
        sums[threadIdx.x] = along;
    __syncthreads();
    for (size_t k = first / s->hidden + threadIdx.x; k < s->d.top_k && k * s->hidden < first + P::UNITS;
         k += TILE_THREADS) {
        size_t begin = k * s->hidden > first ? k * s->hidden - first : 0, end = (k + 1) * s->hidden - first;
        float *to = g->along + (r.sample * tiles_of(s) + blockIdx.y) * s->d.top_k + k,
              total = k * s->hidden >= first ? 0.0f : *to;
        for (size_t c = begin; c < end && c < P::UNITS; c += 4)
            total += sums[c / 4];
        *to = total;
    }
    __syncthreads();
}

template <typename P>
static __global__ void __launch_bounds__(TILE_THREADS, BLOCKS) run_experts_back(struct stack s, struct backward g)
{
    DYNAMIC_SHARED(struct shared_line, lines);
    typename P::memory *memory = (typename P::memory *)lines;
    struct rows_of_sample r = own_rows(&s);
    if (!has_experts(&s, r.sample))
        return;
    for (unsigned int first = 0; first < s.d.top_k * s.hidden; first += P::UNITS) {
        name_columns<P>(&s, r.sample, first, memory);
        multiply_rows<P, false>(&s, r, g.dy, memory, first == 0 ? g.sums : NULL);
        slope_units<P>(&s, &g, r, first, memory);
    }
}

/* A warp has a choice: dgates = scale · (Σ h · dh + b₂ · Σ dy) */
static __global__ void add_gate_gradients(struct stack s, const float *sums, const float *along, float *dgates)
{
    size_t choice = global_warp(), tiles = tiles_of(&s);
    if (choice >= s.d.samples * s.d.top_k)
        return;
    size_t b = choice / s.d.top_k;
    float total = 0;
    if (is_chosen(&s, choice)) {
        const float *bias = s.second_bias + (size_t)s.d.chosen[choice] * s.width;
        for (size_t t = 0; t < tiles; t++)
            for (size_t j = lane(); j < s.width; j += WARP)
                total += bias[j] * sums[(b * tiles + t) * s.width + j];
        total = warp_sum(total);
        for (size_t t = 0; t < tiles; t++)
            total += along[(b * tiles + t) * s.d.top_k + choice % s.d.top_k];
    }
    if (lane() == 0)
        dgates[choice] = s.scale * total;
}

/* units[row][column] = the sample's dunits, begun to be copied */
template <typename P>
static __device__ void load_units(const struct stack *s, struct rows_of_sample r, const void *dunits,
                                  typename P::memory *memory)
{
    enum { EACH = 16 / sizeof(typename P::T), ACROSS = P::UNITS / EACH };
    for (unsigned int i = threadIdx.x; i < r.strips * ACROSS; i += TILE_THREADS) {
        unsigned int row = i / ACROSS, column = i % ACROSS * EACH;
        auto eight = memory->columns[column / EIGHT];
        size_t at = ((size_t)eight.choice * s->rows + r.first + row) * s->hidden + eight.unit + column % EIGHT;
        copy_line(memory->units + row * P::LD_UNITS + column, dunits, at, eight.expert >= 0 && row < r.count);
    }
}

template <typename P>
static __global__ void __launch_bounds__(TILE_THREADS, BLOCKS)
    run_experts_to_input(struct stack s, const void *dunits, float *dx)
{
    DYNAMIC_SHARED(struct shared_line, lines);
    typename P::memory *memory = (typename P::memory *)lines;
    struct rows_of_sample r = own_rows(&s);
    if (!has_experts(&s, r.sample))
        return;
    for (unsigned int first = 0; first < s.d.top_k * s.hidden; first += P::UNITS) {
        name_columns<P>(&s, r.sample, first, memory);
        load_units<P>(&s, r, dunits, memory);
        multiply_units<P, false>(&s, r, memory, NULL, dx);
    }
}

/* --- The operations --- */

/* Rows are read by 16 bytes. */
static bool is_aligned(const void *rows)
{
    return (uintptr_t)rows % 16 == 0;
}

/* Rows in f32 may be rounded on the way. */
static bool can_be_loaded(const struct cuda *cuda, enum tensor_type type)
{
    return type == TENSOR_F32 || cuda->backend.precision == PRECISION_BF16;
}

/* Whether these kernels compute it. All three operations of a stack decide alike, because their units lie differently in
 * slots. Tokens would each have a block of their own, and experts of more than 128 hidden units take several passes over a
 * sample for every choice. */
static bool goes_by_sample(const struct expert_stack_operands *o)
{
    const void *weights[] = {o->first, o->first_bias, o->second, o->second_bias};
    bool aligned = true;
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        aligned = aligned && is_aligned(weights[i]);
    return aligned && !o->tokens && experts_go_by_sample(o->activation, o->width, o->hidden) && o->base % 4 == 0;
}

/* The weights are in the operands' type. */
static status stack_of(struct cuda *cuda, const struct expert_stack_operands *o, const float *weights,
                       struct stack *stack, struct error *error)
{
    size_t experts = o->dispatch->experts;
    struct matrix first = {o->first, TENSOR_F32, experts * o->hidden, o->width, o->width},
                  second = {o->second, TENSOR_F32, experts * o->width, o->hidden, o->hidden};
    if (cuda->backend.precision == PRECISION_BF16) {
        TRY(cuda_as_bf16(cuda, &first, true, error));
        TRY(cuda_as_bf16(cuda, &second, true, error));
    }
    *stack = {slots_of(o->dispatch), o->rows_per_sample, o->width,       o->hidden, first.data,
              second.data,           o->first_bias,      o->second_bias, weights,   o->scale};
    return OK;
}

static bool is_empty(const struct expert_stack_operands *o)
{
    return o->dispatch->samples * o->dispatch->top_k * o->rows_per_sample * o->width * o->hidden == 0;
}

/* Launches the kernel for the type of operands and as many columns as a pass needs. */
#define LAUNCH_PASS(cuda, s, kernel, type, columns, ...)                                                               \
    CUDA_LAUNCH_LARGE(cuda, (kernel<pass<type, columns>>),                                                             \
                      dim3((unsigned int)(s)->d.samples, blocks_for((s)->rows, TILE_ROWS)), TILE_THREADS,              \
                      sizeof(pass<type, columns>::memory) + (s)->width * sizeof(float), *(s), __VA_ARGS__)
#define LAUNCH_PASSES(cuda, s, kernel, ...)                                                                            \
    do {                                                                                                               \
        bool bf16_ = (cuda)->backend.precision == PRECISION_BF16, narrow_ = (s)->d.top_k * (s)->hidden <= 64;          \
        if (bf16_ && narrow_)                                                                                          \
            LAUNCH_PASS(cuda, s, kernel, __nv_bfloat16, 64, __VA_ARGS__);                                              \
        else if (bf16_)                                                                                                \
            LAUNCH_PASS(cuda, s, kernel, __nv_bfloat16, 128, __VA_ARGS__);                                             \
        else if (narrow_)                                                                                              \
            LAUNCH_PASS(cuda, s, kernel, float, 64, __VA_ARGS__);                                                      \
        else                                                                                                           \
            LAUNCH_PASS(cuda, s, kernel, float, 128, __VA_ARGS__);                                                     \
    } while (0)

status cuda_experts(struct cuda *cuda, const struct experts *o, struct error *error)
{
    if (!goes_by_sample(&o->stack))
        return experts_by_slots(&cuda->backend, o, error);
    struct stack s;
    assert(is_aligned(o->x) && is_aligned(o->y) && is_aligned(o->units) && can_be_loaded(cuda, o->x_type));
    if (is_empty(&o->stack))
        return OK;
    TRY(stack_of(cuda, &o->stack, o->weights != NULL ? o->weights : o->stack.dispatch->gates, &s, error));
    float probability = o->stack.probability;
    struct forward f = {{o->x, o->x_type},
                        o->training ? o->units : NULL,
                        o->y,
                        1.0f / (1.0f - probability),
                        (uint32_t)((double)probability * 4294967296.0),
                        o->stack.base,
                        probability > 0 ? o->stack.state : NULL};
    LAUNCH_PASSES(cuda, &s, run_experts, f);
    return OK;
}

status cuda_experts_backward(struct cuda *cuda, const struct experts_backward *o, struct error *error)
{
    if (!goes_by_sample(&o->stack))
        return experts_backward_by_slots(&cuda->backend, o, error);
    struct stack s;
    void *sums, *along, *partial;
    assert(is_aligned(o->x) && is_aligned(o->dy) && is_aligned(o->units) && is_aligned(o->dunits) &&
           can_be_loaded(cuda, o->x_type) && can_be_loaded(cuda, o->dy_type));
    assert(is_aligned(o->dfirst) && is_aligned(o->dfirst_bias) && is_aligned(o->dsecond) &&
           is_aligned(o->dsecond_bias));
    if (is_empty(&o->stack))
        return OK;
    TRY(stack_of(cuda, &o->stack, o->stack.dispatch->gates, &s, error));
    size_t choices = s.d.samples * s.d.top_k, tiles = s.d.samples * blocks_for(s.rows, TILE_ROWS);
    struct expert_gradients gradients = {s,
                                         {o->x, o->x_type},
                                         {o->dy, o->dy_type},
                                         o->units,
                                         o->dunits,
                                         NULL,
                                         {o->dfirst, o->dfirst_bias, o->dsecond, o->dsecond_bias},
                                         o->frozen,
                                         NULL};
    TRY(cuda_scratch(cuda, tiles * s.width * sizeof(float), &sums, error));
    TRY(cuda_scratch(cuda, tiles * s.d.top_k * sizeof(float), &along, error));
    TRY(cuda_scratch(cuda, expert_partial_values(&gradients) * sizeof(float), &partial, error));
    gradients.sums = (float *)sums;
    gradients.partial = (float *)partial;
    struct backward g = {{o->dy, o->dy_type},         o->units,      o->dunits,
                         1.0f - o->stack.probability, (float *)sums, (float *)along};
    LAUNCH_PASSES(cuda, &s, run_experts_back, g);
    CUDA_LAUNCH(cuda, add_gate_gradients, blocks_for(choices, BLOCK / WARP), BLOCK, 0, s, (const float *)sums,
                (const float *)along, o->dgates);
    cuda_expert_weights(cuda, &gradients);
    return OK;
}

status cuda_experts_backward_input(struct cuda *cuda, const struct experts_backward_input *o, struct error *error)
{
    if (!goes_by_sample(&o->stack))
        return experts_backward_input_by_slots(&cuda->backend, o, error);
    struct stack s;
    assert(is_aligned(o->dunits) && is_aligned(o->dx));
    if (is_empty(&o->stack))
        return OK;
    TRY(stack_of(cuda, &o->stack, o->stack.dispatch->gates, &s, error));
    LAUNCH_PASSES(cuda, &s, run_experts_to_input, o->dunits, o->dx);
    return OK;
}

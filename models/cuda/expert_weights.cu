/* Gradients of stacked experts' weights and biases. The slots of an expert, which lie in the order of their samples, are cut
 * into units of four; a block has 64 × 64 values of one unit's sum. The sums of an expert's units are added up in their
 * order, so it takes no longer where two experts have all samples. */
#include "models/cuda/experts.cuh"

enum { SLOTS = 4, SIDE = 64 };
enum { FIRST_WEIGHT, FIRST_BIAS, SECOND_WEIGHT, SECOND_BIAS, PARTS };

static __host__ __device__ inline size_t size_of(const struct stack *s, int part)
{
    return part == FIRST_BIAS ? s->hidden : part == SECOND_BIAS ? s->width : s->hidden * s->width;
}

static __host__ __device__ inline size_t values_of_unit(const struct stack *s)
{
    return 2 * s->hidden * s->width + s->hidden + s->width;
}

/* Of experts with more than one unit: at most two for four slots. */
size_t expert_partial_values(const struct expert_gradients *g)
{
    const struct stack *s = &g->stack;
    return (2 * s->d.samples * s->d.top_k / SLOTS + 1) * values_of_unit(s);
}

/* A unit of an expert: slots [begin, end). */
struct unit {
    size_t expert, begin, end;
    bool alone;     /* the only one */
    float *partial; /* where its sums go if it is not */
};

static __device__ inline size_t units_of(const struct slots *d, size_t e)
{
    return (size_t)(d->offsets[e + 1] - d->offsets[e] + SLOTS - 1) / SLOTS;
}

static __device__ inline float *partial_of(const struct expert_gradients *g, size_t e, size_t within)
{
    return g->partial + (2 * (size_t)g->stack.d.offsets[e] / SLOTS + within) * values_of_unit(&g->stack);
}

/* Units are numbered through all experts, as tiles in gemm.cu; some numbers have none. */
static __device__ inline size_t first_unit(const struct slots *d, size_t e)
{
    return (size_t)d->offsets[e] / SLOTS + e;
}

static __device__ inline bool find_unit(const struct expert_gradients *g, size_t number, struct unit *unit)
{
    const struct slots *d = &g->stack.d;
    size_t e = 0;
    for (size_t end = d->experts; end - e > 1;) {
        size_t middle = (e + end) / 2;
        if (first_unit(d, middle) <= number)
            e = middle;
        else
            end = middle;
    }
    size_t within = number - first_unit(d, e), begin = (size_t)d->offsets[e] + within * SLOTS,
           end = (size_t)d->offsets[e + 1];
    *unit = {e, begin, begin + SLOTS < end ? begin + SLOTS : end, units_of(d, e) == 1, partial_of(g, e, within)};
    return begin < end && (g->frozen == NULL || g->frozen[e] == 0);
}

/* Where the sums of a part go. */
static __device__ inline float *part_of(const struct expert_gradients *g, const struct unit *unit, int part)
{
    size_t before = 0;
    for (int p = 0; p < part; p++)
        before += size_of(&g->stack, p);
    return unit->alone ? g->values[part] + unit->expert * size_of(&g->stack, part) : unit->partial + before;
}

static __device__ inline void give(const struct expert_gradients *g, const struct unit *unit, int part, size_t at,
                                   float value)
{
    float *to = part_of(g, unit, part) + at;
    *to = unit->alone ? *to + value : value;
}

/* A stage has DEPTH rows of a unit, LINES of 16 bytes of each operand a thread. In bf16 the next one arrives while one is
 * multiplied; x and dy in f32 wait for that in registers. */
template <typename Type> struct rows_at_once {
    using T = Type;
    enum {
        DEPTH = tile_depth<T>,
        LD = padded<T, SIDE>,
        STAGES = sizeof(T) == 2 ? 2 : 1,
        EACH = 16 / sizeof(T),
        ACROSS = SIDE / EACH,
        LINES = DEPTH * ACROSS / TILE_THREADS,
        BLOCKS = sizeof(T) == 2 ? 3 : 2, /* at once on a multiprocessor */
    };
    struct alignas(128) memory {
        struct {
            alignas(128) T units[DEPTH * LD];
            alignas(128) T values[DEPTH * LD];
        } in[STAGES];
        size_t choice[SLOTS], sample[SLOTS]; /* of the unit's slots */
    };
};

/* A block's part of a unit: hidden units or their gradients from `unit` on, and x or dy from `column` on. */
struct chunk {
    size_t unit, column;
    bool second; /* of W₂: units times their gates, and dy; else gradients of units, and x */
    struct expert_gradients::batch values;
    unsigned int rows; /* of all slots */
};

/* Begins to load rows from `first` on. */
template <typename R>
static __device__ void load_chunk(const struct expert_gradients *g, const struct chunk *c, unsigned int first,
                                  typename R::memory *memory, float arriving[R::LINES][EIGHT])
{
    using T = typename R::T;
    const struct stack *s = &g->stack;
    auto *in = &memory->in[first / R::DEPTH % R::STAGES];
#pragma unroll
    for (unsigned int n = 0; n < R::LINES; n++) {
        unsigned int i = n * TILE_THREADS + threadIdx.x, row = first + i / R::ACROSS, across = i % R::ACROSS * R::EACH,
                     to = i / R::ACROSS * R::LD + across, slot = row / (unsigned int)s->rows,
                     within = row - slot * (unsigned int)s->rows;
        size_t choice = row < c->rows ? memory->choice[slot] : 0, sample = row < c->rows ? memory->sample[slot] : 0,
               at = (sample * s->rows + within) * s->width + c->column + across;
        bool there = row < c->rows && c->column + across < s->width;
        copy_line(in->units + to, c->second ? g->units : g->dunits,
                  (choice * s->rows + within) * s->hidden + c->unit + across,
                  row < c->rows && c->unit + across < s->hidden);
        if (c->values.type == operand_type<T>::type) {
            copy_line(in->values + to, c->values.data, at, there);
            continue;
        }
        for (int k = 0; k < EIGHT; k++)
            arriving[n][k] = 0;
        if (there)
            load_eight(c->values.data, TENSOR_F32, at, arriving[n]);
    }
}

/* db₂ += Σ gate · Σ dy, 64 columns */
static __device__ void sum_gated(const struct expert_gradients *g, const struct unit *unit, size_t column)
{
    const struct stack *s = &g->stack;
    size_t tiles = tiles_of(s);
    float total = 0;
    if (threadIdx.x >= SIDE || column + threadIdx.x >= s->width)
        return;
    for (size_t slot = unit->begin; slot < unit->end; slot++) {
        size_t choice = (size_t)s->d.choice[slot], b = choice / s->d.top_k;
        float of_sample = 0;
        for (size_t t = 0; t < tiles; t++)
            of_sample += g->sums[(b * tiles + t) * s->width + column + threadIdx.x];
        total += s->scale * s->weights[choice] * of_sample;
    }
    give(g, unit, SECOND_BIAS, column + threadIdx.x, total);
}

/* Blocks (number of a unit, 64 columns of d, 64 hidden units of W₁ or W₂). */
template <typename R>
static __global__ void __launch_bounds__(TILE_THREADS, R::BLOCKS) weight_gradients(struct expert_gradients g)
{
    using T = typename R::T;
    enum { LANES = TILE_THREADS / SIDE };
    DYNAMIC_SHARED(struct shared_line, lines);
    typename R::memory *memory = (typename R::memory *)lines;
    const struct stack *s = &g.stack;
    struct unit unit;
    bool second = blockIdx.z % 2 == 1;
    if (!find_unit(&g, blockIdx.x, &unit))
        return;
    struct chunk c = {(size_t)(blockIdx.z / 2) * SIDE, (size_t)blockIdx.y * SIDE, second, second ? g.dy : g.x,
                      (unsigned int)((unit.end - unit.begin) * s->rows)};
    if (threadIdx.x < unit.end - unit.begin) {
        size_t choice = (size_t)s->d.choice[unit.begin + threadIdx.x];
        memory->choice[threadIdx.x] = choice;
        memory->sample[threadIdx.x] = choice / s->d.top_k;
    }
    __syncthreads();
    struct tile<T, SIDE, false, false> sum;    /* of W₁ [m, d], or of W₂ [d, m] */
    float bias = 0, arriving[R::LINES][EIGHT]; /* bias: a column of the units' gradients to four lanes */
    sum.clear();
    in_stages<R::STAGES>(
        (c.rows + R::DEPTH - 1) / R::DEPTH,
        [&](unsigned int stage) { load_chunk<R>(&g, &c, stage * R::DEPTH, memory, arriving); },
        [&](unsigned int stage) {
#pragma unroll
            for (unsigned int n = 0; n < R::LINES; n++) {
                unsigned int i = n * TILE_THREADS + threadIdx.x;
                if (c.values.type != operand_type<T>::type)
                    store_eight(memory->in[stage % R::STAGES].values, TENSOR_BF16,
                                i / R::ACROSS * R::LD + i % R::ACROSS * R::EACH, arriving[n]);
            }
        },
        [&](unsigned int stage) {
            const T *units = memory->in[stage % R::STAGES].units, *values = memory->in[stage % R::STAGES].values;
            sum.multiply(second ? values : units, R::LD, second ? units : values, R::LD, R::DEPTH, SIDE);
            for (unsigned int row = threadIdx.x % LANES; blockIdx.y == 0 && row < R::DEPTH; row += LANES)
                bias += operand_type<T>::widen(units[row * R::LD + threadIdx.x / LANES]);
        });
    bias = warp_sum(bias, LANES);
    if (!second && blockIdx.y == 0 && threadIdx.x % LANES == 0 && c.unit + threadIdx.x / LANES < s->hidden)
        give(&g, &unit, FIRST_BIAS, c.unit + threadIdx.x / LANES, bias);
    if (second && c.unit == 0)
        sum_gated(&g, &unit, c.column);
    using some = struct neighbours<decltype(sum)::EACH>;
    size_t row = second ? c.column : c.unit, column = second ? c.unit : c.column, ld = second ? s->hidden : s->width;
    unsigned int rows = (unsigned int)((second ? s->width : s->hidden) - row), columns = (unsigned int)(ld - column);
    float *to = part_of(&g, &unit, second ? SECOND_WEIGHT : FIRST_WEIGHT) + row * ld + column;
    if (unit.alone)
        sum.visit(rows, columns, [&](unsigned int i, unsigned int j, float *values) {
            some before = *(const some *)(to + i * ld + j);
            for (int n = 0; n < sum.EACH; n++)
                values[n] += before.value[n];
        });
    store_tile(sum, to, ld, rows, columns);
}

/* Four values of an expert a thread; experts along y. */
static __global__ void add_units(struct expert_gradients g)
{
    const struct stack *s = &g.stack;
    size_t e = blockIdx.y, at = 4 * global_thread(), units = units_of(&s->d, e), within = at;
    if (units < 2 || at >= values_of_unit(s) || (g.frozen != NULL && g.frozen[e] != 0))
        return;
    int part = 0;
    for (; within >= size_of(s, part); part++)
        within -= size_of(s, part);
    struct four<float> total = *(const struct four<float> *)(partial_of(&g, e, 0) + at);
    for (size_t i = 1; i < units; i++) {
        struct four<float> more = *(const struct four<float> *)(partial_of(&g, e, i) + at);
        for (int n = 0; n < 4; n++)
            total.value[n] += more.value[n];
    }
    struct four<float> *to = (struct four<float> *)(g.values[part] + e * size_of(s, part) + within), own = *to;
    for (int n = 0; n < 4; n++)
        own.value[n] += total.value[n];
    *to = own;
}

template <typename R> static void launch_weights(struct cuda *cuda, const struct expert_gradients *g)
{
    const struct stack *s = &g->stack;
    size_t numbers = s->d.samples * s->d.top_k / SLOTS + s->d.experts;
    CUDA_LAUNCH(cuda, weight_gradients<R>,
                dim3((unsigned int)numbers, blocks_for(s->width, SIDE), 2 * blocks_for(s->hidden, SIDE)), TILE_THREADS,
                sizeof(typename R::memory), *g);
    CUDA_LAUNCH(cuda, add_units, dim3(blocks_for(values_of_unit(s), 4 * BLOCK), (unsigned int)s->d.experts), BLOCK, 0,
                *g);
}

void cuda_expert_weights(struct cuda *cuda, const struct expert_gradients *g)
{
    if (cuda->backend.precision == PRECISION_BF16)
        launch_weights<rows_at_once<__nv_bfloat16>>(cuda, g);
    else
        launch_weights<rows_at_once<float>>(cuda, g);
}

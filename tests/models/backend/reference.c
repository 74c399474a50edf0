#include "tests/models/backend/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double reference_at(struct matrix matrix, size_t row, size_t column)
{
    return (double)((const float *)matrix.data)[row * matrix.stride + column];
}

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

double reference_activation(enum activation activation, double x)
{
    switch (activation) {
    case ACTIVATION_NONE:
        return x;
    case ACTIVATION_QUICK_GELU:
        return x * sigmoid(1.702 * x);
    case ACTIVATION_GELU:
        return 0.5 * x * erfc(-x / sqrt(2.0));
    case ACTIVATION_RELU:
        return x < 0 ? 0 : x; /* NaN stays */
    case ACTIVATION_SIGMOID:
        return sigmoid(x);
    case ACTIVATION_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    }
    abort();
}

double reference_slope(enum activation activation, double x)
{
    double s;
    switch (activation) {
    case ACTIVATION_NONE:
        return 1;
    case ACTIVATION_QUICK_GELU:
        s = sigmoid(1.702 * x);
        return s + 1.702 * x * s * (1 - s);
    case ACTIVATION_GELU:
        return 0.5 * erfc(-x / sqrt(2.0)) + x * exp(-0.5 * x * x) / sqrt(2 * 3.14159265358979323846);
    case ACTIVATION_RELU:
        return x > 0;
    case ACTIVATION_SIGMOID:
        s = sigmoid(x);
        return s * (1 - s);
    case ACTIVATION_GELU_TANH:
        s = tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x));
        return 0.5 * (1 + s) + 0.5 * x * (1 - s * s) * sqrt(2 / 3.14159265358979323846) * (1 + 3 * 0.044715 * x * x);
    }
    abort();
}

void reference_product(double *out, struct matrix a, bool transpose_a, struct matrix b, bool transpose_b)
{
    size_t m = transpose_a ? a.columns : a.rows, depth = transpose_a ? a.rows : a.columns,
           n = transpose_b ? b.rows : b.columns;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double total = 0;
            for (size_t k = 0; k < depth; k++)
                total += (transpose_a ? reference_at(a, k, i) : reference_at(a, i, k)) *
                         (transpose_b ? reference_at(b, j, k) : reference_at(b, k, j));
            out[i * n + j] = total;
        }
}

static void row_statistics(struct matrix x, size_t row, double *mean, double *rstd)
{
    double total = 0, squares = 0;
    for (size_t j = 0; j < x.columns; j++)
        total += reference_at(x, row, j);
    *mean = total / (double)x.columns;
    for (size_t j = 0; j < x.columns; j++)
        squares += pow(reference_at(x, row, j) - *mean, 2);
    *rstd = 1 / sqrt(squares / (double)x.columns + 1e-5);
}

void reference_layer_norm(double *y, double *statistics, struct matrix x, const float *gain, const float *bias)
{
    for (size_t i = 0; i < x.rows; i++) {
        double mean, rstd;
        row_statistics(x, i, &mean, &rstd);
        for (size_t j = 0; j < x.columns; j++)
            y[i * x.columns + j] = (reference_at(x, i, j) - mean) * rstd * (double)gain[j] + (double)bias[j];
        statistics[2 * i] = mean;
        statistics[2 * i + 1] = rstd;
    }
}

/* By the definition of the derivative: ∂y_j/∂x_k = gain_j rstd (δ_jk − 1/n − x̂_j x̂_k / n). */
void reference_layer_norm_backward(double *dx, double *dgain, double *dbias, struct matrix x, struct matrix dy,
                                   const float *gain)
{
    double n = (double)x.columns;
    for (size_t i = 0; i < x.rows; i++) {
        double mean, rstd;
        row_statistics(x, i, &mean, &rstd);
        for (size_t k = 0; k < x.columns; k++) {
            double total = 0, own = (reference_at(x, i, k) - mean) * rstd;
            for (size_t j = 0; j < x.columns; j++) {
                double normal = (reference_at(x, i, j) - mean) * rstd;
                total += reference_at(dy, i, j) * (double)gain[j] * rstd * ((j == k) - 1 / n - normal * own / n);
            }
            dx[i * x.columns + k] += total;
            dgain[k] += reference_at(dy, i, k) * own;
            dbias[k] += reference_at(dy, i, k);
        }
    }
}

/* One head of a query, and the keys that it sees; they lie `stride` apart, as their values do. */
struct head {
    size_t count, stride, columns;
    const float *query, *keys, *values;
    double weight; /* of the result */
};

static double dot(const float *a, const float *b, size_t n)
{
    double total = 0;
    for (size_t u = 0; u < n; u++)
        total += (double)a[u] * (double)b[u];
    return total;
}

static void softmax_of_scores(double *p, const struct head *head)
{
    for (size_t j = 0; j < head->count; j++)
        p[j] = dot(head->query, head->keys + j * head->stride, head->columns) / sqrt((double)head->columns);
    reference_softmax(p, p, head->count);
}

/* out += …; p: room for [count] */
static void attend(double *out, const struct head *head, double *p)
{
    softmax_of_scores(p, head);
    for (size_t j = 0; j < head->count; j++)
        for (size_t u = 0; u < head->columns; u++)
            out[u] += head->weight * p[j] * (double)head->values[j * head->stride + u];
}

/* All += …, where gradients lie as what they are of; p: room for [2 · count] */
static void attend_backward(double *dquery, double *dkeys, double *dvalues, const struct head *head, const float *dout,
                            double *p)
{
    double *dp = p + head->count, mean = 0;
    softmax_of_scores(p, head);
    for (size_t j = 0; j < head->count; j++) {
        dp[j] = head->weight * dot(dout, head->values + j * head->stride, head->columns);
        mean += p[j] * dp[j];
    }
    for (size_t j = 0; j < head->count; j++)
        for (size_t u = 0; u < head->columns; u++) {
            double ds = p[j] * (dp[j] - mean) / sqrt((double)head->columns);
            dquery[u] += ds * (double)head->keys[j * head->stride + u];
            dkeys[j * head->stride + u] += ds * (double)head->query[u];
            dvalues[j * head->stride + u] += head->weight * p[j] * (double)dout[u];
        }
}

/* Of all heads of all queries the one of that number, whose result begins at number · columns. */
static struct head head_of(const struct attention_operands *o, size_t number)
{
    size_t columns = o->width / o->heads, query = number / o->heads,
           row = o->rows != NULL ? (size_t)o->rows[query] : query, position = row % o->positions;
    const float *first = (const float *)o->qkv + (row - position) * 3 * o->width + number % o->heads * columns;
    return (struct head){o->causal ? position + 1 : o->positions,
                         3 * o->width,
                         columns,
                         first + position * 3 * o->width,
                         first + o->width,
                         first + 2 * o->width,
                         1};
}

static size_t heads_of(const struct attention_operands *o)
{
    return o->batch * (o->rows != NULL ? o->rows_per_sample : o->positions) * o->heads;
}

void reference_attention(double *out, const struct attention_operands *o)
{
    double *p = malloc(o->positions * sizeof *p);
    memset(out, 0, heads_of(o) * (o->width / o->heads) * sizeof *out);
    for (size_t i = 0; i < heads_of(o); i++) {
        struct head head = head_of(o, i);
        attend(out + i * head.columns, &head, p);
    }
    free(p);
}

void reference_attention_backward(double *dqkv, const struct attention_operands *o, const float *dout)
{
    const float *qkv = o->qkv;
    double *p = malloc(2 * o->positions * sizeof *p);
    memset(dqkv, 0, o->batch * o->positions * 3 * o->width * sizeof *dqkv);
    for (size_t i = 0; i < heads_of(o); i++) {
        struct head head = head_of(o, i);
        attend_backward(dqkv + (head.query - qkv), dqkv + (head.keys - qkv), dqkv + (head.values - qkv), &head,
                        dout + i * head.columns, p);
    }
    free(p);
}

/* Likewise; false: its sample has no router. */
static bool prefix_head(struct head *head, const struct prefix_operands *o, size_t number)
{
    size_t columns = o->width / o->heads, query = number / o->heads, column = number % o->heads * columns,
           sample = query / (o->rows != NULL ? o->rows_per_sample : o->positions),
           row = o->rows != NULL ? (size_t)o->rows[query] : query;
    if (o->router[sample] < 0)
        return false;
    const float *first = o->values + (size_t)o->router[sample] * 2 * o->length * o->width + column;
    *head = (struct head){o->length,
                          o->width,
                          columns,
                          (const float *)o->qkv + row * 3 * o->width + column,
                          first,
                          first + o->length * o->width,
                          o->weights != NULL ? (double)o->weights[sample] : 1};
    return true;
}

static size_t prefix_heads(const struct prefix_operands *o)
{
    return o->batch * (o->rows != NULL ? o->rows_per_sample : o->positions) * o->heads;
}

void reference_prefix(double *out, const struct prefix_operands *o)
{
    struct head head;
    double p[PREFIX_LENGTH];
    for (size_t i = 0; i < prefix_heads(o); i++)
        if (prefix_head(&head, o, i))
            attend(out + i * head.columns, &head, p);
}

void reference_prefix_backward(double *dqkv, double *dvalues, const struct prefix_operands *o, const float *dout)
{
    struct head head;
    double p[2 * PREFIX_LENGTH];
    for (size_t i = 0; i < prefix_heads(o); i++)
        if (prefix_head(&head, o, i))
            attend_backward(dqkv + (head.query - (const float *)o->qkv), dvalues + (head.keys - o->values),
                            dvalues + (head.values - o->values), &head, dout + i * head.columns, p);
}

void reference_choose(int32_t *chosen, double *gates, const double *z, size_t experts, size_t top_k)
{
    double total = 0;
    for (size_t k = 0; k < top_k; k++) {
        chosen[k] = -1;
        for (int32_t e = 0; e < (int32_t)experts; e++) {
            bool taken = false;
            for (size_t before = 0; before < k; before++)
                taken = taken || chosen[before] == e;
            if (!taken && (chosen[k] < 0 || z[e] > z[chosen[k]]))
                chosen[k] = e;
        }
    }
    for (size_t k = 0; k < top_k; k++)
        total += gates[k] = exp(z[chosen[k]] - z[chosen[0]]);
    for (size_t k = 0; k < top_k; k++)
        gates[k] /= total;
}

/* Is choice i one of those that its expert has no room for: are there `limit` before it, first choices first? */
static bool is_beyond(const struct dispatch *d, size_t i, size_t limit)
{
    size_t before = 0;
    for (size_t j = 0; j < d->samples * d->top_k; j++) {
        size_t rank = i % d->top_k, other = j % d->top_k;
        before += d->chosen[j] == d->chosen[i] && (other < rank || (other == rank && j < i));
    }
    return limit > 0 && before >= limit;
}

void reference_sort(struct dispatch *d, size_t limit)
{
    int32_t slot = 0;
    for (size_t i = 0; i < d->samples * d->top_k; i++)
        d->slot[i] = -1;
    for (size_t e = 0; e < d->experts; e++) {
        d->offsets[e] = slot;
        for (size_t i = 0; i < d->samples * d->top_k; i++)
            if (d->chosen[i] == (int32_t)e && !is_beyond(d, i, limit)) {
                d->sample[slot] = (int32_t)(i / d->top_k);
                d->choice[slot] = (int32_t)i;
                d->slot[i] = slot++;
            }
    }
    d->offsets[d->experts] = slot;
}

double reference_dropout(const struct rng *rng, uint64_t index, double probability)
{
    uint32_t words[4];
    rng_block(rng, index / 4, words);
    return words[index % 4] < (uint32_t)(probability * 4294967296.0) ? 0 : 1 / (1 - probability);
}

void reference_softmax(double *p, const double *z, size_t n)
{
    double total = 0, most = z[0];
    for (size_t i = 0; i < n; i++)
        most = fmax(most, z[i]);
    for (size_t i = 0; i < n; i++)
        total += p[i] = exp(z[i] - most);
    for (size_t i = 0; i < n; i++)
        p[i] /= total;
}

/* What dropout multiplies hidden unit u of row l of a choice by. */
static double kept(const struct expert_stack_operands *s, size_t choice, size_t l, size_t u)
{
    struct rng rng = rng_make(s->state->seed, RNG_DROPOUT, s->state->task, s->state->step);
    return reference_dropout(&rng, s->base + (choice * s->rows_per_sample + l) * s->hidden + u, (double)s->probability);
}

/* One row of a sample through one expert: before [m] and h [m] are before and after activation and dropout. */
static void expert_row(const struct reference_experts *o, size_t choice, size_t l, double *before, double *h)
{
    const struct expert_stack_operands *s = &o->stack;
    size_t e = (size_t)s->dispatch->chosen[choice], d = s->width, m = s->hidden;
    const float *x = o->x + (choice / s->dispatch->top_k * s->rows_per_sample + l) * d;
    for (size_t u = 0; u < m; u++) {
        before[u] = (double)s->first_bias[e * m + u];
        for (size_t j = 0; j < d; j++)
            before[u] += (double)x[j] * (double)s->first[(e * m + u) * d + j];
        h[u] = reference_activation(s->activation, before[u]) * kept(s, choice, l, u);
    }
}

void reference_experts(double *y, const struct reference_experts *o)
{
    const struct expert_stack_operands *s = &o->stack;
    size_t d = s->width, m = s->hidden, rows = s->rows_per_sample, top_k = s->dispatch->top_k;
    double *before = malloc(2 * m * sizeof *before), *h = before + m;
    for (size_t i = 0; i < s->dispatch->samples * top_k * rows; i++) {
        size_t choice = i / rows, l = i % rows, e = (size_t)s->dispatch->chosen[choice];
        if (s->dispatch->slot[choice] < 0)
            continue;
        double *out = y + (choice / top_k * rows + l) * d;
        expert_row(o, choice, l, before, h);
        for (size_t j = 0; j < d; j++) {
            double value = (double)s->second_bias[e * d + j];
            for (size_t u = 0; u < m; u++)
                value += h[u] * (double)s->second[(e * d + j) * m + u];
            out[j] += (double)s->scale * (double)o->weights[choice] * value;
        }
    }
    free(before);
}

static void expert_row_backward(const struct reference_experts *o, size_t choice, size_t l, double *dgate, double *dx,
                                double *const dparts[4], double *room)
{
    const struct expert_stack_operands *s = &o->stack;
    size_t e = (size_t)s->dispatch->chosen[choice], d = s->width, m = s->hidden,
           row = choice / s->dispatch->top_k * s->rows_per_sample + l;
    const float *x = o->x + row * d, *dy = o->dy + row * d;
    double *before = room, *h = room + m, scale = (double)s->scale, weight = scale * (double)s->dispatch->gates[choice];
    bool frozen = o->frozen[e] != 0;
    expert_row(o, choice, l, before, h);
    for (size_t j = 0; j < d; j++) {
        *dgate += scale * (double)dy[j] * (double)s->second_bias[e * d + j];
        dparts[3][e * d + j] += frozen ? 0 : weight * (double)dy[j];
    }
    for (size_t u = 0; u < m; u++) {
        double dh = 0;
        for (size_t j = 0; j < d; j++) {
            dh += (double)dy[j] * (double)s->second[(e * d + j) * m + u];
            dparts[2][(e * d + j) * m + u] += frozen ? 0 : weight * (double)dy[j] * h[u];
        }
        *dgate += scale * h[u] * dh;
        dh *= weight * kept(s, choice, l, u) * reference_slope(s->activation, before[u]);
        dparts[1][e * m + u] += frozen ? 0 : dh;
        for (size_t j = 0; j < d; j++) {
            dparts[0][(e * m + u) * d + j] += frozen ? 0 : dh * (double)x[j];
            dx[row * d + j] += dh * (double)s->first[(e * m + u) * d + j];
        }
    }
}

void reference_experts_backward(double *dgates, double *dx, double *const dparts[4], const struct reference_experts *o)
{
    const struct expert_stack_operands *s = &o->stack;
    double *room = malloc(2 * s->hidden * sizeof *room);
    for (size_t i = 0; i < s->dispatch->samples * s->dispatch->top_k * s->rows_per_sample; i++) {
        size_t choice = i / s->rows_per_sample;
        if (s->dispatch->slot[choice] >= 0)
            expert_row_backward(o, choice, i % s->rows_per_sample, &dgates[choice], dx, dparts, room);
    }
    free(room);
}

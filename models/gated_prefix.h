/* One head of one row of struct gated_prefix (dispatch.h), for the host and for devices.
 *
 *     struct gate gate;
 *     if (gate_find(operands, row, head, &gate))
 *         ... gate.share [length] weighs the values ...
 */
#pragma once

#include <math.h>
#include <stdbool.h>

#include "core/rng.h"
#include "models/dispatch.h"

struct gate {
    size_t sample, first, column, columns;           /* first: of its scores; column: of its columns */
    float weight, norm;                              /* norm: m */
    float open[PREFIX_LENGTH], share[PREFIX_LENGTH]; /* g, g / m */
};

static MTIL_HOST_DEVICE inline size_t gate_rows(const struct gated_prefix_operands *o)
{
    return o->rows != NULL ? o->rows_per_sample : o->positions;
}

static MTIL_HOST_DEVICE inline size_t gate_position(const struct gated_prefix_operands *o, size_t row)
{
    return (o->rows != NULL ? (size_t)o->rows[row] : row) % o->positions;
}

static MTIL_HOST_DEVICE inline float gate_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* s + bias; column: of the row's scores */
static MTIL_HOST_DEVICE inline float gate_score(const struct gated_prefix_operands *o, size_t row, size_t column)
{
    size_t all = o->heads * o->length;
    return o->scores[row * all + column] + o->bias[gate_position(o, row) * all + column];
}

/* What a share has to be above. */
static MTIL_HOST_DEVICE inline float gate_least(const struct gated_prefix_operands *o, const struct gate *g, size_t j)
{
    const float least_variance = 1e-6f, two_pi = 6.2831853f;
    if (o->mean == NULL)
        return 1 - g->weight;
    size_t at = g->first + j;
    float variance = fmaxf(o->variance[at], least_variance),
          gap = gate_score(o, g->sample * gate_rows(o), at) - o->mean[at];
    return 1 - gate_sigmoid(-0.5f * (gap * gap / variance + logf(two_pi * variance)));
}

/* False: the row has no such head. */
static MTIL_HOST_DEVICE inline bool gate_find(const struct gated_prefix_operands *o, size_t row, size_t head,
                                              struct gate *g)
{
    size_t heads = (size_t)o->used[0];
    float sum = 0;
    g->sample = row / gate_rows(o);
    if (head >= heads || o->router[g->sample] < 0)
        return false;
    g->first = head * o->length;
    g->columns = o->width / heads;
    g->column = head * g->columns;
    g->weight = o->weights != NULL ? o->weights[g->sample] : 1.0f;
    for (size_t j = 0; j < o->length; j++)
        sum += g->open[j] = gate_sigmoid(gate_score(o, row, g->first + j));
    g->norm = sum > 1 ? sum : 1.0f;
    for (size_t j = 0; j < o->length; j++) {
        g->share[j] = g->open[j] / g->norm;
        if (g->weight < o->certain && g->share[j] <= gate_least(o, g, j))
            g->share[j] = 0;
    }
    return true;
}

/* dscores [length] from the products of dout with the values, [length], and with the residual. */
static MTIL_HOST_DEVICE inline void gate_slopes(const struct gated_prefix_operands *o, const struct gate *g,
                                                const float *products, float residual, float *dscores)
{
    float dnorm = g->weight * o->scale * residual;
    for (size_t j = 0; j < o->length; j++) {
        dscores[j] = g->share[j] != 0 ? g->weight * products[j] / g->norm : 0;
        dnorm -= dscores[j] * g->share[j];
    }
    for (size_t j = 0; j < o->length; j++)
        dscores[j] = (dscores[j] + (g->norm > 1 ? dnorm : 0)) * g->open[j] * (1 - g->open[j]);
}

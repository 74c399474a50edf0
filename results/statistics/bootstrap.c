#include "results/statistics/bootstrap.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "results/statistics/statistics.h"

#define SEEDS_STREAM 0xffff      /* stream of the draws of seeds; a task's number is the stream of its images */
#define TASKS_STREAM 0xfffe      /* of the draws of tasks */
#define OUTSIDE ((1 - 0.95) / 2) /* of the drawn means, on either side of the interval */

/* A task's images on which some seed differs come first; the others add nothing to a draw. */
struct telling {
    size_t images, count, seeds;
    int8_t *difference; /* [seeds, count] */
    int32_t *image;     /* [images]: the sum over a draw's seeds */
};

static struct telling find_telling(const struct bootstrap_task *task, size_t seeds)
{
    struct telling telling = {.images = task->images, .seeds = seeds};
    OWNED size_t *place = xmalloc(task->images * sizeof *place);
    for (size_t i = 0; i < task->images; i++) {
        int any = 0;
        for (size_t s = 0; s < seeds; s++)
            any |= task->difference[s * task->images + i];
        place[telling.count] = i;
        telling.count += any != 0;
    }
    telling.difference = xmalloc(telling.count * seeds);
    for (size_t k = 0; k < telling.count * seeds; k++)
        telling.difference[k] = task->difference[k / telling.count * task->images + place[k % telling.count]];
    telling.image = xcalloc(task->images, sizeof *telling.image);
    return telling;
}

/* Every task of a draw has the same seeds. weight [seeds]: how often each was drawn. */
static void draw_seeds(const struct bootstrap_plan *plan, size_t seeds, size_t draw, int32_t *weight)
{
    struct rng rng = rng_make(plan->seed, RNG_RESAMPLING, SEEDS_STREAM, (uint32_t)draw);
    memset(weight, 0, seeds * sizeof *weight);
    for (size_t s = 0; s < seeds; s++)
        weight[rng_below(&rng, s, (uint32_t)seeds)]++;
}

static double draw_images(const struct telling *t, const int32_t *weight, struct rng rng)
{
    uint32_t words[4] = {0};
    int64_t sum = 0;
    memset(t->image, 0, t->count * sizeof *t->image);
    for (size_t s = 0; s < t->seeds; s++)
        for (size_t i = 0; weight[s] > 0 && i < t->count; i++)
            t->image[i] += weight[s] * t->difference[s * t->count + i];
    for (size_t i = 0; i < t->images; i++) {
        if (i % 4 == 0)
            rng_block(&rng, i / 4, words);
        sum += t->image[(uint64_t)words[i % 4] * t->images >> 32];
    }
    return 100.0 * (double)sum / ((double)t->images * (double)t->seeds);
}

/* Interpolates between order statistics linearly. */
static double quantile(const double *sorted, size_t n, double share)
{
    double place = share * (double)(n - 1);
    size_t below = (size_t)place;
    return below + 1 < n ? sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below])
                         : sorted[n - 1];
}

static struct bootstrap_interval interval_of(double *drawn, size_t draws, double estimate)
{
    qsort(drawn, draws, sizeof *drawn, statistics_compare);
    return (struct bootstrap_interval){estimate, quantile(drawn, draws, OUTSIDE), quantile(drawn, draws, 1 - OUTSIDE)};
}

static double mean_difference(const struct bootstrap_task *task, size_t seeds)
{
    int64_t sum = 0;
    for (size_t i = 0; i < task->images * seeds; i++)
        sum += task->difference[i];
    return 100.0 * (double)sum / ((double)task->images * (double)seeds);
}

void bootstrap_seeds_and_images(const struct bootstrap_task *tasks, size_t task_count, size_t seeds,
                                const struct bootstrap_plan *plan, struct bootstrap_interval *interval)
{
    size_t draws = plan->draws ? plan->draws : BOOTSTRAP_DRAWS;
    double estimate = 0;
    OWNED double *drawn = xcalloc(2 * draws, sizeof *drawn);
    double *means = drawn + draws;
    OWNED int32_t *weight = xmalloc(seeds * sizeof *weight);
    for (size_t task = 0; task < task_count; task++) {
        struct telling telling = find_telling(&tasks[task], seeds);
        for (size_t draw = 0; draw < draws; draw++) {
            draw_seeds(plan, seeds, draw, weight);
            drawn[draw] =
                draw_images(&telling, weight, rng_make(plan->seed, RNG_RESAMPLING, (uint32_t)task, (uint32_t)draw));
            means[draw] += drawn[draw];
        }
        interval[task] = interval_of(drawn, draws, mean_difference(&tasks[task], seeds));
        estimate += interval[task].estimate / (double)task_count;
        free(telling.difference);
        free(telling.image);
    }
    for (size_t draw = 0; draw < draws; draw++)
        means[draw] /= (double)task_count;
    interval[task_count] = interval_of(means, draws, estimate);
}

struct bootstrap_interval bootstrap_seeds_and_tasks(const double *value, size_t seeds, size_t tasks,
                                                    const struct bootstrap_plan *plan)
{
    size_t draws = plan->draws ? plan->draws : BOOTSTRAP_DRAWS;
    OWNED double *drawn = xcalloc(draws, sizeof *drawn);
    OWNED int32_t *weight = xmalloc((seeds + tasks) * sizeof *weight);
    int32_t *of_task = weight + seeds;
    for (size_t draw = 0; draw < draws; draw++) {
        struct rng rng = rng_make(plan->seed, RNG_RESAMPLING, TASKS_STREAM, (uint32_t)draw);
        draw_seeds(plan, seeds, draw, weight);
        memset(of_task, 0, tasks * sizeof *of_task);
        for (size_t i = 0; i < tasks; i++)
            of_task[rng_below(&rng, i, (uint32_t)tasks)]++;
        for (size_t s = 0; s < seeds; s++)
            for (size_t t = 0; t < tasks; t++)
                drawn[draw] += weight[s] * of_task[t] * value[s * tasks + t];
        drawn[draw] /= (double)(seeds * tasks);
    }
    return interval_of(drawn, draws, statistics_mean(value, seeds * tasks));
}

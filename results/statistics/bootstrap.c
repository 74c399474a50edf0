#include "results/statistics/bootstrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

#define SEEDS_STREAM 0xffff /* stream of the draws of seeds; a task's number is the stream of its images */

/* The images of a task on which some seed differs; the others add nothing to a draw. */
struct telling {
    size_t images, count;
    int8_t *difference; /* [count, seeds] */
};

struct bootstrap {
    size_t task_count, seeds, draws;
    uint64_t seed;
    struct telling *tasks;
    int32_t *weight; /* [seeds]: how often each was drawn */
    double *drawn;   /* [task_count + 1, draws] */
};

static status keep_telling(struct telling *telling, const struct bootstrap_task *task, size_t seeds,
                           struct error *error)
{
    telling->images = task->images;
    telling->difference = malloc(task->images * seeds);
    if (!telling->difference)
        return error_set(error, ERROR_MEMORY, "bootstrap: out of memory for %zu images", task->images);
    for (size_t i = 0; i < task->images; i++) {
        int8_t *kept = telling->difference + telling->count * seeds;
        int any = 0;
        for (size_t s = 0; s < seeds; s++) {
            kept[s] = task->difference[s * task->images + i];
            any |= kept[s];
        }
        telling->count += any != 0;
    }
    return OK;
}

static void draw_seeds(struct bootstrap *b, uint32_t draw)
{
    struct rng rng = rng_make(b->seed, RNG_RESAMPLING, SEEDS_STREAM, draw);
    memset(b->weight, 0, b->seeds * sizeof *b->weight);
    for (size_t s = 0; s < b->seeds; s++)
        b->weight[rng_below(&rng, s, (uint32_t)b->seeds)]++;
}

static double draw_images(const struct bootstrap *b, size_t task, uint32_t draw)
{
    const struct telling *t = &b->tasks[task];
    struct rng rng = rng_make(b->seed, RNG_RESAMPLING, (uint32_t)task, draw);
    uint32_t words[4] = {0};
    int64_t sum = 0;
    for (size_t i = 0; i < t->images; i++) {
        if (i % 4 == 0)
            rng_block(&rng, i / 4, words);
        size_t image = (size_t)((uint64_t)words[i % 4] * t->images >> 32);
        for (size_t s = 0; image < t->count && s < b->seeds; s++)
            sum += b->weight[s] * t->difference[image * b->seeds + s];
    }
    return 100.0 * (double)sum / ((double)t->images * (double)b->seeds);
}

static void draw_all(struct bootstrap *b)
{
    for (size_t draw = 0; draw < b->draws; draw++) {
        double sum = 0;
        draw_seeds(b, (uint32_t)draw);
        for (size_t task = 0; task < b->task_count; task++) {
            double mean = draw_images(b, task, (uint32_t)draw);
            b->drawn[task * b->draws + draw] = mean;
            sum += mean;
        }
        b->drawn[b->task_count * b->draws + draw] = sum / (double)b->task_count;
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Interpolates between order statistics linearly. */
static double quantile(const double *sorted, size_t n, double share)
{
    double place = share * (double)(n - 1);
    size_t below = (size_t)place;
    return below + 1 < n ? sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below])
                         : sorted[n - 1];
}

static double mean_difference(const struct bootstrap_task *task, size_t seeds)
{
    int64_t sum = 0;
    for (size_t i = 0; i < task->images * seeds; i++)
        sum += task->difference[i];
    return 100.0 * (double)sum / ((double)task->images * (double)seeds);
}

static status bootstrap_create(struct bootstrap *b, const struct bootstrap_task *tasks, struct error *error)
{
    b->tasks = calloc(b->task_count, sizeof *b->tasks);
    b->weight = malloc(b->seeds * sizeof *b->weight);
    b->drawn = calloc((b->task_count + 1) * b->draws, sizeof *b->drawn);
    if (!b->tasks || !b->weight || !b->drawn)
        return error_set(error, ERROR_MEMORY, "bootstrap: out of memory for %zu draws", b->draws);
    for (size_t task = 0; task < b->task_count; task++)
        TRY(keep_telling(&b->tasks[task], &tasks[task], b->seeds, error));
    return OK;
}

static void bootstrap_free(struct bootstrap *b)
{
    for (size_t task = 0; b->tasks && task < b->task_count; task++)
        free(b->tasks[task].difference);
    free(b->tasks);
    free(b->weight);
    free(b->drawn);
}

status bootstrap_seeds_and_images(const struct bootstrap_task *tasks, size_t task_count, size_t seeds,
                                  const struct bootstrap_plan *plan, struct bootstrap_interval *interval,
                                  struct error *error)
{
    double outside = (1 - (plan->confidence > 0 ? plan->confidence : 0.95)) / 2;
    struct bootstrap b = {.task_count = task_count,
                          .seeds = seeds,
                          .draws = plan->draws ? plan->draws : BOOTSTRAP_DRAWS,
                          .seed = plan->seed};
    status result = bootstrap_create(&b, tasks, error);
    if (result == OK) {
        draw_all(&b);
        interval[task_count].estimate = 0;
        for (size_t task = 0; task <= task_count; task++) {
            double *drawn = b.drawn + task * b.draws;
            qsort(drawn, b.draws, sizeof *drawn, compare_doubles);
            interval[task].low = quantile(drawn, b.draws, outside);
            interval[task].high = quantile(drawn, b.draws, 1 - outside);
        }
        for (size_t task = 0; task < task_count; task++) {
            interval[task].estimate = mean_difference(&tasks[task], seeds);
            interval[task_count].estimate += interval[task].estimate / (double)task_count;
        }
    }
    bootstrap_free(&b);
    return result;
}

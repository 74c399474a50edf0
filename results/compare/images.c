/* Groups image by image after the last task: McNemar's test for each seed and task, the bootstrap over all of them, and
 * what went wrong where predictions were kept. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/array.h"
#include "results/compare/internal.h"
#include "results/statistics/bootstrap.h"
#include "results/statistics/statistics.h"
#include "results/store/store_internal.h"

#define NOTES_LIMIT 12 /* on pairs without their images */

/* Two groups at work. Tasks are those that both have and that were asked for. */
struct pairing {
    struct compare *c;
    size_t group[2]; /* baseline, other */
    struct common_seed *seeds;
    size_t seed_count, task_count;
    size_t *dataset;                     /* [tasks] */
    int8_t **difference;                 /* [tasks]: [seeds, images] */
    struct comparison_errors *errors;    /* [2, tasks]: sums over seeds */
    struct bootstrap_interval *interval; /* [tasks + 1] */
};

static size_t task_of(const struct compared_run *run, size_t dataset)
{
    size_t task = 0;
    while (task < run->tasks && run->dataset[task] != dataset)
        task++;
    return task;
}

static const struct compared_run *run_of(const struct pairing *p, size_t seed, size_t side)
{
    return &p->c->run[side ? p->seeds[seed].other : p->seeds[seed].baseline];
}

static size_t images_of(const struct pairing *p, size_t task)
{
    const struct compared_run *run = run_of(p, 0, 0);
    return (size_t)run->images[task_of(run, p->dataset[task])];
}

/* ---- What can be paired ---- */

static void find_tasks(struct pairing *p)
{
    const struct comparison *result = p->c->result;
    const char *only = p->c->request->filter.dataset;
    for (size_t dataset = 0; dataset < result->dataset_count; dataset++) {
        const struct compared_run *a = run_of(p, 0, 0), *b = run_of(p, 0, 1);
        size_t task_a = task_of(a, dataset), task_b = task_of(b, dataset);
        bool asked = !only || strcmp(only, result->dataset[dataset]) == 0;
        if (asked && task_a < a->tasks && task_b < b->tasks && a->images[task_a] > 0 &&
            a->images[task_a] == b->images[task_b])
            p->dataset[p->task_count++] = dataset;
    }
}

/* One query per run, as for a task's images; whether all tasks have theirs, and the same ones. */
static status kept_all(const struct pairing *p, size_t seed, bool *all, struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, p->c->store->database,
                       "SELECT (SELECT count(*) FROM per_image WHERE run = ?1 AND task = ?2 AND after_task = ?3)"
                       " AND (SELECT count(*) FROM per_image WHERE run = ?4 AND task = ?5 AND after_task = ?6)"
                       " AND coalesce((SELECT test_digest FROM tasks WHERE run = ?1 AND task = ?2) ="
                       " (SELECT test_digest FROM tasks WHERE run = ?4 AND task = ?5), 1)",
                       error));
    status result = OK;
    const struct compared_run *a = run_of(p, seed, 0), *b = run_of(p, seed, 1);
    *all = true;
    for (size_t t = 0; t < p->task_count && *all && result == OK; t++) {
        bool row = false;
        result = statement_bind(statement,
                                VALUES(value_integer(a->run), value_integer((int64_t)task_of(a, p->dataset[t])),
                                       value_integer((int64_t)a->tasks - 1), value_integer(b->run),
                                       value_integer((int64_t)task_of(b, p->dataset[t])),
                                       value_integer((int64_t)b->tasks - 1)),
                                error);
        if (result == OK)
            result = statement_step(statement, &row, error);
        *all = result == OK && row && statement_integer(statement, 0) != 0;
    }
    statement_close(statement);
    return result;
}

static status note_seeds(const struct pairing *p, size_t kept, struct error *error)
{
    const struct comparison *result = p->c->result;
    const struct comparison_group *baseline = &result->group[p->group[0]];
    char context[32] = "";
    if (result->context_count > 1)
        snprintf(context, sizeof context, " [%zu]", baseline->context + 1);
    return compare_add_note(p->c, error,
                            "%s and %s%s: of %zu common seed%s %zu ha%s the test images of both (evaluation.per_image)",
                            baseline->name, result->group[p->group[1]].name, context, p->seed_count,
                            p->seed_count == 1 ? "" : "s", kept, kept == 1 ? "s" : "ve");
}

/* Seeds of which both groups kept the images of every task. */
static status keep_seeds(struct pairing *p, struct error *error)
{
    size_t kept = 0;
    for (size_t s = 0; s < p->seed_count; s++) {
        bool all;
        TRY(kept_all(p, s, &all, error));
        if (all)
            p->seeds[kept++] = p->seeds[s];
    }
    if (kept < p->seed_count && p->c->images_noted++ < NOTES_LIMIT)
        TRY(note_seeds(p, kept, error));
    p->seed_count = kept;
    return OK;
}

/* ---- Reading ---- */

/* Adds what went wrong, in percent; NAN where it is not known. */
static void add_errors(struct comparison_errors *errors, const struct per_image *images, bool routed, size_t task)
{
    size_t router = 0, class = 0;
    for (size_t i = 0; images->kind == PER_IMAGE_PREDICTIONS && i < images->images; i++) {
        bool own = images->router[i] == (int64_t)task;
        router += !images->right[i] && !own;
        class += !images->right[i] && own;
    }
    bool known = routed && images->kind == PER_IMAGE_PREDICTIONS;
    errors->router += known ? 100.0 * (double)router / (double)images->images : (double)NAN;
    errors->class += known ? 100.0 * (double)class / (double)images->images : (double)NAN;
}

static status add_discordance(const struct pairing *p, size_t seed, size_t task, const int8_t *difference,
                              size_t images, struct error *error)
{
    struct comparison *result = p->c->result;
    struct comparison_discordance row = {.baseline = p->group[0],
                                         .other = p->group[1],
                                         .dataset = result->dataset[p->dataset[task]],
                                         .seed = run_of(p, seed, 0)->seed,
                                         .images = images};
    for (size_t i = 0; i < images; i++) {
        row.only_baseline += difference[i] < 0;
        row.only_other += difference[i] > 0;
    }
    row.p = statistics_mcnemar(row.only_baseline, row.only_other);
    TRY(ARRAY_GROW(result->discordance, result->discordance_count, "pairs of runs", error));
    result->discordance[result->discordance_count++] = row;
    return OK;
}

static status read_side(const struct pairing *p, size_t seed, size_t task, size_t side, struct per_image *images,
                        struct error *error)
{
    const struct compared_run *run = run_of(p, seed, side);
    size_t own = task_of(run, p->dataset[task]);
    TRY(store_read_per_image(p->c->store, run->run, (int64_t)run->tasks - 1, (int64_t)own, images, error));
    if (images->images != images_of(p, task))
        return error_set(error, ERROR_FORMAT,
                         "%s: run %" PRId64 ", task %zu: expected the results of %zu test images, found %zu",
                         store_path(p->c->store), run->run, own, images_of(p, task), images->images);
    add_errors(&p->errors[side * p->task_count + task], images, run->routed, own);
    return OK;
}

static status read_seed(struct pairing *p, size_t seed, size_t task, struct error *error)
{
    struct per_image sides[2] = {{.kind = PER_IMAGE_NONE}, {.kind = PER_IMAGE_NONE}};
    size_t images = images_of(p, task);
    int8_t *difference = p->difference[task] + seed * images;
    status result = read_side(p, seed, task, 0, &sides[0], error);
    if (result == OK)
        result = read_side(p, seed, task, 1, &sides[1], error);
    for (size_t i = 0; result == OK && i < images; i++)
        difference[i] = (int8_t)(sides[1].right[i] - sides[0].right[i]);
    if (result == OK)
        result = add_discordance(p, seed, task, difference, images, error);
    per_image_free(&sides[0]);
    per_image_free(&sides[1]);
    return result;
}

static status read_tasks(struct pairing *p, struct error *error)
{
    for (size_t task = 0; task < p->task_count; task++) {
        p->difference[task] = malloc(array_size(p->seed_count, images_of(p, task)));
        if (!p->difference[task])
            return compare_no_memory(p->c, error);
        for (size_t seed = 0; seed < p->seed_count; seed++)
            TRY(read_seed(p, seed, task, error));
    }
    return OK;
}

/* ---- Rows of the answer ---- */

static status draw(struct pairing *p, struct error *error)
{
    struct bootstrap_task *tasks = malloc(p->task_count * sizeof *tasks);
    if (!tasks)
        return compare_no_memory(p->c, error);
    for (size_t task = 0; task < p->task_count; task++)
        tasks[task] = (struct bootstrap_task){images_of(p, task), p->difference[task]};
    struct bootstrap_plan plan = {
        .seed = p->c->request->seed, .draws = p->c->request->draws, .confidence = COMPARE_CONFIDENCE};
    status result = bootstrap_seeds_and_images(tasks, p->task_count, p->seed_count, &plan, p->interval, error);
    free(tasks);
    return result;
}

/* task: task_count for the mean over tasks. */
static struct comparison_images make_row(const struct pairing *p, size_t task)
{
    bool mean = task == p->task_count;
    size_t first = mean ? 0 : task, end = mean ? p->task_count : task + 1;
    struct comparison_images row = {.baseline = p->group[0],
                                    .other = p->group[1],
                                    .dataset = mean ? NULL : p->c->result->dataset[p->dataset[task]],
                                    .seeds = p->seed_count,
                                    .difference = p->interval[task].estimate,
                                    .low = p->interval[task].low,
                                    .high = p->interval[task].high};
    double terms = (double)(end - first) * (double)p->seed_count;
    for (size_t t = first; t < end; t++) {
        row.images += images_of(p, t);
        for (size_t side = 0; side < 2; side++) {
            row.errors[side].router += p->errors[side * p->task_count + t].router / terms;
            row.errors[side].class += p->errors[side * p->task_count + t].class / terms;
        }
    }
    return row;
}

static status add_rows(struct pairing *p, struct error *error)
{
    struct comparison *result = p->c->result;
    size_t rows = p->task_count + 1;
    struct comparison_images *larger = realloc(result->images, (result->images_count + rows) * sizeof *larger);
    if (!larger)
        return compare_no_memory(p->c, error);
    result->images = larger;
    if (!p->c->request->filter.dataset)
        larger[result->images_count++] = make_row(p, p->task_count);
    for (size_t task = 0; task < p->task_count; task++)
        larger[result->images_count++] = make_row(p, task);
    return OK;
}

/* ---- All of it ---- */

static status work(struct pairing *p, struct error *error)
{
    size_t datasets = p->c->result->dataset_count;
    p->dataset = malloc(datasets * sizeof *p->dataset);
    p->difference = calloc(datasets, sizeof *p->difference);
    p->errors = calloc(2 * datasets, sizeof *p->errors);
    p->interval = calloc(datasets + 1, sizeof *p->interval);
    if (!p->dataset || !p->difference || !p->errors || !p->interval)
        return compare_no_memory(p->c, error);
    if (p->seed_count == 0)
        return OK;
    find_tasks(p);
    TRY(keep_seeds(p, error));
    if (p->seed_count == 0 || p->task_count == 0)
        return OK;
    TRY(read_tasks(p, error));
    TRY(draw(p, error));
    return add_rows(p, error);
}

static status pair_images(struct compare *c, size_t baseline, size_t other, struct error *error)
{
    struct pairing p = {.c = c, .group = {baseline, other}};
    status result = compare_common_seeds(c, baseline, other, &p.seeds, &p.seed_count, error);
    if (result == OK)
        result = work(&p, error);
    for (size_t task = 0; p.difference && task < p.task_count; task++)
        free(p.difference[task]);
    free(p.seeds);
    free(p.dataset);
    free(p.difference);
    free(p.errors);
    free(p.interval);
    return result;
}

static status correct_discordances(struct compare *c, struct error *error)
{
    struct comparison *result = c->result;
    double *p = malloc((result->discordance_count + 1) * sizeof *p);
    if (!p)
        return compare_no_memory(c, error);
    for (size_t i = 0; i < result->discordance_count; i++)
        p[i] = result->discordance[i].p;
    status answer = statistics_holm(p, result->discordance_count, p, error);
    for (size_t i = 0; i < result->discordance_count; i++)
        result->discordance[i].p_holm = p[i];
    free(p);
    return answer;
}

status compare_make_images(struct compare *c, struct error *error)
{
    TRY(compare_each_pair(c, pair_images, error));
    if (c->images_noted > NOTES_LIMIT)
        TRY(compare_add_note(c, error, "%zu more pairs do not have the test images of all their common seeds",
                             c->images_noted - NOTES_LIMIT));
    if (c->result->images_count > 0)
        TRY(compare_add_note(c, error,
                             "intervals over seeds and images are drawn by Philox with seed %" PRIu64
                             "; with fewer than about ten seeds they are somewhat too narrow",
                             c->request->seed));
    return correct_discordances(c, error);
}

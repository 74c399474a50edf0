#include "harness/scenario/label_split.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/scenario/task_settings.h"

enum { FEW_ITEMS = 512, STARTS_OF_FEW = 32, STARTS_OF_MANY = 4 }; /* a start costs O(items²) */

struct cut {
    const struct class_partition *partition;
    int64_t sign;      /* maximises sign · similarity within parts */
    uint32_t *part_of; /* [n]; parts: not assigned yet */
    size_t *sizes;     /* [parts] */
    int64_t *sums;     /* [n, parts] similarity of an item to the other items of a part, times sign */
    int64_t *to_seeds; /* [n] similarity to the seeds so far, times sign */
};

static int64_t similarity(const struct cut *cut, size_t i, size_t j)
{
    return i == j ? 0 : cut->sign * cut->partition->similarity[i * cut->partition->n + j];
}

static int64_t *sum(struct cut *cut, size_t item, size_t part)
{
    return &cut->sums[item * cut->partition->parts + part];
}

static void add(struct cut *cut, size_t item, uint32_t part)
{
    cut->part_of[item] = part;
    cut->sizes[part]++;
    for (size_t j = 0; j < cut->partition->n; j++)
        *sum(cut, j, part) += similarity(cut, item, j);
}

static void take_out(struct cut *cut, size_t item)
{
    uint32_t part = cut->part_of[item];
    cut->sizes[part]--;
    for (size_t j = 0; j < cut->partition->n; j++)
        *sum(cut, j, part) -= similarity(cut, item, j);
}

static bool is_free(const struct cut *cut, size_t item)
{
    return cut->part_of[item] == cut->partition->parts;
}

/* The first part gets a random item, each next one the free item least similar to the previous seeds. */
static void plant_seeds(struct cut *cut, uint32_t start)
{
    size_t n = cut->partition->n;
    struct rng rng = rng_make(cut->partition->seed, RNG_PARTITION, 0, start);
    size_t seed = rng_below(&rng, 0, (uint32_t)n);
    memset(cut->to_seeds, 0, n * sizeof *cut->to_seeds);
    for (uint32_t part = 0; part < cut->partition->parts; part++) {
        add(cut, seed, part);
        size_t worst = n;
        for (size_t i = 0; i < n; i++) {
            cut->to_seeds[i] += similarity(cut, i, seed);
            if (is_free(cut, i) && (worst == n || cut->to_seeds[i] < cut->to_seeds[worst]))
                worst = i;
        }
        seed = worst;
    }
}

/* The parts take turns to take the best free item. */
static void grow(struct cut *cut)
{
    size_t n = cut->partition->n, parts = cut->partition->parts;
    for (size_t taken = parts; taken < n; taken++) {
        size_t part = taken % parts, best = n;
        for (size_t i = 0; i < n; i++)
            if (is_free(cut, i) && (best == n || *sum(cut, i, part) > *sum(cut, best, part)))
                best = i;
        add(cut, best, (uint32_t)part);
    }
}

static bool exchange(struct cut *cut, size_t a, size_t b)
{
    uint32_t p = cut->part_of[a], q = cut->part_of[b];
    if (p == q || *sum(cut, a, q) + *sum(cut, b, p) - 2 * similarity(cut, a, b) <= *sum(cut, a, p) + *sum(cut, b, q))
        return false;
    take_out(cut, a);
    take_out(cut, b);
    add(cut, a, q);
    add(cut, b, p);
    return true;
}

static bool move(struct cut *cut, size_t item, uint32_t to)
{
    uint32_t from = cut->part_of[item];
    if (cut->sizes[from] <= cut->sizes[to] || *sum(cut, item, to) <= *sum(cut, item, from))
        return false;
    take_out(cut, item);
    add(cut, item, to);
    return true;
}

/* Terminates, because every step raises a bounded integer. */
static void improve(struct cut *cut)
{
    for (bool better = true; better;) {
        better = false;
        for (size_t a = 0; a < cut->partition->n; a++) {
            for (uint32_t part = 0; part < cut->partition->parts; part++)
                better |= move(cut, a, part);
            for (size_t b = a + 1; b < cut->partition->n; b++)
                better |= exchange(cut, a, b);
        }
    }
}

/* order [n] is scratch space. */
static void cut_randomly(const struct class_partition *partition, uint32_t *order, uint32_t *part_of)
{
    struct rng rng = rng_make(partition->seed, RNG_PARTITION, 0, 0);
    rng_permutation(&rng, partition->n, order);
    for (size_t i = 0; i < partition->n; i++)
        part_of[order[i]] = (uint32_t)(i % partition->parts);
}

static int64_t within(struct cut *cut)
{
    int64_t total = 0;
    for (size_t i = 0; i < cut->partition->n; i++)
        total += *sum(cut, i, cut->part_of[i]);
    return total;
}

static void cut_best_of_starts(struct cut *cut, uint32_t *best)
{
    size_t n = cut->partition->n, parts = cut->partition->parts;
    int64_t highest = INT64_MIN;
    for (uint32_t start = 0; start < (n <= FEW_ITEMS ? STARTS_OF_FEW : STARTS_OF_MANY); start++) {
        memset(cut->sizes, 0, parts * sizeof *cut->sizes);
        memset(cut->sums, 0, n * parts * sizeof *cut->sums);
        for (size_t i = 0; i < n; i++)
            cut->part_of[i] = (uint32_t)parts;
        plant_seeds(cut, start);
        grow(cut);
        improve(cut);
        int64_t total = within(cut);
        if (total > highest) {
            highest = total;
            memcpy(best, cut->part_of, n * sizeof *best);
        }
    }
}

/* numbers [parts] is scratch space. */
static void number_by_first_item(uint32_t *part_of, size_t n, size_t parts, size_t *numbers)
{
    uint32_t next = 0;
    for (size_t p = 0; p < parts; p++)
        numbers[p] = parts;
    for (size_t i = 0; i < n; i++) {
        if (numbers[part_of[i]] == parts)
            numbers[part_of[i]] = next++;
        part_of[i] = (uint32_t)numbers[part_of[i]];
    }
}

static void cut_for_one_goal(const struct class_partition *partition, uint32_t *part_of)
{
    size_t n = partition->n, parts = partition->parts;
    struct cut cut = {.partition = partition, .sign = partition->goal == PARTITION_APART ? -1 : 1};
    cut.part_of = xmalloc(n * sizeof *cut.part_of);
    cut.sizes = xcalloc(parts, sizeof *cut.sizes);
    cut.sums = xcalloc(n * parts, sizeof *cut.sums);
    cut.to_seeds = xmalloc(n * sizeof *cut.to_seeds);
    if (partition->goal == PARTITION_RANDOM)
        cut_randomly(partition, cut.part_of, part_of);
    else
        cut_best_of_starts(&cut, part_of);
    number_by_first_item(part_of, n, parts, cut.sizes);
    free(cut.part_of);
    free(cut.sizes);
    free(cut.sums);
    free(cut.to_seeds);
}

/* Cuts the items of parts from `kept` on anew, apart. items, rest_of [n] and similarity [n, n] are scratch space. */
static void cut_rest_apart(const struct class_partition *partition, size_t kept, uint32_t *part_of, uint32_t *items,
                           uint32_t *rest_of, int32_t *similar)
{
    struct class_partition rest = {
        .similarity = similar, .parts = partition->parts - kept, .goal = PARTITION_APART, .seed = partition->seed};
    for (size_t i = 0; i < partition->n; i++)
        if (part_of[i] >= kept)
            items[rest.n++] = (uint32_t)i;
    for (size_t i = 0; i < rest.n * rest.n; i++)
        similar[i] = partition->similarity[items[i / rest.n] * partition->n + items[i % rest.n]];
    cut_for_one_goal(&rest, rest_of);
    for (size_t i = 0; i < rest.n; i++)
        part_of[items[i]] = (uint32_t)kept + rest_of[i];
}

static void cut_mixed(const struct class_partition *partition, uint32_t *part_of)
{
    size_t n = partition->n;
    struct class_partition together = *partition;
    OWNED uint32_t *items = xmalloc(2 * n * sizeof *items);
    OWNED int32_t *similar = xmalloc(n * n * sizeof *similar);
    together.goal = PARTITION_TOGETHER;
    cut_for_one_goal(&together, part_of);
    cut_rest_apart(partition, (partition->parts + 1) / 2, part_of, items, items + n, similar);
}

void partition_cut(const struct class_partition *partition, uint32_t *part_of)
{
    (partition->goal == PARTITION_MIXED ? cut_mixed : cut_for_one_goal)(partition, part_of);
}

enum { UNITS = 1 << 16 }; /* resolution of a cosine, so that last bits, which differ between machines, rarely matter */

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* cosines [classes, classes] in units */
static void measure(size_t classes, const float *features, size_t embed, int32_t *cosines)
{
    for (size_t i = 0; i < classes; i++)
        for (size_t j = 0; j <= i; j++)
            cosines[i * classes + j] = cosines[j * classes + i] =
                (int32_t)lrint(UNITS * dot(features + i * embed, features + j * embed, embed));
}

/* Sums over pairs of classes, and how many there are: [tasks, tasks] each. */
static void add_pairs(const struct label_split *split, const int32_t *cosines, double *sums, size_t *pairs)
{
    for (size_t i = 0; i < split->classes; i++)
        for (size_t j = 0; j < split->classes; j++) {
            if (i == j)
                continue;
            size_t cell = split->task_of[i] * split->tasks + split->task_of[j];
            sums[cell] += (double)cosines[i * split->classes + j] / UNITS;
            pairs[cell]++;
        }
}

static void average(struct label_split *split, const int32_t *cosines)
{
    size_t tasks = split->tasks;
    OWNED size_t *pairs = xcalloc(tasks * tasks, sizeof *pairs);
    size_t count[2] = {0};
    double sum[2] = {0};
    if (cosines != NULL)
        add_pairs(split, cosines, split->cosines, pairs);
    for (size_t i = 0; i < tasks * tasks; i++) {
        bool same = i / tasks == i % tasks;
        sum[same] += split->cosines[i];
        count[same] += pairs[i];
        split->cosines[i] = pairs[i] > 0 ? split->cosines[i] / (double)pairs[i] : NAN;
    }
    split->within = count[true] > 0 ? sum[true] / (double)count[true] : NAN;
    split->between = count[false] > 0 ? sum[false] / (double)count[false] : NAN;
}

status label_split_check(const struct task *whole, size_t tasks, struct error *error)
{
    size_t classes = dataset_classes(whole->dataset);
    if (classes < tasks)
        return error_set(error, ERROR_ARGUMENT,
                         "data.parts: %s has %zu classes, which cannot be cut into %zu tasks; set data.parts lower",
                         whole->settings.name, classes, tasks);
    if (classes > PARTITION_ITEMS)
        return error_set(error, ERROR_ARGUMENT, "data.split_by: %s has %zu classes; expected at most %d to cut",
                         whole->settings.name, classes, PARTITION_ITEMS);
    return OK;
}

static void cut_by_labels(struct label_split *split, const struct split_settings *s, const int32_t *cosines)
{
    struct class_partition partition = {
        .similarity = cosines, .n = split->classes, .parts = split->tasks, .goal = s->goal, .seed = s->seed};
    partition_cut(&partition, split->task_of);
    size_t count = 0;
    for (size_t t = 0; t < split->tasks; t++)
        for (size_t c = 0; c < split->classes; c++)
            if (split->task_of[c] == t)
                split->order[count++] = (uint32_t)c;
}

static status fill(struct label_split *split, const struct split_settings *s, const struct options *options,
                   const struct task *whole, const int32_t *cosines, struct error *error)
{
    split->task_of = xmalloc(array_size(split->classes, sizeof *split->task_of));
    split->order = xmalloc(array_size(split->classes, sizeof *split->order));
    split->cosines = xcalloc(split->tasks * split->tasks, sizeof *split->cosines);
    if (s->cut == CUT_BY_LABELS)
        cut_by_labels(split, s, cosines);
    else
        TRY(class_order_cut(options, whole->settings.name, split->classes, split->order, split->task_of, error));
    average(split, cosines);
    return OK;
}

status label_split_create(struct label_split **result, const struct split_settings *settings, size_t tasks,
                          const struct options *options, const struct task *whole, const float *features, size_t embed,
                          struct error *error)
{
    SCOPED(label_split_destroy_at) struct label_split *split = xcalloc(1, sizeof *split);
    *split = (struct label_split){.classes = dataset_classes(whole->dataset), .tasks = tasks};
    OWNED int32_t *cosines = NULL;
    if (features != NULL) {
        cosines = xmalloc(array_size(split->classes, split->classes * sizeof *cosines));
        measure(split->classes, features, embed, cosines);
    }
    TRY(fill(split, settings, options, whole, cosines, error));
    *result = TAKE(split);
    return OK;
}

void label_split_destroy(struct label_split *split)
{
    if (split == NULL)
        return;
    free(split->task_of);
    free(split->order);
    free(split->cosines);
    free(split);
}

void label_split_add_means(struct text *out, const struct label_split *split)
{
    if (!isnan(split->within))
        text_add(out, "%.4f within tasks%s", split->within, isnan(split->between) ? "" : ", ");
    if (!isnan(split->between))
        text_add(out, "%.4f between", split->between);
    if (out->size == 0)
        text_add(out, "none, of one class");
}

void label_split_print(const struct label_split *split, const struct dataset *whole, FILE *out)
{
    for (size_t t = 0; t < split->tasks; t++) {
        SCOPED(text_free) struct text names = {0};
        for (size_t i = 0; i < split->classes; i++)
            if (split->task_of[split->order[i]] == t) {
                text_add(&names, names.size > 0 ? ", " : "");
                text_add_visible(&names, dataset_class_name(whole, split->order[i]));
            }
        fprintf(out, "# task %zu of %zu: %s\n", t + 1, split->tasks, names.data != NULL ? names.data : "");
    }
    SCOPED(text_free) struct text means = {0};
    label_split_add_means(&means, split);
    fprintf(out, "# mean cosine of class names: %s\n", means.data);
}

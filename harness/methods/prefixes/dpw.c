/* DPW (Jang et al., "Enhancing Continual Learning of Vision-Language Models via Dynamic Prefix Weighting", CVPR 2026, arXiv
 * 2604.18075): in both towers every task has values of its own, which a sigmoid per token, head and value weighs, and a low-rank
 * delta, which counts where these weights add up to more than 1 (struct gated_prefix of models/dispatch.h, with the start of all
 * weights in adapters/gated_prefixes.h). Both are added to the attention of the frozen model. A task whose classes are easy to tell
 * apart, while zero-shot CLIP confuses them, has more heads:
 *
 *     heads = the power of two nearest to fineness · heads of the attention
 *     fineness = (v_images + v_texts) / 2 / (v_within + 10 / classes) / accuracy of zero-shot CLIP
 *
 * with v = 1 − mean cosine: between mean features of classes, between texts of classes, between images of one class. Tests have the
 * routing and weight w of DIKI (diki.c). Where w < 0.825, a value counts where its weight is above 1 − w in texts, and in images
 * above 1 − σ(log N(s; mean, variance)) of its class token's score s, with the moments of the task's training images.
 *
 * The public code (YonseiML/dpw, a2f1ffc) is followed but for this. It trains in half precision, here it is single or bf16. Its
 * moments are summed during an epoch of training and its validation, while the weights change; here they are of one pass over the
 * training images after the task, without dropout. What depends on the batch of a test image there (task, w of texts, the mean w
 * that is compared with 0.825) depends on the image here, or for texts on all images of the test set with the same task. In ODCL-CIL
 * it encodes the texts of each task with that task's values and multiplies scores by the tasks' w; here all texts have those of the
 * image's task. There the epoch that is best on held-out images is kept, and the rate falls to a thousandth of its peak, here to 0.
 * Heads have a limit here, `prefix_heads`. A class of one image counts for no cosine within; with fewer than two classes fineness
 * is 1, and at an accuracy of 0 heads are at the limit. Texts are the means of all templates. The variant with fewer parameters
 * is not included.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "adapters/gated_prefixes.h"
#include "core/alloc.h"
#include "harness/methods/methods.h"
#include "harness/methods/prefixes/dpw.h"
#include "harness/model/class_features.h"
#include "harness/model/routed_encoding.h"
#include "models/files/clip_file.h"

static const struct option options[] = {
    OPTION_NUMBER(INTEGER, "prefix_length", 1, PREFIX_LENGTH, "8", "values of a task in a head"),
    OPTION_NUMBER(INTEGER, "prefix_blocks", 1, CLIP_BLOCKS_MOST, "12",
                  "blocks of each tower that have them, from the first on; more than there are: all"),
    OPTION_NUMBER(INTEGER, "prefix_heads", 1, 256, "32",
                  "heads of a task, at most; fewer where a tower's width does not suffice"),
    OPTION_NUMBER(INTEGER, "prefix_rank", 4, 1024, "64",
                  "rank of a task's deltas, a multiple of 4; at most a tower's width"),
    OPTION_NUMBER(REAL, "prefix_dropout", 0, 0.9, "0.1", "dropout within the deltas"),
    {0}};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static status check(const struct settings *settings, struct error *error)
{
    int64_t rank = options_integer(settings->method_options, "prefix_rank");
    return rank % 4 == 0 ? OK
                         : error_set(error, ERROR_ARGUMENT,
                                     "suite: method.prefix_rank must be a multiple of 4, found %" PRId64, rank);
}

static status open(struct method_run *run, struct error *error)
{
    struct model *model = run->model;
    const struct clip_dimensions *n = &model->clip->dimensions;
    const size_t widths[TOWERS] = {n->image_width, n->text_width};
    struct prefix_settings s = {.tasks = run->data->task_count,
                                .rank = method_whole(run, "prefix_rank"),
                                .positions = {clip_image_positions(n), n->context},
                                .dropout = (float)options_real(run->options, "prefix_dropout")};
    for (int t = 0; t < TOWERS; t++) {
        s.length[t] = smaller(method_whole(run, "prefix_length"), widths[t]);
        s.blocks[t] = smaller(method_whole(run, "prefix_blocks"), model->clip->towers[t].count);
        s.heads[t] = gated_heads(method_whole(run, "prefix_heads"), s.length[t], widths[t]);
        s.rank = smaller(s.rank, widths[t]) / 4 * 4;
    }
    return prefixes_create(&model->prefixes, model->backend, run->memory, n, &s,
                           model->settings.one_moment ? PARAMETERS_TRAINED_ONE_MOMENT : PARAMETERS_TRAINED, error);
}

/* --- Fineness --- */

/* Sum of the cosines of all ordered pairs of n unit rows: ‖Σ x‖² − n. */
static double pairs_of(const double *sum, size_t width, size_t n)
{
    double square = 0;
    for (size_t k = 0; k < width; k++)
        square += sum[k] * sum[k];
    return square - (double)n;
}

static double pairs(size_t n)
{
    return (double)n * (double)(n - 1);
}

static void add_unit(double *sum, const float *row, size_t width)
{
    double square = 0;
    for (size_t k = 0; k < width; k++)
        square += (double)row[k] * (double)row[k];
    for (size_t k = 0; k < width && square > 0; k++)
        sum[k] += (double)row[k] / sqrt(square);
}

static bool is_right(const struct frozen_rows *rows, const float *texts, size_t classes, size_t image)
{
    size_t best = 0;
    double highest = -INFINITY;
    for (size_t c = 0; c < classes; c++) {
        double sum = 0;
        for (size_t k = 0; k < rows->width; k++)
            sum += (double)texts[c * rows->width + k] * (double)rows->features[image * rows->width + k];
        best = sum > highest ? c : best;
        highest = fmax(sum, highest);
    }
    return best + rows->first == (size_t)rows->labels[image];
}

/* sums [classes + 1, width] zeros: of images by class, of their directions or texts; counts [classes] zeros */
static double fineness_of(const struct frozen_rows *rows, const float *texts, double *sums, size_t *counts)
{
    size_t classes = rows->classes - rows->first, width = rows->width, right = 0, seen = 0, within = 0;
    double *all = sums + classes * width, inside = 0;
    for (size_t i = 0; i < rows->n; i++) {
        size_t c = (size_t)rows->labels[i] - rows->first;
        add_unit(sums + c * width, rows->features + i * width, width);
        counts[c]++;
        right += is_right(rows, texts, classes, i);
    }
    for (size_t c = 0; c < classes; c++)
        if (counts[c] > 1) {
            inside += pairs_of(sums + c * width, width, counts[c]) / pairs(counts[c]);
            within++;
        }
    for (size_t c = 0; c < classes; c++) {
        double norm = sqrt(pairs_of(sums + c * width, width, 0));
        for (size_t k = 0; k < width && counts[c] > 0 && norm > 0; k++)
            all[k] += sums[c * width + k] / norm;
        seen += counts[c] > 0;
    }
    if (seen < 2)
        return 1;
    double images = 1 - pairs_of(all, width, seen) / pairs(seen);
    for (size_t k = 0; k < width; k++)
        all[k] = 0;
    for (size_t c = 0; c < classes; c++)
        add_unit(all, texts + c * width, width);
    double easy = (images + 1 - pairs_of(all, width, classes) / pairs(classes)) / 2;
    return easy / ((within > 0 ? 1 - inside / (double)within : 0) + 10 / (double)classes) * (double)rows->n /
           (double)right;
}

double dpw_fineness(const struct frozen_rows *rows, const float *texts)
{
    size_t classes = rows->classes - rows->first;
    OWNED size_t *counts = xcalloc(classes, sizeof *counts);
    OWNED double *sums = xcalloc(array_size(classes + 1, rows->width), sizeof *sums);
    return fineness_of(rows, texts, sums, counts);
}

static status find_fineness(struct method_run *run, const struct task *task, double *fineness, struct error *error)
{
    SCOPED(frozen_rows_free) struct frozen_rows rows = {0};
    OWNED float *texts = NULL;
    TRY(frozen_rows_read(&rows, run, task, error));
    TRY(class_features_host(run->model, task, &texts, error));
    *fineness = dpw_fineness(&rows, texts);
    return OK;
}

static status start(struct method_run *run, size_t task, struct error *error)
{
    struct model *model = run->model;
    SCOPED(threads_destroy_at) struct threads *pool = NULL;
    TRY(threads_create(&pool, model->settings.threads, error));
    return gated_prefixes_initialize(model->prefixes, model->clip, task, pool, model->seed, error);
}

static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct model *model = run->model;
    double fineness = 1;
    model->prefixes->trained = (int)task->index;
    if (resumed)
        return OK;
    TRY(start(run, task->index, error));
    TRY(find_fineness(run, task, &fineness, error));
    TRY(gated_prefixes_choose_heads(model->prefixes, model->clip, task->index, fineness, error));
    return prefixes_begin_task(model->prefixes, task->index, error);
}

/* --- Moments of the scores --- */

struct moments {
    struct model *model;
    int router;
    size_t blocks, scores; /* scores: of a block */
    double *sums, *squares;
};

static status encode(void *context, const struct batch *batch, struct image_results *results, struct error *error)
{
    const struct moments *m = context;
    struct model *model = m->model;
    struct routed_encoding routed;
    struct encoding encoding;
    struct tower_pass pass;
    struct tensor *seen = &results->list[results->count++], features;
    TRY(tensor_take(seen, &model->step_memory, TENSOR_F32, "scores of class tokens", 3,
                    (size_t[]){m->blocks, batch->count, m->scores}, error));
    TRY(routed_encoding_begin(&routed, model, TOWER_IMAGE, batch->count, m->router, &encoding, error));
    model->prefixes->seen = seen->data;
    status result = clip_encode_images(model->clip, &encoding, &batch->images, &pass, &features, error);
    model->prefixes->seen = NULL;
    routed_encoding_end(&routed);
    return result;
}

static status add_scores(void *context, size_t first, size_t count, const void *results, struct error *error)
{
    const struct moments *m = context;
    const float *seen = results;
    for (size_t b = 0; b < m->blocks; b++)
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < m->scores; k++) {
                double x = (double)seen[(b * count + i) * m->scores + k];
                m->sums[b * m->scores + k] += x;
                m->squares[b * m->scores + k] += x * x;
            }
    return OK;
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct model *model = run->model;
    const struct prefix_settings *s = &model->prefixes->settings;
    size_t n = dataset_size(task->dataset, SPLIT_TRAIN), scores = s->heads[TOWER_IMAGE] * s->length[TOWER_IMAGE],
           values = array_size(s->blocks[TOWER_IMAGE], scores);
    struct moments m = {.model = model,
                        .router = (int)task->index,
                        .blocks = s->blocks[TOWER_IMAGE],
                        .scores = scores,
                        .sums = xcalloc(2 * values, sizeof(double))};
    m.squares = m.sums + values;
    struct loader_settings images = {.dataset = task->dataset,
                                     .split = SPLIT_TRAIN,
                                     .item_count = n,
                                     .resolution = (int)model->clip->dimensions.resolution,
                                     .squash = clip_squashes(&model->clip->dimensions),
                                     .batch = model->evaluation_batch};
    status result = image_pass_run(&(struct image_pass){.model = model,
                                                        .data = run->data,
                                                        .images = &images,
                                                        .count = n,
                                                        .bytes = values * sizeof(float),
                                                        .name = task->settings.name,
                                                        .stop = model->stop,
                                                        .encode = encode,
                                                        .keep = add_scores,
                                                        .context = &m},
                                   error);
    NEXT(result, gated_prefixes_describe(model->prefixes, task->index, m.sums, m.squares, n, error));
    free(m.sums);
    return result;
}

const struct method method_dpw = {
    .name = "dpw",
    .source = "DPW, CVPR 2026",
    .formula =
        "attention = frozen + w · (g / m · V + 0.05 · (m − 1) · delta), g = σ(scores of prefix_length values), m = "
        "max(1, Σ g), of task t in the first prefix_blocks; w = σ(log N(x; μ_t, Σ_t) / D − 1) in tests, 1 in "
        "training; loss = cross-entropy",
    .options = options,
    .sections = {"selector"},
    .trains = GROUP_PREFIXES,
    .check = check,
    .open = open,
    .begin_task = begin_task,
    .end_task = end_task};

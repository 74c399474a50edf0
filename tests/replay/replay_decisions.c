/* Trains the built-in suite on two backends side by side, from a common checkpoint, and compares what routers, merges and
 * freezes decide.
 *
 *     build/tests/replay_decisions [--backend cpu|cuda] [--steps N] [--after N] [--disturb X] [key=value…]
 *
 * The CPU trains the first task for --after iterations (10); its checkpoint is where both go on, for --steps iterations
 * (20), the second half of them in the second task. A sample may choose other experts where its K-th and next logits are
 * closer than 1e-4: that is listed, and the other backend goes on from the CPU's checkpoint. Exits with 0 when all other
 * decisions are the same, with 77 where there is no such backend. --disturb changes the other's routers by X, which has
 * to show. The suite's files are written to a folder that is removed at the end, unless data.root
 * names another. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/merge.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "datasets/mini/mini.h"
#include "harness/run/resume/checkpoint.h"
#include "harness/run/run.h"
#include "harness/train/trainer.h"
#include "tests/datasets/scratch.h"
#include "tests/replay/report.h"

#define CLOSE 1e-4

enum { OVERRIDES = 64 };

static const char *const tower_names[TOWERS] = {"image", "text"};

/* --- What routers decide, and by how much: the backend's route operation is asked twice --- */

enum { DECISIONS_ROUTINGS = 256, DECISIONS_BLOCK_BITS = 40 };

/* One call of route. */
struct routing_seen {
    int tower, block;
    size_t samples, top_k, width; /* width: top_k and, unless all experts are chosen, the next one */
    int32_t *chosen;              /* [samples, width], the K best first */
    float *gates;                 /* of a softmax over them */
};

struct decisions {
    struct backend_ops ops; /* first: the backend's table while it is watched */
    const struct backend_ops *watched;
    struct backend *backend;
    struct arena room; /* device */
    size_t count;
    struct routing_seen routings[DECISIONS_ROUTINGS];
};

/* What a routing fills that nobody computes with. */
static status take_outputs(struct decisions *d, struct route *r, struct dispatch *out, struct error *error)
{
    size_t choices = r->batch * out->top_k, logits = r->batch * r->experts;
    const struct {
        void *place;
        size_t count;
    } wanted[] = {{&out->chosen, choices},    {&out->gates, choices},  {&out->slot, choices},
                  {&out->sample, choices},    {&out->choice, choices}, {&out->offsets, r->experts + 1},
                  {&r->noise_logits, logits}, {&r->drawn, logits},     {&r->counts, r->experts}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct tensor memory;
        TRY(tensor_take(&memory, &d->room, TENSOR_I32, "watched routing", 1, &wanted[i].count, error));
        *(void **)wanted[i].place = memory.data;
    }
    r->used = NULL;
    r->top_k = out->top_k;
    r->dispatch = out;
    return d->watched->zero(d->backend, r->counts, r->experts * sizeof *r->counts, error);
}

static status keep(struct decisions *d, const struct route *r, const struct dispatch *wide, struct error *error)
{
    size_t n = wide->samples * wide->top_k;
    if (d->count == DECISIONS_ROUTINGS)
        return error_set(error, ERROR_ARGUMENT, "more than %d routings in a step", DECISIONS_ROUTINGS);
    struct routing_seen *seen = &d->routings[d->count++];
    *seen = (struct routing_seen){.tower = (int)(r->noise_base >> (DECISIONS_BLOCK_BITS + 16)),
                                  .block = (int)(r->noise_base >> DECISIONS_BLOCK_BITS & 0xffff),
                                  .samples = r->batch,
                                  .top_k = r->top_k,
                                  .width = wide->top_k,
                                  .chosen = xmalloc(n * sizeof *seen->chosen),
                                  .gates = xmalloc(n * sizeof *seen->gates)};
    TRY(d->watched->download(d->backend, seen->chosen, wide->chosen, n * sizeof *seen->chosen, error));
    return d->watched->download(d->backend, seen->gates, wide->gates, n * sizeof *seen->gates, error);
}

/* The table is the first member of the decisions. */
static status watch_route(struct backend *backend, const struct route *route, struct error *error)
{
    struct decisions *d = (struct decisions *)backend->ops;
    TRY(d->watched->route(backend, route, error));
    struct route again = *route;
    struct dispatch wide = {.samples = route->batch,
                            .experts = route->experts,
                            .top_k = route->top_k < route->experts ? route->top_k + 1 : route->top_k};
    arena_reset(&d->room);
    TRY(take_outputs(d, &again, &wide, error));
    TRY(d->watched->route(backend, &again, error));
    return keep(d, route, &wide, error);
}

/* Every step is asked for one by one: what is recorded cannot be watched. */
static status record_nothing(struct backend *backend, struct recording *recording, recorded_body body, void *context,
                             struct error *error)
{
    *recording = (struct recording){0};
    return body(context, error);
}

static void decisions_watch(struct decisions *d, struct backend *backend)
{
    *d = (struct decisions){.ops = *backend->ops, .watched = backend->ops, .backend = backend};
    must(backend->ops->arena_create(backend, &d->room, (size_t)64 << 20, "watched routing", &error));
    d->ops.route = watch_route;
    d->ops.record = record_nothing;
    backend->ops = &d->ops;
}

static void decisions_clear(struct decisions *d)
{
    for (size_t i = 0; i < d->count; i++) {
        free(d->routings[i].chosen);
        free(d->routings[i].gates);
    }
    d->count = 0;
}

static void decisions_end(struct decisions *d)
{
    decisions_clear(d);
    d->backend->ops = d->watched;
    d->watched->arena_destroy(d->backend, &d->room);
}

/* The K experts of a sample; NULL where its router is off. */
static const int32_t *routing_experts(const struct routing_seen *routing, size_t sample)
{
    const int32_t *chosen = routing->chosen + sample * routing->width;
    return chosen[0] >= 0 ? chosen : NULL;
}

/* Whether both chose the same experts for the sample, in whatever order. */
static bool routing_same(const struct routing_seen *a, const struct routing_seen *b, size_t sample)
{
    const int32_t *of_a = routing_experts(a, sample), *of_b = routing_experts(b, sample);
    size_t found = 0;
    if (of_a == NULL || of_b == NULL || a->top_k != b->top_k)
        return of_a == of_b;
    for (size_t i = 0; i < a->top_k * a->top_k; i++)
        found += of_a[i / a->top_k] == of_b[i % a->top_k];
    return found == a->top_k;
}

/* K-th logit minus the next one; INFINITY when all experts are chosen or the router is off. Gates of one softmax: the logarithm of
 * their quotient is the difference of the logits. */
static double routing_margin(const struct routing_seen *routing, size_t sample)
{
    const float *gates = routing->gates + sample * routing->width;
    if (routing->width == routing->top_k || routing_experts(routing, sample) == NULL)
        return (double)INFINITY;
    return log((double)gates[routing->top_k - 1]) - log((double)gates[routing->top_k]);
}

/* --- Two sides --- */

struct side {
    struct suite *suite;
    struct run *experiment;
    struct decisions decisions;
    struct stop stop;
    double loss;
};

struct replay {
    const char *backend;
    size_t steps, after;
    double disturb;
    const char *overrides[OVERRIDES];
    size_t override_count;
    struct side cpu, other;
    struct scratch scratch;
    char *checkpoint;
    struct report report;
    size_t listed;
    double smallest; /* margin of the decisions that were compared */
};

/* --- The two runs --- */

static void open_side(struct replay *r, struct side *side, const char *backend)
{
    char *made[] = {path_format("run.backend=%s", backend), path_format("training.iterations=%zu", r->steps),
                    path_format("data.root=%s/data", r->scratch.path)};
    const char *all[OVERRIDES + 5] = {"data.order=mnist,eurosat", "merge.every=5", made[0], made[1], made[2]};
    memcpy(all + 5, r->overrides, r->override_count * sizeof *all);
    must(suite_load(&side->suite, "mini", settings_sections, all, 5 + r->override_count, &error));
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        free(made[i]);
    must(mini_write(options_text(suite_options(side->suite, "data"), "root"), &(struct mini_settings){.seed = 1},
                    &error));
    must(run_open(&side->experiment, side->suite, 1, NULL, &error));
    decisions_watch(&side->decisions, side->experiment->model.backend);
}

static void close_side(struct side *side)
{
    decisions_end(&side->decisions);
    run_close(side->experiment);
    suite_destroy(side->suite);
}

static bool always(void *context, size_t iteration, size_t iterations)
{
    return iteration <= iterations;
}

static status stop_after_it(void *context, const struct step_report *report, struct error *error)
{
    struct side *side = context;
    side->loss = report->loss;
    side->stop.signal = 1;
    return OK;
}

static void train_one(struct side *side, size_t task, size_t iteration)
{
    struct error stopped = {.code = OK};
    struct training training = {.run = &side->experiment->method,
                                .task = &side->experiment->data.tasks[task],
                                .first = iteration,
                                .stop = &side->stop,
                                .wants_loss = always,
                                .after = stop_after_it,
                                .context = side};
    side->stop.signal = 0;
    decisions_clear(&side->decisions);
    expert_changes_clear(&side->experiment->method.changes);
    if (train_task(&training, &stopped) != OK && stopped.code != ERROR_STOPPED)
        report_abort(&stopped);
}

/* The other side goes on from where the CPU is. */
static void share(struct replay *r, size_t task, size_t iteration)
{
    bool end = iteration == r->cpu.experiment->data.tasks[task].settings.iterations, found;
    struct checkpoint_place place = {.task = end ? task + 1 : task, .iteration = end ? 0 : iteration};
    must(checkpoint_save(r->cpu.experiment, NULL, r->checkpoint, &place, &error));
    must(checkpoint_load(r->other.experiment, NULL, r->checkpoint, &place, &found, &error));
    must(found ? OK : error_set(&error, ERROR_IO, "%s: the checkpoint is gone", r->checkpoint));
}

/* Every third value of the first blocks' routers. */
static void disturb(struct replay *r)
{
    struct backend *backend = r->other.experiment->model.backend;
    for (int t = 0; r->disturb != 0 && t < TOWERS; t++) {
        const struct adapter_tower *tower = &r->other.experiment->model.adapters->towers[t];
        const struct parameter *router = &tower->parameters->list[tower->banks[0].routers];
        size_t bytes = router->size * sizeof(float);
        float *values = xmalloc(bytes), *device = parameters_write(tower->parameters, router->offset, router->size);
        must(backend->ops->download(backend, values, device, bytes, &error));
        for (size_t i = 0; i < router->size; i += 3)
            values[i] += (float)r->disturb;
        must(backend->ops->upload(backend, device, values, bytes, &error));
        free(values);
    }
}

/* --- What they decided --- */

static void print_experts(const struct routing_seen *routing, size_t sample)
{
    const int32_t *experts = routing_experts(routing, sample);
    for (size_t k = 0; experts != NULL && k < routing->top_k; k++)
        printf("%s%d", k > 0 ? " " : "", experts[k]);
}

/* One routing of both. A sample that went apart in a block before is another sample from there on. */
static void compare_routing(struct replay *r, const char *where, const struct routing_seen *a,
                            const struct routing_seen *b, bool *apart)
{
    for (size_t i = 0; i < a->samples; i++) {
        double margin = routing_margin(a, i);
        if (apart[i])
            continue;
        bool same = routing_same(a, b, i), close = !same && margin < CLOSE;
        if (close) {
            printf("%s, %s block %d, sample %zu: experts ", where, tower_names[a->tower], a->block, i);
            print_experts(a, i);
            printf(" and ");
            print_experts(b, i);
            printf(", logits %.3g apart\n", margin);
            r->listed++;
        }
        apart[i] = !same;
        r->smallest = margin < r->smallest ? margin : r->smallest;
        report_exact(&r->report, "routing", same || close, "%s, %s block %d, sample %zu, logits %.3g apart", where,
                     tower_names[a->tower], a->block, i, margin);
    }
}

static void compare_routings(struct replay *r, const char *where)
{
    enum { SAMPLES = 65536 };
    const struct decisions *a = &r->cpu.decisions, *b = &r->other.decisions;
    report_exact(&r->report, "number of routings", a->count == b->count && a->count > 0, "%s: %zu and %zu", where,
                 a->count, b->count);
    bool *apart = xcalloc(TOWERS * SAMPLES, sizeof *apart);
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const struct routing_seen *x = &a->routings[i], *y = &b->routings[i];
        bool alike = x->tower == y->tower && x->block == y->block && x->samples == y->samples && x->width == y->width;
        report_exact(&r->report, "shape of a routing", alike, "%s: routing %zu", where, i);
        if (alike && x->samples <= SAMPLES && x->tower < TOWERS)
            compare_routing(r, where, x, y, apart + x->tower * SAMPLES);
    }
    free(apart);
}

static void compare_counts(struct replay *r, const char *where)
{
    const struct adapters *a = r->cpu.experiment->model.adapters, *b = r->other.experiment->model.adapters;
    int32_t x[ADAPTER_EXPERTS], y[ADAPTER_EXPERTS];
    for (int t = 0; t < TOWERS; t++)
        for (size_t k = 0; k < a->towers[t].blocks; k++) {
            must(adapters_read_counts(a, (enum tower)t, k, x, &error));
            must(adapters_read_counts(b, (enum tower)t, k, y, &error));
            report_exact(&r->report, "counts", memcmp(x, y, a->settings.experts * sizeof *x) == 0, "%s, %s block %zu",
                         where, tower_names[t], k);
        }
}

static bool same_change(const struct expert_change *a, const struct expert_change *b)
{
    bool same = a->kind == b->kind && a->tower == b->tower && a->merge.block == b->merge.block &&
                a->merge.target == b->merge.target && a->merge.sources == b->merge.sources &&
                a->merge.skip == b->merge.skip;
    for (size_t i = 0; same && i < a->merge.sources; i++)
        same = a->merge.source[i] == b->merge.source[i];
    return same;
}

static void compare_changes(struct replay *r, const char *where)
{
    static const char *const kinds[] = {"merges", "skipped merges", "freezes"};
    const struct expert_changes *a = &r->cpu.experiment->method.changes, *b = &r->other.experiment->method.changes;
    report_exact(&r->report, "number of changes", a->count == b->count, "%s: %zu and %zu", where, a->count, b->count);
    for (size_t i = 0; i < a->count && i < b->count; i++)
        report_exact(&r->report, kinds[a->changes[i].kind], same_change(&a->changes[i], &b->changes[i]),
                     "%s, %s block %zu", where, tower_names[a->changes[i].tower], a->changes[i].merge.block);
}

/* Counts, merges and freezes follow from routing: they are compared where nothing was listed. */
static void compare_step(struct replay *r, size_t task, size_t iteration)
{
    char where[64];
    size_t listed = r->listed;
    snprintf(where, sizeof where, "task %zu, iteration %zu", task, iteration + 1);
    compare_routings(r, where);
    if (r->listed > listed) {
        share(r, task, iteration + 1);
        return;
    }
    report_value(&r->report, "loss", r->other.loss, r->cpu.loss, 1e-3 * fabs(r->cpu.loss));
    compare_counts(r, where);
    compare_changes(r, where);
}

static void run(struct replay *r)
{
    open_side(r, &r->other, r->backend);
    open_side(r, &r->cpu, "cpu");
    printf("%s\n%s\n", r->cpu.experiment->model.backend->description, r->other.experiment->model.backend->description);
    size_t iterations = r->cpu.experiment->data.tasks[0].settings.iterations;
    for (size_t i = 0; i < r->after; i++)
        train_one(&r->cpu, 0, i);
    share(r, 0, r->after);
    disturb(r);
    for (size_t step = r->after; step < r->after + r->steps; step++) {
        train_one(&r->cpu, step / iterations, step % iterations);
        train_one(&r->other, step / iterations, step % iterations);
        compare_step(r, step / iterations, step % iterations);
    }
    printf("listed as too close to tell: %zu; smallest distance of the K-th and next logits %.3g\n", r->listed,
           r->smallest);
    close_side(&r->cpu);
    close_side(&r->other);
}

/* --- Command line --- */

static bool read_words(int argc, char **argv, struct replay *r)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        int64_t whole = 0;
        bool number = parse_integer(value, &whole) && whole >= 1 && whole <= 10000;
        if (strncmp(word, "--", 2) != 0 && r->override_count < OVERRIDES) {
            r->overrides[r->override_count++] = word;
            continue;
        }
        if (strcmp(word, "--backend") == 0 && *value != 0)
            r->backend = value;
        else if (strcmp(word, "--steps") == 0 && number)
            r->steps = (size_t)whole;
        else if (strcmp(word, "--after") == 0 && number)
            r->after = (size_t)whole;
        else if (strcmp(word, "--disturb") != 0 || !parse_real(value, &r->disturb))
            return false;
        i++;
    }
    return r->after < r->steps;
}

static struct replay r = {
    .backend = "auto", .steps = 20, .after = 10, .smallest = (double)INFINITY, .report.folder = "decisions"};

static void remove_scratch(void)
{
    scratch_remove(&r.scratch);
}

int main(int argc, char **argv)
{
    struct gpus gpus;
    if (!read_words(argc, argv, &r)) {
        fprintf(stderr, "usage: replay_decisions [--backend cpu|cuda] [--steps N] [--after N] [--disturb X] "
                        "[key=value…], with fewer steps after than in all\n");
        return 2;
    }
    if (strcmp(r.backend, "cuda") == 0)
        must(backend_gpus(&gpus, &error));
    scratch_create(&r.scratch);
    atexit(remove_scratch);
    r.checkpoint = path_format("%s/checkpoint.safetensors", r.scratch.path);
    run(&r);
    free(r.checkpoint);
    return report_finish(&r.report) ? 0 : 1;
}

/* A linear head on an image tower: what it learns, how it answers, and that a stop is not seen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "harness/evaluate/evaluator.h"
#include "harness/heads/trained.h"
#include "harness/run/sequence.h"
#include "harness/train/guard.h"
#include "harness/train/replicas.h"
#include "harness/train/trainer.h"
#include "models/linear_head.h"
#include "results/store/database.h"
#include "results/verify.h"
#include "tests/harness/whole_run.h"

enum { CLASSES = 4, WIDTH = 64, ITERATIONS = 24 };

#define LINEAR "head.name=linear", "method.name=supervised", "data.order=third", "tasks.third.iterations=24"
#define SCRATCH                                                                                                        \
    LINEAR, "model.weights=scratch", "model.resolution=16", "model.patch=8", "model.width=64", "model.blocks=2"

static struct linear_head *head_of(const struct small_run *run)
{
    return run->experiment->model.head_state;
}

/* --- Training --- */

static bool every_loss(void *context, size_t iteration, size_t iterations)
{
    (void)context, (void)iteration, (void)iterations;
    return true;
}

static status keep_loss(void *context, const struct step_report *report, struct error *failure)
{
    (void)failure;
    ((double *)context)[report->iteration - 1] = report->loss;
    return OK;
}

static void train(struct small_run *run, double losses[ITERATIONS])
{
    struct training training = {.run = &run->experiment->method,
                                .task = &run->experiment->data.tasks[0],
                                .wants_loss = every_loss,
                                .after = keep_loss,
                                .context = losses};
    assert_int_equal(run->experiment->data.tasks[0].settings.iterations, ITERATIONS);
    must(train_task(&training, &error));
}

/* The head begins at zero, so that at first all classes are equally likely. */
TEST(the_loss_falls_from_that_of_a_guess)
{
    static const char *const pools[] = {"head.pool=class_token", "head.pool=mean_patches"};
    double losses[2][ITERATIONS];
    struct small_run run;
    small_run_open(&run, 1, (const char *const[]){SCRATCH, pools[0], NULL});
    for (int i = 0; i < 2; i++) {
        small_run_reopen(&run, 1, (const char *const[]){SCRATCH, pools[i], NULL});
        train(&run, losses[i]);
        assert_true(fabs(losses[i][0] - log(CLASSES)) < 1e-5);
        assert_true(losses[i][ITERATIONS - 1] < 0.9 * losses[i][0]);
    }
    assert_true(losses[0][ITERATIONS - 1] != losses[1][ITERATIONS - 1]);
    small_run_close(&run);
}

static float *values_of(const struct small_run *run, const struct parameters *group)
{
    return small_run_values(run, group->values, group->values_count);
}

static void expect_trained(const char *what, bool tower_changes)
{
    struct small_run run;
    double losses[ITERATIONS];
    small_run_open(&run, 1, (const char *const[]){LINEAR, what, NULL});
    const struct parameters *tower = run.experiment->model.clip->parameters, *head = head_of(&run)->parameters;
    size_t own = CLASSES * (WIDTH + 1), all = trained_values(&run.experiment->model);
    assert_true(tower_changes ? all > own : all == own);
    float *before = values_of(&run, tower), *start = values_of(&run, head);
    train(&run, losses);
    float *after = values_of(&run, tower), *end = values_of(&run, head);
    assert_int_equal(memcmp(before, after, tower->values_count * sizeof *after) != 0, tower_changes);
    assert_memory_not_equal(start, end, head->values_count * sizeof *end);
    assert_true(losses[ITERATIONS - 1] < losses[0]);
    free(before);
    free(after);
    free(start);
    free(end);
    small_run_close(&run);
}

/* A gradient that is not finite is told by its name, whether the tower is trained, too, or not. */
TEST(what_overflows_in_the_head_is_told)
{
    static const char *const trained[] = {"method.train=weights", "method.train=head"};
    const float bad = INFINITY;
    struct small_run run;
    small_run_open(&run, 1, (const char *const[]){SCRATCH, NULL});
    for (int i = 0; i < 2; i++) {
        small_run_reopen(&run, 1, (const char *const[]){SCRATCH, trained[i], NULL});
        struct run *e = run.experiment;
        const struct task *task = &e->data.tasks[0];
        const struct parameters *head = head_of(&run)->parameters;
        must(guard_begin_step(&e->model, task, &error));
        must(e->model.backend->ops->upload(e->model.backend, head->gradients + head->list[1].offset, &bad, sizeof bad,
                                           &error));
        must(guard_end_step(&e->model, task, &error));
        assert_int_equal(guard_check_steps(&e->model, task, &error), ERROR_FORMAT);
        error_tells((const char *const[]){"third", "gradient of head.bias", NULL});
    }
    small_run_close(&run);
}

TEST(the_tower_is_trained_with_the_head_or_stays)
{
    expect_trained("method.train=weights", true);
    expect_trained("method.train=head", false);
}

/* The tower is that of the CLIP, and what was loaded with it is gone. */
TEST(a_tower_comes_from_a_clip)
{
    static const char name[] = "visual.conv1.weight";
    struct small_run run;
    float *values[2];
    size_t size = 0;
    small_run_open(&run, 1, NULL);
    for (int i = 0; i < 2; i++) {
        if (i > 0)
            small_run_reopen(&run, 2, (const char *const[]){LINEAR, NULL});
        const struct parameters *group = run.experiment->model.clip->parameters;
        const struct parameter *p = parameters_find(group, name);
        size = p->size;
        values[i] = malloc(size * sizeof *values[i]);
        must(parameters_download(group, p, values[i], &error));
        assert_int_equal(parameters_find(group, "text_projection") == NULL, i > 0);
    }
    assert_memory_equal(values[0], values[1], size * sizeof *values[0]);
    free(values[0]);
    free(values[1]);
    small_run_close(&run);
}

/* --- Answers --- */

static double score(const float *weights, float bias, const float *features)
{
    double sum = (double)bias;
    for (size_t i = 0; i < WIDTH; i++)
        sum += (double)weights[i] * (double)features[i];
    return sum;
}

TEST(an_image_gets_the_class_with_the_highest_score)
{
    struct small_run run;
    double losses[ITERATIONS];
    struct evaluator *evaluator;
    small_run_open(&run, 1, (const char *const[]){SCRATCH, NULL});
    train(&run, losses);
    const struct linear *linear = &head_of(&run)->linear;
    must(evaluator_create(&evaluator, &run.experiment->model, &run.experiment->data, &run.experiment->method, NULL,
                          &error));
    must(evaluator_task(evaluator, 0, 0, NULL, &error));
    float *weights = small_run_values(&run, linear->weight.value, CLASSES * WIDTH),
          *biases = small_run_values(&run, linear->bias.value, CLASSES);
    struct test_set *set = &evaluator->sets[0];
    for (size_t i = 0; i < set->n; i++) {
        const float *features = set->routed.features + i * WIDTH;
        for (size_t c = 0; c < CLASSES; c++)
            assert_true(score(weights + c * WIDTH, biases[c], features) <=
                        score(weights + set->predicted[i] * WIDTH, biases[set->predicted[i]], features) + 1e-5);
    }
    for (uint16_t favourite = 0; favourite < CLASSES; favourite++) {
        float given[CLASSES] = {0};
        struct parameters *group = head_of(&run)->parameters;
        given[favourite] = 1e6f;
        must(parameters_upload(group, parameters_find(group, "head.bias"), given, &error));
        must(evaluator_refresh(evaluator, &error));
        must(evaluator_task(evaluator, 0, 0, NULL, &error));
        for (size_t i = 0; i < set->n; i++)
            assert_int_equal(set->predicted[i], favourite);
    }
    free(weights);
    free(biases);
    evaluator_destroy(evaluator);
    small_run_close(&run);
}

/* --- Runs --- */

TEST(stopping_is_not_seen_in_the_weights)
{
    static const char *const trained[] = {"method.train=weights", "method.train=head", "method.dropout=0.2"};
    struct small_run run;
    small_run_open(&run, 1, (const char *const[]){SCRATCH, NULL});
    for (size_t i = 0; i < 3; i++)
        expect_stop_unseen(&run, (const char *const[]){SCRATCH, trained[i], NULL}, 17);
    small_run_close(&run);
}

static void expect_number(const struct small_run *run, const char *sql, int64_t expected)
{
    struct database *opened;
    int64_t found;
    must(database_open(&opened, small_run_file(run, "a.db"), STORE_READ, NULL, &error));
    must(database_integer(opened, sql, &found, &error));
    assert_int_equal(found, expected);
    database_close(opened);
}

static const char *all_cells(const char *method)
{
    (void)method;
    return "all";
}

static const char *trained_cells(const char *method)
{
    (void)method;
    return "trained";
}

static size_t faults(const struct small_run *run, const char *(*cells)(const char *method))
{
    struct store *store;
    struct verification verification = {.cells = cells};
    must(store_open(&store, small_run_file(run, "a.db"), STORE_READ, &error));
    must(verify_database(store, &verification, &error));
    size_t count = table_rows(&verification.faults);
    verification_free(&verification);
    store_close(store);
    return count;
}

/* There is no answer before training, and no file of weights or of a vocabulary was read. */
TEST(a_run_has_one_accuracy)
{
    struct small_run run;
    small_run_open(&run, 1, (const char *const[]){SCRATCH, NULL});
    small_run_reopen(&run, 1, (const char *const[]){SCRATCH, "method.train=weights", NULL});
    must(whole_run(&run, "a.db", NULL));
    expect_number(&run, "SELECT count(*) FROM evaluations", 1);
    expect_number(&run, "SELECT count(*) FROM evaluations WHERE after_task = 0 AND task = 0 AND images = 12", 1);
    expect_number(&run, "SELECT count(*) FROM inputs WHERE task < 0", 0);
    assert_int_equal(faults(&run, trained_cells), 0);
    assert_int_equal(faults(&run, all_cells), 1);
    small_run_close(&run);
}

/* Of a CLIP's file, the weights and what they do not say identify the run, and the vocabulary does not. */
TEST(the_file_of_a_tower_is_an_input)
{
    struct small_run run;
    char *weights;
    small_run_open(&run, 1, NULL);
    weights = path_format("model.weights=%s", small_run_file(&run, "clip.safetensors"));
    struct store *store;
    small_run_reopen(&run, 1, (const char *const[]){LINEAR, weights, NULL});
    must(store_open(&store, small_run_file(&run, "a.db"), STORE_WRITE, &error));
    must(sequence_run(&(struct sequence){.run = run.experiment, .store = store}, &error));
    store_close(store);
    expect_number(&run, "SELECT count(*) FROM inputs WHERE task < 0 AND kind IN ('weights', 'configuration')", 2);
    expect_number(&run, "SELECT count(*) FROM inputs WHERE kind = 'vocabulary'", 0);
    free(weights);
    small_run_close(&run);
}

/* Every rank has the same head after the same updates, and their shares of the loss add up to that of the batch. */
TEST(ranks_train_one_head)
{
    if (small_run_gpus() < 2)
        skip();
    struct small_run run;
    double losses[ITERATIONS];
    small_run_open(&run, 1, (const char *const[]){SCRATCH, "run.gpus=2", NULL});
    train(&run, losses);
    const struct model *other = replicas_at(run.experiment->model.work.replicas, 1)->model;
    const struct parameters *group = head_of(&run)->parameters;
    const struct linear_head *copy = other->head_state;
    float *own = values_of(&run, group), *theirs = malloc(group->values_count * sizeof *theirs);
    must(other->backend->ops->bind(other->backend, &error));
    must(other->backend->ops->download(other->backend, theirs, copy->parameters->values,
                                       group->values_count * sizeof *theirs, &error));
    assert_memory_equal(own, theirs, group->values_count * sizeof *own);
    assert_true(fabs(losses[0] - log(CLASSES)) < 1e-5);
    assert_true(losses[ITERATIONS - 1] < losses[0]);
    free(own);
    free(theirs);
    small_run_close(&run);
}

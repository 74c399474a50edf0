/* Reference images and texts, and the methods that use them, on images and texts from files. */
#include <stdlib.h>

#include "harness/run/identity/image_watch.h"
#include "harness/run/run.h"
#include "harness/run/workload.h"
#include "harness/train/batches.h"
#include "harness/train/method.h"
#include "harness/train/services/references.h"
#include "tests/harness/train/outcome.h"

enum { R = 16, BATCH = 5, BYTES = BATCH * R * R * 3, PICTURES = 13, CONTEXT = 24 };

/* Methods that train both towers: the run's adapters would take references too. */
#define FT "method.name=continual_ft"

/* A folder of pictures that differ, a file of texts, and zscl with both. */
static void add_references(struct small_run *run, const char *zscl[4])
{
    for (unsigned i = 0; i < PICTURES; i++)
        scratch_write_png(&run->scratch, small_run_format("pictures/%s/%u.png", i % 2 ? "odd" : "even/deep", i), 20, 17,
                          0x10203 * (i + 1));
    scratch_write_text(&run->scratch, "texts.txt", "green\n");
    zscl[0] = "method.name=zscl";
    zscl[1] = small_run_format("method.reference_images=%s/pictures", run->scratch.path);
    zscl[2] = small_run_format("method.reference_texts=%s/texts.txt", run->scratch.path);
    zscl[3] = NULL;
}

/* --- Images --- */

static void read_pixels(const struct small_run *run, const struct reference_images *images, uint8_t *pixels)
{
    struct backend *backend = run->experiment->model.backend;
    assert_int_equal(images->batch.shape[0], BATCH);
    must(backend->ops->download(backend, pixels, images->batch.data, BYTES, &error));
}

static void begin(struct small_run *run, struct reference_images *images, size_t task, size_t first, uint8_t *pixels)
{
    struct run *e = run->experiment;
    arena_reset(&e->model.task_memory);
    must(reference_images_begin(images, &e->method, &e->data.tasks[task], BATCH, first, &e->model.task_memory, &error));
    read_pixels(run, images, pixels);
}

/* The training images of the task, but not in the order in which they are trained on. That batches follow from task and iteration
 * is test_every_method's. */
RUN_TEST(images_of_the_current_task, FT, NULL)
{
    struct reference_images images;
    uint8_t trained[BYTES], found[BYTES], again[BYTES];
    struct run *e = run->experiment;
    must(reference_images_open(&images, NULL, &error));
    begin(run, &images, 0, 0, found);
    read_batch(&(struct loader_settings){.dataset = e->data.tasks[0].dataset,
                                         .split = SPLIT_TRAIN,
                                         .resolution = R,
                                         .batch = BATCH,
                                         .shuffle = true,
                                         .seed = e->model.seed},
               0, trained, NULL);
    assert_memory_not_equal(found, trained, BYTES);
    must(reference_images_next(&images, &error));
    read_pixels(run, &images, found);
    begin(run, &images, 0, 1, again);
    assert_memory_equal(again, found, BYTES);
    begin(run, &images, 1, 1, again);
    assert_memory_not_equal(again, found, BYTES);
    reference_images_close(&images);
}

/* --- Texts --- */

RUN_TEST(texts_of_a_file, FT, NULL)
{
    struct reference_texts texts = {0};
    int32_t row[CONTEXT];
    size_t tokens;
    scratch_write_text(&run->scratch, "texts.txt",
                       "a red square\r\ngreen\nblue and yellow and red and green and blue and "
                       "yellow and red and green and blue\n");
    must(reference_texts_read(&texts, &run->experiment->method, small_run_file(run, "texts.txt"), NULL, &error));
    assert_int_equal(texts.count, 3);
    must(tokenizer_encode(run->experiment->model.tokenizer, "green", row, CONTEXT, &tokens, &error));
    assert_memory_equal(texts.tokens + CONTEXT, row, sizeof row);
    assert_int_equal(texts.tokens[3 * CONTEXT - 1], tokenizer_end(run->experiment->model.tokenizer)); /* it was cut */
    scratch_write_text(&run->scratch, "texts.txt", "one\n \nthree\n");
    must_refuse(reference_texts_read(&texts, &run->experiment->method, small_run_file(run, "texts.txt"), NULL, &error),
                ERROR_FORMAT, "texts.txt:2", "empty line");
    reference_texts_free(&texts);
}

/* Lists as CC3M, CC12M and open_clip have them: columns, with a header or without one. */
RUN_TEST(texts_in_a_column, FT, NULL)
{
    static const struct {
        const char *text, *column, *words; /* words: of the error; NULL: "a red square", "green" are read */
    } cases[] = {
        {"a red square\thttp://a/1.jpg\ngreen\thttp://a/2.jpg\n", NULL, "texts.txt:1: expected one sentence"},
        {"a red square\ngreen\thttp://a/2.jpg\n", NULL, "texts.txt:2: expected one sentence"},
        {"Caption\ngreen\n", NULL, "texts.txt:1: expected a sentence, found a header: \"Caption\""},
        {"caption,url\ngreen\n", NULL, "texts.txt:1: expected a sentence, found a header"},
        {"a red square,http://a/1.jpg\ngreen,http://a/2.jpg\n", NULL, "found an address"},
        {"a red square\thttp://a/1.jpg\r\ngreen\thttp://a/2.jpg\r\n", "1", NULL},
        {"http://a/1.jpg\ta red square\nhttp://a/2.jpg\tgreen\n", "2", NULL},
        {"http://a/1.jpg\ta red square\nhttp://a/2.jpg\tgreen\n", "1",
         "texts.txt:1: expected a sentence, found an address"},
        {"filepath\ttitle\n1.jpg\ta red square\n2.jpg\tgreen\n", "title", NULL},
        {"caption\na red square\ngreen\n", "caption", NULL},
        {"filepath\ttitle\n1.jpg\ta red square\n2.jpg\tgreen\n", "2",
         "texts.txt:1: expected a sentence, found a header"},
        {"filepath\ttitle\n1.jpg\ta red square\n2.jpg\tgreen\n", "caption", "column \"caption\""},
        {"a red square\tb\ngreen\n", "2", "texts.txt:2: expected a sentence in column 2"},
        {"a red square\tb\n\tb\n", "1", "texts.txt:2: expected a sentence in column 1"},
        {"title\n", "title", "no line but its header"},
        {"a red square\n", "0", "column \"0\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reference_texts texts = {0};
        int32_t row[2 * CONTEXT];
        size_t tokens;
        scratch_write_text(&run->scratch, "texts.txt", cases[i].text);
        status result = reference_texts_read(&texts, &run->experiment->method, small_run_file(run, "texts.txt"),
                                             cases[i].column, &error);
        if (cases[i].words != NULL) {
            must_refuse(result, ERROR_FORMAT, cases[i].words);
            continue;
        }
        must(result);
        must(tokenizer_encode(run->experiment->model.tokenizer, "a red square", row, CONTEXT, &tokens, &error));
        must(tokenizer_encode(run->experiment->model.tokenizer, "green", row + CONTEXT, CONTEXT, &tokens, &error));
        assert_int_equal(texts.count, 2);
        assert_memory_equal(texts.tokens, row, sizeof row);
        reference_texts_free(&texts);
    }
}

RUN_TEST(random_texts, FT, NULL)
{
    enum { MANY = 3000, WORDS = 10 };
    struct reference_texts texts = {0}, again = {0};
    int32_t start = tokenizer_start(run->experiment->model.tokenizer),
            end = tokenizer_end(run->experiment->model.tokenizer);
    size_t cut = 0;
    must(reference_texts_draw(&texts, &run->experiment->method, 1, MANY, WORDS, &error));
    for (size_t i = 0; i < MANY; i++) {
        const int32_t *row = texts.tokens + i * CONTEXT;
        assert_int_equal(row[0], start);
        assert_int_equal(row[1 + WORDS], end);
        assert_int_equal(row[2 + WORDS], 0);
        for (size_t k = 1; k <= WORDS; k++) {
            assert_true(row[k] >= 0 && row[k] <= end);
            cut += row[k] == end;
        }
    }
    assert_true(cut > 0); /* from the whole vocabulary */
    must(reference_texts_draw(&again, &run->experiment->method, 1, MANY, WORDS, &error));
    assert_memory_equal(again.tokens, texts.tokens, MANY * CONTEXT * sizeof *texts.tokens);
    must(reference_texts_draw(&again, &run->experiment->method, 2, MANY, WORDS, &error));
    assert_memory_not_equal(again.tokens, texts.tokens, MANY * CONTEXT * sizeof *texts.tokens);
    reference_texts_free(&texts);
    reference_texts_free(&again);
}

/* --- Methods --- */

/* The estimate counts a teacher in bf16 beside the copies of the weights: a teacher, the start and the mean, which a resume file has,
 * too. It is put together in memory, and beside the one before. */
static void estimate_counts_copies(struct small_run *run, const char *const *guided, const char *precision)
{
    small_run_reopen(run, 1, WORDS(FT, precision));
    struct estimate alone = workload_estimate(run->experiment), with;
    small_run_reopen(run, 1, WORDS(guided[0], guided[1], guided[2], precision));
    const struct clip *clip = run->experiment->model.clip;
    double copy = 4.0 * (double)clip->parameters->values_count, rounded = 0;
    for (int t = 0; t < TOWERS && run->experiment->model.backend->precision == PRECISION_BF16; t++)
        rounded += (double)cost_packed_bytes(&clip->dimensions, (enum tower)t, NULL);
    with = workload_estimate(run->experiment);
    assert_between(with.memory - alone.memory, 6 * copy + rounded, 6.1 * copy + rounded);
    assert_between(with.resume - alone.resume, 6 * copy, 6.1 * copy);
    assert_true(with.disk == alone.disk);
}

static bool unchanged(const struct method_run *method, const char *name)
{
    const struct option *option = options_find(method->model->settings.method->options, name);
    const char *path = options_text(method->options, name);
    struct witness now;
    must((option->type == OPTION_FILE ? witness_of_file : witness_of_folder)(&now, path, &error));
    return witness_same(&now, method_input(method, name));
}

/* Files that change after the method has read them, and while a run goes on; and what the estimate counts. */
RUN_TEST(what_was_read_is_watched, FT, NULL)
{
    const char *zscl[4];
    struct image_watch watch;
    add_references(run, zscl);
    small_run_reopen(run, 1, zscl);
    const struct method_run *method = &run->experiment->method;
    must(image_watch_open(&watch, run->experiment, &error));
    must(image_watch_check(&watch, 0, &error));
    assert_true(unchanged(method, "reference_texts") && unchanged(method, "reference_images"));
    scratch_write_text(&run->scratch, "texts.txt", "green\nred\n");
    assert_false(unchanged(method, "reference_texts"));
    scratch_write_png(&run->scratch, "pictures/odd/3.png", 9, 9, 0xff);
    assert_false(unchanged(method, "reference_images"));
    must_refuse(image_watch_check(&watch, 0, &error), ERROR_IO, "method.reference_images", "changed during the run");
    image_watch_close(&watch);
    estimate_counts_copies(run, zscl, "run.precision=f32");
    setenv("MTIL_ISA", "portable", 1); /* has bf16 on any processor */
    estimate_counts_copies(run, zscl, "run.precision=bf16");
    unsetenv("MTIL_ISA");
}

/* Reported before anything is trained, with the key that is meant. */
RUN_TEST(what_is_missing_is_named, FT, NULL)
{
    static const char images[] = "method.reference_images=nowhere", texts[] = "method.reference_texts=nowhere";
    const char *zscl[4];
    add_references(run, zscl);
    must_refuse(small_run_try(run, 1, WORDS(zscl[0])), ERROR_ARGUMENT, "method.reference_images: expected");
    must_refuse(small_run_try(run, 1, WORDS(zscl[0], images)), ERROR_ARGUMENT, "method.reference_texts: expected");
    must_refuse(small_run_try(run, 1, WORDS(zscl[0], images, zscl[2])), ERROR_IO,
                "method.reference_images: there is no folder");
    must_refuse(small_run_try(run, 1, WORDS(zscl[0], zscl[1], texts)), ERROR_IO, "method.reference_texts: ");
    must_refuse(small_run_try(run, 1, WORDS("method.name=lwf_vr", "method.words=100")), ERROR_ARGUMENT,
                "method.words: at most 22");
}

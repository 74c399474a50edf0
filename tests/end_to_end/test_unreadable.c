/* Images that cannot be decoded: told before anything is trained, or left out and counted, and none costs a finished
 * task. */
#include "tests/end_to_end/rows.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"

#define RUN "run tiny.yaml --quiet "
#define BRAIDED "data/dtd/dtd/images/braided/braided_0040.jpg" /* trained with, in the third task */
#define EUROSAT FIXTURES "/data/roots/eurosat/eurosat"
#define TESTED "data/eurosat/2750/Forest/Forest_1.jpg"

/* A copy of the datasets, with this image spoilt. */
static void spoil(const struct workshop *w, const char *name)
{
    workshop_put_corrupted(w, "html_error_page.jpg", name);
}

static void set_up(struct workshop *w)
{
    workshop_open(w);
    workshop_own_data(w, "dtd");
    workshop_own_data(w, "eurosat");
}

TEST(a_bad_image_of_a_later_task_stops_before_the_first_step)
{
    struct workshop w;
    set_up(&w);
    spoil(&w, BRAIDED);
    program_fails(&w, &(struct launch){.arguments = RUN},
                  (const char *const[]){"task dtd", "1 of 27 images", "braided_0040.jpg", "data check",
                                        "on_unreadable: skip", NULL});
    rows_expect(&w, "results.db", "SELECT count(*) FROM runs", "0\n");
    assert_null(workshop_find(&w, "runs/*/seed1/resume.safetensors"));
    spoil(&w, TESTED); /* both are told of */
    program_fails(&w, &(struct launch){.arguments = RUN},
                  (const char *const[]){"2 tasks", "eurosat, dtd", "Forest_1.jpg", NULL});
    workshop_close(&w);
}

TEST(bad_images_are_left_out_and_counted)
{
    struct workshop w;
    set_up(&w);
    spoil(&w, BRAIDED);
    spoil(&w, TESTED);
    struct outcome outcome = program_ends(&w, RUN "data.on_unreadable=skip", 0);
    assert_int_equal(words_count(outcome.errors.data, "warning: "), 2);
    assert_non_null(strstr(outcome.errors.data, "1 of 27 images of dtd cannot be decoded and are left out"));
    outcome_free(&outcome);
    rows_expect(&w, "results.db", "SELECT name, training_images + test_images, unreadable_images FROM tasks",
                "mnist,90,0\neurosat,29,1\ndtd,26,1\n");
    outcome = program_ends(&w, "query tasks results.db --format csv --quiet", 0);
    assert_non_null(strstr(outcome.out.data, "missing_images,unreadable_images"));
    outcome_free(&outcome);
    program_succeeds(&w, RUN "data.on_unreadable=skip"); /* finished: the same images are left out again */
    program_succeeds(
        &w, "eval tiny.yaml --quiet --adapters adapters.safetensors --router position data.on_unreadable=skip");
    program_succeeds(&w, RUN "tasks.dtd.on_unreadable=skip tasks.eurosat.on_unreadable=skip run.database=other.db "
                             "run.folder=other");
    workshop_close(&w);
}

/* As the loader meets it in training, and as the next start finds it. */
TEST(what_goes_bad_later_is_told_and_gone_on_from)
{
    struct workshop w;
    struct process process;
    struct error error;
    struct bytes image;
    struct text expected = {0}, found = {0};
    set_up(&w);
    program_succeeds(&w, RUN "tasks.mnist.iterations=250 run.database=undisturbed.db run.folder=undisturbed");
    assert_int_equal(file_read(scratch_file(&w.scratch, BRAIDED), FILE_LIMIT, &image, &error), OK);
    program_start(&process, &w, &(struct launch){.arguments = RUN "tasks.mnist.iterations=250"});
    free(program_wait_for_file(&process, &w, "runs/*/seed1/resume.safetensors"));
    assert_int_equal(kill(process.id, SIGSTOP), 0);
    spoil(&w, BRAIDED);
    assert_int_equal(kill(process.id, SIGCONT), 0);
    struct outcome outcome = program_wait(&process);
    assert_int_equal(outcome.exit_status, 1);
    assert_int_equal(words_count(outcome.errors.data, "\n"), 1);
    assert_non_null(strstr(outcome.errors.data, "braided_0040.jpg"));
    outcome_free(&outcome);
    rows_expect(&w, "results.db", "SELECT status, instr(message, 'braided_0040.jpg') > 0 FROM runs", "failed,1\n");
    program_complains(&w, &(struct launch){.arguments = RUN "tasks.mnist.iterations=250"},
                      (const char *const[]){"braided_0040.jpg", NULL});
    scratch_write(&w.scratch, BRAIDED, image.data, image.size);
    outcome = program_ends(&w, "run tiny.yaml tasks.mnist.iterations=250", 0);
    assert_non_null(strstr(outcome.errors.data, "resuming task 3 of 3"));
    outcome_free(&outcome);
    rows_read(scratch_file(&w.scratch, "results.db"), &found);
    rows_read(scratch_file(&w.scratch, "undisturbed.db"), &expected);
    assert_string_equal(found.data, expected.data);
    text_free(&found);
    text_free(&expected);
    bytes_free(&image);
    workshop_close(&w);
}

/* --- Interrupted -------------------------------------------------------------------------------------------------- */

/* Until the process has said this on standard error. */
static void wait_for_words(const struct process *process, const char *words)
{
    for (;;) {
        char text[4096];
        siginfo_t ended = {0};
        assert_int_equal(waitid(P_PID, (id_t)process->id, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        ssize_t size = pread(fileno(process->errors), text, sizeof text - 1, 0);
        text[size > 0 ? size : 0] = 0;
        if (strstr(text, words) != NULL)
            return;
        if (ended.si_pid != 0)
            fail_msg("the program ended before it said \"%s\": %s", words, text);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* Links to files that are long there, so that what is found in them is kept. */
static void link_images(const struct workshop *w, size_t count)
{
    char *command = path_format("cd '%s/data' && rm eurosat && cp -rs " EUROSAT " .", w->scratch.path);
    assert_non_null(command);
    assert_int_equal(system(command), 0);
    free(command);
    for (size_t i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "data/eurosat/2750/Forest/more_%zu.jpg", i);
        assert_int_equal(symlink(EUROSAT "/2750/Forest/Forest_1.jpg", scratch_file(&w->scratch, name)), 0);
    }
}

TEST(interrupted_it_keeps_what_it_found)
{
    enum { IMAGES = 8000 };
    struct workshop w;
    struct process process;
    unsigned all = 0, known = 0;
    workshop_open(&w);
    link_images(&w, IMAGES);
    program_start(&process, &w, &(struct launch){.arguments = "run tiny.yaml data.order=eurosat"});
    wait_for_words(&process, "check eurosat");
    assert_int_equal(kill(process.id, SIGINT), 0);
    struct outcome outcome = program_wait(&process);
    assert_int_equal(outcome.exit_status, 128 + SIGINT);
    assert_non_null(strstr(outcome.errors.data, "stopped"));
    outcome_free(&outcome);
    rows_expect(&w, "results.db", "SELECT count(*) FROM runs", "0\n");
    outcome = program_run(&w, &(struct launch){.arguments = "data check data --dataset=eurosat --verbose"});
    const char *told = strstr(outcome.errors.data, "eurosat: 80");
    assert_non_null(told);
    assert_int_equal(sscanf(told, "eurosat: %u images, %u of them known", &all, &known), 2);
    assert_true(known > 0 && known < all);
    outcome_free(&outcome);
    workshop_close(&w);
}

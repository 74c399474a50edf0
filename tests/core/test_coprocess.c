/* A program that is asked and answers. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/coprocess.h"
#include "tests/datasets/scratch.h"
#include "tests/test.h"

static struct scratch scratch;
static struct coprocess *program;

static int set_up(void **state)
{
    scratch_create(&scratch);
    return 0;
}

static int tear_down(void **state)
{
    coprocess_close(program);
    program = NULL;
    scratch_remove(&scratch);
    return 0;
}

static void start(const char *script, const struct stop *stop)
{
    const char *const words[] = {"sh", "-c", script, NULL};
    assert_ok(coprocess_start(&program,
                              &(struct coprocess_settings){
                                  .name = "it", .arguments = words, .log = scratch_file(&scratch, "log"), .stop = stop},
                              &error));
}

static json_t *message(size_t size)
{
    char *text = xmalloc(size + 1);
    memset(text, 'x', size);
    text[size] = 0;
    json_t *made = json_pack("{s:s, s:s}", "type", "question", "text", text);
    free(text);
    return made;
}

TEST_WITH(a_question_has_an_answer, set_up, tear_down)
{
    json_t *answer;
    start("while read -r line; do echo '{\"type\": \"answer\"}'; done", NULL);
    for (int i = 0; i < 3; i++) {
        assert_ok(coprocess_send(program, message(10), &error));
        assert_ok(coprocess_receive(program, 60, &answer, &error));
        assert_string_equal(coprocess_text(answer, "type"), "answer");
        assert_string_equal(coprocess_text(answer, "none"), "");
        json_decref(answer);
    }
    assert_between(coprocess_peak(program), 100 << 10, 100 << 20);
    assert_ok(coprocess_end(program, 60, &error));
    assert_int_equal(coprocess_peak(program), 0);
    assert_int_equal(coprocess_peak(NULL), 0);
}

/* Neither waits for the other's reader: it answers with a megabyte before it reads one. */
TEST_WITH(neither_waits_for_the_others_reader, set_up, tear_down)
{
    json_t *answer;
    start("printf '{\"type\": \"'; head -c 1000000 /dev/zero | tr '\\0' y; echo '\"}'; cat >/dev/null", NULL);
    assert_ok(coprocess_send(program, message(1000000), &error));
    assert_ok(coprocess_receive(program, 60, &answer, &error));
    assert_int_equal(strlen(coprocess_text(answer, "type")), 1000000);
    json_decref(answer);
    assert_ok(coprocess_end(program, 60, &error));
}

static void fails_within(double seconds, const char *script, status code, const char *words)
{
    json_t *answer;
    struct error ignored;
    start(script, NULL);
    if (coprocess_send(program, message(10), &ignored) == OK)
        assert_fails(coprocess_receive(program, seconds, &answer, &error), code, words);
    coprocess_close(program);
    program = NULL;
}

/* Without a limit of its time: a busy machine is no failure. */
static void fails(const char *script, status code, const char *words)
{
    fails_within(0, script, code, words);
}

TEST_WITH(failures_are_said, set_up, tear_down)
{
    fails("read -r line; echo 'it broke' >&2; exit 3", ERROR_IO, "it broke");
    fails("read -r line; exit 3", ERROR_IO, "exit status 3");
    fails("read -r line; kill -9 $$", ERROR_IO, "signal 9");
    fails("read -r line; exec >&-; sleep 100", ERROR_IO, "closed its standard output");
    fails_within(0.1, "sleep 100", ERROR_IO, "has not answered for 0.1 s");
    fails("read -r line; echo nothing", ERROR_FORMAT, "found nothing");
    fails("read -r line; echo '{\"type\": 3}'", ERROR_FORMAT, "\"type\"");
    fails("read -r line; printf '{\"type\": \"a\"}\\0\\n'", ERROR_FORMAT, "NUL");
    fails("read -r line; printf '{\"type\": \"\\377\"}\\n'", ERROR_FORMAT, "object of JSON");
    fails("read -r line; echo '{\"type\": \"error\", \"message\": \"no\"}'", ERROR_IO, "it: no");
    fails("read -r line; cat /dev/zero", ERROR_FORMAT, "64 MB");
    const char *const none[] = {"/no/such/program", NULL};
    assert_fails(coprocess_start(&program,
                                 &(struct coprocess_settings){
                                     .name = "it", .arguments = none, .log = scratch_file(&scratch, "log")},
                                 &error),
                 ERROR_IO, "no such program");
    start("cat", NULL);
    assert_fails(coprocess_send(program, NULL, &error), ERROR_FORMAT, "UTF-8");
}

TEST_WITH(the_end_has_a_status, set_up, tear_down)
{
    start("while read -r line; do :; done; exit 4", NULL);
    assert_fails(coprocess_end(program, 60, &error), ERROR_IO, "exit status 4");
    coprocess_close(program);
    start("trap '' TERM; while :; do sleep 1; done", NULL);
    assert_fails(coprocess_end(program, 0.2, &error), ERROR_IO, "has not ended");
}

/* A request to stop ends the wait, and later ones can be told to go on. */
TEST_WITH(a_request_to_stop_ends_the_wait, set_up, tear_down)
{
    struct stop stop = {0};
    json_t *answer;
    start("read -r line; read -r line; echo '{\"type\": \"stopped\"}'", &stop);
    assert_ok(coprocess_send(program, message(1), &error));
    atomic_store(&stop.signal, SIGINT);
    assert_fails(coprocess_receive(program, 60, &answer, &error), ERROR_STOPPED, "it");
    coprocess_finish(program);
    assert_ok(coprocess_send(program, message(1), &error));
    assert_ok(coprocess_receive(program, 60, &answer, &error));
    json_decref(answer);
    assert_ok(coprocess_end(program, 60, &error));
}

/* Whether a process is there and no zombie, which stays where nobody waits for orphans. */
static bool is_alive(const char *id)
{
    char path[64], state = 'Z';
    snprintf(path, sizeof path, "/proc/%s/stat", id);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    int read = fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return read == 1 && state != 'Z';
}

/* Its own children end with it. */
TEST_WITH(children_end_with_it, set_up, tear_down)
{
    json_t *answer;
    start("sleep 1000 & echo \"{\\\"type\\\": \\\"$!\\\"}\"; wait", NULL);
    assert_ok(coprocess_receive(program, 60, &answer, &error));
    assert_true(is_alive(coprocess_text(answer, "type")));
    coprocess_close(program);
    program = NULL;
    for (double begin = clock_seconds(); is_alive(coprocess_text(answer, "type")) && clock_seconds() - begin < 10;)
        usleep(1000);
    assert_false(is_alive(coprocess_text(answer, "type")));
    json_decref(answer);
}

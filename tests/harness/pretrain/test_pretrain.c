#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/file.h"
#include "harness/pretrain/pretrain.h"
#include "models/tokenizer.h"
#include "tests/datasets/scratch.h"

static struct error error;

static status run(const struct scratch *scratch, size_t threads, struct stop *stop)
{
    struct pretrain_settings settings = pretrain_defaults();
    settings.batch = 4;
    settings.plain_steps = 1;
    settings.harder_steps = 1;
    settings.captions = 100;
    settings.merges = 20;
    settings.backend.threads = threads;
    return pretrain(&settings, scratch_file(scratch, "weights"), NULL, NULL, stop, &error);
}

static struct bytes read_whole(const struct scratch *scratch, const char *name)
{
    struct bytes bytes;
    if (file_read(scratch_file(scratch, name), FILE_LIMIT, &bytes, &error) != OK)
        fail_msg("%s", error.message);
    return bytes;
}

/* A few steps: the files belong together, and any number of threads makes the same. */
static void makes_both_files(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_create(&scratch);
    assert_int_equal(run(&scratch, 1, NULL), OK);
    struct bytes first = read_whole(&scratch, "weights/mini-clip.safetensors");
    struct clip_file *file;
    struct tokenizer *tokenizer;
    assert_int_equal(clip_file_open(&file, scratch_file(&scratch, "weights/mini-clip.safetensors"), &error), OK);
    assert_int_equal(tokenizer_open(&tokenizer, scratch_file(&scratch, "weights/mini-vocabulary.txt"), &error), OK);
    assert_int_equal(clip_file_dimensions(file)->vocabulary, tokenizer_vocabulary(tokenizer));
    assert_int_equal(clip_file_dimensions(file)->resolution, 64);
    tokenizer_close(tokenizer);
    clip_file_close(file);
    assert_int_equal(run(&scratch, 2, NULL), OK);
    struct bytes second = read_whole(&scratch, "weights/mini-clip.safetensors");
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    bytes_free(&first);
    bytes_free(&second);
    scratch_remove(&scratch);
}

static void stopped_it_leaves_what_was_there(void **state)
{
    (void)state;
    struct scratch scratch;
    struct directory directory;
    struct stop stop = {.signal = 2};
    scratch_create(&scratch);
    scratch_write_text(&scratch, "weights/mini-vocabulary.txt", "of earlier weights");
    assert_int_equal(run(&scratch, 2, &stop), ERROR_STOPPED);
    assert_int_equal(directory_list(&directory, scratch_file(&scratch, "weights"), &error), OK);
    assert_int_equal(directory.count, 1);
    directory_free(&directory);
    struct bytes kept = read_whole(&scratch, "weights/mini-vocabulary.txt");
    assert_string_equal((const char *)kept.data, "of earlier weights");
    bytes_free(&kept);
    scratch_remove(&scratch);
}

static int tool(const char *arguments)
{
    char *command = path_format("%s-pretrain %s 2>/dev/null", PROGRAM, arguments);
    assert_non_null(command);
    int ended = system(command);
    free(command);
    assert_true(WIFEXITED(ended));
    return WEXITSTATUS(ended);
}

static void the_tool_reads_its_command_line(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_create(&scratch);
    assert_int_equal(tool(""), 2);
    assert_int_equal(tool("--help"), 2);
    const char *folder = scratch_file(&scratch, "weights");
    char *arguments = path_format("%s plain_steps=0 stepps=1", folder);
    assert_int_equal(tool(arguments), 2);
    free(arguments);
    arguments = path_format("%s plain_steps=0 harder_steps=0", scratch_file(&scratch, "weights"));
    assert_int_equal(tool(arguments), 0);
    assert_true(file_exists(scratch_file(&scratch, "weights/mini-clip.safetensors")));
    free(arguments);
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_both_files),
        cmocka_unit_test(stopped_it_leaves_what_was_there),
        cmocka_unit_test(the_tool_reads_its_command_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

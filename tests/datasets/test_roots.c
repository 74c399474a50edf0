/* What readers find in roots, as roots.txt says: files, datasets that are opened there, and what these have.
 *
 *     @ shell                      stands before the shell's lines in all cases; $ROOTS has the fixtures, $PICTURES small images:
 *                                  0.png to 63.png, no two alike, and wide.png and high.png of one colour
 *     # words                      begins a case, in a root of its own; further ones are comments
 *     $ shell                      runs in the root
 *     NAME KEY=VALUE …             opens a dataset and reads all of it; `images FOLDER` those of a folder
 *     check NAME KEY=VALUE …       looks for what is wrong with it
 *     > words                      behind these: the answer has the words
 *     ! NAME KEY=VALUE … => words  it is refused, with the words
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "datasets/check.h"
#include "tests/datasets/root.h"
#include "tests/test.h"

enum { PICTURES = 64 };

static struct scratch pictures;
static struct text answer, head, shell;
static size_t line_number;

static void add_warning(void *context, enum log_level level, const char *message)
{
    if (level == LOG_WARN)
        text_add(context, "warning: %s\n", message);
}

/* --- an open dataset ---------------------------------------------------------------------------------------------- */

/* "classes: cat 2+1, big dog 1+1", "train: 1 b/1.png, 0 a/1.png", "test: …", and what else there is to say. */
static void describe(const struct dataset *dataset)
{
    struct image image;
    struct error error;
    const char *file;
    text_add(&answer, "classes:");
    for (size_t c = 0; c < dataset_classes(dataset); c++)
        text_add(&answer, "%s %s %zu+%zu", c > 0 ? "," : "", dataset_class_name(dataset, c),
                 root_count(dataset, SPLIT_TRAIN, c), root_count(dataset, SPLIT_TEST, c));
    for (int split = 0; split < SPLITS; split++) {
        text_add(&answer, "\n%s", split == SPLIT_TRAIN ? "train:" : "test:");
        for (size_t i = 0; i < dataset_size(dataset, (enum split)split); i++) {
            char *name = dataset_item_name(dataset, (enum split)split, i);
            text_add(&answer, "%s %d %s", i > 0 ? "," : "", dataset_label(dataset, (enum split)split, i), name);
            free(name);
        }
        for (size_t i = 0; i < dataset_size(dataset, (enum split)split); i++)
            if (dataset_read(dataset, (enum split)split, i, &image, NULL, &error) == OK)
                image_free(&image);
            else
                text_add(&answer, "\ncannot read: %s", error.message);
    }
    text_add(&answer, "\nmissing: %zu\ntemplates:", dataset_missing(dataset));
    for (size_t i = 0; i < dataset_templates(dataset); i++)
        text_add(&answer, " \"%s\"", dataset_template(dataset, i));
    text_add(&answer, "\nleft out:");
    for (size_t i = 0; (file = dataset_left_out(dataset, i)) != NULL; i++)
        text_add(&answer, " %s", file);
}

static void note_end(void *context, size_t done, size_t total)
{
    assert_true(done <= total);
    *(bool *)context = done == total;
}

/* "train: 4 images, 2 to 2 a class, median 2.0", and a line for each finding. */
static void look_for_faults(const struct dataset *dataset)
{
    static const char *const kinds[CHECK_KINDS] = {"missing",  "unreadable", "duplicate", "two classes",
                                                   "repeated", "left out",   "empty"};
    struct check found;
    bool ended = false;
    assert_ok(
        check_dataset(&found, dataset, &(struct survey_settings){.progress = note_end, .context = &ended}, &error));
    assert_true(ended);
    for (int split = 0; split < SPLITS; split++)
        text_add(&answer, "%s: %zu images, %zu to %zu a class, median %.1f\n", split == SPLIT_TRAIN ? "train" : "test",
                 found.splits[split].images, found.splits[split].least, found.splits[split].most,
                 found.splits[split].median);
    for (size_t i = 0; i < found.count; i++)
        text_add(&answer, "%s %s %s%s%s\n", found.findings[i].split == SPLIT_TRAIN ? "train" : "test",
                 kinds[found.findings[i].kind], found.findings[i].subject, found.findings[i].detail != NULL ? ": " : "",
                 found.findings[i].detail != NULL ? found.findings[i].detail : "");
    text_add(&answer, "findings: %zu\n", found.count);
    check_free(&found);
}

/* --- the script --------------------------------------------------------------------------------------------------- */

/* Runs the lines that have been gathered. */
static void run_shell(void)
{
    if (shell.size == 0)
        return;
    FILE *bash = popen("bash", "w");
    assert_non_null(bash);
    fprintf(bash, "set -e; cd %s; ROOTS=" ROOTS " PICTURES=%s\n%s%s", scratch.path, pictures.path, head.data,
            shell.data);
    if (pclose(bash) != 0)
        fail_msg("roots.txt:%zu: the shell failed before this line", line_number);
    text_clear(&shell);
}

/* Fills answer; "NAME KEY=VALUE …", or the same behind "check". */
static status ask(char *words, struct error *error)
{
    struct dataset *dataset = NULL;
    const struct log log = {.write = add_warning, .context = &answer};
    bool checks = strncmp(words, "check ", 6) == 0;
    char *name = words + (checks ? 6 : 0), *options = strchr(name, ' ');
    if (options != NULL)
        *options++ = 0;
    text_clear(&answer);
    status result = strcmp(name, "images") == 0 ? dataset_of_images(&dataset, scratch_file(&scratch, options), error)
                                                : root_try(&dataset, name, scratch.path, options, &log, error);
    if (result != OK)
        assert_null(dataset);
    else if (checks)
        look_for_faults(dataset);
    else
        describe(dataset);
    dataset_close(dataset);
    return result;
}

static void expect_words(const char *found, const char *words)
{
    if (strstr(found, words) == NULL)
        fail_msg("roots.txt:%zu: expected \"%s\" in: %s", line_number, words, found);
}

static void expect_refusal(char *line)
{
    struct error error = {0};
    char *words = strstr(line, " => ");
    assert_non_null(words);
    *words = 0;
    if (ask(line, &error) == OK)
        fail_msg("roots.txt:%zu: expected a refusal, found: %s", line_number, answer.data);
    expect_words(error.message, words + strlen(" => "));
}

static void follow(char *line, bool *begun)
{
    struct error error = {0};
    line[strcspn(line, "\n")] = 0;
    if (*line == 0) {
        *begun = false;
    } else if (*line == '#') {
        if (!*begun)
            scratch_run(&scratch, "find . -mindepth 1 -delete");
        *begun = true;
    } else if (*line == '$' || *line == '@') {
        text_add(*line == '$' ? &shell : &head, "%s\n", line + 2);
    } else if (*line == '>') {
        expect_words(answer.data, line + 2);
    } else {
        run_shell();
        if (*line == '!')
            expect_refusal(line + 2);
        else if (ask(line, &error) != OK)
            fail_msg("roots.txt:%zu: %s", line_number, error.message);
    }
}

ROOT_TEST(roots_have_what_the_script_says)
{
    char line[1024], name[16];
    bool begun = false;
    FILE *script = fopen(ROOT_SCRIPT, "r");
    assert_non_null(script);
    scratch_create(&pictures);
    for (unsigned i = 0; i < PICTURES; i++) {
        snprintf(name, sizeof name, "%u.png", i);
        scratch_write_png(&pictures, name, 4, 4, 0x010203U * (i + 1));
    }
    scratch_write_png(&pictures, "wide.png", 8, 6, 0x203040);
    scratch_write_png(&pictures, "high.png", 6, 8, 0x203040);
    for (line_number = 1; fgets(line, sizeof line, script) != NULL; line_number++)
        follow(line, &begun);
    fclose(script);
    scratch_remove(&pictures);
    text_free(&answer);
    text_free(&head);
    text_free(&shell);
}

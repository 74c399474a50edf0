#include "tests/end_to_end/workshop.h"

#include <fcntl.h>
#include <fts.h>
#include <glob.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "adapters/files/adapter_file.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/rng.h"
#include "models/clip.h"
#include "models/tokenizer.h"
#include "tests/models/initialize.h"

#define ROOTS FIXTURES "/data/roots"

enum { ARGUMENTS_MOST = 64, SECONDS_MOST = 120, NOBODY = 65534 };

static const char suite_text[] = "# Three tasks of a few steps each\n"
                                 "model:\n  weights: clip.safetensors\n  vocabulary: vocabulary.txt\n"
                                 "data:\n  root: data\n  order: [mnist, eurosat, dtd]\n"
                                 "adapter:\n  experts: 4\n  bottleneck: 16\n  freeze_top_k: 1\n"
                                 "merge:\n  every: 2\n"
                                 "training:\n  iterations: 8\n  batch: 8\n  warmup: 2\n  learning_rate: 1e-2\n"
                                 "selector:\n  iterations: 20\n  code: 16\n"
                                 "run:\n  threads: 1\n  checkpoint_every: 3\n";

struct scratch workshop;

/* --- The tiny model --- */

/* What training on a few prompts of the data sets gives. */
static const char merges[] =
    "#version: 0.2\n"
    "a n\nt e\nan d</w>\ne d</w>\nh o\nho t\nhot o</w>\no f</w>\np hoto</w>\nb r\nl and</w>\nv e\na i\n"
    "a t\nai d\naid ed</w>\nbr aided</w>\ne n\nn u\no r</w>\nte r\n\" .</w>\na te\nat i\nate l\natel l\n"
    "atell i\natelli t\natellit e</w>\nati o\natio n</w>\nb e\nb u\nbe r</w>\nbu i\nbui l\nbuil d\n"
    "build i\nbuildi n\nbuildin g\nbuilding s</w>\nc en\nc r\ncen ter\ncenter ed</w>\ncr o\ncro p</w>\n"
    "e s\ne t\nes t</w>\net ation</w>\nf o\nfo r\nfor est</w>\ng etation</w>\nh e</w>\nm ber</w>\n"
    "nu mber</w>\nr e</w>\ns atellite</w>\ns h\nt he</w>\nt u\nte x\ntex tu\ntextu re</w>\n"
    "ve getation</w>\n";

static size_t write_vocabulary(void)
{
    struct tokenizer *tokenizer;
    scratch_write_text(&workshop, "vocabulary.txt", merges);
    assert_ok(tokenizer_open(&tokenizer, scratch_file(&workshop, "vocabulary.txt"), &error));
    size_t size = tokenizer_vocabulary(tokenizer);
    tokenizer_close(tokenizer);
    return size;
}

/* Every value is drawn, so that no expert is silent and every router differs. */
static void draw_adapters(struct adapters *adapters)
{
    for (size_t i = 0; i < adapters_tensor_count(adapters); i++) {
        struct group_tensor tensor;
        struct rng rng = rng_make(5, RNG_INIT, 1, (uint32_t)i);
        adapters_tensor_at(adapters, i, &tensor);
        float *values = xmalloc(tensor.size * sizeof *values);
        for (size_t k = 0; k < tensor.size; k++)
            values[k] = 0.5f * rng_normal(&rng, k);
        assert_ok(group_tensor_upload(&tensor, values, &error));
        free(values);
    }
}

static void make_model(void)
{
    struct clip_dimensions dimensions = {.embed = 32,
                                         .resolution = 32,
                                         .patch = 16,
                                         .image_width = 64,
                                         .image_hidden = 256,
                                         .image_heads = 1,
                                         .image_blocks = 2,
                                         .context = 48,
                                         .vocabulary = write_vocabulary(),
                                         .text_width = 64,
                                         .text_hidden = 256,
                                         .text_heads = 1,
                                         .text_blocks = 1};
    struct adapter_settings settings = {.experts = 4, .top_k = 2, .tasks = 3, .bottleneck = 16, .scale = 0.5f};
    struct backend *backend;
    struct arena arena;
    struct clip *clip;
    struct adapters *adapters;
    assert_ok(backend_open(&backend, &(struct backend_settings){.name = "cpu", .threads = 1}, &error));
    assert_ok(backend->ops->arena_create(backend, &arena, (size_t)1 << 30, "test", &error));
    assert_ok(clip_create(&clip, backend, &arena, &dimensions, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU, &error));
    assert_ok(clip_initialize(clip, 3, &error));
    assert_ok(clip_save(clip, scratch_file(&workshop, "clip.safetensors"), &error));
    assert_ok(adapters_create(&adapters, backend, &arena, &dimensions, &settings, PARAMETERS_FROZEN, &error));
    draw_adapters(adapters);
    assert_ok(adapters_save(adapters, NULL, scratch_file(&workshop, "adapters.safetensors"), &error));
    adapters_destroy(adapters);
    clip_destroy(clip);
    backend->ops->arena_destroy(backend, &arena);
    backend_close(backend);
}

/* --- The folder --- */

static void link_data(const char *target, const char *name)
{
    assert_int_equal(symlink(target, scratch_file(&workshop, name)), 0);
}

void workshop_open(void)
{
    scratch_create(&workshop);
    assert_int_equal(chmod(workshop.path, 0755), 0);
    assert_int_equal(mkdir(scratch_file(&workshop, "data"), 0755), 0);
    link_data(ROOTS "/mnist/MNIST", "data/MNIST");
    link_data(ROOTS "/eurosat/eurosat", "data/eurosat");
    link_data(ROOTS "/dtd/dtd", "data/dtd");
    scratch_write_text(&workshop, "tiny.yaml", suite_text);
    make_model();
}

void workshop_close(void)
{
    scratch_remove(&workshop);
}

int workshop_set_up(void **state)
{
    workshop_open();
    return 0;
}

int workshop_tear_down(void **state)
{
    workshop_close();
    return 0;
}

struct safetensors *workshop_tensors(const char *name)
{
    struct safetensors *file;
    assert_ok(safetensors_open(&file, scratch_file(&workshop, name), WEIGHTS_WHOLE, &error));
    return file;
}

void workshop_write(const char *name, const struct safetensor *tensors, size_t count,
                    const struct safetensors_metadata *metadata, size_t metadata_count)
{
    assert_ok(safetensors_write(scratch_file(&workshop, name), tensors, count, metadata, metadata_count, &error));
}

/* The number of files below the folder whose writing did not end. */
static int leftovers(void)
{
    char *const roots[] = {workshop.path, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    int found = 0;
    assert_non_null(walk);
    for (FTSENT *entry; (entry = fts_read(walk)) != NULL;)
        found += strstr(entry->fts_name, ".tmp-") != NULL;
    fts_close(walk);
    return found;
}

/* --- The program --- */

/* Another build of it where the environment names one. */
static const char *program_path(void)
{
    const char *other = getenv("MTIL_TEST_PROGRAM");
    return other != NULL && other[0] != '\0' ? other : PROGRAM;
}

static void split_arguments(char *text, char **argv)
{
    int count = 0;
    argv[count++] = (char *)program_path();
    for (char *word = strtok(text, " "); word != NULL && count < ARGUMENTS_MOST - 1; word = strtok(NULL, " "))
        argv[count++] = word;
    argv[count] = NULL;
}

/* In the child: its folder, its cache and its output. */
static void enter(const struct process *process)
{
    if (chdir(workshop.path) != 0 || setenv("XDG_CACHE_HOME", scratch_file(&workshop, "cache"), 1) != 0 ||
        dup2(fileno(process->out), STDOUT_FILENO) < 0 || dup2(fileno(process->errors), STDERR_FILENO) < 0)
        _exit(125);
}

/* In the child; the program is opened first, because nobody may not see the folder it is in. */
static void become(struct process *process, char **argv, bool nobody)
{
    int program = open(program_path(), O_RDONLY | O_CLOEXEC);
    if (program < 0)
        _exit(125);
    enter(process);
    alarm(SECONDS_MOST);
    if (nobody && geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        _exit(125);
    fexecve(program, argv, environ);
    _exit(125);
}

/* A process with files for its output; its number is 0 in the child. */
static struct process begin(void)
{
    struct process process = {.out = tmpfile(), .errors = tmpfile()};
    assert_true(process.out != NULL && process.errors != NULL);
    fflush(NULL);
    process.id = fork();
    assert_true(process.id >= 0);
    return process;
}

static void start(struct process *process, const char *arguments, bool nobody)
{
    char *argv[ARGUMENTS_MOST], *text = xstrdup(arguments);
    split_arguments(text, argv);
    *process = begin();
    if (process->id == 0)
        become(process, argv, nobody);
    free(text);
}

void program_start(struct process *process, const char *arguments)
{
    start(process, arguments, false);
}

static void read_back(FILE *file, struct text *text)
{
    char part[4096];
    text_add(text, "%s", "");
    rewind(file);
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;)
        text_add_bytes(text, part, got);
    fclose(file);
}

/* A look at how it is going, again and again; fails the test when the process has ended. */
static void look_again(const struct process *process, const char *awaited)
{
    siginfo_t ended = {0};
    assert_int_equal(waitid(P_PID, (id_t)process->id, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    if (ended.si_pid != 0)
        fail_msg("the program ended before it wrote %s", awaited);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

void program_wait_for_words(const struct process *process, const char *words)
{
    static char written[1 << 16];
    for (int i = 0; i < SECONDS_MOST * 200; i++) {
        ssize_t size = pread(fileno(process->errors), written, sizeof written - 1, 0);
        written[size > 0 ? size : 0] = 0;
        if (strstr(written, words) != NULL)
            return;
        look_again(process, words);
    }
    fail_msg("the program did not write \"%s\" in %d seconds", words, SECONDS_MOST);
}

void program_wait_for_file(const struct process *process, const char *pattern)
{
    for (int i = 0; i < SECONDS_MOST * 200; i++) {
        glob_t found = {0};
        bool there = glob(scratch_file(&workshop, pattern), 0, NULL, &found) == 0;
        globfree(&found);
        if (there)
            return;
        look_again(process, pattern);
    }
    fail_msg("the program did not write %s in %d seconds", pattern, SECONDS_MOST);
}

struct outcome program_wait(struct process *process)
{
    int ended;
    struct outcome outcome = {0};
    assert_int_equal(waitpid(process->id, &ended, 0), process->id);
    outcome.exit_status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    outcome.signal = WIFSIGNALED(ended) ? WTERMSIG(ended) : 0;
    read_back(process->out, &outcome.out);
    read_back(process->errors, &outcome.errors);
    assert_int_not_equal(outcome.exit_status, 125);
    return outcome;
}

struct outcome program_run(const char *arguments)
{
    struct process process;
    start(&process, arguments, false);
    return program_wait(&process);
}

struct outcome program_run_as_nobody(const char *arguments)
{
    struct process process;
    start(&process, arguments, true);
    return program_wait(&process);
}

struct outcome workshop_runs(const char *script)
{
    static const char words[] =
        "PATH=$PWD/bin:$PATH\n"
        "mtil() { \"$MTIL\" \"$@\"; }\n"
        "await() { until ls $1 >/dev/null 2>&1; do sleep 0.02; done; }\n"
        "shorten() { truncate -s $(($(wc -c <\"$1\") * $2 / 1000)) \"$1\"; }\n"
        "own() { cd data && cp -rL $1 copy && rm $1 && mv copy $1 && chmod -R u+w $1 && cd ..; }\n"
        "corrupt() { mkdir -p \"$(dirname $2)\" && cp " FIXTURES "/data/corrupted/$1 \"$2\"; }\n"
        "overwrite() { dd of=\"$1\" bs=1 seek=\"$2\" conv=notrunc status=none; }\n";
    char *whole = path_format("%s%s", words, script), *seconds = path_format("%d", SECONDS_MOST);
    assert_true(whole != NULL && seconds != NULL);
    setenv("MTIL", program_path(), 1);
    struct process process = begin();
    if (process.id == 0) {
        enter(&process);
        execlp("timeout", "timeout", seconds, "sh", "-c", whole, NULL);
        _exit(125);
    }
    free(seconds);
    free(whole);
    return program_wait(&process);
}

int workshop_shell(const char *script)
{
    struct outcome outcome = workshop_runs(script);
    outcome_free(&outcome);
    return outcome.exit_status;
}

void outcome_free(struct outcome *outcome)
{
    text_free(&outcome->out);
    text_free(&outcome->errors);
}

void program_succeeds(const char *arguments)
{
    struct outcome outcome = program_run(arguments);
    if (outcome.exit_status != 0)
        fail_msg("mtil %s: exit status %d, signal %d: %s", arguments, outcome.exit_status, outcome.signal,
                 outcome.errors.data);
    outcome_free(&outcome);
}

size_t words_count(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
        count++;
    return count;
}

void outcome_refuses(struct outcome outcome, const char *command, int exit_status, const char *words)
{
    const char *error = strstr(outcome.errors.data, "mtil: error: ");
    if (outcome.exit_status <= 0 || (exit_status > 0 && outcome.exit_status != exit_status) || error == NULL ||
        words_count(outcome.errors.data, "error:") != 1 || strchr(error, '\n') == NULL || strchr(error, '\n')[1] != 0)
        fail_msg("%s: expected one error, and in the last line, found exit status %d, signal %d: %s", command,
                 outcome.exit_status, outcome.signal, outcome.errors.data);
    assert_string_equal(outcome.out.data, "");
    assert_int_equal(leftovers(), 0);
    for (const char *next; words != NULL; words = next) {
        const char *end = strstr(words, " | ");
        next = end != NULL ? end + 3 : NULL;
        char *word = strndup(words, end != NULL ? (size_t)(end - words) : strlen(words));
        if (strstr(error, word) == NULL)
            fail_msg("%s: expected \"%s\" in: %s", command, word, error);
        free(word);
    }
    outcome_free(&outcome);
}

#include "results/metrics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"

EMBEDDED_FILES(metric_files);

#define EACH "-- each"

/* Words of templates, in pairs with what stands for them, as text_add_replaced takes them. */
enum { NAME = 1, PLACE = 3, TAGS = 7, SQL = 9, WORDS = 26 };

struct metric {
    const char *word[WORDS + 1];
};

/* What a head need not say. */
static const struct metric usual = {{"{name}",   "",         "{place}", "0",        "{best}", "",          "{tags}",
                                     "",         "{sql}",    "",        "{title}",  "",       "{formula}", "",
                                     "{source}", "",         "{low}",   "-100",     "{high}", "100",       "{skips}",
                                     "0",        "{images}", "0",       "{latest}", "NULL",   NULL}};

static struct metric *metrics; /* by place, to the end of the program */
static size_t metric_count;

/* "-- best: lowest"; quotes are doubled, as texts of SQL have them. */
static void read_key(struct metric *metric, const char *line, size_t size)
{
    static const char *const quoted[] = {"'", "''", NULL};
    size_t key = strcspn(line, ":"), word = 0;
    while (word < WORDS && (strlen(metric->word[word]) != key + 2 || strncmp(metric->word[word] + 1, line, key) != 0))
        word += 2;
    assert(word < WORDS);
    OWNED char *value = xstrndup(line + key + 2, size - key - 2);
    struct text text = {0};
    text_add_replaced(&text, value, quoted);
    metric->word[word + 1] = text.data;
}

static struct metric read_metric(const struct embedded_file *file)
{
    struct metric metric = usual;
    const char *at = (const char *)file->data;
    metric.word[NAME] = xstrndup(file->name, strcspn(file->name, "."));
    for (size_t size; strncmp(at, "-- ", 3) == 0; at += size + 1) {
        size = strcspn(at, "\n");
        read_key(&metric, at + 3, size - 3);
    }
    metric.word[SQL] = xstrndup(at, strlen(at) - 1); /* without the last line's end */
    return metric;
}

static int compare_places(const void *a, const void *b)
{
    const struct metric *x = a, *y = b;
    double one = strtod(x->word[PLACE], NULL), other = strtod(y->word[PLACE], NULL);
    return (one > other) - (one < other);
}

static void load(void)
{
    for (const struct embedded_file *file = metric_files; file->name != NULL; file++) {
        GROW(metrics, metric_count);
        metrics[metric_count++] = read_metric(file);
    }
    qsort(metrics, metric_count, sizeof *metrics, compare_places);
}

static void load_once(void)
{
    static once_flag loaded = ONCE_FLAG_INIT;
    call_once(&loaded, load);
}

static bool is_meant(const struct metric *metric, const char *tag, const char *asked)
{
    return *tag == 0                   ? true
           : strcmp(tag, "asked") == 0 ? asked != NULL && text_has_word(asked, metric->word[NAME])
           : strcmp(tag, "other") == 0 ? !text_has_word(metric->word[TAGS], "main")
                                       : text_has_word(metric->word[TAGS], tag);
}

/* "-- each TAG: TEXT" */
static void expand(struct text *sql, char *line, const char *asked)
{
    char *tag = line + strlen(EACH), *colon = strchr(tag, ':');
    *colon = 0;
    tag += strspn(tag, " ");
    for (size_t i = 0; i < metric_count; i++)
        if (is_meant(&metrics[i], tag, asked)) {
            text_add_replaced(sql, colon + 2, metrics[i].word);
            text_add(sql, "\n");
        }
}

void metrics_expand(struct text *sql, const char *script, const char *asked)
{
    load_once();
    for (size_t size; *script != 0; script += size) {
        size = strcspn(script, "\n");
        if (strncmp(script, EACH, strlen(EACH)) == 0 && memchr(script, ':', size) != NULL) {
            char *line = xstrndup(script, size);
            expand(sql, line, asked);
            free(line);
            size += script[size] != 0;
        } else {
            size += script[size] != 0;
            text_add_bytes(sql, script, size);
        }
    }
}

bool metric_exists(const char *name)
{
    load_once();
    for (size_t i = 0; i < metric_count; i++)
        if (strcmp(metrics[i].word[NAME], name) == 0)
            return true;
    return false;
}

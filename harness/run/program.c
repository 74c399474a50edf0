#include "harness/run/program.h"

#include <stdio.h> /* before jpeglib.h */

#include <gif_lib.h>
#include <jansson.h>
#include <jpeglib.h>
#include <oneapi/dnnl/dnnl.h>
#include <png.h>
#include <string.h>
#include <sys/utsname.h>
#include <utf8proc.h>
#include <webp/decode.h>
#include <yaml.h>
#include <zip.h>
#include <zlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/file.h"
#include "core/linear.h"
#include "datasets/fetch/fetch.h"
#include "harness/commit.h" /* made by the build */

const char *program_commit(void)
{
    return MTIL_COMMIT;
}

const char *program_compiler(void)
{
#if defined(__clang__)
    return "Clang " __clang_version__;
#else
    return "GCC " __VERSION__;
#endif
}

/* --- Libraries --- */

/* libjpeg-turbo spells its version without quotes. */
#define QUOTED(text) QUOTED_(text)
#define QUOTED_(text) #text

static void dnnl(char *text, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, size, "%d.%d.%d", version->major, version->minor, version->patch);
}

static void openblas(char *text, size_t size)
{
    static const char before[] = "OpenBLAS ";
    const char *version = linear_library(),
               *number = strncmp(version, before, sizeof before - 1) == 0 ? version + sizeof before - 1 : version;
    snprintf(text, size, "%.*s", (int)strcspn(number, " "), number);
}

static void sqlite(char *text, size_t size)
{
    snprintf(text, size, "%s", MTIL_SQLITE_VERSION);
}

static void jpeg(char *text, size_t size)
{
    snprintf(text, size, "%s", QUOTED(LIBJPEG_TURBO_VERSION));
}

static void png(char *text, size_t size)
{
    snprintf(text, size, "%s", png_get_libpng_ver(NULL));
}

static void gif(char *text, size_t size)
{
    snprintf(text, size, "%d.%d.%d", GIFLIB_MAJOR, GIFLIB_MINOR, GIFLIB_RELEASE);
}

static void webp(char *text, size_t size)
{
    int version = WebPGetDecoderVersion();
    snprintf(text, size, "%d.%d.%d", version >> 16, version >> 8 & 0xff, version & 0xff);
}

static void curl(char *text, size_t size)
{
    snprintf(text, size, "%s", fetch_curl_version());
}

static void archive(char *text, size_t size)
{
    snprintf(text, size, "%s", fetch_archive_version());
}

static void zlib(char *text, size_t size)
{
    snprintf(text, size, "%s", zlibVersion());
}

static void libzip(char *text, size_t size)
{
    snprintf(text, size, "%s", zip_libzip_version());
}

static void jansson(char *text, size_t size)
{
    snprintf(text, size, "%s", JANSSON_VERSION);
}

static void yaml(char *text, size_t size)
{
    snprintf(text, size, "%s", yaml_get_version_string());
}

static void pcre(char *text, size_t size)
{
    char version[128];
    pcre2_config(PCRE2_CONFIG_VERSION, version);
    snprintf(text, size, "%s", version);
}

static void utf8(char *text, size_t size)
{
    snprintf(text, size, "%s", utf8proc_version());
}

static const struct {
    const char *name;
    void (*version)(char *text, size_t size);
} libraries[] = {{"oneDNN", dnnl},   {"OpenBLAS", openblas}, {"SQLite", sqlite},      {"libjpeg-turbo", jpeg},
                 {"libpng", png},    {"giflib", gif},        {"libwebp", webp},       {"zlib", zlib},
                 {"libzip", libzip}, {"libcurl", curl},      {"libarchive", archive}, {"jansson", jansson},
                 {"libyaml", yaml},  {"PCRE2", pcre},        {"utf8proc", utf8}};

bool program_library(size_t index, struct library *library)
{
    if (index >= sizeof libraries / sizeof *libraries)
        return false;
    library->name = libraries[index].name;
    libraries[index].version(library->version, sizeof library->version);
    return true;
}

void program_add_libraries(struct text *text)
{
    struct library library;
    for (size_t i = 0; program_library(i, &library); i++)
        text_add(text, "%s%s %s", i > 0 ? ", " : "", library.name, library.version);
}

/* --- This process --- */

static void add_word(struct text *text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
    if (*word != 0 && word[strspn(word, plain)] == 0) {
        text_add(text, "%s", word);
        return;
    }
    text_add(text, "'");
    for (; *word != 0; word++)
        text_add(text, *word == '\'' ? "'\\''" : "%c", *word);
    text_add(text, "'");
}

void program_add_command_line(struct text *text)
{
    FILE *file = fopen("/proc/self/cmdline", "re");
    char *word = NULL;
    size_t capacity = 0;
    text_add(text, "%s", "");
    for (bool first = true; file != NULL && getdelim(&word, &capacity, 0, file) >= 0; first = false) {
        text_add(text, "%s", first ? "" : " ");
        add_word(text, word);
    }
    free(word);
    if (file != NULL)
        fclose(file);
}

void program_add_cpu(struct text *text)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[1024];
    struct utsname machine;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "model name", strlen("model name")) == 0 && strchr(line, ':') != NULL) {
            const char *name = strchr(line, ':') + 1;
            text_add(text, "%s", name + strspn(name, " \t"));
            text->data[text->data != NULL ? strcspn(text->data, "\n") : 0] = 0;
            break;
        }
    if (file != NULL)
        fclose(file);
    if (text->size == 0)
        text_add(text, "%s", uname(&machine) == 0 ? machine.machine : "unknown");
}

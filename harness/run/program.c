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

#include "core/linear.h"
#include "core/scope.h"
#include "core/text.h"
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

/* OpenBLAS names itself before its version. */
static struct library openblas(void)
{
    static const char before[] = "OpenBLAS ";
    const char *version = linear_library();
    version += strncmp(version, before, sizeof before - 1) == 0 ? sizeof before - 1 : 0;
    struct library library = {.name = "OpenBLAS"};
    snprintf(library.version, sizeof library.version, "%.*s", (int)strcspn(version, " "), version);
    return library;
}

static struct library numbered(const char *name, int major, int minor, int patch)
{
    struct library library = {.name = name};
    snprintf(library.version, sizeof library.version, "%d.%d.%d", major, minor, patch);
    return library;
}

static struct library named(const char *name, const char *version)
{
    struct library library = {.name = name};
    snprintf(library.version, sizeof library.version, "%s", version);
    return library;
}

bool program_library(size_t index, struct library *library)
{
    const dnnl_version_t *dnnl = dnnl_version();
    int webp = WebPGetDecoderVersion();
    char pcre[128];
    pcre2_config(PCRE2_CONFIG_VERSION, pcre);
    const struct library libraries[] = {
        numbered("oneDNN", dnnl->major, dnnl->minor, dnnl->patch),
        openblas(),
        named("SQLite", MTIL_SQLITE_VERSION),
        named("libjpeg-turbo", QUOTED(LIBJPEG_TURBO_VERSION)),
        named("libpng", png_get_libpng_ver(NULL)),
        numbered("giflib", GIFLIB_MAJOR, GIFLIB_MINOR, GIFLIB_RELEASE),
        numbered("libwebp", webp >> 16, webp >> 8 & 0xff, webp & 0xff),
        named("zlib", zlibVersion()),
        named("libzip", zip_libzip_version()),
        named("libcurl", fetch_curl_version()),
        named("libarchive", fetch_archive_version()),
        named("jansson", JANSSON_VERSION),
        named("libyaml", yaml_get_version_string()),
        named("PCRE2", pcre),
        named("utf8proc", utf8proc_version()),
    };
    if (index < sizeof libraries / sizeof *libraries)
        *library = libraries[index];
    return index < sizeof libraries / sizeof *libraries;
}

void program_add_libraries(struct text *text)
{
    struct library library;
    for (size_t i = 0; program_library(i, &library); i++)
        text_add(text, "%s%s %s", i > 0 ? ", " : "", library.name, library.version);
}

/* --- This process --- */

void program_add_command_line(struct text *text)
{
    FILE *file = fopen("/proc/self/cmdline", "re");
    OWNED char *word = NULL;
    size_t capacity = 0;
    text_add(text, "%s", "");
    for (bool first = true; file != NULL && getdelim(&word, &capacity, 0, file) >= 0; first = false) {
        text_add(text, "%s", first ? "" : " ");
        text_add_word(text, word);
    }
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
            name += strspn(name, " \t");
            text_add(text, "%.*s", (int)strcspn(name, "\n"), name);
            break;
        }
    if (file != NULL)
        fclose(file);
    if (text->size == 0)
        text_add(text, "%s", uname(&machine) == 0 ? machine.machine : "unknown");
}

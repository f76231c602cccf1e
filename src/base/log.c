/* One line per event to stderr.
 *
 * Only edges (daemons, commands) call this. A line is built on the stack and leaves by one
 * write(2), so lines of several threads and processes never mix; it is cut at LINE_MAX_BYTES. Test:
 * log_test.c. */
#include "config.h"

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/printable.h"

#define LINE_MAX_BYTES 2048

static const char *const level_names[] = { "error", "warn", "info", "debug" };
static char program_name[32] = "crun";
static atomic_int current_level = CW_LOG_INFO;

void cw_log_init(const char *program, enum cw_log_level level)
{
    snprintf(program_name, sizeof(program_name), "%s", program);
    cw_log_set_level(level);
}

void cw_log_set_level(enum cw_log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

int cw_log_parse_level(const char *name, enum cw_log_level *ret_level)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(level_names); i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *ret_level = (enum cw_log_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

bool cw_log_enabled(enum cw_log_level level)
{
    return (int)level <= atomic_load_explicit(&current_level, memory_order_relaxed);
}

/* "2026-11-30T20:47:52.123Z crunctld info  " */
static size_t add_prefix(char *line, size_t cap, enum cw_log_level level)
{
    int64_t now = cw_clock_real_ns();
    char second[40];

    cw_clock_format(now, second, sizeof(second));
    second[strcspn(second, "Z")] = '\0';
    int n = snprintf(line, cap, "%s.%03dZ %s %-5s ", second,
                     (int)(now % CW_NS_PER_S / CW_NS_PER_MS), program_name, level_names[level]);
    return n > 0 ? (size_t)n : 0;
}

void cw_log(enum cw_log_level level, const char *fmt, ...)
{
    char line[LINE_MAX_BYTES + 1];
    int saved = errno;
    va_list ap;

    if (!cw_log_enabled(level))
        return;
    size_t n = add_prefix(line, sizeof(line), level);
    va_start(ap, fmt);
    int m = vsnprintf(line + n, LINE_MAX_BYTES - n, fmt, ap);
    va_end(ap);
    if (m < 0)
        line[n] = '\0';
    cw_printable_clean(line);
    if (m >= (int)(LINE_MAX_BYTES - n))
        cw_printable_ellipsis(line);
    n = strlen(line);
    line[n++] = '\n';
    /* Nobody is left to tell when the log itself cannot be written. */
    while (write(STDERR_FILENO, line, n) < 0 && errno == EINTR)
        continue;
    errno = saved;
}

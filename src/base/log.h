#pragma once
/* One line per event to stderr (or a file the daemon dup2'ed there); only edges log, libraries never.
 * Format: `2026-11-30T20:47:52.123Z crunctld info  job 12: text`. Control characters become '?'.
 * Thread-safe (one write(2) per line). Test: log_test.c. */
#include <stdbool.h>

enum cw_log_level { CW_LOG_ERROR = 0, CW_LOG_WARN, CW_LOG_INFO, CW_LOG_DEBUG };

void cw_log_init(const char *program, enum cw_log_level level);
void cw_log_set_level(enum cw_log_level level);
int cw_log_parse_level(const char *name, enum cw_log_level *ret_level); /* -EINVAL */
bool cw_log_enabled(enum cw_log_level level);
void cw_log(enum cw_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define cw_log_error(...) cw_log(CW_LOG_ERROR, __VA_ARGS__)
#define cw_log_warn(...) cw_log(CW_LOG_WARN, __VA_ARGS__)
#define cw_log_info(...) cw_log(CW_LOG_INFO, __VA_ARGS__)
#define cw_log_debug(...) \
    do { if (cw_log_enabled(CW_LOG_DEBUG)) cw_log(CW_LOG_DEBUG, __VA_ARGS__); } while (0)

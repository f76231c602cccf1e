/* Tests of options.c and optvalue.c: the table itself, each option's value, and
 * doc/slurm-compat.md. `options_test --table` prints the rows of that page. */
#include "spec/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "spec/optiontable.h"

/* One option given on the command line; text: the refusal, or NULL and the spec as packed text. */
struct row {
    const char *name, *value, *refusal;
};

static const struct row accepted[] = {
    {"n", "4", NULL},
    {"ntasks", "65536", NULL},
    {"c", "2", NULL},
    {"mem", "4G", NULL},
    {"mem", "1500", NULL},
    {"mem-per-cpu", "1.5G", NULL},
    {"t", "30", NULL},
    {"time", "1-12:00:00", NULL},
    {"time", "90s", NULL},
    {"time", "unlimited", NULL},
    {"time", "0:30", NULL},
    {"J", "a b", NULL},
    {"o", "out/%A_%4a.log", NULL},
    {"o", "none", NULL},
    {"e", "\\%q", NULL},
    {"a", "0-9,20-30:2%4", NULL},
    {"d", "afterok:1:2,afterany:3_*", NULL},
    {"p", "main", NULL},
    {"queue", "main", NULL},
    {"A", "acct.1", NULL},
    {"H", NULL, NULL},
    {"G", "2", NULL},
    {"G", "a100:2", NULL},
    {"gpus", "a100", NULL},
    {"gres", "gpu:a100:2", NULL},
    {"gres", "gpu:1", NULL},
    {"gres", "gpu", NULL},
    {"gres", "none", NULL},
    {"isolation", "cgroup", NULL},
    {"volume", "/data:/mnt:ro", NULL},
    {"vol", "scratch:/mnt", NULL},
    {"requeue", NULL, NULL},
    {"no-requeue", NULL, NULL},
    {"comment", "x y", NULL},
    {"label", "team/x=1", NULL},
    {"kill-grace", "0", NULL},
    {"b", "now+1hour", NULL},
    {"deadline", "now+2days", NULL},
    {"retries", "3", NULL},
    {"retry-on", "exit:75,oom", NULL},
    {"retry-delay", "10s", NULL},
    {"d", "after:12+5,singleton", NULL},
    {"d", "afterok:1?afternotok:2", NULL},
    {"keep-on-invalid-dep", NULL, NULL},
    {"N", "1", NULL},
    {"N", "2-4", NULL},
    {"w", "n[1-3],m5", NULL},
    {"x", "n1", NULL},
    {"C", "a100&!debug|(x&y)", NULL},
    {"prefer", "fast", NULL},
    {"exclusive", NULL, NULL},
    {"gpus-per-task", "a100:1", NULL},
    {"mem-per-gpu", "8G", NULL},
    {"nice", "-5", NULL},
    {"priority", "1000", NULL},
    {"time-est", "10m", NULL},
    {"signal", "B:USR1@60", NULL},
    {"nodes", "1-1", NULL},
    {"env", "K=V=W", NULL},
    {"export", "ALL,K='a,b'", NULL},
    {"open-mode", "truncate", NULL},
    {"kill-on-invalid-dep", "yes", NULL},
    {"ntasks-per-node", "2", NULL},
    {"mail-type", "ALL", NULL},
    {"nice", NULL, NULL},
    {"nice", "10", NULL},
    {"shell", "/bin/sh", NULL},
    {"directive-prefix", "#PBS", NULL},
};

static const struct row refused[] = {
    {"n", "0", "option --ntasks: '0' is not a whole number from 1 to 65536"},
    {"n", "4x", "option --ntasks: '4x' is not a whole number from 1 to 65536"},
    {"n", "-1", "option --ntasks: '-1' is not a whole number from 1 to 65536"},
    {"n", "99999999999999999999999",
     "option --ntasks: '99999999999999999999999' is not a whole number from 1 to 65536"},
    {"G", NULL, "option --gpus: needs a value: [TYPE:]N"},
    {"n", NULL, "option --ntasks: needs a value: N"},
    {"H", "x", "option --hold: takes no value, 'x' was given"},
    {"mem", "0",
     "option --mem: '0' would mean all memory of a node: use --exclusive for that, or say how "
     "much, as in 4G"},
    {"J", "", "option --job-name: must not be empty"},
    {"J", "a\nb", "option --job-name: 'a?b' has a control character"},
    {"p", "a,b", "option --partition: 'a,b' is a list, one name is allowed"},
    {"p", "a b", "option --partition: 'a b' is not a name (1 to 64 letters, digits or ._@+-)"},
    {"o", "%q.out",
     "option --output: '%q.out': %q is not known (%j %A %a %b %J %r %n %t with a width up to 10, "
     "%s %u %x %N %%)"},
    {"o", "-", "option --output: '-' is no file: none discards the output"},
    {"a", "1%0",
     "option --array: elements at once: '0' is not a whole number from 1 to 2147483647"},
    {"d", "afterok:12+5", "option --dependency: '12+5': only after knows a delay"},
    {"d", "afterok:1?afterok:2,afterok:3",
     "option --dependency: 'afterok:1?afterok:2,afterok:3': either commas (all of them) or ? (one is "
     "enough)"},
    {"retry-on", "exit:300", "option --retry-on: '300' is not a whole number from 0 to 255"},
    {"deadline", "2001-01-01", "option --deadline: '2001-01-01' has passed"},
    {"begin", "soon",
     "option --begin: 'soon' is no time: now+2hours, 16:00, tomorrow, noon, 12/31/26, 2026-12-31 or "
     "2026-12-31T16:00 are some"},
    {"d", "afterok:77_", "option --dependency: job '77_': an array index is missing behind _"},
    {"G", "a100:x", "option --gpus: 'x' is not a whole number from 0 to 1024"},
    {"gres", "license:2", "option --gres: 'license:2': only gpu:N or gpu:TYPE:N is known"},
    {"gres", "gpu:1,lustre:1",
     "option --gres: 'gpu:1,lustre:1': only gpu:N or gpu:TYPE:N is known"},
    {"N", "0", "option --nodes: '0' is not a whole number from 1 to 16384"},
    {"N", "4-2", "option --nodes: '4-2': the most is less than the least"},
    {"C", "a&", "option --constraint: 'a&': at byte 3: a label, ! or ( is expected"},
    {"time-est", "0", "option --time-est: '0' is no estimate: a time is expected"},
    {"nice", "x", "option --nice: 'x' is not a whole number from 0 to 2147483647"},
    {"volume", "/data", "option --volume: '/data' is not SRC:DST or SRC:DST:ro"},
    {"volume", "/data:/x:rx", "option --volume: '/data:/x:rx' ends neither in :ro nor in :rw"},
    {"volume", "/data:x", "option --volume: 'x' is not an absolute path below /"},
    {"volume", "/data:/a/../b", "option --volume: '/a/../b' has a . or .. in it"},
    {"env", "K", "option --env: 'K' has no '=', NAME=VALUE is expected"},
    {"env", "1K=v",
     "option --env: '1K' is not a variable's name (letters, digits and _, no digit first)"},
    {"label", "a b=1",
     "option --label: 'a b' is not a label's key (1 to 63 letters, digits or ._/-)"},
    {"export", "", "option --export: is empty: ALL, NONE or a list is expected"},
    {"open-mode", "attempt", "option --open-mode: 'attempt' is neither append nor truncate"},
    {"kill-on-invalid-dep", "never",
     "option --kill-on-invalid-dep: 'never' is neither yes nor no"},
    {"exclusive", "user",
     "option --exclusive: 'user': only whole nodes for one job, --exclusive without a value"},
    {"signal", "USR9@60", "option --signal: 'USR9' is no signal: USR1, SIGTERM or 10 are some"},
    {"tim", "1", "unknown option --tim (--time?)"},
    {"frobnicate", "1", "unknown option --frobnicate"},
    {"cpu-per-task", "1", "unknown option --cpu-per-task (--cpus-per-task?)"},
    {"y", NULL, "unknown option -y"},
    {"shell", "sh", "option --shell: 'sh' is not an absolute path"},
    {"directive-prefix", "PBS",
     "option --directive-prefix: 'PBS' does not begin with # or holds a blank"},
};

static void test_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(accepted); i++) {
        struct cw_arena *a = cw_arena_create();
        struct cw_request r;
        struct cw_error err = {0};
        cw_request_init(&r, a);
        int rc =
            cw_request_set(&r, accepted[i].name, accepted[i].value, CW_ORIGIN_COMMAND, NULL, &err);
        if (rc != 0)
            fail_msg("--%s %s: %s", accepted[i].name, accepted[i].value, err.text);
        cw_request_fini(&r);
        cw_arena_destroy(a);
    }
}

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(refused); i++) {
        struct cw_arena *a = cw_arena_create();
        struct cw_request r;
        struct cw_error err = {0};
        cw_request_init(&r, a);
        int rc =
            cw_request_set(&r, refused[i].name, refused[i].value, CW_ORIGIN_COMMAND, NULL, &err);
        assert_string_equal(err.text, refused[i].refusal);
        assert_true(rc < 0 && rc == err.code);
        cw_request_fini(&r);
        cw_arena_destroy(a);
    }
}

static void test_table(void **state)
{
    const struct cw_option *o;
    (void)state;
    for (size_t i = 0; (o = cw_option_at(i)) != NULL; i++) {
        assert_ptr_equal(cw_option_find(o->name), o); /* no name twice */
        char letter[2] = {o->letter, '\0'};
        if (o->letter != 0)
            assert_ptr_equal(cw_option_find(letter), o);
        assert_true((o->apply == NULL) == (o->status >= CW_OPTION_WARNED));
        assert_true(strlen(o->name) > 1);
        assert_non_null(o->help);
    }
}

static void test_help(void **state)
{
    cw_autobuf struct cw_buf b = {0};
    (void)state;
    cw_options_help(&b);
    assert_non_null(
        strstr(b.data, "  -n, --ntasks=N                  number of tasks (default: one a node)\n"));
    assert_null(strstr(b.data, "--mail-type"));
}

static void test_ignored_once(void **state)
{
    struct cw_request r;
    struct cw_arena *a = cw_arena_create();
    (void)state;
    cw_request_init(&r, a);
    for (int i = 0; i < 2; i++)
        assert_int_equal(cw_request_set(&r, "mail-user", "me", CW_ORIGIN_COMMAND, NULL, NULL), 0);
    assert_int_equal(r.warnings.n, 1);
    assert_string_equal(r.warnings.v[0],
                        "option --mail-user is ignored: no mail is sent; use crun-wait");
    cw_request_fini(&r);
    cw_arena_destroy(a);
}

/* ---- doc/slurm-compat.md ---- */
static void doc_row(const char *name, char letter, const char *argument, const char *help,
                    const char *status, void *arg)
{
    struct cw_buf *out = arg;
    cw_autobuf struct cw_buf cell = {0};
    if (argument != NULL)
        cw_buf_addf(&cell, "%s%s", strncmp(argument, "[=", 2) == 0 ? "" : "=", argument);
    cw_buf_add_str(out, "| ");
    if (letter != 0)
        cw_buf_addf(out, "`-%c` ", letter);
    cw_buf_addf(out, "`--%s", name);
    for (const char *p = cw_buf_str(&cell); *p != '\0'; p++)
        cw_buf_add(out, *p == '|' ? "/" : p, 1); /* a cell of the table cannot hold it */
    cw_buf_addf(out, "` | %s | %s |\n", status, help);
}

static void test_doc(void **state)
{
    cw_autobuf struct cw_buf want = {0};
    cw_autobuf struct cw_buf page = {0};
    struct cw_error err;
    (void)state;
    if (cw_file_read(CW_SRCDIR "/doc/slurm-compat.md", 1 << 20, &page, &err) < 0)
        fail_msg("%s", err.text);
    cw_options_each(doc_row, &want);
    const char *table = strstr(page.data, "|---|---|---|\n");
    assert_non_null(table);
    assert_string_equal(table + strlen("|---|---|---|\n"), want.data);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        {"good values are accepted", test_accepted, NULL, NULL, NULL},
        {"bad values are refused with their sentence", test_refused, NULL, NULL, NULL},
        {"each name and letter is in the table once, with a way to carry it out or a reason",
         test_table, NULL, NULL, NULL},
        {"--help shows what is carried out and nothing else", test_help, NULL, NULL, NULL},
        {"an ignored option warns once", test_ignored_once, NULL, NULL, NULL},
        {"doc/slurm-compat.md ends with exactly the rows of the table", test_doc, NULL, NULL, NULL},
    };
    if (argc == 2 && strcmp(argv[1], "--table") == 0) {
        cw_autobuf struct cw_buf b = {0};
        cw_options_each(doc_row, &b);
        fputs(cw_buf_str(&b), stdout);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

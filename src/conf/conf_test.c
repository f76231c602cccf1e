/* Tests of conf.c and the units behind it: what is filled in, which files, what is
 * shown. */
#include "config.h"

#include "conf/conf.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "conf/conf_schema.h"

static int enter_directory(void **state)
{
    const char *base = getenv("TMPDIR");
    char *dir = cw_xasprintf("%s/cw-conf-XXXXXX", base != NULL ? base : P_tmpdir);

    *state = dir;
    umask(022);
    return mkdtemp(dir) != NULL && chdir(dir) == 0 ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int leave_directory(void **state)
{
    cw_autofree char *dir = *state;
    int rc = chdir("/");

    return rc == 0 ? nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS) : rc;
}

static void write_file(const char *name, const char *text)
{
    assert_int_equal(cw_file_write_atomic(name, text, strlen(text), 0644, NULL), 0);
}

static void an_empty_file_has_every_default(void **state)
{
    static const char *const texts[] = { "", "\n", "# nothing\n", "/* a */ // b" };
    cw_autofree char *cwd = getcwd(NULL, 0);

    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(texts); i++) {
        struct cw_conf *c = NULL;
        struct cw_error err = { 0 };
        if (cw_conf_load_text("c", texts[i], &c, &err) < 0)
            fail_msg("%s", err.text);
        cw_autofree char *listen = cw_xasprintf("ipc://%s/run/ctl.sock", cwd);
        assert_string_equal(c->cluster, "crun");
        assert_string_equal(c->dir, cwd);
        assert_string_equal(c->client_listen, listen);
        assert_string_equal(c->client_connect, listen);
        assert_non_null(strstr(c->session_listen, "/node/%n/log.sock"));
        assert_int_equal(c->kill_grace_s, 30);
        assert_int_equal(c->heartbeat_ms, 5000);
        assert_int_equal(c->node_lost_s, 60);
        assert_int_equal(c->retention_s, 30 * 86400);
        assert_int_equal(c->disk_reserve_bytes, 64 << 20);
        assert_int_equal(c->max_array, 1000000);
        assert_string_equal(c->store_sync, "full");
        assert_int_equal(c->n_partitions, 1);
        assert_string_equal(c->partitions[0].name, "main");
        assert_string_equal(c->partitions[0].nodes, "ALL");
        assert_true(c->partitions[0].is_default);
        assert_true(c->partitions[0].max_time_s == CW_DURATION_UNLIMITED);
        assert_int_equal(c->partitions[0].default_time_s, 3600);
        assert_int_equal(c->n_plugins, 0);
        cw_conf_destroy(c);
    }
}

static const char full_text[] = "cluster = test   /* a\n"
                                "comment */ dir = \"/srv/x\" # more\n"
                                "kill_grace = 010\n"
                                "heartbeat = 500ms run_dir = r\n"
                                "client_listen = \"ipc://short.sock\"\n"
                                "partition small { nodes = \"n[01-04]\" max_time = 30 }\n"
                                "partition \"big\" { default = yes default_mem = 1.5G }\n"
                                "plugin \"gpu/fake\" { required = true exec = \"bin/probe\" "
                                "options { count = 4\n  api-token = \"a \\\"b\\\" \\\\\" } }\n"
                                "plugin_path = \"/a:b\"\n";

static void values_are_read_and_paths_made_absolute(void **state)
{
    struct cw_conf *c = NULL;

    (void)state;
    assert_int_equal(cw_conf_load_text("c", full_text, &c, NULL), 0);
    assert_string_equal(c->run_dir, "/srv/x/r");
    assert_string_equal(c->door, "/srv/x/r/door.sock");
    assert_string_equal(c->client_connect, "ipc:///srv/x/short.sock");
    assert_string_equal(c->plugin_path, "/a:/srv/x/b");
    assert_int_equal(c->kill_grace_s, 10);
    assert_int_equal(c->heartbeat_ms, 500);
    const struct cw_conf_partition *p = cw_conf_partition_find(c, "small");
    assert_int_equal(p->max_time_s, 1800);
    assert_int_equal(p->default_time_s, 1800);
    assert_false(p->is_default);
    assert_int_equal(p->line, 6);
    assert_string_equal(cw_conf_partition_find(c, NULL)->name, "big");
    assert_true(cw_conf_partition_find(c, "big")->default_mem_bytes == UINT64_C(1536) << 20);
    assert_null(cw_conf_partition_find(c, "none"));
    const struct cw_conf_plugin *g = cw_conf_plugin_find(c, "gpu", "fake");
    assert_true(g->required);
    assert_string_equal(g->exec, "/srv/x/bin/probe");
    assert_int_equal(g->n_options, 2);
    assert_string_equal(g->options[0].key, "count");
    assert_string_equal(g->options[0].value, "4");
    assert_string_equal(g->options[1].value, "a \"b\" \\");
    assert_int_equal(g->options[1].line, 9);
    assert_null(cw_conf_plugin_find(c, "gpu", "nvml"));
    cw_conf_destroy(c);
}

static void the_dump_gives_every_value_with_its_origin(void **state)
{
    struct cw_conf *c = NULL;
    cw_autobuf struct cw_buf b = { 0 };

    (void)state;
    assert_int_equal(cw_conf_load_text("c", full_text, &c, NULL), 0);
    cw_conf_dump(c, &b);
    assert_non_null(strstr(b.data, "cluster = \"test\" (c:1)\n"));
    assert_non_null(strstr(b.data, "\nkill_grace = 10 (c:3)\n"));
    assert_non_null(strstr(b.data, "\nheartbeat = 500ms (c:4)\n"));
    assert_non_null(strstr(b.data, "\nnode_lost = 60 (default)\n"));
    assert_non_null(strstr(b.data, "\npartition.small.max_time = 00:30:00 (c:6)\n"));
    assert_non_null(strstr(b.data, "\npartition.big.max_time = unlimited (default)\n"));
    assert_non_null(strstr(b.data, "\nplugin.gpu/fake.required = true (c:8)\n"));
    assert_non_null(strstr(b.data, "\nplugin.gpu/fake.options.count = \"4\" (c:8)\n"));
    assert_non_null(strstr(b.data, "\nplugin.gpu/fake.options.api-token = (hidden) (c:9)\n"));
    for (size_t i = 0; i < cw_conf_schema_root.n_rows; i++) {
        cw_autofree char *line = cw_xasprintf("%s%s = ", i > 0 ? "\n" : "",
                                              cw_conf_schema_root.rows[i].name);
        assert_non_null(strstr(b.data, line));
    }
    cw_conf_destroy(c);
}

static void what_is_dumped_loads_to_the_same_values(void **state)
{
    struct cw_conf *c = NULL, *again = NULL;
    cw_autobuf struct cw_buf b = { 0 }, text = { 0 }, twice = { 0 };
    struct cw_error err = { 0 };
    char *save = NULL;

    (void)state;
    assert_int_equal(cw_conf_load_text("c", full_text, &c, NULL), 0);
    cw_conf_dump(c, &b);
    for (char *line = strtok_r(b.data, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        *strrchr(line, '(') = '\0';
        if (strncmp(line, "partition.", 10) != 0 && strncmp(line, "plugin.", 7) != 0)
            cw_buf_addf(&text, "%s\n", line);
    }
    if (cw_conf_load_text("d", text.data, &again, &err) < 0)
        fail_msg("%s", err.text);
    cw_conf_dump(again, &twice);
    for (char *line = strtok_r(text.data, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save))
        assert_non_null(strstr(twice.data, line));
    cw_conf_destroy(c);
    cw_conf_destroy(again);
}

static void a_long_directory_is_refused_for_its_sockets(void **state)
{
    struct cw_conf *c = NULL;
    struct cw_error err = { 0 };
    char text[300];

    (void)state;
    snprintf(text, sizeof(text), "run_dir = \"/%0120d\"\n", 0);
    assert_int_equal(cw_conf_load_text("c", text, &c, &err), -ENAMETOOLONG);
    assert_non_null(
        strstr(err.text, "a socket's path has at most 107 characters; choose a shorter run_dir"));
    assert_memory_equal(err.text, "c:1: client_listen: ", 20);
}

static void included_files_count_as_if_written_in_place(void **state)
{
    struct cw_conf *c = NULL;
    struct cw_error err = { 0 };
    cw_autobuf struct cw_buf b = { 0 };

    (void)state;
    mkdir("sub", 0755);
    write_file("main.conf", "cluster = a\ninclude(\"sub/one.conf\")\nnode_lost = 7\n");
    write_file("sub/one.conf", "\nkill_grace = 4\ninclude(\"two.conf\")\n");
    write_file("sub/two.conf", "partition \"p\" { }\n");
    if (cw_conf_load("main.conf", &c, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(c->kill_grace_s, 4);
    assert_int_equal(c->node_lost_s, 7);
    assert_string_equal(c->partitions[0].name, "p");
    cw_conf_dump(c, &b);
    assert_non_null(strstr(b.data, "\nkill_grace = 4 (./sub/one.conf:2)\n"));
    cw_conf_destroy(c);
}

static void mistakes_in_included_files_have_their_own_place(void **state)
{
    struct cw_conf *c = NULL;
    struct cw_error err = { 0 };

    (void)state;
    mkdir("sub", 0755);
    write_file("main.conf", "kill_grace = 3\ninclude(\"sub/one.conf\")\n");
    write_file("sub/one.conf", "\nkill_grace = 4\n");
    assert_int_equal(cw_conf_load("main.conf", &c, &err), -EINVAL);
    assert_string_equal(err.text, "./sub/one.conf:2: kill_grace was given before (main.conf:1)");
    write_file("sub/one.conf", "\nnode_lost = x\n");
    assert_int_equal(cw_conf_load("main.conf", &c, &err), -EINVAL);
    assert_memory_equal(err.text, "./sub/one.conf:2: node_lost: ", 28);
    write_file("sub/one.conf", "partition a {\n");
    assert_int_equal(cw_conf_load("main.conf", &c, &err), -EINVAL);
    assert_memory_equal(err.text, "./sub/one.conf:1: the closing brace", 35);
    write_file("sub/one.conf", "include(\"one.conf\")\n");
    assert_int_equal(cw_conf_load("main.conf", &c, &err), -EINVAL);
    assert_string_equal(err.text, "./sub/one.conf:1: files are included more than 8 deep");
}

static void files_that_others_can_change_are_refused(void **state)
{
    struct cw_conf *c = NULL;
    struct cw_error err = { 0 };

    (void)state;
    write_file("main.conf", "include(\"inc.conf\")\n");
    write_file("inc.conf", "cluster = a\n");
    chmod("inc.conf", 0666);
    assert_int_equal(cw_conf_load("main.conf", &c, &err), -EPERM);
    assert_string_equal(err.text, "main.conf:1: include: ./inc.conf: everybody may write it");
    chmod("inc.conf", 0644);
    if (geteuid() == 0) {
        assert_int_equal(chown("inc.conf", 12345, 0), 0);
        assert_int_equal(cw_conf_load("main.conf", &c, &err), -EPERM);
        assert_non_null(strstr(err.text, "belongs to uid 12345"));
        assert_int_equal(chown("main.conf", 12345, 0), 0);
        assert_int_equal(cw_conf_load("main.conf", &c, &err), 0);
        cw_conf_destroy(c);
    }
    chmod("main.conf", 0666);
    assert_int_equal(cw_conf_load("main.conf", &c, &err), -EPERM);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(cw_conf_load("fifo", &c, &err), -EINVAL);
    assert_string_equal(err.text, "configuration: fifo: not a regular file");
    assert_int_equal(cw_conf_load("nowhere.conf", &c, &err), -ENOENT);
    assert_string_equal(err.text, "configuration: open nowhere.conf: No such file or directory");
}

static void too_much_is_refused(void **state)
{
    struct cw_conf *c = NULL;
    struct cw_error err = { 0 };
    cw_autobuf struct cw_buf b = { 0 };

    (void)state;
    cw_buf_add_str(&b, "plugin \"gpu/fake\" { options {\n");
    for (int i = 0; i < 10000; i++)
        cw_buf_addf(&b, "k%d = 1\n", i);
    cw_buf_add_str(&b, "} }\n");
    assert_int_equal(cw_conf_load_text("c", b.data, &c, &err), -EINVAL);
    assert_string_equal(err.text, "c:10000: more than 10000 settings");
    cw_buf_clear(&b);
    for (int i = 0; i < 200000; i++)
        cw_buf_add_str(&b, "# 6789\n");
    write_file("big.conf", b.data);
    assert_int_equal(cw_conf_load("big.conf", &c, &err), -EFBIG);
}

static void a_nul_byte_is_refused(void **state)
{
    struct cw_conf *c = NULL;
    struct cw_error err = { 0 };

    (void)state;
    assert_int_equal(cw_file_write_atomic("nul.conf", "cluster = a\n\0dir = b\n", 21, 0644, NULL),
                     0);
    assert_int_equal(cw_conf_load("nul.conf", &c, &err), -EINVAL);
    assert_string_equal(err.text, "nul.conf:2: unexpected byte 0x00");
}

static void the_example_loads_and_names_every_setting(void **state)
{
    struct cw_conf *c = NULL;
    struct cw_error err = { 0 };
    cw_autobuf struct cw_buf b = { 0 };

    (void)state;
    if (cw_conf_load(CW_TEST_SOURCE "/etc/crun.conf.example", &c, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(c->cluster, "example");
    cw_conf_destroy(c);
    assert_int_equal(cw_file_read(CW_TEST_SOURCE "/etc/crun.conf.example", 1 << 20, &b, NULL), 0);
    for (size_t s = 0; s <= cw_conf_schema_root.n_subs; s++) {
        const struct cw_conf_section *in = s == 0 ? &cw_conf_schema_root
                                                  : &cw_conf_schema_root.subs[s - 1];
        for (size_t i = 0; i < in->n_rows; i++) {
            cw_autofree char *setting = cw_xasprintf(" %s = ", in->rows[i].name);
            if (strstr(b.data, setting) == NULL && strstr(b.data, setting + 1) == NULL)
                fail_msg("%s is not in the example", in->rows[i].name);
        }
    }
}

static void the_man_page_explains_every_setting_as_the_schema_does(void **state)
{
    cw_autobuf struct cw_buf b = { 0 };

    (void)state;
    assert_int_equal(cw_file_read(CW_TEST_SOURCE "/doc/man/crun.conf.5", 1 << 20, &b, NULL), 0);
    for (size_t s = 0; s <= cw_conf_schema_root.n_subs; s++) {
        const struct cw_conf_section *in =
            s == 0 ? &cw_conf_schema_root : &cw_conf_schema_root.subs[s - 1];
        for (size_t i = 0; i < in->n_rows; i++) {
            cw_autofree char *item = cw_xasprintf("\n.It Ic %s No = Ar ", in->rows[i].name);
            const char *at = strstr(b.data, item);
            if (at == NULL || strstr(at, in->rows[i].doc) == NULL)
                fail_msg("%s is not explained in crun.conf(5)", in->rows[i].name);
        }
    }
}

/* The commented defaults of the example are the true ones: uncommented, the values stay the same.
 */
static void the_example_shows_the_true_defaults(void **state)
{
    struct cw_conf *plain = NULL, *shown = NULL;
    struct cw_error err = { 0 };
    cw_autobuf struct cw_buf b = { 0 }, text = { 0 };
    char *save = NULL;

    (void)state;
    assert_int_equal(cw_file_read(CW_TEST_SOURCE "/etc/crun.conf.example", 1 << 20, &b, NULL), 0);
    for (char *line = strtok_r(b.data, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '#' && line[1] == ' ' &&
            strchr("abcdefghijklmnopqrstuvwxyz", line[2]) != NULL && strstr(line, " = ") != NULL &&
            strstr(line, "PLUGINDIR") == NULL && strstr(line, "default_isolation") == NULL)
            cw_buf_addf(&text, "%s\n", line + 2);
    }
    assert_int_equal(cw_conf_load_text("c", "", &plain, NULL), 0);
    if (cw_conf_load_text("c", text.data, &shown, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(shown->session_listen, plain->session_listen);
    assert_string_equal(shown->door, plain->door);
    assert_string_equal(shown->node_connect, plain->node_connect);
    assert_int_equal(shown->retention_s, plain->retention_s);
    assert_int_equal(shown->heartbeat_ms, plain->heartbeat_ms);
    assert_int_equal(shown->disk_reserve_bytes, plain->disk_reserve_bytes);
    assert_int_equal(shown->max_array, plain->max_array);
    assert_string_equal(shown->slurm_env, plain->slurm_env);
    cw_conf_destroy(plain);
    cw_conf_destroy(shown);
}

static void the_file_is_found_in_the_documented_order(void **state)
{
    cw_autofree char *cwd = getcwd(NULL, 0);
    cw_autofree char *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    struct cw_error err = { 0 };

    (void)state;
    setenv("HOME", cwd, 1);
    unsetenv("CRUN_CONF");
    write_file("x.conf", "");
    assert_int_equal(cw_conf_find("x.conf", &a, &err), 0);
    assert_string_equal(a, "x.conf");
    assert_int_equal(cw_conf_find("y.conf", &d, &err), -ENOENT);
    assert_string_equal(err.text, "configuration: y.conf: No such file or directory");
    if (access(CW_SYSCONFDIR "/crun-wlm/crun.conf", F_OK) != 0) {
        assert_int_equal(cw_conf_find(NULL, &d, &err), -ENOENT);
        assert_non_null(strstr(err.text, "/.crun-wlm/crun.conf nor " CW_SYSCONFDIR
                                         "/crun-wlm/crun.conf is there"));
    }
    mkdir(".crun-wlm", 0755);
    write_file(".crun-wlm/crun.conf", "");
    assert_int_equal(cw_conf_find(NULL, &b, &err), 0);
    assert_non_null(strstr(b, "/.crun-wlm/crun.conf"));
    setenv("CRUN_CONF", "x.conf", 1);
    assert_int_equal(cw_conf_find(NULL, &c, &err), 0);
    assert_string_equal(c, "x.conf");
    setenv("CRUN_CONF", "z.conf", 1);
    assert_int_equal(cw_conf_find(NULL, &d, &err), -ENOENT);
    assert_string_equal(err.text,
                        "configuration: z.conf (from $CRUN_CONF): No such file or directory");
    assert_null(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_has_every_default),
        cmocka_unit_test(values_are_read_and_paths_made_absolute),
        cmocka_unit_test(the_dump_gives_every_value_with_its_origin),
        cmocka_unit_test(what_is_dumped_loads_to_the_same_values),
        cmocka_unit_test(a_long_directory_is_refused_for_its_sockets),
        cmocka_unit_test(included_files_count_as_if_written_in_place),
        cmocka_unit_test(mistakes_in_included_files_have_their_own_place),
        cmocka_unit_test(files_that_others_can_change_are_refused),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(a_nul_byte_is_refused),
        cmocka_unit_test(the_example_loads_and_names_every_setting),
        cmocka_unit_test(the_man_page_explains_every_setting_as_the_schema_does),
        cmocka_unit_test(the_example_shows_the_true_defaults),
        cmocka_unit_test(the_file_is_found_in_the_documented_order),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}

/* What a configuration may not say, and the one line that tells so: every bad input of the file. */
#include "config.h"

#include "conf/conf.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/mem.h"

static const struct {
    const char *text, *want;
} refused[] = {
    /* shape */
    { "partition a {\n max_time = 1h\n",
      "c:1: the closing brace of the section partition that begins here is missing" },
    { "plugin \"gpu/fake\" {\n options {\n a = b\n}\n",
      "c:1: the closing brace of the section plugin that begins here is missing" },
    { "plugin \"gpu/fake\" { options { a = b ",
      "c:1: the closing brace of the section options that begins here is missing" },
    { "cluster = a\n}\n", "c:2: '}' without an open section" },
    { "cluster\n", "c:2: '=' is expected behind cluster, found the end of the file" },
    { "cluster = ", "c:1: a value is expected for cluster, found the end of the file" },
    { "cluster = {a, b}\n", "c:1: a value is expected for cluster, found {" },
    { "cluster += a\n", "c:1: unexpected '+'; put the value in quotes" },
    { "cluster = a+b\n", "c:1: unexpected '+'; put the value in quotes" },
    { "cluster = a;\n", "c:1: unexpected ';'; put the value in quotes" },
    { "client_listen = tcp://a:1\n", "c:1: unexpected '/'; put the value in quotes" },
    { "kill_grace = 5# c\n", "c:1: unexpected '#'; put the value in quotes" },
    { "kill_grace = 5// c\n", "c:1: unexpected '/'; put the value in quotes" },
    { "kill_grace = 5/* c */\n", "c:1: unexpected '/'; put the value in quotes" },
    { "kill_grace = 5\"\"\n", "c:1: unexpected '\"'; put the value in quotes" },
    { "client_listen = ipc:/*\n", "c:1: unexpected '/'; put the value in quotes" },
    { "\"cluster\" = a\n", "c:1: the name of a setting is expected, found 'cluster'" },
    { "= a\n", "c:1: the name of a setting is expected, found '='" },
    { "cluster = \"a\ndir = b\"\n", "c:1: the string is not closed on its line" },
    { "cluster = 'a", "c:1: the string is not closed on its line" },
    { "cluster = \"a\\n\"\n", "c:1: a backslash may stand only before \" or \\ in double quotes" },
    { "cluster = 'a\\'b'\n", "c:1: a backslash may stand only before \" or \\ in double quotes" },
    { "cluster = \"a\tb\"\n", "c:1: unexpected byte 0x09" },
    { "cluster = a\r\ndir = b\r\n", "c:1: a carriage return; the file needs Unix line ends" },
    { "cluster = \x01\n", "c:1: unexpected byte 0x01" },
    { "cluster = \xff\n", "c:1: unexpected byte 0xff" },
    { "\n/* a\nb\n", "c:2: the comment that begins here has no end" },
    { "partition {\n}\n", "c:1: partition needs a name in quotes, found {" },
    { "partition \"a\" max_time = 1\n",
      "c:1: '{' is expected to open the section, found max_time" },
    /* environment */
    { "dir = \"${HOME}\"\n",
      "c:1: environment variables are not expanded here; write the value itself" },
    { "dir = \"${NOPE:-x}\"\n",
      "c:1: environment variables are not expanded here; write the value itself" },
    { "dir = ${HOME}\n",
      "c:1: environment variables are not expanded here; write the value itself" },
    { "plugin \"gpu/fake\" { options { a = '${HOME}' } }\n",
      "c:1: environment variables are not expanded here; write the value itself" },
    /* names */
    { "cluster = x\nkil_grace = 5\n",
      "c:2: unknown setting 'kil_grace'; did you mean 'kill_grace'?" },
    { "heartbeat_ms = 500ms\n", "c:1: unknown setting 'heartbeat_ms'; did you mean 'heartbeat'?" },
    { "zzz = 5\n", "c:1: unknown setting 'zzz'; crun.conf(5) lists what is allowed" },
    { "partiton \"a\" { }\n", "c:1: unknown setting 'partiton'; did you mean 'partition'?" },
    { "partition \"a\" {\n node = n1\n}\n",
      "c:2: unknown setting 'node' in partition; did you mean 'nodes'?" },
    { "partition \"a\" {\n cluster = x\n}\n",
      "c:2: unknown setting 'cluster' in partition; allowed: nodes, default, max_time, "
      "default_time, default_mem, "
      "isolation" },
    { "plugin \"gpu/fake\" { zzz = 1 }\n",
      "c:1: unknown setting 'zzz' in plugin; allowed: required, exec, options { }" },
    { "plugin \"gpu/fake\" { options { a:b = 1 } }\n",
      "c:1: an option's name may have letters, digits, '_' and '-', found 'a:b'" },
    { "plugin \"gpu/fake\" { include(\"x\") }\n",
      "c:1: unknown setting 'include' in plugin; allowed: required, exec, options { }" },
    /* twice */
    { "kill_grace = 5\nkill_grace = 6\n", "c:2: kill_grace was given before (c:1)" },
    { "partition a { }\npartition b { }\npartition a { }\n",
      "c:3: partition \"a\" was given before (c:1)" },
    { "partition a { nodes = n1\n nodes = n2 }\n", "c:2: nodes was given before (c:1)" },
    { "plugin \"gpu/fake\" { }\nplugin \"gpu/fake\" { }\n",
      "c:2: plugin \"gpu/fake\" was given before (c:1)" },
    { "plugin \"gpu/fake\" { options { a = 1\n a = 2 } }\n", "c:2: a was given before (c:1)" },
    { "plugin \"gpu/fake\" { options { }\n options { } }\n",
      "c:2: options was given before (c:1)" },
    { "partition a { default = true }\npartition b { default = yes }\n",
      "c:2: partition b: a is the default already (line 1)" },
    /* values */
    { "cluster = \"a b\"\n",
      "c:1: cluster: 'a b' is not a name of letters, digits, '_', '-' and '.'" },
    { "cluster = \"\"\n", "c:1: cluster: '' is not a name of letters, digits, '_', '-' and '.'" },
    { "cluster = \"../x\"\n",
      "c:1: cluster: '../x' is not a name of letters, digits, '_', '-' and '.'" },
    { "kill_grace = soon\n",
      "c:1: kill_grace: 'soon' is not a time like 30, 90s, 500ms, 1h30m or 7d" },
    { "kill_grace = 0x10\n",
      "c:1: kill_grace: '0x10' is not a time like 30, 90s, 500ms, 1h30m or 7d" },
    { "kill_grace = 1:30\n",
      "c:1: kill_grace: '1:30' is not a time like 30, 90s, 500ms, 1h30m or 7d" },
    { "kill_grace = infinite\n",
      "c:1: kill_grace: 'infinite' is not a time like 30, 90s, 500ms, 1h30m or 7d" },
    { "kill_grace = 1500ms\n", "c:1: kill_grace: '1500ms' is not a whole number of seconds" },
    { "kill_grace = 99999999999999999999\n", "c:1: kill_grace: 99999999999999999999 is too large" },
    { "kill_grace = 18446744073709552\n", "c:1: kill_grace: 18446744073709552 is too large" },
    { "kill_grace = 2d\n", "c:1: kill_grace: 2d is too large; at most 86400s" },
    { "kill_grace = -1\n", "c:1: kill_grace: '-1' is not a time like 30, 90s, 500ms, 1h30m or 7d" },
    { "heartbeat = 500\n", "c:1: heartbeat: '500' needs a unit, like 500ms or 5s" },
    { "heartbeat = 5ms\n", "c:1: heartbeat: 5ms is too small; at least 10ms" },
    { "node_lost = 0\n", "c:1: node_lost: 0 is too small; at least 1s" },
    { "max_requeues = 1.5\n", "c:1: max_requeues: '1.5' is not a whole number" },
    { "max_requeues = \"\"\n", "c:1: max_requeues: '' is not a whole number" },
    { "max_array = 0\n", "c:1: max_array: 0 is too small; at least 1" },
    { "max_jobs = 4294967296\n", "c:1: max_jobs: 4294967296 is too large; at most 100000000" },
    { "disk_reserve = 1X\n",
      "c:1: disk_reserve: size '1X': the unit may be K, M, G, T or P (1024-based), or B" },
    { "reserve_mem = 20000P\n", "c:1: reserve_mem: size '20000P': too large" },
    { "allow_root_jobs = maybe\n", "c:1: allow_root_jobs: 'maybe' is not true or false" },
    { "log_level = loud\n",
      "c:1: log_level: 'loud' is not allowed; one of: error warn info debug" },
    { "log_level = warn_\n",
      "c:1: log_level: 'warn_' is not allowed; one of: error warn info debug" },
    { "log_level = war\n", "c:1: log_level: 'war' is not allowed; one of: error warn info debug" },
    { "admins = \"a,,b\"\n", "c:1: admins: '' is not a user's name" },
    { "admins = \"a, b\"\n", "c:1: admins: ' b' is not a user's name" },
    { "state_dir = \"\"\n", "c:1: state_dir: the path is empty" },
    { "plugin_path = \"/a::/b\"\n", "c:1: plugin_path: one of the paths is empty" },
    { "client_listen = \"http://a\"\n",
      "c:1: client_listen: 'http://a' is not ipc://PATH or tcp://HOST:PORT" },
    { "client_listen = \"tcp://a\"\n",
      "c:1: client_listen: 'tcp://a' is not ipc://PATH or tcp://HOST:PORT" },
    { "client_listen = \"tcp://a:0\"\n",
      "c:1: client_listen: 'tcp://a:0' is not ipc://PATH or tcp://HOST:PORT" },
    { "client_listen = \"tcp://a:65536\"\n",
      "c:1: client_listen: 'tcp://a:65536' is not ipc://PATH or tcp://HOST:PORT" },
    { "client_listen = \"tcp://:80\"\n",
      "c:1: client_listen: 'tcp://:80' is not ipc://PATH or tcp://HOST:PORT" },
    { "client_listen = \"ipc://\"\n",
      "c:1: client_listen: 'ipc://' is not ipc://PATH or tcp://HOST:PORT" },
    { "\nclient_listen = \"tcp://*:80\"\n", "c:1: client_connect: tcp://*:80 stands for all "
                                            "addresses; set client_connect to one of them" },
    { "node_connect = \"tcp://*:80\"\n",
      "c:1: node_connect: tcp://*:80 stands for all addresses; set node_connect to one of them" },
    { "partition \"a\" { nodes = \"n[3-1]\" }\n",
      "c:1: nodes: host list 'n[3-1]' column 3: the range goes backwards" },
    { "partition \"a\" { max_time = long }\n",
      "c:1: max_time: duration 'long': expected minutes, M:S, H:M:S, D-H[:M[:S]], parts like "
      "1h30m, or 'unlimited'" },
    { "partition \"a\" {\n max_time = 30\n default_time = 31 }\n",
      "c:1: partition a: default_time is above max_time" },
    { "partition \"a\" { max_time = 0s }\n", "c:1: partition a: a time limit of 0 seconds" },
    { "partition \"a b\" { }\n",
      "c:1: partition 'a b': a name has letters, digits, '_', '-' and '.'" },
    { "partition \"\" { }\n", "c:1: partition '': a name has letters, digits, '_', '-' and '.'" },
    { "plugin \"gpu\" { }\n", "c:1: plugin 'gpu': expected \"family/name\" in small letters" },
    { "plugin \"gpu/\" { }\n", "c:1: plugin 'gpu/': expected \"family/name\" in small letters" },
    { "plugin \"gpu/../x\" { }\n",
      "c:1: plugin 'gpu/../x': expected \"family/name\" in small letters" },
    { "plugin \"Gpu/fake\" { }\n",
      "c:1: plugin 'Gpu/fake': expected \"family/name\" in small letters" },
    /* include */
    { "include(\"none.conf\")\n", "c:1: include: open ./none.conf: No such file or directory" },
    { "include(none)\n", "c:1: a file name in quotes is expected for include" },
    { "include(\"\")\n", "c:1: a file name in quotes is expected for include" },
    { "include(\"a\", \"b\")\n", "c:1: unexpected ','; put the value in quotes" },
    { "include \"a\"\n", "c:1: '(' is expected behind include, found a" },
    { "include(\"~/a\")\n", "c:1: include: open ./~/a: No such file or directory" },
    { "include(\"/dev/zero\")\n", "c:1: include: /dev/zero: not a regular file" },
};

static void bad_text_is_refused_in_one_line_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < CW_ARRAY_LEN(refused); i++) {
        struct cw_conf *c = NULL;
        struct cw_error err = { 0 };
        if (cw_conf_load_text("c", refused[i].text, &c, &err) == 0)
            fail_msg("accepted: %s", refused[i].text);
        assert_string_equal(err.text, refused[i].want);
        assert_null(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_text_is_refused_in_one_line_with_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

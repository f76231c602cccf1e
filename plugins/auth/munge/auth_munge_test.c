/* The plugin against a munged of our own: a key, a socket and a daemon in a directory that the test
 * makes and removes. Skipped where munged is not installed. */
#include <crunwlm/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <munge.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *munged;
static char dir[64], sock[80];
static pid_t pid;
static void *plugin;
static uint8_t bind_a[32] = {1, 2, 3}, bind_b[32] = {9};

static const struct cw_auth_ops *ops(void)
{
    return cw_plugin.ops;
}

static const char *option(const struct cw_host *host, const char *name)
{
    (void)host;
    return strcmp(name, "socket") == 0 ? sock : strcmp(name, "ttl") == 0 ? "300" : NULL;
}

static const struct cw_host host = {.size = sizeof(host), .option = option};

static char *path(const char *name)
{
    static char p[2][128];
    static int turn;

    turn = 1 - turn;
    (void)snprintf(p[turn], sizeof(p[turn]), "%s/%s", dir, name);
    return p[turn];
}

static void start_munged(void)
{
    char key[160], pidfile[160], log[160], seed[160], s[160];

    (void)snprintf(key, sizeof(key), "--key-file=%s/munge.key", dir);
    (void)snprintf(pidfile, sizeof(pidfile), "--pid-file=%s/munged.pid", dir);
    (void)snprintf(log, sizeof(log), "--log-file=%s/munged.log", dir);
    (void)snprintf(seed, sizeof(seed), "--seed-file=%s/munged.seed", dir);
    (void)snprintf(s, sizeof(s), "--socket=%s", sock);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl(munged, "munged", "--foreground", "--force", key, pidfile, log, seed, s, (char *)NULL);
        _exit(127);
    }
}

/* The daemon makes its socket when it is ready to answer. */
static void wait_socket(void)
{
    int fd = inotify_init1(IN_CLOEXEC);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char buf[4096];

    assert_true(fd >= 0 && inotify_add_watch(fd, dir, IN_CREATE | IN_MOVED_TO) >= 0);
    while (access(sock, F_OK) != 0) {
        assert_int_equal(poll(&p, 1, 20000), 1);
        assert_true(read(fd, buf, sizeof(buf)) > 0);
    }
    (void)close(fd);
}

static int setup(void **state)
{
    static const char *const places[] = {"/usr/sbin/munged", "/usr/local/sbin/munged"};
    struct cw_plugin_err err;
    uint8_t key[64];
    int fd;

    (void)state;
    for (size_t i = 0; munged == NULL && i < 2; i++)
        munged = access(places[i], X_OK) == 0 ? places[i] : NULL;
    if (munged == NULL)
        return 0;
    (void)snprintf(dir, sizeof(dir), "/var/tmp/crun-munge.XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    (void)snprintf(sock, sizeof(sock), "%s/socket", dir);
    memset(key, 5, sizeof(key));
    fd = open(path("munge.key"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, key, sizeof(key)), sizeof(key));
    (void)close(fd);
    start_munged();
    wait_socket();
    return cw_plugin.open(&host, &plugin, &err);
}

static int teardown(void **state)
{
    static const char *const files[] = {"munge.key", "munged.pid",  "munged.log",
                                        "munged.seed", "socket", "socket.lock"};

    (void)state;
    if (munged == NULL)
        return 0;
    cw_plugin.close(plugin);
    (void)kill(pid, SIGTERM);
    (void)waitpid(pid, NULL, 0);
    for (size_t i = 0; i < 6; i++)
        (void)unlink(path(files[i]));
    return rmdir(dir);
}

#define NEED_MUNGED()     \
    do {                  \
        if (munged == NULL) \
            skip();       \
    } while (0)

static void a_user_is_who_munged_says(void **state)
{
    struct cw_identity who = {.size = sizeof(who)};
    struct cw_plugin_err err = {""};
    uint8_t cred[CW_AUTH_CRED_MAX];
    size_t n;

    (void)state;
    NEED_MUNGED();
    assert_int_equal(ops()->credential(plugin, bind_a, cred, sizeof(cred), &n, &err), 0);
    assert_int_equal(ops()->verify(plugin, bind_a, cred, n, 0, &who, &err), 0);
    assert_int_equal(who.uid, geteuid());
    assert_int_equal(who.gid, getegid());
    assert_string_equal(who.node, "");
    assert_true(who.expires_ns > 0);
    /* the controller may forget a channel and look at its credential again */
    assert_int_equal(ops()->verify(plugin, bind_a, cred, n, 0, &who, &err), 0);
}

static void a_credential_counts_for_its_own_channel_only(void **state)
{
    struct cw_identity who = {.size = sizeof(who)};
    struct cw_plugin_err err = {""};
    uint8_t cred[CW_AUTH_CRED_MAX];
    size_t n;

    (void)state;
    NEED_MUNGED();
    assert_int_equal(ops()->credential(plugin, bind_a, cred, sizeof(cred), &n, &err), 0);
    assert_int_equal(ops()->verify(plugin, bind_b, cred, n, 0, &who, &err), -EACCES);
    assert_non_null(strstr(err.text, "another connection"));
}

static void a_node_is_named(void **state)
{
    struct cw_identity who = {.size = sizeof(who)};
    struct cw_plugin_err err = {""};
    uint8_t cred[CW_AUTH_CRED_MAX];
    size_t n;

    (void)state;
    NEED_MUNGED();
    assert_int_equal(ops()->node_credential(plugin, "n1", bind_a, cred, sizeof(cred), &n, &err), 0);
    assert_int_equal(ops()->verify(plugin, bind_a, cred, n, 0, &who, &err), 0);
    assert_string_equal(who.node, "n1");
    assert_int_equal(who.uid, UINT32_MAX);
    assert_int_equal(ops()->node_credential(plugin, "n 1", bind_a, cred, sizeof(cred), &n, &err),
                     -EINVAL);
}

/* What nobody may do through its own credential, made with the same munged. */
static void an_ordinary_user_cannot_be_a_node(void **state)
{
    struct cw_identity who = {.size = sizeof(who)};
    struct cw_plugin_err err = {""};
    uint8_t cred[CW_AUTH_CRED_MAX];
    int fd[2], status;
    ssize_t n;
    pid_t child;

    (void)state;
    NEED_MUNGED();
    if (geteuid() != 0)
        skip();
    assert_int_equal(pipe(fd), 0);
    child = fork();
    if (child == 0) {
        size_t len;
        if (setgid(65534) != 0 || setuid(65534) != 0 ||
            ops()->node_credential(plugin, "n1", bind_a, cred, sizeof(cred), &len, &err) != 0 ||
            write(fd[1], cred, len) != (ssize_t)len)
            _exit(1);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    n = read(fd[0], cred, sizeof(cred));
    assert_true(n > 0);
    assert_int_equal(ops()->verify(plugin, bind_a, cred, (size_t)n, 0, &who, &err), -EACCES);
    assert_non_null(strstr(err.text, "may not speak for a node"));
    (void)close(fd[0]);
    (void)close(fd[1]);
}

static void what_munge_did_not_make_is_refused(void **state)
{
    struct cw_identity who = {.size = sizeof(who)};
    struct cw_plugin_err err = {""};
    char *other = NULL;
    uint8_t cred[CW_AUTH_CRED_MAX];
    munge_ctx_t ctx;
    size_t n;

    (void)state;
    NEED_MUNGED();
    assert_int_equal(ops()->verify(plugin, bind_a, (const uint8_t *)"", 0, 0, &who, &err), -EACCES);
    assert_int_equal(ops()->verify(plugin, bind_a, (const uint8_t *)"MUNGE:x", 7, 0, &who, &err),
                     -EACCES); /* not terminated */
    assert_int_equal(ops()->verify(plugin, bind_a, (const uint8_t *)"MUNGE:x", 8, 0, &who, &err),
                     -EACCES);
    ctx = munge_ctx_create();
    (void)munge_ctx_set(ctx, MUNGE_OPT_SOCKET, sock);
    assert_int_equal(munge_encode(&other, ctx, "hello", 5), EMUNGE_SUCCESS);
    assert_int_equal(ops()->verify(plugin, bind_a, (const uint8_t *)other, strlen(other) + 1, 0,
                                   &who, &err),
                     -EACCES);
    assert_non_null(strstr(err.text, "not made for crun-wlm"));
    free(other);
    munge_ctx_destroy(ctx);
    assert_int_equal(ops()->credential(plugin, bind_a, cred, sizeof(cred), &n, &err), 0);
    cred[n / 2] = cred[n / 2] == 'A' ? 'B' : 'A';
    assert_true(ops()->verify(plugin, bind_a, cred, n, 0, &who, &err) < 0);
}

static void without_munged_the_error_says_so(void **state)
{
    struct cw_plugin_err err = {""};
    uint8_t cred[CW_AUTH_CRED_MAX];
    char keep[sizeof(sock)];
    void *lost;
    size_t n;

    (void)state;
    NEED_MUNGED();
    memcpy(keep, sock, sizeof(keep));
    (void)snprintf(sock, sizeof(sock), "%s/none", dir);
    assert_int_equal(cw_plugin.open(&host, &lost, &err), 0);
    assert_int_equal(ops()->credential(lost, bind_a, cred, sizeof(cred), &n, &err), -EAGAIN);
    assert_non_null(strstr(err.text, "munge"));
    cw_plugin.close(lost);
    memcpy(sock, keep, sizeof(keep));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_is_who_munged_says),
        cmocka_unit_test(a_credential_counts_for_its_own_channel_only),
        cmocka_unit_test(a_node_is_named),
        cmocka_unit_test(an_ordinary_user_cannot_be_a_node),
        cmocka_unit_test(what_munge_did_not_make_is_refused),
        cmocka_unit_test(without_munged_the_error_says_so),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

/* The plugin as the daemons use it: one context that can read the key, one that cannot and goes to
 * a door served here. */
#include <crunwlm/plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define S 1000000000LL

struct world {
    char dir[64], key_file[80], door[80];
    struct cw_host host;
    void *ctx;
    uint8_t bind[32], cred[CW_AUTH_CRED_MAX];
    size_t len;
    int listener;
    uint8_t status; /* what the door answers */
};

static const struct cw_auth_ops *ops(void)
{
    return cw_plugin.ops;
}

static const char *instance(const struct cw_host *host, const char *what)
{
    struct world *w = host->priv;

    return strcmp(what, "key_file") == 0 ? w->key_file : strcmp(what, "door") == 0 ? w->door : NULL;
}

static int64_t now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * S + ts.tv_nsec;
}

static void write_key(const char *path, mode_t mode, size_t n)
{
    uint8_t key[64] = {7, 7, 7};
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, key, n), n);
    assert_int_equal(fchmod(fd, mode), 0);
    (void)close(fd);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    (void)snprintf(w->dir, sizeof(w->dir), "/tmp/cw-auth-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    (void)snprintf(w->key_file, sizeof(w->key_file), "%s/key", w->dir);
    (void)snprintf(w->door, sizeof(w->door), "%s/door", w->dir);
    write_key(w->key_file, 0600, 32);
    w->host = (struct cw_host){
        .size = sizeof(w->host), .abi_major = CW_PLUGIN_ABI_MAJOR, .instance = instance, .priv = w};
    w->listener = -1;
    memset(w->bind, 3, sizeof(w->bind));
    assert_int_equal(cw_plugin.open(&w->host, &w->ctx, NULL), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    cw_plugin.close(w->ctx);
    if (w->listener >= 0)
        (void)close(w->listener);
    (void)unlink(w->key_file);
    (void)unlink(w->door);
    (void)rmdir(w->dir);
    free(w);
    return 0;
}

static int verify_at(struct world *w, int64_t now_ns, struct cw_identity *ret,
                     struct cw_plugin_err *err)
{
    ret->size = sizeof(*ret);
    return ops()->verify(w->ctx, w->bind, w->cred, w->len, now_ns, ret, err);
}

static void issue(struct world *w)
{
    assert_int_equal(
        ops()->issue(w->ctx, 1000, 100, w->bind, w->cred, sizeof(w->cred), &w->len, NULL), 0);
}

static void key_reader_proves_its_own_uid(void **state)
{
    struct world *w = *state;
    struct cw_identity id = {0};

    assert_int_equal(ops()->credential(w->ctx, w->bind, w->cred, sizeof(w->cred), &w->len, NULL),
                     0);
    assert_int_equal(verify_at(w, now(), &id, NULL), 0);
    assert_int_equal(id.uid, geteuid());
    assert_int_equal(id.gid, getegid());
    assert_string_equal(id.node, "");
    assert_true(id.expires_ns > now() + 290 * S && id.expires_ns < now() + 370 * S);
}

static void node_proves_its_name(void **state)
{
    struct world *w = *state;
    struct cw_identity id = {0};

    assert_int_equal(
        ops()->node_credential(w->ctx, "n-01.x", w->bind, w->cred, sizeof(w->cred), &w->len, NULL),
        0);
    assert_int_equal(verify_at(w, now(), &id, NULL), 0);
    assert_string_equal(id.node, "n-01.x");
    assert_int_equal(id.uid, UINT32_MAX);
    w->cred[29] = 'm'; /* another node's name needs another key */
    assert_int_equal(verify_at(w, now(), &id, NULL), -EACCES);
}

static void bad_node_name_is_refused(void **state)
{
    static const char *const names[] = {
        "", "a/b", "a b", "n\n",
        "0123456789012345678901234567890123456789012345678901234567890123"};
    struct world *w = *state;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(ops()->node_credential(w->ctx, names[i], w->bind, w->cred, sizeof(w->cred),
                                                &w->len, NULL),
                         -EINVAL);
}

static void any_changed_byte_is_refused(void **state)
{
    struct world *w = *state;
    struct cw_identity id = {0};

    issue(w);
    for (size_t i = 0; i < w->len; i++) {
        w->cred[i] ^= 1;
        assert_int_equal(verify_at(w, now(), &id, NULL), -EACCES);
        w->cred[i] ^= 1;
    }
    for (size_t n = 0; n < w->len; n++) {
        size_t len = w->len;

        w->len = n;
        assert_int_equal(verify_at(w, now(), &id, NULL), -EACCES);
        w->len = len;
    }
    assert_int_equal(verify_at(w, now(), &id, NULL), 0);
    assert_int_equal(id.uid, 1000);
}

static void credential_counts_for_its_channel_only(void **state)
{
    struct world *w = *state;
    struct cw_identity id = {0};
    struct cw_plugin_err err;

    issue(w);
    w->bind[31] ^= 1;
    assert_int_equal(verify_at(w, now(), &id, &err), -EACCES);
    assert_non_null(strstr(err.text, "for this connection"));
}

static void credential_of_another_key_is_refused(void **state)
{
    struct world *w = *state;
    struct cw_identity id = {0};
    uint8_t key[32] = {9};
    int fd;

    issue(w);
    fd = open(w->key_file, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, key, 32), 32);
    (void)close(fd);
    assert_int_equal(cw_plugin.reload(w->ctx, NULL), 0);
    assert_int_equal(verify_at(w, now(), &id, NULL), -EACCES);
}

static void time_bounds_hold(void **state)
{
    static const struct {
        int64_t offset_s;
        int result;
        const char *text;
    } cases[] = {
        {0, 0, ""},
        {-59, 0, ""},
        {-62, -EACCES, "in the future"},
        {359, 0, ""},
        {362, -EACCES, "expired"},
    };
    struct world *w = *state;
    struct cw_identity id = {0};
    struct cw_plugin_err err;

    issue(w);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        err.text[0] = '\0';
        assert_int_equal(verify_at(w, now() + cases[i].offset_s * S, &id, &err), cases[i].result);
        assert_non_null(strstr(err.text, cases[i].text));
    }
}

static void key_that_others_can_read_is_refused(void **state)
{
    static const struct {
        mode_t mode;
        size_t n;
        int result;
        const char *text;
    } cases[] = {
        {0640, 32, -EPERM, "lets others read it"},
        {0604, 32, -EPERM, "lets others read it"},
        {0600, 31, -EINVAL, "not a file of 32 bytes"},
        {0600, 33, -EINVAL, "not a file of 32 bytes"},
    };
    struct world *w = *state;
    struct cw_plugin_err err;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_key(w->key_file, cases[i].mode, cases[i].n);
        assert_int_equal(
            ops()->credential(w->ctx, w->bind, w->cred, sizeof(w->cred), &w->len, &err),
            cases[i].result);
        assert_non_null(strstr(err.text, cases[i].text));
    }
}

static void small_buffer_is_refused(void **state)
{
    struct world *w = *state;

    assert_int_equal(ops()->credential(w->ctx, w->bind, w->cred, 60, &w->len, NULL), -ENOSPC);
}

static void without_key_and_door_the_caller_may_come_again(void **state)
{
    struct world *w = *state;
    struct cw_plugin_err err;

    assert_int_equal(unlink(w->key_file), 0);
    assert_int_equal(ops()->credential(w->ctx, w->bind, w->cred, sizeof(w->cred), &w->len, &err),
                     -EAGAIN);
    assert_non_null(strstr(err.text, "nobody listens"));
}

static void *serve_door(void *arg)
{
    struct world *w = arg;
    int fd = accept(w->listener, NULL, NULL);
    uint8_t in[64], out[1 + CW_AUTH_CRED_MAX] = {0};
    size_t n = 0;

    if (recv(fd, in, sizeof(in), 0) == 32 && w->status == 0)
        (void)ops()->issue(w->ctx, 4321, 4, in, out + 1, sizeof(out) - 1, &n, NULL);
    out[0] = w->status;
    if (w->status == 1)
        n = (size_t)snprintf((char *)out + 1, 64, "user 4321 may not");
    if (w->status != 2) /* 2: hangs up */
        (void)send(fd, out, n + 1, MSG_NOSIGNAL);
    (void)close(fd);
    return NULL;
}

static int ask(struct world *w, uint8_t status, struct cw_plugin_err *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct world other = *w; /* the asking side has no key */
    void *ctx;
    pthread_t t;
    int r;

    w->status = status;
    if (w->listener < 0) {
        w->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", w->door);
        assert_int_equal(bind(w->listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
        assert_int_equal(listen(w->listener, 4), 0);
    }
    assert_int_equal(pthread_create(&t, NULL, serve_door, w), 0);
    (void)snprintf(other.key_file, sizeof(other.key_file), "%s/none", w->dir);
    other.host.priv = &other;
    assert_int_equal(cw_plugin.open(&other.host, &ctx, NULL), 0);
    r = ops()->credential(ctx, w->bind, w->cred, sizeof(w->cred), &w->len, err);
    cw_plugin.close(ctx);
    (void)pthread_join(t, NULL);
    return r;
}

static void door_gives_a_credential_that_verifies(void **state)
{
    struct world *w = *state;
    struct cw_identity id = {0};

    assert_int_equal(ask(w, 0, NULL), 0);
    assert_int_equal(verify_at(w, now(), &id, NULL), 0);
    assert_int_equal(id.uid, 4321);
    assert_int_equal(id.gid, 4);
}

static void refusal_at_the_door_is_told(void **state)
{
    struct world *w = *state;
    struct cw_plugin_err err;

    assert_int_equal(ask(w, 1, &err), -EACCES);
    assert_non_null(strstr(err.text, "user 4321 may not"));
    assert_int_equal(ask(w, 2, &err), -EAGAIN);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(key_reader_proves_its_own_uid),
        T(node_proves_its_name),
        T(bad_node_name_is_refused),
        T(any_changed_byte_is_refused),
        T(credential_counts_for_its_channel_only),
        T(credential_of_another_key_is_refused),
        T(time_bounds_hold),
        T(key_that_others_can_read_is_refused),
        T(small_buffer_is_refused),
        T(without_key_and_door_the_caller_may_come_again),
        T(door_gives_a_credential_that_verifies),
        T(refusal_at_the_door_is_told),
    };

    return cmocka_run_group_tests_name("auth_key", tests, NULL, NULL);
}

/* The loop's promises: turns, closing inside callbacks, errors on descriptors, children. */
#include "config.h"

#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct world {
    struct cw_loop *l;
    struct cw_loop_io *io;
    struct cw_loop_timer *timer;
    struct cw_loop_child *child;
    char trace[64];
    int n, turns, peer;
    pid_t pid;
    pthread_t thread;
};

static void note(struct world *w, char c)
{
    size_t n = strlen(w->trace);
    assert_true(n + 1 < sizeof(w->trace));
    w->trace[n] = c;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    w->l = cw_loop_create();
    *state = w;
    return w->l == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    cw_loop_destroy(w->l);
    free(w);
    return 0;
}

static void on_deadline(void *arg)
{
    (void)arg;
    fail_msg("the event did not come within 10 s");
}

/* Runs the loop; a test whose event never comes fails instead of hanging. */
static void run(struct world *w)
{
    struct cw_loop_timer *t = cw_loop_timer_open(w->l, on_deadline, w);
    cw_loop_timer_start(t, 10000, 0);
    assert_int_equal(cw_loop_run(w->l), 0);
    cw_loop_timer_close(t);
}

static void stop_now(void *arg)
{
    struct world *w = arg;
    note(w, 's');
    cw_loop_stop(w->l);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void post_a(void *arg)
{
    note(arg, 'a');
}
static void post_b(void *arg)
{
    note(arg, 'b');
}

static void end_once(void *arg)
{
    struct world *w = arg;
    note(w, '|');
    if (++w->turns == 1)
        cw_loop_post(w->l, post_a, w);
    if (w->turns == 2) {
        cw_loop_post(w->l, post_b, w);
        cw_loop_post(w->l, stop_now, w);
    }
}

static void a_post_from_a_turn_end_wakes_the_next_turn(void **state)
{
    struct world *w = *state;
    cw_loop_on_turn_end(w->l, end_once, w);
    run(w);
    /* first turn, a, second turn, b and stop together, their turn end, the one after run */
    assert_string_equal(w->trace, "|a|bs||");
}

static void end_first(void *arg)
{
    note(arg, '1');
}
static void end_second(void *arg)
{
    note(arg, '2');
}

static void turn_ends_run_in_order_of_registration(void **state)
{
    struct world *w = *state;
    cw_loop_on_turn_end(w->l, end_first, w);
    cw_loop_on_turn_end(w->l, end_second, w);
    cw_loop_post(w->l, stop_now, w);
    run(w);
    assert_string_equal(w->trace, "12s1212");
}

static void stop_in_a_callback_still_ends_its_turn(void **state)
{
    struct world *w = *state;
    cw_loop_on_turn_end(w->l, end_first, w);
    cw_loop_timer_start(w->timer = cw_loop_timer_open(w->l, stop_now, w), 0, 0);
    run(w);
    char *s = strchr(w->trace, 's');
    assert_non_null(s);
    assert_non_null(strchr(s, '1'));
}

static void stop_before_run_is_not_lost(void **state)
{
    struct world *w = *state;
    cw_loop_stop(w->l);
    run(w);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void read_and_close_self(int fd, int events, void *arg)
{
    struct world *w = arg;
    char c;
    assert_int_equal(events, CW_LOOP_READ);
    assert_int_equal(read(fd, &c, 1), 1);
    w->n++;
    cw_loop_io_close(w->io);
    close(fd); /* its number may be used again at once */
    cw_loop_post(w->l, stop_now, w);
}

static void a_handle_closed_in_its_own_callback_is_silent_afterwards(void **state)
{
    struct world *w = *state;
    int p[2];
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(write(p[1], "xyz", 3), 3);
    w->io = cw_loop_io_open(w->l, p[0], CW_LOOP_READ, read_and_close_self, w);
    assert_non_null(w->io);
    run(w);
    assert_int_equal(w->n, 1);
    close(p[1]);
}

static void close_other(int fd, int events, void *arg)
{
    struct world *w = arg;
    (void)fd;
    (void)events;
    w->n++;
    cw_loop_io_close(w->io);
    w->io = NULL;
    cw_loop_io_close(cw_loop_io_open(w->l, w->peer, CW_LOOP_READ, close_other, w));
    cw_loop_post(w->l, stop_now, w);
}

static struct cw_loop_io *pair_ios[2];
static void close_both(int fd, int events, void *arg)
{
    struct world *w = arg;
    (void)fd;
    (void)events;
    w->n++;
    cw_loop_io_close(pair_ios[0]);
    cw_loop_io_close(pair_ios[1]);
    cw_loop_post(w->l, stop_now, w);
}

static void a_ready_handle_closed_by_another_callback_stays_silent(void **state)
{
    struct world *w = *state;
    int p[2], q[2];
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(pipe2(q, O_CLOEXEC), 0);
    assert_int_equal(write(p[1], "x", 1), 1);
    assert_int_equal(write(q[1], "x", 1), 1);
    pair_ios[0] = cw_loop_io_open(w->l, p[0], CW_LOOP_READ, close_both, w);
    pair_ios[1] = cw_loop_io_open(w->l, q[0], CW_LOOP_READ, close_both, w);
    run(w);
    assert_int_equal(w->n, 1);
    close(p[0]), close(p[1]), close(q[0]), close(q[1]);
}

static void a_descriptor_can_be_opened_again_in_the_callback_that_closed_it(void **state)
{
    struct world *w = *state;
    int p[2];
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(write(p[1], "x", 1), 1);
    w->peer = p[0];
    w->io = cw_loop_io_open(w->l, p[0], CW_LOOP_READ, close_other, w);
    run(w);
    assert_int_equal(w->n, 1);
    close(p[0]), close(p[1]);
}

static void drain_to_the_end(int fd, int events, void *arg)
{
    struct world *w = arg;
    char buf[2];
    assert_true(events & CW_LOOP_READ);
    ssize_t n = read(fd, buf, sizeof(buf));
    if (n > 0) {
        w->n += (int)n;
        return;
    }
    assert_int_equal(errno, ECONNRESET);
    cw_loop_io_close(w->io);
    cw_loop_stop(w->l);
}

static void bytes_before_a_socket_error_are_read_before_the_error(void **state)
{
    struct world *w = *state;
    int s[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
    assert_int_equal(write(s[0], "never read", 10), 10);
    assert_int_equal(write(s[1], "abc", 3), 3);
    close(s[1]); /* with unread bytes: the other side gets ECONNRESET */
    w->io = cw_loop_io_open(w->l, s[0], CW_LOOP_READ, drain_to_the_end, w);
    run(w);
    assert_int_equal(w->n, 3);
    close(s[0]);
}

static void on_writable(int fd, int events, void *arg)
{
    struct world *w = arg;
    assert_true(events & CW_LOOP_WRITE);
    w->n = write(fd, "x", 1) == -1 ? errno : 0;
    cw_loop_io_close(w->io);
    cw_loop_stop(w->l);
}

static void a_pipe_without_reader_is_writable_and_write_says_epipe(void **state)
{
    struct world *w = *state;
    int p[2];
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    close(p[0]);
    w->io = cw_loop_io_open(w->l, p[1], CW_LOOP_WRITE, on_writable, w);
    run(w);
    assert_int_equal(w->n, EPIPE);
    close(p[1]);
}

static void pause_reading(int fd, int events, void *arg)
{
    struct world *w = arg;
    (void)fd;
    (void)events;
    w->n++;
    cw_loop_io_set(w->io, 0);
    cw_loop_timer_start(w->timer, 30, 0);
}

static void a_paused_descriptor_gives_no_event(void **state)
{
    struct world *w = *state;
    int p[2];
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(write(p[1], "x", 1), 1);
    w->timer = cw_loop_timer_open(w->l, stop_now, w);
    w->io = cw_loop_io_open(w->l, p[0], CW_LOOP_READ, pause_reading, w);
    run(w);
    assert_int_equal(w->n, 1);
    cw_loop_io_close(w->io);
    close(p[0]), close(p[1]);
}

static void a_plain_file_is_refused_with_eperm(void **state)
{
    struct world *w = *state;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_null(cw_loop_io_open(w->l, fd, CW_LOOP_READ, on_writable, w));
    assert_int_equal(errno, EPERM);
    close(fd);
}

/* ---- timers ---------------------------------------------------------------------------------- */

static void on_tick(void *arg)
{
    struct world *w = arg;
    if (++w->n == 3) {
        cw_loop_timer_close(w->timer);
        cw_loop_stop(w->l);
    }
}

static void a_repeating_timer_can_close_itself(void **state)
{
    struct world *w = *state;
    w->timer = cw_loop_timer_open(w->l, on_tick, w);
    cw_loop_timer_start(w->timer, 1, 1);
    run(w);
    assert_int_equal(w->n, 3);
}

static void a_stopped_timer_does_not_fire(void **state)
{
    struct world *w = *state;
    struct cw_loop_timer *never = cw_loop_timer_open(w->l, on_deadline, w);
    w->timer = cw_loop_timer_open(w->l, stop_now, w);
    cw_loop_timer_start(never, 1, 0);
    cw_loop_timer_start(w->timer, 20, 0);
    cw_loop_timer_stop(never);
    int64_t before = cw_loop_now_ms(w->l);
    run(w);
    assert_true(cw_loop_now_ms(w->l) - before >= 20);
    cw_loop_timer_close(never);
    cw_loop_timer_close(w->timer);
}

/* ---- signals, posts, work -------------------------------------------------------------------- */

static void on_usr1(int signo, void *arg)
{
    struct world *w = arg;
    w->n = signo;
    cw_loop_stop(w->l);
}

static void raise_usr1(void *arg)
{
    (void)arg;
    kill(getpid(), SIGUSR1);
}

static void a_signal_reaches_its_function(void **state)
{
    struct world *w = *state;
    cw_loop_signal(w->l, SIGUSR1, on_usr1, w);
    cw_loop_post(w->l, raise_usr1, w);
    run(w);
    assert_int_equal(w->n, SIGUSR1);
}

#define N_POSTS 10000
static void count_post(void *arg)
{
    struct world *w = arg;
    if (++w->n == 2 * N_POSTS)
        cw_loop_stop(w->l);
}

static void *poster(void *arg)
{
    struct world *w = arg;
    for (int i = 0; i < N_POSTS; i++)
        cw_loop_post(w->l, count_post, w);
    return NULL;
}

static void posts_from_two_threads_all_arrive(void **state)
{
    struct world *w = *state;
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&t[i], NULL, poster, w), 0);
    run(w);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(w->n, 2 * N_POSTS);
}

static void *stopper(void *arg)
{
    cw_loop_stop(((struct world *)arg)->l);
    return NULL;
}

static void another_thread_can_stop_the_loop(void **state)
{
    struct world *w = *state;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, stopper, w), 0);
    run(w);
    pthread_join(t, NULL);
}

static void work_in_thread(void *arg)
{
    struct world *w = arg;
    w->thread = pthread_self();
}

static void work_done(void *arg)
{
    struct world *w = arg;
    w->n++;
    cw_loop_stop(w->l);
}

static void work_runs_on_another_thread_and_done_on_the_loop(void **state)
{
    struct world *w = *state;
    cw_loop_work(w->l, work_in_thread, work_done, w);
    run(w);
    assert_int_equal(w->n, 1);
    assert_false(pthread_equal(w->thread, pthread_self()));
}

/* ---- children -------------------------------------------------------------------------------- */

static void reap(pid_t pid, void *arg)
{
    struct world *w = arg;
    int status;
    assert_int_equal(pid, w->pid);
    assert_int_equal(waitpid(pid, &status, WNOHANG), pid); /* it has ended and is still ours */
    w->n += WEXITSTATUS(status);
    cw_loop_child_close(w->child);
    cw_loop_post(w->l, stop_now, w);
}

static void the_end_of_a_child_is_told_once_and_not_reaped(void **state)
{
    struct world *w = *state;
    struct cw_error err;
    w->pid = fork();
    if (w->pid == 0)
        _exit(7);
    w->child = cw_loop_child_open(w->l, w->pid, reap, w, &err);
    assert_non_null(w->child);
    run(w);
    assert_int_equal(w->n, 7);
}

static void a_process_that_does_not_exist_is_refused(void **state)
{
    struct world *w = *state;
    struct cw_error err;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    assert_null(cw_loop_child_open(w->l, pid, reap, w, &err));
    assert_int_equal(err.code, -ESRCH);
    assert_non_null(strstr(err.text, "pidfd"));
}

/* ---- destroy --------------------------------------------------------------------------------- */

static int destroyed_calls;
static void count_call(void *arg)
{
    (void)arg;
    destroyed_calls++;
}
static void nothing(void *arg)
{
    (void)arg;
}

static void destroy_closes_everything_left_open(void **state)
{
    (void)state;
    int p[2];
    struct cw_loop *l = cw_loop_create();
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    cw_loop_io_open(l, p[0], CW_LOOP_READ, on_writable, NULL);
    cw_loop_timer_start(cw_loop_timer_open(l, on_deadline, NULL), 1, 1);
    cw_loop_child_open(l, getpid(), reap, NULL, NULL);
    cw_loop_signal(l, SIGUSR2, on_usr1, NULL);
    cw_loop_on_turn_end(l, on_deadline, NULL);
    cw_loop_work(l, nothing, count_call, NULL);
    cw_loop_post(l, count_call, NULL);
    destroyed_calls = 0;
    cw_loop_destroy(l);
    assert_int_equal(destroyed_calls, 2);
    close(p[0]), close(p[1]);
    cw_loop_destroy(NULL);
    cw_loop_io_close(NULL), cw_loop_timer_close(NULL), cw_loop_child_close(NULL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_post_from_a_turn_end_wakes_the_next_turn),
        T(turn_ends_run_in_order_of_registration),
        T(stop_in_a_callback_still_ends_its_turn),
        T(stop_before_run_is_not_lost),
        T(a_handle_closed_in_its_own_callback_is_silent_afterwards),
        T(a_ready_handle_closed_by_another_callback_stays_silent),
        T(a_descriptor_can_be_opened_again_in_the_callback_that_closed_it),
        T(bytes_before_a_socket_error_are_read_before_the_error),
        T(a_pipe_without_reader_is_writable_and_write_says_epipe),
        T(a_paused_descriptor_gives_no_event),
        T(a_plain_file_is_refused_with_eperm),
        T(a_repeating_timer_can_close_itself),
        T(a_stopped_timer_does_not_fire),
        T(a_signal_reaches_its_function),
        T(posts_from_two_threads_all_arrive),
        T(another_thread_can_stop_the_loop),
        T(work_runs_on_another_thread_and_done_on_the_loop),
        T(the_end_of_a_child_is_told_once_and_not_reaped),
        T(a_process_that_does_not_exist_is_refused),
        cmocka_unit_test(destroy_closes_everything_left_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

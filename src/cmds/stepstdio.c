/* stepstdio.c: one poll loop: what the session tells, our standard input, signals (by a pipe), the
 * end of the allocation, and the few times that matter. Interrupts are srun's: the first Ctrl-C says
 * how the tasks stand, a second within a second sends them SIGINT, a third kills. See stepstdio.h. */
#include "cmds/stepstdio.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/idset.h"
#include "cmds/rawtty.h"
#include "cmds/stepout.h"
#include "spec/outcome.h"

#define AGAIN_MS 1000  /* between the two Ctrl-C */
#define PIECE 4096u    /* a pipe that polls writable takes that much */
#define CTRL_P 0x10
#define CTRL_Q 0x11

static int signal_pipe[2] = {-1, -1};
static const int forwarded[] = {SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};

static int64_t now_ms(void)
{
    return cw_clock_mono_ns() / CW_NS_PER_MS;
}

static void on_signal(int signo)
{
    int saved = errno;
    unsigned char c = (unsigned char)signo;
    ssize_t n = write(signal_pipe[1], &c, 1);
    (void)n;
    errno = saved;
}

static void say(const struct cw_stepstdio *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void say(const struct cw_stepstdio *x, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cw_autofree char *text = cw_xvasprintf(fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s: %s%s\n", x->cli->name, text, x->pty ? "\r" : "");
}

/* ---- output --------------------------------------------------------------------------------- */

static void take_signals(struct cw_stepstdio *x);

/* Waits for a slow reader, and hears signals meanwhile. */
static int write_fd(bool err, const void *p, size_t n, void *arg)
{
    struct cw_stepstdio *x = arg;
    int fd = err ? STDERR_FILENO : STDOUT_FILENO;
    const char *at = p;
    while (n > 0 && x->write_error == 0) {
        struct pollfd v[2] = {{.fd = fd, .events = POLLOUT}, {.fd = signal_pipe[0], .events = POLLIN}};
        if (poll(v, 2, -1) < 0 && errno != EINTR)
            return x->write_error = -errno;
        if (v[1].revents & POLLIN)
            take_signals(x);
        if (!(v[0].revents & (POLLOUT | POLLERR | POLLHUP | POLLNVAL)))
            continue;
        ssize_t done = write(fd, at, n < PIECE ? n : PIECE);
        if (done < 0 && errno != EINTR && errno != EAGAIN) {
            x->write_error = -errno;
            if (errno != EPIPE)
                say(x, "standard %s: %s", err ? "error" : "output", strerror(errno));
            cw_stepsession_ctl(x->session, CW__STEP_VERB__STEP_KILL, 0, 0, 0);
            x->killing = true;
        } else if (done > 0) {
            at += done;
            n -= (size_t)done;
        }
    }
    return x->write_error;
}

static void on_output(uint32_t rank, bool err, const void *p, size_t n, void *arg)
{
    struct cw_stepstdio *x = arg;
    cw_stepout_add(x->out, rank, err, p, n);
    if (cw_stepout_holds(x->out) && x->flush_at_ms == 0)
        x->flush_at_ms = now_ms() + CW_STEPOUT_HOLD_MS;
}

static void kill_tasks(struct cw_stepstdio *x, const char *why)
{
    if (x->killing)
        return;
    x->killing = true;
    if (why != NULL)
        say(x, "%s", why);
    cw_stepsession_ctl(x->session, CW__STEP_VERB__STEP_KILL, 0, 0, 0);
}

static void on_ended(const Cw__StepTaskEnd *e, void *arg)
{
    struct cw_stepstdio *x = arg;
    int code = e->has_signal ? 128 + (int)(e->signal & 0x7f) : (int)(e->exit_code & 0xff);
    cw_stepout_flush(x->out, e->rank);
    if (e->rank < x->ntasks)
        x->task_ended[e->rank] = 1;
    x->n_ended++;
    if (code > x->worst)
        x->worst = code;
    if (e->message != NULL && e->message[0] != '\0')
        say(x, "task %u: %s", e->rank, e->message);
    else if (e->has_signal && !x->quiet && !x->pty)
        say(x, "task %u: killed by signal %u (%s)%s", e->rank, e->signal,
            strsignal((int)e->signal), e->has_core_dumped && e->core_dumped ? ", core dumped" : "");
    else if (code != 0 && x->ntasks > 1 && !x->quiet)
        say(x, "task %u: exit code %d", e->rank, code);
    if (x->n_ended >= x->ntasks)
        return;
    if (code != 0 && x->kill_on_bad_exit)
        kill_tasks(x, "a task has ended badly, the others are killed");
    if (x->wait_s > 0 && x->kill_at_ms == 0)
        x->kill_at_ms = now_ms() + (int64_t)x->wait_s * 1000;
}

static void on_notice(const char *node, const char *text, void *arg)
{
    say(arg, "%s: %s", node, text);
}

void cw_stepstdio_ops(struct cw_stepsession_ops *ret)
{
    *ret = (struct cw_stepsession_ops){on_output, on_ended, on_notice};
}

/* ---- signals -------------------------------------------------------------------------------- */

static void show_tasks(struct cw_stepstdio *x)
{
    cw_autobuf struct cw_buf b = {0};
    struct cw_idset run = {0};
    for (uint32_t r = 0; r < x->ntasks; r++)
        if (!x->task_ended[r])
            cw_idset_add(&run, r, r);
    cw_idset_format(&run, &b);
    cw_idset_fini(&run);
    say(x, "interrupt: task%s %s running; once more within 1 s to end %s", x->ntasks == 1 ? "" : "s",
        cw_buf_str(&b), x->ntasks == 1 ? "it" : "them");
}

static void on_interrupt(struct cw_stepstdio *x)
{
    int64_t now = now_ms();
    bool quick = x->n_int > 0 && now - x->int_ms <= AGAIN_MS;
    x->int_ms = now;
    x->n_int = quick || x->n_int >= 2 ? x->n_int + 1 : 1;
    if (x->n_int == 1) {
        show_tasks(x);
    } else if (x->n_int == 2) {
        cw_stepsession_ctl(x->session, CW__STEP_VERB__STEP_SIGNAL, SIGINT, 0, 0);
        x->kill_at_ms = now + 1000; /* what does not heed it */
    } else {
        cw_stepsession_ctl(x->session, CW__STEP_VERB__STEP_KILL, SIGKILL, 0, 0);
        x->killing = true;
    }
}

static void window(struct cw_stepstdio *x)
{
    unsigned rows, cols;
    cw_rawtty_size(STDIN_FILENO, &rows, &cols);
    if (x->pty && rows > 0)
        cw_stepsession_ctl(x->session, CW__STEP_VERB__STEP_WINDOW, 0, rows, cols);
}

static void take_signals(struct cw_stepstdio *x)
{
    unsigned char c[64];
    ssize_t n = read(signal_pipe[0], c, sizeof c);
    for (ssize_t i = 0; i < n; i++) {
        if (c[i] == SIGINT)
            on_interrupt(x);
        else if (c[i] == SIGWINCH)
            window(x);
        else
            cw_stepsession_ctl(x->session, CW__STEP_VERB__STEP_SIGNAL, c[i], 0, 0);
    }
}

int cw_stepstdio_begin(struct cw_stepstdio *x, struct cw_error *err)
{
    struct sigaction sa = {.sa_handler = on_signal};
    x->task_ended = cw_xcalloc(x->ntasks + 1, 1);
    x->out = cw_stepout_create(x->ntasks, x->label, x->unbuffered, write_fd, x);
    if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return cw_fail_errno(err, -errno, "pipe");
    if (x->pty) {
        int rc = cw_rawtty_enter(STDIN_FILENO, err);
        if (rc < 0)
            return rc;
        sigaction(SIGWINCH, &sa, NULL);
    }
    sigaction(SIGINT, &sa, NULL);
    for (size_t i = 0; i < CW_ARRAY_LEN(forwarded); i++)
        sigaction(forwarded[i], &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTIN, SIG_IGN); /* in the background our input ends instead of stopping us */
    return 0;
}

void cw_stepstdio_end(struct cw_stepstdio *x)
{
    cw_rawtty_leave();
    cw_stepout_destroy(x->out);
    free(x->task_ended);
    x->out = NULL;
    x->task_ended = NULL;
}

/* ---- input ---------------------------------------------------------------------------------- */

/* Takes the keys that leave the step out of what was typed; true: they were there. */
static bool keys_leave(struct cw_stepstdio *x, char *p, ssize_t *n)
{
    ssize_t kept = 0;
    for (ssize_t i = 0; i < *n; i++) {
        if (x->ctrl_p && p[i] == CTRL_Q) {
            *n = kept > 0 && p[kept - 1] == CTRL_P ? kept - 1 : kept;
            return true;
        }
        x->ctrl_p = p[i] == CTRL_P;
        p[kept++] = p[i];
    }
    *n = kept;
    return false;
}

static void take_input(struct cw_stepstdio *x)
{
    char p[16384];
    size_t room = cw_stepsession_room(x->session);
    ssize_t n = read(STDIN_FILENO, p, room < sizeof p ? room : sizeof p);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0 && x->detach_keys && keys_leave(x, p, &n)) {
        x->detached = true;
        return;
    }
    x->stdin_eof = n <= 0;
    cw_stepsession_write(x->session, p, n > 0 ? (size_t)n : 0, n <= 0 && !x->keep_input);
}

/* ---- the loop ------------------------------------------------------------------------------- */

static int next_timeout(const struct cw_stepstdio *x)
{
    int64_t at = INT64_MAX, now = now_ms();
    const int64_t times[] = {x->kill_at_ms, x->flush_at_ms, x->timeout_at_ms};
    for (size_t i = 0; i < CW_ARRAY_LEN(times); i++)
        if (times[i] > 0 && times[i] < at)
            at = times[i];
    return at == INT64_MAX ? -1 : at <= now ? 0 : at - now > 60000 ? 60000 : (int)(at - now);
}

static void act_on_time(struct cw_stepstdio *x)
{
    int64_t now = now_ms();
    if (x->flush_at_ms > 0 && x->flush_at_ms <= now) {
        x->flush_at_ms = 0;
        cw_stepout_flush(x->out, UINT32_MAX);
    }
    if (x->kill_at_ms > 0 && x->kill_at_ms <= now) {
        x->kill_at_ms = 0;
        kill_tasks(x, x->n_int > 1 ? NULL : "the time after the first end is over (--wait)");
    }
    if (x->timeout_at_ms > 0 && x->timeout_at_ms <= now) {
        x->timeout_at_ms = 0;
        x->late = true;
        kill_tasks(x, "its time is over");
    }
}

static int exit_code(struct cw_stepstdio *x)
{
    struct cw_stepresult r;
    cw_stepsession_result(x->session, &r);
    if (r.message[0] != '\0')
        say(x, "%s", r.message);
    if (x->late)
        return CW_EXIT_TIME_LIMIT;
    if (x->write_error == -EPIPE)
        return 128 + SIGPIPE;
    if (x->write_error != 0)
        return CW_EXIT_REFUSED;
    Cw__AttemptRecord at = CW__ATTEMPT_RECORD__INIT;
    at.has_cause = true;
    at.cause = r.cause;
    at.has_exit_code = true;
    at.exit_code = (uint32_t)x->worst;
    /* PEER: ended because another task had, as was asked for. */
    bool own_end = r.cause == CW__CAUSE__CAUSE_EXIT || r.cause == CW__CAUSE__CAUSE_SIGNAL ||
                   r.cause == CW__CAUSE__CAUSE_PEER;
    if (own_end || (r.cause == CW__CAUSE__CAUSE_CANCEL && x->killing))
        return r.incomplete && x->worst == 0 && x->n_ended < x->ntasks ? CW_EXIT_NODE_FAIL : x->worst;
    if (!x->quiet && r.cause != CW__CAUSE__CAUSE_LAUNCH_USER)
        say(x, "ended: %s", cw_cause_name(r.cause));
    return cw_outcome_exit_status(&at);
}

/* Our own allocation has ended: what its nodes still tell comes first. */
static bool allocation_over(struct cw_stepstdio *x, int *ret_code)
{
    char text[256];
    if (x->keeper == NULL || !cw_allockeeper_ended(x->keeper, ret_code, text, sizeof text))
        return false;
    say(x, "the allocation has ended: %s", text);
    return true;
}

static bool one_round(struct cw_stepstdio *x)
{
    bool input = x->input && !x->stdin_eof && cw_stepsession_room(x->session) > 0;
    struct pollfd v[] = {{.fd = cw_stepsession_fd(x->session), .events = POLLIN},
                         {.fd = signal_pipe[0], .events = POLLIN},
                         {.fd = input ? STDIN_FILENO : -1, .events = POLLIN}};
    int n = poll(v, CW_ARRAY_LEN(v), next_timeout(x));
    if (n < 0 && errno != EINTR)
        return true;
    if (n > 0 && v[1].revents != 0)
        take_signals(x);
    if (n > 0 && v[2].revents != 0)
        take_input(x);
    act_on_time(x);
    return cw_stepsession_run(x->session) || x->detached;
}

int cw_stepstdio_run(struct cw_stepstdio *x, struct cw_stepsession *s)
{
    int code;
    x->session = s;
    if (x->timeout_s > 0)
        x->timeout_at_ms = now_ms() + (int64_t)x->timeout_s * 1000;
    if (!x->input && !x->keep_input)
        cw_stepsession_write(s, NULL, 0, true);
    window(x);
    while (!one_round(x))
        ;
    cw_stepout_flush(x->out, UINT32_MAX);
    if (x->detached) {
        say(x, "detached");
        return CW_EXIT_OK;
    }
    code = exit_code(x);
    int job_code;
    if (code == CW_EXIT_NODE_FAIL && allocation_over(x, &job_code))
        code = job_code;
    return code;
}

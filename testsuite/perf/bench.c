/* Small loads for testsuite/perf/run.sh: the machine's own limits, and batched submits over one
 * connection. usage: bench fdatasync DIR N       syncs of one page, per second bench spawn N
 * PARALLEL      bare posix_spawn of /bin/true, per second bench spawn-latency N       posix_spawn
 * to the first instruction of this program: p50 p99 in us bench submit N BATCH        jobs
 * submitted held, BATCH a request, on one connection, per second bench latency N             submit
 * to the first instruction of the job: p50 p99 in us bench stamp FIFO            (what the latency
 * jobs run) Times are wall times of the monotonic clock (of the real clock between processes). */
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/client.h"

extern char **environ;

static int die(const char *what, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

static long number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || n <= 0)
        die(text, "a positive number");
    return n;
}

static double seconds_since(int64_t start)
{
    return (double)(cw_clock_mono_ns() - start) / 1e9;
}

static int bench_fdatasync(const char *dir, long n)
{
    char page[4096] = {0};
    cw_autofree char *path = cw_xasprintf("%s/bench.XXXXXX", dir);
    int fd = mkstemp(path);
    if (fd < 0)
        die(path, strerror(errno));
    int64_t start = cw_clock_mono_ns();
    for (long i = 0; i < n; i++)
        if (pwrite(fd, page, sizeof(page), 0) != (ssize_t)sizeof(page) || fdatasync(fd) != 0)
            die(path, strerror(errno));
    printf("%.1f\n", (double)n / seconds_since(start));
    unlink(path);
    close(fd);
    return 0;
}

static pid_t spawn(const char *file, char *const argv[])
{
    pid_t pid;
    int rc = posix_spawn(&pid, file, NULL, NULL, argv, environ);
    if (rc != 0)
        die(file, strerror(rc));
    return pid;
}

static int bench_spawn(long n, long parallel)
{
    char *argv[] = {"true", NULL};
    int64_t start = cw_clock_mono_ns();
    long live = 0;
    for (long i = 0; i < n; i++) {
        if (live == parallel) {
            wait(NULL);
            live--;
        }
        spawn("/bin/true", argv);
        live++;
    }
    while (live-- > 0)
        wait(NULL);
    printf("%.1f\n", (double)n / seconds_since(start));
    return 0;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void print_quantiles(int64_t *ns, long n)
{
    qsort(ns, (size_t)n, sizeof(*ns), compare);
    printf("%" PRId64 " %" PRId64 "\n", ns[n / 2] / 1000, ns[n * 99 / 100] / 1000);
}

static int stamp(const char *fifo)
{
    int64_t now = cw_clock_real_ns();
    int fd = open(fifo, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, &now, sizeof(now)) != (ssize_t)sizeof(now))
        die(fifo, strerror(errno));
    return 0;
}

static int make_fifo(char *path, size_t cap)
{
    snprintf(path, cap, "/tmp/bench-fifo.%d", (int)getpid());
    if (mkfifo(path, 0666) != 0)
        die(path, strerror(errno));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        die(path, strerror(errno));
    return fd;
}

static int64_t read_stamp(int fd)
{
    int64_t t;
    if (read(fd, &t, sizeof(t)) != (ssize_t)sizeof(t))
        die("fifo", "short read");
    return t;
}

static int bench_spawn_latency(const char *self, long n)
{
    char fifo[64];
    int fd = make_fifo(fifo, sizeof(fifo));
    int64_t *ns = cw_xcalloc((size_t)n, sizeof(*ns));
    char *argv[] = {"bench", "stamp", fifo, NULL};
    for (long i = 0; i < n; i++) {
        int64_t start = cw_clock_real_ns();
        pid_t pid = spawn(self, argv);
        ns[i] = read_stamp(fd) - start;
        waitpid(pid, NULL, 0);
    }
    print_quantiles(ns, n);
    unlink(fifo);
    free(ns);
    return 0;
}

struct job {
    Cw__SubmitItem item;
    Cw__JobSpec spec;
    Cw__Payload payload;
    uint8_t key[16];
};

static void make_job(struct job *j, char **argv, size_t n_argv, bool hold)
{
    cw__submit_item__init(&j->item);
    cw__job_spec__init(&j->spec);
    cw__payload__init(&j->payload);
    if (getrandom(j->key, sizeof(j->key), 0) != (ssize_t)sizeof(j->key))
        die("getrandom", strerror(errno));
    j->item.request_key.data = j->key;
    j->item.request_key.len = sizeof(j->key);
    j->item.spec = &j->spec;
    j->item.payload = &j->payload;
    j->spec.name = "bench";
    j->spec.workdir = "/tmp";
    j->spec.stdout_path = "/dev/null";
    j->spec.has_hold = j->spec.hold = hold;
    j->payload.argv = argv;
    j->payload.n_argv = n_argv;
}

static void submit(struct cw_client *c, struct job *jobs, size_t n, struct cw_arena *a)
{
    struct cw_error err;
    ProtobufCMessage *m;
    Cw__SubmitItem **items = cw_arena_alloc(a, n * sizeof(Cw__SubmitItem *));
    for (size_t i = 0; i < n; i++)
        items[i] = &jobs[i].item;
    Cw__SubmitRequest req = CW__SUBMIT_REQUEST__INIT;
    req.n_items = n;
    req.items = items;
    if (cw_client_call(c, CW_KIND_SUBMIT, &req.base, 0, a, &m, &err) != 0)
        die("submit", err.text);
    const Cw__SubmitReply *r = (const Cw__SubmitReply *)m;
    for (size_t i = 0; i < r->n_results; i++)
        if (r->results[i]->failure != NULL)
            die("submit", r->results[i]->failure->text);
    cw_arena_reset(a);
}

static struct cw_client *connect_client(void)
{
    struct cw_error err;
    struct cw_client *c;
    if (cw_client_open(NULL, &c, &err) != 0)
        die("client", err.text);
    return c;
}

static int bench_submit(long n, long batch)
{
    char *argv[] = {"true"};
    struct cw_client *c = connect_client();
    struct cw_arena *a = cw_arena_create();
    struct job *jobs = cw_xcalloc((size_t)batch, sizeof(*jobs));
    int64_t start = cw_clock_mono_ns();
    for (long done = 0; done < n; done += batch) {
        for (long i = 0; i < batch; i++)
            make_job(&jobs[i], argv, 1, true);
        submit(c, jobs, (size_t)batch, a);
    }
    printf("%.1f\n", (double)n / seconds_since(start));
    free(jobs);
    cw_arena_destroy(a);
    cw_client_close(c);
    return 0;
}

static int bench_latency(char *self, long n)
{
    char fifo[64];
    int fd = make_fifo(fifo, sizeof(fifo));
    char *argv[] = {self, "stamp", fifo};
    struct cw_client *c = connect_client();
    struct cw_arena *a = cw_arena_create();
    int64_t *ns = cw_xcalloc((size_t)n, sizeof(*ns));
    for (long i = 0; i < n; i++) {
        struct job j;
        make_job(&j, argv, 3, false);
        int64_t start = cw_clock_real_ns();
        submit(c, &j, 1, a);
        ns[i] = read_stamp(fd) - start;
    }
    print_quantiles(ns, n);
    unlink(fifo);
    free(ns);
    cw_arena_destroy(a);
    cw_client_close(c);
    return 0;
}

int main(int argc, char **argv)
{
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len < 0)
        die("/proc/self/exe", strerror(errno));
    self[len] = '\0';
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "stamp") == 0 && argc == 3)
        return stamp(argv[2]);
    if (strcmp(what, "fdatasync") == 0 && argc == 4)
        return bench_fdatasync(argv[2], number(argv[3]));
    if (strcmp(what, "spawn") == 0 && argc == 4)
        return bench_spawn(number(argv[2]), number(argv[3]));
    if (strcmp(what, "spawn-latency") == 0 && argc == 3)
        return bench_spawn_latency(self, number(argv[2]));
    if (strcmp(what, "submit") == 0 && argc == 4)
        return bench_submit(number(argv[2]), number(argv[3]));
    if (strcmp(what, "latency") == 0 && argc == 3)
        return bench_latency(self, number(argv[2]));
    return die("usage",
               "bench fdatasync|spawn|spawn-latency|submit|latency ... (see the head of bench.c)");
}

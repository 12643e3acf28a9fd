/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A periodic loop in a real-time thread (where that is allowed) that records how late it starts
 * and how late it is done. Another thread shows the figures once a second.
 *
 *     ./loop --duration 5 --period-us 1000 --out loop.tailbound.jsonl
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <tailbound.h>

enum { PRIORITY = 20 };

struct job {
    tb_recorder *recorder;
    int64_t end_ns;
    volatile double result; /* what the cycle computes */
};

static void sleep_until(int64_t due_ns)
{
    struct timespec t = {due_ns / 1000000000, due_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
}

static void *loop(void *argument)
{
    struct job *job = argument;
    for (;;) {
        const int64_t due = tb_next_due(job->recorder);
        if (due >= job->end_ns) {
            break;
        }
        sleep_until(due);
        tb_cycle_start(job->recorder, due);
        for (int i = 1; i < 2000; i++) { /* the work */
            job->result += 1.0 / i;
        }
        tb_cycle_end(job->recorder);
    }
    tb_finish(job->recorder);
    return NULL;
}

/* A thread that is real-time from its first instruction, or an ordinary one. */
static int start(pthread_t *thread, struct job *job, int realtime)
{
    pthread_attr_t attributes;
    const struct sched_param priority = {.sched_priority = PRIORITY};
    pthread_attr_init(&attributes);
    if (realtime) {
        pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
        pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
        pthread_attr_setschedparam(&attributes, &priority);
    }
    const int error = pthread_create(thread, &attributes, loop, job);
    pthread_attr_destroy(&attributes);
    return error;
}

/* May this process have real-time threads? */
static int may_be_realtime(void)
{
    const struct sched_param priority = {.sched_priority = PRIORITY}, ordinary = {0};
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) != 0) {
        return 0;
    }
    pthread_setschedparam(pthread_self(), SCHED_OTHER, &ordinary);
    return 1;
}

static void show(const char *name, const tb_summary *s)
{
    if (s->n == 0) {
        return;
    }
    printf("  %-10s n %" PRIu64 ", missed %" PRIu64 ", min %.1f us, max %.1f us", name, s->n,
           s->missed, (double)s->min_ns / 1e3, (double)s->max_ns / 1e3);
    if (!isnan(s->p99_ns)) {
        printf(", p99 %.1f us", s->p99_ns / 1e3);
    }
    printf(", beyond the limit %" PRIu64 "\n", s->beyond);
}

int main(int argc, char **argv)
{
    double duration_s = 5.0, period_us = 1000.0;
    const char *out = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--duration") == 0) {
            duration_s = strtod(argv[i + 1], NULL);
        } else if (strcmp(argv[i], "--period-us") == 0) {
            period_us = strtod(argv[i + 1], NULL);
        } else if (strcmp(argv[i], "--out") == 0) {
            out = argv[i + 1];
        } else {
            argc = 0;
        }
    }
    if (argc % 2 == 0 || !(duration_s > 0.0) || !(period_us > 0.0)) {
        fprintf(stderr, "usage: %s [--duration S] [--period-us US] [--out FILE]\n", argv[0]);
        return 2;
    }
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        fprintf(stderr, "memory is not locked: %s\n", strerror(errno));
    }
    const int realtime = may_be_realtime();

    tb_config config;
    tb_config_init(&config, sizeof config);
    config.name = "example-c";
    config.policy = realtime ? "fifo:20" : "other";
    config.period_ns = (int64_t)(period_us * 1e3);
    config.start_late_ns = config.period_ns / 2;
    config.completion_late_ns = config.period_ns;
    tb_recorder *recorder = tb_open(&config);
    if (recorder == NULL) {
        fprintf(stderr, "error: %s\n", tb_last_error());
        return 3;
    }

    struct job job = {recorder, tb_now(recorder) + (int64_t)(duration_s * 1e9), 0.0};
    pthread_t thread;
    if (start(&thread, &job, realtime) != 0) {
        fprintf(stderr, "error: the thread cannot be started\n");
        return 3;
    }
    tb_figures figures;
    do {
        struct timespec second = {1, 0};
        nanosleep(&second, NULL);
        if (tb_snapshot(recorder, &figures, sizeof figures) == TB_OK) {
            printf("%" PRIu64 " activations\n", figures.activations);
            show("start", &figures.start);
            show("completion", &figures.completion);
        }
    } while (tb_now(recorder) < job.end_ns);
    pthread_join(thread, NULL);

    int status = 0;
    if (out != NULL && tb_write_run(recorder, out) != TB_OK) {
        fprintf(stderr, "error: %s\n", tb_last_error());
        status = 3;
    }
    tb_close(recorder);
    return status;
}

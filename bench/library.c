/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the library's hot calls cost: ns a cycle, the least and the median of many rounds, with
 * times passed in, with the clock read by the library, and while another thread takes snapshots.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tailbound.h>

enum { ROUNDS = 41, CYCLES = 20000 };

static atomic_int over;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *watch(void *recorder)
{
    tb_figures figures;
    while (!atomic_load(&over)) {
        tb_snapshot(recorder, &figures, sizeof figures);
    }
    return NULL;
}

static void given(tb_recorder *recorder, int64_t *due)
{
    for (int i = 0; i < CYCLES; i++, *due += 100000) {
        const int64_t woke = *due + 3000 + i % 64 * 97;
        tb_cycle_start_at(recorder, *due, woke);
        tb_cycle_end_at(recorder, woke + 20000);
    }
}

static void read_here(tb_recorder *recorder, int64_t *due)
{
    for (int i = 0; i < CYCLES; i++, *due += 100000) {
        tb_cycle_start(recorder, *due);
        tb_cycle_end(recorder);
    }
}

static void clock_only(tb_recorder *recorder, int64_t *due)
{
    (void)due;
    for (int i = 0; i < CYCLES; i++) {
        tb_now(recorder);
        tb_now(recorder);
    }
}

static void measure(const char *what, tb_recorder *recorder,
                    void (*work)(tb_recorder *, int64_t *), int64_t *due)
{
    double ns[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        const int64_t begin = now();
        work(recorder, due);
        ns[i] = (double)(now() - begin) / CYCLES;
    }
    qsort(ns, ROUNDS, sizeof ns[0], by_size);
    printf("%-46s %7.1f %7.1f\n", what, ns[0], ns[ROUNDS / 2]);
}

int main(void)
{
    tb_config config;
    tb_config_init(&config, sizeof config);
    config.period_ns = 100000;
    tb_recorder *recorder = tb_open(&config);
    if (recorder == NULL) {
        fprintf(stderr, "error: %s\n", tb_last_error());
        return 3;
    }
    int64_t due = now();
    printf("%-46s %7s %7s\n", "ns a cycle (start and end)", "least", "median");
    measure("two clock reads through the library", recorder, clock_only, &due);
    measure("times passed in", recorder, given, &due);
    measure("clock read by the library", recorder, read_here, &due);
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch, recorder) == 0) {
        measure("the same, while another thread takes snapshots", recorder, read_here, &due);
        atomic_store(&over, 1);
        pthread_join(thread, NULL);
    }
    tb_close(recorder);
    return 0;
}

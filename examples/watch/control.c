// SPDX-License-Identifier: MIT OR Apache-2.0
// A control loop with two mistakes that no measurement of its wake-ups shows: within its cycle it takes a
// mutex that an ordinary thread holds while it computes, and it asks a service that answers after 3 ms.
// `tailbound watch -- ./control` names both. Needs root for SCHED_FIFO.
//
//   cc -O2 -pthread -o control control.c
//   control [CYCLES] [PERIOD_US] [SERVICE_US]
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static int ask[2], answer[2];
static long service_us = 3000;

static void sleep_us(long us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static long since_us(const struct timespec *from) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - from->tv_sec) * 1000000 + (now.tv_nsec - from->tv_nsec) / 1000;
}

static void compute_us(long us) {
    struct timespec from;
    clock_gettime(CLOCK_MONOTONIC, &from);
    while (since_us(&from) < us) {
    }
}

// An ordinary thread: prepares set points, and holds the lock meanwhile.
static void *planner(void *arg) {
    (void)arg;
    pthread_setname_np(pthread_self(), "planner");
    for (;;) {
        pthread_mutex_lock(&state_lock);
        compute_us(800);
        pthread_mutex_unlock(&state_lock);
        sleep_us(23000);
    }
    return NULL;
}

// A service: answers after a while.
static void *service(void *arg) {
    (void)arg;
    pthread_setname_np(pthread_self(), "service");
    char c;
    while (read(ask[0], &c, 1) == 1) {
        sleep_us(service_us);
        if (write(answer[1], &c, 1) != 1) {
            break;
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    long cycles = argc > 1 ? atol(argv[1]) : 500;
    long period_us = argc > 2 ? atol(argv[2]) : 10000;
    service_us = argc > 3 ? atol(argv[3]) : 3000;
    // A loop that runs away is ended by the kernel.
    struct rlimit guard = {900000, 1000000};
    setrlimit(RLIMIT_RTTIME, &guard);
    mlockall(MCL_CURRENT | MCL_FUTURE);
    if (pipe(ask) || pipe(answer)) {
        perror("pipe");
        return 1;
    }
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, planner, NULL);
    pthread_create(&threads[1], NULL, service, NULL);
    pthread_setname_np(pthread_self(), "control");
    struct sched_param parameters = {.sched_priority = 60};
    if (sched_setscheduler(0, SCHED_FIFO, &parameters)) {
        perror("SCHED_FIFO");
        return 1;
    }
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (long i = 0; i < cycles; i++) {
        due.tv_nsec += period_us * 1000;
        while (due.tv_nsec >= 1000000000) {
            due.tv_nsec -= 1000000000;
            due.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        compute_us(200);
        pthread_mutex_lock(&state_lock);
        compute_us(50);
        pthread_mutex_unlock(&state_lock);
        char c = 'x';
        if (write(ask[1], &c, 1) != 1 || read(answer[0], &c, 1) != 1) {
            return 1;
        }
        compute_us(100);
    }
    return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// What a wake-up and a system call cost in CPU time: two threads on one CPU that hand a byte to and fro
// through pipes, then one of them calls getppid(2).
//
//   blame-cost CPU ROUND_TRIPS CALLS
//
// Prints its pid, waits for a line, then prints "ROUND_TRIP_NS CALL_NS": CPU time of both threads for one round
// trip (2 wake-ups, 2 switches, 4 system calls), and of one for a call; of the quickest of pieces of 500, because
// what else the machine does only ever adds.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PIECE 500

static int there[2], back[2];
static long trips;

static double used_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void *other(void *unused)
{
    char c;
    (void)unused;
    while (read(there[0], &c, 1) == 1 && c != 'q')
        if (write(back[1], &c, 1) != 1)
            break;
    return NULL;
}

static void trip(long n)
{
    char c = 'x';
    for (long i = 0; i < n; i++)
        if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
            exit(1);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    cpu_set_t cpus;
    char line[16];
    if (argc != 4)
        return 2;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(argv[1]), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) || pipe(there) || pipe(back))
        return 1;
    trips = atol(argv[2]);
    long calls = atol(argv[3]);
    if (pthread_create(&thread, NULL, other, NULL))
        return 1;
    printf("%d\n", getpid());
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return 1;
    trip(trips / 10);
    double least_trip = 1e18, least_call = 1e18;
    for (long done = 0; done < trips; done += PIECE) {
        double begin = used_ns();
        trip(PIECE);
        double each = (used_ns() - begin) / PIECE;
        if (each < least_trip)
            least_trip = each;
    }
    for (long done = 0; done < calls; done += PIECE) {
        double begin = used_ns();
        for (long i = 0; i < PIECE; i++)
            syscall(SYS_getppid);
        double each = (used_ns() - begin) / PIECE;
        if (each < least_call)
            least_call = each;
    }
    printf("%.1f %.1f\n", least_trip, least_call);
    fflush(stdout);
    if (write(there[1], "q", 1) != 1)
        return 1;
    return pthread_join(thread, NULL);
}

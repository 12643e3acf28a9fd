/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The least a wake-up loop can do: sleep to an absolute time, read the clock, store the
 * difference. bench/cost.sh sets the cost of whole tools beside it.
 *
 *   reference CPU PRIORITY INTERVAL_US SECONDS
 *
 * Source: clock_nanosleep(2), sched_setscheduler(2), mlockall(2).
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: reference CPU PRIORITY INTERVAL_US SECONDS\n");
		return 2;
	}
	long interval_ns = atol(argv[3]) * 1000, n = atol(argv[4]) * 1000000000L / interval_ns;
	struct sched_param param = { .sched_priority = atoi(argv[2]) };
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[1]), &cpus);
	long *late_ns = calloc(n, sizeof *late_ns), max_ns = 0;
	if (!late_ns || mlockall(MCL_CURRENT | MCL_FUTURE) ||
	    sched_setaffinity(0, sizeof cpus, &cpus) ||
	    sched_setscheduler(0, SCHED_FIFO, &param)) {
		perror("reference");
		return 3;
	}
	struct timespec due, now;
	clock_gettime(CLOCK_MONOTONIC, &due);
	for (long i = 0; i < n; i++) {
		due.tv_nsec += interval_ns;
		for (; due.tv_nsec >= 1000000000; due.tv_sec++)
			due.tv_nsec -= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		late_ns[i] = (now.tv_sec - due.tv_sec) * 1000000000L + now.tv_nsec - due.tv_nsec;
	}
	for (long i = 0; i < n; i++)
		if (late_ns[i] > max_ns)
			max_ns = late_ns[i];
	printf("%ld wake-ups, latest %ld ns\n", n, max_ns);
	return 0;
}

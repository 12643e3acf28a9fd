// SPDX-License-Identifier: MIT OR Apache-2.0
// Programs that break one rule for real-time programs each, and one that breaks none: `rules MODE SECONDS`.
//
// A thread `ctl` of FIFO 50 wakes every 2 ms by an absolute sleep on CLOCK_MONOTONIC, with its memory locked,
// and does what MODE says in every tenth cycle. RLIMIT_RTTIME ends a thread that does not sleep.
// Source: docs/rules.md.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 2000000L

static const char *mode;
static int cycles;
static volatile int over;
static pthread_mutex_t lock;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile int news;
static sem_t first, second;
static char untouched[16 << 20] __attribute__((aligned(4096)));
static int file = -1;

static int is(const char *name) { return strcmp(mode, name) == 0; }

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void spin_ns(long ns)
{
	for (long end = now_ns() + ns; now_ns() < end;)
		;
}

// As a real-time thread may: whoever watches has found the thread when it goes on.
static void settle_ns(long ns)
{
	struct timespec t;

	ns += now_ns();
	t.tv_sec = ns / 1000000000L;
	t.tv_nsec = ns % 1000000000L;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void pause_ns(long ns)
{
	struct timespec t = { ns / 1000000000L, ns % 1000000000L };

	nanosleep(&t, NULL);
}

static void policy(int policy, int priority)
{
	struct sched_param param = { priority };

	sched_setscheduler(0, policy, &param);
}

// A fault of an ordinary thread, with which the kernel's monitor begins again, and one of a real-time thread.
static void refault(int k)
{
	policy(SCHED_OTHER, 0);
	untouched[(size_t)(2 * k) * 4096 % sizeof(untouched)] = 1;
	policy(SCHED_FIFO, 50);
	untouched[(size_t)(2 * k + 1) * 4096 % sizeof(untouched)] = 1;
}

__attribute__((noinline)) static void step(int k)
{
	struct timespec little = { 0, 100000 };

	if (is("fault"))
		untouched[(size_t)k * 4096 % sizeof(untouched)] = 1;
	if (is("refault"))
		refault(k);
	if (is("non-pi") || is("pi")) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	if (is("pipeline"))
		sem_post(&first);
	if (k % 10)
		return;
	if (is("relative"))
		clock_nanosleep(CLOCK_MONOTONIC, 0, &little, NULL);
	if (is("alloc")) {
		void *p = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		munmap(p, 1 << 16);
	}
	if (is("fsync") && pwrite(file, "x", 1, k) == 1)
		fsync(file);
}

static void *ctl(void *unused)
{
	struct timespec due;
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec every = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
	clockid_t clock = is("realtime") ? CLOCK_REALTIME : CLOCK_MONOTONIC;

	if (is("fault") || is("refault")) {
		// The kernel's own monitor begins with a fault of a thread that is not real-time yet.
		untouched[sizeof(untouched) - 1] = 1;
		policy(SCHED_FIFO, 50);
	}
	settle_ns(500000000L);
	// What comes before this is of the program's start.
	prctl(PR_SET_NAME, "ctl");
	timerfd_settime(timer, 0, &every, NULL);
	clock_gettime(clock, &due);
	for (int k = 0; k < cycles; k++) {
		if (is("read")) {
			unsigned long n;

			if (read(timer, &n, sizeof(n)) != sizeof(n))
				break;
		} else if (is("low-waker")) {
			pthread_mutex_lock(&lock);
			while (!news)
				pthread_cond_wait(&cond, &lock);
			news = 0;
			pthread_mutex_unlock(&lock);
		} else {
			due.tv_nsec += PERIOD_NS;
			if (due.tv_nsec >= 1000000000L) {
				due.tv_nsec -= 1000000000L;
				due.tv_sec++;
			}
			clock_nanosleep(clock, TIMER_ABSTIME, &due, NULL);
		}
		step(k);
	}
	over = 1;
	return unused;
}

// An ordinary thread that shares a lock with `ctl`, or wakes it.
static void *low(void *unused)
{
	prctl(PR_SET_NAME, "low");
	while (!over) {
		if (is("pipeline")) {
			sem_wait(&first);
			sem_post(&second);
			continue;
		}
		pthread_mutex_lock(&lock);
		if (is("low-waker")) {
			news = 1;
			pthread_mutex_unlock(&lock);
			pthread_cond_signal(&cond);
			pause_ns(PERIOD_NS);
			continue;
		}
		spin_ns(1000000);
		pthread_mutex_unlock(&lock);
		pause_ns(500000);
	}
	return unused;
}

static void *last(void *unused)
{
	settle_ns(300000000L);
	prctl(PR_SET_NAME, "last");
	while (!over)
		sem_wait(&second);
	return unused;
}

static pthread_t start(void *(*body)(void *), int priority)
{
	struct sched_param param = { priority };
	pthread_attr_t attr;
	pthread_t thread;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 18);
	if (priority) {
		pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
		pthread_attr_setschedparam(&attr, &param);
	}
	error = pthread_create(&thread, &attr, body, NULL);
	if (error) {
		fprintf(stderr, "pthread_create: %s\n", strerror(error));
		exit(3);
	}
	return thread;
}

static int slept;

static void *brief(void *unused)
{
	struct rusage before, after;

	prctl(PR_SET_NAME, "brief");
	getrusage(RUSAGE_THREAD, &before);
	pause_ns(1000000);
	getrusage(RUSAGE_THREAD, &after);
	// Where a virtual machine stands still at that moment, the time is over before the thread has left the CPU.
	slept += after.ru_nvcsw > before.ru_nvcsw;
	return unused;
}

// Threads that are gone before anybody can look them up; how many of them slept is written to a file.
static void short_lives(void)
{
	FILE *file;

	for (int k = 0; k < 20; k++)
		pthread_join(start(brief, 50), NULL);
	file = fopen("slept", "w");
	if (!file || fprintf(file, "%d", slept) < 1 || fclose(file))
		exit(3);
}

static void refused(void)
{
	struct sched_param param = { 50 };

	prctl(PR_SET_NAME, "refused");
	pause_ns(500000000L);
	if (setuid(65534) || sched_setscheduler(0, SCHED_FIFO, &param) == 0)
		exit(3);
	for (int k = 0; k < cycles; k++)
		pause_ns(PERIOD_NS);
}

int main(int argc, char **argv)
{
	struct rlimit guard = { 500000, 1000000 };
	pthread_mutexattr_t attr;
	pthread_t main_thread, other = 0, end = 0;

	if (argc != 3)
		return 2;
	mode = argv[1];
	cycles = (int)(atof(argv[2]) * 1e9 / PERIOD_NS);
	setrlimit(RLIMIT_RTTIME, &guard);
	if (is("refused")) {
		refused();
		return 0;
	}
	madvise(untouched, sizeof(untouched), MADV_NOHUGEPAGE);
	if (is("fsync"))
		file = open(".", O_TMPFILE | O_RDWR, 0600);
	if (!is("fault") && !is("refault") && mlockall(MCL_CURRENT | MCL_FUTURE))
		return 3;
	if (is("brief")) {
		short_lives();
		return 0;
	}
	pthread_mutexattr_init(&attr);
	if (is("pi"))
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &attr);
	sem_init(&first, 0, 0);
	sem_init(&second, 0, 0);
	int helped = is("non-pi") || is("pi") || is("low-waker") || is("pipeline");
	if (helped)
		other = start(low, 0);
	if (is("pipeline"))
		end = start(last, 40);
	main_thread = start(ctl, is("fault") || is("refault") ? 0 : 50);
	pthread_join(main_thread, NULL);
	sem_post(&first);
	sem_post(&second);
	if (helped)
		pthread_join(other, NULL);
	if (is("pipeline")) {
		sem_post(&second);
		pthread_join(end, NULL);
	}
	return 0;
}

// SPDX-License-Identifier: MIT OR Apache-2.0
// The first process of bench/theory-here.sh's guest: a run with a load, and `bound --theory here` beside it; the latter's answer goes
// to port 0xe9, QEMU's debug console, which has no interrupt that could be lost.
//
//   J<line>   the answer of `bound --theory here --json`
//   E<line>   what either wrote to standard error
//   ?N        the exit status of `bound`
//
// Words of the kernel's command line: load=NAME seconds=N settle=N (seconds before).
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT 0xe9

static FILE *out;

static ssize_t to_port(void *unused, const char *bytes, size_t n)
{
	(void)unused;
	for (size_t i = 0; i < n; i++)
		outb(bytes[i], PORT);
	return n;
}

// Copies a file line by line, each behind a letter.
static void copy(const char *path, char letter)
{
	FILE *in = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;

	if (!in)
		return;
	while (getline(&line, &room, in) > 0) {
		line[strcspn(line, "\n")] = 0;
		fprintf(out, "%c%s\n", letter, line);
	}
	free(line);
	fclose(in);
}

static pid_t start(char *const words[], const char *answer, const char *error)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	// As the lab does: the tasks of a load would hold off the beginning of both for seconds. Loads give it up by themselves.
	struct sched_param low = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &low))
		_exit(126);
	dup2(open(answer, O_CREAT | O_TRUNC | O_WRONLY, 0600), 1);
	dup2(open(error, O_CREAT | O_TRUNC | O_WRONLY, 0600), 2);
	chdir("/tmp");
	execv(words[0], words);
	_exit(127);
}

static int ended(pid_t wanted)
{
	int status;

	while (waitpid(wanted, &status, 0) != wanted)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	char *load = getenv("load"), *seconds = getenv("seconds"), *settle = getenv("settle");
	char length[32], longer[32];
	pid_t run, bound;

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	out = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = to_port });
	if (!out || ioperm(PORT, 1, 1)) {
		perror("port 0xe9");
		reboot(RB_AUTOBOOT);
	}
	sleep(settle ? atoi(settle) : 3);
	snprintf(length, sizeof(length), "%ss", seconds ? seconds : "1");
	snprintf(longer, sizeof(longer), "%ds", (seconds ? atoi(seconds) : 1) + 3);
	char *const runs[] = { "/tailbound", "run", "-q", "-i", "1ms", "-D", longer, "-L", load ? load : "none", "-o",
			       "/tmp/run.jsonl", NULL };
	run = start(runs, "/tmp/r", "/tmp/re");
	// Its warm-up is over then.
	sleep(2);
	char *const bounds[] = { "/tailbound", "bound", "--theory", "here", "--json", "-q", "-D", length, NULL };
	bound = start(bounds, "/tmp/j", "/tmp/e");
	fprintf(out, "?%d\n", ended(bound));
	copy("/tmp/j", 'J');
	copy("/tmp/e", 'E');
	ended(run);
	copy("/tmp/re", 'E');
	fprintf(out, "=end\n");
	fflush(out);
	sync();
	reboot(RB_AUTOBOOT);
	return 0;
}

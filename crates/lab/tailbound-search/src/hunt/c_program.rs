// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sequence of system calls as a C program, for those who debug a kernel without this one: the same calls with the
//! same numbers, in as many processes.
//!
//! Units: bytes, ns. The program takes the number of passes; without it, it goes on until it is ended.
//! It is the load (`calls` of `tailbound-load`) by the same calls, but its libraries and its memory are others: where a
//! find hangs on a few ns, the run file is what repeats it.

use std::fmt::Write as _;
use tailbound_core::order;

use tailbound_core::calls::{Call, Calls, Class, Op, SlotState};

const HEAD: &str = r#"#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_BYTES (1 << 20)
/* A call that is refused ends the program; a full pipe and an empty one are no refusal. */
#define CALL(nr, name, result) \
	do { \
		if ((result) < 0) \
			refused(nr, name); \
	} while (0)
#define MAY_WAIT(nr, name, result) \
	do { \
		if ((result) < 0 && errno != EAGAIN) \
			refused(nr, name); \
	} while (0)

static char buffer[CHUNK_BYTES];
static volatile char seen;

static void refused(int nr, const char *name)
{
	fprintf(stderr, "call %d, %s: %s\n", nr, name, strerror(errno));
	_exit(1);
}

static inline void *nothing(void *unused)
{
	return unused;
}

static inline size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

"#;

const TAIL: &str = r#"
int main(int argc, char **argv)
{
	long passes = argc > 1 ? atol(argv[1]) : -1;
	long tasks = TASKS;
	int status, failed = 0;

	(void)seen;
	memset(buffer, 0x55, sizeof(buffer));
	for (long task = 0; task < tasks; task++) {
		pid_t pid = fork();

		if (pid < 0)
			refused(0, "fork");
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (long n = 0; n != passes; n++)
				pass();
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
"#;

/// The program; `tasks` as the load has them (none: one for each CPU), `told` as a comment before it.
#[must_use]
pub fn c_program(calls: &Calls, tasks: Option<u64>, told: &[String]) -> String {
    let mut text = "// SPDX-License-Identifier: MIT OR Apache-2.0\n".to_owned();
    for line in told {
        text += &format!("// {}\n", line.replace(['\n', '\r', '\\'], " "));
    }
    text += HEAD;
    let tasks = tasks.map_or_else(|| "sysconf(_SC_NPROCESSORS_ONLN)".to_owned(), |n| n.to_string());
    text += &format!("#define TASKS {tasks}\n\nstatic void pass(void)\n{{\n");
    declare(calls, &mut text);
    let mut held = SlotState::default();
    for (nr, call) in calls.list().iter().enumerate() {
        let _never = writeln!(text, "\n\t/* {}: {call} */", nr + 1);
        // The load lets go what is in a slot before it fills it.
        if let Some((class, slot)) = call.places().next().filter(|_| makes(call)) {
            let_go(&held, class, slot, &mut text);
        }
        let lines = lines(call, &format!("{}, \"{call}\"", nr + 1));
        for line in lines.trim_matches('\n').lines() {
            let _never = writeln!(text, "\t{line}");
        }
        let _of_a_whole_sequence = held.after(call);
    }
    text += "\n\t/* Each pass is as the first. */\n";
    for class in Class::ALL {
        for slot in held.slots(class) {
            let_go(&held, class, slot, &mut text);
        }
    }
    text + "}\n" + TAIL
}

fn makes(call: &Call) -> bool {
    tailbound_core::calls::form_of(call.op).makes.is_some()
}

fn declare(calls: &Calls, text: &mut String) {
    let mut all: Vec<String> = Vec::new();
    for (class, slot) in calls.list().iter().flat_map(Call::places) {
        let line = match class {
            Class::Memory => format!("\tchar *m{slot};\n\tsize_t m{slot}_bytes;\n"),
            Class::File => format!("\tint f{slot};\n"),
            Class::Pipe => format!("\tint p{slot}[2];\n"),
            Class::Timer => format!("\tint t{slot};\n"),
        };
        if !all.contains(&line) {
            all.push(line);
        }
    }
    order::by(&mut all, Ord::cmp);
    text.push_str(&all.concat());
}

fn let_go(held: &SlotState, class: Class, slot: u8, text: &mut String) {
    if !held.holds(class, slot) {
        return;
    }
    *text += &match class {
        Class::Memory => format!("\tmunmap(m{slot}, m{slot}_bytes);\n"),
        Class::File => format!("\tclose(f{slot});\n"),
        Class::Pipe => format!("\tclose(p{slot}[0]);\n\tclose(p{slot}[1]);\n"),
        Class::Timer => format!("\tclose(t{slot});\n"),
    };
}

/// The statements of one call; `at` are its number and words, as a refusal tells them.
fn lines(call: &Call, at: &str) -> String {
    let (slot, second, n) = (call.slot(0), call.slot(1), call.number());
    match call.op {
        Op::Map
        | Op::MapFile
        | Op::Touch
        | Op::Look
        | Op::Protect
        | Op::Drop
        | Op::Huge
        | Op::Lock
        | Op::Unlock
        | Op::Resize
        | Op::Unmap => memory(call, at),
        Op::Create => {
            format!("f{slot} = memfd_create(\"calls\", MFD_CLOEXEC);\nCALL({at}, f{slot});")
        }
        Op::Pwrite | Op::Pread | Op::Truncate | Op::Punch | Op::Copy | Op::Fsync | Op::Close => {
            file(call.op, slot, second, n, at)
        }
        Op::Pipe => format!("CALL({at}, pipe2(p{slot}, O_CLOEXEC | O_NONBLOCK));"),
        Op::Socketpair => format!(
            "CALL({at}, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p{slot}));"
        ),
        Op::Send => format!("MAY_WAIT({at}, write(p{slot}[1], buffer, {n}));"),
        Op::Receive => format!("MAY_WAIT({at}, read(p{slot}[0], buffer, {n}));"),
        Op::Shut => format!("close(p{slot}[0]);\nclose(p{slot}[1]);"),
        Op::Timer => {
            format!("t{slot} = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);\nCALL({at}, t{slot});")
        }
        Op::Arm => format!(
            "CALL({at}, timerfd_settime(t{slot}, 0, &(struct itimerspec){{ .it_value.tv_nsec = {n} }}, NULL));"
        ),
        Op::Disarm => format!("close(t{slot});"),
        Op::Fork => format!(
            "{{\n\tpid_t pid = fork();\n\n\tCALL({at}, pid);\n\tif (pid == 0)\n\t\t_exit(0);\n\tCALL({at}, waitpid(pid, NULL, 0));\n}}"
        ),
        Op::Thread => format!(
            "{{\n\tpthread_t thread;\n\n\terrno = pthread_create(&thread, NULL, nothing, NULL);\n\tCALL({at}, -errno);\n\tpthread_join(thread, NULL);\n}}"
        ),
        Op::Sleep => format!(
            "clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){{ .tv_nsec = {n} }}, NULL);"
        ),
        Op::Yield => "sched_yield();".to_owned(),
        Op::Barrier => {
            format!("CALL({at}, syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0));")
        }
        Op::Random => format!("MAY_WAIT({at}, getrandom(buffer, {n}, GRND_NONBLOCK));"),
        Op::Signal => format!("CALL({at}, kill(getpid(), SIGURG));"),
        Op::Affinity => format!(
            "{{\n\tcpu_set_t cpus;\n\n\tCALL({at}, sched_getaffinity(0, sizeof(cpus), &cpus));\n\tCALL({at}, sched_setaffinity(0, sizeof(cpus), &cpus));\n}}"
        ),
        Op::Smaps => format!(
            "{{\n\tint smaps = open(\"/proc/self/smaps\", O_RDONLY | O_CLOEXEC);\n\tssize_t n;\n\n\tCALL({at}, smaps);\n\twhile ((n = read(smaps, buffer, sizeof(buffer))) > 0)\n\t\t;\n\tCALL({at}, n);\n\tclose(smaps);\n}}"
        ),
    }
}

fn memory(call: &Call, at: &str) -> String {
    let (slot, second, n) = (call.slot(0), call.slot(1), call.number());
    let (m, bytes) = (format!("m{slot}"), format!("m{slot}_bytes"));
    let mapped = format!("\nif ({m} == MAP_FAILED)\n\trefused({at});\n{bytes} = {n};");
    let each = "sysconf(_SC_PAGESIZE)";
    match call.op {
        Op::Map => format!(
            "{m} = mmap(NULL, {n}, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);{mapped}"
        ),
        Op::MapFile => format!(
            "{{\n\tstruct stat file;\n\n\tCALL({at}, fstat(f{second}, &file));\n\tif (file.st_size < {n})\n\t\tCALL({at}, ftruncate(f{second}, {n}));\n}}\n\
             {m} = mmap(NULL, {n}, PROT_READ | PROT_WRITE, MAP_SHARED, f{second}, 0);{mapped}"
        ),
        Op::Touch => {
            format!(
                "for (size_t at = 0; at < {bytes}; at += {each})\n\t((volatile char *){m})[at] = 1;"
            )
        }
        Op::Look => format!(
            "for (size_t at = 0; at < {bytes}; at += {each})\n\tseen = ((volatile char *){m})[at];"
        ),
        Op::Protect => format!(
            "CALL({at}, mprotect({m}, {bytes}, PROT_READ));\nCALL({at}, mprotect({m}, {bytes}, PROT_READ | PROT_WRITE));"
        ),
        Op::Drop => format!("CALL({at}, madvise({m}, {bytes}, MADV_DONTNEED));"),
        Op::Huge => format!("CALL({at}, madvise({m}, {bytes}, MADV_HUGEPAGE));"),
        Op::Lock => format!("CALL({at}, mlock({m}, {bytes}));"),
        Op::Unlock => format!("CALL({at}, munlock({m}, {bytes}));"),
        Op::Resize => format!("{m} = mremap({m}, {bytes}, {n}, MREMAP_MAYMOVE);{mapped}"),
        _ => format!("CALL({at}, munmap({m}, {bytes}));"),
    }
}

fn file(op: Op, slot: usize, second: usize, n: u64, at: &str) -> String {
    let chunks = |call: &str, ended: &str| {
        format!(
            "for (size_t at = 0; at < {n}; at += CHUNK_BYTES) {{\n\tsize_t part = least({n} - at, CHUNK_BYTES);\n\tssize_t n = {call}(f{slot}, buffer, part, at);\n\n\tCALL({at}, n);{ended}\n}}"
        )
    };
    match op {
        Op::Pwrite => chunks("pwrite", ""),
        Op::Pread => chunks("pread", "\n\tif ((size_t)n < part)\n\t\tbreak;"),
        Op::Truncate => format!("CALL({at}, ftruncate(f{slot}, {n}));"),
        Op::Punch => format!(
            "{{\n\tstruct stat file;\n\n\tCALL({at}, fstat(f{slot}, &file));\n\tCALL({at}, fallocate(f{slot}, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, file.st_size ? file.st_size : 1));\n}}"
        ),
        Op::Copy => format!(
            "{{\n\tstruct stat file;\n\toff_t from = 0;\n\n\tCALL({at}, fstat(f{slot}, &file));\n\tCALL({at}, lseek(f{second}, 0, SEEK_SET));\n\tCALL({at}, sendfile(f{second}, f{slot}, &from, file.st_size));\n}}"
        ),
        Op::Fsync => format!("CALL({at}, fsync(f{slot}));"),
        _ => format!("close(f{slot});"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_is_filled_again_is_let_go_first() {
        let Ok(calls) = "create.f0+create.f0+map.m0.4K+unmap.m0".parse() else { panic!("calls") };
        let text = c_program(&calls, None, &[]);
        assert_eq!(text.matches("\tclose(f0);").count(), 2);
        assert_eq!(text.matches("munmap(").count(), 1);
    }
}

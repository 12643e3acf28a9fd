// SPDX-License-Identifier: MIT OR Apache-2.0
//! What it means when a guest did not come back with a run: the end of its console, read
//! for a person.
//!
//! Pure. Source: the kernel's own words (init/main.c, kernel/panic.c,
//! kernel/exit.c, mm/oom_kill.c, lib/decompress*.c), Documentation/admin-guide/init.rst.

use crate::boot::Ended;

/// Lines of the console that are shown.
const TAIL_LINES: usize = 16;

/// What errors of the measuring program begin with.
const OWN: &str = "tailbound: ";

/// Something a console says, and what to make of it; the first that is found counts.
const SIGNS: &[(&str, &str)] = &[
    (
        "exitcode=0x00000004",
        "The first program executed an instruction that this CPU model has not. Build the guest's program for a plainer CPU, or choose another --machine.",
    ),
    (
        "Attempted to kill init",
        "The guest's first program ended. If it is not a bug of tailbound, the program is not for this kernel.",
    ),
    (
        "No working init found",
        "The kernel could not execute the guest's program: it is for another architecture, or the kernel lacks CONFIG_BINFMT_ELF.",
    ),
    (
        "Unable to mount root fs",
        "The kernel did not unpack the initramfs, or found no program in it: it lacks CONFIG_BLK_DEV_INITRD, the guest has too little --memory, or --append has an rdinit= of its own.",
    ),
    ("Initramfs unpacking failed", "The initramfs did not fit: give the guest more --memory."),
    ("junk in compressed archive", "The initramfs did not fit: give the guest more --memory."),
    ("Out of memory", "The guest ran out of memory: give it more --memory, or a smaller load."),
    ("System is deadlocked on memory", "The guest has too little --memory."),
    ("Failed to execute /init", "The kernel could not execute the guest's program."),
    (
        "nothing sent",
        "The guest worked but its results line is missing: the kernel needs the driver of the second serial port (CONFIG_SERIAL_8250 with CONFIG_SERIAL_8250_NR_UARTS of 2 or more, or CONFIG_SERIAL_AMBA_PL011).",
    ),
    (
        "no fw_cfg device",
        "The guest could not read its job from the machine: this model has no fw_cfg device.",
    ),
    ("ioperm", "The kernel does not let programs use I/O ports: it lacks CONFIG_X86_IOPL_IOPERM."),
    ("soft lockup", "A CPU of the guest was busy for many seconds without scheduling."),
    ("Kernel panic", "The kernel gave up: its reason is on the line with `Kernel panic`."),
    ("BUG:", "The kernel found a bug of its own."),
    ("Oops", "The kernel found a bug of its own."),
];

/// What is told of a guest that had taken its job and used up the host's patience.
const SLOW: &str = "The kernel booted and the guest was at work: give fewer --cycles, a shorter --interval or a higher --host-limit. Threads that spin, as those of sched-football, execute every instruction of their time.";

/// How far a guest came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestStage {
    /// It did not take its job.
    Booting,
    /// It took its job.
    AtWork,
}

/// How a guest ended.
pub(crate) fn ending(ended: &Ended) -> String {
    match ended {
        Ended::Restarted => "the guest ended without a result".to_owned(),
        Ended::Saved => "its snapshot was made, and cannot be gone on from".to_owned(),
        Ended::Panicked => "the guest's kernel panicked".to_owned(),
        Ended::HostLimit(s) => {
            format!("the guest was not done after {s} s of this host's time (--host-limit)")
        }
        Ended::Overtime => "the guest was not done when its own time was over".to_owned(),
        Ended::Standstill => {
            "the guest executed nothing for a minute: it waits for something that never comes"
                .to_owned()
        }
        Ended::KvmSilent(s) => format!("KVM did not bring the kernel up within {s} s"),
        Ended::Quit(said) if said.is_empty() => "QEMU ended by itself".to_owned(),
        Ended::Quit(said) => format!("QEMU ended by itself: {said}"),
    }
}

/// One sentence about the end, one about its meaning, and the console's last lines.
#[must_use]
pub fn explain(ended: &Ended, console: &str, words: &[String], stage: GuestStage) -> String {
    let ready = stage == GuestStage::AtWork;
    if let Some(refused) = refusal(ended, words) {
        return refused;
    }
    let mut text = ending(ended);
    let meaning = SIGNS.iter().find(|(sign, _)| console.contains(sign)).map(|(_, m)| *m);
    let silent = console.trim().is_empty();
    let kvm = matches!(ended, Ended::KvmSilent(_)).then_some(
        "KVM is here but does not run this kernel, as happens inside another hypervisor: leave --kvm away.",
    );
    let slow = (ready && matches!(ended, Ended::HostLimit(_))).then_some(SLOW);
    let meaning = kvm.or(meaning).or(slow).or_else(|| {
        (silent && !ready).then_some(
            "The kernel printed nothing: the image is for another architecture or machine, the guest has too little --memory, or the kernel has no serial console (CONFIG_SERIAL_8250_CONSOLE, CONFIG_SERIAL_AMBA_PL011_CONSOLE). `--append 'loglevel=7 earlycon'` may show more.",
        )
    });
    if let Some(meaning) = meaning {
        text.push_str(&format!("\n  {meaning}"));
    }
    for word in words {
        text.push_str(&format!("\n  guest: {word}"));
    }
    if !silent {
        text.push_str("\n  The end of its console:");
        let plain = |line: &str| -> String {
            let plain: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
            format!("\n    | {plain}")
        };
        let lines: Vec<&str> = console.lines().filter(|l| !l.trim().is_empty()).collect();
        let (before, tail) = lines.split_at(lines.len().saturating_sub(TAIL_LINES));
        // The reason of a panic stands above its call trace, which may be all that the end shows.
        let reason = |line: &&&str| line.contains("Kernel panic");
        if let Some(panic) =
            before.iter().rfind(reason).filter(|_| !tail.iter().any(|l| reason(&l)))
        {
            text.push_str(&plain(panic));
            text.push_str("\n    | ...");
        }
        tail.iter().for_each(|line| text.push_str(&plain(line)));
    }
    text
}

/// What the measuring program said before it ended with a status of its own: nothing of the kernel
/// or the machine is to be looked for then.
fn refusal(ended: &Ended, words: &[String]) -> Option<String> {
    let [said @ .., status] = words else { return None };
    if *ended != Ended::Restarted || !["exit status 2", "exit status 3"].contains(&status.as_str())
    {
        return None;
    }
    let at = said.iter().position(|w| w.starts_with(OWN))?;
    let reason = said.get(at..)?.join("\n  ");
    let mut text = format!("refused in the guest: {}", reason.trim_start_matches(OWN));
    for word in said.iter().take(at) {
        text.push_str(&format!("\n  guest: {word}"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_its_own_words() {
        let words =
            ["no veth", "tailbound: probe nmi: no counter", "exit status 3"].map(str::to_owned);
        let text = explain(&Ended::Restarted, "reboot: Restarting\n", &words, GuestStage::AtWork);
        assert_eq!(text, "refused in the guest: probe nmi: no counter\n  guest: no veth");
        let died = ["tailbound: stopped", "ended by signal 11"].map(str::to_owned);
        assert!(
            explain(&Ended::Restarted, "", &died, GuestStage::AtWork).contains("without a result")
        );
    }

    #[test]
    fn the_reason_comes_before_the_consequence() {
        let console =
            "[1.0] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000004\n";
        let text = explain(&Ended::Panicked, console, &[], GuestStage::Booting);
        assert!(text.starts_with("the guest's kernel panicked") && text.contains("plainer CPU"));
        assert!(text.contains("| [1.0] Kernel panic"));
        let trace = "[1.1]  ? __pfx_kernel_init+0x10/0x10\n".repeat(40);
        let text =
            explain(&Ended::Panicked, &format!("{console}{trace}"), &[], GuestStage::Booting);
        assert_eq!(text.matches("Kernel panic").count(), 1, "above its trace: {text}");
        assert!(text.contains("| ...\n"), "{text}");
        let silent = explain(&Ended::HostLimit(9), " \n", &[], GuestStage::Booting);
        assert!(silent.contains("--host-limit") && silent.contains("printed nothing"));
        let slow = explain(&Ended::HostLimit(9), "", &[], GuestStage::AtWork);
        assert!(slow.contains("at work") && !slow.contains("printed nothing"));
    }
}

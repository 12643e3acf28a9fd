// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records where interrupts and preemption are disabled on chosen CPUs, with scheduler, interrupts and idle: what the
//! theoretical bound needs of a machine whose kernel has the events `preemptirq`.
//!
//! Context: SETUP (`begin`), COLD. Units: ns of CLOCK_MONOTONIC, which is the trace's clock; KiB of buffers.
//! In a trace instance of its own; nothing else of tracing is changed. Events come by the million a second, so each
//! CPU's pages go to the caller as they are read, and nothing is kept or sorted: CPUs are looked at one by one.
//! It is not aggregated in the kernel: what a program of ours in the kernel would add to each section is more than the record costs, and
//! kernels that have these events often lack BPF.
//! Not here: what the events come to (`tailbound_paths::machine`).
//! Source: include/trace/events/preemptirq.h; Documentation/trace/ftrace.rst (tracing_cpumask).

use std::path::Path;

use tailbound_core::Finding;
use tailbound_core::plan::Clock;
use tailbound_host::{Root, Tracefs};
use tailbound_trace::event::Entry;
use tailbound_trace::symbols::Symbols;
use tailbound_trace::{EventDecoder, EventFormat};

use crate::blame::{cost, setup};
use crate::error::ObserveError;
use crate::own_trace::{OwnTrace, first_namespace};
use crate::recording::Recorded;

/// Buffer of a CPU, of which a tenth of a second has to fit, and the share of memory that all together may take.
const BUFFER_KIB: (u64, u64) = (1024, 65536);
const SHARE_OF_MEMORY: u64 = 16;

/// Events without which there is no answer, and what the kernel has to be built with for them.
const NEEDED: [(&str, &str, &str); 6] = [
    ("preemptirq", "irq_disable", "CONFIG_IRQSOFF_TRACER"),
    ("preemptirq", "irq_enable", "CONFIG_IRQSOFF_TRACER"),
    ("preemptirq", "preempt_disable", "CONFIG_PREEMPT_TRACER"),
    ("preemptirq", "preempt_enable", "CONFIG_PREEMPT_TRACER"),
    ("sched", "sched_switch", "CONFIG_ENABLE_DEFAULT_TRACERS or CONFIG_FTRACE"),
    ("irq", "irq_handler_entry", "CONFIG_ENABLE_DEFAULT_TRACERS or CONFIG_FTRACE"),
];

/// Further ones that are used where they are; of pairs, both or none.
const USED: [(&str, &str); 21] = [
    ("sched", "sched_waking"),
    ("irq", "irq_handler_exit"),
    ("irq", "softirq_entry"),
    ("irq", "softirq_exit"),
    ("irq_vectors", "local_timer_entry"),
    ("irq_vectors", "local_timer_exit"),
    ("irq_vectors", "reschedule_entry"),
    ("irq_vectors", "reschedule_exit"),
    ("irq_vectors", "call_function_entry"),
    ("irq_vectors", "call_function_exit"),
    ("irq_vectors", "call_function_single_entry"),
    ("irq_vectors", "call_function_single_exit"),
    ("irq_vectors", "irq_work_entry"),
    ("irq_vectors", "irq_work_exit"),
    ("irq_vectors", "thermal_apic_entry"),
    ("irq_vectors", "thermal_apic_exit"),
    ("ipi", "ipi_entry"),
    ("ipi", "ipi_exit"),
    ("nmi", "nmi_handler"),
    ("power", "cpu_idle"),
    ("exceptions", "page_fault_user"),
];

/// What a look hands over.
#[derive(Clone, Copy, Debug)]
pub enum SectionEvent<'a> {
    /// An event, in the order of time of its CPU.
    Entry(&'a Entry),
    /// Events of this CPU were lost before the next one.
    Lost(u32),
}

/// See the module.
pub struct SectionTrace {
    trace: OwnTrace,
    decoder: EventDecoder,
    cpus: Vec<u32>,
    /// Those that are looked at.
    chosen: Vec<u32>,
    symbols: Symbols,
    code_begin: Option<u64>,
    event_ns: Option<i64>,
    told: bool,
}

impl SectionTrace {
    /// Records on these CPUs from here on. `exe trace-guard` removes the trace if this process is killed.
    ///
    /// # Errors
    /// [`ObserveError`]: no tracefs, not root, a namespace, events that this kernel lacks. Nothing is left then.
    pub fn begin(root: &Root, exe: &Path, chosen: &[u32]) -> Result<Self, ObserveError> {
        first_namespace(root)?;
        let tracefs = Tracefs::find(root)?;
        let formats = formats(&tracefs)?;
        let decoder = EventDecoder::new(&formats);
        let mut trace = OwnTrace::make(root, exe)?;
        let cpus = setup::instance(root, &mut trace, Clock::Monotonic)?;
        let memory_kib = tailbound_host::meminfo(root, "MemTotal").unwrap_or(0).max(0);
        let n = (chosen.len() as u64).max(1);
        let share = (memory_kib.cast_unsigned() / SHARE_OF_MEMORY / n)
            .clamp(BUFFER_KIB.0, BUFFER_KIB.1)
            .to_string();
        for cpu in chosen {
            trace.instance.set(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), &share)?;
        }
        let event_ns = cost::event_ns(&trace);
        if let Err(e) = trace.instance.set("tracing_cpumask", &mask(chosen)) {
            trace.notes.push(format!("{e}: other CPUs bear the cost of recording too"));
        }
        for lacking in decoder.lacking() {
            trace.notes.push(format!("{lacking}: the event is not used"));
        }
        let text = setup::kallsyms(root);
        let symbols = Symbols::parse(&text);
        if symbols.is_empty() {
            let why = "/proc/kallsyms does not tell the kernel's functions: they have no names";
            trace.notes.push(why.to_owned());
        }
        let needed = NEEDED.iter().map(|(system, name, _)| (*system, *name, true));
        let used = USED.iter().map(|(system, name)| (*system, *name, false));
        for (system, name, needed) in needed.chain(used) {
            if !formats.iter().any(|f| f.name == name) {
                continue;
            }
            match trace.instance.set(&format!("events/{system}/{name}/enable"), "1") {
                Err(e) if needed => return Err(e.into()),
                Err(e) => trace.notes.push(format!("{e}: the event is not used")),
                Ok(()) => {}
            }
        }
        for cpu in chosen {
            trace.readers.open(&trace.instance, *cpu)?;
        }
        trace.instance.set("tracing_on", "1")?;
        let (chosen, code_begin) = (chosen.to_vec(), code_begin(&text));
        Ok(Self { trace, decoder, cpus, chosen, symbols, code_begin, event_ns, told: true })
    }

    /// The kernel's functions.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Where the kernel's code begins, which the events count from.
    #[must_use]
    pub fn code_begin(&self) -> Option<u64> {
        self.code_begin.filter(|begin| *begin != 0)
    }

    /// What recording one event costs, where it could be measured.
    #[must_use]
    pub fn event_ns(&self) -> Option<i64> {
        self.event_ns
    }

    /// Hands over what was recorded up to now: one CPU after the other, of each in the order of time.
    pub fn poll(&mut self, each: &mut dyn FnMut(SectionEvent<'_>)) {
        let OwnTrace { readers, layout, .. } = &mut self.trace;
        let decoder = &self.decoder;
        readers.read(|cpu, page| {
            if layout.head(page).is_some_and(|h| h.lost) {
                each(SectionEvent::Lost(cpu));
            }
            let one = |t_ns: u64, record: &[u8]| {
                if let Some(entry) = decoder.decode(t_ns, cpu, record) {
                    each(SectionEvent::Entry(&entry));
                }
            };
            layout.records(page, one).map(drop)
        });
    }

    /// Ends the trace and hands over the rest; [`Self::end`] removes it.
    pub fn stop(&mut self, each: &mut dyn FnMut(SectionEvent<'_>)) {
        drop(self.trace.instance.set("tracing_on", "0"));
        if std::mem::take(&mut self.told) {
            // A read takes a part of what there is at most.
            (0..BUFFER_KIB.1 / 4096 + 1).for_each(|_| self.poll(each));
        }
    }

    /// Removes it; what must be told.
    pub fn end(mut self) -> Recorded {
        let lost = self.trace.lost(&self.chosen);
        let notes = std::mem::take(&mut self.trace.notes);
        let findings: Vec<Finding> = self.trace.end();
        drop(self.cpus);
        Recorded { findings, notes, lost, locks: Vec::new() }
    }
}

fn formats(tracefs: &Tracefs) -> Result<Vec<EventFormat>, ObserveError> {
    let mut all = Vec::new();
    for (system, name, option) in NEEDED {
        let text = tracefs.event_format(system, name).map_err(|_| ObserveError::Lacking {
            what: format!("trace event {system}:{name}"),
            option,
            instead: "",
        })?;
        all.push(EventFormat::parse(&text)?);
    }
    for (system, name) in USED {
        if let Ok(text) = tracefs.event_format(system, name) {
            all.push(EventFormat::parse(&text)?);
        }
    }
    Ok(all)
}

/// CPUs as the kernel reads a mask: words of 32 in hexadecimal, the last ones first.
fn mask(cpus: &[u32]) -> String {
    let words = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let word = |n: u32| {
        let bits =
            cpus.iter().filter(|cpu| **cpu / 32 == n).fold(0u32, |w, cpu| w | 1 << (cpu % 32));
        format!("{bits:x}")
    };
    let mut words: Vec<String> = (0..words).rev().map(word).collect();
    for word in words.iter_mut().skip(1) {
        *word = format!("{word:0>8}");
    }
    words.join(",")
}

/// `_stext`, which shares its place with other names.
fn code_begin(kallsyms: &str) -> Option<u64> {
    let line = kallsyms.lines().find(|line| line.ends_with(" _stext"))?;
    u64::from_str_radix(line.split_ascii_whitespace().next()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_as_the_kernel_reads_it() {
        assert_eq!(mask(&[0]), "1");
        assert_eq!(mask(&[1, 3]), "a");
        assert_eq!(mask(&[0, 33]), "2,00000001");
    }

    #[test]
    fn the_code_begins_where_stext_lies() {
        let text =
            "0000000000000000 A zero\nffffffff81000000 T startup_64\nffffffff81000000 T _stext\n";
        assert_eq!(code_begin(text), Some(0xffff_ffff_8100_0000));
        assert_eq!(code_begin("x"), None);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe `answer-gpio`: edges of a GPIO line are answered on another line.
//!
//! Context: SETUP. Units: ns. Not here: the lines (`tailbound_sys::answer::gpio`), the engine ([`super`]).

use std::path::{Path, PathBuf};

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::number::Real as _;
use tailbound_core::policy::Policy;
use tailbound_core::units::format_ns_i64;
use tailbound_host::clock_id;
use tailbound_rt::answer::PulseTally;
use tailbound_sys::SysError;
use tailbound_sys::answer::gpio::{AnswerForm, Gpio, stamp_clock};
use tailbound_sys::gpio::{Chip, EDGES_KEPT_MAX, Edges, GpioError, LineLevel};

use super::Answering;
use super::findings::counted;
use super::gpio_sim::SimulatedChip;
use super::kept::EdgeTotals;
use crate::error::ProbeError;
use crate::figures::figure;
use crate::kind::{Prepared, ProbeKind, ProbeOption, Setup};
use crate::place::{Places, Where};
use crate::thread_group::{ProbeOutput, Running, thread_spec};

/// The chip that is made for the measurement.
const SIMULATED: &str = "sim";

pub(crate) static KIND: ProbeKind = ProbeKind {
    name: "answer-gpio",
    about: "answer edges of a GPIO line on another line: how late is each answer?",
    from: "the kernel's stamp of the edge, taken when it handles the interrupt",
    to: "the clock read after the call that set the output returned",
    replaces: &[],
    options: &[
        ProbeOption::new(
            "chip",
            "NAME",
            "gpiochip0",
            "the chip of both lines, or its file; `sim`: a simulated chip of this kernel, with a thread that makes the edges",
        ),
        ProbeOption::new(
            "in",
            "LINE",
            "",
            "the line where pulses arrive, by number or name; needed but for `sim`",
        ),
        ProbeOption::new(
            "answer",
            "LINE",
            "",
            "the line of the answers, by number or name; needed but for `sim`",
        ),
        ProbeOption::new(
            "edge",
            "WORD",
            "toggle",
            "`toggle`: every edge is a pulse, and the answer is the same level; `rising`: the answer goes high and low at once",
        ),
        super::BY,
    ],
    interval: "1ms",
    policy: None,
    event: Some("pulse"),
    property: None,
    hog: false,
    takes: &[],
    prepare,
};

fn prepare(setup: &Setup<'_>) -> Result<Prepared, ProbeError> {
    let options = setup.options();
    let by = super::by(setup)?;
    let (form, edges) = match options.word("edge", &["toggle", "rising"])? {
        0 => (AnswerForm::SameLevel, Edges::Both),
        _ => (AnswerForm::HighThenLow, Edges::Rising),
    };
    let named = options.text("chip").unwrap_or("gpiochip0");
    let simulated = (named == SIMULATED).then(SimulatedChip::make).transpose()?;
    let number = named.strip_prefix("gpiochip").filter(|n| n.parse::<u32>().is_ok());
    let path = match number {
        _ if simulated.is_some() => {
            simulated.as_ref().map_or_else(PathBuf::new, |c| c.file().to_owned())
        }
        Some(_) => Path::new("/dev").join(named),
        None if named.contains('/') => PathBuf::from(named),
        None => return Err(options.wrong("chip", "write its name, such as gpiochip0, or its file")),
    };
    let chip = Chip::open(&path).map_err(|e| refused("chip", e))?;
    let line = |name| {
        let own = simulated.as_ref().map(|_| if name == "in" { "0" } else { "1" });
        let text = options.text(name).or(own).ok_or_else(|| ProbeError::NeedsOption {
            probe: KIND.name,
            option: name.to_owned(),
            what: format!("a line of {named}, by number or name"),
        })?;
        chip.offset(text).map_err(|e| refused(name, e))
    };
    let (input, output) = (line("in")?, line("answer")?);
    if input == output {
        return Err(options.wrong("answer", "the answers need another line than the pulses"));
    }
    let clock = clock_id(setup.plan.clock);
    let answers = chip.output(output, LineLevel::Low).map_err(|e| refused("answer", e))?;
    let pulses = chip.input(input, edges, stamp_clock(clock), EDGES_KEPT_MAX);
    let pulses = pulses.map_err(|e| refused("in", e))?;
    let line = Gpio::new(pulses, answers, form, by, clock)?;
    Ok(Prepared::with(Lines { line, simulated }, begin))
}

/// The lines before threads have them; dropped in this order.
struct Lines {
    line: Gpio,
    simulated: Option<SimulatedChip>,
}

fn refused(option: &str, source: GpioError) -> ProbeError {
    ProbeError::Gpio { option: option.to_owned(), source }
}

fn begin(setup: &Setup<'_>, lines: Lines) -> Result<Running, ProbeError> {
    let Lines { line, simulated } = lines;
    let Some(chip) = simulated else { return super::begin(setup, line) };
    let (pulses, clock) = (chip.pulses()?, clock_id(setup.plan.clock));
    // As an interrupt from outside, an edge interrupts what is less urgent than its answer.
    let policy = match setup.plan.policy {
        Policy::Fifo(priority) => Policy::Fifo(priority.saturating_sub(1).max(1)),
        Policy::Rr(priority) => Policy::Fifo(priority.saturating_sub(1).max(1)),
        other => other,
    };
    // On another CPU where there is one: there an edge comes whatever the measured one does.
    let cpus = match setup.cpus().as_slice() {
        [one] => vec![Places::look(setup.root, setup.plan).second(*one, Where::Auto)?],
        several => several.to_vec(),
    };
    let spec = thread_spec(policy, cpus);
    super::begin_beside(setup, line, |threads| {
        threads.helper("pulses", spec, move |thread| pulses.run(thread, clock))?;
        // It goes when the lines are closed.
        threads.after(move |_| {
            drop(chip);
            ProbeOutput::default()
        });
        Ok(())
    })
}

impl Answering for Gpio {
    fn forget(&mut self) -> Result<(), SysError> {
        self.attach()
    }

    fn edges(&self) -> Option<EdgeTotals> {
        Some(EdgeTotals { edges: Gpio::edges(self), unseen: self.unseen() })
    }

    fn output(&self, tally: &PulseTally) -> ProbeOutput {
        let mut output = ProbeOutput::default();
        let unseen = self.unseen();
        output.figures.extend([
            figure(
                "stamp-error",
                tally.error_ns_max.real(),
                "ns",
                "most that a stamp is wrong by: its clock read between two readings of the run's",
            ),
            figure(
                "unseen",
                unseen.real(),
                "1",
                "edges that came before the kernel had looked at the one before",
            ),
        ]);
        let error = match tally.error_ns_max {
            0 => "on the run's clock".to_owned(),
            ns => format!("known to {}", format_ns_i64(ns)),
        };
        output.findings.push(
            Finding::new(
                "answer-path",
                Impact::Notice,
                format!("timed from the kernel's stamp of the edge, {error}"),
            )
            .meaning("Before the stamp come the pin, its filter and the interrupt; after the end comes the output's way to its pin. Behind an expander (I2C, SPI) both are long. Only a box outside sees all of it."),
        );
        if unseen > 0 {
            output.findings.push(Finding::listed(
                "edges-unseen",
                Impact::Violation,
                format!(
                    "{} with the same level as the one before: what came between was not seen",
                    counted(unseen, "edge came", "edges came")
                ),
            ));
        }
        output
    }
}

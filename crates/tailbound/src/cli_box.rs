// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `box`.

use std::path::PathBuf;

use clap::{Arg, ArgGroup, Args, Subcommand};
use tailbound_probe::PlanOption;

use crate::cli_config::BesideArgs;
use crate::cli_run::PlanArgs;
use crate::lazy::Lazy;

/// The machine under test, and what pulses it.
#[derive(Debug, Subcommand)]
pub(crate) enum BoxVerb {
    /// Answer pulses from outside, under load, and record how late each answer was
    Answer(Lazy<AnswerArgs>),
    /// Send pulses from outside and time the answers of the machine
    Run(Lazy<BoxRunArgs>),
    /// Join the run of a box with that of who answered: where did the time of the latest pulses go?
    Join(Lazy<BoxJoinArgs>),
    /// Check the box against itself: wires from outputs to inputs, its crystal, its connection
    Check(Lazy<ViaArgs>),
    /// Write the firmware of the box to a board that was plugged in with BOOTSEL pressed
    Flash(Lazy<BoxFlashArgs>),
    /// Be a latmon: give clients such as latmus what another source measures
    Latmon(Lazy<BoxLatmonArgs>),
}

/// Arguments of `box latmon`.
#[derive(Debug, Args)]
pub(crate) struct BoxLatmonArgs {
    /// Where clients connect
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:2306")]
    pub(crate) listen: std::net::SocketAddr,
    /// What measures: `pico:PORT` or `linux:HOST:PORT`, as for `box run`
    #[arg(long, value_name = "KIND:WHERE")]
    pub(crate) via: String,
}

/// The source of pulses.
#[derive(Debug, Args)]
pub(crate) struct ViaArgs {
    /// The source and where it is: `pico:PORT` is the box, `latmon:HOST` one of Zephyr, `linux:HOST:PORT` this machine, whose datagrams `box answer --udp` answers there, `capture:FILE` a capture of a logic analyser
    #[arg(long, value_name = "KIND:WHERE")]
    pub(crate) via: String,
    /// Channels of the source, from the first
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) channels: u8,
    /// Print the result as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Arguments of `box run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tailbound box run --via pico:/dev/ttyACM0 -i 100us -D 12h -d 100us --answer ssh:board -- --chip gpiochip0 --in 17 --answer 27 -p fifo:90\n  \
tailbound box run --via linux:192.168.1.7:2307,policy=fifo:90,cpu=3 -D 1h -d 500us\n  \
tailbound box run --via latmon:192.168.1.9 -D 1h -d 100us\n  \
tailbound box run --via capture:sigrok.vcd --stimulus D0 --answer D1 -d 200us"
)]
pub(crate) struct BoxRunArgs {
    #[command(flatten)]
    pub(crate) source: ViaArgs,
    /// From pulse to pulse
    #[arg(short, long, value_name = "TIME", default_value = "1ms")]
    pub(crate) interval: String,
    /// How long to send pulses
    #[arg(short = 'D', long, value_name = "TIME", default_value = "60s")]
    pub(crate) duration: String,
    /// Largest acceptable time from a pulse to its answer. Without it the figures are shown and nothing is judged
    #[arg(short, long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// `even`, or random around the interval: `random`, `random:SEED`
    #[arg(long, value_name = "WORD", default_value = "even")]
    pub(crate) spacing: String,
    /// `toggle`: the machine copies the level; `pulse`: it answers with an edge up. Of a capture: the channel of the pulses
    #[arg(long, value_name = "WORD", default_value = "toggle")]
    pub(crate) stimulus: String,
    /// Start `box answer` for this time, by `here` or `ssh:HOST`, with the words behind `--`; of a capture: the channel of the answers
    #[arg(long, value_name = "PLACE|CHANNEL")]
    pub(crate) answer: Option<String>,
    /// With --answer: words of `box answer`, without duration, interval and run file
    #[arg(last = true, value_name = "WORD", requires = "answer")]
    pub(crate) words: Vec<String>,
    /// Read histograms alone, not every sample: for a slow connection
    #[arg(long)]
    pub(crate) no_samples: bool,
    /// The run file [default: named after the start time]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    /// No progress
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// Arguments of `box join`.
#[derive(Debug, Args)]
pub(crate) struct BoxJoinArgs {
    /// The run file of `box run`
    pub(crate) run: PathBuf,
    /// The run file of `box answer`
    pub(crate) answers: PathBuf,
    /// The joined run file [default: beside RUN]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
}

/// Arguments of `box flash`.
#[derive(Debug, Args)]
pub(crate) struct BoxFlashArgs {
    /// Chip of the board, `rp2040` or `rp2350` [default: that of the drive]
    #[arg(long, value_name = "NAME")]
    pub(crate) chip: Option<String>,
    /// Drive of the board [default: the only one that is mounted]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,
    /// Write the firmware to this file instead
    #[arg(long, value_name = "FILE", requires = "chip", conflicts_with = "to")]
    pub(crate) out: Option<PathBuf>,
}

/// Arguments of `box answer`.
#[derive(Debug, Args)]
#[command(
    mut_args(foreign),
    mut_arg("deadline", |a| a.help("Largest acceptable time from a pulse to its answer: `100us`. Without it the figures are shown and nothing is judged")),
    mut_arg("interval", |a| a.help("About how often pulses come [default: 1ms]")),
    mut_arg("loops", |a| a.help("How long to answer, in intervals, instead of a duration")),
    mut_arg("cpus", |a| a.help("CPUs of the answering thread, which is pinned where it is one: `3`, `2-3`, `isolated` [default: all]")),
    after_help = "Pulses have no schedule: --interval is about how often they come, and --duration how long they are \
answered. On UDP only pulses are answered, to their sender and by as many bytes; anybody who reaches the address gets \
an answer unless --sender says whose. Examples:\n  \
tailbound box answer --udp 192.168.1.7:2307 --sender 192.168.1.9 -p fifo:90 -a 3 -D 1h -d 200us\n  \
tailbound box answer --port /dev/ttyS0 --baud 921600 --by read -L none\n  \
tailbound box answer --chip gpiochip0 --in 17 --answer 27 -p fifo:90 -a 3 -D 12h -d 100us"
)]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    pub(crate) line: LineArgs,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) beside: BesideArgs,
    /// Where the HTML report goes [default: beside the run file]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
}

/// Where pulses arrive.
#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("line").args(["udp", "port", "chip"]).required(true))]
pub(crate) struct LineArgs {
    /// Datagrams at this address and port; `0.0.0.0:PORT` is every network of this machine
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Pulses")]
    pub(crate) udp: Option<String>,
    /// With --udp: answer this sender alone
    #[arg(long, value_name = "ADDRESS", help_heading = "Pulses", conflicts_with_all = ["port", "chip"])]
    pub(crate) sender: Option<String>,
    /// Bytes at this serial port
    #[arg(long, value_name = "FILE", help_heading = "Pulses")]
    pub(crate) port: Option<String>,
    /// With --port: its speed [default: 115200]
    #[arg(long, value_name = "N", help_heading = "Pulses", conflicts_with_all = ["udp", "chip"])]
    pub(crate) baud: Option<u32>,
    /// With --port: bytes of a pulse and of its answer [default: 1]
    #[arg(long, value_name = "BYTES", help_heading = "Pulses", conflicts_with_all = ["udp", "chip"])]
    pub(crate) frame: Option<u32>,
    /// With --port: the first byte of each pulse counts up, so that lost ones are known
    #[arg(long, help_heading = "Pulses", conflicts_with_all = ["udp", "chip"])]
    pub(crate) counting: bool,
    /// Edges of a line of this GPIO chip: `gpiochip0`, its file, or `sim` for a simulated one and its edges
    #[arg(long, value_name = "NAME", help_heading = "Pulses")]
    pub(crate) chip: Option<String>,
    /// With --chip: the line where pulses arrive, by number or name
    #[arg(long = "in", value_name = "LINE", help_heading = "Pulses", conflicts_with_all = ["udp", "port"])]
    pub(crate) input: Option<String>,
    /// With --chip: the line of the answers, by number or name
    #[arg(long, value_name = "LINE", help_heading = "Pulses", conflicts_with_all = ["udp", "port"])]
    pub(crate) answer: Option<String>,
    /// With --chip: `toggle`, every edge is a pulse and the answer is the same level; `rising` [default: toggle]
    #[arg(long, value_name = "WORD", help_heading = "Pulses", conflicts_with_all = ["udp", "port"])]
    pub(crate) edge: Option<String>,
    /// How the thread waits: `poll`, `read`, `io_uring`, or `busy`, which never sleeps [default: poll]
    #[arg(long, value_name = "WORD", help_heading = "Pulses")]
    pub(crate) by: Option<String>,
}

/// Only what a run of pulses has a use for is shown.
fn foreign(argument: Arg) -> Arg {
    let is_foreign = |name: &str| PlanOption::ALL.iter().any(|option| option.name() == name);
    let hidden = argument.get_long().is_some_and(|name| is_foreign(name) || name == "probe");
    if hidden { argument.hide(true) } else { argument }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flags of `run` and `measure` for what happens at a threshold and at the end; none of them has a word in files.

use std::path::PathBuf;

use clap::Args;
use tailbound_run::{Threshold, ThresholdOptions};

use crate::say::Failure;

/// At a threshold.
#[derive(Debug, Args)]
#[command(next_help_heading = "At a threshold")]
pub(crate) struct ThresholdArgs {
    /// End at the first wake-up later than this, and name what made it late where tracing is possible; the same as `--deadline TIME --until exceedance --blame=TIME`
    #[arg(short = 'b', long = "break", value_name = "TIME", conflicts_with_all = ["deadline", "until"])]
    pub(crate) break_at: Option<String>,
    /// End when the timer's interrupt alone comes later than this (rtla -i); with --observe timerlat or tracepoints, by default `auto`
    #[arg(long, value_name = "TIME")]
    pub(crate) break_irq: Option<String>,
    /// Run CMD with /bin/sh when a wake-up is later than --deadline or --break, or an interrupt than --break-irq: at most 10 times, one at a time, 30 s each. The variables TAILBOUND_LATENCY_NS, _THREAD, _CPU, _CYCLE, _TIME, _FILE, _TRACE tell what happened
    #[arg(long, value_name = "CMD")]
    pub(crate) on_late: Vec<String>,
    /// Send process PID (or `parent`) a signal then [default: USR1]
    #[arg(long, value_name = "PID[:SIGNAL]")]
    pub(crate) signal: Vec<String>,
    /// The same in rtla's words: `trace[,file=FILE]`, `signal,num=N,pid=PID`, `shell,command=CMD`, `continue`; in their order, up to one that fails
    #[arg(long, value_name = "ACTION")]
    pub(crate) on_threshold: Vec<String>,
    /// Run CMD when the run file is complete, also after Ctrl-C: TAILBOUND_STATUS, _VERDICT, _FILE, _TRACE; 30 s. rtla's words are understood
    #[arg(long, value_name = "CMD")]
    pub(crate) on_end: Vec<String>,
    /// Write the kernel's trace around the latest wake-up into FILE, for trace-cmd and KernelShark; needs root
    #[arg(long, value_name = "FILE.dat")]
    pub(crate) trace: Option<PathBuf>,
}

impl ThresholdArgs {
    pub(crate) fn read(&self) -> Result<Threshold, Failure> {
        let Self { break_at, break_irq, on_late, signal, on_threshold, on_end, trace } = self;
        let options = ThresholdOptions {
            break_at: break_at.clone(),
            break_irq: break_irq.clone(),
            on_late: on_late.clone(),
            on_threshold: on_threshold.clone(),
            signal: signal.clone(),
            on_end: on_end.clone(),
            trace: trace.clone(),
        };
        Ok(Threshold::read(&options)?)
    }
}

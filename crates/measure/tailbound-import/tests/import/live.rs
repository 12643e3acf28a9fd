// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tools themselves, where they are installed: a second each, imported as they write it.
//!
//! Needs: cyclictest and oslat of rt-tests, and the right to use SCHED_FIFO
//! (`rt-tests` in TAILBOUND_REQUIRE makes their absence a failure).

use std::process::Output;

use tailbound_import::{Format, Options, import_with};

#[expect(
    clippy::disallowed_methods,
    reason = "a test runs a foreign tool for a second and waits for it"
)]
fn tool(name: &str, args: &[&str]) -> Option<Output> {
    let out = std::process::Command::new(name).args(args).output();
    let why = match &out {
        Ok(o) if o.status.success() => return out.ok(),
        Ok(o) => format!("{name} ended with {}: {}", o.status, String::from_utf8_lossy(&o.stderr)),
        Err(e) => format!("{name}: {e}"),
    };
    tailbound_testing::skip("rt-tests", why);
    None
}

#[test]
fn what_cyclictest_writes_today_is_read() {
    let common = ["-q", "-t", "1", "-p", "80", "-D", "1", "-i", "1000"];
    for (more, format, unit) in [
        (&["-h", "100"][..], Format::CyclictestHistogram, None),
        (&["-H", "100"], Format::CyclictestHistogram, None),
        (&[], Format::CyclictestStatus, None),
        (&["-N"], Format::CyclictestStatus, None),
        (&["-v"], Format::CyclictestVerbose, Some(1000)),
    ] {
        let args: Vec<&str> = common
            .iter()
            .chain(more)
            .copied()
            .filter(|a| !(*a == "-q" && more == ["-v"]))
            .collect();
        let Some(out) = tool("cyclictest", &args) else { return };
        assert_eq!(Format::detect(&out.stdout), Ok(format), "{args:?}");
        let options = Options { unit_ns: unit, ..Options::default() };
        let run = import_with(None, "live", &out.stdout, &options)
            .unwrap_or_else(|e| panic!("{args:?}: {e}"));
        crate::consistent("live", &run);
        assert!(
            run.threads.iter().all(|t| t.wakeup.n > 0 && t.wakeup.max_ns > Some(0)),
            "{args:?}"
        );
    }
}

#[test]
fn what_oslat_writes_today_is_read() {
    let Some(out) = tool("oslat", &["-c", "0", "-D", "1", "-b", "8"]) else { return };
    assert_eq!(Format::detect(&out.stdout), Ok(Format::OslatText));
    let run = import_with(None, "live", &out.stdout, &Options::default())
        .unwrap_or_else(|e| panic!("{e}"));
    crate::consistent("live", &run);
}

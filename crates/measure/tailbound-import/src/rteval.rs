// SPDX-License-Identifier: MIT OR Apache-2.0
//! rteval's summary.xml, of its cyclictest and timerlat modules.
//!
//! Units: µs (attribute `unit`). Layout: `Measurements/cyclictest` with a
//! `core` per CPU, each with `statistics` and `histogram/bucket[index,value]`; `system` is the
//! sum of the cores and used only where there are none. When a latency exceeded the histogram,
//! rteval drops `system` and `core` altogether. Its timerlat module adds interrupt, thread and
//! user latencies into one histogram. Median and mode are not taken over.
//! Limits: size as JSON; 2 million elements and texts; a document type declaration is refused.
//! Nesting costs no stack: the parser goes through elements in a loop.
//! Source: output of rteval 3.8.

use roxmltree::{Document, Node, ParsingOptions};

use tailbound_core::number::Real as _;
use tailbound_core::record::Fact;
use tailbound_core::{Context, Policy};

use crate::command::{Arguments, RTLA};
use crate::draft::{Draft, Stated, coarse};
use crate::error::{Fault, excerpt};
use crate::json::JSON_MAX;
use crate::missed;
use crate::read::Options;
use crate::text;
use tailbound_core::utc::from_date_time;

/// Most elements and texts of a document: some 100 bytes of memory each.
const NODES_MAX: u32 = 2 << 20;

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    if bytes.len() > JSON_MAX {
        return Err(Fault::file(format!(
            "{} MiB of XML; at most {} are read",
            bytes.len() >> 20,
            JSON_MAX >> 20
        )));
    }
    let xml = std::str::from_utf8(bytes)
        .map_err(|e| Fault::byte(e.valid_up_to() as u64, "not UTF-8"))?
        .trim_start_matches('\u{feff}');
    let doc = Document::parse_with_options(
        xml,
        ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() },
    )
    .map_err(|e| {
        let line = u64::from(e.pos().row);
        let again = matches!(e, roxmltree::Error::UnexpectedDeclaration(_)) && line > 1;
        let reason = if again {
            "a second document begins here: cut the file apart and import each".to_owned()
        } else {
            format!("not XML: {e}")
        };
        Fault::line(line, reason)
    })?;
    let root = doc.root_element();
    if root.tag_name().name() != "rteval" {
        return Err(Fault::path(excerpt(root.tag_name().name()), "is not the element `rteval`"));
    }
    let mut draft = Draft::new("rteval", "summary.xml");
    draft.version = root.attribute("version").map(excerpt);
    let all = child(root, "Measurements")
        .ok_or_else(|| Fault::path("rteval.Measurements", "is missing"))?;
    let mut modules =
        all.children().filter(|c| c.has_tag_name("cyclictest") || c.has_tag_name("timerlat"));
    let module = modules.next().ok_or_else(|| {
        Fault::path("rteval.Measurements", "neither `cyclictest` nor `timerlat` is in it")
    })?;
    if modules.next().is_some() {
        draft.doubt(
            "source-mixed",
            "The file holds more than one measurement; only the first was read.".to_owned(),
            "The other measurements are not in this run.",
            "Import them from files of their own.",
        );
    }
    machine(&mut draft, root);
    measurement(&mut draft, root, module, options)?;
    Ok(draft)
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|c| c.has_tag_name(name))
}

fn at<'a, 'i>(node: Node<'a, 'i>, path: &[&str]) -> Option<Node<'a, 'i>> {
    path.iter().try_fold(node, |n, name| child(n, name))
}

fn words<'a>(node: Node<'a, '_>, path: &[&str]) -> Option<&'a str> {
    at(node, path)?.text().map(str::trim).filter(|t| !t.is_empty())
}

fn machine(draft: &mut Draft, root: Node<'_, '_>) {
    let Some(info) = child(root, "SystemInfo") else { return };
    for (fact, path) in [
        ("host.name", &["uname", "node"][..]),
        ("machine.arch", &["uname", "arch"]),
        ("kernel.release", &["uname", "kernel"]),
        ("kernel.cmdline", &["cmdlineInfo", "cmdline"]),
    ] {
        draft.fact(fact, words(info, path));
    }
    if let Some(rt) = at(info, &["uname", "kernel"]).and_then(|k| k.attribute("is_RT")) {
        draft.machine.insert("kernel.realtime".to_owned(), Fact::of(rt == "1"));
    }
    let source = at(info, &["Kernel", "ClockSource"])
        .and_then(|c| c.children().find(|s| s.attribute("current") == Some("1")));
    draft.fact("clock.source", source.and_then(|s| s.text()));
    if let Some(loads) = child(root, "loads") {
        let names: Vec<String> =
            loads.children().filter_map(|c| c.attribute("name")).take(16).map(excerpt).collect();
        draft.lose(format!(
            "Loads ran beside the measurement ({}); their settings and rates are not imported.",
            names.join(", ")
        ));
    }
}

fn measurement(
    draft: &mut Draft,
    root: Node<'_, '_>,
    module: Node<'_, '_>,
    options: &Options,
) -> Result<(), Fault> {
    let timerlat = module.has_tag_name("timerlat");
    let line = module.attribute("command_line").unwrap_or("");
    if timerlat {
        timerlat_settings(draft, line);
    } else {
        let version = draft.version.clone().unwrap_or_default();
        // What measured is cyclictest; which version is not in the file.
        draft.tool = "cyclictest".to_owned();
        draft.version = Some(format!("under rteval {version}").trim_end().to_owned());
        crate::command::cyclictest(draft, line);
    }
    times(draft, root, module);
    if let Some(report) = child(module, "abort_report") {
        let reason = report.attribute("reason").map_or_else(String::new, excerpt);
        draft.lose(format!("The run was ended early: {reason}."));
    }
    let mut cores: Vec<Node<'_, '_>> =
        module.children().filter(|c| c.has_tag_name("core")).take(text::THREADS_MAX + 1).collect();
    if cores.is_empty() {
        cores.extend(child(module, "system"));
        draft.lose("The file holds no figures per CPU, only those of all together.");
    }
    if cores.is_empty() {
        return Err(Fault::path(
            "rteval.Measurements",
            "rteval dropped all statistics, as it does when the greatest latency exceeds the histogram: \
             nothing can be imported; run rteval with more buckets",
        ));
    }
    for (i, core) in cores.into_iter().enumerate() {
        one(draft, i, core, if timerlat { Context::IrqThreadUser } else { Context::User })?;
    }
    draft.cut_values(1000);
    options.apply(draft);
    if timerlat {
        draft.doubt(
            "source-mixed",
            "rteval adds interrupt, thread and user latencies into one histogram.".to_owned(),
            "The quantiles are of a mixture and describe none of the three.",
            "Run rtla timerlat hist and import its output.",
        );
        // It passes over rtla's lines `over:`, `count:` and `max:`.
        draft.doubt(
            "source-lost-tail",
            "rteval's timerlat module leaves out values beyond the last bucket, and does not say how many there were."
                .to_owned(),
            "The greatest value is that of the buckets: a later wake-up, high quantiles and any tail bound are unknown.",
            "Run rtla timerlat hist and import its output.",
        );
    }
    let context = draft.threads.first().map_or(Context::User, |t| t.context);
    missed::skipped_uncounted(draft, context);
    Ok(())
}

fn timerlat_settings(draft: &mut Draft, line: &str) {
    draft.tool = "rtla timerlat under rteval".to_owned();
    draft.command = line.split_whitespace().map(str::to_owned).collect();
    let words = Arguments::new(&draft.command, &RTLA);
    let us = words.number("p").unwrap_or(1000);
    draft.interval_ns = i64::try_from(us).ok().and_then(|u| u.checked_mul(1000)).filter(|i| *i > 0);
    draft.clock = Some(tailbound_core::plan::Clock::Monotonic);
    let p = words.value("P").and_then(|p| p.strip_prefix("f:")).and_then(|p| p.parse().ok());
    draft.policy = Some(Policy::Fifo(p.filter(|p| (1..=99).contains(p)).unwrap_or(95)));
}

fn times(draft: &mut Draft, root: Node<'_, '_>, module: Node<'_, '_>) {
    if let (Some(d), Some(t)) =
        (words(root, &["run_info", "date"]), words(root, &["run_info", "time"]))
    {
        draft.started_s = from_date_time(d, t);
        draft.lose("rteval writes local times without a zone; the beginning is taken as UTC.");
    }
    let stamp = |name: &str| -> Option<f64> {
        let (date, time) = words(module, &["timestamps", name])?.split_once(' ')?;
        let whole = from_date_time(date, time)?.real();
        let fraction = time.split_once('.').and_then(|(_, f)| format!("0.{f}").parse::<f64>().ok());
        Some(whole + fraction.unwrap_or(0.0))
    };
    if let (None, Some(a), Some(b)) =
        (draft.duration_ns, stamp("runloop_start"), stamp("runloop_stop"))
    {
        draft.duration_ns = text::float_ns((b - a) * 1e9).filter(|d| *d > 0);
    }
}

fn one(draft: &mut Draft, i: usize, core: Node<'_, '_>, context: Context) -> Result<(), Fault> {
    let cpu = core
        .attribute("id")
        .and_then(|id| id.parse::<u32>().ok())
        .filter(|c| *c <= tailbound_core::cpus::MAX_CPU);
    let path = format!("core {}", core.attribute("id").map_or_else(|| "(all)".to_owned(), excerpt));
    let statistic = |name: &str| -> Result<Option<(&str, u64)>, Fault> {
        let Some(node) = at(core, &["statistics", name]) else { return Ok(None) };
        let unit = match node.attribute("unit") {
            None | Some("us") => 1000,
            Some("ns") => 1,
            Some(u) => {
                return Err(Fault::path(
                    format!("{path}.{name}"),
                    format!("unit `{}` is neither us nor ns", excerpt(u)),
                ));
            }
        };
        Ok(node.text().map(|t| (t.trim(), unit)))
    };
    let ns = |name: &str| -> Result<Option<i64>, Fault> {
        let Some((t, unit)) = statistic(name)? else { return Ok(None) };
        text::scaled(t, unit).map(Some).ok_or_else(|| {
            Fault::path(
                format!("{path}.{name}"),
                format!("`{}` is not a time within 292 years", excerpt(t)),
            )
        })
    };
    let unit = statistic("maximum")?.map_or(1000, |s| s.1);
    let step = i64::try_from(unit).unwrap_or(1);
    let mut d = coarse();
    let histogram = child(core, "histogram");
    for bucket in histogram.iter().flat_map(Node::children).filter(|b| b.has_tag_name("bucket")) {
        let bad = || {
            Fault::path(
                format!("{path}.histogram"),
                "a bucket whose index or value is not a number in range",
            )
        };
        let low = bucket.attribute("index").and_then(|t| text::scaled(t, unit)).ok_or_else(bad)?;
        let count = bucket.attribute("value").and_then(|t| t.parse().ok()).ok_or_else(bad)?;
        d.add_many(low, count);
    }
    let range = histogram
        .and_then(|h| h.attribute("nbuckets"))
        .and_then(|n| n.parse::<i64>().ok()?.checked_mul(step))
        .filter(|e| d.max_ns.is_none_or(|m| m < *e));
    let stated = Stated {
        n: statistic("samples")?.and_then(|(t, _)| t.parse().ok()),
        min_ns: ns("minimum")?,
        max_ns: ns("maximum")?,
        mean_ns: statistic("mean")?.and_then(|(t, u)| t.parse::<f64>().ok().map(|v| v * u.real())),
        resolution_ns: unit,
        beyond_ns: range.or_else(|| d.max_ns.map(|m| m.saturating_add(step))),
    };
    let who = cpu.map_or_else(|| "The system".to_owned(), |c| format!("CPU {c}"));
    let d = draft.settle(&who, d, stated);
    draft.thread(u32::try_from(i).unwrap_or(u32::MAX), cpu, context, d)
}

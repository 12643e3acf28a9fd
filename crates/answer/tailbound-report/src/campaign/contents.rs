// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which campaigns there are, and what one of them measures.

use serde_json::{Value, json};
use tailbound_core::campaign::{CampaignFile, Part};
use tailbound_core::units::{format_span, grouped, parse_ns};

use crate::table::wrap;

/// Campaigns in a list, in so many columns.
#[must_use]
pub fn list_text(all: &[CampaignFile], width: usize) -> String {
    let mut text = String::new();
    for file in all {
        let runs = file.parts().len();
        text.push_str(&format!("{} ({runs} run{})\n", file.name, if runs == 1 { "" } else { "s" }));
        for line in [file.reference(), file.text.about.clone()] {
            for line in wrap(&format!("  {line}"), width, "  ") {
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
    text
}

/// The same for scripts.
#[must_use]
pub fn list_json(all: &[CampaignFile]) -> Value {
    let row = |f: &CampaignFile| json!({"name": f.name, "reference": f.reference(), "about": f.text.about, "runs": f.parts().len()});
    let list: Vec<Value> = all.iter().map(row).collect();
    json!({"schema": "tailbound-campaigns/1", "campaigns": list})
}

/// A campaign with its runs, for scripts.
#[must_use]
pub fn contents_json(file: &CampaignFile) -> Value {
    let row = |p: &Part| json!({"part": p.id, "title": p.title});
    json!({
        "schema": "tailbound-campaign-file/1",
        "campaign": file,
        "runs": file.parts().iter().map(row).collect::<Vec<_>>(),
    })
}

/// What a campaign measures and claims, in so many columns.
#[must_use]
pub fn contents_text(file: &CampaignFile, width: usize) -> String {
    let mut lines = Vec::new();
    let mut push = |text: &str, indent: &str| lines.extend(wrap(text, width, indent));
    push(&file.reference(), "  ");
    push(&file.text.about, "");
    push(&format!("Machine of the publication: {}.", file.text.machine), "");
    lines.push(String::new());
    let parts = file.parts();
    for (at, step) in file.steps.iter().enumerate() {
        let own: Vec<&Part> = parts.iter().filter(|p| p.step == at).collect();
        let names: Vec<&str> = own.iter().map(|p| p.id.as_str()).collect();
        let names = match names.as_slice() {
            [first, .., last] if names.len() > 4 => {
                format!("{first} to {last}, {} runs", names.len())
            }
            all => all.join(", "),
        };
        lines.extend(wrap(&format!("{names}: {}", step.title), width, "  "));
        let mut said: Vec<String> =
            own.iter().map(|p| format!("{}; {}", length(p), loads(p))).collect();
        said.dedup();
        lines.extend(said.iter().flat_map(|s| wrap(&format!("  {s}"), width, "    ")));
    }
    for (heading, texts) in [
        ("Published claims", file.claims.iter().map(|c| c.text.clone()).collect::<Vec<_>>()),
        ("What differs", file.differs.clone()),
    ] {
        if !texts.is_empty() {
            lines.push(String::new());
            lines.push(heading.to_owned());
            for text in texts {
                lines.extend(wrap(&format!("- {text}"), width, "  "));
            }
        }
    }
    lines.join("\n")
}

fn length(part: &Part) -> String {
    let words = &part.run;
    let interval = words.interval.clone().unwrap_or_else(|| "1ms".to_owned());
    let benchmarks = words.work.iter().flatten().count();
    if part.only_work {
        let many = if benchmarks == 1 { "benchmark" } else { "benchmarks" };
        return format!("{benchmarks} {many}, {} times", words.repeat.unwrap_or(3));
    }
    match (words.loops, &words.duration) {
        (Some(n), _) => {
            let ns = parse_ns(&interval).unwrap_or(0);
            let all = ns.saturating_mul(i64::try_from(n).unwrap_or(i64::MAX));
            format!("{} every {interval}, {}", grouped(n), format_span(all))
        }
        (None, Some(duration)) => format!("{duration}, every {interval}"),
        (None, None) => format!("the default, every {interval}"),
    }
}

fn loads(part: &Part) -> String {
    let of = if part.only_work { &part.run.work } else { &part.run.load };
    let what = if part.only_work { "" } else { "load " };
    of.as_ref().map_or_else(|| format!("{what}as usual"), |l| format!("{what}{}", l.join(", ")))
}

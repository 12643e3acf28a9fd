// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign as one HTML file: what the publication claims and how it came out, its figures beside
//! ours, then each measurement with the systems over one another.
//!
//! Links lead to the runs' own reports in the folder; everything else is in the
//! file. Not here: the page itself (`crate::html`), pictures (`pictures`).

use std::fmt::Write as _;

use tailbound_core::Run;
use tailbound_core::campaign::{Part, Step};
use tailbound_stats::campaign::{self, CampaignEvidence, CampaignRun, Judged, Word};
use tailbound_stats::decide::of_runs;

use super::{json, notes, tables};
use crate::escape::{link, xml};
use crate::html::page::Page;
use crate::pictures::{self, Multiple, Series};
use crate::svg::Layout;
use crate::svg::plot::Look;

/// The page of a campaign; needs nothing else.
#[must_use]
pub fn html(given: &CampaignEvidence) -> String {
    let mut page = Page::default();
    let (rows, claims) = (campaign::rows(given), campaign::claims(given));
    let file = &given.file;
    let _ = write!(page.body, "<h1>Tailbound campaign: {}</h1>", xml(&file.name));
    let class = match claims.iter().map(|c| c.word).max() {
        _ if !given.is_complete() => "undecided",
        Some(Word::DoesNotHold) => "not-met",
        Some(Word::Holds) => "met",
        _ => "measured",
    };
    let _ = write!(
        page.body,
        "<div class=\"verdict {class}\"><p>{}</p></div>",
        xml(&notes::headline(given, &claims, &rows))
    );
    page.text("", &file.reference());
    page.text("", &file.text.about);
    page.text("soft", &format!("Machine of the publication: {}.", file.text.machine));
    if !claims.is_empty() {
        page.heading("Published claims");
        claims.iter().for_each(|c| claim(&mut page, c));
    }
    if !rows.is_empty() {
        page.heading("Published figures beside ours");
        let table = tables::beside(&rows).html();
        page.push(&table);
        page.text(
            "soft",
            "Per due activation. The 95 % interval is ours, from stretches of the schedule or from repetitions; a dash: none. The ratio is ours divided by the published figure. `alike` means within a tenth; `agrees` means that our interval contains the published figure. A maximum or minimum is exact for what was measured, and has no interval.",
        );
        for note in file.figures.iter().filter_map(|f| Some((f, f.note.as_ref()?))) {
            page.text("note", &format!("{}: {}", note.0.name, note.1));
        }
    }
    let lists = [
        ("What can no longer be claimed", notes::lost(given)),
        ("What makes results unreliable", notes::doubts(given)),
        ("What differs", notes::differs(given)),
    ];
    for (heading, lines) in lists {
        if !lines.is_empty() {
            page.heading(heading);
            page.list(&lines);
        }
    }
    for (at, step) in file.steps.iter().enumerate() {
        let parts: Vec<&Part> = given.parts.iter().filter(|p| p.step == at).collect();
        self::step(&mut page, given, step, &parts);
    }
    page.heading("Every run");
    let table = tables::runs(given, None).html();
    let _ = write!(page.body, "<div class=\"cells\">{table}</div>");
    let report = json::json(given);
    page.finish(&format!("campaign {}", file.name), &[report])
}

fn claim(page: &mut Page, claim: &Judged) {
    let class = match claim.word {
        Word::Holds => "met",
        Word::Undecidable => "undecided",
        Word::DoesNotHold => "not-met",
    };
    let _ = write!(
        page.body,
        "<div class=\"finding {class}\"><p><span class=\"word\">{}</span>: {}</p><ul>",
        xml(claim.word.text()),
        xml(&claim.claim)
    );
    for j in &claim.judgements {
        let word = if claim.judgements.len() > 1 { j.word.text() } else { "" };
        let gap = if word.is_empty() { "" } else { ": " };
        let _ = write!(page.body, "<li>{}{gap}{}</li>", xml(word), xml(&j.why));
    }
    page.push("</ul></div>");
}

fn step(page: &mut Page, given: &CampaignEvidence, step: &Step, parts: &[&Part]) {
    let _ = write!(page.body, "<h2 id=\"{}\">{}</h2>", xml(&step.id), xml(&step.title));
    page.text("soft", &format!("Published: {}", step.told));
    links(page, given, parts);
    if step.tasks.is_some() {
        sleepers(page, given, parts);
    } else {
        curves(page, given, step, parts);
    }
    for part in parts {
        let tables = [tables::statistics(given, part), tables::benchmarks(given, part)];
        for table in tables.into_iter().flatten() {
            if parts.len() > 1 {
                let _ = write!(page.body, "<h3>{}</h3>", xml(&part.title));
            }
            page.push(&table.html());
        }
    }
}

/// Where each run's own report is.
fn links(page: &mut Page, given: &CampaignEvidence, parts: &[&Part]) {
    let mut all = Vec::new();
    for part in parts {
        for system in &given.systems {
            let Some(place) = system.place(&part.id) else { continue };
            let words = format!("{}, {}", part.title, system.name);
            match (&place.report, place.run()) {
                (Some(report), Some(_)) => {
                    let target = link(report);
                    all.push(format!("<a href=\"{target}\">{}</a>", xml(&words)));
                }
                (None, Some(_)) => all.push(xml(&words)),
                _ => all.push(xml(&format!("{words}: {}", place.words()))),
            }
        }
    }
    if !all.is_empty() {
        let _ = write!(page.body, "<p class=\"soft\">Runs: {}</p>", all.join("; "));
    }
}

/// All tasks of one step as one picture.
fn sleepers(page: &mut Page, given: &CampaignEvidence, parts: &[&Part]) {
    let mut sides = Vec::new();
    for system in &given.systems {
        let runs = parts.iter().filter_map(|p| Some((p.id.as_str(), system.place(&p.id)?.run()?)));
        let runs: Vec<(&str, &Run)> = runs.collect();
        if !runs.is_empty() {
            sides.push(of_runs(&system.name, &runs, None));
        }
    }
    match crate::decide::sleepers::of_sides(&sides.iter().collect::<Vec<_>>()) {
        Some(figure) => page.figure(&figure, "campaign"),
        None => page.text("note", "No picture: nothing was measured."),
    }
}

/// The systems over one another, a pair of pictures per part, all with the same axes.
fn curves(page: &mut Page, given: &CampaignEvidence, step: &Step, parts: &[&Part]) {
    let series = |part: &Part| -> Vec<Series> {
        let of = |(i, place): (usize, Option<&CampaignRun>)| {
            let run = place?.run()?;
            let (wakeup, due) = run.judged_total();
            let name = given.systems.get(i).map(|s| s.name.clone()).unwrap_or_default();
            (due.n > 0).then_some(Series { name, look: Look::Nth(i), due, wakeup })
        };
        let places = given.systems.iter().map(|s| s.place(&part.id)).enumerate();
        places.filter_map(of).collect()
    };
    let parts: Vec<&&Part> = parts.iter().filter(|p| !p.only_work).collect();
    let all: Vec<Series> = parts.iter().flat_map(|p| series(p)).collect();
    let Some(multiple) = Multiple::of(&all, Layout::HALF) else { return };
    for part in &parts {
        let series = series(part);
        let pair = [
            pictures::late_multiple(&series, None, &multiple),
            pictures::survival_multiple(&series, None, &multiple),
        ];
        let pair: Vec<_> = pair.into_iter().flatten().collect();
        if pair.is_empty() {
            continue;
        }
        if parts.len() > 1 {
            let _ = write!(page.body, "<h3>{}</h3>", xml(&part.title));
        }
        page.push("<section class=\"multiples\">");
        pair.iter().for_each(|f| page.figure(f, &format!("{}-{}", step.id, part.id)));
        page.push("</section>");
    }
}

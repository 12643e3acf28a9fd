// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every link of a report leads to a page that the site has, whatever its file names; without a page an id is text.
//!
//! A program of its own: where the site is holds for all reports of a program.

mod common;

use std::collections::BTreeSet;

use common::{Shape, run};
use roxmltree::{Document, ParsingOptions};
use tailbound_core::blame::{BlamePart, BlameRecord, Cause};
use tailbound_core::id_page::{IdPage, Subject};
use tailbound_core::rules::{Occurrence, Rule, ViolationRecord};
use tailbound_core::{Finding, Impact, finding_kinds};
use tailbound_report::site::TerminalLinks;
use tailbound_report::{html, own_colors, site};
use tailbound_stats::Analysis;

const ADDRESS: &str = "https://site.invalid/docs";

fn blamed(cause: Cause) -> BlameRecord {
    let part = BlamePart { ns: 200_000, cause, who: "w".into(), ..BlamePart::default() };
    BlameRecord {
        t_ns: 1_000_000,
        latency_ns: 200_000,
        cpu: Some(0),
        parts: vec![part],
        ..BlameRecord::default()
    }
}

fn broken(rule: Rule) -> ViolationRecord {
    let once = Occurrence::default();
    ViolationRecord {
        rule,
        tid: 7,
        name: "ctl".into(),
        site: "mmap".into(),
        n: 1,
        total: once.cost,
        first: once.clone(),
        worst: once,
    }
}

#[test]
fn every_link_leads_to_a_page_and_every_id_has_its_link() {
    let mut run = run(&Shape { seconds: 20, per_second: 200, ..Shape::default() });
    run.findings = finding_kinds::all()
        .map(|kind| match kind.form {
            finding_kinds::IdForm::Whole => kind.id.to_owned(),
            finding_kinds::IdForm::Numbered => format!("{}-0", kind.id),
        })
        .chain(["of-a-later-version".to_owned()])
        .map(|id| Finding::new(&id, Impact::Doubt, "seen"))
        .collect();
    run.blames = Cause::WORDS.iter().map(|word| blamed(Cause::of(word))).collect();
    run.violations = Rule::ALL.iter().copied().map(broken).collect();
    let page = || html(&[Analysis::of(&run)], &["x.jsonl".to_owned()]);
    let before = page();
    assert!(!before.contains("<a href=\"http"), "no address was given yet");
    let checks = ["app.mlock", "sched.prio-order"];
    let mut pages = site::own_pages();
    pages.push(IdPage::new(Subject::Probe, &run.header.plan.probe, "It measures."));
    let loads: BTreeSet<&str> = run.loads.iter().filter_map(|l| l.name.split(':').next()).collect();
    for load in &loads {
        pages.push(IdPage::new(Subject::Load, load, "It loads <much>."));
    }
    pages.extend(checks.map(|id| IdPage::new(Subject::Check, id, "It looks.")));
    site::link_to("javascript:alert(1)", pages.clone());
    site::link_to(&format!(" {ADDRESS}/ \n"), pages.clone());
    let after = page();
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let doc = Document::parse_with_options(&after, options).expect("well-formed XML");
    let links: BTreeSet<String> = doc
        .descendants()
        .filter_map(|n| n.attribute("href"))
        .filter(|href| href.contains(':'))
        .map(|href| href.strip_prefix(&format!("{ADDRESS}/")).expect(href).to_owned())
        .collect();
    let there: BTreeSet<String> = pages.iter().map(IdPage::path).collect();
    assert_eq!(there.len(), pages.len(), "each page has a place of its own");
    assert_eq!(links.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new());
    let shown = [Subject::Finding, Subject::Rule, Subject::Probe, Subject::Load, Subject::Check];
    for page in pages.iter().filter(|p| shown.contains(&p.subject)) {
        assert!(links.contains(&page.path()), "{} is no link", page.path());
    }
    assert!(links.iter().any(|l| l.starts_with("ids/cause/")), "{links:?}");
    for cause in Cause::WORDS {
        let linked = site::linked(Subject::Cause, cause, cause);
        assert!(linked.contains(&format!("{ADDRESS}/ids/cause/{cause}.html")), "{linked}");
    }
    assert_eq!(site::linked(Subject::Probe, "no<such", "no<such"), "no&lt;such");
    // On a terminal as well; a word that is no id, or an id of two things, stays as it is.
    let said =
        "(app.mlock, no.such-id) memory: \u{1b}[1mlock-spin.\u{1b}[0m \u{1b}]8;;http://x\u{1b}\\";
    let linked = own_colors(said, TerminalLinks::Known);
    let link = |path: &str, id: &str| {
        format!("\u{1b}]8;;{ADDRESS}/ids/{path}/{id}.html\u{1b}\\{id}\u{1b}]8;;\u{1b}\\")
    };
    assert!(
        linked.starts_with(&format!("({}, no.such-id) memory", link("check", "app.mlock"))),
        "{linked:?}"
    );
    assert_eq!(linked.matches("\u{1b}]8;;https").count(), 2, "{linked:?}");
    assert!(
        !linked.contains("\u{1b}]8;;http:"),
        "what was not ours is shown, not obeyed: {linked:?}"
    );
    assert!(!own_colors(said, TerminalLinks::Unknown).contains("\u{1b}]8"));
    // The page is what it was but for the links, and for terms of the glossary that are in their titles.
    let bare = |markup: &str| {
        let body = markup.split("<h2>Glossary").next().unwrap_or_default().to_owned();
        body.split('<').filter(|t| !t.starts_with("a href") && !t.starts_with("/a>")).count()
    };
    assert_eq!(bare(&before), bare(&after));
}

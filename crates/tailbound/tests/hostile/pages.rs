// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that is made of a run, and what is looked for in it.

use roxmltree::{Document, ParsingOptions};
use tailbound_core::Run;
use tailbound_core::campaign::CampaignFile;
use tailbound_core::printable;
use tailbound_report::campaign;
use tailbound_report::compare::Answer;
use tailbound_report::matrix::{self, Cell, Labels};
use tailbound_report::{Style, bound, decide, history, html, json, pictures, text};
use tailbound_stats::Analysis;
use tailbound_stats::bound::of_run;
use tailbound_stats::campaign::{CampaignEvidence, CampaignRun, CampaignSystem, State};
use tailbound_stats::change::Settings as Series;
use tailbound_stats::compare::{Settings, Systems};
use tailbound_stats::decide::{Answers, choose, of_runs};

use crate::mutate::TAG;

type Checked = Result<(), String>;

/// What a mutant is put beside.
pub(crate) struct Known<'a> {
    base: &'a Run,
    campaign: &'a CampaignFile,
}

impl<'a> Known<'a> {
    pub(crate) fn of(base: &'a Run, campaign: &'a CampaignFile) -> Self {
        Self { base, campaign }
    }

    /// Makes the pages of `run`: the common ones, and by `turn` one of the rest.
    pub(crate) fn check(&self, run: &Run, turn: usize) -> Checked {
        let mut run = run.clone();
        let end = run.end_reason();
        let measured = run.measured_ns();
        let (plan, threads) = (&run.header.plan, &run.threads);
        let own =
            tailbound_stats::verdict(plan, threads, &run.seconds, &run.findings, end, measured);
        if turn.is_multiple_of(2) {
            run.verdict = Some(own);
        }
        let analysis = Analysis::of(&run);
        of_text("text", &text(&analysis, Style::default()))?;
        of_json("json", &json(&analysis))?;
        markup("html", &html(std::slice::from_ref(&analysis), &["<evil>".to_owned()]), 3)?;
        let threads = pictures::threads(&run);
        let deadline = run.header.plan.requirement.deadline_ns;
        let all = [
            pictures::late(&threads, deadline),
            pictures::survival(&threads, deadline),
            pictures::maxima(&analysis),
        ];
        for figure in all.into_iter().flatten() {
            markup(figure.id, &figure.standalone(), 0)?;
        }
        match turn % 6 {
            0 => self.bound(&run),
            1 => self.history(&run),
            2 => self.compare(&run),
            3 => self.decide(&run),
            4 => self.matrix(&run),
            _ => of_campaign(&run, self.campaign, "javascript:evil"),
        }
    }

    fn bound(&self, run: &Run) -> Checked {
        let statement = of_run(run);
        let rate = run.header.plan.requirement.rate;
        of_text("bound", &bound::text(&statement, "x\u{1b}", rate, Style::default()))?;
        of_json("bound", &bound::json(&[("x".to_owned(), rate, statement)]))?;
        of_text("benchmarks", &decide::benchmarks::text(run))?;
        of_json("benchmarks", &decide::benchmarks::json(run))
    }

    fn history(&self, run: &Run) -> Checked {
        let runs = [self.base.clone(), run.clone(), self.base.clone(), run.clone()];
        let names = ["a", "b\u{202e}", "<evil/>", "d"].map(str::to_owned);
        let groups = history::groups(&runs, &names, Series::default());
        of_text("history", &history::text(&groups, Style::default()))?;
        of_json("history", &history::json(&groups))?;
        markup("history", &history::html(&groups), 3)
    }

    fn compare(&self, run: &Run) -> Checked {
        let given =
            [("a".to_owned(), vec![self.base.clone()]), ("<evil/>".to_owned(), vec![run.clone()])];
        let Ok(systems) = Systems::of(&given, &[]) else { return Ok(()) };
        let answer = Answer::of(systems, Settings::default());
        of_text("compare", &answer.text(Style::default()))?;
        of_json("compare", &answer.json())?;
        markup("compare", &html::comparison(&answer), 3)
    }

    fn decide(&self, run: &Run) -> Checked {
        let deadline = run.header.plan.requirement.deadline_ns;
        let side = |name, run: &Run| of_runs(name, &[("f", run)], deadline);
        let choice = choose(side("<evil/>", run), side("b", self.base), Answers::default(), None);
        of_text("decide", &decide::text(&choice, Style::default()))?;
        of_json("decide", &decide::json(&choice))?;
        markup("decide", &decide::html(&choice), 3)
    }

    fn matrix(&self, run: &Run) -> Checked {
        let cell = |kernel: &str, run: &Run| {
            let labels =
                Labels { kernel: kernel.into(), load: "<evil/>".into(), append: String::new() };
            Cell { labels, file: Some("javascript:evil".into()), run: Ok(run.clone()) }
        };
        let cells = [cell("a", self.base), cell("b\u{1b}", run)];
        of_text("matrix", &matrix::text(&cells, Style::default()))?;
        of_json("matrix", &matrix::json(&cells))?;
        markup("matrix", &matrix::html(&cells), 3)
    }
}

/// The pages of a campaign of which every part was measured and is `run`.
pub(crate) fn of_campaign(run: &Run, file: &CampaignFile, folder: &str) -> Checked {
    let places = file.parts().into_iter().map(|part| CampaignRun {
        part: part.id,
        state: State::Complete(Box::new(run.clone())),
        file: Some(format!("{folder}/run")),
        report: Some(format!("{folder}/x.html")),
    });
    let measured = CampaignSystem::of(folder, places.collect());
    let given = CampaignEvidence::of(file.clone(), vec![(folder.to_owned(), measured)]);
    of_text("campaign", &campaign::text(&given, Style::default()))?;
    of_json("campaign", &campaign::json(&given))?;
    markup("campaign", &campaign::html(&given), 3)
}

fn of_text(what: &str, text: &str) -> Checked {
    match text.chars().position(printable::is_harmful) {
        Some(at) => {
            let around: String = text.chars().skip(at.saturating_sub(60)).take(120).collect();
            Err(format!("{what} holds a control character: {around:?}"))
        }
        None => Ok(()),
    }
}

fn of_json(what: &str, value: &serde_json::Value) -> Checked {
    of_text(what, &printable::json(value.to_string()))
}

/// Well-formed, and with no element, attribute or link that is not Tailbound's.
fn markup(what: &str, page: &str, scripts: usize) -> Checked {
    of_text(what, page)?;
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let doc = Document::parse_with_options(page, options).map_err(|e| format!("{what}: {e}"))?;
    let mut found = 0;
    for node in doc.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        found += usize::from(name == "script");
        let foreign = ["iframe", "object", "embed", "form", "img", "base", "link", TAG];
        if foreign.contains(&name) {
            return Err(format!("{what} holds an element <{name}>"));
        }
        for a in node.attributes() {
            let link = matches!(a.name(), "href" | "src" | "action");
            let bad = a.name().starts_with("on")
                || link && (a.value().contains(':') || a.value().starts_with("//"));
            if bad {
                return Err(format!("{what} holds {}={:?}", a.name(), a.value()));
            }
        }
    }
    if found != scripts { Err(format!("{what} holds {found} scripts")) } else { Ok(()) }
}

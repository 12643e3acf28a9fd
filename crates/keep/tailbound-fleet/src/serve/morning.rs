// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first page: the farm in one line, then a row a system.
//!
//! Units: ns; days are UTC.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use tailbound_core::number::Whole as _;
use tailbound_report::escape::xml;
use tailbound_store::{Act, NightState, Since, Verdict};

use super::app::App;
use super::boards::{self, Board, Morning};
use super::known::{day, known_words};
use super::listing::{Column, Listing};
use super::overview::{RENEWED_S, TREND_DAYS, choice, minute};
use super::page::{Page, ns, plural, verdict};
use super::problem::Problem;
use super::who::{Who, allowed};
use super::{login, pictures};

/// `GET /`
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
) -> Result<Response, Problem> {
    if matches!(who, Who::Anybody) && !app.config.open {
        return Ok(login::first("/"));
    }
    allowed(&app, &who, Act::Read)?;
    let all = boards::all(&app, Since::From(app.days_ago(TREND_DAYS - 1))).await?;
    let mut page = Page::new(&app, "Systems").renewed(RENEWED_S);
    if all.systems.is_empty() {
        page.body.push_str(
            "<p class=\"lead\">There is no run in this store yet.</p>\
             <p>A machine hands in its run files with a token (<code>tailbound serve token add NAME --role agent --system NAME</code>), \
             or they are added here with <code>tailbound store add</code>.</p>",
        );
        return Ok(page.answer());
    }
    page.body = line(&all.morning);
    page.body.push_str(
        "<form method=\"get\" action=\"/compare\" class=\"list\"><button type=\"submit\">Compare the newest runs of the chosen</button>",
    );
    let trend = format!("Trend, {TREND_DAYS} days");
    let mut listing = Listing::new(&[
        Column::Name("System"),
        Column::Words("Last night"),
        Column::Figure("Worst run"),
        Column::Figure("Left of the deadline"),
        Column::Words("Trend"),
        Column::Words("Became worse"),
        Column::Words("Last run (UTC)"),
        Column::Aside("Kernel"),
    ]);
    let today = app.days_ago(0);
    for board in &all.systems {
        row(&mut listing, board, &today);
    }
    let _ = write!(
        page.body,
        "{}</form><p class=\"soft\">Last night: the 24 hours that end with a system's newest run, over all its workloads; each counts by its \
         worst verdict in them. Worst run: the one that came nearest to its deadline. {trend} up to today: the worst of each day, logarithmic; a red \
         dot is the worst. Marks: a solid line where the kernel changed, a dashed one where the configuration did, a dotted one where the \
         method did; a triangle where it became worse. Silent: no run for two days.</p>",
        listing.html()
    );
    Ok(page.answer())
}

/// All of it in one line.
fn line(m: &Morning) -> String {
    let mut parts = vec![match m.not_met {
        0 => "<span class=\"good\">none not met</span>".to_owned(),
        n => format!("<strong class=\"bad\">{n} not met</strong>"),
    }];
    parts.push(match m.worse {
        0 => "none became worse".to_owned(),
        n => format!("<a href=\"/regressions\"><strong>{n} became worse</strong></a>"),
    });
    if m.waiting > 0 {
        parts.push(format!("{} series not looked at yet", m.waiting));
    }
    parts.push(match (&m.silent_since, m.silent) {
        (Some(since), n) if n > 0 => {
            format!("<strong>{n} silent since {}</strong>", xml(&day(since)))
        }
        _ => "none silent".to_owned(),
    });
    parts.push(match m.unheard.len() {
        0 => "no agent unheard of".to_owned(),
        n => format!(
            "<a href=\"/work\"><strong>{n} {} unheard of: {}</strong></a>",
            plural(n, "agent", "agents"),
            xml(&m.unheard.join(", "))
        ),
    });
    format!(
        "<p class=\"lead\">{} {}: {}.</p>",
        m.systems,
        plural(m.systems, "system", "systems"),
        parts.join(" · ")
    )
}

fn row(listing: &mut Listing, board: &Board, today: &str) {
    let system = board.system();
    let Some(last) = &system.last else { return };
    let worse_days: Vec<String> = board.worse.iter().map(|w| day(&w.regression.since)).collect();
    let trend = pictures::Trend {
        days: &system.days,
        changes: &board.record.changes,
        worse: &worse_days,
        last: today,
        length: TREND_DAYS,
    };
    let worst = system.night.as_ref().and_then(NightState::worst);
    let kernel = last.kernel.as_deref().unwrap_or("unknown");
    listing.row(&[
        format!(
            "{}<a href=\"/systems/{}\">{}</a>",
            choice(&last.id, &system.name),
            xml(&system.id),
            xml(&system.name)
        ),
        state(board),
        worst.map_or_else(
            || "–".to_owned(),
            |w| {
                let beside = if w.loads.is_empty() { "without load" } else { w.loads.as_str() };
                format!(
                    "<a href=\"/runs/{}\">{}</a><br/><span class=\"soft\">{}</span>",
                    xml(&w.worst_run),
                    ns(w.max_ns),
                    xml(beside)
                )
            },
        ),
        headroom(board.headroom, worst.and_then(|w| w.deadline_ns)),
        pictures::spark(&trend),
        worse(board),
        last_run(board, &last.started, last.clock_said.as_deref()),
        xml(kernel),
    ]);
}

/// What is left of a deadline, as a share and as a bar.
pub(super) fn headroom(left: Option<f64>, deadline_ns: Option<i64>) -> String {
    let (Some(left), Some(_)) = (left, deadline_ns) else {
        return "<span class=\"soft\">no deadline</span>".to_owned();
    };
    let percent = (left * 100.0).round().whole_i64();
    // Neither is nothing: a little over is not met, and a little left is met.
    let words = match (left < 0.0, percent) {
        (true, 0) => format!("<strong class=\"bad\">under 1 % over</strong> {}", ns(deadline_ns)),
        (true, _) => {
            format!("<strong class=\"bad\">{} % over</strong> {}", -percent, ns(deadline_ns))
        }
        (false, 0) if left > 0.0 => format!("under 1 % of {}", ns(deadline_ns)),
        (false, _) => format!("{percent} % of {}", ns(deadline_ns)),
    };
    let used = (1.0 - left).clamp(0.0, 1.0);
    format!(
        "{words}<br/><meter min=\"0\" max=\"1\" low=\"0.8\" high=\"0.999\" optimum=\"0\" value=\"{used:.3}\" aria-label=\"used of the deadline\"></meter>"
    )
}

/// The verdict of the last night, with since when, and who knows it.
pub(super) fn state(board: &Board) -> String {
    let Some(night) = &board.system().night else { return "–".to_owned() };
    let of = night.workloads.len();
    let mut words = verdict(night.verdict.as_str());
    let _ = match night.verdict {
        Verdict::NotMet => write!(words, " {} of {of}", night.not_met),
        verdict => write!(words, " {} of {of}", night.count(verdict)),
    };
    if let Some(since) = &night.not_met_since {
        let _ = write!(words, "<br/><span class=\"soft\">since {}</span>", xml(&day(since)));
    }
    let others: Vec<String> = [Verdict::Unfit, Verdict::Undecided]
        .into_iter()
        .filter(|v| *v != night.verdict && night.count(*v) > 0)
        .map(|v| format!("{} {}", night.count(v), v.as_str()))
        .collect();
    if !others.is_empty() {
        let _ = write!(words, "<br/><span class=\"soft\">{}</span>", xml(&others.join(", ")));
    }
    for known in &board.known {
        let _ =
            write!(words, "<br/><span class=\"known\">{}</span>", known_words(&known.acknowledged));
    }
    words
}

fn worse(board: &Board) -> String {
    let Some(first) = board.worse.first() else { return "–".to_owned() };
    let r = &first.regression;
    let most = r.moved.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let moved = most
        .map_or_else(String::new, |m| format!("{} {:+.0} %", m.figure, (m.ratio - 1.0) * 100.0));
    let more = match board.worse.len() {
        1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    let known = first.acknowledged.as_ref().map_or_else(String::new, |a| {
        format!("<br/><span class=\"known\">{}</span>", known_words(a))
    });
    format!(
        "<a href=\"/systems/{}#worse\">since {}</a><br/><span class=\"soft\">{}{more}</span>{known}",
        xml(&board.system().id),
        xml(&day(&r.since)),
        xml(&moved),
    )
}

fn last_run(board: &Board, started: &str, clock_said: Option<&str>) -> String {
    let mut words = match &board.silent_since {
        Some(_) => {
            format!("<strong class=\"bad\">silent since</strong><br/>{}", xml(&minute(started)))
        }
        None => xml(&minute(started)),
    };
    if let Some(said) = clock_said {
        let _ = write!(words, "<br/>{}", wrong_clock(said));
    }
    words
}

/// A mark of a run whose clock cannot be right.
pub(super) fn wrong_clock(said: &str) -> String {
    format!(
        "<span class=\"tag unfit\" title=\"ordered by when it arrived\">clock wrong: {}</span>",
        xml(&day(said))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_was_missed_by_little_was_missed() {
        let words = |left| headroom(Some(left), Some(1_000_000));
        assert!(words(-0.002).contains("under 1 % over"), "{}", words(-0.002));
        assert!(words(0.002).contains("under 1 % of"), "{}", words(0.002));
        assert!(words(-0.25).contains("25 % over") && words(0.5).starts_with("50 % of"));
        assert!(words(0.0).starts_with("0 % of"), "{}", words(0.0));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this program keeps of itself and reads again: plans and journals of tuning, journals of bisections, corpora of
//! hunts, records of bounds.
//!
//! A journal is undone on a machine that refuses everything.

use std::fs;
use std::path::Path;

use tailbound_core::envelope;
use tailbound_core::frames::{self, Collector, StreamState};
use tailbound_core::theory::{Evidence, Execution, TheoryRecord, Variable, VariableRecord, Vector};
use tailbound_host::Root;
use tailbound_host::root::{Found, Missing};
use tailbound_host::threads::Thread;
use tailbound_lab::board::handed;
use tailbound_search::bisect::Journal;
use tailbound_search::hunt::{
    Candidate, End, Entry, Evaluator, Figures, Guidance, Outcome, Search, hunt, lab,
};
use tailbound_stats::theory;
use tailbound_tune::journal::{self, Places};
use tailbound_tune::{
    Machine, Mode, Moment, Plan, Profile, Recipe, Refused, State, System, Target, undo, verify,
};

use super::{Kind, Reader};

pub(super) const BOARDS: Kind = Kind {
    name: "logs_of_boards",
    share: 1,
    texts: true,
    samples: || {
        let log = |run: &str| frames::lines(&envelope_of(run)).join("\r\n").into_bytes();
        vec![log(crate::RUN), log(crate::LAB), envelope_of(crate::RUN)]
    },
    reader: || Box::new(|bytes, _| heard(bytes)),
};

pub(super) const TUNE_PLANS: Kind = Kind {
    name: "plans_of_tuning",
    share: 1,
    texts: true,
    samples: || vec![serde_json::to_vec_pretty(&tuning()).unwrap()],
    reader: || {
        let root = host();
        Box::new(move |bytes, _| {
            let Ok(saved) = serde_json::from_slice::<Plan>(bytes) else { return Ok(false) };
            drop((saved.script(), saved.undo_script()));
            drop(tailbound_tune::renewed(&saved, &root));
            Ok(true)
        })
    },
};

pub(super) const TUNE_JOURNALS: Kind =
    Kind { name: "journals_of_tuning", share: 1, texts: true, samples: journals, reader: undone };

pub(super) const BISECT_JOURNALS: Kind = Kind {
    name: "journals_of_bisections",
    share: 1,
    texts: true,
    samples: || {
        let steps = [
            "{\"type\":\"step\",\"key\":\"v0\",\"measured\":{\"value-ns\":17000},\"run\":\"0.tailbound\"}",
            "{\"type\":\"step\",\"key\":\"v1\",\"title\":\"one\",\"measured\":{\"unfit\":\"no boot\"}}",
            "{\"type\":\"step\",\"key\":\"v2\",\"measured\":{\"value-ns\":-1},\"note\":\"twice\"}",
        ];
        vec![(Journal::new("a b").text() + &steps.join("\n") + "\n").into_bytes()]
    },
    reader: || Box::new(|bytes, _| bisection(bytes)),
};

pub(super) const CORPORA: Kind = Kind {
    name: "corpora_of_hunts",
    share: 2,
    texts: true,
    samples: || vec![corpus()],
    reader: || Box::new(|b, _| hunted(b)),
};

pub(super) const BOUNDS: Kind = Kind {
    name: "records_of_bounds",
    share: 2,
    texts: true,
    samples: || vec![serde_json::to_vec_pretty(&bound()).unwrap()],
    reader: || {
        Box::new(|bytes, _| {
            let Ok(record) = serde_json::from_slice::<TheoryRecord>(bytes) else {
                return Ok(false);
            };
            let answer = theory::answer(&record);
            Ok(answer.holds(&record).is_ok())
        })
    },
};

fn host() -> Root {
    Root::at(crate::folder("../base/tailbound-host/tests/fixtures/hosts/rt-pc"))
}

fn tuning() -> Plan {
    let profile = Profile::shipped("cyclic").unwrap();
    let recipe = Recipe { rt_cpus: "2-3".to_owned(), ..Recipe::of(profile.written()) };
    recipe.plan(&host()).unwrap()
}

fn journals() -> Vec<Vec<u8>> {
    let plan = tuning();
    let mut lines = vec![journal::Entry::Begin {
        time: "2026-01-01T00:00:00Z".to_owned(),
        plan: Box::new(plan.clone()),
        moment: Some(Moment { ticks: 7, ..Moment::default() }),
    }];
    for (step, one) in plan.steps.iter().enumerate() {
        lines.push(journal::Entry::Intent { step, old: one.old.clone(), anchor: Some(7) });
        lines.push(journal::Entry::Done { step, now: one.new.clone() });
    }
    lines.push(journal::Entry::Applied);
    let text: String = lines.iter().map(|l| serde_json::to_string(l).unwrap() + "\n").collect();
    vec![text.into_bytes()]
}

/// A machine that nothing can be read of, and that takes nothing.
struct Nobody;

impl System for Nobody {
    fn read(&self, _: &Target) -> Found<State> {
        Err(Missing::Unknown("played".to_owned()))
    }
    fn write(&mut self, _: &Target, _: &State) -> Result<(), Refused> {
        Err(Refused::Denied("played".to_owned()))
    }
    fn anchor(&self, _: &Target) -> Option<u64> {
        None
    }
    fn moment(&self) -> Found<Moment> {
        Err(Missing::Unknown("played".to_owned()))
    }
    fn threads(&self) -> Found<Vec<Thread>> {
        Err(Missing::Unknown("played".to_owned()))
    }
}

fn undone() -> Reader {
    // In memory: each line of a journal waits for the disk.
    let memory = Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    let folder = folder.unwrap();
    let places = Places::below(folder.path());
    fs::create_dir_all(&places.volatile).unwrap();
    let root = host();
    Box::new(move |bytes, _| {
        let _ = &folder;
        // What was undone goes to the history.
        drop(fs::remove_dir_all(&places.lasting));
        fs::write(places.volatile.join("000001.jsonl"), bytes).map_err(|e| e.to_string())?;
        let Ok(all) = journal::all(&places) else { return Ok(false) };
        for one in &all {
            drop(one.made());
            let _ = (one.has_ended(), one.is_applied(), one.is_undoing(), one.time().len());
            drop(verify(&Machine::new(root.clone()), &root, one));
            drop(undo(&mut Nobody, &places, one, Mode::default(), "2026-01-01T00:00:00Z"));
        }
        Ok(all.iter().any(|t| t.plan().is_some()))
    })
}

fn bisection(bytes: &[u8]) -> Result<bool, String> {
    let text = String::from_utf8_lossy(bytes);
    match Journal::read(&text, "a b") {
        Ok(journal) => {
            let _ = journal.get("v1");
            let again = Journal::read(&journal.text(), "a b").map_err(|e| e.to_string())?;
            if again != journal {
                Err("is another when it is read back".to_owned())
            } else {
                Ok(true)
            }
        }
        Err(_) => Ok(false),
    }
}

/// Results that were made up.
struct MadeUp(u64, usize);

impl Evaluator for MadeUp {
    fn evaluate(&mut self, batch: &[Candidate], told: &mut dyn FnMut(Outcome)) -> End {
        for _ in batch {
            if self.1 == 0 {
                return End::Early;
            }
            self.1 -= 1;
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(7);
            let ns = i64::try_from(self.0 >> 48).unwrap_or(0);
            let code = format!("ffffffff81000{:03x}+1c 4+20", self.0 >> 52).parse().ok();
            let (section_ns, pairs) = (Some(ns / 2), vec![format!("a{} to b", self.0 >> 60)]);
            told(Outcome::Ran(Figures {
                latest_ns: ns,
                section_ns,
                pairs,
                code,
                ..Figures::default()
            }));
        }
        End::Done
    }
}

fn corpus() -> Vec<u8> {
    let mut search = Search::new(lab(), 3, Guidance::Results);
    let _ = hunt(&mut search, Vec::new(), 90, &mut MadeUp(1, 90), &mut |_, _| {});
    let all = search.entries().iter().map(|e| serde_json::to_string(e).unwrap() + "\n");
    all.collect::<String>().into_bytes()
}

fn hunted(bytes: &[u8]) -> Result<bool, String> {
    let text = String::from_utf8_lossy(bytes);
    let lines: Result<Vec<Entry>, _> = text.lines().map(serde_json::from_str).collect();
    let Ok(known) = lines else { return Ok(false) };
    let asked = known.len() as u64 + 32;
    let mut search = Search::new(lab(), 3, Guidance::Results);
    // A line that contradicts those before it is refused: they were taken, and the search made with them.
    if let Err(foreign) = hunt(&mut search, known, asked, &mut MadeUp(5, 32), &mut |_, _| {}) {
        return Ok(foreign.nr > 0);
    }
    drop((search.worst(), search.records(), search.latest_by_loads(), search.reached().is_some()));
    Ok(true)
}

fn bound() -> TheoryRecord {
    let all = Variable::ALL.into_iter().enumerate();
    let variables = all.map(|(i, variable)| VariableRecord {
        variable,
        ns: 1_000 * (i64::try_from(i).unwrap_or(0) + 1),
        n: 50,
        tracing_ns: Some(100),
        at_ns: 5_000,
        from: "schedule".to_owned(),
        to: "finish".to_owned(),
    });
    let executions = (0..40)
        .map(|k| Execution {
            at_ns: k * 1_000_000,
            end_ns: k * 1_000_000 + 3_000 + k % 5,
            ns: 3_000 + k % 5,
        })
        .collect();
    theory::condense(&Evidence {
        variables: variables.collect(),
        vectors: vec![Vector { name: "timer".to_owned(), executions }],
        span_ns: 1_000_000_000,
        step_ns: 1,
        ..Evidence::default()
    })
}

/// What a board sends.
fn envelope_of(run: &str) -> Vec<u8> {
    let mut out = Vec::new();
    envelope::write_file(&mut out, "run", run.as_bytes()).unwrap();
    envelope::write_file(&mut out, "words", b"").unwrap();
    envelope::write_end(&mut out, "exit status 0").unwrap();
    out
}

/// A log of a console; or what somebody packed as a board does, however it is damaged.
fn heard(bytes: &[u8]) -> Result<bool, String> {
    let is_log = bytes.windows(5).any(|window| window == b"=tb1 ");
    let packed = if is_log { Vec::new() } else { frames::lines(bytes) };
    let mut collector = Collector::default();
    collector.push(bytes);
    for line in &packed {
        collector.push(format!("{line}\n").as_bytes());
    }
    let streams = collector.finish();
    let sent = [crate::RUN, crate::LAB].map(str::as_bytes);
    for run in streams.iter().map(handed) {
        let (Some(bytes), state) = (&run.run, run.state) else { continue };
        let right = match state {
            StreamState::Whole => sent.contains(&bytes.as_slice()),
            _ => sent.iter().any(|whole| whole.starts_with(bytes)),
        };
        if is_log && !right {
            return Err(format!("a run that nobody sent, as {state:?}"));
        }
    }
    Ok(!streams.is_empty())
}

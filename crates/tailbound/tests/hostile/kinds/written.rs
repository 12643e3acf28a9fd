// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts that people write: plans of runs, campaigns, models of tasks, profiles of tuning; and the files of other tools.

use tailbound_core::campaign::CampaignFile;
use tailbound_core::plan::RunConfig;
use tailbound_core::runfile::{read_run, write_run};
use tailbound_core::tasks;
use tailbound_host::Root;
use tailbound_report::Style;
use tailbound_report::tasks::{self as words, TaskReport};
use tailbound_stats::tasks::analyse;
use tailbound_tune::Profile;

use super::{Kind, Reader, sample};
use crate::plain;

pub(super) const PLANS: Kind = Kind {
    name: "plans",
    share: 3,
    texts: true,
    samples: || {
        let all = "name = \"n\"\ndeadline = \"100us\"\nclass = \"safe\"\nrate = \"1/24h\"\ninterval = \"1ms\"\n\
            duration = \"1s\"\nloops = 5\nwarm-up = \"1ms\"\ncpus = \"0\"\npolicy = \"other\"\n\
            interval-spread = \"50%:7\"\nload = [\"hackbench:groups=4\", \"memory\", \"disk:mib=64\"]\ntasks = 4\n\
            work = [\"messages\"]\nrepeat = 3\nuntil = \"precision\"\nprecision = \"1%\"\nconfidence = 0.9\n";
        let few = "interval = \"250us\"\ncpus = \"0-3,5\"\npolicy = \"fifo:95\"\nload = [\"interrupts:rate=1000\"]\n";
        let tuned =
            "duration = \"1h30min\"\ndeadline = \"1.5ms\"\nrate = \"1/8h\"\nuntil = \"bound\"\n";
        [all, few, tuned].map(|t| t.as_bytes().to_vec()).into()
    },
    reader: || Box::new(|bytes, _| plan(bytes)),
};

pub(super) const CAMPAIGNS: Kind = Kind {
    name: "campaigns",
    share: 2,
    texts: true,
    samples: || {
        let names = [
            "altenberg-2016",
            "altera-2014",
            "lab-preemption",
            "mckenney-2009",
            "osadl-farm",
            "williams-redhat-2008",
        ];
        names.map(|n| sample(&format!("../campaigns/{n}.toml"))).into()
    },
    reader: || Box::new(|bytes, _| campaign(bytes)),
};

pub(super) const MODELS: Kind = Kind {
    name: "models_of_tasks",
    share: 3,
    texts: true,
    samples: || {
        let one = "[[task]]\nname = \"control\"\npriority = 80\ncpu = 0\nperiod = \"5ms\"\nwcet = \"1ms\"\n\
            suspension = \"200us\"\ndeadline = \"5ms\"\n\n[[task]]\nname = \"vision\"\npriority = 60\nperiod = \"20ms\"\n\
            jitter = \"1ms\"\nwcet = [\"6ms\", \"10ms\"]\nblocking = \"300us\"\n\n[[task]]\nname = \"log\"\npriority = 20\n\
            min-distance = [\"40ms\", \"120ms\"]\nwcet = \"8ms\"\nnon-preemptible = \"150us\"\nsuspensions = 3\n";
        let two = "task = [\n  { name = \"a\", priority = 3, period = \"7ms\", wcet = \"3ms\" },\n\
            \x20 { name = \"b\", priority = 2, period = \"12ms\", wcet = \"3ms\", policy = \"rr\", cpu = 1 },\n\
            \x20 { name = \"c\", priority = 1, period = \"20ms\", wcet = \"5ms\", deadline = \"20ms\", latency = \"1us\" },\n]\n";
        [one, two].map(|t| t.as_bytes().to_vec()).into()
    },
    reader: || Box::new(|bytes, _| model(bytes)),
};

pub(super) const PROFILES: Kind = Kind {
    name: "profiles",
    share: 1,
    texts: true,
    samples: || {
        let names = ["board", "cyclic", "low-latency-desktop", "polling", "virtual-host"];
        names.map(|n| sample(&format!("improve/tailbound-tune/profiles/{n}.toml"))).into()
    },
    reader: profiles,
};

pub(super) const TOOLS: Kind = Kind {
    name: "files_of_other_tools",
    share: 4,
    texts: true,
    samples: || {
        let folder = crate::folder("../measure/tailbound-import/tests/fixtures");
        let all = crate::files(&folder).into_iter();
        all.filter(|(name, bytes)| name != "README.md" && bytes.len() < 30_000)
            .map(|(_, b)| b)
            .collect()
    },
    reader: || Box::new(|bytes, _| imported(bytes)),
};

pub(super) const RUNS: Kind = Kind {
    name: "run_files",
    share: 3,
    texts: true,
    samples: || [crate::RUN, crate::LAB].map(|t| t.as_bytes().to_vec()).into(),
    reader: || {
        let (base, campaign) = (crate::base(), crate::campaign());
        Box::new(move |bytes, random| match read_run(bytes) {
            Ok(run) => {
                // The whole of the pages takes as long as thirty readings.
                if random.below(12) == 0 {
                    crate::pages::Known::of(&base, &campaign).check(&run, random.below(6))?;
                }
                Ok(true)
            }
            Err(e) => plain(&e.to_string()).map(|()| false),
        })
    },
};

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn plan(bytes: &[u8]) -> Result<bool, String> {
    let Ok(config) = RunConfig::parse(&text(bytes)) else { return Ok(false) };
    let asked = tailbound_run::Request { config, ..tailbound_run::Request::default() };
    drop(tailbound_run::resolve(&asked, &Root::real()));
    Ok(true)
}

fn campaign(bytes: &[u8]) -> Result<bool, String> {
    let Ok(file) = CampaignFile::parse(&text(bytes)) else { return Ok(false) };
    drop(file.parts());
    Ok(true)
}

fn model(bytes: &[u8]) -> Result<bool, String> {
    let Ok(model) = tasks::parse(&text(bytes)) else { return Ok(false) };
    let answer = analyse(&model);
    let name = "x".to_owned();
    let told = TaskReport {
        name,
        model: &model,
        answer: &answer,
        records: &[],
        what_if: None,
        latency: None,
    };
    drop(words::text(&told, Style::default()));
    drop(words::json(&told));
    Ok(true)
}

fn profiles() -> Reader {
    let root = Root::at(crate::folder("../base/tailbound-host/tests/fixtures/hosts/rt-pc"));
    Box::new(move |bytes, _| {
        let Ok(profile) = Profile::parse(&text(bytes)) else { return Ok(false) };
        let rt_cpus = "2-3".to_owned();
        let recipe = tailbound_tune::Recipe {
            rt_cpus,
            boot: true,
            ..tailbound_tune::Recipe::of(profile.written())
        };
        if let Ok(plan) = recipe.plan(&root) {
            drop((plan.script(), plan.undo_script()));
        }
        Ok(true)
    })
}

fn imported(bytes: &[u8]) -> Result<bool, String> {
    let run = match tailbound_import::import("f", bytes) {
        Ok(run) => run,
        Err(e) => return plain(&e.to_string()).map(|()| false),
    };
    // What was imported is a run file that is read back.
    let file = write_run(&run, Vec::new()).map_err(|e| e.to_string())?;
    read_run(file.as_slice()).map_err(|e| format!("is not read back: {e}"))?;
    drop(tailbound_report::text(&tailbound_stats::Analysis::of(&run), Style::default()));
    Ok(true)
}

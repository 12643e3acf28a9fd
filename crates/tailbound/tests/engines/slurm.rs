// SPDX-License-Identifier: MIT OR Apache-2.0
//! fleet on nodes that Slurm gives: real daemons on loopback, two nodes that are this machine.
//!
//! Context: tests. Source: slurm.conf(5), slurmd(8) -N, munged(8). Nothing of an installed Slurm's own configuration is used.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tailbound_sys::process::is_root;
use tailbound_testing::skip;

use crate::{CAMPAIGN, PATIENCE, logs, machine, send, status, stderr, stdout, tailbound};

/// Debian keeps them off the path of ordinary users.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Slurm of the test's own; it ends with this.
struct Cluster {
    daemons: Vec<Child>,
    folder: tempfile::TempDir,
}

impl Cluster {
    /// `None` where it cannot run.
    fn start() -> Option<Self> {
        for program in ["munged", "slurmctld", "slurmd", "srun"] {
            if !PATH.split(':').any(|p| Path::new(p).join(program).exists()) {
                let why =
                    format!("there is no {program} (Debian: slurmctld slurmd slurm-client munge)");
                skip("slurm", why);
                return None;
            }
        }
        if !is_root() {
            skip("root", "slurmd starts jobs as root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        fs::write(at.join("slurm.conf"), configured(at)).unwrap();
        let mut cluster = Self { daemons: Vec::new(), folder };
        // Of any version that knows the word: cgroups are this machine's.
        let version = cluster.said(&["slurmd", "-V"]);
        let major = version.split([' ', '.']).find_map(|w| w.parse::<u32>().ok()).unwrap();
        if major >= 23 {
            fs::write(cluster.at("cgroup.conf"), "CgroupPlugin=disabled\n").unwrap();
        }
        let key: Vec<u8> = (0..128u8).collect();
        fs::write(cluster.at("key"), key).unwrap();
        cluster.said(&["chmod", "600", "key"]);
        let files =
            ["key-file=key", "log-file=munged.log", "pid-file=munged.pid", "seed-file=seed"];
        let files = files.map(|f| {
            let (option, file) = f.split_once('=').unwrap();
            format!("--{option}={}", cluster.at(file).display())
        });
        let socket = format!("--socket={}", cluster.at("munge").display());
        let mut words = vec!["munged", "--foreground", "--force", &socket];
        words.extend(files.iter().map(String::as_str));
        cluster.daemon("munged", &words);
        cluster.wait("munged", |c| c.at("munge").exists());
        cluster.daemon("slurmctld", &["slurmctld", "-D"]);
        cluster.daemon("n1", &["slurmd", "-D", "-N", "n1"]);
        cluster.daemon("n2", &["slurmd", "-D", "-N", "n2"]);
        cluster.wait("slurmctld", |c| {
            let nodes = c.call(&["sinfo", "-N", "-h", "-p", "main", "-o", "%T"]).output().unwrap();
            stdout(&nodes).lines().filter(|l| l.trim() == "idle").count() == 2
        });
        Some(cluster)
    }

    fn at(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn call(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(self.folder.path()).env("PATH", PATH);
        command.env("SLURM_CONF", self.at("slurm.conf")).stdin(Stdio::null());
        command
    }

    fn said(&self, words: &[&str]) -> String {
        let out = self.call(words).output().unwrap();
        assert!(out.status.success(), "{words:?}: {}", stderr(&out));
        stdout(&out)
    }

    fn daemon(&mut self, name: &str, words: &[&str]) {
        let log = File::create(self.at(&format!("{name}.log"))).unwrap();
        let also = log.try_clone().unwrap();
        self.daemons.push(self.call(words).stdout(log).stderr(also).spawn().unwrap());
    }

    fn wait(&self, log: &str, is: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is(self) {
            if begun.elapsed() > PATIENCE {
                panic!("{log}: it did not come to be:\n{}", logs(self.folder.path()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// States of all jobs that there are.
    fn jobs(&self) -> Vec<String> {
        self.said(&["squeue", "-h", "-o", "%i %T"]).lines().map(str::to_owned).collect()
    }

    /// Is a process of a job stopped (state T of proc_pid_stat(5))?
    fn is_stopped(&self) -> bool {
        let folder = self.folder.path().display().to_string();
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|e| e.path());
        let read = |path: PathBuf| fs::read(path).unwrap_or_default();
        let mut ours = processes.filter(|process| {
            String::from_utf8_lossy(&read(process.join("cmdline"))).contains(&folder)
        });
        ours.any(|process| {
            let stat = read(process.join("stat"));
            let stat = String::from_utf8_lossy(&stat);
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
        })
    }

    fn no_job_is_left(&self, after: &str) {
        let begun = Instant::now();
        loop {
            let jobs = self.jobs();
            if jobs.is_empty() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "after {after}: {jobs:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// `fleet run` of a campaign's file, with the results in `out`.
    fn fleet(&self, campaign: &str, targets: &str, out: &str) -> Command {
        let mut command = tailbound();
        command.args(["fleet", "run", campaign, "--on", targets, "-o", out, "--yes"]);
        command.args(["--format", "ktap"]).current_dir(self.folder.path()).env("PATH", PATH);
        command.env("SLURM_CONF", self.at("slurm.conf")).stdin(Stdio::null());
        command
    }

    /// The same, until it says `mark`; what it says is in `OUT.said`.
    fn begin(&self, targets: &str, out: &str, mark: &str) -> Child {
        let said = self.at(&format!("{out}.said"));
        let mut command = self.fleet("long.toml", targets, out);
        command.stdout(Stdio::piped()).stderr(File::create(&said).unwrap());
        let child = command.spawn().unwrap();
        self.wait(out, |_| fs::read_to_string(&said).unwrap_or_default().contains(mark));
        child
    }

    /// The processes of this cluster that have this name: by their environment, or, where their name was written over it, by the folder they
    /// were started in.
    fn processes(&self, name: &str) -> Vec<u32> {
        let ours = format!("SLURM_CONF={}", self.at("slurm.conf").display());
        let has = |p: u32, file: &str, what: &str| {
            let bytes = fs::read(format!("/proc/{p}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).contains(what)
        };
        let numbers = fs::read_dir("/proc").unwrap().flatten();
        let numbers = numbers.filter_map(|e| e.file_name().to_str()?.parse().ok());
        let here =
            |p: u32| fs::read_link(format!("/proc/{p}/cwd")).is_ok_and(|at| at == self.at(""));
        let is_ours = |p: u32| has(p, "environ", &ours) || here(p);
        numbers.filter(|p| has(*p, "cmdline", name) && is_ours(*p)).collect()
    }

    /// Number of the only job that runs.
    fn running(&self) -> String {
        let jobs = self.jobs();
        let running: Vec<&str> = jobs.iter().filter_map(|j| j.strip_suffix(" RUNNING")).collect();
        assert_eq!(running.len(), 1, "{jobs:?}");
        running[0].to_owned()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            // Slurm's daemons end their own children on SIGTERM.
            send(daemon.id(), "TERM");
            drop(daemon.wait());
        }
        // Of a node whose daemon was killed it waits for that.
        for left in self.processes("slurmstepd: [") {
            send(left, "KILL");
        }
    }
}

fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn configured(at: &Path) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim().split('.').next().unwrap();
    let at = at.display();
    let [control, n1, n2] = [port(), port(), port()];
    format!(
        "ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
AuthType=auth/munge
AuthInfo=socket={at}/munge
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool.%n
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={n1} CPUs=1 Features=rt,press State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={n2} CPUs=1 Features=rt State=UNKNOWN
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
PartitionName=crowd Nodes=n1,n2 OverSubscribe=FORCE:4 MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=n1,n2 PriorityTier=10 MaxTime=INFINITE State=UP
"
    )
}

const PRESS: &str = "[[target]]\nname = \"press\"\nengine = \"slurm\"\npartition = \"main\"\nfeatures = [\"rt\", \"press\"]\ncpus = \"0\"\n";
const BEGUN: &str = "short begins";

#[test]
fn slurm_gives_a_node_and_what_takes_it_back_makes_the_run_invalid() {
    let Some(mut cluster) = Cluster::start() else { return };
    let _machine = machine();
    let write = |file: &str, text: &str| fs::write(cluster.at(file), text).unwrap();
    fs::create_dir(cluster.at("scratch")).unwrap();
    let press = format!("{PRESS}folder = \"{}\"\n", cluster.at("scratch").display());
    write("press.toml", &press);
    write("hurried.toml", &format!("{press}wait-s = 1\n"));
    write("crowd.toml", &press.replace("\"main\"", "\"crowd\""));
    write("here.toml", "[[target]]\nname = \"here\"\nengine = \"local\"\ncpus = \"0\"\n");
    let all = "[[target]]\nname = \"rack\"\nengine = \"slurm\"\npartition = \"main\"\nfeatures = [\"rt\"]\nevery-node = true\n";
    write("rack.toml", all);
    write("short.toml", CAMPAIGN);
    write("long.toml", &CAMPAIGN.replace("loops = 200", "loops = 600000"));

    // A target for each node that has the feature; Slurm says what they are.
    let targets = |file: &str, more: &[&str]| {
        let words = [&["fleet", "targets", "--json", "--on", file], more].concat();
        let mut command = tailbound();
        command.args(words).current_dir(cluster.folder.path()).env("PATH", PATH);
        let out = command.env("SLURM_CONF", cluster.at("slurm.conf")).output().unwrap();
        assert_eq!(status(&out), 0, "{}", stderr(&out));
        let told: Value = serde_json::from_slice(&out.stdout).unwrap();
        told["targets"].as_array().unwrap().clone()
    };
    let rack = targets("rack.toml", &[]);
    let names: Vec<&str> = rack.iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["rack-n1", "rack-n2"]);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(rack[0]["kernel"], kernel.trim(), "{rack:?}");
    assert_eq!((&rack[0]["cpus"], &rack[0]["held"]), (&1.into(), &Value::Null), "{rack:?}");
    assert_eq!(targets("rack.toml", &["--target", "rack-n2"]).len(), 1);

    // A campaign is made whole, once, and the job ends with it.
    let first = cluster.fleet("short.toml", "press.toml", "out").output().unwrap();
    assert_eq!(status(&first), 0, "{}", stderr(&first));
    assert_eq!(stdout(&first), "KTAP version 1\n1..1\nok 1 press.short\n");
    cluster.no_job_is_left("a run");
    let run = cluster.at("out/press/press/short.tailbound.jsonl");
    let before = fs::read(&run).unwrap();
    let again = cluster.fleet("short.toml", "press.toml", "out").output().unwrap();
    assert_eq!(status(&again), 0, "{}", stderr(&again));
    assert!(fs::read(&run).unwrap() == before, "it was measured twice");
    // Its program and results are where the target says.
    assert!(cluster.at("scratch/.cache/tailbound/fleet").is_dir());

    // A node that others may get as well is no place to measure.
    let shared = cluster.fleet("short.toml", "crowd.toml", "shared").output().unwrap();
    assert_eq!(status(&shared), 3, "{}", stderr(&shared));
    assert!(stdout(&shared).contains("OverSubscribe="), "{}", stdout(&shared));
    cluster.no_job_is_left("a refusal");

    // Two fleets exclude each other, by Slurm and on the machine itself.
    let held = cluster.begin("press.toml", "taken-back", BEGUN);
    let second = cluster.fleet("short.toml", "hurried.toml", "second").output().unwrap();
    assert_eq!(status(&second), 3, "{}", stderr(&second));
    assert!(stdout(&second).contains("not ok 1 press.short"), "{}", stdout(&second));
    let by_another_way = cluster.fleet("short.toml", "here.toml", "here").output().unwrap();
    assert_eq!(status(&by_another_way), 3, "{}", stderr(&by_another_way));
    assert!(stdout(&by_another_way).contains("held"), "{}", stdout(&by_another_way));
    assert!(targets("press.toml", &[])[0]["held"].as_str().unwrap().contains("n1 allocated"));

    // The job is cancelled in the midst of a run: said, noted, and not repeated.
    cluster.said(&["scancel", &cluster.running()]);
    let lost = held.wait_with_output().unwrap();
    assert_eq!(status(&lost), 5, "{}", stdout(&lost));
    let told = stdout(&lost);
    assert!(told.contains("not ok 1 press.short"), "{told}");
    assert!(told.contains("lease was lost") && told.contains("CANCELLED"), "{told}");
    cluster.no_job_is_left("its end by scancel");
    let again = cluster.fleet("long.toml", "press.toml", "taken-back").output().unwrap();
    assert_eq!(status(&again), 5, "{}", stderr(&again));
    assert!(!cluster.at("taken-back/press").exists(), "it was measured again");

    a_pause_makes_the_run_invalid(&cluster);
    every_end_ends_the_job(&cluster);

    every_loss_is_said_and_nothing_is_repeated(&mut cluster);

    // Nothing measures on the machine any more.
    let free = cluster.fleet("short.toml", "here.toml", "free").output().unwrap();
    assert_eq!(status(&free), 0, "{}{}", stdout(&free), stderr(&free));
}

/// A job that was stopped for a while measured that while.
fn a_pause_makes_the_run_invalid(cluster: &Cluster) {
    let campaign = CAMPAIGN.replace("loops = 200", "loops = 8000");
    fs::write(cluster.at("middle.toml"), campaign).unwrap();
    let said = cluster.at("stopped.said");
    let mut stopped = cluster.fleet("middle.toml", "press.toml", "stopped");
    stopped.stdout(Stdio::piped()).stderr(File::create(&said).unwrap());
    let stopped = stopped.spawn().unwrap();
    cluster.wait("stopped", |_| fs::read_to_string(&said).unwrap().contains(BEGUN));
    let job = cluster.running();
    cluster.said(&["scontrol", "suspend", &job]);
    // Both words travel by themselves: one that overtakes the other would leave the job stopped for ever.
    cluster.wait("stopped", Cluster::is_stopped);
    cluster.said(&["scontrol", "resume", &job]);
    let stopped = stopped.wait_with_output().unwrap();
    assert_eq!(status(&stopped), 5, "{}", stdout(&stopped));
    assert!(stdout(&stopped).contains("was suspended at"), "{}", stdout(&stopped));
}

/// However a fleet run ends, its job ends: one that measures and one that waits for a node.
fn every_end_ends_the_job(cluster: &Cluster) {
    let mut first = cluster.begin("press.toml", "killed", BEGUN);
    let mut waits = cluster.begin("press.toml", "waits", "queued and waiting");
    assert_eq!(cluster.jobs().len(), 2);
    send(waits.id(), "KILL");
    waits.wait().unwrap();
    cluster.wait("waits", |c| c.jobs().len() == 1);
    send(first.id(), "KILL");
    first.wait().unwrap();
    cluster.no_job_is_left("SIGKILL");
    let mut third = cluster.begin("press.toml", "interrupted", BEGUN);
    send(third.id(), "INT");
    third.wait().unwrap();
    cluster.no_job_is_left("Ctrl-C");
}

/// A job that gives way, a step's daemon that is killed, a node that fails: each run is invalid, with Slurm's own word, once.
fn every_loss_is_said_and_nothing_is_repeated(cluster: &mut Cluster) {
    let lost = |cluster: &Cluster, out: &str, child: Child, why: &str| {
        let ended = child.wait_with_output().unwrap();
        let told = stdout(&ended);
        assert_eq!(status(&ended), 5, "{out}: {told}");
        assert!(told.contains("lease was lost") && told.contains(why), "{out}: {told}");
        cluster.no_job_is_left(out);
        let again = cluster.fleet("long.toml", "press.toml", out).output().unwrap();
        assert_eq!(status(&again), 5, "{out}: {}", stderr(&again));
        assert!(!cluster.at(&format!("{out}/press")).exists(), "{out}: it was measured again");
    };
    let preempted = cluster.begin("press.toml", "preempted", BEGUN);
    let job = cluster.running();
    // An interactive job is not put into the queue again.
    let requeued = cluster.call(&["scontrol", "requeue", &job]).output().unwrap();
    assert!(!requeued.status.success(), "{}", stdout(&requeued));
    cluster.said(&["srun", "-p", "urgent", "-w", "n1", "--exclusive", "true"]);
    lost(cluster, "preempted", preempted, "is PREEMPTED");

    // Nothing closes srun's connection then, and Slurm takes the job for a running one.
    let orphan = cluster.begin("press.toml", "orphan", BEGUN);
    let step = format!("slurmstepd: [{}.0]", cluster.running());
    let daemons = cluster.processes(&step);
    assert_eq!(daemons.len(), 1, "{step}");
    send(daemons[0], "KILL");
    lost(cluster, "orphan", orphan, "its shell there is gone");

    let failed = cluster.begin("press.toml", "failed", BEGUN);
    // The third daemon, after munged and slurmctld.
    send(cluster.daemons[2].id(), "KILL");
    lost(cluster, "failed", failed, "is NODE_FAIL");
    // What is left of it there has the machine's lock until slurmd is back, and ends it.
    let here = cluster.fleet("short.toml", "here.toml", "not-yet").output().unwrap();
    assert_eq!(status(&here), 3, "{}", stdout(&here));
    cluster.daemon("n1", &["slurmd", "-D", "-N", "n1"]);
    cluster.wait("n1", |c| c.processes("slurmstepd: [").is_empty());
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! agent: a real server and a real agent, over TLS and over a bad way; kills on both sides; what owners do not allow.
//!
//! ```text
//! farm.rs  the processes    certificates.rs  for TLS         proxy.rs    the bad way
//! full.rs  a full disk      small_disk.rs    one to be filled    monitor.rs  what a monitor uploads
//! ```
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "children and pauses of tests")]
#![expect(clippy::indexing_slicing, reason = "tests")]

mod certificates;
mod farm;
mod full;
mod monitor;
mod proxy;
mod small_disk;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use farm::{Farm, LONG, QUIET, campaign, machine, said, tailbound};
use proxy::{Fault, Proxy};

/// A file of targets for the press.
fn targets(farm: &Farm, port: u16) {
    let url = farm.url(port);
    let text = format!(
        "[[target]]\nname = \"board\"\nengine = \"agent\"\nserver = \"{url}\"\ntoken-file = \"desk.token\"\nca = \"farm.pem\"\nsystem = \"press\"\n"
    );
    fs::write(farm.at("targets.toml"), text).unwrap();
}

const FLEET: [&str; 8] =
    ["fleet", "run", "short.toml", "--on", "targets.toml", "-o", "out", "--yes"];

#[test]
fn a_campaign_is_handed_out_over_tls_run_and_arrives() {
    let _one = machine();
    let farm = Farm::new(true);
    let (server, port) = farm.serve(0, &["--closed"]);
    targets(&farm, port);
    fs::write(farm.at("short.toml"), campaign(QUIET)).unwrap();
    // Nobody asks for work yet.
    let out = farm.call(&FLEET);
    assert_eq!(out.status.code(), Some(3), "{}", said(&out));
    assert!(said(&out).contains("no agent of `press`"), "{}", said(&out));

    let agent = farm.agent(port, &[]);
    farm.heard_of(port);
    let out = farm.call(&["fleet", "targets", "--on", "targets.toml", "--json"]);
    assert_eq!(out.status.code(), Some(0), "{}", said(&out));
    let out = farm.call(&[&FLEET[..], &["--format", "ktap"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}\n{}", said(&out), farm.log());
    assert!(said(&out).contains("ok 1 board.short\n"), "{}", said(&out));
    let file = farm.at("out/board/board/short.tailbound.jsonl");
    let before = fs::read(&file).unwrap();
    assert_eq!((farm.runs(), farm.audited("took work")), (1, 1));
    // The same command resumes: nothing is measured twice.
    let out = farm.call(&FLEET);
    assert_eq!(out.status.code(), Some(0), "{}", said(&out));
    assert!(fs::read(&file).unwrap() == before && farm.runs() == 1);
    let page = farm.call(&["campaign", "page", "out/board"]);
    assert!(matches!(page.status.code(), Some(0 | 1)), "{}", said(&page));

    assert_eq!(agent.ended(), Some(0), "{}", farm.log());
    assert_eq!(farm.spooled(), 0);
    assert_eq!(server.ended(), Some(0));
}

/// A fleet hands out a piece a run: each leaves the others open, which is no failure of its own.
#[test]
fn each_good_piece_of_a_campaign_of_several_runs_is_done() {
    let _one = machine();
    let farm = Farm::new(false);
    let (_server, port) = farm.serve(0, &[]);
    targets(&farm, port);
    let second = format!(
        "[[step]]\nid = \"second\"\ntitle = \"t\"\ntold = \"t\"\nours = \"the same\"\n[step.run]\n{QUIET}\n"
    );
    fs::write(farm.at("short.toml"), campaign(QUIET) + &second).unwrap();
    let _agent = farm.agent(port, &[]);
    farm.heard_of(port);
    let out = farm.call(&[&FLEET[..], &["--format", "ktap"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}\n{}", said(&out), farm.log());
    for ok in ["ok 1 board.short\n", "ok 2 board.second\n"] {
        assert!(said(&out).contains(ok), "{}", said(&out));
    }
    let all: serde_json::Value = farm.desk(port).get("/api/v1/work", Duration::ZERO).unwrap();
    let work = all["work"].as_array().unwrap();
    assert_eq!(work.len(), 2, "{all}");
    for piece in work {
        assert_eq!(
            (&piece["state"], &piece["reason"]),
            (&"done".into(), &serde_json::Value::Null),
            "{all}"
        );
    }
    assert!(!farm.log().contains("not complete"), "{}", farm.log());
}

#[test]
fn what_the_owner_does_not_allow_is_refused_with_a_reason_and_not_run() {
    let _one = machine();
    let farm = Farm::new(true);
    let (_server, port) = farm.serve(0, &[]);
    targets(&farm, port);
    let _agent = farm.agent(port, &[]);
    farm.heard_of(port);
    let touched = farm.at("touched");
    let command = format!("duration = \"1s\"\nload-cmd = \"touch {}\"", touched.display());
    for (options, why) in [
        (command.as_str(), "`commands`"),
        ("duration = \"1s\"\nload = [\"disk\"]", "`disk`"),
        ("duration = \"1s\"\ntune = \"cyclic\"", "`tune`"),
        ("duration = \"2h\"", "`longest`"),
    ] {
        fs::write(farm.at("short.toml"), campaign(options)).unwrap();
        drop(fs::remove_dir_all(farm.at("out")));
        let out = farm.call(&[&FLEET[..], &["--format", "ktap"]].concat());
        assert_eq!(out.status.code(), Some(3), "{}\n{}", said(&out), farm.log());
        let told = said(&out);
        assert!(told.contains("owner does not allow") && told.contains(why), "{told}");
    }
    assert!(!touched.exists(), "a command of the server was run");
    assert_eq!((farm.audited("refused work"), farm.audited("took work")), (4, 0));
    let page: Result<serde_json::Value, _> = farm.desk(port).get("/api/v1/work", Duration::ZERO);
    let page = page.unwrap();
    assert_eq!(page["work"][0]["state"], "refused", "{page}");
    assert!(page["work"][0]["reason"].as_str().unwrap().contains("`longest`"), "{page}");
}

#[test]
fn an_owner_may_allow_a_command() {
    let _one = machine();
    let farm = Farm::new(false);
    let (_server, port) = farm.serve(0, &[]);
    fs::write(farm.at("agent.toml"), "loads = [\"cmd\"]\ncommands = true\nlongest = \"1min\"\n")
        .unwrap();
    let touched = farm.at("touched");
    farm.hand_out(
        port,
        "aa",
        &format!("loops = 500\ninterval = \"1ms\"\nload-cmd = \"touch {}\"", touched.display()),
    );
    let _agent = farm.agent(port, &["--policy", "agent.toml"]);
    let work = farm.work(port, "aa", &["done", "failed", "refused"]);
    assert_eq!(work["state"], "done", "{work}\n{}", farm.log());
    assert!(touched.exists());
}

#[test]
fn over_a_bad_way_each_run_arrives_once() {
    let _one = machine();
    let farm = Farm::new(false);
    let (_server, port) = farm.serve(0, &[]);
    let way = Proxy::begin(port);
    let agent = farm.agent(way.port, &[]);
    let faults = [
        Fault::CutRequest(40),
        Fault::CutRequest(usize::MAX),
        Fault::CutAnswer(0),
        Fault::CutAnswer(usize::MAX),
        Fault::Twice,
        Fault::Late,
        Fault::Drip,
        Fault::DripRequest,
        Fault::Delay,
        Fault::Gateway,
    ];
    let mut n = 0;
    for begins in ["GET /api/v1/work", "POST /api/v1/work/", "POST /api/v1/runs"] {
        for fault in faults {
            n += 1;
            way.plan((begins, fault));
            let id = format!("{n:02x}");
            farm.hand_out(port, &id, QUIET);
            let work = farm.work(port, &id, &["done", "failed", "lost", "refused"]);
            assert_eq!(work["state"], "done", "{begins} {fault:?}: {work}\n{}", farm.log());
            assert_eq!(work["runs"].as_array().unwrap().len(), 1, "{work}");
        }
    }
    // The last request of a piece, too.
    for fault in [Fault::CutAnswer(0), Fault::Twice, Fault::Late] {
        n += 1;
        let id = format!("{n:02x}");
        way.plan((if n % 2 == 0 { "POST /api/v1/work/" } else { "POST /api/v1/runs" }, fault));
        farm.hand_out(port, &id, QUIET);
        farm.work(port, &id, &["done"]);
    }
    farm.until("the spool is empty", || (farm.spooled() == 0).then_some(()));
    // A question that waited already when its fault was planned was answered: the next one meets it.
    farm.until("each fault met a request", || (way.met().len() == n).then_some(()));
    assert_eq!(farm.runs(), n, "a run is lost, or there twice");
    assert_eq!((farm.audited("took work"), farm.audited("ended work")), (n, n));
    assert_eq!(agent.ended(), Some(0));
}

#[test]
fn a_server_that_is_killed_while_runs_come_in_loses_none_and_has_none_twice() {
    let _one = machine();
    let farm = Farm::new(true);
    let (server, port) = farm.serve(0, &[]);
    let (mut server, mut n) = (Some(server), 0);
    for id in ["a1", "a2", "a3", "a4", "a5", "a6"] {
        farm.hand_out(port, id, QUIET);
        n += 1;
    }
    let agent = farm.agent(port, &[]);
    for kill in 0u64..8 {
        // Spread over what a piece of work takes.
        std::thread::sleep(Duration::from_millis(200 + kill * 611 % 1700));
        server.take().unwrap().killed();
        server = Some(farm.serve(port, &[]).0);
    }
    for id in ["a1", "a2", "a3", "a4", "a5", "a6"] {
        let work = farm.work(port, id, &["done", "failed", "lost"]);
        assert_eq!(work["state"], "done", "{work}\n{}", farm.log());
    }
    assert_eq!((farm.runs(), farm.audited("took work")), (n, n));
    farm.until("the spool is empty", || (farm.spooled() == 0).then_some(()));
    assert_eq!(agent.ended(), Some(0));
}

#[test]
fn an_agent_that_dies_in_a_run_loses_its_lease_and_the_run_is_not_repeated() {
    let _one = machine();
    let farm = Farm::new(true);
    let (_server, port) = farm.serve(0, &["--lease", "3s"]);
    targets(&farm, port);
    fs::write(farm.at("short.toml"), campaign(LONG)).unwrap();
    let agent = farm.agent(port, &[]);
    farm.heard_of(port);
    let fleet = tailbound()
        .current_dir(farm.path())
        .args(FLEET)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    farm.until("the run has begun", || farm.log().contains("begins").then_some(()));
    agent.killed();
    let out = fleet.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(5), "{}", said(&out));
    assert!(said(&out).contains("lease was lost"), "{}", said(&out));
    assert!(farm.at("out/.fleet/board/lease.lost").exists());
    // It comes back, says what it has, and begins nothing.
    let agent = farm.agent(port, &[]);
    farm.until("it is told", || farm.log().contains("was lost meanwhile").then_some(()));
    farm.until("the spool is empty", || (farm.spooled() == 0).then_some(()));
    assert_eq!((farm.audited("took work"), farm.log().matches("begins").count()), (1, 1));
    assert_eq!(agent.ended(), Some(0));
}

#[test]
fn an_operator_takes_work_back_and_the_run_ends() {
    let _one = machine();
    let farm = Farm::new(false);
    let (_server, port) = farm.serve(0, &["--lease", "4s"]);
    farm.hand_out(port, "cc", LONG);
    let agent = farm.agent(port, &[]);
    farm.until("the run has begun", || farm.log().contains("begins").then_some(()));
    // Others see that the machine is not free, and how far it is.
    assert!(tailbound_host::machine_lock::take().is_err());
    farm.until("it says how far it is", || {
        let all: serde_json::Value =
            farm.desk(port).get("/api/v1/campaigns", Duration::ZERO).unwrap();
        let one = &all["campaigns"][0];
        (one["part"] == "short" && one["run_ends"].is_string() && one["of"] == 1).then_some(())
    });
    let nothing = serde_json::json!({});
    let _: serde_json::Value = farm.desk(port).post("/api/v1/work/cc/cancel", &nothing).unwrap();
    farm.until("it is handed in", || farm.log().contains("was taken back").then_some(()));
    let work = farm.work(port, "cc", &["cancelled"]);
    assert_eq!(work["state"], "cancelled");
    // The machine is free for the next one.
    farm.hand_out(port, "dd", QUIET);
    farm.work(port, "dd", &["done"]);
    assert_eq!(agent.ended(), Some(0));
}

#[test]
fn work_waits_while_somebody_has_the_machine() {
    let _one = machine();
    let farm = Farm::new(false);
    let (_server, port) = farm.serve(0, &[]);
    let held = farm.until("the machine is free", || tailbound_host::machine_lock::take().ok());
    farm.hand_out(port, "ee", QUIET);
    let agent = farm.agent(port, &[]);
    let desk = farm.desk(port);
    farm.until("the agent says who has it", || {
        let all: serde_json::Value = desk.get("/api/v1/agents", Duration::ZERO).ok()?;
        all["agents"][0]["held"].as_str().map(|who| assert!(who.contains("measures"), "{who}"))
    });
    farm.work(port, "ee", &["waiting"]);
    drop(held);
    farm.work(port, "ee", &["done"]);
    assert_eq!(agent.ended(), Some(0));
}

/// Answers each request with this, until the test ends; its port.
fn answering(with: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0u8; 4096];
            drop(stream.read(&mut head));
            let answer = format!("HTTP/1.1 {with}");
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    port
}

#[test]
fn a_server_of_another_version_is_understood_or_told() {
    let _one = machine();
    let farm = Farm::new(false);
    let later = "200 OK\r\nConnection: close\r\nContent-Length: 48\r\n\r\n{\"protocol\":1,\"work\":null,\"of_a_later_one\":[{}]}";
    let other = "200 OK\r\nConnection: close\r\nContent-Length: 14\r\n\r\n{\"protocol\":2}";
    let older = "404 Not Found\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
    for (answer, status, told) in [(later, 0, ""), (other, 3, "version 2"), (older, 3, "older")] {
        let port = answering(answer);
        let out = farm.until("the machine is free", || {
            let out =
                farm.agent_command(port, &["--once"]).stderr(Stdio::piped()).output().unwrap();
            (!said(&out).contains("held: ")).then_some(out)
        });
        assert_eq!(out.status.code(), Some(status), "{}", said(&out));
        assert!(said(&out).contains(told), "{}", said(&out));
    }
    // And the other way round.
    let (_server, port) = farm.serve(0, &[]);
    let token = fs::read_to_string(farm.at("press.token")).unwrap();
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let query = "protocol=2&version=9&architecture=a&kernel=k&new=1";
    write!(
        stream,
        "GET /api/v1/work?{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        token.trim()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 422") && answer.contains("version 1"), "{answer}");
}

#[test]
fn what_is_wrong_is_told_before_anything_is_asked() {
    use std::os::unix::fs::PermissionsExt as _;
    let farm = Farm::new(true);
    let (_server, port) = farm.serve(0, &[]);
    fs::write(farm.at("open.token"), "x").unwrap();
    fs::set_permissions(farm.at("open.token"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(farm.at("wrong.toml"), "loads = [\"hackbensh\"]\n").unwrap();
    let url = farm.url(port);
    let agent = ["agent", "--spool", "spool", "--once", "--token-file"];
    for (expected, words, told) in [
        (2, &["press.token", "--server", "http://farm.example"][..], "--insecure-http"),
        (2, &["open.token", "--server", &url], "chmod 600"),
        (2, &["none.token", "--server", &url], "none.token"),
        (2, &["press.token", "--server", &url, "--ca", "desk.token"], "certificate"),
        (2, &["press.token", "--server", &url, "--policy", "wrong.toml"], "hackbensh"),
        (2, &["press.token", "--server", &url, "--policy", "none.toml"], "none.toml"),
        (2, &["press.token", "--server", &url, "--every", "1ms"], "--every"),
    ] {
        let out = farm.call(&[&agent[..], words].concat());
        assert_eq!(out.status.code(), Some(expected), "{words:?}: {}", said(&out));
        assert!(said(&out).contains(told), "{words:?}: {}", said(&out));
    }
    // A server whose certificate is signed by nobody it believes gets no token.
    let other = Farm::new(true);
    let pem = other.at("farm.pem");
    let pem = pem.to_str().unwrap();
    let out = farm.call(&[&agent[..], &["press.token", "--server", &url, "--ca", pem]].concat());
    assert_eq!(out.status.code(), Some(3), "{}", said(&out));
    assert!(said(&out).contains("certificate"), "{}", said(&out));
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server whose disk is full: what was answered is kept, what was not is told so, and all goes on when there is room.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use tailbound_agent::client::{Client, ClientError};
use tailbound_core::runfile::{read_run, write_run};
use tailbound_testing::skip;

use crate::farm::{Farm, QUIET, machine};

const RUN: &str = include_str!("../hostile/data/run.tailbound.jsonl");
/// Room for some dozens of runs.
const KIB: u32 = 3000;
/// More than fit there.
const RUNS_MOST: usize = 2000;

/// Room for the reserve and for more than those runs.
const WITH_RESERVE_KIB: u32 = 12_000;

/// Run file number `n`, unlike all others.
fn numbered(n: usize) -> Vec<u8> {
    let mut run = read_run(RUN.as_bytes()).unwrap();
    run.header.id = format!("number-{n}");
    write_run(&run, Vec::new()).unwrap()
}

fn handed_in(desk: &Client, n: usize) -> Result<String, ClientError> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&numbered(n)).unwrap();
    let answer: Value = desk.hand_in(&packed.finish().unwrap())?;
    Ok(answer["run"].as_str().unwrap().to_owned())
}

/// Is it told that there is no room, as something that may pass?
fn no_room(e: &ClientError) -> bool {
    e.may_pass() && e.to_string().contains("507") && e.to_string().contains("disk is full")
}

/// Every run that was answered is there, byte for byte.
fn all_there(desk: &Client, answered: &[(usize, String)]) {
    for (n, id) in answered {
        let file = desk.file(id).unwrap_or_else(|e| panic!("{id} was answered and is lost: {e}"));
        assert!(file == numbered(*n), "{id} is not what was sent");
    }
}

#[test]
fn a_full_disk_refuses_uploads_loses_none_that_was_answered_and_recovers() {
    let Some(farm) = Farm::on_a_disk_of(KIB) else {
        return skip("root", "mounting a small file system needs root");
    };
    let (server, port) = farm.serve(0, &[]);
    let desk = farm.desk(port);
    farm.disk().keep(KIB / 3);
    // Runs alone fill the rest, so that the last of them may break off anywhere.
    let mut answered = Vec::new();
    let refused = loop {
        let n = answered.len();
        assert!(n < RUNS_MOST, "the disk is never full");
        match handed_in(&desk, n) {
            Ok(id) => answered.push((n, id)),
            Err(e) => break e,
        }
    };
    assert!(no_room(&refused), "{refused}");
    assert!(answered.len() > 5, "{answered:?}");
    all_there(&desk, &answered);
    // Nothing at all fits any more, and a server begins on such a disk as well.
    farm.disk().fill();
    server.killed();
    let (server, _) = farm.serve(port, &[]);
    let next = answered.len();
    let refused = handed_in(&desk, next).unwrap_err();
    assert!(no_room(&refused), "{refused}");
    all_there(&desk, &answered);
    let systems: Value = desk.get("/api/v1/systems", Duration::ZERO).unwrap();
    assert_eq!(systems["systems"].as_array().map(Vec::len), Some(1), "{systems}");

    farm.disk().empty();
    for n in next..next + 3 {
        answered.push((n, handed_in(&desk, n).unwrap()));
    }
    server.killed();
    let (server, _) = farm.serve(port, &[]);
    all_there(&desk, &answered);
    assert_eq!(farm.runs(), answered.len());
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn on_a_full_disk_people_log_in_and_prune_and_no_run_takes_their_room() {
    let Some(farm) = Farm::on_a_disk_of(WITH_RESERVE_KIB) else {
        return skip("root", "mounting a small file system needs root");
    };
    let (server, port) = farm.serve(0, &["--closed"]);
    let desk = farm.desk(port);
    for n in 0..40 {
        handed_in(&desk, n).unwrap();
    }
    farm.disk().fill();
    // Until what the log beside the store has room for is used up.
    let refused = (40..400).find_map(|n| handed_in(&desk, n).err()).unwrap();
    assert!(no_room(&refused), "{refused}");
    let token = std::fs::read_to_string(farm.at("desk.token")).unwrap();
    for _ in 0..3 {
        let form = format!("token={}", token.trim());
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let head = format!(
            "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            form.len()
        );
        stream.write_all(format!("{head}{form}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    }
    assert!(farm.audited("logged in") >= 3);
    // What they were given back is not for runs.
    let refused = handed_in(&desk, 401).unwrap_err();
    assert!(no_room(&refused), "{refused}");
    let before = farm.runs();
    let pruned =
        farm.call(&["store", "prune", "--older-than", "0d", "--yes", "--store", farm.store()]);
    assert!(pruned.status.success(), "{}", String::from_utf8_lossy(&pruned.stderr));
    assert!(farm.runs() < before, "{before}");
    // The disk is as full as before: what was deleted is room for others.
    for n in 402..410 {
        handed_in(&desk, n).unwrap();
    }
    farm.disk().empty();
    handed_in(&desk, 410).unwrap();
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn an_agent_keeps_its_runs_while_the_server_has_no_room_and_hands_them_in_later() {
    let _one = machine();
    let Some(farm) = Farm::on_a_disk_of(KIB) else {
        return skip("root", "mounting a small file system needs root");
    };
    // A lease that is over long before there is room again.
    let (server, port) = farm.serve(0, &["--lease", "2s"]);
    let desk = farm.desk(port);
    farm.hand_out(port, "a1", "loops = 3000\ninterval = \"1ms\"\nload = [\"none\"]");
    farm.hand_out(port, "a2", QUIET);
    let agent = farm.agent(port, &[]);
    farm.until("the run has begun", || farm.log().contains("begins").then_some(()));
    farm.disk().fill();
    farm.until("the agent is told", || farm.log().contains("disk is full").then_some(()));
    std::thread::sleep(Duration::from_secs(5));
    assert!(farm.spooled() >= 1, "{}", farm.log());
    // What is only read is answered, and nothing is lost for want of room.
    let work: Value = desk.get("/api/v1/work/a1", Duration::ZERO).unwrap();
    assert_eq!(work["state"], "running", "{work}");
    farm.disk().empty();
    for id in ["a1", "a2"] {
        let work = farm.work(port, id, &["done", "failed", "lost"]);
        assert_eq!(work["state"], "done", "{work}\n{}", farm.log());
    }
    farm.until("the spool is empty", || (farm.spooled() == 0).then_some(()));
    assert_eq!((farm.runs(), farm.audited("took work")), (2, 2));
    assert_eq!(agent.ended(), Some(0));
    assert_eq!(server.ended(), Some(0));
}

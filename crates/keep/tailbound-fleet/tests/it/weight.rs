// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weight against the real server: files that unpack to much, uploads that never end, texts without end, clients that leave.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use tailbound_store::{Filter, Role};

use crate::farm::{Farm, HttpReply, run};

/// Nothing of an ordinary client takes longer beside an attack, on a slow machine as well.
const PATIENCE: Duration = Duration::from_secs(20);

/// The first line of a run file, and `pieces` members of gzip of 256 KiB of further lines behind it.
fn bomb(line: &str, pieces: usize) -> Vec<u8> {
    let packed = |bytes: &[u8]| {
        let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        to.write_all(bytes).unwrap();
        to.finish().unwrap()
    };
    let file = run("Board", 0, "6.12.1", 5_000);
    let header = file.split_inclusive(|b| *b == b'\n').next().unwrap();
    let mut all = packed(header);
    let piece = packed(line.repeat((256 << 10) / line.len()).as_bytes());
    all.extend(piece.repeat(pieces));
    all
}

const SECOND: &str = "{\"type\":\"second\",\"thread\":0,\"second\":1,\"n\":1,\"max_ns\":1,\"argmax\":1,\"min_ns\":1,\"sum_ns\":1,\"missed\":0}\n";
const EVENT: &str = "{\"type\":\"event\",\"t_ns\":1,\"event\":\"x\"}\n";

#[test]
fn what_unpacks_to_much_is_refused_while_it_streams_and_keeps_nobody_waiting() {
    let farm = Farm::start(|_| {});
    let (press, lathe) = (farm.token_of("press"), farm.token_of("lathe"));
    // 400 MiB of seconds, of events, of one line, and of lines that are passed over.
    let endless = "x".repeat(1000);
    let passed_over = format!("{{\"type\":\"raw\",\"data\":\"{}\"}}\n", "A".repeat(1000));
    let bombs: Vec<Vec<u8>> =
        [SECOND, EVENT, &endless, &passed_over].map(|line| bomb(line, 1600)).into();
    std::thread::scope(|scope| {
        let attacks: Vec<_> = bombs
            .iter()
            .map(|bomb| {
                let (farm, press) = (&farm, &press);
                scope.spawn(move || farm.post("/api/v1/runs", Some(press), bomb))
            })
            .collect();
        for day in 0..10 {
            let began = Instant::now();
            let answer =
                farm.post("/api/v1/runs", Some(&lathe), &run("Board", day, "6.12.1", 5_000));
            assert_eq!(answer.status, 201, "{answer:?}");
            assert_eq!(farm.get("/", None).status, 200);
            assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
        }
        for attack in attacks {
            let answer = attack.join().unwrap();
            // Too large, no run file, or told to come again as another one of the token is judged.
            assert!([413, 422, 503].contains(&answer.status), "{answer:?}");
        }
    });
    assert_eq!(farm.store().count().unwrap(), 10);
}

#[test]
fn what_unpacks_to_nothing_is_refused_and_keeps_nobody_waiting() {
    let farm = Farm::start(|_| {});
    let press = farm.token_of("press");
    let mut none = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    none.write_all(&[]).unwrap();
    let nothing = none.finish().unwrap().repeat(100_000);
    let answer = farm.post("/api/v1/runs", Some(&press), &nothing);
    assert!([413, 422].contains(&answer.status), "{answer:?}");
    let answer = farm.post("/api/v1/runs", Some(&press), &run("Board", 0, "6.12.1", 5_000));
    assert_eq!(answer.status, 201, "{answer:?}");
}

#[test]
fn one_token_does_not_take_all_connections_by_waiting_for_work() {
    let farm = Farm::start(|_| {});
    let (press, lathe) = (farm.token_of("press"), farm.token_of("lathe"));
    let ask = |token: &str| {
        let path = "/api/v1/work?protocol=1&version=1&architecture=a&kernel=k&wait_s=50";
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        let mut stream = TcpStream::connect(farm.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let mut waiting: Vec<TcpStream> = (0..100).map(|_| ask(&press)).collect();
    let mut refused = 0;
    for stream in &mut waiting {
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut begin = [0; 12];
        let told = stream.read_exact(&mut begin).is_ok() && begin.ends_with(b"503");
        refused += usize::from(told);
    }
    assert!((30..=40).contains(&refused), "{refused} of 100 were asked to come again");
    // Its own are answered again when some are over, and others always.
    let file = run("Board", 0, "6.12.1", 5_000);
    assert_eq!(farm.post("/api/v1/runs", Some(&lathe), &file).status, 201);
    drop(waiting);
    let (began, file) = (Instant::now(), run("Board", 1, "6.12.1", 5_000));
    while farm.post("/api/v1/runs", Some(&press), &file).status != 201 {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_run_whose_texts_have_no_end_is_shown_in_pages_of_a_usual_size() {
    const TEXT: usize = 1 << 20;
    let farm = Farm::start(|_| {});
    let operator = farm.token(Role::Operator);
    let text = "&".repeat(TEXT);
    let file = run("Board", 0, &text, 5_000);
    let lines = String::from_utf8(file).unwrap();
    let mut with = lines.lines().next().unwrap().to_owned();
    for (known, long) in [
        ("\"id\":\"Board 0\"", format!("\"id\":\"{text}\"")),
        ("\"run\"]", format!("\"run\",\"{text}\"]")),
        ("tailbound 0.1.0", text.clone()),
    ] {
        assert!(with.contains(known), "{known}");
        with = with.replace(known, &long);
    }
    with.push('\n');
    for record in [
        format!("{{\"type\":\"event\",\"t_ns\":1,\"event\":\"x\",\"text\":\"{text}\"}}\n"),
        format!(
            "{{\"type\":\"finding\",\"id\":\"x\",\"impact\":\"doubt\",\"title\":\"{text}\",\"meaning\":\"{text}\"}}\n"
        ),
    ] {
        with.push_str(&record);
    }
    with.extend(lines.lines().skip(1).flat_map(|line| [line, "\n"]));
    let answer = farm.post("/api/v1/runs?system=x", Some(&operator), with.as_bytes());
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.json()["run"].as_str().unwrap().to_owned();
    let other = farm.post("/api/v1/runs?system=x", Some(&operator), &run("x", 1, "6.12", 5_000));
    let other = other.json()["run"].as_str().unwrap().to_owned();
    for path in [
        "/systems/x".to_owned(),
        "/runs?system=x".to_owned(),
        format!("/runs/{id}"),
        format!("/api/v1/runs/{id}/report"),
        format!("/compare?run={id}&run={other}"),
        format!("/api/v1/compare?run={id}&run={other}"),
        format!("/changed?run={id}&run={other}"),
    ] {
        let answer = farm.get(&path, None);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body.len() < TEXT, "{path}: {} bytes", answer.body.len());
    }
    // What was cut is no damage: the file is as it was sent, and the report does not doubt it.
    assert_eq!(farm.get(&format!("/runs/{id}/file"), None).body, with.as_bytes());
}

#[test]
fn a_run_with_more_records_than_a_page_can_show_says_so_and_its_file_is_there() {
    let farm = Farm::start(|_| {});
    let operator = farm.token(Role::Operator);
    let file = run("Board", 0, "6.12.1", 5_000);
    let end = file.split_inclusive(|b| *b == b'\n').next().unwrap().len();
    let with = |lines: String| [&file[..end], lines.as_bytes(), &file[end..]].concat();
    let figures =
        |n: usize| "{\"type\":\"figure\",\"name\":\"x\",\"value\":1.5,\"unit\":\"1\"}\n".repeat(n);
    let text = String::from_utf8(file.clone()).unwrap();
    let thread = text.lines().find(|line| line.contains("\"type\":\"thread\"")).unwrap();
    let threads = |n: usize| -> String {
        let one = |i: usize| thread.replace("\"thread\":0", &format!("\"thread\":{i}")) + "\n";
        (1..n).map(one).collect()
    };
    for (lines, status) in
        [(figures(1_000), 200), (figures(5_000), 413), (threads(100), 200), (threads(3_000), 413)]
    {
        let file = with(lines);
        let answer = farm.post("/api/v1/runs?system=x", Some(&operator), &file);
        assert_eq!(answer.status, 201, "{answer:?}");
        let id = answer.json()["run"].as_str().unwrap().to_owned();
        for path in [format!("/runs/{id}"), format!("/api/v1/runs/{id}/report")] {
            let told = farm.get(&path, None);
            assert_eq!(told.status, status, "{path}");
            assert!(status == 200 || told.text().contains("download"), "{told:?}");
        }
        assert_eq!(farm.get(&format!("/runs/{id}/file"), None).body, file);
        assert_eq!(farm.get("/systems/x", None).status, 200);
    }
}

#[test]
fn uploads_that_do_not_end_take_no_more_than_the_share_of_their_token() {
    const EACH: usize = 8 << 20;
    let farm = Farm::start(|_| {});
    let (press, lathe) = (farm.token_of("press"), farm.token_of("lathe"));
    let head = format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {press}\r\nContent-Length: {}\r\n\r\n",
        EACH + 1
    );
    let body = vec![b'x'; EACH];
    let mut unfinished: Vec<TcpStream> = Vec::new();
    for _ in 0..24 {
        let mut stream = TcpStream::connect(farm.address).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        // One that is refused is closed while it sends.
        let _ = stream.write_all(&body);
        unfinished.push(stream);
    }
    let answer = farm.post("/api/v1/runs", Some(&lathe), &run("Board", 0, "6.12.1", 5_000));
    assert_eq!(answer.status, 201, "another token has its own share: {answer:?}");
    let mut refused = 0;
    for stream in &mut unfinished {
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        refused += usize::from(HttpReply::read(&all).status == 503);
    }
    // 96 MiB are twelve of them; an answer may be lost with its connection.
    assert!(refused >= 6, "{refused} of 24 were asked to come again");
}

#[test]
fn texts_without_end_are_short_wherever_they_are_shown() {
    let farm = Farm::start(|_| {});
    let operator = farm.token(Role::Operator);
    let release = "6".repeat(7 << 20);
    let model = "Board\n2026-11-25T12:00:00Z operator root (0): handed in nothing";
    let answer = farm.post("/api/v1/runs", Some(&operator), &run(model, 0, &release, 5_000));
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.json()["run"].as_str().unwrap().to_owned();
    let other = farm.post("/api/v1/runs?system=x", Some(&operator), &run("x", 1, "6.12", 5_000));
    let other = other.json()["run"].as_str().unwrap().to_owned();
    for path in [
        "/".to_owned(),
        "/api/v1/systems".to_owned(),
        "/metrics".to_owned(),
        "/regressions".to_owned(),
        format!("/changed?run={id}&run={other}"),
        format!("/api/v1/runs/{id}"),
    ] {
        let answer = farm.get(&path, None);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body.len() < 64 << 10, "{path}: {} bytes", answer.body.len());
    }
    let audit = farm.get("/api/v1/audit", Some(&operator)).json();
    for line in audit["audit"].as_array().unwrap() {
        assert!(!line["what"].as_str().unwrap().contains('\n'), "{line}");
    }
    let listed = farm.store().list(&Filter::default()).unwrap();
    assert!(listed.iter().all(|run| !run.system.contains('\n')), "{listed:?}");
    // The file itself is as it was sent.
    assert!(farm.get(&format!("/runs/{id}/file"), None).body.len() > 7 << 20);
}

#[test]
fn the_way_in_takes_a_form_and_no_more() {
    let farm = Farm::start(|config| config.open = false);
    let body = format!("token={}", "x".repeat(1 << 20));
    let answer = farm.ask(
        format!(
            "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .as_bytes(),
    );
    assert_eq!(answer.status, 413, "{answer:?}");
}

#[test]
fn many_slow_readers_do_not_hold_many_answers() {
    let farm = Farm::start(|_| {});
    let operator = farm.token(Role::Operator);
    for day in 0..40 {
        let file = run("x", day, "6.12", 5_000);
        assert_eq!(farm.post("/api/v1/runs?system=x", Some(&operator), &file).status, 201);
    }
    // Clients that ask and leave; the server answers others at once.
    for _ in 0..40 {
        let mut stream = TcpStream::connect(farm.address).unwrap();
        let ask = "GET /api/v1/systems/x/histograms?since=2020 HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(ask.as_bytes()).unwrap();
    }
    let began = Instant::now();
    assert_eq!(farm.get("/", None).status, 200);
    assert_eq!(farm.get("/api/v1/systems/x/histograms", None).status, 200);
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

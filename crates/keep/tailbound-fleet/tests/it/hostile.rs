// SPDX-License-Identifier: MIT OR Apache-2.0
//! What strangers send: no run, bombs, other names, slow heads, text that would be markup.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use tailbound_store::Role;

use crate::farm::{Farm, run};

#[test]
fn what_is_no_run_is_refused_and_counted() {
    let farm = Farm::start(|config| {
        config.upload_bytes_max = 1 << 20;
        config.plain_bytes_max = 8 << 20;
    });
    let token = farm.token(Role::Operator);
    let sent = |body: &[u8]| farm.post("/api/v1/runs", Some(&token), body);
    for body in
        [&b""[..], b"{}", b"<html>", &[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3], &[0x1f, 0x8b, 8, 0, 0]]
    {
        let answer = sent(body);
        assert_eq!(answer.status, 422, "{body:?}: {answer:?}");
        assert!(answer.json()["error"].as_str().is_some_and(|e| !e.is_empty()));
    }
    // 64 MiB of spaces in a few KiB, and more than is taken as it is.
    let bomb = zstd::encode_all(vec![b' '; 64 << 20].as_slice(), 19).unwrap();
    assert!(bomb.len() < 100_000);
    let answer = sent(&bomb);
    assert!(matches!(answer.status, 413 | 422), "{answer:?}");
    assert_eq!(sent(&vec![b'{'; 2 << 20]).status, 413);
    let long = format!("/api/v1/runs?system={}", "x".repeat(200));
    assert_eq!(farm.post(&long, Some(&token), &run("B", 0, "1", 1_000)).status, 422);
    assert_eq!(farm.post("/api/v1/runs?sistem=a", Some(&token), b"").status, 400);
    let metrics = farm.get("/metrics", None).text();
    assert!(metrics.contains("tailbound_uploads_total{result=\"refused\"} 8"), "{metrics}");
    assert!(metrics.contains("tailbound_store_runs 0"), "{metrics}");
}

#[test]
fn a_foreign_name_for_loopback_is_not_answered() {
    let farm = Farm::start(|_| {});
    let named = |host: &str| {
        farm.ask(format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
            .status
    };
    assert_eq!(named("127.0.0.1:1"), 200);
    assert_eq!(named("evil.example"), 421);
}

#[test]
fn names_are_text_wherever_they_are_shown() {
    let farm = Farm::start(|_| {});
    let token = farm.token(Role::Operator);
    let evil = "%3Cscript%3Ealert(1)%3C/script%3E%22%20onload=x%20%27";
    let file = run("<img src=x onerror=alert(1)>", 0, "6.12\"'><b>", 5_000);
    let answer = farm.post(&format!("/api/v1/runs?system={evil}"), Some(&token), &file);
    assert_eq!(answer.status, 201, "{answer:?}");
    let system = farm.get("/api/v1/systems", None).json();
    let id = system["systems"][0]["id"].as_str().unwrap().to_owned();
    for path in ["/".to_owned(), format!("/systems/{id}"), "/regressions".to_owned()] {
        let text = farm.get(&path, None).text();
        assert!(
            !text.contains("<script>alert")
                && !text.contains("<img src=x")
                && !text.contains("<b>"),
            "{path}: {text}"
        );
        roxmltree::Document::parse(&text.replacen("<!DOCTYPE html>", "", 1))
            .unwrap_or_else(|e| panic!("{path}: {e}"));
    }
    let metrics = farm.get("/metrics", None).text();
    assert!(metrics.contains("<script>alert(1)</script>\\\" onload=x '"), "{metrics}");
}

#[test]
fn who_sends_slowly_keeps_nobody_waiting_and_is_let_go() {
    let farm = Farm::start(|_| {});
    let mut slow: Vec<TcpStream> =
        (0..50).map(|_| TcpStream::connect(farm.address).unwrap()).collect();
    // Half of them say nothing at all.
    for stream in slow.iter_mut().step_by(2) {
        stream.write_all(b"GET / HT").unwrap();
    }
    assert_eq!(farm.get("/", None).status, 200);
    let begun = Instant::now();
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    // The server closes them by itself; without its limit the reads would end by their own.
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// A server that gives a request a second, and the token of an operator.
fn impatient() -> (Farm, String) {
    let farm = Farm::start(|config| config.request_time = Duration::from_secs(1));
    let token = farm.token(Role::Operator);
    (farm, token)
}

#[test]
fn who_sends_a_run_a_byte_at_a_time_is_told_and_let_go() {
    let (farm, token) = impatient();
    let file = run("B", 0, "1", 1_000);
    let head = format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n",
        file.len()
    );
    std::thread::scope(|scope| {
        let slow: Vec<_> = (0..20)
            .map(|_| {
                scope.spawn(|| {
                    let mut stream = TcpStream::connect(farm.address).unwrap();
                    stream.write_all(head.as_bytes()).unwrap();
                    let mut reading = stream.try_clone().unwrap();
                    let answer = scope.spawn(move || {
                        reading.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                        let mut all = Vec::new();
                        let _ = reading.read_to_end(&mut all);
                        crate::farm::HttpReply::read(&all)
                    });
                    // Until the server closes it: sent whole it would take hours.
                    for byte in &file {
                        if stream.write_all(&[*byte]).is_err() || answer.is_finished() {
                            break;
                        }
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    answer.join().unwrap()
                })
            })
            .collect();
        // Nobody waits for them.
        assert_eq!(farm.post("/api/v1/runs?system=other", Some(&token), &file).status, 201);
        for slow in slow {
            let answer = slow.join().unwrap();
            assert!(answer.status == 408 && answer.text().contains("too long"), "{answer:?}");
        }
    });
    assert_eq!(farm.store().count().unwrap(), 1);
}

#[test]
fn who_does_not_read_its_answers_is_let_go() {
    let (farm, _) = impatient();
    let mut deaf = TcpStream::connect(farm.address).unwrap();
    deaf.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    // Questions until neither side's buffers take more: then the server waits for a reader that never comes.
    let question = b"GET /style.css HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    let begun = Instant::now();
    let ended = loop {
        if let Err(e) = deaf.write_all(&question) {
            break e;
        }
    };
    // The server ended it; without its limit the write would end by its own.
    let let_go = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::BrokenPipe];
    assert!(let_go.contains(&ended.kind()), "{ended} after {:?}", begun.elapsed());
    assert_eq!(farm.get("/", None).status, 200);
}

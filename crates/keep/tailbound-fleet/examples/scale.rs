// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a large store answers, over real HTTP: `scale pages STORE N`, `scale uploads STORE SECONDS CONNECTIONS RUN`,
//! `scale look STORE` (looks at all series that are due) or `scale beside STORE SECONDS A_SECOND RUN` (pages beside a stream of uploads).
//!
//! The server runs in this process, the clients beside it, on the same CPUs. `pages` asks each kind of page N times, of a
//! system the pages of N different ones; `uploads` sends runs that differ from RUN in their identity alone, packed, each connection the
//! next one when the last is answered. The store is one of `simulate`; the server's clock stands at its last day. `docs/results/scale.md`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use std::fs::File;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::{Run, runfile, utc};
use tailbound_fleet::serve::{Clock, Config, serve, tokens};
use tailbound_store::{Role, Since, Store, StoreLocation, Token};

/// 2026-11-25T12:00:00Z, half a day after the last run of `simulate`.
const NOW_S: i64 = 1_795_608_000;

type ScaleResult<T> = Result<T, String>;

fn words<T, E: std::fmt::Display>(it: Result<T, E>) -> ScaleResult<T> {
    it.map_err(|e| e.to_string())
}

/// Sends a request; status and body of the answer, and how long it took.
fn ask(at: SocketAddr, head: &str, body: &[u8]) -> ScaleResult<(u16, Vec<u8>, Duration)> {
    let begun = Instant::now();
    let mut stream = words(TcpStream::connect(at))?;
    let head = format!(
        "{head}Host: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    words(stream.write_all(&[head.as_bytes(), body].concat()))?;
    let mut all = Vec::new();
    words(stream.read_to_end(&mut all))?;
    let took = begun.elapsed();
    let status = all.get(9..12).and_then(|s| std::str::from_utf8(s).ok()?.parse().ok());
    let end = all.windows(4).position(|w| w == b"\r\n\r\n").map_or(all.len(), |at| at + 4);
    Ok((status.ok_or("no answer of HTTP")?, all.split_off(end), took))
}

fn told(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let last = took.len().saturating_sub(1);
    let at = |p: f64| {
        let at = usize::try_from((last.real() * p).ceil().whole_u64()).unwrap_or(last);
        took.get(at).map_or(0.0, |d| d.as_secs_f64() * 1e3)
    };
    println!(
        "{what}: {} times, ms: median {:.1}, 99 % {:.1}, longest {:.1}",
        took.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

fn pages(at: SocketAddr, place: &StoreLocation, n: usize) -> ScaleResult<()> {
    let mut store = words(Store::open(place, &utc::rfc3339(NOW_S)))?;
    println!("{} runs", words(store.count())?);
    let mut systems = Vec::new();
    words(store.query("SELECT id FROM system ORDER BY id", 60, &mut |_, row| {
        systems.extend(row.first().and_then(|v| v.text()).map(str::to_owned));
        Ok(())
    }))?;
    let step = (systems.len() / n.max(1)).max(1);
    let some: Vec<&String> = systems.iter().step_by(step).take(n).collect();
    let each = |what: &str, paths: Vec<String>| -> ScaleResult<()> {
        let mut took = Vec::new();
        for path in paths {
            let (status, _, time) = ask(at, &format!("GET {path} HTTP/1.1\r\n"), &[])?;
            if status != 200 {
                return Err(format!("{path}: {status}"));
            }
            took.push(time);
        }
        told(what, took);
        Ok(())
    };
    each("page of a system, 365 days", some.iter().map(|id| format!("/systems/{id}")).collect())?;
    each(
        "page of a system, 30 days",
        some.iter().map(|id| format!("/systems/{id}?days=30")).collect(),
    )?;
    each(
        "newest 100 runs of a system, JSON",
        some.iter().map(|id| format!("/api/v1/systems/{id}/runs?limit=100")).collect(),
    )?;
    each("overview", vec!["/".to_owned(); n])?;
    each("metrics", vec!["/metrics".to_owned(); n])?;
    each("what became worse, of all systems", vec!["/regressions".to_owned(); n])
}

/// Looks at every series that is due, as the server does when their runs arrive.
fn look(place: &StoreLocation) -> ScaleResult<()> {
    let now = utc::rfc3339(NOW_S);
    let mut store = words(Store::open(place, &now))?;
    let n = words(store.due_series(tailbound_store::Whose::All, 1_000_000))?.len();
    let begun = Instant::now();
    words(tailbound_fleet::regressions::look_at_all(&mut store, &now))?;
    println!("{n} series looked at in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Pages asked one after the other, by a client for each kind, while runs are handed in at a rate.
fn beside(
    at: SocketAddr,
    place: &StoreLocation,
    [seconds, a_second, base]: [&String; 3],
) -> ScaleResult<()> {
    const CLIENTS: usize = 8;
    let (seconds, a_second): (usize, usize) = (words(seconds.parse())?, words(a_second.parse())?);
    let base = words(runfile::read_run(BufReader::new(words(File::open(base))?)))?;
    let all = different(&base, seconds * a_second)?;
    let token = operator(place)?;
    let mut store = words(Store::open(place, &utc::rfc3339(NOW_S)))?;
    let systems = words(store.systems(&Since::From(utc::rfc3339(NOW_S))))?;
    let (next, begun) = (AtomicUsize::new(0), Instant::now());
    let end = Duration::from_secs(seconds as u64);
    let hand_in = || -> ScaleResult<Vec<Duration>> {
        let mut took = Vec::new();
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let due = Duration::from_secs_f64(nth.real() / a_second.real());
            let Some(body) = all.get(nth).filter(|_| due < end) else { return Ok(took) };
            std::thread::park_timeout(due.saturating_sub(begun.elapsed()));
            let system = systems.get(nth % systems.len().max(1)).map_or("x", |s| s.name.as_str());
            let head = format!(
                "POST /api/v1/runs?system={} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n",
                system.replace(' ', "%20")
            );
            match ask(at, &head, body)? {
                (201, _, time) => took.push(time),
                (other, text, _) => {
                    return Err(format!("upload: {other}: {}", String::from_utf8_lossy(&text)));
                }
            }
        }
    };
    let kinds = ["overview", "page of a system, 365 days", "regressions", "metrics"];
    let look = |kind: &'static str| -> ScaleResult<Vec<Duration>> {
        let mut took = Vec::new();
        let mut each = systems.iter().cycle();
        while begun.elapsed() < end {
            let path = match (kind, each.next()) {
                ("overview", _) => "/".to_owned(),
                ("regressions", _) => "/regressions".to_owned(),
                ("metrics", _) => "/metrics".to_owned(),
                (_, system) => format!("/systems/{}", system.map_or("", |s| s.id.as_str())),
            };
            let (status, _, time) = ask(at, &format!("GET {path} HTTP/1.1\r\n"), &[])?;
            if status != 200 {
                return Err(format!("{path}: {status}"));
            }
            took.push(time);
            // As people do, rather than as fast as it goes.
            std::thread::park_timeout(Duration::from_millis(250));
        }
        Ok(took)
    };
    let (pages, uploads): (Vec<ScaleResult<_>>, Vec<ScaleResult<_>>) =
        std::thread::scope(|scope| {
            let pages: Vec<_> = kinds.map(|kind| scope.spawn(move || look(kind))).into();
            let uploads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(hand_in)).collect();
            let joined = |t: std::thread::ScopedJoinHandle<'_, _>| {
                t.join().unwrap_or_else(|_| Err("a panic".to_owned()))
            };
            (pages.into_iter().map(joined).collect(), uploads.into_iter().map(joined).collect())
        });
    for (kind, took) in kinds.iter().zip(pages) {
        told(kind, took?);
    }
    let took = uploads.into_iter().collect::<ScaleResult<Vec<_>>>()?.concat();
    println!("{:.0} uploads a second", took.len().real() / begun.elapsed().as_secs_f64());
    told("upload", took);
    Ok(())
}

/// A token of an operator, for this store.
fn operator(place: &StoreLocation) -> ScaleResult<String> {
    let (id, token) = words(tokens::made())?;
    let kept = Token {
        id,
        name: "scale".to_owned(),
        role: Role::Operator,
        system: None,
        created: utc::rfc3339(NOW_S),
        revoked: None,
    };
    let mut store = words(Store::open(place, &utc::rfc3339(NOW_S)))?;
    words(store.keep_token(&kept, &tokens::hashed(&token)))?;
    Ok(token)
}

/// Runs that differ from `base` in their identity alone, as they are sent.
fn different(base: &Run, n: usize) -> ScaleResult<Vec<Vec<u8>>> {
    let one = |at: usize| {
        let mut run = base.clone();
        run.header.id = format!("{}-{}-{at}", base.header.id, std::process::id());
        run.header.started = utc::rfc3339(NOW_S);
        let plain = words(runfile::write_run(&run, Vec::new()))?;
        words(zstd::encode_all(plain.as_slice(), 1))
    };
    (0..n).map(one).collect()
}

fn uploads(
    at: SocketAddr,
    place: &StoreLocation,
    [seconds, connections, base]: [&String; 3],
) -> ScaleResult<()> {
    /// As many as the fastest server could take.
    const A_SECOND: usize = 600;
    let (seconds, connections): (usize, usize) =
        (words(seconds.parse())?, words(connections.parse())?);
    let base = words(runfile::read_run(BufReader::new(words(File::open(base))?)))?;
    let all = different(&base, seconds * A_SECOND)?;
    let token = operator(place)?;
    let (next, begun) = (AtomicUsize::new(0), Instant::now());
    let end = Duration::from_secs(seconds as u64);
    let client = || -> ScaleResult<(Vec<Duration>, usize)> {
        let (mut took, mut busy) = (Vec::new(), 0);
        while begun.elapsed() < end {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let Some(body) = all.get(nth) else { break };
            let system = format!("system%20{:04}", nth % 1000);
            let head = format!(
                "POST /api/v1/runs?system={system} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n"
            );
            match ask(at, &head, body)? {
                (201, _, time) => took.push(time),
                (503, ..) => busy += 1,
                (other, text, _) => {
                    return Err(format!("{other}: {}", String::from_utf8_lossy(&text)));
                }
            }
        }
        Ok((took, busy))
    };
    let parts: Vec<ScaleResult<_>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(client)).collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Err("a panic".to_owned())))
            .collect()
    });
    let elapsed = begun.elapsed().as_secs_f64();
    let (mut took, mut busy) = (Vec::new(), 0);
    for part in parts {
        let (some, again) = part?;
        took.extend(some);
        busy += again;
    }
    println!(
        "{:.0} uploads a second for {elapsed:.0} s, {busy} asked to come again",
        took.len().real() / elapsed
    );
    told("upload", took);
    Ok(())
}

fn measured(args: &[String]) -> ScaleResult<()> {
    let (place, what) = match args {
        [what, place] if what == "look" => return look(&words(place.parse())?),
        [what, place, ..] if ["pages", "uploads", "beside"].contains(&what.as_str()) => {
            (words(place.parse::<StoreLocation>())?, what.as_str())
        }
        _ => {
            return Err("scale pages STORE N | scale look STORE | scale uploads STORE SECONDS CONNECTIONS RUN | \
                        scale beside STORE SECONDS A_SECOND RUN"
                .to_owned());
        }
    };
    let mut config = Config::new(place.clone(), SocketAddr::from(([127, 0, 0, 1], 0)));
    config.open = true;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (ready, address) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        let stopped = async {
            let _ = stopped.await;
        };
        let told = |at| {
            let _ = ready.send(at);
        };
        words(serve(config, Clock(Arc::new(|| NOW_S)), told, stopped))
    });
    let Ok(at) = address.recv() else {
        return server.join().unwrap_or_else(|_| Err("a panic".to_owned()));
    };
    let done = match args {
        [_, _, n] if what == "pages" => pages(at, &place, words(n.parse())?),
        [_, _, seconds, connections, run] if what == "uploads" => {
            uploads(at, &place, [seconds, connections, run])
        }
        [_, _, seconds, a_second, run] if what == "beside" => {
            beside(at, &place, [seconds, a_second, run])
        }
        _ => Err("the wrong number of words".to_owned()),
    };
    drop(stop);
    server.join().unwrap_or_else(|_| Err("a panic".to_owned()))?;
    done
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match measured(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("scale: {e}");
            ExitCode::from(2)
        }
    }
}

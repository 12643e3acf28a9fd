// SPDX-License-Identifier: MIT OR Apache-2.0
//! A new regression is told to a web hook: once, signed, also when the receiver was away and the server began anew meanwhile.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tailbound_agent::hook::Hook;
use tailbound_store::{Incoming, Role, Store, StoreLocation};

use crate::farm::{Farm, NOW_S, run};

const PATIENCE: Duration = Duration::from_secs(120);

/// A request that came: its head in small letters, and its body.
type Request = (String, Vec<u8>);

/// A server of the test's own, which answers with `status`.
struct Receiver {
    came: Arc<Mutex<Vec<Request>>>,
}

impl Receiver {
    fn begin(listener: TcpListener, status: &'static str) -> Self {
        let came = Arc::<Mutex<Vec<Request>>>::default();
        let keeps = Arc::clone(&came);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut all = Vec::new();
                let mut piece = [0u8; 4096];
                let whole = |all: &[u8]| {
                    let end = all.windows(4).position(|w| w == b"\r\n\r\n")?;
                    let head = String::from_utf8_lossy(all.get(..end)?).to_lowercase();
                    let length = head.split("content-length: ").nth(1)?.lines().next()?;
                    let body = all.get(end + 4..)?;
                    (body.len() == length.trim().parse::<usize>().ok()?)
                        .then(|| (head, body.to_vec()))
                };
                while whole(&all).is_none() {
                    match stream.read(&mut piece) {
                        Ok(n) if n > 0 => all.extend(&piece[..n]),
                        _ => break,
                    }
                }
                if let Some(request) = whole(&all) {
                    keeps.lock().unwrap().push(request);
                }
                let _ = stream.write_all(
                    format!("HTTP/1.1 {status}\r\nLocation: /elsewhere\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes(),
                );
            }
        });
        Self { came }
    }

    fn came(&self) -> Vec<Request> {
        self.came.lock().unwrap().clone()
    }

    fn until(&self, n: usize) -> Vec<Request> {
        let begun = Instant::now();
        while self.came().len() < n {
            assert!(begun.elapsed() < PATIENCE, "{n} requests were expected: {:?}", self.came());
            std::thread::sleep(Duration::from_millis(50));
        }
        self.came()
    }
}

/// Waits until something is so in the store.
fn until(place: &StoreLocation, what: &str, is: impl Fn(&mut Store) -> bool) {
    let begun = Instant::now();
    let mut store = Store::open(place, "2026-11-25T12:00:00Z").unwrap();
    while !is(&mut store) {
        assert!(begun.elapsed() < PATIENCE, "{what}: {:?}", store.deliveries().unwrap());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn state(store: &mut Store, state: &str) -> i64 {
    store.deliveries().unwrap().iter().find(|t| t.state == state).map_or(0, |t| t.n)
}

fn add(place: &StoreLocation, model: &str, days: std::ops::Range<i64>, worse_from: i64) {
    let mut store = Store::open(place, "2026-11-25T12:00:00Z").unwrap();
    for day in days.rev() {
        let usual_ns = if day < worse_from { 9_000 } else { 5_000 };
        let incoming = Incoming::read(run(model, day, "6.12.1", usual_ns).as_slice()).unwrap();
        store.add(&[incoming], Some(model), "2026-11-25T12:00:00Z").unwrap();
    }
}

/// Properties that the schema requires are there, and each is of its type.
fn conforms(value: &serde_json::Value, schema: &serde_json::Value, all: &serde_json::Value) {
    let schema = match schema["$ref"].as_str() {
        Some(name) => &all["components"]["schemas"][name.rsplit('/').next().unwrap()],
        None => schema,
    };
    if let Some(constant) = schema.get("const") {
        assert_eq!(value, constant);
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(value.get(name.as_str().unwrap()).is_some(), "no {name}: {value}");
    }
    let is = |t: &str| match t {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    };
    match &schema["type"] {
        serde_json::Value::String(t) => assert!(is(t), "{value} is no {t}"),
        serde_json::Value::Array(all) => {
            assert!(all.iter().any(|t| is(t.as_str().unwrap())), "{value}")
        }
        _ => {}
    }
    if let (Some(known), Some(there)) = (schema["properties"].as_object(), value.as_object()) {
        for (name, value) in there {
            let of = known.get(name).unwrap_or_else(|| panic!("{name} is not described"));
            conforms(value, of, all);
        }
    }
    for item in value.as_array().into_iter().flatten().filter(|_| schema.get("items").is_some()) {
        conforms(item, &schema["items"], all);
    }
}

#[test]
fn a_regression_is_told_once_also_to_whom_was_away() {
    let folder = tempfile::tempdir().unwrap();
    let place = StoreLocation::File(folder.path().join("farm.sqlite"));
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "a secret of the test's own\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&secret, mode).unwrap();
    // A port that nobody listens on yet.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{port}/hook?key=1");
    let hook = Arc::new(Hook::open(&url, Some(Path::new(&secret)), None).unwrap());
    let clock = Arc::new(AtomicI64::new(NOW_S));
    let begin = || {
        Farm::start_at(Arc::clone(&clock), |config| {
            config.store = place.clone();
            config.webhooks = vec![Arc::clone(&hook), Arc::clone(&hook)];
        })
    };
    let farm = begin();
    // What stands when the first look is made is nothing new.
    until(&place, "the first look", |store| store.told_until("", "").unwrap().is_some());
    add(&place, "press", 1..60, 20);
    let token = farm.token(Role::Operator);
    let hand_in = |farm: &Farm, model: &str, day: i64, usual_ns: i64| {
        let file = run(model, day, "6.12.1", usual_ns);
        let path = format!("/api/v1/runs?system={model}");
        assert_eq!(farm.post(&path, Some(&token), &file).status, 201);
    };
    hand_in(&farm, "press", 0, 9_000);
    until(&place, "it is noted", |store| state(store, "waiting") == 1);
    // It was tried, and is tried again later.
    let deadline = Instant::now() + PATIENCE;
    let mut store = farm.store();
    let receiver = || store_receiver(&place);
    while store.next_due_s(&receiver()).unwrap() != Some(NOW_S + 5) {
        assert!(Instant::now() < deadline, "nobody tried");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(farm.get("/regressions", None).text().contains("1 web hook: 0 sent, 1 waiting"));
    drop(farm);

    // The server begins anew, the receiver is there, and the time has come.
    let there = Receiver::begin(TcpListener::bind(port).unwrap(), "204 No Content");
    clock.store(NOW_S + 60, Ordering::Relaxed);
    let farm = begin();
    let came = there.until(1);
    until(&place, "it is sent", |store| state(store, "sent") == 1);
    let (head, body) = &came[0];
    assert!(head.starts_with("post /hook?key=1 http/1.1"), "{head}");
    let signature = hook.signature(body).unwrap();
    assert!(head.contains(&format!("tailbound-signature: {signature}")), "{head}");
    let told: serde_json::Value = serde_json::from_slice(body).unwrap();
    assert_eq!(told["regression"]["name"], "press", "{told}");
    assert!(
        told["text"].as_str().unwrap().starts_with("Tailbound: press became worse: p"),
        "{told}"
    );
    assert!(told["mail"]["body"].as_str().unwrap().contains("Since:"), "{told}");
    assert!(
        head.contains(&format!("tailbound-delivery: {}", told["id"].as_str().unwrap())),
        "{head}"
    );
    let description = farm.get("/api/v1/openapi.json", None).json();
    let described = &description["webhooks"]["regression"]["post"]["requestBody"]["content"];
    conforms(&told, &described["application/json"]["schema"], &description);

    // Further runs of the same, also where the change point moves, and another start: nothing new. Another system is.
    hand_in(&farm, "press", -1, 9_100);
    drop(farm);
    let farm = begin();
    add(&place, "lathe", 1..60, 20);
    hand_in(&farm, "lathe", 0, 9_000);
    let came = there.until(2);
    assert!(String::from_utf8_lossy(&came[1].1).contains("lathe"));
    until(&place, "both are sent", |store| state(store, "sent") == 2);
    let metrics = farm.get("/metrics", None).text();
    assert!(metrics.contains("tailbound_webhook_deliveries{state=\"sent\"} 2"), "{metrics}");
    assert_eq!(there.came().len(), 2);
}

/// The only receiver that something is kept for.
fn store_receiver(place: &StoreLocation) -> String {
    let mut store = Store::open(place, "2026-11-25T12:00:00Z").unwrap();
    let mut found = String::new();
    let each = &mut |_: &[String], row: &[tailbound_store::Value]| {
        found = row[0].text().unwrap_or_default().to_owned();
        Ok(())
    };
    store.query("SELECT receiver FROM delivery LIMIT 1", 10, each).unwrap();
    found
}

#[test]
fn what_stood_before_is_not_told_and_a_redirect_is_not_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let there = Receiver::begin(listener, "302 Found");
    let folder = tempfile::tempdir().unwrap();
    let place = StoreLocation::File(folder.path().join("farm.sqlite"));
    drop(Store::open_or_make(&place, "2026-11-25T12:00:00Z").unwrap());
    add(&place, "press", 0..60, 20);
    let hook = Arc::new(Hook::open(&url, None, None).unwrap());
    let farm = Farm::start(|config| {
        config.store = place.clone();
        config.webhooks.push(hook);
    });
    until(&place, "the first look", |store| store.told_until("", "").unwrap().is_some());
    assert_eq!((state(&mut farm.store(), "waiting"), there.came().len()), (0, 0));
    add(&place, "lathe", 1..60, 20);
    let token = farm.token(Role::Operator);
    let file = run("lathe", 0, "6.12.1", 9_000);
    assert_eq!(farm.post("/api/v1/runs?system=lathe", Some(&token), &file).status, 201);
    there.until(1);
    std::thread::sleep(Duration::from_millis(300));
    let came = there.came();
    assert!(came.iter().all(|(head, _)| head.starts_with("post / ")), "{came:?}");
    assert_eq!(state(&mut farm.store(), "waiting"), 1);
    assert!(!came[0].0.contains("tailbound-signature"), "{came:?}");
}

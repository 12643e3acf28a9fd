// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real server on loopback: what goes in is shown, and who may not does not.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod answers;
mod browser;
mod farm;
mod forms;
mod hostile;
#[expect(dead_code, reason = "the store's tests need more of it")]
#[path = "../../../tailbound-store/tests/it/server.rs"]
mod postgresql;
mod prometheus;
mod promised;
mod records;
mod story;
mod too_large;
mod webhook;
mod weight;
mod work;

use std::io::Write as _;

use farm::{Farm, NOW_S, run};
use tailbound_store::{Incoming, Role};
use work::work;

/// Two machines over sixty days; `press` became later 20 days ago, with a new kernel.
fn filled(farm: &Farm) {
    let mut store = farm.store();
    let mut add = |model: &str, day: i64, release: &str, usual_ns: i64| {
        let incoming = Incoming::read(run(model, day, release, usual_ns).as_slice()).unwrap();
        store.add(&[incoming], Some(model), "2026-11-25T12:00:00Z").unwrap();
    };
    for day in (0..60).rev() {
        let (release, usual_ns) = if day < 20 { ("6.12.2", 9_000) } else { ("6.12.1", 5_000) };
        add("press", day, release, usual_ns);
        add("lathe", day, "6.12.1", 4_000);
    }
    farm.looked();
}

#[test]
fn an_upload_is_kept_shown_and_audited() {
    let farm = Farm::start(|_| {});
    let (agent, operator) = (farm.token(Role::Agent), farm.token(Role::Operator));
    let plain = run("Board", 0, "6.12.1", 5_000);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&plain).unwrap();
    let first = farm.post("/api/v1/runs", Some(&agent), &packed.finish().unwrap());
    assert_eq!(first.status, 201, "{first:?}");
    assert_eq!(first.json()["system"], "press");
    let again =
        farm.post("/api/v1/runs", Some(&agent), &zstd::encode_all(plain.as_slice(), 3).unwrap());
    assert_eq!((again.status, again.json()["added"].as_str()), (200, Some("already")));
    let id = first.json()["run"].as_str().unwrap().to_owned();
    assert_eq!(farm.get(&format!("/runs/{id}/file"), None).body, plain);
    let shown = farm.get(&format!("/api/v1/runs/{id}"), None).json();
    assert_eq!(shown["activations"], 20_000);
    let audit = farm.get("/api/v1/audit", Some(&operator)).json();
    assert!(audit["audit"][0]["what"].as_str().unwrap().contains(&id), "{audit}");
    assert!(audit["audit"][0]["who"].as_str().unwrap().starts_with("agent agent"), "{audit}");
    assert_eq!(farm.get("/api/v1/audit", None).status, 401);
    let metrics = farm.get("/metrics", None).text();
    assert!(metrics.contains("tailbound_uploads_total{result=\"new\"} 1"), "{metrics}");
}

/// The metrics that a text names, without the ends that Prometheus adds to none of ours.
fn metrics_in(text: &str) -> std::collections::BTreeSet<&str> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    text.split(word).filter(|w| w.starts_with("tailbound_")).collect()
}

/// The monitor's dashboard asks for what the monitor exposes: its names are in its source.
#[test]
fn every_metric_of_the_monitors_dashboard_is_one_of_the_monitors() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/examples/grafana/tailbound-monitor.json"
    );
    let dashboard = std::fs::read_to_string(page).unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../tailbound-monitor/src/exposition/mod.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let mut asked = 0;
    for panel in parsed["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            for name in metrics_in(target["expr"].as_str().unwrap()) {
                let family = name.trim_end_matches("_bucket").trim_end_matches("_count");
                assert!(source.contains(&format!("\"{family}\"")), "{name}");
                asked += 1;
            }
        }
    }
    assert!(asked >= 10, "{asked}");
}

#[test]
fn every_metric_of_the_dashboard_is_there() {
    let page =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/examples/grafana/tailbound.json");
    let dashboard = std::fs::read_to_string(page).unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let farm = Farm::start(|_| {});
    story::told(&farm);
    let exposed = farm.get("/metrics", None).text();
    let there = metrics_in(&exposed);
    let mut asked = 0;
    for panel in parsed["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let named = metrics_in(target["expr"].as_str().unwrap());
            assert!(!named.is_empty(), "{panel}");
            assert!(named.is_subset(&there), "{named:?} of {there:?}");
            asked += named.len();
        }
    }
    assert!(asked >= there.len(), "a metric is shown nowhere: {there:?}");
    for label in ["window=\"today\"", "window=\"30d\"", "outcome=\"", "system=\"", "result=\""] {
        assert!(exposed.contains(label), "{label}: {exposed}");
    }
}

#[test]
fn a_server_on_postgresql_answers_and_ends() {
    let Some(database) = postgresql::Server::start() else { return };
    let place: tailbound_store::StoreLocation = database.url().parse().unwrap();
    let farm = Farm::start(|config| config.store = place.clone());
    let incoming = Incoming::read(run("Board", 0, "6.12.1", 5_000).as_slice()).unwrap();
    let mut store = tailbound_store::Store::open(&place, "2026-11-25T12:00:00Z").unwrap();
    store.add(&[incoming], Some("press"), "2026-11-25T12:00:00Z").unwrap();
    let systems = farm.get("/api/v1/systems", None).json();
    assert_eq!(systems["systems"][0]["name"], "press", "{systems}");
    // Its connections are open still: dropping the farm fails if the server ends in a panic.
    assert_eq!(farm.get("/systems/press", None).status, 200);
}

#[test]
fn a_regression_is_found_and_pages_are_whole() {
    let farm = Farm::start(|_| {});
    filled(&farm);
    let found = farm.get("/api/v1/regressions", None).json();
    assert_eq!(found["series"], 2, "{found}");
    let worse = found["regressions"].as_array().unwrap();
    assert_eq!(worse.len(), 1, "{found}");
    assert_eq!(worse[0]["name"], "press");
    let since = tailbound_core::utc::rfc3339(NOW_S - 19 * 86_400);
    assert_eq!(worse[0]["since"], since.as_str());
    assert_eq!(worse[0]["kernel"], serde_json::json!(["6.12.1", "6.12.2"]));

    let runs = farm.get("/api/v1/systems/press/runs?limit=3", None).json();
    let runs = runs["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    let (a, b) =
        (worse[0]["before_run"].as_str().unwrap(), worse[0]["since_run"].as_str().unwrap());
    let system = runs[0]["system"].as_str().unwrap();
    let changed = farm.get(&format!("/changed?a={a}&b={b}"), None).text();
    assert!(changed.contains("1 fact of the machine differs"), "{changed}");
    assert!(changed.contains("kernel.release"), "{changed}");
    for path in [
        "/".to_owned(),
        "/systems/press".to_owned(),
        format!("/systems/{system}?days=30"),
        "/regressions".to_owned(),
        "/culprits".to_owned(),
        "/work".to_owned(),
        "/login".to_owned(),
        format!("/changed?a={a}&b={b}"),
    ] {
        let page = farm.get(&path, None);
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(page.head.contains("content-security-policy: default-src 'none'"), "{path}");
        let text = page.text();
        // The markup is XML as well, so that nothing of a run can have opened an element.
        let xml = text.replacen("<!DOCTYPE html>", "", 1);
        roxmltree::Document::parse(&xml).unwrap_or_else(|e| panic!("{path}: {e}\n{xml}"));
        assert!(!text.contains("Example <CPU>"), "{path}");
    }
    for path in [
        format!("/changed?run={b}&run={a}"),
        "/changed?system=press&from=2026-11-01&to=2026-11-25".to_owned(),
    ] {
        let text = farm.get(&path, None).text();
        assert!(text.contains("1 fact of the machine differs"), "{path}: {text}");
        assert!(text.find("6.12.1") < text.find("6.12.2"), "the older one is before: {text}");
    }
    let lathe = farm.get("/api/v1/systems/lathe/runs?limit=1", None).json();
    let c = lathe["runs"][0]["id"].as_str().unwrap();
    let set = farm.get(&format!("/compare?run={a}&run={b}&run={c}"), None);
    assert!(set.status == 200 && set.text().contains("lathe, 2026-"), "{}", set.status);
    for (path, status) in [
        (format!("/compare?run={a}"), 422),
        (format!("/changed?run={a}&run={b}&run={c}"), 422),
        ("/changed?system=press&from=2026-11-01".to_owned(), 422),
        ("/changed?system=press&from=2020-11-01&to=2026-11-25".to_owned(), 404),
        ("/changed?system=nobody&from=2026-11-01&to=2026-11-25".to_owned(), 404),
        ("/changed?system=press&from=2026-11-01&to=yesterday".to_owned(), 422),
        ("/compare?what=1".to_owned(), 422),
        ("/api/v1/systems/press/maxima?step_s=7".to_owned(), 422),
    ] {
        assert_eq!(farm.get(&path, None).status, status, "{path}");
    }
    let maxima = farm.get("/api/v1/systems/press/maxima?since=2026-01-01", None).json();
    let maxima = maxima["maxima"].as_array().unwrap();
    assert_eq!(maxima.len(), 60);
    assert!(maxima.iter().all(|m| m["whole_runs"] == true), "{maxima:?}");
    for path in [format!("/runs/{b}"), format!("/compare?a={a}&b={b}")] {
        let page = farm.get(&path, None);
        assert_eq!(page.status, 200, "{path}");
        assert!(page.head.contains("sandbox allow-scripts"), "{path}");
    }
}

#[test]
fn every_path_of_the_description_answers() {
    let farm = Farm::start(|_| {});
    filled(&farm);
    let operator = farm.token(Role::Operator);
    let description = farm.get("/api/v1/openapi.json", None).json();
    let runs = farm.get("/api/v1/systems/press/runs?limit=2", None).json();
    let id = |n: usize| runs["runs"][n]["id"].as_str().unwrap().to_owned();
    let (run, older) = (id(0), id(1));
    let _agent = farm.token(Role::Agent);
    let handed_out = farm.post("/api/v1/work", Some(&operator), work("0f", "press").as_bytes());
    assert_eq!(handed_out.status, 201, "{handed_out:?}");
    for (path, item) in description["paths"].as_object().unwrap() {
        let id = match path.as_str() {
            p if p.contains("/runs/") => run.as_str(),
            p if p.contains("v1/work") => "0f",
            _ => "press",
        };
        let real = path.replace("{id}", id);
        if item.get("get").is_some() {
            // What is asked of two runs has no answer without them.
            let two = if path.ends_with("/changed") || path.ends_with("/compare") {
                format!("{real}?run={run}&run={older}")
            } else {
                real.clone()
            };
            assert_eq!(farm.get(&two, Some(&operator)).status, 200, "{path}");
        }
        if let Some(post) = item.get("post") {
            let answer = farm.post(&real, Some(&operator), b"no run");
            let known = post["responses"].get(answer.status.to_string());
            assert!(known.is_some(), "{path}: {answer:?}");
        }
        if path.contains("{id}") {
            let none = path.replace("{id}", "0000none");
            let none = match item.get("get") {
                Some(_) => farm.get(&none, Some(&operator)),
                None => farm.post(&none, Some(&operator), b"{}"),
            };
            // What only a machine may is not answered to an operator at all.
            let expected = [404, 403];
            assert!(expected.contains(&none.status), "{path}: {none:?}");
            assert!(none.json()["error"].is_string(), "{path}");
        }
    }
}

#[test]
fn each_role_may_what_it_may() {
    let farm = Farm::start(|config| config.open = false);
    let tokens: Vec<String> = Role::ALL.into_iter().map(|role| farm.token(role)).collect();
    let file = run("Board", 1, "6.12.1", 5_000);
    let asked = |token: Option<&str>| {
        [
            farm.get("/api/v1/systems", token).status,
            farm.get("/api/v1/audit", token).status,
            farm.post("/api/v1/runs?system=lathe", token, &file).status,
            farm.post("/api/v1/runs", token, &file).status,
        ]
    };
    assert_eq!(asked(None), [401; 4]);
    assert_eq!(asked(Some("tailbound-wrong")), [401; 4]);
    let [agent, reader, operator] = tokens.as_slice() else { panic!() };
    assert_eq!(asked(Some(agent)), [403, 403, 403, 201]);
    assert_eq!(asked(Some(reader)), [200, 403, 403, 403]);
    assert_eq!(asked(Some(operator)), [200, 200, 200, 200]);
    assert_eq!(farm.store().revoke("reader", "2026").unwrap(), 1);
    assert_eq!(asked(Some(reader)), [401; 4]);
    // Without a token a browser is shown the way in, and nothing else.
    let page = farm.get("/", None);
    assert_eq!(page.status, 303);
    assert!(page.head.contains("location: /login"));
    assert_eq!(farm.get("/healthz", None).status, 200);
}

#[test]
fn a_browser_logs_in_and_can_read_and_write_notes_alone() {
    let farm = Farm::start(|config| config.open = false);
    let operator = farm.token(Role::Operator);
    let form = |token: &str, site: &str| {
        let body = format!("token={token}");
        farm.ask(
            format!(
                "POST /login HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: {site}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        )
    };
    assert_eq!(form("wrong", "same-origin").status, 401);
    assert_eq!(form(&operator, "cross-site").status, 403);
    let logged_in = form(&operator, "same-origin");
    assert_eq!(logged_in.status, 303);
    assert!(logged_in.head.contains("httponly; samesite=strict"), "{}", logged_in.head);
    let cookie =
        logged_in.head.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap().to_owned();
    let with = |what: &str, body: &str| {
        farm.ask(
            format!(
                "{what} HTTP/1.1\r\nHost: localhost\r\nCookie: a=b; {cookie}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        )
        .status
    };
    assert_eq!(with("GET /", ""), 200);
    assert_eq!(with("POST /api/v1/runs", "{}"), 403);
    // A note is written from a page of this server, and from no other.
    let run =
        farm.post("/api/v1/runs?system=press", Some(&operator), &run("Board", 1, "6.12.1", 5_000));
    let path = format!("POST /runs/{}/note", run.json()["run"].as_str().unwrap());
    assert_eq!(with(&path, "message=a"), 403);
    let from = |site: &str| {
        with(&format!("{path} HTTP/1.1\r\nSec-Fetch-Site: {site}\r\nX: "), "message=a")
    };
    assert_eq!((from("cross-site"), from("same-origin")), (403, 303));
    farm.store().revoke("operator", "2026").unwrap();
    assert_eq!(with("GET /api/v1/systems", ""), 401);
}

#[test]
fn people_are_told_in_a_page_led_to_the_login_and_back_and_out() {
    let farm = Farm::start(|config| config.open = false);
    let reader = farm.token(Role::Reader);
    let asked = |what: &str, more: &str, body: &str| {
        farm.ask(
            format!(
                "{what} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html,*/*;q=0.8\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        )
    };
    let led = asked("GET /systems/press?days=30", "", "");
    assert_eq!(led.status, 303);
    assert!(led.head.contains("location: /login?to=/systems/press%3fdays%3d30"), "{}", led.head);
    let form = asked("GET /login?to=/systems/press%3Fdays%3D30", "", "").text();
    assert!(form.contains("name=\"to\" value=\"/systems/press?days=30\""), "{form}");
    // An address of somebody else is not gone to.
    assert!(!asked("GET /login?to=//evil.example/", "", "").text().contains("evil"));
    let type_of = "Content-Type: application/x-www-form-urlencoded\r\n";
    let elsewhere = asked("POST /login", type_of, &format!("token={reader}&to=//evil.example/"));
    assert!(elsewhere.head.contains("location: /\r"), "{}", elsewhere.head);
    let back =
        asked("POST /login", type_of, &format!("token={reader}&to=%2Fsystems%2Fpress%3Fdays%3D30"));
    assert!(
        back.status == 303 && back.head.contains("location: /systems/press?days=30"),
        "{back:?}"
    );
    let cookie = back.head.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap();
    let with = format!("Cookie: {cookie}\r\n");
    let missing = asked("GET /systems/press", &with, "");
    assert_eq!(missing.status, 404);
    assert!(missing.head.contains("text/html"), "{}", missing.head);
    assert!(missing.text().contains("there is no system `press`"), "{}", missing.text());
    // A program is told as before, also one that says what people say, below /api.
    assert!(asked("GET /api/v1/systems/press", &with, "").json()["error"].is_string());
    assert!(asked("GET /login", &with, "").text().contains("action=\"/logout\""));
    assert!(asked("GET /", &with, "").text().contains(">Log out</a>"));
    assert!(asked("GET /login", "", "").text().contains(">Log in</a>"));
    let out = asked("POST /logout", &with, "");
    assert!(out.status == 303 && out.head.contains("max-age=0"), "{out:?}");
    assert_eq!(asked("GET /", &with, "").status, 303);
    assert!(asked("GET /", &with, "").head.contains("location: /login"));
    // What the server's framework says is told as all else, to people and to programs.
    for (what, status, words) in [
        ("GET /runs?page=x", 400, "invalid digit"),
        ("GET /runs?sistem=press", 400, "sistem"),
        ("POST /runs", 405, "not asked in this way"),
        ("GET /logout", 405, "nothing is shown"),
    ] {
        let again = asked("POST /login", type_of, &format!("token={reader}"));
        let cookie = again.head.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap();
        let told = asked(what, &format!("Cookie: {cookie}\r\n"), "");
        assert!(told.status == status && told.head.contains("text/html"), "{what}: {told:?}");
        assert!(told.text().contains(words) && told.text().contains("<nav"), "{what}: {told:?}");
    }
    let told = farm.get("/api/v1/runs?page=x", Some(&reader));
    assert!(told.status == 400 && told.json()["error"].is_string(), "{told:?}");
    // A wrong token: the form again, with the way back. A session that is over: the way in, and back to the page of the form.
    let wrong = asked("POST /login", type_of, "token=x&to=%2Fruns");
    assert!(wrong.status == 401 && wrong.text().contains("no valid token"), "{wrong:?}");
    assert!(wrong.text().contains("name=\"to\" value=\"/runs\""), "{wrong:?}");
    let over = asked("POST /systems/press/acknowledge", type_of, "workload=a&message=b");
    assert!(
        over.status == 401 && over.text().contains("href=\"/login?to=/systems/press\""),
        "{over:?}"
    );
    // The scheme's name is in any case.
    let scheme = |name: &str| {
        asked("GET /api/v1/systems", &format!("Authorization: {name} {reader}\r\n"), "").status
    };
    assert_eq!(["bearer", "BEARER", "Bearer"].map(scheme), [200; 3]);
    assert_eq!(scheme("Basic"), 401);
}

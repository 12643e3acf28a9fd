// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work over HTTP: who may do what with whose, what is said wrongly, and text of strangers on the page.

use std::sync::atomic::{AtomicI64, Ordering};

use tailbound_store::Role;

use crate::farm::Farm;

/// Work for `system`, as an operator says it.
pub(crate) fn work(id: &str, system: &str) -> String {
    let campaign = "name = \"short\"\n[text]\ntitle = \"t\"\nauthors = [\"n\"]\nyear = 2026\nmachine = \"any\"\nabout = \"a\"\n\
        [[system]]\nid = \"any\"\nname = \"any\"\nkind = \"stock\"\n[[step]]\nid = \"one\"\ntitle = \"t\"\ntold = \"t\"\nours = \"the same\"\n";
    serde_json::json!({"id": id, "system": system, "campaign": campaign, "later": true}).to_string()
}

const ASK: &str = "/api/v1/work?protocol=1&version=v&architecture=a&kernel=%3Cb%3E&wait_s=0";

#[test]
fn each_role_does_with_work_what_it_may() {
    let farm = Farm::start(|config| config.open = false);
    let [agent, reader, operator] = Role::ALL.map(|role| farm.token(role));
    let out = |id: &str, system: &str, token: &str| {
        farm.post("/api/v1/work", Some(token), work(id, system).as_bytes()).status
    };
    assert_eq!((out("0a", "press", &agent), out("0a", "press", &reader)), (403, 403));
    assert_eq!(farm.post("/api/v1/work", None, b"{}").status, 401);
    assert_eq!(out("0a", "lathe", &operator), 422, "no agent is there for it");
    assert_eq!((out("0a", "press", &operator), out("0a", "press", &operator)), (201, 200));
    let other = work("0a", "press").replace("\\\"t\\\"", "\\\"u\\\"");
    assert_eq!(farm.post("/api/v1/work", Some(&operator), other.as_bytes()).status, 422);
    // The machine is offered it, and offered it again: asking changes nothing.
    for _ in 0..2 {
        let next = farm.get(ASK, Some(&agent)).json();
        assert_eq!((next["protocol"].as_u64(), next["work"]["id"].as_str()), (Some(1), Some("0a")));
    }
    let held = farm.get(&format!("{ASK}&held=a%20person"), Some(&agent)).json();
    assert!(held["work"].is_null(), "{held}");
    let agents = farm.get("/api/v1/agents", Some(&reader)).json();
    assert_eq!(agents["agents"][0]["held"], "a person", "{agents}");
    for token in [&reader, &operator] {
        for verb in ["take", "refuse", "renew", "end"] {
            let path = format!("/api/v1/work/0a/{verb}");
            assert_eq!(farm.post(&path, Some(token), b"{\"lease\":\"L\"}").status, 403, "{verb}");
        }
    }
    assert_eq!(farm.post("/api/v1/work/0a/cancel", Some(&agent), b"").status, 403);
    assert_eq!(farm.get("/api/v1/work/0a", Some(&agent)).status, 403);
    // Another machine's agent does not get at it.
    let lathe = farm.token_of("lathe");
    assert!(farm.get(ASK, Some(&lathe)).json()["work"].is_null());
    assert_eq!(farm.post("/api/v1/work/0a/take", Some(&lathe), b"{\"lease\":\"L\"}").status, 403);
    let taken = farm.post("/api/v1/work/0a/take", Some(&agent), b"{\"lease\":\"L\",\"new\":1}");
    assert_eq!((taken.status, taken.json()["lease_s"].as_u64()), (200, Some(300)), "{taken:?}");
    let again = farm.post("/api/v1/work/0a/take", Some(&agent), b"{\"lease\":\"M\"}");
    assert_eq!((again.status, again.json()["state"].as_str()), (409, Some("running")));
    let shown = farm.get("/api/v1/work/0a", Some(&reader));
    assert!(
        shown.status == 200 && !shown.text().contains("\"L\""),
        "the lease is shown: {shown:?}"
    );
}

#[test]
fn what_is_said_wrongly_is_told_and_words_of_an_agent_are_text() {
    let farm = Farm::start(|_| {});
    let (agent, operator) = (farm.token(Role::Agent), farm.token(Role::Operator));
    let good = work("0a", "press");
    for (from, to) in [
        ("\"id\":\"0a\"", "\"id\":\"../x\""),
        ("\"id\":\"0a\"", "\"id\":\"\""),
        ("\"later\":true", "\"scale\":0"),
        ("\"later\":true", "\"scale\":2"),
        ("\"later\":true", "\"parts\":[\"none\"]"),
        ("[[step]]", "[[stepp]]"),
        ("\"system\":\"press\"", "\"system\":\" \""),
        ("\"later\":true", "\"batch\":{\"id\":\"b\",\"at\":5,\"of\":4}"),
        ("\"later\":true", "\"batch\":{\"id\":\"<b>\",\"at\":1,\"of\":4}"),
    ] {
        assert!(good.contains(from), "{from}");
        let answer = farm.post("/api/v1/work", Some(&operator), good.replace(from, to).as_bytes());
        assert_eq!(answer.status, 422, "{to}: {answer:?}");
        assert!(answer.json()["error"].is_string());
    }
    assert_eq!(farm.post("/api/v1/work", Some(&operator), &vec![b' '; 3 << 20]).status, 413);
    let older = farm.get(&ASK.replace("protocol=1", "protocol=7"), Some(&agent));
    assert!(older.status == 422 && older.text().contains("version 1"), "{older:?}");
    assert_eq!(farm.post("/api/v1/work", Some(&operator), good.as_bytes()).status, 201);
    farm.get(ASK, Some(&agent));
    let evil =
        serde_json::json!({"reason": "</td><script>alert(1)</script>\n\u{1b}[31m"}).to_string();
    assert_eq!(farm.post("/api/v1/work/0a/refuse", Some(&agent), evil.as_bytes()).status, 200);
    let page = farm.get("/work", None).text();
    assert!(
        page.contains("refused") && !page.contains("<script>") && !page.contains("<b>"),
        "{page}"
    );
    roxmltree::Document::parse(&page.replacen("<!DOCTYPE html>", "", 1))
        .unwrap_or_else(|e| panic!("{e}\n{page}"));
}

#[test]
fn what_an_agent_says_of_its_runs_is_short_on_pages_and_in_the_store() {
    let farm = Farm::start(|_| {});
    let (agent, operator) = (farm.token(Role::Agent), farm.token(Role::Operator));
    let handed_out = farm.post("/api/v1/work", Some(&operator), work("0a", "press").as_bytes());
    assert_eq!(handed_out.status, 201);
    let said = |verb: &str, what: serde_json::Value| {
        let path = format!("/api/v1/work/0a/{verb}");
        farm.post(&path, Some(&agent), what.to_string().as_bytes()).status
    };
    let long = "x".repeat(100_000);
    assert_eq!(said("take", serde_json::json!({"lease": long})), 422);
    assert_eq!(said("take", serde_json::json!({"lease": "L"})), 200);
    let end =
        |runs: serde_json::Value| serde_json::json!({"lease": "L", "complete": true, "runs": runs});
    let wrong = end(serde_json::json!([{"part": "one", "run": "../../login"}]));
    assert_eq!(said("end", wrong), 422);
    let one =
        |n: usize| serde_json::json!({"part": "A\nB".repeat(5_000), "run": format!("{n:064x}")});
    assert_eq!(said("end", end((0..1_001).map(one).take(1).cycle().take(1_001).collect())), 413);
    assert_eq!(said("end", end((0..30).map(one).collect())), 200);
    let page = farm.get("/work", None).text();
    assert!(page.len() < 64 << 10 && page.contains("and 10 more"), "{} bytes", page.len());
    let list = farm.get("/api/v1/work", None);
    assert!(list.body.len() < 64 << 10, "{} bytes", list.body.len());
    assert!(!list.json()["work"][0]["runs"][0]["part"].as_str().unwrap().contains('\n'));
}

#[test]
fn an_agent_that_waits_is_answered_when_work_is_handed_out() {
    let farm = Farm::start(|_| {});
    let (agent, operator) = (farm.token(Role::Agent), farm.token(Role::Operator));
    let asked = AtomicI64::new(0);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            asked.store(1, Ordering::SeqCst);
            farm.get(&ASK.replace("wait_s=0", "wait_s=40"), Some(&agent)).json()
        });
        while asked.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        let out = farm.post("/api/v1/work", Some(&operator), work("0a", "press").as_bytes());
        assert_eq!(out.status, 201);
        assert_eq!(waits.join().unwrap()["work"]["id"], "0a");
    });
}

#[test]
fn how_far_a_campaign_is_is_shown_and_an_older_agent_need_not_say_it() {
    let farm = Farm::start(|_| {});
    let (agent, operator) = (farm.token(Role::Agent), farm.token(Role::Operator));
    let new = work("0a", "press")
        .replace("\"later\":true", "\"batch\":{\"id\":\"b1\",\"at\":2,\"of\":4}");
    assert_eq!(farm.post("/api/v1/work", Some(&operator), new.as_bytes()).status, 201);
    let campaigns = || farm.get("/api/v1/campaigns", None).json()["campaigns"].clone();
    assert_eq!(campaigns()[0]["state"], "waiting");
    let take = b"{\"lease\":\"L\"}";
    assert_eq!(farm.post("/api/v1/work/0a/take", Some(&agent), take).status, 200);
    // As an agent of before there was progress says it.
    let renew = |body: &str| {
        let answer = farm.post("/api/v1/work/0a/renew", Some(&agent), body.as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    renew(r#"{"lease":"L","progress":"10 s elapsed"}"#);
    let one = campaigns()[0].clone();
    assert_eq!(
        (&one["at"], &one["of"], &one["state"]),
        (&2.into(), &4.into(), &"running".into()),
        "{one}"
    );
    assert!(one["run_ends"].is_null() && one["said_s_ago"].is_null(), "{one}");
    assert!(farm.get("/work", None).text().contains("says no progress"));
    // Somebody else's lease says nothing.
    let wrong = r#"{"lease":"M","doing":{"part":"x","at":1,"of":1,"elapsed_s":0,"left_s":9}}"#;
    assert_eq!(farm.post("/api/v1/work/0a/renew", Some(&agent), wrong.as_bytes()).status, 409);
    assert!(campaigns()[0]["run_ends"].is_null());
    renew(
        r#"{"lease":"L","doing":{"part":"<b>one","at":1,"of":1,"elapsed_s":30,"left_s":90,"later":1}}"#,
    );
    let one = campaigns()[0].clone();
    assert_eq!(
        (&one["part"], &one["run_ends"]),
        (&"<b>one".into(), &"2026-11-25T12:01:30Z".into()),
        "{one}"
    );
    assert_eq!(one["share"], 0.3125, "{one}");
    let page = farm.get("/work", None).text();
    assert!(
        page.contains("run 2 of 4")
            && page.contains("about 12:01")
            && page.contains("&lt;b&gt;one"),
        "{page}"
    );
    let end = r#"{"lease":"L","complete":true,"runs":[]}"#;
    assert_eq!(farm.post("/api/v1/work/0a/end", Some(&agent), end.as_bytes()).status, 200);
    assert_eq!(campaigns()[0]["state"], "between");
}

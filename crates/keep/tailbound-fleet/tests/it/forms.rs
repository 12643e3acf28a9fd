// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person writes in a browser: the forms of the pages themselves, filled in and sent as a browser does, by whom it may be and from where.
//!
//! Context: tests.

use tailbound_store::Role;

use crate::farm::{Farm, HttpReply, NOW_S, Planted, Seconds};

/// A browser of somebody who has logged in, on a page of this server.
struct Browser<'a> {
    farm: &'a Farm,
    cookie: String,
}

/// Which site a form is sent from, as browsers say it.
#[derive(Clone, Copy)]
enum From {
    /// A browser of before 2023 says nothing.
    Unsaid,
    Site(&'static str),
}

impl<'a> Browser<'a> {
    fn logged_in(farm: &'a Farm, role: Role) -> Self {
        let mut it = Self { farm, cookie: String::new() };
        let form = it.get("/login").text();
        assert!(form.contains("name=\"token\""), "{form}");
        let body = format!("token={}", farm.token(role));
        let answer = it.send("/login", From::Site("same-origin"), &body);
        assert_eq!(answer.status, 303, "{answer:?}");
        let cookie = answer.head.split("set-cookie: ").nth(1).unwrap();
        it.cookie = cookie.split(';').next().unwrap().to_owned();
        it
    }

    fn head(&self) -> String {
        format!(
            "Host: localhost\r\nAccept: text/html\r\nCookie: {}\r\nConnection: close\r\n",
            self.cookie
        )
    }

    fn get(&self, path: &str) -> HttpReply {
        self.farm.ask(format!("GET {path} HTTP/1.1\r\n{}\r\n", self.head()).as_bytes())
    }

    fn send(&self, path: &str, from: From, body: &str) -> HttpReply {
        let site = match from {
            From::Unsaid => String::new(),
            From::Site(site) => format!("Sec-Fetch-Site: {site}\r\n"),
        };
        let request = format!(
            "POST {path} HTTP/1.1\r\n{}{site}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            self.head(),
            body.len()
        );
        self.farm.ask(request.as_bytes())
    }

    /// Where the only form of a page to `end` goes, and what it sends by itself.
    fn form(&self, page: &str, end: &str) -> Option<(String, String)> {
        let text = self.get(page).text();
        let xml = text.replacen("<!DOCTYPE html>", "", 1);
        let document = roxmltree::Document::parse(&xml).unwrap();
        let form = document.descendants().find(|n| {
            n.has_tag_name("form") && n.attribute("action").is_some_and(|a| a.ends_with(end))
        })?;
        assert_eq!(form.attribute("method"), Some("post"));
        let hidden: String = form
            .descendants()
            .filter(|n| n.attribute("type") == Some("hidden"))
            .map(|n| format!("{}={}&", n.attribute("name").unwrap(), n.attribute("value").unwrap()))
            .collect();
        Some((form.attribute("action").unwrap().to_owned(), hidden))
    }
}

/// A board whose only night is not met.
fn filled(farm: &Farm) -> String {
    let planted = Planted {
        model: "Board",
        id: "late".to_owned(),
        started_s: NOW_S - 3600,
        release: "6.12.1",
        governor: "performance",
        loads: "hackbench",
        usual_ns: 5_000,
        max_ns: 150_000,
        shift_ns: 0,
        seconds: Seconds::All,
    };
    let added = farm.post("/api/v1/runs", Some(&farm.token(Role::Agent)), &planted.file());
    assert_eq!(added.status, 201, "{added:?}");
    added.json()["run"].as_str().unwrap().to_owned()
}

const MESSAGE: &str = "message=the+fan%2C+%C3%BC+%3Cb%3E%26%0Anew";
/// As the page shows it: on one line, and no markup.
const SHOWN: &str = "the fan, ü &lt;b&gt;&amp; new";
const ELSEWHERE: [From; 4] =
    [From::Unsaid, From::Site("cross-site"), From::Site("same-site"), From::Site("none")];
const HERE: From = From::Site("same-origin");

#[test]
fn a_person_acknowledges_by_the_form_of_the_page_and_nobody_elsewhere_in_their_name() {
    let farm = Farm::start(|config| config.open = false);
    filled(&farm);
    let operator = Browser::logged_in(&farm, Role::Operator);
    let (action, hidden) = operator.form("/systems/press", "/acknowledge").unwrap();
    let body = format!("{hidden}{MESSAGE}");
    // A page of somebody else sends the cookie along where the browser lets it.
    for from in ELSEWHERE {
        for path in [action.clone(), format!("/api/v1{action}")] {
            assert_eq!(operator.send(&path, from, &body).status, 403, "{path}");
        }
    }
    let as_json = format!(
        "{{\"workload\":\"{}\",\"message\":\"x\"}}",
        &hidden["workload=".len()..hidden.len() - 1]
    );
    assert_eq!(operator.send(&action, From::Site("cross-site"), &as_json).status, 403);
    for wrong in ["message=", "message=+++", &format!("message={}", "x".repeat(401)), "massage=a"] {
        let answer = operator.send(&action, HERE, &format!("{hidden}{wrong}"));
        assert_eq!(answer.status, 422, "{wrong}: {answer:?}");
        assert!(answer.text().contains("message"), "in a page: {answer:?}");
    }
    assert_eq!(operator.send(&action, HERE, &format!("workload=none&{MESSAGE}")).status, 404);
    assert!(farm.store().acknowledgements().unwrap().is_empty());

    let done = operator.send(&action, HERE, &body);
    assert_eq!(done.status, 303, "{done:?}");
    let to = done.head.split("location: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    for page in [to.as_str(), "/"] {
        let text = operator.get(page).text();
        assert!(
            text.contains("known to operator, 2026-11-25") && text.contains(SHOWN),
            "{page}: {text}"
        );
    }
    assert_eq!(operator.form(&to, "/acknowledge"), None, "it is known");
    let audit = farm.get("/api/v1/audit", Some(&farm.token(Role::Operator))).text();
    assert!(audit.contains("acknowledged a series of press"), "{audit}");
}

#[test]
fn a_note_is_written_by_its_form_and_stands_with_its_run() {
    let farm = Farm::start(|config| config.open = false);
    let run = filled(&farm);
    let operator = Browser::logged_in(&farm, Role::Operator);
    let page = format!("/runs/{run}/note");
    let (action, hidden) = operator.form(&page, "/note").unwrap();
    assert_eq!((action.as_str(), hidden.as_str()), (page.as_str(), ""));
    for from in ELSEWHERE {
        assert_eq!(operator.send(&action, from, MESSAGE).status, 403);
    }
    assert!(farm.store().notes(std::slice::from_ref(&run)).unwrap().is_empty());
    let done = operator.send(&action, HERE, MESSAGE);
    assert!(done.status == 303 && done.head.contains(&format!("location: {page}")), "{done:?}");
    for page in [page.as_str(), "/runs?system=press", &format!("/runs/{run}")] {
        assert!(operator.get(page).text().contains(SHOWN), "{page}");
    }
}

#[test]
fn who_may_only_read_gets_no_form_and_nothing_is_written_for_them() {
    let farm = Farm::start(|config| config.open = false);
    let run = filled(&farm);
    let (_, hidden) =
        Browser::logged_in(&farm, Role::Operator).form("/systems/press", "/acknowledge").unwrap();
    let reader = Browser::logged_in(&farm, Role::Reader);
    let note = format!("/runs/{run}/note");
    assert_eq!(reader.form("/systems/press", "/acknowledge"), None);
    assert_eq!(reader.form(&note, "/note"), None);
    let mut out = Browser { farm: &farm, cookie: reader.cookie.clone() };
    assert_eq!(out.send("/logout", HERE, "").status, 303);
    for (browser, status) in [
        (&reader, 401),
        (
            &{
                out.cookie.clear();
                out
            },
            401,
        ),
    ] {
        // Without a session it is nobody who asks.
        assert_eq!(browser.send(&note, HERE, MESSAGE).status, status);
        let acknowledged =
            browser.send("/systems/press/acknowledge", HERE, &format!("{hidden}{MESSAGE}"));
        assert_eq!(acknowledged.status, status);
    }
    let reader = Browser::logged_in(&farm, Role::Reader);
    assert_eq!(reader.send(&note, HERE, MESSAGE).status, 403);
    let body = format!("{hidden}{MESSAGE}");
    assert_eq!(reader.send("/systems/press/acknowledge", HERE, &body).status, 403);
    let mut store = farm.store();
    assert!(
        store.acknowledgements().unwrap().is_empty() && store.notes(&[run]).unwrap().is_empty()
    );
}

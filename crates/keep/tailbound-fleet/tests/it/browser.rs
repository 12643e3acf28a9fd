// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a real browser makes of the server's pages: nothing overflows on a phone, scripts run under the server's own policy, the
//! cursor and zoom work by keys, and a page renews itself and says when it could not.
//!
//! Context: tests. Needs the program `chromium`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tailbound_testing::skip;

use crate::farm::Farm;

/// Waits for the page's own script, and writes what it saw into the title.
const PROBE: &str = r#"
(function () {
  var seen = [];
  window.addEventListener("error", function (e) { seen.push(e.message); });
  document.addEventListener("securitypolicyviolation", function (e) { seen.push("policy: " + e.violatedDirective); });
  window.addEventListener("load", function () {
    var wide = Array.from(document.querySelectorAll("body *")).filter(function (e) {
      return !e.closest(".scroll") && !e.closest("svg") && !e.classList.contains("skip") && e.getBoundingClientRect().right > window.innerWidth + 1;
    });
    var shown = Array.from(document.querySelectorAll("svg.tb")).filter(function (s) { return getComputedStyle(s).display !== "none"; });
    var keys = shown.map(function (svg) {
      function key(name) { svg.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true })); }
      var readout = svg.closest("figure").querySelector(".readout");
      function view() { return svg.querySelector("svg.area").getAttribute("viewBox"); }
      var all = view();
      svg.focus();
      key("End"); key("ArrowLeft"); key("+");
      var words = readout.textContent, zoomed = view() !== all;
      key("Escape");
      return document.activeElement === svg && zoomed && Number(view().split(" ")[2]) === Number(all.split(" ")[2]) && words.indexOf("at ") === 0;
    });
    window.setTimeout(function () {
      document.title = JSON.stringify({
        width: window.innerWidth, page: document.documentElement.scrollWidth, keys: keys,
        wide: wide.map(function (e) { return e.tagName + "." + e.className; }).slice(0, 5),
        background: getComputedStyle(document.body).backgroundColor, errors: seen,
        asOf: (document.getElementById("as-of") || { textContent: "" }).textContent
      });
    }, WAIT);
  });
}());
"#;

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|d| d.join("chromium")).find(|p| p.is_file());
    if found.is_none() {
        skip("chromium", "no program `chromium` in PATH (Debian package chromium)");
    }
    found
}

/// A way to the farm that puts the probe before its script, which is a file of the server's own: no policy is changed.
/// After `limit` requests for pages it breaks off.
fn way(farm: SocketAddr, wait_ms: u32, limit: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut pages = 0;
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = Vec::new();
            let mut piece = [0u8; 8192];
            while !request.windows(4).any(|w| w == b"\r\n\r\n") {
                match stream.read(&mut piece) {
                    Ok(n) if n > 0 => request.extend(&piece[..n]),
                    _ => break,
                }
            }
            let text = String::from_utf8_lossy(&request).into_owned();
            let path = text.split(' ').nth(1).unwrap_or("/").to_owned();
            let is_page = !path.contains('.');
            pages += usize::from(is_page);
            if is_page && pages > limit {
                continue;
            }
            let mut asked = TcpStream::connect(farm).unwrap();
            let head =
                format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            asked.write_all(head.as_bytes()).unwrap();
            let mut all = Vec::new();
            let _ = asked.read_to_end(&mut all);
            if path == "/script.js" {
                let answer = crate::farm::HttpReply::read(&all);
                let script = PROBE.replace("WAIT", &wait_ms.to_string()) + &answer.text();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/javascript\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    script.len()
                );
                all = (head + &script).into_bytes();
            }
            let _ = stream.write_all(&all);
        }
    });
    at
}

fn browse(program: &Path, url: &str, arguments: &[&str], budget_ms: u32) -> serde_json::Value {
    let profile = tempfile::tempdir().unwrap();
    let out = Command::new(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args(["--disable-component-update", "--disable-sync", "--hide-scrollbars", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--virtual-time-budget={budget_ms}"))
        .args(arguments)
        .arg(url)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&out.stdout).into_owned();
    let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    let text = title.map_or("", |t| t.0).replace("&quot;", "\"").replace("&amp;", "&");
    serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{url}: the probe did not run ({e}): {text}"))
}

#[test]
fn pages_in_a_real_browser() {
    let Some(program) = chromium() else { return };
    let farm = Farm::start(|_| {});
    super::filled(&farm);
    let at = way(farm.address, 200, usize::MAX);
    let none = Vec::<bool>::new();
    for path in ["/", "/systems/press", "/regressions", "/culprits", "/work", "/login"] {
        let mut backgrounds = Vec::new();
        let variants: [(&[&str], i64); 3] = [
            (&["--window-size=1280,900"], 1280),
            (&["--window-size=1280,900", "--blink-settings=preferredColorScheme=0"], 1280),
            (&["--window-size=500,844"], 500),
        ];
        for (arguments, width) in variants {
            let v = browse(&program, &format!("http://{at}{path}"), arguments, 4000);
            assert_eq!(
                (&v["wide"], &v["errors"]),
                (&serde_json::json!([]), &serde_json::json!([])),
                "{path}: {v}"
            );
            assert!(v["page"].as_i64() <= Some(width), "{path} scrolls sideways: {v}");
            let keys: Vec<bool> = v["keys"].as_array().unwrap().iter().map(|k| k == true).collect();
            if path == "/systems/press" {
                assert!(keys.len() >= 3 && keys.iter().all(|k| *k), "{path}: {v}");
            } else {
                assert_eq!(keys, none, "{path}");
            }
            backgrounds.push(v["background"].clone());
        }
        assert_ne!(backgrounds[0], backgrounds[1], "{path}: dark is not light");
    }
}

#[test]
fn a_page_renews_itself_and_says_when_it_cannot() {
    let Some(program) = chromium() else { return };
    let farm = Farm::start(|_| {});
    // The page itself and one renewal; the second renewal, ten seconds later, breaks off.
    for (limit, broken) in [(usize::MAX, false), (2, true)] {
        let at = way(farm.address, 13_000, limit);
        let v = browse(&program, &format!("http://{at}/work"), &["--window-size=1280,900"], 20_000);
        let words = v["asOf"].as_str().unwrap();
        assert!(words.starts_with("As of 2026-11-25 12:00:00 UTC."), "{v}");
        assert_eq!(words.contains("does not answer"), broken, "{v}");
    }
}

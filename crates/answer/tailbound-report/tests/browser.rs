// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a real browser makes of the page: no overflow, every picture has a size, the script
//! runs without an error under the page's own policy, and it prints.
//!
//! Needs the program `chromium`; without it the tests say so and pass, unless
//! `TAILBOUND_REQUIRE` contains `chromium`.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use common::{Shape, run};
use sha2::{Digest as _, Sha256};
use tailbound_report::html;
use tailbound_report::matrix::{self, Cell, CellFailure, Labels};
use tailbound_stats::Analysis;
use tailbound_testing::skip;

/// Runs in the page before its own script: collects errors, and writes what it saw into the
/// title when everything has loaded.
const PROBE: &str = r#"<script>//<![CDATA[
window.seen = [];
window.addEventListener("error", function (e) { window.seen.push(e.message); });
document.addEventListener("securitypolicyviolation", function (e) { window.seen.push("policy: " + e.violatedDirective); });
window.addEventListener("load", function () {
  var shown = Array.from(document.querySelectorAll("svg.tb")).filter(function (s) {
    return getComputedStyle(s).display !== "none";
  });
  var empty = shown.filter(function (s) {
    var b = s.getBoundingClientRect();
    return b.width < 200 || b.height < 100;
  });
  var wide = Array.from(document.querySelectorAll("main *")).filter(function (e) {
    return !e.closest(".scroll") && !e.closest("svg") && e.getBoundingClientRect().right > window.innerWidth + 1;
  });
  var svg = shown[0];
  var box = svg.getBoundingClientRect();
  svg.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 3, clientY: box.top + 90 }));
  function mouse(kind, share, target) {
    target.dispatchEvent(new PointerEvent(kind, {
      clientX: box.left + box.width * share, clientY: box.top + 90, pointerType: "mouse", button: 0
    }));
  }
  var labels = svg.querySelector(".tx").textContent;
  mouse("pointerdown", 0.3, svg);
  mouse("pointerup", 0.5, window);
  var zoomed = svg.querySelector("svg.area").getAttribute("viewBox");
  var relabelled = svg.querySelector(".tx").textContent !== labels;
  svg.dispatchEvent(new MouseEvent("dblclick"));
  var restored = svg.querySelector("svg.area").getAttribute("viewBox");
  function key(name) { svg.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true })); }
  var r = svg.parentElement.querySelector(".readout").textContent;
  svg.focus();
  var focused = document.activeElement === svg;
  key("Home");
  key("ArrowRight");
  var moved = svg.parentElement.querySelector(".readout").textContent;
  key("+");
  var width = function () { return Number(svg.querySelector("svg.area").getAttribute("viewBox").split(" ")[2]); };
  var all = Number(svg.dataset.area.split(" ")[2]);
  var nearer = width() < all * 0.51;
  key("Escape");
  var keys = focused && moved !== r && moved.indexOf("at ") === 0 && nearer && width() === all;
  var buttons = svg.parentElement.querySelectorAll(".zoom button");
  buttons[0].click();
  keys = keys && width() < all;
  buttons[2].click();
  keys = keys && width() === all;
  document.title = JSON.stringify({
    width: window.innerWidth,
    page: document.documentElement.scrollWidth,
    pictures: shown.length,
    empty: empty.length,
    wide: wide.map(function (e) { return e.tagName + "." + e.className; }).slice(0, 5),
    background: getComputedStyle(document.body).backgroundColor,
    readout: r,
    zoom: zoomed.split(" ")[0] > 0 ? relabelled : false,
    restored: restored.split(" ")[0] === "0",
    keys: keys,
    errors: window.seen
  });
});
//]]></script>"#;

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|d| d.join("chromium")).find(|p| p.is_file());
    if found.is_none() {
        skip("chromium", "no program `chromium` in PATH (Debian package chromium)");
    }
    found
}

fn browse(program: &Path, directory: &Path, file: &Path, arguments: &[&str]) -> String {
    let profile = tempfile::tempdir_in(directory).expect("a profile directory");
    #[expect(clippy::disallowed_methods, reason = "a browser of the test, waited for at once")]
    let output = Command::new(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .output()
        .expect("chromium starts");
    assert!(output.status.success(), "chromium: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The page with a script of the test's in it, which its policy is made to allow.
fn probed(page: &str, probe: &str) -> String {
    let script = probe.strip_prefix("<script>").and_then(|p| p.strip_suffix("</script>"));
    let digest = Sha256::digest(script.expect("the probe is one script"));
    let digest = base64::engine::general_purpose::STANDARD.encode(digest);
    let allowed = page.replacen("script-src ", &format!("script-src 'sha256-{digest}' "), 1);
    assert_ne!(allowed, page, "the page has a policy");
    allowed.replacen("</title>", &format!("</title>{probe}"), 1)
}

/// A script that got into the page by whatever way is not run; the page's own is.
#[test]
fn no_other_script_runs() {
    let Some(program) = chromium() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let run = run(&Shape { seconds: 5, per_second: 100, ..Shape::default() });
    let page = html(&[Analysis::of(&run)], &[]);
    let file = directory.path().join("page.html");
    for evil in [
        "<script>document.title = 'evil';</script>",
        "<img src=\"x\" onerror=\"document.title = 'evil'\"/>",
    ] {
        let with = page.replacen("</main>", &format!("{evil}</main>"), 1);
        assert_ne!(with, page);
        std::fs::write(&file, with).expect("the page can be written");
        let arguments = ["--dump-dom", "--virtual-time-budget=4000"];
        let dom = browse(&program, directory.path(), &file, &arguments);
        assert!(dom.contains("<title>Tailbound, ") && !dom.contains("<title>evil"), "{evil}");
    }
}

/// What the probe wrote into the title.
fn seen(dom: &str) -> serde_json::Value {
    let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    let text = title.map_or("", |t| t.0).replace("&quot;", "\"").replace("&amp;", "&");
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("the probe did not run ({e}): {text}"))
}

#[test]
fn light_dark_phone_and_paper() {
    let Some(program) = chromium() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let shape = || Shape { seconds: 20, per_second: 500, ..Shape::default() };
    let (bad, good) = (run(&shape()), run(&Shape { early: true, stall_ns: 0, ..shape() }));
    let many = run(&Shape { cpus: 24, per_second: 50, ..shape() });
    let names = ["a.tailbound.jsonl".to_owned(), "b.tailbound.jsonl".to_owned()];
    let cell = |kernel: &str, load: &str, run: &tailbound_core::Run| {
        let labels = Labels { kernel: kernel.into(), load: load.into(), append: String::new() };
        Cell { labels, file: None, run: Ok(run.clone()) }
    };
    let mut cells = Vec::new();
    for load in ["hackbench", "file", "mmap"] {
        cells.extend([cell("debian:6.12", load, &bad), cell("debian:6.12-rt", load, &good)]);
    }
    let why = "a reason that goes on and on until it would not fit on any telephone".to_owned();
    cells.push(Cell { run: Err(CellFailure { why }), ..cell("debian:6.1", "mmap", &bad) });
    let pages = [
        ("matrix", matrix::html(&cells)),
        ("one", html(&[Analysis::of(&bad)], &names)),
        ("many", html(&[Analysis::of(&many)], &names)),
        ("two", html(&[Analysis::of(&good), Analysis::of(&bad)], &names)),
    ];
    for (name, page) in &pages {
        let file = directory.path().join(format!("{name}.html"));
        let probed = probed(page, PROBE);
        std::fs::write(&file, probed).expect("the page can be written");
        let variants: [(&str, &[&str], i64); 3] = [
            ("light", &["--window-size=1280,900"], 1280),
            ("dark", &["--window-size=1280,900", "--blink-settings=preferredColorScheme=0"], 1280),
            // Windows do not become as narrow as phones: the other test uses a frame.
            ("phone", &["--window-size=500,844"], 500),
        ];
        let mut backgrounds = Vec::new();
        for (variant, arguments, width) in variants {
            let mut all = vec!["--dump-dom", "--virtual-time-budget=4000"];
            all.extend(arguments);
            let v = seen(&browse(&program, directory.path(), &file, &all));
            let what = format!("{name}, {variant}: {v}");
            assert_eq!(v["width"], width, "{what}");
            assert!(v["page"].as_i64() <= Some(width), "the page scrolls sideways: {what}");
            assert_eq!(v["wide"], serde_json::json!([]), "{what}");
            assert!(v["pictures"].as_i64() >= Some(5), "{what}");
            assert_eq!(v["empty"], 0, "{what}");
            assert_eq!(v["errors"], serde_json::json!([]), "{what}");
            assert!(v["zoom"] == true && v["restored"] == true && v["keys"] == true, "{what}");
            assert!(v["readout"].as_str().is_some_and(|r| r.starts_with("at ")), "{what}");
            backgrounds.push(v["background"].clone());
        }
        assert_ne!(backgrounds[0], backgrounds[1], "dark is not light");
    }
    let file = directory.path().join("one.html");
    let pdf = directory.path().join("one.pdf");
    browse(&program, directory.path(), &file, &[&format!("--print-to-pdf={}", pdf.display())]);
    let bytes = std::fs::read(&pdf).expect("it prints");
    assert!(bytes.starts_with(b"%PDF-") && bytes.len() > 20_000, "{} bytes", bytes.len());
    let png = directory.path().join("one.png");
    let shot = format!("--screenshot={}", png.display());
    browse(&program, directory.path(), &file, &["--window-size=1280,900", &shot]);
    assert!(std::fs::metadata(&png).is_ok_and(|m| m.len() > 20_000), "the screenshot is blank");
}

/// A page inside a frame as wide as the narrowest phone.
#[test]
fn nothing_overflows_at_360_pixels() {
    let Some(program) = chromium() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let run = run(&Shape { seconds: 20, per_second: 500, early: true, ..Shape::default() });
    let page = html(
        &[Analysis::of(&run)],
        &["a-rather-long-file-name-of-a-run.tailbound.jsonl".to_owned()],
    );
    let inside = directory.path().join("inside.html");
    // The title of a frame is not the page's: the probe hands it up.
    let probe = PROBE.replace("document.title = ", "window.parent.document.title = ");
    std::fs::write(&inside, probed(&page, &probe)).expect("the page can be written");
    let outside = directory.path().join("outside.html");
    let frame = "<!DOCTYPE html><html><head><title></title></head><body>\
                 <iframe src=\"inside.html\" style=\"width:360px;height:800px;border:0\"></iframe></body></html>";
    std::fs::write(&outside, frame).expect("the frame can be written");
    let arguments = ["--dump-dom", "--virtual-time-budget=4000", "--allow-file-access-from-files"];
    let v = seen(&browse(&program, directory.path(), &outside, &arguments));
    assert_eq!(v["width"], 360, "{v}");
    assert!(v["page"].as_i64() <= Some(360), "{v}");
    assert_eq!(v["wide"], serde_json::json!([]), "{v}");
    assert_eq!(v["errors"], serde_json::json!([]), "{v}");
}

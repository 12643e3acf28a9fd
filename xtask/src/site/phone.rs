// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether every page fits a phone: nothing is wider than 390 pixels but what scrolls within itself. Chromium lays them out.
//!
//! A page that is too wide is looked at with them, so that a way of looking that sees nothing is noticed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::chapters;
use crate::exec;

/// Its names, as Debian and others have it.
const CHROMIUM: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The longest that all pages together may take on a loaded machine.
const LIMIT: Duration = Duration::from_secs(900);

/// A page that does not fit.
const PLANTED: &str = "planted.html";

/// Loads one page after the other into a frame of a phone's width, and writes those that are wider.
const LOOK: &str = "\
const wide = []; let i = 0;
const frame = document.querySelector('iframe'), out = document.querySelector('pre');
const next = () => { if (i < pages.length) frame.src = pages[i];
  else out.textContent = 'looked at ' + i + ':' + wide.join(';'); };
frame.onload = () => {
  const page = frame.contentDocument, main = page.querySelector('main');
  if (page.documentElement.scrollWidth > 390 || main.scrollWidth > main.clientWidth) wide.push(pages[i]);
  i += 1; next();
};
next();";

/// The browser, if there is one.
pub(crate) fn browser() -> Option<&'static str> {
    CHROMIUM.into_iter().find(|name| exec::exists(name))
}

/// The pages of the site in `folder` that are wider than a phone; `scratch` is for the page that looks.
pub(crate) fn wider(browser: &str, folder: &Path, scratch: &Path) -> anyhow::Result<Vec<String>> {
    if scratch.exists() {
        fs::remove_dir_all(scratch)?;
    }
    fs::create_dir_all(scratch)?;
    let of_site = chapters::files(folder)?;
    let of_site = of_site.iter().filter(|f| f.ends_with(".html") && *f != "toc.html");
    let mut pages: Vec<String> =
        of_site.map(|f| format!("file://{}", folder.join(f).display())).collect();
    pages.push(PLANTED.to_owned());
    let list = serde_json::to_string(&pages)?;
    let frame = "<iframe style=\"width:390px;height:800px;border:0\"></iframe>";
    let page = format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><pre></pre>{frame}<script>const pages = {list};\n{LOOK}</script>"
    );
    fs::write(scratch.join("look.html"), page)?;
    let planted = "<!DOCTYPE html><main><div style=\"width:700px\">wide</div></main>";
    fs::write(scratch.join(PLANTED), planted)?;
    let mut look = exec::command(browser);
    look.args(["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]);
    // Time stands still while a page is loaded; what is left of it at the end is drawn, frame by frame.
    look.args(["--virtual-time-budget=20000", "--dump-dom"]);
    look.arg(format!("--user-data-dir={}", scratch.join("profile").display()));
    look.arg(format!("file://{}", scratch.join("look.html").display()));
    let log = scratch.join("output.txt");
    let ended = exec::limited(&mut look, &log, LIMIT)?;
    let said = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    if ended.is_none_or(|status| !status.success()) {
        bail!("{browser} did not end well within {} s: {}", LIMIT.as_secs(), log.display());
    }
    seen(&said, pages.len()).with_context(|| log.display().to_string())
}

/// What the page that looks has written; the planted page is not of the site.
fn seen(dom: &str, pages: usize) -> anyhow::Result<Vec<String>> {
    let begin = format!("<pre>looked at {pages}:");
    let list = dom.split_once(&begin).and_then(|(_, rest)| rest.split_once("</pre>"));
    let (list, _) = list.context("not every page was looked at")?;
    let mut wide: Vec<String> = list.split(';').map(str::to_owned).collect();
    if wide.pop().as_deref() != Some(PLANTED) {
        bail!("a page that is too wide was not noticed");
    }
    Ok(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_of_looking_that_sees_nothing_is_noticed() {
        let dom = |text: &str| format!("<body><pre>{text}</pre><iframe></iframe>");
        assert_eq!(seen(&dom("looked at 3:planted.html"), 3).unwrap(), Vec::<String>::new());
        assert_eq!(seen(&dom("looked at 3:a.html;planted.html"), 3).unwrap(), ["a.html"]);
        assert!(seen(&dom("looked at 3:"), 3).is_err());
        assert!(seen(&dom("looked at 2:planted.html"), 3).is_err());
        assert!(seen(&dom(""), 3).is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A unit of systemd that changes the machine at each start and undoes it at each stop.
//!
//! Source: systemd.service(5).

use std::path::Path;

use crate::error::TuneError;
use crate::typed::RecipeWords;

/// The unit that has the program `exe` do what `words` say.
///
/// # Errors
/// [`TuneError::UnitForBoot`].
pub fn unit(exe: &Path, words: &RecipeWords) -> Result<String, TuneError> {
    if words.boot {
        return Err(TuneError::UnitForBoot);
    }
    let profile = words.profile.as_deref().map(|name| {
        // A unit has no folder of its own: a file needs its whole path.
        let file = Path::new(name);
        let whole = file.is_file().then(|| std::path::absolute(file).ok()).flatten();
        ("--profile", whole.map_or_else(|| name.to_owned(), |p| p.display().to_string()))
    });
    let cpus = words.cpus.rt_cpus.as_ref().map(|c| ("--rt-cpus", c.clone()));
    let settings = words.set.iter().map(|s| ("--set", s.clone()));
    let without = words.cpus.without.iter().map(|s| ("--without", s.clone()));
    let mut command =
        vec![exe.display().to_string(), "tune".to_owned(), "apply".to_owned(), "--keep".to_owned()];
    for (flag, value) in profile.into_iter().chain(cpus).chain(settings).chain(without) {
        command.extend([flag.to_owned(), value]);
    }
    if words.cpus.allow_cpu0 {
        command.push("--allow-cpu0".to_owned());
    }
    let quoted = |words: &[String]| words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ");
    Ok(format!(
        "# Save as /etc/systemd/system/tailbound-tune.service, then: systemctl enable --now tailbound-tune\n\
         [Unit]\nDescription=Settings for real-time work\nAfter=multi-user.target\n\n\
         [Service]\nType=exec\nExecStart={}\n\n\
         [Install]\nWantedBy=multi-user.target",
        quoted(&command)
    ))
}

/// A word as systemd.service(5) reads it.
fn quoted(word: &str) -> String {
    let escaped =
        word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    if escaped.contains(|c: char| c.is_whitespace() || c == '"' || c == '\'' || c == '\\') {
        format!("\"{escaped}\"")
    } else {
        escaped
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what a search asks about to what the lab is asked for: options, loads and settings; kernels by name.

use tailbound_lab::{LabError, Request};

use super::ProfileText;
use crate::bisect::Arm;
use crate::bisect::differences::{Words, words};
use crate::error::SearchError;

/// An option that no kernel knows: it moves its command line and nothing else.
pub(super) const CONTROL: &str = "tailbound.control=1";
/// Changes that are named one by one in a title.
const NAMED: usize = 3;

/// Why a variant is not there to be measured.
pub(super) enum Unmade {
    /// This one alone.
    Unfit(String),
    /// No other would do better.
    Failed(SearchError),
}

impl From<SearchError> for Unmade {
    fn from(failure: SearchError) -> Self {
        Self::Failed(failure)
    }
}

impl From<LabError> for Unmade {
    fn from(e: LabError) -> Self {
        Self::Failed(e.into())
    }
}

/// What a search is in.
pub(super) trait Variants<T> {
    /// What makes it this one.
    fn key(&self, at: &T, arm: Arm) -> String;

    /// What a reader calls it.
    fn title(&self, at: &T, arm: Arm) -> String;

    /// What the lab is asked for; it may have to be built first.
    fn request(&mut self, at: &T, arm: Arm) -> Result<Request, Unmade>;

    /// Is everything there that [`Self::request`] would otherwise build first?
    fn is_made(&self, _at: &T, _arm: Arm) -> bool {
        true
    }

    /// What is worth knowing about the last one.
    fn note(&mut self) -> Option<String> {
        None
    }
}

/// A title for some of `all` changes.
pub(super) fn several(names: &[String], all: usize) -> String {
    match names {
        [] => "none of them".to_owned(),
        few if few.len() <= NAMED => few.join(" and "),
        [first, .., last] => format!("{} of {all}: {first} … {last}", names.len()),
        [one] => one.clone(),
    }
}

/// Behind a title.
fn controlled(title: String, arm: Arm) -> String {
    if arm.is_control() { format!("{title}, and {CONTROL}") } else { title }
}

/// Adds words to the command line of a request of one system.
pub(super) fn append(request: &mut Request, words: &[String]) {
    let before = request.append.first().cloned().unwrap_or_default();
    let all: Vec<&str> =
        std::iter::once(before.trim()).chain(words.iter().map(String::as_str)).collect();
    request.append = vec![all.join(" ").trim().to_owned()];
}

/// Options of the kernel, loads and settings.
pub(super) struct Options<'a> {
    /// What both ends have.
    pub(super) base: Request,
    /// Loads that both ends have.
    pub(super) loads: Vec<String>,
    pub(super) append: Words,
    pub(super) load: Words,
    pub(super) set: Words,
    /// The text of a profile of settings.
    pub(super) profile: &'a ProfileText<'a>,
}

impl<'a> Options<'a> {
    pub(super) fn new(
        base: Request,
        profile: &'a ProfileText<'a>,
        good: [&[String]; 3],
        bad: [&[String]; 3],
    ) -> Result<Self, SearchError> {
        let [append, load, set] = [0, 1, 2].map(|i| {
            let side = |all: &[&[String]; 3]| all.get(i).copied().unwrap_or_default().to_vec();
            words(&side(&good), &side(&bad))
        });
        let loads = base.loads.first().map(|l| l.split(',').map(str::to_owned).collect());
        let loads = loads.unwrap_or_default();
        let made = Self { base, loads, append, load, set, profile };
        if made.count() == 0 {
            return Err(SearchError::SameEnds);
        }
        Ok(made)
    }

    /// How many changes there are.
    pub(super) fn count(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> Vec<String> {
        let kind = |words: &Words, what: &str| -> Vec<String> {
            words.differences.iter().map(|d| format!("{what}{}", d.title())).collect()
        };
        [kind(&self.append, ""), kind(&self.load, "load "), kind(&self.set, "setting ")].concat()
    }

    /// The name of a change.
    pub(super) fn name(&self, at: usize) -> String {
        self.all().get(at).cloned().unwrap_or_default()
    }

    /// The words of each kind with these changes.
    fn split(&self, at: &[usize]) -> [Vec<String>; 3] {
        let mut first = 0;
        [&self.append, &self.load, &self.set].map(|words| {
            let n = words.differences.len();
            let own: Vec<usize> =
                at.iter().filter_map(|i| i.checked_sub(first)).filter(|i| *i < n).collect();
            first += n;
            words.with(&own)
        })
    }
}

impl Variants<Vec<usize>> for Options<'_> {
    fn key(&self, at: &Vec<usize>, arm: Arm) -> String {
        let [mut append, load, set] = self.split(at);
        append.extend(arm.is_control().then(|| CONTROL.to_owned()));
        let mut key = append.join(" ");
        for (what, words) in [("loads", load), ("settings", set)] {
            if !words.is_empty() {
                key.push_str(&format!(" | {what} {}", words.join(" ")));
            }
        }
        key
    }

    fn title(&self, at: &Vec<usize>, arm: Arm) -> String {
        let names: Vec<String> = at.iter().map(|i| self.name(*i)).collect();
        let title = several(&names, self.count());
        controlled(title, arm)
    }

    fn request(&mut self, at: &Vec<usize>, arm: Arm) -> Result<Request, Unmade> {
        let [mut words, load, set] = self.split(at);
        words.extend(arm.is_control().then(|| CONTROL.to_owned()));
        let mut request = self.base.clone();
        append(&mut request, &words);
        let loads: Vec<String> = self.loads.iter().cloned().chain(load).collect();
        if !loads.is_empty() {
            request.loads = vec![loads.join(",")];
        } else if !self.load.differences.is_empty() {
            request.loads = vec!["none".to_owned()];
        }
        if !set.is_empty() {
            const NAME: &str = "bisect";
            request.profiles.insert(NAME.to_owned(), (self.profile)(NAME, &set)?);
            request.tune = vec![NAME.to_owned()];
        }
        Ok(request)
    }
}

/// Kernels by name, in order.
pub(super) struct Kernels {
    pub(super) base: Request,
    pub(super) names: Vec<String>,
}

impl Variants<usize> for Kernels {
    fn key(&self, at: &usize, arm: Arm) -> String {
        self.title(at, arm)
    }

    fn title(&self, at: &usize, arm: Arm) -> String {
        controlled(self.names.get(*at).cloned().unwrap_or_default(), arm)
    }

    fn request(&mut self, at: &usize, arm: Arm) -> Result<Request, Unmade> {
        let mut request = self.base.clone();
        request.kernels = self.names.get(*at).cloned().into_iter().collect();
        if arm.is_control() {
            append(&mut request, &[CONTROL.to_owned()]);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn none(name: &str, _: &[String]) -> Result<String, SearchError> {
        Err(SearchError::Unfit { why: format!("there is no {name}") })
    }

    fn options(good: &str, bad: &str, bad_load: &str) -> Options<'static> {
        let base = Request {
            kernels: vec!["debian:6.12".to_owned()],
            append: vec!["quiet".to_owned()],
            ..Request::default()
        };
        let (good, bad, load) = (list(good), list(bad), list(bad_load));
        Options::new(base, &none, [&good, &[], &[]], [&bad, &load, &[]]).ok().unwrap()
    }

    #[test]
    fn a_set_of_changes_is_a_command_line_and_loads() {
        let mut o = options("a=1", "a=2 b c", "memory fork");
        assert_eq!(o.count(), 5);
        assert_eq!(
            (o.name(0), o.name(3)),
            ("a=2 instead of a=1".to_owned(), "load memory".to_owned())
        );
        let request = o.request(&vec![1, 4], Arm::Control).ok().unwrap();
        assert_eq!(request.append, ["quiet a=1 b tailbound.control=1"]);
        assert_eq!(request.loads, ["fork"]);
        assert_eq!(o.request(&vec![], Arm::Itself).ok().unwrap().loads, ["none"]);
        assert_eq!(o.key(&vec![0, 3], Arm::Itself), "a=2 | loads memory");
        assert_eq!(
            o.title(&(0..5).collect(), Arm::Itself),
            "5 of 5: a=2 instead of a=1 … load fork"
        );
        assert_eq!(o.title(&vec![], Arm::Control), "none of them, and tailbound.control=1");
    }

    #[test]
    fn ends_without_a_difference_are_refused() {
        let same = list("a b");
        let refused = Options::new(Request::default(), &none, [&same, &[], &[]], [&same, &[], &[]])
            .err()
            .unwrap();
        assert!(refused.to_string().contains("--bad"), "{refused}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page of the manual, to be linked from the pages about the ids that it names.

/// One page of `docs`.
#[derive(Debug)]
pub(super) struct ManualPage {
    /// Where it is on the site.
    pub(super) path: String,
    pub(super) title: String,
    pub(super) text: String,
}

impl ManualPage {
    /// A link to it from a page two folders down, where it names `id` as code; to the heading that is `id`, if there is one.
    pub(super) fn naming(&self, id: &str) -> Option<String> {
        let is_manual = !self.path.starts_with("results/") && self.path != "contents.md";
        let heading = || {
            self.text.lines().any(|l| {
                l.trim_start_matches('#').trim().trim_matches('`') == id && l.starts_with('#')
            })
        };
        let has_heading = is_manual && heading();
        let named = has_heading || self.text.contains(&format!("`{id}`"));
        (is_manual && named).then(|| {
            let anchor = if has_heading { format!("#{id}") } else { String::new() };
            format!("[{}](../../{}{anchor})", self.title, self.path)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_linked_where_it_names_an_id() {
        let page = |path: &str, text: &str| ManualPage {
            path: path.to_owned(),
            title: "P".to_owned(),
            text: text.to_owned(),
        };
        let probes = page("probes/a.md", "# P\n## signal\ntext");
        assert_eq!(probes.naming("signal").as_deref(), Some("[P](../../probes/a.md#signal)"));
        assert_eq!(probes.naming("text"), None);
        assert_eq!(page("a.md", "`x-y`").naming("x-y").as_deref(), Some("[P](../../a.md)"));
        assert_eq!(page("results/a.md", "`x-y`").naming("x-y"), None);
    }
}

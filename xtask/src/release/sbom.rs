// SPDX-License-Identifier: MIT OR Apache-2.0
//! The software bill of materials of an architecture's programs, in CycloneDX 1.5 as JSON.
//!
//! Source: the schema bom-1.5 of CycloneDX; the package URL specification for the type cargo.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::linked::{Linked, LinkedCrate};
use super::programs::Architecture;
use super::{Release, said};
use crate::exec;

/// The document.
pub(super) fn document(
    release: &Release,
    architecture: &Architecture,
    linked: &Linked,
) -> anyhow::Result<String> {
    let mut programs = Vec::new();
    for program in architecture.programs() {
        let path = architecture.path(release, *program);
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        programs.push(json!({
            "type": "file",
            "name": program.name(),
            "hashes": [{"alg": "SHA-256", "content": hex(&bytes)}],
        }));
    }
    let rust = said(exec::command("rustc").arg("--version"))?;
    let rust = rust.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let document = written(
        Subject {
            version: &release.version,
            time: &release.date("+%Y-%m-%dT%H:%M:%SZ")?,
            rust: &rust,
        },
        architecture,
        linked,
        &programs,
    );
    check(&document)?;
    Ok(format!("{document:#}\n"))
}

/// What the document is about, beside crates.
struct Subject<'a> {
    version: &'a str,
    time: &'a str,
    rust: &'a str,
}

fn written(
    subject: Subject<'_>,
    architecture: &Architecture,
    linked: &Linked,
    programs: &[Value],
) -> Value {
    let is_root = |c: &&LinkedCrate| c.name == "tailbound";
    let root = linked.crates.values().find(is_root).map_or("tailbound".into(), LinkedCrate::id);
    let mut components: Vec<Value> =
        linked.crates.values().filter(|c| !is_root(c)).map(component).collect();
    components.push(json!({
        "type": "library", "bom-ref": "rust-std", "name": "rust-std", "version": subject.rust,
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    }));
    let (c, licence) = if architecture.target.triple().ends_with("musl") {
        ("musl", "MIT")
    } else {
        ("glibc", "LGPL-2.1-or-later")
    };
    components.push(json!({
        "type": "library", "bom-ref": c, "name": c, "licenses": [{"expression": licence}],
    }));
    let depends = |c: &LinkedCrate| {
        let mut uses: Vec<&str> = c.uses.iter().map(String::as_str).collect();
        if is_root(&c) {
            uses.extend(["rust-std"]);
        }
        json!({"ref": c.id(), "dependsOn": uses})
    };
    let mut dependencies: Vec<Value> = linked.crates.values().map(depends).collect();
    dependencies.push(json!({"ref": "rust-std", "dependsOn": [c]}));
    dependencies.push(json!({"ref": c, "dependsOn": []}));
    let mut document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": subject.time,
            "component": {
                "type": "application", "bom-ref": root, "name": "tailbound", "version": subject.version,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
                "components": programs,
                "properties": [{"name": "tailbound:architecture", "value": architecture.name}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    });
    document["serialNumber"] = json!(serial(&document.to_string()));
    document
}

fn component(c: &LinkedCrate) -> Value {
    let mut value = json!({
        "type": "library", "bom-ref": c.id(), "name": c.name, "version": c.version,
    });
    if !c.licence.is_empty() {
        value["licenses"] = json!([{"expression": c.licence}]);
    }
    if let Some(sha256) = &c.sha256 {
        value["purl"] = json!(format!("pkg:cargo/{}@{}", c.name, c.version.replace('+', "%2B")));
        value["hashes"] = json!([{"alg": "SHA-256", "content": sha256}]);
    }
    value
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// A UUID that follows from the document (RFC 9562, version 8).
fn serial(text: &str) -> String {
    let digits = hex(text.as_bytes());
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!(
        "urn:uuid:{}-{}-8{}-a{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 15),
        part(15, 18),
        part(18, 30)
    )
}

/// What the schema requires of the fields that are used here, and that every reference leads to something.
fn check(document: &Value) -> anyhow::Result<()> {
    let text = |v: &Value, key: &str| v[key].as_str().unwrap_or_default().to_owned();
    ensure!(text(document, "bomFormat") == "CycloneDX", "bomFormat");
    ensure!(text(document, "specVersion") == "1.5", "specVersion");
    ensure!(document["version"].as_u64().is_some_and(|v| v >= 1), "version");
    let serial = text(document, "serialNumber");
    let digits = serial.strip_prefix("urn:uuid:").context("serialNumber")?;
    let lengths: Vec<usize> = digits.split('-').map(str::len).collect();
    ensure!(lengths == [8, 4, 4, 4, 12], "serialNumber {serial}");
    let root = &document["metadata"]["component"];
    let listed = document["components"].as_array().context("components")?;
    let inner = root["components"].as_array().context("metadata.component.components")?;
    let mut known = BTreeSet::new();
    for one in listed.iter().chain(inner).chain([root]) {
        ensure!(!text(one, "name").is_empty(), "a component without a name: {one}");
        let kind = text(one, "type");
        ensure!(["application", "library", "file"].contains(&kind.as_str()), "type {kind}");
        for hash in one["hashes"].as_array().into_iter().flatten() {
            let content = text(hash, "content");
            let is_hex = content.len() == 64 && content.chars().all(|c| c.is_ascii_hexdigit());
            ensure!(text(hash, "alg") == "SHA-256" && is_hex, "a hash of {}", text(one, "name"));
        }
        if let Some(name) = one["bom-ref"].as_str() {
            ensure!(known.insert(name.to_owned()), "two components are called {name}");
        }
    }
    for one in document["dependencies"].as_array().context("dependencies")? {
        let from = text(one, "ref");
        let to = one["dependsOn"].as_array().context("dependsOn")?;
        for name in to.iter().filter_map(Value::as_str).chain([from.as_str()]) {
            ensure!(known.contains(name), "{from} depends on {name}, which is no component");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn linked() -> Linked {
        let one = |name: &str, uses: &[&str]| LinkedCrate {
            name: name.into(),
            version: "1.0.0+x".into(),
            licence: "MIT".into(),
            sha256: (name != "tailbound").then(|| "ab".repeat(32)),
            folder: "/".into(),
            uses: uses.iter().map(|u| format!("{u}@1.0.0+x")).collect(),
        };
        let all = [one("tailbound", &["a"]), one("a", &[])];
        Linked { crates: BTreeMap::from(all.map(|c| (c.id(), c))) }
    }

    fn of(linked: &Linked) -> Value {
        let subject = Subject { version: "1.0.0", time: "2026-11-28T00:00:00Z", rust: "1.90.0" };
        written(
            subject,
            &Architecture::native(),
            linked,
            &[json!({"type": "file", "name": "tailbound"})],
        )
    }

    #[test]
    fn it_has_what_the_specification_requires_and_is_the_same_twice() {
        let document = of(&linked());
        check(&document).unwrap();
        assert_eq!(document, of(&linked()));
        let a = &document["components"][0];
        assert_eq!(a["purl"], "pkg:cargo/a@1.0.0%2Bx");
        assert_eq!(document["dependencies"][1]["dependsOn"][0], "a@1.0.0+x");
    }

    #[test]
    fn what_the_schema_refuses_is_refused() {
        let document = of(&linked());
        for (pointer, wrong) in [
            ("/specVersion", json!("9")),
            ("/serialNumber", json!("urn:uuid:1")),
            ("/components/0/name", json!("")),
            ("/components/0/type", json!("thing")),
            ("/components/0/hashes/0/content", json!("xyz")),
            ("/components/1/bom-ref", json!("a@1.0.0+x")),
            ("/dependencies/1/dependsOn/0", json!("nobody")),
        ] {
            let mut damaged = document.clone();
            *damaged.pointer_mut(pointer).unwrap() = wrong;
            assert!(check(&damaged).is_err(), "{pointer}");
        }
    }
}

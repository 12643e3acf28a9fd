// SPDX-License-Identifier: MIT OR Apache-2.0
//! What programs rely on: paths of the API, their parameters, statuses and schemas, and the metrics.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use tailbound_testing::{names, promised};

use crate::farm::Farm;
use crate::filled;

#[test]
fn the_api_and_the_metrics_stay() {
    let farm = Farm::start(|_| {});
    filled(&farm);
    let description = farm.get("/api/v1/openapi.json", None).json();
    let mut now = BTreeSet::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            of_operation(&format!("{} {path}", method.to_uppercase()), operation, &mut now);
        }
    }
    names::of_schema(&description["components"], "", &mut now);
    let page = farm.get("/metrics", None).text();
    let kinds = page.lines().filter_map(|l| l.strip_prefix("# TYPE "));
    now.extend(kinds.map(|kind| format!("metric {kind}")));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    promised(&folder.join("tests/it/promised.txt"), &now);
}

/// A method of a path: parameters that it takes, those that it needs, and statuses of success.
fn of_operation(name: &str, operation: &Value, now: &mut BTreeSet<String>) {
    now.insert(name.to_owned());
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let [place, called] = ["in", "name"].map(|key| parameter[key].as_str().unwrap());
        let needed = if parameter["required"] == true { ", needed" } else { "" };
        now.insert(format!("{name} {place} {called}{needed}"));
    }
    let statuses = operation["responses"].as_object().unwrap().keys();
    now.extend(statuses.filter(|s| s.starts_with('2')).map(|s| format!("{name} {s}")));
}

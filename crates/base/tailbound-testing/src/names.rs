// SPDX-License-Identifier: MIT OR Apache-2.0
//! What readers of JSON rely on, as names: the fields and words of a schema, the keys of an answer and their types.

use std::collections::BTreeSet;

use serde_json::Value;

/// Fields of a JSON schema with their types, and the words that a text may be: `event.t_ns: i64`, `end.reason = complete`.
pub fn of_schema(schema: &Value, path: &str, out: &mut BTreeSet<String>) {
    let Value::Object(parts) = schema else { return };
    for (key, part) in parts {
        match (key.as_str(), part) {
            ("properties" | "$defs" | "schemas", Value::Object(fields)) => {
                for (name, field) in fields {
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    out.insert(format!("{path}{}", kind(field)));
                    of_schema(field, &path, out);
                }
            }
            ("items", item) => of_schema(item, &format!("{path}[]"), out),
            ("additionalProperties", others) => of_schema(others, &format!("{path}.*"), out),
            ("oneOf" | "anyOf" | "allOf", Value::Array(cases)) => {
                cases.iter().for_each(|case| of_schema(case, path, out));
            }
            ("enum", Value::Array(words)) => {
                out.extend(words.iter().filter_map(Value::as_str).map(|w| format!("{path} = {w}")));
            }
            ("const", Value::String(word)) => drop(out.insert(format!("{path} = {word}"))),
            _ => {}
        }
    }
}

/// The type that a schema states, behind a colon; nothing where it states several.
fn kind(schema: &Value) -> String {
    let stated = schema.get("$ref").or_else(|| schema.get("type")).and_then(Value::as_str);
    stated.map_or_else(String::new, |s| format!(": {}", s.rsplit('/').next().unwrap_or(s)))
}

/// Keys of an answer, and the types of what is not null: `threads[].max_ns: number`. `is_data` says whether the keys
/// of the object at a path are data (names of facts, of files), which stand as `*`.
pub fn of_answer(
    answer: &Value,
    path: &str,
    is_data: &dyn Fn(&str) -> bool,
    out: &mut BTreeSet<String>,
) {
    let kind = match answer {
        Value::Null => return,
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(items) => {
            items.iter().for_each(|item| of_answer(item, &format!("{path}[]"), is_data, out));
            "list"
        }
        Value::Object(keys) => {
            for (key, value) in keys {
                let key = if is_data(path) { "*" } else { key };
                let dot = if path.is_empty() || path.ends_with(' ') { "" } else { "." };
                of_answer(value, &format!("{path}{dot}{key}"), is_data, out);
            }
            "object"
        }
    };
    out.insert(format!("{path}: {kind}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> BTreeSet<String> {
        text.lines().map(|l| l.trim().to_owned()).collect()
    }

    fn json(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_default()
    }

    #[test]
    fn a_schema_names_its_fields_types_and_words() {
        let schema = json(
            r##"{"$defs": {"end": {"type": "object", "properties": {"reason": {"enum": ["complete"]},
                "parts": {"type": "array", "items": {"properties": {"n": {"$ref": "#/$defs/u64"}}}}}}}}"##,
        );
        let mut names = BTreeSet::new();
        of_schema(&schema, "", &mut names);
        let expected =
            "end.parts: array\nend.parts[].n: u64\nend.reason\nend.reason = complete\nend: object";
        assert_eq!(names, lines(expected));
    }

    #[test]
    fn an_answer_names_its_keys_and_types_and_not_its_data() {
        let answer = json(r#"{"a": [{"b": 1}, {"b": null}], "facts": {"x": {"value": "y"}}}"#);
        let mut names = BTreeSet::new();
        of_answer(&answer, "show ", &|path| path.ends_with("facts"), &mut names);
        let expected = "show : object\nshow a: list\nshow a[]: object\nshow a[].b: number\n\
                        show facts: object\nshow facts.*: object\nshow facts.*.value: text";
        assert_eq!(names, lines(expected));
    }
}

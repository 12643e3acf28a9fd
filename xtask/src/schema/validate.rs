// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of JSON Schema that the run file's schema uses.
//!
//! `pattern` is not evaluated: it is for other people's validators. A keyword
//! that is not known here is an error, so that the schema cannot say more than is checked.
//! Source: JSON Schema 2020-12, "Core" and "Validation".

use serde_json::{Map, Value};

/// A schema with its `$defs`.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    root: Value,
}

const SILENT: &[&str] = &["$schema", "$defs", "title", "description", "pattern"];

impl Schema {
    pub(crate) fn new(root: Value) -> Self {
        Self { root }
    }

    /// What is wrong with `value`; each with its place.
    pub(crate) fn errors(&self, value: &Value) -> Vec<String> {
        self.check(&self.root, value, "")
    }

    fn check(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let Some(words) = schema.as_object() else {
            return vec![format!("schema at {at}: not an object")];
        };
        words.iter().flat_map(|(word, arg)| self.word(words, word, arg, value, at)).collect()
    }

    fn word(
        &self,
        words: &Map<String, Value>,
        word: &str,
        arg: &Value,
        value: &Value,
        at: &str,
    ) -> Vec<String> {
        let wrong = |bad: bool, what: String| {
            if bad { vec![format!("`{at}` {what}, but is {}", brief(value))] } else { vec![] }
        };
        match word {
            _ if SILENT.contains(&word) => vec![],
            "$ref" => match self.definition(arg) {
                Some(definition) => self.check(definition, value, at),
                None => vec![format!("schema: no definition {arg}")],
            },
            "type" => {
                wrong(!is_of(arg.as_str().unwrap_or_default(), value), format!("must be {arg}"))
            }
            "const" => wrong(arg != value, format!("must be {arg}")),
            "enum" => {
                let known = arg.as_array().is_some_and(|all| all.contains(value));
                wrong(!known, format!("must be one of {arg}"))
            }
            "minimum" => wrong(below(value, arg), format!("must be at least {arg}")),
            "maximum" => wrong(below(arg, value), format!("must be at most {arg}")),
            "properties" => self.each_known(arg, value, at),
            "additionalProperties" => self.each_other(words, arg, value, at),
            "required" => arg
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .filter(|name| value.is_object() && value.get(name).is_none())
                .map(|name| format!("`{at}` lacks `{name}`"))
                .collect(),
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                items.flat_map(|(i, item)| self.check(arg, item, &format!("{at}/{i}"))).collect()
            }
            "oneOf" => self.one_of(arg, value, at),
            _ => vec![format!("schema: the keyword `{word}` is not known to this validator")],
        }
    }

    fn definition(&self, reference: &Value) -> Option<&Value> {
        self.root.get("$defs")?.get(reference.as_str()?.strip_prefix("#/$defs/")?)
    }

    fn each_known(&self, arg: &Value, value: &Value, at: &str) -> Vec<String> {
        let known = arg.as_object().into_iter().flatten();
        known
            .filter_map(|(name, schema)| Some((name, schema, value.get(name)?)))
            .flat_map(|(name, schema, field)| self.check(schema, field, &format!("{at}/{name}")))
            .collect()
    }

    fn each_other(
        &self,
        words: &Map<String, Value>,
        arg: &Value,
        value: &Value,
        at: &str,
    ) -> Vec<String> {
        let known = words.get("properties").and_then(Value::as_object);
        let fields = value.as_object().into_iter().flatten();
        let others = fields.filter(|(name, _)| known.is_none_or(|k| !k.contains_key(*name)));
        others
            .flat_map(|(name, field)| match arg {
                Value::Bool(false) => vec![format!("`{at}/{name}` is not in the schema")],
                schema => self.check(schema, field, &format!("{at}/{name}")),
            })
            .collect()
    }

    /// Exactly one branch must hold; of those that do not, the one that came nearest is told:
    /// the one whose constants (the line's `type`) agree.
    fn one_of(&self, arg: &Value, value: &Value, at: &str) -> Vec<String> {
        let branches = arg.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut told: Vec<Vec<String>> =
            branches.iter().map(|b| self.check(b, value, at)).collect();
        match told.iter().filter(|errors| errors.is_empty()).count() {
            1 => vec![],
            0 => {
                let constants = |errors: &[String]| {
                    errors.iter().any(|e| e.starts_with(&format!("`{at}/type` must be")))
                };
                told.sort_by_key(|errors| (constants(errors), errors.len()));
                told.into_iter().next().unwrap_or_default()
            }
            n => vec![format!("`{at}` fits {n} branches of the schema")],
        }
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => false,
    }
}

/// Is `a` a whole number below the whole number `b`?
fn below(a: &Value, b: &Value) -> bool {
    let wide = |v: &Value| v.as_i64().map(i128::from).or(v.as_u64().map(i128::from));
    wide(a).zip(wide(b)).is_some_and(|(a, b)| a < b)
}

fn brief(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 60 {
        return format!("{}...", text.chars().take(60).collect::<String>());
    }
    text
}

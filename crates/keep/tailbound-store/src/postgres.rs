// SPDX-License-Identifier: MIT OR Apache-2.0
//! A store on a server: PostgreSQL.
//!
//! The connection is not encrypted by us: a socket of the machine, loopback, or a tunnel; a server that
//! demands TLS is refused by the library, in its words. What a person's query may read is what the role in the URI may.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{CancelToken, Client, NoTls, Row, SimpleQueryMessage, Statement};

use crate::cancellation::Cancellation;
use crate::database::{Database, Dialect, EachRow};
use crate::error::StoreError;
use crate::value::Value;

/// A connection to a server.
pub(crate) struct Postgres {
    client: Client,
    place: String,
    /// Statements that change something, prepared once: there are few, and each run needs a dozen.
    prepared: HashMap<String, Statement>,
    /// Who asks, while somebody does.
    question: Option<Question>,
}

/// How a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuestionState {
    Asked,
    /// The server is told to give it up: whatever is asked next over this connection may be what it gives up.
    Interrupted,
    Over,
}

/// A question that may be given up.
struct Question {
    cancel: Cancellation,
    state: Arc<Mutex<QuestionState>>,
}

impl Question {
    /// Begins one: when it is given up, the server is told so over a connection of its own, by a thread that may wait for it.
    fn begin(cancel: Cancellation, token: CancelToken) -> Self {
        let state = Arc::new(Mutex::new(QuestionState::Asked));
        let asked = Arc::clone(&state);
        cancel.then(Some(Box::new(move || {
            std::thread::spawn(move || {
                {
                    let mut state = asked.lock().unwrap_or_else(PoisonError::into_inner);
                    if *state != QuestionState::Asked {
                        return;
                    }
                    *state = QuestionState::Interrupted;
                }
                // Where it cannot be told, the question ends with its next row.
                let _ = token.cancel_query(NoTls);
            });
        })));
        Self { cancel, state }
    }

    /// Ends it; how it stood.
    fn end(self) -> QuestionState {
        self.cancel.then(None);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *state, QuestionState::Over)
    }
}

impl Postgres {
    /// Connects; `place` is the URI as it may be shown.
    pub(crate) fn open(url: &str, place: String) -> Result<Self, StoreError> {
        match Client::connect(url, NoTls) {
            Ok(client) => Ok(Self { client, place, prepared: HashMap::new(), question: None }),
            Err(e) => Err(database(&place, "no connection", &e)),
        }
    }
}

fn database(place: &str, what: &'static str, e: &postgres::Error) -> StoreError {
    if e.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) {
        return StoreError::NoReading { place: place.to_owned() };
    }
    if e.code() == Some(&SqlState::DISK_FULL) {
        return StoreError::Full { place: place.to_owned(), what };
    }
    // The library's own text is a class of error; what happened is below it.
    let reason = match (e.as_db_error(), e.source()) {
        (Some(db), _) => db.message().to_owned(),
        (None, Some(below)) => format!("{e}: {below}"),
        (None, None) => e.to_string(),
    };
    StoreError::Database { place: place.to_owned(), what, reason }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(n) => n.to_sql_checked(ty, out),
            Self::Real(n) => n.to_sql_checked(ty, out),
            Self::Text(text) => text.to_sql_checked(ty, out),
            Self::Bytes(bytes) => bytes.to_sql_checked(ty, out),
        }
    }

    // Which value fits which column is looked at when it is written.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn value(row: &Row, at: usize) -> Result<Value, postgres::Error> {
    let of = row.columns().get(at).map(|c| c.type_().clone()).unwrap_or(Type::TEXT);
    Ok(match of {
        Type::INT8 => row.try_get::<_, Option<i64>>(at)?.into(),
        Type::INT4 => row.try_get::<_, Option<i32>>(at)?.map(i64::from).into(),
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(at)?.into(),
        Type::BOOL => row.try_get::<_, Option<bool>>(at)?.into(),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.into(),
        _ => row.try_get::<_, Option<String>>(at)?.into(),
    })
}

/// A value from its text, as the server writes it.
fn from_text(text: Option<&str>, of: &Type) -> Value {
    let Some(text) = text else { return Value::Null };
    match *of {
        Type::INT2 | Type::INT4 | Type::INT8 => {
            text.parse().map_or_else(|_| text.into(), Value::Int)
        }
        Type::FLOAT4 | Type::FLOAT8 => text.parse().map_or_else(|_| text.into(), Value::Real),
        // A sum of integers is one of these: whole where it can be.
        Type::NUMERIC => text
            .parse()
            .map(Value::Int)
            .or_else(|_| text.parse().map(Value::Real))
            .unwrap_or_else(|_| text.into()),
        Type::BOOL => Value::Int((text == "t").into()),
        Type::BYTEA => Value::Bytes(vec![0; text.len().saturating_sub(2) / 2]),
        _ => text.into(),
    }
}

impl Database for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn script(&mut self, sql: &str) -> Result<(), StoreError> {
        let place = &self.place;
        self.client.batch_execute(sql).map_err(|e| database(place, "a statement failed", &e))
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        let place = &self.place;
        let failed = |e| database(place, "it cannot be written", &e);
        let statement = match self.prepared.get(sql) {
            Some(known) => known.clone(),
            None => {
                let new = self.client.prepare(sql).map_err(failed)?;
                self.prepared.insert(sql.to_owned(), new.clone());
                new
            }
        };
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|v| v as _).collect();
        self.client.execute(&statement, &values).map_err(failed)
    }

    fn rows(
        &mut self,
        sql: &str,
        values: &[Value],
        each: EachRow<'_>,
    ) -> Result<Vec<String>, StoreError> {
        let place = &self.place;
        let is_cancelled = || self.question.as_ref().is_some_and(|q| q.cancel.is_cancelled());
        let failed = |e| match is_cancelled() {
            true => StoreError::Cancelled,
            false => database(place, "it cannot be read", &e),
        };
        let statement = self.client.prepare(sql).map_err(failed)?;
        let names: Vec<String> = statement.columns().iter().map(|c| c.name().to_owned()).collect();
        let values = values.iter().map(|v| v as &(dyn ToSql + Sync));
        let mut rows = self.client.query_raw(&statement, values).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            if is_cancelled() {
                return Err(StoreError::Cancelled);
            }
            let one = (0..names.len()).map(|at| value(&row, at)).collect::<Result<Vec<_>, _>>();
            each(&names, &one.map_err(failed)?)?;
        }
        Ok(names)
    }

    fn cancelled_by(&mut self, cancel: Option<Cancellation>) -> Result<(), StoreError> {
        let before = self.question.take().map(Question::end);
        if before == Some(QuestionState::Interrupted) {
            return Err(StoreError::Cancelled);
        }
        self.question = cancel.map(|cancel| Question::begin(cancel, self.client.cancel_token()));
        Ok(())
    }

    fn only_reading(
        &mut self,
        sql: &str,
        seconds: u32,
        each: EachRow<'_>,
    ) -> Result<Vec<String>, StoreError> {
        self.script(&format!("BEGIN READ ONLY; SET LOCAL statement_timeout = '{seconds}s'"))?;
        let answer = self.asked(sql, each);
        let over = self.script("ROLLBACK");
        answer.and_then(|names| over.map(|()| names))
    }
}

impl Postgres {
    fn asked(&mut self, sql: &str, each: EachRow<'_>) -> Result<Vec<String>, StoreError> {
        let place = &self.place;
        let is_cancelled = || self.question.as_ref().is_some_and(|q| q.cancel.is_cancelled());
        let failed = |e| match is_cancelled() {
            true => StoreError::Cancelled,
            false => database(place, "the query failed", &e),
        };
        // Only one statement can be prepared, and COMMIT has no columns.
        let statement = self.client.prepare(sql).map_err(failed)?;
        let (names, types): (Vec<String>, Vec<Type>) =
            statement.columns().iter().map(|c| (c.name().to_owned(), c.type_().clone())).unzip();
        if names.is_empty() {
            return Err(StoreError::NoReading { place: place.clone() });
        }
        // As text, which every type has: sums are NUMERIC, and people's queries have types that we do not know.
        for message in self.client.simple_query(sql).map_err(failed)? {
            if let SimpleQueryMessage::Row(row) = message {
                let one: Vec<Value> =
                    types.iter().enumerate().map(|(at, of)| from_text(row.get(at), of)).collect();
                each(&names, &one)?;
            }
        }
        Ok(names)
    }
}

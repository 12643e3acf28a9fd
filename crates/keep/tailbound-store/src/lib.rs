// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many runs, kept: SQLite in a file, or PostgreSQL on a server, with the same tables and the same words.
//!
//! The run file remains the truth: the store keeps it whole and packed, and everything else follows from it.
//! Not here: what a farm does with it (HTTP, pages, agents).

mod access;
mod add_files;
mod age;
mod answer;
mod arrival;
mod audit;
mod backup;
mod backup_file;
pub mod buckets;
mod cancellation;
mod chosen;
mod conditions;
mod database;
mod due;
mod error;
mod export;
mod maxima;
mod night;
mod notices;
mod pack;
mod place;
mod postgres;
mod prune;
mod remarks;
mod reserve;
mod run_row;
mod schema;
mod series;
mod sqlite;
mod store;
mod summary;
mod value;
mod versions;
mod views;
mod weight;
mod work;

pub use access::{Act, Role, Token};
pub use add_files::{FilesAdded, FilesToAdd};
pub use age::{Age, AgeError};
pub use answer::{QueryRows, short};
pub use arrival::{AHEAD_S, ArrivalError, SPOOLED_S, Way, arrived};
pub use audit::Audited;
pub use cancellation::Cancellation;
pub use chosen::{RunKinds, RunPage, RunQuery, Since, Whose};
pub use conditions::{Condition, ConditionChange};
pub use database::EachRow;
pub use error::StoreError;
pub use export::{Of, Origin, TableFormat};
pub use maxima::{LoadMaxima, Maximum, SLOT_S, together};
pub use night::{NIGHT_S, NightState, Verdict, WorkloadState};
pub use notices::{DeliveryCount, Due, Notice, Receiver};
pub use pack::{PACKED_BYTES_MAX, Packed};
pub use place::{LocationError, StoreLocation};
pub use prune::{Candidate, may_go};
pub use remarks::{Acknowledgement, RunNote, acknowledged};
pub use run_row::RunRow;
pub use schema::{SCHEMA, tables};
pub use series::{DueSeries, KeptSeries, SeriesState};
pub use store::{Added, Filter, Incoming, Listed, RunPart, RunSubmission, Store, judged};
pub use summary::{Rows, rows, system_name};
pub use value::Value;
pub use versions::SystemVersion;
pub use views::{Culprit, DayMax, Histogram, SystemName, SystemRow};
pub use weight::{Consumption, WeighedSource};
pub use work::{Batch, By, Finished, Step, Work, WorkRun, WorkState};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The store: runs go in whole, and come out as they were.
//!
//! The run file is the truth: everything else is made from it, and can be made again.

use std::io::BufRead;

use tailbound_core::{Run, runfile};

use crate::arrival::{Arrival, Way};
use crate::audit::{self, Audited};
use crate::cancellation::Cancellation;
use crate::database::{Database, Dialect, EachRow, all, one, whole};
use crate::due;
use crate::error::StoreError;
use crate::pack::{self, Packed, Packing};
use crate::place::StoreLocation;
use crate::postgres::Postgres;
use crate::prune::LogLength;
use crate::reserve::Reserve;
use crate::schema;
use crate::sqlite::{IfMissing, Sqlite};
use crate::summary::{self, Row, Rows};
use crate::value::Value;
use crate::weight::{Consumption, WeighedSource};

/// A run that is to be added: read, judged and packed.
#[derive(Debug)]
pub struct Incoming {
    /// Its file.
    pub packed: Packed,
    /// What it says, without what only the file needs.
    pub run: Run,
}

/// Lines that no row needs, and no check of the file against itself.
const UNUSED: [&str; 3] = ["window", "raw", "load"];

impl Incoming {
    /// Reads a run file to its end, whatever comes behind its last line.
    ///
    /// # Errors
    /// It is no run file, or too large.
    pub fn read(source: impl BufRead) -> Result<Self, StoreError> {
        let mut packing = Packing::new(source)?;
        let run = judged(&mut packing)?;
        Ok(Self { packed: packing.packed()?, run })
    }

    /// The same of what strangers send: `watch` is asked with each piece, and its error ends the reading.
    ///
    /// # Errors
    /// As [`Incoming::read`]; that of `watch`, which [`StoreError::io`] has.
    pub fn read_watched(
        source: impl BufRead,
        watch: impl FnMut(Consumption) -> std::io::Result<()>,
    ) -> Result<Self, StoreError> {
        Self::read(WeighedSource::new(source, watch))
    }
}

/// What a run file says, judged as everywhere, without what no table and no page needs.
///
/// # Errors
/// It is no run file.
pub fn judged(source: impl BufRead) -> Result<Run, StoreError> {
    let mut run = runfile::read_run_without(source, &UNUSED)?;
    tailbound_stats::judge(&mut run);
    Ok(run)
}

/// Of each text of a run that is read to be shown.
const SHOWN_TEXT_BYTES: usize = 4096;

/// What is read of a kept run file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPart {
    /// All that a report shows.
    Report,
    /// What it ran on and the histograms of its threads, without what happened when.
    Profile,
}

impl RunPart {
    /// Line types that are passed over.
    fn skipped(self) -> &'static [&'static str] {
        const PROFILE: [&str; 12] = [
            "window",
            "raw",
            "load",
            "disturbance",
            "second",
            "block",
            "event",
            "exceedance",
            "blame",
            "timeline",
            "cycle",
            "paths",
        ];
        match self {
            Self::Report => &UNUSED,
            Self::Profile => &PROFILE,
        }
    }
}

/// A run with what is known of it beside its file.
#[derive(Clone, Copy, Debug)]
pub struct RunSubmission<'a> {
    /// The run.
    pub incoming: &'a Incoming,
    /// The machine it was measured on; `None`: what its file says.
    pub system: Option<&'a str>,
    /// Who handed it in over the network.
    pub who: Option<&'a str>,
    /// How it came.
    pub way: Way,
}

/// What became of a run that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is in the store now.
    New,
    /// It was there already.
    Already,
}

/// What is asked of a list of runs.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this system.
    pub system: Option<String>,
    /// Begun at or after this, as RFC 3339 or its beginning.
    pub since: Option<String>,
    /// Begun before this.
    pub until: Option<String>,
    /// At most so many, the newest.
    pub most: Option<u64>,
}

impl Filter {
    /// The words of SQL that choose these runs, the newest first, and their values.
    pub(crate) fn chosen(&self) -> (&'static str, Vec<Value>) {
        let word = |it: &Option<String>| Value::from(it.as_deref().unwrap_or_default());
        let most = self.most.map_or(i64::MAX, |n| i64::try_from(n).unwrap_or(i64::MAX));
        let rest = [word(&self.since), word(&self.until), Value::Int(most)];
        // One statement for both would not use the index over systems.
        match &self.system {
            None => (
                "WHERE run.started >= $1 AND ($2 = '' OR run.started < $2) ORDER BY run.started DESC, run.id LIMIT $3",
                rest.into(),
            ),
            Some(name) => (
                "WHERE run.system = (SELECT named.id FROM system AS named WHERE named.name = $1) AND run.started >= $2 \
                 AND ($3 = '' OR run.started < $3) ORDER BY run.started DESC, run.id LIMIT $4",
                [Value::from(name.as_str())].into_iter().chain(rest).collect(),
            ),
        }
    }
}

/// A run in a list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Listed {
    /// SHA-256 of its file.
    pub id: String,
    /// Its own name.
    pub name: String,
    /// Which system.
    pub system: String,
    /// When it began, RFC 3339; where its clock cannot be right, when it arrived.
    pub started: String,
    /// What its clock said, where that cannot be right.
    pub clock_said: Option<String>,
    /// Kernel's release.
    pub kernel: Option<String>,
    /// Loads.
    pub loads: String,
    /// Verdict in a word.
    pub outcome: String,
    /// Due activations.
    pub activations: i64,
    /// The latest.
    pub max_ns: Option<i64>,
    /// Bytes of its plain file; `None`: the file is not kept any more.
    pub bytes: Option<i64>,
}

/// A store that is open.
pub struct Store {
    db: Box<dyn Database>,
    place: StoreLocation,
    reserve: Reserve,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens a store that is there.
    ///
    /// # Errors
    /// There is none, it is something else, or a later version made it.
    pub fn open(place: &StoreLocation, now: &str) -> Result<Self, StoreError> {
        let mut it = Self::connected(place, IfMissing::Fail)?;
        if schema::found(it.db.as_mut())?.is_none() {
            return Err(StoreError::Missing { place: place.to_string() });
        }
        schema::migrate(it.db.as_mut(), &place.to_string(), now)?;
        Ok(it)
    }

    /// Opens a store, and makes it where there is none.
    ///
    /// # Errors
    /// As [`Store::open`]; it cannot be made.
    pub fn open_or_make(place: &StoreLocation, now: &str) -> Result<Self, StoreError> {
        let mut it = Self::connected(place, IfMissing::Make)?;
        schema::migrate(it.db.as_mut(), &place.to_string(), now)?;
        it.reserve.begin();
        Ok(it)
    }

    /// Where not even what connections share fits on the disk, the reserve makes room for it.
    pub(crate) fn connected(place: &StoreLocation, missing: IfMissing) -> Result<Self, StoreError> {
        match Self::connect(place, missing) {
            Err(StoreError::Full { .. }) if Reserve::of(place).release() => {
                Self::connect(place, missing)
            }
            connected => connected,
        }
    }

    fn connect(place: &StoreLocation, missing: IfMissing) -> Result<Self, StoreError> {
        let db: Box<dyn Database> = match place {
            StoreLocation::File(path) => Box::new(Sqlite::open(path, missing)?),
            StoreLocation::Server(url) => Box::new(Postgres::open(url, place.to_string())?),
        };
        Ok(Self { db, place: place.clone(), reserve: Reserve::of(place) })
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &StoreLocation {
        &self.place
    }

    /// Adds runs, all or none of them. Each is measured on `system`, or on what its file says.
    ///
    /// # Errors
    /// The database refuses.
    pub fn add(
        &mut self,
        runs: &[Incoming],
        system: Option<&str>,
        now: &str,
    ) -> Result<Vec<Added>, StoreError> {
        let one = |incoming| RunSubmission { incoming, system, who: None, way: Way::Archive };
        let given: Vec<RunSubmission<'_>> = runs.iter().map(one).collect();
        self.add_given(&given, now)
    }

    /// The same, each with its own system, and with who handed it in, which the audit log then says.
    ///
    /// # Errors
    /// The database refuses.
    pub fn add_given(
        &mut self,
        runs: &[RunSubmission<'_>],
        now: &str,
    ) -> Result<Vec<Added>, StoreError> {
        // Runs never take what is kept for pruning and for logging in.
        if !self.reserve.restore() {
            let place = self.place.to_string();
            return Err(StoreError::Full { place, what: "it cannot be written" });
        }
        match self.put_all(runs, now) {
            // On a disk that is full but for what was deleted, the log has little room: it is emptied, and that is enough for the next runs.
            Err(StoreError::Full { .. }) if self.has_room_within() => {
                self.write_log_back(LogLength::Emptied)?;
                self.put_all(runs, now)
            }
            done => done,
        }
    }

    fn put_all(&mut self, runs: &[RunSubmission<'_>], now: &str) -> Result<Vec<Added>, StoreError> {
        whole(self.db.as_mut(), |db| {
            let mut told = Vec::with_capacity(runs.len());
            for RunSubmission { incoming, system, who, way } in runs {
                let name =
                    system.map_or_else(|| summary::system_name(&incoming.run), str::to_owned);
                let arrival = Arrival { at: now, way: *way };
                let rows = summary::rows_of(&incoming.run, &incoming.packed.id, &name, arrival);
                let added = put(db, &rows, Some(&incoming.packed))?;
                if let (Added::New, Some(who)) = (added, who) {
                    let what = format!("handed in run {} of {name}", incoming.packed.id);
                    audit::write_down(
                        db,
                        &Audited { at: now.to_owned(), who: (*who).to_owned(), what },
                    )?;
                }
                told.push(added);
            }
            Ok(told)
        })
    }

    /// Adds what the tables say of runs whose files are kept elsewhere, all or none of them: such a run is listed and found, has
    /// no file to be got, and is dropped by `rebuild`, which makes the tables again from files.
    ///
    /// # Errors
    /// The database refuses.
    pub fn add_rows(&mut self, runs: &[&Rows]) -> Result<Vec<Added>, StoreError> {
        whole(self.db.as_mut(), |db| runs.iter().map(|rows| put(db, rows, None)).collect())
    }

    /// Runs, the newest first.
    ///
    /// # Errors
    /// The database refuses.
    pub fn list(&mut self, filter: &Filter) -> Result<Vec<Listed>, StoreError> {
        let (chosen, values) = filter.chosen();
        let sql = format!(
            "SELECT run.id, run.name, system.name, run.started, kernel.release, workload.loads, run.outcome, run.activations, \
             run.max_ns, run_file.bytes, run.clock_said FROM run JOIN system ON system.id = run.system JOIN kernel ON kernel.id = run.kernel \
             JOIN workload ON workload.id = run.workload LEFT JOIN run_file ON run_file.run = run.id {chosen}"
        );
        let mut listed = Vec::new();
        self.db.rows(&sql, &values, &mut |_, row| {
            let text =
                |at: usize| row.get(at).and_then(|v| v.text()).unwrap_or_default().to_owned();
            let int = |at: usize| row.get(at).and_then(Value::int);
            listed.push(Listed {
                id: text(0),
                name: text(1),
                system: text(2),
                started: text(3),
                kernel: row.get(4).and_then(|v| v.text()).map(str::to_owned),
                loads: text(5),
                outcome: text(6),
                activations: int(7).unwrap_or(0),
                max_ns: int(8),
                bytes: int(9),
                clock_said: row.get(10).and_then(|v| v.text()).map(str::to_owned),
            });
            Ok(())
        })?;
        Ok(listed)
    }

    /// The identity of the only run whose identity or name begins with `begin`.
    ///
    /// # Errors
    /// None, or several.
    pub fn identify(&mut self, begin: &str) -> Result<String, StoreError> {
        // Identities are hexadecimal: all that begin with it are below the same with a `g` behind.
        let sql = "SELECT id FROM run WHERE id >= $1 AND id < $2 UNION SELECT id FROM run WHERE name = $1 ORDER BY id LIMIT 3";
        let end = format!("{begin}g");
        let found = all(self.db.as_mut(), sql, &[begin.into(), end.into()])?;
        let mut ids = found.into_iter().filter_map(|row| row.first()?.text().map(str::to_owned));
        match (ids.next(), ids.next(), ids.next()) {
            (Some(id), None, _) if !begin.is_empty() => Ok(id),
            (None, ..) => Err(StoreError::NoSuchRun(begin.to_owned())),
            (.., third) => Err(StoreError::Several {
                id: begin.to_owned(),
                n: if third.is_some() { 3 } else { 2 },
            }),
        }
    }

    /// The run file with this identity, byte for byte.
    ///
    /// # Errors
    /// It is not kept any more, or damaged.
    pub fn file(&mut self, id: &str) -> Result<Vec<u8>, StoreError> {
        kept(self.db.as_mut(), id)
    }

    /// What the run file with this identity says, to be shown: long texts are cut. It is unpacked as it is read. `watch` is asked with each piece; its error ends the reading.
    ///
    /// # Errors
    /// It is not kept any more, or damaged; that of `watch`, which [`StoreError::io`] has.
    pub fn read(
        &mut self,
        id: &str,
        part: RunPart,
        watch: impl FnMut(Consumption) -> std::io::Result<()>,
    ) -> Result<Run, StoreError> {
        let packed = packed_of(self.db.as_mut(), id)?;
        let mut plain = pack::plain_of(&packed)?;
        let source = WeighedSource::new(&mut plain, watch);
        let mut run = runfile::read_run_shortened(source, part.skipped(), SHOWN_TEXT_BYTES)?;
        tailbound_stats::judge(&mut run);
        plain.checked(&packed)?;
        Ok(run)
    }

    /// The run file with this identity, packed as it is kept.
    ///
    /// # Errors
    /// It is not kept any more.
    pub fn packed(&mut self, id: &str) -> Result<Packed, StoreError> {
        packed_of(self.db.as_mut(), id)
    }

    /// Questions of this connection end when `cancel` says so; `None`: they are answered.
    ///
    /// # Errors
    /// The database refuses; one was given up, and its connection cannot be used any more.
    pub fn cancelled_by(&mut self, cancel: Option<&Cancellation>) -> Result<(), StoreError> {
        self.db.cancelled_by(cancel.cloned())
    }

    /// A person's query, which cannot change anything, for at most `seconds`.
    ///
    /// # Errors
    /// The database's words; the statement would change something; it took too long.
    pub fn query(
        &mut self,
        sql: &str,
        seconds: u32,
        each: EachRow<'_>,
    ) -> Result<Vec<String>, StoreError> {
        self.db.only_reading(sql, seconds, each)
    }

    /// Everything that follows from the run files is made again from them. `told` is given how many are done, of how many.
    ///
    /// # Errors
    /// A run file is damaged; then all is as it was.
    pub fn rebuild(&mut self, told: &mut dyn FnMut(u64, u64)) -> Result<u64, StoreError> {
        whole(self.db.as_mut(), |db| {
            let known = all(
                db,
                "SELECT run_file.run, run.added, system.name, run.arrival FROM run_file JOIN run ON run.id = run_file.run \
                 JOIN system ON system.id = run.system ORDER BY run.added, run_file.run",
                &[],
            )?;
            // The files stay where they are; what points to them is made anew around them.
            db.script(match db.dialect() {
                Dialect::Sqlite => "PRAGMA defer_foreign_keys=ON",
                Dialect::Postgres => "ALTER TABLE run_file DROP CONSTRAINT run_file_run_fkey",
            })?;
            for table in schema::DERIVED {
                db.execute(&format!("DELETE FROM {table}"), &[])?;
            }
            let total = known.len() as u64;
            for (done, row) in (1u64..).zip(&known) {
                let word = |at: usize| row.get(at).and_then(|v| v.text()).unwrap_or_default();
                let (id, system) = (word(0), word(2));
                let way = Way::of(row.get(3).and_then(|v| v.text()));
                let run = judged(kept(db, id)?.as_slice())?;
                let arrival = Arrival { at: word(1), way };
                put(db, &summary::rows_of(&run, id, system, arrival), None)?;
                told(done, total);
            }
            if db.dialect() == Dialect::Postgres {
                db.script("ALTER TABLE run_file ADD CONSTRAINT run_file_run_fkey FOREIGN KEY (run) REFERENCES run (id)")?;
            }
            Ok(total)
        })
    }

    /// Does what must work on a full disk as well: where nothing fits, the reserve makes room, and it is tried once more.
    pub(crate) fn in_need<T>(
        &mut self,
        mut work: impl FnMut(&mut dyn Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match work(self.db.as_mut()) {
            Err(StoreError::Full { .. }) if self.reserve.release() => work(self.db.as_mut()),
            done => done,
        }
    }

    /// Fills what is kept in reserve again, where it was given back and there is room.
    pub(crate) fn refill_reserve(&self) {
        self.reserve.restore();
    }

    /// The connection, for what is built on it within this crate.
    pub(crate) fn db(&mut self) -> &mut dyn Database {
        self.db.as_mut()
    }

    /// Keeps what a person says of a run.
    ///
    /// # Errors
    /// The database refuses.
    pub fn note(
        &mut self,
        run: &str,
        at: &str,
        author: &str,
        message: &str,
    ) -> Result<(), StoreError> {
        let sql = "INSERT INTO annotation (run, at, author, message) VALUES ($1, $2, $3, $4) \
            ON CONFLICT (run, at, author) DO UPDATE SET message = $4";
        self.db.execute(sql, &[run.into(), at.into(), author.into(), message.into()]).map(|_| ())
    }

    /// How many runs there are.
    ///
    /// # Errors
    /// The database refuses.
    pub fn count(&mut self) -> Result<u64, StoreError> {
        let n = one(self.db.as_mut(), "SELECT COUNT(*) FROM run", &[])?
            .and_then(|v| v.int())
            .unwrap_or(0);
        Ok(u64::try_from(n).unwrap_or(0))
    }
}

/// The run file with this identity, byte for byte.
fn kept(db: &mut dyn Database, id: &str) -> Result<Vec<u8>, StoreError> {
    pack::unpacked(&packed_of(db, id)?)
}

fn packed_of(db: &mut dyn Database, id: &str) -> Result<Packed, StoreError> {
    let rows = all(db, "SELECT bytes, zstd FROM run_file WHERE run = $1", &[id.into()])?;
    let found = rows.first().and_then(|row| Some((row.first()?.int()?, row.get(1)?.bytes()?)));
    let (bytes, zstd) = found.ok_or_else(|| StoreError::NoSuchRun(id.to_owned()))?;
    Ok(Packed { id: id.to_owned(), bytes: u64::try_from(bytes).unwrap_or(0), zstd: zstd.to_vec() })
}

fn insert(db: &mut dyn Database, table: &str, row: &Row, unless: &str) -> Result<u64, StoreError> {
    let names: Vec<&str> = row.iter().map(|(name, _)| *name).collect();
    let places: Vec<String> = (1..=row.len()).map(|n| format!("${n}")).collect();
    let sql = format!(
        "INSERT INTO {table} ({}) VALUES ({}) {unless}",
        names.join(", "),
        places.join(", ")
    );
    let values: Vec<Value> = row.iter().map(|(_, value)| value.clone()).collect();
    db.execute(&sql, &values)
}

/// The rows of a run, with its file unless that is there already.
fn put(db: &mut dyn Database, rows: &Rows, file: Option<&Packed>) -> Result<Added, StoreError> {
    const SAME: &str = "ON CONFLICT DO NOTHING";
    insert(db, "system", &rows.system, SAME)?;
    insert(db, "kernel", &rows.kernel, SAME)?;
    insert(db, "facts", &rows.facts, SAME)?;
    insert(db, "workload", &rows.workload, SAME)?;
    if insert(db, "run", &rows.run, SAME)? == 0 {
        return Ok(Added::Already);
    }
    if let Some(file) = file {
        let row = vec![
            ("run", Value::from(file.id.as_str())),
            ("bytes", file.bytes.into()),
            ("zstd", file.zstd.clone().into()),
        ];
        insert(db, "run_file", &row, "")?;
    }
    let tables = [
        ("histogram", &rows.histograms),
        ("finding", &rows.findings),
        ("culprit", &rows.culprits),
        ("maximum", &rows.maxima),
    ];
    for (table, all) in tables {
        for row in all {
            insert(db, table, row, SAME)?;
        }
    }
    due::is_due(db, rows)?;
    Ok(Added::New)
}

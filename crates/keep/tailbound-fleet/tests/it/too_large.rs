// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is larger than a server takes: its client hears so, keeps it and goes on with the next one.
//!
//! Context: tests. The client is that of agents and monitors.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use std::{fs, io::Write as _};

use tailbound_agent::client::{Client, ClientError, PlainHttp, Server};
use tailbound_agent::outbox::{HandIn, Outbox};
use tailbound_agent::wire::{Added, SENT_RUN_BYTES_MAX};
use tailbound_store::Role;

use crate::farm::{Farm, run};

/// A test whose machine is slow still ends.
const LONG: Duration = Duration::from_secs(60);

fn server(farm: &Farm, folder: &Path) -> Server {
    let token_file = folder.join("token");
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&token_file).unwrap();
    file.write_all(farm.token(Role::Agent).as_bytes()).unwrap();
    Server {
        url: format!("http://{}", farm.address),
        token_file,
        ca: None,
        plain_http: PlainHttp::Refused,
    }
}

/// Hands in what is in the folder until `sent` of it are; what was said meanwhile.
fn handed_in(outbox: &Outbox, server: Server, sent: u64) -> Vec<String> {
    let (says, said): (_, Receiver<String>) = channel();
    let hand_in = HandIn::begin(outbox.clone(), server, move |words| {
        let _ = says.send(words.to_owned());
    });
    let standing = hand_in.unwrap().end(LONG);
    assert_eq!((standing.sent, standing.waiting), (sent, 0), "{standing:?}");
    said.iter().collect()
}

#[test]
fn a_client_that_sends_too_much_hears_so_and_does_not_come_again() {
    let farm = Farm::start(|config| config.upload_bytes_max = 1 << 20);
    let folder = tempfile::tempdir().unwrap();
    let client = Client::open(&server(&farm, folder.path())).unwrap();
    // Three times what is taken is read, so that the answer is heard.
    for bytes in [(1 << 20) + 1, 5 << 19, (3 << 20) - 1] {
        let e = client.hand_in::<Added>(&vec![b' '; bytes]).unwrap_err();
        assert!(matches!(e, ClientError::Said { status: 413, .. }), "{bytes}: {e}");
        assert!(!e.may_pass() && e.to_string().contains("at most 1048576 bytes"), "{e}");
    }
}

#[test]
fn a_run_file_that_no_server_takes_is_kept_and_the_next_one_arrives() {
    let farm = Farm::start(|_| {});
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().join("spool");
    let outbox = Outbox::open(&spool, 1 << 30).unwrap();
    outbox.put(&run("Board", 1, "6.12.1", 5_000)).unwrap();
    outbox.put(&run("Board", 0, "6.12.1", 5_000)).unwrap();
    // The older one becomes larger than is sent: holes, which take no room.
    let first = fs::OpenOptions::new().write(true).open(spool.join("run-000001.gz")).unwrap();
    first.set_len(SENT_RUN_BYTES_MAX + 1).unwrap();
    let said = handed_in(&outbox, server(&farm, folder.path()), 1);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("48 MiB") && said[0].contains("refused-000001.gz"), "{said:?}");
    let kept = fs::metadata(spool.join("refused-000001.gz")).unwrap();
    assert_eq!((kept.len(), outbox.standing().refused), (SENT_RUN_BYTES_MAX + 1, 1));
    assert_eq!(farm.store().count().unwrap(), 1);
}

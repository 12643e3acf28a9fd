// SPDX-License-Identifier: MIT OR Apache-2.0
//! What labgrid-client(1) shows of a place, read.
//!
//! Source: labgrid-client 26.0: its `show` is text for persons, with values as Python writes them.

/// What `labgrid-client show` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlaceStatus {
    /// Its own, where it was asked for by a reservation.
    pub(super) name: Option<String>,
    /// HOST/USER, unless nobody has it.
    pub(super) acquired: Option<String>,
    /// When anything about it was.
    pub(super) changed: String,
    pub(super) service: Option<Service>,
    pub(super) serial: Vec<Serial>,
}

/// Its NetworkService.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) address: String,
    pub(super) user: Option<String>,
    pub(super) port: Option<String>,
    /// The exporter's host, where only that reaches the board.
    pub(super) proxy: Option<String>,
}

/// One of its NetworkSerialPorts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Serial {
    pub(super) name: String,
    pub(super) host: String,
    /// Not yet, where the exporter is about to open it.
    pub(super) port: Option<u16>,
    /// RFC 2217, which is labgrid's default: with commands of telnet between the bytes.
    pub(super) telnet: bool,
    /// The exporter's host, where only that reaches it.
    pub(super) proxy: Option<String>,
}

/// Reads it: lines of the place, then each resource with its values.
pub(super) fn read(said: &str) -> PlaceStatus {
    let head = |key: &str| {
        let line = said.lines().find_map(|l| l.trim().strip_prefix(key));
        line.map(|v| v.trim().to_owned()).filter(|v| !v.is_empty() && v != "None")
    };
    let service = resources(said, "NetworkService").into_iter().next().and_then(|(_, text)| {
        Some(Service {
            address: value(&text, "address")?,
            user: value(&text, "username").filter(|v| !v.is_empty() && v != "None"),
            port: value(&text, "port").filter(|v| v != "None"),
            proxy: proxy(&text),
        })
    });
    let serial = |(name, text): (String, String)| {
        Some(Serial {
            name,
            host: value(&text, "host")?,
            port: value(&text, "port").and_then(|p| p.parse().ok()),
            telnet: value(&text, "protocol").is_none_or(|p| p != "raw"),
            proxy: proxy(&text),
        })
    };
    let name = said.lines().find_map(|l| l.strip_prefix("Place '")?.strip_suffix("':"));
    PlaceStatus {
        name: name.map(str::to_owned),
        acquired: head("acquired: "),
        changed: head("changed: ").unwrap_or_default(),
        service,
        serial: resources(said, "NetworkSerialPort").into_iter().filter_map(serial).collect(),
    }
}

/// The resources of a class: the name of each, and its values.
fn resources(said: &str, class: &str) -> Vec<(String, String)> {
    // `Acquired resource 'NAME' (EXPORTER/GROUP/CLASS/NAME):`, and what belongs to it is indented.
    let class = format!("/{class}/");
    let mut found = Vec::new();
    let mut lines = said.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((_, rest)) = line.split_once("resource '").filter(|_| line.contains(&class))
        else {
            continue;
        };
        let name = rest.split('\'').next().unwrap_or(rest).to_owned();
        let mut text = String::new();
        while let Some(more) = lines.next_if(|l| l.starts_with(' ')) {
            text.push_str(more);
            text.push(' ');
        }
        found.push((name, text));
    }
    found
}

fn proxy(text: &str) -> Option<String> {
    let needed = value(text, "proxy_required").filter(|v| v == "True");
    needed.and_then(|_| value(text, "proxy"))
}

/// The value of `'key': VALUE` in a dictionary of Python's, without its quotes.
fn value(text: &str, key: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("'{key}': "))?;
    let end = rest.find([',', '}']).unwrap_or(rest.len());
    Some(rest.get(..end)?.trim_matches(['\'', '"']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_labgrid_shows_of_a_place_is_read() {
        // As labgrid-client 26.0.1 prints it.
        let said = "Place 'press':
  tags: board=press
  matches:
    exp/board/*
  acquired: vm/root
  acquired resources:
    exp/board/NetworkPowerPort/NetworkPowerPort
    exp/board/NetworkService/NetworkService
  created: 2026-11-25 17:22:13.575888
  changed: 2026-11-25 17:22:25.990412
Acquired resource 'NetworkPowerPort' (exp/board/NetworkPowerPort/NetworkPowerPort):
  {'acquired': 'press',
   'params': {'extra': {'proxy': 'localhost', 'proxy_required': False},
              'host': 'http://127.0.0.1:20599/{index}',
              'index': '1',
              'model': 'simplerest'}}
Acquired resource 'uart' (exp/board/NetworkSerialPort/uart):
  {'acquired': 'press',
   'params': {'extra': {'proxy': 'rack', 'proxy_required': True},
              'host': 'rack',
              'port': 40123,
              'speed': 115200}}
Acquired resource 'NetworkService' (exp/board/NetworkService/NetworkService):
  {'acquired': 'press',
   'params': {'address': '192.0.2.7',
              'extra': {'proxy': 'rack', 'proxy_required': True},
              'port': 2222,
              'username': 'root'}}
";
        let some = |text: &str| Some(text.to_owned());
        let service = Service {
            address: "192.0.2.7".to_owned(),
            user: some("root"),
            port: some("2222"),
            proxy: some("rack"),
        };
        let uart = Serial {
            name: "uart".to_owned(),
            host: "rack".to_owned(),
            port: Some(40123),
            telnet: true,
            proxy: some("rack"),
        };
        let all = PlaceStatus {
            name: some("press"),
            serial: vec![uart],
            acquired: some("vm/root"),
            changed: "2026-11-25 17:22:25.990412".to_owned(),
            service: Some(service),
        };
        assert_eq!(read(said), all);
        let free = read(
            &said
                .replace("acquired: vm/root", "acquired: None")
                .replace(": True", ": False")
                .replace("40123", "None")
                .replace("'speed'", "'protocol': 'raw', 'speed'"),
        );
        let uart = &free.serial[0];
        assert_eq!((uart.port, uart.telnet, &uart.proxy), (None, false, &None));
        assert_eq!((free.acquired, free.service.unwrap().proxy), (None, None));
        assert_eq!(read("Place 'bare':\n  acquired: None\n").service, None);
    }
}

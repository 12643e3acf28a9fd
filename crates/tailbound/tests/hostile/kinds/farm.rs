// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of targets and policies: texts that say what is measured where, and what a board's owner allows.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tailbound_agent::policy::Policy;
use tailbound_fleet::engine::Targets;
use tailbound_lab::Target;

use super::{Kind, Reader};

pub(super) const TARGETS: Kind = Kind {
    name: "targets",
    share: 1,
    texts: true,
    samples: || {
        let text = "[programs]\naarch64 = \"tailbound-aarch64\"\n\n[[target]]\nname = \"desk\"\nengine = \"local\"\n\
            tags = [\"x86\"]\n\n[[target]]\nname = \"board\"\nengine = \"ssh\"\nhost = \"root@board\"\n\
            config = \"ssh_config\"\ncpus = \"2-3\"\n\n[[target]]\nname = \"rt\"\nengine = \"lab\"\n\
            kernel = \"debian:6.12-rt\"\nseed = 2\n\n[[target]]\nname = \"lathe\"\nengine = \"labgrid\"\n\
            place = \"lathe\"\nwait-s = 86400\nenvironment = \"lathe.yaml\"\nstate = \"rt\"\nkernel = \"6.12.57-rt\"\n";
        vec![text.as_bytes().to_vec()]
    },
    reader: || {
        Box::new(|bytes, _| {
            let text = String::from_utf8_lossy(bytes);
            match Targets::parse(Path::new("targets.toml"), &text) {
                Ok(_) => Ok(true),
                Err(e) => Ok(e.to_string().is_empty()),
            }
        })
    },
};

pub(super) const SYSTEMS: Kind = Kind {
    name: "systems_of_the_lab",
    share: 1,
    texts: true,
    samples: || {
        let text = "name = \"xenomai\"\narch = \"x86_64\"\nkernel = \"path:/boot/vmlinuz\"\nappend = \"irqaffinity=0\"\n\
            arguments = [\"a\", \"b\"]\n\n[[setting]]\npath = \"/proc/sys/kernel/sched_rt_runtime_us\"\nvalue = \"-1\"\n";
        let short = "kernel = \"debian:6.12-rt\"\nappend = \"quiet\"\n";
        [text, short].map(|t| t.as_bytes().to_vec()).into()
    },
    reader: || {
        in_a_file("system.toml", |path| Target::read(path).map(drop).map_err(|e| e.to_string()))
    },
};

pub(super) const POLICIES: Kind = Kind {
    name: "policies",
    share: 1,
    texts: true,
    samples: || {
        let text = "longest = \"10h\"\ncpus = \"2-3\"\nloads = [\"hackbench\", \"memory\", \"disk\"]\ntune = [\"cyclic\"]\n";
        let all = "longest = \"24h\"\nloads = [\"hackbench\", \"memory\", \"cmd\"]\ncommands = true\ntracing = true\n";
        [text, all].map(|t| t.as_bytes().to_vec()).into()
    },
    reader: || {
        in_a_file("agent.toml", |path| {
            Policy::read(Some(path)).map(drop).map_err(|e| e.to_string())
        })
    },
};

/// For what reads files alone.
fn in_a_file(name: &'static str, read: fn(&Path) -> Result<(), String>) -> Reader {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    Box::new(move |bytes, _| {
        let _ = &folder;
        fs::write(&path, bytes).map_err(|e| e.to_string())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(|e| e.to_string())?;
        // What a person typed is shown to that person as it is, on several lines; what goes to a terminal is made harmless there.
        Ok(read(&path).is_ok())
    })
}

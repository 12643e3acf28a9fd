// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels from the machine's own apt, really fetched, from files and from source.
//!
//! Needs apt and its archive for the first (`apt` in TAILBOUND_REQUIRE).

#![expect(clippy::disallowed_methods, reason = "QEMU under timeout(1), waited for")]

use std::fs;
use std::path::Path;
use std::process::Command;

use tailbound_lab::build::{Request, Workshop};
use tailbound_lab::kernel::{self, Config, KernelName};
use tailbound_lab::{Arch, LabError, Store};

fn obtain(name: &str, arch: Arch, store: &Store) -> Result<kernel::Kernel, LabError> {
    let name: KernelName = name.parse()?;
    kernel::obtain(&name, arch, store, &mut |_| {})
}

#[test]
fn a_kernel_is_fetched_once_and_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::at(folder.path());
    let fetched = match obtain("debian:6.12-rt", Arch::X86_64, &store) {
        Ok(kernel) => kernel,
        Err(e) => {
            let why = e.to_string().replace('\n', " ");
            return tailbound_testing::skip("apt", format!("no kernel from apt here: {why}"));
        }
    };
    assert!(fetched.record.package.as_ref().is_some_and(|p| p.contains("-rt-amd64 6.12")));
    let config = Config::read(fetched.config.as_deref().expect("a configuration")).expect("read");
    assert!(config.is_builtin("CONFIG_PREEMPT_RT"));
    let modules = fetched.modules.as_deref().expect("modules");
    let files = kernel::modules::closure(modules, &["veth", "brd", "loop"]).expect("modules");
    assert!(!files.is_empty() && files.iter().all(|f| f.exists()));
    assert!(files.iter().all(|f| kernel::modules::loadable(f, &config)), "{files:?}");
    let missing = kernel::modules::closure(modules, &["veth", "no-such"]).unwrap_err();
    assert!(missing.to_string().contains("`no_such`"), "{missing}");
    // Nothing half made is left, nor the package itself.
    for entry in fs::read_dir(folder.path().join("kernels")).expect("the room").flatten() {
        assert!(!entry.file_name().to_string_lossy().starts_with(".part"), "{entry:?}");
    }
    let debs = fs::read_dir(folder.path().join("kernels/debs")).expect("the room");
    assert_eq!(debs.count(), 0, "the package is still there");
    // Again, with apt out of the way: the system's lists are not needed any more.
    fs::remove_dir_all(folder.path().join("apt")).expect("apt's folder");
    let again = obtain("debian:6.12-rt", Arch::X86_64, &store).expect("from the store");
    assert_eq!(again.record, fetched.record);
    assert!(!folder.path().join("apt").exists(), "apt was asked again");
    assert_eq!(kernel::in_store(&store).expect("the store").len(), 1);
    // By path, with its modules and the configuration beside it.
    let name = format!("path:{},{}", fetched.image.display(), modules.display());
    let by_path = obtain(&name, Arch::X86_64, &store).expect("by path");
    assert_eq!(by_path.record.sha256, fetched.record.sha256);
    assert!(by_path.config.is_some());
    let other = obtain(&name, Arch::Arm, &store).unwrap_err();
    assert!(
        other.kind() == tailbound_core::FailureKind::Usage
            && other.to_string().contains("for x86_64"),
        "{other}"
    );
}

#[test]
fn what_is_no_kernel_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::at(folder.path());
    let text = folder.path().join("vmlinuz");
    fs::write(&text, "hello").expect("written");
    for (name, says) in [
        (format!("path:{}", text.display()), "not a kernel image"),
        ("path:/no/such/vmlinuz".to_owned(), "No such file"),
        ("build:none".to_owned(), "no such build"),
    ] {
        let e = obtain(&name, Arch::X86_64, &store).unwrap_err();
        assert!(
            e.kind() == tailbound_core::FailureKind::Usage && e.to_string().contains(says),
            "{e}"
        );
    }
    let e = kernel::modules::closure(Path::new("/no/such"), &["veth"]).unwrap_err();
    assert!(e.to_string().contains("No such file"), "{e}");
}

#[test]
#[ignore = "fetches a kernel's source and compiles it twice: half an hour of processor time"]
fn one_source_is_built_with_and_without_rt_and_boots() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::at(folder.path());
    for (name, fragments, rt) in [("rt", vec!["rt".to_owned()], true), ("stock", vec![], false)] {
        let request = Request {
            name: name.parse().expect("a name"),
            arch: Arch::X86_64,
            source: "debian:linux-source-6.12".parse().expect("a source"),
            patches: Vec::new(),
            rebase_onto: None,
            fragments,
            config: None,
            jobs: 2,
        };
        let made = Workshop {
            request: &request,
            store: &store,
            note: &mut |_| (),
            progress: &mut |_| {},
            stop: &|| false,
        }
        .build()
        .expect("built");
        assert!(made.release.ends_with("-tailbound"), "{}", made.release);
        let kernel = obtain(&format!("build:{name}"), Arch::X86_64, &store).expect("a kernel");
        let config = Config::read(kernel.config.as_deref().expect("its config")).expect("read");
        assert_eq!(config.is_builtin("CONFIG_PREEMPT_RT"), rt);
        // Without an initramfs it boots as far as it can: to its complaint about that.
        let out = Command::new("timeout")
            .args(["300", "qemu-system-x86_64", "-M", "pc", "-accel", "tcg", "-m", "256"])
            .args(["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"])
            .args(["-append", "console=ttyS0 panic=-1", "-kernel"])
            .arg(&kernel.image)
            .output()
            .expect("qemu-system-x86_64");
        let console = String::from_utf8_lossy(&out.stdout);
        assert!(console.contains(&format!("Linux version {}", made.release)), "{console}");
        assert_eq!(console.contains("PREEMPT_RT"), rt, "{console}");
        assert!(console.contains("Unable to mount root"), "{console}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels from the machine's own apt, really fetched, and from files.
//!
//! Context: COLD. Needs apt and its archive for the first (`apt` in TAILBOUND_REQUIRE).

#![expect(clippy::print_stdout, reason = "a test that cannot run says why")]

use std::fs;
use std::path::Path;

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
            assert!(!tailbound_sys::required("apt"), "{e}");
            println!("skipped: no kernel from apt here: {}", e.to_string().replace('\n', " "));
            return;
        }
    };
    assert!(fetched.record.package.as_ref().is_some_and(|p| p.contains("-rt-amd64 6.12")));
    let config = Config::read(fetched.config.as_deref().expect("a configuration")).expect("read");
    assert!(config.is_builtin("CONFIG_PREEMPT_RT"));
    let modules = fetched.modules.as_deref().expect("modules");
    let files = kernel::modules::closure(modules, &["veth", "brd", "loop"]).expect("modules");
    assert!(!files.is_empty() && files.iter().all(|f| f.exists()));
    kernel::modules::loadable(&files, &config).expect("the kernel unpacks them");
    let missing = kernel::modules::closure(modules, &["veth", "no-such"]).unwrap_err();
    assert!(missing.to_string().contains("`no_such`"), "{missing}");
    // Nothing half made is left, nor the package itself.
    for entry in fs::read_dir(folder.path().join("kernels")).expect("the room").flatten() {
        assert!(!entry.file_name().to_string_lossy().starts_with(".part"), "{entry:?}");
    }
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
    assert!(other.exit_status() == 2 && other.to_string().contains("for x86_64"), "{other}");
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
        assert!(e.exit_status() == 2 && e.to_string().contains(says), "{e}");
    }
    let e = kernel::modules::closure(Path::new("/no/such"), &["veth"]).unwrap_err();
    assert!(e.to_string().contains("modules.dep"), "{e}");
}

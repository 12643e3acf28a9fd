// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small tree of Kconfig files, and why options in it are what they are.

use std::fs;

use super::{Tree, granted};
use crate::kernel::Config;

const TOP: &str = r#"
mainmenu "Small"
source "arch/$(SRCARCH)/Kconfig"
menu "Models"
	depends on BASE
choice
	prompt "Model"
	default NONE
config NONE
	bool "none"
	help
	  Not to be taken for an entry:
	  config INSIDE_HELP
	    depends on NOWHERE

config FULL
	bool "full"
	depends on EXPERT && ARCH_FULL \
		&& !LEGACY
endchoice
config HIDDEN
	bool
	select DEEP if FULL
config TUNED
	bool "tuned" if EXPERT
	default y
endmenu
if NET
config VETH
	tristate "pairs"
	depends on WIRE || RADIO
endif
config NET
	bool "net"
config DEEP
	bool
config CC_ONLY
	bool "with the compiler's help"
	depends on $(cc-option,-mfoo)
"#;

const ARCH: &str = "config BASE\n\tdef_bool y\nconfig ARCH_FULL\n\tbool\nconfig EXPERT\n\tbool \"expert\"\nconfig LEGACY\n\tbool \"old\"\n";

fn tree() -> Tree {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("arch/x86")).expect("made");
    fs::write(folder.path().join("Kconfig"), TOP).expect("written");
    fs::write(folder.path().join("arch/x86/Kconfig"), ARCH).expect("written");
    let tree = Tree::read(folder.path(), "x86");
    assert!(tree.gaps.is_empty(), "{:?}", tree.gaps);
    tree
}

#[test]
fn the_first_unmet_conditions_are_named() {
    let tree = tree();
    let config = Config::parse("CONFIG_BASE=y\nCONFIG_NONE=y\nCONFIG_LEGACY=y\nCONFIG_TUNED=y\n");
    let why = tree.why("FULL", "y", &config);
    for part in [
        "EXPERT, which is off",
        "ARCH_FULL, which is off;",
        "!LEGACY, but LEGACY is y",
        "(Kconfig:16)",
    ] {
        assert!(why.contains(part), "`{part}` in: {why}");
    }
    let expert = Config::parse("CONFIG_BASE=y\nCONFIG_EXPERT=y\n");
    let why = tree.why("FULL", "y", &expert);
    let deeper = "ARCH_FULL, which is off: it is not chosen by hand, and nothing selects it (arch/x86/Kconfig:3)";
    assert!(why.contains(deeper), "{why}");
    let able = Config::parse("CONFIG_BASE=y\nCONFIG_NONE=y\nCONFIG_EXPERT=y\nCONFIG_ARCH_FULL=y\n");
    assert_eq!(tree.why("FULL", "y", &able), "of its choice NONE is on, and only one can be");
    let why = tree.why("VETH", "m", &config);
    assert!(why.contains("NET, which is off; on WIRE || RADIO, which does not hold"), "{why}");
    assert!(tree.why("DEEP", "y", &config).contains("selected by HIDDEN, none of which"));
    assert!(
        tree.why("TUNED", "n", &config).contains("only")
            || tree.why("TUNED", "n", &config).contains("EXPERT")
    );
    assert!(tree.why("GONE", "y", &config).contains("no option GONE"));
    assert!(tree.why("CC_ONLY", "y", &config).contains("unknown"), "a macro is not judged");
    assert!(!tree.knows("INSIDE_HELP") && tree.knows("TUNED"));
    let selected = Config::parse("CONFIG_HIDDEN=y\nCONFIG_FULL=y\nCONFIG_DEEP=y\n");
    assert_eq!(tree.why("DEEP", "n", &selected), "selected by HIDDEN");
}

#[test]
fn granted_means_the_same_value() {
    let config = Config::parse("CONFIG_A=y\nCONFIG_M=m\nCONFIG_N=8\n");
    for (name, wanted, is) in [
        ("A", "y", true),
        ("M", "y", false),
        ("M", "m", true),
        ("N", "8", true),
        ("N", "4", false),
        ("OFF", "n", true),
        ("A", "n", false),
        ("N", "n", false),
    ] {
        assert_eq!(granted(&config, name, wanted), is, "{name}={wanted}");
    }
}

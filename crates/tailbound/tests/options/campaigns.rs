// SPDX-License-Identifier: MIT OR Apache-2.0
//! The campaigns that are shipped: the options in their files mean something.

use tailbound_core::FailureKind;
use tailbound_host::Root;
use tailbound_run::{Request, resolve};
use tailbound_series::campaign::{SHIPPED, find};

#[test]
fn every_campaign_that_is_shipped_can_be_resolved() {
    for (name, _) in SHIPPED {
        let chosen = find(name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(chosen.file.name, *name);
        for part in chosen.file.parts() {
            let mut config = part.run.clone();
            // Whether this machine allows it is another question.
            (config.policy, config.cpus, config.observe) = (Some("other".into()), None, None);
            match resolve(&Request { config, ..Request::default() }, &Root::real()) {
                Ok(_) => {}
                Err(e) if e.kind() == FailureKind::Cannot => {}
                Err(e) => panic!("{name}, {}: {e}", part.id),
            }
        }
    }
}

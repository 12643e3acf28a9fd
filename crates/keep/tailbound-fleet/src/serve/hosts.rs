// SPDX-License-Identifier: MIT OR Apache-2.0
//! Under which names the server answers.
//!
//! A page of somebody else's site can make its own name point to 127.0.0.1 ("DNS rebinding"), and would then
//! read what needs no token: so only names that are known are answered.

/// Which names are answered where none are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherNames {
    /// Any: reading needs a token, which a page of somebody else does not have.
    Answered,
    /// Those of this machine: reading needs no token.
    Refused,
}

/// Is `host` (the header, with a port or without) a name of this server?
pub(super) fn known(host: Option<&str>, names: &[String], others: OtherNames) -> bool {
    if names.is_empty() && others == OtherNames::Answered {
        return true;
    }
    let Some(host) = host else { return false };
    let bare = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let local = bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    local || names.iter().any(|name| name.eq_ignore_ascii_case(bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_for_loopback_are_not_answered() {
        let names = ["farm.example".to_owned()];
        for host in ["localhost:80", "127.0.0.1", "127.3.2.1:8080", "[::1]:8080", "LOCALHOST"] {
            assert!(known(Some(host), &[], OtherNames::Refused), "{host}");
        }
        assert!(!known(Some("evil.example:8080"), &[], OtherNames::Refused));
        assert!(!known(None, &[], OtherNames::Refused));
        assert!(known(Some("Farm.example:443"), &names, OtherNames::Answered));
        assert!(!known(Some("evil.example"), &names, OtherNames::Answered));
        assert!(known(Some("anything"), &[], OtherNames::Answered));
    }
}

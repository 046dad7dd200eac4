//! IP addresses and networks in the fields of objects.
//!
//! Contract: apimachinery `util/validation/ip.go`. New fields take the canonical form only. Older
//! fields take any valid form; before strictness they also took leading zeros and IPv4 inside IPv6,
//! and what is stored that way must still be readable.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::field;

/// How strictly an older field reads addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// One meaning only: no leading zeros, no IPv4 inside IPv6.
    Strict,
    /// Whatever was once accepted.
    Sloppy,
}

/// Checks an address in a new field: valid and canonical.
pub fn ip(text: &str) -> Vec<String> {
    let complaints = legacy_ip(text, Reading::Strict);
    match parse_sloppy(text) {
        Some(address) if complaints.is_empty() => not_canonical(text, &address.to_string()),
        _ => complaints,
    }
}

/// Checks an address in an older field.
pub fn legacy_ip(text: &str, reading: Reading) -> Vec<String> {
    if parse_sloppy(text).is_none() {
        let complaint = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        return vec![complaint.to_owned()];
    }
    match (reading, text.parse::<IpAddr>()) {
        (Reading::Sloppy, _) => Vec::new(),
        (Reading::Strict, Err(_)) => vec!["must not have leading 0s".to_owned()],
        (Reading::Strict, Ok(address)) if is_mapped(address) => {
            vec!["must not be an IPv4-mapped IPv6 address".to_owned()]
        }
        (Reading::Strict, Ok(_)) => Vec::new(),
    }
}

/// Checks a network in a new field: valid, canonical, no bits past the prefix.
pub fn cidr(text: &str) -> Vec<String> {
    let complaints = legacy_cidr(text, Reading::Strict);
    match parse_cidr_sloppy(text) {
        Some((address, length)) if complaints.is_empty() => {
            not_canonical(text, &format!("{}/{length}", network(address, length)))
        }
        _ => complaints,
    }
}

/// Checks a network in an older field.
pub fn legacy_cidr(text: &str, reading: Reading) -> Vec<String> {
    let Some((sloppy, length)) = parse_cidr_sloppy(text) else {
        let complaint = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        return vec![complaint.to_owned()];
    };
    if reading == Reading::Sloppy {
        return Vec::new();
    }
    let has_zeros = text.split_once('/').is_none_or(|(address, length)| {
        address.parse::<IpAddr>().is_err() || (length.len() > 1 && length.starts_with('0'))
    });
    if has_zeros {
        return vec!["must not have leading 0s in IP or prefix length".to_owned()];
    }
    if is_mapped(sloppy) {
        return vec!["must not have an IPv4-mapped IPv6 address".to_owned()];
    }
    if network(sloppy, length) != sloppy {
        return vec!["must not have bits set beyond the prefix length".to_owned()];
    }
    Vec::new()
}

/// Checks an address with the length of its network, such as `192.168.1.5/24`.
pub fn interface_address(text: &str) -> Vec<String> {
    let Some((address, length)) = parse_cidr_sloppy(text) else {
        let complaint =
            "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return vec![complaint.to_owned()];
    };
    // IPv4 inside IPv6 is IPv4, and its network is that much shorter.
    let length = if is_mapped(address) && length > 32 {
        length - 96
    } else {
        length
    };
    not_canonical(text, &format!("{}/{length}", address.to_canonical()))
}

/// Reads an address the way it was once read: leading zeros mean nothing.
pub fn parse_sloppy(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let mut plain = String::with_capacity(text.len());
    for part in text.split_inclusive(['.', ':']) {
        let trimmed = part.trim_start_matches('0');
        let starts_digit = trimmed.starts_with(|c: char| c.is_ascii_hexdigit());
        if trimmed.len() < part.len() && !starts_digit {
            plain.push('0');
        }
        plain.push_str(trimmed);
    }
    plain.parse().ok()
}

/// Reads a network the way it was once read; the address keeps all its bits.
pub fn parse_cidr_sloppy(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address = parse_sloppy(address)?;
    if length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = length.trim_start_matches('0');
    let length: u8 = if significant.is_empty() {
        0
    } else {
        significant.parse().ok()?
    };
    let longest = if address.is_ipv4() { 32 } else { 128 };
    (length <= longest).then_some((address, length))
}

/// The first address of the network that an address is in.
pub fn network(address: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX
                .checked_shl(32_u32.saturating_sub(length))
                .unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX
                .checked_shl(128_u32.saturating_sub(length))
                .unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

fn not_canonical(text: &str, canonical: &str) -> Vec<String> {
    if text == canonical {
        return Vec::new();
    }
    vec![format!(
        "must be in canonical form ({})",
        field::quote(canonical)
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD_IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    const BAD_CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

    #[test]
    fn addresses_are_judged_in_upstreams_words() {
        let mapped = "must not be an IPv4-mapped IPv6 address";
        // The text; what a new field, a strict older one and a sloppy older one say.
        let cases = [
            ("10.9.8.7", "", "", ""),
            ("2001:db8::ffff", "", "", ""),
            ("::", "", "", ""),
            (
                "FE80:0::0abc",
                "must be in canonical form (\"fe80::abc\")",
                "",
                "",
            ),
            (
                "::1.2.3.4",
                "must be in canonical form (\"::102:304\")",
                "",
                "",
            ),
            (
                "010.002.003.000",
                "must not have leading 0s",
                "must not have leading 0s",
                "",
            ),
            (
                "00001::",
                "must not have leading 0s",
                "must not have leading 0s",
                "",
            ),
            ("::ffff:1.2.3.4", mapped, mapped, ""),
            ("", BAD_IP, BAD_IP, BAD_IP),
            ("1.2.3", BAD_IP, BAD_IP, BAD_IP),
            ("1.2.3.256", BAD_IP, BAD_IP, BAD_IP),
            ("1.2.3.4.", BAD_IP, BAD_IP, BAD_IP),
            ("1.2..4", BAD_IP, BAD_IP, BAD_IP),
            ("fe80::1%eth0", BAD_IP, BAD_IP, BAD_IP),
            ("1.2.3.4/24", BAD_IP, BAD_IP, BAD_IP),
            ("é", BAD_IP, BAD_IP, BAD_IP),
        ];
        for (text, new, strict, sloppy) in cases {
            assert_eq!(ip(text).join(";"), new, "of {text:?}");
            assert_eq!(
                legacy_ip(text, Reading::Strict).join(";"),
                strict,
                "of {text:?}"
            );
            assert_eq!(
                legacy_ip(text, Reading::Sloppy).join(";"),
                sloppy,
                "of {text:?}"
            );
        }
    }

    #[test]
    fn networks_are_judged_in_upstreams_words() {
        let zeros = "must not have leading 0s in IP or prefix length";
        let bits = "must not have bits set beyond the prefix length";
        let mapped = "must not have an IPv4-mapped IPv6 address";
        let cases = [
            ("10.0.0.0/8", "", "", ""),
            ("0.0.0.0/0", "", "", ""),
            ("2001:db8::/64", "", "", ""),
            ("::1/128", "", "", ""),
            (
                "2001:DB8::/64",
                "must be in canonical form (\"2001:db8::/64\")",
                "",
                "",
            ),
            ("010.0.0.0/8", zeros, zeros, ""),
            ("10.0.0.0/08", zeros, zeros, ""),
            ("10.1.0.0/8", bits, bits, ""),
            ("::ffff:1.2.3.0/120", mapped, mapped, ""),
            ("10.0.0.0", BAD_CIDR, BAD_CIDR, BAD_CIDR),
            ("10.0.0.0/33", BAD_CIDR, BAD_CIDR, BAD_CIDR),
            ("10.0.0.0/", BAD_CIDR, BAD_CIDR, BAD_CIDR),
            ("10.0.0.0/+8", BAD_CIDR, BAD_CIDR, BAD_CIDR),
            ("::/129", BAD_CIDR, BAD_CIDR, BAD_CIDR),
        ];
        for (text, new, strict, sloppy) in cases {
            assert_eq!(cidr(text).join(";"), new, "of {text:?}");
            assert_eq!(
                legacy_cidr(text, Reading::Strict).join(";"),
                strict,
                "of {text:?}"
            );
            assert_eq!(
                legacy_cidr(text, Reading::Sloppy).join(";"),
                sloppy,
                "of {text:?}"
            );
        }
    }

    #[test]
    fn an_interface_keeps_all_bits_of_its_address() {
        assert!(interface_address("192.168.1.5/24").is_empty());
        let canonical = "must be in canonical form (\"192.168.0.1/24\")";
        assert_eq!(interface_address("::ffff:192.168.0.1/120"), [canonical]);
        assert_eq!(interface_address("192.168.000.1/24"), [canonical]);
        assert!(!interface_address("192.168.1.5").is_empty());
    }
}

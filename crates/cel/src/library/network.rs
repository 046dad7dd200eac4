//! Addresses and networks.
//!
//! Contract: `k8s.io/apiserver/pkg/cel/library/ip.go` and `cidr.go` over Go's `net/netip`.

use crate::evaluate::Fault;
use crate::function::Declaration;
use crate::value::{Library, Value, quoted};
use std::fmt;
use std::net::IpAddr;

/// A network: an address and how many of its bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) length: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.length)
    }
}

macro_rules! test {
    ($name:literal, $id:literal, $address:ident => $holds:expr) => {
        Declaration {
            name: $name,
            overloads: &[($id, "IP.() -> bool")],
            native: |arguments, _| match arguments {
                [Value::Library(Library::Ip($address))] => Ok(Value::Bool($holds)),
                _ => Err(Fault::no_overload()),
            },
        }
    };
}

pub(crate) const FUNCTIONS: &[Declaration] = &[
    Declaration {
        name: "ip",
        overloads: &[("string_to_ip", "(string) -> IP")],
        native: |arguments, _| match arguments {
            [Value::String(text)] => parse_ip(text).map(ip),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "ip",
        overloads: &[("cidr_ip", "CIDR.() -> IP")],
        native: |arguments, _| Ok(ip(network(arguments)?.address)),
    },
    Declaration {
        name: "family",
        overloads: &[("ip_family", "IP.() -> int")],
        native: |arguments, _| match arguments {
            [Value::Library(Library::Ip(IpAddr::V4(_)))] => Ok(Value::Int(4)),
            [Value::Library(Library::Ip(IpAddr::V6(_)))] => Ok(Value::Int(6)),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "ip.isCanonical",
        overloads: &[("ip_is_canonical", "(string) -> bool")],
        native: |arguments, _| match arguments {
            [Value::String(text)] => Ok(Value::Bool(parse_ip(text)?.to_string() == **text)),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "isIP",
        overloads: &[("is_ip", "(string) -> bool")],
        native: |arguments, _| match arguments {
            [Value::String(text)] => Ok(Value::Bool(parse_ip(text).is_ok())),
            _ => Err(Fault::no_overload()),
        },
    },
    test!("isUnspecified", "ip_is_unspecified", address => address.is_unspecified()),
    test!("isLoopback", "ip_is_loopback", address => address.is_loopback()),
    test!("isLinkLocalMulticast", "ip_is_link_local_multicast", address => match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }),
    test!("isLinkLocalUnicast", "ip_is_link_local_unicast", address => is_link_local(address)),
    test!("isGlobalUnicast", "ip_is_global_unicast", address => {
        let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        let special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
        !broadcast && !special && !is_link_local(address)
    }),
    Declaration {
        name: "cidr",
        overloads: &[("string_to_cidr", "(string) -> CIDR")],
        native: |arguments, _| match arguments {
            [Value::String(text)] => parse_cidr(text).map(cidr),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "isCIDR",
        overloads: &[("is_cidr", "(string) -> bool")],
        native: |arguments, _| match arguments {
            [Value::String(text)] => Ok(Value::Bool(parse_cidr(text).is_ok())),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "containsIP",
        overloads: &[
            ("cidr_contains_ip_string", "CIDR.(string) -> bool"),
            ("cidr_contains_ip_ip", "CIDR.(IP) -> bool"),
        ],
        native: |arguments, _| {
            let (network, address) = match arguments {
                [Value::Library(Library::Cidr(network)), Value::String(text)] => {
                    // Upstream forgets why the text is no address.
                    let address = parse_ip(text);
                    (
                        network,
                        address.map_err(|_| Fault::new("no such overload"))?,
                    )
                }
                [
                    Value::Library(Library::Cidr(network)),
                    Value::Library(Library::Ip(address)),
                ] => (network, *address),
                _ => return Err(Fault::no_overload()),
            };
            Ok(Value::Bool(network.has(address)))
        },
    },
    Declaration {
        name: "containsCIDR",
        overloads: &[
            ("cidr_contains_cidr_string", "CIDR.(string) -> bool"),
            ("cidr_contains_cidr", "CIDR.(CIDR) -> bool"),
        ],
        native: |arguments, _| {
            let (network, other) = match arguments {
                [Value::Library(Library::Cidr(network)), Value::String(text)] => {
                    (network, parse_cidr(text)?)
                }
                [
                    Value::Library(Library::Cidr(network)),
                    Value::Library(Library::Cidr(other)),
                ] => (network, *other),
                _ => return Err(Fault::no_overload()),
            };
            let within = network.length <= other.length && network.has(other.address);
            Ok(Value::Bool(within))
        },
    },
    Declaration {
        name: "prefixLength",
        overloads: &[("cidr_prefix_length", "CIDR.() -> int")],
        native: |arguments, _| Ok(Value::Int(network(arguments)?.length.into())),
    },
    Declaration {
        name: "masked",
        overloads: &[("cidr_masked", "CIDR.() -> CIDR")],
        native: |arguments, _| {
            let Cidr { address, length } = *network(arguments)?;
            let address = object::addresses::network(address, length);
            Ok(cidr(Cidr { address, length }))
        },
    },
];

fn ip<'v>(address: IpAddr) -> Value<'v> {
    Value::Library(Library::Ip(address))
}

fn cidr<'v>(network: Cidr) -> Value<'v> {
    Value::Library(Library::Cidr(network))
}

fn network<'a>(arguments: &'a [Value<'_>]) -> Result<&'a Cidr, Fault> {
    match arguments {
        [Value::Library(Library::Cidr(network))] => Ok(network),
        _ => Err(Fault::no_overload()),
    }
}

impl Cidr {
    fn has(&self, address: IpAddr) -> bool {
        let masked = |it: IpAddr| object::addresses::network(it, self.length);
        self.address.is_ipv4() == address.is_ipv4() && masked(self.address) == masked(address)
    }
}

fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_mapped(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

fn parse_ip(text: &str) -> Result<IpAddr, Fault> {
    let shown = quoted(text);
    let Ok(address) = text.parse::<IpAddr>() else {
        let zone = text.split_once('%');
        let zoned = zone.is_some_and(|(address, zone)| {
            !zone.is_empty() && address.contains(':') && address.parse::<IpAddr>().is_ok()
        });
        return Err(Fault::from(match zoned {
            true => format!("IP address {shown} with zone value is not allowed"),
            false => format!(
                "IP Address {shown} parse error during conversion from string: \
                 ParseAddr({shown}): unable to parse IP"
            ),
        }));
    };
    if is_mapped(&address) {
        return Err(Fault::from(format!(
            "IPv4-mapped IPv6 address {shown} is not allowed"
        )));
    }
    Ok(address)
}

fn parse_cidr(text: &str) -> Result<Cidr, Fault> {
    let shown = quoted(text);
    let failed = |why: String| {
        Fault::from(format!(
            "network address parse error during conversion from string: {why}"
        ))
    };
    let prefix = |why: &str| {
        failed(format!(
            "network address parse error during conversion from string: \
             netip.ParsePrefix({shown}): {why}"
        ))
    };
    let (address, length) = text.rsplit_once('/').ok_or_else(|| prefix("no '/'"))?;
    let address: IpAddr = address.parse().map_err(|_| {
        prefix(&format!(
            "ParseAddr({}): unable to parse IP",
            quoted(address)
        ))
    })?;
    let digits = !length.is_empty() && length.bytes().all(|it| it.is_ascii_digit());
    if !digits || (length.len() > 1 && length.starts_with('0')) {
        return Err(prefix(&format!("bad bits after slash: {}", quoted(length))));
    }
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.parse().ok().filter(|it| *it <= most);
    let length = length.ok_or_else(|| prefix("prefix length out of range"))?;
    if is_mapped(&address) {
        return Err(failed(format!(
            "IPv4-mapped IPv6 address {shown} is not allowed"
        )));
    }
    Ok(Cidr { address, length })
}

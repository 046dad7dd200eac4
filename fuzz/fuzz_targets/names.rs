//! No text makes the checks of names, addresses and versions panic, and they agree where they must.
#![no_main]

use libfuzzer_sys::fuzz_target;
use object::{addresses, group, names};

fuzz_target!(|text: &str| {
    if names::dns1035_label(text).is_empty() {
        assert!(names::dns1123_label(text).is_empty());
    }
    if names::dns1123_label(text).is_empty() {
        assert!(names::dns1123_subdomain(text).is_empty());
        assert!(names::label_value(text).is_empty());
        assert!(names::qualified_name(text).is_empty());
    }
    if names::dns1123_subdomain(text).is_empty() {
        assert!(names::path_segment(text).is_empty());
        assert!(names::dns1123_subdomain_with_underscore(text).is_empty());
    }
    for rule in [
        names::name_is_dns_subdomain,
        names::name_is_dns_label,
        names::name_is_dns1035_label,
        names::name_is_path_segment,
    ] {
        let _ = rule(text, true);
    }
    for rule in [
        names::config_map_key,
        names::env_var_name,
        names::port_name,
        names::percent,
    ] {
        let _ = rule(text);
    }
    if addresses::ip(text).is_empty() {
        assert!(addresses::legacy_ip(text, addresses::Reading::Sloppy).is_empty());
    }
    if addresses::cidr(text).is_empty() {
        assert!(addresses::interface_address(text).is_empty());
    }
    if let Ok((group, version)) = group::parse_api_version(text) {
        let _ = group::compare_versions(group, version);
    }
});

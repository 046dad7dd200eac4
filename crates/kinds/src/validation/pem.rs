//! Texts in PEM form: certificates, requests for them, and keys.
//!
//! Only the armour is read; what is inside is for the code that knows certificates.

use schema::decode::decode_base64;

/// A block between `BEGIN` and `END`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block<'a> {
    /// What the block says it is, such as `CERTIFICATE`.
    pub(crate) label: &'a str,
    /// Whether lines of headers precede the contents.
    pub(crate) has_headers: bool,
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// The blocks of a text, in order; what is not well formed is passed over.
pub(crate) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(BEGIN) {
        let at_line_start = start == 0 || rest[..start].ends_with('\n');
        let after = &rest[start + BEGIN.len()..];
        rest = after;
        let line = after.lines().next().unwrap_or_default();
        let Some(label) = line.trim_end().strip_suffix(DASHES) else {
            continue;
        };
        let body = &after[line.len()..];
        let Some(end) = body.find(&format!("{END}{label}{DASHES}")) else {
            continue;
        };
        if let Some(has_headers) = readable(&body[..end]).filter(|_| at_line_start) {
            found.push(Block { label, has_headers });
            rest = &body[end..];
        }
    }
    found
}

/// Whether the lines between the armour are base 64, and whether headers stand before them.
fn readable(body: &str) -> Option<bool> {
    let (headers, contents): (Vec<&str>, Vec<&str>) = body
        .lines()
        .map(str::trim)
        .partition(|line| line.contains(':'));
    decode_base64(&contents.concat()).map(|_| !headers.is_empty())
}

/// What is wrong with a certificate and its key, as far as their armour shows it.
pub(crate) fn pair_mistake(certificate: &str, key: &str) -> Option<String> {
    let certificates = blocks(certificate);
    if !certificates.iter().any(|it| it.label == "CERTIFICATE") {
        return Some(match certificates.as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [only] if only.label.ends_with("PRIVATE KEY") => {
                "tls: failed to find certificate PEM data in certificate input, but did find a \
                 private key; PEM inputs may have been switched"
                    .to_owned()
            }
            others => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after \
                 skipping PEM blocks of the following types: {}",
                labels(others)
            ),
        });
    }
    let keys = blocks(key);
    let is_key = |it: &Block<'_>| it.label == "PRIVATE KEY" || it.label.ends_with(" PRIVATE KEY");
    if keys.iter().any(is_key) {
        return None;
    }
    Some(match keys.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [only] if only.label == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        others => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after \
             skipping PEM blocks of the following types: {}",
            labels(others)
        ),
    })
}

fn labels(blocks: &[Block<'_>]) -> String {
    let labels: Vec<&str> = blocks.iter().map(|block| block.label).collect();
    format!("[{}]", labels.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(label: &str, body: &str) -> String {
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    #[test]
    fn which_blocks_a_text_holds() {
        let cases = [
            (String::new(), ""),
            ("hello".to_owned(), ""),
            (block("CERTIFICATE", "aGk="), "CERTIFICATE"),
            (block("CERTIFICATE", "!!"), ""),
            (format!("text\n{}", block("A B", "aGk=")), "A B"),
            (block("A", "") + &block("B", "aGk="), "A,B"),
            ("-----BEGIN A-----\naGk=\n-----END B-----\n".to_owned(), ""),
        ];
        for (text, expected) in cases {
            let labels: Vec<&str> = blocks(&text).iter().map(|it| it.label).collect();
            assert_eq!(labels.join(","), expected, "{text}");
        }
        assert!(blocks(&block("A", "K: v\n\naGk="))[0].has_headers);
    }

    #[test]
    fn what_is_wrong_with_a_pair() {
        let (certificate, key) = (
            block("CERTIFICATE", "aGk="),
            block("RSA PRIVATE KEY", "aGk="),
        );
        let cases = [
            (certificate.as_str(), key.as_str(), None),
            (
                "",
                "",
                Some("failed to find any PEM data in certificate input"),
            ),
            (
                &certificate,
                "x",
                Some("failed to find any PEM data in key input"),
            ),
            (&key, &key, Some("PEM inputs may have been switched")),
            (
                &certificate,
                &certificate,
                Some("found a certificate rather than a key"),
            ),
        ];
        for (certificate, key, expected) in cases {
            let found = pair_mistake(certificate, key);
            match (&found, expected) {
                (None, None) => {}
                (Some(found), Some(part)) => assert!(found.contains(part), "{found}"),
                _ => panic!("{found:?} instead of {expected:?}"),
            }
        }
    }
}

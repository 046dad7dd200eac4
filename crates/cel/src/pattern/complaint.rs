//! Mistakes in patterns, in the words of Go's parser where it has words for them.

/// What is wrong with a pattern that the `regex` crate refused.
pub(super) fn in_words_of_go(pattern: &str, error: &regex::Error) -> String {
    let regex::Error::Syntax(shown) = error else {
        // Go counts how often repeats of repeats run, and blames the outermost.
        let open = pattern.rfind('{').unwrap_or_default();
        return format!("invalid repeat count: `{}`", &pattern[open..]);
    };
    let reason = shown.lines().last().unwrap_or_default();
    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
    let part = blamed(shown).unwrap_or(pattern);
    match reason {
        "unclosed group" => format!("missing closing ): `{pattern}`"),
        "unopened group" => format!("unexpected ): `{pattern}`"),
        "unclosed character class" => {
            let open = pattern.find('[').unwrap_or_default();
            format!("missing closing ]: `{}`", &pattern[open..])
        }
        _ if reason.starts_with("invalid repetition count range") => {
            let open = part.find('{').unwrap_or_default();
            format!("invalid repeat count: `{}`", &part[open..])
        }
        _ if reason.starts_with("invalid character class range")
            || reason.starts_with("Unicode property")
            || reason.starts_with("invalid Unicode") =>
        {
            format!("invalid character class range: `{part}`")
        }
        _ if reason.contains("escape") || reason.starts_with("backreferences") => {
            format!("invalid escape sequence: `{part}`")
        }
        _ if reason.starts_with("hexadecimal literal") || reason.contains("Unicode scalar") => {
            format!(
                "invalid escape sequence: `{}`",
                escape_before(pattern, part)
            )
        }
        _ if reason.contains("capture group name") => {
            let open = pattern.rfind("(?").unwrap_or_default();
            let end = pattern[open..]
                .find('>')
                .map_or(pattern.len(), |it| open + it + 1);
            format!("invalid named capture: `{}`", &pattern[open..end])
        }
        _ if reason.starts_with("look-around") || reason.contains("flag") => {
            let open = pattern.find("(?").unwrap_or_default();
            let shown: String = pattern[open..].chars().take(3).collect();
            format!("invalid or unsupported Perl syntax: `{shown}`")
        }
        other => format!("{other}: `{part}`"),
    }
}

/// The part of the pattern that is underlined.
fn blamed(shown: &str) -> Option<&str> {
    let mut lines = shown.lines().skip(1);
    let (pattern, marks) = (lines.next()?, lines.next()?);
    let start = marks.find('^')?;
    let length = marks.len() - start;
    let from = pattern.char_indices().nth(start)?.0;
    let to = pattern.char_indices().nth(start + length);
    pattern.get(from..to.map_or(pattern.len(), |(at, _)| at))
}

/// An escape by number up to the digits that are too many.
fn escape_before<'a>(pattern: &'a str, digits: &str) -> &'a str {
    let digits = digits.trim_matches(['{', '}']);
    let at = pattern.find(digits).unwrap_or_default();
    let start = pattern[..at].rfind('\\').unwrap_or_default();
    &pattern[start..at + digits.len()]
}

//! Bearer tokens: how each kind of them is asked whom it stands for, and what is remembered.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use object::Text;
use ring::digest;

use crate::User;

/// Tokens are kept and compared as digests, so that neither a memory dump nor the time a
/// comparison takes tells anything about them.
pub type Digest = [u8; digest::SHA256_OUTPUT_LEN];

/// The digest of a token.
pub fn digest_of(token: &str) -> Digest {
    let mut out = Digest::default();
    out.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    out
}

/// A token, to whom it is shown and when.
#[derive(Clone, Copy)]
pub struct Presented<'a> {
    /// The token.
    pub token: &'a str,
    /// Its digest.
    pub digest: Digest,
    /// It has to be meant for one of these.
    pub audiences: &'a [Text],
    /// Seconds since the start of 1970.
    pub now: i64,
}

impl<'a> Presented<'a> {
    /// Shows a token.
    pub fn new(token: &'a str, audiences: &'a [Text], now: i64) -> Presented<'a> {
        let digest = digest_of(token);
        Presented {
            token,
            digest,
            audiences,
            now,
        }
    }
}

/// Whom a token stands for.
#[derive(Clone, Debug)]
pub struct Known {
    /// The user, in the group of everyone who proved who they are.
    pub user: Arc<User>,
    /// For whom the token is, of those it was shown to.
    pub audiences: Vec<Text>,
}

/// Whom a token stands for; `None` if it is of another kind. An error tells what is wrong with it.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Option<Known>, Vec<String>>> + Send + 'a>>;

/// Knows the tokens of one kind.
pub trait TokenAuthenticator: Send + Sync {
    /// Whom a token stands for.
    fn who<'a>(&'a self, presented: Presented<'a>) -> Answer<'a>;
}

/// Those of the server's own audiences that a token without any was shown to.
pub fn implied_audiences(own: &[Text], shown_to: &[Text]) -> Vec<Text> {
    own.iter()
        .filter(|audience| shown_to.contains(audience))
        .cloned()
        .collect()
}

/// Tokens that are known from the start.
pub struct StaticTokens {
    users: HashMap<Digest, Arc<User>>,
    audiences: Vec<Text>,
}

impl StaticTokens {
    /// Accepts these tokens, for the server's own audiences.
    pub fn new(
        tokens: impl IntoIterator<Item = (String, User)>,
        audiences: &[Text],
    ) -> StaticTokens {
        StaticTokens {
            users: tokens
                .into_iter()
                .map(|(token, user)| (digest_of(&token), Arc::new(user)))
                .collect(),
            audiences: audiences.to_vec(),
        }
    }
}

impl TokenAuthenticator for StaticTokens {
    fn who<'a>(&'a self, presented: Presented<'a>) -> Answer<'a> {
        let audiences = implied_audiences(&self.audiences, presented.audiences);
        let user = self.users.get(&presented.digest);
        let known = user.filter(|_| !audiences.is_empty()).map(|user| Known {
            user: Arc::clone(user),
            audiences,
        });
        Box::pin(std::future::ready(Ok(known)))
    }
}

/// What was found out about tokens, by digest. When it is full, everything is forgotten, which
/// costs every token one more look.
pub struct Cache<T> {
    entries: Mutex<HashMap<Digest, (T, i64)>>,
    entries_max: usize,
}

impl<T: Clone> Cache<T> {
    /// Remembers this many tokens.
    pub fn new(entries_max: usize) -> Cache<T> {
        Cache {
            entries: Mutex::default(),
            entries_max,
        }
    }

    /// What is known of a token.
    pub fn get(&self, digest: &Digest, now: i64) -> Option<T> {
        let entries = self.lock();
        let (known, until) = entries.get(digest)?;
        (now < *until).then(|| known.clone())
    }

    /// Remembers until some second.
    pub fn put(&self, digest: Digest, known: T, until: i64, now: i64) {
        let mut entries = self.lock();
        if entries.len() >= self.entries_max {
            entries.retain(|_, (_, until)| now < *until);
            if entries.len() >= self.entries_max {
                entries.clear();
            }
        }
        entries.insert(digest, (known, until));
    }

    /// Forgets a token.
    pub fn forget(&self, digest: &Digest) {
        self.lock().remove(digest);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Digest, (T, i64)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a file of tokens: `token,user,uid` and perhaps `"group1,group2"` on each line.
///
/// # Errors
/// In upstream's words, with the name of the file.
pub fn read_token_file(name: &str, text: &str) -> Result<Vec<(String, User)>, String> {
    let mut tokens: Vec<(String, User)> = Vec::new();
    for record in records(text)? {
        if record.len() < 3 {
            return Err(format!(
                "token file '{name}' must have at least 3 columns (token, user name, user uid), \
                 found {}",
                record.len()
            ));
        }
        if record[0].is_empty() {
            continue;
        }
        let groups: Vec<&str> = record
            .get(3)
            .map_or(Vec::new(), |groups| groups.split(',').collect());
        let user = User::authenticated(&record[1], &record[2], &groups);
        tokens.push((record[0].clone(), user));
    }
    Ok(tokens)
}

/// Lines of values with commas between them; a value in quotes may hold commas, ends of lines and
/// doubled quotes.
fn records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut records = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let mut record = Vec::new();
        loop {
            let (value, more) = match rest.strip_prefix('"') {
                Some(quoted) => quoted_value(quoted, line)?,
                None => {
                    let end = rest.find([',', '\n']).unwrap_or(rest.len());
                    let value = rest[..end].trim_end_matches('\r');
                    if value.contains('"') {
                        return Err(format!("line {line}: a quote inside of a bare value"));
                    }
                    (value.to_owned(), &rest[end..])
                }
            };
            record.push(value);
            match more.strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    rest = more.strip_prefix('\n').unwrap_or(more);
                    break;
                }
            }
        }
        line += 1;
        if record.len() > 1 || !record[0].is_empty() {
            records.push(record);
        }
    }
    Ok(records)
}

fn quoted_value(text: &str, line: usize) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let end = rest
            .find('"')
            .ok_or_else(|| format!("line {line}: a quote is not closed"))?;
        value.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                value.push('"');
                rest = more;
            }
            None => break,
        }
    }
    let rest = rest.strip_prefix('\r').unwrap_or(rest);
    if rest.is_empty() || rest.starts_with([',', '\n']) {
        return Ok((value, rest));
    }
    Err(format!("line {line}: something follows a closed quote"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_of_tokens_says() {
        let text = "a,jane,7,\"one,two\"\r\nb,joe,8\n,empty,9\n\n\"c\"\"d\",\"x,y\",\"\",g";
        let tokens = read_token_file("f", text).unwrap();
        let told: Vec<String> = tokens
            .iter()
            .map(|(token, user)| format!("{token} {} {} {:?}", user.name, user.uid, user.groups))
            .collect();
        assert_eq!(
            told,
            [
                r#"a jane 7 ["one", "two", "system:authenticated"]"#,
                r#"b joe 8 ["system:authenticated"]"#,
                r#"c"d x,y  ["g", "system:authenticated"]"#,
            ]
        );
        for wrong in ["a,b", "a,\"b,c", "a,\"b\"c,d", "a,b\"c,d"] {
            assert!(read_token_file("f", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_full_cache_forgets_and_an_old_entry_does_not_count() {
        let cache = Cache::new(2);
        let key = |text| digest_of(text);
        cache.put(key("a"), 1, 10, 0);
        assert_eq!(cache.get(&key("a"), 9), Some(1));
        assert_eq!(cache.get(&key("a"), 10), None);
        cache.put(key("b"), 2, 20, 0);
        cache.put(key("c"), 3, 20, 15);
        assert_eq!(cache.get(&key("b"), 15), Some(2));
        cache.put(key("d"), 4, 20, 15);
        assert_eq!(cache.get(&key("b"), 15), None);
        assert_eq!(cache.get(&key("d"), 15), Some(4));
        cache.forget(&key("d"));
        assert_eq!(cache.get(&key("d"), 15), None);
    }
}

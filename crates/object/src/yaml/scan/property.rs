//! Directives, tags and anchors.

use super::{Kind, Scanner};
use crate::yaml::Error;

const DIRECTIVE_DIGITS_MAX: usize = 2;

impl Scanner<'_> {
    /// Scans `%YAML 1.1` or `%TAG !handle! prefix` with the rest of its line.
    pub(super) fn scan_directive(&mut self) -> Result<Kind, Error> {
        self.skip();
        let mut name = String::new();
        while is_word(self.byte(0)) {
            self.read(&mut name);
        }
        if name.is_empty() {
            return Err(self.problem("could not find expected directive name"));
        }
        if !self.is_blank_or_end(0) {
            return Err(self.problem("found unexpected non-alphabetical character"));
        }
        self.skip_blanks();
        let kind = match name.as_str() {
            "YAML" => self.scan_version()?,
            "TAG" => self.scan_tag_directive()?,
            _ => return Err(self.problem("found unknown directive name")),
        };
        self.skip_blanks();
        self.skip_comment();
        if !self.is_break_or_end(0) {
            return Err(self.problem("did not find expected comment or line break"));
        }
        if self.is_break(0) {
            self.skip_line();
        }
        Ok(kind)
    }

    fn scan_version(&mut self) -> Result<Kind, Error> {
        let major = self.scan_version_number()?;
        if self.byte(0) != b'.' {
            return Err(self.problem("did not find expected digit or '.' character"));
        }
        self.skip();
        let minor = self.scan_version_number()?;
        Ok(Kind::Version { major, minor })
    }

    fn scan_version_number(&mut self) -> Result<u8, Error> {
        let mut number = 0;
        let mut digits = 0;
        while self.byte(0).is_ascii_digit() {
            digits += 1;
            if digits > DIRECTIVE_DIGITS_MAX {
                return Err(self.problem("found extremely long version number"));
            }
            number = number * 10 + (self.byte(0) - b'0');
            self.skip();
        }
        if digits == 0 {
            return Err(self.problem("did not find expected version number"));
        }
        Ok(number)
    }

    fn scan_tag_directive(&mut self) -> Result<Kind, Error> {
        let handle = self.scan_tag_handle()?;
        if handle.len() > 1 && !handle.ends_with('!') {
            return Err(self.problem("did not find expected '!'"));
        }
        if !self.is_blank() {
            return Err(self.problem("did not find expected whitespace"));
        }
        self.skip_blanks();
        let prefix = self.scan_tag_uri(None)?;
        if !self.is_blank_or_end(0) {
            return Err(self.problem("did not find expected whitespace or line break"));
        }
        Ok(Kind::TagDirective { handle, prefix })
    }

    /// Scans the name of an anchor or alias with the sign before it.
    pub(super) fn scan_anchor(&mut self) -> Result<String, Error> {
        self.skip();
        let mut name = String::new();
        while is_word(self.byte(0)) {
            self.read(&mut name);
        }
        let ends = self.is_blank_or_end(0)
            || matches!(
                self.byte(0),
                b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`'
            );
        if name.is_empty() || !ends {
            return Err(self.problem("did not find expected alphabetic or numeric character"));
        }
        Ok(name)
    }

    /// Scans `!local`, `!!kind`, `!handle!kind` or `!<whole>`.
    pub(super) fn scan_tag(&mut self) -> Result<Kind, Error> {
        let (mut handle, mut suffix);
        if self.byte(1) == b'<' {
            self.skip();
            self.skip();
            handle = String::new();
            suffix = self.scan_tag_uri(None)?;
            if self.byte(0) != b'>' {
                return Err(self.problem("did not find the expected '>'"));
            }
            self.skip();
        } else {
            handle = self.scan_tag_handle()?;
            if handle.len() > 1 && handle.ends_with('!') {
                suffix = self.scan_tag_uri(None)?;
            } else {
                suffix = self.scan_tag_uri(Some(&handle))?;
                handle = "!".to_owned();
                if suffix.is_empty() {
                    std::mem::swap(&mut handle, &mut suffix);
                }
            }
        }
        if !self.is_blank_or_end(0) {
            return Err(self.problem("did not find expected whitespace or line break"));
        }
        Ok(Kind::Tag { handle, suffix })
    }

    fn scan_tag_handle(&mut self) -> Result<String, Error> {
        if self.byte(0) != b'!' {
            return Err(self.problem("did not find expected '!'"));
        }
        let mut handle = String::new();
        self.read(&mut handle);
        while is_word(self.byte(0)) {
            self.read(&mut handle);
        }
        if self.byte(0) == b'!' {
            self.read(&mut handle);
        }
        Ok(handle)
    }

    /// Scans the rest of a tag behind `head`, whose exclamation mark is no part of it.
    fn scan_tag_uri(&mut self, head: Option<&str>) -> Result<String, Error> {
        let mut uri: Vec<u8> = head.map_or(&[][..], |head| &head.as_bytes()[1..]).to_vec();
        let mut found = head.is_some();
        while is_word(self.byte(0)) || b";/?:@&=+$,.!~*'()[]%".contains(&self.byte(0)) {
            match self.byte(0) {
                b'%' => uri.push(self.scan_uri_escape()?),
                byte => {
                    uri.push(byte);
                    self.skip();
                }
            }
            found = true;
        }
        if !found {
            return Err(self.problem("did not find expected tag URI"));
        }
        String::from_utf8(uri).map_err(|_| self.problem("found an incorrect trailing UTF-8 octet"))
    }

    fn scan_uri_escape(&mut self) -> Result<u8, Error> {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (Some(high), Some(low)) = (digit(self.byte(1)), digit(self.byte(2))) else {
            return Err(self.problem("did not find URI escaped octet"));
        };
        (0..3).for_each(|_| self.skip());
        Ok((high << 4 | low) as u8)
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.is_blank() {
            self.skip();
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

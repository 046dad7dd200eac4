//! Mistakes in the text: how they are told, and where reading goes on.
//!
//! Contract: the default error strategy of ANTLR 4 with cel-go's limits on it. A token too many is
//! dropped, a missing one is assumed; otherwise the rule ends and reading goes on at a token that
//! some rule around it waits for.

use super::Parser;
use crate::ast::Expr;
use crate::source::Location;
use crate::token::{Lexeme, Token, Tokens};

/// How often reading may go on after a mistake.
const RECOVERIES_MAX: u32 = 30;

/// A rule cannot go on; the mistake has been reported.
pub(super) struct Stop;

/// What may come after a rule in the one around it.
#[derive(Clone, Copy)]
pub(super) struct Follow {
    tokens: Tokens,
    /// The rule around it may end there too.
    ends: bool,
}

impl Follow {
    /// One of these must come.
    pub(super) fn then(tokens: Tokens) -> Follow {
        Follow {
            tokens,
            ends: false,
        }
    }

    /// One of these may come, or the rule around ends.
    pub(super) fn maybe(tokens: Tokens) -> Follow {
        Follow { tokens, ends: true }
    }
}

impl Parser<'_> {
    /// Reads a rule after which `follow` comes.
    pub(super) fn within(&mut self, follow: Follow, rule: impl FnOnce(&mut Self) -> Expr) -> Expr {
        self.follow.push(follow);
        let expr = rule(self);
        self.follow.pop();
        expr
    }

    /// Takes the token that is there, which the caller has looked at.
    pub(super) fn advance(&mut self) -> Lexeme {
        let lexeme = self.lexemes[self.at];
        self.is_recovering = false;
        self.at = (self.at + 1).min(self.lexemes.len() - 1);
        lexeme
    }

    /// Takes the token that must come, after which `next` comes in the same rule.
    pub(super) fn expect(&mut self, token: Token, next: Follow) -> Result<Lexeme, Stop> {
        if self.token() == token {
            return Ok(self.advance());
        }
        if !self.count_recovery() {
            return Err(Stop);
        }
        let expected = Tokens::of(&[token]);
        if self.drop_extraneous(expected) {
            return Ok(self.advance());
        }
        if self.may_follow(next, self.token()) {
            let at = self.shown(self.at);
            self.syntax(format!("missing {} at {at}", expected.expected()));
            return Ok(self.lexemes[self.at]);
        }
        self.mismatch(expected);
        Err(Stop)
    }

    /// Checks that one of the tokens comes before the parser decides what to read.
    pub(super) fn sync(&mut self, expected: Tokens) -> Result<(), Stop> {
        if expected.has(self.token()) {
            return Ok(());
        }
        if self.is_recovering || self.is_halted {
            // The mistake is known. What cannot be read ends the rule without a word.
            return Err(Stop);
        }
        if self.drop_extraneous(expected) {
            return Ok(());
        }
        self.mismatch(expected);
        Err(Stop)
    }

    /// In a loop whatever does not fit is skipped.
    pub(super) fn sync_loop(&mut self, expected: Tokens) {
        if expected.has(self.token()) || self.is_recovering || self.is_halted {
            return;
        }
        self.extraneous(expected);
        let recovery = self.recovery_set().or(expected);
        self.skip_until(recovery);
    }

    /// No alternative begins with the tokens up to the one `ahead`.
    pub(super) fn no_alternative(&mut self, ahead: usize) -> Stop {
        let last = (self.at + ahead).min(self.lexemes.len() - 1);
        let (from, to) = (self.lexemes[self.at], self.lexemes[last]);
        let end = if to.token == Token::End {
            to.start
        } else {
            to.end
        };
        let seen = self.text[from.start..end].trim_end();
        let message = match seen.strip_prefix('.') {
            Some(word @ ("true" | "false" | "null")) => {
                format!("mismatched input '{word}' expecting IDENTIFIER")
            }
            _ => format!("no viable alternative at input '{}'", escaped(seen)),
        };
        self.syntax_at(to.offset, message);
        Stop
    }

    /// The result of a rule; if it stopped, reading goes on where something waits for the token.
    pub(super) fn recovered(&mut self, parsed: Result<Expr, Stop>, offset: u32, rule: u32) -> Expr {
        parsed.unwrap_or_else(|Stop| {
            self.recover(rule);
            self.unspecified(offset)
        })
    }

    /// As [`Parser::recovered`], for the entries of a map or an object.
    pub(super) fn recover_list(&mut self, read: Result<(), Stop>) {
        if read.is_err() {
            self.recover(5);
        }
    }

    fn recover(&mut self, rule: u32) {
        if self.is_halted || !self.count_recovery() {
            return;
        }
        if self.last_failure == Some((self.at, rule)) {
            self.at = (self.at + 1).min(self.lexemes.len() - 1);
        }
        self.last_failure = Some((self.at, rule));
        let recovery = self.recovery_set();
        self.skip_until(recovery);
    }

    /// Ends reading with a message about the whole text.
    pub(super) fn halt(&mut self, message: &str) {
        if !self.is_halted {
            self.is_halted = true;
            self.issues.report(Location::NONE, message);
            self.at = self.lexemes.len() - 1;
        }
    }

    fn count_recovery(&mut self) -> bool {
        if self.recoveries == RECOVERIES_MAX && !self.is_halted {
            let message = format!("error recovery attempt limit exceeded: {RECOVERIES_MAX}");
            self.is_recovering = false;
            self.syntax(message);
            self.is_halted = true;
            self.at = self.lexemes.len() - 1;
        }
        self.recoveries += 1;
        !self.is_halted
    }

    fn drop_extraneous(&mut self, expected: Tokens) -> bool {
        let droppable = self.token() != Token::End && expected.has(self.ahead(1));
        if droppable {
            self.extraneous(expected);
            self.advance();
        }
        droppable
    }

    fn extraneous(&mut self, expected: Tokens) {
        let at = self.shown(self.at);
        self.syntax(format!(
            "extraneous input {at} expecting {}",
            expected.expected()
        ));
    }

    fn mismatch(&mut self, expected: Tokens) {
        let at = self.shown(self.at);
        self.syntax(format!(
            "mismatched input {at} expecting {}",
            expected.expected()
        ));
    }

    fn syntax(&mut self, message: String) {
        self.syntax_at(self.lexemes[self.at].offset, message);
    }

    fn syntax_at(&mut self, offset: u32, message: String) {
        if !self.is_recovering && !self.is_halted {
            self.is_recovering = true;
            self.issues
                .report_at(offset, format!("Syntax error: {message}"));
        }
    }

    fn shown(&self, at: usize) -> String {
        let lexeme = self.lexemes[at];
        match lexeme.token {
            Token::End => "'<EOF>'".to_owned(),
            _ => format!("'{}'", escaped(self.slice(lexeme))),
        }
    }

    fn recovery_set(&self) -> Tokens {
        let sets = self.follow.iter().map(|follow| follow.tokens);
        sets.fold(Tokens::of(&[]), Tokens::or)
    }

    /// Whether the token may come after `next` in this rule and those around it.
    fn may_follow(&self, next: Follow, token: Token) -> bool {
        let around = std::iter::once(&next).chain(self.follow.iter().rev());
        for follow in around {
            if follow.tokens.has(token) {
                return true;
            }
            if !follow.ends {
                return false;
            }
        }
        false
    }

    fn skip_until(&mut self, recovery: Tokens) {
        while self.token() != Token::End && !recovery.has(self.token()) {
            self.at += 1;
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\t', "\\t")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
}

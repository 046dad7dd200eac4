//! From text to tree.
//!
//! Contract: the grammar of cel-go `parser/gen/CEL.g4` with its limits. The functions here are the
//! rules of that grammar, and mistakes are reported, and recovered from, as the parser does that
//! upstream generates from it, because people see those words when a rule is refused.

mod literal;
mod macros;
mod recover;

use crate::ast::{Ast, Element, Expr, FieldEntry, Kind, Literal, MapEntry, Name};
use crate::source::{Issues, Location, Source};
use crate::token::{Lexeme, Token, Tokens, tokenize};
use recover::{Follow, Stop};

/// The longest text that is read.
const CODE_POINTS_MAX: usize = 100_000;

/// How deep one rule of the grammar may be nested in itself.
const RULE_DEPTH_MAX: u32 = 250;

/// How deep the tree may be once macros are expanded. Walks over it recurse.
const TREE_DEPTH_MAX: usize = 1_000;

/// How many nodes the tree may have; macros that copy could make it exponentially large.
const NODES_MAX: usize = 200_000;

/// Words that may name a field but no variable.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

const START_OF_PRIMARY: Tokens = Tokens::of(&[
    Token::OpenBracket,
    Token::OpenBrace,
    Token::OpenParen,
    Token::Dot,
    Token::Minus,
    Token::True,
    Token::False,
    Token::Null,
    Token::Float,
    Token::Int,
    Token::Uint,
    Token::String,
    Token::Bytes,
    Token::Identifier,
]);
const START_OF_EXPR: Tokens = START_OF_PRIMARY.or(Tokens::of(&[Token::Not]));
const START_OF_OPTIONAL: Tokens = START_OF_EXPR.or(Tokens::of(&[Token::Question]));
const RELATIONS: Tokens = Tokens::of(&[
    Token::Equals,
    Token::NotEquals,
    Token::In,
    Token::Less,
    Token::LessEquals,
    Token::GreaterEquals,
    Token::Greater,
]);
const PRODUCTS: Tokens = Tokens::of(&[Token::Star, Token::Slash, Token::Percent]);
const SUMS: Tokens = Tokens::of(&[Token::Plus, Token::Minus]);
const NOTHING: Tokens = Tokens::of(&[]);

/// Whether the macro `cel.bind` is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Bindings {
    #[default]
    Absent,
    Offered,
}

/// Parses a text, or says all that is wrong with it. `cel.bind` is there if asked for.
pub(crate) fn parse(text: &str, bindings: Bindings) -> Result<(Ast, Issues), Issues> {
    let mut issues = Issues::new(Source::new(text));
    let size = text.chars().count();
    if size > CODE_POINTS_MAX {
        let message = format!(
            "expression code point size exceeds limit: size: {size}, limit {CODE_POINTS_MAX}"
        );
        issues.report(Location::NONE, message);
        return Err(issues);
    }
    let lexemes = tokenize(text, &mut issues);
    let mut parser = Parser {
        text,
        lexemes,
        at: 0,
        issues,
        offsets: Vec::new(),
        follow: Vec::new(),
        is_recovering: false,
        is_halted: false,
        recoveries: 0,
        last_failure: None,
        depth: Depth::default(),
        has_bindings: bindings == Bindings::Offered,
    };
    let root = parser.start();
    if parser.issues.is_empty() && !is_shallow(&root) {
        parser.halt(&format!(
            "expression recursion limit exceeded: {RULE_DEPTH_MAX}"
        ));
    }
    let offsets = parser.offsets;
    match parser.issues.is_empty() {
        true => Ok((Ast { root, offsets }, parser.issues)),
        false => Err(parser.issues),
    }
}

/// Whether the tree is no deeper than walks may recurse; this walk does not.
fn is_shallow(root: &Expr) -> bool {
    let mut open = vec![(root, 1)];
    while let Some((expr, depth)) = open.pop() {
        if depth > TREE_DEPTH_MAX {
            return false;
        }
        expr.for_each_child(&mut |child| open.push((child, depth + 1)));
    }
    true
}

/// How deep each rule is nested in itself at this point.
#[derive(Clone, Copy, Default)]
struct Depth {
    expr: u32,
    relation: u32,
    calc: u32,
    member: u32,
}

struct Parser<'a> {
    text: &'a str,
    lexemes: Vec<Lexeme>,
    at: usize,
    issues: Issues,
    offsets: Vec<u32>,
    /// What may come after each rule that is being read, innermost last.
    follow: Vec<Follow>,
    /// After a mistake, until the next token that fits.
    is_recovering: bool,
    /// A limit was passed: nothing more is read or reported.
    is_halted: bool,
    recoveries: u32,
    last_failure: Option<(usize, u32)>,
    depth: Depth,
    has_bindings: bool,
}

type Parsed = Result<Expr, Stop>;

impl Parser<'_> {
    fn start(&mut self) -> Expr {
        let root = self.within(Follow::then(Tokens::of(&[Token::End])), Self::expr);
        let _ = self.expect(Token::End, Follow::then(NOTHING));
        root
    }

    fn token(&self) -> Token {
        self.lexemes[self.at].token
    }

    fn ahead(&self, by: usize) -> Token {
        let last = self.lexemes.len() - 1;
        self.lexemes[(self.at + by).min(last)].token
    }

    fn slice(&self, lexeme: Lexeme) -> &str {
        &self.text[lexeme.start..lexeme.end]
    }

    fn new_id(&mut self, offset: u32) -> u32 {
        if self.offsets.len() >= NODES_MAX {
            self.halt("expression is too large once its macros are expanded");
        }
        self.offsets.push(offset);
        (self.offsets.len() - 1) as u32
    }

    fn node(&mut self, offset: u32, kind: Kind) -> Expr {
        let id = self.new_id(offset);
        Expr { id, kind }
    }

    fn unspecified(&mut self, offset: u32) -> Expr {
        self.node(offset, Kind::Unspecified)
    }

    fn fail(&mut self, offset: u32, message: impl Into<String>) -> Expr {
        if !self.is_halted {
            self.issues.report_at(offset, message);
        }
        self.unspecified(offset)
    }

    fn call(&mut self, offset: u32, function: impl Into<Name>, arguments: Vec<Expr>) -> Expr {
        let function = function.into();
        self.node(
            offset,
            Kind::Call {
                function,
                target: None,
                arguments,
            },
        )
    }

    /// Stops when a rule is nested too deep.
    fn deepened(&mut self, depth: u32) -> bool {
        if depth > RULE_DEPTH_MAX {
            self.halt(&format!(
                "expression recursion limit exceeded: {RULE_DEPTH_MAX}"
            ));
        }
        !self.is_halted
    }

    /// `conditionalOr (? conditionalOr : expr)?`
    fn expr(&mut self) -> Expr {
        let before = self.depth;
        self.depth.expr += 1;
        let offset = self.lexemes[self.at].offset;
        let parsed = match self.deepened(self.depth.expr) {
            true => self.conditional(),
            false => Err(Stop),
        };
        self.depth = before;
        self.recovered(parsed, offset, 1)
    }

    fn conditional(&mut self) -> Parsed {
        let follow = Follow::maybe(Tokens::of(&[Token::Question]));
        let condition = self.within(follow, Self::or);
        if self.token() != Token::Question {
            return Ok(condition);
        }
        let operator = self.advance();
        let id = self.new_id(operator.offset);
        let colon = Follow::then(Tokens::of(&[Token::Colon]));
        let truthy = self.within(colon, Self::or);
        self.expect(Token::Colon, Follow::then(START_OF_EXPR))?;
        let falsy = self.within(Follow::maybe(NOTHING), Self::expr);
        let kind = Kind::Call {
            function: "_?_:_".into(),
            target: None,
            arguments: vec![condition, truthy, falsy],
        };
        Ok(Expr { id, kind })
    }

    fn or(&mut self) -> Expr {
        self.logical(Token::Or, "_||_", Self::and)
    }

    fn and(&mut self) -> Expr {
        self.logical(Token::And, "_&&_", Self::relation)
    }

    /// A chain of one operator, as a balanced tree.
    fn logical(
        &mut self,
        token: Token,
        function: &'static str,
        term: fn(&mut Self) -> Expr,
    ) -> Expr {
        let follow = Follow::maybe(Tokens::of(&[token]));
        let first = self.within(follow, term);
        let (mut terms, mut operators) = (vec![Some(first)], Vec::new());
        while self.token() == token && !self.is_halted {
            let operator = self.advance();
            let next = self.within(follow, term);
            terms.push(Some(next));
            operators.push(self.new_id(operator.offset));
        }
        match operators.len() {
            0 => terms[0].take().expect("the first term was just read"),
            count => balanced(&mut terms, &operators, function, 0, count - 1),
        }
    }

    fn relation(&mut self) -> Expr {
        let before = self.depth.relation;
        let follow = Follow::maybe(RELATIONS);
        let mut left = self.within(follow, |parser| parser.calc(0));
        while RELATIONS.has(self.token()) && !self.is_halted {
            self.depth.relation += 1;
            if !self.deepened(self.depth.relation) {
                break;
            }
            let operator = self.advance();
            let id = self.new_id(operator.offset);
            let right = self.within(follow, |parser| parser.calc(0));
            left = binary(id, operator.token, left, right);
        }
        self.depth.relation = before;
        left
    }

    /// Sums of products; `power` 1 reads a product only.
    fn calc(&mut self, power: u8) -> Expr {
        let before = self.depth.calc;
        let operators = if power == 0 {
            PRODUCTS.or(SUMS)
        } else {
            PRODUCTS
        };
        let follow = Follow::maybe(PRODUCTS.or(SUMS));
        let mut left = self.within(follow, Self::unary);
        while operators.has(self.token()) && !self.is_halted {
            self.depth.calc += 1;
            if !self.deepened(self.depth.calc) {
                break;
            }
            let operator = self.advance();
            let id = self.new_id(operator.offset);
            let right = match SUMS.has(operator.token) {
                true => self.within(follow, |parser| parser.calc(1)),
                false => self.within(follow, Self::unary),
            };
            left = binary(id, operator.token, left, right);
        }
        self.depth.calc = before;
        left
    }

    fn unary(&mut self) -> Expr {
        let offset = self.lexemes[self.at].offset;
        let parsed = self.unary_or_stop();
        self.recovered(parsed, offset, 2)
    }

    fn unary_or_stop(&mut self) -> Parsed {
        self.sync(START_OF_EXPR)?;
        let first = self.lexemes[self.at];
        let (function, starts) = match first.token {
            Token::Not => ("!_", START_OF_EXPR),
            Token::Minus if !matches!(self.ahead(1), Token::Int | Token::Float) => {
                if !START_OF_PRIMARY.has(self.ahead(1)) {
                    return Err(self.no_alternative(1));
                }
                ("-_", START_OF_PRIMARY)
            }
            _ => return Ok(self.within(Follow::maybe(NOTHING), Self::member)),
        };
        let mut count = 0;
        while self.token() == first.token {
            self.advance();
            count += 1;
            self.sync_loop(starts);
        }
        let id = (count % 2 == 1).then(|| self.new_id(first.offset));
        let operand = self.within(Follow::maybe(NOTHING), Self::member);
        Ok(match id {
            None => operand,
            Some(id) => Expr {
                id,
                kind: Kind::Call {
                    function: function.into(),
                    target: None,
                    arguments: vec![operand],
                },
            },
        })
    }

    fn member(&mut self) -> Expr {
        let before = self.depth.member;
        let offset = self.lexemes[self.at].offset;
        let follow = Follow::maybe(Tokens::of(&[Token::Dot, Token::OpenBracket]));
        let mut operand = self.within(follow, Self::primary);
        while !self.is_halted {
            let step = match self.token() {
                Token::Dot => self.select_or_call(&mut operand),
                Token::OpenBracket => self.index(&mut operand),
                _ => break,
            };
            self.depth.member += 1;
            if let Err(stop) = step {
                operand = self.recovered(Err(stop), offset, 3);
                break;
            }
            if !self.deepened(self.depth.member) {
                break;
            }
        }
        self.depth.member = before;
        operand
    }

    fn take(&mut self, operand: &mut Expr) -> Box<Expr> {
        let empty = Expr {
            id: operand.id,
            kind: Kind::Unspecified,
        };
        Box::new(std::mem::replace(operand, empty))
    }

    fn select_or_call(&mut self, operand: &mut Expr) -> Result<(), Stop> {
        match self.ahead(1) {
            Token::Identifier if self.ahead(2) == Token::OpenParen => {
                return self.member_call(operand);
            }
            Token::Question | Token::Identifier | Token::EscapedIdentifier => {}
            _ => return Err(self.no_alternative(1)),
        }
        let dot = self.advance();
        let optional = self.token() == Token::Question;
        if optional {
            self.advance();
        }
        let (field, at) = self.field_name()?;
        let target = self.take(operand);
        *operand = if optional {
            let name = self.node(at, Kind::Literal(Literal::String(field)));
            self.call(dot.offset, "_?._", vec![*target, name])
        } else {
            let kind = Kind::Select {
                operand: target,
                field: field.into(),
                test_only: false,
            };
            self.node(dot.offset, kind)
        };
        Ok(())
    }

    /// The name of a field and its place.
    fn field_name(&mut self) -> Result<(String, u32), Stop> {
        let names = Tokens::of(&[Token::Identifier, Token::EscapedIdentifier]);
        self.sync(names)?;
        let name = self.advance();
        if name.token == Token::EscapedIdentifier {
            self.fail(name.offset, "unsupported syntax: '`'");
        }
        Ok((self.slice(name).to_owned(), name.offset))
    }

    fn member_call(&mut self, operand: &mut Expr) -> Result<(), Stop> {
        self.advance();
        let name = self.advance();
        let function = self.slice(name).to_owned();
        let (open, arguments) = self.arguments()?;
        let target = self.take(operand);
        *operand = self.call_or_macro(open, function, Some(target), arguments);
        Ok(())
    }

    /// `( expr, expr )` with the place of the parenthesis.
    fn arguments(&mut self) -> Result<(u32, Vec<Expr>), Stop> {
        let open = self.advance();
        let close = Tokens::of(&[Token::CloseParen]);
        self.sync(START_OF_EXPR.or(close))?;
        let mut arguments = Vec::new();
        if START_OF_EXPR.has(self.token()) {
            self.follow.push(Follow::then(close));
            let follow = Follow::maybe(Tokens::of(&[Token::Comma]));
            arguments.push(self.within(follow, Self::expr));
            while self.token() == Token::Comma && !self.is_halted {
                self.advance();
                arguments.push(self.within(follow, Self::expr));
            }
            self.follow.pop();
        }
        self.expect(Token::CloseParen, Follow::maybe(NOTHING))?;
        Ok((open.offset, arguments))
    }

    fn index(&mut self, operand: &mut Expr) -> Result<(), Stop> {
        let open = self.advance();
        self.sync(START_OF_OPTIONAL)?;
        let optional = self.token() == Token::Question;
        if optional {
            self.advance();
        }
        let close = Follow::then(Tokens::of(&[Token::CloseBracket]));
        let index = self.within(close, Self::expr);
        self.expect(Token::CloseBracket, Follow::maybe(NOTHING))?;
        let target = self.take(operand);
        let function = if optional { "_[?_]" } else { "_[_]" };
        *operand = self.call(open.offset, function, vec![*target, index]);
        Ok(())
    }

    fn primary(&mut self) -> Expr {
        let offset = self.lexemes[self.at].offset;
        let parsed = self.primary_or_stop();
        self.recovered(parsed, offset, 4)
    }

    fn primary_or_stop(&mut self) -> Parsed {
        self.sync(START_OF_PRIMARY)?;
        match self.token() {
            Token::Dot | Token::Identifier => self.named(),
            Token::OpenParen => {
                self.advance();
                let close = Follow::then(Tokens::of(&[Token::CloseParen]));
                let inner = self.within(close, Self::expr);
                self.expect(Token::CloseParen, Follow::maybe(NOTHING))?;
                Ok(inner)
            }
            Token::OpenBracket => self.list(),
            Token::OpenBrace => self.map(),
            Token::Minus if !matches!(self.ahead(1), Token::Int | Token::Float) => {
                Err(self.no_alternative(1))
            }
            _ => Ok(self.literal()),
        }
    }

    /// A variable, a call or an object: what begins with a name.
    fn named(&mut self) -> Parsed {
        let dotted = self.token() == Token::Dot;
        if dotted && self.ahead(1) != Token::Identifier {
            return Err(self.no_alternative(1));
        }
        let mut ahead = usize::from(dotted) + 1;
        while self.ahead(ahead) == Token::Dot && self.ahead(ahead + 1) == Token::Identifier {
            ahead += 2;
        }
        if self.ahead(ahead) == Token::OpenBrace {
            return self.object(dotted);
        }
        if dotted {
            self.advance();
        }
        let name = self.advance();
        let word = self.slice(name).to_owned();
        let full = if dotted {
            format!(".{word}")
        } else {
            word.clone()
        };
        let start = name.offset;
        if self.token() != Token::OpenParen {
            if RESERVED.contains(&word.as_str()) {
                return Ok(self.fail(start, format!("reserved identifier: {word}")));
            }
            return Ok(self.node(start, Kind::Ident(full.into())));
        }
        let (open, arguments) = self.arguments()?;
        if RESERVED.contains(&word.as_str()) {
            return Ok(self.fail(start, format!("reserved identifier: {word}")));
        }
        Ok(self.call_or_macro(open, full, None, arguments))
    }

    fn object(&mut self, dotted: bool) -> Parsed {
        let mut name = String::new();
        if dotted {
            self.advance();
            name.push('.');
        }
        while self.token() != Token::OpenBrace {
            let part = self.advance();
            name.push_str(self.slice(part));
        }
        let open = self.advance();
        let id = self.new_id(open.offset);
        let starts = Tokens::of(&[Token::Question, Token::Identifier, Token::EscapedIdentifier]);
        let after = Tokens::of(&[Token::Comma, Token::CloseBrace]);
        self.sync(starts.or(after))?;
        self.follow.push(Follow::then(after));
        let mut fields = Vec::new();
        let mut read = Ok(());
        while read.is_ok() && starts.has(self.token()) && !self.is_halted {
            read = self.object_field(&mut fields);
            if self.token() != Token::Comma || !starts.has(self.ahead(1)) {
                break;
            }
            self.advance();
        }
        self.recover_list(read);
        self.follow.pop();
        self.close(Token::CloseBrace)?;
        let kind = Kind::Struct { name, fields };
        Ok(Expr { id, kind })
    }

    fn object_field(&mut self, fields: &mut Vec<FieldEntry>) -> Result<(), Stop> {
        let optional = self.token() == Token::Question;
        if optional {
            self.advance();
        }
        let (field, _) = self.field_name()?;
        let colon = self.expect(Token::Colon, Follow::then(START_OF_EXPR))?;
        let id = self.new_id(colon.offset);
        let follow = Follow::maybe(Tokens::of(&[Token::Comma]));
        let value = self.within(follow, Self::expr);
        fields.push(FieldEntry {
            id,
            field,
            value,
            optional,
        });
        Ok(())
    }

    fn list(&mut self) -> Parsed {
        let open = self.advance();
        let id = self.new_id(open.offset);
        let after = Tokens::of(&[Token::Comma, Token::CloseBracket]);
        self.sync(START_OF_OPTIONAL.or(after))?;
        self.follow.push(Follow::then(after));
        let mut elements = Vec::new();
        while START_OF_OPTIONAL.has(self.token()) && !self.is_halted {
            let optional = self.token() == Token::Question;
            if optional {
                self.advance();
            }
            let follow = Follow::maybe(Tokens::of(&[Token::Comma]));
            let value = self.within(follow, Self::expr);
            elements.push(Element { value, optional });
            if self.token() != Token::Comma || !START_OF_OPTIONAL.has(self.ahead(1)) {
                break;
            }
            self.advance();
        }
        self.follow.pop();
        self.close(Token::CloseBracket)?;
        let kind = Kind::List(elements);
        Ok(Expr { id, kind })
    }

    /// A trailing comma and the closing bracket.
    fn close(&mut self, token: Token) -> Result<(), Stop> {
        self.sync(Tokens::of(&[Token::Comma, token]))?;
        if self.token() == Token::Comma {
            self.advance();
        }
        self.expect(token, Follow::maybe(NOTHING))?;
        Ok(())
    }

    fn map(&mut self) -> Parsed {
        let open = self.advance();
        let id = self.new_id(open.offset);
        let after = Tokens::of(&[Token::Comma, Token::CloseBrace]);
        self.sync(START_OF_OPTIONAL.or(after))?;
        self.follow.push(Follow::then(after));
        let mut entries = Vec::new();
        let mut read = Ok(());
        while read.is_ok() && START_OF_OPTIONAL.has(self.token()) && !self.is_halted {
            read = self.map_entry(&mut entries);
            if self.token() != Token::Comma || !START_OF_OPTIONAL.has(self.ahead(1)) {
                break;
            }
            self.advance();
        }
        self.recover_list(read);
        self.follow.pop();
        self.close(Token::CloseBrace)?;
        let kind = Kind::Map(entries);
        Ok(Expr { id, kind })
    }

    fn map_entry(&mut self, entries: &mut Vec<MapEntry>) -> Result<(), Stop> {
        let optional = self.token() == Token::Question;
        if optional {
            self.advance();
        }
        let key = self.within(Follow::then(Tokens::of(&[Token::Colon])), Self::expr);
        self.expect(Token::Colon, Follow::then(START_OF_EXPR))?;
        let follow = Follow::maybe(Tokens::of(&[Token::Comma]));
        let value = self.within(follow, Self::expr);
        entries.push(MapEntry {
            key,
            value,
            optional,
        });
        Ok(())
    }

    fn literal(&mut self) -> Expr {
        let first = self.advance();
        let (token, text) = match first.token {
            Token::Minus => {
                let number = self.advance();
                (number.token, format!("-{}", self.slice(number)))
            }
            token => (token, self.slice(first).to_owned()),
        };
        match literal::read(token, &text) {
            Ok(literal) => self.node(first.offset, Kind::Literal(literal)),
            Err(message) => self.fail(first.offset, message),
        }
    }
}

fn balanced(
    terms: &mut [Option<Expr>],
    operators: &[u32],
    function: &'static str,
    low: usize,
    high: usize,
) -> Expr {
    let middle = (low + high).div_ceil(2);
    let mut side = |at: usize, bounds: Option<(usize, usize)>| match bounds {
        None => terms[at].take().expect("each term is used once"),
        Some((low, high)) => balanced(terms, operators, function, low, high),
    };
    let left = side(middle, (middle != low).then(|| (low, middle - 1)));
    let right = side(middle + 1, (middle != high).then_some((middle + 1, high)));
    Expr {
        id: operators[middle],
        kind: Kind::Call {
            function: function.into(),
            target: None,
            arguments: vec![left, right],
        },
    }
}

fn binary(id: u32, operator: Token, left: Expr, right: Expr) -> Expr {
    let function = match operator {
        Token::Equals => "_==_",
        Token::NotEquals => "_!=_",
        Token::In => "@in",
        Token::Less => "_<_",
        Token::LessEquals => "_<=_",
        Token::GreaterEquals => "_>=_",
        Token::Greater => "_>_",
        Token::Plus => "_+_",
        Token::Minus => "_-_",
        Token::Star => "_*_",
        Token::Slash => "_/_",
        _ => "_%_",
    };
    Expr {
        id,
        kind: Kind::Call {
            function: function.into(),
            target: None,
            arguments: vec![left, right],
        },
    }
}

//! From tokens to nodes: the grammar.
//!
//! Contract: `go.yaml.in/yaml/v2`. The grammar is a machine with a stack of its own, so depth costs
//! heap and never stack. Only the first document is read; what follows it is not even scanned.

use std::collections::HashMap;

use super::Error;
use super::scan::{Kind, Scanner, Token};

/// The long form of the `!!` handle.
pub(super) const TAG_PREFIX: &str = "tag:yaml.org,2002:";

/// A node of the document, with the line (from zero) it begins on.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) content: Content,
}

/// What a node is; children are indices into the document.
#[derive(Debug)]
pub(super) enum Content {
    Scalar(Scalar),
    Sequence(Vec<usize>),
    /// Keys and values in turn.
    Mapping(Vec<usize>),
    Alias {
        name: String,
        target: usize,
    },
}

/// A scalar as it was written.
#[derive(Debug, Default)]
pub(super) struct Scalar {
    pub(super) text: String,
    /// The whole tag, empty if there is none.
    pub(super) tag: String,
    /// Whether its look decides what it means.
    pub(super) is_implicit: bool,
}

/// Parses the first document. Its root is the first node; no node means an empty stream.
pub(super) fn document(text: &str) -> Result<Vec<Node>, Error> {
    let mut parser = Parser {
        scanner: Scanner::new(text),
        tag_handles: HashMap::new(),
        states: Vec::new(),
        nodes: Vec::new(),
        open: Vec::new(),
        anchors: HashMap::new(),
    };
    if parser.start_document()? {
        while let Some(state) = parser.states.pop() {
            parser.step(state)?;
        }
        parser.scanner.peek()?;
    }
    Ok(parser.nodes)
}

/// What is expected next.
#[derive(Clone, Copy)]
enum State {
    BlockNode,
    DocumentContent,
    BlockSequenceFirst,
    BlockSequenceNext,
    IndentlessSequenceNext,
    BlockMappingFirst,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequenceFirst,
    FlowSequenceNext,
    FlowPairKey,
    FlowPairValue,
    FlowPairEnd,
    FlowMappingFirst,
    FlowMappingNext,
    FlowMappingValue,
    FlowMappingEmptyValue,
}

/// What kinds of node may stand at a place.
#[derive(Clone, Copy, PartialEq)]
enum Allowed {
    Flow,
    Block,
    BlockOrIndentless,
}

#[derive(Default)]
struct Properties {
    anchor: Option<String>,
    tag: String,
    is_present: bool,
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    tag_handles: HashMap<String, String>,
    states: Vec<State>,
    nodes: Vec<Node>,
    /// The collections that are not finished.
    open: Vec<usize>,
    anchors: HashMap<String, usize>,
}

impl Parser<'_> {
    /// Reads directives and the start of the first document; false if there is none.
    fn start_document(&mut self) -> Result<bool, Error> {
        match self.scanner.peek()?.kind {
            Kind::StreamEnd => return Ok(false),
            Kind::Version { .. } | Kind::TagDirective { .. } | Kind::DocumentStart => {
                self.read_directives()?;
                let line = self.scanner.peek()?.line;
                if !matches!(self.scanner.peek()?.kind, Kind::DocumentStart) {
                    return Err(problem("did not find expected <document start>", line));
                }
                self.scanner.take();
                self.states.push(State::DocumentContent);
            }
            _ => self.states.push(State::BlockNode),
        }
        for (handle, prefix) in [("!", "!"), ("!!", TAG_PREFIX)] {
            self.tag_handles
                .entry(handle.to_owned())
                .or_insert_with(|| prefix.to_owned());
        }
        Ok(true)
    }

    fn read_directives(&mut self) -> Result<(), Error> {
        let mut has_version = false;
        loop {
            let line = self.scanner.peek()?.line;
            match self.scanner.peek()?.kind {
                Kind::Version { major, minor } => {
                    if has_version {
                        return Err(problem("found duplicate %YAML directive", line));
                    }
                    if (major, minor) != (1, 1) {
                        return Err(problem("found incompatible YAML document", line));
                    }
                    has_version = true;
                    self.scanner.take();
                }
                Kind::TagDirective { .. } => {
                    if let Some(Token {
                        kind: Kind::TagDirective { handle, prefix },
                        ..
                    }) = self.scanner.take()
                        && self.tag_handles.insert(handle, prefix).is_some()
                    {
                        return Err(problem("found duplicate %TAG directive", line));
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    fn step(&mut self, state: State) -> Result<(), Error> {
        match state {
            State::BlockNode => self.node(Allowed::Block),
            State::DocumentContent => self.document_content(),
            State::BlockSequenceFirst => {
                self.scanner.take();
                self.block_sequence_entry()
            }
            State::BlockSequenceNext => self.block_sequence_entry(),
            State::IndentlessSequenceNext => self.indentless_sequence_entry(),
            State::BlockMappingFirst => {
                self.scanner.take();
                self.block_mapping_key()
            }
            State::BlockMappingKey => self.block_mapping_key(),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceFirst => {
                self.scanner.take();
                self.flow_sequence_entry()
            }
            State::FlowSequenceNext => self.flow_sequence_separator(),
            State::FlowPairKey => self.flow_pair_key(),
            State::FlowPairValue => self.flow_pair_value(),
            State::FlowPairEnd => {
                self.close();
                self.states.push(State::FlowSequenceNext);
                Ok(())
            }
            State::FlowMappingFirst => {
                self.scanner.take();
                self.flow_mapping_key()
            }
            State::FlowMappingNext => self.flow_mapping_separator(),
            State::FlowMappingValue => self.flow_mapping_value(),
            State::FlowMappingEmptyValue => {
                let line = self.scanner.peek()?.line;
                self.states.push(State::FlowMappingNext);
                self.empty(line);
                Ok(())
            }
        }
    }

    fn document_content(&mut self) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        match token.kind {
            Kind::Version { .. }
            | Kind::TagDirective { .. }
            | Kind::DocumentStart
            | Kind::DocumentEnd
            | Kind::StreamEnd => {
                let line = token.line;
                self.empty(line);
                Ok(())
            }
            _ => self.node(Allowed::Block),
        }
    }

    /// Reads one node; a collection is only opened.
    fn node(&mut self, allowed: Allowed) -> Result<(), Error> {
        let line = self.scanner.peek()?.line;
        if matches!(self.scanner.peek()?.kind, Kind::Alias(_)) {
            return self.alias(line);
        }
        let properties = self.properties()?;
        let token = self.scanner.peek()?;
        let is_block = allowed != Allowed::Flow;
        let (content, state) = match token.kind {
            Kind::Scalar { .. } => return self.scalar(line, properties),
            Kind::BlockEntry if allowed == Allowed::BlockOrIndentless => {
                (Content::Sequence(Vec::new()), State::IndentlessSequenceNext)
            }
            Kind::FlowSequenceStart => (Content::Sequence(Vec::new()), State::FlowSequenceFirst),
            Kind::FlowMappingStart => (Content::Mapping(Vec::new()), State::FlowMappingFirst),
            Kind::BlockSequenceStart if is_block => {
                (Content::Sequence(Vec::new()), State::BlockSequenceFirst)
            }
            Kind::BlockMappingStart if is_block => {
                (Content::Mapping(Vec::new()), State::BlockMappingFirst)
            }
            _ if properties.is_present => {
                let is_implicit = properties.tag.is_empty();
                let scalar = Scalar {
                    text: String::new(),
                    tag: properties.tag,
                    is_implicit,
                };
                self.add(line, Content::Scalar(scalar), properties.anchor);
                return Ok(());
            }
            _ => return Err(problem("did not find expected node content", token.line)),
        };
        let node = self.add(line, content, properties.anchor);
        self.open.push(node);
        self.states.push(state);
        Ok(())
    }

    fn alias(&mut self, line: usize) -> Result<(), Error> {
        let Some(Token {
            kind: Kind::Alias(name),
            ..
        }) = self.scanner.take()
        else {
            return Ok(());
        };
        match self.anchors.get(&name) {
            Some(&target) => {
                self.add(line, Content::Alias { name, target }, None);
                Ok(())
            }
            None => Err(Error::Document {
                problem: format!("unknown anchor '{name}' referenced"),
            }),
        }
    }

    /// Reads an anchor and a tag, in either order.
    fn properties(&mut self) -> Result<Properties, Error> {
        let mut properties = Properties::default();
        let mut has_tag = false;
        loop {
            let token = self.scanner.peek()?;
            let line = token.line;
            match token.kind {
                Kind::Anchor(_) if properties.anchor.is_none() => {
                    if let Some(Token {
                        kind: Kind::Anchor(name),
                        ..
                    }) = self.scanner.take()
                    {
                        properties.anchor = Some(name);
                    }
                }
                Kind::Tag { .. } if !has_tag => {
                    has_tag = true;
                    if let Some(Token {
                        kind: Kind::Tag { handle, suffix },
                        ..
                    }) = self.scanner.take()
                    {
                        properties.tag = self.whole_tag(&handle, suffix, line)?;
                    }
                }
                _ => break,
            }
        }
        properties.is_present = properties.anchor.is_some() || !properties.tag.is_empty();
        Ok(properties)
    }

    fn whole_tag(&self, handle: &str, suffix: String, line: usize) -> Result<String, Error> {
        if handle.is_empty() {
            return Ok(suffix);
        }
        match self.tag_handles.get(handle) {
            Some(prefix) => Ok(format!("{prefix}{suffix}")),
            None => Err(problem("found undefined tag handle", line)),
        }
    }

    fn scalar(&mut self, line: usize, properties: Properties) -> Result<(), Error> {
        let Some(Token {
            kind: Kind::Scalar { text, is_plain },
            ..
        }) = self.scanner.take()
        else {
            return Ok(());
        };
        let tag = properties.tag;
        let is_implicit = if tag.is_empty() { is_plain } else { tag == "!" };
        self.add(
            line,
            Content::Scalar(Scalar {
                text,
                tag,
                is_implicit,
            }),
            properties.anchor,
        );
        Ok(())
    }

    fn block_sequence_entry(&mut self) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        match token.kind {
            Kind::BlockEntry => {
                self.scanner.take();
                self.states.push(State::BlockSequenceNext);
                match self.scanner.peek()?.kind {
                    Kind::BlockEntry | Kind::BlockEnd => {
                        self.empty(line);
                        Ok(())
                    }
                    _ => self.node(Allowed::Block),
                }
            }
            Kind::BlockEnd => {
                self.scanner.take();
                self.close();
                Ok(())
            }
            _ => Err(problem("did not find expected '-' indicator", line)),
        }
    }

    fn indentless_sequence_entry(&mut self) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        if !matches!(token.kind, Kind::BlockEntry) {
            self.close();
            return Ok(());
        }
        self.scanner.take();
        self.states.push(State::IndentlessSequenceNext);
        match self.scanner.peek()?.kind {
            Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd => {
                self.empty(line);
                Ok(())
            }
            _ => self.node(Allowed::Block),
        }
    }

    fn block_mapping_key(&mut self) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        match token.kind {
            Kind::Key => {
                self.scanner.take();
                self.states.push(State::BlockMappingValue);
                self.block_node_or_empty(line)
            }
            Kind::BlockEnd => {
                self.scanner.take();
                self.close();
                Ok(())
            }
            _ => Err(problem("did not find expected key", line)),
        }
    }

    fn block_mapping_value(&mut self) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        let is_value = matches!(token.kind, Kind::Value);
        self.states.push(State::BlockMappingKey);
        if !is_value {
            self.empty(line);
            return Ok(());
        }
        self.scanner.take();
        self.block_node_or_empty(line)
    }

    fn block_node_or_empty(&mut self, line: usize) -> Result<(), Error> {
        match self.scanner.peek()?.kind {
            Kind::Key | Kind::Value | Kind::BlockEnd => {
                self.empty(line);
                Ok(())
            }
            _ => self.node(Allowed::BlockOrIndentless),
        }
    }

    fn flow_sequence_separator(&mut self) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        match token.kind {
            Kind::FlowSequenceEnd => {}
            Kind::FlowEntry => {
                self.scanner.take();
            }
            _ => return Err(problem("did not find expected ',' or ']'", token.line)),
        }
        self.flow_sequence_entry()
    }

    fn flow_sequence_entry(&mut self) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        match token.kind {
            Kind::FlowSequenceEnd => {
                self.scanner.take();
                self.close();
                Ok(())
            }
            Kind::Key => {
                self.scanner.take();
                let pair = self.add(line, Content::Mapping(Vec::new()), None);
                self.open.push(pair);
                self.states.push(State::FlowPairKey);
                Ok(())
            }
            _ => {
                self.states.push(State::FlowSequenceNext);
                self.node(Allowed::Flow)
            }
        }
    }

    fn flow_pair_key(&mut self) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        let line = token.line;
        self.states.push(State::FlowPairValue);
        match token.kind {
            Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd => {
                // The token is passed, so `[? ]` never finds its end, as upstream.
                self.scanner.take();
                self.empty(line);
                Ok(())
            }
            _ => self.node(Allowed::Flow),
        }
    }

    fn flow_pair_value(&mut self) -> Result<(), Error> {
        self.states.push(State::FlowPairEnd);
        self.flow_value(|kind| matches!(kind, Kind::FlowEntry | Kind::FlowSequenceEnd))
    }

    fn flow_mapping_separator(&mut self) -> Result<(), Error> {
        let token = self.scanner.peek()?;
        match token.kind {
            Kind::FlowMappingEnd => {}
            Kind::FlowEntry => {
                self.scanner.take();
            }
            _ => return Err(problem("did not find expected ',' or '}'", token.line)),
        }
        self.flow_mapping_key()
    }

    fn flow_mapping_key(&mut self) -> Result<(), Error> {
        match self.scanner.peek()?.kind {
            Kind::FlowMappingEnd => {
                self.scanner.take();
                self.close();
                Ok(())
            }
            Kind::Key => {
                self.scanner.take();
                self.states.push(State::FlowMappingValue);
                let token = self.scanner.peek()?;
                match token.kind {
                    Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd => {
                        let line = token.line;
                        self.empty(line);
                        Ok(())
                    }
                    _ => self.node(Allowed::Flow),
                }
            }
            _ => {
                self.states.push(State::FlowMappingEmptyValue);
                self.node(Allowed::Flow)
            }
        }
    }

    fn flow_mapping_value(&mut self) -> Result<(), Error> {
        self.states.push(State::FlowMappingNext);
        self.flow_value(|kind| matches!(kind, Kind::FlowEntry | Kind::FlowMappingEnd))
    }

    /// Reads a colon with the node after it; either may be missing.
    fn flow_value(&mut self, ends: fn(&Kind) -> bool) -> Result<(), Error> {
        if matches!(self.scanner.peek()?.kind, Kind::Value) {
            self.scanner.take();
            if !ends(&self.scanner.peek()?.kind) {
                return self.node(Allowed::Flow);
            }
        }
        let line = self.scanner.peek()?.line;
        self.empty(line);
        Ok(())
    }

    fn empty(&mut self, line: usize) {
        let scalar = Scalar {
            is_implicit: true,
            ..Scalar::default()
        };
        self.add(line, Content::Scalar(scalar), None);
    }

    /// Adds a node to the document and to the collection that is open.
    fn add(&mut self, line: usize, content: Content, anchor: Option<String>) -> usize {
        let node = self.nodes.len();
        if let Some(&parent) = self.open.last()
            && let Content::Sequence(children) | Content::Mapping(children) =
                &mut self.nodes[parent].content
        {
            children.push(node);
        }
        if let Some(name) = anchor {
            self.anchors.insert(name, node);
        }
        self.nodes.push(Node { line, content });
        node
    }

    fn close(&mut self) {
        self.open.pop();
    }
}

/// An error at a token. Upstream counts the lines of these from zero and tells no line zero.
#[cold]
fn problem(problem: &'static str, line: usize) -> Error {
    let line = Some(line).filter(|line| *line > 0);
    Error::Syntax {
        line,
        problem: problem.into(),
    }
}

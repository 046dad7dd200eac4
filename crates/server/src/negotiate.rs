//! Content negotiation: which representation an answer has and which a body has.
//!
//! Contract: a router in front of the handlers looks at bare media types only; the handlers then
//! weigh parameters such as `as=Table`. The texts of 406 and 415 tell which of the two refused.
//! Custom resources have no such router, and metadata is shown in protobuf whatever the kind.

use resources::Error;
use resources::body::Media;
use resources::error::Subject;

use crate::answer::Failure;

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Representation {
    pub media: Media,
    pub pretty: bool,
    pub shape: Shape,
}

/// What the answer holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The object or list itself.
    #[default]
    Object,
    /// A table of them.
    Table(MetaVersion),
    /// Their metadata.
    Metadata(MetaVersion),
    /// The metadata of a list.
    MetadataList(MetaVersion),
}

/// The version of the meta types in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What an endpoint can answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Whether answers may be tables.
    pub tables: bool,
    /// Whether answers may be metadata alone.
    pub metadata: bool,
    /// Whether the router knows plain text, which is what a log is though nobody negotiates it.
    pub plain_text: bool,
    /// Whether whole objects are protobuf on request.
    pub protobuf: bool,
    /// Whether a router looks at the media types first.
    pub router: bool,
    /// Whether the endpoint streams.
    pub stream: Stream,
}

/// Whether an endpoint streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Never.
    No,
    /// Lists may be watched.
    Offered,
}

/// The answer's representation cannot be agreed on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotAcceptable {
    /// No media type of the header is known at all.
    Unknown(Offer),
    /// Known, but not with these parameters.
    Parameters,
    /// Known, but not as a stream.
    Stream,
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The text behind 406 and 415 for bodies of built-in kinds.
pub(crate) const BODY_TYPES: &str =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const PLAIN_TEXT: &str = "text/plain";
const PLAIN_TEXT_FIRST: &str = "text/plain, ";
/// What events are sent as.
const STREAM_TYPES: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

impl NotAcceptable {
    pub(crate) fn message(&self) -> String {
        match self {
            NotAcceptable::Unknown(offer) => {
                let first = if offer.plain_text {
                    PLAIN_TEXT_FIRST
                } else {
                    ""
                };
                let mut text = format!(
                    "406: Not Acceptable\n\nAvailable representations: {first}{BODY_TYPES}"
                );
                if offer.stream != Stream::No {
                    text.push_str(", ");
                    text.push_str(STREAM_TYPES);
                }
                text
            }
            NotAcceptable::Parameters => {
                format!("only the following media types are accepted: {BODY_TYPES}")
            }
            NotAcceptable::Stream => {
                format!("only the following media types are accepted: {STREAM_TYPES}")
            }
        }
    }
}

/// Picks the representation of an answer.
pub(crate) fn accept(header: Option<&str>, offer: Offer) -> Result<Representation, NotAcceptable> {
    let header = header.unwrap_or_default().trim();
    if header.is_empty() {
        return Ok(Representation::default());
    }
    let clauses = clauses(header);
    let known = |clause: &Clause<'_>| {
        known_to_router(clause.media) || (offer.plain_text && clause.media == PLAIN_TEXT)
    };
    if offer.router && !clauses.iter().any(known) {
        return Err(NotAcceptable::Unknown(offer));
    }
    clauses
        .iter()
        .find_map(|clause| clause.representation(offer))
        .ok_or(NotAcceptable::Parameters)
}

/// How the discovery document that tells everything at once is wanted, if any clause asks for it;
/// it is preferred to all plain ones.
pub(crate) fn wants_aggregated(header: Option<&str>) -> Option<Media> {
    let parameters = [
        ("as", "APIGroupDiscoveryList"),
        ("g", "apidiscovery.k8s.io"),
        ("v", "v2"),
    ];
    clauses(header.unwrap_or_default())
        .iter()
        .filter(|clause| {
            let mut asked = parameters.iter();
            asked.all(|(name, value)| clause.parameter(name) == *value)
        })
        .find_map(|clause| match clause.media {
            JSON | "application/*" | "*/*" => Some(Media::Json),
            YAML => Some(Media::Yaml),
            PROTOBUF => Some(Media::Protobuf),
            _ => None,
        })
}

/// Picks the representation of a failure, which takes no parameters: JSON unless a clause asks
/// plainly for something else.
pub(crate) fn accept_failure(header: Option<&str>) -> Option<Representation> {
    let header = header.unwrap_or_default().trim();
    if header.is_empty() {
        return Some(Representation::default());
    }
    let offer = Offer {
        tables: false,
        metadata: false,
        plain_text: false,
        protobuf: true,
        router: false,
        stream: Stream::No,
    };
    clauses(header)
        .iter()
        .find_map(|clause| clause.representation(offer))
}

fn known_to_router(media: &str) -> bool {
    matches!(media, JSON | YAML | PROTOBUF | "*/*")
}

struct Clause<'a> {
    media: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

/// The clauses of an Accept header, best first; equal ones keep their order.
fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header
        .split(',')
        .filter(|clause| !clause.trim().is_empty())
        .map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let mut quality = 1.0;
            let mut parameters = Vec::new();
            for part in parts {
                let (key, value) = part.split_once('=').unwrap_or((part, ""));
                if key == "q" {
                    quality = value.parse().unwrap_or(1.0);
                } else {
                    parameters.push((key, value));
                }
            }
            Clause {
                media,
                parameters,
                quality,
            }
        })
        .collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

impl Clause<'_> {
    fn parameter(&self, name: &str) -> &str {
        let found = self.parameters.iter().find(|(key, _)| *key == name);
        found.map_or("", |(_, value)| value)
    }

    fn representation(&self, offer: Offer) -> Option<Representation> {
        let offered = [
            (Media::Json, JSON),
            (Media::Yaml, YAML),
            (Media::Protobuf, PROTOBUF),
        ];
        offered.into_iter().find_map(|(media, name)| {
            let matches = self.media == name || matches!(self.media, "*/*" | "*" | "application/*");
            matches
                .then(|| self.with_parameters(media, offer))
                .flatten()
        })
    }

    fn with_parameters(&self, media: Media, offer: Offer) -> Option<Representation> {
        match self.parameter("stream") {
            "" => {}
            "watch" if media != Media::Yaml => {}
            _ => return None,
        }
        let converts = |key: &&str| self.parameters.iter().any(|(name, _)| name == key);
        let converts = ["as", "g", "v"].iter().any(converts);
        let version = match self.parameter("v") {
            "v1" => Some(MetaVersion::V1),
            "v1beta1" => Some(MetaVersion::V1Beta1),
            _ => None,
        };
        let version = version.filter(|_| self.parameter("g") == "meta.k8s.io");
        let shape = match (self.parameter("as"), version) {
            _ if !converts => Shape::Object,
            ("Table", Some(version)) if offer.tables && media != Media::Protobuf => {
                Shape::Table(version)
            }
            ("PartialObjectMetadata", Some(version)) if offer.metadata => Shape::Metadata(version),
            ("PartialObjectMetadataList", Some(version)) if offer.metadata => {
                Shape::MetadataList(version)
            }
            _ => return None,
        };
        if media == Media::Protobuf && shape == Shape::Object && !offer.protobuf {
            return None;
        }
        let pretty = self.parameter("pretty") == "1";
        Some(Representation {
            media,
            pretty,
            shape,
        })
    }
}

/// The media type of a request's body.
pub(crate) fn body_media(header: Option<&str>) -> Result<Media, Error> {
    let refused = || {
        Error::UnsupportedMediaType(format!(
            "the body of the request was in an unknown format - accepted media types include: \
             {BODY_TYPES}"
        ))
    };
    match bare_media_type(header.unwrap_or_default()).as_deref() {
        Some("" | JSON) => Ok(Media::Json),
        Some(YAML) => Ok(Media::Yaml),
        Some(PROTOBUF) => Ok(Media::Protobuf),
        _ => Err(refused()),
    }
}

/// A media type without its parameters, in lower case; `None` if the parameters are broken.
fn bare_media_type(header: &str) -> Option<String> {
    let (media, parameters) = header.split_once(';').unwrap_or((header, ""));
    let parameters = parameters.trim();
    if media.trim().is_empty() && !header.is_empty() {
        return None;
    }
    let well_formed = parameters.is_empty()
        || parameters.split(';').all(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or_default();
            let name = name.trim();
            !value.is_empty() && !name.is_empty() && !name.contains(char::is_whitespace)
        });
    well_formed.then(|| media.trim().to_ascii_lowercase())
}

/// How a page for debugging is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageForm {
    /// For people.
    Text,
    /// As an object of a version of `config.k8s.io`.
    Object { media: Media, version: &'static str },
}

/// Picks the form of a page whose object is of `kind`; an object has to be asked for in full.
pub(crate) fn accept_page(header: Option<&str>, kind: &str) -> Option<PageForm> {
    let header = header.unwrap_or_default().trim();
    if header.is_empty() {
        return Some(PageForm::Text);
    }
    clauses(header).iter().find_map(|clause| {
        let media = match clause.media {
            "text/plain" | "text/*" | "*/*" => return Some(PageForm::Text),
            JSON => Media::Json,
            YAML => Media::Yaml,
            _ => return None,
        };
        let versions = ["v1beta1", "v1alpha1"];
        let version = *versions.iter().find(|it| **it == clause.parameter("v"))?;
        let is_asked = clause.parameter("as") == kind && clause.parameter("g") == "config.k8s.io";
        is_asked.then_some(PageForm::Object { media, version })
    })
}

/// Refuses a header that does not take plain JSON, which is all that some endpoints have.
pub(crate) fn accept_json(header: Option<&str>) -> Result<(), Failure> {
    let header = header.unwrap_or_default().trim();
    let takes = |clause: &Clause<'_>| matches!(clause.media, JSON | "*/*");
    if header.is_empty() || clauses(header).iter().any(takes) {
        return Ok(());
    }
    let text = format!("406: Not Acceptable\n\nAvailable representations: {JSON}");
    Err(Failure::new(406, "NotAcceptable", text).about(Subject::default()))
}

/// Whether answers are indented: asked for, or asked by a person's client.
pub(crate) fn is_pretty(query: Option<&str>, accept: bool, user_agent: &str) -> bool {
    let person = ["curl", "Wget", "Mozilla/5.0"]
        .iter()
        .any(|name| user_agent.starts_with(name));
    let wanted = query.map_or(person, |text| {
        matches!(text, "1" | "t" | "T" | "TRUE" | "true" | "True")
    });
    accept || wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_answers_are_indented() {
        let cases = [
            (None, false, "tool", false),
            (None, false, "curl/8", true),
            (Some("0"), false, "curl/8", false),
            (Some("1"), false, "tool", true),
            (Some("x"), false, "curl/8", false),
            (Some("0"), true, "tool", true),
        ];
        for (query, accept, user_agent, expected) in cases {
            assert_eq!(is_pretty(query, accept, user_agent), expected);
        }
    }

    const OFFER: Offer = Offer {
        tables: true,
        metadata: true,
        plain_text: false,
        protobuf: false,
        router: true,
        stream: Stream::No,
    };

    fn media(header: &str) -> Result<(Media, Shape), String> {
        accept(Some(header), OFFER)
            .map(|it| (it.media, it.shape))
            .map_err(|refused| refused.message())
    }

    #[test]
    fn which_clause_of_an_accept_header_wins() {
        let json = Ok((Media::Json, Shape::Object));
        for header in [
            "",
            "*/*",
            "application/xml, */*",
            "application/json;pretty=1;charset=x",
        ] {
            assert_eq!(media(header), json, "{header}");
        }
        assert_eq!(media("application/json;q=0.1,application/yaml;q=0"), json);
        assert_eq!(media("application/yaml").map(|it| it.0), Ok(Media::Yaml));
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(
            media(kubectl),
            Ok((Media::Json, Shape::Table(MetaVersion::V1)))
        );
        assert_eq!(
            media("application/json;as=Chair;v=v1;g=meta.k8s.io,application/json"),
            json
        );
    }

    #[test]
    fn the_text_tells_who_refused() {
        let direct = Offer {
            router: false,
            ..OFFER
        };
        let refused = accept(Some("text/html"), direct).unwrap_err();
        assert_eq!(refused, NotAcceptable::Parameters);
        for header in ["text/html", "application/cbor", "application/*"] {
            assert!(
                media(header)
                    .unwrap_err()
                    .starts_with("406: Not Acceptable"),
                "{header}"
            );
        }
        let refused = media("application/json;as=Chair;v=v1;g=meta.k8s.io").unwrap_err();
        assert!(
            refused.starts_with("only the following media types are accepted:"),
            "{refused}"
        );
    }

    #[test]
    fn which_parameters_decide_about_a_clause() {
        let protobuf = "application/vnd.kubernetes.protobuf";
        let metadata = Shape::Metadata(MetaVersion::V1);
        for (header, expected) in [
            (
                "application/json;charset=x",
                Some((Media::Json, Shape::Object)),
            ),
            (
                "application/json;stream=watch",
                Some((Media::Json, Shape::Object)),
            ),
            ("application/yaml;stream=watch", None),
            // A conversion to nothing is none that is known.
            ("application/json;v=v1", None),
            ("application/json;g=meta.k8s.io", None),
            ("application/json;as=\"Table\";v=v1;g=meta.k8s.io", None),
            (protobuf, None),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
                Some((Media::Protobuf, metadata)),
            ),
        ] {
            assert_eq!(media(header).ok(), expected, "{header}");
        }
    }

    #[test]
    fn what_a_content_type_says() {
        for (header, expected) in [
            ("", Some(Media::Json)),
            ("application/JSON", Some(Media::Json)),
            ("application/json;", Some(Media::Json)),
            ("application/yaml; charset=utf-8", Some(Media::Yaml)),
            ("application/json; charset", None),
            ("application/json, application/yaml", None),
            ("json", None),
            (";", None),
        ] {
            assert_eq!(body_media(Some(header)).ok(), expected, "{header}");
        }
    }

    #[test]
    fn a_clause_for_all_of_discovery_wins_wherever_it_stands() {
        let whole = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        for (header, expected) in [
            (format!("{JSON}{whole}"), Some(Media::Json)),
            (format!("{JSON},{JSON}{whole};q=0.1"), Some(Media::Json)),
            (format!("{YAML}{whole}"), Some(Media::Yaml)),
            (
                format!("{PROTOBUF}{whole},{JSON}{whole}"),
                Some(Media::Protobuf),
            ),
            (format!("{JSON}{}", whole.replace("v2", "v3")), None),
            (JSON.to_owned(), None),
        ] {
            assert_eq!(wants_aggregated(Some(&header)), expected, "{header}");
        }
    }

    #[test]
    fn what_are_a_bare_star_and_plain_text_taken_for() {
        let direct = Offer {
            router: false,
            ..OFFER
        };
        assert_eq!(
            accept(Some("*;q=0.5"), direct),
            Ok(Representation::default())
        );
        assert_eq!(accept(Some("*"), OFFER), Err(NotAcceptable::Unknown(OFFER)));
        // The router lets plain text pass, and nobody behind it can write that.
        let log = Offer {
            plain_text: true,
            ..OFFER
        };
        assert_eq!(
            accept(Some("text/plain"), log),
            Err(NotAcceptable::Parameters)
        );
        let refused = accept(Some("text/html"), log).unwrap_err().message();
        let expected =
            "406: Not Acceptable\n\nAvailable representations: text/plain, application/json";
        assert!(refused.starts_with(expected), "{refused}");
    }

    #[test]
    fn what_is_never_stored_has_metadata_and_no_table() {
        let offer = Offer {
            tables: false,
            ..OFFER
        };
        let asked = |shape: &str| format!("application/json;as={shape};v=v1;g=meta.k8s.io");
        let shape = |name| accept(Some(&asked(name)), offer).map(|it| it.shape);
        let metadata = Shape::Metadata(MetaVersion::V1);
        assert_eq!(shape("PartialObjectMetadata"), Ok(metadata));
        assert_eq!(shape("Table"), Err(NotAcceptable::Parameters));
    }
}
